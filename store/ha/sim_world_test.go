package ha_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"mqx/internal/storecheck"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store"
	"mqx/store/ha"
)

// simWorld is one simulated group: three brokers, the network between them, producers and a reader, and an operator.
type simWorld struct {
	t      *testing.T
	seed   uint64
	r      *rand.Rand
	logger *slog.Logger
	j      *storecheck.Journal
	net    *simNet
	nodes  [simNodes]*simNode
	rules  ha.Rules
	flush  string
	apache bool  // slaves cannot ask for the range of the master's log
	hello  bool  // slaves tell who they are
	epoch  int64 // of the newest promotion
	died   chan struct{}
	quit   chan struct{}
	total  simTotals

	mu struct {
		sync.Mutex
		live    [simNodes]*simRun
		serving [simNodes]*ha.Master
		master  int // as the name servers tell; -1: none
		slow    [simNodes]time.Duration
		must    map[uint64]*simKept
		errs    int
		acked   int
		refused int
		timeout int
		seen    int
	}
}

// simTotals are what a run went through.
type simTotals struct {
	Seeds, Events, Stops, Kills, PowerCuts, InRecovery, Partitions, ResetConns, SlowDisks, FullDisks, Promotions, Switches, Resyncs, Wipes int
	Sent, Acked, Refused, NotInTime, Seen, LostAllowed, Expired, Intervals, Gaps, Unsafe, Records                                          int
}

// simKept is a message that was acknowledged, or seen by a consumer.
type simKept struct {
	id          uint64
	queue       storecheck.QueueKey
	offset      int64
	phys, end   int64
	stored      int64 // ms
	at          time.Time
	by          int // the node that acknowledged it
	holders     [simNodes]bool
	unprotected bool // fewer copies than the level asks for, as the intervals tell, or it asks for none
}

func (w *simWorld) errorf(format string, args ...any) {
	w.mu.Lock()
	w.mu.errs++
	few := w.mu.errs <= 12
	w.mu.Unlock()
	w.logger.Error("a check fails", "what", fmt.Sprintf(format, args...))
	if few {
		w.t.Errorf(format, args...)
	}
}

func (w *simWorld) setLive(node int, r *simRun) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.live[node] = r
}

func (w *simWorld) setServing(node int, m *ha.Master) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.serving[node] = m
}

func (w *simWorld) serving(node int) *ha.Master {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.serving[node]
}

func (w *simWorld) liveRun(node int) *simRun {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.live[node]
}

// known is the master that a node follows.
func (w *simWorld) known(node int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.master == node {
		return -1
	}
	return w.mu.master
}

func (w *simWorld) setMaster(node int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.master = node
}

func (w *simWorld) slowOf(node int) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.slow[node]
}

func (w *simWorld) setSlow(node int, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.slow[node] = d
}

// ask is what a node hears from the master about the range of its log.
func (w *simWorld) ask(ctx context.Context, node int) (low, high int64, err error) {
	m := w.known(node)
	if m < 0 || !w.net.reachable(node, m) {
		return 0, 0, errors.New("the master cannot be asked")
	}
	if err := simSleep(ctx, time.Millisecond); err != nil {
		return 0, 0, err
	}
	r := w.liveRun(m)
	if r == nil || r.off() {
		return 0, 0, errors.New("the master cannot be asked")
	}
	return r.store.LogMin(), r.store.LogEnd(), nil
}

// holders are the nodes that have the bytes of a record as the node by has them.
func (w *simWorld) holders(by *simRun, phys, end int64) (out [simNodes]bool, flushed, gone int) {
	mine := make([]byte, end-phys)
	deleted := by.store.LogMin() > phys // by force, since it was put: the bytes of the others can be compared with none
	if !deleted && by.store.ReadLog(mine, phys) != nil {
		return out, 0, 0
	}
	out[by.n.id] = true
	for id := range simNodes {
		r := w.liveRun(id)
		if id == by.n.id || r == nil || r.store.LogEnd() < end {
			continue
		}
		theirs := make([]byte, len(mine))
		if r.store.ReadLog(theirs, phys) == nil && (deleted || bytes.Equal(mine, theirs)) {
			out[id] = true
			if r.store.LogFlushed() >= end {
				flushed++
			}
		} else if r.store.LogMin() > phys { // it has had it, and its disk is full
			gone++
		}
	}
	return out, flushed, gone
}

// copies are the slaves that must have what is acknowledged or shown.
func (w *simWorld) copies() int {
	if w.rules.Level == ha.LevelSync {
		return w.rules.Least
	}
	return w.rules.Copies
}

// keep notes a message that must not be lost, and checks that it has the copies that the level promises, or that the time
// of fewer is recorded.
func (w *simWorld) keep(by *simRun, k *simKept, seen bool) {
	var flushed, gone int
	k.at, k.by = time.Now(), by.n.id
	k.holders, flushed, gone = w.holders(by, k.phys, k.end)
	if w.flush == store.SyncFlush && !seen && by.store.LogFlushed() < k.end {
		w.errorf("message %d (%d to %d) is acknowledged by node %d, whose disk has the log up to %d", k.id, k.phys, k.end, by.n.id, by.store.LogFlushed())
	}
	n := -1
	down := 0
	for id, has := range k.holders {
		if has {
			n++
		} else if r := w.liveRun(id); r == nil || r.off() || w.hasLost(id, k) {
			down++ // it had it, maybe
		}
	}
	if w.rules.Flushed {
		n = flushed
	}
	n += gone
	k.unprotected = !w.rules.Waits() || seen && !w.rules.Hold
	if seen && w.rules.Hold && k.end <= by.shown && n < w.copies() { // it was shown before, maybe by this node as a slave, which shows all
		k.unprotected = true
		w.count(&w.total.Unsafe)
	}
	if need := w.copies(); !k.unprotected && n < need {
		switch {
		case w.recorded(by, k):
			k.unprotected = true
		case n+down < need && !by.off():
			w.errorf("message %d (%d to %d) is told to be safe by node %d with %d copies of %d, and no interval says so (seen %v)", k.id, k.phys, k.end, by.n.id, n, need, seen)
		}
	}
	by.alive(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if seen {
			w.mu.seen++
		} else {
			w.mu.acked++
		}
		if w.mu.must[k.id] == nil {
			w.mu.must[k.id] = k
		}
	})
}

// hasLost reports whether a node lost what it had of a message since that was stored.
func (w *simWorld) hasLost(id int, k *simKept) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.nodes[id].losses, func(l simLoss) bool { return l.at.UnixMilli() >= k.stored && l.from < k.end })
}

// recorded reports whether a time of fewer copies that is durable covers a message.
func (w *simWorld) recorded(by *simRun, k *simKept) bool {
	for _, i := range by.master.Status().Intervals {
		if k.end > i.From && (i.Open() || k.phys < i.To) {
			return true
		}
	}
	return false
}

// follows notes that the log of a slave is a beginning of a master's: their epochs are the same.
func (w *simWorld) follows(n *simNode, master int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.serving[master] == nil || w.mu.master != master {
		return errSimOff
	}
	n.role.Followed(slices.Clone(w.nodes[master].role.Epochs))
	return nil
}

// lastEpoch is that of the newest bytes of a node's log.
func (w *simWorld) lastEpoch(n *simNode, end int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return ha.LastEpoch(n.role.Epochs, end)
}

// role changes the role of a node.
func (w *simWorld) role(n *simNode, change func(*ha.RoleState) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return change(&n.role)
}

var simTopics = []string{"Orders", "Payments"}

// servingMaster is the life of whoever is the master, nil while nobody serves.
func (w *simWorld) servingMaster() *simRun {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.mu.master; m >= 0 && w.mu.serving[m] != nil {
		return w.mu.live[m]
	}
	return nil
}

// produce sends messages one after the other to whoever is the master, until the world quits.
func (w *simWorld) produce(r *rand.Rand) {
	for {
		select {
		case <-w.quit:
			return
		case <-time.After(time.Duration(1 + r.ExpFloat64()*float64(120*time.Millisecond))):
		}
		run := w.servingMaster()
		if run == nil || run.off() {
			continue
		}
		done := make(chan *store.Put, 4)
		puts := make([]*store.Put, 1+r.IntN(3))
		for i := range puts {
			puts[i] = w.put(run, r, done)
		}
		run.store.PutBatch(puts)
		for range puts {
			<-done
		}
	}
}

func (w *simWorld) put(run *simRun, r *rand.Rand, done chan *store.Put) *store.Put {
	topic, queue := simTopics[r.IntN(len(simTopics))], int32(r.IntN(2))
	id, body := w.j.Begin(topic, queue, storecheck.MinBody+r.IntN([]int{30, 300, 3000}[r.IntN(3)]))
	props := message.AppendProperty(nil, message.PropUniqKey, fmt.Sprintf("U%d", id))
	p := &store.Put{WaitFlush: true}
	p.Record = message.Record{
		QueueID: queue, Topic: []byte(topic), BornTimestamp: time.Now().UnixMilli(), Body: body, Properties: props,
		BornHost: netip.MustParseAddrPort("10.0.1.1:4000"), StoreHost: netip.MustParseAddrPort(simHost(run.n.id) + ":10911"),
	}
	p.Done = func(p *store.Put) {
		switch p.Status {
		case store.PutOK:
			k := &simKept{id: id, queue: storecheck.QueueKey{Topic: topic, ID: queue}, offset: p.QueueOffset, stored: p.StoreTimestamp, phys: p.PhysicalOffset, end: p.PhysicalOffset + int64(p.Size)}
			w.keep(run, k, false)
			run.alive(func() { w.j.Ack(id, p.QueueOffset, p.PhysicalOffset) })
		case store.FlushSlaveTimeout:
			w.count(&w.mu.timeout)
		default:
			w.count(&w.mu.refused)
		}
		done <- p
	}
	return p
}

func (w *simWorld) count(n *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n++
}

// read looks at the queues of the master as a consumer does, until the world quits: what it has seen must stay (C7).
func (w *simWorld) read(r *rand.Rand) {
	next := map[storecheck.QueueKey]int64{}
	last := (*simRun)(nil)
	for {
		select {
		case <-w.quit:
			return
		case <-time.After(time.Duration(1 + r.ExpFloat64()*float64(150*time.Millisecond))):
		}
		run := w.servingMaster()
		if run == nil || run.off() {
			continue
		}
		if run != last {
			last = run
			clear(next)
		}
		for _, topic := range simTopics {
			for q := range int32(2) {
				w.readQueue(run, storecheck.QueueKey{Topic: topic, ID: q}, next)
			}
		}
	}
}

func (w *simWorld) readQueue(run *simRun, k storecheck.QueueKey, next map[storecheck.QueueKey]int64) {
	from, known := next[k]
	if !known {
		from = max(run.store.MinOffset(k.Topic, k.ID), run.store.MaxOffset(k.Topic, k.ID)-8)
	}
	res := run.store.Get(store.GetRequest{Topic: k.Topic, QueueID: k.ID, Offset: from, MaxMsgs: 32})
	defer res.Release()
	for _, part := range res.Parts {
		for len(part) > 0 {
			v, err := message.ParseView(part, message.DecodeOptions{VerifyBodyCRC: true})
			if err != nil {
				w.errorf("a consumer read what is no message at offset %d of %v: %v", from, k, err)
				return
			}
			if v.QueueOffset() < from {
				w.errorf("C3: offset %d of %v after %d", v.QueueOffset(), k, from)
			}
			from = v.QueueOffset() + 1
			id := binary.BigEndian.Uint64(v.Body())
			w.keep(run, &simKept{id: id, queue: k, offset: v.QueueOffset(), stored: v.StoreTimestamp(), phys: v.PhysicalOffset(), end: v.PhysicalOffset() + int64(len(v))}, true)
			part = part[len(v):]
		}
	}
	next[k] = from
}

// authority checks that a node which is the master from now on has what must not be lost. by says what may excuse it.
func (w *simWorld) authority(n *simNode, candidates [simNodes]bool) {
	l, err := storecheck.ReadLog(n.disk.Kill(), simRoot+"/commitlog")
	if err != nil {
		w.errorf("cannot read the log of node %d: %v", n.id, err)
		return
	}
	have := map[uint64]*storecheck.Record{}
	for i := range l.Records {
		have[binary.BigEndian.Uint64(l.Records[i].Body)] = &l.Records[i]
	}
	w.mu.Lock()
	must := make([]*simKept, 0, len(w.mu.must))
	for _, k := range w.mu.must {
		must = append(must, k)
	}
	w.mu.Unlock()
	slices.SortFunc(must, func(a, b *simKept) int { return int(a.phys - b.phys) })
	lost := map[uint64]bool{}
	for _, k := range must {
		if r := have[k.id]; r != nil {
			if r.Phys != k.phys || r.QueueOffset != k.offset {
				w.errorf("C2: message %d was told to be at %d, offset %d, and is at %d, offset %d, on the new master %d", k.id, k.phys, k.offset, r.Phys, r.QueueOffset, n.id)
			}
			continue
		}
		if k.phys < l.Min { // it has expired
			lost[k.id] = true
			w.total.Expired++
			continue
		}
		lost[k.id] = true
		w.total.LostAllowed++
		for id, held := range k.holders {
			if held && candidates[id] && !w.excused(w.nodes[id], k) {
				w.errorf("C1/C7: message %d (%d to %d, of node %d, unprotected %v) was on node %d, which could be the master, and is not on node %d, which is (its log ends at %d)", k.id, k.phys, k.end, k.by, k.unprotected, id, n.id, l.End)
				break
			}
		}
	}
	if len(lost) == 0 {
		return
	}
	w.logger.Info("lost", "messages", len(lost), "master", n.id, "end", l.End)
	w.j.Keep(func(s *storecheck.Send) bool { return !lost[s.ID] })
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range lost {
		delete(w.mu.must, id)
	}
}

// excused reports whether a node has lost a message by something that may take it.
func (*simWorld) excused(n *simNode, k *simKept) bool {
	for _, l := range n.losses {
		if !l.at.Before(k.at) && l.from < k.end {
			return true
		}
	}
	for _, c := range n.cuts {
		if !c.at.Before(k.at) && c.from < k.end {
			return true
		}
	}
	return false
}

func newSimWorld(t *testing.T, seed uint64, logger *slog.Logger) *simWorld {
	w := &simWorld{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 0)), j: &storecheck.Journal{}, net: newSimNet(seed), logger: logger}
	w.died, w.quit = make(chan struct{}, 1), make(chan struct{})
	w.mu.must, w.mu.master = map[uint64]*simKept{}, 0
	w.flush = []string{store.AsyncFlush, store.SyncFlush}[w.r.IntN(2)]
	w.apache, w.hello = w.r.IntN(4) == 0, w.r.IntN(4) > 0
	w.rules = ha.Rules{
		Hold: true, MaxGap: 64 << 10, MaxLag: 2 * time.Second, DegradeAfter: 1 + w.r.IntN(3), DegradeAlone: time.Second, RearmAfter: 500 * time.Millisecond,
		Batch: 3000, Flushed: w.hello && w.r.IntN(3) == 0,
	}
	switch w.r.IntN(6) {
	case 0:
		w.rules.Level = ha.LevelAsync
	case 1, 2:
		w.rules.Level, w.rules.Copies = ha.LevelSemiSync, 1
	case 3:
		w.rules.Level, w.rules.Least = ha.LevelSync, 1
	case 4:
		w.rules.Level, w.rules.Copies = ha.LevelQuorum, 1
	case 5:
		w.rules.Level, w.rules.Copies, w.rules.Auto, w.rules.Hold = ha.LevelQuorum, 1+w.r.IntN(2), w.r.IntN(2) == 0, false
	}
	for id := range simNodes {
		w.nodes[id] = &simNode{w: w, id: id, disk: vfs.NewMem(), pending: -1}
	}
	w.nodes[0].master, w.nodes[0].epoch = true, 1
	w.nodes[0].role = ha.RoleState{Epoch: 1, Epochs: []ha.RoleEpoch{{Epoch: 1, Start: 0}}}
	w.epoch = 1
	return w
}
