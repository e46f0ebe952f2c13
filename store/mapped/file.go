package mapped

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"sync/atomic"

	mmap "github.com/edsrzf/mmap-go"

	"mqx/internal/vfs"
)

// ErrClosed is returned for a file that was closed (or deleted by expiry).
var ErrClosed = errors.New("file is closed")

// File is an open file with a mapping that is made when it is first asked for. Every use takes a lease; Close, which
// may come at any time, takes effect when the last lease has ended. It is safe to share between goroutines.
type File struct {
	f    vfs.File
	path string

	refs    atomic.Int64 // the open file counts as one; 0 = gone
	closed  atomic.Bool
	release func() // Release, made once so that View does not allocate

	view atomic.Pointer[vfs.Mapping]
	mu   sync.Mutex // making the mapping
}

// Open opens a file with flags of package os.
func Open(fsys vfs.FS, path string, flag int) (*File, error) {
	f, err := fsys.OpenFile(path, flag)
	if err != nil {
		return nil, err
	}
	return New(f), nil
}

// New takes over an open file.
func New(f vfs.File) *File {
	m := &File{f: f, path: f.Name()}
	m.refs.Store(1)
	m.release = m.Release
	return m
}

// Path returns the name the file was opened with.
func (f *File) Path() string { return f.path }

// Acquire takes a lease. It returns false when the file is closed for good; otherwise the caller calls Release once.
func (f *File) Acquire() bool {
	for {
		n := f.refs.Load()
		if n == 0 {
			return false
		}
		if f.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release ends a lease; the last one after Close unmaps and closes the file.
func (f *File) Release() {
	switch n := f.refs.Add(-1); {
	case n == 0:
		f.destroy()
	case n < 0:
		panic("mapped: lease of " + f.path + " released twice")
	}
}

func (f *File) destroy() {
	if m := f.view.Swap(nil); m != nil {
		_ = (*m).Unmap()
	}
	_ = f.f.Close()
}

// Close ends the file: what is leased stays valid until it is released. It is idempotent.
func (f *File) Close() {
	if f.closed.CompareAndSwap(false, true) {
		f.Release()
	}
}

// Leases returns how many leases are held, not counting the open file itself.
func (f *File) Leases() int {
	n := f.refs.Load()
	if !f.closed.Load() {
		n--
	}
	return int(max(n, 0))
}

// with runs op under a lease.
func (f *File) with(verb string, op func() error) error {
	if !f.Acquire() {
		return fmt.Errorf("cannot %s %q: %w", verb, f.path, ErrClosed)
	}
	defer f.Release()
	return op()
}

// View returns n bytes at off of the mapping, which is made when need be, and a function that ends the lease. The
// bytes show what is written to the file later; reading them may wait for the disk, and faults if the file was
// truncated meanwhile (see Guard). The range must lie within the file as it was long when it was first viewed.
func (f *File) View(off int64, n int) ([]byte, func(), error) {
	if !f.Acquire() {
		return nil, nil, fmt.Errorf("cannot map %q: %w", f.path, ErrClosed)
	}
	b, err := f.bytes()
	if err == nil && (off < 0 || n < 0 || off > int64(len(b))-int64(n)) {
		err = fmt.Errorf("cannot view %d bytes at %d of %q: %d are mapped", n, off, f.path, len(b))
	}
	if err != nil {
		f.Release()
		return nil, nil, err
	}
	return b[off : off+int64(n) : off+int64(n)], f.release, nil
}

// bytes returns the mapping; the caller has a lease.
func (f *File) bytes() ([]byte, error) {
	if m := f.view.Load(); m != nil {
		return (*m).Bytes(), nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.view.Load(); m != nil {
		return (*m).Bytes(), nil
	}
	m, err := mapFile(f.f)
	if err != nil {
		return nil, fmt.Errorf("cannot map %q: %w", f.path, err)
	}
	f.view.Store(&m)
	return m.Bytes(), nil
}

// Mapped tells whether the file has a mapping.
func (f *File) Mapped() bool { return f.view.Load() != nil }

func mapFile(f vfs.File) (vfs.Mapping, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size <= 0 || size > math.MaxInt {
		return nil, fmt.Errorf("%d bytes cannot be mapped", size)
	}
	if m, ok := f.(vfs.Mapper); ok {
		return m.Map(size)
	}
	osf, ok := f.(interface{ OSFile() *os.File })
	if !ok {
		return nil, errors.ErrUnsupported
	}
	m, err := mmap.MapRegion(osf.OSFile(), int(size), mmap.RDONLY, 0, 0)
	if err != nil {
		return nil, err
	}
	return &osMapping{m: m}, nil
}

type osMapping struct{ m mmap.MMap }

// Bytes is the mapped memory.
func (m *osMapping) Bytes() []byte { return m.m }

// Unmap is munmap.
func (m *osMapping) Unmap() error { return m.m.Unmap() }

// CopyAt copies len(b) bytes at off out of the mapping, without a system call when they are in memory. Memory that is
// gone is ErrFault.
func (f *File) CopyAt(b []byte, off int64) error {
	src, release, err := f.View(off, len(b))
	if err != nil {
		return err
	}
	defer release()
	if err := guardedCopy(b, src); err != nil {
		return fmt.Errorf("cannot read %d bytes at %d of %q: %w", len(b), off, f.path, err)
	}
	return nil
}

// ReadAt reads with pread. It returns io.EOF like an io.ReaderAt.
func (f *File) ReadAt(b []byte, off int64) (n int, err error) {
	if !f.Acquire() {
		return 0, fmt.Errorf("cannot read %q: %w", f.path, ErrClosed)
	}
	defer f.Release()
	return f.f.ReadAt(b, off)
}

// WriteAt writes with pwrite, which shows in the mapping.
func (f *File) WriteAt(b []byte, off int64) (n int, err error) {
	if !f.Acquire() {
		return 0, fmt.Errorf("cannot write %q: %w", f.path, ErrClosed)
	}
	defer f.Release()
	return f.f.WriteAt(b, off)
}

// Size returns the length of the file as it is now.
func (f *File) Size() (size int64, err error) {
	err = f.with("stat", func() error {
		size, err = f.f.Size()
		return err
	})
	return size, err
}

// Sync makes the file durable; see vfs.File.
func (f *File) Sync() error {
	return f.with("sync", f.f.Sync)
}

// Allocate gives the range blocks; see vfs.File.
func (f *File) Allocate(off, n int64) error {
	return f.with("allocate", func() error { return f.f.Allocate(off, n) })
}

// Zero writes zeros ahead of need; see vfs.Zeroer. Where the system does not offer that it does nothing.
func (f *File) Zero(off, n int64) error {
	z, ok := f.f.(vfs.Zeroer)
	if !ok {
		return nil
	}
	return f.with("zero", func() error { return z.Zero(off, n) })
}

// Truncate sets the length. Mapped bytes behind the new length fault.
func (f *File) Truncate(size int64) error {
	return f.with("truncate", func() error { return f.f.Truncate(size) })
}

// NextData returns the start of the next region at or behind off that may hold bytes other than zero, or io.EOF.
// Where the system cannot tell, that is off itself.
func (f *File) NextData(off int64) (next int64, err error) {
	ds, ok := f.f.(vfs.DataSeeker)
	if !ok {
		size, err := f.Size()
		if err == nil && off >= size {
			err = io.EOF
		}
		return off, err
	}
	err = f.with("seek in", func() error {
		next, err = ds.NextData(off)
		return err
	})
	return next, err
}
