package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"mqx/internal/fastjson"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store"
	"mqx/store/timer"
)

// Sizes of the files of a new store: Apache's.
const (
	defaultLogFile        = 1 << 30
	defaultQueueFile      = 6_000_000
	defaultBatchQueueFile = 13_800_000
	timerCheckBytes       = 4096
	groupRevive           = "CID_RMQ_SYS_REVIVE_GROUP" // reads the revive topic on every broker
)

// importParts are what an import moves to its place, in this order: a broker that is started between two of them builds
// queues from the log.
var importParts = []string{nameCommitLog, nameQueues, nameBatchQueues, nameIndex, nameConfig, nameCheckpoint}

// runNew makes a store in mqx/import and puts it in its place.
func (i *importer) runNew() error {
	st, err := i.journal()
	if err != nil {
		return err
	}
	if st != nil && st.Moving {
		i.plan.Finished, i.plan.Records, i.plan.Messages = true, st.Records, st.Messages
	} else if err := i.surveyNew(); err != nil {
		return err
	}
	if i.plan.Known && i.plan.Records == 0 {
		return i.nothing()
	}
	if i.o.Agree != nil {
		if err := i.o.Agree(i.plan); err != nil {
			return err
		}
	}
	was, err := i.remember()
	if err != nil {
		return err
	}
	if err := vfs.MkdirAllDurable(i.fs, i.root); err != nil {
		return err
	}
	if i.plan.Known {
		if err := i.space(i.root, i.plan.bytes()+i.indexHeads()); err != nil {
			return err
		}
	}
	lock, err := store.LockDir(i.fs, i.root)
	if err != nil {
		return err
	}
	if !i.plan.Finished {
		err = i.build()
	}
	if !i.plan.Finished && (err != nil || i.plan.Records == 0) {
		if err == nil {
			err = i.nothing()
		}
		return errors.Join(err, i.undo(was, lock))
	}
	if err == nil {
		err = i.settle()
	}
	return errors.Join(err, lock.Close())
}

// nothing is ErrNoLines where no line came.
func (i *importer) nothing() error {
	if i.plan.Known && i.plan.Lines == 0 {
		return ErrNoLines
	}
	return nil
}

// newMaker makes what turns lines into a log; the first line says which kind.
func (i *importer) newMaker(first *message.Line, dir string, dry bool) (*maker, error) {
	whole := first.LogFileSize > 0 && first.PhysicalOffset != nil && !i.o.Renumber
	if !whole && first.PhysicalOffset != nil && !i.o.Renumber {
		return nil, fmt.Errorf("%w: the first line has a physicalOffset and no logFileSize", ErrGap)
	}
	size := cmp.Or(i.o.LogFileBytes, defaultLogFile)
	if whole {
		size = first.LogFileSize
	}
	if size < message.MinRecordLen {
		return nil, fmt.Errorf("log files of %d bytes are too small", size)
	}
	i.plan.Whole, i.plan.fileBytes = whole, size
	return &maker{
		w:    &logWriter{fs: i.fs, dir: dir, fileSize: size, dry: dry},
		plan: i.plan, whole: whole, next: map[string]int64{}, now: i.o.Clock.Now().UnixMilli(),
	}, nil
}

// surveyNew works out what would be done.
func (i *importer) surveyNew() error {
	var m *maker
	err := i.survey(func(_ int64, l *message.Line) (err error) {
		if m == nil {
			if m, err = i.newMaker(l, "", true); err != nil {
				return err
			}
		}
		return m.line(l)
	})
	if err != nil || m == nil {
		return err
	}
	i.plan.LogBytes = m.w.pos - m.w.start
	i.plan.From, i.plan.To = m.w.start, m.w.pos
	i.plan.tooFew(nil)
	return nil
}

// build writes the store into mqx/import.
func (i *importer) build() error {
	if err := i.fs.RemoveAll(i.path(importWork)); err != nil {
		return err
	}
	if err := i.note(importState{New: true}); err != nil {
		return err
	}
	dir := i.path(importWork + "/" + nameCommitLog)
	if err := vfs.MkdirAllDurable(i.fs, dir); err != nil {
		return err
	}
	b, err := i.writeLog(dir)
	if err != nil {
		return errors.Join(err, i.clear())
	}
	if i.plan.Records == 0 {
		return i.clear()
	}
	if err := i.derive(b); err != nil {
		return errors.Join(err, i.clear())
	}
	return nil
}

// clear takes away what was begun.
func (i *importer) clear() error {
	return errors.Join(i.fs.RemoveAll(i.path(importWork)), i.forget())
}

// built is what the log of a new store has.
type built struct {
	batch map[string]bool // topics with inner batches
	last  int64           // newest store time
}

func (i *importer) writeLog(dir string) (*built, error) {
	r, c, err := i.open("import")
	if err != nil {
		return nil, err
	}
	kept := *i.plan
	*i.plan = ImportPlan{Dir: kept.Dir, New: true, Known: kept.Known, Skipped: map[string]int64{}, Topics: map[string]int32{}}
	b := &built{batch: map[string]bool{}}
	var m *maker
	err = i.each(r, func(_ int64, l *message.Line) (err error) {
		if m == nil {
			if m, err = i.newMaker(l, dir, false); err != nil {
				return err
			}
		}
		if err := m.line(l); err != nil {
			return err
		}
		if v := message.View(m.buf); m.whole && l.RecordMessage == 0 {
			b.last = max(b.last, v.StoreTimestamp())
			if message.NumberedBatch(v.Topic(), v.SysFlag()) {
				b.batch[l.Topic] = true
			}
		}
		return nil
	})
	if m != nil {
		err = errors.Join(err, m.w.close())
		i.plan.LogBytes, i.plan.From, i.plan.To = m.w.pos-m.w.start, m.w.start, m.w.pos
		if !m.whole {
			b.last = m.stored
		}
	}
	i.plan.tooFew(nil)
	i.plan.Known = i.plan.Known || err == nil
	return b, errors.Join(err, c.Close())
}

// derive builds everything else from the log, and notes that the store is whole.
func (i *importer) derive(b *built) error {
	root := i.path(importWork)
	p := &RepairPlan{
		Root: root, DelayMs: i.delays, Slots: i.indexSlots(), Entries: i.indexEntries(),
		Salvage: "mqx/salvage",
	}
	queues := &Step{Kind: StepQueues, File: nameQueues, What: "build the queues"}
	lmq, err := i.lightQueues(root)
	if err != nil {
		return err
	}
	for name := range lmq {
		i.plan.Topics[name] = max(i.plan.Topics[name], 1)
	}
	for _, topic := range slices.Sorted(maps.Keys(i.plan.Topics)) {
		for id := range i.plan.Topics[topic] {
			q := stepQueue{Topic: topic, Queue: id, Batch: b.batch[topic], FileBytes: cmp.Or(i.o.Plan.QueueFileBytes, defaultQueueFile)}
			if q.Batch {
				q.FileBytes = defaultBatchQueueFile
			}
			queues.Queues = append(queues.Queues, q)
		}
	}
	p.Steps = []*Step{
		queues,
		{Kind: StepIndex, File: nameIndex, What: "build the index"},
		{Kind: StepTopics, File: nameConfig + "/topics.json", What: "make topics.json"},
		{Kind: StepCheckpoint, File: nameCheckpoint, What: "write a checkpoint that claims nothing"},
	}
	what, read := "", int64(0)
	err = Apply(i.ctx, p, ApplyOptions{
		FS: i.fs, Clock: i.o.Clock,
		OnStep: func(_ int, s *Step) { what, read = s.What, 0 },
		OnRead: func(n int64) {
			read += n
			i.o.OnProgress(what, read, i.plan.LogBytes)
		},
	})
	if err != nil {
		return err
	}
	if err := i.progress(root, b.last); err != nil {
		return err
	}
	return i.note(importState{New: true, Moving: true, Records: i.plan.Records, Messages: i.plan.Messages})
}

// lightQueues are the names that records of the new log are dispatched to beside their own queue.
func (i *importer) lightQueues(root string) (map[string]bool, error) {
	d, err := Open(root, Options{FS: i.fs, Clock: i.o.Clock, Owned: true})
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	_, err = d.log.Walk(i.ctx, WalkOptions{}, func(_ int64, v message.View) error {
		names, ok := v.Property(message.PropInnerMultiDispatch)
		if _, numbered := v.Property(message.PropInnerMultiQueueOffset); !ok || !numbered {
			return nil
		}
		for _, name := range splitNames(names) {
			if message.ValidateTopic(name) == nil {
				out[name] = true
			}
		}
		return nil
	})
	return out, errors.Join(err, d.Close())
}

// progress says how far the broker's own readers are, so that nothing that was delivered before the export is delivered
// once more: what was due by the last store time of the log counts as delivered.
func (i *importer) progress(root string, last int64) error {
	d, err := Open(root, Options{FS: i.fs, Clock: i.o.Clock, Owned: true})
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	keys, err := d.Queues()
	if err != nil {
		return err
	}
	levels, revived := fastjson.Object{}, fastjson.Object{}
	for _, k := range keys {
		switch {
		case k.Topic == message.TopicSchedule:
			next, err := d.firstDue(i, k, func(u Unit) (int64, error) { return u.TagsCode, nil }, last)
			if err != nil {
				return err
			}
			levels = append(levels, fastjson.Member{Key: int64(k.ID + 1), Value: next})
		case k.Topic == message.TopicTimer && k.ID == 0:
			if err := d.timerProgress(i, k, last); err != nil {
				return err
			}
		case isRevive(k.Topic):
			next, err := d.firstDue(i, k, func(Unit) (int64, error) { return 0, nil }, last)
			if err != nil {
				return err
			}
			revived = append(revived, fastjson.Member{Key: k.Topic + "@" + groupRevive + "#" + strconv.Itoa(int(k.ID)), Value: next})
		}
	}
	if len(levels) > 0 {
		if err := i.writeTable(root, "delayOffset.json", fastjson.Object{{Key: "offsetTable", Value: levels}}); err != nil {
			return err
		}
	}
	if len(revived) == 0 {
		return nil
	}
	return i.writeTable(root, fileOffsets, fastjson.Object{{Key: "offsetTable", Value: byTopic(revived)}})
}

func isRevive(topic string) bool {
	return len(topic) > len(message.TopicReviveLogPrefix) && topic[:len(message.TopicReviveLogPrefix)] == message.TopicReviveLogPrefix
}

// byTopic gathers the queues of each topic@group.
func byTopic(list fastjson.Object) fastjson.Object {
	var out fastjson.Object
	for _, m := range list {
		name, id, _ := cutLast(fmt.Sprint(m.Key), '#')
		n, _ := strconv.ParseInt(id, 10, 64)
		if len(out) == 0 || out[len(out)-1].Key != any(name) {
			out = append(out, fastjson.Member{Key: name, Value: fastjson.Object{}})
		}
		o, _ := out[len(out)-1].Value.(fastjson.Object)
		out[len(out)-1].Value = append(o, fastjson.Member{Key: n, Value: m.Value})
	}
	return out
}

func cutLast(s string, sep byte) (before, after string, ok bool) {
	for n := len(s) - 1; n >= 0; n-- {
		if s[n] == sep {
			return s[:n], s[n+1:], true
		}
	}
	return s, "", false
}

// firstDue is the offset of the first message of a queue that is due behind a time; the end of the queue when there is
// none.
func (d *Dir) firstDue(i *importer, k QueueKey, due func(Unit) (int64, error), last int64) (int64, error) {
	q, err := d.Queue(k)
	if err != nil {
		return 0, err
	}
	next := int64(0)
	err = q.Units(i.ctx, 0, noLimit, func(u Unit) error {
		if !u.Written() {
			return nil
		}
		at, err := due(u)
		if err != nil {
			return err
		}
		if at > last && !u.Filler() {
			next = u.Offset
			return ErrStop
		}
		next = u.Next()
		return nil
	})
	if errors.Is(err, ErrStop) {
		err = nil
	}
	return next, err
}

// timerProgress writes config/timercheck: the timer goes on with the first message that is still to come.
func (d *Dir) timerProgress(i *importer, k QueueKey, last int64) error {
	next, err := d.firstDue(i, k, func(u Unit) (int64, error) {
		rec, err := d.log.Record(u.Phys)
		if errors.Is(err, ErrNoRecord) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		text, _ := rec.Property(message.PropTimerOutMs)
		at, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return 0, nil //nolint:nilerr // no time: nothing to wait for
		}
		return at, nil
	}, last)
	if err != nil {
		return err
	}
	c := timer.Checkpoint{ReadTime: last, QueueOffset: next, MasterQueueOffset: next}
	b := make([]byte, timerCheckBytes)
	copy(b, c.Append(nil))
	return vfs.WriteFileDurable(i.fs, filepath.Join(d.root, nameConfig, "timercheck"), b)
}

// writeTable writes a new configuration file.
func (i *importer) writeTable(root, name string, o fastjson.Object) error {
	version := fastjson.Object{{Key: "counter", Value: int64(1)}, {Key: "stateVersion", Value: int64(0)}, {Key: "timestamp", Value: i.o.Clock.Now().UnixMilli()}}
	b, err := fastjson.MarshalPretty(append(fastjson.Object{{Key: "dataVersion", Value: version}}, o...))
	if err != nil {
		return err
	}
	return vfs.WriteFileDurable(i.fs, filepath.Join(root, nameConfig, name), b)
}

// settle puts the store that was built in its place. It can be interrupted and done again.
func (i *importer) settle() error {
	for _, part := range importParts {
		from := i.path(path.Join(importWork, part))
		if _, err := i.fs.Stat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if err := i.fs.Rename(from, i.path(part)); err != nil {
			return err
		}
		if err := errors.Join(i.fs.SyncDir(i.root), i.fs.SyncDir(i.path(importWork))); err != nil {
			return err
		}
	}
	return i.clear()
}

func (i *importer) indexSlots() int32   { return cmp.Or(i.o.Plan.IndexSlots, 5_000_000) }
func (i *importer) indexEntries() int32 { return cmp.Or(i.o.Plan.IndexEntries, 20_000_000) }

// indexHeads is what the slots of new index files take.
func (i *importer) indexHeads() int64 {
	files := 1 + 3*i.plan.Messages/int64(max(i.indexEntries(), 1))
	return files * 4 * int64(i.indexSlots())
}
