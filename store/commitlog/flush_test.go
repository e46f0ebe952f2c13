package commitlog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store/commitlog"
	"mqx/store/mapped"
)

// touch reads every byte of a record.
func touch(_ int64, v message.View) error {
	var sum byte
	for _, b := range v {
		sum |= b
	}
	if sum == 0 {
		return errors.New("a record of zeros")
	}
	return nil
}

// running opens a log and runs it until the returned function is called.
func (x *fixture) running() (l *commitlog.Log, stop func()) {
	x.t.Helper()
	l = x.open()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = l.Run(ctx) })
	var once sync.Once
	return l, func() { once.Do(func() { cancel(); wg.Wait() }) }
}

// hook counts syncs of the first file, and lets do decide about each.
func (x *fixture) hook(do func(n int64) error) *atomic.Int64 {
	var syncs atomic.Int64
	x.fs.(*vfs.Mem).Inject(func(op vfs.Op) error {
		if op.Kind != vfs.OpSync || op.Path != x.dir+"/00000000000000000000" {
			return nil
		}
		n := syncs.Add(1)
		if do == nil {
			return nil
		}
		return do(n)
	})
	return &syncs
}

func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, 1<<20)
		x.cfg.FlushMode = commitlog.SyncFlush
		l, stop := x.running()
		defer stop()
		var c commitlog.Counter
		mustAppend(t, l, one(t, 100, &c))
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		gate := make(chan struct{})
		syncs := x.hook(func(n int64) error {
			if n == 1 {
				<-gate
			}
			return nil
		})
		var order []int
		wait := func(i int) {
			a := one(t, 100, &c)
			mustAppend(t, l, a)
			l.WaitFlushed(a.End, func(err error) {
				if err != nil || l.Flushed() < a.End {
					t.Errorf("waiter %d: %v, flushed %d of %d", i, err, l.Flushed(), a.End)
				}
				order = append(order, i)
			})
		}
		wait(0)
		synctest.Wait() // the first sync runs
		for i := 1; i < 50; i++ {
			wait(i)
		}
		synctest.Wait()
		if len(order) != 0 {
			t.Fatalf("called back before the sync ended: %v", order)
		}
		close(gate)
		synctest.Wait()
		if n := syncs.Load(); n != 2 {
			t.Errorf("%d syncs for 50 waiters, want 2", n)
		}
		if len(order) != 50 || !slices.IsSorted(order) {
			t.Errorf("called back: %v", order)
		}
		called := false
		l.WaitFlushed(l.End(), func(err error) { called = err == nil })
		if !called {
			t.Error("a position that is durable is not waited for")
		}
	})
}

func TestFlushTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, 1<<20)
		l, stop := x.running()
		defer stop()
		var c commitlog.Counter
		x.hook(func(int64) error { time.Sleep(12 * time.Second); return nil })
		start := time.Now()
		var got []string
		wait := func(name string) {
			a := one(t, 100, &c)
			mustAppend(t, l, a)
			l.WaitFlushed(a.End, func(err error) {
				got = append(got, fmt.Sprintf("%s %v %v", name, time.Since(start), errors.Is(err, commitlog.ErrFlushTimeout)))
			})
		}
		wait("a")
		time.Sleep(2 * time.Second)
		wait("b")
		time.Sleep(8 * time.Second)
		wait("c") // after 10 s; the first sync ends after 12, the second after 24
		time.Sleep(30 * time.Second)
		synctest.Wait()
		want := []string{"a 5s true", "b 7s true", "c 15s true"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if l.Flushed() != l.End() || l.Failed() != nil {
			t.Errorf("flushed %d of %d, failed %v", l.Flushed(), l.End(), l.Failed())
		}
	})
}

// A failed sync is for good: who waits is told, with path and cause, and nothing is accepted any more.
func TestFailedSyncSticks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, 1<<20)
		l, stop := x.running()
		defer stop()
		var c commitlog.Counter
		syncs := x.hook(func(int64) error { return syscall.EIO })
		a := one(t, 100, &c)
		mustAppend(t, l, a)
		var got error
		l.WaitFlushed(a.End, func(err error) { got = err })
		synctest.Wait()
		var failed *commitlog.FailedError
		if !errors.Is(got, commitlog.ErrFailed) || !errors.Is(got, syscall.EIO) || !errors.As(got, &failed) {
			t.Fatalf("waiter: %v", got)
		}
		if failed.Path != x.dir+"/00000000000000000000" || failed.Op != "sync" {
			t.Errorf("%+v", failed)
		}
		x.hook(nil)
		b := one(t, 100, &c)
		l.AppendBatch([]*commitlog.Append{b})
		if !errors.Is(b.Err, commitlog.ErrFailed) || c.Next() != 1 {
			t.Errorf("append after a failed sync: %v, next %d", b.Err, c.Next())
		}
		if err := l.Flush(); !errors.Is(err, commitlog.ErrFailed) {
			t.Errorf("flush after a failed sync: %v", err)
		}
		got = nil
		l.WaitFlushed(a.End, func(err error) { got = err })
		if !errors.Is(got, commitlog.ErrFailed) {
			t.Errorf("wait after a failed sync: %v", got)
		}
		if n := syncs.Load(); n != 1 {
			t.Errorf("%d syncs after the failure", n-1)
		}
		if recs, _ := walk(t, l, 0, commitlog.WalkOptions{}); len(recs) != 1 || l.Flushed() != 0 {
			t.Errorf("%d records readable, flushed %d", len(recs), l.Flushed())
		}
	})
}

// A file that cannot be opened because too many are is synced later: no sync has failed, so writing goes on.
func TestSyncWithoutDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, 1<<20)
		l, stop := x.running()
		defer stop()
		var c commitlog.Counter
		x.hook(func(n int64) error {
			if n <= 3 {
				return syscall.EMFILE
			}
			return nil
		})
		a := one(t, 100, &c)
		mustAppend(t, l, a)
		got := errors.New("not called")
		l.WaitFlushed(a.End, func(err error) { got = err })
		synctest.Wait()
		mustAppend(t, l, one(t, 100, &c))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if got != nil || l.Failed() != nil || l.Flushed() < a.End {
			t.Errorf("waiter: %v, log: %v, flushed %d", got, l.Failed(), l.Flushed())
		}
	})
}

func TestAsyncFlushInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, 1<<20)
		l, stop := x.running()
		defer stop()
		var c commitlog.Counter
		start := time.Now()
		var at []time.Duration
		x.hook(func(int64) error {
			at = append(at, time.Since(start))
			return nil
		})
		mustAppend(t, l, one(t, 20<<10, &c)) // five pages: worth a sync after 500 ms
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if want := []time.Duration{500 * time.Millisecond}; !slices.Equal(at, want) {
			t.Fatalf("syncs of five pages at %v, want %v", at, want)
		}
		at, start = nil, time.Now()
		time.Sleep(time.Second)
		synctest.Wait()
		mustAppend(t, l, one(t, 100, &c)) // less than four, but the last sync is longer ago than the thorough interval
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if want := []time.Duration{1500 * time.Millisecond}; !slices.Equal(at, want) {
			t.Fatalf("sync of little after a long pause at %v, want %v", at, want)
		}
		at, start = nil, time.Now()
		for range 3 {
			mustAppend(t, l, one(t, 100, &c))
			time.Sleep(time.Second)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if want := []time.Duration{500 * time.Millisecond, 10500 * time.Millisecond}; !slices.Equal(at, want) {
			t.Fatalf("syncs of little by little at %v, want %v", at, want)
		}
		if l.Flushed() != l.End() {
			t.Fatalf("flushed %d of %d", l.Flushed(), l.End())
		}
	})
}

func TestIdleLogDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, 1<<20)
		l, stop := x.running()
		defer stop()
		var c commitlog.Counter
		mustAppend(t, l, one(t, 100, &c))
		time.Sleep(time.Minute)
		var ops atomic.Int64
		x.fs.(*vfs.Mem).Inject(func(vfs.Op) error { ops.Add(1); return nil })
		time.Sleep(24 * time.Hour)
		if n := ops.Load(); n != 0 {
			t.Errorf("%d operations while idle", n)
		}
	})
}

func TestCloseTellsWaiters(t *testing.T) {
	for _, fail := range []bool{false, true} {
		x := newFixture(t, 1<<20)
		l := x.open() // nobody runs it: waiters wait until Close
		var c commitlog.Counter
		a := one(t, 100, &c)
		mustAppend(t, l, a)
		if fail {
			x.hook(func(int64) error { return syscall.EIO })
		}
		calls, got := 0, error(nil)
		l.WaitFlushed(a.End, func(err error) { calls, got = calls+1, err })
		if calls != 0 {
			t.Fatal("called back before anything was flushed")
		}
		err := l.Close()
		if calls != 1 || errors.Is(got, commitlog.ErrFailed) != fail || errors.Is(err, commitlog.ErrFailed) != fail {
			t.Fatalf("fail %v: %d calls, %v; Close: %v", fail, calls, got, err)
		}
		l.WaitFlushed(a.End+1, func(err error) { got = err })
		if got == nil {
			t.Fatal("a wait on a closed log succeeds")
		}
	}
}

// What is acknowledged under sync flush survives any power loss, names of new files included.
func TestFlushedSurvivesPowerLoss(t *testing.T) {
	for seed := range uint64(100) {
		x := newFixture(t, 4096)
		mem := x.fs.(*vfs.Mem)
		mem.SetWriteback(seed, 0.3)
		l := x.open()
		var c commitlog.Counter
		var acked []rec
		for i := range 30 {
			a := one(t, 100+int(seed+uint64(i)*37)%800, &c)
			mustAppend(t, l, a)
			if i%4 == int(seed%4) {
				if err := l.Flush(); err != nil {
					t.Fatal(err)
				}
				acked, _ = walk(t, l, 0, commitlog.WalkOptions{})
			}
		}
		y := newFixture(t, 4096)
		y.fs = mem.PowerLoss(seed)
		y.cfg.FS = y.fs
		l2, _ := y.recover()
		got, end := walk(t, l2, l2.Min(), commitlog.WalkOptions{VerifyBody: true})
		if len(got) < len(acked) || !slices.Equal(got[:len(acked)], acked) {
			t.Fatalf("seed %d: %d of %d acknowledged records left, %+v", seed, len(got), len(acked), end)
		}
		mustAppend(t, l2, one(t, 300, &c))
	}
}

func TestFileRemovedOrCutUnderTheLog(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"removed": os.Remove,
		"cut":     func(path string) error { return os.Truncate(path, 4096) },
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t, 1<<20)
			x.cfg.FS, x.cfg.Dir = vfs.OS, t.TempDir()
			l := x.open()
			var c commitlog.Counter
			mustAppend(t, l, one(t, 50_000, &c), one(t, 100, &c))
			if err := l.Flush(); err != nil {
				t.Fatal(err)
			}
			view, release, err := l.View(50_000, 100)
			if err != nil || len(view) != 100 {
				t.Fatal(err)
			}
			release()
			if err := harm(files(t, l)[0].Path); err != nil {
				t.Fatal(err)
			}
			if name == "cut" {
				if _, err := l.Walk(0, commitlog.WalkOptions{Hot: true}, touch); !errors.Is(err, mapped.ErrFault) {
					t.Fatalf("reading mapped memory that is gone: %v", err)
				}
				if err := l.ReadAt(make([]byte, 100), 50_000); !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("reading what is gone: %v", err)
				}
			}
			mustAppend(t, l, one(t, 100, &c))
			err = l.Flush()
			if !errors.Is(err, commitlog.ErrFailed) || !strings.Contains(err.Error(), name) {
				t.Fatalf("Flush = %v", err)
			}
		})
	}
}
