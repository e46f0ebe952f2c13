package broker

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// handleReply serves SEND_REPLY_MESSAGE and SEND_REPLY_MESSAGE_V2: the answer to
// a request message is handed to the client that waits for it, and stored as
// well with storeReplyMessageEnable. The code tells of the first, the message id
// of the second.
func (b *Broker) handleReply(r *server.Request) {
	it := b.newSendItem(r)
	if err := it.head.Decode(r.Fields, remoting.ShortSendNames(r.Code)); err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		it.free()
		return
	}
	now := b.now()
	if at := b.cfg().StartAcceptSendAt; at > 0 && now.UnixMilli() < at {
		it.refuse(refuse(remoting.RespSystemError, "broker unable to service, until %s", time.UnixMilli(at).Format(time.DateTime)))
		return
	}
	if e := b.sendTopic(it); e != nil {
		it.refuse(e)
		return
	}
	if it.head.Batch {
		it.refuse(refuse(remoting.RespMessageIllegal, "a reply cannot be a batch; nothing was stored"))
		return
	}
	if !it.topic.saved.Load() { // a message of a topic is stored once the topic is
		saved := make(chan error, 1)
		b.topics.saver.Then(func(err error) { saved <- err })
		if err := <-saved; err != nil {
			it.refuse(refuse(remoting.RespSystemError, "the topic could not be saved: %v", err))
			return
		}
	}
	body := r.Body
	if body == nil {
		body = []byte{}
	}
	p := scanProps(it.head.Properties)
	if e := b.fillReply(it, body, &p, now); e != nil {
		it.refuse(e)
		return
	}
	code, remark := remoting.RespSuccess, ""
	if e := b.pushReply(it, now); e != nil {
		code, remark = e.Code, e.Text
	}
	if b.cfg().StoreReplyMessage {
		b.storeReply(it, &p, code, remark)
		return
	}
	it.answerReply(code, remark, false)
}

// fillReply checks a reply as a send is checked and builds its record. One that
// asks for a later time is handed over now, and its copy is stored for then.
func (b *Broker) fillReply(it *sendItem, body []byte, p *sendProps, now time.Time) *refusedError {
	if p.prepared || it.head.SysFlag&message.FlagTransactionMask != 0 {
		return refuse(remoting.RespMessageIllegal, "a reply cannot be part of a transaction (%s, system flag %#x); nothing was stored",
			message.PropTranMsg, it.head.SysFlag&message.FlagTransactionMask)
	}
	if e := b.checkServed(it, p); e != nil {
		return e
	}
	it.key = p.uniqKey
	var newKey []byte
	if len(it.key) == 0 {
		newKey = b.ids.AppendNext(nil)
		it.key = newKey
	}
	it.props = b.own().appendStored(it.props[:0], it.head.Properties, p, newKey)
	b.fillRecord(it, body, it.props)
	if b.cfg().StoreReplyMessage && (p.delay != nil || p.timer != "") {
		return b.divert(&it.put.Record, now)
	}
	return nil
}

// storeReply stores a reply and answers it. A failure to store is logged, as the
// reply itself has reached its client.
func (b *Broker) storeReply(it *sendItem, p *sendProps, code int32, remark string) {
	b.putOwn(it.put.Record, !p.noWait, func(put *store.Put) {
		stored := put.Status.Stored()
		if !stored {
			b.quiet.Warn("a reply could not be stored", "topic", it.topic.TopicName, "status", put.Status.String(), "error", put.Err)
		} else {
			b.countPut(it.put.Record.Topic, put.Size)
		}
		it.put.PhysicalOffset, it.put.QueueOffset = put.PhysicalOffset, put.QueueOffset
		it.answerReply(code, remark, stored)
	})
}

// answerReply answers and frees the item. Without a stored message a success has
// the message id 0, since clients cannot do without one.
func (it *sendItem) answerReply(code int32, remark string, stored bool) {
	p := newReply(code, remark)
	it.b.regionFields(p)
	if stored || code == remoting.RespSuccess {
		n := len(p.buf)
		if stored {
			p.buf = message.AppendOffsetID(p.buf, it.b.at().storeHost, it.put.PhysicalOffset)
		} else {
			p.buf = append(p.buf, '0')
		}
		p.set(keyMsgID, p.buf[n:len(p.buf):len(p.buf)])
		p.int(keyQueueID, int64(it.queue))
		p.int(keyQueueOffset, it.put.QueueOffset)
	}
	p.to(it.req)
	it.free()
}

// pushReply hands a reply to the client that the message names, by its id, among
// the producers.
func (b *Broker) pushReply(it *sendItem, now time.Time) *refusedError {
	id, ok := message.Property(it.head.Properties, message.PropReplyToClient)
	if !ok {
		return refuse(remoting.RespSystemError, "reply message properties[%s] is null", message.PropReplyToClient)
	}
	m := b.producers.Client(string(id))
	if m == nil {
		return refuse(remoting.RespSystemError, "push reply message fail, channel of <%s> not found.", id)
	}
	peer, ok := m.peer.(caller)
	if !ok {
		return refuse(remoting.RespSystemError, "push reply message to %s fail: it cannot be asked", id)
	}
	h := &it.head
	rec := &it.put.Record
	cmd := remoting.NewRequest(remoting.ReqPushReplyMessageToClient, &remoting.ReplyMessageHeader{
		ProducerGroup: string(h.ProducerGroup), Topic: string(h.Topic), DefaultTopic: string(h.DefaultTopic),
		DefaultTopicQueueNums: h.DefaultTopicQueueNums, QueueID: h.QueueID, SysFlag: h.SysFlag, BornTimestamp: h.BornTimestamp, Flag: h.Flag,
		Properties:     string(message.AppendJavaOrder(nil, message.SetProperty(append([]byte(nil), h.Properties...), message.PropPushReplyTime, strconv.FormatInt(now.UnixMilli(), 10)))),
		ReconsumeTimes: h.ReconsumeTimes, UnitMode: h.UnitMode,
		BornHost: rec.BornHost.String(), StoreHost: rec.StoreHost.String(), StoreTimestamp: now.UnixMilli(),
	})
	cmd.Body = rec.Body
	ctx, cancel := context.WithTimeout(b.ctx, callbackTimeout)
	defer cancel()
	answer, err := peer.Call(ctx, cmd)
	if err == nil && answer.Code != remoting.RespSuccess {
		err = fmt.Errorf("it answers %s %s", remoting.ResponseName(answer.Code), answer.Remark)
	}
	if err != nil {
		b.quiet.Warn("a reply could not be handed over", "client", string(id), "peer", m.peer.Remote(), "error", err)
		return refuse(remoting.RespSystemError, "push reply message to %s fail: %v", id, err)
	}
	return nil
}
