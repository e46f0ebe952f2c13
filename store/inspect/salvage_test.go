package inspect_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mqx/internal/testkit"
	"mqx/store/inspect"
)

// Queues of which a repair cuts units are kept as they were.
func TestSalvageOfQueues(t *testing.T) {
	for _, variant := range []string{"clean_cq_beyond", "clean_lastfile_missing"} {
		t.Run(variant, func(t *testing.T) {
			root := testkit.GoldenStore(t, variant)
			old := map[string][]byte{}
			for _, path := range queueFiles(t, root) {
				b, err := os.ReadFile(filepath.Join(root, path))
				try(t, err)
				old[path] = b
			}
			repair(t, root)
			cut := 0
			for path, b := range old {
				now, err := os.ReadFile(filepath.Join(root, path))
				if err == nil && bytes.Equal(now, b) {
					continue
				}
				cut++
				kept, err := filepath.Glob(filepath.Join(root, "mqx", "salvage", "*", path))
				try(t, err)
				if len(kept) != 1 {
					t.Errorf("%s was changed and is kept in %d places", path, len(kept))
					continue
				}
				if was, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(was, b) {
					t.Errorf("%s is not what it was (%v)", kept[0], err)
				}
			}
			if cut == 0 {
				t.Error("nothing was cut")
			}
		})
	}
}

func queueFiles(t *testing.T, root string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(root, "consumequeue", "*", "*", "*"))
	try(t, err)
	for i := range list {
		list[i], err = filepath.Rel(root, list[i])
		try(t, err)
	}
	return list
}

// A plan does not promise to keep what is not there.
func TestPlanKeepsNothing(t *testing.T) {
	for _, c := range []struct {
		variant string
		do      func(t *testing.T, root string)
	}{
		{"clean_midfile_missing", func(*testing.T, string) {}},
		{"clean_reference", func(t *testing.T, root string) {
			try(t, os.Truncate(filepath.Join(root, "commitlog", inspect.FileName(131072)), 0))
		}},
	} {
		root := testkit.GoldenStore(t, c.variant)
		c.do(t, root)
		d, err := inspect.Open(root, inspect.Options{})
		try(t, err)
		r, err := inspect.Verify(t.Context(), d, inspect.VerifyOptions{})
		try(t, err)
		p, err := inspect.PlanRepair(r, inspect.PlanOptions{})
		try(t, err)
		try(t, d.Close())
		fills := 0
		for _, s := range p.Steps {
			if s.Kind != inspect.StepFill {
				continue
			}
			if fills++; strings.HasPrefix(s.What, "keep ") {
				t.Errorf("%s: %s", c.variant, s.What)
			}
		}
		if fills == 0 {
			t.Errorf("%s: no step fills the log", c.variant)
		}
		repair(t, root)
		if kept, err := filepath.Glob(filepath.Join(root, "mqx", "salvage", "*", "commitlog-*")); err != nil || len(kept) > 0 {
			t.Errorf("%s: %v was kept (%v)", c.variant, kept, err)
		}
	}
}
