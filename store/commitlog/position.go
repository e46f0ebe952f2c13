package commitlog

import (
	"encoding/binary"

	"mqx/message"
)

// headBytes are the size and the magic number of a record.
const headBytes = 8

// RecordFloor is the last position at or before off where a record begins or the last one ends, found by a walk from the
// beginning of its file.
func (l *Log) RecordFloor(off int64) (int64, error) {
	at, _, err := l.walkTo(off)
	return at, err
}

// RecordBefore is where the last whole record begins that ends at or before off, blanks at the ends of files not counted;
// -1 where there is none.
func (l *Log) RecordBefore(off int64) (int64, error) {
	for off > l.Min() {
		_, last, err := l.walkTo(off)
		if err != nil || last >= 0 {
			return last, err
		}
		s := l.segmentOf(off-1, 1)
		if s == nil {
			return -1, l.rangeError(off, 0)
		}
		off = s.start
	}
	return -1, nil
}

// walkTo walks over the records of the file of the byte before off up to off. at is where the walk ended, last where the
// last whole record began, -1 for none.
func (l *Log) walkTo(off int64) (at, last int64, err error) {
	if off <= l.Min() {
		return l.Min(), -1, nil
	}
	s := l.segmentOf(off-1, 1)
	if s == nil {
		return 0, -1, l.rangeError(off, 0)
	}
	var head [headBytes]byte
	at, last = s.start, -1
	for at+headBytes <= off {
		if err := l.ReadAt(head[:], at); err != nil {
			return at, last, err
		}
		size, magic := int64(binary.BigEndian.Uint32(head[:])), int32(binary.BigEndian.Uint32(head[4:]))
		if size < headBytes || at+size > off {
			break
		}
		if magic != message.MagicBlank {
			last = at
		}
		at += size
	}
	return at, last, nil
}
