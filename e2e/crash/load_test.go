package crash

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"mqx/client"
	"mqx/internal/fastjson"
	"mqx/internal/storecheck"
	"mqx/message"
	"mqx/remoting"
)

// topics are written to; each has queuesOfTopic queues.
var topics = []string{"Orders", "Payments", "Clicks"}

const (
	queuesOfTopic = 4
	goneTopic     = "Gone" // and a number: topics that are deleted
)

// load is the clients of one round.
type load struct {
	s      *life
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	once   sync.Once
	mu     struct {
		sync.Mutex
		commits int
	}
}

func (s *life) clientConfig() client.Config {
	return client.Config{NameServers: []string{s.ns}, Timeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler)}
}

// startLoad starts producers of all kinds, consumers and what else the plan says. They end when the broker is gone.
func (s *life) startLoad() *load {
	l := &load{s: s}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	go func(gone <-chan struct{}) {
		select {
		case <-gone:
			l.cancel()
		case <-l.ctx.Done():
		}
	}(s.broker.done)
	for range 2 {
		l.producer(time.Millisecond, l.sendOne)
	}
	l.producer(500*time.Microsecond, l.sendAsync)
	l.producer(5*time.Millisecond, l.sendBatch)
	l.producer(3*time.Millisecond, l.sendOneway)
	r := rand.New(rand.NewPCG(s.r.Uint64(), 2))
	l.work.Go(func() { l.commit(r) })
	l.work.Go(l.consume)
	if s.plan.expire {
		s.expired = true
		l.work.Go(l.expire)
	}
	if s.plan.remove {
		topic := fmt.Sprintf("%s%d", goneTopic, s.round)
		s.removed[topic] = false
		l.work.Go(func() { l.remove(topic) })
	}
	return l
}

// stop ends the clients and waits for them.
func (l *load) stop() {
	l.cancel()
	l.work.Wait()
	l.once.Do(func() { l.s.total.commits += l.mu.commits })
}

// producer runs send again and again, not more often than every pace, with a producer of its own.
func (l *load) producer(pace time.Duration, send func(*client.Producer, *rand.Rand) error) {
	r := rand.New(rand.NewPCG(l.s.r.Uint64(), 1))
	l.work.Go(func() {
		retries := 0
		p, err := client.NewProducer(client.ProducerConfig{Config: l.s.clientConfig(), Group: "crash", CompressOver: -1, Retries: &retries, DefaultTopicQueues: queuesOfTopic})
		if err != nil {
			l.s.t.Error(err)
			return
		}
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for l.next(tick) {
			if err := send(p, r); err != nil && l.ctx.Err() == nil {
				l.unexpected(err)
			}
		}
		_ = p.Close()
	})
}

// next waits for the pace; false when the load ends.
func (l *load) next(tick *time.Ticker) bool {
	select {
	case <-l.ctx.Done():
		return false
	case <-tick.C:
		return true
	}
}

// unexpected reports an error that a dying broker does not explain. Topics come into being with the first send.
func (l *load) unexpected(err error) {
	var answer *remoting.ResponseError
	var route *client.NoRouteError // the name server may know of the death before this process does
	if !errors.As(err, &answer) || errors.As(err, &route) {
		return
	}
	switch answer.Code {
	case remoting.RespSystemBusy, remoting.RespServiceNotAvailable:
	case remoting.RespTopicNotExist:
		if l.s.state == nil {
			return
		}
		for k := range l.s.state.Queues {
			if strings.Contains(answer.Remark, k.Topic) {
				l.s.t.Errorf("seed %d round %d: a topic with messages is missing: %v", l.s.seed, l.s.round, err)
				return
			}
		}
	default:
		l.s.t.Errorf("seed %d round %d: %v", l.s.seed, l.s.round, err)
	}
}

// message makes a message of the journal.
func (l *load) message(r *rand.Rand, topic string, queue int32) (uint64, *message.Message) {
	id, body := l.s.journal.Begin(topic, queue, storecheck.MinBody+r.IntN([]int{100, 1000, 4000}[r.IntN(3)]))
	m := &message.Message{Topic: topic, Body: body}
	if r.IntN(2) == 0 {
		m.SetKeys(fmt.Sprintf("k%d", id), fmt.Sprintf("g%d", id%40))
	}
	if r.IntN(2) == 0 {
		m.SetTags(fmt.Sprintf("t%d", id%5))
	}
	return id, m
}

func target(r *rand.Rand) (topic string, queue int32, o client.SendOptions) {
	queue = int32(r.IntN(queuesOfTopic))
	return topics[r.IntN(len(topics))], queue, client.SendOptions{HasQueue: true, QueueID: queue}
}

// answered notes the answer to ids, sent as one request.
func (l *load) answered(res client.SendResult, ids ...uint64) {
	if res.Status != client.SendOK {
		return
	}
	places := strings.Split(res.OffsetID, ",")
	for i, id := range ids {
		phys := int64(-1)
		if i < len(places) {
			if _, at, err := message.ParseOffsetID(places[i]); err == nil {
				phys = at
			}
		}
		if phys < 0 {
			l.s.t.Errorf("answer to message %d carries the offset ids %q", id, res.OffsetID)
		}
		l.s.journal.Ack(id, res.QueueOffset+int64(i), phys)
	}
}

func (l *load) sendOne(p *client.Producer, r *rand.Rand) error {
	topic, queue, o := target(r)
	id, m := l.message(r, topic, queue)
	res, err := p.Send(l.sendCtx(), m, o)
	if err == nil {
		l.answered(res, id)
	}
	return err
}

// sendCtx lets a send that is under way end by itself: an orderly stop wants its answer.
func (l *load) sendCtx() context.Context { return context.WithoutCancel(l.ctx) }

func (l *load) sendAsync(p *client.Producer, r *rand.Rand) error {
	topic, queue, o := target(r)
	id, m := l.message(r, topic, queue)
	l.work.Add(1)
	p.SendAsync(l.sendCtx(), m, o, func(res client.SendResult, err error) {
		defer l.work.Done()
		if err == nil {
			l.answered(res, id)
		} else if l.ctx.Err() == nil {
			l.unexpected(err)
		}
	})
	return nil
}

func (l *load) sendBatch(p *client.Producer, r *rand.Rand) error {
	topic, queue, o := target(r)
	var ids []uint64
	var ms []*message.Message
	for range 2 + r.IntN(7) {
		id, m := l.message(r, topic, queue)
		ids, ms = append(ids, id), append(ms, m)
	}
	res, err := p.SendBatch(l.sendCtx(), ms, o)
	if err == nil {
		l.answered(res, ids...)
	}
	return err
}

func (l *load) sendOneway(p *client.Producer, r *rand.Rand) error {
	topic, queue, o := target(r)
	_, m := l.message(r, topic, queue)
	return p.SendOneway(l.sendCtx(), m, o)
}

// makeGroups makes the groups without members. A group whose creation was answered must not be missing later.
func (l *load) makeGroups() {
	for i := range committerGroups {
		name := fmt.Sprintf("committers-%d", i)
		if l.s.groups[name] {
			continue
		}
		body, err := fastjson.Marshal(remoting.NewSubscriptionGroupConfig(name))
		if err != nil {
			l.s.t.Error(err)
			return
		}
		req := remoting.NewRequest(remoting.ReqUpdateAndCreateSubscriptionGroup, nil)
		req.Body = body
		if _, err = l.s.call(req); err != nil {
			if l.ctx.Err() == nil {
				l.unexpected(err)
			}
			return
		}
		l.s.groups[name] = true
	}
}

const committerGroups = 3

// commit commits offsets of groups without members, one after the other.
func (l *load) commit(r *rand.Rand) {
	l.makeGroups()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for l.next(tick) {
		k := offsetKey{fmt.Sprintf("committers-%d", r.IntN(committerGroups)), topics[r.IntN(len(topics))], int32(r.IntN(queuesOfTopic))}
		offset := l.s.offsets.next(k, 1+r.Int64N(3))
		_, err := l.s.call(remoting.NewRequest(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{
			ConsumerGroup: k.group, Topic: k.topic, QueueID: k.queue, CommitOffset: offset,
		}))
		if err != nil {
			if l.ctx.Err() == nil {
				l.unexpected(err)
			}
			continue
		}
		l.s.offsets.taken(k, offset)
		l.mu.Lock()
		l.mu.commits++
		l.mu.Unlock()
	}
}

const consumerGroup = "consumers"

// consume is a member of a group that takes what comes. While the topics do not exist it tries again.
func (l *load) consume() {
	cfg := client.ConsumerConfig{Config: l.s.clientConfig(), Group: consumerGroup, From: client.FromFirst, Commit: 40 * time.Millisecond, Rebalance: time.Second}
	for _, topic := range topics {
		cfg.Subscriptions = append(cfg.Subscriptions, client.Subscription{Topic: topic})
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for l.next(tick) {
		c, err := client.NewConsumer(cfg)
		if err != nil {
			l.s.t.Error(err)
			return
		}
		err = c.Run(l.ctx, func(_ context.Context, ms []*client.Received) error {
			for _, m := range ms {
				l.s.offsets.mayCommit(offsetKey{consumerGroup, m.Topic, m.Queue.QueueID}, m.QueueOffset+1)
			}
			return nil
		})
		if err != nil && l.ctx.Err() == nil {
			l.unexpected(err)
		}
	}
}

// expire lets log files go.
func (l *load) expire() {
	if _, err := l.s.call(remoting.NewRequest(remoting.ReqDeleteExpiredCommitLog, nil)); err != nil && l.ctx.Err() == nil {
		l.unexpected(err)
	}
}

// remove makes a topic by sending to it, and deletes it.
func (l *load) remove(topic string) {
	retries := 0
	p, err := client.NewProducer(client.ProducerConfig{Config: l.s.clientConfig(), Group: "crash", Retries: &retries, DefaultTopicQueues: queuesOfTopic})
	if err != nil {
		l.s.t.Error(err)
		return
	}
	defer p.Close()
	for i := range 20 {
		m := &message.Message{Topic: topic, Body: fmt.Appendf(nil, "message %d", i)}
		if _, err := p.Send(l.sendCtx(), m, client.SendOptions{HasQueue: true, QueueID: int32(i % queuesOfTopic)}); err != nil {
			if l.ctx.Err() == nil {
				l.unexpected(err)
			}
			return
		}
	}
	_, err = l.s.call(remoting.NewRequest(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: topic}))
	switch {
	case err == nil:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.s.removed[topic] = true
	case l.ctx.Err() == nil:
		l.unexpected(err)
	}
}
