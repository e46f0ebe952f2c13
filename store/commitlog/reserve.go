package commitlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mqx/store/mapped"
)

// nextFile is the file that follows the newest one, made before it is needed. The lock is held while it is made and
// while it becomes the newest; seg may be read without.
type nextFile struct {
	sync.Mutex
	seg atomic.Pointer[segment]
}

// ensureNext returns the file that follows the newest one, with need bytes reserved and a lease. It makes the file
// when the reserver has not. The append lock is held.
func (l *Log) ensureNext(need int64) (*segment, *mapped.File, error) {
	s, err := l.prepareNext(l.app.tail, l.app.pos, false)
	if err != nil {
		return nil, nil, err
	}
	if s == nil {
		return nil, nil, ErrClosed
	}
	if err := l.ensureReserved(s, max(s.start, l.app.pos)+need); err != nil {
		return nil, nil, err
	}
	f, err := l.open(s)
	return s, f, err
}

// prepareNext makes the file that follows newest, or, when there is none yet, the file for pos, unless it is there.
// It returns nil when newest is not the newest file any more, or the log is closed.
func (l *Log) prepareNext(newest *segment, pos int64, save bool) (*segment, error) {
	l.next.Lock()
	defer l.next.Unlock()
	if l.newest.Load() != newest || l.closed.Load() {
		return nil, nil
	}
	if s := l.next.seg.Load(); s != nil {
		return s, nil
	}
	start := pos - pos%l.fileSize
	if newest != nil {
		start = newest.end()
	}
	s, err := l.createSegment(start, save)
	if err != nil {
		return nil, err
	}
	l.next.seg.Store(s)
	return s, nil
}

// takeNext makes the prepared file the newest one.
func (l *Log) takeNext(s *segment) {
	l.next.Lock()
	defer l.next.Unlock()
	l.next.seg.Store(nil)
	l.addSegment(s)
	l.newest.Store(s)
}

// discardNext removes the prepared file. No other one is made before there is a newest file again.
func (l *Log) discardNext() error {
	l.next.Lock()
	defer l.next.Unlock()
	l.newest.Store(nil)
	s := l.next.seg.Swap(nil)
	if s == nil {
		return nil
	}
	l.drop(s)
	if err := l.cfg.FS.Remove(s.path); err != nil {
		return fmt.Errorf("cannot remove the unused commit log file: %w", err)
	}
	return nil
}

// ensureReserved sees to it that s has space up to the position to.
func (l *Log) ensureReserved(s *segment, to int64) error {
	if s.reserved.Load() >= to {
		return nil
	}
	return l.reserve(s, to)
}

// reserve gives s space on the volume up to the position to and, when there is plenty, a step beyond.
func (l *Log) reserve(s *segment, to int64) error {
	l.res.Lock()
	defer l.res.Unlock()
	from := s.reserved.Load()
	if from >= to {
		return nil
	}
	f, err := l.open(s)
	if err != nil {
		return err
	}
	defer f.Release()
	for step := l.reserveStep(to - from); ; step = max(step/4, to-from) {
		upto := min(from+step, s.end())
		err := f.Allocate(from-s.start, upto-from)
		switch {
		case err == nil:
			s.reserved.Store(upto)
			return nil
		case errors.Is(err, errors.ErrUnsupported):
			s.reserved.Store(s.end())
			return nil // nothing to be had here: the write itself will tell
		case !isNoSpace(err):
			return fmt.Errorf("cannot reserve space for commit log: %w", err)
		case upto <= to:
			return &FullError{Path: s.path, Err: err}
		}
	}
}

// reserveStep is how much to ask for: ReserveStep, on a volume that gets full at most an eighth of what is left, and
// need at least.
func (l *Log) reserveStep(need int64) int64 {
	step := l.cfg.ReserveStep
	if u, err := l.cfg.FS.Usage(l.cfg.Dir); err == nil {
		step = min(step, u.Free/8)
	}
	l.ahead.Store(step / 2)
	return max(step, need)
}

// reserverNeeded tells whether the writer comes near the end of what is reserved. The append lock is held.
func (l *Log) reserverNeeded() bool {
	s := l.app.tail
	return s != nil && (s.reserved.Load() < min(s.end(), l.app.pos+l.ahead.Load()) || l.next.seg.Load() == nil)
}

// reserveRetry is how long the reserver rests after it met a full or failing volume; appends then reserve for
// themselves, in smaller steps.
const reserveRetry = time.Second

// runReserver keeps space and the next file ready until ctx ends.
func (l *Log) runReserver(ctx context.Context) {
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.kickReserve:
		}
		err := l.reserveAhead()
		if err != nil && !failing {
			l.cfg.Logger.Warn("cannot reserve space for the commit log ahead of need", "err", err)
		}
		if failing = err != nil; failing {
			select {
			case <-ctx.Done():
				return
			case <-time.After(reserveRetry):
			}
		}
	}
}

// reserveAhead brings the newest file and the next one to where they should be.
func (l *Log) reserveAhead() error {
	s := l.newest.Load()
	if s == nil || l.refuses() {
		return nil
	}
	want := max(l.End(), s.start) + l.reserveStep(0)/2
	if err := l.ensureReserved(s, min(s.end(), want)); err != nil {
		return err
	}
	next, err := l.prepareNext(s, s.end(), true)
	if err != nil || next == nil {
		return err
	}
	if want <= s.end() {
		return nil
	}
	return l.ensureReserved(next, min(want, next.end()))
}
