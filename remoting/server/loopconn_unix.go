//go:build linux || darwin

package server

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"

	"mqx/remoting"
)

const (
	// maxIovec is the most slices of one writev; the system's limit is 1024.
	maxIovec = 1000
	// keptIovec is what a connection keeps of its scratch for writev.
	keptIovec = 128
	// maxFlushRounds is how often one goroutine writes what others append
	// meanwhile, before it leaves the rest to a goroutine of its own.
	maxFlushRounds = 16
)

// loopConn is the transport of a connection on an event loop. Answers are
// written by whoever has them, with a system call that does not wait; only
// what the kernel does not take is left to the loop.
type loopConn struct {
	gc     gnet.Conn
	turn   *turn
	opened atomic.Bool

	// wmu is held during a write. Order: wmu before Conn.out.
	wmu struct {
		sync.Mutex
		blocked bool   // the kernel took not all: only the loop writes until it has
		spill   []byte // the rest of a frame, goes before Conn.out.buf
		held    int64  // bytes in gnet's buffer when the loop looked last
		iov     [][]byte
		vecs    vectors
	}
	fd    int  // owned by wmu, -1 once closed
	woken bool // the loop will look; owned by Conn.out
}

// shut lets the loop close the connection. Conn.out, which the caller holds,
// keeps the loop from ending meanwhile: OnClose waits for it.
func (t *loopConn) shut(c *Conn) {
	if t.gc != nil {
		_ = t.gc.Close()
	}
}

// wake lets the loop look at the connection. The caller holds c.out.
func (t *loopConn) wake(c *Conn) {
	if c.out.closed || t.woken {
		return
	}
	t.woken = true
	_ = t.gc.Wake(nil)
}

func (t *loopConn) nudge(c *Conn) {
	c.out.Lock()
	t.wake(c)
	c.out.Unlock()
}

// rest says that the loop has looked.
func (t *loopConn) rest(c *Conn) {
	c.out.Lock()
	t.woken = false
	c.out.Unlock()
}

func (t *loopConn) flush(c *Conn) {
	t.wmu.Lock()
	defer t.wmu.Unlock()
	for round := 0; ; round++ {
		if round == maxFlushRounds {
			go t.flush(c)
			return
		}
		if t.wmu.blocked {
			t.leave(c)
			return
		}
		o := c.take()
		if o == nil {
			return
		}
		if t.fd < 0 {
			o.free()
			continue
		}
		n, err := writeSome(t.fd, o.b)
		if n > 0 {
			c.alive.Store(true)
		}
		if err == nil && n < len(o.b) {
			t.block(c, append([]byte(nil), o.b[n:]...))
		}
		c.sent(o, 1)
		if err != nil {
			c.fail(&CloseError{Reason: ReasonPeer, Err: os.NewSyscallError("write", err)})
		}
	}
}

// leave lets the loop write what is pending. Called with wmu held by who
// flushes.
func (t *loopConn) leave(c *Conn) {
	c.out.Lock()
	c.out.active = false
	t.measure(c)
	t.wake(c)
	c.out.Unlock()
}

// measure notes what the peer does not take. Called with wmu and c.out held.
func (t *loopConn) measure(c *Conn) {
	n := t.wmu.held + int64(len(t.wmu.spill))
	if c.out.buf != nil && n > 0 {
		n += int64(len(c.out.buf.b))
	}
	c.failLocked(c.setStuck(n))
}

// block keeps the rest of a frame for the loop. Called with wmu held.
func (t *loopConn) block(c *Conn, rest []byte) {
	t.wmu.blocked = true
	t.wmu.spill = rest
	c.out.Lock()
	t.measure(c)
	t.wake(c)
	c.out.Unlock()
	c.srv.stick(c)
}

// resume runs on the loop of a connection whose peer is slow: what is pending
// goes to gnet, which writes it as the peer reads.
func (t *loopConn) resume(c *Conn) {
	t.rest(c)
	t.wmu.Lock()
	if !t.wmu.blocked || t.fd < 0 {
		t.wmu.Unlock()
		c.flushPending()
		return
	}
	spill := t.wmu.spill
	t.wmu.spill = nil
	c.out.Lock()
	o := c.out.buf
	c.out.buf = nil
	c.out.Unlock()
	// Nobody else writes while blocked is set, and gnet may close the
	// connection in Write, for which OnClose wants wmu.
	t.wmu.Unlock()
	before := t.wmu.held
	written := int64(len(spill))
	if len(spill) > 0 {
		_, _ = t.gc.Write(spill)
	}
	if o != nil {
		written += int64(len(o.b))
		_, _ = t.gc.Write(o.b)
		c.sent(o, 1)
	}
	t.wmu.Lock()
	if t.fd < 0 {
		t.wmu.Unlock()
		return
	}
	t.wmu.held = int64(t.gc.OutboundBuffered())
	if t.wmu.held < before+written {
		c.alive.Store(true)
		c.in.unread = 0
	}
	c.out.Lock()
	t.wmu.blocked = t.wmu.held > 0
	t.measure(c)
	c.out.Unlock()
	blocked := t.wmu.blocked
	t.wmu.Unlock()
	if !blocked {
		c.srv.unstick(c)
		c.flushPending()
	}
}

// writeSome writes what the kernel takes.
func writeSome(fd int, b []byte) (int, error) {
	n, err := unix.Write(fd, b)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return 0, nil
	}
	return max(n, 0), err
}

func (t *loopConn) writeParts(c *Conn, cmd *remoting.Command, head *outbuf, parts [][]byte) {
	t.wmu.Lock()
	defer t.wmu.Unlock()
	c.out.Lock()
	if t.fd < 0 || c.out.reason != nil {
		c.out.Unlock()
		head.free()
		return
	}
	pending := c.out.buf
	if t.wmu.blocked {
		c.appendParts(cmd, head, parts)
		t.measure(c)
		t.wake(c)
		c.out.Unlock()
		return
	}
	c.out.buf = nil
	c.out.Unlock()
	iov := t.wmu.iov[:0]
	if pending != nil {
		iov = append(iov, pending.b)
	}
	iov = append(append(iov, head.b), parts...)
	writes, err := t.writev(c, iov)
	clear(iov)
	if t.wmu.iov = nil; cap(iov) <= keptIovec {
		t.wmu.iov = iov[:0]
	}
	if pending != nil {
		c.sent(pending, 0)
	}
	c.sent(head, writes)
	if err != nil {
		c.fail(err)
	}
}

// writev writes iov, which it changes, and leaves a copy of what the kernel
// does not take to the loop. Called with wmu held.
func (t *loopConn) writev(c *Conn, iov [][]byte) (writes int, err error) {
	for len(iov) > 0 {
		batch := iov[:min(len(iov), maxIovec)]
		want := 0
		for _, p := range batch {
			want += len(p)
		}
		n, err := t.wmu.vecs.writev(t.fd, batch)
		writes++
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			n, err = 0, nil
		}
		if err != nil {
			reason := ReasonPeer
			if errors.Is(err, unix.EFAULT) {
				reason = ReasonUnreadable
			}
			return writes, &CloseError{Reason: reason, Err: os.NewSyscallError("writev", err)}
		}
		if n > 0 {
			c.alive.Store(true)
		}
		if n == want {
			iov = iov[len(batch):]
			continue
		}
		return writes, t.spillRest(c, iov, n)
	}
	return writes, nil
}

// spillRest copies what is left of iov after n bytes.
func (t *loopConn) spillRest(c *Conn, iov [][]byte, n int) error {
	rest := 0
	for i, p := range iov {
		cut := min(n, len(p))
		iov[i], n = p[cut:], n-cut
		rest += len(iov[i])
	}
	if int64(rest) >= c.srv.cfg.OutboundHard {
		return &CloseError{Reason: ReasonOutboundHard}
	}
	spill, err := gatherCopy(make([]byte, 0, rest), iov)
	if err != nil {
		return &CloseError{Reason: ReasonUnreadable, Err: err}
	}
	t.block(c, spill)
	return nil
}
