package doctor

import (
	"cmp"
	"time"

	"mqx/admin"
)

// Cluster is the evidence of a live cluster.
type Cluster struct {
	Now *admin.Survey
	// Before is an earlier survey, of counts alone; nil: there is none, and rates are not known.
	Before *admin.Survey
}

// over is the time between the two surveys, 0 without an earlier one.
func (c *Cluster) over() time.Duration {
	if c.Before == nil {
		return 0
	}
	return c.Now.At.Sub(c.Before.At)
}

// earlier is the same broker in the earlier survey, nil where it was not there.
func (c *Cluster) earlier(b *admin.BrokerSurvey) *admin.BrokerSurvey {
	if c.Before == nil {
		return nil
	}
	for i := range c.Before.Brokers {
		if o := &c.Before.Brokers[i]; o.Addr == b.Addr && o.Err == nil {
			return o
		}
	}
	return nil
}

// queueBefore is the same queue of a group in the earlier survey, nil where it was not there.
func (j *judgement) queueBefore(group string, q *admin.QueueLag) *admin.QueueLag {
	c := j.Cluster
	if c.Before == nil || c.Before.Lag == nil {
		return nil
	}
	if j.earlier == nil {
		j.earlier = map[groupQueue]*admin.QueueLag{}
		for i := range c.Before.Lag.Groups {
			g := &c.Before.Lag.Groups[i]
			for k := range g.Queues {
				j.earlier[groupQueue{g.Group, g.Queues[k].QueueID}] = &g.Queues[k]
			}
		}
	}
	return j.earlier[groupQueue{group, q.QueueID}]
}

// groupQueue is a queue as one group reads it.
type groupQueue struct {
	group string
	queue admin.QueueID
}

// brokers calls f for every broker that answered, and says which did not.
func (j *judgement) brokers(f func(b *admin.BrokerSurvey)) {
	for i := range j.Cluster.Now.Brokers {
		b := &j.Cluster.Now.Brokers[i]
		if b.Err != nil {
			j.unknown("%s does not answer", nameOf(b))
			continue
		}
		f(b)
	}
}

// groups calls f for every group that shares its work: of groups that broadcast, brokers
// know no offsets (N119).
func (j *judgement) groups(f func(g *admin.GroupLag)) {
	lag := j.Cluster.Now.Lag
	if lag == nil {
		j.unknown("the lag of groups could not be read")
		return
	}
	for _, e := range lag.Errors {
		j.unknown("%s did not tell its lag", cmp.Or(e.Broker, e.Addr))
	}
	for i := range lag.Groups {
		if g := &lag.Groups[i]; !marked(g.Marks, admin.MarkBroadcast) {
			f(g)
		}
	}
}

func marked(marks []string, m string) bool {
	for _, x := range marks {
		if x == m {
			return true
		}
	}
	return false
}

func nameOf(b *admin.BrokerSurvey) string { return cmp.Or(b.Name, b.Addr) }

// seconds is a duration as text, without fractions that mean nothing.
func seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }
