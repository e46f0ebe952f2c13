package admin

import (
	"testing"

	"mqx/remoting"
)

// Who is promoted has the newest epoch in its log, and only then the longest one (r#2178).
func TestNewestEpochBeforeLongestLog(t *testing.T) {
	replica := func(epoch, end int64) *groupReplica {
		return &groupReplica{state: &remoting.HAState{LastEpoch: epoch}, end: end}
	}
	apache := &groupReplica{end: 500}
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
	} {
		if got := c.a.ahead(c.b); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if text := replica(2, 100).more(replica(1, 900)); text == "" {
		t.Error("no reason")
	}
}
