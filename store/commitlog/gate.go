package commitlog

import (
	"math"
	"slices"
	"sync"
)

// gate holds back what is not confirmed: records are handed out up to the end of an append that lies within what has been
// confirmed. It stands open unless Gate is called.
type gate struct {
	sync.Mutex
	on   bool
	seen int64   // confirmed so far
	ends []int64 // of appends that are not, ascending
}

// maxGated bounds gate.ends: beyond it the newest two appends are shown together.
const maxGated = 1 << 16

// noGate is shown while the gate is open.
const noGate = math.MaxInt64

// Gate lets Confirmed stay where it is until Confirm moves it. A log whose gate is closed already stays as it is.
func (l *Log) Gate() {
	l.app.Lock() // no append is between its write and its end
	defer l.app.Unlock()
	g := &l.gate
	g.Lock()
	defer g.Unlock()
	if g.on {
		return
	}
	g.on, g.seen, g.ends = true, l.end.Load(), g.ends[:0]
	l.shown.Store(g.seen)
}

// GateAt closes the gate at start, where what lies before shown has been handed out before. What lies behind comes as one
// piece. It is called once, after SetEnd and before anything else.
func (l *Log) GateAt(shown int64) {
	g := &l.gate
	g.Lock()
	defer g.Unlock()
	g.on, g.seen, g.ends = true, shown, g.ends[:0]
	if end := l.end.Load(); end > shown {
		g.ends = append(g.ends, end)
	}
	l.shown.Store(shown)
}

// Ungate opens the gate: what is in the log may be handed out.
func (l *Log) Ungate() {
	g := &l.gate
	g.Lock()
	defer g.Unlock()
	g.on, g.ends = false, nil
	l.shown.Store(noGate)
}

// Confirm says that what lies before pos may be handed out. Positions never go back. It reports whether more may be.
func (l *Log) Confirm(pos int64) (more bool) {
	g := &l.gate
	g.Lock()
	defer g.Unlock()
	if !g.on || pos <= g.seen {
		return false
	}
	g.seen = pos
	n, found := slices.BinarySearch(g.ends, pos)
	if found {
		n++
	}
	if n == 0 {
		return false
	}
	l.shown.Store(g.ends[n-1])
	g.ends = slices.Delete(g.ends, 0, n)
	return true
}

// appendedTo notes the end of an append before anybody can see it. Needs app.
func (g *gate) appendedTo(l *Log, end int64) {
	g.Lock()
	defer g.Unlock()
	switch {
	case !g.on:
	case end <= g.seen:
		l.shown.Store(end)
	case len(g.ends) >= maxGated:
		g.ends[len(g.ends)-1] = end
	default:
		g.ends = append(g.ends, end)
	}
}

// cut forgets what lay behind off.
func (g *gate) cut(l *Log, off int64) {
	g.Lock()
	defer g.Unlock()
	if !g.on {
		return
	}
	n, found := slices.BinarySearch(g.ends, off)
	if found {
		n++
	}
	g.ends = g.ends[:n]
	g.seen = min(g.seen, off)
	l.shown.Store(min(l.shown.Load(), off))
}
