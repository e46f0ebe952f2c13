package broker

import (
	"fmt"

	"mqx/broker/staticmap"
	"mqx/internal/fastjson"
	"mqx/remoting"
	"mqx/remoting/server"
)

// handleStaticTopic serves UPDATE_AND_CREATE_STATIC_TOPIC: the topic and its mapping on this broker. The mapping is on disk
// and in force first: what is sent to the topic is mapped from its first message on.
func (b *Broker) handleStaticTopic(r *server.Request) {
	var h remoting.CreateTopicHeader
	if !header(r, &h) {
		return
	}
	var d remoting.TopicQueueMappingDetail
	if err := fastjson.Unmarshal(r.Body, &d); err != nil || len(r.Body) == 0 {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the body cannot be read: %v", err))
		return
	}
	switch name := b.cfg().BrokerName; {
	case d.Topic != h.Topic:
		r.Reply(remoting.RespInvalidParameter, fmt.Sprintf("the mapping is that of topic %q, not of %q", d.Topic, h.Topic))
		return
	case d.BName != name:
		r.Reply(remoting.RespInvalidParameter, fmt.Sprintf("the mapping is that of broker %q, this is %q", d.BName, name))
		return
	}
	b.topics.editing.Lock()
	defer b.topics.editing.Unlock()
	c, err := b.topics.createTopic(&h, b.cfg().ValidateSystemTopic, b.cfg().EnableMixedMessageType)
	if err != nil {
		e := asRefused(err)
		r.Reply(e.Code, e.Text)
		return
	}
	if err := b.statics.Merge(&d, h.Force); err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	b.topics.Set(c, func(err error) {
		if err != nil {
			r.Reply(remoting.RespSystemError, fmt.Sprintf("the topic table could not be saved: %v", err))
			return
		}
		b.wakeTopic(h.Topic)
		b.registrar.Await(func() { b.peers.replicated(partTopics, func() { r.Reply(remoting.RespSuccess, "") }) })
	})
	b.log.Info("static topic set", "topic", h.Topic, "epoch", d.Epoch, "queues", d.TotalQueues, "force", h.Force, "peer", r.Conn().Remote())
}

// wakeTopic lets the pulls that wait in a topic look again: what they wait for may be elsewhere now.
func (b *Broker) wakeTopic(name string) {
	b.hold.Wake(func(_, topic string, _ int32) bool { return topic == name })
}

// mapped reports whether the mapping of static topics applies to a request: not where it names a physical queue.
func mapped(lo remoting.Opt[bool]) bool { return lo.Or(true) }

// notLeader is Apache's refusal of a request for a logical queue that another broker leads.
func notLeader(topic []byte, queue int32, broker string) *refusedError {
	return refuse(remoting.RespNotLeaderForQueue, "%s-%d does not exit in request process of current broker %s", topic, queue, broker)
}

// mapSend turns the logical queue of a send into the physical one that takes it.
func (b *Broker) mapSend(it *sendItem, m *staticmap.Mapping) *refusedError {
	h := &it.head
	id := h.QueueID
	if id < 0 {
		led, ok := m.AnyLed(int(b.sent.Add(1)))
		if !ok {
			return notLeader(h.Topic, id, m.Broker())
		}
		id = led
	}
	q, ok := m.Led(id)
	if !ok {
		return notLeader(h.Topic, id, m.Broker())
	}
	it.stretch, _ = q.Leader()
	it.static, it.logical = true, id
	h.QueueID = it.stretch.QueueID
	return nil
}

// landing puts a message of this broker's own into a queue that leads, where the one that it was meant for when it was sent
// has ceased to: its readers may have left that.
func (b *Broker) landing(topic []byte, queue int32) int32 {
	m := b.statics.of(topic)
	if m == nil {
		return queue
	}
	to, ok := m.Landing(queue)
	if !ok {
		b.quiet.Warn("a message of a static topic comes late to a broker that leads none of its queues; who has read the queue already does not get it",
			"topic", string(topic), "queue", queue)
	}
	return to
}
