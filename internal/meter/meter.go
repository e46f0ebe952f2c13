// Package meter counts values in classes, on paths where nothing may be allocated
// and nobody may wait.
package meter

import "sync/atomic"

// Histogram counts values by upper bound. It is safe to share.
type Histogram struct {
	bounds []int64
	counts []atomic.Uint64 // one more than bounds: what is above all of them
	sum    atomic.Int64
}

// New returns a histogram with these upper bounds, which ascend and are not copied.
// The unit is the caller's.
func New(bounds []int64) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
}

// latencyBounds are powers of four from 16 µs to 17 s, in nanoseconds.
var latencyBounds = func() (out []int64) {
	for us := int64(16); us <= 1<<24; us *= 4 {
		out = append(out, us*1000)
	}
	return out
}()

// NewLatency returns a histogram of durations in nanoseconds.
func NewLatency() *Histogram { return New(latencyBounds) }

// Observe counts n values of v.
func (h *Histogram) Observe(v int64, n uint64) {
	i := 0
	for i < len(h.bounds) && v > h.bounds[i] {
		i++
	}
	h.counts[i].Add(n)
	h.sum.Add(v * int64(n))
}

// Reading is what a histogram held at a moment. Counts has one more element than
// Bounds; the counts are of each class alone.
type Reading struct {
	Bounds []int64
	Counts []uint64
	Sum    int64
}

// Read returns the present counts.
func (h *Histogram) Read() Reading {
	r := Reading{Bounds: h.bounds, Counts: make([]uint64, len(h.counts)), Sum: h.sum.Load()}
	for i := range h.counts {
		r.Counts[i] = h.counts[i].Load()
	}
	return r
}

// Count is the number of all values.
func (r *Reading) Count() uint64 {
	var n uint64
	for _, c := range r.Counts {
		n += c
	}
	return n
}
