package client

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"mqx/internal/fastjson"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// heartbeats tells all brokers of the known routes that a client lives.
type heartbeats struct {
	core *core
	data func() remoting.HeartbeatData
	all  bool // replicas too, not only masters

	cancel context.CancelFunc
	done   sync.WaitGroup
	mu     struct {
		sync.Mutex
		told map[string]bool // addresses that may have had one
	}
}

// start beats now and then every Config.Heartbeat, until stop.
func (h *heartbeats) start() {
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	h.done.Go(func() {
		var again backoff
		for {
			if !sleep(ctx, again.next(h.beat(ctx), h.core.cfg.Heartbeat)) {
				return
			}
		}
	})
}

// backoff is the time to the next round of something that is done at intervals: sooner after a round that failed, as a client that
// its broker does not know gets nothing.
type backoff struct{ wait time.Duration }

func (b *backoff) next(ok bool, interval time.Duration) time.Duration {
	if ok {
		b.wait = 0
		return interval
	}
	b.wait = min(max(2*b.wait, firstRetryWait), interval)
	return b.wait
}

// targets are the brokers of all known routes.
func (h *heartbeats) targets() []string {
	seen := map[string]bool{}
	var out []string
	for _, r := range h.core.routes.all() {
		for _, addrs := range r.brokers {
			for id, addr := range addrs {
				if (id == masterID || h.all) && !seen[addr] {
					seen[addr] = true
					out = append(out, addr)
				}
			}
		}
	}
	return out
}

// beat sends one heartbeat to every target, side by side: one that hangs delays none. It reports whether all have answered.
func (h *heartbeats) beat(ctx context.Context) bool {
	body, err := fastjson.Marshal(h.data())
	if err != nil {
		h.core.log.Error("cannot encode heartbeat", "error", err)
		return false
	}
	var wg sync.WaitGroup
	var failed atomic.Bool
	for _, addr := range h.targets() {
		wg.Go(func() {
			req := remoting.NewRequest(remoting.ReqHeartBeat, &remoting.RPCHeader{})
			req.Body = body
			_, err := h.core.call(ctx, addr, req)
			if err != nil && ctx.Err() == nil {
				h.core.log.Warn("heartbeat failed", "addr", addr, "error", err)
			}
			if err != nil {
				failed.Store(true)
			}
			var never *remoteclient.ConnectError
			if errors.As(err, &never) {
				return
			}
			h.mu.Lock() // it may have arrived, whatever became of the answer
			defer h.mu.Unlock()
			if h.mu.told == nil {
				h.mu.told = map[string]bool{}
			}
			h.mu.told[addr] = true
		})
	}
	wg.Wait()
	return !failed.Load()
}

// unregisterTimeout bounds leaving a broker at the end.
const unregisterTimeout = time.Second

// stop ends the beating and unregisters at every broker that has had a heartbeat.
func (h *heartbeats) stop(header *remoting.UnregisterClientHeader) {
	if h.cancel == nil {
		return
	}
	h.cancel()
	h.done.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	var wg sync.WaitGroup
	for addr := range h.mu.told {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), unregisterTimeout)
			defer cancel()
			if _, err := h.core.call(ctx, addr, remoting.NewRequest(remoting.ReqUnregisterClient, header)); err != nil {
				h.core.log.Warn("cannot unregister", "addr", addr, "error", err)
			}
		})
	}
	wg.Wait()
}
