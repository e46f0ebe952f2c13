package commitlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"mqx/internal/vfs"
	"mqx/message"
)

// skip looks for a whole record behind a place where none starts. When there is one, what lies between is rot: it is
// reported, and the walk goes on at the record. When there is none, the walk ends (-1): with EndTorn, or with
// EndOfData when there is nothing but zeros.
func (w *walker) skip(off int64, why error) (next int64, err error) {
	sc := &scanner{w: w, from: off, pos: off}
	next, err = sc.next()
	if err != nil {
		return 0, err
	}
	if next < 0 {
		w.end.Reason, w.end.Err = EndOfData, nil
		if sc.nonzero || !errors.Is(why, errZeros) {
			w.end.Reason, w.end.Err = EndTorn, why
		}
		return -1, nil
	}
	path := ""
	if s := w.l.segmentOf(off, 0); s != nil {
		path = s.path
	}
	return next, w.found(Finding{Kind: Rot, From: off, To: next, Path: path, Err: why})
}

// scanner searches the bytes behind a broken place for the next whole record: right magic and size, right checksum,
// carrying its own place, and not stored before the last good one. The last condition sorts out what an Apache broker
// leaves behind the end of its log when it cuts it, which it does without clearing the bytes.
type scanner struct {
	w       *walker
	from    int64 // where no record starts
	pos     int64 // searched up to here
	nonzero bool  // there was something else than zeros
	buf     []byte
}

const (
	scanChunk = 1 << 20
	// ScanHead is how many bytes of a record NextHead needs: up to the physical offset.
	ScanHead    = 36
	posMagic    = 4
	posPhysical = 28
)

// magicHead is what both magic codes of a record start with.
var magicHead = []byte{0xDA, 0xA3, 0x20}

// NextHead is the first place in b, the bytes of the log at pos, from index from on where a record may start: a magic
// code stands there, and the record carries the place as its own. -1 when there is none; one that b holds less than
// ScanHead bytes of is none.
func NextHead(b []byte, pos int64, from int) int {
	for at := from + posMagic; at < len(b); at++ {
		i := bytes.Index(b[at:], magicHead)
		if i < 0 {
			return -1
		}
		at += i
		start := at - posMagic
		if start+ScanHead <= len(b) && binary.BigEndian.Uint64(b[start+posPhysical:]) == uint64(pos)+uint64(start) {
			return start
		}
	}
	return -1
}

// Stale tells whether a record with the store time store was stored before the last good one, whose time is last (0 for
// none). A last good one from the future proves nothing: no checksum covers the time. Times are Unix ms.
func Stale(store, last int64, now time.Time) bool {
	return store < last && last <= now.Add(maxClockLead).UnixMilli()
}

func (sc *scanner) next() (int64, error) {
	w := sc.w
	for i := find(w.segs, sc.from); i < len(w.segs); i++ {
		s := w.segs[i]
		if s.start >= w.limit {
			break
		}
		sc.pos = max(sc.pos, s.start)
		if found, err := sc.searchSegment(s, min(s.end(), w.limit)); err != nil || found >= 0 {
			return found, err
		}
	}
	return -1, nil
}

func (sc *scanner) searchSegment(s *segment, end int64) (int64, error) {
	for sc.pos < end {
		if err := sc.toData(s, end); err != nil {
			return 0, err
		}
		n := min(end-sc.pos, scanChunk)
		if n <= 0 {
			break
		}
		if sc.buf == nil {
			sc.buf = make([]byte, scanChunk)
		}
		b := sc.buf[:n]
		if err := sc.w.l.readSegment(s, b, sc.pos); err != nil {
			return 0, err
		}
		if !sc.nonzero {
			sc.nonzero = !vfs.AllZero(b)
		}
		if found, err := sc.searchChunk(s, b, end); err != nil || found >= 0 {
			return found, err
		}
		if sc.pos+n == end {
			sc.pos = end
		} else {
			sc.pos += n - ScanHead // the head of a record may lie across the border
		}
	}
	return -1, nil
}

// toData moves over a hole of the file.
func (sc *scanner) toData(s *segment, end int64) error {
	f, err := sc.w.l.open(s)
	if err != nil {
		return err
	}
	defer f.Release()
	pos, err := f.NextData(sc.pos - s.start)
	if errors.Is(err, io.EOF) {
		sc.pos = end
		return nil
	}
	if err == nil && s.start+pos > sc.pos {
		sc.pos = min(s.start+pos, end)
	}
	return err
}

// searchChunk tries every place in b, the bytes at pos, where a record may start.
func (sc *scanner) searchChunk(s *segment, b []byte, end int64) (int64, error) {
	for at := NextHead(b, sc.pos, 0); at >= 0; at = NextHead(b, sc.pos, at+1) {
		off := sc.pos + int64(at)
		if off <= sc.from {
			continue
		}
		if ok, err := sc.check(s, off, end); err != nil || ok {
			return off, err
		}
	}
	return -1, nil
}

// check reads the record at off and tells whether it is whole. An error is one of reading.
func (sc *scanner) check(s *segment, off, end int64) (bool, error) {
	var head [message.BlankLen]byte
	if err := sc.w.l.readSegment(s, head[:], off); err != nil {
		return false, err
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	if size < message.MinRecordLen || size > min(end-off, maxRecordSize) {
		return false, nil
	}
	b := make([]byte, size)
	if err := sc.w.l.readSegment(s, b, off); err != nil {
		return false, err
	}
	rec, broken := message.ParseView(b, message.DecodeOptions{VerifyBodyCRC: true})
	whole := broken == nil && rec.PhysicalOffset() == off && !Stale(rec.StoreTimestamp(), sc.w.end.LastStore, sc.w.l.cfg.Clock.Now()) && !lacksSector(rec, off-s.start)
	return whole, nil
}

// sector is what a disk writes whole or not at all.
const sector = 512

// lacksSector reports whether a sector in the properties of a record at a place in its file is zero up to its end, or
// up to that of the record: it did not reach the disk when the power failed. Lengths and body say so themselves; no
// checksum covers the properties, unless they carry one. Other properties hold no such run of zero bytes, and do not end
// in one: see CheckProperties.
func lacksSector(rec message.View, at int64) bool {
	props := int64(len(rec.Properties()))
	if props == 0 {
		topic := rec.Topic() // no name holds a zero byte
		return len(topic) > 0 && topic[len(topic)-1] == 0 && !sealed(rec)
	}
	end := at + int64(len(rec))
	for from := (end - props + sector - 1) / sector * sector; from < end; from += sector {
		if vfs.AllZero(rec[from-at : min(from+sector, end)-at]) {
			return !sealed(rec)
		}
	}
	return false
}

// lacksEnd reports whether the properties of a record end in a zero byte, which those of mqx do not: see CheckProperties. The
// log of a slave of Apache's ends in the middle of a record, wherever the last bytes of its master were cut.
func lacksEnd(rec message.View) bool {
	props := rec.Properties()
	return len(props) > 0 && props[len(props)-1] == 0 && !sealed(rec)
}

// follows reports whether a whole record, or a blank, begins at off, where one has ended that lies in s.
func (w *walker) follows(s *segment, off int64) (bool, error) {
	if s.end()-off < message.BlankLen {
		i := find(w.segs, s.end())
		if i == len(w.segs) || w.segs[i].start != s.end() {
			return false, nil
		}
		s, off = w.segs[i], s.end()
	}
	end := min(s.end(), w.limit)
	if end-off < message.BlankLen {
		return false, nil
	}
	var head [message.BlankLen]byte
	if err := w.l.readSegment(s, head[:], off); err != nil {
		return false, err
	}
	if size, magic, err := message.PeekRecord(head[:]); err == nil && magic == message.MagicBlank {
		return off+int64(size) == s.end(), nil
	}
	return (&scanner{w: w}).check(s, off, end)
}

// LacksSector reports whether recovery takes a record, at a place in its file, for torn: see lacksSector.
func LacksSector(rec message.View, at int64) bool { return lacksSector(rec, at) }

// sealed reports whether a record carries the right checksum of all of it.
func sealed(rec message.View) bool {
	if !message.HasPropCRC(rec) {
		return false
	}
	_, err := message.ParseView(rec, message.DecodeOptions{VerifyPropCRC: true})
	return err == nil
}

// CheckProperties refuses properties that recovery would take for torn ones, wherever in the log they lay. Those of a
// record that carries a checksum may be anything.
func CheckProperties(props []byte) error {
	if n := len(props); n > 0 && props[n-1] == 0 {
		return errors.New("the properties end in a zero byte")
	}
	for i := bytes.IndexByte(props, 0); i >= 0; {
		run := len(props[i:]) - len(bytes.TrimLeft(props[i:], "\x00"))
		if run >= sector {
			return fmt.Errorf("the properties hold %d zero bytes in a row, the limit is %d", run, sector-1)
		}
		next := bytes.IndexByte(props[i+run:], 0)
		if next < 0 {
			break
		}
		i += run + next
	}
	return nil
}
