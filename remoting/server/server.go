package server

import (
	"context"
	"net"
)

// Server listens on one address. Safe to share.
type Server struct {
	cfg Config
	mux *Mux
}

// New checks cfg and returns a server that has not started.
func New(cfg Config, m *Mux) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	return &Server{cfg: cfg, mux: m}, nil
}

// Start listens and returns when the server accepts connections. ctx bounds
// the start only; the server runs until Stop.
func (s *Server) Start(ctx context.Context) error { panic("not yet") }

// Addr returns the address listened on, nil before Start.
func (s *Server) Addr() net.Addr { return nil }

// Drain takes no new connections and no new requests (they are answered
// GO_AWAY, or SYSTEM_BUSY where the peer does not know that) and returns when
// everything in flight has been answered and sent, or with ctx's error.
func (s *Server) Drain(ctx context.Context) error { panic("not yet") }

// Stop closes all connections and ends the server's goroutines. Requests that
// are still with a handler may be answered afterwards; nothing is sent.
// Idempotent.
func (s *Server) Stop(ctx context.Context) error { panic("not yet") }

// Conns calls f for each open connection until it returns false.
func (s *Server) Conns(f func(*Conn) bool) {}

// Stats returns the counters.
func (s *Server) Stats() Stats { return Stats{} }
