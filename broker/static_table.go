package broker

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mqx/broker/staticmap"
	"mqx/internal/fastjson"
	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
	"mqx/remoting"
)

// staticTable is the mappings of the static topics that this broker knows, in topicQueueMapping.json. A mapping is on disk
// before it is in force, and before the topic that it belongs to; one without a topic counts for nothing. Safe to share; a
// broker without static topics pays one look at a pointer per request.
type staticTable struct {
	fsys vfs.FS
	path string
	name func() string // of the broker
	now  func() time.Time
	log  *slog.Logger

	table atomic.Pointer[map[string]*staticmap.Mapping] // nil: there are none
	mu    struct {
		sync.Mutex // held over a change and its write
		version    remoting.DataVersion
	}
}

func newStaticTable(fsys vfs.FS, path string, name func() string, now func() time.Time, log *slog.Logger) *staticTable {
	t := &staticTable{fsys: fsys, path: path, name: name, now: now, log: log}
	t.mu.version = remoting.NewDataVersion(now())
	return t
}

// of is the mapping of a topic, nil for an ordinary one.
func (t *staticTable) of(topic []byte) *staticmap.Mapping { return t.all()[string(topic)] }

// Get is of for a name.
func (t *staticTable) Get(topic string) *staticmap.Mapping { return t.all()[topic] }

// all is the table as it is, which nobody may change.
func (t *staticTable) all() map[string]*staticmap.Mapping {
	if table := t.table.Load(); table != nil {
		return *table
	}
	return nil
}

// Version is the data version of the table.
func (t *staticTable) Version() remoting.DataVersion {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.version
}

// Details are the mappings of the topics named, as they are sent to slaves.
func (t *staticTable) Details(topics map[string]remoting.TopicConfig) map[string]remoting.TopicQueueMappingDetail {
	out := map[string]remoting.TopicQueueMappingDetail{}
	for topic, m := range t.all() {
		if _, ok := topics[topic]; ok {
			out[topic] = *m.Detail()
		}
	}
	return out
}

// Infos is what name servers are told of the topics named.
func (t *staticTable) Infos(topics map[string]remoting.TopicConfig) map[string]remoting.TopicQueueMappingInfo {
	out := map[string]remoting.TopicQueueMappingInfo{}
	for topic, m := range t.all() {
		if _, ok := topics[topic]; ok {
			out[topic] = m.Info()
		}
	}
	return out
}

// staticFile is topicQueueMapping.json.
type staticFile struct {
	DataVersion remoting.DataVersion                        `json:"dataVersion"`
	Map         map[string]remoting.TopicQueueMappingDetail `json:"topicQueueMappingInfoMap"`
}

// Load reads topicQueueMapping.json or its backup. Mappings of topics that are not there, of which keep tells, are left out:
// their topic was not made, or was deleted.
func (t *staticTable) Load(keep func(topic string) bool) error {
	var read staticFile
	src, err := jsonfile.Load(t.fsys, t.path, func(b []byte) error {
		read = staticFile{}
		if err := fastjson.Unmarshal(b, &read); err != nil {
			return err
		}
		for topic, d := range read.Map {
			if err := staticmap.Check(&d); err != nil {
				return fmt.Errorf("topic %q: %w", topic, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if src == jsonfile.None {
		return nil
	}
	if src == jsonfile.Backup {
		t.log.Warn("mappings of static topics were loaded from the backup", "file", t.path)
	}
	t.mu.version = read.DataVersion
	table := map[string]*staticmap.Mapping{}
	for topic, d := range read.Map {
		if !keep(topic) {
			t.log.Warn("a mapping of a static topic that is not there is left out", "file", t.path, "topic", topic)
			continue
		}
		if name := t.name(); d.BName != name {
			t.log.Error("a mapping of a static topic is that of another broker", "file", t.path, "topic", topic, "broker", d.BName, "is", name)
		}
		d.Topic = topic
		table[topic] = staticmap.New(&d)
	}
	t.set(table)
	return nil
}

func (t *staticTable) set(table map[string]*staticmap.Mapping) {
	if len(table) == 0 {
		t.table.Store(nil)
		return
	}
	t.table.Store(&table)
}

// save writes a table. Needs mu.
func (t *staticTable) save(table map[string]*staticmap.Mapping, version remoting.DataVersion) error {
	file := staticFile{DataVersion: version, Map: map[string]remoting.TopicQueueMappingDetail{}}
	for topic, m := range table {
		file.Map[topic] = *m.Detail()
	}
	b, err := fastjson.MarshalPretty(file)
	if err != nil {
		return err
	}
	if err := jsonfile.Save(t.fsys, t.path, b); err != nil {
		t.log.Error("mappings of static topics could not be saved", "file", t.path, "error", err)
		return err
	}
	return nil
}

// change replaces mappings: with what becomes of the one that is there (nil for none), or with none. It returns when they are
// on disk and in force, or an error and nothing has changed.
func (t *staticTable) change(topics []string, to func(topic string, was *staticmap.Mapping) (*staticmap.Mapping, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	table := maps.Clone(t.all())
	if table == nil {
		table = map[string]*staticmap.Mapping{}
	}
	changed := false
	for _, topic := range topics {
		was := table[topic]
		is, err := to(topic, was)
		switch {
		case err != nil:
			return err
		case is == was:
			continue
		case is == nil:
			delete(table, topic)
		default:
			table[topic] = is
		}
		changed = true
	}
	if !changed {
		return nil
	}
	version := t.mu.version.NextVersion(t.now())
	if err := t.save(table, version); err != nil {
		return err
	}
	t.mu.version = version
	t.set(table)
	return nil
}

// Merge tells a topic's mapping (staticmap.Merge).
func (t *staticTable) Merge(d *remoting.TopicQueueMappingDetail, force bool) error {
	return t.change([]string{d.Topic}, func(_ string, was *staticmap.Mapping) (*staticmap.Mapping, error) {
		return staticmap.Merge(was, d, force)
	})
}

// Delete forgets the mappings of topics.
func (t *staticTable) Delete(topics []string) error {
	if t.table.Load() == nil {
		return nil
	}
	return t.change(topics, func(string, *staticmap.Mapping) (*staticmap.Mapping, error) { return nil, nil })
}

// take makes the table what a master has. A slave that cannot keep it says so and serves with what it had.
func (t *staticTable) take(told map[string]remoting.TopicQueueMappingDetail, version remoting.DataVersion) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.version.Compare(version) == 0 {
		return nil
	}
	table := map[string]*staticmap.Mapping{}
	for _, topic := range slices.Sorted(maps.Keys(told)) {
		d := told[topic]
		if err := staticmap.Check(&d); err != nil {
			return fmt.Errorf("the mapping of topic %q: %w", topic, err)
		}
		d.Topic = topic
		table[topic] = staticmap.New(&d)
	}
	if len(table) > 0 || len(t.all()) > 0 {
		if err := t.save(table, version); err != nil {
			return err
		}
	}
	t.mu.version = version
	t.set(table)
	return nil
}
