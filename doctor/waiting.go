package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mqx/admin"
	"mqx/internal/words"
)

var waitingRules = []Rule{
	{
		ID: "dlq-growing", Scope: ScopeCluster, Severity: Warning, judge: judgeDLQ,
		Looks:   "Dead letters of a group came between the two looks.",
		Meaning: "the group gives messages up after all its retries: the same failure goes on",
		Mend:    "mqx admin dlq ls <NAME>, mqx admin dlq get <NAME> --limit 1; when the cause is mended mqx admin dlq replay <NAME>",
	},
	{
		ID: "delay-stuck", Scope: ScopeCluster, Severity: Critical, judge: judgeDelay,
		Looks:   "A delay level, or the timer, has messages that were due more than a minute ago.",
		Meaning: "delayed messages, and retries of consumers, are not delivered",
		Mend:    "mqx admin broker status <NAME> --match 'name~schedule|timer'; restart the broker if it does not move, then mqx store verify DIR",
	},
	{
		ID: "transactions-open", Scope: ScopeCluster, Severity: Warning, judge: judgeTransactions,
		Looks:   "More than 100 half messages wait for their end.",
		Meaning: "their producers do not answer checks, or answer UNKNOWN: each is checked again until it is given up",
		Mend:    "mqx admin producer ls shows whether the producers of <NAME> are there; their checkLocalTransaction has to decide",
	},
	{
		ID: "transactions-given-up", Scope: ScopeCluster, Severity: Critical, judge: judgeAbandonedHalves,
		Looks:   "Half messages were given up after too many checks since the earlier look; before it, a note.",
		Meaning: "they are neither committed nor rolled back: kept in TRANS_CHECK_MAX_TIME_TOPIC and not delivered",
		Mend:    "mqx consume TRANS_CHECK_MAX_TIME_TOPIC -b <NAME> --start start --end end shows them",
	},
}

func judgeDLQ(j *judgement) {
	if j.Cluster.Before == nil {
		j.unknown(onlyOneLook)
		return
	}
	grown := map[string]int64{}
	total := int64(0)
	for _, b := range j.masters() {
		o := j.Cluster.earlier(b)
		if b.DeadLetters == nil || o == nil || o.DeadLetters == nil {
			j.unknown("%s does not tell its dead letters", nameOf(b))
			continue
		}
		for group, n := range b.DeadLetters {
			total += n
			if n > o.DeadLetters[group] {
				grown[group] += n - o.DeadLetters[group]
			}
		}
	}
	for _, group := range slices.Sorted(maps.Keys(grown)) {
		j.find(group, "%d dead letters in %s", grown[group], seconds(j.Cluster.over()))
	}
	j.ok("no dead letter came in %s (%d were ever put)", seconds(j.Cluster.over()), total)
}

func judgeDelay(j *judgement) {
	for _, b := range j.masters() {
		if b.Levels == nil {
			j.unknown("%s does not tell its delay levels", nameOf(b))
		} else {
			var late []string
			for _, level := range slices.Sorted(maps.Keys(b.Levels)) {
				late = append(late, fmt.Sprintf("level %d: %s", level, words.Count(b.Levels[level], "message")))
			}
			if len(late) > 0 {
				j.find(nameOf(b), "due for over a minute: %s", someOf(late))
			}
		}
		behind, ok := b.Int("timerReadBehind")
		if waiting, _ := b.Int("timerCongestNum"); ok && behind > 60 && waiting > 0 {
			j.find(nameOf(b), "the timer is %d s behind, %s in it", behind, words.Count(waiting, "message waits", "messages wait"))
		}
	}
	j.ok("delay levels and timers deliver in time")
}

func judgeTransactions(j *judgement) {
	for _, b := range j.masters() {
		if b.OpenTransactions == nil {
			j.unknown("%s does not tell its half messages", nameOf(b))
			continue
		}
		if n := *b.OpenTransactions; n > j.Limits.OpenTransactions {
			text := fmt.Sprintf("%d half messages wait", n)
			if o := j.Cluster.earlier(b); o != nil && o.OpenTransactions != nil {
				text += fmt.Sprintf(", %+d in %s", n-*o.OpenTransactions, seconds(j.Cluster.over()))
			}
			j.find(nameOf(b), "%s", text)
		}
	}
	j.ok("no more than %d half messages wait on a broker", j.Limits.OpenTransactions)
}

func judgeAbandonedHalves(j *judgement) {
	for _, b := range j.masters() {
		if b.Abandoned == nil {
			j.unknown("%s does not tell what it gave up", nameOf(b))
			continue
		}
		if o := j.Cluster.earlier(b); o != nil && o.Abandoned != nil && *b.Abandoned > *o.Abandoned {
			j.find(nameOf(b), "%d in %s", *b.Abandoned-*o.Abandoned, seconds(j.Cluster.over()))
		} else if *b.Abandoned > 0 {
			j.findAs(Note, nameOf(b), "%d were given up at some time", *b.Abandoned)
		}
	}
	j.ok("no transaction was given up")
}

var connectionRules = []Rule{
	{
		ID: "idle-closed", Scope: ScopeCluster, Severity: Warning, judge: judgeIdleClosed,
		Looks:   "Brokers closed connections on which nothing came for serverChannelMaxIdleTimeSeconds, or a client's heartbeats are further apart than half of it.",
		Meaning: "the client sends heartbeats too rarely (heartbeatBrokerInterval, 30 s by default), was frozen, or something between drops what it sends; it reconnects, and its queues move",
		Mend:    "mqx admin client get CLIENT; a shorter heartbeatBrokerInterval there, or mqx admin config set -b <NAME> serverChannelMaxIdleTimeSeconds=240 and a restart",
	},
}

// judgeIdleClosed names the clients where the broker does: those of mqx keep the last ones.
func judgeIdleClosed(j *judgement) {
	j.brokers(func(b *admin.BrokerSurvey) {
		who, told := b.Text("mqxIdleClosed")
		var n int64
		if told {
			n = int64(len(strings.FieldsFunc(who, func(r rune) bool { return r == ';' })))
		} else if b.IdleClosed != nil {
			n, who = *b.IdleClosed, "it does not tell of which clients"
		} else {
			j.unknown("%s does not count the connections that it closed", nameOf(b))
			return
		}
		if n > 0 {
			j.find(nameOf(b), "%d in the last hour: %s", n, who)
		}
	})
	j.ok("no connection was closed as idle in the last hour")
}
