package inspect_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/testkit"
	"mqx/store/inspect"
)

// dueAt is where a message that waits lies, and when it is due.
type dueAt struct{ Time, Phys int64 }

// What waits is what Apache's own reader says: the units of the slots that the checkpoint has not passed.
func TestGoldenTimer(t *testing.T) {
	some := 0
	for _, variant := range testkit.GoldenStores() {
		view := testkit.GoldenManifest(t, variant).StoreView
		if view == nil {
			continue // the damaged ones
		}
		timer := view.Timer
		want, got := []dueAt{}, []dueAt{}
		for _, s := range timer.Slots {
			if s.TimeMs < timer.LastReadTimeMs {
				continue
			}
			for _, u := range s.Units {
				want = append(want, dueAt{u.DeliverTime, u.OffsetPy})
			}
		}
		list, err := openGolden(t, variant).Dues(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			if x.Source == inspect.SourceWheel {
				got = append(got, dueAt{x.Time, x.Phys})
			}
			if x.Lost || x.UniqKey == "" && x.Topic == "" {
				t.Errorf("%s: %+v", variant, x)
			}
		}
		for _, l := range [][]dueAt{want, got} {
			slices.SortFunc(l, func(a, b dueAt) int { return int(a.Phys - b.Phys) })
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", variant, diff)
		}
		some += len(want)
	}
	if some < 20 {
		t.Errorf("the golden stores hold only %d messages that wait", some)
	}
}
