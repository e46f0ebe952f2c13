package timer

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mqx/internal/failpoint"
	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
)

// Note writes down how far the timer has come, without making it durable. It is cheap, and waits for no flush.
func (t *Timer) Note() error {
	t.noting.Lock()
	defer t.noting.Unlock()
	return t.note()
}

func (t *Timer) progress() progress {
	return progress{readTime: t.read, slotPos: t.slotPos, queueOffset: t.offset, need: t.need, logEnd: t.log.end, with: t.with}
}

// note is Note under its lock.
func (t *Timer) note() error {
	if t.progF == nil || t.turned {
		return nil // the files have to know of the turn first
	}
	return t.writeProgress(notedAt)
}

func (t *Timer) writeProgress(at ...int64) error {
	t.mu.Lock()
	p := t.progress()
	t.mu.Unlock()
	for _, off := range at {
		if _, err := t.progF.WriteAt(p.bytes(), off); err != nil {
			return fmt.Errorf("cannot note progress of timer: %w", err)
		}
	}
	return nil
}

// noteWith is Note for the checkpoint that is durable now and the one that is about to be.
func (t *Timer) noteWith(now, next uint32) error {
	t.noting.Lock()
	defer t.noting.Unlock()
	t.with = [2]uint32{now, next}
	return t.note()
}

// settled is noteWith when the files know of a turn. The copies stored for the progress s are durable; when durable is set, it
// becomes so too.
func (t *Timer) settled(s *step, sum uint32, durable bool) error {
	t.noting.Lock()
	t.with = [2]uint32{sum, sum}
	t.turned = t.turned && !s.turned
	err := t.note()
	t.noting.Unlock()
	if err != nil || !durable {
		return err
	}
	s.with = [2]uint32{sum, sum}
	if _, err := t.progF.WriteAt(s.progress.bytes(), durableAt); err != nil { // nothing closes it: a flush runs
		return fmt.Errorf("cannot note progress of timer: %w", err)
	}
	if s.orderly {
		r := rest{s.num, sum}
		if _, err := t.progF.WriteAt(r.bytes(), restAt); err != nil {
			return fmt.Errorf("cannot note progress of timer: %w", err)
		}
	}
	return t.progF.Sync()
}

// Flush makes durable how far the timer has come: the commit log first, by flushLog, which gets the position it must
// reach; then the timer log, the wheel, the checkpoint. nowMs is the time of the change; orderly says that the process is
// about to end. After a failed sync of log or wheel the checkpoint stays as it is until the next start.
func (t *Timer) Flush(nowMs int64, orderly bool, flushLog func(need int64) error) error {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	if orderly && t.ckptF != nil {
		t.mu.Lock()
		err := t.cutPartial(nowMs)
		if err == nil {
			t.slotPos = NoPos
		}
		t.mu.Unlock()
		if err != nil {
			return fmt.Errorf("cannot flush timer: %w", err)
		}
	}
	return t.flushAll(nowMs, orderly, flushLog)
}

// step is what one flush makes durable.
type step struct {
	progress
	turned, orderly bool
	num             int64   // messages in the wheel
	starts          []int64 // of the timer log, unsynced
	names           bool
	logKnown        int64 // position up to which a start need not read the timer log
	runs            []run // of the wheel's file
	snapshot        bool
	snap            []run // of a snapshot
	nowMs           int64
}

// flushAll is Flush under its lock.
func (t *Timer) flushAll(nowMs int64, orderly bool, flushLog func(need int64) error) error {
	if t.ckptF == nil {
		return nil // closed
	}
	t.mu.Lock()
	s := step{progress: t.progress(), turned: t.turned, orderly: orderly, num: t.wheel.Num(), nowMs: nowMs}
	s.starts, s.names = t.log.takeUnsynced()
	if s.logKnown = s.logEnd; t.known != nil {
		s.logKnown = min(s.logKnown, t.knownPos) // a start has to find them again
	}
	if !t.cfg.Snapshots {
		s.runs = t.wheel.takeDirty()
	}
	if t.cfg.Snapshots && (orderly || s.turned || nowMs-t.snapMs >= t.cfg.SnapshotEveryMs) {
		s.snapshot, s.snap = true, t.wheel.copyAll()
	}
	var shown *Metrics
	version := t.metrics.version
	if version != t.saved {
		m := t.metrics.shown()
		shown = &m
	}
	t.changed = false
	t.mu.Unlock()

	err := t.flush(&s, flushLog)
	if err == nil && shown != nil {
		if err = saveMetrics(t.cfg.FS, t.cfg.Root, shown); err == nil {
			t.saved = version
		}
	}
	if err != nil {
		t.restore(&s)
		return fmt.Errorf("cannot flush timer: %w", err)
	}
	return nil
}

// restore notes what a flush that failed has left to do.
func (t *Timer) restore(s *step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed = true
	for _, start := range s.starts {
		if !slices.Contains(t.log.unsynced, start) {
			t.log.unsynced = append(t.log.unsynced, start)
		}
	}
	t.log.names = t.log.names || s.names
	t.wheel.redirty(s.runs)
}

func (t *Timer) flush(s *step, flushLog func(int64) error) error {
	next := t.checkpointOf(s)
	if err := t.noteWith(t.ckpt.sum(), next.sum()); err != nil {
		return err
	}
	if t.broken != nil {
		return t.broken
	}
	if err := flushLog(s.need); err != nil {
		return err
	}
	if err := t.log.sync(s.starts, s.names); err != nil {
		t.broken = err
		return err
	}
	failpoint.Pass(failpoint.TimerLogSynced)
	if err := t.flushWheel(s); err != nil {
		return err
	}
	failpoint.Pass(failpoint.TimerWheelSynced)
	if err := t.saveCheckpoint(next); err != nil {
		return err
	}
	// The checkpoint cannot say how far a slot has been delivered.
	return t.settled(s, next.sum(), s.turned || s.orderly || s.slotPos != NoPos)
}

// flushWheel makes the slots durable.
func (t *Timer) flushWheel(s *step) error {
	if !t.cfg.Snapshots && (len(s.runs) > 0 || t.wheelUnsynced || t.oldSnaps) {
		for _, r := range s.runs {
			if _, err := t.wheelF.WriteAt(r.b, r.off); err != nil {
				return err
			}
		}
		if err := t.wheelF.Sync(); err != nil {
			t.broken = err
			return err
		}
		t.wheelUnsynced = false
		if t.oldSnaps { // a start would believe them
			if err := keepSnapshots(t.cfg.FS, t.cfg.Root, 0); err != nil {
				return err
			}
			t.oldSnaps = false
		}
	}
	if s.snapshot {
		if err := t.snapshot(s.snap, s.logEnd); err != nil {
			return err
		}
		t.snapMs = s.nowMs
	}
	return nil
}

// checkpointOf is the checkpoint after a flush.
func (t *Timer) checkpointOf(s *step) Checkpoint {
	c := t.ckpt
	c.ReadTime, c.QueueOffset, c.MasterQueueOffset = s.readTime, s.queueOffset, s.queueOffset
	if !t.cfg.Snapshots || s.snapshot {
		c.LogFlushed = s.logKnown // else the newest snapshot's stays
	}
	if c != t.ckpt {
		c.Counter, c.Timestamp = c.Counter+1, s.nowMs
	}
	return c
}

func (t *Timer) saveCheckpoint(c Checkpoint) error {
	if c == t.ckpt {
		return nil
	}
	if _, err := t.ckptF.WriteAt(c.Append(nil), 0); err != nil {
		return err
	}
	failpoint.Pass(failpoint.TimerCheckpoint)
	if err := t.ckptF.Sync(); err != nil {
		return err
	}
	t.mu.Lock()
	t.ckpt = c
	t.mu.Unlock()
	return nil
}

// Checkpoint is what is durable.
func (t *Timer) Checkpoint() Checkpoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ckpt
}

func saveMetrics(fsys vfs.FS, root string, m *Metrics) error {
	b, err := m.Text()
	if err != nil {
		return err
	}
	return jsonfile.Save(fsys, metricsPath(root), b)
}

// snapshot writes the wheel as timerwheel.<pos> and keeps the two newest.
func (t *Timer) snapshot(pages []run, pos int64) error {
	fsys, path := t.cfg.FS, wheelPath(t.cfg.Root)+"."+strconv.FormatInt(pos, 10)
	tmp := path + ".tmp"
	if err := fsys.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := openSized(fsys, tmp, t.cfg.Root, WheelBytes)
	if err != nil {
		return err
	}
	for _, r := range pages {
		if _, err := f.WriteAt(r.b, r.off); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, path); err != nil {
		return err
	}
	if err := fsys.SyncDir(t.cfg.Root); err != nil {
		return err
	}
	return keepSnapshots(fsys, t.cfg.Root, 2)
}

// keepSnapshots removes all snapshots but the newest.
func keepSnapshots(fsys vfs.FS, root string, keep int) error {
	old, err := snapshots(fsys, root)
	if err != nil {
		return err
	}
	if len(old) <= keep {
		return nil
	}
	for len(old) > keep {
		if err := fsys.Remove(wheelPath(root) + "." + strconv.FormatInt(old[0], 10)); err != nil {
			return err
		}
		old = old[1:]
	}
	return fsys.SyncDir(root)
}

// snapshots lists the positions of the wheel's snapshots, ascending.
func snapshots(fsys vfs.FS, root string) ([]int64, error) {
	entries, err := fsys.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []int64
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), "timerwheel.")
		if !ok {
			continue
		}
		if pos, err := strconv.ParseInt(text, 10, 64); err == nil && pos >= 0 {
			out = append(out, pos)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Expire removes files of the timer log whose messages are no longer in the commit log, which begins at logMin. The newest
// file stays, and files that a waiting slot needs do too.
func (t *Timer) Expire(logMin int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	removed := false
	for len(t.log.starts) > 1 {
		start := t.log.starts[0]
		u, err := t.log.unit(start + t.log.size.lastUnit())
		if err != nil && isIO(err) {
			return fmt.Errorf("cannot expire timer log: %w", err)
		}
		if err != nil || u.Phys >= logMin {
			break
		}
		if err := t.log.remove(0); err != nil {
			return fmt.Errorf("cannot expire timer log: %w", err)
		}
		removed = true
	}
	if removed {
		if err := t.cfg.FS.SyncDir(filepath.Clean(t.log.dir)); err != nil {
			return fmt.Errorf("cannot expire timer log: %w", err)
		}
	}
	return nil
}
