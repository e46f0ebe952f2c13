package ha

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"
)

// Group decides for a master which appends have the copies that its rules ask for, who waits no longer, how far consumers
// may see, and when it makes do with fewer copies. It is a pure core: what happened and when comes in by its methods, what
// is to be done comes out of Take. It has no clock, does no I/O, and the same calls give the same decisions. It belongs to
// one goroutine at a time.
type Group struct {
	rules Rules
	epoch int64
	end   int64 // of the master's log, as far as it was told
	base  int64 // what is before it had its copies when it was acknowledged
	born  int64 // where the log ended at the beginning: what is before it was acknowledged by others, or before

	conns   []*groupConn // by number
	all     []Replica    // of conns, by id; made again by each event
	in      int          // of them in sync
	acked   int64        // had its copies at some time, under the rules that are in force
	open    bool         // consumers see all
	shown   int64        // what they see where they do not
	waiters waiterHeap   // by the position they wait for
	due     []*Waiter    // by deadline, which is the order of arrival

	state     groupState
	taken     int64     // how often Take has given intervals
	inVain    int       // waits in a row
	enough    time.Time // when enough slaves were connected last
	near      time.Time // since when enough slaves have been near; zero: they are not
	vague     bool      // the interval that is open begins before born, since nobody has said what slaves have
	intervals []Interval
	record    bool // intervals have changed since they were taken

	done []*Waiter
}

// groupState says whether a group makes do with fewer copies.
type groupState int

const (
	armed     groupState = iota
	degrading            // from the next record of that on
	degraded
)

// groupConn is one connection of a slave.
type groupConn struct {
	conn    int64
	who     Peer
	end     int64 // behind the last byte it has reported
	at      time.Time
	mark    int64     // of the master's log at markAt
	markAt  time.Time // of mark
	caught  time.Time // it has all that the master had then; zero: not known
	entered bool      // it is in sync, as far as what was acknowledged goes
	sure    bool      // it has reported since it came: only then it has compared its log with the master's
}

// Peer is who a connection belongs to.
type Peer struct {
	ID      string // what the slave has told of itself; "" for one that tells nothing
	Host    string
	Async   bool // it is a copy that nobody waits for
	Flushed bool // it reports what is durable
}

// Waiter waits until its bytes have their copies.
type Waiter struct {
	End      int64 // behind its last byte
	Deadline time.Time
	Done     func(ok bool) // not called by the group
	OK       bool          // with Take: it has its copies
	over     bool
}

// Replica is what a master knows about one of its slaves.
type Replica struct {
	ID      string // what it tells of itself, else its host
	Host    string
	Known   bool      // it has told who it is
	End     int64     // behind the last byte it has
	Seen    time.Time // its last report
	Caught  time.Time // it has all that the master had then; zero: not known
	Conns   int       // connections; more than one where an old one has not been given up
	Counted bool      // it counts as a copy
	Flushed bool      // it reports what is durable
	Async   bool      // nobody waits for it
	InSync  bool
}

// NewGroup begins with a master's log that ends at end, of which what is before base had its copies when it was acknowledged,
// and with what was recorded before. Consumers had seen what is before shown. A time of fewer copies that had not ended goes on.
func NewGroup(r Rules, base, shown, end int64, before []Interval, now time.Time) *Group {
	r.setDefaults()
	g := &Group{rules: r, base: min(base, shown), born: end, end: end, intervals: slices.Clone(before), enough: now, shown: shown}
	if n := len(before); n > 0 && before[n-1].Open() {
		if r.degrades() {
			g.state = degraded
		} else {
			g.close(now)
		}
	}
	g.settle(now)
	return g
}

// SetRules changes the rules, and the epoch of intervals that begin from now on.
func (g *Group) SetRules(r Rules, epoch int64, now time.Time) {
	r.setDefaults()
	if g.epoch = epoch; g.rules == r {
		return
	}
	if g.base = 0; g.rules.Waits() && g.state == armed && g.rules.Copies >= r.Copies {
		g.base = g.acked
	}
	if g.rules = r; !r.degrades() && g.state != armed {
		g.close(now)
	}
	g.acked, g.inVain, g.enough = 0, 0, now
	g.settle(now)
}

// Appended tells how far the master's log goes. Every event that is told with an end beyond it implies it.
func (g *Group) Appended(end int64) { g.end = max(g.end, end) }

// Join tells of a new connection of a slave that says to have the log up to start. It is a copy from its next report on: its
// log may have parted from the master's, and it finds out by what it is sent.
func (g *Group) Join(conn int64, who Peer, start int64, now time.Time) {
	c := &groupConn{conn: conn, who: who, end: min(start, g.end), at: now, mark: g.end, markAt: now}
	i, _ := slices.BinarySearchFunc(g.conns, conn, func(c *groupConn, n int64) int { return cmp.Compare(c.conn, n) })
	g.conns = slices.Insert(g.conns, i, c)
	g.catch(c, now)
	g.settle(now)
}

// Report tells how far a slave says that its log goes. A report beyond the master's end, or behind the report before, is an
// error: that slave is no copy.
func (g *Group) Report(conn, end int64, now time.Time) error {
	i := g.find(conn)
	if i < 0 {
		return fmt.Errorf("cannot take the report of a slave that has left")
	}
	c := g.conns[i]
	switch {
	case end > g.end:
		return fmt.Errorf("the slave %s reports a log up to %d, the master has %d", c.name(), end, g.end)
	case end < c.end:
		return fmt.Errorf("the slave %s reports a log up to %d, after %d", c.name(), end, c.end)
	}
	c.end, c.at, c.sure = end, now, true
	g.catch(c, now)
	g.settle(now)
	return nil
}

// catch notes when a slave had all that there was.
func (g *Group) catch(c *groupConn, now time.Time) {
	if !c.sure {
		return
	}
	if c.end >= c.mark {
		c.caught, c.mark, c.markAt = c.markAt, g.end, now
	}
	if c.end >= g.end {
		c.caught = now
	}
}

// Leave tells that a connection has ended; what it had is no copy any more.
func (g *Group) Leave(conn int64, now time.Time) {
	if i := g.find(conn); i >= 0 {
		g.conns = slices.Delete(g.conns, i, i+1)
		g.settle(now)
	}
}

func (g *Group) find(conn int64) int {
	return slices.IndexFunc(g.conns, func(c *groupConn) bool { return c.conn == conn })
}

// Wait adds a waiter. Deadlines do not go back from one to the next: one that is before the last one (the time that messages
// wait was made shorter) becomes the last one.
func (g *Group) Wait(w *Waiter, now time.Time) {
	if n := len(g.due); n > 0 && w.Deadline.Before(g.due[n-1].Deadline) {
		w.Deadline = g.due[n-1].Deadline
	}
	g.end = max(g.end, w.End)
	if w.End <= g.acked {
		w.OK, w.over = true, true
		g.done = append(g.done, w)
		return
	}
	heap.Push(&g.waiters, w)
	g.due = append(g.due, w)
	g.settle(now)
}

// Tick tells the time.
func (g *Group) Tick(now time.Time) { g.settle(now) }

// Recorded tells that the intervals of a decision are durable. Only then fewer copies do.
func (g *Group) Recorded(d Decision, now time.Time) {
	if g.state == degrading && !g.record && d.taken == g.taken {
		g.state, g.near = degraded, time.Time{}
		g.settle(now)
	}
}

// Close lets all waiters go.
func (g *Group) Close() {
	for _, w := range g.due {
		if !w.over {
			w.over = true
			g.done = append(g.done, w)
		}
	}
	g.due, g.waiters = nil, nil
}

// Decision is what is to be done: what consumers see first, then waiters.
type Decision struct {
	Open   bool  // consumers see all
	Shown  int64 // what they see where Open is not set
	Done   []*Waiter
	Record []Interval // to be made durable, and then told by Recorded; nil: nothing has changed
	Next   time.Time  // the earliest deadline of a waiter; zero: nobody waits
	taken  int64
}

// Take gives what was decided since the last time.
func (g *Group) Take() Decision {
	d := Decision{Open: g.open, Shown: g.shown, Done: g.done}
	g.done = nil
	if g.record {
		g.taken++
		d.Record, d.taken, g.record = append([]Interval{}, g.intervals...), g.taken, false
	}
	if len(g.due) > 0 {
		d.Next = g.due[0].Deadline
	}
	return d
}

// Retry gives the intervals once more with the next Take: they could not be made durable, be it that one has begun or ended.
func (g *Group) Retry() { g.record = true }

// Replicas are the slaves, by id.
func (g *Group) Replicas() []Replica { return slices.Clone(g.all) }

// Status is how a group stands.
type Status struct {
	Rules     Rules
	Degraded  bool
	InSync    int
	Acked     int64 // has the copies that are asked for; the end of the log where none are
	Shown     int64 // what consumers see
	End       int64
	Waiting   int
	Intervals []Interval
}

// Status tells how the group stands.
func (g *Group) Status() Status {
	s := Status{
		Rules: g.rules, Degraded: g.state == degraded, InSync: g.in, Acked: min(g.acked, g.end), Shown: g.shown, End: g.end,
		Waiting: len(g.due), Intervals: slices.Clone(g.intervals),
	}
	if g.open {
		s.Shown = g.end
	}
	return s
}

// notEnough tells why nothing may be appended that waits for copies; nil where it may.
func (g *Group) notEnough() *NotEnoughError {
	if g.rules.Waits() && g.in < g.rules.Least {
		return &NotEnoughError{InSync: g.in + 1, Least: g.rules.Least + 1}
	}
	return nil
}

// NotEnoughError says that too few replicas are in sync. The master is counted.
type NotEnoughError struct{ InSync, Least int }

func (e *NotEnoughError) Error() string {
	return fmt.Sprintf("in-sync replicas not enough: %d, the master counted, and minInSyncReplicas is %d", e.InSync, e.Least)
}

// settle draws the conclusions of an event.
func (g *Group) settle(now time.Time) {
	g.count(now)
	g.degrade(now)
	g.acked = max(g.acked, g.reach())
	for len(g.waiters) > 0 && (g.waiters[0].over || g.waiters[0].End <= g.acked) {
		if w := heap.Pop(&g.waiters).(*Waiter); !w.over {
			w.OK, w.over = true, true
			g.inVain = 0
			g.done = append(g.done, w)
		}
	}
	g.expire(now)
	if g.open = !g.rules.Hold || !g.rules.Waits() || g.state == degraded && g.copies() == 0; g.open {
		g.shown = g.end
	} else {
		g.shown = max(g.shown, min(g.acked, g.end))
	}
}

func (g *Group) expire(now time.Time) {
	n := 0
	for ; n < len(g.due); n++ {
		w := g.due[n]
		if w.over {
			continue
		}
		if w.Deadline.After(now) {
			break
		}
		w.over = true
		g.inVain++
		g.done = append(g.done, w)
	}
	g.due = slices.Delete(g.due, 0, n)
	if n > 0 {
		g.degrade(now)
	}
}

// count makes the replicas of the connections, and says which are in sync.
func (g *Group) count(now time.Time) {
	g.all, g.in = g.all[:0], 0
	for _, c := range g.conns {
		c.entered = c.entered || !c.caught.IsZero() && (c.end >= g.acked || g.rules.Level != LevelSync)
		late := c.end < g.end && now.Sub(c.caught) > g.rules.MaxLag
		if c.caught.IsZero() || late || g.end-c.end > g.rules.MaxGap {
			c.entered = false
		}
		g.replica(c)
	}
	slices.SortFunc(g.all, func(x, y Replica) int { return cmp.Compare(x.ID, y.ID) })
	for i := range g.all {
		r := &g.all[i]
		r.InSync = r.InSync && r.Counted
		if r.InSync {
			g.in++
		}
	}
}

// replica adds a connection to the replica that it belongs to. One that does not tell who it is may be an old or a new one
// of a replica of its host that does: it is a copy of its own only where there is none.
func (g *Group) replica(c *groupConn) {
	known := c.who.ID != ""
	hidden := !known && slices.ContainsFunc(g.conns, func(o *groupConn) bool { return o.who.ID != "" && o.who.Host == c.who.Host })
	counted := c.sure && !c.who.Async && !hidden && (c.who.Flushed || !g.rules.Flushed)
	i := slices.IndexFunc(g.all, func(r Replica) bool { return r.ID == c.name() && r.Known == known })
	if i < 0 {
		i = len(g.all)
		g.all = append(g.all, Replica{ID: c.name(), Host: c.who.Host, Known: known, End: -1})
	}
	r := &g.all[i]
	r.Conns++
	if c.at.After(r.Seen) {
		r.Seen = c.at
	}
	if counted == r.Counted && c.end > r.End || counted && !r.Counted {
		r.End, r.Caught = c.end, c.caught
		r.Counted, r.Flushed, r.Async = counted, c.who.Flushed, c.who.Async
	}
	r.InSync = r.InSync || counted && c.entered
}

func (c *groupConn) name() string { return cmp.Or(c.who.ID, c.who.Host) }

// copies are the slaves that must have what is acknowledged now.
func (g *Group) copies() int {
	switch {
	case g.state != degraded:
		return g.rules.Copies
	case g.rules.Level == LevelSemiSync:
		return 0
	}
	return max(g.rules.Least, min(g.rules.Copies, g.in))
}

// reach is how far enough slaves have the log now; -1 when they are too few.
func (g *Group) reach() int64 {
	switch g.rules.Level {
	case LevelSync:
		least := g.end
		for i := range g.all {
			if g.all[i].InSync {
				least = min(least, g.all[i].End)
			}
		}
		if g.in < g.rules.Least {
			return -1
		}
		return least
	case LevelSemiSync, LevelQuorum:
		return g.nth(g.copies())
	}
	return g.end
}

// nth is what n slaves have.
func (g *Group) nth(n int) int64 {
	if n <= 0 {
		return g.end
	}
	var few [8]int64
	marks := few[:0]
	for i := range g.all {
		if g.all[i].Counted {
			marks = append(marks, g.all[i].End)
		}
	}
	if len(marks) < n {
		return -1
	}
	slices.Sort(marks)
	return marks[len(marks)-n]
}

// degrade decides whether fewer copies do, and no longer.
func (g *Group) degrade(now time.Time) {
	if !g.rules.degrades() {
		return
	}
	have := g.nth(g.rules.Copies)
	if have >= 0 {
		g.enough = now
	}
	switch g.state {
	case armed, degrading:
		if why := g.tooFew(now); why == "" {
			if g.state == degrading { // it has passed before anything was acknowledged by it
				g.state, g.inVain = armed, 0
				g.intervals, g.record = g.intervals[:len(g.intervals)-1], true
			}
		} else if g.state == armed {
			g.state, g.record = degrading, true
			from := max(g.base, min(g.acked, g.end))
			g.vague = from < g.born
			g.intervals = append(g.intervals, Interval{From: from, To: -1, Epoch: g.epoch, Began: now.UnixMilli(), Why: why})
			g.intervals = slices.Delete(g.intervals, 0, max(0, len(g.intervals)-maxIntervals))
		}
	case degraded:
		if g.vague && have >= g.born { // what could be lost begins with this master
			g.intervals[len(g.intervals)-1].From, g.vague, g.record = g.born, false, true
		}
		near := have >= 0 && g.nearby(now) >= g.rules.Copies
		if g.rules.Level == LevelQuorum {
			if g.in >= g.rules.Copies {
				g.close(now)
			}
			return
		}
		switch {
		case !near:
			g.near = time.Time{}
		case g.near.IsZero():
			g.near = now
		case now.Sub(g.near) >= g.rules.RearmAfter:
			g.close(now)
		}
	}
}

// nearby is how many slaves are less than a batch behind, or lack only what is younger than nearTime: under load the gap is
// never less than what comes while a report is on its way.
func (g *Group) nearby(now time.Time) (n int) {
	for i := range g.all {
		r := &g.all[i]
		if r.Counted && (g.end-r.End < g.rules.Batch || !r.Caught.IsZero() && now.Sub(r.Caught) <= nearTime) {
			n++
		}
	}
	return n
}

// nearTime is the age up to which what a slave lacks is on its way.
const nearTime = 100 * time.Millisecond

// tooFew says why fewer copies are to do; "" where they are not.
func (g *Group) tooFew(now time.Time) string {
	switch {
	case g.rules.Level == LevelQuorum && g.in < g.rules.Copies:
		return fmt.Sprintf("%d of %d slaves in sync", g.in, g.rules.Copies)
	case g.rules.Level == LevelQuorum:
	case g.inVain >= g.rules.DegradeAfter:
		return fmt.Sprintf("%d messages in a row had no copy in time", g.inVain)
	case now.Sub(g.enough) >= g.rules.DegradeAlone:
		return fmt.Sprintf("fewer than %d slaves were connected for %v", g.rules.Copies, g.rules.DegradeAlone)
	}
	return ""
}

// close ends the time of fewer copies.
func (g *Group) close(now time.Time) {
	if n := len(g.intervals); n > 0 && g.intervals[n-1].Open() {
		g.intervals[n-1].To, g.intervals[n-1].Ended = g.end, now.UnixMilli()
		g.record = true
	}
	g.state, g.inVain, g.near, g.enough = armed, 0, time.Time{}, now
	g.acked = max(0, g.nth(g.rules.Copies))
}

// waiterHeap orders waiters by the position they wait for.
type waiterHeap []*Waiter //nolint:recvcheck // as container/heap wants it

// Len, Less, Swap, Push and Pop are those of heap.Interface.
func (h waiterHeap) Len() int           { return len(h) }
func (h waiterHeap) Less(i, j int) bool { return h[i].End < h[j].End }
func (h waiterHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is heap.Interface's.
func (h *waiterHeap) Push(x any) { *h = append(*h, x.(*Waiter)) }

// Pop is heap.Interface's.
func (h *waiterHeap) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return w
}
