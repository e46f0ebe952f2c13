//go:build unix

package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// SyncDir opens the directory and syncs it.
func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) {
		err = nil // this file system does not sync directories
	}
	return errors.Join(err, d.Close())
}

// Usage is statfs.
func (osFS) Usage(dir string) (Usage, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Usage{}, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	block := int64(st.Bsize) //nolint:unconvert // its type differs between systems
	// What is reserved for the super-user is neither used nor free, as for df and for Apache's broker.
	used := int64(st.Blocks) - int64(st.Bfree)
	return Usage{Total: (used + int64(st.Bavail)) * block, Free: int64(st.Bavail) * block}, nil
}

// Lock takes a write lock on byte 0, which is what a Java FileLock of one byte takes.
func (osFS) Lock(name string) (io.Closer, error) {
	if err := refuseSpecial(name); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, dangling(name, err)
	}
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: 0, Len: 1}
	if err := setLock(f, &lk); err != nil {
		err = lockError(name, err)
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// dangling says of an error of opening a link that it leads nowhere.
func dangling(name string, err error) error {
	if target, link := os.Readlink(name); link == nil && errors.Is(err, fs.ErrNotExist) {
		return &os.PathError{Op: "open", Path: name, Err: fmt.Errorf("%w, %q", ErrDangling, target)}
	}
	return err
}

func lockError(name string, err error) error {
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		err = ErrLocked
	}
	return &os.PathError{Op: "lock", Path: name, Err: err}
}
