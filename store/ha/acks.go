package ha

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"
)

// acks knows how far each replica is and who waits for copies. It is a pure core: times come in, and the waiters that are
// done come out. A replica is counted once, however many connections it has. It belongs to one goroutine at a time.
type acks struct {
	conns   map[int64]*ackConn
	waiters map[int]*waiterHeap // by the copies they want, in the order of their ends
	due     []*waiter           // by deadline, which is the order of arrival
	marks   []int64             // of reach, used again
}

// ackConn is one connection of a replica.
type ackConn struct {
	replica string
	end     int64 // behind the last byte it has reported
	at      time.Time
}

// waiter waits until its bytes are with some replicas.
type waiter struct {
	end      int64 // behind its last byte
	copies   int   // replicas that must have it, the master not counted
	deadline time.Time
	done     func(ok bool)
	over     bool
}

func newAcks() *acks { return &acks{conns: map[int64]*ackConn{}, waiters: map[int]*waiterHeap{}} }

// join notes a new connection of a replica.
func (a *acks) join(conn int64, replica string, start int64, now time.Time) {
	a.conns[conn] = &ackConn{replica: replica, end: start, at: now}
}

// report notes what a replica has said, and returns the waiters that have their copies by that. A report beyond the
// master's end, or behind the report before, is an error: that replica is no copy.
func (a *acks) report(conn, end, masterEnd int64, now time.Time) ([]*waiter, error) {
	c := a.conns[conn]
	switch {
	case c == nil:
		return nil, fmt.Errorf("cannot take the report of a slave that has left")
	case end > masterEnd:
		return nil, fmt.Errorf("the slave %s reports a log up to %d, the master has %d", c.replica, end, masterEnd)
	case end < c.end:
		return nil, fmt.Errorf("the slave %s reports a log up to %d, after %d", c.replica, end, c.end)
	}
	c.end, c.at = end, now
	return a.release(), nil
}

// leave forgets a connection; what it had is no copy any more.
func (a *acks) leave(conn int64) { delete(a.conns, conn) }

// wait adds a waiter, and reports whether it has its copies already.
func (a *acks) wait(w *waiter) bool {
	if w.copies <= 0 || a.reach(w.copies) >= w.end {
		return true
	}
	h := a.waiters[w.copies]
	if h == nil {
		h = &waiterHeap{}
		a.waiters[w.copies] = h
	}
	heap.Push(h, w)
	a.due = append(a.due, w)
	return false
}

// reach is the position that at least n replicas have reported; -1 when there are fewer.
func (a *acks) reach(n int) int64 {
	marks := a.marks[:0]
	for _, r := range a.replicas() {
		marks = append(marks, r.End)
	}
	a.marks = marks
	if len(marks) < n {
		return -1
	}
	slices.Sort(marks)
	return marks[len(marks)-n]
}

// Replica is what a master knows about one of its slaves.
type Replica struct {
	ID    string    // the broker id of a slave that tells it, else its address
	End   int64     // behind the last byte it has
	Seen  time.Time // its last report
	Conns int       // connections; more than one where an old one has not been given up
}

// replicas are the replicas with the furthest report of each, by name.
func (a *acks) replicas() []Replica {
	var out []Replica
	for _, c := range a.conns {
		i := slices.IndexFunc(out, func(r Replica) bool { return r.ID == c.replica })
		if i < 0 {
			i = len(out)
			out = append(out, Replica{ID: c.replica, End: c.end, Seen: c.at})
		}
		if out[i].Conns++; c.end > out[i].End {
			out[i].End = c.end
		}
		if c.at.After(out[i].Seen) {
			out[i].Seen = c.at
		}
	}
	slices.SortFunc(out, func(x, y Replica) int { return cmp.Compare(x.ID, y.ID) })
	return out
}

// release takes out the waiters that have their copies.
func (a *acks) release() []*waiter {
	var out []*waiter
	for copies, h := range a.waiters {
		reach := a.reach(copies)
		for h.Len() > 0 && ((*h)[0].over || (*h)[0].end <= reach) {
			if w := heap.Pop(h).(*waiter); !w.over {
				w.over = true
				out = append(out, w)
			}
		}
		if h.Len() == 0 {
			delete(a.waiters, copies)
		}
	}
	done := 0
	for done < len(a.due) && a.due[done].over {
		done++
	}
	a.due = slices.Delete(a.due, 0, done)
	return out
}

// expire takes out the waiters whose time is up, and says when the next one's is; zero when nobody waits.
func (a *acks) expire(now time.Time) (late []*waiter, next time.Time) {
	i := 0
	for ; i < len(a.due); i++ {
		w := a.due[i]
		if w.over {
			continue
		}
		if w.deadline.After(now) {
			next = w.deadline
			break
		}
		w.over = true
		late = append(late, w)
	}
	a.due = slices.Delete(a.due, 0, i)
	return late, next
}

// all takes out everybody who waits.
func (a *acks) all() []*waiter {
	var out []*waiter
	for _, w := range a.due {
		if !w.over {
			w.over = true
			out = append(out, w)
		}
	}
	a.due = nil
	clear(a.waiters)
	return out
}

// waiterHeap orders waiters by the position they wait for.
type waiterHeap []*waiter //nolint:recvcheck // as container/heap wants it

// Len, Less, Swap, Push and Pop are those of heap.Interface.
func (h waiterHeap) Len() int           { return len(h) }
func (h waiterHeap) Less(i, j int) bool { return h[i].end < h[j].end }
func (h waiterHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is heap.Interface's.
func (h *waiterHeap) Push(x any) { *h = append(*h, x.(*waiter)) }

// Pop is heap.Interface's.
func (h *waiterHeap) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return w
}
