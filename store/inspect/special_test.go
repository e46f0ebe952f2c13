//go:build linux || darwin

package inspect_test

import (
	"errors"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"mqx/internal/testkit"
	"mqx/store/inspect"
)

// specials are what may lie in the place of a file.
var specials = map[string]func(path string) error{
	"pipe":           func(path string) error { return syscall.Mkfifo(path, 0o600) },
	"device":         func(path string) error { return os.Symlink("/dev/zero", path) },
	"null":           func(path string) error { return os.Symlink("/dev/null", path) },
	"dangling":       func(path string) error { return os.Symlink("nowhere/at-all", path) },
	"loop":           func(path string) error { return os.Symlink(filepath.Base(path), path) },
	"directory":      func(path string) error { return os.Mkdir(path, 0o700) },
	"full directory": func(path string) error { return os.MkdirAll(filepath.Join(path, "some", "more"), 0o700) },
	"socket": func(path string) error {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			return err
		}
		l.SetUnlinkOnClose(false)
		return l.Close()
	},
}

// Whatever lies in the place of a file or directory of a store, verify ends with a finding that names it. A repair moves it
// away, and leaves a store without a finding; where it needs the place itself it refuses.
func TestVerifySpecial(t *testing.T) {
	base, err := os.MkdirTemp("", "sp") //nolint:usetesting // short: a socket's path has 107 bytes
	try(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	try(t, testkit.UnpackStore("delay_timer", base))
	root, kept := filepath.Join(base, "store"), filepath.Join(base, "kept")
	for i, name := range specialPlaces(t, root) {
		for j, kind := range slices.Sorted(maps.Keys(specials)) {
			path := filepath.Join(root, filepath.FromSlash(name))
			moved := os.Rename(path, kept) == nil
			try(t, os.MkdirAll(filepath.Dir(path), 0o700))
			if err := specials[kind](path); err != nil {
				t.Fatal(err)
			}
			isDir := strings.Contains(kind, "directory")
			if want := belongsThere(name); (want == "directory") != isDir {
				checkSpecial(t, root, name, kind, i%len(specials) == j)
			}
			try(t, os.RemoveAll(path))
			if moved {
				try(t, os.Rename(kept, path))
			}
		}
	}
}

func belongsThere(name string) string {
	switch name {
	case "commitlog", "consumequeue", "index", "config", "timerlog", "mqx", "compaction", "rocksdbstore":
		return "directory"
	}
	return "file"
}

func checkSpecial(t *testing.T, root, name, kind string, mend bool) {
	t.Helper()
	r := verify(t, root)
	told := false
	for _, f := range r.Findings {
		told = told || !f.Note && (strings.HasPrefix(name, f.File) || strings.HasPrefix(f.File, name))
	}
	if !told {
		t.Errorf("%s in the place of %s: no finding names it: %s", kind, name, findingsText(r))
	}
	if !mend || name == "commitlog" {
		return
	}
	dir, err := os.MkdirTemp(filepath.Dir(root), "") //nolint:usetesting // as above
	try(t, err)
	defer func() { _ = os.RemoveAll(dir) }()
	try(t, testkit.UnpackStore("delay_timer", dir))
	copied := filepath.Join(dir, "store")
	path := filepath.Join(copied, filepath.FromSlash(name))
	try(t, os.RemoveAll(path))
	try(t, os.MkdirAll(filepath.Dir(path), 0o700))
	try(t, specials[kind](path))
	_, err = inspect.Repair(t.Context(), copied, inspect.RepairOptions{})
	if shape, ok := errors.AsType[*inspect.ShapeError](err); ok && shape.Path == path && (name == "lock" || name == "mqx") {
		return
	}
	try(t, err)
	if r := verify(t, copied); r.Damaged() {
		t.Errorf("%s in the place of %s: after the repair: %s", kind, name, findingsText(r))
	}
}

func findingsText(r *inspect.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		if !f.Note {
			b.WriteString("\n" + string(f.Kind) + " " + f.File + ": " + f.What)
		}
	}
	return b.String()
}

// specialPlaces are files and directories of the store, one of each kind, and what a store may have beside.
func specialPlaces(t *testing.T, root string) []string {
	t.Helper()
	seen := map[string]bool{}
	out := []string{"abort", "mqx", "mqx/stopped", "mqx/durable", "mqx/deleted-topics", "config/lmqConsumerOffset.json", "timerwheel.0", "brokerIdentity"}
	try(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		top, _, deep := strings.Cut(filepath.ToSlash(rel), "/")
		kind := strings.Repeat("/", strings.Count(rel, "/")) + top
		if top == "config" {
			kind = rel
		}
		if top == "rocksdbstore" && deep { // not looked into
			return nil
		}
		if !seen[kind] {
			seen[kind] = true
			out = append(out, filepath.ToSlash(rel))
		}
		return nil
	}))
	return out
}
