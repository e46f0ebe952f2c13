package clock

import (
	"testing"
	"time"
)

func TestManualStandsStillUntilMoved(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	c := NewManual(start)
	if got := c.Now(); !got.Equal(start) {
		t.Fatalf("Now = %v, want %v", got, start)
	}
	if got := c.Advance(3 * time.Second); !got.Equal(start.Add(3 * time.Second)) {
		t.Fatalf("Advance = %v", got)
	}
	c.Set(start.Add(-time.Hour))
	if got := c.Now(); !got.Equal(start.Add(-time.Hour)) {
		t.Fatalf("after Set: Now = %v", got)
	}
}

func TestSystemMoves(t *testing.T) {
	before := time.Now()
	if got := System.Now(); got.Before(before) {
		t.Fatalf("System.Now = %v lies before %v", got, before)
	}
}
