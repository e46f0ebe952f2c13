package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"mqx/remoting"
)

// loadSource makes the requests of one connection and takes the answers. It belongs to
// the connection's goroutine.
type loadSource interface {
	// build appends the next request of a slot; done says that there is none for now.
	build(dst []byte, slot int, opaque int32, nowMs int64) (out []byte, done bool)
	// answered takes an answer with code and returns the messages and bytes it stands
	// for; failed says what is wrong with it.
	answered(slot int, code int32, header, body []byte) (messages int, bytes int64, failed string)
	// unknown: the connection broke before the answer of a slot.
	unknown(slot int)
}

// loadConn is a pipelined connection with one goroutine: it reads what there is, and
// answers every answer in it with a new request, all in one write.
type loadConn struct {
	run    *loadRun
	addr   string
	source loadSource
	slots  []loadSlot
	free   []int // slots without a request

	hist    *hdrhistogram.Histogram
	errors  map[string]int64
	counted loadCounters // of the time measured
	// Totals with the warm-up, for the progress.
	totalMessages, totalErrors atomic.Int64

	in      []byte
	filled  int // bytes of in
	out     []byte
	scratch remoting.Command
	round   int64 // requests built
}

type loadSlot struct {
	opaque int32
	sent   time.Duration // on the run's clock
	busy   bool
}

type loadCounters struct {
	requests, messages, bytes int64
}

// Sizes of a connection's buffers.
const (
	loadReadBuffer = 256 << 10
	histMax        = 60_000_000 // µs
)

func newLoadConn(run *loadRun, addr string, source loadSource, slots int) *loadConn {
	c := &loadConn{
		run: run, addr: addr, source: source, slots: make([]loadSlot, slots), errors: map[string]int64{},
		hist: hdrhistogram.New(1, histMax, 3), in: make([]byte, loadReadBuffer),
	}
	return c
}

// Waits between attempts to connect, and how many in a row may fail.
const (
	reconnectWait = 100 * time.Millisecond
	maxReconnects = 50
)

// work keeps the connection busy until the run ends.
func (c *loadConn) work(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil && !c.run.over() {
		err := c.session(ctx, &failures)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			break
		}
		c.fail(err.Error(), 1)
		failures++
		if failures > maxReconnects {
			return fmt.Errorf("cannot keep a connection to %q: %w", c.addr, err)
		}
		sleep(ctx, reconnectWait)
	}
	return ctx.Err()
}

func (c *loadConn) dial(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: DefaultTimeout}
	nc, err := d.DialContext(ctx, "tcp", c.addr)
	if err != nil || c.run.cfg.TLS == nil {
		return nc, err
	}
	t := tls.Client(nc, c.run.cfg.TLS)
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return t, nil
}

// session is the life of one TCP connection. It returns nil when there is nothing more
// to do.
func (c *loadConn) session(ctx context.Context, failures *int) error {
	nc, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = nc.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	defer c.abandon()
	c.free = c.free[:0]
	for i := range c.slots {
		c.slots[i].busy = false
		c.free = append(c.free, i)
	}
	c.filled = 0
	var deadlineAt time.Duration
	for {
		now := c.run.now()
		if now >= deadlineAt { // renewed now and then: a silent peer ends the session
			deadlineAt = now + c.run.cfg.Timeout/4
			if err := nc.SetDeadline(time.Now().Add(c.run.cfg.Timeout + c.run.cfg.Timeout/4)); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := c.refill(nc, now); err != nil {
			return err
		}
		if len(c.free) == len(c.slots) {
			return nil
		}
		n, err := nc.Read(c.in[c.filled:])
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
				return fmt.Errorf("no answer within %v", c.run.cfg.Timeout)
			}
			return err
		}
		c.filled += n
		good, err := c.take(c.run.now())
		if err != nil {
			return err
		}
		if good {
			*failures = 0
		}
	}
}

// abandon tells the source of the requests that will not be answered.
func (c *loadConn) abandon() {
	for i := range c.slots {
		if c.slots[i].busy {
			c.slots[i].busy = false
			c.source.unknown(i)
		}
	}
}

// refill sends a request for each free slot, all in one write.
func (c *loadConn) refill(nc net.Conn, now time.Duration) error {
	if len(c.free) == 0 || c.run.over() {
		return nil
	}
	c.out = c.out[:0]
	nowMs := c.run.startMs + now.Milliseconds()
	kept := c.free[:0]
	for _, slot := range c.free {
		if !c.run.takeOne() {
			kept = append(kept, slot)
			continue
		}
		s := &c.slots[slot]
		c.round++
		n := int64(len(c.slots))
		s.opaque = int32(firstOpaque + c.round%(opaqueSpan/n)*n + int64(slot))
		start := len(c.out)
		out, done := c.source.build(c.out, slot, s.opaque, nowMs)
		if done {
			c.run.giveBack()
			kept = append(kept, slot)
			continue
		}
		c.out = out
		if cred := c.run.cfg.Credentials; cred != nil {
			signed, err := sign(c.out[start:], c.run.cfg.Serialize, cred)
			if err != nil {
				return err
			}
			c.out = append(c.out[:start], signed...)
		}
		s.busy, s.sent = true, now
	}
	c.free = kept
	if len(c.out) == 0 {
		return nil
	}
	_, err := nc.Write(c.out)
	return err
}

// take reads the whole frames in c.in.
func (c *loadConn) take(now time.Duration) (good bool, err error) {
	at := 0
	for {
		n, ok, err := remoting.FrameLen(c.in[at:c.filled])
		if err != nil {
			return good, err
		}
		if !ok || at+n > c.filled {
			if ok && n > len(c.in) {
				c.in = append(make([]byte, 0, n+loadReadBuffer), c.in[:c.filled]...)[:n+loadReadBuffer]
			}
			break
		}
		g, err := c.answer(c.in[at:at+n], now)
		if err != nil {
			return good, err
		}
		good = good || g
		at += n
	}
	c.filled = copy(c.in, c.in[at:c.filled])
	return good, nil
}

// answer takes one answer.
func (c *loadConn) answer(frame []byte, now time.Duration) (good bool, err error) {
	code, opaque, header, body, err := answerHead(frame, &c.scratch)
	if err != nil {
		return false, err
	}
	slot := int(opaque-firstOpaque) % len(c.slots)
	if slot < 0 || !c.slots[slot].busy || c.slots[slot].opaque != opaque {
		return false, nil // a request of the broker, or an answer nobody waits for
	}
	s := &c.slots[slot]
	s.busy = false
	c.free = append(c.free, slot)
	messages, bytes, failed := c.source.answered(slot, code, header, body)
	if failed != "" {
		if code != 0 && c.scratch.Remark != "" && c.scratch.Opaque == opaque {
			failed += ": " + shorten(c.scratch.Remark)
		}
		c.fail(failed, 0)
	}
	c.totalMessages.Add(int64(messages))
	if c.run.measures(now) && (messages > 0 || failed == "") {
		c.counted.requests++
		c.counted.messages += int64(messages)
		c.counted.bytes += bytes
		if err := c.hist.RecordValue(min(max((now-s.sent).Microseconds(), 1), histMax)); err != nil {
			return false, err
		}
	}
	return failed == "", nil
}

// fail counts a failure. Failures in a row without a pause would only burn the CPU.
func (c *loadConn) fail(text string, broken int) {
	c.errors[text]++
	c.totalErrors.Add(1)
	if broken == 0 && c.errors[text]%64 == 0 {
		time.Sleep(time.Millisecond)
	}
}

// shorten cuts a remark to what helps to tell failures apart.
func shorten(s string) string {
	const most = 160
	for i, r := range s {
		if i > most || r == '\n' {
			return s[:i]
		}
	}
	return s
}
