package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// sameChange is a change that both tools make, each to an object of its own. In all
// texts {X} is that object: it has the same length in each.
type sameChange struct {
	name string
	// before is what mqadmin does first.
	before [][]string
	// file is what FILE in the other texts holds.
	file   string
	change []string // mqadmin's spelling, which mqx mqadmin takes too
	admin  []string // mqx admin's own spelling
	// read is how the other tool reads the effect, and facts makes it comparable; with
	// has they must hold that text, with none there must be no facts at all.
	read  []string
	facts func(text string) []string
	has   string
	none  bool
	// says makes what the tools say of the change comparable; nil where it is the same.
	says func(text string) []string
}

// who makes a change, and who reads it back.
type changer struct{ letter, tool string }

var changers = []changer{{"A", "mqadmin"}, {"M", "mqx mqadmin"}, {"N", "mqx admin"}}

// changeBench runs changes on one cluster.
type changeBench struct {
	cluster
	driver *driver
	home   string   // of mqx, for its journal
	env    []string // of mqx, more
	dir    string   // of files
}

func newChangeBench(t *testing.T, c cluster) *changeBench {
	t.Helper()
	return &changeBench{cluster: c, driver: sharedDriver(t), home: t.TempDir(), dir: t.TempDir()}
}

// mqx runs a command of mqx; failed says that it did not do what it was asked for.
func (b *changeBench) mqx(t *testing.T, args ...string) (text string, failed error) {
	t.Helper()
	cmd := exec.Command(mqxBinary, args...)
	cmd.Env = append(os.Environ(), "HOME="+b.home, "XDG_STATE_HOME="+b.home, "XDG_CONFIG_HOME="+b.home)
	cmd.Env = append(cmd.Env, b.env...)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("mqx %s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	return string(out), err
}

// run makes or reads something with a tool.
func (b *changeBench) run(t *testing.T, tool string, args []string) (string, error) {
	t.Helper()
	args = append(slices.Clone(args), "-n", b.namesrv)
	switch tool {
	case "mqadmin":
		return b.driver.tryAdmin(args...)
	case "mqx mqadmin":
		return b.mqx(t, append([]string{"mqadmin"}, args...)...)
	default:
		return b.mqx(t, append([]string{"admin"}, args...)...)
	}
}

// filled puts the object and what belongs to the cluster into texts.
func (b *changeBench) filled(args []string, object, file string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = strings.NewReplacer("BROKER", b.broker, "CLUSTER", clusterName, "FILE", file, "{X}", object).Replace(a)
	}
	return out
}

// anonymous puts X in the place of the object and leaves out what is about other ones.
func anonymous(lines []string, object string) []string {
	var out []string
	for _, line := range lines {
		if line = strings.ReplaceAll(line, object, "X"); !strings.Contains(line, "Eechg_") {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

// try makes the change once by each tool and compares what they say, and what the other
// tool reads afterwards.
func (b *changeBench) try(t *testing.T, n int, s sameChange) {
	t.Helper()
	facts, said := map[string][]string{}, map[string][]string{}
	for _, by := range changers {
		if by.tool == "mqx admin" && s.admin == nil {
			continue
		}
		object := fmt.Sprintf("Eechg_%s%02d", by.letter, n)
		file := ""
		if s.file != "" {
			file = writeFile(t, b.dir, object+".json", strings.ReplaceAll(s.file, "{X}", object))
		}
		for _, args := range s.before {
			text, err := b.run(t, "mqadmin", b.filled(args, object, file))
			if err != nil || strings.Contains(text, "Exception") {
				t.Fatalf("%s: %v %s", args, err, text)
			}
		}
		args := s.change
		if by.tool == "mqx admin" {
			args = s.admin
		}
		text, err := b.run(t, by.tool, b.filled(args, object, file))
		if err != nil || strings.Contains(text, "Exception") {
			t.Fatalf("%s: %v %s", by.tool, err, text)
		}
		if by.tool != "mqx admin" {
			says := s.says
			if says == nil {
				says = everything
			}
			said[by.tool] = anonymous(says(text), object)
		}
		if s.read == nil {
			continue
		}
		reader := "mqadmin"
		if by.tool == "mqadmin" {
			reader = "mqx mqadmin"
		}
		waitFor(t, 30*time.Second, reader+" to see what "+by.tool+" did", func() (bool, string) {
			text, err := b.run(t, reader, b.filled(s.read, object, file))
			facts[by.tool] = anonymous(s.facts(text), object)
			all := strings.Join(facts[by.tool], "\n")
			if s.none {
				return len(facts[by.tool]) == 0, all
			}
			return strings.Contains(all, s.has) && all != "", fmt.Sprint(all, "\n", err, text)
		})
	}
	for _, by := range changers[1:] {
		if got, ok := facts[by.tool]; ok && !slices.Equal(got, facts["mqadmin"]) {
			t.Errorf("what %s did is read as\n%s\nwhat mqadmin did as\n%s", by.tool, strings.Join(got, "\n"), strings.Join(facts["mqadmin"], "\n"))
		}
	}
	if !slices.Equal(said["mqx mqadmin"], said["mqadmin"]) {
		t.Errorf("mqx says\n%s\nmqadmin says\n%s", strings.Join(said["mqx mqadmin"], "\n"), strings.Join(said["mqadmin"], "\n"))
	}
}

// nothing is for what tools say each in their own words.
func nothing(string) []string { return nil }

// TestMqadminChanges makes each change once with mqadmin 5.5.0, once with mqx in
// mqadmin's spelling and once in its own, and reads it back with the other tool: on a
// cluster of mqx, or with MQX_E2E_REFERENCE=apache on one of Apache's servers.
func TestMqadminChanges(t *testing.T) {
	t.Parallel()
	b := newChangeBench(t, startCluster(t))
	d := sharedDriver(t)
	// A group with offsets, which others are cloned from.
	createTopic(t, b.namesrv, "E2ECHGSRC", 2)
	messages := numbered("clone", 6)
	d.send(t, b.namesrv, "E2ECHGSRC", "sync", messages, nil)
	d.call(t, "push", map[string]any{"id": "changes", "namesrv": b.namesrv, "group": "e2echg_src", "topic": "E2ECHGSRC"}, nil)
	waitFor(t, arrival, "the group to consume", func() (bool, string) {
		why := lost(messages, javaReceived(t, "changes"))
		return why == "", why
	})
	d.call(t, "stop", map[string]any{"id": "changes"}, nil)
	n := 0
	for _, part := range []struct {
		name  string
		cases []sameChange
	}{{"topics", topicChanges(t.TempDir())}, {"groups", groupChanges(t.TempDir())}, {"servers", serverChanges()}, {"offsets", offsetChanges()}} {
		for _, s := range part.cases {
			n++
			t.Run(part.name+"/"+s.name, func(t *testing.T) { b.try(t, n, s) })
		}
	}
	if reference() {
		for _, s := range apacheChanges() {
			n++
			t.Run("apache/"+s.name, func(t *testing.T) { b.try(t, n, s) })
		}
	}
}

var (
	topicMade  = []string{"updateTopic", "-b", "BROKER", "-t", "{X}", "-r", "8", "-w", "8"}
	groupMade  = []string{"updateSubGroup", "-b", "BROKER", "-g", "{X}", "-r", "5", "-q", "2"}
	routeRead  = []string{"topicRoute", "-t", "{X}"}
	configRead = []string{"getBrokerConfig", "-b", "BROKER"}
	orderRead  = []string{"updateOrderConf", "-t", "{X}", "-m", "get"}
	statsRead  = []string{"brokerConsumeStats", "-b", "BROKER"}
)

func topicChanges(dir string) []sameChange {
	exported := func(text string) []string {
		return slices.DeleteFunc(flat(filepath.Join(dir, "topic.json"), text, true), func(line string) bool { return !strings.Contains(line, "Eechg") })
	}
	return []sameChange{
		{
			name: "updateTopic of a broker", change: []string{"updateTopic", "-b", "BROKER", "-t", "{X}", "-r", "3", "-w", "5", "-p", "6"},
			admin: []string{"topic", "create", "{X}", "-b", "BROKER", "--read-queues", "3", "--write-queues", "5", "--perm", "rw", "--yes"},
			read:  routeRead, facts: everything, has: `"readQueueNums":3`,
		},
		{
			name: "updateTopic of a cluster", change: []string{"updateTopic", "-c", "CLUSTER", "-t", "{X}"},
			admin: []string{"topic", "create", "{X}", "-c", "CLUSTER", "--yes"},
			read:  routeRead, facts: everything, has: `"writeQueueNums":8`,
		},
		{
			name: "updateTopic with attributes", change: []string{"updateTopic", "-b", "BROKER", "-t", "{X}", "-a", "+message.type=FIFO"},
			admin: []string{"topic", "create", "{X}", "-b", "BROKER", "--attribute", "+message.type=FIFO", "--yes"},
			read:  []string{"exportMetadata", "-b", "BROKER", "-t", "-f", dir}, facts: exported, has: "message.type=FIFO",
		},
		{
			name: "updateTopic of an ordered topic", change: []string{"updateTopic", "-c", "CLUSTER", "-t", "{X}", "-o", "true", "-r", "4", "-w", "4"},
			read: orderRead, facts: with("get orderConf success"), has: brokerName + ":4",
			says: with("create topic to", "TopicConfig"),
		},
		{
			name: "updateTopic again", before: [][]string{topicMade}, change: []string{"updateTopic", "-b", "BROKER", "-t", "{X}", "-r", "4", "-w", "4"},
			admin: []string{"topic", "set", "{X}", "-b", "BROKER", "--queues", "4", "--yes"},
			read:  routeRead, facts: everything, has: `"readQueueNums":4`,
		},
		{
			name: "updateTopicPerm of a broker", before: [][]string{topicMade}, change: []string{"updateTopicPerm", "-b", "BROKER", "-t", "{X}", "-p", "4"},
			admin: []string{"topic", "set", "{X}", "-b", "BROKER", "--perm", "r", "--yes"},
			read:  routeRead, facts: everything, has: `"perm":4`,
		},
		{
			name: "updateTopicPerm of a cluster", before: [][]string{topicMade}, change: []string{"updateTopicPerm", "-c", "CLUSTER", "-t", "{X}", "-p", "2"},
			admin: []string{"topic", "set", "{X}", "-c", "CLUSTER", "--perm", "w", "--yes"},
			read:  routeRead, facts: everything, has: `"perm":2`,
		},
		{
			name: "updateTopicList", file: `[{"topicName":"{X}","readQueueNums":2,"writeQueueNums":3,"perm":6,"order":false}]`,
			change: []string{"updateTopicList", "-b", "BROKER", "-f", "FILE"}, admin: []string{"topic", "create", "-b", "BROKER", "--from-file", "FILE", "--yes"},
			read: routeRead, facts: everything, has: `"writeQueueNums":3`,
		},
		{
			name: "updateOrderConf put", change: []string{"updateOrderConf", "-t", "{X}", "-m", "put", "-v", "broker-e2e:2;other:3"},
			before: [][]string{topicMade},
			admin:  []string{"topic", "set", "{X}", "--order-conf", "broker-e2e:2;other:3", "--yes"},
			read:   orderRead, facts: with("get orderConf success"), has: "other:3",
		},
		{
			name: "updateOrderConf delete", before: [][]string{{"updateOrderConf", "-t", "{X}", "-m", "put", "-v", "broker-e2e:2"}},
			change: []string{"updateOrderConf", "-t", "{X}", "-m", "delete"},
			admin:  []string{"nameserver", "rm", "--namespace", "ORDER_TOPIC_CONFIG", "{X}", "--confirm", "{X}"},
			read:   orderRead, facts: with("get orderConf success"), none: true,
		},
		{
			name: "deleteTopic", before: [][]string{topicMade}, change: []string{"deleteTopic", "-c", "CLUSTER", "-t", "{X}"},
			admin: []string{"topic", "rm", "{X}", "-c", "CLUSTER", "--confirm", "{X}"},
			read:  []string{"topicRoute", "-t", "{X}"}, facts: with("QueueNums"), none: true,
		},
	}
}

func groupChanges(dir string) []sameChange {
	exported := func(text string) []string {
		return slices.DeleteFunc(flat(filepath.Join(dir, "subscriptionGroup.json"), text, true), func(line string) bool { return !strings.Contains(line, "Eechg") })
	}
	read := []string{"getConsumerConfig", "-g", "{X}"}
	deleted := []string{"deleteSubGroup", "-b", "BROKER", "-g", "{X}"}
	removed := []string{"group", "rm", "{X}", "-b", "BROKER", "--keep-offsets", "--confirm", "{X}"}
	if reference() {
		// A broker of Apache's that keeps the offsets makes the group again at once, with its defaults, by looking whether it was one of
		// lite topics; and whenever somebody asks for it by its name.
		deleted, removed = append(deleted, "-r", "true"), []string{"group", "rm", "{X}", "-b", "BROKER", "--confirm", "{X}"}
	}
	return []sameChange{
		{
			name: "updateSubGroup", change: []string{"updateSubGroup", "-b", "BROKER", "-g", "{X}", "-s", "true", "-m", "true", "-d", "true", "-o", "true", "-q", "3", "-r", "7", "-i", "0", "-w", "2", "-a", "false"},
			admin: []string{"group", "create", "{X}", "-b", "BROKER", "--from-min", "--broadcast", "--ordered", "--retry-queues", "3", "--retries", "7", "--slow-broker", "2", "--notify=false", "--yes"},
			read:  read, facts: everything, has: "retryMaxTimes",
		},
		{
			name: "updateSubGroup with a policy", change: []string{"updateSubGroup", "-c", "CLUSTER", "-g", "{X}", "-p", `{"type":"EXPONENTIAL","exponentialRetryPolicy":{"initial":5000,"max":60000,"multiplier":3}}`, "--attributes", "+priority.factor=50"},
			admin: []string{"group", "create", "{X}", "-c", "CLUSTER", "--from-min=false", "--broadcast=false", "--retry-policy", `{"type":"EXPONENTIAL","exponentialRetryPolicy":{"initial":5000,"max":60000,"multiplier":3}}`, "--attribute", "+priority.factor=50", "--yes"},
			read:  read, facts: everything, has: "EXPONENTIAL",
		},
		{
			name: "updateSubGroup again", before: [][]string{groupMade}, change: []string{"updateSubGroup", "-b", "BROKER", "-g", "{X}", "-s", "false"},
			admin: []string{"group", "set", "{X}", "-b", "BROKER", "--consume=false", "--retries", "16", "--retry-queues", "1", "--yes"},
			read:  read, facts: everything, has: "consumeEnable                           =  false",
		},
		{
			name: "updateSubGroupList", file: `[{"groupName":"{X}","retryMaxTimes":3,"consumeEnable":true}]`,
			change: []string{"updateSubGroupList", "-b", "BROKER", "-f", "FILE"}, admin: []string{"group", "create", "-b", "BROKER", "--from-file", "FILE", "--yes"},
			read: read, facts: everything, has: "retryMaxTimes",
		},
		{
			name: "setConsumeMode", before: [][]string{topicMade, groupMade}, change: []string{"setConsumeMode", "-b", "BROKER", "-t", "{X}", "-g", "{X}", "-m", "POP", "-q", "3"},
			admin: []string{"group", "set", "{X}", "-b", "BROKER", "-t", "{X}", "--mode", "pop", "--share", "3", "--yes"},
		},
		{
			name: "deleteSubGroup of a broker", before: [][]string{groupMade}, change: deleted, admin: removed,
			read: []string{"exportMetadata", "-b", "BROKER", "-g", "-f", dir}, facts: exported, none: true,
		},
		{
			name: "deleteSubGroup of a cluster", before: [][]string{groupMade, topicMade, {"skipAccumulatedMessage", "-g", "{X}", "-t", "{X}"}},
			change: []string{"deleteSubGroup", "-c", "CLUSTER", "-g", "{X}", "-r", "true"},
			admin:  []string{"group", "rm", "{X}", "-c", "CLUSTER", "--confirm", "{X}"},
			read:   statsRead, facts: with("Eechg"), none: true, says: with("delete subscription group"),
		},
	}
}

func serverChanges() []sameChange {
	return []sameChange{
		{
			name: "updateBrokerConfig", before: [][]string{{"updateBrokerConfig", "-b", "BROKER", "-k", "fileReservedTime", "-v", "71"}},
			change: []string{"updateBrokerConfig", "-b", "BROKER", "-k", "fileReservedTime", "-v", "49"},
			admin:  []string{"config", "set", "-b", "BROKER", "fileReservedTime=49", "--yes"},
			read:   configRead, facts: with("fileReservedTime "), has: "=  49",
		},
		{
			name: "updateBrokerConfig of a cluster", before: [][]string{{"updateBrokerConfig", "-b", "BROKER", "-k", "fileReservedTime", "-v", "71"}},
			change: []string{"updateBrokerConfig", "-c", "CLUSTER", "-k", "fileReservedTime", "-v", "48"},
			admin:  []string{"config", "set", "-c", "CLUSTER", "fileReservedTime=48", "--yes"},
			read:   configRead, facts: with("fileReservedTime "), has: "=  48",
		},
		{
			name: "updateNamesrvConfig", before: [][]string{{"updateNamesrvConfig", "-k", "waitSecondsForService", "-v", "45"}},
			change: []string{"updateNamesrvConfig", "-k", "waitSecondsForService", "-v", "46"},
			admin:  []string{"config", "set", "--nameservers", "waitSecondsForService=46", "--yes"},
			read:   []string{"getNamesrvConfig"}, facts: with("waitSecondsForService "), has: "=  46",
		},
		{
			name: "updateKvConfig", change: []string{"updateKvConfig", "-s", "ORDER_TOPIC_CONFIG", "-k", "{X}", "-v", "broker-e2e:7"},
			admin: []string{"nameserver", "set", "--namespace", "ORDER_TOPIC_CONFIG", "{X}=broker-e2e:7", "--yes"},
			read:  orderRead, facts: with("get orderConf success"), has: ":7",
		},
		{
			name: "deleteKvConfig", before: [][]string{{"updateKvConfig", "-s", "ORDER_TOPIC_CONFIG", "-k", "{X}", "-v", "broker-e2e:7"}},
			change: []string{"deleteKvConfig", "-s", "ORDER_TOPIC_CONFIG", "-k", "{X}"},
			admin:  []string{"nameserver", "rm", "--namespace", "ORDER_TOPIC_CONFIG", "{X}", "--confirm", "{X}"},
			read:   orderRead, facts: with("get orderConf success"), none: true,
		},
		{
			name: "wipeWritePerm", before: [][]string{{"addWritePerm", "-b", brokerName}, topicMade}, change: []string{"wipeWritePerm", "-b", brokerName},
			admin: []string{"broker", "set", brokerName, "--writable=false", "--yes"},
			read:  routeRead, facts: everything, has: `"perm":4`, says: countless,
		},
		{
			name: "addWritePerm", before: [][]string{topicMade, {"wipeWritePerm", "-b", brokerName}}, change: []string{"addWritePerm", "-b", brokerName},
			admin: []string{"broker", "set", brokerName, "--writable=true", "--yes"},
			read:  routeRead, facts: everything, has: `"perm":6`, says: countless,
		},
		{
			name: "cleanExpiredCQ", change: []string{"cleanExpiredCQ", "-b", "BROKER"},
			admin: []string{"broker", "purge", "BROKER", "--queues", "--confirm", "BROKER"},
		},
		{
			name: "deleteExpiredCommitLog", change: []string{"deleteExpiredCommitLog", "-c", "CLUSTER"},
			admin: []string{"broker", "purge", "BROKER", "--expired", "--confirm", "BROKER"},
		},
		{
			name: "cleanUnusedTopic", change: []string{"cleanUnusedTopic", "-b", "BROKER"},
			admin: []string{"broker", "purge", "BROKER", "--unused-topics", "--confirm", "BROKER"},
		},
		{name: "exportPopRecord", change: []string{"exportPopRecord", "-b", "BROKER", "-d", "true"}, says: nothing}, // "true" is no dry run there
	}
}

// countless leaves the number of topics at the end of a line out.
func countless(text string) []string {
	return everything(regexp.MustCompile(`OK, \d+`).ReplaceAllString(text, "OK"))
}

func offsetChanges() []sameChange {
	before := [][]string{{"updateTopic", "-b", "BROKER", "-t", "{X}", "-r", "1", "-w", "1"}, groupMade}
	for range 3 {
		before = append(before, []string{"sendMessage", "-t", "{X}", "-p", "body", "-b", brokerName, "-i", "0"})
	}
	skipped := append(slices.Clone(before), []string{"skipAccumulatedMessage", "-g", "{X}", "-t", "{X}"})
	// Without the time of the last message.
	stats := fields(0, 1, 2, 3, 4, 5, 6)
	facts := func(text string) []string { return stats(strings.Join(with("Eechg")(text), "\n")) }
	withoutTimes := func(text string) []string {
		return everything(regexp.MustCompile(`\d{13}`).ReplaceAllString(text, "TIME"))
	}
	return []sameChange{
		{
			name: "resetOffsetByTime of a queue", before: skipped, change: []string{"resetOffsetByTime", "-g", "{X}", "-t", "{X}", "-s", "now", "-b", "BROKER", "-q", "0", "-o", "2"},
			admin: []string{"offset", "reset", "-g", "{X}", "-t", "{X}", "-b", "BROKER", "-q", "0", "--to", "2", "--yes"},
			read:  statsRead, facts: facts, has: "3 2 1", says: withoutTimes,
		},
		{
			name: "resetOffsetByTime", before: skipped, change: []string{"resetOffsetByTime", "-g", "{X}", "-t", "{X}", "-s", "1000000000000"},
			admin: []string{"offset", "reset", "-g", "{X}", "-t", "{X}", "--to", "@1000000000000", "--yes"},
			read:  statsRead, facts: facts, none: true, // what has been consumed is not known to be there
		},
		{
			name: "resetOffsetByTime now", before: before, change: []string{"resetOffsetByTime", "-g", "{X}", "-t", "{X}", "-s", "now"},
			admin: []string{"offset", "reset", "-g", "{X}", "-t", "{X}", "--to", "@now", "--yes"},
			read:  statsRead, facts: facts, has: "3 3 0", says: withoutTimes,
		},
		{
			name: "skipAccumulatedMessage", before: before, change: []string{"skipAccumulatedMessage", "-g", "{X}", "-t", "{X}"},
			admin: []string{"offset", "reset", "-g", "{X}", "-t", "{X}", "--to", "end", "--yes"},
			read:  statsRead, facts: facts, has: "3 3 0",
		},
		{
			name: "cloneGroupOffset", before: [][]string{groupMade}, change: []string{"cloneGroupOffset", "-s", "e2echg_src", "-d", "{X}", "-t", "E2ECHGSRC"},
			admin: []string{"offset", "copy", "--from-group", "e2echg_src", "-g", "{X}", "-t", "E2ECHGSRC", "--yes"},
			read:  statsRead, facts: func(text string) []string {
				return slices.DeleteFunc(facts(text), func(l string) bool { return strings.Contains(l, "%RETRY%") })
			},
			has: "E2ECHGSRC",
		},
	}
}

// apacheChanges are those that mqx's broker does not serve.
func apacheChanges() []sameChange {
	cold := []string{"getColdDataFlowCtrInfo", "-b", "BROKER"}
	limits := func(text string) []string { return with("Eechg")(strings.ReplaceAll(text, ",\n", "\n")) }
	return []sameChange{
		{
			name: "updateColdDataFlowCtrGroupConfig", change: []string{"updateColdDataFlowCtrGroupConfig", "-b", "BROKER", "-g", "{X}", "-v", "4194304"},
			admin: []string{"broker", "set", "BROKER", "--cold-limit", "{X}=4194304", "--yes"},
			read:  cold, facts: limits, has: "4194304",
		},
		{
			name: "removeColdDataFlowCtrGroupConfig", before: [][]string{{"updateColdDataFlowCtrGroupConfig", "-b", "BROKER", "-g", "{X}", "-v", "4194304"}},
			change: []string{"removeColdDataFlowCtrGroupConfig", "-c", "CLUSTER", "-g", "{X}"},
			admin:  []string{"broker", "set", "BROKER", "--cold-limit", "{X}=", "--confirm", "{X}"},
			read:   cold, facts: with("Eechg"), none: true,
		},
		{
			name: "setCommitLogReadAheadMode", change: []string{"setCommitLogReadAheadMode", "-b", "BROKER", "-m", "1"},
			admin: []string{"broker", "set", "BROKER", "--read-ahead", "random", "--yes"},
		},
		{name: "resetMasterFlushOffset", change: []string{"resetMasterFlushOffset", "-b", "BROKER", "-o", "5"}, says: nothing},
		{name: "exportPopRecord", change: []string{"exportPopRecord", "-b", "BROKER"}},
	}
}

// TestACLChanges is TestMqadminChanges for users and policies, which only Apache's brokers
// serve: one with authentication and authorization, and tools that sign their requests.
func TestACLChanges(t *testing.T) {
	if !reference() && os.Getenv("MQX_E2E_ALL") == "" {
		t.Skip("MQX_E2E_ALL=1 runs it: it needs a broker of Apache's")
	}
	t.Parallel()
	const name, password = "rocketmq", "12345678"
	ns, br := freePort(t), freePort(t)
	apacheNameserver(t, ns).cleanup(t)
	const providers = "org.apache.rocketmq.auth."
	apacheBroker(t, brokerSpec{port: br, namesrv: loopback(ns), store: filepath.Join(testDir(t, "acl"), "store"), extra: []string{
		"authenticationEnabled=true", "authorizationEnabled=true",
		"authenticationProvider=" + providers + "authentication.provider.DefaultAuthenticationProvider",
		"authenticationMetadataProvider=" + providers + "authentication.provider.LocalAuthenticationMetadataProvider",
		"authorizationProvider=" + providers + "authorization.provider.DefaultAuthorizationProvider",
		"authorizationMetadataProvider=" + providers + "authorization.provider.LocalAuthorizationMetadataProvider",
		fmt.Sprintf(`initAuthenticationUser={"username":"%s","password":"%s"}`, name, password),
		fmt.Sprintf(`innerClientAuthenticationCredentials={"accessKey":"%s","secretKey":"%s"}`, name, password),
	}}).cleanup(t)
	waitRegistered(t, loopback(ns))
	b := newChangeBench(t, cluster{namesrv: loopback(ns), broker: loopback(br)})
	conf := filepath.Join(b.home, "conf")
	if err := os.MkdirAll(conf, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, conf, "tools.yml", "accessKey: "+name+"\nsecretKey: "+password+"\n")
	b.driver = startDriver(t, "-Drocketmq.home.dir="+b.home)
	b.driver.cleanup(t)
	b.env = []string{"ROCKETMQ_HOME=" + b.home}
	for i, s := range aclChanges([]string{"--access-key", "text:" + name, "--secret-key", "text:" + password}) {
		t.Run(s.name, func(t *testing.T) { b.try(t, 50+i, s) })
	}
}

// aclChanges are those of users and policies; keys are what mqx admin signs with.
func aclChanges(keys []string) []sameChange {
	own := func(args ...string) []string { return append(append([]string{"acl"}, args...), keys...) }
	user := []string{"createUser", "-b", "BROKER", "-u", "{X}", "-p", "abc12345"}
	policy := []string{"createAcl", "-b", "BROKER", "-s", "User:{X}", "-r", "Topic:T1,Group:G*", "-a", "Pub,Sub", "-i", "10.0.0.0/8", "-d", "Allow"}
	oneUser, onePolicy := []string{"getUser", "-b", "BROKER", "-u", "{X}"}, []string{"getAcl", "-b", "BROKER", "-s", "User:{X}"}
	eechg := with("Eechg")
	return []sameChange{
		{
			name: "createUser", change: append(slices.Clone(user), "-t", "Normal"), admin: own("user", "create", "{X}", "-b", "BROKER", "--password", "text:abc12345", "--type", "Normal", "--yes"),
			read: oneUser, facts: eechg, has: "abc12345",
		},
		{
			name: "createUser of a cluster", change: []string{"createUser", "-c", "CLUSTER", "-u", "{X}", "-p", "abc12345", "-t", "Super"},
			admin: own("user", "create", "{X}", "-c", "CLUSTER", "--password", "text:abc12345", "--type", "Super", "--yes"),
			read:  []string{"listUser", "-b", "BROKER", "-f", "{X}"}, facts: eechg, has: "Super",
		},
		{
			name: "updateUser", before: [][]string{user}, change: []string{"updateUser", "-b", "BROKER", "-u", "{X}", "-s", "disable"},
			admin: own("user", "set", "{X}", "-b", "BROKER", "--status", "disable", "--yes"),
			read:  oneUser, facts: eechg, has: "disable",
		},
		{
			name: "updateUser's password", before: [][]string{user}, change: []string{"updateUser", "-b", "BROKER", "-u", "{X}", "-p", "other999"},
			admin: own("user", "set", "{X}", "-b", "BROKER", "--password", "text:other999", "--yes"),
			read:  oneUser, facts: eechg, has: "other999",
		},
		{
			name: "deleteUser", before: [][]string{user}, change: []string{"deleteUser", "-c", "CLUSTER", "-u", "{X}"},
			admin: own("user", "rm", "{X}", "-b", "BROKER", "--confirm", "{X}"),
			read:  []string{"listUser", "-b", "BROKER"}, facts: eechg, none: true,
		},
		{
			name: "createAcl", before: [][]string{user}, change: policy,
			admin: own("policy", "create", "User:{X}", "-b", "BROKER", "--resource", "Topic:T1", "--resource", "Group:G*", "--action", "Pub", "--action", "Sub", "--source-ip", "10.0.0.0/8", "--decision", "Allow", "--yes"),
			read:  onePolicy, facts: eechg, has: "Group:G*",
		},
		{
			name: "updateAcl", before: [][]string{user, policy}, change: []string{"updateAcl", "-c", "CLUSTER", "-s", "User:{X}", "-r", "Topic:T1", "-a", "Pub", "-i", "10.0.0.1", "-d", "Deny"},
			admin: own("policy", "set", "User:{X}", "-b", "BROKER", "--resource", "Topic:T1", "--action", "Pub", "--source-ip", "10.0.0.1", "--decision", "Deny", "--yes"),
			read:  onePolicy, facts: eechg, has: "Deny",
		},
		{
			name: "deleteAcl of a resource", before: [][]string{user, policy}, change: []string{"deleteAcl", "-b", "BROKER", "-s", "User:{X}", "-r", "Topic:T1"},
			admin: own("policy", "rm", "User:{X}", "-b", "BROKER", "--resource", "Topic:T1", "--confirm", "User:{X}"),
			read:  onePolicy, facts: eechg, has: "Group:G*",
		},
		{
			name: "deleteAcl", before: [][]string{user, policy}, change: []string{"deleteAcl", "-b", "BROKER", "-s", "User:{X}"},
			admin: own("policy", "rm", "User:{X}", "-b", "BROKER", "--confirm", "User:{X}"),
			read:  []string{"listAcl", "-b", "BROKER"}, facts: eechg, none: true,
		},
		{name: "copyUser", before: [][]string{user}, change: []string{"copyUser", "-f", "BROKER", "-t", "BROKER", "-u", "{X}"}, read: oneUser, facts: eechg, has: "abc12345"},
		{name: "copyAcl", before: [][]string{user, policy}, change: []string{"copyAcl", "-f", "BROKER", "-t", "BROKER", "-s", "User:{X}"}, read: onePolicy, facts: eechg, has: "Group:G*"},
	}
}
