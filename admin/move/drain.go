package move

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"mqx/internal/sorted"
	"mqx/internal/words"
)

// afterSeal drives the phases from SEALED on. A late append to a sealed queue takes the
// plan back to SEALED, whatever phase it had come to (I2).
func (d *Decision) afterSeal(ob *Observation, now time.Time) Decision {
	st := &d.Next
	if st.Phase != Removed {
		if late := st.noteEnds(ob, now); late != "" && st.Phase != Sealed {
			for i := range st.Parts {
				st.Parts[i].SealedMax = nil
			}
			d.Note, d.Commands, st.LogEnds = late, st.unshut(ob), nil
			return d.enter(Sealed, now)
		}
	}
	switch st.Phase {
	case Sealed:
		return d.quiet(ob, now)
	case Draining:
		if d.gated(st.Gates(ob, false)) {
			return *d
		}
		return d.enter(Drained, now)
	case Drained:
		return d.open(ob, now)
	case Opened:
		return d.letGo(ob, now)
	case Settled:
		return d.remove(ob, now)
	}
	return d.clean(ob, now)
}

// noteEnds notes the ends of the sealed queues and says where one moved.
func (s *State) noteEnds(ob *Observation, now time.Time) (late string) {
	for i := range s.Parts {
		p := &s.Parts[i]
		if !p.seals() {
			continue
		}
		queues := ob.Brokers[p.Source].Topics[p.Topic].Queues
		if p.Last == nil {
			p.Last, p.FlatSince = make([]int64, len(queues)), now
			for q := range queues {
				p.Last[q] = queues[q].Max
			}
			continue
		}
		for q := range queues {
			if q >= len(p.Last) || p.Last[q] == queues[q].Max {
				continue
			}
			if q >= int(p.From) {
				late = fmt.Sprintf("queue %d of topic %s on %s was written after the seal: %d -> %d", q, p.Topic, p.Source, p.Last[q], queues[q].Max)
				p.FlatSince = now
			}
			p.Last[q] = queues[q].Max
		}
	}
	return late
}

// quiet waits until no name server offers the source to producers, clients have seen
// that, and nothing was written to it for as long.
func (d *Decision) quiet(ob *Observation, now time.Time) Decision {
	st := &d.Next
	differs := d.differs(ob, func(p *Part, ns *NameServerView) string {
		got, ok := ns.Routes[p.Topic].Queues[p.Source]
		mask := ob.Brokers[p.Source].Perm
		if !ok || got.Write != p.Sealed.Write || got.Perm != p.Sealed.Perm&mask {
			return fmt.Sprintf("name server %s does not show topic %s on %s as sealed", ns.Addr, p.Topic, p.Source)
		}
		if p.Ordered && !sameText(ns.Routes[p.Topic].Order, p.OrderTo) {
			return fmt.Sprintf("name server %s does not hand out the new order configuration of topic %s", ns.Addr, p.Topic)
		}
		return ""
	})
	if !d.agree(now, differs, st.seen()) {
		st.LogEnds = nil
		return *d
	}
	for i := range st.Parts {
		p := &st.Parts[i]
		if left := st.seen() - now.Sub(p.FlatSince); p.seals() && left > 0 {
			d.Waiting = append(d.Waiting, fmt.Sprintf("topic %s on %s to stay unwritten: %s more", p.Topic, p.Source, left.Round(time.Millisecond)))
		}
	}
	if len(d.Waiting) > 0 {
		st.LogEnds = nil
		return *d
	}
	d.Waiting = st.uncopied(ob)
	if len(d.Waiting) > 0 {
		return *d
	}
	st.LogEnds = nil
	for i := range st.Parts {
		st.Parts[i].SealedMax = slices.Clone(st.Parts[i].Last)
	}
	return d.enter(Draining, now)
}

// uncopied is what replicas in sync still lack of the logs of sources: an end of a queue that another master would not have is none.
func (s *State) uncopied(ob *Observation) (out []string) {
	for _, b := range s.Sources() {
		v := ob.Brokers[b]
		if v.InSync == 0 {
			continue
		}
		if _, noted := s.LogEnds[b]; !noted {
			if s.LogEnds == nil {
				s.LogEnds = map[string]int64{}
			}
			s.LogEnds[b] = v.LogEnd
		}
		if left := s.LogEnds[b] - v.Copied; left > 0 {
			out = append(out, fmt.Sprintf("the replicas of broker %s to have the end of its log: %s more", b, words.Count(left, "byte")))
		}
	}
	return out
}

// Gate is something that a plan waits for.
type Gate struct {
	Group  string // "" where it concerns all
	Topic  string
	Broker string
	What   string // unread, retry, in flight, delayed, timer, half, dead letters, broadcast
	Count  int64
}

// String is the gate in words.
func (g Gate) String() string {
	s := fmt.Sprintf("%d %s of topic %s on %s", g.Count, g.What, g.Topic, g.Broker)
	if g.Group != "" {
		s = "group " + g.Group + ": " + s
	}
	return s
}

func (d *Decision) gated(gates []Gate) bool {
	for _, g := range gates {
		d.Waiting = append(d.Waiting, g.String())
	}
	return len(gates) > 0
}

// counts reports whether a group holds the plan up: removing asks more than draining. An ordered topic waits for
// groups that are offline too: their members would read what is new before what is old (I4).
func (s *State) counts(p *Part, name string, g *GroupView, removing bool) bool {
	policy := &s.Spec.Policy
	switch {
	case slices.Contains(policy.Ignore, name), p.broadcasts(name, g):
		return false
	case !g.Online && policy.Offline == OfflineCheckpoint && !removing && !p.Ordered:
		return false
	}
	return true
}

// Gates are what is left before every group has read the sealed queues of the sources;
// removing also counts what only the removal must wait for.
func (s *State) Gates(ob *Observation, removing bool) (out []Gate) {
	for i := range s.Parts {
		p := &s.Parts[i]
		if !p.seals() {
			continue
		}
		ends := p.SealedMax
		if ends == nil {
			ends = p.Last
		}
		out = append(out, s.unread(p, ob, p.Source, p.From, ends, removing)...)
		if s.Spec.Policy.LeavePending {
			continue
		}
		out = append(out, p.pendingOn(ob, p.Source)...)
	}
	return out
}

// pendingOn is what a broker holds back for queues that are given up.
func (p *Part) pendingOn(ob *Observation, broker string) (out []Gate) {
	pending := ob.Brokers[broker].Pending[p.Topic]
	for _, g := range []Gate{{What: "delayed", Count: pending.Delayed}, {What: "timer", Count: pending.Timer}, {What: "half", Count: pending.Half}} {
		if g.Count > 0 {
			g.Topic, g.Broker = p.Topic, broker
			out = append(out, g)
		}
	}
	return out
}

// unread are the groups that have not read queues of a broker up to ends.
func (s *State) unread(p *Part, ob *Observation, broker string, from int32, ends []int64, removing bool) (out []Gate) {
	queues := ob.Brokers[broker].Topics[p.Topic].Queues
	for _, name := range p.Groups {
		g := ob.Groups[p.Topic][name]
		if !s.counts(p, name, &g, removing) {
			if removing && !s.Phase.Back() && p.broadcasts(name, &g) && !slices.Contains(s.Spec.Policy.Ignore, name) && left(queues, from, ends, nil) > 0 {
				out = append(out, Gate{Group: name, Topic: p.Topic, Broker: broker, What: "kept by broadcast clients", Count: left(queues, from, ends, nil)})
			}
			continue
		}
		if n := left(queues, from, ends, g.Offsets[broker]); n > 0 {
			out = append(out, Gate{Group: name, Topic: p.Topic, Broker: broker, What: "unread", Count: n})
		}
		if n := g.Retry[broker]; n > 0 && !s.Spec.Policy.LeavePending {
			out = append(out, Gate{Group: name, Topic: p.Topic, Broker: broker, What: "retry", Count: n})
		}
		if n := g.InFlight[broker]; n > 0 {
			out = append(out, Gate{Group: name, Topic: p.Topic, Broker: broker, What: "in flight", Count: n})
		}
	}
	if n := ob.Brokers[broker].NotesUnread; n > 0 {
		out = append(out, Gate{Topic: p.Topic, Broker: broker, What: "notes of popped messages to be read", Count: n})
	}
	sorted.Stably(out, func(a, b Gate) int { return cmp.Compare(b.Count, a.Count) })
	return out
}

// left is what lies between offsets and ends; a queue without an offset counts whole.
func left(queues []Range, from int32, ends, offsets []int64) (n int64) {
	for q := int(from); q < min(len(queues), len(ends)); q++ {
		at := queues[q].Min
		if q < len(offsets) {
			at = max(at, offsets[q])
		}
		n += max(0, ends[q]-at)
	}
	return n
}

// open lets the targets of ordered topics be read: every group has read what was before (I4).
func (d *Decision) open(ob *Observation, now time.Time) Decision {
	st := &d.Next
	if d.gated(st.Gates(ob, false)) {
		return *d // read a moment ago and not any more: a group came, or an offset went back
	}
	if d.shut(ob) {
		st.Agreed, d.Record, d.Wait = time.Time{}, true, 0
		return *d
	}
	if st.shuts() && !d.agree(now, nil, st.interval()) { // what the broker was about to store is there by then
		d.Waiting = []string{"what was on its way into the queues that are shut now"}
		return *d
	}
	for i := range st.Parts {
		p := &st.Parts[i]
		if !p.Ordered {
			continue
		}
		p.Opened = true
		for j := range p.Targets {
			t := &p.Targets[j]
			if cur := ob.config(t.Broker, p.Topic); !cur.Same(t.To) {
				d.Commands = append(d.Commands, Command{Kind: SetTopic, Broker: t.Broker, Topic: p.Topic, Was: t.mid(), To: t.To})
			}
		}
	}
	return d.enter(Opened, now)
}

// letGo waits until consumers had the time to let the source go, with nothing left to read.
func (d *Decision) letGo(ob *Observation, now time.Time) Decision {
	st := &d.Next
	if d.gated(st.Gates(ob, false)) {
		st.Agreed = time.Time{}
		return *d
	}
	differs := d.differs(ob, func(p *Part, ns *NameServerView) string {
		for i := range p.Targets {
			if why := showsTarget(ob, p, ns, &p.Targets[i], p.Targets[i].To); why != "" {
				return why
			}
		}
		return ""
	})
	if !d.agree(now, differs, st.settle()) {
		return *d
	}
	return d.enter(Settled, now)
}

// remove takes the topic off the source, where that was asked for and nobody needs it (I3).
func (d *Decision) remove(ob *Observation, now time.Time) Decision {
	st := &d.Next
	if !st.removes() {
		return d.enter(Removed, now)
	}
	if !st.Spec.Policy.Remove {
		if st.shuts() {
			return d.halted("the source keeps its messages until they expire, and its queues are shut; finish removes it")
		}
		return d.halted("the source stays readable until its messages expire; finish removes it")
	}
	if b := st.hidesPops(ob); b != "" {
		return d.halted(fmt.Sprintf("the source stays readable until its messages expire: broker %s does not show what is popped and not acknowledged", b))
	}
	if d.gated(st.Gates(ob, true)) || d.gated(st.deadLetters(ob)) || d.redirect(ob) {
		return *d
	}
	for i := range st.Parts {
		p := &st.Parts[i]
		cur := ob.config(p.Source, p.Topic)
		switch {
		case cur.Same(p.Final):
		case p.Final == nil:
			d.Commands = append(d.Commands, Command{Kind: DeleteTopic, Broker: p.Source, Topic: p.Topic, Was: p.rests(), Max: p.SealedMax})
		default:
			d.Commands = append(d.Commands, Command{Kind: SetTopic, Broker: p.Source, Topic: p.Topic, Was: &p.Sealed, To: p.Final, Max: p.SealedMax})
		}
	}
	return d.enter(Removed, now)
}

// removes reports whether the plan takes something away at its end.
func (s *State) removes() bool {
	return slices.ContainsFunc(s.Parts, func(p Part) bool { return !p.Sealed.Same(p.Final) }) || s.Spec.Kind == Retire
}

// deadLetters are those that would go with a broker that is retired.
func (s *State) deadLetters(ob *Observation) (out []Gate) {
	if s.Spec.Kind != Retire || s.Spec.Policy.LeavePending {
		return nil
	}
	for _, b := range s.Sources() {
		for topic, n := range ob.Brokers[b].DeadLetters {
			if n > 0 {
				out = append(out, Gate{Topic: topic, Broker: b, What: "dead letters", Count: n})
			}
		}
	}
	sorted.By(out, func(a, b Gate) int { return cmp.Compare(a.Topic, b.Topic) })
	return out
}

// clean waits until no name server shows what was removed.
func (d *Decision) clean(ob *Observation, now time.Time) Decision {
	st := &d.Next
	for i := range st.Parts {
		p := &st.Parts[i]
		if p.Final != nil {
			continue
		}
		for j := range ob.NameServers {
			ns := &ob.NameServers[j]
			if _, ok := ns.Routes[p.Topic].Queues[p.Source]; ok {
				d.Waiting = append(d.Waiting, fmt.Sprintf("name server %s still shows topic %s on %s", ns.Addr, p.Topic, p.Source))
				if !slices.ContainsFunc(d.Commands, func(c Command) bool { return c.Topic == p.Topic && c.Broker == p.Source }) {
					d.Commands = append(d.Commands, Command{Kind: CleanRoute, Broker: p.Source, Topic: p.Topic})
				}
			}
		}
	}
	if len(d.Waiting) > 0 {
		return *d
	}
	if st.Spec.Kind == Retire {
		for i := range ob.NameServers {
			if ns := &ob.NameServers[i]; ns.Brokers[st.Spec.Name] {
				d.Waiting = append(d.Waiting, fmt.Sprintf("name server %s still lists broker %s: stop it now", ns.Addr, st.Spec.Name))
			}
		}
		if len(d.Waiting) > 0 {
			d.Todo = fmt.Sprintf("broker %s is empty: stop it now, the plan ends when no name server lists it", st.Spec.Name)
			return *d
		}
	}
	return d.enter(Done, now)
}
