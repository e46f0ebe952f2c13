package broker

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"mqx/broker/pop"
)

// popQueue is one queue as one group pops it. Its lock is held from the look at
// the offset until the checkpoint is in the log (or in the buffer).
type popQueue struct {
	key  pop.QueueKey
	lock sync.Mutex
	// missed says that a pop has passed the queue by because it was locked.
	missed atomic.Bool
	// inflight is the number of messages that are handed out and not acknowledged.
	inflight atomic.Int64
	used     atomic.Int64 // ms
	gone     bool         // no longer in the table; belongs to lock
}

// popQueues is the queues by group. Safe to share.
type popQueues struct {
	now    func() time.Time
	seed   maphash.Seed
	shards [offsetShards]struct {
		sync.RWMutex
		m map[pop.QueueKey]*popQueue
	}
}

func newPopQueues(now func() time.Time) *popQueues {
	t := &popQueues{now: now, seed: maphash.MakeSeed()}
	for i := range t.shards {
		t.shards[i].m = map[pop.QueueKey]*popQueue{}
	}
	return t
}

// Get returns the queue, making it where it is new.
func (t *popQueues) Get(k pop.QueueKey) *popQueue {
	s := &t.shards[maphash.Comparable(t.seed, k)%offsetShards]
	s.RLock()
	q := s.m[k]
	s.RUnlock()
	if q == nil {
		s.Lock()
		if q = s.m[k]; q == nil {
			q = &popQueue{key: k}
			s.m[k] = q
		}
		s.Unlock()
	}
	q.used.Store(t.now().UnixMilli())
	return q
}

// TryLock locks a queue that nobody has locked; nil when somebody has, who will
// then find missed set.
func (t *popQueues) TryLock(k pop.QueueKey) *popQueue {
	for {
		q := t.Get(k)
		if !q.lock.TryLock() {
			q.missed.Store(true)
			if !q.lock.TryLock() {
				return nil
			}
		}
		if !q.gone {
			return q
		}
		q.lock.Unlock()
	}
}

// Lock locks a queue.
func (t *popQueues) Lock(k pop.QueueKey) *popQueue {
	for {
		q := t.Get(k)
		q.lock.Lock()
		if !q.gone {
			return q
		}
		q.lock.Unlock()
	}
}

// popQueueIdle is how long a queue stays in the table unused.
const popQueueIdle = time.Minute

// Sweep forgets queues that were not used for a while and hold nothing.
func (t *popQueues) Sweep() {
	before := t.now().Add(-popQueueIdle).UnixMilli()
	for i := range t.shards {
		s := &t.shards[i]
		s.Lock()
		for k, q := range s.m {
			if q.used.Load() >= before || q.inflight.Load() > 0 || !q.lock.TryLock() {
				continue
			}
			q.gone = true
			delete(s.m, k)
			q.lock.Unlock()
		}
		s.Unlock()
	}
}

// Settled counts n messages as acknowledged or revived.
func (t *popQueues) Settled(k pop.QueueKey, n int) {
	s := &t.shards[maphash.Comparable(t.seed, k)%offsetShards]
	s.RLock()
	q := s.m[k]
	s.RUnlock()
	if q != nil && q.inflight.Add(int64(-n)) < 0 {
		q.inflight.Store(0) // they were handed out before the start
	}
}

// Inflight is the number of messages of a queue that are handed out and not
// acknowledged, as far as this process knows.
func (t *popQueues) Inflight(k pop.QueueKey) int64 {
	s := &t.shards[maphash.Comparable(t.seed, k)%offsetShards]
	s.RLock()
	defer s.RUnlock()
	if q := s.m[k]; q != nil {
		return q.inflight.Load()
	}
	return 0
}

// Drop forgets what is handed out of queues that match.
func (t *popQueues) Drop(match func(pop.QueueKey) bool) {
	for i := range t.shards {
		s := &t.shards[i]
		s.RLock()
		for k, q := range s.m {
			if match(k) {
				q.inflight.Store(0)
			}
		}
		s.RUnlock()
	}
}
