package vfs_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"mqx/internal/vfs"
)

func create(t *testing.T, fsys vfs.FS, name string) vfs.File {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func write(t *testing.T, f vfs.File, b []byte, off int64) {
	t.Helper()
	if n, err := f.WriteAt(b, off); err != nil || n != len(b) {
		t.Fatalf("WriteAt = %d, %v", n, err)
	}
}

func sync(t *testing.T, fsys vfs.FS, f vfs.File) {
	t.Helper()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := fsys.SyncDir(filepath.Dir(f.Name())); err != nil {
		t.Fatal(err)
	}
}

// Both implementations keep to one contract.
func TestContract(t *testing.T) {
	for _, c := range []struct {
		name string
		fsys vfs.FS
		dir  string
	}{
		{"os", vfs.OS, t.TempDir()},
		{"mem", vfs.NewMem(), "/data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(c.dir, "a", "b")
			if err := c.fsys.MkdirAll(dir); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(dir, "file")
			if _, err := c.fsys.Open(name); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("Open of a missing file: %v", err)
			}
			f := create(t, c.fsys, name)
			if _, err := c.fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL); !errors.Is(err, fs.ErrExist) {
				t.Fatalf("O_EXCL: %v", err)
			}
			if err := f.Truncate(1 << 20); err != nil {
				t.Fatal(err)
			}
			if ds, ok := f.(vfs.DataSeeker); ok {
				if _, err := ds.NextData(0); !errors.Is(err, io.EOF) {
					t.Fatalf("NextData of a hole: %v", err)
				}
			}
			if err := f.Allocate(0, 64<<10); err != nil && !errors.Is(err, errors.ErrUnsupported) {
				t.Fatal(err)
			}
			write(t, f, []byte("hello"), 100_000)
			if ds, ok := f.(vfs.DataSeeker); ok {
				if off, err := ds.NextData(0); err != nil || off > 100_000 {
					t.Fatalf("NextData = %d, %v", off, err)
				}
				if _, err := ds.NextData(200_000); !errors.Is(err, io.EOF) {
					t.Fatalf("NextData behind the data: %v", err)
				}
			}
			sync(t, c.fsys, f)
			if size, err := f.Size(); err != nil || size != 1<<20 {
				t.Fatalf("Size = %d, %v", size, err)
			}
			b := make([]byte, 7)
			if _, err := f.ReadAt(b, 99_999); err != nil || string(b) != "\x00hello\x00" {
				t.Fatalf("ReadAt = %q, %v", b, err)
			}
			if n, err := f.ReadAt(b, 1<<20-3); n != 3 || !errors.Is(err, io.EOF) {
				t.Fatalf("ReadAt at the end = %d, %v", n, err)
			}
			if err := vfs.WriteFileDurable(c.fsys, filepath.Join(dir, "conf"), []byte("one")); err != nil {
				t.Fatal(err)
			}
			if err := vfs.WriteFileDurable(c.fsys, filepath.Join(dir, "conf"), []byte("two!")); err != nil {
				t.Fatal(err)
			}
			got, err := vfs.ReadFile(c.fsys, filepath.Join(dir, "conf"))
			if err != nil || string(got) != "two!" {
				t.Fatalf("ReadFile = %q, %v", got, err)
			}
			list, err := c.fsys.ReadDir(dir)
			if err != nil || len(list) != 2 || list[0].Name() != "conf" || list[1].Name() != "file" {
				t.Fatalf("ReadDir = %v, %v", list, err)
			}
			if st, err := c.fsys.Stat(name); err != nil || st.Size() != 1<<20 || st.IsDir() {
				t.Fatalf("Stat = %v, %v", st, err)
			}
			if err := c.fsys.Remove(dir); err == nil {
				t.Fatal("a directory with files was removed")
			}
			if err := c.fsys.Remove(name); err != nil {
				t.Fatal(err)
			}
			if _, err := f.ReadAt(b, 99_999); err != nil || string(b) != "\x00hello\x00" {
				t.Fatalf("ReadAt of a removed file that is open = %q, %v", b, err)
			}
			if u, err := c.fsys.Usage(dir); err != nil || u.Total <= 0 || u.Free > u.Total || u.Used() < 0 || u.Used() > 1 {
				t.Fatalf("Usage = %+v, %v", u, err)
			}
			if err := c.fsys.RemoveAll(c.dir); err != nil {
				t.Fatal(err)
			}
			if _, err := c.fsys.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("Stat after RemoveAll: %v", err)
			}
		})
	}
}

func TestLockExcludes(t *testing.T) {
	for _, c := range []struct {
		name string
		fsys vfs.FS
		path string
	}{
		{"os", vfs.OS, filepath.Join(t.TempDir(), "lock")},
		{"mem", vfs.NewMem(), "/lock"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := c.fsys.Lock(c.path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.fsys.Lock(c.path); !errors.Is(err, vfs.ErrLocked) {
				t.Fatalf("second Lock: %v", err)
			}
			// Opening and closing the file elsewhere in this process does not lose the lock.
			f, err := c.fsys.Open(c.path)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := c.fsys.Lock(c.path); !errors.Is(err, vfs.ErrLocked) {
				t.Fatalf("third Lock: %v", err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			l, err = c.fsys.Lock(c.path)
			if err != nil {
				t.Fatalf("Lock after release: %v", err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Every outcome of a power failure occurs, and nothing else than they.
func TestPowerLossOfBytes(t *testing.T) {
	was, is := bytes.Repeat([]byte{1}, 4096), bytes.Repeat([]byte{2}, 4096)
	var dropped, kept, torn int
	for seed := range uint64(200) {
		m := vfs.NewMem()
		f := create(t, m, "/f")
		write(t, f, was, 0)
		sync(t, m, f)
		write(t, f, is, 0)
		got, err := vfs.ReadFile(m.PowerLoss(seed), "/f")
		if err != nil || len(got) != 4096 {
			t.Fatalf("seed %d: %d bytes, %v", seed, len(got), err)
		}
		switch {
		case bytes.Equal(got, was):
			dropped++
		case bytes.Equal(got, is):
			kept++
		default:
			torn++
			for s := 0; s < 4096; s += 512 {
				if part := got[s : s+512]; !bytes.Equal(part, was[:512]) && !bytes.Equal(part, is[:512]) {
					t.Fatalf("seed %d: torn within the sector at %d", seed, s)
				}
			}
		}
		if after, _ := vfs.ReadFile(m.Kill(), "/f"); !bytes.Equal(after, is) {
			t.Fatal("a kill loses what was written")
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		if got, _ = vfs.ReadFile(m.PowerLoss(seed), "/f"); !bytes.Equal(got, is) {
			t.Fatalf("seed %d: synced bytes are gone", seed)
		}
	}
	if dropped == 0 || kept == 0 || torn == 0 {
		t.Fatalf("dropped %d, kept %d, torn %d", dropped, kept, torn)
	}
}

func TestPowerLossOfNames(t *testing.T) {
	outcomes := map[string]int{}
	for seed := range uint64(100) {
		m := vfs.NewMem()
		f := create(t, m, "/a")
		write(t, f, []byte("old"), 0)
		sync(t, m, f)
		g := create(t, m, "/a.tmp")
		write(t, g, []byte("new"), 0)
		if err := g.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := m.Rename("/a.tmp", "/a"); err != nil {
			t.Fatal(err)
		}
		p := m.PowerLoss(seed)
		got, err := vfs.ReadFile(p, "/a")
		if err != nil {
			t.Fatal(err)
		}
		outcomes[string(got)]++
		if err := m.SyncDir("/"); err != nil {
			t.Fatal(err)
		}
		if got, _ = vfs.ReadFile(m.PowerLoss(seed), "/a"); string(got) != "new" {
			t.Fatalf("after SyncDir: %q", got)
		}
	}
	if len(outcomes) != 2 || outcomes["old"] == 0 || outcomes["new"] == 0 {
		t.Fatalf("outcomes %v", outcomes)
	}
}

func TestPowerLossOfDirectories(t *testing.T) {
	for seed := range uint64(20) {
		m := vfs.NewMem()
		if err := vfs.MkdirAllDurable(m, "/a/b/c"); err != nil {
			t.Fatal(err)
		}
		f := create(t, m, "/a/b/c/f")
		sync(t, m, f)
		if err := vfs.MkdirAllDurable(m, "/a/b/c"); err != nil {
			t.Fatal(err)
		}
		if _, err := m.PowerLoss(seed).Stat("/a/b/c/f"); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func TestPowerLossOfATruncation(t *testing.T) {
	outcomes := map[string]int{}
	for seed := range uint64(100) {
		m := vfs.NewMem()
		f := create(t, m, "/a")
		write(t, f, []byte("abcdef"), 0)
		sync(t, m, f)
		for _, size := range []int64{2, 6} {
			if err := f.Truncate(size); err != nil {
				t.Fatal(err)
			}
		}
		got, _ := vfs.ReadFile(m.PowerLoss(seed), "/a")
		outcomes[string(got)]++
		sync(t, m, f)
		if got, _ = vfs.ReadFile(m.PowerLoss(seed), "/a"); string(got) != "ab\x00\x00\x00\x00" {
			t.Fatalf("after Sync: %q", got)
		}
	}
	if len(outcomes) != 2 || outcomes["abcdef"] == 0 || outcomes["ab\x00\x00\x00\x00"] == 0 {
		t.Fatalf("outcomes %v", outcomes)
	}
}

// After a failed sync the bytes are lost for the disk, whatever a second sync says.
func TestFailedSyncLosesBytes(t *testing.T) {
	m := vfs.NewMem()
	f := create(t, m, "/f")
	write(t, f, []byte("old"), 0)
	sync(t, m, f)
	write(t, f, []byte("new"), 0)
	m.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			return syscall.EIO
		}
		return nil
	})
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Sync = %v", err)
	}
	m.Inject(nil)
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		if got, _ := vfs.ReadFile(m.PowerLoss(seed), "/f"); string(got) != "old" {
			t.Fatalf("seed %d: %q", seed, got)
		}
	}
	write(t, f, []byte("NEW"), 0)
	sync(t, m, f)
	if got, _ := vfs.ReadFile(m.PowerLoss(1), "/f"); string(got) != "NEW" {
		t.Fatalf("written and synced again: %q", got)
	}
}

func TestFaults(t *testing.T) {
	m := vfs.NewMem()
	f := create(t, m, "/f")
	for _, kind := range []vfs.OpKind{vfs.OpWrite, vfs.OpAllocate, vfs.OpTruncate, vfs.OpRename, vfs.OpCreate, vfs.OpMap, vfs.OpRead} {
		m.Inject(func(op vfs.Op) error {
			if op.Kind == kind && op.Path == "/f" {
				return syscall.EIO
			}
			return nil
		})
		var err error
		switch kind {
		case vfs.OpWrite:
			_, err = f.WriteAt([]byte("x"), 0)
		case vfs.OpAllocate:
			err = f.Allocate(0, 1)
		case vfs.OpTruncate:
			err = f.Truncate(1)
		case vfs.OpRename:
			err = m.Rename("/f", "/g")
		case vfs.OpCreate:
			_, err = m.OpenFile("/f", os.O_CREATE|os.O_RDWR)
		case vfs.OpMap:
			_, err = f.(vfs.Mapper).Map(0)
		case vfs.OpRead:
			_, err = f.ReadAt(make([]byte, 1), 0)
		}
		var pe *fs.PathError
		if !errors.Is(err, syscall.EIO) || !errors.As(err, &pe) || pe.Path != "/f" {
			t.Errorf("%v: %v", kind, err)
		}
	}
	m.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite {
			return &vfs.ShortWrite{N: 3, Err: syscall.EIO}
		}
		return nil
	})
	if n, err := f.WriteAt([]byte("abcdef"), 0); n != 3 || !errors.Is(err, syscall.EIO) {
		t.Fatalf("short write = %d, %v", n, err)
	}
	m.Inject(nil)
	if got, _ := vfs.ReadFile(m, "/f"); string(got) != "abc" {
		t.Fatalf("after a short write: %q", got)
	}
}

func TestCapacity(t *testing.T) {
	m := vfs.NewMem()
	m.SetCapacity(4 * 4096)
	f := create(t, m, "/f")
	if err := f.Truncate(1 << 20); err != nil {
		t.Fatalf("a sparse file needs no space: %v", err)
	}
	if err := f.Allocate(0, 2*4096); err != nil {
		t.Fatal(err)
	}
	g := create(t, m, "/g")
	if n, err := g.WriteAt(make([]byte, 3*4096), 0); n != 2*4096 || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("WriteAt over the capacity = %d, %v", n, err)
	}
	write(t, f, make([]byte, 2*4096), 0)
	if u, _ := m.Usage("/"); u.Free != 0 || u.Total != 4*4096 {
		t.Fatalf("Usage = %+v", u)
	}
	if err := m.Remove("/g"); err != nil {
		t.Fatal(err)
	}
	if u, _ := m.Usage("/"); u.Free != 0 {
		t.Fatalf("a removed file that is open has its blocks: %+v", u)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if u, _ := m.Usage("/"); u.Free != 2*4096 {
		t.Fatalf("Usage after the last close = %+v", u)
	}
}

func TestMappingShowsWrites(t *testing.T) {
	m := vfs.NewMem()
	f := create(t, m, "/f")
	if err := f.Truncate(8192); err != nil {
		t.Fatal(err)
	}
	mp, err := f.(vfs.Mapper).Map(8192)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f, []byte("seen"), 5000)
	if got := mp.Bytes()[5000:5004]; string(got) != "seen" {
		t.Fatalf("mapping shows %q", got)
	}
	if err := mp.Unmap(); err != nil {
		t.Fatal(err)
	}
}

// A directory that was renamed is, after a power loss, at the old name or at the new one with all that is in it, and at
// the new one for certain once a parent was synced.
func TestRenameDirectory(t *testing.T) {
	m := vfs.NewMem()
	for _, dir := range []string{"/a", "/b"} {
		if err := vfs.MkdirAllDurable(m, dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := vfs.MkdirAllDurable(m, "/a/x/y"); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFileDurable(m, "/a/x/y/f", []byte("text")); err != nil {
		t.Fatal(err)
	}
	if err := m.Rename("/a/x", "/b"); err == nil {
		t.Error("a directory was renamed onto another one")
	}
	if err := m.Rename("/a/x", "/b/z"); err != nil {
		t.Fatal(err)
	}
	where := func(m *vfs.Mem) string {
		out := ""
		for _, name := range []string{"/a/x/y/f", "/b/z/y/f"} {
			if b, err := vfs.ReadFile(m, name); err == nil && string(b) == "text" {
				out += name
			}
		}
		return out
	}
	seen := map[string]int{}
	m.EachPowerLoss(func(after *vfs.Mem) bool { seen[where(after)]++; return true })
	if len(seen) != 2 || seen["/a/x/y/f"] == 0 || seen["/b/z/y/f"] == 0 {
		t.Errorf("after a power loss: %v", seen)
	}
	if got := where(m.Kill()); got != "/b/z/y/f" {
		t.Errorf("after a kill: %q", got)
	}
	if err := m.SyncDir("/a"); err != nil {
		t.Fatal(err)
	}
	m.EachPowerLoss(func(after *vfs.Mem) bool {
		if got := where(after); got != "/b/z/y/f" {
			t.Errorf("after it was synced: %q", got)
		}
		return true
	})
}
