package nameserver

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mqx/remoting"
)

// TestTableKeepsItsInvariants runs random operations and checks after each of them that
// the tables agree with each other, and that every route that changed was reported.
func TestTableKeepsItsInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &tableMachine{changed: map[string]bool{}, now: t0}
		m.table = newTable(func(topic string) { m.changed[topic] = true })
		m.rules = rules{
			supportActingMaster: rapid.Bool().Draw(rt, "acting"), replaceTopics: rapid.Bool().Draw(rt, "replace"), notifyMinID: rapid.Bool().Draw(rt, "notify"),
		}
		m.routes = m.snapshot()
		rt.Repeat(map[string]func(*rapid.T){
			"register":  m.register,
			"depart":    m.depart,
			"close":     m.closeConn,
			"expire":    m.expire,
			"heartbeat": func(rt *rapid.T) { m.table.heartbeat(draw(rt, "cluster", clusters), draw(rt, "addr", addrs), m.now) },
			"perm":      func(rt *rapid.T) { m.table.changeWritePerm(draw(rt, "broker", brokers), rapid.Bool().Draw(rt, "give")) },
			"delete": func(rt *rapid.T) {
				m.table.deleteTopic(draw(rt, "topic", topicNames), draw(rt, "cluster", append(clusters, "")))
			},
			"addTopic": func(rt *rapid.T) {
				m.table.registerTopic(draw(rt, "topic", topicNames), []remoting.QueueData{{BrokerName: draw(rt, "broker", brokers), Perm: 6}})
			},
			"": m.check,
		})
	})
}

var (
	clusters   = []string{"c1", "c2"}
	brokers    = []string{"a", "b", "c"}
	addrs      = []string{"h:1", "h:2", "h:3", "h:4"}
	topicNames = []string{"t0", "t1", "t2", memberTopicPrefix + "a"}
)

func draw(rt *rapid.T, what string, from []string) string {
	return rapid.SampledFrom(from).Draw(rt, what)
}

type tableMachine struct {
	table   *table
	rules   rules
	now     time.Time
	changed map[string]bool
	routes  map[string]*remoting.TopicRouteData
}

func (m *tableMachine) register(rt *rapid.T) {
	r := registration{
		cluster: draw(rt, "cluster", clusters), name: draw(rt, "broker", brokers), addr: draw(rt, "addr", addrs),
		id: rapid.Int64Range(0, 2).Draw(rt, "id"), conn: rapid.Uint64Range(1, 4).Draw(rt, "conn"), zone: draw(rt, "zone", []string{"", "z"}),
		timeout:        time.Duration(rapid.IntRange(0, 20).Draw(rt, "timeout")) * time.Second,
		completeTopics: rapid.Bool().Draw(rt, "complete"), body: &remoting.RegisterBrokerBody{},
	}
	if rapid.Bool().Draw(rt, "new version of the protocol") {
		r.actingMaster = remoting.Some(rapid.Bool().Draw(rt, "actingMaster"))
	}
	r.body.Topics.DataVersion = remoting.DataVersion{Counter: rapid.Int64Range(0, 2).Draw(rt, "counter"), StateVersion: rapid.Int64Range(0, 1).Draw(rt, "state")}
	r.body.Topics.TopicConfigTable = map[string]remoting.TopicConfig{}
	for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(topicNames), rapid.ID[string]).Draw(rt, "topics") {
		c := remoting.NewTopicConfig(name)
		c.Perm = rapid.Int32Range(4, 7).Draw(rt, "perm")
		r.body.Topics.TopicConfigTable[name] = c
	}
	if rapid.Bool().Draw(rt, "filters") {
		r.body.FilterServerList = []string{"f"}
	}
	before := len(m.table.live)
	if _, err := m.table.register(r, m.rules, m.now); err != nil && len(m.table.live) != before {
		rt.Fatalf("a refused registration changed the liveness table")
	}
}

func (m *tableMachine) depart(rt *rapid.T) {
	m.table.depart([]departure{{replica{draw(rt, "cluster", clusters), draw(rt, "addr", addrs)}, draw(rt, "broker", brokers), rapid.Int64Range(0, 2).Draw(rt, "id")}}, m.rules)
}

func (m *tableMachine) closeConn(rt *rapid.T) {
	m.table.depart(m.table.ofConns([]uint64{rapid.Uint64Range(1, 4).Draw(rt, "conn")}), m.rules)
}

func (m *tableMachine) expire(rt *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 60).Draw(rt, "seconds")) * time.Second)
	ds, _ := m.table.expired(m.now)
	m.table.depart(ds, m.rules)
	if left, _ := m.table.expired(m.now); len(left) != 0 {
		rt.Fatalf("still expired after the departure: %v", left)
	}
}

func (m *tableMachine) snapshot() map[string]*remoting.TopicRouteData {
	out := map[string]*remoting.TopicRouteData{}
	for _, name := range topicNames {
		out[name] = m.table.route(name, m.rules)
	}
	return out
}

func (m *tableMachine) check(rt *rapid.T) {
	t := m.table
	for name, b := range t.brokers {
		if len(b.addrs) == 0 {
			rt.Fatalf("broker %s has no address", name)
		}
		seen := map[string]bool{}
		for _, a := range b.addrs {
			if seen[a] {
				rt.Fatalf("broker %s has address %s under two ids: %v", name, a, b.addrs)
			}
			seen[a] = true
			if !slices.ContainsFunc(clusters, func(c string) bool { l := t.live[replica{c, a}]; return l != nil && l.name == name }) {
				rt.Fatalf("address %s of broker %s would never expire: %+v", a, name, t.live)
			}
		}
		if _, ok := t.clusters[b.cluster][name]; !ok {
			rt.Fatalf("broker %s is not in its cluster %s: %v", name, b.cluster, t.clusters)
		}
		for topic := range b.topics {
			if _, ok := t.topics[topic].queues[name]; !ok {
				rt.Fatalf("broker %s lists topic %s, which does not list it", name, topic)
			}
		}
	}
	for cluster, names := range t.clusters {
		if len(names) == 0 {
			rt.Fatalf("cluster %s is empty", cluster)
		}
		for name := range names {
			if t.brokers[name] == nil {
				rt.Fatalf("cluster %s lists unknown broker %s", cluster, name)
			}
		}
	}
	for topic, e := range t.topics {
		if len(e.queues) == 0 {
			rt.Fatalf("topic %s has no queues", topic)
		}
		for name := range e.queues {
			if b := t.brokers[name]; b == nil {
				rt.Fatalf("topic %s lists unknown broker %s", topic, name)
			} else if _, ok := b.topics[topic]; !ok {
				rt.Fatalf("topic %s lists broker %s, which does not list it", topic, name)
			}
		}
	}
	m.checkConns(rt)
	m.checkChanges(rt)
}

func (m *tableMachine) checkConns(rt *rapid.T) {
	n := 0
	for conn, rs := range m.table.conns {
		if len(rs) == 0 {
			rt.Fatalf("connection %d is listed without a replica", conn)
		}
		for r := range rs {
			n++
			if l := m.table.live[r]; l == nil || l.conn != conn {
				rt.Fatalf("connection %d lists %v, which is %+v", conn, r, l)
			}
		}
	}
	if n != len(m.table.live) {
		rt.Fatalf("%d replicas by connection, %d in all", n, len(m.table.live))
	}
}

func (m *tableMachine) checkChanges(rt *rapid.T) {
	next := m.snapshot()
	for _, name := range slices.Sorted(maps.Keys(next)) {
		if d := cmp.Diff(m.routes[name], next[name]); d != "" && !m.changed[name] {
			rt.Fatalf("the route of %s changed without being reported (-before +after):\n%s", name, d)
		}
	}
	m.routes = next
	clear(m.changed)
}

func BenchmarkRegister(b *testing.B) {
	r := reg(0, "m:1", 1)
	for i := range 10_000 {
		name := fmt.Sprintf("topic-%d", i)
		r.body.Topics.TopicConfigTable[name] = remoting.NewTopicConfig(name)
	}
	t := newTable(func(string) {})
	for b.Loop() {
		if _, err := t.register(r, rules{}, t0); err != nil {
			b.Fatal(err)
		}
	}
}
