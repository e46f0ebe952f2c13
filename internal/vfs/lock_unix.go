//go:build unix && !linux

package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// setLock takes a classic byte-range lock against other processes and a flock against this one.
func setLock(f *os.File, lk *unix.Flock_t) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	return unix.FcntlFlock(f.Fd(), unix.F_SETLK, lk)
}
