package broker

import (
	"fmt"

	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// offsetHeader is what the offset requests carry. Byte slices alias the request.
type offsetHeader struct {
	group, topic []byte
	queueID      int32
	offset       int64
	setZero      bool
	hasSetZero   bool
	seen         uint8
}

const (
	seenGroup = 1 << iota
	seenTopic
	seenQueue
	seenCommit
)

func (h *offsetHeader) decode(fields remoting.Fields, need uint8) error {
	*h = offsetHeader{}
	for i := range fields {
		f := &fields[i]
		if f.Value == nil {
			continue
		}
		var err error
		switch string(f.Key) {
		case "consumerGroup":
			h.group, h.seen = f.Value, h.seen|seenGroup
		case "topic":
			h.topic, h.seen = f.Value, h.seen|seenTopic
		case "queueId":
			h.queueID, err = atoi32(f.Value)
			h.seen |= seenQueue
		case "commitOffset":
			h.offset, err = atoi64(f.Value)
			h.seen |= seenCommit
		case "setZeroIfNotFound":
			h.setZero, h.hasSetZero = isTrueBytes(f.Value), true
		}
		if err != nil {
			return &remoting.FieldError{Field: string(f.Key), Value: string(f.Value), Err: err}
		}
	}
	for bit, name := range [...]string{"consumerGroup", "topic", "queueId", "commitOffset"} {
		if need&(1<<bit) != 0 && h.seen&(1<<bit) == 0 {
			return &remoting.MissingFieldError{Field: name}
		}
	}
	return nil
}

// handleQueryOffset serves QUERY_CONSUMER_OFFSET on the loop: the committed (or
// reset) offset; without one 0 where the queue still begins there, else "not
// found", after which clients apply their consumeFromWhere.
func (b *Broker) handleQueryOffset(r *server.Request) {
	var h offsetHeader
	if err := h.decode(r.Fields, seenGroup|seenTopic|seenQueue); err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	off, ok := b.offsets.Query(h.topic, h.group, h.queueID)
	if !ok {
		ok = b.startsAtZero(&h)
	}
	if !ok {
		newReply(remoting.RespQueryNotFound, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first").to(r)
		return
	}
	p := newReply(remoting.RespSuccess, "")
	p.int(keyOffset, off)
	p.to(r)
}

// startsAtZero reports whether a group without an offset begins at 0: the queue
// does, and its first message is still at the hot end of the log.
func (b *Broker) startsAtZero(h *offsetHeader) bool {
	if h.hasSetZero && !h.setZero {
		return false
	}
	topic := string(h.topic)
	return b.store.MinOffset(topic, h.queueID) <= 0 && b.store.InMemory(topic, h.queueID, 0)
}

// handleUpdateOffset serves UPDATE_CONSUMER_OFFSET on the loop.
func (b *Broker) handleUpdateOffset(r *server.Request) {
	var h offsetHeader
	if err := h.decode(r.Fields, seenGroup|seenTopic|seenQueue|seenCommit); err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	switch {
	case b.groups.GetBytes(h.group) == nil:
		newReply(remoting.RespSubscriptionGroupNotExist, fmt.Sprintf("Group %s not exist!", h.group)).to(r)
		return
	case b.topics.GetBytes(h.topic) == nil:
		newReply(remoting.RespTopicNotExist, fmt.Sprintf("Topic %s not exist!", h.topic)).to(r)
		return
	case h.queueID < 0:
		newReply(remoting.RespInvalidParameter, fmt.Sprintf("Bad queue ID %d.", h.queueID)).to(r)
		return
	case h.offset < 0:
		newReply(remoting.RespInvalidParameter, fmt.Sprintf("Bad offset %d.", h.offset)).to(r)
		return
	}
	if old := b.offsets.Commit(h.topic, h.group, h.queueID, h.offset); h.offset < old {
		b.log.Warn("a consumer offset goes back", "group", string(h.group), "topic", string(h.topic),
			"queue", h.queueID, "from", old, "to", h.offset, "peer", r.Conn().Remote())
	}
	newReply(remoting.RespSuccess, "").to(r)
}

// queueOf reads topic and queueId and checks that the topic exists.
func (b *Broker) queueOf(r *server.Request) (topic string, queue int32, ok bool) {
	var h offsetHeader
	if err := h.decode(r.Fields, seenTopic|seenQueue); err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return "", 0, false
	}
	if tp := b.topics.GetBytes(h.topic); tp != nil {
		return tp.TopicName, h.queueID, true // without a conversion
	}
	return string(h.topic), h.queueID, true
}

func answerInt(r *server.Request, key []byte, v int64) {
	p := newReply(remoting.RespSuccess, "")
	p.int(key, v)
	p.to(r)
}

// handleMaxOffset and handleMinOffset serve GET_MAX_OFFSET and GET_MIN_OFFSET
// on the loop. An unknown queue has 0 and is not created.
func (b *Broker) handleMaxOffset(r *server.Request) {
	if topic, q, ok := b.queueOf(r); ok {
		answerInt(r, keyOffset, b.store.MaxOffset(topic, q))
	}
}

func (b *Broker) handleMinOffset(r *server.Request) {
	if topic, q, ok := b.queueOf(r); ok {
		answerInt(r, keyOffset, b.store.MinOffset(topic, q))
	}
}

// handleSearchOffset serves SEARCH_OFFSET_BY_TIMESTAMP.
func (b *Broker) handleSearchOffset(r *server.Request) {
	var h remoting.SearchOffsetHeader
	if !header(r, &h) {
		return
	}
	side := store.Lower
	if h.BoundaryType == remoting.BoundaryUpper {
		side = store.Upper
	}
	off, err := b.store.OffsetByTime(h.Topic, h.QueueID, h.Timestamp, side)
	if err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	answerInt(r, keyOffset, off)
}

// handleEarliest serves GET_EARLIEST_MSG_STORETIME.
func (b *Broker) handleEarliest(r *server.Request) {
	var h remoting.GetEarliestMsgStoreTimeHeader
	if !header(r, &h) {
		return
	}
	answerInt(r, keyTimestamp, b.store.EarliestTime(h.Topic, h.QueueID))
}
