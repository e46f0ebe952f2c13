// Package staticmap is the arithmetic of static topics. A static topic has a fixed number of logical queues; each is a list
// of stretches, oldest first, and a stretch is a physical queue of some broker with the logical offset that it begins at. The
// last stretch is the leader: it takes the messages. Tables, offsets and answers go in, decisions come out; nothing here asks,
// waits or writes. The rules are those of Apache RocketMQ's TopicQueueMappingUtils and of the processors that use it; where
// those answer wrongly, the comment says what is done instead. Safe to share: nothing is changed in place.
package staticmap

import (
	"math"

	"mqx/remoting"
)

// Item is one stretch of a logical queue.
type Item = remoting.LogicQueueMappingItem

// Queue is the stretches of one logical queue, oldest first. Only the last one may be without a logical offset (-1): a remap
// has named the new leader and not decided yet where it begins.
type Queue []Item

// Decided reports whether a stretch has a logical offset.
func Decided(it Item) bool { return it.LogicOffset >= 0 }

// Logic is the logical offset of a physical one; what lies before the stretch counts as its beginning.
func Logic(it Item, physical int64) int64 {
	return it.LogicOffset + max(0, physical-it.StartOffset)
}

// LogicSent is what a sender is told: -1 while the stretch is undecided, and nothing behind an end that is decided.
func LogicSent(it Item, physical int64) int64 {
	if !Decided(it) {
		return -1
	}
	if it.EndOffset >= it.StartOffset && it.EndOffset < physical {
		physical = it.EndOffset
	}
	return Logic(it, physical)
}

// Physical is the physical offset of a logical one. It is below the stretch's start for an offset before the stretch.
func Physical(it Item, logic int64) int64 { return logic - it.LogicOffset + it.StartOffset }

// Delta is what a client adds to the queue offsets of the messages of a stretch.
func Delta(it Item) int64 { return it.LogicOffset - it.StartOffset }

// Leader is the stretch that takes messages. ok is false for a queue without any.
func (q Queue) Leader() (it Item, ok bool) {
	if len(q) == 0 {
		return Item{}, false
	}
	return q[len(q)-1], true
}

// LedBy reports whether a broker leads the queue.
func (q Queue) LedBy(broker string) bool {
	it, ok := q.Leader()
	return ok && it.BName == broker
}

// Find is the place of the stretch that holds a logical offset: the newest decided one that begins at or before it, and for
// an offset before all of them the oldest (Apache's answer to that is an exception). -1 when none is decided.
func (q Queue) Find(logic int64) int {
	oldest := -1
	for i := len(q) - 1; i >= 0; i-- {
		if !Decided(q[i]) {
			continue
		}
		if q[i].LogicOffset <= logic {
			return i
		}
		oldest = i
	}
	return oldest
}

// Newest is the place of the newest decided stretch, -1 when none is.
func (q Queue) Newest() int { return q.Find(math.MaxInt64) }

// Next is the place of the decided stretch behind i, -1 when there is none (yet).
func (q Queue) Next(i int) int {
	if i+1 < len(q) && Decided(q[i+1]) {
		return i + 1
	}
	return -1
}

// End is the physical offset that the stretch i does not reach: its own end where that is decided, else what the next stretch
// begins at. math.MaxInt64 for an open one. (Apache hands out what an old queue got behind that, with offsets of the next.)
func (q Queue) End(i int) int64 {
	it, end := q[i], int64(math.MaxInt64)
	if it.EndOffset > it.StartOffset {
		end = it.EndOffset
	}
	if n := q.Next(i); n >= 0 {
		end = min(end, Physical(it, q[n].LogicOffset))
	}
	return end
}
