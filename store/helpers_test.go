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
func goldenConfig(tb testing.TB, variant, root string) Config {
	tb.Helper()
	cfg := DefaultConfig()
	cfg.RootDir = root
	cfg.Location = time.UTC
	cfg.Logger = slog.New(slog.DiscardHandler)
	number := func(key string, v *int) {
		if text, ok := testkit.GoldenManifest(tb, variant).BrokerConfig[key]; ok {
			n, err := strconv.Atoi(text)
			if err != nil {
				tb.Fatalf("%s: %v", key, err)
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
	b := testkit.GoldenManifest(tb, variant).BrokerConfig
	cfg.AppendPropCRC = b["enabledAppendPropCRC"] == "true"
	cfg.EnableLMQ, cfg.EnableMultiDispatch = b["enableLmq"] == "true", b["enableMultiDispatch"] == "true"
	return cfg
}

func mustOpen(tb testing.TB, cfg Config) *Store {
	tb.Helper()
	s, err := Open(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func mustClose(tb testing.TB, s *Store) {
	tb.Helper()
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
}

// catchUp dispatches and indexes everything, in place of Run.
func catchUp(tb testing.TB, s *Store) {
	tb.Helper()
	behind := func() bool {
		end := s.log.Confirmed()
		return s.dispatcher.pos.Load() < end || s.indexer.enabled && s.indexer.pos.Load() < end
	}
	for behind() {
		if _, err := s.dispatcher.step(context.Background()); err != nil {
			tb.Fatal(err)
		}
		if !s.indexer.enabled {
			continue
		}
		if _, err := s.indexer.step(context.Background()); err != nil {
			tb.Fatal(err)
		}
	}
}

// readAll reads a queue from its start to its end and returns the records.
func readAll(tb testing.TB, s *Store, topic string, queueID int32, filter MessageFilter) []message.View {
	tb.Helper()
	var out []message.View
	off := s.MinOffset(topic, queueID)
	for range 100_000 {
		res := s.Get(GetRequest{Topic: topic, QueueID: queueID, Offset: off, MaxMsgs: 32, Filter: filter})
		if res.Err != nil {
			tb.Fatal(res.Err)
		}
		for _, part := range res.Parts {
			for len(part) > 0 {
				v, err := message.ParseView(part, message.DecodeOptions{})
				if err != nil {
					tb.Fatal(err)
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
	tb.Fatalf("%s/%d does not end", topic, queueID)
	return nil
}

// forceExpire lets the oldest log file go.
var forceExpire = commitlog.ExpireRules{Force: true, MaxFiles: 1}

func viewOf(tb testing.TB, rec []byte) message.View {
	tb.Helper()
	v, err := message.ParseView(rec, message.DecodeOptions{VerifyBodyCRC: true})
	if err != nil {
		tb.Fatal(err)
	}
	return v
}
