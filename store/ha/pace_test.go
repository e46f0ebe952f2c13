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
	p := pace{now}
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
