package client

import (
	"context"
	"errors"
	"time"
)

// PositionKind says how a Position is meant.
type PositionKind int

// The kinds of position.
const (
	AtStart PositionKind = iota
	AtEnd
	AtOffset
	AtTime
)

// Position is a place in a queue.
type Position struct {
	Kind   PositionKind
	Offset int64
	Time   time.Time
}

// ReaderConfig says what a Reader reads.
type ReaderConfig struct {
	Config
	Topic string
	// Brokers limits reading to brokers of these names; empty means all.
	Brokers []string
	// Queue limits reading to one queue id when HasQueue.
	Queue    int32
	HasQueue bool
	// Start and End bound the range: [Start, End). A nil End means the end of each queue
	// as it was when reading began, or none at all with Follow.
	Start Position
	End   *Position
	// Tag is a tag expression (a || b), SQL an SQL92 expression; at most one of them.
	Tag, SQL string
	// Group is the group in whose name is read; empty means TOOLS_CONSUMER. Nothing is committed.
	Group string
	// Batch is the number of messages asked for in a pull; 0 means 32.
	Batch int
	// Follow keeps reading as messages come, by long polling.
	Follow bool
	// Ordered merges queues by store time as far as they have been read.
	Ordered bool
}

// Reader reads queues of a topic beside any group: it commits nothing and registers nowhere.
type Reader struct{ cfg ReaderConfig }

// ErrStop, returned by the function of Reader.Read or Consumer.Run, ends it without an error.
var ErrStop = errors.New("stop reading")

// NewReader checks cfg.
func NewReader(cfg ReaderConfig) (*Reader, error) { return &Reader{cfg: cfg}, nil }

// Read calls f for each message, one call at a time, until the range is read, f
// returns an error (ErrStop ends without one) or ctx ends. m is f's to keep.
func (r *Reader) Read(ctx context.Context, f func(m *Received) error) error { return errNotBuilt }

// Close closes the connections. It is idempotent.
func (r *Reader) Close() error { return nil }
