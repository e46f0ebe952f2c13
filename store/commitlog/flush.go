package commitlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"mqx/internal/failpoint"
	"mqx/internal/meter"
)

// flusher is who makes the log durable and who waits for that.
type flusher struct {
	mu    sync.Mutex       // one sync at a time
	times *meter.Histogram // how long the syncs took that made something durable

	kick     chan struct{} // somebody waits
	appended chan struct{} // there is something to flush, some time

	wait struct {
		sync.Mutex
		list  []waiter // in the order of arrival, and so of their deadlines
		spare []waiter // the list before, to be used again
		timer *time.Timer
	}
}

type waiter struct {
	end      int64
	deadline time.Time
	done     func(error)
}

// WaitFlushed calls done(nil) once the log is durable up to end: at once when it is already, else from the flusher,
// many calls after one sync. done gets ErrFlushTimeout after SyncFlushTimeout, a FailedError after a failed sync,
// ErrClosed when the log closes first. It is called exactly once and must not block.
func (l *Log) WaitFlushed(end int64, done func(error)) {
	if l.flushed.Load() >= end {
		done(nil)
		return
	}
	w := &l.fl.wait
	w.Lock()
	switch {
	case l.flushed.Load() >= end:
		w.Unlock()
		done(nil)
		return
	case l.Failed() != nil:
		w.Unlock()
		done(l.Failed())
		return
	case l.closed.Load():
		w.Unlock()
		done(ErrClosed)
		return
	}
	w.list = append(w.list, waiter{end: end, deadline: time.Now().Add(l.cfg.SyncFlushTimeout), done: done})
	if w.timer == nil {
		w.timer = time.AfterFunc(l.cfg.SyncFlushTimeout, l.expireWaiters)
	}
	w.Unlock()
	wake(l.fl.kick)
}

// Flush makes everything appended so far durable.
func (l *Log) Flush() error {
	err := l.flushTo(l.end.Load())
	l.completeReached()
	return err
}

// FlushTimes is how long the syncs of the log took since the start, in nanoseconds.
func (l *Log) FlushTimes() meter.Reading { return l.fl.times.Read() }

// KickFlush wakes the flusher without waiting.
func (l *Log) KickFlush() { wake(l.fl.kick) }

// flushTo syncs the files that hold [flushed, target).
func (l *Log) flushTo(target int64) error {
	l.fl.mu.Lock()
	defer l.fl.mu.Unlock()
	from := l.flushed.Load()
	if from >= target {
		return nil
	}
	if err := l.Failed(); err != nil {
		return err
	}
	if l.closed.Load() {
		return ErrClosed
	}
	began := time.Now()
	for _, s := range l.list() {
		if s.end() <= from || s.start >= target {
			continue
		}
		if err := l.syncSegment(s); err != nil && !s.leaving.Load() {
			if noDescriptors(err) { // nothing was synced, so nothing was lost: later
				return fmt.Errorf("cannot sync commit log: %w", err)
			}
			err = l.fail("sync", s.path, err)
			l.completeAll(err)
			return err
		}
	}
	l.fl.times.Observe(int64(time.Since(began)), 1)
	failpoint.Pass(failpoint.LogSynced)
	l.flushed.Store(target)
	l.trimOpen(nil)
	return nil
}

// noDescriptors reports whether err is that of a file that could not be opened because too many are.
func noDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// syncSegment makes the bytes and the name of a file durable, and looks whether the file is still the one that is
// written to: somebody may have removed or cut it.
func (l *Log) syncSegment(s *segment) error {
	f, err := l.open(s)
	if err != nil {
		return err
	}
	defer f.Release()
	if !s.nameSaved.Load() {
		if err := l.cfg.FS.SyncDir(l.cfg.Dir); err != nil {
			return err
		}
		s.nameSaved.Store(true)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	st, err := l.cfg.FS.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("the file was removed while it was written to")
	case err != nil:
		return nil // not about the bytes
	case st.Size() < s.size:
		return fmt.Errorf("the file was cut to %d bytes while it was written to", st.Size())
	}
	return nil
}

// completeReached calls back those whose position is durable.
func (l *Log) completeReached() {
	flushed := l.flushed.Load()
	l.complete(func(w *waiter) bool { return w.end <= flushed }, nil)
}

// completeAll calls everybody back with err, those excepted whose position is durable.
func (l *Log) completeAll(err error) {
	l.completeReached()
	l.complete(func(*waiter) bool { return true }, err)
}

// complete takes the waiters out that ready picks and calls them with err.
func (l *Log) complete(ready func(*waiter) bool, err error) {
	w := &l.fl.wait
	w.Lock()
	all := w.list
	w.list, w.spare = w.spare[:0], nil
	picked := all[:0]
	for i := range all {
		if ready(&all[i]) {
			picked = append(picked, all[i])
		} else {
			w.list = append(w.list, all[i])
		}
	}
	w.Unlock()
	if len(picked) > 0 {
		l.together(func() {
			for i := range picked {
				picked[i].done(err)
			}
		})
	}
	clear(all)
	w.Lock()
	if w.spare == nil && cap(all) <= maxSpareWaiters {
		w.spare = all[:0]
	}
	w.Unlock()
}

func (l *Log) together(f func()) {
	if l.cfg.Together == nil {
		f()
		return
	}
	l.cfg.Together(f)
}

// maxSpareWaiters bounds the list that is kept for the next round.
const maxSpareWaiters = 1 << 16

// expireWaiters gives up on those who waited too long. It runs at least once a SyncFlushTimeout while somebody waits.
func (l *Log) expireWaiters() {
	now := time.Now()
	l.complete(func(w *waiter) bool { return !w.deadline.After(now) }, ErrFlushTimeout)
	w := &l.fl.wait
	w.Lock()
	defer w.Unlock()
	if len(w.list) == 0 {
		w.timer = nil
		return
	}
	w.timer.Reset(time.Until(w.list[0].deadline))
}

// runFlusher syncs until ctx ends: at once for those who wait, and what nobody waits for after FlushInterval.
func (l *Log) runFlusher(ctx context.Context) {
	timer := time.NewTimer(l.cfg.FlushInterval)
	timer.Stop()
	last := time.Now()
	again := false            // somebody waits and was not served
	appended := l.fl.appended // nil while the timer runs: one wake-up an interval is enough
	for {
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-l.fl.kick:
			err := l.Flush() // the waiters have the error, and the log remembers it
			last = time.Now()
			if again = noDescriptors(err); again { // but for this one
				timer.Reset(l.cfg.FlushInterval)
				appended = nil
			}
		case <-appended:
			timer.Reset(l.cfg.FlushInterval)
			appended = nil
		case <-timer.C:
			if again || l.flushDue(time.Since(last)) {
				again = noDescriptors(l.Flush())
				last = time.Now()
			}
			appended = l.fl.appended
			if l.flushed.Load() < l.end.Load() && l.Failed() == nil {
				timer.Reset(l.cfg.FlushInterval)
				appended = nil
			}
		}
	}
}

// flushDue tells whether there is enough to sync, or something that is old enough.
func (l *Log) flushDue(since time.Duration) bool {
	flushed, end := l.flushed.Load(), l.end.Load()
	if flushed >= end {
		return false
	}
	return end/flushPage-flushed/flushPage >= int64(l.cfg.FlushLeastPages) || since >= l.cfg.FlushThoroughInterval
}
