package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"mqx/message"
	"mqx/store/commitlog"
	"mqx/store/consumequeue"
)

// queue is one queue of a topic: the counter that numbers new messages, and the consume queue, which begins to exist with
// the first unit.
type queue struct {
	topic   string
	id      int32
	counter commitlog.Counter // owned by the append lock
	held    atomic.Int64      // its max offset with what the start has held back, 0 where that was nothing
	cq      atomic.Pointer[consumequeue.Queue]
	batch   atomic.Pointer[consumequeue.BatchQueue] // instead of cq
	ext     atomic.Pointer[consumequeue.Ext]
	batched bool // its topic asks for batch queues
}

// setExt gives the queue its extension units.
func (q *queue) setExt(e *consumequeue.Ext) {
	q.ext.Store(e)
	if c := q.cq.Load(); c != nil {
		c.SetExt(e)
	}
}

func (q *queue) minOffset() int64 {
	if b := q.batch.Load(); b != nil {
		return b.Min()
	}
	if c := q.cq.Load(); c != nil {
		return c.Min()
	}
	return 0
}

func (q *queue) maxOffset() int64 {
	if b := q.batch.Load(); b != nil {
		return b.Max()
	}
	if c := q.cq.Load(); c != nil {
		return c.Max()
	}
	return 0
}

// exists reports whether there is a consume queue.
func (q *queue) exists() bool { return q.cq.Load() != nil || q.batch.Load() != nil }

// tableShards is a power of two.
const tableShards = 16

// table is all queues by topic and number. It is safe to share.
type table struct {
	shards [tableShards]tableShard
	// batched tells whether a topic asks for batch queues; nil for none does.
	batched   func(topic string) bool
	someBatch atomic.Bool  // there are batch queues
	light     atomic.Int64 // number of light queues
}

type tableShard struct {
	sync.RWMutex
	topics map[string]*topicQueues
}

// topicQueues is the queues of a topic, at least one, sorted by number; the slice is replaced, never changed.
type topicQueues struct {
	list atomic.Pointer[[]*queue]
}

func (q *topicQueues) name() string { return (*q.list.Load())[0].topic }

func newTable(batched func(topic string) bool) *table {
	t := &table{batched: batched}
	for i := range t.shards {
		t.shards[i].topics = map[string]*topicQueues{}
	}
	return t
}

func shardOf[T ~string | ~[]byte](topic T) int {
	n := len(topic)
	if n == 0 {
		return 0
	}
	return (n + int(topic[n-1]) + 5*int(topic[n/2])) & (tableShards - 1)
}

// get returns a queue, nil when it is unknown.
func (t *table) get(topic string, id int32) *queue {
	s := &t.shards[shardOf(topic)]
	s.RLock()
	q := s.topics[topic]
	s.RUnlock()
	return q.find(id)
}

// getBytes is get without making a string.
func (t *table) getBytes(topic []byte, id int32) *queue {
	s := &t.shards[shardOf(topic)]
	s.RLock()
	q := s.topics[string(topic)]
	s.RUnlock()
	return q.find(id)
}

func (q *topicQueues) find(id int32) *queue {
	if q == nil {
		return nil
	}
	list := *q.list.Load()
	if int(id) < len(list) && id >= 0 && list[id].id == id {
		return list[id]
	}
	i, ok := slices.BinarySearchFunc(list, id, byID)
	if !ok {
		return nil
	}
	return list[i]
}

func byID(q *queue, id int32) int { return cmp.Compare(q.id, id) }

// ensure returns a queue, making it when it is unknown. It makes nothing on disk.
func (t *table) ensure(topic []byte, id int32) *queue {
	if q := t.getBytes(topic, id); q != nil {
		return q
	}
	s := &t.shards[shardOf(topic)]
	s.Lock()
	defer s.Unlock()
	queues := s.topics[string(topic)]
	var name string
	var list []*queue
	if queues == nil {
		queues = &topicQueues{}
		name = string(topic)
		s.topics[name] = queues
	} else {
		list = *queues.list.Load()
		name = list[0].topic
	}
	i, ok := slices.BinarySearchFunc(list, id, byID)
	if ok {
		return list[i]
	}
	q := &queue{topic: name, id: id}
	if t.batched != nil && t.batched(name) {
		q.batched = true
		t.someBatch.Store(true)
	}
	if message.IsLMQ(name) {
		t.light.Add(1)
	}
	list = slices.Insert(slices.Clone(list), i, q)
	queues.list.Store(&list)
	return q
}

// remove takes a topic out and returns its queues.
func (t *table) remove(topic string) []*queue {
	s := &t.shards[shardOf(topic)]
	s.Lock()
	defer s.Unlock()
	queues := s.topics[topic]
	if queues == nil {
		return nil
	}
	delete(s.topics, topic)
	list := *queues.list.Load()
	if message.IsLMQ(topic) {
		t.light.Add(-int64(len(list)))
	}
	return list
}

// all calls yield for every queue, topic by topic, always in the same order.
func (t *table) all(yield func(*queue) bool) {
	for i := range t.shards {
		s := &t.shards[i]
		s.RLock()
		topics := slices.AppendSeq(make([]*topicQueues, 0, len(s.topics)), maps.Values(s.topics))
		s.RUnlock()
		slices.SortFunc(topics, func(a, b *topicQueues) int { return strings.Compare(a.name(), b.name()) })
		for _, q := range topics {
			for _, q := range *q.list.Load() {
				if !yield(q) {
					return
				}
			}
		}
	}
}
