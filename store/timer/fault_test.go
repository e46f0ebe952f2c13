package timer

import (
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"mqx/internal/vfs"
)

// A disk that fails in one of the timer's files costs no message: what failed is tried again, and a process that is killed
// meanwhile finds everything once.
func TestDiskFaultsLoseNothing(t *testing.T) {
	const now = 1_800_000_000_000
	for _, path := range []string{"timerlog", "timerwheel", "timercheck", "timer-progress"} {
		for _, kind := range []vfs.OpKind{vfs.OpWrite, vfs.OpSync} {
			t.Run(path+" "+kind.String(), func(t *testing.T) {
				fs := vfs.NewMem()
				if err := fs.MkdirAll("/s"); err != nil {
					t.Fatal(err)
				}
				open := func(queueMax int64) *Timer {
					tm, err := Open(Config{FS: fs, Root: "/s", FileBytes: 20 * UnitSize, Rules: NewRules(1000, 100), Logger: slog.New(slog.DiscardHandler)}, Origin{
						NowMs: now, LogEnd: 1000, QueueMax: queueMax, PhysAt: func(off int64) (int64, error) { return off * 100, nil },
					})
					if err != nil {
						t.Fatal(err)
					}
					return tm
				}
				flushLog := func(int64) error { return nil }
				tm := open(0)
				fs.Inject(func(op vfs.Op) error {
					if op.Kind == kind && strings.Contains(op.Path, path) {
						return syscall.EIO
					}
					return nil
				})
				items := []Item{{Phys: 0, Size: 100, Out: now + 2000, Topic: "T"}, {Phys: 100, Size: 100, Out: now + 2000, Topic: "T"}}
				tm.Judge(items, now)
				addErr := tm.Add(items, now, 2, 0)
				flushErr := tm.Flush(now, false, flushLog)
				if failed := errors.Join(addErr, flushErr, tm.Note()); failed == nil && (kind != vfs.OpSync || path != "timer-progress") {
					t.Error("nothing failed")
				}
				fs.Inject(nil)
				if addErr != nil {
					if tm.Num() != 0 || tm.Offset() != 0 {
						t.Fatalf("%d messages, offset %d after a batch that failed", tm.Num(), tm.Offset())
					}
					if err := tm.Add(items, now, 2, 0); err != nil {
						t.Fatal(err)
					}
				}
				_ = tm.Flush(now, false, flushLog) // after a failed sync it fails until the next start
				fs = fs.KillUnsynced()
				tm = open(2)
				if tm.Offset() < 2 {
					tm.Judge(items[tm.Offset():], now)
					if err := tm.Add(items[tm.Offset():], now, 2, 0); err != nil {
						t.Fatal(err)
					}
				}
				slot, ok := tm.NextDue(now + 4000)
				if !ok {
					t.Fatal("no slot is due")
				}
				d, err := tm.OpenSlot(slot)
				if err != nil || d.Count != 2 || d.Lost != 0 {
					t.Fatalf("%+v %v", d, err)
				}
				if err := tm.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A slot between the limit and twice the limit refuses the more often the fuller it is.
func TestRejects(t *testing.T) {
	share := func(num int64) (n int) {
		for roll := range int64(1000) {
			if Rejects(num, 100, roll) {
				n++
			}
		}
		return n
	}
	for num, want := range map[int64][2]int{0: {0, 0}, 100: {0, 0}, 101: {5, 15}, 150: {490, 510}, 199: {980, 1000}, 200: {1000, 1000}, 1 << 40: {1000, 1000}} {
		if n := share(num); n < want[0] || n > want[1] {
			t.Errorf("%d messages in a slot for 100: %d of 1000 are refused, want %v", num, n, want)
		}
	}
}
