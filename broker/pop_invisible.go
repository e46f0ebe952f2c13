package broker

import (
	"context"
	"fmt"
	"sync"

	"mqx/broker/pop"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// invisibleCall is one CHANGE_MESSAGE_INVISIBLETIME on its way: the checkpoint
// with the new time first, then the ack of the old one.
type invisibleCall struct {
	s   *popService
	r   *server.Request
	h   remoting.ChangeMessageInvisibleTimeHeader
	rc  pop.Receipt
	now int64
}

// handleChangeInvisible serves CHANGE_MESSAGE_INVISIBLETIME.
func (b *Broker) handleChangeInvisible(r *server.Request) {
	c := &invisibleCall{s: b.pops, r: r, now: b.now().UnixMilli()}
	if !header(r, &c.h) {
		return
	}
	if e := c.check(); e != nil {
		newReply(e.Code, e.Text).to(r)
		return
	}
	if c.rc.Ordered() {
		c.ordered()
		return
	}
	c.write()
}

func (c *invisibleCall) check() *refusedError {
	b, h := c.s.b, &c.h
	if h.LiteTopic != "" {
		return refuse(remoting.RespInvalidParameter, "liteTopic: lite topics are not served by this broker")
	}
	if e := b.checkPopped(c.r, h.Topic, h.QueueID); e != nil {
		return e
	}
	if h.Offset < b.store.MinOffset(h.Topic, h.QueueID) || h.Offset >= b.store.MaxOffset(h.Topic, h.QueueID) {
		return refuse(remoting.RespNoMessage, notSet)
	}
	var err error
	if c.rc, err = pop.ParseReceipt(h.ExtraInfo); err != nil {
		return refuse(remoting.RespSystemError, "%s", err.Error())
	}
	// The new checkpoint needs another name than the old one, which the pop time is part of.
	c.now = max(c.now, pop.After(c.rc.PopTime, 1))
	if n := c.s.reviveQueues(); !c.rc.Ordered() && (c.rc.ReviveQueue < 0 || int(c.rc.ReviveQueue) >= n) {
		return refuse(remoting.RespSystemError, "the receipt names revive queue %d of %d", c.rc.ReviveQueue, n)
	}
	return nil
}

// ordered changes when a message of an ordered pop is visible again. An offset
// that is committed already is answered with success and zeros, as by Apache.
func (c *invisibleCall) ordered() {
	s, h := c.s, &c.h
	k := pop.QueueKey{Topic: h.Topic, Group: h.ConsumerGroup, Queue: h.QueueID}
	q := s.queues.Lock(k)
	old, ok := s.b.offsets.Committed(k.Topic, k.Group, k.Queue)
	if ok && h.Offset < old {
		s.unlock(q)
		p := newReply(remoting.RespSuccess, notSet)
		p.int(keyPopTime, 0)
		p.int(keyInvisible, 0)
		p.int(keyReviveQID, 0)
		p.to(c.r)
		return
	}
	at := pop.After(c.now, h.InvisibleTime)
	s.mu.Lock()
	s.mu.orders.ChangeVisible(k, h.Offset, c.rc.PopTime, at)
	s.mu.dirty = true
	s.watchFree(k)
	s.mu.Unlock()
	s.unlock(q)
	c.answer(c.rc.PopTime, at-c.rc.PopTime)
}

// write puts the new checkpoint and then the ack of the old message.
func (c *invisibleCall) write() {
	s, h := c.s, &c.h
	ck := &pop.Checkpoint{
		Broker: c.rc.Broker, Group: h.ConsumerGroup, Diffs: []int32{0}, Invisible: h.InvisibleTime, Num: 1, PopTime: c.now,
		Queue: h.QueueID, Start: h.Offset, Suspend: h.Suspend, Topic: h.Topic,
	}
	put, e := s.checkpointPut(ck, c.rc.ReviveQueue, nil)
	if e != nil {
		newReply(e.Code, e.Text).to(c.r)
		return
	}
	put.Done = c.written
	s.b.putOwnBatch([]*store.Put{put})
}

// written goes on once the new checkpoint is durable. It may run on the
// store's flusher, which must not append: the ack is left to ackOldTimes.
func (c *invisibleCall) written(put *store.Put) {
	s, h := c.s, &c.h
	if put.Status != store.PutOK {
		s.failed(put)
		newReply(remoting.RespSystemError, fmt.Sprintf("the new checkpoint could not be written: %s%s", put.Status, cause(put.Err))).to(c.r)
		return
	}
	s.countCheckpoint(h.Topic, h.ConsumerGroup)
	s.changed.add(c)
}

// ackOld makes the ack of the message under its old receipt; nil when the
// request is answered. It is answered with success whatever becomes of the ack:
// the new checkpoint stands, and an ack that is missing only repeats the message
// at the end of the old time.
func (c *invisibleCall) ackOld() *store.Put {
	s, h := c.s, &c.h
	a := &pop.Ack{
		Offset: h.Offset, Broker: c.rc.Broker, Group: h.ConsumerGroup, PopTime: c.rc.PopTime, Queue: h.QueueID, Start: c.rc.Start, Topic: h.Topic,
	}
	s.countAcks(h.Topic, h.ConsumerGroup, 1)
	if s.merge(a) {
		c.answer(c.now, h.InvisibleTime)
		return nil
	}
	put, e := s.ackPut(a, c.rc.ReviveQueue, c.rc.ReviveTime(), nil)
	if e != nil {
		c.answer(c.now, h.InvisibleTime)
		return nil
	}
	put.Done = func(p *store.Put) {
		s.failed(p)
		c.answer(c.now, h.InvisibleTime)
	}
	return put
}

func (c *invisibleCall) answer(popTime, invisible int64) {
	p := newReply(remoting.RespSuccess, notSet)
	p.int(keyPopTime, popTime)
	p.int(keyInvisible, invisible)
	p.int(keyReviveQID, int64(c.rc.ReviveQueue))
	p.to(c.r)
}

// changedTimes is the changes of invisible times whose checkpoints are durable
// and whose old acks are not written yet. The server bounds them, as requests
// in flight.
type changedTimes struct {
	more chan struct{}
	mu   struct {
		sync.Mutex
		calls []*invisibleCall
		ended bool
	}
}

// add leaves a change to ackOldTimes; when that has ended the change is answered
// without its ack, as if the ack had failed.
func (t *changedTimes) add(c *invisibleCall) {
	t.mu.Lock()
	ended := t.mu.ended
	if !ended {
		t.mu.calls = append(t.mu.calls, c)
	}
	t.mu.Unlock()
	if ended {
		c.answer(c.now, c.h.InvisibleTime)
		return
	}
	signal(t.more)
}

// take returns what waits; with end nothing more is taken in.
func (t *changedTimes) take(end bool) []*invisibleCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls := t.mu.calls
	t.mu.calls, t.mu.ended = nil, end
	return calls
}

// ackOldTimes writes the old acks of changed invisible times until ctx ends,
// those that wait together in one batch.
func (s *popService) ackOldTimes(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			s.ackChanged(true)
			return
		case <-s.changed.more:
			s.ackChanged(false)
		}
	}
}

func (s *popService) ackChanged(end bool) {
	var puts []*store.Put
	for _, c := range s.changed.take(end) {
		if put := c.ackOld(); put != nil {
			puts = append(puts, put)
		}
	}
	if len(puts) > 0 {
		s.b.putOwnBatch(puts)
	}
}
