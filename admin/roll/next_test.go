package roll

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var epoch = time.UnixMilli(1_000_000_000)

// sim is a cluster that does what the machine says: the model of the caller.
type sim struct {
	st       State
	now      time.Time
	perm     map[string]int
	boot     map[string]int64
	downTill map[string]time.Time
	sickTill map[string]time.Time
	writing  map[string]bool // a producer writes wherever it may
	puts     map[string]int64
	stuck    map[string]bool // never comes back
	log      []string
	asked    string // address of the broker whose restart this run has asked for
}

func newSim(brokers ...Broker) *sim {
	s := &sim{now: epoch, perm: map[string]int{}, boot: map[string]int64{}, downTill: map[string]time.Time{}, sickTill: map[string]time.Time{}, writing: map[string]bool{}, puts: map[string]int64{}, stuck: map[string]bool{}}
	for i := range brokers {
		brokers[i].Phase, brokers[i].Perm = Pending, 6
		s.perm[brokers[i].Addr], s.boot[brokers[i].Addr] = 6, 1
	}
	s.st = State{Status: Running, Brokers: brokers, Settings: Settings{RouteInterval: 30 * time.Second, Settle: 10 * time.Second, Gate: 2 * time.Minute}}
	return s
}

func (s *sim) observe(b *Broker) *Observation {
	up := func(addr string) bool { return !s.stuck[addr] && !s.now.Before(s.downTill[addr]) }
	o := &Observation{Perm: -1, Puts: -1, InSync: -1, Connected: -1, Err: "refused"}
	if !up(b.Addr) {
		return o
	}
	if s.writing[b.Addr] && s.perm[b.Addr]&permWrite != 0 {
		s.puts[b.Addr]++
	}
	o.Reachable, o.Active, o.BootMs, o.Perm, o.Puts, o.InSync = true, true, s.boot[b.Addr], s.perm[b.Addr], s.puts[b.Addr], 0
	if s.now.Before(s.sickTill[b.Addr]) {
		o.Behind = 1
	}
	for _, r := range s.st.Brokers {
		if r.Name == b.Name && r.Addr != b.Addr && up(r.Addr) {
			o.InSync++
		}
	}
	return o
}

// step does one decision and lets a second pass.
func (s *sim) step() bool {
	b := s.st.Current()
	var o *Observation
	if b != nil {
		o = s.observe(b)
	}
	d := Next(s.st, o, s.now)
	s.st = d.State
	s.now = s.now.Add(time.Second)
	switch d.Act {
	case SetPerm:
		s.perm[b.Addr] = d.Perm
		s.note("perm", b, d.Perm)
	case Restart:
		if s.asked != b.Addr {
			s.asked = b.Addr
			s.boot[b.Addr]++
			s.downTill[b.Addr], s.sickTill[b.Addr] = s.now.Add(5*time.Second), s.now.Add(8*time.Second)
			s.puts[b.Addr] = 0
			s.note("restart", b, 0)
		}
	case Stop:
		return false
	}
	return s.st.Status == Running
}

func (s *sim) note(what string, b *Broker, perm int) {
	line := what + " " + b.Addr
	if what == "perm" {
		line += map[int]string{4: " r", 6: " rw"}[perm]
	}
	s.log = append(s.log, line)
}

func (s *sim) run(t interface{ Fatalf(string, ...any) }) {
	for range 10_000 {
		if !s.step() {
			return
		}
	}
	t.Fatalf("it never ended: %+v", s.st)
}

func TestRollOrder(t *testing.T) {
	s := newSim(Broker{Name: "a", ID: 1, Addr: "a1", Replicas: 1}, Broker{Name: "a", Addr: "a0", Replicas: 1, Drain: true}, Broker{Name: "b", Addr: "b0", Drain: true})
	s.writing["a0"], s.writing["b0"] = true, true
	s.run(t)
	want := []string{"restart a1", "perm a0 r", "restart a0", "perm a0 rw", "perm b0 r", "restart b0", "perm b0 rw"}
	if s.st.Status != Finished || !slices.Equal(s.log, want) {
		t.Errorf("%s, %q, want %q", s.st.Status, s.log, want)
	}
	if took := s.now.Sub(epoch); took < 2*60*time.Second {
		t.Errorf("two drains took %s: clients ask for routes every 30 s", took)
	}
}

// A name that is not healthy is not touched.
func TestRollUnhealthyBefore(t *testing.T) {
	s := newSim(Broker{Name: "a", ID: 1, Addr: "a1", Replicas: 1}, Broker{Name: "a", Addr: "a0", Replicas: 1})
	s.stuck["a0"] = true
	s.run(t)
	if s.st.Status != Aborted || !strings.Contains(s.st.Why, "not all of its replicas are in sync") || len(s.log) > 0 {
		t.Errorf("%s (%s) %q", s.st.Status, s.st.Why, s.log)
	}
}

// A producer that takes no notice keeps the gate closed: the roll aborts and the
// permission is given back; no broker was restarted.
func TestRollStaleProducer(t *testing.T) {
	s := newSim(Broker{Name: "a", Addr: "a0", Drain: true}, Broker{Name: "b", Addr: "b0", Drain: true})
	for s.st.Status == Running {
		s.puts["a0"]++ // whatever the permission says
		if !s.step() {
			break
		}
	}
	if s.st.Status != Aborted || !strings.Contains(s.st.Why, "still written") || s.perm["a0"] != 6 || slices.Contains(s.log, "restart a0") || s.st.Brokers[0].Phase != Pending {
		t.Errorf("%s (%s), perm %d, %q", s.st.Status, s.st.Why, s.perm["a0"], s.log)
	}
}

// A broker that does not come back stops the roll before the next one is touched.
func TestRollDoesNotReturn(t *testing.T) {
	s := newSim(Broker{Name: "a", Addr: "a0"}, Broker{Name: "b", Addr: "b0"})
	for s.step() {
		if s.asked == "a0" {
			s.stuck["a0"] = true
		}
	}
	if s.st.Status != Aborted || slices.Contains(s.log, "restart b0") || s.st.Brokers[0].Phase != Restarting {
		t.Fatalf("%s (%s) %q", s.st.Status, s.st.Why, s.log)
	}
	// It comes back, and the roll is resumed.
	s.stuck["a0"] = false
	s.st.Status, s.st.Brokers[0].Since = Running, s.now
	s.run(t)
	if s.st.Status != Finished || !slices.Equal(s.log, []string{"restart a0", "restart b0"}) {
		t.Errorf("%s (%s) %q", s.st.Status, s.st.Why, s.log)
	}
}

// Whatever fails and however often the tool is killed: never two brokers down at once,
// never one of a name that is not healthy touched, and in the end every broker has its
// permission, unless the roll stopped.
func TestRollModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSim(
			Broker{Name: "a", ID: 1, Addr: "a1", Replicas: 1}, Broker{Name: "a", Addr: "a0", Replicas: 1, Drain: true},
			Broker{Name: "b", Addr: "b0", Drain: rapid.Bool().Draw(t, "drain")}, Broker{Name: "c", Addr: "c0"},
		)
		for range 5000 {
			before := slices.Clone(s.log)
			switch rapid.IntRange(0, 60).Draw(t, "event") {
			case 0: // the tool is killed and started again: it does not know what it asked for
				s.asked = ""
			case 1:
				addr := rapid.SampledFrom([]string{"a0", "a1", "b0", "c0"}).Draw(t, "flaps")
				s.downTill[addr] = s.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "s")) * time.Second)
			case 2:
				s.puts["a0"]++
			}
			cur := s.st.Current()
			if !s.step() {
				break
			}
			if len(s.log) > len(before) && strings.HasPrefix(s.log[len(s.log)-1], "restart") {
				if s.log[len(s.log)-1] != "restart "+cur.Addr {
					t.Fatalf("restarted %q while it was the turn of %s", s.log, cur.Addr)
				}
				for _, b := range s.st.Brokers {
					if b.Phase != Done && b.Phase != Pending && b.Addr != cur.Addr {
						t.Fatalf("%s is touched together with %s", b.Addr, cur.Addr)
					}
				}
			}
		}
		if s.st.Status == Finished {
			for addr, perm := range s.perm {
				if perm != 6 {
					t.Fatalf("%s is left with permission %d", addr, perm)
				}
			}
		}
	})
}
