package timer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"mqx/internal/vfs"
)

const (
	// CheckpointSize is how much of the file config/timercheck is used; it is also the body of GET_TIMER_CHECK_POINT.
	CheckpointSize = 56
	// checkpointBytes is the length of the file. What is used lies in one sector: a write in place is never torn.
	checkpointBytes = 4096
)

// Checkpoint is the content of config/timercheck: how far the timer has come, durably.
type Checkpoint struct {
	ReadTime          int64 // ms: the oldest slot that has not been passed
	LogFlushed        int64 // the wheel's file knows the units of the timer log before this position
	QueueOffset       int64 // next offset of the timer topic
	MasterQueueOffset int64 // the same of the master; on a master, its own
	StateVersion      int64 // with the next two, the data version: it changes when something else does
	Timestamp         int64
	Counter           int64
}

func (c *Checkpoint) fields() [7]*int64 {
	return [...]*int64{
		&c.ReadTime, &c.LogFlushed, &c.QueueOffset, &c.MasterQueueOffset, &c.StateVersion, &c.Timestamp, &c.Counter,
	}
}

// Append appends the bytes of the checkpoint.
func (c *Checkpoint) Append(dst []byte) []byte {
	for _, f := range c.fields() {
		dst = binary.BigEndian.AppendUint64(dst, uint64(*f))
	}
	return dst
}

// DecodeCheckpoint reads a checkpoint. The data version may be missing, as old versions wrote it. ok is false when the
// bytes cannot be one.
func DecodeCheckpoint(b []byte) (c Checkpoint, ok bool) {
	if len(b) < 32 {
		return c, false
	}
	for i, f := range c.fields() {
		if len(b) < 8*i+8 {
			break
		}
		*f = int64(binary.BigEndian.Uint64(b[8*i:]))
	}
	if c.ReadTime < 0 || c.LogFlushed < 0 || c.QueueOffset < 0 || c.MasterQueueOffset < 0 {
		return Checkpoint{}, false
	}
	return c, true
}

// ReadCheckpoint reads config/timercheck of a store directory; ok is false when there is none that can be used.
func ReadCheckpoint(fsys vfs.FS, root string) (c Checkpoint, ok bool, err error) {
	b, err := readHead(fsys, checkpointPath(root), CheckpointSize)
	if err != nil {
		return c, false, fmt.Errorf("cannot read timer checkpoint: %w", err)
	}
	c, ok = DecodeCheckpoint(b)
	return c, ok && c != Checkpoint{}, nil
}

// readHead reads up to n bytes; a missing file is empty.
func readHead(fsys vfs.FS, path string, n int) ([]byte, error) {
	f, err := fsys.Open(path)
	if vfs.Absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	got, err := f.ReadAt(b, 0)
	if errors.Is(err, io.EOF) || vfs.Absent(err) { // a directory can be opened
		err = nil
	}
	return b[:got], errors.Join(err, f.Close())
}

// progress is how far the timer has come as of now, in a file of mqx's own beside the checkpoint. It is written often, without a
// sync, at notedAt, and at durableAt when a flush has to say more than the checkpoint can: a power failure that brings forth a
// newer one of the first kind, for which the commit log is too short, leaves the other one. After a killed process it spares
// repetitions. It holds only beside the checkpoint that it was written with, for
// a commit log that reaches to need, and a timer log that reaches to logEnd.
type progress struct {
	readTime    int64 // the oldest slot that has not been passed
	slotPos     int64 // the last unit of it that has been delivered, NoPos for none
	queueOffset int64
	need        int64 // position in the commit log behind what was stored for this
	logEnd      int64 // of the timer log
	// with are the sums of the checkpoint that was durable then, and of the one that was about to be. Whoever else works on the
	// store meanwhile, or a power failure that keeps the older of the two files, makes them differ.
	with [2]uint32
}

const (
	progressMagic = 0x6d717875 // "mqxu"
	progressSize  = 4 + 5*8 + 2*4 + 4

	durableAt     = 0
	notedAt       = 4096 // a page of its own
	restAt        = 8192
	progressBytes = restAt + restSize
)

// rest is what an orderly end notes of the wheel, so that the next start sees whether its file still holds all: how many
// messages wait in it, beside the checkpoint of that end. A start blanks it.
type rest struct {
	num  int64
	with uint32
}

const (
	restMagic = 0x6d717877 // "mqxw"
	restSize  = 4 + 8 + 4 + 4
)

func (r *rest) bytes() []byte {
	be := binary.BigEndian
	dst := be.AppendUint32(be.AppendUint64(be.AppendUint32(nil, restMagic), uint64(r.num)), r.with)
	return be.AppendUint32(dst, crc32.ChecksumIEEE(dst))
}

func decodeRest(b []byte) (r rest, ok bool) {
	be := binary.BigEndian
	if len(b) < restSize || be.Uint32(b) != restMagic || be.Uint32(b[restSize-4:]) != crc32.ChecksumIEEE(b[:restSize-4]) {
		return r, false
	}
	return rest{int64(be.Uint64(b[4:])), be.Uint32(b[12:])}, true
}

// sum identifies a checkpoint.
func (c *Checkpoint) sum() uint32 { return crc32.ChecksumIEEE(c.Append(nil)) }

func (p *progress) bytes() []byte {
	be := binary.BigEndian
	dst := be.AppendUint32(nil, progressMagic)
	for _, v := range [...]int64{p.readTime, p.slotPos, p.queueOffset, p.need, p.logEnd} {
		dst = be.AppendUint64(dst, uint64(v))
	}
	dst = be.AppendUint32(be.AppendUint32(dst, p.with[0]), p.with[1])
	return be.AppendUint32(dst, crc32.ChecksumIEEE(dst))
}

func decodeProgress(b []byte) (p progress, ok bool) {
	be := binary.BigEndian
	if len(b) < progressSize || be.Uint32(b) != progressMagic || be.Uint32(b[progressSize-4:]) != crc32.ChecksumIEEE(b[:progressSize-4]) {
		return p, false
	}
	for i, f := range [...]*int64{&p.readTime, &p.slotPos, &p.queueOffset, &p.need, &p.logEnd} {
		*f = int64(be.Uint64(b[4+8*i:]))
	}
	p.with = [2]uint32{be.Uint32(b[progressSize-12:]), be.Uint32(b[progressSize-8:])}
	return p, p.readTime >= 0 && p.slotPos >= NoPos && p.queueOffset >= 0 && p.need >= 0 && p.logEnd >= 0
}

// after reports whether p is newer than q, which was written beside the same checkpoint.
func (p *progress) after(q *progress) bool {
	if p.readTime != q.readTime {
		return p.readTime > q.readTime
	}
	if p.slotPos != q.slotPos {
		return p.slotPos > q.slotPos
	}
	return p.queueOffset > q.queueOffset
}

// openSized opens a file for writing in place, making it durably with a length when it is missing or shorter.
func openSized(fsys vfs.FS, path, dir string, size int64) (vfs.File, error) {
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	now, err := f.Size()
	if err == nil && now < size {
		if err = f.Truncate(size); err == nil {
			if err = f.Sync(); err == nil {
				err = fsys.SyncDir(dir)
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
