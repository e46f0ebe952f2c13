package vfs

import (
	"errors"
	"io/fs"
	"os"
)

const (
	flagCreateTrunc = os.O_RDWR | os.O_CREATE | os.O_TRUNC
	// maxReadFile bounds ReadFile, which is meant for configuration and other small files.
	maxReadFile = 1 << 30
)

// OS is the file system of the machine.
var OS FS = osFS{}

type osFS struct{}

// Open is os.Open.
func (osFS) Open(name string) (File, error) {
	return openOS(name, os.O_RDONLY)
}

// OpenFile is os.OpenFile.
func (osFS) OpenFile(name string, flag int) (File, error) {
	return openOS(name, flag)
}

// ErrSpecial is returned where a pipe, a socket or a device lies in the place of a file: opening one may wait for ever.
var ErrSpecial = errors.New("it is a pipe, a socket or a device, and no file")

// ErrDangling is returned where a link lies in the place of a file and leads nowhere.
var ErrDangling = errors.New("it is a link to nothing")

// Special reports whether a mode is that of what is neither a file nor a directory.
func Special(m fs.FileMode) bool {
	return m&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice|fs.ModeCharDevice) != 0
}

func refuseSpecial(name string) error {
	if st, err := os.Stat(name); err == nil && Special(st.Mode()) {
		return &os.PathError{Op: "open", Path: name, Err: ErrSpecial}
	}
	return nil // opening it says what is wrong
}

func openOS(name string, flag int) (File, error) {
	if err := refuseSpecial(name); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, flag, 0o644)
	if err != nil {
		return nil, err
	}
	return &osFile{File: f}, nil
}

// MkdirAll is os.MkdirAll.
func (osFS) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o755) }

// Remove is os.Remove.
func (osFS) Remove(name string) error { return os.Remove(name) }

// RemoveAll is os.RemoveAll.
func (osFS) RemoveAll(dir string) error { return os.RemoveAll(dir) }

// Rename is os.Rename.
func (osFS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

// Stat is os.Stat.
func (osFS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// ReadDir is os.ReadDir.
func (osFS) ReadDir(dir string) ([]fs.DirEntry, error) { return os.ReadDir(dir) }

// osFile is a file of the operating system; store/mapped maps it through OSFile.
type osFile struct {
	*os.File
}

// OSFile returns the file itself, for mapping it. The caller must not close it.
func (f *osFile) OSFile() *os.File { return f.File }

// Size is the length in bytes.
func (f *osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
