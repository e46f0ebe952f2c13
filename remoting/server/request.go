package server

import (
	"sync"
	"sync/atomic"
	"time"

	"mqx/remoting"
)

// Request is one request of a peer. It is owned by whoever was handed it until
// exactly one of Reply, ReplyWith, ReplyBody or Done is called; these may be
// called from any goroutine, also after the connection has closed. From then
// on the request and all that its Fields and Body alias belong to the server
// again. A request that is kept for long (a parked pull) should Detach first.
type Request struct {
	remoting.Command
	conn     *Conn
	received time.Time
	taken    time.Time // by a worker
	stages   Stages    // of a slow one
	route    *route
	buf      *inbuf
	frame    []byte
	scope    *scope
	gen      uint64
	life     atomic.Uint64    // counts the lives of a pooled Request, bit 0 is set while one lasts
	out      remoting.Command // scratch of ReplyBody
	alone    bool             // the only frame of its read
	broken   bool             // a handler panicked with it: never reused
}

var requestPool = sync.Pool{New: func() any { return new(Request) }}

func newRequest() *Request {
	if !recycle {
		return new(Request)
	}
	return requestPool.Get().(*Request)
}

// Conn returns the connection the request came on. It may be called before
// the request has been answered only.
func (r *Request) Conn() *Conn { return r.conn }

// Received returns when the request was read from the connection.
func (r *Request) Received() time.Time { return r.received }

// Alone reports whether nothing else came with the request in one read: its
// sender waits for the answer, and gathering gains nothing.
func (r *Request) Alone() bool { return r.alone }

// Size returns the length of the request's frame in bytes.
func (r *Request) Size() int { return len(r.frame) }

// Detach copies the request's own bytes out of the buffer that it shares with
// the other requests of its read, so that keeping it does not keep those, and
// takes it out of Config.InboundTotal: who keeps requests bounds their number.
// Slices taken from Fields or Body before are invalid afterwards.
func (r *Request) Detach() {
	parked := &r.conn.srv.gauges.parked
	if r.buf.gauge == parked {
		return
	}
	own := newInbuf(len(r.frame), parked, nil)
	own.b = append(own.b, r.frame...)
	old := r.buf
	r.buf, r.frame = own, own.b
	// It was decoded once, so it decodes again.
	_ = r.Decode(r.frame)
	old.release()
}

// Reply answers with a code and a remark, without fields or body.
func (r *Request) Reply(code int32, remark string) {
	if !r.end() {
		return
	}
	resp := remoting.Command{Code: code, Remark: remark}
	r.answer(&resp)
	r.free()
}

// ReplyWith answers with resp and copies what it needs of it: the caller may
// reuse resp at once. Opaque and the response flag are set on the wire, not in
// resp; language and version are the server's.
func (r *Request) ReplyWith(resp *remoting.Command) {
	if !r.end() {
		return
	}
	out := *resp
	r.answer(&out)
	r.free()
}

// ReplyBody answers with resp and parts as the body, resp.Body being ignored.
// The parts are written or copied before it returns, so that release (which
// may be nil) has been called once by then, also when the connection has
// closed. It may wait for a system call; not for the peer. The parts may be
// slices of a mapped file: a page that cannot be read closes the connection.
func (r *Request) ReplyBody(resp *remoting.Command, parts [][]byte, release func()) {
	if release != nil {
		defer release()
	}
	if !r.end() {
		return
	}
	if !r.IsOneway() {
		r.out = *resp
		r.out.Body = nil
		r.address(&r.out)
		r.conn.writeParts(&r.out, parts)
		r.out = remoting.Command{}
	}
	r.observe(resp.Code, nil)
	r.free()
}

// Done ends the request without an answer.
func (r *Request) Done() {
	if r.end() {
		r.free()
	}
}

// begin starts the request's life.
func (r *Request) begin() { r.life.Store(r.life.Load() + 1) }

// end claims the right to answer.
func (r *Request) end() bool {
	if r.endLife(r.life.Load()) {
		return true
	}
	if c := r.conn; c != nil {
		c.srv.doubleReply(c)
	}
	return false
}

// endLife claims the right to answer if the life that was read before lasts.
func (r *Request) endLife(life uint64) bool {
	return life&1 != 0 && r.life.CompareAndSwap(life, life+1)
}

// address makes resp the answer to r.
func (r *Request) address(resp *remoting.Command) {
	resp.Opaque = r.Opaque
	resp.Flag = resp.Flag&^remoting.FlagOneway | remoting.FlagResponse
	resp.Language = remoting.LanguageGo
	resp.Version = remoting.Version
}

// answer appends resp to what the connection sends, and flushes it unless the
// batch that r belongs to will.
func (r *Request) answer(resp *remoting.Command) {
	var err error // a closed connection takes no answer, and says so itself
	if !r.IsOneway() {
		r.address(resp)
		err = r.conn.enqueue(resp, r.scope, r.gen)
	}
	r.observe(resp.Code, err)
}

// free returns the request and its share of the buffer.
func (r *Request) free() {
	buf := r.buf
	if r.broken || !recycle {
		// Keep conn, so that a second answer is told; the buffer goes back to
		// the collector when the handler that panicked may still look at it.
		if r.broken {
			buf.lose()
			return
		}
		buf.release()
		return
	}
	r.unused()
	buf.release()
}

// unused returns a request whose life is over, or never began, to the pool.
func (r *Request) unused() {
	if !recycle {
		return
	}
	r.Reset()
	r.buf, r.frame, r.route, r.scope = nil, nil, nil, nil
	r.taken, r.stages = time.Time{}, Stages{}
	requestPool.Put(r)
}
