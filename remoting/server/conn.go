package server

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"mqx/remoting"
)

// State of a connection.
type State int32

// The states of a connection in the order it goes through them.
const (
	StateAccepted      State = iota // nothing received yet
	StateConnected                  // first bytes seen, TLS handshake done
	StateAuthenticated              // the peer has proved who it is (see Conn.SetAuthenticated)
	StateReady                      // a whole frame has come
	StateDraining                   // answers what runs, takes nothing new
	StateClosed
	numStates
)

// String returns the name of the state in lower case.
func (s State) String() string {
	return [...]string{"accepted", "connected", "authenticated", "ready", "draining", "closed"}[s]
}

// transport is what a connection is carried by: a socket of an event loop or
// a stream served by goroutines.
type transport interface {
	// flush writes what the connection has pending, or has it written. The
	// caller has set out.active, which flush clears.
	flush(c *Conn)
	// writeParts writes what is pending, head, which encodes cmd, and parts.
	// It does not keep cmd and parts.
	writeParts(c *Conn, cmd *remoting.Command, head *outbuf, parts [][]byte)
	// nudge looks whether a slow peer has taken something.
	nudge(c *Conn)
	// shut closes the transport soon. The caller holds c.out.
	shut(c *Conn)
}

// Conn is a connection of a peer. Its methods are safe to share and return at
// once unless they say otherwise.
type Conn struct {
	id        uint64
	srv       *Server
	tr        transport
	remote    atomic.Pointer[netip.AddrPort]
	local     netip.AddrPort
	peer      netip.Addr // what Limits counts: the socket's address, not that of a PROXY header
	opened    time.Time
	encrypted atomic.Bool
	announced bool // OnOpen has been called; owned by the reading side

	state    atomic.Int32
	language atomic.Int32
	version  atomic.Int32
	session  atomic.Pointer[any]

	// in belongs to the side that reads: the event loop or the stream's goroutine.
	in struct {
		cutter
		unread  int   // requests that came since the peer was seen to read
		stuck   int64 // Conn.stuck when it was looked at last
		sniffed bool
		proxied bool   // a PROXY header has been taken off
		pre     []byte // bytes of a PROXY header that is not complete
	}
	partSince atomic.Int64 // when the incomplete frame began, ns since Server.epoch; 0: none
	alive     atomic.Bool  // a frame came or bytes left since the sweeper last looked
	lastAlive int64        // owned by the sweeper

	// out holds the frames that wait for the transport. No system call is made
	// under it but the wake-up of a loop.
	out struct {
		sync.Mutex
		buf    *outbuf
		active bool // somebody flushes and takes what is appended meanwhile
		closed bool
		reason error // why it closes, the first counts
	}
	stuck     atomic.Int64 // bytes the peer does not take
	unwritten atomic.Bool  // Writable was false: OnWritable is due

	calls struct {
		sync.Mutex
		m      map[int32]chan *remoting.Command
		closed bool
	}
}

// ID is unique within the server, counted from 1.
func (c *Conn) ID() uint64 { return c.id }

// Remote returns the peer's address: IPv4 also when it came over an IPv6
// socket, and what a PROXY header says where there was one.
func (c *Conn) Remote() netip.AddrPort { return *c.remote.Load() }

// Local returns the address the peer connected to.
func (c *Conn) Local() netip.AddrPort { return c.local }

// State returns the current state.
func (c *Conn) State() State {
	s := State(c.state.Load())
	if s < StateDraining && s > StateAccepted && c.srv.draining.Load() {
		return StateDraining
	}
	return s
}

// SetAuthenticated moves a connection that is connected or ready to
// authenticated: ready again with its next frame.
func (c *Conn) SetAuthenticated() {
	c.move(StateConnected, StateAuthenticated)
	c.move(StateReady, StateAuthenticated)
}

// Opened returns when the connection was accepted.
func (c *Conn) Opened() time.Time { return c.opened }

// Language is that of the last request.
func (c *Conn) Language() remoting.Language { return remoting.Language(c.language.Load()) }

// Version is the version ordinal of the last request.
func (c *Conn) Version() int32 { return c.version.Load() }

// TLS reports whether the connection is encrypted.
func (c *Conn) TLS() bool { return c.encrypted.Load() }

// Session returns what SetSession stored, nil before.
func (c *Conn) Session() any {
	if p := c.session.Load(); p != nil {
		return *p
	}
	return nil
}

// SetSession attaches the user's state to the connection.
func (c *Conn) SetSession(v any) { c.session.Store(&v) }

// Outbound returns the number of bytes that the peer has not taken yet.
func (c *Conn) Outbound() int64 { return c.stuck.Load() }

// Writable reports whether Outbound is under the soft limit: where it is not,
// do not read data to send.
func (c *Conn) Writable() bool {
	if c.stuck.Load() < c.srv.cfg.OutboundSoft {
		return true
	}
	c.unwritten.Store(true)
	return false
}

// Close closes the connection, after what has been answered was written as far
// as the peer takes it; reason is what OnClose and the log say.
func (c *Conn) Close(reason string) {
	c.flushPending()
	c.fail(&CloseError{Reason: ReasonApplication, Err: errors.New(reason)})
}

// move changes the state from one to another and reports whether it was that.
func (c *Conn) move(from, to State) bool {
	if !c.state.CompareAndSwap(int32(from), int32(to)) {
		return false
	}
	c.srv.counts.states[from].Add(-1)
	c.srv.counts.states[to].Add(1)
	return true
}

// fail closes the connection for a reason, which only the first call sets.
func (c *Conn) fail(reason error) {
	c.out.Lock()
	defer c.out.Unlock()
	c.failLocked(reason)
}

// failLocked is fail with c.out held. A nil reason does nothing.
func (c *Conn) failLocked(reason error) {
	if reason == nil || c.out.closed || c.out.reason != nil {
		return
	}
	c.out.reason = reason
	c.tr.shut(c)
}

// enqueue appends cmd to what is sent. When the batch of the caller is still
// open it is flushed at its end, otherwise now.
func (c *Conn) enqueue(cmd *remoting.Command, sc *scope, gen uint64) error {
	c.out.Lock()
	if c.out.closed || c.out.reason != nil {
		c.out.Unlock()
		return errConnClosed
	}
	o := c.out.buf
	if o == nil {
		o = newOutbuf()
		c.out.buf = o
	}
	mark := len(o.b)
	b, err := cmd.AppendFrame(o.b, c.srv.cfg.Serialize)
	if err != nil {
		// A code or field that this encoding cannot carry: say so instead.
		b, err = c.encodeFailure(o.b[:mark], cmd, err)
	}
	o.b = b
	o.frames++
	if stuck := c.stuck.Load(); stuck > 0 {
		c.failLocked(c.setStuck(stuck + int64(len(b)-mark)))
	}
	if c.out.active || sc.isOpen(gen) {
		c.out.Unlock()
		return err
	}
	c.out.active = true
	c.out.Unlock()
	c.tr.flush(c)
	return err
}

// encodeFailure answers SYSTEM_ERROR where a response cannot be encoded; a
// request is left out.
func (c *Conn) encodeFailure(dst []byte, cmd *remoting.Command, cause error) ([]byte, error) {
	if !cmd.IsResponse() {
		return dst, cause
	}
	e := remoting.Command{
		Code: remoting.RespSystemError, Remark: "cannot encode the answer: " + cause.Error(),
		Language: cmd.Language, Version: cmd.Version, Opaque: cmd.Opaque, Flag: cmd.Flag,
	}
	out, err := e.AppendFrame(dst, c.srv.cfg.Serialize)
	if err != nil {
		return dst, err
	}
	return out, cause
}

// writeParts sends a response whose body is parts.
func (c *Conn) writeParts(cmd *remoting.Command, parts [][]byte) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	head := newOutbuf()
	b, err := cmd.AppendFrameHeader(head.b, c.srv.cfg.Serialize, n)
	if err != nil {
		parts = nil
		b, _ = c.encodeFailure(head.b[:0], cmd, err)
	}
	head.b, head.frames = b, 1
	c.srv.counts.bytesOut.Add(uint64(n))
	c.tr.writeParts(c, cmd, head, parts)
}

// flushPending writes what has been gathered, unless somebody does already.
func (c *Conn) flushPending() {
	c.out.Lock()
	if c.out.active || c.out.buf == nil {
		c.out.Unlock()
		return
	}
	c.out.active = true
	c.out.Unlock()
	c.tr.flush(c)
}

// take returns what is to be written next; with nothing left the caller is no
// longer the one who flushes.
func (c *Conn) take() *outbuf {
	c.out.Lock()
	defer c.out.Unlock()
	o := c.out.buf
	c.out.buf = nil
	if o == nil {
		c.out.active = false
	}
	return o
}

// sent counts a buffer that has been written, or left to a loop to write, and
// frees it.
func (c *Conn) sent(o *outbuf, writes int) {
	k := &c.srv.counts
	k.replies.Add(uint64(o.frames))
	k.bytesOut.Add(uint64(len(o.b)))
	k.writes.Add(uint64(writes))
	o.free()
}

// setStuck notes how many bytes the peer does not take, and returns why the
// connection must close, if it must. The caller holds c.out.
func (c *Conn) setStuck(n int64) error {
	old := c.stuck.Swap(n)
	total := c.srv.gauges.outbound.Add(n - old)
	cfg := &c.srv.cfg
	if n < cfg.OutboundSoft && c.unwritten.Load() && c.unwritten.CompareAndSwap(true, false) && cfg.OnWritable != nil {
		go cfg.OnWritable(c)
	}
	switch {
	case n >= cfg.OutboundHard:
		return &CloseError{Reason: ReasonOutboundHard}
	case n >= cfg.OutboundSoft && total >= cfg.OutboundTotal && n > old:
		return &CloseError{Reason: ReasonOutboundTotal}
	}
	return nil
}

// Send pushes cmd as a one-way request and copies what it needs of it.
func (c *Conn) Send(cmd *remoting.Command) error {
	out := *cmd
	out.Flag = out.Flag&^remoting.FlagResponse | remoting.FlagOneway
	c.originate(&out)
	return c.enqueue(&out, nil, 0)
}

func (c *Conn) originate(cmd *remoting.Command) {
	cmd.Opaque = c.srv.opaque.Add(1)
	cmd.Language = remoting.LanguageGo
	cmd.Version = remoting.Version
}

// maxCalls bounds the server's own requests that wait on one connection.
const maxCalls = 4096

// Call sends cmd as a request and waits for the answer or for ctx. The answer
// belongs to the caller.
func (c *Conn) Call(ctx context.Context, cmd *remoting.Command) (*remoting.Command, error) {
	out := *cmd
	out.Flag &^= remoting.FlagResponse | remoting.FlagOneway
	c.originate(&out)
	ch := make(chan *remoting.Command, 1)
	c.calls.Lock()
	switch {
	case c.calls.closed:
		c.calls.Unlock()
		return nil, errConnClosed
	case len(c.calls.m) >= maxCalls:
		c.calls.Unlock()
		return nil, errTooManyCalls
	case c.calls.m == nil:
		c.calls.m = map[int32]chan *remoting.Command{}
	}
	c.calls.m[out.Opaque] = ch
	c.calls.Unlock()
	defer func() {
		c.calls.Lock()
		delete(c.calls.m, out.Opaque)
		c.calls.Unlock()
	}()
	if err := c.enqueue(&out, nil, 0); err != nil {
		return nil, err
	}
	select {
	case resp, ok := <-ch:
		if !ok {
			return nil, errConnClosed
		}
		return resp, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answered hands a response to the Call that waits for it.
func (c *Conn) answered(frame []byte) {
	resp := new(remoting.Command)
	if resp.Decode(append([]byte(nil), frame...)) != nil {
		return
	}
	c.calls.Lock()
	ch := c.calls.m[resp.Opaque]
	delete(c.calls.m, resp.Opaque)
	c.calls.Unlock()
	if ch != nil {
		ch <- resp
	}
}

// connected moves an accepted connection on: its first bytes have shown what it
// is.
func (c *Conn) connected() {
	if !c.move(StateAccepted, StateConnected) {
		return
	}
	c.announced = true
	if c.srv.cfg.OnOpen != nil {
		c.srv.cfg.OnOpen(c)
	}
}

// closed ends the connection: nothing is sent or received any more. It is
// called once, by the side that reads.
func (c *Conn) closed(cause error) {
	// 1. Nothing more is appended.
	c.out.Lock()
	c.out.closed = true
	if c.out.reason == nil {
		c.out.reason = cause
	}
	reason := c.out.reason
	if o := c.out.buf; o != nil {
		c.out.buf = nil
		o.free()
	}
	c.out.Unlock()
	// 2. The bytes that were never sent and the half frame are forgotten.
	c.srv.gauges.outbound.Add(-c.stuck.Swap(0))
	c.in.drop()
	// 3. Our own requests fail.
	c.calls.Lock()
	c.calls.closed = true
	for _, ch := range c.calls.m {
		close(ch)
	}
	c.calls.m = nil
	c.calls.Unlock()
	// 4. The server forgets it, and says so.
	c.srv.forget(c, reason)
}
