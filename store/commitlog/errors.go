package commitlog

import (
	"errors"
	"fmt"
	"syscall"
)

// Errors that callers tell apart.
var (
	// ErrTooLarge: the record, or the batch as a whole, does not fit into a file.
	ErrTooLarge = errors.New("record does not fit into a commit log file")
	// ErrFull: the volume has no space; see FullError. Nothing was assigned; appending works again when there is space.
	ErrFull = errors.New("no space for the commit log")
	// ErrCreate: the next file could not be created for another reason than space. Nothing was assigned.
	ErrCreate = errors.New("cannot create commit log file")
	// ErrFailed: a sync or a write failed in a way that leaves the state of the disk unknown; see FailedError. It stays.
	ErrFailed = errors.New("commit log refuses writes after a disk error")
	// ErrFlushTimeout: the position was not durable in time. The record is in the log and may become durable.
	ErrFlushTimeout = errors.New("flush did not finish in time")
	// ErrCut: the position that was waited for was cut by Truncate.
	ErrCut = errors.New("record was cut from the commit log")
	// ErrClosed: the log is closed or closing.
	ErrClosed = errors.New("commit log is closed")
	// ErrReadOnly: the log was opened for reading.
	ErrReadOnly = errors.New("commit log is open read-only")
	// ErrNotRecovered: SetEnd or Truncate must come before the first append.
	ErrNotRecovered = errors.New("commit log is not recovered yet")
	// ErrOutOfRange: the position lies outside the log or in a hole; see RangeError.
	ErrOutOfRange = errors.New("position is not in the commit log")
	// ErrStop: returned by a Walk callback to end the walk without an error.
	ErrStop = errors.New("stop walking")
)

// FullError says where there is no space. It is ErrFull.
type FullError struct {
	Path string // the file that could not get space
	Err  error  // the answer of the system
}

func (e *FullError) Error() string {
	return fmt.Sprintf("cannot reserve space for commit log %q: %v", e.Path, e.Err)
}

// Unwrap makes the error ErrFull and its cause.
func (e *FullError) Unwrap() []error { return []error{ErrFull, e.Err} }

// FailedError says what made the log refuse. It is ErrFailed.
type FailedError struct {
	Op   string // what was tried: "sync", "write"
	Path string
	Err  error
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("commit log refuses writes: cannot %s %q: %v", e.Op, e.Path, e.Err)
}

// Unwrap makes the error ErrFailed and its cause.
func (e *FailedError) Unwrap() []error { return []error{ErrFailed, e.Err} }

// RangeError says what was asked for and what there is. It is ErrOutOfRange.
type RangeError struct {
	Off, Len int64 // asked for
	Min, End int64 // there is
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("cannot read %d bytes at commit log offset %d: the log holds [%d, %d)", e.Len, e.Off, e.Min, e.End)
}

// Unwrap makes the error ErrOutOfRange.
func (e *RangeError) Unwrap() error { return ErrOutOfRange }

// isNoSpace tells whether the volume, or the quota on it, is full.
func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
