package delay

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Unit is one unit of a level's queue.
type Unit struct {
	Offset int64 // in the queue
	Phys   int64 // of the record in the commit log
	Size   int32 // of the record in bytes, 0 when the record is known to be missing
	// Deliver is when the message is due, Unix ms: the unit's tags code.
	Deliver int64
}

// Moment is one instant as two clocks show it: WallMs can be set forward and
// back (Unix ms), Mono only goes on.
type Moment struct {
	WallMs int64
	Mono   time.Duration
}

// Limits of a Queue.
const (
	maxRetries = 64     // messages that wait for another try
	maxAhead   = 10_000 // units between the oldest of them and the newest one delivered
	maxMarks   = 1024
	firstRetry = 100 * time.Millisecond
	lastRetry  = 10 * time.Second
	markEvery  = 100 * time.Millisecond
	markParts  = 128 // of a delay: how late a message may be after a step of the clock
)

// Queue is the progress through the queue of one level. It is not safe to share.
//
// A message is due when the wall clock has reached its time. That time was made
// of the store time, which never goes back; after the wall clock was set back it
// may lie further away than the whole delay. Apache delivers such a message at
// once, which is early; here it is due when its delay has passed, by the
// monotonic clock, since it was first known to be in the queue.
type Queue struct {
	delay time.Duration // negative when the level is not in the table any more
	next  int64
	retry []failure // by offset
	marks []mark    // both fields ascending
}

type failure struct {
	unit   Unit
	tries  int
	at     time.Duration // of the next try
	blocks bool          // what failed would fail for others too
}

// mark says that everything before the offset was there at a time.
type mark struct {
	before int64
	at     time.Duration
}

// NewQueue starts at an offset. delay is that of the level, negative for a
// level that the table does not have any more: such messages are due at the
// time they carry, nothing else is known.
func NewQueue(delay time.Duration, next int64) *Queue { return &Queue{delay: delay, next: next} }

// Next is the first offset that was not looked at yet.
func (q *Queue) Next() int64 { return q.next }

// Progress is the offset before which everything has been delivered: what is to
// be saved.
func (q *Queue) Progress() int64 {
	if len(q.retry) > 0 {
		return q.retry[0].unit.Offset
	}
	return q.next
}

// Correct moves the position into the range of the queue, and reports whether
// it lay outside: the queue was cut, or its oldest messages have expired.
func (q *Queue) Correct(minOffset, maxOffset int64) bool {
	before := q.Progress()
	q.retry = slices.DeleteFunc(q.retry, func(f failure) bool { return f.unit.Offset < minOffset || f.unit.Offset >= maxOffset })
	to := min(max(q.next, minOffset), maxOffset)
	changed := to != q.next || q.Progress() < before
	if to < q.next { // cut: what was marked is gone
		q.marks = nil
	}
	q.next = to
	return changed
}

// Due tells how many of the units, which begin at Next, are due now, and after
// which time to look again if not all are. maxOffset is the end of the queue.
func (q *Queue) Due(units []Unit, maxOffset int64, now Moment) (n int, wait time.Duration) {
	for i, u := range units {
		if wait := q.wait(u, maxOffset, now); wait > 0 {
			return i, wait
		}
	}
	return len(units), 0
}

// wait is how long a unit has to wait from now on.
func (q *Queue) wait(u Unit, maxOffset int64, now Moment) time.Duration {
	left := u.Deliver - now.WallMs
	if left <= 0 {
		return 0
	}
	wait := time.Duration(math.MaxInt64)
	if left < math.MaxInt64/int64(time.Millisecond) {
		wait = time.Duration(left) * time.Millisecond
	}
	if q.delay >= 0 && left > q.delay.Milliseconds() {
		q.mark(maxOffset, now.Mono)
		wait = min(wait, q.delay+q.markEvery()) // it is marked by then
	}
	i, _ := slices.BinarySearchFunc(q.marks, u.Offset+1, func(m mark, off int64) int { return cmp.Compare(m.before, off) })
	if i < len(q.marks) {
		wait = min(wait, q.marks[i].at+q.delay-now.Mono)
	}
	return max(0, wait)
}

// markEvery is the least time between two marks.
func (q *Queue) markEvery() time.Duration { return max(markEvery, q.delay/markParts) }

// mark notes that everything before an offset is in the queue now.
func (q *Queue) mark(before int64, now time.Duration) {
	q.marks = slices.DeleteFunc(q.marks, func(m mark) bool { return m.before <= q.next })
	if n := len(q.marks); n > 0 {
		last := q.marks[n-1]
		if n >= maxMarks || last.before >= before || now-last.at < q.markEvery() {
			return
		}
	}
	q.marks = append(q.marks, mark{before, now})
}

// Advance says that everything before an offset has been delivered, given up,
// or handed to Failed.
func (q *Queue) Advance(to int64) { q.next = max(q.next, to) }

// Failed says that a message could not be delivered and is to be tried again.
// blocks: the cause is not the message's own, the others are to wait.
func (q *Queue) Failed(u Unit, blocks bool, now time.Duration) {
	i, found := q.find(u.Offset)
	if !found {
		q.retry = slices.Insert(q.retry, i, failure{unit: u})
	}
	f := &q.retry[i]
	f.blocks = blocks
	f.at = now + min(firstRetry<<min(f.tries, 10), lastRetry)
	f.tries++
}

// Settled says that a message that had failed needs no more tries.
func (q *Queue) Settled(offset int64) {
	if i, found := q.find(offset); found {
		q.retry = slices.Delete(q.retry, i, i+1)
	}
}

func (q *Queue) find(offset int64) (int, bool) {
	return slices.BinarySearchFunc(q.retry, offset, func(f failure, off int64) int { return cmp.Compare(f.unit.Offset, off) })
}

// Retries are the messages to be tried again now, oldest first.
func (q *Queue) Retries(now time.Duration) []Unit {
	var out []Unit
	for _, f := range q.retry {
		if f.at <= now {
			out = append(out, f.unit)
		}
	}
	return out
}

// MayAdvance reports whether messages behind Next may be delivered, although
// some before it have failed.
func (q *Queue) MayAdvance() bool {
	return len(q.retry) < maxRetries && q.next-q.Progress() < maxAhead &&
		!slices.ContainsFunc(q.retry, func(f failure) bool { return f.blocks })
}

// RetryIn is how long to wait for the next retry; ok is false when there is none.
func (q *Queue) RetryIn(now time.Duration) (wait time.Duration, ok bool) {
	for _, f := range q.retry {
		if left := max(0, f.at-now); !ok || left < wait {
			wait, ok = left, true
		}
	}
	return wait, ok
}
