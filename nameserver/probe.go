package nameserver

import (
	"context"
	"fmt"
	"net"
	"time"

	"mqx/remoting"
	"mqx/remoting/server"
)

// probeTimeout is how long a broker may take to accept a connection.
const probeTimeout = time.Second

// probeBroker connects to a broker and tells whether it took the connection: an address that this machine cannot reach
// is one that clients may not reach either, wherever the one who asks is. Only registered addresses are tried, one at a
// time, so that nobody can use a name server to look around its network.
func (s *Server) probeBroker(r *server.Request) (*remoting.Command, error) {
	var h remoting.ProbeBrokerHeader
	if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
		return nil, err
	}
	s.mu.RLock()
	known := s.mu.table.registered(h.BrokerAddr)
	s.mu.RUnlock()
	if !known {
		return nil, fmt.Errorf("cannot try %q: no broker is registered with that address", h.BrokerAddr)
	}
	if !s.probing.TryLock() {
		return nil, &codeError{remoting.RespSystemBusy, "another broker is being tried; ask again"}
	}
	defer s.probing.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", h.BrokerAddr)
	if err == nil {
		err = conn.Close()
	}
	answer := &remoting.ProbeBrokerResponseHeader{}
	if err != nil {
		answer.Error = err.Error()
	}
	return withHeader(answer), nil
}
