//go:build linux || darwin

package cmd

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mqx/internal/testkit"
)

// Every command ends by SIGPIPE when nobody reads what it prints, at once and without a word.
func TestStoreReaderLeft(t *testing.T) {
	dir := testkit.GoldenStore(t, "delay_timer")
	for _, verb := range []string{"info", "log", "queue", "index", "offsets", "config", "timer", "export", "log -o json", "info -o yaml"} {
		words := strings.Fields(verb)
		c := exec.Command("mqx", append([]string{"store", words[0], dir}, words[1:]...)...)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		c.Stdout, c.Stderr = w, &errs
		_ = r.Close()
		err = c.Run()
		_ = w.Close()
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			t.Fatalf("%s: %v", verb, err)
		}
		if ws, ok := ended.Sys().(syscall.WaitStatus); !ok || !ws.Signaled() || ws.Signal() != syscall.SIGPIPE {
			t.Errorf("%s: %v, want the end by SIGPIPE", verb, err)
		}
		if errs.Len() > 0 && verb != "export" { // its counts may come first
			t.Errorf("%s says %q", verb, errs.String())
		}
	}
}

// An export into a file that is ended by a signal leaves no file of that name, or the one that was there; one that went
// into a pipe has no end.
func TestStoreExportKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "big")
	in := exec.Command("mqx", "store", "import", dir, "--yes", "--commitlog-file-size", "1048576")
	in.Stdin = bytes.NewReader(importLines(40000))
	if out, err := in.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		for _, before := range []string{"", "what was there"} {
			file := filepath.Join(t.TempDir(), "all.ndjson")
			if before != "" {
				if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c := exec.Command("mqx", "store", "export", dir, "-O", file)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			awaitGrowth(t, filepath.Dir(file), int64(len(before)))
			if err := c.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			err := c.Wait()
			got, readErr := os.ReadFile(file)
			switch {
			case err == nil: // it was quicker
				if n := bytes.Count(got, []byte("\n")); n < 40000 {
					t.Errorf("%v: done with %d lines", signal, n)
				}
			case before == "" && readErr == nil:
				t.Errorf("%v: a file with %d bytes is there", signal, len(got))
			case before != "" && string(got) != before:
				t.Errorf("%v: %d bytes in the place of what was there", signal, len(got))
			}
		}
	}
}

// awaitGrowth waits until the files of a directory have more than n bytes.
func awaitGrowth(t *testing.T, dir string, n int64) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		total := int64(0)
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				total += info.Size()
			}
		}
		if total > n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is written")
		}
	}
}
