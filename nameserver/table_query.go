package nameserver

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"mqx/remoting"
)

// memberTopicPrefix begins the topics by which replicas find each other; their routes
// never show an acting master.
const memberTopicPrefix = "rmq_sys_SYNC_BROKER_MEMBER_"

// Bits of a topic's system flag.
const (
	flagUnit    = 1
	flagUnitSub = 2
)

// route is the route of a topic, nil when there is none.
func (t *table) route(topic string, rl rules) *remoting.TopicRouteData {
	e := t.topics[topic]
	if e == nil {
		return nil
	}
	r := &remoting.TopicRouteData{FilterServerTable: map[string][]string{}}
	for _, name := range slices.Sorted(maps.Keys(e.queues)) {
		r.QueueDatas = append(r.QueueDatas, e.queues[name])
		if b := t.brokers[name]; b != nil {
			r.BrokerDatas = append(r.BrokerDatas, b.data())
			t.addFilters(r, b)
		}
	}
	if len(r.BrokerDatas) == 0 {
		return nil
	}
	if len(e.mappings) > 0 {
		r.MappingByBroker = maps.Clone(e.mappings)
	}
	if rl.supportActingMaster && !strings.HasPrefix(topic, memberTopicPrefix) {
		showActingMasters(r)
	}
	return r
}

func (b *brokerEntry) data() remoting.BrokerData {
	return remoting.BrokerData{
		BrokerAddrs: maps.Clone(b.addrs), BrokerName: b.name, Cluster: b.cluster,
		EnableActingMaster: b.actingMaster, ZoneName: b.zone,
	}
}

func (t *table) addFilters(r *remoting.TopicRouteData, b *brokerEntry) {
	for _, addr := range b.addrs {
		if l := t.live[replica{b.cluster, addr}]; l != nil && l.name == b.name && len(l.filters) > 0 {
			r.FilterServerTable[addr] = l.filters
		}
	}
}

// showActingMasters presents the smallest id as 0 for brokers without a master whose
// queues cannot be written.
func showActingMasters(r *remoting.TopicRouteData) {
	for i, b := range r.BrokerDatas {
		if len(b.BrokerAddrs) == 0 || b.BrokerAddrs[masterID] != "" || !b.EnableActingMaster {
			continue
		}
		q := slices.IndexFunc(r.QueueDatas, func(q remoting.QueueData) bool { return q.BrokerName == b.BrokerName })
		if q < 0 || r.QueueDatas[q].Perm&permWrite != 0 {
			continue
		}
		least := minID(b.BrokerAddrs)
		r.BrokerDatas[i].BrokerAddrs[masterID] = b.BrokerAddrs[least]
		delete(r.BrokerDatas[i].BrokerAddrs, least)
	}
}

// inZone keeps of a route the brokers of a zone, and those without a master wherever
// they are. It changes r.
func inZone(r *remoting.TopicRouteData, zone string) {
	removed := map[string]bool{}
	kept := r.BrokerDatas[:0]
	for _, b := range r.BrokerDatas {
		if b.BrokerAddrs[masterID] == "" || strings.EqualFold(b.ZoneName, zone) {
			kept = append(kept, b)
			continue
		}
		removed[b.BrokerName] = true
		for _, addr := range b.BrokerAddrs {
			delete(r.FilterServerTable, addr)
		}
	}
	r.BrokerDatas = kept
	r.QueueDatas = slices.DeleteFunc(r.QueueDatas, func(q remoting.QueueData) bool { return removed[q.BrokerName] })
}

// registered reports whether a living broker has the address.
func (t *table) registered(addr string) bool {
	for r := range t.live {
		if r.addr == addr {
			return true
		}
	}
	return false
}

// clusterInfo lists all brokers and clusters.
func (t *table) clusterInfo() *remoting.ClusterInfo {
	info := &remoting.ClusterInfo{
		BrokerAddrTable:  make(map[string]remoting.BrokerData, len(t.brokers)),
		ClusterAddrTable: make(map[string][]string, len(t.clusters)),
	}
	for name, b := range t.brokers {
		info.BrokerAddrTable[name] = b.data()
	}
	for name, brokers := range t.clusters {
		info.ClusterAddrTable[name] = slices.Sorted(maps.Keys(brokers))
	}
	return info
}

// members are the replicas of one broker name.
func (t *table) members(cluster, broker string) *remoting.BrokerMemberGroup {
	g := &remoting.BrokerMemberGroup{BrokerAddrs: map[int64]string{}, BrokerName: broker, Cluster: cluster}
	if b := t.brokers[broker]; b != nil {
		g.BrokerAddrs = maps.Clone(b.addrs)
	}
	return g
}

// allTopics lists every topic, sorted.
func (t *table) allTopics() []string {
	out := make([]string, 0, len(t.topics))
	for name := range t.topics {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// clusterTopics lists the topics that brokers of a cluster serve, sorted.
func (t *table) clusterTopics(cluster string) []string {
	found := map[string]struct{}{}
	for name := range t.clusters[cluster] {
		if b := t.brokers[name]; b != nil {
			maps.Copy(found, b.topics)
		}
	}
	return sortedKeys(found)
}

// systemTopics lists cluster and broker names, and the address of some broker.
func (t *table) systemTopics() (names []string, addr string) {
	found := map[string]struct{}{}
	for cluster, brokers := range t.clusters {
		found[cluster] = struct{}{}
		maps.Copy(found, brokers)
	}
	for _, name := range slices.Sorted(maps.Keys(t.brokers)) {
		if addrs := t.brokers[name].addrs; len(addrs) > 0 {
			addr = addrs[minID(addrs)]
			break
		}
	}
	return sortedKeys(found), addr
}

// flaggedTopics lists the topics whose system flag satisfies has; the flag of the first
// broker by name counts.
func (t *table) flaggedTopics(has func(flag int32) bool) []string {
	out := []string{}
	for name, e := range t.topics {
		first := slices.MinFunc(slices.Collect(maps.Values(e.queues)), func(a, b remoting.QueueData) int {
			return cmp.Compare(a.BrokerName, b.BrokerName)
		})
		if has(first.TopicSysFlag) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func sortedKeys(m map[string]struct{}) []string {
	out := slices.Sorted(maps.Keys(m))
	if out == nil {
		out = []string{}
	}
	return out
}
