package broker

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mqx/broker/transaction"
	"mqx/message"
	"mqx/store"
)

var halfTopicName = []byte(message.TopicHalf)

// Limits of the transaction service.
const (
	halfQueue      = 0 // the half and op topics have one queue
	halfReadMost   = 32
	checkGroup     = 64               // half messages that are copied together before their producers are asked
	checkRoundMost = 60 * time.Second // of one round, Apache's limit
	opRetry        = time.Second      // after an op message that could not be stored
	opBatchMost    = 64               // op messages that are stored together
)

// transactions is the broker's transaction service: it knows which half messages
// have ended, writes op messages, and asks producers. What it knows is rebuilt
// from the two topics and the offsets of CID_RMQ_SYS_TRANS at the start.
type transactions struct {
	b *Broker
	// kick wakes Run for op messages, changed for the file of open transactions;
	// round asks for a round of checks at once.
	kick, changed, round chan struct{}

	open *openTransactions
	mu   struct {
		sync.Mutex
		book  *transaction.Book
		batch transaction.Batch
	}

	// Owned by runChecks.
	cursor  int64 // where the next round begins
	waiting int   // half messages that the last round left where they are
	// unsent are half messages whose last check could not be sent: it does not count. At a restart that is forgotten.
	unsent    map[int64]struct{}
	committed progress
	retryAt   time.Time // owned by runOps: not before

	counts transactionCounts
}

// progress is how far the two queues are done with.
type progress struct{ half, op int64 }

// transactionCounts count what operators ask about.
type transactionCounts struct {
	commits, rollbacks, checks, discarded, poisoned, unanswerable atomic.Int64
}

func newTransactions(b *Broker) *transactions {
	open := newOpenTransactions(b.fsys, b.configFile("transactionMetrics"), b.now)
	return &transactions{b: b, open: open, unsent: map[int64]struct{}{}, kick: make(chan struct{}, 1), changed: make(chan struct{}, 1), round: make(chan struct{}, 1)}
}

// Load reads what the store and the committed offsets tell.
func (t *transactions) Load() error {
	start := func(topic string) int64 {
		at, ok := t.b.offsets.Committed(topic, message.GroupTransaction, halfQueue)
		first := t.b.store.MinOffset(topic, halfQueue)
		if !ok {
			return first
		}
		return min(max(at, first), t.b.store.EndOffset(topic, halfQueue))
	}
	half, op := start(message.TopicHalf), start(message.TopicHalfOp)
	t.committed = progress{half: half, op: op}
	book := transaction.NewBook(half, op)
	end := t.b.store.EndOffset(message.TopicHalf, halfQueue)
	err := t.readAll(message.TopicHalfOp, op, func(at int64) int64 { return at }, func(rec message.View) {
		if bad := book.LoadOp(rec.QueueOffset(), rec, end); bad > 0 {
			t.b.log.Warn("an op message names no half message", "queue_offset", rec.QueueOffset(), "entries", bad)
		}
	})
	if err != nil {
		return err
	}
	open := map[string]int64{}
	err = t.readAll(message.TopicHalf, half, book.Next, func(rec message.View) {
		if h, err := transaction.ParseHalf(rec); err == nil && book.LoadHalf(&h) {
			open[string(h.RealTopic)]++
		}
	})
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.mu.book = book
	t.ended(book.Loaded()...)
	t.mu.Unlock()
	if err := t.open.load(open); err != nil {
		t.b.log.Warn("the counts of open transactions were made anew", "error", err)
	}
	return nil
}

// readAll gives the messages of a queue from an offset on to f, those too that the start has held back. next is the first
// offset from another one on that is wanted; it may change with what f is given.
func (t *transactions) readAll(topic string, from int64, next func(int64) int64, f func(message.View)) error {
	wanted := func(rec message.View) {
		if off := rec.QueueOffset(); off >= from && next(off) == off {
			f(rec)
		}
	}
	for at, last := next(from), t.b.store.MaxOffset(topic, halfQueue); at < last; at = next(at) {
		var err error
		if at, err = t.read(topic, at, halfReadMost, wanted); err != nil {
			return err
		}
	}
	return t.b.store.EachHeld(topic, halfQueue, func(rec message.View) error {
		wanted(rec)
		return nil
	})
}

// read gives the messages of a queue from an offset on to f and returns the next
// offset, which is always greater. A record is valid during its call only.
func (t *transactions) read(topic string, from int64, most int, f func(message.View)) (next int64, err error) {
	res := t.b.store.Get(store.GetRequest{Group: message.GroupTransaction, Topic: topic, QueueID: halfQueue, Offset: from, MaxMsgs: most})
	defer res.Release()
	if res.Err != nil {
		return from, fmt.Errorf("cannot read %q at queue offset %d: %w", topic, from, res.Err)
	}
	for _, part := range res.Parts {
		for len(part) > 0 {
			rec := message.View(part)
			n := int(rec.Size())
			if n < message.MinRecordLen || n > len(part) {
				return from, fmt.Errorf("cannot read %q at queue offset %d: a record of %d bytes", topic, from, n)
			}
			f(rec[:n:n])
			part = part[n:]
		}
	}
	return max(res.NextOffset, from+1), nil
}

// Run writes op messages and makes rounds of checks until ctx ends; then it
// writes down what has ended and saves how far it is.
func (t *transactions) Run(ctx context.Context) {
	var ops sync.WaitGroup
	ops.Go(func() { t.runOps(ctx) }) // a round, which may wait for the disk, does not hold the marks of ends back
	t.runChecks(ctx)
	ops.Wait()
	t.writeOps(true)
	t.advance()
	t.saveOpen()
}

// runOps writes op messages when they are due.
func (t *transactions) runOps(ctx context.Context) {
	ops := time.NewTimer(time.Hour)
	defer ops.Stop()
	for {
		if at, ok := t.opsDue(); ok {
			ops.Reset(max(0, at.Sub(t.b.now())))
		} else {
			ops.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-t.kick:
		case <-ops.C:
			t.writeOps(false)
		}
	}
}

// runChecks makes rounds of checks and keeps the file of open transactions.
func (t *transactions) runChecks(ctx context.Context) {
	checks := time.NewTimer(t.interval())
	defer checks.Stop()
	saves := time.NewTimer(time.Hour)
	defer saves.Stop()
	for {
		if at, ok := t.open.due(t.b.cfg().TransactionMetricFlush); ok {
			saves.Reset(max(0, at.Sub(t.b.now())))
		} else {
			saves.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-t.changed:
		case <-saves.C:
			t.saveOpen()
		case <-t.round:
			t.check(ctx)
		case <-checks.C:
			t.check(ctx)
			checks.Reset(t.interval())
		}
	}
}

func (t *transactions) interval() time.Duration {
	return max(t.b.cfg().TransactionCheckInterval, 10*time.Millisecond)
}

// opsDue is when the next op messages are to be written.
func (t *transactions) opsDue() (time.Time, bool) {
	cfg := t.b.cfg()
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.mu.batch.Due(cfg.TransactionOpMsgMaxSize, cfg.TransactionOpBatchInterval)
	if ok && at.Before(t.retryAt) {
		at = t.retryAt
	}
	return at, ok
}

// ended adds half offsets to the op messages to be written. Needs mu.
func (t *transactions) ended(offs ...int64) {
	if len(offs) == 0 {
		return
	}
	cfg := t.b.cfg()
	_, was := t.mu.batch.Due(cfg.TransactionOpMsgMaxSize, cfg.TransactionOpBatchInterval)
	before := t.mu.batch.Full(cfg.TransactionOpMsgMaxSize)
	t.mu.batch.Add(t.b.now(), offs...)
	if !was || !before && t.mu.batch.Full(cfg.TransactionOpMsgMaxSize) {
		signal(t.kick)
	}
}

// writeOps writes the op messages that are due; with all, whatever waits.
func (t *transactions) writeOps(all bool) {
	for {
		puts, more := t.takeOps(all)
		if len(puts) == 0 {
			return
		}
		t.b.putOwnBatch(puts) // done, since none waits for a flush
		failed := false
		t.mu.Lock()
		for i := len(puts) - 1; i >= 0; i-- { // so that what goes back keeps its order
			p := puts[i]
			offs, _ := p.User.([]int64)
			if p.Status != store.PutOK {
				failed = true
				t.mu.batch.Return(t.b.now(), offs)
				t.b.quiet.Warn("an op message could not be stored; it is tried again", "status", p.Status.String(), "error", p.Err)
			}
		}
		for _, p := range puts {
			if offs, ok := p.User.([]int64); ok && p.Status == store.PutOK {
				t.mu.book.Wrote(p.QueueOffset, offs)
			}
		}
		t.mu.Unlock()
		if failed {
			t.retryAt = t.b.now().Add(opRetry)
			return
		}
		if !more {
			return
		}
	}
}

// takeOps makes op messages of what is due.
func (t *transactions) takeOps(all bool) (puts []*store.Put, more bool) {
	cfg, now := t.b.cfg(), t.b.now()
	limit := cfg.TransactionOpMsgMaxSize
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(puts) < opBatchMost {
		at, ok := t.mu.batch.Due(limit, cfg.TransactionOpBatchInterval)
		if !ok || !all && at.After(now) {
			return puts, false
		}
		body, offs := t.mu.batch.Take(now, limit)
		rec := transaction.OpRecord(body, now.UnixMilli())
		rec.BornHost, rec.StoreHost = t.b.at().storeHost, t.b.at().storeHost
		puts = append(puts, &store.Put{Record: rec, Done: func(*store.Put) {}, User: offs})
	}
	return puts, true
}

// advance moves the offsets of the two queues over what is done with. They are
// committed once everything that they build upon is durable: a copy of a half
// message must not be lost with its original passed over. The same holds for its copies at slaves, which are told of the offsets.
func (t *transactions) advance() {
	first := t.b.store.MinOffset(message.TopicHalf, halfQueue)
	t.mu.Lock()
	t.mu.book.Advance(first)
	n := progress{half: t.mu.book.Floor(), op: t.mu.book.OpOffset()}
	t.mu.Unlock()
	if n == t.committed {
		return
	}
	if err := t.b.store.Flush(); err != nil {
		t.b.quiet.Warn("the progress of the transaction checks is not saved: the log cannot be flushed", "error", err)
		return
	}
	if !t.b.copiedInTime(t.b.store.LogEnd()) {
		return
	}
	if n.half != t.committed.half {
		t.b.offsets.set(offsetKey{topic: message.TopicHalf, group: message.GroupTransaction}, halfQueue, n.half)
	}
	if n.op != t.committed.op {
		t.b.offsets.set(offsetKey{topic: message.TopicHalfOp, group: message.GroupTransaction}, halfQueue, n.op)
	}
	t.committed = n
}
