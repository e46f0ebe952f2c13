package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"mqx/internal/clock"
	"mqx/internal/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a store until stop is called.
func start(t *testing.T, s *Store) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// N021: a message is visible, and its arrival told, at once; in the files and durable with a checkpoint in time.
func TestRunDispatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := vfs.NewMem()
		cfg := memConfig(m)
		cfg.Clock = clock.System // of the bubble
		var arrived []string
		cfg.OnArrive = func(topic []byte, queueID int32, queueOffset, tagsCode, storeTimestamp int64, props []byte) {
			arrived = append(arrived, fmt.Sprintf("%s/%d %d %d %q", topic, queueID, queueOffset, tagsCode, props))
		}
		s, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		stop := start(t, s)
		for range 3 {
			mustPut(t, s, newRecord("T", 2, "b", "TAGS\x01a\x02KEYS\x01k\x02"))
		}
		synctest.Wait()
		if s.MaxOffset("T", 2) != 3 || len(arrived) != 3 || arrived[2] != `T/2 2 97 "TAGS\x01a\x02KEYS\x01k\x02"` {
			t.Errorf("max offset %d, arrived %v", s.MaxOffset("T", 2), arrived)
		}
		// A query waits for the index, without a wait of its own.
		before := time.Now()
		if res, err := s.Query(t.Context(), QueryRequest{Topic: "T", Key: "k", End: 1 << 62}); err != nil || len(res.Parts) != 3 {
			t.Errorf("query: %v, %v", res, err)
		}
		if waited := time.Since(before); waited > 0 {
			t.Errorf("the query took %v", waited)
		}
		if s.cqs.Pending() == 0 {
			t.Error("units were written one by one")
		}
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if s.cqs.Pending() != 0 || !exists(m, filepath.Join(s.cqs.Dir(), "T", "2")) {
			t.Error("units are not in files after the flush interval")
		}
		if c, _, _ := ReadCheckpoint(m, testRoot); c.LogicsPhysOffset != 0 {
			t.Errorf("checkpoint before its time: %+v", c)
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if c, _, _ := ReadCheckpoint(m, testRoot); c.LogicsPhysOffset != s.dispatcher.lastStart || c.PhysicTime == 0 || c.LogicsTime != c.PhysicTime {
			t.Errorf("checkpoint %+v, last record at %d", c, s.dispatcher.lastStart)
		}
		stop()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// N013: while the queues cannot be written, messages are visible, nothing is skipped, an alarm stands; it ends by itself.
func TestRunWaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := vfs.NewMem()
		cfg := memConfig(m)
		cfg.Clock = clock.System
		s, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		stop := start(t, s)
		m.Inject(func(op vfs.Op) error {
			if (op.Kind == vfs.OpWrite || op.Kind == vfs.OpCreate) && !strings.Contains(op.Path, "commitlog") {
				return syscall.EROFS
			}
			return nil
		})
		for range 250 { // more keys than fit one index file
			mustPut(t, s, newRecord("T", 0, "b", "KEYS\x01k\x02"))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.MaxOffset("T", 0) != 250 || len(readAll(t, s, "T", 0, nil)) != 250 {
			t.Errorf("max offset %d", s.MaxOffset("T", 0))
		}
		if st := s.Stats(); !strings.Contains(st.DispatchAlarm, alarmQueues) || !strings.Contains(st.DispatchAlarm, "read-only file system") {
			t.Errorf("alarm %q", st.DispatchAlarm)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := s.Query(ctx, QueryRequest{Topic: "T", Key: "k", End: 1 << 62}); !errors.Is(err, ErrIndexBehind) {
			t.Errorf("query while the index cannot be built: %v", err)
		}
		cancel()
		m.Inject(nil)
		time.Sleep(checkpointRetry + time.Second)
		synctest.Wait()
		if st := s.Stats(); st.DispatchAlarm != "" || st.IndexBehindBytes != 0 {
			t.Errorf("alarm %q, index %d bytes behind", st.DispatchAlarm, st.IndexBehindBytes)
		}
		if res, err := s.Query(t.Context(), QueryRequest{Topic: "T", Key: "k", Max: 1000, End: 1 << 62}); err != nil || len(res.Parts) != 64 {
			t.Errorf("query: %d found, %v", len(res.Parts), err)
		}
		stop()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(cfg); err != nil || len(s.Findings()) > 0 || len(readAll(t, s, "T", 0, nil)) != 250 {
			t.Fatal(err, s.Findings())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// usage is a file system whose volume is as full as the test says.
type usage struct {
	vfs.FS
	used *atomic.Int64
}

func (u usage) Usage(string) (vfs.Usage, error) {
	return vfs.Usage{Total: 1000 << 20, Free: (1000 - 10*u.used.Load()) << 20}, nil
}

// N022, N023, N027: above the limit messages are refused with path and figures, and accepted again by themselves.
func TestDiskWatermarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used atomic.Int64
		cfg := memConfig(usage{vfs.NewMem(), &used})
		cfg.Clock, cfg.CleanFileForciblyEnable = clock.System, false
		s, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		stop := start(t, s)
		for _, c := range []struct {
			used  int64
			state string
			want  Status
		}{{50, DiskOK, PutOK}, {80, DiskReclaim, PutOK}, {88, DiskForce, PutOK}, {91, DiskRefuse, ServiceNotAvailable}, {50, DiskOK, PutOK}} {
			used.Store(c.used)
			time.Sleep(1500 * time.Millisecond)
			synctest.Wait()
			p := put(t, s, newRecord("T", 0, "b", ""))
			disk := s.Stats().Disk
			if p.Status != c.want || disk[0].State != c.state || disk[0].UsedPct != int(c.used) {
				t.Errorf("%d%% used: %v %v, disk %+v", c.used, p.Status, p.Err, disk[0])
			}
			if c.want != PutOK {
				for _, text := range []string{testRoot + "/commitlog", "91%", "90%"} {
					if !strings.Contains(p.Err.Error(), text) {
						t.Errorf("%v does not say %s", p.Err, text)
					}
				}
			}
		}
		stop()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// fillFiles puts enough into a store for n log files.
func fillFiles(t *testing.T, s *Store, n int) {
	t.Helper()
	for {
		mustPut(t, s, newRecord("T", 0, strings.Repeat("x", 3000), "KEYS\x01k\x02"))
		if files, err := s.log.Files(); err != nil {
			t.Fatal(err)
		} else if len(files) >= n {
			return
		}
	}
}

func logFiles(t *testing.T, s *Store) int {
	t.Helper()
	files, err := s.log.Files()
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// Files go by age at the hour of deleteWhen, on demand at any hour, and by force when the disk is nearly full; what points
// to them goes with them.
func TestCleaning(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config, *atomic.Int64)
		demand bool
		after  time.Duration
		left   int
	}{
		"young files stay":            {func(*Config, *atomic.Int64) {}, true, 2 * time.Minute, 6},
		"old files at another hour":   {func(c *Config, _ *atomic.Int64) { c.FileReservedHours = 0; c.DeleteWhen = "05" }, false, 2 * time.Minute, 6},
		"old files at their hour":     {func(c *Config, _ *atomic.Int64) { c.FileReservedHours = 0; c.DeleteWhen = "00;05" }, false, 2 * time.Minute, 1},
		"old files on demand":         {func(c *Config, _ *atomic.Int64) { c.FileReservedHours = 0; c.DeleteWhen = "05" }, true, time.Second, 1},
		"old files when disk fills":   {func(c *Config, u *atomic.Int64) { c.FileReservedHours = 0; c.DeleteWhen = "05"; u.Store(80) }, false, 2 * time.Minute, 1},
		"young files when disk fills": {func(_ *Config, u *atomic.Int64) { u.Store(80) }, false, 2 * time.Minute, 6},
		"young files by force":        {func(_ *Config, u *atomic.Int64) { u.Store(88) }, false, 2 * time.Minute, 1},
		"no force":                    {func(c *Config, u *atomic.Int64) { c.CleanFileForciblyEnable = false; u.Store(88) }, false, 2 * time.Minute, 6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the bubble begins at midnight UTC
				var used atomic.Int64
				m := vfs.NewMem()
				m.SetClock(time.Now)
				cfg := memConfig(usage{m, &used})
				cfg.Clock = clock.System
				c.change(&cfg, &used)
				s, err := Open(cfg)
				if err != nil {
					t.Fatal(err)
				}
				stop := start(t, s)
				fillFiles(t, s, 6)
				synctest.Wait()
				if c.demand {
					s.DeleteExpiredNow()
				}
				time.Sleep(c.after)
				synctest.Wait()
				if n := logFiles(t, s); n != c.left {
					t.Errorf("%d files left, want %d", n, c.left)
				}
				if c.left == 1 {
					got := readAll(t, s, "T", 0, nil)
					if len(got) == 0 || got[0].PhysicalOffset() < s.LogMin() || s.MinOffset("T", 0) != got[0].QueueOffset() {
						t.Errorf("min offset %d of log from %d", s.MinOffset("T", 0), s.LogMin())
					}
					if starts, _ := s.queues.get("T", 0).cq.Load().Files(); len(starts) > 1 {
						t.Errorf("queue files %v", starts)
					}
				}
				stop()
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// A full disk has no room for the queues either. When a log file has to go all the same, they are made durable with the
// room it leaves, before anything else: with neither log nor units a crash would give their offsets again.
func TestForcedDeletionCoversTheQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used atomic.Int64
		var full atomic.Bool
		m := vfs.NewMem()
		m.SetClock(time.Now)
		cfg := memConfig(usage{m, &used})
		cfg.Clock = clock.System
		cfg.FlushConsumeQueueThoroughIntervalMs = int(time.Hour / time.Millisecond)
		cfg.DeleteCommitLogFilesIntervalMs = int(time.Hour / time.Millisecond) // a file, and then nothing
		s, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		stop := start(t, s)
		fillFiles(t, s, 6)
		synctest.Wait()
		m.Inject(func(op vfs.Op) error {
			switch {
			case op.Kind == vfs.OpRemove && strings.Contains(op.Path, "/commitlog/"):
				full.Store(false)
			case full.Load() && (op.Kind == vfs.OpWrite || op.Kind == vfs.OpAllocate || op.Kind == vfs.OpSync || op.Kind == vfs.OpCreate) &&
				!strings.Contains(op.Path, "/commitlog/"):
				return syscall.ENOSPC
			}
			return nil
		})
		full.Store(true)
		used.Store(88)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if full.Load() || logFiles(t, s) != 5 {
			t.Errorf("%d log files, one was to go", logFiles(t, s))
		}
		if got := s.checkpointed.Load(); got < s.LogMin() {
			t.Errorf("the checkpoint is at %d, the log begins at %d", got, s.LogMin())
		}
		m.Inject(nil)
		used.Store(50)
		stop()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// On the real file system, under load: everything that was acknowledged is read in order while it is written, and after a
// clean restart.
func TestRunOnDisk(t *testing.T) {
	for _, mode := range []string{AsyncFlush, SyncFlush} {
		t.Run(mode, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.RootDir, cfg.Logger = t.TempDir(), slog.New(slog.DiscardHandler)
			cfg.CommitLogFileBytes, cfg.ConsumeQueueFileBytes = 1<<20, 20_000
			cfg.FlushDiskType = mode
			cfg.MaxHashSlotNum, cfg.MaxIndexNum = 1000, 5000
			s := mustOpen(t, cfg)
			stop := start(t, s)
			const n = 4000
			done := make(chan *Put, n)
			for i := 0; i < n; i += 16 {
				var ps []*Put
				for j := range 16 {
					r := newRecord("T", int32(j%4), fmt.Sprintf("%d %s", i+j, strings.Repeat("x", 500)), fmt.Sprintf("KEYS\x01k%d\x02", i+j))
					ps = append(ps, &Put{Record: r, WaitFlush: true, Done: func(p *Put) { done <- p }})
				}
				s.PutBatch(ps)
			}
			for range n {
				if p := <-done; p.Status != PutOK {
					t.Fatal(p.Status, p.Err)
				}
			}
			if mode == SyncFlush && s.LogFlushed() != s.LogEnd() {
				t.Errorf("flushed up to %d of %d", s.LogFlushed(), s.LogEnd())
			}
			if res, err := s.Query(t.Context(), QueryRequest{Topic: "T", Key: "k777", End: 1 << 62}); err != nil || len(res.Parts) != 1 {
				t.Errorf("by key: %v, %v", res, err)
			}
			check := func(s *Store) {
				t.Helper()
				for id := range int32(4) {
					got := readAll(t, s, "T", id, nil)
					for i, v := range got {
						if want := fmt.Sprintf("%d ", i/4*16+i%4*4+int(id)); !strings.HasPrefix(string(v.Body()), want) {
							t.Fatalf("queue %d at %d: %.10q, want %q", id, i, v.Body(), want)
						}
					}
					if len(got) != n/4 {
						t.Errorf("queue %d: %d messages", id, len(got))
					}
				}
			}
			check(s)
			stop()
			mustClose(t, s)
			s = mustOpen(t, cfg)
			if len(s.Findings()) > 0 {
				t.Error(s.Findings())
			}
			check(s)
		})
	}
}
