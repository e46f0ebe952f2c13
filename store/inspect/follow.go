package inspect

import (
	"context"
	"errors"
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

// Follow hands over the records that pick chooses, in order, each once, from o.From on, and waits for those that a
// running broker adds, until ctx ends or f returns ErrStop. It reads a record when all of it is there. Files that expire
// before they were read are told as a hole.
func (d *Dir) Follow(ctx context.Context, o FollowOptions, pick func(message.View) bool, f func(off int64, rec message.View) error) error {
	at, log := o.From, d.log
	wait := time.NewTimer(0)
	defer wait.Stop()
	tornSince := time.Time{}
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
			if !pick(rec) {
				return nil
			}
			return f(off, rec)
		})
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil // a file expired, or was cut, while it was read
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
