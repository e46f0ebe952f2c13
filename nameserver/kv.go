package nameserver

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"sync"
	"sync/atomic"

	"mqx/internal/fastjson"
	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
)

// orderNamespace holds the queue counts of ordered topics: topic -> "broker:n;broker:n".
const orderNamespace = "ORDER_TOPIC_CONFIG"

// Bounds of the key-value table.
const (
	maxKVEntries  = 100_000
	maxKVKeyLen   = 1 << 10 // bytes of a namespace or key
	maxKVValueLen = 64 << 10
)

// kvTable is the one thing a name server remembers: namespace -> key -> value. A change
// is written to the file, then seen by readers, then answered (docs/wire/nameserver.md,
// "Key-value table"). Safe to share; reading never waits.
type kvTable struct {
	fs    vfs.FS
	path  string
	table atomic.Pointer[map[string]map[string]string] // never changed once it is here
	mu    sync.Mutex                                   // one change at a time; held while the file is written
}

// kvFile is the content of kvConfig.json.
type kvFile struct {
	ConfigTable map[string]map[string]string `json:"configTable"`
}

// openKV loads the table. A file that cannot be read is an error: starting without it
// would drop what operators set.
func openKV(fsys vfs.FS, path string, log *slog.Logger) (*kvTable, error) {
	t := &kvTable{fs: fsys, path: path}
	var f kvFile
	src, err := jsonfile.Load(fsys, path, func(b []byte) error {
		f = kvFile{}
		return fastjson.Unmarshal(b, &f)
	})
	if err != nil {
		return nil, err
	}
	if src == jsonfile.Backup {
		log.Warn("key-value table loaded from its backup", "path", path)
	}
	if f.ConfigTable == nil {
		f.ConfigTable = map[string]map[string]string{}
	}
	t.table.Store(&f.ConfigTable)
	return t, nil
}

// get returns one value.
func (t *kvTable) get(namespace, key string) (string, bool) {
	v, ok := (*t.table.Load())[namespace][key]
	return v, ok
}

// namespace returns all keys of a namespace, which must not be changed; nil when it has
// none.
func (t *kvTable) namespace(name string) map[string]string {
	kvs := (*t.table.Load())[name]
	if len(kvs) == 0 {
		return nil
	}
	return kvs
}

// put sets a value and returns when it is durable.
func (t *kvTable) put(namespace, key, value string) error {
	switch {
	case namespace == "" || key == "":
		return errors.New("namespace or key is null")
	case len(namespace) > maxKVKeyLen || len(key) > maxKVKeyLen:
		return fmt.Errorf("cannot put key of %d bytes: the limit of a namespace or key is %d", max(len(namespace), len(key)), maxKVKeyLen)
	case len(value) > maxKVValueLen:
		return fmt.Errorf("cannot put value of %d bytes: the limit is %d", len(value), maxKVValueLen)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	table := *t.table.Load()
	old, had := table[namespace][key]
	if had && old == value {
		return nil
	}
	count := 0
	for _, kvs := range table {
		count += len(kvs)
	}
	if !had && count >= maxKVEntries {
		return fmt.Errorf("cannot put key %q: the limit of %d entries is reached", key, maxKVEntries)
	}
	return t.change(namespace, func(kvs map[string]string) { kvs[key] = value })
}

// remove deletes a key, absent or not, and returns when that is durable.
func (t *kvTable) remove(namespace, key string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, had := (*t.table.Load())[namespace][key]; !had {
		return nil
	}
	return t.change(namespace, func(kvs map[string]string) { delete(kvs, key) })
}

// change applies f to a copy of a namespace, saves and publishes the result; t.mu is held.
func (t *kvTable) change(namespace string, f func(kvs map[string]string)) error {
	next := maps.Clone(*t.table.Load())
	kvs := maps.Clone(next[namespace])
	if kvs == nil {
		kvs = map[string]string{}
	}
	f(kvs)
	next[namespace] = kvs
	data, err := fastjson.Marshal(kvFile{ConfigTable: next})
	if err != nil {
		return fmt.Errorf("cannot encode key-value table: %w", err)
	}
	if err := vfs.MkdirAllDurable(t.fs, filepath.Dir(t.path)); err != nil {
		return fmt.Errorf("cannot save key-value table %q: %w", t.path, err)
	}
	if err := jsonfile.Save(t.fs, t.path, data); err != nil {
		return err
	}
	t.table.Store(&next)
	return nil
}
