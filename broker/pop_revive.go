package broker

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"mqx/broker/pop"
	"mqx/message"
	"mqx/remoting"
	"mqx/store"
)

// reviveQueue is one queue of the revive topic and how far it is read.
type reviveQueue struct {
	s       *popService
	id      int32
	reviver *pop.Reviver
	next    int64 // offset to read
	look    reviveLook
}

// reviveLook is how things stood before it is looked whether there is anything more. It is kept until all that was in the log
// then can be read, which may be rounds later: with replication, messages are shown after their copies, and others have
// followed meanwhile.
type reviveLook struct {
	pending   bool
	at        int64 // Unix ms
	delivered bool  // the timer had delivered all that was due at that time
	end       int64 // of the log
}

// reviveStats counts what revival did since the start.
type reviveStats struct {
	revived, gone, rewritten atomic.Int64
}

const (
	// reviveWaiting bounds the checkpoints of one queue that are kept in memory.
	reviveWaiting = 100_000
	// reviveBatch is how many messages are written to their retry topics in one go.
	reviveBatch = 128
	// rewriteSoonMs is the time of a checkpoint that the timer did not take.
	rewriteSoonMs = 10_000
	// reviveRetry is how long revival waits when the store takes nothing.
	reviveRetry = time.Second
)

// runRevive revives what was not acknowledged, until ctx ends. It is woken by
// records of the revive topic and by the times of those it has seen, and looks
// at most once in reviveInterval.
func (s *popService) runRevive(ctx context.Context) {
	var queues []*reviveQueue
	for id := range s.reviveQueues() {
		queues = append(queues, newReviveQueue(s, int32(id)))
	}
	timer := time.NewTimer(0) // the first round is what the last process left
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.records:
			if !sleep(ctx, s.b.cfg().ReviveEvery) {
				return
			}
		case <-timer.C:
		}
		wait := time.Hour
		for _, q := range queues {
			q.round(ctx)
			if at, ok := q.reviver.Wake(); ok {
				due := time.Duration(min(at-s.b.now().UnixMilli(), longestTimerMs)) * time.Millisecond
				wait = min(wait, max(due, s.b.cfg().ReviveEvery))
			}
		}
		timer.Reset(wait)
	}
}

// newReviveQueue starts behind the last checkpoint that was dealt with.
func newReviveQueue(s *popService, id int32) *reviveQueue {
	q := &reviveQueue{s: s, id: id, reviver: pop.NewReviver(reviveWaiting)}
	if done, ok := s.b.offsets.Committed(s.reviveTopic, pop.ReviveGroup, id); ok {
		q.next = done + 1
	}
	return q
}

// round reads what is new and revives what has come to its end. It takes at
// most reviveScanTime for reading.
func (q *reviveQueue) round(ctx context.Context) {
	until := q.s.b.now().Add(q.s.b.cfg().ReviveScan)
	for ctx.Err() == nil {
		// Asked before the end is looked for, in this order: what is delivered or shown meanwhile would be missed.
		if !q.look.pending {
			now := q.s.b.now().UnixMilli()
			delivered := q.s.b.timerDelivered()
			q.look = reviveLook{pending: true, at: now, delivered: delivered, end: q.s.b.store.LogEnd()}
		}
		all := q.s.b.store.Dispatched() >= q.look.end
		more := q.read(until)
		if !more && all {
			q.reviver.Quiet(q.look.at, q.look.delivered)
			q.look.pending = false
		}
		if !q.expire(ctx) {
			return
		}
		if at, ok := q.reviver.Skipped(); ok {
			q.next = at
			more = true
		}
		if !more || q.s.b.now().After(until) {
			return
		}
	}
}

// read takes in new records; it returns true when there may be more.
func (q *reviveQueue) read(until time.Time) bool {
	s := q.s
	for range reviveReads {
		res := s.b.store.Get(store.GetRequest{Group: pop.ReviveGroup, Topic: s.reviveTopic, QueueID: q.id, Offset: q.next, MaxMsgs: pop.MaxBatch})
		if res.Status != store.Found {
			at, status, err := res.NextOffset, res.Status, res.Err
			res.Release()
			return q.notFound(status, at, err)
		}
		for rec := range recordsIn(res.Parts) {
			q.add(rec)
		}
		q.next = res.NextOffset
		res.Release()
		if s.b.now().After(until) {
			return true
		}
	}
	return true
}

// reviveReads bounds the reads between two looks at what has come to its end.
const reviveReads = 64

// notFound decides how to go on where no record was found.
func (q *reviveQueue) notFound(status store.GetStatus, next int64, err error) bool {
	switch status {
	case store.OffsetTooSmall, store.OffsetFoundNull, store.MessageWasRemoving:
		if next > q.next {
			q.s.b.quiet.Warn("records of the revive topic were removed before they were read", "queue", q.id, "from", q.next, "to", next)
			q.next = next
			return true
		}
	case store.OffsetOverflowBadly:
		q.s.b.quiet.Warn("the offset of the revive topic lay behind its end", "queue", q.id, "was", q.next, "is", next)
		q.next = next
	case store.GetFailed:
		q.s.b.quiet.Warn("the revive topic cannot be read", "queue", q.id, "offset", q.next, "error", err)
	}
	return false
}

func (q *reviveQueue) add(rec []byte) {
	v, err := message.ParseView(rec, message.DecodeOptions{})
	if err != nil {
		q.s.b.quiet.Warn("a record of the revive topic is broken", "queue", q.id, "error", err)
		return
	}
	tag, _ := v.Property(message.PropTags)
	parsed, err := pop.ParseRecord(string(tag), v.Body())
	if err != nil {
		q.s.b.quiet.Warn("a record of the revive topic cannot be read", "queue", q.id, "offset", v.QueueOffset(), "error", err)
		return
	}
	var deliver int64
	if text, ok := v.Property(message.PropTimerDeliverMs); ok {
		deliver, _ = strconv.ParseInt(string(text), 10, 64) // 0 for what is no number, as in Apache
	}
	if c := parsed.Checkpoint; c != nil {
		q.bound(c)
	}
	// The timer is up to a second early: that must not count as time gone by.
	q.reviver.Add(parsed, v.QueueOffset(), min(deliver, q.s.b.now().UnixMilli()), q.s.b.cfg().BrokerName)
}

// bound makes a checkpoint due whose time lies further away than any that a pop
// can ask for: no pop of this broker has written it (or the clock was set back by
// days), and it would hold up all behind it. Its messages come twice rather than never.
func (q *reviveQueue) bound(c *pop.Checkpoint) {
	now := q.s.b.now().UnixMilli()
	if c.ReviveTime() <= pop.After(now, q.s.b.cfg().TimerMaxDelay.Milliseconds()+pop.AckLeadMs) {
		return
	}
	q.s.b.quiet.Warn("a checkpoint lies too far in the future and counts as due", "topic", c.Topic, "group", c.Group, "queue", c.Queue,
		"pop_time", c.PopTime, "invisible_ms", c.Invisible)
	c.Invisible = now - c.PopTime
}

// revival is one message on its way back.
type revival struct {
	ck     *pop.Checkpoint
	offset int64
}

// expire revives the messages of all checkpoints whose time is over. It returns
// false when ctx has ended before all was written.
func (q *reviveQueue) expire(ctx context.Context) bool {
	var batch []*store.Put
	var failed []revival
	last := int64(-1)
	write := func() bool {
		ok := q.write(ctx, batch, failed)
		if ok && last >= 0 {
			q.s.b.offsets.Commit([]byte(q.s.reviveTopic), []byte(pop.ReviveGroup), q.id, last)
		}
		batch, failed = batch[:0], failed[:0]
		return ok
	}
	for e := q.reviver.Next(); e != nil; e = q.reviver.Next() {
		if q.s.wanted(e.Checkpoint) {
			for _, i := range e.Unacked() {
				r := revival{e.Checkpoint, e.OffsetAt(i)}
				switch put, err := q.s.revivePut(r); {
				case err != nil:
					failed = append(failed, r)
				case put != nil:
					batch = append(batch, put)
				}
			}
		}
		last = e.ReviveOffset
		if len(batch)+len(failed) >= reviveBatch && !write() {
			return false
		}
	}
	return write()
}

// wanted reports whether topic and group of a checkpoint still exist.
func (s *popService) wanted(c *pop.Checkpoint) bool {
	s.mu.Lock()
	at, deleted := s.mu.deleted[c.Topic]
	s.mu.Unlock()
	if deleted && c.PopTime < at && !s.clockWasBehind(c.PopTime) || s.b.topics.Get(pop.NormalTopic(c.Topic, c.Group)) == nil || s.b.groups.Get(c.Group) == nil {
		s.revived.gone.Add(int64(c.Count()))
		return false
	}
	return true
}

// revivePut is the put of one message for its retry topic. It is nil when the
// message is no longer there: another one at its place is not taken for it.
func (s *popService) revivePut(r revival) (*store.Put, error) {
	units, err := s.b.store.Units(r.ck.Topic, r.ck.Queue, r.offset, 1)
	if err != nil {
		s.b.quiet.Warn("a message cannot be read for its revival", "topic", r.ck.Topic, "queue", r.ck.Queue, "offset", r.offset, "error", err)
		return nil, err
	}
	if len(units) == 0 || units[0].QueueOffset != r.offset {
		s.lost(r, "its queue has no such offset")
		return nil, nil
	}
	rec, err := s.b.store.RecordAt(units[0].PhysicalOffset)
	if errors.Is(err, store.ErrNoRecord) {
		s.lost(r, "its record is gone")
		return nil, nil
	}
	if err != nil {
		s.b.quiet.Warn("a message cannot be read for its revival", "topic", r.ck.Topic, "queue", r.ck.Queue, "offset", r.offset, "error", err)
		return nil, err
	}
	v, err := message.ParseView(rec, message.DecodeOptions{})
	if err != nil {
		s.lost(r, err.Error())
		return nil, nil
	}
	if !message.IsLMQ(r.ck.Topic) && (string(v.Topic()) != r.ck.Topic || v.QueueOffset() != r.offset) {
		s.lost(r, "another message lies there")
		return nil, nil
	}
	if v.StoreTimestamp() > r.ck.PopTime && !s.clockWasBehind(r.ck.PopTime) && s.b.store.WasDeleted(r.ck.Topic) {
		s.lost(r, "the topic was made anew, and a later message lies there")
		return nil, nil
	}
	tp, err := s.retryTopic(r.ck)
	if err != nil {
		return nil, err
	}
	m := v.Record()
	m.Magic = 0
	m.Topic, m.QueueID = tp.name, s.retryQueue(tp, m.QueueID)
	m.BornHost, m.StoreHost = s.b.at().storeHost, s.b.at().storeHost
	first := m.ReconsumeTimes == 0
	if !r.ck.Suspend {
		m.ReconsumeTimes++
	}
	if _, ok := message.Property(m.Properties, message.PropFirstPopTime); first || !ok {
		m.Properties = message.SetProperty(m.Properties, message.PropFirstPopTime, strconv.FormatInt(r.ck.PopTime, 10))
	}
	m.Properties = message.SetProperty(m.Properties, message.PropOriginGroup, r.ck.Group)
	return &store.Put{Record: m, Whole: m.SysFlag&message.FlagInnerBatch != 0, WaitFlush: true, User: r}, nil
}

// clockBehind notes that a message was popped that the log says is of the future: the clock was set back, and until it has
// caught up, times of pops do not tell what was popped of a topic before it was made anew. Rather twice than not at all.
func (s *popService) clockBehind(until int64) {
	for {
		was := s.behindUntil.Load()
		if was >= until || s.behindUntil.CompareAndSwap(was, until) {
			return
		}
	}
}

func (s *popService) clockWasBehind(popTime int64) bool { return popTime <= s.behindUntil.Load() }

// lost counts a message that is not there any more.
func (s *popService) lost(r revival, why string) {
	s.revived.gone.Add(1)
	s.b.quiet.Warn("a message was not acknowledged and is no longer there", "topic", r.ck.Topic, "queue", r.ck.Queue, "offset", r.offset,
		"group", r.ck.Group, "reason", why)
}

// retryTopic is where a message of a checkpoint goes; it is made where it is
// not there, with the group's offset at its start.
func (s *popService) retryTopic(c *pop.Checkpoint) (*topic, error) {
	cfg := s.b.cfg()
	name := c.Topic
	if pop.Kind(name) == pop.KindNormal {
		name = message.PopRetryTopic(c.Group, c.Topic, cfg.PopRetryV2)
	}
	tp, queues := s.b.topics.Get(name), int32(1)
	if cfg.PopSeparateRetry {
		if normal := s.b.topics.Get(pop.NormalTopic(c.Topic, c.Group)); normal != nil {
			queues = normal.WriteQueueNums
		}
	}
	if tp != nil && (!cfg.PopSeparateRetry || tp.WriteQueueNums == queues) && tp.saved.Load() {
		return tp, nil
	}
	if tp == nil {
		if _, err := s.b.topics.PutIfAbsent(groupTopic(name, queues, 0)); err != nil {
			return nil, err
		}
		for q := range queues {
			if _, ok := s.b.offsets.Committed(name, c.Group, q); !ok {
				s.b.offsets.Commit([]byte(name), []byte(c.Group), q, 0)
			}
		}
	} else if cfg.PopSeparateRetry && tp.WriteQueueNums != queues {
		s.b.topics.Put([]remoting.TopicConfig{groupTopic(name, queues, 0)}, func(error) {})
	}
	if err := s.b.topics.saver.Save(); err != nil {
		return nil, err
	}
	return s.b.topics.Get(name), nil
}

func (s *popService) retryQueue(tp *topic, of int32) int32 {
	if !s.b.cfg().PopSeparateRetry || of >= tp.WriteQueueNums {
		return 0
	}
	return of
}

// write stores revived messages; those that the store does not take, and those
// that could not be read, become checkpoints of their own, for later. It
// returns false when ctx ended before all was in the log.
func (q *reviveQueue) write(ctx context.Context, batch []*store.Put, failed []revival) bool {
	s := q.s
	s.putAll(ctx, batch)
	for _, p := range batch {
		r := p.User.(revival)
		if p.Status != store.PutOK {
			failed = append(failed, r)
			continue
		}
		s.revived.revived.Add(1)
		s.queues.Settled(pop.QueueKey{Topic: r.ck.Topic, Group: r.ck.Group, Queue: r.ck.Queue}, 1)
	}
	for _, r := range failed {
		if !q.rewrite(ctx, r) {
			return false
		}
	}
	return true
}

// rewrite stores a checkpoint for one message that could not be revived, and
// tries until the store takes it.
func (q *reviveQueue) rewrite(ctx context.Context, r revival) bool {
	s := q.s
	ck := pop.RePut(r.ck, r.offset, s.b.now().UnixMilli(), s.b.cfg().ReviveDrop)
	if ck == nil {
		s.b.log.Error("a message could not be revived in all its tries and is given up", "topic", r.ck.Topic, "queue", r.ck.Queue,
			"offset", r.offset, "group", r.ck.Group)
		return true
	}
	for {
		put, e := s.checkpointPut(ck, q.id, nil)
		if e == nil {
			if s.putAll(ctx, []*store.Put{put}); put.Status == store.PutOK {
				s.revived.rewritten.Add(1)
				return true
			}
		} else {
			ck.Invisible = s.b.now().UnixMilli() - ck.PopTime + rewriteSoonMs
		}
		if !sleep(ctx, reviveRetry) {
			return false
		}
	}
}

// timerDelivered reports whether the timer has delivered everything that is
// due, so that a quiet revive topic means that nothing is missing.
func (b *Broker) timerDelivered() bool {
	if !b.timers.on() {
		return true
	}
	_, due := b.timers.t.NextDue(b.now().UnixMilli())
	return !due && b.timers.t.Offset() >= b.store.MaxOffset(message.TopicTimer, 0)
}
