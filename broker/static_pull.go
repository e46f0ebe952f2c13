package broker

import (
	"context"
	"fmt"
	"time"

	"mqx/broker/staticmap"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// undecidedPoll is how long a pull at the end of an old stretch waits for the next look, while it is not decided where the new
// leader begins. The change itself wakes it.
const undecidedPoll = time.Second

// mappedPull is the logical queue that a pull reads, and the stretch that its offset lies in; the header names that physical
// queue and offset.
type mappedPull struct {
	logicalQueue
	i int
}

// mapPull turns the logical queue and offset of a pull into those of a stretch.
func (b *Broker) mapPull(c *pullContext, m *staticmap.Mapping) *pullRefused {
	h := &c.head
	q, ok := m.Led(h.QueueID)
	if !ok {
		return refusePull(remoting.RespNotLeaderForQueue, 0, "%s-%d cannot find mapping item in request process of current broker %s", h.Topic, h.QueueID, m.Broker())
	}
	p := &mappedPull{logicalQueue: logicalQueue{b: b, m: m, q: q, topic: string(h.Topic)}}
	if p.i = q.Find(h.QueueOffset); p.i < 0 {
		return refusePull(remoting.RespSystemError, 0, "%v", p.errUndecided())
	}
	it := q[p.i]
	commit := int64(-1) // elsewhere, UPDATE_CONSUMER_OFFSET does it
	if at := q.Find(h.CommitOffset); h.CommitOffset >= 0 && at == p.i && p.here(at) {
		commit = max(it.StartOffset, staticmap.Physical(it, h.CommitOffset))
	}
	h.CommitOffset = commit
	h.QueueID, h.QueueOffset = it.QueueID, staticmap.Physical(it, h.QueueOffset)
	h.MaxMsgNums = q.Most(p.i, h.QueueOffset, h.MaxMsgNums)
	c.logical = p
	return nil
}

// away answers a pull whose stretch is not read here, or has ended before the offset. It returns false for one that is.
func (p *mappedPull) away(r *server.Request, c *pullContext, first bool) bool {
	if end, ended := p.q.Ended(p.i, c.head.QueueOffset); ended {
		p.answer(r, c.topic, c.group, end, nil)
		return true
	}
	if p.here(p.i) {
		return false
	}
	it, asked := p.q[p.i], c.head.QueueOffset
	f := p.fields(c)
	tp, g := c.topic, c.group
	wait := first && c.head.SysFlag&pullSuspend != 0 && c.head.SuspendTimeoutMillis > 0
	p.b.elsewhere.away(r, func(ctx context.Context) {
		resp, err := p.b.elsewhere.ask(ctx, it.BName, remoting.ReqPullMessage, f)
		if err != nil {
			r.Reply(remoting.RespSystemError, err.Error())
			return
		}
		got, err := p.read(resp, it.BName, asked)
		switch {
		case err != nil:
			r.Reply(remoting.RespSystemError, err.Error())
		case got.Code == remoting.RespPullNotFound && wait && p.park(r):
		default:
			p.answer(r, tp, g, got, resp.Body)
		}
	})
	return true
}

// fields are those of the pull at the other broker: it neither waits nor commits there, and it carries its subscription, which
// that broker need not know.
func (p *mappedPull) fields(c *pullContext) remoting.Fields {
	h := &c.head
	f := offsetFields(string(h.ConsumerGroup), p.topic, h.QueueID)
	f.SetInt("queueOffset", h.QueueOffset)
	f.SetInt("maxMsgNums", int64(h.MaxMsgNums))
	f.SetInt("commitOffset", 0)
	f.SetInt("suspendTimeoutMillis", 0)
	f.SetInt("subVersion", h.SubVersion)
	if h.MaxMsgBytes > 0 {
		f.SetInt("maxMsgBytes", int64(h.MaxMsgBytes))
	}
	sub, kind := string(h.Subscription), string(h.ExpressionType)
	if h.SysFlag&pullHasSub == 0 {
		if s, _, _ := p.b.consumers.Subscription(h.ConsumerGroup, h.Topic); s != nil {
			sub, kind = s.SubString, s.ExpressionType
		}
	}
	f.SetInt("sysFlag", int64(h.SysFlag&^(pullCommit|pullSuspend)|pullHasSub))
	f.Set("subscription", sub)
	if kind != "" {
		f.Set("expressionType", kind)
	}
	return f
}

// read turns the answer of the other broker into that of the logical queue.
func (p *mappedPull) read(resp *remoting.Command, broker string, asked int64) (staticmap.Pulled, error) {
	got := staticmap.Pulled{Code: resp.Code}
	switch resp.Code {
	case remoting.RespSuccess, remoting.RespPullNotFound, remoting.RespPullRetryImmediately, remoting.RespPullOffsetMoved:
	default:
		return got, fmt.Errorf("cannot read the queue at broker %q: %s: %s", broker, remoting.ResponseName(resp.Code), resp.Remark)
	}
	for key, to := range map[string]*int64{"nextBeginOffset": &got.Next, "minOffset": &got.Min, "maxOffset": &got.Max} {
		n, ok, err := resp.Fields.Int64(key)
		if err != nil || !ok {
			return got, fmt.Errorf("cannot read the answer of broker %q: it has no %s", broker, key)
		}
		*to = n
	}
	return p.q.Pulled(p.i, asked, got), nil
}

// park keeps a pull that waits for the next stretch, for a moment.
func (p *mappedPull) park(r *server.Request) bool {
	lead, _ := p.q.Leader()
	b := p.b
	w := &parkedPull{key: holdKey{p.topic, lead.QueueID}, conn: r.Conn().ID(), until: b.hold.now().Add(undecidedPoll)}
	conn := r.Conn()
	w.wake = func(bool) { b.woken.push(r) }
	w.drop = r.Done
	if !b.hold.Park(w) {
		return false
	}
	b.dropIfClosed(conn)
	return true
}

// answer writes the response of a pull that was not answered from a queue here.
func (p *mappedPull) answer(r *server.Request, tp *topic, g *group, got staticmap.Pulled, body []byte) {
	rp := newReply(got.Code, pulledRemark(got.Code))
	var suggest int64
	if p.b.cfg().SlaveRead {
		suggest = g.BrokerID
	}
	rp.int(keySuggest, suggest)
	rp.pulled(got.Next, got.Min, got.Max)
	rp.int(keyOffsetDelta, got.Delta)
	rp.int(keyTopicSysFlag, int64(tp.TopicSysFlag))
	rp.int(keyGroupSysFlag, int64(g.GroupSysFlag))
	if got.Code == remoting.RespSuccess {
		rp.cmd.Body = body
	}
	rp.to(r)
}

func pulledRemark(code int32) string {
	if code == remoting.RespSuccess {
		return "FOUND"
	}
	return ""
}

func (p *reply) pulled(next, least, most int64) {
	p.int(keyNextBegin, next)
	p.int(keyMinOffset, least)
	p.int(keyMaxOffset, most)
}

var keyOffsetDelta = []byte("offsetDelta")

// pulled turns what a queue here has given into the answer of the logical queue.
func (p *mappedPull) pulled(code int32, asked int64, res *store.GetResult) staticmap.Pulled {
	got := staticmap.Pulled{Code: code, Next: res.NextOffset, Min: res.MinOffset, Max: res.MaxOffset}
	if res.Status == store.OffsetReset {
		return p.q.Told(p.i, got)
	}
	got.Behind = p.b.slave != nil || p.b.store.NextOffset(p.topic, p.q[p.i].QueueID) > res.MaxOffset
	return p.q.Pulled(p.i, asked, got)
}
