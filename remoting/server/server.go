package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Server listens on one address. Safe to share.
type Server struct {
	cfg    Config
	mux    *Mux
	log    *slog.Logger
	limits *Limits
	tls    *tls.Config // nil when TLS is not served
	epoch  time.Time
	engine *engine
	quiet  quietLog

	counts   counters
	gauges   gauges
	opaque   atomic.Int32
	ids      atomic.Uint64
	draining atomic.Bool

	conns struct {
		sync.Mutex
		m map[*Conn]struct{}
	}
	stuck struct {
		sync.Mutex
		m     map[*Conn]struct{} // connections whose peer does not read
		timer *time.Timer
		ended bool
	}
	life struct {
		sync.Mutex
		started, closed bool
		ln              *net.TCPListener
		spare           spareDescriptor
		stopped         chan struct{} // closed when Stop has done its work
	}
	quit      chan struct{} // closed when nothing is accepted any more
	acceptors sync.WaitGroup
	streams   sync.WaitGroup
	sweeper   sync.WaitGroup
}

// New checks cfg and returns a server that has not started.
func New(cfg Config, m *Mux) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	s := &Server{cfg: cfg, mux: m, log: cfg.Logger, epoch: time.Now(), quit: make(chan struct{})}
	s.quiet.log = s.log
	s.conns.m = map[*Conn]struct{}{}
	s.stuck.m = map[*Conn]struct{}{}
	s.limits = cfg.Limits
	if s.limits == nil {
		s.limits = NewLimits(cfg.MaxConnections, cfg.MaxConnectionsPerIP)
	}
	var err error
	if s.tls, err = newTLS(&s.cfg.TLS, s.log); err != nil {
		return nil, err
	}
	return s, nil
}

// Start listens and returns when the server accepts connections. ctx bounds
// the start only; the server runs until Stop.
func (s *Server) Start(ctx context.Context) error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.life.started || s.life.closed {
		return fmt.Errorf("cannot start the server on %q: it has run before", s.cfg.Addr)
	}
	lc := net.ListenConfig{Control: s.listenControl}
	ln, err := lc.Listen(ctx, "tcp", s.cfg.Addr)
	if err != nil {
		return fmt.Errorf("cannot listen on %q: %w", s.cfg.Addr, err)
	}
	if s.engine, err = startEngine(s); err != nil {
		_ = ln.Close()
		return fmt.Errorf("cannot start the event loops: %w", err)
	}
	s.life.started = true
	s.life.ln = ln.(*net.TCPListener)
	s.life.spare.open()
	for range min(runtime.GOMAXPROCS(0), maxAcceptors) {
		s.acceptors.Go(func() { s.acceptLoop(s.life.ln) })
	}
	s.sweeper.Go(s.sweep)
	return nil
}

// Addr returns the address listened on, nil before Start.
func (s *Server) Addr() net.Addr {
	s.life.Lock()
	defer s.life.Unlock()
	if s.life.ln == nil {
		return nil
	}
	return s.life.ln.Addr()
}

// closeListener ends accepting and waits until no connection is on its way to
// a loop.
func (s *Server) closeListener() {
	s.life.Lock()
	if !s.life.closed {
		s.life.closed = true
		close(s.quit)
		if s.life.ln != nil {
			_ = s.life.ln.Close()
		}
	}
	s.life.Unlock()
	s.acceptors.Wait()
}

const (
	// drainPoll is how often Drain looks whether everything has been answered.
	drainPoll = 2 * time.Millisecond
	// drainPace is the time in which slow peers must take a tenth of what is
	// left for them, or they are not waited for.
	drainPace = time.Second
)

// Drain takes no new connections and no new requests (they are answered
// GO_AWAY, or SYSTEM_BUSY where the peer does not know that) and returns when
// everything in flight has been answered and sent, or with ctx's error. A peer
// that does not read its answers is not waited for.
func (s *Server) Drain(ctx context.Context) error {
	// 1. No new connections.
	s.closeListener()
	// 2. No new requests.
	s.draining.Store(true)
	// 3. What runs is answered, and the answers leave.
	t := time.NewTicker(drainPoll)
	defer t.Stop()
	left, since := int64(-1), time.Time{}
	for {
		inFlight := s.gauges.inbound.Load() + s.gauges.parked.Load()
		if inFlight == 0 {
			if s.allSent() {
				return nil
			}
			out := s.gauges.outbound.Load()
			if left < 0 || out < left-left/10 {
				left, since = out, time.Now()
			} else if time.Since(since) > drainPace {
				s.log.Warn("peers do not take their answers, not waiting longer", "bytes", out)
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot finish the requests in flight (%d bytes of them): %w", inFlight, ctx.Err())
		case <-t.C:
		}
	}
}

func (s *Server) allSent() bool {
	if s.gauges.outbound.Load() != 0 {
		return false
	}
	sent := true
	s.Conns(func(c *Conn) bool {
		c.out.Lock()
		sent = c.out.buf == nil && !c.out.active
		c.out.Unlock()
		return sent
	})
	return sent
}

// Stop closes all connections and ends the server's goroutines. Requests that
// are still with a handler may be answered afterwards; nothing is sent.
// Idempotent.
func (s *Server) Stop(ctx context.Context) error {
	s.life.Lock()
	first := s.life.stopped == nil
	if first {
		s.life.stopped = make(chan struct{})
	}
	stopped := s.life.stopped
	s.life.Unlock()
	if first {
		go func() {
			defer close(stopped)
			s.stop()
		}()
	}
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot stop the server on %q in time: %w", s.cfg.Addr, ctx.Err())
	}
}

func (s *Server) stop() {
	// 1. No new connections; those on their way to a loop have arrived there,
	//    since registering with a loop that has ended would hang.
	s.closeListener()
	// 2. No new requests.
	s.draining.Store(true)
	// 3. The sweeper and the timer that looks after slow readers end: they
	//    wake loops.
	s.sweeper.Wait()
	s.endStuck()
	// 4. Every connection is told to close; streams end with their goroutines.
	for _, c := range s.everyConn(nil) {
		c.fail(&CloseError{Reason: ReasonStop})
	}
	s.streams.Wait()
	// 5. The loops end and close what is left of theirs. From here on no
	//    connection touches a loop: each has seen closed.
	s.engine.stop()
	// 6. The spare descriptor goes.
	s.life.spare.close()
}

// Conns calls f for each connection that is past its first bytes until it
// returns false.
func (s *Server) Conns(f func(*Conn) bool) {
	s.conns.Lock()
	all := make([]*Conn, 0, len(s.conns.m))
	for c := range s.conns.m {
		if st := State(c.state.Load()); st > StateAccepted && st < StateClosed {
			all = append(all, c)
		}
	}
	s.conns.Unlock()
	for _, c := range all {
		if !f(c) {
			return
		}
	}
}

// everyConn appends all connections to dst, accepted ones included.
func (s *Server) everyConn(dst []*Conn) []*Conn {
	s.conns.Lock()
	defer s.conns.Unlock()
	for c := range s.conns.m {
		dst = append(dst, c)
	}
	return dst
}

// newConn returns a connection that has been counted by the limits.
func (s *Server) newConn(remote, local netip.AddrPort, peer netip.Addr) *Conn {
	c := &Conn{id: s.ids.Add(1), srv: s, local: local, peer: peer, opened: time.Now()}
	c.remote.Store(&remote)
	c.lastAlive = s.since(c.opened)
	c.in.max = s.cfg.MaxFrame
	c.in.partial, c.in.inbound, c.in.limit = &s.gauges.partial, &s.gauges.inbound, max(s.cfg.InboundTotal/2, int64(s.cfg.MaxFrame))
	return c
}

// remember makes an accepted connection known: its transport can be used.
func (s *Server) remember(c *Conn) {
	s.counts.states[StateAccepted].Add(1)
	s.conns.Lock()
	s.conns.m[c] = struct{}{}
	s.conns.Unlock()
}

// forget is the last that happens to a connection.
func (s *Server) forget(c *Conn, reason error) {
	s.unstick(c)
	s.conns.Lock()
	delete(s.conns.m, c)
	s.conns.Unlock()
	s.limits.release(c.peer)
	old := State(c.state.Swap(int32(StateClosed)))
	s.counts.states[old].Add(-1)
	s.counts.states[StateClosed].Add(1)
	why := closeReason(reason)
	s.counts.close(why)
	switch why {
	case ReasonPeer, ReasonStop, ReasonIdle, ReasonFirstByte: // ordinary
	default:
		s.quiet.warn("connection closed", why, "peer", c.Remote(), "reason", reason)
	}
	if c.announced && s.cfg.OnClose != nil {
		s.cfg.OnClose(c, reason)
	}
}

func (s *Server) doubleReply(c *Conn) {
	s.counts.doubleReplies.Add(1)
	s.quiet.warn("request answered twice", "double reply", "peer", c.Remote(), "reason", errors.New("a handler's fault"))
}

// since returns t as nanoseconds since the server was made.
func (s *Server) since(t time.Time) int64 { return int64(t.Sub(s.epoch)) }
