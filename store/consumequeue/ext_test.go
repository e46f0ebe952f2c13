package consumequeue

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/vfs"
)

const extFile = 256

func extSet(fsys vfs.FS) *Set {
	return NewSet(Config{FS: fsys, Root: "/s", FileBytes: 20 * 10, ExtBytes: extFile})
}

// extended is a queue with extension units, as the store puts them together.
type extended struct {
	t *testing.T
	s *Set
	q *Queue
	e *Ext
}

func newExtended(t *testing.T, fsys vfs.FS) *extended {
	t.Helper()
	s := extSet(fsys)
	x := &extended{t, s, s.New("T", 0), s.NewExt("T", 0)}
	x.q.SetExt(x.e)
	return x
}

func unitAt(off int64) Unit { return Unit{Phys: off * 100, Size: 100, TagsCode: off} }

func extAt(off int64) ExtUnit {
	return ExtUnit{TagsCode: off, StoreTime: 1000 + off, BitMap: bytes.Repeat([]byte{byte(off + 1)}, int(off%5))}
}

// put gives units from the queue's end up to an offset.
func (x *extended) put(to int64) {
	x.t.Helper()
	for off := x.q.Max(); off < to; off++ {
		if err := x.e.Settle(x.q); err != nil {
			x.t.Fatal(err)
		}
		u := unitAt(off)
		addr, ok := x.e.Put(extAt(off))
		if !ok {
			x.t.Fatalf("no room at %d", off)
		}
		u.TagsCode = addr
		if got := x.q.Put(off, u, 20); got != Appended {
			x.t.Fatal(got)
		}
	}
}

func (x *extended) check(from, to int64) {
	x.t.Helper()
	for off := from; off < to; off++ {
		u, err := x.q.At(off)
		if err != nil {
			x.t.Fatal(err)
		}
		got, err := x.e.Get(u.TagsCode)
		if diff := cmp.Diff(extAt(off), got, cmp.Transformer("text", func(b []byte) string { return string(b) })); err != nil || diff != "" {
			x.t.Fatalf("at %d: %v\n%s", off, err, diff)
		}
	}
}

func (x *extended) reload(fsys vfs.FS) *extended {
	x.t.Helper()
	s := extSet(fsys)
	q, _, _, err := s.Load(Found{"T", 0})
	if err != nil {
		x.t.Fatal(err)
	}
	e, err := s.LoadExt(Found{"T", 0})
	if err != nil || e == nil {
		x.t.Fatal(e, err)
	}
	q.SetExt(e)
	return &extended{x.t, s, q, e}
}

func TestExtUnitsAreReadBackAndGoOn(t *testing.T) {
	m := vfs.NewMem()
	if err := vfs.MkdirAllDurable(m, "/s"); err != nil {
		t.Fatal(err)
	}
	x := newExtended(t, m)
	x.put(15)
	x.check(0, 15) // from memory
	if err := x.s.Sync(); err != nil {
		t.Fatal(err)
	}
	if n := x.s.Pending(); n != 0 {
		t.Errorf("%d bytes are pending", n)
	}
	x.check(0, 15)
	x = x.reload(m.PowerLoss(1))
	x.put(40)
	x.check(0, 40)
	if err := x.s.Sync(); err != nil {
		t.Fatal(err)
	}
	x.check(0, 40)
}

// A file ends in -1 where the next unit has no room, and always keeps four bytes.
func TestExtFileEnds(t *testing.T) {
	m := vfs.NewMem()
	x := newExtended(t, m)
	x.put(30)
	if err := x.s.WriteOut(); err != nil {
		t.Fatal(err)
	}
	b, err := vfs.ReadFile(m, "/s/consumequeue_ext/T/0/00000000000000000000")
	if err != nil || len(b) != extFile {
		t.Fatal(len(b), err)
	}
	at := 0
	for off := int64(0); ; off++ {
		size := int(binary.BigEndian.Uint16(b[at:]))
		if size == 0xFFFF {
			if next := extAt(off); next.Len() <= extFile-at-extEnd {
				t.Errorf("the file ends at %d, where %d bytes fit", at, next.Len())
			}
			break
		}
		want := AppendExtUnit(nil, extAt(off))
		if !bytes.Equal(b[at:at+size], want) {
			t.Fatalf("unit %d is %x, want %x", off, b[at:at+size], want)
		}
		at += size
	}
	if len(bytes.Trim(b[at+2:], "\x00")) > 0 {
		t.Error("something lies behind the end")
	}
	if _, ok := x.e.Put(ExtUnit{BitMap: make([]byte, extFile-extHead-extEnd+1)}); ok {
		t.Error("a unit that no file can hold was taken")
	}
}

// What was dropped from the queue goes from the extension too, and new units take the place.
func TestExtFollowsACut(t *testing.T) {
	for _, keep := range []int64{0, 1, 7, 12, 23, 30} {
		t.Run(fmt.Sprint(keep), func(t *testing.T) {
			m := vfs.NewMem()
			x := newExtended(t, m)
			x.put(30)
			if err := x.s.Truncate(x.q, keep*100); err != nil {
				t.Fatal(err)
			}
			x.put(34)
			if err := x.s.Sync(); err != nil {
				t.Fatal(err)
			}
			x.check(0, 34)
			whole := vfs.NewMem()
			y := newExtended(t, whole)
			y.put(34)
			if err := y.s.Sync(); err != nil {
				t.Fatal(err)
			}
			for _, start := range x.e.mu.starts {
				a, err := vfs.ReadFile(m, x.e.path(start))
				if err != nil {
					t.Fatal(err)
				}
				b, err := vfs.ReadFile(whole, x.e.path(start))
				if err != nil || !bytes.Equal(a, b) {
					t.Errorf("file %d differs from one that was never cut: %v", start, err)
				}
			}
		})
	}
}

// Units without an extension stand between others when it was switched off for a while.
func TestExtAfterAPause(t *testing.T) {
	m := vfs.NewMem()
	x := newExtended(t, m)
	x.put(5)
	for off := int64(5); off < 8; off++ {
		x.q.Put(off, unitAt(off), 20)
	}
	if err := x.s.Sync(); err != nil {
		t.Fatal(err)
	}
	x = x.reload(m)
	x.put(12)
	x.check(0, 5)
	x.check(8, 12)
}

func TestExtUnreadable(t *testing.T) {
	m := vfs.NewMem()
	x := newExtended(t, m)
	x.put(5)
	if err := x.s.Sync(); err != nil {
		t.Fatal(err)
	}
	last, err := x.q.At(4)
	if err != nil {
		t.Fatal(err)
	}
	f, err := m.OpenFile(x.e.path(0), 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{0xFF, 0xFE}, last.TagsCode-math.MinInt64); err != nil {
		t.Fatal(err)
	}
	x = x.reload(m)
	if _, err := x.e.Get(last.TagsCode); !errors.Is(err, ErrNoUnits) {
		t.Errorf("%v", err)
	}
	x.put(8)
	x.check(0, 4)
	x.check(5, 8)
	if u, _ := x.q.At(5); u.TagsCode <= last.TagsCode {
		t.Error("the address of the unreadable unit was given again")
	}
	for _, addr := range []int64{0, -1, -1 << 31, last.TagsCode + 1<<40} {
		if _, err := x.e.Get(addr); !errors.Is(err, ErrNoUnits) {
			t.Errorf("%d: %v", addr, err)
		}
	}
	var none *Ext
	if _, err := none.Get(last.TagsCode); !errors.Is(err, ErrNoUnits) {
		t.Errorf("%v", err)
	}
}

func TestExtExpires(t *testing.T) {
	x := newExtended(t, vfs.NewMem())
	x.put(60)
	if err := x.s.Sync(); err != nil {
		t.Fatal(err)
	}
	before := len(x.e.mu.starts)
	if _, err := x.s.Expire(x.q, 45*100); err != nil {
		t.Fatal(err)
	}
	if n := len(x.e.mu.starts); n >= before {
		t.Errorf("%d files, %d before", n, before)
	}
	x.check(45, 60)
	x.put(70)
	x.check(45, 70)
}

// When the extension cannot be written, the queue waits with its units too.
func TestExtDiskFull(t *testing.T) {
	m := vfs.NewMem()
	x := newExtended(t, m)
	full := true
	m.Inject(func(op vfs.Op) error {
		if full && op.Path == x.e.path(0) && op.Kind == vfs.OpWrite {
			return errors.New("no space")
		}
		return nil
	})
	x.put(5)
	if err := x.s.Sync(); err == nil {
		t.Error("no error")
	}
	if x.q.mu.written != 0 {
		t.Error("units point to what is not there")
	}
	full = false
	if err := x.s.Sync(); err != nil {
		t.Fatal(err)
	}
	x.reload(m).check(0, 5)
}

func FuzzExtUnit(f *testing.F) {
	f.Add(AppendExtUnit(nil, extAt(4)))
	f.Add([]byte{0xFF, 0xFF})
	f.Fuzz(func(t *testing.T, b []byte) {
		u, err := decodeExt(b)
		if err != nil {
			return
		}
		if got := AppendExtUnit(nil, u); !bytes.Equal(got, b[:u.Len()]) {
			t.Errorf("%x became %x", b[:u.Len()], got)
		}
	})
}
