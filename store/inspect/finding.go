package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"mqx/internal/sorted"
)

// FindingKind names what is wrong.
type FindingKind string

// Kinds of findings. docs/store.md says of each what it means and what mends it.
const (
	FindLogRot          FindingKind = "log-rot"          // unreadable bytes in the log, readable records behind them
	FindLogHole         FindingKind = "log-hole"         // log files are missing between others
	FindLogTorn         FindingKind = "log-torn"         // the log ends in bytes that are no whole record
	FindLogSize         FindingKind = "log-file-size"    // a log file is shorter or longer than the others
	FindLogEmpty        FindingKind = "log-file-empty"   // the last log file has no bytes
	FindRecordPlace     FindingKind = "record-place"     // a record says another queue or queue offset than its unit
	FindLogMisplaced    FindingKind = "log-misplaced"    // a log file holds another part of the log than its name says
	FindForeign         FindingKind = "foreign-file"     // something that is no part of a store lies among its files
	FindQueueMissing    FindingKind = "queue-missing"    // the log has messages of a queue that has no files
	FindQueueBehind     FindingKind = "queue-behind"     // a queue ends before the last messages of the log
	FindQueueAhead      FindingKind = "queue-ahead"      // a queue points beyond the end of the log
	FindQueueUnits      FindingKind = "queue-units"      // units that are not what the log says
	FindQueueFiles      FindingKind = "queue-files"      // files of a queue are missing, or have a size or name that cannot be
	FindOffsetTwice     FindingKind = "offset-twice"     // two records carry the same queue offset
	FindIndexMissing    FindingKind = "index-missing"    // the log has keys and there is no index
	FindIndexDamaged    FindingKind = "index-damaged"    // an index file cannot be what it should be
	FindIndexEntries    FindingKind = "index-entries"    // entries that are not what the log says
	FindIndexBehind     FindingKind = "index-behind"     // the index ends before the last messages of the log
	FindIndexAhead      FindingKind = "index-ahead"      // entries point beyond the end of the log
	FindCheckpoint      FindingKind = "checkpoint"       // it is missing, short, or says what cannot be
	FindConfig          FindingKind = "config-file"      // a configuration file cannot be read or is missing
	FindBackup          FindingKind = "config-backup"    // the backup of a configuration file cannot be read
	FindOffsetBeyond    FindingKind = "offset-range"     // a consumer offset, or the progress of a delay level, that the queue cannot have
	FindTimerWheel      FindingKind = "timer-wheel"      // a slot of the timer wheel is not what the timer log says
	FindTimerLog        FindingKind = "timer-log"        // a unit of the timer log cannot be, or is missing
	FindTimerCheckpoint FindingKind = "timer-checkpoint" // config/timercheck is missing or says what cannot be
	FindState           FindingKind = "state-file"       // a note of mqx's own cannot be read
	FindKind            FindingKind = "kind"             // a part of the directory is of a kind that is not looked into
	FindRecordsUnseen   FindingKind = "records-unseen"   // note: records that no queue lists: of deleted topics, single ones of batch topics
	FindFillers         FindingKind = "queue-fillers"    // note: queue offsets without a record, marked as such
	FindInUse           FindingKind = "in-use"           // note: a broker works on the directory
	FindDirty           FindingKind = "not-closed"       // note: the last broker did not close the directory
)

// Affected is a range of messages of one queue.
type Affected struct {
	Topic    string `json:"topic" yaml:"topic"`
	Queue    int32  `json:"queue" yaml:"queue"`
	From     int64  `json:"from" yaml:"from"` // queue offsets, To exclusive
	To       int64  `json:"to" yaml:"to"`
	Messages int64  `json:"messages" yaml:"messages"`
}

// String is topic/queue from..to, inclusive.
func (a Affected) String() string {
	if a.To-a.From == 1 {
		return fmt.Sprintf("%s/%d %d", a.Topic, a.Queue, a.From)
	}
	return fmt.Sprintf("%s/%d %d..%d", a.Topic, a.Queue, a.From, a.To-1)
}

// Finding is one thing that is wrong, or with Note one that is worth knowing and right.
type Finding struct {
	Kind FindingKind
	Note bool
	File string // inside the directory, slash-separated; "" for none
	// Offset is the byte in File where it begins, Phys the physical offset; -1 where there is none.
	Offset, Phys int64
	What         string     // one sentence
	Affected     []Affected // by topic and queue; at most maxAffected
	Messages     int64      // affected altogether, -1 when that is not known
	Mend         string     // what repair would do; "" for nothing
	// Derived says that the mend only builds again what follows from the rest, so that no message is lost.
	Derived bool

	log   *logBreak
	queue *QueueKey
	place *wrongPlace
	size  int64 // of FindLogSize: what the file should have, when it is too short
}

const (
	// maxFindings bounds what is kept: a damaged disk can have a finding a record.
	maxFindings = 10_000
	maxAffected = 100
)

// findings is what was found, bounded. It is safe to share.
type findings struct {
	mu struct {
		sync.Mutex
		list  []*Finding
		total int
	}
}

func (s *findings) add(f *Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.total++
	if len(s.mu.list) < maxFindings {
		s.mu.list = append(s.mu.list, f)
	}
}

// has reports whether a file already has a finding of a kind.
func (s *findings) has(kind FindingKind, file string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.mu.list, func(f *Finding) bool { return f.Kind == kind && f.File == file })
}

// sorted are the findings, those of the log first, then by file and place; notes last.
func (s *findings) sorted() ([]*Finding, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rank := func(f *Finding) int {
		switch {
		case f.Note:
			return 2
		case f.log != nil:
			return 0
		}
		return 1
	}
	sorted.Stably(s.mu.list, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Kind, b.Kind))
	})
	return s.mu.list, s.mu.total
}

// Report is what Verify found.
type Report struct {
	Findings []*Finding // sorted: first those of the log; then the others, by file; then the notes
	Total    int        // of findings and notes, those that were not kept included

	InUse          InUse
	LogMin, LogEnd int64
	LogFileSize    int64
	Records        int64 // whole records of the log
	Units, Below   int64 // units of all queues, and those whose records have left the log
	Entries        int64 // of the index
	Bytes          int64 // read of the log

	v *verifier
}

// Damaged reports whether there is a finding that is no note.
func (r *Report) Damaged() bool {
	return slices.ContainsFunc(r.Findings, func(f *Finding) bool { return !f.Note })
}

// mergeRanges joins ranges that touch and returns them in order.
func mergeRanges(list []span) []span {
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	out := list[:0]
	for _, s := range list {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// span is a half-open range.
type span struct{ from, to int64 }

// addSpan adds one number to a list of ranges, the last of which it usually follows.
func addSpan(list []span, n int64) []span {
	if k := len(list); k > 0 && list[k-1].to == n {
		list[k-1].to = n + 1
		return list
	}
	return append(list, span{n, n + 1})
}
