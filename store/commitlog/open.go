package commitlog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"mqx/internal/vfs"
)

// found is a file of the directory.
type found struct {
	path        string
	start, size int64
}

// Open lists the files of cfg.Dir without scanning them. Sizes found on disk are honoured. An empty last file is
// removed and a short one extended with zeros, each with a warning. The log takes no records before SetEnd or
// Truncate, unless it has no files. It starts nothing: see Run.
func Open(cfg Config) (*Log, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	l := newLog(cfg)
	files, err := l.scanDir()
	if err != nil {
		return nil, err
	}
	if files, err = l.dropEmptyTail(files); err != nil {
		return nil, err
	}
	l.fileSize = detectFileSize(files, cfg.FileSize)
	if l.fileSize != cfg.FileSize {
		cfg.Logger.Info("commit log keeps the file size found on disk",
			"dir", cfg.Dir, "found", l.fileSize, "configured", cfg.FileSize)
	}
	segs, err := l.makeSegments(files)
	if err != nil {
		return nil, err
	}
	l.setList(segs)
	if len(segs) == 0 {
		l.app.ready = true
		l.recovered.Store(true)
		return l, nil
	}
	l.end.Store(segs[0].start)
	l.flushed.Store(segs[0].start)
	return l, nil
}

func (l *Log) scanDir() ([]found, error) {
	entries, err := l.cfg.FS.ReadDir(l.cfg.Dir)
	if errors.Is(err, fs.ErrNotExist) && !l.cfg.ReadOnly {
		if err := vfs.MkdirAllDurable(l.cfg.FS, l.cfg.Dir); err != nil {
			return nil, fmt.Errorf("cannot create commit log directory: %w", err)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list commit log: %w", err)
	}
	var files []found
	for _, e := range entries {
		start, ok := parseName(e.Name())
		path := filepath.Join(l.cfg.Dir, e.Name())
		if !ok || e.IsDir() {
			l.cfg.Logger.Warn("commit log directory holds something else", "path", path)
			continue
		}
		st, err := l.cfg.FS.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("cannot open commit log file: %w", err)
		}
		files = append(files, found{path: path, start: start, size: st.Size()})
	}
	slices.SortFunc(files, func(a, b found) int { return cmp.Compare(a.start, b.start) })
	return files, nil
}

// dropEmptyTail removes files of no bytes from the end of the list: a crash left them between their creation and
// their sizing.
func (l *Log) dropEmptyTail(files []found) ([]found, error) {
	for len(files) > 0 && files[len(files)-1].size == 0 {
		last := files[len(files)-1]
		files = files[:len(files)-1]
		if l.cfg.ReadOnly {
			continue
		}
		l.cfg.Logger.Warn("empty last commit log file removed", "path", last.path)
		if err := l.cfg.FS.Remove(last.path); err != nil {
			return nil, fmt.Errorf("cannot remove empty commit log file: %w", err)
		}
		if err := l.cfg.FS.SyncDir(l.cfg.Dir); err != nil {
			return nil, fmt.Errorf("cannot remove empty commit log file: %w", err)
		}
	}
	return files, nil
}

// singleFileUnit is what the size of a lone file must be a multiple of to be taken for the size of the files.
const singleFileUnit = 4096

// detectFileSize returns the size that the files were made with. The newest file that ends where its successor starts
// tells; else the newest one that has a successor. A lone file, which may be cut short, tells when it is longer than
// configured, or has a size and a place that a file size would have.
func detectFileSize(files []found, configured int64) int64 {
	for i := len(files) - 2; i >= 0; i-- {
		if f := files[i]; f.size >= minFileSize && f.start+f.size == files[i+1].start {
			return f.size
		}
	}
	if n := len(files); n >= 2 && files[n-2].size >= minFileSize {
		return files[n-2].size
	}
	if len(files) == 1 {
		f := files[0]
		if f.size > configured || f.size >= 16*singleFileUnit && f.size%singleFileUnit == 0 && f.start%f.size == 0 {
			return f.size
		}
	}
	return configured
}

// makeSegments decides about the extent of each file and brings short ones to their size.
func (l *Log) makeSegments(files []found) ([]*segment, error) {
	segs := make([]*segment, 0, len(files))
	for i, f := range files {
		next := int64(1<<63 - 1)
		if i+1 < len(files) {
			next = files[i+1].start
		}
		s := &segment{path: f.path, start: f.start, size: f.size}
		switch {
		case f.start+f.size > next:
			l.cfg.Logger.Warn("commit log file overlaps the next one", "path", f.path, "size", f.size, "next", next)
			s.size = next - f.start
		case f.size < l.fileSize && f.start+f.size < next:
			s.size = min(l.fileSize, next-f.start)
			if err := l.extend(s, f.size); err != nil {
				return nil, err
			}
		}
		s.reserved.Store(s.start)
		segs = append(segs, s)
	}
	return segs, nil
}

// extend brings a file that is too short to its size; what is missing reads as zeros.
func (l *Log) extend(s *segment, size int64) error {
	l.cfg.Logger.Warn("commit log file is too short and is filled up with zeros",
		"path", s.path, "size", size, "want", s.size)
	if l.cfg.ReadOnly {
		return nil
	}
	f, err := l.open(s)
	if err != nil {
		return err
	}
	defer f.Release()
	if err := f.Truncate(s.size); err != nil {
		return fmt.Errorf("cannot extend commit log file: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("cannot extend commit log file: %w", err)
	}
	return nil
}
