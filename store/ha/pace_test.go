package ha

import (
	"testing"
	"time"
)

// The bound on a rate is kept, and reached although each sleep is longer than it was asked to be; a sender that had nothing to
// send makes up for little of it.
func TestPace(t *testing.T) {
	const rate = 1_000_000
	now := time.Unix(1_000_000, 0)
	began := now
	p := pace{due: now, credit: paceCredit}
	send := func(batches int) time.Duration {
		began = now
		for range batches {
			if wait := p.sent(1<<10, rate, now); wait > 0 {
				now = now.Add(wait + 5*time.Millisecond)
			}
		}
		return now.Sub(began)
	}
	whole := 500 * time.Second * (1 << 10) / rate
	if took := send(500); took < whole-paceCredit || took > whole+paceCredit {
		t.Errorf("500 batches of 1 KiB took %v, want %v", took, whole)
	}
	now = now.Add(time.Hour)
	if took := send(500); took < whole-2*paceCredit || took > whole+paceCredit {
		t.Errorf("after an hour without any 500 batches took %v, want %v", took, whole)
	}
}

// A slave that catches up gets all that it can take while nobody sends, a bounded rate while somebody does, and more than comes
// in any case.
func TestYield(t *testing.T) {
	for _, c := range []struct {
		name      string
		perSecond int64 // that producers send
		least     int64
		most      int64 // 0: no bound
	}{
		{"nobody sends", 0, 1_900_000_000, 0},
		{"some", 1_000_000, yieldRate * 9 / 10, yieldRate * 11 / 10},
		{"many", 300_000_000, 500_000_000, 660_000_000},
	} {
		now := time.Unix(1_000_000, 0)
		began, end, sent := now, int64(1<<40), int64(0)
		y := newYield(end, now)
		for now.Sub(began) < 2*time.Second {
			step := 63 * time.Microsecond // a frame of 128 KiB at 2 GB/s
			if wait := y.sent(farBatch, end, now); wait > 0 {
				step += wait + 60*time.Microsecond
			}
			sent += farBatch
			now = now.Add(step)
			end += int64(float64(c.perSecond) * step.Seconds())
		}
		rate := int64(float64(sent) / now.Sub(began).Seconds())
		if rate < c.least || c.most > 0 && rate > c.most {
			t.Errorf("%s: %d bytes a second, want %d to %d", c.name, rate, c.least, c.most)
		}
	}
}

// A slave gives way from the first frame that says that it is far behind until small ones come, and not where nothing is left
// for it on a machine that is always busy.
func TestAsideFrames(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var a aside
	step := func(n int, after time.Duration) bool {
		now = now.Add(after)
		a.took(n, now)
		return a.now()
	}
	if step(farBatch-1, time.Hour) || step(0, time.Hour) {
		t.Fatal("it gives way without being far behind")
	}
	for i := range 3000 { // 131 MB/s, with the short frames at the ends of files
		if !step(farBatch, time.Millisecond) || i%100 == 0 && !step(1, 0) {
			t.Fatalf("it does not give way at frame %d", i)
		}
	}
	for i := range asideFrames {
		if got := step(100, time.Millisecond); got != (i < asideFrames-1) {
			t.Fatalf("after %d small frames it gives way: %v", i+1, got)
		}
	}
	for i := range 1000 {
		step(farBatch, 10*time.Millisecond) // 26 MB/s
		if got := a.now(); got != (i < 100) {
			t.Fatalf("at 26 MB/s for %d ms it gives way: %v", i*10, got)
		}
	}
}
