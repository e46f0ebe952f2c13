package main

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"mqx/client"
	"mqx/message"
)

const (
	pushTopic   = "SPEED_PUSH"
	pushSamples = 4000
	pushPause   = time.Millisecond
)

// push sends one message at a time and measures until a consumer of a group has it.
func (b *bench) push(p *peer) (sample, error) {
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	cfg := client.Config{NameServers: []string{p.namesrv}}
	producer, err := client.NewProducer(client.ProducerConfig{Config: cfg})
	if err != nil {
		return nil, err
	}
	if err := producer.Start(); err != nil {
		return nil, err
	}
	defer producer.Close()
	consumer, err := client.NewConsumer(client.ConsumerConfig{
		Config: cfg, Group: "speed_push", Subscriptions: []client.Subscription{{Topic: pushTopic, Tag: "*"}},
	})
	if err != nil {
		return nil, err
	}
	came := make(chan time.Time, 1)
	base := time.Now()
	ended := make(chan error, 1)
	go func() {
		ended <- consumer.Run(ctx, func(_ context.Context, ms []*client.Received) error {
			for _, m := range ms {
				if len(m.Body) == 1024 && binary.BigEndian.Uint64(m.Body) == uint64(base.UnixNano()) {
					came <- time.Now()
				}
			}
			return nil
		})
	}()
	took, err := pingPong(ctx, producer, base, came)
	cancel()
	if runErr := <-ended; err == nil && !errors.Is(runErr, context.Canceled) {
		err = runErr
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(took)
	at := func(q float64) float64 { return took[int(q*float64(len(took)-1))].Seconds() * 1e3 }
	return sample{"p50Ms": at(0.5), "p99Ms": at(0.99), "p999Ms": at(0.999)}, nil
}

// pingPong sends until enough have come; those before the consumer has its queues are
// not counted.
func pingPong(ctx context.Context, producer *client.Producer, base time.Time, came <-chan time.Time) ([]time.Duration, error) {
	body := make([]byte, 1024)
	binary.BigEndian.PutUint64(body, uint64(base.UnixNano()))
	var took []time.Duration
	for skipped := 0; len(took) < pushSamples; {
		began := time.Now()
		if _, err := producer.Send(ctx, &message.Message{Topic: pushTopic, Body: body}, client.SendOptions{}); err != nil {
			return nil, err
		}
		select {
		case at := <-came:
			if skipped >= pushSamples/4 {
				took = append(took, at.Sub(began))
			}
			skipped++
		case <-time.After(time.Second):
			if skipped > 0 {
				return nil, errors.New("a message did not come to the consumer within a second")
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		time.Sleep(pushPause)
	}
	return took, nil
}
