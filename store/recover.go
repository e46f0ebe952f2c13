package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"mqx/internal/failpoint"
	"mqx/message"
	"mqx/store/commitlog"
	"mqx/store/consumequeue"
)

// recovery is one start: what is on disk, what has to be built again, and the walk over the log that does it. The rules
// are docs/format/recovery.md.
type recovery struct {
	s     *Store
	dirty bool
	ckpt  Checkpoint
	// noCheckpoint: it is missing or cannot be true.
	noCheckpoint bool
	stop         *cleanStop   // nil when there is none or it does not agree with the log
	durable      *durableNote // nil unless the search after a dirty stop began where it says

	broken     map[*queue]bool // queues with files missing between others
	impossible []*queue        // queues that had units behind all files of the log
	max        map[*queue]int64
	end        commitlog.WalkEnd
	skips      int                // findings of rot and holes in the range that was walked
	cut        *commitlog.Finding // the one at which the log ends, of a broker that is not alone

	behindQueues, behindUnits atomic.Int64 // dirty: queues that lagged behind the log
}

// recoveryPass is one walk over the log that gives units to queues.
type recoveryPass struct {
	only   map[*queue]bool  // nil: all queues
	strict bool             // what a queue lacks may lie before the place where the walk began
	short  map[*queue]int64 // strict: queues that lack units, and the position behind their last one
}

// wants reports whether a unit is to be put into a queue in this pass.
func (p *recoveryPass) wants(q *queue, off, next int64, lastEnd func() int64) bool {
	if p.only != nil && !p.only[q] {
		return false
	}
	if !p.strict || off <= next {
		return true
	}
	if _, known := p.short[q]; !known {
		p.short[q] = lastEnd()
	}
	return false
}

// loadQueues opens all queue directories, several at a time.
func (s *Store) loadQueues(broken map[*queue]bool) error {
	found, err := s.cqs.List(s.cqs.Dir())
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var errs []error
	work := make(chan consumequeue.Found)
	var wg sync.WaitGroup
	for range loaders() {
		wg.Go(func() {
			for f := range work {
				c, fs, whole, err := s.cqs.Load(f)
				mu.Lock()
				if err != nil {
					errs = append(errs, err)
				} else {
					q := s.queues.ensure([]byte(f.Topic), f.QueueID)
					q.cq.Store(c)
					if !whole {
						broken[q] = true
					}
				}
				mu.Unlock()
				for _, x := range fs {
					s.find(Finding{FindQueueFile, x.Path, x.Offset, x.What})
				}
			}
		})
	}
	for _, f := range found {
		work <- f
	}
	close(work)
	wg.Wait()
	if err := errors.Join(errs[:min(len(errs), 4)]...); err != nil {
		return err
	}
	return s.loadSpecialQueues()
}

// loadSpecialQueues opens batch queues and extension files.
func (s *Store) loadSpecialQueues() error {
	found, err := s.cqs.List(s.cqs.BatchDir())
	if err != nil {
		return err
	}
	for _, f := range found {
		b, err := s.cqs.LoadBatch(f)
		if err != nil {
			return err
		}
		s.queues.ensure([]byte(f.Topic), f.QueueID).batch.Store(b)
		s.queues.someBatch.Store(true)
	}
	if found, err = s.cqs.List(s.cqs.ExtDir()); err != nil {
		return err
	}
	for _, f := range found {
		e, err := s.cqs.LoadExt(f)
		if err != nil {
			return err
		}
		if q := s.queues.get(f.Topic, f.QueueID); q != nil && e != nil {
			q.setExt(e)
		}
	}
	return nil
}

// lastEnd is the physical offset behind the last record of a queue.
func (q *queue) lastEnd() int64 {
	if b := q.batch.Load(); b != nil {
		return b.LastEnd()
	}
	if c := q.cq.Load(); c != nil {
		return c.LastEnd()
	}
	return 0
}

// beginsBehind reports whether the first unit is that of a record behind phys.
func (q *queue) beginsBehind(phys int64) bool {
	c := q.cq.Load()
	if c == nil {
		return false
	}
	first, ok := c.FirstPhys()
	return ok && first >= phys
}

// checkRanges refuses a log and queues that cannot belong together: a moved path, a directory of another store (N009).
//
// Two cases only look like that. Files of the log go when queues and checkpoint are durable behind them: then the newest
// unit may lie in the file before the first one. And while nothing was ever durable, a loss of power may leave queues
// and take the log; ckpt then says zero.
func (s *Store) checkRanges(ckpt *Checkpoint) error {
	files, err := s.log.Files()
	if err != nil {
		return err
	}
	logMin, logEnd := int64(0), int64(0)
	if len(files) > 0 {
		logMin, logEnd = files[0].Start, files[len(files)-1].Start+files[len(files)-1].Size
	}
	last, some := int64(0), false
	first := int64(-1)
	for q := range s.queues.all {
		end := q.lastEnd()
		if end == 0 {
			continue
		}
		some = true
		last = max(last, end)
		if c := q.cq.Load(); c != nil {
			if phys, ok := c.FirstPhys(); ok && (first < 0 || phys < first) {
				first = phys
			}
		} else {
			first = 0
		}
	}
	switch {
	case !some, len(files) > 0 && last > logMin-s.log.FileSize() && first < logEnd:
		return nil
	case len(files) > 0 && first < logEnd && s.ends.note.explained(logMin):
		return nil
	case ckpt != nil && ckpt.LogicsPhysOffset == 0 && ckpt.LogicsTime == 0 && ckpt.PhysicTime == 0:
		if _, dirty := readPID(s.cfg.FS, s.cfg.RootDir); dirty {
			return nil
		}
	}
	logText := "is empty"
	if len(files) > 0 {
		logText = fmt.Sprintf("holds offsets %d to %d", logMin, logEnd)
	}
	return &LayoutError{
		Dir:  s.cfg.RootDir,
		What: fmt.Sprintf("commit log %q %s, but consume queues %q point to offsets up to %d", s.cfg.commitLogDir(), logText, s.cqs.Dir(), last),
		Hint: "give storePathCommitLog the directory that belongs to these queues, or move the queues away to have them built again from the log",
	}
}

// recover brings log and queues into step and sets the end of the log.
func (r *recovery) recover() error {
	s := r.s
	began := time.Now()
	for q := range s.queues.all {
		r.max[q] = q.maxOffset()
	}
	var err error
	if r.impossible, err = r.dropImpossible(); err != nil {
		return fmt.Errorf("cannot recover consume queues: %w", err)
	}
	switch {
	case r.dirty:
		pid, _ := readPID(s.cfg.FS, s.cfg.RootDir)
		s.find(Finding{FindDirtyStop, abortName, -1, fmt.Sprintf("the store was not closed by the process that had it open (pid %d); the log is searched back to the checkpoint", pid)})
		from, short := r.dirtyStart()
		err = r.scan(from, short)
	case r.stop != nil:
		err = r.verifyStop()
	default:
		err = r.scan(r.cleanStart(), map[*queue]int64{})
	}
	if err != nil {
		return err
	}
	failpoint.Pass(failpoint.RecoveryLog)
	if err := r.settleQueues(); err != nil {
		return err
	}
	failpoint.Pass(failpoint.RecoveryQueues)
	s.cfg.Logger.Info("store: recovered", "dirty", r.dirty, "log_min", s.log.Min(), "log_end", s.log.End(),
		"records_read", r.end.Records, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// readStop takes in the note of the last orderly stop. It stays where it is: it is believed only after a clean stop, and
// only where the disk agrees with it, so that one of an earlier stop does no harm.
func (r *recovery) readStop() {
	s := r.s
	path := filepath.Join(s.cfg.RootDir, ownDir, stopName)
	b, err := readState(s.cfg.FS, path, stopHead)
	if err == nil && !r.dirty {
		if r.stop, err = decodeCleanStop(b); err != nil {
			r.stop = nil
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.find(Finding{FindStateUnreadable, path, -1, fmt.Sprintf("the note of the last stop is not used: %v", err)})
	}
}

// walk reads the log from a position to its end and gives its records to the queues.
func (r *recovery) walk(from int64, pass *recoveryPass) (commitlog.WalkEnd, error) {
	s, d := r.s, r.s.dispatcher
	d.rec = pass
	defer func() { d.rec = nil }()
	count := int64(0)
	report := func(f commitlog.Finding) error {
		if (s.cfg.Follow || f.From < s.cfg.Gapless) && r.dirty && f.From >= r.ckpt.LogicsPhysOffset {
			// What was not durable lacks a part. Another broker of the group has all of it, and a copy with a gap is none.
			// Nothing is skipped: units that point behind the cut are of another log's end, their offsets come once more.
			r.cut = &f
			return commitlog.ErrStop
		}
		r.skips++
		return s.reportLog(f)
	}
	lastLog := time.Now()
	end, err := s.log.Walk(from, commitlog.WalkOptions{
		VerifyBody: s.cfg.CheckCRCOnRecover, VerifyProp: s.cfg.ForceVerifyPropCRC, OnFinding: report,
		VerifyEnd: r.stop == nil, // an orderly stop of this broker's left whole records
	}, func(off int64, rec message.View) error {
		d.put(off, rec)
		d.lastStart, d.lastEnd, d.lastStore = off, off+int64(len(rec)), rec.StoreTimestamp()
		if count++; count%1024 == 0 {
			if now := time.Now(); now.Sub(lastLog) > 2*time.Second {
				lastLog = now
				s.cfg.Logger.Info("store: recovery goes on", "phys_offset", off, "records", count)
			}
			if s.cqs.Pending() >= s.pendingLimit() {
				return s.cqs.WriteOut()
			}
		}
		return nil
	})
	if err != nil {
		return end, fmt.Errorf("cannot recover store: %w", err)
	}
	return end, nil
}

// scan builds the queues again from a position on. When a queue lacks units of records before that position, as those in
// short are known to, the log is walked again for those queues, from where the earliest of them ends.
func (r *recovery) scan(from int64, short map[*queue]int64) error {
	s := r.s
	if err := r.reset(from); err != nil {
		return err
	}
	logMin := s.log.Min()
	pass := &recoveryPass{strict: from > logMin, short: short}
	for q := range r.broken {
		pass.short[q] = q.lastEnd()
	}
	for _, q := range r.impossible {
		pass.short[q] = q.lastEnd()
	}
	if !pass.strict {
		clear(pass.short)
	}
	end, err := r.walk(from, pass)
	if err != nil {
		return err
	}
	r.end = end
	if err := r.endLog(end); err != nil {
		return err
	}
	return r.fillShort(pass.short, from)
}

// fillShort builds the queues that lack units, from where the earliest ends. It reads the log up to its end once more.
func (r *recovery) fillShort(short map[*queue]int64, before int64) error {
	if len(short) == 0 {
		return nil
	}
	logMin := r.s.log.Min()
	only, from := map[*queue]bool{}, before
	for q, end := range short {
		only[q] = true
		from = min(from, max(end, logMin))
		r.s.find(Finding{FindQueueBehind, "", end, fmt.Sprintf("queue %s/%d ends at queue offset %d and lacks units of older records; it is built again from the log at %d", q.topic, q.id, q.maxOffset(), max(end, logMin))})
	}
	if _, err := r.walk(from, &recoveryPass{only: only}); err != nil {
		return err
	}
	// The next start does not look so far back: these units are durable before anything else happens.
	return r.s.cqs.Sync()
}

// reset drops the units of records from a position on, to give them again.
func (r *recovery) reset(from int64) error {
	return r.eachQueue(func(q *queue) error {
		if b := q.batch.Load(); b != nil {
			return b.Reset(from)
		}
		if c := q.cq.Load(); c != nil {
			_, err := c.Reset(from)
			return err
		}
		return nil
	})
}

// dropFalse drops the units of a queue that is to be built again behind its last unit as far as they cannot be true:
// those of records behind the end of the log, and all of them when the first one is such a one, or when the record of the
// last one is not that queue's.
func (r *recovery) dropFalse(q *queue, logEnd int64) error {
	if b := q.batch.Load(); b != nil {
		if b.LastEnd() > logEnd {
			return b.Reset(logEnd)
		}
		return nil
	}
	c := q.cq.Load()
	if c == nil {
		return nil
	}
	if q.beginsBehind(logEnd) {
		_, err := c.Reset(math.MinInt64)
		return err
	}
	if c.LastEnd() > logEnd {
		if _, err := c.Reset(logEnd); err != nil {
			return err
		}
	}
	off := c.Max() - 1
	if off < c.Min() || message.IsLMQ(q.topic) {
		return nil
	}
	u, err := c.At(off)
	if err != nil || u.IsFiller() || u.Phys < r.s.log.Min() {
		return err
	}
	v, err := r.s.recordAt(u.Phys)
	if err == nil && string(v.Topic()) == q.topic && v.QueueID() == q.id && v.QueueOffset() == off {
		return nil
	}
	_, err = c.Reset(math.MinInt64)
	return err
}

// dropImpossible drops the units of records that lie behind all files of the log, which nothing but damage leaves, and
// returns the queues that had some. It comes before the log is searched.
func (r *recovery) dropImpossible() (queues []*queue, err error) {
	files, err := r.s.log.Files()
	if err != nil || len(files) == 0 {
		return nil, err
	}
	end := files[len(files)-1].Start + files[len(files)-1].Size
	for q := range r.s.queues.all {
		if q.lastEnd() <= end && !q.beginsBehind(end) {
			continue
		}
		if err := r.dropFalse(q, end); err != nil {
			return nil, err
		}
		queues = append(queues, q)
	}
	return queues, nil
}

// loaders is how many queues are worked on at the same time: most of it is waiting for the disk.
func loaders() int { return min(8, 2*runtime.GOMAXPROCS(0)) }

// eachQueue calls f for every queue, several at a time. It ends at the first error.
func (r *recovery) eachQueue(f func(*queue) error) error {
	work := make(chan *queue, 64)
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for range loaders() {
		wg.Go(func() {
			for q := range work {
				if err := f(q); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	for q := range r.s.queues.all {
		if failed.Load() != nil {
			break
		}
		work <- q
	}
	close(work)
	wg.Wait()
	if err := failed.Load(); err != nil {
		return fmt.Errorf("cannot recover consume queues: %w", *err)
	}
	return nil
}

// endLog sets the end of the log. A broken end is cut and kept in mqx/salvage.
func (r *recovery) endLog(end commitlog.WalkEnd) error {
	s := r.s
	if end.Last >= 0 {
		s.log.FloorStoreTime(end.LastStore)
	}
	if end.Reason != commitlog.EndTorn && r.cut == nil {
		return s.log.SetEnd(end.Offset)
	}
	if r.cut != nil {
		end.Err = fmt.Errorf("a gap up to %d: %w", r.cut.To, cmp.Or(r.cut.Err, errUnreadable))
	}
	dir := filepath.Join(s.cfg.RootDir, ownDir, salvageDir)
	s.find(Finding{FindTornTail, end.Path, end.Offset, fmt.Sprintf("the log ends in bytes that are no whole record (%v); they were cut and kept in %s/%s", end.Err, ownDir, salvageDir)})
	return s.log.Truncate(end.Offset, dir)
}

// dirtyStart is where the log has to be searched from after a dirty stop, and which queues are known to lack older
// units: the record of the checkpoint when a note of this broker's goes with it, else the newest file that begins
// before the checkpoint.
func (r *recovery) dirtyStart() (int64, map[*queue]int64) {
	if r.durable = r.readDurable(); r.durable != nil {
		return r.durable.ckpt.LogicsPhysOffset, r.lacking(r.durable)
	}
	from := r.startFile(func(start, storeTime int64) bool {
		if r.ckpt.LogicsPhysOffset > 0 {
			return start <= r.ckpt.LogicsPhysOffset
		}
		return r.ckpt.LogicsTime > 0 && storeTime <= r.ckpt.LogicsTime
	})
	return from, map[*queue]int64{}
}

// cleanStart is where the log has to be searched from after a clean stop that left no note: the newest file that begins
// before the newest record with a unit.
func (r *recovery) cleanStart() int64 {
	last := int64(0)
	for q := range r.s.queues.all {
		last = max(last, q.lastEnd())
	}
	return r.startFile(func(start, _ int64) bool { return start < last })
}

// startFile is the start of the newest file for which match holds, of its first record; the oldest one when it holds for
// none: how far to go back must not depend on how large the files are. Only without a checkpoint the search ends
// CommitLogRecoverMaxNum files back. When there are no queues at all they have to be built from the start of the log.
func (r *recovery) startFile(match func(start, storeTime int64) bool) int64 {
	s := r.s
	files, err := s.log.Files()
	if err != nil || len(files) == 0 {
		return s.log.Min()
	}
	some := false
	for q := range s.queues.all {
		some = some || q.exists()
	}
	if !some {
		return files[0].Start
	}
	oldest := 0
	if r.noCheckpoint {
		oldest = max(0, len(files)-s.cfg.CommitLogRecoverMaxNum)
	}
	for i := len(files) - 1; i > oldest; i-- {
		if rec, err := s.recordAt(files[i].Start); err == nil && rec.StoreTimestamp() > 0 && match(files[i].Start, rec.StoreTimestamp()) {
			return files[i].Start
		}
	}
	return files[oldest].Start
}

// verifyStop checks the note of the last stop against the disk. What agrees is not searched again: a start takes no
// longer for a longer log.
func (r *recovery) verifyStop() error {
	s, note := r.s, r.stop
	from := note.lastStart
	if from < 0 || from < s.log.Min() {
		from = max(s.log.Min(), min(note.logEnd, note.logMin))
	}
	end, err := s.log.Walk(from, commitlog.WalkOptions{VerifyBody: true}, func(off int64, rec message.View) error {
		s.dispatcher.lastStart, s.dispatcher.lastEnd, s.dispatcher.lastStore = off, off+int64(len(rec)), rec.StoreTimestamp()
		return nil
	})
	ended := end.Reason == commitlog.EndOfData || end.Reason == commitlog.EndLimit && end.Offset == s.log.End() // of a log without files
	agrees := err == nil && ended && end.Offset == note.logEnd && s.log.Min() == note.logMin &&
		end.Records == min(1, note.lastStart+1)
	if !agrees {
		r.stop = nil
		s.find(Finding{FindStateUnreadable, filepath.Join(ownDir, stopName), -1, fmt.Sprintf("the log was changed since the last stop: it ended at %d; it is searched", note.logEnd)})
		return r.scan(r.cleanStart(), map[*queue]int64{})
	}
	r.end = end
	if err := r.endLog(end); err != nil {
		return err
	}
	short := map[*queue]int64{}
	for k, want := range note.queues {
		q := s.queues.ensure([]byte(k.topic), k.id)
		if !q.exists() || q.maxOffset() != want.max || q.lastEnd() != want.lastEnd {
			short[q] = 0
		}
	}
	for q := range s.queues.all {
		if _, bad := short[q]; !bad && !r.broken[q] && !q.beginsBehind(s.log.End()) {
			continue
		}
		if err := r.dropFalse(q, s.log.End()); err != nil {
			return err
		}
		short[q] = q.lastEnd()
	}
	return r.fillShort(short, s.log.End())
}

// settleQueues cuts the queues at the end of the log, corrects their minimum, and sets the counters of new messages.
func (r *recovery) settleQueues() error {
	s := r.s
	logMin, logEnd := s.log.Min(), s.log.End()
	if s.deleted.cut(logEnd) {
		if err := s.deleted.save(s.cfg.FS, s.cfg.RootDir, logMin); err != nil {
			return err
		}
	}
	if err := r.keepEnds(); err != nil {
		return err
	}
	if err := s.cqs.WriteOut(); err != nil {
		return fmt.Errorf("cannot recover consume queues: %w", err)
	}
	if err := r.eachQueue(func(q *queue) error { return r.settleQueue(q, logMin, logEnd) }); err != nil {
		return err
	}
	for q := range s.queues.all {
		q.counter.Set(q.maxOffset())
	}
	if n := r.behindQueues.Load(); n > 0 {
		s.find(Finding{FindQueueBehind, "", -1, fmt.Sprintf("%d queues lacked %d units of messages that were in the log; they were built", n, r.behindUnits.Load())})
	}
	return nil
}

func (r *recovery) settleQueue(q *queue, logMin, logEnd int64) error {
	s := r.s
	if b := q.batch.Load(); b != nil {
		if b.LastEnd() > logEnd {
			if err := b.Reset(logEnd); err != nil {
				return err
			}
		}
		return errors.Join(b.Finish(), b.CorrectMin(logMin))
	}
	c := q.cq.Load()
	if c == nil {
		return nil
	}
	if c.LastEnd() > logEnd {
		if _, err := c.Reset(logEnd); err != nil {
			return err
		}
	}
	if r.skips > 0 {
		// Offsets of records that could not be read are not given out again.
		n, err := c.KeepDropped(logEnd)
		if err != nil {
			return err
		}
		if n > 0 {
			s.find(Finding{FindQueueGap, "", -1, fmt.Sprintf("queue %s/%d: the records of its last %d offsets cannot be read; the offsets stay used", q.topic, q.id, n)})
		}
	}
	was, now := r.max[q], c.Max()
	switch {
	case now > was && r.dirty:
		r.behindQueues.Add(1)
		r.behindUnits.Add(now - was)
	case now > was:
		s.find(Finding{FindQueueBehind, "", -1, fmt.Sprintf("queue %s/%d ended at queue offset %d; %d units were built from the log", q.topic, q.id, was, now-was)})
	case now < was:
		s.find(Finding{FindQueueAhead, "", logEnd, fmt.Sprintf("queue %s/%d had units up to queue offset %d; %d units behind the end of the log were cut", q.topic, q.id, was, was-now)})
	}
	if err := s.cqs.Finish(c); err != nil {
		return err
	}
	return c.CorrectMin(logMin)
}

// checkpoint is the checkpoint of the recovered store: the one found, not ahead of the last record.
func (r *recovery) checkpoint() Checkpoint {
	c, d := r.ckpt, r.s.dispatcher
	// What is written into the newest index file from now on is not durable, and a time does not tell it from what is.
	c.IndexTime = min(c.IndexTime, r.s.index.FullTime())
	if d.lastStart < 0 {
		c.LogicsPhysOffset, c.LogicsTime, c.ConfirmPhys = 0, 0, 0
		return c
	}
	c.ConfirmPhys = d.lastStart
	if c.LogicsPhysOffset > d.lastStart {
		c.LogicsPhysOffset, c.LogicsTime = d.lastStart, min(c.LogicsTime, d.lastStore)
	}
	return c
}
