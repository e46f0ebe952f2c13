package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
)

// goPull reads a topic from offset 0 with the Go pull consumer until it has got
// want messages, queue by queue.
func goPull(t *testing.T, namesrv, topic string, want int) []incoming {
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
	next := make([]int64, len(queues))
	waitFor(t, 60*time.Second, "all messages of "+topic+" by pulling", func() (bool, string) {
		for i, q := range queues {
			for {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				r, err := c.PullFrom(ctx, q, next[i], 32)
				cancel()
				if err != nil {
					t.Fatalf("pull %v from %d: %v", q, next[i], err)
				}
				if r.Status != primitive.PullFound {
					break
				}
				for _, m := range r.GetMessageExts() {
					got = append(got, fromGo(m))
				}
				next[i] = r.NextBeginOffset
			}
		}
		return len(got) >= want, string(rune('0' + min(9, len(got))))
	})
	return got
}
