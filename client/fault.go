package client

import (
	"sync"
	"time"

	"mqx/remoting"
)

// Latency steps of the Java client: a send that took at least faultLatency[i] keeps its
// broker out of the choice for faultPause[i].
var (
	faultLatency = [...]time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 550 * time.Millisecond, 1800 * time.Millisecond, 3 * time.Second, 5 * time.Second, 15 * time.Second}
	faultPause   = [...]time.Duration{0, 0, 2 * time.Second, 5 * time.Second, 6 * time.Second, 10 * time.Second, 30 * time.Second}
)

// failedLatency is what a failed send counts as.
const failedLatency = 10 * time.Second

// faults remembers which brokers are better left alone for a while. Safe to share.
type faults struct {
	mu struct {
		sync.Mutex
		until map[string]time.Time
	}
}

func newFaults() *faults {
	f := &faults{}
	f.mu.until = map[string]time.Time{}
	return f
}

// note records how a send to a broker went.
func (f *faults) note(broker string, took time.Duration, failed bool, now time.Time) {
	if failed {
		took = max(took, failedLatency)
	}
	var pause time.Duration
	for i := len(faultLatency) - 1; i >= 0; i-- {
		if took >= faultLatency[i] {
			pause = faultPause[i]
			break
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if pause == 0 {
		delete(f.mu.until, broker)
		return
	}
	f.mu.until[broker] = now.Add(pause)
}

// available reports whether a broker may be chosen.
func (f *faults) available(broker string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	until, ok := f.mu.until[broker]
	return !ok || !now.Before(until)
}

// pick chooses one of queues, the next after start in turn. It passes over brokers
// in a pause when avoid is set, and over the broker of the attempt before; when that
// leaves none it takes the next one whatever its state.
func (f *faults) pick(queues []remoting.MessageQueue, start uint32, last string, avoid bool, now time.Time) remoting.MessageQueue {
	n := uint32(len(queues))
	for pass := range 2 {
		for i := range n {
			q := queues[(start+i)%n]
			if pass == 0 && avoid && !f.available(q.BrokerName, now) {
				continue
			}
			if q.BrokerName != last {
				return q
			}
		}
	}
	return queues[start%n]
}
