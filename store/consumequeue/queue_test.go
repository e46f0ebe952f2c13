package consumequeue

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"mqx/internal/vfs"
)

const root = "/store"

func memSet(tb testing.TB, m *vfs.Mem) *Set {
	tb.Helper()
	s := NewSet(Config{FS: m, Root: root, FileBytes: 100 * UnitSize, BatchBytes: 10 * BatchUnitSize, MaxOpenFiles: 3})
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func newMem(tb testing.TB) *vfs.Mem {
	tb.Helper()
	m := vfs.NewMem()
	if err := errors.Join(m.MkdirAll(root), m.SyncDir("/")); err != nil {
		tb.Fatal(err)
	}
	return m
}

// unit is the unit of the i-th record of a log of records of 100 bytes.
func unit(i int64) Unit { return Unit{Phys: i * 100, Size: 100, TagsCode: i} }

func load(tb testing.TB, s *Set) *Queue {
	tb.Helper()
	q, found, whole, err := s.Load(Found{"T", 0})
	if err != nil || len(found) > 0 || !whole {
		tb.Fatalf("load: %v, findings %v, whole %v", err, found, whole)
	}
	return q
}

func expectUnits(tb testing.TB, q *Queue, to int64) {
	tb.Helper()
	if q.Max() != to {
		tb.Fatalf("max %d, want %d", q.Max(), to)
	}
	for off := range to {
		if u, err := q.At(off); err != nil || u != unit(off) {
			tb.Fatalf("unit %d: %v, %v", off, u, err)
		}
	}
	if _, err := q.At(to); !errors.Is(err, ErrNoUnits) {
		tb.Fatalf("unit at max: %v", err)
	}
}

func TestUnitsAreVisibleAtOnceAndInFilesAfterWriteOut(t *testing.T) {
	m := newMem(t)
	s := memSet(t, m)
	q := s.New("T", 0)
	for off := range int64(250) {
		if res := q.Put(off, unit(off), testMinRecord); res != Appended {
			t.Fatal(res)
		}
	}
	expectUnits(t, q, 250)
	if _, err := m.Stat(s.Dir()); err == nil {
		t.Fatal("files before WriteOut")
	}
	if err := s.WriteOut(); err != nil {
		t.Fatal(err)
	}
	if s.Pending() != 0 {
		t.Fatalf("%d bytes pending", s.Pending())
	}
	expectUnits(t, q, 250)
	expectUnits(t, load(t, memSet(t, m)), 250)
	if s.OpenFiles() > 3 {
		t.Errorf("%d files open", s.OpenFiles())
	}
	if res := q.Put(17, unit(17), testMinRecord); res != Present {
		t.Errorf("put of an old offset: %v", res)
	}
}

func TestFirstOffsetInsideAFileIsPrecededByFillers(t *testing.T) {
	m := newMem(t)
	s := memSet(t, m)
	q := s.New("T", 0)
	q.Put(250, unit(250), testMinRecord)
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	starts, _ := q.Files()
	if len(starts) != 1 || starts[0] != 200*UnitSize || q.Min() != 250 || q.Max() != 251 {
		t.Fatalf("files %v, offsets %d..%d", starts, q.Min(), q.Max())
	}
	again := load(t, memSet(t, m))
	for off := int64(200); off < 250; off++ {
		if u, err := again.At(off); err != nil || u != Filler {
			t.Fatalf("unit %d: %v, %v", off, u, err)
		}
	}
	if err := again.CorrectMin(0); err != nil || again.Min() != 250 || again.Max() != 251 {
		t.Fatalf("offsets %d..%d, %v", again.Min(), again.Max(), err)
	}
}

func TestGapIsFilledWhenTheLogHasRoomForIt(t *testing.T) {
	s := memSet(t, newMem(t))
	q := s.New("T", 0)
	q.Put(0, unit(0), testMinRecord)
	if res := q.Put(5, unit(5), testMinRecord); res != Filled {
		t.Fatal(res)
	}
	if res := q.Put(1<<40, unit(6), testMinRecord); res != Refused || q.Max() != 6 {
		t.Fatalf("%v, max %d", res, q.Max())
	}
	for off := int64(1); off < 5; off++ {
		if u, err := q.At(off); err != nil || !u.IsFiller() {
			t.Fatalf("unit %d: %v, %v", off, u, err)
		}
	}
	if off, err := q.Search(300); err != nil || off != 1 {
		t.Errorf("search counts fillers as the record behind: %d, %v", off, err)
	}
}

// N008: the size of the files on disk is honoured, whatever is configured.
func TestFileSizeOnDiskIsHonoured(t *testing.T) {
	m := newMem(t)
	s := memSet(t, m)
	q := s.New("T", 0)
	for off := range int64(150) {
		q.Put(off, unit(off), testMinRecord)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	other := NewSet(Config{FS: m, Root: root, FileBytes: 6_000_000})
	q = load(t, other)
	for off := int64(150); off < 450; off++ {
		q.Put(off, unit(off), testMinRecord)
	}
	if err := other.Sync(); err != nil {
		t.Fatal(err)
	}
	starts, size := q.Files()
	if size != 100*UnitSize || len(starts) != 5 {
		t.Fatalf("%d files of %d bytes", len(starts), size)
	}
	expectUnits(t, load(t, memSet(t, m)), 450)
}

func TestEmptyAndMissingFiles(t *testing.T) {
	m := newMem(t)
	s := memSet(t, m)
	q := s.New("T", 0)
	for off := range int64(250) {
		q.Put(off, unit(off), testMinRecord)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	create(t, m, q.path(300*UnitSize))
	s = memSet(t, m)
	q, found, whole, err := s.Load(Found{"T", 0})
	if err != nil || len(found) != 1 || !whole {
		t.Fatalf("empty last file: %v, %v, %v", err, found, whole)
	}
	expectUnits(t, q, 250)
	if err := m.Remove(q.path(100 * UnitSize)); err != nil {
		t.Fatal(err)
	}
	s = memSet(t, m)
	q, found, whole, err = s.Load(Found{"T", 0})
	if err != nil || len(found) != 1 || whole {
		t.Fatalf("hole: %v, %v, %v", err, found, whole)
	}
	expectUnits(t, q, 100)
	for off := int64(100); off < 220; off++ {
		q.Put(off, unit(off), testMinRecord)
	}
	if err := s.Finish(q); err != nil {
		t.Fatal(err)
	}
	expectUnits(t, load(t, memSet(t, m)), 220)
}

func create(t *testing.T, fsys vfs.FS, path string) {
	t.Helper()
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// N013: a unit that cannot be written stays, is readable, and is written once the disk allows it.
func TestFullDiskKeepsUnitsPending(t *testing.T) {
	m := newMem(t)
	s := memSet(t, m)
	q := s.New("T", 0)
	m.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite && filepath.Dir(op.Path) == q.dir() {
			return syscall.ENOSPC
		}
		return nil
	})
	for off := range int64(150) {
		q.Put(off, unit(off), testMinRecord)
		if err := s.WriteOut(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("write out: %v", err)
		}
	}
	expectUnits(t, q, 150)
	m.Inject(nil)
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	expectUnits(t, load(t, memSet(t, m)), 150)
}

func TestExpireRemovesFilesAndMovesMin(t *testing.T) {
	m := newMem(t)
	s := memSet(t, m)
	q := s.New("T", 0)
	for off := range int64(350) {
		q.Put(off, unit(off), testMinRecord)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ logMin, min, files int64 }{{0, 0, 4}, {9_900, 99, 4}, {9_950, 100, 3}, {25_050, 251, 2}, {1 << 40, 350, 1}} {
		if _, err := s.Expire(q, c.logMin); err != nil {
			t.Fatal(err)
		}
		if starts, _ := q.Files(); q.Min() != c.min || int64(len(starts)) != c.files {
			t.Errorf("log from %d: min %d with %d files, want %d with %d", c.logMin, q.Min(), len(starts), c.min, c.files)
		}
	}
	q.Put(350, unit(350), testMinRecord)
	if err := s.Remove(q); err != nil {
		t.Fatal(err)
	}
	if found, err := s.List(s.Dir()); err != nil || len(found) > 0 || s.Pending() != 0 {
		t.Fatalf("after removal: %v, %v, %d bytes pending", found, err, s.Pending())
	}
}

// A queue under random puts, cuts, write-outs and reopening equals a slice under the same.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := vfs.NewMem()
		_ = errors.Join(m.MkdirAll(root), m.SyncDir("/"))
		s := NewSet(Config{FS: m, Root: root, FileBytes: 7 * UnitSize, MaxOpenFiles: 2})
		q := s.New("T", 0)
		next := int64(0) // records in the log
		var model []Unit
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					q.Put(int64(len(model)), unit(next), testMinRecord)
					model = append(model, unit(next))
					next++
				}
			},
			"writeOut": func(t *rapid.T) {
				if err := s.WriteOut(); err != nil {
					t.Fatal(err)
				}
			},
			"cut": func(t *rapid.T) {
				phys := rapid.Int64Range(0, next*100).Draw(t, "phys")
				if err := s.Truncate(q, phys); err != nil {
					t.Fatal(err)
				}
				for len(model) > 0 && model[len(model)-1].Phys >= phys {
					model = model[:len(model)-1]
				}
			},
			"reopen": func(t *rapid.T) {
				if err := s.Sync(); err != nil {
					t.Fatal(err)
				}
				m = m.PowerLoss(rapid.Uint64().Draw(t, "seed"))
				s = NewSet(Config{FS: m, Root: root, FileBytes: 7 * UnitSize, MaxOpenFiles: 2})
				var err error
				var found []Finding
				if q, found, _, err = s.Load(Found{"T", 0}); err != nil || len(found) > 0 {
					t.Fatal(err, found)
				}
			},
			"": func(t *rapid.T) {
				if q.Max() != int64(len(model)) {
					t.Fatalf("max %d, want %d", q.Max(), len(model))
				}
				for off, want := range model {
					if u, err := q.At(int64(off)); err != nil || u != want {
						t.Fatalf("unit %d: %v, %v, want %v", off, u, err, want)
					}
				}
			},
		})
	})
}

func BenchmarkPut(b *testing.B) {
	m := newMem(b)
	s := NewSet(Config{FS: m, Root: root, FileBytes: 6_000_000})
	q := s.New("T", 0)
	b.ReportAllocs()
	for off := int64(0); b.Loop(); off++ {
		q.Put(off, unit(off), testMinRecord)
		if q.Full() {
			if err := s.WriteOut(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkRead32(b *testing.B) {
	m := newMem(b)
	s := NewSet(Config{FS: m, Root: root, FileBytes: 6_000_000})
	q := s.New("T", 0)
	for off := range int64(64) {
		q.Put(off, unit(off), testMinRecord)
	}
	dst := make([]byte, 32*UnitSize)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := q.Read(16, dst); err != nil {
			b.Fatal(err)
		}
	}
}

// Fillers of hours do not stay in memory.
func TestManyFillersAreWrittenOut(t *testing.T) {
	const end = 3 * fillPending / 2 / UnitSize
	s := NewSet(Config{FS: newMem(t), Root: root, FileBytes: 300_000 * UnitSize})
	t.Cleanup(func() { _ = s.Close() })
	q := s.New("T", 0)
	q.Put(0, unit(0), 1)
	if n, err := q.FillUpTo(end); n != end-1 || err != nil {
		t.Fatal(n, err)
	}
	if q.Max() != end || s.Pending() >= fillPending {
		t.Errorf("max %d, %d bytes pending", q.Max(), s.Pending())
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	for _, off := range []int64{1, end / 2, end - 1} {
		if u, err := q.At(off); err != nil || !u.IsFiller() {
			t.Errorf("unit %d: %v, %v", off, u, err)
		}
	}
}

// The queues whose units wait for longest are written first, and stay readable meanwhile.
func TestWriteOutSome(t *testing.T) {
	m := newMem(t)
	s := memSet(t, m)
	var queues []*Queue
	for id := range int32(5) {
		q := s.New("T", id)
		q.Put(0, unit(0), testMinRecord)
		queues = append(queues, q)
	}
	for _, want := range []int{3, 1, 0, 0} {
		if err := s.WriteOutSome(2); err != nil {
			t.Fatal(err)
		}
		if s.Dirty() != want || s.Pending() != int64(want)*UnitSize {
			t.Fatalf("%d queues with %d bytes are pending, want %d with a unit each", s.Dirty(), s.Pending(), want)
		}
		for id, q := range queues {
			expectUnits(t, q, 1)
			_, err := m.Stat(filepath.Join(s.Dir(), "T", strconv.Itoa(id)))
			if written := id < len(queues)-want; written != (err == nil) {
				t.Fatalf("queue %d: written should be %v: %v", id, written, err)
			}
		}
	}
}
