package store

import (
	"errors"
	"fmt"

	"mqx/message"
	"mqx/store/timer"
)

type (
	// Timer is the wheel with its log, see package timer.
	Timer = timer.Timer
	// TimerItem is a message that is to wait.
	TimerItem = timer.Item
	// TimerRules are precision and window.
	TimerRules = timer.Rules
	// TimerEntry is a message that waits.
	TimerEntry = timer.Entry
	// TimerSlot is a slot that is due.
	TimerSlot = timer.DueSlot
	// TimerWaiting is what a record of the timer topic says.
	TimerWaiting = timer.Waiting
)

// TimerNeverWaited is the TIMER_ENQUEUE_MS of a message that was due when the timer came to it.
const TimerNeverWaited = timer.NeverWaited

// NewTimerRules settles timerPrecisionMs and timerRollWindowSlot.
func NewTimerRules(precisionMs, rollSlots int) TimerRules {
	return timer.NewRules(precisionMs, rollSlots)
}

// ReadTimerWaiting reads a record of the timer topic.
func ReadTimerWaiting(rec message.View) (TimerWaiting, error) { return timer.ReadWaiting(rec) }

// TimerDeleteKey is what a timer message is cancelled by.
func TimerDeleteKey(topic, key string, withTopic bool) string {
	return timer.DeleteKey(topic, key, withTopic)
}

// TimerConfig says how the timer is kept.
type TimerConfig struct {
	FileBytes       int64 // of a file of the timer log
	Rules           TimerRules
	Snapshots       bool
	SnapshotEveryMs int64
	TopicOf         func(hash int32) (name string, ok bool) // the name of the topic with a Java hash; it may be nil
}

// OpenTimer loads the wheel, the timer log and their checkpoint and recovers them against what the store holds. The caller
// closes it before the store. Truncate cuts it along with the rest.
func (s *Store) OpenTimer(cfg TimerConfig) (*Timer, error) {
	c := &s.cfg
	t, err := timer.Open(timer.Config{
		FS: c.FS, Root: c.RootDir, FileBytes: cfg.FileBytes, Rules: cfg.Rules, Snapshots: cfg.Snapshots,
		SnapshotEveryMs: cfg.SnapshotEveryMs, Logger: c.Logger,
	}, timer.Origin{
		NowMs: c.Clock.Now().UnixMilli(), LogEnd: s.log.End(),
		QueueMin: s.MinOffset(message.TopicTimer, 0), QueueMax: s.EndOffset(message.TopicTimer, 0),
		PhysAt: s.timerPhysAt, OffsetOf: s.timerOffsetOf, Each: s.eachTimer, TopicOf: cfg.TopicOf,
	})
	if err != nil {
		return nil, err
	}
	for _, f := range t.Findings() {
		c.Logger.Warn("store: the timer was repaired", "what", f)
	}
	s.timer.Store(t)
	return t, nil
}

func (s *Store) timerPhysAt(offset int64) (int64, error) {
	us, err := s.Units(message.TopicTimer, 0, offset, 1)
	if err != nil {
		return 0, fmt.Errorf("cannot read timer topic: %w", err)
	}
	if len(us) == 0 {
		return s.heldAt(message.TopicTimer, 0, offset)
	}
	return us[0].PhysicalOffset, nil
}

func (s *Store) timerOffsetOf(phys int64) (int64, bool) {
	rec, err := s.recordAt(phys)
	if err != nil || string(rec.Topic()) != message.TopicTimer {
		return 0, false
	}
	return rec.QueueOffset(), true
}

// eachTimer calls f with the messages of the timer topic from one offset to another. What is no timer message is left out.
func (s *Store) eachTimer(from, to int64, f func(timer.Kept) error) error {
	r := s.NewRecordReader()
	var units []Unit
	for at := from; at < to; {
		var err error
		if units, err = s.AppendUnits(units[:0], message.TopicTimer, 0, at, int(min(unitChunk, to-at))); err != nil {
			return fmt.Errorf("cannot read timer topic: %w", err)
		}
		if len(units) == 0 {
			return nil
		}
		for _, u := range units {
			if at = u.QueueOffset + 1; u.QueueOffset >= to || u.Missing() {
				continue
			}
			r.Reset(int(max(u.Size, 1)))
			rec, err := r.Read(u.PhysicalOffset, u.Size)
			if errors.Is(err, ErrNoRecord) {
				continue
			}
			if err != nil {
				return fmt.Errorf("cannot read timer topic: %w", err)
			}
			w, err := timer.ReadWaiting(rec)
			if err != nil {
				continue // it never was in the wheel
			}
			if err := f(w.Kept(u.PhysicalOffset, u.Size)); err != nil {
				return err
			}
		}
	}
	return nil
}

// clipTimer cuts the timer with the log.
func (s *Store) clipTimer(logEnd int64) error {
	t := s.timer.Load()
	if t == nil {
		return nil
	}
	return t.Clip(logEnd, s.MaxOffset(message.TopicTimer, 0), s.cfg.Clock.Now().UnixMilli())
}

// TimersWaiting is how many timer messages wait in the store, for a broker that does not deliver any.
func (s *Store) TimersWaiting() (int64, error) {
	v, err := timer.OpenView(s.cfg.FS, s.cfg.RootDir)
	if err != nil {
		return 0, err
	}
	n, err := v.Waiting()
	return n + max(0, s.MaxOffset(message.TopicTimer, 0)-v.Checkpoint.QueueOffset), err
}
