package tui

import (
	"maps"
	"slices"
	"time"
)

// historyLen is how many refreshes a series remembers.
const historyLen = 120

// maxSeries bounds the series that are remembered.
const maxSeries = 20_000

// series is the newest values of one figure; unknown ones are -1.
type series []float64

// queueRef is a queue of a group.
type queueRef struct {
	group, topic, broker string
	id                   int32
}

// History is what the last snapshots said. It is not safe to share.
type History struct {
	last   *Snapshot
	base   *Snapshot // the one before, which rates are taken against: its brokers and topics
	series map[string]series
	good   map[string]Broker // the last answer of each broker
	told   map[string]bool   // brokers that have said where groups stand, by name
	groups map[string][]point
	topics map[string][]point
	still  map[queueRef]time.Time // since when a queue that lags has not moved
	back   map[queueRef]time.Time // when a committed offset was seen to go back
}

// NewHistory is an empty history.
func NewHistory() *History {
	return &History{
		series: map[string]series{}, good: map[string]Broker{}, told: map[string]bool{}, groups: map[string][]point{}, topics: map[string][]point{}, still: map[queueRef]time.Time{}, back: map[queueRef]time.Time{},
	}
}

// leastApart is the time between two snapshots that give a rate; one that comes sooner,
// because a view wanted more, is compared with the one before.
const leastApart = 400 * time.Millisecond

// Add takes the next snapshot and gives it with the rates against the one before. What
// brokers that do not answer have said before is put into it, marked as old.
func (h *History) Add(s *Snapshot) *Rated {
	h.carry(s)
	if h.last != nil && s.At.Sub(h.last.At) < leastApart {
		h.last = s
		return h.rate(h.base, s)
	}
	h.base = h.last.light()
	h.points(s)
	r := h.rate(h.base, s)
	h.record(r)
	old := map[string]*Group{}
	if h.last != nil {
		for i := range h.last.Groups {
			old[h.last.Groups[i].Name] = &h.last.Groups[i]
		}
	}
	for i := range s.Groups {
		h.watch(old[s.Groups[i].Name], &s.Groups[i], s.At)
	}
	h.forget(s)
	h.last = s
	return r
}

// light is the snapshot without what takes most of the memory and no rate needs.
func (s *Snapshot) light() *Snapshot {
	if s == nil {
		return nil
	}
	o := *s
	o.Groups, o.Clients = nil, nil
	return &o
}

// record appends to the series of what there is, and drops the others.
func (h *History) record(r *Rated) {
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
			l = append(l[:0], l[len(l)-historyLen:]...)
		}
		h.series[key] = l
	}
	note("in", r.In)
	note("out", r.Out)
	note("lag", r.Lag)
	for i := range r.Brokers {
		note("broker in "+r.Brokers[i].Key(), r.BrokerIn[r.Brokers[i].Key()])
	}
	for i := range r.Topics {
		note("topic in "+r.Topics[i].Name, r.TopicIn[r.Topics[i].Name])
	}
	for i := range r.Groups {
		note("group lag "+r.Groups[i].Name, r.Groups[i].Lag)
	}
	maps.DeleteFunc(h.series, func(key string, _ series) bool { return !touched[key] })
}

// backFor is how long an offset that went back is told.
const backFor = 5 * time.Minute

// watch notes which queues do not move and which have gone back. Both lists of queues
// are sorted.
func (h *History) watch(before, g *Group, now time.Time) {
	if before == nil {
		return
	}
	j := 0
	for i := range g.Queues {
		q := &g.Queues[i]
		for j < len(before.Queues) && before.Queues[j].compare(q) < 0 {
			j++
		}
		if q.Stale || j >= len(before.Queues) || before.Queues[j].compare(q) != 0 {
			continue
		}
		was := before.Queues[j].Committed
		key := queueRef{g.Name, q.Topic, q.Broker, q.ID}
		switch {
		case !q.Committed.OK || !was.OK:
			delete(h.still, key)
		case q.Committed.V < was.V:
			h.back[key] = now
			delete(h.still, key)
		case q.Committed.V == was.V && q.Lag.OK && q.Lag.V > 0:
			if _, ok := h.still[key]; !ok {
				h.still[key] = before.readAt(now)
			}
		default:
			delete(h.still, key)
		}
	}
}

// readAt is when the group was read, or the given time where nobody says.
func (g *Group) readAt(or time.Time) time.Time {
	if g.At.IsZero() {
		return or
	}
	return g.At
}

// forget drops what is about groups that have gone.
func (h *History) forget(s *Snapshot) {
	there := make(map[string]bool, len(s.Groups))
	for i := range s.Groups {
		there[s.Groups[i].Name] = true
	}
	maps.DeleteFunc(h.groups, func(name string, _ []point) bool { return !there[name] })
	maps.DeleteFunc(h.still, func(q queueRef, _ time.Time) bool { return !there[q.group] })
	maps.DeleteFunc(h.back, func(q queueRef, at time.Time) bool { return !there[q.group] || s.At.Sub(at) > backFor })
}

// stuckAfter is how long a queue that lags may stand still: clients commit every 5 s.
const stuckAfter = 15 * time.Second

// queueMarks are what has been seen of a queue of a group with members.
func (h *History) queueMarks(group string, q *Queue, online bool, now time.Time) (marks []string) {
	key := queueRef{group, q.Topic, q.Broker, q.ID}
	if at, ok := h.still[key]; ok && online && now.Sub(at) >= stuckAfter {
		marks = append(marks, "stuck")
	}
	if _, ok := h.back[key]; ok {
		marks = append(marks, "went back")
	}
	return marks
}

// groupMarks are those of all its queues, each once.
func (h *History) groupMarks(g *Group, now time.Time) (marks []string) {
	for i := range g.Queues {
		for _, m := range h.queueMarks(g.Name, &g.Queues[i], g.Online, now) {
			if !slices.Contains(marks, m) {
				marks = append(marks, m)
			}
		}
	}
	return marks
}

// of are the values of a series, unknown ones as 0 for a drawing.
func (h *History) of(key string) []float64 {
	out := make([]float64, 0, len(h.series[key]))
	for _, v := range h.series[key] {
		out = append(out, max(0, v))
	}
	return out
}
