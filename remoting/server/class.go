package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"mqx/remoting"
)

const (
	// defaultMaxBatch is ClassConfig.MaxBatch when that is 0.
	defaultMaxBatch = 256
	// quick is the time under which single requests are served several at a
	// time, so that their answers share a write.
	quick = 20 * time.Microsecond
	// quickBatch is how many.
	quickBatch = 32
	// minClean is the shortest time between two looks at the head of a queue.
	minClean = 10 * time.Millisecond
)

// ClassConfig describes a class of requests.
type ClassConfig struct {
	// Name is the stage that overload texts and statistics name.
	Name string
	// Workers and Queue bound the requests that run and that wait.
	Workers, Queue int
	// MaxWait is how long a request may wait before it is answered
	// SYSTEM_BUSY; 0 means for ever.
	MaxWait time.Duration
	// MaxBatch bounds the requests of one call of a batch handler, default 256.
	MaxBatch int
	// StepsBackFor makes the class go slower while a preferred server is used;
	// nil: it never does.
	StepsBackFor *Precedence
}

// Class is a bounded queue of requests and the workers that serve it. Several
// servers may share one. Safe to share.
type Class struct {
	cfg  ClassConfig
	wake sync.Cond // of mu: something waits, or closed

	mu struct {
		sync.Mutex
		queue   ring
		idle    int // workers that wait for wake
		started bool
		closed  bool
		cleaner *time.Timer
		armed   bool // cleaner will run
		stats   ClassStats
	}
	ended chan struct{} // closed when Run has returned
	quit  chan struct{} // closed by Close
}

// NewClass returns a class; its workers start with Run. Workers and Queue are
// at least 1.
func NewClass(cfg ClassConfig) *Class {
	cfg.Workers = max(cfg.Workers, 1)
	cfg.Queue = max(cfg.Queue, 1)
	if cfg.MaxBatch <= 0 {
		cfg.MaxBatch = defaultMaxBatch
	}
	c := &Class{cfg: cfg, ended: make(chan struct{}), quit: make(chan struct{})}
	c.wake.L = &c.mu
	c.mu.stats.Name = cfg.Name
	return c
}

// Name returns the name of the class.
func (c *Class) Name() string { return c.cfg.Name }

// Run serves the queue until ctx is done or Close is called, then serves what
// waits and returns. It may be called once.
func (c *Class) Run(ctx context.Context) error {
	c.mu.Lock()
	if c.mu.started {
		c.mu.Unlock()
		return fmt.Errorf("cannot run class %q: it has run before", c.cfg.Name)
	}
	c.mu.started = true
	c.mu.Unlock()
	defer close(c.ended)
	var workers sync.WaitGroup
	for range c.cfg.Workers {
		workers.Go(func() { newWorker(c).run() })
	}
	select {
	case <-ctx.Done():
		c.refuse()
	case <-c.quit:
	}
	workers.Wait()
	return nil
}

// Close refuses new requests, lets the workers finish what waits, and returns
// when Run has (or at once when it never ran; what waits is then answered
// SYSTEM_BUSY). Idempotent.
func (c *Class) Close() {
	c.refuse()
	c.mu.Lock()
	started := c.mu.started
	c.mu.started = true
	var left []*Request
	for !started && c.mu.queue.len() > 0 {
		left = append(left, c.mu.queue.pop())
	}
	c.mu.Unlock()
	for _, r := range left {
		r.Reply(remoting.RespSystemBusy, overloadText(c.cfg.Name, time.Since(r.received)))
	}
	if started {
		<-c.ended
	} else {
		close(c.ended)
	}
}

// refuse ends the intake.
func (c *Class) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return
	}
	c.mu.closed = true
	close(c.quit)
	if c.mu.cleaner != nil {
		c.mu.cleaner.Stop()
	}
	c.wake.Broadcast()
}

// ClassStats are the counters of a class since its start.
type ClassStats struct {
	Name         string
	Closed       bool          // takes nothing new
	Waiting      int           // requests in the queue
	Running      int           // workers inside a handler
	OldestWait   time.Duration // age of the request at the head of the queue
	Requests     uint64        // taken by a worker
	Batches      uint64        // calls of handlers
	Overloaded   uint64        // answered because the queue was full
	Late         uint64        // answered because they waited too long
	Panics       uint64
	TotalWait    time.Duration // sum over Requests
	TotalRunning time.Duration // sum over Batches
}

// Stats returns the counters.
func (c *Class) Stats() ClassStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.mu.stats
	s.Closed = c.mu.closed
	s.Waiting = c.mu.queue.len()
	s.OldestWait = c.oldest(time.Now())
	return s
}

// Idle reports whether no request waits or runs.
func (c *Class) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.queue.len() == 0 && c.mu.stats.Running == 0
}

// oldest returns how long the head of the queue waits. Called with mu held.
func (c *Class) oldest(now time.Time) time.Duration {
	if r := c.mu.queue.front(); r != nil {
		return now.Sub(r.received)
	}
	return 0
}

// push queues as many of rs as there is room for, and returns their number and
// the remark for the others.
func (c *Class) push(rs []*Request) (n int, why string) {
	c.mu.Lock()
	n = len(rs)
	if c.mu.closed {
		n = 0
	} else {
		n = min(n, c.cfg.Queue-c.mu.queue.len())
	}
	for _, r := range rs[:n] {
		c.mu.queue.push(r)
	}
	if n < len(rs) {
		c.mu.stats.Overloaded += uint64(len(rs) - n)
		why = overloadText(c.cfg.Name, c.oldest(time.Now()))
	}
	if n > 0 && c.cfg.MaxWait > 0 && !c.mu.armed {
		c.arm(c.cfg.MaxWait)
	}
	idle := n > 0 && c.mu.idle > 0
	c.mu.Unlock()
	if idle {
		c.wake.Signal()
	}
	return n, why
}

// arm lets clean run after d. Called with mu held.
func (c *Class) arm(d time.Duration) {
	c.mu.armed = true
	d = max(d, minClean)
	if c.mu.cleaner == nil {
		c.mu.cleaner = time.AfterFunc(d, c.clean)
		return
	}
	c.mu.cleaner.Reset(d)
}

// clean answers what has waited too long. It runs on a timer, which no worker
// can hold up, and only while something waits.
func (c *Class) clean() {
	now := time.Now()
	type lateRequest struct {
		r    *Request
		size int
	}
	var late []lateRequest
	c.mu.Lock()
	for {
		r := c.mu.queue.front()
		if r == nil || now.Sub(r.received) < c.cfg.MaxWait {
			break
		}
		late = append(late, lateRequest{c.mu.queue.pop(), c.mu.queue.len()})
	}
	c.mu.stats.Late += uint64(len(late))
	c.mu.armed = false
	if c.mu.queue.len() > 0 && !c.mu.closed {
		c.arm(c.cfg.MaxWait - c.oldest(now))
	}
	c.mu.Unlock()
	if len(late) == 0 {
		return
	}
	var w gather
	gen := w.scope.open()
	for _, l := range late {
		w.join(l.r, gen)
		l.r.Reply(remoting.RespSystemBusy, lateText(c.cfg.Name, now.Sub(l.r.received), l.size))
	}
	w.finish()
}

// gather is a scope together with the connections that it answers.
type gather struct {
	scope scope
	conns []*Conn
}

// join makes r's answer part of the scope's period gen.
func (g *gather) join(r *Request, gen uint64) {
	r.scope, r.gen = &g.scope, gen
	// What one read has brought stands together, so that looking at the last
	// one finds most repetitions; the others only cost a look.
	if n := len(g.conns); n == 0 || g.conns[n-1] != r.conn {
		g.conns = append(g.conns, r.conn)
	}
}

// finish closes the scope and writes what was answered in it.
func (g *gather) finish() {
	g.scope.close()
	for i, c := range g.conns {
		c.flushPending()
		g.conns[i] = nil
	}
	g.conns = g.conns[:0]
}
