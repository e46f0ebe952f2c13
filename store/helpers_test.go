package store

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"mqx/internal/testkit"
	"mqx/message"
	"mqx/store/commitlog"
)

// goldenConfig is the configuration with which a golden store was written.
func goldenConfig(t testing.TB, variant, root string) Config {
	t.Helper()
	cfg := DefaultConfig()
	cfg.RootDir = root
	cfg.Location = time.UTC
	cfg.Logger = slog.New(slog.DiscardHandler)
	number := func(key string, v *int) {
		if text, ok := testkit.GoldenManifest(t, variant).BrokerConfig[key]; ok {
			n, err := strconv.Atoi(text)
			if err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			*v = n
		}
	}
	number("mappedFileSizeCommitLog", &cfg.CommitLogFileBytes)
	number("mappedFileSizeConsumeQueue", &cfg.ConsumeQueueFileBytes)
	number("mapperFileSizeBatchConsumeQueue", &cfg.BatchConsumeQueueFileBytes)
	number("maxHashSlotNum", &cfg.MaxHashSlotNum)
	number("maxIndexNum", &cfg.MaxIndexNum)
	number("maxMessageSize", &cfg.MaxMessageBytes)
	b := testkit.GoldenManifest(t, variant).BrokerConfig
	cfg.AppendPropCRC = b["enabledAppendPropCRC"] == "true"
	cfg.EnableLMQ, cfg.EnableMultiDispatch = b["enableLmq"] == "true", b["enableMultiDispatch"] == "true"
	return cfg
}

func mustOpen(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mustClose(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// catchUp dispatches and indexes everything, in place of Run.
func catchUp(t testing.TB, s *Store) {
	t.Helper()
	for s.dispatcher.pos.Load() < s.log.End() {
		if _, err := s.dispatcher.step(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for s.indexer.enabled && s.indexer.pos.Load() < s.log.End() {
		if _, err := s.indexer.step(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// readAll reads a queue from its start to its end and returns the records.
func readAll(t testing.TB, s *Store, topic string, queueID int32, filter MessageFilter) []message.View {
	t.Helper()
	var out []message.View
	off := s.MinOffset(topic, queueID)
	for range 100_000 {
		res := s.Get(GetRequest{Topic: topic, QueueID: queueID, Offset: off, MaxMsgs: 32, Filter: filter})
		if res.Err != nil {
			t.Fatal(res.Err)
		}
		for _, part := range res.Parts {
			for len(part) > 0 {
				v, err := message.ParseView(part, message.DecodeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, message.View(append([]byte(nil), v...)))
				part = part[len(v):]
			}
		}
		res.Release()
		if res.NextOffset == off {
			return out
		}
		off = res.NextOffset
	}
	t.Fatalf("%s/%d does not end", topic, queueID)
	return nil
}

// forceExpire lets the oldest log file go.
var forceExpire = commitlog.ExpireRules{Force: true, MaxFiles: 1}
