package inspect

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"

	"mqx/internal/sorted"
	"mqx/internal/vfs"
	"mqx/internal/words"
	"mqx/message"
)

// Log is the commit log as it lay on disk when the directory was opened. It is safe to share.
type Log struct {
	d       *Dir
	dirs    []string
	files   []File
	others  []string
	misfits []File // in the place of files: walking over one is an error
}

// ErrNoRecord says that no record starts at a physical offset.
var ErrNoRecord = errors.New("no record starts at this physical offset")

func (d *Dir) openLog() (*Log, error) {
	l := &Log{d: d, dirs: d.o.CommitLogDirs}
	if len(l.dirs) == 0 {
		l.dirs = []string{d.Path(nameCommitLog)}
	}
	for _, dir := range l.dirs {
		files, others, misfits, err := d.list(dir)
		if err != nil {
			return nil, err
		}
		l.files = append(l.files, files...)
		l.others = append(l.others, others...)
		l.misfits = append(l.misfits, misfits...)
	}
	sorted.Stably(l.files, func(a, b File) int { return cmp.Compare(a.Start, b.Start) })
	l.files = bounded(l.files, commonSize(l.files))
	return l, nil
}

// bounded are the files of a log of which each ends at the latest where the next one begins: what a file has behind that is
// no part of the log. Names inside of a file are no beginning of a next one.
func bounded(files []File, fileSize int64) []File {
	out := slices.Clone(files)
	for i := range out {
		f := &out[i]
		f.Size, f.Over = f.whole(), 0
		for _, next := range files[i+1:] {
			if next.Start >= f.End() {
				break
			}
			if next.Start-f.Start >= max(fileSize, 1) {
				f.Size, f.Over = next.Start-f.Start, f.End()-next.Start
				break
			}
		}
	}
	return out
}

// Dirs are the directories of the log.
func (l *Log) Dirs() []string { return l.dirs }

// Files are the files of the log, by position. Do not change them. Their sizes may differ, and there may be gaps.
func (l *Log) Files() []File { return l.files }

// Others are the names in the directories of the log that are no files of it.
func (l *Log) Others() []string { return l.others }

// FileSize is the size that most files have, which is mappedFileSizeCommitLog; 0 when there are none. Of sizes that are
// equally frequent the one counts that fits more of the names, then the larger one: a file is cut short more easily than made
// longer.
func (l *Log) FileSize() int64 { return commonSize(l.files) }

func commonSize(files []File) int64 {
	count := map[int64]int{}
	best := int64(0)
	for _, f := range files {
		count[f.Size]++
	}
	fits := func(size int64) (n int) {
		for _, f := range files {
			if size > 0 && f.Start%size == 0 {
				n++
			}
		}
		return n
	}
	for size, n := range count {
		if cmp.Or(cmp.Compare(n, count[best]), cmp.Compare(fits(size), fits(best)), cmp.Compare(size, best)) > 0 {
			best = size
		}
	}
	return best
}

// Min is the first position of the log, 0 when it has no files.
func (l *Log) Min() int64 {
	if len(l.files) == 0 {
		return 0
	}
	return l.files[0].Start
}

// Limit is the position behind the last file. Records end before it: see Walk.
func (l *Log) Limit() int64 {
	if len(l.files) == 0 {
		return 0
	}
	return l.files[len(l.files)-1].End()
}

// FileAt is the file that holds a position; ok is false when none does.
func (l *Log) FileAt(off int64) (File, bool) {
	i := l.fileIndex(off)
	if i == len(l.files) || l.files[i].Start > off {
		return File{}, false
	}
	return l.files[i], true
}

// fileIndex is the index of the first file that ends behind off.
func (l *Log) fileIndex(off int64) int {
	i, _ := slices.BinarySearchFunc(l.files, off, func(f File, off int64) int {
		if f.End() > off {
			return 1
		}
		return -1
	})
	return i
}

// ReadAt fills b with the bytes of the log at off, which must lie in one file.
func (l *Log) ReadAt(b []byte, off int64) error {
	f, ok := l.FileAt(off)
	if !ok || off+int64(len(b)) > f.End() {
		return fmt.Errorf("cannot read %s of the commit log at %d: %w", words.Count(len(b), "byte"), off, ErrNoRecord)
	}
	return l.d.fds.readAt(f.Path, b, off-f.Start)
}

// Record reads the record at off, whose bytes are the caller's own. Checksums are not compared. Errors:
// ErrNoRecord, with what is wrong there as far as it is known, or the one of the disk.
func (l *Log) Record(off int64) (message.View, error) {
	f, ok := l.FileAt(off)
	if !ok {
		return nil, fmt.Errorf("cannot read record at %d: %w: the log has no file there", off, ErrNoRecord)
	}
	size, why, err := l.frame(f, off, f.End())
	if err != nil {
		return nil, fmt.Errorf("cannot read record at %d: %w", off, err)
	}
	if why != nil {
		return nil, fmt.Errorf("cannot read record at %d: %w: %w", off, ErrNoRecord, why)
	}
	b := make([]byte, size)
	if err := l.d.fds.readAt(f.Path, b, off-f.Start); err != nil {
		return nil, fmt.Errorf("cannot read record at %d: %w", off, err)
	}
	v, why := message.ParseView(b, message.DecodeOptions{})
	if why == nil && v.PhysicalOffset() != off {
		why = placeError(v.PhysicalOffset())
	}
	if why != nil {
		return nil, fmt.Errorf("cannot read record at %d: %w: %w", off, ErrNoRecord, why)
	}
	return v, nil
}

// headBytes is enough of a record to read the length of its body, with two IPv6 hosts.
const headBytes = 48 + 20 + 8 + 20 + 4 + 8 + 4

// frame reads the head of what starts at off and returns its size, having checked the lengths of the parts against it
// without reading the parts: a size that was damaged never makes anybody read, or hold, a gigabyte. why says what is no
// record there; err is one of the disk.
func (l *Log) frame(f File, off, limit int64) (size int64, why, err error) {
	end := min(f.End(), limit)
	head := make([]byte, min(headBytes, end-off))
	if err := l.d.fds.readAt(f.Path, head, off-f.Start); err != nil {
		return 0, nil, err
	}
	n, magic, why := message.PeekRecord(head)
	size = int64(n)
	switch {
	case why != nil:
		if vfs.AllZero(head[:min(len(head), message.BlankLen)]) {
			why = errZeros
		}
		return 0, why, nil
	case magic == message.MagicBlank:
		return 0, message.ErrBlank, nil
	case size > end-off:
		return 0, fmt.Errorf("%w: %s, %d are left", errCrossesEnd, words.Count(size, "byte"), end-off), nil
	}
	if size <= readChunk {
		return size, nil, nil // ParseView says the rest
	}
	why, err = l.frameParts(f, off, size, head, magic)
	return size, why, err
}

// bodyLenAt is the place of the body length in a record.
func bodyLenAt(sysFlag int32) int64 {
	host := func(bit int32) int64 {
		if sysFlag&bit != 0 {
			return 20
		}
		return 8
	}
	return 48 + host(message.FlagBornHostV6) + 8 + host(message.FlagStoreHostV6) + 4 + 8
}

// frameParts adds up the parts of a large record.
func (l *Log) frameParts(f File, off, size int64, head []byte, magic int32) (why, err error) {
	if int64(len(head)) < headBytes {
		return message.ErrShort, nil
	}
	at := bodyLenAt(message.SysFlagOf(head))
	body := int64(int32(binary.BigEndian.Uint32(head[at:])))
	width := int64(1)
	if magic == message.MagicV2 {
		width = 2
	}
	pos := at + 4 + body
	if body < 0 || pos+width+2 > size {
		return &message.CorruptError{What: message.CorruptBodyLen, Want: size - at - 4 - width - 2, Got: body}, nil
	}
	var b [2]byte
	if err := l.d.fds.readAt(f.Path, b[:width], off-f.Start+pos); err != nil {
		return nil, err
	}
	topic := int64(int8(b[0]))
	if width == 2 {
		topic = int64(int16(uint16(b[0])<<8 | uint16(b[1])))
	}
	pos += width + topic
	if topic < 0 || pos+2 > size {
		return &message.CorruptError{What: message.CorruptTopicLen, Want: size - pos - 2 + topic, Got: topic}, nil
	}
	if err := l.d.fds.readAt(f.Path, b[:], off-f.Start+pos); err != nil {
		return nil, err
	}
	props := int64(int16(uint16(b[0])<<8 | uint16(b[1])))
	if props < 0 || pos+2+props != size {
		return &message.CorruptError{What: message.CorruptSize, Want: pos + 2 + max(props, 0), Got: size}, nil
	}
	return nil, nil
}

// First is the first whole record of the log and its position; ok is false when there is none.
func (l *Log) First() (v message.View, ok bool, err error) {
	for _, f := range l.files {
		v, err := l.Record(f.Start)
		if err == nil {
			return v, true, nil
		}
		if !errors.Is(err, ErrNoRecord) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, false, err
		}
	}
	return nil, false, nil
}

// noLimit as the end of a walk: everything there is.
const noLimit = int64(math.MaxInt64)
