package store

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mqx/internal/clock"
	"mqx/internal/vfs"
)

// A query by key does not wait for what is held back until it has its copies, and does not find it.
func TestQueryWhileHeldBack(t *testing.T) {
	s, _ := openMem(t)
	s.Gate()
	shown := mustPut(t, s, newRecord("T", 0, "shown", "KEYS\x01key\x02"))
	s.Confirm(s.LogEnd())
	mustPut(t, s, newRecord("T", 0, "held back", "KEYS\x01key\x02"))
	catchUp(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	res, err := s.Query(ctx, QueryRequest{Topic: "T", Key: "key", End: 1 << 60})
	if err != nil || len(res.Parts) != 1 || res.PhysicalOffsets[0] != shown.PhysicalOffset {
		t.Errorf("%+v, %v", res, err)
	}
}

// What is held back until it has its copies is in no queue yet: its log files are not deleted, however full the disk is.
func TestNoDeletionOfWhatIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used atomic.Int64
		m := vfs.NewMem()
		m.SetClock(time.Now)
		cfg := memConfig(usage{m, &used})
		cfg.Clock = clock.System
		s, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.Gate()
		stop := start(t, s)
		fillFiles(t, s, 6)
		used.Store(88)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := logFiles(t, s); n != 6 {
			t.Errorf("%d of 6 log files left, with messages nobody was shown", n)
		}
		s.Confirm(s.LogEnd())
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := logFiles(t, s); n != 1 {
			t.Errorf("%d log files left once all was shown, want 1", n)
		}
		used.Store(50)
		stop()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
