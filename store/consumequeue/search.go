package consumequeue

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
)

// Search returns the first offset of the queue whose record begins at or behind phys, Max when there is none. Fillers
// count as the record that follows them.
func (q *Queue) Search(phys int64) (int64, error) {
	lo, hi := q.first(), q.max.Load()
	for lo < hi {
		mid := lo + (hi-lo)/2
		at, err := q.physFrom(mid, hi)
		if err != nil {
			return 0, err
		}
		if at < phys {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// first is the offset of the first unit that the files can hold.
func (q *Queue) first() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.mu.starts) > 0 {
		return q.mu.starts[0] / UnitSize
	}
	return q.mu.written
}

// physFrom is the physical offset of the first unit in [off, hi) that stands for a record; past the end for none, and
// for units that were never written.
func (q *Queue) physFrom(off, hi int64) (int64, error) {
	var one [UnitSize]byte
	b := one[:]
	for off < hi {
		n, err := q.Read(off, b[:min(int64(len(b)), (hi-off)*UnitSize)])
		if err != nil {
			return 0, err
		}
		for i := range n {
			if u := DecodeUnit(b[i*UnitSize:]); !u.Valid() {
				return math.MaxInt64, nil
			} else if !u.IsFiller() {
				return u.Phys, nil
			}
		}
		off += int64(n)
		b = make([]byte, chunkUnits*UnitSize)
	}
	return math.MaxInt64, nil
}

// CorrectMin moves Min to the first unit whose record is in a log that begins at logMin.
func (q *Queue) CorrectMin(logMin int64) error {
	low, high := q.min.Load(), q.max.Load()
	if low >= high {
		return nil
	}
	if phys, ok := q.FirstPhys(); ok && phys >= logMin {
		return nil
	}
	q.mu.Lock()
	q.mu.firstPhys = -1
	q.mu.Unlock()
	off, err := q.Search(max(logMin, 0))
	if err != nil {
		return err
	}
	if off, err = q.skipFillers(off, high); err != nil {
		return err
	}
	q.min.Store(max(off, q.first()))
	return nil
}

// skipFillers returns the first offset in [off, hi) that is no filler.
func (q *Queue) skipFillers(off, hi int64) (int64, error) {
	b := make([]byte, chunkUnits*UnitSize)
	for off < hi {
		n, err := q.Read(off, b[:min(int64(len(b)), (hi-off)*UnitSize)])
		if err != nil {
			return 0, err
		}
		for i := range n {
			if !DecodeUnit(b[i*UnitSize:]).IsFiller() {
				return off + int64(i), nil
			}
		}
		off += int64(n)
	}
	return hi, nil
}

// Expire moves Min and removes the files, except the last, whose records all lie before logMin. It returns how many.
func (s *Set) Expire(q *Queue, logMin int64) (int, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := q.CorrectMin(logMin); err != nil {
		return 0, fmt.Errorf("cannot expire consume queue: %w", err)
	}
	starts, fileBytes := q.Files()
	removed := 0
	for _, start := range starts[:max(0, len(starts)-1)] {
		if (start+fileBytes)/UnitSize > q.min.Load() {
			break
		}
		s.fds.forget(q.key(start))
		if err := s.cfg.FS.Remove(q.path(start)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, fmt.Errorf("cannot expire consume queue: %w", err)
		}
		q.mu.Lock()
		q.mu.starts = slices.DeleteFunc(q.mu.starts, func(s int64) bool { return s == start })
		q.mu.newNames = true
		q.mu.Unlock()
		removed++
	}
	if removed > 0 {
		s.markUnsynced(q)
		if e := q.ext.Load(); e != nil {
			if u, err := q.At(q.min.Load()); err == nil {
				if err := e.expire(u.TagsCode); err != nil {
					return removed, fmt.Errorf("cannot expire consume queue extension: %w", err)
				}
			}
		}
	}
	return removed, nil
}

// Remove deletes a queue with its files, durably. The queue stays readable by whoever is reading it.
func (s *Set) Remove(q *Queue) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	q.mu.Lock()
	q.mu.removed = true
	pending := int64(len(q.mu.buf))
	q.mu.buf = nil
	starts := slices.Clone(q.mu.starts)
	q.mu.Unlock()
	s.pending.Add(-pending)
	s.forget(q)
	for _, start := range starts {
		s.fds.forget(q.key(start))
	}
	return s.removeDir(q.dir())
}

// removeDir removes a queue directory, and its topic's when that is empty then.
func (s *Set) removeDir(dir string) error {
	if err := s.cfg.FS.RemoveAll(dir); err != nil {
		return fmt.Errorf("cannot remove consume queue: %w", err)
	}
	topicDir := filepath.Dir(dir)
	left, err := s.cfg.FS.ReadDir(topicDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(left) == 0 {
		if err = s.cfg.FS.Remove(topicDir); err == nil {
			return s.cfg.FS.SyncDir(filepath.Dir(topicDir))
		}
	}
	if err != nil {
		return fmt.Errorf("cannot remove consume queue: %w", err)
	}
	return s.cfg.FS.SyncDir(topicDir)
}
