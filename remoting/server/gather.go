package server

import (
	"sync"
	"sync/atomic"
)

// Gather writes answers together that are given one after the other outside of
// the handler, as when a flush has made many messages durable. The zero value
// is ready. Safe to share.
type Gather struct {
	turn sync.Mutex // held during Do; before mu

	open atomic.Bool // changed with mu held
	mu   sync.Mutex
	gen  uint64
	gather
}

// Do calls f and writes what it answers of the requests that were added: one
// write a connection. Calls of Do come one after the other; f must not block.
func (g *Gather) Do(f func()) {
	g.turn.Lock()
	defer g.turn.Unlock()
	g.mu.Lock()
	g.gen = g.scope.open()
	g.open.Store(true)
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.open.Store(false)
		g.finish()
		g.mu.Unlock()
	}()
	f()
}

// Add makes the answer of r, which has not been given yet, part of the Do that
// runs; without one it does nothing.
func (g *Gather) Add(r *Request) {
	if !g.open.Load() {
		return
	}
	g.mu.Lock()
	if g.open.Load() {
		g.join(r, g.gen)
	}
	g.mu.Unlock()
}
