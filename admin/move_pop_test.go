package admin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mqx/admin/move"
	"mqx/client"
	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
)

// What was popped and not acknowledged is in flight from the moment at which it was handed out: its note lies in
// the timer for nearly all of its time, where nobody looked for it, and a topic that is deleted meanwhile takes
// the messages along.
func TestPoppedIsInFlight(t *testing.T) {
	ns := startNameServer(t)
	a := startBroker(t, ns, "a")
	startBroker(t, ns, "d")
	c := patientClient(t, ns)
	ctx := t.Context()
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "T", ReadQueues: 4, WriteQueues: 4})
	for _, name := range []string{"g", "h"} {
		cfg := remoting.NewSubscriptionGroupConfig(name)
		req := remoting.NewRequest(remoting.ReqUpdateAndCreateSubscriptionGroup, nil)
		var err error
		if req.Body, err = fastjson.MarshalStandard(&cfg); err != nil {
			t.Fatal(err)
		}
		if _, err := c.ask(ctx, a, req); err != nil {
			t.Fatal(err)
		}
	}
	var want int64 = 3
	for range want {
		sendOne(t, ns, &message.Message{Topic: "T", Body: []byte("x")}, client.SendOptions{Broker: "a", QueueID: 2, HasQueue: true})
	}
	eventually(t, "the messages to be popped", func() bool {
		resp, err := c.conn.Call(ctx, a, remoting.NewRequest(remoting.ReqPopMessage, &remoting.PopMessageHeader{
			ConsumerGroup: "g", Topic: "T", QueueID: 2, MaxMsgNums: 32, InvisibleTime: time.Minute.Milliseconds(), BornTime: time.Now().UnixMilli(),
		}))
		return err == nil && resp.Code == remoting.RespSuccess
	})
	ask := moveAsk("T", "d")
	plan, err := c.PlanMove(ctx, ask)
	if err != nil {
		t.Fatal(err)
	}
	st := plan.State
	for _, tt := range []struct {
		from int32
		want int64
	}{{0, want}, {2, want}, {3, 0}} {
		st.ID, st.Phase, st.Parts[0].From = plan.State.ID, move.Draining, tt.from
		st.Parts[0].Groups = []string{"g", "h"}
		st.Parts[0].SealedMax = []int64{0, 0, want, 0}
		var g move.GroupView
		eventually(t, "the offset of the group to be committed", func() bool {
			ob, err := c.LookMove(ctx, st)
			if err != nil || len(ob.Failed) > 0 || ob.Brokers["a"].NotesUnread > 0 {
				t.Logf("%v %v", ob, err)
				return false
			}
			g = ob.Groups["T"]["g"]
			if n := ob.Groups["T"]["h"].InFlight["a"]; n != 0 {
				t.Fatalf("%d messages are in flight for a group that popped none", n)
			}
			return len(g.Offsets["a"]) == 4 && g.Offsets["a"][2] == want
		})
		if n := g.InFlight["a"]; n != tt.want {
			t.Errorf("from queue %d on %d messages are in flight, not %d", tt.from, n, tt.want)
		}
	}
}

// What a broker holds back for queues that go is counted: delayed and timer messages, also while the timer has
// not taken them up, and those of other queues are not.
func TestHeldBack(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	startBroker(t, ns, "d")
	c := patientClient(t, ns)
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "T", ReadQueues: 4, WriteQueues: 4})
	for name, value := range map[string]string{message.PropDelay: "9", message.PropTimerDelaySec: "600"} {
		m := &message.Message{Topic: "T", Body: []byte("x")}
		m.SetProperty(name, value)
		sendOne(t, ns, m, client.SendOptions{Broker: "a", QueueID: 2, HasQueue: true})
	}
	plan, err := c.PlanMove(t.Context(), moveAsk("T", "d"))
	if err != nil {
		t.Fatal(err)
	}
	st := plan.State
	st.Phase = move.Draining
	for _, tt := range []struct {
		from int32
		want move.Pending
	}{{0, move.Pending{Delayed: 1, Timer: 1}}, {2, move.Pending{Delayed: 1, Timer: 1}}, {3, move.Pending{}}} {
		st.Parts[0].From = tt.from
		var got move.Pending
		eventually(t, fmt.Sprintf("what is held back from queue %d on: %+v", tt.from, tt.want), func() bool {
			ob, err := c.LookMove(t.Context(), st)
			if err != nil || len(ob.Failed) > 0 {
				t.Fatal(ob, err)
			}
			got = ob.Brokers["a"].Pending["T"]
			return got == tt.want
		})
	}
	if plan, err = c.PlanMove(t.Context(), moveAsk("T", "d")); err != nil || len(plan.Drain) != 2 {
		t.Errorf("the plan tells of %+v, %v", plan.Drain, err)
	}
}

// What the timer has not taken up is counted also when it has been due for long: a timer that stands delivers it when it goes on.
func TestHeldBackByATimerThatStands(t *testing.T) {
	t.Parallel()
	ns := startNameServer(t)
	a := startBroker(t, ns, "a")
	startBroker(t, ns, "d")
	c := patientClient(t, ns)
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "T", ReadQueues: 4, WriteQueues: 4})
	stop := remoting.NewRequest(remoting.ReqUpdateBrokerConfig, nil)
	stop.Body = []byte("timerStopEnqueue=true\n")
	if _, err := c.ask(t.Context(), a, stop); err != nil {
		t.Fatal(err)
	}
	m := &message.Message{Topic: "T", Body: []byte("x")}
	m.SetProperty(message.PropTimerDelaySec, "1")
	sendOne(t, ns, m, client.SendOptions{Broker: "a", QueueID: 2, HasQueue: true})
	plan, err := c.PlanMove(t.Context(), moveAsk("T", "d"))
	if err != nil {
		t.Fatal(err)
	}
	st := plan.State
	st.Phase = move.Draining
	look := func() int64 {
		ob, err := c.LookMove(t.Context(), st)
		if err != nil || len(ob.Failed) > 0 {
			t.Fatal(ob, err)
		}
		return ob.Brokers["a"].Pending["T"].Timer
	}
	eventually(t, "the timer message to be counted", func() bool { return look() == 1 })
	time.Sleep(time.Second + popSlack + 2*time.Second) // it is due, and nothing that is taken up could be that late
	if n := look(); n != 1 {
		t.Errorf("%d timer messages are held back, not 1", n)
	}
}

// A note leaves the timer when its time is over, and not before the timer has taken it up: one that is far behind with its topic
// has notes still to deliver that were due long ago.
func TestNotesLeaveTheTimer(t *testing.T) {
	info := func(late, behind string) map[string]string {
		return map[string]string{"bootTimestamp": "1000000", "runtime": "[ 0 days, 0 hours, 1 minutes, 40 seconds ]", "timerReadBehind": late, "timerOffsetBehind": behind}
	}
	const now = 1_100_000
	log := &noteLog{next: 10, open: []popNote{{offset: 3, due: now - 6_000}, {offset: 4, due: now - 4_000}, {offset: 5, due: now + 9_000}, {offset: 8, due: now - 60_000}}}
	for _, step := range []struct {
		late, behind string
		after        time.Duration
		want         string
	}{
		{"2", "2", 0, "3 4 5 8"}, // the timer is 2 s late, and has not taken up the last two
		{"0", "2", 0, "4 5 8"},
		{"0", "0", 4 * time.Second, "5 8"}, // the last one was just taken up
		{"0", "0", 6 * time.Second, "5"},
		{"0", "0", 13 * time.Second, "5"},
		{"0", "0", 15 * time.Second, ""},
	} {
		at, err := timerState(info(step.late, step.behind))
		if err != nil {
			t.Fatal(err)
		}
		at.now += step.after.Milliseconds()
		at.passed += step.after.Milliseconds()
		log.drop(10, &at)
		var got []string
		for _, n := range log.open {
			got = append(got, fmt.Sprint(n.offset))
		}
		if strings.Join(got, " ") != step.want {
			t.Errorf("%s s late, %s behind, after %s: %q are open, not %q", step.late, step.behind, step.after, got, step.want)
		}
	}
	if _, err := timerState(map[string]string{"bootTimestamp": "1", "runtime": "[ 0 days, 0 hours, 1 minutes, 40 seconds ]", "timerReadBehind": "0"}); err == nil {
		t.Error("a broker that does not tell how far its timer is")
	}
}

func TestNoteOf(t *testing.T) {
	topics := map[string]bool{"T": true}
	for _, tt := range []struct {
		name, tag, body string
		want            popNote
		ok              bool
	}{
		{"a queue", "ck", `{"c":"g","t":"T","q":3,"n":2}`, popNote{topic: "T", group: "g", queue: 3, messages: 2}, true},
		{"retry", "ck", `{"c":"g","t":"%RETRY%g_T","q":0,"n":1}`, popNote{topic: "T", group: "g", queue: -1, messages: 1}, true},
		{"retry v2", "ck", `{"c":"g","t":"%RETRY%g+T","q":0,"n":1}`, popNote{topic: "T", group: "g", queue: -1, messages: 1}, true},
		{"retry of another topic", "ck", `{"c":"g","t":"%RETRY%g_U","q":0,"n":1}`, popNote{}, false},
		{"retry of the group itself", "ck", `{"c":"g","t":"%RETRY%g","q":0,"n":1}`, popNote{}, false},
		{"another topic", "ck", `{"c":"g","t":"U","q":0,"n":1}`, popNote{}, false},
		{"an ack", "ack", `{"c":"g","t":"T","q":0}`, popNote{}, false},
		{"no JSON", "ck", `x`, popNote{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &message.Received{}
			m.Body = []byte(tt.body)
			m.SetProperty(message.PropTags, tt.tag)
			if got, ok := noteOf(m, topics); got != tt.want || ok != tt.ok {
				t.Errorf("%+v %v", got, ok)
			}
		})
	}
}
