package timer

import (
	"errors"
	"fmt"
	"slices"
)

// Entry is a unit and where it lies.
type Entry struct {
	Unit
	Pos int64
}

// chunkUnits is how many units of a slot are in memory at once.
const chunkUnits = 100_000

// DueSlot reads the messages of one slot, the oldest first. Its memory does not grow with the messages, but for the
// cancellations, which have to be known before the first message.
type DueSlot struct {
	Time    int64   // ms
	Cancels []Entry // what cancels others of the slot
	Count   int     // units in all
	Lost    int     // units that should be there and are not: the log is damaged
	// Broken: the chain could not be followed, and Lost may be too small. Refind puts right what can be.
	Broken bool

	t     *Timer
	after int64   // units up to this position have been delivered before
	marks []int64 // the last unit of each chunk, the oldest chunk last
	stray []Entry // units found by searching, when the chain is broken
}

// OpenSlot reads the chain of a slot that waits. Its messages are given out by Next.
func (t *Timer) OpenSlot(slotMs int64) (*DueSlot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := &DueSlot{Time: slotMs, t: t, after: NoPos}
	t.opened = slotMs
	if slotMs == t.read {
		d.after = t.slotPos
	}
	s, ok := t.wheel.Slot(t.cfg.Rules.Tick(slotMs))
	if !ok {
		return d, nil
	}
	pos := s.Last
	for {
		u, err := t.log.unit(pos)
		if err == nil && u.Time() != slotMs && t.cfg.Rules.Floor(u.Time()) != slotMs {
			err = &UnitError{Pos: pos, What: fmt.Sprintf("it belongs to the slot of %d, not %d", u.Time(), slotMs)}
		}
		if err == nil && u.Prev >= pos {
			err = &UnitError{Pos: pos, What: fmt.Sprintf("the unit before it is at %d", u.Prev)}
		}
		if err != nil {
			if isIO(err) {
				return nil, err
			}
			return d, d.search(s, pos)
		}
		if d.Count%chunkUnits == 0 {
			d.marks = append(d.marks, pos)
		}
		d.Count++
		if u.Cancels() {
			d.Cancels = append(d.Cancels, Entry{u, pos})
		}
		if u.Prev == NoPos {
			return d, nil
		}
		pos = u.Prev
	}
}

// isIO reports whether the disk failed, rather than the bytes being wrong.
func isIO(err error) bool {
	var bad *UnitError
	return !errors.As(err, &bad) && !errors.Is(err, errOutside) && !errors.Is(err, errBlank)
}

// search finds the units of a slot whose chain is broken at a position: by reading the log from its first unit on, or from
// where the log begins when that is not known to be the first.
func (d *DueSlot) search(s Slot, broken int64) error {
	l := d.t.log
	d.marks, d.Cancels, d.Count, d.Broken = nil, nil, 0, true
	from := s.First
	if u, err := l.unit(from); err != nil || u.Prev != NoPos || d.t.cfg.Rules.Floor(u.Time()) != d.Time || from > broken {
		from = l.min()
	}
	for from < l.end {
		end, err := l.scan(from, l.end, func(pos int64, u Unit) bool {
			if d.t.cfg.Rules.Floor(u.Time()) == d.Time {
				d.stray = append(d.stray, Entry{u, pos})
				if u.Cancels() {
					d.Cancels = append(d.Cancels, Entry{u, pos})
				}
			}
			return true
		})
		if err != nil {
			return err
		}
		from = l.size.next(end + UnitSize) // over what is no unit
	}
	d.Count = len(d.stray)
	d.Lost = max(0, int(s.Num)-d.Count)
	return nil
}

// Next returns the next messages of the slot, without the cancellations, or nil at the end.
func (d *DueSlot) Next() ([]Entry, error) {
	if d.stray != nil {
		all := d.stray
		d.stray, d.marks = nil, nil
		return d.keep(all), nil
	}
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	for len(d.marks) > 0 {
		n := len(d.marks) - 1
		pos := d.marks[n]
		var chunk []Entry
		for pos != NoPos && len(chunk) < chunkUnits {
			u, err := d.t.log.unit(pos)
			if err != nil {
				return nil, err
			}
			chunk = append(chunk, Entry{u, pos})
			pos = u.Prev
		}
		d.marks = d.marks[:n]
		slices.Reverse(chunk)
		if chunk = d.keep(chunk); len(chunk) > 0 {
			return chunk, nil
		}
	}
	return nil, nil
}

// keep drops what has been delivered before and what cancels.
func (d *DueSlot) keep(all []Entry) []Entry {
	return slices.DeleteFunc(all, func(e Entry) bool { return e.Pos <= d.after || e.Cancels() })
}
