package commitlog

import "sync/atomic"

// Counter is the next queue offset of one queue of a topic. The append lock owns it: it is changed by Set before
// the log is appended to, and by AppendBatch. Next may be read at any time.
type Counter struct {
	next atomic.Int64
}

// Next returns the queue offset that the next record will get.
func (c *Counter) Next() int64 { return c.next.Load() }

// Set sets the next queue offset. It must not run together with an append to the same queue.
func (c *Counter) Set(next int64) { c.next.Store(next) }

// Append is one message, or one batch of messages for one queue, on its way into the log.
type Append struct {
	// Buf holds the encoded record, or the records of a batch back to back, with queue offset, physical offset and
	// store time still zero; they are patched in place. The caller may reuse Buf after AppendBatch returns.
	Buf []byte
	// Sizes are the lengths of the records of a batch; nil for one record.
	Sizes []int32
	// Counter numbers the records in their queue.
	Counter *Counter
	// KeepQueueOffset leaves the queue offset 0 and the counter alone: prepared and rolled back transactions.
	KeepQueueOffset bool

	// Results, valid when Err is nil.

	QueueOffset    int64 // of the first record
	PhysicalOffset int64 // of the first record
	StoreTimestamp int64 // milliseconds since 1970, the same for all records of a batch
	End            int64 // position behind the last record; what to wait for
	Err            error
}

// AppendBatch appends the items in order under one lock and sets their results. An item is appended whole or not at
// all. Errors are per item: ErrTooLarge, ErrFull, ErrFailed, ErrClosed, ErrNotRecovered, ErrReadOnly. An item that was
// refused has changed nothing: no counter, no byte of the log.
func (l *Log) AppendBatch(as []*Append) {
	panic("not written yet")
}

// AppendRaw appends bytes that another log wrote at the same position, blanks included (replication). at must be End.
func (l *Log) AppendRaw(at int64, b []byte) error {
	panic("not written yet")
}
