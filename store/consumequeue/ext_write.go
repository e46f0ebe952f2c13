package consumequeue

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"mqx/internal/vfs"
)

// SetExt gives the queue its extension units, which are written with its own from now on.
func (q *Queue) SetExt(e *Ext) { q.ext.Store(e) }

// writeOut writes the pending units. The caller holds set.changing.
func (e *Ext) writeOut() error {
	e.mu.Lock()
	b, first, fileBytes := e.mu.buf, e.mu.written, e.mu.fileBytes
	removed := e.mu.removed
	e.mu.Unlock()
	if removed || len(b) == 0 {
		return nil
	}
	done, err := 0, error(nil)
	for done < len(b) && err == nil {
		pos := first + int64(done)
		start := pos / fileBytes * fileBytes
		n := min(int64(len(b)-done), start+fileBytes-pos)
		if err = e.writeAt(start, pos-start, b[done:done+int(n)]); err == nil {
			done += int(n)
		}
	}
	e.mu.Lock()
	e.mu.written += int64(done)
	rest := copy(e.mu.buf, e.mu.buf[done:])
	e.mu.buf = e.mu.buf[:rest]
	if rest == 0 && cap(e.mu.buf) > writeOutBytes {
		e.mu.buf = nil
	}
	e.mu.Unlock()
	e.set.pending.Add(-int64(done))
	if err != nil {
		return fmt.Errorf("cannot write consume queue extension: %w", err)
	}
	return nil
}

// writeAt writes into one file, creating it at its full size, and notes what a sync has to cover.
func (e *Ext) writeAt(start, at int64, b []byte) error {
	e.mu.Lock()
	i, known := slices.BinarySearch(e.mu.starts, start)
	fileBytes := e.mu.fileBytes
	e.mu.Unlock()
	o, err := e.set.fds.use(e.key(start), e, createFlag(known))
	if !known && errors.Is(err, fs.ErrNotExist) {
		if err = e.set.cfg.FS.MkdirAll(e.dir()); err == nil {
			o, err = e.set.fds.use(e.key(start), e, os.O_CREATE)
		}
	}
	if err != nil {
		return err
	}
	defer e.set.fds.release(o)
	if !known {
		if err := o.f.Truncate(fileBytes); err != nil {
			return err
		}
		e.mu.Lock()
		e.mu.starts = slices.Insert(e.mu.starts, i, start)
		e.mu.newNames = true
		e.mu.Unlock()
	}
	if err := e.set.writeFull(o, b, at); err != nil {
		return err
	}
	e.mu.Lock()
	if e.mu.syncFrom == noFile || start < e.mu.syncFrom {
		e.mu.syncFrom = start
	}
	e.mu.Unlock()
	return nil
}

func createFlag(known bool) int {
	if known {
		return 0
	}
	return os.O_CREATE
}

// cut removes what the files hold behind a position: files, and the rest of the file that holds it.
func (e *Ext) cut(end int64) error {
	e.set.changing.Lock()
	defer e.set.changing.Unlock()
	e.mu.Lock()
	starts, fileBytes := slices.Clone(e.mu.starts), e.mu.fileBytes
	e.mu.Unlock()
	for _, start := range starts {
		switch {
		case start >= end && start > 0:
			if err := e.remove(start); err != nil {
				return err
			}
		case start+fileBytes > end:
			if err := e.zero(start, end-start, fileBytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// zero clears a file from a place on, where it is not clear, and brings it to its size.
func (e *Ext) zero(start, from, to int64) error {
	o, err := e.set.fds.use(e.key(start), e, 0)
	if err != nil {
		return err
	}
	defer e.set.fds.release(o)
	if size, err := o.f.Size(); err != nil {
		return err
	} else if size != to {
		if err := o.f.Truncate(to); err != nil {
			return err
		}
	}
	b := make([]byte, blankChunk*UnitSize)
	for from < to {
		if ds, ok := o.f.(vfs.DataSeeker); ok {
			next, err := ds.NextData(from)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			from = next
		}
		n, err := o.f.ReadAt(b[:max(0, min(int64(len(b)), to-from))], from)
		if n == 0 && (err == nil || errors.Is(err, io.EOF)) {
			return nil
		}
		if n == 0 {
			return err
		}
		if len(bytes.TrimRight(b[:n], "\x00")) > 0 {
			clear(b[:n])
			if err := e.writeAt(start, from, b[:n]); err != nil {
				return err
			}
		}
		from += int64(n)
	}
	return nil
}

func (e *Ext) remove(start int64) error {
	e.set.fds.forget(e.key(start))
	if err := e.set.cfg.FS.Remove(e.path(start)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	e.mu.Lock()
	e.mu.starts = slices.DeleteFunc(e.mu.starts, func(s int64) bool { return s == start })
	e.mu.newNames = true
	e.mu.Unlock()
	return nil
}

// expire removes the files before the unit that the queue's first unit points to. Needs set.changing.
func (e *Ext) expire(addr int64) error {
	if !IsExtAddr(addr) {
		return nil
	}
	e.mu.Lock()
	starts, fileBytes := slices.Clone(e.mu.starts), e.mu.fileBytes
	e.mu.Unlock()
	for _, start := range starts {
		if start+fileBytes < addr-math.MinInt64 {
			if err := e.remove(start); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeUnsynced returns the files written since the last sync, and the directories with new names, for a sync that begins.
func (e *Ext) takeUnsynced() (files []int64, dirs []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	from, newNames := e.mu.syncFrom, e.mu.newNames
	e.mu.syncFrom, e.mu.newNames = noFile, false
	for _, start := range e.mu.starts {
		if from != noFile && start >= from {
			files = append(files, start)
		}
	}
	if newNames {
		dirs = []string{e.dir(), filepath.Dir(e.dir()), e.set.ExtDir(), e.set.cfg.Root}
	}
	return files, dirs
}

// sync makes the files written since the last sync durable, and returns the directories with new names.
func (e *Ext) sync() (dirs []string, err error) {
	files, dirs := e.takeUnsynced()
	var errs []error
	for _, start := range files {
		errs = append(errs, notGone(e.syncFile(start)))
	}
	return dirs, errors.Join(errs...)
}

func (e *Ext) syncFile(start int64) error {
	o, err := e.set.fds.use(e.key(start), e, 0)
	if err != nil {
		return err
	}
	defer e.set.fds.release(o)
	return o.f.Sync()
}
