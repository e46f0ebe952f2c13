package store

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mqx/internal/vfs"
	"mqx/message"
)

// queueOf20 is a store with a queue of 20 messages, the offsets 0 to 19, of which a file of 10 units each.
func queueOf20(t *testing.T) (*Store, *vfs.Mem) {
	t.Helper()
	s, m := openMem(t)
	for i := range 20 {
		mustPut(t, s, newRecord("T", 1, fmt.Sprintf("body %d", i), fmt.Sprintf("TAGS\x01tag%d\x02", i%2)))
	}
	catchUp(t, s)
	return s, m
}

// Statuses and next offsets at every edge, docs/format/consumequeue.md, "Reading".
func TestGetStatuses(t *testing.T) {
	s, _ := queueOf20(t)
	if err := s.cqs.Sync(); err != nil {
		t.Fatal(err)
	}
	s.queues.ensure([]byte("Empty"), 0).cq.Store(s.cqs.New("Empty", 0))
	type want struct {
		status GetStatus
		next   int64
		count  int
	}
	for _, c := range []struct {
		topic   string
		queueID int32
		offset  int64
		max     int
		want
	}{
		{"T", 1, 0, 32, want{Found, 10, 10}}, // one queue file at a time
		{"T", 1, 10, 32, want{Found, 20, 10}},
		{"T", 1, 3, 2, want{Found, 5, 2}},
		{"T", 1, 19, 32, want{Found, 20, 1}},
		{"T", 1, 20, 32, want{OffsetOverflowOne, 20, 0}},
		{"T", 1, 21, 32, want{OffsetOverflowBadly, 20, 0}},
		{"T", 1, 1 << 40, 32, want{OffsetOverflowBadly, 20, 0}},
		{"T", 1, -1, 32, want{OffsetTooSmall, 0, 0}},
		{"T", 0, 5, 32, want{NoMatchedLogicQueue, 0, 0}},
		{"Other", 0, 5, 32, want{NoMatchedLogicQueue, 0, 0}},
		{"Empty", 0, 5, 32, want{NoMessageInQueue, 0, 0}},
	} {
		res := s.Get(GetRequest{Topic: c.topic, QueueID: c.queueID, Offset: c.offset, MaxMsgs: c.max})
		if got := (want{res.Status, res.NextOffset, res.Count}); got != c.want || res.Err != nil {
			t.Errorf("%s/%d at %d: %+v, %v, want %+v", c.topic, c.queueID, c.offset, got, res.Err, c.want)
		}
		if c.topic == "T" && c.queueID == 1 && (res.MinOffset != 0 || res.MaxOffset != 20) {
			t.Errorf("offsets %d..%d", res.MinOffset, res.MaxOffset)
		}
		res.Release()
		res.Release()
	}
	// N020: nothing was created by asking.
	if s.queues.get("Other", 0) != nil || s.MaxOffset("Other", 0) != 0 || s.queues.get("Other", 0) != nil {
		t.Error("a read made a queue")
	}
}

func TestGetAfterExpiry(t *testing.T) {
	s, _ := openMem(t)
	for range 200 { // several log files
		mustPut(t, s, newRecord("T", 1, strings.Repeat("x", 400), ""))
	}
	catchUp(t, s)
	if _, err := s.log.Expire(forceExpire); err != nil {
		t.Fatal(err)
	}
	if err := s.CleanExpiredQueues(); err != nil {
		t.Fatal(err)
	}
	low := s.MinOffset("T", 1)
	if low == 0 {
		t.Fatal("nothing expired")
	}
	res := s.Get(GetRequest{Topic: "T", QueueID: 1, Offset: low - 1, MaxMsgs: 1})
	if res.Status != OffsetTooSmall || res.NextOffset != low {
		t.Errorf("%v, next %d, want min %d", res.Status, res.NextOffset, low)
	}
	if got := readAll(t, s, "T", 1, nil); int64(len(got)) != 200-low || got[0].QueueOffset() != low {
		t.Errorf("%d messages from %d", len(got), got[0].QueueOffset())
	}
	if off, err := s.OffsetByTime("T", 1, 0, Lower); err != nil || off != low {
		t.Errorf("earliest by time %d, %v", off, err)
	}
}

func TestGetLimits(t *testing.T) {
	for name, c := range map[string]struct {
		change         func(*Config)
		maxMsgs, bytes int
		want           int
	}{
		"asked for":         {func(*Config) {}, 7, 0, 7},
		"asked for bytes":   {func(*Config) {}, 32, 1000, 2},
		"less than one":     {func(*Config) {}, 32, 1, 1},
		"count in memory":   {func(c *Config) { c.MaxTransferCountOnMessageInMemory = 5 }, 32, 0, 5},
		"bytes in memory":   {func(c *Config) { c.MaxTransferBytesOnMessageInMemory = 1700 }, 32, 0, 3},
		"count from disk":   {func(c *Config) { c.PhysicalMemoryBytes, c.MaxTransferCountOnMessageInDisk = 1000, 4 }, 32, 0, 4},
		"bytes from disk":   {func(c *Config) { c.PhysicalMemoryBytes, c.MaxTransferBytesOnMessageInDisk = 1000, 1200 }, 32, 0, 2},
		"never less than 1": {func(c *Config) { c.PhysicalMemoryBytes, c.MaxTransferBytesOnMessageInDisk = 1000, 1 }, 32, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := memConfig(vfs.NewMem())
			cfg.ConsumeQueueFileBytes = 2000
			c.change(&cfg)
			s := mustOpen(t, cfg)
			for range 40 {
				mustPut(t, s, newRecord("T", 0, strings.Repeat("x", 400), ""))
			}
			catchUp(t, s)
			res := s.Get(GetRequest{Topic: "T", MaxMsgs: c.maxMsgs, MaxBytes: c.bytes})
			if res.Status != Found || res.Count != c.want || res.NextOffset != int64(c.want) {
				t.Errorf("%v, %d messages, next %d, want %d", res.Status, res.Count, res.NextOffset, c.want)
			}
			if (cfg.PhysicalMemoryBytes == 1000) != res.FromDisk {
				t.Errorf("from disk: %v", res.FromDisk)
			}
			res.Release()
		})
	}
}

// N042: a filter that matches nothing moves on, and examines a bounded number of units.
func TestGetFilters(t *testing.T) {
	cfg := memConfig(vfs.NewMem())
	cfg.ConsumeQueueFileBytes = 200_000
	s := mustOpen(t, cfg)
	for i := range 1000 {
		mustPut(t, s, newRecord("T", 0, "b", fmt.Sprintf("TAGS\x01tag%d\x02", i%2)))
	}
	catchUp(t, s)
	res := s.Get(GetRequest{Topic: "T", MaxMsgs: 32, Filter: tagFilter{message.TagsCode([]byte("none"))}})
	if res.Status != NoMatchedMessage || res.NextOffset != 800 {
		t.Errorf("%v, next %d, want 800 units examined", res.Status, res.NextOffset)
	}
	if got := readAll(t, s, "T", 0, tagFilter{message.TagsCode([]byte("tag1"))}); len(got) != 500 || got[0].QueueOffset() != 1 {
		t.Errorf("%d messages", len(got))
	}
	if got := readAll(t, s, "T", 0, oddBody{}); len(got) != 0 {
		t.Errorf("%d messages pass a filter on the record", len(got))
	}
}

type oddBody struct{}

func (oddBody) MatchCQ(int64) bool              { return true }
func (oddBody) MatchRecord(v message.View) bool { return string(v.Body()) == "odd" }

// A disk that fails is an error, never an empty answer; what was found before it is returned.
func TestGetFailsWhenTheDiskDoes(t *testing.T) {
	m := vfs.NewMem()
	cfg := memConfig(m)
	cfg.HotWindowBytes = 1 // read with pread
	s := mustOpen(t, cfg)
	for range 20 {
		mustPut(t, s, newRecord("T", 1, strings.Repeat("x", 400), ""))
	}
	catchUp(t, s)
	m.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpRead && filepath.Base(filepath.Dir(op.Path)) == "commitlog" {
			return syscall.EIO
		}
		return nil
	})
	res := s.Get(GetRequest{Topic: "T", QueueID: 1, Offset: 3, MaxMsgs: 32})
	if res.Err == nil || res.Status != GetFailed || res.NextOffset != 3 || res.Count != 0 {
		t.Errorf("%v, next %d, error %v", res.Status, res.NextOffset, res.Err)
	}
	m.Inject(nil)
	if got := readAll(t, s, "T", 1, nil); len(got) != 20 {
		t.Errorf("%d messages", len(got))
	}
}

// A unit that points to something else than its record is stepped over, and said so.
func TestGetStepsOverRot(t *testing.T) {
	s, m := queueOf20(t)
	units, err := s.Units("T", 1, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	m.Corrupt(filepath.Join(testRoot, "commitlog", "00000000000000000000"), units[0].PhysicalOffset+4, []byte{1, 2, 3, 4})
	got := readAll(t, s, "T", 1, nil)
	if len(got) != 19 {
		t.Errorf("%d messages", len(got))
	}
	if f := s.Findings(); len(f) != 1 || f[0].Kind != FindRot || f[0].Offset != units[0].PhysicalOffset {
		t.Errorf("findings %v", f)
	}
}
