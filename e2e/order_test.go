package e2e

import (
	"fmt"
	"maps"
	"slices"
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
		last[m.QueueID] = max(last[m.QueueID], m.ReceivedAt)
	}
	checkInOrder(t, "the dead member", dead)
	if len(survivor) <= before {
		t.Fatal("the survivor got nothing after the death of the other")
	}
	taken := map[int]bool{}
	for _, m := range survivor[before:] {
		if at, ok := last[m.QueueID]; ok && !taken[m.QueueID] {
			taken[m.QueueID] = true
			if m.ReceivedAt < at {
				t.Errorf("queue %d: the survivor read offset %d at %d, the other still read at %d", m.QueueID, m.QueueOffset, m.ReceivedAt, at)
			}
			t.Logf("queue %d was taken over %v after the death, at offset %d", m.QueueID, time.Duration(m.ReceivedAt-died)*time.Millisecond, m.QueueOffset)
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
