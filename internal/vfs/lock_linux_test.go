package vfs_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mqx/internal/vfs"
)

const lockChildEnv = "MQX_TEST_LOCK_CHILD"

// TestMain lets the test binary play another process that takes the lock as a Java FileLock does.
func TestMain(m *testing.M) {
	name := os.Getenv(lockChildEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: 0, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lk); err != nil {
		fmt.Println("refused")
		os.Exit(0)
	}
	fmt.Println("locked")
	_, _ = io.Copy(io.Discard, os.Stdin) // holds the lock until the parent closes
}

func TestLockExcludesJava(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	l, err := vfs.OS.Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	child := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), lockChildEnv+"="+name)
		return cmd
	}
	if out, err := child().Output(); err != nil || strings.TrimSpace(string(out)) != "refused" {
		t.Fatalf("the other process: %q, %v", out, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := child()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len("locked\n"))
	if _, err := io.ReadFull(stdout, b); err != nil || string(b) != "locked\n" {
		t.Fatalf("the other process: %q, %v", b, err)
	}
	if _, err := vfs.OS.Lock(name); err == nil {
		t.Fatal("locked while another process holds the lock")
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
