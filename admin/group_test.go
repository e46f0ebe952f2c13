package admin

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mqx/client"
	"mqx/remoting"
	"mqx/remoting/server"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
	)
}

func newConsumer(t *testing.T, ns, topic, group string) *client.Consumer {
	t.Helper()
	c, err := client.NewConsumer(client.ConsumerConfig{
		Config: client.Config{NameServers: []string{ns}}, Group: group, From: client.FromFirst, Batch: 1,
		Subscriptions: []client.Subscription{{Topic: topic}}, Commit: 10 * time.Millisecond, Rebalance: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// consumeOne lets a group take one message and leave.
func consumeOne(t *testing.T, ns, topic, group string) {
	t.Helper()
	if err := newConsumer(t, ns, topic, group).Run(t.Context(), func(context.Context, []*client.Received) error { return client.ErrStop }); err != nil {
		t.Fatal(err)
	}
}

func TestGroups(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	c := newClient(t, ns)
	create(t, c, Target{Cluster: "c"}, TopicSpec{Name: "T", ReadQueues: 2, WriteQueues: 2})
	send(t, ns, "T", 6, "a")
	consumeOne(t, ns, "T", "offline")

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	taken := make(chan struct{}, 10)
	online := newConsumer(t, ns, "T", "online")
	go func() {
		ended <- online.Run(ctx, func(context.Context, []*client.Received) error { taken <- struct{}{}; return nil })
	}()
	for range 6 {
		<-taken
	}
	groupOf := func(l *GroupList, name string) *Group {
		i := slices.IndexFunc(l.Items, func(g Group) bool { return g.Name == name })
		if i < 0 {
			t.Fatalf("no group %s in %+v", name, l.Items)
		}
		return &l.Items[i]
	}
	list, err := c.ListGroups(t.Context(), ListGroupsOptions{})
	if err != nil || len(list.Errors) > 0 || len(list.Items) != 2 {
		t.Fatalf("%+v %v", list, err)
	}
	if g := groupOf(list, "online"); g.Members != 1 || g.Type != remoting.ConsumePassively || g.Model != remoting.Clustering || g.Builtin || len(g.Brokers) != 1 || !g.Brokers[0].ConsumeEnable || g.Brokers[0].RetryMaxTimes != 16 {
		t.Errorf("online: %+v", g)
	}
	if g := groupOf(list, "offline"); g.Members != 0 || g.Type != "" {
		t.Errorf("offline: %+v", g)
	}
	all, err := c.ListGroups(t.Context(), ListGroupsOptions{Builtin: true, Target: Target{Broker: "a"}})
	if err != nil || !groupOf(all, "TOOLS_CONSUMER").Builtin {
		t.Errorf("built-in: %v", err)
	}

	eventually(t, "commits", func() bool {
		d, err := c.GetGroup(t.Context(), "online")
		if err != nil {
			t.Fatal(err)
		}
		var lag int64
		n := 0
		for _, q := range d.Queues {
			if q.Topic == "T" {
				n++
				lag += q.BrokerOffset - q.ConsumerOffset
			}
		}
		return n == 2 && lag == 0
	})
	d, err := c.GetGroup(t.Context(), "online")
	if err != nil || len(d.Errors) > 0 || len(d.Online) != 1 || d.Online[0].Language != "GO" || d.Online[0].Version != "V5_5_0" || d.Members != 1 {
		t.Errorf("%+v %v", d, err)
	}
	if !slices.Contains(d.Subscriptions, GroupSubscription{Topic: "T", Expression: "*", Type: "TAG"}) {
		t.Errorf("subscriptions: %+v", d.Subscriptions)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	var none *NotFoundError
	if _, err := c.GetGroup(t.Context(), "nobody"); !errors.As(err, &none) || none.Kind != "group" {
		t.Errorf("unknown group: %v", err)
	}
}

func TestGroupErrorsAreNotEmpty(t *testing.T) { // N110
	ns := startNameServer(t)
	c := newClient(t, ns)
	denied := startFake(t, map[int32]func(*server.Request){
		remoting.ReqGetAllSubscriptionGroupConfig: func(r *server.Request) { r.Reply(remoting.RespNoPermission, "denied") },
	})
	register(t, c, ns, "c", "a", denied.addr, 0)
	list, err := c.ListGroups(t.Context(), ListGroupsOptions{})
	if err != nil || len(list.Items) != 0 || len(list.Errors) != 1 || !hasCode(list.Errors[0], remoting.RespNoPermission) {
		t.Errorf("list: %+v %v", list, err)
	}
	d, err := c.GetGroup(t.Context(), "g")
	if err != nil || len(d.Errors) != 1 {
		t.Errorf("get: %+v %v", d, err)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("a client without name servers")
	}
	dead := newClient(t, closedPort(t))
	if _, err := dead.Cluster(t.Context()); err == nil {
		t.Error("a cluster of a dead name server")
	}
}
