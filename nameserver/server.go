package nameserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"mqx/internal/clock"
	"mqx/internal/vfs"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
	"mqx/remoting/server"
)

// Server is one name server. It is created by New, which starts nothing, and lives
// while Run runs.
type Server struct {
	log     *slog.Logger
	clock   clock.Clock
	fs      vfs.FS
	cfg     atomic.Pointer[Config] // replaced as a whole by UPDATE_NAMESRV_CONFIG
	cfgMu   sync.Mutex             // serializes those
	kv      *kvTable
	cache   *routeCache
	started time.Time
	left    *leavers
	ready   chan struct{}
	ran     atomic.Bool
	net     *server.Server
	peers   *remoteclient.Client // notices to brokers
	notices chan *minIDNotice
	classes classes
	rpc     server.RPCTimes
	slow    *server.Slow
	probing sync.Mutex // one broker is tried at a time

	// Lock order: mu -> cache.mu (docs/locks.txt).
	mu struct {
		sync.RWMutex
		table *table
	}
}

// classes are the bounded queues of requests.
type classes struct{ route, unregister, rest *server.Class }

// maxNotices bounds the notices that wait to be sent; more are dropped with a warning,
// as brokers also learn from their next registration.
const maxNotices = 1024

// noticeTimeout bounds the sending of one notice to one broker.
const noticeTimeout = 300 * time.Millisecond

// New checks cfg, loads the key-value table and prepares a name server. It opens no port.
func New(cfg Config) (*Server, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.System
	}
	if cfg.FS == nil {
		cfg.FS = vfs.OS
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	path, err := expandHome(cfg.KVConfigPath)
	if err != nil {
		return nil, err
	}
	kv, err := openKV(cfg.FS, path, cfg.Logger)
	if err != nil {
		return nil, err
	}
	s := &Server{
		log: cfg.Logger, clock: cfg.Clock, fs: cfg.FS, kv: kv, cache: newRouteCache(),
		started: cfg.Clock.Now(), left: newLeavers(), ready: make(chan struct{}),
		notices: make(chan *minIDNotice, maxNotices),
		peers:   remoteclient.New(remoteclient.Config{Logger: cfg.Logger}),
		classes: classes{
			route: server.NewClass(server.ClassConfig{
				Name: "route", Workers: cfg.ClientRequestThreadPoolNums, Queue: cfg.ClientRequestThreadPoolQueueCapacity,
			}),
			unregister: server.NewClass(server.ClassConfig{
				Name: "unregister", Workers: 1, Queue: cfg.UnRegisterBrokerQueueCapacity, MaxBatch: cfg.UnRegisterBrokerQueueCapacity,
			}),
			rest: server.NewClass(server.ClassConfig{
				Name: "default", Workers: cfg.DefaultThreadPoolNums, Queue: cfg.DefaultThreadPoolQueueCapacity,
			}),
		},
	}
	s.cfg.Store(&cfg)
	s.slow = server.NewSlow(cfg.Logger, 0)
	s.logAs(&cfg)
	s.mu.table = newTable(s.cache.drop)
	sc, err := cfg.serverConfig()
	if err != nil {
		return nil, err
	}
	sc.OnClose = s.onClose
	sc.Times, sc.Slow = &s.rpc, s.slow
	if s.net, err = server.New(sc, s.newMux()); err != nil {
		return nil, err
	}
	return s, nil
}

// Run listens and serves until ctx is cancelled, then drains and returns nil. It may
// be called once.
func (s *Server) Run(ctx context.Context) error {
	if !s.ran.CompareAndSwap(false, true) {
		return errors.New("cannot run name server: it ran before")
	}
	var classes, workers sync.WaitGroup
	for _, c := range s.classes.all() {
		classes.Go(func() { _ = c.Run(context.Background()) })
	}
	work, stopWork := context.WithCancel(context.Background())
	workers.Go(func() { s.scanLoop(work) })
	workers.Go(func() { s.leaveLoop(work) })
	workers.Go(func() { s.noticeLoop(work) })

	err := s.net.Start(ctx)
	if err != nil {
		err = fmt.Errorf("cannot start name server on %q: %w", s.cfg.Load().ListenAddr(), err)
	} else {
		s.log.Info("name server is ready", "addr", s.net.Addr().String())
		close(s.ready)
		<-ctx.Done()
	}
	return errors.Join(err, s.stop(&classes, &workers, stopWork))
}

// stop ends the server in this order.
func (s *Server) stop(classes, workers *sync.WaitGroup, stopWork context.CancelFunc) error {
	var errs []error
	// 1. No new requests; what is in flight is answered.
	if s.net.Addr() != nil {
		drain, cancel := context.WithTimeout(context.Background(), s.cfg.Load().ShutdownWait)
		if err := s.net.Drain(drain); err != nil {
			s.log.Warn("requests in flight at the stop", "error", err)
		}
		cancel()
	}
	// 2. Connections and event loops.
	end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if s.net.Addr() != nil {
		if err := s.net.Stop(end); err != nil {
			errs = append(errs, fmt.Errorf("cannot stop name server: %w", err))
		}
	}
	// 3. Workers of the request classes.
	for _, c := range s.classes.all() {
		c.Close()
	}
	classes.Wait()
	// 4. Scan, departures and notices; then the connections notices went over.
	stopWork()
	workers.Wait()
	if err := s.peers.Close(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c classes) all() []*server.Class { return []*server.Class{c.route, c.unregister, c.rest} }

// Ready is closed when the server accepts connections.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Addr is the address listened on; nil before Ready.
func (s *Server) Addr() net.Addr { return s.net.Addr() }

// Config is the configuration in force.
func (s *Server) Config() Config { return *s.cfg.Load() }

// onClose runs on an event loop: it only notes that a connection which registered
// brokers is gone.
func (s *Server) onClose(c *server.Conn, _ error) {
	if _, registered := c.Session().(*brokerSession); registered {
		s.left.add(c.ID())
	}
}

// brokerSession marks a connection that registered a broker.
type brokerSession struct{ conn *server.Conn }

// scanLoop expires brokers that have been silent for too long.
func (s *Server) scanLoop(ctx context.Context) {
	interval := s.cfg.Load().ScanNotActiveBrokerInterval
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.expire(s.clock.Now())
		if d := s.cfg.Load().ScanNotActiveBrokerInterval; d != interval {
			interval = d
			tick.Reset(d)
		}
	}
}

// expire removes the brokers whose time is over at now and closes their connections.
func (s *Server) expire(now time.Time) {
	s.mu.Lock()
	ds, conns := s.mu.table.expired(now)
	notices := s.mu.table.depart(ds, s.cfg.Load().rules())
	s.mu.Unlock()
	for _, d := range ds {
		s.log.Warn("broker expired", "cluster", d.cluster, "broker", d.name, "id", d.id, "addr", d.addr)
	}
	for _, id := range conns {
		s.left.close(id, "broker expired")
	}
	s.send(notices)
}

// leaveLoop removes the brokers of closed connections, in batches as they come.
func (s *Server) leaveLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.left.wake:
		}
		s.departConns(s.left.take())
	}
}

func (s *Server) departConns(ids []uint64) {
	s.mu.Lock()
	ds := s.mu.table.ofConns(ids)
	notices := s.mu.table.depart(ds, s.cfg.Load().rules())
	s.mu.Unlock()
	for _, d := range ds {
		s.log.Info("broker closed its connection", "cluster", d.cluster, "broker", d.name, "id", d.id, "addr", d.addr)
	}
	s.send(notices)
}

// send queues notices; it never waits.
func (s *Server) send(notices []*minIDNotice) {
	for _, n := range notices {
		select {
		case s.notices <- n:
		default:
			s.log.Warn("notice of a changed broker id dropped", "limit", maxNotices)
		}
	}
}

func (s *Server) noticeLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-s.notices:
			s.notify(ctx, n)
		}
	}
}

func (s *Server) notify(ctx context.Context, n *minIDNotice) {
	for _, addr := range n.targets {
		c, cancel := context.WithTimeout(ctx, noticeTimeout)
		req := remoting.NewRequest(remoting.ReqNotifyMinBrokerIDChange, &n.header)
		if err := s.peers.Oneway(c, addr, req); err != nil {
			s.log.Warn("cannot notify broker of a changed id", "addr", addr, "error", err)
		}
		cancel()
	}
}

// leavers collects the connections of brokers: those open, to close them, and those
// that closed and wait for their brokers to be removed. Both are bounded by the
// number of connections.
type leavers struct {
	wake chan struct{} // holds one token while there is something to take
	mu   struct {
		sync.Mutex
		open   map[uint64]*server.Conn
		closed []uint64
	}
}

func newLeavers() *leavers {
	l := &leavers{wake: make(chan struct{}, 1)}
	l.mu.open = map[uint64]*server.Conn{}
	return l
}

// track remembers the connection of a broker.
func (l *leavers) track(c *server.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.open[c.ID()] = c
}

// add notes a closed connection.
func (l *leavers) add(id uint64) {
	l.mu.Lock()
	delete(l.mu.open, id)
	l.mu.closed = append(l.mu.closed, id)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *leavers) take() []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := l.mu.closed
	l.mu.closed = nil
	return ids
}

// close closes a connection that is still open.
func (l *leavers) close(id uint64, reason string) {
	l.mu.Lock()
	c := l.mu.open[id]
	l.mu.Unlock()
	if c != nil {
		c.Close(reason)
	}
}
