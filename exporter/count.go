package exporter

import "mqx/admin"

// counters add up what came into topics and what groups consumed since the exporter saw
// them first. They are only read and replaced, never changed.
type counters struct {
	in  map[string]counter
	out map[groupTopic]counter
}

// counter is a total and the positions of queues that it was brought up to.
type counter struct {
	total float64
	at    map[int32]int64
}

// to brings a counter up to positions. A queue that it sees first counts from there, and
// so does one that went backwards: what a reset of offsets repeats is counted again.
func (c counter) to(now map[int32]int64) counter {
	for q, pos := range now {
		if was, ok := c.at[q]; ok && pos > was {
			c.total += float64(pos - was)
		}
	}
	c.at = now
	return c
}

// advance brings the counters up to the figures, and writes the totals there. What the
// figures do not know is kept and not shown.
func (c *counters) advance(f *figures) {
	if f.failed["topics"] == nil {
		next := make(map[string]counter, len(f.ends))
		f.in = make(map[string]float64, len(f.ends))
		for i := range f.ends {
			t := &f.ends[i]
			next[t.Topic] = c.in[t.Topic].to(t.Queues)
			f.in[t.Topic] = next[t.Topic].total
		}
		if f.skipped["topic"] > 0 {
			keepIn(next, c.in)
		}
		c.in = next
	}
	if f.failed["lag"] != nil {
		return
	}
	next := map[groupTopic]counter{}
	f.out = map[groupTopic]float64{}
	for gt, at := range groupTopics(f.lag) {
		next[gt] = c.out[gt].to(at)
		f.out[gt] = next[gt].total
	}
	if f.skipped["group"]+f.skipped["topic"] > 0 {
		keepIn(next, c.out)
	}
	c.out = next
}

func keepIn[K comparable](next, before map[K]counter) {
	for k, old := range before {
		if _, ok := next[k]; !ok {
			next[k] = old
		}
	}
}

// groupTopics are the offsets that groups have committed, by group and topic.
func groupTopics(lag []admin.GroupLag) map[groupTopic]map[int32]int64 {
	out := map[groupTopic]map[int32]int64{}
	for i := range lag {
		g := &lag[i]
		for j := range g.Queues {
			q := &g.Queues[j]
			gt := groupTopic{g.Group, q.Topic}
			if out[gt] == nil {
				out[gt] = map[int32]int64{}
			}
			if q.Committed.OK {
				out[gt][q.QueueID.QueueID] = q.Committed.Value
			}
		}
	}
	return out
}
