package timer

import (
	"encoding/binary"
	"fmt"
)

const (
	// UnitSize is the length of a unit of the timer log.
	UnitSize = 52
	// blankSize is the length of the mark behind the last unit of a file.
	blankSize = 16
	// magicBlank marks the rest of a file as empty, as in the commit log.
	magicBlank = -875286124

	// NoPos stands for no unit before.
	NoPos = int64(-1)
)

// Bits of a unit's magic.
const (
	MagicDefault = 1
	// MagicRoll: the message waits longer than the wheel reaches; when the slot is due it goes through the timer topic again.
	MagicRoll = 2
	// MagicDelete: the message cancels another one of the same slot.
	MagicDelete = 4

	magicMask = 0xF
)

// Unit is one unit of the timer log: a message in a slot. Its bytes are docs/format/timer.md.
type Unit struct {
	Prev      int64 // position of the unit before it in the slot, NoPos for none
	Magic     int32
	WriteTime int64 // ms: when it was put in, a multiple of the precision
	Delay     int32 // ms from WriteTime to the time of the slot
	Phys      int64 // of the message in the commit log
	Size      int32
	TopicHash int32 // Java hash of the topic it is for
	Reserved  int64
}

// Time is the time of the slot that the unit belongs to, in ms.
func (u *Unit) Time() int64 { return u.WriteTime + int64(u.Delay) }

// Rolls reports whether the message is only on its way.
func (u *Unit) Rolls() bool { return u.Magic&MagicRoll != 0 }

// Cancels reports whether the unit cancels others of its slot, which it does in its last slot only.
func (u *Unit) Cancels() bool { return u.Magic&MagicDelete != 0 && u.Magic&MagicRoll == 0 }

// Weight is what the unit adds to the number of its slot and to the count of its topic.
func (u *Unit) Weight() int32 {
	if u.Magic&MagicDelete != 0 {
		return -1
	}
	return 1
}

// Append appends the unit's bytes.
func (u *Unit) Append(dst []byte) []byte {
	be := binary.BigEndian
	dst = be.AppendUint32(dst, UnitSize)
	dst = be.AppendUint64(dst, uint64(u.Prev))
	dst = be.AppendUint32(dst, uint32(u.Magic))
	dst = be.AppendUint64(dst, uint64(u.WriteTime))
	dst = be.AppendUint32(dst, uint32(u.Delay))
	dst = be.AppendUint64(dst, uint64(u.Phys))
	dst = be.AppendUint32(dst, uint32(u.Size))
	dst = be.AppendUint32(dst, uint32(u.TopicHash))
	return be.AppendUint64(dst, uint64(u.Reserved))
}

// DecodeUnit reads the unit that starts b. Errors: errBlank when the rest of the file is empty, *UnitError when there is
// no unit.
func DecodeUnit(b []byte) (Unit, error) {
	be := binary.BigEndian
	if len(b) < blankSize {
		return Unit{}, &UnitError{What: fmt.Sprintf("%d bytes are too few", len(b))}
	}
	size, magic := int32(be.Uint32(b)), int32(be.Uint32(b[12:]))
	switch {
	case magic == magicBlank:
		return Unit{}, errBlank
	case size != UnitSize || len(b) < UnitSize:
		return Unit{}, &UnitError{What: fmt.Sprintf("size %d, wanted %d", size, UnitSize)}
	case magic&^magicMask != 0:
		return Unit{}, &UnitError{What: fmt.Sprintf("magic %#x", uint32(magic))}
	}
	u := Unit{
		Prev: int64(be.Uint64(b[4:])), Magic: magic, WriteTime: int64(be.Uint64(b[16:])), Delay: int32(be.Uint32(b[24:])),
		Phys: int64(be.Uint64(b[28:])), Size: int32(be.Uint32(b[36:])), TopicHash: int32(be.Uint32(b[40:])),
		Reserved: int64(be.Uint64(b[44:])),
	}
	if u.Size <= 0 || u.Phys < 0 { // the second half of a unit that was torn is zero
		return Unit{}, &UnitError{What: fmt.Sprintf("its message is at %d with %d bytes", u.Phys, u.Size)}
	}
	return u, nil
}

// appendBlank appends the mark that says that the remaining bytes of a file are empty.
func appendBlank(dst []byte, remaining int64) []byte {
	be := binary.BigEndian
	dst = be.AppendUint32(dst, uint32(remaining))
	dst = be.AppendUint64(dst, 0)
	blank := int32(magicBlank)
	return be.AppendUint32(dst, uint32(blank))
}

// UnitError says that there is no unit at a place of the timer log.
type UnitError struct {
	Pos  int64 // position, 0 where the caller knows it
	What string
}

// Error names position and cause.
func (e *UnitError) Error() string {
	return fmt.Sprintf("no unit of the timer log at position %d: %s", e.Pos, e.What)
}

// layout knows where units can lie in files of a size.
type layout int64

// next is where the next unit goes when pos is free: it needs its own length and that of a blank.
func (size layout) next(pos int64) int64 {
	if rest := int64(size) - pos%int64(size); rest < UnitSize+blankSize {
		return pos + rest
	}
	return pos
}

// before is where the unit before pos lies; ok is false when there is none.
func (size layout) before(pos int64) (at int64, ok bool) {
	in := pos % int64(size)
	if in == 0 {
		if pos == 0 {
			return 0, false
		}
		return pos - int64(size) + size.lastUnit(), true
	}
	in -= UnitSize
	in -= in % UnitSize // pos may lie behind a blank
	if in < 0 {
		in = 0
	}
	return pos - pos%int64(size) + in, true
}

// lastUnit is where the last unit of a full file starts.
func (size layout) lastUnit() int64 {
	n := (int64(size) - blankSize) / UnitSize
	return (n - 1) * UnitSize
}

// aligned reports whether a unit can start at pos.
func (size layout) aligned(pos int64) bool {
	return pos >= 0 && pos%int64(size)%UnitSize == 0 && pos%int64(size) <= size.lastUnit()
}
