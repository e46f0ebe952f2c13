package broker

import (
	"math/rand/v2"
	"slices"
	"time"

	"mqx/broker/pop"
	"mqx/broker/stats"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// noticeCall is one NOTIFICATION on its way: a pop without messages.
type noticeCall struct {
	s      *popService
	r      *server.Request
	h      remoting.NotificationHeader
	topic  *topic
	filter msgFilter
}

// handleNotification serves NOTIFICATION, also again when something has woken
// it: whether a pop would find something.
func (b *Broker) handleNotification(r *server.Request) {
	c := &noticeCall{s: b.pops, r: r}
	if !header(r, &c.h) {
		return
	}
	if e := c.check(); e != nil {
		newReply(e.Code, e.Text).to(r)
		return
	}
	if c.found() {
		c.answer(true, false)
		return
	}
	c.park()
}

func (c *noticeCall) check() *refusedError {
	b, h := c.s.b, &c.h
	if !readable(int32(b.cfg().BrokerPermission)) {
		return refuse(remoting.RespNoPermission, "the broker[%s] peeking message is forbidden", b.at().IP)
	}
	var e *refusedError
	if c.topic, _, e = b.checkConsumer(c.r, h.Topic, h.ConsumerGroup, h.QueueID); e != nil {
		return e
	}
	if !b.cfg().PopNotifyFilter || h.Exp == "" || h.ExpType == "" {
		return nil
	}
	c.filter, e = b.requestFilter(h.Topic, h.ConsumerGroup, h.Exp, h.ExpType)
	return e
}

// found reports whether one of the queues has a message.
func (c *noticeCall) found() bool {
	h, turn := &c.h, rand.IntN(100)
	if h.QueueID >= 0 && c.inQueue(h.Topic, h.QueueID) || h.QueueID < 0 && c.inTopic(h.Topic, turn) {
		return true
	}
	return slices.ContainsFunc(c.s.retryTopics(h.Topic, h.ConsumerGroup), func(name string) bool { return c.inTopic(name, turn) })
}

func (c *noticeCall) inTopic(name string, turn int) bool {
	tp := c.s.b.topics.Get(name)
	if tp == nil {
		return false
	}
	n := int(tp.ReadQueueNums)
	for i := range n {
		if c.inQueue(name, int32((turn+i)%n)) {
			return true
		}
	}
	return false
}

// inQueue looks at one queue; with few messages left also at their tags.
func (c *noticeCall) inQueue(name string, queue int32) bool {
	s := c.s
	q := pop.QueueKey{Topic: name, Group: c.h.ConsumerGroup, Queue: queue}
	if c.h.Order && s.blocked(pop.QueueKey{Topic: c.h.Topic, Group: c.h.ConsumerGroup, Queue: queue}, c.h.AttemptID, 0) {
		return false
	}
	start := s.offset(q, initMin)
	rest := s.b.store.MaxOffset(name, queue) - start
	if rest <= 0 || c.filter == nil || rest >= s.b.cfg().PopNotifyFilterMax {
		return rest > 0
	}
	units, err := s.b.store.Units(name, queue, start, int(rest))
	if err != nil {
		return true // the pop will say why
	}
	return slices.ContainsFunc(units, func(u store.Unit) bool { return c.filter.MatchCQ(u.TagsCode) })
}

func (c *noticeCall) park() {
	h, s := &c.h, c.s
	if h.PollTime <= 0 {
		c.answer(false, false)
		return
	}
	r, conn := c.r, c.r.Conn()
	until := bornAt(r, h.BornTime).Add(time.Duration(min(h.PollTime, maxHold.Milliseconds())) * time.Millisecond)
	p := &parkedPop{topic: h.Topic, group: h.ConsumerGroup, queue: h.QueueID, conn: conn.ID(), until: until, drop: r.Done, filter: c.filter}
	p.wake, p.rerun = func() { s.woken.push(r) }, func() { s.b.handleNotification(r) }
	r.Detach()
	if res := s.notices.Park(p); res != parkDone {
		c.answer(false, res == parkFull)
		return
	}
	if c.found() {
		s.notices.Recheck(p)
	}
	if conn.State() == server.StateClosed {
		s.Closed(conn.ID())
	}
}

func (c *noticeCall) answer(found, full bool) {
	p := newReply(remoting.RespSuccess, notSet)
	p.set(keyHasMsg, boolText(found))
	p.set(keyPollingFull, boolText(full))
	p.to(c.r)
}

func boolText(v bool) []byte {
	if v {
		return valTrue
	}
	return valFalse
}

// handlePollingInfo serves POLLING_INFO: how many pops are held.
func (b *Broker) handlePollingInfo(r *server.Request) {
	var h remoting.PollingInfoHeader
	if !header(r, &h) {
		return
	}
	if !readable(int32(b.cfg().BrokerPermission)) {
		r.Reply(remoting.RespNoPermission, "the broker["+b.at().IP+"] peeking message is forbidden")
		return
	}
	if _, _, e := b.checkConsumer(r, h.Topic, h.ConsumerGroup, h.QueueID); e != nil {
		newReply(e.Code, e.Text).to(r)
		return
	}
	p := newReply(remoting.RespSuccess, notSet)
	p.int(keyPollingNum, int64(b.pops.hold.Len(h.Topic, h.ConsumerGroup, h.QueueID)))
	p.to(r)
}

// handlePeek serves PEEK_MESSAGE: what a pop would give, without taking it.
func (b *Broker) handlePeek(r *server.Request) {
	var h remoting.PeekMessageHeader
	if !header(r, &h) {
		return
	}
	if !readable(int32(b.cfg().BrokerPermission)) {
		r.Reply(remoting.RespNoPermission, "the broker["+b.at().IP+"] peeking message is forbidden")
		return
	}
	if _, _, e := b.checkConsumer(r, h.Topic, h.ConsumerGroup, h.QueueID); e != nil {
		newReply(e.Code, e.Text).to(r)
		return
	}
	if h.MaxMsgNums <= 0 {
		r.Reply(remoting.RespInvalidParameter, "maxMsgNums must be above 0")
		return
	}
	k := &peek{s: b.pops, group: h.ConsumerGroup, want: int(min(h.MaxMsgNums, pop.MaxBatch))}
	turn := rand.IntN(100)
	retry := message.PopRetryTopic(h.ConsumerGroup, h.Topic, b.cfg().PopRetryV2)
	if turn%5 == 0 {
		k.readTopic(retry, turn)
	}
	if h.QueueID < 0 {
		k.readTopic(h.Topic, turn)
	} else {
		k.read(pop.QueueKey{Topic: h.Topic, Group: h.ConsumerGroup, Queue: h.QueueID})
	}
	if turn%5 != 0 && k.want > 0 {
		k.readTopic(retry, turn)
	}
	code, status := remoting.RespPullNotFound, store.NoMessageInQueue
	if len(k.parts) > 0 {
		code, status = remoting.RespSuccess, store.Found
	}
	p := newReply(code, status.String())
	p.int(keyRestNum, k.rest)
	for _, none := range [][]byte{keyPopTime, keyInvisible, keyReviveQID} { // the answer of a pop, of which a peek has nothing
		p.int(none, 0)
	}
	r.ReplyBody(&p.cmd, k.parts, func() {
		for _, res := range k.held {
			res.Release()
		}
	})
	p.free()
}

// peek reads queues without changing anything.
type peek struct {
	s     *popService
	group string
	want  int
	rest  int64
	parts [][]byte
	held  []*store.GetResult
}

func (k *peek) readTopic(name string, turn int) {
	tp := k.s.b.topics.Get(name)
	if tp == nil {
		return
	}
	n := int(tp.ReadQueueNums)
	for i := range n {
		k.read(pop.QueueKey{Topic: name, Group: k.group, Queue: int32((turn + i) % n)})
	}
}

func (k *peek) read(q pop.QueueKey) {
	start := k.s.offset(q, initMin)
	k.rest += max(0, k.s.b.store.MaxOffset(q.Topic, q.Queue)-start)
	if k.want <= 0 {
		return
	}
	res := k.s.get(q, start, k.want, nil)
	if s := res.Status; s == store.OffsetTooSmall || s == store.OffsetOverflowBadly {
		next := res.NextOffset
		res.Release()
		res = k.s.get(q, next, k.want, nil)
	}
	if res.Status != store.Found {
		res.Release()
		return
	}
	k.s.b.countGet(q.Topic, q.Group, res)
	k.want -= res.Count
	k.parts = append(k.parts, res.Parts...)
	k.held = append(k.held, res)
}

// countAcks and countCheckpoint keep the statistics of pop consumption.
func (s *popService) countAcks(topic, group string, n int) {
	s.b.stats.Counter(stats.GroupAckNums, topic+"@"+group).Add(int64(n))
}

func (s *popService) countCheckpoint(topic, group string) {
	s.b.stats.Counter(stats.GroupCkNums, topic+"@"+group).Add(1)
}
