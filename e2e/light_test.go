package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Light queues, batch queues and queues by priority of one make are served and continued by the other.
func TestSpecialQueuesChangeHands(t *testing.T) {
	t.Parallel()
	type broker = func(*testing.T, brokerSpec) *process
	for name, makes := range map[string][3]broker{
		"mqx writes first":    {mqxBroker, apacheBroker, mqxBroker},
		"Apache writes first": {apacheBroker, mqxBroker, apacheBroker},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nsPort, brPort := freePort(t), freePort(t)
			namesrv := loopback(nsPort)
			mqxNameserver(t, nsPort).cleanup(t)
			spec := brokerSpec{
				port: brPort, namesrv: namesrv, store: filepath.Join(testDir(t, "special"), "store"),
				extra: []string{"enableLmq=true", "enableMultiDispatch=true", "mapperFileSizeBatchConsumeQueue=13800"},
			}
			var sent specialSends
			for round, start := range makes {
				p := start(t, spec)
				p.cleanup(t)
				waitRegistered(t, namesrv)
				if round == 0 {
					createTopic(t, namesrv, specialLight, 2)
					for topic, attribute := range map[string][2]string{specialBatch: {"queue.type", "BatchCQ"}, specialPriority: {"message.type", "PRIORITY"}} {
						sharedDriver(t).call(t, "createTopic", map[string]any{
							"namesrv": namesrv, "topic": topic, "queues": 3, "attributes": map[string]string{attribute[0]: attribute[1]},
						}, nil)
					}
				}
				for _, topic := range []string{specialLight, specialBatch, specialPriority} {
					waitTopic(t, namesrv, topic)
				}
				sent.check(t, namesrv, round)
				sent.send(t, namesrv, round)
				sent.check(t, namesrv, round)
				if err := p.stop(t, stopLimit); err != nil && strings.HasPrefix(p.name, "mqx") {
					t.Fatalf("round %d: %s ended with %v", round, p.name, err)
				}
				waitGone(t, namesrv)
			}
		})
	}
}

const specialLight, specialBatch, specialPriority = "E2E_LIGHT", "E2E_BATCHCQ", "E2E_PRIORITY"

// specialSends is what was sent so far.
type specialSends struct {
	light, batch, priority []outgoing
	even                   []outgoing // of light, what also belongs to a second light queue
}

func (s *specialSends) send(t *testing.T, namesrv string, round int) {
	t.Helper()
	d := sharedDriver(t)
	light := numbered(fmt.Sprint("light", round), 20)
	for i := range light {
		names := "%LMQ%e2e"
		if i%2 == 0 {
			names = "%LMQ%even,%LMQ%e2e"
		}
		light[i].System = map[string]string{"INNER_MULTI_DISPATCH": names}
		if i%2 == 0 {
			s.even = append(s.even, light[i])
		}
	}
	d.send(t, namesrv, specialLight, "sync", light, nil)
	s.light = append(s.light, light...)
	for i, n := range []int{1, 7, 20} {
		batch := numbered(fmt.Sprintf("batch%d-%d", round, i), n)
		d.send(t, namesrv, specialBatch, "batch", batch, nil)
		single := numbered(fmt.Sprintf("single%d-%d", round, i), 3)
		d.send(t, namesrv, specialBatch, "sync", single, nil)
		s.batch = slices.Concat(s.batch, batch, single)
	}
	for want, priority := range []string{"0", "1", "99"} {
		ms := numbered(fmt.Sprintf("priority%d-%s", round, priority), 4)
		for i := range ms {
			ms[i].System = map[string]string{"_SYS_MSG_PRIORITY_": priority}
		}
		for _, r := range d.send(t, namesrv, specialPriority, "sync", ms, nil) {
			if r.QueueID != want {
				t.Errorf("round %d: priority %s went to queue %d, want %d", round, priority, r.QueueID, want)
			}
		}
		s.priority = append(s.priority, ms...)
	}
}

func (s *specialSends) check(t *testing.T, namesrv string, round int) {
	t.Helper()
	d := sharedDriver(t)
	for topic, want := range map[string][]outgoing{specialLight: s.light, specialBatch: s.batch, specialPriority: s.priority} {
		got := d.pull(t, namesrv, topic, "")
		if why := missing(want, got); why != "" {
			t.Errorf("round %d: %s: %s", round, topic, why)
		}
		checkOffsets(t, got)
	}
	for queue, want := range map[string][]outgoing{"%LMQ%e2e": s.light, "%LMQ%even": s.even} {
		var got []incoming
		d.call(t, "pull", map[string]any{"namesrv": namesrv, "topic": queue, "light": specialLight}, &got)
		if why := missing(want, got); why != "" {
			t.Errorf("round %d: %s: %s", round, queue, why)
		}
		order := bodies(got)
		for i := range min(len(order), len(want)) {
			if order[i] != want[i].Body {
				t.Fatalf("round %d: message %d of %s is %q, want %q", round, i, queue, order[i], want[i].Body)
			}
		}
	}
}
