package broker

import (
	"context"
	"sync"

	"mqx/remoting/server"
)

// wokenPulls is the pulls that data, time or room has woken, and the workers
// that answer them: the dispatcher and the event loops must not read messages.
type wokenPulls struct {
	run func(r *server.Request, first bool)
	vip *server.Precedence
	mu  struct {
		sync.Mutex
		queue []wokenPull
		done  bool
	}
	more sync.Cond
}

type wokenPull struct {
	req   *server.Request
	first bool
}

func newWokenPulls(vip *server.Precedence, run func(*server.Request, bool)) *wokenPulls {
	w := &wokenPulls{run: run, vip: vip}
	w.more.L = &w.mu
	return w
}

// push hands a pull over that is to be answered whatever it finds.
func (w *wokenPulls) push(r *server.Request) { w.add(wokenPull{req: r}) }

// add hands a pull over; one that comes first may be parked again.
func (w *wokenPulls) add(p wokenPull) {
	w.mu.Lock()
	w.mu.queue = append(w.mu.queue, p) // at most as many as the hold parks
	w.mu.Unlock()
	w.more.Signal()
}

// Run answers woken pulls with the given number of workers until ctx ends and
// nothing is left.
func (w *wokenPulls) Run(ctx context.Context, workers int) {
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		w.mu.done = true
		w.mu.Unlock()
		w.more.Broadcast()
	})
	defer stop()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(w.work)
	}
	wg.Wait()
}

func (w *wokenPulls) work() {
	for {
		w.mu.Lock()
		for len(w.mu.queue) == 0 && !w.mu.done {
			w.more.Wait()
		}
		if len(w.mu.queue) == 0 {
			w.mu.Unlock()
			return
		}
		p := w.mu.queue[0]
		w.mu.queue[0] = wokenPull{}
		if w.mu.queue = w.mu.queue[1:]; len(w.mu.queue) == 0 {
			w.mu.queue = nil
		}
		w.mu.Unlock()
		w.vip.StepBack(func() { w.run(p.req, p.first) })
	}
}
