package timer

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"mqx/internal/jsonfile"
	"mqx/message"
)

// Kept is a message of the timer topic, as recovery reads it from there.
type Kept struct {
	Item
	Key   string // UNIQ_KEY, "" for none
	Rolls int    // how often it has been put into the topic
}

// refillBatch is how many messages are put back in one go.
const refillBatch = 512

// Refind puts the messages of a slot whose chain is broken into the next slots: those that its units still tell, and those
// that the timer topic holds and no waiting slot does. The slot is passed then. It reads the whole timer topic. Only the
// goroutine that delivers may call it, after OpenSlot. What it fails to read is tried again by calling it again.
func (t *Timer) Refind(d *DueSlot, nowMs int64) (found int, err error) {
	if t.each == nil {
		return 0, errors.New("cannot find messages of a slot: the timer topic cannot be read")
	}
	kept := map[int64]bool{} // units of the slot that were found by searching
	for i := range d.stray {
		kept[d.stray[i].Phys] = true
	}
	t.mu.Lock()
	at, s, to := t.cfg.Rules.Tick(d.Time), Slot{}, t.offset
	if have, ok := t.wheel.Slot(at); ok {
		s = have
		t.wheel.Erase(at)
	}
	low := t.queueMin
	t.mu.Unlock()
	found, err = t.refill(low, to, d.Time, kept, nowMs)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil { // what the slot held and nobody found does not wait any more
		t.damaged, t.changed = true, true
		_, err = t.recount(nowMs)
	}
	if err != nil && s != (Slot{}) {
		t.wheel.Put(s)
	}
	return found, err
}

// refill puts the messages of the timer topic between two offsets back that are to come in slots from fromMs on (or are in
// also) and are in no slot that waits. A record that was put into the topic again, since it rolled, stands for the one
// before it. What it puts back is counted; whoever calls it makes the counts anew.
func (t *Timer) refill(from, to, fromMs int64, also map[int64]bool, nowMs int64) (found int, err error) {
	waiting, err := t.waitingPhys()
	if err != nil {
		return 0, err
	}
	missing := map[int64]Item{}
	newest := map[string]int64{} // by topic and key, the record that stands for a message
	err = t.each(from, to, func(k Kept) error {
		if k.Key != "" {
			name := k.Topic + "\x00" + k.Key
			if before, ok := newest[name]; ok && k.Rolls > 0 {
				delete(missing, before)
			}
			if k.Out >= fromMs || also[k.Phys] {
				newest[name] = k.Phys
			}
		}
		if _, waits := slices.BinarySearch(waiting, k.Phys); !waits && (k.Out >= fromMs || also[k.Phys]) {
			missing[k.Phys] = k.Item
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("cannot fill timer wheel from its topic: %w", err)
	}
	order := slices.Sorted(maps.Keys(missing))
	for chunk := range slices.Chunk(order, refillBatch) {
		items := make([]Item, 0, len(chunk))
		for _, phys := range chunk {
			items = append(items, missing[phys])
		}
		if err := t.Add(items, nowMs, t.Offset(), 0); err != nil { // they lie before what is still to be taken up
			return found, err
		}
		found += len(items)
	}
	return found, nil
}

// waitingPhys are the physical offsets of all messages whose slots wait, ascending.
func (t *Timer) waitingPhys() ([]int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []int64
	err := t.eachWaiting(t.log.min(), func(_ int64, u *Unit) { out = append(out, u.Phys) })
	slices.Sort(out)
	return slices.Compact(out), err
}

// eachWaiting calls f with the units from a position on of all slots that wait, in the order of the log, over places that hold no
// unit.
func (t *Timer) eachWaiting(from int64, f func(pos int64, u *Unit)) error {
	l, r := t.log, t.cfg.Rules
	for from < l.end {
		end, err := l.scan(from, l.end, func(pos int64, u Unit) bool {
			tick := r.Tick(u.Time())
			if s, ok := t.wheel.Slot(tick); ok && tick >= r.Tick(t.read) && pos <= s.Last && pos >= s.First {
				f(pos, &u)
			}
			return true
		})
		if err != nil {
			return fmt.Errorf("cannot read timer log: %w", err)
		}
		from = l.size.next(end + UnitSize)
	}
	return nil
}

// repair puts right what the files lack, at the end of load: messages that the topic holds and no slot does, and the counts of
// messages, unless they are those of an orderly end that the wheel agrees with.
func (t *Timer) repair(o Origin) error {
	if t.damaged && t.each != nil {
		n, err := t.refill(o.QueueMin, t.offset, t.read, nil, o.NowMs)
		if err != nil {
			return err
		}
		t.find("the timer topic was read from %d on for messages that wheel and log had lost; %d were put back", o.QueueMin, n)
	}
	if t.rest != nil && !t.damaged && !t.uncounted && t.slotPos == NoPos && t.metrics.sum() == t.wheel.Num() {
		return nil
	}
	nameless, err := t.recount(o.NowMs)
	if err == nil && (t.uncounted || nameless > 0) {
		t.find("the counts of waiting messages were made anew from the timer log; %d messages are of topics that are not known", nameless)
	}
	return err
}

// recount makes the counts of messages from the slots that wait. Those of topics that nobody knows are in none of them.
func (t *Timer) recount(nowMs int64) (nameless int64, err error) {
	byHash := map[int32]int64{}
	read := t.cfg.Rules.Tick(t.read)
	err = t.eachWaiting(t.firstWaiting(), func(pos int64, u *Unit) {
		// A cancellation counts until the whole slot is passed.
		if t.cfg.Rules.Tick(u.Time()) != read || pos > t.slotPos || u.Cancels() {
			byHash[u.TopicHash] += int64(u.Weight())
		}
	})
	if err != nil {
		return 0, err
	}
	byName := make(map[string]int64, len(byHash))
	for hash, n := range byHash {
		if name := t.topicOf(hash); name != "" {
			byName[name] += n
		} else {
			nameless += n
		}
	}
	t.metrics.set(byName, nowMs)
	return nameless, nil
}

// firstWaiting is the position of the oldest unit of the slots that wait; the beginning of the log when slots may be wrong.
func (t *Timer) firstWaiting() int64 {
	from := t.log.end
	for _, p := range t.wheel.pages {
		if p == nil || p.waiting == [2]uint64{} {
			continue
		}
		for i := range pageSlots {
			if word, mask := bit(i); p.waiting[word]&mask != 0 {
				s := p.slot(i)
				from = min(from, s.First)
			}
		}
	}
	if t.damaged || from < t.log.min() || !t.log.size.aligned(from) {
		return t.log.min()
	}
	return from
}

// topicOf is the name of the topic with a Java hash, "" when nobody knows it.
func (t *Timer) topicOf(hash int32) string {
	if t.names != nil {
		if name, ok := t.names(hash); ok {
			return name
		}
	}
	for topic := range t.metrics.m.Topics { // one that is deleted
		if message.JavaHash([]byte(topic)) == hash {
			return topic
		}
	}
	return ""
}

// TopicOf is the name of the topic of a unit, for who cannot read its message; "" when nobody knows it.
func (t *Timer) TopicOf(u *Unit) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.topicOf(u.TopicHash)
}

// loadMetrics reads the counts. A file that cannot be used is put aside: it holds nothing that the log does not tell.
func (t *Timer) loadMetrics() error {
	path := metricsPath(t.cfg.Root)
	err := t.metrics.load(t.cfg.FS, t.cfg.Root)
	var bad *jsonfile.BadError
	if errors.As(err, &bad) {
		t.uncounted = true
		t.find("%v; put aside", err)
		return jsonfile.PutAside(t.cfg.FS, path)
	}
	t.uncounted = t.metrics.m.Topics == nil && t.wheel.Num() > 0
	return err
}
