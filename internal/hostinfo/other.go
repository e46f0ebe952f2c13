//go:build !linux

package hostinfo

import "time"

func newReader(string) *Reader { return &Reader{} }

// Read tells that nothing is known.
func (*Reader) Read(now time.Time) *Sample { return &Sample{At: now, Errors: []error{ErrUnsupported}} }

// Process tells that nothing is known.
func (*Reader) Process(int) (*Process, error) { return nil, ErrUnsupported }

// Disk tells that nothing is known.
func (*Reader) Disk(string) (*Disk, error) { return nil, ErrUnsupported }

// Find tells that nothing is known.
func (*Reader) Find(func([]string) bool) ([]*Process, error) { return nil, ErrUnsupported }

// OpenFiles tells that nothing is known.
func (*Reader) OpenFiles(int) ([]OpenFile, error) { return nil, ErrUnsupported }
