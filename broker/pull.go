package broker

import (
	"fmt"
	"time"

	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// Flags of a pull request (sysFlag).
const (
	pullCommit  = 1 << 0 // commitOffset is to be stored
	pullSuspend = 1 << 1 // wait for data
	pullHasSub  = 1 << 2 // the subscription is in the request
)

// Values of forbiddenType.
const (
	forbiddenByBroker    = 1
	forbiddenByGroup     = 2
	forbiddenByTopic     = 3
	forbiddenByGroupTopc = 4
	forbiddenByBroadcast = 5
)

// maxHold bounds the time a pull may ask to be parked.
const maxHold = 10 * time.Minute

// pullContext is what the checks of a pull found.
type pullContext struct {
	head   remoting.PullMessageView
	topic  *topic
	group  *group
	filter msgFilter // nil: every message
	// broadcast: the heartbeats of the group say so.
	broadcast bool
	logical   *mappedPull // nil: not of a static topic
}

// pullRefused is a refusal with the reason why it is forbidden (0 for other
// reasons).
type pullRefused struct {
	refusedError
	forbidden int64
}

func refusePull(code int32, forbidden int64, format string, args ...any) *pullRefused {
	return &pullRefused{refusedError: *refuse(code, format, args...), forbidden: forbidden}
}

// handlePull serves PULL_MESSAGE.
func (b *Broker) handlePull(r *server.Request) { b.pull(r, true) }

// handleLitePull serves LITE_PULL_MESSAGE.
func (b *Broker) handleLitePull(r *server.Request) {
	if !b.cfg().LitePull {
		newReply(remoting.RespNoPermission, fmt.Sprintf("the broker[%s] for lite pull consumer is forbidden", b.at().IP)).to(r)
		return
	}
	b.pull(r, true)
}

// pull answers one pull or parks it. first is false when it was parked before:
// then it is answered whatever is found.
func (b *Broker) pull(r *server.Request, first bool) {
	var c pullContext
	if err := c.head.Decode(r.Fields); err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	if e := b.checkPull(&c, r); e != nil {
		p := newReply(e.Code, e.Text)
		if e.forbidden != 0 {
			p.int(keyForbiddenType, e.forbidden)
		}
		p.to(r)
		return
	}
	if !r.Conn().Writable() {
		b.parkUnwritable(r, first)
		return
	}
	if c.logical != nil && c.logical.away(r, &c, first) {
		return
	}
	h := &c.head
	if first && h.SysFlag&pullCommit != 0 && h.CommitOffset >= 0 {
		b.commitHere(h.Topic, h.ConsumerGroup, h.QueueID, h.CommitOffset)
	}
	b.offsets.Pulled(h.Topic, h.ConsumerGroup, h.QueueID, h.QueueOffset)
	if b.cfg().ServerSideReset {
		if off, ok := b.offsets.TakeReset(h.Topic, h.ConsumerGroup, h.QueueID); ok {
			b.answerReset(r, &c, off)
			return
		}
	}
	if first {
		if off, moved := b.broadcastStart(r, &c); moved {
			b.answerReset(r, &c, off)
			return
		}
	}
	began := b.now()
	res := b.store.Get(store.GetRequest{
		Group: c.group.GroupName, Topic: c.topic.TopicName, QueueID: h.QueueID, Offset: h.QueueOffset,
		MaxMsgs: int(h.MaxMsgNums), MaxBytes: int(max(0, h.MaxMsgBytes)), Filter: c.filter,
	})
	b.getTimes.Add(b.now().Sub(began), 1)
	if res.Err != nil {
		b.answerUnreadable(r, &c, res)
		return
	}
	code := b.correctOffset(&c, pullCode(res.Status, h.QueueOffset), res)
	waits := code
	if c.logical != nil {
		waits = c.logical.pulled(code, h.QueueOffset, res).Code
	}
	if waits == remoting.RespPullNotFound && first && h.SysFlag&pullSuspend != 0 && b.park(r, &c) {
		res.Release()
		return
	}
	if res.FromDisk {
		b.cold.answer(r, c, code, res)
		return
	}
	b.answerPull(r, &c, code, res)
}

// correctOffset keeps a slave from correcting an offset that it does not have: it may be behind its master, and a group that went
// back to the slave's end would read everything again. The client is told to ask once more, of the master.
func (b *Broker) correctOffset(c *pullContext, code int32, res *store.GetResult) int32 {
	if code != remoting.RespPullOffsetMoved || b.slave == nil || b.cfg().OffsetCheckInSlave {
		return code
	}
	res.NextOffset = c.head.QueueOffset
	return remoting.RespPullRetryImmediately
}

// answerUnreadable says that the disk failed: a client that was told to retry
// at once would spin, and nobody would see why. The store logs it.
func (b *Broker) answerUnreadable(r *server.Request, c *pullContext, res *store.GetResult) {
	newReply(remoting.RespSystemError, fmt.Sprintf("topic:[%s] queueId[%d] offset[%d] cannot be read: %v",
		c.topic.TopicName, c.head.QueueID, c.head.QueueOffset, res.Err)).to(r)
	res.Release()
}

// pullCode turns the store's status into a response code.
func pullCode(s store.GetStatus, offset int64) int32 {
	switch s {
	case store.Found:
		return remoting.RespSuccess
	case store.NoMatchedMessage, store.MessageWasRemoving:
		return remoting.RespPullRetryImmediately
	case store.NoMatchedLogicQueue, store.NoMessageInQueue:
		if offset != 0 {
			return remoting.RespPullOffsetMoved
		}
		return remoting.RespPullNotFound
	case store.OffsetFoundNull, store.OffsetOverflowOne:
		return remoting.RespPullNotFound
	default: // OffsetOverflowBadly, OffsetTooSmall, OffsetReset
		return remoting.RespPullOffsetMoved
	}
}

// checkPull makes the checks in Apache's order.
func (b *Broker) checkPull(c *pullContext, r *server.Request) *pullRefused {
	h := &c.head
	if !readable(int32(b.cfg().BrokerPermission)) {
		return refusePull(remoting.RespNoPermission, forbiddenByBroker, "the broker[%s] pulling message is forbidden", b.at().IP)
	}
	if len(h.LiteTopic) > 0 {
		return refusePull(remoting.RespInvalidParameter, 0, "liteTopic[%s]: %s", h.LiteTopic, noLite)
	}
	if c.group = b.groups.GetBytes(h.ConsumerGroup); c.group == nil {
		if c.group = b.groups.FindOrCreate(string(h.ConsumerGroup)); c.group == nil {
			return refusePull(remoting.RespSubscriptionGroupNotExist, 0, "subscription group [%s] does not exist, \n%s", h.ConsumerGroup, faq)
		}
	}
	if !c.group.ConsumeEnable {
		return refusePull(remoting.RespNoPermission, forbiddenByGroup, "subscription group no permission, %s", h.ConsumerGroup)
	}
	if c.topic = b.topics.GetBytes(h.Topic); c.topic == nil {
		return refusePull(remoting.RespTopicNotExist, 0, "topic[%s] not exist, apply first please! \n%s", h.Topic, faq)
	}
	if !readable(c.topic.Perm) {
		return refusePull(remoting.RespNoPermission, forbiddenByTopic, "the topic[%s] pulling message is forbidden", h.Topic)
	}
	if m := b.statics.of(h.Topic); m != nil && mapped(h.Lo) {
		if e := b.mapPull(c, m); e != nil {
			return e
		}
		if !c.logical.here(c.logical.i) {
			return b.subscriptionOf(c)
		}
	}
	if h.QueueID < 0 || h.QueueID >= c.topic.ReadQueueNums {
		return refusePull(remoting.RespInvalidParameter, 0, "queueId[%d] is illegal, topic:[%s] topicConfig.readQueueNums:[%d] consumer:[%s]",
			h.QueueID, h.Topic, c.topic.ReadQueueNums, r.Conn().Remote())
	}
	return b.subscriptionOf(c)
}

// subscriptionOf finds the filter of a pull.
func (b *Broker) subscriptionOf(c *pullContext) *pullRefused {
	if c.head.SysFlag&pullHasSub != 0 {
		return b.subscriptionOfRequest(c)
	}
	return b.subscriptionOfGroup(c)
}

// subscriptionOfRequest takes the filter that the pull carries.
func (b *Broker) subscriptionOfRequest(c *pullContext) *pullRefused {
	h := &c.head
	if t := string(h.ExpressionType); t == "" || t == remoting.ExpressionTag {
		if s := string(h.Subscription); s == "" || s == "*" {
			return nil
		}
	}
	f, e := b.requestFilter(c.topic.TopicName, c.group.GroupName, string(h.Subscription), string(h.ExpressionType))
	if e != nil {
		return &pullRefused{refusedError: *e}
	}
	c.filter = f
	return nil
}

// subscriptionOfGroup takes the filter that the group's heartbeats carry.
func (b *Broker) subscriptionOfGroup(c *pullContext) *pullRefused {
	h := &c.head
	sub, model, online := b.consumers.Subscription(h.ConsumerGroup, h.Topic)
	switch {
	case !online:
		return refusePull(remoting.RespSubscriptionNotExist, 0, "the consumer's group info not exist\n%s", faq)
	case !c.group.ConsumeBroadcastEnable && model == remoting.Broadcasting:
		return refusePull(remoting.RespNoPermission, forbiddenByBroadcast, "the consumer group[%s] can not consume by broadcast way", h.ConsumerGroup)
	case b.groups.Forbidden(h.ConsumerGroup, h.Topic):
		return refusePull(remoting.RespNoPermission, forbiddenByGroupTopc, "the consumer group[%s] is forbidden for topic[%s]", h.ConsumerGroup, h.Topic)
	case sub == nil:
		return refusePull(remoting.RespSubscriptionNotExist, 0, "the consumer's subscription not exist\n%s", faq)
	case h.SubVersion > sub.SubVersion:
		return refusePull(remoting.RespSubscriptionNotLatest, 0, "the consumer's subscription not latest")
	}
	c.filter, c.broadcast = sub.filter, model == remoting.Broadcasting
	if !isTagType(sub.ExpressionType) {
		f, e := b.groupFilter(h.Topic, h.ConsumerGroup, h.SubVersion, sub.ExpressionType)
		if e != nil {
			return &pullRefused{refusedError: *e}
		}
		c.filter = f
	}
	return nil
}

// park keeps a pull that found nothing. It returns false when it has to be
// answered at once.
func (b *Broker) park(r *server.Request, c *pullContext) bool {
	wait := time.Duration(min(c.head.SuspendTimeoutMillis, maxHold.Milliseconds())) * time.Millisecond
	if !b.cfg().LongPolling {
		wait = b.cfg().ShortPolling
	}
	if wait <= 0 {
		return false
	}
	p := &parkedPull{
		key: holdKey{c.topic.TopicName, c.head.QueueID}, group: c.group.GroupName, conn: r.Conn().ID(), offset: c.head.QueueOffset,
		until: b.hold.now().Add(min(wait, maxHold)), filter: c.filter,
	}
	conn := r.Conn() // r is no longer ours once it is parked
	r.Detach()       // c.head is invalid from here on
	p.wake = func(bool) { b.woken.push(r) }
	p.drop = r.Done
	if !b.hold.Park(p) {
		// The request is ours still: answer it from its own bytes.
		b.pull(r, false)
		return true
	}
	if b.store.MaxOffset(p.key.topic, p.key.queue) > p.offset {
		b.hold.Recheck(p) // data came while it was not parked yet
	}
	b.dropIfClosed(conn)
	return true
}

// parkUnwritable keeps a pull whose connection has too much unsent: it runs
// again when there is room; first is as of pull.
func (b *Broker) parkUnwritable(r *server.Request, first bool) {
	conn := r.Conn()
	p := &parkedPull{key: writableKey, conn: conn.ID(), until: b.hold.now().Add(maxHold)}
	r.Detach()
	p.wake = func(timedOut bool) {
		if timedOut {
			r.Done()
			return
		}
		b.woken.add(wokenPull{r, first})
	}
	p.drop = r.Done
	if !b.hold.Park(p) {
		r.Done() // as Apache: a peer that does not read is not answered
		return
	}
	if conn.Writable() {
		b.hold.Recheck(p)
	}
	b.dropIfClosed(conn)
}

// dropIfClosed drops what was parked for a connection that closed before: its
// end has looked at the hold already.
func (b *Broker) dropIfClosed(conn *server.Conn) {
	if conn.State() == server.StateClosed {
		b.hold.Closed(conn.ID())
	}
}

// answerReset hands out an offset that an operator has set.
func (b *Broker) answerReset(r *server.Request, c *pullContext, offset int64) {
	topic, q := c.topic.TopicName, c.head.QueueID
	res := &store.GetResult{
		Status: store.OffsetReset, NextOffset: offset,
		MinOffset: b.store.MinOffset(topic, q), MaxOffset: b.store.MaxOffset(topic, q),
	}
	b.answerPull(r, c, remoting.RespPullOffsetMoved, res)
}

// answerPull writes the response of a pull and releases what it holds.
func (b *Broker) answerPull(r *server.Request, c *pullContext, code int32, res *store.GetResult) {
	status := res.Status
	if status == store.NoMatchedLogicQueue {
		status = store.NoMessageInQueue // the topic has the queue, it was only not written to
	}
	b.broadcastPulled(r, c, code, res.NextOffset)
	next, least, most := res.NextOffset, res.MinOffset, res.MaxOffset
	var delta int64
	switch {
	case c.logical != nil:
		got := c.logical.pulled(code, c.head.QueueOffset, res)
		code, next, least, most, delta = got.Code, got.Next, got.Min, got.Max, got.Delta
	case !mapped(c.head.Lo):
		most = max(most, b.store.NextOffset(c.topic.TopicName, c.head.QueueID)) // who asks wants to know whether more may come
	}
	p := newReply(code, status.String())
	var suggest int64
	if b.cfg().SlaveRead {
		suggest = c.group.BrokerID
		if res.BehindBytes > b.store.MemoryBytes() {
			suggest = c.group.WhichBrokerWhenConsumeSlowly
		}
	}
	p.int(keySuggest, suggest)
	p.pulled(next, least, most)
	if c.logical != nil {
		p.int(keyOffsetDelta, delta)
	}
	p.int(keyTopicSysFlag, int64(c.topic.TopicSysFlag))
	p.int(keyGroupSysFlag, int64(c.group.GroupSysFlag))
	if code != remoting.RespSuccess {
		p.to(r)
		res.Release()
		return
	}
	b.countGet(c.topic.TopicName, c.group.GroupName, res)
	r.ReplyBody(&p.cmd, res.Parts, res.Release)
	p.free()
}
