package vfs

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mem is a file system in memory for tests. It keeps what was written apart from what is durable, so that PowerLoss
// can take away what was not synced; it knows how full it is; and it injects faults (Inject). Mappings live on the
// heap, where the race detector sees who reads them while the file is written.
//
// The model of durability: bytes become durable, 512 at a time and in any order, at some time after they were written
// and at File.Sync at the latest; the length of a file at File.Sync; names at SyncDir, and those of one directory in
// the order in which they were changed; a directory itself at SyncDir of its parent, made, removed or renamed. A Sync that
// fails leaves the bytes out: a later Sync does not bring them to the disk either.
//
// A Mem is safe to share between goroutines.
type Mem struct {
	mu struct {
		sync.Mutex
		dirs   map[string]*memDir
		gone   map[string]*memDir // removed directories whose parent was not synced since
		moves  []dirMove          // renamings of directories whose parents were not synced since, in order
		locks  map[string]bool
		inject func(Op) error
		now    func() time.Time

		capacity  int64 // bytes, 0 = no limit
		used      int64 // bytes of pages that have blocks
		writeback *rand.Rand
		prob      float64
	}
}

// memDir is a directory: the names as they are and as they are durable.
type memDir struct {
	names   map[string]*memNode
	durable map[string]*memNode
	pending []dirOp // changes of names since the last SyncDir, in order
	saved   bool    // its own name is durable
	modTime time.Time
}

// dirMove is a directory that was renamed.
type dirMove struct{ from, to string }

// dirOp sets a name (node != nil) or removes it. A rename is one op with both.
type dirOp struct {
	remove string
	set    string
	node   *memNode
}

func (d *memDir) change(op dirOp) {
	apply(d.names, op)
	d.pending = append(d.pending, op)
}

func apply(m map[string]*memNode, op dirOp) {
	if op.remove != "" {
		delete(m, op.remove)
	}
	if op.node != nil {
		m[op.set] = op.node
	}
}

// NewMem returns an empty file system without a limit.
func NewMem() *Mem {
	m := &Mem{}
	root := newMemDir(time.Time{})
	root.saved = true
	m.mu.dirs = map[string]*memDir{string(filepath.Separator): root}
	m.mu.gone = map[string]*memDir{}
	m.mu.locks = map[string]bool{}
	m.mu.now = time.Now
	return m
}

func newMemDir(t time.Time) *memDir {
	return &memDir{names: map[string]*memNode{}, durable: map[string]*memNode{}, modTime: t}
}

// SetClock sets where modification times come from.
func (m *Mem) SetClock(now func() time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.now = now
}

// SetCapacity limits the bytes of blocks that files may have in all; 0 takes the limit away. What is over the limit
// already stays.
func (m *Mem) SetCapacity(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.capacity = bytes
}

// SetWriteback makes every write bring some other unsynced page to the disk with the given probability, as a kernel
// does in the background.
func (m *Mem) SetWriteback(seed uint64, prob float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.writeback, m.mu.prob = rand.New(rand.NewPCG(seed, 1)), prob
}

func clean(name string) string {
	if !filepath.IsAbs(name) {
		name = string(filepath.Separator) + name
	}
	return filepath.Clean(name)
}

// op tells the hook about an operation. The lock is not held while the hook runs, so that it may look at the files.
func (m *Mem) op(kind OpKind, name string, off, n int64) error {
	m.mu.Lock()
	inject := m.mu.inject
	m.mu.Unlock()
	if inject == nil {
		return nil
	}
	if err := inject(Op{Kind: kind, Path: clean(name), Off: off, Len: n}); err != nil {
		return &fs.PathError{Op: kind.String(), Path: name, Err: err}
	}
	return nil
}

func pathError(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// lookup finds the node of a name; the lock is held.
func (m *Mem) lookup(name string) (*memNode, bool) {
	name = clean(name)
	d, ok := m.mu.dirs[filepath.Dir(name)]
	if !ok {
		return nil, false
	}
	n, ok := d.names[filepath.Base(name)]
	return n, ok
}

// Open opens a file for reading.
func (m *Mem) Open(name string) (File, error) { return m.OpenFile(name, os.O_RDONLY) }

// OpenFile opens or creates a file.
func (m *Mem) OpenFile(name string, flag int) (File, error) {
	kind := OpOpen
	if flag&os.O_CREATE != 0 {
		kind = OpCreate
	}
	if err := m.op(kind, name, 0, 0); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.lookup(name)
	switch {
	case ok && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, pathError("open", name, fs.ErrExist)
	case !ok && flag&os.O_CREATE == 0:
		if m.mu.dirs[clean(name)] != nil {
			return nil, pathError("open", name, syscall.EISDIR)
		}
		return nil, pathError("open", name, fs.ErrNotExist)
	case !ok:
		d := m.mu.dirs[filepath.Dir(clean(name))]
		if d == nil {
			return nil, pathError("open", name, fs.ErrNotExist)
		}
		n = &memNode{fs: m, modTime: m.mu.now(), pages: map[int64]pageState{}}
		d.change(dirOp{set: filepath.Base(clean(name)), node: n})
		d.modTime = m.mu.now()
	}
	if flag&os.O_TRUNC != 0 {
		n.truncate(0)
	}
	n.refs++
	return &memFile{node: n, name: name, writable: flag&(os.O_RDWR|os.O_WRONLY) != 0}, nil
}

// MkdirAll makes a directory and its parents.
func (m *Mem) MkdirAll(dir string) error {
	if err := m.op(OpMkdir, dir, 0, 0); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for dir = clean(dir); m.mu.dirs[dir] == nil; dir = filepath.Dir(dir) {
		if _, isFile := m.lookup(dir); isFile {
			return pathError("mkdir", dir, syscall.ENOTDIR)
		}
		m.mu.dirs[dir] = newMemDir(m.mu.now())
		delete(m.mu.gone, dir)
	}
	return nil
}

// removeDir takes a directory out with the files in it; the lock is held.
func (m *Mem) removeDir(name string) {
	d := m.mu.dirs[name]
	for _, file := range sortedKeys(d.names) {
		n := d.names[file]
		d.change(dirOp{remove: file})
		n.unlinked = true
		n.freeIfUnused()
	}
	delete(m.mu.dirs, name)
	if d.saved {
		m.mu.gone[name] = d
	}
}

// Remove removes a file or an empty directory.
func (m *Mem) Remove(name string) error {
	if err := m.op(OpRemove, name, 0, 0); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	name = clean(name)
	if d := m.mu.dirs[name]; d != nil {
		if len(m.list(name)) > 0 {
			return pathError("remove", name, syscall.ENOTEMPTY)
		}
		m.removeDir(name)
		return nil
	}
	n, ok := m.lookup(name)
	if !ok {
		return pathError("remove", name, fs.ErrNotExist)
	}
	m.mu.dirs[filepath.Dir(name)].change(dirOp{remove: filepath.Base(name)})
	n.unlinked = true
	n.freeIfUnused()
	return nil
}

// RemoveAll removes a tree.
func (m *Mem) RemoveAll(dir string) error {
	if err := m.op(OpRemove, dir, 0, 0); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	dir = clean(dir)
	if n, ok := m.lookup(dir); ok {
		m.mu.dirs[filepath.Dir(dir)].change(dirOp{remove: filepath.Base(dir)})
		n.unlinked = true
		n.freeIfUnused()
		return nil
	}
	for _, name := range sortedKeys(m.mu.dirs) {
		if name == dir || strings.HasPrefix(name, dir+string(filepath.Separator)) {
			m.removeDir(name)
		}
	}
	return nil
}

// Rename moves a file, replacing the target, or a directory to a name that is free.
func (m *Mem) Rename(oldName, newName string) error {
	if err := m.op(OpRename, oldName, 0, 0); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.lookup(oldName)
	from, to := clean(oldName), clean(newName)
	toDir := m.mu.dirs[filepath.Dir(to)]
	if m.mu.dirs[from] != nil && toDir != nil {
		return m.renameDir(from, to)
	}
	if !ok || toDir == nil {
		return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: fs.ErrNotExist}
	}
	if was := toDir.names[filepath.Base(to)]; was != nil && was != n {
		was.unlinked = true
		was.freeIfUnused()
	}
	if fromDir := m.mu.dirs[filepath.Dir(from)]; fromDir != toDir {
		fromDir.change(dirOp{remove: filepath.Base(from)})
		toDir.change(dirOp{set: filepath.Base(to), node: n})
		return nil
	}
	toDir.change(dirOp{remove: filepath.Base(from), set: filepath.Base(to), node: n})
	return nil
}

// renameDir moves a directory; the lock is held. What a power loss leaves is the old name or the new one.
func (m *Mem) renameDir(from, to string) error {
	if _, taken := m.lookup(to); taken || m.mu.dirs[to] != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	moveTree(m.mu.dirs, dirMove{from, to})
	m.mu.moves = append(m.mu.moves, dirMove{from, to})
	return nil
}

// moveTree gives a directory and what is below it other names.
func moveTree(dirs map[string]*memDir, v dirMove) {
	for _, name := range sortedKeys(dirs) {
		if rest, ok := strings.CutPrefix(name, v.from); ok && (rest == "" || rest[0] == filepath.Separator) {
			dirs[v.to+rest] = dirs[name]
			delete(dirs, name)
		}
	}
}

// Stat describes a file or directory.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	if err := m.op(OpStat, name, 0, 0); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.mu.dirs[clean(name)]; d != nil {
		return memInfo{name: filepath.Base(name), dir: true, modTime: d.modTime}, nil
	}
	n, ok := m.lookup(name)
	if !ok {
		return nil, pathError("stat", name, fs.ErrNotExist)
	}
	return memInfo{name: filepath.Base(name), size: n.size, modTime: n.modTime}, nil
}

// ReadDir lists a directory.
func (m *Mem) ReadDir(dir string) ([]fs.DirEntry, error) {
	if err := m.op(OpReadDir, dir, 0, 0); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.dirs[clean(dir)] == nil {
		return nil, pathError("open", dir, fs.ErrNotExist)
	}
	return m.list(clean(dir)), nil
}

func (m *Mem) list(dir string) []fs.DirEntry {
	var out []fs.DirEntry
	for name, n := range m.mu.dirs[dir].names {
		out = append(out, fs.FileInfoToDirEntry(memInfo{name: name, size: n.size, modTime: n.modTime}))
	}
	for name, d := range m.mu.dirs {
		if name != dir && filepath.Dir(name) == dir {
			out = append(out, fs.FileInfoToDirEntry(memInfo{name: filepath.Base(name), dir: true, modTime: d.modTime}))
		}
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out
}

// SyncDir makes the names of a directory durable.
func (m *Mem) SyncDir(dir string) error {
	if err := m.op(OpSyncDir, dir, 0, 0); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.mu.dirs[clean(dir)]
	if d == nil {
		return pathError("sync", dir, fs.ErrNotExist)
	}
	for _, op := range d.pending {
		apply(d.durable, op)
	}
	d.pending = nil
	for i := len(m.mu.moves) - 1; i >= 0; i-- {
		if v := m.mu.moves[i]; filepath.Dir(v.from) == clean(dir) || filepath.Dir(v.to) == clean(dir) {
			m.mu.moves = m.mu.moves[i+1:] // and all before it: they are journalled in order
			break
		}
	}
	for name, sub := range m.mu.dirs {
		if filepath.Dir(name) == clean(dir) {
			sub.saved = true
		}
	}
	for name := range m.mu.gone {
		if filepath.Dir(name) == clean(dir) {
			delete(m.mu.gone, name)
		}
	}
	return nil
}

// Lock takes the lock of a file.
func (m *Mem) Lock(name string) (io.Closer, error) {
	if err := m.op(OpLock, name, 0, 0); err != nil {
		return nil, err
	}
	f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	held := m.mu.locks[clean(name)]
	m.mu.locks[clean(name)] = true
	m.mu.Unlock()
	if held {
		return nil, errors.Join(pathError("lock", name, ErrLocked), f.Close())
	}
	return &memLock{m: m, name: clean(name), f: f}, nil
}

type memLock struct {
	m    *Mem
	name string
	f    File
	once sync.Once
}

// Close releases the lock.
func (l *memLock) Close() error {
	var err error
	l.once.Do(func() {
		l.m.mu.Lock()
		delete(l.m.mu.locks, l.name)
		l.m.mu.Unlock()
		err = l.f.Close()
	})
	return err
}

// Usage tells the capacity and what is left; without a limit the volume has 1 TiB.
func (m *Mem) Usage(string) (Usage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	total := m.mu.capacity
	if total == 0 {
		total = 1 << 40
	}
	return Usage{Total: total, Free: max(0, total-m.mu.used)}, nil
}

type memInfo struct {
	name    string
	size    int64
	dir     bool
	modTime time.Time
}

// Name is the base name.
func (i memInfo) Name() string { return i.name }

// Size is the length in bytes.
func (i memInfo) Size() int64 { return i.size }

// ModTime is the time of the last change.
func (i memInfo) ModTime() time.Time { return i.modTime }

// IsDir tells a directory from a file.
func (i memInfo) IsDir() bool { return i.dir }

// Sys is nil: there is no system below.
func (i memInfo) Sys() any { return nil }

// Mode is what the real file system would give a new file or directory.
func (i memInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
