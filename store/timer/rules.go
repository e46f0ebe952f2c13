package timer

// Rules are the settings that decide when and where a message waits.
type Rules struct {
	PrecisionMs int64 // width of a slot: 100, 200, 500 or 1000
	RollSlots   int64 // how far ahead the wheel is used (timerRollWindowSlot)
}

// NewRules settles configured values as Apache does: a precision that is none becomes the next smaller one, a window
// that the wheel cannot hold becomes the longest.
func NewRules(precisionMs, rollSlots int) Rules {
	r := Rules{PrecisionMs: 100, RollSlots: int64(rollSlots)}
	for _, p := range precisions {
		if int64(precisionMs) >= p {
			r.PrecisionMs = p
		}
	}
	if rollSlots < 2 || rollSlots > maxRollSlots {
		r.RollSlots = maxRollSlots
	}
	return r
}

var precisions = [...]int64{100, 200, 500, 1000}

// Tick is the tick that a time lies in.
func (r Rules) Tick(ms int64) int64 { return ms / r.PrecisionMs }

// Floor is the start of the tick that a time lies in.
func (r Rules) Floor(ms int64) int64 { return ms / r.PrecisionMs * r.PrecisionMs }

// OutTime is the time that a message wanted at ms is kept under (TIMER_OUT_MS): its slot, which is due one precision
// later. A multiple of the precision belongs to the slot before, so that it is not late by one.
func (r Rules) OutTime(ms int64) int64 {
	if ms%r.PrecisionMs == 0 {
		return ms - r.PrecisionMs
	}
	return r.Floor(ms)
}

// Due reports whether a message kept under out may be delivered.
func (r Rules) Due(out, now int64) bool { return out < r.Floor(now) }

// Place is where a message that is not due goes: the time of its slot, and whether it has to roll from there. read is the
// time of the oldest slot that has not been passed; a slot before it would never come. A message with less than a third
// of a window left behind the first one rolls after half a window, so that the last part is not too short.
func (r Rules) Place(out, now, read int64) (at int64, roll bool) {
	write, window := r.Floor(now), r.RollSlots*r.PrecisionMs
	at = out
	if rest := out - write - window; rest >= 0 {
		roll = true
		if rest < r.RollSlots/3*r.PrecisionMs {
			at = write + r.RollSlots/2*r.PrecisionMs
		} else {
			at = write + window
		}
	}
	return max(at, read), roll
}

// Rejects reports whether a slot with num messages takes no more: never up to limit, always from twice the limit on, and
// in between the more often the fuller it is. roll is a random number below 1000.
func Rejects(num, limit int64, roll int64) bool {
	switch {
	case num <= limit:
		return false
	case num >= 2*limit:
		return true
	}
	return float64(roll) < float64(1000*(num-limit))/(float64(limit)+0.1)
}
