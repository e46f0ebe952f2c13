package broker

import (
	"context"
	"fmt"

	"mqx/broker/staticmap"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// logicalQueue is a logical queue that a request is about, and that this broker leads.
type logicalQueue struct {
	b     *Broker
	m     *staticmap.Mapping
	q     staticmap.Queue
	topic string
}

// logicalOf finds the logical queue of a request. l is nil for an ordinary topic and for a physical queue; ok is false when
// the request has been answered, since this broker does not lead the queue.
func (b *Broker) logicalOf(r *server.Request, topic []byte, queue int32, physical bool) (l *logicalQueue, ok bool) {
	m := b.statics.of(topic)
	if m == nil || physical {
		return nil, true
	}
	q, led := m.Led(queue)
	if !led {
		e := notLeader(topic, queue, m.Broker())
		r.Reply(e.Code, e.Text)
		return nil, false
	}
	return &logicalQueue{b: b, m: m, q: q, topic: string(topic)}, true
}

func (l *logicalQueue) here(i int) bool { return l.q[i].BName == l.m.Broker() }

// allHere reports whether all stretches that have an offset are on this broker.
func (l *logicalQueue) allHere() bool {
	for i := range l.q {
		if staticmap.Decided(l.q[i]) && !l.here(i) {
			return false
		}
	}
	return true
}

// serve answers r with the number that f finds, under key; when some stretch is on another broker, on a goroutine that may
// wait for that.
func (l *logicalQueue) serve(r *server.Request, key []byte, f func(ctx context.Context) (int64, error)) {
	answer := func(ctx context.Context) {
		n, err := f(ctx)
		if err != nil {
			r.Reply(remoting.RespSystemError, err.Error())
			return
		}
		answerInt(r, key, n)
	}
	if l.allHere() {
		answer(l.b.ctx)
		return
	}
	l.b.elsewhere.away(r, answer)
}

// errUndecided is the answer while no stretch of a queue has a logical offset.
func (l *logicalQueue) errUndecided() error {
	return fmt.Errorf("no stretch of the queue of topic %q has a logical offset yet", l.topic)
}

// maxOffset is the end of the queue: that of its newest stretch.
func (l *logicalQueue) maxOffset(ctx context.Context) (int64, error) {
	i := l.q.Newest()
	if i < 0 {
		return 0, l.errUndecided()
	}
	n, err := l.endOf(ctx, i)
	return staticmap.Logic(l.q[i], n), err
}

// endOf is the physical end of a stretch.
func (l *logicalQueue) endOf(ctx context.Context, i int) (int64, error) {
	it := l.q[i]
	if l.here(i) {
		return l.b.store.MaxOffset(l.topic, it.QueueID), nil
	}
	return l.b.elsewhere.number(ctx, it.BName, remoting.ReqGetMaxOffset, queueFields(l.topic, it.QueueID), "offset")
}

// minOffset is the beginning of the queue: that of its oldest stretch.
func (l *logicalQueue) minOffset(ctx context.Context) (int64, error) {
	i := l.q.Find(0)
	if i < 0 {
		return 0, l.errUndecided()
	}
	it := l.q[i]
	var n int64
	var err error
	if l.here(i) {
		n = l.b.store.MinOffset(l.topic, it.QueueID)
	} else {
		n, err = l.b.elsewhere.number(ctx, it.BName, remoting.ReqGetMinOffset, queueFields(l.topic, it.QueueID), "offset")
	}
	return staticmap.Logic(it, min(n, l.q.End(i))), err
}

// search finds the offset of a time: in the oldest stretch that has a message of then or later, else the end of the newest.
// (Apache goes through all stretches and answers with the last one that another broker has.)
func (l *logicalQueue) search(ctx context.Context, at int64, boundary remoting.BoundaryType) (int64, error) {
	if boundary == remoting.BoundaryUpper {
		return l.searchUpper(ctx, at)
	}
	found, some := int64(0), false
	for i, it := range l.q {
		if !staticmap.Decided(it) {
			continue
		}
		n, err := l.searchIn(ctx, it, l.here(i), at, boundary)
		if err != nil {
			return 0, err
		}
		end, err := l.endOf(ctx, i)
		if err != nil {
			return 0, err
		}
		end = min(end, l.q.End(i))
		found, some = staticmap.Logic(it, min(n, end)), true
		if n >= 0 && n < end {
			break
		}
	}
	if !some {
		return 0, l.errUndecided()
	}
	return found, nil
}

// searchUpper is search for the last message of a time or before: in the newest stretch that has one.
func (l *logicalQueue) searchUpper(ctx context.Context, at int64) (int64, error) {
	for i := len(l.q) - 1; i >= 0; i-- {
		it := l.q[i]
		if !staticmap.Decided(it) {
			continue
		}
		first, err := l.earliestIn(ctx, it, l.here(i))
		if err != nil {
			return 0, err
		}
		if first <= 0 || first > at {
			continue
		}
		n, err := l.searchIn(ctx, it, l.here(i), at, remoting.BoundaryUpper)
		return staticmap.Logic(it, min(n, l.q.End(i))), err
	}
	return l.minOffset(ctx) // all are later
}

func (l *logicalQueue) searchIn(ctx context.Context, it staticmap.Item, here bool, at int64, boundary remoting.BoundaryType) (int64, error) {
	if here {
		side := store.Lower
		if boundary == remoting.BoundaryUpper {
			side = store.Upper
		}
		return l.b.store.OffsetByTime(l.topic, it.QueueID, at, side)
	}
	f := queueFields(l.topic, it.QueueID)
	f.SetInt("timestamp", at)
	if boundary != "" {
		f.Set("boundaryType", string(boundary))
	}
	return l.b.elsewhere.number(ctx, it.BName, remoting.ReqSearchOffsetByTimestamp, f, "offset")
}

// earliest is the store time of the oldest message, -1 when there is none.
func (l *logicalQueue) earliest(ctx context.Context) (int64, error) {
	for i, it := range l.q {
		if !staticmap.Decided(it) {
			continue
		}
		if at, err := l.earliestIn(ctx, it, l.here(i)); err != nil || at > 0 {
			return at, err
		}
	}
	return -1, nil
}

// earliestIn is the store time of the oldest message of a stretch, not above 0 when there is none.
func (l *logicalQueue) earliestIn(ctx context.Context, it staticmap.Item, here bool) (int64, error) {
	if here {
		return l.b.store.EarliestStoreTime(l.topic, it.QueueID)
	}
	return l.b.elsewhere.number(ctx, it.BName, remoting.ReqGetEarliestMsgStoreTime, queueFields(l.topic, it.QueueID), "timestamp")
}

// committed is where a group stands: in the newest stretch that it has an offset in. ok is false when there is none.
func (l *logicalQueue) committed(ctx context.Context, group string) (offset int64, ok bool, err error) {
	for i := len(l.q) - 1; i >= 0; i-- {
		it := l.q[i]
		if !staticmap.Decided(it) {
			continue
		}
		if l.here(i) {
			if off, has := l.b.offsets.Query([]byte(l.topic), []byte(group), it.QueueID); has {
				return staticmap.Logic(it, off), true, nil
			}
			continue
		}
		f := offsetFields(group, l.topic, it.QueueID)
		f.Set("setZeroIfNotFound", "false")
		resp, err := l.b.elsewhere.ask(ctx, it.BName, remoting.ReqQueryConsumerOffset, f)
		if err != nil {
			return 0, false, err
		}
		switch resp.Code {
		case remoting.RespQueryNotFound:
		case remoting.RespSuccess:
			off, has, err := resp.Fields.Int64("offset")
			if err != nil || !has {
				return 0, false, fmt.Errorf("cannot read the offset that broker %q answers: %w", it.BName, err)
			}
			return staticmap.Logic(it, off), true, nil
		default:
			return 0, false, fmt.Errorf("cannot ask broker %q: %s: %s", it.BName, remoting.ResponseName(resp.Code), resp.Remark)
		}
	}
	return 0, false, nil
}

// asPhysical reports whether the queue is one physical queue of this broker with the same offsets, and which.
func (l *logicalQueue) asPhysical() (queue int32, ok bool) {
	if len(l.q) == 1 && l.here(0) && l.q[0].LogicOffset == 0 && l.q[0].StartOffset == 0 {
		return l.q[0].QueueID, true
	}
	return 0, false
}

// queryOffset answers QUERY_CONSUMER_OFFSET for a queue that is not one physical queue here.
func (l *logicalQueue) queryOffset(r *server.Request, group string) {
	answer := func(ctx context.Context) {
		off, ok, err := l.committed(ctx, group)
		switch {
		case err != nil: // not "not found": the client would skip or repeat
			r.Reply(remoting.RespSystemError, err.Error())
		case !ok:
			newReply(remoting.RespQueryNotFound, "Not found, maybe this group consumer boot first").to(r)
		default:
			answerInt(r, keyOffset, off)
		}
	}
	if l.allHere() {
		answer(l.b.ctx)
		return
	}
	l.b.elsewhere.away(r, answer)
}

// commit turns a logical offset that is to be committed into the physical one. Where that is another broker's, it is told,
// r is answered, and local is false. An offset in an older stretch takes back those of the newer ones here: they would be
// found first, and a group that was sent back would not go. (In Apache it does not.)
func (l *logicalQueue) commit(r *server.Request, h *offsetHeader) (local bool) {
	i := l.q.Find(h.offset)
	if i < 0 {
		r.Reply(remoting.RespSystemError, l.errUndecided().Error())
		return false
	}
	it := l.q[i]
	group, at := string(h.group), max(it.StartOffset, staticmap.Physical(it, h.offset))
	newer := func() {
		for j := i + 1; j < len(l.q); j++ {
			if l.here(j) {
				l.b.offsets.RemoveQueue(l.topic, group, l.q[j].QueueID)
			}
		}
	}
	if l.here(i) {
		h.queueID, h.offset = it.QueueID, at
		newer()
		return true
	}
	f := offsetFields(group, l.topic, it.QueueID)
	f.SetInt("commitOffset", at)
	l.b.elsewhere.away(r, func(ctx context.Context) {
		resp, err := l.b.elsewhere.ask(ctx, it.BName, remoting.ReqUpdateConsumerOffset, f)
		if err != nil {
			r.Reply(remoting.RespSystemError, err.Error())
			return
		}
		if resp.Code == remoting.RespSuccess {
			newer()
		}
		newReply(resp.Code, resp.Remark).to(r)
	})
	return false
}
