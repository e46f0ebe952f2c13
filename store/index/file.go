package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"

	"mqx/internal/failpoint"
	"mqx/internal/vfs"
)

const (
	// pageBytes is the unit in which slots are cached and written back.
	pageBytes = 4096
	// entryBufferBytes of entries are written at once.
	entryBufferBytes = 256 << 10
)

// file is one index file. It is safe to share; put is for one goroutine.
type file struct {
	fs   vfs.FS
	path string
	name string
	layout

	mu struct {
		sync.Mutex
		head    Header
		f       vfs.File
		readers int
		closed  bool

		// Write-back cache, in use while entries are put into this file.
		slots   []byte   // the whole table; pages are valid where loaded
		loaded  []uint64 // bits, one a page
		dirty   []uint64
		entries []byte // from entry written on
		written int32
		changed bool // anything to write back
	}
}

// open reads the head of an existing file and finds out its layout by its size.
func openFile(fsys vfs.FS, path, name string, configured layout) (*file, error) {
	f, err := fsys.OpenFile(path, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	x := &file{fs: fsys, path: path, name: name}
	x.mu.f = f
	if err := x.readHead(configured); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	x.mu.written = x.mu.head.Count
	return x, nil
}

func (x *file) readHead(configured layout) error {
	size, err := x.mu.f.Size()
	if err != nil {
		return err
	}
	var b [headerSize]byte
	if _, err := x.mu.f.ReadAt(b[:], 0); err != nil {
		return corrupt(x.path, fmt.Sprintf("cannot read its head: %v", err))
	}
	x.mu.head = decodeHeader(b[:])
	var last error
	for _, l := range layouts(size, configured) {
		x.layout = l
		if last = x.mu.head.check(l); last != nil {
			continue
		}
		if last = x.checkLast(); last == nil {
			return nil
		}
	}
	if last == nil {
		last = fmt.Errorf("%d bytes are no size of an index file", size)
	}
	return corrupt(x.path, last.Error())
}

// layouts are the ways in which a file of this size can be divided: as configured, with the configured number of slots,
// with that of entries, and in Apache's usual proportion.
func layouts(size int64, c layout) []layout {
	var ls []layout
	rest := size - headerSize
	add := func(slots, entries int64) {
		if slots > 0 && entries > 0 && slots <= math.MaxInt32 && entries <= math.MaxInt32 && slotSize*slots+entrySize*entries == rest {
			ls = append(ls, layout{int32(slots), int32(entries)})
		}
	}
	add(int64(c.slots), int64(c.entries))
	add(int64(c.slots), (rest-slotSize*int64(c.slots))/entrySize)
	add((rest-entrySize*int64(c.entries))/slotSize, int64(c.entries))
	add(rest/(slotSize+4*entrySize), 4*(rest/(slotSize+4*entrySize)))
	return ls
}

// checkLast verifies that the newest entry is the head of its slot, which only the right layout makes true.
func (x *file) checkLast() error {
	n := x.mu.head.Count - 1
	if n == 0 {
		return nil
	}
	var b [entrySize]byte
	if _, err := x.mu.f.ReadAt(b[:], x.entryAt(n)); err != nil {
		return err
	}
	e := decodeEntry(b[:])
	if e.hash < 0 || e.prev < 0 || e.prev >= n {
		return fmt.Errorf("entry %d cannot be: hash %d, previous entry %d", n, e.hash, e.prev)
	}
	if _, err := x.mu.f.ReadAt(b[:slotSize], x.slotAt(e.hash%x.slots)); err != nil {
		return err
	}
	if got := int32(binary.BigEndian.Uint32(b[:])); got != n {
		return fmt.Errorf("slot of the last entry %d holds %d", n, got)
	}
	return nil
}

// createFile makes a new file of full size, sparse.
func createFile(fsys vfs.FS, path, name string, l layout) (*file, error) {
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(l.size()); err != nil {
		return nil, errors.Join(err, f.Close(), fsys.Remove(path))
	}
	x := &file{fs: fsys, path: path, name: name, layout: l}
	x.mu.f = f
	x.mu.head.Count = 1
	x.mu.written = 1
	x.cache()
	for i := range x.mu.loaded { // nothing to load from a new file
		x.mu.loaded[i] = math.MaxUint64
	}
	return x, nil
}

func (x *file) header() Header {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.mu.head
}

func (x *file) full() bool { return x.header().Count >= x.entries }

// cache makes the write-back cache. Pages that are not touched take no memory.
func (x *file) cache() {
	pages := (slotSize*int(x.slots) + pageBytes - 1) / pageBytes
	x.mu.slots = make([]byte, slotSize*int(x.slots))
	x.mu.loaded = make([]uint64, (pages+63)/64)
	x.mu.dirty = make([]uint64, (pages+63)/64)
}

// put adds an entry; the file must not be full. Only reading a page of slots from disk can fail, and then nothing was
// done.
func (x *file) put(hash int32, phys, storeTime int64) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.slots == nil {
		x.cache()
	}
	slot := hash % x.slots
	at := slotSize * int(slot)
	if err := x.load(at / pageBytes); err != nil {
		return err
	}
	h := &x.mu.head
	prev := int32(binary.BigEndian.Uint32(x.mu.slots[at:]))
	if prev < 0 || prev >= h.Count {
		prev = 0
	}
	if h.Count == 1 {
		h.BeginTime, h.BeginPhys = storeTime, phys
	}
	diff := int64(0)
	if h.BeginTime > 0 {
		diff = min(max((storeTime-h.BeginTime)/1000, 0), math.MaxInt32)
	}
	x.mu.entries = entry{hash, phys, int32(diff), prev}.append(x.mu.entries)
	binary.BigEndian.PutUint32(x.mu.slots[at:], uint32(h.Count))
	x.mu.dirty[at/pageBytes/64] |= 1 << (at / pageBytes % 64)
	if prev == 0 {
		h.UsedSlots++
	}
	h.Count++
	h.EndPhys, h.EndTime = phys, storeTime
	x.mu.changed = true
	return nil
}

// load reads a page of slots unless it is cached.
func (x *file) load(page int) error {
	if x.mu.loaded[page/64]&(1<<(page%64)) != 0 {
		return nil
	}
	b := x.mu.slots[page*pageBytes : min((page+1)*pageBytes, len(x.mu.slots))]
	if n, err := x.mu.f.ReadAt(b, headerSize+int64(page)*pageBytes); n < len(b) {
		return fmt.Errorf("cannot read index slots: %w", err)
	}
	x.mu.loaded[page/64] |= 1 << (page % 64)
	return nil
}

// pendingBytes is the number of bytes of entries not yet in the file.
func (x *file) pendingBytes() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.mu.entries)
}

// writeBack brings the cache to the file: entries, then slots, then the head, so that what a head counts is there.
// A failed part stays cached.
func (x *file) writeBack() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.mu.changed {
		return nil
	}
	if err := x.writeEntries(); err != nil {
		return fmt.Errorf("cannot write index: %w", err)
	}
	failpoint.Pass(failpoint.IndexEntries)
	if err := x.writeSlots(); err != nil {
		return fmt.Errorf("cannot write index: %w", err)
	}
	failpoint.Pass(failpoint.IndexSlots)
	if _, err := x.mu.f.WriteAt(x.mu.head.append(make([]byte, 0, headerSize)), 0); err != nil {
		return fmt.Errorf("cannot write index: %w", err)
	}
	x.mu.changed = false
	return nil
}

// spill writes the entries only: they come one behind the other and cost little, while the slots are all over the file.
func (x *file) spill() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.writeEntries(); err != nil {
		return fmt.Errorf("cannot write index: %w", err)
	}
	return nil
}

func (x *file) writeEntries() error {
	if len(x.mu.entries) == 0 {
		return nil
	}
	if _, err := x.mu.f.WriteAt(x.mu.entries, x.entryAt(x.mu.written)); err != nil {
		return err
	}
	x.mu.written += int32(len(x.mu.entries) / entrySize)
	x.mu.entries = x.mu.entries[:0]
	return nil
}

// writeSlots writes dirty pages, neighbours together.
func (x *file) writeSlots() error {
	pages := (len(x.mu.slots) + pageBytes - 1) / pageBytes
	isDirty := func(p int) bool { return p < pages && x.mu.dirty[p/64]&(1<<(p%64)) != 0 }
	for from := 0; from < pages; from++ {
		if x.mu.dirty[from/64] == 0 {
			from |= 63
			continue
		}
		if !isDirty(from) {
			continue
		}
		to := from + 1
		for isDirty(to) {
			to++
		}
		b := x.mu.slots[from*pageBytes : min(to*pageBytes, len(x.mu.slots))]
		if _, err := x.mu.f.WriteAt(b, headerSize+int64(from)*pageBytes); err != nil {
			return err
		}
		for p := from; p < to; p++ {
			x.mu.dirty[p/64] &^= 1 << (p % 64)
		}
		from = to
	}
	return nil
}

// sync writes back and makes the file durable.
func (x *file) sync() error {
	if err := x.writeBack(); err != nil {
		return err
	}
	x.mu.Lock()
	f := x.mu.f
	x.mu.Unlock()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("cannot make index durable: %w", err)
	}
	return nil
}

// dropCache gives the memory of the cache back; there must be nothing to write.
func (x *file) dropCache() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.mu.changed {
		x.mu.slots, x.mu.loaded, x.mu.dirty, x.mu.entries = nil, nil, nil, nil
	}
}

// slot returns the newest entry of a hash's slot.
func (x *file) slot(hash int32) (int32, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.closed {
		return 0, nil
	}
	at := slotSize * int(hash%x.slots)
	if x.mu.slots != nil {
		if err := x.load(at / pageBytes); err != nil {
			return 0, err
		}
		return int32(binary.BigEndian.Uint32(x.mu.slots[at:])), nil
	}
	var b [slotSize]byte
	if _, err := x.mu.f.ReadAt(b[:], headerSize+int64(at)); err != nil {
		return 0, fmt.Errorf("cannot read index: %w", err)
	}
	return int32(binary.BigEndian.Uint32(b[:])), nil
}

// entry reads an entry that exists.
func (x *file) entry(n int32) (entry, error) {
	x.mu.Lock()
	if x.mu.closed {
		x.mu.Unlock()
		return entry{}, nil
	}
	if n >= x.mu.written {
		e := decodeEntry(x.mu.entries[entrySize*int(n-x.mu.written):])
		x.mu.Unlock()
		return e, nil
	}
	f := x.mu.f
	x.mu.readers++
	x.mu.Unlock()
	var b [entrySize]byte
	got, err := f.ReadAt(b[:], x.entryAt(n))
	x.endRead()
	if got < entrySize {
		return entry{}, fmt.Errorf("cannot read index: %w", err)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return entry{}, fmt.Errorf("cannot read index: %w", err)
	}
	return decodeEntry(b[:]), nil
}

func (x *file) endRead() {
	x.mu.Lock()
	x.mu.readers--
	last := x.mu.closed && x.mu.readers == 0
	x.mu.Unlock()
	if last {
		_ = x.mu.f.Close()
	}
}

// close closes the file once nobody reads it. What is cached is lost.
func (x *file) close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.closed {
		return nil
	}
	x.mu.closed = true
	x.mu.changed, x.mu.slots, x.mu.entries = false, nil, nil
	if x.mu.readers > 0 {
		return nil
	}
	return x.mu.f.Close()
}

// CorruptError says that a file cannot be an index file. It is not used, and built again from the log.
type CorruptError struct{ Path, What string }

func (e *CorruptError) Error() string {
	return fmt.Sprintf("index file %q is damaged: %s", e.Path, e.What)
}

func corrupt(path, what string) error { return &CorruptError{path, what} }
