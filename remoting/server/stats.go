package server

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Stats are the counters of a server since its start.
type Stats struct {
	Connections   [numStates]int    // by State; that of StateClosed counts those that have closed
	Accepted      uint64            // connections accepted, refused ones included
	Refused       map[string]uint64 // by reason
	Closed        map[string]uint64 // by reason
	Requests      uint64
	Oneways       uint64
	Prompt        uint64 // requests that a loop served though they have a class
	Replies       uint64 // frames sent, requests of our own included
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
	Parked        int64 // bytes of requests that were detached
	Outbound      int64 // bytes that peers do not take
}

// counters are the live form of Stats.
type counters struct {
	states [numStates]atomic.Int64

	accepted, requests, oneways, replies atomic.Uint64
	prompt                               atomic.Uint64
	unsupported, overloaded, goAway      atomic.Uint64
	panics, doubleReplies                atomic.Uint64
	bytesIn, bytesOut, reads, writes     atomic.Uint64
	reasons                              struct {
		sync.Mutex
		refused, closed map[string]uint64
	}
}

// gauges are bytes held right now.
type gauges struct {
	inbound  atomic.Int64 // buffers of requests that wait or run
	partial  atomic.Int64 // incomplete frames
	parked   atomic.Int64 // requests that were detached
	outbound atomic.Int64 // what peers do not take
}

func (c *counters) refuse(reason string) {
	c.reasons.Lock()
	defer c.reasons.Unlock()
	if c.reasons.refused == nil {
		c.reasons.refused = map[string]uint64{}
	}
	c.reasons.refused[reason]++
}

func (c *counters) close(reason string) {
	c.reasons.Lock()
	defer c.reasons.Unlock()
	if c.reasons.closed == nil {
		c.reasons.closed = map[string]uint64{}
	}
	c.reasons.closed[reason]++
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	k := &s.counts
	st := Stats{
		Accepted: k.accepted.Load(), Requests: k.requests.Load(), Oneways: k.oneways.Load(), Prompt: k.prompt.Load(),
		Replies: k.replies.Load(), Unsupported: k.unsupported.Load(), Overloaded: k.overloaded.Load(),
		GoAway: k.goAway.Load(), Panics: k.panics.Load(), DoubleReplies: k.doubleReplies.Load(),
		BytesIn: k.bytesIn.Load(), BytesOut: k.bytesOut.Load(), Reads: k.reads.Load(), Writes: k.writes.Load(),
		Inbound:  s.gauges.inbound.Load() + s.gauges.partial.Load(),
		Parked:   s.gauges.parked.Load(),
		Outbound: s.gauges.outbound.Load(),
	}
	for i := range st.Connections {
		st.Connections[i] = int(k.states[i].Load())
	}
	if s.draining.Load() {
		for i := StateConnected; i < StateDraining; i++ {
			st.Connections[StateDraining] += st.Connections[i]
			st.Connections[i] = 0
		}
	}
	k.reasons.Lock()
	st.Refused, st.Closed = maps.Clone(k.reasons.refused), maps.Clone(k.reasons.closed)
	k.reasons.Unlock()
	return st
}
