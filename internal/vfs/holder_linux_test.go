package vfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"mqx/internal/vfs"
)

func TestLockedBy(t *testing.T) {
	tester := vfs.OS.(vfs.LockTester)
	path := filepath.Join(t.TempDir(), "lock")
	if _, locked, err := tester.LockedBy(path); locked || err != nil {
		t.Fatalf("a missing file: locked %v, %v", locked, err)
	}
	l, err := vfs.OS.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, locked, err := tester.LockedBy(path); !locked || err != nil {
		t.Errorf("a locked file: locked %v, %v", locked, err)
	}
	if _, err := vfs.OS.Lock(path); err == nil {
		t.Error("asking took the lock away")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, locked, err := tester.LockedBy(path); locked || err != nil {
		t.Errorf("after its end: locked %v, %v", locked, err)
	}
}

func TestCached(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := vfs.OS.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	a := f.(vfs.Advised)
	a.Sequential()
	n, ok := a.Cached(0, 1<<20)
	if !ok {
		t.Skip("this kernel does not tell what is cached")
	}
	if n != 1<<20 {
		t.Errorf("%d bytes of a file that was just written are cached", n)
	}
	a.Forget(0, 1<<20) // nothing is promised of it
}
