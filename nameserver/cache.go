package nameserver

import (
	"sync"

	"mqx/remoting"
)

// dialect is the form of JSON that a requester of a route reads.
type dialect int

const (
	loose    dialect = iota // unquoted integer keys, for clients before V4_9_4
	standard                // for all others
	dialects
)

// dialectOf is the dialect for a request.
func dialectOf(version int32, standardOnly bool) dialect {
	if standardOnly || version >= remoting.V4_9_4 {
		return standard
	}
	return loose
}

// routeCache holds the ready answers to route queries. An answer is dropped when the
// table reports its topic as changed, so that an entry is always what the table says.
//
// It is filled under the table's read lock and emptied under its write lock; its own
// lock is taken inside those and held for a map access only, never across encoding.
// An event loop may take it (tryGet does not wait).
type routeCache struct {
	mu struct {
		sync.RWMutex
		answers map[string]*[dialects]*remoting.Command
	}
}

func newRouteCache() *routeCache {
	c := &routeCache{}
	c.mu.answers = map[string]*[dialects]*remoting.Command{}
	return c
}

// tryGet returns the answer for a topic, nil when there is none or when the lock is
// busy. The answer is shared: nobody may change it.
func (c *routeCache) tryGet(topic []byte, d dialect) *remoting.Command {
	if !c.mu.TryRLock() {
		return nil
	}
	defer c.mu.RUnlock()
	if a := c.mu.answers[string(topic)]; a != nil {
		return a[d]
	}
	return nil
}

// put stores an answer.
func (c *routeCache) put(topic string, d dialect, resp *remoting.Command) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := &[dialects]*remoting.Command{}
	if a := c.mu.answers[topic]; a != nil {
		*next = *a
	}
	next[d] = resp
	c.mu.answers[topic] = next
}

// drop forgets the answers for a topic.
func (c *routeCache) drop(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.answers, topic)
}

// clear forgets all answers.
func (c *routeCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.mu.answers)
}
