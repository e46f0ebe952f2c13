package server

import (
	"time"

	"mqx/remoting"
)

const (
	// maxHeld bounds the requests that a loop holds back, heldBytes the bytes at which
	// they are served at once.
	maxHeld   = 256
	heldBytes = 256 << 10
	// maxWaits is how many turns of its loop a held request waits for workers that
	// still have some that came before it.
	maxWaits = 64
)

// held are requests that a loop has read and serves when it has read what else there
// is: those of several connections go to the handler together, and no goroutine has to
// be woken for them. They are all of one handler. It belongs to the loop.
//
// The order of each connection is kept: what comes while something is held is held or
// comes behind it, and nothing is served here while workers have requests of its class.
type held struct {
	requests []*Request
	bytes    int
	due      bool         // later has been called
	waits    int          // turns that what is held has waited for workers
	later    func() error // asks the loop to call turn.serveHeld soon; nil where there is no loop
	spare    []*Request   // memory for the next ones
	gather   gather
	call     batchCall
	lone     [1]*Request
	declined bool // the request of this read was tried alone
}

// tryAlone serves a request that came alone, unless others come before it.
func (t *turn) tryAlone(rt *route, r *Request) bool {
	h := &t.held
	if !r.alone || len(h.requests) > 0 || !rt.class.Idle() {
		return false
	}
	h.lone[0] = r
	left := h.call.try(h.lone[:], rt.try)
	h.lone[0] = nil
	if h.declined = len(left) > 0; !h.declined {
		t.srv.counts.prompt.Add(1)
	}
	return !h.declined
}

// sort takes what a read has brought for one class: it is held when it is all of one
// handler that may be tried, else it is queued.
func (t *turn) sort(slot int, rs []*Request) {
	h := &t.held
	rt := rs[0].route
	together := rt.try != nil && !h.declined
	for _, r := range rs {
		together = together && r.route.key == rt.key
	}
	h.declined = false
	if len(h.requests) > 0 && (!together || h.requests[0].route.key != rt.key) {
		t.release() // what is held came first
	}
	if !together {
		t.push(slot, rs)
		return
	}
	for _, r := range rs {
		h.bytes += len(r.frame)
	}
	h.requests = append(h.requests, rs...)
	switch {
	case h.later == nil || len(h.requests) >= maxHeld || h.bytes >= heldBytes:
		t.serveHeld()
	case !h.due:
		t.postpone()
	}
}

// postpone lets the loop call serveHeld when it has looked at its connections once more.
func (t *turn) postpone() {
	h := &t.held
	if h.due = h.later() == nil; !h.due { // the loops end
		t.release()
	}
}

// serveHeld serves what is held back, or leaves it for a turn while workers still have
// requests that came before.
func (t *turn) serveHeld() {
	h := &t.held
	h.due = false
	if len(h.requests) == 0 {
		return
	}
	idle := h.requests[0].route.class.Idle()
	if !idle && h.later != nil && h.waits < maxWaits && len(h.requests) < maxHeld {
		h.waits++
		t.postpone()
		return
	}
	if idle {
		h.waits = 0 // else the next ones do not wait either: the workers are busy for long
	}
	t.serveAll(idle)
}

// release is serveHeld without waiting.
func (t *turn) release() { t.serveAll(t.held.requests[0].route.class.Idle()) }

// serveAll ends the holding: the handler serves what it can, if it is asked, and the
// class has the rest.
func (t *turn) serveAll(try bool) {
	h := &t.held
	rs := h.requests
	h.requests, h.bytes, h.spare = h.spare[:0], 0, nil
	defer func() {
		if p := recover(); p != nil { // not of the handler, whose panics are answered
			t.srv.panicked(rs[0].conn, "cannot serve requests", p)
		}
		clear(rs)
		h.spare = rs[:0]
	}()
	for part := rs; len(part) > 0; {
		n := min(len(part), maxHeld)
		try = t.serveTogether(part[:n], try)
		part = part[n:]
	}
}

// serveTogether reports whether the handler has served all.
func (t *turn) serveTogether(rs []*Request, try bool) bool {
	h, now := &t.held, time.Now()
	rt := rs[0].route
	gen := h.gather.scope.open()
	defer h.gather.finish()
	for _, r := range rs {
		h.gather.join(r, gen)
		r.taken = now
	}
	left := rs
	if try {
		left = h.call.try(rs, rt.try)
		t.srv.counts.prompt.Add(uint64(len(rs) - len(left)))
	}
	if len(left) > 0 {
		t.push(rt.slot, left)
	}
	return len(left) == 0
}

// dropHeld answers what a loop that has ended held back.
func (t *turn) dropHeld() {
	for _, r := range t.held.requests {
		r.Reply(remoting.RespSystemBusy, overloadText("draining", 0))
	}
	t.held.requests = nil
}
