package store

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"mqx/internal/vfs"
)

// Many senders side by side, whose appends finish in any order, with topics deleted beside them and readers that follow:
// every message has its unit in the order of the log, without another put to push it.
func TestConcurrentPuts(t *testing.T) {
	cfg := memConfig(vfs.NewMem())
	cfg.CommitLogFileBytes = 256 << 10
	cfg.Logger = slog.New(slog.DiscardHandler)
	var arrived atomic.Int64
	cfg.OnArrive = func(topic []byte, _ int32, _, _, _ int64, _ []byte) {
		if string(topic) == "T" {
			arrived.Add(1)
		}
	}
	s := mustOpen(t, cfg)
	stop := start(t, s)
	const senders, rounds, batch = 8, 60, 5
	var wg sync.WaitGroup
	for sender := range senders {
		wg.Go(func() {
			for round := range rounds {
				var ps []*Put
				var done sync.WaitGroup
				for i := range batch {
					done.Add(1)
					body := fmt.Sprintf("%d %d", sender, round*batch+i)
					ps = append(ps, &Put{Record: newRecord("T", int32(sender%3), body, "KEYS\x01k\x02"), Done: func(p *Put) {
						if p.Status != PutOK {
							t.Error(p.Status, p.Err)
						}
						done.Done()
					}})
				}
				s.PutBatch(ps)
				done.Wait()
			}
		})
	}
	wg.Go(func() {
		for i := range 30 {
			mustPut(t, s, newRecord("Passing", 0, fmt.Sprint(i), ""))
			if err := s.DeleteTopic("Passing"); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		for range 200 {
			s.Get(GetRequest{Topic: "T", QueueID: 1, Offset: s.MinOffset("T", 1), MaxMsgs: 32}).Release()
		}
	})
	wg.Wait()
	stop()
	mustClose(t, s)
	s = mustOpen(t, cfg)
	if len(s.Findings()) > 0 {
		t.Error(s.Findings())
	}
	total := 0
	for id := range int32(3) {
		next := map[int]int{}
		for i, v := range readAll(t, s, "T", id, nil) {
			var sender, n int
			if _, err := fmt.Sscan(string(v.Body()), &sender, &n); err != nil || n != next[sender] || v.QueueOffset() != int64(i) {
				t.Fatalf("queue %d at %d: %q at offset %d, want number %d", id, i, v.Body(), v.QueueOffset(), next[sender])
			}
			next[sender]++
			total++
		}
	}
	if total != senders*rounds*batch || arrived.Load() != int64(total) {
		t.Errorf("%d messages, %d arrivals, want %d", total, arrived.Load(), senders*rounds*batch)
	}
}
