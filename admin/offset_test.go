package admin

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mqx/client"
	"mqx/remoting"
	"mqx/remoting/server"
)

func TestAim(t *testing.T) { // N029, N030, N031
	ends := queueFacts{min: 10, max: 20, committed: some(15)}
	found := func(n int64) queueFacts { f := ends; f.found = some(n); return f }
	empty := queueFacts{min: 7, max: 7, committed: none}
	for name, c := range map[string]struct {
		to     OffsetTo
		facts  queueFacts
		target int64
		ok     bool
		warned bool
		why    string
	}{
		"start":                    {OffsetTo{Kind: ToStart}, ends, 10, true, false, ""},
		"end, exactly":             {OffsetTo{Kind: ToEnd}, ends, 20, true, false, ""},
		"end of an empty queue":    {OffsetTo{Kind: ToEnd}, empty, 7, true, false, ""},
		"start of an empty queue":  {OffsetTo{Kind: ToStart}, empty, 7, true, false, ""},
		"offset":                   {OffsetTo{Kind: ToOffset, Offset: 12}, ends, 12, true, false, ""},
		"offset 0":                 {OffsetTo{Kind: ToOffset}, queueFacts{max: 3}, 0, true, false, ""},
		"the end as an offset":     {OffsetTo{Kind: ToOffset, Offset: 20}, ends, 20, true, false, ""},
		"one behind the end":       {OffsetTo{Kind: ToOffset, Offset: 21}, ends, 0, false, false, "outside"},
		"before the start":         {OffsetTo{Kind: ToOffset, Offset: 9}, ends, 0, false, false, "outside"},
		"time":                     {OffsetTo{Kind: ToTime}, found(13), 13, true, false, ""},
		"time before all":          {OffsetTo{Kind: ToTime}, found(0), 10, true, false, ""},
		"time behind all":          {OffsetTo{Kind: ToTime}, found(21), 20, true, false, ""},
		"forward":                  {OffsetTo{Kind: ToShift, Shift: 2}, ends, 17, true, false, ""},
		"back":                     {OffsetTo{Kind: ToShift, Shift: -4}, ends, 11, true, false, ""},
		"too far back":             {OffsetTo{Kind: ToShift, Shift: -40}, ends, 10, true, true, ""},
		"too far":                  {OffsetTo{Kind: ToShift, Shift: 40}, ends, 20, true, true, ""},
		"nothing to shift from":    {OffsetTo{Kind: ToShift, Shift: 1}, queueFacts{min: 10, max: 20}, 0, false, false, "nothing there to shift from"},
		"nothing there to shift":   {OffsetTo{Kind: ToShift, Shift: 1}, empty, 0, false, false, ""},
		"group":                    {OffsetTo{Kind: ToGroup}, found(11), 11, true, false, ""},
		"group without an offset":  {OffsetTo{Kind: ToGroup}, ends, 0, false, false, ""},
		"group beyond the end":     {OffsetTo{Kind: ToGroup}, found(99), 0, false, false, "behind its end"},
		"value that is gone":       {OffsetTo{Kind: ToValues}, found(3), 10, true, true, ""},
		"value of another queue":   {OffsetTo{Kind: ToValues}, ends, 0, false, false, ""},
		"value behind the end":     {OffsetTo{Kind: ToValues}, found(21), 0, false, false, "behind its end"},
		"value that is the offset": {OffsetTo{Kind: ToValues}, found(15), 15, true, false, ""},
	} {
		target, ok, warning, why := c.to.aim(c.facts)
		if target != c.target || ok != c.ok || (warning != "") != c.warned || (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %d %v %q %q", name, target, ok, warning, why)
		}
	}
}

func TestMove(t *testing.T) {
	for _, c := range []struct {
		facts             queueFacts
		target            int64
		skipped, repeated int64
	}{
		{queueFacts{min: 0, max: 20, committed: some(15)}, 20, 5, 0},
		{queueFacts{min: 0, max: 20, committed: some(15)}, 3, 0, 12},
		{queueFacts{min: 0, max: 20, committed: some(15)}, 15, 0, 0},
		{queueFacts{min: 10, max: 20, committed: some(4)}, 12, 2, 0}, // 4 to 9 are gone anyway
		{queueFacts{min: 0, max: 20, committed: some(90)}, 18, 0, 2}, // it had nothing to read
	} {
		if m := c.facts.move(c.target); *m.Skipped != c.skipped || *m.Repeated != c.repeated {
			t.Errorf("%+v: %+v", c.facts, m)
		}
	}
	if m := (queueFacts{max: 9}).move(4); m.Skipped != nil || m.Repeated != nil {
		t.Errorf("without an offset: %+v", m)
	}
}

// offsetCluster is two brokers with different queues, and a group on both.
func offsetCluster(t *testing.T) (c *Client, ns string, addrs map[string]string) {
	t.Helper()
	ns = startNameServer(t)
	addrs = map[string]string{"a": startBroker(t, ns, "a"), "b": startBroker(t, ns, "b")}
	c = newClient(t, ns)
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "T", ReadQueues: 3, WriteQueues: 3})
	create(t, c, Target{Broker: "b"}, TopicSpec{Name: "T", ReadQueues: 1, WriteQueues: 1})
	for _, addr := range addrs {
		makeGroup(t, c, addr, "g")
		makeGroup(t, c, addr, "h")
	}
	sendTo(t, ns, "T", "a", 0, 10)
	sendTo(t, ns, "T", "a", 1, 4)
	sendTo(t, ns, "T", "b", 0, 6)
	return c, ns, addrs
}

func planOffsets(t *testing.T, c *Client, spec OffsetSpec) *OffsetPlan {
	t.Helper()
	p, err := c.PlanOffsets(t.Context(), spec)
	if err != nil || len(p.missing) > 0 {
		t.Fatalf("%+v: %v %v", spec, p, err)
	}
	return p
}

func applyPlan(t *testing.T, c *Client, p Plan) *Applied {
	t.Helper()
	r, err := p.Apply(t.Context(), c)
	if err != nil || len(r.Errors) > 0 {
		t.Fatalf("%+v %v", r, err)
	}
	return r
}

// stands is what the group has committed: by broker and queue, "-" for nothing.
func stands(t *testing.T, c *Client, addrs map[string]string, group string) string {
	t.Helper()
	var out []string
	for _, q := range []QueueID{{"T", "a", 0}, {"T", "a", 1}, {"T", "a", 2}, {"T", "b", 0}} {
		now, err := c.offsetNow(t.Context(), addrs[q.Broker], group, q)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, offsetText(map[bool]*int64{true: &now.Value}[now.OK]))
	}
	return strings.ReplaceAll(strings.Join(out, " "), "none", "-")
}

func TestOffsetsOfAnOfflineGroup(t *testing.T) { // N029, N030, N031
	c, _, addrs := offsetCluster(t)
	zero, one := int32(0), int32(1)
	for _, step := range []struct {
		name string
		spec OffsetSpec
		want string
	}{
		{"start", OffsetSpec{To: OffsetTo{Kind: ToStart}, Topics: []string{"T"}}, "0 0 0 0"},
		{"end, all topics that it has", OffsetSpec{To: OffsetTo{Kind: ToEnd}}, "10 4 0 6"},
		{"one queue of one broker", OffsetSpec{To: OffsetTo{Kind: ToOffset, Offset: 2}, On: Target{Broker: "a"}, Queue: &one}, "10 2 0 6"},
		{"a queue id on both", OffsetSpec{To: OffsetTo{Kind: ToShift, Shift: -3}, Queue: &zero}, "7 2 0 3"},
		{"offset 0", OffsetSpec{To: OffsetTo{Kind: ToOffset}, Topics: []string{"T"}, On: Target{Broker: "b"}}, "7 2 0 0"},
		{"a time ago", OffsetSpec{To: OffsetTo{Kind: ToTime, TimeMs: time.Now().Add(-time.Hour).UnixMilli()}}, "0 0 0 0"},
		{"now", OffsetSpec{To: OffsetTo{Kind: ToTime, TimeMs: time.Now().Add(time.Minute).UnixMilli()}}, "10 4 0 6"},
	} {
		step.spec.Group = "g"
		p := planOffsets(t, c, step.spec)
		r := applyPlan(t, c, p)
		if got := stands(t, c, addrs, "g"); got != step.want {
			t.Fatalf("%s: %s, want %s; %+v", step.name, got, step.want, r)
		}
		if !Idle(planOffsets(t, c, step.spec)) && step.spec.To.Kind != ToShift {
			t.Errorf("%s: not idle when done", step.name)
		}
	}
	// Another group takes them over, on every broker what it has there.
	applyPlan(t, c, planOffsets(t, c, OffsetSpec{Group: "h", To: OffsetTo{Kind: ToGroup, Group: "g"}}))
	if got := stands(t, c, addrs, "h"); got != "10 4 0 6" {
		t.Errorf("copied: %s", got)
	}
	values := OffsetTo{Kind: ToValues, Values: []OffsetValue{{QueueID{"T", "a", 1}, 3}, {QueueID{"T", "b", 0}, 5}}}
	done := applyPlan(t, c, planOffsets(t, c, OffsetSpec{Group: "h", To: values}))
	if got := stands(t, c, addrs, "h"); got != "10 3 0 5" {
		t.Errorf("given: %s", got)
	}
	if m, ok := done.Steps[0].After.(OffsetMove); !ok || *m.Repeated != 1 || *m.Skipped != 0 || done.Steps[0].Before != (OffsetState{4}) {
		t.Errorf("%+v", done.Steps[0])
	}
}

func TestOffsetsUndone(t *testing.T) {
	c, _, addrs := offsetCluster(t)
	commit(t, c, addrs["a"], "g", "T", 0, 8)
	p := planOffsets(t, c, OffsetSpec{Group: "g", To: OffsetTo{Kind: ToStart}, Topics: []string{"T"}})
	saved, err := json.Marshal(p.Saved())
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Replan(t.Context(), kindOffset, saved)
	if err != nil || len(again.Steps()) != 4 {
		t.Fatalf("%+v %v", again, err)
	}
	done := applyPlan(t, c, again)
	undo, err := json.Marshal(done.Undo)
	if err != nil || done.Final != nil {
		t.Fatal(err, done.Final)
	}
	commit(t, c, addrs["a"], "g", "T", 0, 2) // it has gone on
	plans, err := c.Undo(t.Context(), kindOffset, "g", undo)
	if err != nil || len(plans) != 1 {
		t.Fatalf("%+v %v", plans, err)
	}
	applyPlan(t, c, plans[0])
	if got := stands(t, c, addrs, "g"); got != "8 0 0 0" {
		t.Errorf("undone: %s", got)
	}
	// What the plan rests on is another: an offline group was moved meanwhile.
	var changed *ChangedError
	commit(t, c, addrs["a"], "g", "T", 0, 5)
	if _, err := c.Replan(t.Context(), kindOffset, saved); !errors.As(err, &changed) {
		t.Errorf("replanned: %v", err)
	}
	commit(t, c, addrs["a"], "g", "T", 0, 0)
	applyPlan(t, c, planOffsets(t, c, OffsetSpec{Group: "g", To: OffsetTo{Kind: ToEnd}}))
	end, err := json.Marshal([]offsetRecord{{QueueID: QueueID{"T", "a", 0}, Before: new(int64), After: 10}})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, c, addrs["a"], "g", "T", 0, 1)
	if _, err = c.Undo(t.Context(), kindOffset, "g", end); !errors.As(err, &changed) {
		t.Errorf("undone though set since: %v", err)
	}
}

func TestOffsetsForgotten(t *testing.T) {
	c, ns, addrs := offsetCluster(t)
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "U", ReadQueues: 1, WriteQueues: 1})
	sendTo(t, ns, "U", "a", 0, 3)
	commit(t, c, addrs["a"], "g", "U", 0, 2)
	applyPlan(t, c, planOffsets(t, c, OffsetSpec{Group: "g", To: OffsetTo{Kind: ToEnd}, Topics: []string{"T"}}))
	p, err := c.PlanRemoveOffsets(t.Context(), OffsetRemovalSpec{Group: "g", Topics: []string{"T"}})
	if err != nil || len(p.Steps()) != 4 {
		t.Fatalf("%+v %v", p, err)
	}
	saved, err := json.Marshal(p.Saved())
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Replan(t.Context(), kindOffsetRemoval, saved)
	if err != nil {
		t.Fatal(err)
	}
	done := applyPlan(t, c, again)
	if got := stands(t, c, addrs, "g"); got != "- - - -" {
		t.Errorf("forgotten: %s", got)
	}
	if now, err := c.offsetNow(t.Context(), addrs["a"], "g", QueueID{"U", "a", 0}); err != nil || now != some(2) {
		t.Errorf("the other topic: %v %v", now, err)
	}
	undo, err := json.Marshal(done.Undo)
	if err != nil {
		t.Fatal(err)
	}
	plans, err := c.Undo(t.Context(), kindOffsetRemoval, "g", undo)
	if err != nil {
		t.Fatal(err)
	}
	applyPlan(t, c, plans[0])
	if got := stands(t, c, addrs, "g"); got != "10 4 0 6" {
		t.Errorf("put back: %s", got)
	}
}

func TestSkippedAreKept(t *testing.T) {
	c, _, addrs := offsetCluster(t)
	commit(t, c, addrs["a"], "g", "T", 0, 3)
	spec := OffsetSpec{Group: "g", To: OffsetTo{Kind: ToEnd}, KeepSkipped: true, MaxKept: 16}
	var refused *OffsetError
	if _, err := c.PlanOffsets(t.Context(), spec); !errors.As(err, &refused) || !strings.Contains(err.Error(), "17 messages would have to be kept") {
		t.Errorf("too many: %v", err)
	}
	spec.MaxKept = 0
	applyPlan(t, c, planOffsets(t, c, spec))
	dead := map[string]int64{}
	for broker, addr := range addrs {
		n, err := c.countOf(t.Context(), addr, "%DLQ%g")
		if err != nil {
			t.Fatal(err)
		}
		dead[broker] = n
	}
	if dead["a"] != 11 || dead["b"] != 6 {
		t.Errorf("dead letters: %v", dead)
	}
	if got := stands(t, c, addrs, "g"); got != "10 4 0 6" {
		t.Errorf("%s", got)
	}
}

func TestOffsetsRefused(t *testing.T) { // N115
	c, _, addrs := offsetCluster(t)
	var none *NotFoundError
	var refused *OffsetError
	seven := int32(7)
	for name, spec := range map[string]OffsetSpec{
		"a group that is not there": {Group: "nobody", To: OffsetTo{Kind: ToEnd}},
		"a topic that is not there": {Group: "g", Topics: []string{"NOSUCH"}, To: OffsetTo{Kind: ToEnd}},
		"a broker that is not":      {Group: "g", On: Target{Broker: "x"}, To: OffsetTo{Kind: ToEnd}},
		"a queue that is nowhere":   {Group: "g", Topics: []string{"T"}, Queue: &seven, To: OffsetTo{Kind: ToEnd}},
	} {
		if _, err := c.PlanOffsets(t.Context(), spec); !errors.As(err, &none) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, spec := range map[string]OffsetSpec{
		"behind the end of some": {Group: "g", Topics: []string{"T"}, To: OffsetTo{Kind: ToOffset, Offset: 5}},
		"nothing to shift from":  {Group: "g", Topics: []string{"T"}, To: OffsetTo{Kind: ToShift, Shift: 5}},
		"from itself":            {Group: "g", Topics: []string{"T"}, To: OffsetTo{Kind: ToGroup, Group: "g"}},
		"a queue that is not":    {Group: "g", To: OffsetTo{Kind: ToValues, Values: []OffsetValue{{QueueID{"T", "a", 9}, 0}}}},
		"the same by address":    {Group: "g", On: Target{Broker: addrs["a"]}, To: OffsetTo{Kind: ToValues, Values: []OffsetValue{{QueueID{"T", "a", 9}, 0}}}},
		"a message elsewhere":    {Group: "g", On: Target{Broker: "b"}, Topics: []string{"T"}, To: OffsetTo{Kind: ToMessage, Message: "a:1:2"}},
		"of another queue":       {Group: "g", Queue: &seven, Topics: []string{"T"}, To: OffsetTo{Kind: ToMessage, Message: "a:1:2"}},
	} {
		if _, err := c.PlanOffsets(t.Context(), spec); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, spec := range []OffsetSpec{{Group: "a b"}, {Group: "g", Topics: []string{"a b"}}, {Group: "g", Retry: "burn"}, {Group: "g", To: OffsetTo{Kind: ToGroup}}, {Group: "g", To: OffsetTo{Kind: ToMessage, Message: "xyz"}}} {
		if _, err := c.PlanOffsets(t.Context(), spec); err == nil {
			t.Errorf("%+v", spec)
		}
	}
	// What lies on brokers that were not asked for is no part of it.
	elsewhere := OffsetSpec{Group: "g", On: Target{Broker: addrs["b"]}, To: OffsetTo{Kind: ToValues, Values: []OffsetValue{{QueueID{"T", "a", 1}, 1}, {QueueID{"T", "b", 0}, 1}}}}
	if p := planOffsets(t, c, elsewhere); len(p.steps) != 1 || p.steps[0].Broker != "b" {
		t.Errorf("%+v", p.steps)
	}
}

func TestOffsetsOfABroadcast(t *testing.T) { // N039
	ns := startNameServer(t)
	c := newClient(t, ns)
	cfg := remoting.NewSubscriptionGroupConfig("g")
	f := startFake(t, map[int32]func(*server.Request){
		remoting.ReqGetAllConsumerOffset:          replyJSON(t, &remoting.ConsumerOffsets{}),
		remoting.ReqGetAllSubscriptionGroupConfig: replyJSON(t, &remoting.SubscriptionGroupTable{SubscriptionGroupTable: map[string]remoting.SubscriptionGroupConfig{"g": cfg}}),
		remoting.ReqGetConsumerConnectionList: replyJSON(t, &remoting.ConsumerConnection{
			ConsumeType: remoting.ConsumePassively, MessageModel: remoting.Broadcasting, ConnectionSet: []remoting.Connection{{ClientID: "x"}},
		}),
	})
	register(t, c, ns, "c", "a", f.addr, 0, "T")
	var refused *OffsetError
	if _, err := c.PlanOffsets(t.Context(), OffsetSpec{Group: "g", To: OffsetTo{Kind: ToEnd}}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "broadcast") {
		t.Errorf("%v", err)
	}
	if _, err := c.PlanRemoveOffsets(t.Context(), OffsetRemovalSpec{Group: "g"}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "online") {
		t.Errorf("%v", err)
	}
}

// Members take the new offset over: the next message they get is the one that was
// promised, and what they commit afterwards counts from there.
func TestOffsetsOfMembers(t *testing.T) { // N029, N032
	c, ns, addrs := offsetCluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan QueueOffset, 1000)
	ended := make(chan error, 1)
	m := newConsumer(t, ns, "T", "g")
	go func() {
		ended <- m.Run(ctx, func(_ context.Context, ms []*client.Received) error {
			for _, r := range ms {
				got <- QueueOffset{r.Queue.BrokerName, r.QueueID, r.QueueOffset}
			}
			return nil
		})
	}()
	for range 20 {
		<-got
	}
	eventually(t, "all to be committed", func() bool { return stands(t, c, addrs, "g") == "10 4 - 6" || stands(t, c, addrs, "g") == "10 4 0 6" })
	zero := int32(0)
	p := planOffsets(t, c, OffsetSpec{Group: "g", On: Target{Broker: "a"}, Queue: &zero, To: OffsetTo{Kind: ToOffset, Offset: 7}})
	if !p.online || p.steps[0].Via != viaReset {
		t.Errorf("%+v", p)
	}
	applyPlan(t, c, p)
	for want := int64(7); want < 10; want++ {
		if next := <-got; next != (QueueOffset{"a", 0, want}) {
			t.Errorf("got %+v, want offset %d", next, want)
		}
	}
	eventually(t, "the end to be committed again", func() bool { return strings.HasPrefix(stands(t, c, addrs, "g"), "10 4 ") })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// QueueOffset is a place of a message.
type QueueOffset struct {
	Broker string
	Queue  int32
	Offset int64
}

func TestOffsetToMessage(t *testing.T) {
	c, ns, addrs := offsetCluster(t)
	found, err := c.GetMessage(t.Context(), MessageRef{Topic: "T", Broker: "a", Queue: 1, Offset: 2})
	if err != nil || len(found.Messages) != 1 {
		t.Fatalf("%+v %v", found, err)
	}
	_ = ns
	for _, id := range []string{found.Messages[0].OffsetID, "a:1:2"} {
		p := planOffsets(t, c, OffsetSpec{Group: "g", Topics: []string{"T"}, To: OffsetTo{Kind: ToMessage, Message: id}})
		if len(p.steps) != 1 || p.steps[0].QueueID != (QueueID{"T", "a", 1}) || p.steps[0].Move.Offset != 2 || !slices.Equal(p.clusters, []string{"c"}) {
			t.Errorf("%s: %+v", id, p.steps)
		}
	}
	applyPlan(t, c, planOffsets(t, c, OffsetSpec{Group: "g", To: OffsetTo{Kind: ToMessage, Message: found.Messages[0].OffsetID}}))
	if got := stands(t, c, addrs, "g"); got != "- 2 - -" {
		t.Errorf("%s", got)
	}
}

func TestRetryTopicOfAReset(t *testing.T) { // N031
	c, ns, addrs := offsetCluster(t)
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "%RETRY%g", ReadQueues: 1, WriteQueues: 1})
	sendTo(t, ns, "%RETRY%g", "a", 0, 3)
	commit(t, c, addrs["a"], "g", "%RETRY%g", 0, 1)
	p := planOffsets(t, c, OffsetSpec{Group: "g", Topics: []string{"T"}, To: OffsetTo{Kind: ToEnd}})
	if len(p.steps) != 4 || p.waiting["%RETRY%g"] != 2 || !slices.ContainsFunc(p.Notes(), func(n Note) bool { return n.Word == "retry" && strings.Contains(n.Text, "are kept") }) {
		t.Errorf("%+v %+v", p, p.Notes())
	}
	p = planOffsets(t, c, OffsetSpec{Group: "g", Topics: []string{"T"}, To: OffsetTo{Kind: ToEnd}, Retry: RetrySkip})
	applyPlan(t, c, p)
	if now, err := c.offsetNow(t.Context(), addrs["a"], "g", QueueID{"%RETRY%g", "a", 0}); err != nil || now != some(3) {
		t.Errorf("%v %v", now, err)
	}
}

// Who puts lite pull consumers forward is told that they commit over it.
func TestOffsetNotesOfLitePull(t *testing.T) {
	some, none := int64(3), int64(0)
	minds := func(p *OffsetPlan) bool {
		return slices.ContainsFunc(p.Notes(), func(n Note) bool { return n.Word == "mind" })
	}
	for _, tt := range []struct {
		kind    string
		skipped *int64
		want    bool
	}{{remoting.ConsumeActively, &some, true}, {remoting.ConsumeActively, &none, false}, {remoting.ConsumePassively, &some, false}} {
		p := &OffsetPlan{online: true, kind: tt.kind, members: []string{"a"}, steps: []offsetStep{{Move: OffsetMove{Skipped: tt.skipped, Repeated: &none}}}}
		if minds(p) != tt.want {
			t.Errorf("%s, %d skipped: %v", tt.kind, *tt.skipped, p.Notes())
		}
	}
}
