package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

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

// HolderOf looks for the file among the descriptors of each process, as far as this user may see them.
func (osFS) HolderOf(name string, guess int) int {
	want, err := os.Stat(name)
	if err != nil {
		return 0
	}
	if guess > 0 {
		if open, _ := hasOpen(guess, want); open {
			return guess
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	found := 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid <= 0 {
			continue
		}
		open, locks := hasOpen(pid, want)
		if locks {
			return pid
		}
		if open && found == 0 {
			found = pid
		}
	}
	return found
}

// hasOpen reports whether a process has a file open, and whether a lock is on one of those descriptors.
func hasOpen(pid int, want os.FileInfo) (open, locks bool) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	fds, err := os.ReadDir(dir + "fd")
	if err != nil {
		return false, false
	}
	for _, fd := range fds {
		link := dir + "fd/" + fd.Name()
		if to, err := os.Readlink(link); err != nil || filepath.Base(to) != want.Name() {
			continue
		}
		if st, err := os.Stat(link); err != nil || !os.SameFile(st, want) {
			continue
		}
		open = true
		if info, err := os.ReadFile(dir + "fdinfo/" + fd.Name()); err == nil && bytes.Contains(info, []byte("lock:")) {
			return true, true
		}
	}
	return open, false
}
