package testkit

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

const tmpfsEnv = "MQX_TEST_TMPFS"

// OnTmpfs runs scenario in dir, a tmpfs of its own of the given size ("8m"), which may
// get full or be mounted anew. It does so in a child process, which a SIGBUS would kill,
// in a user and mount namespace of its own: the calling test, one at the top, starts
// itself again there. Where there are no namespaces the test is skipped, but fails in CI.
func OnTmpfs(t *testing.T, size string, scenario func(t *testing.T, dir string)) {
	t.Helper()
	if dir := os.Getenv(tmpfsEnv); dir != "" {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
			t.Fatalf("cannot mount: %v", err)
		}
		scenario(t, dir)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), tmpfsEnv+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
	case errors.Is(err, syscall.EPERM) || strings.Contains(string(out), "cannot mount"):
		if os.Getenv("CI") == "true" {
			t.Fatalf("no namespaces here: %v\n%s", err, out)
		}
		t.Skipf("no namespaces here: %v", err)
	default:
		t.Fatalf("%v\n%s", err, out)
	}
}
