package broker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"mqx/internal/failpoint"
	"mqx/message"
	"mqx/store"
)

// deliverSlot stores the messages of a slot that is due, but for those that are cancelled. It reports false when it has to
// be done again, from where it stopped.
func (s *timerService) deliverSlot(ctx context.Context, slotMs int64) bool {
	s.delivering, s.slotMs = true, slotMs
	defer func() { s.delivering = false }()
	slot, err := s.t.OpenSlot(slotMs)
	if err != nil {
		s.quiet.Warn("the timer log cannot be read; it is tried again", "slot_ms", slotMs, "error", err)
		return false
	}
	if slot.Broken {
		return s.refind(slot)
	}
	cancelled, ok := s.cancellations(ctx, slot)
	if !ok {
		return false
	}
	for {
		chunk, err := slot.Next()
		if err != nil {
			s.quiet.Warn("the timer log cannot be read; it is tried again", "slot_ms", slotMs, "error", err)
			return false
		}
		if chunk == nil {
			break
		}
		for len(chunk) > 0 {
			n := s.readEntries(chunk, cancelled)
			if n == 0 || !s.store(ctx, false) {
				return false
			}
			failpoint.Pass(failpoint.TimerStored)
			s.t.Delivered(slotMs, chunk[n-1].Pos, s.need)
			s.note()
			signal(s.dirty)
			chunk = chunk[n:]
			if ctx.Err() != nil {
				return false
			}
			if len(chunk) > 0 {
				s.takeUpAll(ctx) // who comes meanwhile does not wait for the rest
			}
		}
	}
	for _, topic := range s.revoked { // a cancellation counts one less while it waits
		s.t.Count(topic, 1, s.nowMs())
	}
	s.revoked = s.revoked[:0]
	s.t.Passed(slotMs, s.need)
	s.note()
	return true
}

// refind puts the messages of a slot whose chain is broken into the next ones, out of the timer topic.
func (s *timerService) refind(slot *store.TimerSlot) bool {
	s.log.Error("the timer log is damaged: the messages of a slot are searched for in the timer topic", "slot_ms", slot.Time, "found", slot.Count, "lost", slot.Lost)
	n, err := s.t.Refind(slot, s.nowMs())
	if err != nil {
		s.quiet.Warn("the timer topic cannot be searched; it is tried again", "slot_ms", slot.Time, "error", err)
		return false
	}
	s.log.Warn("messages of a damaged slot go into the next ones; some of them may come twice", "slot_ms", slot.Time, "messages", n)
	s.t.Passed(slot.Time, s.need)
	s.note()
	return true
}

// cancellations reads what the slot's messages are cancelled by.
func (s *timerService) cancellations(ctx context.Context, slot *store.TimerSlot) (map[string]bool, bool) {
	s.revoked = s.revoked[:0]
	if len(slot.Cancels) == 0 {
		return nil, true
	}
	keys := make(map[string]bool, len(slot.Cancels))
	for i := range slot.Cancels {
		if ctx.Err() != nil {
			return nil, false
		}
		e := &slot.Cancels[i]
		s.reader.Reset(int(max(e.Size, 1)))
		rec, err := s.reader.Read(e.Phys, e.Size)
		if err != nil && !errors.Is(err, store.ErrNoRecord) {
			s.quiet.Warn("a timer message cannot be read; it is tried again", "phys_offset", e.Phys, "error", err)
			return nil, false
		}
		if err != nil {
			s.passOver(e.Phys, timerEntryError(e, err))
			s.revoked = append(s.revoked, s.t.TopicOf(&e.Unit))
			continue
		}
		w, err := store.ReadTimerWaiting(rec)
		if err != nil || w.Cancels == nil {
			s.passOver(e.Phys, timerEntryError(e, errForeign))
			s.revoked = append(s.revoked, s.t.TopicOf(&e.Unit))
			continue
		}
		keys[string(w.Cancels)] = true
		s.revoked = append(s.revoked, s.name(w.Topic))
	}
	return keys, true
}

// readEntries fills s.from with the messages of the first entries of a slot, and returns how many of them it is done with:
// it stops at one that can neither be read nor put off.
func (s *timerService) readEntries(chunk []store.TimerEntry, cancelled map[string]bool) int {
	s.from, s.props = s.from[:0], s.props[:0]
	n, bytes := 0, 0
	for n < len(chunk) && n < timerBatch && (n == 0 || bytes+int(chunk[n].Size) <= timerBatchBytes) {
		bytes += int(max(chunk[n].Size, 0))
		n++
	}
	s.reader.Reset(max(bytes, 1))
	for i := range chunk[:n] {
		e := &chunk[i]
		rec, err := s.reader.Read(e.Phys, e.Size)
		if err != nil && !errors.Is(err, store.ErrNoRecord) {
			if !s.putOff(e, err) {
				return i
			}
			continue
		}
		var w store.TimerWaiting
		if err == nil {
			if w, err = store.ReadTimerWaiting(rec); err == nil && !w.Fits(&e.Unit, s.t.Rules()) {
				err = errForeign
			}
		}
		if err != nil {
			s.passOver(e.Phys, timerEntryError(e, err))
			s.t.Count(s.t.TopicOf(&e.Unit), -int64(e.Weight()), s.nowMs())
			continue
		}
		if s.isCancelled(cancelled, &w) {
			s.t.Count(s.name(w.Topic), -int64(e.Weight()), s.nowMs())
			s.rates.dequeued.Add(1)
			continue
		}
		s.from = append(s.from, timerSource{entry: *e, waiting: w, rec: rec, enqueue: e.WriteTime})
	}
	return n
}

// store stores copies of s.from. What fails is tried again; what still fails then, while the store takes messages at all,
// goes into a later slot. It reports false when ctx ended before. direct says that the messages never were in the wheel.
func (s *timerService) store(ctx context.Context, direct bool) bool {
	for try := 1; len(s.from) > 0; try++ {
		s.build()
		s.settle(ctx, s.put, s.batch)
		s.sortOut(direct)
		if len(s.from) == 0 {
			break
		}
		if ok, _ := s.st.Writeable(); ok && try >= timerTries && s.admit() == nil {
			s.putOffRest(direct)
		}
		if len(s.from) == 0 {
			break
		}
		if !sleep(ctx, timerTryAgain) {
			return false
		}
	}
	return true
}

// build makes the puts of s.from.
func (s *timerService) build() {
	if len(s.puts) < len(s.from) {
		s.puts = make([]store.Put, max(len(s.from), timerBatch))
	}
	s.batch, s.props = s.batch[:0], s.props[:0]
	now := s.nowMs()
	for i := range s.from {
		f := &s.from[i]
		p := &s.puts[i]
		*p = store.Put{Again: true}
		p.Record, s.props = f.waiting.Deliver(f.rec, f.entry.Rolls(), f.enqueue, now, !f.bare, s.props)
		s.batch = append(s.batch, p)
	}
}

// sortOut leaves in s.from what has to be tried again.
func (s *timerService) sortOut(direct bool) {
	again := s.from[:0]
	now := s.nowMs()
	for i := range s.from {
		f, p := s.from[i], s.batch[i]
		switch {
		case p.Status == store.PutOK:
			s.need = max(s.need, p.PhysicalOffset+int64(p.Size))
			s.delivered(p.Record.Topic, p.Size)
			s.rates.dequeued.Add(1)
		case p.Status == store.PropertiesSizeExceeded && !f.bare && !f.entry.Rolls():
			f.bare = true
			again = append(again, f)
			*p = store.Put{}
			continue
		case p.Status == store.PropertiesSizeExceeded || p.Status == store.MessageIllegal:
			s.passOver(f.entry.Phys, p.Err)
		case notHandedOn(p) && s.putOff(&f.entry, p.Err): // the others of its slot do not wait for it
			if direct {
				s.t.Count(s.name(f.waiting.Topic), 1, now)
			}
			*p = store.Put{}
			continue
		default:
			s.quiet.Warn("a timer message could not be stored; it is tried again", "phys_offset", f.entry.Phys, "status", p.Status.String(), "error", p.Err)
			again = append(again, f)
			*p = store.Put{}
			continue
		}
		if !direct { // it does not wait any more
			s.t.Count(s.name(f.waiting.Topic), -int64(f.entry.Weight()), now)
		}
		*p = store.Put{}
	}
	clear(s.from[len(again):])
	s.from = again
}

// putOffRest puts off what could not be stored and leaves in s.from what could not be put off either.
func (s *timerService) putOffRest(direct bool) {
	kept := s.from[:0]
	for i := range s.from {
		f := s.from[i]
		if !s.putOff(&f.entry, nil) {
			kept = append(kept, f)
			continue
		}
		if direct {
			s.t.Count(s.name(f.waiting.Topic), 1, s.nowMs())
		}
	}
	clear(s.from[len(kept):])
	s.from = kept
}

// putOff puts a message that cannot be read, stored or handed on now into a later slot. It reports false when that failed too: the
// message is then to stay where it is.
func (s *timerService) putOff(e *store.TimerEntry, err error) bool {
	if err != nil {
		s.quiet.Warn("a timer message cannot be delivered now; it is put off", "phys_offset", e.Phys, "error", err)
	}
	now := s.nowMs()
	if err := s.t.PutOff(e, now+timerPutOff.Milliseconds(), now); err != nil {
		s.quiet.Warn("a timer message cannot be put off; it stays in its slot", "phys_offset", e.Phys, "error", err)
		return false
	}
	return true
}

// timerRates count for the runtime information.
type timerRates struct {
	enqueued, dequeued atomic.Int64
	mu                 struct {
		sync.Mutex
		at                 time.Time
		enqueued, dequeued int64
		in, out            float64
	}
}

// behind is what the runtime information says of the timer. The service sleeps until the next slot is due: what it
// has not passed and nothing lies in is no lag.
func (s *timerService) behind() (readSeconds, offsets, waiting int64) {
	if !s.on() {
		return 0, 0, 0
	}
	now := s.nowMs()
	s.t.NextDue(now)
	return max(0, now-s.t.ReadTime()) / 1000, max(0, s.st.MaxOffset(message.TopicTimer, 0)-s.t.Offset()), s.t.Num()
}

// tps is how many messages a second were taken up and delivered since it was last called, at most a minute ago; as Apache's
// runtime information, which is asked every few seconds or minutes.
func (s *timerService) tps(now time.Time) (in, out float64) {
	r := &s.rates
	r.mu.Lock()
	defer r.mu.Unlock()
	enqueued, dequeued := r.enqueued.Load(), r.dequeued.Load()
	span := now.Sub(r.mu.at).Seconds()
	if r.mu.at.IsZero() || span <= 0 || span > 60 {
		r.mu.at, r.mu.enqueued, r.mu.dequeued, r.mu.in, r.mu.out = now, enqueued, dequeued, 0, 0
		return 0, 0
	}
	if span >= 1 {
		r.mu.in, r.mu.out = float64(enqueued-r.mu.enqueued)/span, float64(dequeued-r.mu.dequeued)/span
		r.mu.at, r.mu.enqueued, r.mu.dequeued = now, enqueued, dequeued
	}
	return r.mu.in, r.mu.out
}
