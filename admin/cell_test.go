package admin

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"mqx/remoting"
)

// carry does a plan that must succeed whole.
func carry(t *testing.T, c *Client, p Plan, err error) *Applied {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Missing()) > 0 {
		t.Fatalf("plan %q misses %v", p.Title(), p.Missing())
	}
	done, err := p.Apply(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Errors) > 0 {
		t.Fatalf("plan %q: %v", p.Title(), done.Errors)
	}
	return done
}

// takeBack undoes what a plan has done, by its written form.
func takeBack(t *testing.T, c *Client, p Plan, done *Applied) {
	t.Helper()
	if done.Final != nil {
		t.Fatalf("%q cannot be undone: %v", p.Title(), done.Final)
	}
	text, err := json.Marshal(done.Undo)
	if err != nil {
		t.Fatal(err)
	}
	plans, err := c.Undo(context.Background(), p.Kind(), p.Object(), text)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range plans {
		carry(t, c, u, nil)
	}
	// It is as it was: the undo of the undone is refused.
	if _, err := c.Undo(context.Background(), p.Kind(), p.Object(), text); err == nil {
		plans, _ := c.Undo(context.Background(), p.Kind(), p.Object(), text)
		for _, u := range plans {
			if !Idle(u) {
				t.Errorf("%q can be undone twice", p.Title())
			}
		}
	}
}

// saved is the written form of a plan, as replan takes it.
func saved(t *testing.T, p Plan) []byte {
	t.Helper()
	text, err := json.Marshal(p.Saved())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func actions(p Plan) []string {
	var out []string
	for _, s := range p.Steps() {
		out = append(out, s.Action)
	}
	return out
}

func ptr[T any](v T) *T { return &v }

func TestGroupLife(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	startBroker(t, ns, "b")
	c := newClient(t, ns)
	ctx := context.Background()
	eventually(t, "both brokers", func() bool { all, err := c.Cluster(ctx); return err == nil && len(all) == 2 })

	p, err := c.PlanGroup(ctx, Target{}, GroupSpec{Name: "billing", Retries: ptr(int32(3)), Order: ptr(true), Attributes: map[string]string{"+priority.factor": "7"}})
	done := carry(t, c, p, err)
	if !slices.Equal(actions(p), []string{ActionCreate, ActionCreate}) || len(done.Steps) != 2 {
		t.Fatalf("steps %v", actions(p))
	}
	g, err := c.GetGroup(ctx, "billing")
	if err != nil || len(g.Brokers) != 2 || g.Brokers[0].RetryMaxTimes != 3 || !g.Brokers[1].ConsumeMessageOrderly || g.Brokers[0].ConsumeBroadcastEnable || g.Brokers[0].Attributes["priority.factor"] != "7" {
		t.Fatalf("%+v, %v", g, err)
	}
	// Only what is named changes; what is so already is no step.
	again, err := c.PlanGroup(ctx, Target{}, GroupSpec{Name: "billing", MustExist: true, Retries: ptr(int32(3))})
	if err != nil || !Idle(again) {
		t.Fatalf("%v, %v", again, err)
	}
	change, err := c.PlanGroup(ctx, Target{Broker: "a"}, GroupSpec{Name: "billing", MustExist: true, Consume: ptr(false), Attributes: map[string]string{"-priority.factor": ""}})
	text := saved(t, change)
	changed := carry(t, c, change, err)
	if s := changed.Steps[0].After.(GroupState); s.Consume || !s.Order || s.Retries != 3 || len(s.Attributes) != 0 {
		t.Fatalf("after %+v", s)
	}
	// A saved plan whose change is there already does nothing; one whose ground has moved is refused.
	re, err := c.Replan(ctx, change.Kind(), text)
	if err != nil || !Idle(re) {
		t.Fatalf("%v, %v", re, err)
	}
	p2, err := c.PlanGroup(ctx, Target{Broker: "a"}, GroupSpec{Name: "billing", Retries: ptr(int32(9))})
	carry(t, c, p2, err)
	var moved *ChangedError
	if _, err := c.Replan(ctx, change.Kind(), text); !errors.As(err, &moved) || !strings.Contains(err.Error(), "billing") {
		t.Fatalf("got %v", err)
	}
	undo, _ := json.Marshal(changed.Undo)
	if _, err := c.Undo(ctx, change.Kind(), "billing", undo); !errors.As(err, &moved) {
		t.Fatalf("an undo over somebody else's change: %v", err)
	}

	var none *NotFoundError
	if _, err := c.PlanGroup(ctx, Target{}, GroupSpec{Name: "nosuch", MustExist: true}); !errors.As(err, &none) {
		t.Errorf("got %v", err)
	}
	for _, bad := range []string{"", "a b", "CID_ONSAPI_OWNER"} {
		if _, err := c.PlanGroup(ctx, Target{}, GroupSpec{Name: bad}); err == nil {
			t.Errorf("group %q is taken", bad)
		}
	}
}

func TestGroupUndo(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	c := newClient(t, ns)
	ctx := context.Background()
	p, err := c.PlanGroup(ctx, Target{}, GroupSpec{Name: "g"})
	done := carry(t, c, p, err)
	p2, err := c.PlanGroup(ctx, Target{}, GroupSpec{Name: "g", Retries: ptr(int32(1))})
	done2 := carry(t, c, p2, err)
	takeBack(t, c, p2, done2)
	if g, err := c.GetGroup(ctx, "g"); err != nil || g.Brokers[0].RetryMaxTimes != 16 {
		t.Fatalf("%+v, %v", g, err)
	}
	takeBack(t, c, p, done)
	var none *NotFoundError
	if _, err := c.GetGroup(ctx, "g"); !errors.As(err, &none) {
		t.Fatalf("got %v", err)
	}
}

// A deletion says who is online and what is unread, and takes offsets, retry and dead
// letter topics along.
func TestGroupDeletion(t *testing.T) {
	ns := startNameServer(t)
	addr := startBroker(t, ns, "a")
	c := newClient(t, ns)
	ctx := context.Background()
	create(t, c, Target{}, TopicSpec{Name: "T", ReadQueues: 1, WriteQueues: 1})
	send(t, ns, "T", 3, "a")
	consumeOne(t, ns, "T", "g")
	create(t, c, Target{}, TopicSpec{Name: "%DLQ%g", ReadQueues: 1, WriteQueues: 1})
	send(t, ns, "%DLQ%g", 2, "a")
	p, err := c.PlanDeleteGroup(ctx, Target{}, "g", GroupRemoval{})
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, n := range p.Notes() {
		words = append(words, n.Word+" "+n.Text)
	}
	text := strings.Join(words, "\n")
	for _, want := range []string{"unread 2 messages of topic T in queue 0 of a", "dead 2 messages of its dead letter topic in queue 0 of a"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if !p.Destroys() {
		t.Error("it destroys nothing")
	}
	done := carry(t, c, p, nil)
	if done.Final == nil || done.Undo != nil {
		t.Errorf("it can be undone: %v", done.Undo)
	}
	for _, topic := range []string{"%RETRY%g", "%DLQ%g"} {
		if _, err := c.topicConfig(ctx, addr, topic); !hasCode(err, remoting.RespTopicNotExist) {
			t.Errorf("topic %s: %v", topic, err)
		}
	}
	stats, err := c.consumeStats(ctx, addr, "g", "T")
	if err == nil && len(stats.OffsetTable) > 0 && !allUnread(stats) {
		t.Errorf("the offsets are still there: %+v", stats)
	}
	var none *NotFoundError
	if _, err := c.PlanDeleteGroup(ctx, Target{}, "g", GroupRemoval{}); !errors.As(err, &none) {
		t.Errorf("got %v", err)
	}
}

func allUnread(s *remoting.ConsumeStats) bool {
	for _, o := range s.OffsetTable {
		if o.ConsumerOffset > 0 {
			return false
		}
	}
	return true
}

func TestModeChange(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	c := newClient(t, ns)
	ctx := context.Background()
	create(t, c, Target{}, TopicSpec{Name: "T"})
	p, err := c.PlanMode(ctx, Target{}, "T", "g", ModeState{ModePop, 3})
	done := carry(t, c, p, err)
	if s := done.Steps[0]; s.Action != ActionUpdate || s.Before != (ModeState{Mode: ModePull}) || s.After != (ModeState{ModePop, 3}) {
		t.Fatalf("step %+v", s)
	}
	takeBack(t, c, p, done)
	for _, bad := range []ModeState{{"POLL", 0}, {ModePop, -1}} {
		if _, err := c.PlanMode(ctx, Target{}, "T", "g", bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

// N116, N117: one key is changed, and the answer says when it is in force.
func TestConfigChange(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	c := newClient(t, ns)
	ctx := context.Background()
	p, err := c.PlanConfig(ctx, ConfigPlace{Brokers: &Target{Broker: "a"}}, map[string]string{"fileReservedTime": "24"})
	done := carry(t, c, p, err)
	if s := done.Steps[0]; s.Before.(ConfigValue).Value != "72" || s.After.(ConfigValue).Value != "24" || s.After.(ConfigValue).Active != ActiveNow {
		t.Fatalf("step %+v", s)
	}
	takeBack(t, c, p, done)
	p, err = c.PlanConfig(ctx, ConfigPlace{Brokers: &Target{}}, map[string]string{"sendMessageThreadPoolNums": "7"})
	if done := carry(t, c, p, err); done.Steps[0].After.(ConfigValue).Active != ActiveRestart {
		t.Fatalf("step %+v", done.Steps[0])
	}
	p, err = c.PlanConfig(ctx, ConfigPlace{NameServers: true}, map[string]string{"enableTopicList": "false"})
	done = carry(t, c, p, err)
	if s := done.Steps[0]; s.Broker != "" || s.Before.(ConfigValue).Value != "true" || s.After.(ConfigValue).Active != ActiveNow {
		t.Fatalf("step %+v", s)
	}
	takeBack(t, c, p, done)
	// N115: an unknown key names those that are known.
	p, err = c.PlanConfig(ctx, ConfigPlace{Brokers: &Target{}}, map[string]string{"fileReservedTme": "24"})
	if err != nil || len(p.Missing()) != 1 || !strings.Contains(p.Missing()[0].Error(), "fileReservedTime") {
		t.Fatalf("%v, %v", p, err)
	}
	// What the broker refuses is told with its words.
	p, err = c.PlanConfig(ctx, ConfigPlace{Brokers: &Target{}}, map[string]string{"brokerConfigPath": "/x"})
	if err == nil && len(p.Missing()) == 0 {
		out, err := p.Apply(ctx, c)
		if err != nil || len(out.Errors) != 1 || !strings.Contains(out.Errors[0].Error(), "black list") {
			t.Fatalf("%+v, %v", out, err)
		}
	}
}

func TestUpdateRemark(t *testing.T) {
	for remark, want := range map[string]ConfigValue{
		"active now: a; saved in /x/broker.conf":             {Active: ActiveNow, Saved: "/x/broker.conf"},
		"after restart: a; saved in nowhere, since it is so": {Active: ActiveRestart, Saved: "nowhere, since it is so"},
		"after a restart: a":                                 {Active: ActiveRestart},
		"":                                                   {},
		"something else; that was said":                      {},
	} {
		active, where, _ := readUpdateRemark(remark)
		if active != want.Active || where != want.Saved {
			t.Errorf("%q: %q, %q", remark, active, where)
		}
	}
}

// What Apache's servers read each time, when they start, and partly so: as their source and their behaviour say.
func TestKnownActive(t *testing.T) {
	names := strings.Fields(liveApacheNames)
	for i, name := range names {
		if slices.Index(names, name) != i {
			t.Errorf("%s is there twice", name)
		}
	}
	for key, want := range map[string]string{
		"sendMessageThreadPoolNums": ActiveRestart, "fileReservedTime": ActiveNow, "warmMapedFileEnable": ActiveNow, "someNewKey": "",
		"scanNotActiveBrokerInterval": ActiveRestart, "useTLS": ActiveRestart, "fetchNamesrvAddrByAddressServer": ActiveRestart,
		"listenPort": "", "haListenPort": "", "brokerIP1": "", "brokerName": "", "brokerRole": "", "flushDiskType": "",
	} {
		if got := knownActive(kindBrokerConfig, key); got != want {
			t.Errorf("%s: %q", key, got)
		}
	}
	if got := knownActive(kindNameServerConfig, "listenPort"); got != ActiveRestart {
		t.Errorf("listenPort of a name server: %q", got)
	}
	if w := brokerConfigCells.warn("listenPort", nil, &ConfigValue{Value: "1"}); !strings.Contains(w, "at once") {
		t.Errorf("listenPort: %q", w)
	}
	if w := brokerConfigCells.warn("listenPort", nil, &ConfigValue{Value: "1", Active: ActiveRestart}); w != "" {
		t.Errorf("listenPort where the server says it: %q", w)
	}
}

func TestKV(t *testing.T) {
	ns1, ns2 := startNameServer(t), startNameServer(t)
	c := newClient(t, ns1, ns2)
	ctx := context.Background()
	p, err := c.PlanKV(ctx, "space", "k/1", ptr("v=1"))
	done := carry(t, c, p, err)
	if len(done.Steps) != 2 || done.Steps[0].After != "v=1" {
		t.Fatalf("steps %+v", done.Steps)
	}
	p2, err := c.PlanKV(ctx, "space", "k/1", nil)
	if err != nil || !p2.Destroys() {
		t.Fatalf("%v, %v", p2, err)
	}
	done2 := carry(t, c, p2, nil)
	takeBack(t, c, p2, done2)
	takeBack(t, c, p, done)
	var none *NotFoundError
	if _, err := c.PlanKV(ctx, "space", "k/1", nil); !errors.As(err, &none) {
		t.Errorf("got %v", err)
	}
	for _, bad := range [][2]string{{"", "k"}, {"n", ""}, {"a/b", "k"}} {
		if _, err := c.PlanKV(ctx, bad[0], bad[1], ptr("v")); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
	order, err := c.PlanOrderConf(ctx, "T", ptr("a:4;b:2"))
	carry(t, c, order, err)
	if text, err := c.OrderConf(ctx, "T"); err != nil || text != "a:4;b:2" {
		t.Errorf("%q, %v", text, err)
	}
	for _, bad := range []string{"", "a", "a:", "a:0", "a:4;", ":4", "a:x", "a:99999999999999999999"} {
		if _, err := c.PlanOrderConf(ctx, "T", &bad); err == nil {
			t.Errorf("order configuration %q is taken", bad)
		}
	}
}

func TestWritable(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	c := newClient(t, ns)
	ctx := context.Background()
	p, err := c.PlanWritable(ctx, "a", false)
	done := carry(t, c, p, err)
	if s := done.Steps[0].After.(WritableState); s.Writable || s.Topics == nil || *s.Topics == 0 {
		t.Fatalf("after %+v", s)
	}
	if len(p.Notes()) == 0 {
		t.Error("it is not said that it does not last")
	}
	route, err := c.route(ctx, "a")
	if err != nil || route.QueueDatas[0].Perm&2 != 0 {
		t.Fatalf("%+v, %v", route, err)
	}
	takeBack(t, c, p, done)
	var none *NotFoundError
	if _, err := c.PlanWritable(ctx, "nosuch", false); !errors.As(err, &none) {
		t.Errorf("got %v", err)
	}
}

func TestTopicChange(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	c := newClient(t, ns)
	ctx := context.Background()
	create(t, c, Target{}, TopicSpec{Name: "T", ReadQueues: 2, WriteQueues: 2, Attributes: map[string]string{"+message.type": "NORMAL"}})
	send(t, ns, "T", 2, "a")
	consumeOne(t, ns, "T", "g")
	p, err := c.PlanTopic(ctx, Target{}, "T", TopicChange{Perm: ptr(4)})
	done := carry(t, c, p, err)
	if s := done.Steps[0].After.(TopicState); s.ReadQueues != 2 || s.WriteQueues != 2 || s.Perm != "r" || s.Attributes["message.type"] != "NORMAL" {
		t.Fatalf("after %+v", s)
	}
	takeBack(t, c, p, done)
	p, err = c.PlanTopic(ctx, Target{}, "T", TopicChange{Order: ptr(true)})
	done = carry(t, c, p, err)
	if text, err := c.OrderConf(ctx, "T"); err != nil || text != "a:2" {
		t.Errorf("%q, %v", text, err)
	}
	takeBack(t, c, p, done)
	if text, err := c.OrderConf(ctx, "T"); err == nil {
		t.Errorf("the order configuration is still there: %q", text)
	}
	// N052: fewer queues to read: what is unread there is said.
	p, err = c.PlanTopic(ctx, Target{}, "T", TopicChange{ReadQueues: ptr(1)})
	if err != nil || p.Steps()[0].Warning == "" {
		t.Fatalf("%+v, %v", p, err)
	}
	var none *NotFoundError
	if _, err := c.PlanTopic(ctx, Target{}, "NOSUCH", TopicChange{Perm: ptr(4)}); !errors.As(err, &none) {
		t.Errorf("got %v", err)
	}
	if _, err := c.PlanTopic(ctx, Target{}, "TBW102", TopicChange{Perm: ptr(4)}); err == nil {
		t.Error("a system topic is changed")
	}
}

func TestExportImport(t *testing.T) {
	ns, ns2 := startNameServer(t), startNameServer(t)
	startBroker(t, ns, "a")
	startBroker(t, ns2, "x")
	startBroker(t, ns2, "y")
	from, to := newClient(t, ns), newClient(t, ns2)
	ctx := context.Background()
	eventually(t, "both brokers", func() bool { all, err := to.Cluster(ctx); return err == nil && len(all) == 2 })
	create(t, from, Target{}, TopicSpec{Name: "T", ReadQueues: 3, WriteQueues: 2, Attributes: map[string]string{"+message.type": "FIFO"}})
	create(t, from, Target{}, TopicSpec{Name: "ORD", ReadQueues: 1, WriteQueues: 1, Order: true})
	p, err := from.PlanGroup(ctx, Target{}, GroupSpec{Name: "g", Retries: ptr(int32(5))})
	carry(t, from, p, err)
	m, errs, err := from.ExportMetadata(ctx, Target{}, ExportOptions{Topics: true, Groups: true})
	if err != nil || len(errs) > 0 {
		t.Fatal(err, errs)
	}
	if len(m.TopicConfigTable) != 2 || len(m.SubscriptionGroupTable) != 1 {
		t.Fatalf("exported %+v", m)
	}
	text, err := m.JSON()
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseMetadata(text)
	if err != nil {
		t.Fatal(err)
	}
	plans, err := to.PlanImport(ctx, Target{}, read)
	if err != nil || len(plans) != 2 {
		t.Fatalf("%d plans, %v", len(plans), err)
	}
	var done []*Applied
	for _, p := range plans {
		done = append(done, carry(t, to, p, nil))
	}
	again, err := to.PlanImport(ctx, Target{}, read)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range again {
		if !Idle(p) {
			t.Errorf("a second import would change %+v", p.Steps())
		}
	}
	got, err := to.GetTopic(ctx, "T")
	if err != nil || len(got.Brokers) != 2 || got.Brokers[0].ReadQueues != 3 || got.Brokers[1].Attributes["message.type"] != "FIFO" {
		t.Fatalf("%+v, %v", got, err)
	}
	if text, err := to.OrderConf(ctx, "ORD"); err != nil || text != "x:1;y:1" {
		t.Errorf("order configuration %q, %v", text, err)
	}
	for i, p := range plans {
		takeBack(t, to, p, done[i])
	}
	var none *NotFoundError
	eventually(t, "the topic to go", func() bool { _, err := to.GetTopic(ctx, "T"); return errors.As(err, &none) })
}

func TestParseMetadata(t *testing.T) {
	m, err := ParseMetadata([]byte(`[{"topicName":"T","readQueueNums":4,"attributes":{"+message.type":"FIFO"}},{"groupName":"g","retryMaxTimes":3}]`))
	if err != nil {
		t.Fatal(err)
	}
	if tc := m.TopicConfigTable["T"]; tc.ReadQueueNums != 4 || tc.WriteQueueNums != 16 || tc.Perm != 6 || tc.Attributes["message.type"] != "FIFO" {
		t.Errorf("topic %+v", tc)
	}
	if g := m.SubscriptionGroupTable["g"]; g.RetryMaxTimes != 3 || !g.ConsumeEnable {
		t.Errorf("group %+v", g)
	}
	for _, bad := range []string{"", "{}", "[]", "[{}]", "nonsense", `[{"topicName":"T"},{"topicName":"T"}]`, `{"topicConfigTable":{"A":{"topicName":"B"}}}`, `{"subscriptionGroupTable":{"A":{"groupName":"B"}}}`, `[1]`} {
		if m, err := ParseMetadata([]byte(bad)); err == nil {
			t.Errorf("%q is taken as %+v", bad, m)
		}
	}
}

func TestPurgePlans(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	c := newClient(t, ns)
	ctx := context.Background()
	create(t, c, Target{}, TopicSpec{Name: "T", ReadQueues: 1, WriteQueues: 1})
	send(t, ns, "T", 3, "a")
	consumeOne(t, ns, "T", "g")
	for _, what := range []Purge{PurgeExpired, PurgeQueues, PurgeUnusedTopics} {
		p, err := c.PlanPurge(ctx, Target{Broker: "a"}, what)
		if err != nil || !p.Destroys() {
			t.Fatalf("%v, %v", p, err)
		}
		text := saved(t, p)
		re, err := c.Replan(ctx, p.Kind(), text)
		if err != nil {
			t.Fatal(err)
		}
		if done := carry(t, c, re, nil); done.Final == nil || len(done.Steps) != 1 {
			t.Errorf("%+v", done)
		}
	}
	// With nothing kept, what the group has not read is named.
	p, err := c.PlanConfig(ctx, ConfigPlace{Brokers: &Target{}}, map[string]string{"fileReservedTime": "0"})
	if err == nil && len(p.Missing()) == 0 {
		if out, err := p.Apply(ctx, c); err == nil && len(out.Errors) == 0 {
			purge, err := c.PlanPurge(ctx, Target{Broker: "a"}, PurgeExpired)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, n := range purge.Notes() {
				found = found || n.Word == wordLost && strings.Contains(n.Text, "up to 2 messages of topic T in queue 0 of a not read by group g")
			}
			if !found {
				t.Errorf("notes are %v", purge.Notes())
			}
		}
	}
	for _, refused := range []func() (Plan, error){
		func() (Plan, error) { return c.PlanReadAhead(ctx, Target{Broker: "a"}, "2") },
		func() (Plan, error) { return c.PlanTimerEngine(ctx, Target{Broker: "a"}, "X") },
		func() (Plan, error) { return c.PlanMasterFlushOffset(ctx, "127.0.0.1:1", -1) },
		func() (Plan, error) { return c.PlanCleanBroker(ctx, "127.0.0.1:1", "", "a", "", false) },
		func() (Plan, error) { return c.PlanCleanBroker(ctx, "127.0.0.1:1", "c", "a", "1;x", false) },
		func() (Plan, error) { return c.PlanAddBroker(ctx, "127.0.0.1:1", "") },
		func() (Plan, error) { return c.PlanRemoveBroker(ctx, "127.0.0.1:1", "", "a", 0) },
		func() (Plan, error) { return c.PlanElectMaster(ctx, "nonsense", "c", "a", 1) },
		func() (Plan, error) { return c.PlanPurge(ctx, Target{Broker: "nosuch"}, PurgeExpired) },
	} {
		if p, err := refused(); err == nil {
			t.Errorf("planned: %s", p.Title())
		}
	}
	// What mqx's broker does not serve is refused with its reason.
	plan, err := c.PlanTimerEngine(ctx, Target{Broker: "a"}, TimerRocksDB)
	if err != nil {
		t.Fatal(err)
	}
	done, err := plan.Apply(ctx, c)
	if err != nil || len(done.Errors) != 1 || !strings.Contains(done.Errors[0].Error(), "timer wheel") {
		t.Errorf("%+v, %v", done, err)
	}
}
