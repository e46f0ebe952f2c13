package admin

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"mqx/internal/sorted"
	"mqx/remoting"
)

// Instance is one client of an application as the brokers see it.
type Instance struct {
	ID       string
	Addrs    []string // it connects from, sorted: one a broker
	Language string
	Version  string
	Consumes []string // groups, sorted
	Produces []string // groups, sorted
	Brokers  []string // names, sorted
	LastSeen time.Time
	// Queues are those it has at the moment; nil where it was not asked or did not say.
	Queues []remoting.MessageQueue
	// NameServers are those that it talks to, sorted: of two clusters in one process a client may only know one. nil where it was
	// not asked or did not say.
	NameServers []string
	// Err is why a consumer did not say what it does.
	Err error
}

// InstanceList is the answer of ListInstances.
type InstanceList struct {
	Items  []Instance // sorted by id
	Errors []TargetError
}

// InstancesOptions narrow a list of clients.
type InstancesOptions struct {
	Target Target
	Group  string // only the members of this group, consumers and producers
	// Queues asks each consumer which queues it has, and which name servers it talks to.
	Queues bool
}

// ListInstances lists the clients that are connected to the brokers of a target:
// consumers of every group that a broker knows, and producers.
func (c *Client) ListInstances(ctx context.Context, o InstancesOptions) (*InstanceList, error) {
	brokers, err := c.targets(ctx, o.Target, false)
	if err != nil {
		return nil, err
	}
	found := &instances{byID: map[string]*Instance{}, at: map[string]Broker{}}
	list := &InstanceList{}
	list.Errors = c.each(brokers, func(_ *sync.Mutex, b Broker) error { return c.instancesOn(ctx, b, o.Group, found) })
	if o.Queues {
		c.askQueues(ctx, found, o.Group)
	}
	for _, id := range slices.Sorted(maps.Keys(found.byID)) {
		list.Items = append(list.Items, *found.byID[id].tidy())
	}
	return list, nil
}

// instances are clients while they are found.
type instances struct {
	mu   sync.Mutex
	byID map[string]*Instance
	at   map[string]Broker // a broker that each is connected to
}

func (f *instances) add(b Broker, id, addr, language, version string) *Instance {
	i := f.byID[id]
	if i == nil {
		i = &Instance{ID: id, Language: language, Version: version}
		f.byID[id], f.at[id] = i, b
	}
	i.Addrs = append(i.Addrs, addr)
	i.Brokers = append(i.Brokers, cmp.Or(b.Name, b.Addr))
	return i
}

func (i *Instance) tidy() *Instance {
	for _, list := range []*[]string{&i.Addrs, &i.Consumes, &i.Produces, &i.Brokers, &i.NameServers} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return i
}

// instancesOn finds the clients at one broker.
func (c *Client) instancesOn(ctx context.Context, b Broker, group string, f *instances) error {
	groups := []string{group}
	if group == "" {
		table, err := c.groupTable(ctx, b.Addr)
		if err != nil {
			return err
		}
		groups = slices.Sorted(maps.Keys(table))
	}
	failed := several(perBroker, groups, func(g string) error {
		conns, err := c.connections(ctx, b.Addr, g)
		if err != nil || conns == nil {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, m := range conns.ConnectionSet {
			i := f.add(b, m.ClientID, m.ClientAddr, m.Language, remoting.VersionName(m.Version))
			i.Consumes = append(i.Consumes, g)
		}
		return nil
	})
	if failed != nil {
		return failed
	}
	producers, err := c.producersOn(ctx, b.Addr)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for g, list := range producers {
		if group != "" && g != group {
			continue
		}
		for _, p := range list {
			i := f.add(b, p.ClientID, trimSlash(p.RemoteIP), p.Language, remoting.VersionName(p.Version))
			if g != innerProducers {
				i.Produces = append(i.Produces, g)
			}
			if at := time.UnixMilli(p.LastUpdateTimestamp); at.After(i.LastSeen) {
				i.LastSeen = at
			}
		}
	}
	return nil
}

// innerProducers is the producer group that every Java client brings along.
const innerProducers = "CLIENT_INNER_PRODUCER"

// trimSlash: Java writes an address with a slash in front.
func trimSlash(addr string) string {
	if len(addr) > 0 && addr[0] == '/' {
		return addr[1:]
	}
	return addr
}

func (c *Client) producersOn(ctx context.Context, addr string) (map[string][]remoting.ProducerInfo, error) {
	table, err := askBody[remoting.ProducerTableInfo](ctx, c, addr, remoting.NewRequest(remoting.ReqGetAllProducerInfo, nil))
	if err != nil {
		return nil, err
	}
	return table.Data, nil
}

// askQueues asks every consumer for the queues it has.
func (c *Client) askQueues(ctx context.Context, f *instances, group string) {
	_ = several(c.cfg.Parallel, slices.Sorted(maps.Keys(f.byID)), func(id string) error {
		i := f.byID[id]
		i.tidy()
		for _, g := range i.Consumes {
			if group != "" && g != group {
				continue
			}
			info, err := c.runningInfo(ctx, f.at[id].Addr, g, id, false)
			if err != nil {
				i.Err = err
				continue
			}
			if i.Queues == nil {
				i.Queues = []remoting.MessageQueue{}
			}
			i.Queues = append(i.Queues, queuesOf(info)...)
			i.NameServers = append(i.NameServers, nameServersOf(info)...)
		}
		return nil
	})
}

// runningInfo asks a consumer, through a broker it is connected to, what it does.
func (c *Client) runningInfo(ctx context.Context, addr, group, clientID string, stack bool) (*remoting.ConsumerRunningInfo, error) {
	return askBody[remoting.ConsumerRunningInfo](ctx, c, addr, remoting.NewRequest(remoting.ReqGetConsumerRunningInfo,
		&remoting.GetConsumerRunningInfoHeader{ConsumerGroup: group, ClientID: clientID, JStackEnable: stack}))
}

// queuesOf are the queues that a consumer has, popped ones too, sorted.
func queuesOf(info *remoting.ConsumerRunningInfo) []remoting.MessageQueue {
	queues := slices.Collect(maps.Keys(info.MQTable))
	for q := range info.MQPopTable {
		if _, both := info.MQTable[q]; !both {
			queues = append(queues, q)
		}
	}
	sorted.By(queues, remoting.MessageQueue.Compare)
	return queues
}

// nameServersOf are the name servers that a consumer talks to, as it says; nil when it does not.
func nameServersOf(info *remoting.ConsumerRunningInfo) []string {
	return strings.FieldsFunc(info.Properties[remoting.PropNameServerAddr], func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
}

// ProducerRow is one client of one producer group at one broker.
type ProducerRow struct {
	Broker
	Group string
	remoting.ProducerInfo
}

// From is the address that it connects from.
func (p *ProducerRow) From() string { return trimSlash(p.RemoteIP) }

// Inner reports whether it is the producer that every Java client brings along.
func (p *ProducerRow) Inner() bool { return p.Group == innerProducers }

// VersionName is its version, as V5_5_0.
func (p *ProducerRow) VersionName() string { return remoting.VersionName(p.Version) }

// ListProducers lists the producers that are connected to the brokers of a target
// (GET_ALL_PRODUCER_INFO), sorted by group, client and broker; of one group, or all.
func (c *Client) ListProducers(ctx context.Context, t Target, group string) ([]ProducerRow, []TargetError, error) {
	byBroker, errs, err := fromBrokers(ctx, c, t, false, func(b Broker) ([]ProducerRow, error) {
		table, err := c.producersOn(ctx, b.Addr)
		var rows []ProducerRow
		for g, list := range table {
			for _, p := range list {
				if group == "" || g == group {
					rows = append(rows, ProducerRow{b, g, p})
				}
			}
		}
		return rows, err
	})
	rows := slices.Concat(byBroker...)
	sorted.By(rows, func(x, y ProducerRow) int {
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.ClientID, y.ClientID), compareBrokers(x.Broker, y.Broker))
	})
	return rows, errs, err
}

// ProducerConnections are the clients of a producer group at the brokers of a topic
// (GET_PRODUCER_CONNECTION_LIST), sorted by client. A broker without one of them answers
// with an error that counts as none.
func (c *Client) ProducerConnections(ctx context.Context, group, topic string) ([]remoting.Connection, []TargetError, error) {
	brokers, err := c.topicBrokers(ctx, topic)
	if err != nil {
		return nil, nil, err
	}
	byBroker, errs := fromEach(c, brokers, func(b Broker) ([]remoting.Connection, error) {
		conns, err := askBody[remoting.ProducerConnection](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqGetProducerConnectionList,
			&remoting.GetProducerConnectionListHeader{ProducerGroup: group}))
		if hasCode(err, remoting.RespSystemError) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return conns.ConnectionSet, nil
	})
	all := slices.Concat(byBroker...)
	sorted.By(all, func(x, y remoting.Connection) int {
		return cmp.Or(cmp.Compare(x.ClientID, y.ClientID), cmp.Compare(x.ClientAddr, y.ClientAddr))
	})
	if len(all) == 0 && len(errs) == 0 {
		return nil, nil, &NotFoundError{Kind: "producer group", Name: group}
	}
	return all, errs, nil
}

// VersionName is the name of a client's version number, V5_5_0.
func VersionName(version int32) string { return remoting.VersionName(version) }
