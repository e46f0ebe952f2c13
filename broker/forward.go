package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// Names of fields of a send that is handed on.
const (
	fieldShortQueueID = "e"
	fieldBroker       = "bname"
	fieldShortBroker  = "n"
)

// groupForward is the producer group of what the broker itself sends on: Apache's name for clients inside of one.
const groupForward = "CLIENT_INNER_PRODUCER"

// forwardTimeout bounds one send that is handed on: less than producers wait (3 s).
const forwardTimeout = 2500 * time.Millisecond

// maxHops is how many brokers hand a send on, each because the queues have moved once more: it ends what goes in a circle.
const maxHops = 8

// hops is how many brokers have handed a send on.
func hops(fields remoting.Fields) int {
	v, ok := fields.Get(remoting.FieldForwarded)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(string(v))
	if err != nil {
		return 1 // of a broker that does not count
	}
	return max(n, 1)
}

// forwardOf is the forwarding of a topic, nil where it has none.
func forwardOf(c *remoting.TopicConfig) (*remoting.Forward, error) {
	text, ok := c.Attributes[remoting.AttrForward]
	if !ok {
		return nil, nil
	}
	return remoting.ParseForward(text)
}

// forwardSend hands a send to a sealed queue on, or answers it. false: it is stored here, in the queue that the head says.
func (b *Broker) forwardSend(it *sendItem) bool {
	f, h := it.topic.forward, &it.head
	p := scanProps(h.Properties)
	if !h.Batch && p.half(h.ReconsumeTimes) {
		return false // its producer ends it here; what is committed goes on from here
	}
	if _, ok, _ := p.queueByPriority(it.topic.WriteQueueNums); ok && f.From > 0 {
		return false // it goes to one of the queues that stay
	}
	if h.QueueID < 0 {
		h.QueueID = 0
		if n := it.topic.WriteQueueNums; n > 1 {
			h.QueueID = rand.Int32N(n)
		}
	}
	to, sealed := f.Slot(h.QueueID)
	if !sealed {
		return false
	}
	if to.Broker == b.identity().name {
		h.QueueID = to.Queue
		return false
	}
	req := it.req
	if n := hops(req.Fields); n >= maxHops {
		return !it.refuse(refuse(remoting.RespServiceNotAvailable, "queue %d of topic %s is sealed here, too, and %d brokers have handed the message on", h.QueueID, it.topic.TopicName, n))
	}
	topic, size, fw := it.topic.TopicName, len(req.Body), b.forwards
	if !fw.enter(to.Broker, size) {
		return !it.refuse(refuse(remoting.RespSystemBusy, "queue %d of topic %s is sealed, and too much is on its way to broker %s, which has it now", h.QueueID, topic, to.Broker))
	}
	req.Detach() // it is kept until the other broker answers
	var retry func()
	if !it.waited {
		retry = func() {
			fw.leave(to.Broker, size)
			b.sendAgain(req)
		}
	}
	addr, unknown := fw.addr(to.Broker, retry)
	if unknown {
		fw.leave(to.Broker, size)
		return !it.refuse(refuse(remoting.RespServiceNotAvailable, "queue %d of topic %s is sealed, and no name server says where broker %s is", h.QueueID, topic, to.Broker))
	}
	it.free()
	if addr != "" {
		b.handOn(req, topic, addr, to)
	}
	return true
}

// sendAgain serves a send whose target has been looked for meanwhile.
func (b *Broker) sendAgain(r *server.Request) {
	batch := sendBatches.Get().(*sendBatch)
	batch.waited = true
	b.send(batch, []*server.Request{r})
	batch.waited = false
	sendBatches.Put(batch)
}

// handOn sends a request to the broker that has the queue now and answers it with what that says.
func (b *Broker) handOn(r *server.Request, topic, addr string, to remoting.ForwardSlot) {
	cmd, size := forwarded(&r.Command, to), len(r.Body)
	failed := func(err error) {
		b.forwards.failed(to.Broker, addr, err)
		b.forwards.leave(to.Broker, size)
		r.Reply(remoting.RespServiceNotAvailable, fmt.Sprintf("the queue of topic %s is sealed and now on broker %s: %v", topic, to.Broker, err))
	}
	if err := b.client.Go(addr, cmd, forwardTimeout, func(resp *remoting.Command, err error) {
		if err != nil {
			failed(err)
			return
		}
		b.forwards.answered(to.Broker)
		b.forwards.leave(to.Broker, size)
		p := newReply(resp.Code, resp.Remark)
		for _, f := range resp.Fields {
			p.set(f.Key, f.Value)
		}
		p.cmd.Body = resp.Body
		p.to(r)
	}); err != nil {
		failed(err)
	}
}

// forwarded is a send for another queue, without the signature of its producer, which would not hold.
func forwarded(r *remoting.Command, to remoting.ForwardSlot) *remoting.Command {
	cmd := &remoting.Command{Code: r.Code, Language: r.Language, Version: r.Version, Body: r.Body, Fields: make(remoting.Fields, 0, len(r.Fields)+1)}
	for _, f := range r.Fields {
		switch string(f.Key) {
		case remoting.FieldAccessKey, remoting.FieldSignature, remoting.FieldSecurityToken:
			continue
		case fieldBroker, fieldShortBroker:
			f.Value = []byte(to.Broker)
		}
		cmd.Fields = append(cmd.Fields, f)
	}
	name := string(keyQueueID)
	if remoting.ShortSendNames(r.Code) {
		name = fieldShortQueueID
	}
	cmd.Fields.SetInt(name, int64(to.Queue))
	cmd.Fields.SetInt(remoting.FieldForwarded, int64(hops(r.Fields))+1)
	return cmd
}

// putOrForward is putOwnBatch for what the broker delivers to topics of producers: delayed, timer and committed messages.
// What is for a sealed queue goes to the broker that has it now; Done may be called after the return then, from another
// goroutine.
func (b *Broker) putOrForward(ps []*store.Put) {
	var here []*store.Put
	for i, p := range ps {
		tp := b.topics.GetBytes(p.Record.Topic)
		if tp == nil || tp.forward == nil {
			if here != nil {
				here = append(here, p)
			}
			continue
		}
		to, sealed := tp.forward.Slot(p.Record.QueueID)
		if sealed && to.Broker == b.identity().name {
			p.Record.QueueID, sealed = to.Queue, false
		}
		if !sealed {
			if here != nil {
				here = append(here, p)
			}
			continue
		}
		if here == nil {
			here = append(make([]*store.Put, 0, len(ps)), ps[:i]...)
		}
		b.forwardPut(p, to)
	}
	if here == nil {
		here = ps
	}
	if len(here) > 0 {
		b.putOwnBatch(here)
	}
}

// handOnError says that a message which the broker has held back could not be handed on: that concerns the queues that
// one broker has now, not what this one stores.
type handOnError struct {
	broker string
	cause  error
}

func (e *handOnError) Error() string {
	return fmt.Sprintf("cannot hand it on to broker %s, which has the queue now: %v", e.broker, e.cause)
}

func (e *handOnError) Unwrap() error { return e.cause }

// notHandedOn reports whether a put failed with a handOnError.
func notHandedOn(p *store.Put) bool {
	if p.Status == store.PutOK {
		return false
	}
	_, ok := errors.AsType[*handOnError](p.Err)
	return ok
}

// forwardStatus is what an answer to a send that was handed on means for who waits for the put: as if it had been stored here.
func forwardStatus(code int32) store.Status {
	switch code {
	case remoting.RespSuccess:
		return store.PutOK
	case remoting.RespFlushDiskTimeout:
		return store.FlushDiskTimeout
	case remoting.RespFlushSlaveTimeout:
		return store.FlushSlaveTimeout
	case remoting.RespSlaveNotAvailable:
		return store.SlaveNotAvailable
	default:
		return store.ServiceNotAvailable
	}
}

// forwardPut sends a message that this broker has held back to the broker that has its queue now. Its answer counts as the
// store's does; what is wrong is a handOnError.
func (b *Broker) forwardPut(p *store.Put, to remoting.ForwardSlot) {
	end := func(status store.Status, err error) {
		p.Status, p.Err = status, nil
		if err != nil {
			p.Err = &handOnError{to.Broker, err}
		}
		p.Done(p)
	}
	if b.forwards.isAway(to.Broker) {
		end(store.ServiceNotAvailable, errors.New("it has just been tried"))
		return
	}
	addr, unknown := b.forwards.addr(to.Broker, nil)
	if unknown {
		end(store.ServiceNotAvailable, errors.New("no name server says where it is"))
		return
	}
	rec := &p.Record
	props := rec.Properties
	for _, name := range [...]string{message.PropDelay, message.PropTimerDeliverMs, message.PropTimerDelaySec, message.PropTimerDelayMs, message.PropTranMsg} {
		props = message.DeleteProperty(props, name) // it has waited, or was committed, here
	}
	req := remoting.NewRequest(remoting.ReqSendMessageV2, &remoting.SendMessageHeader{
		ProducerGroup: groupForward, Topic: string(rec.Topic), DefaultTopic: message.TopicAutoCreate, DefaultTopicQueueNums: 4,
		QueueID: to.Queue, SysFlag: rec.SysFlag, BornTimestamp: rec.BornTimestamp, Flag: rec.Flag, Properties: string(props),
		ReconsumeTimes: rec.ReconsumeTimes,
	})
	req.Fields.SetInt(remoting.FieldForwarded, 1)
	req.Body = rec.Body
	failed := func(err error) {
		b.forwards.failed(to.Broker, addr, err)
		end(store.ServiceNotAvailable, err)
	}
	if err := b.client.Go(addr, req, forwardTimeout, func(resp *remoting.Command, err error) {
		if err != nil {
			failed(err)
			return
		}
		b.forwards.answered(to.Broker)
		status := forwardStatus(resp.Code)
		if status != store.PutOK {
			err = &remoting.ResponseError{Code: resp.Code, Remark: resp.Remark, Request: remoting.RequestName(req.Code), Addr: addr}
		}
		end(status, err)
	}); err != nil {
		failed(err)
	}
}
