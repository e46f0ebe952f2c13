// Package delay holds the rules of delayed messages: the table of levels, and
// when a message that waits in a queue of SCHEDULE_TOPIC_XXXX is due. It has no
// clock and does no I/O: times and offsets go in, decisions come out.
package delay

import (
	"fmt"
	"strconv"
	"time"

	"mqx/message"
)

// Levels is the table of delays: level 1 is the first. It is read-only.
type Levels []time.Duration

// Max is the highest level.
func (l Levels) Max() int { return len(l) }

// Of is the delay of a level; ok is false for a level that is not in the table.
func (l Levels) Of(level int) (d time.Duration, ok bool) {
	if level < 1 || level > len(l) {
		return 0, false
	}
	return l[level-1], true
}

// Cap is the level that a message gets which asks for one: levels above the
// highest count as the highest.
func (l Levels) Cap(level int) int { return min(level, len(l)) }

// Bounds of Later.
const (
	laterLeast = 10 * time.Second
	laterMost  = time.Minute
)

// Later is the level for a message that has waited by a delay (negative: not known) and cannot be delivered now: of those of
// 10 s to a minute the next longer one, at the end the longest. Where the table has none of them it is the nearest; ok is
// false when it is empty.
func (l Levels) Later(waited time.Duration) (level int, ok bool) {
	best := func(fits, before func(a, b time.Duration) bool) {
		for i, d := range l {
			if !ok && fits(d, 0) || ok && fits(d, 0) && before(d, l[level-1]) {
				level, ok = i+1, true
			}
		}
	}
	shorter := func(a, b time.Duration) bool { return a < b }
	longer := func(a, b time.Duration) bool { return a > b }
	best(func(d, _ time.Duration) bool { return d > waited && d >= laterLeast && d <= laterMost }, shorter)
	if !ok {
		best(func(d, _ time.Duration) bool { return d <= laterMost }, longer)
	}
	if !ok {
		best(func(time.Duration, time.Duration) bool { return true }, shorter)
	}
	return level, ok
}

// QueueOf is the queue of SCHEDULE_TOPIC_XXXX that a level waits in.
func QueueOf(level int) int32 { return int32(level - 1) }

// LevelIn reads the level that a message asks for: 0 for none, an error for
// text that is no number (Apache fails such a message too).
func LevelIn(props []byte) (int, error) {
	v, ok := message.Property(props, message.PropDelay)
	if !ok {
		return 0, nil
	}
	return ParseLevel(v)
}

// ParseLevel reads the value of the DELAY property.
func ParseLevel(v []byte) (int, error) {
	n, err := strconv.ParseInt(string(v), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("the delay level %s=%.40q is not a number", message.PropDelay, v)
	}
	return int(n), nil
}
