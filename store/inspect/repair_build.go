package inspect

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"mqx/internal/fastjson"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store/consumequeue"
	"mqx/store/index"
)

// open looks at the directory as the steps so far have left it.
func (a *applier) open() (*Dir, error) {
	return Open(a.p.Root, Options{FS: a.fs, Clock: a.o.Clock, Owned: true})
}

// rebuildQueues builds queues beside those that are there, and then puts them in their place.
func (a *applier) rebuildQueues(s *Step) error {
	list := s.Queues
	work := repairWork + "/queues"
	if err := a.fs.RemoveAll(a.path(work)); err != nil {
		return err
	}
	d, err := a.open()
	if err != nil {
		return err
	}
	b := &queueBuilder{a: a, sets: map[int64]*consumequeue.Set{}, queues: map[string][]*builtQueue{}, root: a.path(work)}
	for _, q := range list {
		b.queues[q.Topic] = append(b.queues[q.Topic], &builtQueue{stepQueue: q})
	}
	err = b.build(d)
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	for _, q := range list {
		if err := a.replaceQueue(QueueKey{q.Topic, q.Queue, q.Batch}, work, s.Destructive); err != nil {
			return err
		}
	}
	return a.fs.RemoveAll(a.path(work))
}

// replaceQueue puts a queue that was built in its place. keep says that the old one goes to the salvage directory.
func (a *applier) replaceQueue(k QueueKey, work string, keep bool) error {
	built, old := path.Join(work, k.Dir()), path.Join(repairWork, "old", k.Dir())
	there, err := a.exists(built)
	if err != nil {
		return err
	}
	if keep {
		kept := path.Join(a.p.Salvage, k.Dir())
		if before, err := a.exists(kept); err != nil {
			return err
		} else if !before { // else an interrupted run has kept it, and this one is what that run has built
			old = kept
		}
	}
	if was, err := a.exists(k.Dir()); err != nil {
		return err
	} else if was {
		if err := a.fs.RemoveAll(a.path(old)); err != nil {
			return err
		}
		if err := a.move(k.Dir(), old); err != nil {
			return err
		}
	}
	if !there {
		return nil // the log has nothing of it
	}
	return a.move(built, k.Dir())
}

// queueBuilder builds queues from the log.
type queueBuilder struct {
	a      *applier
	root   string
	sets   map[int64]*consumequeue.Set // by the size of their files
	queues map[string][]*builtQueue
	props  *fields
}

type builtQueue struct {
	stepQueue
	q     *consumequeue.Queue
	batch *consumequeue.BatchQueue
	set   *consumequeue.Set
}

// pendingMax bounds units in memory.
const pendingMax = 32 << 20

func (b *queueBuilder) build(d *Dir) error {
	b.props = newFields()
	defer func() {
		for _, s := range b.sets {
			_ = s.Close()
		}
	}()
	_, err := d.log.Walk(b.a.ctx, WalkOptions{VerifyBody: true, OnRead: b.a.o.OnRead}, b.record)
	if err != nil {
		return err
	}
	for _, list := range b.queues {
		for _, q := range list {
			if err := b.end(q); err != nil {
				return err
			}
		}
	}
	for _, s := range b.sets {
		if err := s.Sync(); err != nil {
			return err
		}
	}
	return nil
}

func (b *queueBuilder) set(size int64) *consumequeue.Set {
	s := b.sets[size]
	if s == nil {
		s = consumequeue.NewSet(consumequeue.Config{FS: b.a.fs, Root: b.root, FileBytes: size, BatchBytes: size, Logger: slog.New(slog.DiscardHandler)})
		b.sets[size] = s
	}
	return s
}

func (b *queueBuilder) find(topic []byte, id int32) *builtQueue {
	for _, q := range b.queues[string(topic)] {
		if q.Queue == id {
			return q
		}
	}
	return nil
}

func (b *queueBuilder) record(off int64, rec message.View) error {
	switch rec.Transaction() {
	case message.TransactionPrepared, message.TransactionRollback:
		return nil
	}
	b.props.read(rec.Properties())
	topic := rec.Topic()
	u := consumequeue.Unit{Phys: off, Size: rec.Size()}
	if string(topic) == message.TopicSchedule && len(b.props.delay) > 0 {
		if level, err := strconv.Atoi(string(b.props.delay)); err == nil {
			u.TagsCode = rec.StoreTimestamp() + b.a.delay(level)
		}
	} else if len(b.props.tags) > 0 {
		u.TagsCode = message.TagsCode(b.props.tags)
	}
	if q := b.find(topic, rec.QueueID()); q != nil && !b.a.gone(topic, off) {
		if err := b.put(q, rec, u); err != nil {
			return err
		}
	}
	for name, n := range message.LightQueues(b.props.lmq, b.props.lmqOffsets) {
		if q := b.find(name, 0); q != nil {
			if err := b.putUnit(q, n, u); err != nil {
				return err
			}
		}
	}
	return nil
}

// delay is the delay of a level in ms.
func (a *applier) delay(level int) int64 {
	most := 0
	for l := range a.p.DelayMs {
		most = max(most, l)
	}
	if level < 1 || most == 0 {
		return 1000
	}
	if ms, ok := a.p.DelayMs[level]; ok {
		return ms
	}
	return a.p.DelayMs[most]
}

func (a *applier) gone(topic []byte, off int64) bool {
	upTo, ok := a.p.Deleted[string(topic)]
	return ok && (upTo < 0 || off < upTo)
}

func (b *queueBuilder) put(q *builtQueue, rec message.View, u consumequeue.Unit) error {
	if !q.Batch {
		return b.putUnit(q, rec.QueueOffset(), u)
	}
	if q.batch == nil {
		q.set = b.set(q.FileBytes)
		q.batch = q.set.NewBatch(q.Topic, q.Queue)
	}
	x := consumequeue.BatchUnit{
		Phys: u.Phys, Size: u.Size, TagsCode: u.TagsCode, StoreTime: rec.StoreTimestamp(), Base: rec.QueueOffset(), Count: 1, Compacted: -1,
	}
	if n, err := strconv.ParseInt(string(b.props.innerNum), 10, 16); err == nil && n > 0 {
		x.Count = int16(n)
	}
	_, err := q.batch.Put(x)
	return err
}

func (b *queueBuilder) putUnit(q *builtQueue, offset int64, u consumequeue.Unit) error {
	if q.GenPhys > 0 && u.Phys < q.GenPhys && offset >= q.GenOffset {
		return nil // of an earlier topic of that name
	}
	if q.q != nil && offset == 0 && q.q.Max() > 0 {
		if err := q.set.Remove(q.q); err != nil { // a topic that was deleted and made again
			return err
		}
		q.q = nil
	}
	if q.q == nil {
		q.set = b.set(q.FileBytes)
		q.q = q.set.New(q.Topic, q.Queue)
	}
	q.q.Put(offset, u, message.MinRecordLen)
	if q.set.Pending() > pendingMax {
		return q.set.WriteOut()
	}
	return nil
}

// end gives a queue of which the log has nothing a filler as its last unit, so that new messages go on behind it.
func (b *queueBuilder) end(q *builtQueue) error {
	if q.q != nil || q.batch != nil || q.Batch || q.End <= 0 {
		return nil
	}
	q.set = b.set(q.FileBytes)
	q.q = q.set.New(q.Topic, q.Queue)
	q.q.Put(q.End-1, consumequeue.Filler, message.MinRecordLen)
	return nil
}

// rebuildIndex builds the index beside the one that is there, and then puts it in its place.
func (a *applier) rebuildIndex() error {
	work := repairWork + "/index"
	if err := a.fs.RemoveAll(a.path(work)); err != nil {
		return err
	}
	d, err := a.open()
	if err != nil {
		return err
	}
	x, _, err := index.Open(index.Config{
		FS: a.fs, Dir: a.path(work), Slots: a.p.Slots, Entries: a.p.Entries, Location: time.Local, Clock: a.o.Clock,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return errors.Join(err, d.Close())
	}
	p := newFields()
	var hashes []int32
	_, err = d.log.Walk(a.ctx, WalkOptions{VerifyBody: true, OnRead: a.o.OnRead}, func(off int64, rec message.View) error {
		if rec.Transaction() == message.TransactionRollback {
			return nil
		}
		p.read(rec.Properties())
		hashes = keyHashes(hashes[:0], rec.Topic(), p)
		for _, h := range hashes {
			if err := x.Put(h, off, rec.StoreTimestamp()); err != nil {
				return err
			}
		}
		return x.Spill()
	})
	if err == nil {
		err = errors.Join(x.WriteBack(), x.Sync())
	}
	if err = errors.Join(err, x.Close(), d.Close()); err != nil {
		return err
	}
	return a.replaceIndex(work)
}

func (a *applier) replaceIndex(work string) error {
	old := repairWork + "/old-index"
	if was, err := a.exists(nameIndex); err != nil {
		return err
	} else if was {
		if err := a.fs.RemoveAll(a.path(old)); err != nil {
			return err
		}
		if err := a.move(nameIndex, old); err != nil {
			return err
		}
	}
	if built, err := a.exists(work); err != nil {
		return err
	} else if built {
		if err := a.move(work, nameIndex); err != nil {
			return err
		}
	} else if err := vfs.MkdirAllDurable(a.fs, a.path(nameIndex)); err != nil {
		return err
	}
	return a.fs.RemoveAll(a.path(old))
}

// rebuildTopics makes topics.json from the queues and the log: every topic with as many queues as were used, readable and
// writable. Attributes and permissions are not known any more.
func (a *applier) rebuildTopics(file string) error {
	d, err := a.open()
	if err != nil {
		return err
	}
	queues := map[string]int32{}
	keys, err := d.Queues()
	for _, k := range keys {
		queues[k.Topic] = max(queues[k.Topic], k.ID+1)
	}
	batch := map[string]bool{}
	for _, k := range keys {
		batch[k.Topic] = batch[k.Topic] || k.Batch
	}
	if err == nil {
		_, err = d.log.Walk(a.ctx, WalkOptions{VerifyBody: true, OnRead: a.o.OnRead}, func(off int64, rec message.View) error {
			if t := rec.Transaction(); t != message.TransactionRollback && t != message.TransactionPrepared && !a.gone(rec.Topic(), off) {
				if n, ok := queues[string(rec.Topic())]; !ok || n <= rec.QueueID() {
					queues[string(rec.Topic())] = rec.QueueID() + 1
				}
			}
			return nil
		})
	}
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	table := fastjson.Object{}
	for _, topic := range slices.Sorted(maps.Keys(queues)) {
		if message.IsLMQ(topic) {
			continue
		}
		attributes := fastjson.Object{}
		if batch[topic] {
			attributes = append(attributes, fastjson.Member{Key: "queue.type", Value: "BatchCQ"})
		}
		n := int64(queues[topic])
		if topic == message.TopicSchedule {
			n = max(n, 18)
		}
		table = append(table, fastjson.Member{Key: topic, Value: topicEntry(topic, n, attributes)})
	}
	now := a.o.Clock.Now().UnixMilli()
	b, err := fastjson.MarshalPretty(fastjson.Object{
		{Key: "dataVersion", Value: fastjson.Object{{Key: "counter", Value: int64(1)}, {Key: "stateVersion", Value: int64(0)}, {Key: "timestamp", Value: now}}},
		{Key: "topicConfigTable", Value: table},
	})
	if err != nil {
		return err
	}
	if err := vfs.MkdirAllDurable(a.fs, filepath.Dir(a.path(file))); err != nil {
		return err
	}
	return a.write(a.path(file), b)
}

// clamp brings offsets into the ranges of their queues. The file before is kept.
func (a *applier) clamp(s *Step) error {
	b, err := vfs.ReadFile(a.fs, a.path(s.File))
	if err != nil {
		return err
	}
	if err := a.salvage(s.File, 0, int64(len(b)), path.Base(s.File)); err != nil {
		return err
	}
	tree, err := fastjson.ParseOrdered(b)
	if err != nil {
		return err
	}
	root, ok := tree.(fastjson.Object)
	if !ok {
		return fmt.Errorf("cannot change %q: it is no object", s.File)
	}
	for _, name := range []string{"offsetTable", lightOffsets} {
		table, _ := root.Get(name)
		offsets, ok := table.(fastjson.Object)
		if !ok && name == "offsetTable" {
			return fmt.Errorf("cannot change %q: it has no offsetTable", s.File)
		}
		for _, c := range s.Clamp {
			setOffset(offsets, c)
		}
	}
	if b, err = fastjson.MarshalPretty(root); err != nil {
		return err
	}
	return a.write(a.path(s.File), b)
}

// setOffset sets one number in a table of offsets: of a group's queue, of a light queue, or of a delay level.
func setOffset(table fastjson.Object, c stepOffset) {
	for i := range table {
		key := fmt.Sprint(table[i].Key)
		if n, ok := table[i].Value.(int64); ok && (key == c.Key || "delay level "+key == c.Key) && n == c.From {
			table[i].Value = c.To
			continue
		}
		queues, ok := table[i].Value.(fastjson.Object)
		if !ok || key != c.Key {
			continue
		}
		for j := range queues {
			if fmt.Sprint(queues[j].Key) == c.Queue && queues[j].Value == any(c.From) {
				queues[j].Value = c.To
			}
		}
	}
}
