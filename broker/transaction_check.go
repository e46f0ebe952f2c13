package broker

import (
	"context"
	"errors"
	"maps"
	"time"

	"mqx/broker/transaction"
	"mqx/message"
	"mqx/remoting"
	"mqx/store"
)

// checkRound is one walk over the half messages that have not ended.
type checkRound struct {
	t          *transactions
	rules      transaction.Rules
	start      time.Time
	end        int64 // of the half queue when the round began
	waiting    int
	moves      []move
	unreadable int
}

// move is a half message that is to be replaced by a copy.
type move struct {
	half transaction.Half // its slices are copies
	from int64
	rec  message.Record
	peer asker // whom to ask then, nil for nobody

	unsent bool // the check before could not be sent
}

// asker is a producer that can be asked.
type asker interface {
	Send(cmd *remoting.Command) error
}

// check makes one round: it asks about what has waited long enough, gives up
// what was asked about too often, and moves the offsets forward. A half message
// that cannot be read or stored now is tried in the next round; it stops nobody
// else.
func (t *transactions) check(ctx context.Context) {
	cfg := t.b.cfg()
	c := &checkRound{
		t: t, start: t.b.now(), end: t.b.store.MaxOffset(message.TopicHalf, halfQueue),
		rules: transaction.Rules{
			Timeout: cfg.TransactionTimeOut, MaxChecks: cfg.TransactionCheckMax,
			Keep: time.Duration(cfg.Store.FileReservedHours) * time.Hour,
		},
	}
	if first := t.b.store.MinOffset(message.TopicHalf, halfQueue); t.cursor < first {
		t.cursor = first
	}
	t.mu.Lock()
	floor := t.mu.book.Floor()
	t.mu.Unlock()
	maps.DeleteFunc(t.unsent, func(off int64, _ struct{}) bool { return off < floor })
	off, whole := t.cursor, false
	for ctx.Err() == nil && t.b.now().Sub(c.start) < checkRoundMost {
		if off = t.skipDone(off); off >= c.end {
			whole = true
			break
		}
		off = c.examine(off)
		if len(c.moves) >= checkGroup {
			c.carryOut()
		}
	}
	c.carryOut()
	t.cursor, t.waiting = off, c.waiting
	if whole {
		t.cursor = 0 // from the floor again
	}
	if c.unreadable > 0 {
		t.b.quiet.Warn("half messages could not be read; they are tried again", "messages", c.unreadable)
	}
	t.advance()
}

// skipDone is the next half offset that is neither done with nor about to be.
func (t *transactions) skipDone(off int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		off = t.mu.book.Next(off)
		if !t.mu.book.Done(off) {
			return off
		}
		off++
	}
}

// examine decides about the half message at an offset and returns where to go on.
func (c *checkRound) examine(off int64) int64 {
	found := false
	next, err := c.t.read(message.TopicHalf, off, 1, func(rec message.View) {
		if rec.QueueOffset() == off {
			found = true
			c.decide(off, rec)
		}
	})
	switch {
	case err != nil:
		c.unreadable++
		return off + 1
	case found:
		return off + 1
	}
	// There is nothing at these offsets any more.
	next = min(next, c.end)
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	for o := off; o < next; o++ {
		c.t.mu.book.GiveUp(o, nil)
	}
	return max(next, off+1)
}

func (c *checkRound) decide(off int64, rec message.View) {
	b := c.t.b
	h, err := transaction.ParseHalf(rec)
	if errors.Is(err, transaction.ErrNoHalf) {
		c.t.counts.poisoned.Add(1)
		b.quiet.Warn("a record of the half topic is no half message; it is put aside", "queue_offset", off, "phys_offset", h.Phys, "error", err)
		c.discard(off, rec, &h)
		return
	}
	if h.Store >= c.start.UnixMilli() {
		c.waiting++
		return
	}
	if _, unsent := c.t.unsent[off]; unsent {
		h.Checks = max(0, h.Checks-1)
	}
	switch c.rules.Judge(&h, b.now().UnixMilli()) {
	case transaction.Discard:
		b.log.Warn("a half message is given up: it was checked too often or is too old",
			"topic", string(h.RealTopic), "uniq_key", string(h.UniqKey), "checks", h.Checks, "queue_offset", off)
		c.discard(off, rec, &h)
	case transaction.Check:
		if peer := b.producers.Available(string(h.Group)); peer != nil {
			c.move(off, rec, &h, peer)
			return
		}
		c.t.counts.unanswerable.Add(1)
		c.leave(off, rec, &h)
	default:
		c.leave(off, rec, &h)
	}
}

// leave keeps a half message where it is, as long as the queue's offsets can
// stay with it.
func (c *checkRound) leave(off int64, rec message.View, h *transaction.Half) {
	c.waiting++
	if transaction.FarBehind(off, c.end, c.t.waiting) {
		c.move(off, rec, h, nil)
	}
}

// move plans the copy of a half message.
func (c *checkRound) move(off int64, rec message.View, h *transaction.Half, peer asker) {
	own := message.View(append([]byte(nil), rec...))
	half, err := transaction.ParseHalf(own)
	if err != nil { // it was one a moment ago
		return
	}
	c.t.mu.Lock()
	ok := c.t.mu.book.Move(off)
	c.t.mu.Unlock()
	if !ok {
		return
	}
	_, unsent := c.t.unsent[off]
	delete(c.t.unsent, off)
	m := move{half: half, from: off, peer: peer, unsent: unsent}
	if peer != nil {
		m.rec = transaction.CheckedRecord(own, h)
	} else {
		m.rec = transaction.WaitingRecord(own, h)
	}
	m.rec.StoreHost = c.t.b.at().storeHost
	c.moves = append(c.moves, m)
}

// discard copies a half message to the topic of those that were given up. When
// that fails it stays for the next round.
func (c *checkRound) discard(off int64, rec message.View, h *transaction.Half) {
	t := c.t
	t.mu.Lock()
	ok := t.mu.book.Move(off) // so that an end waits for what becomes of it
	t.mu.Unlock()
	if !ok {
		return
	}
	stored := false
	if err := t.b.ensureDiscardTopic(); err == nil {
		r := transaction.DiscardRecord(rec)
		t.b.putOwn(r, false, func(p *store.Put) {
			stored = p.Status == store.PutOK
			if !stored {
				t.b.quiet.Warn("a half message that is given up could not be stored", "status", p.Status.String(), "error", p.Err)
			}
		})
	} else {
		t.b.quiet.Warn("the topic of half messages that are given up could not be created", "error", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.book.Moved(off, -1, nil)
	if stored {
		t.mu.book.GiveUp(off, h.UniqKey)
		t.ended(off)
		t.counts.discarded.Add(1)
		if len(h.RealTopic) > 0 {
			t.countOpen(h.RealTopic, -1)
		}
	}
}

// carryOut stores the copies and asks the producers.
func (c *checkRound) carryOut() {
	t := c.t
	if len(c.moves) == 0 {
		return
	}
	puts := make([]*store.Put, len(c.moves))
	for i := range c.moves {
		puts[i] = &store.Put{Record: c.moves[i].rec, Done: func(*store.Put) {}}
	}
	t.b.putOwnBatch(puts)
	for i, p := range puts {
		m := &c.moves[i]
		to := int64(-1)
		if p.Status == store.PutOK {
			to = p.QueueOffset
		} else {
			t.b.quiet.Warn("a half message could not be copied; it is tried again", "status", p.Status.String(), "error", p.Err)
		}
		t.mu.Lock()
		ask, ops := t.mu.book.Moved(m.from, to, m.half.UniqKey)
		t.ended(ops...)
		t.mu.Unlock()
		switch {
		case to < 0 && m.unsent:
			t.markUnsent(m.from)
		case to >= 0 && (m.peer == nil && m.unsent || m.peer != nil && ask && !t.ask(m, p)):
			t.markUnsent(to)
		}
	}
	c.moves = c.moves[:0]
}

// maxUnsent bounds the half messages whose check could not be sent. For one that
// is not remembered it counts.
const maxUnsent = 100_000

func (t *transactions) markUnsent(off int64) {
	if len(t.unsent) < maxUnsent {
		t.unsent[off] = struct{}{}
	}
}

// ask sends CHECK_TRANSACTION_STATE for the copy of a half message and reports
// whether a producer got it.
func (t *transactions) ask(m *move, p *store.Put) bool {
	b, h := t.b, &m.half
	head := &remoting.CheckTransactionStateHeader{
		Topic: message.TopicHalf, TranStateTableOffset: p.QueueOffset, CommitLogOffset: p.PhysicalOffset,
		MsgID: string(h.UniqKey), TransactionID: string(h.UniqKey),
		OffsetMsgID: string(message.AppendOffsetID(nil, b.at().storeHost, p.PhysicalOffset)),
	}
	head.BName = b.cfg().BrokerName
	cmd := remoting.NewRequest(remoting.ReqCheckTransactionState, head)
	cmd.Flag |= remoting.FlagOneway
	cmd.Body = transaction.CheckBody(&m.rec, h, p.QueueOffset, p.PhysicalOffset)
	for range producerTries {
		err := m.peer.Send(cmd)
		if err == nil {
			t.counts.checks.Add(1)
			return true
		}
		b.log.Debug("a producer could not be asked about a half message", "group", string(h.Group), "error", err)
		if m.peer = b.producers.Available(string(h.Group)); m.peer == nil {
			return false
		}
	}
	return false
}

// producerTries bounds the producers that are tried for one check.
const producerTries = 3

// ensureDiscardTopic makes TRANS_CHECK_MAX_TIME_TOPIC.
func (b *Broker) ensureDiscardTopic() error {
	if b.topics.Get(message.TopicTransCheckMaxTime) != nil {
		return nil
	}
	_, err := b.topics.PutIfAbsent(groupTopic(message.TopicTransCheckMaxTime, 1, 0))
	return err
}
