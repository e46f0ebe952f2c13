package pop

import (
	"container/heap"
	"slices"
)

// Key names a checkpoint of this broker.
type Key struct {
	Topic, Group string
	Queue        int32
	Start        int64
	PopTime      int64
}

// KeyOf is the key of a checkpoint.
func KeyOf(c *Checkpoint) Key {
	return Key{Topic: c.Topic, Group: c.Group, Queue: c.Queue, Start: c.Start, PopTime: c.PopTime}
}

// QueueKey names one queue as one group consumes it.
type QueueKey struct {
	Topic, Group string
	Queue        int32
}

// Limits bound a buffer. All times are ms.
type Limits struct {
	Merge     bool  // keep checkpoints in memory at all (enablePopBufferMerge)
	Stay      int64 // at most so long (popCkStayBufferTime)
	Early     int64 // written so long before the revive time (popCkStayBufferTimeOut)
	Points    int   // checkpoints kept at one time (popCkMaxBufferSize)
	PerQueue  int   // offsets of one queue that wait for their commit (popCkOffsetMaxQueueSize)
	AckMargin int64 // nothing is taken in the last so many ms of either time
}

// Point is a checkpoint in the buffer.
type Point struct {
	Checkpoint  *Checkpoint
	ReviveQueue int32

	queue  QueueKey
	entry  *entry
	due    int64
	pos    int  // in the heap, -1 when it is out for writing
	stored bool // the checkpoint is in the log
	acked  uint32
	wrote  uint32 // of acked, those that are in the log
	gone   bool   // forgotten while it was out for writing
}

// entry is one pop of a queue in the order of the pops: its offset may be
// committed when it and all before it are done.
type entry struct {
	next int64
	done bool
}

// Commit is an offset that may be committed now.
type Commit struct {
	Queue QueueKey
	Next  int64
}

// Buffer merges checkpoints and acks in memory, as Apache's PopBufferMergeService
// does: a checkpoint whose messages are all acknowledged in time is never
// written; the others are written together with their acks before they are due.
// The consumer offset of a queue only moves over pops that are done: acknowledged
// or written. So a crash repeats what was popped in the last Limits.Stay, and
// loses nothing. Not safe to share.
type Buffer struct {
	limits  Limits
	points  map[Key]*Point
	due     pointHeap
	queues  map[QueueKey][]*entry
	commits []Commit
	closed  bool
}

// NewBuffer returns an empty buffer.
func NewBuffer(l Limits) *Buffer {
	return &Buffer{limits: l, points: map[Key]*Point{}, queues: map[QueueKey][]*entry{}}
}

// Points is the number of checkpoints in the buffer.
func (b *Buffer) Points() int { return len(b.points) }

// Offsets is the number of pops that wait for their commit.
func (b *Buffer) Offsets() int {
	n := 0
	for _, q := range b.queues {
		n += len(q)
	}
	return n
}

// Latest is the offset behind the newest pop of a queue that is not committed
// yet; ok is false when there is none.
func (b *Buffer) Latest(q QueueKey) (next int64, ok bool) {
	list := b.queues[q]
	if len(list) == 0 {
		return 0, false
	}
	return list[len(list)-1].next, true
}

// Add takes a checkpoint; next is the queue offset behind its messages. It
// returns false when it has to be written to the log instead: merging is off,
// the invisible time is too short, or a limit is reached.
func (b *Buffer) Add(c *Checkpoint, reviveQueue int32, next, now int64) bool {
	l, q, k := &b.limits, queueOf(c), KeyOf(c)
	switch {
	case b.closed || !l.Merge || c.ReviveTime()-now < l.Early+l.AckMargin:
		return false
	case len(b.points) >= l.Points || len(b.queues[q]) >= l.PerQueue || b.points[k] != nil:
		return false
	}
	p := &Point{Checkpoint: c, ReviveQueue: reviveQueue, queue: q, entry: &entry{next: next}}
	p.due = min(c.ReviveTime()-l.Early, c.PopTime+l.Stay)
	b.queues[q] = append(b.queues[q], p.entry)
	b.points[k] = p
	heap.Push(&b.due, p)
	return true
}

// Done notes a pop whose checkpoint is in the log, or that found nothing that
// matches: its offset is committed once those before it are.
func (b *Buffer) Done(q QueueKey, next int64) {
	if len(b.queues[q]) == 0 {
		b.commits = append(b.commits, Commit{q, next})
		return
	}
	b.queues[q] = append(b.queues[q], &entry{next: next, done: true})
	b.advance(q)
}

func queueOf(c *Checkpoint) QueueKey { return QueueKey{c.Topic, c.Group, c.Queue} }

// Ack marks messages of a checkpoint as acknowledged. It returns false when the
// ack has to be written to the log: the checkpoint is not (or no longer) in the
// buffer, or its time is nearly over. Offsets that are not in the checkpoint
// are passed over.
func (b *Buffer) Ack(k Key, offsets func(func(int64) bool), now int64) bool {
	p, l := b.points[k], &b.limits
	if p == nil || p.pos < 0 || now > p.due-l.AckMargin {
		return false
	}
	for off := range offsets {
		if i := p.Checkpoint.IndexOf(off); i >= 0 {
			p.acked |= 1 << i
		}
	}
	if p.acked == p.all() {
		heap.Remove(&b.due, p.pos)
		b.finish(p)
	}
	return true
}

func (p *Point) all() uint32 { return uint32(1)<<p.Checkpoint.Count() - 1 }

// NextDue is when something has to be written; ok is false when nothing waits.
func (b *Buffer) NextDue() (at int64, ok bool) {
	if len(b.due) == 0 {
		return 0, false
	}
	return b.due[0].due, true
}

// Due takes out the checkpoints that have to be written now, at most n. Each
// is to be given to Stored or Failed; meanwhile its acks go to the log.
func (b *Buffer) Due(now int64, n int) []*Point {
	var out []*Point
	for len(b.due) > 0 && len(out) < n && (b.closed || b.due[0].due <= now) {
		out = append(out, heap.Pop(&b.due).(*Point))
	}
	return out
}

// NeedsCheckpoint reports whether the checkpoint itself has to be written.
func (p *Point) NeedsCheckpoint() bool { return !p.stored }

// Acks are the acks that have to be written behind the checkpoint: one batch,
// or one record a message. They are made once it is in the log.
func (p *Point) Acks(batch bool) []*Ack {
	c, left := p.Checkpoint, p.acked&^p.wrote
	ack := func() *Ack {
		return &Ack{Offset: -1, Group: c.Group, PopTime: c.PopTime, Queue: c.Queue, Start: c.Start, Topic: c.Topic, Broker: c.Broker}
	}
	var out []*Ack
	for i := range c.Count() {
		switch {
		case left&(1<<i) == 0:
		case !batch:
			a := ack()
			a.Offset = c.OffsetAt(i)
			out = append(out, a)
		default:
			if len(out) == 0 {
				a := ack()
				a.Offsets = []int64{}
				out = append(out, a)
			}
			out[0].Offsets = append(out[0].Offsets, c.OffsetAt(i))
		}
	}
	return out
}

// CheckpointStored notes that the checkpoint is in the log.
func (b *Buffer) CheckpointStored(p *Point) { p.stored = true }

// AckStored notes that an ack of p is in the log.
func (b *Buffer) AckStored(p *Point, a *Ack) {
	for off := range a.All() {
		if i := p.Checkpoint.IndexOf(off); i >= 0 {
			p.wrote |= 1 << i
		}
	}
}

// Written ends the writing of a point that Due gave out: when all of it is in
// the log it leaves the buffer, else it comes up again at the time given.
func (b *Buffer) Written(p *Point, again int64) {
	if p.gone {
		return
	}
	if p.stored && p.acked&^p.wrote == 0 {
		b.finish(p)
		return
	}
	p.due = again
	heap.Push(&b.due, p)
}

func (b *Buffer) finish(p *Point) {
	p.pos = -1
	delete(b.points, KeyOf(p.Checkpoint))
	p.entry.done = true
	b.advance(p.queue)
}

// advance commits over the pops that are done at the head of a queue.
func (b *Buffer) advance(q QueueKey) {
	list := b.queues[q]
	n := 0
	for n < len(list) && list[n].done {
		n++
	}
	if n == 0 {
		return
	}
	b.commits = append(b.commits, Commit{q, list[n-1].next})
	if n == len(list) {
		delete(b.queues, q)
		return
	}
	clear(list[:n])
	b.queues[q] = list[n:]
}

// Commits returns the offsets that became ready since the last call, in order.
func (b *Buffer) Commits() []Commit {
	c := b.commits
	b.commits = nil
	return c
}

// Clear forgets the pops of a queue that wait for their commit: an operator has
// set its offset. Their checkpoints stay.
func (b *Buffer) Clear(q QueueKey) { delete(b.queues, q) }

// Forget drops everything of queues that match: their topics or groups are
// deleted, and nothing of them is to be committed or written any more. What is out
// for writing does not come back.
func (b *Buffer) Forget(match func(QueueKey) bool) {
	for k, p := range b.points {
		if !match(p.queue) {
			continue
		}
		delete(b.points, k)
		if p.pos < 0 {
			p.gone = true
			continue
		}
		heap.Remove(&b.due, p.pos)
	}
	for q := range b.queues {
		if match(q) {
			delete(b.queues, q)
		}
	}
	b.commits = slices.DeleteFunc(b.commits, func(c Commit) bool { return match(c.Queue) })
}

// Close refuses what is new and makes everything due.
func (b *Buffer) Close() { b.closed = true }

// pointHeap orders points by their due time.
type pointHeap []*Point

// Len is part of heap.Interface.
func (h *pointHeap) Len() int { return len(*h) }

// Less is part of heap.Interface.
func (h *pointHeap) Less(i, j int) bool { return (*h)[i].due < (*h)[j].due }

// Swap is part of heap.Interface.
func (h *pointHeap) Swap(i, j int) {
	d := *h
	d[i], d[j] = d[j], d[i]
	d[i].pos, d[j].pos = i, j
}

// Push is part of heap.Interface.
func (h *pointHeap) Push(x any) {
	p := x.(*Point)
	p.pos = len(*h)
	*h = append(*h, p)
}

// Pop is part of heap.Interface.
func (h *pointHeap) Pop() any {
	old := *h
	n := len(old) - 1
	p := old[n]
	old[n], p.pos = nil, -1
	*h = old[:n]
	return p
}
