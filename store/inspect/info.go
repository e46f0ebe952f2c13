package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"mqx/internal/sorted"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store"
)

// Info is what a store directory says of itself, found without reading all of it.
type Info struct {
	Kinds      []Kind
	InUse      InUse
	Checkpoint store.Checkpoint
	// HasCheckpoint is false when there is none, or one that is too short.
	HasCheckpoint bool

	LogMin, LogEnd int64 // LogEnd is behind the last record; LogMin when there is none
	Tail           EndReason
	First, Last    *Place // the first and last record of the log, nil when there is none
	LogFiles       []File
	LogFileSize    int64
	Holes          []Hole

	Topics []TopicInfo
	Index  []*IndexFile
	Parts  []PartInfo

	// Settings are what the files tell of broker.conf, by its keys; what they do not tell is not there.
	Settings map[string]string
	// Writer says who wrote the directory last, as far as it shows.
	Writer string
	// Broker is the address in the last record.
	Broker, Cluster string

	Volume      vfs.Usage
	VolumeKnown bool
}

// Place is a record's place and time.
type Place struct {
	Phys  int64
	Time  int64 // store time, ms
	Topic string
}

// Hole is a range of the log without a file.
type Hole struct{ From, To int64 }

// TopicInfo is a topic that has queues, or a configuration, or both.
type TopicInfo struct {
	Topic      string
	Queues     int
	Batch      bool
	Messages   int64 // from minimum to maximum of its queues
	Min, Max   int64 // physical offsets of its oldest and newest record, -1 when there is none
	Configured bool  // is in topics.json
}

// PartInfo is the disk use of a part of the directory.
type PartInfo struct {
	Name  string
	Files int
	Bytes int64 // length of the files; they may be sparse
}

// Info reads what is needed: heads of files, the ends of queues, the newest part of the log, and the small files.
func (d *Dir) Info(ctx context.Context) (*Info, error) {
	i := &Info{Kinds: d.kinds, InUse: d.in, LogFiles: d.log.files, LogFileSize: d.log.FileSize(), LogMin: d.log.Min(), Settings: map[string]string{}}
	var err error
	if i.Checkpoint, i.HasCheckpoint, err = d.Checkpoint(); err != nil {
		return nil, fmt.Errorf("cannot read checkpoint: %w", err)
	}
	hint, err := d.infoTopics(ctx, i)
	if err != nil {
		return nil, err
	}
	if err := d.infoLog(ctx, i, hint); err != nil {
		return nil, err
	}
	if i.Index, err = d.Index(); err != nil {
		return nil, err
	}
	if err := d.infoParts(i); err != nil {
		return nil, err
	}
	d.infoSettings(i)
	if u, err := d.fs.Usage(d.log.dirs[0]); err == nil {
		i.Volume, i.VolumeKnown = u, true
	} else if u, err := d.fs.Usage(d.root); err == nil {
		i.Volume, i.VolumeKnown = u, true
	}
	return i, nil
}

// infoTopics looks at the ends of all queues; hint is behind the newest record that one knows.
func (d *Dir) infoTopics(ctx context.Context, i *Info) (hint int64, err error) {
	keys, err := d.Queues()
	if err != nil {
		return 0, err
	}
	topics := map[string]*TopicInfo{}
	of := func(name string) *TopicInfo {
		t := topics[name]
		if t == nil {
			t = &TopicInfo{Topic: name, Min: -1, Max: -1}
			topics[name] = t
		}
		return t
	}
	for _, k := range keys {
		q, err := d.Queue(k)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			return 0, err
		}
		e, err := q.Ends(ctx)
		if err != nil {
			return 0, err
		}
		t := of(k.Topic)
		t.Queues++
		t.Batch = t.Batch || k.Batch
		t.Messages += e.Max - e.Min
		t.Max = max(t.Max, e.LastPhys)
		if e.FirstPhys >= 0 && (t.Min < 0 || e.FirstPhys < t.Min) {
			t.Min = e.FirstPhys
		}
		hint = max(hint, e.LastEnd)
		if size := q.FileSize(); size > 0 {
			key := "mappedFileSizeConsumeQueue"
			if k.Batch {
				key = "mapperFileSizeBatchConsumeQueue"
			}
			i.Settings[key] = fmt.Sprint(size)
		}
		if size := commonSize(q.ext); size > 0 {
			i.Settings["mappedFileSizeConsumeQueueExt"] = fmt.Sprint(size)
		}
	}
	configs, err := d.Topics()
	if err != nil {
		return 0, err
	}
	for name := range configs {
		of(name).Configured = true
	}
	for _, t := range topics {
		i.Topics = append(i.Topics, *t)
	}
	sorted.By(i.Topics, func(a, b TopicInfo) int { return cmp.Compare(a.Topic, b.Topic) })
	return hint, nil
}

func (d *Dir) infoLog(ctx context.Context, i *Info, hint int64) error {
	first, ok, err := d.log.First()
	if err != nil {
		return err
	}
	if ok {
		i.First = placeOf(first)
	}
	tail, err := d.log.Tail(ctx, hint)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	i.Tail, i.LogEnd = tail.Reason, max(tail.Offset, i.LogMin)
	if tail.LastEnd >= 0 {
		i.LogEnd = tail.LastEnd
	}
	if tail.Record != nil {
		i.Last = placeOf(tail.Record)
		i.Broker = tail.Record.StoreHost().String()
		if c, ok := tail.Record.Property(message.PropCluster); ok {
			i.Cluster = string(c)
		}
		i.Settings["enabledAppendPropCRC"] = fmt.Sprint(message.HasPropCRC(tail.Record))
	}
	for n := 1; n < len(d.log.files); n++ {
		if a, b := d.log.files[n-1], d.log.files[n]; a.End() < b.Start {
			i.Holes = append(i.Holes, Hole{a.End(), b.Start})
		}
	}
	if i.LogFileSize > 0 {
		i.Settings["mappedFileSizeCommitLog"] = fmt.Sprint(i.LogFileSize)
	}
	return nil
}

func placeOf(v message.View) *Place {
	return &Place{Phys: v.PhysicalOffset(), Time: v.StoreTimestamp(), Topic: string(v.Topic())}
}

func (d *Dir) infoParts(i *Info) error {
	log := PartInfo{Name: nameCommitLog, Files: len(i.LogFiles)}
	for _, f := range i.LogFiles {
		log.Bytes += f.whole()
	}
	i.Parts = append(i.Parts, log)
	for _, k := range d.kinds {
		if k.Name == KindDLedger && k.Files > 0 {
			i.Parts = append(i.Parts, PartInfo{k.Path, k.Files, k.Bytes})
		}
	}
	for _, name := range []string{nameQueues, nameBatchQueues, nameExtUnits, nameIndex, nameConfig, nameTimerLog, "mqx", "compaction", "consumequeue_rocksdb", "rocksdbstore", "kvStore"} {
		files, bytes, err := d.weigh(d.Path(name))
		if err != nil {
			return err
		}
		if files > 0 {
			i.Parts = append(i.Parts, PartInfo{name, files, bytes})
		}
	}
	return nil
}

func (d *Dir) infoSettings(i *Info) {
	for _, x := range i.Index {
		if x.Err == nil {
			i.Settings["maxHashSlotNum"], i.Settings["maxIndexNum"] = fmt.Sprint(x.Slots), fmt.Sprint(x.Entries)
		}
	}
	if files, _, _, err := d.list(d.Path(nameTimerLog)); err == nil && len(files) > 0 {
		i.Settings["mappedFileSizeTimerLog"] = fmt.Sprint(commonSize(files))
	}
	if d.Has(KindBatchQueues) {
		i.Settings["queue.type"] = "BatchCQ of some topics"
	}
	if d.Has(KindExtUnits) {
		i.Settings["enableConsumeQueueExt"] = "true"
	}
	i.Writer = d.writer()
}

// writer guesses who wrote the directory from what only some versions leave.
func (d *Dir) writer() string {
	there := func(name string) bool { _, err := d.fs.Stat(d.Path(name)); return err == nil }
	switch {
	case d.Has(KindMQX) && there("rocksdbstore"):
		return "mqx, and Apache RocketMQ 5.4 or later"
	case d.Has(KindMQX):
		return "mqx"
	case there("rocksdbstore"):
		return "Apache RocketMQ 5.4 or later"
	case there(nameTimerWheel):
		return "Apache RocketMQ 5.0 to 5.3"
	default:
		return "Apache RocketMQ 4, or a copy"
	}
}

// NextExpiry tells which log file the retention deletes next: the oldest one, unless it is the newest, when it was
// changed reserved ago. ok is false when none will go.
func (i *Info) NextExpiry(reserved time.Duration) (f File, due time.Time, ok bool) {
	if len(i.LogFiles) < 2 {
		return File{}, time.Time{}, false
	}
	f = i.LogFiles[0]
	return f, f.ModTime.Add(reserved), true
}
