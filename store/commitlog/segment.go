package commitlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"

	"mqx/internal/failpoint"
	"mqx/internal/vfs"
	"mqx/store/mapped"
)

// segment is one file of the log. It is opened when it is first used and may be closed again while nobody uses it.
type segment struct {
	path        string
	start, size int64 // positions [start, start+size)

	file      atomic.Pointer[mapped.File]
	mu        sync.Mutex   // opening and dropping file
	dropped   bool         // removed from the log: not to be opened again; owned by mu
	used      atomic.Int64 // Log.opens at the last use
	reserved  atomic.Int64 // position up to which there is space on the volume
	nameSaved atomic.Bool  // the directory entry is durable
	leaving   atomic.Bool  // is being removed on purpose: that it is gone is no fault
}

func (s *segment) end() int64 { return s.start + s.size }

const nameDigits = 20

func segmentPath(dir string, start int64) string {
	return filepath.Join(dir, fmt.Sprintf("%0*d", nameDigits, start))
}

// parseName returns the start that a file name stands for.
func parseName(name string) (start int64, ok bool) {
	if len(name) != nameDigits {
		return 0, false
	}
	start, err := strconv.ParseInt(name, 10, 64)
	return start, err == nil && start >= 0
}

// find returns the index of the segment that holds off, or, when none does, of the next one behind it.
func find(segs []*segment, off int64) int {
	return sort.Search(len(segs), func(i int) bool { return segs[i].end() > off })
}

// list returns the segments, oldest first. The slice is never changed.
func (l *Log) list() []*segment { return *l.segs.Load() }

// segmentOf returns the segment that holds all of [off, off+n).
func (l *Log) segmentOf(off int64, n int64) *segment {
	segs := l.list()
	if i := find(segs, off); i < len(segs) && off >= segs[i].start && off+n <= segs[i].end() {
		return segs[i]
	}
	return nil
}

// setList replaces the segments.
func (l *Log) setList(segs []*segment) { l.segs.Store(&segs) }

// addSegment puts a new newest segment into the list.
func (l *Log) addSegment(s *segment) {
	l.segMu.Lock()
	defer l.segMu.Unlock()
	l.setList(append(slices.Clone(l.list()), s))
}

// open returns the file of s with a lease.
func (l *Log) open(s *segment) (*mapped.File, error) {
	if f := s.file.Load(); f != nil && f.Acquire() {
		if now := l.opens.Load(); s.used.Load() != now {
			s.used.Store(now)
		}
		return f, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.file.Load(); f != nil && f.Acquire() {
		return f, nil
	}
	if s.dropped {
		return nil, fmt.Errorf("cannot open %q: %w", s.path, ErrOutOfRange)
	}
	flag := os.O_RDWR
	if l.cfg.ReadOnly {
		flag = os.O_RDONLY
	}
	f, err := mapped.Open(l.cfg.FS, s.path, flag)
	if err != nil {
		return nil, fmt.Errorf("cannot open commit log file: %w", err)
	}
	f.Acquire()
	s.file.Store(f)
	s.used.Store(l.opens.Add(1))
	l.openFiles.Add(1)
	l.trimOpen(s)
	return f, nil
}

// trimOpen closes the files that were not used for longest until no more than MaxOpenFiles are open. It spares keep,
// the newest, and what is not flushed: the error of a write-back that happens while a file is not open may never be
// told.
func (l *Log) trimOpen(keep *segment) {
	for l.openFiles.Load() > int64(l.cfg.MaxOpenFiles) {
		var idlest *segment
		flushed := l.flushed.Load()
		for _, s := range l.list() {
			written := l.recovered.Load() && !l.cfg.ReadOnly && s.end() > flushed
			if s == keep || written || s.file.Load() == nil {
				continue
			}
			if idlest == nil || s.used.Load() < idlest.used.Load() {
				idlest = s
			}
		}
		if idlest == nil {
			return
		}
		l.closeFile(idlest)
	}
}

// closeFile closes the file of s, which stays valid for those who have a lease. It can be opened again.
func (l *Log) closeFile(s *segment) *mapped.File {
	f := s.file.Swap(nil)
	if f != nil {
		l.openFiles.Add(-1)
		f.Close()
	}
	return f
}

// drop closes the file of s for good and returns it when it was open.
func (l *Log) drop(s *segment) *mapped.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped = true
	return l.closeFile(s)
}

// createSegment makes a file of full size at start. With save its name is durable on return.
func (l *Log) createSegment(start int64, save bool) (*segment, error) {
	s := &segment{path: segmentPath(l.cfg.Dir, start), start: start, size: l.fileSize}
	s.reserved.Store(start)
	vf, err := l.createFile(s.path)
	if err != nil {
		return nil, l.createError(s.path, err)
	}
	f := mapped.New(vf)
	failpoint.Pass(failpoint.LogCreated)
	if err = f.Truncate(s.size); err == nil && save {
		err = l.saveName(s, f)
	}
	if err != nil {
		f.Close()
		return nil, l.createError(s.path, errors.Join(err, l.cfg.FS.Remove(s.path)))
	}
	s.file.Store(f)
	s.used.Store(l.opens.Add(1))
	l.openFiles.Add(1)
	return s, nil
}

// createFile creates a file. One that an earlier attempt left behind is taken when nothing was written to it.
func (l *Log) createFile(path string) (vfs.File, error) {
	f, err := l.cfg.FS.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	exists := err
	if f, err = l.cfg.FS.OpenFile(path, os.O_RDWR); err != nil {
		return nil, err
	}
	ds, ok := f.(vfs.DataSeeker)
	if !ok {
		return nil, errors.Join(exists, f.Close())
	}
	if _, err := ds.NextData(0); !errors.Is(err, io.EOF) {
		return nil, errors.Join(exists, err, f.Close())
	}
	return f, nil
}

func (l *Log) createError(path string, err error) error {
	if isNoSpace(err) {
		return &FullError{Path: path, Err: err}
	}
	return fmt.Errorf("%w: %w", ErrCreate, err)
}

// saveName makes the size and the name of s durable.
func (l *Log) saveName(s *segment, f *mapped.File) error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := l.cfg.FS.SyncDir(l.cfg.Dir); err != nil {
		return err
	}
	s.nameSaved.Store(true)
	return nil
}
