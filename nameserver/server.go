package nameserver

import (
	"context"
	"errors"
	"net"
)

// Server is one name server. It is created by New, which starts nothing, and lives
// while Run runs.
type Server struct {
	cfg   Config
	ready chan struct{}
}

// New checks cfg, loads the key-value table and prepares a name server. It opens no port.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, ready: make(chan struct{})}, nil
}

// Run listens and serves until ctx is cancelled, then drains and returns nil.
// It may be called once.
func (s *Server) Run(ctx context.Context) error {
	return errors.New("cannot run name server: not built yet")
}

// Ready is closed when the server accepts connections.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Addr is the address listened on; nil before Ready.
func (s *Server) Addr() net.Addr { return nil }
