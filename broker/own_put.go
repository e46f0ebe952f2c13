package broker

import (
	"mqx/message"
	"mqx/store"
)

// putOwn stores one message that the broker writes itself: a send-back, a
// delivered copy, a committed copy, a checkpoint, a reply. It appends on the
// caller's goroutine, so that each caller has at most one record in memory;
// done is called exactly once, before putOwn returns unless waitFlush makes it
// wait for a synchronous flush, and must not block. A caller that waits for
// flushes bounds what it has in flight.
//
// The record is stored as it is: whoever writes what a producer could have sent
// calls divert first (Apache's hook before every put); a delivered copy keeps
// its DELAY property and must not be diverted again. Only PutOK counts as
// written; any other status is to be tried again.
//
// Body, Topic and Properties may be reused once putOwn has returned.
func (b *Broker) putOwn(rec message.Record, waitFlush bool, done func(*store.Put)) {
	b.putOwnBatch([]*store.Put{{Record: rec, WaitFlush: waitFlush, Done: done}})
}

// putOwnBatch is putOwn for several messages, which are appended under one
// lock, in their order; each succeeds or fails for itself. The puts need Record
// and Done.
func (b *Broker) putOwnBatch(ps []*store.Put) {
	if b.statics.table.Load() != nil {
		for _, p := range ps {
			p.Record.QueueID = b.landing(p.Record.Topic, p.Record.QueueID)
		}
	}
	b.store.PutBatch(ps)
}

// countPut counts one message of size bytes that was stored in a topic, for the
// topic and for the broker; of 0 bytes: it was handed on, and another broker counts it.
func (b *Broker) countPut(topic []byte, size int32) {
	if size == 0 {
		return
	}
	if t := b.topics.GetBytes(topic); t != nil {
		t.puts.AddTimes(1, 1)
		t.putBytes.AddTimes(int64(size), 1)
	}
	b.brokerPuts.AddTimes(1, 1)
}
