package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"

	"mqx/internal/words"
	"mqx/message"
)

// The head of a record names its topic, queue and queue offset, and no checksum covers them. Where a unit points exactly at
// a whole record that says another place, one of the two is wrong: the record, if the units before or behind that one are
// right and no unit stands where the record says. Then the unit tells what the record has to say again.

// placeSuspect is a unit that points to a record of another place.
type placeSuspect struct {
	s *queueScan
	u Unit
}

// maxSuspects bounds the suspects of one queue: a disk that loses more heads than that has lost the log.
const maxSuspects = 1 << 16

// wrongPlace is a record that says another place than its unit.
type wrongPlace struct {
	phys  int64
	size  int32
	right lostRecord // what the unit says
	file  File
	what  string
}

// suspect keeps a unit that is wrong, for as long as it may be right.
func (s *queueScan) suspect(u Unit) {
	if s.v.live || len(s.suspects) >= maxSuspects || message.IsLMQ(s.q.key.Topic) || s.v.topicGone(s.q.key.Topic) {
		return
	}
	s.suspects = append(s.suspects, placeSuspect{s, u})
}

// settlePlaces finds the records whose head is wrong. What such a record has said elsewhere is taken back, and its unit
// counts as right.
func (v *verifier) settlePlaces(scans []*queueScan) error {
	cur := newQueueCursors(v)
	props := newFields()
	for again := true; again; {
		again = false
		for _, s := range scans {
			if s == nil {
				continue
			}
			var left []placeSuspect
			for _, c := range s.suspects {
				ok, err := v.settlePlace(&cur, props, c)
				if err != nil {
					return err
				}
				if !ok {
					left = append(left, c)
				}
			}
			again = again || len(left) < len(s.suspects) // neighbours of these may have become right
			s.suspects = left
		}
	}
	v.reportPlaces()
	return nil
}

func (v *verifier) settlePlace(cur *queueCursors, props *fields, c placeSuspect) (bool, error) {
	q, u := c.s.q, c.u
	fits, err := v.betweenRight(cur, q, u)
	if err != nil || !fits {
		return false, err
	}
	rec, err := v.d.log.Record(u.Phys)
	if errors.Is(err, ErrNoRecord) {
		return false, nil // another finding tells
	}
	if err != nil || rec.Size() != u.Size || message.HasPropCRC(rec) || len(rec.Topic()) != len(q.key.Topic) {
		return false, err
	}
	if tx := rec.Transaction(); tx == message.TransactionPrepared || tx == message.TransactionRollback {
		return false, nil
	}
	props.read(rec.Properties())
	count := int32(1)
	if n, err := strconv.ParseInt(string(props.innerNum), 10, 16); err == nil && n > 0 && q.key.Batch {
		count = int32(n)
	}
	fitting := listable(rec) == nil
	if q.key.Batch {
		fitting = count == u.Count
	}
	if !fitting {
		return false, nil
	}
	e := expected{phys: u.Phys, offset: rec.QueueOffset(), size: u.Size, count: count}
	said, err := v.queues.of(rec.Topic(), rec.QueueID(), q.key.Batch)
	if err != nil {
		return false, err
	}
	if ok, err := v.takeBack(cur, said, e); err != nil || !ok {
		return false, err
	}
	f, ok := v.d.log.FileAt(u.Phys)
	if !ok {
		return false, nil
	}
	v.places = append(v.places, &wrongPlace{
		phys: u.Phys, size: u.Size, file: f, right: lostRecord{q.key, u.Offset, u.Count, u.N, u.Phys, u.Size},
		what: fmt.Sprintf("the record says offset %d of queue %s, its unit offset %d of %s, and nothing stands where the record says", rec.QueueOffset(), said.key, u.Offset, q.key),
	})
	c.s.trust(u)
	return true, nil
}

// betweenRight reports whether the unit before or behind one is right, and the one that is points to that side of it.
func (v *verifier) betweenRight(cur *queueCursors, q *vqueue, u Unit) (bool, error) {
	for _, side := range []int64{-1, 1} {
		n := u.N + side
		if n < 0 || !q.mu.good.has(n) {
			continue
		}
		o, ok, err := cur.unit(q, n)
		if err != nil {
			return false, err
		}
		if ok && o.Phys != u.Phys && (o.Phys < u.Phys) == (side < 0) {
			return true, nil
		}
	}
	return false, nil
}

// takeBack takes back what a record has said of its queue; false, and nothing is done, when the queue agrees with it.
func (v *verifier) takeBack(cur *queueCursors, q *vqueue, e expected) (bool, error) {
	if v.gone(q.key.Topic, e.phys) {
		return true, nil // nothing was said
	}
	var u Unit
	var ok bool
	var err error
	if q.key.Batch {
		u, ok, err = cur.batchUnit(q, e.offset)
	} else {
		u, ok, err = cur.unit(q, e.offset)
	}
	if err != nil || ok && u.Phys == e.phys && u.Offset == e.offset {
		return false, err
	}
	q.mu.recs--
	there := ok && !u.Zero()
	switch {
	case q.q != nil && !q.key.Batch && q.genPhys > 0 && e.phys < q.genPhys && e.offset >= q.genOffset,
		there && u.Phys > e.phys && u.Written() && v.isRecordOf(q, u):
		v.unseen[q.key.Topic]--
		if v.unseen[q.key.Topic] <= 0 {
			delete(v.unseen, q.key.Topic)
		}
	case !there:
		q.mu.zero = cutSpan(mergeRanges(q.mu.zero), span{e.offset, e.offset + int64(e.count)})
	default:
		q.mu.twice = cutSpan(mergeRanges(q.mu.twice), span{u.N, u.N + 1})
		q.mu.bad = cutSpan(mergeRanges(q.mu.bad), span{u.N, u.N + 1})
	}
	if q.mu.max <= e.offset+int64(e.count) {
		q.mu.max = 0
		for _, z := range q.mu.zero {
			q.mu.max = max(q.mu.max, z.to)
		}
	}
	return true, nil
}

// trust takes a unit for right that was taken for wrong.
func (s *queueScan) trust(u Unit) {
	s.bad = cutSpan(mergeRanges(s.bad), span{u.N, u.N + 1})
	p := s.q.mu.good.page(u.N / bitPage)
	p[u.N%bitPage/64] |= 1 << (u.N % 64)
	s.hasPage = false
	s.lastGood, s.end = max(s.lastGood, u.N), max(s.end, u.Next())
	s.q.mu.max = max(s.q.mu.max, u.Next())
	s.q.mu.recs++
}

// cutSpan takes a range out of ranges.
func cutSpan(list []span, out span) []span {
	var rest []span
	for _, s := range list {
		if s.to <= out.from || s.from >= out.to {
			rest = append(rest, s)
			continue
		}
		if s.from < out.from {
			rest = append(rest, span{s.from, out.from})
		}
		if s.to > out.to {
			rest = append(rest, span{out.to, s.to})
		}
	}
	return rest
}

func (v *verifier) reportPlaces() {
	slices.SortFunc(v.places, func(a, b *wrongPlace) int { return cmp.Compare(a.phys, b.phys) })
	for _, p := range v.places {
		l := p.right
		v.found.add(&Finding{
			Kind: FindRecordPlace, File: v.d.Rel(p.file.Path), Offset: p.phys - p.file.Start, Phys: p.phys, What: p.what,
			Affected: []Affected{{l.key.Topic, l.key.ID, l.offset, l.offset + int64(l.count), int64(l.count)}}, Messages: int64(l.count),
			Mend: "let it say again what its unit says", Derived: true, place: p,
		})
	}
}

// placeStep adds a record to the step that mends heads in its file.
func (b *planner) placeStep(f *Finding) {
	l := f.place.right
	x := stepLost{l.key.Topic, l.key.ID, l.key.Batch, l.offset, l.count, l.phys, l.size}
	for _, s := range b.plan.Steps {
		if s.Kind == StepPlace && s.File == f.File {
			s.Lost = append(s.Lost, x)
			s.Bytes += int64(l.size)
			s.What = fmt.Sprintf("let %s of %s say again the queue and offset that their units say", words.Count(len(s.Lost), "record"), f.File)
			return
		}
	}
	b.add(&Step{
		Kind: StepPlace, File: f.File, From: f.place.file.Start, Bytes: int64(l.size), Lost: []stepLost{x},
		What: fmt.Sprintf("let the record at %d say again that it is offset %d of queue %s", l.phys, l.offset, l.key),
	})
}

// mendPlaces writes topic, queue and queue offset of records anew. The records as they were are kept.
func (a *applier) mendPlaces(s *Step) (err error) {
	for _, l := range s.Lost {
		name := fmt.Sprintf("commitlog-%020d-%d", l.Phys, l.Size)
		if err := a.salvage(s.File, l.Phys-s.From, l.Phys-s.From+int64(l.Size), name); err != nil {
			return err
		}
	}
	f, err := a.fs.OpenFile(a.path(s.File), os.O_RDWR)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, l := range s.Lost {
		b := make([]byte, l.Size)
		if err := readFull(f, b, l.Phys-s.From); err != nil {
			return err
		}
		rec, err := message.ParseView(b, message.DecodeOptions{})
		if err != nil {
			return fmt.Errorf("cannot mend record at %d of %q: %w", l.Phys, path.Base(s.File), err)
		}
		if err := rec.SetPlace([]byte(l.Topic), l.Queue, l.Offset); err != nil {
			return err
		}
		if _, err := f.WriteAt(b, l.Phys-s.From); err != nil {
			return err
		}
	}
	return f.Sync()
}
