package nameserver

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"sync"

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

// kvTable is the one thing a name server remembers: namespace -> key -> value. It is
// written to its file before a change is answered (docs/wire/nameserver.md, "Key-value
// table"). Safe to share.
type kvTable struct {
	fs   vfs.FS
	path string

	mu struct {
		sync.RWMutex
		table map[string]map[string]string
		count int
	}
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
	t.mu.table = f.ConfigTable
	if t.mu.table == nil {
		t.mu.table = map[string]map[string]string{}
	}
	for ns, kvs := range t.mu.table {
		if kvs == nil {
			t.mu.table[ns] = map[string]string{}
		}
		t.mu.count += len(kvs)
	}
	return t, nil
}

// get returns one value.
func (t *kvTable) get(namespace, key string) (string, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	v, ok := t.mu.table[namespace][key]
	return v, ok
}

// namespace returns a copy of all keys of a namespace; nil when it has none.
func (t *kvTable) namespace(name string) map[string]string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	kvs := t.mu.table[name]
	if len(kvs) == 0 {
		return nil
	}
	return maps.Clone(kvs)
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
	old, had := t.mu.table[namespace][key]
	if had && old == value {
		return nil
	}
	if !had && t.mu.count >= maxKVEntries {
		return fmt.Errorf("cannot put key %q: the limit of %d entries is reached", key, maxKVEntries)
	}
	if t.mu.table[namespace] == nil {
		t.mu.table[namespace] = map[string]string{}
	}
	t.mu.table[namespace][key] = value
	if err := t.save(); err != nil {
		if had {
			t.mu.table[namespace][key] = old
		} else {
			delete(t.mu.table[namespace], key)
		}
		return err
	}
	if !had {
		t.mu.count++
	}
	return nil
}

// remove deletes a key, absent or not, and returns when that is durable.
func (t *kvTable) remove(namespace, key string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, had := t.mu.table[namespace][key]
	if !had {
		return nil
	}
	delete(t.mu.table[namespace], key)
	if err := t.save(); err != nil {
		t.mu.table[namespace][key] = old
		return err
	}
	t.mu.count--
	return nil
}

// save writes the file; t.mu is held.
func (t *kvTable) save() error {
	data, err := fastjson.Marshal(kvFile{ConfigTable: t.mu.table})
	if err != nil {
		return fmt.Errorf("cannot encode key-value table: %w", err)
	}
	if err := t.fs.MkdirAll(filepath.Dir(t.path)); err != nil {
		return fmt.Errorf("cannot save key-value table %q: %w", t.path, err)
	}
	return jsonfile.Save(t.fs, t.path, data)
}
