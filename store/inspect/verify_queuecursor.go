package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sync/atomic"

	"mqx/internal/words"
	"mqx/store/consumequeue"
)

// expected is what a record says of its unit.
type expected struct {
	phys, offset int64
	size, count  int32
	tagsCode     int64
	level        int // of a delayed message, whose tags code is the time of delivery; 0 for others
	storeTime    int64
	single       bool // one message, in a batch queue
}

// queueCursors hold, for one worker, a part of each queue.
type queueCursors struct {
	v    *verifier
	list []queueCursor
	err  error
}

type queueCursor struct {
	buf  []byte
	from int64 // number of the first unit in buf
	next int64 // batch: where the next unit is expected

	recs, max int64                 // of the queue, not yet in its sums
	page      *[bitPage / 64]uint64 // of good units
	pageNo    int64
}

func newQueueCursors(v *verifier) queueCursors { return queueCursors{v: v} }

// settle gives the queues what was added up.
func (c *queueCursors) settle() {
	for i := range c.list {
		x := &c.list[i]
		if x.recs == 0 {
			continue
		}
		q := c.v.queues.at(i)
		q.mu.Lock()
		q.mu.recs += x.recs
		q.mu.max = max(q.mu.max, x.max)
		q.mu.Unlock()
		x.recs = 0
	}
}

// right marks a unit that its record agrees with; was reports that another record had done so.
func (c *queueCursors) right(q *vqueue, w *queueCursor, n int64) (was bool) {
	if no := n / bitPage; w.page == nil || w.pageNo != no {
		q.mu.Lock()
		w.page, w.pageNo = q.mu.good.page(no), no
		q.mu.Unlock()
	}
	bit := uint64(1) << (n % 64)
	return atomic.OrUint64(&w.page[n%bitPage/64], bit)&bit != 0
}

func (c *queueCursors) of(q *vqueue) *queueCursor {
	for q.no >= len(c.list) {
		c.list = append(c.list, make([]queueCursor, q.no+1-len(c.list))...)
	}
	return &c.list[q.no]
}

// unit reads unit n of a queue; ok is false when no file has it.
func (c *queueCursors) unit(q *vqueue, n int64) (u Unit, ok bool, err error) {
	size := q.key.UnitBytes()
	if q.q == nil || n < 0 || n >= math.MaxInt64/size {
		return Unit{}, false, nil // also what a broken record says, which may be any number
	}
	w := c.of(q)
	if at := n - w.from; at >= 0 && (at+1)*size <= int64(len(w.buf)) {
		return q.q.decode(w.buf[at*size:], n), true, nil
	}
	for _, f := range q.q.files {
		if n*size < f.Start || (n+1)*size > f.End() {
			continue
		}
		want := min(int64(c.v.queues.window)/size*size, (f.End()-n*size)/size*size)
		if int64(cap(w.buf)) < want {
			w.buf = make([]byte, want)
		}
		w.buf, w.from = w.buf[:want], n
		err := c.v.d.fds.readAt(f.Path, w.buf, n*size-f.Start)
		if err != nil {
			w.buf = w.buf[:0]
			if errors.Is(err, fs.ErrNotExist) && c.v.live {
				return Unit{}, false, nil
			}
			return Unit{}, false, err
		}
		return q.q.decode(w.buf, n), true, nil
	}
	return Unit{}, false, nil
}

// batchUnit finds the unit of a batch queue with a base offset.
func (c *queueCursors) batchUnit(q *vqueue, base int64) (Unit, bool, error) {
	if q.q == nil || len(q.q.files) == 0 {
		return Unit{}, false, nil
	}
	w := c.of(q)
	if u, ok, err := c.unit(q, w.next); err != nil || (ok && u.Offset == base && u.Written()) {
		w.next++
		return u, ok, err
	}
	size := q.key.UnitBytes()
	lo, hi := q.q.files[0].Start/size, q.q.files[len(q.q.files)-1].End()/size
	for lo < hi {
		mid := (lo + hi) / 2
		u, ok, err := c.unit(q, mid)
		if err != nil {
			return u, false, err
		}
		if ok && u.Written() && u.Offset < base {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	u, ok, err := c.unit(q, lo)
	w.next = lo + 1
	return u, ok, err
}

// compare compares what a record says of its unit with what stands there.
func (c *queueCursors) compare(q *vqueue, e expected) error {
	v := c.v
	if v.gone(q.key.Topic, e.phys) {
		return nil
	}
	var u Unit
	var ok bool
	var err error
	if q.key.Batch {
		u, ok, err = c.batchUnit(q, e.offset)
	} else {
		u, ok, err = c.unit(q, e.offset)
	}
	if err != nil {
		return err
	}
	if e.single && !v.ownUnits && (!ok || u.Zero() || u.Offset != e.offset) {
		v.singles.Add(1) // Apache's broker lists batches only
		return nil
	}
	w := c.of(q)
	w.recs++
	w.max = max(w.max, e.offset+int64(e.count))
	if !ok || u.Zero() {
		c.missing(q, e)
		return nil
	}
	why := c.differs(q, u, e)
	if why == "" {
		if c.right(q, w, u.N) {
			q.mu.Lock()
			q.mu.twice = addSpan(q.mu.twice, u.N)
			q.mu.Unlock()
		}
		return nil
	}
	if c.earlier(q, e) || c.superseded(q, u, e) {
		return nil
	}
	q.mu.Lock()
	if len(q.mu.bad) == 0 || u.N < q.mu.bad[0].from {
		q.mu.badAt = why
	}
	q.mu.bad = addSpan(q.mu.bad, u.N)
	q.mu.Unlock()
	return nil
}

// missing notes a record without a unit.
func (c *queueCursors) missing(q *vqueue, e expected) {
	if c.earlier(q, e) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.first < 0 || e.phys < q.mu.first {
		q.mu.first, q.mu.early = e.phys, e.storeTime
	}
	if e.count == 1 {
		q.mu.zero = addSpan(q.mu.zero, e.offset)
	} else {
		q.mu.zero = append(q.mu.zero, span{e.offset, e.offset + int64(e.count)})
	}
}

// differs says what is wrong with a unit, "" for nothing.
func (c *queueCursors) differs(q *vqueue, u Unit, e expected) string {
	switch {
	case q.key.Batch && (u.Offset != e.offset || u.Count != e.count):
		return fmt.Sprintf("it is of offset %d and %s, the record of %d and %d", u.Offset, words.Count(u.Count, "message"), e.offset, e.count)
	case u.Phys != e.phys:
		return fmt.Sprintf("it points to %d, the record is at %d", u.Phys, e.phys)
	case u.Size != e.size:
		return fmt.Sprintf("it says %s, the record has %d", words.Count(u.Size, "byte"), e.size)
	case q.key.Batch && u.StoreTime != e.storeTime:
		return fmt.Sprintf("it says store time %d, the record %d", u.StoreTime, e.storeTime)
	case q.key.Batch && u.Compacted != -1:
		return fmt.Sprintf("it says compacted offset %d, not -1", u.Compacted)
	}
	code := u.TagsCode
	if e.level == 0 && consumequeue.IsExtAddr(code) {
		x, ok, err := q.q.Ext(code)
		switch {
		case err != nil:
			return "its extension unit cannot be read: " + err.Error()
		case !ok:
			return "it names an extension unit that is not there"
		case x.StoreTime != e.storeTime:
			return fmt.Sprintf("its extension unit says store time %d, the record %d", x.StoreTime, e.storeTime)
		}
		code = x.TagsCode
	}
	if e.level > 0 {
		if c.v.delays.agrees(q, u.N, e.level, code-e.storeTime) {
			return ""
		}
		return fmt.Sprintf("it says delivery at %d, the record level %d", code, e.level)
	}
	if code != e.tagsCode {
		return fmt.Sprintf("it says tags code %d, the record %d", code, e.tagsCode)
	}
	return ""
}

// earlier reports whether a record is of an earlier topic of that name: it lies before the first message of the queue and
// carries an offset that the queue has given out again.
func (c *queueCursors) earlier(q *vqueue, e expected) bool {
	if q.q == nil || q.key.Batch {
		return false
	}
	q.generation.Do(func() { c.findGeneration(q) })
	if q.genPhys <= 0 || e.phys >= q.genPhys || e.offset < q.genOffset {
		return false
	}
	c.v.see(q.key)
	return true
}

// findGeneration looks for the first unit of the queue whose record says that it is the one.
func (c *queueCursors) findGeneration(q *vqueue) {
	tried := 0
	_ = q.q.Units(c.v.ctx, 0, noLimit, func(u Unit) error {
		if !u.Written() || u.Filler() || u.Phys < c.v.logMin {
			return nil
		}
		if tried++; tried > maxTried {
			return ErrStop
		}
		if c.v.isRecordOf(q, u) {
			q.genPhys, q.genOffset = u.Phys, u.N
			return ErrStop
		}
		return nil
	})
}

const maxTried = 64

func (v *verifier) isRecordOf(q *vqueue, u Unit) bool {
	rec, err := v.d.log.Record(u.Phys)
	return err == nil && rec.QueueOffset() == u.Offset && rec.QueueID() == q.key.ID && string(rec.Topic()) == q.key.Topic && rec.Size() == u.Size
}

// superseded reports whether a unit belongs to a later record of the same offset, which is what a topic leaves that was
// deleted and made again.
func (c *queueCursors) superseded(q *vqueue, u Unit, e expected) bool {
	if u.Phys == e.phys || !u.Written() || !c.v.isRecordOf(q, u) {
		return false
	}
	if u.Phys > e.phys {
		c.v.see(q.key)
		return true
	}
	q.mu.Lock()
	q.mu.twice = addSpan(q.mu.twice, u.N)
	q.mu.Unlock()
	return true
}
