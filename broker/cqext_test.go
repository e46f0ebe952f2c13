package broker

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/internal/testkit"
	"mqx/store"
)

// The consume queues and their extension are built from the log as Apache had built them, to the byte: with the filters
// that were in force.
func TestExtensionsAsApache(t *testing.T) {
	root := testkit.GoldenStore(t, "cqext")
	want := map[string][]byte{}
	for _, name := range []string{"consumequeue/ExtTopic/0", "consumequeue/ExtTopic/1", "consumequeue_ext/ExtTopic/0", "consumequeue_ext/ExtTopic/1"} {
		path := filepath.Join(root, name, "00000000000000000000")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want[path] = data
	}
	for _, dir := range []string{"consumequeue", "consumequeue_ext"} {
		if err := os.RemoveAll(filepath.Join(root, dir)); err != nil {
			t.Fatal(err)
		}
	}
	// The file names both groups as dead; what they want stays known for a day.
	filters := testFilters(t, filepath.Join(root, "config", "consumerFilter.json"), 8, clock.NewManual(time.UnixMilli(1795993305461)))
	cfg := store.DefaultConfig()
	cfg.RootDir, cfg.Logger = root, slog.New(slog.DiscardHandler)
	cfg.CommitLogFileBytes, cfg.ConsumeQueueFileBytes, cfg.MaxHashSlotNum, cfg.MaxIndexNum = 1048576, 6000, 1000, 4000
	cfg.EnableConsumeQueueExt, cfg.ConsumeQueueExtFileBytes, cfg.BitMaps = true, 65536, filters
	s, err := store.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for path, data := range want {
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s differs from Apache's: %v", path, err)
		}
	}
}
