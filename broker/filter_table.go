package broker

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"mqx/filter"
	"mqx/internal/fastjson"
	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
	"mqx/remoting"
)

// Limits of the filter table. What a group leaves behind stays for filterDataCleanTimeSpan, so that a client which makes up
// groups could fill the memory.
const (
	maxFilters     = 20_000
	maxFilterBytes = 32 << 20 // of expressions
)

// assumedDeath is how long groups have been gone for a start that finds them alive in the file.
const assumedDeath = 30 * time.Second

// filterTable is the expressions of all groups by topic: those in force, and for a while those of groups that are gone,
// since the bit maps of stored messages were computed with them. Safe to share.
type filterTable struct {
	fsys  vfs.FS
	path  string
	bloom filter.Bloom
	now   func() time.Time
	log   *slog.Logger
	// keep is how long the data of a group that is gone stays.
	keep func() time.Duration

	loading sync.Once
	loadErr error
	saving  sync.Mutex

	mu struct {
		sync.RWMutex
		topics  map[string]map[string]*filterData // topic -> group
		groups  map[string]int                    // how many topics each group has
		count   int                               // of all
		bytes   int                               // of all expressions
		changes int64                             // grows with each
		written int64                             // changes that the file holds
	}
}

func newFilterTable(fsys vfs.FS, path string, bloom filter.Bloom, keep func() time.Duration, now func() time.Time, log *slog.Logger) *filterTable {
	t := &filterTable{fsys: fsys, path: path, bloom: bloom, keep: keep, now: now, log: log}
	t.mu.topics = map[string]map[string]*filterData{}
	t.mu.groups = map[string]int{}
	return t
}

// Load reads consumerFilter.json once; later calls return what the first found. The store asks for bit maps while it
// recovers, which is before the other tables are loaded.
func (t *filterTable) Load() error {
	t.loading.Do(func() { t.loadErr = t.load() })
	return t.loadErr
}

func (t *filterTable) load() error {
	var read filterFile
	src, err := jsonfile.Load(t.fsys, t.path, func(b []byte) error {
		read = filterFile{}
		return fastjson.Unmarshal(b, &read)
	})
	if err != nil {
		return err
	}
	if src == jsonfile.Backup {
		t.log.Warn("consumer filters were loaded from the backup", "file", t.path)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.fits(&read) {
		t.log.Warn("the bloom filter has another shape than before; the filters of the last run are forgotten", "file", t.path)
		t.mu.changes++
		return nil
	}
	for topic, groups := range read.FilterDataByTopic {
		if groups == nil {
			continue
		}
		for group, s := range groups.GroupFilterData {
			if s != nil {
				t.restore(topic, group, s)
			}
		}
	}
	return nil
}

// fits reports whether all filters of a file have this broker's bloom filter. When one has not, bit maps were computed with
// another, and none can be used: Apache forgets them all, too.
func (t *filterTable) fits(f *filterFile) bool {
	for _, groups := range f.FilterDataByTopic {
		if groups == nil {
			continue
		}
		for _, s := range groups.GroupFilterData {
			if s != nil && (s.BloomFilterData == nil || !t.bloom.Valid(s.BloomFilterData.BitNum, s.BloomFilterData.BitPos)) {
				return false
			}
		}
	}
	return true
}

// restore takes one filter of the file; its group is gone until it says otherwise. Needs mu.
func (t *filterTable) restore(topic, group string, s *storedFilter) {
	d, err := newFilterData(topic, group, s.Expression, s.ExpressionType)
	if err != nil {
		t.log.Warn("a stored filter cannot be compiled", "file", t.path, "topic", topic, "group", group, "error", err)
		d = &filterData{topic: topic, group: group, expression: s.Expression, typ: s.ExpressionType}
	}
	d.version, d.born, d.died = s.ClientVersion, s.BornTime, s.DeadTime
	d.bits, d.bitNum, d.bloomFits = s.BloomFilterData.BitPos, s.BloomFilterData.BitNum, true
	if d.died == 0 {
		d.died = max(d.born, t.now().Add(-assumedDeath).UnixMilli())
	}
	t.put(d)
}

// put enters d in place of what was there. Needs mu.
func (t *filterTable) put(d *filterData) {
	groups := t.mu.topics[d.topic]
	if groups == nil {
		groups = map[string]*filterData{}
		t.mu.topics[d.topic] = groups
	}
	if old := groups[d.group]; old != nil {
		t.mu.bytes -= len(old.expression)
	} else {
		t.mu.groups[d.group]++
		t.mu.count++
	}
	groups[d.group] = d
	t.mu.bytes += len(d.expression)
}

// drop removes d. Needs mu.
func (t *filterTable) drop(d *filterData) {
	groups := t.mu.topics[d.topic]
	delete(groups, d.group)
	if len(groups) == 0 {
		delete(t.mu.topics, d.topic)
	}
	if t.mu.groups[d.group]--; t.mu.groups[d.group] <= 0 {
		delete(t.mu.groups, d.group)
	}
	t.mu.count--
	t.mu.bytes -= len(d.expression)
}

// Get returns a group's filter of a topic, nil when there is none.
func (t *filterTable) Get(topic, group []byte) *filterData {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.mu.topics[string(topic)][string(group)]
}

// Has reports whether anything is known of a group.
func (t *filterTable) Has(group string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.mu.groups[group] > 0
}

// Follow makes the filters of a group those of its subscriptions, which subs returns (none when the group is not online).
// subs is called under the table's lock, so that the last call sees the newest.
func (t *filterTable) Follow(group string, subs func() map[string]remoting.SubscriptionData) {
	t.mu.Lock()
	defer t.mu.Unlock()
	wanted := subs()
	now := t.now().UnixMilli()
	for topic := range wanted {
		if s := wanted[topic]; !isTagType(s.ExpressionType) && s.SubString != "" {
			t.follow(group, topic, &s, now)
		}
	}
	if t.mu.groups[group] == 0 {
		return
	}
	for topic, groups := range t.mu.topics {
		d := groups[group]
		if _, ok := wanted[topic]; d == nil || ok || d.dead() {
			continue
		}
		gone := *d
		gone.died = max(now, d.born)
		t.put(&gone)
		t.mu.changes++
	}
}

// follow takes one subscription. An expression that cannot be compiled leaves no filter: the group's pulls are told.
// Needs mu.
func (t *filterTable) follow(group, topic string, s *remoting.SubscriptionData, now int64) {
	old := t.mu.topics[topic][group]
	if old != nil && old.expression == s.SubString && old.typ == s.ExpressionType && old.bloomFits {
		if old.version == s.SubVersion && !old.dead() {
			return
		}
		again := *old
		again.version, again.died = s.SubVersion, 0
		t.put(&again)
		t.mu.changes++
		return
	}
	d, err := newFilterData(topic, group, s.SubString, s.ExpressionType)
	if err == nil && (t.mu.count >= maxFilters || t.mu.bytes+len(s.SubString) > maxFilterBytes) {
		err = errTooManyFilters
	}
	if err != nil {
		t.log.Warn("a subscription's expression is not taken", "topic", topic, "group", group, "expression", s.SubString, "error", err)
		if old != nil {
			t.drop(old)
			t.mu.changes++
		}
		return
	}
	d.version, d.born = s.SubVersion, now
	d.bits, d.bitNum, d.bloomFits = t.bloom.Positions(group, topic), t.bloom.Bits(), true
	t.put(d)
	t.mu.changes++
	t.log.Info("a group filters by an expression", "topic", topic, "group", group, "expression", s.SubString)
}

var errTooManyFilters = errors.New("the broker keeps too many expressions")

// AppendBitMap appends the bit map of a message: the bits of the groups whose expression it fulfils. It appends nothing
// when no group filters the topic.
func (t *filterTable) AppendBitMap(dst, topic, props []byte) []byte {
	if t.Load() != nil {
		return dst // the start fails with it
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	groups := t.mu.topics[string(topic)]
	if len(groups) == 0 {
		return dst
	}
	n := len(dst)
	dst = append(dst, make([]byte, t.bloom.Bits()/8)...)
	for _, d := range groups {
		if d.compiled != nil && d.bloomFits && d.compiled.MatchProperties(props) {
			filter.Set(dst[n:], d.bits)
		}
	}
	return dst
}

// Save writes consumerFilter.json when something has changed, and forgets groups that have been gone for long.
func (t *filterTable) Save() error {
	t.saving.Lock()
	defer t.saving.Unlock()
	t.clean()
	t.mu.RLock()
	changes, written := t.mu.changes, t.mu.written
	file := t.file()
	t.mu.RUnlock()
	if changes == written {
		return nil
	}
	data, err := fastjson.MarshalPretty(file)
	if err == nil {
		err = jsonfile.Save(t.fsys, t.path, data)
	}
	if err != nil {
		t.log.Error("consumer filters could not be saved", "file", t.path, "error", err)
		return err
	}
	t.mu.Lock()
	t.mu.written = changes
	t.mu.Unlock()
	return nil
}

// file is the table as it is stored. Needs mu.
func (t *filterTable) file() filterFile {
	f := filterFile{FilterDataByTopic: map[string]*topicFilters{}}
	if t.mu.changes == t.mu.written {
		return f
	}
	for topic, groups := range t.mu.topics {
		tf := &topicFilters{GroupFilterData: map[string]*storedFilter{}, Topic: topic}
		for group, d := range groups {
			tf.GroupFilterData[group] = d.stored()
		}
		f.FilterDataByTopic[topic] = tf
	}
	return f
}

// clean forgets what has been dead for as long as keep says.
func (t *filterTable) clean() {
	keep, now := t.keep(), t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	var old []*filterData
	for _, groups := range t.mu.topics {
		for _, d := range groups {
			if d.dead() && d.deadSince(now) >= keep {
				old = append(old, d)
			}
		}
	}
	for _, d := range old {
		t.drop(d)
		t.mu.changes++
	}
}
