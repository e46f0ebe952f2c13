package transaction

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"

	"mqx/message"
)

// Decision is how a transaction ends.
type Decision int8

// Decisions. Unknown is what a stored op message tells: only that it has ended.
const (
	Unknown Decision = iota
	Commit
	Rollback
)

// maxCopies bounds the half messages whose newest copy is remembered. One that
// is not is checked once more after a late end, nothing worse.
const maxCopies = 1 << 20

// remembered is for how many half offsets behind the floor it is known how they
// ended: a bit or two each.
const remembered = 1 << 20

// Book knows of every half message from Floor on whether it is done with: ended
// by its producer, given up, or replaced by a copy further behind.
//
// An end is known from the moment it is accepted; that it is durable too is the
// matter of the op messages, which Batch writes down. The floor moves over what
// is done, and the op queue's offset over the op messages that say nothing about
// half messages from the floor on: these two are what a restart begins with.
type Book struct {
	floor    int64
	done     offsetSet
	rolled   offsetSet // of decided: rolled back
	decided  offsetSet // ended by its producer in this run, so that rolled tells how; also for a while behind the floor
	ending   map[int64]end
	moving   map[int64]bool // being replaced by a copy; true when it has ended meanwhile
	copies   map[uint64]int64
	seed     maphash.Seed
	ops      []opMark
	opOffset int64
	below    map[int64]struct{} // ends of half messages below the floor, while loading
	seen     map[uint64]int64   // half messages that are not done with by key, while loading
	found    []int64            // half messages that loading has found to be done with
}

// opMark is one op message: its offset in the op queue and the largest half
// offset it names.
type opMark struct{ offset, most int64 }

// NewBook returns the book of a half queue of which everything before half is
// done with, and whose op messages before op are too.
func NewBook(half, op int64) *Book {
	return &Book{
		floor: half, opOffset: op, seed: maphash.MakeSeed(),
		ending: map[int64]end{}, moving: map[int64]bool{}, copies: map[uint64]int64{}, below: map[int64]struct{}{}, seen: map[uint64]int64{},
	}
}

// Floor is the first half offset that is not done with.
func (b *Book) Floor() int64 { return b.floor }

// OpOffset is the first offset of the op queue that a restart has to read.
func (b *Book) OpOffset() int64 { return b.opOffset }

// LoadOp takes what a stored op message says. end is the offset behind the last
// half message: ends beyond it are of another store. It returns how many of its
// offsets make no sense.
func (b *Book) LoadOp(offset int64, rec message.View, end int64) (bad int) {
	most := int64(-1)
	if tag, _ := rec.Property(message.PropTags); string(tag) == OpTag {
		for part := range bytes.SplitSeq(rec.Body(), []byte{','}) {
			if len(part) == 0 {
				continue
			}
			off := number(part, 64)
			switch {
			case off < 0 || off >= end:
				bad++
				continue
			case off < b.floor:
				b.below[off] = struct{}{}
			default:
				b.done.add(off)
			}
			most = max(most, off)
		}
	} else {
		bad++
	}
	b.mark(offset, most)
	return bad
}

// LoadHalf takes a stored half message that is not done with, in the order of
// the queue: a copy whose origin has ended is, and so is what a copy has replaced.
// It reports whether one more transaction is open.
func (b *Book) LoadHalf(h *Half) (opens bool) {
	if h.Origin >= 0 {
		_, ended := b.below[h.Origin]
		if ended || b.done.has(h.Origin) {
			b.done.add(h.QueueOffset)
			b.found = append(b.found, h.QueueOffset)
			return false
		}
	}
	key := b.key(h.UniqKey)
	opens = true
	if h.Checks > 0 || h.Origin >= 0 {
		if before, ok := b.seen[key]; ok && len(h.UniqKey) > 0 {
			b.done.add(before)
			b.found = append(b.found, before)
			opens = false
		}
		b.remember(h.UniqKey, h.QueueOffset)
	}
	b.seen[key] = h.QueueOffset
	return opens
}

// Open reports whether the half message or its newest copy is not done with; an
// end that has begun does not count.
func (b *Book) Open(off int64, uniqKey []byte) bool {
	if off >= b.floor && !b.done.has(off) {
		return true
	}
	last, ok := b.copies[b.key(uniqKey)]
	return ok && len(uniqKey) > 0 && last >= b.floor && !b.done.has(last)
}

// Loaded ends the loading. It returns the half offsets that no op message names
// although they are done with: the run before did not come to that.
func (b *Book) Loaded() []int64 {
	ops := b.found
	b.below, b.seen, b.found = nil, nil, nil
	return ops
}

// Done reports whether a half message from the floor on is done with, or about
// to be.
func (b *Book) Done(off int64) bool {
	_, ending := b.ending[off]
	return off < b.floor || ending || b.done.has(off)
}

// Next is the first half offset from off on that is not done with.
func (b *Book) Next(off int64) int64 { return b.done.firstMissing(max(off, b.floor)) }

// EndedError says that a transaction has ended before.
type EndedError struct {
	Offset int64
	// Same is set when it ended as is asked for now.
	Same bool
}

// Error names the half message.
func (e *EndedError) Error() string {
	return fmt.Sprintf("the transaction of half queue offset %d has ended already", e.Offset)
}

// Begin notes that the half message is about to end: nobody is asked about it
// or its newest copy any more. It must be followed by End or Abort. A half
// message that is known to have ended gives an *EndedError.
func (b *Book) Begin(off int64, uniqKey []byte, d Decision) error {
	if b.decided.has(off) {
		return &EndedError{Offset: off, Same: b.rolled.has(off) == (d == Rollback)}
	}
	last := off
	if at, ok := b.copies[b.key(uniqKey)]; ok && len(uniqKey) > 0 {
		last = at
	}
	for _, o := range [...]int64{off, last} {
		if was, ok := b.ending[o]; ok {
			return &EndedError{Offset: o, Same: was.Decision == d}
		}
	}
	b.ending[off] = end{d, last}
	if last != off {
		b.ending[last] = end{d, off}
	}
	return nil
}

// end is a half message that is about to end, and the other offset that is
// marked for the same reason.
type end struct {
	Decision
	other int64
}

// Abort takes Begin back: the end could not be carried out.
func (b *Book) Abort(off int64) {
	delete(b.ending, b.ending[off].other)
	delete(b.ending, off)
}

// End completes Begin. It returns the half offsets that op messages have to
// name, in this order: that of the newest copy when there is one, and that of the
// half message, which another op message may name already.
func (b *Book) End(off int64, uniqKey []byte) []int64 {
	e := b.ending[off]
	b.Abort(off)
	out := []int64{off}
	b.finish(off, e.Decision)
	key := b.key(uniqKey)
	if last, ok := b.copies[key]; ok && len(uniqKey) > 0 {
		delete(b.copies, key)
		if last != off && last >= b.floor {
			b.finish(last, e.Decision)
			out = []int64{last, off}
		}
	}
	return out
}

func (b *Book) finish(off int64, d Decision) {
	if off < b.floor-remembered {
		return
	}
	b.decided.add(off)
	if d == Rollback {
		b.rolled.add(off)
	}
	if off < b.floor {
		return
	}
	b.done.add(off)
	if _, ok := b.moving[off]; ok {
		b.moving[off] = true
	}
}

// Move notes that a copy of the half message is being stored. It returns false
// when the half message is done with.
func (b *Book) Move(off int64) bool {
	if b.Done(off) {
		return false
	}
	b.moving[off] = false
	return true
}

// Moved completes Move: the copy stands at to (-1: it could not be stored). ask
// says that a producer may be asked about it. ops are the half offsets that op
// messages have to name: what was copied, so that a restart or another broker does
// not take it for open, and the copy when the transaction has ended meanwhile.
func (b *Book) Moved(off, to int64, uniqKey []byte) (ask bool, ops []int64) {
	ended := b.moving[off]
	delete(b.moving, off)
	if to < 0 {
		return false, nil
	}
	b.done.add(off)
	if ended {
		b.done.add(to)
		return false, []int64{to, off}
	}
	b.remember(uniqKey, to)
	_, ending := b.ending[off] // then its end will find the copy by the key
	return !ending, []int64{off}
}

// GiveUp notes that nothing more is done about the half message. An op message
// has to name it.
func (b *Book) GiveUp(off int64, uniqKey []byte) {
	if off < b.floor {
		return
	}
	b.done.add(off)
	if key := b.key(uniqKey); b.copies[key] == off {
		delete(b.copies, key)
	}
}

// Wrote notes that an op message with these half offsets stands at an offset of
// the op queue.
func (b *Book) Wrote(opOffset int64, halves []int64) { b.mark(opOffset, slices.Max(halves)) }

func (b *Book) mark(offset, most int64) {
	if offset < b.opOffset {
		return
	}
	if n := len(b.ops); n > 0 && b.ops[n-1].offset > offset { // several are on the way at a time
		i, _ := slices.BinarySearchFunc(b.ops, offset, func(m opMark, o int64) int { return int(m.offset - o) })
		b.ops = slices.Insert(b.ops, i, opMark{offset, most})
		return
	}
	b.ops = append(b.ops, opMark{offset, most})
}

// Advance moves the floor over what is done and the op offset over the op
// messages that are not needed any more. first is the first half offset that
// still exists.
func (b *Book) Advance(first int64) {
	floor := max(b.Next(b.floor), first)
	for off := range b.moving { // its copy may not be durable yet
		floor = min(floor, off)
	}
	for off := range b.ending {
		floor = min(floor, max(off, b.floor))
	}
	if floor > b.floor {
		b.floor = floor
		b.done.dropBelow(floor)
		b.rolled.dropBelow(floor - remembered)
		b.decided.dropBelow(floor - remembered)
	}
	n := 0
	for n < len(b.ops) && b.ops[n].offset == b.opOffset && b.ops[n].most < b.floor {
		b.opOffset++
		n++
	}
	b.ops = slices.Delete(b.ops, 0, n)
}

func (b *Book) remember(uniqKey []byte, off int64) {
	if len(uniqKey) == 0 || len(b.copies) >= maxCopies {
		return
	}
	b.copies[b.key(uniqKey)] = off
}

func (b *Book) key(uniqKey []byte) uint64 { return maphash.Bytes(b.seed, uniqKey) }
