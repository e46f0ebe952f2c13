package broker

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"mqx/broker/retry"
	"mqx/broker/staticmap"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// sendItem is one send on its way: its request, the put, and the buffers that
// both need. Items are pooled; the put's Done ends one.
type sendItem struct {
	b    *Broker
	req  *server.Request
	head remoting.SendMessageView
	put  store.Put

	topic *topic
	queue int32 // that the sender is told: of its topic, wherever the message waits
	props []byte
	key   []byte // the unique key that the answer carries
	msgs  int64
	kind  messageKind
	// givenUp is the topic of a message that goes to the dead letters.
	givenUp string
	// waited: the broker that the message is handed on to has been looked for.
	waited bool

	// static: of a static topic; the sender is told its logical queue, and the offset that the stretch gives.
	static  bool
	logical int32
	stretch staticmap.Item
}

// sendBatch is the puts of one call of the handler.
type sendBatch struct {
	puts  []*store.Put
	items []*sendItem // of puts, to be looked at only before they are put
	// waited: as of the items.
	waited bool
}

var (
	sendItems   sync.Pool
	sendBatches = sync.Pool{New: func() any { return &sendBatch{} }}
)

func (b *Broker) newSendItem(r *server.Request) *sendItem {
	it, _ := sendItems.Get().(*sendItem)
	if it == nil {
		it = &sendItem{}
		it.put.Done = it.done
	}
	it.b, it.req = b, r
	return it
}

func (it *sendItem) free() {
	it.put = store.Put{Done: it.put.Done}
	it.b, it.req, it.topic, it.key = nil, nil, nil, nil
	it.head, it.msgs, it.queue, it.kind, it.waited = remoting.SendMessageView{}, 0, 0, kindNormal, false
	it.static, it.givenUp = false, ""
	if cap(it.props) > 40<<10 {
		it.props = nil
	}
	sendItems.Put(it)
}

// handleSend serves SEND_MESSAGE, SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE for
// all requests that wait: each is checked, then all go to the store in one
// PutBatch, whose completion answers them.
func (b *Broker) handleSend(rs []*server.Request) {
	batch := sendBatches.Get().(*sendBatch)
	b.send(batch, rs)
	sendBatches.Put(batch)
}

// send is handleSend with the memory for it.
func (b *Broker) send(batch *sendBatch, rs []*server.Request) {
	b.prepareSends(batch, rs)
	if len(batch.puts) > 0 {
		b.store.PutBatch(batch.puts)
	}
	batch.clear()
}

// prepareSends checks requests; those that pass have an item and a put in batch.
func (b *Broker) prepareSends(batch *sendBatch, rs []*server.Request) {
	now := b.now()
	for _, r := range rs {
		it := b.newSendItem(r)
		it.waited = batch.waited
		if b.prepareSend(it, now) {
			batch.items = append(batch.items, it)
			batch.puts = append(batch.puts, &it.put)
		}
	}
}

func (batch *sendBatch) clear() {
	clear(batch.puts)
	clear(batch.items)
	batch.puts, batch.items = batch.puts[:0], batch.items[:0]
}

// maxPromptSend is the most bytes of requests that an event loop takes at once.
const maxPromptSend = 512 << 10

// trySends serves sends on an event loop, which spares two changes of goroutine, when the log takes them at once. It
// returns those that a worker is to serve.
func (b *Broker) trySends(rs []*server.Request) []*server.Request {
	size := 0
	for _, r := range rs {
		size += r.Size()
	}
	if size > maxPromptSend {
		return rs
	}
	batch := sendBatches.Get().(*sendBatch)
	b.prepareSends(batch, rs)
	left := rs[:0]
	if len(batch.puts) > 0 && !b.store.TryPutBatch(batch.puts) {
		for _, it := range batch.items {
			left = append(left, it.req)
			it.free()
		}
	}
	batch.clear()
	sendBatches.Put(batch)
	return left
}

// prepareSend checks one send and fills its put. When it returns false the
// request has been answered or handed on, and the item is gone.
func (b *Broker) prepareSend(it *sendItem, now time.Time) bool {
	if err := it.head.Decode(it.req.Fields, remoting.ShortSendNames(it.req.Code)); err != nil {
		it.req.Reply(remoting.RespSystemError, err.Error())
		it.free()
		return false
	}
	if at := b.cfg().StartAcceptSendAt; at > 0 && now.UnixMilli() < at {
		return it.refuse(refuse(remoting.RespSystemError, "broker unable to service, until %s", time.UnixMilli(at).Format(time.DateTime)))
	}
	if e := b.sendTopic(it); e != nil {
		return it.refuse(e)
	}
	if !it.topic.saved.Load() {
		// A message of a topic is stored once the topic is: try again then.
		req := it.req
		it.free()
		b.topics.saver.Then(func(err error) {
			if err != nil {
				req.Reply(remoting.RespSystemError, fmt.Sprintf("the topic could not be saved: %v", err))
				return
			}
			b.handleSend([]*server.Request{req})
		})
		return false
	}
	if it.topic.forward != nil {
		if b.forwardSend(it) {
			return false
		}
		if e := b.mayStore(it.topic); e != nil {
			return it.refuse(e)
		}
	}
	var e *refusedError
	if it.head.Batch {
		e = b.fillBatch(it)
	} else {
		e = b.fillSingle(it, now)
	}
	if e != nil {
		return it.refuse(e)
	}
	return true
}

// sendTopic finds the topic of a send, creating it where that is allowed, and
// checks permission, name and queue.
func (b *Broker) sendTopic(it *sendItem) *refusedError {
	h := &it.head
	tp := b.topics.GetBytes(h.Topic)
	if tp == nil {
		var e *refusedError
		if hops(it.req.Fields) > 0 { // it was here once
			return refuse(remoting.RespTopicNotExist, "topic[%s] has been handed on from another broker, and is not here any more", h.Topic)
		}
		if tp, e = b.createForSend(h); e != nil {
			return e
		}
	}
	if message.IsUnsendableTopic(tp.TopicName) {
		return refuse(remoting.RespNoPermission, "Sending message to topic[%s] is forbidden.", tp.TopicName)
	}
	if tp.forward == nil { // else it may be for another broker
		if e := b.mayStore(tp); e != nil {
			return e
		}
	}
	it.topic = tp
	if m := b.statics.of(h.Topic); m != nil && mapped(h.Lo) {
		if e := b.mapSend(it, m); e != nil {
			return e
		}
	}
	if ids := max(tp.WriteQueueNums, tp.ReadQueueNums); h.QueueID >= ids {
		return refuse(remoting.RespInvalidParameter, "request queueId[%d] is illegal, topic:[%s] readQueueNums:[%d] writeQueueNums:[%d] Producer: %s",
			h.QueueID, tp.TopicName, tp.ReadQueueNums, tp.WriteQueueNums, it.req.Conn().Remote())
	}
	if h.QueueID < 0 && tp.WriteQueueNums <= 0 {
		return refuse(remoting.RespInvalidParameter, "topic:[%s] has no queue to write to: readQueueNums:[%d] writeQueueNums:[%d]",
			tp.TopicName, tp.ReadQueueNums, tp.WriteQueueNums)
	}
	return nil
}

// mayStore refuses messages of an ordered topic where the whole broker takes none: producers of such topics do not look at
// permissions in the route.
func (b *Broker) mayStore(tp *topic) *refusedError {
	if tp.Order && !writable(int32(b.cfg().BrokerPermission)) {
		return refuse(remoting.RespNoPermission, "the broker[%s] sending message is forbidden", b.at().IP)
	}
	return nil
}

// createForSend creates the topic of a send by the rules of auto-creation.
func (b *Broker) createForSend(h *remoting.SendMessageView) (*topic, *refusedError) {
	name := string(h.Topic)
	if err := message.ValidateTopic(name); err != nil {
		return nil, asRefused(err)
	}
	if message.IsUnsendableTopic(name) {
		return nil, refuse(remoting.RespNoPermission, "Sending message to topic[%s] is forbidden.", name)
	}
	retry := message.IsRetry(name)
	var flag int32
	if h.UnitMode {
		flag = sysFlagUnit
		if retry {
			flag = sysFlagUnitSub
		}
	}
	var template *remoting.TopicConfig
	if d := b.topics.GetBytes(h.DefaultTopic); d != nil {
		template = &d.TopicConfig
	}
	c := autoCreated(b.cfg().AutoCreateTopic, name, template, h.DefaultTopicQueueNums, flag)
	if c == nil && retry {
		rc := groupTopic(name, 1, flag)
		c = &rc
	}
	if c == nil {
		return nil, refuse(remoting.RespTopicNotExist, "topic[%s] not exist, apply first please!\n%s", name, faq)
	}
	tp, err := b.topics.PutIfAbsent(*c)
	if err != nil {
		return nil, asRefused(err)
	}
	return tp, nil
}

// fillSingle builds the record of a single message.
func (b *Broker) fillSingle(it *sendItem, now time.Time) *refusedError {
	h, body := &it.head, it.req.Body
	if body == nil {
		return refuse(remoting.RespMessageIllegal, "the message has no body")
	}
	p := scanProps(h.Properties)
	toDLQ := false
	if message.IsRetry(it.topic.TopicName) {
		var e *refusedError
		if toDLQ, e = b.retryRule(it); e != nil {
			return e
		}
	}
	if e := b.checkServed(it, &p); e != nil {
		return e
	}
	if q, ok, drop := p.queueByPriority(it.topic.WriteQueueNums); ok && !it.static {
		it.head.QueueID = q
	} else if drop {
		p.dropPriority, p.replaced = true, true
	}
	it.key, it.kind = p.uniqKey, p.kind()
	var newKey []byte
	if len(it.key) == 0 {
		newKey = b.ids.AppendNext(nil)
		it.key = newKey
	}
	it.props = b.own().appendStored(it.props[:0], h.Properties, &p, newKey)
	if toDLQ {
		origin, _ := message.Property(it.props, message.PropRetryTopic)
		it.givenUp = string(origin)
		it.props = message.SetProperty(it.props, message.PropDelay, "-1")
	}
	b.fillRecord(it, body, it.props)
	it.put.WaitFlush = !p.noWait
	it.msgs = 1
	if p.half(h.ReconsumeTimes) {
		return b.fillHalf(it, &p, now)
	}
	if p.delay == nil && p.timer == "" {
		return nil
	}
	return b.divertSend(it, now)
}

// divertSend is divert for a send. What is counted is counted for the topic
// that it waits in, as in Apache.
func (b *Broker) divertSend(it *sendItem, now time.Time) *refusedError {
	if e := b.divert(&it.put.Record, now); e != nil {
		return e
	}
	if waits := b.topics.GetBytes(it.put.Record.Topic); waits != nil {
		it.topic = waits
	}
	return nil
}

// checkServed refuses what a message asks for and nobody here would do.
func (b *Broker) checkServed(it *sendItem, p *sendProps) *refusedError {
	level := p.delayLevel()
	switch {
	case p.half(it.head.ReconsumeTimes) && b.cfg().RejectTransaction:
		return refuse(remoting.RespNoPermission, "the broker[%s] sending transaction message is forbidden", b.at().IP)
	case it.head.Batch && p.prepared:
		return refuse(remoting.RespMessageIllegal, "a batch cannot be transactional; nothing was stored")
	case it.head.Batch && level > 0:
		return refuse(remoting.RespMessageIllegal, "a batch cannot be delayed (DELAY=%d); nothing was stored", level)
	case it.head.Batch && p.dispatch && b.topics.light:
		return refuse(remoting.RespMessageIllegal, "messages of a batch cannot belong to light queues (%s); nothing was stored", message.PropInnerMultiDispatch)
	case it.head.Batch && p.timer != "":
		return refuse(remoting.RespMessageIllegal, "a batch cannot be delayed (%s); nothing was stored", p.timer)
	case it.head.SysFlag&message.FlagInnerBatch != 0 || p.inner:
		return refuse(remoting.RespMessageIllegal, "a message that says it is a batch (%s, system flag %#x); nothing was stored", message.PropInnerNum, message.FlagInnerBatch)
	case p.lite:
		return refuse(remoting.RespInvalidParameter, "%s: %s; nothing was stored", message.PropLiteTopic, noLite)
	case message.Transaction(it.head.SysFlag) == message.TransactionPrepared && !p.prepared:
		return refuse(remoting.RespMessageIllegal, "a prepared message without %s; nothing was stored", message.PropTranMsg)
	case message.Transaction(it.head.SysFlag) == message.TransactionRollback && !p.prepared:
		return refuse(remoting.RespMessageIllegal, "a message marked as rolled back, which nobody would get; nothing was stored")
	}
	return nil
}

// retryRule decides about a message that a client sends to a retry topic
// itself: past its attempts, or of a group that consumes in order, it goes to
// the dead letters.
func (b *Broker) retryRule(it *sendItem) (toDLQ bool, e *refusedError) {
	name := retry.GroupOf(it.topic.TopicName)
	g := b.groups.FindOrCreate(name)
	if g == nil {
		return false, refuse(remoting.RespSubscriptionGroupNotExist, "subscription group not exist, %s\n%s", name, faq)
	}
	if !retry.SendToDLQ(it.head.ReconsumeTimes, b.mostAttempts(it.req, g, it.head.MaxReconsumeTimes), b.locks.AnyHeld(name)) {
		return false, nil
	}
	dlq, err := b.topics.PutIfAbsent(groupTopic(message.DLQTopic(name), 1, 0))
	if err != nil {
		return false, asRefused(err)
	}
	it.topic = dlq
	it.head.QueueID = 0
	return true, nil
}

// fillBatch builds the put of a batch: the items stay as they are.
func (b *Broker) fillBatch(it *sendItem) *refusedError {
	h, body := &it.head, it.req.Body
	if len(body) == 0 {
		return refuse(remoting.RespMessageIllegal, "the batch has no body")
	}
	if message.IsRetry(it.topic.TopicName) {
		return refuse(remoting.RespMessageIllegal, "batch request does not support retry group %s", it.topic.TopicName)
	}
	n, err := message.CountBatch(body)
	if err != nil || n == 0 {
		return refuse(remoting.RespMessageIllegal, "the batch cannot be read: %v", err)
	}
	p := scanProps(h.Properties)
	if e := b.checkServed(it, &p); e != nil {
		return e
	}
	if e := b.checkItems(it, body); e != nil {
		return e
	}
	it.key, it.kind = p.uniqKey, p.kind()
	it.msgs = int64(n)
	if isBatchQueue(it.topic.Attributes) && len(p.uniqKey) > 0 {
		return b.fillInner(it, body, n, &p)
	}
	it.put.Batch = true
	b.fillRecord(it, body, nil)
	it.put.WaitFlush = !p.noWait
	return nil
}

// fillInner builds the put of a batch that stays one record: in a topic with batch queues, when the request has a unique
// key. Its properties are those of the request.
func (b *Broker) fillInner(it *sendItem, body []byte, n int, p *sendProps) *refusedError {
	if n > math.MaxInt16 {
		return refuse(remoting.RespMessageIllegal, "the batch has %d messages, the limit of a topic with batch queues is %d", n, math.MaxInt16)
	}
	it.props = b.own().appendStored(it.props[:0], it.head.Properties, p, nil)
	it.props = message.SetProperty(it.props, message.PropInnerNum, strconv.Itoa(n))
	it.head.SysFlag |= message.FlagInnerBatch | message.FlagNeedUnwrap
	b.fillRecord(it, body, it.props)
	it.put.Inner = int16(n)
	it.put.WaitFlush = !p.noWait
	return nil
}

// marks are the beginnings of property names that a batch item must not have;
// a body may hold them too, so a hit is only a reason to look closely.
var marks = [][]byte{[]byte("DELAY\x01"), []byte("TIMER_DE"), []byte("TRAN_MSG\x01"), []byte("__LITE_TOPIC\x01"), []byte("INNER_MULTI_DISPATCH\x01")}

func (b *Broker) checkItems(it *sendItem, body []byte) *refusedError {
	suspect := false
	for _, m := range marks {
		suspect = suspect || bytes.Contains(body, m)
	}
	if !suspect {
		return nil
	}
	for item, err := range message.SplitBatch(body) {
		if err != nil {
			return refuse(remoting.RespMessageIllegal, "the batch cannot be read: %v", err)
		}
		p := scanProps(item.Properties)
		if e := b.checkServed(it, &p); e != nil {
			return e
		}
	}
	return nil
}

// fillRecord fills the record of a put from the header.
func (b *Broker) fillRecord(it *sendItem, body, props []byte) {
	h := &it.head
	q := h.QueueID
	if q < 0 {
		q = 0
		if n := it.topic.WriteQueueNums; n > 1 {
			q = rand.Int32N(n)
		}
	}
	it.queue = q
	flags := h.SysFlag
	if it.topic.TopicFilterType == remoting.FilterMultiTag {
		flags |= message.FlagMultiTags
	}
	it.put.Record = message.Record{
		QueueID: q, Flag: h.Flag, SysFlag: flags, BornTimestamp: h.BornTimestamp,
		BornHost: it.req.Conn().Remote(), StoreHost: b.at().storeHost, ReconsumeTimes: h.ReconsumeTimes,
		Body: body, Topic: it.topic.name, Properties: props,
	}
}

// refuse answers a send with an error; nothing was stored.
func (it *sendItem) refuse(e *refusedError) bool {
	it.b.refusals.checked(e.Code)
	p := newReply(e.Code, e.Text)
	it.b.regionFields(p)
	p.to(it.req)
	it.free()
	return false
}

func (b *Broker) regionFields(p *reply) {
	p.str(keyRegion, b.own().region)
	p.str(keyTraceOn, b.own().traceOn)
}

// done answers a send when the store has finished with it.
func (it *sendItem) done(put *store.Put) {
	b := it.b
	if put.WaitFlush {
		b.flushed.Add(it.req)
	}
	now := b.now()
	took := now.Sub(it.req.Received())
	b.putTimes.Add(took, max(1, it.msgs))
	b.refusals.put(put.Status)
	if b.slow.Is(took) {
		it.req.SetStages(stagesOf(put, it.req.Taken(), now))
	}
	code, remark := b.sendOutcome(put)
	b.diagnosis.refused(put.Status)
	p := newReply(code, remark)
	b.regionFields(p)
	if put.Status.Stored() {
		b.bornTimes.Add(time.Duration(put.StoreTimestamp-put.Record.BornTimestamp)*time.Millisecond, max(1, it.msgs))
		it.succeeded(p)
	}
	p.to(it.req)
	it.free()
}

func (it *sendItem) succeeded(p *reply) {
	b, put := it.b, &it.put
	n := len(p.buf)
	if it.put.Batch {
		for i, off := range put.Offsets {
			if i > 0 {
				p.buf = append(p.buf, ',')
			}
			p.buf = message.AppendOffsetID(p.buf, b.at().storeHost, off)
		}
	} else {
		p.buf = message.AppendOffsetID(p.buf, b.at().storeHost, put.PhysicalOffset)
	}
	p.set(keyMsgID, p.buf[n:len(p.buf):len(p.buf)])
	queue, offset := it.queue, put.QueueOffset
	if it.static {
		queue, offset = it.logical, staticmap.LogicSent(it.stretch, offset)
	}
	p.int(keyQueueID, int64(queue))
	p.int(keyQueueOffset, offset)
	if len(it.key) > 0 {
		p.set(keyTransactionID, it.key)
		if put.Inner > 0 {
			p.set(keyBatchUniqID, it.key)
		}
	}
	if bytes.Equal(put.Record.Topic, timerTopic) {
		b.recallHandle(p, it)
	}
	if bytes.Equal(put.Record.Topic, halfTopicName) {
		b.transactions.begun(put.Record.Properties)
	}
	if it.givenUp != "" {
		b.countDeadLetter(it.givenUp, retry.GroupOf(string(it.head.Topic)))
	}
	it.topic.puts.AddTimes(it.msgs, 1)
	it.topic.putBytes.AddTimes(int64(put.Size), 1)
	it.topic.in.add(it.kind, it.msgs, int64(put.Size))
	b.brokerPuts.AddTimes(it.msgs, 1)
}

// sendOutcome turns the store's status into a response code and remark.
func (b *Broker) sendOutcome(put *store.Put) (int32, string) {
	switch put.Status {
	case store.PutOK:
		return remoting.RespSuccess, ""
	case store.FlushDiskTimeout:
		return remoting.RespFlushDiskTimeout, ""
	case store.FlushSlaveTimeout:
		return remoting.RespFlushSlaveTimeout, ""
	case store.SlaveNotAvailable:
		return remoting.RespSlaveNotAvailable, ""
	case store.InSyncReplicasNotEnough:
		return remoting.RespSystemError, "in-sync replicas not enough"
	case store.CreateFileFailed:
		return remoting.RespSystemError, "create mapped file failed, server is busy or broken." + cause(put.Err)
	case store.MessageIllegal, store.PropertiesSizeExceeded:
		return remoting.RespMessageIllegal, "the message is illegal, maybe msg body or properties length not matched. msg body length limit " +
			strconv.Itoa(b.cfg().Store.MaxMessageBytes) + "B, msg properties length limit 32KB." + cause(put.Err)
	case store.ServiceNotAvailable:
		return remoting.RespServiceNotAvailable, "service not available now." + cause(put.Err)
	case store.OSPageCacheBusy:
		return remoting.RespSystemBusy, "[PC_SYNCHRONIZED]broker busy, start flow control for a while." + cause(put.Err)
	case store.LMQConsumeQueueNumExceeded:
		return remoting.RespLMQQuotaExceeded, "[LMQ_CONSUME_QUEUE_NUM_EXCEEDED]lmq consume queue num exceeded."
	default:
		return remoting.RespSystemError, "UNKNOWN_ERROR" + cause(put.Err)
	}
}

// cause is the end of a remark that says what really happened.
func cause(err error) string {
	if err == nil {
		return ""
	}
	return " " + err.Error()
}
