package client

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// After a failed dial the next is not tried before a pause has passed, that
// grows from minBackoff to maxBackoff; requests in between fail at once with
// the same error.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = time.Second
)

// peer is one address with its connections.
type peer struct {
	client *Client
	addr   string
	next   atomic.Uint32
	dials  atomic.Int32 // under way
	slots  []slot
}

// slot is the place of one connection.
type slot struct {
	cur atomic.Pointer[conn] // nil or an open one
	mu  struct {
		sync.Mutex
		dialing  *dial
		failed   error // of the last dial
		failures int
		notBef   time.Time
	}
}

// dial is one attempt that all who want the connection wait for.
type dial struct {
	done chan struct{}
	conn *conn
	err  error
}

func newPeer(c *Client, addr string) *peer {
	return &peer{client: c, addr: addr, slots: make([]slot, c.cfg.Connections)}
}

// pick returns the slot whose turn it is.
func (p *peer) pick() *slot {
	if len(p.slots) == 1 {
		return &p.slots[0]
	}
	return &p.slots[p.next.Add(1)%uint32(len(p.slots))]
}

// get returns the connection of a slot, dialling when there is none. A dial
// goes on when the one who wanted it gives up.
func (p *peer) get(ctx context.Context, s *slot) (*conn, error) {
	if cn := s.cur.Load(); cn != nil {
		return cn, nil
	}
	s.mu.Lock()
	if cn := s.cur.Load(); cn != nil {
		s.mu.Unlock()
		return cn, nil
	}
	d := s.mu.dialing
	if d == nil {
		if time.Now().Before(s.mu.notBef) {
			err := s.mu.failed
			s.mu.Unlock()
			return nil, err
		}
		d = &dial{done: make(chan struct{})}
		p.dials.Add(1)
		if err := p.client.start(func() { p.dial(s, d) }); err != nil {
			p.dials.Add(-1)
			s.mu.Unlock()
			return nil, err
		}
		s.mu.dialing = d
	}
	s.mu.Unlock()
	select {
	case <-d.done:
		return d.conn, d.err
	case <-ctx.Done():
		if ctx.Err() == context.DeadlineExceeded {
			return nil, p.connectError(p.client.cfg.Map.Dialled(p.addr), ctx.Err())
		}
		return nil, ctx.Err()
	}
}

func (p *peer) dial(s *slot, d *dial) {
	nc, err := p.connect()
	var cn *conn
	if err == nil {
		cn, err = startConn(p, s, nc)
	}
	s.mu.Lock()
	s.mu.dialing = nil
	if err != nil {
		s.mu.failed = err
		s.mu.notBef = time.Now().Add(min(minBackoff<<min(s.mu.failures, 10), maxBackoff))
		s.mu.failures++
	} else {
		s.mu.failures, s.mu.failed = 0, nil
		s.cur.Store(cn)
	}
	d.conn, d.err = cn, err
	p.dials.Add(-1)
	s.mu.Unlock()
	close(d.done)
	if cn == nil {
		return
	}
	// It may have ended before it was stored.
	if cn.isClosed() {
		s.cur.CompareAndSwap(cn, nil)
	}
}

// connect dials, with TLS where that is asked for. The name is resolved anew
// each time.
func (p *peer) connect() (net.Conn, error) {
	cfg := &p.client.cfg
	ctx, cancel := context.WithTimeout(p.client.life, cfg.ConnectTimeout)
	defer cancel()
	var d net.Dialer
	to := cfg.Map.Dialled(p.addr)
	nc, err := d.DialContext(ctx, "tcp", to)
	if err != nil {
		return nil, p.connectError(to, err)
	}
	if cfg.TLS == nil {
		return nc, nil
	}
	conf := cfg.TLS
	if conf.ServerName == "" {
		conf = conf.Clone()
		conf.ServerName, _, _ = net.SplitHostPort(p.addr)
	}
	tc := tls.Client(nc, conf)
	if err := tc.HandshakeContext(ctx); err != nil {
		_ = nc.Close()
		return nil, p.connectError(to, err)
	}
	return tc, nil
}

func (p *peer) connectError(dialled string, err error) error {
	e := &ConnectError{Addr: p.addr, Err: err}
	if dialled != p.addr {
		e.Dialled = dialled
	}
	return e
}

// unused reports whether there is no connection and none is being made.
func (p *peer) unused() bool {
	if p.dials.Load() > 0 {
		return false
	}
	for i := range p.slots {
		if p.slots[i].cur.Load() != nil {
			return false
		}
	}
	return true
}

// close closes every connection.
func (p *peer) close(reason error) {
	for i := range p.slots {
		if cn := p.slots[i].cur.Load(); cn != nil {
			cn.fail(reason)
		}
	}
}
