package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mqx/remoting"
)

// These are the commands of mqadmin that the other tests leave out: those that print messages, measure, go on for ever, or need a broker
// of Apache's with light topics, RocksDB, a compacted topic or a container.

// messageReads are those of a topic of messages, and of the cluster.
func messageReads(topic string) []sideBySide {
	return []sideBySide{
		{[]string{"queryMsgByKey", "-t", topic, "-k", "readskey3"}, everything},
		{[]string{"printMsg", "-t", topic}, messageLines},
		{[]string{"printMsg", "-t", topic, "-d", "true", "-s", "rd"}, messageLines},
		{[]string{"printMsgByQueue", "-t", topic, "-a", brokerName, "-i", "0", "-p", "true", "-d", "true"}, messageLines},
		{[]string{"printMsgByQueue", "-t", topic, "-a", brokerName, "-i", "1", "-f", "true"}, messageLines},
		{[]string{"consumeMessage", "-t", topic, "-b", brokerName, "-i", "0", "-o", "0", "-c", "2"}, messageLines},
		{[]string{"consumeMessage", "-t", topic}, messageLines},
	}
}

// messageLines are lines with the properties of messages in order: Java prints them in that of a hash table. The lines in which mqadmin says
// that it has come to the end of a queue are left out.
func messageLines(text string) []string {
	return without("print msg finished")(regexp.MustCompile(`properties=\{[^}]*\}`).ReplaceAllStringFunc(text, func(m string) string {
		return "properties={" + sortedFields(strings.TrimPrefix(m, "properties=")) + "}"
	}))
}

// probes send messages and say how long that took.
func probes(topic, broker string) []sideBySide {
	return []sideBySide{
		{[]string{"checkMsgSendRT", "-t", topic, "-a", "8", "-s", "64"}, sendResults},
		{[]string{"sendMsgStatus", "-b", broker, "-s", "64", "-c", "2"}, timeless},
		{[]string{"sendMessage", "-t", topic, "-p", "body", "-k", "key", "-c", "tag", "-b", broker, "-i", "1"}, fields(topLine, 0, 1, 2)},
	}
}

// sendResults are a line a send, without the time it took.
func sendResults(text string) []string {
	return fields(topLine, 0, 2)(strings.Join(without("Avg RT")(text), "\n"))
}

// timeless puts 0 in the place of times, offsets and ids.
func timeless(text string) []string {
	return everything(regexp.MustCompile(`(rt|msgId|offsetMsgId|queueOffset)=[0-9A-F]+`).ReplaceAllString(text, "$1=0"))
}

// TestMqadminGoesOn runs the commands that never end in processes of their own: what they print is the same, and they go on.
func TestMqadminGoesOn(t *testing.T) {
	if !reference() && os.Getenv("MQX_E2E_ALL") == "" {
		t.Skip("MQX_E2E_ALL=1 runs it")
	}
	t.Parallel()
	c := startCluster(t)
	dir := testDir(t, "rounds")
	rounds := func(name, command string, args ...string) []string {
		p := start(t, name, dir, nil, command, args...)
		p.cleanup(t)
		var lines []string
		waitFor(t, 60*time.Second, name+" to print two rounds", func() (bool, string) {
			text, err := os.ReadFile(p.log)
			lines = with("#Cluster", clusterName+" ")(string(text))
			return err == nil && len(lines) >= 3, fmt.Sprint(string(text), err)
		})
		if p.ended() {
			t.Errorf("%s ended: %v", name, p.err)
		}
		p.kill()
		var out []string
		for _, l := range lines[:3] {
			f := strings.Fields(l)
			if len(f) == 5 {
				f = slices.Delete(f, 2, 3) // the time
			}
			out = append(out, strings.Join(f, " "))
		}
		return out
	}
	args := []string{"clusterRT", "-n", c.namesrv, "-a", "3", "-s", "64", "-c", clusterName, "-p", "false", "-i", "1"}
	ours := rounds("mqx", mqxBinary, append([]string{"mqadmin"}, args...)...)
	theirs := rounds("mqadmin", "java", append(append(javaFlags(dir, "256m"), "org.apache.rocketmq.tools.command.MQAdminStartup"), args...)...)
	if !slices.Equal(ours, theirs) {
		t.Errorf("mqx:\n%s\nmqadmin:\n%s", strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
	}
	// Of groups that lag mqadmin tells a log file only; here they are printed.
	createTopic(t, c.namesrv, "E2E_MONITORED", 1)
	sharedDriver(t).send(t, c.namesrv, "E2E_MONITORED", "sync", numbered("monitored", 20), nil)
	mqx(t, "consume", "E2E_MONITORED", "-n", c.namesrv, "-g", "e2e_monitored", "--commit", "--count", "5", "-o", "name")
	p := start(t, "monitoring", dir, nil, mqxBinary, "mqadmin", "startMonitoring", "-n", c.namesrv)
	p.cleanup(t)
	waitFor(t, 60*time.Second, "the group to be told of", func() (bool, string) {
		text, err := os.ReadFile(p.log)
		return err == nil && strings.Contains(string(text), "e2e_monitored"), fmt.Sprint(string(text), err)
	})
	if p.ended() {
		t.Errorf("startMonitoring ended: %v", p.err)
	}
}

// apacheOnly skips a test that needs a broker of Apache's and says whether both tools are to be tried on it.
func apacheOnly(t *testing.T) {
	t.Helper()
	if !reference() && os.Getenv("MQX_E2E_ALL") == "" {
		t.Skip("a broker of Apache's: MQX_E2E_ALL=1")
	}
	t.Parallel()
}

// TestMqadminLite: what a broker knows of lite topics, their clients and groups.
func TestMqadminLite(t *testing.T) {
	apacheOnly(t)
	c := apacheCluster(t, "enableLmq=true", "enableMultiDispatch=true")
	d := sharedDriver(t)
	const parent, group, client = "E2E_LITE", "e2e_lite_group", "lite-client@1"
	d.admin(t, "updateTopic", "-b", c.broker, "-t", parent, "-a", "+message.type=LITE", "-n", c.namesrv)
	d.admin(t, "updateSubGroup", "-b", c.broker, "-g", group, "--attributes", "+lite.bind.topic="+parent, "-n", c.namesrv)
	waitTopic(t, c.namesrv, parent)
	for _, lite := range []string{"a", "b"} {
		ms := numbered("lite "+lite, 3)
		for i := range ms {
			ms[i].System = map[string]string{"__LITE_TOPIC": lite, "INNER_MULTI_DISPATCH": "%LMQ%$" + parent + "$" + lite}
		}
		d.send(t, c.namesrv, parent, "sync", ms, nil)
	}
	body, err := json.Marshal(remoting.LiteSubscriptionCtlBody{SubscriptionSet: []remoting.LiteSubscription{
		{Action: "COMPLETE_ADD", ClientID: client, Group: group, Topic: parent, LiteTopicSet: []string{"a", "b"}, Version: 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	p := newRawPeer(t, c.broker) // its channel is the client's
	p.ok(remoting.ReqLiteSubscriptionCtl, nil, body)
	for _, s := range []sideBySide{
		{[]string{"getBrokerLiteInfo", "-b", c.broker, "-d"}, everything},
		{[]string{"getParentTopicInfo", "-p", parent}, everything},
		{[]string{"getLiteTopicInfo", "-p", parent, "-l", "a"}, everything},
		{[]string{"getLiteTopicInfo", "-p", parent, "-l", "a", "-s"}, everything},
		{[]string{"getLiteTopicInfo", "-p", parent, "-l", "none"}, everything},
		{[]string{"getLiteClientInfo", "-p", parent, "-g", group, "-c", client, "-s"}, everything},
		{[]string{"getLiteClientInfo", "-p", parent, "-g", group, "-c", "nobody"}, everything},
		{[]string{"getLiteGroupInfo", "-p", parent, "-g", group}, ageless},
		{[]string{"getLiteGroupInfo", "-p", parent, "-g", group, "-l", "a"}, ageless},
		{[]string{"triggerLiteDispatch", "-p", parent, "-g", group}, everything},
		{[]string{"triggerLiteDispatch", "-p", parent, "-g", group, "-c", client, "-b", brokerName}, everything},
	} {
		t.Run(strings.Join(s.args, "_"), func(t *testing.T) { compare(t, c, s) })
	}
	for _, args := range [][]string{
		{"topic", "get", parent, "--show", "lite"},
		{"topic", "get", parent, "--show", "lite", "--lite", "a"},
		{"client", "get", client, "-g", group, "-t", parent, "--show", "lite"},
		{"group", "get", group, "-t", parent, "--show", "lite"},
		{"broker", "get", "--show", "lite"},
	} {
		if text := mqx(t, append(append([]string{"admin"}, args...), "-n", c.namesrv, "-o", "json")...); !strings.Contains(text, brokerName) || !strings.Contains(text, `"errors": []`) {
			t.Errorf("%v: %s", args, text)
		}
	}
}

// ageless leaves out the oldest time: mqadmin says that of its own clock where nothing is behind.
func ageless(text string) []string { return without("Min Unconsumed Timestamp")(text) }

// TestMqadminRocksDB: what is asked of a broker that keeps its configuration, its queues and its timers in RocksDB.
func TestMqadminRocksDB(t *testing.T) {
	apacheOnly(t)
	c := apacheCluster(t, "enableRocksDBStore=true", "storeType=defaultRocksDB", "rocksdbCQDoubleWriteEnable=true", "timerRocksDBEnable=true")
	createTopic(t, c.namesrv, "E2E_ROCKS", 1)
	sharedDriver(t).send(t, c.namesrv, "E2E_ROCKS", "sync", numbered("rocks", 5), nil)
	for _, s := range []sideBySide{
		{[]string{"checkRocksdbCqWriteProgress", "-c", clusterName}, everything},
		{[]string{"checkRocksdbCqWriteProgress", "-c", clusterName, "-t", "E2E_ROCKS"}, everything},
		{[]string{"rocksDBConfigToJson", "-c", clusterName}, everything},
		{[]string{"rocksDBConfigToJson", "-c", clusterName, "-t", "topics;consumerOffsets"}, everything},
		{[]string{"switchTimerEngine", "-b", c.broker, "-e", "F"}, everything},
		{[]string{"switchTimerEngine", "-c", clusterName, "-e", "R"}, everything},
		{[]string{"exportPopRecord", "-b", c.broker}, everything},
	} {
		t.Run(strings.Join(s.args, "_"), func(t *testing.T) { compare(t, c, s) })
	}
}

// TestMqadminCompactionLog: the file of a compacted topic, as both tools print it.
func TestMqadminCompactionLog(t *testing.T) {
	apacheOnly(t)
	ns, br := freePort(t), freePort(t)
	c, store := cluster{loopback(ns), loopback(br)}, filepath.Join(testDir(t, "compaction"), "store")
	apacheNameserver(t, ns).cleanup(t)
	apacheBroker(t, brokerSpec{port: br, namesrv: c.namesrv, store: store, extra: []string{"enableCompaction=true"}}).cleanup(t)
	waitRegistered(t, c.namesrv)
	sharedDriver(t).admin(t, "updateTopic", "-b", c.broker, "-t", "E2E_COMPACT", "-r", "1", "-w", "1", "-a", "+cleanup.policy=COMPACTION", "-n", c.namesrv)
	waitTopic(t, c.namesrv, "E2E_COMPACT")
	ms := numbered("compact", 6)
	for i := range ms {
		ms[i].Keys = fmt.Sprint("k", i%2)
	}
	sharedDriver(t).send(t, c.namesrv, "E2E_COMPACT", "sync", ms, nil)
	var files []string
	waitFor(t, arrival, "the file of the compacted topic", func() (bool, string) {
		files, _ = filepath.Glob(filepath.Join(store, "compaction", "compactionLog", "E2E_COMPACT", "0", "*"))
		return len(files) > 0, store
	})
	compare(t, c, sideBySide{[]string{"dumpCompactionLog", "-f", files[0]}, messageLines})
}

// TestMqadminContainer lets a broker container start and stop a broker by each tool in turn; the other tool sees it come and go.
func TestMqadminContainer(t *testing.T) {
	apacheOnly(t)
	ns, port, br := freePort(t), freePort(t), freePort(t)
	apacheNameserver(t, ns).cleanup(t)
	dir, addr := testDir(t, "container"), loopback(port)
	conf := writeFile(t, dir, "container.conf", fmt.Sprintf("listenPort=%d\nnamesrvAddr=%s\n", port, loopback(ns)))
	p := start(t, "apache-container", dir, nil, "java", append(javaFlags(dir, "512m"), "org.apache.rocketmq.container.BrokerContainerStartup", "-c", conf)...)
	p.cleanup(t)
	waitPort(t, p, addr)
	b := newChangeBench(t, cluster{namesrv: loopback(ns), broker: loopback(br)})
	broker := brokerSpec{port: br, namesrv: b.namesrv, store: filepath.Join(dir, "store")}.conf(t, dir)
	said := map[string][]string{}
	for _, by := range changers {
		reader := "mqadmin"
		if by.tool == "mqadmin" {
			reader = "mqx mqadmin"
		}
		for _, there := range []bool{true, false} {
			args := []string{"addBroker", "-c", addr, "-b", broker}
			switch {
			case by.tool == "mqx admin" && there:
				args = []string{"broker", "create", "--container", addr, "--broker-config", broker, "--yes"}
			case by.tool == "mqx admin":
				args = []string{"broker", "rm", brokerName, "--id", "0", "-c", clusterName, "--container", addr, "--confirm", brokerName}
			case !there:
				args = []string{"removeBroker", "-c", addr, "-b", clusterName + ":" + brokerName + ":0"}
			}
			text, err := b.run(t, by.tool, args)
			if err != nil || strings.Contains(text, "Exception") {
				t.Fatalf("%s %v: %v %s", by.tool, args, err, text)
			}
			said[by.tool] = append(said[by.tool], everything(text)...)
			waitFor(t, 60*time.Second, fmt.Sprintf("%s to see that the broker is there: %v", reader, there), func() (bool, string) {
				text, err := b.run(t, reader, []string{"clusterList"})
				return err == nil && strings.Contains(text, b.broker) == there, fmt.Sprint(text, err)
			})
		}
	}
	if !slices.Equal(said["mqadmin"], said["mqx mqadmin"]) {
		t.Errorf("mqx says %q, mqadmin %q", said["mqx mqadmin"], said["mqadmin"])
	}
	if _, err := b.run(t, "mqx mqadmin", []string{"removeBroker", "-c", addr, "-b", clusterName + ":" + brokerName + ":0"}); err == nil {
		t.Error("a broker that is not there was removed")
	}
}
