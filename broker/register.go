package broker

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
)

// Bounds of the registration.
const (
	minRegisterPeriod = 10 * time.Second
	maxRegisterPeriod = 60 * time.Second
	// awaitNameServers bounds the time a topic's creation waits for name
	// servers to know it.
	awaitNameServers = time.Second
	// slowNameServer is how long a registration may run before nobody waits
	// for that name server any more.
	slowNameServer = time.Second
	// unregisterTimeout bounds the goodbye at a stop.
	unregisterTimeout = 3 * time.Second
	firstRetry        = time.Second
	// lostPause is the time between the end of a connection to a name server
	// and the next registration there.
	lostPause = time.Second
)

// fieldComplete says that a registration holds every topic of the broker: a
// name server of mqx then drops the others from its routes. Apache's ignores it.
const fieldComplete = "completeTopics"

// nsCaller sends a request to one name server.
type nsCaller interface {
	Call(ctx context.Context, addr string, req *remoting.Command) (*remoting.Command, error)
}

// identity is what a registration says about the broker.
type identity struct {
	cluster, name, addr, haAddr string
	id                          int64
}

// registrar keeps the broker known at every name server of its list. Each has a
// goroutine and a queue of its own, so that a dead one holds up nobody. Safe to
// share.
type registrar struct {
	call     nsCaller
	who      func() identity
	topics   *topicTable
	statics  *staticTable
	settings func() registerSettings
	log      *slog.Logger
	now      func() time.Time
	// onOrder is told the ordered topics that a name server keeps.
	onOrder func(map[string]bool)
	// onMaster, if set, is told the addresses of the master that a name server gives a slave.
	onMaster func(haAddr, addr string)
	// onTaken, if set, is told of each registration that was taken; it must not block.
	onTaken func()

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
	mu   struct {
		sync.Mutex
		targets map[string]*nsTarget
	}
}

// registerSettings are what may change while the broker runs.
type registerSettings struct {
	period, timeout time.Duration
	force           bool
	permission      int32
	acting          bool          // enableSlaveActingMaster
	notActive       time.Duration // with that: when name servers forget a broker that does not beat
	epoch           int64         // the state version of registrations: the name server lets the higher one be the master
}

// nsTarget is one name server.
type nsTarget struct {
	addr   string
	reg    *registrar
	cancel context.CancelFunc
	wake   chan struct{}

	lost    atomic.Bool // its connection has closed: a pause is due
	healthy atomic.Bool // the last registration succeeded, and none hangs
	began   atomic.Int64
	tried   chan struct{} // closed after the first attempt
	once    sync.Once

	mu struct {
		sync.Mutex
		full    bool                // everything is to be sent
		names   map[string]struct{} // only these
		waiting []func()            // for the next registration
		// sending says that a registration runs that holds all changes but
		// those in full and names; its waiters are told when it ends.
		sending bool
		told    []func()
	}
}

func newRegistrar(call nsCaller, who func() identity, topics *topicTable, settings func() registerSettings, now func() time.Time, log *slog.Logger) *registrar {
	r := &registrar{call: call, who: who, topics: topics, statics: &staticTable{}, settings: settings, now: now, log: log, onOrder: func(map[string]bool) {}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.mu.targets = map[string]*nsTarget{}
	return r
}

// SetServers makes addrs the list: new ones are registered at, old ones left.
func (r *registrar) SetServers(addrs []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return
	}
	for addr, t := range r.mu.targets {
		if !slices.Contains(addrs, addr) {
			r.log.Info("name server left", "addr", addr)
			t.cancel()
			delete(r.mu.targets, addr)
		}
	}
	for _, addr := range addrs {
		if r.mu.targets[addr] != nil {
			continue
		}
		t := &nsTarget{addr: addr, reg: r, wake: make(chan struct{}, 1), tried: make(chan struct{})}
		t.mu.full = true
		t.mu.names = map[string]struct{}{}
		ctx, cancel := context.WithCancel(r.ctx)
		t.cancel = cancel
		r.mu.targets[addr] = t
		r.wg.Go(func() { t.run(ctx) })
	}
}

func (r *registrar) all() []*nsTarget {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]*nsTarget, 0, len(r.mu.targets))
	for _, t := range r.mu.targets {
		out = append(out, t)
	}
	return out
}

// Servers lists the name servers and whether the last registration at each
// went well.
func (r *registrar) Servers() map[string]bool {
	out := map[string]bool{}
	for _, t := range r.all() {
		out[t.addr] = t.healthy.Load()
	}
	return out
}

// Changed asks for the registration of topics. It does not block.
func (r *registrar) Changed(names []string) {
	for _, t := range r.all() {
		t.mu.Lock()
		for _, n := range names {
			t.mu.names[n] = struct{}{}
		}
		t.mu.Unlock()
		signal(t.wake)
	}
}

// Everything asks for a full registration. It does not block.
func (r *registrar) Everything() {
	for _, t := range r.all() {
		t.mu.Lock()
		t.mu.full = true
		t.mu.Unlock()
		signal(t.wake)
	}
}

// Lost says that the connection to a name server has closed: it may have
// restarted empty, so everything is sent again soon.
func (r *registrar) Lost(addr string) {
	r.mu.Lock()
	t := r.mu.targets[addr]
	r.mu.Unlock()
	if t == nil {
		return
	}
	t.mu.Lock()
	t.mu.full = true
	t.mu.Unlock()
	t.lost.Store(true)
	signal(t.wake)
}

// Await calls done, on another goroutine, once every name server that answers
// knows what Changed was told before, or after a second.
func (r *registrar) Await(done func()) {
	var wg sync.WaitGroup
	for _, t := range r.all() {
		if !t.responsive(r.now()) {
			continue
		}
		wg.Add(1)
		if !t.await(wg.Done) {
			wg.Done()
		}
	}
	over := make(chan struct{})
	go func() {
		wg.Wait()
		close(over)
	}()
	go func() {
		timer := time.NewTimer(awaitNameServers)
		defer timer.Stop()
		select {
		case <-over:
		case <-timer.C:
		}
		done()
	}()
}

// Tried returns when each name server was tried once, or with ctx.
func (r *registrar) Tried(ctx context.Context) {
	for _, t := range r.all() {
		select {
		case <-t.tried:
		case <-ctx.Done():
			return
		}
	}
}

// Close ends the registrations and says goodbye to all name servers at once.
func (r *registrar) Close() {
	r.mu.Lock()
	r.stop() // under the lock: SetServers starts nothing after it
	r.mu.Unlock()
	targets := r.all()
	ctx, cancel := context.WithTimeout(context.Background(), unregisterTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, t := range targets {
		healthy := t.healthy.Load()
		wg.Go(func() {
			c := ctx
			if !healthy {
				var stop context.CancelFunc
				c, stop = context.WithTimeout(ctx, slowNameServer/2)
				defer stop()
			}
			t.unregister(c)
		})
	}
	wg.Wait()
	r.wg.Wait()
}

// responsive reports whether waiting for this name server makes sense.
func (t *nsTarget) responsive(now time.Time) bool {
	began := t.began.Load()
	return t.healthy.Load() && (began == 0 || now.UnixMilli()-began < slowNameServer.Milliseconds())
}

// await calls done after the next registration; false when none is due.
func (t *nsTarget) await(done func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.mu.full || len(t.mu.names) > 0:
		t.mu.waiting = append(t.mu.waiting, done)
		signal(t.wake)
	case t.mu.sending:
		t.mu.told = append(t.mu.told, done)
	default:
		return false
	}
	return true
}

// run registers at the start, every period, when topics change, and again soon
// after a failure.
func (t *nsTarget) run(ctx context.Context) {
	defer t.fail()
	retry := firstRetry
	for {
		ok := t.register(ctx)
		t.once.Do(func() { close(t.tried) })
		if ctx.Err() != nil {
			return
		}
		wait := min(max(t.reg.settings().period, minRegisterPeriod), maxRegisterPeriod)
		if ok {
			retry = firstRetry
		} else {
			wait = min(wait, retry+rand.N(retry/2))
			retry = min(2*retry, minRegisterPeriod)
		}
		if !t.sleep(ctx, wait, ok) {
			return
		}
	}
}

// sleep waits for the next period or a wake-up. A wake-up does not cut the wait
// short after a failure.
func (t *nsTarget) sleep(ctx context.Context, wait time.Duration, wakeable bool) bool {
	wake := t.wake
	if !wakeable {
		wake = nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
		if !t.lost.Swap(false) {
			return true
		}
		// A peer that takes connections only to close them must not make this
		// a busy loop.
		timer.Reset(lostPause)
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		}
	case <-timer.C:
		t.mu.Lock()
		t.mu.full = true
		t.mu.Unlock()
		return true
	}
}

// fail releases those who wait when the target ends.
func (t *nsTarget) fail() {
	t.once.Do(func() { close(t.tried) })
	t.mu.Lock()
	waiting := append(t.mu.waiting, t.mu.told...)
	t.mu.waiting, t.mu.told = nil, nil
	t.mu.Unlock()
	for _, done := range waiting {
		done()
	}
}

// register sends what is due and reports whether it was taken.
func (t *nsTarget) register(ctx context.Context) bool {
	t.began.Store(t.reg.now().UnixMilli())
	t.lost.Store(false)
	full, sent, err := t.send(ctx)
	t.mu.Lock()
	if err != nil {
		t.mu.full = true
	}
	told := t.mu.told
	t.mu.told, t.mu.sending = nil, false
	t.mu.Unlock()
	was := t.healthy.Swap(err == nil)
	t.began.Store(0)
	for _, done := range told {
		done()
	}
	switch {
	case err == nil && !was:
		t.reg.log.Info("registered at name server", "addr", t.addr, "topics", sent, "full", full)
	case err != nil && ctx.Err() == nil:
		t.reg.log.Warn("cannot register at name server", "addr", t.addr, "error", err)
	}
	return err == nil
}

// due takes what is to be sent, with the topics as they stand. gone says that
// some of them are no longer there, which only a full registration can tell.
func (t *nsTarget) due() (topics map[string]remoting.TopicConfig, version remoting.DataVersion, full, gone bool) {
	asked := 0
	topics, version = t.reg.topics.Pick(func() []string {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.mu.told, t.mu.waiting = append(t.mu.told, t.mu.waiting...), nil
		t.mu.sending = true
		names := make([]string, 0, len(t.mu.names))
		for n := range t.mu.names {
			names = append(names, n)
		}
		clear(t.mu.names)
		full, t.mu.full = t.mu.full, false
		if full {
			return nil
		}
		asked = len(names)
		return names
	})
	return topics, version, full, !full && len(topics) < asked
}

// send sends what is due.
func (t *nsTarget) send(ctx context.Context) (full bool, sent int, err error) {
	s := t.reg.settings()
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	topics, version, full, gone := t.due()
	version.StateVersion = s.epoch
	switch {
	case gone:
		topics, version = t.reg.topics.Pick(func() []string { return nil })
		full = true
	case full && !s.force && t.healthy.Load() && !t.changedThere(ctx, version):
		return full, 0, nil
	case !full && len(topics) == 0:
		return full, 0, nil
	}
	version.StateVersion = s.epoch
	for name, c := range topics {
		c.Perm &= s.permission | permInherit
		topics[name] = c
	}
	req, err := t.reg.request(topics, version)
	if err != nil {
		return full, 0, err
	}
	if full {
		req.Fields.Set(fieldComplete, "true")
	}
	resp, err := t.reg.call.Call(ctx, t.addr, req)
	if err != nil {
		return full, 0, err
	}
	if resp.Code != remoting.RespSuccess {
		return full, 0, &remoting.ResponseError{Code: resp.Code, Remark: resp.Remark, Request: "REGISTER_BROKER", Addr: t.addr}
	}
	if t.reg.onTaken != nil {
		t.reg.onTaken()
	}
	if full {
		t.order(resp.Body)
	}
	if t.reg.onMaster != nil {
		var h remoting.RegisterBrokerResponseHeader
		if err := remoting.DecodeHeader(resp.Fields, &h); err == nil {
			t.reg.onMaster(h.HAServerAddr, h.MasterAddr)
		}
	}
	return full, len(topics), nil
}

// request builds a registration.
func (r *registrar) request(topics map[string]remoting.TopicConfig, version remoting.DataVersion) (*remoting.Command, error) {
	body, err := remoting.EncodeRegisterBroker(&remoting.RegisterBrokerBody{
		FilterServerList: []string{},
		Topics: remoting.TopicConfigAndMappingTable{
			DataVersion:        version,
			MappingDataVersion: r.statics.Version(),
			TopicConfigTable:   topics,
			MappingDetailMap:   map[string]remoting.TopicQueueMappingDetail{},
			MappingInfoMap:     r.statics.Infos(topics),
		},
	}, false, remoting.Version)
	if err != nil {
		return nil, err
	}
	who, s := r.who(), r.settings()
	h := &remoting.RegisterBrokerHeader{
		BrokerName: who.name, BrokerAddr: who.addr, ClusterName: who.cluster, HAServerAddr: who.haAddr,
		BrokerID: who.id, EnableActingMaster: remoting.Some(s.acting), BodyCRC32: remoting.Some(int32(message.BodyCRC(body))),
	}
	if s.acting {
		h.HeartbeatTimeoutMillis = remoting.Some(s.notActive.Milliseconds())
	}
	req := remoting.NewRequest(remoting.ReqRegisterBroker, h)
	req.Body = body
	return req, nil
}

// changedThere asks whether the name server knows this version of the topics.
// An error counts as changed: then the registration says what is wrong.
func (t *nsTarget) changedThere(ctx context.Context, version remoting.DataVersion) bool {
	r := t.reg
	who := r.who()
	req := remoting.NewRequest(remoting.ReqQueryDataVersion, &remoting.QueryDataVersionHeader{
		BrokerName: who.name, BrokerAddr: who.addr, ClusterName: who.cluster, BrokerID: who.id,
	})
	var err error
	if req.Body, err = fastjson.Marshal(&version); err != nil {
		return true
	}
	resp, err := r.call.Call(ctx, t.addr, req)
	if err != nil || resp.Code != remoting.RespSuccess {
		return true
	}
	changed, ok := resp.Fields.Bool("changed")
	return changed || !ok
}

// order hands on the ordered topics of a registration's answer.
func (t *nsTarget) order(body []byte) {
	if len(body) == 0 {
		return
	}
	var kv remoting.KVTable
	if err := fastjson.Unmarshal(body, &kv); err != nil {
		t.reg.log.Warn("the answer to a registration cannot be read", "addr", t.addr, "error", err)
		return
	}
	if len(kv.Table) == 0 {
		return
	}
	ordered := map[string]bool{}
	for topic := range kv.Table {
		ordered[topic] = true
	}
	t.reg.onOrder(ordered)
}

func (t *nsTarget) unregister(ctx context.Context) {
	r := t.reg
	who := r.who()
	req := remoting.NewRequest(remoting.ReqUnregisterBroker, &remoting.UnregisterBrokerHeader{
		BrokerName: who.name, BrokerAddr: who.addr, ClusterName: who.cluster, BrokerID: who.id,
	})
	resp, err := r.call.Call(ctx, t.addr, req)
	if err == nil && resp.Code != remoting.RespSuccess {
		err = errors.New(remoting.ResponseName(resp.Code) + ": " + resp.Remark)
	}
	if err != nil {
		r.log.Warn("cannot unregister at name server", "addr", t.addr, "error", err)
	}
}
