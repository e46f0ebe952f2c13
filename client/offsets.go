package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mqx/remoting"
)

// brokerOf is the address of a queue's broker: the wanted id, or what there is.
func (c *core) brokerOf(ctx context.Context, q remoting.MessageQueue, id int64) (string, error) {
	r, err := c.routes.get(ctx, q.Topic)
	if err != nil {
		return "", err
	}
	addr, ok := r.addr(q.BrokerName, id)
	if !ok {
		c.routes.doubt(q.Topic)
		return "", &NoRouteError{Topic: q.Topic, Err: fmt.Errorf("broker %q is not known", q.BrokerName)}
	}
	return c.vip(addr), nil
}

// askOffset sends a request about a queue whose answer is an offset.
func (c *core) askOffset(ctx context.Context, q remoting.MessageQueue, code int32, header any) (int64, error) {
	addr, err := c.brokerOf(ctx, q, masterID)
	if err != nil {
		return 0, err
	}
	resp, err := c.call(ctx, addr, remoting.NewRequest(code, header))
	if err != nil {
		return 0, err
	}
	n, ok, err := resp.Fields.Int64("offset")
	if err != nil || !ok {
		return 0, fmt.Errorf("cannot read offset in answer to %s from %q: %w", remoting.RequestName(code), addr, errors.Join(err, errMissing(ok)))
	}
	return n, nil
}

func errMissing(there bool) error {
	if there {
		return nil
	}
	return &remoting.MissingFieldError{Field: "offset"}
}

func topicHeader(q remoting.MessageQueue) remoting.TopicHeader {
	return remoting.TopicHeader{RPCHeader: remoting.RPCHeader{BName: q.BrokerName}}
}

func (c *core) minOffset(ctx context.Context, q remoting.MessageQueue) (int64, error) {
	return c.askOffset(ctx, q, remoting.ReqGetMinOffset, &remoting.GetMinOffsetHeader{
		Topic: q.Topic, QueueID: q.QueueID, TopicHeader: topicHeader(q),
	})
}

func (c *core) maxOffset(ctx context.Context, q remoting.MessageQueue) (int64, error) {
	return c.askOffset(ctx, q, remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetHeader{
		Topic: q.Topic, QueueID: q.QueueID, Committed: true, TopicHeader: topicHeader(q),
	})
}

// offsetByTime is the first offset stored at or after a time.
func (c *core) offsetByTime(ctx context.Context, q remoting.MessageQueue, at time.Time) (int64, error) {
	return c.askOffset(ctx, q, remoting.ReqSearchOffsetByTimestamp, &remoting.SearchOffsetHeader{
		Topic: q.Topic, QueueID: q.QueueID, Timestamp: at.UnixMilli(), BoundaryType: remoting.BoundaryLower, TopicHeader: topicHeader(q),
	})
}

// position is the offset of a position in a queue.
func (c *core) position(ctx context.Context, q remoting.MessageQueue, p Position) (int64, error) {
	switch p.Kind {
	case AtStart:
		return c.minOffset(ctx, q)
	case AtEnd:
		return c.maxOffset(ctx, q)
	case AtTime:
		return c.offsetByTime(ctx, q, p.Time)
	}
	return p.Offset, nil
}

// errNoOffset: the group has no committed offset in a queue.
var errNoOffset = errors.New("no offset is committed")

// committed is the committed offset of a group, errNoOffset when it has none. Any other
// error says nothing about the offset: nobody may start from 0 because of it.
func (c *core) committed(ctx context.Context, group string, q remoting.MessageQueue) (int64, error) {
	n, err := c.askOffset(ctx, q, remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetHeader{
		ConsumerGroup: group, Topic: q.Topic, QueueID: q.QueueID, TopicHeader: topicHeader(q),
	})
	var re *remoting.ResponseError
	if errors.As(err, &re) && re.Code == remoting.RespQueryNotFound {
		return 0, errNoOffset
	}
	return n, err
}

// commit stores an offset of a group and returns when the broker has taken it.
func (c *core) commit(ctx context.Context, group string, q remoting.MessageQueue, offset int64) error {
	addr, err := c.brokerOf(ctx, q, masterID)
	if err != nil {
		return err
	}
	req := remoting.NewRequest(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{
		ConsumerGroup: group, Topic: q.Topic, QueueID: q.QueueID, CommitOffset: offset, TopicHeader: topicHeader(q),
	})
	_, err = c.call(ctx, addr, req)
	return err
}
