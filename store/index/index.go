package index

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"mqx/internal/clock"
	"mqx/internal/failpoint"
	"mqx/internal/vfs"
)

// nameLayout is the creation time in a file name, with milliseconds behind it.
const nameLayout = "20060102150405"

// Config describes an index.
type Config struct {
	FS       vfs.FS
	Dir      string
	Slots    int32 // of new files when the directory is empty
	Entries  int32
	Location *time.Location // of file names
	Clock    clock.Clock
	Logger   *slog.Logger
}

// Finding is a file that was found damaged and taken out.
type Finding struct {
	Path string
	What string
}

// Index is the index files of a store. It is safe to share; Put is for one goroutine.
type Index struct {
	cfg Config

	mu struct {
		sync.Mutex
		files    []*file // by name, which is by time
		newNames bool
		durable  int64 // end time of the last file that was filled and synced, ms
	}
}

// Open reads the heads of the files in cfg.Dir. Damaged files are removed, and what they held has to be put again:
// see End. A missing directory is an empty index; nothing is created.
func Open(cfg Config) (*Index, []Finding, error) {
	x := &Index{cfg: cfg}
	entries, err := cfg.FS.ReadDir(cfg.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return x, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open index: %w", err)
	}
	var found []Finding
	want := layout{cfg.Slots, cfg.Entries}
	for _, e := range entries {
		if !isName(e.Name()) || e.IsDir() {
			continue
		}
		path := filepath.Join(cfg.Dir, e.Name())
		f, err := openFile(cfg.FS, path, e.Name(), want)
		if err == nil {
			x.mu.files = append(x.mu.files, f)
			continue
		}
		var c *CorruptError
		if !errors.As(err, &c) {
			return nil, nil, errors.Join(fmt.Errorf("cannot open index: %w", err), x.closeFiles())
		}
		found = append(found, Finding{path, c.What + "; the file was removed and is built again from the log"})
		if err := cfg.FS.Remove(path); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("cannot remove damaged index: %w", err), x.closeFiles())
		}
		x.mu.newNames = true
	}
	found = append(found, x.dropUnordered()...)
	return x, found, nil
}

func isName(name string) bool {
	if len(name) != len(nameLayout)+3 {
		return false
	}
	for _, c := range name {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// dropUnordered removes the files behind one that overlaps the one before it in the log: End has to be true for all.
func (x *Index) dropUnordered() []Finding {
	var found []Finding
	for i := 1; i < len(x.mu.files); i++ {
		prev, f := x.mu.files[i-1].header(), x.mu.files[i]
		if h := f.header(); h.Count > 1 && h.BeginPhys < prev.EndPhys {
			found = append(found, Finding{f.path, fmt.Sprintf("begins at %d, before the end %d of the file before; removed with those behind it", h.BeginPhys, prev.EndPhys)})
			_ = x.removeFrom(i)
			break
		}
	}
	return found
}

// End tells how far the index covers the log: the record at phys is the last one with entries, and ok is false when there
// is none. again says that its entries may be incomplete, because a file ended among them; the next one may have been
// made already.
func (x *Index) End() (phys int64, again, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := len(x.mu.files) - 1; i >= 0; i-- {
		if h := x.mu.files[i].header(); h.Count > 1 {
			return h.EndPhys, x.mu.files[i].full(), true
		}
	}
	return 0, false, false
}

// LastUpdate is the store time and physical offset of the newest message in the index, 0 for none.
func (x *Index) LastUpdate() (timeMs, phys int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.mu.files); n > 0 {
		h := x.mu.files[n-1].header()
		return h.EndTime, h.EndPhys
	}
	return 0, 0
}

// DurableTime is the store time up to which files are filled and synced, which the checkpoint may hold. ms, 0 for none
// since Open.
func (x *Index) DurableTime() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.mu.durable
}

// Headers are the heads of the files by name, oldest first.
func (x *Index) Headers() (names []string, heads []Header) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.mu.files {
		names = append(names, f.name)
		heads = append(heads, f.header())
	}
	return names, heads
}

// Put adds one key of the message at phys. When a file is full it is made durable and the next one begun. After an error
// nothing was added, and the same Put may be tried again.
func (x *Index) Put(hash int32, phys, storeTime int64) error {
	f, err := x.last()
	if err != nil {
		return err
	}
	return f.put(hash, phys, storeTime)
}

func (x *Index) last() (*file, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.mu.files); n > 0 {
		f := x.mu.files[n-1]
		if !f.full() {
			return f, nil
		}
		if err := errors.Join(f.sync(), x.syncNames()); err != nil {
			return nil, err
		}
		x.mu.durable = max(x.mu.durable, f.header().EndTime)
		f.dropCache()
	}
	return x.create()
}

// create begins a new file, of the layout of the newest one.
func (x *Index) create() (*file, error) {
	l, after := layout{x.cfg.Slots, x.cfg.Entries}, ""
	if n := len(x.mu.files); n > 0 {
		l, after = x.mu.files[n-1].layout, x.mu.files[n-1].name
	}
	if err := x.cfg.FS.MkdirAll(x.cfg.Dir); err != nil {
		return nil, fmt.Errorf("cannot create index: %w", err)
	}
	now := x.cfg.Clock.Now()
	name := fileName(now, x.cfg.Location)
	for ; name <= after; name = fileName(now, x.cfg.Location) { // the clock was set back, or two files in 1 ms
		t, err := time.ParseInLocation(nameLayout+".000", after[:len(nameLayout)]+"."+after[len(nameLayout):], x.cfg.Location)
		if err != nil {
			return nil, fmt.Errorf("cannot create index: name %q: %w", after, err)
		}
		now, after = t.Add(time.Millisecond), ""
	}
	f, err := createFile(x.cfg.FS, filepath.Join(x.cfg.Dir, name), name, l)
	if err != nil {
		return nil, fmt.Errorf("cannot create index: %w", err)
	}
	failpoint.Pass(failpoint.IndexCreated)
	x.mu.files = append(x.mu.files, f)
	x.mu.newNames = true
	return f, nil
}

func fileName(t time.Time, loc *time.Location) string {
	t = t.In(loc)
	return t.Format(nameLayout) + fmt.Sprintf("%03d", t.Nanosecond()/int(time.Millisecond))
}

// WriteBack brings what is cached to the file, not to the disk.
func (x *Index) WriteBack() error {
	if f := x.newest(); f != nil {
		return f.writeBack()
	}
	return nil
}

// Spill writes the cached entries, without their slots, when there are many. Readers of the file do not see them before
// WriteBack.
func (x *Index) Spill() error {
	f := x.newest()
	if f == nil || f.pendingBytes() < entryBufferBytes {
		return nil
	}
	return f.spill()
}

// Sync makes everything durable, the names of files included.
func (x *Index) Sync() error {
	if f := x.newest(); f != nil {
		if err := f.sync(); err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.syncNames()
}

// syncNames makes the names of new files, and that removed ones are gone, durable. The lock is held.
func (x *Index) syncNames() error {
	if !x.mu.newNames {
		return nil
	}
	for _, dir := range []string{x.cfg.Dir, filepath.Dir(x.cfg.Dir)} {
		if err := x.cfg.FS.SyncDir(dir); err != nil {
			return fmt.Errorf("cannot make index durable: %w", err)
		}
	}
	x.mu.newNames = false
	return nil
}

// DropCache gives back memory that an idle index does not need. WriteBack comes first.
func (x *Index) DropCache() {
	if f := x.newest(); f != nil {
		f.dropCache()
	}
}

func (x *Index) newest() *file {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.mu.files); n > 0 {
		return x.mu.files[n-1]
	}
	return nil
}

// DropBehind removes the files with messages at or behind a physical offset. It returns how many.
func (x *Index) DropBehind(phys int64) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, f := range x.mu.files {
		if h := f.header(); h.Count > 1 && h.EndPhys >= phys {
			return len(x.mu.files) - i, x.removeFrom(i)
		}
	}
	return 0, nil
}

// DropNewer removes the files that may not be durable after a crash, when files were durable up to a store time: those
// that end later, and of those that end at that time all but the first, since a time in ms does not tell files apart. It
// returns how many.
func (x *Index) DropNewer(timeMs int64) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	keep := 0
	for keep < len(x.mu.files) {
		h := x.mu.files[keep].header()
		if h.Count <= 1 || h.EndTime > timeMs {
			break
		}
		keep++
		if h.EndTime == timeMs {
			break
		}
	}
	return len(x.mu.files) - keep, x.removeFrom(keep)
}

// FullTime is the store time of the last message in the files that are full, which were synced when the next one was
// begun. ms, 0 for none.
func (x *Index) FullTime() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := len(x.mu.files) - 2; i >= 0; i-- {
		if f := x.mu.files[i]; f.full() {
			return f.header().EndTime
		}
	}
	return 0
}

// Expire removes the files, except the newest, whose messages all lie before logMin. It returns how many.
func (x *Index) Expire(logMin int64) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	removed := 0
	for len(x.mu.files) > 1 && x.mu.files[0].header().EndPhys < logMin {
		if err := x.remove(x.mu.files[0]); err != nil {
			return removed, err
		}
		x.mu.files = x.mu.files[1:]
		removed++
	}
	return removed, nil
}

func (x *Index) removeFrom(i int) error {
	for n := len(x.mu.files) - 1; n >= i; n-- {
		if err := x.remove(x.mu.files[n]); err != nil {
			return err
		}
		x.mu.files = x.mu.files[:n]
	}
	return nil
}

func (x *Index) remove(f *file) error {
	if err := x.cfg.FS.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove index: %w", err)
	}
	x.mu.newNames = true
	return f.close()
}

// Close closes the files. What was not written back is lost.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.closeFiles()
}

func (x *Index) closeFiles() error {
	var errs []error
	for _, f := range x.mu.files {
		errs = append(errs, f.close())
	}
	x.mu.files = nil
	return errors.Join(errs...)
}
