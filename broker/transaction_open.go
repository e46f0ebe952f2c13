package broker

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"mqx/internal/fastjson"
	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
)

// openTransactions counts the transactions of each topic that have not ended, in
// the file transactionMetrics. The file is for others to look at: at a start the
// counts are taken from the half topic.
type openTransactions struct {
	fsys vfs.FS
	file string
	now  func() time.Time
	mu   struct {
		sync.Mutex
		version remoting.DataVersion
		counts  map[string]openCount
		since   time.Time // of the oldest change that is not in the file; zero for none
	}
}

// openCount is one topic's.
type openCount struct {
	Count     int64 `json:"count"`
	TimeStamp int64 `json:"timeStamp"` // ms, of the last change
}

// openTransactionsFile is the form of the file, which is Apache's.
type openTransactionsFile struct {
	DataVersion      remoting.DataVersion `json:"dataVersion"`
	TransactionCount map[string]openCount `json:"transactionCount"`
}

func newOpenTransactions(fsys vfs.FS, file string, now func() time.Time) *openTransactions {
	o := &openTransactions{fsys: fsys, file: file, now: now}
	o.mu.counts = map[string]openCount{}
	o.mu.version = remoting.NewDataVersion(now())
	return o
}

// load takes the version of the file and the counts that the half topic gives. A
// file that cannot be read is no reason not to start: it holds nothing else.
func (o *openTransactions) load(counts map[string]int64) error {
	var read openTransactionsFile
	src, err := jsonfile.Load(o.fsys, o.file, func(b []byte) error {
		read = openTransactionsFile{}
		return fastjson.Unmarshal(b, &read)
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	if src != jsonfile.None && err == nil {
		o.mu.version = read.DataVersion
	}
	now := o.now()
	for topic, was := range read.TransactionCount {
		if was.Count != counts[topic] {
			o.set(topic, counts[topic], now)
		} else if was.Count != 0 {
			o.mu.counts[topic] = was
		}
	}
	for topic, n := range counts {
		if _, ok := read.TransactionCount[topic]; !ok {
			o.set(topic, n, now)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot read the counts of open transactions: %w", err)
	}
	return nil
}

// add counts a transaction that has begun (1) or ended (-1). It reports whether
// that is the first change since the file was written.
func (o *openTransactions) add(topic []byte, n int64) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first = o.mu.since.IsZero()
	o.set(string(topic), max(0, o.mu.counts[string(topic)].Count+n), o.now())
	return first
}

// set needs mu.
func (o *openTransactions) set(topic string, n int64, now time.Time) {
	o.mu.counts[topic] = openCount{Count: n, TimeStamp: now.UnixMilli()}
	o.mu.version = o.mu.version.NextVersion(now)
	if o.mu.since.IsZero() {
		o.mu.since = now
	}
}

// count is the number of open transactions of a topic.
func (o *openTransactions) count(topic string) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.counts[topic].Count
}

// all are the open transactions by topic, but for topics that have none.
func (o *openTransactions) all() map[string]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make(map[string]int64, len(o.mu.counts))
	for topic, c := range o.mu.counts {
		if c.Count != 0 {
			out[topic] = c.Count
		}
	}
	return out
}

// due is when the file is to be written; ok is false when nothing has changed.
func (o *openTransactions) due(every time.Duration) (at time.Time, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.since.Add(every), !o.mu.since.IsZero()
}

// save writes the file when something has changed. exists tells the topics whose
// entries stay when nothing of them is open.
func (o *openTransactions) save(exists func(topic string) bool) error {
	o.mu.Lock()
	since := o.mu.since
	o.mu.since = time.Time{}
	maps.DeleteFunc(o.mu.counts, func(topic string, c openCount) bool { return c.Count == 0 && !exists(topic) })
	f := openTransactionsFile{DataVersion: o.mu.version, TransactionCount: maps.Clone(o.mu.counts)}
	o.mu.Unlock()
	if since.IsZero() {
		return nil
	}
	b, err := fastjson.MarshalStandard(f)
	if err == nil {
		err = jsonfile.Save(o.fsys, o.file, b)
	}
	if err != nil {
		o.mu.Lock()
		o.mu.since = o.now() // again after the interval
		o.mu.Unlock()
		return fmt.Errorf("cannot save the counts of open transactions: %w", err)
	}
	return nil
}

// begun counts a half message that was stored.
func (t *transactions) begun(props []byte) {
	if topic, ok := message.Property(props, message.PropRealTopic); ok {
		t.countOpen(topic, 1)
	}
}

func (t *transactions) countOpen(topic []byte, n int64) {
	if !t.open.add(topic, n) {
		return
	}
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// saveOpen writes the file of open transactions.
func (t *transactions) saveOpen() {
	if err := t.open.save(func(topic string) bool { return t.b.topics.Get(topic) != nil }); err != nil {
		t.b.quiet.Warn("the file of open transactions is not up to date", "error", err)
	}
}
