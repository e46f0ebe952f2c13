package client

import (
	"context"
	"errors"
	"time"

	"mqx/message"
	"mqx/remoting"
)

// ProducerConfig configures a Producer. Zero values mean the Java client's defaults.
type ProducerConfig struct {
	Config
	// Group is the producer group; empty means DEFAULT_PRODUCER.
	Group string
	// Retries is how many more brokers or queues a failed synchronous send tries;
	// nil means 2.
	Retries *int
	// CompressOver compresses bodies above this many bytes; 0 means 4096, negative never.
	CompressOver int
	// CompressLevel is the zlib level; 0 means 5.
	CompressLevel int
	// MaxMessageSize refuses larger bodies before they travel; 0 means 4 MiB.
	MaxMessageSize int
	// DefaultTopic is the template topic for auto-creation; empty means TBW102.
	DefaultTopic string
	// DefaultTopicQueues is the number of queues asked for at auto-creation; 0 means 4.
	DefaultTopicQueues int
	// AvoidFaulty keeps a broker that failed or was slow out of the choice for a while.
	AvoidFaulty bool
}

// SendStatus is the outcome of a send that the broker stored.
type SendStatus int

// The four outcomes that carry a message id.
const (
	SendOK SendStatus = iota
	SendFlushDiskTimeout
	SendFlushSlaveTimeout
	SendSlaveNotAvailable
)

// SendResult says where a message went.
type SendResult struct {
	Status        SendStatus
	MessageID     string // the client's unique id (comma-joined for a batch)
	OffsetID      string // the broker's id (comma-joined for a batch)
	Queue         remoting.MessageQueue
	QueueOffset   int64
	TransactionID string
	RecallHandle  string
	Region        string
	Broker        string // address that stored it
	Took          time.Duration
}

// SendOptions choose the queue of one send. The zero value means round robin over
// the writable queues.
type SendOptions struct {
	// Broker and QueueID name one queue; QueueID counts only with HasQueue.
	Broker   string
	QueueID  int32
	HasQueue bool
	// ShardKey sends equal keys to the same queue, as Java's SelectMessageQueueByHash does.
	ShardKey string
	// Random picks any writable queue.
	Random bool
	// Select picks among queues itself.
	Select func(queues []remoting.MessageQueue) (int, error)
}

// Producer sends messages. It is safe to share. NewProducer starts nothing; Start
// begins heartbeats and route polling, Close ends them.
type Producer struct{ cfg ProducerConfig }

// NewProducer checks cfg.
func NewProducer(cfg ProducerConfig) (*Producer, error) { return &Producer{cfg: cfg}, nil }

var errNotBuilt = errors.New("not built yet")

// Start begins heartbeats and route polling. Sends work without it, but a broker
// then does not list the producer and cannot call it back.
func (p *Producer) Start() error { return nil }

// Close unregisters the producer at its brokers and closes its connections. It is idempotent.
func (p *Producer) Close() error { return nil }

// Send sends one message and waits for the broker's answer. A failure on one broker is
// tried again on others (Retries); the error then names each attempt.
func (p *Producer) Send(ctx context.Context, m *message.Message, o SendOptions) (SendResult, error) {
	return SendResult{}, errNotBuilt
}

// SendAsync sends one message and calls done exactly once, from another goroutine.
func (p *Producer) SendAsync(ctx context.Context, m *message.Message, o SendOptions, done func(SendResult, error)) {
	go done(SendResult{}, errNotBuilt)
}

// SendOneway sends one message and does not wait: nothing tells whether it was stored.
func (p *Producer) SendOneway(ctx context.Context, m *message.Message, o SendOptions) error {
	return errNotBuilt
}

// SendBatch sends several messages of one topic in one request; all have the same
// WAIT, none a delay level, none goes to a retry topic.
func (p *Producer) SendBatch(ctx context.Context, ms []*message.Message, o SendOptions) (SendResult, error) {
	return SendResult{}, errNotBuilt
}
