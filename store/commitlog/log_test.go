package commitlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store/commitlog"
)

var epoch = time.UnixMilli(1_700_000_000_000)

// record encodes a record of exactly n bytes.
func record(tb testing.TB, n int, seed byte) []byte {
	tb.Helper()
	host := netip.MustParseAddrPort("10.0.0.1:10911")
	r := message.Record{Magic: message.MagicV1, QueueID: 1, BornTimestamp: 1, BornHost: host, StoreHost: host, Topic: []byte("T")}
	overhead := r.EncodedLen(false)
	if n < overhead {
		tb.Fatalf("a record has at least %d bytes", overhead)
	}
	r.Body = bytes.Repeat([]byte{seed | 1}, n-overhead)
	b := r.Append(nil, false)
	if len(b) != n {
		tb.Fatalf("record of %d bytes, want %d", len(b), n)
	}
	return b
}

func one(tb testing.TB, n int, c *commitlog.Counter) *commitlog.Append {
	tb.Helper()
	return &commitlog.Append{Buf: record(tb, n, byte(n)), Counter: c}
}

func batch(tb testing.TB, c *commitlog.Counter, sizes ...int32) *commitlog.Append {
	tb.Helper()
	a := &commitlog.Append{Counter: c, Sizes: sizes}
	for _, n := range sizes {
		a.Buf = append(a.Buf, record(tb, int(n), byte(n))...)
	}
	return a
}

type fixture struct {
	t   testing.TB
	fs  vfs.FS
	dir string
	cfg commitlog.Config
}

func newFixture(tb testing.TB, fileSize int64) *fixture {
	tb.Helper()
	fsys := vfs.NewMem()
	return &fixture{t: tb, fs: fsys, dir: "/store/commitlog", cfg: commitlog.Config{
		FS: fsys, Dir: "/store/commitlog", FileSize: fileSize, Clock: clock.NewManual(epoch),
		Logger: slog.New(slog.DiscardHandler),
	}}
}

// open opens the log without recovering it.
func (x *fixture) open() *commitlog.Log {
	x.t.Helper()
	l, err := commitlog.Open(x.cfg)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { _ = l.Close() })
	return l
}

// recover opens the log and ends it where the records end.
func (x *fixture) recover() (*commitlog.Log, commitlog.WalkEnd) {
	x.t.Helper()
	l := x.open()
	if len(files(x.t, l)) == 0 {
		return l, commitlog.WalkEnd{}
	}
	end := x.recoverLog(l)
	return l, end
}

func (x *fixture) recoverLog(l *commitlog.Log) commitlog.WalkEnd {
	x.t.Helper()
	_, end := walk(x.t, l, l.Min(), commitlog.WalkOptions{VerifyBody: true})
	l.FloorStoreTime(end.LastStore)
	var err error
	if end.Reason == commitlog.EndTorn {
		err = l.Truncate(end.Offset, filepath.Join(filepath.Dir(x.cfg.Dir), "mqx", "salvage"))
	} else {
		err = l.SetEnd(end.Offset)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return end
}

func files(tb testing.TB, l *commitlog.Log) []commitlog.FileInfo {
	tb.Helper()
	list, err := l.Files()
	if err != nil {
		tb.Fatal(err)
	}
	return list
}

type rec struct {
	off   int64
	size  int32
	queue int64
	store int64
}

func walk(tb testing.TB, l *commitlog.Log, from int64, o commitlog.WalkOptions) ([]rec, commitlog.WalkEnd) {
	tb.Helper()
	var out []rec
	end, err := l.Walk(from, o, func(off int64, v message.View) error {
		out = append(out, rec{off, v.Size(), v.QueueOffset(), v.StoreTimestamp()})
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return out, end
}

func mustAppend(tb testing.TB, l *commitlog.Log, as ...*commitlog.Append) {
	tb.Helper()
	l.AppendBatch(as)
	for i, a := range as {
		if a.Err != nil {
			tb.Fatalf("item %d: %v", i, a.Err)
		}
	}
}

func TestAppendReadReopen(t *testing.T) {
	for _, fsys := range []struct {
		name string
		fs   vfs.FS
		dir  string
	}{{"mem", vfs.NewMem(), "/c"}, {"os", vfs.OS, filepath.Join(t.TempDir(), "commitlog")}} {
		t.Run(fsys.name, func(t *testing.T) {
			x := newFixture(t, 64<<10)
			x.cfg.FS, x.cfg.Dir = fsys.fs, fsys.dir
			l := x.open()
			if l.Min() != 0 || l.End() != 0 || l.Flushed() != 0 {
				t.Fatalf("empty log: %d, %d, %d", l.Min(), l.End(), l.Flushed())
			}
			var c commitlog.Counter
			c.Set(7)
			a, b, k := one(t, 1000, &c), batch(t, &c, 200, 300), one(t, 500, &c)
			k.KeepQueueOffset = true
			d := one(t, 100, &c)
			mustAppend(t, l, a, b, k, d)
			want := []rec{
				{0, 1000, 7, epoch.UnixMilli()},
				{1000, 200, 8, epoch.UnixMilli()},
				{1200, 300, 9, epoch.UnixMilli()},
				{1500, 500, 0, epoch.UnixMilli()},
				{2000, 100, 10, epoch.UnixMilli()},
			}
			if a.PhysicalOffset != 0 || b.PhysicalOffset != 1000 || b.QueueOffset != 8 || b.End != 1500 || d.QueueOffset != 10 || c.Next() != 11 {
				t.Fatalf("results: %+v, %+v, %+v, next %d", a, b, d, c.Next())
			}
			if l.End() != 2100 || l.Flushed() != 0 || l.Confirmed() != 2100 {
				t.Fatalf("end %d, flushed %d", l.End(), l.Flushed())
			}
			for _, hot := range []bool{false, true} {
				got, end := walk(t, l, 0, commitlog.WalkOptions{VerifyBody: true, Hot: hot})
				if !slices.Equal(got, want) || end.Reason != commitlog.EndLimit || end.Offset != 2100 || end.Last != 2000 || end.Records != 5 {
					t.Fatalf("hot %v: %v, %+v", hot, got, end)
				}
			}
			view, release, err := l.View(1000, 500)
			if err != nil || !bytes.Equal(view, b.Buf) {
				t.Fatalf("View: %v", err)
			}
			release()
			got := make([]byte, 1000)
			if err := l.ReadAt(got, 0); err != nil || !bytes.Equal(got, a.Buf) {
				t.Fatalf("ReadAt: %v", err)
			}
			for _, r := range [][2]int64{{-1, 1}, {2100, 1}, {2000, 101}, {1 << 62, 1}} {
				if err := l.ReadAt(make([]byte, r[1]), r[0]); !errors.Is(err, commitlog.ErrOutOfRange) {
					t.Errorf("ReadAt(%d, %d) = %v", r[0], r[1], err)
				}
				if _, _, err := l.View(r[0], int(r[1])); !errors.Is(err, commitlog.ErrOutOfRange) {
					t.Errorf("View(%d, %d) = %v", r[0], r[1], err)
				}
			}
			if err := l.Flush(); err != nil || l.Flushed() != 2100 {
				t.Fatalf("Flush: %v, flushed %d", err, l.Flushed())
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatalf("second Close: %v", err)
			}
			late := one(t, 100, &c)
			if l.AppendBatch([]*commitlog.Append{late}); !errors.Is(late.Err, commitlog.ErrClosed) {
				t.Fatalf("append to a closed log: %v", late.Err)
			}

			l = x.open()
			if l.AppendBatch([]*commitlog.Append{late}); !errors.Is(late.Err, commitlog.ErrNotRecovered) {
				t.Fatalf("append before recovery: %v", late.Err)
			}
			end := x.recoverLog(l)
			if end.Reason != commitlog.EndOfData || end.Offset != 2100 || l.End() != 2100 || l.Flushed() != 2100 {
				t.Fatalf("after reopening: %+v, end %d", end, l.End())
			}
			mustAppend(t, l, one(t, 150, &c))
			if got, _ := walk(t, l, 2000, commitlog.WalkOptions{}); len(got) != 2 || got[1].off != 2100 {
				t.Fatalf("after reopening: %v", got)
			}
		})
	}
}

func TestStoreTimeNeverGoesBack(t *testing.T) {
	x := newFixture(t, 64<<10)
	clk := clock.NewManual(epoch)
	x.cfg.Clock = clk
	l := x.open()
	var c commitlog.Counter
	var times []int64
	put := func() {
		a := one(t, 100, &c)
		mustAppend(t, l, a)
		times = append(times, a.StoreTimestamp-epoch.UnixMilli())
	}
	put()
	clk.Advance(-time.Minute)
	put()
	clk.Advance(2 * time.Minute)
	put()
	if want := []int64{0, 0, 60_000}; !slices.Equal(times, want) {
		t.Fatalf("store times %v, want %v", times, want)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	clk.Set(epoch)
	times = nil
	l, _ = x.recover()
	put()
	if times[0] != 60_000 {
		t.Fatalf("after a restart with the clock set back: %v", times)
	}
	l.FloorStoreTime(epoch.Add(48 * time.Hour).UnixMilli())
	put()
	if times[1] != 60_000 {
		t.Fatalf("a time far in the future is not kept up with: %v", times)
	}
}

func TestBadAppendsAreRefused(t *testing.T) {
	x := newFixture(t, 4096)
	l := x.open()
	var c commitlog.Counter
	for name, a := range map[string]*commitlog.Append{
		"empty":        {Counter: &c},
		"short":        {Buf: make([]byte, 50), Counter: &c},
		"sum":          {Buf: record(t, 200, 1), Sizes: []int32{100, 101}, Counter: &c},
		"no counter":   {Buf: record(t, 200, 1)},
		"short record": {Buf: record(t, 200, 1), Sizes: []int32{190, 10}, Counter: &c},
	} {
		l.AppendBatch([]*commitlog.Append{a})
		if a.Err == nil {
			t.Errorf("%s: appended", name)
		}
	}
	big := one(t, 4096-message.BlankLen+1, &c)
	ok := one(t, 4096-message.BlankLen, &c)
	l.AppendBatch([]*commitlog.Append{big, ok})
	if !errors.Is(big.Err, commitlog.ErrTooLarge) || ok.Err != nil {
		t.Fatalf("too large: %v; largest: %v", big.Err, ok.Err)
	}
	if ok.PhysicalOffset != 0 || ok.QueueOffset != 0 || c.Next() != 1 {
		t.Fatalf("a refused record left a trace: %+v, next %d", ok, c.Next())
	}
}

func ExampleLog_errors() {
	err := &commitlog.FullError{Path: "/store/commitlog/0", Err: errors.New("no space left on device")}
	fmt.Println(err, errors.Is(err, commitlog.ErrFull))
	// Output: cannot reserve space for commit log "/store/commitlog/0": no space left on device true
}

// The steady state allocates nothing: not per record, not per walk of a follower, not per view.
func TestHotPathDoesNotAllocate(t *testing.T) {
	x := newFixture(t, 16<<20)
	x.cfg.FS, x.cfg.Dir = vfs.OS, t.TempDir()
	l := x.open()
	var c commitlog.Counter
	as := []*commitlog.Append{one(t, 1000, &c), batch(t, &c, 500, 600), one(t, 100, &c)}
	mustAppend(t, l, as...)
	var pos int64
	count := func(int64, message.View) error { return nil }
	n := testing.AllocsPerRun(100, func() {
		l.AppendBatch(as)
		end, err := l.Walk(pos, commitlog.WalkOptions{Hot: true}, count)
		if err != nil || as[2].Err != nil {
			t.Fatal(err, as[2].Err)
		}
		pos = end.Offset
		_, release, err := l.View(as[0].PhysicalOffset, 1000)
		if err != nil {
			t.Fatal(err)
		}
		release()
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestLockHeld(t *testing.T) {
	x := newFixture(t, 1<<20)
	clk := clock.NewManual(epoch)
	x.cfg.Clock = clk
	l := x.open()
	held := []time.Duration{l.LockHeld()}
	x.fs.(*vfs.Mem).Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite {
			clk.Advance(1500 * time.Millisecond)
			held = append(held, l.LockHeld())
		}
		return nil
	})
	var c commitlog.Counter
	mustAppend(t, l, one(t, 100, &c))
	held = append(held, l.LockHeld())
	if want := []time.Duration{0, 1500 * time.Millisecond, 0}; !slices.Equal(held, want) {
		t.Fatalf("held %v, want %v", held, want)
	}
}

// TryAppendBatch neither waits for an append that waits for the disk nor makes a file.
func TestTryAppendDoesNotWait(t *testing.T) {
	x := newFixture(t, 64<<10)
	l := x.open()
	var c commitlog.Counter
	if l.TryAppendBatch([]*commitlog.Append{one(t, 100, &c)}) {
		t.Error("an append to a log without a file")
	}
	busy := false
	x.fs.(*vfs.Mem).Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite && !busy {
			busy = true
			if l.TryAppendBatch([]*commitlog.Append{one(t, 100, &c)}) {
				t.Error("an append within another")
			}
		}
		return nil
	})
	mustAppend(t, l, one(t, 100, &c))
	if !busy {
		t.Fatal("no write was seen")
	}
	a, b := one(t, 1000, &c), one(t, 200, &c)
	if !l.TryAppendBatch([]*commitlog.Append{a, b}) || a.Err != nil || b.Err != nil || b.PhysicalOffset != 1100 || l.End() != 1300 {
		t.Fatalf("an append to a free log: %+v, %+v, end %d", a, b, l.End())
	}
	if l.TryAppendBatch([]*commitlog.Append{one(t, 63<<10, &c), one(t, 1<<10, &c)}) || l.End() != 1300 || c.Next() != 3 {
		t.Errorf("an append that needs another file: end %d, next %d", l.End(), c.Next())
	}
}

// With PropCRC every record is sealed after it got its place, and a walk can hold it to that.
func TestPropCRC(t *testing.T) {
	x := newFixture(t, 1<<16)
	x.cfg.PropCRC = true
	l := x.open()
	host := netip.MustParseAddrPort("10.0.0.1:10911")
	r := message.Record{BornHost: host, StoreHost: host, Topic: []byte("T"), Body: []byte("body"), Properties: []byte("k\x01v\x02")}
	var c commitlog.Counter
	buf := r.Append(nil, true)
	as := []*commitlog.Append{
		{Buf: slices.Clone(buf), Counter: &c},
		{Buf: append(slices.Clone(buf), buf...), Sizes: []int32{int32(len(buf)), int32(len(buf))}, Counter: &c},
	}
	mustAppend(t, l, as...)
	o := commitlog.WalkOptions{VerifyProp: true}
	if got, end := walk(t, l, 0, o); len(got) != 3 || end.Reason != commitlog.EndLimit {
		t.Fatalf("%v, %+v", got, end)
	}
	x.fs.(*vfs.Mem).Corrupt(x.dir+"/00000000000000000000", int64(len(buf))+27, []byte{9}) // queue offset: no other checksum covers it
	var found []commitlog.Finding
	o.OnFinding = func(f commitlog.Finding) error { found = append(found, f); return nil }
	if got, _ := walk(t, l, 0, o); len(got) != 2 || len(found) != 1 || found[0].From != int64(len(buf)) {
		t.Fatalf("%v, %+v", got, found)
	}
}
