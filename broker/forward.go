package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/client"
	"mqx/remoting/server"
	"mqx/store"
)

// attrForward is the attribute that seals queues of a topic: "FROM|BROKER:N;BROKER:N". What producers send to queue FROM
// and those behind it is handed to queues 0 to N-1 of each broker, in turn, and answered with what that one says: a move
// of queues loses no send of a producer that still has an old route, and a queue has one place where its order is made.
// Apache's brokers know no such attribute.
const attrForward = "mqx.forward"

// Names of fields of a send that is handed on.
const (
	fieldForwarded    = "mqxForwarded"
	fieldQueueID      = "queueId"
	fieldShortQueueID = "e"
	fieldBroker       = "bname"
	fieldShortBroker  = "n"
)

// groupForward is the producer group of what the broker itself sends on: Apache's name for clients inside of one.
const groupForward = "CLIENT_INNER_PRODUCER"

const (
	// forwardTimeout bounds one send that is handed on: less than producers wait (3 s).
	forwardTimeout = 2500 * time.Millisecond
	// forwardLook is how often the addresses of the brokers that get them are asked for.
	forwardLook = 10 * time.Second
	// maxForwardWaiting bounds the sends that wait for the first answer to that.
	maxForwardWaiting = 1000
)

// forwarding is a parsed attrForward.
type forwarding struct {
	from  int32
	slots []forwardSlot
}

// forwardSlot is a queue that gets what is sent to a sealed one.
type forwardSlot struct {
	broker string
	queue  int32
}

// parseForward reads the value of the attribute.
func parseForward(text string) (*forwarding, error) {
	first, rest, ok := strings.Cut(text, "|")
	from, err := strconv.ParseInt(first, 10, 32)
	if !ok || err != nil || from < 0 || from > maxQueues {
		return nil, fmt.Errorf("cannot read %q: it has the form QUEUE|BROKER:QUEUES;BROKER:QUEUES", text)
	}
	f := &forwarding{from: int32(from)}
	for part := range strings.SplitSeq(rest, ";") {
		broker, count, _ := strings.Cut(part, ":")
		n, err := strconv.ParseInt(count, 10, 32)
		if err != nil || broker == "" || n < 1 || len(f.slots)+int(n) > maxQueues {
			return nil, fmt.Errorf("cannot read %q: %q is no broker with 1 to %d queues", text, part, maxQueues)
		}
		for q := range int32(n) {
			f.slots = append(f.slots, forwardSlot{broker, q})
		}
	}
	return f, nil
}

// forwardOf is the forwarding of a topic, nil where it has none. A value that came from a file and cannot be read seals nothing.
func forwardOf(c *remoting.TopicConfig) *forwarding {
	text, ok := c.Attributes[attrForward]
	if !ok {
		return nil
	}
	f, err := parseForward(text)
	if err != nil {
		return nil
	}
	return f
}

// slot is where a queue is forwarded to; false: it is not sealed.
func (f *forwarding) slot(queue int32) (forwardSlot, bool) {
	if queue < f.from || len(f.slots) == 0 {
		return forwardSlot{}, false
	}
	return f.slots[int(queue-f.from)%len(f.slots)], true
}

// forwarder hands sends on to other brokers. Safe to share.
type forwarder struct {
	b    *Broker
	wake chan struct{}

	mu struct {
		sync.Mutex
		addrs   map[string]string // of masters, by broker name
		asked   map[string]bool   // names that are wanted
		waiting []func()
		ended   bool
	}
}

func newForwarder(b *Broker) *forwarder {
	f := &forwarder{b: b, wake: make(chan struct{}, 1)}
	f.mu.addrs, f.mu.asked = map[string]string{}, map[string]bool{}
	return f
}

// run looks for the addresses that are wanted until ctx ends.
func (f *forwarder) run(ctx context.Context) {
	tick := time.NewTicker(forwardLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			f.mu.Lock()
			f.mu.ended = true
			f.mu.Unlock()
			f.release()
			return
		case <-f.wake:
		case <-tick.C:
		}
		f.look(ctx)
		f.release()
	}
}

// release lets the sends that wait for an address try again.
func (f *forwarder) release() {
	f.mu.Lock()
	waiting := f.mu.waiting
	f.mu.waiting = nil
	f.mu.Unlock()
	for _, again := range waiting {
		again()
	}
}

// look asks the name servers where the wanted brokers are. Where none answers the addresses stay as they are.
func (f *forwarder) look(ctx context.Context) {
	f.mu.Lock()
	wanted := len(f.mu.asked)
	f.mu.Unlock()
	if wanted == 0 {
		return
	}
	for addr := range f.b.registrar.Servers() {
		body, err := f.b.askAt(ctx, addr, remoting.NewRequest(remoting.ReqGetBrokerClusterInfo, nil))
		if err != nil {
			f.b.log.Warn("a name server does not say where sealed queues have gone", "addr", addr, "error", err)
			continue
		}
		var info remoting.ClusterInfo
		if err := fastjson.Unmarshal(body, &info); err != nil {
			f.b.log.Warn("a name server does not say where sealed queues have gone", "addr", addr, "error", err)
			continue
		}
		f.mu.Lock()
		for name := range f.mu.asked {
			if master := info.BrokerAddrTable[name].BrokerAddrs[0]; master != "" {
				f.mu.addrs[name] = master
			}
		}
		f.mu.Unlock()
		return
	}
}

// addr is the address of a broker, empty while it is not known: again is called then when it has been looked for, once;
// full says that too many wait.
func (f *forwarder) addr(broker string, again func()) (addr string, full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.asked[broker] = true
	if addr := f.mu.addrs[broker]; addr != "" {
		return addr, false
	}
	signal(f.wake)
	if again == nil || f.mu.ended || len(f.mu.waiting) >= maxForwardWaiting {
		return "", true
	}
	f.mu.waiting = append(f.mu.waiting, again)
	return "", false
}

// lost forgets an address that cannot be reached: the broker may have another master by now.
func (f *forwarder) lost(broker, addr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.addrs[broker] == addr {
		delete(f.mu.addrs, broker)
	}
}

// forwardSend hands a send to a sealed queue on, or answers it. false: it is stored here, in the queue that the head says.
func (b *Broker) forwardSend(it *sendItem) bool {
	f, h := it.topic.forward, &it.head
	p := scanProps(h.Properties)
	if !h.Batch && p.half(h.ReconsumeTimes) {
		return false // its producer ends it here; what is committed goes on from here
	}
	if _, ok, _ := p.queueByPriority(it.topic.WriteQueueNums); ok && f.from > 0 {
		return false // it goes to one of the queues that stay
	}
	if h.QueueID < 0 {
		h.QueueID = 0
		if n := it.topic.WriteQueueNums; n > 1 {
			h.QueueID = rand.Int32N(n)
		}
	}
	to, sealed := f.slot(h.QueueID)
	if !sealed {
		return false
	}
	if to.broker == b.identity().name {
		h.QueueID = to.queue
		return false
	}
	req := it.req
	if _, twice := req.Fields.Get(fieldForwarded); twice {
		return !it.refuse(refuse(remoting.RespServiceNotAvailable, "queue %d of topic %s is sealed here and at the broker that handed the message on", h.QueueID, it.topic.TopicName))
	}
	var retry func()
	if !it.waited {
		retry = func() { b.sendAgain(req) }
	}
	addr, full := b.forwards.addr(to.broker, retry)
	switch {
	case full:
		return !it.refuse(refuse(remoting.RespServiceNotAvailable, "queue %d of topic %s is sealed, and no name server says where broker %s is", h.QueueID, it.topic.TopicName, to.broker))
	case addr == "":
		it.free()
		return true
	}
	topic := it.topic.TopicName
	it.free()
	b.handOn(req, topic, addr, to)
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
func (b *Broker) handOn(r *server.Request, topic, addr string, to forwardSlot) {
	cmd := forwarded(&r.Command, to)
	failed := func(err error) {
		var ce *client.ConnectError
		if errors.As(err, &ce) {
			b.forwards.lost(to.broker, addr)
		}
		r.Reply(remoting.RespServiceNotAvailable, fmt.Sprintf("the queue of topic %s is sealed and now on broker %s: %v", topic, to.broker, err))
	}
	if err := b.client.Go(addr, cmd, forwardTimeout, func(resp *remoting.Command, err error) {
		if err != nil {
			failed(err)
			return
		}
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
func forwarded(r *remoting.Command, to forwardSlot) *remoting.Command {
	cmd := &remoting.Command{Code: r.Code, Language: r.Language, Version: r.Version, Body: r.Body, Fields: make(remoting.Fields, 0, len(r.Fields)+1)}
	for _, f := range r.Fields {
		switch string(f.Key) {
		case remoting.FieldAccessKey, remoting.FieldSignature, remoting.FieldSecurityToken:
			continue
		case fieldBroker, fieldShortBroker:
			f.Value = []byte(to.broker)
		}
		cmd.Fields = append(cmd.Fields, f)
	}
	name := fieldQueueID
	if remoting.ShortSendNames(r.Code) {
		name = fieldShortQueueID
	}
	cmd.Fields.SetInt(name, int64(to.queue))
	cmd.Fields.Set(fieldForwarded, message.TrueValue)
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
		to, sealed := tp.forward.slot(p.Record.QueueID)
		if sealed && to.broker == b.identity().name {
			p.Record.QueueID, sealed = to.queue, false
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

// forwardPut sends a message that this broker has held back to the broker that has its queue now. Only its answer counts as stored.
func (b *Broker) forwardPut(p *store.Put, to forwardSlot) {
	end := func(status store.Status, err error) {
		p.Status, p.Err = status, err
		p.Done(p)
	}
	addr, unknown := b.forwards.addr(to.broker, nil)
	if unknown {
		end(store.ServiceNotAvailable, fmt.Errorf("no name server says where broker %s is, which has the queue now", to.broker))
		return
	}
	rec := &p.Record
	props := rec.Properties
	for _, name := range [...]string{message.PropDelay, message.PropTimerDeliverMs, message.PropTimerDelaySec, message.PropTimerDelayMs, message.PropTranMsg} {
		props = message.DeleteProperty(props, name) // it has waited, or was committed, here
	}
	req := remoting.NewRequest(remoting.ReqSendMessageV2, &remoting.SendMessageHeader{
		ProducerGroup: groupForward, Topic: string(rec.Topic), DefaultTopic: message.TopicAutoCreate, DefaultTopicQueueNums: 4,
		QueueID: to.queue, SysFlag: rec.SysFlag, BornTimestamp: rec.BornTimestamp, Flag: rec.Flag, Properties: string(props),
		ReconsumeTimes: rec.ReconsumeTimes,
	})
	req.Fields.Set(fieldForwarded, message.TrueValue)
	req.Body = rec.Body
	if err := b.client.Go(addr, req, forwardTimeout, func(resp *remoting.Command, err error) {
		switch {
		case err != nil:
			b.forwards.lost(to.broker, addr)
			end(store.ServiceNotAvailable, err)
		case resp.Code == remoting.RespSuccess, resp.Code == remoting.RespFlushDiskTimeout, resp.Code == remoting.RespFlushSlaveTimeout, resp.Code == remoting.RespSlaveNotAvailable:
			end(store.PutOK, nil)
		default:
			end(store.ServiceNotAvailable, &remoting.ResponseError{Code: resp.Code, Remark: resp.Remark, Request: remoting.RequestName(req.Code), Addr: addr})
		}
	}); err != nil {
		end(store.ServiceNotAvailable, err)
	}
}
