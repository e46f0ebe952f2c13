package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// LockedBy asks with F_OFD_GETLK, which sees the locks of Java and of mqx alike.
func (osFS) LockedBy(name string) (pid int, locked bool, err error) {
	if err := refuseSpecial(name); err != nil {
		return 0, false, err
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = f.Close() }()
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: 0, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lk); err != nil {
		return 0, false, &os.PathError{Op: "test lock", Path: name, Err: err}
	}
	if lk.Type == unix.F_UNLCK {
		return 0, false, nil
	}
	return max(int(lk.Pid), 0), true, nil // -1: a lock of an open file, as mqx takes it
}

// Cached is cachestat, which Linux has since 6.5.
func (f *osFile) Cached(off, n int64) (int64, bool) {
	var st unix.Cachestat_t
	r := unix.CachestatRange{Off: uint64(off), Len: uint64(n)}
	if err := unix.Cachestat(uint(f.Fd()), &r, &st, 0); err != nil {
		return 0, false
	}
	return min(int64(st.Cache)*int64(os.Getpagesize()), n), true
}

// Forget is posix_fadvise with DONTNEED.
func (f *osFile) Forget(off, n int64) {
	_ = unix.Fadvise(int(f.Fd()), off, n, unix.FADV_DONTNEED)
}

// Sequential is posix_fadvise with SEQUENTIAL.
func (f *osFile) Sequential() {
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_SEQUENTIAL)
}
