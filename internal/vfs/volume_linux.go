package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// OpenVolume opens dir.
func (osFS) OpenVolume(dir string) (Volume, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return &osVolume{d}, nil
}

type osVolume struct{ dir *os.File }

// Sync is syncfs, which reports failed writes since Linux 5.8.
func (v *osVolume) Sync() error {
	for {
		err := unix.Syncfs(int(v.dir.Fd()))
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return &os.PathError{Op: "syncfs", Path: v.dir.Name(), Err: err}
		}
	}
}

// Close closes the directory.
func (v *osVolume) Close() error { return v.dir.Close() }
