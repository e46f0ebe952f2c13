package admin

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mqx/client"
	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
)

func apply(t *testing.T, c *Client, p *TopicPlan, err error) *Applied {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Errors) > 0 {
		t.Fatalf("plan: %v", p.Errors)
	}
	r, err := p.Apply(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Errors) > 0 {
		t.Fatalf("apply: %v", r.Errors)
	}
	return r
}

func create(t *testing.T, c *Client, target Target, spec TopicSpec) {
	t.Helper()
	p, err := c.PlanCreateTopic(t.Context(), target, spec)
	apply(t, c, p, err)
}

func names(ts []Topic) (out []string) {
	for _, x := range ts {
		out = append(out, x.Name)
	}
	return out
}

func TestTopicLife(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	startBroker(t, ns, "b")
	c := newClient(t, ns)
	ctx := t.Context()

	brokers, err := c.Cluster(ctx)
	if err != nil || len(brokers) != 2 || brokers[0].Name != "a" || brokers[1].Cluster != "c" {
		t.Fatalf("cluster: %+v %v", brokers, err)
	}

	// Create, planned first.
	p, err := c.PlanCreateTopic(ctx, Target{Cluster: "c"}, TopicSpec{Name: "ORDERS", ReadQueues: 3, WriteQueues: 2})
	if err != nil || Idle(p) || len(p.Changes) != 2 || p.Changes[0].Action != ActionCreate || p.Changes[0].Before != nil || p.Changes[1].After.ReadQueues != 3 ||
		!slices.Equal(p.Cluster, []string{"c"}) {
		t.Fatalf("plan: %+v %v", p, err)
	}
	r := apply(t, c, p, nil)
	if made, ok := r.Steps[0].After.(TopicState); len(r.Steps) != 2 || !ok || made.WriteQueues != 2 || made.PermBits != 6 {
		t.Errorf("done: %+v", r.Steps)
	}
	// The same again changes nothing; other figures are an update, with a warning where
	// queues fall out of reading (N052).
	p, err = c.PlanCreateTopic(ctx, Target{}, TopicSpec{Name: "ORDERS"})
	if err != nil || !Idle(p) || len(p.Changes) != 2 {
		t.Errorf("again: %+v %v", p, err)
	}
	apply(t, c, p, err)
	p, err = c.PlanCreateTopic(ctx, Target{Broker: "b"}, TopicSpec{Name: "ORDERS", ReadQueues: 1, Perm: 4})
	if err != nil || len(p.Changes) != 1 || p.Changes[0].Action != ActionUpdate || !strings.Contains(p.Changes[0].Warning, "queues 1 to 2") || p.Changes[0].After.WriteQueues != 2 {
		t.Errorf("update: %+v %v", p, err)
	}
	apply(t, c, p, err)

	list, err := c.ListTopics(ctx, ListTopicsOptions{})
	if err != nil || len(list.Errors) > 0 || !slices.Equal(names(list.Items), []string{"ORDERS"}) {
		t.Fatalf("list: %+v %v", list, err)
	}
	bs := list.Items[0].Brokers
	if len(bs) != 2 || bs[0].Broker != "a" || bs[0].ReadQueues != 3 || bs[1].ReadQueues != 1 || bs[1].Perm != 4 || list.Items[0].Kind != KindNormal {
		t.Errorf("brokers: %+v", bs)
	}
	all, err := c.ListTopics(ctx, ListTopicsOptions{System: true, Retry: true})
	if err != nil || !slices.Contains(names(all.Items), "TBW102") || !slices.Contains(names(all.Items), "c") || !slices.Contains(names(all.Items), "c_REPLY_TOPIC") {
		t.Errorf("with system topics: %v %v", names(all.Items), err)
	}

	// Messages show up in the queues, unread ones in the plan of the deletion.
	send(t, ns, "ORDERS", 5, "a")
	consumeOne(t, ns, "ORDERS", "billing")
	d, err := c.GetTopic(ctx, "ORDERS")
	if err != nil || len(d.Errors) > 0 || len(d.Brokers) != 2 || len(d.Queues) != 5 { // those that can be read or written
		t.Fatalf("get: %+v %v", d, err)
	}
	var stored int64
	for _, q := range d.Queues {
		stored += q.MaxOffset - q.MinOffset
		if (q.MaxOffset > 0) == q.LastUpdated.IsZero() {
			t.Errorf("queue %+v", q)
		}
	}
	if stored != 5 || !slices.Contains(d.Groups, "billing") {
		t.Errorf("stored %d, groups %v", stored, d.Groups)
	}
	p, err = c.PlanDeleteTopic(ctx, Target{}, "ORDERS")
	if err != nil || len(p.Changes) != 2 || p.Changes[0].Before == nil || p.Changes[0].After != nil || len(p.Errors) > 0 {
		t.Fatalf("deletion: %+v %v", p, err)
	}
	var unread int64
	for _, u := range p.Unread {
		if u.Group == "billing" {
			unread += u.Count
		}
	}
	if unread == 0 || unread > 4 {
		t.Errorf("unread: %+v", p.Unread)
	}
	r = apply(t, c, p, nil)
	if len(r.Steps) != 2 {
		t.Errorf("deleted: %+v", r)
	}
	var none *NotFoundError
	if _, err := c.GetTopic(ctx, "ORDERS"); !errors.As(err, &none) || none.Kind != "topic" {
		t.Errorf("after the deletion: %v", err)
	}
	if _, err := c.PlanDeleteTopic(ctx, Target{}, "ORDERS"); !errors.As(err, &none) {
		t.Errorf("deleted twice: %v", err)
	}
}

func send(t *testing.T, ns, topic string, n int, broker string) {
	t.Helper()
	p, err := client.NewProducer(client.ProducerConfig{Config: client.Config{NameServers: []string{ns}}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range n {
		if _, err := p.Send(t.Context(), &message.Message{Topic: topic, Body: []byte("x")}, client.SendOptions{Broker: broker}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOrderedTopic(t *testing.T) {
	ns, ns2 := startNameServer(t), startNameServer(t)
	startBroker(t, ns+";"+ns2, "a")
	startBroker(t, ns+";"+ns2, "b")
	c := newClient(t, ns, ns2)
	conf := func(addr string) string {
		resp, err := c.ask(t.Context(), addr, remoting.NewRequest(remoting.ReqGetKVConfig, &remoting.GetKVConfigHeader{Namespace: orderNamespace, Key: "T"}))
		if hasCode(err, remoting.RespQueryNotFound) {
			return ""
		}
		if err != nil {
			t.Fatal(err)
		}
		return resp.Fields.String("value")
	}
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "T", ReadQueues: 2, WriteQueues: 2, Order: true})
	create(t, c, Target{Broker: "b"}, TopicSpec{Name: "T", ReadQueues: 3, WriteQueues: 3, Order: true})
	for _, addr := range []string{ns, ns2} {
		if got := conf(addr); got != "a:2;b:3" {
			t.Errorf("order configuration at %s: %q", addr, got)
		}
	}
	p, err := c.PlanDeleteTopic(t.Context(), Target{Cluster: "c"}, "T")
	apply(t, c, p, err)
	for _, addr := range []string{ns, ns2} {
		if got := conf(addr); got != "" {
			t.Errorf("order configuration after the deletion: %q", got)
		}
	}
}

func TestDeleteOnOneBroker(t *testing.T) { // N094
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	startBroker(t, ns, "b")
	c := newClient(t, ns)
	create(t, c, Target{Cluster: "c"}, TopicSpec{Name: "T", ReadQueues: 2, WriteQueues: 2})
	p, err := c.PlanDeleteTopic(t.Context(), Target{Broker: "a"}, "T")
	apply(t, c, p, err)
	eventually(t, "the route of broker a to go", func() bool {
		r, err := c.route(t.Context(), "T")
		return err == nil && len(r.QueueDatas) == 1 && r.QueueDatas[0].BrokerName == "b"
	})
}

func TestTargets(t *testing.T) {
	all := []Broker{
		{"c1", "a", 0, "a:1"}, {"c1", "a", 1, "a:2"}, {"c1", "b", 2, "b:3"}, {"c2", "x", 0, "x:1"},
	}
	addrs := func(bs []Broker) (out []string) {
		for _, b := range bs {
			out = append(out, b.Addr)
		}
		return out
	}
	for _, c := range []struct {
		target Target
		want   []string
	}{
		{Target{}, []string{"a:1", "b:3", "x:1"}},
		{Target{Cluster: "c1"}, []string{"a:1", "b:3"}},
		{Target{Broker: "a"}, []string{"a:1"}},
		{Target{Broker: "b"}, []string{"b:3"}},
		{Target{Broker: "a:2"}, []string{"a:2"}},
		{Target{Broker: "else:9"}, []string{"else:9"}},
		{Target{Cluster: "c2", Broker: "x"}, []string{"x:1"}},
	} {
		got, err := selectPrimaries(all, c.target)
		if err != nil || !slices.Equal(addrs(got), c.want) {
			t.Errorf("%+v: %v %v, want %v", c.target, addrs(got), err, c.want)
		}
	}
	for _, target := range []Target{{Cluster: "zz"}, {Broker: "zz"}, {Cluster: "c2", Broker: "a"}} {
		_, err := selectPrimaries(all, target)
		var none *NotFoundError
		if !errors.As(err, &none) || !strings.Contains(err.Error(), "not found; known: ") { // N115
			t.Errorf("%+v: %v", target, err)
		}
	}
	long := &NotFoundError{Kind: "broker", Name: "x", Known: slices.Repeat([]string{"b"}, 50)}
	if n := strings.Count(long.Error(), "b,"); n != maxKnown {
		t.Errorf("%d names known: %s", n, long)
	}
}

// N113: a topic in two clusters is told of both, in the list and by itself.
func TestTopicOfTwoClusters(t *testing.T) {
	ns := startNameServer(t)
	c := newClient(t, ns)
	register(t, c, ns, "c1", "a", closedPort(t), 0, "T")
	register(t, c, ns, "c2", "x", closedPort(t), 0, "T")
	register(t, c, ns, "c3", "y", closedPort(t), 0)
	if got, err := c.TopicClusters(t.Context(), "T"); err != nil || !slices.Equal(got, []string{"c1", "c2"}) {
		t.Errorf("clusters are %v, %v", got, err)
	}
}

func TestChangeNeedsOneCluster(t *testing.T) {
	ns := startNameServer(t)
	c := newClient(t, ns)
	var none *NotFoundError
	if _, err := c.PlanCreateTopic(t.Context(), Target{}, TopicSpec{Name: "T"}); !errors.As(err, &none) {
		t.Errorf("without a broker: %v", err)
	}
	register(t, c, ns, "c1", "a", closedPort(t), 0)
	register(t, c, ns, "c2", "x", closedPort(t), 0)
	var two *AmbiguousError
	if _, err := c.PlanCreateTopic(t.Context(), Target{}, TopicSpec{Name: "T"}); !errors.As(err, &two) || len(two.Clusters) != 2 {
		t.Errorf("two clusters: %v", err)
	}
	for _, name := range []string{"a.b", "", "TBW102", "rmq_sys_x", "c1", "a", strings.Repeat("n", 128)} { // N106
		if _, err := c.PlanCreateTopic(t.Context(), Target{Cluster: "c1"}, TopicSpec{Name: name}); err == nil {
			t.Errorf("topic %q: planned", name)
		}
		if _, err := c.PlanDeleteTopic(t.Context(), Target{Cluster: "c1"}, name); err == nil {
			t.Errorf("topic %q: deletion planned", name)
		}
	}
}

func TestPartialResults(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "good")
	c := newClient(t, ns)
	hangs := startFake(t, map[int32]func(*server.Request){
		remoting.ReqGetAllTopicConfig: func(r *server.Request) { r.Done() }, remoting.ReqGetTopicConfig: func(r *server.Request) { r.Done() },
	})
	dead := closedPort(t)
	register(t, c, ns, "c", "dead", dead, 0)
	register(t, c, ns, "c", "hangs", hangs.addr, 0)
	register(t, c, ns, "c", "slave", closedPort(t), 1)
	began := time.Now()
	list, err := c.ListTopics(t.Context(), ListTopicsOptions{System: true})
	if err != nil || len(list.Items) == 0 || len(list.Errors) != 3 || list.Errors[0].Broker != "dead" || list.Errors[0].Addr != dead ||
		!strings.Contains(list.Errors[0].Error(), "dead ("+dead+"): cannot connect") || list.Errors[1].Broker != "hangs" {
		t.Errorf("%d items, %v, %v", len(list.Items), list.Errors, err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("one silent broker held everything up for %v", took)
	}
	p, err := c.PlanCreateTopic(t.Context(), Target{Cluster: "c"}, TopicSpec{Name: "T"})
	if err != nil || len(p.Changes) != 1 || p.Changes[0].Broker != "good" || len(p.Errors) != 3 {
		t.Errorf("plan: %+v %v", p, err)
	}
	if r, err := p.Apply(t.Context(), c); err != nil || len(r.Steps) != 1 || len(r.Errors) != 0 {
		t.Errorf("apply: %+v %v", r, err)
	}
	// While brokers are silent the route of a deleted topic stays: they may have it.
	p, err = c.PlanDeleteTopic(t.Context(), Target{Cluster: "c"}, "T")
	if err != nil || len(p.Changes) != 1 || len(p.clusters) != 0 {
		t.Errorf("deletion: %+v %v", p, err)
	}
}

func TestStaleRouteIsDeleted(t *testing.T) { // N094
	ns := startNameServer(t)
	c := newClient(t, ns)
	empty := startFake(t, map[int32]func(*server.Request){
		remoting.ReqGetTopicConfig: func(r *server.Request) { r.Reply(remoting.RespTopicNotExist, "No topic in this broker.") },
	})
	register(t, c, ns, "c", "a", empty.addr, 0, "Ghost")
	p, err := c.PlanDeleteTopic(t.Context(), Target{Cluster: "c"}, "Ghost")
	if err != nil || len(p.Changes) != 1 || !strings.Contains(p.Changes[0].Warning, "only a route is left") || Idle(p) {
		t.Fatalf("%+v %v", p, err)
	}
	if r := apply(t, c, p, nil); len(r.Steps) != 1 {
		t.Errorf("%+v", r)
	}
	var none *NotFoundError
	if _, err := c.route(t.Context(), "Ghost"); !errors.As(err, &none) {
		t.Errorf("the route: %v", err)
	}
}

func TestRequestsAreMqadmins(t *testing.T) {
	ns := startNameServer(t)
	c := newClient(t, ns)
	var mu sync.Mutex
	var seen []map[string]string
	note := func(r *server.Request) {
		m := map[string]string{}
		r.Fields.Each(func(k, v []byte) bool { m[string(k)] = string(v); return true })
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, m)
	}
	var have atomic.Bool
	fake := startFake(t, map[int32]func(*server.Request){
		remoting.ReqGetTopicConfig: func(r *server.Request) {
			if !have.Load() {
				r.Reply(remoting.RespTopicNotExist, "")
				return
			}
			body, _ := fastjson.Marshal(remoting.TopicConfig{TopicName: "T", ReadQueueNums: 3, WriteQueueNums: 3, Perm: 6})
			r.ReplyWith(&remoting.Command{Body: body})
		},
		remoting.ReqUpdateAndCreateTopic: func(r *server.Request) { note(r); have.Store(true); r.Reply(0, "") },
	})
	register(t, c, ns, "c", "a", fake.addr, 0)
	create(t, c, Target{Broker: fake.addr}, TopicSpec{Name: "T", ReadQueues: 3, WriteQueues: 3, Attributes: map[string]string{"+message.type": "FIFO", "-x": ""}})
	want := map[string]string{ // seq 2117 of the recorded mqadmin, with its "-r 3 -w 3 -a +message.type=FIFO"
		"attributes": "+message.type=FIFO,-x", "defaultTopic": "TBW102", "force": "false", "order": "false", "perm": "6", "readQueueNums": "3",
		"topic": "T", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "writeQueueNums": "3",
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 1 || len(seen[0]) != len(want) {
		t.Fatalf("%v", seen)
	}
	for k, v := range want {
		if seen[0][k] != v {
			t.Errorf("%s = %q, want %q", k, seen[0][k], v)
		}
	}
}

func TestPages(t *testing.T) {
	total := remoting.Some(int32(5))
	type answer = func() (map[string]int, remoting.DataVersion, remoting.Opt[int32], error)
	page := func(v int64, keys ...string) answer {
		m := map[string]int{}
		for _, k := range keys {
			m[k] = 1
		}
		return func() (map[string]int, remoting.DataVersion, remoting.Opt[int32], error) {
			return m, remoting.DataVersion{Counter: v}, total, nil
		}
	}
	calls := 0
	got, err := pages(func(seq int32, version string) (map[string]int, remoting.DataVersion, remoting.Opt[int32], error) {
		calls++
		switch {
		case seq == 0 && version != "":
			t.Errorf("first page asked with version %s", version)
		case seq != 0 && !strings.Contains(version, `"counter":`):
			t.Errorf("page at %d asked with version %q", seq, version)
		}
		switch {
		case calls == 1:
			return page(1, "a", "b")()
		case calls == 2: // the table changed meanwhile: from the start again
			return page(2, "c", "d")()
		case seq == 0:
			return page(2, "A", "B")()
		case seq == 2:
			return page(2, "C", "D")()
		}
		return page(2, "E")()
	})
	if err != nil || len(got) != 5 || got["A"] != 1 || got["a"] != 0 || calls != 5 {
		t.Errorf("%v after %d calls, %v", got, calls, err)
	}
	old, err := pages(func(int32, string) (map[string]int, remoting.DataVersion, remoting.Opt[int32], error) {
		return map[string]int{"x": 1}, remoting.DataVersion{}, remoting.Opt[int32]{}, nil
	})
	if err != nil || len(old) != 1 {
		t.Errorf("a broker without pages: %v %v", old, err)
	}
	if _, err := pages(func(int32, string) (map[string]int, remoting.DataVersion, remoting.Opt[int32], error) {
		return nil, remoting.DataVersion{}, remoting.Opt[int32]{}, errors.New("no")
	}); err == nil {
		t.Error("an error became an empty table (N109)")
	}
}

func TestOldBroker(t *testing.T) { // one that does not know 351 and pages
	ns := startNameServer(t)
	c := newClient(t, ns)
	fake := startFake(t, map[int32]func(*server.Request){
		remoting.ReqGetAllTopicConfig: func(r *server.Request) {
			body, _ := fastjson.Marshal(remoting.TopicConfigTable{TopicConfigTable: map[string]remoting.TopicConfig{"T": remoting.NewTopicConfig("T")}})
			r.ReplyWith(&remoting.Command{Body: body})
		},
	})
	register(t, c, ns, "c", "a", fake.addr, 0)
	if tc, err := c.topicConfig(t.Context(), fake.addr, "T"); err != nil || tc.ReadQueueNums != 16 {
		t.Errorf("%+v %v", tc, err)
	}
	if _, err := c.topicConfig(t.Context(), fake.addr, "U"); !hasCode(err, remoting.RespTopicNotExist) {
		t.Errorf("%v", err)
	}
}
