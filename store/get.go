package store

import (
	"errors"
	"math"
	"sync"

	"mqx/message"
	"mqx/store/commitlog"
	"mqx/store/consumequeue"
	"mqx/store/mapped"
)

const (
	// maxPullBytes bounds one Get whatever is asked for, minPullBytes is what may be asked for at least.
	maxPullBytes = 128 << 20
	minPullBytes = 100
	// unitChunk is how many queue units are read at once.
	unitChunk = 200
	// coldGap is how many bytes between two wanted records are read along rather than read for twice.
	coldGap = 4 << 10
	// coldBuffer is the size of the buffers that are kept for reading records from disk.
	coldBuffer = 256 << 10
	// maxFillerRun bounds how many units without a record one Get steps over.
	maxFillerRun = 1 << 17
)

// MessageFilter decides what a Get returns. It is called on the caller's goroutine.
type MessageFilter interface {
	// MatchCQ looks at the tags code of a queue unit, before the log is touched.
	MatchCQ(tagsCode int64) bool
	// MatchRecord looks at the record, which is valid only during the call.
	MatchRecord(rec message.View) bool
}

// ExtUnit is what a broker with extension files stored with a queue unit: see docs/format/consumequeue.md.
type ExtUnit = consumequeue.ExtUnit

// ExtFilter is a MessageFilter that also looks at extension units, where there are any.
type ExtFilter interface {
	MessageFilter
	// MatchExt looks at the extension unit of a queue unit that MatchCQ lets pass. It is valid only during the call.
	MatchExt(u ExtUnit) bool
}

// GetRequest asks for messages of one queue.
type GetRequest struct {
	Group, Topic string
	QueueID      int32
	Offset       int64
	MaxMsgs      int // at most; the store's own limits apply too
	MaxBytes     int // at most, 0 for the store's own limit; one message is always returned
	Filter       MessageFilter
}

// GetResult is what a Get found. Release must be called once when Parts are no longer used.
type GetResult struct {
	Status               GetStatus
	NextOffset           int64
	MinOffset, MaxOffset int64    // of the queue, 0 for an unknown one
	Parts                [][]byte // records, back to back in queue order
	Count                int      // messages
	Bytes                int      // sum of Parts
	FromDisk             bool     // Parts were read from disk, not from the hot end of the log
	BehindBytes          int64    // distance of the last examined record from the end of the log
	// Err is set, and Status is GetFailed, when the disk failed before the first message. NextOffset is the one asked for.
	Err error

	held  []func()  // leases
	bufs  []*[]byte // of coldPool
	parts [8][]byte // room for Parts
}

// Release gives the memory of Parts back. It may be called on any goroutine, once or more.
func (r *GetResult) Release() {
	held, bufs := r.held, r.bufs
	r.held, r.bufs, r.Parts = nil, nil, nil
	for _, f := range held {
		f()
	}
	for _, b := range bufs {
		if cap(*b) == coldBuffer {
			coldPool.Put(b)
		}
	}
}

var coldPool = sync.Pool{New: func() any { b := make([]byte, coldBuffer); return &b }}

// Get reads messages of a queue. It never creates a queue and never returns nil. Statuses and next offsets are those of
// docs/format/consumequeue.md, "Reading".
func (s *Store) Get(req GetRequest) *GetResult {
	res := &GetResult{NextOffset: req.Offset}
	res.Parts = res.parts[:0]
	q := s.queues.get(req.Topic, req.QueueID)
	if q != nil && req.Offset > q.maxOffset() && req.Offset <= q.held.Load() { // it was seen before the start, maybe all that is held back
		res.Status, res.MinOffset, res.MaxOffset = OffsetOverflowOne, q.minOffset(), q.maxOffset()
		s.stats.getMissed.Add(1)
		return res
	}
	if q == nil || !q.exists() {
		res.Status, res.NextOffset = NoMatchedLogicQueue, 0
		s.stats.getMissed.Add(1)
		return res
	}
	res.MinOffset, res.MaxOffset = q.minOffset(), q.maxOffset()
	switch {
	case res.MaxOffset == 0:
		res.Status, res.NextOffset = NoMessageInQueue, 0
	case req.Offset < res.MinOffset:
		res.Status, res.NextOffset = OffsetTooSmall, res.MinOffset
	case req.Offset == res.MaxOffset:
		res.Status = OffsetOverflowOne
	case req.Offset > res.MaxOffset:
		res.Status, res.NextOffset = OffsetOverflowBadly, res.MaxOffset
	default:
		s.read(q, &req, res)
	}
	if res.Count > 0 {
		s.stats.getFound.Add(1)
		if res.FromDisk {
			s.stats.getCold.Add(1)
		}
		s.stats.gets.Add(int64(res.Count))
		s.stats.getBytes.Add(int64(res.Bytes))
	} else {
		s.stats.getMissed.Add(1)
	}
	return res
}

// getter is the state of one Get.
type getter struct {
	s   *Store
	q   *queue
	req *GetRequest
	res *GetResult

	logEnd   int64
	memory   int64 // distance from the end within which the log counts as cached
	maxBytes int
	scan     int64 // units that may be examined
	at       int64 // position of the record being taken
	skipTo   int64 // units of records before this position are passed over: their file is gone
	fillers  int64

	window  []byte // bytes of the log at winOff that a slice may be taken of
	winOff  int64
	winHot  bool
	lastEnd int64 // position behind the last part when it can be grown in place, -1 if not

	units []byte // the chunk of units being examined, for reading ahead
	chunk [unitChunk * consumequeue.UnitSize]byte
}

var getterPool = sync.Pool{New: func() any { return &getter{} }}

func (s *Store) read(q *queue, req *GetRequest, res *GetResult) {
	g := getterPool.Get().(*getter)
	defer g.free()
	g.s, g.q, g.req, g.res = s, q, req, res
	g.logEnd, g.memory, g.skipTo, g.lastEnd = s.log.Confirmed(), s.memoryBytes, math.MinInt64, -1
	g.fillers, g.window, g.winOff = 0, nil, 0
	g.maxBytes = maxPullBytes
	if req.MaxBytes > 0 {
		g.maxBytes = min(max(req.MaxBytes, minPullBytes), maxPullBytes)
	}
	g.scan = max(int64(s.conf().MaxFilterMessageBytes), int64(req.MaxMsgs)*consumequeue.UnitSize) / consumequeue.UnitSize
	res.Status = NoMatchedMessage
	err := g.run()
	if err != nil && res.Count == 0 {
		// Nothing was taken yet: what the map cannot give may be had with pread, which also says better what is wrong.
		var again bool
		if again, err = s.fault(err, g.at); again {
			res.NextOffset, g.window, g.winOff = req.Offset, nil, 0
			err = g.run()
		}
	}
	for i, part := range res.Parts {
		res.Parts[i] = part[:len(part):len(part)]
	}
	if res.Count > 0 {
		res.Status = Found
		return
	}
	if err != nil {
		res.Status, res.Err, res.NextOffset = GetFailed, err, req.Offset
		s.cfg.Logger.Error("cannot read messages", "topic", req.Topic, "queue", req.QueueID, "queue_offset", req.Offset, "err", err)
	}
}

// run reads. A fault on the map is an error.
func (g *getter) run() error {
	return mapped.Guard(func() error {
		if b := g.q.batch.Load(); b != nil {
			return g.readBatch(b)
		}
		return g.readQueue(g.q.cq.Load())
	})
}

func (g *getter) free() {
	g.s, g.q, g.req, g.res, g.window, g.units = nil, nil, nil, nil, nil, nil
	getterPool.Put(g)
}

// readQueue walks the units of up to TravelCQFileNumWhenGetMessage files.
func (g *getter) readQueue(c *consumequeue.Queue) error {
	fileUnits := c.FileUnits()
	for range g.s.conf().TravelCQFileNumWhenGetMessage {
		fileEnd := c.NextFile(g.res.NextOffset)
		for off := g.res.NextOffset; off < min(fileEnd, g.res.MaxOffset); {
			want := min(unitChunk, fileEnd-off, g.res.MaxOffset-off, int64(max(g.req.MaxMsgs, 1)))
			if g.req.Filter != nil {
				want = min(unitChunk, fileEnd-off, g.res.MaxOffset-off)
			}
			n, err := c.Read(off, g.chunk[:want*consumequeue.UnitSize])
			if errors.Is(err, consumequeue.ErrNoUnits) {
				g.res.Status, g.res.NextOffset = OffsetFoundNull, off-off%fileUnits+fileUnits
				return nil
			}
			if err != nil {
				return err
			}
			g.units = g.chunk[:n*consumequeue.UnitSize]
			if more, err := g.examine(off); !more || err != nil {
				return err
			}
			off += int64(n)
		}
		if g.res.Bytes > 0 || g.res.NextOffset >= g.res.MaxOffset {
			return nil
		}
	}
	return nil
}

// examine takes what it may of the units that begin at off, and reports whether to go on behind them.
func (g *getter) examine(off int64) (more bool, err error) {
	for i := 0; i < len(g.units); i += consumequeue.UnitSize {
		u := consumequeue.DecodeUnit(g.units[i:])
		if u.IsFiller() {
			if g.fillers++; g.fillers > maxFillerRun {
				return false, nil
			}
			g.removed()
			g.res.NextOffset = off + 1
			off++
			continue
		}
		if off-g.req.Offset-g.fillers >= g.scan || g.full(int(u.Size), 1, u.Phys) {
			return false, nil
		}
		if u.Phys >= g.skipTo && g.matchesUnit(u.TagsCode) {
			if err := g.take(u.Phys, int(u.Size), 1, i); err != nil {
				return false, err
			}
		}
		g.res.BehindBytes = g.logEnd - u.Phys
		g.res.NextOffset = off + 1
		off++
	}
	return true, nil
}

// removed says why there is nothing yet: records are missing.
func (g *getter) removed() {
	if g.res.Bytes == 0 {
		g.res.Status = MessageWasRemoving
	}
}

// full reports whether a record of this size is one too many. The first one never is.
func (g *getter) full(size, count int, phys int64) bool {
	r, c := g.res, g.s.conf()
	if r.Count == 0 || r.Bytes == 0 {
		return false
	}
	if r.Count+count > g.req.MaxMsgs || r.Bytes+size > g.maxBytes {
		return true
	}
	if g.logEnd-phys <= g.memory {
		return r.Bytes+size > c.MaxTransferBytesOnMessageInMemory || r.Count > c.MaxTransferCountOnMessageInMemory-1
	}
	return r.Bytes+size > c.MaxTransferBytesOnMessageInDisk || r.Count > c.MaxTransferCountOnMessageInDisk-1
}

func (g *getter) matchesUnit(tagsCode int64) bool {
	if g.req.Filter == nil {
		return true
	}
	if consumequeue.IsExtAddr(tagsCode) {
		u, err := g.q.ext.Load().Get(tagsCode)
		if err != nil {
			return true // the client filters by the tags themselves
		}
		if f, ok := g.req.Filter.(ExtFilter); ok && !f.MatchExt(u) {
			return g.unmatched()
		}
		tagsCode = u.TagsCode
	}
	return g.req.Filter.MatchCQ(tagsCode) || g.unmatched()
}

// unmatched notes that the filter has passed a message by. It is always false.
func (g *getter) unmatched() bool {
	if g.res.Bytes == 0 {
		g.res.Status = NoMatchedMessage
	}
	return false
}

// take adds one record. unit is the place of its unit in g.units.
func (g *getter) take(phys int64, size, count, unit int) error {
	g.at = phys
	rec, err := g.fetch(phys, size, unit)
	if errors.Is(err, commitlog.ErrOutOfRange) {
		g.removed()
		g.skipTo = g.s.nextFileStart(phys)
		return nil
	}
	if err != nil {
		return err
	}
	v := message.View(rec)
	if !isRecord(v, size, phys) {
		g.removed()
		g.s.reportUnreadable(phys)
		return nil
	}
	if g.req.Filter != nil && !g.req.Filter.MatchRecord(v) {
		if g.res.Bytes == 0 {
			g.res.Status = NoMatchedMessage
		}
		return nil
	}
	r := g.res
	if n := len(r.Parts); n > 0 && g.lastEnd == phys {
		last := r.Parts[n-1]
		r.Parts[n-1] = last[:len(last)+size]
	} else {
		r.Parts = append(r.Parts, rec)
	}
	g.lastEnd = phys + int64(size)
	r.Count += count
	r.Bytes += size
	r.FromDisk = r.FromDisk || !g.winHot
	g.skipTo = math.MinInt64
	return nil
}

// isRecord reports whether the bytes begin with what a unit promised.
func isRecord(v message.View, size int, phys int64) bool {
	got, _, err := message.PeekRecord(v)
	return err == nil && int(got) == size && v.PhysicalOffset() == phys
}

// fetch returns the bytes of a record: a slice of the map near the end of the log, else of a buffer.
func (g *getter) fetch(phys int64, size, unit int) ([]byte, error) {
	end := phys + int64(size)
	if size < message.MinRecordLen || phys < 0 {
		return nil, &commitlog.RangeError{Off: phys, Len: int64(size), Min: g.s.log.Min(), End: g.logEnd}
	}
	if phys < g.winOff || end > g.winOff+int64(len(g.window)) {
		g.lastEnd = -1
		if err := g.open(phys, end, unit); err != nil {
			g.window, g.winOff = nil, 0
			return nil, err
		}
	}
	at := phys - g.winOff
	return g.window[at : at+int64(size)], nil // with room behind, so that parts can grow
}

// open makes a window that holds [phys, end).
func (g *getter) open(phys, end int64, unit int) error {
	if g.s.isHot(phys, g.logEnd) {
		fileSize := g.s.log.FileSize()
		to := min(phys-phys%fileSize+fileSize, g.logEnd)
		b, release, err := g.s.log.View(phys, int(max(to, end)-phys))
		if err != nil && to > end {
			b, release, err = g.s.log.View(phys, int(end-phys))
		}
		if err == nil {
			g.window, g.winOff, g.winHot = b, phys, true
			g.res.held = append(g.res.held, release)
			return nil
		}
		if errors.Is(err, commitlog.ErrOutOfRange) {
			return err
		}
	}
	run := g.runEnd(end, unit)
	err := g.readCold(phys, run)
	if err != nil && run > end {
		err = g.readCold(phys, end) // what is read along may be what is wrong
	}
	return err
}

// runEnd looks ahead in the units for records that can be read along.
func (g *getter) runEnd(end int64, unit int) int64 {
	limit := int64(min(g.maxBytes-g.res.Bytes, coldBuffer))
	start, count := end, 1
	for i := unit + consumequeue.UnitSize; i < len(g.units) && g.req.Filter == nil && g.res.Count+count < g.req.MaxMsgs; i += consumequeue.UnitSize {
		u := consumequeue.DecodeUnit(g.units[i:])
		if u.IsFiller() || u.Phys < end || u.Phys-end > coldGap || u.End()-start > limit/2 {
			break
		}
		end = u.End()
		count++
	}
	return end
}

func (g *getter) readCold(phys, end int64) error {
	n := int(end - phys)
	b := coldPool.Get().(*[]byte)
	if n > len(*b) {
		coldPool.Put(b)
		big := make([]byte, n)
		b = &big
	}
	if err := g.s.log.ReadAt((*b)[:n], phys); err != nil {
		if cap(*b) == coldBuffer {
			coldPool.Put(b)
		}
		return err
	}
	g.res.bufs = append(g.res.bufs, b)
	g.window, g.winOff, g.winHot = (*b)[:n], phys, false
	return nil
}

// readBatch walks the units of a batch queue: each stands for a record of several messages.
func (g *getter) readBatch(b *consumequeue.BatchQueue) error {
	n, err := b.Find(func(u consumequeue.BatchUnit) bool { return u.Next() <= g.req.Offset })
	if err != nil {
		return err
	}
	_, last := b.Units()
	for ; n < last; n++ {
		u, err := b.Unit(n)
		if err != nil {
			return err
		}
		if u.Base-g.req.Offset >= g.scan || g.full(int(u.Size), int(u.Count), u.Phys) {
			return nil
		}
		if u.Phys >= g.skipTo && g.matchesUnit(u.TagsCode) {
			g.units = nil
			if err := g.take(u.Phys, int(u.Size), int(u.Count), 0); err != nil {
				return err
			}
		}
		g.res.BehindBytes = g.logEnd - u.Phys
		g.res.NextOffset = u.Next()
	}
	return nil
}

// nextFileStart is the start of the first log file behind a position.
func (s *Store) nextFileStart(phys int64) int64 {
	files, err := s.log.Files()
	if err == nil {
		for _, f := range files {
			if f.Start > phys {
				return f.Start
			}
		}
	}
	size := s.log.FileSize()
	return phys - phys%size + size
}
