package store

import (
	"context"
	"errors"
	"iter"
)

// Store is an open store directory. All methods are safe to share unless they say otherwise.
type Store struct {
	cfg Config
}

// Open locks the directory, checks what kind of store it is, recovers it and returns it
// ready to serve. It starts no goroutine. What recovery repaired is in Findings.
//
// Errors: *LockedError when another process has it open, *LayoutError when the directory
// is of a kind that is not served or its parts do not belong together.
func Open(cfg Config) (*Store, error) {
	return nil, errors.New("store: not built yet")
}

// Run flushes, dispatches, cleans and writes checkpoints until ctx is cancelled. It blocks.
func (s *Store) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Close ends the store in order: refuse appends, dispatch the rest, flush everything,
// write the checkpoint, remove the preallocated next file and `abort`, unlock. Run's
// context must have been cancelled or Close cancels it. Idempotent; waits.
func (s *Store) Close() error { return nil }

// MinOffset is the smallest queue offset that can be read, 0 for an unknown queue.
func (s *Store) MinOffset(topic string, queueID int32) int64 { return 0 }

// MaxOffset is the next queue offset to be dispatched, 0 for an unknown queue.
func (s *Store) MaxOffset(topic string, queueID int32) int64 { return 0 }

// Boundary says which side of a time OffsetByTime looks for.
type Boundary int8

// Lower finds the first message stored at or after the time, Upper the last at or before it.
const (
	Lower Boundary = iota
	Upper
)

// OffsetByTime finds a queue offset by store time in milliseconds. Beyond the end it is the
// max offset (Lower) or the last message (Upper); before the start the min offset (Lower) or 0 (Upper).
// An unknown queue gives 0.
func (s *Store) OffsetByTime(topic string, queueID int32, timestampMs int64, b Boundary) (int64, error) {
	return 0, nil
}

// StoreTimeAt is the store time in milliseconds of the message at a queue offset, -1 when there is none.
func (s *Store) StoreTimeAt(topic string, queueID int32, offset int64) int64 { return -1 }

// EarliestTime is the store time of the oldest message of a queue, -1 when there is none.
func (s *Store) EarliestTime(topic string, queueID int32) int64 { return -1 }

// RecordAt returns a copy of the record at a physical offset. Errors: ErrNoRecord when no
// record starts there.
func (s *Store) RecordAt(physicalOffset int64) ([]byte, error) { return nil, ErrNoRecord }

// ErrNoRecord says that no readable record starts at a physical offset.
var ErrNoRecord = errors.New("no record at this physical offset")

// QueueInfo is one consume queue.
type QueueInfo struct {
	Topic    string
	QueueID  int32
	Min, Max int64 // queue offsets, Max exclusive
}

// Queues lists the consume queues, in no particular order.
func (s *Store) Queues() iter.Seq[QueueInfo] { return func(func(QueueInfo) bool) {} }

// DeleteTopic removes the consume queues of a topic. Its records stay in the log until they
// expire; they are not dispatched again.
func (s *Store) DeleteTopic(topic string) error { return nil }

// CleanUnusedTopics removes the queues of topics that keep does not know; system topics and
// light queues stay. It returns the names removed.
func (s *Store) CleanUnusedTopics(keep func(topic string) bool) ([]string, error) { return nil, nil }

// CleanExpiredQueues removes queue files whose messages are no longer in the log.
func (s *Store) CleanExpiredQueues() error { return nil }

// DeleteExpiredNow makes the next rounds of the cleaner delete expired files regardless of the hour.
func (s *Store) DeleteExpiredNow() {}

// Truncate cuts the log and everything derived from it back to a physical offset.
func (s *Store) Truncate(physicalOffset int64) error { return nil }

// LogMin, LogEnd, LogFlushed, LogConfirmed and Dispatched are positions of the log in bytes:
// first readable, written, durable, replicated (LogEnd without replicas), built into queues.
func (s *Store) LogMin() int64 { return 0 }

// LogEnd is the physical offset behind the last record.
func (s *Store) LogEnd() int64 { return 0 }

// LogFlushed is the physical offset up to which the log is durable.
func (s *Store) LogFlushed() int64 { return 0 }

// LogConfirmed is the physical offset up to which readers may see the log.
func (s *Store) LogConfirmed() int64 { return 0 }

// Dispatched is the physical offset up to which queues and index are built.
func (s *Store) Dispatched() int64 { return 0 }

// Findings are what Open found and repaired, in order.
func (s *Store) Findings() []Finding { return nil }

// FindingKind names what was found.
type FindingKind string

// Finding is one thing that recovery found to be wrong and what it did about it.
type Finding struct {
	Kind   FindingKind
	File   string // path inside the store directory, empty when it concerns no single file
	Offset int64  // physical offset, or byte offset in File for queue and index files; -1 for none
	What   string // one sentence: what was wrong, what was done
}
