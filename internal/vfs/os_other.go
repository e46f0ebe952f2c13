//go:build !linux && !darwin

package vfs

import (
	"errors"
	"os"
)

// Sync makes the file durable.
func (f *osFile) Sync() error { return f.File.Sync() }

// Allocate is not offered here.
func (f *osFile) Allocate(int64, int64) error {
	return &os.PathError{Op: "allocate", Path: f.Name(), Err: errors.ErrUnsupported}
}
