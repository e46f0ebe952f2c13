package cmd

import (
	"bufio"
	"io"
	"sync"
	"time"
)

const (
	lateBytes = 64 << 10
	// lateAfter is how long output may wait for more.
	lateAfter = 100 * time.Millisecond
)

// lateWriter hands output on when 64 KiB are together or 100 ms have passed, for rows that come by the million and for
// those that come now and then. It is safe to share. Close hands on the rest.
type lateWriter struct {
	mu struct {
		sync.Mutex
		b       *bufio.Writer
		err     error // of a writing that nobody waited for
		waiting bool
		closed  bool
	}
	timer *time.Timer
}

func newLateWriter(w io.Writer) *lateWriter {
	l := &lateWriter{}
	l.mu.b = bufio.NewWriterSize(w, lateBytes)
	l.timer = time.AfterFunc(time.Hour, l.late)
	l.timer.Stop()
	return l
}

// Write keeps p, or hands it on with what was kept.
func (l *lateWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.err != nil {
		return 0, l.mu.err
	}
	n, err := l.mu.b.Write(p)
	if !l.mu.waiting && err == nil && l.mu.b.Buffered() > 0 {
		l.mu.waiting = true
		l.timer.Reset(lateAfter)
	}
	return n, err
}

func (l *lateWriter) late() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.waiting = false
	if !l.mu.closed && l.mu.err == nil {
		l.mu.err = l.mu.b.Flush()
	}
}

// Close hands on what was kept. Nothing is written afterwards.
func (l *lateWriter) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
	l.mu.closed = true
	if l.mu.err != nil {
		return l.mu.err
	}
	return l.mu.b.Flush()
}
