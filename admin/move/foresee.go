package move

import (
	"maps"
	"slices"
	"time"
)

// Foresee lists the commands of a plan in their order as they would be if nothing else
// happened: for people who want to see them before. It asks nothing.
func Foresee(st *State, ob *Observation) (out []Command) {
	s := st.Clone()
	s.Phase = Checked
	seen := *ob
	seen.Brokers = maps.Clone(ob.Brokers)
	now := time.Time{}.Add(time.Hour)
	for i := range s.Parts {
		p := &s.Parts[i]
		if p.Ordered && p.OrderSame != nil && !sameText(p.OrderWas, p.OrderSame) {
			out = append(out, Command{Kind: SetOrder, Topic: p.Topic, OrderWas: p.OrderWas, OrderTo: p.OrderSame})
		}
		out = append(out, p.createCommands(&seen)...)
		if p.ReadFirst {
			out = append(out, p.openCommands(&seen)...)
		}
	}
	d := Decision{Next: s}
	out = append(out, d.seal(&seen, now).Commands...)
	for i := range s.Parts {
		p := &s.Parts[i]
		if p.Shut != nil {
			out = append(out, Command{Kind: SetTopic, Broker: p.Source, Topic: p.Topic, Was: &p.Sealed, To: p.Shut})
		}
		if p.Ordered {
			for _, t := range p.Targets {
				out = append(out, Command{Kind: SetTopic, Broker: t.Broker, Topic: p.Topic, Was: t.mid(), To: t.To})
			}
		}
	}
	if !s.Spec.Policy.Remove {
		return out
	}
	for i := range s.Parts {
		p := &s.Parts[i]
		switch {
		case p.Final == nil:
			out = append(out, Command{Kind: DeleteTopic, Broker: p.Source, Topic: p.Topic, Was: p.rests()},
				Command{Kind: CleanRoute, Broker: p.Source, Topic: p.Topic})
		case !p.Sealed.Same(p.Final):
			out = append(out, Command{Kind: SetTopic, Broker: p.Source, Topic: p.Topic, Was: &p.Sealed, To: p.Final})
		}
	}
	return slices.Clip(out)
}
