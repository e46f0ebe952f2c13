package move

import (
	"fmt"
	"slices"
)

// Violation says in words what of the cluster contradicts a plan, "" when nothing does:
// somebody else changed a configuration of it (I7), a group's offset went back (I6), a
// queue became shorter (I2). Nothing is done by itself then; resuming accepts what is seen
// of offsets, and of nothing else.
func Violation(st *State, ob *Observation) string {
	for i := range st.Parts {
		p := &st.Parts[i]
		if cur := ob.config(p.Source, p.Topic); !oneOf(cur, p.sourceMay(st)) {
			return fmt.Sprintf("topic %s on %s is %s, the plan left it as %s", p.Topic, p.Source, cur, p.sourceMay(st)[0])
		}
		for j := range p.Targets {
			t := &p.Targets[j]
			if cur := ob.config(t.Broker, p.Topic); !oneOf(cur, p.targetMay(st, t)) {
				return fmt.Sprintf("topic %s on %s is %s, the plan left it as %s", p.Topic, t.Broker, cur, p.targetMay(st, t)[0])
			}
		}
		if why := p.offsetsWentBack(ob); why != "" {
			return why
		}
		if why := p.shrank(ob); why != "" {
			return why
		}
	}
	if st.BrokerSealed == st.BrokerWas {
		return ""
	}
	for _, b := range st.Sources() {
		if v, seen := ob.Brokers[b]; seen && !slices.Contains(st.permMay(), v.Perm) {
			return fmt.Sprintf("brokerPermission of %s is %d, the plan left it as %d", b, v.Perm, st.permMay()[0])
		}
	}
	return ""
}

func oneOf(cur *Topic, may []*Topic) bool {
	return slices.ContainsFunc(may, func(t *Topic) bool { return cur.Same(t) })
}

// sourceMay are the configurations of a source that a phase may meet: what the phase
// before left, and what the step under way makes of it, for a run that was killed in it.
func (p *Part) sourceMay(st *State) []*Topic {
	if st.Rollback || st.Phase.Back() {
		return []*Topic{p.reopened(), &p.Was, &p.Grown, &p.Sealed}
	}
	switch st.Phase {
	case Planned:
		return []*Topic{&p.Was}
	case Checked:
		return []*Topic{&p.Was, &p.Grown}
	case Created:
		return []*Topic{&p.Grown}
	case Visible:
		return []*Topic{&p.Grown, &p.Sealed}
	case Drained, Opened: // a late message gives the queues back
		return []*Topic{p.rests(), &p.Sealed}
	case Settled:
		return []*Topic{p.rests(), &p.Sealed, p.Final}
	case Removed, Done:
		if !st.Spec.Policy.Remove {
			return []*Topic{p.rests(), p.Final}
		}
		return []*Topic{p.Final}
	}
	return []*Topic{&p.Sealed}
}

// targetMay is sourceMay for a target.
func (p *Part) targetMay(st *State, t *Target) []*Topic {
	if st.Rollback || st.Phase.Back() {
		return []*Topic{t.closed(), t.Was, t.mid(), t.To}
	}
	switch {
	case st.Phase == Planned:
		return []*Topic{t.Was}
	case st.Phase == Checked:
		return []*Topic{t.Was, t.mid(), t.To}
	case st.Phase == Created && p.ReadFirst:
		return []*Topic{t.mid(), t.To}
	case !p.Ordered || Drained.Before(st.Phase):
		return []*Topic{t.To}
	case st.Phase == Drained:
		return []*Topic{t.mid(), t.To}
	case p.Opened:
		return []*Topic{t.To}
	}
	return []*Topic{t.mid()}
}

func (s *State) permMay() []int32 {
	switch {
	case s.Rollback || s.Phase.Back():
		return []int32{s.BrokerWas, s.BrokerSealed}
	case s.Phase.Before(Visible):
		return []int32{s.BrokerWas}
	case s.Phase == Visible:
		return []int32{s.BrokerWas, s.BrokerSealed}
	}
	return []int32{s.BrokerSealed}
}

// offsetsWentBack finds a group whose offset on the source is below what it was seen at.
func (p *Part) offsetsWentBack(ob *Observation) string {
	v, there := ob.Brokers[p.Source].Topics[p.Topic]
	if !there {
		return ""
	}
	for _, name := range p.Groups {
		g, seen := ob.Groups[p.Topic][name]
		if !seen || p.broadcasts(name, &g) {
			continue
		}
		for q, floor := range p.Floor[name] {
			if q >= len(v.Queues) {
				break // the plan took it away
			}
			if at := g.offset(p.Source, q); at < floor {
				return fmt.Sprintf("the offset of group %s in queue %d of topic %s on %s went back from %d to %d", name, q, p.Topic, p.Source, floor, at)
			}
		}
	}
	return ""
}

// shrank finds a queue that ends before where it was seen to end.
func (p *Part) shrank(ob *Observation) string {
	v, there := ob.Brokers[p.Source].Topics[p.Topic]
	if !there {
		return ""
	}
	for q, end := range p.Last {
		if q < len(v.Queues) && v.Queues[q].Max < end {
			return fmt.Sprintf("queue %d of topic %s on %s ended at %d and now ends at %d: messages were lost there", q, p.Topic, p.Source, end, v.Queues[q].Max)
		}
	}
	return ""
}

// Accept takes what is seen of offsets as the new floor: an operator resumes a plan that
// stopped because a group was reset.
func (s *State) Accept() {
	for i := range s.Parts {
		s.Parts[i].Floor = nil
	}
	s.Stopped, s.Paused = "", false
}
