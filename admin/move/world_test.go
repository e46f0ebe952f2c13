package move

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// world is a model of a cluster with its clients. It knows what a queue move must not do.
type world struct {
	rnd     *rand.Rand
	now     time.Time
	brokers map[string]*simBroker
	servers []*simNameServer
	groups  []*simGroup
	senders []*simProducer
	seen    map[string]map[string]map[int]bool // group, key, sequence
	sent    map[string]int                     // acknowledged messages by key: 0..n-1
	ordered bool
	// broadcasts: a group keeps its offsets itself; it does not get what was written before it came.
	broadcasts bool
	faults     []string
	stored     map[simMessage]int // copies of each message of producers in queues (I1)
	layout     []simQueue         // of an ordered topic before the plan: where each place of a key is (I5)
	late       bool               // producers may ask for routes later than they should
	lease      simLease
	log        []Entry
	first      int64     // offset of its first entry
	copied     *State    // what a machine of an owner keeps of the newest state
	hostUp     time.Time // the broker of the journal answers again from then on
}

type simMessage struct {
	key string
	seq int
}

type simTopic struct {
	config Topic
	queues [][]simMessage
	base   []int64 // first offset that is still there
}

type simBroker struct {
	name    string
	perm    int32
	mqx     bool // it hands on what is sent to sealed queues
	topics  map[string]*simTopic
	groups  map[string]bool
	offsets map[string][]int64      // by group, of topic T; -1: none
	down    time.Time               // until then
	version int                     // of its registration
	modes   map[string]bool         // groups that it was told pop
	retry   map[string][]simMessage // by group: what is to be consumed again
	held    []simHeld               // delayed, half and retried messages that are not due
	// wentBack is an offset that a group or the tool set below what it was (I6).
	wentBack string
}

// simHeld is a message that a broker holds back. It is written later, whatever the permission of its queue is then.
type simHeld struct {
	kind  string // delayed, timer, half, retry
	queue int
	group string // of a retry
	due   time.Time
	m     simMessage
}

type simNameServer struct {
	addr   string
	routes map[string]map[string]Topic // topic, broker
	order  map[string]string
	lag    time.Duration
	known  map[string]int // version of the last registration by broker
	due    map[string]time.Time
}

type simProducer struct {
	key    string
	server int
	poll   time.Duration
	at     time.Time // of the next poll
	queues []simQueue
	next   int       // sequence of its next message
	idles  bool      // it is silent now and then, for longer than the tool waits
	silent time.Time // sends nothing until then
}

type simQueue struct {
	broker string
	id     int
}

type simGroup struct {
	name      string
	server    int
	at        time.Time
	poll      time.Duration
	queues    []simQueue
	offUntil  time.Time // offline until then
	broadcast bool
	pop       bool
	flight    []simFlight
	own       map[simQueue]int // where a broadcast client is
}

// simFlight is a message that was popped. It is acknowledged in time, or given back then.
type simFlight struct {
	q     simQueue // its id is -1 where it came from the retry topic
	due   time.Time
	acked bool
	m     simMessage
}

type simLease struct {
	owner string
	until time.Time
}

const simTopicName = "T"

func (w *world) fault(format string, args ...any) {
	w.faults = append(w.faults, w.now.Format("15:04:05.000")+" "+fmt.Sprintf(format, args...))
}

func (b *simBroker) up(w *world) bool { return !w.now.Before(b.down) }

// tick lets the world go on for a time.
func (w *world) tick(d time.Duration) {
	const step = 250 * time.Millisecond
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(min(step, end.Sub(w.now)))
		w.register()
		for _, name := range slices.Sorted(maps.Keys(w.brokers)) {
			w.release(w.brokers[name])
		}
		for _, p := range w.senders {
			w.produce(p)
		}
		for _, g := range w.groups {
			w.consume(g)
		}
	}
}

// register carries configurations to the name servers, each with its own delay.
func (w *world) register() {
	for _, ns := range w.servers {
		for _, name := range slices.Sorted(maps.Keys(w.brokers)) {
			b := w.brokers[name]
			if !b.up(w) || ns.known[name] == b.version {
				continue
			}
			if ns.due[name].IsZero() {
				ns.due[name] = w.now.Add(time.Duration(w.rnd.Int64N(int64(ns.lag) + 1)))
			}
			if w.now.Before(ns.due[name]) {
				continue
			}
			ns.due[name], ns.known[name] = time.Time{}, b.version
			for topic, t := range b.topics { // Apache's forgets no topic
				c := t.config
				c.Perm &= b.perm
				if ns.routes[topic] == nil {
					ns.routes[topic] = map[string]Topic{}
				}
				ns.routes[topic][name] = c
			}
		}
	}
}

// release writes what a broker held back and is due.
func (w *world) release(b *simBroker) {
	if !b.up(w) || len(b.held) == 0 {
		return
	}
	t := b.topics[simTopicName]
	b.held = slices.DeleteFunc(b.held, func(h simHeld) bool {
		switch {
		case w.now.Before(h.due):
			return false
		case h.kind == "retry":
			b.retry[h.group] = append(b.retry[h.group], h.m)
		case t != nil && h.queue < len(t.queues):
			to, q, ok := w.handedOn(b, t, h.queue)
			if !ok {
				return false // it is tried again
			}
			w.store(to, q, h.m)
		}
		return true
	})
}

// handedOn is where a message for a queue is stored: elsewhere when the queue is sealed, nowhere while that broker is away.
func (w *world) handedOn(b *simBroker, t *simTopic, queue int) (*simTopic, int, bool) {
	f := t.config.forward()
	if f == nil {
		return t, queue, true
	}
	slot, sealed := f.Slot(int32(queue))
	if !sealed {
		return t, queue, true
	}
	to := simQueue{slot.Broker, int(slot.Queue)}
	d := w.brokers[to.broker]
	dt := d.topics[simTopicName]
	if !d.up(w) || dt == nil || to.id >= len(dt.queues) || d != b && dt.config.forward() != nil {
		return nil, 0, false
	}
	return dt, to.id, true
}

// writable is what a producer makes of a route.
func (ns *simNameServer) writable() (out []simQueue) {
	if conf, ok := ns.order[simTopicName]; ok {
		for part := range strings.SplitSeq(conf, ";") {
			b, n, _ := strings.Cut(part, ":")
			count, _ := strconv.Atoi(n)
			for q := range count {
				out = append(out, simQueue{b, q})
			}
		}
		return out
	}
	route := ns.routes[simTopicName]
	for _, b := range slices.Sorted(maps.Keys(route)) {
		if c := route[b]; c.Perm&PermWrite != 0 {
			for q := range int(c.Write) {
				out = append(out, simQueue{b, q})
			}
		}
	}
	return out
}

func (w *world) produce(p *simProducer) {
	switch {
	case w.now.Before(p.silent): // and does not ask either
		return
	case p.idles && w.rnd.IntN(60) == 0:
		p.silent = w.now.Add(time.Duration(5+w.rnd.IntN(40)) * time.Second)
		p.at = p.silent.Add(time.Duration(w.rnd.IntN(4)) * time.Second) // as a process that was stopped, with an old route
	}
	if !w.now.Before(p.at) {
		p.queues = w.servers[p.server].writable()
		p.at = w.now.Add(p.poll)
	}
	if len(p.queues) == 0 || w.rnd.IntN(4) == 0 {
		return
	}
	w.mayLayOut(p.queues)
	q := p.queues[w.rnd.IntN(len(p.queues))]
	if w.ordered {
		h := 0
		for _, c := range p.key {
			h = h*31 + int(c)
		}
		q = p.queues[h%len(p.queues)]
	}
	b := w.brokers[q.broker]
	t := b.topics[simTopicName]
	// A broker looks at its own permission only for ordered topics, at the topic's never.
	hands := t != nil && t.config.forward() != nil
	if !b.up(w) || t == nil || q.id >= int(max(t.config.Read, t.config.Write)) || w.ordered && b.perm&PermWrite == 0 && !hands {
		p.at = w.now // an error makes a client ask again
		return
	}
	to, id, ok := w.handedOn(b, t, q.id)
	if !ok {
		p.at = w.now
		return
	}
	m := simMessage{p.key, p.next}
	if kinds := []string{"delayed", "timer", "half"}; !w.ordered && !w.broadcasts && w.rnd.IntN(25) == 0 {
		b.held = append(b.held, simHeld{kind: kinds[w.rnd.IntN(3)], queue: q.id, due: w.now.Add(time.Duration(1+w.rnd.IntN(30)) * time.Second), m: m})
	} else {
		w.store(to, id, m)
	}
	p.next++
	w.sent[p.key] = p.next
}

func (w *world) consume(g *simGroup) {
	w.settle(g)
	if w.now.Before(g.offUntil) {
		return
	}
	if !w.now.Before(g.at) {
		g.at = w.now.Add(g.poll)
		g.queues = nil
		route := w.servers[g.server].routes[simTopicName]
		for _, b := range slices.Sorted(maps.Keys(route)) {
			if route[b].Perm&PermRead != 0 {
				for q := range int(route[b].Read) {
					g.queues = append(g.queues, simQueue{b, q})
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.brokers)) {
		w.retryOf(g, w.brokers[name])
	}
	for _, i := range w.rnd.Perm(len(g.queues)) {
		w.read(g, g.queues[i])
	}
}

// settle ends what was popped: acknowledged by now, or given back by the broker, which drops what
// was popped from a topic that it no longer has.
func (w *world) settle(g *simGroup) {
	g.flight = slices.DeleteFunc(g.flight, func(f simFlight) bool {
		b := w.brokers[f.q.broker]
		switch {
		case w.now.Before(f.due) || !b.up(w):
			return false
		case f.acked:
			w.deliver(g, f.m)
		case b.topics[simTopicName] != nil:
			b.retry[g.name] = append(b.retry[g.name], f.m)
		}
		return true
	})
}

// take is what becomes of a message that a client got: consumed, kept for a while, or to be retried.
func (w *world) take(g *simGroup, b *simBroker, q int, m simMessage) {
	later := func() time.Time { return w.now.Add(time.Duration(1+w.rnd.IntN(8)) * time.Second) }
	switch {
	case g.pop && w.rnd.IntN(3) == 0:
		g.flight = append(g.flight, simFlight{q: simQueue{b.name, q}, due: later(), acked: w.rnd.IntN(2) == 0, m: m})
	case !g.pop && !g.broadcast && !w.ordered && w.rnd.IntN(20) == 0:
		b.held = append(b.held, simHeld{kind: "retry", group: g.name, due: later(), m: m})
	default:
		w.deliver(g, m)
	}
}

// retryOf consumes what is to be retried: of a group that pops only where it sees the topic.
func (w *world) retryOf(g *simGroup, b *simBroker) {
	if !b.up(w) || len(b.retry[g.name]) == 0 || g.pop && !slices.ContainsFunc(g.queues, func(q simQueue) bool { return q.broker == b.name }) {
		return
	}
	for n := 1 + w.rnd.IntN(4); n > 0 && len(b.retry[g.name]) > 0; n-- {
		m := b.retry[g.name][0]
		b.retry[g.name] = b.retry[g.name][1:]
		w.take(g, b, -1, m)
	}
}

// read takes a few messages of a queue as a client does that begins where the group
// stands, and at the end of a queue where it has no offset.
func (w *world) read(g *simGroup, q simQueue) {
	b := w.brokers[q.broker]
	t := b.topics[simTopicName]
	if !b.up(w) || t == nil || t.config.Perm&PermRead == 0 || q.id >= int(t.config.Read) {
		return
	}
	if g.pop && !b.modes[g.name] {
		w.fault("group %s, which pops, pulls from %s", g.name, b.name)
	}
	at := offsetIn(b.offsets[g.name], q.id)
	if g.broadcast {
		if _, ok := g.own[q]; !ok { // as clients do that begin at the end
			g.own[q] = len(t.queues[q.id])
		}
		at = int64(g.own[q])
	}
	if at < 0 {
		at = int64(len(t.queues[q.id]))
		b.commit(g.name, q.id, at)
	}
	for n := w.rnd.IntN(4); n > 0 && at < int64(len(t.queues[q.id])); n-- {
		w.take(g, b, q.id, t.queues[q.id][at])
		at++
	}
	if g.broadcast {
		g.own[q] = int(at)
		return
	}
	b.commit(g.name, q.id, at)
}

func offsetIn(offsets []int64, q int) int64 {
	if q < len(offsets) {
		return offsets[q]
	}
	return -1
}

func (b *simBroker) commit(group string, q int, at int64) {
	o := b.offsets[group]
	for len(o) <= q {
		o = append(o, -1)
	}
	if at < o[q] {
		b.wentBack = fmt.Sprintf("group %s went back from %d to %d in queue %d of %s (I6)", group, o[q], at, q, b.name)
	}
	o[q] = at
	b.offsets[group] = o
}

func (w *world) deliver(g *simGroup, m simMessage) {
	byKey := w.seen[g.name]
	if byKey == nil {
		byKey = map[string]map[int]bool{}
		w.seen[g.name] = byKey
	}
	got := byKey[m.key]
	if got == nil {
		got = map[int]bool{}
		byKey[m.key] = got
	}
	if w.ordered && !g.pop && m.seq > 0 && !got[m.seq-1] {
		w.fault("order: group %s got %d of key %s before %d (I4)", g.name, m.seq, m.key, m.seq-1)
	}
	got[m.seq] = true
}

var errKilled = errors.New("killed")

// errAway is a broker that does not answer.
var errAway = errors.New("no answer")

// simCluster is the world as one run of the tool sees it. It dies at the strokes given.
type simCluster struct {
	w     *world
	owner string
	die   int // calls until the run is killed; negative: never
	after bool
}

func (c *simCluster) stroke() {
	c.die--
	if c.die == 0 {
		panic(errKilled) // no code of the run sees it
	}
}

// act runs a change, killed before it or after it.
func (c *simCluster) act(f func() error) error {
	if c.w.ordered { // what was on its way when the tool looked is stored before its command comes
		c.w.tick(time.Duration(c.w.rnd.IntN(2)) * 250 * time.Millisecond)
	}
	c.die--
	if c.die == 0 {
		if c.after {
			_ = f()
		}
		panic(errKilled)
	}
	return f()
}

// untilKilled runs a part of a run, which may be killed in it.
func untilKilled(f func() error) (err error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case errKilled:
			err = errKilled
		default:
			panic(v)
		}
	}()
	return f()
}

func (c *simCluster) Observe(_ context.Context, st *State) (*Observation, error) {
	c.stroke()
	w := c.w
	w.tick(time.Duration(w.rnd.IntN(300)) * time.Millisecond)
	ob := &Observation{At: w.now, Brokers: map[string]BrokerView{}, Groups: map[string]map[string]GroupView{simTopicName: {}}}
	for _, name := range st.Brokers() {
		b := w.brokers[name]
		if !st.Asks(name) {
			continue
		}
		if !b.up(w) {
			ob.Failed = append(ob.Failed, "broker "+name+" does not answer")
			continue
		}
		v := b.view()
		v.Modes = map[string]map[string]Mode{simTopicName: {}}
		for g := range b.modes {
			v.Modes[simTopicName][g] = Mode{Name: "POP", Share: 8}
		}
		v.Pending = map[string]Pending{simTopicName: b.pending(st.GivenUp(name))}
		ob.Brokers[name] = v
	}
	for _, g := range w.groups {
		v := GroupView{Online: !w.now.Before(g.offUntil), Broadcast: g.broadcast && !w.now.Before(g.offUntil), Offsets: map[string][]int64{}, Retry: map[string]int64{}, InFlight: map[string]int64{}}
		for _, name := range st.Brokers() {
			w.onTheWay(g, w.brokers[name], st.GivenUp(name), &v)
			v.Offsets[name] = slices.Clone(w.brokers[name].offsets[g.name])
			if n := len(ob.Brokers[name].Topics[simTopicName].Queues); n < len(v.Offsets[name]) {
				v.Offsets[name] = v.Offsets[name][:n]
			}
		}
		ob.Groups[simTopicName][g.name] = v
	}
	for _, ns := range w.servers {
		v := NameServerView{Addr: ns.addr, Routes: map[string]Route{}, Brokers: map[string]bool{}, Order: maps.Clone(ns.order), HandsOutOrder: true}
		for name, b := range w.brokers {
			v.Brokers[name] = b.up(w)
		}
		for topic, r := range ns.routes {
			route := Route{Queues: maps.Clone(r)}
			if o, ok := ns.order[topic]; ok {
				route.Order = &o
			}
			v.Routes[topic] = route
		}
		ob.NameServers = append(ob.NameServers, v)
	}
	return ob, nil
}

// pending counts what a broker holds back for queues that are given up.
func (b *simBroker) pending(given map[string]int32) (p Pending) {
	from, ok := given[simTopicName]
	for _, h := range b.held {
		switch {
		case !ok || h.kind == "retry" && from > 0 || h.kind != "retry" && h.queue < int(from):
		case h.kind == "timer":
			p.Timer++
		case h.kind == "half":
			p.Half++
		default:
			p.Delayed++
		}
	}
	return p
}

// onTheWay counts what a group popped of queues that are given up, and what it is to retry.
func (w *world) onTheWay(g *simGroup, b *simBroker, given map[string]int32, v *GroupView) {
	from, ok := given[simTopicName]
	if !ok {
		return
	}
	for _, f := range g.flight {
		if f.q.broker == b.name && (f.q.id >= int(from) || f.q.id < 0 && from == 0) {
			v.InFlight[b.name]++
		}
	}
	if from == 0 {
		v.Retry[b.name] = int64(len(b.retry[g.name]))
	}
}

func (b *simBroker) view() BrokerView {
	v := BrokerView{Perm: b.perm, Forwards: b.mqx, Topics: map[string]TopicView{}, Groups: maps.Clone(b.groups), Disk: -1}
	for name, t := range b.topics {
		tv := TopicView{Config: t.config}
		n := max(t.config.Read, t.config.Write) // those that were taken away nobody tells of
		if n == 0 {
			n = int32(len(t.queues)) // those that were shut are asked for, one by one
		}
		for q := range n {
			tv.Queues = append(tv.Queues, Range{Min: t.base[q], Max: int64(len(t.queues[q]))})
		}
		v.Topics[name] = tv
	}
	return v
}

func (c *simCluster) Do(_ context.Context, _ *State, cmd *Command) error {
	return c.act(func() error { return c.w.do(cmd) })
}

// do is what a broker or name server makes of a command.
func (w *world) do(c *Command) error {
	if c.Kind == SetOrder {
		return w.setOrder(c)
	}
	b := w.brokers[c.Broker]
	if !b.up(w) && c.Kind != CleanRoute {
		return errAway
	}
	switch c.Kind {
	case CreateGroup:
		b.groups[c.Group] = true
	case SetTopic:
		return w.setTopic(b, c)
	case SetMode:
		b.modes[c.Group] = true
	case SetOffset:
		if offsetIn(b.offsets[c.Group], int(c.Queue)) < 0 {
			b.commit(c.Group, int(c.Queue), 0)
		}
	case SetBrokerPerm:
		if b.perm != c.PermTo && b.perm != c.PermWas {
			return &ChangedError{Command: *c, Found: fmt.Sprint(b.perm)}
		}
		b.perm = c.PermTo
		b.version++
	case DeleteTopic:
		return w.deleteTopic(b, c)
	case CleanRoute:
		for _, ns := range w.servers {
			delete(ns.routes[c.Topic], c.Broker)
		}
	case SetOrder:
	}
	return nil
}

func (w *world) setOrder(c *Command) error {
	for _, ns := range w.servers {
		cur := (&NameServerView{Order: ns.order}).order(c.Topic)
		if !sameText(cur, c.OrderWas) && !sameText(cur, c.OrderTo) {
			return &ChangedError{Command: *c, Found: text(cur)}
		}
		if c.OrderTo == nil {
			delete(ns.order, c.Topic)
		} else {
			ns.order[c.Topic] = *c.OrderTo
		}
	}
	return nil
}

func (w *world) setTopic(b *simBroker, c *Command) error {
	var cur *Topic
	t := b.topics[c.Topic]
	if t != nil {
		cur = &t.config
	}
	if cur.Same(c.To) {
		return nil
	}
	if !cur.Same(c.Was) {
		return &ChangedError{Command: *c, Found: cur.String()}
	}
	if t == nil {
		t = &simTopic{}
		b.topics[c.Topic] = t
	}
	for q, end := range c.Max {
		if q >= int(c.To.Read) && int64(len(t.queues[q])) != end {
			return &ChangedError{Command: *c, Found: fmt.Sprintf("queue %d ends at %d", q, len(t.queues[q]))}
		}
	}
	if n := c.To.Read; n > 0 && n < int32(len(t.queues)) && t.config.Read > n { // what is only shut for a while is looked at in mayOpen
		w.mayHide(b, t, int(n))
	}
	w.mayOpen(b, &t.config, c.To)
	t.config = *c.To
	for len(t.queues) < int(max(c.To.Read, c.To.Write)) {
		t.queues, t.base = append(t.queues, nil), append(t.base, 0)
	}
	b.version++
	return nil
}

func (w *world) deleteTopic(b *simBroker, c *Command) error {
	t := b.topics[c.Topic]
	if t == nil {
		return nil
	}
	for q := range t.queues {
		if q < len(c.Max) && int64(len(t.queues[q])) != c.Max[q] {
			return &ChangedError{Command: *c, Found: fmt.Sprintf("queue %d ends at %d", q, len(t.queues[q]))}
		}
	}
	w.mayHide(b, t, 0)
	delete(b.topics, c.Topic)
	b.offsets = map[string][]int64{}
	for _, g := range w.groups {
		if g.pop {
			delete(b.retry, g.name)
		}
	}
	b.version++
	return nil
}

// The journal of the world: one log, one lease, on a broker that may be restarted.

func (c *simCluster) Renew(context.Context) (bool, error) {
	w := c.w
	c.stroke()
	if w.now.Before(w.hostUp) {
		return false, errAway
	}
	if w.lease.owner != c.owner && w.now.Before(w.lease.until) {
		return false, nil
	}
	w.lease = simLease{c.owner, w.now.Add(LeaseTime)}
	return true, nil
}

func (c *simCluster) Read(_ context.Context, from int64) ([]Entry, Span, error) {
	c.stroke()
	w := c.w
	if w.now.Before(w.hostUp) {
		return nil, Span{}, errAway
	}
	span := Span{w.first, w.first + int64(len(w.log))}
	if from < w.first || from > span.Next {
		from = w.first
	}
	return slices.Clone(w.log[from-w.first:]), span, nil
}

// vanish takes the journal away: by retention, or with its topic, which begins anew.
func (w *world) vanish(topic bool) {
	w.first += int64(len(w.log))
	if topic {
		w.first = 0
	}
	w.log = nil
}

func (c *simCluster) Append(_ context.Context, e *Entry) error {
	return c.act(func() error {
		if c.w.now.Before(c.w.hostUp) {
			return errAway
		}
		stored := *e
		stored.Offset = c.w.first + int64(len(c.w.log))
		if e.State != nil {
			b, err := e.State.Encode()
			if err != nil {
				return err
			}
			if stored.State, err = Decode(b); err != nil {
				return err
			}
		}
		if stored.State != nil {
			c.w.copied = stored.State
		}
		c.w.log = append(c.w.log, stored)
		if c.w.rnd.IntN(30) == 0 {
			return errAway // stored, and the answer is lost
		}
		e.Offset = stored.Offset
		return nil
	})
}
