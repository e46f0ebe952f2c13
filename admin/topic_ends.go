package admin

import (
	"context"
	"maps"
	"slices"
	"sync"

	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// TopicEnds is how much a topic holds on one broker, by queue.
type TopicEnds struct {
	Broker
	Topic  string
	Kind   string          // normal, retry, dlq, system
	Queues map[int32]int64 // the offset behind the newest message
}

// TopicEndsOptions say of which topics the ends are read.
type TopicEndsOptions struct {
	Target Target
	// Known gives the ends of queues that have just been read; a topic of which all
	// queues are known is not asked for again. It may be nil.
	Known func(b Broker, topic string) map[int32]int64
}

// TopicEnds reads the ends of all queues of all topics of the brokers of a target, sorted
// by broker and topic. What a broker cannot tell of a topic is among the skipped; a
// broker that does not answer is in the errors.
func (c *Client) TopicEnds(ctx context.Context, o TopicEndsOptions) ([]TopicEnds, []ItemError, []TargetError, error) {
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	brokers, err := selectPrimaries(all, o.Target)
	if err != nil {
		return nil, nil, nil, err
	}
	own := ownNames(all)
	var out []TopicEnds
	var skipped []ItemError
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		table, err := c.topicTable(ctx, b.Addr)
		if err != nil {
			return err
		}
		skip := skips{lenient: true}
		err = several(perBroker, slices.Sorted(maps.Keys(table)), func(topic string) error {
			t := table[topic]
			ends := map[int32]int64{}
			if o.Known != nil {
				ends = o.Known(b, topic)
			}
			if len(ends) == 0 || len(ends) < int(max(t.ReadQueueNums, t.WriteQueueNums)) {
				ranges, err := c.ranges(ctx, b.Addr, topic)
				if err != nil {
					return skip.pass(ctx, b, "topic", topic, err)
				}
				ends = endsIn(ranges)
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, TopicEnds{b, topic, topicKind(topic, own), ends})
			return nil
		})
		mu.Lock()
		defer mu.Unlock()
		skipped = append(skipped, skip.list...)
		return err
	})
	sorted.By(out, func(a, b TopicEnds) int {
		return compareTexts([]string{a.Cluster, a.Name, a.Addr, a.Topic}, []string{b.Cluster, b.Name, b.Addr, b.Topic}, 0)
	})
	sortItems(skipped)
	return out, skipped, errs, nil
}

func endsIn(ranges map[int32]queueRange) map[int32]int64 {
	out := make(map[int32]int64, len(ranges))
	for id, r := range ranges {
		if r.max.OK {
			out[id] = r.max.Value
		}
	}
	return out
}

// StatKey names a statistic of a broker.
type StatKey struct{ Name, Key string }

// StatisticsAt reads statistics of the broker at addr. What it does not count is not in
// the answer.
func (c *Client) StatisticsAt(ctx context.Context, addr string, keys []StatKey) (map[StatKey]*remoting.BrokerStatsData, error) {
	out := make(map[StatKey]*remoting.BrokerStatsData, len(keys))
	var mu sync.Mutex
	err := several(perBroker, keys, func(k StatKey) error {
		d, err := c.stat(ctx, addr, k.Name, k.Key)
		if err != nil || d == nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		out[k] = d
		return nil
	})
	return out, err
}

// IsPopRetry reports whether a topic is the retry topic of a group's pops, and of which
// topic.
func IsPopRetry(retry, group string) (topic string, ok bool) {
	if !isPopRetry(retry, group) {
		return "", false
	}
	return retry[len(message.RetryTopicPrefix)+len(group)+1:], true
}
