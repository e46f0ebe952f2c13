// Package broker is the message broker: it wires the store, the servers and
// the tables of topics, groups, offsets and connected clients, and answers the
// requests that docs/compatibility.md lists.
//
// A file holds one concern: the tables (topic_table.go, group_table.go,
// offsets.go, consumers.go, sessions.go, locks.go, hold.go) know nothing of the
// wire, the handlers (send.go, pull.go, *_requests.go) turn requests into calls
// on them and on the store, served.go says which request goes where.
package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"mqx/broker/delay"
	"mqx/broker/stats"
	"mqx/internal/clock"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/client"
	"mqx/remoting/server"
	"mqx/store"
	"mqx/store/ha"
)

// Broker is one broker. New builds it, Run serves until its context ends; a
// Broker cannot be run twice.
type Broker struct {
	config   atomic.Pointer[Config]
	ownProps atomic.Pointer[brokerProps]
	endpoint atomic.Pointer[endpoint]
	fsys     vfs.FS
	clock    clock.Clock
	log      *slog.Logger
	quiet    *quietLog
	ready    chan struct{}
	ran      atomic.Bool
	started  time.Time

	store        *store.Store
	topics       *topicTable
	groups       *groupTable
	offsets      *offsetTable
	filters      *filterTable
	producers    *producerTable
	consumers    *consumerTable
	locks        *queueLocks
	hold         *hold
	woken        *wokenPulls
	cold         *coldPulls
	flushed      server.Gather // answers to sends that one flush has made durable
	classes      *classes
	sendHandler  func([]*server.Request)
	ackHandler   func([]*server.Request)
	pops         *popService
	modes        *requestModes
	broadcasts   *broadcastOffsets
	routes       *routeTable
	main, vip    *server.Server
	limits       *server.Limits
	client       *client.Client
	registrar    *registrar
	transactions *transactions
	statics      *staticTable
	elsewhere    *elsewhere
	sent         atomic.Uint32 // messages to a static topic that named no queue
	ids          *message.IDGenerator
	delayLevels  delay.Levels
	delays       *delayService
	ha           replication
	lookEvery    time.Duration // of a slave at the tables of its master
	peers        *peers
	forwards     *forwarder
	slave        *slave // nil: a master
	role         ha.RoleFile
	fence        fence
	acting       acting
	reopening    chan string   // why Run is to end with a ReopenError
	taken        chan struct{} // a name server has taken a registration
	timers       *timerService

	stats                  *stats.Set
	brokerPuts, brokerGets *stats.Counter
	putTimes, getTimes     latencies
	bornTimes              latencies // from the birth of a message, by its client's clock, until it is stored
	refusals               sendRefusals
	rates                  rates
	diagnosis              diagnosis
	rpc                    server.RPCTimes
	slow                   *server.Slow
	level                  *slog.LevelVar // nil: it is not ours
	ages                   ageCache
	getMu                  struct {
		sync.RWMutex
		counters map[offsetKey]getCounters
	}

	configMu struct {
		sync.Mutex
		version remoting.DataVersion
		// saved is what the next start begins with; of it, only the keys that take
		// effect at once are in force.
		saved *Config
	}
	renaming chan struct{}

	// ctx ends when nothing more is to be answered.
	ctx    context.Context
	cancel context.CancelFunc
}

// endpoint is where the broker is found.
type endpoint struct {
	advertised
	storeHost netip.AddrPort // in records and message ids
	haAddr    string
}

// at is where the broker is found.
func (b *Broker) at() *endpoint { return b.endpoint.Load() }

// New checks the configuration and builds a broker. It opens and starts nothing.
func New(cfg Config) (*Broker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if e := cfg.unsupported(); e != nil {
		return nil, e
	}
	b := &Broker{clock: cfg.Clock, log: cfg.Logger, fsys: cfg.Store.FS, ready: make(chan struct{}), renaming: make(chan struct{}, 1), reopening: make(chan string, 1), taken: make(chan struct{}, 1), acting: acting{told: make(chan minTold, 16)}}
	if b.clock == nil {
		b.clock = clock.System
	}
	if b.log == nil {
		b.log = slog.Default()
	}
	if b.fsys == nil {
		b.fsys = vfs.OS
	}
	b.slow, b.level = server.NewSlow(b.log, 0), cfg.LogLevel
	b.logAs(&cfg)
	b.quiet = &quietLog{log: b.log, now: b.now}
	cfg.settle()
	if cfg.Join == JoinEmpty {
		cfg.AutoCreateTopic = false
	}
	b.putConfig(&cfg)
	levels, err := store.ParseDelayLevels(cfg.Store.MessageDelayLevel)
	if err != nil {
		return nil, fmt.Errorf("cannot read messageDelayLevel: %w", err)
	}
	b.delayLevels = levels
	b.ctx, b.cancel = context.WithCancel(context.Background())
	now := b.now()
	b.configMu.version, b.configMu.saved = remoting.NewDataVersion(now), b.cfg()
	b.endpoint.Store(&endpoint{})

	b.stats = stats.NewSet()
	b.brokerPuts = b.stats.Counter(stats.BrokerPutNums, cfg.BrokerClusterName)
	b.brokerGets = b.stats.Counter(stats.BrokerGetNums, cfg.BrokerClusterName)
	b.getMu.counters = map[offsetKey]getCounters{}

	if err := b.newTables(&cfg); err != nil {
		return nil, err
	}
	b.producers, b.consumers = newProducerTable(), newConsumerTable()
	b.locks = newQueueLocks(b.now)
	b.hold = newHold(time.Now, cfg.MaxParkedPulls)
	b.classes = newClasses(&cfg)
	b.woken = newWokenPulls(b.classes.vip, b.pull)
	b.cold = newColdPulls(b)
	b.sendHandler, b.ackHandler = b.handleSend, b.handleAcks
	b.pops, b.routes = newPopService(b, &cfg), newRouteTable(b)
	b.broadcasts, b.modes = newBroadcastOffsets(), newRequestModes(b.fsys, b.configFile("messageRequestMode.json"))
	b.delays = newDelayService(b, delayConfig{
		levels: b.delayLevels, fsys: b.fsys, file: b.configFile("delayOffset.json"), every: cfg.FlushDelayOffset, step: cfg.DelayVersionStep,
	})
	b.lookEvery = syncEvery
	b.peers, b.forwards = newPeers(b), newForwarder(func() map[string]bool { return b.registrar.Servers() }, b.askAt, b.log)
	b.transactions, b.timers = newTransactions(b), newTimerService(b)
	b.tellPeers()
	return b, nil
}

// newTables makes the tables that are files in the store's config directory.
func (b *Broker) newTables(cfg *Config) error {
	b.topics = newTopicTable(cfg.systemTopicRules(), b.fsys, b.configFile("topics.json"), b.now, b.stats, b.log)
	b.statics, b.elsewhere = newStaticTable(b.fsys, b.configFile(staticTopicsFile), func() string { return b.cfg().BrokerName }, b.now, b.log), newElsewhere(b)
	b.groups = newGroupTable(b.groupRules, b.fsys, b.configFile("subscriptionGroup.json"), b.now, b.log)
	b.offsets = newOffsetTable(b.fsys, b.configFile("consumerOffset.json"), b.now, cfg.OffsetVersionStep, b.log)
	if cfg.Store.EnableLMQ && cfg.Store.EnableMultiDispatch {
		b.topics.light, b.groups.light, b.offsets.light = true, true, b.configFile("lmqConsumerOffset.json")
	}
	bloom, err := cfg.bloom()
	if err != nil {
		return err
	}
	b.filters = newFilterTable(b.fsys, b.configFile("consumerFilter.json"), bloom, func() time.Duration { return b.cfg().FilterDataKept }, b.now, b.log)
	return nil
}

// tellPeers has the slaves told of what changes in the tables.
func (b *Broker) tellPeers() {
	b.topics.saver.asked = func() { b.peers.changed(partTopics) }
	b.groups.saver.asked = func() { b.peers.changed(partGroups) }
	b.modes.saver.asked = func() { b.peers.changed(partModes) }
	b.delays.progress.moved = func() { b.peers.changed(partDelays) }
	b.offsets.peers = b.peers
	b.timers.moved = func() { b.peers.changed(partTimer) }
}

// systemTopicRules are the rules the configuration gives.
func (c *Config) systemTopicRules() systemTopicRules {
	r := systemTopicRules{
		Cluster: c.BrokerClusterName, Broker: c.BrokerName, AutoCreate: c.AutoCreateTopic,
		DefaultQueues: int32(c.DefaultTopicQueueNums), ClusterTopicEnable: c.ClusterTopicEnable,
		BrokerTopicEnable: c.BrokerTopicEnable, ReviveQueues: int32(c.ReviveQueueNum), DelayLevels: scheduleQueues,
	}
	if c.TraceTopicEnable {
		r.TraceTopic = c.TraceTopicName
	}
	return r
}

// scheduleQueues is the number of queues of SCHEDULE_TOPIC_XXXX, Apache's constant.
const scheduleQueues = 18

// configFile is a file of the store's config directory.
func (b *Broker) configFile(name string) string {
	return filepath.Join(b.cfg().Store.RootDir, "config", name)
}

// Run opens the store, serves and registers until ctx ends, then stops in
// order. It returns nil after an orderly stop, a *ReopenError when the broker is to be started anew, else the first failure.
func (b *Broker) Run(ctx context.Context) error {
	if b.ran.Swap(true) {
		return errors.New("a broker cannot be run twice")
	}
	defer b.cancel()
	if err := b.open(ctx); err != nil {
		return err
	}
	var workers sync.WaitGroup
	workerCtx, stopWorkers := context.WithCancel(context.Background())
	defer stopWorkers()
	failed := make(chan error, 1)
	workers.Go(func() {
		if err := b.store.Run(workerCtx); err != nil && workerCtx.Err() == nil {
			failed <- err
		}
	})
	serving := b.startWork(workerCtx)
	err := b.listen(ctx)
	if err == nil {
		err = b.startReplication(ctx, workerCtx, &workers)
	}
	var reopen string
	if err == nil {
		reopen, err = b.serve(ctx, workerCtx, &workers, failed)
	}
	err = errors.Join(err, b.stop(serving, stopWorkers, &workers))
	if reopen != "" {
		return &ReopenError{Why: reopen, Err: err}
	}
	return err
}

// serve puts the broker into the routes and waits for the reason to stop: ctx ends, the store fails, or the broker is to be started
// anew, and why. None of them waits until the group is ready for it (preOnline); Ready does, as do those who restart one
// broker after the other.
func (b *Broker) serve(ctx, work context.Context, workers *sync.WaitGroup, failed <-chan error) (reopen string, err error) {
	goOnline, leave := context.WithCancel(ctx)
	online := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer leave()
	wg.Go(func() {
		defer close(online)
		if b.preOnline(goOnline); goOnline.Err() == nil {
			b.register(goOnline)
		}
	})
	for {
		select {
		case <-online:
			online = nil
			if b.cfg().EnableSlaveActingMaster {
				workers.Go(func() { b.runActing(work) })
			}
			close(b.ready)
		case <-ctx.Done():
			return "", nil
		case reopen = <-b.reopening:
			b.log.Info("the broker is started anew", "why", reopen)
			return reopen, nil
		case err = <-failed:
			b.log.Error("the store has failed; the broker stops", "error", err)
			return "", err
		}
	}
}

// open opens the store and loads the tables.
func (b *Broker) open(ctx context.Context) error {
	if err := b.loadRole(); err != nil {
		return err
	}
	cfg := b.cfg()
	sc := cfg.Store
	sc.FS, sc.Clock, sc.Logger, sc.OnArrive, sc.Together = b.fsys, b.clock, b.log, b.arrived, b.flushed.Do
	sc.BitMaps, sc.BatchTopic, sc.Replicas = bitMaps{b}, b.batchQueues(), &b.ha
	sc.Follow, sc.Held = cfg.isSlave(), cfg.held()
	b.ha.open(b)
	sc.Gapless = cfg.gapless(b.ha.state.gapless())
	b.limits = server.NewLimits(cfg.MaxConnections, cfg.MaxConnectionsPerIP)
	queues, logs := openFiles(b.limits.Rest())
	sc.MaxOpenFiles, sc.MaxOpenLogFiles = cmp.Or(sc.MaxOpenFiles, queues), cmp.Or(sc.MaxOpenLogFiles, logs)
	if err := b.wipeLog(sc); err != nil {
		return err
	}
	st, err := store.Open(sc)
	if err != nil {
		return err
	}
	b.store = st
	if err := b.openReplication(st); err != nil {
		return errors.Join(err, st.Close())
	}
	if cfg.isSlave() {
		b.slave = newSlave(b, st)
	}
	for _, load := range []func() error{b.makeConfigDir, func() error { return b.join(ctx) }, b.loadTopics, b.groups.Load, b.offsets.Load, b.filters.Load, b.pops.Load, b.modes.Load, b.loadStatics, b.cutOffsets, b.cutLog, b.beginEpoch, b.ownOffsets, func() error { return b.openOwnWork(st) }} {
		if err := load(); err != nil {
			return errors.Join(err, st.Close())
		}
	}
	for _, prepare := range []func() error{func() error { return b.findAddress(ctx) }, b.prepareNaming, func() error { return b.fenceAtStart(ctx) }, func() error { return b.takeBack(ctx) }} {
		if err := prepare(); err != nil {
			return errors.Join(err, st.Close())
		}
	}
	b.started = b.now()
	return nil
}

// openOwnWork opens what puts messages by itself; on a slave nothing does, and the files of that are the master's.
func (b *Broker) openOwnWork(st *store.Store) error {
	if b.slave != nil {
		return nil
	}
	for _, open := range []func(*store.Store) error{b.delays.open, b.timers.open, func(*store.Store) error { return b.transactions.Load() }} {
		if err := open(st); err != nil {
			return err
		}
	}
	return nil
}

// openFiles is how many files of the consume queues and of the log the store may keep open, of the descriptors that
// connections leave: at most half of them together, so that others can be opened at any time.
func openFiles(rest int) (queues, logs int) {
	return min(max(rest/3, 8), 512), min(max(rest/6, 4), 256)
}

// arrived wakes the pulls that wait for a message. The dispatcher calls it.
func (b *Broker) arrived(topic []byte, queueID int32, queueOffset, tagsCode, _ int64, props []byte) {
	b.hold.Arrived(topic, queueID, queueOffset, tagsCode, props)
	b.pops.Arrived(topic, queueID, queueOffset, tagsCode, props)
	switch string(topic) {
	case message.TopicSchedule:
		b.delays.Arrived(queueID)
	case message.TopicTimer:
		b.timers.Arrived()
	}
}

// startWork starts the request classes, the workers of woken pulls and the
// clock work. The returned group ends when all of them have.
func (b *Broker) startWork(ctx context.Context) *sync.WaitGroup {
	var wg sync.WaitGroup
	for _, c := range b.classes.all() {
		wg.Go(func() {
			if err := c.Run(ctx); err != nil && ctx.Err() == nil {
				b.log.Error("a request class has ended", "class", c.Name(), "error", err)
			}
		})
	}
	wg.Go(func() { b.woken.Run(ctx, wokenWorkers) })
	wg.Go(func() { b.cold.run(ctx) })
	wg.Go(func() { b.keepTime(ctx) })
	wg.Go(func() { b.keepBroadcasts(ctx) })
	b.pops.Start()
	if b.slave != nil {
		wg.Go(func() { b.slave.run(ctx) })
		return &wg
	}
	wg.Go(func() { b.watchRivals(ctx) })
	wg.Go(func() { b.peers.run(ctx) })
	wg.Go(func() { b.forwards.run(ctx) })
	wg.Go(func() { b.keepStatics(ctx) })
	wg.Go(func() { b.delays.Run(ctx) })
	wg.Go(func() { b.pops.Run(ctx) })
	wg.Go(func() { b.transactions.Run(ctx) })
	wg.Go(func() { b.timers.Run(ctx) })
	return &wg
}

// wokenWorkers answer the pulls that data has woken.
const wokenWorkers = 4

// listen starts the two servers.
func (b *Broker) listen(ctx context.Context) error {
	cfg := b.cfg()
	var err error
	if b.main, err = b.newServer(cfg.ListenPort, false); err != nil {
		return err
	}
	vipPort := 0
	if cfg.ListenPort > 0 {
		vipPort = cfg.ListenPort - 2
	}
	if b.vip, err = b.newServer(vipPort, true); err != nil {
		return err
	}
	if err := b.main.Start(ctx); err != nil {
		return err
	}
	if cfg.ListenPort == 0 {
		b.setPort(portOf(b.main.Addr()))
	}
	return b.vip.Start(ctx)
}

func (b *Broker) newServer(port int, vip bool) (*server.Server, error) {
	sc := b.cfg().serverConfig(port, b.limits, b.log)
	sc.OnOpen, sc.OnClose = b.connOpened, func(c *server.Conn, why error) {
		b.closedIdle(c, why)
		b.connClosed(c)
	}
	sc.Times, sc.Slow = &b.rpc, b.slow
	sc.OnWritable = func(c *server.Conn) { b.hold.Writable(c.ID()) }
	if vip {
		sc.Precedence = b.classes.vip
	}
	return server.New(sc, b.mux(vip))
}

// prepareNaming builds what speaks to name servers; nothing is sent yet.
func (b *Broker) prepareNaming() error {
	cc, err := b.cfg().clientConfig(b.log)
	if err != nil {
		return err
	}
	cc.OnClose = func(addr string, _ error) { b.registrar.Lost(addr) }
	b.client = client.New(cc)
	b.registrar = newRegistrar(b.client, b.identity, b.topics, b.registerSettings, b.now, b.log)
	b.registrar.statics = b.statics
	b.registrar.onOrder, b.registrar.onTaken = b.topics.SetOrder, func() { signal(b.taken) }
	if b.slave != nil {
		b.registrar.onMaster = b.slave.learn
	}
	b.topics.watch(b.registrar.Changed)
	return nil
}

// identity is what registrations say.
func (b *Broker) identity() identity {
	cfg, at := b.cfg(), b.at()
	return identity{cluster: cfg.BrokerClusterName, name: cfg.BrokerName, addr: at.Addr(), haAddr: at.haAddr, id: cfg.BrokerID}
}

// register starts the registration and waits for its first round, but not for
// name servers that do not answer.
func (b *Broker) register(ctx context.Context) {
	if b.fence.given() {
		return // another master has taken its place
	}
	list, err := b.nameServerList(ctx)
	if err != nil {
		b.log.Error("the list of name servers cannot be read", "namesrvAddr", b.cfg().NamesrvAddr, "error", err)
	}
	b.registrar.SetServers(list)
	wait, cancel := context.WithTimeout(ctx, firstRegistration)
	defer cancel()
	b.registrar.Tried(wait)
}

// firstRegistration bounds the wait for name servers at the start.
const firstRegistration = 2 * time.Second

// serverStop bounds the closing of the connections at a stop.
const serverStop = 5 * time.Second

// stop ends what Run has started. The order matters:
func (b *Broker) stop(serving *sync.WaitGroup, stopWorkers context.CancelFunc, workers *sync.WaitGroup) error {
	var errs []error
	// 1. The name servers forget this broker, so that clients go elsewhere.
	b.registrar.Close()
	// 2. Parked pulls are answered as if their time were up.
	b.hold.Close()
	b.pops.Stop()
	// 3. Nothing new is taken; what is in flight is answered, which needs the
	//    store's flusher.
	ctx, cancel := context.WithTimeout(context.Background(), b.cfg().ShutdownWait)
	defer cancel()
	for _, s := range []*server.Server{b.vip, b.main} {
		if s != nil && s.Addr() != nil {
			if err := s.Drain(ctx); err != nil {
				b.log.Warn("some requests were still in flight at the stop", "addr", s.Addr(), "error", err)
			}
		}
	}
	// 4. Workers end with empty queues.
	for _, c := range b.classes.all() {
		c.Close()
	}
	// Checkpoints in memory are written while the store's flusher still works.
	errs = append(errs, b.pops.Finish())
	b.cancel()
	stopWorkers()
	serving.Wait()
	b.elsewhere.wg.Wait()
	// 5. The connections close; nobody commits an offset any more.
	end, stopped := context.WithTimeout(context.Background(), serverStop) // whatever the requests in flight took
	defer stopped()
	for _, s := range []*server.Server{b.vip, b.main} {
		if s != nil && s.Addr() != nil {
			errs = append(errs, s.Stop(end))
		}
	}
	errs = append(errs, b.client.Close())
	// 6. The tables are saved.
	b.topics.saver.Wait()
	b.groups.saver.Wait()
	b.modes.saver.Wait()
	errs = append(errs, b.offsets.Save(), b.delays.Close(), b.timers.Close(), b.filters.Save())
	// 7. The store is flushed and closed: the mark of an unclean stop goes last.
	workers.Wait()
	errs = append(errs, b.store.Close())
	return errors.Join(errs...)
}

// Ready is closed when the broker serves requests and has tried to register.
func (b *Broker) Ready() <-chan struct{} { return b.ready }

// Addr is the address of the main port; nil before Ready.
func (b *Broker) Addr() net.Addr { return b.addrOf(b.main) }

// VIPAddr is the address of the second port (listenPort-2); nil before Ready.
func (b *Broker) VIPAddr() net.Addr { return b.addrOf(b.vip) }

func (b *Broker) addrOf(s *server.Server) net.Addr {
	select {
	case <-b.ready:
		return s.Addr()
	default:
		return nil
	}
}

func portOf(a net.Addr) int {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.Port
	}
	return 0
}

// pid is the process id in generated message ids.
var pid = os.Getpid
