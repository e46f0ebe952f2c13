package server

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestStepBack(t *testing.T) {
	const work = 100 * time.Microsecond
	for _, tt := range []struct {
		name      string
		preferred bool
		used      bool
		took      time.Duration
		atOnce    int32
	}{
		{name: "in use: one after the other, each with a rest", preferred: true, used: true, took: 8 * (1 + restShare) * work, atOnce: 1},
		{name: "not in use: all at once", preferred: true, took: work, atOnce: 8},
		{name: "nobody is preferred", took: work, atOnce: 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p *Precedence
				if tt.preferred {
					p = NewPrecedence()
				}
				if tt.used {
					p.mark(time.Now())
				}
				began := time.Now()
				var running, most atomic.Int32
				var wg sync.WaitGroup
				for range 8 {
					wg.Go(func() {
						p.StepBack(func() {
							n := running.Add(1)
							for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
							}
							time.Sleep(work)
							running.Add(-1)
						})
					})
				}
				wg.Wait()
				if took := time.Since(began); took != tt.took {
					t.Errorf("8 requests of %v took %v, want %v", work, took, tt.took)
				}
				if most.Load() != tt.atOnce {
					t.Errorf("%d ran at once, want %d", most.Load(), tt.atOnce)
				}
			})
		})
	}
}

func TestStepBackEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPrecedence()
		p.mark(time.Now())
		began := time.Now()
		p.StepBack(func() { time.Sleep(5 * time.Millisecond) })
		if took := time.Since(began); took != 5*time.Millisecond+longestRest {
			t.Errorf("a long request and its rest took %v, want %v", took, 5*time.Millisecond+longestRest)
		}
		began = time.Now()
		p.StepBack(func() { time.Sleep(precedenceLasts) }) // the preferred server falls silent meanwhile
		if took := time.Since(began); took != precedenceLasts {
			t.Errorf("took %v, want no rest after %v", took, precedenceLasts)
		}
		if p.Wanted() {
			t.Errorf("still in use %v after the last request", time.Since(began))
		}
	})
}
