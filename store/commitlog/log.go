package commitlog

import (
	"context"
	"time"
)

// Log is a commit log. It is safe to share between goroutines; SetEnd and Truncate must not run together with
// appends of others.
type Log struct {
	cfg Config
}

// Open lists the files of cfg.Dir without scanning them. Sizes found on disk are honoured. An empty last file is
// removed and a short one extended with zeros, each with a warning. The log takes no records before SetEnd or
// Truncate, unless it has no files. It starts nothing: see Run.
func Open(cfg Config) (*Log, error) { panic("not written yet") }

// Run flushes and reserves space ahead of the writer until ctx ends; then it flushes once more. A log that is not run
// works, but reserves and creates files within appends, and flushes only on Flush.
func (l *Log) Run(ctx context.Context) error { panic("not written yet") }

// Close refuses further appends, flushes, removes the unused next file and closes the files. Waiters get ErrClosed
// if their position was not reached. Views stay valid until released. Close is idempotent.
func (l *Log) Close() error { panic("not written yet") }

// Min is the first position of the log.
func (l *Log) Min() int64 { panic("not written yet") }

// End is the position behind the last record: appended, readable, maybe not durable. Before SetEnd it is Min.
func (l *Log) End() int64 { panic("not written yet") }

// Flushed is the position up to which the log is durable.
func (l *Log) Flushed() int64 { panic("not written yet") }

// Confirmed is the position up to which replicas have confirmed; without replication it is End.
func (l *Log) Confirmed() int64 { panic("not written yet") }

// FileSize is the size of new files in bytes: what was found on disk, else what was configured.
func (l *Log) FileSize() int64 { panic("not written yet") }

// Failed returns the error that makes the log refuse writes (a *FailedError), or nil.
func (l *Log) Failed() error { panic("not written yet") }

// FileInfo describes one file of the log.
type FileInfo struct {
	Path    string
	Start   int64 // position of the first byte
	Size    int64
	ModTime time.Time
}

// Files lists the files, oldest first, without the preallocated next one.
func (l *Log) Files() ([]FileInfo, error) { panic("not written yet") }

// SetEnd tells the log where it ends, after a walk that ended clean. Files behind are removed. What lies before off
// is made durable first.
func (l *Log) SetEnd(off int64) error { panic("not written yet") }

// Truncate cuts everything from to on, durably. When salvageDir is not empty, what is cut (up to the last byte that
// is not zero) is first kept there, in files named after offset and time.
func (l *Log) Truncate(to int64, salvageDir string) error { panic("not written yet") }

// LockHeld tells how long the append lock has been held by the append that runs now; 0 when none does.
func (l *Log) LockHeld() time.Duration { panic("not written yet") }

// AppendNotify returns a new channel that gets a value after records were appended since the last value was taken.
// Each consumer calls it once; StopNotify ends it.
func (l *Log) AppendNotify() <-chan struct{} { panic("not written yet") }

// StopNotify forgets a channel of AppendNotify.
func (l *Log) StopNotify(ch <-chan struct{}) { panic("not written yet") }
