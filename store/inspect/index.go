package inspect

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"mqx/internal/vfs"
	"mqx/internal/words"
	"mqx/message"
)

// Sizes in an index file: docs/format/index.md.
const (
	indexHead  = 40
	indexSlot  = 4
	indexEntry = 20
)

// IndexHead is the head of an index file.
type IndexHead struct {
	BeginTime, EndTime int64 // store times of the first and last message, ms
	BeginPhys, EndPhys int64
	UsedSlots          int32
	Count              int32 // entries plus one
}

// IndexEntry is one entry.
type IndexEntry struct {
	N    int32 // its number, from 1
	Hash int32
	Phys int64
	Diff int32 // seconds since IndexHead.BeginTime
	Prev int32 // entry before with the same slot, 0 for none
}

// IndexFile is one file of the key index as it was when it was opened. It is safe to share.
type IndexFile struct {
	d *Dir
	File
	Name string
	Head IndexHead
	// Slots and Entries are how the file is divided. Entries is the number it has room for, entry 0 included.
	Slots, Entries int32
	// Err says why the file cannot be an index file; then only what stands above it is known, as far as it could be read.
	Err error
}

// Index opens the files of the key index, oldest first. A file that cannot be one has Err set.
func (d *Dir) Index() ([]*IndexFile, error) {
	entries, err := d.fs.ReadDir(d.Path(nameIndex))
	if vfs.Absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open index: %w", err)
	}
	var out []*IndexFile
	for _, e := range entries {
		if e.IsDir() || !isIndexName(e.Name()) {
			continue
		}
		path := filepath.Join(d.Path(nameIndex), e.Name())
		st, err := d.fs.Stat(path)
		if vfs.Absent(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot open index: %w", err)
		}
		x := &IndexFile{d: d, Name: e.Name(), File: File{Path: path, Size: st.Size(), ModTime: st.ModTime()}}
		if x.Err = x.load(); x.Err != nil && !isIndexDamage(x.Err) {
			return nil, fmt.Errorf("cannot open index: %w", x.Err)
		}
		out = append(out, x)
	}
	return out, nil
}

func isIndexName(name string) bool {
	if len(name) != 17 {
		return false
	}
	for _, c := range name {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// IndexDamage says what in an index file cannot be.
type IndexDamage struct{ What string }

func (e *IndexDamage) Error() string { return e.What }

func damaged(format string, args ...any) error { return &IndexDamage{fmt.Sprintf(format, args...)} }

func isIndexDamage(err error) bool {
	_, ok := errors.AsType[*IndexDamage](err)
	return ok
}

func (x *IndexFile) load() error {
	if x.Size < indexHead {
		return damaged("%s no size of an index file", words.Count(x.Size, "byte is", "bytes are"))
	}
	var b [indexHead]byte
	if err := x.d.fds.readAt(x.Path, b[:], 0); err != nil {
		return err
	}
	be := binary.BigEndian
	x.Head = IndexHead{
		BeginTime: int64(be.Uint64(b[0:])), EndTime: int64(be.Uint64(b[8:])),
		BeginPhys: int64(be.Uint64(b[16:])), EndPhys: int64(be.Uint64(b[24:])),
		UsedSlots: int32(be.Uint32(b[32:])), Count: int32(be.Uint32(b[36:])),
	}
	if x.Head.Count == 0 { // made and never written to
		x.Head.Count = 1
	}
	last := damaged("%s no size of an index file", words.Count(x.Size, "byte is", "bytes are"))
	for _, l := range x.layouts() {
		x.Slots, x.Entries = l[0], l[1]
		if last = x.check(); last == nil {
			return nil
		}
		if !isIndexDamage(last) {
			return last
		}
	}
	return last
}

// layouts are the ways in which a file of this size is usually divided.
func (x *IndexFile) layouts() [][2]int32 {
	var out [][2]int32
	rest := x.Size - indexHead
	add := func(slots int64) {
		entries := (rest - indexSlot*slots) / indexEntry
		if slots > 0 && entries > 0 && slots <= math.MaxInt32 && entries <= math.MaxInt32 && indexSlot*slots+indexEntry*entries == rest {
			if l := [2]int32{int32(slots), int32(entries)}; !slices.Contains(out, l) {
				out = append(out, l)
			}
		}
	}
	add(int64(x.d.o.IndexSlots))
	add(rest / (indexSlot + 4*indexEntry)) // Apache's proportion: 5,000,000 slots, 20,000,000 entries
	add(5_000_000)
	add((rest - indexEntry*20_000_000) / indexSlot)
	return out
}

// check says what cannot be in a file that is divided so: the head, and the newest entry, which is the head of its slot.
func (x *IndexFile) check() error {
	h := x.Head
	switch {
	case h.Count < 1 || h.Count > x.Entries:
		return damaged("entry count %d, the file has room for %d", h.Count, x.Entries)
	case h.UsedSlots < 0 || h.UsedSlots > x.Slots || h.UsedSlots >= h.Count:
		return damaged("%d used slots for %s in %s", h.UsedSlots, words.Count(h.Count-1, "entry"), words.Count(x.Slots, "slot"))
	case h.BeginPhys < 0 || h.EndPhys < h.BeginPhys:
		return damaged("physical offsets from %d to %d", h.BeginPhys, h.EndPhys)
	case h.BeginTime < 0 || h.EndTime < 0:
		return damaged("times from %d to %d", h.BeginTime, h.EndTime)
	case h.Count == 1:
		return nil
	}
	n := h.Count - 1
	e, err := x.Entry(n)
	if err != nil {
		return err
	}
	if e.Hash < 0 || e.Prev < 0 || e.Prev >= n {
		return damaged("entry %d cannot be: hash %d, previous entry %d", n, e.Hash, e.Prev)
	}
	head, err := x.Slot(e.Hash % x.Slots)
	if err != nil {
		return err
	}
	if head != n {
		return damaged("slot of the last entry %d holds %d", n, head)
	}
	return nil
}

// Slot reads a slot: the number of its newest entry, 0 for none.
func (x *IndexFile) Slot(i int32) (int32, error) {
	var b [indexSlot]byte
	if err := x.d.fds.readAt(x.Path, b[:], indexHead+indexSlot*int64(i)); err != nil {
		return 0, err
	}
	return int32(binary.BigEndian.Uint32(b[:])), nil
}

func (x *IndexFile) entryAt(n int32) int64 {
	return indexHead + indexSlot*int64(x.Slots) + indexEntry*int64(n)
}

// Entry reads an entry by its number.
func (x *IndexFile) Entry(n int32) (IndexEntry, error) {
	var b [indexEntry]byte
	if err := x.d.fds.readAt(x.Path, b[:], x.entryAt(n)); err != nil {
		return IndexEntry{}, err
	}
	return decodeIndexEntry(b[:], n), nil
}

func decodeIndexEntry(b []byte, n int32) IndexEntry {
	be := binary.BigEndian
	return IndexEntry{n, int32(be.Uint32(b)), int64(be.Uint64(b[4:])), int32(be.Uint32(b[12:])), int32(be.Uint32(b[16:]))}
}

// EachEntry delivers all entries, oldest first. ErrStop ends it.
func (x *IndexFile) EachEntry(ctx context.Context, f func(IndexEntry) error) error {
	return x.each(ctx, x.entryAt(1), x.entryAt(x.Head.Count), indexEntry, func(i int64, b []byte) error {
		return f(decodeIndexEntry(b, int32(i)+1))
	})
}

// entryBlocks delivers all entries in runs of whole ones, oldest first; n is the number of the first of a run.
func (x *IndexFile) entryBlocks(ctx context.Context, f func(n int32, b []byte)) error {
	var r reader // it gives the page cache back what was not there
	if err := r.open(x.d, x.Path, nil); err != nil {
		return err
	}
	defer r.close()
	end := x.entryAt(x.Head.Count)
	for n := int32(1); n < x.Head.Count; {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := r.window(x.entryAt(n), indexEntry, end)
		if err != nil {
			return err
		}
		b = b[:len(b)/indexEntry*indexEntry]
		f(n, b)
		n += int32(len(b) / indexEntry)
	}
	return nil
}

// EachSlot delivers all slots that are not 0. ErrStop ends it.
func (x *IndexFile) EachSlot(ctx context.Context, f func(slot, head int32) error) error {
	return x.each(ctx, indexHead, indexHead+indexSlot*int64(x.Slots), indexSlot, func(i int64, b []byte) error {
		if head := int32(binary.BigEndian.Uint32(b)); head != 0 {
			return f(int32(i), head)
		}
		return nil
	})
}

// each delivers pieces of a part of the file by number. Holes read as zeros and are passed over in the slots' part.
func (x *IndexFile) each(ctx context.Context, from, to, size int64, f func(i int64, b []byte) error) error {
	h, err := x.d.openRead(x.Path)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	to = min(to, x.Size)
	buf := make([]byte, min(max(to-from, 0), readChunk/size*size))
	for off := from; off+size <= to; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if size == indexSlot {
			at, err := nextData(h, x.File, off, to)
			if err != nil {
				return err
			}
			off = max(off, from+(at-from)/size*size)
		}
		b := buf[:min(int64(len(buf)), (to-off)/size*size)]
		if len(b) == 0 {
			break
		}
		if err := readFull(h, b, off); err != nil {
			return err
		}
		for ; len(b) > 0; b, off = b[size:], off+size {
			if err := f((off-from)/size, b[:size]); err != nil {
				if errors.Is(err, ErrStop) {
					return nil
				}
				return err
			}
		}
	}
	return nil
}

// KeyHash is the hash of an index key.
func KeyHash(key string) int32 {
	h := message.JavaHash([]byte(key))
	if h == math.MinInt32 {
		return 0
	}
	return max(h, -h)
}

// Lookup delivers the entries with the hash of a key, newest first.
func (x *IndexFile) Lookup(hash int32, f func(IndexEntry) error) error {
	n, err := x.Slot(hash % x.Slots)
	if err != nil {
		return err
	}
	for last := x.Head.Count; n > 0 && n < last; { // a chain goes back, or it is no chain
		e, err := x.Entry(n)
		if err != nil {
			return err
		}
		if e.Hash == hash {
			if err := f(e); err != nil {
				return err
			}
		}
		last, n = n, e.Prev
	}
	return nil
}
