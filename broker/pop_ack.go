package broker

import (
	"slices"
	"sync/atomic"

	"mqx/broker/pop"
	"mqx/internal/fastjson"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// ackCall is one ACK_MESSAGE or BATCH_ACK_MESSAGE on its way. It is answered
// when all its records are in the log.
type ackCall struct {
	s       *popService
	r       *server.Request
	puts    []*store.Put
	pending atomic.Int32
	failure atomic.Pointer[refusedError]
}

// handleAcks serves ACK_MESSAGE and BATCH_ACK_MESSAGE for all requests that
// wait: their records go to the store in one batch.
func (b *Broker) handleAcks(rs []*server.Request) {
	var puts []*store.Put
	for _, r := range rs {
		c := &ackCall{s: b.pops, r: r}
		var e *refusedError
		if r.Code == remoting.ReqBatchAckMessage {
			e = c.batch()
		} else {
			e = c.single()
		}
		switch {
		case e != nil:
			r.Reply(e.Code, e.Text)
		case len(c.puts) == 0:
			r.Reply(remoting.RespSuccess, "")
		default:
			c.pending.Store(int32(len(c.puts)))
			for _, p := range c.puts {
				p.Done = c.done
			}
			puts = append(puts, c.puts...)
		}
	}
	if len(puts) > 0 {
		b.putOwnBatch(puts)
	}
}

// done answers when the last record of a request is in the log.
func (c *ackCall) done(p *store.Put) {
	if p.Status != store.PutOK {
		c.s.failed(p)
		c.failure.Store(refuse(remoting.RespSystemError, "the ack could not be written: %s%s", p.Status, cause(p.Err)))
	}
	if c.pending.Add(-1) > 0 {
		return
	}
	if e := c.failure.Load(); e != nil {
		c.r.Reply(e.Code, e.Text)
		return
	}
	c.r.Reply(remoting.RespSuccess, "")
}

// single checks an ACK_MESSAGE and does what it says.
func (c *ackCall) single() *refusedError {
	var h remoting.AckMessageHeader
	if err := remoting.DecodeHeader(c.r.Fields, &h); err != nil {
		return refuse(remoting.RespSystemError, "%s", err.Error())
	}
	b := c.s.b
	if h.LiteTopic != "" {
		return refuse(remoting.RespInvalidParameter, "liteTopic: lite topics are not served by this broker")
	}
	if e := b.checkPopped(c.r, h.Topic, h.QueueID); e != nil {
		return e
	}
	low, high := b.store.MinOffset(h.Topic, h.QueueID), b.store.MaxOffset(h.Topic, h.QueueID)
	if h.Offset < low || h.Offset > high {
		return refuse(remoting.RespNoMessage, "offset is illegal, key:%s@%d, commit:%d, store:%d~%d", h.Topic, h.QueueID, h.Offset, low, high)
	}
	rc, err := pop.ParseReceipt(h.ExtraInfo)
	if err != nil {
		return refuse(remoting.RespSystemError, "%s", err.Error())
	}
	q := pop.QueueKey{Topic: h.Topic, Group: h.ConsumerGroup, Queue: h.QueueID}
	if rc.Ordered() {
		return c.s.ackOrdered(q, h.Offset, rc.PopTime, rc.Invisible, c.r)
	}
	a := &pop.Ack{
		Offset: h.Offset, Broker: rc.Broker, Group: h.ConsumerGroup, PopTime: rc.PopTime, Queue: h.QueueID, Start: rc.Start, Topic: h.Topic,
	}
	return c.ack(a, rc.ReviveQueue, rc.ReviveTime())
}

// checkPopped checks topic and queue of an answer to a pop.
func (b *Broker) checkPopped(r *server.Request, topicName string, queue int32) *refusedError {
	tp := b.topics.Get(topicName)
	if tp == nil {
		return refuse(remoting.RespTopicNotExist, "topic[%s] not exist, apply first please! \n%s", topicName, faq)
	}
	if queue < 0 || queue >= tp.ReadQueueNums {
		return refuse(remoting.RespMessageIllegal, "queueId[%d] is illegal, topic:[%s] topicConfig.readQueueNums:[%d] consumer:[%s]",
			queue, topicName, tp.ReadQueueNums, r.Conn().Remote())
	}
	return nil
}

// ack marks messages as acknowledged in the buffer, or makes the record.
func (c *ackCall) ack(a *pop.Ack, reviveQueue int32, reviveTime int64) *refusedError {
	s, n := c.s, max(1, len(a.Offsets))
	q := pop.QueueKey{Topic: a.Topic, Group: a.Group, Queue: a.Queue}
	s.countAcks(a.Topic, a.Group, n)
	s.queues.Settled(q, n)
	if s.merge(a) {
		return nil
	}
	if reviveQueue < 0 || int(reviveQueue) >= s.reviveQueues() {
		return refuse(remoting.RespSystemError, "the receipt names revive queue %d of %d", reviveQueue, s.reviveQueues())
	}
	put, e := s.ackPut(a, reviveQueue, reviveTime, nil)
	if e != nil {
		return e
	}
	c.puts = append(c.puts, put)
	return nil
}

// reviveQueues is the number of queues of the revive topic: those that pops
// take, and those that they took before reviveQueueNum was made smaller.
func (s *popService) reviveQueues() int {
	n := int(s.reviveTurns)
	if tp := s.b.topics.Get(s.reviveTopic); tp != nil {
		n = max(n, int(tp.WriteQueueNums))
	}
	return n
}

// merge marks an ack in the buffer; false when its checkpoint is not there.
func (s *popService) merge(a *pop.Ack) bool {
	if !s.merging || a.Broker != "" && a.Broker != s.b.cfg().BrokerName {
		return false
	}
	k := pop.Key{Topic: a.Topic, Group: a.Group, Queue: a.Queue, Start: a.Start, PopTime: a.PopTime}
	now := s.b.now().UnixMilli()
	s.mu.Lock()
	defer s.mu.Unlock()
	ok := s.mu.buffer.Ack(k, a.All(), now)
	s.commit()
	return ok
}

// maxBatchAcks bounds the entries of one BATCH_ACK_MESSAGE.
const maxBatchAcks = 10_000

// batch checks a BATCH_ACK_MESSAGE and does what its entries say. Entries of
// queues that do not exist are passed over, as by Apache.
func (c *ackCall) batch() *refusedError {
	var body remoting.BatchAckBody
	if len(c.r.Body) > 0 {
		if err := fastjson.Unmarshal(c.r.Body, &body); err != nil {
			return refuse(remoting.RespSystemError, "the batch of acks cannot be read: %v", err)
		}
	}
	if len(body.Acks) == 0 {
		return refuse(remoting.RespNoMessage, "")
	}
	if len(body.Acks) > maxBatchAcks {
		return refuse(remoting.RespInvalidParameter, "the batch has %d entries, the limit is %d", len(body.Acks), maxBatchAcks)
	}
	for i := range body.Acks {
		if e := c.batchEntry(&body.Acks[i], body.BrokerName); e != nil {
			return e
		}
	}
	return nil
}

func (c *ackCall) batchEntry(e *remoting.BatchAck, broker string) *refusedError {
	b := c.s.b
	topicName, err := pop.RealTopic(e.Topic, e.ConsumerGroup, e.Retry)
	if err != nil {
		return refuse(remoting.RespSystemError, "%s", err.Error())
	}
	places, err := pop.ParseBits(e.BitSet)
	if err != nil {
		return refuse(remoting.RespSystemError, "%s", err.Error())
	}
	if b.checkPopped(c.r, topicName, e.QueueID) != nil {
		b.quiet.Warn("a batch of acks names a queue that does not exist", "topic", topicName, "queue", e.QueueID)
		return nil
	}
	low, high := b.store.MinOffset(topicName, e.QueueID), b.store.MaxOffset(topicName, e.QueueID)
	var offsets []int64
	for _, place := range places {
		if off := e.StartOffset + place; off >= low && off <= high {
			offsets = append(offsets, off)
		}
	}
	if len(offsets) == 0 {
		return nil
	}
	if e.ReviveQueueID == pop.OrderQueue {
		q := pop.QueueKey{Topic: topicName, Group: e.ConsumerGroup, Queue: e.QueueID}
		var last *refusedError
		for _, off := range offsets {
			if bad := c.s.ackOrdered(q, off, e.PopTime, e.InvisibleTime, c.r); bad != nil {
				last = bad
			}
		}
		return last
	}
	for part := range slices.Chunk(offsets, pop.MaxBatch) {
		a := &pop.Ack{
			Offset: -1, Offsets: part, Broker: broker, Group: e.ConsumerGroup, PopTime: e.PopTime, Queue: e.QueueID, Start: e.StartOffset, Topic: topicName,
		}
		if bad := c.ack(a, e.ReviveQueueID, pop.After(e.PopTime, e.InvisibleTime)); bad != nil {
			return bad
		}
	}
	return nil
}

// ackOrdered marks a message of an ordered pop as consumed and moves the
// consumer offset.
func (s *popService) ackOrdered(k pop.QueueKey, offset, popTime, invisible int64, r *server.Request) *refusedError {
	if s.b.groups.Get(k.Group) == nil {
		return refuse(remoting.RespSubscriptionGroupNotExist, "subscription group [%s] does not exist", k.Group)
	}
	if old, ok := s.b.offsets.Committed(k.Topic, k.Group, k.Queue); ok && offset < old {
		return nil
	}
	q := s.queues.Lock(k)
	defer s.unlock(q)
	old, ok := s.b.offsets.Committed(k.Topic, k.Group, k.Queue)
	if ok && offset < old {
		return nil
	}
	if !ok {
		old = -1
	}
	now := s.b.now().UnixMilli()
	s.mu.Lock()
	next, res := s.mu.orders.Ack(k, offset, popTime, old)
	s.mu.dirty = true
	open := !s.mu.orders.Blocked(k, "", invisible, now)
	s.watchFree(k)
	s.mu.Unlock()
	switch res {
	case pop.AckIllegal:
		return refuse(remoting.RespMessageIllegal, "offset is illegal, key:%s@%s@%d, old:%d, commit:%d, next:-1, %s",
			k.Topic, k.Group, k.Queue, old, offset, r.Conn().Remote())
	case pop.AckCommit:
		s.b.offsets.Commit([]byte(k.Topic), []byte(k.Group), k.Queue, next) // swallowed while a reset is pending
		if open {
			q.missed.Store(true) // who waits for the queue is woken when it is unlocked
		}
	}
	s.queues.Settled(k, 1)
	return nil
}
