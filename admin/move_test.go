package admin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mqx/admin/move"
	"mqx/client"
	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
)

// moveLoad is a producer and a group that work while queues move.
type moveLoad struct {
	t     *testing.T
	topic string
	acked atomic.Int64
	stop  chan struct{}
	sent  sync.WaitGroup
	got   sync.Map // body -> true
	count atomic.Int64
}

const movePoll = 200 * time.Millisecond

// startMoveLoad lets a group begin at the start of every queue that there is, by offsets;
// in a queue without one it would begin at the end.
func startMoveLoad(t *testing.T, ns, topic, group string) *moveLoad {
	t.Helper()
	c := patientClient(t, ns)
	for _, b := range mustBrokers(t, c, topic) {
		cfg := remoting.NewSubscriptionGroupConfig(group)
		req := remoting.NewRequest(remoting.ReqUpdateAndCreateSubscriptionGroup, nil)
		var err error
		if req.Body, err = fastjson.MarshalStandard(&cfg); err != nil {
			t.Fatal(err)
		}
		if _, err := c.ask(t.Context(), b.Addr, req); err != nil {
			t.Fatal(err)
		}
		for q := range int32(4) {
			if err := c.moveOffset(t.Context(), b, &move.Command{Kind: move.SetOffset, Topic: topic, Group: group, Queue: q}); err != nil {
				t.Fatal(err)
			}
		}
	}
	l := &moveLoad{t: t, topic: topic, stop: make(chan struct{})}
	cfg := client.Config{NameServers: []string{ns}, PollRoutes: movePoll, Heartbeat: movePoll}
	consumer, err := client.NewConsumer(client.ConsumerConfig{
		Config: cfg, Group: group, Subscriptions: []client.Subscription{{Topic: topic}}, Rebalance: movePoll, Commit: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- consumer.Run(ctx, func(_ context.Context, ms []*client.Received) error {
			for _, m := range ms {
				if _, again := l.got.LoadOrStore(string(m.Body), true); !again {
					l.count.Add(1)
				}
			}
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	p, err := client.NewProducer(client.ProducerConfig{Config: cfg, Group: "mover"})
	if err != nil {
		t.Fatal(err)
	}
	l.sent.Go(func() {
		defer func() { _ = p.Close() }()
		for n := 0; ; n++ {
			select {
			case <-l.stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			if _, err := p.Send(t.Context(), &message.Message{Topic: topic, Body: fmt.Append(nil, n)}, client.SendOptions{}); err != nil {
				t.Errorf("message %d: %v", n, err)
				return
			}
			l.acked.Add(1)
		}
	})
	return l
}

func mustBrokers(t *testing.T, c *Client, topic string) []Broker {
	t.Helper()
	brokers, err := c.topicBrokers(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return brokers
}

// finish ends the producer and waits for the group to have everything.
func (l *moveLoad) finish() {
	l.t.Helper()
	close(l.stop)
	l.sent.Wait()
	for deadline := time.Now().Add(15 * time.Second); l.count.Load() < l.acked.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			var missing []int64
			for n := range l.acked.Load() {
				if _, ok := l.got.Load(fmt.Sprint(n)); !ok {
					missing = append(missing, n)
				}
			}
			l.t.Fatalf("%d of %d messages are missing: %d to %d", len(missing), l.acked.Load(), missing[0], missing[len(missing)-1])
		}
	}
	l.t.Logf("%d messages", l.acked.Load())
}

func moveAsk(topic string, targets ...string) move.Ask {
	return move.Ask{
		Kind: move.Migrate, Topic: topic, Sources: []string{"a"}, Targets: targets,
		Policy: move.Policy{RouteInterval: movePoll, Remove: true},
	}
}

// runMove takes steps until the plan halts, or until a phase is reached.
func runMove(t *testing.T, r *MoveRun, until move.Phase) move.Phase {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var trace []string
	limit := time.AfterFunc(60*time.Second, cancel)
	defer limit.Stop()
	_, err := r.Run(ctx, func(d *move.Decision) {
		trace = append(trace, fmt.Sprint(r.State().Phase, " ", d.Waiting, " ", d.Note))
		for i := range d.Commands {
			trace = append(trace, "  "+d.Commands[i].String())
		}
		if r.State().Phase == until {
			cancel()
		}
	})
	if err != nil && (!errors.Is(err, context.Canceled) || r.State().Phase != until) {
		t.Fatalf("%v; %s", err, trace)
	}
	if st := r.State(); st.Stopped != "" {
		t.Fatalf("stopped: %s; %s", st.Stopped, trace)
	}
	return r.State().Phase
}

// A topic moves from one broker to another under a producer and a group; the tool is
// killed on the way, and another goes on. A second operator is refused.
func TestMigrate(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	startBroker(t, ns, "d")
	c := patientClient(t, ns)
	ctx := t.Context()
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "T", ReadQueues: 4, WriteQueues: 4})
	load := startMoveLoad(t, ns, "T", "g")
	eventually(t, "the group to read", func() bool { return load.count.Load() > 20 })

	plan, err := c.PlanMove(ctx, moveAsk("T", "d"))
	if err != nil || len(plan.Problems) > 0 {
		t.Fatalf("%v %v", plan, err)
	}
	run, err := c.StartMove(ctx, plan, MoveOptions{Owner: "one"})
	if err != nil {
		t.Fatal(err)
	}
	runMove(t, run, move.Visible)

	// A second operator, on the same plan and with one of his own, is refused.
	second, err := c.OpenMove(ctx, plan.State.ID, MoveOptions{Owner: "two"})
	if err != nil {
		t.Fatal(err)
	}
	var owned *move.OwnedError
	if err := second.Take(ctx); !errors.As(err, &owned) || owned.By != "one" {
		t.Fatalf("the second operator takes the lease: %v", err)
	}
	if _, err := second.Step(ctx); !errors.As(err, &owned) {
		t.Fatalf("the second operator got %v", err)
	}
	if err := second.Close(ctx); err != nil {
		t.Error(err)
	}
	again, err := c.PlanMove(ctx, moveAsk("T", "d"))
	if err != nil {
		t.Fatal(err)
	}
	again.Problems = nil
	var overlap *OverlapError
	if _, err := c.StartMove(ctx, again, MoveOptions{}); !errors.As(err, &overlap) {
		t.Fatalf("a second plan got %v", err)
	}

	// The first is gone; its lease is given back here so that the test need not wait a minute for its end.
	if err := run.Close(ctx); err != nil {
		t.Error(err)
	}
	moves, errs, err := c.Moves(ctx)
	if err != nil || len(errs) > 0 || len(moves) != 1 || moves[0].State.Phase != move.Visible {
		t.Fatalf("plans: %+v %v %v", moves, errs, err)
	}
	run, err = c.OpenMove(ctx, plan.State.ID, MoveOptions{Owner: "three"})
	if err != nil {
		t.Fatal(err)
	}
	if end := runMove(t, run, ""); end != move.Done {
		t.Fatalf("ended at %s", end)
	}
	if err := run.Close(ctx); err != nil {
		t.Error(err)
	}
	load.finish()
	checkOnlyOn(t, c, "T", "d")
}

// A topic that moves twice: the first source keeps what it has and hands on; before the second one loses the topic the first is told
// where the queues are now.
func TestMigrateTwice(t *testing.T) {
	ns := startNameServer(t)
	for _, b := range []string{"a", "b", "c"} {
		startBroker(t, ns, b)
	}
	c := patientClient(t, ns)
	ctx := t.Context()
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "T", ReadQueues: 4, WriteQueues: 4})
	first := moveAsk("T", "b")
	first.Policy.Remove = false
	second := moveAsk("T", "c")
	second.Sources = []string{"b"}
	for _, ask := range []move.Ask{first, second} {
		plan, err := c.PlanMove(ctx, ask)
		if err != nil || len(plan.Problems) > 0 {
			t.Fatalf("%v %v", plan, err)
		}
		run, err := c.StartMove(ctx, plan, MoveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if end := runMove(t, run, ""); end != move.Done && end != move.Settled {
			t.Fatalf("ended at %s", end)
		}
		if err := run.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	masters, err := c.masters(ctx, []string{"a", "b"})
	if err != nil || len(masters) != 2 {
		t.Fatal(masters, err)
	}
	for _, b := range masters {
		now, err := c.topicNow(ctx, b, "T")
		if err != nil || (now == nil) != (b.Name == "b") || now != nil && now.Attributes[remoting.AttrForward] != "0|c:4" {
			t.Errorf("on %s: %v %v", b.Name, now, err)
		}
	}
}

func checkOnlyOn(t *testing.T, c *Client, topic, broker string) {
	t.Helper()
	d, err := c.GetTopic(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Brokers) != 1 || d.Brokers[0].Broker != broker || d.Brokers[0].Perm != 6 {
		t.Fatalf("topic %s is on %+v", topic, d.Brokers)
	}
}

// A move that is rolled back leaves the source as it was, and nothing is lost.
func TestMigrateBack(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	startBroker(t, ns, "d")
	c := patientClient(t, ns)
	ctx := t.Context()
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "T", ReadQueues: 4, WriteQueues: 4})
	load := startMoveLoad(t, ns, "T", "g")
	plan, err := c.PlanMove(ctx, moveAsk("T", "d"))
	if err != nil || len(plan.Problems) > 0 {
		t.Fatalf("%v %v", plan, err)
	}
	run, err := c.StartMove(ctx, plan, MoveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	runMove(t, run, move.Sealed)
	if err := c.AskMove(ctx, plan.State.ID, move.RollBack, ""); err != nil {
		t.Fatal(err)
	}
	if end := runMove(t, run, ""); end != move.RolledBack {
		t.Fatalf("ended at %s", end)
	}
	if err := run.Close(ctx); err != nil {
		t.Error(err)
	}
	load.finish()
	d, err := c.GetTopic(ctx, "T")
	if err != nil || len(d.Brokers) != 2 || d.Brokers[0].Perm != 6 || d.Brokers[1].Perm != 4 {
		t.Fatalf("%+v %v", d, err)
	}
}

// A broker is emptied: what only it has goes to the target, what others have stays with
// them, and it takes no messages any more.
func TestRetire(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	startBroker(t, ns, "d")
	c := patientClient(t, ns)
	ctx := t.Context()
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "T", ReadQueues: 4, WriteQueues: 4})
	create(t, c, Target{}, TopicSpec{Name: "BOTH", ReadQueues: 2, WriteQueues: 2})
	load := startMoveLoad(t, ns, "T", "g")
	ask := moveAsk("", "d")
	ask.Kind = move.Retire
	plan, err := c.PlanMove(ctx, ask)
	if err != nil || len(plan.Problems) > 0 {
		t.Fatalf("%+v %v", plan, err)
	}
	run, err := c.StartMove(ctx, plan, MoveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if at := runMove(t, run, move.Removed); at != move.Removed { // it ends when the broker is stopped
		t.Fatalf("it is at %s", at)
	}
	if err := run.Close(ctx); err != nil {
		t.Error(err)
	}
	load.finish()
	masters, err := c.masters(ctx, []string{"a"})
	if err != nil || len(masters) != 1 {
		t.Fatal(masters, err)
	}
	for _, topic := range []string{"T", "BOTH"} {
		if now, err := c.topicNow(ctx, masters[0], topic); err != nil || now != nil {
			t.Errorf("topic %s on the retired broker: %v %v", topic, now, err)
		}
	}
	props, err := c.brokerProps(ctx, masters[0].Addr)
	if err != nil || props["brokerPermission"] != "4" {
		t.Errorf("brokerPermission is %q, %v", props["brokerPermission"], err)
	}
}
