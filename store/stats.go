package store

import (
	"sync/atomic"
	"time"

	"mqx/internal/meter"
)

// counters are counted where things happen.
type counters struct {
	puts, putBytes, putFailed atomic.Int64
	gets, getBytes            atomic.Int64
	getFound, getMissed       atomic.Int64
	dispatchRetries           atomic.Int64
	dispatchRefused           atomic.Int64
	unreadable                atomic.Int64
	getCold                   atomic.Int64
	putMaxNs                  atomic.Int64
	putSlowAt                 atomic.Int64 // ns since epoch of the last append that was slow, 0: none
	epoch                     time.Time    // set by Open

	appendTimes, dispatchTimes *meter.Histogram
}

// Stats are the runtime values of a store, for runtime info, metrics and doctor.
type Stats struct {
	PutMessages, PutBytes    int64 // since start
	GetMessages, GetBytes    int64
	GetFound, GetMissed      int64 // Get calls
	GetCold                  int64 // of those that found something: some of it was not in the hot end of the log
	HotBytes                 int64 // the hot end: what is answered from memory
	PutFailed                int64
	DispatchBehindBytes      int64
	IndexBehindBytes         int64
	DispatchRetries          int64  // failed attempts to build a queue unit or index entry
	DispatchRefused          int64  // records whose queue offset cannot be
	UnreadableRecords        int64  // records that a Get met and could not return
	DispatchAlarm            string // what the store waits for now, "" for nothing
	EarliestMessageTimestamp int64  // ms, -1 for none
	PutMaxLockedMs           int64  // longest time an append took, with the wait for the lock
	AppendLockHeldMs         int64  // how long the append that runs now has held its lock, 0 for none
	LogMin, LogEnd           int64
	LogFlushed               int64
	CommitLogFiles           int
	CommitLogDirBytes        int64
	Queues                   int
	OpenFiles                int
	Findings                 int64
	Disk                     []DiskState

	// Times in nanoseconds. Append: of each batch, with the wait for the lock. Dispatch:
	// from the append of a batch until it is in its queues, or of the last record of a
	// round where the dispatcher had fallen behind. Flush: of each sync of the log.
	AppendTimes, DispatchTimes, FlushTimes meter.Reading
}

// DiskState is the state of one volume of the store.
type DiskState struct {
	Name    string // commitlog, consumequeue, index
	Path    string
	Total   int64 // bytes
	Free    int64 // bytes available
	UsedPct int
	Limit   int    // percent above which messages are refused
	State   string // one of the Disk constants
	Err     string // when the volume could not be asked
}

// Stats returns the current values.
func (s *Store) Stats() Stats {
	c := &s.stats
	st := Stats{
		AppendLockHeldMs: s.log.LockHeld().Milliseconds(),
		PutMessages:      c.puts.Load(), PutBytes: c.putBytes.Load(), PutFailed: c.putFailed.Load(),
		GetMessages: c.gets.Load(), GetBytes: c.getBytes.Load(), GetFound: c.getFound.Load(), GetMissed: c.getMissed.Load(),
		GetCold: c.getCold.Load(), HotBytes: s.hotBytes,
		AppendTimes: c.appendTimes.Read(), DispatchTimes: c.dispatchTimes.Read(), FlushTimes: s.log.FlushTimes(),
		DispatchRetries: c.dispatchRetries.Load(), DispatchRefused: c.dispatchRefused.Load(), UnreadableRecords: c.unreadable.Load(),
		DispatchAlarm: s.alarms.text(), EarliestMessageTimestamp: -1,
		PutMaxLockedMs: c.putMaxNs.Load() / int64(time.Millisecond),
		LogMin:         s.log.Min(), LogEnd: s.log.End(), LogFlushed: s.log.Flushed(),
		OpenFiles: s.cqs.OpenFiles(),
	}
	st.DispatchBehindBytes = max(0, st.LogEnd-s.dispatcher.pos.Load())
	if s.indexer.enabled {
		st.IndexBehindBytes = max(0, st.LogEnd-s.indexer.pos.Load())
	}
	if t, err := s.storeTimeAtPhys(st.LogMin); err == nil {
		st.EarliestMessageTimestamp = t
	}
	if files, err := s.log.Files(); err == nil {
		st.CommitLogFiles = len(files)
		for _, f := range files {
			st.CommitLogDirBytes += f.Size
		}
	}
	for q := range s.queues.all {
		if q.exists() {
			st.Queues++
		}
	}
	s.found.Lock()
	st.Findings = s.found.total
	s.found.Unlock()
	s.disk.mu.Lock()
	st.Disk = append([]DiskState(nil), s.disk.mu.states...)
	s.disk.mu.Unlock()
	return st
}

// reportUnreadable counts a record that a queue points to and that is not there as it should be, and logs it once.
func (s *Store) reportUnreadable(phys int64) {
	s.stats.unreadable.Add(1)
	s.found.Lock()
	if s.found.skipped == nil {
		s.found.skipped = map[int64]bool{}
	}
	known := s.found.skipped[phys] || len(s.found.skipped) >= maxFindings
	if !known {
		s.found.skipped[phys] = true
	}
	s.found.Unlock()
	if !known {
		s.find(Finding{FindRot, "", phys, "a queue points to a record here that cannot be read; it is stepped over"})
	}
}
