package timer

import (
	"encoding/binary"

	"mqx/internal/vfs"
)

const (
	// Slots is the number of slots of a wheel, whatever the precision: 14 days of seconds.
	Slots = 2 * 7 * 24 * 3600
	// SlotSize is the length of a slot.
	SlotSize = 32
	// WheelBytes is the length of the file timerwheel.
	WheelBytes = Slots * SlotSize

	// blankSlots are the slots that are never between the oldest and the newest message.
	blankSlots = 60
	// maxRollSlots is the longest window (timerRollWindowSlot).
	maxRollSlots = Slots/2 - blankSlots
)

// Slot is one slot of the wheel: the chain of the messages that are due at one tick.
type Slot struct {
	Tick  int64 // time divided by the precision
	First int64 // position of the first unit of the chain in the timer log
	Last  int64 // and of the last
	Num   int32 // messages less cancellations
	Magic int32
}

func (s *Slot) encode(b []byte) {
	be := binary.BigEndian
	be.PutUint64(b, uint64(s.Tick))
	be.PutUint64(b[8:], uint64(s.First))
	be.PutUint64(b[16:], uint64(s.Last))
	be.PutUint32(b[24:], uint32(s.Num))
	be.PutUint32(b[28:], uint32(s.Magic))
}

// DecodeSlot reads the slot that starts b, which must hold SlotSize bytes.
func DecodeSlot(b []byte) Slot {
	be := binary.BigEndian
	return Slot{
		Tick: int64(be.Uint64(b)), First: int64(be.Uint64(b[8:])), Last: int64(be.Uint64(b[16:])),
		Num: int32(be.Uint32(b[24:])), Magic: int32(be.Uint32(b[28:])),
	}
}

// Wheel is the slots in memory. Only parts in use take memory. It is pure and not safe to share.
type Wheel struct {
	pages [Slots / pageSlots]*page
	num   int64 // of all slots that wait
}

// pageSlots slots are one page of the file.
const pageSlots = 128

type page struct {
	raw     [pageSlots * SlotSize]byte
	waiting [2]uint64 // slots whose messages are still to come
	dirty   [2]uint64 // slots that the file does not have so
}

// index is where the slot of a tick lies.
func index(tick int64) int { return int(tick % Slots) }

func (p *page) slot(i int) Slot { return DecodeSlot(p.raw[i*SlotSize:]) }

func bit(i int) (word int, mask uint64) { return i / 64, 1 << (i % 64) }

// at is the slot of an index and whether its messages are still to come.
func (w *Wheel) at(i int) (Slot, bool) {
	p := w.pages[i/pageSlots]
	if p == nil {
		return Slot{}, false
	}
	word, mask := bit(i % pageSlots)
	return p.slot(i % pageSlots), p.waiting[word]&mask != 0
}

// Slot is the slot of a tick; ok is false when no message waits for it.
func (w *Wheel) Slot(tick int64) (s Slot, ok bool) {
	s, ok = w.at(index(tick))
	return s, ok && s.Tick == tick
}

// Taken reports whether messages of another tick wait where the slot of this one would lie.
func (w *Wheel) Taken(tick int64) bool {
	s, ok := w.at(index(tick))
	return ok && s.Tick != tick
}

// Put sets a slot whose messages are to come.
func (w *Wheel) Put(s Slot) {
	i := index(s.Tick)
	p := w.page(i)
	word, mask := bit(i % pageSlots)
	if p.waiting[word]&mask != 0 {
		old := p.slot(i % pageSlots)
		w.num -= int64(old.Num)
	}
	w.num += int64(s.Num)
	s.encode(p.raw[i%pageSlots*SlotSize:])
	p.waiting[word] |= mask
	p.dirty[word] |= mask
}

// Pass says that the messages of a tick have been stored. The slot's bytes stay as they are.
func (w *Wheel) Pass(tick int64) {
	s, ok := w.Slot(tick)
	if !ok {
		return
	}
	w.num -= int64(s.Num)
	word, mask := bit(index(tick) % pageSlots)
	w.pages[index(tick)/pageSlots].waiting[word] &^= mask
}

// Erase blanks a slot, so that the file cannot say that messages wait there.
func (w *Wheel) Erase(tick int64) {
	w.Pass(tick)
	i := index(tick)
	if _, waits := w.at(i); waits {
		return // another tick's
	}
	p := w.page(i)
	clear(p.raw[i%pageSlots*SlotSize : (i%pageSlots+1)*SlotSize])
	word, mask := bit(i % pageSlots)
	p.dirty[word] |= mask
}

func (w *Wheel) page(i int) *page {
	p := w.pages[i/pageSlots]
	if p == nil {
		p = &page{}
		w.pages[i/pageSlots] = p
	}
	return p
}

// Next is the earliest tick from on and before to that messages wait for.
func (w *Wheel) Next(from, to int64) (tick int64, ok bool) {
	to = min(to, from+Slots)
	for tick = from; tick < to; {
		i := index(tick)
		p := w.pages[i/pageSlots]
		if p == nil || p.waiting == [2]uint64{} {
			tick += int64(pageSlots - i%pageSlots)
			continue
		}
		for j := i % pageSlots; j < pageSlots && tick < to; j, tick = j+1, tick+1 {
			word, mask := bit(j)
			if p.waiting[word]&mask == 0 {
				continue
			}
			if s := p.slot(j); s.Tick == tick {
				return tick, true
			}
		}
	}
	return 0, false
}

// Earliest is the earliest tick from one on that messages wait for, however far ahead.
func (w *Wheel) Earliest(from int64) (tick int64, ok bool) {
	if tick, ok = w.Next(from, from+Slots); ok {
		return tick, true
	}
	for _, p := range w.pages {
		if p == nil || p.waiting == [2]uint64{} {
			continue
		}
		for j := range pageSlots {
			word, mask := bit(j)
			if s := p.slot(j); p.waiting[word]&mask != 0 && s.Tick >= from && (!ok || s.Tick < tick) {
				tick, ok = s.Tick, true
			}
		}
	}
	return tick, ok
}

// Num is the number of messages that wait, less the cancellations that wait with them.
func (w *Wheel) Num() int64 { return w.num }

// NumIn is Num of the ticks from on and before to.
func (w *Wheel) NumIn(from, to int64) int64 {
	var n int64
	for {
		tick, ok := w.Next(from, to)
		if !ok {
			return n
		}
		s, _ := w.Slot(tick)
		n += int64(s.Num)
		from = tick + 1
	}
}

// run is bytes of the file that have changed.
type run struct {
	off int64
	b   []byte // a copy
}

// takeDirty copies what has changed since it was called last, in ascending order.
func (w *Wheel) takeDirty() []run {
	var runs []run
	for n, p := range w.pages {
		if p == nil {
			continue
		}
		for j := range pageSlots {
			word, mask := bit(j)
			if p.dirty[word]&mask == 0 {
				continue
			}
			off := int64(n*pageSlots+j) * SlotSize
			if k := len(runs) - 1; k >= 0 && runs[k].off+int64(len(runs[k].b)) == off {
				runs[k].b = append(runs[k].b, p.raw[j*SlotSize:(j+1)*SlotSize]...)
			} else {
				runs = append(runs, run{off, append([]byte(nil), p.raw[j*SlotSize:(j+1)*SlotSize]...)})
			}
		}
		p.dirty = [2]uint64{}
		if p.waiting == [2]uint64{} {
			w.pages[n] = nil
		}
	}
	return runs
}

// redirty undoes takeDirty: the bytes did not come to the file. Slots that have gone from memory come back.
func (w *Wheel) redirty(runs []run) {
	for _, r := range runs {
		for o := int64(0); o < int64(len(r.b)); o += SlotSize {
			i := int((r.off + o) / SlotSize)
			fresh := w.pages[i/pageSlots] == nil
			p := w.page(i)
			word, mask := bit(i % pageSlots)
			if raw := p.raw[i%pageSlots*SlotSize:]; fresh || vfs.AllZero(raw[:SlotSize]) {
				copy(raw[:SlotSize], r.b[o:o+SlotSize])
			}
			p.dirty[word] |= mask
		}
	}
}

// copyAll copies the pages in memory, and lets those go that hold nothing to come.
func (w *Wheel) copyAll() []run {
	var runs []run
	for n, p := range w.pages {
		if p == nil {
			continue
		}
		runs = append(runs, run{int64(n) * pageSlots * SlotSize, append([]byte(nil), p.raw[:]...)})
		p.dirty = [2]uint64{}
		if p.waiting == [2]uint64{} {
			w.pages[n] = nil
		}
	}
	return runs
}
