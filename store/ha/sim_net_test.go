package ha_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// simNet is the network of a simulated group: streams that keep their order, as those of TCP do, with chunks that take
// their time, links that carry nothing for a while in one direction or both, and connections that are reset after some bytes.
type simNet struct {
	seed uint64
	mu   struct {
		sync.Mutex
		blocked   [simNodes][simNodes]bool // from, to
		listeners [simNodes]*simListener
		pipes     map[*simPipe]bool
		dialed    [simNodes][simNodes]uint64
		delay     time.Duration // of a chunk, at most
		cutting   bool          // connections are reset after some bytes
		cuts      int
	}
}

func newSimNet(seed uint64) *simNet {
	n := &simNet{seed: seed}
	n.mu.pipes, n.mu.delay = map[*simPipe]bool{}, time.Millisecond
	return n
}

// simWindow bounds what is on its way from a master to a slave. Reports never wait: a slave writes them under a lock.
const simWindow = 48 << 10

type simAddr struct {
	node int
	port uint64
}

func (a simAddr) Network() string { return "tcp" }
func (a simAddr) String() string  { return fmt.Sprintf("%s:%d", simHost(a.node), a.port) }

func simHost(node int) string { return fmt.Sprintf("10.0.0.%d", node+1) }

// simPipe is one direction of a connection.
type simPipe struct {
	net      *simNet
	from, to int
	window   int
	readable chan struct{}
	writable chan struct{}
	// the rest is the net's
	r      *rand.Rand
	chunks []simChunk
	size   int
	last   time.Time
	cut    int  // bytes until the connection is reset; -1: never
	over   bool // nothing more goes in
	silent bool // nothing comes out: the sender is without power
}

type simChunk struct {
	at  time.Time
	b   []byte
	end error
}

func simSignal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// put adds a chunk. Needs the net's lock.
func (p *simPipe) put(c simChunk) {
	c.at = time.Now().Add(time.Duration(1 + p.r.Int64N(int64(p.net.mu.delay))))
	if c.at.Before(p.last) {
		c.at = p.last
	}
	p.last = c.at
	p.chunks = append(p.chunks, c)
	p.size += len(c.b)
	simSignal(p.readable)
}

// end lets the reader meet err behind what is on its way. Needs the net's lock.
func (p *simPipe) end(err error) {
	if p.over {
		return
	}
	p.over = true
	p.put(simChunk{end: err})
	simSignal(p.writable)
}

// simConn is one end of a connection.
type simConn struct {
	net           *simNet
	local, remote simAddr
	in, out       *simPipe
	closed        bool // the net's, as the deadlines
	rd, wd        time.Time
}

var _ net.Conn = (*simConn)(nil)

func (c *simConn) Read(b []byte) (int, error) {
	p := c.in
	for {
		c.net.mu.Lock()
		now, until := time.Now(), c.rd
		switch {
		case c.closed:
			c.net.mu.Unlock()
			return 0, net.ErrClosed
		case !until.IsZero() && !now.Before(until):
			c.net.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case len(p.chunks) > 0 && !p.silent && !c.net.mu.blocked[p.from][p.to]:
			ch := &p.chunks[0]
			if !ch.at.After(now) {
				n, err := p.take(b)
				c.net.mu.Unlock()
				return n, err
			}
			if until.IsZero() || ch.at.Before(until) {
				until = ch.at
			}
		}
		c.net.mu.Unlock()
		simWait(p.readable, until)
	}
}

// take reads from the first chunk. Needs the net's lock.
func (p *simPipe) take(b []byte) (int, error) {
	ch := &p.chunks[0]
	if ch.end != nil {
		return 0, ch.end
	}
	n := copy(b, ch.b)
	if ch.b = ch.b[n:]; len(ch.b) == 0 {
		p.chunks = p.chunks[1:]
	}
	p.size -= n
	simSignal(p.writable)
	return n, nil
}

// simWait waits for a signal, or until a time unless that is zero.
func simWait(ch chan struct{}, until time.Time) {
	if until.IsZero() {
		<-ch
		return
	}
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-ch:
	case <-t.C:
	}
}

func (c *simConn) Write(b []byte) (int, error) {
	p := c.out
	for {
		c.net.mu.Lock()
		until := c.wd
		switch {
		case c.closed:
			c.net.mu.Unlock()
			return 0, net.ErrClosed
		case p.over:
			c.net.mu.Unlock()
			return 0, syscall.EPIPE
		case p.window == 0 || p.size < p.window:
			n, err := c.send(b)
			c.net.mu.Unlock()
			return n, err
		case !until.IsZero() && !time.Now().Before(until):
			c.net.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		}
		c.net.mu.Unlock()
		simWait(p.writable, until)
	}
}

// send puts bytes on their way, maybe only some of them. Needs the net's lock.
func (c *simConn) send(b []byte) (int, error) {
	p := c.out
	if p.cut < 0 || len(b) < p.cut {
		if p.cut >= 0 {
			p.cut -= len(b)
		}
		p.put(simChunk{b: append([]byte(nil), b...)})
		return len(b), nil
	}
	c.net.mu.cuts++
	n := p.cut
	p.put(simChunk{b: append([]byte(nil), b[:n]...)})
	p.end(syscall.ECONNRESET)
	c.in.end(syscall.ECONNRESET)
	return n, syscall.ECONNRESET
}

func (c *simConn) Close() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	c.out.end(io.EOF)
	c.in.over = true // the other side writes into the void
	simSignal(c.in.readable)
	simSignal(c.in.writable)
	simSignal(c.out.writable)
	delete(c.net.mu.pipes, c.in)
	return nil
}

func (c *simConn) LocalAddr() net.Addr  { return c.local }
func (c *simConn) RemoteAddr() net.Addr { return c.remote }

func (c *simConn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *simConn) SetReadDeadline(t time.Time) error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.rd = t
	return nil
}

func (c *simConn) SetWriteDeadline(t time.Time) error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.wd = t
	return nil
}

// simListener is a replication port.
type simListener struct {
	net    *simNet
	node   int
	ch     chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (n *simNet) listen(node int) *simListener {
	l := &simListener{net: n, node: node, ch: make(chan net.Conn, 16), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.listeners[node] = l
	return l
}

func (l *simListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ch:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *simListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.net.mu.Lock()
		defer l.net.mu.Unlock()
		if l.net.mu.listeners[l.node] == l {
			l.net.mu.listeners[l.node] = nil
		}
	})
	return nil
}

func (l *simListener) Addr() net.Addr { return simAddr{l.node, 10912} }

// dial connects two nodes.
func (n *simNet) dial(ctx context.Context, from, to int) (net.Conn, error) {
	n.mu.Lock()
	n.mu.dialed[from][to]++
	count := n.mu.dialed[from][to]
	r := rand.New(rand.NewPCG(n.seed, uint64(from)<<48|uint64(to)<<40|count))
	wait := time.Duration(1 + r.Int64N(int64(n.mu.delay)))
	if n.mu.blocked[from][to] || n.mu.blocked[to][from] {
		wait = simSilence / 4
	}
	n.mu.Unlock()
	if err := simSleep(ctx, wait); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.mu.listeners[to]
	switch {
	case n.mu.blocked[from][to] || n.mu.blocked[to][from]:
		return nil, os.ErrDeadlineExceeded
	case l == nil:
		return nil, syscall.ECONNREFUSED
	}
	up := &simPipe{net: n, from: from, to: to, readable: make(chan struct{}, 1), writable: make(chan struct{}, 1), r: r, cut: -1}
	down := &simPipe{net: n, from: to, to: from, window: simWindow, readable: make(chan struct{}, 1), writable: make(chan struct{}, 1), cut: -1}
	down.r = rand.New(rand.NewPCG(n.seed, 1<<60|uint64(from)<<48|uint64(to)<<40|count))
	if n.mu.cutting {
		up.cut, down.cut = 9+r.IntN(400), 13+r.IntN(12_000)
	}
	mine, theirs := simAddr{from, 40_000 + count}, simAddr{to, 10912}
	select {
	case l.ch <- &simConn{net: n, local: theirs, remote: mine, in: up, out: down}:
	default:
		return nil, syscall.ECONNREFUSED
	}
	n.mu.pipes[up], n.mu.pipes[down] = true, true
	return &simConn{net: n, local: mine, remote: theirs, in: down, out: up}, nil
}

func simSleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// drop is the end of a node's process: the other side of its connections hears of it, or, silently, nothing until revive.
func (n *simNet) drop(node int, silent bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for p := range n.mu.pipes {
		if p.from == node {
			p.silent = silent
			p.end(syscall.ECONNRESET)
			if silent {
				continue
			}
			delete(n.mu.pipes, p)
		}
	}
}

// revive lets the other side of connections of before learn that they have ended.
func (n *simNet) revive(node int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for p := range n.mu.pipes {
		if p.from == node && p.silent {
			p.silent = false
			simSignal(p.readable)
			delete(n.mu.pipes, p)
		}
	}
}

// block lets a link carry nothing, or carry again what is on its way.
func (n *simNet) block(from, to int, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.blocked[from][to] = on
	if on {
		return
	}
	for p := range n.mu.pipes {
		if p.from == from && p.to == to {
			simSignal(p.readable)
		}
	}
}

// reachable reports whether two nodes can ask each other.
func (n *simNet) reachable(a, b int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.mu.blocked[a][b] && !n.mu.blocked[b][a]
}

func (n *simNet) heal() {
	for a := range simNodes {
		for b := range simNodes {
			n.block(a, b, false)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.cutting, n.mu.delay = false, time.Millisecond
}
