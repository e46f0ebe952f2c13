package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"mqx/admin"
	"mqx/internal/words"
)

var lagRules = []Rule{
	{
		ID: "lag-no-consumer", Scope: ScopeCluster, Severity: Critical, judge: judgeAbandoned,
		Looks:   "The lag of a group grows and the group has no consumer.",
		Meaning: "messages come in that nobody reads; when retention deletes them they are lost to the group",
		Mend:    "start the consumers of <NAME>; if the group is no longer needed: mqx admin group rm <NAME>",
	},
	{
		ID: "consume-behind", Scope: ScopeCluster, Severity: Warning, judge: judgeBehind,
		Looks:   "A group with consumers consumed less than was produced for the whole time between the two looks (--for), and is further behind than that time.",
		Meaning: "the lag grows for as long as this goes on",
		Mend:    "mqx admin group status <NAME> shows which client is slow; more consumers up to the number of queues, then mqx admin queue resize start -t TOPIC --queues N",
	},
	{
		ID: "expires-unread", Scope: ScopeCluster, Severity: Critical, judge: judgeExpires,
		Looks:   "Retention will delete messages before a group has read them: the oldest unread has used up half of fileReservedTime, or at the rate of the last look the backlog takes longer than it.",
		Meaning: "they are lost to the group",
		Mend:    "mqx admin config set -b BROKER fileReservedTime=HOURS gives it time; then mqx admin lag get -g <NAME> --sort age",
	},
	{
		ID: "deleted-unread", Scope: ScopeCluster, Severity: Critical, judge: judgeLost,
		Looks:   "Messages went before a group had read them.",
		Meaning: "the offset of the group lies before the first message of the queue: what was between is lost to it",
		Mend:    "mqx admin offset reset -g <NAME> --all --to start makes it begin at what is there; copies of a backup: mqx store export",
	},
}

// flow is what one group did in one topic between the two surveys.
type flow struct {
	topic              string
	produced, consumed int64
	lag, before        int64
	queues             int
	unknown            int // queues that one of the surveys does not know
}

// flows sums up the queues of a group by topic.
func (j *judgement) flows(g *admin.GroupLag) []flow {
	by := map[string]*flow{}
	for i := range g.Queues {
		q := &g.Queues[i]
		f := by[q.Topic]
		if f == nil {
			f = &flow{topic: q.Topic}
			by[q.Topic] = f
		}
		f.queues++
		o := j.queueBefore(g.Group, q)
		if o == nil || !o.Max.OK || !q.Max.OK || !q.Lag.OK || !o.Lag.OK {
			f.unknown++
			continue
		}
		f.produced += q.Max.Value - o.Max.Value
		if q.Committed.OK && o.Committed.OK {
			f.consumed += q.Committed.Value - o.Committed.Value
		}
		f.lag += q.Lag.Value
		f.before += o.Lag.Value
	}
	var out []flow
	for _, t := range slices.Sorted(maps.Keys(by)) {
		out = append(out, *by[t])
	}
	return out
}

const onlyOneLook = "there is one look at the cluster only, and rates need two (--for)"

func judgeAbandoned(j *judgement) {
	if j.Cluster.Before == nil {
		j.unknown(onlyOneLook)
		return
	}
	offline := 0
	j.groups(func(g *admin.GroupLag) {
		if g.Online {
			return
		}
		offline++
		for _, f := range j.flows(g) {
			if f.lag > f.before {
				j.find(g.Group, "%s: lag %d, %d more than %s before, and no consumer is connected", f.topic, f.lag, f.lag-f.before, seconds(j.Cluster.over()))
			}
		}
	})
	j.ok("the lag of no group without a consumer grows (%d such groups)", offline)
}

func judgeBehind(j *judgement) {
	if j.Cluster.Before == nil {
		j.unknown(onlyOneLook)
		return
	}
	over := j.Cluster.over()
	j.groups(func(g *admin.GroupLag) {
		if !g.Online {
			return
		}
		for _, f := range j.flows(g) {
			// Offsets are committed every few seconds: only a lag of more than was produced
			// in all of the time is behind.
			if growth := f.lag - f.before; f.produced > 0 && float64(growth) > 0.1*float64(f.produced) && f.lag >= f.produced {
				per := func(n int64) float64 { return float64(n) / over.Seconds() }
				j.find(g.Group, "%s: %.1f messages/s came and %.1f/s were consumed for %s; lag %d, %d more", f.topic, per(f.produced), per(f.consumed), seconds(over), f.lag, growth)
			}
		}
	})
	j.ok("every group with consumers kept up for %s", seconds(over))
}

// retention is fileReservedTime of the broker of a queue, 0 where it is not told.
func (j *judgement) retention(q *admin.QueueLag) time.Duration {
	for i := range j.Cluster.Now.Brokers {
		if b := &j.Cluster.Now.Brokers[i]; b.Name == q.Broker && b.IsMaster() {
			if n, err := strconv.ParseInt(b.Config["fileReservedTime"], 10, 32); err == nil {
				return time.Duration(n) * time.Hour
			}
		}
	}
	return 0
}

func judgeExpires(j *judgement) {
	j.groups(func(g *admin.GroupLag) {
		for i := range g.Queues {
			q := &g.Queues[i]
			if q.Lag.OK && q.Lag.Value == 0 || q.Lost > 0 {
				continue
			}
			keep := j.retention(q)
			switch {
			case q.Expires == admin.WillNo:
			case !q.Lag.OK && !q.Committed.OK: // never committed: it begins where its consumers say
			case keep == 0 || !q.Age.OK:
				j.unknown("age or retention of %s queue %d on %s is not known", q.Topic, q.QueueID.QueueID, q.Broker)
			case q.Age.Value >= keep/2:
				bad := Warning
				if q.Age.Value >= keep*3/4 {
					bad = Critical
				}
				j.findAs(bad, g.Group, "%s queue %d on %s: %d unread, the oldest for %s; kept for %s", q.Topic, q.QueueID.QueueID, q.Broker, q.Lag.Value, seconds(q.Age.Value), keep)
			default:
				if takes, ok := j.timeToDrain(g.Group, q); ok && takes > keep {
					j.find(g.Group, "%s queue %d on %s: %d unread, which take %s at the rate of the last %s; kept for %s",
						q.Topic, q.QueueID.QueueID, q.Broker, q.Lag.Value, takes.Round(time.Minute), seconds(j.Cluster.over()), keep)
				}
			}
		}
	})
	j.ok("no group is behind by half of the time that messages are kept")
}

// timeToDrain is how long a backlog takes at the rate between the surveys; ok is false
// where nothing was consumed, or it is not known.
func (j *judgement) timeToDrain(group string, q *admin.QueueLag) (takes time.Duration, ok bool) {
	o := j.queueBefore(group, q)
	if o == nil || !o.Committed.OK || !q.Committed.OK || !q.Lag.OK || q.Committed.Value <= o.Committed.Value {
		return 0, false
	}
	per := float64(q.Committed.Value-o.Committed.Value) / j.Cluster.over().Seconds()
	const century = 100 * 365 * 24 * time.Hour
	return time.Duration(min(float64(century), float64(q.Lag.Value)/per*float64(time.Second))), true
}

func judgeLost(j *judgement) {
	j.groups(func(g *admin.GroupLag) {
		var lost int64
		var where []string
		for i := range g.Queues {
			if q := &g.Queues[i]; q.Lost > 0 {
				lost += q.Lost
				where = append(where, fmt.Sprintf("%s queue %d on %s", q.Topic, q.QueueID.QueueID, q.Broker))
			}
		}
		if lost > 0 {
			j.find(g.Group, "%s: %s", words.Count(lost, "message"), someOf(where))
		}
	})
	j.ok("every group stands at messages that are there")
}
