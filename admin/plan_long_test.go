package admin

import "testing"

func TestPlanTakesLong(t *testing.T) {
	for _, c := range []struct {
		kind, saved string
		long        bool
	}{
		{kindCopy, `{}`, true},
		{kindRole, `{}`, true},
		{kindTopic, `{}`, false},
		{kindOffset, `{"spec":{"group":"g","keepSkipped":true}}`, true},
		{kindOffset, `{"spec":{"group":"g"}}`, false},
		{kindOffset, `nonsense`, false},
	} {
		if got := PlanTakesLong(c.kind, []byte(c.saved)); got != c.long {
			t.Errorf("%s %s: %v", c.kind, c.saved, got)
		}
	}
}
