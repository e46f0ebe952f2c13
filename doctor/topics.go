package doctor

import (
	"maps"
	"slices"
	"strings"

	"mqx/admin"
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
		Looks:   "A topic looks as if a send had created it: a broker creates topics on its own, and it has the queues of the template and no setting of its own.",
		Meaning: "its number of queues and brokers came by chance, and a misspelled name becomes a topic",
		Mend:    "mqx admin config set -b BROKER autoCreateTopicEnable=false once the wanted topics are there; mqx admin topic rm <NAME> if it is a mistake",
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

// templateQueues are the numbers of queues of a topic that a send created: what clients
// ask for, bounded by defaultTopicQueueNums (8, and Apache's producers ask for 4).
func templateQueues(n int32) bool { return n == 4 || n == 8 }

func judgeAutoCreated(j *judgement) {
	for _, b := range j.masters() {
		auto, there := b.Config["autoCreateTopicEnable"]
		switch {
		case !there || b.Topics == nil:
			j.unknown("%s does not tell whether it creates topics", nameOf(b))
		case auto == "true":
			for _, t := range b.Topics {
				if t.Kind == admin.KindNormal && t.Plain && t.Perm == 6 && t.Read == t.Write && templateQueues(t.Read) {
					j.find(t.Name, "%d queues and no setting of its own on %s, which creates topics (autoCreateTopicEnable=true)", t.Read, nameOf(b))
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
