package testkit

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Ext4 is a volume of its own, of the real file system that stores lie on.
type Ext4 struct {
	Dir   string // where it is mounted
	image string
}

// NewExt4 makes a volume of the given size ("64M") in a file and mounts it; it is unmounted when the test ends.
// It takes root, loop devices and mkfs.ext4: without them the test is skipped.
func NewExt4(t *testing.T, size string) *Ext4 {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a volume takes root")
	}
	dir := t.TempDir()
	v := &Ext4{Dir: filepath.Join(dir, "mnt"), image: filepath.Join(dir, "image")}
	if err := os.Mkdir(v.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range [][]string{{"truncate", "-s", size, v.image}, {"mkfs.ext4", "-q", "-F", v.image}} {
		if err := run(t, cmd...); errors.Is(err, exec.ErrNotFound) {
			t.Skipf("no volume can be made: %v", err)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := v.mount(t); err != nil {
		t.Skipf("no volume can be mounted: %v", err)
	}
	return v
}

func (v *Ext4) mount(t *testing.T) error {
	t.Helper()
	if err := run(t, "mount", "-o", "loop,errors=remount-ro", v.image, v.Dir); err != nil {
		return err
	}
	t.Cleanup(func() { _ = run(t, "umount", v.Dir) }) // it may be unmounted already
	return nil
}

// Break lets the file system meet an error of its own, upon which it makes itself read-only, as it does when the disk
// below fails it.
func (v *Ext4) Break(t *testing.T) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "losetup", "--noheadings", "--output", "NAME", "-j", v.image).Output()
	if err != nil {
		t.Fatalf("cannot find the loop device: %v", err)
	}
	trigger := filepath.Join("/sys/fs/ext4", filepath.Base(strings.TrimSpace(string(out))), "trigger_fs_error")
	if err := os.WriteFile(trigger, []byte("1"), 0o200); err != nil {
		t.Skipf("the file system cannot be broken: %v", err)
	}
}

// Mend unmounts the volume, has it checked, and mounts it again. Nobody may use it.
func (v *Ext4) Mend(t *testing.T) {
	t.Helper()
	if err := run(t, "umount", v.Dir); err != nil {
		t.Fatal(err)
	}
	err := run(t, "e2fsck", "-f", "-y", v.image)
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() > 1) { // 1: mended
		t.Fatal(err)
	}
	if err := v.mount(t); err != nil {
		t.Fatal(err)
	}
}

// run runs a command; its output goes to the test's log.
func run(t *testing.T, cmd ...string) error {
	t.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), cmd[0], cmd[1:]...).CombinedOutput() // clean-up runs behind the end of the test
	if len(out) > 0 {
		t.Logf("%s: %s", cmd[0], out)
	}
	return err
}
