package broker

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mqx/broker/stats"
	"mqx/internal/fastjson"
	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
)

// maxTopics bounds the topics of a broker: beyond it none is created.
const maxTopics = 200_000

// topic is one topic as it stands. It is replaced, never changed, apart from
// saved.
type topic struct {
	remoting.TopicConfig
	name           []byte
	saved          atomic.Bool // topics.json on disk holds it
	puts, putBytes *stats.Counter
	in             *topicMeter       // what came, by kind; nil where it is not told apart
	forward        *remoting.Forward // where sends to sealed queues go; nil for none
}

// topicTable is all topics of the broker. Safe to share.
type topicTable struct {
	rules systemTopicRules
	light bool // light queues are served
	fsys  vfs.FS
	path  string
	now   func() time.Time
	stats *stats.Set
	log   *slog.Logger
	saver *saver
	// onChange is told the names that came, changed or went, under the table's
	// lock: it must not block nor ask the table.
	onChange   func(names []string)
	fromBackup bool // Load has taken the backup, which may lack the newest topics
	// editing is held from the look at a topic to the Put of what became of it.
	editing sync.Mutex

	mu struct {
		sync.RWMutex
		topics  map[string]*topic
		version remoting.DataVersion
	}
}

func newTopicTable(rules systemTopicRules, fsys vfs.FS, path string, now func() time.Time, st *stats.Set, log *slog.Logger) *topicTable {
	t := &topicTable{rules: rules, fsys: fsys, path: path, now: now, stats: st, log: log, onChange: func([]string) {}}
	t.saver = newSaver(t.write)
	t.mu.topics = map[string]*topic{}
	t.mu.version = remoting.NewDataVersion(now())
	return t
}

// Load reads topics.json (or its backup) over the system topics. It writes
// nothing when the file already held them.
func (t *topicTable) Load() error {
	for _, c := range systemTopics(t.rules) {
		t.mu.topics[c.TopicName] = t.newTopic(c)
	}
	var read remoting.TopicConfigTable
	src, err := jsonfile.Load(t.fsys, t.path, func(b []byte) error {
		read = remoting.TopicConfigTable{}
		return fastjson.Unmarshal(b, &read)
	})
	if err != nil {
		return err
	}
	if t.fromBackup = src == jsonfile.Backup; t.fromBackup {
		t.log.Warn("topics were loaded from the backup", "file", t.path)
	}
	for name, c := range read.TopicConfigTable {
		if name == "TBW102" && !t.rules.AutoCreate {
			continue // the template goes when topics are not created by sends
		}
		if c.Attributes == nil {
			c.Attributes = map[string]string{}
		}
		c.TopicName = name
		for _, n := range []*int32{&c.ReadQueueNums, &c.WriteQueueNums} {
			if *n < 0 || *n > maxQueues {
				t.log.Warn("a topic has an impossible number of queues", "file", t.path, "topic", name, "queues", *n)
				*n = min(max(0, *n), maxQueues)
			}
		}
		nt := t.newTopic(c)
		nt.saved.Store(true)
		t.mu.topics[name] = nt
	}
	if src != jsonfile.None {
		t.mu.version = read.DataVersion
	}
	if !t.allSaved() {
		if err := t.saver.Save(); err != nil {
			return err
		}
	}
	return nil
}

// Adopt brings topics back that have messages but are in no table: the file
// that held them was lost. queues are the numbers of queues found. It is
// called before anything is served.
func (t *topicTable) Adopt(queues map[string]int32) error {
	found := false
	for name, n := range queues {
		if t.mu.topics[name] != nil || message.ValidateTopic(name) != nil {
			continue
		}
		found = true
		t.log.Warn("a topic that the backup lacks has messages and is served again", "topic", name, "queues", n)
		t.mu.topics[name] = t.newTopic(groupTopic(name, min(n, maxQueues), 0))
		t.mu.version = t.mu.version.NextVersion(t.now())
	}
	if !found {
		return nil
	}
	return t.saver.Save()
}

func (t *topicTable) allSaved() bool {
	for _, tp := range t.mu.topics {
		if !tp.saved.Load() {
			return false
		}
	}
	return true
}

func (t *topicTable) newTopic(c remoting.TopicConfig) *topic {
	forward, err := forwardOf(&c)
	if err != nil { // changes are checked: it comes from a file, or from a master
		t.log.Error("a topic that is marked as sealed takes messages", "topic", c.TopicName, "attribute", remoting.AttrForward, "error", err)
	}
	return &topic{
		TopicConfig: c,
		name:        []byte(c.TopicName),
		puts:        t.stats.Counter(stats.TopicPutNums, c.TopicName),
		putBytes:    t.stats.Counter(stats.TopicPutSize, c.TopicName),
		in:          &topicMeter{},
		forward:     forward,
	}
}

// Get returns a topic, nil when there is none.
func (t *topicTable) Get(name string) *topic {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if tp := t.mu.topics[name]; tp != nil || !t.light || !isLight(name) {
		return tp
	}
	return t.lightTopic(name)
}

// GetBytes is Get without a conversion.
func (t *topicTable) GetBytes(name []byte) *topic {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if tp := t.mu.topics[string(name)]; tp != nil || !t.light || !isLight(string(name)) {
		return tp
	}
	return t.lightTopic(string(name))
}

// Len is the number of topics.
func (t *topicTable) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.mu.topics)
}

// All returns the configurations, by name, and the version they have.
func (t *topicTable) All() ([]remoting.TopicConfig, remoting.DataVersion) {
	t.mu.RLock()
	out := make([]remoting.TopicConfig, 0, len(t.mu.topics))
	for _, tp := range t.mu.topics {
		out = append(out, tp.TopicConfig)
	}
	v := t.mu.version
	t.mu.RUnlock()
	slices.SortFunc(out, func(a, b remoting.TopicConfig) int {
		if a.TopicName < b.TopicName {
			return -1
		}
		return 1
	})
	return out, v
}

// watch sets onChange.
func (t *topicTable) watch(f func(names []string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.onChange = f
}

// Pick returns the topics that take names, and the table's version, as one
// picture: no change falls between the two. take runs under the table's lock.
func (t *topicTable) Pick(take func() []string) (map[string]remoting.TopicConfig, remoting.DataVersion) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := map[string]remoting.TopicConfig{}
	names := take()
	if names == nil { // all
		for name, tp := range t.mu.topics {
			out[name] = tp.TopicConfig
		}
		return out, t.mu.version
	}
	for _, name := range names {
		if tp := t.mu.topics[name]; tp != nil {
			out[name] = tp.TopicConfig
		}
	}
	return out, t.mu.version
}

// SetOrder marks the named topics as ordered, as the name servers' ORDER_TOPIC_CONFIG says. As in Apache none loses the mark
// by it: a topic may be ordered without being named there.
func (t *topicTable) SetOrder(ordered map[string]bool) {
	t.mu.Lock()
	var changed []string
	for name := range ordered {
		old := t.mu.topics[name]
		if old == nil || old.Order {
			continue
		}
		c := old.TopicConfig
		c.Order = true
		t.replace(c)
		changed = append(changed, name)
	}
	if len(changed) > 0 {
		t.onChange(changed)
	}
	t.mu.Unlock()
	if len(changed) > 0 {
		t.saver.Then(func(err error) {
			if err != nil {
				t.log.Error("the order of topics could not be saved", "error", err)
			}
		})
	}
}

// replace puts a topic in the place of the one of its name. Needs mu.
func (t *topicTable) replace(c remoting.TopicConfig) {
	old := t.mu.topics[c.TopicName]
	nt := t.newTopic(c)
	if old != nil {
		nt.saved.Store(old.saved.Load())
		nt.in = old.in
	}
	t.mu.topics[c.TopicName] = nt
	t.mu.version = t.mu.version.NextVersion(t.now())
}

// Version is the data version of the table.
func (t *topicTable) Version() remoting.DataVersion {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.mu.version
}

// Put creates or changes topics. Those that stand already as given are left;
// changed are the others. done is called once, when the table on disk holds
// them all or the write failed. With nothing changed done is called at once.
func (t *topicTable) Put(configs []remoting.TopicConfig, done func(error)) (changed []string) {
	t.mu.Lock()
	for _, c := range configs {
		old := t.mu.topics[c.TopicName]
		if old != nil && sameTopic(old.TopicConfig, c) {
			continue
		}
		t.replace(c)
		changed = append(changed, c.TopicName)
	}
	if len(changed) > 0 {
		t.onChange(changed)
	}
	t.mu.Unlock()
	if len(changed) == 0 {
		done(nil)
		return nil
	}
	t.saver.Then(done)
	return changed
}

// Set is Put for one topic that is announced also where it stands already as given: what belongs to it has changed.
func (t *topicTable) Set(c remoting.TopicConfig, done func(error)) {
	t.mu.Lock()
	t.replace(c)
	t.onChange([]string{c.TopicName})
	t.mu.Unlock()
	t.saver.Then(done)
}

// Renew makes the version another one although no topic changed: name servers take what a
// broker registers only then, and what is registered also depends on brokerPermission.
func (t *topicTable) Renew() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.version = t.mu.version.NextVersion(t.now())
}

// PutIfAbsent is Put for one topic that a send creates: an existing one wins.
func (t *topicTable) PutIfAbsent(c remoting.TopicConfig) (*topic, error) {
	t.mu.Lock()
	if old := t.mu.topics[c.TopicName]; old != nil {
		t.mu.Unlock()
		return old, nil
	}
	if len(t.mu.topics) >= maxTopics {
		t.mu.Unlock()
		return nil, fmt.Errorf("the broker has %d topics, which is the limit", maxTopics)
	}
	nt := t.newTopic(c)
	t.mu.topics[c.TopicName] = nt
	t.mu.version = t.mu.version.NextVersion(t.now())
	t.onChange([]string{c.TopicName})
	t.mu.Unlock()
	t.log.Info("topic created", "topic", c.TopicName, "queues", c.WriteQueueNums, "perm", c.Perm)
	t.saver.Then(func(err error) {
		if err != nil {
			t.log.Error("a created topic could not be saved", "topic", c.TopicName, "error", err)
		}
	})
	return nt, nil
}

// Delete removes topics and reports which existed. done as in Put.
func (t *topicTable) Delete(names []string, done func(error)) (gone []string) {
	t.mu.Lock()
	for _, n := range names {
		if t.mu.topics[n] != nil {
			delete(t.mu.topics, n)
			t.mu.version = t.mu.version.NextVersion(t.now())
			gone = append(gone, n)
		}
	}
	if len(gone) > 0 {
		t.onChange(gone)
	}
	t.mu.Unlock()
	if len(gone) == 0 {
		done(nil)
		return nil
	}
	t.stats.Remove(func(name, key string) bool {
		return (name == stats.TopicPutNums || name == stats.TopicPutSize) && slices.Contains(gone, key)
	})
	t.saver.Then(done)
	return gone
}

// write saves the whole table once.
func (t *topicTable) write() error {
	t.mu.RLock()
	table := remoting.TopicConfigTable{DataVersion: t.mu.version, TopicConfigTable: make(map[string]remoting.TopicConfig, len(t.mu.topics))}
	held := make([]*topic, 0, len(t.mu.topics))
	for name, tp := range t.mu.topics {
		table.TopicConfigTable[name] = tp.TopicConfig
		held = append(held, tp)
	}
	t.mu.RUnlock()
	b, err := fastjson.MarshalPretty(table)
	if err != nil {
		return err
	}
	if err := jsonfile.Save(t.fsys, t.path, b); err != nil {
		t.log.Error("topics could not be saved", "file", t.path, "error", err)
		return err
	}
	for _, tp := range held {
		tp.saved.Store(true)
	}
	return nil
}

func sameTopic(a, b remoting.TopicConfig) bool {
	return a.TopicName == b.TopicName && a.Perm == b.Perm && a.ReadQueueNums == b.ReadQueueNums &&
		a.WriteQueueNums == b.WriteQueueNums && a.Order == b.Order && a.TopicFilterType == b.TopicFilterType &&
		a.TopicSysFlag == b.TopicSysFlag && maps.Equal(a.Attributes, b.Attributes)
}
