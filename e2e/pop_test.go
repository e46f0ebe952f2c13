package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// popArrival is how long popped messages may take that come back after a
// failure: the client asks for ten seconds, revival adds a few.
const popArrival = 60 * time.Second

// A push consumer of the Java client that an operator has switched to pop gets
// every message, and the one it failed once more.
func TestPopPushConsumer(t *testing.T) {
	c := sharedCluster(t)
	d := sharedDriver(t)
	const topic, group = "E2EPop", "GID_e2e_pop"
	createTopic(t, c.namesrv, topic, 4)
	if out := d.admin(t, "setConsumeMode", "-b", c.broker, "-t", topic, "-g", group, "-m", "POP", "-q", "8"); !strings.Contains(out, "success") {
		t.Fatalf("setConsumeMode: %s", out)
	}
	out := numbered("pop", 40)
	out[7].Body = "fail-once " + out[7].Body
	d.call(t, "push", map[string]any{
		"namesrv": c.namesrv, "topic": topic, "group": group, "id": "popper", "serverRebalance": true,
	}, nil)
	defer d.call(t, "stop", map[string]any{"id": "popper"}, nil)
	d.send(t, c.namesrv, topic, "sync", out, nil)
	var got []incoming
	waitFor(t, arrival+popArrival, "the popped messages", func() (bool, string) {
		got = nil
		d.call(t, "received", map[string]any{"id": "popper"}, &got)
		return len(got) >= len(out)+1, fmt.Sprintf("%d of %d", len(got), len(out)+1)
	})
	times := map[string]int{}
	for _, m := range got {
		if m.Topic != topic {
			t.Errorf("a message of topic %s", m.Topic)
		}
		times[string(m.Body)]++
	}
	for _, m := range out {
		want := 1
		if strings.HasPrefix(m.Body, "fail-once") {
			want = 2
		}
		if times[string(m.Body)] != want {
			t.Errorf("%q came %d times, want %d", m.Body, times[string(m.Body)], want)
		}
	}
	var assigned []string
	d.call(t, "popAssigned", map[string]any{"id": "popper"}, &assigned)
	if !slices.Equal(assigned, []string{brokerName + ":-1"}) {
		t.Errorf("assigned %v", assigned)
	}
}
