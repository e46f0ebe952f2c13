package nameserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mqx/remoting"
)

var t0 = time.UnixMilli(1_700_000_000_000)

// fixture is a table with the topics that it reported as changed.
type fixture struct {
	*table
	t       *testing.T
	changed map[string]int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, changed: map[string]int{}}
	f.table = newTable(func(topic string) { f.changed[topic]++ })
	return f
}

// reg is a registration of broker "b" of cluster "c" with topics; a topic "x:5" has
// permission 5, a plain one 6.
func reg(id int64, addr string, counter int64, topics ...string) registration {
	r := registration{
		cluster: "c", name: "b", addr: addr, id: id, haAddr: "ha-" + addr, conn: 1,
		body: &remoting.RegisterBrokerBody{},
	}
	r.body.Topics.DataVersion = remoting.DataVersion{Counter: counter, Timestamp: 1}
	r.body.Topics.TopicConfigTable = map[string]remoting.TopicConfig{}
	for _, name := range topics {
		tc := remoting.NewTopicConfig(name)
		if i := strings.IndexByte(name, ':'); i > 0 {
			tc.TopicName = name[:i]
			_, err := fmt.Sscan(name[i+1:], &tc.Perm)
			if err != nil {
				panic(err)
			}
		}
		r.body.Topics.TopicConfigTable[tc.TopicName] = tc
	}
	return r
}

func (f *fixture) register(r registration, rl rules) registered {
	f.t.Helper()
	res, err := f.table.register(r, rl, t0)
	if err != nil {
		f.t.Fatalf("register %s id %d: %v", r.addr, r.id, err)
	}
	return res
}

// state describes the routes: topic -> "broker perm addrs".
func (f *fixture) state() map[string]string {
	out := map[string]string{}
	for _, topic := range f.allTopics() {
		r := f.route(topic, rules{})
		if r == nil {
			out[topic] = "no route"
			continue
		}
		var parts []string
		for i, q := range r.QueueDatas {
			parts = append(parts, fmt.Sprintf("%s perm %d %v", q.BrokerName, q.Perm, r.BrokerDatas[i].BrokerAddrs))
		}
		out[topic] = strings.Join(parts, "; ")
	}
	return out
}

func (f *fixture) want(want map[string]string) {
	f.t.Helper()
	if d := cmp.Diff(want, f.state()); d != "" {
		f.t.Errorf("routes (-want +got):\n%s", d)
	}
}

func TestRegisterMaster(t *testing.T) {
	f := newFixture(t)
	if res := f.register(reg(0, "a:1", 1, "x", "y:4"), rules{}); res != (registered{}) {
		t.Errorf("master's answer: %+v, want nothing", res)
	}
	f.want(map[string]string{"x": "b perm 6 map[0:a:1]", "y": "b perm 4 map[0:a:1]"})

	// The same again changes nothing, so no cached answer is dropped.
	clear(f.changed)
	f.register(reg(0, "a:1", 1, "x:2", "y"), rules{})
	f.want(map[string]string{"x": "b perm 6 map[0:a:1]", "y": "b perm 4 map[0:a:1]"})
	if len(f.changed) != 0 {
		t.Errorf("changed by an unchanged registration: %v", f.changed)
	}

	// With another version it is taken; topics that are missing stay.
	f.register(reg(0, "a:1", 2, "x:2", "z"), rules{})
	f.want(map[string]string{"x": "b perm 2 map[0:a:1]", "y": "b perm 4 map[0:a:1]", "z": "b perm 6 map[0:a:1]"})
}

func TestRegisterTopicSet(t *testing.T) {
	t.Run("deleteTopicWithBrokerRegistration", func(t *testing.T) {
		f := newFixture(t)
		f.register(reg(0, "a:1", 1, "x", "y"), rules{})
		f.register(reg(0, "a:1", 2, "y", "z"), rules{replaceTopics: true})
		f.want(map[string]string{"y": "b perm 6 map[0:a:1]", "z": "b perm 6 map[0:a:1]"})
	})
	t.Run("N094 N095 sender vouches for the whole set", func(t *testing.T) {
		f := newFixture(t)
		other := reg(0, "o:1", 1, "x", "y")
		other.name = "o"
		f.register(other, rules{})
		f.register(reg(0, "a:1", 1, "x", "y", "TBW102"), rules{})
		r := reg(0, "a:1", 2, "y")
		r.completeTopics = true
		f.register(r, rules{})
		f.want(map[string]string{"x": "o perm 6 map[0:o:1]", "y": "b perm 6 map[0:a:1]; o perm 6 map[0:o:1]"})
	})
	t.Run("a mapping keeps topics with deleteTopicWithBrokerRegistration", func(t *testing.T) {
		f := newFixture(t)
		f.register(reg(0, "a:1", 1, "x", "y"), rules{})
		r := reg(0, "a:1", 2, "y", "z")
		r.body.Topics.MappingInfoMap = map[string]remoting.TopicQueueMappingInfo{"y": {BName: "b", Topic: "y"}}
		f.register(r, rules{replaceTopics: true})
		if got := slices.Collect(slices.Values(f.allTopics())); !slices.Equal(got, []string{"x", "y", "z"}) {
			t.Errorf("topics %v", got)
		}
		if m := f.route("y", rules{}).MappingByBroker; len(m) != 1 || m["b"].Topic != "y" {
			t.Errorf("mapping of y: %v", m)
		}
	})
}

func TestRegisterSingleTopic(t *testing.T) {
	f := newFixture(t)
	if _, err := f.table.register(reg(0, "a:1", 1, "x"), rules{}, t0); !errors.Is(err, errNotRegistered) {
		t.Fatalf("single topic of an unknown broker: %v", err)
	}
	if len(f.brokers)+len(f.clusters)+len(f.live)+len(f.topics) != 0 {
		t.Error("a refused registration left something behind")
	}
	f.register(reg(0, "a:1", 1, "x", "y"), rules{})
	f.register(reg(0, "a:1", 2, "z"), rules{}) // incremental
	f.want(map[string]string{"x": "b perm 6 map[0:a:1]", "y": "b perm 6 map[0:a:1]", "z": "b perm 6 map[0:a:1]"})
	if _, err := f.table.register(reg(1, "a:2", 1, "x"), rules{}, t0); !errors.Is(err, errNotRegistered) {
		t.Errorf("single topic of an unknown id: %v", err)
	}
}

func TestRegisterReplicas(t *testing.T) {
	f := newFixture(t)
	f.register(reg(1, "s:1", 1, "x", "y"), rules{})
	f.want(map[string]string{}) // an old replica brings no topics
	f.register(reg(0, "m:1", 1, "x", "y"), rules{})
	res := f.register(reg(1, "s:1", 1, "x", "y"), rules{})
	if res.haAddr != "ha-m:1" || res.masterAddr != "m:1" {
		t.Errorf("replica's answer: %+v", res)
	}
	f.want(map[string]string{"x": "b perm 6 map[0:m:1 1:s:1]", "y": "b perm 6 map[0:m:1 1:s:1]"})

	// The replica becomes master: its address leaves the old id.
	f.register(reg(0, "s:1", 2, "x", "y"), rules{})
	f.want(map[string]string{"x": "b perm 6 map[0:s:1]", "y": "b perm 6 map[0:s:1]"})
}

func TestRegisterIDTaken(t *testing.T) {
	later := reg(0, "new:1", 1, "x", "y")
	later.body.Topics.DataVersion.StateVersion = 7
	older := reg(0, "old:1", 9, "x:2", "y")
	older.body.Topics.DataVersion.StateVersion = 6

	f := newFixture(t)
	f.register(later, rules{})
	if res := f.register(older, rules{}); !res.ignored {
		t.Errorf("older state taken: %+v", res)
	}
	f.want(map[string]string{"x": "b perm 6 map[0:new:1]", "y": "b perm 6 map[0:new:1]"})
	if _, known := f.dataVersion("c", "old:1"); known {
		t.Error("the ignored address counts as alive")
	}

	f = newFixture(t)
	f.register(older, rules{})
	f.register(later, rules{})
	f.want(map[string]string{"x": "b perm 6 map[0:new:1]", "y": "b perm 6 map[0:new:1]"})
}

func TestActingMaster(t *testing.T) {
	acting := func(r registration) registration {
		r.actingMaster = remoting.Some(true)
		return r
	}
	f := newFixture(t)
	f.register(acting(reg(0, "m:1", 1, "x", "y")), rules{})
	f.register(acting(reg(1, "s:1", 1, "x", "y")), rules{})
	f.register(acting(reg(2, "s:2", 1, "x", "y")), rules{})
	f.depart([]departure{{replica{"c", "m:1"}, "b", 0}}, rules{})
	f.want(map[string]string{"x": "b perm 4 map[1:s:1 2:s:2]", "y": "b perm 4 map[1:s:1 2:s:2]"})

	shown := f.route("x", rules{supportActingMaster: true}).BrokerDatas[0].BrokerAddrs
	if d := cmp.Diff(map[int64]string{0: "s:1", 2: "s:2"}, shown); d != "" {
		t.Errorf("acting master (-want +got):\n%s", d)
	}
	// The smallest id brings topics, read-only.
	f.register(acting(reg(1, "s:1", 2, "x", "y", "z")), rules{})
	if got := f.state()["z"]; got != "b perm 4 map[1:s:1 2:s:2]" {
		t.Errorf("topic of the acting master: %s", got)
	}
	// The master comes back and writes again.
	f.register(acting(reg(0, "m:1", 3, "x", "y", "z")), rules{})
	if got := f.state()["x"]; got != "b perm 6 map[0:m:1 1:s:1 2:s:2]" {
		t.Errorf("after the master's return: %s", got)
	}
	shown = f.route("x", rules{supportActingMaster: true}).BrokerDatas[0].BrokerAddrs
	if shown[0] != "m:1" {
		t.Errorf("master not shown: %v", shown)
	}
}

func TestActingMasterNotShownFor(t *testing.T) {
	f := newFixture(t)
	r := reg(1, "s:1", 1, memberTopicPrefix+"b", "x")
	r.actingMaster = remoting.Some(true)
	f.register(r, rules{})
	if got := f.route(memberTopicPrefix+"b", rules{supportActingMaster: true}).BrokerDatas[0].BrokerAddrs; got[1] != "s:1" {
		t.Errorf("member topic shows %v", got)
	}
	f.changeWritePerm("b", true)
	if got := f.route("x", rules{supportActingMaster: true}).BrokerDatas[0].BrokerAddrs; got[1] != "s:1" {
		t.Errorf("a writable topic shows %v", got)
	}
}

func TestExpiry(t *testing.T) {
	f := newFixture(t)
	short := reg(1, "s:1", 1, "x", "y")
	short.timeout, short.conn = 10*time.Second, 2
	f.register(reg(0, "m:1", 1, "x", "y"), rules{})
	f.register(short, rules{})

	for _, step := range []struct {
		after time.Duration
		want  []string
	}{
		{10 * time.Second, nil},
		{10*time.Second + time.Millisecond, []string{"s:1"}},
		{120 * time.Second, []string{"s:1"}},
		{120*time.Second + time.Millisecond, []string{"m:1", "s:1"}},
	} {
		ds, _ := f.expired(t0.Add(step.after))
		var got []string
		for _, d := range ds {
			got = append(got, d.addr)
		}
		slices.Sort(got)
		if !slices.Equal(got, step.want) {
			t.Errorf("after %v expired %v, want %v", step.after, got, step.want)
		}
	}
	f.heartbeat("c", "s:1", t0.Add(time.Minute))
	if ds, _ := f.expired(t0.Add(70 * time.Second)); len(ds) != 0 {
		t.Errorf("expired after a heartbeat: %v", ds)
	}
	ds, conns := f.expired(t0.Add(time.Hour))
	slices.Sort(conns)
	if !slices.Equal(conns, []uint64{1, 2}) {
		t.Errorf("connections to close: %v", conns)
	}
	f.depart(ds, rules{})
	if n := len(f.brokers) + len(f.clusters) + len(f.live) + len(f.topics) + len(f.conns); n != 0 {
		t.Errorf("%d entries left after the last replica: %+v", n, f.table)
	}
}

func TestClosedConnection(t *testing.T) {
	f := newFixture(t)
	f.register(reg(0, "m:1", 1, "x", "y"), rules{})
	// The broker reconnects and registers before the old connection is seen to close.
	again := reg(0, "m:1", 1, "x", "y")
	again.conn = 2
	f.register(again, rules{})
	f.depart(f.ofConns([]uint64{1}), rules{})
	f.want(map[string]string{"x": "b perm 6 map[0:m:1]", "y": "b perm 6 map[0:m:1]"})
	f.depart(f.ofConns([]uint64{2}), rules{})
	f.want(map[string]string{})
	if len(f.conns)+len(f.live) != 0 {
		t.Errorf("left: %v %v", f.conns, f.live)
	}
}

func TestDepartBatch(t *testing.T) {
	f := newFixture(t)
	f.register(reg(0, "m:1", 1, "x", "y"), rules{})
	f.register(reg(1, "s:1", 1, "x", "y"), rules{})
	other := reg(0, "o:1", 1, "x", "w")
	other.name = "o"
	f.register(other, rules{})
	f.depart([]departure{{replica{"c", "m:1"}, "b", 0}, {replica{"c", "s:1"}, "b", 1}, {replica{"c", "gone:1"}, "nobody", 0}}, rules{})
	f.want(map[string]string{"x": "o perm 6 map[0:o:1]", "w": "o perm 6 map[0:o:1]"})
	if info := f.clusterInfo(); !slices.Equal(info.ClusterAddrTable["c"], []string{"o"}) || len(info.BrokerAddrTable) != 1 {
		t.Errorf("cluster info: %+v", info)
	}
}

func TestWritePerm(t *testing.T) {
	f := newFixture(t)
	f.register(reg(0, "m:1", 1, "x", "y:7"), rules{})
	if n := f.changeWritePerm("b", false); n != 2 {
		t.Errorf("wiped %d topics", n)
	}
	f.want(map[string]string{"x": "b perm 4 map[0:m:1]", "y": "b perm 5 map[0:m:1]"})
	f.register(reg(0, "m:1", 1, "x", "y:7"), rules{}) // the same version does not restore
	f.want(map[string]string{"x": "b perm 4 map[0:m:1]", "y": "b perm 5 map[0:m:1]"})
	if n := f.changeWritePerm("b", true); n != 2 {
		t.Errorf("gave %d topics", n)
	}
	f.want(map[string]string{"x": "b perm 6 map[0:m:1]", "y": "b perm 7 map[0:m:1]"})
	f.changeWritePerm("b", false)
	f.register(reg(0, "m:1", 2, "x", "y:7"), rules{}) // another one does
	f.want(map[string]string{"x": "b perm 6 map[0:m:1]", "y": "b perm 7 map[0:m:1]"})
	if n := f.changeWritePerm("nobody", false); n != 0 {
		t.Errorf("wiped %d topics of an unknown broker", n)
	}
}

func TestDeleteTopic(t *testing.T) {
	build := func() *fixture {
		f := newFixture(t)
		f.register(reg(0, "m:1", 1, "x", "y"), rules{})
		other := reg(0, "o:1", 1, "x", "y")
		other.name, other.cluster = "o", "d"
		f.register(other, rules{})
		return f
	}
	f := build()
	f.deleteTopic("x", "")
	f.want(map[string]string{"y": "b perm 6 map[0:m:1]; o perm 6 map[0:o:1]"})
	f = build()
	f.deleteTopic("x", "d")
	f.want(map[string]string{"x": "b perm 6 map[0:m:1]", "y": "b perm 6 map[0:m:1]; o perm 6 map[0:o:1]"})
	f = build()
	f.deleteTopic("x", "nowhere")
	f.deleteTopic("nothing", "")
	if f.state()["x"] != "b perm 6 map[0:m:1]; o perm 6 map[0:o:1]" {
		t.Errorf("x: %s", f.state()["x"])
	}
}

func TestRegisterTopicRequest(t *testing.T) {
	f := newFixture(t)
	f.register(reg(0, "m:1", 1, "x", "y"), rules{})
	f.registerTopic("new", []remoting.QueueData{{BrokerName: "b", Perm: 6}, {BrokerName: "nobody", Perm: 6}})
	f.registerTopic("x", []remoting.QueueData{{BrokerName: "b", Perm: 4}})
	f.registerTopic("never", []remoting.QueueData{{BrokerName: "nobody", Perm: 6}})
	f.want(map[string]string{"x": "b perm 4 map[0:m:1]", "y": "b perm 6 map[0:m:1]", "new": "b perm 6 map[0:m:1]"})
}

func TestNotices(t *testing.T) {
	rl := rules{notifyMinID: true}
	f := newFixture(t)
	if res := f.register(reg(1, "s:1", 1, "x", "y"), rl); res.notice != nil {
		t.Errorf("notice for the first replica: %+v", res.notice)
	}
	f.register(reg(2, "s:2", 1, "x", "y"), rl)
	res := f.register(reg(0, "m:1", 1, "x", "y"), rl)
	want := &minIDNotice{targets: []string{"s:1", "s:2"}, header: remoting.NotifyMinBrokerIDChangeHeader{
		MinBrokerID: remoting.Some(int64(0)), MinBrokerAddr: "m:1", HABrokerAddr: "ha-m:1",
	}}
	if d := cmp.Diff(want, res.notice, cmp.AllowUnexported(minIDNotice{})); d != "" {
		t.Errorf("master came (-want +got):\n%s", d)
	}
	if ns := f.depart([]departure{{replica{"c", "s:2"}, "b", 2}}, rl); len(ns) != 0 {
		t.Errorf("notices for a larger id: %v", ns)
	}
	ns := f.depart([]departure{{replica{"c", "m:1"}, "b", 0}}, rl)
	want = &minIDNotice{targets: []string{"s:1"}, header: remoting.NotifyMinBrokerIDChangeHeader{
		MinBrokerID: remoting.Some(int64(1)), MinBrokerAddr: "s:1", OfflineBrokerAddr: "m:1",
	}}
	if d := cmp.Diff([]*minIDNotice{want}, ns, cmp.AllowUnexported(minIDNotice{})); d != "" {
		t.Errorf("master left (-want +got):\n%s", d)
	}
	if ns := f.depart([]departure{{replica{"c", "s:1"}, "b", 1}}, rl); len(ns) != 0 {
		t.Errorf("notices to nobody: %v", ns)
	}
}

func TestLists(t *testing.T) {
	f := newFixture(t)
	if got, addr := f.systemTopics(); len(got) != 0 || got == nil || addr != "" {
		t.Errorf("empty system list: %v %q", got, addr)
	}
	r := reg(0, "m:1", 1, "plain", "unit", "sub", "unitsub")
	for name, flag := range map[string]int32{"unit": 1, "sub": 2, "unitsub": 3} {
		tc := r.body.Topics.TopicConfigTable[name]
		tc.TopicSysFlag = flag
		r.body.Topics.TopicConfigTable[name] = tc
	}
	f.register(r, rules{})
	names, addr := f.systemTopics()
	if !slices.Equal(names, []string{"b", "c"}) || addr != "m:1" {
		t.Errorf("system list: %v %q", names, addr)
	}
	if got := f.clusterTopics("c"); !slices.Equal(got, []string{"plain", "sub", "unit", "unitsub"}) {
		t.Errorf("topics of cluster: %v", got)
	}
	if got := f.clusterTopics("nowhere"); got == nil || len(got) != 0 {
		t.Errorf("topics of an unknown cluster: %v", got)
	}
	if got := f.flaggedTopics(func(fl int32) bool { return fl&flagUnit == 0 && fl&flagUnitSub != 0 }); !slices.Equal(got, []string{"sub"}) {
		t.Errorf("unit sub, not unit: %v", got)
	}
	if g := f.members("c", "b"); g.BrokerAddrs[0] != "m:1" {
		t.Errorf("members: %+v", g)
	}
	if g := f.members("c", "nobody"); g.BrokerAddrs == nil || len(g.BrokerAddrs) != 0 {
		t.Errorf("members of nobody: %+v", g)
	}
}

func TestZone(t *testing.T) {
	f := newFixture(t)
	for _, b := range []struct {
		name, addr, zone string
		id               int64
	}{{"near", "n:1", "Z1", 0}, {"far", "f:1", "z2", 0}, {"masterless", "s:1", "z2", 1}} {
		r := reg(b.id, b.addr, 1, "x", "y")
		r.name, r.zone = b.name, b.zone
		r.actingMaster = remoting.Some(false)
		r.body.FilterServerList = []string{"filter-" + b.name}
		f.register(r, rules{})
	}
	r := f.route("x", rules{})
	if len(r.FilterServerTable) != 3 {
		t.Errorf("filter servers: %v", r.FilterServerTable)
	}
	inZone(r, "z1")
	var names []string
	for _, b := range r.BrokerDatas {
		names = append(names, b.BrokerName)
	}
	if !slices.Equal(names, []string{"masterless", "near"}) || len(r.QueueDatas) != 2 || len(r.FilterServerTable) != 2 {
		t.Errorf("zone z1: %+v", r)
	}
}

func TestChangedReportsEveryRouteChange(t *testing.T) {
	f := newFixture(t)
	steps := []struct {
		what string
		do   func()
		want []string
	}{
		{"first registration", func() { f.register(reg(0, "m:1", 1, "x", "y"), rules{}) }, []string{"x", "y"}},
		{"replica", func() { f.register(reg(1, "s:1", 1, "x", "y"), rules{}) }, []string{"x", "y"}},
		{"other address", func() { f.register(reg(1, "s:2", 1, "x", "y"), rules{}) }, []string{"x", "y"}},
		{"incremental", func() { f.register(reg(0, "m:1", 2, "z"), rules{}) }, []string{"z"}},
		{"zone", func() { r := reg(0, "m:1", 2, "z"); r.zone = "q"; f.register(r, rules{}) }, []string{"x", "y", "z"}},
		{"filter servers", func() {
			r := reg(0, "m:1", 2, "z")
			r.zone, r.body.FilterServerList = "q", []string{"f"}
			f.register(r, rules{})
		}, []string{"x", "y", "z"}},
		{"wipe", func() { f.changeWritePerm("b", false) }, []string{"x", "y", "z"}},
		{"wipe again", func() { f.changeWritePerm("b", false) }, nil},
		{"delete", func() { f.deleteTopic("z", "") }, []string{"z"}},
		{"replica leaves", func() { f.depart([]departure{{replica{"c", "s:2"}, "b", 1}}, rules{}) }, []string{"x", "y"}},
		{"heartbeat", func() { f.heartbeat("c", "m:1", t0) }, nil},
		{"master leaves", func() { f.depart([]departure{{replica{"c", "m:1"}, "b", 0}}, rules{}) }, []string{"x", "y"}},
	}
	for _, s := range steps {
		clear(f.changed)
		s.do()
		var got []string
		for name := range f.changed {
			got = append(got, name)
		}
		slices.Sort(got)
		if !slices.Equal(got, s.want) {
			t.Errorf("%s changed %v, want %v", s.what, got, s.want)
		}
	}
}

func TestRegistrationLimits(t *testing.T) {
	f := newFixture(t)
	long := strings.Repeat("n", maxNameLen+1)
	for what, r := range map[string]registration{
		"broker name":  {cluster: "c", name: long, addr: "a:1", body: &remoting.RegisterBrokerBody{}},
		"no cluster":   {name: "b", addr: "a:1", body: &remoting.RegisterBrokerBody{}},
		"no address":   {cluster: "c", name: "b", body: &remoting.RegisterBrokerBody{}},
		"long topic":   reg(0, "a:1", 1, long, "x"),
		"long address": {cluster: "c", name: "b", addr: strings.Repeat("a", maxAddrLen+1), body: &remoting.RegisterBrokerBody{}},
	} {
		if _, err := f.table.register(r, rules{}, t0); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	for id := range int64(maxReplicas) {
		f.register(reg(id, fmt.Sprintf("a:%d", id), 1, "x", "y"), rules{})
	}
	if _, err := f.table.register(reg(maxReplicas, "z:1", 1, "x", "y"), rules{}, t0); err == nil {
		t.Error("one replica too many accepted")
	}
	if n := len(f.brokers["b"].addrs); n != maxReplicas {
		t.Errorf("%d replicas", n)
	}
}
