package client

import "context"

// batchesAhead is how many pulled batches of a queue may wait to be handed on.
const batchesAhead = 2

// merge brings the messages of several queues into one stream: as they come, or by
// store time. The goroutine of run owns it; those that pull talk to it by events.
type merge struct {
	ordered bool
	events  chan cursorEvent
	cursors []*cursor
	ready   []*cursor // with waiting batches, in the order they came; not when ordered
	open    int       // cursors that have not finished

	broken      int
	firstBroken error
}

// cursor is one queue of a merge.
type cursor struct {
	m      *merge
	credit chan struct{} // one token a batch that may still be pushed

	// drained belongs to the goroutine that pulls: the end of the queue was seen last.
	drained bool

	// The rest belongs to the goroutine of run.
	waiting [][]*Received
	empty   bool // the queue had nothing more when last heard of
	done    bool
}

// cursorEvent is what a pulling goroutine tells; exactly one of its parts is set.
type cursorEvent struct {
	cursor  *cursor
	batch   *cursorBatch
	drained bool
	done    bool
	err     error
}

type cursorBatch struct {
	messages []*Received
	broken   []error
}

func newMerge(ordered bool, n int) *merge {
	return &merge{ordered: ordered, events: make(chan cursorEvent, n)}
}

// cursor adds a queue; only before run.
func (m *merge) cursor() *cursor {
	c := &cursor{m: m, credit: make(chan struct{}, batchesAhead)}
	for range batchesAhead {
		c.credit <- struct{}{}
	}
	m.cursors = append(m.cursors, c)
	m.open++
	return c
}

func (c *cursor) send(ctx context.Context, e cursorEvent) bool {
	e.cursor = c
	select {
	case c.m.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// push hands a batch on and waits while too many are ahead. false: reading has ended.
func (c *cursor) push(ctx context.Context, ms []*Received, broken []error) bool {
	select {
	case <-c.credit:
	case <-ctx.Done():
		return false
	}
	c.drained = false
	return c.send(ctx, cursorEvent{batch: &cursorBatch{ms, broken}})
}

// drain says that the queue has nothing more for now. false: reading has ended.
func (c *cursor) drain(ctx context.Context) bool {
	if c.drained {
		return ctx.Err() == nil
	}
	c.drained = true
	return c.send(ctx, cursorEvent{drained: true})
}

// finish says that the queue has been read.
func (c *cursor) finish(ctx context.Context) { c.send(ctx, cursorEvent{done: true}) }

// fail ends the whole reading with an error.
func (c *cursor) fail(ctx context.Context, err error) { c.send(ctx, cursorEvent{err: err}) }

// run delivers until all cursors have finished.
func (m *merge) run(ctx context.Context, f func(*Received) error) error {
	for {
		if err := m.takePending(); err != nil {
			return err
		}
		if delivered, err := m.deliver(f); err != nil {
			return err
		} else if delivered {
			if err := ctx.Err(); err != nil {
				return err
			}
			continue
		}
		if m.open == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-m.events:
			if err := m.take(e); err != nil {
				return err
			}
		}
	}
}

// takePending takes the events that are there.
func (m *merge) takePending() error {
	for {
		select {
		case e := <-m.events:
			if err := m.take(e); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (m *merge) take(e cursorEvent) error {
	c := e.cursor
	switch {
	case e.err != nil:
		return e.err
	case e.done:
		c.done = true
		m.open--
	case e.drained:
		c.empty = true
	default:
		c.empty = false
		m.note(e.batch.broken)
		if len(e.batch.messages) == 0 {
			c.credit <- struct{}{}
			return nil
		}
		c.waiting = append(c.waiting, e.batch.messages)
		if !m.ordered {
			m.ready = append(m.ready, c)
		}
	}
	return nil
}

func (m *merge) note(broken []error) {
	if m.firstBroken == nil && len(broken) > 0 {
		m.firstBroken = broken[0]
	}
	m.broken += len(broken)
}

func (m *merge) brokenError() error {
	if m.broken == 0 {
		return nil
	}
	return &BrokenError{Count: m.broken, First: m.firstBroken}
}

// deliver hands on the next message, or the next batch where order does not matter;
// false when none can be handed on yet.
func (m *merge) deliver(f func(*Received) error) (bool, error) {
	if m.ordered {
		c := m.oldest()
		if c == nil {
			return false, nil
		}
		return true, f(c.pop())
	}
	if len(m.ready) == 0 {
		return false, nil
	}
	c := m.ready[0]
	m.ready = m.ready[1:]
	for n := len(c.waiting[0]); n > 0; n-- {
		if err := f(c.pop()); err != nil {
			return true, err
		}
	}
	return true, nil
}

// pop takes the first message, and gives the pulling goroutine its credit back with
// the last of a batch.
func (c *cursor) pop() *Received {
	m := c.waiting[0][0]
	c.waiting[0] = c.waiting[0][1:]
	if len(c.waiting[0]) == 0 {
		c.waiting = c.waiting[1:]
		c.credit <- struct{}{}
	}
	return m
}

// oldest is the cursor whose first message was stored first; nil while a queue may
// still bring an older one.
func (m *merge) oldest() *cursor {
	var best *cursor
	for _, c := range m.cursors {
		if len(c.waiting) == 0 {
			if !c.done && !c.empty {
				return nil
			}
			continue
		}
		if best == nil || c.waiting[0][0].StoreTimestamp < best.waiting[0][0].StoreTimestamp {
			best = c
		}
	}
	return best
}
