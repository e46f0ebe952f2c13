package server

import (
	"time"

	"mqx/remoting"
)

const (
	// maxHeld bounds the requests that a loop holds back, heldBytes their bytes.
	maxHeld   = 256
	heldBytes = 1 << 20
)

// held are requests that a loop has read and serves when it has read what else there
// is: those of several connections go to the handler together, and no goroutine has to
// be woken for them. They are all of one handler. It belongs to the loop.
type held struct {
	requests []*Request
	bytes    int
	due      bool         // later has been called
	later    func() error // asks the loop to call turn.serveHeld soon; nil where there is no loop
	gather   gather
	call     batchCall
	lone     [1]*Request
}

// tryAlone serves a request that came alone, unless others wait that came before it.
func (t *turn) tryAlone(rt *route, r *Request) bool {
	h := &t.held
	if !r.alone || len(h.requests) > 0 {
		return false
	}
	h.lone[0] = r
	served, _ := h.call.do(loopStage, h.lone[:], rt.try)
	h.lone[0] = nil
	return served
}

// hold keeps the requests of a read for serveHeld and reports whether it did: when they
// are all of one handler that may be tried.
func (t *turn) hold(rs []*Request) bool {
	h := &t.held
	rt := rs[0].route
	if rt.try == nil {
		return false
	}
	for _, r := range rs {
		if r.route.key != rt.key {
			return false
		}
	}
	if len(h.requests) > 0 && h.requests[0].route.key != rt.key {
		t.serveHeld()
	}
	for _, r := range rs {
		h.bytes += len(r.frame)
	}
	h.requests = append(h.requests, rs...)
	switch {
	case h.later == nil || len(h.requests) >= maxHeld || h.bytes >= heldBytes:
		t.serveHeld()
	case !h.due:
		if h.due = h.later() == nil; !h.due {
			t.serveHeld()
		}
	}
	return true
}

// serveHeld serves what was held back: here, or in the class where the handler wants that.
func (t *turn) serveHeld() {
	h := &t.held
	h.due = false
	for len(h.requests) > 0 {
		n := min(len(h.requests), maxHeld)
		t.serveTogether(h.requests[:n])
		rest := copy(h.requests, h.requests[n:])
		clear(h.requests[rest:])
		h.requests = h.requests[:rest]
	}
	h.bytes = 0
}

func (t *turn) serveTogether(rs []*Request) {
	h, now := &t.held, time.Now()
	gen := h.gather.scope.open()
	for _, r := range rs {
		h.gather.join(r, gen)
		r.taken = now
	}
	rt := rs[0].route
	if served, _ := h.call.do(loopStage, rs, rt.try); !served {
		t.push(rt.slot, rs)
	}
	h.gather.finish()
}

// dropHeld answers what a loop that has ended held back.
func (t *turn) dropHeld() {
	for _, r := range t.held.requests {
		r.Reply(remoting.RespSystemBusy, overloadText("draining", 0))
	}
	t.held.requests = nil
}
