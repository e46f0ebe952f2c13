package nameserver

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"mqx/remoting"
)

// Bounds of the tables. A registration that passes one of them is refused with a text
// that names it.
const (
	maxBrokerNames = 10_000
	maxReplicas    = 64 // ids of one broker name
	maxTopics      = 1_000_000
	maxNameLen     = 255 // bytes of a cluster, broker or topic name
	maxAddrLen     = 255
)

// defaultBrokerTimeout is how long a broker lives without a sign when its registration
// does not say so itself.
const defaultBrokerTimeout = 120 * time.Second

const (
	masterID  = 0
	permWrite = 2
	permRead  = 4
)

// errNotRegistered answers the registration of a single topic by a broker id that has
// not registered all its topics before.
var errNotRegistered = errors.New("register broker failed")

// rules are the settings that decisions of the table depend on.
type rules struct {
	supportActingMaster bool // routes present the smallest id of a masterless broker as id 0
	replaceTopics       bool // a registration replaces the topic set of its broker
	notifyMinID         bool // changes of the smallest id are announced
}

// table is what a name server knows. It is a pure state machine: it reads no clock and
// does no I/O, and it is not safe to share (Server owns the lock).
type table struct {
	clusters map[string]map[string]struct{} // cluster -> broker names
	brokers  map[string]*brokerEntry        // by broker name
	live     map[replica]*liveEntry
	conns    map[uint64]map[replica]struct{} // connection -> what it registered
	topics   map[string]*topicEntry
	// changed is called with each topic whose route may differ from now on.
	changed func(topic string)
}

// replica is one broker process: its address in its cluster.
type replica struct{ cluster, addr string }

// brokerEntry is one broker name with its replicas.
type brokerEntry struct {
	name, cluster, zone string
	actingMaster        bool
	addrs               map[int64]string
	topics              map[string]struct{} // that have queues here
}

// liveEntry is the sign of life of one replica.
type liveEntry struct {
	name    string
	id      int64
	seen    time.Time
	timeout time.Duration
	version remoting.DataVersion
	conn    uint64
	haAddr  string
	filters []string // filter servers, a relic that routes still carry
}

// topicEntry is the route of a topic.
type topicEntry struct {
	queues   map[string]remoting.QueueData             // by broker name
	mappings map[string]remoting.TopicQueueMappingInfo // of a static topic, by broker name
}

func newTable(changed func(topic string)) *table {
	return &table{
		clusters: map[string]map[string]struct{}{},
		brokers:  map[string]*brokerEntry{},
		live:     map[replica]*liveEntry{},
		conns:    map[uint64]map[replica]struct{}{},
		topics:   map[string]*topicEntry{},
		changed:  changed,
	}
}

// registration is a decoded REGISTER_BROKER.
type registration struct {
	cluster, name, addr string
	id                  int64
	haAddr, zone        string
	timeout             time.Duration      // 0: defaultBrokerTimeout
	actingMaster        remoting.Opt[bool] // absent for brokers before 5.0
	conn                uint64             // connection it came by
	completeTopics      bool               // the sender vouches that topics are all it has
	body                *remoting.RegisterBrokerBody
}

// registered is the answer to a registration.
type registered struct {
	haAddr, masterAddr string // of the master; empty for the master itself
	notice             *minIDNotice
	ignored            bool // an older state of the same id; nothing was taken
}

// minIDNotice tells replicas that the smallest id of their broker name changed.
type minIDNotice struct {
	targets []string // addresses to tell
	header  remoting.NotifyMinBrokerIDChangeHeader
}

// register takes a registration (docs/wire/nameserver.md, "Registration"). On an error
// nothing has changed.
func (t *table) register(r registration, rl rules, now time.Time) (registered, error) {
	if err := t.checkRegistration(r); err != nil {
		return registered{}, err
	}
	self := replica{r.cluster, r.addr}
	b := t.brokers[r.name]
	if b != nil && t.outdated(b, r) {
		t.dropAddr(b, r.addr, r.id)
		t.leaveOldName(self, r.name, rl)
		t.forget(self)
		return registered{ignored: true}, nil
	}
	if (b == nil || b.addrs[r.id] == "") && len(r.body.Topics.TopicConfigTable) == 1 && !r.completeTopics {
		return registered{}, errNotRegistered
	}
	t.leaveOldName(self, r.name, rl)
	b = t.brokerFor(r)

	acting := r.actingMaster.OK && r.actingMaster.Value
	routeChanged := b.actingMaster != acting || b.zone != r.zone
	b.actingMaster, b.zone = acting, r.zone
	minIDFell := len(b.addrs) > 0 && r.id < minID(b.addrs)
	routeChanged = t.dropAddr(b, r.addr, r.id) || routeChanged
	old := b.addrs[r.id]
	b.addrs[r.id] = r.addr
	if routeChanged || old != r.addr {
		t.touchBroker(b)
	}

	prev := t.live[self]
	isPrime := r.id == masterID || r.actingMaster.OK && r.id == minID(b.addrs)
	if isPrime {
		t.takeTopics(b, r, rl, old == "", prev == nil || prev.version != r.body.Topics.DataVersion)
	}
	t.takeLiveness(self, r, prev, now)

	var res registered
	if r.id != masterID {
		if addr := b.addrs[masterID]; addr != "" {
			if m := t.live[replica{r.cluster, addr}]; m != nil {
				res.haAddr, res.masterAddr = m.haAddr, addr
			}
		}
	}
	if minIDFell && rl.notifyMinID {
		res.notice = newMinIDNotice(b.addrs, "", r.haAddr)
	}
	return res, nil
}

// leaveOldName lets a process go that was known under another broker name.
func (t *table) leaveOldName(self replica, name string, rl rules) {
	if l := t.live[self]; l != nil && l.name != name {
		t.depart([]departure{{replica: self, name: l.name, id: l.id}}, rl)
	}
}

// brokerFor is the entry of a broker name, made if need be, in the cluster that it
// registers for. A name with replicas in two clusters stays with the first.
func (t *table) brokerFor(r registration) *brokerEntry {
	b := t.brokers[r.name]
	if b == nil {
		b = &brokerEntry{name: r.name, cluster: r.cluster, addrs: map[int64]string{}, topics: map[string]struct{}{}}
		t.brokers[r.name] = b
	}
	if b.cluster != r.cluster && len(b.addrs) == 1 && b.addrs[r.id] != "" {
		t.leaveCluster(b.name, b.cluster)
		if old := (replica{b.cluster, r.addr}); t.live[old] != nil && t.live[old].name == b.name {
			t.forget(old)
		}
		b.cluster = r.cluster
		t.touchBroker(b)
	}
	if t.clusters[r.cluster] == nil {
		t.clusters[r.cluster] = map[string]struct{}{}
	}
	t.clusters[r.cluster][r.name] = struct{}{}
	return b
}

func (t *table) leaveCluster(broker, cluster string) {
	delete(t.clusters[cluster], broker)
	if len(t.clusters[cluster]) == 0 {
		delete(t.clusters, cluster)
	}
}

func (t *table) checkRegistration(r registration) error {
	for _, f := range [...]struct{ what, text string }{{"cluster name", r.cluster}, {"broker name", r.name}} {
		if f.text == "" || len(f.text) > maxNameLen {
			return fmt.Errorf("cannot register broker %q: %s must have 1 to %d bytes", r.name, f.what, maxNameLen)
		}
	}
	if r.addr == "" || len(r.addr) > maxAddrLen || len(r.haAddr) > maxAddrLen {
		return fmt.Errorf("cannot register broker %q: an address must have 1 to %d bytes", r.name, maxAddrLen)
	}
	b := t.brokers[r.name]
	if b == nil && len(t.brokers) >= maxBrokerNames {
		return fmt.Errorf("cannot register broker %q: the limit of %d broker names is reached", r.name, maxBrokerNames)
	}
	if b != nil && b.addrs[r.id] == "" && len(b.addrs) >= maxReplicas {
		return fmt.Errorf("cannot register broker %q: the limit of %d replicas is reached", r.name, maxReplicas)
	}
	fresh := 0
	for name := range r.body.Topics.TopicConfigTable {
		if len(name) > maxNameLen {
			return fmt.Errorf("cannot register broker %q: topic name of %d bytes exceeds the limit of %d", r.name, len(name), maxNameLen)
		}
		if t.topics[name] == nil {
			fresh++
		}
	}
	if len(t.topics)+fresh > maxTopics {
		return fmt.Errorf("cannot register broker %q: the limit of %d topics is reached", r.name, maxTopics)
	}
	return nil
}

// outdated reports whether another address holds the id with a later state version.
func (t *table) outdated(b *brokerEntry, r registration) bool {
	holder := b.addrs[r.id]
	if holder == "" || holder == r.addr {
		return false
	}
	l := t.live[replica{r.cluster, holder}]
	return l != nil && l.version.StateVersion > r.body.Topics.DataVersion.StateVersion
}

// dropAddr removes addr from all ids of b but keep.
func (t *table) dropAddr(b *brokerEntry, addr string, keep int64) bool {
	dropped := false
	for id, a := range b.addrs {
		if a == addr && id != keep {
			delete(b.addrs, id)
			dropped = true
		}
	}
	if dropped {
		t.touchBroker(b)
	}
	return dropped
}

// takeTopics updates queue data from a registration of the master, or of the smallest
// id of a broker that may act as one.
func (t *table) takeTopics(b *brokerEntry, r registration, rl rules, first, versionChanged bool) {
	topics := r.body.Topics.TopicConfigTable
	if r.completeTopics || rl.replaceTopics && len(r.body.Topics.MappingInfoMap) == 0 {
		for name := range b.topics {
			if _, ok := topics[name]; !ok {
				t.removeQueues(name, b.name)
			}
		}
	}
	for name, c := range topics {
		if e := t.topics[name]; !first && !versionChanged && e != nil {
			if _, has := e.queues[b.name]; has {
				continue
			}
		}
		perm := c.Perm
		if r.id != masterID && b.actingMaster {
			perm &^= permWrite
		}
		t.setQueues(name, remoting.QueueData{
			BrokerName: b.name, Perm: perm, ReadQueueNums: c.ReadQueueNums,
			TopicSysFlag: c.TopicSysFlag, WriteQueueNums: c.WriteQueueNums,
		})
	}
	if !first && !versionChanged {
		return
	}
	for name, m := range r.body.Topics.MappingInfoMap {
		t.setMapping(name, m)
	}
}

func (t *table) takeLiveness(self replica, r registration, prev *liveEntry, now time.Time) {
	if prev != nil && prev.conn != r.conn {
		t.unlinkConn(prev.conn, self)
	}
	l := &liveEntry{
		name: r.name, id: r.id, seen: now, timeout: r.timeout, version: r.body.Topics.DataVersion,
		conn: r.conn, haAddr: r.haAddr, filters: r.body.FilterServerList,
	}
	if l.timeout <= 0 {
		l.timeout = defaultBrokerTimeout
	}
	if prev != nil && !slices.Equal(prev.filters, l.filters) || prev == nil && len(l.filters) > 0 {
		if b := t.brokers[r.name]; b != nil {
			t.touchBroker(b)
		}
	}
	t.live[self] = l
	if t.conns[r.conn] == nil {
		t.conns[r.conn] = map[replica]struct{}{}
	}
	t.conns[r.conn][self] = struct{}{}
}

// forget ends the life of a replica without touching routes.
func (t *table) forget(self replica) {
	l := t.live[self]
	if l == nil {
		return
	}
	t.unlinkConn(l.conn, self)
	delete(t.live, self)
	if b := t.brokers[l.name]; b != nil && len(l.filters) > 0 {
		t.touchBroker(b)
	}
}

func (t *table) unlinkConn(conn uint64, self replica) {
	delete(t.conns[conn], self)
	if len(t.conns[conn]) == 0 {
		delete(t.conns, conn)
	}
}

// heartbeat refreshes the time of a replica; unknown ones are ignored.
func (t *table) heartbeat(cluster, addr string, now time.Time) {
	if l := t.live[replica{cluster, addr}]; l != nil {
		l.seen = now
	}
}

// dataVersion is the version that a replica registered last.
func (t *table) dataVersion(cluster, addr string) (remoting.DataVersion, bool) {
	if l := t.live[replica{cluster, addr}]; l != nil {
		return l.version, true
	}
	return remoting.DataVersion{}, false
}

func minID(addrs map[int64]string) int64 {
	first, least := true, int64(0)
	for id := range addrs {
		if first || id < least {
			first, least = false, id
		}
	}
	return least
}

// newMinIDNotice addresses all replicas, but, when one has come (offline is empty), not
// the new smallest id itself.
func newMinIDNotice(addrs map[int64]string, offline, haAddr string) *minIDNotice {
	least := minID(addrs)
	n := &minIDNotice{header: remoting.NotifyMinBrokerIDChangeHeader{
		MinBrokerID: remoting.Some(least), MinBrokerAddr: addrs[least],
		OfflineBrokerAddr: offline, HABrokerAddr: haAddr,
	}}
	for id, addr := range addrs {
		if offline != "" || len(addrs) == 1 || id != least {
			n.targets = append(n.targets, addr)
		}
	}
	slices.Sort(n.targets)
	return n
}
