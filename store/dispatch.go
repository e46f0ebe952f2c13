package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"mqx/internal/failpoint"
	"mqx/message"
	"mqx/store/commitlog"
	"mqx/store/consumequeue"
)

const (
	// dispatchRound bounds how many bytes of the log one round of the dispatcher takes before it looks at the world.
	dispatchRound = 4 << 20
	// pendingSoft of units in memory, or pendingEach a queue, make the dispatcher write them out, pendingHard make it wait
	// until that works. With thousands of queues every write opens a file, and is to be worth that.
	pendingSoft = 1 << 20
	pendingEach = 320
	pendingHard = 16 << 20
)

// pendingLimit is how many bytes of units may be in memory before they are written out.
func (s *Store) pendingLimit() int64 {
	return min(max(pendingSoft, pendingEach*int64(s.cqs.Dirty())), pendingHard/2)
}

// dispatcher follows the log and builds consume queues from it. It belongs to one goroutine at a time (Store.dispatching).
type dispatcher struct {
	s   *Store
	pos atomic.Int64 // everything before is in the queues

	running atomic.Bool
	kick    chan struct{} // there is something that follow has not taken

	lastTopic []byte // of the record before: messages of one queue come in runs
	lastQueue *queue

	lastStart int64 // start of the last record dispatched, -1 for none
	lastEnd   int64
	lastStore int64 // its store time, ms

	rec *recoveryPass // while recovery dispatches

	bitMap []byte // room for one
}

func newDispatcher(s *Store) *dispatcher {
	return &dispatcher{s: s, lastStart: -1, kick: make(chan struct{}, 1)}
}

// run follows the log until ctx ends, wherever follow has not done so. It never polls.
func (d *dispatcher) run(ctx context.Context) {
	d.running.Store(true)
	defer d.running.Store(false)
	d.s.givingWay(ctx, d.runAs)
}

// runAs is run until ctx ends or the store gives way or does not any longer.
func (d *dispatcher) runAs(ctx context.Context, aside bool) {
	for ctx.Err() == nil && d.s.givesWay.Load() == aside {
		more, err := d.step(ctx)
		if err != nil {
			d.s.stats.dispatchRetries.Add(1)
			if !d.s.alarms.pause(ctx, alarmDispatch, err) {
				return
			}
			continue
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-d.kick:
		}
	}
}

// follow gives what was just appended to the queues, on the goroutine that has it in its cache, and before its
// senders are answered. What comes between two others, or too fast, is left to run. It never waits: it is called under
// Store.putting, which comes behind Store.dispatching in the order of locks.
func (d *dispatcher) follow(items []*commitlog.Append, appended time.Time) {
	if !d.running.Load() {
		return
	}
	if !d.s.dispatching.TryLock() {
		signal(d.kick)
		return
	}
	all := d.followLocked(items)
	d.s.dispatching.Unlock()
	if all {
		d.s.stats.dispatchTimes.Observe(int64(time.Since(appended)), 1)
	} else {
		signal(d.kick)
	}
	d.s.indexer.wake()
}

// followLocked reports whether it has taken everything. Needs Store.dispatching.
func (d *dispatcher) followLocked(items []*commitlog.Append) bool {
	failpoint.Pass(failpoint.Dispatch)
	defer failpoint.Pass(failpoint.Dispatched)
	confirmed, limit := d.s.log.Confirmed(), d.s.pendingLimit()
	for _, a := range items {
		if a.Err != nil {
			continue
		}
		if d.mayWait(a.Buf) {
			return false
		}
		if a.PhysicalOffset != d.pos.Load() || a.End > confirmed || d.s.cqs.Pending() >= limit {
			return false
		}
		if a.Sizes == nil {
			d.record(a.PhysicalOffset, a.Buf)
			continue
		}
		off, rec := a.PhysicalOffset, a.Buf
		for _, size := range a.Sizes {
			d.record(off, rec[:size:size])
			off, rec = off+int64(size), rec[size:]
		}
	}
	return true
}

// mayWait reports whether giving a record to its queue can take long: batch queues are written to at once, and on a full
// disk that is tried again and again.
func (d *dispatcher) mayWait(rec message.View) bool {
	if rec.SysFlag()&message.FlagInnerBatch != 0 {
		return true
	}
	if !d.s.queues.someBatch.Load() {
		return false
	}
	q := d.s.queues.getBytes(rec.Topic(), rec.QueueID())
	return q != nil && (q.batched || q.batch.Load() != nil)
}

// step dispatches some of what is there and reports whether there may be more. A unit is never left out: when too many
// of them cannot be written, the error comes back until they can.
func (d *dispatcher) step(ctx context.Context) (more bool, err error) {
	s := d.s
	s.dispatching.Lock()
	defer s.dispatching.Unlock()
	if s.cqs.Pending() >= pendingHard {
		if err := s.writeOut(); err != nil {
			return false, err
		}
	}
	end := s.log.Confirmed()
	if low := s.log.Min(); d.pos.Load() < low && low <= end { // the log of a slave begins where its master's did when it came
		d.pos.Store(low)
	}
	if d.pos.Load() >= end || ctx.Err() != nil {
		return false, nil
	}
	failpoint.Pass(failpoint.Dispatch)
	err = d.dispatch(min(end, d.pos.Load()+dispatchRound))
	failpoint.Pass(failpoint.Dispatched)
	s.indexer.wake()
	if err != nil {
		return false, err
	}
	if late := s.cfg.Clock.Now().UnixMilli() - d.lastStore; d.lastStart >= 0 {
		s.stats.dispatchTimes.Observe(max(0, late)*int64(time.Millisecond), 1)
	}
	if s.cqs.Pending() >= s.pendingLimit() {
		_ = s.writeOut() // raises the alarm; there is room for more yet
	}
	return true, nil
}

// writeOut brings the units that are in memory to the files.
func (s *Store) writeOut() error { return s.wroteOut(s.cqs.WriteOut()) }

// wroteOut raises or clears the alarm of queue files.
func (s *Store) wroteOut(err error) error {
	if err != nil {
		s.alarms.raise(alarmQueues, err)
		return err
	}
	s.alarms.clear(alarmQueues)
	return nil
}

// dispatch builds the queues from pos to a position.
func (d *dispatcher) dispatch(to int64) error {
	end, err := d.s.log.Walk(d.pos.Load(), commitlog.WalkOptions{To: to, Hot: true, VerifyBody: d.s.cfg.Follow, OnFinding: d.s.reportLog},
		func(off int64, rec message.View) error {
			d.record(off, rec)
			return nil
		})
	if err != nil {
		return err
	}
	if end.Offset < to {
		return fmt.Errorf("cannot read the commit log at %d: %v: %w", end.Offset, end.Reason, cmp.Or(end.Err, errUnreadable))
	}
	d.pos.Store(end.Offset)
	d.s.alarms.clear(alarmDispatch)
	return nil
}

var errUnreadable = errors.New("no record")

// record gives one record to the queues it belongs to.
func (d *dispatcher) record(off int64, rec message.View) {
	d.put(off, rec)
	d.lastStart, d.lastEnd, d.lastStore = off, off+int64(len(rec)), rec.StoreTimestamp()
	d.pos.Store(d.lastEnd)
}

func (d *dispatcher) put(off int64, rec message.View) {
	s := d.s
	switch rec.Transaction() {
	case message.TransactionPrepared, message.TransactionRollback:
		return
	}
	topic, id := rec.Topic(), rec.QueueID()
	if s.deleted.covers(topic, off) {
		return
	}
	q := d.lastQueue
	if q == nil || q.id != id || !bytes.Equal(topic, d.lastTopic) {
		if q = s.queues.getBytes(topic, id); q == nil {
			if !message.NamesDirectory(topic) { // of a log that others wrote: its files would lie elsewhere
				s.cfg.Logger.Error("a record is in no queue: its topic can be the name of no directory", "topic", string(topic), "offset", off)
				return
			}
			q = s.queues.ensure(topic, id)
		}
		d.lastTopic, d.lastQueue = append(d.lastTopic[:0], topic...), q
	}
	props := rec.Properties()
	tagsCode := s.tagsCode(topic, rec, props)
	u := consumequeue.Unit{Phys: off, Size: rec.Size(), TagsCode: tagsCode}
	// A queue of single messages stays one: another beside it would hide them.
	if q.batch.Load() != nil || q.cq.Load() == nil && (q.batched || isInnerBatch(topic, rec, props)) {
		d.putBatchUnit(q, u, rec, props)
	} else if !d.putUnit(q, rec.QueueOffset(), u, rec) {
		return
	}
	if s.lightQueues(topic) {
		d.putLMQ(u, rec, props)
	}
	if s.cfg.OnArrive != nil && d.rec == nil {
		s.cfg.OnArrive(topic, id, rec.QueueOffset(), tagsCode, rec.StoreTimestamp(), props)
	}
}

// isInnerBatch reports whether a record holds a batch that is numbered message by message. The flag alone does not say so:
// placeholders that a repair leaves carry it too.
func isInnerBatch(topic []byte, rec message.View, props []byte) bool {
	if !message.NumberedBatch(topic, rec.SysFlag()) {
		return false
	}
	_, ok := message.Property(props, message.PropInnerNum)
	return ok
}

// tagsCode is the hash of the tags; for a scheduled message, the time of its delivery.
func (s *Store) tagsCode(topic []byte, rec message.View, props []byte) int64 {
	if string(topic) == message.TopicSchedule {
		if level, ok := message.Property(props, message.PropDelay); ok {
			if n, err := strconv.Atoi(string(level)); err == nil {
				return s.deliveryTime(n, rec.StoreTimestamp())
			}
		}
	}
	tags, ok := message.Property(props, message.PropTags)
	if !ok {
		return 0
	}
	return message.TagsCode(tags)
}

// deliveryTime is the store time plus the delay of the level; one second for a level that is not configured.
func (s *Store) deliveryTime(level int, storeTime int64) int64 {
	if level > len(s.delays) {
		level = len(s.delays)
	}
	if level <= 0 || len(s.delays) == 0 {
		return storeTime + 1000
	}
	return storeTime + s.delays[level-1].Milliseconds()
}

// putUnit gives a unit to a queue and reports whether it is there now. rec is its record, nil for a unit without extension.
func (d *dispatcher) putUnit(q *queue, off int64, u consumequeue.Unit, rec message.View) bool {
	c := q.cq.Load()
	if c == nil {
		c = d.s.cqs.New(q.topic, q.id)
		c.SetExt(q.ext.Load())
		q.cq.Store(c)
	}
	if d.rec != nil && !d.rec.wants(q, off, c.Max(), c.LastEnd) {
		return false
	}
	if d.s.cfg.EnableConsumeQueueExt && rec != nil && off >= c.Max() {
		u.TagsCode = d.extend(q, c, u.TagsCode, rec)
	}
	switch c.Put(off, u, message.MinRecordLen) {
	case consumequeue.Refused:
		d.s.stats.dispatchRefused.Add(1)
		d.s.cfg.Logger.Error("a record carries a queue offset that cannot be; it gets no unit",
			"topic", q.topic, "queue", q.id, "queue_offset", off, "max_offset", c.Max(), "phys_offset", u.Phys)
		return false
	case consumequeue.Filled:
		d.s.cfg.Logger.Warn("queue offsets without a readable record are left out",
			"topic", q.topic, "queue", q.id, "before_queue_offset", off, "phys_offset", u.Phys)
	}
	return true
}

// extend stores what a unit has no room for, and returns its address in place of the tags code; the tags code itself when
// it cannot be stored, which any reader takes as well.
func (d *dispatcher) extend(q *queue, c *consumequeue.Queue, tagsCode int64, rec message.View) int64 {
	e := q.ext.Load()
	if e == nil {
		e = d.s.cqs.NewExt(q.topic, q.id)
		q.setExt(e)
	}
	if err := e.Settle(c); err != nil {
		d.s.cfg.Logger.Error("the end of a consume queue extension cannot be found; a unit gets none", "topic", q.topic, "queue", q.id, "err", err)
		return tagsCode
	}
	d.bitMap = d.bitMap[:0]
	if d.s.cfg.BitMaps != nil {
		d.bitMap = d.s.cfg.BitMaps.AppendBitMap(d.bitMap, rec.Topic(), rec.Properties())
	}
	addr, ok := e.Put(consumequeue.ExtUnit{TagsCode: tagsCode, StoreTime: rec.StoreTimestamp(), BitMap: d.bitMap})
	if !ok {
		d.s.cfg.Logger.Error("a unit has no room in the consume queue extension", "topic", q.topic, "queue", q.id, "bit_map_bytes", len(d.bitMap))
		return tagsCode
	}
	return addr
}

// putBatchUnit gives the unit of a record of several messages to a batch queue.
func (d *dispatcher) putBatchUnit(q *queue, u consumequeue.Unit, rec message.View, props []byte) {
	b := q.batch.Load()
	if b == nil {
		b = d.s.cqs.NewBatch(q.topic, q.id)
		q.batch.Store(b)
		d.s.queues.someBatch.Store(true)
	}
	unit := consumequeue.BatchUnit{Phys: u.Phys, Size: u.Size, TagsCode: u.TagsCode, StoreTime: rec.StoreTimestamp(), Base: rec.QueueOffset(), Count: 1, Compacted: -1}
	if n, ok := message.Property(props, message.PropInnerNum); ok && rec.SysFlag()&message.FlagInnerBatch != 0 {
		if count, err := strconv.ParseInt(string(n), 10, 16); err == nil && count > 0 {
			unit.Count = int16(count)
		}
	}
	if d.rec != nil && !d.rec.wants(q, unit.Base, b.Max(), b.LastEnd) {
		return
	}
	for {
		_, err := b.Put(unit)
		if err == nil {
			return
		}
		d.s.stats.dispatchRetries.Add(1)
		if !d.s.alarms.pause(d.s.life, alarmQueues, err) {
			return // the store is being closed; the unit is built at the next start
		}
	}
}

// putLMQ gives the unit to the light queues that the record names.
func (d *dispatcher) putLMQ(u consumequeue.Unit, rec message.View, props []byte) {
	names, ok := message.Property(props, message.PropInnerMultiDispatch)
	if !ok {
		return
	}
	offsets, ok := message.Property(props, message.PropInnerMultiQueueOffset)
	if !ok {
		return
	}
	for name, n := range message.LightQueues(names, offsets) {
		if message.ValidateTopic(string(name)) != nil || !d.putUnit(d.s.queues.ensure(name, 0), n, u, nil) {
			continue
		}
		if d.s.cfg.OnArrive != nil && d.rec == nil {
			d.s.cfg.OnArrive(name, 0, n, u.TagsCode, rec.StoreTimestamp(), props)
		}
	}
}
