package tui

import (
	"maps"
	"time"
)

// historyLen is how many refreshes a series remembers.
const historyLen = 120

// maxSeries bounds the series that are remembered.
const maxSeries = 20_000

// series is the newest values of one figure; unknown ones are -1.
type series []float64

// History is what the last snapshots said. It is not safe to share.
type History struct {
	last   *Snapshot
	base   *Snapshot // the one before, which rates are taken against
	series map[string]series
	seen   map[string]time.Time // when a broker last answered
	still  map[string]int       // refreshes for which a queue that lags has not moved
	back   map[string]bool      // queues whose committed offset has gone back, in the last refresh
}

// NewHistory is an empty history.
func NewHistory() *History {
	return &History{series: map[string]series{}, seen: map[string]time.Time{}, still: map[string]int{}, back: map[string]bool{}}
}

// leastApart is the time between two snapshots that give a rate; one that comes sooner,
// because a view wanted more, is compared with the one before.
const leastApart = 400 * time.Millisecond

// Add takes the next snapshot and gives it with the rates against the one before.
func (h *History) Add(s *Snapshot) *Rated {
	if h.last != nil && s.At.Sub(h.last.At) < leastApart {
		h.last = s
		return rate(h.base, s)
	}
	h.base = h.last
	r := rate(h.base, s)
	touched := map[string]bool{}
	note := func(key string, n Num) {
		v := n.V
		if !n.OK {
			v = -1
		}
		touched[key] = true
		if _, ok := h.series[key]; !ok && len(h.series) >= maxSeries {
			return
		}
		l := append(h.series[key], v)
		if len(l) > historyLen {
			l = append(l[:0:0], l[len(l)-historyLen:]...)
		}
		h.series[key] = l
	}
	note("in", r.In)
	note("out", r.Out)
	note("lag", r.Lag)
	for i := range s.Brokers {
		b := &s.Brokers[i]
		if b.Err == "" {
			h.seen[b.Key()] = s.At
		}
		note("broker in "+b.Key(), r.BrokerIn[b.Key()])
	}
	for i := range s.Topics {
		note("topic in "+s.Topics[i].Name, r.TopicIn[s.Topics[i].Name])
	}
	for i := range s.Groups {
		note("group lag "+s.Groups[i].Name, s.Groups[i].Lag)
		h.watch(&s.Groups[i])
	}
	maps.DeleteFunc(h.series, func(key string, _ series) bool { return !touched[key] })
	h.last = s
	return r
}

// watch notes which queues do not move and which have gone back.
func (h *History) watch(g *Group) {
	var before *Group
	if h.last != nil {
		before = h.last.group(g.Name)
	}
	for i := range g.Queues {
		q := &g.Queues[i]
		key := g.Name + "/" + q.Key()
		was, ok := before.committed(q.Key())
		delete(h.back, key)
		switch {
		case !ok || !q.Committed.OK:
			delete(h.still, key)
		case q.Committed.V < was.V:
			h.back[key] = true
			delete(h.still, key)
		case q.Committed.V == was.V && q.Lag.OK && q.Lag.V > 0:
			h.still[key]++
		default:
			delete(h.still, key)
		}
	}
}

func (s *Snapshot) group(name string) *Group {
	for i := range s.Groups {
		if s.Groups[i].Name == name {
			return &s.Groups[i]
		}
	}
	return nil
}

// committed is the offset of one queue.
func (g *Group) committed(key string) (Num, bool) {
	if g == nil {
		return Num{}, false
	}
	for i := range g.Queues {
		if g.Queues[i].Key() == key {
			return g.Queues[i].Committed, g.Queues[i].Committed.OK
		}
	}
	return Num{}, false
}

// of are the values of a series, unknown ones as 0 for a drawing.
func (h *History) of(key string) []float64 {
	out := make([]float64, 0, len(h.series[key]))
	for _, v := range h.series[key] {
		out = append(out, max(0, v))
	}
	return out
}

// stuckAfter is for how many refreshes a queue that lags may stand still.
const stuckAfter = 3
