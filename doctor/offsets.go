package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"mqx/admin"
)

var offsetRules = []Rule{
	{
		ID: "offset-beyond", Scope: ScopeCluster, Severity: Critical, judge: judgeBeyond,
		Looks:   "A group, or the progress of a delay level, stands behind the end of its queue.",
		Meaning: "the next messages up to there are skipped: the topic was deleted and made anew, or the log was cut",
		Mend:    "mqx admin offset reset -g <NAME> -t TOPIC --to end",
	},
	{
		ID: "offset-back", Scope: ScopeCluster, Severity: Critical, judge: judgeBack,
		Looks:   "A committed offset went back between the two looks.",
		Meaning: "what was consumed is consumed again: a client that committed after a network fault, or somebody reset it",
		Mend:    "mqx admin offset reset -g <NAME> -t TOPIC --to @TIME, if nobody meant it; mqx admin undo --list shows resets from here",
	},
}

func judgeBeyond(j *judgement) {
	j.groups(func(g *admin.GroupLag) {
		for i := range g.Queues {
			if q := &g.Queues[i]; marked(q.Marks, admin.MarkBeyondEnd) {
				mend := strings.ReplaceAll(strings.ReplaceAll(j.rule.Mend, "<NAME>", g.Group), "TOPIC", q.Topic)
				j.findMend(Critical, g.Group, mend, "%s queue %d on %s: committed %d, the queue ends at %d", q.Topic, q.QueueID.QueueID, q.Broker, q.Committed.Value, q.Max.Value)
			}
		}
	})
	j.brokers(func(b *admin.BrokerSurvey) {
		for key, text := range b.Values {
			level, ok := strings.CutPrefix(key, "scheduleMessageOffset_")
			at, end, both := strings.Cut(text, ",")
			done, errDone := strconv.ParseInt(strings.TrimSpace(at), 10, 64)
			most, errMost := strconv.ParseInt(strings.TrimSpace(end), 10, 64)
			if ok && both && errDone == nil && errMost == nil && done > most {
				j.findMend(Critical, nameOf(b), "restart "+nameOf(b)+", which sets it right on an mqx broker", "delay level %s stands at %d, its queue ends at %d", level, done, most)
			}
		}
	})
	j.ok("no offset is behind the end of its queue")
}

// judgeBack also takes an offset below the earlier one for what it is where a queue was
// emptied meanwhile.
func judgeBack(j *judgement) {
	if j.Cluster.Before == nil {
		j.unknown(onlyOneLook)
		return
	}
	j.groups(func(g *admin.GroupLag) {
		for i := range g.Queues {
			q := &g.Queues[i]
			o := j.queueBefore(g.Group, q)
			if o == nil || !o.Committed.OK || !q.Committed.OK || q.Committed.Value >= o.Committed.Value {
				continue
			}
			mend := strings.ReplaceAll(strings.ReplaceAll(j.rule.Mend, "<NAME>", g.Group), "TOPIC", q.Topic)
			j.findMend(Critical, g.Group, mend, "%s", fmt.Sprintf("%s queue %d on %s: committed %d, %s ago it was %d",
				q.Topic, q.QueueID.QueueID, q.Broker, q.Committed.Value, seconds(j.Cluster.over()), o.Committed.Value))
		}
	})
	j.ok("no offset went back in %s", seconds(j.Cluster.over()))
}
