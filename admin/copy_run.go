package admin

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"mqx/client"
	"mqx/message"
	"mqx/remoting"
)

// copySource gives what is to be copied, one call at a time; ErrStop ends it without an error.
type copySource func(ctx context.Context, f func(copyItem) error) error

// copyItem is one message of a source.
type copyItem struct {
	lane string // the source queue; messages of a lane are sent one after the other
	pos  int64  // grows within a lane
	from remoting.MessageQueue
	m    *client.Received
}

// copyLanes is how many messages are under way at a time, each of another source queue.
const copyLanes = 16

// copier sends what a source gives.
type copier struct {
	spec     *CopySpec
	progress *copyProgress
	resumed  bool
	wants    func(m *client.Received) bool
	convert  func(m *client.Received) (resent, error)
	// there reports whether the target has a message already, since the copy began; nil: never asked.
	there func(ctx context.Context, m *client.Received) (bool, error)
	// always: there is asked for every message, not only where an earlier run ended.
	always   bool
	producer *client.Producer
	target   *Client
	tell     func(CopyCounts)

	first sync.Mutex // held while the first message is sent and looked at; before mu

	mu struct {
		sync.Mutex
		told    time.Time
		refused error // the first
		failed  error
		checked bool // a stored message has been looked at
	}
}

// run copies until the source ends, the limit is reached, ctx ends or a send fails. What is under way then is waited
// for. unreadable is the number of records that could not be read.
func (c *copier) run(ctx context.Context, source copySource) (unreadable int, err error) {
	work, stop := context.WithCancel(ctx)
	defer stop()
	lanes := make([]chan copyItem, copyLanes)
	var wg sync.WaitGroup
	for i := range lanes {
		lanes[i] = make(chan copyItem, 4)
		wg.Go(func() { c.lane(work, stop, lanes[i]) })
	}
	taken := c.taken()
	pace := NewPace(c.spec.Rate)
	err = source(work, func(it copyItem) error {
		wanted := c.wants(it.m)
		if wanted {
			if c.spec.Limit > 0 && taken >= c.spec.Limit {
				return client.ErrStop
			}
			if !pace.Wait(work) {
				return work.Err()
			}
			taken++
		} else {
			it.m = nil // only its position counts
		}
		h := fnv.New32a()
		_, _ = h.Write([]byte(it.lane))
		select {
		case lanes[h.Sum32()%copyLanes] <- it:
			return nil
		case <-work.Done():
			return work.Err()
		}
	})
	for _, l := range lanes {
		close(l)
	}
	wg.Wait()
	c.mu.Lock()
	failed := c.mu.failed
	c.mu.Unlock()
	if broken, ok := errors.AsType[*client.BrokenError](err); ok {
		unreadable, err = broken.Count, nil
	}
	switch {
	case failed != nil:
		err = failed
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return unreadable, errors.Join(err, c.progress.finish(err == nil && (c.spec.Limit == 0 || c.spec.OwnState || c.spec.plan)))
}

// taken is how many messages count already for the limit: of a plan it is that of all runs together.
func (c *copier) taken() int64 {
	if !c.spec.plan {
		return 0
	}
	c.progress.mu.Lock()
	defer c.progress.mu.Unlock()
	n := c.progress.total()
	return n.Read - n.Others
}

// lane sends the messages of its source queues in their order, until ctx ends.
func (c *copier) lane(ctx context.Context, stop func(), in <-chan copyItem) {
	behind := map[string]bool{} // lanes that are past what an earlier run has sent
	for it := range in {
		done := c.alone()
		if ctx.Err() == nil { // else it is taken up by the next run
			c.item(ctx, stop, it, behind)
		}
		done()
	}
}

// item takes one message and notes what became of it. After a failure it stops the lanes.
func (c *copier) item(ctx context.Context, stop func(), it copyItem, behind map[string]bool) {
	counts, err := c.one(ctx, it, behind)
	total := c.progress.note(it.lane, it.pos+1, counts)
	c.mu.Lock()
	if err != nil && c.mu.failed == nil {
		c.mu.failed = err
	}
	tell := c.tell != nil && time.Since(c.mu.told) >= tellEvery
	if tell {
		c.mu.told = time.Now()
	}
	c.mu.Unlock()
	if tell {
		c.tell(total)
	}
	if err != nil {
		stop()
	}
}

// tellEvery is the time between two reports of progress.
const tellEvery = 500 * time.Millisecond

// one sends one message. A send that has begun is waited for even when ctx ends.
func (c *copier) one(ctx context.Context, it copyItem, behind map[string]bool) (CopyCounts, error) {
	counts := CopyCounts{Read: 1}
	if it.m == nil {
		counts.Others = 1
		return counts, nil
	}
	whole := context.WithoutCancel(ctx)
	if c.there != nil && (c.always || c.resumed && !behind[it.lane]) {
		there, err := c.there(whole, it.m)
		if err != nil {
			counts.Failed = 1
			return counts, fmt.Errorf("cannot find out whether message %s is there already: %w", it.m.MessageID, err)
		}
		if there {
			counts.Already = 1
			return counts, nil
		}
		behind[it.lane] = true
	}
	out, err := c.convert(it.m)
	if err == nil {
		err = out.m.Validate()
	}
	if err != nil {
		return c.refuse(counts, err)
	}
	res, err := c.producer.Send(whole, out.m, client.SendOptions{
		Again: &out.again, Select: func(qs []remoting.MessageQueue) (int, error) { return pickQueue(it.from, qs), nil },
	})
	switch {
	case err != nil && neverSent(err):
		return c.refuse(counts, err)
	case err != nil:
		counts.Failed = 1
		return counts, fmt.Errorf("cannot send message %s: %w", it.m.MessageID, err)
	}
	counts.Sent = 1
	if res.Status != client.SendOK {
		counts.Unsure = 1
	}
	return counts, c.lookAtFirst(whole, res, out.m.Topic)
}

func (c *copier) refuse(counts CopyCounts, err error) (CopyCounts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.refused == nil {
		c.mu.refused = err
	}
	counts.Refused = 1
	return counts, nil
}

// neverSent: the message itself is what is wrong.
func neverSent(err error) bool {
	if _, size := errors.AsType[*client.SizeError](err); size {
		return true
	}
	if re, ok := errors.AsType[*remoting.ResponseError](err); ok {
		return re.Code == remoting.RespMessageIllegal
	}
	_, sent := errors.AsType[*client.SendError](err)
	_, route := errors.AsType[*client.NoRouteError](err)
	return !sent && !route
}

// alone waits until the first message has been looked at, or lets the caller send that one; what it returns ends the waiting
// of the others. So nothing is stored before the first message, which is what a copy that goes on is told by, nor behind one
// that went astray.
func (c *copier) alone() (done func()) {
	if c.checked() {
		return func() {}
	}
	c.first.Lock()
	if c.checked() {
		c.first.Unlock()
		return func() {}
	}
	return c.first.Unlock
}

func (c *copier) checked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.checked
}

// lookAtFirst reads the first message back: a broker puts what is sent to a retry topic among the dead letters when it
// counts as given back too often, or the group holds locks of queues.
func (c *copier) lookAtFirst(ctx context.Context, res client.SendResult, topic string) error {
	if c.checked() {
		return nil
	}
	defer func() {
		c.mu.Lock()
		c.mu.checked = true
		c.mu.Unlock()
	}()
	_, phys, err := message.ParseOffsetID(res.OffsetID)
	if err != nil {
		return fmt.Errorf("cannot read back the first message: %w", err)
	}
	ms, err := c.target.viewRecord(ctx, Broker{Name: res.Queue.BrokerName, Addr: res.Broker}, topic, phys)
	if err != nil {
		return fmt.Errorf("cannot read back the first message: %w", err)
	}
	for _, m := range ms {
		if m.Topic == topic {
			c.progress.began(m.StoreTimestamp)
			return nil
		}
		if message.IsDLQ(m.Topic) {
			return &RefusedError{
				What: "stopped after one message: the broker put it into " + m.Topic + " and not into " + topic,
				Why:  "a broker does so when the message counts as given back too often, or while members of an orderly group hold queues",
				Try:  "without --keep-retries, or while the group is stopped",
			}
		}
	}
	return fmt.Errorf("cannot read back the first message: broker %q does not have it in topic %q", res.Queue.BrokerName, topic)
}

// began notes when the first message was stored.
func (p *copyProgress) began(ms int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.state.FirstStored != 0 {
		return
	}
	p.mu.state.FirstStored = ms
	if p.path != "" {
		p.save() // a run that is killed from now on is one to go on with
	}
}

// firstStored is when the first message was stored, 0 while none was.
func (p *copyProgress) firstStored() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.state.FirstStored
}

// Pace holds calls to a rate. It belongs to one goroutine.
type Pace struct {
	every time.Duration // 0: no bound
	next  time.Time
}

// NewPace holds to so many calls a second; 0 is no bound.
func NewPace(perSecond float64) *Pace {
	p := &Pace{}
	if perSecond > 0 {
		p.every = time.Duration(float64(time.Second) / perSecond)
	}
	return p
}

// Wait waits for the next turn; false when ctx ended first. Time that was not used is not saved up.
func (p *Pace) Wait(ctx context.Context) bool {
	if p.every == 0 {
		return ctx.Err() == nil
	}
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	at := p.next
	p.next = p.next.Add(p.every)
	if d := at.Sub(now); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return false
		case <-t.C:
		}
	}
	return ctx.Err() == nil
}
