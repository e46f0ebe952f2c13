package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mqx/message"
	"mqx/remoting"
)

// ConsumeFrom says where a group without committed offset begins.
type ConsumeFrom int

// The three rules of the Java client.
const (
	FromLast ConsumeFrom = iota
	FromFirst
	FromTime
)

func (f ConsumeFrom) wire() string {
	return [...]string{remoting.ConsumeFromLastOffset, remoting.ConsumeFromFirstOffset, remoting.ConsumeFromTimestamp}[f]
}

// Subscription is one topic of a consumer and its filter.
type Subscription struct {
	Topic string
	// Tag is a tag expression, SQL an SQL92 expression; both empty means everything.
	Tag, SQL string
}

// ConsumerConfig configures a Consumer. Zero values mean the defaults.
type ConsumerConfig struct {
	Config
	Group         string
	Subscriptions []Subscription
	// Broadcast gives every member all messages; offsets are then kept in memory only.
	Broadcast bool
	From      ConsumeFrom
	FromAt    time.Time // for FromTime; the zero value means 30 minutes ago
	// Batch is the number of messages asked for in a pull, default 32.
	Batch int
	// MaxBuffered bounds pulled and not yet handed over messages of a queue, default 1,000.
	MaxBuffered int
	// MaxBufferedBytes bounds their size for a queue, default 100 MiB.
	MaxBufferedBytes int64
	// Rebalance is the time between rebalances, default 20 s.
	Rebalance time.Duration
	// Commit is the time between offset commits, default 5 s.
	Commit time.Duration
}

// Defaults of ConsumerConfig.
const (
	DefaultMaxBuffered      = 1000
	DefaultMaxBufferedBytes = 100 << 20
	DefaultRebalance        = 20 * time.Second
	DefaultCommit           = 5 * time.Second
	defaultFromTime         = 30 * time.Minute
)

func (c *ConsumerConfig) setDefaults() error {
	setDefault(&c.Batch, DefaultBatch)
	setDefault(&c.MaxBuffered, DefaultMaxBuffered)
	setDefault(&c.MaxBufferedBytes, DefaultMaxBufferedBytes)
	setDefault(&c.Rebalance, DefaultRebalance)
	setDefault(&c.Commit, DefaultCommit)
	if err := message.ValidateGroup(c.Group); err != nil {
		return err
	}
	if len(c.Subscriptions) == 0 {
		return errors.New("no topic is subscribed")
	}
	if c.Batch < 1 || c.Batch > maxBatch {
		return fmt.Errorf("batch of %d, 1 to %d are possible", c.Batch, maxBatch)
	}
	return nil
}

// subscribed is a subscription with its filter.
type subscribed struct {
	filter  filter
	version int64
}

// Consumer is a member of a consumer group. NewConsumer starts nothing.
type Consumer struct {
	cfg   ConsumerConfig
	core  *core
	subs  map[string]*subscribed // by topic, with the group's retry topic
	beats heartbeats
	wake  chan struct{} // holds one token when a rebalance is due
	out   chan *handOff // pulled batches for Run
	began time.Time

	mu struct {
		sync.Mutex
		queues map[remoting.MessageQueue]*assigned
		ran    bool
	}
}

// handOff is one pulled batch on its way to the application, empty when all of it was
// filtered out.
type handOff struct {
	from     *assigned
	epoch    int64
	messages []*Received
	bytes    int64
	next     int64 // offset to commit when it has been taken
}

// NewConsumer checks cfg.
func NewConsumer(cfg ConsumerConfig) (*Consumer, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, fmt.Errorf("cannot make consumer: %w", err)
	}
	c := &Consumer{cfg: cfg, subs: map[string]*subscribed{}, wake: make(chan struct{}, 1), out: make(chan *handOff)}
	co, err := newCore(cfg.Config, c.serve)
	if err != nil {
		return nil, fmt.Errorf("cannot make consumer: %w", err)
	}
	c.core = co
	c.mu.queues = map[remoting.MessageQueue]*assigned{}
	version := co.cfg.Clock.Now().UnixMilli()
	for _, s := range cfg.Subscriptions {
		if err := message.ValidateTopic(s.Topic); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot make consumer: %w", err), co.close())
		}
		f, err := newFilter(s.Tag, s.SQL)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot make consumer: topic %q: %w", s.Topic, err), co.close())
		}
		c.subs[s.Topic] = &subscribed{filter: f, version: version}
	}
	if !cfg.Broadcast {
		all, _ := newFilter("*", "")
		c.subs[message.RetryTopic(cfg.Group)] = &subscribed{filter: all, version: version}
	}
	c.beats = heartbeats{core: co, all: true, data: c.heartbeat}
	return c, nil
}

func (c *Consumer) model() string {
	if c.cfg.Broadcast {
		return remoting.Broadcasting
	}
	return remoting.Clustering
}

func (c *Consumer) heartbeat() remoting.HeartbeatData {
	d := remoting.ConsumerData{
		GroupName: c.cfg.Group, ConsumeType: remoting.ConsumePassively, MessageModel: c.model(), ConsumeFromWhere: c.cfg.From.wire(),
	}
	for topic, s := range c.subs {
		d.SubscriptionDataSet = append(d.SubscriptionDataSet, s.filter.subscription(topic, s.version))
	}
	return remoting.HeartbeatData{ClientID: c.core.id, ConsumerDataSet: []remoting.ConsumerData{d}, ProducerDataSet: []remoting.ProducerData{}}
}

// Run joins the group, hands batches of one queue each to f, one call at a time, and
// commits an offset only after f returned nil for all before it. It ends when ctx
// ends, with its cause, or f returns an error (ErrStop ends without one, and counts the
// batch as taken); it then commits, leaves the group and closes its connections. It
// may be called once. The messages are f's to keep.
func (c *Consumer) Run(ctx context.Context, f func(ctx context.Context, ms []*Received) error) error {
	c.mu.Lock()
	ran := c.mu.ran
	c.mu.ran = true
	c.mu.Unlock()
	if ran {
		return errors.New("cannot run consumer: it ran before")
	}
	c.began = c.core.cfg.Clock.Now()
	work, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	if err := c.loadRoutes(work); err != nil {
		cancel()
		return errors.Join(err, c.core.close())
	}
	c.beats.beat(work) // a member before the first pull, or the broker knows no subscription
	c.beats.start()
	wg.Go(func() { c.rebalanceLoop(work) })
	wg.Go(func() { c.commitLoop(work) })

	err := c.handOut(ctx, f)
	// 1. No more pulls and rebalances.
	cancel()
	wg.Wait()
	c.stopQueues()
	// 2. What was taken is committed, and the broker has it before the group is left.
	err = errors.Join(err, c.commitAll())
	// 3. Leave the group, so that its other members take over at once.
	c.beats.stop(&remoting.UnregisterClientHeader{ClientID: c.core.id, ConsumerGroup: c.cfg.Group})
	// 4. Connections.
	return errors.Join(err, c.core.close())
}

// loadRoutes fetches the routes of the subscribed topics; one that exists nowhere is an
// error at the start, except for the retry topic.
func (c *Consumer) loadRoutes(ctx context.Context) error {
	for topic := range c.subs {
		if _, err := c.core.routes.get(ctx, topic); err != nil && !message.IsRetry(topic) {
			return err
		}
	}
	return nil
}

// handOut gives batches to f until it is told to end.
func (c *Consumer) handOut(ctx context.Context, f func(context.Context, []*Received) error) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case h := <-c.out:
			if !h.from.current(h.epoch) {
				continue // the queue went to another member, or was reset
			}
			var err error
			if len(h.messages) > 0 {
				err = f(ctx, h.messages)
			}
			if err == nil || errors.Is(err, ErrStop) {
				h.from.taken(h)
			}
			if errors.Is(err, ErrStop) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
}

// commitLoop commits every Config.Commit.
func (c *Consumer) commitLoop(ctx context.Context) {
	tick := time.NewTicker(c.cfg.Commit)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := c.commitAll(); err != nil {
				c.core.log.Warn("commit failed", "group", c.cfg.Group, "error", err)
			}
		}
	}
}

// finalCommit bounds the commits at the end.
const finalCommit = 5 * time.Second

// commitAll commits what was taken and the broker has not answered to have.
func (c *Consumer) commitAll() error {
	ctx, cancel := context.WithTimeout(context.Background(), finalCommit)
	defer cancel()
	c.mu.Lock()
	queues := make([]*assigned, 0, len(c.mu.queues))
	for _, a := range c.mu.queues {
		queues = append(queues, a)
	}
	c.mu.Unlock()
	var errs []error
	for _, a := range queues {
		errs = append(errs, c.commitQueue(ctx, a))
	}
	return errors.Join(errs...)
}

func (c *Consumer) commitQueue(ctx context.Context, a *assigned) error {
	if c.cfg.Broadcast {
		return nil
	}
	offset, due := a.toCommit()
	if !due {
		return nil
	}
	if err := c.core.commit(ctx, c.cfg.Group, a.queue, offset); err != nil {
		return fmt.Errorf("cannot commit offset %d of %s: %w", offset, a.queue, err)
	}
	a.committed(offset)
	return nil
}

// serve answers requests of brokers.
func (c *Consumer) serve(addr string, req *remoting.Command) *remoting.Command {
	switch req.Code {
	case remoting.ReqNotifyConsumerIDsChanged:
		c.rebalanceSoon()
		return nil
	case remoting.ReqResetConsumerClientOffset:
		c.reset(req)
		return nil
	case remoting.ReqGetConsumerStatusFromClient:
		return c.status(req)
	case remoting.ReqGetConsumerRunningInfo:
		return c.runningInfo(req)
	}
	return remoting.NewResponse(req, remoting.RespRequestCodeNotSupported, fmt.Sprintf(" request type %d not supported", req.Code))
}

func (c *Consumer) rebalanceSoon() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
