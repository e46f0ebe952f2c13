package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
)

func (c *Consumer) rebalanceLoop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var again backoff
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-c.wake:
		}
		timer.Reset(again.next(c.rebalance(ctx), c.cfg.Rebalance))
	}
}

// rebalance takes this member's share of every subscribed topic. A topic whose
// members or queues cannot be learned keeps what it has; false says that there was one.
func (c *Consumer) rebalance(ctx context.Context) bool {
	ok := true
	for topic := range c.subs {
		r, err := c.core.routes.get(ctx, topic)
		if err != nil {
			if !message.IsRetry(topic) && ctx.Err() == nil {
				c.core.log.Warn("rebalance skipped", "topic", topic, "error", err)
			}
			ok = ok && message.IsRetry(topic) // that may not be there
			continue
		}
		share := r.read
		if !c.cfg.Broadcast {
			members, err := c.members(ctx, r)
			if err != nil {
				if ctx.Err() == nil {
					c.core.log.Warn("rebalance skipped", "topic", topic, "error", err)
				}
				ok = false
				continue
			}
			ok = ok && slices.Contains(members, c.core.id) // else its heartbeat has not come yet
			share = assignAveragely(r.read, members, c.core.id)
		}
		ok = c.assign(ctx, topic, share) && ok
	}
	return ok
}

// members are the client ids of the group, sorted.
func (c *Consumer) members(ctx context.Context, r *route) ([]string, error) {
	addr, ok := r.anyAddr()
	if !ok {
		return nil, &NoRouteError{Topic: r.topic, Err: errors.New("no broker is known")}
	}
	resp, err := c.core.call(ctx, c.core.vip(addr), remoting.NewRequest(remoting.ReqGetConsumerListByGroup,
		&remoting.GetConsumerListByGroupHeader{ConsumerGroup: c.cfg.Group}))
	if err != nil {
		return nil, err
	}
	var body remoting.ConsumerIDList
	if err := fastjson.Unmarshal(resp.Body, &body); err != nil {
		return nil, fmt.Errorf("cannot read members of group %q: %w", c.cfg.Group, err)
	}
	slices.Sort(body.ConsumerIDList)
	return body.ConsumerIDList, nil
}

// assign makes the queues of a topic that this member reads those of share; false says that some could not be taken.
func (c *Consumer) assign(ctx context.Context, topic string, share []remoting.MessageQueue) bool {
	c.mu.Lock()
	var lost []*assigned
	for q, a := range c.mu.queues {
		if q.Topic == topic && !slices.Contains(share, q) {
			lost = append(lost, a)
		}
	}
	var gained []remoting.MessageQueue
	for _, q := range share {
		if c.mu.queues[q] == nil {
			gained = append(gained, q)
		}
	}
	c.mu.Unlock()
	for _, a := range lost {
		c.release(ctx, a)
	}
	ok := true
	for _, q := range gained {
		ok = c.acquire(ctx, q) && ok
	}
	return ok
}

// release commits a queue that goes to another member and gives it up.
func (c *Consumer) release(ctx context.Context, a *assigned) {
	a.cancel()
	<-a.gone
	if err := c.commitQueue(ctx, a); err != nil {
		c.core.log.Warn("commit failed", "group", c.cfg.Group, "error", err)
	}
	a.drop()
	c.mu.Lock()
	delete(c.mu.queues, a.queue)
	c.mu.Unlock()
}

// acquire begins to read a queue. When its offset cannot be learned it is left for the
// next rebalance, and false returned: a guess would repeat or skip messages.
func (c *Consumer) acquire(ctx context.Context, q remoting.MessageQueue) bool {
	offset, stored, err := c.startOffset(ctx, q)
	if err != nil {
		if ctx.Err() == nil {
			c.core.log.Warn("queue not taken", "queue", q.String(), "error", err)
		}
		return false
	}
	a := newAssigned(q, offset, stored)
	pull, cancel := context.WithCancel(ctx)
	a.cancel = cancel
	c.mu.Lock()
	c.mu.queues[q] = a
	c.mu.Unlock()
	go func() {
		defer close(a.gone)
		c.pullLoop(pull, a)
	}()
	return true
}

// startOffset is where reading a queue begins: the committed offset, else what
// ConsumeFrom says. The latter is committed soon, before any message was taken: a
// member that joins at the end and dies must not lose what comes until it is back
// (the Java client starts anew from the end then).
func (c *Consumer) startOffset(ctx context.Context, q remoting.MessageQueue) (offset, stored int64, err error) {
	if !c.cfg.Broadcast {
		offset, err = c.core.committed(ctx, c.cfg.Group, q)
		if err == nil {
			return offset, offset, nil
		}
		if !errors.Is(err, errNoOffset) {
			return 0, 0, err
		}
	}
	switch {
	case c.cfg.From == FromFirst:
		offset, err = c.core.minOffset(ctx, q)
	case c.cfg.From == FromTime && !message.IsRetry(q.Topic):
		at := c.cfg.FromAt
		if at.IsZero() {
			at = c.began.Add(-defaultFromTime)
		}
		offset, err = c.core.offsetByTime(ctx, q, at)
	case c.cfg.From == FromLast && message.IsRetry(q.Topic):
		offset = 0
	default:
		offset, err = c.core.maxOffset(ctx, q)
	}
	return offset, -1, err
}

// stopQueues ends all pulls and waits.
func (c *Consumer) stopQueues() {
	c.mu.Lock()
	queues := make([]*assigned, 0, len(c.mu.queues))
	for _, a := range c.mu.queues {
		queues = append(queues, a)
	}
	c.mu.Unlock()
	for _, a := range queues {
		a.cancel()
		<-a.gone
	}
}

// pullLoop pulls a queue until its context ends.
func (c *Consumer) pullLoop(ctx context.Context, a *assigned) {
	sub := c.subs[a.queue.Topic]
	spec := pullSpec{group: c.cfg.Group, queue: a.queue, max: c.cfg.Batch, filter: &sub.filter, version: sub.version, hold: true}
	for ctx.Err() == nil {
		if room := a.full(c.cfg.MaxBuffered, c.cfg.MaxBufferedBytes); room != nil {
			select {
			case <-room:
			case <-ctx.Done():
			}
			continue
		}
		var epoch int64
		spec.offset, epoch = a.position()
		p, err := c.core.pull(ctx, &spec)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			c.core.log.Warn("pull failed", "queue", a.queue.String(), "offset", spec.offset, "error", err)
			sleep(ctx, lastRetryWait)
			continue
		}
		spec.broker = p.suggest
		if !c.pulled(ctx, a, epoch, spec.offset, p) {
			return
		}
	}
}

// pulled hands a pulled batch to Run; false when the loop has to end.
func (c *Consumer) pulled(ctx context.Context, a *assigned, epoch, offset int64, p *pulled) bool {
	for _, err := range p.broken {
		c.core.log.Error("record passed over", "group", c.cfg.Group, "error", err)
	}
	next := p.next
	switch {
	case p.status == pullMoved:
		if offset >= p.min && offset <= p.max { // brokers tell in the same way that somebody has set the offset of the group
			c.core.log.Info("offset reset", "queue", a.queue.String(), "was", offset, "offset", next)
		} else {
			c.core.log.Warn("offset is outside the queue", "queue", a.queue.String(), "offset", offset, "next", next, "min", p.min, "max", p.max)
		}
		if next == offset {
			return sleep(ctx, firstRetryWait)
		}
		a.reset(next)
		return true
	case p.status == pullEmpty && next <= offset:
		return true
	case next < offset:
		return sleep(ctx, firstRetryWait)
	}
	h := &handOff{from: a, epoch: epoch, messages: p.messages, next: next}
	for _, m := range p.messages {
		h.bytes += int64(len(m.Body))
	}
	if next == offset && len(h.messages) == 0 {
		return sleep(ctx, firstRetryWait)
	}
	if !a.advance(epoch, next, len(h.messages), h.bytes, c.core.cfg.Clock.Now().UnixMilli()) {
		return true
	}
	select {
	case c.out <- h:
		return true
	case <-ctx.Done():
		return false
	}
}
