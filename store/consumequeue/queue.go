package consumequeue

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// noFile as a file start: none.
const noFile = int64(-1)

// ErrNoUnits says that the wanted part of a queue is not there: its file is missing, or the units were never written.
var ErrNoUnits = errors.New("no queue units at this offset")

// Queue is one queue of a topic. Min and Max may be read at any time; Put is for one goroutine at a time; the rest is
// safe to share.
type Queue struct {
	set    *Set
	topic  string
	id     int32
	number uint64

	min, max atomic.Int64 // unit offsets, max exclusive
	ext      atomic.Pointer[Ext]

	mu struct {
		sync.Mutex
		fileBytes int64
		starts    []int64 // files, in bytes, ascending
		written   int64   // units up to here are in files
		buf       []byte  // units from written to max
		lastEnd   int64   // physical offset behind the record of the last unit
		firstPhys int64   // of the unit at Min, as Load found it; -1 when it is not known any more
		stale     int64   // units of files up to here may hold old bytes behind written (after Reset)
		syncFrom  int64   // first file written to since the last sync, noFile for none
		newNames  bool    // files were created since the last sync
		listed    bool    // is in the set's dirty list
		removed   bool
	}
}

// Topic is the name of the topic.
func (q *Queue) Topic() string { return q.topic }

// ID is the number of the queue in its topic.
func (q *Queue) ID() int32 { return q.id }

// Min is the first offset whose record is still in the log.
func (q *Queue) Min() int64 { return q.min.Load() }

// Max is the offset that the next unit gets.
func (q *Queue) Max() int64 { return q.max.Load() }

// LastEnd is the physical offset behind the record of the last unit, 0 for none.
func (q *Queue) LastEnd() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.lastEnd
}

// FirstPhys is the physical offset of the record at Min; ok is false when there is none.
func (q *Queue) FirstPhys() (phys int64, ok bool) {
	q.mu.Lock()
	phys = q.mu.firstPhys
	q.mu.Unlock()
	if phys >= 0 {
		return phys, true
	}
	u, err := q.At(q.Min())
	return u.Phys, err == nil && u.Valid() && !u.IsFiller()
}

// FileUnits is the number of units in a file of this queue.
func (q *Queue) FileUnits() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.fileBytes / UnitSize
}

// Files are the starts of the queue's files in bytes and their common size.
func (q *Queue) Files() (starts []int64, fileBytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.mu.starts), q.mu.fileBytes
}

// NextFile is the offset of the first unit of the file behind the one that holds off.
func (q *Queue) NextFile(off int64) int64 {
	n := q.FileUnits()
	return off - off%n + n
}

// PutResult says what Put did.
type PutResult int8

// Results of Put.
const (
	Appended PutResult = iota
	Present            // the queue already has this offset; nothing was done
	Filled             // appended, behind fillers for offsets that never came
	Refused            // the offset cannot be: there is no room in the log for the records before it
)

// Put gives the queue the unit of offset off. An offset below Max is there already; one above it leaves a gap, which
// is filled with fillers. minRecord is the length of the shortest record: a gap that could not have held so many
// records between the last unit and this one is refused. The first unit of an empty queue may have any offset.
func (q *Queue) Put(off int64, u Unit, minRecord int32) PutResult {
	res := Appended
	q.mu.Lock()
	next := q.max.Load()
	switch {
	case off < next:
		q.mu.Unlock()
		return Present
	case off == next:
	case next == 0 && len(q.mu.starts) == 0:
		q.begin(off)
	default:
		if (u.Phys-q.mu.lastEnd)/int64(minRecord) < off-next {
			q.mu.Unlock()
			return Refused
		}
		for range off - next {
			q.push(Filler)
		}
		res = Filled
	}
	q.push(u)
	q.mu.lastEnd = u.End()
	list := !q.mu.listed
	q.mu.listed = true
	q.mu.Unlock()
	// Published after the unit can be read.
	q.max.Store(off + 1)
	if list {
		q.set.markDirty(q)
	}
	return res
}

// begin makes off the first offset of an empty queue.
func (q *Queue) begin(off int64) {
	q.mu.written = off
	q.min.Store(off)
}

func (q *Queue) push(u Unit) {
	q.mu.buf = AppendUnit(q.mu.buf, u)
	q.set.pending.Add(UnitSize)
}

// Full reports whether the queue has so many pending units that it should be written out now.
func (q *Queue) Full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.mu.buf) >= writeOutBytes
}

// Read copies units from offset off on into dst and returns how many, at least one. It stops at the end of a file, so
// that it may return less than fits. Errors: ErrNoUnits, or the one of the disk.
func (q *Queue) Read(off int64, dst []byte) (int, error) {
	want := int64(len(dst) / UnitSize)
	q.mu.Lock()
	written := q.mu.written
	if off >= written {
		at := (off - written) * UnitSize
		if off < 0 || at >= int64(len(q.mu.buf)) {
			q.mu.Unlock()
			return 0, ErrNoUnits
		}
		n := copy(dst[:want*UnitSize], q.mu.buf[at:])
		q.mu.Unlock()
		return n / UnitSize, nil
	}
	fileBytes := q.mu.fileBytes
	start := noFile
	if i, ok := slices.BinarySearch(q.mu.starts, off*UnitSize/fileBytes*fileBytes); ok && off >= 0 {
		start = q.mu.starts[i]
	}
	q.mu.Unlock()
	if start == noFile {
		return 0, ErrNoUnits
	}
	n := min(want, written-off, (start+fileBytes)/UnitSize-off)
	return int(n), q.pread(dst[:n*UnitSize], start, off*UnitSize-start)
}

// At reads one unit. Errors: see Read.
func (q *Queue) At(off int64) (Unit, error) {
	var b [UnitSize]byte
	if _, err := q.Read(off, b[:]); err != nil {
		return Unit{}, err
	}
	return DecodeUnit(b[:]), nil
}

func (q *Queue) pread(dst []byte, start, at int64) error {
	o, err := q.set.fds.use(q.key(start), q, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return ErrNoUnits
		}
		return err
	}
	defer q.set.fds.release(o)
	if n, err := o.f.ReadAt(dst, at); err != nil && n < len(dst) {
		if errors.Is(err, io.EOF) {
			return ErrNoUnits
		}
		return err
	}
	return nil
}

func (q *Queue) key(start int64) fileKey { return fileKey{q.number, start} }

func (q *Queue) dir() string {
	return filepath.Join(q.set.Dir(), q.topic, strconv.Itoa(int(q.id)))
}

// path is the path of the file that starts at a byte offset.
func (q *Queue) path(start int64) string { return filepath.Join(q.dir(), fileName(start)) }
