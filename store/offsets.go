package store

import (
	"errors"
	"fmt"
	"iter"
	"math"

	"mqx/message"
	"mqx/store/commitlog"
	"mqx/store/consumequeue"
)

// headBytes are enough of a record to read its store time.
const headBytes = 76

// ErrNoRecord says that no readable record starts at a physical offset.
var ErrNoRecord = errors.New("no record at this physical offset")

// Boundary says which side of a time OffsetByTime looks for.
type Boundary int8

// Lower finds the first message stored at or after the time, Upper the last at or before it.
const (
	Lower Boundary = iota
	Upper
)

// MinOffset is the smallest queue offset that can be read, 0 for an unknown queue.
func (s *Store) MinOffset(topic string, queueID int32) int64 {
	if q := s.queues.get(topic, queueID); q != nil {
		return q.minOffset()
	}
	return 0
}

// MaxOffset is the next queue offset to be dispatched, 0 for an unknown queue.
func (s *Store) MaxOffset(topic string, queueID int32) int64 {
	if q := s.queues.get(topic, queueID); q != nil {
		return q.maxOffset()
	}
	return 0
}

// NextOffset is the queue offset that the next message gets: MaxOffset, or more where messages are stored that nobody may read
// yet. 0 for an unknown queue.
func (s *Store) NextOffset(topic string, queueID int32) int64 {
	if q := s.queues.get(topic, queueID); q != nil {
		return max(q.counter.Next(), q.maxOffset())
	}
	return 0
}

// OffsetByTime finds a queue offset by store time in milliseconds. Beyond the end it is the
// max offset (Lower) or the last message (Upper); before the start it is the min offset.
// An unknown queue gives 0. Of a batch queue it is the first offset of a record, and the last record beyond the end.
func (s *Store) OffsetByTime(topic string, queueID int32, timestampMs int64, b Boundary) (int64, error) {
	q := s.queues.get(topic, queueID)
	if q == nil || !q.exists() {
		return 0, nil
	}
	if batch := q.batch.Load(); batch != nil {
		return batchOffsetByTime(batch, timestampMs, b)
	}
	c := q.cq.Load()
	low, high := c.Min(), c.Max()
	if b == Lower {
		return s.firstAt(c, low, high, func(t int64) bool { return t >= timestampMs })
	}
	off, err := s.firstAt(c, low, high, func(t int64) bool { return t > timestampMs })
	if err != nil {
		return 0, err
	}
	return max(off-1, low), nil
}

// firstAt returns the first offset in [lo, hi) whose store time satisfies reached, hi for none. Units without a
// readable record count as the next one that has one.
func (s *Store) firstAt(c *consumequeue.Queue, lo, hi int64, reached func(int64) bool) (int64, error) {
	end := hi
	for lo < hi {
		mid := lo + (hi-lo)/2
		t, err := s.timeFrom(c, mid, end)
		if err != nil {
			return 0, err
		}
		if reached(t) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo, nil
}

// timeFrom is the store time of the first readable record in [off, hi), the end of time for none.
func (s *Store) timeFrom(c *consumequeue.Queue, off, hi int64) (int64, error) {
	for off < hi {
		u, err := c.At(off)
		if errors.Is(err, consumequeue.ErrNoUnits) {
			off = c.NextFile(off)
			continue
		}
		if err != nil {
			return 0, err
		}
		if !u.IsFiller() {
			t, err := s.storeTimeAtPhys(u.Phys)
			if err == nil {
				return t, nil
			}
			if !errors.Is(err, commitlog.ErrOutOfRange) && !errors.Is(err, ErrNoRecord) {
				return 0, err
			}
			if errors.Is(err, commitlog.ErrOutOfRange) { // a missing file: to the first unit behind it
				next, err := c.Search(s.nextFileStart(u.Phys))
				if err != nil {
					return 0, err
				}
				off = max(next, off+1)
				continue
			}
		}
		off++
	}
	return math.MaxInt64, nil
}

func batchOffsetByTime(b *consumequeue.BatchQueue, timestampMs int64, side Boundary) (int64, error) {
	first, next := b.Units()
	if first == next {
		return 0, nil
	}
	n, err := b.Find(func(u consumequeue.BatchUnit) bool {
		return u.StoreTime < timestampMs || side == Upper && u.StoreTime == timestampMs
	})
	if err != nil {
		return 0, err
	}
	if side == Upper && n > first || n == next {
		n--
	}
	u, err := b.Unit(n)
	return u.Base, err
}

// storeTimeAtPhys reads the store time of the record at a physical offset.
func (s *Store) storeTimeAtPhys(phys int64) (int64, error) {
	var b [headBytes]byte
	if err := s.log.ReadAt(b[:], phys); err != nil {
		return 0, err
	}
	if _, magic, err := message.PeekRecord(b[:]); err != nil || magic == message.MagicBlank || message.PhysicalOffsetOf(b[:]) != phys {
		return 0, ErrNoRecord
	}
	return message.StoreTimestampOf(b[:]), nil
}

// StoreTime is the store time in milliseconds of the message at a queue offset, -1 when there is none. The error is that
// of the disk.
func (s *Store) StoreTime(topic string, queueID int32, offset int64) (int64, error) {
	phys, err := s.physAt(topic, queueID, offset)
	if phys < 0 {
		return -1, err
	}
	t, err := s.storeTimeAtPhys(phys)
	if errors.Is(err, ErrNoRecord) || errors.Is(err, commitlog.ErrOutOfRange) {
		return -1, nil
	}
	return t, err
}

// EarliestStoreTime is the store time of the oldest message of a queue, -1 when there is none. The error is that of the
// disk.
func (s *Store) EarliestStoreTime(topic string, queueID int32) (int64, error) {
	return s.StoreTime(topic, queueID, s.MinOffset(topic, queueID))
}

// physAt is the physical offset of the message at a queue offset, -1 when there is none.
func (s *Store) physAt(topic string, queueID int32, offset int64) (int64, error) {
	q := s.queues.get(topic, queueID)
	if q == nil || offset < q.minOffset() {
		return -1, nil
	}
	if b := q.batch.Load(); b != nil {
		n, err := b.Find(func(u consumequeue.BatchUnit) bool { return u.Next() <= offset })
		if err != nil {
			return -1, err
		}
		u, err := b.Unit(n)
		return physOf(u.Phys, u.Base <= offset, err)
	}
	c := q.cq.Load()
	if c == nil {
		return -1, nil
	}
	u, err := c.At(offset)
	return physOf(u.Phys, !u.IsFiller(), err)
}

func physOf(phys int64, there bool, err error) (int64, error) {
	if errors.Is(err, consumequeue.ErrNoUnits) || err == nil && !there {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	return phys, nil
}

// RecordAt returns a copy of the record at a physical offset. Errors: ErrNoRecord when no
// record starts there, or that of the disk.
func (s *Store) RecordAt(physicalOffset int64) ([]byte, error) {
	rec, err := s.recordAt(physicalOffset)
	if errors.Is(err, commitlog.ErrOutOfRange) {
		return nil, fmt.Errorf("%w: %d is outside the log from %d to %d", ErrNoRecord, physicalOffset, s.log.Min(), s.log.End())
	}
	return rec, err
}

func (s *Store) recordAt(phys int64) (message.View, error) {
	var head [message.BlankLen]byte
	if err := s.log.ReadAt(head[:], phys); err != nil {
		return nil, err
	}
	size, magic, err := message.PeekRecord(head[:])
	if err != nil || magic == message.MagicBlank || int(size) > s.conf().MaxMessageBytes+maxForeignRecord {
		return nil, fmt.Errorf("%w: %d", ErrNoRecord, phys)
	}
	b := make([]byte, size)
	if err := s.log.ReadAt(b, phys); err != nil {
		return nil, err
	}
	v, err := message.ParseView(b, message.DecodeOptions{})
	if err != nil || v.PhysicalOffset() != phys {
		return nil, fmt.Errorf("%w: %d", ErrNoRecord, phys)
	}
	return v, nil
}

// maxForeignRecord is how much longer than maxMessageSize a record may be that was written under another limit.
const maxForeignRecord = 32 << 20

// QueueInfo is one consume queue.
type QueueInfo struct {
	Topic    string
	QueueID  int32
	Min, Max int64 // queue offsets, Max exclusive
}

// Queues lists the consume queues, in no particular order.
func (s *Store) Queues() iter.Seq[QueueInfo] {
	return func(yield func(QueueInfo) bool) {
		for q := range s.queues.all {
			if q.exists() && !yield(QueueInfo{q.topic, q.id, q.minOffset(), q.maxOffset()}) {
				return
			}
		}
	}
}

// Units returns up to n units of a queue from an offset on; of a batch queue, one for each record. Files that are
// missing are passed over.
func (s *Store) Units(topic string, queueID int32, from int64, n int) ([]Unit, error) {
	return s.AppendUnits(nil, topic, queueID, from, n)
}

// AppendUnits is Units for a caller who has memory for them.
func (s *Store) AppendUnits(dst []Unit, topic string, queueID int32, from int64, n int) ([]Unit, error) {
	q := s.queues.get(topic, queueID)
	if q == nil || !q.exists() || n <= 0 {
		return dst, nil
	}
	if b := q.batch.Load(); b != nil {
		return appendBatchUnits(dst, b, from, n)
	}
	c := q.cq.Load()
	var chunk [unitChunk * consumequeue.UnitSize]byte
	for off := max(from, c.Min()); off < c.Max() && n > 0; {
		got, err := c.Read(off, chunk[:min(unitChunk, int64(n), c.Max()-off)*consumequeue.UnitSize])
		if errors.Is(err, consumequeue.ErrNoUnits) {
			off = c.NextFile(off)
			continue
		}
		if err != nil {
			return dst, err
		}
		for i := range got {
			u := consumequeue.DecodeUnit(chunk[i*consumequeue.UnitSize:])
			dst = append(dst, q.unit(off+int64(i), u))
		}
		off, n = off+int64(got), n-got
	}
	return dst, nil
}

// unit is a queue unit with what its extension says.
func (q *queue) unit(off int64, u consumequeue.Unit) Unit {
	out := Unit{QueueOffset: off, PhysicalOffset: u.Phys, Size: u.Size, TagsCode: u.TagsCode}
	if consumequeue.IsExtAddr(u.TagsCode) {
		if ext, err := q.ext.Load().Get(u.TagsCode); err == nil {
			out.Ext, out.TagsCode = &ext, ext.TagsCode
		}
	}
	return out
}

func appendBatchUnits(dst []Unit, b *consumequeue.BatchQueue, from int64, n int) ([]Unit, error) {
	i, err := b.Find(func(u consumequeue.BatchUnit) bool { return u.Next() <= from })
	if err != nil {
		return dst, err
	}
	for _, next := b.Units(); i < next && n > 0; i++ {
		u, err := b.Unit(i)
		if err != nil {
			return dst, err
		}
		dst = append(dst, Unit{QueueOffset: u.Base, PhysicalOffset: u.Phys, Size: u.Size, TagsCode: u.TagsCode})
		n--
	}
	return dst, nil
}

// IsNearEnd reports whether the record at a queue offset lies within accessMessageInMemoryMaxRatio of memory from the end
// of the log; false when there is none. The error is that of the disk.
func (s *Store) IsNearEnd(topic string, queueID int32, offset int64) (bool, error) {
	phys, err := s.physAt(topic, queueID, offset)
	return phys >= 0 && s.log.End()-phys <= s.memoryBytes, err
}
