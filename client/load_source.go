package client

import (
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"mqx/message"
	"mqx/remoting"
)

// produceSource makes send requests to the queues of one broker in turn.
type produceSource struct {
	plans     []*sendPlan
	next      int
	producers []*producerPage // by slot
	batch     int
	ids       *message.IDGenerator
	clock     *coarseClock
}

// coarseClock is set once a round of requests.
type coarseClock struct{ ms int64 }

// Now is the time that was set.
func (c *coarseClock) Now() time.Time { return time.UnixMilli(c.ms) }

func newProduceSource(cfg *LoadConfig, b *loadBroker, slots int, book *ledger) (*produceSource, error) {
	s := &produceSource{batch: cfg.Batch, clock: &coarseClock{cfg.Clock.Now().UnixMilli()}}
	s.ids = message.NewIDGenerator(localIP(b.addr), os.Getpid(), s.clock)
	for _, q := range b.queues {
		p, err := newSendPlan(cfg, DefaultProducerGroup, q.MessageQueue)
		if err != nil {
			return nil, err
		}
		s.plans = append(s.plans, p)
	}
	s.next = rand.IntN(len(s.plans))
	for range slots {
		s.producers = append(s.producers, book.page())
	}
	return s, nil
}

func (s *produceSource) build(dst []byte, slot int, opaque int32, nowMs int64) ([]byte, bool) {
	p := s.plans[s.next]
	if s.next++; s.next == len(s.plans) {
		s.next = 0
	}
	out, start := p.appendTo(dst, opaque)
	frame := out[start:]
	putDigits(frame[p.born:p.born+len(bornMark)], nowMs)
	s.clock.ms = nowMs
	for _, at := range p.keys {
		s.putID(frame[at : at+message.IDLenV4])
	}
	page := s.producers[slot]
	for i, at := range p.bodies {
		page.mark(i).put(frame[at : at+p.size])
	}
	return out, false
}

// putID writes a unique id; one of an IPv6 host, which is longer, loses its start.
func (s *produceSource) putID(dst []byte) {
	var buf [message.IDLenV6]byte
	id := s.ids.AppendNext(buf[:0])
	copy(dst, id[len(id)-len(dst):])
}

func (s *produceSource) answered(slot int, code int32, _, _ []byte) (int, int64, string) {
	page := s.producers[slot]
	switch code {
	case remoting.RespSuccess:
		page.acknowledge(s.batch)
		return s.batch, int64(s.batch) * int64(s.plans[0].size), ""
	case remoting.RespFlushDiskTimeout, remoting.RespFlushSlaveTimeout, remoting.RespSlaveNotAvailable:
		page.acknowledge(s.batch) // stored, only not as safe as was asked for
		return s.batch, int64(s.batch) * int64(s.plans[0].size), remoting.ResponseName(code)
	}
	// Refused: nothing was stored, the next request carries the same numbers.
	return 0, 0, remoting.ResponseName(code)
}

func (s *produceSource) unknown(slot int) { s.producers[slot].giveUp(s.batch) }

// consumeSource pulls the queues of one broker.
type consumeSource struct {
	plans  []*pullPlan
	queues []*loadQueue
	slots  []readSlot
	once   *queueShare // queues are read once, by one slot each; nil: over and over
	next   int
	found  func(q *loadQueue, m loadMark, whole bool) // nil: records are not looked into
	broken int64
	tally  *tally // what found fills, for LoadConsume
}

// readSlot is a slot and what it reads.
type readSlot struct {
	queue *loadQueue // nil: the next one is to be chosen
	plan  *pullPlan
	at    int64
}

// queueShare hands out queues that are each read once, over all connections.
type queueShare struct {
	mu struct {
		sync.Mutex
		left map[*loadQueue]bool
	}
}

func newConsumeSource(cfg *LoadConfig, b *loadBroker, slots int) (*consumeSource, error) {
	s := &consumeSource{queues: b.queues, slots: make([]readSlot, slots)}
	for _, q := range b.queues {
		p, err := newPullPlan(cfg, q.MessageQueue)
		if err != nil {
			return nil, err
		}
		s.plans = append(s.plans, p)
	}
	s.next = rand.IntN(len(s.plans))
	return s, nil
}

// shareQueues makes sources read every queue once, all together.
func shareQueues(sources []*consumeSource) {
	share := &queueShare{}
	share.mu.left = map[*loadQueue]bool{}
	for _, s := range sources {
		s.once, s.next = share, 0
		for _, q := range s.queues {
			share.mu.left[q] = q.start < q.end
		}
	}
}

func (q *queueShare) take(queue *loadQueue) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.mu.left[queue]
	q.mu.left[queue] = false
	return left
}

// choose picks what a slot reads next; false when nothing is left.
func (s *consumeSource) choose(slot *readSlot) bool {
	for range s.queues {
		q, p := s.queues[s.next], s.plans[s.next]
		if s.next++; s.next == len(s.queues) {
			s.next = 0
		}
		if s.once != nil && !s.once.take(q) || s.once == nil && q.start >= q.end {
			continue
		}
		*slot = readSlot{queue: q, plan: p, at: q.start}
		return true
	}
	return false
}

func (s *consumeSource) build(dst []byte, slot int, opaque int32, _ int64) ([]byte, bool) {
	st := &s.slots[slot]
	if st.queue == nil && !s.choose(st) {
		return dst, true
	}
	out, start := st.plan.appendTo(dst, opaque)
	at := start + st.plan.offset
	putDigits(out[at:at+19], st.at)
	return out, false
}

func (s *consumeSource) answered(slot int, code int32, _, body []byte) (int, int64, string) {
	st := &s.slots[slot]
	switch code {
	case remoting.RespSuccess:
	case remoting.RespPullNotFound, remoting.RespPullRetryImmediately, remoting.RespPullOffsetMoved:
		s.leave(st) // the queue is shorter than it was said to be
		return 0, 0, ""
	default:
		return 0, 0, remoting.ResponseName(code)
	}
	n, bytes, next, ok := s.walk(st, body)
	st.at = max(st.at, next)
	switch {
	case !ok:
		s.broken++
		s.leave(st)
		return n, bytes, "broken records in an answer"
	case n == 0:
		s.leave(st)
		return 0, 0, "an answer without records"
	case st.at >= st.queue.end:
		s.leave(st)
	}
	return n, bytes, ""
}

// leave ends the reading of a queue. What is read once goes on from there if it is
// read again.
func (s *consumeSource) leave(st *readSlot) {
	if s.once != nil {
		st.queue.end = min(st.queue.end, st.at)
	}
	st.queue = nil
}

// walk goes over the records of an answer. Without a check it looks at little more than
// their lengths.
func (s *consumeSource) walk(st *readSlot, body []byte) (n int, bytes, next int64, ok bool) {
	for len(body) > 0 {
		size, _, err := message.PeekRecord(body)
		if err != nil || size < message.MinRecordLen || int(size) > len(body) {
			return n, bytes, next, false
		}
		rec := message.View(body[:size:size])
		if s.found != nil {
			if rec, err = message.ParseView(rec, message.DecodeOptions{}); err != nil {
				return n, bytes, next, false
			}
			if at := rec.QueueOffset(); at >= st.at && at < st.queue.end {
				if m, ours, whole := readMark(rec.Body()); ours {
					s.found(st.queue, m, whole)
				}
			}
		}
		bytes += int64(size)
		next = rec.QueueOffset() + 1
		n++
		body = body[size:]
	}
	return n, bytes, next, true
}

func (s *consumeSource) unknown(int) {} // the slot asks again

// routeSource asks for the routes of topics in turn.
type routeSource struct {
	plans []*template
	next  int
}

func newRouteSource(cfg *LoadConfig) (*routeSource, error) {
	s := &routeSource{}
	for _, topic := range cfg.Topics {
		t, err := newTemplate(remoting.NewRequest(remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoHeader{Topic: topic}), cfg.Serialize)
		if err != nil {
			return nil, err
		}
		s.plans = append(s.plans, t)
	}
	return s, nil
}

func (s *routeSource) build(dst []byte, _ int, opaque int32, _ int64) ([]byte, bool) {
	t := s.plans[s.next]
	if s.next++; s.next == len(s.plans) {
		s.next = 0
	}
	out, _ := t.appendTo(dst, opaque)
	return out, false
}

func (s *routeSource) answered(_ int, code int32, _, body []byte) (int, int64, string) {
	if code != remoting.RespSuccess {
		return 0, 0, remoting.ResponseName(code)
	}
	return 1, int64(len(body)), ""
}

func (s *routeSource) unknown(int) {}
