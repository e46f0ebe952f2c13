package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestStaticTopics makes a static topic and moves its queues to and fro on two brokers, in turn with mqx and with mqadmin: each
// goes on from what the other has left, a Java client sends, pulls and is pushed to all the while, no message is lost, and no
// send gets an offset of -1. The brokers are mqx or, for reference, Apache's. With MQX_E2E_ALL=1 it goes all the way.
func TestStaticTopics(t *testing.T) {
	t.Parallel()
	ns := freePort(t)
	mqxNameserver(t, ns).cleanup(t)
	for _, name := range []string{brokerName, "broker-two"} {
		mqxBroker(t, brokerSpec{name: name, port: freePort(t), namesrv: loopback(ns), store: filepath.Join(testDir(t, "static"), "store")}).cleanup(t)
	}
	staticTopics(t, cluster{namesrv: loopback(ns)}, !reference() && os.Getenv("MQX_E2E_ALL") == "")
}

// TestStaticTopicsOfBothKinds is TestStaticTopics with a broker of mqx and one of Apache's: each reads the other's stretches.
func TestStaticTopicsOfBothKinds(t *testing.T) {
	if reference() || os.Getenv("MQX_E2E_ALL") == "" {
		t.Skip("MQX_E2E_ALL=1 runs it")
	}
	t.Parallel()
	ns := freePort(t)
	mqxNameserver(t, ns).cleanup(t)
	mqxBroker(t, brokerSpec{name: brokerName, port: freePort(t), namesrv: loopback(ns), store: filepath.Join(testDir(t, "static"), "store")}).cleanup(t)
	apacheBroker(t, brokerSpec{name: "broker-two", port: freePort(t), namesrv: loopback(ns), store: filepath.Join(testDir(t, "static"), "store")}).cleanup(t)
	staticTopics(t, cluster{namesrv: loopback(ns)}, false)
}

// staticTopics is the test on the brokers of a cluster.
func staticTopics(t *testing.T, c cluster, short bool) {
	t.Helper()
	waitRegistered(t, c.namesrv)
	b := newChangeBench(t, c)
	b.driver = startDriver(t, "-Ddriver.poll=500", "-Drocketmq.client.rebalance.waitInterval=1000")
	topic, group := rawNames("static")
	waitFor(t, 60*time.Second, "both brokers", func() (bool, string) {
		names, err := b.driver.brokers(b.namesrv)
		return err == nil && len(names) == 2, fmt.Sprint(names, err)
	})
	var all []outgoing
	var pushed func() []incoming
	step := func(tool string, leads map[string]int, args ...string) {
		t.Helper()
		text, err := b.run(t, tool, args)
		if err != nil || strings.Contains(text, "Exception") {
			t.Fatalf("%s %s: %v %s", tool, args, err, text)
		}
		waitFor(t, 60*time.Second, "the route to show the leaders", func() (bool, string) {
			got := b.leads(t, topic)
			return maps.Equal(got, leads), fmt.Sprint(got)
		})
		if pushed == nil {
			pushed = pushOf(t, b.driver, b.cluster, topic, group, nil)
		}
		messages := numbered(fmt.Sprintf("static%d", len(all)), 20)
		for _, m := range messages {
			b.sendSomehow(t, topic, m)
		}
		all = append(all, messages...)
		waitFor(t, 90*time.Second, "all messages to be read", func() (bool, string) {
			var got []incoming
			if err := b.driver.try("pull", map[string]any{"namesrv": b.namesrv, "topic": topic, "fresh": true}, &got); err != nil {
				return false, err.Error()
			}
			why := lost(all, got)
			return why == "", why
		})
		waitFor(t, 120*time.Second, "all messages to be pushed", func() (bool, string) {
			why := lost(all, pushed())
			return why == "", why
		})
	}
	step("mqx admin", map[string]int{brokerName: 2, "broker-two": 2}, "topic", "create", topic, "--static", "--queues", "4", "-c", clusterName, "--yes")
	step("mqx mqadmin", map[string]int{"broker-two": 4}, "remappingStaticTopic", "-t", topic, "-b", "broker-two")
	if short {
		return
	}
	step("mqadmin", map[string]int{brokerName: 2, "broker-two": 2}, "remappingStaticTopic", "-t", topic, "-c", clusterName)
	step("mqx admin", map[string]int{brokerName: 4}, "topic", "spread", topic, "--static", "--target", brokerName, "--yes")
	undo, err := b.run(t, "mqx admin", []string{"undo", "--list", "--limit", "1", "-o", "name"})
	if err != nil {
		t.Fatal(err)
	}
	step("mqx admin", map[string]int{brokerName: 2, "broker-two": 2}, "undo", strings.TrimSpace(undo), "--yes")
	step("mqx mqadmin", map[string]int{brokerName: 4}, "remappingStaticTopic", "-t", topic, "-b", brokerName)
	step("mqx mqadmin", map[string]int{brokerName: 4, "broker-two": 2}, "updateStaticTopic", "-t", topic, "-c", clusterName, "-qn", "6")
	step("mqadmin", map[string]int{brokerName: 4, "broker-two": 4}, "updateStaticTopic", "-t", topic, "-c", clusterName, "-qn", "8")
}

// leads counts the queues that each broker leads, as the name server's route says.
func (b *changeBench) leads(t *testing.T, topic string) map[string]int {
	t.Helper()
	text := b.driver.admin(t, "topicRoute", "-t", topic, "-n", b.namesrv)
	var route struct {
		TopicQueueMappingByBroker map[string]struct{ CurrIDMap map[string]int }
	}
	// The tool prints numbers that are keys bare.
	text = regexp.MustCompile(`([{,\s])(\d+):`).ReplaceAllString(text, `$1"$2":`)
	if err := json.Unmarshal([]byte(text), &route); err != nil {
		return map[string]int{err.Error() + text: 0}
	}
	out := map[string]int{}
	for name, m := range route.TopicQueueMappingByBroker {
		if len(m.CurrIDMap) > 0 {
			out[name] = len(m.CurrIDMap)
		}
	}
	return out
}

// sendSomehow sends a message, again while the client does not know of the new leader: it
// asks for routes every 30 s, and the old one refuses.
func (b *changeBench) sendSomehow(t *testing.T, topic string, m outgoing) {
	t.Helper()
	m.Body = base64.StdEncoding.EncodeToString([]byte(m.Body))
	waitFor(t, 90*time.Second, "the new leader to take a message", func() (bool, string) {
		var r []sent
		err := b.driver.try("send", map[string]any{"namesrv": b.namesrv, "topic": topic, "mode": "sync", "messages": []outgoing{m}}, &r)
		if err != nil {
			return false, err.Error()
		}
		if r[0].QueueOffset < 0 {
			t.Errorf("a send got offset %d", r[0].QueueOffset)
		}
		return true, ""
	})
}
