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
)

// Limits of an extension unit in bytes.
const (
	extHead    = 20
	maxExtUnit = math.MaxInt16
)

// ExtUnit is one unit of consumequeue_ext: what a queue unit has no room for.
type ExtUnit struct {
	TagsCode  int64
	StoreTime int64 // ms
	BitMap    []byte
}

// Ext reads the extension units of one queue. They are read and never written: units that this package writes carry
// their tags code themselves, which any reader takes as well. It is safe to share.
type Ext struct {
	set    *Set
	topic  string
	id     int32
	number uint64
	starts []int64
	size   int64
}

// LoadExt lists the extension files of a queue, nil when it has none.
func (s *Set) LoadExt(f Found) (*Ext, error) {
	e := &Ext{set: s, topic: f.Topic, id: f.QueueID, number: s.numbers.Add(1)}
	files, err := s.listFiles(e.dir())
	if err != nil || len(files) == 0 {
		return nil, err
	}
	e.size = files[0].size
	for _, f := range files {
		e.starts = append(e.starts, f.start)
	}
	return e, nil
}

// Get reads the unit at an address, which is a tags code for which IsExtAddr holds. Errors: ErrNoUnits when nothing
// that can be a unit is there.
func (e *Ext) Get(addr int64) (ExtUnit, error) {
	if e == nil || !IsExtAddr(addr) || e.size <= 0 {
		return ExtUnit{}, ErrNoUnits
	}
	off := addr - math.MinInt64
	i, ok := slices.BinarySearch(e.starts, off/e.size*e.size)
	if !ok {
		return ExtUnit{}, ErrNoUnits
	}
	o, err := e.set.fds.use(fileKey{e.number, e.starts[i]}, e, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return ExtUnit{}, ErrNoUnits
		}
		return ExtUnit{}, err
	}
	defer e.set.fds.release(o)
	at := off - e.starts[i]
	var head [extHead]byte
	if n, err := o.f.ReadAt(head[:], at); n < len(head) {
		return ExtUnit{}, errors.Join(ErrNoUnits, err)
	}
	be := binary.BigEndian
	size, bits := int(be.Uint16(head[:])), int(be.Uint16(head[18:]))
	if size < extHead || size > maxExtUnit || bits != size-extHead {
		return ExtUnit{}, fmt.Errorf("%w: size %d, bit map %d in %q at %d", ErrNoUnits, size, bits, e.path(e.starts[i]), at)
	}
	u := ExtUnit{TagsCode: int64(be.Uint64(head[2:])), StoreTime: int64(be.Uint64(head[10:])), BitMap: make([]byte, bits)}
	if n, err := o.f.ReadAt(u.BitMap, at+extHead); n < bits {
		return ExtUnit{}, errors.Join(ErrNoUnits, err)
	}
	return u, nil
}

// TagsCode returns the real tags code behind an address; ok is false when it cannot be found, and then nothing may be
// filtered out by it.
func (e *Ext) TagsCode(addr int64) (code int64, ok bool) {
	u, err := e.Get(addr)
	return u.TagsCode, err == nil
}

// RemoveExt deletes the extension files of a queue, durably.
func (s *Set) RemoveExt(e *Ext) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	for _, start := range e.starts {
		s.fds.forget(fileKey{e.number, start})
	}
	return s.removeDir(e.dir())
}

func (e *Ext) dir() string {
	return filepath.Join(e.set.ExtDir(), e.topic, strconv.Itoa(int(e.id)))
}

func (e *Ext) path(start int64) string { return filepath.Join(e.dir(), fileName(start)) }
