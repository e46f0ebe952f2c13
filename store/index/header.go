package index

import (
	"encoding/binary"
	"fmt"
)

// Sizes of the parts of a file in bytes.
const (
	headerSize = 40
	slotSize   = 4
	entrySize  = 20
)

// Header is the head of a file.
type Header struct {
	BeginTime, EndTime int64 // store times of the first and last message, ms
	BeginPhys, EndPhys int64 // physical offsets of the first and last message
	UsedSlots          int32
	Count              int32 // entries plus one: entry 0 is never used
}

func decodeHeader(b []byte) Header {
	be := binary.BigEndian
	h := Header{
		BeginTime: int64(be.Uint64(b)), EndTime: int64(be.Uint64(b[8:])),
		BeginPhys: int64(be.Uint64(b[16:])), EndPhys: int64(be.Uint64(b[24:])),
		UsedSlots: int32(be.Uint32(b[32:])), Count: int32(be.Uint32(b[36:])),
	}
	if h.Count == 0 { // a file that was created and never written to
		h.Count = 1
	}
	return h
}

func (h Header) append(b []byte) []byte {
	be := binary.BigEndian
	b = be.AppendUint64(b, uint64(h.BeginTime))
	b = be.AppendUint64(b, uint64(h.EndTime))
	b = be.AppendUint64(b, uint64(h.BeginPhys))
	b = be.AppendUint64(b, uint64(h.EndPhys))
	b = be.AppendUint32(b, uint32(h.UsedSlots))
	return be.AppendUint32(b, uint32(h.Count))
}

// check says what of a header cannot be.
func (h Header) check(l layout) error {
	switch {
	case h.Count < 1 || h.Count > l.entries:
		return fmt.Errorf("entry count %d, the file has room for %d", h.Count, l.entries)
	case h.UsedSlots < 0 || h.UsedSlots > l.slots || h.UsedSlots >= h.Count:
		return fmt.Errorf("%d used slots for %d entries in %d slots", h.UsedSlots, h.Count-1, l.slots)
	case h.BeginPhys < 0 || h.EndPhys < h.BeginPhys:
		return fmt.Errorf("physical offsets from %d to %d", h.BeginPhys, h.EndPhys)
	case h.BeginTime < 0 || h.EndTime < 0:
		return fmt.Errorf("times from %d to %d", h.BeginTime, h.EndTime)
	}
	return nil
}

// layout is the numbers of slots and entries of a file.
type layout struct{ slots, entries int32 }

func (l layout) size() int64 { return l.entryAt(l.entries) }

func (l layout) slotAt(slot int32) int64 { return headerSize + slotSize*int64(slot) }

func (l layout) entryAt(n int32) int64 {
	return headerSize + slotSize*int64(l.slots) + entrySize*int64(n)
}

// entry is one entry.
type entry struct {
	hash int32
	phys int64
	diff int32 // seconds since the file's begin time
	prev int32 // entry before with the same slot, 0 for none
}

func decodeEntry(b []byte) entry {
	be := binary.BigEndian
	return entry{int32(be.Uint32(b)), int64(be.Uint64(b[4:])), int32(be.Uint32(b[12:])), int32(be.Uint32(b[16:]))}
}

func (e entry) append(b []byte) []byte {
	be := binary.BigEndian
	b = be.AppendUint32(b, uint32(e.hash))
	b = be.AppendUint64(b, uint64(e.phys))
	b = be.AppendUint32(b, uint32(e.diff))
	return be.AppendUint32(b, uint32(e.prev))
}
