package timer

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
)

// Note writes down how far the timer has come, without making it durable. It is cheap.
func (t *Timer) Note() error {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	t.mu.Lock()
	p := t.progress()
	t.mu.Unlock()
	return t.note(p)
}

func (t *Timer) progress() progress {
	return progress{readTime: t.read, slotPos: t.slotPos, queueOffset: t.offset, need: t.need, logEnd: t.log.end}
}

func (t *Timer) note(p progress) error {
	if t.progF == nil {
		return nil
	}
	if _, err := t.progF.WriteAt(p.append(nil), 0); err != nil {
		return fmt.Errorf("cannot note progress of timer: %w", err)
	}
	return nil
}

// Flush makes durable how far the timer has come: the commit log first, by flushLog, which gets the position it must
// reach; then the timer log, the wheel, the checkpoint. nowMs is the time of the change; orderly says that the process is
// about to end. After a failed sync of log or wheel the checkpoint stays as it is until the next start.
func (t *Timer) Flush(nowMs int64, orderly bool, flushLog func(need int64) error) error {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	if t.ckptF == nil {
		return nil // closed
	}
	t.mu.Lock()
	p, logEnd, read := t.progress(), t.log.end, t.read
	starts, names := t.log.takeUnsynced()
	snap := t.cfg.Snapshots && (orderly || nowMs-t.snapMs >= t.cfg.SnapshotEveryMs)
	var runs []run
	switch {
	case snap:
		runs = t.wheel.copyAll()
	case !t.cfg.Snapshots:
		runs = t.wheel.takeDirty()
	}
	var shown *Metrics
	version := t.metrics.version
	if version != t.saved {
		m := t.metrics.shown()
		shown = &m
	}
	t.changed = false
	t.mu.Unlock()

	err := t.flush(p, logEnd, read, starts, names, runs, snap, nowMs, flushLog)
	if err == nil && orderly && t.progF != nil {
		err = t.progF.Sync()
	}
	if err == nil && shown != nil {
		if err = saveMetrics(t.cfg.FS, t.cfg.Root, shown); err == nil {
			t.saved = version
		}
	}
	if err != nil {
		t.mu.Lock()
		t.changed = true
		for _, s := range starts {
			if !slices.Contains(t.log.unsynced, s) {
				t.log.unsynced = append(t.log.unsynced, s)
			}
		}
		t.log.names = t.log.names || names
		if !t.cfg.Snapshots {
			t.wheel.redirty(runs)
		}
		t.mu.Unlock()
		return fmt.Errorf("cannot flush timer: %w", err)
	}
	return nil
}

func (t *Timer) flush(p progress, logEnd, read int64, starts []int64, names bool, runs []run, snap bool, nowMs int64,
	flushLog func(int64) error,
) error {
	err := t.note(p)
	if err != nil {
		return err
	}
	if t.broken != nil {
		return t.broken
	}
	if err := flushLog(p.need); err != nil {
		return err
	}
	if err := t.log.sync(starts, names); err != nil {
		t.broken = err
		return err
	}
	if snap {
		if err := t.snapshot(runs, logEnd); err != nil {
			return err
		}
		t.snapMs = nowMs
	} else if len(runs) > 0 || t.wheelUnsynced {
		for _, r := range runs {
			if _, err := t.wheelF.WriteAt(r.b, r.off); err != nil {
				return err
			}
		}
		if err := t.wheelF.Sync(); err != nil {
			t.broken = err
			return err
		}
		t.wheelUnsynced = false
	}
	c := t.ckpt
	c.ReadTime, c.QueueOffset, c.MasterQueueOffset = read, p.queueOffset, p.queueOffset
	if !t.cfg.Snapshots || snap {
		c.LogFlushed = logEnd // else the newest snapshot's stays
	}
	if c == t.ckpt {
		return nil
	}
	c.Counter, c.Timestamp = c.Counter+1, nowMs
	if _, err := t.ckptF.WriteAt(c.Append(nil), 0); err != nil {
		return err
	}
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
	old, err := snapshots(fsys, t.cfg.Root)
	if err != nil {
		return err
	}
	for len(old) > 2 {
		if err := fsys.Remove(wheelPath(t.cfg.Root) + "." + strconv.FormatInt(old[0], 10)); err != nil {
			return err
		}
		old = old[1:]
	}
	return nil
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
