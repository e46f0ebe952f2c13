package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mqx/client"
	"mqx/message"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

const (
	soakTopic   = "SPEED_SOAK"
	soakRate    = 50_000_000 / soakSize // messages a second
	soakSize    = 1024
	soakSenders = 64
)

// soak is a long run of produce and consume at one rate.
type soak struct {
	p       *peer
	length  time.Duration
	next    atomic.Int64  // number of the next message
	seen    []atomic.Bool // by number: consumed
	twice   atomic.Int64
	began   time.Time
	minutes struct {
		sync.Mutex
		took [][]uint32 // of each minute, µs of each send
	}
}

// soak produces and consumes at 50 MB/s with files of 64 MiB, of which those that are not the newest are deleted every
// minute, and looks for what grows or gets slower.
func (b *bench) soak(p *peer) (sample, error) {
	q, err := b.newPeer(p.make, "soak", "mappedFileSizeCommitLog=67108864", "fileReservedTime=0")
	if err != nil {
		return nil, err
	}
	defer q.end()
	if err := q.createTopic(soakTopic); err != nil {
		return nil, err
	}
	s := &soak{p: q, length: b.soakFor, began: time.Now()}
	s.seen = make([]atomic.Bool, int(s.length.Seconds()+10)*soakRate)
	s.minutes.took = make([][]uint32, int(s.length/time.Minute)+2)
	ctx, cancel := context.WithTimeout(b.ctx, s.length)
	defer cancel()
	consumed, stopConsuming := context.WithCancel(b.ctx)
	defer stopConsuming()
	ended := make(chan error, 1)
	go func() { ended <- s.consume(consumed) }()
	watched := make(chan []float64)
	go func() { watched <- s.watch(ctx) }()
	if err := s.produce(ctx); err != nil {
		return nil, err
	}
	memory := <-watched
	for until := time.Now().Add(30 * time.Second); s.missing() > 0 && time.Now().Before(until); {
		time.Sleep(100 * time.Millisecond)
	}
	stopConsuming()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		return nil, err
	}
	return s.result(memory), nil
}

func (s *soak) produce(ctx context.Context) error {
	producer, err := client.NewProducer(client.ProducerConfig{Config: client.Config{NameServers: []string{s.p.namesrv}}})
	if err != nil {
		return err
	}
	if err := producer.Start(); err != nil {
		return err
	}
	defer producer.Close()
	var wg sync.WaitGroup
	errs := make(chan error, soakSenders)
	for range soakSenders {
		wg.Go(func() { errs <- s.send(ctx, producer) })
	}
	wg.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// send sends what is due, one message at a time; all senders together keep the rate.
func (s *soak) send(ctx context.Context, producer *client.Producer) error {
	body := make([]byte, soakSize)
	for {
		n := s.next.Add(1) - 1
		due := s.began.Add(time.Duration(n) * time.Second / soakRate)
		select {
		case <-ctx.Done():
			s.seen[n].Store(true) // never sent
			return nil
		case <-time.After(time.Until(due)):
		}
		binary.BigEndian.PutUint64(body, uint64(n))
		began := time.Now()
		// A send that was begun is finished: whether it was stored is known then.
		if _, err := producer.Send(s.p.b.ctx, &message.Message{Topic: soakTopic, Body: body}, client.SendOptions{}); err != nil {
			return fmt.Errorf("message %d: %w", n, err)
		}
		took := time.Since(began)
		minute := int(began.Sub(s.began) / time.Minute)
		s.minutes.Lock()
		s.minutes.took[minute] = append(s.minutes.took[minute], uint32(took.Microseconds()))
		s.minutes.Unlock()
	}
}

func (s *soak) consume(ctx context.Context) error {
	consumer, err := client.NewConsumer(client.ConsumerConfig{
		Config: client.Config{NameServers: []string{s.p.namesrv}}, Group: "speed_soak",
		Subscriptions: []client.Subscription{{Topic: soakTopic, Tag: "*"}},
	})
	if err != nil {
		return err
	}
	return consumer.Run(ctx, func(_ context.Context, ms []*client.Received) error {
		for _, m := range ms {
			if s.seen[binary.BigEndian.Uint64(m.Body)].Swap(true) {
				s.twice.Add(1)
			}
		}
		return nil
	})
}

// watch has old files deleted every minute and returns the memory of the broker at each deletion.
func (s *soak) watch(ctx context.Context) (anon []float64) {
	c := remoteclient.New(remoteclient.Config{})
	defer c.Close()
	t := time.NewTicker(time.Minute)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return anon
		case <-t.C:
		}
		if m, err := statusOf(s.p.brProc.pid(), "RssAnon"); err == nil {
			anon = append(anon, m)
			note("soak: minute %d, RssAnon %.0f MiB, %d behind, %d files", len(anon), m, s.missing(), s.files())
		}
		if _, err := c.Call(ctx, s.p.broker, remoting.NewRequest(remoting.ReqDeleteExpiredCommitLog, nil)); err != nil && ctx.Err() == nil {
			note("soak: the broker does not delete: %v", err)
		}
	}
}

// files counts those of the log.
func (s *soak) files() int {
	all, err := os.ReadDir(s.p.file("store/commitlog"))
	if err != nil {
		return -1
	}
	return len(all)
}

// missing is the number of messages that were given out and not consumed yet.
func (s *soak) missing() (n int) {
	for i := range s.next.Load() {
		if !s.seen[i].Load() {
			n++
		}
	}
	return n
}

// result compares the last third with the first.
func (s *soak) result(anon []float64) sample {
	var p999 []float64
	for _, took := range s.minutes.took {
		if len(took) > soakRate { // a minute, not its rest
			slices.Sort(took)
			p999 = append(p999, float64(took[len(took)*999/1000])/1e3)
		}
	}
	r := sample{
		"perSecond": float64(s.next.Load()) / s.length.Seconds(), "lost": float64(s.missing()), "twice": float64(s.twice.Load()),
		"logFiles": float64(s.files()),
	}
	if n := len(p999); n >= 3 {
		r["p999Ms"] = mid(p999)
		r["p999Last"] = mid(p999[n-n/3:]) / mid(p999[:n/3])
	}
	if n := len(anon); n >= 3 {
		r["anonMiB"] = slices.Max(anon)
		r["anonLast"] = mid(anon[n-n/3:]) / mid(anon[:n/3])
	}
	return r
}

func mid(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
