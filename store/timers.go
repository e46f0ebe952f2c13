package store

import (
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
		QueueMin: s.MinOffset(message.TopicTimer, 0), QueueMax: s.MaxOffset(message.TopicTimer, 0),
		PhysAt: s.timerPhysAt, OffsetOf: s.timerOffsetOf,
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
		return s.log.End(), nil
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

// clipTimer cuts the timer with the log.
func (s *Store) clipTimer(logEnd int64) error {
	t := s.timer.Load()
	if t == nil {
		return nil
	}
	return t.Clip(logEnd, s.MaxOffset(message.TopicTimer, 0))
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
