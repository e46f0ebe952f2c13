package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// What operators ask of clients through the broker: who is connected, what a consumer does, what it has in memory, a message
// for it to consume now; and the offsets of one group for another, until that is deleted with them.
func TestAdminAsksClients(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	const topic, group, other = "E2E_ASK", "e2e_ask", "e2e_ask_clone"
	createTopic(t, c.namesrv, topic, 2)
	d := sharedDriver(t)
	run := func(command string, args ...string) string {
		return d.admin(t, append([]string{command, "-n", c.namesrv}, args...)...)
	}
	results := d.send(t, c.namesrv, topic, "sync", numbered("ask", 10), nil)
	java := javaPush(t, map[string]any{"id": "ask", "namesrv": c.namesrv, "group": group, "topic": topic})
	goGot := goPushConsumer(t, goSpec{Namesrv: c.namesrv, Group: group + "_go", Instance: "ask-go", Topic: topic})
	for name, received := range map[string]func() []incoming{"Java": java, "Go": goGot.received} {
		waitFor(t, arrival, "the messages at the "+name+" consumer", func() (bool, string) { n := len(received()); return n >= 10, fmt.Sprint(n) })
	}
	ids := map[string]string{}
	for _, g := range []string{group, group + "_go"} {
		text := run("consumerConnection", "-g", g)
		if !strings.Contains(text, "CLUSTERING") || !strings.Contains(text, topic) {
			t.Errorf("the connections of %s:\n%s", g, text)
		}
		for _, line := range strings.Split(text, "\n") {
			if f := strings.Fields(line); len(f) > 1 && strings.Contains(f[1], "@ask") {
				ids[g] = f[1]
			} else if len(f) > 0 && strings.Contains(f[0], "@ask") {
				ids[g] = f[0]
			}
		}
		if ids[g] == "" {
			t.Fatalf("%s has no client:\n%s", g, text)
		}
		waitFor(t, arrival, "the status of "+ids[g], func() (bool, string) {
			text, err := d.tryAdmin("consumerStatus", "-n", c.namesrv, "-g", g, "-i", ids[g])
			// The Go client samples its statistics every 10 s and divides by the time between the oldest and the newest
			// sample: while it has a single one, it answers that NaN is not JSON. Every other error ends the test.
			if err != nil && !strings.Contains(err.Error(), "unsupported value: NaN") {
				t.Fatal(err)
			}
			return err == nil && strings.Contains(text, topic), fmt.Sprint(text, err)
		})
	}
	if text := run("producerConnection", "-g", "e2e_java_producer", "-t", topic); !strings.Contains(text, "JAVA") {
		t.Errorf("the connections of the producer:\n%s", text)
	}
	before := len(java())
	text := run("queryMsgById", "-t", topic, "-i", results[0].OffsetMsgID, "-g", group, "-d", ids[group])
	if !strings.Contains(text, "CR_SUCCESS") {
		t.Errorf("a message to be consumed now:\n%s", text)
	}
	if got := java(); len(got) != before+1 || string(got[len(got)-1].Body) != numbered("ask", 10)[0].Body {
		t.Errorf("the consumer got %d messages, %d before", len(got), before)
	}
	waitFor(t, arrival, "the offsets of the group", func() (bool, string) {
		text := run("consumerProgress", "-g", group)
		done := 0
		for _, line := range linesWith(text, topic) {
			if f := strings.Fields(line); len(f) > 4 && f[3] == f[4] && f[3] == "5" {
				done++
			}
		}
		return done == 2, text
	})
	d.call(t, "createGroup", map[string]any{"namesrv": c.namesrv, "group": other}, nil)
	run("cloneGroupOffset", "-s", group, "-d", other, "-t", topic, "-o", "true")
	fresh := numbered("fresh", 4)
	d.send(t, c.namesrv, topic, "sync", fresh, nil)
	read := func(want []outgoing, what string) {
		t.Helper()
		d.call(t, "push", map[string]any{"id": "ask-clone", "namesrv": c.namesrv, "group": other, "topic": topic}, nil)
		defer d.call(t, "stop", map[string]any{"id": "ask-clone"}, nil)
		waitFor(t, arrival, what, func() (bool, string) {
			why := missing(want, javaReceived(t, "ask-clone"))
			return why == "", why
		})
	}
	read(fresh, "the group with the offsets of the other to go on behind them")
	run("deleteSubGroup", "-b", c.broker, "-g", other, "-r", "true")
	read(append(numbered("ask", 10), fresh...), "a group without offsets to begin anew")
}
