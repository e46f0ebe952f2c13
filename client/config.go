package client

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	"mqx/internal/clock"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// Defaults of Config, which are those of the Java client.
const (
	DefaultTimeout    = 3 * time.Second
	DefaultPollRoutes = 30 * time.Second
	DefaultHeartbeat  = 30 * time.Second
)

// Config is what every client of this package needs. Zero values mean the defaults.
type Config struct {
	// NameServers are host:port addresses (remoteclient.ParseAddrs makes them from text).
	NameServers []string
	// ClientID names this client at the broker; empty makes one as Java does (ip@pid#ns).
	ClientID string
	// Credentials sign every request when set.
	Credentials *remoteclient.Credentials
	// TLS is used for all connections when set.
	TLS *tls.Config
	// Map dials other addresses than those that the routes name.
	Map remoteclient.AddrMap
	// Serialize is the header form of requests; the zero value is JSON.
	Serialize remoting.Serialize
	// Timeout bounds one request, default 3 s.
	Timeout time.Duration
	// ConnectTimeout bounds dialling, default 3 s.
	ConnectTimeout time.Duration
	// PollRoutes is the time between route refreshes, default 30 s.
	PollRoutes time.Duration
	// Heartbeat is the time between heartbeats, default 30 s.
	Heartbeat time.Duration
	// VIPChannel sends to the fast port (port-2) of brokers, as old Java clients did.
	VIPChannel bool
	// Clock, default clock.System.
	Clock clock.Clock
	// Logger gets warnings; nil discards them.
	Logger *slog.Logger
}

func (c *Config) setDefaults() error {
	if len(c.NameServers) == 0 {
		return errors.New("no name server is given")
	}
	setDefault(&c.Timeout, DefaultTimeout)
	setDefault(&c.PollRoutes, DefaultPollRoutes)
	setDefault(&c.Heartbeat, DefaultHeartbeat)
	if c.Clock == nil {
		c.Clock = clock.System
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// setDefault gives v a value where it has none.
func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
