package storecheck

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strconv"

	"mqx/internal/vfs"
)

// Record is one record of the commit log.
type Record struct {
	Phys, QueueOffset int64
	Size              int32
	Topic             string
	QueueID           int32
	SysFlag           int32
	StoreTime         int64 // ms
	Body              []byte
	Properties        map[string]string
	Torn              bool // the properties hold a zero byte, which no test sends
}

// End is the position behind the record.
func (r *Record) End() int64 { return r.Phys + int64(r.Size) }

// Rot is a part of the log that holds no record although records follow.
type Rot struct{ From, To int64 }

// Log is what a commit log directory holds.
type Log struct {
	Min, End int64 // first position, and the one behind the last record
	FileSize int64
	Files    int
	Records  []Record
	Rot      []Rot
	Tail     []string // what is wrong behind End: bytes that are not zero
}

const (
	magicV1    = 0xDAA320A7
	magicV2    = 0xDAA320AB
	magicBlank = 0xCBD43194
	blankLen   = 8
)

// ReadLog reads all files of a commit log directory.
func ReadLog(fsys vfs.FS, dir string) (*Log, error) {
	names, err := numbered(fsys, dir)
	if err != nil {
		return nil, err
	}
	l := &Log{Files: len(names)}
	if len(names) == 0 {
		return l, nil
	}
	l.Min = names[0].start
	l.End = l.Min
	var all [][]byte
	for i, n := range names {
		b, err := vfs.ReadFile(fsys, filepath.Join(dir, n.name))
		if err != nil {
			return nil, err
		}
		if i == 0 {
			l.FileSize = int64(len(b))
		}
		if int64(len(b)) != l.FileSize || n.start != l.Min+int64(i)*l.FileSize {
			return nil, fmt.Errorf("cannot read commit log %q: file %s has %d bytes behind %d files of %d from %d", dir, n.name, len(b), i, l.FileSize, l.Min)
		}
		all = append(all, b)
	}
	l.walk(all)
	return l, nil
}

// walk reads record by record. Where none starts, it looks for the next one: what lies between is rot, or, when there is
// none, the tail.
func (l *Log) walk(files [][]byte) {
	base, lastTime := l.Min, int64(0)
	bad := int64(-1) // where rot begins
	for _, b := range files {
		at := int64(0)
		for at < int64(len(b)) {
			rest := b[at:]
			if len(rest) < blankLen {
				break
			}
			if binary.BigEndian.Uint32(rest[4:]) == magicBlank && int(binary.BigEndian.Uint32(rest)) == len(rest) && bad < 0 {
				break
			}
			r, err := decode(rest, base+at, at)
			if err != nil || bad >= 0 && r.StoreTime < lastTime {
				if bad < 0 {
					bad = base + at
				}
				step := nextMagic(rest)
				if step < 0 {
					break
				}
				at += step
				continue
			}
			if bad >= 0 {
				l.Rot = append(l.Rot, Rot{bad, r.Phys})
				bad = -1
			}
			l.Records = append(l.Records, r)
			l.End, lastTime = r.End(), r.StoreTime
			at += int64(r.Size)
		}
		base += int64(len(b))
	}
	l.checkTail(files)
}

// nextMagic is the distance to the next place behind the start of b where a record may begin; -1 for none.
func nextMagic(b []byte) int64 {
	const before = 4 // bytes of a record in front of its magic code
	if len(b) <= before {
		return -1
	}
	i := bytes.Index(b[before+1:], []byte{0xDA, 0xA3, 0x20})
	if i < 0 {
		return -1
	}
	return int64(i) + 1
}

// checkTail notes what is behind the end and is neither zero nor a blank that closes a file.
func (l *Log) checkTail(files [][]byte) {
	for i, b := range files {
		start := l.Min + int64(i)*l.FileSize
		from := max(0, l.End-start)
		if from >= int64(len(b)) {
			continue
		}
		rest := b[from:]
		if len(rest) >= blankLen && binary.BigEndian.Uint32(rest[4:]) == magicBlank && int(binary.BigEndian.Uint32(rest)) == len(rest) {
			l.End = start + int64(len(b)) // the file is full
			continue
		}
		if n := len(bytes.TrimRight(rest, "\x00")); n > 0 {
			l.Tail = append(l.Tail, fmt.Sprintf("%d bytes that are not zero behind the end, at %d", n, start+from))
		}
	}
}

// decode reads the record at the start of b, which lies at phys, and at a place in its file, and checks all that can be
// checked of it.
func decode(b []byte, phys, place int64) (Record, error) {
	d := decoder{b: b}
	r := Record{Phys: phys, Size: int32(d.u32())}
	magic := d.u32()
	if magic != magicV1 && magic != magicV2 {
		return r, fmt.Errorf("no magic code")
	}
	if r.Size < 91 || int(r.Size) > len(b) {
		return r, fmt.Errorf("size %d", r.Size)
	}
	d.b = b[:r.Size]
	crc := d.u32()
	r.QueueID = int32(d.u32())
	d.u32() // flag
	r.QueueOffset = int64(d.u64())
	if at := int64(d.u64()); at != phys {
		return r, fmt.Errorf("carries position %d", at)
	}
	r.SysFlag = int32(d.u32())
	d.u64() // born
	d.take(hostLen(r.SysFlag, 0x10))
	r.StoreTime = int64(d.u64())
	d.take(hostLen(r.SysFlag, 0x20))
	d.u32() // times consumed
	d.u64() // half message
	r.Body = d.take(int(d.u32()))
	if magic == magicV2 {
		r.Topic = string(d.take(int(d.u16())))
	} else {
		r.Topic = string(d.take(int(d.u8())))
	}
	props := d.take(int(d.u16()))
	if d.short || d.at != len(d.b) {
		return r, fmt.Errorf("parts of %d bytes in a record of %d", d.at, r.Size)
	}
	if got := crc32.ChecksumIEEE(r.Body) & 0x7FFFFFFF; got != crc {
		return r, fmt.Errorf("body checksum %08x, want %08x", got, crc)
	}
	end := place + int64(r.Size)
	for from := (end - int64(len(props)) + 511) / 512 * 512; from < end; from += 512 { // did each sector reach the disk?
		if part := props[int64(len(props))-(end-from):]; len(bytes.Trim(part[:min(512, len(part))], "\x00")) == 0 {
			return r, fmt.Errorf("sector without data at %d", from)
		}
	}
	r.Properties = properties(props)
	r.Torn = bytes.IndexByte(props, 0) >= 0
	return r, nil
}

func hostLen(sysFlag int32, ipv6 int32) int {
	if sysFlag&ipv6 != 0 {
		return 20
	}
	return 8
}

func properties(b []byte) map[string]string {
	m := map[string]string{}
	for pair := range bytes.SplitSeq(b, []byte{2}) {
		if name, value, ok := bytes.Cut(pair, []byte{1}); ok {
			m[string(name)] = string(value)
		}
	}
	return m
}

// decoder reads big-endian fields and remembers when there were too few bytes.
type decoder struct {
	b     []byte
	at    int
	short bool
}

func (d *decoder) take(n int) []byte {
	if n < 0 || d.short || n > len(d.b)-d.at {
		d.short = true
		return make([]byte, 8)
	}
	d.at += n
	return d.b[d.at-n : d.at]
}

func (d *decoder) u8() byte    { return d.take(1)[0] }
func (d *decoder) u16() uint16 { return binary.BigEndian.Uint16(d.take(2)) }
func (d *decoder) u32() uint32 { return binary.BigEndian.Uint32(d.take(4)) }
func (d *decoder) u64() uint64 { return binary.BigEndian.Uint64(d.take(8)) }

// fileName is a file that is named after the position of its first byte.
type fileName struct {
	name  string
	start int64
}

// numbered lists the files of a directory that are named by 20 digits, in order; a missing directory has none.
func numbered(fsys vfs.FS, dir string) ([]fileName, error) {
	entries, err := readDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	var out []fileName
	for _, e := range entries {
		if start, err := strconv.ParseInt(e.Name(), 10, 64); err == nil && len(e.Name()) == 20 && !e.IsDir() {
			out = append(out, fileName{e.Name(), start})
		}
	}
	return out, nil
}
