package tui

import (
	"cmp"
	"maps"
	"time"
)

func compareText(a, b string) int { return cmp.Compare(a, b) }

// Rated is a snapshot with the rates against an earlier one, in units a second.
type Rated struct {
	*Snapshot
	Every                  time.Duration // between the two; 0 for the first snapshot
	In, Out, Lag           Num           // of the cluster
	BrokerIn, BrokerOut    map[string]Num
	TopicIn, TopicOut      map[string]Num
	GroupOut, GroupLagging map[string]Num // what it consumes; how fast its lag grows
}

// point is where a group stood at a time.
type point struct {
	at        time.Time
	done, lag Num
}

// window is the time that the rates of groups are taken over: clients commit every 5 s,
// and a rate over less would swing between nothing and double.
const window = 10 * time.Second

// points remembers where the groups stand, and what is consumed of each topic; what is in
// part old is not taken.
func (h *History) points(s *Snapshot) {
	topics, stale := map[string]float64{}, map[string]bool{}
	for i := range s.Groups {
		g := &s.Groups[i]
		for j := range g.Queues {
			if q := &g.Queues[j]; !q.Retry && q.Committed.OK {
				topics[q.Topic] += q.Committed.V
				stale[q.Topic] = stale[q.Topic] || q.Stale
			}
		}
		if !g.Stale {
			push(h.groups, g.Name, point{g.readAt(s.At), g.Done, g.Lag})
		}
	}
	for t, done := range topics {
		if !stale[t] {
			push(h.topics, t, point{at: s.At, done: Known(done)})
		}
	}
	maps.DeleteFunc(h.topics, func(t string, _ []point) bool { _, ok := topics[t]; return !ok })
}

// push adds a point and drops those that the window does not need.
func push(points map[string][]point, key string, p point) {
	l := append(points[key], p)
	first := 0
	for first < len(l)-2 && p.at.Sub(l[first+1].at) >= window {
		first++
	}
	points[key] = append(l[:0], l[first:]...)
}

// perSecondOf is the growth between two counts; unknown when one is, or went back.
func perSecondOf(now, was Num, seconds float64) Num {
	if !now.OK || !was.OK || seconds <= 0 || now.V < was.V {
		return Num{}
	}
	return Num{(now.V - was.V) / seconds, true}
}

// rate compares two snapshots; before is nil for the first.
func (h *History) rate(before, now *Snapshot) *Rated {
	r := &Rated{
		Snapshot: now, BrokerIn: map[string]Num{}, BrokerOut: map[string]Num{}, TopicIn: map[string]Num{}, TopicOut: map[string]Num{},
		GroupOut: map[string]Num{}, GroupLagging: map[string]Num{}, Lag: Known(0),
	}
	for i := range now.Groups {
		if g := &now.Groups[i]; g.Lag.OK {
			r.Lag.V += g.Lag.V
		}
	}
	if now.Part {
		r.Lag = Num{}
	}
	if before == nil {
		return r
	}
	r.Every = now.At.Sub(before.At)
	r.brokers(before)
	topics := map[string]*Topic{}
	for i := range before.Topics {
		topics[before.Topics[i].Name] = &before.Topics[i]
	}
	for i := range now.Topics {
		t := &now.Topics[i]
		if was := topics[t.Name]; was != nil {
			r.TopicIn[t.Name] = perSecondOf(t.End, was.End, seconds(t.EndAt, was.EndAt, r.Every))
		}
		if l := h.topics[t.Name]; len(l) > 1 && !t.Stale {
			first, last := l[0], l[len(l)-1]
			r.TopicOut[t.Name] = perSecondOf(last.done, first.done, last.at.Sub(first.at).Seconds())
		}
	}
	for i := range now.Groups {
		h.groupRates(r, &now.Groups[i])
	}
	return r
}

// seconds are those between two times of reading, else between the two refreshes.
func seconds(now, was time.Time, every time.Duration) float64 {
	if now.IsZero() || was.IsZero() {
		return every.Seconds()
	}
	return now.Sub(was).Seconds()
}

// groupRates are those of one group over the window.
func (h *History) groupRates(r *Rated, g *Group) {
	l := h.groups[g.Name]
	if len(l) < 2 || g.Stale {
		return
	}
	first, last := l[0], l[len(l)-1]
	s := last.at.Sub(first.at).Seconds()
	out := perSecondOf(last.done, first.done, s)
	r.GroupOut[g.Name] = out
	if first.lag.OK && last.lag.OK && s > 0 {
		r.GroupLagging[g.Name] = Num{(last.lag.V - first.lag.V) / s, true}
	}
}

// brokers are the rates of the brokers and of the cluster: of those that answered both
// times.
func (r *Rated) brokers(before *Snapshot) {
	was := map[string]*Broker{}
	for i := range before.Brokers {
		was[before.Brokers[i].Key()] = &before.Brokers[i]
	}
	for i := range r.Brokers {
		b := &r.Brokers[i]
		old := was[b.Key()]
		if old == nil || b.Err != "" || old.Err != "" {
			continue
		}
		s := seconds(b.At, old.At, r.Every)
		in, out := perSecondOf(b.Puts, old.Puts, s), perSecondOf(b.Gets, old.Gets, s)
		r.BrokerIn[b.Key()], r.BrokerOut[b.Key()] = in, out
		if b.ID != 0 {
			continue
		}
		if in.OK {
			r.In = Num{r.In.V + in.V, true}
		}
		if out.OK {
			r.Out = Num{r.Out.V + out.V, true}
		}
	}
}

// Drain is how long a group needs to read what it has not, at its present rates; ok is
// false when it does not come nearer or nobody knows.
func (r *Rated) Drain(g *Group) (time.Duration, bool) {
	growth := r.GroupLagging[g.Name]
	if !g.Lag.OK || !growth.OK || growth.V >= 0 || g.Lag.V <= 0 {
		return 0, false
	}
	return time.Duration(g.Lag.V / -growth.V * float64(time.Second)), true
}
