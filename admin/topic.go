package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"mqx/internal/fastjson"
	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// Topic is a topic as the brokers together hold it.
type Topic struct {
	Name    string
	System  bool
	Kind    string // normal, retry, dlq, system
	Brokers []TopicBroker
}

// TopicBroker is the part of a topic on one broker.
type TopicBroker struct {
	Cluster     string            `json:"cluster"`
	Broker      string            `json:"broker"`
	Addr        string            `json:"addr"` // of the master, else of the smallest id
	ReadQueues  int               `json:"readQueues"`
	WriteQueues int               `json:"writeQueues"`
	Perm        int               `json:"perm"`
	SysFlag     int               `json:"sysFlag,omitempty"`
	Order       bool              `json:"order,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
}

// TopicQueue is the state of one queue.
type TopicQueue struct {
	Cluster     string
	Broker      string
	QueueID     int32
	MinOffset   int64
	MaxOffset   int64
	LastUpdated time.Time // zero when the queue is empty
}

// TopicList is the answer of ListTopics.
type TopicList struct {
	Items  []Topic
	Errors []TargetError
}

// ListTopicsOptions narrows a list.
type ListTopicsOptions struct {
	Target Target
	// System includes system topics; Retry the retry and dead letter topics of groups.
	System, Retry bool
}

// Kinds of topic.
const (
	KindNormal = "normal"
	KindRetry  = "retry"
	KindDLQ    = "dlq"
	KindSystem = "system"
)

// topicKind says what a topic is for; own are the names of clusters and brokers, which
// are system topics too.
func topicKind(name string, own map[string]bool) string {
	switch {
	case message.IsRetry(name):
		return KindRetry
	case message.IsDLQ(name):
		return KindDLQ
	case message.IsSystemTopic(name), own[name], own[strings.TrimSuffix(name, message.TopicReplySuffix)]:
		return KindSystem
	}
	return KindNormal
}

func ownNames(brokers []Broker) map[string]bool {
	own := map[string]bool{}
	for _, b := range brokers {
		own[b.Cluster], own[b.Name] = true, true
	}
	delete(own, "")
	return own
}

// ListTopics lists topics with their queues and permissions by broker, sorted by name.
// It asks each broker for its own table, so that topics without a route are there too.
func (c *Client) ListTopics(ctx context.Context, o ListTopicsOptions) (*TopicList, error) {
	brokers, err := c.primaries(ctx, o.Target)
	if err != nil {
		return nil, err
	}
	own := ownNames(brokers)
	found := map[string][]TopicBroker{}
	list := &TopicList{}
	list.Errors = c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		table, err := c.topicTable(ctx, b.Addr)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for name, tc := range table {
			found[name] = append(found[name], topicBroker(b, tc))
		}
		return nil
	})
	for _, name := range slices.Sorted(maps.Keys(found)) {
		kind := topicKind(name, own)
		if kind == KindSystem && !o.System || (kind == KindRetry || kind == KindDLQ) && !o.Retry {
			continue
		}
		list.Items = append(list.Items, Topic{Name: name, System: kind == KindSystem, Kind: kind, Brokers: sortTopicBrokers(found[name])})
	}
	return list, nil
}

func topicBroker(b Broker, t remoting.TopicConfig) TopicBroker {
	return TopicBroker{
		Cluster: b.Cluster, Broker: b.Name, Addr: b.Addr, ReadQueues: int(t.ReadQueueNums), WriteQueues: int(t.WriteQueueNums),
		Perm: int(t.Perm), SysFlag: int(t.TopicSysFlag), Order: t.Order, Attributes: t.Attributes,
	}
}

func sortTopicBrokers(bs []TopicBroker) []TopicBroker {
	sorted.By(bs, func(a, b TopicBroker) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.Addr, b.Addr))
	})
	return bs
}

// pageSize is the number of topics or groups asked for at a time, as mqadmin does.
const pageSize = 2000

// maxRestarts bounds how often a table that changes while it is read is begun anew.
const maxRestarts = 5

// topicTable is all topics of a broker, read in pages. Brokers before 5.2 answer with
// the whole table at once.
func (c *Client) topicTable(ctx context.Context, addr string) (map[string]remoting.TopicConfig, error) {
	return pages(func(seq int32, version string) (page map[string]remoting.TopicConfig, v remoting.DataVersion, total remoting.Opt[int32], err error) {
		req := remoting.NewRequest(remoting.ReqGetAllTopicConfig, &remoting.GetAllTopicConfigHeader{TopicSeq: seq, MaxTopicNum: remoting.Some(int32(pageSize))})
		req.Fields.Set("dataVersion", version)
		resp, err := c.ask(ctx, addr, req)
		if err != nil {
			return nil, v, total, err
		}
		var body remoting.TopicConfigTable
		if err := fastjson.Unmarshal(resp.Body, &body); err != nil {
			return nil, v, total, fmt.Errorf("cannot read topics: %w", err)
		}
		n, ok, err := resp.Fields.Int32("totalTopicNum")
		return body.TopicConfigTable, body.DataVersion, remoting.Opt[int32]{Value: n, OK: ok}, err
	})
}

// pages puts a table together from its pages. When its version changes in between it
// is read from the start.
func pages[T any](read func(seq int32, version string) (page map[string]T, v remoting.DataVersion, total remoting.Opt[int32], err error)) (map[string]T, error) {
	for restart := 0; ; restart++ {
		all := map[string]T{}
		version, first := "", remoting.DataVersion{}
		for seq := int32(0); ; {
			page, v, total, err := read(seq, version)
			if err != nil {
				return nil, err
			}
			if seq == 0 {
				first = v
				b, err := fastjson.Marshal(v)
				if err != nil {
					return nil, err
				}
				version = string(b)
			} else if v != first && restart < maxRestarts {
				break
			}
			maps.Copy(all, page)
			seq += int32(len(page))
			if !total.OK || seq >= total.Value || len(page) == 0 {
				return all, nil
			}
		}
	}
}

// TopicDetail is the answer of GetTopic.
type TopicDetail struct {
	Topic
	Queues []TopicQueue
	Groups []string // that consume it, online or with an offset
	PutTPS float64  // messages a second put into it, over the brokers
	Errors []TargetError
}

// GetTopic describes one topic: configuration, queue offsets, groups. A topic that no
// name server routes is a *NotFoundError.
func (c *Client) GetTopic(ctx context.Context, name string) (*TopicDetail, error) {
	if err := message.ValidateTopic(name); err != nil {
		return nil, err
	}
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	brokers, err := c.topicBrokers(ctx, name)
	if err != nil {
		return nil, err
	}
	kind := topicKind(name, ownNames(all))
	d := &TopicDetail{Topic: Topic{Name: name, System: kind == KindSystem, Kind: kind}}
	groups := map[string]bool{}
	d.Errors = c.each(brokers, func(mu *sync.Mutex, b Broker) error { return c.describeOn(ctx, name, b, d, groups, mu) })
	sortTopicBrokers(d.Brokers)
	sorted.By(d.Queues, func(a, b TopicQueue) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.QueueID, b.QueueID))
	})
	d.Groups = slices.Sorted(maps.Keys(groups))
	return d, nil
}

// describeOn adds what one broker says about a topic. What it has said before a
// failure is kept.
func (c *Client) describeOn(ctx context.Context, name string, b Broker, d *TopicDetail, groups map[string]bool, mu *sync.Mutex) error {
	tc, err := c.topicConfig(ctx, b.Addr, name)
	if err != nil {
		return err
	}
	mu.Lock()
	d.Brokers = append(d.Brokers, topicBroker(b, *tc))
	mu.Unlock()
	stats, err := c.topicStats(ctx, b.Addr, name)
	if err != nil {
		return err
	}
	mu.Lock()
	d.PutTPS += stats.TopicPutTPS
	for q, o := range stats.OffsetTable {
		tq := TopicQueue{Cluster: b.Cluster, Broker: q.BrokerName, QueueID: q.QueueID, MinOffset: o.MinOffset, MaxOffset: o.MaxOffset}
		if o.LastUpdateTimestamp > 0 {
			tq.LastUpdated = time.UnixMilli(o.LastUpdateTimestamp)
		}
		d.Queues = append(d.Queues, tq)
	}
	mu.Unlock()
	names, err := c.topicGroups(ctx, b.Addr, name)
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	for _, g := range names {
		groups[g] = true
	}
	return nil
}

// route asks the name servers for the route of a topic.
func (c *Client) route(ctx context.Context, topic string) (*remoting.TopicRouteData, error) {
	resp, err := c.askNameServers(ctx, remoting.NewRequest(remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoHeader{Topic: topic}), succeeded)
	if hasCode(err, remoting.RespTopicNotExist) {
		return nil, &NotFoundError{Kind: "topic", Name: topic}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find route of topic %q: %w", topic, err)
	}
	r := &remoting.TopicRouteData{}
	if err := fastjson.Unmarshal(resp.Body, r); err != nil {
		return nil, fmt.Errorf("cannot read route of topic %q: %w", topic, err)
	}
	return r, nil
}

// topicBrokers are the masters, else the smallest ids, that the route of a topic shows.
func (c *Client) topicBrokers(ctx context.Context, topic string) ([]Broker, error) {
	r, err := c.route(ctx, topic)
	if err != nil {
		return nil, err
	}
	var out []Broker
	for _, bd := range r.BrokerDatas {
		if len(bd.BrokerAddrs) == 0 {
			continue
		}
		id := slices.Min(slices.Collect(maps.Keys(bd.BrokerAddrs)))
		out = append(out, Broker{Cluster: bd.Cluster, Name: bd.BrokerName, ID: id, Addr: bd.BrokerAddrs[id]})
	}
	return out, nil
}

// topicConfig is the configuration of a topic on one broker.
func (c *Client) topicConfig(ctx context.Context, addr, topic string) (*remoting.TopicConfig, error) {
	h := &remoting.GetTopicConfigHeader{Topic: topic}
	h.Lo = remoting.Some(true)
	tc, err := askBody[remoting.TopicConfig](ctx, c, addr, remoting.NewRequest(remoting.ReqGetTopicConfig, h))
	if !hasCode(err, remoting.RespRequestCodeNotSupported) {
		return tc, err
	}
	table, err := c.topicTable(ctx, addr) // a broker before 5.0
	if err != nil {
		return nil, err
	}
	found, ok := table[topic]
	if !ok {
		return nil, &remoting.ResponseError{Code: remoting.RespTopicNotExist, Remark: "No topic in this broker. topic: " + topic, Addr: addr}
	}
	return &found, nil
}

func (c *Client) topicStats(ctx context.Context, addr, topic string) (*remoting.TopicStatsTable, error) {
	return askBody[remoting.TopicStatsTable](ctx, c, addr, remoting.NewRequest(remoting.ReqGetTopicStatsInfo, &remoting.GetTopicStatsInfoHeader{Topic: topic}))
}

// topicGroups are the groups that consume a topic on one broker.
func (c *Client) topicGroups(ctx context.Context, addr, topic string) ([]string, error) {
	list, err := askBody[remoting.GroupList](ctx, c, addr, remoting.NewRequest(remoting.ReqQueryTopicConsumeByWho, &remoting.QueryTopicConsumeByWhoHeader{Topic: topic}))
	if err != nil {
		return nil, err
	}
	return list.GroupList, nil
}
