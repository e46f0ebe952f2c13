package move

import (
	"fmt"
	"maps"
	"slices"

	"mqx/remoting"
)

// seal lets the source hand on what producers with an old route still send to it, where it can, to the queues in to.
func (p *Part) seal(ob *Observation, to []remoting.ForwardTo) {
	f := &remoting.Forward{From: p.From, To: to}
	if !ob.Brokers[p.Source].Forwards || f.Check() != nil || !p.seals() {
		return
	}
	p.Sealed.Attributes = maps.Clone(p.Sealed.Attributes)
	if p.Sealed.Attributes == nil {
		p.Sealed.Attributes = map[string]string{}
	}
	p.Sealed.Attributes[remoting.AttrForward] = f.String()
}

// Forwards reports whether the sealed source hands on what is sent to it.
func (p *Part) Forwards() bool { return p.Sealed.Attributes[remoting.AttrForward] != "" }

// forward is where a sealed topic hands on to; nil: nowhere, as far as it can be read.
func (t *Topic) forward() *remoting.Forward {
	if t == nil {
		return nil
	}
	f, err := remoting.ParseForward(t.Attributes[remoting.AttrForward])
	if err != nil {
		return nil // brokers take messages then
	}
	return f
}

// toTargets are the queues that the plan makes for the source's.
func (p *Part) toTargets() (out []remoting.ForwardTo) {
	for i := range p.Targets {
		out = append(out, remoting.ForwardTo{Broker: p.Targets[i].Broker, Queues: p.Targets[i].To.Write})
	}
	return out
}

// toOthers are the queues of the brokers that have the topic beside the sources.
func toOthers(ob *Observation, topic string, sources []string) (out []remoting.ForwardTo) {
	if len(ob.NameServers) == 0 {
		return nil
	}
	queues := ob.NameServers[0].Routes[topic].Queues
	for _, b := range slices.Sorted(maps.Keys(queues)) {
		if q := queues[b]; q.Perm&PermWrite != 0 && q.Write > 0 && !slices.Contains(sources, b) {
			out = append(out, remoting.ForwardTo{Broker: b, Queues: q.Write})
		}
	}
	return out
}

// unsealed is a configuration that hands nothing on: of a broker that was drained once and is written again.
func (t *Topic) unsealed() *Topic {
	if _, ok := t.Attributes[remoting.AttrForward]; !ok {
		return t
	}
	c := *t
	c.Attributes = maps.Clone(t.Attributes)
	delete(c.Attributes, remoting.AttrForward)
	if len(c.Attributes) == 0 {
		c.Attributes = nil
	}
	return &c
}

// redirect lets brokers that hand on to queues which are removed hand on to where those have gone: they were sealed by plans
// before this one. true: nothing is removed in this step.
func (d *Decision) redirect(ob *Observation) bool {
	for i := range d.Next.Parts {
		p := &d.Next.Parts[i]
		if p.Final != nil {
			continue
		}
		for _, b := range slices.Sorted(maps.Keys(ob.Others[p.Topic])) {
			was := ob.Others[p.Topic][b]
			if !was.forward().LeadsTo(p.Source) {
				continue
			}
			to := was.handingTo(p.Source, p.goneTo(ob, b))
			if to == nil {
				d.Waiting = append(d.Waiting, fmt.Sprintf("broker %s hands on to broker %s what is sent there to topic %s, and it is not known where else it may go: take the topic off %s", b, p.Source, p.Topic, b))
				continue
			}
			d.Commands = append(d.Commands, Command{Kind: SetTopic, Broker: b, Topic: p.Topic, Was: &was, To: to})
		}
	}
	return len(d.Commands)+len(d.Waiting) > 0
}

// goneTo are the queues that the source's have gone to, for a broker beside it.
func (p *Part) goneTo(ob *Observation, but string) []remoting.ForwardTo {
	if f := p.Sealed.forward(); f != nil {
		return f.To
	}
	if len(p.Targets) > 0 {
		return p.toTargets()
	}
	return toOthers(ob, p.Topic, []string{p.Source, but})
}

// handingTo is the configuration with queues in the place of a broker's; nil where there are none, or too many.
func (t *Topic) handingTo(broker string, to []remoting.ForwardTo) *Topic {
	old := t.forward()
	if old == nil || len(to) == 0 {
		return nil
	}
	f := &remoting.Forward{From: old.From}
	for _, slot := range old.To {
		if slot.Broker == broker {
			f.To = append(f.To, to...)
			continue
		}
		f.To = append(f.To, slot)
	}
	if f.Check() != nil {
		return nil
	}
	c := *t
	c.Attributes = maps.Clone(t.Attributes)
	c.Attributes[remoting.AttrForward] = f.String()
	return &c
}
