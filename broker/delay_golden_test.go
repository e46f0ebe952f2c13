package broker

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mqx/broker/delay"
	"mqx/broker/retry"
	"mqx/internal/clock"
	"mqx/internal/fastjson"
	"mqx/internal/testkit"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
)

// goldenBroker is a broker on a store that Apache left.
func goldenBroker(t *testing.T, variant string, now time.Time) Config {
	t.Helper()
	cfg := testConfig(testkit.GoldenStore(t, variant))
	cfg.BrokerClusterName, cfg.BrokerName = "GoldenCluster", "broker-g"
	cfg.Store.MaxMessageBytes = 262144
	cfg.FlushDelayOffset = 20 * time.Millisecond
	cfg.Clock = clock.NewManual(now)
	return cfg
}

// logOf are the records of a golden store, by unique key in the order of the log.
func logOf(t *testing.T, cfg Config, variant string) map[string][]message.View {
	t.Helper()
	log := testkit.GoldenCommitLog(t, cfg.Store.RootDir)
	out := map[string][]message.View{}
	for _, r := range testkit.GoldenManifest(t, variant).StoreView.CommitLogRecords {
		if r.IsBlank() {
			continue
		}
		v, err := message.ParseView(log.From(r.PhysicalOffset), message.DecodeOptions{VerifyBodyCRC: true})
		if err != nil {
			t.Fatal(err)
		}
		key, _ := v.Property(message.PropUniqKey)
		out[string(key)] = append(out[string(key)], v)
	}
	return out
}

// Every record that Apache wrote for a message that was sent back or delayed is
// what the rules make of the record before it.
func TestGoldenRetriesAndDelays(t *testing.T) {
	for variant, want := range map[string]struct{ sentBack, delivered int }{
		"retry_dlq": {14, 8}, "retry_pending": {6, 4}, "delay_timer": {0, 5},
	} {
		t.Run(variant, func(t *testing.T) {
			sentBack, delivered := 0, 0
			for _, recs := range logOf(t, goldenBroker(t, variant, time.Now()), variant) {
				for i, v := range recs[min(1, len(recs)):] {
					before := recs[i]
					var rec message.Record
					var err error
					switch {
					case string(before.Topic()) == message.TopicSchedule:
						delivered++
						if rec, err = delay.Deliver(before); err != nil {
							t.Fatal(err)
						}
					case v.ReconsumeTimes() > 0:
						sentBack++
						rec = sentBackTwin(before, v)
					default:
						continue // timers
					}
					sameStored(t, rec, v)
				}
			}
			if sentBack != want.sentBack || delivered != want.delivered {
				t.Errorf("%d sent back, %d delivered; want %+v", sentBack, delivered, want)
			}
		})
	}
}

// sentBackTwin makes the record that v is of the one before it.
func sentBackTwin(before, v message.View) message.Record {
	props := message.ParseProperties(v.Properties())
	level := map[string]int32{"0": 0, "1": 1, "5": 5}[props[message.PropDelay]]
	most := int32(2) // the group's
	if level == 0 && before.ReconsumeTimes() < most {
		level = -1
	}
	d := retry.Decide(before.ReconsumeTimes(), most, level)
	topic := "%RETRY%CG_retry"
	if d.DLQ {
		topic = "%DLQ%CG_retry"
	}
	rec := retry.Next(before, d, topic, 0, v.StoreHost())
	b := &Broker{delayLevels: make(delay.Levels, 18)}
	if e := b.divert(&rec, time.Time{}); e != nil {
		panic(e)
	}
	return rec
}

// sameStored compares what will be stored with what was. Apache writes
// properties in the order of a hash table.
func sameStored(t *testing.T, rec message.Record, v message.View) {
	t.Helper()
	got, err := message.DecodeRecord(rec.Append(nil, false), message.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := v.Record()
	if d := cmp.Diff(message.ParseProperties(want.Properties), message.ParseProperties(got.Properties)); d != "" {
		t.Errorf("properties of %s:\n%s", want.Topic, d)
	}
	got.Properties, want.Properties = nil, nil
	got.Size, want.Size = 0, 0
	got.QueueOffset, got.PhysicalOffset, got.StoreTimestamp = want.QueueOffset, want.PhysicalOffset, want.StoreTimestamp
	if d := cmp.Diff(want, got, addrPorts); d != "" {
		t.Errorf("record in %s:\n%s", want.Topic, d)
	}
}

// A broker continues a store that Apache left with delayed messages in flight:
// each is delivered when its time has come, none that was delivered before.
func TestGoldenDelaysAreContinued(t *testing.T) {
	for variant, levels := range map[string]map[int32]int64{ // where Apache's queues end
		"retry_dlq": {1: 8, 5: 1}, "retry_pending": {1: 4, 5: 1},
		"delay_timer":         {1: 2, 2: 1, 3: 1, 4: 1, 5: 1, 9: 1, 14: 1, 18: 2},
		"delay_timer_running": {1: 2, 2: 1, 3: 1, 4: 1, 5: 1, 9: 1, 14: 1, 18: 2},
	} {
		t.Run(variant, func(t *testing.T) {
			cfg := goldenBroker(t, variant, time.Now())
			cfg.TimerStopEnqueue, cfg.TimerStopDequeue = true, true
			saved, err := vfs.ReadFile(vfs.OS, cfg.Store.RootDir+"/config/delayOffset.json")
			if err != nil {
				t.Fatal(err)
			}
			var table remoting.DelayOffsets
			if err := fastjson.Unmarshal(saved, &table); err != nil {
				t.Fatal(err)
			}
			pending := map[string]bool{}
			r := start(t, cfg)
			waitFor(t, "the deliveries", func() bool { return maps.Equal(r.delays.table().OffsetTable, levels) })
			r.settle()
			for level, from := range table.OffsetTable {
				for off := from; off < levels[level]; off++ {
					for _, u := range r.unitsOf(message.TopicSchedule, delay.QueueOf(int(level)), off) {
						pending[u.key] = true
					}
				}
			}
			found := map[string]int{}
			for q := range r.store.Queues() {
				if q.Topic == message.TopicSchedule {
					continue
				}
				for _, u := range r.unitsOf(q.Topic, q.QueueID, q.Min) {
					if u.phys >= testkit.GoldenManifest(t, variant).StoreView.CommitLogMaxOffset {
						found[u.key]++
					}
				}
			}
			for key := range pending {
				if found[key] != 1 {
					t.Errorf("%s was delivered %d times", key, found[key])
				}
			}
			if len(found) != len(pending) || len(pending) == 0 {
				t.Errorf("%d messages were pending, %d were delivered", len(pending), len(found))
			}
		})
	}
}

type keyed struct {
	key  string
	phys int64
}

// unitsOf are the messages of a queue from an offset on, at most 1000.
func (r *running) unitsOf(topic string, q int32, from int64) []keyed {
	r.t.Helper()
	units, err := r.store.Units(topic, q, from, 1000)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []keyed
	for _, u := range units {
		b, err := r.store.RecordAt(u.PhysicalOffset)
		if err != nil {
			r.t.Fatal(err)
		}
		key, _ := message.View(b).Property(message.PropUniqKey)
		out = append(out, keyed{string(key), u.PhysicalOffset})
	}
	return out
}
