package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"mqx/message"
	"mqx/remoting"
)

// QueueID names a queue of a topic on a broker.
type QueueID struct {
	Topic   string `json:"topic"`
	Broker  string `json:"broker"`
	QueueID int32  `json:"queueId"`
}

func (q QueueID) compare(o QueueID) int {
	return cmp.Or(cmp.Compare(q.Topic, o.Topic), cmp.Compare(q.Broker, o.Broker), cmp.Compare(q.QueueID, o.QueueID))
}

// String is the name in the order of a path.
func (q QueueID) String() string {
	return fmt.Sprintf("queue %d of topic %s on %s", q.QueueID, q.Topic, q.Broker)
}

// queueRange is what a queue holds: [min, max). The minimum is not always asked for.
type queueRange struct {
	min, max remoting.Opt[int64]
	stored   int64 // when its newest message was stored, ms; 0 is unknown or an empty queue
}

// offsetTable is what groups have committed and pulled at one broker.
type offsetTable struct{ committed, pulled map[string]map[int32]int64 }

func offsetKey(topic, group string) string { return topic + "@" + group }

// offsets reads all offsets of a broker in one answer, so that what never was
// committed is not 0.
func (c *Client) offsets(ctx context.Context, addr string) (*offsetTable, error) {
	t, err := askBody[remoting.ConsumerOffsets](ctx, c, addr, remoting.NewRequest(remoting.ReqGetAllConsumerOffset, nil))
	if err != nil {
		return nil, err
	}
	return &offsetTable{t.OffsetTable, t.PullOffsetTable}, nil
}

// topics are the topics in which a group has committed something, sorted.
func (t *offsetTable) topics(group string) []string {
	var out []string
	for key, queues := range t.committed {
		if topic, ok := strings.CutSuffix(key, "@"+group); ok && len(queues) > 0 {
			out = append(out, topic)
		}
	}
	slices.Sort(out)
	return out
}

// byGroup are the topics of all groups, sorted.
func (t *offsetTable) byGroup() map[string][]string {
	out := map[string][]string{}
	for key, queues := range t.committed {
		if topic, group, ok := strings.Cut(key, "@"); ok && len(queues) > 0 {
			out[group] = append(out[group], topic)
		}
	}
	for _, topics := range out {
		slices.Sort(topics)
	}
	return out
}

func (t *offsetTable) at(topic, group string, queue int32) remoting.Opt[int64] {
	off, ok := t.committed[offsetKey(topic, group)][queue]
	return remoting.Opt[int64]{Value: off, OK: ok}
}

func (t *offsetTable) pulledAt(topic, group string, queue int32) remoting.Opt[int64] {
	off, ok := t.pulled[offsetKey(topic, group)][queue]
	return remoting.Opt[int64]{Value: off, OK: ok}
}

// ranges reads what the queues of a topic hold; nil where the broker does not have the
// topic.
func (c *Client) ranges(ctx context.Context, addr, topic string) (map[int32]queueRange, error) {
	stats, err := c.topicStats(ctx, addr, topic)
	if hasCode(err, remoting.RespTopicNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[int32]queueRange{}
	for q, o := range stats.OffsetTable {
		r := queueRange{
			min: remoting.Opt[int64]{Value: o.MinOffset, OK: o.MinOffset >= 0}, max: remoting.Opt[int64]{Value: o.MaxOffset, OK: o.MaxOffset >= 0},
			stored: o.LastUpdateTimestamp,
		}
		if o.MaxOffset == 0 {
			r.min = remoting.Some[int64](0) // nothing was ever in it, and some brokers do not know where such a queue starts
		}
		out[q.QueueID] = r
	}
	return out, nil
}

// knownRanges is ranges for who cannot do without: one that the broker does not know is an error.
func (c *Client) knownRanges(ctx context.Context, addr, topic string) (map[int32]queueRange, error) {
	out, err := c.ranges(ctx, addr, topic)
	for _, q := range slices.Sorted(maps.Keys(out)) {
		switch r := out[q]; {
		case !r.max.OK:
			return nil, fmt.Errorf("the broker does not know where queue %d of topic %q ends", q, topic)
		case !r.min.OK:
			return nil, fmt.Errorf("the broker does not know where queue %d of topic %q starts", q, topic)
		}
	}
	return out, err
}

// perBroker is the number of requests under way at one broker within a reading: a
// broker that hangs holds up none but itself.
const perBroker = 8

// several calls f for every item, width of them at a time, until one fails: the first
// failure is returned, and what has not begun by then is left out.
func several[T any](width int, items []T, f func(T) error) error {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
		slots = make(chan struct{}, width)
	)
	for _, item := range items {
		slots <- struct{}{}
		mu.Lock()
		failed := first != nil
		mu.Unlock()
		if failed {
			<-slots
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := f(item); err != nil {
				mu.Lock()
				defer mu.Unlock()
				if first == nil {
					first = err
				}
			}
		})
	}
	wg.Wait()
	return first
}

// isRetryOf reports whether a topic holds what a group is to be given again: its
// retry topic, or the one of its pops of a topic.
func isRetryOf(topic, group string) bool {
	name, ok := strings.CutPrefix(topic, message.RetryTopicPrefix)
	if !ok {
		return false
	}
	rest, ok := strings.CutPrefix(name, group)
	return ok && (rest == "" || rest[0] == '_' || rest[0] == '+')
}

// isPopRetry reports whether it is a retry topic of pops.
func isPopRetry(topic, group string) bool {
	return isRetryOf(topic, group) && topic != message.RetryTopicPrefix+group
}

// queueIDs are the queues that there are or that something was committed for, sorted.
func queueIDs(ranges map[int32]queueRange, committed map[int32]int64) []int32 {
	ids := slices.Collect(maps.Keys(ranges))
	for q := range committed {
		if _, ok := ranges[q]; !ok {
			ids = append(ids, q)
		}
	}
	slices.Sort(ids)
	return ids
}
