package broker

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"mqx/broker/delay"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
	"mqx/store"
)

// Bounds of the delivery.
const (
	deliverBatch = 256     // messages that are stored in one go
	deliverBytes = 4 << 20 // of records read for them
	keptRecords  = 1 << 20 // of memory kept while nothing is due
	// longestSleep bounds the wait for a message that is not due: the wall clock
	// may be set forward meanwhile.
	longestSleep = time.Second
	// readAgain is the pause after a failed read of a queue.
	readAgain = time.Second
)

// delayService delivers the messages that wait in SCHEDULE_TOPIC_XXXX: each
// queue of it is one level. One goroutine does it, woken by what arrives and by
// the time of what is due next; another one saves the progress. It is made by
// newDelayService, opened by open and run once.
type delayService struct {
	st        *store.Store
	put       func([]*store.Put)
	settle    func(ctx context.Context, put func([]*store.Put), ps []*store.Put)
	delivered func(topic []byte, queue int32, size int32)
	now       func() time.Time
	began     time.Time
	quiet     *quietLog
	log       *slog.Logger
	delays    delay.Levels
	levels    []*delayLevel // by level
	wake      chan struct{}

	// Of the delivering goroutine.
	reader *store.RecordReader
	puts   []store.Put
	batch  []*store.Put
	units  []delay.Unit // of batch
	raw    []store.Unit

	progress delayProgress
}

// delayLevel is one queue of SCHEDULE_TOPIC_XXXX.
type delayLevel struct {
	level int
	queue int32
	delay time.Duration // negative for a level that the table does not have
	q     *delay.Queue  // of the delivering goroutine

	asleep   atomic.Bool // nothing is waiting: an arrival wakes the service
	progress atomic.Int64
	known    atomic.Bool // the level has a progress to be saved
	ahead    []delay.Unit
}

// delayConfig is what a delayService needs to know.
type delayConfig struct {
	levels delay.Levels
	fsys   vfs.FS
	file   string
	every  time.Duration // between two saves
	step   int64         // updates a data version
}

func newDelayService(b *Broker, c delayConfig) *delayService {
	s := &delayService{
		put: b.putOrForward, settle: b.putSettled, delivered: b.countDelivered, now: b.now, began: time.Now(),
		quiet: b.quiet, log: b.log, wake: make(chan struct{}, 1), delays: c.levels,
	}
	s.progress = delayProgress{
		fsys: c.fsys, file: c.file, every: c.every, step: max(1, c.step), now: b.now, log: b.log, soon: make(chan struct{}, 1),
	}
	s.progress.mu.version = remoting.NewDataVersion(b.now())
	for level := 1; level <= max(c.levels.Max(), scheduleQueues); level++ {
		s.addLevel(level, c.levels)
	}
	return s
}

func (s *delayService) addLevel(level int, table delay.Levels) {
	d, ok := table.Of(level)
	if !ok {
		d = -1
	}
	s.levels = append(s.levels, &delayLevel{level: level, queue: delay.QueueOf(level), delay: d, q: delay.NewQueue(d, 0)})
}

// moreLevels is the bound of the levels that a store may hold beyond the table.
const moreLevels = 1024

// open takes the progress from its file and corrects it to what the queues hold.
func (s *delayService) open(st *store.Store) error {
	s.st = st
	s.reader = st.NewRecordReader()
	for q := range st.Queues() {
		for q.Topic == message.TopicSchedule && int(q.QueueID) >= len(s.levels) && len(s.levels) < moreLevels {
			s.addLevel(len(s.levels)+1, nil)
		}
	}
	table, err := s.progress.load()
	if err != nil {
		return err
	}
	changed := false
	for _, l := range s.levels {
		offset, ok := table[int32(l.level)]
		if !ok {
			offset = st.MinOffset(message.TopicSchedule, l.queue)
		}
		l.known.Store(ok)
		l.q = delay.NewQueue(l.delay, offset)
		changed = s.correct(l) || changed
		l.publish()
		s.warnOfChange(l)
	}
	if !changed {
		return nil
	}
	s.progress.changed(1)
	return s.save()
}

// correct brings the position of a level into the range of its queue.
func (s *delayService) correct(l *delayLevel) bool {
	low, high := s.st.MinOffset(message.TopicSchedule, l.queue), s.st.EndOffset(message.TopicSchedule, l.queue)
	was := l.q.Progress()
	if !l.q.Correct(low, high) {
		return false
	}
	l.ahead = nil
	s.log.Error("the progress of a delay level lay outside its queue and is corrected",
		"level", l.level, "was", was, "is", l.q.Progress(), "min_offset", low, "max_offset", high)
	return true
}

// warnOfChange says that messages wait by another delay than the table has for their level: they come by the shorter one of both,
// or at the time they carry when the level is gone.
func (s *delayService) warnOfChange(l *delayLevel) {
	units, err := s.st.Units(message.TopicSchedule, l.queue, l.q.Next(), 1)
	if err != nil || len(units) == 0 || units[0].Missing() {
		return // the delivery will say so
	}
	u := units[0]
	s.reader.Reset(int(max(u.Size, 1)))
	rec, err := s.reader.Read(u.PhysicalOffset, u.Size)
	if err != nil {
		return
	}
	was, is := time.Duration(u.TagsCode-rec.StoreTimestamp())*time.Millisecond, "none"
	if was == l.delay {
		return
	}
	if l.delay >= 0 {
		is = l.delay.String()
	}
	s.log.Warn("messages wait by another delay than messageDelayLevel says now", "level", l.level, "waiting_by", was.String(), "is", is)
}

// publish makes the progress visible to those who save and show it.
func (l *delayLevel) publish() bool { return l.progress.Swap(l.q.Progress()) != l.q.Progress() }

// Arrived is told of every message of SCHEDULE_TOPIC_XXXX once it is in its
// queue. It does not block.
func (s *delayService) Arrived(queue int32) {
	if int(queue) >= len(s.levels) || queue < 0 {
		return
	}
	if s.levels[queue].asleep.CompareAndSwap(true, false) {
		signal(s.wake)
	}
}

// Run delivers and saves until ctx ends. What was delivered last is saved by
// Close.
func (s *delayService) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { s.progress.run(ctx, s.save) })
	s.deliverUntil(ctx)
	wg.Wait()
}

// Close saves the progress. The store must still be open, Run must have ended.
func (s *delayService) Close() error { return s.save() }

func (s *delayService) deliverUntil(ctx context.Context) {
	timer := time.NewTimer(longestSleep)
	defer timer.Stop()
	for ctx.Err() == nil {
		wait, pending := s.round(ctx)
		if pending && wait <= 0 {
			continue
		}
		s.rest()
		timer.Stop()
		if pending {
			timer.Reset(min(wait, longestSleep))
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// rest gives memory back before a pause.
func (s *delayService) rest() {
	if s.reader.Size() > keptRecords {
		s.reader.Reset(0)
	}
}

// round works on each level once and tells when the next one is due; pending is
// false when nothing waits at all.
func (s *delayService) round(ctx context.Context) (wait time.Duration, pending bool) {
	for _, l := range s.levels {
		if ctx.Err() != nil {
			return 0, true
		}
		if l.asleep.Load() {
			continue
		}
		w, waits := s.step(ctx, l)
		if waits && (!pending || w < wait) {
			wait, pending = w, true
		}
	}
	return wait, pending
}

func (s *delayService) moment() delay.Moment {
	return delay.Moment{WallMs: s.now().UnixMilli(), Mono: time.Since(s.began)}
}

// step delivers what is due of one level, up to a batch, and tells when to look
// at it again.
func (s *delayService) step(ctx context.Context, l *delayLevel) (wait time.Duration, waits bool) {
	if s.correct(l) {
		l.publish()
		s.progress.changed(1)
		signal(s.progress.soon)
	}
	if again := l.q.Retries(time.Since(s.began)); len(again) > 0 {
		s.deliver(ctx, l, again)
		s.moved(l)
	}
	retryIn, retrying := l.q.RetryIn(time.Since(s.began))
	if !l.q.MayAdvance() {
		return retryIn, true
	}
	wait, waits = s.advance(ctx, l)
	if retrying && (!waits || retryIn < wait) {
		wait, waits = retryIn, true
	}
	return wait, waits
}

// advance delivers messages from the position on.
func (s *delayService) advance(ctx context.Context, l *delayLevel) (wait time.Duration, waits bool) {
	high := s.st.MaxOffset(message.TopicSchedule, l.queue)
	if l.q.Next() >= high {
		return s.sleep(l)
	}
	l.known.Store(true)
	now := s.moment()
	if len(l.ahead) > 0 {
		if n, wait := l.q.Due(l.ahead[:1], high, now); n == 0 {
			return wait, true // as before: the queue need not be read
		}
	}
	if err := s.lookAhead(l); err != nil {
		s.quiet.Warn("a queue of delayed messages cannot be read; it is tried again", "level", l.level, "queue_offset", l.q.Next(), "error", err)
		return readAgain, true
	}
	n, wait := l.q.Due(l.ahead, high, now)
	n = bounded(l.ahead[:n])
	if n > 0 {
		s.deliver(ctx, l, l.ahead[:n])
	}
	switch {
	case len(l.ahead) == 0: // the files of all that is left are missing
		l.q.Advance(high)
	case n == 0:
		return wait, true
	default:
		l.q.Advance(l.ahead[n-1].Offset + 1)
		l.ahead = append(l.ahead[:0], l.ahead[n:]...)
	}
	s.moved(l)
	return 0, true
}

// bounded is how many of the units fit one batch by their size.
func bounded(units []delay.Unit) int {
	sum := 0
	for i, u := range units {
		sum += int(u.Size)
		if i > 0 && sum > deliverBytes {
			return i
		}
	}
	return len(units)
}

// sleep waits for an arrival.
func (s *delayService) sleep(l *delayLevel) (time.Duration, bool) {
	l.asleep.Store(true)
	if s.st.MaxOffset(message.TopicSchedule, l.queue) > l.q.Next() && l.asleep.CompareAndSwap(true, false) {
		return 0, true // it came in between
	}
	return 0, false
}

// moved notes the progress of a level.
func (s *delayService) moved(l *delayLevel) {
	before := l.progress.Load()
	if l.publish() {
		s.progress.changed(max(1, l.q.Progress()-before))
	}
}

// lookAhead reads the units from the position on.
func (s *delayService) lookAhead(l *delayLevel) error {
	var err error
	s.raw, err = s.st.AppendUnits(s.raw[:0], message.TopicSchedule, l.queue, l.q.Next(), deliverBatch)
	if err != nil {
		return err
	}
	l.ahead = l.ahead[:0]
	for _, u := range s.raw {
		unit := delay.Unit{Offset: u.QueueOffset, Phys: u.PhysicalOffset, Size: u.Size, Deliver: u.TagsCode}
		switch {
		case u.Missing():
			unit.Size, unit.Deliver = 0, 0
		case u.TagsElsewhere():
			unit.Deliver = s.deliverTime(l, u)
		}
		l.ahead = append(l.ahead, unit)
	}
	return nil
}

// deliverTime is the time of a message whose unit has an address in place of it.
func (s *delayService) deliverTime(l *delayLevel, u store.Unit) int64 {
	stored, err := s.st.StoreTime(message.TopicSchedule, l.queue, u.QueueOffset)
	if err != nil || l.delay < 0 {
		return 0 // what is wrong shows when it is read
	}
	return stored + l.delay.Milliseconds()
}

// deliver stores the messages of the units and sorts out what failed: what
// never will be delivered is given up with an error in the log, the rest is
// tried again, alone. The progress goes over them once they have their copies.
func (s *delayService) deliver(ctx context.Context, l *delayLevel, units []delay.Unit) {
	s.prepare(l, units)
	if len(s.batch) == 0 {
		return
	}
	s.settle(ctx, s.put, s.batch)
	s.putOff(ctx, l)
	for i, p := range s.batch {
		u := s.units[i]
		off := bytes.Equal(p.Record.Topic, scheduleTopic)
		switch {
		case p.Status == store.PutOK:
			l.q.Settled(u.Offset)
			if !off {
				s.delivered(p.Record.Topic, l.queue, p.Size)
			}
		case !off && (p.Status == store.MessageIllegal || p.Status == store.PropertiesSizeExceeded):
			s.giveUp(l, u, p.Err)
		default:
			l.q.Failed(u, true, time.Since(s.began))
			s.quiet.Warn("a delayed message could not be stored; it is tried again", "level", l.level, "queue_offset", u.Offset, "error", p.Err)
		}
		*p = store.Put{}
	}
}

// putOff lets those of the batch wait once more, in a later level, that another broker has the queues of and does not take:
// nothing else has to wait for them, and for how long they do is not known.
func (s *delayService) putOff(ctx context.Context, l *delayLevel) {
	level, ok := s.delays.Later(l.delay)
	if !ok {
		return
	}
	var off []*store.Put
	for i, p := range s.batch {
		if !notHandedOn(p) {
			continue
		}
		s.quiet.Warn("a delayed message is put off", "level", l.level, "queue_offset", s.units[i].Offset, "topic", string(p.Record.Topic), "error", p.Err)
		*p = store.Put{Record: delay.Again(p.Record, level), Again: true}
		off = append(off, p)
	}
	if len(off) > 0 {
		s.settle(ctx, s.put, off)
	}
}

// prepare reads the records of the units and fills s.batch and s.units.
func (s *delayService) prepare(l *delayLevel, units []delay.Unit) {
	if s.puts == nil {
		s.puts = make([]store.Put, deliverBatch)
	}
	s.batch, s.units = s.batch[:0], s.units[:0]
	bytes := 0
	for _, u := range units {
		bytes += int(u.Size)
	}
	s.reader.Reset(min(max(bytes, 1), 2*deliverBytes))
	for _, u := range units[:min(len(units), deliverBatch)] {
		if u.Size == 0 {
			l.q.Settled(u.Offset)
			continue // the store has said that its record is missing
		}
		rec, err := s.reader.Read(u.Phys, u.Size)
		if errors.Is(err, store.ErrNoRecord) {
			s.giveUp(l, u, err)
			continue
		}
		if err != nil {
			l.q.Failed(u, false, time.Since(s.began))
			s.quiet.Warn("a delayed message cannot be read; it is tried again", "level", l.level, "queue_offset", u.Offset, "phys_offset", u.Phys, "error", err)
			continue
		}
		out, err := delay.Deliver(rec)
		if err != nil {
			s.giveUp(l, u, err)
			continue
		}
		p := &s.puts[len(s.batch)]
		*p = store.Put{Record: out, Again: true}
		s.batch = append(s.batch, p)
		s.units = append(s.units, u)
	}
}

// giveUp passes over a message that will never be delivered.
func (s *delayService) giveUp(l *delayLevel, u delay.Unit, err error) {
	l.q.Settled(u.Offset)
	s.quiet.Warn("a delayed message cannot be delivered and is passed over; its record stays in the log",
		"level", l.level, "queue_offset", u.Offset, "phys_offset", u.Phys, "size", u.Size, "error", err)
}
