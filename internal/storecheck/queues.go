package storecheck

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strconv"

	"mqx/internal/vfs"
)

// QueueKey names a consume queue.
type QueueKey struct {
	Topic string
	ID    int32
}

// Unit is one unit of a consume queue.
type Unit struct {
	Phys     int64
	Size     int32
	TagsCode int64
}

// filler stands for an offset without a readable record.
var filler = Unit{0, 0x7FFFFFFF, 0}

const unitLen = 20

// Queue is the units of a consume queue.
type Queue struct {
	First int64 // offset of Units[0], which begins the first file
	Units []Unit
	Exts  map[int64]Ext // by offset: what consumequeue_ext says; the units have the real tags code
	Bad   []string      // what cannot be in a queue of a stopped store
	lost  []lostExt     // wrong only where the record is still there
}

// Max is the offset behind the last unit.
func (q *Queue) Max() int64 { return q.First + int64(len(q.Units)) }

// Min is the first offset whose record lies at or behind logMin; Max when there is none.
func (q *Queue) Min(logMin int64) int64 {
	for i, u := range q.Units {
		if u != filler && u.Phys >= logMin {
			return q.First + int64(i)
		}
	}
	return q.Max()
}

// ReadQueues reads all consume queues of a store.
func ReadQueues(fsys vfs.FS, root string) (map[QueueKey]*Queue, error) {
	out := map[QueueKey]*Queue{}
	dir := filepath.Join(root, "consumequeue")
	topics, err := subdirectories(fsys, dir)
	if err != nil {
		return nil, err
	}
	for _, topic := range topics {
		ids, err := subdirectories(fsys, filepath.Join(dir, topic))
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			n, err := strconv.ParseInt(id, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("cannot read queues: %q is no queue number", filepath.Join(dir, topic, id))
			}
			q, err := readQueue(fsys, filepath.Join(dir, topic, id))
			if err != nil {
				return nil, err
			}
			if err := q.resolve(fsys, filepath.Join(root, "consumequeue_ext", topic, id)); err != nil {
				return nil, err
			}
			out[QueueKey{topic, int32(n)}] = q
		}
	}
	return out, nil
}

func subdirectories(fsys vfs.FS, dir string) ([]string, error) {
	entries, err := readDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

func readQueue(fsys vfs.FS, dir string) (*Queue, error) {
	files, err := numbered(fsys, dir)
	if err != nil {
		return nil, err
	}
	q := &Queue{}
	size, ended := int64(0), false
	for i, f := range files {
		b, err := vfs.ReadFile(fsys, filepath.Join(dir, f.name))
		if err != nil {
			return nil, err
		}
		if i == 0 {
			size, q.First = int64(len(b)), f.start/unitLen
		}
		if int64(len(b)) != size || size == 0 || size%unitLen != 0 || f.start != files[0].start+int64(i)*size {
			q.Bad = append(q.Bad, fmt.Sprintf("file %s of %d bytes behind %d files of %d", f.name, len(b), i, size))
			return q, nil
		}
		for at := 0; at < len(b); at += unitLen {
			u := Unit{int64(binary.BigEndian.Uint64(b[at:])), int32(binary.BigEndian.Uint32(b[at+8:])), int64(binary.BigEndian.Uint64(b[at+12:]))}
			switch {
			case u == Unit{}:
				ended = true
			case ended:
				q.Bad = append(q.Bad, fmt.Sprintf("file %s: unit %v at byte %d behind the end", f.name, u, at))
				return q, nil
			default:
				q.Units = append(q.Units, u)
			}
		}
	}
	return q, nil
}

// CheckQueues builds the queues from the log and compares. Fillers may stand for records that cannot be read only where
// the log has rot. Topics for which gone returns true are passed over. bitMap, if given, is what extension units hold of a
// message.
func CheckQueues(l *Log, queues map[QueueKey]*Queue, gone func(topic string) bool, bitMap func(map[string]string) []byte) []error {
	if gone == nil {
		gone = func(string) bool { return false }
	}
	var errs []error
	add := func(k QueueKey, format string, args ...any) {
		errs = append(errs, fmt.Errorf("queue %s/%d: %s", k.Topic, k.ID, fmt.Sprintf(format, args...)))
	}
	byQueue := map[QueueKey][]*Record{}
	for i := range l.Records {
		r := &l.Records[i]
		if t := r.SysFlag & 0xC; t == 0x4 || t == 0xC || gone(r.Topic) { // prepared, rolled back
			continue
		}
		k := QueueKey{r.Topic, r.QueueID}
		byQueue[k] = append(byQueue[k], r)
	}
	for k, q := range queues {
		if gone(k.Topic) {
			continue
		}
		for _, bad := range q.Bad {
			add(k, "%s", bad)
		}
		for _, x := range q.lost {
			if x.phys >= l.Min {
				add(k, "%s", x.what)
			}
		}
		if byQueue[k] == nil && len(l.Rot) == 0 {
			for i, u := range q.Units {
				if u != filler && u.Phys >= l.Min {
					add(k, "unit %d points to %d, where the log has nothing for it", q.First+int64(i), u.Phys)
					break
				}
			}
		}
	}
	for k, recs := range byQueue {
		q := queues[k]
		if q == nil {
			add(k, "is missing; the log has %d records for it", len(recs))
			continue
		}
		errs = append(errs, checkQueue(l, k, q, recs, bitMap)...)
	}
	return errs
}

func checkQueue(l *Log, k QueueKey, q *Queue, recs []*Record, bitMap func(map[string]string) []byte) []error {
	var errs []error
	add := func(format string, args ...any) {
		if len(errs) < 5 {
			errs = append(errs, fmt.Errorf("queue %s/%d: %s", k.Topic, k.ID, fmt.Sprintf(format, args...)))
		}
	}
	next := q.First
	for i, r := range recs {
		if r.QueueOffset < next {
			add("record at %d carries offset %d, which an earlier record has or no file holds (next is %d)", r.Phys, r.QueueOffset, next)
			continue
		}
		for ; next < r.QueueOffset && next < q.Max(); next++ {
			u := q.Units[next-q.First]
			switch {
			case i == 0 && u != filler && u.Phys >= l.Min:
				add("unit %d points to %d, where no record of it is", next, u.Phys)
			case i > 0 && u != filler:
				add("unit %d points to %d, where no record of it is", next, u.Phys)
			case i > 0 && len(l.Rot) == 0:
				add("unit %d is a filler although the log is whole", next)
			}
		}
		if r.QueueOffset >= q.Max() {
			add("ends at %d and lacks the record of offset %d at %d", q.Max(), r.QueueOffset, r.Phys)
			break
		}
		got, want := q.Units[r.QueueOffset-q.First], Unit{r.Phys, r.Size, tagsCode(r.Properties)}
		if k.Topic == "SCHEDULE_TOPIC_XXXX" {
			want.TagsCode = got.TagsCode // the time of delivery, by a configured table
		}
		if got != want {
			add("unit %d is %v, want %v", r.QueueOffset, got, want)
		}
		if x, ok := q.Exts[r.QueueOffset]; ok && x.StoreTime != r.StoreTime {
			add("the extension of unit %d is of another message: stored at %d, want %d", r.QueueOffset, x.StoreTime, r.StoreTime)
		} else if ok && bitMap != nil && !bytes.Equal(x.BitMap, bitMap(r.Properties)) {
			add("the extension of unit %d has the bit map %x, want %x", r.QueueOffset, x.BitMap, bitMap(r.Properties))
		}
		next = r.QueueOffset + 1
	}
	for ; next < q.Max(); next++ {
		if u := q.Units[next-q.First]; u != filler || len(l.Rot) == 0 {
			add("unit %d (%v) is behind the last record of the queue", next, u)
		}
	}
	return errs
}

func tagsCode(props map[string]string) int64 {
	tags, ok := props["TAGS"]
	if !ok {
		return 0
	}
	return int64(javaHash(tags))
}
