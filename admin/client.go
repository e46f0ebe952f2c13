package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	remoteclient "mqx/remoting/client"
)

// Config says which cluster is managed and how.
type Config struct {
	NameServers []string
	Credentials *remoteclient.Credentials
	TLS         *tls.Config
	// BrokerTimeout bounds the request to one broker; 0 means 3 s.
	BrokerTimeout time.Duration
	// Parallel is the number of brokers asked at a time; 0 means 16.
	Parallel int
	Logger   *slog.Logger
}

// Client manages a cluster. It is safe to share.
type Client struct{ cfg Config }

var errNotBuilt = errors.New("not built yet")

// New checks cfg. It connects nowhere yet.
func New(cfg Config) (*Client, error) { return &Client{cfg: cfg}, nil }

// Close closes the connections. It is idempotent.
func (c *Client) Close() error { return nil }

// TargetError is the failure of one broker or name server in a request to several.
type TargetError struct {
	Broker string // broker name, empty for a name server
	Addr   string
	Err    error
}

// Error names the target and the cause.
func (e TargetError) Error() string {
	who := e.Addr
	if e.Broker != "" {
		who = e.Broker + " (" + e.Addr + ")"
	}
	return who + ": " + e.Err.Error()
}

// Unwrap is the cause.
func (e TargetError) Unwrap() error { return e.Err }

// NotFoundError says that a topic, group, broker or cluster does not exist.
type NotFoundError struct {
	Kind  string // topic, group, broker, cluster
	Name  string
	Known []string // some that exist
}

// Error names what is missing and, for brokers and clusters, what is known.
func (e *NotFoundError) Error() string {
	s := e.Kind + " " + e.Name + " not found"
	for i, k := range e.Known {
		if i == 0 {
			s += "; known: " + k
		} else {
			s += ", " + k
		}
	}
	return s
}

// Broker is one broker process as the name server knows it.
type Broker struct {
	Cluster string
	Name    string
	ID      int64
	Addr    string
}

// Cluster lists all brokers that the name server knows, sorted by cluster, name and id.
func (c *Client) Cluster(ctx context.Context) ([]Broker, error) { return nil, errNotBuilt }

// Target selects brokers: a cluster, a broker name or an address. Empty means all masters.
type Target struct {
	Cluster string
	Broker  string
}
