package admin

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mqx/internal/sorted"
	"mqx/remoting"
)

// BrokerStatus is what a broker says of itself (GET_BROKER_RUNTIME_INFO), as text by
// its names. What it does not say is unknown.
type BrokerStatus struct {
	Broker
	// Values are nil where the broker did not answer; Err says why.
	Values map[string]string
	Err    error
}

// BrokerStatuses reads the state of the brokers of t, sorted by cluster, name and id;
// replicas: of all of a name. A broker that does not answer is in the list with its
// error, and in the errors.
func (c *Client) BrokerStatuses(ctx context.Context, t Target, replicas bool) ([]BrokerStatus, []TargetError, error) {
	brokers, err := c.targets(ctx, t, replicas)
	if err != nil {
		return nil, nil, err
	}
	out := make([]BrokerStatus, 0, len(brokers))
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		table, err := askBody[remoting.KVTable](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqGetBrokerRuntimeInfo, nil))
		s := BrokerStatus{Broker: b, Err: err}
		if err == nil {
			s.Values = table.Table
		}
		mu.Lock()
		defer mu.Unlock()
		out = append(out, s)
		return err
	})
	sorted.By(out, func(a, b BrokerStatus) int { return compareBrokers(a.Broker, b.Broker) })
	return out, errs, nil
}

// Text is a value as it stands; ok is false where the broker does not say it.
func (s *BrokerStatus) Text(name string) (text string, ok bool) {
	text, ok = s.Values[name]
	return strings.TrimSpace(text), ok
}

// Int is a whole number; ok is false where there is none.
func (s *BrokerStatus) Int(name string) (n int64, ok bool) {
	text, ok := s.Text(name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// Float is a number; of several, which stand for 10, 60 and 600 seconds, the first.
func (s *BrokerStatus) Float(name string) (v float64, ok bool) {
	text, ok := s.Text(name)
	if !ok {
		return 0, false
	}
	first, _, _ := strings.Cut(text, " ")
	v, err := strconv.ParseFloat(first, 64)
	return v, err == nil
}

// Bool is a yes or no; ok is false where the broker does not say it.
func (s *BrokerStatus) Bool(name string) (v, ok bool) {
	text, ok := s.Text(name)
	v, err := strconv.ParseBool(text)
	return v, ok && err == nil
}

// Time is a time in ms; ok is false where it is none.
func (s *BrokerStatus) Time(name string) (at time.Time, ok bool) {
	ms, ok := s.Int(name)
	if !ok || ms <= 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(ms), true
}

// Difference is the growth from one counter to another; ok is false where one is missing.
func (s *BrokerStatus) Difference(later, earlier string) (n int64, ok bool) {
	a, okA := s.Int(later)
	b, okB := s.Int(earlier)
	return a - b, okA && okB
}

// BrokerEpochs are the epochs of a broker's log (GET_BROKER_EPOCH_CACHE), which brokers
// under a controller keep.
type BrokerEpochs struct {
	Broker
	Cache remoting.EpochEntryCache
}

// BrokerEpochs reads the epochs of all brokers of t.
func (c *Client) BrokerEpochs(ctx context.Context, t Target) ([]BrokerEpochs, []TargetError, error) {
	return fromBrokers(ctx, c, t, true, func(b Broker) (BrokerEpochs, error) {
		cache, err := askBody[remoting.EpochEntryCache](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqGetBrokerEpochCache, nil))
		if err != nil {
			return BrokerEpochs{}, err
		}
		if n := len(cache.EpochList); n > 0 {
			cache.EpochList[n-1].EndOffset = cache.MaxOffset // the last one is open
		}
		return BrokerEpochs{b, *cache}, nil
	})
}

// BrokerText is an answer of one broker as it came.
type BrokerText struct {
	Broker
	Text string
}

// ColdDataInfo reads how brokers limit reads of cold data (GET_COLD_DATA_FLOW_CTR_INFO),
// as the JSON they answer.
func (c *Client) ColdDataInfo(ctx context.Context, t Target) ([]BrokerText, []TargetError, error) {
	return fromBrokers(ctx, c, t, true, func(b Broker) (BrokerText, error) {
		resp, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqGetColdDataFlowCtrInfo, nil))
		if err != nil {
			return BrokerText{}, err
		}
		return BrokerText{b, string(resp.Body)}, nil
	})
}

// fromBrokers asks each broker of t and keeps the answers in the order of the brokers.
func fromBrokers[T any](ctx context.Context, c *Client, t Target, replicas bool, ask func(Broker) (T, error)) ([]T, []TargetError, error) {
	brokers, err := c.targets(ctx, t, replicas)
	if err != nil {
		return nil, nil, err
	}
	out, errs := fromEach(c, brokers, ask)
	return out, errs, nil
}

// fromEach is fromBrokers for brokers that are known.
func fromEach[T any](c *Client, brokers []Broker, ask func(Broker) (T, error)) ([]T, []TargetError) {
	type answer struct {
		b Broker
		v T
	}
	var answers []answer
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		v, err := ask(b)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		answers = append(answers, answer{b, v})
		return nil
	})
	sorted.Stably(answers, func(x, y answer) int { return compareBrokers(x.b, y.b) })
	out := make([]T, len(answers))
	for i, a := range answers {
		out[i] = a.v
	}
	return out, errs
}

// BrokerLag is how far one group is behind in one queue, as a broker sums it up.
type BrokerLag struct {
	Group string
	GroupQueue
}

// BrokerConsumeStats is the answer of BrokerConsumeStats.
type BrokerConsumeStats struct {
	Broker
	Queues []BrokerLag // sorted by topic, group and queue
	// Total is the sum over all groups as the broker gives it; Inflight likewise.
	Total, Inflight int64
}

// BrokerConsumeStats reads what all groups have consumed on the brokers of t
// (GET_BROKER_CONSUME_STATS); orderly: groups marked as orderly only.
func (c *Client) BrokerConsumeStats(ctx context.Context, t Target, orderly bool) ([]BrokerConsumeStats, []TargetError, error) {
	return fromBrokers(ctx, c, t, false, func(b Broker) (BrokerConsumeStats, error) {
		list, err := askBody[remoting.ConsumeStatsList](ctx, c, b.Addr,
			remoting.NewRequest(remoting.ReqGetBrokerConsumeStats, &remoting.GetBrokerConsumeStatsHeader{IsOrder: orderly}))
		if err != nil {
			return BrokerConsumeStats{}, err
		}
		s := BrokerConsumeStats{Broker: b, Total: list.TotalDiff, Inflight: list.TotalInflightDiff}
		for _, byGroup := range list.ConsumeStatsList {
			for group, stats := range byGroup {
				for _, one := range stats {
					for q, o := range one.OffsetTable {
						s.Queues = append(s.Queues, BrokerLag{Group: group, GroupQueue: groupQueue(q, o)})
					}
				}
			}
		}
		sorted.By(s.Queues, func(x, y BrokerLag) int {
			return compareTexts([]string{x.Topic, x.Group, x.GroupQueue.Broker}, []string{y.Topic, y.Group, y.GroupQueue.Broker}, int(x.QueueID-y.QueueID))
		})
		return s, nil
	})
}

// compareTexts compares texts in turn; last decides where all are equal.
func compareTexts(a, b []string, last int) int {
	if d := slices.Compare(a, b); d != 0 {
		return d
	}
	return last
}
