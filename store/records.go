package store

import (
	"errors"
	"fmt"

	"mqx/message"
	"mqx/store/commitlog"
	"mqx/store/mapped"
)

// RecordReader reads records by the positions and sizes that units of queues give, into memory of its own. It is for
// those who work through a queue inside the broker; readers of clients use Get. It is not safe to share.
type RecordReader struct {
	s   *Store
	buf []byte
}

// NewRecordReader makes a reader. It holds no file.
func (s *Store) NewRecordReader() *RecordReader { return &RecordReader{s: s} }

// maxKeptRecords bounds the memory that a reader keeps from one Reset to the next.
const maxKeptRecords = 8 << 20

// Reset makes room for so many bytes of records. What was read before is gone. With 0 the memory is given back.
func (r *RecordReader) Reset(bytes int) {
	if bytes == 0 || cap(r.buf) > maxKeptRecords && bytes <= maxKeptRecords {
		r.buf = nil
	}
	if cap(r.buf) < bytes {
		r.buf = make([]byte, 0, max(bytes, 64<<10))
	}
	r.buf = r.buf[:0]
}

// Size is how many bytes of memory the reader holds.
func (r *RecordReader) Size() int { return cap(r.buf) }

// Read copies the record that a unit points to and checks it, its body included. The view is valid until the next
// Reset. Errors: ErrNoRecord when there is no whole record at this place, so that reading again will not help, or that
// of the disk.
func (r *RecordReader) Read(phys int64, size int32) (message.View, error) {
	n := int(size)
	if n < message.MinRecordLen || n > r.s.conf().MaxMessageBytes+maxForeignRecord {
		return nil, fmt.Errorf("%w: %d with %d bytes", ErrNoRecord, phys, size)
	}
	from := len(r.buf)
	if cap(r.buf)-from < n { // what was read before keeps its memory
		r.buf, from = make([]byte, 0, max(n, 64<<10)), 0
	}
	b := r.buf[from : from+n : from+n]
	if err := r.s.copyRecord(b, phys); err != nil {
		if errors.Is(err, commitlog.ErrOutOfRange) {
			return nil, fmt.Errorf("%w: %d is outside the log from %d to %d", ErrNoRecord, phys, r.s.log.Min(), r.s.log.End())
		}
		return nil, err
	}
	v, err := message.ParseView(b, message.DecodeOptions{VerifyBodyCRC: true})
	if err == nil && (len(v) != n || v.PhysicalOffset() != phys) {
		err = fmt.Errorf("it has %d bytes and says %d", len(v), v.PhysicalOffset())
	}
	if err != nil {
		r.s.reportUnreadable(phys)
		return nil, fmt.Errorf("%w: %d with %d bytes: %w", ErrNoRecord, phys, size, err)
	}
	r.buf = r.buf[:from+n]
	return v, nil
}

// copyRecord copies bytes of the log: from the map near its end, which saves a system call, else from the file.
func (s *Store) copyRecord(b []byte, phys int64) error {
	if s.isHot(phys, s.log.End()) {
		src, release, err := s.log.View(phys, len(b))
		if err == nil {
			err = mapped.Guard(func() error { copy(b, src); return nil })
			release()
		}
		if err == nil || errors.Is(err, commitlog.ErrOutOfRange) {
			return err
		}
	}
	return s.log.ReadAt(b, phys)
}

// WaitFlushed calls done(nil) once the log is durable up to a position: at once when it is already, else from the
// flusher, which is woken; done gets an error when that fails or takes longer than syncFlushTimeout. It must not block.
func (s *Store) WaitFlushed(end int64, done func(error)) { s.log.WaitFlushed(end, done) }

// Flush makes everything appended so far durable.
func (s *Store) Flush() error { return s.log.Flush() }
