package tui

import (
	"maps"
	"slices"
	"time"

	"mqx/internal/sorted"
)

// carry puts what brokers said before that do not answer now into a snapshot: the rows
// stay, with the age of their figures, until the name servers drop the broker.
func (h *History) carry(s *Snapshot) {
	missing := slices.Clone(s.Missing)
	for i := range s.Brokers {
		b := &s.Brokers[i]
		if b.Err == "" {
			if b.At.IsZero() {
				b.At = s.At
			}
			h.good[b.Key()] = *b
			continue
		}
		if old, ok := h.good[b.Key()]; ok {
			old.Err = b.Err
			*b = old
		}
		if b.ID == 0 && !slices.Contains(missing, b.Name) {
			missing = append(missing, b.Name)
		}
	}
	for key := range h.good {
		if !slices.ContainsFunc(s.Brokers, func(b Broker) bool { return b.Key() == key }) {
			delete(h.good, key)
		}
	}
	for i := range s.Groups {
		if s.Groups[i].At.IsZero() {
			s.Groups[i].At = s.At
		}
	}
	if len(missing) > 0 && h.last != nil {
		h.carryGroups(s, missing)
		h.carryTopics(s)
	}
	h.unheard(s)
}

// unheard takes the sums of groups away where a broker has never said where they stand: what lies there is in no queue.
func (h *History) unheard(s *Snapshot) {
	maps.DeleteFunc(h.told, func(name string, _ bool) bool {
		return !slices.ContainsFunc(s.Brokers, func(b Broker) bool { return b.Name == name })
	})
	for i := range s.Brokers {
		if b := &s.Brokers[i]; b.ID == 0 && !slices.Contains(s.Missing, b.Name) && b.Err == "" {
			h.told[b.Name] = true
		}
	}
	s.Part = slices.ContainsFunc(s.Missing, func(name string) bool { return !h.told[name] && !s.has(name) })
	for i := range s.Groups {
		if g := &s.Groups[i]; s.Part {
			g.Lag, g.Retry = Num{}, Num{}
		}
	}
}

// has reports whether there is a queue of a group at a broker.
func (s *Snapshot) has(broker string) bool {
	return slices.ContainsFunc(s.Groups, func(g Group) bool {
		return slices.ContainsFunc(g.Queues, func(q Queue) bool { return q.Broker == broker })
	})
}

// carryGroups keeps the queues at the brokers that are missing.
func (h *History) carryGroups(s *Snapshot, missing []string) {
	index := make(map[string]int, len(s.Groups))
	for i := range s.Groups {
		index[s.Groups[i].Name] = i
	}
	for i := range h.last.Groups {
		old := &h.last.Groups[i]
		var kept []Queue
		for j := range old.Queues {
			if q := old.Queues[j]; slices.Contains(missing, q.Broker) {
				q.Stale = true
				if q.At.IsZero() {
					q.At = old.At
				}
				kept = append(kept, q)
			}
		}
		if len(kept) == 0 {
			continue
		}
		k, ok := index[old.Name]
		if !ok { // it is known at no other broker
			g := *old
			g.Queues = nil
			s.Groups = append(s.Groups, g)
			k = len(s.Groups) - 1
		}
		s.Groups[k].keep(kept)
	}
	sorted.By(s.Groups, func(a, b Group) int { return compareText(a.Name, b.Name) })
}

// keep adds queues whose broker is silent, those that are not there already.
func (g *Group) keep(old []Queue) {
	there := len(g.Queues)
	for i := range old {
		if !slices.ContainsFunc(g.Queues[:there], func(q Queue) bool { return q.compare(&old[i]) == 0 }) {
			g.Queues = append(g.Queues, old[i])
		}
	}
	sorted.By(g.Queues, func(a, b Queue) int { return a.compare(&b) })
	g.Stale = true
	g.sum(g.At)
}

// carryTopics keeps the topics that only silent brokers have, and the ends of queues.
func (h *History) carryTopics(s *Snapshot) {
	there := map[string]*Topic{}
	for i := range s.Topics {
		there[s.Topics[i].Name] = &s.Topics[i]
	}
	var gone []Topic
	for i := range h.last.Topics {
		old := h.last.Topics[i]
		switch t := there[old.Name]; {
		case t == nil:
			old.Stale = true
			gone = append(gone, old)
		case t.End.OK && old.End.OK && t.End.V < old.End.V, !t.End.OK && old.End.OK:
			t.End, t.EndAt, t.Stale = old.End, old.EndAt, true
		}
	}
	s.Topics = append(s.Topics, gone...)
}

// sum adds up the queues. at is when those that do not say so themselves were read.
func (g *Group) sum(at time.Time) {
	g.Lag, g.Retry, g.Done, g.At = Known(0), Known(0), Known(0), at
	g.Topics = g.Topics[:0:0]
	for i := range g.Queues {
		q := &g.Queues[i]
		if q.Retry {
			g.Retry = g.Retry.Add(q.Lag)
		} else {
			g.Lag = g.Lag.Add(q.Lag)
			if n := len(g.Topics); n == 0 || g.Topics[n-1] != q.Topic {
				g.Topics = append(g.Topics, q.Topic)
			}
		}
		if q.Committed.OK {
			g.Done.V += q.Committed.V
		}
		if !q.At.IsZero() && q.At.Before(g.At) {
			g.At = q.At
		}
	}
}
