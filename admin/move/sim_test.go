package move

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// seeds is how many runs of each kind a test makes: MQX_MOVE_SEEDS, else so many that all
// of them together take well under a minute.
func seeds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("MQX_MOVE_SEEDS")
	if text == "" {
		return 80 / slowdown
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("MQX_MOVE_SEEDS: %v", err)
	}
	return n
}

// scenario is what a run goes through.
type scenario struct {
	kind    Kind
	ordered bool
	// broadcast: a group keeps its offsets itself and begins a queue that it has not seen at its
	// end. The source is kept then: the run ends at SETTLED.
	broadcast bool
	leave     bool  // what is held back stays on the source, which is kept until somebody finishes
	rollback  Phase // the phase at which somebody asks for the way back, "" for none
}

// The machine against a model of a cluster: Apache's rules for writes, clients that lag,
// name servers that disagree, groups that go away, brokers that restart; the tool is killed
// before and after its steps, twice owned, paused and rolled back. No acknowledged message
// is lost, none is skipped, the order of keys is kept.
func TestSimulation(t *testing.T) {
	t.Parallel()
	var all []scenario
	for _, kind := range []Kind{Migrate, Drain, Resize, Retire, Rebalance} {
		all = append(all, scenario{kind: kind}, scenario{kind: kind, leave: true})
	}
	all = append(all, scenario{kind: Migrate, ordered: true}, scenario{kind: Migrate, broadcast: true}, scenario{kind: Resize, broadcast: true})
	for _, p := range []Phase{Planned, Checked, Created, Visible, Sealed, Draining} {
		for _, kind := range []Kind{Migrate, Resize, Retire, Rebalance} {
			all = append(all, scenario{kind: kind, rollback: p})
		}
		all = append(all, scenario{kind: Migrate, ordered: true, rollback: p}, scenario{kind: Migrate, broadcast: true, rollback: p})
	}
	n := seeds(t)
	for _, s := range all {
		t.Run(fmt.Sprintf("%s ordered=%v broadcast=%v leave=%v back=%s", s.kind, s.ordered, s.broadcast, s.leave, s.rollback), func(t *testing.T) {
			t.Parallel()
			runs := n
			if s.rollback != "" || s.leave {
				runs = n / 4
			}
			ends := map[Phase]int{}
			for seed := range runs {
				ends[simulate(t, s, uint64(seed))]++
				if t.Failed() {
					return
				}
			}
			t.Logf("%d runs: %v", runs, ends)
			checkEnds(t, s, ends)
		})
	}
}

// checkEnds: the runs come to where they should, so that nothing passes by doing nothing.
func checkEnds(t *testing.T, s scenario, ends map[Phase]int) {
	t.Helper()
	want := Done
	if s.broadcast {
		want = Settled
	}
	if s.rollback != "" && !(s.ordered && Visible.Before(s.rollback)) {
		want = RolledBack
	}
	if ends[want] == 0 {
		t.Errorf("no run came to %s: %v", want, ends)
	}
	for p := range ends {
		if p != Done && p != RolledBack && !(s.broadcast && p == Settled) {
			t.Errorf("a run ended at %s", p)
		}
	}
}

func newWorld(s scenario, seed uint64) *world {
	w := &world{
		rnd: rand.New(rand.NewPCG(seed, 7)), now: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), brokers: map[string]*simBroker{},
		seen: map[string]map[string]map[int]bool{}, sent: map[string]int{}, stored: map[simMessage]int{}, ordered: s.ordered, broadcasts: s.broadcast,
	}
	mqx := seed%3 > 0 // what is sent to a sealed queue is handed on; elsewhere ordered queues are shut: late producers keep their order, too
	w.late = seed%5 == 0
	for _, name := range []string{"a", "b", "d", "e"} {
		w.brokers[name] = &simBroker{name: name, perm: 6, mqx: mqx, topics: map[string]*simTopic{}, groups: map[string]bool{}, offsets: map[string][]int64{}, version: 1, retry: map[string][]simMessage{}, modes: map[string]bool{}}
	}
	on := []string{"a"}
	if s.kind == Drain || s.kind == Rebalance || seed%2 == 0 {
		on = append(on, "b")
	}
	for _, name := range on {
		w.brokers[name].topics[simTopicName] = &simTopic{config: Topic{Read: 3, Write: 3, Perm: 6, Order: s.ordered}, queues: make([][]simMessage, 3), base: make([]int64, 3)}
	}
	for i := range 1 + w.rnd.IntN(3) {
		w.servers = append(w.servers, &simNameServer{
			addr: fmt.Sprint("ns", i), routes: map[string]map[string]Topic{}, order: map[string]string{}, known: map[string]int{},
			due: map[string]time.Time{}, lag: time.Duration(w.rnd.IntN(3000)) * time.Millisecond,
		})
	}
	for i := range 4 {
		p := &simProducer{key: fmt.Sprint("key", i), server: w.rnd.IntN(len(w.servers)), poll: time.Duration(2000+w.rnd.IntN(3000)) * time.Millisecond}
		if w.late && i == 0 {
			p.idles = true
			p.poll = time.Duration(8+w.rnd.IntN(25)) * time.Second
		}
		w.senders = append(w.senders, p)
	}
	for i := range 1 + w.rnd.IntN(3) {
		g := &simGroup{name: fmt.Sprint("g", i), server: w.rnd.IntN(len(w.servers)), poll: time.Duration(2000+w.rnd.IntN(3000)) * time.Millisecond, own: map[simQueue]int{}}
		g.pop = !s.ordered && w.rnd.IntN(4) == 0
		for _, name := range on {
			w.brokers[name].groups[g.name] = true
			if g.pop {
				w.brokers[name].modes[g.name] = true
			}
			for q := range 3 {
				w.brokers[name].commit(g.name, q, 0)
			}
		}
		if w.rnd.IntN(3) == 0 {
			g.offUntil = w.now.Add(time.Duration(w.rnd.IntN(120)) * time.Second)
		}
		w.groups = append(w.groups, g)
	}
	if s.broadcast {
		w.groups[0].broadcastFrom(on)
	}
	return w
}

// broadcastFrom makes a group keep its offsets itself. It never goes away: what came into a
// queue before a client saw it the client does not get, wherever that is.
func (g *simGroup) broadcastFrom(brokers []string) {
	g.broadcast, g.pop, g.offUntil = true, false, time.Time{}
	for _, name := range brokers {
		for q := range 3 {
			g.own[simQueue{name, q}] = 0
		}
	}
}

// simInterval is the route interval of the model: clients ask at least that often.
const simInterval = 5 * time.Second

func (w *world) ask(s scenario) *Ask {
	a := &Ask{ID: "p", Kind: s.kind, Topic: simTopicName, Sources: []string{"a"}, Policy: Policy{RouteInterval: simInterval, Remove: !s.broadcast && !s.leave, LeavePending: s.leave}}
	if w.rnd.IntN(4) == 0 {
		a.Policy.Offline = OfflineCheckpoint
	}
	switch s.kind {
	case Rebalance: // two sources at once
		a.Cluster, a.Moves = "c", []Move{{simTopicName, "a", "d"}, {simTopicName, "b", "e"}}
	case Migrate, Retire:
		a.Targets = []string{"d"}
	case Resize:
		a.Queues = int32(1 + w.rnd.IntN(5))
	case Drain:
	}
	return a
}

// simulate is one run; it returns the phase it ended in.
func simulate(t *testing.T, s scenario, seed uint64) Phase {
	t.Helper()
	w := newWorld(s, seed)
	senders, groups := w.senders, w.groups
	w.senders, w.groups = nil, nil
	w.tick(4 * time.Second) // every name server knows every broker
	w.senders, w.groups = senders, groups
	w.tick(20 * time.Second)
	ctx := t.Context()
	all := &State{Parts: []Part{{Topic: simTopicName, Source: "a", Targets: []Target{{Broker: "b"}, {Broker: "d"}, {Broker: "e"}}}}}
	ob, err := (&simCluster{w: w, die: -1}).Observe(ctx, all)
	if err != nil {
		t.Fatal(err)
	}
	st, err := Build(w.ask(s), ob, w.now)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	sim := &simRun{t: t, w: w, s: s, seed: seed}
	if err := sim.start(st); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	end := sim.drive()
	w.settleDown()
	sim.judge(end)
	return end
}

// simRun drives the runs of the tool over one world.
type simRun struct {
	t      *testing.T
	w      *world
	s      scenario
	seed   uint64
	runner *Runner
	second *Runner // an operator who believes to own the plan too
	owners int
	asked  bool
	trace  []string
	calm   time.Time // nothing goes wrong until then
	before State     // after the step before of runner by
	by     *Runner
}

// constant: the ends of sealed queues stay what they were from DRAINING on, and a plan that finds them changed has gone back to
// SEALED (I2).
func (r *simRun) constant(st *State) {
	was, by := r.before, r.by
	r.before, r.by = st.Clone(), r.runner
	if was.ID == "" || by != r.runner || !Sealed.Before(was.Phase) || !Sealed.Before(st.Phase) {
		return
	}
	for i := range st.Parts {
		if a, b := was.Parts[i].SealedMax, st.Parts[i].SealedMax; !slices.Equal(a, b) {
			r.fail("%s with ends %v follows %s with ends %v (I2)", st.Phase, b, was.Phase, a)
		}
	}
}

func (r *simRun) newRunner() *Runner {
	r.owners++
	c := &simCluster{w: r.w, owner: fmt.Sprint("run", r.owners), die: -1}
	if r.w.rnd.IntN(3) > 0 {
		c.die, c.after = 1+r.w.rnd.IntN(60), r.w.rnd.IntN(2) == 0
	}
	return &Runner{Cluster: c, Journal: c, Plan: "p", Owner: c.owner, Now: func() time.Time { return r.w.now }}
}

func (r *simRun) start(st *State) error {
	r.runner = r.newRunner()
	begin := func() error { return r.runner.Begin(r.t.Context(), st) }
	err := untilKilled(begin)
	for tries := 0; err != nil; tries++ {
		if tries > 20 {
			return err
		}
		r.w.tick(LeaseTime)
		r.runner = r.newRunner()
		if err = untilKilled(func() error { return r.runner.Load(r.t.Context()) }); errors.Is(err, ErrNoPlan) {
			err = untilKilled(begin)
		}
	}
	return nil
}

// again starts the tool once more, by the one command that resumes.
func (r *simRun) again() *Runner {
	for range 1000 {
		n := r.newRunner()
		err := untilKilled(func() error { return n.Load(r.t.Context()) })
		if errors.Is(err, ErrNoPlan) { // the copy of the machine is left
			err = untilKilled(func() error { return n.Begin(r.t.Context(), r.w.copied) })
		}
		if err == nil {
			return n
		}
		r.w.tick(time.Second)
	}
	r.fail("the plan could not be loaded")
	return nil
}

func (r *simRun) fail(format string, args ...any) {
	r.t.Errorf("seed %d of %+v: %s", r.seed, r.s, fmt.Sprintf(format, args...))
	for _, line := range r.trace {
		r.t.Log(line)
	}
	r.trace = nil
}

// drive goes on until the plan has ended.
func (r *simRun) drive() Phase {
	deadline := r.w.now.Add(2 * time.Hour)
	for r.w.now.Before(deadline) {
		r.disturb()
		d, err := r.step(r.runner)
		if err != nil {
			r.trace = append(r.trace, r.w.now.Format("15:04:05.000 ")+r.runner.Owner+": "+err.Error())
			if owned := (*OwnedError)(nil); errors.As(err, &owned) && r.second != nil {
				r.runner, r.second = r.second, nil // it goes on with the plan
				continue
			}
			r.w.tick(time.Duration(r.w.rnd.IntN(70)) * time.Second)
			if r.runner = r.again(); r.runner == nil {
				return ""
			}
			continue
		}
		st := r.runner.State()
		r.note(&d)
		r.constant(st)
		if st.Phase.Ended() {
			return st.Phase
		}
		if r.s.rollback != "" && !r.asked && !st.Phase.Before(r.s.rollback) {
			r.asked = true
			r.request(RollBack)
		}
		if d.Halt && st.Stopped != "" {
			r.fail("the plan stopped: %s", st.Stopped)
			return st.Phase
		}
		if d.Halt && r.s.broadcast && st.Phase == Settled && !st.Paused {
			return Settled
		}
		switch {
		case d.Halt && st.Phase == Settled && !st.Paused: // what was left pending is waited for then
			r.request(Finish)
		case d.Halt:
			r.request(Resume)
		}
		if r.s.kind == Retire && st.Phase == Removed {
			r.w.brokers["a"].down = r.w.now.Add(24 * time.Hour)
		}
		r.w.tick(max(d.Wait, 10*time.Millisecond))
	}
	r.fail("the plan did not end: %s, waiting for %v", r.runner.State().Phase, r.trace[max(0, len(r.trace)-3):])
	return r.runner.State().Phase
}

// step lets a run take one step, or be killed in it.
func (r *simRun) step(who *Runner) (d Decision, err error) {
	err = untilKilled(func() (err error) {
		d, err = who.Step(r.t.Context())
		return err
	})
	return d, err
}

func (r *simRun) note(d *Decision) {
	line := fmt.Sprintf("%s %s: %s", r.w.now.Format("15:04:05.000"), r.runner.Owner, r.runner.State().Phase)
	for i := range d.Commands {
		line += "; " + d.Commands[i].String()
	}
	if d.Note != "" {
		line += "; " + d.Note
	}
	if len(d.Waiting) > 0 {
		line += "; waits for " + d.Waiting[0]
	}
	if n := len(r.trace); len(d.Commands) == 0 && d.Note == "" && n > 0 && samePrefix(r.trace[n-1], line) {
		r.trace[n-1] = line
		return
	}
	r.trace = append(r.trace, line)
	if len(r.trace) > 400 {
		r.trace = r.trace[100:]
	}
}

// samePrefix: two lines say the same but for time and figures.
func samePrefix(a, b string) bool {
	const from, to = len("15:04:05.000"), 60
	return a[from:min(len(a), to)] == b[from:min(len(b), to)]
}

func (r *simRun) request(what Request) {
	if !r.w.now.Before(r.w.hostUp) {
		r.w.log = append(r.w.log, Entry{Offset: r.w.first + int64(len(r.w.log)), Plan: "p", By: "other", At: r.w.now, Request: what})
	}
}

// disturb lets something go wrong now and then.
func (r *simRun) disturb() {
	w := r.w
	if w.now.Before(r.calm) {
		return
	}
	r.calm = w.now.Add(3 * time.Second)
	switch w.rnd.IntN(50) {
	case 0: // a broker restarts
		names := slices.Sorted(maps.Keys(w.brokers))
		if b := w.brokers[names[w.rnd.IntN(len(names))]]; b.up(w) {
			b.down = w.now.Add(time.Duration(1+w.rnd.IntN(20)) * time.Second)
		}
	case 1: // the broker of the journal restarts and forgets the lease
		w.hostUp = w.now.Add(time.Duration(w.rnd.IntN(10)) * time.Second)
		w.lease = simLease{}
	case 2: // a name server hears nothing for a while
		ns := w.servers[w.rnd.IntN(len(w.servers))]
		for name := range w.brokers {
			ns.due[name] = w.now.Add(time.Duration(w.rnd.IntN(15)) * time.Second)
		}
	case 3: // a group goes away
		if g := w.groups[w.rnd.IntN(len(w.groups))]; !g.broadcast {
			g.offUntil = w.now.Add(time.Duration(w.rnd.IntN(40)) * time.Second)
		}
	case 4: // somebody pauses, and another goes on
		r.request(Pause)
	case 6: // the journal is deleted
		if w.copied != nil {
			w.vanish(w.rnd.IntN(2) == 0)
		}
	case 5: // a second operator tries; while the first lives he must be refused
		r.secondOwner()
	}
	if r.second != nil {
		// It was let in because the lease was lost; it takes steps until it learns that it is not alone.
		if _, err := r.step(r.second); err != nil {
			r.second = nil
		}
	}
}

func (r *simRun) secondOwner() {
	n := r.newRunner()
	if untilKilled(func() error { return n.Load(r.t.Context()) }) != nil {
		return
	}
	held := r.w.lease.owner == r.runner.Owner && r.w.now.Before(r.w.lease.until) && !r.w.now.Before(r.w.hostUp)
	_, err := r.step(n)
	var owned *OwnedError
	switch {
	case errors.Is(err, errKilled):
	case held && !errors.As(err, &owned):
		r.fail("a second operator was not refused while the first holds the lease: %v", err)
	case err == nil:
		r.second = n
	}
}

// settleDown lets the clients finish.
func (w *world) settleDown() {
	for _, b := range w.brokers {
		b.down = time.Time{}
	}
	for _, g := range w.groups {
		g.offUntil = time.Time{}
	}
	w.tick(30 * time.Second)
	senders := w.senders
	w.senders = nil
	for range 100 {
		w.tick(20 * time.Second)
		if len(w.missing()) == 0 {
			break
		}
	}
	w.senders = senders
}

// missing are acknowledged messages that a group has not got.
func (w *world) missing() (out []string) {
	for _, g := range w.groups {
		for _, p := range w.senders {
			out = append(out, w.missed(g.name, p.key)...)
		}
		for key := range w.sent {
			out = append(out, w.missed(g.name, key)...)
		}
	}
	return out
}

func (w *world) missed(group, key string) (out []string) {
	for seq := range w.sent[key] {
		if !w.seen[group][key][seq] {
			out = append(out, fmt.Sprintf("group %s never got %d of %s", group, seq, key))
		}
	}
	return out
}

func (r *simRun) judge(end Phase) {
	for _, name := range slices.Sorted(maps.Keys(r.w.brokers)) {
		if b := r.w.brokers[name]; b.wentBack != "" {
			r.fail("%s", b.wentBack)
		}
	}
	for _, f := range r.w.faults {
		r.fail("%s", f)
	}
	if missing := r.w.missing(); len(missing) > 0 {
		r.fail("%d messages are lost, the first: %s", len(missing), missing[0])
	}
	sent := 0
	for _, n := range r.w.sent {
		sent += n
	}
	if sent < 100 {
		r.fail("only %d messages were sent", sent)
	}
	_, there := r.w.brokers["a"].topics[simTopicName]
	switch {
	case end == Done && (r.s.kind == Migrate || r.s.kind == Retire || r.s.kind == Rebalance) && there:
		r.fail("the topic is still on the source")
	case end == RolledBack && !r.w.brokers["a"].topics[simTopicName].config.Same(&Topic{Read: 3, Write: 3, Perm: 6, Order: r.s.ordered}):
		r.fail("after the way back the source is %s", &r.w.brokers["a"].topics[simTopicName].config)
	}
}
