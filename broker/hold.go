package broker

import (
	"sync"
	"sync/atomic"
	"time"
)

// parkedPull is a pull that found nothing and waits for data.
type parkedPull struct {
	key    holdKey
	group  string
	conn   uint64
	offset int64 // queue offset it waits for
	until  time.Time
	filter msgFilter // nil: every message
	// wake runs the pull again without waiting; drop gives it up (its
	// connection is gone or the broker stops). Exactly one of them is called,
	// once, without any lock held.
	wake func(timedOut bool)
	drop func()

	pos    int  // in the heap, -1 when it is no longer parked
	slot   int  // in its queue's list
	passed bool // a message came that does not match
}

type holdKey struct {
	topic string
	queue int32
}

// hold is all parked pulls: by queue for arriving messages, by deadline, and by
// connection for closed ones. Safe to share.
type hold struct {
	now func() time.Time
	// unmatched is how long a pull goes on waiting after a message that does
	// not match it: then its client learns that the queue has moved.
	unmatched time.Duration
	max       int
	// count is the number of parked pulls, for a look without the lock. It is
	// raised before Park returns, so that a message that Arrived passes by is
	// seen by the parker's own look at the queue.
	count atomic.Int64

	mu struct {
		sync.Mutex
		queues map[holdKey][]*parkedPull
		conns  map[uint64]*connPulls
		times  deadlines[*parkedPull]
	}
}

// holdTick is the least time between two looks at the deadlines; holdUnmatched
// is Apache's period of looking at all parked pulls.
const (
	holdTick      = 100 * time.Millisecond
	holdUnmatched = 5 * time.Second
)

// connPulls is the parked pulls of one connection.
type connPulls struct {
	all        map[*parkedPull]struct{}
	unwritable int // of them, those that wait for room to answer
}

const (
	// maxUnwritable bounds the pulls of one connection that wait for room to
	// answer; Apache's broker keeps none of them.
	maxUnwritable = 256
	// connShare is the part of all places that one connection may take, so
	// that it does not make all other clients poll.
	connShare = 4
	// leastPerConn is what a connection may always take.
	leastPerConn = 1024
)

func newHold(now func() time.Time, maxParked int) *hold {
	h := &hold{now: now, unmatched: holdUnmatched, max: maxParked}
	h.mu.queues = map[holdKey][]*parkedPull{}
	h.mu.conns = map[uint64]*connPulls{}
	h.mu.times = deadlines[*parkedPull]{now: now, tick: holdTick, expire: h.expire}
	return h
}

// Park keeps p until data arrives, its time is up or its connection closes.
// It returns false when a limit is reached or the hold is closed: then p is not
// kept.
func (h *hold) Park(p *parkedPull) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.mu.conns[p.conn]
	if h.mu.times.closed || h.mu.times.Len() >= h.max || !m.room(p, h.max) {
		return false
	}
	p.slot = len(h.mu.queues[p.key])
	h.mu.queues[p.key] = append(h.mu.queues[p.key], p)
	if m == nil {
		m = &connPulls{all: map[*parkedPull]struct{}{}}
		h.mu.conns[p.conn] = m
	}
	m.all[p] = struct{}{}
	if p.key == writableKey {
		m.unwritable++
	}
	h.mu.times.Add(p)
	h.count.Add(1)
	return true
}

// room reports whether the connection may park p too.
func (c *connPulls) room(p *parkedPull, most int) bool {
	if c == nil {
		return true
	}
	if p.key == writableKey {
		return c.unwritable < maxUnwritable
	}
	return len(c.all) < max(leastPerConn, most/connShare)
}

// Arrived wakes the pulls of a queue that want a message with this offset,
// tags code and properties. topic and props are not kept.
func (h *hold) Arrived(topic []byte, queue int32, offset, tagsCode int64, props []byte) {
	if h.count.Load() == 0 {
		return
	}
	h.mu.Lock()
	list := h.mu.queues[holdKey{string(topic), queue}]
	var woken []*parkedPull
	for _, p := range list {
		switch {
		case offset < p.offset:
		case p.filter == nil || p.filter.MatchCQ(tagsCode) && p.filter.MatchProperties(props):
			woken = append(woken, p)
		case !p.passed:
			p.passed = true
			h.hasten(p)
		}
	}
	for _, p := range woken {
		h.remove(p)
	}
	h.mu.Unlock()
	for _, p := range woken {
		p.wake(false)
	}
}

// hasten brings the deadline of p forward. Needs mu.
func (h *hold) hasten(p *parkedPull) {
	if soon := h.now().Add(h.unmatched); soon.Before(p.until) {
		p.until = soon
		h.mu.times.Hasten(p.pos)
	}
}

// Recheck wakes p if it is still parked: data may have come between its look
// at the queue and Park.
func (h *hold) Recheck(p *parkedPull) {
	h.leave((*parkedPull).wakeNow, func(add func(*parkedPull)) {
		if p.pos >= 0 {
			add(p)
		}
	})
}

// Wake wakes all pulls that match; they run again without waiting.
func (h *hold) Wake(match func(group, topic string, queue int32) bool) {
	h.leave((*parkedPull).wakeNow, func(add func(*parkedPull)) {
		for k, list := range h.mu.queues {
			for _, p := range list {
				if match(p.group, k.topic, k.queue) {
					add(p)
				}
			}
		}
	})
}

// Writable wakes the pulls of a connection that wait for room to answer.
func (h *hold) Writable(conn uint64) {
	h.leave((*parkedPull).wakeNow, func(add func(*parkedPull)) {
		m := h.mu.conns[conn]
		if m == nil || m.unwritable == 0 {
			return
		}
		for p := range m.all {
			if p.key == writableKey {
				add(p)
			}
		}
	})
}

func (p *parkedPull) wakeNow()  { p.wake(false) }
func (p *parkedPull) wakeLate() { p.wake(true) }
func (p *parkedPull) giveUp()   { p.drop() }

// leave takes out those that pick adds, and then ends each with end, without
// the lock. pick is called with mu held.
func (h *hold) leave(end func(*parkedPull), pick func(add func(*parkedPull))) {
	var gone []*parkedPull
	h.mu.Lock()
	pick(func(p *parkedPull) { gone = append(gone, p) })
	for _, p := range gone {
		h.remove(p)
	}
	h.mu.Unlock()
	for _, p := range gone {
		end(p)
	}
}

// writableKey is the queue under which pulls wait for their connection.
var writableKey = holdKey{queue: -1}

// Closed drops the pulls of a connection.
func (h *hold) Closed(conn uint64) {
	h.leave((*parkedPull).giveUp, func(add func(*parkedPull)) {
		if m := h.mu.conns[conn]; m != nil {
			for p := range m.all {
				add(p)
			}
		}
	})
}

// Close wakes all that is parked as timed out, and refuses more.
func (h *hold) Close() {
	h.leave((*parkedPull).wakeLate, func(add func(*parkedPull)) {
		h.mu.times.Close()
		for _, p := range h.mu.times.heap {
			add(p)
		}
	})
}

// Len is the number of parked pulls.
func (h *hold) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.times.Len()
}

// remove takes p out of all three places. Needs mu.
func (h *hold) remove(p *parkedPull) {
	list := h.mu.queues[p.key]
	last := len(list) - 1
	list[p.slot] = list[last]
	list[p.slot].slot = p.slot
	list[last] = nil
	if last == 0 {
		delete(h.mu.queues, p.key)
	} else {
		h.mu.queues[p.key] = list[:last]
	}
	m := h.mu.conns[p.conn]
	delete(m.all, p)
	if p.key == writableKey {
		m.unwritable--
	}
	if len(m.all) == 0 {
		delete(h.mu.conns, p.conn)
	}
	h.mu.times.Remove(p.pos)
	p.pos = -1
	h.count.Add(-1)
}

// expire wakes what has waited long enough.
func (h *hold) expire() {
	h.mu.Lock()
	late := h.mu.times.Late(h.remove)
	h.mu.Unlock()
	for _, p := range late {
		p.wake(true)
	}
}
