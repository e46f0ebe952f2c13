package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mqx/admin"
)

// healthy is a cluster of two brokers in which nothing is wrong, looked at twice.
func healthy() *Cluster {
	return &Cluster{Before: survey(time.Unix(1000, 0)), Now: survey(time.Unix(1010, 0))}
}

func survey(at time.Time) *admin.Survey {
	s := &admin.Survey{At: at, Known: []string{"n1:9876", "n2:9876", "n3:9876"}}
	for _, addr := range s.Known {
		s.NameServers = append(s.NameServers, admin.NameServerView{Addr: addr, Topics: []string{"T"}})
	}
	for _, name := range []string{"a", "b"} {
		zero := func() *int64 { return new(int64) }
		b := admin.BrokerSurvey{
			BrokerStatus: admin.BrokerStatus{Broker: admin.Broker{Cluster: "c", Name: name, Addr: name + ":10911"}, Values: map[string]string{
				"brokerVersionDesc": "V5_5_0", "commitLogDiskRatio": "0.40", "consumeQueueDiskRatio": "0.40", "sendThreadPoolQueueHeadWaitTimeMills": "0",
				"pageCacheLockTimeMills": "0", "putMessageFailedTimes": "0", "putLatency99": "1.00", "remainHowManyDataToFlush": "0 B", "dispatchBehindBytes": "0",
				"timerReadBehind": "0", "mqxIdleClosed": "", "mqxRefused_queued": "0", "mqxRefused_locked": "0", "mqxRefused_appended": "0", "mqxRefused_flushed": "0",
			}},
			Config: map[string]string{"fileReservedTime": "72", "autoCreateTopicEnable": "false", "flushDiskType": "ASYNC_FLUSH", "brokerName": name},
			Ports:  map[string]error{"main": nil}, PortAddrs: map[string]string{"main": name + ":10911", "vip": name + ":10909"},
			Topics:           []admin.SurveyTopic{{Name: "T", Kind: admin.KindNormal, Read: 4, Write: 4, Perm: 6, Plain: true}},
			Levels:           map[int]int64{},
			OpenTransactions: zero(), Abandoned: zero(), DeadLetters: map[string]int64{},
			ClockLeast: -time.Second, ClockMost: time.Second,
			Reached: map[string]error{},
		}
		for _, ns := range s.NameServers {
			b.Reached[ns.Addr] = nil
		}
		s.Brokers = append(s.Brokers, b)
	}
	g := admin.GroupLag{Group: "g", Online: true, Model: "CLUSTERING", Members: []admin.LagMember{{Told: true}}}
	g.Members[0].ClientID = "client-1"
	g.Queues = []admin.QueueLag{queue("T", 0, 100, 100)}
	s.Lag = &admin.Lag{Groups: []admin.GroupLag{g}}
	return s
}

// queue is a queue that starts at 0.
func queue(topic string, id int32, committed, end int64) admin.QueueLag {
	q := admin.QueueLag{QueueID: admin.QueueID{Topic: topic, Broker: "a", QueueID: id}, Expires: admin.WillNo}
	q.Min.OK, q.Max.OK, q.Committed.OK, q.Lag.OK = true, true, true, true
	q.Max.Value, q.Committed.Value, q.Lag.Value = end, committed, max(0, end-committed)
	return q
}

func verdictOf(t *testing.T, e Evidence, rule string) []Finding {
	t.Helper()
	return Diagnose(e, Choice{Only: []string{rule}})
}

// Nothing is found in a healthy cluster, and everything is known.
func TestHealthyCluster(t *testing.T) {
	for _, f := range Diagnose(Evidence{Cluster: healthy()}, Choice{}) {
		if f.Verdict != OK || f.Evidence == "" {
			t.Errorf("%+v", f)
		}
	}
}

// clusterCases: each makes one thing wrong, or takes one evidence away.
var clusterCases = []struct {
	rule     string
	want     Verdict
	evidence string // a part of it
	change   func(c *Cluster)
}{
	{"nameservers-few", Found, "only 2", func(c *Cluster) { c.Now.Known = c.Now.Known[:2] }},
	{"nameserver-silent", Found, "does not answer: gone", func(c *Cluster) { c.Now.NameServers[1].Err = errors.New("gone") }},
	{"nameservers-disagree", Found, "does not know topic T", func(c *Cluster) { c.Now.NameServers[1].Missing = []string{"topic T"} }},
	{"nameservers-disagree", Unknown, "n2:9876 does not answer", func(c *Cluster) { c.Now.NameServers[1].Err = errors.New("gone") }},
	{"nameservers-disagree", Unknown, "name 3 name servers, and 1 were asked", func(c *Cluster) { c.Now.NameServers = c.Now.NameServers[:1] }},
	{"route-dead", Found, "does not answer: gone", func(c *Cluster) { c.Now.Brokers[1].Err = errors.New("gone") }},
	{"route-expired", Found, "none of 2 brokers", func(c *Cluster) { c.Now.NameServers[0].Topics = []string{"T", "OLD"} }},
	{"route-expired", Unknown, "b does not tell its topics", func(c *Cluster) { c.Now.Brokers[1].Topics = nil }},
	{"config-differs", Found, `b has "SYNC_FLUSH"`, func(c *Cluster) { c.Now.Brokers[1].Config["flushDiskType"] = "SYNC_FLUSH" }},
	{"config-differs", Unknown, "b does not tell", func(c *Cluster) { c.Now.Brokers[1].Config = nil }},
	{"version-differs", Found, "V4_9_7 on b; V5_5_0 on a", func(c *Cluster) { c.Now.Brokers[1].Values["brokerVersionDesc"] = "V4_9_7" }},
	{"version-differs", Unknown, "b does not tell its version", func(c *Cluster) { delete(c.Now.Brokers[1].Values, "brokerVersionDesc") }},
	// N063: the clocks of two brokers that are each within the limit of this machine's may differ by more.
	{"clock-differs", Found, "at least 9s ahead of this machine's clock", func(c *Cluster) {
		c.Now.Brokers[1].ClockLeast, c.Now.Brokers[1].ClockMost = 9*time.Second, 10*time.Second
	}},
	{"clock-differs", Found, "at least 3s ahead of the clock of a", func(c *Cluster) {
		c.Now.Brokers[0].ClockLeast, c.Now.Brokers[0].ClockMost = -2*time.Second, -1500*time.Millisecond
		c.Now.Brokers[1].ClockLeast, c.Now.Brokers[1].ClockMost = 1500*time.Millisecond, 2*time.Second
	}},
	{"clock-differs", Unknown, "b: no time", func(c *Cluster) { c.Now.Brokers[1].ClockErr = errors.New("no time") }},
	{"address-unreachable", Found, "b:10911 takes no connection", func(c *Cluster) { c.Now.Brokers[1].Ports["main"] = errors.New("refused") }},
	{"address-unreachable", Unknown, "not tried", func(c *Cluster) { c.Now.Brokers[1].Ports = nil }},
	{"address-unreachable", Found, "b:10911 takes no connection from name server n1:9876: timed out", func(c *Cluster) { c.Now.Brokers[1].Reached["n1:9876"] = errors.New("timed out") }},
	{"address-unreachable", Unknown, "n2:9876 does not tell", func(c *Cluster) {
		for i := range c.Now.Brokers {
			delete(c.Now.Brokers[i].Reached, "n2:9876")
		}
	}},
	{"ha-gap", Found, "1 replica is registered and 0 are connected", func(c *Cluster) { withReplica(c) }},
	{"ha-gap", Unknown, "does not tell how it replicates", func(c *Cluster) { withReplica(c); c.Now.Brokers[0].HA = nil }},
	{"disk-watermark", Found, "at 75 % expired files", func(c *Cluster) { c.Now.Brokers[1].Values["commitLogDiskRatio"] = "0.78" }},
	{"disk-watermark", Found, "at 75 % expired files are deleted at any hour, 3 points from here", func(c *Cluster) { c.Now.Brokers[1].Values["commitLogDiskRatio"] = "0.72" }},
	{"disk-watermark", Found, "at 95 % messages are refused, 5 points", func(c *Cluster) {
		c.Now.Brokers[1].Values["commitLogDiskRatio"], c.Now.Brokers[1].Config["diskSpaceWarningLevelRatio"] = "0.90", "95"
	}},
	{"disk-watermark", Unknown, "b does not tell", func(c *Cluster) { c.Now.Brokers[1].Values["commitLogDiskRatio"] = "-1" }},
	{"disk-other-volume", Found, "log is 40 % full, that of the queues 80 %", func(c *Cluster) { c.Now.Brokers[1].Values["consumeQueueDiskRatio"] = "0.8" }},
	{"disk-other-volume", Unknown, "both ratios", func(c *Cluster) { delete(c.Now.Brokers[1].Values, "consumeQueueDiskRatio") }},
	{"rejected-queued", Found, "waits for 900ms", func(c *Cluster) { c.Now.Brokers[1].Values["sendThreadPoolQueueHeadWaitTimeMills"] = "900" }},
	{"rejected-queued", Found, "7 requests were refused in 10s at the stage queued", func(c *Cluster) { c.Now.Brokers[1].Values["mqxRefused_queued"] = "7" }},
	{"rejected-queued", Unknown, "b does not tell", func(c *Cluster) { delete(c.Now.Brokers[1].Values, "sendThreadPoolQueueHeadWaitTimeMills") }},
	{"rejected-locked", Found, "holds the lock for 1.5s", func(c *Cluster) { c.Now.Brokers[1].Values["pageCacheLockTimeMills"] = "1500" }},
	{"rejected-locked", Found, "at the stage locked", func(c *Cluster) { c.Now.Brokers[1].Values["mqxRefused_locked"] = "1" }},
	{"rejected-locked", Unknown, "b does not tell", func(c *Cluster) { delete(c.Now.Brokers[1].Values, "pageCacheLockTimeMills") }},
	{"rejected-appended", Found, "3 puts failed in 10s", func(c *Cluster) { c.Now.Brokers[1].Values["putMessageFailedTimes"] = "3" }},
	{"rejected-appended", Found, "up to 450 ms", func(c *Cluster) { c.Now.Brokers[1].Values["putLatency99"] = "450.00" }},
	{"rejected-appended", Unknown, "two looks", func(c *Cluster) { c.Before = nil }},
	{"rejected-flushed", Found, "1.5 GiB of the log are not on disk", func(c *Cluster) { c.Now.Brokers[1].Values["remainHowManyDataToFlush"] = "1.5 GiB" }},
	{"rejected-flushed", Unknown, "b does not tell", func(c *Cluster) { delete(c.Now.Brokers[1].Values, "remainHowManyDataToFlush") }},
	{"dispatch-behind", Found, "64.0 MiB of the log are not in the queues, 0 B 10s ago", func(c *Cluster) { c.Now.Brokers[1].Values["dispatchBehindBytes"] = "67108864" }},
	{"dispatch-behind", Unknown, "b does not tell", func(c *Cluster) { delete(c.Now.Brokers[1].Values, "dispatchBehindBytes") }},
	{"lag-no-consumer", Found, "T: lag 50, 50 more than 10s before", func(c *Cluster) { group(c).Online, group(c).Queues[0] = false, queue("T", 0, 100, 150) }},
	{"lag-no-consumer", OK, "", func(c *Cluster) { group(c).Online = false }},
	{"lag-no-consumer", Unknown, "one look", func(c *Cluster) { c.Before = nil }},
	// N119: a group that broadcasts has no lag that a broker knows.
	{"lag-no-consumer", OK, "", func(c *Cluster) {
		group(c).Online, group(c).Queues[0], group(c).Marks = false, queue("T", 0, 100, 150), []string{admin.MarkBroadcast}
	}},
	{"consume-behind", Found, "10.0 messages/s came and 0.0/s were consumed for 10s; lag 100, 100 more", func(c *Cluster) { group(c).Queues[0] = queue("T", 0, 100, 200) }},
	{"consume-behind", OK, "", func(c *Cluster) { group(c).Queues[0] = queue("T", 0, 190, 200) }},
	{"consume-behind", Unknown, "one look", func(c *Cluster) { c.Before = nil }},
	{"consume-behind", Unknown, "could not be read", func(c *Cluster) { c.Now.Lag = nil }},
	{"expires-unread", Found, "the oldest for 60h0m0s; kept for 72h0m0s", func(c *Cluster) { old(group(c), 60*time.Hour) }},
	{"expires-unread", OK, "", func(c *Cluster) { old(group(c), time.Hour) }},
	{"expires-unread", Found, "which take 277h47m0s at the rate of the last 10s", func(c *Cluster) {
		group(c).Queues[0] = queue("T", 0, 101, 100_101)
		group(c).Queues[0].Expires, group(c).Queues[0].Age.OK = admin.WillYes, true
	}},
	// N124: what is not known is not shown as a backlog.
	{"expires-unread", Unknown, "is not known", func(c *Cluster) {
		group(c).Queues[0] = queue("T", 0, 0, 9)
		group(c).Queues[0].Expires = admin.WillUnknown
	}},
	{"deleted-unread", Found, "5 messages: T queue 0 on a", func(c *Cluster) { group(c).Queues[0].Lost = 5 }},
	{"deleted-unread", Unknown, "could not be read", func(c *Cluster) { c.Now.Lag = nil }},
	// N043: both subscriptions side by side.
	{"subscriptions-differ", Found, "client-1 has T TAG tag1, client-2 has T TAG tag2", func(c *Cluster) {
		g := group(c)
		g.Marks = []string{admin.MarkSubscriptions}
		g.Members = append(g.Members, admin.LagMember{Told: true})
		g.Members[1].ClientID = "client-2"
		g.Members[0].Subscriptions = []admin.GroupSubscription{{Topic: "T", Type: "TAG", Expression: "tag1"}}
		g.Members[1].Subscriptions = []admin.GroupSubscription{{Topic: "T", Type: "TAG", Expression: "tag2"}}
	}},
	{"subscriptions-differ", Unknown, "do not say", func(c *Cluster) { group(c).Marks = []string{admin.MarkSilent} }},
	// N044, N050: queues that nobody reads.
	{"queue-no-owner", Found, "T queue 0 on a; 0 messages wait there", func(c *Cluster) { group(c).Queues[0].Marks = []string{admin.MarkNoOwner} }},
	{"queue-no-owner", Unknown, "do not say", func(c *Cluster) { group(c).Marks = []string{admin.MarkSilent} }},
	{"client-no-queue", Found, "1 of 1 members have no queue (1 queue): client-1", func(c *Cluster) { group(c).Members[0].Marks = []string{admin.MarkIdle} }},
	{"client-no-queue", Unknown, "do not say", func(c *Cluster) { group(c).Marks = []string{admin.MarkSilent} }},
	// N045: two processes with one client id.
	{"client-id-twice", Found, "client-1 is connected from x:1, y:2", func(c *Cluster) {
		group(c).Members[0].Marks, group(c).Members[0].Addrs = []string{admin.MarkDuplicateID}, []string{"x:1", "y:2"}
	}},
	{"client-id-twice", Unknown, "could not be read", func(c *Cluster) { c.Now.Lag = nil }},
	{"client-silent", Found, "client-1", func(c *Cluster) { group(c).Members[0].Marks = []string{admin.MarkSilent} }},
	{"client-silent", Unknown, "could not be read", func(c *Cluster) { c.Now.Lag = nil }},
	// N034: a topic was deleted and made anew.
	{"offset-beyond", Found, "committed 100, the queue ends at 10", func(c *Cluster) {
		q := queue("T", 0, 100, 10)
		q.Marks = []string{admin.MarkBeyondEnd}
		group(c).Queues[0] = q
	}},
	{"offset-beyond", Found, "delay level 3 stands at 9, its queue ends at 4", func(c *Cluster) { c.Now.Brokers[1].Values["scheduleMessageOffset_3"] = "9,4" }},
	{"offset-beyond", Unknown, "b does not answer", func(c *Cluster) { c.Now.Brokers[1].Err = errors.New("gone") }},
	{"offset-back", Found, "committed 40, 10s ago it was 100", func(c *Cluster) { group(c).Queues[0] = queue("T", 0, 40, 100) }},
	{"offset-back", Unknown, "one look", func(c *Cluster) { c.Before = nil }},
	// N097: created by a send, on one broker.
	{"topic-one-broker", Found, "only on a, of 2 brokers", func(c *Cluster) { c.Now.Brokers[1].Topics = []admin.SurveyTopic{} }},
	{"topic-one-broker", Unknown, "b does not tell", func(c *Cluster) { c.Now.Brokers[1].Topics = nil }},
	{"topic-auto-created", Found, "4 queues, as a send asks for, and no setting of its own on a", func(c *Cluster) { c.Now.Brokers[0].Config["autoCreateTopicEnable"] = "true" }},
	{"topic-auto-created", Found, "2 queues, as a send asks for", func(c *Cluster) {
		c.Now.Brokers[0].Config["autoCreateTopicEnable"], c.Now.Brokers[0].Config["defaultTopicQueueNums"] = "true", "2"
		c.Now.Brokers[0].Topics[0].Read, c.Now.Brokers[0].Topics[0].Write = 2, 2
	}},
	// A topic as mqx admin topic create and mqadmin make it where nobody says how many queues.
	{"topic-auto-created", OK, "none of them looks so", func(c *Cluster) {
		c.Now.Brokers[0].Config["autoCreateTopicEnable"] = "true"
		c.Now.Brokers[0].Topics[0].Read, c.Now.Brokers[0].Topics[0].Write = 8, 8
	}},
	{"topic-auto-created", Unknown, "a does not tell", func(c *Cluster) { delete(c.Now.Brokers[0].Config, "autoCreateTopicEnable") }},
	{"template-left", Found, "still has TBW102", func(c *Cluster) {
		c.Now.NameServers[0].Topics = []string{"T", "TBW102"}
		c.Now.Brokers[0].Topics = append(c.Now.Brokers[0].Topics, admin.SurveyTopic{Name: "TBW102", Kind: admin.KindSystem, Perm: 7})
	}},
	{"template-left", Unknown, "b does not answer", func(c *Cluster) { c.Now.Brokers[1].Err = errors.New("gone") }},
	{"dlq-growing", Found, "3 dead letters in 10s", func(c *Cluster) { c.Now.Brokers[0].DeadLetters["g"], c.Now.Brokers[1].DeadLetters["g"] = 1, 2 }},
	{"dlq-growing", Unknown, "one look", func(c *Cluster) { c.Before = nil }},
	{"dlq-growing", Unknown, "b does not tell", func(c *Cluster) { c.Now.Brokers[1].DeadLetters = nil }},
	{"delay-stuck", Found, "level 2: 7 messages", func(c *Cluster) { c.Now.Brokers[0].Levels[2] = 7 }},
	{"delay-stuck", Found, "the timer is 90 s behind", func(c *Cluster) {
		c.Now.Brokers[0].Values["timerReadBehind"], c.Now.Brokers[0].Values["timerCongestNum"] = "90", "4"
	}},
	{"delay-stuck", Unknown, "b does not tell", func(c *Cluster) { c.Now.Brokers[1].Levels = nil }},
	{"transactions-open", Found, "101 half messages wait, +101 in 10s", func(c *Cluster) { *c.Now.Brokers[0].OpenTransactions = 101 }},
	{"transactions-open", Unknown, "b does not tell", func(c *Cluster) { c.Now.Brokers[1].OpenTransactions = nil }},
	{"transactions-given-up", Found, "2 in 10s", func(c *Cluster) { *c.Now.Brokers[0].Abandoned = 2 }},
	{"transactions-given-up", Unknown, "b does not tell", func(c *Cluster) { c.Now.Brokers[1].Abandoned = nil }},
	{"idle-closed", Found, "1 in the last hour: 10.0.0.7@4711 from", func(c *Cluster) {
		c.Now.Brokers[0].Values["mqxIdleClosed"] = "10.0.0.7@4711 from 10.0.0.7:5, last heartbeat 2m0s before"
	}},
	{"idle-closed", Found, "4 in the last hour: it does not tell of which", func(c *Cluster) {
		n := int64(4)
		delete(c.Now.Brokers[0].Values, "mqxIdleClosed")
		c.Now.Brokers[0].IdleClosed = &n
	}},
	{"idle-closed", Unknown, "a does not count", func(c *Cluster) { delete(c.Now.Brokers[0].Values, "mqxIdleClosed") }},
}

func group(c *Cluster) *admin.GroupLag { return &c.Now.Lag.Groups[0] }

func old(g *admin.GroupLag, age time.Duration) {
	q := queue("T", 0, 90, 100)
	q.Age.OK, q.Age.Value, q.Expires = true, age, admin.WillYes
	g.Queues[0] = q
}

// withReplica adds a replica of a that a does not see.
func withReplica(c *Cluster) {
	r := c.Now.Brokers[0]
	r.ID, r.Addr = 1, "a1:10911"
	c.Now.Brokers = append(c.Now.Brokers, r)
	c.Now.Brokers[0].HA = haOf()
}

func TestClusterRules(t *testing.T) {
	asked := map[string]map[Verdict]bool{}
	for _, tt := range clusterCases {
		c := healthy()
		tt.change(c)
		e := Evidence{Cluster: c}
		list := verdictOf(t, e, tt.rule)
		hit := false
		for _, f := range list {
			hit = hit || f.Verdict == tt.want && strings.Contains(f.Evidence, tt.evidence)
			if f.Verdict == Found && (f.Meaning == "" || f.Mend == "" || strings.Contains(f.Mend, "<NAME>")) {
				t.Errorf("%s: %+v", tt.rule, f)
			}
		}
		if !hit {
			t.Errorf("%s: want %s with %q, got %+v", tt.rule, tt.want, tt.evidence, list)
		}
		if asked[tt.rule] == nil {
			asked[tt.rule] = map[Verdict]bool{}
		}
		asked[tt.rule][tt.want] = true
	}
	// Rules whose evidence is what makes the survey: there is nothing that could be missing.
	always := map[string]bool{"nameservers-few": true, "nameserver-silent": true, "route-dead": true}
	for _, r := range rules {
		if r.Scope == ScopeCluster && (!asked[r.ID][Found] || !asked[r.ID][Unknown] && !always[r.ID]) {
			t.Errorf("%s has no case that finds, or none that is unknown", r.ID)
		}
	}
}

func TestReplicas(t *testing.T) {
	for _, tt := range []struct {
		diff   int64
		inSync bool
		want   string
	}{
		{512 << 20, true, "r:1 is 512.0 MiB behind, +52428.8 KiB/s over 10s"}, {1024, false, "is not in sync, 1.0 KiB behind"}, {0, true, "1 replica is connected"}, {-5, true, "is not known"},
	} {
		c := healthy()
		withReplica(c)
		c.Before.Brokers[0].HA = haOf(replica{"r:1", 0, true})
		c.Now.Brokers[0].HA = haOf(replica{"r:1", tt.diff, tt.inSync})
		if got := verdictOf(t, Evidence{Cluster: c}, "ha-gap"); !strings.Contains(got[0].Evidence, tt.want) {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}

func TestManySubjectsAreBounded(t *testing.T) {
	c := healthy()
	for range 3 * maxSubjects {
		c.Now.NameServers[0].Missing = nil
		g := *group(c)
		g.Queues = []admin.QueueLag{queue("T", 0, 1, 10)}
		g.Queues[0].Lost = 1
		c.Now.Lag.Groups = append(c.Now.Lag.Groups, g)
	}
	list := verdictOf(t, Evidence{Cluster: c}, "deleted-unread")
	if len(list) != maxSubjects || !strings.Contains(list[len(list)-1].Evidence, "100 more like it") {
		t.Errorf("%d findings, the last %+v", len(list), list[len(list)-1])
	}
}

func TestChoiceAndOrder(t *testing.T) {
	c := healthy()
	c.Now.Known, c.Now.Brokers[1].Err = c.Now.Known[:1], errors.New("gone")
	list := Diagnose(Evidence{Cluster: c}, Choice{Skip: []string{"route-dead"}})
	Sort(list)
	if list[0].Rule != "nameservers-few" || list[1].Verdict != Unknown || list[len(list)-1].Verdict != OK {
		t.Errorf("%+v", list)
	}
	for _, f := range list {
		if f.Rule == "route-dead" {
			t.Error("a rule that is skipped was asked")
		}
	}
	if list := Diagnose(Evidence{}, Choice{}); len(list) != 0 {
		t.Errorf("without evidence: %+v", list)
	}
}
