package pop

import (
	"slices"
	"strconv"
)

// settleMs is how far the deliveries of a revive queue must have gone beyond a
// checkpoint's revive time until its acks are all there: Apache's ack interval
// and a second.
const settleMs = AckLeadMs + 1000

// quietMs is how long a revive queue must be quiet until its deliveries count
// as gone as far as now.
const quietMs = 3000

// Reviver decides about one queue of the revive topic: it is given the records
// in order and says which checkpoints have come to their end, with the marks of
// what was acknowledged. Not safe to share.
type Reviver struct {
	max     int
	orphanN int

	byKey   map[reviveKey]*Expiring
	waiting []*Expiring // by revive offset
	orphans map[reviveKey][]int64
	order   []reviveKey // of orphans, oldest first
	seen    int64       // the latest deliver time of a record, ms
	end     int64       // up to when all records have been seen, ms
	skipped int64       // first checkpoint that was left out for want of room; -1 for none
}

type reviveKey struct {
	Key
	broker string
}

// Expiring is a checkpoint that waits for its end.
type Expiring struct {
	*Checkpoint
	key   reviveKey
	acked uint32
	dead  bool      // replaced by a later record of the same checkpoint
	older *Expiring // another checkpoint under the same key
}

// Unacked are the places of the messages that nobody acknowledged.
func (e *Expiring) Unacked() []int {
	var out []int
	for i := range e.Count() {
		if e.acked&(1<<i) == 0 {
			out = append(out, i)
		}
	}
	return out
}

// NewReviver returns a reviver that keeps at most maxWaiting checkpoints.
func NewReviver(maxWaiting int) *Reviver {
	return &Reviver{
		max: maxWaiting, orphanN: maxWaiting, byKey: map[reviveKey]*Expiring{}, orphans: map[reviveKey][]int64{}, skipped: -1,
	}
}

// Add takes the record at an offset of the revive queue. deliver is its deliver
// time (TIMER_DELIVER_MS), self the name of this broker, which records without
// one mean.
func (r *Reviver) Add(rec Record, offset, deliver int64, self string) {
	switch {
	case rec.Checkpoint != nil:
		r.addCheckpoint(rec.Checkpoint, offset, self)
	case rec.Ack != nil:
		r.addAck(rec.Ack, self)
	}
	r.seen = max(r.seen, deliver)
	r.end = max(r.end, r.seen)
}

func (r *Reviver) addCheckpoint(c *Checkpoint, offset int64, self string) {
	if c.Topic == "" || c.Group == "" {
		return // as Apache
	}
	if r.skipped >= 0 || len(r.waiting) >= r.max {
		if r.skipped < 0 {
			r.skipped = offset
		}
		return
	}
	c.ReviveOffset = offset
	k := reviveKey{KeyOf(c), named(c.Broker, self)}
	e := &Expiring{Checkpoint: c, key: k}
	if e.older = r.byKey[k]; e.older != nil && e.older.same(c) {
		// The same record again: its delivery was repeated.
		e.older.dead = true
		e.acked, e.older = e.older.acked, e.older.older
	}
	for _, off := range r.orphans[k] {
		e.ack(off)
	}
	delete(r.orphans, k)
	r.byKey[k] = e
	r.waiting = append(r.waiting, e)
}

func (r *Reviver) addAck(a *Ack, self string) {
	k := reviveKey{Key{Topic: a.Topic, Group: a.Group, Queue: a.Queue, Start: a.Start, PopTime: a.PopTime}, named(a.Broker, self)}
	e := r.byKey[k]
	if e == nil {
		r.keepOrphan(k, a)
		return
	}
	for off := range a.All() {
		e.ackOldest(off)
	}
}

// ackOldest marks a message in the oldest checkpoint of the key that has it
// without a mark: when an invisible time is changed in the millisecond of the
// pop, both checkpoints have one key, and the ack of the first comes first.
func (e *Expiring) ackOldest(offset int64) bool {
	if e.older != nil && e.older.ackOldest(offset) {
		return true
	}
	return e.ack(offset)
}

// same reports whether two records are of one checkpoint.
func (e *Expiring) same(c *Checkpoint) bool {
	return e.Num == c.Num && e.Invisible == c.Invisible && e.RePutTimes == c.RePutTimes && slices.Equal(e.Diffs, c.Diffs)
}

// keepOrphan keeps an ack that came before its checkpoint: that may be late.
func (r *Reviver) keepOrphan(k reviveKey, a *Ack) {
	if _, ok := r.orphans[k]; !ok {
		for len(r.order) >= r.orphanN {
			delete(r.orphans, r.order[0])
			r.order = r.order[1:]
		}
		r.order = append(r.order, k)
	}
	if list := slices.AppendSeq(r.orphans[k], a.All()); len(list) <= MaxBatch {
		r.orphans[k] = list
	}
}

// ack marks a message and reports whether it was there without a mark.
func (e *Expiring) ack(offset int64) bool {
	i := e.IndexOf(offset)
	if i < 0 || i >= MaxBatch || e.acked&(1<<i) != 0 {
		return false
	}
	e.acked |= 1 << i
	return true
}

func named(broker, self string) string {
	if broker == "" {
		return self
	}
	return broker
}

// Quiet tells that there are no more records now. delivered says that the timer
// has delivered everything up to now: then, after a while without records, what
// was seen counts as all there is.
func (r *Reviver) Quiet(now int64, delivered bool) {
	if delivered && r.seen != 0 && now-r.seen > quietMs {
		r.end = max(r.end, now)
	}
}

// Next takes out the next checkpoint whose time is over, nil when there is
// none. Order is that of the revive queue; one that is not over yet holds up
// those behind it, since the consumer offset of the revive topic is one number.
func (r *Reviver) Next() *Expiring {
	for len(r.waiting) > 0 {
		e := r.waiting[0]
		if r.end-e.ReviveTime() <= settleMs {
			return nil
		}
		r.waiting[0] = nil
		r.waiting = r.waiting[1:]
		if e.dead {
			continue
		}
		r.forget(e)
		return e
	}
	return nil
}

// forget takes e out of what its key finds.
func (r *Reviver) forget(e *Expiring) {
	x := r.byKey[e.key]
	if x == e {
		if e.older == nil {
			delete(r.byKey, e.key)
		} else {
			r.byKey[e.key] = e.older
		}
		return
	}
	for ; x != nil; x = x.older {
		if x.older == e {
			x.older = e.older
			return
		}
	}
}

// Wake is when to look again although no record has come, ms; ok is false when
// nothing waits.
func (r *Reviver) Wake() (at int64, ok bool) {
	if len(r.waiting) == 0 {
		return 0, false
	}
	return After(max(After(r.waiting[0].ReviveTime(), settleMs), r.seen+quietMs), 1), true
}

// Waiting is the number of checkpoints that wait.
func (r *Reviver) Waiting() int { return len(r.waiting) }

// Skipped is the offset from which on records have to be read again, once
// checkpoints have been taken out: there was no room for that one. It is asked
// for once.
func (r *Reviver) Skipped() (offset int64, ok bool) {
	if r.skipped < 0 || len(r.waiting) >= r.max {
		return 0, false
	}
	offset, r.skipped = r.skipped, -1
	r.seen, r.end = 0, 0 // the acks behind it have to be read again, too
	return offset, true
}

// rewriteSeconds are the times after which a checkpoint whose messages could
// not be written to their retry topic comes up again, by the number of tries.
var rewriteSeconds = [...]int64{10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200}

// RePut is the checkpoint that stands for one message that could not be
// revived. With dropAtEnd (skipWhenCKRePutReachMaxTimes) it is nil when all
// tries are used up.
func RePut(c *Checkpoint, offset, now int64, dropAtEnd bool) *Checkpoint {
	n := c.RePuts()
	if n >= len(rewriteSeconds) && dropAtEnd {
		return nil
	}
	out := &Checkpoint{
		Broker: c.Broker, Group: c.Group, Diffs: []int32{0}, Invisible: c.Invisible, Num: 1, PopTime: c.PopTime,
		Queue: c.Queue, RePutTimes: strconv.Itoa(n + 1), Start: offset, Suspend: c.Suspend, Topic: c.Topic,
	}
	if c.ReviveTime() <= now {
		out.Invisible += rewriteSeconds[min(n, len(rewriteSeconds)-1)] * 1000
	}
	return out
}
