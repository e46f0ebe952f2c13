package mapped_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"mqx/internal/vfs"
	"mqx/store/mapped"
)

func open(t *testing.T, fsys vfs.FS, path string, size int64) *mapped.File {
	t.Helper()
	f, err := mapped.Open(fsys, path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return f
}

func each(t *testing.T, f func(t *testing.T, fsys vfs.FS, dir string)) {
	t.Helper()
	t.Run("os", func(t *testing.T) { f(t, vfs.OS, t.TempDir()) })
	t.Run("mem", func(t *testing.T) { f(t, vfs.NewMem(), "/") })
}

func TestViewShowsWrites(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		t.Helper()
		f := open(t, fsys, filepath.Join(dir, "f"), 64<<10)
		if f.Mapped() {
			t.Fatal("mapped before anybody asked")
		}
		b, release, err := f.View(5000, 5)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("hello"), 5000); err != nil {
			t.Fatal(err)
		}
		if string(b) != "hello" {
			t.Fatalf("the view shows %q", b)
		}
		got := make([]byte, 5)
		if err := f.CopyAt(got, 5000); err != nil || string(got) != "hello" {
			t.Fatalf("CopyAt = %q, %v", got, err)
		}
		release()
		for _, r := range [][2]int64{{-1, 1}, {0, 64<<10 + 1}, {64 << 10, 1}, {1 << 62, 1}, {0, -1}} {
			if _, _, err := f.View(r[0], int(r[1])); err == nil {
				t.Errorf("View(%d, %d) succeeds", r[0], r[1])
			}
		}
		if f.Leases() != 0 {
			t.Errorf("%d leases left", f.Leases())
		}
	})
}

func TestLeaseOutlivesCloseAndRemoval(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		t.Helper()
		path := filepath.Join(dir, "f")
		f := open(t, fsys, path, 4096)
		if _, err := f.WriteAt(bytes.Repeat([]byte("x"), 4096), 0); err != nil {
			t.Fatal(err)
		}
		b, release, err := f.View(0, 4096)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		f.Close()
		if err := fsys.Remove(path); err != nil {
			t.Fatal(err)
		}
		if f.Leases() != 1 {
			t.Fatalf("%d leases", f.Leases())
		}
		if !bytes.Equal(b, bytes.Repeat([]byte("x"), 4096)) {
			t.Fatal("the view changed")
		}
		release()
		if _, _, err := f.View(0, 1); !errors.Is(err, mapped.ErrClosed) {
			t.Fatalf("View after the end: %v", err)
		}
		if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, mapped.ErrClosed) {
			t.Fatalf("ReadAt after the end: %v", err)
		}
		if err := f.Sync(); !errors.Is(err, mapped.ErrClosed) {
			t.Fatalf("Sync after the end: %v", err)
		}
	})
}

// A file cut short under its mapping is an error of the read, not SIGBUS.
func TestTruncatedUnderReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f := open(t, vfs.OS, path, 1<<20)
	if err := f.CopyAt(make([]byte, 10), 1<<19); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	if err := f.CopyAt(make([]byte, 10), 1<<19); !errors.Is(err, mapped.ErrFault) {
		t.Fatalf("CopyAt = %v", err)
	}
	b, release, err := f.View(1<<19, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	var sum byte
	err = mapped.Guard(func() error {
		for _, c := range b {
			sum += c
		}
		return nil
	})
	if !errors.Is(err, mapped.ErrFault) {
		t.Fatalf("Guard = %v, sum %d", err, sum)
	}
	if err := f.CopyAt(make([]byte, 10), 0); err != nil {
		t.Fatalf("what is there is readable: %v", err)
	}
	if _, err := f.ReadAt(make([]byte, 10), 1<<19); !errors.Is(err, io.EOF) {
		t.Fatalf("ReadAt = %v", err)
	}
}

func TestGuardPassesOtherPanics(t *testing.T) {
	defer func() {
		if r := recover(); r != "other" {
			t.Fatalf("recovered %v", r)
		}
	}()
	_ = mapped.Guard(func() error { panic("other") })
	t.Fatal("the panic was swallowed")
}

func TestConcurrentViewsAndClose(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		t.Helper()
		f := open(t, fsys, filepath.Join(dir, "f"), 1<<16)
		if _, err := f.WriteAt(bytes.Repeat([]byte{7}, 1<<16), 0); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 4 {
			wg.Go(func() {
				<-start
				for {
					b, release, err := f.View(100, 1000)
					if errors.Is(err, mapped.ErrClosed) {
						return
					}
					if err != nil || b[0] != 7 || b[999] != 7 {
						t.Errorf("View: %v", err)
						return
					}
					release()
				}
			})
		}
		close(start)
		for range 100 {
			if err := f.CopyAt(make([]byte, 1), 0); err != nil {
				t.Fatal(err)
			}
		}
		f.Close()
		wg.Wait()
		if f.Leases() != 0 || f.Mapped() {
			t.Fatalf("%d leases, mapped %v", f.Leases(), f.Mapped())
		}
	})
}

func TestViewDoesNotAllocate(t *testing.T) {
	f := open(t, vfs.OS, filepath.Join(t.TempDir(), "f"), 1<<16)
	n := testing.AllocsPerRun(100, func() {
		_, release, err := f.View(0, 10)
		if err != nil {
			t.Fatal(err)
		}
		release()
	})
	if n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
