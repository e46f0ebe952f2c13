package admin

import (
	"fmt"
	"strings"

	"mqx/internal/words"
	"mqx/remoting"
)

// Kinds of OffsetTo.
const (
	ToStart   = "start"   // of each queue
	ToEnd     = "end"     // of each queue, exactly: the next message that comes is the first one read
	ToOffset  = "offset"  // the same in all queues
	ToTime    = "time"    // the first message stored at a time or later; the end where there is none
	ToShift   = "shift"   // from what is committed, forward or back
	ToGroup   = "group"   // what another group has committed
	ToMessage = "message" // the queue of a message, so that it is the next one read
	ToValues  = "values"  // an offset for each queue
)

// OffsetTo says where offsets are put.
type OffsetTo struct {
	Kind    string        `json:"kind"`
	Offset  int64         `json:"offset,omitempty"`
	TimeMs  int64         `json:"timeMs,omitempty"` // since 1970
	Shift   int64         `json:"shift,omitempty"`
	Group   string        `json:"group,omitempty"`
	Message string        `json:"message,omitempty"` // an id
	Values  []OffsetValue `json:"values,omitempty"`
}

// String is the target in a few words.
func (t *OffsetTo) String() string {
	switch t.Kind {
	case ToStart:
		return "the start"
	case ToEnd:
		return "the end"
	case ToOffset:
		return fmt.Sprintf("offset %d", t.Offset)
	case ToTime:
		return "the messages stored since " + timeText(t.TimeMs)
	case ToShift:
		return fmt.Sprintf("%+d from where it stands", t.Shift)
	case ToGroup:
		return "where group " + t.Group + " stands"
	case ToMessage:
		return "message " + t.Message
	}
	return fmt.Sprintf("%s that are given", words.Count(len(t.Values), "offset"))
}

// OffsetValue is an offset of one queue.
type OffsetValue struct {
	QueueID
	Offset int64 `json:"offset"`
}

// OffsetState is an offset of a group in a queue.
type OffsetState struct {
	Offset int64 `json:"offset"`
}

// String is the number.
func (s OffsetState) String() string { return fmt.Sprint(s.Offset) }

// OffsetMove is an offset that is set, and what that means for the group. What it means
// is unknown where the group had no offset.
type OffsetMove struct {
	Offset   int64  `json:"offset"`
	Skipped  *int64 `json:"skipped"`  // messages that it will not be given
	Repeated *int64 `json:"repeated"` // messages that it will be given again
}

// String is the move in a cell of a table.
func (m OffsetMove) String() string {
	s := fmt.Sprint(m.Offset)
	if m.Skipped != nil && *m.Skipped > 0 {
		s += fmt.Sprintf(" skips %d", *m.Skipped)
	}
	if m.Repeated != nil && *m.Repeated > 0 {
		s += fmt.Sprintf(" repeats %d", *m.Repeated)
	}
	return s
}

// OffsetError says why an offset cannot be set.
type OffsetError struct {
	Group string
	Whys  []string
}

// maxWhys bounds the reasons that are told.
const maxWhys = 5

// Error names the reasons.
func (e *OffsetError) Error() string {
	whys := e.Whys
	more := ""
	if len(whys) > maxWhys {
		more = fmt.Sprintf("; and %d more", len(whys)-maxWhys)
		whys = whys[:maxWhys]
	}
	return fmt.Sprintf("cannot set the offsets of group %q: %s%s", e.Group, strings.Join(whys, "; "), more)
}

// queueFacts are what decides about the target of one queue.
type queueFacts struct {
	min, max  int64
	committed remoting.Opt[int64]
	found     remoting.Opt[int64] // by time, of the other group, or given
}

// aim finds where the offset of a queue goes. Without ok the queue is left alone. why is
// the reason that it cannot be done.
func (t *OffsetTo) aim(q queueFacts) (target int64, ok bool, warning, why string) {
	switch t.Kind {
	case ToStart:
		return q.min, true, "", ""
	case ToEnd:
		return q.max, true, "", ""
	case ToOffset:
		if t.Offset < q.min || t.Offset > q.max {
			return 0, false, "", fmt.Sprintf("offset %d is outside of what it holds, %d to %d", t.Offset, q.min, q.max)
		}
		return t.Offset, true, "", ""
	case ToTime:
		return min(max(q.found.Or(q.max), q.min), q.max), true, "", ""
	case ToShift:
		if !q.committed.OK {
			if q.min == q.max { // nothing to read there, and nothing to shift
				return 0, false, "", ""
			}
			return 0, false, "", "the group has committed nothing there to shift from"
		}
		target, warning = q.cut(q.committed.Value + t.Shift)
		return target, true, warning, ""
	default:
		if !q.found.OK {
			return 0, false, "", ""
		}
		if q.found.Value > q.max {
			return 0, false, "", fmt.Sprintf("offset %d is behind its end %d", q.found.Value, q.max)
		}
		target, warning = q.cut(q.found.Value)
		return target, true, warning, ""
	}
}

// cut brings an offset into the range of the queue.
func (q queueFacts) cut(offset int64) (target int64, warning string) {
	switch {
	case offset < q.min:
		return q.min, fmt.Sprintf("%d is before its start", offset)
	case offset > q.max:
		return q.max, fmt.Sprintf("%d is behind its end", offset)
	}
	return offset, ""
}

// move is what setting target means for a group.
func (q queueFacts) move(target int64) OffsetMove {
	m := OffsetMove{Offset: target}
	if !q.committed.OK {
		return m
	}
	stands := min(max(q.committed.Value, q.min), q.max)
	skipped, repeated := max(0, target-stands), max(0, stands-target)
	m.Skipped, m.Repeated = &skipped, &repeated
	return m
}
