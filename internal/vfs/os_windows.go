package vfs

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// SyncDir does nothing: the system offers no such thing.
func (osFS) SyncDir(string) error { return nil }

// Usage is GetDiskFreeSpaceEx.
func (osFS) Usage(dir string) (Usage, error) {
	p, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return Usage{}, &os.PathError{Op: "usage", Path: dir, Err: err}
	}
	var free, total uint64
	if err := windows.GetDiskFreeSpaceEx(p, &free, &total, nil); err != nil {
		return Usage{}, &os.PathError{Op: "usage", Path: dir, Err: err}
	}
	return Usage{Total: int64(total), Free: int64(free)}, nil
}

// Lock is LockFileEx on byte 0.
func (osFS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{})
	if err != nil {
		if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
			err = ErrLocked
		}
		return nil, errors.Join(&os.PathError{Op: "lock", Path: name, Err: err}, f.Close())
	}
	return f, nil
}
