package vfs

import (
	"errors"
	"io/fs"
	"syscall"
)

// Absent reports whether an error says that nothing lies at a path: no entry, a symbolic link that leads nowhere or to
// itself, or that a file lies where a directory should, or the other way round.
func Absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ELOOP)
}
