package client

import (
	"context"
	"fmt"
	"time"

	"mqx/message"
	"mqx/remoting"
)

// Bits of a pull's system flag.
const (
	pullCommit       = 0x1 // commitOffset holds the offset to commit
	pullSuspend      = 0x2 // hold the request until there is a message
	pullSubscription = 0x4 // the subscription is in this request
)

// Times of long polling, as in the Java client.
const (
	suspendTime = 15 * time.Second // the broker holds a pull for so long
	pullTimeout = 30 * time.Second // an answer to a held pull is waited for
)

// pullBytes is the size of an answer that is asked for.
const pullBytes = 256 << 10

// pullSpec is one pull.
type pullSpec struct {
	group   string
	queue   remoting.MessageQueue
	offset  int64
	max     int
	filter  *filter
	version int64 // of the subscription
	inline  bool  // send the subscription along: the group is not online
	hold    bool  // long polling
	commit  int64 // offset to commit with the pull; 0 for none
	broker  int64 // id of the replica to ask
}

// pullStatus is the outcome of a pull.
type pullStatus int

const (
	pullFound    pullStatus = iota
	pullEmpty               // nothing new
	pullFiltered            // messages there were, but none passed the filter
	pullMoved               // the offset is outside the queue; next is where to go on
)

// pulled is the answer to a pull.
type pulled struct {
	status   pullStatus
	messages []*Received
	next     int64 // offset to pull from next
	min, max int64
	suggest  int64   // id of the replica to ask next time
	broken   []error // records that could not be read, with their place
}

// pull asks for messages of a queue.
func (c *core) pull(ctx context.Context, s *pullSpec) (*pulled, error) {
	addr, err := c.brokerOf(ctx, s.queue, s.broker)
	if err != nil {
		return nil, err
	}
	h := &remoting.PullMessageHeader{
		ConsumerGroup: s.group, Topic: s.queue.Topic, QueueID: s.queue.QueueID, QueueOffset: s.offset,
		MaxMsgNums: int32(s.max), SubVersion: s.version, ExpressionType: s.filter.kind, MaxMsgBytes: pullBytes,
		TopicHeader: topicHeader(s.queue),
	}
	timeout := c.cfg.Timeout
	if s.hold {
		h.SysFlag |= pullSuspend
		h.SuspendTimeoutMillis = suspendTime.Milliseconds()
		timeout = max(pullTimeout, suspendTime+c.cfg.Timeout)
	}
	if s.inline {
		h.SysFlag |= pullSubscription
		h.Subscription = s.filter.expr
	}
	if s.commit > 0 {
		h.SysFlag |= pullCommit
		h.CommitOffset = s.commit
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resp, err := c.conn.Call(ctx, addr, remoting.NewRequest(remoting.ReqPullMessage, h))
	if err != nil {
		c.routes.doubt(s.queue.Topic)
		return nil, err
	}
	return readPull(s, addr, resp)
}

// readPull decodes the answer to a pull.
func readPull(s *pullSpec, addr string, resp *remoting.Command) (*pulled, error) {
	p := &pulled{}
	switch resp.Code {
	case remoting.RespSuccess:
		p.status = pullFound
	case remoting.RespPullNotFound:
		p.status = pullEmpty
	case remoting.RespPullRetryImmediately:
		p.status = pullFiltered
	case remoting.RespPullOffsetMoved:
		p.status = pullMoved
	default:
		return nil, responseError(addr, remoting.ReqPullMessage, resp)
	}
	var h remoting.PullMessageResponseHeader
	if err := remoting.DecodeHeader(resp.Fields, &h); err != nil {
		return nil, fmt.Errorf("cannot read answer to a pull from %q: %w", addr, err)
	}
	p.next, p.min, p.max, p.suggest = h.NextBeginOffset, h.MinOffset, h.MaxOffset, h.SuggestWhichBrokerID
	if p.status != pullFound {
		return p, nil
	}
	for m, err := range message.DecodeMessages(resp.Body, message.ReceiveOptions{VerifyBodyCRC: true}) {
		if err != nil {
			p.broken = append(p.broken, fmt.Errorf("cannot read messages of %s from offset %d, answered by %q: %w", s.queue, s.offset, addr, err))
			continue
		}
		if m.QueueOffset < s.offset || !s.filter.pass(&m) {
			continue
		}
		p.messages = append(p.messages, NewReceived(m, s.queue))
	}
	return p, nil
}

// NewReceived is a decoded message with the queue it came from.
func NewReceived(m message.Received, q remoting.MessageQueue) *Received {
	r := &Received{Received: m, Queue: q, OffsetID: m.OffsetID()}
	if r.MessageID = m.UniqKey(); r.MessageID == "" {
		r.MessageID = r.OffsetID
	}
	return r
}
