package commitlog_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store/commitlog"
)

// benchLog opens a log on the disk of the temporary directory and runs it. Files are removed as the log rolls, so that
// a long run needs little space.
func benchLog(b *testing.B, mode commitlog.FlushMode) *commitlog.Log {
	b.Helper()
	l, err := commitlog.Open(commitlog.Config{FS: vfs.OS, Dir: b.TempDir(), FileSize: 256 << 20, FlushMode: mode})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = l.Run(ctx) })
	b.Cleanup(func() {
		cancel()
		wg.Wait()
		_ = l.Close()
	})
	return l
}

// BenchmarkAppendBatch appends records of 1 KiB, so many a call. An operation is one record.
func BenchmarkAppendBatch(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := benchLog(b, commitlog.AsyncFlush)
			var c commitlog.Counter
			as := make([]*commitlog.Append, n)
			for i := range as {
				as[i] = one(b, 1024, &c)
			}
			b.SetBytes(1024)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i += n {
				l.AppendBatch(as)
				for _, a := range as {
					if a.Err != nil {
						b.Fatal(a.Err)
					}
				}
				if i%(256<<10) < n {
					b.StopTimer()
					if _, err := l.Expire(commitlog.ExpireRules{Force: true}); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			}
		})
	}
}

// BenchmarkGroupCommit lets so many senders append a record of 1 KiB and wait until it is durable. An operation is one
// record.
func BenchmarkGroupCommit(b *testing.B) {
	for _, n := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := benchLog(b, commitlog.SyncFlush)
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					var c commitlog.Counter
					as := []*commitlog.Append{one(b, 1024, &c)}
					durable := make(chan error, 1)
					done := func(err error) { durable <- err }
					for left.Add(-1) >= 0 {
						l.AppendBatch(as)
						l.WaitFlushed(as[0].End, done)
						if err := <-durable; err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func headOnly(_ int64, v message.View) error {
	if v.QueueID() != 1 {
		return commitlog.ErrStop
	}
	return nil
}

// BenchmarkWalk reads a log of 256 MiB with records of 1 KiB. An operation is the whole log.
func BenchmarkWalk(b *testing.B) {
	const size = 256 << 20
	l := benchLog(b, commitlog.AsyncFlush)
	var c commitlog.Counter
	as := make([]*commitlog.Append, 64)
	for i := range as {
		as[i] = one(b, 1024, &c)
	}
	for l.End() < size {
		l.AppendBatch(as)
	}
	for _, o := range []struct {
		name string
		commitlog.WalkOptions
	}{
		{"plain", commitlog.WalkOptions{}},
		{"verify", commitlog.WalkOptions{VerifyBody: true}},
		{"hot", commitlog.WalkOptions{Hot: true}},
	} {
		b.Run(o.name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Walk(0, o.WalkOptions, headOnly); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkView takes a view of a record.
func BenchmarkView(b *testing.B) {
	l := benchLog(b, commitlog.AsyncFlush)
	var c commitlog.Counter
	a := one(b, 1024, &c)
	l.AppendBatch([]*commitlog.Append{a})
	b.ReportAllocs()
	for b.Loop() {
		_, release, err := l.View(a.PhysicalOffset, 1024)
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
}
