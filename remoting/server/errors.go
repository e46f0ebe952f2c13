package server

import (
	"errors"
	"fmt"
)

var (
	errConnClosed   = errors.New("connection is closed")
	errTooManyCalls = errors.New("too many requests to the peer wait for an answer")
)

// The reasons of a CloseError: why the server closed a connection or refused
// it. Stats counts by them.
const (
	ReasonPeer          = "closed by peer"
	ReasonStop          = "server stops"
	ReasonApplication   = "closed by handler"
	ReasonIdle          = "idle for too long"
	ReasonFirstByte     = "sent nothing after it was accepted"
	ReasonHandshake     = "did not complete its first bytes"
	ReasonHalfFrame     = "did not complete a frame"
	ReasonBadFrame      = "bad frame"
	ReasonInbound       = "inbound memory is full"
	ReasonFlood         = "asks for more and more, and does not read"
	ReasonOutboundHard  = "does not read: outbound limit of the connection"
	ReasonOutboundTotal = "does not read: outbound limit of the server"
	ReasonUnreadable    = "body cannot be read"
	ReasonTLSDisabled   = "TLS is disabled (tls.server.mode)"
	ReasonTLSEnforced   = "TLS is required (tls.server.mode)"
	ReasonTLSHandshake  = "TLS handshake failed"
	ReasonProxyHeader   = "bad PROXY header"
	ReasonPanic         = "fault in the server"
	ReasonMaxTotal      = "maxConnections reached"
	ReasonMaxPerIP      = "maxConnectionsPerIp reached"
	ReasonDescriptors   = "out of file descriptors"
	ReasonDraining      = "server is shutting down"
)

// CloseError says why a connection was closed.
type CloseError struct {
	Reason string // one of the Reason constants
	Err    error  // details, may be nil
}

func (e *CloseError) Error() string {
	if e.Err == nil {
		return e.Reason
	}
	return fmt.Sprintf("%s: %v", e.Reason, e.Err)
}

func (e *CloseError) Unwrap() error { return e.Err }

// closeReason returns the reason that Stats counts err under.
func closeReason(err error) string {
	var ce *CloseError
	if errors.As(err, &ce) {
		return ce.Reason
	}
	return ReasonPeer
}
