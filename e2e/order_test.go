package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// handOver is how long the queue of a killed consumer may take to reach another: its lock lives for 60 s after its owner
// last asked for it, and clients ask every 20 s.
const handOver = 150 * time.Second

// The queues of an orderly consumer that is killed reach the other member: nothing is lost, nothing out of order, and no
// queue has two readers at a time.
func TestKilledOrderlyConsumer(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	const slow = 20
	for name, join := range map[string]func(t *testing.T, topic, group, id string) member{
		"Go": func(t *testing.T, topic, group, id string) member {
			return startGoMember(t, goSpec{Namesrv: c.namesrv, Group: group, Instance: id, Topic: topic, Orderly: true, SlowMs: slow})
		},
		"Java": func(t *testing.T, topic, group, id string) member {
			return startJavaMember(t, map[string]any{"id": id, "namesrv": c.namesrv, "group": group, "topic": topic, "orderly": true, "slow": slow})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic, group := "E2E_ORDER_KILL_"+name, "e2e_order_kill_"+name
			createTopic(t, c.namesrv, topic, 4)
			var want []outgoing
			send := func(part string, n int) {
				for _, shard := range []string{"a", "b", "c", "d", "e", "f"} {
					ms := numbered(shard+part, n)
					sharedDriver(t).send(t, c.namesrv, topic, "shard", ms, map[string]any{"shard": shard})
					want = append(want, ms...)
				}
			}
			first, second := join(t, topic, group, "first"), join(t, topic, group, "second")
			send("1", 20)
			asked := time.Now()
			// A member of the Go client that gives a queue away may let its lock run out.
			waitFor(t, handOver, "both members to have queues", func() (bool, string) {
				a, b := queueEnds(first.received()), queueEnds(second.received())
				if (len(a) == 0 || len(b) == 0) && time.Since(asked) > 2*time.Second {
					send(fmt.Sprintf("2%05d", len(want)), 1)
					asked = time.Now()
				}
				return len(a) > 0 && len(b) > 0, fmt.Sprint(len(a), " and ", len(b), " queues")
			})
			send("3", 100)
			time.Sleep(200 * time.Millisecond) // in the middle of them
			before := first.received()
			second.kill()
			died := time.Now().UnixMilli()
			send("4", 20)
			waitFor(t, handOver, "everything at the two members", func() (bool, string) {
				why := lost(want, append(first.received(), second.received()...))
				return why == "", why
			})
			checkHandOver(t, first.received(), second.received(), len(before), died)
		})
	}
}

// checkHandOver looks at each queue: what the survivor read of it, and how that goes with what the dead member read.
func checkHandOver(t *testing.T, survivor, dead []incoming, before int, died int64) {
	t.Helper()
	last := map[int]int64{}
	for _, m := range dead {
		last[m.QueueID] = max(last[m.QueueID], m.At)
	}
	checkInOrder(t, "the dead member", dead)
	if len(survivor) <= before {
		t.Fatal("the survivor got nothing after the death of the other")
	}
	taken := map[int]bool{}
	for _, m := range survivor[before:] {
		if at, ok := last[m.QueueID]; ok && !taken[m.QueueID] {
			taken[m.QueueID] = true
			if m.At < at {
				t.Errorf("queue %d: the survivor read offset %d at %d, the other still read at %d", m.QueueID, m.QueueOffset, m.At, at)
			}
			t.Logf("queue %d was taken over %v after the death, at offset %d", m.QueueID, time.Duration(m.At-died)*time.Millisecond, m.QueueOffset)
		}
	}
	checkInOrder(t, "the survivor", survivor[before:])
}

// checkInOrder: the offsets of a queue never go back, and none is left out.
func checkInOrder(t *testing.T, who string, ms []incoming) {
	t.Helper()
	next := map[int]int64{}
	for _, m := range ms {
		if want, seen := next[m.QueueID]; seen && m.QueueOffset != want {
			t.Errorf("%s: queue %d: offset %d where %d was due", who, m.QueueID, m.QueueOffset, want)
		}
		next[m.QueueID] = m.QueueOffset + 1
	}
	t.Logf("%s: ends of queues %v", who, slices.Sorted(maps.Keys(next)))
}

// A queue that a consumer suspends stays where it is: the message comes again, and the next one after it.
func TestSuspendedQueue(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	const topic = "E2E_SUSPEND"
	createTopic(t, c.namesrv, topic, 2)
	want := numbered("suspend", 10)
	sharedDriver(t).send(t, c.namesrv, topic, "sync", want, nil)
	received := javaPush(t, map[string]any{"id": "suspend", "namesrv": c.namesrv, "group": "e2e_suspend", "topic": topic, "orderly": true, "failTimes": 2, "suspend": 50})
	waitFor(t, arrival, "all messages, each three times", func() (bool, string) {
		n := len(received())
		return n >= 3*len(want), fmt.Sprint(n)
	})
	next, times := map[int]int64{}, map[int64]int{}
	for _, m := range received() {
		if m.QueueOffset < next[m.QueueID] {
			t.Errorf("queue %d: offset %d came again behind %d", m.QueueID, m.QueueOffset, next[m.QueueID])
		}
		next[m.QueueID] = m.QueueOffset
		times[int64(m.QueueID)<<32|m.QueueOffset]++
	}
	for k, n := range times {
		if n != 3 {
			t.Errorf("queue %d, offset %d came %d times, want 3", k>>32, k&0xffffffff, n)
		}
	}
}

// The configuration of order topics at the name server decides how many queues of each broker producers write to, and a
// broker takes over which of its topics are in order.
func TestOrderTopicConfig(t *testing.T) {
	t.Parallel()
	namesrv := ownBroker(t)
	const topic = "E2E_ORDERCONF"
	d := sharedDriver(t)
	d.admin(t, "updateNamesrvConfig", "-n", namesrv, "-k", "orderMessageEnable", "-v", "true")
	createTopic(t, namesrv, topic, 8)
	d.admin(t, "updateOrderConf", "-n", namesrv, "-m", "put", "-t", topic, "-v", brokerName+":2")
	if text := d.admin(t, "topicRoute", "-n", namesrv, "-t", topic); !strings.Contains(text, brokerName+":2") {
		t.Errorf("the route does not tell the order:\n%s", text)
	}
	used := map[int]bool{}
	for _, s := range d.send(t, namesrv, topic, "sync", numbered("order", 24), map[string]any{}) {
		used[s.QueueID] = true
	}
	if len(used) != 2 || !used[0] || !used[1] {
		t.Errorf("producers write to the queues %v, want 0 and 1", slices.Sorted(maps.Keys(used)))
	}
	waitFor(t, 60*time.Second, "the broker to know that the topic is in order", func() (bool, string) {
		var ordered bool
		err := d.try("isOrdered", map[string]any{"namesrv": namesrv, "topic": topic}, &ordered)
		return ordered, fmt.Sprint(ordered, err)
	})
}
