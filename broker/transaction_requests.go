package broker

import (
	"errors"
	"fmt"
	"time"

	"mqx/broker/stats"
	"mqx/broker/transaction"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// notSet is the remark of Apache's successes that set no code of their own.
const notSet = "not set any response code"

// endItem is one END_TRANSACTION on its way.
type endItem struct {
	b    *Broker
	req  *server.Request
	half transaction.Half
	put  store.Put
	at   time.Time
}

// handleEnd serves END_TRANSACTION for all requests that wait: the committed
// messages go to the store together.
func (b *Broker) handleEnd(rs []*server.Request) {
	puts := make([]*store.Put, 0, len(rs))
	now := b.now()
	for _, r := range rs {
		if it := b.prepareEnd(r, now); it != nil {
			puts = append(puts, &it.put)
		}
	}
	if len(puts) > 0 {
		b.putOrForward(puts)
	}
}

// prepareEnd checks one end in Apache's order. A commit comes back as the item
// whose put is to be stored; everything else has been answered.
func (b *Broker) prepareEnd(r *server.Request, now time.Time) *endItem {
	var h remoting.EndTransactionHeader
	if !header(r, &h) {
		return nil
	}
	var d transaction.Decision
	switch h.CommitOrRollback {
	case message.TransactionCommit:
		d = transaction.Commit
	case message.TransactionRollback:
		d = transaction.Rollback
	case message.TransactionNone:
		r.Done() // the producer does not know yet: as Apache, no answer at all
		return nil
	default:
		r.Reply(remoting.RespSystemError, fmt.Sprintf("commitOrRollback %d is none of 0 (unknown), 8 (commit) and 12 (rollback)", h.CommitOrRollback))
		return nil
	}
	rec, err := b.store.RecordAt(h.CommitLogOffset)
	if err != nil {
		if !errors.Is(err, store.ErrNoRecord) {
			b.quiet.Warn("a half message cannot be read", "phys_offset", h.CommitLogOffset, "error", err)
		}
		r.Reply(remoting.RespSystemError, "Find prepared transaction message failed")
		return nil
	}
	view := message.View(rec)
	half, err := transaction.ParseHalf(view)
	if err != nil || string(view.Topic()) != message.TopicHalf {
		r.Reply(remoting.RespSystemError, "Find prepared transaction message failed")
		return nil
	}
	rules := transaction.Rules{Timeout: b.cfg().TransactionTimeOut}
	if rules.TooLate(&half, h.FromTransactionCheck, now.UnixMilli()) {
		r.Reply(remoting.RespIllegalOperation, notSet)
		return nil
	}
	if text := wrongEnd(&half, &h); text != "" {
		r.Reply(remoting.RespSystemError, text)
		return nil
	}
	return b.beginEnd(r, view, half, d, now)
}

// wrongEnd is Apache's text for an end that does not fit the half message.
func wrongEnd(half *transaction.Half, h *remoting.EndTransactionHeader) string {
	switch {
	case string(half.Group) != h.ProducerGroup:
		return "The producer group wrong"
	case half.QueueOffset != h.TranStateTableOffset:
		return "The transaction state table offset wrong"
	case half.Phys != h.CommitLogOffset:
		return "The commit log offset wrong"
	}
	return ""
}

// beginEnd carries a rollback out, or prepares the message of a commit.
func (b *Broker) beginEnd(r *server.Request, rec message.View, half transaction.Half, d transaction.Decision, now time.Time) *endItem {
	t := b.transactions
	t.mu.Lock()
	err := t.mu.book.Begin(half.QueueOffset, half.UniqKey, d)
	open := false
	if err == nil && d == transaction.Rollback {
		open = t.mu.book.Open(half.QueueOffset, half.UniqKey)
		t.ended(t.mu.book.End(half.QueueOffset, half.UniqKey)...)
	}
	t.mu.Unlock()
	var ended *transaction.EndedError
	switch {
	case errors.As(err, &ended) && ended.Same:
		r.Reply(remoting.RespSuccess, notSet) // said twice
		return nil
	case err != nil:
		r.Reply(remoting.RespSystemError, err.Error())
		return nil
	case d == transaction.Rollback:
		t.counts.rollbacks.Add(1)
		b.stats.Counter(stats.RollbackNums, string(half.RealTopic)).Add(1)
		if open {
			t.countOpen(half.RealTopic, -1)
		}
		r.Reply(remoting.RespSuccess, notSet)
		return nil
	}
	it := &endItem{b: b, req: r, half: half, at: now}
	it.put = store.Put{Record: transaction.CommitRecord(rec, &half), WaitFlush: true, Done: it.done}
	it.put.Record.StoreHost = rec.StoreHost()
	if e := b.divert(&it.put.Record, now); e != nil {
		it.abort()
		r.Reply(e.Code, e.Text)
		return nil
	}
	return it
}

func (it *endItem) abort() {
	t := it.b.transactions
	t.mu.Lock()
	t.mu.book.Abort(it.half.QueueOffset)
	t.mu.Unlock()
}

// done answers a commit when its message is stored. One that is in the log without its copies has ended as well, since its op
// message lies behind it in the log: who has that has both. The answer says so, and the offsets of the transactions wait.
func (it *endItem) done(put *store.Put) {
	b := it.b
	if !put.Status.Stored() {
		it.abort()
		code, text := commitOutcome(b, put)
		it.req.Reply(code, text)
		return
	}
	t := b.transactions
	t.mu.Lock()
	open := t.mu.book.Open(it.half.QueueOffset, it.half.UniqKey)
	t.ended(t.mu.book.End(it.half.QueueOffset, it.half.UniqKey)...)
	t.mu.Unlock()
	if open {
		t.countOpen(it.half.RealTopic, -1)
	}
	t.counts.commits.Add(1)
	b.stats.Counter(stats.CommitNums, string(it.half.RealTopic)).Add(1)
	b.countPut(put.Record.Topic, put.Size)
	if put.Status == store.PutOK {
		it.req.Reply(remoting.RespSuccess, "")
		return
	}
	code, text := commitOutcome(b, put)
	it.req.Reply(code, text)
}

// commitOutcome says why a committed message could not be stored, with Apache's
// codes.
func commitOutcome(b *Broker, put *store.Put) (int32, string) {
	if put.Status == store.OSPageCacheBusy {
		return remoting.RespSystemError, "OS page cache busy, please try another machine." + cause(put.Err)
	}
	return b.sendOutcome(put)
}

// fillHalf turns a send into its half message. What cannot be delivered once it
// is committed is refused now.
func (b *Broker) fillHalf(it *sendItem, p *sendProps, now time.Time) *refusedError {
	r := &it.put.Record
	if p.delay != nil || p.timer != "" {
		probe := *r
		probe.SysFlag &^= message.FlagTransactionMask // as its committed message will be
		if e := b.divert(&probe, now); e != nil {
			return e
		}
	}
	props := transaction.AppendHalfProperties(nil, r.Properties, it.key, it.topic.TopicName, r.QueueID)
	transaction.HalfRecord(r, props)
	if half := b.topics.Get(message.TopicHalf); half != nil {
		it.topic = half
	}
	return nil
}

// handleResumeCheck serves RESUME_CHECK_HALF_MESSAGE: a half message (or one
// that was given up) is checked again from the beginning, as a copy.
func (b *Broker) handleResumeCheck(r *server.Request) {
	var h remoting.ResumeCheckHalfMessageHeader
	if !header(r, &h) {
		return
	}
	rec, phys := b.recordOf(r, h.MsgID)
	if rec == nil {
		return
	}
	view := message.View(rec)
	half, err := transaction.ParseHalf(view)
	if t := string(view.Topic()); err != nil || t != message.TopicHalf && t != message.TopicTransCheckMaxTime {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the message at %d of topic %q is no half message", phys, view.Topic()))
		return
	}
	b.putOwn(transaction.ResumedRecord(view), false, func(put *store.Put) {
		if put.Status != store.PutOK {
			r.Reply(remoting.RespSystemError, "Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed."+cause(put.Err))
			return
		}
		b.transactions.resumed(&half, put.QueueOffset, string(view.Topic()) == message.TopicHalf)
		b.log.Info("a half message is checked again from the beginning", "topic", string(half.RealTopic), "uniq_key", string(half.UniqKey), "peer", r.Conn().Remote())
		r.Reply(remoting.RespSuccess, "")
	})
}

// resumed notes the copy that stands for a half message from now on.
func (t *transactions) resumed(half *transaction.Half, to int64, live bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if live && t.mu.book.Move(half.QueueOffset) {
		_, ops := t.mu.book.Moved(half.QueueOffset, to, half.UniqKey)
		t.ended(ops...)
	} else {
		t.countOpen(half.RealTopic, 1)
	}
}
