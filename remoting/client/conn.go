package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mqx/remoting"
)

const (
	// maxUnsent bounds the bytes of one connection that wait to be sent.
	maxUnsent = 64 << 20
	// keptUnsent is what a connection keeps of a buffer that was sent.
	keptUnsent = 256 << 10
	// silence is how long a peer that owes answers may say nothing before a
	// time-out also closes the connection.
	silence = 3 * time.Second
)

// conn is a connection to a peer: requests are appended to a buffer, and
// whoever finds nobody writing writes for all.
type conn struct {
	peer *peer
	slot *slot
	nc   net.Conn
	raw  net.Conn // the socket under nc
	now  func() int64
	try  *tryWriter // nil: only a goroutine may write, since it may wait

	mu struct {
		sync.Mutex
		table   table
		buf     []byte // frames that wait to be sent
		spare   []byte
		active  bool // somebody writes and takes what is appended meanwhile
		hold    bool // the reader calls back: what that appends is sent together
		closed  error
		why     error // the reason it is about to close for, the first counts
		timer   *time.Timer
		timerAt int64
	}
	lastRead atomic.Int64
	lastUse  atomic.Int64
}

func startConn(p *peer, s *slot, nc net.Conn) (*conn, error) {
	c := &conn{peer: p, slot: s, nc: nc, raw: nc, now: p.client.now}
	if tc, ok := nc.(*tls.Conn); ok {
		c.raw = tc.NetConn()
	}
	c.try = newTryWriter(nc)
	c.mu.table.max = p.client.cfg.MaxPending
	t := c.now()
	c.lastRead.Store(t)
	c.lastUse.Store(t)
	if err := p.client.startReader(c); err != nil {
		_ = nc.Close()
		return nil, err
	}
	if d := p.client.cfg.IdleTimeout; d > 0 {
		c.mu.Lock()
		c.armLocked(t + int64(d))
		c.mu.Unlock()
	}
	return c, nil
}

func (c *conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endedLocked() != nil
}

// endedLocked returns why nothing can be sent any more, nil when it can.
func (c *conn) endedLocked() error {
	if c.mu.closed != nil {
		return c.mu.closed
	}
	return c.mu.why
}

// send appends a request and registers who gets its answer. A time-out of 0
// means that the caller has his own and abandons it.
func (c *conn) send(req *remoting.Command, timeout time.Duration, done func(*remoting.Command, error)) (ref int32, err error) {
	t := c.now()
	deadline := int64(0)
	if timeout > 0 {
		deadline = t + int64(timeout)
	}
	c.mu.Lock()
	if err := c.roomLocked(); err != nil {
		c.mu.Unlock()
		return 0, err
	}
	ref, ok := c.mu.table.add(pending{done: done, sent: t, deadline: deadline, code: req.Code})
	if !ok {
		c.mu.Unlock()
		return 0, ErrTooManyPending
	}
	out := *req
	out.Opaque = ref
	out.Flag &^= remoting.FlagResponse | remoting.FlagOneway
	if err := c.appendLocked(&out); err != nil {
		c.mu.table.take(ref)
		c.mu.Unlock()
		return 0, err
	}
	if deadline != 0 {
		c.armLocked(deadline)
	}
	c.lastUse.Store(t)
	c.kick(c.mu.table.n)
	return ref, nil
}

// push appends a command that gets no answer: a one-way request, or our answer
// to the peer's request.
func (c *conn) push(cmd *remoting.Command) error {
	out := *cmd
	c.mu.Lock()
	if err := c.roomLocked(); err != nil {
		c.mu.Unlock()
		return err
	}
	if !out.IsResponse() {
		out.Flag |= remoting.FlagOneway
		out.Opaque = c.mu.table.strange()
	}
	if err := c.appendLocked(&out); err != nil {
		c.mu.Unlock()
		return err
	}
	c.lastUse.Store(c.now())
	c.kick(2)
	return nil
}

func (c *conn) roomLocked() error {
	if reason := c.endedLocked(); reason != nil {
		return c.closedError(reason)
	}
	if len(c.mu.buf) > maxUnsent {
		return ErrTooManyPending
	}
	return nil
}

func (c *conn) appendLocked(cmd *remoting.Command) error {
	b, err := cmd.AppendFrame(c.mu.buf, c.peer.client.cfg.Serialize)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", remoting.RequestName(cmd.Code), err)
	}
	c.mu.buf = b
	return nil
}

// kick sees to it that what was appended is written. It is called with mu held
// and gives it up. Where several requests are under way, others are let run
// first: what they append shares the system call.
func (c *conn) kick(underway int) {
	if c.mu.active || c.mu.hold {
		c.mu.Unlock()
		return
	}
	c.mu.active = true
	c.mu.Unlock()
	if underway > 1 {
		runtime.Gosched()
	}
	c.flush()
}

// flush writes what waits. The caller has set active.
func (c *conn) flush() {
	for {
		b := c.take()
		if b == nil {
			return
		}
		n := 0
		if c.try != nil {
			var err error
			if n, err = c.try.write(b); err != nil {
				c.fail(err)
			}
		}
		if n == len(b) {
			c.give(b)
			continue
		}
		// The rest waits for the peer, for which only a goroutine may.
		if c.peer.client.start(func() { c.finish(b, n) }) != nil {
			c.fail(ErrClosed)
		}
		return
	}
}

// finish writes b[n:] and what is appended meanwhile, waiting for the peer.
func (c *conn) finish(b []byte, n int) {
	for b != nil {
		if _, err := c.nc.Write(b[n:]); err != nil {
			c.fail(err)
		}
		c.give(b)
		b, n = c.take(), 0
	}
}

// take returns what is to be written next, nil when there is nothing: the
// caller is then no longer the one who writes.
func (c *conn) take() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.mu.buf
	if len(b) == 0 || c.mu.closed != nil {
		c.mu.active = false
		return nil
	}
	c.mu.buf, c.mu.spare = c.mu.spare[:0], nil
	return b
}

// give keeps a buffer that was written for the next.
func (c *conn) give(b []byte) {
	if cap(b) > keptUnsent {
		return
	}
	c.mu.Lock()
	c.mu.spare = b[:0]
	c.mu.Unlock()
}

// abandon forgets a request whose caller does not wait any more. It returns
// false when the answer is being delivered.
func (c *conn) abandon(ref int32) bool {
	c.mu.Lock()
	call, ok := c.mu.table.take(ref)
	silent := ok && c.silentLocked(call.sent)
	c.mu.Unlock()
	if silent {
		c.fail(errSilent)
	}
	return ok
}

// silentLocked reports whether the peer has said nothing since a request was
// sent, for so long that the connection is taken for dead.
func (c *conn) silentLocked(sent int64) bool {
	last := c.lastRead.Load()
	return last < sent && c.now()-max(last, sent) >= int64(silence)
}

// armLocked lets expire run at t at the latest. There is one timer a
// connection, which mostly finds that it came early.
func (c *conn) armLocked(t int64) {
	if c.mu.closed != nil || c.mu.timerAt != 0 && c.mu.timerAt <= t {
		return
	}
	c.mu.timerAt = t
	d := time.Duration(max(t-c.now(), 0))
	if c.mu.timer == nil {
		c.mu.timer = time.AfterFunc(d, c.expire)
		return
	}
	c.mu.timer.Reset(d)
}

// expire ends requests whose time is over, and a connection that is not used.
func (c *conn) expire() {
	cfg := &c.peer.client.cfg
	now := c.now()
	c.mu.Lock()
	if c.mu.closed != nil {
		c.mu.Unlock()
		return
	}
	late, next := c.mu.table.expire(now)
	silent := false
	for _, p := range late {
		silent = silent || c.silentLocked(p.sent)
	}
	idle := false
	if d := int64(cfg.IdleTimeout); d > 0 && c.mu.table.n == 0 {
		at := max(c.lastUse.Load(), c.lastRead.Load()) + d
		idle = at <= now
		if next == 0 || at < next {
			next = at
		}
	} else if d > 0 && next == 0 {
		next = now + d
	}
	c.mu.timerAt = 0
	if next != 0 && !idle {
		c.armLocked(next)
	}
	c.mu.Unlock()
	for _, p := range late {
		p.done(nil, &TimeoutError{Addr: c.peer.addr, Request: remoting.RequestName(p.code), After: time.Duration(now - p.sent)})
	}
	switch {
	case silent:
		c.fail(errSilent)
	case idle:
		c.fail(errIdle)
	}
}

// fail ends the connection: the reader, which this wakes, tells those who wait.
func (c *conn) fail(reason error) {
	c.mu.Lock()
	if c.mu.why == nil {
		c.mu.why = reason
	}
	c.mu.Unlock()
	c.slot.cur.CompareAndSwap(c, nil)
	_ = c.raw.Close()
}

// end runs on the reader when nothing more comes; every request that waits
// gets the error.
func (c *conn) end(reason error) {
	c.mu.Lock()
	if c.mu.why != nil {
		reason = c.mu.why
	}
	c.mu.closed = reason
	waiting := c.mu.table.clear()
	c.mu.buf, c.mu.spare = nil, nil
	if c.mu.timer != nil {
		c.mu.timer.Stop()
	}
	c.mu.Unlock()
	c.slot.cur.CompareAndSwap(c, nil)
	_ = c.raw.Close()
	err := c.closedError(reason)
	for _, p := range waiting {
		p.done(nil, err)
	}
	if f := c.peer.client.cfg.OnClose; f != nil {
		f(c.peer.addr, reason)
	}
}

// closedError is what a request gets whose connection has closed.
func (c *conn) closedError(reason error) error {
	var refused *remoting.ResponseError
	switch {
	case errors.Is(reason, ErrClosed):
		return ErrClosed
	case errors.As(reason, &refused):
		return &ConnectError{Addr: c.peer.addr, Err: reason}
	}
	return &ClosedError{Addr: c.peer.addr, Err: reason}
}

const (
	readSize = 64 << 10
	// sharedFrame is the size up to which answers that come together share an
	// allocation.
	sharedFrame = 8 << 10
)

// read takes answers and the peer's requests until the connection ends.
func (c *conn) read() {
	buf := make([]byte, 0, readSize)
	var batch []delivery
	for {
		n, err := c.nc.Read(buf[len(buf):cap(buf)])
		if n > 0 {
			c.lastRead.Store(c.now())
			buf = buf[:len(buf)+n]
			var used, need int
			batch, used, need, err = c.cut(batch[:0], buf, err)
			c.deliver(batch)
			clear(batch)
			buf = makeRoom(buf, used, need)
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

// makeRoom keeps what has not been used at the start of a buffer that has room
// for a frame of need bytes.
func makeRoom(buf []byte, used, need int) []byte {
	rest := buf[used:]
	switch {
	case need > cap(buf):
		return append(make([]byte, 0, need), rest...)
	case cap(buf) > readSize && need <= readSize:
		return append(make([]byte, 0, readSize), rest...)
	}
	return buf[:copy(buf[:cap(buf)], rest)]
}

// delivery is an answer with the one who gets it, or a request of the peer.
type delivery struct {
	cmd  *remoting.Command
	done func(*remoting.Command, error)
}

// cut decodes the whole frames in buf into commands that own their bytes. It
// returns how much of buf it used and how long the next frame is. err is that
// of the read, which a fault in a frame replaces.
func (c *conn) cut(batch []delivery, buf []byte, err error) ([]delivery, int, int, error) {
	end, need, bad := wholeFrames(buf, c.peer.client.cfg.MaxFrame)
	if bad != nil {
		err = bad
	}
	var shared []byte
	for rest := buf[:end]; len(rest) > 0; {
		n, _, _ := remoting.FrameLen(rest)
		frame := rest[:n]
		rest = rest[n:]
		var own []byte
		if n > sharedFrame {
			own = slices.Clone(frame)
		} else {
			if cap(shared)-len(shared) < n {
				shared = make([]byte, 0, min(n+len(rest), max(readSize, n)))
			}
			at := len(shared)
			shared = append(shared, frame...)
			own = shared[at : at+n : at+n]
		}
		cmd := newAnswer()
		if bad := cmd.DecodeReply(own); bad != nil {
			return batch, end, 0, bad
		}
		batch = append(batch, delivery{cmd: cmd})
	}
	return batch, end, need, err
}

// answer is a command with room for the fields of most answers, so that one
// allocation holds both.
type answer struct {
	remoting.Command
	fields [6]remoting.Field
}

func newAnswer() *remoting.Command {
	a := new(answer)
	a.Fields = a.fields[:0]
	return &a.Command
}

// wholeFrames returns where the last whole frame of b ends and the length of
// the frame that starts there, 0 when that is not known yet.
func wholeFrames(b []byte, maxFrame int) (end, need int, err error) {
	for {
		n, ok, err := remoting.FrameLen(b[end:])
		if err == nil && ok && n > maxFrame {
			err = remoting.ErrFrameTooLarge
		}
		if err != nil || !ok {
			return end, 0, err
		}
		if n > len(b)-end {
			return end, n, nil
		}
		end += n
	}
}

// deliver hands out what one read has brought. What the callbacks send
// meanwhile on this connection is written together afterwards.
func (c *conn) deliver(batch []delivery) {
	if len(batch) == 0 {
		return
	}
	c.mu.Lock()
	for i := range batch {
		d := &batch[i]
		if !d.cmd.IsResponse() {
			continue
		}
		if call, ok := c.mu.table.take(d.cmd.Opaque); ok {
			d.done = call.done
		} else if d.cmd.Opaque < 0 && d.cmd.Code == remoting.RespSystemBusy {
			// The peer says why it will close the connection.
			c.mu.why = &remoting.ResponseError{Code: d.cmd.Code, Remark: d.cmd.Remark, Addr: c.peer.addr}
		}
	}
	c.mu.hold = true
	c.mu.Unlock()
	for _, d := range batch {
		switch {
		case d.done != nil:
			d.done(d.cmd, nil)
		case !d.cmd.IsResponse():
			c.serve(d.cmd)
		}
	}
	c.mu.Lock()
	c.mu.hold = false
	if len(c.mu.buf) == 0 || c.mu.active {
		c.mu.Unlock()
		return
	}
	c.mu.active = true
	c.mu.Unlock()
	c.flush()
}

// serve answers a request of the peer on a goroutine of its own.
func (c *conn) serve(req *remoting.Command) {
	cl := c.peer.client
	reply := func(resp *remoting.Command) {
		if req.IsOneway() {
			return
		}
		resp.Opaque = req.Opaque
		resp.Flag = resp.Flag&^remoting.FlagOneway | remoting.FlagResponse
		_ = c.push(resp)
	}
	if cl.cfg.OnRequest == nil {
		reply(remoting.NewResponse(req, remoting.RespRequestCodeNotSupported, fmt.Sprintf(" request type %d not supported", req.Code)))
		return
	}
	select {
	case cl.handlers <- struct{}{}:
	default:
		reply(remoting.NewResponse(req, remoting.RespSystemBusy, "[OVERLOAD]system busy, start flow control for a while"))
		return
	}
	err := cl.start(func() {
		defer func() { <-cl.handlers }()
		resp := cl.cfg.OnRequest(c.peer.addr, req)
		if resp == nil {
			resp = remoting.NewResponse(req, remoting.RespSystemError, "request was not served")
		}
		reply(resp)
	})
	if err != nil {
		<-cl.handlers
	}
}
