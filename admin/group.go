package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"mqx/internal/fastjson"
	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// Group is a consumer group with its configuration by broker.
type Group struct {
	Name    string
	Builtin bool
	Members int    // distinct client ids online
	Type    string // of the members: CONSUME_PASSIVELY, …; empty when nobody is online
	Model   string // CLUSTERING, BROADCASTING; empty when nobody is online
	Brokers []GroupBroker
}

// GroupBroker is the configuration of a group on one broker.
type GroupBroker struct {
	Cluster                        string
	Broker                         string
	Addr                           string
	ConsumeEnable                  bool
	ConsumeFromMinEnable           bool
	ConsumeBroadcastEnable         bool
	ConsumeMessageOrderly          bool
	RetryQueueNums                 int
	RetryMaxTimes                  int
	BrokerID                       int64
	WhichBrokerWhenConsumeSlowly   int64
	NotifyConsumerIDsChangedEnable bool
	Attributes                     map[string]string
}

// GroupMember is a client online in a group.
type GroupMember struct {
	ClientID string
	Addr     string
	Language string
	Version  string
}

// GroupSubscription is what a group reads.
type GroupSubscription struct {
	Topic      string
	Expression string
	Type       string
}

// GroupQueue is the position of a group in one queue.
type GroupQueue struct {
	Topic          string
	Broker         string
	QueueID        int32
	BrokerOffset   int64
	ConsumerOffset int64     // -1 when never committed
	PullOffset     int64     // -1 when not known
	LastTime       time.Time // store time of the last consumed message; zero when unknown
}

// GroupList is the answer of ListGroups.
type GroupList struct {
	Items  []Group
	Errors []TargetError
}

// ListGroupsOptions narrows a list.
type ListGroupsOptions struct {
	Target  Target
	Builtin bool // include the groups that brokers make for themselves
}

// ListGroups lists the groups that brokers hold a configuration of, sorted by name,
// with the members that are online.
func (c *Client) ListGroups(ctx context.Context, o ListGroupsOptions) (*GroupList, error) {
	brokers, err := c.primaries(ctx, o.Target)
	if err != nil {
		return nil, err
	}
	found := map[string][]GroupBroker{}
	members := map[string]*online{}
	list := &GroupList{}
	list.Errors = c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		table, err := c.groupTable(ctx, b.Addr)
		if err != nil {
			return err
		}
		for name, cfg := range table {
			if message.IsSystemGroup(name) && !o.Builtin {
				continue
			}
			conns, err := c.connections(ctx, b.Addr, name)
			if err != nil {
				return err
			}
			mu.Lock()
			found[name] = append(found[name], groupBroker(b, cfg))
			if members[name] == nil {
				members[name] = newOnline()
			}
			members[name].add(conns)
			mu.Unlock()
		}
		return nil
	})
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list.Items = append(list.Items, members[name].group(name, found[name]))
	}
	return list, nil
}

// online collects the members of a group over brokers.
type online struct {
	members       map[string]GroupMember
	subscriptions map[string]GroupSubscription
	kind, model   string
}

func newOnline() *online {
	return &online{members: map[string]GroupMember{}, subscriptions: map[string]GroupSubscription{}}
}

// add takes the answer of one broker, nil when nobody is online there.
func (o *online) add(c *remoting.ConsumerConnection) {
	if c == nil {
		return
	}
	o.kind, o.model = cmp.Or(o.kind, c.ConsumeType), cmp.Or(o.model, c.MessageModel)
	for _, m := range c.ConnectionSet {
		o.members[m.ClientID] = GroupMember{ClientID: m.ClientID, Addr: m.ClientAddr, Language: m.Language, Version: remoting.VersionName(m.Version)}
	}
	for topic, s := range c.SubscriptionTable {
		o.subscriptions[topic] = GroupSubscription{Topic: topic, Expression: s.SubString, Type: s.ExpressionType}
	}
}

func (o *online) group(name string, brokers []GroupBroker) Group {
	sorted.By(brokers, func(a, b GroupBroker) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.Addr, b.Addr))
	})
	return Group{Name: name, Builtin: message.IsSystemGroup(name), Members: len(o.members), Type: o.kind, Model: o.model, Brokers: brokers}
}

func groupBroker(b Broker, g remoting.SubscriptionGroupConfig) GroupBroker {
	return GroupBroker{
		Cluster: b.Cluster, Broker: b.Name, Addr: b.Addr, ConsumeEnable: g.ConsumeEnable, ConsumeFromMinEnable: g.ConsumeFromMinEnable,
		ConsumeBroadcastEnable: g.ConsumeBroadcastEnable, ConsumeMessageOrderly: g.ConsumeMessageOrderly,
		RetryQueueNums: int(g.RetryQueueNums), RetryMaxTimes: int(g.RetryMaxTimes), BrokerID: g.BrokerID,
		WhichBrokerWhenConsumeSlowly: g.WhichBrokerWhenConsumeSlowly, NotifyConsumerIDsChangedEnable: g.NotifyConsumerIDsChangedEnable,
		Attributes: g.Attributes,
	}
}

// groupTable is all groups of a broker, read in pages.
func (c *Client) groupTable(ctx context.Context, addr string) (map[string]remoting.SubscriptionGroupConfig, error) {
	return pages(func(seq int32, version string) (page map[string]remoting.SubscriptionGroupConfig, v remoting.DataVersion, total remoting.Opt[int32], err error) {
		req := remoting.NewRequest(remoting.ReqGetAllSubscriptionGroupConfig, &remoting.GetAllSubscriptionGroupConfigHeader{GroupSeq: seq, MaxGroupNum: remoting.Some(int32(pageSize))})
		req.Fields.Set("dataVersion", version)
		resp, err := c.ask(ctx, addr, req)
		if err != nil {
			return nil, v, total, err
		}
		var body remoting.SubscriptionGroupTable
		if err := fastjson.Unmarshal(resp.Body, &body); err != nil {
			return nil, v, total, fmt.Errorf("cannot read groups: %w", err)
		}
		n, ok, err := resp.Fields.Int32("totalGroupNum")
		return body.SubscriptionGroupTable, body.DataVersion, remoting.Opt[int32]{Value: n, OK: ok}, err
	})
}

// connections are the members of a group at one broker; nil when nobody is online.
func (c *Client) connections(ctx context.Context, addr, group string) (*remoting.ConsumerConnection, error) {
	conns, err := askBody[remoting.ConsumerConnection](ctx, c, addr, remoting.NewRequest(remoting.ReqGetConsumerConnectionList,
		&remoting.GetConsumerConnectionListHeader{ConsumerGroup: group}))
	if hasCode(err, remoting.RespConsumerNotOnline) {
		return nil, nil
	}
	return conns, err
}

// consumeStats is how far a group has read at one broker; an empty topic means all.
func (c *Client) consumeStats(ctx context.Context, addr, group, topic string) (*remoting.ConsumeStats, error) {
	return askBody[remoting.ConsumeStats](ctx, c, addr, remoting.NewRequest(remoting.ReqGetConsumeStats,
		&remoting.GetConsumeStatsHeader{ConsumerGroup: group, Topic: topic}))
}

// GroupDetail is the answer of GetGroup.
type GroupDetail struct {
	Group
	Online        []GroupMember
	Subscriptions []GroupSubscription
	Queues        []GroupQueue
	ConsumeTPS    float64 // messages a second, over the brokers
	FromWhere     string  // CONSUME_FROM_…, of the members; empty when nobody is online
	Errors        []TargetError
}

// GetGroup describes one group: configuration, members, subscriptions, offsets. A group
// that no broker knows is a *NotFoundError, unless some broker did not answer.
func (c *Client) GetGroup(ctx context.Context, name string) (*GroupDetail, error) {
	brokers, err := c.primaries(ctx, Target{})
	if err != nil {
		return nil, err
	}
	d := &GroupDetail{}
	on := newOnline()
	var configs []GroupBroker
	d.Errors = c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		table, err := c.groupTable(ctx, b.Addr)
		if err != nil {
			return err
		}
		cfg, known := table[name]
		if !known {
			return nil
		}
		mu.Lock()
		configs = append(configs, groupBroker(b, cfg))
		mu.Unlock()
		conns, err := c.connections(ctx, b.Addr, name)
		if err != nil {
			return err
		}
		stats, err := c.consumeStats(ctx, b.Addr, name, "")
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		on.add(conns)
		d.ConsumeTPS += stats.ConsumeTPS
		if conns != nil {
			d.FromWhere = cmp.Or(d.FromWhere, conns.ConsumeFromWhere)
		}
		for q, o := range stats.OffsetTable {
			d.Queues = append(d.Queues, groupQueue(q, o))
		}
		return nil
	})
	if len(configs) == 0 && len(d.Errors) == 0 {
		return nil, &NotFoundError{Kind: "group", Name: name}
	}
	d.Group = on.group(name, configs)
	for _, id := range slices.Sorted(maps.Keys(on.members)) {
		d.Online = append(d.Online, on.members[id])
	}
	for _, topic := range slices.Sorted(maps.Keys(on.subscriptions)) {
		d.Subscriptions = append(d.Subscriptions, on.subscriptions[topic])
	}
	sorted.By(d.Queues, func(a, b GroupQueue) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.QueueID, b.QueueID))
	})
	return d, nil
}

func groupQueue(q remoting.MessageQueue, o remoting.OffsetWrapper) GroupQueue {
	g := GroupQueue{Topic: q.Topic, Broker: q.BrokerName, QueueID: q.QueueID, BrokerOffset: o.BrokerOffset, ConsumerOffset: o.ConsumerOffset, PullOffset: o.PullOffset}
	if o.LastTimestamp > 0 {
		g.LastTime = time.UnixMilli(o.LastTimestamp)
	}
	return g
}
