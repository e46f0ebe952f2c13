package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"mqx/message"
)

// followInterval is how often a log that is followed is looked at while nothing comes.
const followInterval = 100 * time.Millisecond

// tornPatience is how long bytes at the end of a followed log may be no record before that is told: a broker writes
// them in a moment.
const tornPatience = 2 * time.Second

// FollowOptions say how to follow a log.
type FollowOptions struct {
	From    int64 // where a record starts, or will
	OnBreak func(Break) error
}

// ErrOtherLog says that a log that was followed is not there any more: the directory is gone, or holds another store.
var ErrOtherLog = errors.New("the log is not the one that was followed")

// Follow hands over the records that pick chooses, in order, each once, from o.From on, and waits for those that a
// running broker adds, until ctx ends or f returns ErrStop. It reads a record when all of it is there. Files that expire
// before they were read are told as a hole. A broker that is stopped and started again goes on where it was; when the
// directory has gone the error is fs.ErrNotExist, when it holds another log ErrOtherLog.
func (d *Dir) Follow(ctx context.Context, o FollowOptions, pick func(message.View) bool, f func(off int64, rec message.View) error) error {
	at, log := o.From, d.log
	wait := time.NewTimer(0)
	defer wait.Stop()
	tornSince := time.Time{}
	var seen mark
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wait.C:
		}
		wait.Reset(followInterval)
		var err error
		if log, err = d.relist(log, at); err != nil {
			return err
		}
		if err := seen.still(log, at); err != nil {
			return fmt.Errorf("cannot follow the log of store %q: %w", d.root, err)
		}
		if log.Min() > at {
			hole := Break{Kind: BreakHole, From: at, To: log.Min()}
			if o.OnBreak != nil {
				if err := o.OnBreak(hole); err != nil {
					return err
				}
			}
			at = log.Min()
		}
		end, err := log.Walk(ctx, WalkOptions{From: at, StopAtZeros: true, OnBreak: func(b Break) error {
			if b.Kind == BreakTorn || o.OnBreak == nil {
				return nil
			}
			return o.OnBreak(b)
		}}, func(off int64, rec message.View) error {
			seen.set(off, rec)
			if !pick(rec) {
				return nil
			}
			return f(off, rec)
		})
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF) {
			at = max(at, end.Offset) // a file expired, or was cut, while it was read
			continue
		}
		if err != nil || end.Reason == EndStopped {
			return err
		}
		if end.Reason != EndTorn || end.Offset != at {
			tornSince = time.Time{}
		} else if tornSince.IsZero() {
			tornSince = d.o.Clock.Now()
		} else if o.OnBreak != nil && d.o.Clock.Now().Sub(tornSince) > tornPatience {
			if err := o.OnBreak(Break{Kind: BreakTorn, From: at, To: at, Err: end.Err}); err != nil {
				return err
			}
			tornSince = d.o.Clock.Now().Add(24 * time.Hour) // told once
		}
		at = max(at, end.Offset)
	}
}

// mark remembers the last record that was seen, to know the log by.
type mark struct {
	off   int64
	head  [markBytes]byte
	known bool
}

// markBytes are what tells records at one place apart: size, body checksum, queue, offsets, times.
const markBytes = 64

func (m *mark) set(off int64, rec message.View) {
	m.off, m.known = off, len(rec) >= markBytes
	copy(m.head[:], rec)
}

// still reports ErrOtherLog when the record is not where it was, unless it has expired.
func (m *mark) still(log *Log, at int64) error {
	if len(log.files) == 0 && (m.known || at > 0) {
		if _, err := log.d.fs.Stat(log.dirs[0]); err != nil {
			return err
		}
		return fmt.Errorf("%w: it has no files", ErrOtherLog)
	}
	if at > log.Limit() {
		return fmt.Errorf("%w: it ends at %d, and was read up to %d", ErrOtherLog, log.Limit(), at)
	}
	if !m.known || m.off < log.Min() {
		return nil
	}
	var b [markBytes]byte
	err := m.read(log, b[:])
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNoRecord) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil // its file goes right now; the next look says why
	}
	if err == nil && b != m.head {
		err = fmt.Errorf("%w: another record stands at %d", ErrOtherLog, m.off)
	}
	return err
}

// read reads what stands at the place now, from a file that is opened for it: one that is kept open may have been replaced.
func (m *mark) read(log *Log, b []byte) (err error) {
	f, ok := log.FileAt(m.off)
	if !ok {
		return ErrNoRecord
	}
	file, err := log.d.openRead(f.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return readFull(file, b, m.off-f.Start)
}

// relist lists the files anew when the ones known do not reach behind a position.
func (d *Dir) relist(l *Log, at int64) (*Log, error) {
	if at < l.Limit() && at >= l.Min() {
		if f, ok := l.FileAt(at); ok {
			if _, err := d.fs.Stat(f.Path); err == nil {
				return l, nil
			}
		}
	}
	return d.openLog()
}
