package server

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"mqx/remoting"
)

// Defaults of Config.
const (
	DefaultIdleTimeout      = 120 * time.Second
	DefaultHandshakeTimeout = 5 * time.Second
	DefaultOutboundSoft     = 512 << 10
	DefaultOutboundHard     = 32 << 20
	DefaultOutboundTotal    = 64 << 20
	DefaultInboundTotal     = 64 << 20
)

// Config of a Server. The zero value of a field means its default.
type Config struct {
	// Addr is host:port to listen on; an empty host means every address, port
	// 0 a free one. An IPv6 host stands in brackets.
	Addr string
	// Loops is the number of event loops (serverSelectorThreads), default one a
	// core.
	Loops int
	// MaxConnections and MaxConnectionsPerIP bound the open connections, in
	// all and from one address. 0 derives them from the descriptor limit, a
	// negative value means no limit but that. Ignored when Limits is set.
	MaxConnections, MaxConnectionsPerIP int
	// Limits is the count of connections to share between servers of one
	// process; nil means one of its own.
	Limits *Limits
	// IdleTimeout closes a connection on which no whole frame came and no
	// byte of an answer left for that long (serverChannelMaxIdleTimeSeconds),
	// default 120 s. Negative: never.
	IdleTimeout time.Duration
	// FirstByteTimeout closes a connection that sends nothing after it was
	// accepted. The default is IdleTimeout: Apache's clients open connections
	// to name servers ahead of need, and reopen them when they are closed.
	// Negative: never.
	FirstByteTimeout time.Duration
	// HandshakeTimeout closes a connection that has begun a PROXY header or a
	// TLS handshake and does not finish it, default 5 s.
	HandshakeTimeout time.Duration
	// MaxFrame is the largest frame accepted in bytes, default remoting.MaxFrame.
	MaxFrame int
	// OutboundSoft is the number of unsent bytes from which on Conn.Writable
	// is false; OutboundHard that at which the connection is closed.
	// OutboundTotal bounds the unsent bytes of all connections: above it a
	// connection over its soft limit is closed.
	OutboundSoft, OutboundHard, OutboundTotal int64
	// InboundTotal bounds the bytes of requests that wait or run, what they
	// take when decoded included, over all connections: above it new requests that do not run on the loop are
	// answered SYSTEM_BUSY, and those of a connection that has more of it than is free. Frames that are not complete yet have half as much
	// besides (one largest frame at least); a connection that needs more is
	// closed.
	InboundTotal int64
	// SendBuffer and ReceiveBuffer set SO_SNDBUF and SO_RCVBUF in bytes; 0
	// leaves them to the system.
	SendBuffer, ReceiveBuffer int
	// Serialize is the header encoding of everything that the server writes;
	// the encoding of a request is never mirrored.
	Serialize remoting.Serialize
	// Precedence is told of every request, so that the classes of other servers
	// step back; nil: this server is not preferred.
	Precedence *Precedence
	// Times is told how long each request took; nil: nobody asks.
	Times *RPCTimes
	// Slow is told of requests that took long; nil: nobody asks.
	Slow *Slow
	// TLS says what happens to a connection that starts with a TLS handshake.
	TLS TLSConfig
	// Logger, default slog.Default().
	Logger *slog.Logger
	// OnOpen is called once the first bytes of a connection have shown what
	// it is (after the TLS handshake), OnClose once for each connection that
	// OnOpen saw. Both run on the connection's loop and must not block.
	OnOpen  func(*Conn)
	OnClose func(c *Conn, reason error)
	// OnWritable is called, on a goroutine of its own, when a connection whose
	// Writable was false has sent enough to be writable again. May be nil.
	OnWritable func(*Conn)

	// crowded is crowdedHalfFrame; tests have less time.
	crowded time.Duration
	// streams serves every connection by goroutines instead of event loops, as
	// on systems that have none. For tests.
	streams bool
}

func (c *Config) setDefaults() {
	if c.IdleTimeout == 0 {
		c.IdleTimeout = DefaultIdleTimeout
	}
	if c.FirstByteTimeout == 0 {
		c.FirstByteTimeout = c.IdleTimeout
	}
	if c.HandshakeTimeout <= 0 {
		c.HandshakeTimeout = DefaultHandshakeTimeout
	}
	if c.MaxFrame == 0 {
		c.MaxFrame = remoting.MaxFrame
	}
	if c.crowded == 0 {
		c.crowded = crowdedHalfFrame
	}
	if c.OutboundSoft == 0 {
		c.OutboundSoft = DefaultOutboundSoft
	}
	if c.OutboundHard == 0 {
		c.OutboundHard = max(DefaultOutboundHard, c.OutboundSoft)
	}
	if c.OutboundTotal == 0 {
		c.OutboundTotal = max(DefaultOutboundTotal, c.OutboundHard)
	}
	if c.InboundTotal == 0 {
		c.InboundTotal = max(DefaultInboundTotal, int64(c.MaxFrame))
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
}

// Validate reports the first value that a server cannot be started with.
func (c *Config) Validate() error {
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		return fmt.Errorf("cannot listen on %q: %w", c.Addr, err)
	}
	if strings.Contains(c.Addr, "%") {
		return fmt.Errorf("cannot listen on %q: an address with a zone", c.Addr)
	}
	if c.Loops < 0 || c.Loops > maxLoops {
		return fmt.Errorf("cannot run %d event loops: 0 to %d are possible", c.Loops, maxLoops)
	}
	if c.MaxFrame < 0 || c.MaxFrame > remoting.MaxFrame {
		return fmt.Errorf("cannot accept frames of %d bytes: the limit is %d", c.MaxFrame, remoting.MaxFrame)
	}
	if c.OutboundSoft < 0 || c.OutboundHard < 0 || c.OutboundHard > 0 && c.OutboundHard < c.OutboundSoft {
		return fmt.Errorf("cannot bound unsent bytes at %d (soft) and %d (hard)", c.OutboundSoft, c.OutboundHard)
	}
	return c.TLS.Validate()
}

// maxLoops is the most event loops gnet runs.
const maxLoops = 256
