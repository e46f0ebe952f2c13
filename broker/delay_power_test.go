package broker

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/internal/vfs"
	"mqx/message"
)

// The power fails at any moment while delayed messages are delivered and delayOffset.json is written: with SYNC_FLUSH no message
// that was answered is lost. The progress never says more than the log holds, and a file that was being written leaves a whole one
// behind.
func TestDelayProgressSurvivesPowerLoss(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 8))
			cfg, disk := onMem()
			cfg.Store.MessageDelayLevel = "1s 2s"
			cfg.Store.FlushDiskType = "SYNC_FLUSH"
			cfg.FlushDelayOffset = 2 * time.Millisecond
			ck := clock.NewManual(time.Now())
			cfg.Clock = ck
			b := start(t, cfg)
			b.createTopic("T", 1)
			var left atomic.Pointer[vfs.Mem]
			var lost atomic.Bool // set before the disk is copied: what is answered meanwhile may have come too late for the copy
			ops, at := atomic.Int64{}, int64(1+r.IntN(400))
			disk.Inject(func(op vfs.Op) error {
				if strings.Contains(op.Path, "delayOffset.json") {
					ops.Add(4) // these files are what it is about
				}
				if n := ops.Add(1); n >= at && n < at+5 && left.Load() == nil {
					lost.Store(true)
					left.CompareAndSwap(nil, disk.PowerLoss(seed))
				}
				return nil
			})
			answered := map[string]bool{}
			for i := 0; left.Load() == nil && i < 200; i++ {
				body := fmt.Sprint("m", i)
				b.send("T", 0, prop("DELAY", fmt.Sprint(1+i%2)), body)
				if !lost.Load() {
					answered[body] = true
				}
				ck.Advance(time.Duration(r.IntN(300)) * time.Millisecond)
			}
			waitFor(t, "the failure", func() bool { ck.Advance(time.Second); return left.Load() != nil })
			disk.Inject(nil)
			b.stop()

			cfg.Store.FS = left.Load()
			b = start(t, cfg)
			missing := func() string {
				got := map[string]bool{}
				for off := range b.store.MaxOffset("T", 0) {
					if units, err := b.store.Units("T", 0, off, 1); err == nil && len(units) == 1 && !units[0].Missing() {
						raw, err := b.store.RecordAt(units[0].PhysicalOffset)
						must(t, err)
						got[string(records(t, raw)[0].Body)] = true
					}
				}
				for body := range answered {
					if !got[body] {
						return body
					}
				}
				return ""
			}
			waitFor(t, "all that was answered", func() bool {
				ck.Advance(time.Second)
				return missing() == ""
			})
			for level, off := range b.delays.table().OffsetTable {
				if most := b.store.MaxOffset(message.TopicSchedule, level-1); off > most {
					t.Errorf("level %d: progress %d of %d", level, off, most)
				}
			}
		})
	}
}

// N062: values with blanks survive, in whatever way they are separated, and a table that changes while messages wait by the old one
// is said so at the start, level by level.
func TestChangedDelayLevelsAreSaid(t *testing.T) {
	cfg := delayConfigOf(t, " 1s  5s\t10s ")
	man := clock.NewManual(time.Now())
	cfg.Clock = man
	r := start(t, cfg)
	if got := r.cfg().Values()["messageDelayLevel"]; strings.Join(strings.Fields(got), " ") != "1s 5s 10s" {
		t.Errorf("the table is %q", got)
	}
	r.createTopic("T", 1)
	r.send("T", 0, prop("DELAY", "2"), "x")
	r.send("T", 0, prop("DELAY", "3"), "y")
	r.settle()
	r.stop()
	for _, tt := range []struct {
		levels string
		says   []string
		silent []string
	}{
		{"1s 5s 10s", nil, []string{"level=2", "level=3"}},
		{"1s 7s 10s", []string{"level=2 waiting_by=5s is=7s"}, []string{"level=3 "}},
		{"1s", []string{"level=2 waiting_by=5s is=none", "level=3 waiting_by=10s is=none"}, nil},
	} {
		var said bytes.Buffer
		cfg.Store.MessageDelayLevel = tt.levels
		cfg.Logger = slog.New(slog.NewTextHandler(&said, nil))
		start(t, cfg).stop()
		for _, s := range tt.says {
			if !strings.Contains(said.String(), "messages wait by another delay than messageDelayLevel says now") || !strings.Contains(said.String(), s) {
				t.Errorf("%q: %s is not said: %s", tt.levels, s, said.String())
			}
		}
		for _, s := range tt.silent {
			if strings.Contains(said.String(), s+" waiting_by") {
				t.Errorf("%q: said %s", tt.levels, said.String())
			}
		}
	}
}
