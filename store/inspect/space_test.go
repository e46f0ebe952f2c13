package inspect_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mqx/internal/testkit"
	"mqx/internal/vfs"
	"mqx/store/inspect"
)

// fullFS is a disk with little space left.
type fullFS struct {
	vfs.FS
	free int64
}

func (f fullFS) Usage(string) (vfs.Usage, error) { return vfs.Usage{Total: 1 << 30, Free: f.free}, nil }

// A repair that does not fit is refused before anything is done, and so is a copy.
func TestRepairChecksSpace(t *testing.T) {
	root := testkit.GoldenStore(t, "clean_cq_missing")
	full := inspect.Options{FS: fullFS{vfs.OS, 1<<30/100 + 1000}}
	_, err := inspect.Repair(t.Context(), root, inspect.RepairOptions{Open: full})
	if x, ok := errors.AsType[*inspect.NoSpaceError](err); !ok || x.Free != 1000 && x.Free != 999 || x.Need <= 1000 {
		t.Errorf("repair: %v", err)
	}
	for _, name := range []string{"consumequeue", "mqx"} {
		if _, err := os.Stat(filepath.Join(root, name)); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
	target := filepath.Join(t.TempDir(), "copy")
	_, err = inspect.Copy(t.Context(), root, target, inspect.CopyOptions{FS: full.FS})
	if _, ok := errors.AsType[*inspect.NoSpaceError](err); !ok {
		t.Errorf("copy: %v", err)
	}
	if entries, _ := os.ReadDir(target); len(entries) > 0 {
		t.Errorf("something was copied: %v", entries)
	}
	repair(t, root)
	if r := verify(t, root); r.Damaged() {
		t.Errorf("with space: %s", findingsText(r))
	}
}

// What a longer log file and a restored configuration file take counts too.
func TestPlanCountsBytes(t *testing.T) {
	for _, c := range []struct {
		kind inspect.StepKind
		name string
		do   func(t *testing.T, path string)
		want int64
	}{
		{inspect.StepExtend, "commitlog/" + inspect.FileName(131072), func(t *testing.T, path string) { try(t, os.Truncate(path, 131072-100)) }, 100},
		{inspect.StepRestore, "config/topics.json", func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			try(t, err)
			try(t, os.WriteFile(path+".bak", append(b, bytes.Repeat([]byte(" "), 5000)...), 0o600))
			try(t, os.WriteFile(path, []byte("x"), 0o600))
		}, 5000},
	} {
		root := testkit.GoldenStore(t, "clean_reference")
		c.do(t, filepath.Join(root, c.name))
		d, err := inspect.Open(root, inspect.Options{})
		try(t, err)
		r, err := inspect.Verify(t.Context(), d, inspect.VerifyOptions{})
		try(t, err)
		p, err := inspect.PlanRepair(r, inspect.PlanOptions{})
		try(t, err)
		try(t, d.Close())
		there := false
		for _, s := range p.Steps {
			if s.Kind == c.kind {
				there = true
				if s.Bytes < c.want || s.Bytes > 2*c.want {
					t.Errorf("%s: %d bytes, want about %d", s.What, s.Bytes, c.want)
				}
			}
		}
		if !there {
			t.Errorf("no step %s: %s", c.kind, findingsText(r))
		}
	}
}

// A DLedger log is a part of the directory too.
func TestInfoCountsDLedger(t *testing.T) {
	root := testkit.GoldenStore(t, "basic")
	dir := filepath.Join(root, "dledger-n0", "data")
	try(t, os.MkdirAll(dir, 0o700))
	try(t, os.WriteFile(filepath.Join(dir, inspect.FileName(0)), make([]byte, 1234), 0o600))
	d, err := inspect.Open(root, inspect.Options{})
	try(t, err)
	defer func() { try(t, d.Close()) }()
	i, err := d.Info(t.Context())
	try(t, err)
	if !slices.Contains(i.Parts, inspect.PartInfo{Name: "dledger-n0", Files: 1, Bytes: 1234}) {
		t.Errorf("%+v", i.Parts)
	}
}
