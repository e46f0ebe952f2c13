package move

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mqx/remoting"
)

// sealWorld has T with 4 queues on a and b, and nothing on d.
func sealWorld(forwards bool) *Observation {
	cfg := Topic{Read: 4, Write: 4, Perm: 6}
	view := TopicView{Config: cfg, Queues: make([]Range, 4)}
	return &Observation{
		Brokers: map[string]BrokerView{
			"a": {Perm: 6, Forwards: forwards, Topics: map[string]TopicView{"T": view}},
			"b": {Perm: 6, Forwards: forwards, Topics: map[string]TopicView{"T": view}},
			"d": {Perm: 6, Forwards: forwards, Topics: map[string]TopicView{}},
		},
		NameServers: []NameServerView{{Addr: "ns", HandsOutOrder: true, Routes: map[string]Route{"T": {Queues: map[string]Topic{"a": cfg, "b": cfg}}}}},
	}
}

// Where what is sent to a sealed queue goes.
func TestSealForwards(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		ask  Ask
		want string
	}{
		{"to the target", Ask{Kind: Migrate, Targets: []string{"d"}}, "0|d:4"},
		{"shared among targets", Ask{Kind: Migrate, Targets: []string{"d", "b"}}, "0|d:2;b:4"},
		{"one for one", Ask{Kind: Migrate, Targets: []string{"d"}, Ordered: true}, "0|d:4"},
		{"to the brokers that have it", Ask{Kind: Drain}, "0|b:4"},
		{"to those that stay", Ask{Kind: Retire}, "0|b:4"},
		{"to the queues that stay", Ask{Kind: Resize, Queues: 3}, "3|a:3"},
		{"nothing is sealed", Ask{Kind: Resize, Queues: 8}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.ask.ID, tt.ask.Topic, tt.ask.Sources = "p", "T", []string{"a"}
			for _, forwards := range []bool{true, false} {
				st, err := Build(&tt.ask, sealWorld(forwards), time.Unix(1, 0))
				if err != nil {
					t.Fatal(err)
				}
				p := &st.Parts[0]
				want := tt.want
				if !forwards {
					want = ""
				}
				if got := p.Sealed.Attributes[remoting.AttrForward]; got != want || p.Forwards() != (want != "") {
					t.Errorf("forwards %v: %q, not %q", forwards, got, want)
				}
				for _, c := range []*Topic{&p.Was, &p.Grown} {
					if c.Attributes[remoting.AttrForward] != "" {
						t.Errorf("%s before the seal", c)
					}
				}
				_, notes := st.Problems(sealWorld(forwards))
				if told := strings.Contains(strings.Join(notes, " "), "stop its producers"); told != (tt.ask.Ordered && !forwards) {
					t.Errorf("forwards %v: told %v", forwards, notes)
				}
				if tt.ask.Kind == Resize && p.Final.Attributes[remoting.AttrForward] != "" {
					t.Errorf("%s at the end", p.Final)
				}
			}
		})
	}
}

// What a broker hands on unsigned to one that asks for signatures would be refused: the plan says so.
func TestForwardUnsigned(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ forwards, asks, signs, told bool }{
		{true, true, false, true}, {true, true, true, false}, {true, false, false, false}, {false, true, false, false},
	} {
		ob := sealWorld(tt.forwards)
		a, d := ob.Brokers["a"], ob.Brokers["d"]
		a.Signs, d.AsksSignature = tt.signs, tt.asks
		ob.Brokers["a"], ob.Brokers["d"] = a, d
		st, err := Build(&Ask{ID: "p", Kind: Migrate, Topic: "T", Sources: []string{"a"}, Targets: []string{"d"}}, ob, time.Unix(1, 0))
		if err != nil {
			t.Fatal(err)
		}
		_, notes := st.Problems(ob)
		if told := strings.Contains(strings.Join(notes, " "), "innerClientAuthenticationCredentials"); told != tt.told {
			t.Errorf("%+v: told %q", tt, notes)
		}
	}
}

// A broker that was drained once and gets the topic back hands nothing on any more.
func TestUnsealedTarget(t *testing.T) {
	t.Parallel()
	ob := sealWorld(true)
	v := ob.Brokers["b"].Topics["T"]
	v.Config.Perm, v.Config.Attributes = 4, map[string]string{remoting.AttrForward: "0|a:4", "message.type": "NORMAL"}
	ob.Brokers["b"].Topics["T"] = v
	st, err := Build(&Ask{ID: "p", Kind: Migrate, Topic: "T", Sources: []string{"a"}, Targets: []string{"b"}}, ob, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	to := st.Parts[0].Targets[0].To
	if to.Perm != 6 || to.Attributes[remoting.AttrForward] != "" || to.Attributes["message.type"] != "NORMAL" {
		t.Errorf("the target becomes %s with %v", to, to.Attributes)
	}
}

// The ends of sealed queues count when the replicas in sync have the log up to there.
func TestSealWaitsForReplicas(t *testing.T) {
	t.Parallel()
	ob := sealWorld(false)
	st, err := Build(&Ask{ID: "p", Kind: Migrate, Topic: "T", Sources: []string{"a"}, Targets: []string{"d"}, Policy: Policy{RouteInterval: time.Second}}, ob, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	p := &st.Parts[0]
	st.Phase, p.Last = Sealed, make([]int64, 4)
	now := time.Unix(1000, 0)
	p.FlatSince, st.Agreed, st.Since = now.Add(-time.Hour), now.Add(-time.Hour), now.Add(-time.Hour)
	sealed := ob.Brokers["a"].Topics["T"]
	sealed.Config = p.Sealed
	ob.Brokers["a"].Topics["T"] = sealed
	ob.Brokers["d"].Topics["T"] = TopicView{Config: *p.Targets[0].To, Queues: make([]Range, 4)}
	ob.NameServers[0].Routes["T"].Queues["a"] = p.Sealed
	copied := func(end, n int64) Decision {
		a := ob.Brokers["a"]
		a.Replicas, a.InSync, a.LogEnd, a.Copied = 1, 1, end, n
		ob.Brokers["a"] = a
		d := Next(st, ob, now)
		*st = d.Next
		return d
	}
	if d := copied(500, 400); st.Phase != Sealed || !strings.Contains(strings.Join(d.Waiting, " "), "100 bytes more") {
		t.Errorf("%s: %v", st.Phase, d.Waiting)
	}
	if d := copied(900, 450); st.Phase != Sealed || !strings.Contains(strings.Join(d.Waiting, " "), "50 bytes more") {
		t.Errorf("%s: %v", st.Phase, d.Waiting) // the log goes on for other topics
	}
	if d := copied(900, 500); st.Phase != Draining || st.LogEnds != nil {
		t.Errorf("%s: %v", st.Phase, d.Waiting)
	}
}

// A broker that was sealed by an earlier plan hands on to the source of this one: before the topic is removed there it is told
// where the queues are now.
func TestRemoveRedirects(t *testing.T) {
	t.Parallel()
	ob := sealWorld(true)
	st, err := Build(&Ask{ID: "p", Kind: Migrate, Topic: "T", Sources: []string{"a"}, Targets: []string{"d"}, Policy: Policy{RouteInterval: time.Second, Remove: true}}, ob, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	st.Phase, st.Since, st.Parts[0].SealedMax = Settled, now, make([]int64, 4)
	sealed := ob.Brokers["a"].Topics["T"]
	sealed.Config = st.Parts[0].Sealed
	ob.Brokers["a"].Topics["T"] = sealed
	ob.Brokers["d"].Topics["T"] = TopicView{Config: *st.Parts[0].Targets[0].To, Queues: make([]Range, 4)}
	old := Topic{Read: 4, Write: 4, Perm: 4, Attributes: map[string]string{remoting.AttrForward: "0|z:1;a:4", "message.type": "NORMAL"}}
	ob.Others = map[string]map[string]Topic{"T": {"x": old, "y": {Read: 4, Write: 4, Perm: 4, Attributes: map[string]string{remoting.AttrForward: "0|ab:4"}}}}
	d := Next(st, ob, now)
	if len(d.Commands) != 1 || d.Next.Phase != Settled || d.Commands[0].Broker != "x" || !d.Commands[0].Was.Same(&old) ||
		d.Commands[0].To.Attributes[remoting.AttrForward] != "0|z:1;d:4" || d.Commands[0].To.Attributes["message.type"] != "NORMAL" {
		t.Fatalf("%s: %v %v", d.Next.Phase, d.Commands, d.Waiting)
	}
	ob.Others["T"]["x"] = *d.Commands[0].To
	if d := Next(st, ob, now); len(d.Commands) != 1 || d.Commands[0].Kind != DeleteTopic || d.Next.Phase != Removed {
		t.Fatalf("%s: %v %v", d.Next.Phase, d.Commands, d.Waiting)
	}
	many := old
	many.Attributes = map[string]string{remoting.AttrForward: fmt.Sprintf("0|a:1;z:%d", remoting.MaxForwardQueues-3)}
	ob.Others["T"]["x"] = many
	if d := Next(st, ob, now); len(d.Commands) != 0 || d.Next.Phase != Settled || len(d.Waiting) != 1 {
		t.Fatalf("%s: %v %v", d.Next.Phase, d.Commands, d.Waiting)
	}
}
