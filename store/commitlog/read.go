package commitlog

import (
	"errors"
	"fmt"
	"io"
)

// View returns n bytes at off as a slice of the mapped file, which is valid until release is called (once). The bytes
// must lie within one file. It never copies and may fault on bytes that are not in memory: use it for recent ones.
// Reading the slice of a file that somebody truncated faults; mapped.Guard turns that into an error.
func (l *Log) View(off int64, n int) (b []byte, release func(), err error) {
	s, err := l.locate(off, int64(n))
	if err != nil {
		return nil, nil, err
	}
	f, err := l.open(s)
	if err != nil {
		return nil, nil, err
	}
	defer f.Release()
	return f.View(off-s.start, n)
}

// ReadAt reads len(b) bytes at off with pread, over file boundaries. It is all or nothing.
func (l *Log) ReadAt(b []byte, off int64) error {
	for len(b) > 0 {
		s, err := l.locate(off, 1)
		if err != nil {
			return err
		}
		n := min(int64(len(b)), s.end()-off)
		if off+n > l.readable() {
			return l.rangeError(off, n)
		}
		if err := l.readSegment(s, b[:n], off); err != nil {
			return err
		}
		b, off = b[n:], off+n
	}
	return nil
}

// locate returns the segment that holds [off, off+n) if that can be read.
func (l *Log) locate(off, n int64) (*segment, error) {
	if n < 0 || off < 0 || off > l.readable()-n {
		return nil, l.rangeError(off, n)
	}
	if s := l.segmentOf(off, n); s != nil {
		return s, nil
	}
	return nil, l.rangeError(off, n)
}

func (l *Log) rangeError(off, n int64) error {
	return &RangeError{Off: off, Len: n, Min: l.Min(), End: l.readable()}
}

// readable is the end of what may be read: of the files before the log is recovered, of the log afterwards.
func (l *Log) readable() int64 {
	if l.recovered.Load() {
		return l.end.Load()
	}
	return l.diskEnd()
}

// diskEnd is the end of the newest file.
func (l *Log) diskEnd() int64 {
	if segs := l.list(); len(segs) > 0 {
		return segs[len(segs)-1].end()
	}
	return l.end.Load()
}

// readSegment reads within one file. What a file that is too short lacks reads as zeros.
func (l *Log) readSegment(s *segment, b []byte, off int64) error {
	f, err := l.open(s)
	if err != nil {
		return err
	}
	defer f.Release()
	n, err := f.ReadAt(b, off-s.start)
	if errors.Is(err, io.EOF) {
		if l.recovered.Load() && !l.cfg.ReadOnly {
			return fmt.Errorf("cannot read %d bytes at commit log offset %d: %q is cut short: %w",
				len(b), off, s.path, io.ErrUnexpectedEOF)
		}
		clear(b[n:])
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read commit log at %d: %w", off, err)
	}
	return nil
}
