//go:build linux || darwin

package cmd

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mqx/internal/testkit"
)

// killedImport begins an import from a pipe, waits until ready says so, and kills it.
func killedImport(t *testing.T, dir string, lines []byte, ready func() bool) {
	t.Helper()
	c := exec.Command("mqx", "store", "import", dir, "--yes", "--commitlog-file-size", "65536")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(in, bytes.NewReader(lines)) }() // the pipe stays open: the import waits for more
	for deadline := time.Now().Add(30 * time.Second); !ready(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the import stores nothing")
		}
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	_ = in.Close()
}

func importLines(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"topic":"KILLED","body":"%d %s"}`+"\n", i, strings.Repeat("x", 300))
	}
	return b.Bytes()
}

func storedBodies(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.Command("mqx", "store", "log", dir, "-t", "KILLED", "-o", "template={{.body}}").Output()
	if err != nil {
		return nil
	}
	var numbers []string
	for line := range strings.Lines(string(out)) {
		n, _, _ := strings.Cut(line, " ")
		numbers = append(numbers, n)
	}
	return numbers
}

func checkImported(t *testing.T, dir string, n int) {
	t.Helper()
	got := storedBodies(t, dir)
	if len(got) != n {
		t.Fatalf("%d messages, want %d", len(got), n)
	}
	for i, x := range got {
		if x != fmt.Sprint(i) {
			t.Fatalf("message %d is %s", i, x)
		}
	}
	if out, err := exec.Command("mqx", "store", "verify", dir).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func importAll(t *testing.T, dir string, lines []byte, more ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(file, lines, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("mqx", append([]string{"store", "import", dir, file, "--yes", "--commitlog-file-size", "65536", "-o", "json"}, more...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// An import into a new directory that is killed leaves no store, and begins anew.
func TestKilledImportIntoNewDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	lines := importLines(3000)
	killedImport(t, dir, lines[:len(lines)/2], func() bool {
		files, err := os.ReadDir(filepath.Join(dir, "mqx", "import", "commitlog"))
		return err == nil && len(files) > 1
	})
	for _, part := range []string{"commitlog", "consumequeue", "config"} {
		if _, err := os.Stat(filepath.Join(dir, part)); err == nil {
			t.Errorf("%s is there", part)
		}
	}
	importAll(t, dir, lines)
	checkImported(t, dir, 3000)
}

// One into a store goes on: every message is stored once, in order.
func TestKilledImportIntoStore(t *testing.T) {
	dir := testkit.GoldenStore(t, "basic")
	lines := importLines(2000)
	killedImport(t, dir, lines[:len(lines)/2], func() bool { return len(storedBodies(t, dir)) > 100 })
	if out := importAll(t, dir, lines); strings.Contains(out, `"resumed":0`) {
		t.Errorf("nothing was resumed: %s", out)
	}
	checkImported(t, dir, 2000)
	if _, err := os.Stat(filepath.Join(dir, "mqx", "import.json")); err == nil {
		t.Error("the journal is left")
	}
}
