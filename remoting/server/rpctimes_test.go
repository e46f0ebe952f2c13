package server

import (
	"testing"
	"time"

	"mqx/internal/meter"
)

// Requests are told apart by code, answer, parking and result, without bound on the
// peers' fancy but with one on the memory.
func TestRPCTimes(t *testing.T) {
	times := &RPCTimes{}
	times.observe(RPCKey{Code: 310, Result: ResultSuccess}, 2*time.Millisecond)
	times.observe(RPCKey{Code: 310, Result: ResultSuccess}, time.Hour)
	times.observe(RPCKey{Code: 11, Parked: true, Result: ResultSuccess}, time.Millisecond)
	for i := range int32(2 * maxRPCKeys) {
		times.observe(RPCKey{Code: -100 - i, Response: 3, Result: ResultSuccess}, time.Millisecond)
	}
	kinds, rest := 0, uint64(0)
	times.Each(func(k RPCKey, r meter.Reading) {
		kinds++
		switch {
		case k == (RPCKey{Code: 310, Result: ResultSuccess}):
			if r.Counts[1] != 1 || r.Counts[len(r.Counts)-1] != 1 || r.Sum != int64(time.Hour+2*time.Millisecond) {
				t.Errorf("sends: %+v", r)
			}
		case k == oneKey:
			rest = r.Count()
		}
	})
	if kinds > maxRPCKeys+2 || rest < maxRPCKeys {
		t.Errorf("%d kinds, %d in the rest", kinds, rest)
	}
	plain := RPCKey{Code: 310, Result: ResultSuccess}
	if n := testing.AllocsPerRun(100, func() { times.observe(plain, time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}
