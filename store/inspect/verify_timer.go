package inspect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"mqx/internal/words"
	"mqx/message"
	"mqx/store/timer"
)

const timerCheckFile = nameConfig + "/timercheck"

// timerCheck compares timer log, wheel and checkpoint with each other and with the commit log. What has been delivered is
// not looked at: only slots from the checkpoint's time on count.
type timerCheck struct {
	v    *verifier
	view *timer.View

	end     int64                // of the units that are right
	last    int64                // position of the message of the last one, -1 for none
	waiting map[int64]timerUnits // by tick
	known   int64                // units that wait and that the wheel has to know
	cut     bool                 // the log has to be cut at end
	found   bool
}

// timerUnits are the units of a tick that the wheel has to know.
type timerUnits struct{ count, last int64 }

func (v *verifier) checkTimer() error {
	if v.live || v.d.Has(KindRocksDBTimer) {
		return nil // it moves, or is elsewhere
	}
	view, err := v.d.TimerView()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	c := &timerCheck{v: v, view: view, last: -1, waiting: map[int64]timerUnits{}}
	for _, step := range []func() error{c.sizes, c.log, c.wheel, c.checkpoint} {
		if err := step(); err != nil {
			return err
		}
	}
	if c.found {
		v.timer = c
	}
	return nil
}

func (c *timerCheck) add(kind FindingKind, file string, at int64, format string, args ...any) {
	c.found = true
	c.v.found.add(&Finding{
		Kind: kind, File: file, Offset: at, Phys: -1, Messages: -1, What: fmt.Sprintf(format, args...), Derived: true,
		Mend: "let the next start build wheel and log from what is whole and from the timer topic; a message whose time has passed may come again",
	})
}

func (c *timerCheck) sizes() error {
	for _, w := range c.view.Wheels {
		if w.Bytes != timer.WheelBytes {
			c.add(FindTimerWheel, w.Name, min(w.Bytes, timer.WheelBytes), "the wheel has %s, not %d", words.Count(w.Bytes, "byte"), int64(timer.WheelBytes))
		}
	}
	for _, f := range c.view.Foreign {
		c.v.foreign(c.v.d.Path(path.Join(nameTimerLog, FileName(f.Start))), "its name is no position where a file of the timer log begins")
	}
	for i, f := range c.view.Log {
		file := path.Join(nameTimerLog, FileName(f.Start))
		switch {
		case f.Bytes != c.view.FileBytes:
			c.cutLog(file, 0, "the file has %s, others have %d", words.Count(f.Bytes, "byte"), c.view.FileBytes)
		case f.Start%max(c.view.FileBytes, 1) != 0:
			c.cutLog(file, 0, "its name is no position where a file of %d bytes begins", c.view.FileBytes)
		case i > 0 && c.view.Log[i-1].Start+c.view.FileBytes != f.Start:
			c.cutLog(file, 0, "the file before it, %s, is missing", FileName(f.Start-c.view.FileBytes))
		}
	}
	return nil
}

func (c *timerCheck) cutLog(file string, at int64, format string, args ...any) {
	c.cut = true
	c.add(FindTimerLog, file, at, format, args...)
}

// log reads all units.
func (c *timerCheck) log() error {
	if len(c.view.Log) == 0 {
		return nil
	}
	from := c.view.Log[0].Start
	c.end = from
	bad := ""
	var failed error
	end, err := c.view.Units(from, func(pos int64, u timer.Unit) bool {
		if bad, failed = c.unit(pos, u); bad != "" || failed != nil {
			return false
		}
		c.end, c.last = pos+timer.UnitSize, u.Phys
		return true
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	file, at := c.place(max(c.end, end))
	switch {
	case bad != "":
		c.cutLog(file, at, "the unit at %d cannot be: %s", end, bad)
	case c.view.HasCheckpoint && end > from && end < c.view.Checkpoint.LogFlushed: // a slave has the checkpoint and no units
		c.cutLog(file, at, "there is no unit at %d, and config/timercheck says that the log reaches to %d", end, c.view.Checkpoint.LogFlushed)
	default:
		return c.behind(end)
	}
	return nil
}

// behind looks at what follows the last unit: nothing, or a unit that was being written when the broker died.
func (c *timerCheck) behind(end int64) error {
	for _, f := range c.view.Log {
		if f.Start+f.Bytes <= end {
			continue
		}
		file := path.Join(nameTimerLog, FileName(f.Start))
		at, err := c.v.d.firstData(file, max(end-f.Start, 0), f.Bytes)
		if err != nil {
			return err
		}
		if at >= 0 && !c.v.dirty {
			c.cutLog(file, at, "there are bytes behind the last unit, at %d", end)
			return nil
		}
	}
	return nil
}

// firstData is the place of the first byte that is not zero in a part of a file, -1 for none.
func (d *Dir) firstData(name string, from, to int64) (int64, error) {
	h, err := d.openRead(d.Path(name))
	if err != nil {
		return -1, err
	}
	defer func() { _ = h.Close() }()
	buf := make([]byte, readChunk)
	for from < to {
		if from, err = nextData(h, File{}, from, to); err != nil || from >= to {
			return -1, err
		}
		b := buf[:min(int64(len(buf)), to-from)]
		if err := readFull(h, b, from); err != nil {
			return -1, err
		}
		for i, x := range b {
			if x != 0 {
				return from + int64(i), nil
			}
		}
		from += int64(len(b))
	}
	return -1, nil
}

func (c *timerCheck) place(pos int64) (file string, at int64) {
	start := pos - pos%max(c.view.FileBytes, 1)
	return path.Join(nameTimerLog, FileName(start)), pos - start
}

// unit says what is wrong with a unit, "" for nothing.
func (c *timerCheck) unit(pos int64, u timer.Unit) (bad string, err error) {
	v := c.v
	switch {
	case u.Prev != timer.NoPos && (u.Prev < 0 || u.Prev >= pos):
		return fmt.Sprintf("the one before it in its slot is at %d", u.Prev), nil
	case u.Size <= 0 || u.Phys < 0 || u.WriteTime < 0 || u.Time() < 0:
		return fmt.Sprintf("it names %s at %d, written at %d, due %d ms later", words.Count(u.Size, "byte"), u.Phys, u.WriteTime, u.Delay), nil
	case u.Phys+int64(u.Size) > v.logEnd && !v.dirty:
		return fmt.Sprintf("it names a message at %d, behind the end of the log at %d", u.Phys, v.logEnd), nil
	case u.Phys < v.logMin || u.Phys >= v.logEnd || v.breakAt(u.Phys) != nil || v.breakAt(u.Phys+int64(u.Size)-1) != nil:
		return "", nil // expired, or the log's own finding
	}
	if !c.due(u.Time()) {
		return "", nil
	}
	rec, err := v.d.log.Record(u.Phys)
	switch {
	case errors.Is(err, ErrNoRecord), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Sprintf("no record stands at %d", u.Phys), nil
	case err != nil:
		return "", err
	case rec.Size() != u.Size:
		return fmt.Sprintf("it says %s, the record at %d has %d", words.Count(u.Size, "byte"), u.Phys, rec.Size()), nil
	}
	w, why := timer.ReadWaiting(rec)
	if why != nil {
		return fmt.Sprintf("the record at %d is none that waits: %v", u.Phys, why), nil
	}
	if !u.Rolls() && c.view.PrecisionMs > 0 && u.Time() < w.Out-w.Out%c.view.PrecisionMs {
		return fmt.Sprintf("it is due at %d, the message at %d", u.Time(), w.Out), nil
	}
	if hash := message.JavaHash(w.Topic); hash != u.TopicHash {
		return fmt.Sprintf("it says topic hash %d, the message %d", u.TopicHash, hash), nil
	}
	if pos < c.view.Checkpoint.LogFlushed {
		c.known++
	}
	if pos < c.view.Checkpoint.LogFlushed && c.view.PrecisionMs > 0 {
		x := c.waiting[u.Time()/c.view.PrecisionMs]
		c.waiting[u.Time()/c.view.PrecisionMs] = timerUnits{x.count + 1, pos}
	}
	return "", nil
}

func (c *timerCheck) due(ms int64) bool {
	return !c.view.HasCheckpoint || ms >= c.view.Checkpoint.ReadTime
}

// wheel compares the slots that have not been passed with the log.
func (c *timerCheck) wheel() error {
	w, ok := c.newest()
	if !ok || w.Bytes != timer.WheelBytes || c.view.PrecisionMs == 0 || c.cut {
		if c.known > 0 && !c.found {
			c.add(FindTimerWheel, nameTimerWheel, -1, "there is no wheel, and the timer log has %s that wait", words.Count(c.known, "unit"))
		}
		return nil
	}
	var failed error
	err := c.view.Slots(w, func(index int, s timer.Slot) bool {
		if s.Tick == 0 || !c.due(s.Tick*c.view.PrecisionMs) || s.Num <= 0 && s.Last < 0 {
			return true
		}
		var bad string
		if bad, failed = c.slot(index, s); bad != "" {
			c.add(FindTimerWheel, w.Name, int64(index)*timer.SlotSize, "the slot of tick %d: %s", s.Tick, bad)
		}
		return failed == nil && !c.found
	})
	if err = errors.Join(err, failed); err != nil || c.found {
		return err
	}
	for tick, u := range c.waiting { // those of slots that were met are gone
		at := int64(timer.SlotIndex(tick)) * timer.SlotSize
		c.add(FindTimerWheel, w.Name, at, "it has no slot of tick %d, which %s of the timer log belong to", tick, words.Count(u.count, "unit"))
		break
	}
	return nil
}

// newest is the wheel that a start reads.
func (c *timerCheck) newest() (timer.WheelFile, bool) {
	if len(c.view.Wheels) == 0 {
		return timer.WheelFile{}, false
	}
	return c.view.Wheels[len(c.view.Wheels)-1], true
}

// slot says what is wrong with a slot, "" for nothing.
func (c *timerCheck) slot(index int, s timer.Slot) (bad string, err error) {
	if index != timer.SlotIndex(s.Tick) {
		return fmt.Sprintf("it lies at %d, it belongs to %d", index, timer.SlotIndex(s.Tick)), nil
	}
	want := c.waiting[s.Tick]
	delete(c.waiting, s.Tick)
	if s.Last >= c.end && c.v.dirty {
		return "", nil // its unit was not written out
	}
	if len(c.view.Log) == 0 {
		c.cut = true
		return "the timer log, where its messages are, is missing", nil
	}
	count, oldest := int64(0), timer.NoPos
	err = c.view.Chain(s, func(pos int64, u timer.Unit) bool {
		if u.Time() != s.Tick*c.view.PrecisionMs {
			bad = fmt.Sprintf("the unit at %d of its chain is due at %d", pos, u.Time())
			return false
		}
		if pos < c.view.Checkpoint.LogFlushed && c.v.inLog(u.Phys) {
			count++
		}
		oldest = pos
		return true
	})
	if broken, ok := errors.AsType[*timer.UnitError](err); ok {
		if len(c.view.Log) > 0 && broken.Pos < c.view.Log[0].Start && broken.Pos >= 0 {
			return "", nil // its oldest units have expired with their file
		}
		return "its chain: " + broken.Error(), nil
	}
	switch {
	case err != nil || bad != "":
		return bad, err
	case s.First >= 0 && s.First != oldest && s.First >= c.view.Log[0].Start:
		return fmt.Sprintf("it says that its first unit is at %d, its chain ends at %d", s.First, oldest), nil
	case count < want.count:
		return fmt.Sprintf("its chain has %d of the %s of the timer log", count, words.Count(want.count, "unit")), nil
	}
	return "", nil
}

// resume is the queue offset of the timer topic behind the message of the last unit that is right; 0 when that is not known.
func (c *timerCheck) resume() int64 {
	if c.last < 0 {
		return 0
	}
	rec, err := c.v.d.log.Record(c.last)
	if err != nil || string(rec.Topic()) != message.TopicTimer {
		return 0
	}
	return rec.QueueOffset() + 1
}

func (v *verifier) inLog(phys int64) bool {
	return phys >= v.logMin && phys < v.logEnd && v.breakAt(phys) == nil
}

func (c *timerCheck) checkpoint() error {
	x := c.view.Checkpoint
	limit, known := c.v.queueMax(message.TopicTimer, 0)
	switch {
	case !c.view.HasCheckpoint:
		if c.end > 0 && len(c.view.Log) > 0 && c.end > c.view.Log[0].Start {
			c.add(FindTimerCheckpoint, timerCheckFile, -1, "it is missing or too short, and the timer log has units")
		}
	case x.ReadTime < 0 || x.LogFlushed < 0 || x.QueueOffset < 0 || x.MasterQueueOffset < 0:
		c.add(FindTimerCheckpoint, timerCheckFile, 0, "it holds a negative number: %+v", x)
	case known && x.QueueOffset > limit && !c.v.dirty && !c.v.endLost():
		c.add(FindTimerCheckpoint, timerCheckFile, 16, "it says queue offset %d, the timer topic ends at %d", x.QueueOffset, limit)
	}
	return nil
}
