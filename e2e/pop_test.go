package e2e

import (
	"fmt"
	"path/filepath"
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
	t.Parallel()
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
		if times[m.Body] != want {
			t.Errorf("%q came %d times, want %d", m.Body, times[m.Body], want)
		}
	}
	var assigned []string
	d.call(t, "popAssigned", map[string]any{"id": "popper"}, &assigned)
	if !slices.Equal(assigned, []string{brokerName + ":-1"}) {
		t.Errorf("assigned %v", assigned)
	}
}

// Messages that were popped from one make and not acknowledged come back from
// the other, which continues its store; those that were do not.
func TestPopCrossesMakes(t *testing.T) {
	t.Parallel()
	for name, makes := range map[string][2]func(*testing.T, brokerSpec) *process{
		"mqx first":    {mqxBroker, apacheBroker},
		"Apache first": {apacheBroker, mqxBroker},
	} {
		t.Run(name, func(t *testing.T) {
			nsPort, brPort := freePort(t), freePort(t)
			namesrv, broker := loopback(nsPort), loopback(brPort)
			mqxNameserver(t, nsPort).cleanup(t)
			spec := brokerSpec{port: brPort, namesrv: namesrv, store: filepath.Join(testDir(t, "pop-cross"), "store")}
			first := makes[0](t, spec)
			first.cleanup(t)
			waitRegistered(t, namesrv)
			d := startDriver(t) // its consumers die with it
			const topic, group = "E2EPopCross", "GID_e2e_pop_cross"
			createTopic(t, namesrv, topic, 2)
			sharedDriver(t).admin(t, "setConsumeMode", "-b", broker, "-t", topic, "-g", group, "-m", "POP", "-q", "8")
			pusher := func(d *driver, id string, hang bool) {
				d.call(t, "push", map[string]any{
					"namesrv": namesrv, "topic": topic, "group": group, "id": id, "serverRebalance": true, "popInvisible": 20_000, "hang": hang,
				}, nil)
			}
			received := func(d *driver, id string, n int) []incoming {
				var got []incoming
				waitFor(t, arrival+popArrival, "popped messages", func() (bool, string) {
					got = nil
					d.call(t, "received", map[string]any{"id": id}, &got)
					return len(got) >= n, fmt.Sprintf("%d of %d", len(got), n)
				})
				return got
			}
			acked, hung := numbered("acked", 10), numbered("hung", 10)
			sharedDriver(t).send(t, namesrv, topic, "sync", acked, nil)
			pusher(d, "acks", false)
			received(d, "acks", len(acked))
			d.call(t, "stop", map[string]any{"id": "acks"}, nil)
			sharedDriver(t).send(t, namesrv, topic, "sync", hung, nil)
			pusher(d, "hangs", true)
			received(d, "hangs", len(hung))
			d.kill()
			takeOver(t, first, makes[1], spec, namesrv, topic)
			pusher(sharedDriver(t), "after-"+name, false)
			defer sharedDriver(t).call(t, "stop", map[string]any{"id": "after-" + name}, nil)
			got := received(sharedDriver(t), "after-"+name, len(hung))
			times := map[string]int{}
			for _, m := range got {
				times[string(m.Body)]++
			}
			for _, m := range hung {
				if times[m.Body] != 1 {
					t.Errorf("%q came back %d times, want once", m.Body, times[m.Body])
				}
			}
			for _, m := range acked {
				if times[m.Body] != 0 {
					t.Errorf("%q came back and was acknowledged", m.Body)
				}
			}
		})
	}
}
