//go:build linux || darwin

package cmd

import (
	"bytes"
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mqx/internal/testkit"
)

// storeVerbs are the commands of mqx store on a directory, each so that it reads what it can.
func storeVerbs(dir string) [][]string {
	var out [][]string
	for _, v := range []string{
		"info DIR", "info DIR --show topics", "log DIR", "get DIR 0", "find DIR --key nothing -t TopicTest",
		"find DIR --body-text nothing", "queue DIR", "index DIR", "offsets DIR", "config DIR", "config DIR --show topics", "config DIR --show delay", "timer DIR", "timer DIR --show slots", "verify DIR", "repair DIR", "rebuild queue DIR --dry-run",
		"rebuild topics DIR --dry-run", "rebuild offsets DIR --dry-run", "diff DIR DIR", //nolint:dupword // a store with itself
		"export DIR", "preflight DIR --target apache-5.5",
	} {
		args := []string{"mqx", "store"}
		for _, x := range strings.Fields(v) {
			if x == "DIR" {
				x = dir
			}
			args = append(args, x)
		}
		out = append(out, args)
	}
	return out
}

// replaceBySpecial puts something that is no regular file in the place of one.
func replaceBySpecial(t *testing.T, dir, path, kind string) (restore func()) {
	t.Helper()
	kept := filepath.Join(filepath.Dir(dir), "kept")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Rename(path, kept))
	switch kind {
	case "pipe":
		must(syscall.Mkfifo(path, 0o600))
	case "device":
		must(os.Symlink("/dev/zero", path))
	case "socket":
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Skip("the path is too long for a socket: ", err)
		}
		l.SetUnlinkOnClose(false)
		must(l.Close())
	case "dangling":
		must(os.Symlink("nowhere/at-all", path))
	case "directory":
		must(os.Mkdir(path, 0o700))
	}
	return func() {
		must(os.Remove(path))
		must(os.Rename(kept, path))
	}
}

// Whatever lies where a file of a store belongs, no command waits for it or reads it without end.
func TestStoreSpecialFiles(t *testing.T) {
	base, err := os.MkdirTemp("", "sp") //nolint:usetesting // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	if err := testkit.UnpackStore("delay_timer", base); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "store")
	seen := map[string]bool{}
	var files []string // one of each kind
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		kind := strings.SplitN(rel, "/", 2)[0]
		if kind == "config" {
			kind = rel
		}
		if !seen[kind] && !strings.HasSuffix(rel, ".bak") {
			seen[kind] = true
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"pipe", "device", "socket", "dangling", "directory"} {
		for _, path := range files {
			rel, _ := filepath.Rel(dir, path)
			if kind != "pipe" && !slices.Contains([]string{"commitlog", "consumequeue", "index", "lock"}, strings.SplitN(rel, "/", 2)[0]) {
				continue
			}
			t.Run(kind+"/"+strings.ReplaceAll(rel, "/", "-"), func(t *testing.T) {
				defer replaceBySpecial(t, dir, path, kind)()
				for _, args := range storeVerbs(dir) {
					code := endsClearly(t, args, rel)
					if reads := args[2] == "log" || args[2] == "export" || args[2] == "verify"; reads && strings.HasPrefix(rel, "commitlog") && code == ExitOK {
						t.Errorf("store %s takes it for an empty log", args[2])
					}
				}
			})
		}
	}
}

// endsClearly runs a command that must end soon, and say what is wrong when it fails.
func endsClearly(t *testing.T, args []string, about string) Exit {
	t.Helper()
	var out, errs bytes.Buffer
	done := make(chan Exit, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	go func() { done <- Execute(ctx, args, Streams{In: strings.NewReader(""), Out: &out, Err: &errs}) }()
	what := strings.Join(args[1:3], " ") + " " + strings.Join(args[4:], " ")
	select {
	case code := <-done:
		text := errs.String()
		if ctx.Err() != nil {
			t.Errorf("%s: ended only by its time limit: %s", what, text)
		}
		if strings.Contains(text, "goroutine") {
			t.Errorf("%s: %s", what, text)
		}
		if code != ExitOK && code != ExitCheckFailed && code != ExitUsage && code != ExitNotFound && !strings.Contains(text, filepath.Base(about)) {
			t.Errorf("%s: code %d without the name of the file: %s", what, code, text)
		}
		return code
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: hangs", what)
		return 0
	}
}
