package inspect

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"mqx/internal/vfs"
	"mqx/message"
)

// logWriter lays records into the files of a new log. What it writes is durable when close has returned.
type logWriter struct {
	fs       vfs.FS
	dir      string
	fileSize int64
	dry      bool // writes nothing: only positions are worked out

	began bool
	start int64 // position of the first record
	pos   int64 // behind the last one

	f     vfs.File
	from  int64 // where f begins
	buf   []byte
	bufAt int64 // position of buf
}

// logBuffer of records is written at once.
const logBuffer = 1 << 20

// room is where a record of n bytes goes: behind the last one, or at the start of the next file.
func (w *logWriter) room(n int64) (int64, error) {
	if n+message.BlankLen > w.fileSize {
		return 0, fmt.Errorf("a record of %d bytes does not fit a log file of %d", n, w.fileSize)
	}
	if left := w.fileSize - w.pos%w.fileSize; n+message.BlankLen > left {
		return w.pos + left, nil
	}
	return w.pos, nil
}

// add puts a record at a position that room has given.
func (w *logWriter) add(at int64, rec []byte) error {
	if !w.began {
		w.began, w.start, w.pos = true, at, at
	}
	if w.dry {
		w.pos = at + int64(len(rec))
		return nil
	}
	if w.f != nil && at >= w.from+w.fileSize {
		if at > w.pos {
			if err := w.put(w.pos, message.AppendBlank(nil, int32(at-w.pos))); err != nil {
				return err
			}
		}
		if err := w.closeFile(); err != nil {
			return err
		}
	}
	if w.f == nil {
		if err := w.openFile(at - at%w.fileSize); err != nil {
			return err
		}
	}
	err := w.put(at, rec)
	w.pos = at + int64(len(rec))
	return err
}

func (w *logWriter) put(at int64, b []byte) error {
	if len(w.buf) == 0 {
		w.bufAt = at
	}
	w.buf = append(w.buf, b...)
	if len(w.buf) >= logBuffer {
		return w.write()
	}
	return nil
}

func (w *logWriter) write() error {
	if len(w.buf) == 0 {
		return nil
	}
	_, err := w.f.WriteAt(w.buf, w.bufAt-w.from)
	w.buf = w.buf[:0]
	return err
}

func (w *logWriter) openFile(start int64) error {
	f, err := w.fs.OpenFile(filepath.Join(w.dir, FileName(start)), os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	if err := f.Truncate(w.fileSize); err != nil {
		return errors.Join(err, f.Close())
	}
	w.f, w.from = f, start
	return nil
}

func (w *logWriter) closeFile() error {
	if w.f == nil {
		return nil
	}
	err := w.write()
	if err == nil {
		err = w.f.Sync()
	}
	err = errors.Join(err, w.f.Close())
	w.f = nil
	return err
}

func (w *logWriter) close() error {
	err := w.closeFile()
	if w.dry || !w.began {
		return err
	}
	return errors.Join(err, w.fs.SyncDir(w.dir))
}

// maker makes the records of a new log of lines.
type maker struct {
	w       *logWriter
	plan    *ImportPlan
	whole   bool
	next    map[string]int64 // queue offsets that come next, by topic/queue, when lines are renumbered
	stored  int64            // store time of the last record
	now     int64            // for lines without a time
	buf     []byte
	pending int // messages of the last record that are still to come as lines
}

// line takes one line.
func (m *maker) line(l *message.Line) error {
	m.plan.Lines++
	if m.whole {
		return m.same(l)
	}
	if why := skip(l); why != "" {
		m.plan.Skipped[why]++
		return nil
	}
	return m.renumbered(l)
}

// same puts the record of a whole export at its place.
func (m *maker) same(l *message.Line) error {
	if l.PhysicalOffset == nil {
		return fmt.Errorf("%w: it has no physicalOffset", ErrGap)
	}
	at := *l.PhysicalOffset
	if l.RecordMessage > 0 { // came with message 0
		if l.RecordMessage != m.pending || m.w.pos <= at {
			return fmt.Errorf("%w: message %d of the record at %d does not follow message %d", ErrGap, l.RecordMessage, at, m.pending-1)
		}
		m.pending++
		m.plan.count(l)
		return nil
	}
	var err error
	if m.buf, err = l.AppendRecord(m.buf[:0]); err != nil {
		return err
	}
	if v := message.View(m.buf); v.PhysicalOffset() != at {
		return fmt.Errorf("the record is of position %d, the line of %d", v.PhysicalOffset(), at)
	}
	n := int64(len(m.buf))
	want := at
	if m.w.began {
		if want, err = m.w.room(n); err != nil {
			return err
		}
	} else if at%m.w.fileSize != 0 {
		return fmt.Errorf("%w: the first record is at %d, where no file of %d bytes begins", ErrGap, at, m.w.fileSize)
	}
	if next := m.w.pos - m.w.pos%m.w.fileSize + m.w.fileSize; at != want && at == next && m.w.began {
		want = at // a batch goes into one file together, and so did not fit
	}
	if at != want {
		return fmt.Errorf("%w: a record is expected at %d, and this one is of %d", ErrGap, want, at)
	}
	if left := m.w.fileSize - at%m.w.fileSize; n+message.BlankLen > left {
		return fmt.Errorf("%w: the record does not fit its file", ErrGap)
	}
	m.pending = 1
	m.plan.Records++
	m.plan.count(l)
	return m.w.add(at, m.buf)
}

// renumbered gives a line a new place.
func (m *maker) renumbered(l *message.Line) error {
	r, err := l.Message()
	if err != nil {
		return err
	}
	m.defaults(&r, l)
	m.stored = max(m.stored, l.StoreTimestamp)
	if m.stored == 0 {
		m.stored = m.now
	}
	r.StoreTimestamp = m.stored
	key := l.Topic + "/" + strconv.Itoa(int(r.QueueID))
	r.QueueOffset = m.next[key]
	m.next[key]++
	m.dispatched(&r)
	if err := r.Check(false); err != nil {
		return err
	}
	n := int64(r.EncodedLen(false))
	if r.PhysicalOffset, err = m.w.room(n); err != nil {
		return err
	}
	m.buf = r.Append(m.buf[:0], false)
	m.plan.Records++
	m.plan.count(l)
	return m.w.add(r.PhysicalOffset, m.buf)
}

// defaults are what a line does not say.
func (m *maker) defaults(r *message.Record, l *message.Line) {
	if !r.BornHost.IsValid() {
		r.BornHost = noHost
	}
	if !r.StoreHost.IsValid() {
		r.StoreHost = netip.AddrPortFrom(noHost.Addr(), 10911)
	}
	if r.BornTimestamp == 0 {
		if r.BornTimestamp = l.StoreTimestamp; r.BornTimestamp == 0 {
			r.BornTimestamp = m.now
		}
	}
}

// dispatched gives a message new offsets in the light queues that it is in as well.
func (m *maker) dispatched(r *message.Record) {
	names, ok := message.Property(r.Properties, message.PropInnerMultiDispatch)
	if !ok {
		return
	}
	var offsets []string
	for name := range strings.SplitSeq(string(names), ",") {
		key := name + "/0"
		offsets = append(offsets, strconv.FormatInt(m.next[key], 10))
		m.next[key]++
		m.plan.Topics[name] = max(m.plan.Topics[name], 1)
	}
	r.Properties = message.SetProperty(r.Properties, message.PropInnerMultiQueueOffset, strings.Join(offsets, ","))
}
