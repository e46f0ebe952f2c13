package timer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"mqx/internal/vfs"
)

// dayMs is a day.
const dayMs = 24 * 3600 * 1000

// farAheadMs is how far ahead a slot may wait: further than the wheel, because the clock may have been set back. The time of a slot
// of another precision is wrong by more.
const farAheadMs = 20 * 365 * dayMs

// PrecisionError says that messages wait in a wheel of another precision.
type PrecisionError struct {
	Found, Wanted int64 // ms
	Slots         int   // with messages that wait
}

// Error says what to do.
func (e *PrecisionError) Error() string {
	return fmt.Sprintf("the timer wheel was written with timerPrecisionMs=%d and %d of its slots hold messages that wait; with %d they would not be found. Set it back to %d until they are delivered",
		e.Found, e.Slots, e.Wanted, e.Found)
}

// Open loads wheel, log, checkpoint and metrics of a store directory and brings them into step with each other and with the
// commit log, as docs/format/timer.md, "Recovery" says. What it repaired is in Findings.
//
// Errors: *PrecisionError, or that of the disk.
func Open(cfg Config, o Origin) (*Timer, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	t := &Timer{cfg: cfg, slotPos: NoPos, snapMs: o.NowMs, each: o.Each, names: o.TopicOf, queueMin: o.QueueMin}
	if err := t.load(o); err != nil {
		return nil, errors.Join(err, t.abandon())
	}
	return t, nil
}

func (t *Timer) abandon() error {
	if t.log == nil {
		t.log = &files{}
	}
	return t.Close()
}

func (t *Timer) find(format string, args ...any) {
	t.found = append(t.found, fmt.Sprintf(format, args...))
}

// load is a list of steps that each lean on those before.
func (t *Timer) load(o Origin) error {
	fsys, root := t.cfg.FS, t.cfg.Root
	ckpt, known, err := ReadCheckpoint(fsys, root)
	if err != nil {
		return err
	}
	t.ckpt = ckpt
	if t.log, err = openFiles(fsys, logDir(root), t.cfg.FileBytes); err != nil {
		return err
	}
	if err := t.log.grow(); err != nil {
		return fmt.Errorf("cannot open timer log: %w", err)
	}
	// 1. Where to go on: by the checkpoint, or by what was noted after it when the commit log has all of that.
	read := ckpt.ReadTime
	if !known {
		read = max(0, t.cfg.Rules.Floor(o.NowMs)-7*dayMs*t.cfg.Rules.PrecisionMs/1000+blankSlots*t.cfg.Rules.PrecisionMs)
	}
	t.offset = min(ckpt.QueueOffset, max(ckpt.MasterQueueOffset, 0))
	noted, err := t.readProgress(o.LogEnd)
	if err != nil {
		return err
	}
	if p := noted; p != nil {
		known = true
		read, t.slotPos, t.offset, t.need = p.readTime, p.slotPos, p.queueOffset, p.need
	}
	t.read = t.cfg.Rules.Floor(read)
	if t.read != read {
		t.slotPos = NoPos
	}
	// 2. The wheel as it was flushed.
	from, usable, err := t.loadWheel(ckpt.LogFlushed)
	if err != nil {
		return err
	}
	if err := t.loadMetrics(); err != nil {
		return err
	}
	usable = t.plausible(usable && known)
	// 3. The log behind it.
	if err := t.replay(from, usable, known, o); err != nil {
		return err
	}
	if known && t.log.end < ckpt.LogFlushed {
		t.find("the timer log ends at %d, %d of it were durable", t.log.end, ckpt.LogFlushed)
		t.damaged = true
	}
	// 4. Nothing points to where the commit log is not.
	if err := t.clip(o.LogEnd); err != nil {
		return err
	}
	// 5. The topic has to have what is said to be taken up.
	if err := t.settleOffset(known, o); err != nil {
		return err
	}
	// 6. What is still missing comes from the topic.
	t.saved = t.metrics.version
	if err := t.repair(o); err != nil {
		return err
	}
	return t.openFor()
}

// openFor opens the files that are written in place.
func (t *Timer) openFor() error {
	fsys, root := t.cfg.FS, t.cfg.Root
	for _, dir := range []string{filepath.Dir(checkpointPath(root)), filepath.Dir(progressPath(root))} {
		if err := vfs.MkdirAllDurable(fsys, dir); err != nil {
			return fmt.Errorf("cannot open timer: %w", err)
		}
	}
	var err error
	if t.wheelF, err = openSized(fsys, wheelPath(root), root, WheelBytes); err != nil {
		return fmt.Errorf("cannot open timer wheel: %w", err)
	}
	if t.ckptF, err = openSized(fsys, checkpointPath(root), filepath.Dir(checkpointPath(root)), checkpointBytes); err != nil {
		return fmt.Errorf("cannot open timer checkpoint: %w", err)
	}
	if t.progF, err = openSized(fsys, progressPath(root), filepath.Dir(progressPath(root)), progressBytes); err != nil {
		return fmt.Errorf("cannot open timer progress: %w", err)
	}
	t.with = [2]uint32{t.ckpt.sum(), t.ckpt.sum()}
	return t.renote()
}

// renote replaces the progress that is noted, durably: one that speaks of more than the commit log holds must not become true
// again when the log has grown.
func (t *Timer) renote() error {
	t.noting.Lock()
	defer t.noting.Unlock()
	if t.progF == nil {
		return nil
	}
	var err error
	if t.turned {
		_, err = t.progF.WriteAt(make([]byte, progressBytes), 0)
	} else if err = t.writeProgress(durableAt, notedAt); err == nil {
		_, err = t.progF.WriteAt(make([]byte, restSize), restAt)
	}
	if err == nil {
		err = t.progF.Sync()
	}
	if err != nil {
		return fmt.Errorf("cannot note progress of timer: %w", err)
	}
	return nil
}

// readProgress reads the note of mqx's own: the newest that holds, nil for none.
func (t *Timer) readProgress(logEnd int64) (*progress, error) {
	b, err := readHead(t.cfg.FS, progressPath(t.cfg.Root), progressBytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read timer progress: %w", err)
	}
	if r, ok := decodeRest(b[min(restAt, len(b)):]); ok && r.with == t.ckpt.sum() {
		t.rest = &r
	}
	var best *progress
	for _, at := range []int{durableAt, notedAt} {
		p, ok := decodeProgress(b[min(at, len(b)):])
		if !ok || !slices.Contains(p.with[:], t.ckpt.sum()) || p.need > logEnd || best != nil && best.after(&p) {
			continue
		}
		whole, err := t.log.reaches(t.ckpt.LogFlushed, p.logEnd)
		if err != nil {
			return nil, err
		}
		if whole {
			best = &p
		}
	}
	return best, nil
}

// reaches reports whether there are units without a gap from one position to another.
func (l *files) reaches(from, to int64) (bool, error) {
	if to > l.end || from < l.min() || from%int64(l.size)%UnitSize != 0 {
		return to <= from, nil
	}
	end, err := l.scan(l.size.next(from), to, func(int64, Unit) bool { return true })
	if err != nil {
		return false, fmt.Errorf("cannot recover timer log: %w", err)
	}
	return end >= to, nil
}

// grow gives a last file that a crash left short its length.
func (l *files) grow() error {
	n := len(l.starts)
	if n == 0 {
		return nil
	}
	path := l.path(l.starts[n-1])
	st, err := l.fs.Stat(path)
	if err != nil || st.Size() == int64(l.size) {
		return err
	}
	f, err := l.fs.OpenFile(path, os.O_RDWR)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(int64(l.size)), f.Close())
}

// blankFrom reports whether there is nothing but zeros behind a position.
func (l *files) blankFrom(pos int64) (bool, error) {
	n := len(l.starts)
	if pos >= l.end {
		return true, nil
	}
	if l.starts[n-1] > pos {
		return false, nil
	}
	f, err := l.file(l.starts[n-1])
	if err != nil {
		return false, err
	}
	seeker, _ := f.(vfs.DataSeeker)
	for off := pos - l.starts[n-1]; off < int64(l.size); off += int64(len(l.win)) {
		if seeker != nil {
			next, err := seeker.NextData(off)
			if errors.Is(err, io.EOF) {
				return true, nil
			}
			if err == nil {
				off = max(off, next)
			}
		}
		if err := l.read(l.starts[n-1]+off, int(min(scanBytes, int64(l.size)-off))); err != nil {
			return false, err
		}
		if !vfs.AllZero(l.win) {
			return false, nil
		}
	}
	return true, nil
}

// loadWheel reads the slots that wait, from the newest snapshot of the wheel or, when there is none, from its file. It returns
// the position up to which the log is in the slots. usable is false when there is no wheel: everything has to come from the log.
func (t *Timer) loadWheel(flushed int64) (from int64, usable bool, err error) {
	fsys, root := t.cfg.FS, t.cfg.Root
	snaps, err := snapshots(fsys, root)
	if err != nil {
		return 0, false, fmt.Errorf("cannot read timer wheel: %w", err)
	}
	path := wheelPath(root)
	if n := len(snaps); n > 0 {
		// The wheel's file is older, or whoever wrote it since then has written the log too.
		path += "." + strconv.FormatInt(snaps[n-1], 10)
		flushed = min(flushed, snaps[n-1])
		t.oldSnaps = true
	}
	foreign := map[int64]int{}
	if usable, err = t.loadSlots(path, foreign); err != nil {
		return 0, false, err
	}
	for p, n := range foreign {
		if n > 0 {
			return 0, false, &PrecisionError{Found: p, Wanted: t.cfg.Rules.PrecisionMs, Slots: n}
		}
	}
	if !t.oldSnaps { // else the wheel's file does not have all of them
		t.wheel.clean()
	}
	if t.cfg.Snapshots && !t.oldSnaps {
		flushed = 0 // they may have been removed
	}
	return flushed, usable, nil
}

// plausible reports whether the slots that were read may be all there are: each in its place, and as many messages as at the
// orderly end before. If not, they are built from the timer log.
func (t *Timer) plausible(usable bool) bool {
	switch {
	case !usable:
		return false
	case t.misplaced > 0:
		t.find("%d slots of the timer wheel lie where they cannot; it is built from the timer log", t.misplaced)
		return false
	case t.rest != nil && t.rest.num != t.wheel.Num():
		t.find("the timer wheel holds %d messages where it held %d; it is built from the timer log", t.wheel.Num(), t.rest.num)
		return false
	}
	return true
}

// loadSlots reads the slots that wait from one file. ok is false when the file is missing or not one; a wheel that was
// never written is one.
func (t *Timer) loadSlots(path string, foreign map[int64]int) (ok bool, err error) {
	f, err := t.cfg.FS.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot read timer wheel: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	size, err := f.Size()
	if err != nil {
		return false, fmt.Errorf("cannot read timer wheel: %w", err)
	}
	if size != WheelBytes {
		t.find("%s has %d bytes instead of %d; the slots are built from the timer log", filepath.Base(path), size, WheelBytes)
		return false, nil
	}
	err = eachPage(f, func(off int64, b []byte) {
		for o := 0; o < len(b); o += SlotSize {
			if s := DecodeSlot(b[o:]); s.Tick != 0 {
				t.loadSlot(int((off+int64(o))/SlotSize), s, foreign)
			}
		}
	})
	if err != nil {
		return false, fmt.Errorf("cannot read timer wheel: %w", err)
	}
	return true, nil
}

// eachPage calls f with the parts of a wheel's file that may hold something.
func eachPage(f vfs.File, call func(off int64, b []byte)) error {
	buf := make([]byte, 64<<10)
	seeker, _ := f.(vfs.DataSeeker)
	for off := int64(0); off < WheelBytes; {
		if seeker != nil {
			next, err := seeker.NextData(off)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil && next > off {
				off = next / SlotSize * SlotSize
			}
		}
		n := min(int64(len(buf)), WheelBytes-off)
		if _, err := f.ReadAt(buf[:n], off); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if !vfs.AllZero(buf[:n]) {
			call(off, buf[:n])
		}
		off += n
	}
	return nil
}

// loadSlot takes a slot of a file when it waits.
func (t *Timer) loadSlot(i int, s Slot, foreign map[int64]int) {
	r := t.cfg.Rules
	read := r.Tick(t.read)
	if s.Tick < 0 || s.Last < 0 {
		return
	}
	if index(s.Tick) != i {
		t.misplaced++
		return
	}
	if s.Tick < read || s.Tick >= read+Slots { // after a step of the clock they may be far ahead
		for _, p := range precisions {
			if at := s.Tick * p; p != r.PrecisionMs && at >= t.read && at < t.read+Slots*p {
				foreign[p]++
				return
			}
		}
		if s.Tick < read || s.Tick >= read+farAheadMs/r.PrecisionMs {
			return
		}
	}
	if have, ok := t.wheel.at(i); ok && (have.Tick != s.Tick || have.Last >= s.Last) {
		return
	}
	t.wheel.Put(s)
}

// clean says that the files have the slots as they are.
func (w *Wheel) clean() {
	for _, p := range w.pages {
		if p != nil {
			p.dirty = [2]uint64{}
		}
	}
}

// replay reads the log from a position on: it finds the end, brings units into slots that do not know them, and notes the
// messages that need not be taken up again.
func (t *Timer) replay(from int64, usable, known bool, o Origin) error {
	l := t.log
	if len(l.starts) == 0 {
		l.end = 0
		return t.dropBeyond()
	}
	from = l.size.next(from) // the last place of a file holds no unit
	if !usable || !known || from > l.end || !(l.size.aligned(from) || from%int64(l.size) == 0) {
		from = l.min()
		if usable && !known {
			t.find("the timer checkpoint is missing; the timer log is read from %d on", from)
		}
	}
	from = l.size.next(max(from, l.min()))
	// A process that was killed has written what no sync of this one would know.
	for _, start := range l.starts {
		if start+int64(l.size) > from {
			l.unsynced = append(l.unsynced, start)
		}
	}
	l.names, t.wheelUnsynced = true, true
	resume := o.LogEnd
	if o.PhysAt != nil && known {
		at, err := o.PhysAt(t.offset)
		if err != nil {
			return fmt.Errorf("cannot recover timer: %w", err)
		}
		resume = at
	}
	limit, r := l.end, t.cfg.Rules
	end, err := l.scan(from, limit, func(pos int64, u Unit) bool {
		// A slot that was passed does not come again, unless the clock was set back: its messages are taken up anew.
		in := t.apply(r.Tick(u.Time()), pos, &u)
		if in && u.Phys >= resume && (len(t.known) == 0 || u.Phys > t.known[len(t.known)-1]) {
			if t.known == nil {
				t.knownPos = pos
			}
			t.known = append(t.known, u.Phys)
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("cannot recover timer log: %w", err)
	}
	if blank, err := l.blankFrom(end); err != nil {
		return fmt.Errorf("cannot recover timer log: %w", err)
	} else if blank {
		l.end = end
	} else {
		if err := l.cut(end); err != nil {
			return fmt.Errorf("cannot cut timer log: %w", err)
		}
	}
	return t.dropBeyond()
}

// apply brings a unit into its slot, unless the slot knows it. It reports false when the slot has been passed, or messages
// of another time wait there.
func (t *Timer) apply(tick, pos int64, u *Unit) bool {
	if tick < t.cfg.Rules.Tick(t.read) || t.wheel.Taken(tick) {
		return false
	}
	s, ok := t.wheel.Slot(tick)
	if !ok {
		s = Slot{Tick: tick, First: pos, Last: NoPos}
	}
	if s.Last >= pos {
		return true
	}
	s.Last, s.Num = pos, s.Num+u.Weight()
	t.wheel.Put(s)
	return true
}

// dropBeyond corrects slots that point behind the end of the log: their units are searched for in what is left.
func (t *Timer) dropBeyond() error {
	r := t.cfg.Rules
	from := t.log.end
	ticks := map[int64]int64{} // to the first unit
	for at := r.Tick(t.read); ; at++ {
		tick, ok := t.wheel.Earliest(at)
		if !ok {
			break
		}
		at = tick
		if s, _ := t.wheel.Slot(tick); s.Last >= t.log.end {
			ticks[tick] = s.First
			from = min(from, max(s.First, 0))
		}
	}
	if len(ticks) == 0 {
		return nil
	}
	t.find("%d slots of the timer wheel point behind the end of the timer log at %d; they are built again", len(ticks), t.log.end)
	t.damaged = true
	for tick := range ticks {
		t.wheel.Erase(tick)
	}
	from = max(from, t.log.min())
	if !t.log.size.aligned(from) {
		from = t.log.min()
	}
	_, err := t.log.scan(from, t.log.end, func(pos int64, u Unit) bool {
		tick := r.Tick(u.Time())
		if first, found := ticks[tick]; found && pos >= first {
			t.apply(tick, pos, &u)
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("cannot recover timer wheel: %w", err)
	}
	return nil
}

// Clip drops the units of messages that lie behind the end of the commit log, for whoever truncates it. The timer topic is
// then taken up again from where it ends.
func (t *Timer) Clip(logEnd, queueMax, nowMs int64) error {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	t.mu.Lock()
	err := t.clip(logEnd)
	if err == nil {
		t.offset, t.need, t.changed = min(t.offset, queueMax), min(t.need, logEnd), true
		_, err = t.recount(nowMs)
	}
	t.mu.Unlock()
	if err != nil {
		return err
	}
	return t.renote()
}

func (t *Timer) clip(logEnd int64) error {
	l, r := t.log, t.cfg.Rules
	end, n := l.end, 0
	for {
		pos, ok := l.size.before(end)
		if !ok || pos < l.min() {
			break
		}
		u, err := l.unit(pos)
		if err != nil && isIO(err) {
			return fmt.Errorf("cannot read timer log: %w", err)
		}
		if err != nil || u.Phys+int64(u.Size) <= logEnd {
			break
		}
		tick := r.Tick(u.Time())
		if s, ok := t.wheel.Slot(tick); ok && s.Last == pos {
			if u.Prev == NoPos {
				t.wheel.Erase(tick)
			} else {
				s.Last, s.Num = u.Prev, s.Num-u.Weight()
				t.wheel.Put(s)
			}
		}
		end = pos
		n++
	}
	if n == 0 {
		return nil
	}
	t.find("%d units of the timer log point behind the end of the commit log at %d; they are dropped", n, logEnd)
	t.known = slices.DeleteFunc(t.known, func(phys int64) bool { return phys >= logEnd })
	t.changed = true
	if err := l.cut(end); err != nil {
		return fmt.Errorf("cannot cut timer log: %w", err)
	}
	return nil
}

// settleOffset corrects the next offset of the timer topic.
func (t *Timer) settleOffset(known bool, o Origin) error {
	if pos, ok := t.log.size.before(t.log.end); !known && ok && pos >= t.log.min() && o.OffsetOf != nil {
		// What the last unit's message is followed by. Messages before it that were due at once come again.
		u, err := t.log.unit(pos)
		if err != nil && isIO(err) {
			return fmt.Errorf("cannot read timer log: %w", err)
		}
		if err == nil {
			if off, ok := o.OffsetOf(u.Phys); ok {
				t.offset = off + 1
			}
		}
	}
	if was := t.offset; was < o.QueueMin || was > o.QueueMax {
		t.offset = min(max(was, o.QueueMin), o.QueueMax)
		if was > o.QueueMax {
			t.find("the timer was at offset %d of its topic, which ends at %d", was, o.QueueMax)
		}
		t.changed = true
	}
	return nil
}
