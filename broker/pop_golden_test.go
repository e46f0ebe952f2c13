package broker

import (
	"path/filepath"
	"testing"
	"time"

	"mqx/broker/pop"
	"mqx/internal/testkit"
	"mqx/message"
)

// What Apache's broker had handed out and not revived yet when it stopped, or
// was killed, mqx revives: each message that nobody acknowledged lies in the
// retry topic once, those that were there already not again.
func TestPopContinuesApachesStore(t *testing.T) {
	for _, variant := range []string{"pop", "pop_buffermerge", "pop_running"} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			root := testkit.GoldenStore(t, variant)
			want := unacknowledged(t, variant, root)
			cfg := testConfig(filepath.Dir(root))
			cfg.BrokerClusterName, cfg.BrokerName = "GoldenCluster", "broker-g"
			cfg.Store.RootDir = root
			cfg.ReviveEvery = 50 * time.Millisecond
			r := start(t, cfg)
			const retry = "%RETRY%CG_pop_PopTopic"
			deadline := time.Now().Add(30 * time.Second)
			for r.store.MaxOffset(retry, 0) < int64(len(want)) && time.Now().Before(deadline) {
				time.Sleep(50 * time.Millisecond)
			}
			time.Sleep(3 * time.Second) // what is too much would come now
			res := r.pops.get(pop.QueueKey{Topic: retry, Group: "G"}, 0, 32, nil)
			defer res.Release()
			got := map[string]int{}
			for rec := range recordsIn(res.Parts) {
				v, err := message.ParseView(rec, message.DecodeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				got[string(v.Body())]++
			}
			for body := range want {
				if got[body] != 1 {
					t.Errorf("%q lies in the retry topic %d times", body, got[body])
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d messages are in the retry topic, %d were not acknowledged", len(got), len(want))
			}
		})
	}
}

// unacknowledged finds the bodies that checkpoints of a store name and no ack
// does.
func unacknowledged(t *testing.T, variant, root string) map[string]bool {
	t.Helper()
	log := testkit.GoldenCommitLog(t, root)
	type place struct {
		queue  int32
		offset int64
	}
	bodies, open := map[place]string{}, map[pop.Key]*pop.Checkpoint{}
	acked := map[pop.Key]map[int64]bool{}
	view := testkit.GoldenManifest(t, variant).StoreView
	for i := range view.CommitLogRecords {
		lr := &view.CommitLogRecords[i]
		if lr.IsBlank() {
			continue
		}
		rec, err := message.DecodeRecord(log.From(lr.Offset()), message.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if string(rec.Topic) == "PopTopic" {
			bodies[place{rec.QueueID, rec.QueueOffset}] = string(rec.Body)
		}
		tag, _ := message.Property(rec.Properties, message.PropTags)
		if string(rec.Topic) != message.TopicTimer && string(rec.Topic) != "rmq_sys_REVIVE_LOG_GoldenCluster" {
			continue
		}
		parsed, err := pop.ParseRecord(string(tag), rec.Body)
		if err != nil {
			t.Fatal(err)
		}
		if c := parsed.Checkpoint; c != nil {
			open[pop.KeyOf(c)] = c
		}
		if a := parsed.Ack; a != nil {
			k := pop.Key{Topic: a.Topic, Group: a.Group, Queue: a.Queue, Start: a.Start, PopTime: a.PopTime}
			if acked[k] == nil {
				acked[k] = map[int64]bool{}
			}
			for off := range a.All() {
				acked[k][off] = true
			}
		}
	}
	want := map[string]bool{}
	for k, c := range open {
		for i := range c.Count() {
			if off := c.OffsetAt(i); !acked[k][off] {
				want[bodies[place{c.Queue, off}]] = true
			}
		}
	}
	return want
}
