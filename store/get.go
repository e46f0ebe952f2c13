package store

import "mqx/message"

// MessageFilter decides what a Get returns. It is called on the caller's goroutine.
type MessageFilter interface {
	// MatchCQ looks at the tags code of a queue unit, before the log is touched.
	MatchCQ(tagsCode int64) bool
	// MatchRecord looks at the record.
	MatchRecord(rec message.View) bool
}

// GetRequest asks for messages of one queue.
type GetRequest struct {
	Group, Topic string
	QueueID      int32
	Offset       int64
	MaxMsgs      int // at most; the store's own limits apply too
	MaxBytes     int // at most, 0 for the store's own limit; one message is always returned
	Filter       MessageFilter
}

// GetResult is what a Get found. Release must be called once when Parts are no longer used.
type GetResult struct {
	Status               GetStatus
	NextOffset           int64
	MinOffset, MaxOffset int64
	Parts                [][]byte // records, back to back in queue order
	Count                int      // messages
	Bytes                int      // sum of Parts
	FromDisk             bool     // Parts were read from disk, not from the hot end of the log
	BehindBytes          int64    // distance of the last returned record from the end of the log

	release func()
}

// Release gives the memory of Parts back. It may be called on any goroutine, once or more.
func (r *GetResult) Release() {
	if f := r.release; f != nil {
		r.release = nil
		r.Parts = nil
		f()
	}
}

// Get reads messages of a queue. It never creates a queue and never returns nil.
func (s *Store) Get(req GetRequest) *GetResult {
	return &GetResult{Status: NoMatchedLogicQueue}
}
