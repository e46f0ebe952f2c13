package inspect_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"mqx/internal/testkit"
	"mqx/internal/vfs"
	"mqx/store/inspect"
)

// A log file that is too long and has others behind it: the surplus is the one finding, and the records behind it are sound.
func TestGrownLogFile(t *testing.T) {
	for _, junk := range [][]byte{
		[]byte("x"), []byte("seven b"), bytes.Repeat([]byte("x"), 91), bytes.Repeat([]byte("x"), 200), bytes.Repeat([]byte("x"), 2000), make([]byte, 200),
		make([]byte, 131072),
	} {
		for _, start := range []int64{0, 131072} {
			t.Run(fmt.Sprintf("%d bytes at %d", len(junk), start), func(t *testing.T) {
				t.Parallel()
				root := testkit.GoldenStore(t, "clean_reference")
				path := filepath.Join(root, "commitlog", inspect.FileName(start))
				before := verify(t, root)
				old, err := os.ReadFile(path)
				try(t, err)
				try(t, os.WriteFile(path, append(bytes.Clone(old), junk...), 0o600))
				r := verify(t, root)
				if r.Records != before.Records {
					t.Errorf("%d records, want %d", r.Records, before.Records)
				}
				checkGrown(t, r, path)
				repair(t, root)
				if r := verify(t, root); r.Damaged() || r.Records != before.Records {
					t.Errorf("after the repair: %d records, findings %+v", r.Records, r.Findings)
				}
				if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, old) {
					t.Errorf("after the repair the file is another one (%v)", err)
				}
			})
		}
	}
}

func checkGrown(t *testing.T, r *inspect.Report, path string) {
	t.Helper()
	n := 0
	for _, f := range r.Findings {
		if f.Note {
			continue
		}
		if n++; f.Kind != inspect.FindLogSize || filepath.Base(f.File) != filepath.Base(path) {
			t.Errorf("found %s %s@%d: %s", f.Kind, f.File, f.Offset, f.What)
		}
	}
	if n != 1 {
		t.Errorf("%d findings, want 1", n)
	}
}

// The damage of TestDamage that makes log files longer, more often than chance has it.
func TestDamageGrown(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			store := []string{"clean_reference", "roll", "crash_midwrite"}[seed%3]
			im, err := readImage(testkit.GoldenStore(t, store))
			try(t, err)
			if len(im.log) < 2 {
				t.Skip("one log file")
			}
			d, err := im.grow(rand.New(rand.NewPCG(seed, 10)))
			try(t, err)
			checkDamage(t, im, d, inspect.VerifyOptions{})
		})
	}
}

// A journal of a step that cannot be done is not in the way of a repair.
func TestJournalOfNoFit(t *testing.T) {
	root := testkit.GoldenStore(t, "clean_reference")
	step := &inspect.Step{Kind: inspect.StepFill, File: "commitlog/00000000000000131072", From: 262144 - 7, To: 262144, Size: 131072}
	for _, s := range []*inspect.Step{step, {Kind: inspect.StepFill, File: step.File, From: 131072, To: 131073, Size: 131072}} {
		p := &inspect.RepairPlan{Root: root, Salvage: "mqx/salvage/x", Steps: []*inspect.Step{s}}
		if err := inspect.Apply(t.Context(), p, inspect.ApplyOptions{}); !errors.Is(err, inspect.ErrNoFit) {
			t.Errorf("%d to %d: %v, want %v", s.From, s.To, err, inspect.ErrNoFit)
		}
		if p, err := inspect.Pending(vfs.OS, root); p != nil || err != nil {
			t.Errorf("a journal is left: %+v, %v", p, err)
		}
		b, err := json.Marshal(p)
		try(t, err)
		try(t, os.MkdirAll(filepath.Join(root, "mqx"), 0o700))
		try(t, os.WriteFile(filepath.Join(root, "mqx", "repair.json"), b, 0o600))
		repair(t, root)
		if p, err := inspect.Pending(vfs.OS, root); p != nil || err != nil {
			t.Errorf("a journal is left: %+v, %v", p, err)
		}
	}
}
