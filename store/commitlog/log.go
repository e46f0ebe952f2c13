package commitlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mqx/internal/meter"
	"mqx/store/mapped"
)

// Log is a commit log. It is safe to share between goroutines; SetEnd and Truncate must not run together with
// appends of others.
type Log struct {
	cfg      Config
	fileSize int64 // of new files

	segs  atomic.Pointer[[]*segment] // oldest first; the slice is replaced, never changed
	segMu sync.Mutex                 // replacing segs

	newest atomic.Pointer[segment] // the one that is appended to; nil before the first append

	end     atomic.Int64 // behind the last record that can be read
	flushed atomic.Int64 // durable up to here
	failed  atomic.Pointer[FailedError]
	held    atomic.Int64 // Unix time in ns when the append lock was taken, 0 = free
	closed  atomic.Bool
	// recovered: end is known, and nothing behind it is read.
	recovered atomic.Bool
	// whole is behind the last whole record while the log follows another, -1 otherwise.
	whole    atomic.Int64
	shown    atomic.Int64 // of gate: nothing behind it is handed out
	gate     gate
	watchers atomic.Pointer[[]chan struct{}]

	opens     atomic.Int64 // counts openings of files: the clock of segment.used
	openFiles atomic.Int64

	app   appender
	next  nextFile
	res   sync.Mutex   // reserving space
	ahead atomic.Int64 // bytes that the reserver keeps reserved ahead of the writer
	fast  pace         // owned by the reserver
	fl    flusher

	kickReserve chan struct{}

	hanging struct {
		sync.Mutex
		files []hangingFile
	}
}

func newLog(cfg Config) *Log {
	l := &Log{cfg: cfg, fileSize: cfg.FileSize}
	l.setList(nil)
	l.whole.Store(-1)
	l.shown.Store(noGate)
	l.ahead.Store(cfg.ReserveStep / 2)
	l.kickReserve = make(chan struct{}, 1)
	l.fl.kick, l.fl.times = make(chan struct{}, 1), meter.NewLatency()
	l.fl.appended = make(chan struct{}, 1)
	return l
}

// Run flushes and reserves space ahead of the writer until ctx ends; then it flushes once more. A log that is not run
// works, but reserves and creates files within appends, and flushes only on Flush.
func (l *Log) Run(ctx context.Context) error {
	if l.cfg.ReadOnly {
		<-ctx.Done()
		return nil
	}
	var wg sync.WaitGroup
	wg.Go(func() { l.runReserver(ctx) })
	l.runFlusher(ctx)
	wg.Wait()
	if err := l.Flush(); err != nil && !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// Close refuses further appends, flushes, removes the unused next file and closes the files. Waiters get ErrClosed
// if their position was not reached. Views stay valid until released. Close is idempotent; Run should have returned.
func (l *Log) Close() error {
	// 1. No more appends.
	l.app.Lock()
	if l.app.closed {
		l.app.Unlock()
		return nil
	}
	l.app.closed = true
	l.app.Unlock()
	// 2. What was appended becomes durable; those who wait for it are told.
	var err error
	if !l.cfg.ReadOnly {
		err = l.Flush()
	}
	l.closed.Store(true)
	l.completeAll(ErrClosed)
	// 3. The next file goes: Apache does the same at an orderly stop.
	err = errors.Join(err, l.discardNext())
	// 4. Files are closed; leases keep theirs open.
	l.app.Lock()
	l.app.releaseTail()
	l.app.Unlock()
	for _, s := range l.list() {
		l.drop(s)
	}
	return err
}

// Min is the first position of the log.
func (l *Log) Min() int64 {
	if segs := l.list(); len(segs) > 0 {
		return segs[0].start
	}
	return l.end.Load()
}

// End is the position behind the last record: appended, readable, maybe not durable. Before SetEnd it is Min.
func (l *Log) End() int64 { return l.end.Load() }

// Flushed is the position up to which the log is durable.
func (l *Log) Flushed() int64 { return l.flushed.Load() }

// Confirmed is the position up to which records may be handed out: End, and while the log follows another no more than the end of
// the last record, behind which there may be a gap. While the gate is closed it is what Confirm has said, at most.
func (l *Log) Confirmed() int64 {
	shown := l.shown.Load()
	if whole := l.whole.Load(); whole >= 0 {
		return min(whole, shown)
	}
	return min(l.end.Load(), shown)
}

// FileSize is the size of new files in bytes: what was found on disk, else what was configured.
func (l *Log) FileSize() int64 { return l.fileSize }

// Dir is the directory of the files.
func (l *Log) Dir() string { return l.cfg.Dir }

// Failed returns the error that makes the log refuse writes (a *FailedError), or nil.
func (l *Log) Failed() error {
	if err := l.failed.Load(); err != nil {
		return err
	}
	return nil
}

// refuses tells whether the log has failed.
func (l *Log) refuses() bool { return l.failed.Load() != nil }

// fail makes the log refuse writes for good and returns why it does; the first reason stays.
func (l *Log) fail(op, path string, cause error) error {
	err := &FailedError{Op: op, Path: path, Err: cause}
	if l.failed.CompareAndSwap(nil, err) {
		l.cfg.Logger.Error("commit log refuses writes from now on", "op", op, "path", path, "err", cause)
	}
	return l.failed.Load()
}

// FileInfo describes one file of the log.
type FileInfo struct {
	Path    string
	Start   int64 // position of the first byte
	Size    int64
	ModTime time.Time
}

// Files lists the files, oldest first, without the preallocated next one.
func (l *Log) Files() ([]FileInfo, error) {
	segs := l.list()
	out := make([]FileInfo, 0, len(segs))
	for _, s := range segs {
		info, err := l.info(s)
		if err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	return out, nil
}

func (l *Log) info(s *segment) (FileInfo, error) {
	st, err := l.cfg.FS.Stat(s.path)
	if err != nil {
		return FileInfo{}, fmt.Errorf("cannot describe commit log file: %w", err)
	}
	return FileInfo{Path: s.path, Start: s.start, Size: s.size, ModTime: st.ModTime()}, nil
}

// LockHeld tells how long the append lock has been held by the append that runs now; 0 when none does.
func (l *Log) LockHeld() time.Duration {
	since := l.held.Load()
	if since == 0 {
		return 0
	}
	return max(1, time.Duration(l.cfg.Clock.Now().UnixNano()-since))
}

// wake signals a loop that waits on ch, which has room for one signal.
func wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// setTail makes s the newest file; the appender keeps the lease of f.
func (a *appender) setTail(s *segment, f *mapped.File) {
	a.releaseTail()
	a.tail, a.file = s, f
}

func (a *appender) releaseTail() {
	if a.file != nil {
		a.file.Release()
	}
	a.tail, a.file = nil, nil
}
