package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// setLock takes an open file description lock: it conflicts with classic byte-range locks of other processes, and,
// unlike these, with a second open of this process, and does not vanish when another descriptor of the file is closed.
func setLock(f *os.File, lk *unix.Flock_t) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, lk)
}
