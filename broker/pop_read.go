package broker

import (
	"fmt"

	"mqx/broker/pop"
	"mqx/message"
	"mqx/store"
)

// popRead is what a pop took from one queue. Its queue is locked while its
// checkpoint is on its way to the log.
type popRead struct {
	call    *popCall
	q       *popQueue
	start   int64 // queue offset at which it began
	next    int64
	res     *store.GetResult
	parts   [][]byte
	offsets []int64
	put     *store.Put // nil when nothing has to be written
}

// readQueue takes messages from one queue, unless another pop is at it.
func (c *popCall) readQueue(topic string, retry bool, queue int32) {
	s, h := c.s, &c.h
	key := pop.QueueKey{Topic: topic, Group: h.ConsumerGroup, Queue: queue}
	end := s.b.store.MaxOffset(topic, queue)
	q := s.queues.TryLock(key)
	if q == nil {
		if !h.Order {
			c.rest += max(0, end-s.offset(key, h.InitMode))
		}
		return
	}
	kept := false
	defer func() {
		if !kept {
			s.unlock(q)
		}
	}()
	if cfg := s.b.cfg(); cfg.PopThreshold && q.inflight.Load() > cfg.PopThresholdNum {
		c.rest += max(0, end-s.offset(key, h.InitMode))
		return
	}
	want := int(h.MaxMsgNums) - c.count
	if want <= 0 { // nothing of it is read: neither its first offset nor one that was set is taken
		if !h.Order || !s.blocked(key, h.AttemptID, h.InvisibleTime) {
			c.rest += max(0, end-s.offset(key, h.InitMode))
		}
		return
	}
	start := s.claim(key, h.InitMode)
	if h.Order {
		if s.blocked(key, h.AttemptID, h.InvisibleTime) {
			return // its messages do not count: it is woken when the queue opens
		}
		q.inflight.Store(0)
	}
	if start == end {
		c.rest += max(0, end-start)
		return
	}
	kept = c.take(q, start, want, retry)
}

// take reads from a queue that is locked. It returns true when the queue stays
// locked until the checkpoint is written.
func (c *popCall) take(q *popQueue, start int64, want int, retry bool) bool {
	s := c.s
	res := s.get(q.key, start, want, c.filter)
	switch res.Status {
	case store.OffsetTooSmall, store.OffsetOverflowBadly, store.OffsetFoundNull:
		// The offset was not one of the queue.
		res.Release()
		s.b.quiet.Warn("a pop began outside its queue and goes on at its edge", "topic", q.key.Topic, "group", q.key.Group, "queue", q.key.Queue,
			"offset", start, "is", res.NextOffset)
		start = res.NextOffset
		s.b.offsets.Commit([]byte(q.key.Topic), []byte(q.key.Group), q.key.Queue, start)
		res = s.get(q.key, start, want, c.filter)
	}
	if res.Err != nil {
		s.b.quiet.Warn("a queue could not be read by a pop", "topic", q.key.Topic, "queue", q.key.Queue, "offset", start, "error", res.Err)
		res.Release()
		return false
	}
	c.rest += max(0, res.MaxOffset-res.NextOffset)
	if res.Status != store.Found {
		next := res.NextOffset
		res.Release()
		if next > start {
			s.passed(q.key, next, c.h.Order)
		}
		return false
	}
	rd := &popRead{call: c, q: q, start: start, next: res.NextOffset, res: res, parts: res.Parts}
	var err error
	if rd.offsets, err = s.offsetsOf(q.key, start, res, c.popTime); err != nil {
		s.b.quiet.Warn("the offsets of a light queue could not be read by a pop", "topic", q.key.Topic, "queue", q.key.Queue, "offset", start, "error", err)
		res.Release()
		return false
	}
	c.count += len(rd.offsets)
	c.reads = append(c.reads, rd)
	s.b.countGet(q.key.Topic, q.key.Group, res)
	if retry && !s.b.cfg().PopActualRetryTopic {
		rd.recode()
	}
	return rd.mark()
}

func (s *popService) get(q pop.QueueKey, offset int64, want int, f msgFilter) *store.GetResult {
	req := store.GetRequest{Group: q.Group, Topic: q.Topic, QueueID: q.Queue, Offset: offset, MaxMsgs: want}
	if f != nil {
		req.Filter = f
	}
	began := s.b.now()
	res := s.b.store.Get(req)
	s.b.getTimes.Add(s.b.now().Sub(began), 1)
	return res
}

// passed notes that a queue was looked at up to next and had nothing that
// matches.
func (s *popService) passed(q pop.QueueKey, next int64, order bool) {
	if order {
		s.b.offsets.Commit([]byte(q.Topic), []byte(q.Group), q.Queue, next)
		return
	}
	s.done(q, next)
}

// offsetsOf are the queue offsets of the messages of a result. Records of other
// topics' queues that light queues show do not know them: without the queue's
// units nothing may be handed out.
func (s *popService) offsetsOf(q pop.QueueKey, start int64, res *store.GetResult, popTime int64) ([]int64, error) {
	out := make([]int64, 0, res.Count)
	light := message.IsLMQ(q.Topic)
	var phys []int64
	newest := int64(0)
	for rec := range recordsIn(res.Parts) {
		out = append(out, message.QueueOffsetOf(rec))
		newest = max(newest, message.StoreTimestampOf(rec))
		if light {
			phys = append(phys, message.PhysicalOffsetOf(rec))
		}
	}
	if newest > popTime {
		s.clockBehind(newest)
	}
	if !light {
		return out, nil
	}
	units, err := s.b.store.Units(q.Topic, q.Queue, start, int(res.NextOffset-start))
	if err != nil {
		return nil, err
	}
	i := 0
	for _, u := range units {
		if i < len(phys) && u.PhysicalOffset == phys[i] {
			out[i] = u.QueueOffset
			i++
		}
	}
	if i < len(phys) {
		return nil, fmt.Errorf("%d of %d messages are not in the queue's units", len(phys)-i, len(phys))
	}
	return out, nil
}

// recordsIn yields the records of the parts of a result.
func recordsIn(parts [][]byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for _, part := range parts {
			for len(part) > 0 {
				size, _, err := message.PeekRecord(part)
				if err != nil || int(size) > len(part) {
					return
				}
				if !yield(part[:size]) {
					return
				}
				part = part[size:]
			}
		}
	}
}

// recode gives messages of a retry topic the topic that was asked for and their
// receipt, as clients expect it.
func (rd *popRead) recode() {
	c := rd.call
	rc := pop.Receipt{
		Start: rd.start, PopTime: c.popTime, Invisible: c.h.InvisibleTime, ReviveQueue: c.reviveQueue,
		Kind: pop.Kind(rd.q.key.Topic), Broker: c.s.b.cfg().BrokerName,
	}
	buf := make([]byte, 0, rd.res.Bytes+rd.res.Count*160)
	for rec := range recordsIn(rd.parts) {
		v, err := message.ParseView(rec, message.DecodeOptions{})
		if err != nil {
			c.s.b.quiet.Warn("a message of a retry topic could not be read", "topic", rd.q.key.Topic, "error", err)
			continue
		}
		m := v.Record()
		rc.Queue, rc.Offset = m.QueueID, m.QueueOffset
		if _, ok := message.Property(m.Properties, message.PropPopCK); !ok {
			m.Properties = message.SetProperty(m.Properties, message.PropPopCK, string(rc.Append(nil)))
		}
		m.Topic, m.Magic = c.topic.name, 0
		n := len(buf)
		buf = m.Append(buf, false)
		message.PatchOffsets(buf[n:], m.QueueOffset, m.PhysicalOffset, m.StoreTimestamp)
	}
	rd.parts = [][]byte{buf}
}

// mark notes what was handed out: in the state of ordered consumption, in the
// buffer, or in a checkpoint that has to be written (then it returns true).
func (rd *popRead) mark() bool {
	c, s := rd.call, rd.call.s
	now := s.b.now().UnixMilli()
	rd.q.inflight.Add(int64(len(rd.offsets)))
	if c.h.Order {
		s.mu.Lock()
		c.counts = s.mu.orders.Update(rd.q.key, c.h.AttemptID, c.popTime, c.h.InvisibleTime, rd.offsets, now, c.counts)
		s.mu.dirty = true
		s.watchFree(rd.q.key)
		s.mu.Unlock()
		s.b.offsets.Commit([]byte(rd.q.key.Topic), []byte(rd.q.key.Group), rd.q.key.Queue, rd.start)
		return false
	}
	ck := &pop.Checkpoint{
		Broker: s.b.cfg().BrokerName, Group: c.h.ConsumerGroup, Invisible: c.h.InvisibleTime, Num: int32(len(rd.offsets)),
		PopTime: c.popTime, Queue: rd.q.key.Queue, Start: rd.start, Topic: rd.q.key.Topic,
	}
	for _, off := range rd.offsets {
		ck.Diffs = append(ck.Diffs, int32(off-rd.start))
	}
	s.countCheckpoint(c.h.Topic, c.h.ConsumerGroup)
	s.mu.Lock()
	before, waits := s.mu.buffer.NextDue()
	// What the timer does not take is not kept either: it could never be written.
	merged := ck.DeliverTime()-now <= s.b.cfg().TimerMaxDelay.Milliseconds() && s.mu.buffer.Add(ck, c.reviveQueue, rd.next, now)
	after, _ := s.mu.buffer.NextDue()
	s.mu.Unlock()
	if merged {
		if !waits || after < before {
			signal(s.flushSoon)
		}
		return false
	}
	put, e := s.checkpointPut(ck, c.reviveQueue, nil)
	if e != nil {
		c.refused = e
		c.reads = c.reads[:len(c.reads)-1]
		c.count -= len(rd.offsets)
		rd.q.inflight.Add(-int64(len(rd.offsets)))
		rd.res.Release()
		return false
	}
	put.Done = func(*store.Put) {
		if c.pending.Add(-1) == 0 {
			c.finish()
		}
	}
	rd.put = put
	return true
}

// settle ends the reading of a queue whose checkpoint is in the log, and
// unlocks it. It returns false when it could not be written: then nothing of it
// is handed out, and the next pop begins at the same place.
func (rd *popRead) settle() bool {
	if rd.put == nil {
		return true
	}
	s := rd.call.s
	ok := rd.put.Status == store.PutOK
	if ok {
		s.done(rd.q.key, rd.next)
	} else {
		s.failed(rd.put)
		rd.call.refused = failedAs(rd.put)
		rd.call.count -= len(rd.offsets)
		rd.q.inflight.Add(-int64(len(rd.offsets)))
		rd.res.Release()
	}
	s.unlock(rd.q)
	return ok
}
