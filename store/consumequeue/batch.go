package consumequeue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
)

// BatchUnitSize is the length of a unit of a batch queue in bytes.
const BatchUnitSize = 46

// BatchUnit is one unit of a batch queue: one record that holds Count messages with the offsets from Base on.
type BatchUnit struct {
	Phys      int64
	Size      int32
	TagsCode  int64
	StoreTime int64 // ms
	Base      int64
	Count     int16
	Compacted int32 // -1
}

// Valid reports whether the bytes were written.
func (u BatchUnit) Valid() bool { return u.Phys >= 0 && u.Size > 0 && u.Count > 0 }

// Next is the offset behind the messages of the record.
func (u BatchUnit) Next() int64 { return u.Base + int64(u.Count) }

// AppendBatchUnit appends the bytes of a unit.
func AppendBatchUnit(dst []byte, u BatchUnit) []byte {
	be := binary.BigEndian
	dst = be.AppendUint64(dst, uint64(u.Phys))
	dst = be.AppendUint32(dst, uint32(u.Size))
	dst = be.AppendUint64(dst, uint64(u.TagsCode))
	dst = be.AppendUint64(dst, uint64(u.StoreTime))
	dst = be.AppendUint64(dst, uint64(u.Base))
	dst = be.AppendUint16(dst, uint16(u.Count))
	dst = be.AppendUint32(dst, uint32(u.Compacted))
	return append(dst, 0, 0, 0, 0)
}

// DecodeBatchUnit reads the unit that starts b, which must hold BatchUnitSize bytes.
func DecodeBatchUnit(b []byte) BatchUnit {
	_ = b[BatchUnitSize-1]
	be := binary.BigEndian
	return BatchUnit{
		Phys:      int64(be.Uint64(b)),
		Size:      int32(be.Uint32(b[8:])),
		TagsCode:  int64(be.Uint64(b[12:])),
		StoreTime: int64(be.Uint64(b[20:])),
		Base:      int64(be.Uint64(b[28:])),
		Count:     int16(be.Uint16(b[36:])),
		Compacted: int32(be.Uint32(b[38:])),
	}
}

// BatchQueue is the batch queue of a topic: its units have 46 bytes and stand for records of several messages. Units are
// written at once. It is safe to share; Put is for one goroutine.
type BatchQueue struct {
	set    *Set
	topic  string
	id     int32
	number uint64

	mu struct {
		sync.Mutex
		fileBytes   int64
		starts      []int64
		first, next int64 // unit numbers: of the first readable unit, behind the last one
		min, max    int64 // queue offsets
		lastEnd     int64
		stale       int64 // unit number up to which old bytes may lie behind next
		syncFrom    int64
		newNames    bool
	}
}

// NewBatch returns a batch queue without files.
func (s *Set) NewBatch(topic string, id int32) *BatchQueue {
	q := &BatchQueue{set: s, topic: topic, id: id, number: s.numbers.Add(1)}
	q.mu.fileBytes = max(s.cfg.BatchBytes/BatchUnitSize, 1) * BatchUnitSize
	q.mu.syncFrom = noFile
	return q
}

// LoadBatch opens the files of one batch queue directory.
func (s *Set) LoadBatch(f Found) (*BatchQueue, error) {
	q := s.NewBatch(f.Topic, f.QueueID)
	files, err := s.listFiles(q.dir())
	if err != nil || len(files) == 0 {
		return q, err
	}
	q.mu.fileBytes = commonSize(files, q.mu.fileBytes, BatchUnitSize)
	for _, f := range files {
		if f.start%q.mu.fileBytes != 0 || f.size != q.mu.fileBytes {
			return nil, fmt.Errorf("cannot load batch consume queue: file %q of %d bytes does not fit the file size %d",
				q.path(f.start), f.size, q.mu.fileBytes)
		}
		q.mu.starts = append(q.mu.starts, f.start)
	}
	if err := q.findEnd(); err != nil {
		return nil, fmt.Errorf("cannot load batch consume queue: %w", err)
	}
	return q, nil
}

func (q *BatchQueue) findEnd() error {
	units := q.mu.fileBytes / BatchUnitSize
	q.mu.first = q.mu.starts[0] / BatchUnitSize
	q.mu.next = q.mu.first
	for _, start := range q.mu.starts {
		lo, hi := int64(0), units
		for lo < hi {
			mid := lo + (hi-lo)/2
			u, err := q.unit(start/BatchUnitSize + mid)
			if err != nil {
				return err
			}
			if u.Valid() {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		if lo == 0 {
			break
		}
		q.mu.next = start/BatchUnitSize + lo
	}
	return q.setBounds()
}

// setBounds derives the queue offsets from the units at both ends.
func (q *BatchQueue) setBounds() error {
	if q.mu.next == q.mu.first {
		return nil
	}
	head, err := q.unit(q.mu.first)
	if err != nil {
		return err
	}
	tail, err := q.unit(q.mu.next - 1)
	if err != nil {
		return err
	}
	q.mu.min, q.mu.max, q.mu.lastEnd = head.Base, tail.Next(), tail.Phys+int64(tail.Size)
	return nil
}

// Topic is the name of the topic.
func (q *BatchQueue) Topic() string { return q.topic }

// ID is the number of the queue in its topic.
func (q *BatchQueue) ID() int32 { return q.id }

// Min and Max are the queue offsets that can be read, Max exclusive.
func (q *BatchQueue) Min() int64 { q.mu.Lock(); defer q.mu.Unlock(); return q.mu.min }

// Max is the offset that the next message gets.
func (q *BatchQueue) Max() int64 { q.mu.Lock(); defer q.mu.Unlock(); return q.mu.max }

// LastEnd is the physical offset behind the record of the last unit.
func (q *BatchQueue) LastEnd() int64 { q.mu.Lock(); defer q.mu.Unlock(); return q.mu.lastEnd }

// Units is the range of unit numbers that can be read.
func (q *BatchQueue) Units() (first, next int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.first, q.mu.next
}

// Unit reads a unit by its number. Errors: ErrNoUnits, or the one of the disk.
func (q *BatchQueue) Unit(n int64) (BatchUnit, error) {
	first, next := q.Units()
	if n < first || n >= next {
		return BatchUnit{}, ErrNoUnits
	}
	return q.unit(n)
}

func (q *BatchQueue) unit(n int64) (BatchUnit, error) {
	var b [BatchUnitSize]byte
	start := n * BatchUnitSize / q.mu.fileBytes * q.mu.fileBytes
	o, err := q.set.fds.use(fileKey{q.number, start}, q, 0)
	if err != nil {
		return BatchUnit{}, err
	}
	defer q.set.fds.release(o)
	if n, err := o.f.ReadAt(b[:], n*BatchUnitSize-start); err != nil && (n < len(b) || !errors.Is(err, io.EOF)) {
		return BatchUnit{}, err
	}
	return DecodeBatchUnit(b[:]), nil
}

// Find returns the number of the first unit for which before is false, next if there is none.
func (q *BatchQueue) Find(before func(BatchUnit) bool) (int64, error) {
	lo, hi := q.Units()
	for lo < hi {
		mid := lo + (hi-lo)/2
		u, err := q.unit(mid)
		if err != nil {
			return 0, err
		}
		if before(u) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// Put appends a unit. One whose offsets are there already is passed over.
func (q *BatchQueue) Put(u BatchUnit) (PutResult, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.next > q.mu.first && u.Base < q.mu.max {
		return Present, nil
	}
	if err := q.write(q.mu.next, AppendBatchUnit(nil, u)); err != nil {
		return Refused, fmt.Errorf("cannot write batch consume queue: %w", err)
	}
	if q.mu.next == q.mu.first {
		q.mu.min = u.Base
	}
	q.mu.next++
	q.mu.max, q.mu.lastEnd = u.Next(), u.Phys+int64(u.Size)
	return Appended, nil
}

// write puts the bytes of one unit at its place, creating the file. The caller holds the lock.
func (q *BatchQueue) write(n int64, b []byte) error {
	start := n * BatchUnitSize / q.mu.fileBytes * q.mu.fileBytes
	i, known := slices.BinarySearch(q.mu.starts, start)
	flag := 0
	if !known {
		if err := q.set.cfg.FS.MkdirAll(q.dir()); err != nil {
			return err
		}
		flag = os.O_CREATE
	}
	o, err := q.set.fds.use(fileKey{q.number, start}, q, flag)
	if err != nil {
		return err
	}
	defer q.set.fds.release(o)
	if !known {
		if err := o.f.Truncate(q.mu.fileBytes); err != nil {
			return err
		}
		q.mu.starts = slices.Insert(q.mu.starts, i, start)
		q.mu.newNames = true
	}
	if err := q.set.writeFull(o, b, n*BatchUnitSize-start); err != nil {
		return err
	}
	if q.mu.syncFrom == noFile || start < q.mu.syncFrom {
		q.mu.syncFrom = start
	}
	q.set.mu.Lock()
	q.set.mu.batches[q] = struct{}{}
	q.set.mu.Unlock()
	return nil
}

// Reset drops the units of records at or behind phys from memory; Finish clears them on disk.
func (q *BatchQueue) Reset(phys int64) error {
	keep, err := q.Find(func(u BatchUnit) bool { return u.Valid() && u.Phys < phys })
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.stale = max(q.mu.stale, q.mu.next)
	q.mu.next = keep
	if keep == q.mu.first {
		q.mu.min, q.mu.max, q.mu.lastEnd = 0, 0, 0
		return nil
	}
	return q.setBounds()
}

// Finish zeroes units that Reset dropped and Put did not give again.
func (q *BatchQueue) Finish() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var zero [BatchUnitSize]byte
	for n := q.mu.next; n < q.mu.stale; n++ {
		if err := q.write(n, zero[:]); err != nil {
			return fmt.Errorf("cannot cut batch consume queue: %w", err)
		}
	}
	q.mu.stale = 0
	return nil
}

// CorrectMin moves Min to the first unit whose record is in a log that begins at logMin.
func (q *BatchQueue) CorrectMin(logMin int64) error {
	n, err := q.Find(func(u BatchUnit) bool { return u.Phys < logMin })
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if n == q.mu.next {
		q.mu.min = q.mu.max
		return nil
	}
	u, err := q.unit(n)
	if err == nil {
		q.mu.min = u.Base
	}
	return err
}

// RemoveBatch deletes a batch queue with its files, durably.
func (s *Set) RemoveBatch(q *BatchQueue) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	q.mu.Lock()
	starts := slices.Clone(q.mu.starts)
	q.mu.Unlock()
	s.mu.Lock()
	delete(s.mu.batches, q)
	s.mu.Unlock()
	for _, start := range starts {
		s.fds.forget(fileKey{q.number, start})
	}
	return s.removeDir(q.dir())
}

func (q *BatchQueue) sync(dirs map[string]struct{}) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var errs []error
	for _, start := range q.mu.starts {
		if q.mu.syncFrom == noFile || start < q.mu.syncFrom {
			continue
		}
		o, err := q.set.fds.use(fileKey{q.number, start}, q, 0)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, o.f.Sync())
		q.set.fds.release(o)
	}
	if q.mu.newNames {
		for _, dir := range []string{q.dir(), filepath.Dir(q.dir()), q.set.BatchDir(), q.set.cfg.Root} {
			dirs[dir] = struct{}{}
		}
	}
	q.mu.syncFrom, q.mu.newNames = noFile, false
	return errors.Join(errs...)
}

func (q *BatchQueue) dir() string {
	return filepath.Join(q.set.BatchDir(), q.topic, strconv.Itoa(int(q.id)))
}

func (q *BatchQueue) path(start int64) string { return filepath.Join(q.dir(), fileName(start)) }
