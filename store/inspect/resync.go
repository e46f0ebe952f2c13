package inspect

import (
	"errors"
	"io"
	"slices"

	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store/commitlog"
)

// scanChunk is how much is searched at once for a whole record behind a broken place: it stays in the cache of a core.
const scanChunk = 128 << 10

// beginChunk is the same where a part of a sound log begins, and the next record is near.
const beginChunk = 32 << 10

// skip looks for a whole record behind a place where none starts. When there is one, what lies between is rot, and the
// walk goes on at the record. When there is none the walk ends (-1): with EndTorn, or with EndOfData when there is
// nothing but zeros.
func (w *walker) skip(off int64, why error, rec message.View) (next int64, err error) {
	rec = slices.Clone(rec) // the window may move
	s := &scanner{w: w, from: off, pos: off, tornTo: off}
	if next, err = s.next(); err != nil {
		return 0, err
	}
	b := Break{Kind: BreakRot, From: off, To: next, Path: w.file.Path, Err: why, Record: rec}
	if next >= 0 {
		written, again := w.wasWritten(off)
		if written {
			return off, nil
		}
		b.Record = again // the bytes of the first reading are gone
		return next, w.found(b)
	}
	if s.tornTo == off && errors.Is(why, errZeros) {
		w.end.Reason = EndOfData
		return -1, nil
	}
	w.end.Reason, w.end.Err = EndTorn, why
	b.Kind, b.To = BreakTorn, s.tornTo
	return -1, w.found(b)
}

// wasWritten reads a broken place once more, after a whole record was seen behind it: a broker that is running may have
// been writing the one while it was read, and has written it before the other. It happens once at a place.
// When it is broken still, rec is the record if only its checksum is wrong.
func (w *walker) wasWritten(off int64) (written bool, rec message.View) {
	w.r.win = nil
	v, next, why, err := w.record(off)
	switch {
	case err != nil:
		return false, nil
	case why != nil:
		return false, v
	}
	seen := w.again == off
	w.again = off
	return !seen && (v != nil || next > off), nil
}

// scanner searches the bytes behind a broken place for the next whole record: right magic and size, right body, carrying
// its own place, and not stored before the last good one. The last condition sorts out what an Apache broker leaves
// behind the end of its log when it cuts it, which it does without clearing the bytes.
type scanner struct {
	w      *walker
	from   int64 // where no record starts
	pos    int64 // searched up to here
	tornTo int64 // behind the last byte that is not zero
	last   int64 // store time of the last good record, 0 for none
	buf    []byte
}

func (s *scanner) next() (int64, error) {
	l, limit := s.w.l, s.w.limit
	if n := s.w.o.SearchBehind; n > 0 && limit-s.from > n {
		limit = s.from + n
	}
	if s.w.end.Last >= 0 {
		if v, err := l.Record(s.w.end.Last); err == nil {
			s.last = v.StoreTimestamp()
		}
	}
	for i := l.fileIndex(s.from); i < len(l.files); i++ {
		f := l.files[i]
		if f.Start >= limit {
			break
		}
		s.pos = max(s.pos, f.Start)
		if found, err := s.searchFile(f, min(f.End(), limit)); err != nil || found >= 0 {
			return found, err
		}
	}
	return -1, nil
}

func (s *scanner) searchFile(f File, end int64) (int64, error) {
	file, done, err := s.w.l.d.fds.use(f.Path)
	if err != nil {
		return 0, err
	}
	defer done()
	for s.pos < end {
		if err := s.w.ctx.Err(); err != nil {
			return 0, err
		}
		if s.pos, err = nextData(file, f, s.pos, end); err != nil {
			return 0, err
		}
		if s.buf == nil {
			s.buf = make([]byte, scanChunk)
		}
		n := min(end-s.pos, int64(len(s.buf)))
		if n <= 0 {
			break
		}
		b := s.buf[:n]
		if err := readFull(file, b, s.pos-f.Start); err != nil {
			return 0, err
		}
		if t := lastNonzero(b); t >= 0 {
			s.tornTo = s.pos + int64(t) + 1
		}
		if found, err := s.searchChunk(f, b, end); err != nil || found >= 0 {
			return found, err
		}
		if s.pos+n >= end {
			s.pos = end
		} else {
			s.pos += n - commitlog.ScanHead // the head of a record may lie across the border
		}
	}
	return -1, nil
}

// searchChunk tries every place in b, the bytes at pos, where a record may start.
func (s *scanner) searchChunk(f File, b []byte, end int64) (int64, error) {
	for at := commitlog.NextHead(b, s.pos, 0); at >= 0; at = commitlog.NextHead(b, s.pos, at+1) {
		off := s.pos + int64(at)
		if off <= s.from {
			continue
		}
		if ok, err := s.check(f, off, end); err != nil || ok {
			return off, err
		}
	}
	return -1, nil
}

// check reads the record at off and tells whether it is whole.
func (s *scanner) check(f File, off, end int64) (bool, error) {
	size, why, err := s.w.l.frame(f, off, end)
	if err != nil || why != nil {
		return false, err
	}
	b := make([]byte, size)
	if err := s.w.l.d.fds.readAt(f.Path, b, off-f.Start); err != nil {
		return false, err
	}
	v, why := message.ParseView(b, message.DecodeOptions{VerifyBodyCRC: true})
	whole := why == nil && v.PhysicalOffset() == off && !commitlog.Stale(v.StoreTimestamp(), s.last, s.w.l.d.o.Clock.Now()) &&
		!commitlog.LacksSector(v, off-f.Start)
	return whole, nil
}

// nextData moves over a hole of a file: the next position from pos on that may hold something, end when nothing does.
func nextData(file vfs.File, f File, pos, end int64) (int64, error) {
	seeker, ok := file.(vfs.DataSeeker)
	if !ok {
		return pos, nil
	}
	at, err := seeker.NextData(pos - f.Start)
	if errors.Is(err, io.EOF) {
		return end, nil
	}
	if err != nil {
		return 0, err
	}
	return max(pos, min(f.Start+at, end)), nil
}

// lastNonzero is the index of the last byte that is not zero, -1 when all are.
func lastNonzero(b []byte) int {
	const step = 4096 // many at a time
	for len(b) >= step && vfs.AllZero(b[len(b)-step:]) {
		b = b[:len(b)-step]
	}
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0 {
			return i
		}
	}
	return -1
}
