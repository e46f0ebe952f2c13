package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Sync is F_FULLFSYNC, which os.File.Sync uses on this system.
func (f *osFile) Sync() error { return f.File.Sync() }

// Allocate extends the physical end of the file (F_PREALLOCATE). The system only allocates behind the last block
// that it has allocated, which is where a log grows.
func (f *osFile) Allocate(off, n int64) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return &os.PathError{Op: "fstat", Path: f.Name(), Err: err}
	}
	need := off + n - st.Blocks*512
	if need <= 0 {
		return nil
	}
	store := unix.Fstore_t{Flags: unix.F_ALLOCATEALL, Posmode: unix.F_PEOFPOSMODE, Offset: 0, Length: need}
	err := unix.FcntlFstore(f.Fd(), unix.F_PREALLOCATE, &store)
	if err == nil {
		return nil
	}
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EOPNOTSUPP) {
		err = errors.ErrUnsupported
	}
	return &os.PathError{Op: "preallocate", Path: f.Name(), Err: err}
}
