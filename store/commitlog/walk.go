package commitlog

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"mqx/message"
	"mqx/store/mapped"
)

// WalkOptions say how far and how carefully to walk.
type WalkOptions struct {
	// To ends the walk: records that start before it are delivered. 0 means End of a recovered log, and everything
	// there is on disk otherwise.
	To int64
	// VerifyBody checks the checksum of each body.
	VerifyBody bool
	// VerifyProp checks the checksum property instead in records that carry one.
	VerifyProp bool
	// VerifyEnd takes the last record for torn when its properties end in a zero byte and it carries no checksum: bytes of it did
	// not come. It is for the search of a start.
	VerifyEnd bool
	// Hot reads through the mapping, without copying: for bytes that were appended a moment ago.
	Hot bool
	// OnFinding is told about what is skipped. An error ends the walk with it.
	OnFinding func(Finding) error
}

// Finding is a range that holds no readable record and that was stepped over, because records follow.
type Finding struct {
	Kind     FindingKind
	From, To int64  // To is where the next record, or the next file, starts
	Path     string // file of From; Hole: the first missing file
	Err      error  // Rot: what is wrong at From
}

// FindingKind names a kind of finding.
type FindingKind int

const (
	// Rot is a broken record, or several, with a whole record behind.
	Rot FindingKind = iota + 1
	// Hole is one missing file, or several in a row.
	Hole
)

// EndReason says why a walk ended.
type EndReason int

const (
	// EndLimit says that WalkOptions.To was reached.
	EndLimit EndReason = iota + 1
	// EndOfData says that nothing but zeros follow.
	EndOfData
	// EndTorn says that bytes follow that are no whole record, and that no whole record follows them. WalkEnd.Err says
	// what is wrong.
	EndTorn
	// EndStopped says that the callback, or OnFinding, returned ErrStop or an error.
	EndStopped
)

func (r EndReason) String() string {
	switch r {
	case EndLimit:
		return "limit"
	case EndOfData:
		return "end of data"
	case EndTorn:
		return "torn"
	case EndStopped:
		return "stopped"
	}
	return "unknown"
}

// WalkEnd tells where and why a walk ended.
type WalkEnd struct {
	Offset    int64 // where the next record would start
	Reason    EndReason
	Last      int64  // start of the last record delivered, -1 when there was none
	LastStore int64  // its store time in milliseconds
	Records   int64  // delivered
	Path      string // file of Offset
	Err       error  // EndTorn: what is wrong at Offset
}

// Reasons why no record starts at a place, beside those of package message.
var (
	errZeros      = errors.New("zeros where a record should start")
	errWrongPlace = errors.New("record carries another physical offset")
	errCrossesEnd = errors.New("record is longer than the rest of the file")
	errSector     = errors.New("a sector of the properties was never written")
	errPart       = errors.New("the end of the properties was never written")
)

// Walk delivers the records from the record (or file start) at from on, over blanks, file ends, holes and rot. The
// record is only valid during the call. When f returns an error, the record counts as not delivered: ErrStop ends the
// walk without an error, others are returned.
func (l *Log) Walk(from int64, o WalkOptions, f func(off int64, rec message.View) error) (WalkEnd, error) {
	w, err := l.newWalker(from, o)
	if err != nil {
		return WalkEnd{Offset: from, Last: -1}, err
	}
	defer w.close()
	if o.Hot {
		err = w.walkGuarded(from, f)
	} else {
		err = w.walk(from, f)
	}
	if err != nil && errors.Is(err, ErrStop) {
		err = nil
	}
	if s := l.segmentOf(w.end.Offset, 0); s != nil {
		w.end.Path = s.path
	}
	return w.end, err
}

// walker is one walk. It belongs to one goroutine.
type walker struct {
	l     *Log
	o     WalkOptions
	opts  message.DecodeOptions
	segs  []*segment
	to    int64 // records from here on are not delivered
	limit int64 // bytes from here on are not looked at
	end   WalkEnd

	seg     *segment // whose bytes are in win
	win     []byte   // bytes at winOff
	winOff  int64
	buf     []byte // pread: backs win
	release func() // Hot: the lease of win
}

// walkChunk is how much is read at once: little enough to stay in the cache of a core while it is checked.
const walkChunk = 256 << 10

var walkers = sync.Pool{New: func() any { return new(walker) }}

func (l *Log) newWalker(from int64, o WalkOptions) (*walker, error) {
	w := walkers.Get().(*walker)
	*w = walker{l: l, o: o, to: o.To, end: WalkEnd{Offset: from, Last: -1}, buf: w.buf}
	w.limit = l.readable()
	w.segs = l.list()
	if w.to <= 0 {
		w.to = math.MaxInt64
		if l.recovered.Load() {
			w.to = w.limit
		}
	}
	w.opts = message.DecodeOptions{VerifyBodyCRC: o.VerifyBody}
	if from < l.Min() || from > w.limit {
		w.close()
		return nil, l.rangeError(from, 0)
	}
	return w, nil
}

func (w *walker) close() {
	if w.release != nil {
		w.release()
	}
	*w = walker{buf: w.buf}
	if cap(w.buf) <= walkChunk {
		walkers.Put(w)
	}
}

func (w *walker) walkGuarded(off int64, f func(int64, message.View) error) (err error) {
	defer mapped.Unguard(mapped.SetGuard(), &err)
	return w.walk(off, f)
}

func (w *walker) walk(off int64, f func(int64, message.View) error) error {
	for {
		w.end.Offset = off
		if off >= w.to {
			w.end.Reason = EndLimit
			return nil
		}
		s, next, err := w.enter(off)
		if err != nil {
			return w.stop(err)
		}
		if s == nil {
			w.end.Reason = EndOfData
			return nil
		}
		if next != off {
			off = next
			continue
		}
		rec, next, broken, err := w.record(s, off)
		switch {
		case err != nil:
			return w.stop(err)
		case broken != nil:
			if next, err = w.skip(off, broken); err != nil {
				return w.stop(err)
			}
			if next < 0 {
				return nil
			}
		case rec != nil:
			if err := f(off, rec); err != nil {
				return w.stop(err)
			}
			w.end.Last, w.end.LastStore = off, rec.StoreTimestamp()
			w.end.Records++
		}
		off = next
	}
}

func (w *walker) stop(err error) error {
	w.end.Reason = EndStopped
	return err
}

// enter finds the file that holds off. Between files it reports the hole and returns where to go on; s is nil when
// there is nothing behind off.
func (w *walker) enter(off int64) (s *segment, next int64, err error) {
	if off >= w.limit {
		return nil, off, nil
	}
	if w.seg != nil && off >= w.seg.start && off < w.seg.end() {
		return w.seg, off, nil
	}
	i := find(w.segs, off)
	if i == len(w.segs) {
		return nil, off, nil
	}
	s = w.segs[i]
	if off >= s.start {
		return s, off, nil
	}
	hole := Finding{Kind: Hole, From: off, To: s.start, Path: segmentPath(w.l.cfg.Dir, off)}
	return s, s.start, w.found(hole)
}

func (w *walker) found(x Finding) error {
	if w.o.OnFinding == nil {
		return nil
	}
	return w.o.OnFinding(x)
}

// record returns what starts at off: a record and where the next one starts, or nil and the end of the file for a
// blank. broken says why it is neither; err is that of reading.
func (w *walker) record(s *segment, off int64) (rec message.View, next int64, broken, err error) {
	end := min(s.end(), w.limit)
	if end-off < message.BlankLen {
		if end == s.end() {
			return nil, s.end(), nil, nil // no room for anything
		}
		return nil, 0, message.ErrShort, nil
	}
	b, err := w.window(s, off, message.BlankLen)
	if err != nil {
		return nil, 0, nil, err
	}
	rec, broken = message.ParseView(b, w.opts)
	if errors.Is(broken, message.ErrShort) {
		size, _, _ := message.PeekRecord(b)
		if off+int64(size) > end || size > maxRecordSize {
			return nil, 0, fmt.Errorf("%w: %d bytes", errCrossesEnd, size), nil
		}
		if b, err = w.window(s, off, int64(size)); err != nil {
			return nil, 0, nil, err
		}
		rec, broken = message.ParseView(b, w.opts)
	}
	switch {
	case errors.Is(broken, message.ErrBlank):
		return nil, s.end(), nil, nil
	case broken != nil:
		if [8]byte(b[:8]) == [8]byte{} {
			broken = errZeros
		}
		return nil, 0, broken, nil
	case rec.PhysicalOffset() != off:
		return nil, 0, fmt.Errorf("%w: %d", errWrongPlace, rec.PhysicalOffset()), nil
	}
	if w.o.VerifyBody && lacksSector(rec, off-s.start) {
		return nil, 0, errSector, nil
	}
	if w.o.VerifyEnd && lacksEnd(rec) {
		follows, err := w.follows(s, off+int64(len(rec)))
		if err != nil || !follows {
			return nil, 0, errPart, err
		}
	}
	if w.o.VerifyProp && message.HasPropCRC(rec) {
		if _, broken = message.ParseView(rec, message.DecodeOptions{VerifyPropCRC: true}); broken != nil {
			return nil, 0, broken, nil
		}
	}
	return rec, off + int64(len(rec)), nil, nil
}

// window returns the bytes at off, at least n of them, which must lie in s before the limit.
func (w *walker) window(s *segment, off, n int64) ([]byte, error) {
	if w.seg == s && off >= w.winOff && off+n <= w.winOff+int64(len(w.win)) {
		return w.win[off-w.winOff:], nil
	}
	end := min(s.end(), w.limit)
	if w.o.Hot {
		return w.mapWindow(s, off, end)
	}
	size := min(max(n, walkChunk), end-off)
	if int64(cap(w.buf)) < size {
		w.buf = make([]byte, max(size, walkChunk))
	}
	w.seg = nil
	win := w.buf[:size]
	if err := w.l.readSegment(s, win, off); err != nil {
		return nil, err
	}
	w.seg, w.win, w.winOff = s, win, off
	return win, nil
}

// mapWindow makes the file from its start to end the window.
func (w *walker) mapWindow(s *segment, off, end int64) ([]byte, error) {
	if w.release != nil {
		w.release()
		w.release, w.seg = nil, nil
	}
	f, err := w.l.open(s)
	if err != nil {
		return nil, err
	}
	defer f.Release()
	win, release, err := f.View(0, int(end-s.start))
	if err != nil {
		return nil, err
	}
	w.seg, w.win, w.winOff, w.release = s, win, s.start, release
	return win[off-s.start:], nil
}
