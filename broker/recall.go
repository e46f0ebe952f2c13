package broker

import (
	"encoding/base64"
	"strconv"
	"strings"

	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// recallTag is the tag of the messages that cancel others.
const recallTag = "_RECALL_TAG_"

// recallHandle adds to the answer of a send what the message can be recalled
// with. Batches and retries have none.
func (b *Broker) recallHandle(p *reply, it *sendItem) {
	props := it.put.Record.Properties
	topic, _ := message.Property(props, message.PropRealTopic)
	out, _ := message.Property(props, message.PropTimerOutMs)
	ms, err := strconv.ParseInt(string(out), 10, 64)
	if err != nil || it.req.Code == remoting.ReqSendBatchMessage || message.IsRetry(string(topic)) {
		return
	}
	// One more, which lies in the same slot.
	text := strings.Join([]string{"v1", string(topic), b.cfg().BrokerName, strconv.FormatInt(ms+1, 10), string(it.key)}, " ")
	p.str(keyRecallHandle, base64.URLEncoding.EncodeToString([]byte(text)))
}

// recalled is what a recall handle says.
type recalled struct {
	topic, broker, key string
	deliver            string // ms
}

// parseRecallHandle reads a handle of version 1; ok is false when it is none.
func parseRecallHandle(handle string) (h recalled, ok bool) {
	text, err := base64.URLEncoding.DecodeString(handle)
	if err != nil {
		text, err = base64.RawURLEncoding.DecodeString(handle) // Java takes both
	}
	if handle == "" || err != nil {
		return h, false
	}
	f := strings.SplitN(string(text), " ", 5) // the key, which is the producer's, may hold blanks
	if f[0] != "v1" || len(f) < 5 {
		return h, false
	}
	return recalled{topic: f[1], broker: f[2], deliver: f[3], key: f[4]}, true
}

// handleRecall serves RECALL_MESSAGE: a message that cancels the recalled one is
// stored into the same slot. Whether there still was a message to cancel is not
// known.
func (b *Broker) handleRecall(r *server.Request) {
	var h remoting.RecallMessageHeader
	if !header(r, &h) {
		return
	}
	rec, key, e := b.recallRecord(r, &h)
	if e == nil {
		if refused := b.divert(&rec, b.now()); refused != nil {
			e = refuse(remoting.RespSystemError, "recall failed, execute error: %s", refused.Text)
		}
	}
	if e != nil {
		p := newReply(e.Code, e.Text)
		p.str(keyRegion, b.own().region)
		p.to(r)
		return
	}
	b.putOwn(rec, true, func(put *store.Put) { b.recalled(r, put, key) })
}

// recalled answers a recall when its message is stored.
func (b *Broker) recalled(r *server.Request, put *store.Put, key string) {
	if put.Status != store.PutOK {
		p := newReply(remoting.RespSystemError, "recall failed, execute error"+cause(put.Err))
		p.str(keyRegion, b.own().region)
		p.to(r)
		return
	}
	b.countPut(timerTopic, put.Size)
	p := newReply(remoting.RespSuccess, "")
	p.str(keyRegion, b.own().region)
	p.str(keyMsgID, key)
	p.to(r)
}

// recallRecord checks a recall and builds the message that cancels.
func (b *Broker) recallRecord(r *server.Request, h *remoting.RecallMessageHeader) (message.Record, string, *refusedError) {
	cfg, now := b.cfg(), b.now().UnixMilli()
	if !cfg.RecallMessage {
		return message.Record{}, "", refuse(remoting.RespNoPermission, "recall failed, operation is forbidden")
	}
	if now < cfg.StartAcceptSendAt || !writable(int32(cfg.BrokerPermission)) && !cfg.RecallUnwritable {
		return message.Record{}, "", refuse(remoting.RespServiceNotAvailable, "recall failed, broker service not available")
	}
	if b.topics.Get(h.Topic) == nil {
		return message.Record{}, "", refuse(remoting.RespTopicNotExist, "recall failed, the topic[%s] not exist", h.Topic)
	}
	what, ok := parseRecallHandle(h.RecallHandle)
	switch {
	case !ok:
		return message.Record{}, "", refuse(remoting.RespIllegalOperation, "recall handle is invalid")
	case what.topic != h.Topic:
		return message.Record{}, "", refuse(remoting.RespIllegalOperation, "recall failed, topic not match")
	case what.broker != cfg.BrokerName:
		return message.Record{}, "", refuse(remoting.RespIllegalOperation, "recall failed, broker service not available")
	}
	deliver, err := strconv.ParseInt(what.deliver, 10, 64)
	if left := deliver - now; err != nil || left <= 0 || left >= cfg.TimerMaxDelay.Milliseconds() {
		return message.Record{}, "", refuse(remoting.RespIllegalOperation, "recall failed, timestamp invalid")
	}
	props := message.AppendProperty(nil, message.PropTimerDelUniqKey, store.TimerDeleteKey(what.topic, what.key, cfg.AppendTopicForDeleteKey))
	props = message.AppendProperty(props, message.PropTags, recallTag)
	props = message.AppendProperty(props, message.PropUniqKey, what.key)
	props = message.AppendProperty(props, message.PropTimerDeliverMs, what.deliver)
	props = message.AppendProperty(props, message.PropBornTimestamp, strconv.FormatInt(now, 10))
	props = message.AppendProperty(props, message.PropTraceContext, "")
	if h.ProducerGroup != "" {
		props = message.AppendProperty(props, message.PropProducerGroup, h.ProducerGroup)
	}
	return message.Record{
		BornTimestamp: now, BornHost: r.Conn().Remote(), StoreHost: b.at().storeHost,
		Body: []byte("0"), Topic: []byte(what.topic), Properties: props,
	}, what.key, nil
}

// handleTimerCheckpoint serves GET_TIMER_CHECK_POINT.
func (b *Broker) handleTimerCheckpoint(r *server.Request) {
	if !b.timers.on() {
		r.Reply(remoting.RespSystemError, "The checkpoint is null")
		return
	}
	p := newReply(remoting.RespSuccess, "")
	c := b.timers.t.Checkpoint()
	p.cmd.Body = c.Append(nil)
	p.to(r)
}

// handleTimerMetrics serves GET_TIMER_METRICS.
func (b *Broker) handleTimerMetrics(r *server.Request) {
	if !b.timers.on() {
		r.Reply(remoting.RespSystemError, "The timer message store is null")
		return
	}
	m := b.timers.t.Metrics()
	body, err := m.Text()
	if err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	p := newReply(remoting.RespSuccess, "")
	p.cmd.Body = body
	p.to(r)
}
