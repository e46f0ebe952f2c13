package inspect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"

	"mqx/internal/sorted"
	"mqx/internal/words"
	"mqx/message"
	"mqx/store/commitlog"
)

// logFile is one file of the log and what its pass found.
type logFile struct {
	File
	nominal int64 // where it should end
	expired bool  // went away meanwhile
	gone    atomic.Bool
	skip    bool  // has no records of its own: misplaced or empty
	carries int64 // misplaced: the position that its first record carries

	logSums
	chunks []*logChunk
}

// logSums is what a pass over a part of the log adds up.
type logSums struct {
	records, lastEnd, last, lastStore, maxStore int64
	end                                         End
	breaks                                      []*logBreak
	served                                      int64        // records among the breaks that brokers take for whole
	traits                                      recordTraits // if asked for
}

// readable is the number of records in a part that brokers take for whole.
func (s *logSums) readable() int64 { return s.records + s.served }

// logChunk is a part of a file that one worker reads. The first one begins with the file, the others with the first whole
// record at or behind a border.
type logChunk struct {
	p        *logFile
	from, to int64
	logSums
}

// logBreak is a range of the log without readable records, and what was lost there.
type logBreak struct {
	kind     FindingKind
	from, to int64
	path     string
	file     int64 // start of the file of from
	why      error
	lost     []lostRecord // units that point there
	heads    []lostRecord // records whose frame is whole
	entries  bool         // the index points there
	short    *Finding     // the last file ends too early
	store    int64        // store time of the record before
	before   int64        // readable records before it in the part of the log
}

// lostRecord is a record that cannot be read, as its unit or its head describes it.
type lostRecord struct {
	key    QueueKey
	offset int64 // queue offset
	count  int32 // messages
	n      int64 // number of the unit, -1 for none
	phys   int64
	size   int32
}

func (v *verifier) prepareLog() error {
	v.fileSize = v.d.log.FileSize()
	if v.o.LogFileSize > 0 {
		v.fileSize = v.o.LogFileSize
	}
	v.dropForeign()
	files := v.d.log.Files()
	for i, f := range files {
		p := &logFile{File: f, nominal: f.Start + v.fileSize, logSums: logSums{last: -1}}
		if i+1 < len(files) && files[i+1].Start > f.Start {
			p.nominal = min(p.nominal, files[i+1].Start)
		}
		if len(files) == 1 {
			p.nominal = max(p.nominal, f.End())
		}
		v.logParts = append(v.logParts, p)
		v.total.Add(min(f.Size, v.fileSize))
	}
	for _, name := range v.d.log.Others() {
		why := "its name is that of no log file; Apache's broker does not start on it"
		if _, ok := fileNumber(name); ok {
			why = ErrNoFile.Error()
		}
		v.foreign(filepath.Join(v.d.log.Dirs()[0], name), why)
	}
	if len(v.logParts) > 0 {
		v.logMin = v.logParts[0].Start
	}
	return nil
}

// dropForeign reports files whose name is no position where a file of this log begins, and goes on with a view of the
// directory that does not have them: they would hide what they overlap.
func (v *verifier) dropForeign() {
	var keep []File
	for _, f := range v.d.log.Files() {
		overlaps := len(keep) > 0 && keep[len(keep)-1].End() > f.Start
		tooFar := f.Start > math.MaxInt64-max(f.whole(), v.fileSize)
		if tooFar || f.Start%max(v.fileSize, 1) != 0 && (f.whole() != v.fileSize || overlaps) {
			v.foreign(f.Path, "its name is no position where a file of this log begins")
			continue
		}
		keep = append(keep, f)
	}
	keep = bounded(keep, v.fileSize)
	if slices.Equal(keep, v.d.log.files) && len(v.d.log.misfits) == 0 {
		return
	}
	d, l := *v.d, *v.d.log
	l.files, l.misfits, l.d, d.log = keep, nil, &d, &l
	v.d = &d
}

func (v *verifier) foreign(path, why string) {
	v.found.add(&Finding{
		Kind: FindForeign, File: v.d.Rel(path), Offset: -1, Phys: -1, Messages: 0, What: "this is no part of the store: " + why,
		Mend: "move it to mqx/salvage", Derived: true,
	})
}

// errUneven says that the parts of a file do not fit together.
var errUneven = errors.New("the parts of a log file do not fit together")

// divideLog divides the files into chunks for several workers. A file that is not to be read has none.
func (v *verifier) divideLog() error {
	return v.inParallel(len(v.logParts), func(i int) error {
		p := v.logParts[i]
		if p.Size == 0 {
			p.skip = true // settleLog says what is wrong
			return nil
		}
		if carries, other := v.misplaced(p); other {
			p.skip, p.carries = true, carries
			return nil
		}
		err := v.divide(p)
		if errors.Is(err, fs.ErrNotExist) && v.live {
			p.expired, p.chunks = true, nil
			return nil
		}
		return err
	})
}

func (v *verifier) divide(p *logFile) error {
	end := min(p.End(), p.nominal)
	at, part := p.Start, cmp.Or(v.o.partBytes, partBytes)
	for border := at + part; !v.whole && border+part/4 < end; border += part {
		next, err := v.d.log.firstRecord(v.ctx, border, end)
		if err != nil {
			return err
		}
		if next < 0 {
			break // the rest is one chunk: most likely the log ends there
		}
		p.chunks = append(p.chunks, &logChunk{p: p, from: at, to: next})
		at, border = next, max(border, next)
	}
	p.chunks = append(p.chunks, &logChunk{p: p, from: at, to: p.nominal})
	for _, c := range p.chunks {
		c.last, c.lastEnd = -1, -1
	}
	return nil
}

// firstRecord is the position of the first whole record that starts in a part of a file, -1 when there is none.
func (l *Log) firstRecord(ctx context.Context, from, to int64) (int64, error) {
	sc := &scanner{w: &walker{l: l, ctx: ctx, limit: to, end: End{Last: -1}}, from: from - 1, pos: from}
	return sc.next()
}

// readLog reads all chunks of the log, several at a time, and the index files beside them.
func (v *verifier) readLog() error {
	var jobs []func(*logWorker) error
	for i := range min(maxIndexReaders, len(v.index.files)) {
		jobs = append(jobs, func(*logWorker) error { return v.index.readEvery(i, maxIndexReaders) })
	}
	for _, p := range v.logParts {
		for _, c := range p.chunks {
			jobs = append(jobs, func(w *logWorker) error {
				err := w.run(c)
				if errors.Is(err, fs.ErrNotExist) && v.live {
					p.gone.Store(true)
					return nil
				}
				return err
			})
		}
	}
	workers := make(chan *logWorker, v.o.Workers)
	for range v.o.Workers {
		workers <- newLogWorker(v)
	}
	err := v.inParallel(len(jobs), func(i int) error {
		w := <-workers
		defer func() { workers <- w }()
		return jobs[i](w)
	})
	if err != nil {
		return err
	}
	for range v.o.Workers {
		w := <-workers
		w.cur.settle()
		v.index.addSums(w.sums)
	}
	for _, p := range v.logParts {
		p.expired = p.expired || p.gone.Load()
		if !p.expired && !p.join() {
			return errUneven
		}
	}
	return nil
}

// join puts the chunks of a file together; false when they do not fit: one ends behind or before the start of the next.
func (p *logFile) join() bool {
	p.lastEnd, p.last = 0, -1
	for i, c := range p.chunks {
		if i+1 < len(p.chunks) && (c.end.Offset != c.to || c.end.Blanks > 0) {
			return false
		}
		for _, b := range c.breaks {
			if b.store == 0 {
				b.store = p.lastStore
			}
		}
		p.breaks = append(p.breaks, c.breaks...)
		p.records += c.records
		p.maxStore = max(p.maxStore, c.maxStore)
		p.end.add(c.end)
		if c.records > 0 {
			p.last, p.lastEnd, p.lastStore = c.last, c.lastEnd, c.lastStore
		}
	}
	return true
}

// logWorker reads chunks of the log and compares its records with queues and index.
type logWorker struct {
	v     *verifier
	p     *logChunk
	props *fields
	cur   queueCursors
	sums  indexSums

	known [64]knownQueue
}

// knownQueue is a queue that a worker has met: nothing has to be locked to find it again.
type knownQueue struct {
	topic []byte
	id    int32
	batch bool
	q     *vqueue
}

// queue is the queue of a record.
func (w *logWorker) queue(topic []byte, id int32, batch bool) (*vqueue, error) {
	n := uint32(id)*7 + uint32(len(topic))
	if len(topic) > 0 {
		n += uint32(topic[len(topic)-1])*31 + uint32(topic[len(topic)/2])*11
	}
	k := &w.known[n%uint32(len(w.known))]
	if k.q != nil && k.id == id && k.batch == batch && bytes.Equal(k.topic, topic) {
		return k.q, nil
	}
	q, err := w.v.queues.of(topic, id, batch)
	if err == nil {
		k.topic, k.id, k.batch, k.q = append(k.topic[:0], topic...), id, batch, q
	}
	return q, err
}

func newLogWorker(v *verifier) *logWorker {
	return &logWorker{v: v, props: newFields(), cur: newQueueCursors(v), sums: v.index.newSums()}
}

func (w *logWorker) run(c *logChunk) error {
	w.p = c
	end, err := w.v.d.log.Walk(w.v.ctx, WalkOptions{
		From: c.from, To: c.to, VerifyBody: true, VerifyProp: true, OnRead: w.v.progress,
		OnBreak: func(b Break) error {
			w.broken(b)
			return nil
		},
	}, w.record)
	if err != nil {
		return err
	}
	c.end = end
	return w.cur.err
}

// misplaced reports whether the file begins with a whole record of another file's beginning.
func (v *verifier) misplaced(p *logFile) (carries int64, yes bool) {
	l := v.d.log
	size, why, err := l.frame(p.File, p.Start, p.End())
	if err != nil || why != nil || size > maxHeldRecord {
		return 0, false
	}
	b := make([]byte, size)
	if l.ReadAt(b, p.Start) != nil {
		return 0, false
	}
	rec, why := message.ParseView(b, message.DecodeOptions{VerifyBodyCRC: true})
	if why != nil {
		return 0, false
	}
	at := rec.PhysicalOffset()
	return at, at != p.Start && v.fileSize > 0 && at%v.fileSize == 0
}

// maxHeldRecord is the longest record that is taken for one.
const maxHeldRecord = 32 << 20

func (w *logWorker) broken(b Break) {
	if b.Kind == BreakHole {
		return // between files: settleLog sees it
	}
	x := &logBreak{kind: FindLogRot, from: b.From, to: b.To, path: b.Path, file: w.p.p.Start, why: b.Err, store: w.p.lastStore, before: w.p.readable()}
	if b.Kind == BreakTorn {
		x.kind = FindLogTorn
	}
	if rec, err := message.ParseView(b.Record, message.DecodeOptions{}); err == nil && listable(rec) == nil {
		x.heads = append(x.heads, headOf(rec, b.From))
	}
	if served(b.Err) {
		w.p.served++
	}
	w.p.breaks = append(w.p.breaks, x)
}

func headOf(rec message.View, off int64) lostRecord {
	return lostRecord{
		key:    QueueKey{Topic: string(rec.Topic()), ID: rec.QueueID(), Batch: message.NumberedBatch(rec.Topic(), rec.SysFlag())},
		offset: rec.QueueOffset(), count: 1, n: -1, phys: off, size: rec.Size(),
	}
}

// maxQueueOffset is the largest number of a unit whose position in its queue, simple or of batches, can be a file's.
const maxQueueOffset = math.MaxInt64 / 64

var errListable = errors.New("no queue can list it")

// listable says why no queue can list a record.
func listable(rec message.View) error {
	switch {
	case rec.QueueOffset() < 0:
		return fmt.Errorf("%w: its queue offset is negative", errListable)
	case rec.QueueOffset() > maxQueueOffset:
		return fmt.Errorf("%w: its queue offset is more than a queue can hold", errListable)
	case !message.NamesDirectory(rec.Topic()):
		return fmt.Errorf("%w: its topic can be the name of no directory", errListable)
	}
	return nil
}

var errSector = errors.New("a sector of the properties was never written")

// record compares one record with its units and entries.
func (w *logWorker) record(off int64, rec message.View) error {
	p := w.p
	if commitlog.LacksSector(rec, off-p.p.Start) {
		w.broken(Break{Kind: BreakRot, From: off, To: off + int64(len(rec)), Path: p.p.Path, Err: errSector, Record: rec})
		return nil
	}
	if err := listable(rec); err != nil {
		w.broken(Break{Kind: BreakRot, From: off, To: off + int64(len(rec)), Path: p.p.Path, Err: err, Record: rec})
		return nil //nolint:nilerr // it is told as a finding
	}
	storeTime := rec.StoreTimestamp()
	p.records++
	p.last, p.lastEnd, p.lastStore, p.maxStore = off, off+int64(len(rec)), storeTime, max(p.maxStore, storeTime)
	tx := rec.Transaction()
	w.props.read(rec.Properties())
	if tx != message.TransactionPrepared && tx != message.TransactionRollback {
		if err := w.units(off, rec); err != nil {
			return err
		}
	}
	if tx != message.TransactionRollback {
		w.sums.record(off, rec, w.props)
	}
	if w.v.o.traits {
		p.traits.see(rec, p.readable()-1, len(w.props.lmq) > 0)
	}
	return nil
}

// units compares a record with the unit of its queue, and with those of the light queues that it names.
func (w *logWorker) units(off int64, rec message.View) error {
	topic, id := rec.Topic(), rec.QueueID()
	inner := message.NumberedBatch(topic, rec.SysFlag())
	q, err := w.queue(topic, id, inner && len(w.props.innerNum) > 0)
	if err != nil {
		return err
	}
	e := expected{phys: off, size: rec.Size(), storeTime: rec.StoreTimestamp(), offset: rec.QueueOffset(), count: 1}
	e.tagsCode, e.level = w.tagsCode(topic)
	if q.key.Batch && len(w.props.innerNum) > 0 {
		if n, err := strconv.ParseInt(string(w.props.innerNum), 10, 16); err == nil && n > 0 {
			e.count = int32(n)
		}
	}
	e.single = q.key.Batch && !inner
	if err := w.cur.compare(q, e); err != nil {
		return err
	}
	if len(w.props.lmq) == 0 || len(w.props.lmqOffsets) == 0 {
		return nil
	}
	for name, n := range message.LightQueues(w.props.lmq, w.props.lmqOffsets) {
		q, err := w.v.queues.of(name, 0, false)
		if err != nil {
			return err
		}
		e.offset, e.single = n, false
		if err := w.cur.compare(q, e); err != nil {
			return err
		}
	}
	return nil
}

// tagsCode is what the unit of the record carries: the hash of the tags, or with a level the time of delivery.
func (w *logWorker) tagsCode(topic []byte) (code int64, level int) {
	if string(topic) == message.TopicSchedule && len(w.props.delay) > 0 {
		if n, err := strconv.Atoi(string(w.props.delay)); err == nil {
			return 0, max(n, 1)
		}
	}
	if len(w.props.tags) == 0 {
		return 0, 0
	}
	return message.TagsCode(w.props.tags), 0
}

// settleLog puts the passes over the files together: where the log ends, and which ranges of it cannot be read.
func (v *verifier) settleLog() error {
	parts := v.present()
	last := -1 // the last file with a record
	for i, p := range parts {
		v.records += p.records
		v.maxStore = max(v.maxStore, p.maxStore)
		if p.records > 0 {
			last = i
		}
	}
	if len(parts) > 0 {
		v.logMin = parts[0].Start
		v.logEnd = v.logMin
	}
	for i := range parts {
		v.settleFile(parts, i, last)
	}
	slices.SortFunc(v.breaks, func(a, b *logBreak) int { return cmp.Compare(a.from, b.from) })
	for _, b := range v.breaks {
		for _, p := range parts {
			if b.store == 0 && p.Start <= b.from && p.last < b.from && p.lastStore > 0 {
				b.store = p.lastStore
			}
		}
		if b.store == 0 {
			b.store = v.minStore(b.to)
		}
	}
	return nil
}

// minStore is the store time of the first record at or behind a position that begins a file, 0 when there is none.
func (v *verifier) minStore(from int64) int64 {
	for _, p := range v.logParts {
		if p.Start >= from {
			if rec, err := v.d.log.Record(p.Start); err == nil {
				return rec.StoreTimestamp()
			}
		}
	}
	if rec, err := v.d.log.Record(from); err == nil {
		return rec.StoreTimestamp()
	}
	return v.maxStore
}

// present are the files of the log that are still there. The first ones may have expired.
func (v *verifier) present() []*logFile {
	return slices.DeleteFunc(slices.Clone(v.logParts), func(p *logFile) bool { return p.expired })
}

func (v *verifier) heldElsewhere(p *logFile) bool {
	return p.skip && slices.ContainsFunc(v.logParts, func(o *logFile) bool { return o.Start == p.carries && !o.skip && o.records > 0 })
}

func (v *verifier) settleFile(parts []*logFile, i, last int) {
	p := parts[i]
	if i > 0 && parts[i-1].nominal < p.Start && i <= max(last, 0) {
		prev := parts[i-1]
		v.breaks = append(v.breaks, &logBreak{
			kind: FindLogHole, from: prev.nominal, to: p.Start, file: prev.nominal,
			path: filepath.Join(filepath.Dir(p.Path), FileName(prev.nominal)),
		})
	}
	switch {
	case p.Size == 0:
		v.emptyFile(p, i > last)
		return
	case p.skip:
		v.misplacedFile(p)
		return
	}
	v.breaks = append(v.breaks, v.inner(p, i < last)...)
	v.fileLength(p, i < last)
	switch {
	case i < last || (i == last && p.end.Blanks > 0):
		v.logEnd = p.nominal
	case i == last:
		v.logEnd = p.lastEnd
	}
}

// inner are the breaks of one file. In a file with others behind it whatever follows the last record belongs to the log.
func (v *verifier) inner(p *logFile, more bool) []*logBreak {
	out := p.breaks
	open := p.end.Reason == EndOfData || p.end.Reason == EndTorn
	if n := len(out); n > 0 && out[n-1].kind == FindLogTorn {
		if more {
			out[n-1].kind, out[n-1].to = FindLogRot, p.nominal
		} else if v.live {
			return out[:n-1] // it is being written
		}
	} else if more && open {
		out = append(out, &logBreak{kind: FindLogRot, from: p.end.Offset, to: p.nominal, path: p.Path, file: p.Start, why: errZeros})
	}
	return out
}

func (v *verifier) emptyFile(p *logFile, atEnd bool) {
	f := &Finding{Kind: FindLogEmpty, File: v.d.Rel(p.Path), Offset: 0, Phys: p.Start, What: "the file has no bytes"}
	if atEnd {
		if v.live {
			return // it is being made
		}
		f.Mend, f.Derived = "remove it", true
		v.found.add(f)
		return
	}
	b := &logBreak{kind: FindLogRot, from: p.Start, to: p.nominal, path: p.Path, file: p.Start, why: ErrEmptyFile}
	v.breaks = append(v.breaks, b)
}

func (v *verifier) misplacedFile(p *logFile) {
	b := &logBreak{kind: FindLogMisplaced, from: p.Start, to: p.nominal, path: p.Path, file: p.Start, why: placeError(p.carries)}
	v.breaks = append(v.breaks, b)
}

// fileLength says when a file has another length than the others. What a short file held behind its end is a range without
// records.
func (v *verifier) fileLength(p *logFile, more bool) {
	want := v.fileSize
	if len(v.logParts) == 1 && v.o.LogFileSize == 0 && p.Size%sizeUnit != 0 {
		want = nextSize(p.Size)
	}
	if p.whole() == want || (v.live && !more) {
		return
	}
	f := &Finding{
		Kind: FindLogSize, File: v.d.Rel(p.Path), Offset: p.whole(), Phys: p.End(), Derived: true,
		What: fmt.Sprintf("the file has %s, those of this log have %d; Apache's broker does not start on it", words.Count(p.whole(), "byte"), want),
	}
	if p.whole() > want {
		f.Mend = fmt.Sprintf("keep what is behind byte %d in mqx/salvage and cut it", want)
		v.found.add(f)
		return
	}
	f.Mend = fmt.Sprintf("fill it up with zeros to %s", words.Count(want, "byte"))
	f.size = want
	if more {
		v.found.add(f) // what was there is a range of its own
		return
	}
	if n := len(v.breaks); n > 0 && v.breaks[n-1].kind == FindLogTorn && v.breaks[n-1].file == p.Start {
		v.breaks[n-1].to, v.breaks[n-1].short = p.Start+want, f
		return
	}
	from := p.lastEnd
	if p.records == 0 {
		from = p.Start
	}
	v.breaks = append(v.breaks, &logBreak{kind: FindLogSize, from: from, to: p.Start + want, path: p.Path, file: p.Start, short: f})
}

// sizeUnit is what the size of a lone log file must be a multiple of to be taken for the size of the files.
const sizeUnit = 4096

// nextSize is the least power of two that a file was probably made with.
func nextSize(size int64) int64 {
	n := int64(sizeUnit)
	for n < size {
		n *= 2
	}
	return n
}

// breakAt is the range without records that holds a position.
func (v *verifier) breakAt(phys int64) *logBreak {
	i, ok := slices.BinarySearchFunc(v.breaks, phys, func(b *logBreak, phys int64) int {
		switch {
		case b.to <= phys:
			return -1
		case b.from > phys:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return v.breaks[i]
}

// reportBreaks makes a finding of each range, with what its units say was there.
func (v *verifier) reportBreaks() error {
	for _, b := range v.breaks {
		f := &Finding{Kind: b.kind, File: v.d.Rel(b.path), Offset: b.from - b.file, Phys: b.from, log: b}
		switch b.kind {
		case FindLogHole:
			f.What = fmt.Sprintf("the log from %d to %d is missing; %s", b.from, b.to, lookElsewhere)
			f.Mend = "put records in its place that hold the queue offsets and nothing else"
		case FindLogTorn:
			f.What = fmt.Sprintf("the log ends in %s that are no whole record (%v)", words.Count(b.to-b.from, "byte"), b.why)
			f.Mend = "keep them in mqx/salvage and cut them"
		case FindLogMisplaced:
			p := v.partAt(b.file)
			f.What = fmt.Sprintf("the file holds the log from %d on, not from %d", p.carries, b.from)
			f.Mend, f.Derived = fmt.Sprintf("rename it to %s", FileName(p.carries)), true
			if v.heldElsewhere(p) {
				f.Mend = "move it to mqx/salvage: the log from there on is whole"
			}
		default:
			f.What = fmt.Sprintf("%s up to %d hold no readable record (%v)", words.Count(b.to-b.from, "byte"), b.to, b.why)
			f.Mend = "keep them in mqx/salvage and put a record in their place that holds the queue offset and nothing else"
		}
		if b.short != nil {
			if b.kind == FindLogTorn {
				b.short.What += fmt.Sprintf(", and it ends in a record that is not whole, at %d (%v)", b.from, b.why)
				b.short.Mend = "keep the record that is not whole in mqx/salvage, and " + b.short.Mend
				b.short.Derived = false
			}
			f, b.short.log = b.short, b
		}
		f.Affected, f.Messages = affectedOf(b)
		if b.kind == FindLogSize {
			f.Derived, f.Messages = len(b.lost) == 0, max(f.Messages, 0)
		}
		v.found.add(f)
	}
	return nil
}

func (v *verifier) partAt(start int64) *logFile {
	for _, p := range v.logParts {
		if p.Start == start {
			return p
		}
	}
	return nil
}

// affectedOf groups what was lost in a range by queue.
func affectedOf(b *logBreak) ([]Affected, int64) {
	spans := map[QueueKey][]span{}
	lost := b.lost
	if len(lost) == 0 {
		lost = b.heads
	}
	total := int64(0)
	for _, l := range lost {
		spans[l.key] = append(spans[l.key], span{l.offset, l.offset + int64(l.count)})
		total += int64(l.count)
	}
	if total == 0 {
		return nil, -1
	}
	return affectedSpans(spans), total
}

func affectedSpans(spans map[QueueKey][]span) []Affected {
	var out []Affected
	for k, list := range spans {
		for _, s := range mergeRanges(list) {
			out = append(out, Affected{k.Topic, k.ID, s.from, s.to, s.to - s.from})
		}
	}
	sorted.By(out, compareAffected)
	return out[:min(len(out), maxAffected)]
}
