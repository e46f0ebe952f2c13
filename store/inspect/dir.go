package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"mqx/internal/clock"
	"mqx/internal/sorted"
	"mqx/internal/vfs"
	"mqx/internal/words"
)

// Names in a store directory: docs/format/layout.md.
const (
	nameCommitLog    = "commitlog"
	nameQueues       = "consumequeue"
	nameBatchQueues  = "batchconsumequeue"
	nameExtUnits     = "consumequeue_ext"
	nameIndex        = "index"
	nameConfig       = "config"
	nameCheckpoint   = "checkpoint"
	nameAbort        = "abort"
	nameLock         = "lock"
	nameTimerWheel   = "timerwheel"
	nameTimerLog     = "timerlog"
	maxListedEntries = 1 << 20 // of one directory: more is not a store
)

// Options say how to look at a directory. The zero value is right for one that was configured by storePathRootDir
// alone.
type Options struct {
	// FS is the disk. Nil means vfs.OS.
	FS vfs.FS
	// Clock tells what is in the future. Nil means clock.System.
	Clock clock.Clock
	// CommitLogDirs are the directories of the commit log when they are not the one in the store directory
	// (storePathCommitLog; several are several volumes of one log).
	CommitLogDirs []string
	// IndexSlots is maxHashSlotNum, for index files whose division cannot be told from their size. 0 means unknown.
	IndexSlots int32
	// Owned says that the caller holds the lock: what LockDir gave it.
	Owned bool
	// MaxOpenFiles bounds the descriptors that are kept open. 0 means 64.
	MaxOpenFiles int
}

// ErrNotStore says that a directory holds nothing that a broker leaves in a store directory.
var ErrNotStore = errors.New("not a store directory: it has no commit log, queues, configuration or checkpoint")

// File is one file of the store as it was when the directory was opened.
type File struct {
	Path    string // as given to the system
	Start   int64  // the number in its name, bytes; 0 for files that are not numbered
	Size    int64
	ModTime time.Time
	// Over is how many bytes of a log file lie behind Size, because the next file of the log begins there.
	Over int64
}

// End is the position behind the file.
func (f File) End() int64 { return f.Start + f.Size }

// whole is the length of the file on disk.
func (f File) whole() int64 { return f.Size + f.Over }

// Dir is a store directory that is looked at. It is safe to share between goroutines. Close ends it.
type Dir struct {
	root  string
	o     Options
	fs    vfs.FS
	kinds []Kind
	log   *Log
	fds   *files
	in    InUse
}

// Open lists a store directory. It takes no lock, changes nothing and opens no large file. Errors: fs.ErrNotExist,
// fs.ErrPermission, ErrNotStore, wrapped with the name of the directory.
func Open(root string, o Options) (*Dir, error) {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Clock == nil {
		o.Clock = clock.System
	}
	if o.MaxOpenFiles <= 0 {
		o.MaxOpenFiles = 64
	}
	d := &Dir{root: root, o: o, fs: o.FS}
	d.fds = newFiles(d.fs, o.MaxOpenFiles)
	if err := d.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open store %q: %w", root, err), d.Close())
	}
	return d, nil
}

func (d *Dir) load() error {
	st, err := d.fs.Stat(d.root)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fmt.Errorf("%w: it is a file", ErrNotStore)
	}
	entries, err := d.fs.ReadDir(d.root)
	if err != nil {
		return err
	}
	if !isStore(entries) && len(d.o.CommitLogDirs) == 0 {
		return ErrNotStore
	}
	if d.in, err = d.lookInUse(); err != nil {
		return err
	}
	if d.kinds, err = d.findKinds(entries); err != nil {
		return err
	}
	d.log, err = d.openLog()
	return err
}

// isStore reports whether one of the entries is a part of a store.
func isStore(entries []fs.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		switch e.Name() {
		case nameCommitLog, nameQueues, nameBatchQueues, nameIndex, nameConfig, "consumequeue_rocksdb", "compaction":
			return e.IsDir()
		case nameCheckpoint, nameAbort, nameTimerWheel:
			return !e.IsDir()
		}
		return isDLedger(e)
	})
}

// Close closes the files that are kept open. It is idempotent.
func (d *Dir) Close() error { return d.fds.close() }

// Root is the directory as it was given to Open.
func (d *Dir) Root() string { return d.root }

// FS is the disk that the directory lies on.
func (d *Dir) FS() vfs.FS { return d.fs }

// Path joins the root and a slash-separated name in the directory.
func (d *Dir) Path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

// Rel is the name of a path in the directory, slash-separated; a path outside stays as it is.
func (d *Dir) Rel(path string) string {
	if rel, err := filepath.Rel(d.root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// Log is the commit log. Its file list may be empty.
func (d *Dir) Log() *Log { return d.log }

// list returns the files of a directory whose names are numbers of 20 digits, by number. A missing directory has none.
// others are the names of entries that are not such files, those that end in .tmp or .ok of Apache's warm-up included;
// misfits are those among them that have the name of one and are none: directories, pipes, links to nothing.
func (d *Dir) list(dir string) (numbered []File, others []string, misfits []File, err error) {
	entries, err := d.fs.ReadDir(dir)
	if vfs.Absent(err) {
		return nil, nil, nil, nil
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if len(entries) > maxListedEntries {
		return nil, nil, nil, fmt.Errorf("cannot list %q: it holds %s, the limit is %d", dir, words.Count(len(entries), "entry"), maxListedEntries)
	}
	for _, e := range entries {
		start, ok := fileNumber(e.Name())
		if !ok {
			others = append(others, e.Name())
			continue
		}
		path := filepath.Join(dir, e.Name())
		st, err := d.fs.Stat(path)
		link := e.Type()&fs.ModeSymlink != 0
		switch {
		case vfs.Absent(err) && !link: // expired meanwhile
		case vfs.Absent(err), err == nil && (st.IsDir() || vfs.Special(st.Mode())):
			others, misfits = append(others, e.Name()), append(misfits, File{Path: path, Start: start})
		case err != nil:
			return nil, nil, nil, err
		default:
			numbered = append(numbered, File{Path: path, Start: start, Size: st.Size(), ModTime: st.ModTime()})
		}
	}
	sorted.By(numbered, func(a, b File) int { return cmp.Compare(a.Start, b.Start) })
	return numbered, others, misfits, nil
}

// misfit is the error of reading over what lies in the place of a file, if it begins in a range; to 0 is the end.
func misfit(list []File, from, to int64) error {
	for _, m := range list {
		if m.Start >= from && (to <= 0 || m.Start < to) {
			return fmt.Errorf("cannot read %q: %w", m.Path, ErrNoFile)
		}
	}
	return nil
}

// ErrNoFile says that something else lies in the place of a file of the store.
var ErrNoFile = errors.New("it is a directory, a pipe, a socket, a device or a link to nothing, and no file")

// fileNumber reads the name of a file of commit log, queues and timer log.
func fileNumber(name string) (int64, bool) {
	if len(name) != 20 {
		return 0, false
	}
	for _, c := range name {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(name, 10, 64)
	return n, err == nil
}

// FileName is the name of the file that begins at a position: 20 digits.
func FileName(start int64) string { return fmt.Sprintf("%020d", start) }

// stat describes a file in the directory; ok is false when there is none, or something that is none.
func (d *Dir) stat(name string) (f File, ok bool, err error) {
	path := d.Path(name)
	st, err := d.fs.Stat(path)
	if vfs.Absent(err) || (err == nil && (st.IsDir() || vfs.Special(st.Mode()))) {
		return File{}, false, nil
	}
	if err != nil {
		return File{}, false, err
	}
	return File{Path: path, Size: st.Size(), ModTime: st.ModTime()}, true, nil
}

// sizeOf is the size of a file in the directory, 0 when there is none.
func (d *Dir) sizeOf(name string) int64 {
	st, _, err := d.stat(name)
	if err != nil {
		return 0
	}
	return st.Size
}

// read returns the content of a small file in the directory, at most limit bytes; ok is false when there is none.
func (d *Dir) read(name string, limit int64) (b []byte, ok bool, err error) {
	st, ok, err := d.stat(name)
	if err != nil || !ok {
		return nil, false, err
	}
	if st.Size > limit {
		return nil, true, fmt.Errorf("cannot read %q: %s, the limit is %d", st.Path, words.Count(st.Size, "byte"), limit)
	}
	b, err = vfs.ReadFile(d.fs, st.Path)
	if vfs.Absent(err) {
		return nil, false, nil
	}
	return b, true, err
}

// openRead opens a file for one pass.
func (d *Dir) openRead(path string) (vfs.File, error) {
	f, err := d.fs.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return paced(f, d.fds.pace.Load()), nil
}

// Now is the time by the clock of Options.
func (d *Dir) Now() time.Time { return d.o.Clock.Now() }
