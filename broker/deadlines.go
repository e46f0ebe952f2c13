package broker

import (
	"container/heap"
	"time"
)

// parked is what waits for data until a deadline, and knows its place among the
// others.
type parked interface {
	deadline() time.Time
	setPos(pos int)
}

func (p *parkedPull) deadline() time.Time { return p.until }
func (p *parkedPull) setPos(pos int)      { p.pos = pos }
func (p *parkedPop) deadline() time.Time  { return p.until }
func (p *parkedPop) setPos(pos int)       { p.pos = pos }

// deadlines is what is parked by its deadline, with a timer that runs only while
// something is, and never more often than tick. It belongs to the lock of a hold.
type deadlines[P parked] struct {
	now    func() time.Time
	tick   time.Duration
	expire func() // called by the timer, without the lock; it asks for Late
	heap   deadlineHeap[P]
	timer  *time.Timer
	due    time.Time // when the timer fires; zero when it does not run
	closed bool
}

// Len is the number of what is parked.
func (d *deadlines[P]) Len() int { return len(d.heap) }

// Add takes p in.
func (d *deadlines[P]) Add(p P) {
	heap.Push(&d.heap, p)
	d.arm()
}

// Hasten says that the deadline of what stands at pos lies earlier now.
func (d *deadlines[P]) Hasten(pos int) {
	heap.Fix(&d.heap, pos)
	d.arm()
}

// Remove takes out what stands at pos.
func (d *deadlines[P]) Remove(pos int) { heap.Remove(&d.heap, pos) }

// Late is what expire calls: it gives what is late to remove, which must Remove
// it, and returns it.
func (d *deadlines[P]) Late(remove func(P)) []P {
	d.due = time.Time{}
	now := d.now()
	var late []P
	for len(d.heap) > 0 && !d.heap[0].deadline().After(now) {
		p := d.heap[0]
		remove(p)
		late = append(late, p)
	}
	d.arm()
	return late
}

// Close stops the timer for good.
func (d *deadlines[P]) Close() {
	d.closed = true
	if d.timer != nil {
		d.timer.Stop()
	}
}

// arm makes the timer fire for the earliest deadline, not sooner than a tick
// from now.
func (d *deadlines[P]) arm() {
	if len(d.heap) == 0 || d.closed {
		return
	}
	now := d.now()
	due := d.heap[0].deadline()
	if earliest := now.Add(d.tick); due.Before(earliest) {
		due = earliest
	}
	if !d.due.IsZero() && !due.Before(d.due) {
		return
	}
	d.due = due
	if d.timer == nil {
		d.timer = time.AfterFunc(due.Sub(now), d.expire)
		return
	}
	d.timer.Reset(due.Sub(now))
}

// deadlineHeap orders what is parked by its deadline, for container/heap.
type deadlineHeap[P parked] []P

// Len is part of heap.Interface.
func (d *deadlineHeap[P]) Len() int { return len(*d) }

// Less is part of heap.Interface.
func (d *deadlineHeap[P]) Less(i, j int) bool { return (*d)[i].deadline().Before((*d)[j].deadline()) }

// Swap is part of heap.Interface.
func (d *deadlineHeap[P]) Swap(i, j int) {
	h := *d
	h[i], h[j] = h[j], h[i]
	h[i].setPos(i)
	h[j].setPos(j)
}

// Push is part of heap.Interface.
func (d *deadlineHeap[P]) Push(x any) {
	p := x.(P)
	p.setPos(len(*d))
	*d = append(*d, p)
}

// Pop is part of heap.Interface.
func (d *deadlineHeap[P]) Pop() any {
	old := *d
	n := len(old) - 1
	p := old[n]
	var none P
	old[n] = none
	*d = old[:n]
	return p
}
