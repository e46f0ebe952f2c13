package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mqx/message"
	"mqx/store/consumequeue"
)

func compareAffected(a, b Affected) int {
	return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.From, b.From))
}

// queueTable is all queues: those that have files, and those that records name.
type queueTable struct {
	v  *verifier
	mu struct {
		sync.RWMutex
		byTopic map[string][]*vqueue
		all     []*vqueue
	}
	anyDir bool // there is a queue with files
	window int  // bytes of a queue that a worker keeps
}

// vqueue is one queue while it is compared.
type vqueue struct {
	key QueueKey
	no  int    // number in the table
	end int64  // offset behind the last unit that is right
	q   *Queue // nil: no files
	v   *verifier

	generation sync.Once
	genPhys    int64 // records before it with offsets from genOffset on are of an earlier topic of that name
	genOffset  int64

	mu struct {
		sync.Mutex
		good  bitPages // units that a record agrees with
		bad   []span   // numbers of units that a record does not agree with
		badAt string   // what is wrong with the first
		zero  []span   // offsets of records whose unit was never written
		first int64    // physical offset of the first record in zero
		max   int64    // behind the greatest offset of a record
		early int64    // store time of the first record in zero
		twice []span   // offsets that two records carry
		recs  int64
	}
}

func newQueueTable(v *verifier) (*queueTable, error) {
	t := &queueTable{v: v}
	t.mu.byTopic = map[string][]*vqueue{}
	keys, err := v.d.Queues()
	if err != nil {
		return nil, err
	}
	t.anyDir = len(keys) > 0
	for _, k := range keys {
		q, err := v.d.Queue(k)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		t.add(k, q)
	}
	t.window = min(4000, max(400, windowBudget/max(1, len(keys)*v.o.Workers)/20*20))
	return t, nil
}

// windowBudget bounds the parts of queues that are held at once by all workers.
const windowBudget = 16 << 20

func (t *queueTable) add(k QueueKey, q *Queue) *vqueue {
	x := &vqueue{key: k, q: q, v: t.v, no: len(t.mu.all)}
	x.mu.first = -1
	t.mu.all = append(t.mu.all, x)
	t.mu.byTopic[k.Topic] = append(t.mu.byTopic[k.Topic], x)
	return x
}

// of is the queue of a record. Batch says that the record belongs into a batch queue, if the topic has both kinds, or none.
func (t *queueTable) of(topic []byte, id int32, batch bool) (*vqueue, error) {
	t.mu.RLock()
	q := pickQueue(t.mu.byTopic[string(topic)], id, batch)
	t.mu.RUnlock()
	if q != nil {
		return q, nil
	}
	k := QueueKey{string(topic), id, batch}
	files, err := t.v.d.Queue(k) // a live broker may have made it meanwhile
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := pickQueue(t.mu.byTopic[string(topic)], id, batch); q != nil {
		return q, nil
	}
	return t.add(k, files), nil
}

func (t *queueTable) at(no int) *vqueue {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.mu.all[no]
}

func pickQueue(list []*vqueue, id int32, batch bool) *vqueue {
	var other *vqueue
	for _, q := range list {
		if q.key.ID != id {
			continue
		}
		if q.key.Batch == batch {
			return q
		}
		other = q
	}
	return other
}

// bitPages is a set of numbers, in pages that are made when they are needed.
type bitPages map[int64]*[bitPage / 64]uint64

const bitPage = 4096

// page is a page of the set, made when it is not there. Its words are changed atomically.
func (b *bitPages) page(no int64) *[bitPage / 64]uint64 {
	if *b == nil {
		*b = bitPages{}
	}
	p := (*b)[no]
	if p == nil {
		p = new([bitPage / 64]uint64)
		(*b)[no] = p
	}
	return p
}

func (b *bitPages) has(n int64) bool {
	p := (*b)[n/bitPage]
	return p != nil && p[n%bitPage/64]&(1<<(n%64)) != 0
}

// expected is what a record says of its unit.
type expected struct {
	phys, offset int64
	size, count  int32
	tagsCode     int64
	level        int // of a delayed message, whose tags code is the time of delivery; 0 for others
	storeTime    int64
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
	if q.q == nil || n < 0 {
		return Unit{}, false, nil
	}
	size := q.key.UnitBytes()
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
		return fmt.Sprintf("it is of offset %d and %d messages, the record of %d and %d", u.Offset, u.Count, e.offset, e.count)
	case u.Phys != e.phys:
		return fmt.Sprintf("it points to %d, the record is at %d", u.Phys, e.phys)
	case u.Size != e.size:
		return fmt.Sprintf("it says %d bytes, the record has %d", u.Size, e.size)
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

// see counts a record that no queue lists and none has to.
func (v *verifier) see(k QueueKey) {
	v.queues.mu.Lock()
	v.unseen[k.Topic]++
	v.queues.mu.Unlock()
}

// readQueues looks at every unit once more, from the queues' side.
func (v *verifier) readQueues() error {
	t := v.queues
	v.delays.settle()
	if v.allMissing() {
		return nil
	}
	return inParallel(v.o.Workers, len(t.mu.all), func(i int) error {
		q := t.mu.all[i]
		err := q.settle()
		if errors.Is(err, fs.ErrNotExist) && v.live {
			return nil
		}
		return err
	})
}

// allMissing reports one finding when no queue has files.
func (v *verifier) allMissing() bool {
	t := v.queues
	if t.anyDir || v.live || v.d.Has(KindRocksDBQueues) {
		return v.d.Has(KindRocksDBQueues)
	}
	spans, total := map[QueueKey][]span{}, int64(0)
	for _, q := range t.mu.all {
		if v.topicGone(q.key.Topic) {
			v.unseen[q.key.Topic] += q.mu.recs
			continue
		}
		spans[q.key] = q.mu.zero
		total += q.mu.recs
	}
	if total == 0 {
		return true
	}
	v.found.add(&Finding{
		Kind: FindQueueMissing, File: nameQueues, Offset: -1, Phys: v.logMin, Messages: total, Affected: affectedSpans(spans),
		What: fmt.Sprintf("there are no consume queues; the log holds %d messages of %d queues", total, len(spans)),
		Mend: "build the queues from the log", Derived: true,
	})
	return true
}

// topicGone reports whether topics.json is readable and does not know a topic.
func (v *verifier) topicGone(topic string) bool {
	return v.topics != nil && !v.topics[topic] && !message.IsLMQ(topic)
}

// settle looks at the files and units of one queue and reports what is wrong.
func (q *vqueue) settle() error {
	v := q.v
	if q.q == nil || len(q.q.files) == 0 {
		q.missing()
		return nil
	}
	for _, name := range q.q.others {
		v.foreign(filepath.Join(v.d.Path(q.key.Dir()), name), "its name is that of no queue file")
	}
	s := &queueScan{q: q, v: v, lastGood: -1}
	if err := q.rest(s); err != nil {
		return err
	}
	v.units.Add(s.written)
	v.below.Add(s.below)
	v.fillers.Add(s.fillers)
	q.files()
	s.report()
	q.end = max(q.end, s.end)
	return nil
}

// rest looks at the units that no record has been compared with. Pages of units that are right are passed over.
func (q *vqueue) rest(s *queueScan) error {
	if q.key.Batch {
		return q.q.Units(q.v.ctx, 0, noLimit, s.unit)
	}
	from := int64(0)
	for _, no := range slices.Sorted(maps.Keys(q.mu.good)) {
		if !fullPage(q.mu.good[no]) {
			continue
		}
		if err := q.q.Units(q.v.ctx, from, no*bitPage, s.unit); err != nil {
			return err
		}
		s.right(no*bitPage, bitPage)
		from = (no + 1) * bitPage
	}
	return q.q.Units(q.v.ctx, from, noLimit, s.unit)
}

func fullPage(p *[bitPage / 64]uint64) bool {
	for _, w := range p {
		if w != math.MaxUint64 {
			return false
		}
	}
	return true
}

func (q *vqueue) finding(kind FindingKind, file string, offset int64, what string) *Finding {
	return &Finding{
		Kind: kind, File: file, Offset: offset, Phys: -1, What: what, queue: &q.key,
		Mend: "build the queue from the log", Derived: true,
	}
}

// missing reports a queue that has records and no files.
func (q *vqueue) missing() {
	v := q.v
	if q.mu.recs == 0 {
		if q.q != nil && len(q.q.files) == 0 && len(q.q.others) > 0 {
			for _, name := range q.q.others {
				v.foreign(filepath.Join(v.d.Path(q.key.Dir()), name), "its name is that of no queue file")
			}
		}
		return
	}
	if v.topicGone(q.key.Topic) {
		v.unseen[q.key.Topic] += q.mu.recs
		return
	}
	f := q.finding(FindQueueMissing, q.key.Dir(), -1, fmt.Sprintf("queue %s has no files; the log holds %d messages of it", q.key, q.mu.recs))
	f.Phys, f.Messages = q.mu.first, q.mu.recs
	f.Affected = affectedSpans(map[QueueKey][]span{q.key: q.mu.zero})
	f.Note = q.pending()
	v.found.add(f)
}

// pendingTime is how long mqx may keep units in memory: they are written out every second.
const pendingTime = 5 * time.Second

// pending reports whether units that are missing may just not have been written yet when the broker died, or now.
func (q *vqueue) pending() bool {
	v := q.v
	switch {
	case v.live:
		return true
	case !v.dirty || !v.ownUnits:
		return false
	}
	return v.maxStore-q.mu.early < pendingTime.Milliseconds()
}

// files reports files of a queue that cannot be where or what they are.
func (q *vqueue) files() {
	size := q.q.FileSize()
	unit := q.key.UnitBytes()
	if size > 0 && size%unit != 0 {
		size = q.q.files[0].Size
	}
	for i, f := range q.q.files {
		var what string
		switch {
		case f.Size != size || f.Size%unit != 0:
			what = fmt.Sprintf("the file has %d bytes, others of the queue have %d", f.Size, size)
		case size > 0 && f.Start%size != 0:
			what = fmt.Sprintf("its name is no position where a file of %d bytes begins", size)
		case i > 0 && f.Start > q.q.files[i-1].Start+size:
			what = fmt.Sprintf("the file before it, %s, is missing", FileName(f.Start-size))
		default:
			continue
		}
		if q.v.live && i == len(q.q.files)-1 {
			continue // it is being made
		}
		x := q.finding(FindQueueFiles, q.v.d.Rel(f.Path), 0, what)
		x.Messages = -1
		q.v.found.add(x)
	}
}

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
	}
}

// lost gives a range without records what was there.
func (s *queueScan) lost(b *logBreak, u Unit) {
	s.v.queues.mu.Lock()
	defer s.v.queues.mu.Unlock()
	s.end = max(s.end, u.Next())
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
		f := q.finding(FindQueueAhead, file, at, fmt.Sprintf("queue %s has %d units of messages behind the end of the log at %d", q.key, s.aheadCount, v.logEnd))
		f.Phys, f.Messages = s.aheadPhys, s.aheadCount
		f.Mend, f.Derived = "cut the units; their messages are lost", false
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
		f := q.finding(FindQueueUnits, file, at, fmt.Sprintf("%d units of queue %s are not what the log says; the first, %d: %s", n, q.key, bad[0].from, why))
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
	f := q.finding(FindQueueBehind, file, at, fmt.Sprintf("queue %s ends before %d messages of the log", q.key, n))
	f.Phys, f.Messages, f.Affected = q.mu.first, n, affectedSpans(map[QueueKey][]span{q.key: behind})
	durable := v.hasCkpt && v.ckpt.LogicsPhysOffset > 0 && q.mu.first <= v.ckpt.LogicsPhysOffset
	f.Note = v.dirty && !durable || v.live
	if v.dirty && durable && !v.live {
		f.What += fmt.Sprintf(", which the checkpoint says were there (up to %d)", v.ckpt.LogicsPhysOffset)
	}
	v.found.add(f)
}
