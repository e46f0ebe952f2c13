package move

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// moment is a plan and what it sees when it is about to take a step.
type moment struct {
	st  State
	ob  *Observation
	now time.Time
}

// walk carries a plan out while nothing goes wrong and returns the last moment of each phase.
func walk(t *testing.T, s scenario, seed uint64) map[Phase]moment {
	t.Helper()
	w := newWorld(s, seed)
	w.tick(24 * time.Second)
	all := &State{Parts: []Part{{Topic: simTopicName, Source: "a", Targets: []Target{{Broker: "b"}, {Broker: "d"}, {Broker: "e"}}}}}
	c := &simCluster{w: w, owner: "walk", die: -1}
	ob, err := c.Observe(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	st, err := Build(w.ask(s), ob, w.now)
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{Cluster: c, Journal: &calmJournal{}, Plan: "p", Owner: "walk", Now: func() time.Time { return w.now }}
	if err := r.Begin(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	out := map[Phase]moment{}
	for end := w.now.Add(2 * time.Hour); w.now.Before(end); {
		was := r.State().Clone()
		d, err := r.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ob := r.Observation(); ob != nil && len(ob.Failed) == 0 {
			out[was.Phase] = moment{was, ob, w.now}
		}
		if r.State().Phase.Ended() {
			return out
		}
		if s.kind == Retire && r.State().Phase == Removed {
			w.brokers["a"].down = w.now.Add(24 * time.Hour)
		}
		w.tick(max(d.Wait, 10*time.Millisecond))
	}
	t.Fatalf("the plan did not end: %s", r.State().Phase)
	return nil
}

// calmJournal is a journal of one owner that nothing befalls.
type calmJournal struct{ log []Entry }

func (j *calmJournal) Renew(context.Context) (bool, error) { return true, nil }

func (j *calmJournal) Read(_ context.Context, from int64) ([]Entry, Span, error) {
	return slices.Clone(j.log[from:]), Span{Next: int64(len(j.log))}, nil
}

func (j *calmJournal) Append(_ context.Context, e *Entry) error {
	e.Offset = int64(len(j.log))
	j.log = append(j.log, *e)
	return nil
}

// with is what was seen with another view of a broker.
func (m *moment) with(broker string, change func(v *BrokerView, t *TopicView)) *Observation {
	ob := *m.ob
	ob.Brokers = maps.Clone(ob.Brokers)
	v := ob.Brokers[broker]
	v.Topics = maps.Clone(v.Topics)
	if v.Topics == nil {
		v.Topics = map[string]TopicView{}
	}
	t, had := v.Topics[simTopicName]
	t.Queues = slices.Clone(t.Queues)
	change(&v, &t)
	if had || !t.Config.Same(&Topic{}) {
		v.Topics[simTopicName] = t
	}
	ob.Brokers[broker] = v
	return &ob
}

// offsetsBack is what was seen with the offsets of all groups on the source at the beginning.
func (m *moment) offsetsBack() *Observation {
	ob := *m.ob
	ob.Groups = map[string]map[string]GroupView{simTopicName: maps.Clone(m.ob.Groups[simTopicName])}
	for name, g := range ob.Groups[simTopicName] {
		g.Offsets = maps.Clone(g.Offsets)
		g.Offsets["a"] = make([]int64, len(g.Offsets["a"]))
		ob.Groups[simTopicName][name] = g
	}
	return &ob
}

// In every phase of every kind of plan: what somebody else changed (I7), an offset that went back (I6) and a queue that became
// shorter (I2) stop it; without a replica in sync (I8), and while something does not answer, it changes nothing; a message behind the
// seal takes it back to SEALED and nothing else happens (I2).
func TestInvariantsInEveryPhase(t *testing.T) {
	t.Parallel()
	for _, s := range []scenario{{kind: Migrate}, {kind: Migrate, ordered: true}, {kind: Retire}, {kind: Resize}, {kind: Drain}} {
		for _, seed := range []uint64{1, 3} { // mqx's brokers, and Apache's
			t.Run(fmt.Sprintf("%s ordered=%v seed=%d", s.kind, s.ordered, seed), func(t *testing.T) {
				t.Parallel()
				moments := walk(t, s, seed)
				for _, p := range []Phase{Planned, Checked, Created, Visible, Sealed, Draining, Drained, Opened, Settled} {
					m, ok := moments[p]
					if !ok {
						t.Errorf("it was never seen at %s", p)
						continue
					}
					m.stops(t)
					m.waits(t)
					m.goesBack(t)
				}
			})
		}
	}
}

// stops: a violation ends all steps.
func (m *moment) stops(t *testing.T) {
	t.Helper()
	check := func(what string, ob *Observation) {
		t.Helper()
		d := Next(&m.st, ob, m.now)
		if d.Next.Stopped == "" || !d.Halt || !d.Record || len(d.Commands) > 0 || d.Next.Phase != m.st.Phase {
			t.Errorf("at %s, %s: it is at %s, stopped %q, and does %v", m.st.Phase, what, d.Next.Phase, d.Next.Stopped, d.Commands)
		}
	}
	p := &m.st.Parts[0]
	check("the source has another number of queues (I7)", m.with("a", func(_ *BrokerView, v *TopicView) { v.Config.Read += 7 }))
	for i := range p.Targets {
		check("a target has another number of queues (I7)", m.with(p.Targets[i].Broker, func(_ *BrokerView, v *TopicView) { v.Config.Write += 7 }))
	}
	if m.st.Spec.Kind == Retire {
		check("another brokerPermission (I7)", m.with("a", func(v *BrokerView, _ *TopicView) { v.Perm = 1 }))
	}
	for _, floor := range p.Floor {
		if slices.ContainsFunc(floor, func(at int64) bool { return at > 0 }) {
			check("offsets went back (I6)", m.offsetsBack())
			break
		}
	}
	if len(p.Last) > 0 && p.Last[0] > 0 {
		check("a queue is shorter (I2)", m.with("a", func(_ *BrokerView, v *TopicView) { v.Queues[0].Max = p.Last[0] - 1 }))
	}
	if p.Last == nil && p.seals() && Sealed.Before(m.st.Phase) {
		t.Errorf("at %s no ends of queues are known", m.st.Phase)
	}
}

// waits: nothing is changed over what is not as it must be for a step.
func (m *moment) waits(t *testing.T) {
	t.Helper()
	check := func(what string, st *State, ob *Observation) {
		t.Helper()
		d := Next(st, ob, m.now)
		if d.Next.Stopped != "" || len(d.Commands) > 0 || d.Next.Phase != st.Phase || len(d.Waiting) == 0 {
			t.Errorf("at %s, %s: it is at %s, stopped %q, waits for %q, and does %v", st.Phase, what, d.Next.Phase, d.Next.Stopped, d.Waiting, d.Commands)
		}
	}
	silent := *m.ob
	silent.Failed = []string{"broker a does not answer"}
	check("a broker is silent", &m.st, &silent)
	for _, b := range m.st.Brokers() {
		st := m.st.Clone()
		st.Replicated = []string{b}
		check("no replica is in sync (I8)", &st, m.with(b, func(v *BrokerView, _ *TopicView) { v.Replicas, v.InSync = 1, 0 }))
	}
}

// goesBack: what is written behind the seal takes the plan back to SEALED; the queues that were shut are there again, and nothing else is done.
func (m *moment) goesBack(t *testing.T) {
	t.Helper()
	p := &m.st.Parts[0]
	if !Sealed.Before(m.st.Phase) || !p.seals() {
		return
	}
	d := Next(&m.st, m.with("a", func(_ *BrokerView, v *TopicView) { v.Queues[len(v.Queues)-1].Max++ }), m.now)
	if d.Next.Phase != Sealed || d.Note == "" || d.Next.Parts[0].SealedMax != nil {
		t.Errorf("at %s, a late message: it is at %s, %v", m.st.Phase, d.Next.Phase, d.Waiting)
	}
	for _, c := range d.Commands {
		if c.Kind != SetTopic || c.Broker != "a" || !c.To.Same(&p.Sealed) {
			t.Errorf("at %s, a late message: it does %s", m.st.Phase, c.String())
		}
	}
}

// A broker that takes what is sent to a read-only queue has no queue left when the target of an ordered topic is opened: what a
// producer with an old route sends then is refused, and what it sent just before is read first.
func TestOrderedIsShut(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 3} {
		moments := walk(t, scenario{kind: Migrate, ordered: true}, seed)
		m := moments[Opened]
		p, now := &m.st.Parts[0], m.ob.config("a", simTopicName)
		if p.Forwards() == (p.Shut != nil) {
			t.Errorf("seed %d: it hands on: %v, and shuts %v", seed, p.Forwards(), p.Shut)
		}
		if want := p.rests(); !now.Same(want) || p.Shut != nil && (now.Read != 0 || now.Write != 0) {
			t.Errorf("seed %d: at OPENED the source is %s, not %s", seed, now, want)
		}
		if p.Shut == nil {
			continue
		}
		m = moments[Drained]
		if d := Next(&m.st, m.with("a", func(_ *BrokerView, v *TopicView) { v.Config = p.Sealed }), m.now); len(d.Commands) != 1 || !d.Commands[0].To.Same(p.Shut) || d.Next.Phase != Drained {
			t.Errorf("at DRAINED it does %v and is at %s", d.Commands, d.Next.Phase)
		}
		st := m.st.Clone()
		st.Agreed = time.Time{}
		if d := Next(&st, m.ob, m.now); len(d.Commands) > 0 || d.Next.Phase != Drained || len(d.Waiting) != 1 {
			t.Errorf("when it is shut it does %v and is at %s", d.Commands, d.Next.Phase)
		}
	}
}
