package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ownBroker starts a name server and a broker for one test.
func ownBroker(t *testing.T, extra ...string) (namesrv string) {
	t.Helper()
	ns, br := freePort(t), freePort(t)
	mqxNameserver(t, ns).cleanup(t)
	mqxBroker(t, brokerSpec{port: br, namesrv: loopback(ns), store: filepath.Join(testDir(t, "own"), "store"), extra: extra}).cleanup(t)
	waitRegistered(t, loopback(ns))
	return loopback(ns)
}

// javaPush starts a push consumer in the shared JVM and returns what it got.
func javaPush(t *testing.T, spec map[string]any) func() []incoming {
	t.Helper()
	id := spec["id"].(string)
	sharedDriver(t).call(t, "push", spec, nil)
	t.Cleanup(func() { sharedDriver(t).call(t, "stop", map[string]any{"id": id}, nil) })
	return func() []incoming { return javaReceived(t, id) }
}

// Where a new group begins: at the first message, at the end, or at a time. A group for which the broker can say that
// the queue begins at 0 in memory begins there whatever it asks for; so memory is made small.
func TestConsumeFrom(t *testing.T) {
	t.Parallel()
	namesrv := ownBroker(t, "accessMessageInMemoryMaxRatio=0")
	const topic = "E2E_FROM"
	createTopic(t, namesrv, topic, 2)
	old, middle, fresh := numbered("old", 10), numbered("middle", 10), numbered("new", 10)
	send := func(ms []outgoing) { sharedDriver(t).send(t, namesrv, topic, "sync", ms, nil) }
	send(old)
	time.Sleep(1100 * time.Millisecond) // the clients' unit of time is a second
	at := time.Now().Format("20060102150405")
	time.Sleep(1100 * time.Millisecond)
	send(middle)
	received := map[string]func() []incoming{}
	want := map[string][]outgoing{
		"first": slices.Concat(old, middle, fresh), "last": fresh, "timestamp": slices.Concat(middle, fresh),
	}
	if reference() { // it asks the kernel whether the first message is in memory, and it is
		want["last"], want["timestamp"] = want["first"], want["first"]
	}
	for from, where := range map[string]string{"first": "CONSUME_FROM_FIRST_OFFSET", "last": "CONSUME_FROM_LAST_OFFSET", "timestamp": "CONSUME_FROM_TIMESTAMP"} {
		received["Java "+from] = javaPush(t, map[string]any{"id": "from-" + from, "namesrv": namesrv, "group": "e2e_from_java_" + from, "topic": topic, "from": where, "timestamp": at})
		received["Go "+from] = goPushConsumer(t, goSpec{Namesrv: namesrv, Group: "e2e_from_go_" + from, Instance: "from-" + from, Topic: topic, From: from, Timestamp: at}).received
	}
	// A consumer that begins at the end has found it when its offset is on the broker: what comes later is for it.
	for _, group := range []string{"e2e_from_java_last", "e2e_from_go_last"} {
		waitFor(t, arrival, "the offsets of "+group, func() (bool, string) {
			text, err := sharedDriver(t).tryAdmin("consumerProgress", "-n", namesrv, "-g", group)
			return err == nil && len(linesWith(text, topic)) >= 2, text
		})
	}
	send(fresh)
	for name, got := range received {
		kind := name[strings.IndexByte(name, ' ')+1:]
		waitFor(t, arrival, "the messages of "+name, func() (bool, string) {
			why := missing(want[kind], got())
			return why == "", why
		})
	}
}

// A group whose consumption is switched off gets nothing, and everything once it is switched on; the same with a group that
// may not broadcast.
func TestDisabledGroup(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	const topic = "E2E_DISABLED"
	createTopic(t, c.namesrv, topic, 2)
	set := func(group string, disabled, noBroadcast bool) {
		sharedDriver(t).call(t, "createGroup", map[string]any{"namesrv": c.namesrv, "group": group, "disabled": disabled, "noBroadcast": noBroadcast}, nil)
	}
	for _, g := range []string{"e2e_disabled_java", "e2e_disabled_go"} {
		set(g, true, false)
	}
	set("e2e_nobroadcast", false, true)
	want := numbered("disabled", 20)
	sharedDriver(t).send(t, c.namesrv, topic, "sync", want, nil)
	received := map[string]func() []incoming{
		"e2e_disabled_java": javaPush(t, map[string]any{"id": "disabled", "namesrv": c.namesrv, "group": "e2e_disabled_java", "topic": topic}),
		"e2e_nobroadcast":   javaPush(t, map[string]any{"id": "nobroadcast", "namesrv": c.namesrv, "group": "e2e_nobroadcast", "topic": topic, "broadcast": true}),
		"e2e_disabled_go":   goPushConsumer(t, goSpec{Namesrv: c.namesrv, Group: "e2e_disabled_go", Instance: "disabled", Topic: topic}).received,
	}
	other := javaPush(t, map[string]any{"id": "enabled", "namesrv": c.namesrv, "group": "e2e_enabled", "topic": topic})
	waitFor(t, arrival, "the messages at a group that may read", func() (bool, string) {
		why := missing(want, other())
		return why == "", why
	})
	time.Sleep(2 * time.Second)
	for group, got := range received {
		if n := len(got()); n > 0 {
			t.Errorf("%s got %d messages", group, n)
		}
		set(group, false, false)
	}
	for group, got := range received {
		waitFor(t, arrival+30*time.Second, "the messages at "+group+" once it may read", func() (bool, string) {
			why := missing(want, got())
			return why == "", why
		})
	}
}

// A lite pull consumer commits what it polled, goes on from there, and takes over an offset that an operator sets (N033).
func TestLitePull(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	const topic, group = "E2E_LITE", "e2e_lite"
	createTopic(t, c.namesrv, topic, 2)
	want := numbered("lite", 30)
	sharedDriver(t).send(t, c.namesrv, topic, "sync", want, nil)
	d := sharedDriver(t)
	begin := func() {
		d.call(t, "litePull", map[string]any{"id": "lite", "namesrv": c.namesrv, "group": group, "topic": topic}, nil)
	}
	end := func() { d.call(t, "litePullStop", map[string]any{"id": "lite"}, nil) }
	poll := func(want []outgoing, what string) {
		t.Helper()
		var got []incoming
		waitFor(t, arrival, what, func() (bool, string) {
			var more []incoming
			d.call(t, "litePullPoll", map[string]any{"id": "lite"}, &more)
			got = append(got, more...)
			why := missing(want, got)
			return why == "", why
		})
	}
	begin()
	poll(want, "the messages of a lite pull consumer")
	waitFor(t, arrival, "its offsets at the broker", func() (bool, string) {
		d.call(t, "litePullPoll", map[string]any{"id": "lite"}, nil) // commits what it gave before
		text := d.admin(t, "consumerProgress", "-n", c.namesrv, "-g", group)
		done := 0
		for _, line := range linesWith(text, topic) {
			if f := strings.Fields(line); len(f) > 4 && f[3] == f[4] && f[3] != "0" {
				done++
			}
		}
		return done == 2, text
	})
	end()
	more := numbered("more", 10)
	d.send(t, c.namesrv, topic, "sync", more, nil)
	begin()
	defer end()
	poll(more, "the messages behind its offsets")
	text := d.admin(t, "resetOffsetByTime", "-n", c.namesrv, "-g", group, "-t", topic, "-s", "0")
	t.Log(text)
	poll(slices.Concat(want, more), "everything again after a reset")
}

// A broadcast consumer whose own offset lies before what is left takes over the beginning that the broker tells (N039).
func TestBroadcastOffsetIsCorrected(t *testing.T) {
	t.Parallel()
	hours := make([]string, 24)
	for i := range hours {
		hours[i] = fmt.Sprintf("%02d", i)
	}
	namesrv := ownBroker(t, "fileReservedTime=0", "deleteWhen="+strings.Join(hours, ";"), "cleanResourceInterval=1000", "deleteCommitLogFilesInterval=10",
		"maxMessageSize=4194304")
	const topic = "E2E_BC_OLD"
	createTopic(t, namesrv, topic, 1)
	d := sharedDriver(t)
	d.send(t, namesrv, topic, "sync", numbered("old", 5), nil)
	members := map[string]func() func() []incoming{
		"Java": func() func() []incoming {
			d.call(t, "push", map[string]any{"id": "bc-old", "namesrv": namesrv, "group": "e2e_bc_old_java", "topic": topic, "broadcast": true}, nil)
			return func() []incoming { return javaReceived(t, "bc-old") }
		},
	}
	for name, join := range members {
		got := join()
		waitFor(t, arrival, "the first messages at "+name, func() (bool, string) { n := len(got()); return n >= 5, strconv.Itoa(n) })
	}
	time.Sleep(2 * time.Second) // they save their offsets every second
	d.call(t, "stop", map[string]any{"id": "bc-old"}, nil)
	big := make([]outgoing, 12) // four files of the log
	for i := range big {
		big[i].Body = pseudoRandom(300_000, i)
	}
	d.send(t, namesrv, topic, "sync", big, nil)
	waitFor(t, 150*time.Second, "the first file to go", func() (bool, string) {
		text := d.admin(t, "topicStatus", "-n", namesrv, "-t", topic)
		line := linesWith(text, brokerName)
		if len(line) == 0 {
			return false, text
		}
		f := strings.Fields(line[0])
		return len(f) > 2 && f[2] != "0", line[0]
	})
	for name, join := range members {
		got := join()
		fresh := numbered("new "+name, 5)
		d.send(t, namesrv, topic, "sync", fresh, nil)
		waitFor(t, arrival, "new messages at "+name, func() (bool, string) {
			why := lost(fresh, got())
			return why == "", why
		})
		d.call(t, "stop", map[string]any{"id": "bc-old"}, nil)
	}
}

// Clients with a namespace put it before the names of topics and groups; for the broker they are names like any other.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	const space, topic = "e2ens", "E2E_NS"
	createTopic(t, c.namesrv, space+"%"+topic, 2)
	want := numbered("namespace", 20)
	sharedDriver(t).send(t, c.namesrv, topic, "sync", want, map[string]any{"namespace": space})
	inside := javaPush(t, map[string]any{"id": "ns", "namesrv": c.namesrv, "group": "e2e_ns", "topic": topic, "namespace": space})
	outside := javaPush(t, map[string]any{"id": "ns-out", "namesrv": c.namesrv, "group": "e2e_ns", "topic": space + "%" + topic})
	for name, got := range map[string]func() []incoming{"inside": inside, "outside": outside} {
		waitFor(t, arrival, "the messages "+name+" the namespace", func() (bool, string) {
			why := missing(want, got())
			return why == "", why
		})
	}
	if m := inside()[0]; m.Topic != topic {
		t.Errorf("inside the topic is %q", m.Topic)
	}
	text := sharedDriver(t).admin(t, "consumerProgress", "-n", c.namesrv, "-g", space+"%e2e_ns")
	if !strings.Contains(text, space+"%"+topic) {
		t.Errorf("the group of the namespace has no offsets:\n%s", text)
	}
}
