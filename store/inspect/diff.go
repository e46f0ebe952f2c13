package inspect

import (
	"context"
	"fmt"
)

// DiffKind names what differs.
type DiffKind string

// Kinds of differences. What the index and the timer's files hold follows from the log and is not compared.
const (
	DiffLogRange   DiffKind = "log-range"   // positions of the log where the records are not the same
	DiffLogFork    DiffKind = "log-fork"    // the same up to the end of both logs: they part for good
	DiffLogEnd     DiffKind = "log-end"     // one log goes on behind the end of the other
	DiffLogStart   DiffKind = "log-start"   // note: one log begins later, as retention leaves it
	DiffUnreadable DiffKind = "unreadable"  // note: bytes of one log that hold no readable record
	DiffMessage    DiffKind = "message"     // a message that only one store has
	DiffQueue      DiffKind = "queue"       // a queue that only one has
	DiffQueueUnits DiffKind = "queue-units" // units of one offset that do not point to the same
	DiffQueueEnd   DiffKind = "queue-end"   // one queue goes on behind the end of the other
	DiffOffset     DiffKind = "offset"      // committed offsets, progress of delay levels
	DiffConfig     DiffKind = "config"      // another value in a configuration file
)

// Side says which store has what is told.
type Side string

// Sides.
const (
	SideFirst  Side = "first"
	SideSecond Side = "second"
	SideBoth   Side = "both" // each has something else
)

// Difference is one thing that differs.
type Difference struct {
	Kind DiffKind
	Side Side
	Note bool   // worth knowing, and no difference in what is stored
	Name string // queue, file or member of a file
	// From and To are positions of the log, or offsets of a queue for its kinds; -1 for none.
	From, To int64
	// First and Second count the records or units in the range, or are the two values.
	First, Second string
	Topic         string // of a message
	Queue         int32
	QueueOffset   int64 // -1 for none
	MsgID         string
	Phys          int64 // of a message, in the store that has it; -1 for none
	What          string
}

// DiffOptions say what to compare.
type DiffOptions struct {
	NoLog, NoQueues, NoConfig bool
	// NoMessages leaves out which messages only one store has.
	NoMessages bool
	// OnProgress is told how many bytes of log were compared.
	OnProgress func(done, total int64)
}

// DiffResult is what a comparison came to.
type DiffResult struct {
	Same        int64 // records that are the same at the same position
	Differences int64
	Notes       int64
	// OnlyFirst and OnlySecond are the messages that one store has, in the range that both logs cover and behind it.
	OnlyFirst, OnlySecond int64
	// PartAt is where the logs part for good, -1 when they do not: they are the same as far as both go.
	PartAt int64
}

// Diff compares two store directories, of any sizes of files: their logs position by position, the messages where the
// logs differ by their ids, queues, configuration and offsets. found is told of each difference; an error ends it with
// that. It reads both, takes no lock, and holds some 100 MiB at most, whatever the stores' sizes.
func Diff(ctx context.Context, a, b *Dir, o DiffOptions, found func(Difference) error) (DiffResult, error) {
	d := &differ{ctx: ctx, a: a, b: b, o: o, found: found, r: DiffResult{PartAt: -1}}
	for _, step := range []struct {
		skip bool
		do   func() error
	}{{o.NoLog, d.logs}, {o.NoLog || o.NoMessages, d.messages}, {o.NoQueues, d.queues}, {o.NoConfig, d.configs}} {
		if step.skip {
			continue
		}
		if err := step.do(); err != nil {
			return d.r, fmt.Errorf("cannot compare %q with %q: %w", a.root, b.root, err)
		}
	}
	return d.r, nil
}

// differ is one comparison.
type differ struct {
	ctx    context.Context //nolint:containedctx // of one call of Diff
	a, b   *Dir
	o      DiffOptions
	found  func(Difference) error
	r      DiffResult
	ranges []diffSpan // positions where the logs differ, in order
	inA    int64      // records in them
	inB    int64
}

// diffSpan is a range of positions.
type diffSpan struct{ from, to int64 }

func (d *differ) tell(x Difference) error {
	if x.Note {
		d.r.Notes++
	} else {
		d.r.Differences++
	}
	return d.found(x)
}
