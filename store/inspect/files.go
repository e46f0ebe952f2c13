package inspect

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"mqx/internal/vfs"
	"mqx/internal/words"
)

// files keeps recently used files open, for reads here and there. It is safe to share.
type files struct {
	fs   vfs.FS
	max  int
	pace atomic.Pointer[pacer] // nil: reads do not rest

	mu struct {
		sync.Mutex
		open   map[string]*openFile
		clock  int64
		closed bool
	}
}

type openFile struct {
	vfs.File
	uses int
	last int64
	gone bool // closed when its last use ends
}

func newFiles(fsys vfs.FS, limit int) *files {
	f := &files{fs: fsys, max: limit}
	f.mu.open = map[string]*openFile{}
	return f
}

// use returns an open file, and a function that ends the use.
func (f *files) use(path string) (vfs.File, func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.closed {
		return nil, nil, fmt.Errorf("cannot open %q: the store directory was closed", path)
	}
	o := f.mu.open[path]
	if o == nil {
		file, err := f.fs.Open(path)
		if err != nil {
			return nil, nil, err
		}
		o = &openFile{File: file}
		f.mu.open[path] = o
		f.evict()
	}
	f.mu.clock++
	o.uses++
	o.last = f.mu.clock
	return paced(o.File, f.pace.Load()), func() { f.done(o) }, nil
}

func (f *files) done(o *openFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o.uses--
	if o.uses == 0 && o.gone {
		_ = o.Close()
	}
}

// evict closes the file that was not used for the longest time when there are too many.
func (f *files) evict() {
	if len(f.mu.open) <= f.max {
		return
	}
	oldest := ""
	for path, o := range f.mu.open {
		if o.uses == 0 && o.last > 0 && (oldest == "" || o.last < f.mu.open[oldest].last) {
			oldest = path
		}
	}
	if oldest != "" {
		_ = f.mu.open[oldest].Close()
		delete(f.mu.open, oldest)
	}
}

func (f *files) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.closed = true
	var errs []error
	for path, o := range f.mu.open {
		delete(f.mu.open, path)
		if o.uses > 0 {
			o.gone = true
			continue
		}
		errs = append(errs, o.Close())
	}
	return errors.Join(errs...)
}

// readAt fills b from a file at off. A file that ends before is io.ErrUnexpectedEOF.
func (f *files) readAt(path string, b []byte, off int64) error {
	file, done, err := f.use(path)
	if err != nil {
		return err
	}
	defer done()
	return readFull(file, b, off)
}

func readFull(f vfs.File, b []byte, off int64) error {
	n, err := f.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("cannot read %s at %d of %q: %w", words.Count(len(b), "byte"), off, f.Name(), io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("cannot read %s at %d: %w", words.Count(len(b), "byte"), off, err)
}
