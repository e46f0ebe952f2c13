package broker

import "time"

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
