package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	"mqx/internal/sorted"
	"mqx/internal/vfs"
	"mqx/internal/words"
	"mqx/message"
	"mqx/store/consumequeue"
)

// QueueKey names a queue. A topic may have both kinds of queues; an ordinary broker has one.
type QueueKey struct {
	Topic string
	ID    int32
	Batch bool // in batchconsumequeue/
}

// String is topic/queue.
func (k QueueKey) String() string { return k.Topic + "/" + strconv.Itoa(int(k.ID)) }

// UnitBytes is the size of a unit of the queue.
func (k QueueKey) UnitBytes() int64 {
	if k.Batch {
		return consumequeue.BatchUnitSize
	}
	return consumequeue.UnitSize
}

// Dir is the directory of the queue inside the store directory, slash-separated.
func (k QueueKey) Dir() string {
	dir := nameQueues
	if k.Batch {
		dir = nameBatchQueues
	}
	return dir + "/" + k.String()
}

// Queue is a consume queue as its files lay there when it was opened. It is safe to share.
type Queue struct {
	QueueKey
	d       *Dir
	files   []File
	others  []string
	misfits []File // in the place of files: going over one is an error
	ext     []File // of consumequeue_ext
}

// Unit is one unit of a queue, of either kind.
type Unit struct {
	N        int64 // its number: position in bytes divided by the size of a unit
	Offset   int64 // queue offset of the (first) message; N, or the base of a batch unit
	Count    int32 // messages; 1, or the number of a batch unit
	Phys     int64
	Size     int32
	TagsCode int64 // as it stands there; see consumequeue.IsExtAddr

	// Of batch units.
	StoreTime int64 // ms
	Compacted int32

	batch bool
}

// Written reports that the unit is not all zeros or nonsense: offset and size can be those of a record or filler.
func (u Unit) Written() bool {
	return u.Phys >= 0 && u.Size > 0 && (!u.batch || u.Count > 0)
}

// Zero reports that nothing was written there.
func (u Unit) Zero() bool {
	return u.Phys == 0 && u.Size == 0 && u.TagsCode == 0 && (!u.batch || (u.Offset == 0 && u.Count == 0 && u.StoreTime == 0))
}

// Filler reports that the unit stands for no record.
func (u Unit) Filler() bool { return !u.batch && u.Size == consumequeue.FillerSize }

// End is the physical offset behind the record.
func (u Unit) End() int64 { return u.Phys + int64(u.Size) }

// Next is the queue offset behind the messages of the unit.
func (u Unit) Next() int64 { return u.Offset + int64(u.Count) }

// Queues lists the queue directories, by topic and number.
func (d *Dir) Queues() ([]QueueKey, error) {
	var out []QueueKey
	for _, batch := range []bool{false, true} {
		dir := nameQueues
		if batch {
			dir = nameBatchQueues
		}
		found, err := d.queueDirs(dir)
		if err != nil {
			return nil, fmt.Errorf("cannot list queues: %w", err)
		}
		for _, k := range found {
			k.Batch = batch
			out = append(out, k)
		}
	}
	sorted.By(out, func(a, b QueueKey) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.ID, b.ID), boolCompare(a.Batch, b.Batch))
	})
	return out, nil
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func (d *Dir) queueDirs(name string) ([]QueueKey, error) {
	dir := d.Path(name)
	topics, err := d.fs.ReadDir(dir)
	if vfs.Absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(topics) > maxListedEntries {
		return nil, fmt.Errorf("%q holds %s, the limit is %d", dir, words.Count(len(topics), "entry"), maxListedEntries)
	}
	var out []QueueKey
	for _, t := range topics {
		if !t.IsDir() {
			continue
		}
		ids, err := d.fs.ReadDir(filepath.Join(dir, t.Name()))
		if vfs.Absent(err) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		for _, e := range ids {
			id, err := strconv.ParseInt(e.Name(), 10, 32)
			if err == nil && e.IsDir() && strconv.FormatInt(id, 10) == e.Name() {
				out = append(out, QueueKey{Topic: t.Name(), ID: int32(id)})
			}
		}
	}
	return out, nil
}

// Queue opens a queue. One without files has none of the bounds. A directory that does not exist is fs.ErrNotExist.
func (d *Dir) Queue(k QueueKey) (*Queue, error) {
	dir := d.Path(k.Dir())
	if _, err := d.fs.Stat(dir); err != nil {
		return nil, fmt.Errorf("cannot open queue %s: %w", k, err)
	}
	q := &Queue{QueueKey: k, d: d}
	var err error
	if q.files, q.others, q.misfits, err = d.list(dir); err != nil {
		return nil, fmt.Errorf("cannot open queue %s: %w", k, err)
	}
	if q.ext, _, _, err = d.list(d.Path(nameExtUnits + "/" + k.String())); err != nil {
		return nil, fmt.Errorf("cannot open queue %s: %w", k, err)
	}
	return q, nil
}

// Files are the files of the queue, by position. Do not change them.
func (q *Queue) Files() []File { return q.files }

// FileSize is the size that most files have, 0 when there are none.
func (q *Queue) FileSize() int64 { return commonSize(q.files) }

// Units delivers the units with numbers from <= n < to, in order, also those that were never written as long as their
// file has blocks there: holes of a file are passed over. Missing files are passed over. ErrStop ends it.
func (q *Queue) Units(ctx context.Context, from, to int64, f func(Unit) error) error {
	size := q.UnitBytes()
	if err := misfit(q.misfits, from*size, unitsEnd(to, size)); err != nil {
		return fmt.Errorf("cannot read queue %s: %w", q.QueueKey, err)
	}
	for _, file := range q.files {
		first, behind := file.Start/size, file.End()/size
		if behind <= from || first >= to {
			continue
		}
		err := q.fileUnits(ctx, file, max(from, first), min(to, behind), f)
		if errors.Is(err, ErrStop) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read queue %s: %w", q.QueueKey, err)
		}
	}
	return nil
}

// unitsEnd is the position of a unit, 0 when it is too large for one.
func unitsEnd(n, size int64) int64 {
	if n > math.MaxInt64/size {
		return 0
	}
	return n * size
}

func (q *Queue) fileUnits(ctx context.Context, file File, n, to int64, f func(Unit) error) error {
	h, err := q.d.openRead(file.Path)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	size := q.UnitBytes()
	buf := make([]byte, min((to-n)*size, (readChunk/size)*size))
	for n < to {
		if err := ctx.Err(); err != nil {
			return err
		}
		pos, err := nextData(h, file, n*size, to*size)
		if err != nil {
			return err
		}
		if n = pos / size; n >= to {
			return nil
		}
		b := buf[:min((to-n)*size, int64(len(buf)))]
		if err := readFull(h, b, n*size-file.Start); err != nil {
			return err
		}
		for ; len(b) > 0; b, n = b[size:], n+1 {
			if err := f(q.decode(b, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (q *Queue) decode(b []byte, n int64) Unit {
	if !q.Batch {
		u := consumequeue.DecodeUnit(b)
		return Unit{N: n, Offset: n, Count: 1, Phys: u.Phys, Size: u.Size, TagsCode: u.TagsCode}
	}
	u := consumequeue.DecodeBatchUnit(b)
	return Unit{
		N: n, Offset: u.Base, Count: int32(u.Count), Phys: u.Phys, Size: u.Size, TagsCode: u.TagsCode,
		StoreTime: u.StoreTime, Compacted: u.Compacted, batch: true,
	}
}

// Unit reads one unit by its number; ok is false when no file has it.
func (q *Queue) Unit(n int64) (u Unit, ok bool, err error) {
	size := q.UnitBytes()
	for _, file := range q.files {
		if n*size < file.Start || (n+1)*size > file.End() {
			continue
		}
		b := make([]byte, size)
		if err := q.d.fds.readAt(file.Path, b, n*size-file.Start); err != nil {
			return Unit{}, false, fmt.Errorf("cannot read queue %s: %w", q.QueueKey, err)
		}
		return q.decode(b, n), true, nil
	}
	return Unit{}, false, nil
}

// Bounds are the ends of a queue.
type Bounds struct {
	Empty bool // no unit stands for a record; all else is 0
	// First and Last are the first and last written unit that is no filler.
	First, Last Unit
	// Min and Max are the queue offsets that can be read, Max exclusive: Min is the first one whose record is not below
	// the start of the log; equal to Max when there is none.
	Min, Max int64
	// Units counts written units of records, Fillers those without one, Gaps numbers of units between First and Last that
	// were never written or whose file is missing. Below counts units of records below the start of the log, which is
	// what retention leaves.
	Units, Fillers, Gaps, Below int64
	// Messages counts the messages from Min to Max that have a unit.
	Messages int64
}

// Bounds reads the whole queue.
func (q *Queue) Bounds(ctx context.Context) (Bounds, error) {
	b := Bounds{Empty: true}
	next, logMin := int64(-1), q.d.log.Min()

	err := q.Units(ctx, 0, noLimit, func(u Unit) error {
		if !u.Written() {
			return nil
		}
		if next >= 0 && u.N > next {
			b.Gaps += u.N - next
		}
		next = u.N + 1
		if u.Filler() {
			b.Fillers++
			return nil
		}
		b.Units++
		if u.Phys < logMin {
			b.Below++
		} else {
			if b.Messages == 0 {
				b.Min = u.Offset
			}
			b.Messages += int64(u.Count)
		}
		if b.Empty {
			b.Empty, b.First = false, u
		}
		b.Last = u
		return nil
	})
	if err != nil {
		return Bounds{}, err
	}
	if next < 0 {
		return b, nil
	}
	b.Max = next // fillers at the end keep their offsets used
	if q.Batch {
		b.Max = b.Last.Next()
	}
	if b.Messages == 0 {
		b.Min = b.Max
	}
	return b, nil
}

// Ext reads the extension unit behind a tags code that is an address; ok is false when none can be there.
func (q *Queue) Ext(tagsCode int64) (u consumequeue.ExtUnit, ok bool, err error) {
	if !consumequeue.IsExtAddr(tagsCode) {
		return u, false, nil
	}
	return readExt(q, tagsCode)
}

// extBytes reads a piece of an extension file, io.ErrUnexpectedEOF and a missing file being nothing.
func (q *Queue) extBytes(b []byte, off int64) (bool, error) {
	for _, f := range q.ext {
		if off < f.Start || off+int64(len(b)) > f.End() {
			continue
		}
		err := q.d.fds.readAt(f.Path, b, off-f.Start)
		return err == nil, err
	}
	return false, nil
}

// Points reports whether a record is the one that a unit of the queue should point to: of its topic, queue and offset, or
// one that names the queue among its further ones (light queues).
func (q *Queue) Points(u Unit, v message.View) bool {
	if string(v.Topic()) == q.Topic && v.QueueID() == q.ID && v.QueueOffset() == u.Offset {
		return true
	}
	names, _ := v.Property(message.PropInnerMultiDispatch)
	offsets, _ := v.Property(message.PropInnerMultiQueueOffset)
	for name, n := range message.LightQueues(names, offsets) {
		if n == u.Offset && string(name) == q.Topic {
			return true
		}
	}
	return false
}
