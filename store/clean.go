package store

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"mqx/internal/failpoint"
	"mqx/store/commitlog"
)

const (
	// cleanFirst is how long after the start the cleaner waits: Apache's does.
	cleanFirst = 60 * time.Second
	// manualRounds is how many rounds delete expired files after DeleteExpiredNow.
	manualRounds = 20
	// hangingLimit is how long a removed file may be kept by a reader before its space is taken back.
	hangingLimit = 120 * time.Second
	// cleanReport is how often a cleaner that has nothing to delete says so.
	cleanReport = 10 * time.Minute
)

// cleaner lets old data go: log files by age, hour and disk use, then what points into them.
type cleaner struct {
	s      *Store
	kick   chan struct{}
	manual atomic.Int32 // rounds that delete expired files at any hour
	idle   time.Time    // when it was last said that nothing can go
}

// run cleans until ctx ends.
func (c *cleaner) run(ctx context.Context) {
	t := time.NewTimer(cleanFirst)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-c.kick:
		}
		if err := c.round(ctx); err != nil {
			c.s.cfg.Logger.Error("store: cannot clean", "err", err)
		}
		t.Reset(time.Duration(c.s.conf().CleanResourceIntervalMs) * time.Millisecond)
	}
}

// round deletes what may go now.
func (c *cleaner) round(ctx context.Context) error {
	s := c.s
	before := s.log.Min()
	err := c.expireLog(ctx)
	if s.log.Min() != before {
		err = errors.Join(err, s.CleanExpiredQueues())
	}
	err = errors.Join(err, s.checkFiles())
	_, hangErr := s.log.ReclaimHanging(s.cfg.Clock.Now().Add(-hangingLimit))
	return errors.Join(err, hangErr)
}

// expireLog deletes log files: expired ones at their hour, on demand or when the disk fills up, and others when it is
// nearly full. Then it goes on as long as the disk is (N026), else it stops after a batch.
func (c *cleaner) expireLog(ctx context.Context) error {
	s := c.s
	for {
		now := s.cfg.Clock.Now()
		state := s.disk.worst()
		force := (state == DiskForce || state == DiskRefuse) && s.conf().CleanFileForciblyEnable
		onDemand := c.manual.Load() > 0
		if onDemand {
			c.manual.Add(-1)
		}
		if !force && !onDemand && state == DiskOK && !slices.Contains(s.conf().hours(), now.In(s.cfg.Location).Hour()) {
			return nil
		}
		removed, err := c.expireBatch(ctx, now, force)
		if err != nil {
			return err
		}
		if removed == 0 {
			c.reportIdle(now, state)
		}
		select {
		case <-ctx.Done():
			return nil
		default:
		}
		if removed == 0 || !force {
			return nil
		}
		s.disk.look()
	}
}

// expireBatch deletes up to DeleteFileBatchMax files, with a pause behind each.
func (c *cleaner) expireBatch(ctx context.Context, now time.Time, force bool) (removed int, err error) {
	s := c.s
	for removed < s.conf().DeleteFileBatchMax {
		ok, err := c.expireFile(now, force)
		if err != nil || !ok {
			return removed, err
		}
		removed++
		if force {
			s.disk.look()
			if st := s.disk.worst(); st != DiskForce && st != DiskRefuse {
				return removed, nil
			}
		}
		select {
		case <-ctx.Done():
			return removed, nil
		case <-time.After(time.Duration(s.conf().DeleteCommitLogFilesIntervalMs) * time.Millisecond):
		}
	}
	return removed, nil
}

// expireFile deletes the oldest file, if it may go.
func (c *cleaner) expireFile(now time.Time, force bool) (removed bool, err error) {
	s := c.s
	files, err := s.log.Files()
	if err != nil || len(files) < 2 {
		return false, err
	}
	rules := commitlog.ExpireRules{Now: now, Reserved: time.Duration(s.conf().FileReservedHours) * time.Hour, Force: force, MaxFiles: 1}
	uncovered := c.cover(files[1].Start)
	if uncovered != nil {
		// By force it goes although the queues could not be written; what nobody was shown does not. Queues that cannot be
		// made durable any more have to be built again anyway.
		if !errors.Is(uncovered, errQueuesFailed) && (!force || errors.Is(uncovered, errNotDispatched) && !s.alarms.raised(alarmQueues)) {
			return false, uncovered
		}
		if !rules.May(files[0]) {
			return false, nil
		}
		if err := s.noteEnds(files[1].Start); err != nil {
			s.cfg.Logger.Warn("store: a log file has to go before the queues are durable: a crash now would give offsets again", "err", err)
		}
	}
	res, err := s.log.Expire(rules)
	if err != nil || len(res.Removed) == 0 {
		return false, err
	}
	s.cfg.Logger.Info("store: commit log file deleted", "path", res.Removed[0].Path, "forced", force,
		"modified", res.Removed[0].ModTime)
	if uncovered != nil { // the queues had no room: they have it now
		uncovered = c.cover(s.log.Min())
	}
	if uncovered != nil {
		s.cfg.Logger.Warn("store: the queues are not durable up to where the log begins", "log_min", s.log.Min(), "err", uncovered)
	}
	return true, nil
}

// cover brings the checkpoint up to a position at which the log is to begin: what the queues lack after a crash must be in
// the log.
func (c *cleaner) cover(upTo int64) error {
	s := c.s
	if s.checkpointed.Load() >= upTo {
		return nil
	}
	if err := s.checkpoint(false); err != nil {
		return err
	}
	if s.dispatcher.pos.Load() < upTo && upTo < s.log.End() {
		return errNotDispatched
	}
	return nil
}

// errNotDispatched is what cover returns when messages of the oldest file are in no queue yet, not even in memory: they
// are held back until they have their copies, or the dispatcher has not come so far.
var errNotDispatched = errors.New("cannot delete the oldest log file: its messages are not all in their queues yet")

// reportIdle says why nothing goes although the disk fills up (N025).
func (c *cleaner) reportIdle(now time.Time, state string) {
	if state == DiskOK || now.Sub(c.idle) < cleanReport {
		return
	}
	c.idle = now
	_, force, refuse := c.s.conf().watermarks()
	held := c.s.log.Hanging()
	c.s.cfg.Logger.Warn("store: the disk fills up and no commit log file may go", "state", state,
		"reserved_hours", c.s.conf().FileReservedHours, "next_action_at_percent", force, "refused_above_percent", refuse,
		"forced_deletion", c.s.conf().CleanFileForciblyEnable, "files_held_by_readers", len(held))
}

// DeleteExpiredNow makes the next rounds of the cleaner delete expired files regardless of the hour.
func (s *Store) DeleteExpiredNow() {
	s.cleaner.manual.Store(manualRounds)
	signal(s.cleaner.kick)
}

// CleanExpiredQueues removes queue and index files whose messages are no longer in the log, and moves the minimum
// offsets.
func (s *Store) CleanExpiredQueues() error {
	logMin := s.log.Min()
	errs := []error{s.writeOut()} // units of messages that are gone already go with their file
	for q := range s.queues.all {
		if b := q.batch.Load(); b != nil {
			errs = append(errs, b.CorrectMin(logMin))
		}
		c := q.cq.Load()
		if c == nil {
			continue
		}
		if _, err := s.cqs.Expire(c, logMin); err != nil && len(errs) < 4 {
			errs = append(errs, err)
		}
	}
	failpoint.Pass(failpoint.QueuesExpired)
	if _, err := s.index.Expire(logMin); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
