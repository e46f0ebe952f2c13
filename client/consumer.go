package client

import (
	"context"
	"time"
)

// ConsumeFrom says where a group without committed offset begins.
type ConsumeFrom int

// The three rules of the Java client.
const (
	FromLast ConsumeFrom = iota
	FromFirst
	FromTime
)

// Subscription is one topic of a consumer and its filter.
type Subscription struct {
	Topic string
	// Tag is a tag expression, SQL an SQL92 expression; both empty means everything.
	Tag, SQL string
}

// ConsumerConfig configures a Consumer.
type ConsumerConfig struct {
	Config
	Group         string
	Subscriptions []Subscription
	// Broadcast gives every member all messages; offsets are then kept in memory only.
	Broadcast bool
	From      ConsumeFrom
	FromAt    time.Time // for FromTime; the zero value means 30 minutes ago
	// Batch is the number of messages asked for in a pull; 0 means 32.
	Batch int
	// MaxBuffered bounds pulled and not yet handed over messages of a queue; 0 means 1,000.
	MaxBuffered int
	// MaxBufferedBytes bounds their size for a queue; 0 means 100 MiB.
	MaxBufferedBytes int64
	// Rebalance is the time between rebalances; 0 means 20 s.
	Rebalance time.Duration
	// Commit is the time between offset commits; 0 means 5 s.
	Commit time.Duration
}

// Consumer is a member of a consumer group.
type Consumer struct{ cfg ConsumerConfig }

// NewConsumer checks cfg.
func NewConsumer(cfg ConsumerConfig) (*Consumer, error) { return &Consumer{cfg: cfg}, nil }

// Run joins the group, hands batches of one queue each to f, one call at a time, and
// commits an offset only after f returned nil for all before it. It ends when ctx
// ends or f returns an error (ErrStop ends without one, and counts the batch as
// taken); it then commits, leaves the group and closes its connections.
func (c *Consumer) Run(ctx context.Context, f func(ctx context.Context, ms []*Received) error) error {
	return errNotBuilt
}
