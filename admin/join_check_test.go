package admin

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mqx/remoting"
)

// healthy is a broker without a fault, started an hour before t.
func healthy(name string, at time.Time) *brokerFacts {
	addr := name + ":10911"
	return &brokerFacts{
		broker: Broker{Cluster: "c", Name: name, Addr: addr}, asked: at, answered: at.Add(100 * time.Millisecond),
		runtime: map[string]string{
			"bootTimestamp": "1000000", "runtime": "[ 0 days, 1 hours, 0 minutes, 0 seconds ]", "commitLogDiskRatio": "0.40",
			"putLatency99": "1.50", "putMessageTimesTotal": "5000", "brokerVersionDesc": "V5_5_0",
		},
		config:    map[string]string{"namesrvAddr": "n1:9876;n2:9876", "haListenPort": "10912", "autoCreateTopicEnable": "false", "brokerPermission": "6"},
		ports:     map[string]error{"main": nil, "vip": nil, "ha": nil},
		portAddrs: map[string]string{"main": addr, "vip": name + ":10909", "ha": name + ":10912"},
		groups:    map[string]remoting.SubscriptionGroupConfig{"g": remoting.NewSubscriptionGroupConfig("g")},
	}
}

func verdicts(cs []Check, verdict string) (out []string) {
	for _, c := range cs {
		if c.Verdict == verdict {
			out = append(out, c.Name+" "+c.Broker)
		}
	}
	return out
}

func TestJoinJudge(t *testing.T) {
	at := time.UnixMilli(1000000).Add(time.Hour)
	for name, tc := range map[string]struct {
		change   func(f *joinFacts)
		findings []string
	}{
		"healthy":            {func(*joinFacts) {}, nil},
		"the order of lists": {func(f *joinFacts) { f.brokers[0].config["namesrvAddr"] = "n2:9876,n1:9876" }, nil},
		"another list": {func(f *joinFacts) { f.brokers[0].config["namesrvAddr"] = "n1:9876" }, []string{
			"name-server-list a", "name-server-list b",
		}},
		"not everywhere": {func(f *joinFacts) { delete(f.servers["n2:9876"], "a:10911") }, []string{"name-server n2:9876", "registered a"}},
		"a dead server":  {func(f *joinFacts) { f.down = map[string]error{"n3:9876": errors.New("refused")} }, []string{"name-server n3:9876"}},
		// N063
		"clock ahead": {func(f *joinFacts) {
			f.brokers[0].asked, f.brokers[0].answered = at.Add(-time.Minute), at.Add(-time.Minute)
		}, []string{"clock a"}},
		"clock behind": {func(f *joinFacts) {
			f.brokers[1].asked, f.brokers[1].answered = at.Add(time.Minute), at.Add(time.Minute)
		}, []string{"clock b"}},
		"no time":   {func(f *joinFacts) { f.brokers[1].runtime["runtime"] = "" }, nil},
		"port":      {func(f *joinFacts) { f.brokers[1].ports["vip"] = errors.New("refused") }, []string{"port-vip b"}},
		"ha, alone": {func(f *joinFacts) { f.brokers[1].ports["ha"] = errors.New("refused") }, nil},
		"ha, with a replica": {func(f *joinFacts) {
			f.brokers[1].ports["ha"] = errors.New("refused")
			r := healthy("b2", at)
			r.broker.Name, r.broker.ID = "b", 1
			f.brokers = append(f.brokers, r)
			f.servers["n1:9876"]["b2:10911"], f.servers["n2:9876"]["b2:10911"] = true, true
		}, []string{"port-ha b", "ports-from-brokers b"}},
		"disk":         {func(f *joinFacts) { f.brokers[0].runtime["commitLogDiskRatio"] = "0.80" }, []string{"disk a"}},
		"unknown disk": {func(f *joinFacts) { f.brokers[0].runtime["commitLogDiskRatio"] = "-1.0" }, nil},
		"slow disk":    {func(f *joinFacts) { f.brokers[0].runtime["putLatency99"] = "900.00" }, []string{"disk-speed a"}},
		"version": {func(f *joinFacts) {
			f.brokers = append(f.brokers, healthy("a", at))
			f.brokers[1].runtime["brokerVersionDesc"] = "V4_9_7"
		}, []string{"version b"}},
		"silent": {func(f *joinFacts) {
			f.brokers[1] = &brokerFacts{broker: f.brokers[1].broker, err: errors.New("refused"), ports: map[string]error{"main": errors.New("refused")}, portAddrs: map[string]string{"main": "b:10911"}}
		}, []string{"port-main b"}},
		"it joins": {func(f *joinFacts) { f.joining = "b:10911" }, nil},
		"it joins with everything wrong": {func(f *joinFacts) {
			f.joining = "b:10911"
			f.brokers[1].config["autoCreateTopicEnable"] = "true"
			f.brokers[1].groups = nil
			f.brokers[1].topics = []string{"ORDERS"}
		}, []string{"auto-create b", "groups b", "topics b"}},
	} {
		f := &joinFacts{
			servers: map[string]map[string]bool{"n1:9876": {"a:10911": true, "b:10911": true}, "n2:9876": {"a:10911": true, "b:10911": true}},
			brokers: []*brokerFacts{healthy("a", at), healthy("b", at)}, opts: JoinCheckOptions{MaxSkew: defaultMaxSkew, MaxDiskRatio: defaultDisk},
		}
		tc.change(f)
		checks := f.judge()
		if got := verdicts(checks, VerdictFinding); !slices.Equal(got, tc.findings) {
			t.Errorf("%s: findings %q, want %q", name, got, tc.findings)
		}
		for _, c := range checks {
			if c.Evidence == "" {
				t.Errorf("%s: %s of %s has no evidence", name, c.Name, c.Broker)
			}
		}
	}
}

// Against a real broker: the clock agrees, the ports answer, nothing is guessed.
func TestJoinCheck(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	addr, _ := startJoining(t, joinConfig(t.TempDir(), ns, "new"))
	c := newClient(t, ns)
	createGroup(t, c, addr, "only-here", 3)
	checks, _, err := c.JoinCheck(t.Context(), JoinCheckOptions{Joining: "new"})
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range checks {
		if ch.Verdict == VerdictFinding && !strings.HasPrefix(ch.Name, "port-") { // its second port is a free one here, not two below
			t.Errorf("%+v", ch)
		}
	}
	var none *NotFoundError
	if _, _, err := c.JoinCheck(t.Context(), JoinCheckOptions{Joining: "nobody"}); !errors.As(err, &none) {
		t.Errorf("an unknown broker: %v", err)
	}
}
