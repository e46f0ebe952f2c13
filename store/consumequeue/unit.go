package consumequeue

import (
	"encoding/binary"
	"math"
)

// UnitSize is the length of a unit in bytes.
const UnitSize = 20

// FillerSize is the size field of a unit that stands for no record: the units before the first one of a queue that
// begins inside a file, and those of records that could not be read any more.
const FillerSize int32 = math.MaxInt32

// maxExtAddr is the largest tags code that is an address of a unit in consumequeue_ext.
const maxExtAddr = math.MinInt32 - int64(1)

// Unit is one unit of a queue.
type Unit struct {
	Phys     int64 // physical offset of the record
	Size     int32 // its length
	TagsCode int64 // hash of its tags, delivery time for scheduled messages, or an address (IsExtAddr)
}

// Filler stands for a queue offset without a record.
var Filler = Unit{Phys: 0, Size: FillerSize, TagsCode: 0}

// Valid reports whether the bytes were written: an unwritten unit is all zeros.
func (u Unit) Valid() bool { return u.Phys >= 0 && u.Size > 0 }

// IsFiller reports whether the unit stands for no record.
func (u Unit) IsFiller() bool { return u.Size == FillerSize }

// End is the physical offset behind the record.
func (u Unit) End() int64 { return u.Phys + int64(u.Size) }

// IsExtAddr reports whether a tags code is an address in consumequeue_ext, to be resolved by Ext.
func IsExtAddr(tagsCode int64) bool { return tagsCode <= maxExtAddr }

// AppendUnit appends the bytes of a unit.
func AppendUnit(dst []byte, u Unit) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(u.Phys))
	dst = binary.BigEndian.AppendUint32(dst, uint32(u.Size))
	return binary.BigEndian.AppendUint64(dst, uint64(u.TagsCode))
}

// DecodeUnit reads the unit that starts b, which must hold UnitSize bytes.
func DecodeUnit(b []byte) Unit {
	_ = b[UnitSize-1]
	return Unit{
		Phys:     int64(binary.BigEndian.Uint64(b)),
		Size:     int32(binary.BigEndian.Uint32(b[8:])),
		TagsCode: int64(binary.BigEndian.Uint64(b[12:])),
	}
}
