package doctor

import (
	"cmp"
	"slices"
	"strings"

	"mqx/admin"
	"mqx/internal/sorted"
	"mqx/internal/words"
)

var nameServerRules = []Rule{
	{
		ID: "nameservers-few", Scope: ScopeCluster, Severity: Warning, judge: judgeServerCount,
		Looks:   "Fewer than three name servers are named by this command and by the brokers together.",
		Meaning: "while one of two is restarted a single one is left, and with a single one no client can start while it is down",
		Mend:    "mqx nameserver start on a third machine, then mqx admin config set -b BROKER namesrvAddr='HOST1:9876;HOST2:9876;HOST3:9876' for every broker",
	},
	{
		ID: "nameserver-silent", Scope: ScopeCluster, Severity: Critical, judge: judgeSilentServers,
		Looks:   "A name server that is named does not answer.",
		Meaning: "clients that ask it first wait for it, and get no route if they know no other",
		Mend:    "mqx nameserver start on <NAME>, or take it out of every list: mqx admin config set -b BROKER namesrvAddr=…",
	},
	{
		ID: "nameservers-disagree", Scope: ScopeCluster, Severity: Warning, judge: judgeDisagreement,
		Looks:   "A name server does not know a broker or a topic that another one knows.",
		Meaning: "clients that ask this one do not find those topics, or only part of their queues",
		Mend:    "mqx admin cluster join-check says which broker does not reach <NAME>; then mqx admin config set -b BROKER namesrvAddr=…",
	},
	{
		ID: "route-dead", Scope: ScopeCluster, Severity: Critical, judge: judgeDeadRoutes,
		Looks:   "A broker is registered and does not answer.",
		Meaning: "clients go on sending there until its registration runs out (two minutes), and messages on it cannot be read meanwhile",
		Mend:    "mqx broker start on its machine; until then mqx admin broker set <NAME> --writable=false takes it out of the routes for writing",
	},
	{
		ID: "route-expired", Scope: ScopeCluster, Severity: Warning, judge: judgeExpiredRoutes,
		Looks:   "A name server has a topic that no broker has.",
		Meaning: "the route is left over from a topic that was deleted or a broker that went: sends to it fail",
		Mend:    "mqx admin topic rm <NAME>",
	},
}

func judgeServerCount(j *judgement) {
	known := j.Cluster.Now.Known
	j.ok("%d name servers: %s", len(known), someOf(known))
	if len(known) < j.Limits.NameServers {
		j.find("", "only %d: %s", len(known), someOf(known))
	}
}

func judgeSilentServers(j *judgement) {
	for _, v := range j.Cluster.Now.NameServers {
		if v.Err != nil {
			j.find(v.Addr, "it does not answer: %v", v.Err)
		}
	}
	j.ok("%d name servers answer", len(j.Cluster.Now.NameServers))
}

func judgeDisagreement(j *judgement) {
	answered := 0
	for _, v := range j.Cluster.Now.NameServers {
		if v.Err != nil {
			j.unknown("%s does not answer", v.Addr)
			continue
		}
		answered++
		if len(v.Missing) > 0 {
			j.find(v.Addr, "it does not know %s", someOf(v.Missing))
		}
	}
	j.ok("%d name servers know the same brokers and topics", answered)
	if asked := len(j.Cluster.Now.NameServers); asked < len(j.Cluster.Now.Known) {
		j.unknown("the brokers name %d name servers, and %d were asked: give all of them with -n", len(j.Cluster.Now.Known), asked)
	}
}

func judgeDeadRoutes(j *judgement) {
	for i := range j.Cluster.Now.Brokers {
		if b := &j.Cluster.Now.Brokers[i]; b.Err != nil {
			j.find(nameOf(b), "%s is registered and does not answer: %v", b.Addr, b.Err)
		}
	}
	j.ok("%s registered, and all answer", words.Count(len(j.Cluster.Now.Brokers), "broker is", "brokers are"))
}

func judgeExpiredRoutes(j *judgement) {
	s := j.Cluster.Now
	there := map[string]bool{}
	for i := range s.Brokers {
		b := &s.Brokers[i]
		there[b.Name], there[b.Cluster] = true, true
		if b.Topics == nil {
			j.unknown("%s does not tell its topics", nameOf(b))
			return
		}
		for _, t := range b.Topics {
			there[t.Name] = true
		}
	}
	topics := 0
	for _, v := range s.NameServers {
		for _, t := range v.Topics {
			topics++
			if !there[t] && !strings.HasPrefix(t, "rmq_sys_") {
				j.find(t, "%s has a route for it, and none of %d brokers has the topic", v.Addr, len(s.Brokers))
			}
		}
	}
	j.found = slices.CompactFunc(sortedBySubject(j.found), func(a, b Finding) bool { return a.Subject == b.Subject })
	j.ok("every topic of the name servers is on a broker (%s)", words.Count(topics, "route"))
}

func sortedBySubject(list []Finding) []Finding {
	sorted.Stably(list, func(a, b Finding) int { return cmp.Compare(a.Subject, b.Subject) })
	return list
}

// masters are the brokers that take writes and answered.
func (j *judgement) masters() []*admin.BrokerSurvey {
	var out []*admin.BrokerSurvey
	j.brokers(func(b *admin.BrokerSurvey) {
		if b.IsMaster() {
			out = append(out, b)
		}
	})
	return out
}
