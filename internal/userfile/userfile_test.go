package userfile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

func TestWriteIsPrivateAndWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "file")
	for _, text := range []string{"first", "second, longer", "3"} {
		if err := Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path, 100)
		if err != nil || string(got) != text {
			t.Errorf("%q, %v; want %q", got, err, text)
		}
	}
	if runtime.GOOS != "windows" {
		for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
				t.Errorf("mode of %s: %v, %v; want %v", name, info.Mode(), err, want)
			}
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}

func TestFailures(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, []byte("x")); err == nil {
		t.Error("a directory was replaced")
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 1 {
		t.Errorf("left over: %v, %v", entries, err)
	}
	if _, err := Read(filepath.Join(dir, "none"), 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	path := filepath.Join(dir, "f")
	if err := Write(path, []byte("12345")); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path, 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a file above the limit: %v", err)
	}
	if got, err := Read(path, 5); err != nil || string(got) != "12345" {
		t.Errorf("a file at the limit: %q, %v", got, err)
	}
}

func TestDirs(t *testing.T) {
	env := func(name string) string {
		return map[string]string{"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"}[name]
	}
	if dir, err := ConfigDir(env); err != nil || dir != filepath.Join("/c", "mqx") {
		t.Errorf("%q, %v", dir, err)
	}
	if dir, err := StateDir(env); err != nil || dir != filepath.Join("/s", "mqx") {
		t.Errorf("%q, %v", dir, err)
	}
	t.Setenv("HOME", "/home/me")
	t.Setenv("XDG_CONFIG_HOME", "")
	relative := func(string) string { return "relative" }
	if dir, err := StateDir(relative); runtime.GOOS == "linux" && (err != nil || dir != "/home/me/.local/state/mqx") {
		t.Errorf("%q, %v", dir, err)
	}
	if dir, err := ConfigDir(relative); runtime.GOOS == "linux" && (err != nil || dir != "/home/me/.config/mqx") {
		t.Errorf("%q, %v", dir, err)
	}
}

// Several who change one file at once lose nothing of each other.
func TestLockedChangesDoNotMeet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "count")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			err := Locked(path, func() error {
				data, err := Read(path, 100)
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					return err
				}
				return Write(path, append(data, 'x'))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if data, err := Read(path, 100); err != nil || string(data) != "xxxxxxxx" {
		t.Errorf("%q, %v", data, err)
	}
}
