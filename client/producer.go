package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"mqx/message"
	"mqx/remoting"
)

// ProducerConfig configures a Producer. Zero values mean the Java client's defaults.
type ProducerConfig struct {
	Config
	// Group is the producer group, default DEFAULT_PRODUCER.
	Group string
	// Retries is how many more brokers or queues a failed send tries; nil means 2. A
	// send to a named queue is not tried elsewhere.
	Retries *int
	// CompressOver compresses bodies above this many bytes, default 4096; negative: never.
	CompressOver int
	// CompressType, default message.CompressionZlib.
	CompressType message.CompressionType
	// CompressLevel, default 5.
	CompressLevel int
	// MaxMessageSize refuses larger bodies before they travel, default 4 MiB.
	MaxMessageSize int
	// DefaultTopic is the template topic for auto-creation, default TBW102.
	DefaultTopic string
	// DefaultTopicQueues is the number of queues asked for at auto-creation, default 4.
	DefaultTopicQueues int
	// AvoidFaulty keeps a broker that failed or was slow out of the choice for a while.
	AvoidFaulty bool
}

// Defaults of ProducerConfig.
const (
	DefaultProducerGroup  = "DEFAULT_PRODUCER"
	DefaultRetries        = 2
	DefaultCompressOver   = 4096
	DefaultMaxMessageSize = 4 << 20
	DefaultTopicQueues    = 4
)

func (c *ProducerConfig) setDefaults() error {
	setDefault(&c.Group, DefaultProducerGroup)
	setDefault(&c.CompressOver, DefaultCompressOver)
	setDefault(&c.CompressType, message.CompressionZlib)
	setDefault(&c.CompressLevel, message.CompressionDefaultLevel)
	setDefault(&c.MaxMessageSize, DefaultMaxMessageSize)
	setDefault(&c.DefaultTopic, message.TopicAutoCreate)
	setDefault(&c.DefaultTopicQueues, DefaultTopicQueues)
	if c.Retries == nil {
		n := DefaultRetries
		c.Retries = &n
	}
	return message.ValidateGroup(c.Group)
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

// String is Apache's name of the status.
func (s SendStatus) String() string {
	return [...]string{"SEND_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE"}[s]
}

// SendResult says where a message went.
type SendResult struct {
	Status        SendStatus
	MessageID     string // the client's unique id (comma-joined for a batch)
	OffsetID      string // the broker's id (comma-joined for a batch)
	Queue         remoting.MessageQueue
	QueueOffset   int64 // of the first message of a batch
	TransactionID string
	RecallHandle  string
	Region        string
	Broker        string // address that stored it
	Took          time.Duration
}

// SendOptions choose the queue of one send. The zero value means round robin over the
// writable queues.
type SendOptions struct {
	// HasQueue takes the queue with this id, of Broker or of the first broker by name.
	HasQueue bool
	QueueID  int32
	// Broker, alone, takes the queues of that broker in turn.
	Broker string
	// ShardKey sends equal keys to the same queue, as Java's SelectMessageQueueByHash does.
	ShardKey string
	// Random picks any writable queue.
	Random bool
	// Select picks among all writable queues itself.
	Select func(queues []remoting.MessageQueue) (int, error)
	// Again is of a message that was sent before; not for batches.
	Again *Resend
}

// Resend is what a message keeps that is sent once more: what a new message gets from the
// producer's settings and from the time of the send.
type Resend struct {
	BornTimestamp  int64 // ms; 0: now
	ReconsumeTimes int32 // a broker looks at it in retry topics only
	// Compression of the body; message.CompressionLegacy: none.
	Compression message.CompressionType
}

// Producer sends messages. It is safe to share. NewProducer starts nothing; Start
// begins heartbeats, Close ends them.
type Producer struct {
	cfg    ProducerConfig
	core   *core
	ids    *message.IDGenerator
	faults *faults
	turn   atomic.Uint32 // round robin over queues, of all topics together
	beats  heartbeats
	once   sync.Once
}

// NewProducer checks cfg.
func NewProducer(cfg ProducerConfig) (*Producer, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, fmt.Errorf("cannot make producer: %w", err)
	}
	c, err := newCore(cfg.Config, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot make producer: %w", err)
	}
	p := &Producer{cfg: cfg, core: c, faults: newFaults(), ids: message.NewIDGenerator(c.ip, os.Getpid(), c.cfg.Clock)}
	p.turn.Store(rand.Uint32())
	p.beats = heartbeats{core: c, data: func() remoting.HeartbeatData {
		return remoting.HeartbeatData{
			ClientID: c.id, ConsumerDataSet: []remoting.ConsumerData{},
			ProducerDataSet: []remoting.ProducerData{{GroupName: cfg.Group}},
		}
	}}
	return p, nil
}

// Start begins heartbeats. Sends work without it, but a broker then does not list the
// producer and cannot call it back.
func (p *Producer) Start() error {
	p.beats.start()
	return nil
}

// Close unregisters the producer at its brokers and closes its connections. It is idempotent.
func (p *Producer) Close() (err error) {
	p.once.Do(func() {
		p.beats.stop(&remoting.UnregisterClientHeader{ClientID: p.core.id, ProducerGroup: p.cfg.Group})
		err = p.core.close()
	})
	return err
}

// Send sends one message and waits for the broker's answer. A failure on one broker is
// tried again on others (Retries); the error is then a *SendError that names each attempt.
func (p *Producer) Send(ctx context.Context, m *message.Message, o SendOptions) (SendResult, error) {
	out, err := p.prepare(m, o.Again)
	if err != nil {
		return SendResult{}, err
	}
	return p.deliver(ctx, out, o)
}

// SendBatch sends several messages of one topic in one request; all have the same
// WAIT, none a delay, none goes to a retry topic.
func (p *Producer) SendBatch(ctx context.Context, ms []*message.Message, o SendOptions) (SendResult, error) {
	out, err := p.prepareBatch(ms)
	if err != nil {
		return SendResult{}, err
	}
	return p.deliver(ctx, out, o)
}

// SendAsync sends one message and calls done exactly once, from another goroutine.
// The message must not change before that.
func (p *Producer) SendAsync(ctx context.Context, m *message.Message, o SendOptions, done func(SendResult, error)) {
	out, err := p.prepare(m, o.Again)
	if err != nil {
		go done(SendResult{}, err)
		return
	}
	p.deliverAsync(ctx, out, o, done)
}

// SendOneway sends one message and does not wait: nothing tells whether it was stored.
func (p *Producer) SendOneway(ctx context.Context, m *message.Message, o SendOptions) error {
	out, err := p.prepare(m, o.Again)
	if err != nil {
		return err
	}
	r, err := p.route(ctx, out.topic)
	if err != nil {
		return err
	}
	q, addr, err := p.choose(r, o, "")
	if err != nil {
		return err
	}
	return p.core.conn.Oneway(ctx, p.core.vip(addr), p.request(out, q))
}
