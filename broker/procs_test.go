package broker

import (
	"runtime"
	"testing"
)

// The spare places are for goroutines in system calls: they make no more event loops, and who sets GOMAXPROCS is left alone.
func TestSpareProcs(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	cfg := testConfig(t.TempDir())
	cfg.Loops = 0
	want := cfg.loops()
	t.Setenv("GOMAXPROCS", "")
	SpareProcs()
	SpareProcs()
	if got := runtime.GOMAXPROCS(0); got != cores+spareProcs {
		t.Errorf("%d places for goroutines, want %d", got, cores+spareProcs)
	}
	if got := cfg.loops(); got != want {
		t.Errorf("%d loops with spare places, %d without", got, want)
	}
	runtime.GOMAXPROCS(cores)
	t.Setenv("GOMAXPROCS", "7")
	SpareProcs()
	if got := runtime.GOMAXPROCS(0); got != cores {
		t.Errorf("the environment says 7, and it is %d, want %d as before", got, cores)
	}
}
