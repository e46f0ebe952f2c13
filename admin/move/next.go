package move

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"mqx/internal/words"
)

// Decision is what follows from a state and an observation.
type Decision struct {
	// Commands are done in their order; when all are, Next holds.
	Commands []Command
	Next     State
	// Record: Next belongs in the journal. Otherwise it differs only in what was seen.
	Record bool
	// Wait is the time until the cluster is looked at again.
	Wait time.Duration
	// Waiting says what the plan waits for, one line each.
	Waiting []string
	// Note is something a person should know, once.
	Note string
	// Todo is what a person has to do before the plan goes on.
	Todo string
	// Halt: nothing more happens by itself. Why it does not is in Waiting.
	Halt bool
	// Refused: a precondition does not hold, and nothing was changed.
	Refused bool
}

// Waits that follow from the route interval.
const (
	minPoll = 100 * time.Millisecond
	maxPoll = 2 * time.Second
)

func (s *State) interval() time.Duration {
	if s.Spec.Policy.RouteInterval <= 0 {
		return DefaultRouteInterval
	}
	return s.Spec.Policy.RouteInterval
}

// seen is how long clients take to see a change of a route: two of their polls.
func (s *State) seen() time.Duration { return 2 * s.interval() }

// settle is how long consumers take to let queues go: two polls of the route and two
// rebalances, which come every 20 s where routes are asked for every 30 s.
func (s *State) settle() time.Duration { return 2 * (s.interval() + s.interval()*2/3) }

func (s *State) poll() time.Duration { return min(max(s.interval()/10, minPoll), maxPoll) }

// Next decides the next step of a plan. It takes at most one phase at a time. now must not
// run backwards by much: time that seems to go back makes a wait longer, never shorter.
func Next(st *State, ob *Observation, now time.Time) Decision {
	d := Decision{Next: st.Clone(), Wait: st.poll()}
	n := &d.Next
	n.clampTimes(now)
	switch {
	case st.Phase.Ended():
		d.Halt = true
		return d
	case st.Stopped != "":
		return d.halted("stopped: " + st.Stopped)
	case st.Paused:
		return d.halted("paused")
	case len(ob.Failed) > 0:
		n.Agreed = time.Time{}
		d.Waiting = ob.Failed
		return d
	}
	if v := Violation(st, ob); v != "" {
		n.Stopped, d.Record = v, true
		return d.halted("stopped: " + v)
	}
	if why := st.replicasMissing(ob); why != "" {
		d.Waiting = []string{why}
		return d
	}
	n.absorb(ob)
	if st.Rollback || st.Phase.Back() {
		return d.back(ob, now)
	}
	switch st.Phase {
	case Planned:
		return d.check(ob, now)
	case Checked:
		return d.create(ob, now)
	case Created:
		return d.show(ob, now)
	case Visible:
		return d.seal(ob, now)
	}
	return d.afterSeal(ob, now)
}

func (d *Decision) halted(why string) Decision {
	d.Halt, d.Waiting = true, []string{why}
	return *d
}

// enter goes to a phase.
func (d *Decision) enter(p Phase, now time.Time) Decision {
	d.Next.Phase, d.Next.Since, d.Next.Agreed = p, now, time.Time{}
	d.Record, d.Wait = true, 0
	return *d
}

// clampTimes moves what lies in the future to now: clocks of two machines differ.
func (s *State) clampTimes(now time.Time) {
	for _, t := range []*time.Time{&s.Since, &s.Agreed} {
		if t.After(now) {
			*t = now
		}
	}
	for i := range s.Parts {
		if s.Parts[i].FlatSince.After(now) {
			s.Parts[i].FlatSince = now
		}
	}
}

// absorb notes groups and how far they are.
func (s *State) absorb(ob *Observation) {
	for i := range s.Parts {
		p := &s.Parts[i]
		for name, g := range ob.Groups[p.Topic] {
			if at, found := slices.BinarySearch(p.Groups, name); !found {
				p.Groups = slices.Insert(p.Groups, at, name)
			}
			if g.Broadcast && !slices.Contains(p.Broadcasts, name) {
				p.Broadcasts = append(p.Broadcasts, name)
			}
			offsets := g.Offsets[p.Source]
			if len(offsets) == 0 {
				continue
			}
			if p.Floor == nil {
				p.Floor = map[string][]int64{}
			}
			floor := p.Floor[name]
			for len(floor) < len(offsets) {
				floor = append(floor, -1)
			}
			for q, at := range offsets {
				floor[q] = max(floor[q], at)
			}
			p.Floor[name] = floor
		}
	}
}

// replicasMissing is why no step may be taken: a broker that had a replica in sync has none (I8).
func (s *State) replicasMissing(ob *Observation) string {
	for _, b := range s.Replicated {
		if v, ok := ob.Brokers[b]; ok && v.InSync == 0 {
			return "broker " + b + " has no replica in sync"
		}
	}
	return ""
}

// create makes groups, topic and offsets on the targets; for an ordered topic it first
// writes its order configuration out, so that a new broker does not move keys.
func (d *Decision) create(ob *Observation, now time.Time) Decision {
	st := &d.Next
	var orders []Command
	waits := false
	for i := range st.Parts {
		p := &st.Parts[i]
		if !p.Ordered || p.OrderSame == nil {
			continue
		}
		for _, ns := range ob.NameServers {
			if !sameText(ns.order(p.Topic), p.OrderSame) {
				orders = append(orders, Command{Kind: SetOrder, Topic: p.Topic, OrderWas: p.OrderWas, OrderTo: p.OrderSame})
				break
			}
		}
		waits = waits || !sameText(p.OrderWas, p.OrderSame)
	}
	if len(orders) > 0 {
		d.Commands, d.Record = orders, true
		return *d
	}
	if waits && !d.agree(now, d.differs(ob, func(p *Part, ns *NameServerView) string {
		if p.Ordered && !sameText(ns.Routes[p.Topic].Order, p.OrderSame) {
			return fmt.Sprintf("name server %s does not hand out the order configuration of topic %s", ns.Addr, p.Topic)
		}
		return ""
	}), st.seen()) {
		return *d
	}
	for i := range st.Parts {
		d.Commands = append(d.Commands, st.Parts[i].createCommands(ob)...)
	}
	return d.enter(Created, now)
}

func (ns *NameServerView) order(topic string) *string {
	if v, ok := ns.Order[topic]; ok {
		return &v
	}
	return nil
}

// config is a topic on a broker as it was seen, nil where it is not.
func (ob *Observation) config(broker, topic string) *Topic {
	v, ok := ob.Brokers[broker].Topics[topic]
	if !ok {
		return nil
	}
	return &v.Config
}

// mid is a target that has the queues of the plan to be read, or written where it is new,
// and not yet both: offsets are set before anybody reads.
func (t *Target) mid() *Topic {
	if t.isNew() {
		return t.hold()
	}
	m := *t.Was
	m.Read = max(m.Read, t.To.Read)
	return &m
}

// firstNew is the first queue that the plan makes on a target.
func (t *Target) firstNew() int32 {
	if t.isNew() {
		return 0
	}
	return min(t.Was.Read, t.To.Read)
}

// createCommands are those of one part, from whatever a run before has left done.
func (p *Part) createCommands(ob *Observation) (out []Command) {
	for i := range p.Targets {
		t := &p.Targets[i]
		for _, g := range p.Groups {
			if !ob.Brokers[t.Broker].Groups[g] && ob.Brokers[p.Source].Groups[g] {
				out = append(out, Command{Kind: CreateGroup, Broker: t.Broker, Source: p.Source, Group: g})
			}
		}
		cur, mid := ob.config(t.Broker, p.Topic), t.mid()
		if cur.Same(t.Was) && !cur.Same(mid) {
			out = append(out, Command{Kind: SetTopic, Broker: t.Broker, Topic: p.Topic, Was: t.Was, To: mid})
			cur = mid
		}
		out = append(out, p.modeCommands(ob, t.Broker)...)
		out = append(out, p.offsetCommands(ob, t.Broker, t.firstNew(), t.To.Read)...)
		if !p.Ordered && !p.ReadFirst && cur.Same(mid) && !mid.Same(t.To) {
			out = append(out, Command{Kind: SetTopic, Broker: t.Broker, Topic: p.Topic, Was: mid, To: t.To})
		}
	}
	if !p.Was.Same(&p.Grown) {
		if ob.config(p.Source, p.Topic).Same(&p.Was) {
			out = append(out, Command{Kind: SetTopic, Broker: p.Source, Topic: p.Topic, Was: &p.Was, To: &p.Grown})
		}
		out = append(out, p.offsetCommands(ob, p.Source, p.Was.Read, p.Grown.Read)...)
	}
	return out
}

// modeCommands tell a target which groups pop the topic, also those that have not read it yet: clients
// ask any broker of the topic. A broker takes that only when it has the topic and the group.
func (p *Part) modeCommands(ob *Observation, broker string) (out []Command) {
	modes := ob.Brokers[p.Source].Modes[p.Topic]
	for _, g := range slices.Sorted(maps.Keys(modes)) {
		if _, told := ob.Brokers[broker].Modes[p.Topic][g]; told || !ob.Brokers[p.Source].Groups[g] {
			continue
		}
		if !ob.Brokers[broker].Groups[g] && !slices.Contains(p.Groups, g) {
			out = append(out, Command{Kind: CreateGroup, Broker: broker, Source: p.Source, Group: g})
		}
		mode := modes[g]
		out = append(out, Command{Kind: SetMode, Broker: broker, Topic: p.Topic, Group: g, Mode: &mode})
	}
	return out
}

// broadcasts reports whether the clients of a group keep its offsets themselves.
func (p *Part) broadcasts(name string, g *GroupView) bool {
	return g.Broadcast || slices.Contains(p.Broadcasts, name)
}

// offsetCommands set the offsets of every group in new queues: a queue without one may be
// begun at its end by clients, which skips its first messages.
func (p *Part) offsetCommands(ob *Observation, broker string, from, to int32) (out []Command) {
	for _, name := range p.Groups {
		g := ob.Groups[p.Topic][name]
		if p.broadcasts(name, &g) {
			continue // its clients keep the offsets
		}
		for q := from; q < to; q++ {
			if g.offset(broker, int(q)) < 0 {
				out = append(out, Command{Kind: SetOffset, Broker: broker, Topic: p.Topic, Group: name, Queue: q})
			}
		}
	}
	return out
}

// differs asks every name server about every part and collects what is not yet as wanted.
func (d *Decision) differs(ob *Observation, wrong func(p *Part, ns *NameServerView) string) (out []string) {
	for i := range d.Next.Parts {
		for j := range ob.NameServers {
			if why := wrong(&d.Next.Parts[i], &ob.NameServers[j]); why != "" {
				out = append(out, why)
			}
		}
	}
	return out
}

// agree reports whether nothing has differed for a time, and says what is waited for.
func (d *Decision) agree(now time.Time, differs []string, hold time.Duration) bool {
	if len(differs) > 0 {
		d.Next.Agreed, d.Waiting = time.Time{}, differs
		return false
	}
	if d.Next.Agreed.IsZero() {
		d.Next.Agreed = now
	}
	if left := hold - now.Sub(d.Next.Agreed); left > 0 {
		d.Waiting = []string{fmt.Sprintf("clients to see the change: %s more", left.Round(time.Millisecond))}
		return false
	}
	return true
}

// showsTarget says what a name server does not yet show of a target.
func showsTarget(ob *Observation, p *Part, ns *NameServerView, t *Target, want *Topic) string {
	got, ok := ns.Routes[p.Topic].Queues[t.Broker]
	mask := ob.Brokers[t.Broker].Perm
	if !ok || got.Read != want.Read || got.Write != want.Write || got.Perm != want.Perm&mask {
		return fmt.Sprintf("name server %s does not show topic %s on %s as %s", ns.Addr, p.Topic, t.Broker, want)
	}
	return ""
}

// show waits until every name server shows the targets and clients have seen them. Queues
// that are read first are opened to producers when consumers have had the time to adopt them.
func (d *Decision) show(ob *Observation, now time.Time) Decision {
	var opens []Command
	differs := d.differs(ob, func(p *Part, ns *NameServerView) string {
		for i := range p.Targets {
			t := &p.Targets[i]
			want := t.To
			if p.Ordered {
				want = t.mid()
			} else if cur := ob.config(t.Broker, p.Topic); p.ReadFirst && !cur.Same(t.To) {
				want = t.mid()
			}
			if why := showsTarget(ob, p, ns, t, want); why != "" {
				return why
			}
		}
		if got := ns.Routes[p.Topic].Queues[p.Source]; !p.Was.Same(&p.Grown) && got.Read != p.Grown.Read {
			return fmt.Sprintf("name server %s does not show %s of topic %s on %s", ns.Addr, words.Count(p.Grown.Read, "queue"), p.Topic, p.Source)
		}
		return ""
	})
	hold := d.Next.seen()
	for i := range d.Next.Parts {
		p := &d.Next.Parts[i]
		if !p.ReadFirst {
			continue
		}
		opens = append(opens, p.openCommands(ob)...)
		if len(opens) > 0 || !p.Was.Same(&p.Grown) {
			hold = d.Next.settle()
		}
	}
	if !d.Next.addsQueues() {
		hold = 0
	}
	if !d.agree(now, differs, hold) {
		return *d
	}
	if len(opens) > 0 { // and then clients see that they may write
		d.Commands, d.Next.Agreed, d.Record, d.Wait = opens, time.Time{}, true, 0
		return *d
	}
	return d.enter(Visible, now)
}

// openCommands open targets that are read first to producers.
func (p *Part) openCommands(ob *Observation) (out []Command) {
	for i := range p.Targets {
		t := &p.Targets[i]
		if cur := ob.config(t.Broker, p.Topic); !cur.Same(t.To) {
			out = append(out, Command{Kind: SetTopic, Broker: t.Broker, Topic: p.Topic, Was: t.mid(), To: t.To})
		}
	}
	return out
}

// addsQueues reports whether clients have new queues to see.
func (s *State) addsQueues() bool {
	return slices.ContainsFunc(s.Parts, func(p Part) bool { return len(p.Targets) > 0 || !p.Was.Same(&p.Grown) })
}

// seals reports whether the part has queues that are sealed.
func (p *Part) seals() bool { return p.From < max(p.Sealed.Read, p.Was.Write) }

// seal takes the source out of the choice of producers: by the order configuration first
// where there is one, since producers then do not look at permissions.
func (d *Decision) seal(ob *Observation, now time.Time) Decision {
	st := &d.Next
	for i := range st.Parts {
		p := &st.Parts[i]
		if p.OrderTo != nil && !sameText(p.OrderSame, p.OrderTo) {
			d.Commands = append(d.Commands, Command{Kind: SetOrder, Topic: p.Topic, OrderWas: p.OrderSame, OrderTo: p.OrderTo})
		}
		if cur := ob.config(p.Source, p.Topic); !cur.Same(&p.Sealed) {
			d.Commands = append(d.Commands, Command{Kind: SetTopic, Broker: p.Source, Topic: p.Topic, Was: &p.Grown, To: &p.Sealed})
		}
		p.Last, p.FlatSince, p.SealedMax = nil, now, nil
	}
	if st.BrokerSealed != st.BrokerWas {
		for _, b := range st.Sources() {
			d.Commands = append(d.Commands, Command{Kind: SetBrokerPerm, Broker: b, PermWas: st.BrokerWas, PermTo: st.BrokerSealed})
		}
	}
	return d.enter(Sealed, now)
}
