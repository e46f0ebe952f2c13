package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"mqx/internal/fastjson"
	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// TopicNames are the names of all topics that the name servers route, sorted: those of
// the system, retry and dead letter topics too. It asks no broker.
func (c *Client) TopicNames(ctx context.Context) ([]string, error) {
	var list remoting.TopicList
	resp, err := c.askNameServers(ctx, remoting.NewRequest(remoting.ReqGetAllTopicListFromNameServer, nil), func(r *remoting.Command) bool {
		var l remoting.TopicList
		return r.Code == remoting.RespSuccess && fastjson.Unmarshal(r.Body, &l) == nil && len(l.TopicList) > 0
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list topics: %w", err)
	}
	if err := fastjson.Unmarshal(resp.Body, &list); err != nil {
		return nil, fmt.Errorf("cannot read list of topics: %w", err)
	}
	slices.Sort(list.TopicList)
	return slices.Compact(list.TopicList), nil
}

// Route is the route of a topic as the name servers give it. A topic without one is a
// *NotFoundError.
func (c *Client) Route(ctx context.Context, topic string) (*remoting.TopicRouteData, error) {
	if err := message.ValidateTopic(topic); err != nil {
		return nil, err
	}
	return c.route(ctx, topic)
}

// TopicGroups are the groups that consume a topic on the brokers that its route shows,
// sorted. One broker without an answer is in the errors.
func (c *Client) TopicGroups(ctx context.Context, topic string) ([]string, []TargetError, error) {
	brokers, err := c.topicBrokers(ctx, topic)
	if err != nil {
		return nil, nil, err
	}
	var all []string
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		groups, err := c.topicGroups(ctx, b.Addr, topic)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, groups...)
		return err
	})
	slices.Sort(all)
	return slices.Compact(all), errs, nil
}

// GroupConfig is the configuration of a group on one broker, as it is stored there.
type GroupConfig struct {
	Broker
	Config remoting.SubscriptionGroupConfig
}

// GroupConfigs are the configurations of a group on all brokers that know it, sorted by
// cluster and broker. None is a *NotFoundError, unless some broker did not answer.
func (c *Client) GroupConfigs(ctx context.Context, group string) ([]GroupConfig, []TargetError, error) {
	brokers, err := c.primaries(ctx, Target{})
	if err != nil {
		return nil, nil, err
	}
	var out []GroupConfig
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		table, err := c.groupTable(ctx, b.Addr)
		if err != nil {
			return err
		}
		if cfg, ok := table[group]; ok {
			mu.Lock()
			defer mu.Unlock()
			out = append(out, GroupConfig{b, cfg})
		}
		return nil
	})
	if len(out)+len(errs) == 0 {
		return nil, nil, &NotFoundError{Kind: "group", Name: group}
	}
	sorted.By(out, func(a, b GroupConfig) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name))
	})
	return out, errs, nil
}

// TopicBrokers are the brokers that the route of a topic shows: of each name the master, else the smallest id. A topic
// without a route is a *NotFoundError.
func (c *Client) TopicBrokers(ctx context.Context, topic string) ([]Broker, error) {
	if err := message.ValidateTopic(topic); err != nil {
		return nil, err
	}
	return c.topicBrokers(ctx, topic)
}
