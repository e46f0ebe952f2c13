package admin

import (
	"errors"
	"strings"
	"testing"

	"mqx/remoting"
)

// Who is promoted has the newest epoch in its log, and only then the longest one (r#2178).
func TestNewestEpochBeforeLongestLog(t *testing.T) {
	replica := func(epoch, end int64) *groupReplica {
		return &groupReplica{state: &remoting.HAState{LastEpoch: &epoch}, end: end}
	}
	apache, old := &groupReplica{end: 500}, &groupReplica{state: &remoting.HAState{}, end: 500} // neither tells its epoch
	for _, c := range []struct {
		name string
		a, b *groupReplica
		want bool
	}{
		{"newer and shorter", replica(2, 100), replica(1, 900), true},
		{"older and longer", replica(1, 900), replica(2, 100), false},
		{"the same and longer", replica(2, 200), replica(2, 100), true},
		{"the same", replica(2, 100), replica(2, 100), false},
		{"without an epoch", apache, replica(0, 400), true},
		{"Apache's, longer than a log with an epoch", apache, replica(1, 400), true},
		{"an older mqx, longer than a log with an epoch", old, replica(1, 400), true},
		{"shorter than Apache's", replica(1, 400), apache, false},
		{"longer than Apache's", replica(1, 600), apache, true},
		{"a log from before the first promotion", replica(0, 900), replica(1, 400), false},
	} {
		if got := c.a.ahead(c.b); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if text := replica(2, 100).more(replica(1, 900)); text == "" {
		t.Error("no reason")
	}
}

// A slave that has stopped since its log parts from its master's counts up to there: the master has gone on with others, and
// what they have been acknowledged for is not in the longer log.
func TestPartedCountsUpToThere(t *testing.T) {
	one := int64(1)
	replica := func(addr string, end, parted int64) *groupReplica {
		m := &groupReplica{Broker: Broker{Addr: addr}, state: &remoting.HAState{LastEpoch: &one}, end: end, role: "SLAVE"}
		if parted > 0 {
			m.state.PartedAt = &parted
		}
		return m
	}
	follows, parted := replica("1:1", 970, 0), replica("1:2", 1060, 910)
	if !follows.ahead(parted) || parted.ahead(follows) || !follows.before(parted) {
		t.Error("the longer log is taken, which has parted")
	}
	if short := replica("1:3", 500, 0); short.ahead(parted) || !parted.before(short) {
		t.Error("a slave is taken that lacks what both had")
	}
	if same := replica("1:4", 910, 0); same.ahead(parted) || parted.ahead(same) || !same.before(parted) || parted.before(same) {
		t.Error("of two that have the same the parted one is taken")
	}
	p := &rolePlan{at: follows, spec: RoleSpec{Verb: "promote"}}
	if err := p.compare("x", []*groupReplica{follows, parted}); err != nil || len(p.notes) != 1 || p.notes[0].Word != wordLost || !strings.Contains(p.notes[0].Text, "from 910 on") {
		t.Errorf("%v, notes %v", err, p.notes)
	}
	p = &rolePlan{at: parted, spec: RoleSpec{Verb: "promote"}}
	var refused *RefusedError
	if err := p.compare("x", []*groupReplica{follows, parted}); !errors.As(err, &refused) || !strings.Contains(refused.Why, "60 bytes more") {
		t.Errorf("the parted one is promoted beside one that follows: %v", err)
	}
}

// Of two slaves of which one does not tell its epoch the end alone decides, and the plan says so.
func TestUnknownEpochIsNotTheFirst(t *testing.T) {
	one := int64(1)
	at := &groupReplica{Broker: Broker{Addr: "1:1"}, state: &remoting.HAState{LastEpoch: &one}, end: 100, role: "SLAVE"}
	for _, c := range []struct {
		end     int64
		shorter bool
		refused bool
		word    string
	}{
		{120, false, true, ""},
		{120, true, false, wordLost},
		{90, false, false, "unknown"},
		{-1, false, false, "unknown"},
	} {
		apache := &groupReplica{Broker: Broker{Addr: "1:2", ID: 2}, end: c.end, role: "SLAVE"}
		p := &rolePlan{at: at, spec: RoleSpec{Verb: "promote", Shorter: c.shorter}}
		err := p.compare("x", []*groupReplica{at, apache})
		if (err != nil) != c.refused {
			t.Errorf("%+v: %v", c, err)
		}
		if !c.refused && (len(p.notes) != 1 || p.notes[0].Word != c.word) {
			t.Errorf("%+v: %v", c, p.notes)
		}
	}
}
