package ha

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// groupTest drives a group.
type groupTest struct {
	t   *testing.T
	g   *Group
	now time.Time
	got []string
}

func newGroupTest(t *testing.T, r Rules, end int64) *groupTest {
	x := &groupTest{t: t, now: time.Unix(1000, 0)}
	x.g = NewGroup(r, 0, end, end, nil, x.now)
	return x
}

func (x *groupTest) wait(name string, end int64) {
	x.g.Wait(&Waiter{End: end, Deadline: x.now.Add(3 * time.Second), Done: func(ok bool) { x.got = append(x.got, fmt.Sprint(name, ok)) }}, x.now)
}

// want takes the decision and compares who is released.
func (x *groupTest) want(names ...string) Decision {
	x.t.Helper()
	d := x.g.Take()
	x.got = nil
	for _, w := range d.Done {
		w.Done(w.OK)
	}
	slices.Sort(x.got)
	if !slices.Equal(x.got, names) {
		x.t.Fatalf("released %v, want %v", x.got, names)
	}
	return d
}

func (x *groupTest) after(d time.Duration) {
	x.now = x.now.Add(d)
	x.g.Tick(x.now)
}

func (x *groupTest) report(conn, end int64) {
	x.t.Helper()
	if err := x.g.Report(conn, end, x.now); err != nil {
		x.t.Fatal(err)
	}
}

// A replica counts once, whatever connections it has; a waiter is released with the k-th replica and not before; a report
// that cannot be is refused.
func TestGroupCounts(t *testing.T) {
	x := newGroupTest(t, Rules{Level: LevelQuorum, Copies: 2, Hold: true}, 0)
	x.g.Appended(1000)
	x.g.Join(1, Peer{Host: "b"}, 0, x.now)
	x.g.Join(2, Peer{Host: "b"}, 0, x.now) // the same slave once more
	for _, end := range []int64{10, 20, 30} {
		x.wait(fmt.Sprint(end), end)
	}
	x.report(1, 30)
	x.want()
	x.report(2, 30)
	x.want()
	x.g.Join(3, Peer{Host: "c"}, 0, x.now)
	x.report(3, 20)
	if d := x.want("10true", "20true"); d.Open || d.Shown != 20 {
		t.Errorf("consumers see %+v", d)
	}
	if err := x.g.Report(3, 19, x.now); err == nil {
		t.Error("a report behind the last one was taken (r#1155)")
	}
	if err := x.g.Report(3, 1001, x.now); err == nil {
		t.Error("a report beyond the end of the master was taken (N078)")
	}
	x.want()
	x.g.Leave(3, x.now)
	if d := x.want(); !d.Next.Equal(x.now.Add(3 * time.Second)) {
		t.Errorf("the next deadline is %v", d.Next)
	}
	x.after(3 * time.Second)
	if d := x.want("30false"); !d.Next.IsZero() || d.Shown != 20 {
		t.Errorf("after the deadline %+v", d)
	}
}

// Slaves that tell who they are count by that: two on one host are two copies, and a connection of the same host that does not
// tell is none beside them. A slave that nobody waits for, and with Flushed one that cannot say what is durable, is none.
func TestGroupIdentity(t *testing.T) {
	for _, tt := range []struct {
		name    string
		flushed bool
		peers   []Peer
		want    int // copies
	}{
		{"two of one host", false, []Peer{{ID: "1", Host: "h"}, {ID: "2", Host: "h"}}, 2},
		{"one twice", false, []Peer{{ID: "1", Host: "h"}, {ID: "1", Host: "h"}}, 1},
		{"one, and one that does not tell", false, []Peer{{ID: "1", Host: "h"}, {Host: "h"}}, 1},
		{"the other order", false, []Peer{{Host: "h"}, {ID: "1", Host: "h"}}, 1},
		{"another host", false, []Peer{{ID: "1", Host: "h"}, {Host: "i"}}, 2},
		{"one that nobody waits for", false, []Peer{{ID: "1", Host: "h"}, {ID: "2", Host: "h", Async: true}}, 1},
		{"durable only", true, []Peer{{ID: "1", Host: "h", Flushed: true}, {Host: "i"}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for copies := 1; copies <= 3; copies++ {
				x := newGroupTest(t, Rules{Level: LevelQuorum, Copies: copies, Flushed: tt.flushed}, 0)
				x.g.Appended(10)
				for i, p := range tt.peers {
					x.g.Join(int64(i), p, 0, x.now)
					x.report(int64(i), 10)
				}
				x.wait("w", 10)
				if got := len(x.g.Take().Done) == 1; got != (tt.want >= copies) {
					t.Errorf("%d copies: released %v", copies, got)
				}
			}
		})
	}
}

// Semi-sync makes do without copies after three waits in vain, once that is recorded; it waits again when a slave has been
// near for three seconds. What it acknowledged meanwhile lies in the interval.
func TestGroupSemiSync(t *testing.T) {
	x := newGroupTest(t, Rules{Level: LevelSemiSync, Copies: 1, Hold: true, Batch: 100}, 0)
	x.g.SetRules(x.g.rules, 7, x.now)
	x.g.Join(1, Peer{ID: "1"}, 0, x.now)
	x.wait("a", 50)
	x.report(1, 50)
	x.want("atrue")
	x.wait("b", 1000)
	x.wait("c", 2000)
	x.after(3 * time.Second)
	x.want("bfalse", "cfalse")
	x.wait("d", 3000)
	x.after(3 * time.Second)
	d := x.want("dfalse")
	if len(d.Record) != 1 || !d.Record[0].Open() || d.Record[0].From != 50 || d.Record[0].Epoch != 7 || d.Open || d.Shown != 50 {
		t.Fatalf("after three waits in vain: %+v", d)
	}
	x.wait("e", 4000)
	if x.want(); x.g.Status().Degraded {
		t.Fatal("degraded before that was recorded")
	}
	x.g.Recorded(d, x.now)
	if d := x.want("etrue"); !d.Open || !x.g.Status().Degraded {
		t.Fatalf("degraded: %+v", d)
	}
	x.wait("f", 5000)
	x.want("ftrue")
	x.report(1, 4950) // near
	x.after(2 * time.Second)
	x.g.Appended(6000) // and not near any more
	x.after(2 * time.Second)
	if x.report(1, 6000); !x.g.Status().Degraded {
		t.Fatal("armed before it was near for three seconds")
	}
	x.after(3 * time.Second)
	d = x.want()
	if x.g.Status().Degraded || d.Open || len(d.Record) != 1 || d.Record[0].To != 6000 || d.Record[0].From != 50 {
		t.Fatalf("armed again: %+v", d)
	}
	x.wait("g", 7000)
	x.want()
	x.report(1, 7000)
	if d := x.want("gtrue"); d.Shown != 7000 {
		t.Errorf("shown %d", d.Shown)
	}
}

// Without a slave semi-sync waits for five seconds; a slave that comes before that is recorded takes it back. A restart goes
// on with an interval that is open, and does not begin before what was acknowledged with copies.
func TestGroupAlone(t *testing.T) {
	r := Rules{Level: LevelSemiSync, Copies: 1, Hold: true}
	x := newGroupTest(t, r, 500)
	x.g.base = 500
	x.after(4 * time.Second)
	if d := x.want(); d.Record != nil {
		t.Fatalf("after four seconds: %+v", d)
	}
	x.after(time.Second)
	d := x.want()
	if len(d.Record) != 1 || d.Record[0].From != 500 {
		t.Fatalf("after five seconds: %+v", d)
	}
	x.g.Join(1, Peer{Host: "h"}, 500, x.now)
	x.report(1, 500)
	x.g.Recorded(d, x.now) // of what is no more
	d = x.want()
	if len(d.Record) != 0 || d.Record == nil || x.g.Status().Degraded {
		t.Fatalf("a slave has come: %+v", d)
	}
	x.g.Leave(1, x.now)
	x.after(5 * time.Second)
	d = x.want()
	x.g.Recorded(d, x.now)
	if !x.g.Status().Degraded {
		t.Fatal("not degraded")
	}
	again := NewGroup(r, 900, 900, 900, d.Record, x.now)
	if s := again.Status(); !s.Degraded || s.Intervals[0].From != 500 || !s.Intervals[0].Open() {
		t.Fatalf("after a restart: %+v", s)
	}
	strict := NewGroup(Rules{Level: LevelQuorum, Copies: 1}, 900, 900, 900, d.Record, x.now)
	if s := strict.Status(); s.Degraded || s.Intervals[0].To != 900 {
		t.Fatalf("after a restart with another level: %+v", s)
	}
}

// A master that was promoted does not know what the other slaves have: a degraded interval begins with the log, until one says
// that it has all that was there before; then it begins with this master, also where it is remembered.
func TestGroupVagueInterval(t *testing.T) {
	x := newGroupTest(t, Rules{Level: LevelSemiSync, Copies: 1, Hold: true}, 1000)
	x.after(5 * time.Second)
	d := x.want()
	if len(d.Record) != 1 || d.Record[0].From != 0 {
		t.Fatalf("recorded %+v", d.Record)
	}
	x.g.Recorded(d, x.now)
	x.wait("1100", 1100)
	x.want("1100true")
	x.g.Join(1, Peer{ID: "1", Host: "b"}, 900, x.now)
	x.report(1, 999)
	if d := x.want(); d.Record != nil {
		t.Errorf("a slave without all that was there: recorded %+v", d.Record)
	}
	x.report(1, 1050)
	if d := x.want(); len(d.Record) != 1 || d.Record[0].From != 1000 || !d.Record[0].Open() {
		t.Errorf("recorded %+v", d.Record)
	}
	x.report(1, 1100)
	x.after(time.Second)
	x.after(4 * time.Second)
	if d := x.want(); len(d.Record) != 1 || d.Record[0].From != 1000 || d.Record[0].To != 1100 {
		t.Errorf("at the end recorded %+v", d.Record)
	}
}

// Under load a slave is never less than a batch behind: it is near when it lacks only what is on its way.
func TestGroupRearmsUnderLoad(t *testing.T) {
	x := newGroupTest(t, Rules{Level: LevelSemiSync, Copies: 1, Batch: 100}, 0)
	x.after(5 * time.Second)
	x.g.Recorded(x.want(), x.now)
	x.g.Join(1, Peer{ID: "1"}, 0, x.now)
	for end := int64(1000); end <= 400_000; end += 1000 {
		x.g.Appended(end)
		x.after(10 * time.Millisecond)
		x.report(1, end-1000)
	}
	if x.g.Status().Degraded {
		t.Errorf("not armed again: %+v", x.g.Replicas())
	}
}

// Sync waits for all that are in sync, at least Least of them: with fewer nothing is let in. One that does not keep up for
// MaxLag is in sync no longer.
func TestGroupSync(t *testing.T) {
	x := newGroupTest(t, Rules{Level: LevelSync, Least: 1, Hold: true}, 100)
	if err := x.g.notEnough(); err == nil {
		t.Fatal("a put was let in without a slave")
	}
	x.g.Join(1, Peer{ID: "1"}, 100, x.now)
	if err := x.g.notEnough(); err == nil {
		t.Fatal("a put was let in before the slave has compared its log") // its first report says where to begin
	}
	x.report(1, 100)
	if err := x.g.notEnough(); err != nil {
		t.Fatal(err)
	}
	x.g.Join(2, Peer{ID: "2"}, 100, x.now)
	x.report(2, 100)
	x.wait("a", 200)
	x.report(1, 200)
	x.want()
	x.report(2, 200)
	x.want("atrue")
	x.wait("b", 300)
	x.report(1, 300)
	x.after(3 * time.Second)
	x.want("bfalse")
	x.report(1, 300)
	x.after(13 * time.Second)
	x.wait("c", 300) // the second one is in sync no longer
	if x.want("ctrue"); x.g.Status().InSync != 1 {
		t.Fatalf("in sync: %+v", x.g.Replicas())
	}
	x.report(2, 300)
	if x.g.Status().InSync != 2 {
		t.Fatalf("in sync again: %+v", x.g.Replicas())
	}
	x.g.Leave(1, x.now)
	x.g.Leave(2, x.now)
	x.wait("d", 400)
	if x.want(); x.g.notEnough() == nil {
		t.Error("let in without a slave")
	}
	// With Least 0 the master alone is a set of replicas in sync.
	x.g.SetRules(Rules{Level: LevelSync}, 0, x.now)
	x.want("dtrue")
}

// enableAutoInSyncReplicas makes do with what is in sync, and records that; never with fewer than minInSyncReplicas.
func TestGroupAuto(t *testing.T) {
	x := newGroupTest(t, Rules{Level: LevelQuorum, Copies: 2, Least: 1, Auto: true}, 0)
	x.g.Join(1, Peer{ID: "1"}, 0, x.now)
	x.report(1, 0)
	d := x.want()
	if len(d.Record) != 1 {
		t.Fatalf("%+v", d)
	}
	x.wait("a", 10)
	x.report(1, 10)
	x.want()
	x.g.Recorded(d, x.now)
	x.want("atrue")
	x.wait("b", 20)
	x.want()
	x.report(1, 20)
	x.want("btrue")
	x.g.Join(2, Peer{ID: "2"}, 20, x.now)
	x.report(2, 20)
	if d = x.want(); len(d.Record) != 1 || d.Record[0].Open() {
		t.Fatalf("two in sync: %+v", d.Record)
	}
	x.wait("c", 30)
	x.report(1, 30)
	x.want()
	x.report(2, 30)
	x.want("ctrue")
}

// N086 (r#323): what a slave has not told is no position; the age of its copy is not known before it has caught up once.
func TestGroupUnknown(t *testing.T) {
	x := newGroupTest(t, Rules{Level: LevelSync}, 1000)
	if n := len(x.g.Replicas()); n != 0 {
		t.Fatalf("%d replicas", n)
	}
	x.g.Join(1, Peer{Host: "h"}, 10, x.now)
	r := x.g.Replicas()
	if len(r) != 1 || r[0].End != 10 || !r[0].Caught.IsZero() || r[0].InSync {
		t.Fatalf("%+v", r)
	}
	if s := x.g.Status(); s.InSync != 0 || s.Acked != 1000 {
		t.Fatalf("%+v", s)
	}
}

// The safety of each level, against a model that knows what every replica has: nobody is told ok without the copies that
// the rules ask for, unless an interval that is durable covers it; nothing shown goes back; everybody is told once, in time.
func TestGroupModel(t *testing.T) {
	levels := []Rules{
		{Level: LevelQuorum, Copies: 1, Hold: true},
		{Level: LevelQuorum, Copies: 2},
		{Level: LevelQuorum, Copies: 2, Least: 1, Auto: true, Hold: true},
		{Level: LevelSemiSync, Copies: 1, Hold: true, Batch: 60},
		{Level: LevelSync, Least: 1, Hold: true},
	}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := &groupModel{t: t, seed: seed, rules: levels[seed%uint64(len(levels))], now: time.Unix(100, 0), conns: map[int64]*modelConn{}}
		m.g = NewGroup(m.rules, 0, 0, 0, nil, m.now)
		for range 400 {
			m.step(r)
		}
		m.g.Close()
		m.take(r)
		for _, w := range m.all {
			if w.times != 1 {
				t.Fatalf("seed %d: a waiter for %d was told %d times", seed, w.w.End, w.times)
			}
		}
	}
}

type modelConn struct {
	id  string
	end int64
}

type modelWaiter struct {
	w     *Waiter
	times int
}

type groupModel struct {
	t       *testing.T
	seed    uint64
	rules   Rules
	g       *Group
	now     time.Time
	end     int64
	conns   map[int64]*modelConn
	has     map[string]int64 // the furthest that a replica has told
	all     []*modelWaiter
	shown   int64
	durable []Interval
	waiting []Decision // to be recorded
	settled time.Time  // the last time that the group was told for sure
}

func (m *groupModel) step(r *rand.Rand) {
	m.now = m.now.Add(time.Duration(r.IntN(400)) * time.Millisecond)
	switch r.IntN(8) {
	case 0:
		c := r.Int64N(6)
		if m.conns[c] == nil {
			m.conns[c] = &modelConn{string(rune('a' + r.IntN(3))), r.Int64N(m.end + 1)}
			m.tell(m.conns[c])
			m.g.Join(c, Peer{ID: m.conns[c].id, Host: "h"}, m.conns[c].end, m.now)
		}
	case 1:
		c := r.Int64N(12)
		delete(m.conns, c)
		m.g.Leave(c, m.now)
	case 2, 3:
		m.end += 1 + r.Int64N(50)
		x := &modelWaiter{w: &Waiter{End: m.end, Deadline: m.now.Add(3 * time.Second)}}
		x.w.Done = func(bool) { x.times++ }
		m.all = append(m.all, x)
		m.g.Wait(x.w, m.now)
	case 4:
		m.g.Tick(m.now)
		m.settled = m.now
	default:
		for c := range int64(6) {
			x := m.conns[c]
			if x == nil || r.IntN(3) == 0 {
				continue
			}
			if end := x.end + r.Int64N(80); end <= m.end {
				x.end = end
				m.tell(x)
				if err := m.g.Report(c, end, m.now); err != nil {
					m.t.Fatal(err)
				}
			}
		}
	}
	m.take(r)
}

func (m *groupModel) tell(c *modelConn) {
	if m.has == nil {
		m.has = map[string]int64{}
	}
	m.has[c.id] = max(m.has[c.id], c.end)
}

// copies is how many replicas have told that they have the log up to end.
func (m *groupModel) copies(end int64) (n int) {
	for _, e := range m.has {
		if e >= end {
			n++
		}
	}
	return n
}

func (m *groupModel) covered(end int64) bool {
	return slices.ContainsFunc(m.durable, func(i Interval) bool { return end > i.From && (i.Open() || end <= i.To) })
}

func (m *groupModel) take(r *rand.Rand) {
	d := m.g.Take()
	want := max(m.rules.Copies, m.rules.Least)
	for _, w := range d.Done {
		w.Done(w.OK)
		if w.OK && m.copies(w.End) < want && !(m.rules.degrades() && m.covered(w.End) && m.copies(w.End) >= m.rules.Least) {
			m.t.Fatalf("seed %d: %s: told that %d has its copies: %v, recorded %+v", m.seed, m.rules.Level, w.End, m.has, m.durable)
		}
	}
	shown := d.Shown
	if d.Open {
		shown = m.end
	}
	if shown < m.shown || shown > m.end {
		m.t.Fatalf("seed %d: shown %d after %d, the end is %d", m.seed, shown, m.shown, m.end)
	}
	if m.shown = shown; m.rules.Hold && shown > 0 && m.copies(shown) < m.rules.Copies && !m.covered(shown) {
		m.t.Fatalf("seed %d: %s: %d is shown without copies: %v", m.seed, m.rules.Level, shown, m.has)
	}
	for _, x := range m.all {
		if x.times == 0 && !x.w.Deadline.After(m.settled) {
			m.t.Fatalf("seed %d: a waiter for %d is late", m.seed, x.w.End)
		}
	}
	if d.Record != nil {
		m.waiting = append(m.waiting, d)
	}
	if len(m.waiting) > 0 && r.IntN(3) == 0 {
		d := m.waiting[0]
		m.waiting = m.waiting[1:]
		m.durable = d.Record
		m.g.Recorded(d, m.now)
		m.take(r)
	}
}

func TestStart(t *testing.T) {
	s := Span{Min: 1024, End: 5000, FileSize: 1024}
	for _, c := range []struct {
		report   int64
		lastFile bool
		want     int64
		refused  bool
	}{
		{0, false, 1024, false},
		{0, true, 4096, false},
		{2000, false, 2000, false},
		{5000, true, 5000, false},
		{5001, false, 0, true},
		{1023, false, 0, true},
	} {
		got, err := s.start(c.report, c.lastFile)
		if got != c.want || (err != nil) != c.refused {
			t.Errorf("start(%d, %v) = %d, %v", c.report, c.lastFile, got, err)
		}
	}
}
