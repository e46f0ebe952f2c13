package consumequeue

import (
	"os"
	"testing"

	"mqx/internal/vfs"
)

// Whatever stands in a queue file: loading, searching, cutting and reading it ends, without a panic.
func FuzzLoad(f *testing.F) {
	var good []byte
	for i := range int64(30) {
		good = AppendUnit(good, unit(i))
	}
	f.Add(good, int64(1_000))
	f.Add(AppendUnit(AppendUnit(nil, Filler), unit(3)), int64(0))
	f.Add(append(append([]byte(nil), good[:100]...), make([]byte, 300)...), int64(400))
	f.Add([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F}, int64(-1))
	f.Fuzz(func(t *testing.T, content []byte, phys int64) {
		m := newMem(t)
		dir := root + "/consumequeue/T/0/"
		if err := m.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
		const size = 50 * UnitSize
		for i, name := range []string{fileName(0), fileName(size)} {
			file, err := m.OpenFile(dir+name, os.O_RDWR|os.O_CREATE)
			if err != nil || file.Truncate(size) != nil || file.Close() != nil {
				t.Fatal(err)
			}
			if from := i * size; from < len(content) {
				m.Corrupt(dir+name, 0, content[from:min(len(content), from+size)])
			}
		}
		s := NewSet(Config{FS: m, Root: root, FileBytes: size})
		defer func() { _ = s.Close() }()
		q, _, _, err := s.Load(Found{"T", 0})
		if err != nil {
			return
		}
		walk(t, q)
		if err := q.CorrectMin(phys); err != nil {
			t.Error(err)
		}
		if _, err := q.Search(phys); err != nil {
			t.Error(err)
		}
		if _, err := q.Reset(phys); err != nil {
			t.Error(err)
		}
		q.Put(q.Max(), Unit{Phys: 1 << 40, Size: 100}, testMinRecord)
		if _, err := q.KeepDropped(1 << 50); err != nil {
			t.Error(err)
		}
		if err := s.Finish(q); err != nil {
			t.Error(err)
		}
		walk(t, q)
	})
}

// walk reads all units that a queue says it has.
func walk(t *testing.T, q *Queue) {
	t.Helper()
	if q.Min() < 0 || q.Min() > q.Max() || q.Max() > 200 {
		t.Fatalf("offsets %d..%d", q.Min(), q.Max())
	}
	for off := q.Min(); off < q.Max(); off++ {
		if _, err := q.At(off); err != nil {
			t.Fatalf("unit %d of %d..%d: %v", off, q.Min(), q.Max(), err)
		}
	}
}

// Whatever stands in an extension file and whatever the address is.
func FuzzExt(f *testing.F) {
	f.Add([]byte{0, 24, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 4, 1, 2, 3, 4}, int64(-1<<63))
	f.Add([]byte{0xFF, 0xFF}, int64(-1<<63))
	f.Fuzz(func(t *testing.T, content []byte, addr int64) {
		m := newMem(t)
		dir := root + "/consumequeue_ext/T/0/"
		if err := m.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFileDurable(m, dir+fileName(0), content); err != nil {
			t.Fatal(err)
		}
		s := NewSet(Config{FS: m, Root: root, FileBytes: 1000})
		defer func() { _ = s.Close() }()
		e, err := s.LoadExt(Found{"T", 0})
		if err != nil {
			t.Fatal(err)
		}
		if u, err := e.Get(addr); err == nil && len(u.BitMap) > len(content) {
			t.Errorf("bit map of %d bytes out of %d", len(u.BitMap), len(content))
		}
	})
}
