package admin

import (
	"context"
	"fmt"
	"time"

	"mqx/client"
	"mqx/internal/sorted"
	"mqx/remoting"
)

// QueueUnits is the answer of QueryQueue: units of a consume queue and its range.
type QueueUnits struct {
	Broker
	First int64 // offset of the first unit
	remoting.QueryConsumeQueueBody
}

// QueryQueue reads count units of a consume queue from a position on one broker
// (QUERY_CONSUME_QUEUE); the end means the last ones. An empty broker takes the first of
// the topic's route. With a group in h, what it subscribes to is in the answer and each
// unit says whether it matches. h.Index is set to the first unit.
func (c *Client) QueryQueue(ctx context.Context, broker string, h remoting.QueryConsumeQueueHeader, from client.Position) (*QueueUnits, error) {
	b, err := c.topicBroker(ctx, h.Topic, broker)
	if err != nil {
		return nil, err
	}
	if h.Index, err = c.queuePosition(ctx, b.Addr, &h, from); err != nil {
		return nil, b.fail(err)
	}
	body, err := askBody[remoting.QueryConsumeQueueBody](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqQueryConsumeQueue, &h))
	if err != nil {
		return nil, b.fail(err)
	}
	return &QueueUnits{b, max(h.Index, body.MinQueueIndex), *body}, nil
}

// queuePosition is the offset of a position in a queue. What a broker does not know it answers with -1: that is an error here, and
// no offset.
func (c *Client) queuePosition(ctx context.Context, addr string, h *remoting.QueryConsumeQueueHeader, p client.Position) (int64, error) {
	var req *remoting.Command
	switch p.Kind {
	case client.AtOffset:
		return p.Offset, nil
	case client.AtTime:
		req = remoting.NewRequest(remoting.ReqSearchOffsetByTimestamp,
			&remoting.SearchOffsetHeader{Topic: h.Topic, QueueID: h.QueueID, Timestamp: p.Time.UnixMilli()})
	case client.AtEnd:
		req = remoting.NewRequest(remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetHeader{Topic: h.Topic, QueueID: h.QueueID})
	default:
		req = remoting.NewRequest(remoting.ReqGetMinOffset, &remoting.GetMinOffsetHeader{Topic: h.Topic, QueueID: h.QueueID})
	}
	resp, err := c.ask(ctx, addr, req)
	if err != nil {
		return 0, err
	}
	offset, ok, err := resp.Fields.Int64("offset")
	if err != nil || !ok {
		return 0, fmt.Errorf("cannot read answer to %s: it has no offset", remoting.RequestName(req.Code))
	}
	if offset < 0 {
		return 0, fmt.Errorf("the broker does not know where queue %d of topic %q %s", h.QueueID, h.Topic, positionVerbs[p.Kind])
	}
	if p.Kind == client.AtEnd {
		return max(0, offset-int64(h.Count)), nil
	}
	return offset, nil
}

// positionVerbs say what a queue does at a position.
var positionVerbs = map[client.PositionKind]string{client.AtStart: "starts", client.AtEnd: "ends", client.AtTime: "is at that time"}

// topicBroker is one broker of a topic, by name or address; empty takes the first.
func (c *Client) topicBroker(ctx context.Context, topic, broker string) (Broker, error) {
	if broker != "" {
		found, err := c.primaries(ctx, Target{Broker: broker})
		if err != nil {
			return Broker{}, err
		}
		return found[0], nil
	}
	brokers, err := c.topicBrokers(ctx, topic)
	if err != nil {
		return Broker{}, err
	}
	if len(brokers) == 0 {
		return Broker{}, fmt.Errorf("the route of topic %q shows no broker", topic)
	}
	sorted.By(brokers, compareBrokers)
	return brokers[0], nil
}

// RocksDBCheck is a broker's answer to a comparison of its consume queues in files and
// in RocksDB, which then runs in the broker and is told in its log.
type RocksDBCheck struct {
	Broker
	Status int32  // 0 done and alike, 1 differs, 2 under way, 3 failed
	Result string // in words
}

// CheckRocksDB asks the brokers of t to compare (CHECK_ROCKSDB_CQ_WRITE_PROGRESS): of one
// topic or, where it is empty, of all; messages stored since from.
func (c *Client) CheckRocksDB(ctx context.Context, t Target, topic string, from time.Time) ([]RocksDBCheck, []TargetError, error) {
	return fromBrokers(ctx, c, t, false, func(b Broker) (RocksDBCheck, error) {
		r, err := askBody[struct {
			CheckStatus int32  `json:"checkStatus"`
			CheckResult string `json:"checkResult"`
		}](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqCheckRocksDBCQWriteProgress,
			&remoting.CheckRocksDBCQWriteProgressHeader{Topic: topic, CheckStoreTime: from.UnixMilli()}))
		if err != nil {
			return RocksDBCheck{}, err
		}
		return RocksDBCheck{b, r.CheckStatus, r.CheckResult}, nil
	})
}
