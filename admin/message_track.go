package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"mqx/client"
	"mqx/filter"
	"mqx/internal/sorted"
	"mqx/internal/words"
	"mqx/message"
	"mqx/remoting"
)

// TrackState says what became of a message in a group.
type TrackState string

// The states of a message in a group.
const (
	TrackConsumed   TrackState = "CONSUMED"
	TrackWaiting    TrackState = "NOT_CONSUMED_YET"
	TrackFiltered   TrackState = "FILTERED"  // the group does not want it
	TrackBroadcast  TrackState = "BROADCAST" // each member keeps its own offsets
	TrackPull       TrackState = "PULL"      // a pull consumer that has committed nothing
	TrackPop        TrackState = "POP"       // handed out; who acknowledged it is not kept
	TrackRetrying   TrackState = "RETRYING"  // given back, and not consumed again yet
	TrackDeadLetter TrackState = "DEAD_LETTER"
	TrackUnknown    TrackState = "UNKNOWN"
)

// Track is one group and a message.
type Track struct {
	Group  string
	State  TrackState
	Detail string // what the state rests on
	Online bool
	Type   string // of its members: CONSUME_PASSIVELY, …; empty when nobody is online
	Model  string
	// Committed is the group's offset in the queue of the message, nil where it is not known or there is none.
	Committed *int64
	// Retries is how often the group has given it back, nil where that is not known.
	Retries *int32
	Err     error // what could not be asked
}

// attempt is a record of the message in one of the group's own topics.
type attempt struct {
	topic  string
	times  int32
	stored int64
	place  string
	passed *bool // the group is past it; nil: not known
}

// trackFacts are what the state of a message in a group is derived from.
type trackFacts struct {
	kind, model string
	online      bool
	wants       *bool // the subscription takes it; nil: not known
	committed   *int64
	offset      int64
	attempts    []attempt // in the retry topics, dead letters, and waiting for the next retry
	failed      bool      // something could not be asked
}

// trackState is a message's state in a group, and why. The latest record of it counts: a message that was given back
// is behind the group's offset and has not been consumed all the same.
func trackState(f *trackFacts) (TrackState, string) {
	if last := lastAttempt(f.attempts); last != nil {
		return last.state()
	}
	if f.model == remoting.Broadcasting {
		return TrackBroadcast, "each member keeps its own offsets"
	}
	if f.wants != nil && !*f.wants {
		return TrackFiltered, "the subscription does not take it"
	}
	switch {
	case f.failed:
		return TrackUnknown, "not everybody answered"
	case f.committed == nil && f.kind == remoting.ConsumeActively:
		return TrackPull, "a pull consumer, and no offset is committed"
	case f.committed == nil:
		return TrackWaiting, "no offset is committed"
	case *f.committed <= f.offset:
		return TrackWaiting, fmt.Sprintf("the group stands at %d", *f.committed)
	case f.kind == remoting.ConsumePop:
		return TrackPop, "handed out, and not given back"
	case f.wants == nil:
		return TrackConsumed, fmt.Sprintf("the group stands at %d; what it subscribes to is not known while it is offline", *f.committed)
	}
	return TrackConsumed, fmt.Sprintf("the group stands at %d", *f.committed)
}

func lastAttempt(all []attempt) *attempt {
	var last *attempt
	for i := range all {
		if a := &all[i]; last == nil || a.stored > last.stored || a.stored == last.stored && a.times >= last.times {
			last = a
		}
	}
	return last
}

func (a *attempt) state() (TrackState, string) {
	switch {
	case message.IsDLQ(a.topic):
		return TrackDeadLetter, a.place
	case a.topic == message.TopicSchedule:
		return TrackRetrying, fmt.Sprintf("given back %s, waits for the next delivery", words.Count(a.times, "time"))
	case a.passed == nil:
		return TrackUnknown, fmt.Sprintf("given back %s, %s; how far the group is there is not known", words.Count(a.times, "time"), a.place)
	case *a.passed:
		return TrackConsumed, fmt.Sprintf("after it was given back %s", words.Count(a.times, "time"))
	}
	return TrackRetrying, fmt.Sprintf("given back %s, %s", words.Count(a.times, "time"), a.place)
}

// wantsMessage reports whether a subscription takes a message; nil where it is not known.
func wantsMessage(s *remoting.SubscriptionData, m *message.Message) *bool {
	if s == nil {
		return nil
	}
	yes := len(s.TagsSet) == 0 || slices.Contains(s.TagsSet, "*") || slices.Contains(s.TagsSet, m.Tags())
	if s.ExpressionType == remoting.ExpressionSQL92 {
		e, err := filter.Compile(s.SubString)
		if err != nil {
			return nil
		}
		yes = e.MatchMap(m.Properties)
	}
	return &yes
}

// Track tells of every group that consumes the topic of m, or of those given, what became of m there.
func (c *Client) Track(ctx context.Context, m *client.Received, groups ...string) ([]Track, []TargetError, error) {
	brokers, err := c.topicBrokers(ctx, m.Queue.Topic)
	if err != nil {
		return nil, nil, err
	}
	var errs []TargetError
	if len(groups) == 0 {
		if groups, errs, err = c.TopicGroups(ctx, m.Queue.Topic); err != nil {
			return nil, nil, err
		}
	}
	pending := c.scheduled(ctx, brokers, m)
	out := make([]Track, len(groups))
	var wg sync.WaitGroup
	slots := make(chan struct{}, c.cfg.Parallel)
	for i, g := range groups {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			out[i] = c.trackGroup(ctx, brokers, m, g, pending)
		})
	}
	wg.Wait()
	sorted.By(out, func(a, b Track) int { return cmp.Compare(a.Group, b.Group) })
	return out, errs, nil
}

// scheduled are the records of m that wait for a retry, of all groups.
func (c *Client) scheduled(ctx context.Context, brokers []Broker, m *client.Received) (out []*client.Received) {
	if m.UniqKey() == "" {
		return nil
	}
	c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		ms, err := c.queryIndex(ctx, b, KeyQuery{Topic: message.TopicSchedule, Key: m.UniqKey(), Unique: true})
		mu.Lock()
		defer mu.Unlock()
		out = append(out, ms...)
		return err // the retry topics are asked too, and a broker that is silent shows there
	})
	return out
}

func (c *Client) trackGroup(ctx context.Context, brokers []Broker, m *client.Received, group string, pending []*client.Received) Track {
	f := trackFacts{offset: m.QueueOffset}
	on := newOnline()
	var sub *remoting.SubscriptionData
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		conns, err := c.connections(ctx, b.Addr, group)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		on.add(conns)
		if conns != nil {
			if s, ok := conns.SubscriptionTable[m.Queue.Topic]; ok {
				sub = &s
			}
		}
		return nil
	})
	f.kind, f.model, f.online = on.kind, on.model, len(on.members) > 0
	f.wants = wantsMessage(sub, &m.Message)
	var err error
	if f.model != remoting.Broadcasting {
		f.committed, err = c.committedAt(ctx, brokers, group, m.Queue)
	}
	if err != nil {
		errs = append(errs, TargetError{Broker: m.Queue.BrokerName, Err: err})
	}
	attempts, more := c.attempts(ctx, brokers, m, group, pending)
	errs = append(errs, more...)
	f.attempts, f.failed = attempts, len(errs) > 0
	t := Track{Group: group, Online: f.online, Type: f.kind, Model: f.model, Committed: f.committed}
	t.State, t.Detail = trackState(&f)
	if len(errs) > 0 {
		t.Err = errs[0]
	} else {
		times := int32(0)
		for _, a := range attempts {
			times = max(times, a.times)
		}
		t.Retries = &times
	}
	return t
}

// committedAt is a group's offset in a queue, nil where none is committed.
func (c *Client) committedAt(ctx context.Context, brokers []Broker, group string, q remoting.MessageQueue) (*int64, error) {
	for _, b := range brokers {
		if b.Name != q.BrokerName {
			continue
		}
		h := &remoting.QueryConsumerOffsetHeader{ConsumerGroup: group, Topic: q.Topic, QueueID: q.QueueID, SetZeroIfNotFound: remoting.Some(false)}
		resp, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqQueryConsumerOffset, h))
		if hasCode(err, remoting.RespQueryNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		n, ok, err := resp.Fields.Int64("offset")
		if err != nil || !ok {
			return nil, fmt.Errorf("cannot read offset that broker %q answered: %w", b.Name, err)
		}
		return &n, nil
	}
	return nil, fmt.Errorf("broker %q is not known", q.BrokerName)
}

// attempts are the records of m that are the group's own.
func (c *Client) attempts(ctx context.Context, brokers []Broker, m *client.Received, group string, pending []*client.Received) (out []attempt, errs []TargetError) {
	for _, p := range pending {
		if p.Property(message.PropRealTopic) == message.RetryTopic(group) {
			out = append(out, attempt{topic: message.TopicSchedule, times: p.ReconsumeTimes, stored: p.StoreTimestamp})
		}
	}
	if m.UniqKey() == "" {
		return out, nil
	}
	topics := []string{
		message.RetryTopic(group), message.PopRetryTopic(group, m.Queue.Topic, false), message.PopRetryTopic(group, m.Queue.Topic, true), message.DLQTopic(group),
	}
	errs = c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		for _, topic := range topics {
			ms, err := c.queryIndex(ctx, b, KeyQuery{Topic: topic, Key: m.UniqKey(), Unique: true})
			if err != nil {
				return err
			}
			for _, r := range ms {
				a := attempt{topic: topic, times: r.ReconsumeTimes, stored: r.StoreTimestamp, place: placeText(r)}
				if !message.IsDLQ(topic) {
					n, err := c.committedAt(ctx, brokers, group, r.Queue)
					if err != nil {
						return err
					}
					passed := n != nil && *n > r.QueueOffset
					a.passed = &passed
				}
				mu.Lock()
				out = append(out, a)
				mu.Unlock()
			}
		}
		return nil
	})
	return out, errs
}

func placeText(m *client.Received) string {
	return fmt.Sprintf("at %d of queue %d of %s on %s since %s", m.QueueOffset, m.Queue.QueueID, m.Topic, m.Queue.BrokerName,
		time.UnixMilli(m.StoreTimestamp).Format(time.RFC3339))
}
