package broker

import (
	"sync"
	"time"

	"mqx/remoting"
)

// lockMaxLive is how long a queue stays locked after its owner last asked.
const lockMaxLive = 60 * time.Second

type queueLock struct {
	client string
	at     time.Time // of the last time its owner asked
}

func (l queueLock) heldBy(client string, now time.Time) bool {
	return l.client == client && !l.expired(now)
}

func (l queueLock) expired(now time.Time) bool { return now.Sub(l.at) > lockMaxLive }

// queueLocks are the queues that orderly consumers hold, by group. Safe to share.
type queueLocks struct {
	now func() time.Time
	mu  struct {
		sync.Mutex
		groups map[string]map[remoting.MessageQueue]queueLock
	}
}

func newQueueLocks(now func() time.Time) *queueLocks {
	l := &queueLocks{now: now}
	l.mu.groups = map[string]map[remoting.MessageQueue]queueLock{}
	return l
}

// Lock takes or renews the queues for a client and returns those it now holds,
// in the order asked.
func (l *queueLocks) Lock(group, client string, queues []remoting.MessageQueue) []remoting.MessageQueue {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.mu.groups[group]
	if g == nil {
		g = map[remoting.MessageQueue]queueLock{}
		l.mu.groups[group] = g
	}
	held := make([]remoting.MessageQueue, 0, len(queues))
	for _, q := range queues {
		old, ok := g[q]
		if ok && !old.heldBy(client, now) && !old.expired(now) {
			continue
		}
		g[q] = queueLock{client: client, at: now}
		held = append(held, q)
	}
	return held
}

// Unlock gives queues back that the client holds; others stay.
func (l *queueLocks) Unlock(group, client string, queues []remoting.MessageQueue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.mu.groups[group]
	for _, q := range queues {
		if g[q].client == client {
			delete(g, q)
		}
	}
	if len(g) == 0 {
		delete(l.mu.groups, group)
	}
}

// AnyHeld reports whether the group holds a lock that has not expired.
func (l *queueLocks) AnyHeld(group string) bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.mu.groups[group] {
		if !q.expired(now) {
			return true
		}
	}
	return false
}

// Sweep forgets expired locks and those of dropped topics.
func (l *queueLocks) Sweep(drop func(topic string) bool) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, g := range l.mu.groups {
		for q, lock := range g {
			if lock.expired(now) || drop != nil && drop(q.Topic) {
				delete(g, q)
			}
		}
		if len(g) == 0 {
			delete(l.mu.groups, name)
		}
	}
}
