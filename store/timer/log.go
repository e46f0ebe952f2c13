package timer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"mqx/internal/vfs"
)

var (
	errBlank = errors.New("the rest of the file is empty")
	// errOutside says that a position lies outside the log.
	errOutside = errors.New("position outside the timer log")
)

// nameLen is the length of a file's name: the position of its first byte.
const nameLen = 20

// files is the timer log on disk: files of one size, one after the other. It is not safe to share, but for sync.
type files struct {
	fs       vfs.FS
	dir      string
	size     layout
	starts   []int64 // ascending, without a gap
	open     map[int64]vfs.File
	used     []int64 // of open, the one used last at the end
	end      int64   // where the next unit goes, before layout.next
	unsynced []int64 // starts of files written since the last sync
	names    bool    // a file was made since then

	winAt int64 // a window read of the log
	win   []byte
}

// maxOpen bounds the open files of the log.
const maxOpen = 8

// windowBytes are read of the log at once when it is followed backwards.
const windowBytes = 16 << 10

// openFiles finds the files of a timer log. Files that are not behind one another are an error; a missing directory is an
// empty log. The end is not known yet: it is behind the last file.
func openFiles(fsys vfs.FS, dir string, size int64) (*files, error) {
	l := &files{fs: fsys, dir: dir, size: layout(size), open: map[int64]vfs.File{}, winAt: -1}
	var err error
	if l.starts, err = logStarts(fsys, dir); err != nil {
		return nil, err
	}
	for i, start := range l.starts {
		if start%size != 0 || i > 0 && start != l.starts[i-1]+size {
			return nil, fmt.Errorf("cannot open timer log: file %020d is not one of files of %d bytes in a row (mappedFileSizeTimerLog)", start, size)
		}
		st, err := fsys.Stat(l.path(start))
		if err != nil {
			return nil, fmt.Errorf("cannot open timer log: %w", err)
		}
		if st.Size() > size {
			return nil, fmt.Errorf("cannot open timer log: file %020d has %d bytes, mappedFileSizeTimerLog is %d", start, st.Size(), size)
		}
	}
	if n := len(l.starts); n > 0 {
		l.end = l.starts[n-1] + size
	}
	return l, nil
}

// logStarts lists the files of a timer log by the position of their first byte.
func logStarts(fsys vfs.FS, dir string) ([]int64, error) {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open timer log: %w", err)
	}
	var starts []int64
	for _, e := range entries {
		if start, err := strconv.ParseInt(e.Name(), 10, 64); err == nil && len(e.Name()) == nameLen && start >= 0 && !e.IsDir() {
			starts = append(starts, start)
		}
	}
	slices.Sort(starts)
	return starts, nil
}

func (l *files) path(start int64) string { return filepath.Join(l.dir, fmt.Sprintf("%020d", start)) }

func (l *files) min() int64 {
	if len(l.starts) == 0 {
		return l.end
	}
	return l.starts[0]
}

// file returns the open file that starts at a position.
func (l *files) file(start int64) (vfs.File, error) {
	if i := slices.Index(l.used, start); i >= 0 {
		l.used = append(slices.Delete(l.used, i, i+1), start)
		return l.open[start], nil
	}
	if _, ok := slices.BinarySearch(l.starts, start); !ok {
		return nil, errOutside
	}
	f, err := l.fs.OpenFile(l.path(start), os.O_RDWR)
	if err != nil {
		return nil, err
	}
	for len(l.used) >= maxOpen {
		old := l.used[0]
		l.used = l.used[1:]
		_ = l.open[old].Close() // what it holds is synced by name
		delete(l.open, old)
	}
	l.open[start], l.used = f, append(l.used, start)
	return f, nil
}

// create makes the file that starts at a position.
func (l *files) create(start int64) error {
	if len(l.starts) == 0 {
		if err := vfs.MkdirAllDurable(l.fs, l.dir); err != nil {
			return err
		}
	}
	f, err := l.fs.OpenFile(l.path(start), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(int64(l.size)), f.Close()); err != nil {
		return err
	}
	l.starts = append(l.starts, start)
	l.names = true
	return nil
}

// write puts bytes at a position, which must not reach over the end of a file.
func (l *files) write(b []byte, pos int64) error {
	start := pos - pos%int64(l.size)
	if _, ok := slices.BinarySearch(l.starts, start); !ok {
		if n := len(l.starts); n > 0 && start != l.starts[n-1]+int64(l.size) {
			return errOutside
		}
		if err := l.create(start); err != nil {
			return err
		}
	}
	f, err := l.file(start)
	if err != nil {
		return err
	}
	if !slices.Contains(l.unsynced, start) {
		l.unsynced = append(l.unsynced, start)
	}
	if l.winAt >= 0 && pos < l.winAt+int64(len(l.win)) && l.winAt < pos+int64(len(b)) {
		l.winAt = -1
	}
	_, err = f.WriteAt(b, pos-start)
	return err
}

// unit reads the unit at a position, in a window that reaches back, since chains are followed backwards.
func (l *files) unit(pos int64) (Unit, error) {
	if pos < l.min() || pos >= l.end || !l.size.aligned(pos) {
		return Unit{}, fmt.Errorf("%w: %d", errOutside, pos)
	}
	if l.winAt < 0 || pos < l.winAt || pos+UnitSize > l.winAt+int64(len(l.win)) {
		start := pos - pos%int64(l.size)
		from := max(start, pos+UnitSize-windowBytes)
		if err := l.read(from, int(pos+UnitSize-from)); err != nil {
			return Unit{}, err
		}
	}
	u, err := DecodeUnit(l.win[pos-l.winAt:])
	return u, at(err, pos)
}

// at gives a UnitError its position.
func at(err error, pos int64) error {
	var bad *UnitError
	if errors.As(err, &bad) {
		bad.Pos = pos
	}
	return err
}

// read fills the window; a file that is too short reads as zeros.
func (l *files) read(from int64, n int) error {
	start := from - from%int64(l.size)
	f, err := l.file(start)
	if err != nil {
		l.winAt = -1
		return err
	}
	l.win = slices.Grow(l.win[:0], n)[:n]
	clear(l.win)
	l.winAt = from
	if _, err := f.ReadAt(l.win, from-start); err != nil && !errors.Is(err, io.EOF) {
		l.winAt = -1
		return fmt.Errorf("cannot read timer log: %w", err)
	}
	return nil
}

// scanBytes are read at once when the log is read forwards.
const scanBytes = 256 << 10

// scan calls f with the units from a position on, until f returns false, and returns the position where there is no unit
// any more.
func (l *files) scan(pos, limit int64, f func(pos int64, u Unit) bool) (int64, error) {
	for pos < limit {
		fileEnd := pos - pos%int64(l.size) + int64(l.size)
		n := min(scanBytes/UnitSize*UnitSize, fileEnd-pos)
		if err := l.read(pos, int(n)); errors.Is(err, errOutside) {
			return pos, nil
		} else if err != nil {
			return pos, err
		}
		buf := l.win
		for len(buf) >= UnitSize || fileEnd-pos < UnitSize+blankSize {
			if fileEnd-pos < UnitSize+blankSize {
				pos = fileEnd // there is nothing but the mark
				break
			}
			if pos >= limit {
				return pos, nil
			}
			u, err := DecodeUnit(buf)
			if errors.Is(err, errBlank) {
				pos = fileEnd
				break
			}
			if err != nil {
				return pos, nil //nolint:nilerr // the end
			}
			if !f(pos, u) {
				return pos, nil
			}
			pos += UnitSize
			buf = buf[UnitSize:]
		}
	}
	return pos, nil
}

// takeUnsynced returns what sync has to do.
func (l *files) takeUnsynced() (starts []int64, names bool) {
	starts, names = l.unsynced, l.names
	l.unsynced, l.names = nil, false
	return starts, names
}

// sync makes files durable. It uses nothing that changes and may run beside the rest.
func (l *files) sync(starts []int64, names bool) error {
	for _, start := range starts {
		f, err := l.fs.OpenFile(l.path(start), os.O_RDWR)
		if errors.Is(err, fs.ErrNotExist) {
			continue // expired
		}
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	if names {
		return l.fs.SyncDir(l.dir)
	}
	return nil
}

// cut ends the log at a position: what lies behind is zeroed or removed, durably, so that it cannot come back.
func (l *files) cut(pos int64) error {
	for n := len(l.starts); n > 0 && l.starts[n-1] >= pos && l.starts[n-1] > 0; n = len(l.starts) {
		if err := l.remove(n - 1); err != nil {
			return err
		}
	}
	l.end, l.winAt = pos, -1
	n := len(l.starts)
	if n == 0 || l.starts[n-1]+int64(l.size) <= pos {
		return l.fs.SyncDir(filepath.Dir(l.dir))
	}
	start := l.starts[n-1]
	f, err := l.file(start)
	if err != nil {
		return err
	}
	// A hole costs nothing and holds nothing.
	if err := f.Truncate(pos - start); err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(int64(l.size)), f.Sync()); err != nil {
		return err
	}
	return l.fs.SyncDir(l.dir)
}

// remove removes the file of an index of starts.
func (l *files) remove(i int) error {
	start := l.starts[i]
	if j := slices.Index(l.used, start); j >= 0 {
		_ = l.open[start].Close()
		delete(l.open, start)
		l.used = slices.Delete(l.used, j, j+1)
	}
	if err := l.fs.Remove(l.path(start)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.starts = slices.Delete(l.starts, i, i+1)
	l.winAt = -1
	return nil
}

func (l *files) close() error {
	var errs []error
	for _, f := range l.open {
		errs = append(errs, f.Close())
	}
	l.open, l.used = map[int64]vfs.File{}, nil
	return errors.Join(errs...)
}
