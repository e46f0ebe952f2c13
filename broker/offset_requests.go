package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"unsafe"

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
	physical     bool // the queue is that of the broker, whatever the topic
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
		case "lo":
			h.physical = string(f.Value) == "false"
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

// tryQueryOffset answers QUERY_CONSUMER_OFFSET on the loop where there is an
// offset: the committed (or reset) one.
func (b *Broker) tryQueryOffset(r *server.Request) bool {
	var h offsetHeader
	if err := h.decode(r.Fields, seenGroup|seenTopic|seenQueue); err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return true
	}
	if m := b.statics.of(h.topic); m != nil && !h.physical {
		return false
	}
	off, ok := b.offsets.Query(h.topic, h.group, h.queueID)
	if ok {
		answerInt(r, keyOffset, off)
	}
	return ok
}

// handleQueryOffset serves QUERY_CONSUMER_OFFSET without an offset: 0 where the
// queue still begins there, for which the disk is looked at, else "not found",
// after which clients apply their consumeFromWhere.
func (b *Broker) handleQueryOffset(r *server.Request) {
	if b.tryQueryOffset(r) {
		return
	}
	var h offsetHeader
	if err := h.decode(r.Fields, seenGroup|seenTopic|seenQueue); err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	l, ok := b.logicalOf(r, h.topic, h.queueID, h.physical)
	if !ok {
		return
	}
	if l != nil {
		if h.queueID, ok = l.asPhysical(); !ok {
			l.queryOffset(r, string(h.group))
			return
		}
		if off, ok := b.offsets.Query(h.topic, h.group, h.queueID); ok {
			answerInt(r, keyOffset, off)
			return
		}
	}
	switch zero, err := b.startsAtZero(&h); {
	case err != nil: // not "not found": the client would skip or repeat
		r.Reply(remoting.RespSystemError, err.Error())
	case zero:
		answerInt(r, keyOffset, 0)
	default:
		newReply(remoting.RespQueryNotFound, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first").to(r)
	}
}

// startsAtZero reports whether a group without an offset begins at 0: the queue
// does, and its first message is still at the hot end of the log.
func (b *Broker) startsAtZero(h *offsetHeader) (bool, error) {
	if h.hasSetZero && !h.setZero {
		return false, nil
	}
	topic := string(h.topic)
	if b.store.MinOffset(topic, h.queueID) > 0 {
		return false, nil
	}
	return b.store.IsNearEnd(topic, h.queueID, 0)
}

// handleUpdateOffset serves UPDATE_CONSUMER_OFFSET on the loop.
func (b *Broker) handleUpdateOffset(r *server.Request) {
	var h offsetHeader
	if err := h.decode(r.Fields, seenGroup|seenTopic|seenQueue|seenCommit); err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	if l, ok := b.logicalOf(r, h.topic, h.queueID, h.physical); !ok || l != nil && !l.commit(r, &h) {
		return
	}
	tp := b.topics.GetBytes(h.topic)
	switch {
	case b.groups.GetBytes(h.group) == nil:
		newReply(remoting.RespSubscriptionGroupNotExist, fmt.Sprintf("Group %s not exist!", h.group)).to(r)
		return
	case tp == nil:
		newReply(remoting.RespTopicNotExist, fmt.Sprintf("Topic %s not exist!", h.topic)).to(r)
		return
	case h.queueID < 0:
		newReply(remoting.RespInvalidParameter, fmt.Sprintf("Bad queue ID %d.", h.queueID)).to(r)
		return
	case h.queueID >= max(tp.ReadQueueNums, tp.WriteQueueNums) && b.store.MaxOffset(tp.TopicName, h.queueID) == 0:
		// no such queue, also not from before the topic had fewer of them
		newReply(remoting.RespInvalidParameter, fmt.Sprintf("Bad queue ID %d: topic %s has %d read and %d write queues.",
			h.queueID, tp.TopicName, tp.ReadQueueNums, tp.WriteQueueNums)).to(r)
		return
	case h.offset < 0:
		newReply(remoting.RespInvalidParameter, fmt.Sprintf("Bad offset %d.", h.offset)).to(r)
		return
	}
	old, swallowed := b.commitHere(h.topic, h.group, h.queueID, h.offset)
	if swallowed {
		newReply(remoting.RespSuccess, "Offset has been previously reset").to(r)
		return
	}
	if h.offset < old {
		b.quiet.Warn("a consumer offset goes back", "group", string(h.group), "topic", string(h.topic),
			"queue", h.queueID, "from", old, "to", h.offset, "peer", r.Conn().Remote())
	}
	newReply(remoting.RespSuccess, "").to(r)
}

// queueOf reads topic and queueId and checks that the topic exists.
func (b *Broker) queueOf(r *server.Request) (topic string, queue int32, l *logicalQueue, ok bool) {
	var h offsetHeader
	if err := h.decode(r.Fields, seenTopic|seenQueue); err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return "", 0, nil, false
	}
	if l, ok = b.logicalOf(r, h.topic, h.queueID, h.physical); !ok || l != nil {
		return "", 0, l, ok
	}
	if tp := b.topics.GetBytes(h.topic); tp != nil {
		return tp.TopicName, h.queueID, nil, true // without a conversion
	}
	return string(h.topic), h.queueID, nil, true
}

func answerInt(r *server.Request, key []byte, v int64) {
	p := newReply(remoting.RespSuccess, "")
	p.int(key, v)
	p.to(r)
}

// handleMaxOffset and handleMinOffset serve GET_MAX_OFFSET and GET_MIN_OFFSET
// on the loop. An unknown queue has 0 and is not created.
func (b *Broker) handleMaxOffset(r *server.Request) {
	switch topic, q, l, ok := b.queueOf(r); {
	case !ok:
	case l != nil:
		l.serve(r, keyOffset, l.maxOffset)
	default:
		answerInt(r, keyOffset, b.store.MaxOffset(topic, q))
	}
}

func (b *Broker) handleMinOffset(r *server.Request) {
	switch topic, q, l, ok := b.queueOf(r); {
	case !ok:
	case l != nil:
		l.serve(r, keyOffset, l.minOffset)
	default:
		answerInt(r, keyOffset, b.store.MinOffset(topic, q))
	}
}

// handleSearchOffset serves SEARCH_OFFSET_BY_TIMESTAMP.
func (b *Broker) handleSearchOffset(r *server.Request) {
	var h remoting.SearchOffsetHeader
	if !header(r, &h) {
		return
	}
	if h.LiteTopic != "" {
		r.Reply(remoting.RespInvalidParameter, "liteTopic["+h.LiteTopic+"]: "+noLite)
		return
	}
	if l, ok := b.logicalOf(r, []byte(h.Topic), h.QueueID, !mapped(h.Lo)); !ok {
		return
	} else if l != nil {
		l.serve(r, keyOffset, func(ctx context.Context) (int64, error) { return l.search(ctx, h.Timestamp, h.BoundaryType) })
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
	if l, ok := b.logicalOf(r, []byte(h.Topic), h.QueueID, !mapped(h.Lo)); !ok {
		return
	} else if l != nil {
		l.serve(r, keyTimestamp, l.earliest)
		return
	}
	at, err := b.store.EarliestStoreTime(h.Topic, h.QueueID)
	if err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	answerInt(r, keyTimestamp, at)
}

func isTrueBytes(v []byte) bool {
	return len(v) == 4 && v[0]|0x20 == 't' && v[1]|0x20 == 'r' && v[2]|0x20 == 'u' && v[3]|0x20 == 'e'
}

var errNumber = errors.New("not a number")

// atoi64 reads a decimal number as Java's Long.parseLong does.
func atoi64(v []byte) (int64, error) {
	if len(v) == 0 || len(v) > 20 {
		return 0, errNumber
	}
	n, err := strconv.ParseInt(unsafe.String(&v[0], len(v)), 10, 64)
	if err != nil {
		return 0, errNumber
	}
	return n, nil
}

func atoi32(v []byte) (int32, error) {
	n, err := atoi64(v)
	if err != nil || n != int64(int32(n)) {
		return 0, errNumber
	}
	return int32(n), nil
}
