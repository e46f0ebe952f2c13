package server

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"mqx/remoting"
)

// versionGoAway is the last version that does not know GO_AWAY (V5_3_1).
const versionGoAway = 475

// errStartTLS ends the plain life of a connection whose first byte is that of
// a TLS handshake.
var errStartTLS = errors.New("TLS handshake begins")

// turn is the scratch of whoever reads connections, an event loop or the
// goroutine of a stream: what one read has brought is sorted into it.
type turn struct {
	srv     *Server
	scope   scope
	gen     uint64
	now     time.Time
	full    bool         // inbound memory has no room for more of the connection: nothing is queued
	lists   [][]*Request // by slot of the class
	touched []int
	held    held
}

// maxUnread is how many requests may come on a connection that does not read.
const maxUnread = 4096

// loopStage names the event loops where a stage is named.
const loopStage = "event loop"

func newTurn(s *Server) *turn {
	return &turn{srv: s, lists: make([][]*Request, len(s.mux.classes))}
}

// feed serves what one read has brought. After an error the connection cannot
// go on; what came before the fault has been served.
func (c *Conn) feed(t *turn, data []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.srv.panicked(c, "cannot serve a connection", p)
			err = &CloseError{Reason: ReasonPanic, Err: fmt.Errorf("%v", p)}
		}
	}()
	k := &c.srv.counts
	k.bytesIn.Add(uint64(len(data)))
	k.reads.Add(1)
	if !c.in.sniffed {
		if data, err = c.sniff(data); err != nil || len(data) == 0 {
			if c.partSince.Load() == 0 {
				c.partSince.Store(c.srv.since(time.Now())) // of a PROXY header or a handshake
			}
			return err
		}
	}
	own := c.in.own.Load() // before this read: a frame as large as may be is no reason to refuse it
	bufs, err := c.in.cut(data)
	switch {
	case errors.Is(err, errInboundFull):
		err = &CloseError{Reason: ReasonInbound}
	case err != nil:
		err = &CloseError{Reason: ReasonBadFrame, Err: err}
	}
	t.begin(own)
	defer t.end(c)
	if c.in.part == nil {
		c.partSince.Store(0)
	} else if bufs != [2]*inbuf{} || c.partSince.Load() == 0 {
		c.partSince.Store(c.srv.since(t.now))
	}
	if c.deaf() && (t.full || c.in.unread > maxUnread) {
		err = &CloseError{Reason: ReasonFlood} // to refuse all that it asks for would keep the loop from everybody else
	}
	for _, b := range bufs {
		switch {
		case b == nil:
			continue
		case flooded(err):
			b.release()
			continue
		}
		c.alive.Store(true)
		if bad := t.serve(c, b, bufs[0] == nil || bufs[1] == nil); bad != nil {
			err = &CloseError{Reason: ReasonBadFrame, Err: bad}
		}
		b.release()
	}
	return err
}

// deaf reports whether the peer does not read what it is sent; one that reads slowly is not.
func (c *Conn) deaf() bool {
	stuck, before := c.stuck.Load(), c.in.stuck
	if c.in.stuck = stuck; stuck < before || stuck < c.srv.cfg.OutboundSoft {
		c.in.unread = 0
		return false
	}
	return true
}

func flooded(err error) bool {
	c, ok := errors.AsType[*CloseError](err)
	return ok && c.Reason == ReasonFlood
}

// begin begins a read of a connection of which requests of so many bytes wait or run. It may have as much as is free beside it: one
// that asks faster than it is answered leaves room for others, and many of those a part that is smaller each time.
func (t *turn) begin(own int64) {
	t.now = time.Now()
	t.gen = t.scope.open()
	if p := t.srv.cfg.Precedence; p != nil {
		p.mark(t.now)
	}
	free := t.srv.cfg.InboundTotal - t.srv.gauges.inbound.Load()
	t.full = free < 0 || own > free
}

// end hands the sorted requests to their classes and flushes what was answered
// on the spot.
func (t *turn) end(c *Conn) {
	for _, slot := range t.touched {
		list := t.lists[slot]
		t.sort(slot, list)
		clear(list)
		t.lists[slot] = list[:0]
	}
	t.touched = t.touched[:0]
	t.scope.close()
	c.flushPending()
}

// push queues rs in their class and refuses those it has no room for.
func (t *turn) push(slot int, rs []*Request) {
	n, why := t.srv.mux.classes[slot].push(rs)
	for _, r := range rs[n:] {
		t.srv.counts.overloaded.Add(1)
		r.Reply(remoting.RespSystemBusy, why)
	}
}

// serve decodes and sorts the frames of b; alone says that the read has brought
// no other buffer.
func (t *turn) serve(c *Conn, b *inbuf, alone bool) error {
	served := uint64(0)
	defer func() {
		t.srv.counts.requests.Add(served)
		c.in.unread += int(served)
		b.holds(int(served))
	}()
	for rest := b.b; len(rest) > 0; {
		n, _, err := remoting.FrameLen(rest)
		if err != nil {
			return err
		}
		r := newRequest()
		r.frame, rest = rest[:n:n], rest[n:]
		if err := r.Decode(r.frame); err != nil {
			r.unused()
			return err
		}
		if r.IsResponse() {
			c.answered(r.frame)
			r.unused()
			continue
		}
		served++
		c.seen(&r.Command)
		r.conn, r.received, r.buf, r.broken = c, t.now, b, false
		r.alone = alone && n == len(b.b)
		r.scope, r.gen = &t.scope, t.gen
		r.begin()
		b.retain()
		if b.cut {
			t.srv.counts.overloaded.Add(1)
			r.Reply(remoting.RespSystemBusy, overloadText("inbound memory", 0))
			continue
		}
		t.dispatch(r)
	}
	return nil
}

// seen notes what a frame says about its sender.
func (c *Conn) seen(cmd *remoting.Command) {
	if int32(cmd.Language) != c.language.Load() {
		c.language.Store(int32(cmd.Language))
	}
	if cmd.Version != c.version.Load() {
		c.version.Store(cmd.Version)
	}
	if State(c.state.Load()) != StateReady {
		if !c.move(StateConnected, StateReady) {
			c.move(StateAuthenticated, StateReady)
		}
	}
	if cmd.IsOneway() {
		c.srv.counts.oneways.Add(1)
	}
}

func (t *turn) dispatch(r *Request) {
	s := t.srv
	if s.draining.Load() {
		s.counts.goAway.Add(1)
		if r.Version > versionGoAway {
			r.Reply(remoting.RespGoAway, "please go away")
		} else {
			r.Reply(remoting.RespSystemBusy, overloadText("draining", 0))
		}
		return
	}
	rt := s.mux.find(r.Code)
	if rt == nil {
		s.counts.unsupported.Add(1)
		r.Reply(remoting.RespRequestCodeNotSupported, fmt.Sprintf(" request type %d not supported", r.Code))
		return
	}
	r.route = rt
	if rt.inline != nil && s.inline(rt, r) {
		return
	}
	if rt.class == nil {
		return
	}
	if t.full {
		s.counts.overloaded.Add(1)
		r.Reply(remoting.RespSystemBusy, overloadText("inbound memory", 0))
		return
	}
	if rt.try != nil && t.tryAlone(rt, r) {
		return
	}
	if len(t.lists[rt.slot]) == 0 {
		t.touched = append(t.touched, rt.slot)
	}
	t.lists[rt.slot] = append(t.lists[rt.slot], r)
}

// inline runs the handler on the loop. A handler that panics has served the
// request.
func (s *Server) inline(rt *route, r *Request) (served bool) {
	f := fault{conn: r.conn, code: r.Code, stage: loopStage}
	life := r.life.Load()
	defer func() {
		if p := recover(); p != nil {
			f.report(p)
			r.failPanicked(p, life)
			served = true
		}
	}()
	return rt.inline(r)
}

// fault is what is known of a request before its handler runs: afterwards the
// request may belong to somebody else.
type fault struct {
	conn  *Conn
	code  int32
	stage string
}

func (f *fault) report(p any) {
	f.conn.srv.panicked(f.conn, "handler panicked", p, "stage", f.stage, "request", remoting.RequestName(f.code))
}

// failPanicked answers a request whose handler has panicked, unless it has
// been answered. It is never reused: the handler may still have it somewhere.
func (r *Request) failPanicked(p any, life uint64) {
	if !r.endLife(life) {
		return
	}
	r.broken = true
	r.answer(&remoting.Command{
		Code:   remoting.RespSystemError,
		Remark: fmt.Sprintf("fault while serving the request: %v", p),
	})
	r.free()
}

func (s *Server) panicked(c *Conn, msg string, p any, attrs ...any) {
	s.counts.panics.Add(1)
	peer := ""
	if c != nil {
		peer = c.Remote().String()
	}
	attrs = append(attrs, "peer", peer, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	s.log.Error(msg, attrs...) //nolint:sloglint // the callers give constants
}

// overloadText is the remark of a request that found no room.
func overloadText(stage string, wait time.Duration) string {
	return fmt.Sprintf("[OVERLOAD]system busy, start flow control for a while, stage: %s, wait: %dms", stage, wait.Milliseconds())
}

// lateText is the remark of a request that waited too long in its queue.
func lateText(stage string, wait time.Duration, size int) string {
	return fmt.Sprintf("[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: %dms, size of queue: %d, stage: %s",
		wait.Milliseconds(), size, stage)
}
