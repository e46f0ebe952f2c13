package consumequeue

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"mqx/internal/vfs"
)

// Finding is something wrong with a queue's files that was put right.
type Finding struct {
	Path   string
	Offset int64 // byte offset in the file
	What   string
}

// chunkUnits is how many units are read at once when searching.
const chunkUnits = 200

// Load opens the files of one queue directory: their size, the range of units, the end. It reads a few units and does
// not look at the log. whole is false when files are missing between others: then the queue ends before the hole, and
// what lies behind has to be built again from LastEnd on.
//
// Files that a crash left empty or short are brought to the size of the others. Errors are those of the disk, and file
// names that do not fit the file size.
func (s *Set) Load(f Found) (q *Queue, found []Finding, whole bool, err error) {
	q = s.New(f.Topic, f.QueueID)
	files, err := s.listFiles(q.dir())
	if err != nil {
		return nil, nil, false, err
	}
	if len(files) == 0 {
		return q, nil, true, nil
	}
	fileBytes := commonSize(files, s.cfg.FileBytes, UnitSize)
	q.mu.fileBytes = fileBytes
	for _, f := range files {
		if f.start%fileBytes != 0 {
			return nil, nil, false, fmt.Errorf("cannot load consume queue: file %q does not begin at a multiple of the file size %d",
				q.path(f.start), fileBytes)
		}
		if f.size != fileBytes {
			if err := q.create(f.start, fileBytes); err != nil {
				return nil, nil, false, fmt.Errorf("cannot load consume queue: %w", err)
			}
			found = append(found, Finding{q.path(f.start), f.size, fmt.Sprintf("file of %d bytes brought to the size of the others, %d", f.size, fileBytes)})
		}
	}
	whole = true
	stale := files[len(files)-1].start + fileBytes
	for i, f := range files {
		if i > 0 && f.start != files[i-1].start+fileBytes {
			found = append(found, Finding{q.path(files[i-1].start + fileBytes), 0, "file is missing; the queue is built again from there on"})
			whole = false
			break
		}
		q.mu.starts = append(q.mu.starts, f.start)
	}
	if err := q.findEnd(); err != nil {
		return nil, nil, false, fmt.Errorf("cannot load consume queue: %w", err)
	}
	if !whole {
		q.mu.stale = stale / UnitSize
	}
	return q, found, whole, nil
}

type fileOnDisk struct{ start, size int64 }

func (s *Set) listFiles(dir string) ([]fileOnDisk, error) {
	entries, err := s.cfg.FS.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list queue files: %w", err)
	}
	var files []fileOnDisk
	for _, e := range entries {
		start, ok := parseFileName(e.Name())
		if !ok || e.IsDir() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, fmt.Errorf("cannot list queue files: %w", err)
		}
		files = append(files, fileOnDisk{start, info.Size()})
	}
	slices.SortFunc(files, func(a, b fileOnDisk) int { return int(min(max(a.start-b.start, -1), 1)) })
	return files, nil
}

// commonSize decides the file size of a queue by what is on disk: the distance of neighbours when it is plausible,
// else the size of the first file, else the configured one.
func commonSize(files []fileOnDisk, configured, unit int64) int64 {
	for _, f := range files {
		if f.size > 0 && f.size%unit == 0 && f.start%f.size == 0 {
			return f.size
		}
	}
	return configured
}

// findEnd finds the first unit that was never written, assuming that units were written one after the other.
func (q *Queue) findEnd() error {
	fileBytes := q.mu.fileBytes
	end := q.mu.starts[0] / UnitSize
	chunk := make([]byte, chunkUnits*UnitSize)
	var n int64
	for i := len(q.mu.starts) - 1; i >= 0 && n == 0; i-- {
		start := q.mu.starts[i]
		var err error
		if n, err = q.validUnits(start, fileBytes/UnitSize, chunk); err != nil {
			return err
		}
		if n > 0 {
			end = start/UnitSize + n
		}
	}
	q.min.Store(q.mu.starts[0] / UnitSize)
	q.mu.written = end
	q.max.Store(end)
	if len(q.mu.starts) == 1 && n < chunkUnits { // one read was enough: most queues, where there are many
		q.mu.lastEnd, q.mu.firstPhys = endsOf(chunk[:n*UnitSize])
		return nil
	}
	last, err := q.endBefore(end)
	q.mu.lastEnd, q.mu.firstPhys = last, -1
	if err == nil && end > q.min.Load() {
		// The file is open now, and will not be for long where there are many.
		if u, err := q.At(q.min.Load()); err == nil && !u.IsFiller() {
			q.mu.firstPhys = u.Phys
		}
	}
	return err
}

// endsOf returns the end of the last record that units point to, 0 for none, and where that of the first unit begins, -1
// for none.
func endsOf(units []byte) (last, first int64) {
	first = -1
	for i := 0; i < len(units); i += UnitSize {
		u := DecodeUnit(units[i:])
		if u.IsFiller() {
			continue
		}
		if last = u.End(); i == 0 {
			first = u.Phys
		}
	}
	return last, first
}

// validUnits counts the units at the start of a file that were written: the first chunk by looking, the rest by halving.
// The chunk is left in b, which holds chunkUnits, when the answer is less than that.
func (q *Queue) validUnits(start, units int64, b []byte) (int64, error) {
	n := min(units, chunkUnits)
	b = b[:n*UnitSize]
	if err := q.pread(b, start, 0); err != nil {
		return 0, err
	}
	for i := range n {
		if !DecodeUnit(b[i*UnitSize:]).Valid() {
			return i, nil
		}
	}
	lo, hi := n, units // units before lo are valid; hi is not, or the end
	for lo < hi {
		mid := lo + (hi-lo)/2
		if err := q.pread(b[:UnitSize], start, mid*UnitSize); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if DecodeUnit(b).Valid() {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// endBefore returns the physical offset behind the record of the last unit before off, 0 for none. The units are in
// files.
func (q *Queue) endBefore(off int64) (int64, error) {
	b := make([]byte, chunkUnits*UnitSize)
	first, units := q.first(), q.FileUnits()
	for hi := off; hi > first; {
		lo := max(hi-chunkUnits, (hi-1)/units*units) // within one file
		n, err := q.readFile(lo, b[:(hi-lo)*UnitSize])
		if err != nil {
			return 0, err
		}
		for i := n - 1; i >= 0; i-- {
			if u := DecodeUnit(b[i*UnitSize:]); u.Valid() && !u.IsFiller() {
				return u.End(), nil
			}
		}
		hi = lo
	}
	return 0, nil
}

// Reset drops the units of records at or behind phys from memory, so that Put can give them again. Finish ends it. It
// reports how many units were dropped. Nothing may be pending.
//
// The units of records before phys are taken to be there, one behind the other. Behind them there may be anything: after
// a power loss a file can have holes where units were, and hold later ones.
func (q *Queue) Reset(phys int64) (dropped int64, err error) {
	old := q.max.Load()
	q.mu.Lock()
	if len(q.mu.starts) == 0 {
		q.mu.Unlock()
		return 0, nil
	}
	keep, last, firstPhys := old, q.mu.lastEnd, q.mu.firstPhys
	q.mu.Unlock()
	if firstPhys >= phys { // a queue that is younger than the place: nothing stays, and nothing need be searched for
		keep, last = q.first(), 0
	} else if last > phys || last == 0 {
		if keep, err = q.cutAt(phys); err != nil {
			return 0, err
		}
		if last, err = q.endBefore(keep); err != nil {
			return 0, err
		}
	}
	stale, err := q.staleEnd(keep)
	if err != nil {
		return 0, err
	}
	if e := q.ext.Load(); e != nil {
		e.reset()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	// A process that was killed may have made files whose names are not durable: the next sync looks after that.
	q.mu.newNames = true
	q.mu.stale = max(q.mu.stale, old, stale)
	q.mu.written, q.mu.lastEnd = keep, last
	if keep < old {
		q.mu.firstPhys = -1
	}
	q.max.Store(keep)
	if keep < q.min.Load() {
		q.min.Store(keep)
	}
	return old - keep, nil
}

// cutAt returns the offset of the first unit, in all files, that was never written or whose record lies at or behind
// phys. Fillers count as the unit that follows them; those at the start of the queue stay whatever follows: they are of
// messages that are gone, or that came before this queue, and their offsets stay used.
func (q *Queue) cutAt(phys int64) (int64, error) {
	lo, hi := q.extent()
	all := hi
	lo, err := q.skipFillers(lo, q.max.Load())
	if err != nil {
		return 0, err
	}
	for lo < hi {
		mid := lo + (hi-lo)/2
		before, err := q.liesBefore(mid, all, phys)
		if err != nil {
			return 0, err
		}
		if before {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// extent is the range of units that the files have room for.
func (q *Queue) extent() (first, end int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.starts[0] / UnitSize, (q.mu.starts[len(q.mu.starts)-1] + q.mu.fileBytes) / UnitSize
}

// liesBefore reports whether the unit at off, or the first one behind it that is no filler, is of a record before phys.
func (q *Queue) liesBefore(off, end, phys int64) (bool, error) {
	b := make([]byte, UnitSize)
	for off < end {
		n, err := q.readFile(off, b)
		if err != nil {
			return false, err
		}
		for i := range n {
			if u := DecodeUnit(b[i*UnitSize:]); !u.Valid() || !u.IsFiller() {
				return u.Valid() && u.Phys < phys, nil
			}
		}
		off += int64(n)
		b = make([]byte, chunkUnits*UnitSize)
	}
	return false, nil
}

// staleEnd returns the offset behind the last unit at or behind from that is not zero, in all files; from for none. What
// was never written is passed over without reading it, where the file system can tell.
func (q *Queue) staleEnd(from int64) (int64, error) {
	q.mu.Lock()
	starts, fileBytes := slices.Clone(q.mu.starts), q.mu.fileBytes
	q.mu.Unlock()
	for _, start := range slices.Backward(starts) {
		if start+fileBytes <= from*UnitSize {
			break
		}
		last, err := q.lastData(start, max(0, from*UnitSize-start), fileBytes)
		if err != nil {
			return 0, err
		}
		if last >= 0 {
			return (start+last)/UnitSize + 1, nil
		}
	}
	return from, nil
}

// lastData returns the place of the last byte in [from, to) of a file that is not zero, -1 for none.
func (q *Queue) lastData(start, from, to int64) (int64, error) {
	o, err := q.set.fds.use(q.key(start), q, 0)
	if err != nil {
		return 0, err
	}
	defer q.set.fds.release(o)
	b := make([]byte, chunkUnits*UnitSize)
	last := int64(-1)
	for from < to {
		if ds, ok := o.f.(vfs.DataSeeker); ok {
			next, err := ds.NextData(from)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return 0, err
			}
			from = next
		}
		n, err := o.f.ReadAt(b[:max(0, min(int64(len(b)), to-from))], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if n == 0 {
			break
		}
		if i := len(bytes.TrimRight(b[:n], "\x00")); i > 0 {
			last = from + int64(i) - 1
		}
		from += int64(n)
	}
	return last, nil
}

// Finish makes the files end where the units end after Reset and Put: units behind are zeroed, files behind removed.
func (s *Set) Finish(q *Queue) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return s.finish(q)
}

func (s *Set) finish(q *Queue) error {
	if err := q.writeOut(); err != nil {
		return err
	}
	q.mu.Lock()
	end, stale, fileBytes := q.mu.written, q.mu.stale, q.mu.fileBytes
	q.mu.stale = 0
	q.mu.Unlock()
	if stale <= end {
		return nil
	}
	if err := q.removeFilesFrom((end*UnitSize + fileBytes - 1) / fileBytes * fileBytes); err != nil {
		return fmt.Errorf("cannot cut consume queue: %w", err)
	}
	at := end * UnitSize % fileBytes
	if at == 0 {
		return nil
	}
	if err := q.zero(end*UnitSize-at, at, min(fileBytes, at+(stale-end)*UnitSize)); err != nil {
		return fmt.Errorf("cannot cut consume queue: %w", err)
	}
	return nil
}

// zero clears [from, to) of a file.
func (q *Queue) zero(start, from, to int64) error {
	b := make([]byte, min(to-from, blankChunk*UnitSize))
	for from < to {
		n := min(int64(len(b)), to-from)
		if err := q.writeAt(start, from, b[:n]); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// removeFilesFrom removes the files that begin at or behind a byte offset, also those that Load did not take in.
func (q *Queue) removeFilesFrom(from int64) error {
	files, err := q.set.listFiles(q.dir())
	if err != nil {
		return err
	}
	removed := false
	for _, f := range files {
		if f.start < from {
			continue
		}
		q.set.fds.forget(q.key(f.start))
		if err := q.set.cfg.FS.Remove(q.path(f.start)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		removed = true
	}
	q.mu.Lock()
	q.mu.starts = slices.DeleteFunc(q.mu.starts, func(start int64) bool { return start >= from })
	q.mu.newNames = q.mu.newNames || removed
	q.mu.Unlock()
	if removed {
		q.set.markUnsynced(q)
	}
	return nil
}

// Truncate drops the units of records at or behind phys, in memory and in the files.
func (s *Set) Truncate(q *Queue, phys int64) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := q.writeOut(); err != nil {
		return err
	}
	if _, err := q.Reset(phys); err != nil {
		return err
	}
	return s.finish(q)
}

// KeepDropped keeps the offsets of units that Reset dropped and Put did not give again, although their records lie before
// end: records that cannot be read any more. They become fillers, so that their offsets are not given out a second time.
// It returns how many. Nothing may be pending.
func (q *Queue) KeepDropped(end int64) (int64, error) {
	q.mu.Lock()
	from, stale := q.max.Load(), q.mu.stale
	q.mu.Unlock()
	keep := from
	b := make([]byte, chunkUnits*UnitSize)
	for off := from; off < stale; {
		n, err := q.readFile(off, b[:min(chunkUnits, stale-off)*UnitSize])
		if errors.Is(err, ErrNoUnits) {
			break
		}
		if err != nil {
			return 0, err
		}
		for i := range n {
			u := DecodeUnit(b[i*UnitSize:])
			if !u.Valid() || !u.IsFiller() && u.Phys >= end {
				n = -1
				break
			}
			keep = off + int64(i) + 1
		}
		if n < 0 {
			break
		}
		off += int64(n)
	}
	if keep == from {
		return 0, nil
	}
	return keep - from, q.fill(keep)
}

// FillUpTo gives the queue fillers up to an offset, of messages that are gone, so that it is not given out a second time. A queue
// without units gets one. It returns how many. Errors are those of the disk: many are written out as they come.
func (q *Queue) FillUpTo(end int64) (int64, error) {
	q.mu.Lock()
	from := q.max.Load()
	if from < end && from == 0 && len(q.mu.starts) == 0 {
		from = end - 1
		q.begin(from)
		q.max.Store(from)
	}
	q.mu.Unlock()
	if from >= end {
		return 0, nil
	}
	return end - from, q.fill(end)
}

const (
	// fillChunk is how many fillers are pushed at once.
	fillChunk = 1 << 14
	// fillPending bytes of units in memory are written out while queues are filled: the lack may be of hours.
	fillPending = 20 << 20
)

// fill pushes fillers up to an offset.
func (q *Queue) fill(end int64) error {
	for at := q.max.Load(); at < end; {
		n := min(end-at, fillChunk)
		q.mu.Lock()
		for range n {
			q.push(Filler)
		}
		list := !q.mu.listed
		q.mu.listed = true
		q.mu.Unlock()
		at += n
		q.max.Store(at)
		if list {
			q.set.markDirty(q)
		}
		if q.set.Pending() >= fillPending {
			if err := q.set.WriteOut(); err != nil {
				return err
			}
		}
	}
	return nil
}

// readFile reads units from a file wherever the queue ends.
func (q *Queue) readFile(off int64, dst []byte) (int, error) {
	_, fileBytes := q.Files()
	start := off * UnitSize / fileBytes * fileBytes
	n := min(int64(len(dst)/UnitSize), (start+fileBytes)/UnitSize-off)
	return int(n), q.pread(dst[:n*UnitSize], start, off*UnitSize-start)
}
