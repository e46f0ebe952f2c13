package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// volumeMiB is the size of a small disk.
const volumeMiB = 400

// smallDisk lets the broker's store be a volume of its own, of tmpfs or of ext4 in a file.
func (n *node) smallDisk(ext4 bool) error {
	run := func(args ...string) error {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("cannot make a small disk: %s: %w: %s", args[0], err, out)
		}
		return nil
	}
	if os.Getuid() != 0 {
		return fmt.Errorf("cannot make a small disk: mounting takes root")
	}
	if !ext4 {
		if err := run("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", volumeMiB), "hachaos", n.store()); err != nil {
			return err
		}
		n.volume = true
		return nil
	}
	image := filepath.Join(n.dir, "image")
	if err := run("truncate", "-s", fmt.Sprintf("%dM", volumeMiB), image); err != nil {
		return err
	}
	if err := run("mkfs.ext4", "-q", "-F", "-m", "0", image); err != nil {
		return err
	}
	if err := run("mount", "-o", "loop", image, n.store()); err != nil {
		return err
	}
	n.volume = true
	return nil
}

func (n *node) ballast() string { return n.file("ballast") }

// fill takes all room but some KiB.
func (n *node) fill(leave int64) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(n.store(), &st); err != nil {
		return err
	}
	size := int64(st.Bavail)*st.Bsize - leave
	if size <= 0 {
		return nil
	}
	f, err := os.Create(n.ballast())
	if err != nil {
		return err
	}
	defer f.Close()
	for ; size > 0; size -= 1 << 20 {
		err := syscall.Fallocate(int(f.Fd()), 0, 0, size)
		if err == nil {
			return nil
		}
		if err != syscall.ENOSPC {
			return fmt.Errorf("cannot fill a disk: %w", err)
		}
	}
	return nil
}

func (n *node) free() error { return os.Remove(n.ballast()) }
