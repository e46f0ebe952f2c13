package commitlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/internal/testkit"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store/commitlog"
)

// written makes a log of n records of size bytes in files of fileSize, flushed and closed.
func written(t *testing.T, fileSize int64, n, size int) (*fixture, []rec) {
	t.Helper()
	x := newFixture(t, fileSize)
	l := x.open()
	var c commitlog.Counter
	for range n {
		mustAppend(t, l, one(t, size, &c))
	}
	all, _ := walk(t, l, 0, commitlog.WalkOptions{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return x, all
}

func (x *fixture) corrupt(off int64, b []byte) {
	start := off - off%x.cfg.FileSize
	x.fs.(*vfs.Mem).Corrupt(fmt.Sprintf("%s/%020d", x.dir, start), off-start, b)
}

// N002, N006: what is broken with something whole behind it is stepped over and told; what is broken at the end ends
// the log.
func TestBrokenRecords(t *testing.T) {
	const size, fileSize, n = 1000, 1 << 16, 130 // three files; record 64 rolls
	junk := bytes.Repeat([]byte{0xAA}, 3000)
	for _, c := range []struct {
		name    string
		harm    func(x *fixture, all []rec)
		missing []int // records that are not delivered
		torn    bool  // the missing ones are the end
		finding int   // expected findings
	}{
		{"size of one", func(x *fixture, all []rec) { x.corrupt(all[5].off, []byte{0, 0, 0, 7}) }, []int{5}, false, 1},
		{"huge size", func(x *fixture, all []rec) { x.corrupt(all[5].off, []byte{0x7f, 0xff, 0xff, 0xff}) }, []int{5}, false, 1},
		{"negative size", func(x *fixture, all []rec) { x.corrupt(all[5].off, []byte{0xff}) }, []int{5}, false, 1},
		{"magic", func(x *fixture, all []rec) { x.corrupt(all[5].off+4, []byte{1}) }, []int{5}, false, 1},
		{"first record", func(x *fixture, all []rec) { x.corrupt(0, junk[:8]) }, []int{0}, false, 1},
		{"body", func(x *fixture, all []rec) { x.corrupt(all[5].off+500, junk[:1]) }, []int{5}, false, 1},
		{"place", func(x *fixture, all []rec) { x.corrupt(all[5].off+35, junk[:1]) }, []int{5}, false, 1},
		{"three in a row", func(x *fixture, all []rec) { x.corrupt(all[5].off, junk[:2500]) }, []int{5, 6, 7}, false, 1},
		{"two places", func(x *fixture, all []rec) {
			x.corrupt(all[5].off, junk[:10])
			x.corrupt(all[9].off, junk[:10])
		}, []int{5, 9}, false, 2},
		{"zeros", func(x *fixture, all []rec) { x.corrupt(all[5].off, make([]byte, 2000)) }, []int{5, 6}, false, 1},
		{"end of a file with its blank", func(x *fixture, all []rec) { x.corrupt(all[64].off, make([]byte, fileSize-64*size)) }, []int{64}, false, 1},
		{"blank turned into a record", func(x *fixture, all []rec) { x.corrupt(65*size, junk[:8]) }, nil, false, 1},
		{"whole middle file", func(x *fixture, all []rec) { x.corrupt(fileSize, bytes.Repeat(junk[:1], fileSize)) }, seq(65, 130), true, 0},
		{"magic of the last", func(x *fixture, all []rec) { x.corrupt(all[129].off+4, junk[:1]) }, []int{129}, true, 0},
		{"body of the last", func(x *fixture, all []rec) { x.corrupt(all[129].off+500, junk[:1]) }, []int{129}, true, 0},
		{"last two", func(x *fixture, all []rec) { x.corrupt(all[128].off, junk[:1500]) }, []int{128, 129}, true, 0},
		{"last is half", func(x *fixture, all []rec) { x.corrupt(all[129].off+400, make([]byte, 600)) }, []int{129}, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, all := written(t, fileSize, n, size)
			c.harm(x, all)
			var want []rec
			for i, r := range all {
				if !slices.Contains(c.missing, i) {
					want = append(want, r)
				}
			}
			l := x.open()
			var findings []commitlog.Finding
			o := commitlog.WalkOptions{VerifyBody: true, OnFinding: func(f commitlog.Finding) error {
				findings = append(findings, f)
				return nil
			}}
			got, end := walk(t, l, 0, o)
			if !slices.Equal(got, want) {
				t.Fatalf("%d records, want %d", len(got), len(want))
			}
			if len(findings) != c.finding {
				t.Fatalf("findings %+v", findings)
			}
			for _, f := range findings {
				if f.Kind != commitlog.Rot || f.Err == nil || f.To <= f.From || f.Path != fmt.Sprintf("%s/%020d", x.dir, f.From-f.From%fileSize) {
					t.Fatalf("finding %+v", f)
				}
				if i := slices.IndexFunc(all, func(r rec) bool { return r.off == f.From }); c.missing != nil && i != c.missing[0] && i != c.missing[len(c.missing)-1] {
					t.Fatalf("finding %+v", f)
				}
			}
			if c.torn != (end.Reason == commitlog.EndTorn) || c.torn && end.Offset != all[c.missing[0]].off && end.Offset != fileSize {
				t.Fatalf("end %+v", end)
			}
			x.recoverLog(l)
			hot, end := walk(t, l, 0, commitlog.WalkOptions{VerifyBody: true, Hot: true})
			if !slices.Equal(hot, want) || end.Reason != commitlog.EndLimit {
				t.Fatalf("through the mapping: %d records, %+v", len(hot), end)
			}
			stopped := errors.New("stop here")
			o.OnFinding = func(commitlog.Finding) error { return stopped }
			if _, err := l.Walk(0, o, touch); c.finding > 0 && !errors.Is(err, stopped) {
				t.Fatalf("an error of OnFinding: %v", err)
			}
		})
	}
}

func seq(from, to int) (s []int) {
	for i := from; i < to; i++ {
		s = append(s, i)
	}
	return s
}

// An Apache broker cuts its log without clearing what it cuts. When it has appended something since, whole records of
// before the cut stand behind the end, at their places: they are older than the last good one, and no part of the log.
func TestStaleRecordsBehindTheEnd(t *testing.T) {
	x := newFixture(t, 1<<16)
	clk := clock.NewManual(epoch)
	x.cfg.Clock = clk
	l := x.open()
	var c commitlog.Counter
	for range 20 {
		mustAppend(t, l, one(t, 1000, &c))
	}
	old := make([]byte, 15_000)
	if err := l.ReadAt(old, 5000); err != nil {
		t.Fatal(err)
	}
	if err := l.Truncate(5000, ""); err != nil {
		t.Fatal(err)
	}
	c.Set(5)
	clk.Advance(time.Minute)
	mustAppend(t, l, one(t, 1500, &c))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	x.corrupt(6500, old[1500:])
	l = x.open()
	got, end := walk(t, l, 0, commitlog.WalkOptions{VerifyBody: true, OnFinding: func(f commitlog.Finding) error {
		t.Errorf("finding %+v", f)
		return nil
	}})
	if len(got) != 6 || end.Offset != 6500 || end.Reason != commitlog.EndTorn {
		t.Fatalf("%d records, %+v", len(got), end)
	}
	x.recoverLog(l)
	mustAppend(t, l, one(t, 100, &c))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, end := x.recover(); end.Offset != 6600 || end.Reason != commitlog.EndOfData {
		t.Fatalf("after the cut: %+v", end)
	}
}

func TestWalkStops(t *testing.T) {
	x, all := written(t, 1<<16, 100, 1000)
	l := x.open()
	x.recoverLog(l)
	other := errors.New("other")
	for _, c := range []struct{ give, want error }{{commitlog.ErrStop, nil}, {fmt.Errorf("wrapped: %w", commitlog.ErrStop), nil}, {other, other}} {
		n := 0
		end, err := l.Walk(0, commitlog.WalkOptions{}, func(int64, message.View) error {
			if n++; n == 70 {
				return c.give
			}
			return nil
		})
		if !errors.Is(err, c.want) || end.Offset != all[69].off || end.Last != all[68].off || end.Records != 69 || end.Reason != commitlog.EndStopped {
			t.Fatalf("%v: %+v, %v", c.give, end, err)
		}
	}
	if _, err := l.Walk(l.End()+1, commitlog.WalkOptions{}, touch); !errors.Is(err, commitlog.ErrOutOfRange) {
		t.Fatalf("from behind the end: %v", err)
	}
	if end, err := l.Walk(l.End(), commitlog.WalkOptions{}, touch); err != nil || end.Reason != commitlog.EndLimit || end.Last != -1 {
		t.Fatalf("from the end: %+v, %v", end, err)
	}
	x.fs.(*vfs.Mem).Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpRead {
			return other
		}
		return nil
	})
	if _, err := l.Walk(0, commitlog.WalkOptions{}, touch); !errors.Is(err, other) {
		t.Fatalf("a read error: %v", err)
	}
}

// Whatever is done to the bytes of a log: a walk ends, delivers only records that were written, in order, and tells of
// what it skips; after the cut a second walk is clean.
func TestWalkOfRandomDamage(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		x, all := written(t, 1<<13, 40, 150+r.IntN(700))
		known := map[int64]int32{} // no checksum covers the other fields of the head
		for _, a := range all {
			known[a.off] = a.size
		}
		total := all[len(all)-1].off + 1000
		for range 1 + r.IntN(4) {
			b := make([]byte, 1+r.IntN(1+r.IntN(3000)))
			if r.IntN(2) == 0 {
				for i := range b {
					b[i] = byte(r.Uint32())
				}
			}
			off := r.Int64N(total)
			b = b[:min(int64(len(b)), x.cfg.FileSize-off%x.cfg.FileSize)]
			if off-off%x.cfg.FileSize < all[len(all)-1].off {
				x.corrupt(off, b)
			}
		}
		l := x.open()
		pos, skipped := int64(0), int64(0)
		o := commitlog.WalkOptions{VerifyBody: true, OnFinding: func(f commitlog.Finding) error {
			if f.From < pos || f.To <= f.From {
				t.Fatalf("seed %d: finding %+v at %d", seed, f, pos)
			}
			skipped++
			pos = f.To
			return nil
		}}
		end, err := l.Walk(0, o, func(off int64, v message.View) error {
			if off < pos || known[off] != v.Size() {
				return fmt.Errorf("a record of %d bytes at %d was never written", v.Size(), off)
			}
			pos = off + int64(v.Size())
			return nil
		})
		if err != nil || end.Offset < pos {
			t.Fatalf("seed %d: %+v, %v", seed, end, err)
		}
		x.recoverLog(l)
		_, again := walk(t, l, 0, commitlog.WalkOptions{VerifyBody: true})
		if again.Records != end.Records || again.Offset != end.Offset || again.Reason != commitlog.EndLimit {
			t.Fatalf("seed %d: %+v, then %+v", seed, end, again)
		}
	}
}

func FuzzWalk(f *testing.F) {
	x := newFixture(f, 4096)
	l := x.open()
	var c commitlog.Counter
	mustAppend(f, l, one(f, 300, &c), batch(f, &c, 200, 150), one(f, 1000, &c))
	raw := make([]byte, l.End())
	if err := l.ReadAt(raw, 0); err != nil {
		f.Fatal(err)
	}
	golden := testkit.GoldenCommitLog(f, testkit.GoldenStore(f, "basic"))
	f.Add(golden.From(0)[:4096], 3)
	f.Add(raw, 0)
	f.Add(raw[:500], 1)
	f.Add(append(raw[:300:300], message.AppendBlank(nil, 3796)...), 2)
	f.Fuzz(func(t *testing.T, b []byte, from int) {
		y := newFixture(t, 4096)
		y.makeFiles(map[int64]int64{0: 4096, 4096: 4096})
		y.fs.(*vfs.Mem).Corrupt(y.dir+"/00000000000000000000", 0, b)
		y.fs.(*vfs.Mem).Corrupt(y.dir+"/00000000000000004096", 0, b)
		l := y.open()
		start := int64(from&1) * 4096
		end, err := l.Walk(start, commitlog.WalkOptions{VerifyBody: from&2 != 0, VerifyProp: from&4 != 0}, touch)
		if err != nil || end.Offset < start || end.Offset > 8192 {
			t.Fatalf("%+v, %v", end, err)
		}
		if err := l.Truncate(end.Offset, "/salvage"); err != nil {
			t.Fatal(err)
		}
	})
}
