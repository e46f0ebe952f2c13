package client

import (
	"context"
	"slices"
	"sync"

	"mqx/remoting"
)

// absent are the brokers that a Reader goes on without. It is safe to share.
type absent struct {
	tell func(broker string, err error)

	mu    sync.Mutex
	names []string
	first error
}

// note leaves a broker out; false when reading may not go on without it.
func (a *absent) note(ctx context.Context, broker string, err error) bool {
	if a.tell == nil || ctx.Err() != nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Contains(a.names, broker) {
		return true
	}
	a.names = append(a.names, broker)
	if a.first == nil {
		a.first = err
	}
	a.tell(broker, err)
	return true
}

// all is the first error when every broker of the queues is left out: then nothing is
// partial about it.
func (a *absent) all(queues []remoting.MessageQueue) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range queues {
		if !slices.Contains(a.names, q.BrokerName) {
			return nil
		}
	}
	return a.first
}
