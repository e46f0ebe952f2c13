package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"mqx/message"
	"mqx/store"
)

// Bounds of the timer's work.
const (
	timerBatch      = 512     // messages that are taken up or stored in one go
	timerBatchBytes = 4 << 20 // of records read for them
	// timerGather is the time between two looks at the timer topic while messages keep coming: they are taken up together.
	timerGather = 5 * time.Millisecond
	// timerTries is how often a message is tried in its slot before it is put into a later one, so that it does not hold up
	// the others.
	timerTries     = 3
	timerTryAgain  = 500 * time.Millisecond
	timerPutOff    = 10 * time.Second
	timerExpireGap = 30 * time.Second
)

// timerService keeps and delivers the messages of the timer topic. One goroutine takes them up into the wheel and delivers
// what is due, woken by what arrives and by the time of the next slot in use; another one makes the progress durable while
// there is any. It is made by newTimerService, opened by open and run once.
type timerService struct {
	st        *store.Store
	t         *store.Timer
	put       func([]*store.Put)
	settle    func(ctx context.Context, put func([]*store.Put), ps []*store.Put)
	admit     func() error // why nothing may be stored for want of slaves
	delivered func(topic []byte, size int32)
	name      func(topic []byte) string
	topicOf   func(hash int32) (string, bool)
	now       func() time.Time
	conf      func() *Timers
	quiet     *quietLog
	log       *slog.Logger

	wake   chan struct{}
	asleep atomic.Bool // the topic has been taken up: an arrival wakes the service
	dirty  chan struct{}

	// Of the delivering goroutine.
	reader     *store.RecordReader
	units      []store.Unit
	items      []store.TimerItem
	puts       []store.Put
	batch      []*store.Put
	from       []timerSource // of batch
	props      []byte
	revoked    []string // topics of the cancellations of the slot being delivered
	delivering bool
	slotMs     int64 // of the slot being delivered
	need       int64 // end of the newest copy in the log
	rates      timerRates
	moved      func() // told of each saved progress: what slaves are answered
}

// timerSource is what a put is made of.
type timerSource struct {
	entry   store.TimerEntry
	waiting store.TimerWaiting
	rec     message.View
	enqueue int64
	bare    bool // without the times, for which there was no room
}

func newTimerService(b *Broker) *timerService {
	return &timerService{
		put: b.putOrForward, settle: b.putSettled, admit: b.ha.Admit, delivered: b.countPut, name: b.topicName, topicOf: b.topicOfHash, now: b.now,
		conf: func() *Timers { return &b.cfg().Timers }, quiet: b.quiet, log: b.log,
		wake: make(chan struct{}, 1), dirty: make(chan struct{}, 1),
	}
}

// open recovers the timer.
func (s *timerService) open(st *store.Store) error {
	c := s.conf()
	if !c.TimerWheel {
		return s.warnWaiting(st)
	}
	t, err := st.OpenTimer(store.TimerConfig{
		FileBytes: int64(c.TimerLogFileBytes), Rules: store.NewTimerRules(c.TimerPrecisionMs, c.TimerRollWindow),
		Snapshots: c.TimerSnapshots, SnapshotEveryMs: c.TimerSnapshotEvery.Milliseconds(), TopicOf: s.topicOf,
	})
	if err != nil {
		return err
	}
	s.st, s.t, s.reader = st, t, st.NewRecordReader()
	return nil
}

// warnWaiting says that messages wait that nobody will deliver.
func (s *timerService) warnWaiting(st *store.Store) error {
	n, err := st.TimersWaiting()
	if err != nil {
		return err
	}
	if n > 0 {
		s.log.Warn("timerWheelEnable is false and timer messages wait: they stay in the store and are delivered when it is true again", "messages", n)
	}
	return nil
}

// on reports whether there is a timer.
func (s *timerService) on() bool { return s.t != nil }

// forget takes a deleted topic out of the counts once nothing waits for it.
func (s *timerService) forget(topic string) {
	if s.on() {
		s.t.ForgetTopic(topic)
	}
}

// Arrived is told of every message of the timer topic once it is in its queue. It does not block.
func (s *timerService) Arrived() {
	if s.asleep.CompareAndSwap(true, false) {
		signal(s.wake)
	}
}

// Run works until ctx ends. What was done last is made durable by Close.
func (s *timerService) Run(ctx context.Context) {
	if !s.on() {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.flushUntil(ctx) })
	s.workUntil(ctx)
	wg.Wait()
}

// Close makes durable how far the timer has come. The store must still be open, Run must have ended.
func (s *timerService) Close() error {
	if !s.on() {
		return nil
	}
	return errors.Join(s.t.Flush(s.nowMs(), true, s.flushLog), s.t.Close())
}

func (s *timerService) nowMs() int64 { return s.now().UnixMilli() }

// flushLog makes the commit log durable up to a position.
func (s *timerService) flushLog(need int64) error {
	if s.st.LogFlushed() >= need {
		return nil
	}
	return s.st.Flush()
}

// flushUntil flushes an interval after there was something to flush, until ctx ends.
func (s *timerService) flushUntil(ctx context.Context) {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	expired := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.dirty:
		}
		t.Reset(max(s.conf().TimerFlushEvery, 10*time.Millisecond))
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := s.t.Flush(s.nowMs(), false, s.flushLog); err != nil {
			s.quiet.Warn("the progress of timer messages cannot be saved; it is tried again", "error", err)
			signal(s.dirty)
		} else {
			s.moved()
		}
		if time.Since(expired) >= timerExpireGap {
			expired = time.Now()
			s.expire()
		}
	}
}

// expire lets timer log files go whose messages have expired.
func (s *timerService) expire() {
	if !s.on() {
		return
	}
	if err := s.t.Expire(s.st.LogMin()); err != nil {
		s.quiet.Warn("old files of the timer log cannot be removed", "error", err)
	}
}

// workUntil takes up and delivers until ctx ends.
func (s *timerService) workUntil(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var last time.Time
	for ctx.Err() == nil {
		if gap := timerGather - time.Since(last); gap > 0 && gap <= timerGather {
			pause(ctx, timer, gap, nil)
		}
		wait, waits := s.round(ctx)
		last = time.Now()
		if waits && wait <= 0 {
			continue
		}
		if s.reader.Size() > keptRecords {
			s.reader.Reset(0)
		}
		if !waits {
			wait = -1
		}
		pause(ctx, timer, min(wait, longestSleep), s.wake)
	}
}

// pause waits for d, or without an end when it is negative, for a wake-up or for the end of ctx.
func pause(ctx context.Context, timer *time.Timer, d time.Duration, wake <-chan struct{}) {
	timer.Stop()
	if d >= 0 {
		timer.Reset(d)
	}
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}

// round takes up what has come, then delivers one slot that is due. It tells when to come back; waits is false when
// nothing waits at all. What had come by now is in the wheel before a slot of now is read: a cancellation that came in time
// counts.
func (s *timerService) round(ctx context.Context) (wait time.Duration, waits bool) {
	now := s.nowMs()
	s.turnBack(now)
	caughtUp := s.takeUpAll(ctx)
	if !s.conf().TimerStopDequeue {
		slot, ok := s.t.NextDue(now)
		if ok {
			done := s.deliverSlot(ctx, slot)
			signal(s.dirty)
			if !done {
				return timerTryAgain, true
			}
			return 0, true
		}
	}
	if !caughtUp {
		return timerTryAgain, true
	}
	if next, ok := s.t.NextWake(); ok {
		wait, waits = max(time.Duration(next-s.nowMs())*time.Millisecond, time.Millisecond), true
	}
	if s.conf().TimerStopEnqueue || s.conf().TimerStopDequeue {
		return longestSleep, true // until the setting changes
	}
	if !s.sleep() {
		return 0, true
	}
	return wait, waits
}

// turnBack follows a clock that was set back. It must not be called while a slot is being delivered.
func (s *timerService) turnBack(nowMs int64) {
	turned, err := s.t.TurnBack(nowMs, s.flushLog)
	if turned {
		s.log.Warn("the clock was set back; timer messages follow it", "now_ms", nowMs)
		signal(s.dirty)
	}
	if err != nil {
		s.quiet.Warn("the timer's step backwards cannot be saved; it is tried again", "error", err)
	}
}

// sleep lets arrivals wake the service; it reports false when one came before.
func (s *timerService) sleep() bool {
	s.asleep.Store(true)
	return s.st.MaxOffset(message.TopicTimer, 0) <= s.t.Offset() || !s.asleep.CompareAndSwap(true, false)
}

// takeUpAll takes up what the topic holds now. It reports whether it came to the end.
func (s *timerService) takeUpAll(ctx context.Context) bool {
	if s.conf().TimerStopEnqueue {
		return true
	}
	if s.delivering && s.nowMs() < s.slotMs {
		return true // the clock was set back: what has come goes into slots that can be used when this one is done
	}
	s.correct()
	to := s.st.MaxOffset(message.TopicTimer, 0)
	for s.t.Offset() < to && ctx.Err() == nil {
		if !s.takeUp(ctx, to) {
			return false
		}
	}
	return true
}

// correct brings the position into the range of the topic.
func (s *timerService) correct() {
	at, low, high := s.t.Offset(), s.st.MinOffset(message.TopicTimer, 0), s.st.EndOffset(message.TopicTimer, 0)
	if at < low || at > high {
		s.log.Error("the position of the timer lay outside its topic and is corrected", "was", at, "min_offset", low, "max_offset", high)
		s.t.TakenUp(min(max(at, low), high), 0)
		signal(s.dirty)
	}
}

// takeUp takes up a batch. It reports false when that has to be tried again.
func (s *timerService) takeUp(ctx context.Context, to int64) bool {
	offset := s.t.Offset()
	var err error
	s.units, err = s.st.AppendUnits(s.units[:0], message.TopicTimer, 0, offset, int(min(timerBatch, to-offset)))
	if err != nil {
		s.quiet.Warn("the timer topic cannot be read; it is tried again", "queue_offset", offset, "error", err)
		return false
	}
	if len(s.units) == 0 { // the files of all that is left are missing
		s.t.TakenUp(to, 0)
		return true
	}
	next := s.readItems()
	if next == offset {
		return false
	}
	now := s.nowMs()
	if !s.delivering {
		s.turnBack(now) // it may have happened since the round began
	}
	s.t.Judge(s.items, now)
	s.keepDue()
	if !s.store(ctx, true) {
		return false
	}
	for { // what was due has been delivered: it must not come again
		err := s.t.Add(s.items, now, next, s.need)
		if err == nil {
			break
		}
		s.quiet.Warn("timer messages cannot be taken up; it is tried again", "queue_offset", offset, "error", err)
		if !sleep(ctx, timerTryAgain) {
			return false
		}
	}
	s.rates.enqueued.Add(int64(len(s.items)))
	s.note()
	signal(s.dirty)
	return true
}

// readItems reads the messages of s.units into s.items and s.from, up to timerBatchBytes, and returns the offset behind
// them. A message that cannot be kept is passed over; it stays in its topic.
func (s *timerService) readItems() int64 {
	s.items, s.from, s.props = s.items[:0], s.from[:0], s.props[:0]
	n, bytes := 0, 0
	for n < len(s.units) && (n == 0 || bytes+int(s.units[n].Size) <= timerBatchBytes) {
		bytes += int(s.units[n].Size)
		n++
	}
	s.reader.Reset(max(bytes, 1))
	next := s.t.Offset()
	for _, u := range s.units[:n] {
		if u.Missing() {
			next = u.QueueOffset + 1
			continue
		}
		rec, err := s.reader.Read(u.PhysicalOffset, u.Size)
		if err != nil && !errors.Is(err, store.ErrNoRecord) {
			s.quiet.Warn("a timer message cannot be read; it is tried again", "queue_offset", u.QueueOffset, "phys_offset", u.PhysicalOffset, "error", err)
			break
		}
		var w store.TimerWaiting
		if err == nil {
			w, err = store.ReadTimerWaiting(rec)
		}
		next = u.QueueOffset + 1
		if err != nil {
			s.passOver(u.PhysicalOffset, err)
			continue
		}
		s.items = append(s.items, store.TimerItem{
			Phys: u.PhysicalOffset, Size: u.Size, Out: w.Out, Topic: s.name(w.Topic), TopicHash: message.JavaHash(w.Topic), Delete: w.Cancels != nil,
		})
		s.from = append(s.from, timerSource{waiting: w, rec: rec, enqueue: store.TimerNeverWaited})
	}
	return next
}

// passOver gives a message up.
func (s *timerService) passOver(phys int64, err error) {
	s.quiet.Warn("a timer message cannot be delivered and is passed over; its record stays in the log", "phys_offset", phys, "error", err)
}

// keepDue leaves those of s.from that are due, but for cancellations and what they cancel.
func (s *timerService) keepDue() {
	var cancelled map[string]bool
	for i := range s.from {
		if f := &s.from[i]; s.items[i].Due && f.waiting.Cancels != nil {
			if cancelled == nil {
				cancelled = map[string]bool{}
			}
			cancelled[string(f.waiting.Cancels)] = true
		}
	}
	kept := s.from[:0]
	for i, f := range s.from {
		if !s.items[i].Due || f.waiting.Cancels != nil || s.isCancelled(cancelled, &f.waiting) {
			continue
		}
		f.entry.Phys, f.entry.Size, f.entry.TopicHash = s.items[i].Phys, s.items[i].Size, s.items[i].TopicHash
		kept = append(kept, f)
	}
	clear(s.from[len(kept):])
	s.from = kept
}

// isCancelled reports whether a message is one of those that are cancelled by their keys.
func (s *timerService) isCancelled(keys map[string]bool, w *store.TimerWaiting) bool {
	return keys != nil && w.Key != nil && keys[store.TimerDeleteKey(string(w.Topic), string(w.Key), s.conf().AppendTopicForDeleteKey)]
}

// note writes down the progress for after a kill.
func (s *timerService) note() {
	if err := s.t.Note(); err != nil {
		s.quiet.Warn("the progress of timer messages cannot be noted", "error", err)
	}
}

// topicName is the name of a topic without new memory where it is known.
func (b *Broker) topicName(topic []byte) string {
	if t := b.topics.GetBytes(topic); t != nil {
		return t.TopicName
	}
	return string(topic)
}

// topicOfHash is the name of a topic by its Java hash.
func (b *Broker) topicOfHash(hash int32) (string, bool) {
	all, _ := b.topics.All()
	for i := range all {
		if message.JavaHash([]byte(all[i].TopicName)) == hash {
			return all[i].TopicName, true
		}
	}
	return "", false
}

var errForeign = errors.New("the log holds another message there than the one that was to come")

// timerEntryError names the message of a slot.
func timerEntryError(e *store.TimerEntry, err error) error {
	return fmt.Errorf("unit at %d of the timer log: %w", e.Pos, err)
}
