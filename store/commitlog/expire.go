package commitlog

import (
	"fmt"
	"slices"
	"time"

	"mqx/internal/failpoint"
	"mqx/store/mapped"
)

// ExpireRules say which files may go. The newest file never goes.
type ExpireRules struct {
	Now      time.Time
	Reserved time.Duration // files modified before Now-Reserved go
	Force    bool          // files go whatever their age
	MaxFiles int           // at most so many in one call, 0: 10
}

// May reports whether the age of a file lets it go, or force does.
func (r *ExpireRules) May(f FileInfo) bool {
	return r.Force || !r.Now.Before(f.ModTime.Add(r.Reserved))
}

// ExpireResult tells what Expire did.
type ExpireResult struct {
	Removed []FileInfo
	Bytes   int64
	// Next is the oldest file that stays, and Due the time when its age will let it go; the zero values when only
	// the newest file is left.
	Next FileInfo
	Due  time.Time
}

// defaultExpireBatch is how many files go in one call.
const defaultExpireBatch = 10

// Expire removes files, oldest first, up to the first one that must stay, and moves Min. Views of removed files stay
// valid until they are released; see Hanging. On an error the result tells what was removed before it.
func (l *Log) Expire(r ExpireRules) (ExpireResult, error) {
	var res ExpireResult
	if l.cfg.ReadOnly {
		return res, ErrReadOnly
	}
	limit := r.MaxFiles
	if limit <= 0 {
		limit = defaultExpireBatch
	}
	for {
		segs := l.list()
		if len(segs) < 2 || !l.recovered.Load() {
			return res, nil
		}
		info, err := l.info(segs[0])
		if err != nil {
			return res, err
		}
		res.Next, res.Due = info, info.ModTime.Add(r.Reserved)
		if len(res.Removed) == limit || !r.May(info) {
			return res, nil
		}
		if err := l.removeOldest(segs[0], info); err != nil {
			return res, err
		}
		res.Removed = append(res.Removed, info)
		res.Bytes += info.Size
		res.Next, res.Due = FileInfo{}, time.Time{}
	}
}

// removeOldest takes the first file out of the list and from the disk.
func (l *Log) removeOldest(s *segment, info FileInfo) error {
	s.leaving.Store(true)
	if err := l.cfg.FS.Remove(s.path); err != nil {
		s.leaving.Store(false)
		return fmt.Errorf("cannot remove expired commit log file: %w", err)
	}
	failpoint.Pass(failpoint.LogRemoved)
	l.segMu.Lock()
	if segs := l.list(); len(segs) > 0 && segs[0] == s {
		l.setList(slices.Clone(segs[1:]))
	}
	l.segMu.Unlock()
	if f := l.drop(s); f != nil && f.Leases() > 0 {
		l.hanging.Lock()
		l.hanging.files = append(l.hanging.files, hangingFile{info: info, file: f, removed: l.cfg.Clock.Now()})
		l.hanging.Unlock()
	}
	if err := l.cfg.FS.SyncDir(l.cfg.Dir); err != nil {
		return fmt.Errorf("cannot remove expired commit log file: %w", err)
	}
	return nil
}

// HangingFile is a removed file whose space is not free yet, because views of it are held.
type HangingFile struct {
	FileInfo
	Leases  int
	Removed time.Time
}

type hangingFile struct {
	info    FileInfo
	file    *mapped.File
	removed time.Time
}

// Hanging lists removed files that are still held.
func (l *Log) Hanging() []HangingFile {
	l.hanging.Lock()
	defer l.hanging.Unlock()
	l.hanging.files = slices.DeleteFunc(l.hanging.files, func(h hangingFile) bool { return h.file.Leases() == 0 })
	out := make([]HangingFile, 0, len(l.hanging.files))
	for _, h := range l.hanging.files {
		out = append(out, HangingFile{FileInfo: h.info, Leases: h.file.Leases(), Removed: h.removed})
	}
	return out
}

// ReclaimHanging gives back the space of files that were removed before t, although they are still held: readers get
// errors instead of bytes (see View). It returns the bytes given back.
func (l *Log) ReclaimHanging(t time.Time) (int64, error) {
	l.hanging.Lock()
	defer l.hanging.Unlock()
	var bytes int64
	var err error
	l.hanging.files = slices.DeleteFunc(l.hanging.files, func(h hangingFile) bool {
		if err != nil || !h.removed.Before(t) {
			return false
		}
		if leases := h.file.Leases(); leases > 0 {
			if err = h.file.Truncate(0); err != nil {
				err = fmt.Errorf("cannot free the space of removed %q: %w", h.info.Path, err)
				return false
			}
			l.cfg.Logger.Warn("space of a removed commit log file freed although it is in use",
				"path", h.info.Path, "leases", leases)
			bytes += h.info.Size
		}
		return true
	})
	return bytes, err
}
