// Package vfs is what the store sees of the disk: a file system interface with an implementation over the operating
// system (OS) and a double in memory (Mem) that injects faults and forgets on demand what was not synced.
//
// Durability is explicit everywhere: a byte is durable after File.Sync (or Mapping.Sync of its range), a name after
// FS.SyncDir of its directory, and nothing else is promised. The double takes that literally.
package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"mqx/internal/failpoint"
)

// ErrLocked is returned by FS.Lock when somebody else, in this process or another one, holds the lock.
var ErrLocked = errors.New("locked by another process")

// FS is a file system. Names are paths of the operating system. Errors carry the operation and the path
// (*fs.PathError or *os.LinkError). Implementations are safe to share between goroutines.
type FS interface {
	// Open opens a file for reading.
	Open(name string) (File, error)
	// OpenFile opens a file with flags of package os (O_RDWR, O_CREATE, O_EXCL, O_TRUNC); new files get mode 0644.
	OpenFile(name string, flag int) (File, error)
	// MkdirAll makes a directory and its parents (mode 0755). Their names are durable after SyncDir of each parent.
	MkdirAll(dir string) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// RemoveAll removes a tree; a missing one is no error.
	RemoveAll(dir string) error
	// Rename replaces newName atomically. It is durable after SyncDir of the directory.
	Rename(oldName, newName string) error
	// Stat describes a file.
	Stat(name string) (fs.FileInfo, error)
	// ReadDir lists a directory, sorted by name.
	ReadDir(dir string) ([]fs.DirEntry, error)
	// SyncDir makes the names in dir durable.
	SyncDir(dir string) error
	// Lock takes an exclusive lock on byte 0 of the named file, creating it if need be. It excludes another process
	// that uses a byte-range lock on the file (a Java FileLock does) and another Lock of this process. It returns
	// ErrLocked at once when the lock is taken. Closing the result releases it.
	Lock(name string) (io.Closer, error)
	// Usage tells how full the volume of dir is.
	Usage(dir string) (Usage, error)
}

// VolumeOpener is an FS that can make a whole volume durable at once, which takes as long as a few files where there
// are thousands. It is optional.
type VolumeOpener interface {
	// OpenVolume returns the volume of dir.
	OpenVolume(dir string) (Volume, error)
}

// Volume is a volume that is kept open, so that no failed write since then goes unnoticed.
type Volume interface {
	// Sync makes all bytes and names of the volume durable that were there when it was called (syncfs). It returns an
	// error when any of them, whoever wrote it, could not be written since the last Sync.
	Sync() error
	io.Closer
}

// Usage is the space of a volume in bytes.
type Usage struct {
	Total int64 // size of the volume, without the reserve of the super-user
	Free  int64 // available to this process (without the reserve of the super-user)
}

// Used returns the used share of the volume as df shows it, 0..1; 0 for a volume of unknown size.
func (u Usage) Used() float64 {
	if u.Total <= 0 {
		return 0
	}
	return 1 - float64(u.Free)/float64(u.Total)
}

// File is an open file. ReadAt, WriteAt, Sync and the rest are safe to call from several goroutines.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Name returns the path the file was opened with.
	Name() string
	// Size returns the length in bytes.
	Size() (int64, error)
	// Truncate sets the length. Growing leaves a hole that reads as zeros.
	Truncate(size int64) error
	// Sync makes the bytes written so far durable (fdatasync), with the length when that is needed to read them.
	// After an error the state of the bytes is unknown, and a later success says nothing about them.
	Sync() error
	// Allocate gives [off, off+n) real blocks, so that writing there cannot meet a full disk; what was written
	// stays, and the length of the file does not change. Where the system cannot do that, it returns
	// errors.ErrUnsupported.
	Allocate(off, n int64) error
}

// Zeroer is implemented by files that can have zeros written ahead of need.
type Zeroer interface {
	// Zero writes zeros to [off, off+n) and hands them to the disk, so that a Sync that meets them finds little to do.
	// Blocks that hold data, even zeros, take a later write and its Sync without a change to the file system's own
	// records: on ext4 that halves the time of a Sync against blocks that Allocate alone gave. The zeros are durable
	// after Sync like all bytes, and a failure to write them back is told by Sync too. errors.ErrUnsupported where it cannot
	// be had.
	Zero(off, n int64) error
}

// Mapping is a shared read-only mapping of the first bytes of a file: what is written to the file shows in it.
type Mapping interface {
	// Bytes returns the mapped memory. It is valid until Unmap. Writing to it is a fault.
	Bytes() []byte
	// Unmap ends the mapping. It must be called exactly once.
	Unmap() error
}

// Mapper is implemented by files that bring a mapping of their own (the double's, which lives on the heap, where the
// race detector sees it).
type Mapper interface {
	// Map maps the first n bytes; the file must be at least so long.
	Map(n int64) (Mapping, error)
}

// DataSeeker is implemented by files that can tell where their data lies.
type DataSeeker interface {
	// NextData returns the start of the next region at or behind off that may hold bytes other than zero.
	// It returns io.EOF when there is none.
	NextData(off int64) (int64, error)
}

// MkdirAllDurable makes a directory and those of its parents that are missing, and makes their names durable. So it does
// with the names of the two nearest that exist: a process that was killed may have made them and come no further.
func MkdirAllDurable(fsys FS, dir string) error {
	var missing []string
	there := filepath.Clean(dir)
	for ; there != filepath.Dir(there); there = filepath.Dir(there) {
		if _, err := fsys.Stat(there); err == nil {
			break
		}
		missing = append(missing, there)
	}
	if len(missing) > 0 {
		if err := fsys.MkdirAll(dir); err != nil {
			return err
		}
	}
	for _, d := range []string{filepath.Dir(filepath.Dir(there)), filepath.Dir(there)} {
		if err := fsys.SyncDir(d); err != nil && !errors.Is(err, fs.ErrPermission) { // it is not ours then
			return err
		}
	}
	for _, d := range slices.Backward(missing) {
		if err := fsys.SyncDir(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}

// WriteFileDurable replaces the named file by data so that after a crash either the old or the new content is there:
// temporary file, sync, rename, sync of the directory. The permissions of a file that is replaced stay.
func WriteFileDurable(fsys FS, name string, data []byte) error {
	tmp := name + ".tmp"
	mode := fs.FileMode(0) // that of a new file
	if st, err := fsys.Stat(name); err == nil {
		mode = st.Mode().Perm()
	}
	if err := writeSynced(fsys, tmp, data, mode); err != nil {
		_ = fsys.Remove(tmp)
		return err
	}
	failpoint.Pass(failpoint.FileRename)
	if err := fsys.Rename(tmp, name); err != nil {
		_ = fsys.Remove(tmp)
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}

// WriteSynced makes the named file hold data and syncs it; its name is durable after SyncDir.
func WriteSynced(fsys FS, name string, data []byte) error { return writeSynced(fsys, name, data, 0) }

func writeSynced(fsys FS, name string, data []byte, mode fs.FileMode) error {
	f, err := fsys.OpenFile(name, flagCreateTrunc)
	if err != nil {
		return err
	}
	if c, ok := f.(interface{ Chmod(fs.FileMode) error }); ok && mode != 0 {
		err = c.Chmod(mode) // before there is something to read
	}
	if err == nil {
		_, err = f.WriteAt(data, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// ReadFile returns the content of the named file.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > maxReadFile {
		return nil, fmt.Errorf("cannot read file %q: %d bytes exceed the limit of %d", name, size, int64(maxReadFile))
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err != nil && (!errors.Is(err, io.EOF) || int64(n) != size) {
		return nil, err
	}
	return b, nil
}
