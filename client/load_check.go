package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"mqx/remoting"
)

// ledger is what a produce load wrote down about its messages, and what was found of
// them when read back.
type ledger struct {
	run uint64

	mu struct {
		sync.Mutex
		pages []*producerPage
		// found
		checked, duplicated, disorder, corrupt int64
	}
}

func newLedger() *ledger { return &ledger{run: rand.Uint64()} }

// page opens the account of one more producer.
func (l *ledger) page() *producerPage {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &producerPage{run: l.run, producer: uint32(len(l.mu.pages)), last: map[remoting.MessageQueue]uint64{}}
	l.mu.pages = append(l.mu.pages, p)
	return p
}

// producerPage is the account of one producer. While producing it belongs to the
// connection of its slot, afterwards to those who read back, under the ledger's lock.
type producerPage struct {
	run      uint64
	producer uint32
	next     uint64 // number of the next message
	given    uint32 // given up so far
	acked    bitmap
	seen     bitmap
	last     map[remoting.MessageQueue]uint64 // number+1 of the last one found in a queue
}

// mark is that of the i-th message of the next request.
func (p *producerPage) mark(i int) loadMark {
	return loadMark{run: p.run, producer: p.producer, givenUp: p.given, number: p.next + uint64(i)}
}

func (p *producerPage) acknowledge(n int) {
	for range n {
		p.acked.set(p.next)
		p.next++
	}
}

// giveUp passes over the numbers of a request whose outcome is not known.
func (p *producerPage) giveUp(n int) {
	p.next += uint64(n)
	p.given += uint32(n)
}

// found notes a message that was read back.
func (l *ledger) found(q remoting.MessageQueue, m loadMark, whole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.run != l.run || int(m.producer) >= len(l.mu.pages) {
		return
	}
	if !whole {
		l.mu.corrupt++
		return
	}
	p := l.mu.pages[m.producer]
	l.mu.checked++
	if p.seen.has(m.number) {
		l.mu.duplicated++
		return
	}
	p.seen.set(m.number)
	if last := p.last[q]; m.number < last {
		l.mu.disorder++
		return
	}
	p.last[q] = m.number + 1
}

// broke notes answers whose records could not be read.
func (l *ledger) broke(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.corrupt += n
}

// missing counts the acknowledged messages that were not found.
func (l *ledger) missing() (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.mu.pages {
		for number := range p.next {
			if p.acked.has(number) && !p.seen.has(number) {
				n++
			}
		}
	}
	return n
}

func (l *ledger) report(r *LoadReport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Verified = true
	r.Checked, r.Duplicated, r.OutOfOrder, r.Corrupt = l.mu.checked, l.mu.duplicated, l.mu.disorder, l.mu.corrupt
}

// dispatchGrace is how long acknowledged messages may take to become visible.
var dispatchGrace = 30 * time.Second

// readBack reads everything that came into the queues since the load began, until all
// acknowledged messages were found or dispatchGrace is over.
func readBack(ctx context.Context, c *core, cfg *LoadConfig, brokers []*loadBroker, book *ledger, report *LoadReport) error {
	deadline := time.Now().Add(dispatchGrace)
	if cfg.DelayLevel > 0 {
		deadline = deadline.Add(time.Minute)
	}
	deadline = deadline.Add(2 * cfg.Delay)
	for {
		if err := readOn(ctx, c, cfg, brokers, book); err != nil {
			return err
		}
		missing := book.missing()
		if missing == 0 || time.Now().After(deadline) {
			report.Lost = missing
			book.report(report)
			return nil
		}
		if !sleep(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// readOn reads the queues from where they were read last to where they end now.
func readOn(ctx context.Context, c *core, cfg *LoadConfig, brokers []*loadBroker, book *ledger) error {
	err := eachQueue(ctx, brokers, func(ctx context.Context, b *loadBroker, q *loadQueue) (err error) {
		q.start = q.end
		q.end, err = maxOffsetAt(ctx, c, b, q)
		return err
	})
	if err != nil {
		return err
	}
	rc := *cfg
	rc.Batch, rc.Count, rc.Duration, rc.Warmup, rc.InFlight, rc.Progress = 32, 1<<62, 0, 0, readBackInFlight, nil
	run := newLoadRun(&rc, kindConsume)
	var sources []*consumeSource
	for _, b := range brokers {
		err := run.add(b.addr, len(brokers), func(slots int) (loadSource, error) {
			s, err := newConsumeSource(&rc, b, slots)
			if err == nil {
				s.found = func(q *loadQueue, m loadMark, whole bool) { book.found(q.MessageQueue, m, whole) }
				sources = append(sources, s)
			}
			return s, err
		})
		if err != nil {
			return err
		}
	}
	shareQueues(sources)
	rep, err := run.do(ctx)
	if err != nil {
		return fmt.Errorf("cannot read back what was sent: %w", err)
	}
	if rep.Errors > 0 {
		c.log.Warn("errors when reading back", "count", rep.Errors, "kinds", rep.ErrorKinds)
	}
	for _, s := range sources {
		book.broke(s.broken)
	}
	return nil
}

// readBackInFlight is the number of pulls under way when reading back.
const readBackInFlight = 16

// tally checks numbers without knowing what was acknowledged: messages of producers of
// any run, by what they say themselves. It belongs to one connection.
type tally struct {
	producers                              map[tallyKey]*tallyPage
	checked, duplicated, disorder, corrupt int64
}

type tallyKey struct {
	run      uint64
	producer uint32
}

type tallyPage struct {
	seen    bitmap
	count   int64
	highest uint64 // number of the latest one
	givenUp uint32 // as the latest one says
	last    map[remoting.MessageQueue]uint64
}

func newTally() *tally { return &tally{producers: map[tallyKey]*tallyPage{}} }

func (t *tally) page(k tallyKey) *tallyPage {
	p := t.producers[k]
	if p == nil {
		p = &tallyPage{last: map[remoting.MessageQueue]uint64{}}
		t.producers[k] = p
	}
	return p
}

func (t *tally) found(q remoting.MessageQueue, m loadMark, whole bool) {
	if !whole {
		t.corrupt++
		return
	}
	t.checked++
	p := t.page(tallyKey{m.run, m.producer})
	if p.seen.has(m.number) {
		t.duplicated++
		return
	}
	p.seen.set(m.number)
	p.count++
	if m.number >= p.highest {
		p.highest, p.givenUp = m.number, m.givenUp
	}
	if last := p.last[q]; m.number < last {
		t.disorder++
		return
	}
	p.last[q] = m.number + 1
}

// merge adds what another connection found; queues are read by one connection only.
func (t *tally) merge(o *tally) {
	t.checked += o.checked
	t.duplicated += o.duplicated
	t.disorder += o.disorder
	t.corrupt += o.corrupt
	for k, op := range o.producers {
		p := t.page(k)
		for i, word := range op.seen {
			for bit := range uint64(64) {
				if word&(1<<bit) == 0 {
					continue
				}
				n := uint64(i)*64 + bit
				if p.seen.has(n) {
					t.duplicated++
					continue
				}
				p.seen.set(n)
				p.count++
			}
		}
		if op.highest >= p.highest {
			p.highest, p.givenUp = op.highest, op.givenUp
		}
	}
}

func (t *tally) report(r *LoadReport, brokers []*loadBroker) {
	r.Verified = true
	r.Checked, r.Duplicated, r.OutOfOrder, r.Corrupt = t.checked, t.duplicated, t.disorder, t.corrupt
	for _, b := range brokers {
		for _, q := range b.queues {
			r.LossUnknown = r.LossUnknown || q.min > 0
		}
	}
	if r.LossUnknown {
		return
	}
	for _, p := range t.producers {
		r.Lost += max(int64(p.highest)+1-p.count-int64(p.givenUp), 0)
	}
}
