package client

import (
	"crypto/tls"
	"log/slog"
	"time"

	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// Config is what every client of this package needs.
type Config struct {
	// NameServers are host:port addresses (remoteclient.ParseAddrs makes them from text).
	NameServers []string
	// ClientID names this client at the broker; empty makes one as Java does (ip@pid#nanos).
	ClientID string
	// Credentials sign every request when set.
	Credentials *remoteclient.Credentials
	// TLS is used for all connections when set.
	TLS *tls.Config
	// Serialize is the header form of requests; the zero value is JSON.
	Serialize remoting.Serialize
	// Timeout bounds one request; 0 means 3 s as in the Java client.
	Timeout time.Duration
	// PollRoutes is the time between route refreshes; 0 means 30 s.
	PollRoutes time.Duration
	// Heartbeat is the time between heartbeats; 0 means 30 s.
	Heartbeat time.Duration
	// VIPChannel sends to the fast port (port-2) of brokers, as old Java clients did.
	VIPChannel bool
	// Logger gets warnings; nil discards them.
	Logger *slog.Logger
}
