package transaction

import "time"

// Rules are the broker's settings for checks.
type Rules struct {
	// Timeout is how old a half message is before its producer is asked, unless
	// the message says otherwise (transactionTimeOut).
	Timeout time.Duration
	// MaxChecks is how often at most (transactionCheckMax).
	MaxChecks int
	// Keep is the age at which a half message is given up (fileReservedTime).
	Keep time.Duration
}

// Verdict is what is to be done about a half message that has not ended.
type Verdict int8

// Verdicts.
const (
	// Leave: nothing yet.
	Leave Verdict = iota
	// Check: ask a producer of its group.
	Check
	// Discard: it was checked too often or is too old.
	Discard
)

// Judge decides about a half message that has not ended at a time (ms). A
// message from the future, by its producer's clock, is checked at once.
func (r Rules) Judge(h *Half, nowMs int64) Verdict {
	age := nowMs - h.Born
	if h.Checks >= r.MaxChecks || age > r.Keep.Milliseconds() {
		return Discard
	}
	wait := r.Timeout.Milliseconds()
	if h.Immunity >= 0 {
		wait = h.Immunity.Milliseconds()
		if age <= wait {
			return Leave
		}
		return Check
	}
	if age >= 0 && age <= wait {
		return Leave
	}
	return Check
}

// TooLate reports whether a producer ends its transaction after the time it has
// set itself: then the check decides.
func (r Rules) TooLate(h *Half, fromCheck bool, nowMs int64) bool {
	return !fromCheck && h.Immunity >= 0 && nowMs-h.Born > h.Immunity.Milliseconds()
}

// keepTogether is the distance from the end of the half queue within which a
// half message that waits is left where it is.
const keepTogether = 1 << 16

// FarBehind reports whether a half message that waits is to be copied to the
// end of the queue, so that the floor can move: only when it is far behind, and
// farther the more of them wait.
func FarBehind(off, end int64, waiting int) bool {
	return end-off > keepTogether+4*int64(waiting)
}
