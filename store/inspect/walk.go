package inspect

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"mqx/internal/vfs"
	"mqx/internal/words"
	"mqx/message"
)

// WalkOptions say where and how carefully to walk.
type WalkOptions struct {
	// From is where a record, a blank or a file starts; below Min it counts as Min.
	From int64
	// To ends the walk: records that start before it are delivered. 0 means the end of the last file. What is found
	// broken before it is followed up to the next whole record wherever that is.
	To int64
	// VerifyBody compares the checksum of every body, and VerifyProp that of every record that carries one. A record
	// that fails is a break.
	VerifyBody, VerifyProp bool
	// StopAtZeros ends the walk where zeros stand in place of a record, without looking for one behind them.
	StopAtZeros bool
	// SearchBehind bounds how far behind a place without a record the next one is looked for. 0 means to the end of the log.
	SearchBehind int64
	// OnBreak is told of what is no record. Nil passes over it. An error ends the walk with it.
	OnBreak func(Break) error
	// OnRead is told how many bytes were read, piece by piece, for a progress bar.
	OnRead func(n int64)

	buf *[]byte // where a buffer to read into is taken from and left; nil for one of the walk's own
}

// BreakKind names what stands where a record should.
type BreakKind string

// Kinds of breaks.
const (
	BreakRot  BreakKind = "rot"  // broken bytes with a whole record behind them
	BreakHole BreakKind = "hole" // one or several files are missing between others
	BreakTorn BreakKind = "torn" // broken bytes, and no whole record of this log behind them
)

// Break is a range of the log that holds no readable record.
type Break struct {
	Kind     BreakKind
	From, To int64 // To: where the next record or file starts; for torn the end of the bytes that are not zero
	Path     string
	Err      error        // what is wrong at From; nil for a hole
	Record   message.View // a record whose frame is whole and whose checksum is not; valid during the call
}

// End says where and why a walk ended.
type End struct {
	Offset  int64 // where the next record would start
	Reason  EndReason
	Records int64
	Last    int64 // start of the last record, -1 for none
	LastEnd int64 // behind the last record delivered, -1 for none
	Blanks  int64 // file ends that were passed
	Err     error // EndTorn: what is wrong at Offset
}

// EndReason says why a walk ended.
type EndReason string

// Reasons.
const (
	EndOfData  EndReason = "end"     // only zeros follow, or nothing
	EndTorn    EndReason = "torn"    // bytes follow that are no record, and no record behind them
	EndLimit   EndReason = "limit"   // WalkOptions.To was reached
	EndStopped EndReason = "stopped" // a callback said so, or the context
)

// ErrStop is returned by a callback to end a walk without an error.
var ErrStop = errors.New("stop")

// Reasons why no record starts at a place, beside those of package message.
var (
	errZeros      = errors.New("zeros where a record should start")
	errCrossesEnd = errors.New("the record is longer than the rest of the file")
	errWrongPlace = errors.New("the record carries another physical offset")
)

func placeError(got int64) error { return fmt.Errorf("%w: %d", errWrongPlace, got) }

// Walk delivers the records from o.From on, in physical order, over blanks, file ends, holes and rot. A record is valid
// during the call. It belongs to one goroutine; several may walk different ranges at the same time.
func (l *Log) Walk(ctx context.Context, o WalkOptions, f func(off int64, rec message.View) error) (End, error) {
	w := &walker{l: l, ctx: ctx, o: o, to: o.To, end: End{Last: -1, LastEnd: -1}, again: -1}
	w.opts = message.DecodeOptions{VerifyBodyCRC: o.VerifyBody}
	if w.to <= 0 {
		w.to = noLimit
	}
	w.limit = l.Limit()
	if o.buf != nil {
		w.r.buf = *o.buf
		defer func() { *o.buf = w.r.buf }()
	}
	defer w.close()
	err := misfit(l.misfits, o.From, o.To)
	if err == nil {
		err = w.walk(max(o.From, l.Min()), f)
	}
	if errors.Is(err, ErrStop) {
		err = nil
	}
	return w.end, err
}

// walker is one walk.
type walker struct {
	l     *Log
	ctx   context.Context //nolint:containedctx // of one call of Walk
	o     WalkOptions
	opts  message.DecodeOptions
	to    int64 // records from here on are not delivered
	limit int64 // bytes from here on are not looked at
	end   End

	r       reader
	file    File // whose bytes are in the reader
	hasFile bool
	again   int64 // the last broken place that was read a second time
}

func (w *walker) close() { w.r.close() }

func (w *walker) walk(off int64, f func(int64, message.View) error) error {
	for n := 0; ; n++ {
		w.end.Offset = off
		if off >= w.to {
			w.end.Reason = EndLimit
			return nil
		}
		if n&1023 == 0 && w.ctx.Err() != nil {
			return w.stop(w.ctx.Err())
		}
		if !w.hasFile || off >= w.file.End() || off < w.file.Start {
			next, ok, err := w.enter(off)
			if err != nil {
				return w.stop(err)
			}
			if !ok {
				w.end.Reason = EndOfData
				return nil
			}
			if next != off {
				off = next
				continue
			}
		}
		rec, next, why, err := w.record(off)
		switch {
		case err != nil:
			return w.stop(err)
		case why != nil && w.o.StopAtZeros && errors.Is(why, errZeros):
			w.end.Reason = EndOfData
			return nil
		case why != nil:
			if next, err = w.skip(off, why, rec); err != nil {
				return w.stop(err)
			}
			if next < 0 {
				return nil
			}
		case rec == nil:
			w.end.Blanks++
		default:
			if err := f(off, rec); err != nil {
				return w.stop(err)
			}
			w.end.Last, w.end.LastEnd = off, next
			w.end.Records++
		}
		off = next
	}
}

func (w *walker) stop(err error) error {
	w.end.Reason = EndStopped
	return err
}

// enter opens the file that holds off. Between files it reports the hole and returns where to go on; ok is false when
// there is nothing behind off.
func (w *walker) enter(off int64) (next int64, ok bool, err error) {
	i := w.l.fileIndex(off)
	if i == len(w.l.files) || off >= w.limit || w.l.files[i].Start >= w.limit {
		return off, false, nil
	}
	f := w.l.files[i]
	if f.Start > off {
		hole := Break{Kind: BreakHole, From: off, To: f.Start, Path: filepath.Join(w.l.dirs[0], FileName(off))}
		return f.Start, true, w.found(hole)
	}
	if err := w.r.open(w.l.d, f.Path, w.o.OnRead); err != nil {
		return off, true, err
	}
	if w.to < f.End() { // what is behind is another walk's
		w.r.until = w.to - f.Start
	}
	w.file, w.hasFile = f, true
	return off, true, nil
}

func (w *walker) found(b Break) error {
	if w.o.OnBreak == nil {
		return nil
	}
	return w.o.OnBreak(b)
}

// record returns what starts at off: a record and where the next one starts, or nil and the end of the file for a blank.
// why says that it is neither; rec is then the record if only its checksum is wrong.
func (w *walker) record(off int64) (rec message.View, next int64, why, err error) {
	end := min(w.file.End(), w.limit)
	if end-off < message.BlankLen {
		if end == w.file.End() {
			return nil, w.file.End(), nil, nil // no room for anything
		}
		return nil, 0, message.ErrShort, nil
	}
	b, err := w.r.window(off-w.file.Start, min(end-off, message.MinRecordLen), end-w.file.Start)
	if err != nil {
		return nil, 0, nil, err
	}
	v, why := message.ParseView(b, w.opts)
	if errors.Is(why, message.ErrShort) {
		size, wrong, err := w.l.frame(w.file, off, end)
		if err != nil || wrong != nil {
			return nil, 0, wrong, err
		}
		if b, err = w.r.window(off-w.file.Start, size, end-w.file.Start); err != nil {
			return nil, 0, nil, err
		}
		v, why = message.ParseView(b, w.opts)
	}
	switch {
	case errors.Is(why, message.ErrBlank):
		return nil, w.file.End(), nil, nil
	case why != nil:
		if vfs.AllZero(b[:message.BlankLen]) {
			return nil, 0, errZeros, nil
		}
		return framed(b, off), 0, why, nil
	case v.PhysicalOffset() != off:
		return nil, 0, placeError(v.PhysicalOffset()), nil
	}
	if w.o.VerifyProp && message.HasPropCRC(v) {
		if _, why = message.ParseView(v, message.DecodeOptions{VerifyPropCRC: true}); why != nil {
			return v, 0, why, nil
		}
	}
	return v, off + int64(len(v)), nil, nil
}

// framed is the record at the start of b if all but its checksum is right.
func framed(b []byte, off int64) message.View {
	v, err := message.ParseView(b, message.DecodeOptions{})
	if err != nil || v.PhysicalOffset() != off {
		return nil
	}
	return v
}

// reader reads one file from front to back, a chunk at a time.
type reader struct {
	f      vfs.File
	advice vfs.Advised // nil when the system gives none
	onRead func(int64)
	buf    []byte
	win    []byte // bytes of the file at winOff
	winOff int64

	// what is dropped from the page cache once it was read: it was not there before.
	stretch, dropTo int64
	until           int64 // nothing is dropped from here on; 0: to the end
	cold            bool
}

const (
	// readChunk is how much is read at once: little enough to stay in the cache of a core while it is looked at.
	readChunk = 256 << 10
	// stretchBytes is the unit in which the page cache is asked and given back.
	stretchBytes = 8 << 20
)

func (r *reader) open(d *Dir, path string, onRead func(int64)) error {
	r.close()
	f, err := d.openRead(path)
	if err != nil {
		return err
	}
	r.f, r.onRead = f, onRead
	r.win, r.winOff, r.stretch, r.dropTo, r.until, r.cold = nil, 0, 0, 0, 0, false
	r.advice, _ = f.(vfs.Advised)
	if r.advice != nil {
		r.advice.Sequential()
	}
	return nil
}

func (r *reader) close() {
	if r.f == nil {
		return
	}
	r.giveBack()
	_ = r.f.Close()
	r.f = nil
}

// window returns the bytes at off, at least n of them, as far as a chunk reaches; the file ends at end.
func (r *reader) window(off, n, end int64) ([]byte, error) {
	if at := off - r.winOff; at >= 0 && at+n <= int64(len(r.win)) {
		return r.win[at:], nil
	}
	size := min(max(n, readChunk), end-off)
	if size < n {
		return nil, fmt.Errorf("cannot read %s at %d of %q: it ends at %d", words.Count(n, "byte"), off, r.f.Name(), end)
	}
	if int64(cap(r.buf)) < size || (cap(r.buf) > readChunk && size <= readChunk) {
		r.buf = make([]byte, max(size, readChunk))
	}
	r.look(off, end)
	r.win = nil
	b := r.buf[:size]
	if err := readFull(r.f, b, off); err != nil {
		return nil, err
	}
	if r.onRead != nil {
		r.onRead(max(off+size-max(off, r.winOff), 0))
	}
	r.win, r.winOff = b, off
	return b, nil
}

// look asks, at the beginning of a stretch, whether the page cache has it, and gives the last one back if it had not.
func (r *reader) look(off, end int64) {
	if r.advice == nil || (off >= r.stretch && off < r.stretch+stretchBytes && r.dropTo > 0) {
		return
	}
	r.giveBack()
	r.stretch = off
	r.dropTo = min(off+stretchBytes, end)
	if r.until > off {
		r.dropTo = min(r.dropTo, r.until)
	}
	cached, ok := r.advice.Cached(off, r.dropTo-off)
	r.cold = ok && cached < (r.dropTo-off)/2
}

func (r *reader) giveBack() {
	if r.cold {
		r.advice.Forget(r.stretch, r.dropTo-r.stretch)
	}
	r.cold = false
}
