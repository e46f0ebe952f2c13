package inspect_test

import (
	"slices"
	"testing"

	"mqx/internal/testkit"
	"mqx/internal/vfs"
	"mqx/store/inspect"
)

func repair(t testing.TB, root string) *inspect.Report {
	t.Helper()
	return repairWith(t, root, inspect.VerifyOptions{})
}

// quickFS is the disk without waiting for it. What is durable when is asked by other tests.
type quickFS struct{ vfs.FS }

func (quickFS) SyncDir(string) error { return nil }

func (f quickFS) OpenFile(name string, flag int) (vfs.File, error) {
	file, err := f.FS.OpenFile(name, flag)
	if err != nil {
		return nil, err
	}
	return quickFile{file}, nil
}

type quickFile struct{ vfs.File }

func (quickFile) Sync() error { return nil }

// repairWith repairs. What loses something must stand in the first plan: it is the one that is confirmed.
func repairWith(t testing.TB, root string, o inspect.VerifyOptions) *inspect.Report {
	t.Helper()
	round := 0
	r, err := inspect.Repair(t.Context(), root, inspect.RepairOptions{
		Open: inspect.Options{FS: quickFS{vfs.OS}}, Verify: o,
		Agree: func(_ *inspect.Report, p *inspect.RepairPlan) error {
			if round++; round > 1 && p.Destructive() {
				t.Errorf("plan %d loses something that the first one did not tell", round)
			}
			if round > 1 {
				t.Logf("plan %d of %d steps", round, len(p.Steps))
			}
			return nil
		},
		Plan:  inspect.PlanOptions{IndexSlots: 1000, IndexEntries: 4000, QueueFileBytes: 6000},
		Apply: inspect.ApplyOptions{OnStep: func(_ int, s *inspect.Step) { t.Logf("step %s: %s", s.Kind, s.What) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// After a repair nothing is found any more, and what was sound is there.
func TestRepairGolden(t *testing.T) {
	for _, variant := range testkit.GoldenStores() {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			root := testkit.GoldenStore(t, variant)
			before := verify(t, root)
			repair(t, root)
			r := verify(t, root)
			for _, f := range r.Findings {
				if !f.Note || !slices.Contains([]inspect.FindingKind{inspect.FindDirty, inspect.FindQueueBehind, inspect.FindIndexBehind}, f.Kind) {
					t.Errorf("after repair: note=%v %s %s@%d %s %v", f.Note, f.Kind, f.File, f.Offset, f.What, f.Affected)
				}
			}
			if r.Records < before.Records {
				t.Errorf("%d records after the repair, %d before", r.Records, before.Records)
			}
		})
	}
}
