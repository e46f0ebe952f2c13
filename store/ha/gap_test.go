package ha_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A master that has stepped over a gap in its log can be copied: its slave steps over it too, however the bytes come.
func TestCopyOverGap(t *testing.T) {
	src, stop := running(t, config(t.TempDir()))
	defer stop()
	for i := range 40 {
		put(t, src, "T", 0, bytes.Repeat([]byte{byte(i + 1)}, 700))
	}
	log := logBytes(t, src)
	at, err := src.RecordFloor(9000)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		gapped := bytes.Clone(log)
		clear(gapped[at+r.Int64N(30) : at+1000]) // the end of a head at least, and the next record's head
		cfg := config(t.TempDir())
		cfg.Follow = true
		dst, stopDst := running(t, cfg)
		for off := 0; off < len(gapped); {
			n := min(1+r.IntN([]int{3, 40, 3000}[r.IntN(3)]), len(gapped)-off)
			if err := dst.AppendRaw(int64(off), gapped[off:off+n]); err != nil {
				t.Fatalf("seed %d, at %d: %v", seed, off, err)
			}
			off += n
		}
		eventually(t, "the records behind the gap are not dispatched", func() bool { return dst.Dispatched() == int64(len(log)) })
		if m := dst.MaxOffset("T", 0); m != 40 {
			t.Errorf("seed %d: the queue ends at %d", seed, m)
		}
		stopDst()
	}
}
