package server

// Stats are the counters of a server since its start.
type Stats struct {
	Connections   [numStates]int    // by State; that of StateClosed counts those that have closed
	Accepted      uint64            // connections accepted, refused ones included
	Refused       map[string]uint64 // by reason
	Closed        map[string]uint64 // by reason
	Requests      uint64
	Oneways       uint64
	Replies       uint64
	Unsupported   uint64 // request codes without a handler
	Overloaded    uint64 // answered SYSTEM_BUSY, queue or memory full
	GoAway        uint64 // refused while draining
	Panics        uint64
	DoubleReplies uint64 // requests that were answered twice (a fault of a handler)
	BytesIn       uint64
	BytesOut      uint64
	Reads         uint64 // system calls, or TLS reads
	Writes        uint64
	Inbound       int64 // bytes of requests that wait or run and of incomplete frames
	Outbound      int64 // bytes that wait to be sent
}
