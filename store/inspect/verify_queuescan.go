package inspect

import (
	"fmt"
	"path"
	"slices"

	"mqx/internal/words"
)

// queueScan is the pass over the units of one queue.
type queueScan struct {
	q *vqueue
	v *verifier

	page    *[bitPage / 64]uint64 // of good units
	pageNo  int64
	hasPage bool

	written, below, fillers int64
	next                    int64 // number behind the last unit that is not zero
	lastGood                int64
	end                     int64  // queue offset behind the last good unit
	gap                     []span // numbers never written, with a good unit behind
	bad                     []span // units that no record agrees with
	badWhat                 string
	suspects                []placeSuspect
	ahead                   []span
	aheadPhys               int64
	aheadCount              int64
}

func (s *queueScan) unit(u Unit) error {
	if u.Zero() {
		return nil
	}
	if s.isGood(u.N) {
		s.right(u.N, 1)
		s.end = u.Next()
		return nil
	}
	s.next = u.N + 1
	s.written++
	s.unclaimed(u)
	return nil
}

// isGood is bitPages.has with the last page at hand.
func (s *queueScan) isGood(n int64) bool {
	if no := n / bitPage; s.pageNo != no || !s.hasPage {
		s.page, s.pageNo, s.hasPage = s.q.mu.good[no], no, true
	}
	return s.page != nil && s.page[n%bitPage/64]&(1<<(n%64)) != 0
}

// right takes units that records agree with.
func (s *queueScan) right(n, count int64) {
	if s.lastGood >= 0 && n > s.next {
		s.gap = append(s.gap, span{s.next, n})
	}
	s.lastGood, s.next, s.end = n+count-1, n+count, n+count
	s.written += count
}

// unclaimed looks at a unit that no whole record agrees with.
func (s *queueScan) unclaimed(u Unit) {
	v := s.v
	switch {
	case u.Filler() && u.Phys == 0 && u.TagsCode == 0:
		if s.lastGood >= 0 {
			s.fillers++
			s.end = u.Next()
		}
	case !u.Written():
		s.wrong(u, "it is none: the position or the size is negative")
	case u.Phys < v.logMin:
		if s.lastGood >= 0 {
			s.wrong(u, fmt.Sprintf("it points to %d, before the log, behind units that point into it", u.Phys))
			return
		}
		s.below++
		s.end = max(s.end, u.Next())
	case s.claimed(u.N):
		// a whole record has the offset, and has said that the unit is wrong
	default:
		if b := v.breakAt(u.Phys); b != nil {
			s.lost(b, u)
			return
		}
		if u.Phys >= v.logEnd {
			s.beyond(u)
			return
		}
		s.wrong(u, fmt.Sprintf("it points to %d, where no record of it is", u.Phys))
		s.suspect(u)
	}
}

// lost gives a range without records what was there.
func (s *queueScan) lost(b *logBreak, u Unit) {
	s.v.queues.mu.Lock()
	defer s.v.queues.mu.Unlock()
	if b.kind != FindLogTorn && b.kind != FindLogSize { // else the log ends before it, and so will the queue
		s.end = max(s.end, u.Next())
	}
	if len(b.lost) < maxLost {
		b.lost = append(b.lost, lostRecord{s.q.key, u.Offset, u.Count, u.N, u.Phys, u.Size})
	}
}

// maxLost bounds what is kept of one range: a missing file of 1 GiB may have held millions.
const maxLost = 1 << 20

func (s *queueScan) beyond(u Unit) {
	if s.v.live {
		return // appended meanwhile
	}
	if s.aheadCount == 0 {
		s.aheadPhys = u.Phys
	}
	s.aheadCount += int64(u.Count)
	s.ahead = addSpan(s.ahead, u.N)
}

// claimed reports whether a whole record does not agree with a unit.
func (s *queueScan) claimed(n int64) bool {
	return slices.ContainsFunc(s.q.mu.bad, func(b span) bool { return n >= b.from && n < b.to })
}

func (s *queueScan) wrong(u Unit, what string) {
	if s.claimed(u.N) {
		return // a record has said it
	}
	if len(s.bad) == 0 {
		s.badWhat = what
	}
	s.bad = addSpan(s.bad, u.N)
}

// place is the file and the byte in it of a unit.
func (q *vqueue) place(n int64) (file string, at int64) {
	pos := n * q.key.UnitBytes()
	for _, f := range q.q.files {
		if pos >= f.Start && pos < f.End() {
			return q.v.d.Rel(f.Path), pos - f.Start
		}
	}
	return path.Join(q.key.Dir(), FileName(0)), pos
}

func (s *queueScan) report() {
	q, v := s.q, s.v
	if s.aheadCount > 0 {
		file, at := q.place(s.ahead[0].from)
		f := q.finding(FindQueueAhead, file, at, fmt.Sprintf("queue %s has %s of messages behind the end of the log at %d", q.key, words.Count(s.aheadCount, "unit"), v.logEnd))
		f.Phys, f.Messages = s.aheadPhys, s.aheadCount
		f.Mend, f.Derived = "cut the units; their messages are lost", false
		if s.aheadPhys >= v.d.log.Limit() {
			f.What += "; the log may go on elsewhere: " + lookElsewhere
		}
		f.Affected = affectedSpans(map[QueueKey][]span{q.key: s.ahead})
		v.found.add(f)
	}
	s.reportZero()
	bad := mergeRanges(append(append(slices.Clone(q.mu.bad), s.bad...), s.gapsInside()...))
	if len(bad) > 0 {
		file, at := q.place(bad[0].from)
		n := int64(0)
		for _, b := range bad {
			n += b.to - b.from
		}
		why := q.mu.badAt
		switch {
		case len(q.mu.bad) > 0 && q.mu.bad[0].from == bad[0].from:
		case len(s.bad) > 0:
			why = s.badWhat
		case why == "":
			why = "it was never written"
		}
		f := q.finding(FindQueueUnits, file, at, fmt.Sprintf("%s of queue %s are not what the log says; the first, %d: %s", words.Count(n, "unit"), q.key, bad[0].from, why))
		f.Messages = n
		if !q.key.Batch {
			f.Affected = affectedSpans(map[QueueKey][]span{q.key: bad})
		}
		v.found.add(f)
	}
	if twice := mergeRanges(slices.Clone(q.mu.twice)); len(twice) > 0 {
		f := q.finding(FindOffsetTwice, q.key.Dir(), -1, fmt.Sprintf("two records of queue %s carry the offset %d", q.key, twice[0].from))
		f.Mend, f.Messages = "", twice[0].to-twice[0].from
		f.Affected = affectedSpans(map[QueueKey][]span{q.key: twice})
		v.found.add(f)
	}
}

// gapsInside are numbers that were never written, between units that are right, with nothing in the log to explain it.
func (s *queueScan) gapsInside() []span {
	var out []span
	for _, g := range s.gap {
		if len(s.v.breaks) > 0 {
			// A record that cannot be read may have had the offset; those that can say so themselves.
			for _, z := range s.q.mu.zero {
				if z.from < g.to && z.to > g.from {
					out = append(out, span{max(z.from, g.from), min(z.to, g.to)})
				}
			}
			continue
		}
		out = append(out, g)
	}
	return out
}

// reportZero tells records whose unit was never written: at the end of the queue it is behind, elsewhere the unit is
// gone.
func (s *queueScan) reportZero() {
	q, v := s.q, s.v
	end := s.lastGood + 1
	if q.key.Batch {
		end = 0
	}
	var behind []span
	n := int64(0)
	for _, z := range mergeRanges(slices.Clone(q.mu.zero)) {
		if z.to > end {
			z.from = max(z.from, end)
			behind = append(behind, z)
			n += z.to - z.from
		}
		if z.from < end {
			q.mu.bad = append(q.mu.bad, span{z.from, min(z.to, end)})
			if q.mu.badAt == "" {
				q.mu.badAt = "it was never written"
			}
		}
	}
	if n == 0 {
		return
	}
	file, at := q.place(behind[0].from)
	f := q.finding(FindQueueBehind, file, at, fmt.Sprintf("queue %s ends before %s of the log", q.key, words.Count(n, "message")))
	f.Phys, f.Messages, f.Affected = q.mu.first, n, affectedSpans(map[QueueKey][]span{q.key: behind})
	durable := v.hasCkpt && v.ckpt.LogicsPhysOffset > 0 && q.mu.first <= v.ckpt.LogicsPhysOffset
	f.Note = v.dirty && !durable || v.live
	if v.dirty && durable && !v.live {
		f.What += fmt.Sprintf(", which the checkpoint says were there (up to %d)", v.ckpt.LogicsPhysOffset)
	}
	v.found.add(f)
}
