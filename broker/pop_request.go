package broker

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"mqx/broker/pop"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// popCall is one POP_MESSAGE on its way.
type popCall struct {
	s           *popService
	r           *server.Request
	h           remoting.PopMessageHeader
	topic       *topic
	group       *group
	filter      msgFilter // nil passes everything
	until       time.Time // how long it may wait
	popTime     int64
	reviveQueue int32

	rest    int64 // messages left in the queues it looked at
	count   int
	reads   []*popRead
	counts  []byte // orderCountInfo
	refused *refusedError
	pending atomic.Int32
}

// popLate is how much too late a pop may come that waits for data.
const popLate = 500

// handlePop serves POP_MESSAGE, also again when something has woken it.
func (b *Broker) handlePop(r *server.Request) {
	c := &popCall{s: b.pops, r: r}
	if !header(r, &c.h) {
		return
	}
	if e := c.check(); e != nil {
		newReply(e.Code, e.Text).to(r)
		return
	}
	c.run()
}

// bornAt is the born time of a request that may wait; none means now.
func bornAt(r *server.Request, born int64) time.Time {
	if born == 0 {
		return r.Received()
	}
	return time.UnixMilli(born)
}

// check makes the checks in Apache's order.
func (c *popCall) check() *refusedError {
	b, h := c.s.b, &c.h
	c.until = bornAt(c.r, h.BornTime).Add(time.Duration(min(max(h.PollTime, 0), maxHold.Milliseconds())) * time.Millisecond)
	ip := b.at().IP
	switch {
	case b.now().UnixMilli()-bornAt(c.r, h.BornTime).UnixMilli()-h.PollTime > popLate:
		return refuse(remoting.RespPollingTimeout, "the broker[%s] pop message is timeout too much", ip)
	case !readable(int32(b.cfg().BrokerPermission)):
		return refuse(remoting.RespNoPermission, "the broker[%s] pop message is forbidden", ip)
	case h.MaxMsgNums > pop.MaxBatch:
		return refuse(remoting.RespInvalidParameter, "the broker[%s] pop message's num is greater than 32", ip)
	case !b.timers.on():
		return refuse(remoting.RespSystemError, "the broker[%s] pop message is forbidden because timerWheelEnable is false", ip)
	case h.MaxMsgNums <= 0:
		return refuse(remoting.RespInvalidParameter, "maxMsgNums is %d", h.MaxMsgNums)
	case h.InvisibleTime <= 0 && !h.Order:
		return refuse(remoting.RespInvalidParameter, "invisibleTime is %d ms", h.InvisibleTime)
	}
	var e *refusedError
	if c.topic, c.group, e = b.checkConsumer(c.r, h.Topic, h.ConsumerGroup, h.QueueID); e != nil {
		return e
	}
	if h.Exp == "" {
		return nil
	}
	c.filter, e = b.requestFilter(h.Topic, h.ConsumerGroup, h.Exp, h.ExpType)
	return e
}

// checkConsumer makes the checks that all requests of consumers by pop share.
func (b *Broker) checkConsumer(r *server.Request, topicName, groupName string, queue int32) (*topic, *group, *refusedError) {
	tp := b.topics.Get(topicName)
	switch {
	case tp == nil:
		return nil, nil, refuse(remoting.RespTopicNotExist, "topic[%s] not exist, apply first please! \n%s", topicName, faq)
	case !readable(tp.Perm):
		return nil, nil, refuse(remoting.RespNoPermission, "the topic[%s] peeking message is forbidden", topicName)
	case queue >= tp.ReadQueueNums:
		return nil, nil, refuse(remoting.RespInvalidParameter, "queueId[%d] is illegal, topic:[%s] topicConfig.readQueueNums:[%d] consumer:[%s]",
			queue, topicName, tp.ReadQueueNums, r.Conn().Remote())
	}
	g := b.groups.FindOrCreate(groupName)
	switch {
	case g == nil:
		return nil, nil, refuse(remoting.RespSubscriptionGroupNotExist, "subscription group [%s] does not exist, \n%s", groupName, faq)
	case !g.ConsumeEnable:
		return nil, nil, refuse(remoting.RespNoPermission, "subscription group no permission, %s", groupName)
	}
	return tp, g, nil
}

// run reads from the queues and answers, or waits for the log or for data.
func (c *popCall) run() {
	c.popTime = c.s.b.now().UnixMilli()
	c.reviveQueue = pop.OrderQueue
	if !c.h.Order {
		c.reviveQueue = int32((c.s.turn.Add(1) - 1) % c.s.reviveTurns)
	}
	c.read()
	var puts []*store.Put
	for _, rd := range c.reads {
		if rd.put != nil {
			puts = append(puts, rd.put)
		}
	}
	if len(puts) == 0 {
		c.finish()
		return
	}
	// The messages are handed out once their checkpoints are in the log: before
	// that nobody would give them out again.
	c.pending.Store(int32(len(puts)))
	c.s.b.putOwnBatch(puts)
}

// read goes through the queues: now and then the retry topic first, else last.
func (c *popCall) read() {
	cfg, h := c.s.b.cfg(), &c.h
	turn := rand.IntN(100)
	percent := cfg.PopRetryPercent
	priority := c.byPriority(turn)
	if priority {
		percent = cfg.PopPriorityRetry
	}
	retryFirst := turn < percent
	retry := message.PopRetryTopic(h.ConsumerGroup, h.Topic, cfg.PopRetryV2 && (!cfg.PopReadRetryV1 || turn%2 != 0))
	if priority {
		turn = 0
	}
	if retryFirst && !h.Order {
		c.readTopic(retry, true, turn)
	}
	if h.QueueID < 0 {
		c.readTopic(h.Topic, false, turn)
	} else {
		c.readQueue(h.Topic, false, h.QueueID)
	}
	if !retryFirst && !h.Order && c.count < int(h.MaxMsgNums) {
		c.readTopic(retry, true, turn)
	}
}

// byPriority reports whether the queues are read in the order of their ids: of
// a topic for messages with priorities, for a share of the pops that the group
// sets.
func (c *popCall) byPriority(turn int) bool {
	if c.h.Order || c.topic.Attributes["message.type"] != "PRIORITY" {
		return false
	}
	factor := 100
	if n, err := strconv.Atoi(c.group.Attributes["priority.factor"]); err == nil {
		factor = n
	}
	return turn < factor
}

func (c *popCall) readTopic(name string, retry bool, turn int) {
	tp := c.s.b.topics.Get(name)
	if tp == nil {
		return
	}
	n := int(tp.ReadQueueNums)
	for i := range n {
		if c.s.b.cfg().PopPriorityAsc {
			i = n - 1 - i
		}
		c.readQueue(name, retry, int32((i+turn)%n))
	}
}

// finish answers with what was found, or parks the request.
func (c *popCall) finish() {
	reads := c.reads
	c.reads = nil
	for _, rd := range reads {
		if rd.settle() {
			c.reads = append(c.reads, rd)
		}
	}
	h := &c.h
	switch {
	case len(c.reads) > 0:
		c.answer(remoting.RespSuccess)
	case c.refused != nil:
		newReply(c.refused.Code, c.refused.Text).to(c.r)
	default:
		c.park()
		return
	}
	if c.rest > 0 {
		c.s.hold.Wake(h.Topic, h.ConsumerGroup, h.QueueID)
	}
}

// park keeps a pop that found nothing.
func (c *popCall) park() {
	h, s := &c.h, c.s
	if h.PollTime <= 0 {
		c.answer(remoting.RespPollingTimeout)
		return
	}
	r, conn := c.r, c.r.Conn()
	p := &parkedPop{topic: h.Topic, group: h.ConsumerGroup, queue: h.QueueID, conn: conn.ID(), until: c.until, drop: r.Done, filter: c.filter}
	p.wake, p.rerun = func() { s.woken.push(r) }, func() { s.b.handlePop(r) }
	r.Detach()
	switch s.hold.Park(p) {
	case parkFull:
		c.answer(remoting.RespPollingFull)
		return
	case parkLate:
		c.answer(remoting.RespPollingTimeout)
		return
	}
	if s.somethingFor(h.Topic, h.ConsumerGroup, h.QueueID, h.Order, h.AttemptID, h.InvisibleTime) {
		s.hold.Recheck(p) // it came while the pop was not parked yet
	}
	if conn.State() == server.StateClosed {
		s.Closed(conn.ID())
	}
}

// somethingFor reports whether a pop would find a message, as far as offsets
// say. A queue that is being popped is left out: its pop wakes the next.
func (s *popService) somethingFor(topic, group string, queue int32, order bool, attempt string, invisible int64) bool {
	look := func(name string, first, n int32) bool {
		for q := first; q < n; q++ {
			k := pop.QueueKey{Topic: name, Group: group, Queue: q}
			if !s.behind(k) || order && s.blocked(k, attempt, invisible) {
				continue
			}
			if pq := s.queues.TryLock(k); pq != nil {
				pq.lock.Unlock()
				return true
			}
		}
		return false
	}
	tp := s.b.topics.Get(topic)
	switch {
	case tp == nil:
		return false
	case queue >= 0 && look(topic, queue, queue+1), queue < 0 && look(topic, 0, tp.ReadQueueNums):
		return true
	case order:
		return false
	}
	return slices.ContainsFunc(s.retryTopics(topic, group), func(name string) bool {
		rt := s.b.topics.Get(name)
		return rt != nil && look(name, 0, rt.ReadQueueNums)
	})
}

// retryTopics are the retry topics that pops of a topic read.
func (s *popService) retryTopics(topic, group string) []string {
	cfg := s.b.cfg()
	names := []string{message.PopRetryTopic(group, topic, cfg.PopRetryV2)}
	if cfg.PopRetryV2 && cfg.PopReadRetryV1 {
		names = append(names, message.PopRetryTopic(group, topic, false))
	}
	return names
}

// behind reports whether a queue has messages that were not popped.
func (s *popService) behind(q pop.QueueKey) bool {
	end := s.b.store.MaxOffset(q.Topic, q.Queue)
	return end > 0 && end > s.offset(q, initMin)
}

func (s *popService) blocked(q pop.QueueKey, attempt string, invisible int64) bool {
	now := s.b.now().UnixMilli()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.orders.Blocked(q, attempt, invisible, now)
}

// Names of fields in answers to pops.
var (
	keyPopTime     = []byte("popTime")
	keyInvisible   = []byte("invisibleTime")
	keyReviveQID   = []byte("reviveQid")
	keyRestNum     = []byte("restNum")
	keyStartInfo   = []byte("startOffsetInfo")
	keyOffsetInfo  = []byte("msgOffsetInfo")
	keyOrderInfo   = []byte("orderCountInfo")
	keyHasMsg      = []byte("hasMsg")
	keyPollingFull = []byte("pollingFull")
	keyPollingNum  = []byte("pollingNum")
)

// answer writes the response with what was read.
func (c *popCall) answer(code int32) {
	status := store.Found.String()
	if code != remoting.RespSuccess {
		status = store.NoMessageInQueue.String()
	}
	start, offsets := []byte{}, []byte{} // written also when they are empty
	var parts [][]byte
	for _, rd := range c.reads {
		kind := pop.Kind(rd.q.key.Topic)
		start = pop.AppendStart(start, kind, rd.q.key.Queue, rd.start)
		offsets = pop.AppendOffsets(offsets, kind, rd.q.key.Queue, rd.offsets)
		parts = append(parts, rd.parts...)
	}
	p := newReply(code, status)
	p.int(keyPopTime, c.popTime)
	p.int(keyInvisible, c.h.InvisibleTime)
	p.int(keyReviveQID, int64(c.reviveQueue))
	p.int(keyRestNum, c.rest)
	p.set(keyStartInfo, start)
	p.set(keyOffsetInfo, offsets)
	if c.h.Order {
		p.set(keyOrderInfo, append([]byte{}, c.counts...))
	}
	if code != remoting.RespSuccess {
		p.to(c.r)
		return
	}
	reads := c.reads
	c.r.ReplyBody(&p.cmd, parts, func() {
		for _, rd := range reads {
			rd.res.Release()
		}
	})
	p.free()
}

// failedAs is what a pop is answered with whose checkpoint could not be written.
func failedAs(p *store.Put) *refusedError {
	return refuse(remoting.RespSystemError, "the checkpoint could not be written, nothing is handed out: %s%s", p.Status, cause(p.Err))
}
