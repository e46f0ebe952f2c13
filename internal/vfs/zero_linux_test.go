package vfs_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"mqx/internal/vfs"
)

// Zeros lie where they were asked for, over what was there, also in a file that has lost its name, and no descriptor stays.
func TestZero(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	f, err := vfs.OS.OpenFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 1 << 20
	if _, err := f.WriteAt(bytes.Repeat([]byte{7}, size), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	const from, n = 4097, 600_001
	if err := f.(vfs.Zeroer).Zero(from, n); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadDir("/proc/self/fd"); err != nil || len(after) != len(before) {
		t.Errorf("%d descriptors, before %d (%v)", len(after), len(before), err)
	}
	got := make([]byte, size)
	if _, err := f.ReadAt(got, 0); err != nil {
		t.Fatal(err)
	}
	for i, b := range got {
		if zero := i >= from && i < from+n; zero != (b == 0) {
			t.Fatalf("byte %d is %d", i, b)
		}
	}
}
