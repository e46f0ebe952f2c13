package client

import (
	"context"
	"sync"

	"mqx/remoting"
)

// assigned is a queue that this member of a group reads.
type assigned struct {
	queue  remoting.MessageQueue
	cancel context.CancelFunc // ends the goroutine that pulls
	gone   chan struct{}      // closed when it has ended

	mu struct {
		sync.Mutex
		// epoch grows with each reset; batches of an earlier one are dropped.
		epoch               int64
		dropped             bool  // the queue belongs to somebody else now
		pullAt              int64 // offset of the next pull
		done                int64 // everything below was taken
		stored              int64 // the offset that the broker has, -1 for none
		waiting             int   // messages pulled and not taken
		bytes               int64
		lastPull, lastTaken int64 // ms
		// room is closed and replaced when waiting falls.
		room chan struct{}
	}
}

func newAssigned(q remoting.MessageQueue, offset, stored int64) *assigned {
	a := &assigned{queue: q, gone: make(chan struct{})}
	a.mu.pullAt, a.mu.done, a.mu.stored = offset, offset, stored
	a.mu.room = make(chan struct{})
	return a
}

// current reports whether a batch of an epoch may still be handed on.
func (a *assigned) current(epoch int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.mu.dropped && a.mu.epoch == epoch
}

// position is where the next pull starts.
func (a *assigned) position() (offset, epoch int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.pullAt, a.mu.epoch
}

// advance moves the next pull on; false when a reset came in between.
func (a *assigned) advance(epoch, next int64, n int, bytes, now int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.epoch != epoch || a.mu.dropped {
		return false
	}
	a.mu.pullAt = next
	a.mu.waiting += n
	a.mu.bytes += bytes
	a.mu.lastPull = now
	return true
}

// full returns a channel to wait on when no more may be pulled for now, else nil.
func (a *assigned) full(most int, mostBytes int64) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.waiting < most && a.mu.bytes < mostBytes {
		return nil
	}
	return a.mu.room
}

// taken notes that a batch was handed over.
func (a *assigned) taken(h *handOff) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.epoch != h.epoch {
		return
	}
	if h.next > a.mu.done {
		a.mu.done = h.next
	}
	a.mu.waiting -= len(h.messages)
	a.mu.bytes -= h.bytes
	if len(h.messages) > 0 {
		close(a.mu.room)
		a.mu.room = make(chan struct{})
	}
}

// reset goes on from another offset and forgets what was pulled. What the broker has is
// not known any more: a member that comes back to where it was commits that again.
func (a *assigned) reset(offset int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.epoch++
	a.mu.pullAt, a.mu.done, a.mu.stored = offset, offset, -1
	a.mu.waiting, a.mu.bytes = 0, 0
	close(a.mu.room)
	a.mu.room = make(chan struct{})
}

// drop gives the queue up: nothing of it is handed on or committed any more.
func (a *assigned) drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.dropped = true
}

// toCommit is the offset to commit; due is false when the broker has it.
func (a *assigned) toCommit() (offset int64, due bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.done, !a.mu.dropped && a.mu.done != a.mu.stored
}

func (a *assigned) committed(offset int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.stored = offset
}
