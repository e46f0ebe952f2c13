package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mqx/internal/failpoint"
	"mqx/internal/vfs"
	"mqx/store/mapped"
)

// syncOnOpen is how many of the newest files SetEnd makes durable: what a broker that was killed left to the kernel.
// Older files have been written back by the kernel long ago.
const syncOnOpen = 16

// SetEnd tells the log where it ends, after a walk that ended with EndOfData there. Files behind are removed; they
// must be empty. What lies before off is made durable first. The log takes records from then on.
func (l *Log) SetEnd(off int64) error {
	if l.cfg.ReadOnly {
		return l.setEndReadOnly(off)
	}
	l.fl.mu.Lock()
	defer l.fl.mu.Unlock()
	keep, later, err := l.splitAt(off)
	if err != nil {
		return err
	}
	if err := l.discardNext(); err != nil {
		return err
	}
	for _, s := range later {
		last, err := l.lastByte(s, s.start)
		if err != nil {
			return err
		}
		if last >= 0 {
			return fmt.Errorf("cannot end the log at %d: %q holds data", off, s.path)
		}
	}
	if err := l.removeLater(keep, later); err != nil {
		return err
	}
	return l.settle(off)
}

func (l *Log) setEndReadOnly(off int64) error {
	if off < l.Min() || off > l.diskEnd() {
		return l.rangeError(off, 0)
	}
	l.end.Store(off)
	l.recovered.Store(true)
	return nil
}

// Truncate cuts everything from to on, durably. When salvageDir is not empty, what is cut (up to the last byte that
// is not zero) is first kept there, in files named after offset and time. Then the log takes records.
//
// The order makes every crash on the way leave a log that ends at to or behind, never one that goes on after a gap:
// salvage, the later files from the last to the first, then the rest of the file of to, in one step.
func (l *Log) Truncate(to int64, salvageDir string) error {
	if l.cfg.ReadOnly {
		return ErrReadOnly
	}
	keep, later, err := l.splitAt(to)
	if err != nil {
		return err
	}
	var tail *segment
	if len(keep) > 0 {
		tail = keep[len(keep)-1]
	}
	if salvageDir != "" {
		if err := l.salvage(to, tail, later, salvageDir); err != nil {
			return err
		}
	}
	failpoint.Pass(failpoint.LogSalvaged)
	l.app.Lock()
	l.app.ready = false // until settle
	l.app.Unlock()
	defer l.complete(func(w *waiter) bool { return w.end > to }, ErrCut)
	l.fl.mu.Lock()
	defer l.fl.mu.Unlock()
	if err := l.discardNext(); err != nil {
		return err
	}
	l.end.Store(min(l.end.Load(), to))
	l.flushed.Store(min(l.flushed.Load(), to))
	if err := l.removeLater(keep, later); err != nil {
		return err
	}
	if tail != nil {
		if err := l.cutSegment(tail, to); err != nil {
			return err
		}
	}
	return l.settle(to)
}

// splitAt divides the files into those that begin before off, or at it, and those behind.
func (l *Log) splitAt(off int64) (keep, later []*segment, err error) {
	segs := l.list()
	if off < l.Min() || off > l.diskEnd() {
		return nil, nil, &RangeError{Off: off, Min: l.Min(), End: l.diskEnd()}
	}
	n := len(segs)
	for n > 0 && segs[n-1].start > off {
		n--
	}
	if n > 0 && off > segs[n-1].end() {
		return nil, nil, fmt.Errorf("cannot end the log at %d: that is in a hole behind %q", off, segs[n-1].path)
	}
	return segs[:n], segs[n:], nil
}

// removeLater removes files from the last to the first, each durably, so that no crash leaves a hole. After an error
// those that are still there are still in the list.
func (l *Log) removeLater(keep, later []*segment) error {
	for i, s := range slices.Backward(later) {
		if err := l.cfg.FS.Remove(s.path); err != nil {
			return fmt.Errorf("cannot remove commit log file behind the end: %w", err)
		}
		l.segMu.Lock()
		l.setList(slices.Concat(keep, later[:i]))
		l.segMu.Unlock()
		l.drop(s)
		if err := l.cfg.FS.SyncDir(l.cfg.Dir); err != nil {
			return fmt.Errorf("cannot remove commit log file behind the end: %w", err)
		}
	}
	return nil
}

// cutSegment makes the file read as zeros from off on, by cutting it there and giving it its length back.
func (l *Log) cutSegment(s *segment, off int64) error {
	f, err := l.open(s)
	if err != nil {
		return err
	}
	defer f.Release()
	for _, size := range []int64{off - s.start, s.size} {
		if err := f.Truncate(size); err != nil {
			return fmt.Errorf("cannot cut commit log file: %w", err)
		}
		if err := f.Sync(); err != nil {
			return l.fail("sync", s.path, err)
		}
		failpoint.Pass(failpoint.LogCutHalf)
	}
	l.setReserved(s, s.start)
	return nil
}

// settle makes what there is durable and puts the writer to off.
func (l *Log) settle(off int64) error {
	l.app.Lock()
	defer l.app.Unlock()
	if l.app.closed {
		return ErrClosed
	}
	segs := l.list()
	for _, s := range segs[max(0, len(segs)-syncOnOpen):] {
		if err := l.syncSegment(s); err != nil {
			return l.fail("sync", s.path, err)
		}
	}
	app := &l.app
	app.releaseTail()
	if len(segs) > 0 {
		tail := segs[len(segs)-1]
		f, err := l.open(tail)
		if err != nil {
			return err
		}
		app.setTail(tail, f)
		l.setReserved(tail, max(off, tail.start))
		l.newest.Store(tail)
	}
	app.pos, app.base, app.dirty, app.part = off, off, [2]int64{}, nil
	l.gate.cut(l, off)
	l.end.Store(off)
	l.flushed.Store(off)
	l.whole.Store(-1)
	l.recovered.Store(true)
	app.ready = true
	return nil
}

// lastByte returns the position of the last byte of s at or behind from that is not zero, -1 when there is none.
func (l *Log) lastByte(s *segment, from int64) (int64, error) {
	last := int64(-1)
	err := l.eachData(s, from, func(off int64, b []byte) error {
		for i := len(b) - 1; i >= 0; i-- {
			if b[i] != 0 {
				last = off + int64(i)
				break
			}
		}
		return nil
	})
	return last, err
}

// eachData calls f with the regions of s behind from that may hold something, in pieces.
func (l *Log) eachData(s *segment, from int64, f func(off int64, b []byte) error) error {
	file, err := l.open(s)
	if err != nil {
		return err
	}
	defer file.Release()
	buf := make([]byte, scanChunk)
	for off := from; off < s.end(); {
		pos, err := file.NextData(off - s.start)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		off = max(off, s.start+pos)
		b := buf[:max(0, min(scanChunk, s.end()-off))]
		if err := l.readSegment(s, b, off); err != nil {
			return err
		}
		if err := f(off, b); err != nil {
			return err
		}
		off += int64(len(b))
	}
	return nil
}

// salvage copies what is behind to into files in dir.
func (l *Log) salvage(to int64, tail *segment, later []*segment, dir string) error {
	segs := later
	if tail != nil {
		segs = slices.Insert(slices.Clone(later), 0, tail)
	}
	for _, s := range segs {
		if err := l.salvageSegment(s, max(to, s.start), dir); err != nil {
			return fmt.Errorf("cannot keep what is cut from the commit log at %d: %w", to, err)
		}
	}
	return nil
}

// salvageSegment copies [from, last byte that is not zero] of s into a file of its own, durably.
func (l *Log) salvageSegment(s *segment, from int64, dir string) error {
	last, err := l.lastByte(s, from)
	if err != nil || last < 0 {
		return err
	}
	if err := vfs.MkdirAllDurable(l.cfg.FS, dir); err != nil {
		return err
	}
	stamp := l.cfg.Clock.Now().UTC().Format("20060102T150405.000Z")
	name := filepath.Join(dir, fmt.Sprintf("commitlog-%0*d-%s", nameDigits, from, stamp))
	f, err := mapped.Open(l.cfg.FS, name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(last + 1 - from); err != nil {
		return err
	}
	err = l.eachData(s, from, func(off int64, b []byte) error {
		b = b[:max(0, min(int64(len(b)), last+1-off))]
		if len(b) == 0 {
			return nil
		}
		_, err := f.WriteAt(b, off-from)
		return err
	})
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, l.cfg.FS.Remove(name))
	}
	l.cfg.Logger.Warn("bytes cut from the commit log are kept", "path", name, "phys_offset", from, "bytes", last+1-from)
	if err := l.cfg.FS.SyncDir(dir); err != nil {
		return err
	}
	if err := l.dropRepeated(name); err != nil { // no reason not to cut: an old piece that cannot be read would end every start
		l.cfg.Logger.Warn("bytes cut from the commit log may be kept twice", "path", name, "error", err)
	}
	return nil
}

// dropRepeated removes the pieces that earlier tries at the same cut have left and that hold the same bytes as the piece name: who
// sends again what was cut sends it once.
func (l *Log) dropRepeated(name string) error {
	dir, base := filepath.Split(name)
	entries, err := l.cfg.FS.ReadDir(filepath.Clean(dir))
	if err != nil {
		return err
	}
	prefix := base[:len("commitlog-")+nameDigits+1]
	for _, e := range entries {
		if e.Name() == base || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		old := filepath.Join(dir, e.Name())
		switch same, err := sameContent(l.cfg.FS, old, name); {
		case err != nil:
			return err
		case same:
			if err := l.cfg.FS.Remove(old); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameContent reports whether two files hold the same bytes.
func sameContent(fsys vfs.FS, a, b string) (bool, error) {
	x, err := fsys.Open(a)
	if err != nil {
		return false, err
	}
	defer func() { _ = x.Close() }()
	y, err := fsys.Open(b)
	if err != nil {
		return false, err
	}
	defer func() { _ = y.Close() }()
	n, err := x.Size()
	m, err2 := y.Size()
	if err := errors.Join(err, err2); err != nil || n != m {
		return false, err
	}
	const chunk = 1 << 20
	p, q := make([]byte, chunk), make([]byte, chunk)
	for at := int64(0); at < n; at += chunk {
		p, q := p[:min(chunk, n-at)], q[:min(chunk, n-at)]
		_, err := x.ReadAt(p, at)
		_, err2 := y.ReadAt(q, at)
		for _, e := range []error{err, err2} {
			if e != nil && !errors.Is(e, io.EOF) {
				return false, e
			}
		}
		if !bytes.Equal(p, q) {
			return false, nil
		}
	}
	return true, nil
}
