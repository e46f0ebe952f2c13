package consumequeue

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"mqx/internal/vfs"
)

// Limits of a Set.
const (
	// defaultMaxOpenFiles bounds the descriptors of all queues together.
	defaultMaxOpenFiles = 512
	// syncWorkers make files durable at the same time.
	syncWorkers = 16
	// writeOutBytes of pending units in one queue make it worth writing them.
	writeOutBytes = 64 << 10
	// maxTopicDirs bounds the directories that Load lists: more is not a store.
	maxTopicDirs = 1 << 20
)

// Config describes the queues of a store.
type Config struct {
	FS           vfs.FS
	Root         string // store directory
	FileBytes    int64  // size of the files of new queues
	BatchBytes   int64  // the same of batch queues
	ExtBytes     int64  // the same of extension units
	MaxOpenFiles int    // 0: 512
	Logger       *slog.Logger
}

// Set is all queues of a store directory. It is safe to share; what changes files (WriteOut, Sync, Truncate, Expire,
// Remove) excludes itself.
type Set struct {
	cfg     Config
	fds     *fdCache
	numbers atomic.Uint64 // of queues
	pending atomic.Int64  // bytes of units that are not in files yet

	// changing serialises whoever changes files; it is taken before any Queue's lock.
	changing sync.Mutex
	// syncing serialises Sync; it is taken before changing.
	syncing sync.Mutex
	volume  vfs.Volume // owned by syncing; nil until many queues were synced

	mu struct {
		sync.Mutex
		dirty    []*Queue            // have pending units
		unsynced map[*Queue]struct{} // have written something since the last Sync
		batches  map[*BatchQueue]struct{}
	}
}

// NewSet returns a Set without queues. It touches nothing on disk.
func NewSet(cfg Config) *Set {
	if cfg.MaxOpenFiles <= 0 {
		cfg.MaxOpenFiles = defaultMaxOpenFiles
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	cfg.FileBytes = (cfg.FileBytes + UnitSize - 1) / UnitSize * UnitSize
	s := &Set{cfg: cfg, fds: newFDCache(cfg.FS, cfg.MaxOpenFiles)}
	s.mu.unsynced = map[*Queue]struct{}{}
	s.mu.batches = map[*BatchQueue]struct{}{}
	return s
}

// Dir is the directory of the queues.
func (s *Set) Dir() string { return filepath.Join(s.cfg.Root, "consumequeue") }

// BatchDir is the directory of the batch queues.
func (s *Set) BatchDir() string { return filepath.Join(s.cfg.Root, "batchconsumequeue") }

// ExtDir is the directory of the extension units.
func (s *Set) ExtDir() string { return filepath.Join(s.cfg.Root, "consumequeue_ext") }

// Pending is the number of bytes of units that are only in memory.
func (s *Set) Pending() int64 { return s.pending.Load() }

// Dirty is the number of queues that have units only in memory.
func (s *Set) Dirty() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.dirty)
}

// OpenFiles is the number of descriptors held.
func (s *Set) OpenFiles() int { return s.fds.len() }

// Found is one queue directory.
type Found struct {
	Topic   string
	QueueID int32
}

// List returns the queue directories below dir (Dir, BatchDir or ExtDir), sorted. A missing dir has none. Entries that
// are no queue are passed over.
func (s *Set) List(dir string) ([]Found, error) {
	topics, err := s.cfg.FS.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list queues: %w", err)
	}
	if len(topics) > maxTopicDirs {
		return nil, fmt.Errorf("cannot list queues: %q holds %d entries, the limit is %d", dir, len(topics), maxTopicDirs)
	}
	var found []Found
	for _, t := range topics {
		if !t.IsDir() {
			continue
		}
		ids, err := s.cfg.FS.ReadDir(filepath.Join(dir, t.Name()))
		if err != nil {
			return nil, fmt.Errorf("cannot list queues: %w", err)
		}
		for _, e := range ids {
			id, err := strconv.ParseInt(e.Name(), 10, 32)
			if err != nil || !e.IsDir() {
				continue
			}
			found = append(found, Found{t.Name(), int32(id)})
		}
	}
	return found, nil
}

// New returns a queue without files. Nothing is created before its first unit is written out.
func (s *Set) New(topic string, id int32) *Queue {
	q := &Queue{set: s, topic: topic, id: id, number: s.numbers.Add(1)}
	q.mu.fileBytes = s.cfg.FileBytes
	q.mu.syncFrom, q.mu.firstPhys = noFile, -1
	return q
}

// WriteOut writes the pending units of all queues into their files. Queues that could not be written stay pending; the
// joined errors name them (at most a few).
func (s *Set) WriteOut() error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return s.writeOut(math.MaxInt)
}

// WriteOutSome is WriteOut for at most n queues, those whose units wait for longest.
func (s *Set) WriteOutSome(n int) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return s.writeOut(n)
}

func (s *Set) writeOut(n int) error {
	s.mu.Lock()
	dirty := s.mu.dirty
	if s.mu.dirty = nil; n < len(dirty) {
		s.mu.dirty = slices.Clone(dirty[n:])
		dirty = dirty[:n]
	}
	s.mu.Unlock()
	var errs []error
	for _, q := range dirty {
		if err := q.writeOut(); err != nil && len(errs) < 4 {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Sync writes pending units out and makes all of them durable, with the names of new files. Units can be put and written
// out meanwhile. After a *SyncError it is not known what is on disk; after another error the units are still pending.
func (s *Set) Sync() error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	s.changing.Lock()
	err := s.writeOut(math.MaxInt)
	queues, batches := s.takeUnsynced()
	s.changing.Unlock()
	if err != nil {
		s.mu.Lock()
		for _, q := range queues {
			s.mu.unsynced[q] = struct{}{}
		}
		for _, b := range batches {
			s.mu.batches[b] = struct{}{}
		}
		s.mu.Unlock()
		return err
	}
	if len(queues) >= manyQueues && s.openVolume() {
		return s.syncVolume(queues, batches)
	}
	var mu sync.Mutex
	dirs := map[string]struct{}{}
	errs := inParallel(len(queues), func(i int) error {
		names, err := queues[i].sync()
		mu.Lock()
		defer mu.Unlock()
		for _, dir := range names {
			dirs[dir] = struct{}{}
		}
		return err
	})
	for _, b := range batches {
		errs = append(errs, b.sync(dirs))
	}
	names := slices.Sorted(maps.Keys(dirs))
	errs = append(errs, inParallel(len(names), func(i int) error { return notGone(s.cfg.FS.SyncDir(names[i])) })...)
	if err := errors.Join(errs...); err != nil {
		return &SyncError{err}
	}
	return nil
}

// manyQueues is the number of queues from which on the whole volume is synced instead of their files: 40,000 files take
// half a minute one by one and less than a second together.
const manyQueues = 256

// openVolume opens the volume of the queues once, and reports whether there is such a thing. Needs syncing.
func (s *Set) openVolume() bool {
	if s.volume != nil {
		return true
	}
	fsys, ok := s.cfg.FS.(vfs.VolumeOpener)
	if !ok {
		return false
	}
	v, err := fsys.OpenVolume(s.Dir())
	if err != nil {
		return false // then each file for itself, and whatever is wrong comes to light there
	}
	s.volume = v
	return true
}

// syncVolume makes all files and names durable at once. Needs syncing.
func (s *Set) syncVolume(queues []*Queue, batches []*BatchQueue) error {
	for _, q := range queues {
		q.takeUnsynced()
		if e := q.ext.Load(); e != nil {
			e.takeUnsynced()
		}
	}
	errs := []error{s.volume.Sync()}
	dirs := map[string]struct{}{}
	for _, b := range batches {
		errs = append(errs, b.sync(dirs))
	}
	for dir := range dirs {
		errs = append(errs, notGone(s.cfg.FS.SyncDir(dir)))
	}
	if err := errors.Join(errs...); err != nil {
		return &SyncError{err}
	}
	return nil
}

// SyncError says that written units may not be on the disk, now and for good: a later sync says nothing about them.
type SyncError struct{ Err error }

func (e *SyncError) Error() string { return "cannot make consume queues durable: " + e.Err.Error() }

// Unwrap gives the cause.
func (e *SyncError) Unwrap() error { return e.Err }

// takeUnsynced returns what has been written to since the last sync.
func (s *Set) takeUnsynced() ([]*Queue, []*BatchQueue) {
	s.mu.Lock()
	queues := slices.Collect(maps.Keys(s.mu.unsynced))
	batches := slices.Collect(maps.Keys(s.mu.batches))
	clear(s.mu.unsynced)
	clear(s.mu.batches)
	s.mu.Unlock()
	// In the order in which they were made: a test that repeats a run finds the disk in the same state.
	slices.SortFunc(queues, func(a, b *Queue) int { return cmp.Compare(a.number, b.number) })
	return queues, batches
}

// notGone takes a missing file for none: it was expired or its topic deleted meanwhile.
func notGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// inParallel calls f with 0 to n-1, several at a time when there are many: syncs share the commits of the file system's
// journal then. It returns at most a few of the errors.
func inParallel(n int, f func(int) error) []error {
	workers := min(syncWorkers, (n+7)/8)
	var next atomic.Int64
	var mu sync.Mutex
	var errs []error
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			if err := f(i); err != nil {
				mu.Lock()
				if len(errs) < 4 {
					errs = append(errs, err)
				}
				mu.Unlock()
			}
		}
	}
	var wg sync.WaitGroup
	for range workers - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	return errs
}

// Close closes the files. It writes nothing.
func (s *Set) Close() error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	s.changing.Lock()
	defer s.changing.Unlock()
	var err error
	if s.volume != nil {
		err = s.volume.Close()
		s.volume = nil
	}
	return errors.Join(err, s.fds.close())
}

func (s *Set) markDirty(q *Queue) {
	s.mu.Lock()
	s.mu.dirty = append(s.mu.dirty, q)
	s.mu.Unlock()
}

// relist puts a queue that could not be written out back among those that wait for it.
func (s *Set) relist(q *Queue) {
	q.mu.Lock()
	list := len(q.mu.buf) > 0 && !q.mu.removed
	q.mu.listed = list
	q.mu.Unlock()
	if list {
		s.markDirty(q)
	}
}

func (s *Set) markUnsynced(q *Queue) {
	s.mu.Lock()
	s.mu.unsynced[q] = struct{}{}
	s.mu.Unlock()
}

func (s *Set) forget(q *Queue) {
	s.mu.Lock()
	delete(s.mu.unsynced, q)
	if i := slices.Index(s.mu.dirty, q); i >= 0 {
		s.mu.dirty = slices.Delete(s.mu.dirty, i, i+1)
	}
	s.mu.Unlock()
}

// fileName is a byte offset as a file name: 20 digits.
func fileName(start int64) string { return fmt.Sprintf("%020d", start) }

// parseFileName reads a file name; ok is false when it is none.
func parseFileName(name string) (start int64, ok bool) {
	if len(name) != 20 {
		return 0, false
	}
	start, err := strconv.ParseInt(name, 10, 64)
	return start, err == nil && start >= 0
}
