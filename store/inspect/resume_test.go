package inspect_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"mqx/internal/testkit"
	"mqx/internal/vfs"
	"mqx/store/inspect"
)

// resumed are stores whose repairs together take every kind of step.
var resumed = []string{
	"clean_body_mid_secondfile", "clean_cq_beyond", "clean_cq_missing", "clean_index_missing", "clean_lastfile_missing", "clean_lastfile_short",
	"clean_midfile_missing", "clean_offsets_empty", "clean_topics_corrupt", "crash_torn_tail", "crash_checkpoint_missing",
}

const memRoot = "/data/store"

// loadMem copies a directory into a file system in memory, where all of it is durable.
func loadMem(t *testing.T, root string) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	err := filepath.Walk(root, func(path string, st os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		to := filepath.Join(memRoot, rel)
		if st.IsDir() {
			return vfs.MkdirAllDurable(m, to)
		}
		if strings.HasPrefix(rel, "timerwheel") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return vfs.WriteFileDurable(m, to, b)
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// content is every file below the root but the lock.
func content(t *testing.T, m *vfs.Mem, root string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := m.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if e.IsDir() {
				walk(path)
				continue
			}
			b, err := vfs.ReadFile(m, path)
			if err != nil {
				t.Fatal(err)
			}
			if e.Name() != "lock" {
				out[strings.TrimPrefix(path, root+"/")] = b
			}
		}
	}
	walk(root)
	return out
}

var errKilled = errors.New("the process is gone")

// changes counts operations that change the disk, and ends everything at one of them.
type changes struct{ n, killAt int }

func (c *changes) hook(op vfs.Op) error {
	switch op.Kind {
	case vfs.OpCreate, vfs.OpWrite, vfs.OpSync, vfs.OpSyncDir, vfs.OpTruncate, vfs.OpAllocate, vfs.OpRename, vfs.OpRemove, vfs.OpMkdir:
		c.n++
	case vfs.OpOpen, vfs.OpRead, vfs.OpReadDir, vfs.OpStat, vfs.OpLock, vfs.OpMap:
	}
	if c.killAt == 0 || c.n < c.killAt {
		return nil
	}
	if op.Kind == vfs.OpWrite && c.n == c.killAt && op.Len > 1 {
		return &vfs.ShortWrite{N: int(op.Len / 2), Err: errKilled}
	}
	return errKilled
}

func repairMem(t *testing.T, m *vfs.Mem, root string) error {
	t.Helper()
	_, err := inspect.Repair(t.Context(), root, inspect.RepairOptions{
		Open: inspect.Options{FS: m},
		Plan: inspect.PlanOptions{IndexSlots: 1000, IndexEntries: 4000, QueueFileBytes: 6000},
	})
	return err
}

// A repair that is killed, or loses power, at any operation that changes the disk, and is then run again, ends in the same
// bytes as one that was let alone; what it cut is kept. MQX_RESUME_ALL=1 tries every operation of every store.
func TestRepairResumes(t *testing.T) {
	for _, variant := range resumed {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			base := loadMem(t, testkit.GoldenStore(t, variant))
			synctest.Test(t, func(t *testing.T) { // the clock stands
				resumeEverywhere(t, base, memRoot, func(m *vfs.Mem) error { return repairMem(t, m, memRoot) })
			})
		})
	}
}

// resumeEverywhere ends run at its operations one by one, runs it again, and compares what is below root with what one run
// leaves.
func resumeEverywhere(t *testing.T, base *vfs.Mem, root string, run func(m *vfs.Mem) error) {
	t.Helper()
	source := content(t, base, memRoot)
	alone := base.Kill()
	count := &changes{}
	alone.Inject(count.hook)
	if err := run(alone); err != nil {
		t.Fatal(err)
	}
	alone.Inject(nil)
	want := content(t, alone, root)
	points := count.n
	step := max(1, points/25)
	if os.Getenv("MQX_RESUME_ALL") != "" {
		step = 1
	}
	t.Logf("%d operations, every %d", points, step)
	rnd := rand.New(rand.NewPCG(uint64(points), 7))
	for at := 1 + rnd.IntN(step); at <= points; at += step {
		for _, power := range []bool{false, true} {
			m := base.Kill()
			m.Inject((&changes{killAt: at}).hook)
			if err := run(m); err == nil {
				t.Fatalf("operation %d of %d did not come", at, points)
			}
			m.Inject(nil)
			after := m.Kill()
			if power {
				after = m.PowerLoss(uint64(at))
			}
			if err := run(after); err != nil && !(at == points && errors.Is(err, inspect.ErrNotEmpty)) { // the copy was done with
				t.Errorf("ended at operation %d, power lost %v: the next run: %v", at, power, err)
				continue
			}
			if diff := differ(want, content(t, after, root)); diff != "" {
				t.Errorf("ended at operation %d of %d, power lost %v: %s", at, points, power, diff)
			}
			if diff := differ(source, content(t, after, memRoot)); root != memRoot && diff != "" {
				t.Errorf("ended at operation %d of %d: the store itself: %s", at, points, diff)
			}
		}
	}
}

// repairCopy is what mqx store repair --copy-to does.
func repairCopy(t *testing.T, m *vfs.Mem) error {
	t.Helper()
	if _, err := inspect.Copy(t.Context(), memRoot, memCopy, inspect.CopyOptions{FS: m}); err != nil {
		return err
	}
	if err := repairMem(t, m, memCopy); err != nil {
		return err
	}
	return inspect.CopyUsed(m, memCopy)
}

const memCopy = "/other/copy"

// The same of a repair of a copy: the second run makes a copy anew that was not whole, and goes on in one that was. The
// store itself stays as it is, and what is in the way is not touched.
func TestRepairOfCopyResumes(t *testing.T) {
	for _, variant := range []string{"crash_torn_tail", "clean_cq_missing"} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			base := loadMem(t, testkit.GoldenStore(t, variant))
			if err := vfs.MkdirAllDurable(base, "/other"); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				resumeEverywhere(t, base, memCopy, func(m *vfs.Mem) error { return repairCopy(t, m) })
			})
			if err := vfs.MkdirAllDurable(base, memCopy+"/mqx"); err != nil {
				t.Fatal(err)
			}
			if err := vfs.WriteFileDurable(base, memCopy+"/mqx/other", []byte("x")); err != nil {
				t.Fatal(err)
			}
			if err := repairCopy(t, base); !errors.Is(err, inspect.ErrNotEmpty) {
				t.Errorf("a copy onto something: %v", err)
			}
		})
	}
}

// differ says which files differ.
func differ(want, got map[string][]byte) string {
	names := slices.Sorted(maps.Keys(want))
	for name := range got {
		if _, ok := want[name]; !ok {
			names = append(names, name)
		}
	}
	var out []string
	for _, name := range names {
		a, inWant := want[name]
		b, inGot := got[name]
		switch {
		case !inGot:
			out = append(out, name+" is missing")
		case !inWant:
			out = append(out, name+" is too many")
		case !bytes.Equal(a, b):
			n := 0
			for n < len(a) && n < len(b) && a[n] == b[n] {
				n++
			}
			out = append(out, fmt.Sprintf("%s differs from byte %d on (%d and %d bytes)", name, n, len(a), len(b)))
		}
	}
	return strings.Join(out, "; ")
}
