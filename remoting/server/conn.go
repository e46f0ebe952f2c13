package server

import (
	"context"
	"net/netip"
	"time"

	"mqx/remoting"
)

// State of a connection.
type State int32

// The states of a connection in the order it goes through them.
const (
	StateAccepted      State = iota // nothing received yet
	StateConnected                  // first bytes seen, TLS handshake done
	StateAuthenticated              // the peer has proved who it is (see Conn.SetAuthenticated)
	StateReady                      // a whole frame has come
	StateDraining                   // answers what runs, takes nothing new
	StateClosed
	numStates
)

// String returns the name of the state in lower case.
func (s State) String() string {
	return [...]string{"accepted", "connected", "authenticated", "ready", "draining", "closed"}[s]
}

// Conn is a connection of a peer. Its methods are safe to share and return at
// once unless they say otherwise.
type Conn struct{}

// ID is unique within the process, counted from 1.
func (c *Conn) ID() uint64 { return 0 }

// Remote returns the peer's address: IPv4 also when it came over an IPv6
// socket, and what a PROXY header says where there was one.
func (c *Conn) Remote() netip.AddrPort { return netip.AddrPort{} }

// Local returns the address the peer connected to.
func (c *Conn) Local() netip.AddrPort { return netip.AddrPort{} }

// State returns the current state.
func (c *Conn) State() State { return StateAccepted }

// SetAuthenticated moves a connection that is connected or ready to
// authenticated: ready again with its next frame.
func (c *Conn) SetAuthenticated() {}

// Opened returns when the connection was accepted.
func (c *Conn) Opened() time.Time { return time.Time{} }

// Language and Version are those of the last request.
func (c *Conn) Language() remoting.Language { return 0 }

// Version is the version ordinal of the last request.
func (c *Conn) Version() int32 { return 0 }

// TLS reports whether the connection is encrypted.
func (c *Conn) TLS() bool { return false }

// Session returns what SetSession stored, nil before.
func (c *Conn) Session() any { return nil }

// SetSession attaches the user's state to the connection.
func (c *Conn) SetSession(v any) {}

// Outbound returns the number of bytes that wait to be sent.
func (c *Conn) Outbound() int64 { return 0 }

// Writable reports whether Outbound is under the soft limit: where it is not,
// do not read data to send.
func (c *Conn) Writable() bool { return true }

// Send pushes cmd as a one-way request and copies what it needs of it.
func (c *Conn) Send(cmd *remoting.Command) error { panic("not yet") }

// Call sends cmd as a request and waits for the answer or for ctx. The answer
// belongs to the caller.
func (c *Conn) Call(ctx context.Context, cmd *remoting.Command) (*remoting.Command, error) {
	panic("not yet")
}

// Close closes the connection; reason is what OnClose and the log say.
func (c *Conn) Close(reason string) {}
