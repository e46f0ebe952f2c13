package admin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"mqx/client"
	"mqx/internal/fastjson"
	"mqx/internal/userfile"
	"mqx/message"
	"mqx/remoting"
)

func TestPickQueue(t *testing.T) {
	q := func(broker string, id int32) remoting.MessageQueue {
		return remoting.MessageQueue{Topic: "T", BrokerName: broker, QueueID: id}
	}
	two := []remoting.MessageQueue{q("a", 0), q("a", 1), q("b", 0), q("b", 1)}
	for _, c := range []struct {
		from remoting.MessageQueue
		to   []remoting.MessageQueue
		want string
	}{
		{q("b", 1), two, "b1"}, {q("a", 0), two, "a0"}, {q("a", 3), two, "a1"}, {q("x", 1), two[:2], "a1"}, {q("x", 5), two[:1], "a0"},
	} {
		got := c.to[pickQueue(c.from, c.to)]
		if text := fmt.Sprintf("%s%d", got.BrokerName, got.QueueID); text != c.want {
			t.Errorf("%v to %v: %s, want %s", c.from, c.to, text, c.want)
		}
	}
}

func TestCopyOf(t *testing.T) {
	m := &client.Received{Received: message.Received{
		Message: message.Message{Topic: "%DLQ%g", Flag: 7, Body: []byte("b"), Properties: map[string]string{
			"KEYS": "k", "TAGS": "t", "UNIQ_KEY": "U", "colour": "red", "REAL_TOPIC": "x", "DELAY": "3", "TRAN_MSG": "true", "CLUSTER": "c", "RETRY_TOPIC": "ORDERS", "ORIGIN_MESSAGE_ID": "O",
		}},
		BornTimestamp: 5, SysFlag: int32(message.CompressionZlib), ReconsumeTimes: 16,
	}, OffsetID: "P"}
	out := copyOf(m, "T", true)
	if got := fmt.Sprint(out.m.Properties); got != "map[KEYS:k TAGS:t UNIQ_KEY:U colour:red]" || out.m.Flag != 7 || out.again.BornTimestamp != 5 || out.again.Compression != message.CompressionZlib {
		t.Errorf("copy: %s %+v", got, out)
	}
	if out := copyOf(m, "T", false); out.m.UniqKey() != "" {
		t.Error("the unique id is kept")
	}
	out, err := retryOf(m, "g", 2)
	if err != nil || out.m.Topic != "%RETRY%g" || out.m.Property("RETRY_TOPIC") != "ORDERS" || out.m.Property("ORIGIN_MESSAGE_ID") != "O" || out.m.UniqKey() != "U" || out.again.ReconsumeTimes != 2 || out.m.Property("DELAY") != "" {
		t.Errorf("retry: %+v %v", out, err)
	}
	m.Topic, m.Properties = "ORDERS", map[string]string{}
	if out, err := retryOf(m, "g", 0); err != nil || out.m.Property("RETRY_TOPIC") != "ORDERS" || out.m.Property("ORIGIN_MESSAGE_ID") != "P" {
		t.Errorf("retry of a message that was never given back: %+v %v", out, err)
	}
	m.Topic = "%DLQ%g"
	if _, err := retryOf(m, "g", 0); err == nil {
		t.Error("nothing says where it came from, and it is replayed")
	}
}

func TestCheckTargetTopic(t *testing.T) {
	own := map[string]bool{"c": true, "a": true}
	for topic, refused := range map[string]bool{
		"ORDERS": false, "%RETRY%g": true, "%DLQ%g": true, "SCHEDULE_TOPIC_XXXX": true, "TBW102": true, "rmq_sys_wheel_timer": true, "c": true, "a": true, "c_REPLY_TOPIC": true,
	} {
		var no *RefusedError
		if err := checkTargetTopic(topic, own); errors.As(err, &no) != refused || err != nil && !refused {
			t.Errorf("%s: %v", topic, err)
		}
	}
	if err := checkTargetTopic("a.b", own); err == nil {
		t.Error("a.b is taken")
	}
}

func applyCopy(t *testing.T, c *Client, spec CopySpec, o CopyOptions) (CopyCounts, *Applied) {
	t.Helper()
	p, err := c.PlanCopy(t.Context(), spec, o)
	if err != nil {
		t.Fatal(err)
	}
	return countedCopy(t.Context(), t, c, p)
}

func countedCopy(ctx context.Context, t *testing.T, c *Client, p *CopyPlan) (sum CopyCounts, a *Applied) {
	t.Helper()
	a, err := p.Apply(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range a.Steps {
		if n, ok := s.After.(CopyCounts); ok {
			sum.Add(n)
		}
	}
	if sum.Read != sum.Sent+sum.Others+sum.Already+sum.Refused+sum.Failed {
		t.Errorf("the counts do not add up: %+v", sum)
	}
	return sum, a
}

func bodies(t *testing.T, ns, topic string) (out []string) {
	t.Helper()
	r, err := client.NewReader(client.ReaderConfig{Config: client.Config{NameServers: []string{ns}}, Topic: topic, Ordered: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if err := r.Read(t.Context(), func(m *client.Received) error { out = append(out, string(m.Body)); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// waitBodies reads a topic until it has so many messages.
func waitBodies(t *testing.T, ns, topic string, n int) (out []string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d messages in %s", n, topic), func() bool { out = bodies(t, ns, topic); return len(out) >= n })
	return out
}

func TestCopyTopic(t *testing.T) {
	ns, other := startNameServer(t), startNameServer(t)
	startBroker(t, ns, "a")
	startBroker(t, ns, "b")
	startBroker(t, other, "far")
	c, far := newClient(t, ns), newClient(t, other)
	create(t, c, Target{}, TopicSpec{Name: "ORDERS", ReadQueues: 2, WriteQueues: 2})
	create(t, c, Target{}, TopicSpec{Name: "COPY", ReadQueues: 2, WriteQueues: 2})
	create(t, far, Target{}, TopicSpec{Name: "COPY", ReadQueues: 1, WriteQueues: 1})
	big := strings.Repeat("large and compressed ", 500)
	for i := range 20 {
		m := &message.Message{Topic: "ORDERS", Body: fmt.Appendf(nil, "m%02d", i), Flag: int32(i)}
		if i == 7 {
			m.Body = []byte(big)
		}
		m.SetKeys("k", fmt.Sprint("k", i))
		m.SetTags([]string{"even", "odd"}[i%2])
		m.SetProperty("n", fmt.Sprint(i))
		sendOne(t, ns, m, client.SendOptions{Broker: []string{"a", "b"}[i%2], HasQueue: true, QueueID: int32(i / 2 % 2)})
	}
	sent := waitBodies(t, ns, "ORDERS", 20)

	// All, in order by queue, with ids and times.
	n, a := applyCopy(t, c, CopySpec{Topic: "ORDERS", To: "COPY"}, CopyOptions{})
	if n.Read != 20 || n.Sent != 20 || len(a.Errors) > 0 || a.Final == nil {
		t.Fatalf("%+v %+v", n, a)
	}
	got := waitBodies(t, ns, "COPY", 20)
	slices.Sort(got)
	if slices.Sort(sent); !slices.Equal(got, sent) {
		t.Errorf("copied %v", got)
	}
	var first, second *Found
	eventually(t, "both to be found", func() bool {
		first, _ = c.FindByKey(t.Context(), KeyQuery{Topic: "ORDERS", Key: "k7"})
		second, _ = c.FindByKey(t.Context(), KeyQuery{Topic: "COPY", Key: "k7"})
		return len(first.Messages) == 1 && len(second.Messages) == 1
	})
	x, y := first.Messages[0], second.Messages[0]
	if x.UniqKey() != y.UniqKey() || x.BornTimestamp != y.BornTimestamp || x.Flag != y.Flag || x.SysFlag != y.SysFlag || y.Queue.BrokerName != x.Queue.BrokerName || y.Queue.QueueID != x.Queue.QueueID || string(y.Body) != big {
		t.Errorf("%+v\n%+v", x, y)
	}

	// To another cluster, with filters and a limit; the counts add up.
	n, a = applyCopy(t, far, CopySpec{Topic: "ORDERS", To: "COPY", Tag: "even", Where: "n >= 4", Servers: []string{ns}}, CopyOptions{Source: c})
	if n.Read != 20 || n.Sent != 8 || n.Others != 12 || len(a.Errors) > 0 {
		t.Errorf("filtered: %+v %+v", n, a.Errors)
	}
	if n, _ := applyCopy(t, far, CopySpec{Topic: "ORDERS", To: "COPY", Limit: 3}, CopyOptions{Source: c}); n.Sent != 3 {
		t.Errorf("limited: %+v", n)
	}
	if n, _ := applyCopy(t, far, CopySpec{Topic: "ORDERS", To: "COPY", IDs: []string{x.MessageID}}, CopyOptions{Source: c}); n.Sent != 1 {
		t.Errorf("by id: %+v", n)
	}
	// Targets that are refused.
	for _, to := range []string{"%RETRY%g", "%DLQ%g", "TBW102"} {
		var no *RefusedError
		if _, err := c.PlanCopy(t.Context(), CopySpec{Topic: "ORDERS", To: to}, CopyOptions{}); !errors.As(err, &no) {
			t.Errorf("%s: %v", to, err)
		}
	}
	var none *NotFoundError
	if _, err := c.PlanCopy(t.Context(), CopySpec{Topic: "ORDERS", To: "NOWHERE"}, CopyOptions{}); !errors.As(err, &none) {
		t.Errorf("a missing topic: %v", err)
	}
	// Who else gets it is in the plan.
	consumeOne(t, ns, "COPY", "billing")
	p, err := c.PlanCopy(t.Context(), CopySpec{Topic: "ORDERS", To: "COPY"}, CopyOptions{})
	if err != nil || !slices.Contains(p.Notes(), Note{"gets it", "group billing"}) || p.Total != 20 {
		t.Errorf("%+v %v", p, err)
	}
}

// A copy that is interrupted ends after what is under way, and goes on without sending anything twice.
func TestCopyResumes(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	c := newClient(t, ns)
	create(t, c, Target{}, TopicSpec{Name: "ORDERS", ReadQueues: 2, WriteQueues: 2})
	create(t, c, Target{}, TopicSpec{Name: "COPY", ReadQueues: 2, WriteQueues: 2})
	const all = 300
	send(t, ns, "ORDERS", all, "a")
	sent := waitBodies(t, ns, "ORDERS", all)
	spec := CopySpec{Topic: "ORDERS", To: "COPY", State: filepath.Join(t.TempDir(), "state"), Rate: 2000}
	ctx, cancel := context.WithCancel(t.Context())
	var told atomic.Int32
	p, err := c.PlanCopy(t.Context(), spec, CopyOptions{Tell: func(CopyCounts) { told.Add(1); cancel() }})
	if err != nil {
		t.Fatal(err)
	}
	n, a := countedCopy(ctx, t, c, p)
	if len(a.Errors) != 1 || !errors.Is(a.Errors[0].Err, context.Canceled) || !strings.Contains(a.Errors[0].Error(), "--state "+spec.State) || n.Sent == 0 || n.Sent == all {
		t.Fatalf("interrupted: %+v %+v", n, a.Errors)
	}
	if got := waitBodies(t, ns, "COPY", int(n.Sent)); int64(len(got)) != n.Sent {
		t.Errorf("%d are there, %d were counted", len(got), n.Sent)
	}
	// The state falls behind, as after a kill: what is there already is found.
	st, err := loadCopyState(spec.State)
	if err != nil {
		t.Fatal(err)
	}
	var back int64
	for _, l := range st.Lanes {
		m := min(l.Next, 3)
		l.Next -= m
		l.Counts.Read, l.Counts.Sent = l.Counts.Read-m, l.Counts.Sent-m
		back += m
	}
	lag := newCopyProgress(spec.State, st, st.Spec)
	lag.mu.Lock()
	lag.save()
	lag.mu.Unlock()
	other := spec
	other.To = "ORDERS"
	var no *RefusedError
	if _, err := c.PlanCopy(t.Context(), other, CopyOptions{}); !errors.As(err, &no) {
		t.Errorf("the state of another copy is taken: %v", err)
	}
	n, a = applyCopy(t, c, spec, CopyOptions{})
	if n.Read != all || n.Already != back || n.Sent != all-back || len(a.Errors) > 0 {
		t.Errorf("resumed: %+v %+v, %d back", n, a.Errors, back)
	}
	got := waitBodies(t, ns, "COPY", all)
	slices.Sort(got)
	if slices.Sort(sent); !slices.Equal(got, sent) {
		t.Errorf("%d copied, %d sent", len(got), len(sent))
	}
	if st, err := loadCopyState(spec.State); st != nil || err != nil {
		t.Errorf("the state stays: %+v %v", st, err)
	}
}

// A saved plan sends each message once, however often it is applied: after a run that was broken off it goes on, when all is sent
// nothing is left, and its limit is that of all runs together.
func TestCopyOfAPlanGoesOn(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	c := newClient(t, ns)
	create(t, c, Target{}, TopicSpec{Name: "ORDERS", ReadQueues: 2, WriteQueues: 2})
	create(t, c, Target{}, TopicSpec{Name: "COPY", ReadQueues: 2, WriteQueues: 2})
	const all, limit = 300, 280
	send(t, ns, "ORDERS", all, "a")
	waitBodies(t, ns, "ORDERS", all)
	planned, err := c.PlanCopy(t.Context(), CopySpec{Topic: "ORDERS", To: "COPY", Rate: 2000, Limit: limit}, CopyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	file := saved(t, planned)
	state := filepath.Join(t.TempDir(), "state")
	again := func() *CopyPlan {
		t.Helper()
		p, err := c.Replan(t.Context(), kindCopy, file)
		if err != nil {
			t.Fatal(err)
		}
		messages := p.(*CopyPlan)
		if err := messages.GoOn(state, "plan apply copy.json"); err != nil {
			t.Fatal(err)
		}
		return messages
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := again()
	first.Tell(func(CopyCounts) { cancel() })
	n, a := countedCopy(ctx, t, c, first)
	if len(a.Errors) != 1 || !strings.Contains(a.Errors[0].Error(), "to go on: plan apply copy.json") || n.Sent == 0 || n.Sent >= limit {
		t.Fatalf("broken off: %+v %+v", n, a.Errors)
	}
	// Two runs do not go on beside each other.
	held, err := userfile.Hold(state)
	if err != nil {
		t.Fatal(err)
	}
	var no *RefusedError
	if _, err := again().Apply(t.Context(), c); !errors.As(err, &no) || !strings.Contains(err.Error(), "another run") {
		t.Errorf("beside another run: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if n, a := countedCopy(t.Context(), t, c, again()); n.Sent != limit || len(a.Errors) > 0 || a.Steps[0].Action != ActionSend {
		t.Errorf("gone on: %+v %+v", n, a.Errors)
	}
	if p := again(); !Idle(p) || !slices.ContainsFunc(p.Notes(), func(n Note) bool { return n.Word == "done" }) {
		t.Errorf("something is left: %+v %+v", p.Steps(), p.Notes())
	}
	if got := waitBodies(t, ns, "COPY", limit); len(got) != limit {
		t.Errorf("%d are there", len(got))
	}
	// The state of one plan is not taken for another.
	planned.Spec.Ranges[0].End--
	file = saved(t, planned)
	p, err := c.Replan(t.Context(), kindCopy, file)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.(*CopyPlan).GoOn(state, ""); !errors.As(err, &no) {
		t.Errorf("the state of another plan is taken: %v", err)
	}
}

// A run that is killed right after its first message has left a state that the next one goes on from.
func TestCopyIsKnownFromTheFirstMessage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	p := newCopyProgress(path, nil, CopySpec{Topic: "ORDERS", To: "COPY"})
	p.began(5)
	if st, err := loadCopyState(path); err != nil || st == nil || st.FirstStored != 5 {
		t.Errorf("%+v %v", st, err)
	}
}

// bury puts messages among the dead letters of a group, as members that give up do.
func bury(t *testing.T, c *Client, group string, ms []*client.Received) {
	t.Helper()
	for _, m := range ms {
		bs, err := c.primaries(t.Context(), Target{Broker: m.Queue.BrokerName})
		if err != nil {
			t.Fatal(err)
		}
		h := &remoting.ConsumerSendMsgBackHeader{Offset: m.PhysicalOffset, Group: group, DelayLevel: -1, OriginMsgID: m.OffsetID, OriginTopic: m.Topic}
		if _, err := c.ask(t.Context(), bs[0].Addr, remoting.NewRequest(remoting.ReqConsumerSendMsgBack, h)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDeadLetters(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	startBroker(t, ns, "b")
	c := newClient(t, ns)
	ctx := t.Context()
	create(t, c, Target{}, TopicSpec{Name: "ORDERS", ReadQueues: 1, WriteQueues: 1})
	var ms []*client.Received
	for i, broker := range []string{"a", "a", "b"} {
		m := &message.Message{Topic: "ORDERS", Body: fmt.Appendf(nil, "poison %d", i)}
		m.SetKeys("p")
		sendOne(t, ns, m, client.SendOptions{Broker: broker})
	}
	for _, group := range []string{"billing", "audit"} {
		consumeOne(t, ns, "ORDERS", group)
	}
	eventually(t, "the messages", func() bool {
		f, err := c.FindByKey(ctx, KeyQuery{Topic: "ORDERS", Key: "p"})
		if err == nil {
			ms = f.Messages
		}
		return len(ms) == 3
	})
	if l, errs, err := c.ListDeadLetters(ctx, Target{}, ""); len(l) > 0 || len(errs) > 0 || err != nil {
		t.Errorf("none yet: %+v %v %v", l, errs, err)
	}
	bury(t, c, "billing", ms)
	var list []DeadLetters
	eventually(t, "the dead letters", func() bool {
		var errs []TargetError
		var err error
		list, errs, err = c.ListDeadLetters(ctx, Target{}, "")
		return err == nil && len(errs) == 0 && len(list) == 2 && list[0].Count == 2 && list[1].Count == 1
	})
	if d := list[0]; d.Group != "billing" || d.Broker.Name != "a" || d.Oldest.IsZero() || d.Newest.Before(d.Oldest) {
		t.Errorf("%+v", d)
	}
	dead := message.DLQTopic("billing")
	for _, id := range ms {
		ts, _, err := c.Track(ctx, id)
		if err != nil || len(ts) != 2 || ts[0].Group != "audit" || ts[1].State != TrackDeadLetter {
			t.Errorf("%+v %v", ts, err)
		}
	}

	// Dead letters are read whatever the permission of their topic is (N053), all that there are (N127).
	for _, perm := range []int{6, 2} {
		create(t, c, Target{}, TopicSpec{Name: dead, ReadQueues: 1, WriteQueues: 1, Perm: perm})
		var got []string
		errs, err := c.ReadDeadLetters(ctx, Target{}, "billing", func(m *client.Received) error { got = append(got, string(m.Body)); return nil })
		if slices.Sort(got); err != nil || len(errs) > 0 || !slices.Equal(got, []string{"poison 0", "poison 1", "poison 2"}) {
			t.Errorf("perm %d: %v %v %v", perm, got, errs, err)
		}
	}

	// A replay goes to the retry topic of the group, each dead letter once however often it is run.
	spec := CopySpec{Topic: dead, Group: "billing", DeadLetters: true}
	p, err := c.PlanCopy(ctx, spec, CopyOptions{})
	if err != nil || !slices.Contains(p.Notes(), Note{"gets it", "only group billing, from its retry topic"}) {
		t.Fatalf("%+v %v", p, err)
	}
	if n, a := countedCopy(ctx, t, c, p); n.Sent != 3 || len(a.Errors) > 0 {
		t.Fatalf("%+v %+v", n, a.Errors)
	}
	replayed := waitBodies(t, ns, message.RetryTopic("billing"), 3)
	if slices.Sort(replayed); !slices.Equal(replayed, []string{"poison 0", "poison 1", "poison 2"}) {
		t.Errorf("replayed %v", replayed)
	}
	eventually(t, "the index to know them", func() bool {
		n, _ := applyCopy(t, c, CopySpec{Topic: dead, Group: "billing", DeadLetters: true, Limit: 0}, CopyOptions{})
		return n.Already == 3 && n.Sent == 0
	})
	if n, _ := applyCopy(t, c, CopySpec{Topic: dead, Group: "billing", DeadLetters: true, Again: true, IDs: []string{ms[0].MessageID}}, CopyOptions{}); n.Sent != 1 {
		t.Errorf("again: %+v", n)
	}
	got := map[string]int{}
	if err := newConsumer(t, ns, "ORDERS", "billing").Run(ctx, func(_ context.Context, ms []*client.Received) error { got[string(ms[0].Body)]++; return client.ErrStop }); err != nil {
		t.Fatal(err)
	}
	var no *RefusedError
	if _, err := c.PlanCopy(ctx, CopySpec{Topic: dead, Group: "billing", DeadLetters: true, To: message.RetryTopic("audit")}, CopyOptions{}); !errors.As(err, &no) {
		t.Errorf("to a retry topic: %v", err)
	}
	var none *NotFoundError
	if _, err := c.PlanCopy(ctx, CopySpec{Topic: "ORDERS", Group: "nosuchgroup"}, CopyOptions{}); !errors.As(err, &none) {
		t.Errorf("to a group that does not exist: %v", err)
	}

	// Purged, they are gone.
	purge, err := c.PlanPurgeDeadLetters(ctx, Target{}, "billing")
	if err != nil || purge.Object() != "billing" || !purge.Destroys() {
		t.Fatalf("%+v %v", purge, err)
	}
	if a, err := purge.Apply(ctx, c); err != nil || len(a.Errors) > 0 {
		t.Errorf("%+v %v", a, err)
	}
	if l, errs, err := c.ListDeadLetters(ctx, Target{}, "billing"); len(l)+len(errs) > 0 || err != nil {
		t.Errorf("after the purge: %+v %v %v", l, errs, err)
	}
}

// While members of a group hold queues, brokers put what is sent to its retry topic among its dead letters: a replay
// stops at the first.
func TestReplayStopsAtDeadLetters(t *testing.T) {
	ns := startNameServer(t)
	addr := startBroker(t, ns, "a")
	c := newClient(t, ns)
	create(t, c, Target{}, TopicSpec{Name: "ORDERS", ReadQueues: 1, WriteQueues: 1})
	for range 3 {
		sendOne(t, ns, &message.Message{Topic: "ORDERS", Body: []byte("x")}, client.SendOptions{})
	}
	consumeOne(t, ns, "ORDERS", "billing")
	lock := remoting.NewRequest(remoting.ReqLockBatchMQ, nil)
	var err error
	if lock.Body, err = fastjson.Marshal(&remoting.LockBatchBody{ConsumerGroup: "billing", ClientID: "c", MQSet: []remoting.MessageQueue{{Topic: "ORDERS", BrokerName: "a"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ask(t.Context(), addr, lock); err != nil {
		t.Fatal(err)
	}
	n, a := applyCopy(t, c, CopySpec{Topic: "ORDERS", Group: "billing"}, CopyOptions{})
	var no *RefusedError
	if n.Sent != 1 || len(a.Errors) != 1 || !errors.As(a.Errors[0].Err, &no) || !strings.Contains(no.What, "%DLQ%billing") {
		t.Errorf("%+v %+v", n, a.Errors)
	}
}
