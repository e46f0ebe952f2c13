package commitlog_test

import (
	"testing"
	"time"

	"mqx/message"
	"mqx/store/commitlog"
)

func TestNextHead(t *testing.T) {
	rec := func(phys int64) []byte {
		r := message.Record{Topic: []byte("T"), Body: []byte("x")}
		b := r.Append(nil, false)
		message.PatchOffsets(b, 0, phys, 1)
		return b
	}
	first := rec(1003)
	second := 3 + len(first)
	b := append([]byte{1, 2, 3}, first...)
	b = append(b, rec(1000+int64(second))...)
	b = append(b, rec(7)...) // carries another place
	for _, tt := range []struct{ from, want int }{{0, 3}, {3, 3}, {4, second}, {second, second}, {second + 1, -1}, {len(b), -1}, {len(b) + 9, -1}} {
		if got := commitlog.NextHead(b, 1000, tt.from); got != tt.want {
			t.Errorf("from %d: %d, want %d", tt.from, got, tt.want)
		}
	}
	if got := commitlog.NextHead(b[:second+commitlog.ScanHead-1], 1000, 4); got != -1 {
		t.Errorf("a head that is cut: %d", got)
	}
}

func TestStale(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	in := func(d time.Duration) int64 { return now.Add(d).UnixMilli() }
	for _, tt := range []struct {
		name        string
		store, last int64
		want        bool
	}{
		{"nothing before", in(0), 0, false},
		{"later", in(time.Second), in(0), false},
		{"the same", in(0), in(0), false},
		{"earlier", in(-time.Second), in(0), true},
		{"the last one a little ahead of the clock", in(0), in(time.Minute), true},
		{"the last one is from the future", in(0), in(2 * time.Hour), false},
	} {
		if got := commitlog.Stale(tt.store, tt.last, now); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
