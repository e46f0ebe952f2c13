package inspect

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"strconv"

	"mqx/internal/words"
	"mqx/message"
)

const (
	// maxSpans bounds the ranges that are kept; with more, everything behind the first counts as one.
	maxSpans = 10_000
	// idsAtOnce bounds the ids of messages in memory: with more, the ranges are read several times.
	idsAtOnce = 1 << 20
)

// logItem is a record or the end of a walk.
type logItem struct {
	off int64
	rec message.View
	brk *Break
	err error
}

// records walks a log; a record is valid until the next one is asked for.
func records(ctx context.Context, d *Dir, from, to int64, read func(int64)) (next func() (logItem, bool), stop func()) {
	return iter.Pull(func(yield func(logItem) bool) {
		_, err := d.log.Walk(ctx, WalkOptions{
			From: from, To: to, VerifyBody: true, OnRead: read,
			OnBreak: func(b Break) error {
				if !yield(logItem{off: b.From, brk: &b}) {
					return ErrStop
				}
				return nil
			},
		}, func(off int64, rec message.View) error {
			if !yield(logItem{off: off, rec: rec}) {
				return ErrStop
			}
			return nil
		})
		if err != nil {
			yield(logItem{err: err})
		}
	})
}

// logSide is one of two logs that are compared.
type logSide struct {
	side Side
	next func() (logItem, bool)
	stop func()
	item logItem
	ok   bool
	last int64 // behind the last record
}

// advance goes to the next record. Breaks are told.
func (s *logSide) advance(d *differ) error {
	for {
		if s.item, s.ok = s.next(); !s.ok {
			return nil
		}
		if s.item.err != nil {
			return s.item.err
		}
		if s.item.brk == nil {
			s.last = s.item.off + int64(len(s.item.rec))
			return nil
		}
		b := s.item.brk
		if err := d.tell(Difference{
			Kind: DiffUnreadable, Side: s.side, Note: true, From: b.From, To: b.To, QueueOffset: -1, Phys: -1,
			What: fmt.Sprintf("no readable record from %d to %d", b.From, b.To),
		}); err != nil {
			return err
		}
	}
}

// logs compares the logs position by position.
func (d *differ) logs() error {
	la, lb := d.a.log, d.b.log
	if len(la.files) == 0 && len(lb.files) == 0 {
		return nil
	}
	from := max(la.Min(), lb.Min())
	if len(la.files) == 0 || len(lb.files) == 0 {
		from = min(la.Min(), lb.Min())
		if len(la.files) == 0 {
			from = lb.Min()
		}
	} else if err := d.starts(la.Min(), lb.Min()); err != nil {
		return err
	}
	total := max(la.Limit()-from, 0) + max(lb.Limit()-from, 0)
	done := int64(0)
	read := func(n int64) {
		if done += n; d.o.OnProgress != nil {
			d.o.OnProgress(min(done, total), total)
		}
	}
	a, b := &logSide{side: SideFirst, last: from}, &logSide{side: SideSecond, last: from}
	for i, s := range []*logSide{a, b} {
		dir := []*Dir{d.a, d.b}[i]
		at, err := dir.log.Align(d.ctx, from)
		if err != nil {
			return err
		}
		s.next, s.stop = records(d.ctx, dir, at, 0, read)
		defer s.stop()
		if err := s.advance(d); err != nil {
			return err
		}
	}
	return d.lockStep(a, b)
}

func (d *differ) starts(a, b int64) error {
	if a == b {
		return nil
	}
	side := SideFirst
	if a < b {
		side = SideSecond
	}
	return d.tell(Difference{
		Kind: DiffLogStart, Side: side, Note: true, From: min(a, b), To: max(a, b), QueueOffset: -1, Phys: -1,
		First: strconv.FormatInt(a, 10), Second: strconv.FormatInt(b, 10),
		What: fmt.Sprintf("the %s log begins at %d, the other at %d", side, max(a, b), min(a, b)),
	})
}

// lockStep goes through both logs. Records of the same position and bytes are the same; the others make ranges.
func (d *differ) lockStep(a, b *logSide) error {
	var open *openSpan
	for a.ok && b.ok {
		if a.item.off == b.item.off && bytes.Equal(a.item.rec, b.item.rec) {
			if open != nil {
				if err := d.closeSpan(open, a.item.off, DiffLogRange); err != nil {
					return err
				}
				open = nil
			}
			d.r.Same++
			if err := a.advance(d); err != nil {
				return err
			}
			if err := b.advance(d); err != nil {
				return err
			}
			continue
		}
		if open == nil {
			open = &openSpan{from: min(a.item.off, b.item.off)}
		}
		moveA, moveB := a.item.off <= b.item.off, b.item.off <= a.item.off
		if err := open.move(d, moveA, a, &open.a); err != nil {
			return err
		}
		if err := open.move(d, moveB, b, &open.b); err != nil {
			return err
		}
	}
	return d.rest(a, b, open)
}

// openSpan is a range whose end is not known yet.
type openSpan struct {
	from int64
	a, b int64 // records
}

func (o *openSpan) move(d *differ, wanted bool, s *logSide, count *int64) error {
	if !wanted || !s.ok {
		return nil
	}
	*count++
	return s.advance(d)
}

// rest tells what is behind the end of one of the logs.
func (d *differ) rest(a, b *logSide, open *openSpan) error {
	tail := &openSpan{from: -1}
	side := SideFirst
	for _, s := range []*logSide{a, b} {
		for s.ok {
			if tail.from < 0 {
				tail.from, side = s.item.off, s.side
			}
			if s == a {
				tail.a++
			} else {
				tail.b++
			}
			if err := s.advance(d); err != nil {
				return err
			}
		}
	}
	end := max(a.last, b.last)
	if open != nil { // they differ up to an end: they part
		open.a, open.b = open.a+tail.a, open.b+tail.b
		d.r.PartAt = open.from
		return d.closeSpan(open, end, DiffLogFork)
	}
	if tail.from < 0 {
		return nil
	}
	d.remember(tail, end)
	return d.tell(Difference{
		Kind: DiffLogEnd, Side: side, From: tail.from, To: end, First: strconv.FormatInt(tail.a, 10), Second: strconv.FormatInt(tail.b, 10), QueueOffset: -1, Phys: -1,
		What: fmt.Sprintf("the %s log goes on from %d with %s", side, tail.from, words.Count(tail.a+tail.b, "record")),
	})
}

func (d *differ) closeSpan(o *openSpan, to int64, kind DiffKind) error {
	d.remember(o, to)
	what := fmt.Sprintf("from %d to %d the first log has %s, the second %d, and they are not the same", o.from, to, words.Count(o.a, "record"), o.b)
	if kind == DiffLogFork {
		what = fmt.Sprintf("the logs part at %d: behind it the first has %s, the second %d", o.from, words.Count(o.a, "record"), o.b)
	}
	return d.tell(Difference{
		Kind: kind, Side: SideBoth, From: o.from, To: to, First: strconv.FormatInt(o.a, 10), Second: strconv.FormatInt(o.b, 10), QueueOffset: -1, Phys: -1, What: what,
	})
}

func (d *differ) remember(o *openSpan, to int64) {
	d.inA, d.inB = d.inA+o.a, d.inB+o.b
	if len(d.ranges) > 0 && (len(d.ranges) >= maxSpans || o.from == d.ranges[len(d.ranges)-1].to) {
		d.ranges[len(d.ranges)-1].to = to
		return
	}
	d.ranges = append(d.ranges, diffSpan{o.from, to})
}

// messages tells which messages of the ranges only one store has, by their ids: a message that lies elsewhere in the
// other's ranges is no difference.
func (d *differ) messages() error {
	passes := uint64(1 + max(d.inA, d.inB)/idsAtOnce)
	for pass := uint64(0); pass < passes && len(d.ranges) > 0; pass++ {
		ours := func(h uint64) bool { return h%passes == pass }
		inA, err := d.ids(d.a, ours)
		if err != nil {
			return err
		}
		inB, err := d.ids(d.b, ours)
		if err != nil {
			return err
		}
		if err := d.onlyIn(d.a, SideFirst, inB, ours, &d.r.OnlyFirst); err != nil {
			return err
		}
		if err := d.onlyIn(d.b, SideSecond, inA, ours, &d.r.OnlySecond); err != nil {
			return err
		}
	}
	return nil
}

// ids counts the messages of the ranges by their ids.
func (d *differ) ids(dir *Dir, ours func(uint64) bool) (map[uint64]int32, error) {
	out := map[uint64]int32{}
	return out, d.inRanges(dir, func(_ int64, v message.View) error {
		if h := idOf(v); ours(h) {
			out[h]++
		}
		return nil
	})
}

// idOf is a message's identity: its topic, its id, and its content.
func idOf(v message.View) uint64 {
	id, _ := v.Property(message.PropUniqKey)
	return lineHash(string(v.Topic()), v.QueueID(), v.Body(), string(id))
}

func (d *differ) inRanges(dir *Dir, f func(int64, message.View) error) error {
	for _, s := range d.ranges {
		at, err := dir.log.Align(d.ctx, s.from)
		if err != nil {
			return err
		}
		if at >= s.to {
			continue
		}
		if _, err := dir.log.Walk(d.ctx, WalkOptions{From: at, To: s.to, VerifyBody: true}, f); err != nil {
			return err
		}
	}
	return nil
}

func (d *differ) onlyIn(dir *Dir, side Side, other map[uint64]int32, ours func(uint64) bool, count *int64) error {
	return d.inRanges(dir, func(off int64, v message.View) error {
		h := idOf(v)
		if !ours(h) {
			return nil
		}
		if other[h] > 0 {
			other[h]--
			return nil
		}
		*count++
		id, ok := v.Property(message.PropUniqKey)
		if !ok {
			id = []byte(message.FormatOffsetID(v.StoreHost(), off))
		}
		return d.tell(Difference{
			Kind: DiffMessage, Side: side, From: -1, To: -1, Topic: string(v.Topic()), Queue: v.QueueID(), QueueOffset: v.QueueOffset(),
			MsgID: string(id), Phys: off, What: fmt.Sprintf("only the %s store has it", side),
		})
	})
}
