package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"mqx/message"
	"mqx/remoting"
)

// loadBroker is one broker with the queues of it that are loaded.
type loadBroker struct {
	addr   string
	queues []*loadQueue
}

// loadQueue is one queue, and what of it is read.
type loadQueue struct {
	remoting.MessageQueue
	min, start, end int64
}

// createLoadTopics makes the topics that do not exist yet, as any client would: by
// sending one message, where the brokers create topics for that.
func createLoadTopics(ctx context.Context, c *core, cfg *LoadConfig) error {
	p, err := NewProducer(ProducerConfig{Config: cfg.Config})
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelQuestions)
	for _, topic := range cfg.Topics {
		g.Go(func() error {
			_, err := c.routes.get(gctx, topic)
			var none *NoRouteError
			if !errors.As(err, &none) || !none.Unknown() {
				return err
			}
			_, err = p.Send(gctx, &message.Message{Topic: topic, Body: []byte("mqx bench creates this topic")}, SendOptions{})
			if err != nil {
				return fmt.Errorf("cannot create topic %q by sending to it: %w", topic, err)
			}
			return waitForRoute(gctx, c, topic)
		})
	}
	return g.Wait()
}

// routeGrace is how long a new topic may take to become known at the name servers.
const routeGrace = 30 * time.Second

// waitForRoute returns when the name servers know a topic.
func waitForRoute(ctx context.Context, c *core, topic string) error {
	for deadline := time.Now().Add(routeGrace); ; {
		_, err := c.routes.get(ctx, topic)
		if err == nil || time.Now().After(deadline) || !sleep(ctx, 20*time.Millisecond) {
			return err
		}
	}
}

// parallelQuestions bounds the requests that prepare a load.
const parallelQuestions = 16

// loadTargets finds the brokers to load and their queues: those that can be written to,
// or read from. Topics alternate in a broker's list, so that neighbours differ.
func loadTargets(ctx context.Context, c *core, cfg *LoadConfig, write bool) ([]*loadBroker, error) {
	byAddr := map[string]*loadBroker{}
	var order []string
	add := func(addr string, q remoting.MessageQueue) {
		b := byAddr[addr]
		if b == nil {
			b = &loadBroker{addr: addr}
			byAddr[addr] = b
			order = append(order, addr)
		}
		b.queues = append(b.queues, &loadQueue{MessageQueue: q})
	}
	for _, topic := range cfg.Topics {
		r, err := c.routes.get(ctx, topic)
		if err != nil {
			return nil, err
		}
		queues := r.read
		if write {
			queues = r.write
		}
		shown := map[string]bool{}
		for _, q := range queues {
			addr, _ := r.addr(q.BrokerName, masterID)
			addr = c.vip(addr)
			shown[addr] = true
			if cfg.Queues > 0 && int(q.QueueID) >= cfg.Queues || len(cfg.Brokers) > 0 && !slices.Contains(cfg.Brokers, addr) {
				continue
			}
			add(addr, q)
		}
		for _, addr := range cfg.Brokers {
			if !shown[addr] {
				for i := range max(cfg.Queues, 1) {
					add(addr, remoting.MessageQueue{Topic: topic, QueueID: int32(i)})
				}
			}
		}
	}
	if len(order) == 0 {
		return nil, &NoRouteError{Topic: cfg.Topics[0], Err: errors.New("no queue to load")}
	}
	out := make([]*loadBroker, 0, len(order))
	for _, addr := range order {
		b := byAddr[addr]
		slices.SortStableFunc(b.queues, func(x, y *loadQueue) int { return int(x.QueueID) - int(y.QueueID) })
		out = append(out, b)
	}
	return out, nil
}

// eachQueue asks something about every queue, several at a time.
func eachQueue(ctx context.Context, brokers []*loadBroker, f func(ctx context.Context, b *loadBroker, q *loadQueue) error) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelQuestions)
	for _, b := range brokers {
		for _, q := range b.queues {
			g.Go(func() error { return f(gctx, b, q) })
		}
	}
	return g.Wait()
}

// offsetAt asks a broker for an offset of a queue.
func offsetAt(ctx context.Context, c *core, b *loadBroker, code int32, header any) (int64, error) {
	resp, err := c.call(ctx, b.addr, remoting.NewRequest(code, header))
	if err != nil {
		return 0, err
	}
	n, ok, err := resp.Fields.Int64("offset")
	return n, errors.Join(err, errMissing(ok))
}

func maxOffsetAt(ctx context.Context, c *core, b *loadBroker, q *loadQueue) (int64, error) {
	return offsetAt(ctx, c, b, remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetHeader{
		Topic: q.Topic, QueueID: q.QueueID, Committed: true, TopicHeader: topicHeader(q.MessageQueue),
	})
}

// findEnds notes where each queue ends before the load: what comes later is read back.
func findEnds(ctx context.Context, c *core, brokers []*loadBroker) error {
	return eachQueue(ctx, brokers, func(ctx context.Context, b *loadBroker, q *loadQueue) (err error) {
		q.start, err = maxOffsetAt(ctx, c, b, q)
		q.end = q.start
		return err
	})
}

// findRanges notes where each queue starts and ends.
func findRanges(ctx context.Context, c *core, brokers []*loadBroker) error {
	return eachQueue(ctx, brokers, func(ctx context.Context, b *loadBroker, q *loadQueue) (err error) {
		q.min, err = offsetAt(ctx, c, b, remoting.ReqGetMinOffset, &remoting.GetMinOffsetHeader{
			Topic: q.Topic, QueueID: q.QueueID, TopicHeader: topicHeader(q.MessageQueue),
		})
		if err != nil {
			return err
		}
		q.start = q.min
		q.end, err = maxOffsetAt(ctx, c, b, q)
		return err
	})
}
