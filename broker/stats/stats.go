// Package stats counts what a broker does by name and key, over the last
// minute, hour and day, as VIEW_BROKER_STATS_DATA shows it.
//
// A counter is sampled, not windowed: adding is one atomic add, and Sample
// keeps a short list of snapshots per window. Rates are the difference of the
// newest and the oldest snapshot.
package stats

import (
	"sync"
	"sync/atomic"
	"time"
)

// Names of statistics with the form of their keys.
const (
	TopicPutNums  = "TOPIC_PUT_NUMS"  // topic
	TopicPutSize  = "TOPIC_PUT_SIZE"  // topic
	GroupGetNums  = "GROUP_GET_NUMS"  // topic@group
	GroupGetSize  = "GROUP_GET_SIZE"  // topic@group
	SendBackNums  = "SNDBCK_PUT_NUMS" // topic@group
	GroupAckNums  = "GROUP_ACK_NUMS"  // topic@group
	GroupCkNums   = "GROUP_CK_NUMS"   // topic@group
	BrokerPutNums = "BROKER_PUT_NUMS" // cluster name
	BrokerGetNums = "BROKER_GET_NUMS" // cluster name
	// Names of our own.
	DeadLetterNums = "MQX_DLQ_NUMS"         // topic@group
	CommitNums     = "MQX_TX_COMMIT_NUMS"   // topic
	RollbackNums   = "MQX_TX_ROLLBACK_NUMS" // topic
)

// Sampling periods and how many snapshots a window keeps. A window of one
// minute is seven snapshots, ten seconds apart.
const (
	MinutePeriod = 10 * time.Second
	HourPeriod   = 10 * time.Minute
	DayPeriod    = time.Hour
	minuteKeep   = 7
	hourKeep     = 7
	dayKeep      = 25
)

// maxCounters bounds the counters of one Set; further keys are counted
// together under no key.
const maxCounters = 200_000

// Counter is one statistic. It is safe to share.
type Counter struct {
	value, times atomic.Int64
	mu           struct {
		sync.Mutex
		minute, hour, day window
	}
}

// Add counts n units in one event.
func (c *Counter) Add(n int64) {
	c.value.Add(n)
	c.times.Add(1)
}

// AddTimes counts n units in several events.
func (c *Counter) AddTimes(n, times int64) {
	c.value.Add(n)
	c.times.Add(times)
}

// Total is the sum since the counter exists.
func (c *Counter) Total() int64 { return c.value.Load() }

// Item is what a window says.
type Item struct {
	Sum   int64
	TPS   float64 // units a second
	AvgPT float64 // units an event
}

// Minute reports the last minute.
func (c *Counter) Minute() Item { return c.read(&c.mu.minute) }

// Hour reports the last hour.
func (c *Counter) Hour() Item { return c.read(&c.mu.hour) }

// Day reports the last day.
func (c *Counter) Day() Item { return c.read(&c.mu.day) }

func (c *Counter) read(w *window) Item {
	c.mu.Lock()
	defer c.mu.Unlock()
	return w.item()
}

type snapshot struct {
	at           time.Time
	value, times int64
}

type window struct{ list []snapshot }

func (w *window) add(s snapshot, keep int) {
	if len(w.list) == 0 {
		w.list = append(w.list, snapshot{at: s.at.Add(-MinutePeriod)}) // counted from zero since the last round
	}
	w.list = append(w.list, s)
	if n := len(w.list) - keep; n > 0 {
		w.list = append(w.list[:0], w.list[n:]...)
	}
}

func (w *window) item() Item {
	if len(w.list) < 2 {
		return Item{}
	}
	first, last := w.list[0], w.list[len(w.list)-1]
	it := Item{Sum: last.value - first.value}
	if d := last.at.Sub(first.at); d > 0 {
		it.TPS = float64(it.Sum) / d.Seconds()
	}
	if n := last.times - first.times; n > 0 {
		it.AvgPT = float64(it.Sum) / float64(n)
	}
	return it
}

// key names a counter.
type key struct{ name, key string }

// Set is all counters of a broker. It is safe to share.
type Set struct {
	mu struct {
		sync.RWMutex
		counters                 map[key]*Counter
		lastMinute, lastHr, last time.Time
	}
	rest Counter
}

// NewSet returns an empty set.
func NewSet() *Set {
	s := &Set{}
	s.mu.counters = map[key]*Counter{}
	return s
}

// Counter returns the counter of a name and key and makes it when missing.
func (s *Set) Counter(name, k string) *Counter {
	if c, ok := s.Lookup(name, k); ok {
		return c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := key{name, k}
	if c, ok := s.mu.counters[id]; ok {
		return c
	}
	if len(s.mu.counters) >= maxCounters {
		return &s.rest
	}
	c := &Counter{}
	s.mu.counters[id] = c
	return c
}

// Lookup returns the counter of a name and key if something was counted there.
func (s *Set) Lookup(name, k string) (*Counter, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c, ok := s.mu.counters[key{name, k}]
	return c, ok
}

// Each calls f for every counter of a name with its total, in no order.
func (s *Set) Each(name string, f func(key string, total int64)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for id, c := range s.mu.counters {
		if id.name == name {
			f(id.key, c.Total())
		}
	}
}

// Remove forgets the counters that drop reports true for.
func (s *Set) Remove(drop func(name, key string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.mu.counters {
		if drop(id.name, id.key) {
			delete(s.mu.counters, id)
		}
	}
}

// Sample takes the snapshots that are due at now. Call it every MinutePeriod.
func (s *Set) Sample(now time.Time) {
	s.mu.Lock()
	hour := now.Sub(s.mu.lastHr) >= HourPeriod
	day := now.Sub(s.mu.last) >= DayPeriod
	if hour {
		s.mu.lastHr = now
	}
	if day {
		s.mu.last = now
	}
	all := make([]*Counter, 0, len(s.mu.counters))
	for _, c := range s.mu.counters {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		c.sample(now, hour, day)
	}
}

func (c *Counter) sample(now time.Time, hour, day bool) {
	snap := snapshot{at: now, value: c.value.Load(), times: c.times.Load()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.minute.add(snap, minuteKeep)
	if hour || len(c.mu.hour.list) == 0 {
		c.mu.hour.add(snap, hourKeep)
	}
	if day || len(c.mu.day.list) == 0 {
		c.mu.day.add(snap, dayKeep)
	}
}
