package timer

import "fmt"

// TurnBack follows a clock that was set back: the read time is set back with it, so that messages for a time that has come
// once before need not wait until the clock has caught up. Slots that were passed then lie in the future again; they are
// blanked, and of a slot that was delivered in part the rest is kept, so that nothing of them comes again. All that is durable
// before it returns, commit log first (flushLog as for Flush): neither a kill nor a power failure brings passed slots back. After an
// error the timer works on and the next Flush tries again.
//
// It reports whether there was anything to do. No slot may be open.
func (t *Timer) TurnBack(nowMs int64, flushLog func(need int64) error) (bool, error) {
	t.mu.Lock()
	ahead := t.read > t.cfg.Rules.Floor(nowMs)
	t.mu.Unlock()
	if !ahead {
		return false, nil
	}
	t.flushing.Lock()
	defer t.flushing.Unlock()
	t.noting.Lock()
	t.mu.Lock()
	to := t.cfg.Rules.Floor(nowMs)
	err := t.cutPartial(nowMs)
	if err == nil {
		t.blank(t.cfg.Rules.Tick(to), t.cfg.Rules.Tick(t.read))
		t.read, t.slotPos, t.opened, t.changed, t.turned = to, NoPos, 0, true, true
	}
	t.mu.Unlock()
	t.noting.Unlock()
	if err != nil {
		return true, fmt.Errorf("cannot set timer back: %w", err)
	}
	return true, t.flushAll(nowMs, false, flushLog)
}

// blank erases the slots of passed ticks from one on and before another, in all the places where they lie.
func (t *Timer) blank(from, to int64) {
	for tick := max(from, to-Slots); tick < to; tick++ {
		if _, waits := t.wheel.at(index(tick)); !waits {
			t.wheel.Erase(tick)
		}
	}
}

// cutPartial ends the chain of the slot that was delivered in part before its first message that was not, so that nobody
// needs the progress to know where to go on. A cancellation in the part that goes is appended once more: it may be meant for one
// of the rest.
func (t *Timer) cutPartial(nowMs int64) error {
	tick := t.cfg.Rules.Tick(t.read)
	s, ok := t.wheel.Slot(tick)
	if t.slotPos == NoPos || !ok {
		return nil
	}
	var first, rest int64 = NoPos, 0
	var cancels []Unit
	pos := s.Last
	for pos != NoPos {
		u, err := t.log.unit(pos)
		if err != nil && isIO(err) {
			return err
		}
		if err != nil || u.Prev >= pos {
			return nil //nolint:nilerr // a damaged chain stays as it is: its rest is found by searching
		}
		switch {
		case pos > t.slotPos:
			first, rest = pos, rest+int64(u.Weight())
		case u.Cancels():
			cancels = append(cancels, u)
		}
		pos = u.Prev
	}
	if first == NoPos { // all of it has been delivered
		t.wheel.Erase(tick)
		return nil
	}
	b := t.begin(nowMs)
	for i := len(cancels) - 1; i >= 0; i-- {
		u := cancels[i]
		if err := b.add(t.read, Unit{Magic: u.Magic, Phys: u.Phys, Size: u.Size, TopicHash: u.TopicHash, Reserved: u.Reserved}); err != nil {
			return b.fail(err)
		}
		rest += int64(u.Weight())
	}
	if err := b.end(); err != nil {
		return b.fail(err)
	}
	if err := t.log.endChain(first); err != nil {
		return err
	}
	s, _ = t.wheel.Slot(tick)
	s.First, s.Num = first, int32(rest)
	t.wheel.Put(s)
	return nil
}

// endChain makes the unit at a position the oldest of its chain.
func (l *files) endChain(pos int64) error {
	u, err := l.unit(pos)
	if err != nil || u.Prev == NoPos {
		return err
	}
	u.Prev = NoPos
	return l.write(u.Append(nil), pos)
}
