package inspect

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mqx/internal/sorted"
	"mqx/store"
)

// delayTable is messageDelayLevel: as given, and what the store says where that does not fit.
type delayTable struct {
	levels []time.Duration
	fits   atomic.Bool // some unit has the delay of the table
	mu     struct {
		sync.Mutex
		other map[int]map[int64][]delayUnit // level -> delay in ms -> units that say so, some of them
	}
}

type delayUnit struct {
	q *vqueue
	n int64
}

func (t *delayTable) init(text string) error {
	levels, err := store.ParseDelayLevels(cmp.Or(text, store.DefaultConfig().MessageDelayLevel))
	if err != nil {
		return fmt.Errorf("cannot read delay levels: %w", err)
	}
	t.levels = levels
	t.mu.other = map[int]map[int64][]delayUnit{}
	return nil
}

// of is the delay of a level, in ms.
func (t *delayTable) of(level int) int64 {
	if level > len(t.levels) {
		level = len(t.levels)
	}
	if level <= 0 {
		return 1000
	}
	return t.levels[level-1].Milliseconds()
}

// agrees reports whether a unit's delay can be that of its level. With another table than the one given, all units of a
// level have the same delay: those that do not are told by settle.
func (t *delayTable) agrees(q *vqueue, n int64, level int, ms int64) bool {
	if ms == t.of(level) {
		if !t.fits.Load() {
			t.fits.Store(true)
		}
		return true
	}
	if ms < 0 || ms%1000 != 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.other[level] == nil {
		t.mu.other[level] = map[int64][]delayUnit{}
	}
	list := t.mu.other[level][ms]
	if len(list) < 1024 {
		t.mu.other[level][ms] = append(list, delayUnit{q, n})
	}
	return true
}

// settle gives the units whose delay no table explains to their queues as wrong: all that do not fit, if the table fits
// any, else those that are in the minority.
func (t *delayTable) settle() {
	for level, byDelay := range t.mu.other {
		best := int64(-1)
		for ms, list := range byDelay {
			if !t.fits.Load() && (best < 0 || len(list) > len(byDelay[best])) {
				best = ms
			}
		}
		for ms, list := range byDelay {
			if ms == best {
				continue
			}
			for _, u := range list {
				u.q.mu.bad = append(u.q.mu.bad, span{u.n, u.n + 1})
				u.q.mu.badAt = fmt.Sprintf("it says a delay of %d ms, level %d has %d", ms, level, t.of(level))
				sorted.By(u.q.mu.bad, func(a, b span) int { return cmp.Compare(a.from, b.from) })
			}
		}
	}
}
