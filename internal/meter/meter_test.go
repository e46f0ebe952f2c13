package meter

import (
	"slices"
	"testing"
)

func TestHistogram(t *testing.T) {
	h := New([]int64{1, 10, 100})
	for v, n := range map[int64]uint64{0: 1, 1: 2, 2: 3, 10: 1, 11: 1, 100: 1, 101: 4} {
		h.Observe(v, n)
	}
	r := h.Read()
	if !slices.Equal(r.Counts, []uint64{3, 4, 2, 4}) || r.Sum != 0+2+6+10+11+100+404 || r.Count() != 13 {
		t.Errorf("read %+v, count %d", r, r.Count())
	}
	if n := testing.AllocsPerRun(100, func() { h.Observe(7, 1) }); n != 0 {
		t.Errorf("%v allocations an observation", n)
	}
}
