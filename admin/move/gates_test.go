package move

import (
	"strings"
	"testing"
	"time"
)

// gateWorld is a plan at DRAINING: group g has read two of three messages of T on a.
func gateWorld(policy Policy) (*State, *Observation) {
	st := &State{ID: "p", Phase: Draining, Spec: Spec{Kind: Migrate, Name: "T", Policy: policy}, Parts: []Part{{
		Topic: "T", Source: "a", Was: Topic{Read: 1, Write: 1, Perm: 6}, Sealed: Topic{Read: 1, Write: 1, Perm: 4}, SealedMax: []int64{3}, Groups: []string{"g"},
	}}}
	ob := &Observation{
		Brokers: map[string]BrokerView{"a": {Perm: 6, Topics: map[string]TopicView{"T": {Config: Topic{Read: 1, Write: 1, Perm: 4}, Queues: []Range{{0, 3}}}}}},
		Groups:  map[string]map[string]GroupView{"T": {"g": {Offsets: map[string][]int64{"a": {2}}}}},
	}
	return st, ob
}

func gateText(st *State, ob *Observation, removing bool) string {
	var out []string
	for _, g := range st.Gates(ob, removing) {
		out = append(out, g.String())
	}
	return strings.Join(out, "; ")
}

// Whom a plan waits for, and for what.
func TestGates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		policy   Policy
		change   func(st *State, ob *Observation)
		removing bool
		want     string
	}{
		{"an offline group", Policy{}, nil, false, "group g: 1 unread of topic T on a"},
		{"it may wait", Policy{Offline: OfflineCheckpoint}, nil, false, ""},
		{"not for the removal", Policy{Offline: OfflineCheckpoint}, nil, true, "group g: 1 unread of topic T on a"},
		{"nor where order counts", Policy{Offline: OfflineCheckpoint}, func(st *State, _ *Observation) { st.Parts[0].Ordered = true }, false, "group g: 1 unread of topic T on a"},
		{"it is left out", Policy{Ignore: []string{"g"}}, nil, true, ""},
		{"in flight", Policy{}, func(_ *State, ob *Observation) {
			ob.Groups["T"]["g"] = GroupView{Offsets: map[string][]int64{"a": {3}}, InFlight: map[string]int64{"a": 2}, Retry: map[string]int64{"a": 4}}
		}, false, "group g: 4 retry of topic T on a; group g: 2 in flight of topic T on a"},
		{"notes that were not read", Policy{Ignore: []string{"g"}}, func(_ *State, ob *Observation) {
			b := ob.Brokers["a"]
			b.NotesUnread = 7
			ob.Brokers["a"] = b
		}, false, "7 notes of popped messages to be read of topic T on a"},
		{"held back", Policy{Ignore: []string{"g"}}, func(_ *State, ob *Observation) {
			b := ob.Brokers["a"]
			b.Pending = map[string]Pending{"T": {Delayed: 1, Timer: 2, Half: 3}}
			ob.Brokers["a"] = b
		}, false, "1 delayed of topic T on a; 2 timer of topic T on a; 3 half of topic T on a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			st, ob := gateWorld(tt.policy)
			if tt.change != nil {
				tt.change(st, ob)
			}
			if got := gateText(st, ob, tt.removing); got != tt.want {
				t.Errorf("it waits for %q, not %q", got, tt.want)
			}
		})
	}
}

// A broker that does not show what is popped keeps its topics, whoever asks for the removal and when.
func TestHidesPops(t *testing.T) {
	t.Parallel()
	st, ob := gateWorld(Policy{Remove: true})
	b := ob.Brokers["a"]
	b.HidesPops = true
	ob.Brokers["a"] = b
	ob.Groups["T"]["g"] = GroupView{Offsets: map[string][]int64{"a": {3}}}
	if problems, _ := st.Problems(ob); !strings.Contains(strings.Join(problems, "; "), "popConsumerKVServiceEnable") {
		t.Errorf("problems %q", problems)
	}
	st.Phase = Settled // and finish was asked for later
	if d := Next(st, ob, time.Now()); len(d.Commands) > 0 || !d.Halt || d.Next.Phase != Settled {
		t.Errorf("it goes on to %s with %v", d.Next.Phase, d.Commands)
	}
}

// What was left pending is waited for when somebody finishes: it would go with the source.
func TestFinishWaitsForWhatWasLeft(t *testing.T) {
	t.Parallel()
	st, _ := gateWorld(Policy{LeavePending: true})
	st.apply(&Entry{Request: Finish})
	if p := st.Spec.Policy; !p.Remove || p.LeavePending {
		t.Errorf("the policy is %+v", p)
	}
}
