package consumequeue

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"mqx/internal/failpoint"
)

// blankChunk is how many fillers are written at once in front of the first unit of a queue.
const blankChunk = 3000

// writeOut writes the pending units. The caller holds set.changing, so that written only moves here.
func (q *Queue) writeOut() error {
	if e := q.ext.Load(); e != nil {
		if err := e.writeOut(); err != nil { // no queue unit points to what is not there
			q.set.relist(q)
			return err
		}
	}
	q.mu.Lock()
	b, first, fileBytes := q.mu.buf, q.mu.written, q.mu.fileBytes
	q.mu.listed = false
	if q.mu.removed || len(b) == 0 {
		q.mu.Unlock()
		return nil
	}
	q.mu.Unlock()

	done, err := 0, error(nil)
	for done < len(b) && err == nil {
		pos := first*UnitSize + int64(done)
		start := pos / fileBytes * fileBytes
		n := min(int64(len(b)-done), start+fileBytes-pos)
		if err = q.writeAt(start, pos-start, b[done:done+int(n)]); err == nil {
			done += int(n)
			failpoint.Pass(failpoint.QueueWritten)
		}
	}

	q.mu.Lock()
	q.mu.written += int64(done / UnitSize)
	rest := copy(q.mu.buf, q.mu.buf[done:])
	q.mu.buf = q.mu.buf[:rest]
	if rest == 0 && cap(q.mu.buf) > writeOutBytes {
		q.mu.buf = nil
	}
	list := rest > 0 && !q.mu.listed
	q.mu.listed = q.mu.listed || list
	q.mu.Unlock()
	q.set.pending.Add(-int64(done))
	if list {
		q.set.markDirty(q)
	}
	if err != nil {
		return fmt.Errorf("cannot write consume queue: %w", err)
	}
	return nil
}

// writeAt writes into one file, creating it at its full size, and notes what a sync has to cover.
func (q *Queue) writeAt(start, at int64, b []byte) error {
	q.mu.Lock()
	i, known := slices.BinarySearch(q.mu.starts, start)
	fileBytes := q.mu.fileBytes
	first := len(q.mu.starts) == 0
	q.mu.Unlock()
	if !known {
		if err := q.create(start, fileBytes); err != nil {
			return err
		}
		failpoint.Pass(failpoint.QueueCreated)
		if first {
			if err := q.blank(start, at); err != nil {
				return err
			}
		}
		q.mu.Lock()
		q.mu.starts = slices.Insert(q.mu.starts, i, start)
		q.mu.newNames = true
		q.mu.Unlock()
	}
	o, err := q.set.fds.use(q.key(start), q, 0)
	if err != nil {
		return err
	}
	defer q.set.fds.release(o)
	if err := q.set.writeFull(o, b, at); err != nil {
		return err
	}
	q.mu.Lock()
	if q.mu.syncFrom == noFile || start < q.mu.syncFrom {
		q.mu.syncFrom = start
	}
	q.mu.Unlock()
	q.set.markUnsynced(q)
	return nil
}

func (s *Set) writeFull(o *openFile, b []byte, at int64) error {
	_, err := o.f.WriteAt(b, at)
	return err
}

// create makes a file of full size, sparse. A file that is there already (a crash between create and its first unit)
// is brought to its size.
func (q *Queue) create(start, fileBytes int64) error {
	o, err := q.set.fds.use(q.key(start), q, os.O_CREATE)
	if errors.Is(err, fs.ErrNotExist) {
		if err = q.set.cfg.FS.MkdirAll(q.dir()); err == nil {
			o, err = q.set.fds.use(q.key(start), q, os.O_CREATE)
		}
	}
	if err != nil {
		return err
	}
	defer q.set.fds.release(o)
	return o.f.Truncate(fileBytes)
}

// blank fills the units in front of the first one of a queue that begins inside a file.
func (q *Queue) blank(start, upTo int64) error {
	if upTo == 0 {
		return nil
	}
	o, err := q.set.fds.use(q.key(start), q, 0)
	if err != nil {
		return err
	}
	defer q.set.fds.release(o)
	b := make([]byte, 0, min(upTo, blankChunk*UnitSize))
	for len(b) < cap(b) {
		b = AppendUnit(b, Filler)
	}
	for at := int64(0); at < upTo; {
		n := min(int64(len(b)), upTo-at)
		if err := q.set.writeFull(o, b[:n], at); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// sync makes the files written since the last sync durable, and returns the directories with new names.
func (q *Queue) sync() (dirs []string, err error) {
	files, newNames := q.takeUnsynced()
	var errs []error
	if e := q.ext.Load(); e != nil {
		names, err := e.sync()
		dirs, errs = names, append(errs, err)
	}
	for _, start := range files {
		errs = append(errs, notGone(q.syncFile(start)))
	}
	if newNames {
		dirs = append(dirs, q.dir(), filepath.Dir(q.dir()), q.set.Dir(), q.set.cfg.Root)
	}
	return dirs, errors.Join(errs...)
}

// takeUnsynced returns the files written since the last sync, and whether names are new, for a sync that begins.
func (q *Queue) takeUnsynced() (files []int64, newNames bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	from, newNames := q.mu.syncFrom, q.mu.newNames
	q.mu.syncFrom, q.mu.newNames = noFile, false
	for _, start := range q.mu.starts {
		if from != noFile && start >= from {
			files = append(files, start)
		}
	}
	return files, newNames
}

func (q *Queue) syncFile(start int64) error {
	o, err := q.set.fds.use(q.key(start), q, 0)
	if err != nil {
		return err
	}
	defer q.set.fds.release(o)
	return o.f.Sync()
}
