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
	return l.extendReserved(s, to, func(f *mapped.File, from int64) (int64, error) { return l.allocate(s, f, from, to) })
}

// extendReserved calls take with the file of s and where its reserved space ends, unless that is behind to, and takes
// for reserved what is up to the position that take returns. Only one does so at a time.
func (l *Log) extendReserved(s *segment, to int64, take func(f *mapped.File, from int64) (int64, error)) error {
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
	upto, err := take(f, from)
	if err == nil {
		s.reserved.Store(upto)
	}
	return err
}

// setReserved takes back what is reserved of s behind to.
func (l *Log) setReserved(s *segment, to int64) {
	l.res.Lock()
	defer l.res.Unlock()
	s.reserved.Store(to)
}

// allocate gives [from, to) of s space and, when there is plenty, a step beyond. It returns the position up to which
// there is some. The lock of reservations is held.
func (l *Log) allocate(s *segment, f *mapped.File, from, to int64) (int64, error) {
	for step := l.reserveStep(to - from); ; step = max(step/4, to-from) {
		upto := min(from+step, s.end())
		err := f.Allocate(from-s.start, upto-from)
		switch {
		case err == nil:
			return upto, nil
		case errors.Is(err, errors.ErrUnsupported):
			return s.end(), nil // nothing to be had here: the write itself will tell
		case !isNoSpace(err):
			return 0, fmt.Errorf("cannot reserve space for commit log: %w", err)
		case upto <= to:
			return 0, &FullError{Path: s.path, Err: err}
		}
	}
}

// reserveStep is how much to ask for: ReserveStep, on a volume that gets full at most an eighth of what is left, and
// need at least.
func (l *Log) reserveStep(need int64) int64 {
	step := l.cfg.ReserveStep
	if l.zeroesAhead() {
		step = min(step, zeroStep)
	}
	if u, err := l.cfg.FS.Usage(l.cfg.Dir); err == nil {
		step = min(step, u.Free/8)
	}
	if l.zeroesAhead() {
		l.ahead.Store(min(zeroAhead, step*(zeroAhead/zeroStep)) - step)
	} else {
		l.ahead.Store(step / 2)
	}
	return max(step, need)
}

// Under SyncFlush space is filled with zeros before it is used: see vfs.Zeroer. The reserver does it, zeroStep at a time
// and zeroAhead before the writer; a writer that comes nearer than zeroMargin gets plain space, so that it hardly
// ever waits for a step to be written. Nobody writes behind segment.reserved, so no record meets the zeros.
const (
	zeroStep   = 1 << 20
	zeroMargin = 4 << 20
	zeroAhead  = 16 << 20
)

// zeroRate is the rate of appends in bytes a second above which no zeros are written: a sync takes so many pages then that
// what the zeros save is less than what they cost.
const zeroRate = 128 << 20

// pace is how fast the log grows. It is the reserver's.
type pace struct {
	end  int64
	at   time.Time
	fast bool
}

// look reports whether the log, which ends at end, grew faster than zeroRate over the last zeroAhead bytes.
func (p *pace) look(end int64, now time.Time) bool {
	if grown := end - p.end; grown >= zeroAhead || grown < 0 {
		p.fast = grown > 0 && !p.at.IsZero() && now.Sub(p.at).Seconds()*zeroRate < float64(grown)
		p.end, p.at = end, now
	}
	return p.fast
}

func (l *Log) zeroesAhead() bool { return l.cfg.FlushMode == SyncFlush }

// zeroAheadTo brings the space of s that is reserved and filled with zeros up to the position to.
func (l *Log) zeroAheadTo(s *segment, to int64) error {
	for s.reserved.Load() < to {
		if err := l.zeroPiece(s, to); err != nil {
			return err
		}
	}
	return nil
}

// zeroPiece reserves a step of s and fills it, or reserves only where the writer is too near.
func (l *Log) zeroPiece(s *segment, to int64) error {
	return l.extendReserved(s, to, func(f *mapped.File, from int64) (int64, error) {
		near := l.End() + zeroMargin
		upto, err := l.allocate(s, f, from, min(to, max(from+1, near)))
		if err != nil || from < near {
			return upto, err
		}
		upto = min(upto, from+zeroStep)
		if err := f.Zero(from-s.start, upto-from); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return 0, fmt.Errorf("cannot write zeros ahead of the commit log: %w", err)
		}
		return upto, nil
	})
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
	step := l.reserveStep(0)
	fill, want := l.ensureReserved, step/2
	if l.zeroesAhead() {
		want = l.ahead.Load() + step
		if !l.fast.look(l.End(), l.cfg.Clock.Now()) {
			fill = l.zeroAheadTo
		}
	}
	want += max(l.End(), s.start)
	if err := fill(s, min(s.end(), want)); err != nil {
		return err
	}
	next, err := l.prepareNext(s, s.end(), true)
	if err != nil || next == nil {
		return err
	}
	if want <= s.end() {
		return nil
	}
	return fill(next, min(want, next.end()))
}
