package client

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"mqx/remoting"
)

// Defaults of Config.
const (
	DefaultConnectTimeout = 3 * time.Second
	DefaultRequestTimeout = 3 * time.Second
	DefaultIdleTimeout    = 120 * time.Second
	DefaultMaxPending     = 65535
)

// Credentials sign every request (HMAC-SHA1 over fields and body).
type Credentials struct {
	AccessKey, SecretKey string
	Token                string // security token, may be empty
}

// Config of a Client. The zero value of a field means its default.
type Config struct {
	// ConnectTimeout bounds dialling and the TLS handshake, default 3 s.
	ConnectTimeout time.Duration
	// RequestTimeout bounds a Call whose context has no deadline and a Go
	// whose time-out is 0, default 3 s.
	RequestTimeout time.Duration
	// IdleTimeout closes a connection that was not used for that long,
	// default 120 s; negative: never.
	IdleTimeout time.Duration
	// Connections an address, default 1.
	Connections int
	// MaxPending bounds the requests of one connection that wait for an
	// answer, default and at most 65535.
	MaxPending int
	// MaxFrame is the largest answer accepted, default remoting.MaxFrame.
	MaxFrame int
	// Serialize is the header encoding of requests.
	Serialize remoting.Serialize
	// Map dials other addresses than those that are named: for servers that are
	// registered under an address which cannot be reached from here. TLS still
	// checks the name that was asked for.
	Map AddrMap
	// TLS, when not nil, is used for every connection.
	TLS *tls.Config
	// Credentials, when not nil, sign every request.
	Credentials *Credentials
	Logger      *slog.Logger
	// OnRequest serves requests of the peer; a nil answer to a request that
	// wants one is SYSTEM_ERROR. It runs on a goroutine of its own, at most
	// 64 at a time. req belongs to the callee. nil: every request is answered
	// REQUEST_CODE_NOT_SUPPORTED.
	OnRequest func(addr string, req *remoting.Command) *remoting.Command
	// OnClose is called after a connection has closed. May be nil.
	OnClose func(addr string, err error)
}

// Client holds the connections to any number of addresses. Safe to share.
type Client struct {
	cfg   Config
	epoch time.Time
	peers struct {
		sync.Mutex
		m      map[string]*peer
		conns  map[*conn]struct{} // open connections, for Close
		closed bool
	}
	background sync.WaitGroup  // readers, writers, dials, handlers
	handlers   chan struct{}   // a token for each running OnRequest
	life       context.Context // ends with Close; bounds dials
	end        context.CancelFunc
}

// maxKnown is the number of addresses from which on those without a connection
// are forgotten.
const maxKnown = 256

// maxHandlers bounds the calls of OnRequest that run.
const maxHandlers = 64

// New returns a client. It connects when the first request is sent.
func New(cfg Config) *Client {
	cfg.setDefaults()
	c := &Client{cfg: cfg, epoch: time.Now(), handlers: make(chan struct{}, maxHandlers)}
	c.life, c.end = context.WithCancel(context.Background())
	c.peers.m, c.peers.conns = map[string]*peer{}, map[*conn]struct{}{}
	return c
}

func (cfg *Config) setDefaults() {
	setDuration := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	setDuration(&cfg.ConnectTimeout, DefaultConnectTimeout)
	setDuration(&cfg.RequestTimeout, DefaultRequestTimeout)
	setDuration(&cfg.IdleTimeout, DefaultIdleTimeout)
	cfg.Connections = max(cfg.Connections, 1)
	if cfg.MaxPending <= 0 || cfg.MaxPending > DefaultMaxPending {
		cfg.MaxPending = DefaultMaxPending
	}
	if cfg.MaxFrame <= 0 || cfg.MaxFrame > remoting.MaxFrame {
		cfg.MaxFrame = remoting.MaxFrame
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
}

// Call sends req to addr (host:port) and waits for the answer, which belongs
// to the caller. req may be reused when Call has returned. The answer's code
// is not looked at. Errors: *ConnectError, *TimeoutError, *ClosedError,
// ErrTooManyPending, ErrClosed, or that of ctx when it was cancelled.
func (c *Client) Call(ctx context.Context, addr string, req *remoting.Command) (*remoting.Command, error) {
	start := c.now()
	signed := c.prepare(req)
	timeout := time.Duration(0) // that of ctx
	if _, ok := ctx.Deadline(); !ok {
		timeout = c.cfg.RequestTimeout
	}
	w := newWaiter()
	cn, ref, err := c.sendOn(ctx, addr, signed, timeout, w.done)
	if err != nil {
		w.free()
		return nil, c.waitError(err, addr, req.Code, start)
	}
	select {
	case <-w.ready:
	case <-ctx.Done():
		if cn.abandon(ref) {
			w.free()
			return nil, c.waitError(ctx.Err(), addr, req.Code, start)
		}
		<-w.ready // the answer is being delivered
	}
	resp, err := w.resp, w.err
	w.free()
	return resp, err
}

// waitError turns the end of a context into what the caller wants to know.
func (c *Client) waitError(err error, addr string, code int32, start int64) error {
	if errors.Is(err, context.DeadlineExceeded) {
		var ce *ConnectError
		if errors.As(err, &ce) {
			return err
		}
		return &TimeoutError{Addr: addr, Request: remoting.RequestName(code), After: time.Duration(c.now() - start)}
	}
	return err
}

// waiter is what a Call waits on.
type waiter struct {
	ready chan struct{}
	resp  *remoting.Command
	err   error
	done  func(*remoting.Command, error)
}

var waiters = sync.Pool{New: func() any {
	w := &waiter{ready: make(chan struct{}, 1)}
	w.done = func(resp *remoting.Command, err error) {
		w.resp, w.err = resp, err
		w.ready <- struct{}{}
	}
	return w
}}

func newWaiter() *waiter { return waiters.Get().(*waiter) }

func (w *waiter) free() {
	w.resp, w.err = nil, nil
	waiters.Put(w)
}

// Go sends req and calls done once with the answer or an error, when it
// returns nil; done is not called when it returns an error. req may be reused
// when Go has returned. done runs on the connection's reader: it must not
// block, and may call Go again. A time-out of 0 means Config.RequestTimeout.
// Where no connection is open yet, Go does not wait for it.
func (c *Client) Go(addr string, req *remoting.Command, timeout time.Duration, done func(*remoting.Command, error)) error {
	if timeout <= 0 {
		timeout = c.cfg.RequestTimeout
	}
	signed := c.prepare(req)
	p, err := c.peer(addr)
	if err != nil {
		return err
	}
	slot := p.pick()
	if cn := slot.cur.Load(); cn != nil {
		_, err := cn.send(signed, timeout, done)
		if !isClosed(err) {
			return err
		}
	}
	own := clone(signed)
	return c.start(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		start := c.now()
		cn, err := p.get(ctx, slot)
		if err == nil {
			_, err = cn.send(own, timeout, done)
		}
		if err != nil {
			done(nil, c.waitError(err, addr, own.Code, start))
		}
	})
}

// Oneway sends req and does not wait for an answer.
func (c *Client) Oneway(ctx context.Context, addr string, req *remoting.Command) error {
	start := c.now()
	signed := c.prepare(req)
	_, _, err := c.sendOn(ctx, addr, signed, 0, nil)
	return c.waitError(err, addr, req.Code, start)
}

// sendOn sends on an open connection to addr, and on another one when that had
// closed before anything was sent. Without done the request is one-way.
func (c *Client) sendOn(ctx context.Context, addr string, req *remoting.Command, timeout time.Duration,
	done func(*remoting.Command, error),
) (cn *conn, ref int32, err error) {
	for range 2 {
		if cn, err = c.connection(ctx, addr); err != nil {
			return nil, 0, err
		}
		if done == nil {
			err = cn.push(req)
		} else {
			ref, err = cn.send(req, timeout, done)
		}
		if !isClosed(err) {
			break
		}
	}
	return cn, ref, err
}

// prepare signs a copy of req where that is asked for.
func (c *Client) prepare(req *remoting.Command) *remoting.Command {
	cr := c.cfg.Credentials
	if cr == nil {
		return req
	}
	signed := *req
	signed.Fields = slices.Clone(req.Fields)
	remoting.SignToken(&signed, cr.AccessKey, cr.SecretKey, cr.Token)
	return &signed
}

// clone returns a copy of cmd that shares nothing with it.
func clone(cmd *remoting.Command) *remoting.Command {
	out := *cmd
	out.Fields = make(remoting.Fields, len(cmd.Fields))
	for i, f := range cmd.Fields {
		out.Fields[i] = remoting.Field{Key: slices.Clone(f.Key), Value: slices.Clone(f.Value)}
	}
	out.Body = slices.Clone(cmd.Body)
	return &out
}

// CloseAddr closes the connections to addr; the next request dials again.
func (c *Client) CloseAddr(addr string) {
	c.peers.Lock()
	p := c.peers.m[addr]
	c.peers.Unlock()
	if p != nil {
		p.close(errClosedByCaller)
	}
}

// Close closes all connections, fails what waits with ErrClosed and returns
// when the client's goroutines have ended. It must not be called by a callback.
// Idempotent.
func (c *Client) Close() error {
	// 1. Nothing new starts.
	c.peers.Lock()
	c.peers.closed = true
	conns := slices.Collect(maps.Keys(c.peers.conns))
	c.peers.Unlock()
	c.end()
	// 2. Connections close, which ends readers and writers.
	for _, cn := range conns {
		cn.fail(ErrClosed)
	}
	// 3. Goroutines end.
	c.background.Wait()
	return nil
}

// startReader starts the reader of a new connection, which Close ends.
func (c *Client) startReader(cn *conn) error {
	c.peers.Lock()
	defer c.peers.Unlock()
	if c.peers.closed {
		return ErrClosed
	}
	c.peers.conns[cn] = struct{}{}
	c.background.Go(func() {
		cn.read()
		c.peers.Lock()
		delete(c.peers.conns, cn)
		c.peers.Unlock()
	})
	return nil
}

// start runs f on a goroutine that Close waits for.
func (c *Client) start(f func()) error {
	c.peers.Lock()
	defer c.peers.Unlock()
	if c.peers.closed {
		return ErrClosed
	}
	c.background.Go(f)
	return nil
}

func (c *Client) peer(addr string) (*peer, error) {
	c.peers.Lock()
	defer c.peers.Unlock()
	if c.peers.closed {
		return nil, ErrClosed
	}
	p := c.peers.m[addr]
	if p == nil {
		if len(c.peers.m) >= maxKnown {
			maps.DeleteFunc(c.peers.m, func(_ string, p *peer) bool { return p.unused() })
		}
		p = newPeer(c, addr)
		c.peers.m[addr] = p
	}
	return p, nil
}

// connection returns an open connection to addr.
func (c *Client) connection(ctx context.Context, addr string) (*conn, error) {
	p, err := c.peer(addr)
	if err != nil {
		return nil, err
	}
	return p.get(ctx, p.pick())
}

// now returns nanoseconds of a clock that does not go back.
func (c *Client) now() int64 { return int64(time.Since(c.epoch)) }
