package vfs

import (
	"errors"
	"fmt"
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

// zeroPiece is what Zero writes. It is never written to, so it is one page of zeros in memory.
var zeroPiece [256 << 10]byte

// Zero writes through the page cache, where the next write finds the pages, in pieces: a Sync that runs meanwhile has
// no more than one of them to write. It does so by a descriptor of its own: to wait for a write-back takes note of its
// failure, which the Sync of f, for whose bytes it may have been, would not be told any more.
func (f *osFile) Zero(off, n int64) (err error) {
	own, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_WRONLY, 0)
	if err != nil {
		return &os.PathError{Op: "open again", Path: f.Name(), Err: errors.ErrUnsupported}
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	for n > 0 {
		piece := min(n, int64(len(zeroPiece)))
		if _, err := own.WriteAt(zeroPiece[:piece], off); err != nil {
			return err
		}
		const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
		err := unix.SyncFileRange(int(own.Fd()), off, piece, all)
		if err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINTR) {
			return &os.PathError{Op: "sync_file_range", Path: f.Name(), Err: err}
		}
		off, n = off+piece, n-piece
	}
	return nil
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
