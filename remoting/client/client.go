package client

import (
	"context"
	"crypto/tls"
	"log/slog"
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
type Client struct{ cfg Config }

// New returns a client. It connects when the first request is sent.
func New(cfg Config) *Client { return &Client{cfg: cfg} }

// Call sends req to addr (host:port) and waits for the answer, which belongs
// to the caller. req may be reused when Call has returned. The answer's code
// is not looked at. Errors: *ConnectError, *TimeoutError, *ClosedError,
// ErrTooManyPending, ErrClosed, or that of ctx when it was cancelled.
func (c *Client) Call(ctx context.Context, addr string, req *remoting.Command) (*remoting.Command, error) {
	panic("not yet")
}

// Go sends req and calls done once with the answer or an error, when it
// returns nil; done is not called when it returns an error. req may be reused
// when Go has returned. done runs on the connection's reader: it must not
// block, and may call Go again. A time-out of 0 means Config.RequestTimeout.
func (c *Client) Go(addr string, req *remoting.Command, timeout time.Duration, done func(*remoting.Command, error)) error {
	panic("not yet")
}

// Oneway sends req and does not wait for an answer.
func (c *Client) Oneway(ctx context.Context, addr string, req *remoting.Command) error {
	panic("not yet")
}

// CloseAddr closes the connections to addr; the next request dials again.
func (c *Client) CloseAddr(addr string) {}

// Close closes all connections, fails what waits with ErrClosed and returns
// when the client's goroutines have ended. Idempotent.
func (c *Client) Close() error { return nil }
