package broker

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"sync/atomic"
	"time"
)

// latencies counts durations in buckets of powers of two microseconds. Safe to
// share.
type latencies struct {
	buckets [40]atomic.Int64 // bucket i: below 2^i µs
	maxUs   atomic.Int64
	sumUs   atomic.Int64
}

// Add counts n events of a duration.
func (l *latencies) Add(d time.Duration, n int64) {
	us := max(0, d.Microseconds())
	l.buckets[min(bits.Len64(uint64(us)), len(l.buckets)-1)].Add(n)
	l.sumUs.Add(us * n)
	for {
		m := l.maxUs.Load()
		if us <= m || l.maxUs.CompareAndSwap(m, us) {
			return
		}
	}
}

// MaxMs is the longest duration in milliseconds.
func (l *latencies) MaxMs() int64 { return l.maxUs.Load() / 1000 }

// Quantile is an upper bound of the q-quantile in milliseconds.
func (l *latencies) Quantile(q float64) float64 {
	var total int64
	var counts [len(l.buckets)]int64
	for i := range l.buckets {
		counts[i] = l.buckets[i].Load()
		total += counts[i]
	}
	if total == 0 {
		return 0
	}
	rest := total - int64(math.Ceil(float64(total)*q))
	for i := len(counts) - 1; i >= 0; i-- {
		if rest -= counts[i]; rest < 0 || i == 0 {
			return min(float64(int64(1)<<i), float64(l.maxUs.Load())) / 1000
		}
	}
	return 0
}

// distribution are Apache's classes of put times, upper bounds in ms.
var distribution = []struct {
	label string
	ms    int64
}{
	{"[<=0ms]", 1},
	{"[0~10ms]", 10},
	{"[10~50ms]", 50},
	{"[50~100ms]", 100},
	{"[100~200ms]", 200},
	{"[200~500ms]", 500},
	{"[500ms~1s]", 1000},
	{"[1~2s]", 2000},
	{"[2~3s]", 3000},
	{"[3~4s]", 4000},
	{"[4~5s]", 5000},
	{"[5~10s]", 10_000},
	{"[10s~]", 1 << 60},
}

// Distribution is the text of putMessageDistributeTime. A bucket that spans two
// classes counts in the lower one.
func (l *latencies) Distribution() string {
	counts := make([]int64, len(distribution))
	for i := range l.buckets {
		lowUs := int64(0)
		if i > 0 {
			lowUs = 1 << (i - 1)
		}
		for j, d := range distribution {
			if lowUs < d.ms*1000 {
				counts[j] += l.buckets[i].Load()
				break
			}
		}
	}
	var b strings.Builder
	for j, d := range distribution {
		fmt.Fprintf(&b, "%s:%d ", d.label, counts[j])
	}
	return b.String()
}
