// Package failpoint lets a test end the process between two steps that a crash must not come between unharmed.
//
// A point is a name in the code: failpoint.Pass(failpoint.LogRoll). In a build with the tag `failpoint` the process
// kills itself (SIGKILL, nothing is run or flushed) when it passes the point that MQX_FAILPOINT names; in every other
// build Pass is empty and costs nothing. docs/reliability.md says which step each point lies in.
package failpoint

import "slices"

// Env is the variable that names the point: "name" or "name:n", for the n-th time it is passed (from 1, which is the
// default).
const Env = "MQX_FAILPOINT"

// Point is the name of a point.
type Point string

// The points, by the file they lie in.
const (
	// Appended: records are in the log, nobody has been answered. store/put.go
	Appended Point = "appended"
	// LogRoll: the full file is closed by a blank, the next one is not the newest yet. store/commitlog/append.go
	LogRoll Point = "log-roll"
	// LogCreated: a new log file exists and has no length yet. store/commitlog/segment.go
	LogCreated Point = "log-created"
	// LogSynced: the log is durable, nobody has been told. store/commitlog/flush.go
	LogSynced Point = "log-synced"
	// LogRemoved: an expired log file is gone, queues and index still point into it. store/commitlog/expire.go
	LogRemoved Point = "log-removed"
	// LogSalvaged: the end to be cut is kept, nothing is cut. store/commitlog/truncate.go
	LogSalvaged Point = "log-salvaged"
	// LogCutHalf: the file is cut and has not its length back. store/commitlog/truncate.go
	LogCutHalf Point = "log-cut-half"

	// Dispatch and Dispatched enclose the dispatch of a batch of records to the queues. store/dispatch.go
	Dispatch   Point = "dispatch"
	Dispatched Point = "dispatched"
	// QueueCreated: a queue file exists and holds no unit yet. store/consumequeue/write.go
	QueueCreated Point = "queue-created"
	// QueueWritten: some units of a batch are in their file, others are not. store/consumequeue/write.go
	QueueWritten Point = "queue-written"
	// QueuesExpired: queue files of removed log files are gone, index files are not. store/clean.go
	QueuesExpired Point = "queues-expired"

	// IndexEntries: entries are in the file, their slots are not. store/index/file.go
	IndexEntries Point = "index-entries"
	// IndexSlots: slots are in the file, the head does not count their entries. store/index/file.go
	IndexSlots Point = "index-slots"
	// IndexCreated: a new index file exists without content. store/index/index.go
	IndexCreated Point = "index-created"

	// CheckpointDue: everything is durable, the checkpoint does not say so. store/checkpoint.go
	CheckpointDue Point = "checkpoint-due"
	// CheckpointWritten: the checkpoint is written and not synced. store/checkpoint.go
	CheckpointWritten Point = "checkpoint-written"

	// RecoveryLog: the end of the log is set, the queues are not settled. store/recover.go
	RecoveryLog Point = "recovery-log"
	// RecoveryQueues: the queues are settled, no checkpoint says so. store/recover.go
	RecoveryQueues Point = "recovery-queues"
	// StopNoted: the note of a clean stop is there, and so is `abort`. store/store.go
	StopNoted Point = "stop-noted"
	// TopicNoted: the note of a deleted topic is durable, its queues are there. store/truncate.go
	TopicNoted Point = "topic-noted"

	// TimerAppended: units are in the timer log, no offset says that their messages were taken up. store/timer/timer.go
	TimerAppended Point = "timer-appended"
	// TimerStored: copies of due messages are in the log, the timer's progress does not say so. broker/timer_deliver.go
	TimerStored Point = "timer-stored"
	// TimerLogSynced: the timer log is durable, the wheel is not. store/timer/flush.go
	TimerLogSynced Point = "timer-log-synced"
	// TimerWheelSynced: the wheel is durable, the timer's checkpoint does not say so. store/timer/flush.go
	TimerWheelSynced Point = "timer-wheel-synced"
	// TimerCheckpoint: the timer's checkpoint is written and not synced. store/timer/flush.go
	TimerCheckpoint Point = "timer-checkpoint"

	// FileRename: a small file is written beside the one it replaces. internal/vfs/vfs.go
	FileRename Point = "file-rename"
	// JSONWritten: the new configuration file is written beside the old one. internal/jsonfile/jsonfile.go
	JSONWritten Point = "json-written"
	// JSONShifted: the old configuration file is the backup, the new one has not its name. internal/jsonfile/jsonfile.go
	JSONShifted Point = "json-shifted"
)

// All lists the points.
func All() []Point { return slices.Clone(all) }

// Timers lists those of All that only timer messages come to.
func Timers() []Point {
	return []Point{TimerAppended, TimerStored, TimerLogSynced, TimerWheelSynced, TimerCheckpoint}
}

var all = []Point{
	Appended, LogRoll, LogCreated, LogSynced, LogRemoved, LogSalvaged, LogCutHalf,
	Dispatch, Dispatched, QueueCreated, QueueWritten, QueuesExpired,
	IndexEntries, IndexSlots, IndexCreated,
	CheckpointDue, CheckpointWritten,
	RecoveryLog, RecoveryQueues, StopNoted, TopicNoted,
	TimerAppended, TimerStored, TimerLogSynced, TimerWheelSynced, TimerCheckpoint,
	FileRename, JSONWritten, JSONShifted,
}
