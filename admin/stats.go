package admin

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// Names of statistics (VIEW_BROKER_STATS_DATA).
const (
	StatTopicPut = "TOPIC_PUT_NUMS" // key: topic
	StatGroupGet = "GROUP_GET_NUMS" // key: topic@group
)

// Rate is a count of messages over the brokers. What no broker keeps a count of is
// unknown: brokers forget what has been idle for long.
type Rate struct {
	PerSecond float64 // over the last minute
	Day       int64   // over 24 hours, or as long as the broker has counted
	Known     bool
}

func (r *Rate) add(d *remoting.BrokerStatsData) {
	r.Known = true
	r.PerSecond += d.StatsMinute.TPS
	r.Day += cmp.Or(d.StatsDay.Sum, d.StatsHour.Sum, d.StatsMinute.Sum)
}

// TopicRate is what goes into a topic and out of it to one group.
type TopicRate struct {
	Topic string
	Group string // "" for a topic that no group consumes
	In    Rate
	Out   Rate
	Lag   *int64 // messages behind over all queues; nil when the group has no offset
	// Part: a broker did not tell, so that no sum is known.
	Part bool
}

// StatsOptions narrow TopicRates.
type StatsOptions struct {
	Topic  string // only this one
	Retry  bool   // retry and dead letter topics as well
	Active bool   // only what had a message within the time that is counted
}

// TopicRates reads how many messages went in and out, for each topic and each group
// that consumes it, sorted by topic and group. Where a broker did not tell, no sum is
// known, and the broker is in the errors.
func (c *Client) TopicRates(ctx context.Context, o StatsOptions) ([]TopicRate, []TargetError, error) {
	brokers, err := c.primaries(ctx, Target{})
	if o.Topic != "" && err == nil {
		brokers, err = c.topicBrokers(ctx, o.Topic)
	}
	if err != nil {
		return nil, nil, err
	}
	r := &rates{topics: map[string]*Rate{}, groups: map[[2]string]*TopicRate{}}
	errs := c.each(brokers, func(_ *sync.Mutex, b Broker) error {
		topics := []string{o.Topic}
		if o.Topic == "" {
			table, err := c.topicTable(ctx, b.Addr)
			if err != nil {
				return err
			}
			topics = topics[:0]
			for name := range table {
				if o.Retry || !message.IsRetry(name) && !message.IsDLQ(name) {
					topics = append(topics, name)
				}
			}
		}
		return several(perBroker, topics, func(topic string) error { return c.ratesOn(ctx, b.Addr, topic, r) })
	})
	list := r.list(o.Active)
	for i := range list {
		if t := &list[i]; len(errs) > 0 {
			t.Part, t.In.Known, t.Out.Known, t.Lag = true, false, false, nil
		}
	}
	return list, errs, nil
}

// rates are sums while they are made.
type rates struct {
	mu     sync.Mutex
	topics map[string]*Rate
	groups map[[2]string]*TopicRate
}

// ratesOn adds what one broker counts of a topic.
func (c *Client) ratesOn(ctx context.Context, addr, topic string, r *rates) error {
	in, err := c.stat(ctx, addr, StatTopicPut, topic)
	if err != nil {
		return err
	}
	groups, err := c.topicGroups(ctx, addr, topic)
	if err != nil {
		return err
	}
	r.mu.Lock()
	if r.topics[topic] == nil {
		r.topics[topic] = &Rate{}
	}
	if in != nil {
		r.topics[topic].add(in)
	}
	r.mu.Unlock()
	for _, g := range groups {
		out, err := c.stat(ctx, addr, StatGroupGet, topic+"@"+g)
		if err != nil {
			return err
		}
		stats, err := c.consumeStats(ctx, addr, g, topic)
		if err != nil && !hasCode(err, remoting.RespSubscriptionGroupNotExist) {
			return err
		}
		r.addGroup(topic, g, out, stats)
	}
	return nil
}

func (r *rates) addGroup(topic, group string, out *remoting.BrokerStatsData, stats *remoting.ConsumeStats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := [2]string{topic, group}
	t := r.groups[key]
	if t == nil {
		t = &TopicRate{Topic: topic, Group: group}
		r.groups[key] = t
	}
	if out != nil {
		t.Out.add(out)
	}
	if stats == nil {
		return
	}
	for _, o := range stats.OffsetTable {
		if o.ConsumerOffset >= 0 {
			t.Lag = plus(t.Lag, max(0, o.BrokerOffset-o.ConsumerOffset))
		}
	}
}

func (r *rates) list(active bool) []TopicRate {
	var out []TopicRate
	consumed := map[string]bool{}
	for _, t := range r.groups {
		consumed[t.Topic] = true
		t.In = *r.topics[t.Topic]
		out = append(out, *t)
	}
	for topic, in := range r.topics {
		if !consumed[topic] {
			out = append(out, TopicRate{Topic: topic, In: *in})
		}
	}
	if active {
		out = slices.DeleteFunc(out, func(t TopicRate) bool { return t.In.Day == 0 && t.Out.Day == 0 })
	}
	sorted.By(out, func(a, b TopicRate) int { return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Group, b.Group)) })
	return out
}

// stat is one statistic of a broker, nil where it keeps none of that name.
func (c *Client) stat(ctx context.Context, addr, name, key string) (*remoting.BrokerStatsData, error) {
	d, err := askBody[remoting.BrokerStatsData](ctx, c, addr, remoting.NewRequest(remoting.ReqViewBrokerStatsData,
		&remoting.ViewBrokerStatsDataHeader{StatsName: name, StatsKey: key}))
	if hasCode(err, remoting.RespSystemError) {
		return nil, nil
	}
	return d, err
}

// Statistic is one count of one broker.
type Statistic struct {
	Broker
	Name, Key string
	Data      *remoting.BrokerStatsData // nil where the broker keeps none of that name
}

// Statistics reads one statistic by its name and key of the brokers of t.
func (c *Client) Statistics(ctx context.Context, t Target, name, key string) ([]Statistic, []TargetError, error) {
	return fromBrokers(ctx, c, t, false, func(b Broker) (Statistic, error) {
		d, err := c.stat(ctx, b.Addr, name, key)
		return Statistic{b, name, key, d}, err
	})
}
