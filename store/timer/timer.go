package timer

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"

	"mqx/internal/failpoint"
	"mqx/internal/vfs"
)

// Config says where the files lie and which settings hold.
type Config struct {
	FS        vfs.FS
	Root      string // the store directory
	FileBytes int64  // of a file of the timer log (mappedFileSizeTimerLog)
	Rules     Rules
	Snapshots bool // flush the wheel as timerwheel.<position> (timerWheelSnapshotFlush)
	// SnapshotEveryMs is the time between two of them (timerWheelSnapshotIntervalMs).
	SnapshotEveryMs int64
	Logger          *slog.Logger
}

// Origin is what recovery needs to know of the store.
type Origin struct {
	NowMs              int64
	LogEnd             int64 // of the commit log
	QueueMin, QueueMax int64 // of the timer topic
	// PhysAt is the position of the message at an offset of the timer topic, or of the first one behind it; LogEnd when
	// there is none.
	PhysAt func(queueOffset int64) (int64, error)
	// OffsetOf is the offset in the timer topic of the message at a position; ok is false when there is none.
	OffsetOf func(phys int64) (offset int64, ok bool)
	// Each calls f with the messages of the timer topic from one offset to another that can be read; f's error ends it. It is
	// needed when files of the timer are damaged, and by Refind. It may be nil.
	Each func(from, to int64, f func(Kept) error) error
	// TopicOf is the name of the topic with a Java hash. It may be nil.
	TopicOf func(hash int32) (name string, ok bool)
}

// Item is a message of the timer topic that is to wait.
type Item struct {
	Phys      int64
	Size      int32
	Out       int64  // TIMER_OUT_MS
	Topic     string // that it is for
	TopicHash int32
	Delete    bool // it cancels another one
	// Due and Known are set by Judge.
	Due, Known bool
}

// Timer is the wheel and the log on their files. All methods are safe to share; only one goroutine may deliver.
type Timer struct {
	cfg Config

	mu        sync.Mutex
	wheel     Wheel
	log       *files
	read      int64   // time of the oldest slot that has not been passed
	slotPos   int64   // in it, the last unit that has been delivered
	opened    int64   // time of the slot that was opened last: nothing comes into it any more
	offset    int64   // next offset of the timer topic
	need      int64   // position in the commit log behind what was stored for read, slotPos and offset
	known     []int64 // physical offsets of units that the topic will bring once more, ascending
	knownPos  int64   // position of the first of these units
	changed   bool    // since the last flush
	metrics   metrics
	buf       []byte
	undo      []undo
	waits     int64 // units appended since the start
	delivered int64

	noting sync.Mutex // progF, with, turned; taken after flushing
	with   [2]uint32  // of the progress
	// turned: the read time was set back and the files do not say so yet. Until they do, the progress stays as it is.
	turned bool
	progF  vfs.File

	flushing sync.Mutex
	wheelF   vfs.File
	ckptF    vfs.File
	ckpt     Checkpoint
	// wheelUnsynced: the wheel's file holds what a process before has written.
	wheelUnsynced bool
	// oldSnaps: snapshots lie there that the wheel's file will make useless.
	oldSnaps bool
	broken   error // a sync failed: no checkpoint any more
	snapMs   int64
	saved    int64 // version of the metrics that was saved
	found    []string

	each      func(from, to int64, f func(Kept) error) error
	names     func(hash int32) (string, bool)
	queueMin  int64 // of the topic at the start
	damaged   bool  // units or slots that were durable are gone
	uncounted bool  // the metrics could not be used
	misplaced int   // slots of the wheel's file that lie where they cannot
	rest      *rest // of the orderly end before
}

// undo is how a slot was before a batch.
type undo struct {
	tick int64
	old  Slot
	had  bool
}

func wheelPath(root string) string      { return filepath.Join(root, "timerwheel") }
func logDir(root string) string         { return filepath.Join(root, "timerlog") }
func checkpointPath(root string) string { return filepath.Join(root, "config", "timercheck") }
func metricsPath(root string) string    { return filepath.Join(root, "config", "timermetrics") }
func progressPath(root string) string   { return filepath.Join(root, "mqx", "timer-progress") }

// Judge marks the messages that need not be put in: those that may be delivered at once (Due), and those that were put in
// before the process ended (Known). A cancellation that is due still counts for the due messages that it is judged with: both come
// so late when the clock was set back and forward again meanwhile.
func (t *Timer) Judge(items []Item, nowMs int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := 0
	for i := range items {
		it := &items[i]
		for k < len(t.known) && t.known[k] < it.Phys {
			k++
		}
		it.Known = k < len(t.known) && t.known[k] == it.Phys
		// While its slot is still to be read it goes there: cancellations of it do too.
		it.Due = !it.Known && t.cfg.Rules.Due(it.Out, nowMs) && it.Out < t.oldest()
	}
}

// Add puts messages that have been judged into wheel and log, in their order, which is that of the timer topic, and says that
// it has been taken up to the offset next; what was due at once has been stored before the position need of the commit log.
// After an error nothing of them is in, and it can be tried again.
func (t *Timer) Add(items []Item, nowMs, next, need int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.begin(nowMs)
	for i := range items {
		it := &items[i]
		if it.Due || it.Known {
			continue
		}
		at, roll := t.place(it.Out, nowMs)
		magic := int32(MagicDefault)
		if roll {
			magic |= MagicRoll
		}
		if it.Delete {
			magic |= MagicDelete
		}
		if err := b.add(at, Unit{Magic: magic, Phys: it.Phys, Size: it.Size, TopicHash: it.TopicHash}); err != nil {
			return b.fail(err)
		}
	}
	if err := b.end(); err != nil {
		return b.fail(err)
	}
	if t.log.end != b.start {
		failpoint.Pass(failpoint.TimerAppended)
	}
	for i := range items {
		if it := &items[i]; !it.Due && !it.Known {
			t.metrics.add(it.Topic, it.weight(), nowMs)
			t.waits++
			t.changed = true
		}
	}
	t.forgetKnown(items)
	t.takenUp(next, need)
	return nil
}

// PutOff puts a message of a slot that is being delivered into the slot of a later time.
func (t *Timer) PutOff(e *Entry, outMs, nowMs int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.cfg.Rules
	at := max(r.Floor(outMs), t.oldest())
	for t.wheel.Taken(r.Tick(at)) {
		at += r.PrecisionMs
	}
	b := t.begin(nowMs)
	u := Unit{Magic: e.Magic | MagicDefault, Phys: e.Phys, Size: e.Size, TopicHash: e.TopicHash}
	if err := b.add(at, u); err != nil {
		return b.fail(err)
	}
	if err := b.end(); err != nil {
		return b.fail(err)
	}
	t.changed = true
	return nil
}

// batch appends units that belong together.
type batch struct {
	t          *Timer
	start      int64 // of the batch in the log
	at         int64 // of t.buf in the log
	write, now int64
}

func (t *Timer) begin(nowMs int64) *batch {
	t.buf, t.undo = t.buf[:0], t.undo[:0]
	return &batch{t: t, start: t.log.end, at: t.log.end, write: t.cfg.Rules.Floor(nowMs), now: nowMs}
}

// add chains a unit into the slot of a time.
func (b *batch) add(atMs int64, u Unit) error {
	t := b.t
	pos := t.log.size.next(t.log.end)
	if pos != t.log.end { // the next file
		t.buf = appendBlank(t.buf, pos-t.log.end)
		if err := t.log.write(t.buf, b.at); err != nil {
			return err
		}
		t.buf, b.at, t.log.end = t.buf[:0], pos, pos
	}
	tick := t.cfg.Rules.Tick(atMs)
	s, had := t.wheel.Slot(tick)
	t.undo = append(t.undo, undo{tick, s, had})
	u.Prev, u.WriteTime, u.Delay = NoPos, b.write, int32(atMs-b.write)
	if had {
		u.Prev = s.Last
	} else {
		s = Slot{Tick: tick, First: pos}
	}
	s.Last, s.Num = pos, s.Num+u.Weight()
	t.wheel.Put(s)
	t.buf = u.Append(t.buf)
	t.log.end = pos + UnitSize
	return nil
}

func (b *batch) end() error {
	if len(b.t.buf) == 0 {
		return nil
	}
	return b.t.log.write(b.t.buf, b.at)
}

// fail takes the batch back.
func (b *batch) fail(err error) error {
	t := b.t
	for i := len(t.undo) - 1; i >= 0; i-- {
		if u := t.undo[i]; u.had {
			t.wheel.Put(u.old)
		} else {
			t.wheel.Erase(u.tick)
		}
	}
	t.log.end = b.start
	return fmt.Errorf("cannot append to timer log: %w", err)
}

func (it *Item) weight() int64 {
	if it.Delete {
		return -1
	}
	return 1
}

// oldest is the time of the oldest slot that a message can be put into.
func (t *Timer) oldest() int64 { return max(t.read, t.opened+t.cfg.Rules.PrecisionMs) }

// place is Rules.Place, around slots that other messages occupy: such a message rolls from the next free one before.
func (t *Timer) place(out, nowMs int64) (at int64, roll bool) {
	r := t.cfg.Rules
	oldest := t.oldest()
	at, roll = r.Place(out, nowMs, oldest)
	for t.wheel.Taken(r.Tick(at)) && at > oldest {
		at, roll = at-r.PrecisionMs, true
	}
	for t.wheel.Taken(r.Tick(at)) { // rather late than in the way of others
		at += r.PrecisionMs
	}
	return at, roll
}

// forgetKnown drops what items have come past.
func (t *Timer) forgetKnown(items []Item) {
	if len(items) == 0 {
		return
	}
	last := items[len(items)-1].Phys
	for len(t.known) > 0 && t.known[0] <= last {
		t.known = t.known[1:]
	}
	if len(t.known) == 0 {
		t.known = nil
	}
}

// Offset is the next offset of the timer topic to be taken up.
func (t *Timer) Offset() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.offset
}

// TakenUp says that the timer topic has been taken up to an offset. need is the position in the commit log behind what was
// stored for that: what was due at once.
func (t *Timer) TakenUp(offset, need int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.takenUp(offset, need)
}

func (t *Timer) takenUp(offset, need int64) {
	if offset != t.offset {
		t.offset, t.changed = offset, true
	}
	t.need = max(t.need, need)
}

// ReadTime is the time of the oldest slot that has not been passed, in ms.
func (t *Timer) ReadTime() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.read
}

// NextDue is the time of the earliest slot that is due now; ok is false when there is none.
func (t *Timer) NextDue(nowMs int64) (slotMs int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.cfg.Rules
	for {
		from, to := r.Tick(t.read), r.Tick(nowMs)
		if tick, ok := t.wheel.Next(from, to); ok {
			return tick * r.PrecisionMs, true
		}
		if to <= from {
			return 0, false
		}
		t.moveRead(min(to, from+Slots) * r.PrecisionMs)
	}
}

// moveRead moves the read time over slots without messages.
func (t *Timer) moveRead(to int64) {
	if to > t.read {
		t.read, t.slotPos = to, NoPos
	}
}

// NextWake is the time at which the next slot will be due, in ms; ok is false when no message waits.
func (t *Timer) NextWake() (ms int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.cfg.Rules
	tick, ok := t.wheel.Earliest(r.Tick(t.read))
	return (tick + 1) * r.PrecisionMs, ok
}

// Passed says that all messages of a slot have been stored, before the position need of the commit log.
func (t *Timer) Passed(slotMs, need int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wheel.Pass(t.cfg.Rules.Tick(slotMs))
	t.moveRead(slotMs + t.cfg.Rules.PrecisionMs)
	t.need, t.changed = max(t.need, need), true
}

// Delivered says that the messages of a slot have been stored up to a unit, before the position need of the commit log.
func (t *Timer) Delivered(slotMs, unitPos, need int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moveRead(slotMs)
	t.slotPos, t.need, t.changed = unitPos, max(t.need, need), true
}

// Count changes the number of waiting messages of a topic.
func (t *Timer) Count(topic string, by int64, nowMs int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.metrics.add(topic, by, nowMs)
	t.changed = true
	if by < 0 {
		t.delivered -= by
	}
}

// Rejects reports whether the slot of an out time takes no more messages, see the function of that name.
func (t *Timer) Rejects(outMs, limit int64) bool {
	t.mu.Lock()
	s, _ := t.wheel.Slot(t.cfg.Rules.Tick(outMs))
	t.mu.Unlock()
	return Rejects(int64(s.Num), limit, rand.Int64N(1000))
}

// Rules are the settings in force.
func (t *Timer) Rules() Rules { return t.cfg.Rules }

// Num is the number of messages in the wheel, less the cancellations that wait with them.
func (t *Timer) Num() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wheel.Num()
}

// Counts are how many messages were taken up and delivered since the start.
func (t *Timer) Counts() (takenUp, delivered int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waits, t.delivered
}

// Changed reports whether there is something to flush.
func (t *Timer) Changed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// Findings say what recovery found and repaired, for the log.
func (t *Timer) Findings() []string { return t.found }

// Close closes the files; it flushes nothing.
func (t *Timer) Close() error {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	t.noting.Lock()
	defer t.noting.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	errs := []error{t.log.close()}
	for _, f := range []vfs.File{t.wheelF, t.ckptF, t.progF} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	t.wheelF, t.ckptF, t.progF = nil, nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot close timer: %w", err)
	}
	return nil
}
