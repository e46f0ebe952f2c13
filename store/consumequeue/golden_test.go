package consumequeue

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/testkit"
	"mqx/internal/vfs"
)

const testMinRecord = 91

func openSet(t *testing.T, fsys vfs.FS, root string) *Set {
	t.Helper()
	s := NewSet(Config{FS: fsys, Root: root, FileBytes: 6000, BatchBytes: 13800, MaxOpenFiles: 4})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Every queue of every store that Apache stopped cleanly is read unit for unit.
func TestGoldenUnits(t *testing.T) {
	for _, variant := range testkit.GoldenStores() {
		m := testkit.GoldenManifest(t, variant)
		if m.StoreView == nil || m.StoreView.AbortFilePresentBeforeLoad {
			continue
		}
		t.Run(variant, func(t *testing.T) {
			s := openSet(t, vfs.OS, testkit.GoldenStore(t, variant))
			simple := 0
			for _, want := range m.StoreView.ConsumeQueues {
				f := Found{want.Topic, want.QueueID}
				if want.CQType == "BatchCQ" {
					checkBatch(t, s, f, want)
					continue
				}
				simple++
				q, found, whole, err := s.Load(f)
				if err != nil || len(found) > 0 || !whole {
					t.Fatalf("load %v: %v, findings %v, whole %v", f, err, found, whole)
				}
				if err := q.CorrectMin(m.StoreView.CommitLogMinOffset); err != nil {
					t.Fatal(err)
				}
				if q.Min() != want.MinOffset || q.Max() != want.MaxOffset || q.LastEnd() != want.MaxPhysicOffset {
					t.Errorf("%v: offsets %d..%d, last end %d, want %d..%d, %d", f, q.Min(), q.Max(), q.LastEnd(),
						want.MinOffset, want.MaxOffset, want.MaxPhysicOffset)
				}
				checkUnits(t, s, q, want)
			}
			found, err := s.List(s.Dir())
			if err != nil || len(found) != simple {
				t.Errorf("list: %d queues, %v, want %d", len(found), err, simple)
			}
		})
	}
}

func checkUnits(t *testing.T, s *Set, q *Queue, want testkit.ConsumeQueue) {
	t.Helper()
	ext, err := s.LoadExt(Found{want.Topic, want.QueueID})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range want.Units {
		u, err := q.At(w.QueueOffset)
		if err != nil {
			t.Fatalf("%s/%d at %d: %v", want.Topic, want.QueueID, w.QueueOffset, err)
		}
		if w.Ext != nil {
			if !IsExtAddr(u.TagsCode) {
				t.Fatalf("tags code %d at %d is no address", u.TagsCode, w.QueueOffset)
			}
			e, err := ext.Get(u.TagsCode)
			bits, _ := hex.DecodeString(w.Ext.FilterBitMapHex)
			if diff := cmp.Diff(ExtUnit{w.Ext.TagsCode, w.Ext.MsgStoreTime, bits}, e); err != nil || diff != "" {
				t.Fatalf("ext unit of %d: %v\n%s", w.QueueOffset, err, diff)
			}
			u.TagsCode = e.TagsCode
		}
		if diff := cmp.Diff(Unit{w.Pos, w.Size, w.TagsCode}, u); diff != "" {
			t.Fatalf("%s/%d at %d:\n%s", want.Topic, want.QueueID, w.QueueOffset, diff)
		}
	}
	if _, err := q.At(want.MaxOffset); err == nil {
		t.Errorf("%s/%d has a unit at its max offset", want.Topic, want.QueueID)
	}
}

func checkBatch(t *testing.T, s *Set, f Found, want testkit.ConsumeQueue) {
	t.Helper()
	q, err := s.LoadBatch(f)
	if err != nil {
		t.Fatal(err)
	}
	if q.Min() != want.MinOffset || q.Max() != want.MaxOffset {
		t.Errorf("%v: offsets %d..%d, want %d..%d", f, q.Min(), q.Max(), want.MinOffset, want.MaxOffset)
	}
	first, next := q.Units()
	if next-first != int64(len(want.Units)) {
		t.Fatalf("%v: %d units, want %d", f, next-first, len(want.Units))
	}
	for i, w := range want.Units {
		u, err := q.Unit(first + int64(i))
		if err != nil {
			t.Fatal(err)
		}
		u.StoreTime = 0 // not in the manifest
		if diff := cmp.Diff(BatchUnit{w.Pos, w.Size, w.TagsCode, 0, w.QueueOffset, *w.BatchNum, *w.CompactedOffset}, u); diff != "" {
			t.Fatalf("%v unit %d:\n%s", f, i, diff)
		}
	}
}

// Queues written again from their units are the same files, byte for byte: what Put writes is what Apache writes.
func TestGoldenFilesWrittenAgain(t *testing.T) {
	for _, variant := range []string{"basic", "trans", "delay_timer", "roll", "lmq", "batchcq", "v2"} {
		t.Run(variant, func(t *testing.T) {
			root, again := testkit.GoldenStore(t, variant), t.TempDir()
			s, to := openSet(t, vfs.OS, root), openSet(t, vfs.OS, again)
			for _, want := range testkit.GoldenManifest(t, variant).StoreView.ConsumeQueues {
				if want.CQType == "BatchCQ" {
					copyBatch(t, s, to, Found{want.Topic, want.QueueID})
					continue
				}
				copyQueue(t, s, to, Found{want.Topic, want.QueueID})
			}
			if err := to.Sync(); err != nil {
				t.Fatal(err)
			}
			compareTrees(t, filepath.Join(root, "consumequeue"), filepath.Join(again, "consumequeue"))
			compareTrees(t, filepath.Join(root, "batchconsumequeue"), filepath.Join(again, "batchconsumequeue"))
		})
	}
}

func copyQueue(t *testing.T, from, to *Set, f Found) {
	t.Helper()
	q, _, _, err := from.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	again := to.New(f.Topic, f.QueueID)
	for off := q.first(); off < q.Max(); off++ {
		u, err := q.At(off)
		if err != nil {
			t.Fatal(err)
		}
		if res := again.Put(off, u, testMinRecord); res != Appended {
			t.Fatalf("put %v at %d: %v", u, off, res)
		}
	}
}

func copyBatch(t *testing.T, from, to *Set, f Found) {
	t.Helper()
	q, err := from.LoadBatch(f)
	if err != nil {
		t.Fatal(err)
	}
	again := to.NewBatch(f.Topic, f.QueueID)
	first, next := q.Units()
	for i := first; i < next; i++ {
		u, err := q.Unit(i)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.Put(u); err != nil {
			t.Fatal(err)
		}
	}
}

// compareTrees compares the files below two directories; want may be missing if got is.
func compareTrees(t *testing.T, want, got string) {
	t.Helper()
	names := map[string]bool{}
	for _, dir := range []string{want, got} {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				rel, _ := filepath.Rel(dir, path)
				names[rel] = true
			}
			return nil
		})
	}
	for name := range names {
		a, errA := os.ReadFile(filepath.Join(want, name))
		b, errB := os.ReadFile(filepath.Join(got, name))
		if errA != nil || errB != nil {
			t.Errorf("%s: %v, %v", name, errA, errB)
			continue
		}
		if !bytes.Equal(a, b) {
			at := 0
			for at < min(len(a), len(b)) && a[at] == b[at] {
				at++
			}
			t.Errorf("%s: differs at byte %d (%d and %d bytes)", name, at, len(a), len(b))
		}
	}
}
