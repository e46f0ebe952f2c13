package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"mqx/internal/words"
	"mqx/message"
	"mqx/remoting"
)

// PositionKind says how a Position is meant.
type PositionKind int

// The kinds of position.
const (
	AtStart PositionKind = iota
	AtEnd
	AtOffset
	AtTime
)

// Position is a place in a queue.
type Position struct {
	Kind   PositionKind
	Offset int64
	Time   time.Time
}

// ReaderConfig says what a Reader reads.
type ReaderConfig struct {
	Config
	Topic string
	// Brokers limits reading to brokers of these names or addresses; empty means all.
	Brokers []string
	// Queue limits reading to one queue id when HasQueue.
	Queue    int32
	HasQueue bool
	// Start and End bound the range: [Start, End). A nil End means the end of each queue
	// as it was when reading began, or none at all with Follow.
	Start Position
	End   *Position
	// Ranges, where they are given, are what is read and nothing else: Brokers, Queue, Start, End
	// and StartGroup do not count.
	Ranges []QueueRange
	// StartGroup, where it is given, takes the place of Start: each queue is read from the
	// committed offset of this group, and from its start where the group has none.
	StartGroup string
	// Tag is a tag expression (a || b), SQL an SQL92 expression; at most one of them.
	Tag, SQL string
	// Group is the group in whose name is read, default TOOLS_CONSUMER. Nothing is committed.
	Group string
	// Batch is the number of messages asked for in a pull, default 32.
	Batch int
	// Follow keeps reading as messages come, by long polling.
	Follow bool
	// Missing is told, once a broker and one call at a time, of brokers that cannot be asked
	// or read; reading goes on without them. It is an error when none is left. Without
	// Missing the first such broker ends reading.
	Missing func(broker string, err error)
	// Ordered merges queues by store time. With Follow a queue that has been read to its
	// end does not hold the others up.
	Ordered bool
}

// DefaultBatch is the number of messages asked for in a pull.
const DefaultBatch = 32

// maxBatch is the most messages that are asked for; brokers have a bound of their own.
const maxBatch = 10_000

// Reader reads queues of a topic beside any group: it commits nothing and registers
// nowhere.
type Reader struct {
	cfg    ReaderConfig
	core   *core
	filter filter
	absent absent
	once   sync.Once
}

// ErrStop is what the function of Reader.Read or Consumer.Run returns to end it without an error.
var ErrStop = errors.New("stop reading")

// BrokenError says that records could not be read; all others were delivered.
type BrokenError struct {
	Count int
	First error // names the place of the first one
}

// Error names the number and the first place.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("cannot read %s, the first: %v", words.Count(e.Count, "record"), e.First)
}

// Unwrap is what is wrong with the first one.
func (e *BrokenError) Unwrap() error { return e.First }

// NewReader checks cfg.
func NewReader(cfg ReaderConfig) (*Reader, error) {
	setDefault(&cfg.Group, message.GroupTools)
	setDefault(&cfg.Batch, DefaultBatch)
	if err := message.ValidateTopic(cfg.Topic); err != nil {
		return nil, fmt.Errorf("cannot make reader: %w", err)
	}
	if err := message.ValidateGroup(cfg.Group); err != nil {
		return nil, fmt.Errorf("cannot make reader: %w", err)
	}
	if cfg.StartGroup != "" {
		if err := message.ValidateGroup(cfg.StartGroup); err != nil {
			return nil, fmt.Errorf("cannot make reader: %w", err)
		}
	}
	if cfg.Batch < 1 || cfg.Batch > maxBatch {
		return nil, fmt.Errorf("cannot make reader: batch of %d, 1 to %d are possible", cfg.Batch, maxBatch)
	}
	f, err := newFilter(cfg.Tag, cfg.SQL)
	if err != nil {
		return nil, fmt.Errorf("cannot make reader: %w", err)
	}
	c, err := newCore(cfg.Config, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot make reader: %w", err)
	}
	return &Reader{cfg: cfg, core: c, filter: f, absent: absent{tell: cfg.Missing}}, nil
}

// Close closes the connections. It is idempotent.
func (r *Reader) Close() (err error) {
	r.once.Do(func() { err = r.core.close() })
	return err
}

// Queues are the queues that Read reads, with the range of each. Brokers are asked side
// by side: one that hangs holds up none of the others.
func (r *Reader) Queues(ctx context.Context) ([]QueueRange, error) {
	if r.cfg.Ranges != nil {
		return slices.Clone(r.cfg.Ranges), nil
	}
	rt, err := r.core.routes.get(ctx, r.cfg.Topic)
	if err != nil {
		return nil, err
	}
	var queues []remoting.MessageQueue
	brokers := map[string][]int{} // places in queues
	for _, q := range rt.read {
		if !r.wantsBroker(rt, q.BrokerName) || r.cfg.HasQueue && q.QueueID != r.cfg.Queue {
			continue
		}
		brokers[q.BrokerName] = append(brokers[q.BrokerName], len(queues))
		queues = append(queues, q)
	}
	if len(queues) == 0 {
		return nil, &NoRouteError{Topic: r.cfg.Topic, Err: errors.New("no such queue can be read")}
	}
	ranges := make([]QueueRange, len(queues))
	g, gctx := errgroup.WithContext(ctx)
	for name, at := range brokers {
		g.Go(func() error {
			for _, i := range at {
				qr, err := r.rangeOf(gctx, queues[i])
				if err == nil {
					ranges[i] = qr
					continue
				}
				if !r.absent.note(gctx, name, err) {
					return err
				}
				for _, i := range at { // what is known of its other queues is of no use
					ranges[i] = QueueRange{}
				}
				return nil
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := r.absent.all(queues); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ranges, func(qr QueueRange) bool { return qr.Queue.Topic == "" }), nil
}

// wantsBroker reports whether a broker is one of those that are read, by its name or by an address of it.
func (r *Reader) wantsBroker(rt *route, name string) bool {
	if len(r.cfg.Brokers) == 0 || slices.Contains(r.cfg.Brokers, name) {
		return true
	}
	for _, addr := range rt.brokers[name] {
		if slices.Contains(r.cfg.Brokers, addr) {
			return true
		}
	}
	return false
}

// QueueRange is what is read of a queue: [Start, End).
type QueueRange struct {
	Queue      remoting.MessageQueue
	Start, End int64
	Open       bool // there is no end
}

func (r *Reader) rangeOf(ctx context.Context, q remoting.MessageQueue) (qr QueueRange, err error) {
	qr.Queue = q
	if qr.Start, err = r.startOf(ctx, q); err != nil {
		return qr, err
	}
	if r.cfg.Start.Kind == AtOffset || r.cfg.StartGroup != "" { // below the queue's minimum there is nothing
		least, err := r.core.minOffset(ctx, q)
		if err != nil {
			return qr, err
		}
		qr.Start = max(qr.Start, least)
	}
	switch {
	case r.cfg.End == nil && r.cfg.Follow:
		qr.Open = true
		return qr, nil
	case r.cfg.End == nil:
		qr.End, err = r.core.maxOffset(ctx, q)
		return qr, err
	}
	qr.End, err = r.core.position(ctx, q, *r.cfg.End)
	if err != nil || r.cfg.Follow {
		return qr, err
	}
	most, err := r.core.maxOffset(ctx, q)
	qr.End = min(qr.End, most)
	return qr, err
}

// startOf is the offset to begin a queue at.
func (r *Reader) startOf(ctx context.Context, q remoting.MessageQueue) (int64, error) {
	if r.cfg.StartGroup == "" {
		return r.core.position(ctx, q, r.cfg.Start)
	}
	n, err := r.core.committed(ctx, r.cfg.StartGroup, q)
	if errors.Is(err, errNoOffset) {
		return r.core.minOffset(ctx, q)
	}
	return n, err
}

// Read calls f for each message, one call at a time, until the range is read, f
// returns an error (ErrStop ends without one) or ctx ends. m is f's to keep. Messages
// of one queue come in order. Records that cannot be read are passed over and
// reported as a *BrokenError at the end.
func (r *Reader) Read(ctx context.Context, f func(m *Received) error) error {
	ranges, err := r.Queues(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	m := newMerge(r.cfg.Ordered, len(ranges))
	slots := make(chan struct{}, maxParallelReads)
	for _, qr := range ranges {
		cur := m.cursor()
		wg.Go(func() {
			if !r.cfg.Follow && !r.cfg.Ordered { // these need every queue at the same time
				select {
				case slots <- struct{}{}:
					defer func() { <-slots }()
				case <-ctx.Done():
					return
				}
			}
			r.follow(ctx, qr, cur)
		})
	}
	if err := m.run(ctx, f); err != nil && !errors.Is(err, ErrStop) {
		return err
	}
	return errors.Join(r.absent.all(rangedQueues(ranges)), m.brokenError())
}

func rangedQueues(ranges []QueueRange) []remoting.MessageQueue {
	out := make([]remoting.MessageQueue, len(ranges))
	for i, qr := range ranges {
		out[i] = qr.Queue
	}
	return out
}

// maxParallelReads bounds the queues that are read at a time.
const maxParallelReads = 32

// Waits between attempts after a failed pull.
const (
	firstRetryWait = 100 * time.Millisecond
	lastRetryWait  = 3 * time.Second
)

// maxFailedPulls ends reading without Follow after so many failed pulls in a row.
const maxFailedPulls = 3

// follow pulls one queue and feeds its cursor until the range is read.
func (r *Reader) follow(ctx context.Context, qr QueueRange, cur *cursor) {
	spec := pullSpec{
		group: r.cfg.Group, queue: qr.Queue, offset: qr.Start, max: r.cfg.Batch, filter: &r.filter,
		inline: true, version: r.core.cfg.Clock.Now().UnixMilli(),
	}
	failures := 0
	wait := firstRetryWait
	for qr.Open || spec.offset < qr.End {
		spec.hold = r.cfg.Follow && cur.drained
		p, err := r.core.pull(ctx, &spec)
		if err != nil {
			failures++
			if ctx.Err() != nil {
				return
			}
			if !r.cfg.Follow && failures >= maxFailedPulls || !retryable(err) {
				if r.absent.note(ctx, qr.Queue.BrokerName, err) {
					cur.finish(ctx)
				} else {
					cur.fail(ctx, err)
				}
				return
			}
			r.core.log.Warn("pull failed", "queue", qr.Queue.String(), "offset", spec.offset, "error", err)
			if !sleep(ctx, wait) {
				return
			}
			wait = min(2*wait, lastRetryWait)
			continue
		}
		failures, wait = 0, firstRetryWait
		if !r.take(ctx, &spec, p, qr, cur) {
			return
		}
	}
	cur.finish(ctx)
}

// take hands the messages of one pull on; false ends the queue.
func (r *Reader) take(ctx context.Context, spec *pullSpec, p *pulled, qr QueueRange, cur *cursor) bool {
	if !qr.Open {
		p.messages = slices.DeleteFunc(p.messages, func(m *Received) bool { return m.QueueOffset >= qr.End })
	}
	if len(p.messages)+len(p.broken) > 0 {
		if !cur.push(ctx, p.messages, p.broken) {
			return false
		}
	}
	switch p.status {
	case pullFound, pullFiltered:
		if p.next <= spec.offset && p.status == pullFound {
			cur.fail(ctx, fmt.Errorf("cannot read %s: the broker answered offset %d and wants the next pull at %d", spec.queue, spec.offset, p.next))
			return false
		}
		spec.offset = max(p.next, spec.offset)
		if spec.offset >= p.max {
			return cur.drain(ctx) // the next pull is held
		}
	case pullMoved:
		r.core.log.Warn("offset is outside the queue", "queue", spec.queue.String(), "offset", spec.offset, "next", p.next, "min", p.min, "max", p.max)
		if p.next == spec.offset {
			return cur.drain(ctx)
		}
		if p.next < spec.offset && !r.cfg.Follow {
			cur.finish(ctx) // the queue has become shorter: nothing is left of the range
			return false
		}
		spec.offset = p.next
	case pullEmpty:
		if !r.cfg.Follow && p.next <= spec.offset {
			cur.finish(ctx)
			return false
		}
		spec.offset = max(p.next, spec.offset)
		return cur.drain(ctx)
	}
	return true
}

// sleep waits; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
