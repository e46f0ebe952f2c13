package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
)

// goPull reads a topic from offset 0 with the Go pull consumer up to the end of
// each queue. Ends are what another reader saw: a pull behind the end would wait.
func goPull(t *testing.T, namesrv, topic string, ends map[int]int64) []incoming {
	t.Helper()
	c, err := rocketmq.NewPullConsumer(
		consumer.WithNsResolver(primitive.NewPassthroughResolver(splitAddrs(namesrv))),
		consumer.WithGroupName("e2e_go_pull"),
		consumer.WithInstance(t.Name()+topic),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Subscribe(topic, consumer.MessageSelector{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Shutdown(); err != nil {
			t.Errorf("pull consumer: %v", err)
		}
	}()
	queues, err := c.GetTopicRouteInfo(topic)
	if err != nil {
		t.Fatal(err)
	}
	var got []incoming
	for _, q := range queues {
		for next := int64(0); next < ends[q.QueueId]; {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			r, err := c.PullFrom(ctx, q, next, 32)
			cancel()
			if err != nil || r.Status != primitive.PullFound || r.NextBeginOffset <= next {
				t.Fatalf("pull %v from %d: %+v, %v", q, next, r, err)
			}
			for _, m := range r.GetMessageExts() {
				got = append(got, fromGo(m))
			}
			next = r.NextBeginOffset
		}
	}
	return got
}

// queueEnds are the offsets behind the last message of each queue.
func queueEnds(ms []incoming) map[int]int64 {
	ends := map[int]int64{}
	for _, m := range ms {
		ends[m.QueueID] = max(ends[m.QueueID], m.QueueOffset+1)
	}
	return ends
}
