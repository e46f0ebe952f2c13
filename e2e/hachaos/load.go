package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"mqx/client"
	"mqx/internal/storecheck"
	"mqx/message"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// answer is where a message was answered to be.
type answer struct {
	phys        int64
	queueOffset int64
	queue       int32
	broker      string // address
	when        time.Time
}

// place is one of a queue, with what was seen there.
type place struct {
	queue  int32
	offset int64
	id     uint64
}

// sight is where the consumer has seen a message.
type sight struct {
	phys   int64
	broker string
	when   time.Time
}

// load is producers and a consumer, and what they were told.
type load struct {
	g       *group
	ctx     context.Context //nolint:containedctx // of its goroutines
	cancel  context.CancelFunc
	work    sync.WaitGroup
	journal storecheck.Journal
	master  atomic.Pointer[node]
	paused  atomic.Bool
	mu      sync.Mutex
	answers map[uint64]answer
	seen    map[place]sight
	unsure  int
	last    time.Time // of an answer
	silent  time.Duration
	wrong   []string // what can be judged at once
}

// startLoad starts four producers and a consumer.
func startLoad(g *group) *load {
	l := &load{g: g, answers: map[uint64]answer{}, seen: map[place]sight{}, last: time.Now()}
	l.ctx, l.cancel = context.WithCancel(g.ctx)
	l.master.Store(g.master)
	for i := range 4 {
		l.work.Go(func() { l.produce(int32(i)) })
	}
	l.work.Go(l.consume)
	return l
}

func (l *load) stop() {
	l.cancel()
	l.work.Wait()
}

func (l *load) acked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.answers)
}

func (l *load) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wrong) < 20 {
		l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
	}
}

func (l *load) config() client.Config {
	return client.Config{NameServers: []string{l.g.namesrv}, Timeout: 5 * time.Second, ConnectTimeout: time.Second, PollRoutes: 300 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
}

// produce sends to one queue, each message once.
func (l *load) produce(queue int32) {
	none := 0
	p, err := client.NewProducer(client.ProducerConfig{Config: l.config(), Group: "hachaos-load", CompressOver: -1, Retries: &none})
	if err != nil {
		l.complain("no producer: %v", err)
		return
	}
	defer func() { _ = p.Close() }()
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	for l.next(pace) {
		if l.paused.Load() {
			continue
		}
		id, body := l.journal.Begin(topic, queue, storecheck.MinBody+rand.IntN([]int{100, 600, 3000}[rand.IntN(3)]))
		m := &message.Message{Topic: topic, Body: body}
		m.SetKeys(fmt.Sprintf("k%d", id))
		res, err := p.Send(context.WithoutCancel(l.ctx), m, client.SendOptions{HasQueue: true, QueueID: queue})
		if err != nil {
			time.Sleep(20 * time.Millisecond) // a master that is away
			continue
		}
		l.answered(id, queue, &res)
	}
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

func (l *load) answered(id uint64, queue int32, res *client.SendResult) {
	if res.Status != client.SendOK {
		l.mu.Lock()
		l.unsure++
		l.mu.Unlock()
		return
	}
	_, phys, err := message.ParseOffsetID(res.OffsetID)
	if err != nil {
		l.complain("message %d was answered with the offset id %q", id, res.OffsetID)
		return
	}
	l.journal.Ack(id, res.QueueOffset, phys)
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers[id] = answer{phys: phys, queueOffset: res.QueueOffset, queue: queue, broker: res.Broker, when: now}
	l.silent = max(l.silent, now.Sub(l.last))
	l.last = now
}

// bodyID is the id that the journal has put into a body.
func bodyID(b []byte) (uint64, bool) {
	if len(b) < storecheck.MinBody || crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) {
		return 0, false
	}
	return binary.BigEndian.Uint64(b), true
}

// consume reads the queues of the master and commits how far it has come.
func (l *load) consume() {
	conn := remoteclient.New(remoteclient.Config{})
	defer func() { _ = conn.Close() }()
	var at, committed [queues]int64
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n := 0; l.next(tick); n++ {
		m := l.master.Load()
		for q := range int32(queues) {
			if next, err := l.pull(conn, m, q, at[q]); err == nil {
				at[q] = next
			}
			if n%10 == 0 && at[q] != committed[q] {
				if l.commit(conn, m, q, at[q]) == nil {
					committed[q] = at[q]
				}
			}
		}
	}
}

func (l *load) call(conn *remoteclient.Client, m *node, code int32, header any) (*remoting.Command, error) {
	ctx, cancel := context.WithTimeout(l.ctx, time.Second)
	defer cancel()
	return conn.Call(ctx, m.addr(), remoting.NewRequest(code, header))
}

func (l *load) commit(conn *remoteclient.Client, m *node, q int32, offset int64) error {
	resp, err := l.call(conn, m, remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{ConsumerGroup: consumers, Topic: topic, QueueID: q, CommitOffset: offset})
	if err == nil && resp.Code != remoting.RespSuccess {
		err = fmt.Errorf("answered %d", resp.Code)
	}
	return err
}

// pull reads from a queue and returns where to go on.
func (l *load) pull(conn *remoteclient.Client, m *node, q int32, from int64) (int64, error) {
	resp, err := l.call(conn, m, remoting.ReqPullMessage, &remoting.PullMessageHeader{
		ConsumerGroup: consumers, Topic: topic, QueueID: q, QueueOffset: from, MaxMsgNums: 200, MaxMsgBytes: 1 << 20,
		SysFlag: 4, Subscription: "*", ExpressionType: "TAG", // the subscription is in the request
	})
	if err != nil {
		return 0, err
	}
	var h remoting.PullMessageResponseHeader
	switch resp.Code {
	case remoting.RespSuccess, remoting.RespPullNotFound, remoting.RespPullRetryImmediately, remoting.RespPullOffsetMoved:
		if err := remoting.DecodeHeader(resp.Fields, &h); err != nil {
			return 0, err
		}
	default:
		return 0, fmt.Errorf("answered %d", resp.Code)
	}
	if resp.Code != remoting.RespSuccess {
		if from > h.MaxOffset && m == l.master.Load() && resp.Code == remoting.RespPullOffsetMoved {
			return h.MaxOffset, nil // the tail that was seen is gone: judged at the end
		}
		return from, nil
	}
	for got, err := range message.DecodeMessages(resp.Body, message.ReceiveOptions{VerifyBodyCRC: true}) {
		if err != nil {
			l.complain("what is read from queue %d at %d is broken: %v", q, from, err)
			return 0, err
		}
		id, ok := bodyID(got.Body)
		if !ok {
			l.complain("queue %d holds at %d what was never sent", q, got.QueueOffset)
			continue
		}
		l.mu.Lock()
		if at := (place{q, got.QueueOffset, id}); l.seen[at].broker == "" {
			l.seen[at] = sight{phys: got.PhysicalOffset, broker: m.addr(), when: time.Now()}
		}
		l.mu.Unlock()
	}
	return h.NextBeginOffset, nil
}
