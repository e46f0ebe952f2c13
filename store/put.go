package store

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mqx/internal/failpoint"
	"mqx/message"
	"mqx/store/commitlog"
)

// recordReserve is how much longer than the largest body a record may be.
const recordReserve = 64 << 10

// Put is one message (or one batch) on its way into the log, and what became of it.
type Put struct {
	// Record is the message. Its queue offset, physical offset and store time are assigned by
	// the store; the transaction kind is in SysFlag. Body, Topic and Properties are not kept
	// once PutBatch has returned.
	Record message.Record
	// Batch says that Record.Body is a list of messages (docs/format/batch.md); each becomes a record
	// with Record.Properties appended to its own.
	Batch bool
	// Inner says that Record.Body is such a list, of Inner messages, and becomes one record with as many queue offsets
	// (docs/format/batch.md): only for topics with batch queues. The store adds INNER_BASE; INNER_NUM and the flags are
	// the caller's. Without Inner or Whole a record with message.FlagInnerBatch is refused.
	Inner int16
	// Whole says that the record is such a batch from another queue, stored once more as one message, with one queue offset
	// (a batch that is revived for its retry topic).
	Whole bool
	// WaitFlush asks for Done only after the record is durable when the store flushes
	// synchronously (property WAIT, true unless the producer says otherwise).
	WaitFlush bool
	// Again says that the message was accepted before and is stored once more: maxMessageSize, which may be another now,
	// does not apply.
	Again bool
	// Done is called exactly once, maybe on another goroutine and maybe before PutBatch
	// returned; it must not block. Puts of one PutBatch that become durable together are completed in one go.
	Done func(*Put)
	// Began and Appended are when the append that it was part of began and had ended: the times
	// of its lock are between the two. Set before Done; zero for one that was refused.
	Began, Appended time.Time
	// Flushed and Copied are when the flush and the replicas that it waited for had ended, well or not; zero: it did not
	// wait for that. Both run at a time, from Appended on.
	Flushed, Copied time.Time
	// User is the caller's.
	User any

	// Results.
	Status         Status
	Err            error // why the message was refused, or why its durability is not known
	PhysicalOffset int64
	QueueOffset    int64 // of the first message of a batch
	StoreTimestamp int64
	Size           int32   // bytes appended
	Offsets        []int64 // physical offsets of a batch, in order
}

// putWork is the memory that one PutBatch needs, used again.
type putWork struct {
	s       *Store
	buf     []byte
	sizes   []int32
	appends []commitlog.Append
	items   []*commitlog.Append
	puts    []*Put // of items, in the same order
	waiting []*Put // for the flush
	refused []*Put
	props   []byte
	flushed func(error) // onFlushed, bound once
	copied  func(bool)  // onCopied, bound once

	left     atomic.Int32 // what the waiting puts wait for: the flush, the slaves
	flushErr error
	// flushedAt and copiedAt are when the flush and the replicas that puts waited for had ended.
	flushedAt, copiedAt time.Time
	uncopied            bool
}

// maxKeptBuffer bounds the encode buffer that is kept for the next PutBatch.
const maxKeptBuffer = 4 << 20

var putPool sync.Pool

func newPutWork(s *Store) *putWork {
	w, _ := putPool.Get().(*putWork)
	if w == nil {
		w = &putWork{}
		w.flushed, w.copied = w.onFlushed, w.onCopied
	}
	w.s = s
	return w
}

func (w *putWork) free() {
	clear(w.items)
	clear(w.appends)
	clear(w.puts)
	clear(w.waiting)
	clear(w.refused)
	w.s, w.items, w.appends, w.puts, w.waiting = nil, w.items[:0], w.appends[:0], w.puts[:0], w.waiting[:0]
	w.refused = w.refused[:0]
	w.sizes, w.buf, w.props = w.sizes[:0], w.buf[:0], w.props[:0]
	if cap(w.buf) > maxKeptBuffer {
		w.buf = nil
	}
	putPool.Put(w)
}

// PutBatch validates and encodes the puts on the caller's goroutine, appends them under one
// lock and completes each when the wanted durability is reached. It does not wait for that.
func (s *Store) PutBatch(ps []*Put) {
	if status, err := s.refusal(); status != PutOK {
		for _, p := range ps {
			p.fail(status, err)
			s.stats.putFailed.Add(1)
			p.Done(p)
		}
		return
	}
	// Whoever deletes a topic waits for those who hold its queues.
	s.putting.RLock()
	w := s.encodePuts(ps)
	began := time.Now()
	s.log.AppendBatch(w.items)
	s.appended(w, ps, began)
}

const (
	// slowAppend is an append that an event loop should not have waited for.
	slowAppend = 10 * time.Millisecond
	// slowFor is how long TryPutBatch does nothing after such a one.
	slowFor = time.Second
	// maxTryBytes bounds the records of one TryPutBatch.
	maxTryBytes = 512 << 10
)

// TryPutBatch is PutBatch for who must not wait for more than a write to the page cache. It returns false, having done
// nothing, where the store refuses puts, the append lock is not to be had soon, the records need a new file or space that
// is not reserved yet, or appends have been slow lately.
func (s *Store) TryPutBatch(ps []*Put) bool {
	if slow := s.stats.putSlowAt.Load(); slow != 0 && int64(time.Since(s.stats.epoch))-slow < int64(slowFor) {
		return false
	}
	if status, _ := s.refusal(); status != PutOK || !s.putting.TryRLock() {
		return false
	}
	w := s.encodePuts(ps)
	began := time.Now()
	if len(w.buf) > maxTryBytes || !s.log.TryAppendBatch(w.items) {
		s.putting.RUnlock()
		w.free()
		return false
	}
	s.appended(w, ps, began)
	return true
}

// encodePuts validates and encodes. The caller holds s.putting.
func (s *Store) encodePuts(ps []*Put) *putWork {
	w := newPutWork(s)
	w.reserve(ps)
	closed := s.shut() // looked at again: Close, Follow and Fence wait for whoever is in here, and others have waited for them
	for _, p := range ps {
		if closed != nil {
			p.fail(ServiceNotAvailable, closed)
			w.refused = append(w.refused, p)
		} else if err := s.admit(p); err != nil {
			p.fail(InSyncReplicasNotEnough, err)
			w.refused = append(w.refused, p)
		} else if status, err := w.add(p); status != PutOK {
			p.fail(status, err)
			w.refused = append(w.refused, p)
		}
	}
	return w
}

// appended goes on with puts whose append began at a time. It lets go of s.putting and gives w away.
func (s *Store) appended(w *putWork, ps []*Put, began time.Time) {
	appended := time.Now()
	took := int64(appended.Sub(began))
	for _, p := range ps {
		p.Began, p.Appended = began, appended
	}
	if took > int64(slowAppend) {
		s.stats.putSlowAt.Store(int64(appended.Sub(s.stats.epoch)))
	}
	if took > s.stats.putMaxNs.Load() {
		s.stats.putMaxNs.Store(took) // two at once may lose one: it is a figure to look at
	}
	failpoint.Pass(failpoint.Appended)
	if len(w.items) > 0 {
		s.stats.appendTimes.Observe(took, 1)
		if s.cfg.FlushDiskType == SyncFlush {
			s.log.KickFlush() // the disk works while the queues are built
		}
		s.dispatcher.follow(w.items, appended)
	}
	s.putting.RUnlock()
	w.finish()
}

func (p *Put) fail(status Status, err error) { p.Status, p.Err = status, err }

// shut tells why the store has been made to take no messages.
func (s *Store) shut() error {
	if s.closing.Load() {
		return errClosing
	}
	if s.cfg.Follow {
		return errFollowing
	}
	if why := s.fenced.Load(); why != nil {
		return *why
	}
	return nil
}

// refusal tells why the store takes no message at all now.
func (s *Store) refusal() (Status, error) {
	if why := s.shut(); why != nil {
		return ServiceNotAvailable, why
	}
	if why := s.disk.refusal.Load(); why != nil {
		return ServiceNotAvailable, why
	}
	if held := s.log.LockHeld(); held > time.Duration(s.conf().OSPageCacheBusyTimeoutMs)*time.Millisecond && held < maxBusy {
		return OSPageCacheBusy, fmt.Errorf("the append that runs now takes %v already, the limit is %d ms", held.Round(time.Millisecond), s.conf().OSPageCacheBusyTimeoutMs)
	}
	return PutOK, nil
}

// maxBusy is a lock time that nobody believes.
const maxBusy = 10_000_000 * time.Millisecond

var errClosing = errors.New("the store is being closed")

// reserve makes room so that no slice moves while items are added: items point into appends.
func (w *putWork) reserve(ps []*Put) {
	if n := len(ps); cap(w.appends) < n {
		w.appends = make([]commitlog.Append, 0, n)
	}
	size := 0
	for _, p := range ps {
		size += p.Record.EncodedLen(w.s.cfg.AppendPropCRC)
		if p.Batch {
			size += len(p.Record.Body) // headers of the records of a batch
		}
	}
	if cap(w.buf) < size {
		w.buf = make([]byte, 0, size)
	}
}

// add encodes one put behind the others.
func (w *putWork) add(p *Put) (Status, error) {
	s, r := w.s, &p.Record
	if status, err := s.check(r, p.Batch, p.Again); status != PutOK {
		return status, err
	}
	if err := s.checkInner(p); err != nil {
		return MessageIllegal, err
	}
	from, fromSize := len(w.buf), len(w.sizes)
	late, status, err := w.late(p)
	if status != PutOK {
		return status, err
	}
	if late != nil {
		// encoded under the append lock
	} else if p.Batch {
		if status, err := w.encodeBatch(r); status != PutOK {
			w.buf, w.sizes = w.buf[:from], w.sizes[:fromSize]
			return status, err
		}
	} else {
		w.buf = r.Append(w.buf, s.cfg.AppendPropCRC)
	}
	tran := message.Transaction(r.SysFlag)
	w.appends = append(w.appends, commitlog.Append{
		Buf:             w.buf[from:len(w.buf):len(w.buf)],
		Counter:         &s.queues.ensure(r.Topic, r.QueueID).counter,
		KeepQueueOffset: tran == message.TransactionPrepared || tran == message.TransactionRollback,
		Late:            late,
	})
	a := &w.appends[len(w.appends)-1]
	if p.Batch {
		a.Sizes = w.sizes[fromSize:len(w.sizes):len(w.sizes)]
	}
	w.items = append(w.items, a)
	w.puts = append(w.puts, p)
	return PutOK, nil
}

var retryPrefix, dlqPrefix = []byte(message.RetryTopicPrefix), []byte(message.DLQTopicPrefix)

// check applies the limits of a message, in Apache's order.
func (s *Store) check(r *message.Record, batch, again bool) (Status, error) {
	limit := message.MaxTopicLen
	if bytes.HasPrefix(r.Topic, retryPrefix) || bytes.HasPrefix(r.Topic, dlqPrefix) {
		limit = message.MaxRetryTopicLen
	}
	if len(r.Topic) == 0 || len(r.Topic) > limit {
		return MessageIllegal, fmt.Errorf("topic has %d bytes, the limit is %d", len(r.Topic), limit)
	}
	if r.Body == nil {
		return MessageIllegal, errors.New("message has no body")
	}
	if len(r.Topic) > message.MaxTopicLenV1 && !s.cfg.AutoMessageVersion {
		return MessageIllegal, fmt.Errorf("topic has %d bytes, the limit is %d without autoMessageVersionOnTopicLen", len(r.Topic), message.MaxTopicLenV1)
	}
	if len(r.Body) > s.conf().MaxMessageBytes && !again {
		return MessageIllegal, fmt.Errorf("body has %d bytes, the limit maxMessageSize is %d", len(r.Body), s.conf().MaxMessageBytes)
	}
	if batch {
		return PutOK, nil // each record is checked for itself
	}
	return s.checkRecord(r, again)
}

// checkInner refuses what would number a queue otherwise than its messages: a record that says it is a batch and is none
// of Put.Inner, and an inner batch for a queue of single messages.
func (s *Store) checkInner(p *Put) error {
	r := &p.Record
	if p.Inner <= 0 {
		if r.SysFlag&message.FlagInnerBatch != 0 && !p.Whole {
			return fmt.Errorf("system flag %#x says that the message is a batch, which it is not", r.SysFlag)
		}
		return nil
	}
	if q := s.queues.getBytes(r.Topic, r.QueueID); q != nil && q.cq.Load() != nil && q.batch.Load() == nil {
		return fmt.Errorf("queue %d of topic %q holds single messages, no batches", r.QueueID, r.Topic)
	}
	return nil
}

func (s *Store) checkRecord(r *message.Record, again bool) (Status, error) {
	if err := r.Check(s.cfg.AppendPropCRC); err != nil {
		return statusOfLimit(err), err
	}
	if n, limit := r.EncodedLen(s.cfg.AppendPropCRC), s.conf().MaxMessageBytes+recordReserve; n > limit && !again {
		return MessageIllegal, fmt.Errorf("record has %d bytes, the limit is %d (maxMessageSize and %d)", n, limit, recordReserve)
	}
	if !s.cfg.AppendPropCRC {
		if err := commitlog.CheckProperties(r.Properties); err != nil {
			return MessageIllegal, err
		}
	}
	return PutOK, nil
}

func statusOfLimit(err error) Status {
	var over *message.LimitError
	if errors.As(err, &over) && over.Field == "properties" {
		return PropertiesSizeExceeded
	}
	return MessageIllegal
}

// encodeBatch encodes the messages of a batch body as records of their own, which share all but flag, body and
// properties.
func (w *putWork) encodeBatch(batch *message.Record) (Status, error) {
	r := *batch
	for item, err := range message.SplitBatch(batch.Body) {
		if err != nil {
			return MessageIllegal, err
		}
		r.Flag, r.Body, r.Properties = item.Flag, item.Body, item.Properties
		if len(batch.Properties) > 0 {
			w.props = append(w.props[:0], item.Properties...)
			if n := len(w.props); n > 0 && w.props[n-1] != message.PropertySeparator {
				w.props = append(w.props, message.PropertySeparator)
			}
			w.props = append(w.props, batch.Properties...)
			r.Properties = w.props
		}
		if status, err := w.s.checkRecord(&r, false); status != PutOK {
			return status, err
		}
		if len(r.Body) > w.s.conf().MaxMessageBytes {
			return MessageIllegal, fmt.Errorf("body of a message of the batch has %d bytes, the limit maxMessageSize is %d", len(r.Body), w.s.conf().MaxMessageBytes)
		}
		before := len(w.buf)
		w.buf = r.Append(w.buf, w.s.cfg.AppendPropCRC)
		w.sizes = append(w.sizes, int32(len(w.buf)-before))
	}
	if len(batch.Body) == 0 {
		return MessageIllegal, errors.New("batch has no messages")
	}
	return PutOK, nil
}

// finish sets the results, completes what is done, and leaves the rest to the flusher. It gives w away.
func (w *putWork) finish() {
	s, end, count, bytes := w.s, int64(0), 0, 0
	sync, copied := s.cfg.FlushDiskType == SyncFlush, s.waitsForCopies()
	for _, p := range w.refused {
		s.stats.putFailed.Add(1)
		p.Done(p)
	}
	for i, a := range w.items {
		p := w.puts[i]
		if a.Err != nil {
			p.fail(statusOf(a.Err), a.Err)
			s.stats.putFailed.Add(1)
			p.Done(p)
			continue
		}
		p.take(a)
		count += max(1, len(a.Sizes), int(p.Inner))
		bytes += len(a.Buf)
		if (sync || copied) && p.WaitFlush {
			w.waiting = append(w.waiting, p)
			end = max(end, a.End)
			continue
		}
		p.Done(p)
	}
	s.stats.puts.Add(int64(count))
	s.stats.putBytes.Add(int64(bytes))
	if len(w.waiting) == 0 {
		w.free()
		return
	}
	w.flushErr, w.uncopied, w.flushedAt, w.copiedAt = nil, false, time.Time{}, time.Time{}
	if sync && copied {
		w.left.Store(2)
	} else {
		w.left.Store(1)
	}
	if copied {
		s.cfg.Replicas.Wait(end, w.copied)
	}
	if sync {
		s.log.WaitFlushed(end, w.flushed)
	}
}

// take copies the results of an append.
func (p *Put) take(a *commitlog.Append) {
	p.Status, p.Err = PutOK, nil
	p.PhysicalOffset, p.QueueOffset, p.StoreTimestamp, p.Size = a.PhysicalOffset, a.QueueOffset, a.StoreTimestamp, int32(len(a.Buf))
	if a.Sizes == nil {
		return
	}
	p.Offsets = make([]int64, len(a.Sizes))
	at := a.PhysicalOffset
	for i, size := range a.Sizes {
		p.Offsets[i] = at
		at += int64(size)
	}
}

// onFlushed notes the end of the flush that puts have waited for.
func (w *putWork) onFlushed(err error) {
	w.flushErr, w.flushedAt = err, time.Now()
	w.complete()
}

// onCopied notes that slaves have what puts have waited for, or that they had it not in time.
func (w *putWork) onCopied(ok bool) {
	w.uncopied, w.copiedAt = !ok, time.Now()
	w.complete()
}

// complete ends the puts that have waited, when nothing is left to wait for. A missing copy outdoes a missing flush.
func (w *putWork) complete() {
	if w.left.Add(-1) > 0 {
		return
	}
	for _, p := range w.waiting {
		p.Flushed, p.Copied = w.flushedAt, w.copiedAt
		switch {
		case w.uncopied:
			p.fail(FlushSlaveTimeout, errNoCopies)
		case w.flushErr != nil:
			p.fail(FlushDiskTimeout, w.flushErr)
		}
		p.Done(p)
	}
	w.free()
}

// statusOf names what an append failed by. All but what the message itself is to blame for may be tried elsewhere.
func statusOf(err error) Status {
	switch {
	case errors.Is(err, commitlog.ErrTooLarge):
		return MessageIllegal
	case errors.Is(err, commitlog.ErrCreate):
		return CreateFileFailed
	default:
		return ServiceNotAvailable
	}
}
