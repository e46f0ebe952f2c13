package admin

import (
	"cmp"
	"context"
	"sync"
	"time"

	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// Sweep is where all groups of one broker stand, as it says itself in one answer
// (GET_BROKER_CONSUME_STATS): what GetLag tells of each group with several.
type Sweep struct {
	Broker
	At     time.Time // when the answer had come
	Groups []SweptGroup
}

// SweptGroup is one group at one broker. A group without an offset has no queue.
type SweptGroup struct {
	Name   string
	TPS    float64 // messages a second that the broker gave it, over the last minute
	Queues []SweptQueue
}

// SweptQueue is where a group stands in a queue. An offset that was never committed is 0
// here: brokers do not tell the two apart in this answer.
type SweptQueue struct {
	Topic          string
	QueueID        int32
	Committed, End int64
	LastRead       time.Time // when the newest message that it has read was stored; zero: not known
}

// SweepLag asks the masters of t, each with one request. Groups of the system are left out.
func (c *Client) SweepLag(ctx context.Context, t Target) ([]Sweep, []TargetError, error) {
	return fromBrokers(ctx, c, t, false, func(b Broker) (Sweep, error) {
		list, err := askBody[remoting.ConsumeStatsList](ctx, c, b.Addr,
			remoting.NewRequest(remoting.ReqGetBrokerConsumeStats, &remoting.GetBrokerConsumeStatsHeader{}))
		if err != nil {
			return Sweep{}, err
		}
		s := Sweep{Broker: b, At: time.Now()}
		for _, byGroup := range list.ConsumeStatsList {
			for name, stats := range byGroup {
				if !message.IsSystemGroup(name) {
					s.Groups = append(s.Groups, sweptGroup(name, stats))
				}
			}
		}
		sorted.By(s.Groups, func(x, y SweptGroup) int { return cmp.Compare(x.Name, y.Name) })
		return s, nil
	})
}

func sweptGroup(name string, stats []remoting.ConsumeStats) SweptGroup {
	g := SweptGroup{Name: name}
	n := 0
	for i := range stats {
		n += len(stats[i].OffsetTable)
	}
	g.Queues = make([]SweptQueue, 0, n)
	for i := range stats {
		g.TPS += stats[i].ConsumeTPS
		for q, o := range stats[i].OffsetTable {
			one := SweptQueue{Topic: q.Topic, QueueID: q.QueueID, Committed: o.ConsumerOffset, End: o.BrokerOffset}
			if o.LastTimestamp > 0 {
				one.LastRead = time.UnixMilli(o.LastTimestamp)
			}
			g.Queues = append(g.Queues, one)
		}
	}
	sorted.By(g.Queues, func(x, y SweptQueue) int {
		return cmp.Or(cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.QueueID, y.QueueID))
	})
	return g
}

// TopicRange is what the queues of one topic hold at one broker.
type TopicRange struct {
	Broker
	Topic    string
	Min, Max int64     // sums over the queues
	Stored   time.Time // when the newest message was stored; zero: not known
}

// TopicRanges reads the ranges of some topics: one request for each at each master of t.
// A broker that does not have a topic gives none.
func (c *Client) TopicRanges(ctx context.Context, t Target, topics []string) ([]TopicRange, []TargetError, error) {
	brokers, err := c.primaries(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	var out []TopicRange
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		return several(perBroker, topics, func(topic string) error {
			ranges, err := c.knownRanges(ctx, b.Addr, topic)
			if err != nil || ranges == nil {
				return err
			}
			one := TopicRange{Broker: b, Topic: topic}
			newest := int64(0)
			for _, r := range ranges {
				one.Min, one.Max, newest = one.Min+r.min.Value, one.Max+r.max.Value, max(newest, r.stored)
			}
			if newest > 0 {
				one.Stored = time.UnixMilli(newest)
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, one)
			return nil
		})
	})
	sorted.By(out, func(x, y TopicRange) int {
		return cmp.Or(cmp.Compare(x.Topic, y.Topic), compareBrokers(x.Broker, y.Broker))
	})
	return out, errs, nil
}

// ConsumerRow is one member of one group at one broker.
type ConsumerRow struct {
	Broker
	Group, Type, Model string
	GroupMember
}

// Consumers lists the members of some groups: one request for each at each master of t.
func (c *Client) Consumers(ctx context.Context, t Target, groups []string) ([]ConsumerRow, []TargetError, error) {
	brokers, err := c.primaries(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	var out []ConsumerRow
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		return several(perBroker, groups, func(g string) error {
			conns, err := c.connections(ctx, b.Addr, g)
			if err != nil || conns == nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for _, m := range conns.ConnectionSet {
				out = append(out, ConsumerRow{b, g, conns.ConsumeType, conns.MessageModel, GroupMember{
					ClientID: m.ClientID, Addr: m.ClientAddr, Language: m.Language, Version: remoting.VersionName(m.Version),
				}})
			}
			return nil
		})
	})
	sorted.By(out, func(x, y ConsumerRow) int {
		return cmp.Or(cmp.Compare(x.ClientID, y.ClientID), cmp.Compare(x.Group, y.Group), compareBrokers(x.Broker, y.Broker))
	})
	return out, errs, nil
}
