package consumequeue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
)

// Limits of an extension unit in bytes.
const (
	extHead    = 20
	extEnd     = 4 // what always stays free at the end of a file
	maxExtUnit = math.MaxInt16
)

// ExtUnit is one unit of consumequeue_ext: what a queue unit has no room for.
type ExtUnit struct {
	TagsCode  int64
	StoreTime int64  // ms
	BitMap    []byte // the bits of the groups that want the message; empty when nothing is known
}

// Len is the length of the unit in its file, in bytes.
func (u *ExtUnit) Len() int { return extHead + len(u.BitMap) }

// AppendExtUnit appends the bytes of an extension unit.
func AppendExtUnit(dst []byte, u ExtUnit) []byte {
	be := binary.BigEndian
	dst = be.AppendUint16(dst, uint16(u.Len()))
	dst = be.AppendUint64(dst, uint64(u.TagsCode))
	dst = be.AppendUint64(dst, uint64(u.StoreTime))
	dst = be.AppendUint16(dst, uint16(len(u.BitMap)))
	return append(dst, u.BitMap...)
}

// Ext is the extension units of one queue. Put is for one goroutine at a time; the rest is safe to share. Units are
// written out and made durable with those of their queue, before them.
type Ext struct {
	set    *Set
	topic  string
	id     int32
	number uint64

	mu struct {
		sync.Mutex
		fileBytes int64
		starts    []int64 // files, ascending
		settled   bool    // written is known
		written   int64   // units before are in files
		buf       []byte  // units from written on
		syncFrom  int64   // first file written to since the last sync, noFile for none
		newNames  bool    // files came or went since the last sync
		removed   bool
	}
}

// NewExt returns extension units without files. Nothing is created before the first unit is written out.
func (s *Set) NewExt(topic string, id int32) *Ext {
	e := &Ext{set: s, topic: topic, id: id, number: s.numbers.Add(1)}
	e.mu.fileBytes, e.mu.syncFrom = s.cfg.ExtBytes, noFile
	return e
}

// LoadExt lists the extension files of a queue, nil when it has none.
func (s *Set) LoadExt(f Found) (*Ext, error) {
	e := s.NewExt(f.Topic, f.QueueID)
	files, err := s.listFiles(e.dir())
	if err != nil || len(files) == 0 {
		return nil, err
	}
	e.mu.fileBytes = commonSize(files, s.cfg.ExtBytes, 1)
	// A process that was killed may have made files whose names are not durable: the next sync looks after that.
	e.mu.newNames = true
	for _, f := range files {
		if f.start%max(1, e.mu.fileBytes) == 0 {
			e.mu.starts = append(e.mu.starts, f.start)
		}
	}
	return e, nil
}

// Get reads the unit at an address, which is a tags code for which IsExtAddr holds. Errors: ErrNoUnits when nothing
// that can be a unit is there.
func (e *Ext) Get(addr int64) (ExtUnit, error) {
	if e == nil || !IsExtAddr(addr) {
		return ExtUnit{}, ErrNoUnits
	}
	off := addr - math.MinInt64
	e.mu.Lock()
	fileBytes := e.mu.fileBytes
	if e.mu.settled && off >= e.mu.written {
		var u ExtUnit
		err := ErrNoUnits
		if at := off - e.mu.written; at < int64(len(e.mu.buf)) {
			u, err = decodeExt(e.mu.buf[at:])
			u.BitMap = slices.Clone(u.BitMap)
		}
		e.mu.Unlock()
		return u, err
	}
	start := noFile
	if fileBytes > 0 {
		if i, ok := slices.BinarySearch(e.mu.starts, off/fileBytes*fileBytes); ok {
			start = e.mu.starts[i]
		}
	}
	e.mu.Unlock()
	if start == noFile {
		return ExtUnit{}, ErrNoUnits
	}
	return e.read(start, off-start, fileBytes)
}

// read reads a unit from a file.
func (e *Ext) read(start, at, fileBytes int64) (ExtUnit, error) {
	o, err := e.set.fds.use(e.key(start), e, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return ExtUnit{}, ErrNoUnits
		}
		return ExtUnit{}, err
	}
	defer e.set.fds.release(o)
	var few [extHead + 16]byte // most bit maps are as short
	n, err := o.f.ReadAt(few[:min(int64(len(few)), fileBytes-at)], at)
	if n < extHead {
		return ExtUnit{}, errors.Join(ErrNoUnits, err)
	}
	b := few[:n]
	if size := int(binary.BigEndian.Uint16(b)); size > n && size <= maxExtUnit {
		b = make([]byte, size)
		if n, err := o.f.ReadAt(b, at); n < size {
			return ExtUnit{}, errors.Join(ErrNoUnits, err)
		}
	}
	u, err := decodeExt(b)
	if err != nil {
		return u, fmt.Errorf("%w in %q at %d", err, e.path(start), at)
	}
	u.BitMap = slices.Clone(u.BitMap)
	return u, nil
}

// decodeExt reads the unit that starts b. Its bit map aliases b.
func decodeExt(b []byte) (ExtUnit, error) {
	if len(b) < extHead {
		return ExtUnit{}, ErrNoUnits
	}
	be := binary.BigEndian
	size, bits := int(be.Uint16(b)), int(be.Uint16(b[18:]))
	if size < extHead || size > maxExtUnit || bits != size-extHead || size > len(b) {
		return ExtUnit{}, fmt.Errorf("%w: an extension unit of %d bytes with a bit map of %d", ErrNoUnits, size, bits)
	}
	return ExtUnit{TagsCode: int64(be.Uint64(b[2:])), StoreTime: int64(be.Uint64(b[10:])), BitMap: b[extHead:size]}, nil
}

// Settle finds out where the units of a queue end: behind the one that the last queue unit points to. What lies behind in
// the files belongs to units that are not there any more; it goes. Put needs it once after a load, and after the queue
// was cut.
func (e *Ext) Settle(q *Queue) error {
	e.mu.Lock()
	settled, first := e.mu.settled, int64(0)
	if len(e.mu.starts) > 0 {
		first = e.mu.starts[0]
	}
	e.mu.Unlock()
	if settled {
		return nil
	}
	end := first
	addr, ok, err := q.lastExtAddr()
	if err != nil {
		return err
	}
	if ok {
		// A unit that cannot be read keeps its address to itself: nothing is to be found there that is another message's.
		u, err := e.Get(addr)
		if err != nil && !errors.Is(err, ErrNoUnits) {
			return err
		}
		end = addr - math.MinInt64 + int64(u.Len())
	}
	if err := e.cut(end); err != nil {
		return fmt.Errorf("cannot cut consume queue extension: %w", err)
	}
	e.mu.Lock()
	e.mu.settled, e.mu.written = true, end
	e.mu.Unlock()
	return nil
}

// lastExtAddr returns the address that the last unit with one has.
func (q *Queue) lastExtAddr() (addr int64, ok bool, err error) {
	b := make([]byte, chunkUnits*UnitSize)
	first, units := q.first(), q.FileUnits()
	for hi := q.Max(); hi > first; {
		lo := max(first, hi-chunkUnits, (hi-1)/units*units)
		n, err := q.Read(lo, b[:(hi-lo)*UnitSize])
		if err != nil && !errors.Is(err, ErrNoUnits) {
			return 0, false, err
		}
		for i := n - 1; i >= 0; i-- {
			if u := DecodeUnit(b[i*UnitSize:]); !u.IsFiller() && IsExtAddr(u.TagsCode) {
				return u.TagsCode, true, nil
			}
		}
		hi = lo
	}
	return 0, false, nil
}

// Put appends a unit and returns its address. ok is false when it cannot be stored at all; the queue unit then carries the
// tags code itself. Settle must have been called.
func (e *Ext) Put(u ExtUnit) (addr int64, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	size := int64(u.Len())
	if size > maxExtUnit || size+extEnd > e.mu.fileBytes || !e.mu.settled {
		return 0, false
	}
	old := len(e.mu.buf)
	off := e.mu.written + int64(old)
	if off > maxExtAddr-math.MinInt64-maxExtUnit-e.mu.fileBytes {
		return 0, false
	}
	if rest := e.mu.fileBytes - off%e.mu.fileBytes; size > rest-extEnd {
		e.mu.buf = binary.BigEndian.AppendUint16(e.mu.buf, math.MaxUint16)
		e.mu.buf = append(e.mu.buf, make([]byte, rest-2)...)
		off += rest
	}
	e.mu.buf = AppendExtUnit(e.mu.buf, u)
	e.set.pending.Add(int64(len(e.mu.buf) - old))
	return off + math.MinInt64, true
}

// reset forgets where the units end and what is only in memory: queue units were dropped.
func (e *Ext) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set.pending.Add(-int64(len(e.mu.buf)))
	e.mu.settled, e.mu.buf = false, nil
	e.mu.newNames = e.mu.newNames || len(e.mu.starts) > 0
}

// RemoveExt deletes the extension files of a queue, durably.
func (s *Set) RemoveExt(e *Ext) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	e.reset()
	e.mu.Lock()
	e.mu.removed = true
	starts := slices.Clone(e.mu.starts)
	e.mu.Unlock()
	for _, start := range starts {
		s.fds.forget(e.key(start))
	}
	return s.removeDir(e.dir())
}

func (e *Ext) key(start int64) fileKey { return fileKey{e.number, start} }

func (e *Ext) dir() string {
	return filepath.Join(e.set.ExtDir(), e.topic, strconv.Itoa(int(e.id)))
}

func (e *Ext) path(start int64) string { return filepath.Join(e.dir(), fileName(start)) }
