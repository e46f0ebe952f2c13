package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"mqx/internal/fastjson"
	"mqx/internal/jsonfile"
	"mqx/message"
	"mqx/store"
)

// Bounds of what is put into a store at once.
const (
	appendPuts  = 256
	appendBytes = 1 << 20
)

// target is the store that is added to, as it was before.
type target struct {
	cfg    store.Config
	topics map[string]TopicConfig
	batch  map[string]bool // topics with batch queues
	end    int64           // of the log
}

// runAppend adds the lines to a store.
func (i *importer) runAppend() error {
	t, err := i.inspectTarget()
	if err != nil {
		return err
	}
	st, err := i.journal()
	if err != nil {
		return err
	}
	first, err := i.surveyAppend(t)
	if err != nil {
		return err
	}
	if i.plan.Known && i.plan.Records == 0 {
		return nil
	}
	if st != nil && i.plan.Known && st.First != first && !i.o.Abandon {
		return ErrOtherImport
	}
	if st != nil && i.o.Abandon {
		st = nil
	}
	if i.o.Agree != nil {
		if err := i.o.Agree(i.plan); err != nil {
			return err
		}
	}
	if i.plan.Known {
		if err := i.space(i.root, i.plan.bytes()); err != nil {
			return err
		}
	}
	return i.into(t, st)
}

// inspectTarget reads what an import has to know of the store.
func (i *importer) inspectTarget() (*target, error) {
	d, err := Open(i.root, Options{FS: i.fs, Clock: i.o.Clock})
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	info, err := d.Info(i.ctx)
	if err != nil {
		return nil, err
	}
	t := &target{batch: map[string]bool{}, end: info.LogEnd}
	if t.topics, err = d.Topics(); err != nil {
		return nil, err
	}
	for name, c := range t.topics {
		t.batch[name] = c.Attributes["queue.type"] == "BatchCQ"
	}
	keys, err := d.Queues()
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		t.batch[k.Topic] = t.batch[k.Topic] || k.Batch
	}
	t.cfg = i.storeConfig(d, info)
	return t, nil
}

// storeConfig is the configuration that the files of a store tell.
func (i *importer) storeConfig(d *Dir, info *Info) store.Config {
	c := store.DefaultConfig()
	c.FS, c.Clock, c.RootDir, c.Logger = i.fs, i.o.Clock, i.root, slog.New(slog.DiscardHandler)
	if i.o.DelayLevels != "" {
		c.MessageDelayLevel = i.o.DelayLevels
	}
	for key, to := range map[string]*int{
		"mappedFileSizeCommitLog": &c.CommitLogFileBytes, "mappedFileSizeConsumeQueue": &c.ConsumeQueueFileBytes,
		"mapperFileSizeBatchConsumeQueue": &c.BatchConsumeQueueFileBytes, "mappedFileSizeConsumeQueueExt": &c.ConsumeQueueExtFileBytes,
		"maxHashSlotNum": &c.MaxHashSlotNum, "maxIndexNum": &c.MaxIndexNum,
	} {
		if n, err := strconv.Atoi(info.Settings[key]); err == nil && n > 0 {
			*to = n
		}
	}
	for _, x := range []struct {
		given int64
		to    *int
	}{{int64(i.o.Plan.IndexSlots), &c.MaxHashSlotNum}, {int64(i.o.Plan.IndexEntries), &c.MaxIndexNum}, {i.o.Plan.QueueFileBytes, &c.ConsumeQueueFileBytes}} {
		if x.given > 0 {
			*x.to = int(x.given)
		}
	}
	c.AppendPropCRC = info.Settings["enabledAppendPropCRC"] == "true"
	c.EnableConsumeQueueExt = d.Has(KindExtUnits)
	if len(d.log.dirs) == 1 {
		c.CommitLogDir = d.log.dirs[0]
	}
	c.FileReservedHours = 24 * 365 * 100 // an import deletes nothing
	c.DiskMaxUsedRatio, c.CleanFileForciblyEnable = 100, false
	return c
}

// surveyAppend works out what would be added; first is the hash of the first line.
func (i *importer) surveyAppend(t *target) (first uint64, err error) {
	err = i.survey(func(n int64, l *message.Line) error {
		if i.plan.Lines == 0 {
			first = hashOfLine(l)
		}
		r, err := i.wanted(t, l)
		if err != nil || r == nil {
			return err
		}
		i.plan.LogBytes += int64(r.EncodedLen(t.cfg.AppendPropCRC))
		return nil
	})
	i.plan.tooFew(t.topics)
	return first, err
}

// wanted counts a line, and returns its record, nil when it is left out.
func (i *importer) wanted(t *target, l *message.Line) (*message.Record, error) {
	i.plan.Lines++
	why := skip(l)
	if t.batch[l.Topic] {
		why = SkipBatch
	}
	if why != "" {
		i.plan.Skipped[why]++
		return nil, nil
	}
	r, err := l.Message()
	if err != nil {
		return nil, err
	}
	if l.QueueID == nil {
		r.QueueID = 0
	}
	m := maker{now: i.o.Clock.Now().UnixMilli()}
	m.defaults(&r, l)
	// Light queues get their offsets from a broker.
	r.Properties = message.DeleteProperty(message.DeleteProperty(r.Properties, message.PropInnerMultiDispatch), message.PropInnerMultiQueueOffset)
	if err := r.Check(t.cfg.AppendPropCRC); err != nil {
		return nil, err
	}
	i.plan.Records++
	i.plan.count(l)
	return &r, nil
}

// into opens the store and puts the lines into it.
func (i *importer) into(t *target, st *importState) (err error) {
	kept := *i.plan
	*i.plan = ImportPlan{Dir: kept.Dir, Known: kept.Known, Skipped: map[string]int64{}, Topics: map[string]int32{}, NewTopics: kept.NewTopics, MoreQueues: kept.MoreQueues}
	s, err := store.Open(t.cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var runErr error
	wg.Go(func() { runErr = s.Run(ctx) })
	i.plan.From = s.LogEnd()
	err = i.putLines(t, s, st)
	i.plan.To = s.LogEnd()
	i.plan.LogBytes = i.plan.To - i.plan.From
	cancel()
	wg.Wait()
	if err == nil {
		err = i.configure(t)
	}
	if err = errors.Join(err, runErr, s.Close()); err != nil {
		return err
	}
	return i.forget()
}

func (i *importer) putLines(t *target, s *store.Store, st *importState) error {
	r, c, err := i.open("import")
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	b := &putBatch{s: s}
	before := &stored{next: func() (uint64, bool, error) { return 0, false, nil }, stop: func() {}}
	begun := false
	defer func() { before.stop() }()
	err = i.each(r, func(n int64, l *message.Line) error {
		if !begun {
			begun = true
			if before, err = i.begin(s, st, l); err != nil {
				return err
			}
		}
		rec, err := i.wanted(t, l)
		if err != nil || rec == nil {
			return err
		}
		there, err := before.has(hashOfLine(l))
		if err != nil {
			return err
		}
		if there {
			i.plan.Resumed++
			return nil
		}
		return b.add(n, rec, r.waiting())
	})
	return errors.Join(err, b.flush())
}

// begin notes that an import begins, or finds what one of the same lines has stored already.
func (i *importer) begin(s *store.Store, st *importState, first *message.Line) (*stored, error) {
	none := &stored{next: func() (uint64, bool, error) { return 0, false, nil }, stop: func() {}}
	hash := hashOfLine(first)
	if st == nil {
		return none, i.note(importState{Start: s.LogEnd(), First: hash})
	}
	if st.First != hash {
		return none, ErrOtherImport
	}
	if st.Start >= s.LogEnd() {
		return none, nil
	}
	d, err := Open(i.root, Options{FS: i.fs, Clock: i.o.Clock, Owned: true})
	if err != nil {
		return none, err
	}
	return i.storedFrom(d, st.Start, s.LogEnd()), nil
}

// stored are the messages that lie behind a position of the log, one after the other.
type stored struct {
	next func() (hash uint64, ok bool, err error)
	stop func()
	done bool
}

// storedFrom reads them while lines are compared with them. It closes d.
func (i *importer) storedFrom(d *Dir, from, to int64) *stored {
	type item struct {
		hash uint64
		err  error
	}
	next, stop := iter.Pull(func(yield func(item) bool) {
		_, err := d.log.Walk(i.ctx, WalkOptions{From: from, To: to}, func(_ int64, v message.View) error {
			id, _ := v.Property(message.PropUniqKey)
			if !yield(item{hash: lineHash(string(v.Topic()), v.QueueID(), v.Body(), string(id))}) {
				return ErrStop
			}
			return nil
		})
		if err = errors.Join(err, d.Close()); err != nil {
			yield(item{err: err})
		}
	})
	return &stored{stop: stop, next: func() (uint64, bool, error) {
		x, ok := next()
		return x.hash, ok && x.err == nil, x.err
	}}
}

// has reports whether a message was stored already. Those of others that came between are passed over.
func (s *stored) has(hash uint64) (bool, error) {
	for !s.done {
		h, ok, err := s.next()
		if err != nil {
			return false, err
		}
		if !ok {
			s.done = true
		} else if h == hash {
			return true, nil
		}
	}
	return false, nil
}

// putBatch gathers puts.
type putBatch struct {
	s     *store.Store
	puts  []*store.Put
	lines []int64
	bytes int
}

func (b *putBatch) add(line int64, r *message.Record, waiting bool) error {
	b.puts = append(b.puts, &store.Put{Record: *r, Again: true})
	b.lines = append(b.lines, line)
	b.bytes += len(r.Body)
	if len(b.puts) >= appendPuts || b.bytes >= appendBytes || waiting {
		return b.flush()
	}
	return nil
}

// flush stores what was gathered.
func (b *putBatch) flush() error {
	if len(b.puts) == 0 {
		return nil
	}
	var wg sync.WaitGroup
	wg.Add(len(b.puts))
	for _, p := range b.puts {
		p.Done = func(*store.Put) { wg.Done() }
	}
	b.s.PutBatch(b.puts)
	wg.Wait()
	var err error
	for n, p := range b.puts {
		if !p.Status.Stored() {
			err = &LineError{b.lines[n], fmt.Errorf("it was not stored: %s: %w", p.Status, p.Err)}
			break
		}
	}
	b.puts, b.lines, b.bytes = b.puts[:0], b.lines[:0], 0
	return err
}

// configure gives topics.json the topics and queues that it lacks.
func (i *importer) configure(t *target) error {
	i.plan.tooFew(t.topics)
	if len(i.plan.NewTopics)+len(i.plan.MoreQueues) == 0 {
		return nil
	}
	d, err := Open(i.root, Options{FS: i.fs, Clock: i.o.Clock, Owned: true})
	if err != nil {
		return err
	}
	j, err := d.JSON("topics.json")
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	root := fastjson.Object{}
	if c := j.Good(); c != nil {
		tree, err := fastjson.ParseOrdered(c.Data)
		if err != nil {
			return err
		}
		root, _ = tree.(fastjson.Object)
	}
	table, _ := root.Get("topicConfigTable")
	topics, _ := table.(fastjson.Object)
	for _, name := range i.plan.NewTopics {
		topics = append(topics, fastjson.Member{Key: name, Value: topicEntry(name, int64(i.plan.Topics[name]), fastjson.Object{})})
	}
	for n := range topics {
		name := fmt.Sprint(topics[n].Key)
		entry, ok := topics[n].Value.(fastjson.Object)
		if !ok || !slices.Contains(i.plan.MoreQueues, name) {
			continue
		}
		for k := range entry {
			if q, ok := entry[k].Value.(int64); ok && (entry[k].Key == any("readQueueNums") || entry[k].Key == any("writeQueueNums")) {
				entry[k].Value = max(q, int64(i.plan.Topics[name]))
			}
		}
	}
	b, err := fastjson.MarshalPretty(i.nextVersion(root, topics))
	if err != nil {
		return err
	}
	return jsonfile.Save(i.fs, filepath.Join(i.root, nameConfig, "topics.json"), b)
}

// nextVersion is the file with other topics and the next data version.
func (i *importer) nextVersion(root, topics fastjson.Object) fastjson.Object {
	counter := int64(0)
	if v, ok := root.Get("dataVersion"); ok {
		version, _ := v.(fastjson.Object)
		n, _ := version.Get("counter")
		counter, _ = n.(int64)
	}
	return fastjson.Object{
		{Key: "dataVersion", Value: fastjson.Object{
			{Key: "counter", Value: counter + 1}, {Key: "stateVersion", Value: int64(0)}, {Key: "timestamp", Value: i.o.Clock.Now().UnixMilli()},
		}},
		{Key: "topicConfigTable", Value: topics},
	}
}

// topicEntry is a topic of topics.json, readable and writable.
func topicEntry(topic string, queues int64, attributes fastjson.Object) fastjson.Object {
	return fastjson.Object{
		{Key: "attributes", Value: attributes},
		{Key: "order", Value: false},
		{Key: "perm", Value: int64(6)},
		{Key: "readQueueNums", Value: queues},
		{Key: "topicFilterType", Value: "SINGLE_TAG"},
		{Key: "topicName", Value: topic},
		{Key: "topicSysFlag", Value: int64(0)},
		{Key: "writeQueueNums", Value: queues},
	}
}
