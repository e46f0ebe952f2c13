package move

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// ErrTooLate says that a plan can no longer go back.
var ErrTooLate = errors.New("the targets are open: move the queues back with a plan of its own")

// ErrOrderedSealed says why an ordered plan cannot go back once it is sealed.
var ErrOrderedSealed = errors.New("producers of an ordered topic already write to the target: going back now would put new messages before them; let it go on, then move it back with a plan of its own")

// CanRollBack is nil while the plan can go back.
func (s *State) CanRollBack() error {
	switch {
	case s.Phase.Ended():
		return fmt.Errorf("the plan is %s", s.Phase)
	case s.Phase.Back() || s.Rollback:
		return nil
	case Draining.Before(s.Phase):
		return ErrTooLate
	case Visible.Before(s.Phase) && slices.ContainsFunc(s.Parts, func(p Part) bool { return p.Ordered }):
		return ErrOrderedSealed
	}
	return nil
}

// back drives the way back. What the targets have got is read before they go.
func (d *Decision) back(ob *Observation, now time.Time) Decision {
	if err := d.Next.CanRollBack(); err != nil {
		d.Next.Rollback, d.Record, d.Note = false, true, "cannot go back: "+err.Error()
		return *d
	}
	switch d.Next.Phase {
	case Planned:
		return d.enter(RolledBack, now)
	case Reopened:
		return d.quietBack(ob, now)
	case DrainingBack:
		return d.drainBack(ob, now)
	}
	return d.reopen(ob, now)
}

// closed is a target on the way back: read and not written, or as it was with the new queues read.
func (t *Target) closed() *Topic {
	if t.isNew() {
		return t.To.with(PermRead)
	}
	return t.mid()
}

// reopen gives the source back to producers and takes the targets from them.
func (d *Decision) reopen(ob *Observation, now time.Time) Decision {
	st := &d.Next
	if st.BrokerSealed != st.BrokerWas {
		for _, b := range st.Sources() {
			if ob.Brokers[b].Perm == st.BrokerSealed {
				d.Commands = append(d.Commands, Command{Kind: SetBrokerPerm, Broker: b, PermWas: st.BrokerSealed, PermTo: st.BrokerWas})
			}
		}
	}
	for i := range st.Parts {
		p := &st.Parts[i]
		want := p.reopened()
		if st.ordersSwapped(p, ob) {
			d.Commands = append(d.Commands, Command{Kind: SetOrder, Topic: p.Topic, OrderWas: p.OrderTo, OrderTo: p.OrderSame})
		}
		if cur := ob.config(p.Source, p.Topic); cur != nil && !cur.Same(want) && !cur.Same(&p.Was) {
			d.Commands = append(d.Commands, Command{Kind: SetTopic, Broker: p.Source, Topic: p.Topic, Was: cur, To: want})
		}
		for j := range p.Targets {
			t := &p.Targets[j]
			if cur := ob.config(t.Broker, p.Topic); cur != nil && !cur.Same(t.Was) && !cur.Same(t.closed()) {
				d.Commands = append(d.Commands, Command{Kind: SetTopic, Broker: t.Broker, Topic: p.Topic, Was: cur, To: t.closed()})
			}
		}
		p.Last, p.SealedMax, p.Back, p.FlatSince = nil, nil, nil, now
	}
	return d.enter(Reopened, now)
}

// ordersSwapped reports whether a name server has the order configuration of after the seal.
func (s *State) ordersSwapped(p *Part, ob *Observation) bool {
	return p.OrderTo != nil && !sameText(p.OrderSame, p.OrderTo) && slices.ContainsFunc(ob.NameServers, func(ns NameServerView) bool {
		return sameText(ns.order(p.Topic), p.OrderTo)
	})
}

// reopened is the source on the way back: as it was, with queues that were added still read.
func (p *Part) reopened() *Topic {
	if p.Grown.Read > p.Was.Read {
		return &p.Grown
	}
	return &p.Was
}

// addedOn are the queues that the plan made, by broker: the first of them.
func (p *Part) added() map[string]int32 {
	out := map[string]int32{}
	for i := range p.Targets {
		out[p.Targets[i].Broker] = p.Targets[i].firstNew()
	}
	if p.Grown.Read > p.Was.Read {
		out[p.Source] = p.Was.Read
	}
	return out
}

// noteBack notes the ends of the queues that the plan made and reports whether one moved.
func (s *State) noteBack(ob *Observation, now time.Time) (moved bool) {
	for i := range s.Parts {
		p := &s.Parts[i]
		for broker, from := range p.added() {
			queues := ob.Brokers[broker].Topics[p.Topic].Queues
			ends := make([]int64, len(queues))
			for q := range queues {
				ends[q] = queues[q].Max
			}
			was := p.Back[broker]
			if len(ends) > int(from) && (len(was) != len(ends) || !slices.Equal(was[from:], ends[from:])) {
				moved, p.FlatSince = true, now
			}
			p.Back = maps.Clone(p.Back)
			if p.Back == nil {
				p.Back = map[string][]int64{}
			}
			p.Back[broker] = ends
		}
	}
	return moved
}

// quietBack waits until no producer writes to the targets.
func (d *Decision) quietBack(ob *Observation, now time.Time) Decision {
	st := &d.Next
	st.noteBack(ob, now)
	differs := d.differs(ob, func(p *Part, ns *NameServerView) string {
		for i := range p.Targets {
			t := &p.Targets[i]
			got, ok := ns.Routes[p.Topic].Queues[t.Broker]
			if t.isNew() && ok && got.Perm&PermWrite != 0 || !t.isNew() && got.Write > t.Was.Write {
				return fmt.Sprintf("name server %s still offers topic %s on %s to producers", ns.Addr, p.Topic, t.Broker)
			}
		}
		if got := ns.Routes[p.Topic].Queues[p.Source]; got.Write != p.Was.Write || got.Perm != p.Was.Perm&ob.Brokers[p.Source].Perm {
			return fmt.Sprintf("name server %s does not show topic %s on %s as it was", ns.Addr, p.Topic, p.Source)
		}
		return ""
	})
	if !d.agree(now, differs, st.seen()) {
		return *d
	}
	for i := range st.Parts {
		if left := st.seen() - now.Sub(st.Parts[i].FlatSince); left > 0 {
			d.Waiting = append(d.Waiting, fmt.Sprintf("the targets of topic %s to stay unwritten: %s more", st.Parts[i].Topic, left.Round(time.Millisecond)))
		}
	}
	if len(d.Waiting) > 0 {
		return *d
	}
	return d.enter(DrainingBack, now)
}

// drainBack waits until the groups have read what the targets got, and takes away what is empty.
func (d *Decision) drainBack(ob *Observation, now time.Time) Decision {
	st := &d.Next
	if st.noteBack(ob, now) {
		d.Note = "a target was written while the plan goes back"
		return d.enter(Reopened, now)
	}
	var gates []Gate
	for i := range st.Parts {
		p := &st.Parts[i]
		for broker, from := range p.added() {
			// Where queues are taken away offline groups count, whatever the policy; a new target keeps what it got.
			gates = append(gates, st.unread(p, ob, broker, from, p.Back[broker], from > 0)...)
			if from > 0 { // its topic stays, with fewer queues
				gates = append(gates, p.pendingOn(ob, broker)...)
			}
		}
	}
	if d.gated(gates) {
		return *d
	}
	for i := range st.Parts {
		p := &st.Parts[i]
		d.Commands = append(d.Commands, p.backCommands(ob)...)
	}
	return d.enter(RolledBack, now)
}

// backCommands put everything back as it was. A new target that got messages stays
// readable until they expire: nothing is destroyed on the way back.
func (p *Part) backCommands(ob *Observation) (out []Command) {
	for i := range p.Targets {
		t := &p.Targets[i]
		cur := ob.config(t.Broker, p.Topic)
		switch {
		case cur == nil || cur.Same(t.Was):
		case !t.isNew():
			out = append(out, Command{Kind: SetTopic, Broker: t.Broker, Topic: p.Topic, Was: cur, To: t.Was})
		case ob.Brokers[t.Broker].Pending[p.Topic].Total() > 0: // it will get them
		case !slices.ContainsFunc(p.Back[t.Broker], func(n int64) bool { return n > 0 }):
			out = append(out, Command{Kind: DeleteTopic, Broker: t.Broker, Topic: p.Topic, Was: cur, Max: p.Back[t.Broker]},
				Command{Kind: CleanRoute, Broker: t.Broker, Topic: p.Topic})
		}
	}
	if cur := ob.config(p.Source, p.Topic); cur != nil && !cur.Same(&p.Was) {
		out = append(out, Command{Kind: SetTopic, Broker: p.Source, Topic: p.Topic, Was: cur, To: &p.Was})
	}
	if p.Ordered && !sameText(p.OrderWas, p.OrderSame) {
		out = append(out, Command{Kind: SetOrder, Topic: p.Topic, OrderWas: p.OrderSame, OrderTo: p.OrderWas})
	}
	return out
}
