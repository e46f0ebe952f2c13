package store

import "mqx/message"

// Put is one message (or one batch) on its way into the log, and what became of it.
type Put struct {
	// Record is the message. Its queue offset, physical offset and store time are assigned by
	// the store; the transaction kind is in SysFlag. Body, Topic and Properties are not kept
	// once Done was called or PutBatch encoded them.
	Record message.Record
	// Batch says that Record.Body is a list of messages (docs/format/batch.md); each becomes a record
	// with Record.Properties appended to its own.
	Batch bool
	// WaitFlush asks for Done only after the record is durable when the store flushes
	// synchronously (property WAIT, true unless the producer says otherwise).
	WaitFlush bool
	// Done is called exactly once, maybe on another goroutine and maybe before PutBatch
	// returned. Puts of one PutBatch that become durable together are completed in one go.
	Done func(*Put)
	// User is the caller's.
	User any

	// Results.
	Status         Status
	Err            error // cause with path, or nil
	PhysicalOffset int64
	QueueOffset    int64 // of the first message of a batch
	StoreTimestamp int64
	Size           int32   // bytes appended
	Offsets        []int64 // physical offsets of a batch, in order
}

// PutBatch validates and encodes the puts on the caller's goroutine, appends them under one
// lock and completes each when the wanted durability is reached. It does not wait for that.
func (s *Store) PutBatch(ps []*Put) {}
