package admin

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"mqx/remoting"
)

func applied(t *testing.T, c *Client, p Plan, err error) *Applied {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Missing()) > 0 {
		t.Fatalf("plan: %v", p.Missing())
	}
	a, err := p.Apply(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Errors) > 0 {
		t.Fatalf("apply: %v", a.Errors)
	}
	return a
}

func parts(steps []Step) (out []string) {
	for _, s := range steps {
		out = append(out, s.Action+" "+s.Part+" on "+s.Broker)
	}
	return out
}

// A topic that is spread has its groups and their offsets before anybody sees it; what
// is taken back is gone (N097).
func TestSpread(t *testing.T) {
	ns := startNameServer(t)
	a := startBroker(t, ns, "a")
	b, _ := startJoining(t, joinConfig(t.TempDir(), ns, "b"))
	c := newClient(t, ns)
	ctx := t.Context()
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "ORDERS", ReadQueues: 4, WriteQueues: 2})
	createGroup(t, c, a, "billing", 5)
	offset := &remoting.UpdateConsumerOffsetHeader{ConsumerGroup: "billing", Topic: "ORDERS", QueueID: 0, CommitOffset: 7}
	if _, err := c.ask(ctx, a, remoting.NewRequest(remoting.ReqUpdateConsumerOffset, offset)); err != nil {
		t.Fatal(err)
	}

	p, err := c.PlanSeed(ctx, SeedSpec{Targets: []string{"b"}, Topics: []string{"ORDERS"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"create group billing on b", "create topic ORDERS on b", "create offset of group billing in ORDERS on b"}
	if got := parts(p.Steps()); !slices.Equal(got, want) {
		t.Fatalf("steps %q, want %q", got, want)
	}
	if p.Title() != "spread topic ORDERS to broker b" || p.Object() != "ORDERS" || p.Destroys() {
		t.Errorf("%q of %q", p.Title(), p.Object())
	}
	saved, err := json.Marshal(p.Saved())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Replan(ctx, kindSeed, saved); err != nil || len(again.Steps()) != 3 {
		t.Fatalf("replan: %v %v", again, err)
	}
	done := applied(t, c, p, nil)
	groups, err := c.groupTable(ctx, b)
	if err != nil || groups["billing"].RetryMaxTimes != 5 {
		t.Errorf("groups on b: %v %v", groups["billing"], err)
	}
	tc, err := c.topicConfig(ctx, b, "ORDERS")
	if err != nil || tc.ReadQueueNums != 4 || tc.WriteQueueNums != 2 || tc.Perm != 6 {
		t.Errorf("topic on b: %+v %v", tc, err)
	}
	offsets, err := c.committed(ctx, b, "billing", "ORDERS", 4)
	if err != nil || len(offsets) != 4 || offsets[3] != 0 {
		t.Errorf("offsets on b: %v %v", offsets, err)
	}
	if p, err = c.PlanSeed(ctx, SeedSpec{Targets: []string{"b"}, Topics: []string{"ORDERS"}}); err != nil || !Idle(p) {
		t.Errorf("the same again: %v %v", p.Steps(), err)
	}
	if again, err := c.Replan(ctx, kindSeed, saved); err != nil || !Idle(again) {
		t.Errorf("replan of what is done: %v", err)
	}

	undo, err := json.Marshal(done.Undo)
	if err != nil {
		t.Fatal(err)
	}
	back, err := c.Undo(ctx, kindSeed, "ORDERS", undo)
	if err != nil || len(back) != 1 || !back[0].Destroys() {
		t.Fatalf("undo: %v %v", back, err)
	}
	applied(t, c, back[0], nil)
	if _, err := c.topicConfig(ctx, b, "ORDERS"); !hasCode(err, remoting.RespTopicNotExist) {
		t.Errorf("the topic is still on b: %v", err)
	}
	if _, err := c.topicConfig(ctx, a, "ORDERS"); err != nil {
		t.Errorf("the topic on a: %v", err)
	}
}

// What cannot be is refused by name.
func TestSpreadRefuses(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	startBroker(t, ns, "b")
	c := newClient(t, ns)
	ctx := t.Context()
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "STEPS", ReadQueues: 2, WriteQueues: 2, Order: true})
	var none *NotFoundError
	var remap *RemapError
	for name, tc := range map[string]struct {
		spec SeedSpec
		is   func(error) bool
	}{
		"no target":       {SeedSpec{Topics: []string{"STEPS"}}, func(err error) bool { return err != nil }},
		"unknown target":  {SeedSpec{Targets: []string{"z"}, Topics: []string{"STEPS"}}, func(err error) bool { return errors.As(err, &none) && none.Kind == "broker" }},
		"unknown topic":   {SeedSpec{Targets: []string{"b"}, Topics: []string{"NONE"}}, func(err error) bool { return errors.As(err, &none) && none.Kind == "topic" }},
		"a system topic":  {SeedSpec{Targets: []string{"b"}, Topics: []string{"TBW102"}}, func(err error) bool { return err != nil }},
		"a retry topic":   {SeedSpec{Targets: []string{"b"}, Topics: []string{"%RETRY%g"}}, func(err error) bool { return err != nil && strings.Contains(err.Error(), "retry") }},
		"source is alone": {SeedSpec{Targets: []string{"a"}, Source: "a", Topics: []string{"STEPS"}}, func(err error) bool { return err != nil }},
		"ordered":         {SeedSpec{Targets: []string{"b"}, Topics: []string{"STEPS"}}, func(err error) bool { return errors.As(err, &remap) }},
	} {
		if _, err := c.PlanSeed(ctx, tc.spec); !tc.is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// With leave, the queues of the ordered topic are noted at the name server.
	p, err := c.PlanSeed(ctx, SeedSpec{Targets: []string{"b"}, Topics: []string{"STEPS"}, RemapKeys: true})
	applied(t, c, p, err)
	kv, err := c.ask(ctx, ns, remoting.NewRequest(remoting.ReqGetKVConfig, &remoting.GetKVConfigHeader{Namespace: orderNamespace, Key: "STEPS"}))
	if err != nil || kv.Fields.String("value") != "a:2;b:2" {
		t.Errorf("order: %v %v", kv, err)
	}
}

// A new broker gets all groups and the topics that are chosen. A topic that was cut off
// before it had its permission is finished, with the stale offsets of an earlier life (N098).
func TestSeedBroker(t *testing.T) {
	ns := startNameServer(t)
	a := startBroker(t, ns, "a")
	b := startBroker(t, ns, "b")
	c := newClient(t, ns)
	ctx := t.Context()
	createGroup(t, c, a, "billing", 5)
	createGroup(t, c, a, "idle", 5)
	for _, topic := range []string{"ORDERS", "AUDIT"} {
		create(t, c, Target{Broker: "a"}, TopicSpec{Name: topic, ReadQueues: 1, WriteQueues: 1})
	}
	set := func(addr string, n int64) {
		t.Helper()
		h := &remoting.UpdateConsumerOffsetHeader{ConsumerGroup: "billing", Topic: "ORDERS", CommitOffset: n}
		if _, err := c.ask(ctx, addr, remoting.NewRequest(remoting.ReqUpdateConsumerOffset, h)); err != nil {
			t.Fatal(err)
		}
	}
	set(a, 1)
	// cut short: the topic is there, without any permission, and an old offset.
	hidden := TopicBroker{ReadQueues: 1, WriteQueues: 1}
	if _, err := c.ask(ctx, b, createRequest(nil, &hidden, "ORDERS")); err != nil {
		t.Fatal(err)
	}
	createGroup(t, c, b, "billing", 5)
	set(b, 99)
	p, err := c.PlanSeed(ctx, SeedSpec{Targets: []string{"b"}, Source: "a", Groups: true, Topics: []string{"AUDIT", "ORDERS"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"create group idle on b", "create topic AUDIT on b", "update topic ORDERS on b", "update offset of group billing in ORDERS on b"}
	if got := parts(p.Steps()); !slices.Equal(got, want) {
		t.Fatalf("steps %q, want %q", got, want)
	}
	applied(t, c, p, nil)
	if now, err := c.committed(ctx, b, "billing", "ORDERS", 1); err != nil || now[0] != 0 {
		t.Errorf("offset on b: %v %v", now, err)
	}
	sendTo(t, ns, "ORDERS", "b", 0, 1) // clients find it there
}
