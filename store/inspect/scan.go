package inspect

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"

	"mqx/message"
)

// ScanOptions say where to look and how hard.
type ScanOptions struct {
	// From and To are as in WalkOptions; From may be any position: the scan begins with the first record at or behind it.
	From, To int64
	// Workers is the number of parts that are read at the same time. 0 means one for each processor, at most 4.
	Workers int
	// Verify compares the checksum of every body (and record): what fails is a break.
	Verify bool
	// OnBreak is told of what is no record, in order; see WalkOptions. Break.Record is nil.
	OnBreak func(Break) error
	// OnRead is told how many bytes were read; it may be called by several goroutines at once.
	OnRead func(n int64)
}

// partBytes is how the log is divided among workers; only tests change it.
var partBytes int64 = 64 << 20

const (
	// scanPartBytes is the part that one worker scans: little, so that the workers work on what is next, and what was
	// chosen of a part fits into what may wait.
	scanPartBytes = 4 << 20
	// batchBytes of what was chosen are handed over at once, and at most batchesAhead of them wait in a part. There are
	// partsAhead more parts than workers between where the workers are and what has been handed over.
	batchBytes   = 256 << 10
	batchesAhead = 16
	partsAhead   = 2
	maxWorkers   = 4
)

// Scan chooses records and hands them over in physical order: pick is called by several goroutines at once, for every
// record, and must not keep it; f by one, for those that were picked, in order. Parts of the log are read at the same
// time; what was chosen of the parts that are not due yet waits in at most 4 MiB each, of two more than there are workers.
func (l *Log) Scan(ctx context.Context, o ScanOptions, pick func(message.View) bool, f func(off int64, rec message.View) error) (End, error) {
	return l.scan(ctx, &scan{l: l, o: o, pick: pick}, func(b batch) error {
		for i, rec := range b.recs {
			if err := f(b.offs[i], rec); err != nil {
				return err
			}
		}
		return nil
	})
}

// Format appends a record to a buffer in another form and returns it.
type Format func(dst []byte, rec message.View) ([]byte, error)

// Convert is a Scan that hands over text: every worker has a Format of its own made by form, which appends the records
// that were picked, and f is called with pieces of what they made, in physical order, each valid during the call.
func (l *Log) Convert(ctx context.Context, o ScanOptions, pick func(message.View) bool, form func() Format, f func(piece []byte) error) (End, error) {
	s := &scan{l: l, o: o, pick: pick, form: form, free: make(chan []byte, (maxWorkers+partsAhead)*batchesAhead)}
	return l.scan(ctx, s, func(b batch) error {
		err := f(b.bytes)
		if cap(b.bytes) <= 2*batchBytes { // one that a large record made grow goes
			select {
			case s.free <- b.bytes[:0]:
			default:
			}
		}
		return err
	})
}

func (l *Log) scan(ctx context.Context, s *scan, f func(batch) error) (End, error) {
	o := s.o
	workers := o.Workers
	if workers <= 0 {
		workers = min(runtime.GOMAXPROCS(0), maxWorkers)
	}
	if err := misfit(l.misfits, o.From, o.To); err != nil {
		return End{Last: -1, LastEnd: -1}, err
	}
	from, err := l.Align(ctx, o.From)
	if err != nil {
		return End{Last: -1, LastEnd: -1}, err
	}
	s.from = from
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	parts := s.divide()
	jobs := make(chan *part)
	ahead := make(chan struct{}, workers+partsAhead)
	for range min(workers, len(parts)) {
		wg.Go(func() {
			h := s.hand()
			for p := range jobs {
				p.run(ctx, s, h)
			}
		})
	}
	wg.Go(func() {
		defer close(jobs)
		for _, p := range parts {
			select {
			case ahead <- struct{}{}:
			case <-ctx.Done():
				return
			}
			select {
			case jobs <- p:
			case <-ctx.Done():
				return
			}
		}
	})
	return s.collect(ctx, parts, f, func() { <-ahead })
}

type scan struct {
	l    *Log
	o    ScanOptions
	pick func(message.View) bool
	form func() Format // nil: records are handed over as they are
	free chan []byte   // buffers of batches that are free again; nil for records, which their receiver may keep
	from int64
}

// hand is what one goroutine works with.
type hand struct {
	form   Format // nil: records as they are
	read   []byte // what is read into
	search []byte // the same where the beginning of a part is looked for
}

func (s *scan) hand() *hand {
	h := &hand{}
	if s.form != nil {
		h.form = s.form()
	}
	return h
}

// buffer is an empty one for at least n bytes.
func (s *scan) buffer(n int) []byte {
	if n <= batchBytes {
		select {
		case b := <-s.free:
			return b
		default:
		}
	}
	if s.form != nil {
		return make([]byte, 0, batchBytes+batchBytes/8) // the last line reaches over it
	}
	return make([]byte, 0, max(batchBytes, n))
}

// part is a piece of the log that one worker looks at.
type part struct {
	from, to int64
	first    bool       // from is where a record starts
	batches  chan batch // what follows is known once something came of it
	began    int64      // where its first record starts
	end      End        // known at its end
	err      error      // the same
}

func (p *part) startsAt(at int64) bool { return p.began == at }

// batch is a run of chosen records, or a break between them.
type batch struct {
	offs  []int64
	recs  []message.View
	bytes []byte
	brk   *Break
}

func (s *scan) divide() []*part {
	var parts []*part
	limit := s.l.Limit()
	if s.o.To > 0 {
		limit = min(limit, s.o.To)
	}
	for _, f := range s.l.files {
		if f.End() <= s.from || f.Start >= limit {
			continue
		}
		size := min(partBytes, scanPartBytes)
		for at := max(f.Start, s.from); at < min(f.End(), limit); {
			to := min(at+size, f.End(), limit)
			if f.End()-to < size/4 {
				to = min(f.End(), limit)
			}
			parts = append(parts, &part{from: at, to: to, first: at == s.from || at == f.Start, batches: make(chan batch, batchesAhead)})
			at = to
		}
	}
	return parts
}

func (p *part) run(ctx context.Context, s *scan, h *hand) {
	defer close(p.batches)
	p.began = p.from
	if !p.first {
		if h.search == nil {
			h.search = make([]byte, beginChunk)
		}
		sc := &scanner{w: &walker{l: s.l, ctx: ctx, limit: p.to, end: End{Last: -1}}, from: p.from - 1, pos: p.from, buf: h.search}
		at, err := sc.next()
		if err != nil {
			p.err = err
			return
		}
		if p.began = at; at < 0 {
			p.began = p.to
		}
	}
	p.end, p.err = s.walk(ctx, h, p.began, p.to, func(b batch) error {
		select {
		case p.batches <- b:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// walk goes through a range and hands what was chosen over in batches.
func (s *scan) walk(ctx context.Context, h *hand, from, to int64, give func(batch) error) (End, error) {
	var b batch
	flush := func() error {
		if len(b.bytes) == 0 {
			return nil
		}
		err := give(b)
		b = batch{}
		return err
	}
	end, err := s.l.Walk(ctx, WalkOptions{
		From: from, To: to, VerifyBody: s.o.Verify, VerifyProp: s.o.Verify, OnRead: s.o.OnRead, buf: &h.read,
		OnBreak: func(x Break) error {
			if err := flush(); err != nil {
				return err
			}
			x.Record = nil
			return give(batch{brk: &x})
		},
	}, func(off int64, rec message.View) error {
		if !s.pick(rec) {
			return nil
		}
		if len(b.bytes) > 0 && len(b.bytes)+len(rec) > batchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		if b.bytes == nil {
			b.bytes = s.buffer(len(rec))
		}
		if h.form != nil {
			var err error
			b.bytes, err = h.form(b.bytes, rec)
			return err
		}
		at := len(b.bytes)
		b.bytes = append(b.bytes, rec...)
		b.offs = append(b.offs, off)
		b.recs = append(b.recs, message.View(b.bytes[at:len(b.bytes):len(b.bytes)]))
		return nil
	})
	if err != nil {
		return end, err
	}
	return end, flush()
}

// collect hands the parts over in order. The parts have to fit together: where one ends the next has to have begun; if it
// has not, because its beginning was not found right, it is walked once more from there. done is called behind each part.
func (s *scan) collect(ctx context.Context, parts []*part, f func(batch) error, done func()) (End, error) {
	total := End{Offset: s.from, Reason: EndOfData, Last: -1, LastEnd: -1}
	give := func(b batch) error {
		if b.brk != nil {
			if s.o.OnBreak != nil {
				return s.o.OnBreak(*b.brk)
			}
			return nil
		}
		return f(b)
	}
	stopped := func(err error) (End, error) {
		total.Reason = EndStopped
		if errors.Is(err, ErrStop) {
			err = nil
		}
		return total, err
	}
	at := s.from
	for _, p := range parts {
		if p.to <= at { // what was found broken in the part before reaches over it
			for {
				if _, ok, err := p.next(ctx); err != nil {
					return stopped(err)
				} else if !ok {
					break
				}
			}
			done()
			continue
		}
		if p.from > at {
			hole := Break{Kind: BreakHole, From: at, To: p.from, Path: filepath.Join(s.l.dirs[0], FileName(at))}
			if err := give(batch{brk: &hole}); err != nil {
				return stopped(err)
			}
			at = p.from
		}
		end, err := s.take(ctx, p, at, give)
		if err != nil {
			return stopped(err)
		}
		done()
		total.add(end)
		if at = end.Offset; end.Reason == EndOfData || end.Reason == EndTorn {
			return total, nil
		}
	}
	total.Offset, total.Reason = at, EndOfData
	if s.o.To > 0 && at >= s.o.To {
		total.Reason = EndLimit
	}
	return total, ctx.Err()
}

// take hands over what was found in a part whose first record starts at a known place.
func (s *scan) take(ctx context.Context, p *part, at int64, give func(batch) error) (End, error) {
	for {
		b, ok, err := p.next(ctx)
		if err != nil {
			return End{Last: -1}, err
		}
		if !ok {
			break
		}
		if !p.startsAt(at) {
			continue
		}
		if err := give(b); err != nil {
			return End{Last: -1}, err
		}
	}
	switch {
	case p.err != nil:
		return p.end, p.err
	case p.startsAt(at):
		return p.end, nil
	}
	return s.walk(ctx, s.hand(), at, p.to, give)
}

// next waits for a batch; ok is false when the part has ended.
func (p *part) next(ctx context.Context) (b batch, ok bool, err error) {
	select {
	case b, ok = <-p.batches:
		return b, ok, nil
	case <-ctx.Done():
		return batch{}, false, ctx.Err()
	}
}

func (e *End) add(x End) {
	e.Records += x.Records
	e.Blanks += x.Blanks
	e.Offset, e.Reason, e.Err = x.Offset, x.Reason, x.Err
	if x.Last >= 0 {
		e.Last, e.LastEnd = x.Last, x.LastEnd
	}
}

// Align is the position of the first whole record at or behind off: off itself where one starts. Behind the last record
// it is Limit.
func (l *Log) Align(ctx context.Context, off int64) (int64, error) {
	off = max(off, l.Min())
	i := l.fileIndex(off)
	if i == len(l.files) {
		return max(off, l.Limit()), nil
	}
	if f := l.files[i]; off <= f.Start {
		return f.Start, nil
	}
	_, err := l.Record(off)
	if err == nil {
		return off, nil
	}
	if !errors.Is(err, ErrNoRecord) {
		return 0, err
	}
	sc := &scanner{w: &walker{l: l, ctx: ctx, limit: l.Limit(), end: End{Last: -1}}, from: off, pos: off}
	at, err := sc.next()
	if err == nil && at < 0 {
		at = l.Limit()
	}
	return at, err
}
