package broker

import (
	"container/list"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mqx/message"
)

// parkedPop is a pop (or a NOTIFICATION) that found nothing and waits.
type parkedPop struct {
	topic, group string
	queue        int32 // -1 for all
	conn         uint64
	until        time.Time
	filter       msgFilter // nil passes everything
	// wake runs the request again; drop gives it up. Exactly one of them is
	// called, once, without any lock held.
	wake func()
	drop func()
	// rerun is wake on the caller's goroutine.
	rerun func()

	pos  int
	elem *list.Element
}

// popHold is the parked pops. A message wakes one of each group, not all: one
// takes it, and wakes the next when there is more. Its timer only runs while
// something is parked. Safe to share.
type popHold struct {
	now    func() time.Time
	limits func() *Pop
	// last takes the newest of a list and not the oldest.
	last  bool
	count atomic.Int64

	mu struct {
		sync.Mutex
		topics map[string]map[string]*popGroup // topic, group
		retry  map[string][]*popGroup          // pop retry topics; names of version 1 may be those of several
		conns  map[uint64]map[*parkedPop]struct{}
		times  deadlines[*parkedPop]
		keys   int
	}
}

// popGroup is the parked pops of one group in one topic.
type popGroup struct {
	topic, group string
	queues       map[int32]*list.List
}

// parkResult is what became of an attempt to park.
type parkResult int8

const (
	parkDone parkResult = iota
	parkFull
	parkLate // its time is over
)

// popEarly is how long before its deadline a held pop is answered, as Apache's.
const popEarly = 50 * time.Millisecond

func newPopHold(now func() time.Time, limits func() *Pop, last bool) *popHold {
	h := &popHold{now: now, limits: limits, last: last}
	h.mu.topics = map[string]map[string]*popGroup{}
	h.mu.retry = map[string][]*popGroup{}
	h.mu.conns = map[uint64]map[*parkedPop]struct{}{}
	h.mu.times = deadlines[*parkedPop]{now: now, tick: popTick, expire: h.expire}
	return h
}

// Park keeps p until a message comes, its time is up or its connection closes.
// p is only kept with the result parkDone.
func (h *popHold) Park(p *parkedPop) parkResult {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.limits()
	if h.mu.times.closed {
		return parkLate
	}
	if int64(h.mu.times.Len()) >= l.MaxPopPolling {
		return parkFull
	}
	if p.until = p.until.Add(-popEarly); h.now().After(p.until) {
		return parkLate
	}
	g := h.group(p)
	q := g.queues[p.queue]
	if q == nil {
		if h.mu.keys >= l.PopPollingKeys {
			h.forget(g)
			return parkFull
		}
		q = list.New()
		g.queues[p.queue] = q
		h.mu.keys++
	}
	if q.Len() > l.PopPollingSize {
		return parkFull
	}
	p.elem = q.PushBack(p)
	if h.mu.conns[p.conn] == nil {
		h.mu.conns[p.conn] = map[*parkedPop]struct{}{}
	}
	h.mu.conns[p.conn][p] = struct{}{}
	h.mu.times.Add(p)
	h.count.Add(1)
	return parkDone
}

// group finds or makes the group of p. Needs mu.
func (h *popHold) group(p *parkedPop) *popGroup {
	groups := h.mu.topics[p.topic]
	if groups == nil {
		groups = map[string]*popGroup{}
		h.mu.topics[p.topic] = groups
	}
	g := groups[p.group]
	if g == nil {
		g = &popGroup{topic: p.topic, group: p.group, queues: map[int32]*list.List{}}
		groups[p.group] = g
		for _, v2 := range []bool{false, true} {
			name := message.PopRetryTopic(p.group, p.topic, v2)
			h.mu.retry[name] = append(h.mu.retry[name], g)
		}
	}
	return g
}

// forget removes a group that holds nothing. Needs mu.
func (h *popHold) forget(g *popGroup) {
	if len(g.queues) > 0 {
		return
	}
	for _, v2 := range []bool{false, true} {
		name := message.PopRetryTopic(g.group, g.topic, v2)
		if list := slices.DeleteFunc(h.mu.retry[name], func(x *popGroup) bool { return x == g }); len(list) > 0 {
			h.mu.retry[name] = list
		} else {
			delete(h.mu.retry, name)
		}
	}
	delete(h.mu.topics[g.topic], g.group)
	if len(h.mu.topics[g.topic]) == 0 {
		delete(h.mu.topics, g.topic)
	}
}

// Arrived wakes one parked pop of each group that wants the message, of those
// that wait for any queue and of those that wait for this one. topic is not kept.
func (h *popHold) Arrived(topic []byte, queue int32, offset, tagsCode int64, props []byte) {
	if h.count.Load() == 0 {
		return
	}
	h.mu.Lock()
	var woken []*parkedPop
	// A copy: what is taken may be the last of its group, which leaves the list.
	for _, g := range slices.Clone(h.mu.retry[string(topic)]) {
		woken = h.takeAny(woken, g)
	}
	every := h.limits().PopForceNotify
	force := every > 0 && offset%every == 0
	for _, g := range h.mu.topics[string(topic)] {
		woken = h.take(woken, g, -1, tagsCode, props, force)
		woken = h.take(woken, g, queue, tagsCode, props, force)
	}
	h.mu.Unlock()
	wakeAll(woken)
}

// take removes one that matches from a list. Needs mu.
func (h *popHold) take(woken []*parkedPop, g *popGroup, queue int32, tagsCode int64, props []byte, force bool) []*parkedPop {
	q := g.queues[queue]
	if q == nil {
		return woken
	}
	first, next := q.Front(), (*list.Element).Next
	if h.last {
		first, next = q.Back(), (*list.Element).Prev
	}
	for e, seen := first, 0; e != nil && seen < maxFilterLook; e, seen = next(e), seen+1 {
		p := e.Value.(*parkedPop)
		if force || p.filter == nil || p.filter.MatchCQ(tagsCode) && p.filter.MatchProperties(props) {
			h.remove(p)
			return append(woken, p)
		}
	}
	return woken
}

// maxFilterLook bounds the pops of one list that are asked whether they want a
// message: those of one group usually filter alike.
const maxFilterLook = 16

func wakeAll(ps []*parkedPop) {
	for _, p := range ps {
		p.wake()
	}
}

// takeAny removes one of a group: of all queues, else of any. Needs mu.
func (h *popHold) takeAny(woken []*parkedPop, g *popGroup) []*parkedPop {
	if out := h.take(woken, g, -1, 0, nil, true); len(out) > len(woken) {
		return out
	}
	for q := range g.queues {
		return h.take(woken, g, q, 0, nil, true)
	}
	return woken
}

// Wake wakes one pop that waits for exactly that queue, or for all with -1.
func (h *popHold) Wake(topic, group string, queue int32) {
	if h.count.Load() == 0 {
		return
	}
	h.mu.Lock()
	var woken []*parkedPop
	if g := h.mu.topics[topic][group]; g != nil {
		woken = h.take(nil, g, queue, 0, nil, true)
	}
	h.mu.Unlock()
	wakeAll(woken)
}

// Rerun runs one pop of each queue that a group waits for, on the caller's
// goroutine: it passes over what it does not want, and waits again.
func (h *popHold) Rerun(topic, group string) {
	if h.count.Load() == 0 {
		return
	}
	h.mu.Lock()
	var taken []*parkedPop
	if g := h.mu.topics[topic][group]; g != nil {
		for q := range g.queues {
			taken = h.take(taken, g, q, 0, nil, true)
		}
	}
	h.mu.Unlock()
	for _, p := range taken {
		p.rerun()
	}
}

// Recheck wakes p if it is still parked.
func (h *popHold) Recheck(p *parkedPop) {
	h.mu.Lock()
	parked := p.elem != nil
	if parked {
		h.remove(p)
	}
	h.mu.Unlock()
	if parked {
		p.wake()
	}
}

// Closed drops the pops of a connection.
func (h *popHold) Closed(conn uint64) {
	if h.count.Load() == 0 {
		return
	}
	h.mu.Lock()
	var gone []*parkedPop
	for p := range h.mu.conns[conn] {
		gone = append(gone, p)
	}
	for _, p := range gone {
		h.remove(p)
	}
	h.mu.Unlock()
	for _, p := range gone {
		p.drop()
	}
}

// WakeAll wakes all pops of topics and groups that match.
func (h *popHold) WakeAll(match func(topic, group string) bool) {
	h.mu.Lock()
	var woken []*parkedPop
	for _, p := range h.mu.times.heap {
		if match(p.topic, p.group) {
			woken = append(woken, p)
		}
	}
	for _, p := range woken {
		h.remove(p)
	}
	h.mu.Unlock()
	wakeAll(woken)
}

// Close wakes all that is parked, and refuses more.
func (h *popHold) Close() {
	h.mu.Lock()
	h.mu.times.Close()
	h.mu.Unlock()
	h.WakeAll(func(string, string) bool { return true })
}

// Len is the number of pops that wait for exactly that queue, or for all.
func (h *popHold) Len(topic, group string, queue int32) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g := h.mu.topics[topic][group]; g != nil && g.queues[queue] != nil {
		return g.queues[queue].Len()
	}
	return 0
}

// remove takes p out of all places. Needs mu.
func (h *popHold) remove(p *parkedPop) {
	g := h.mu.topics[p.topic][p.group]
	q := g.queues[p.queue]
	q.Remove(p.elem)
	p.elem = nil
	if q.Len() == 0 {
		delete(g.queues, p.queue)
		h.mu.keys--
		h.forget(g)
	}
	delete(h.mu.conns[p.conn], p)
	if len(h.mu.conns[p.conn]) == 0 {
		delete(h.mu.conns, p.conn)
	}
	h.mu.times.Remove(p.pos)
	h.count.Add(-1)
}

// popTick is the least time between two looks at the deadlines, Apache's.
const popTick = 20 * time.Millisecond

func (h *popHold) expire() {
	h.mu.Lock()
	late := h.mu.times.Late(h.remove)
	h.mu.Unlock()
	wakeAll(late)
}
