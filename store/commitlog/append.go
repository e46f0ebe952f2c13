package commitlog

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mqx/internal/failpoint"
	"mqx/message"
	"mqx/store/mapped"
)

// Counter is the next queue offset of one queue of a topic. The append lock owns it: it is changed by Set before
// the log is appended to, and by AppendBatch. Next may be read at any time.
type Counter struct {
	next     atomic.Int64 // behind the last record that was appended
	assigned int64        // behind the last one that has a number; owned by the append lock
	last     *Append      // the last one that was numbered as one of several queues; owned by the append lock
}

// Next returns the queue offset that the next record will get.
func (c *Counter) Next() int64 { return c.next.Load() }

// Set sets the next queue offset. It must not run together with an append to the same queue.
func (c *Counter) Set(next int64) {
	c.assigned = next
	c.next.Store(next)
}

// Append is one message, or one batch of messages for one queue, on its way into the log.
type Append struct {
	// Buf holds the encoded record, or the records of a batch back to back, with queue offset, physical offset and
	// store time still zero; they are patched in place. The caller may reuse Buf after AppendBatch returns.
	Buf []byte
	// Sizes are the lengths of the records of a batch; nil for one record.
	Sizes []int32
	// Counter numbers the records in their queue.
	Counter *Counter
	// KeepQueueOffset leaves the queue offset 0 and the counter alone: prepared and rolled back transactions.
	KeepQueueOffset bool
	// Late, when not nil, makes the record once its numbers are known: they stand in its properties, whose length
	// depends on them. Buf is empty until then.
	Late *Late

	// Results, valid when Err is nil.

	QueueOffset    int64 // of the first record
	PhysicalOffset int64 // of the first record
	StoreTimestamp int64 // milliseconds since 1970, the same for all records of a batch
	End            int64 // position behind the last record; what to wait for
	Err            error
}

// appender is what the append lock owns.
type appender struct {
	sync.Mutex
	ready  bool // the end is known
	closed bool

	tail *segment     // the newest file, nil before the first append
	file *mapped.File // of tail, leased

	pos     int64     // where the next record goes
	base    int64     // where buf goes; pos-len(buf)
	buf     []byte    // records that have their place and are not written yet
	staged  []*Append // the items in buf
	waiting bool      // something was appended that followers have not been told about

	lastStore int64    // store time of the newest record in ms
	raw       frames   // of AppendRaw
	part      []byte   // of AppendRaw: what has come of a record whose rest has not, behind pos
	dirty     [2]int64 // range behind pos that a failed write may have left bytes in; cleared before the next write
}

// maxStaged bounds appender.buf: more is written in several steps.
const maxStaged = 1 << 20

// AppendBatch appends the items in order under one lock and sets their results. An item is appended whole or not at
// all. Errors are per item: ErrTooLarge, ErrFull, ErrCreate, ErrFailed, ErrClosed, ErrNotRecovered, ErrReadOnly, or
// that of the write. An item that was refused has changed nothing: no counter, no byte of the log.
func (l *Log) AppendBatch(as []*Append) {
	if len(as) == 0 {
		return
	}
	l.app.Lock()
	l.appendLocked(as)
}

// TryAppendBatch is AppendBatch where that does not wait for more than its own write: the newest file has room and space
// for the items, and whoever else appends is done soon. When it returns false it has done nothing.
func (l *Log) TryAppendBatch(as []*Append) bool {
	need := int64(message.BlankLen)
	for _, a := range as {
		if a.Late != nil {
			return false // nobody knows its length yet
		}
		need += int64(len(a.Buf))
	}
	if !l.lockSoon() {
		return false
	}
	if s := l.app.tail; s == nil || l.app.pos+need > min(s.end(), s.reserved.Load()) {
		l.app.Unlock()
		return false
	}
	l.appendLocked(as)
	return true
}

// briefly is how long TryAppendBatch waits for another append. One takes a tenth of that; whoever holds the lock for longer
// waits for the disk.
const briefly = 200 * time.Microsecond

// lockSoon takes the append lock if that is possible soon.
func (l *Log) lockSoon() bool {
	if l.app.TryLock() {
		return true
	}
	for until := time.Now().Add(briefly); time.Now().Before(until); runtime.Gosched() {
		if l.app.TryLock() {
			return true
		}
	}
	return false
}

// appendLocked appends the items and gives the append lock back.
func (l *Log) appendLocked(as []*Append) {
	now := l.cfg.Clock.Now()
	l.held.Store(now.UnixNano())
	if err := l.writable(); err != nil {
		for _, a := range as {
			a.Err = err
		}
	} else {
		store := max(now.UnixMilli(), l.app.lastStore)
		for _, a := range as {
			if a.Err = l.stage(a, store); a.Err != nil {
				continue
			}
			if len(l.app.buf) >= maxStaged {
				_ = l.writeStaged() // the items have the error
			}
		}
		_ = l.writeStaged()
		l.app.lastStore = store
	}
	l.unlockAppend()
}

// unlockAppend ends a critical section and wakes followers and the reserver.
func (l *Log) unlockAppend() {
	tell := l.app.waiting
	l.app.waiting = false
	needSpace := l.reserverNeeded()
	l.held.Store(0)
	l.app.Unlock()
	if tell {
		wake(l.fl.appended)
		l.tellWatchers()
	}
	if needSpace {
		wake(l.kickReserve)
	}
}

// writable tells why the log takes no records.
func (l *Log) writable() error {
	switch {
	case l.app.closed:
		return ErrClosed
	case l.cfg.ReadOnly:
		return ErrReadOnly
	case !l.app.ready:
		return ErrNotRecovered
	}
	if err := l.Failed(); err != nil {
		return err
	}
	return l.clearDirty()
}

// stage gives the item its place, in the next file when the newest one has no room for it and a blank, and puts it
// into the buffer.
func (l *Log) stage(a *Append, store int64) error {
	if a.Late != nil {
		if err := a.encodeLate(); err != nil {
			return err
		}
	}
	n := int64(len(a.Buf))
	if err := l.checkSizes(a); err != nil {
		return err
	}
	if err := l.clearDirty(); err != nil { // of an item before in the same call
		return err
	}
	if err := l.makeRoom(n); err != nil { // may write what is staged; if that fails, this item fails with it
		return err
	}
	app := &l.app
	a.PhysicalOffset, a.StoreTimestamp, a.QueueOffset = app.pos, store, 0
	if !a.KeepQueueOffset {
		a.QueueOffset = a.Counter.assigned
	}
	if a.Late != nil {
		l.seal(a.Buf, a.QueueOffset, app.pos, store)
		a.countLate()
	} else if a.Sizes == nil {
		l.seal(a.Buf, a.QueueOffset, app.pos, store)
		if !a.KeepQueueOffset {
			a.Counter.assigned++
		}
	} else {
		l.sealBatch(a, store)
	}
	app.buf = append(app.buf, a.Buf...)
	app.staged = append(app.staged, a)
	app.pos += n
	a.End = app.pos
	return nil
}

func (l *Log) sealBatch(a *Append, store int64) {
	rec, pos := a.Buf, l.app.pos
	for i, size := range a.Sizes {
		queueOffset := int64(0)
		if !a.KeepQueueOffset {
			queueOffset = a.QueueOffset + int64(i)
		}
		l.seal(rec[:size], queueOffset, pos, store)
		rec, pos = rec[size:], pos+int64(size)
	}
	if !a.KeepQueueOffset {
		a.Counter.assigned += int64(len(a.Sizes))
	}
}

func (l *Log) seal(rec []byte, queueOffset, pos, store int64) {
	message.PatchOffsets(rec, queueOffset, pos, store)
	if l.cfg.PropCRC {
		message.SealPropCRC(rec)
	}
}

// checkSizes refuses what cannot be records, which is a mistake of the caller, and what fits into no file.
func (l *Log) checkSizes(a *Append) error {
	if len(a.Buf) < message.MinRecordLen {
		return fmt.Errorf("cannot append %d bytes: a record has at least %d", len(a.Buf), message.MinRecordLen)
	}
	if !a.KeepQueueOffset && a.Counter == nil {
		return fmt.Errorf("cannot append a record without a queue counter")
	}
	sum := 0
	for _, size := range a.Sizes {
		if size < message.MinRecordLen {
			return fmt.Errorf("cannot append a batch with a record of %d bytes", size)
		}
		sum += int(size)
	}
	if a.Sizes != nil && sum != len(a.Buf) {
		return fmt.Errorf("cannot append a batch of %d bytes with sizes that sum up to %d", len(a.Buf), sum)
	}
	if limit := l.fileSize - message.BlankLen; int64(len(a.Buf)) > limit {
		return fmt.Errorf("%w: %d bytes, a file takes %d", ErrTooLarge, len(a.Buf), limit)
	}
	return nil
}

// makeRoom sees to it that n bytes and a blank fit at pos and have space on the volume.
func (l *Log) makeRoom(n int64) error {
	app := &l.app
	need := n + message.BlankLen
	if app.tail != nil && need <= app.tail.end()-app.pos {
		return l.ensureReserved(app.tail, app.pos+need)
	}
	s, f, err := l.ensureNext(need)
	if err != nil {
		return err
	}
	if app.tail != nil {
		if err := l.sealTail(); err != nil {
			f.Release()
			return err
		}
	} else {
		app.pos, app.base = max(app.pos, s.start), max(app.pos, s.start)
	}
	failpoint.Pass(failpoint.LogRoll)
	l.takeNext(s)
	app.setTail(s, f)
	return nil
}

// sealTail fills the rest of the newest file with a blank, writes what is staged, and moves to the end of the file.
func (l *Log) sealTail() error {
	app := &l.app
	end := app.tail.end()
	if rest := end - app.pos; rest >= message.BlankLen {
		app.buf = message.AppendBlank(app.buf, int32(rest))
	}
	if err := l.writeStaged(); err != nil {
		return err
	}
	app.pos, app.base = end, end
	l.gate.appendedTo(l, end)
	l.end.Store(end)
	return nil
}

// writeStaged writes the buffer. After an error the staged items have it and nothing has changed.
func (l *Log) writeStaged() error {
	app := &l.app
	if len(app.buf) == 0 {
		return nil
	}
	_, err := app.file.WriteAt(app.buf, app.base-app.tail.start)
	if err != nil {
		err = l.writeFailed(err)
		for _, a := range app.staged {
			if a.Counter != nil {
				a.Counter.assigned = a.Counter.next.Load()
			}
			a.undoLate()
			a.Err = err
		}
		app.pos = app.base
	} else {
		for _, a := range app.staged {
			if !a.KeepQueueOffset {
				a.Counter.next.Store(a.Counter.assigned)
			}
			a.settleLate()
		}
		app.base = app.pos
		app.waiting = true
		l.gate.appendedTo(l, app.pos)
		l.end.Store(app.pos)
	}
	clear(app.staged)
	app.staged = app.staged[:0]
	app.buf = app.buf[:0]
	if cap(app.buf) > 4*maxStaged {
		app.buf = nil // one huge record is no reason to keep so much
	}
	return err
}

// writeFailed notes that the file may hold some of the buffer, and tries to take it out again: left there it could
// come to life as a record after a crash.
func (l *Log) writeFailed(cause error) error {
	app := &l.app
	path := app.tail.path
	app.dirty = [2]int64{app.base, app.base + int64(len(app.buf))}
	clearErr := l.clearDirty()
	l.cfg.Logger.Error("cannot append to commit log", "path", path, "phys_offset", app.base, "err", cause,
		"cleaned", clearErr == nil)
	if isNoSpace(cause) {
		return &FullError{Path: path, Err: cause}
	}
	return fmt.Errorf("cannot append to commit log: %w", cause)
}

// clearDirty zeroes what a failed write may have left.
func (l *Log) clearDirty() error {
	app := &l.app
	from, to := app.dirty[0], app.dirty[1]
	if from == to {
		return nil
	}
	zeros := make([]byte, min(to-from, 64<<10))
	for from < to {
		n := min(to-from, int64(len(zeros)))
		if _, err := app.file.WriteAt(zeros[:n], from-app.tail.start); err != nil {
			if isNoSpace(err) {
				return &FullError{Path: app.tail.path, Err: err}
			}
			return fmt.Errorf("cannot clean up after a failed append: %w", err)
		}
		from += n
	}
	app.dirty = [2]int64{}
	return nil
}

// AppendRaw appends bytes that another log wrote at the same position, blanks included (replication). at must be where the
// call before ended, or End; a log without a record takes any position at which a file begins. Files are filled to their end. A
// record may come in pieces: what has come of it is kept in memory until all of it has, so that no crash leaves a record without its
// end, and a call with at = End forgets it. Only in a gap of the other log End is behind Confirmed. Bytes that are no records are a
// *ForeignError.
func (l *Log) AppendRaw(at int64, b []byte) error {
	if end := l.end.Load(); at > end && at%l.fileSize == 0 && end == l.Min() && len(l.list()) > 0 {
		if err := l.beginAt(at); err != nil {
			return err
		}
	}
	l.app.Lock()
	l.held.Store(l.cfg.Clock.Now().UnixNano())
	defer l.unlockAppend()
	if err := l.writable(); err != nil {
		return err
	}
	app := &l.app
	if app.tail == nil && len(l.list()) == 0 {
		if at%l.fileSize != 0 {
			return &ForeignError{Off: at, Err: errOtherFileSize}
		}
		app.pos, app.base = at, at
		l.end.Store(at)
		l.flushed.Store(at)
	}
	switch at {
	case app.pos + int64(len(app.part)):
	case app.pos:
		app.part = app.part[:0]
		app.raw.rewind()
	default:
		return fmt.Errorf("cannot append at %d: the log ends at %d", at, app.pos)
	}
	if app.raw.at != at || l.whole.Load() < 0 {
		app.raw = frames{at: at, whole: at}
		l.whole.Store(at)
	}
	for len(b) > 0 {
		if app.tail == nil || app.pos == app.tail.end() {
			s, f, err := l.ensureNext(1)
			if err != nil {
				return err
			}
			l.takeNext(s)
			app.setTail(s, f)
		}
		n := min(int64(len(b)), app.tail.end()-app.pos-int64(len(app.part)), maxStaged)
		if err := l.appendPiece(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// beginAt lets a log of files without a record begin somewhere else.
func (l *Log) beginAt(at int64) error {
	l.fl.mu.Lock()
	defer l.fl.mu.Unlock()
	if err := l.discardNext(); err != nil {
		return err
	}
	if err := l.removeLater(nil, l.list()); err != nil {
		return err
	}
	return l.settle(at)
}

// appendPiece takes bytes that lie in the newest file, and writes as many of them as are whole records.
func (l *Log) appendPiece(b []byte) error {
	app := &l.app
	raw := app.raw
	if err := raw.take(b, app.tail.end()); err != nil {
		return err
	}
	n := int(raw.settled() - app.pos) // of part and b
	if err := l.ensureReserved(app.tail, app.pos+int64(n)); err != nil {
		return err
	}
	// Nothing is staged: what writes what others have staged is done when the lock is let go. The bytes are written as they came,
	// where nothing was kept of them.
	kept := min(n, len(app.part))
	own := app.buf
	if app.buf = b[:n-kept]; kept > 0 {
		app.buf = append(append(slices.Grow(own, n), app.part[:kept]...), b[:n-kept]...)
		own = app.buf
	}
	app.pos += int64(n)
	err := l.writeStaged()
	app.buf = own[:0]
	if err != nil {
		return err
	}
	if kept > 0 { // else nothing moves: a large record comes in many pieces
		app.part = app.part[:copy(app.part, app.part[kept:])]
	}
	app.part = append(app.part, b[n-kept:]...)
	if len(app.part) == 0 && cap(app.part) > 4*maxStaged {
		app.part = nil // as in writeStaged
	}
	app.raw = raw
	l.whole.Store(raw.whole)
	return nil
}

// FloorStoreTime makes sure that no record gets an earlier store time than ms: that of the last record found at
// start. A time more than maxClockLead ahead of the clock is not believed.
func (l *Log) FloorStoreTime(ms int64) {
	l.app.Lock()
	defer l.app.Unlock()
	if lead := time.Duration(ms-l.cfg.Clock.Now().UnixMilli()) * time.Millisecond; lead > maxClockLead {
		l.cfg.Logger.Warn("the last record was stored in the future; its time is not kept up with",
			"store_time", ms, "ahead", lead)
		return
	}
	l.app.lastStore = max(l.app.lastStore, ms)
}

const maxClockLead = time.Hour
