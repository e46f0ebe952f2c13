package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"mqx/broker/retry"
	"mqx/broker/stats"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// handleSendBack serves CONSUMER_SEND_MSG_BACK: a message that a consumer could
// not work on is stored again, for a later attempt or as a dead letter.
func (b *Broker) handleSendBack(r *server.Request) {
	var h remoting.ConsumerSendMsgBackHeader
	if !header(r, &h) {
		return
	}
	if e := b.sendBack(r, &h); e != nil {
		r.Reply(e.Code, e.Text)
	}
}

// sendBack answers the request itself unless it returns an error.
func (b *Broker) sendBack(r *server.Request, h *remoting.ConsumerSendMsgBackHeader) *refusedError {
	g := b.groups.FindOrCreate(h.Group)
	if g == nil {
		return refuse(remoting.RespSubscriptionGroupNotExist, "subscription group not exist, %s\n%s", h.Group, faq)
	}
	if !writable(int32(b.cfg().BrokerPermission)) {
		return refuse(remoting.RespNoPermission, "the broker[%s] sending message is forbidden", b.at().IP)
	}
	if g.RetryQueueNums <= 0 { // the group wants no retries: as in Apache, the message is done with
		r.Reply(remoting.RespSuccess, "")
		return nil
	}
	retryTopic, e := b.retryTopic(g, h.UnitMode)
	if e != nil {
		return e
	}
	raw, err := b.store.RecordAt(h.Offset)
	if err != nil {
		text := fmt.Sprintf("look message by offset failed, %d", h.Offset)
		if !errors.Is(err, store.ErrNoRecord) {
			text += ": " + err.Error()
		}
		return refuse(remoting.RespSystemError, "%s", text)
	}
	rec := message.View(raw)
	if rec.SysFlag()&message.FlagInnerBatch != 0 {
		return refuse(remoting.RespSystemError, "%s: a batch that is one record cannot be sent back", store.MessageIllegal)
	}
	d := retry.Decide(rec.ReconsumeTimes(), b.mostAttempts(r, g, h.MaxReconsumeTimes), h.DelayLevel)
	target := retryTopic
	if d.DLQ {
		if target, err = b.topics.PutIfAbsent(groupTopic(message.DLQTopic(h.Group), 1, 0)); err != nil {
			return asRefused(err)
		}
	}
	queues := target.WriteQueueNums
	if !d.DLQ {
		queues = min(queues, g.RetryQueueNums)
	}
	next := retry.Next(rec, d, target.TopicName, anyQueue(queues), b.at().storeHost)
	if e := b.divert(&next, b.now()); e != nil {
		return e
	}
	sb := &sentBack{b: b, r: r, group: h.Group, rec: next, dlq: d.DLQ, msgID: rec.PhysicalOffset()}
	b.onceSaved(target, sb.put)
	return nil
}

// mostAttempts is how many attempts a message has: what the request says, from
// clients that know how to, else what the group says.
func (b *Broker) mostAttempts(r *server.Request, g *group, sent remoting.Opt[int32]) int32 {
	if sent.OK && r.Version >= remoting.V3_4_9 {
		return sent.Value
	}
	return g.RetryMaxTimes
}

// retryTopic is the retry topic of a group, made when it is missing.
func (b *Broker) retryTopic(g *group, unitMode bool) (*topic, *refusedError) {
	var flag int32
	if unitMode {
		flag = sysFlagUnitSub
	}
	t, err := b.topics.PutIfAbsent(groupTopic(message.RetryTopic(g.GroupName), g.RetryQueueNums, flag))
	if err != nil {
		return nil, asRefused(err)
	}
	if !writable(t.Perm) {
		return nil, refuse(remoting.RespNoPermission, "the topic[%s] sending message is forbidden", t.TopicName)
	}
	return t, nil
}

// anyQueue is one of n queues by chance, 0 for none.
func anyQueue(n int32) int32 {
	if n <= 1 {
		return 0
	}
	return rand.Int32N(n)
}

// onceSaved runs f when the topic is on disk: a message of a topic is stored
// once the topic is.
func (b *Broker) onceSaved(t *topic, f func(error)) {
	if t.saved.Load() {
		f(nil)
		return
	}
	b.topics.saver.Then(f)
}

// sentBack is a message that is being stored for its next attempt.
type sentBack struct {
	b     *Broker
	r     *server.Request
	group string
	rec   message.Record
	dlq   bool
	msgID int64
}

// put stores it. The consumer goes on to commit its offset over the message, so
// that it has to be as durable as one that was sent: a synchronous flush is
// waited for, whatever the stored WAIT says.
func (sb *sentBack) put(err error) {
	if err != nil {
		sb.r.Reply(remoting.RespSystemError, fmt.Sprintf("the topic could not be saved: %v", err))
		return
	}
	sb.b.putOwn(sb.rec, true, sb.done)
}

func (sb *sentBack) done(p *store.Put) {
	b := sb.b
	if p.Status != store.PutOK {
		sb.r.Reply(remoting.RespSystemError, p.Status.String()+cause(p.Err))
		return
	}
	if t := b.topics.GetBytes(sb.rec.Topic); t != nil && string(sb.rec.Topic) == message.TopicSchedule {
		t.puts.AddTimes(1, 1)
		t.putBytes.AddTimes(int64(p.Size), 1)
	}
	origin, _ := message.Property(sb.rec.Properties, message.PropRetryTopic)
	b.countSentBack(string(origin), sb.group)
	if sb.dlq {
		b.countDeadLetter(string(origin), sb.group)
		key, _ := message.Property(sb.rec.Properties, message.PropUniqKey)
		b.quiet.Warn("a message was sent to the dead letters", "group", sb.group, "topic", string(origin),
			"key", string(key), "phys_offset", p.PhysicalOffset, "was_phys_offset", sb.msgID)
	}
	sb.r.Reply(remoting.RespSuccess, "")
}

// countSentBack counts a message that a group sent back.
func (b *Broker) countSentBack(topic, group string) {
	b.stats.Counter(stats.SendBackNums, offsetKey{topic, group}.String()).Add(1)
}

// countDeadLetter counts a message that a group gave up.
func (b *Broker) countDeadLetter(topic, group string) {
	b.stats.Counter(stats.DeadLetterNums, offsetKey{topic, group}.String()).Add(1)
}
