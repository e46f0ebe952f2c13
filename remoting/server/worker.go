package server

import (
	"time"
)

// worker serves the queue of a class.
type worker struct {
	class *Class
	gather
	taken []*Request
	call  batchCall
	pace  time.Duration // smoothed time of one request of a single handler
}

func newWorker(c *Class) *worker { return &worker{class: c} }

func (w *worker) run() {
	for w.take() {
		w.class.cfg.StepsBackFor.StepBack(w.serve)
	}
}

// take waits for requests that are served together: those of one batch
// handler, or one request of another handler, or several when they are quick.
// It returns false when the class has been closed and nothing waits.
func (w *worker) take() bool {
	c := w.class
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.mu.queue.len() == 0 {
		if c.mu.closed {
			return false
		}
		c.mu.idle++
		c.wake.Wait()
		c.mu.idle--
	}
	now := time.Now()
	rt := c.mu.queue.front().route
	limit := 1
	switch {
	case rt.batch != nil:
		limit = c.cfg.MaxBatch
	case w.pace > 0 && w.pace < quick && !c.cfg.StepsBackFor.Wanted():
		limit = quickBatch
	}
	for len(w.taken) < limit {
		r := c.mu.queue.front()
		if r == nil || r.route.batch == nil != (rt.batch == nil) || r.route.key != rt.key {
			break
		}
		c.mu.stats.TotalWait += now.Sub(r.received)
		r.taken = now
		w.taken = append(w.taken, c.mu.queue.pop())
	}
	c.mu.stats.Requests += uint64(len(w.taken))
	c.mu.stats.Running++
	if c.mu.queue.len() > 0 && c.mu.idle > 0 {
		c.wake.Signal()
	}
	return true
}

// serve calls the handler of what was taken and writes the answers.
func (w *worker) serve() {
	c := w.class
	start := time.Now()
	gen := w.scope.open()
	for _, r := range w.taken {
		w.join(r, gen)
	}
	calls, faults := 1, 0
	if rt := w.taken[0].route; rt.batch != nil {
		faults = w.call.do(c.cfg.Name, w.taken, rt.batch)
	} else {
		calls = len(w.taken)
		for _, r := range w.taken {
			faults += w.callSingle(r)
		}
	}
	w.finish()
	spent := time.Since(start)
	if n := time.Duration(len(w.taken)); w.pace == 0 {
		w.pace = spent / n
	} else {
		w.pace += (spent/n - w.pace) / 8
	}
	clear(w.taken)
	w.taken = w.taken[:0]
	c.mu.Lock()
	c.mu.stats.Running--
	c.mu.stats.Batches += uint64(calls)
	c.mu.stats.Panics += uint64(faults)
	c.mu.stats.TotalRunning += spent
	c.mu.Unlock()
}

func (w *worker) callSingle(r *Request) (faults int) {
	f := fault{conn: r.conn, code: r.Code, stage: w.class.cfg.Name}
	life := r.life.Load()
	defer func() {
		if p := recover(); p != nil {
			f.report(p)
			r.failPanicked(p, life)
			faults = 1
		}
	}()
	r.route.single(r)
	return 0
}
