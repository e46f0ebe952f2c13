package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store/commitlog"
)

// What was held back for want of copies stays held back over a restart: whoever opens the store with Held shows it again by
// Confirm or Ungate. After an orderly stop the note of that stop says how far consumers had seen. After any other stop the
// queues do: while the store is in service no record gets into them before it may be seen. Stop and start put the rest into
// them for a while; before they do, a note says how far consumers had seen, and whoever comes after a crash takes the lesser.
const (
	heldName = "held"
	heldHead = "mqx held 1"
)

func heldPath(root string) string { return filepath.Join(root, ownDir, heldName) }

// noteHeld makes durable how far the log has been shown, before the queues get more.
func (s *Store) noteHeld(shown int64) error {
	return writeState(s.cfg.FS, heldPath(s.cfg.RootDir), heldHead, fmt.Appendf(nil, "shown %d\n", shown))
}

// forgetHeld is called when the queues hold what has been shown, or a note of a stop says what has.
func (s *Store) forgetHeld() error {
	path := heldPath(s.cfg.RootDir)
	err := s.cfg.FS.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = s.cfg.FS.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("cannot forget what was held back: %w", err)
	}
	return nil
}

// readHeld reads the note. Errors: fs.ErrNotExist, errStateFile, or the one of the disk.
func readHeld(fsys vfs.FS, root string) (shown int64, err error) {
	b, err := readState(fsys, heldPath(root), heldHead)
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscanf(string(b), "shown %d\n", &shown); err != nil || shown < 0 {
		return 0, errStateFile
	}
	return shown, nil
}

// CheckHeldNote reads the note of what is held back in a store directory. Errors as those of DeletedTopics.
func CheckHeldNote(fsys vfs.FS, root string) error {
	_, err := readHeld(fsys, root)
	return err
}

// shownSoFar is, before anything is changed, how far the log had been shown when the store stopped; -1: all of it, or not known.
func (r *recovery) shownSoFar() int64 {
	s := r.s
	if !r.dirty {
		if r.stop != nil && r.stop.shown < r.stop.logEnd {
			return r.stop.shown
		}
		return -1
	}
	shown := r.shownByQueues()
	noted, err := readHeld(s.cfg.FS, s.cfg.RootDir)
	switch {
	case err == nil:
		shown = min(shown, noted)
	case !errors.Is(err, fs.ErrNotExist):
		s.find(Finding{FindStateUnreadable, heldPath(s.cfg.RootDir), -1, fmt.Sprintf("the note of what was held back is not used: %v", err)})
	}
	return shown
}

// shownByQueues is how far the log has got into the queues.
func (r *recovery) shownByQueues() int64 {
	s := r.s
	shown := int64(0)
	for q := range s.queues.all {
		shown = max(shown, q.lastEnd())
	}
	if at := r.ckpt.LogicsPhysOffset; at > 0 {
		if rec, err := s.recordAt(at); err == nil {
			shown = max(shown, at+int64(len(rec)))
		}
	}
	return shown
}

// holdBack closes the gate of a recovered store before what had not been shown, takes that out of the queues, in which the
// search has put it, and returns where it begins. The counters of new messages have counted it.
func (r *recovery) holdBack(shown int64) (int64, error) {
	s := r.s
	end := s.log.End()
	if r.stop != nil {
		shown = r.stop.shown
	}
	if shown = min(shown, end); shown < 0 {
		shown = end
	}
	shown, err := s.log.RecordFloor(max(shown, s.log.Min()))
	if err != nil {
		return 0, fmt.Errorf("cannot hold back what has no copies: %w", err)
	}
	s.log.GateAt(shown)
	if shown == end {
		return end, nil
	}
	s.cfg.Logger.Info("store: the end of the log is held back until it has its copies", "from", shown, "to", end)
	for q := range s.queues.all {
		q.held.Store(q.maxOffset())
	}
	if err := r.reset(shown); err != nil {
		return 0, err
	}
	if err := r.eachQueue(func(q *queue) error {
		if b := q.batch.Load(); b != nil {
			return b.Finish()
		}
		if c := q.cq.Load(); c != nil {
			return s.cqs.Finish(c)
		}
		return nil
	}); err != nil {
		return 0, err
	}
	// Durable, or units that come back after a loss of power would pass for shown.
	if err := s.cqs.Sync(); err != nil {
		return 0, fmt.Errorf("cannot hold back what has no copies: %w", err)
	}
	d := s.dispatcher
	d.lastStart, d.lastEnd, d.lastStore = -1, shown, 0
	last, err := s.log.RecordBefore(shown)
	if err != nil {
		return 0, fmt.Errorf("cannot hold back what has no copies: %w", err)
	}
	if last >= 0 {
		rec, err := s.recordAt(last)
		if err != nil {
			return 0, fmt.Errorf("cannot hold back what has no copies: %w", err)
		}
		d.lastStart, d.lastStore = last, rec.StoreTimestamp()
	}
	r.stop, r.durable = nil, nil // what they say of the queues is no longer so
	return shown, nil
}

// EndOffset is the next queue offset to be dispatched, counting what was held back at the start and may have been seen before.
func (s *Store) EndOffset(topic string, queueID int32) int64 {
	if q := s.queues.get(topic, queueID); q != nil {
		return max(q.maxOffset(), q.held.Load())
	}
	return 0
}

// EachHeld calls f with the records of a queue that are in the log and not in the queue yet, in their order: what the start has
// held back. It is for those who were at work on the queue before the start, and to be called before Run. An error of f ends it.
func (s *Store) EachHeld(topic string, queueID int32, f func(message.View) error) error {
	from, to := s.Dispatched(), s.log.End()
	if from >= to || s.EndOffset(topic, queueID) <= s.MaxOffset(topic, queueID) {
		return nil
	}
	end, err := s.log.Walk(max(from, s.log.Min()), commitlog.WalkOptions{To: to, OnFinding: s.reportLog}, func(off int64, rec message.View) error {
		if rec.QueueID() != queueID || string(rec.Topic()) != topic || s.deleted.covers(rec.Topic(), off) {
			return nil
		}
		return f(rec)
	})
	if err == nil && end.Offset < to && end.Reason != commitlog.EndStopped {
		err = fmt.Errorf("at %d: %v: %w", end.Offset, end.Reason, cmp.Or(end.Err, errUnreadable))
	}
	if err != nil {
		return fmt.Errorf("cannot read what is held back: %w", err)
	}
	return nil
}

// heldAt is where the record of a queue offset, or the first one behind it, lies among those that are held back.
func (s *Store) heldAt(topic string, queueID int32, offset int64) (phys int64, err error) {
	phys = s.log.End()
	err = s.EachHeld(topic, queueID, func(rec message.View) error {
		if rec.QueueOffset() < offset {
			return nil
		}
		phys = rec.PhysicalOffset()
		return commitlog.ErrStop
	})
	return phys, err
}
