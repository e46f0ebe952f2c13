package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/testkit"
	"mqx/message"
)

// Every store that Apache wrote opens and holds what the manifest says; and again after it was closed and opened.
func TestGoldenStores(t *testing.T) {
	for _, variant := range testkit.GoldenStores() {
		m := testkit.GoldenManifest(t, variant)
		if m.StoreView == nil {
			continue
		}
		t.Run(variant, func(t *testing.T) {
			cfg := goldenConfig(t, variant, testkit.GoldenStore(t, variant))
			s := mustOpen(t, cfg)
			catchUp(t, s)
			checkStore(t, s, m.StoreView)
			mustClose(t, s)

			s = mustOpen(t, cfg)
			if f := s.Findings(); len(f) > 0 {
				t.Errorf("findings after a clean stop: %v", f)
			}
			if s.indexer.pos.Load() != s.log.End() {
				t.Errorf("index covers %d of %d after a clean stop", s.indexer.pos.Load(), s.log.End())
			}
			checkStore(t, s, m.StoreView)
		})
	}
}

func checkStore(t *testing.T, s *Store, want *testkit.StoreView) {
	t.Helper()
	if s.LogMin() != want.CommitLogMinOffset || s.LogEnd() != want.CommitLogMaxOffset {
		t.Errorf("log %d..%d, want %d..%d", s.LogMin(), s.LogEnd(), want.CommitLogMinOffset, want.CommitLogMaxOffset)
	}
	for i := range want.CommitLogRecords {
		r := &want.CommitLogRecords[i]
		if r.IsBlank() {
			continue
		}
		rec, err := s.RecordAt(r.PhysicalOffset)
		if err != nil {
			t.Fatalf("record at %d: %v", r.PhysicalOffset, err)
		}
		if sum := sha256.Sum256(rec); hex.EncodeToString(sum[:]) != r.RecordSHA256 {
			t.Errorf("record at %d is not the one of the manifest", r.PhysicalOffset)
		}
	}
	if _, err := s.RecordAt(want.CommitLogMaxOffset); !errors.Is(err, ErrNoRecord) {
		t.Errorf("record at the end: %v", err)
	}
	queues := 0
	for range s.Queues() {
		queues++
	}
	if queues != len(want.ConsumeQueues) {
		t.Errorf("%d queues, want %d", queues, len(want.ConsumeQueues))
	}
	for _, q := range want.ConsumeQueues {
		checkQueue(t, s, q)
	}
	for _, q := range want.Index.Queries {
		res, err := s.Query(context.Background(), QueryRequest{Topic: q.Topic, Key: q.Key, End: math.MaxInt64})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(q.PhyOffsets, res.PhysicalOffsets); diff != "" {
			t.Errorf("query %s %q:\n%s", q.Topic, q.Key, diff)
		}
		if res.LastUpdateTime != q.IndexLastUpdateTimestamp || res.LastUpdatePhys != q.IndexLastUpdatePhyOffset {
			t.Errorf("index up to %d %d, want %d %d", res.LastUpdateTime, res.LastUpdatePhys, q.IndexLastUpdateTimestamp, q.IndexLastUpdatePhyOffset)
		}
	}
}

func checkQueue(t *testing.T, s *Store, want testkit.ConsumeQueue) {
	t.Helper()
	if low, high := s.MinOffset(want.Topic, want.QueueID), s.MaxOffset(want.Topic, want.QueueID); low != want.MinOffset || high != want.MaxOffset {
		t.Errorf("%s/%d: offsets %d..%d, want %d..%d", want.Topic, want.QueueID, low, high, want.MinOffset, want.MaxOffset)
	}
	var physical []int64
	for _, u := range want.Units {
		if u.QueueOffset >= want.MinOffset {
			physical = append(physical, u.Pos)
		}
	}
	var got []int64
	for _, v := range readAll(t, s, want.Topic, want.QueueID, nil) {
		got = append(got, v.PhysicalOffset())
	}
	if diff := cmp.Diff(physical, got); diff != "" {
		t.Errorf("%s/%d:\n%s", want.Topic, want.QueueID, diff)
	}
	for _, at := range want.OffsetByTime {
		lower, err := s.OffsetByTime(want.Topic, want.QueueID, at.Timestamp, Lower)
		if err != nil || lower != at.Lower {
			t.Errorf("%s/%d at %d: lower %d, %v, want %d", want.Topic, want.QueueID, at.Timestamp, lower, err, at.Lower)
		}
		if want.CQType == "BatchCQ" {
			continue // Apache's upper boundary of batch queues follows no rule, see docs/format/consumequeue.md
		}
		upper, err := s.OffsetByTime(want.Topic, want.QueueID, at.Timestamp, Upper)
		if err != nil || upper != at.Upper {
			t.Errorf("%s/%d at %d: upper %d, %v, want %d", want.Topic, want.QueueID, at.Timestamp, upper, err, at.Upper)
		}
	}
}

type tagFilter struct{ code int64 }

func (f tagFilter) MatchCQ(code int64) bool           { return code == f.code }
func (f tagFilter) MatchRecord(rec message.View) bool { return true }

// A filter by tags sees the real tags code, also when it lies in consumequeue_ext.
func TestGoldenFilterByTags(t *testing.T) {
	for _, variant := range []string{"basic", "cqext"} {
		t.Run(variant, func(t *testing.T) {
			m := testkit.GoldenManifest(t, variant)
			s := mustOpen(t, goldenConfig(t, variant, testkit.GoldenStore(t, variant)))
			for _, q := range m.StoreView.ConsumeQueues {
				for _, tag := range []string{"TagA", "TagB", "TagC", "none"} {
					code := message.TagsCode([]byte(tag))
					want := 0
					for _, u := range q.Units {
						if u.TagsCode == code {
							want++
						}
					}
					if got := readAll(t, s, q.Topic, q.QueueID, tagFilter{code}); len(got) != want {
						t.Errorf("%s/%d tag %s: %d messages, want %d", q.Topic, q.QueueID, tag, len(got), want)
					}
				}
			}
		})
	}
}
