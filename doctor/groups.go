package doctor

import (
	"cmp"
	"fmt"
	"strings"

	"mqx/admin"
	"mqx/internal/words"
)

var groupRules = []Rule{
	{
		ID: "subscriptions-differ", Scope: ScopeCluster, Severity: Critical, judge: judgeSubscriptions,
		Looks:   "Members of one group subscribe to different topics or tags.",
		Meaning: "the broker keeps one subscription a group: the members take it from each other in turn, and messages are skipped",
		Mend:    "give all members of <NAME> the same subscription, or groups of their own: mqx admin group status <NAME> --show subscriptions",
	},
	{
		ID: "queue-no-owner", Scope: ScopeCluster, Severity: Critical, judge: judgeOwners,
		Looks:   "A queue that a group reads has no member that reads it.",
		Meaning: "what is in it is not consumed: members that do not agree on topics, or that do not know new queues or brokers yet",
		Mend:    "mqx admin group status <NAME> --show queues; restart the members that do not know the queue",
	},
	{
		ID: "client-no-queue", Scope: ScopeCluster, Severity: Warning, judge: judgeIdle,
		Looks:   "A member of a group has no queue: there are more members than queues.",
		Meaning: "it does nothing; it would take over if another went",
		Mend:    "fewer members, or more queues: mqx admin queue resize start -t TOPIC --queues N",
	},
	{
		ID: "client-id-twice", Scope: ScopeCluster, Severity: Critical, judge: judgeSameID,
		Looks:   "Two connections of a group have one client id.",
		Meaning: "both count themselves as one member: queues are read twice or by nobody",
		Mend:    "give every process of <NAME> an instance name of its own (setInstanceName, or its host and pid); mqx admin client get CLIENT",
	},
	{
		ID: "client-silent", Scope: ScopeCluster, Severity: Note, judge: judgeSilentMembers,
		Looks:   "A member does not say what it reads.",
		Meaning: "owners of queues and subscriptions cannot be compared for its group; clients of other languages often do not answer",
		Mend:    "mqx admin group status <NAME>",
	},
}

// members says why what members told is not whole.
func (j *judgement) silent(g *admin.GroupLag) bool {
	if marked(g.Marks, admin.MarkSilent) {
		j.unknown("members of %s do not say what they read", g.Group)
		return true
	}
	return false
}

// judgeSubscriptions shows both subscriptions side by side (N043).
func judgeSubscriptions(j *judgement) {
	online := 0
	j.groups(func(g *admin.GroupLag) {
		if !g.Online {
			return
		}
		online++
		if !marked(g.Marks, admin.MarkSubscriptions) {
			j.silent(g)
			return
		}
		var sides []string
		seen := map[string]bool{}
		for i := range g.Members {
			m := &g.Members[i]
			if !m.Told {
				continue
			}
			text := subscriptions(m)
			if !seen[text] {
				seen[text] = true
				sides = append(sides, fmt.Sprintf("%s has %s", m.ClientID, text))
			}
		}
		j.find(g.Group, "%s", someOf(sides))
	})
	j.ok("the members of each group subscribe to the same (%s online)", words.Count(online, "group"))
}

func subscriptions(m *admin.LagMember) string {
	var parts []string
	for _, s := range m.Subscriptions {
		if !strings.HasPrefix(s.Topic, "%RETRY%") {
			parts = append(parts, s.Topic+" "+cmp.Or(s.Type, "TAG")+" "+s.Expression)
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " + ")
}

func judgeOwners(j *judgement) {
	j.groups(func(g *admin.GroupLag) {
		if !g.Online || j.silent(g) {
			return
		}
		var queues []string
		var lag int64
		for i := range g.Queues {
			if q := &g.Queues[i]; marked(q.Marks, admin.MarkNoOwner) {
				queues = append(queues, fmt.Sprintf("%s queue %d on %s", q.Topic, q.QueueID.QueueID, q.Broker))
				lag += q.Lag.Or(0)
			}
		}
		if len(queues) > 0 {
			bad := j.rule.Severity
			if lag == 0 {
				bad = Warning
			}
			j.findAs(bad, g.Group, "%s; %s there", someOf(queues), words.Count(lag, "message waits", "messages wait"))
		}
	})
	j.ok("every queue of every group that is online has a member")
}

func judgeIdle(j *judgement) {
	j.groups(func(g *admin.GroupLag) {
		if !g.Online || j.silent(g) {
			return
		}
		var idle []string
		for i := range g.Members {
			if m := &g.Members[i]; marked(m.Marks, admin.MarkIdle) {
				idle = append(idle, m.ClientID)
			}
		}
		if len(idle) > 0 {
			queues := 0
			for i := range g.Queues {
				if !g.Queues[i].Retry {
					queues++
				}
			}
			j.find(g.Group, "%d of %d members have no queue (%s): %s", len(idle), len(g.Members), words.Count(queues, "queue"), someOf(idle))
		}
	})
	j.ok("every member has a queue")
}

func judgeSameID(j *judgement) {
	j.groups(func(g *admin.GroupLag) {
		for i := range g.Members {
			if m := &g.Members[i]; marked(m.Marks, admin.MarkDuplicateID) {
				j.find(g.Group, "%s is connected from %s", m.ClientID, someOf(m.Addrs))
			}
		}
	})
	j.ok("every member has an id of its own")
}

func judgeSilentMembers(j *judgement) {
	j.groups(func(g *admin.GroupLag) {
		var silent []string
		for i := range g.Members {
			if m := &g.Members[i]; marked(m.Marks, admin.MarkSilent) {
				silent = append(silent, m.ClientID)
			}
		}
		if len(silent) > 0 {
			j.find(g.Group, "%s", someOf(silent))
		}
	})
	j.ok("every member says what it reads")
}
