package doctor

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"mqx/admin"
	"mqx/internal/words"
)

var topicRules = []Rule{
	{
		ID: "topic-one-broker", Scope: ScopeCluster, Severity: Warning, judge: judgeOneBroker,
		Looks:   "A topic is on one broker only, in a cluster of several.",
		Meaning: "when that broker is down nobody can send to it; usually a send created it while only that broker was known",
		Mend:    "mqx admin topic spread <NAME> --target BROKER",
	},
	{
		ID: "topic-auto-created", Scope: ScopeCluster, Severity: Note, judge: judgeAutoCreated,
		Looks:   "A topic may have been created by a send: a broker creates topics on its own, and it has as many queues as a send asks for (4, or fewer where defaultTopicQueueNums says so) and no setting of its own. Brokers do not note who made a topic: one that was made by hand with as many queues looks the same, one with 8, the number of topic create, is not listed.",
		Meaning: "if so, its number of queues and brokers came by chance, and a misspelled name becomes a topic",
		Mend:    "mqx admin config set -b BROKER autoCreateTopicEnable=false once the wanted topics are there; mqx admin topic rm <NAME> if it is a mistake, nothing if it was made by hand",
	},
	{
		ID: "template-left", Scope: ScopeCluster, Severity: Warning, judge: judgeTemplate,
		Looks:   "Brokers no longer create topics on their own, and the route of the template (TBW102) is still there.",
		Meaning: "clients take the template for a permission to send to topics that do not exist, and every such send fails late",
		Mend:    "mqx admin topic rm TBW102 -b <NAME>, or restart the broker",
	},
}

// normalTopics are the topics of users by cluster and name, with the brokers that have them.
func (j *judgement) normalTopics() (topics map[string]map[string][]*admin.BrokerSurvey, masters map[string]int, whole bool) {
	topics, masters, whole = map[string]map[string][]*admin.BrokerSurvey{}, map[string]int{}, true
	for i := range j.Cluster.Now.Brokers {
		b := &j.Cluster.Now.Brokers[i]
		if !b.IsMaster() {
			continue
		}
		masters[b.Cluster]++
		if b.Topics == nil {
			j.unknown("%s does not tell its topics", nameOf(b))
			whole = false
			continue
		}
		if topics[b.Cluster] == nil {
			topics[b.Cluster] = map[string][]*admin.BrokerSurvey{}
		}
		for _, t := range b.Topics {
			if t.Kind == admin.KindNormal && !strings.HasPrefix(t.Name, "%LMQ%") {
				topics[b.Cluster][t.Name] = append(topics[b.Cluster][t.Name], b)
			}
		}
	}
	return topics, masters, whole
}

func judgeOneBroker(j *judgement) {
	topics, masters, whole := j.normalTopics()
	for _, cluster := range slices.Sorted(maps.Keys(topics)) {
		if masters[cluster] < 2 || !whole {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(topics[cluster])) {
			if at := topics[cluster][name]; len(at) == 1 {
				j.find(name, "only on %s, of %d brokers in cluster %s", nameOf(at[0]), masters[cluster], cluster)
			}
		}
	}
	j.ok("every topic is on several brokers, where there are several")
}

// queuesOfSend is how many queues a topic gets that a send creates: the 4 that producers ask
// for where nobody told them otherwise, but no more than the template has.
func queuesOfSend(b *admin.BrokerSurvey) int32 {
	const asked = 4
	most, err := strconv.ParseInt(b.Config["defaultTopicQueueNums"], 10, 32)
	if err != nil {
		return asked
	}
	return min(asked, int32(most))
}

func judgeAutoCreated(j *judgement) {
	for _, b := range j.masters() {
		auto, there := b.Config["autoCreateTopicEnable"]
		switch {
		case !there || b.Topics == nil:
			j.unknown("%s does not tell whether it creates topics", nameOf(b))
		case auto == "true":
			for _, t := range b.Topics {
				if t.Kind == admin.KindNormal && t.Plain && t.Perm == 6 && t.Read == t.Write && t.Read == queuesOfSend(b) {
					j.find(t.Name, "%s, as a send asks for, and no setting of its own on %s, which creates topics (autoCreateTopicEnable=true); who made it is noted nowhere", words.Count(t.Read, "queue"), nameOf(b))
				}
			}
		}
	}
	j.found = slices.CompactFunc(sortedBySubject(j.found), func(a, b Finding) bool { return a.Subject == b.Subject })
	j.ok("no broker creates topics on its own, or none of them looks so")
}

func judgeTemplate(j *judgement) {
	routed := map[string]bool{}
	for _, v := range j.Cluster.Now.NameServers {
		for _, t := range v.Topics {
			routed[t] = true
		}
	}
	for _, b := range j.masters() {
		if b.Config["autoCreateTopicEnable"] != "false" || b.Topics == nil || !routed["TBW102"] {
			continue
		}
		for _, t := range b.Topics {
			if t.Name == "TBW102" && t.Perm&1 != 0 {
				j.find(nameOf(b), "autoCreateTopicEnable=false, and it still has TBW102 with the permission to inherit")
			}
		}
	}
	j.ok("no template is left")
}
