package server

import (
	"time"

	"mqx/remoting"
)

// Request is one request of a peer. It is owned by whoever was handed it until
// exactly one of Reply, ReplyWith, ReplyBody or Done is called; these may be
// called from any goroutine, also after the connection has closed. From then
// on the request and all that its Fields and Body alias belong to the server
// again. A request that is kept for long (a parked pull) should Detach first.
type Request struct {
	remoting.Command
	conn     *Conn
	received time.Time
}

// Conn returns the connection the request came on.
func (r *Request) Conn() *Conn { return r.conn }

// Received returns when the request was read from the connection.
func (r *Request) Received() time.Time { return r.received }

// Detach copies the request's own bytes out of the buffer that it shares with
// the other requests of its read, so that keeping it does not keep those.
// Slices taken from Fields or Body before are invalid afterwards.
func (r *Request) Detach() {}

// Reply answers with a code and a remark, without fields or body.
func (r *Request) Reply(code int32, remark string) {}

// ReplyWith answers with resp and copies what it needs of it: the caller may
// reuse resp at once. Opaque and the response flag are set on the wire, not in
// resp; language and version are the server's.
func (r *Request) ReplyWith(resp *remoting.Command) {}

// ReplyBody answers with resp and parts as the body, resp.Body being ignored.
// The parts are written or copied before it returns, so that release (which
// may be nil) has been called once by then, also when the connection has
// closed. It may wait for a system call; not for the peer.
func (r *Request) ReplyBody(resp *remoting.Command, parts [][]byte, release func()) {}

// Done ends the request without an answer.
func (r *Request) Done() {}
