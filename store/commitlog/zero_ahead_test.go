package commitlog_test

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"mqx/internal/clock"
	"mqx/internal/vfs"
	"mqx/store/commitlog"
)

// zeroWrites watches what is written behind the end of the log.
type zeroWrites struct {
	sync.Mutex
	total   int64
	pieces  int
	touched []string // writes of zeros that begin before the end of the log
}

// watch counts the writes that lie at or behind end(), which are the reserver's: records end there.
func (z *zeroWrites) watch(fs *vfs.Mem, piece int64, end func() int64) {
	fs.Inject(func(op vfs.Op) error {
		if op.Kind != vfs.OpWrite || op.Len != piece {
			return nil
		}
		var start int64
		if _, err := fmt.Sscanf(op.Path, "/store/commitlog/%d", &start); err != nil {
			return nil
		}
		z.Lock()
		defer z.Unlock()
		z.total += op.Len
		z.pieces++
		if e := end(); start+op.Off < e {
			z.touched = append(z.touched, fmt.Sprintf("%d bytes at %d, the log ends at %d", op.Len, start+op.Off, e))
		}
		return nil
	})
}

// Under SyncFlush space is filled with zeros before a record is put there, never after, and the records are whole.
func TestZerosAheadOfRecords(t *testing.T) {
	for _, mode := range []commitlog.FlushMode{commitlog.AsyncFlush, commitlog.SyncFlush} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const fileSize, records, length = 16 << 20, 330, 100_000
				x := newFixture(t, fileSize)
				x.cfg.FlushMode = mode
				l, stop := x.running()
				defer stop()
				var z zeroWrites
				z.watch(x.fs.(*vfs.Mem), 1<<20, l.End)
				var c commitlog.Counter
				for i := range records {
					mustAppend(t, l, one(t, length+i, &c))
					if i%3 == 0 {
						synctest.Wait() // the reserver gets ahead
					}
				}
				synctest.Wait()
				got, _ := walk(t, l, 0, commitlog.WalkOptions{VerifyBody: true})
				if len(got) != records {
					t.Errorf("%d records are whole, want %d", len(got), records)
				}
				z.Lock()
				defer z.Unlock()
				if len(z.touched) > 0 {
					t.Errorf("zeros over records: %q", z.touched)
				}
				switch {
				case mode == commitlog.AsyncFlush && z.total > 0:
					t.Errorf("%d bytes of zeros that nobody has a use for", z.total)
				case mode == commitlog.SyncFlush && z.total < l.End()/2:
					t.Errorf("%d bytes of zeros in %d pieces, the log has %d: most of it is to lie on them", z.total, z.pieces, l.End())
				}
			})
		})
	}
}

// A log that grows faster than zeros pay goes without them, and has them again when it slows down.
func TestNoZerosAheadOfAFastLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, 1<<30)
		x.cfg.FlushMode, x.cfg.Clock = commitlog.SyncFlush, clock.System // of the bubble
		l, stop := x.running()
		defer stop()
		var z zeroWrites
		z.watch(x.fs.(*vfs.Mem), 1<<20, l.End)
		var c commitlog.Counter
		grow := func(records int, pause time.Duration) (zeros int64) {
			z.Lock()
			before := z.total
			z.Unlock()
			for range records {
				mustAppend(t, l, one(t, 100_000, &c))
				time.Sleep(pause)
				synctest.Wait()
			}
			z.Lock()
			defer z.Unlock()
			return z.total - before
		}
		const mib60 = 600
		if got := grow(mib60, 10*time.Millisecond); got < 50<<20 { // 10 MB/s
			t.Errorf("%d bytes of zeros ahead of a slow log", got)
		}
		if got := grow(2*mib60, 100*time.Microsecond); got > 60<<20 { // 1 GB/s
			t.Errorf("%d bytes of zeros ahead of a fast log of 120 MB", got)
		}
		if got := grow(2*mib60, 10*time.Millisecond); got < 80<<20 {
			t.Errorf("%d bytes of zeros ahead of a log that is slow again", got)
		}
	})
}

// A file that was filled with zeros ahead and then left, as after a crash, is a file without records.
func TestZerosLeftByACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, 8<<20)
		x.cfg.FlushMode = commitlog.SyncFlush
		l, stop := x.running()
		var c commitlog.Counter
		for range 30 {
			mustAppend(t, l, one(t, 100_000, &c))
		}
		synctest.Wait()
		end := l.End()
		stop() // not closed: the next file stays
		found := x.open()
		if n := len(files(t, found)); n < 2 {
			t.Fatalf("%d files, want the next one too", n)
		}
		if at := x.recoverLog(found); at.Offset != end || found.End() != end {
			t.Errorf("recovered to %d, %d, want %d", at.Offset, found.End(), end)
		}
		mustAppend(t, found, one(t, 100_000, &c))
		if got, _ := walk(t, found, 0, commitlog.WalkOptions{VerifyBody: true}); len(got) != 31 {
			t.Errorf("%d records, want 31", len(got))
		}
	})
}

// Zeros that cannot be written cost nothing but themselves: space is had without them.
func TestZerosThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, 16<<20)
		x.cfg.FlushMode = commitlog.SyncFlush
		l, stop := x.running()
		defer stop()
		x.fs.(*vfs.Mem).Inject(func(op vfs.Op) error {
			if op.Kind == vfs.OpWrite && op.Len == 1<<20 {
				return syscall.EIO
			}
			return nil
		})
		var c commitlog.Counter
		for range 200 {
			mustAppend(t, l, one(t, 100_000, &c))
			synctest.Wait()
		}
		if got, _ := walk(t, l, 0, commitlog.WalkOptions{VerifyBody: true}); len(got) != 200 {
			t.Errorf("%d records, want 200", len(got))
		}
	})
}
