package vfs

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Sync is fdatasync.
func (f *osFile) Sync() error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err == nil {
			return nil
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
}

// Allocate is fallocate with FALLOC_FL_KEEP_SIZE.
func (f *osFile) Allocate(off, n int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, off, n)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			err = errors.ErrUnsupported
		}
		return &os.PathError{Op: "fallocate", Path: f.Name(), Err: err}
	}
}

// NextData is lseek with SEEK_DATA.
func (f *osFile) NextData(off int64) (int64, error) {
	pos, err := unix.Seek(int(f.Fd()), off, unix.SEEK_DATA)
	switch {
	case err == nil:
		return pos, nil
	case errors.Is(err, unix.ENXIO):
		return 0, io.EOF
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP):
		return off, nil // not supported here: anything may be data
	}
	return 0, &os.PathError{Op: "lseek", Path: f.Name(), Err: err}
}
