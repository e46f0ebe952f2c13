package commitlog_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/internal/vfs"
	"mqx/store/commitlog"
)

// Each fault of an operation that an append needs: the record is refused, nothing is assigned, what was appended
// before stays readable, and when the fault is gone the log goes on as if nothing had been.
func TestAppendFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		kind vfs.OpKind
		roll bool // the append needs the next file
		err  error
		want error
	}{
		{"write EIO", vfs.OpWrite, false, syscall.EIO, syscall.EIO},
		{"write ENOSPC", vfs.OpWrite, false, syscall.ENOSPC, commitlog.ErrFull},
		{"write EDQUOT", vfs.OpWrite, false, syscall.EDQUOT, commitlog.ErrFull},
		{"write EROFS", vfs.OpWrite, false, syscall.EROFS, syscall.EROFS},
		{"short write EIO", vfs.OpWrite, false, &vfs.ShortWrite{N: 150, Err: syscall.EIO}, syscall.EIO},
		{"short write ENOSPC", vfs.OpWrite, false, &vfs.ShortWrite{N: 450, Err: syscall.ENOSPC}, commitlog.ErrFull},
		{"write of the blank EIO", vfs.OpWrite, true, syscall.EIO, syscall.EIO},
		{"allocate ENOSPC", vfs.OpAllocate, true, syscall.ENOSPC, commitlog.ErrFull},
		{"allocate EIO", vfs.OpAllocate, true, syscall.EIO, syscall.EIO},
		{"create EMFILE", vfs.OpCreate, true, syscall.EMFILE, commitlog.ErrCreate},
		{"create ENOSPC", vfs.OpCreate, true, syscall.ENOSPC, commitlog.ErrFull},
		{"truncate EIO", vfs.OpTruncate, true, syscall.EIO, commitlog.ErrCreate},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newFixture(t, 4096)
			mem := x.fs.(*vfs.Mem)
			l := x.open()
			var counter commitlog.Counter
			first := 1000
			if c.roll {
				first = 3000
			}
			mustAppend(t, l, one(t, first, &counter))
			mem.Inject(func(op vfs.Op) error {
				if op.Kind == c.kind && strings.HasPrefix(op.Path, x.dir) {
					return c.err
				}
				return nil
			})
			as := []*commitlog.Append{one(t, 300, &counter), batch(t, &counter, 400, 500)}
			if c.roll {
				as = []*commitlog.Append{one(t, 1500, &counter)}
			}
			for range 2 {
				l.AppendBatch(as)
				for i, a := range as {
					if !errors.Is(a.Err, c.want) || !strings.Contains(a.Err.Error(), x.dir) {
						t.Fatalf("item %d: %v", i, a.Err)
					}
				}
			}
			if l.End() != int64(first) || counter.Next() != 1 {
				t.Fatalf("end %d, next %d after a refused append", l.End(), counter.Next())
			}
			mem.Inject(nil)
			if got, _ := walk(t, l, 0, commitlog.WalkOptions{VerifyBody: true}); len(got) != 1 {
				t.Fatalf("%d records readable", len(got))
			}
			// Records of another length: nothing of the refused ones may show behind them.
			mustAppend(t, l, one(t, 200, &counter))
			want, end := walk(t, l, 0, commitlog.WalkOptions{VerifyBody: true})
			if len(want) != 2 || want[1].queue != 1 {
				t.Fatalf("%v", want)
			}
			y := newFixture(t, 4096)
			y.fs = mem.Kill()
			y.cfg.FS = y.fs
			_, again := y.recover()
			if again.Records != 2 || again.Offset != end.Offset || again.Reason != commitlog.EndOfData {
				t.Fatalf("after a crash: %+v, want %+v", again, end)
			}
		})
	}
}

// A refused batch that was written in part must not come to life: not even when its bytes cannot be cleared at once,
// and the next record ends where one of its records starts.
func TestPartOfAFailedWriteDoesNotComeToLife(t *testing.T) {
	x := newFixture(t, 1<<16)
	mem := x.fs.(*vfs.Mem)
	l := x.open()
	var c commitlog.Counter
	mustAppend(t, l, one(t, 1000, &c))
	writes := 0
	mem.Inject(func(op vfs.Op) error {
		if op.Kind != vfs.OpWrite {
			return nil
		}
		if writes++; writes == 1 {
			return &vfs.ShortWrite{N: 600, Err: syscall.EIO}
		}
		return syscall.EIO
	})
	bad := batch(t, &c, 200, 200, 200)
	l.AppendBatch([]*commitlog.Append{bad})
	if bad.Err == nil {
		t.Fatal("appended")
	}
	again := one(t, 200, &c)
	if l.AppendBatch([]*commitlog.Append{again}); !errors.Is(again.Err, syscall.EIO) {
		t.Fatalf("append while the file cannot be cleaned: %v", again.Err)
	}
	mem.Inject(nil)
	mustAppend(t, l, again)
	y := newFixture(t, 1<<16)
	y.fs = mem.Kill()
	y.cfg.FS = y.fs
	_, end := y.recover()
	if end.Records != 2 || end.Offset != 1200 {
		t.Fatalf("after a crash: %+v", end)
	}
}

// What a failed write may have left is cleared before anything else is written, also by the rest of the same call: else
// the clearing would come later, over a record that was acknowledged in between.
func TestFailedWriteIsClearedBeforeTheNextOfTheSameCall(t *testing.T) {
	x := newFixture(t, 8<<20)
	mem := x.fs.(*vfs.Mem)
	l := x.open()
	var c commitlog.Counter
	mustAppend(t, l, one(t, 1000, &c))
	writes := 0
	mem.Inject(func(op vfs.Op) error {
		if op.Kind != vfs.OpWrite {
			return nil
		}
		switch writes++; writes {
		case 1: // the first item
			return &vfs.ShortWrite{N: 600, Err: syscall.EIO}
		case 2: // clearing what it left
			return syscall.EIO
		}
		return nil
	})
	// The first item is so large that it is written before the others get their place.
	as := []*commitlog.Append{one(t, 2<<20, &c), one(t, 300, &c), one(t, 400, &c)}
	l.AppendBatch(as)
	if as[0].Err == nil {
		t.Fatal("the failed write counts as done")
	}
	mem.Inject(nil)
	mustAppend(t, l, one(t, 500, &c))
	want := 2 // the first record and the last
	for _, a := range as {
		if a.Err == nil {
			want++
		}
	}
	if got, end := walk(t, l, 0, commitlog.WalkOptions{VerifyBody: true}); len(got) != want {
		t.Fatalf("%d records readable of %d acknowledged; %+v", len(got), want, end)
	}
}

// A full volume: refused before anything is assigned, accepted again by itself.
func TestFullVolume(t *testing.T) {
	x := newFixture(t, 64<<10)
	mem := x.fs.(*vfs.Mem)
	mem.SetCapacity(100 << 10)
	l := x.open()
	var c commitlog.Counter
	var refused *commitlog.Append
	var sizes []int
	for i := range 200 {
		a := one(t, 1000, &c)
		if l.AppendBatch([]*commitlog.Append{a}); a.Err != nil {
			refused = a
			break
		}
		sizes = append(sizes, i)
	}
	if refused == nil || !errors.Is(refused.Err, commitlog.ErrFull) || !errors.Is(refused.Err, syscall.ENOSPC) {
		t.Fatalf("%v", refused)
	}
	if n := int64(len(sizes)); n < 90 || c.Next() != n {
		t.Fatalf("%d records appended, next %d", n, c.Next())
	}
	for range 3 {
		if l.AppendBatch([]*commitlog.Append{refused}); !errors.Is(refused.Err, commitlog.ErrFull) {
			t.Fatalf("%v", refused.Err)
		}
	}
	if err := l.Flush(); err != nil {
		t.Fatalf("what is there can be flushed: %v", err)
	}
	mem.SetCapacity(200 << 10)
	mustAppend(t, l, refused)
	if got, _ := walk(t, l, 0, commitlog.WalkOptions{VerifyBody: true}); len(got) != len(sizes)+1 || got[len(sizes)].queue != int64(len(sizes)) {
		t.Fatalf("%d records", len(got))
	}
}

// Faults while opening and recovering are errors with the path, and change nothing for the next attempt.
func TestOpenFaults(t *testing.T) {
	build := func(t *testing.T) *fixture {
		t.Helper()
		x := newFixture(t, 4096)
		l := x.open()
		var c commitlog.Counter
		for range 7 {
			mustAppend(t, l, one(t, 1000, &c))
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		mem := x.fs.(*vfs.Mem)
		f, err := mem.OpenFile(x.dir+"/00000000000000008192", 0x42) // O_RDWR|O_CREATE: an empty file to be dropped
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		mem.Corrupt(x.dir+"/00000000000000004096", 3000, []byte("garbage at the end"))
		return x
	}
	for _, kind := range []vfs.OpKind{
		vfs.OpReadDir, vfs.OpStat, vfs.OpRemove, vfs.OpSyncDir, vfs.OpOpen, vfs.OpRead, vfs.OpSync, vfs.OpTruncate, vfs.OpCreate, vfs.OpWrite, vfs.OpMkdir,
	} {
		t.Run(kind.String(), func(t *testing.T) {
			x := build(t)
			mem := x.fs.(*vfs.Mem)
			mem.Inject(func(op vfs.Op) error {
				if op.Kind == kind {
					return syscall.EIO
				}
				return nil
			})
			err := openAndCut(x)
			if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "/store") {
				t.Fatalf("%v", err)
			}
			mem.Inject(nil)
			if err := openAndCut(x); err != nil {
				t.Fatal(err)
			}
			_, end := x.recover()
			if end.Records != 7 || end.Reason != commitlog.EndOfData {
				t.Fatalf("%+v", end)
			}
		})
	}
}

func openAndCut(x *fixture) error {
	l, err := commitlog.Open(x.cfg)
	if err != nil {
		return err
	}
	defer l.Close()
	end, err := l.Walk(0, commitlog.WalkOptions{VerifyBody: true}, touch)
	if err != nil {
		return err
	}
	return l.Truncate(end.Offset, "/store/mqx/salvage")
}

// N080 (r#10666): a crash at any step of a truncation, and any power loss there, leaves a log that is a beginning of the old one and
// reaches up to the cut at least, without a gap; what is lost with the cut is in the salvage when the files are gone. Once it is done it
// is durable.
func TestTruncateIsCrashSafe(t *testing.T) {
	var steps int64
	for step := int64(1); ; step++ {
		x := newFixture(t, 4096)
		mem := x.fs.(*vfs.Mem)
		l := x.open()
		var c commitlog.Counter
		for i := range 20 {
			mustAppend(t, l, one(t, 700+i, &c))
		}
		all, _ := walk(t, l, 0, commitlog.WalkOptions{})
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
		cut := all[7].off
		n, crashed := int64(0), errors.New("crash")
		mem.Inject(func(op vfs.Op) error {
			switch op.Kind {
			case vfs.OpSync, vfs.OpSyncDir, vfs.OpRemove, vfs.OpTruncate, vfs.OpWrite, vfs.OpCreate, vfs.OpMkdir:
				if n++; n >= step {
					return crashed
				}
			}
			return nil
		})
		err := l.Truncate(cut, "/store/mqx/salvage")
		if err == nil {
			if got, end := walk(t, l, 0, commitlog.WalkOptions{}); !slices.Equal(got, all[:7]) || end.Offset != cut {
				t.Fatalf("after the cut: %v", got)
			}
			for seed := range uint64(20) { // and it stays cut
				y := newFixture(t, 4096)
				y.fs = mem.PowerLoss(seed)
				y.cfg.FS = y.fs
				if got, _ := walk(t, y.open(), 0, commitlog.WalkOptions{VerifyBody: true}); !slices.Equal(got, all[:7]) {
					t.Fatalf("seed %d: the power fails after the cut, and the log has %d records, want 7", seed, len(got))
				}
			}
			steps = step
			break
		}
		mem.Inject(nil)
		for seed := range uint64(10) {
			y := newFixture(t, 4096)
			after := mem.PowerLoss(seed)
			if seed == 0 {
				after = mem.Kill()
			}
			y.fs, y.cfg.FS = after, after
			l := y.open()
			var findings []commitlog.Finding
			got, _ := walk(t, l, 0, commitlog.WalkOptions{VerifyBody: true, OnFinding: func(f commitlog.Finding) error {
				findings = append(findings, f)
				return nil
			}})
			if len(findings) != 0 || len(got) < 7 || !slices.Equal(got, all[:len(got)]) {
				t.Fatalf("step %d, seed %d: %d records, findings %+v", step, seed, len(got), findings)
			}
			if len(got) < len(all) {
				list, err := after.ReadDir("/store/mqx/salvage")
				if err != nil || len(list) == 0 {
					t.Fatalf("step %d, seed %d: %d of %d records left and nothing kept: %v", step, seed, len(got), len(all), err)
				}
			}
		}
	}
	if steps < 10 {
		t.Fatalf("only %d steps", steps)
	}
}

// Who waits for a record that is cut is told so, even when the log grows over its place later; and a cut that failed
// can be tried again.
func TestTruncateTellsWaitersAndCanBeRepeated(t *testing.T) {
	x := newFixture(t, 4096)
	mem := x.fs.(*vfs.Mem)
	l := x.open()
	var c commitlog.Counter
	for range 12 {
		mustAppend(t, l, one(t, 1000, &c))
	}
	var got []error
	l.WaitFlushed(2000, func(err error) { got = append(got, err) })
	l.WaitFlushed(l.End(), func(err error) { got = append(got, err) })
	removals := 0
	mem.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpRemove {
			if removals++; removals == 2 {
				return syscall.EIO
			}
		}
		return nil
	})
	if err := l.Truncate(3000, ""); !errors.Is(err, syscall.EIO) {
		t.Fatalf("%v", err)
	}
	a := one(t, 100, &c)
	if l.AppendBatch([]*commitlog.Append{a}); !errors.Is(a.Err, commitlog.ErrNotRecovered) {
		t.Fatalf("append after half a cut: %v", a.Err)
	}
	mem.Inject(nil)
	if err := l.Truncate(3000, ""); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || !errors.Is(got[0], commitlog.ErrCut) {
		t.Fatalf("waiters: %v", got)
	}
	for range 12 {
		mustAppend(t, l, one(t, 1000, &c))
	}
	if err := l.Flush(); err != nil || len(got) != 2 || got[1] != nil {
		t.Fatalf("waiters: %v, %v", got, err)
	}
	if n := len(files(t, l)); n != 4 {
		t.Fatalf("%d files", n)
	}
}

// tenRecords appends ten records of 1,000 bytes and tells where they stand.
func tenRecords(t *testing.T, l *commitlog.Log) []rec {
	t.Helper()
	var c commitlog.Counter
	for range 10 {
		mustAppend(t, l, one(t, 1000, &c))
	}
	all, _ := walk(t, l, 0, commitlog.WalkOptions{})
	return all
}

// What an earlier try has kept and nobody can read any more does not keep a log from being cut, which a start needs; it stays.
func TestTruncateBesideAPieceThatCannotBeRead(t *testing.T) {
	x, clk := newFixture(t, 4096), clock.NewManual(epoch)
	x.cfg.Clock = clk
	mem, l := x.fs.(*vfs.Mem), x.open()
	all := tenRecords(t, l)
	const dir = "/store/mqx/salvage"
	fails := func(kind vfs.OpKind, in string) {
		mem.Inject(func(op vfs.Op) error {
			if op.Kind == kind && strings.HasPrefix(op.Path, in) {
				return syscall.EIO
			}
			return nil
		})
	}
	fails(vfs.OpRemove, "/")
	if err := l.Truncate(all[5].off, dir); err == nil {
		t.Fatal("the first try was not broken off")
	}
	clk.Advance(time.Minute)
	fails(vfs.OpOpen, dir)
	if err := l.Truncate(all[5].off, dir); err != nil {
		t.Fatal(err)
	}
	mem.Inject(nil)
	if list, err := x.fs.ReadDir(dir); err != nil || len(list) != 4 {
		t.Errorf("%v, %v: want two pieces of each of two files", list, err)
	}
	if l.End() != all[5].off {
		t.Errorf("the log ends at %d, want %d", l.End(), all[5].off)
	}
}

// A cut that is made once more after it was interrupted keeps what is cut once: who sends it again sends it once.
func TestTruncateKeepsOnce(t *testing.T) {
	x, clk := newFixture(t, 4096), clock.NewManual(epoch)
	x.cfg.Clock = clk
	mem, l := x.fs.(*vfs.Mem), x.open()
	all := tenRecords(t, l)
	mem.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpRemove {
			return syscall.EIO
		}
		return nil
	})
	const dir = "/store/mqx/salvage"
	for i := range 2 {
		if err := l.Truncate(all[5].off, dir); (err == nil) != (i == 1) {
			t.Fatalf("try %d: %v", i+1, err)
		}
		mem.Inject(nil)
		clk.Advance(time.Minute)
	}
	list, err := x.fs.ReadDir(dir)
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v: want one piece of each of two files", list, err)
	}
	for _, e := range list {
		if want := epoch.Add(time.Minute).UTC().Format("150405.000Z"); !strings.HasSuffix(e.Name(), want) {
			t.Errorf("%s is the older one", e.Name())
		}
	}
}

func TestTruncateKeepsWhatItCuts(t *testing.T) {
	x := newFixture(t, 4096)
	l := x.open()
	var c commitlog.Counter
	for range 10 {
		mustAppend(t, l, one(t, 1000, &c))
	}
	all, _ := walk(t, l, 0, commitlog.WalkOptions{})
	old := make([]byte, l.End())
	if err := l.ReadAt(old, 0); err != nil {
		t.Fatal(err)
	}
	cut := all[5].off
	for _, bad := range []int64{-1, 1 << 20} {
		if err := l.Truncate(bad, ""); !errors.Is(err, commitlog.ErrOutOfRange) {
			t.Fatalf("Truncate(%d) = %v", bad, err)
		}
	}
	if err := l.Truncate(cut, "/store/mqx/salvage"); err != nil {
		t.Fatal(err)
	}
	list, err := x.fs.ReadDir("/store/mqx/salvage")
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	var kept []byte
	for i, e := range list {
		b, err := vfs.ReadFile(x.fs, filepath.Join("/store/mqx/salvage", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(e.Name(), []string{"commitlog-00000000000000005096-", "commitlog-00000000000000008192-"}[i]) {
			t.Fatalf("name %q", e.Name())
		}
		kept = append(kept, b...)
		// Zeros at the end of a file are not kept.
		want := []int64{8192 - cut, int64(len(old)) - 8192}[i]
		kept = append(kept, make([]byte, want-int64(len(b)))...)
	}
	if want := old[cut:]; !bytes.Equal(kept, want) {
		t.Fatalf("%d bytes kept of %d", len(kept), len(want))
	}
	if l.End() != cut || l.Flushed() != cut || len(files(t, l)) != 2 {
		t.Fatalf("end %d, flushed %d, %d files", l.End(), l.Flushed(), len(files(t, l)))
	}
	c.Set(5)
	mustAppend(t, l, one(t, 100, &c))
	got, end := walk(t, l, 0, commitlog.WalkOptions{VerifyBody: true})
	if len(got) != 6 || got[5].off != cut || end.Reason != commitlog.EndLimit {
		t.Fatalf("%v, %+v", got, end)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, end := x.recover(); end.Records != 6 || end.Reason != commitlog.EndOfData {
		t.Fatalf("after reopening: %+v", end)
	}
}
