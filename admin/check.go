package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mqx/client"
	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// CheckOptions say how send latency is checked.
type CheckOptions struct {
	Count int // messages to each place, after one that is not counted; at least 1
	Size  int // bytes of a body
	// Each is called after every send that is counted; it may be nil. It is not called
	// from two places at once.
	Each func(SendCheck, SendTry)
}

// SendTry is one send of a check.
type SendTry struct {
	Result client.SendResult
	Took   time.Duration
	Err    error
}

// SendCheck is how fast one place stores messages and gives them back.
type SendCheck struct {
	Broker
	Topic   string
	QueueID *int32 // nil: any queue of the broker
	First   bool   // the first message, which is not counted, was stored
	Sent    int
	Failed  int
	// Min, Mean, Max are of the sends that were answered; zero when there is none.
	Min, Mean, Max time.Duration
	// Read is how long the last message took to be read back; zero when it was not.
	Read time.Duration
	Err  error // of the last send or read that failed
}

// CheckSend sends messages to every broker of t, into the topic that each broker has
// under its own name, and reads the last one back. Brokers are checked at the same time.
func (c *Client) CheckSend(ctx context.Context, t Target, o CheckOptions) ([]SendCheck, error) {
	brokers, err := c.primaries(ctx, t)
	if err != nil {
		return nil, err
	}
	places := make([]SendCheck, 0, len(brokers))
	for _, b := range brokers {
		if b.Name == "" {
			return nil, fmt.Errorf("cannot send to %s: no name server knows it", b.Addr)
		}
		places = append(places, SendCheck{Broker: b, Topic: b.Name})
	}
	if len(places) == 0 {
		return nil, &NotFoundError{Kind: "broker"}
	}
	return c.checkPlaces(ctx, places, o)
}

// CheckTopic sends messages to every queue of a topic that can be written. They stay
// there: it is for topics that nobody minds a test message in.
func (c *Client) CheckTopic(ctx context.Context, topic string, o CheckOptions) ([]SendCheck, error) {
	places, err := c.writePlaces(ctx, topic)
	if err != nil {
		return nil, err
	}
	return c.checkPlaces(ctx, places, o)
}

// CheckTurns sends o.Count messages one after the other, each to the next queue of a
// topic that can be written, and tells o.Each of every one.
func (c *Client) CheckTurns(ctx context.Context, topic string, o CheckOptions) error {
	places, err := c.writePlaces(ctx, topic)
	if err != nil {
		return err
	}
	return c.withProducer(func(p *client.Producer) error {
		body := bytes.Repeat([]byte("a"), o.Size)
		for i := range o.Count {
			s := &places[i%len(places)]
			began := time.Now()
			result, err := c.sendOnce(ctx, p, &message.Message{Topic: topic, Body: body}, client.SendOptions{Broker: s.Name, HasQueue: true, QueueID: *s.QueueID})
			took := time.Since(began)
			s.note(took, err)
			o.Each(*s, SendTry{result, took, err})
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		return nil
	})
}

// writePlaces are the queues of a topic that can be written, sorted.
func (c *Client) writePlaces(ctx context.Context, topic string) ([]SendCheck, error) {
	route, err := c.Route(ctx, topic)
	if err != nil {
		return nil, err
	}
	var places []SendCheck
	for _, q := range route.QueueDatas {
		if q.Perm&2 == 0 {
			continue
		}
		b := Broker{Name: q.BrokerName}
		for _, bd := range route.BrokerDatas {
			if bd.BrokerName == q.BrokerName {
				b.Cluster, b.Addr = bd.Cluster, bd.BrokerAddrs[0]
			}
		}
		for id := range q.WriteQueueNums {
			places = append(places, SendCheck{Broker: b, Topic: topic, QueueID: &id})
		}
	}
	if len(places) == 0 {
		return nil, fmt.Errorf("topic %q has no queue that can be written", topic)
	}
	sorted.By(places, func(x, y SendCheck) int {
		if d := compareBrokers(x.Broker, y.Broker); d != 0 {
			return d
		}
		return int(*x.QueueID - *y.QueueID)
	})
	return places, nil
}

func (c *Client) checkPlaces(ctx context.Context, places []SendCheck, o CheckOptions) ([]SendCheck, error) {
	err := c.withProducer(func(p *client.Producer) error {
		var mu sync.Mutex
		return several(c.cfg.Parallel, indices(places), func(i int) error {
			c.checkPlace(ctx, p, &places[i], o, &mu)
			return ctx.Err()
		})
	})
	return places, err
}

// withProducer calls f with a producer whose sends are one send each, of the size that
// is asked for.
func (c *Client) withProducer(f func(p *client.Producer) error) (err error) {
	p, err := client.NewProducer(client.ProducerConfig{
		Config: client.Config{NameServers: c.cfg.NameServers, Credentials: c.cfg.Credentials, TLS: c.cfg.TLS, Map: c.cfg.Map, Logger: c.cfg.Logger},
		Group:  "mqx_check", Retries: new(int), CompressOver: -1,
	})
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	defer func() {
		if closeErr := p.Close(); err == nil {
			err = closeErr
		}
	}()
	return f(p)
}

func (c *Client) checkPlace(ctx context.Context, p *client.Producer, s *SendCheck, o CheckOptions, mu *sync.Mutex) {
	to := client.SendOptions{Broker: s.Name}
	if s.QueueID != nil {
		to.HasQueue, to.QueueID = true, *s.QueueID
	}
	body := bytes.Repeat([]byte("a"), o.Size)
	var total time.Duration
	var last client.SendResult
	for i := -1; i < o.Count && ctx.Err() == nil; i++ {
		began := time.Now()
		result, err := c.sendOnce(ctx, p, &message.Message{Topic: s.Topic, Body: body}, to)
		took := time.Since(began)
		if i < 0 && err == nil {
			s.First = true
			continue // the first one connects
		}
		if s.note(took, err) {
			total += took
			last = result
		}
		if o.Each != nil {
			mu.Lock()
			o.Each(*s, SendTry{result, took, err})
			mu.Unlock()
		}
		if i < 0 || errors.Is(err, context.DeadlineExceeded) {
			break // it does not answer: the next one would wait as long
		}
	}
	if s.Sent > 0 {
		s.Mean = total / time.Duration(s.Sent)
		s.readBack(ctx, c, last)
	}
}

func (c *Client) sendOnce(ctx context.Context, p *client.Producer, m *message.Message, to client.SendOptions) (client.SendResult, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.BrokerTimeout)
	defer cancel()
	return p.Send(ctx, m, to)
}

// note counts one send and reports whether it was answered.
func (s *SendCheck) note(took time.Duration, err error) bool {
	if err != nil {
		s.Failed++
		s.Err = err
		return false
	}
	if s.Sent == 0 || took < s.Min {
		s.Min = took
	}
	s.Sent++
	s.Max = max(s.Max, took)
	return true
}

// readBack pulls the message that was stored last.
func (s *SendCheck) readBack(ctx context.Context, c *Client, last client.SendResult) {
	began := time.Now()
	_, err := c.ask(ctx, s.Addr, remoting.NewRequest(remoting.ReqPullMessage, &remoting.PullMessageHeader{
		ConsumerGroup: message.GroupTools, Topic: s.Topic, QueueID: last.Queue.QueueID, QueueOffset: last.QueueOffset, MaxMsgNums: 1,
		SysFlag: pullSubscription, Subscription: "*", ExpressionType: remoting.ExpressionTag, SubVersion: began.UnixMilli(),
	}))
	if err != nil {
		s.Err = fmt.Errorf("cannot read the message back: %w", err)
		return
	}
	s.Read = time.Since(began)
}

// pullSubscription is the flag of a pull that brings its own subscription.
const pullSubscription = 1 << 2
