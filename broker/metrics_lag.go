package broker

import (
	"strconv"
	"sync"

	"mqx/broker/stats"
	"mqx/internal/metrics"
	"mqx/message"
	"mqx/remoting"
)

// lagOf is where a group stands in a topic, over all its queues.
type lagOf struct {
	lag, inflight, ready int64
	// oldest and oldestReady are store times in ms: of the first message that is not
	// consumed and of the first that is not pulled. 0: there is none, -1: not known.
	oldest, oldestReady int64
	queues              *[]queueLag // of each queue, where that is wanted
}

// queueLag is where a group stands in one queue; oldest as in lagOf.
type queueLag struct {
	queue       int32
	lag, oldest int64
}

func (g *lagOf) queue(q int32, lag, oldest int64) {
	if g.queues != nil {
		*g.queues = append(*g.queues, queueLag{q, lag, oldest})
	}
}

// older takes a store time into the least of several; 0 is none, -1 makes it unknown.
func older(least, at int64) int64 {
	switch {
	case least < 0 || at < 0:
		return -1
	case least == 0 || at != 0 && at < least:
		return at
	}
	return least
}

// lagMetrics are the groups that are online, in the topics they subscribe to, and the
// messages that groups gave up.
func (b *Broker) lagMetrics(s *metrics.Scrape) {
	now := b.now().UnixMilli()
	b.ages.begin()
	for _, g := range b.consumers.standing() {
		for _, topic := range g.topics {
			tp := b.topics.Get(topic)
			if tp == nil || message.IsRetry(topic) || !readable(tp.Perm) && !writable(tp.Perm) {
				continue
			}
			var queues *[]queueLag
			if b.cfg().QueueMetrics {
				queues = &[]queueLag{}
			}
			b.writeLag(s, g.name, topic, "false", b.lag(g.name, tp, queues), now)
			writeQueues(s, g.name, topic, queues, now)
			if g.pop {
				var sum lagOf
				for _, retry := range b.pops.retryTopics(topic, g.name) {
					if rt := b.topics.Get(retry); rt != nil {
						sum.add(b.lag(g.name, rt, nil))
					}
				}
				b.writeLag(s, g.name, topic, "true", sum, now)
			}
		}
	}
	b.ages.end()
	b.stats.Each(stats.DeadLetterNums, func(key string, total int64) {
		if topic, group, ok := splitOffsetKey(key); ok {
			s.Counter("rocketmq_send_to_dlq_messages_total", helpCounter, float64(total), s.Labels("consumer_group", group, "topic", topic, "is_system", isSystem(topic, group)))
		}
	})
}

func isSystem(topic, group string) string {
	return strconv.FormatBool(message.IsSystemTopic(topic) || message.IsSystemGroup(group))
}

func (b *Broker) writeLag(s *metrics.Scrape, group, topic, retry string, g lagOf, now int64) {
	l := s.Labels("consumer_group", group, "topic", topic, "is_retry", retry, "is_system", isSystem(topic, group))
	s.Gauge("rocketmq_consumer_lag_messages", helpGauge, float64(g.lag), l)
	s.Gauge("rocketmq_consumer_inflight_messages", helpGauge, float64(g.inflight), l)
	s.Gauge("rocketmq_consumer_ready_messages", helpGauge, float64(g.ready), l)
	age := func(name string, at int64) {
		switch {
		case at == 0:
			s.Gauge(name, helpGauge, 0, l)
		case at > 0:
			s.Gauge(name, helpGauge, float64(max(0, now-at)), l)
		} // else it is not known now, and not there
	}
	age("rocketmq_consumer_lag_latency_milliseconds", g.oldest)
	age("rocketmq_consumer_queueing_latency_milliseconds", g.oldestReady)
}

// writeQueues writes where a group stands in each queue of a topic.
func writeQueues(s *metrics.Scrape, group, topic string, queues *[]queueLag, now int64) {
	if queues == nil {
		return
	}
	for _, q := range *queues {
		l := s.Labels("consumer_group", group, "topic", topic, "queue_id", strconv.Itoa(int(q.queue)))
		s.Gauge("mqx_consumer_queue_lag_messages", "Messages of one queue that the group has not consumed.", float64(q.lag), l)
		if q.oldest >= 0 {
			age := max(0, now-q.oldest)
			if q.oldest == 0 {
				age = 0
			}
			s.Gauge("mqx_consumer_queue_lag_seconds", "Age of the oldest message of one queue that is not consumed; 0 when there is none, absent where it is not known.", float64(age)/1000, l)
		}
	}
}

func (g *lagOf) add(o lagOf) {
	g.lag, g.inflight, g.ready = g.lag+o.lag, g.inflight+o.inflight, g.ready+o.ready
	g.oldest, g.oldestReady = older(g.oldest, o.oldest), older(g.oldestReady, o.oldestReady)
}

// lag is where a group stands in a topic. A queue without a committed offset counts
// nothing, as in Apache.
func (b *Broker) lag(group string, tp *topic, queues *[]queueLag) lagOf {
	out := lagOf{queues: queues}
	for q := range max(tp.ReadQueueNums, tp.WriteQueueNums) {
		// The consumer's offset first: then the difference is never negative because of
		// the time between the two looks.
		done, ok := b.offsets.Committed(tp.TopicName, group, q)
		pulled := max(done, b.offsets.PullOffset(tp.TopicName, group, q))
		end := max(0, b.store.MaxOffset(tp.TopicName, q))
		if !ok {
			continue
		}
		if first := b.store.MinOffset(tp.TopicName, q); done < first {
			done = min(first, end) // what is before it is gone
			pulled = max(pulled, done)
		}
		pulled = min(pulled, max(end, done))
		if end > done {
			out.lag += end - done
			at := b.ageAt(group, tp.TopicName, q, done)
			out.oldest = older(out.oldest, at)
			out.queue(q, end-done, at)
		} else {
			out.queue(q, 0, 0)
		}
		out.inflight += pulled - done
		if end > pulled {
			out.ready += end - pulled
			out.oldestReady = older(out.oldestReady, b.ageAt("", tp.TopicName, q, pulled))
		}
	}
	return out
}

// ageAt is the store time of the message at an offset, -1 where it is not known.
func (b *Broker) ageAt(group, topic string, queue int32, offset int64) int64 {
	k := ageKey{group, topic, queue}
	if at, ok := b.ages.known(k, offset); ok {
		return at
	}
	at, err := b.store.StoreTime(topic, queue, offset)
	if err != nil || at <= 0 {
		at = -1
	}
	b.ages.note(k, offset, at)
	return at
}

// standing is a group that is online.
type standing struct {
	name   string
	pop    bool
	topics []string
}

// standing lists the groups that are online with what they subscribe to.
func (t *consumerTable) standing() []standing {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]standing, 0, len(t.mu.groups))
	for _, g := range t.mu.groups {
		if g.messageModel == remoting.Broadcasting {
			continue // each member has its own place, which is not here (N119)
		}
		one := standing{name: g.name, pop: g.consumeType == "CONSUME_POP", topics: make([]string, 0, len(g.subs))}
		for topic := range g.subs {
			one.topics = append(one.topics, topic)
		}
		out = append(out, one)
	}
	return out
}

// ageCache keeps the store times that a scrape has read, so that the next one reads
// those of queues that have moved only, and bounds what one scrape reads.
type ageCache struct {
	mu struct {
		sync.Mutex
		last, now map[ageKey]ageAt
		left      int // reads
	}
}

type ageKey struct {
	group, topic string // group "": of what is pulled next
	queue        int32
}

type ageAt struct{ offset, at int64 }

// maxAgeReads bounds the records that a scrape reads.
const maxAgeReads = 2000

func (c *ageCache) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.now, c.mu.left = map[ageKey]ageAt{}, maxAgeReads
}

func (c *ageCache) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.last, c.mu.now = c.mu.now, nil
}

// known is the time of an offset that was read before, or -1 when this scrape has read
// enough.
func (c *ageCache) known(k ageKey, offset int64) (at int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, ok := c.mu.last[k]; ok && was.offset == offset {
		c.mu.now[k] = was
		return was.at, true
	}
	if c.mu.left <= 0 {
		return -1, true
	}
	c.mu.left--
	return 0, false
}

func (c *ageCache) note(k ageKey, offset, at int64) {
	if at < 0 {
		return // the next scrape tries again
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.now[k] = ageAt{offset, at}
}
