package commitlog_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/internal/vfs"
	"mqx/store/commitlog"
)

// makeFiles creates empty files of given sizes, named by their starts.
func (x *fixture) makeFiles(files map[int64]int64) {
	x.t.Helper()
	if err := x.fs.MkdirAll(x.dir); err != nil {
		x.t.Fatal(err)
	}
	for start, size := range files {
		f, err := x.fs.OpenFile(fmt.Sprintf("%s/%020d", x.dir, start), os.O_RDWR|os.O_CREATE)
		if err != nil {
			x.t.Fatal(err)
		}
		if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
			x.t.Fatal(err)
		}
	}
}

// Sizes found on disk are honoured, also for new files (N008 for the log), short files are filled up, empty last ones
// dropped (N007).
func TestOpenHonoursSizes(t *testing.T) {
	const M = 1 << 20
	for _, c := range []struct {
		name     string
		files    map[int64]int64 // start -> length
		fileSize int64           // wanted
		want     [][2]int64      // start, size
	}{
		{"nothing", nil, 4 * M, nil},
		{"as configured", map[int64]int64{0: 4 * M, 4 * M: 4 * M}, 4 * M, [][2]int64{{0, 4 * M}, {4 * M, 4 * M}}},
		{"smaller", map[int64]int64{0: M, M: M}, M, [][2]int64{{0, M}, {M, M}}},
		{"bigger", map[int64]int64{0: 8 * M, 8 * M: 8 * M}, 8 * M, [][2]int64{{0, 8 * M}, {8 * M, 8 * M}}},
		{"one smaller", map[int64]int64{2 * M: M}, M, [][2]int64{{2 * M, M}}},
		{"one bigger", map[int64]int64{0: 8 * M}, 8 * M, [][2]int64{{0, 8 * M}}},
		{"one short", map[int64]int64{0: 12403}, 4 * M, [][2]int64{{0, 4 * M}}},
		{"one of a size that its place contradicts", map[int64]int64{4 * M: 3 * M}, 4 * M, [][2]int64{{4 * M, 4 * M}}},
		{"short last", map[int64]int64{0: M, M: 12403}, M, [][2]int64{{0, M}, {M, M}}},
		{"long last", map[int64]int64{0: M, M: 2 * M}, M, [][2]int64{{0, M}, {M, 2 * M}}},
		{"mixed", map[int64]int64{0: 8 * M, 8 * M: M, 9 * M: M}, M, [][2]int64{{0, 8 * M}, {8 * M, M}, {9 * M, M}}},
		{"hole", map[int64]int64{0: M, 2 * M: M}, M, [][2]int64{{0, M}, {2 * M, M}}},
		{"hole and short last", map[int64]int64{0: M, 2 * M: 100}, M, [][2]int64{{0, M}, {2 * M, M}}},
		{"short in the middle", map[int64]int64{0: M, M: 5000, 2 * M: M, 3 * M: M}, M, [][2]int64{{0, M}, {M, M}, {2 * M, M}, {3 * M, M}}},
		{"empty in the middle", map[int64]int64{0: M, M: 0, 2 * M: M, 3 * M: M}, M, [][2]int64{{0, M}, {M, M}, {2 * M, M}, {3 * M, M}}},
		{"empty last", map[int64]int64{0: M, M: 0}, M, [][2]int64{{0, M}}},
		{"only an empty one", map[int64]int64{0: 0}, 4 * M, nil},
		{"two empty last", map[int64]int64{0: M, M: 0, 2 * M: 0}, M, [][2]int64{{0, M}}},
		{"overlapping", map[int64]int64{0: M, M: 3 * M, 2 * M: M, 3 * M: M}, M, [][2]int64{{0, M}, {M, M}, {2 * M, M}, {3 * M, M}}},
	} {
		for _, readOnly := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/readonly=%v", c.name, readOnly), func(t *testing.T) {
				x := newFixture(t, 4*M)
				x.makeFiles(c.files)
				x.cfg.ReadOnly = readOnly
				l := x.open()
				var got [][2]int64
				for _, f := range files(t, l) {
					got = append(got, [2]int64{f.Start, f.Size})
				}
				if !slices.Equal(got, c.want) || l.FileSize() != c.fileSize {
					t.Fatalf("files %v of %d, want %v of %d", got, l.FileSize(), c.want, c.fileSize)
				}
				for start, size := range c.files {
					st, err := x.fs.Stat(fmt.Sprintf("%s/%020d", x.dir, start))
					if readOnly && (err != nil || st.Size() != size) {
						t.Fatalf("reading changed the file at %d: %v, %v", start, st, err)
					}
				}
				if end, err := l.Walk(l.Min(), commitlog.WalkOptions{}, touch); err != nil || end.Records != 0 || c.want != nil && end.Reason != commitlog.EndOfData {
					t.Fatalf("walk: %+v, %v", end, err)
				}
				var counter commitlog.Counter
				a := one(t, 100, &counter)
				if readOnly {
					if l.AppendBatch([]*commitlog.Append{a}); !errors.Is(a.Err, commitlog.ErrReadOnly) {
						t.Fatalf("append to a log that is open for reading: %v", a.Err)
					}
					return
				}
				if err := l.SetEnd(l.Min()); err != nil {
					t.Fatal(err)
				}
				mustAppend(t, l, a)
				if a.PhysicalOffset != l.Min() || len(files(t, l)) != 1 {
					t.Fatalf("first record at %d of %d, %d files", a.PhysicalOffset, l.Min(), len(files(t, l)))
				}
			})
		}
	}
}

func TestOpenRefusesAndIgnores(t *testing.T) {
	for _, cfg := range []commitlog.Config{{}, {Dir: "/x", FileSize: 100}} {
		if _, err := commitlog.Open(cfg); err == nil {
			t.Errorf("%+v opens", cfg)
		}
	}
	x := newFixture(t, 1<<20)
	x.cfg.ReadOnly = true
	if _, err := commitlog.Open(x.cfg); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory opens for reading: %v", err)
	}
	if _, err := x.fs.Stat(x.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading created the directory: %v", err)
	}
	x.cfg.ReadOnly = false
	x.makeFiles(map[int64]int64{0: 1 << 20})
	for _, name := range []string{"/lost+found", "/0000000000000000104x576", "/1048576"} {
		if err := vfs.WriteFileDurable(x.fs, x.dir+name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(files(t, x.open())); n != 1 {
		t.Errorf("%d files", n)
	}
}

func TestSetEndRefusesToDropData(t *testing.T) {
	x := newFixture(t, 4096)
	l := x.open()
	var c commitlog.Counter
	for range 6 {
		mustAppend(t, l, one(t, 1000, &c))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = x.open()
	for _, off := range []int64{-1, 1 << 20} {
		if err := l.SetEnd(off); !errors.Is(err, commitlog.ErrOutOfRange) {
			t.Errorf("SetEnd(%d) = %v", off, err)
		}
	}
	if err := l.SetEnd(1000); err == nil {
		t.Fatal("the end was set before a file with data")
	}
	if n := len(files(t, l)); n != 2 {
		t.Fatalf("%d files left", n)
	}
}

// Expiry by age and by force, oldest first, never the newest; views stay valid; what holds a file is told (N024).
func TestExpire(t *testing.T) {
	x := newFixture(t, 4096)
	mem := x.fs.(*vfs.Mem)
	clk := clock.NewManual(epoch)
	x.cfg.Clock = clk
	mem.SetClock(clk.Now)
	l := x.open()
	var c commitlog.Counter
	for range 20 { // five files, an hour apart
		if c.Next()%4 == 1 {
			clk.Set(epoch.Add(time.Duration(c.Next()/4) * time.Hour))
		}
		mustAppend(t, l, one(t, 1000, &c))
	}
	fs := files(t, l)
	if len(fs) != 5 {
		t.Fatalf("%d files", len(fs))
	}
	view, release, err := l.View(1000, 1000)
	if err != nil {
		t.Fatal(err)
	}
	kept := slices.Clone(view)
	rules := commitlog.ExpireRules{Now: epoch.Add(3 * time.Hour), Reserved: 3 * time.Hour}

	rules.Now = epoch.Add(3*time.Hour - 1)
	res, err := l.Expire(rules)
	if err != nil || len(res.Removed) != 0 || res.Next.Start != 0 || !res.Due.Equal(epoch.Add(3*time.Hour)) {
		t.Fatalf("nothing is old enough: %+v, %v", res, err)
	}
	rules.Now = epoch.Add(4 * time.Hour)
	res, err = l.Expire(rules)
	if err != nil || len(res.Removed) != 2 || res.Bytes != 8192 || l.Min() != 8192 || res.Next.Start != 8192 {
		t.Fatalf("two are: %+v, min %d, %v", res, l.Min(), err)
	}
	if !slices.Equal(view, kept) {
		t.Fatal("the view of a removed file changed")
	}
	if err := l.ReadAt(make([]byte, 1), 0); !errors.Is(err, commitlog.ErrOutOfRange) {
		t.Fatalf("reading what is removed: %v", err)
	}
	if _, err := l.Walk(0, commitlog.WalkOptions{}, touch); !errors.Is(err, commitlog.ErrOutOfRange) {
		t.Fatalf("walking what is removed: %v", err)
	}
	hanging := l.Hanging()
	if len(hanging) != 1 || hanging[0].Start != 0 || hanging[0].Leases != 1 || hanging[0].Path != fs[0].Path {
		t.Fatalf("hanging: %+v", hanging)
	}
	if n, err := l.ReclaimHanging(clk.Now()); n != 0 || err != nil || len(l.Hanging()) != 1 {
		t.Fatalf("reclaimed too early: %d, %v", n, err)
	}
	if n, err := l.ReclaimHanging(clk.Now().Add(1)); n != 4096 || err != nil || len(l.Hanging()) != 0 {
		t.Fatalf("reclaimed %d, %v", n, err)
	}
	release()
	mustAppend(t, l, one(t, 1000, &c))

	res, err = l.Expire(commitlog.ExpireRules{Now: epoch, Force: true, MaxFiles: 1})
	if err != nil || len(res.Removed) != 1 || res.Next.Start != 12288 {
		t.Fatalf("force of one: %+v, %v", res, err)
	}
	res, err = l.Expire(commitlog.ExpireRules{Now: epoch, Force: true})
	if err != nil || len(res.Removed) != 2 || l.Min() != 20480 || res.Next.Path != "" {
		t.Fatalf("force of all: %+v, min %d, %v", res, l.Min(), err)
	}
	mustAppend(t, l, one(t, 1000, &c))
	if got, _ := walk(t, l, l.Min(), commitlog.WalkOptions{}); len(got) != 2 || got[0].queue != 20 {
		t.Fatalf("%v", got)
	}
}

// A file that expires while it is being flushed is no disk error.
func TestExpireDuringFlush(t *testing.T) {
	x := newFixture(t, 4096)
	mem := x.fs.(*vfs.Mem)
	l := x.open()
	var c commitlog.Counter
	for range 12 {
		mustAppend(t, l, one(t, 1000, &c))
	}
	mem.Inject(func(op vfs.Op) error {
		if op.Kind != vfs.OpSync {
			return nil
		}
		mem.Inject(nil)
		res, err := l.Expire(commitlog.ExpireRules{Force: true})
		if err != nil || len(res.Removed) != 2 {
			t.Errorf("%+v, %v", res, err)
		}
		return nil
	})
	if err := l.Flush(); err != nil || l.Failed() != nil || l.Flushed() != l.End() {
		t.Fatalf("Flush: %v, flushed %d of %d", err, l.Flushed(), l.End())
	}
}

func TestExpireFaultKeepsTheRest(t *testing.T) {
	x := newFixture(t, 4096)
	l := x.open()
	var c commitlog.Counter
	for range 12 {
		mustAppend(t, l, one(t, 1000, &c))
	}
	x.fs.(*vfs.Mem).Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpRemove && op.Path != x.dir+"/00000000000000000000" {
			return fs.ErrPermission
		}
		return nil
	})
	res, err := l.Expire(commitlog.ExpireRules{Force: true})
	if !errors.Is(err, fs.ErrPermission) || len(res.Removed) != 1 || l.Min() != 4096 {
		t.Fatalf("%+v, %v, min %d", res, err, l.Min())
	}
	if got, _ := walk(t, l, l.Min(), commitlog.WalkOptions{}); len(got) != 8 {
		t.Fatalf("%d records", len(got))
	}
}

// N103, N104: many files do not need many descriptors.
func TestFewFilesAreOpenAtOnce(t *testing.T) {
	x := newFixture(t, 4096)
	x.cfg.FS, x.cfg.Dir, x.cfg.MaxOpenFiles = vfs.OS, t.TempDir(), 4
	l := x.open()
	var c commitlog.Counter
	for range 200 {
		mustAppend(t, l, one(t, 1000, &c))
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for off := int64(0); off < l.End(); off += 4096 {
			_, release, err := l.View(off, 100)
			if err != nil {
				t.Fatal(err)
			}
			release()
		}
	}
	open := 0
	list, err := os.ReadDir("/proc/self/fd")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("this system has no /proc")
	}
	for _, e := range list {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && len(target) > len(x.cfg.Dir) && target[:len(x.cfg.Dir)] == x.cfg.Dir {
			open++
		}
	}
	if open > 6 {
		t.Fatalf("%d descriptors are open for 50 files", open)
	}
}
