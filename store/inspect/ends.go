package inspect

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sort"

	"mqx/internal/vfs"
	"mqx/message"
)

// Ends are the ends of a queue, found without reading all of it.
type Ends struct {
	Empty bool // no unit of a record was found
	// Min and Max are the queue offsets that can be read, Max exclusive.
	Min, Max int64
	// FirstPhys and LastPhys are the records at Min and before Max, -1 when there is none. LastEnd is behind the last one.
	FirstPhys, LastPhys, LastEnd int64
}

// Ends reads the last file of a queue, and a few units of the others. It trusts that the units in between are there; see
// Bounds for one that does not.
func (q *Queue) Ends(ctx context.Context) (Ends, error) {
	e := Ends{Empty: true, FirstPhys: -1, LastPhys: -1}
	last, behind, err := q.last(ctx)
	if err != nil || behind < 0 {
		return e, err
	}
	e.Max = behind
	if last.Written() {
		e.Empty, e.LastPhys, e.LastEnd = false, last.Phys, last.End()
		if q.Batch {
			e.Max = last.Next()
		}
	}
	e.Min = e.Max
	first, ok, err := q.firstFrom(ctx, q.d.log.Min(), behind)
	if err == nil && ok {
		e.Min, e.FirstPhys = first.Offset, first.Phys
	}
	return e, err
}

// last finds the newest unit of a record, and the number behind the newest written unit, -1 for none.
func (q *Queue) last(ctx context.Context) (last Unit, behind int64, err error) {
	size := q.UnitBytes()
	behind = -1
	for i := len(q.files) - 1; i >= 0; i-- {
		f := q.files[i]
		err := q.Units(ctx, f.Start/size, f.End()/size, func(u Unit) error {
			if !u.Written() {
				return nil
			}
			behind = max(behind, u.N+1)
			if !u.Filler() {
				last = u
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Unit{}, -1, err
		}
		if last.Written() {
			break
		}
	}
	return last, behind, nil
}

// firstFrom finds the first unit whose record is at or behind a position of the log, by halving.
func (q *Queue) firstFrom(ctx context.Context, phys, behind int64) (Unit, bool, error) {
	size := q.UnitBytes()
	for _, f := range q.files {
		lo, hi := f.Start/size, min(f.End()/size, behind)
		if lo >= hi {
			continue
		}
		var failed error
		n := lo + int64(sort.Search(int(hi-lo), func(i int) bool {
			u, ok, err := q.Unit(lo + int64(i))
			if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, fs.ErrNotExist) {
				failed = err
			}
			return ok && u.Written() && !u.Filler() && u.Phys >= phys
		}))
		if failed != nil || ctx.Err() != nil {
			return Unit{}, false, errors.Join(failed, ctx.Err())
		}
		if n == hi {
			continue
		}
		u, ok, err := q.Unit(n)
		return u, ok, err
	}
	return Unit{}, false, nil
}

// At is the unit that holds a queue offset; ok is false when there is none.
func (q *Queue) At(ctx context.Context, offset int64) (u Unit, ok bool, err error) {
	if !q.Batch {
		u, ok, err = q.Unit(offset)
		return u, ok && u.Written() && !u.Filler(), err
	}
	_, behind, err := q.last(ctx)
	if err != nil {
		return Unit{}, false, err
	}
	size := q.UnitBytes()
	for _, f := range q.files {
		lo, hi := f.Start/size, min(f.End()/size, behind)
		if lo >= hi {
			continue
		}
		n := lo + int64(sort.Search(int(hi-lo), func(i int) bool {
			x, there, _ := q.Unit(lo + int64(i))
			return there && x.Next() > offset
		}))
		if n == hi {
			continue
		}
		u, ok, err = q.Unit(n)
		return u, ok && u.Written() && u.Offset <= offset, err
	}
	return Unit{}, false, nil
}

// Tail is the end of the log.
type Tail struct {
	End
	Record message.View // the last record, nil when there is none
}

// Tail finds the end of the log. hint is where a record ends, or ended, near the end: the search begins there when
// something is there, else at the newest file that holds something.
func (l *Log) Tail(ctx context.Context, hint int64) (Tail, error) {
	i := len(l.files) - 1
	for ; i > 0; i-- {
		var b [message.BlankLen]byte
		n := min(int64(len(b)), l.files[i].Size)
		err := l.d.fds.readAt(l.files[i].Path, b[:n], 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Tail{}, err
		}
		if err == nil && !vfs.AllZero(b[:n]) {
			break
		}
	}
	if i < 0 {
		return Tail{End: End{Reason: EndOfData, Last: -1, LastEnd: -1}}, nil
	}
	from := l.files[i].Start
	last := int64(-1)
	if hint > from && hint < l.files[i].End() {
		if _, err := l.Record(hint); err == nil {
			from = hint
		}
	}
	end, err := l.Walk(ctx, WalkOptions{From: from}, func(off int64, _ message.View) error { last = off; return nil })
	t := Tail{End: end}
	if err != nil || last < 0 {
		return t, err
	}
	t.Record, err = l.Record(last)
	return t, err
}

// SeekTime is a position from which on all records stored at or after a time are found: the start of a file. It trusts
// store times to within clockSlack.
func (l *Log) SeekTime(ms int64) (int64, error) {
	files := l.files
	var failed error
	i := sort.Search(len(files), func(i int) bool {
		t, ok, err := l.startTime(files[i])
		if err != nil {
			failed = err
		}
		return !ok || t >= ms-clockSlackMs
	})
	if i == 0 || failed != nil {
		return l.Min(), failed
	}
	return files[i-1].Start, nil
}

// EndTime is a position behind all records that were stored before a time, to within clockSlack; 0 when that is the end.
func (l *Log) EndTime(ms int64) (int64, error) {
	var failed error
	i := sort.Search(len(l.files), func(i int) bool {
		t, ok, err := l.startTime(l.files[i])
		if err != nil {
			failed = err
		}
		return ok && t > ms+clockSlackMs
	})
	if i == len(l.files) || failed != nil {
		return 0, failed
	}
	return l.files[i].Start, nil
}

// clockSlackMs is how far the clock of a broker may have been set back without a message being overlooked.
const clockSlackMs = 3600_000

// startTime is the store time of the record that begins a file; ok is false when none does.
func (l *Log) startTime(f File) (ms int64, ok bool, err error) {
	v, err := l.Record(f.Start)
	switch {
	case err == nil:
		return v.StoreTimestamp(), true, nil
	case errors.Is(err, ErrNoRecord), errors.Is(err, fs.ErrNotExist), errors.Is(err, io.ErrUnexpectedEOF):
		return 0, false, nil
	}
	return 0, false, err
}
