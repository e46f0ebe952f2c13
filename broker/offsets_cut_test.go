package broker

import (
	"os"
	"path/filepath"
	"testing"

	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store"
	"mqx/store/ha"
)

// A group that had consumed what a loss of power took gets the messages that come in their place (N082, r#4771). After an
// orderly stop an offset behind the end stays: somebody has set it.
func TestOffsetsBehindTheEndAfterACrash(t *testing.T) {
	for name, c := range map[string]struct {
		crashed bool
		want    int64
	}{"crash": {true, 5}, "orderly stop": {false, 9}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fiveMessages(t, dir)
			config := filepath.Join(dir, "config")
			if err := os.MkdirAll(config, 0o755); err != nil {
				t.Fatal(err)
			}
			const text = `{"offsetTable":{"T@behind":{0:9},"T@within":{0:3},"%LMQ%x@lite":{0:7},"Unknown@g":{0:4}}}`
			if err := jsonfile.Save(vfs.OS, filepath.Join(config, "consumerOffset.json"), []byte(text)); err != nil {
				t.Fatal(err)
			}
			if c.crashed {
				if err := os.WriteFile(filepath.Join(dir, "abort"), []byte("1"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			// A second start must not be needed: the first one saves before it serves.
			for range 2 {
				r := start(t, testConfig(dir))
				for _, x := range []struct {
					topic, group string
					want         int64
				}{{"T", "behind", c.want}, {"T", "within", 3}, {"%LMQ%x", "lite", 7}} {
					if got, ok := r.offsets.Committed(x.topic, x.group, 0); !ok || got != x.want {
						t.Errorf("%s@%s is %d (%v), want %d", x.topic, x.group, got, ok, x.want)
					}
				}
				saved := newOffsetTable(vfs.OS, r.offsets.path, r.now, 1, quiet)
				if err := saved.Load(); err != nil {
					t.Fatal(err)
				}
				if got, _ := saved.Committed("T", "behind", 0); got != c.want {
					t.Errorf("on disk it is %d while the broker serves, want %d", got, c.want)
				}
				r.stop()
			}
		})
	}
}

// fiveMessages makes a store with five messages in queue 0 of topic T.
func fiveMessages(t *testing.T, dir string) {
	t.Helper()
	cfg := testConfig(dir).Store
	cfg.Logger = quiet
	s, err := store.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		done := make(chan *store.Put, 1)
		s.PutBatch([]*store.Put{{Record: message.Record{Topic: []byte("T"), Body: []byte("x")}, Done: func(p *store.Put) { done <- p }}})
		if p := <-done; p.Status != store.PutOK {
			t.Fatal(p.Status, p.Err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A slave whose master was lost with the last messages has their offsets: with the next master it takes those of that one, and as
// the master itself it begins at the ends of its queues. The messages that come in the place of the lost ones are not passed over.
func TestOffsetsOfALostTail(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	m.createTopic("T", 1)
	for range 5 {
		m.send("T", 0, "", "x")
	}
	m.heartbeat("G", "CLUSTERING")
	m.commit("G", "T", 0, 4)
	s := startSlave(t, m, 1, nil)
	m.until("the log does not come", func() bool { return s.store.MaxOffset("T", 0) == 5 })
	s.offsets.Commit([]byte("T"), []byte("G"), 0, 9) // as the master before had told
	var told tables
	told.b, told.master = s.Broker, m.addr
	if err := told.syncOffsets(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.offsets.Committed("T", "G", 0); got != 5 {
		t.Errorf("beside the next master it is %d, want 5: the end of the queue", got)
	}
	m.commit("G", "T", 0, 7) // it is behind
	if err := told.syncOffsets(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.offsets.Committed("T", "G", 0); got != 7 {
		t.Errorf("an offset of a message that has not come yet is %d, want 7", got)
	}
	m.stop() // it would tell the 7 again
	if err := s.role.Change(func(r *roleState) error { r.Epochs = []ha.RoleEpoch{{Epoch: 1, Start: -1}}; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.beginEpoch(); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.offsets.Committed("T", "G", 0); got != 5 {
		t.Errorf("of a promoted slave it is %d, want 5", got)
	}
	s.stop()
}
