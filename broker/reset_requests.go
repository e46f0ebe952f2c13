package broker

import (
	"fmt"

	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// handleResetOffset serves INVOKE_BROKER_TO_RESET_OFFSET on the server's side:
// the offsets are put in force here, also for a group that is offline, and each
// queue's next pull learns of its own once.
func (b *Broker) handleResetOffset(r *server.Request) {
	var h remoting.ResetOffsetHeader
	if !header(r, &h) {
		return
	}
	if _, ok := r.Fields.Get("queueId"); !ok {
		h.QueueID = -1 // older tools do not know the field
	}
	if !b.cfg().ServerSideReset {
		b.resetThroughClients(r, &h)
		return
	}
	table, e := b.resetTargets(&h)
	if e != nil {
		r.Reply(e.Code, e.Text)
		return
	}
	body := &remoting.ResetOffsetBody{OffsetTable: map[remoting.MessageQueue]int64{}}
	for q, off := range table {
		b.offsets.Reset(h.Topic, h.Group, q, off)
		body.OffsetTable[b.queue(h.Topic, q)] = off
	}
	if err := b.offsets.Save(); err != nil {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the offsets could not be saved: %v", err))
		return
	}
	b.log.Info("consumer offsets reset", "group", h.Group, "topic", h.Topic, "queues", len(table), "peer", r.Conn().Remote())
	b.hold.Wake(func(group, topic string, q int32) bool {
		_, ok := table[q]
		return ok && topic == h.Topic && group == h.Group
	})
	p := newReply(remoting.RespSuccess, "")
	b.body(p, body)
	p.to(r)
}

// resetTargets computes the offsets of a reset: one queue to an offset or a time, or all read queues (queue -1) to a time. A
// negative time is their ends.
func (b *Broker) resetTargets(h *remoting.ResetOffsetHeader) (map[int32]int64, *refusedError) {
	if b.groups.Get(h.Group) == nil {
		return nil, refuse(remoting.RespSubscriptionGroupNotExist, "Group %s does not exist", h.Group)
	}
	tp := b.topics.Get(h.Topic)
	if tp == nil {
		return nil, refuse(remoting.RespTopicNotExist, "Topic %s does not exist", h.Topic)
	}
	queue := h.QueueID
	out := map[int32]int64{}
	if queue >= tp.ReadQueueNums {
		return nil, refuse(remoting.RespInvalidParameter, "queueId[%d] is illegal, topic:[%s] topicConfig.readQueueNums:[%d]", queue, h.Topic, tp.ReadQueueNums)
	}
	if queue >= 0 && h.Offset.OK && h.Offset.Value >= 0 {
		lo, hi := b.store.MinOffset(h.Topic, queue), b.store.MaxOffset(h.Topic, queue)
		if off := h.Offset.Value; off < lo || off > hi+1 {
			return nil, refuse(remoting.RespSystemError, "Target offset %d not in consume queue range [%d-%d]", off, lo, hi)
		}
		out[queue] = h.Offset.Value
		return out, nil
	}
	first, last := int32(0), tp.ReadQueueNums
	if queue >= 0 {
		first, last = queue, queue+1
	}
	for q := first; q < last; q++ {
		off := b.store.MaxOffset(h.Topic, q)
		if h.Timestamp >= 0 {
			at, err := b.store.OffsetByTime(h.Topic, q, h.Timestamp, store.Lower)
			if err != nil {
				return nil, refuse(remoting.RespSystemError, "%v", err)
			}
			off = at
		}
		out[q] = off
	}
	return out, nil
}
