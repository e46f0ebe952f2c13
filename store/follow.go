package store

import (
	"context"
	"errors"
	"fmt"

	"mqx/internal/vfs"
	"mqx/store/commitlog"
)

var errFollowing = errors.New("this broker is a slave: its log is that of its master, which takes the messages")

// AppendRaw appends bytes of the master's log at the position at, which must be where the bytes before ended, or LogEnd; an empty log
// takes any position at which a file begins. The bytes may end within a record, which is in the log once all of it has come; a call with
// at = LogEnd forgets what has come of it. Queues and index follow as after a put. It is an error unless the store follows (Config.Follow). A full disk is an error that passes; one of which IsForeign tells does not.
func (s *Store) AppendRaw(at int64, b []byte) error {
	s.putting.RLock()
	defer s.putting.RUnlock()
	switch {
	case s.closing.Load():
		return errClosing
	case !s.cfg.Follow:
		return fmt.Errorf("cannot append at %d what a master sent: this store takes messages of its own", at)
	}
	if why := s.disk.refusal.Load(); why != nil {
		return why
	}
	err := s.log.AppendRaw(at, b)
	signal(s.dispatcher.kick)
	return err
}

// IsForeign reports whether AppendRaw has refused bytes that are no records of a log with files of this size.
func IsForeign(err error) bool {
	var foreign *commitlog.ForeignError
	return errors.As(err, &foreign)
}

// ReadLog reads len(b) bytes of the log as they lie in its files, whole records or not; it is all or nothing.
func (s *Store) ReadLog(b []byte, off int64) error { return s.log.ReadAt(b, off) }

// WatchLog makes every append signal ch, which has room for one signal, until stop is called.
func (s *Store) WatchLog(ch chan struct{}) (stop func()) { return s.log.Watch(ch) }

// GiveWay says whether what makes queues and index of the log leaves the processor to everybody else who wants it.
func (s *Store) GiveWay(on bool) {
	if s.givesWay.Swap(on) != on {
		signal(s.dispatcher.kick)
		s.indexer.wake()
	}
}

// givingWay calls run with whether it is to give way, on a thread that does, until ctx ends.
func (s *Store) givingWay(ctx context.Context, run func(ctx context.Context, aside bool)) {
	for ctx.Err() == nil {
		if s.givesWay.Load() {
			vfs.Aside(func() { run(ctx, true) })
		} else {
			run(ctx, false)
		}
	}
}

// LogFileSize is the size of a file of the log in bytes.
func (s *Store) LogFileSize() int64 { return s.log.FileSize() }

// cutGap takes a gap of the master's log, behind which no record has come yet, off the end of the log.
func (s *Store) cutGap() error {
	whole := s.log.Confirmed()
	if whole >= s.log.End() {
		return nil
	}
	return s.log.Truncate(whole, "")
}

// LastRecord is where the last whole record of the log begins, blanks not counted; -1 where there is none.
func (s *Store) LastRecord() (int64, error) { return s.log.RecordBefore(s.log.End()) }

// RecordFloor is the last position at or before off where a record begins or the last one ends.
func (s *Store) RecordFloor(off int64) (int64, error) { return s.log.RecordFloor(off) }

// RecordBefore is where the last whole record that ends at or before off begins; -1 where there is none.
func (s *Store) RecordBefore(off int64) (int64, error) { return s.log.RecordBefore(off) }

// Fence makes the store take no messages and say why, until it is called with nil. What was under way is in the log when it
// returns.
func (s *Store) Fence(why error) {
	s.putting.Lock()
	defer s.putting.Unlock()
	if why == nil {
		s.fenced.Store(nil)
		return
	}
	s.fenced.Store(&why)
}
