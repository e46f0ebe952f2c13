package store

import (
	"fmt"
	"strings"

	"mqx/store/commitlog"
)

// FindingKind names what was found.
type FindingKind string

// Kinds of findings.
const (
	FindTornTail        FindingKind = "torn-tail"        // the end of the log was broken; it was cut and kept in mqx/salvage
	FindRot             FindingKind = "rot"              // unreadable bytes between readable records; skipped
	FindHole            FindingKind = "hole"             // a commit log file is missing; skipped
	FindCut             FindingKind = "cut"              // a commit log file was cut short while it was in use
	FindQueueBehind     FindingKind = "queue-behind"     // a queue lacked units; built from the log
	FindQueueAhead      FindingKind = "queue-ahead"      // a queue pointed beyond the log; cut
	FindQueueFile       FindingKind = "queue-file"       // a queue file was missing, short or empty
	FindQueueGap        FindingKind = "queue-gap"        // queue offsets have no readable record
	FindIndexDamaged    FindingKind = "index-damaged"    // an index file was damaged; removed and built again
	FindIndexBehind     FindingKind = "index-behind"     // the index did not cover the log; it is built again
	FindCheckpoint      FindingKind = "checkpoint"       // the checkpoint was missing or could not be true
	FindDirtyStop       FindingKind = "dirty-stop"       // the store was not closed
	FindStateUnreadable FindingKind = "state-unreadable" // a file of mqx's own could not be read; ignored
)

// Finding is one thing that recovery found to be wrong and what it did about it.
type Finding struct {
	Kind   FindingKind
	File   string // path inside the store directory, empty when it concerns no single file
	Offset int64  // physical offset, or byte offset in File for queue and index files; -1 for none
	What   string // one sentence: what was wrong, what was done
}

// maxFindings bounds what is kept: a damaged disk can have a finding a record.
const maxFindings = 10_000

// find notes and logs a finding.
func (s *Store) find(f Finding) {
	f.File = strings.TrimPrefix(strings.TrimPrefix(f.File, s.cfg.RootDir), "/")
	s.found.Lock()
	kept := len(s.found.list) < maxFindings
	if kept {
		s.found.list = append(s.found.list, f)
	}
	s.found.total++
	s.found.Unlock()
	if kept {
		s.cfg.Logger.Warn("store: finding", "kind", f.Kind, "file", f.File, "offset", f.Offset, "what", f.What)
	}
}

// Findings are what Open found and repaired, in order, and what was found to be unreadable since. At most 10,000.
func (s *Store) Findings() []Finding {
	s.found.Lock()
	defer s.found.Unlock()
	return append([]Finding(nil), s.found.list...)
}

// reportLog takes in what a walk over the log stepped over. The same place is reported once.
func (s *Store) reportLog(f commitlog.Finding) error {
	s.found.Lock()
	if s.found.skipped == nil {
		s.found.skipped = map[int64]bool{}
	}
	known := s.found.skipped[f.From]
	s.found.skipped[f.From] = true
	s.found.Unlock()
	if known {
		return nil
	}
	if f.Kind == commitlog.Hole {
		s.find(Finding{FindHole, f.Path, f.From, fmt.Sprintf("the log from %d to %d is missing; it is stepped over", f.From, f.To)})
		return nil
	}
	s.find(Finding{FindRot, f.Path, f.From, fmt.Sprintf("%d bytes up to %d hold no readable record (%v); they are left as they are and stepped over, what follows is served", f.To-f.From, f.To, f.Err)})
	return nil
}
