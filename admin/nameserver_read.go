package admin

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"mqx/internal/sorted"
	"mqx/remoting"
)

// NameServerView is what one name server knows.
type NameServerView struct {
	Addr    string
	Err     error // why it is not known; the rest is then empty
	Took    time.Duration
	Brokers []Broker // sorted
	Topics  []string // sorted
	// Missing is what other name servers know and this one does not: broker addresses
	// and topics, each with its word in front ("broker a 10.0.0.1:10911").
	Missing []string
}

// NameServerViews asks every name server of this client for brokers and topics and
// compares the answers. One that does not answer is in the list and in the errors.
func (c *Client) NameServerViews(ctx context.Context) ([]NameServerView, []TargetError) {
	views := make([]NameServerView, len(c.cfg.NameServers))
	errs := c.each(servers(c.cfg.NameServers), func(mu *sync.Mutex, b Broker) error {
		v := NameServerView{Addr: b.Addr}
		began := time.Now()
		v.Err = c.viewOf(ctx, &v)
		v.Took = time.Since(began)
		mu.Lock()
		defer mu.Unlock()
		views[slices.Index(c.cfg.NameServers, b.Addr)] = v
		return v.Err
	})
	all := map[string]bool{}
	for i := range views {
		for _, k := range views[i].known() {
			all[k] = true
		}
	}
	for i := range views {
		v := &views[i]
		if v.Err != nil {
			continue
		}
		here := v.known()
		for _, k := range slices.Sorted(maps.Keys(all)) {
			if !slices.Contains(here, k) {
				v.Missing = append(v.Missing, k)
			}
		}
	}
	return views, errs
}

func (v *NameServerView) known() []string {
	var out []string
	for _, b := range v.Brokers {
		out = append(out, "broker "+b.Name+" "+b.Addr)
	}
	for _, t := range v.Topics {
		out = append(out, "topic "+t)
	}
	return out
}

func (c *Client) viewOf(ctx context.Context, v *NameServerView) error {
	info, err := askBody[remoting.ClusterInfo](ctx, c, v.Addr, remoting.NewRequest(remoting.ReqGetBrokerClusterInfo, nil))
	if err != nil {
		return err
	}
	topics, err := askBody[remoting.TopicList](ctx, c, v.Addr, remoting.NewRequest(remoting.ReqGetAllTopicListFromNameServer, nil))
	if err != nil {
		return err
	}
	v.Brokers = brokersOf(info)
	slices.Sort(topics.TopicList)
	v.Topics = slices.Compact(topics.TopicList)
	return nil
}

// KVValue is one key of the name servers' table and what each of them has for it.
type KVValue struct {
	Namespace string
	Key       string
	Values    map[string]string // by name server; one without the key is not in it
	Agree     bool              // every name server that answered has the same
}

// OrderNamespace is the namespace of the order of topics.
const OrderNamespace = "ORDER_TOPIC_CONFIG"

// KVValues reads a namespace of every name server (GET_KVLIST_BY_NAMESPACE), sorted by key.
func (c *Client) KVValues(ctx context.Context, namespace string) ([]KVValue, []TargetError) {
	byKey := map[string]*KVValue{}
	answered := 0
	errs := c.each(servers(c.cfg.NameServers), func(mu *sync.Mutex, b Broker) error {
		table, err := askBody[remoting.KVTable](ctx, c, b.Addr,
			remoting.NewRequest(remoting.ReqGetKVListByNamespace, &remoting.GetKVListByNamespaceHeader{Namespace: namespace}))
		if err != nil && !hasCode(err, remoting.RespQueryNotFound) {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		answered++
		if table == nil {
			return nil // the namespace is empty there
		}
		for k, v := range table.Table {
			if byKey[k] == nil {
				byKey[k] = &KVValue{Namespace: namespace, Key: k, Values: map[string]string{}}
			}
			byKey[k].Values[b.Addr] = v
		}
		return nil
	})
	var out []KVValue
	for _, k := range slices.Sorted(maps.Keys(byKey)) {
		v := byKey[k]
		distinct := slices.Compact(slices.Sorted(maps.Values(v.Values)))
		v.Agree = len(v.Values) == answered && len(distinct) == 1
		out = append(out, *v)
	}
	return out, errs
}

// TopicClusters are the clusters that have a topic, by its route, sorted.
func (c *Client) TopicClusters(ctx context.Context, topic string) ([]string, error) {
	route, err := c.Route(ctx, topic)
	if err != nil {
		return nil, err
	}
	var clusters []string
	for _, b := range route.BrokerDatas {
		clusters = append(clusters, b.Cluster)
	}
	slices.Sort(clusters)
	return slices.Compact(clusters), nil
}

// brokersOf are the brokers of a list, sorted by cluster, name and id.
func brokersOf(info *remoting.ClusterInfo) []Broker {
	var out []Broker
	for cluster, names := range info.ClusterAddrTable {
		for _, name := range names {
			for id, addr := range info.BrokerAddrTable[name].BrokerAddrs {
				out = append(out, Broker{Cluster: cluster, Name: name, ID: id, Addr: addr})
			}
		}
	}
	sorted.By(out, compareBrokers)
	return out
}
