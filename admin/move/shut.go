package move

// A broker that does not know remoting.AttrForward takes what is sent to a queue whatever the permission of the topic is; it refuses
// what is sent to a queue that the topic does not have. So an ordered source loses all its queues, in the configuration and not
// in the store, after every group has read them and before a target is read: a producer that still has an old route is refused
// until it has asked for the route again, and no message of a key can come into the old queue behind one in the new.

// willShut notes that the queues of an ordered source are shut whose broker hands nothing on.
func (p *Part) willShut() {
	if !p.Ordered || p.Forwards() || !p.seals() || len(p.Targets) == 0 {
		return
	}
	shut := p.Sealed
	shut.Read, shut.Write = 0, 0
	p.Shut = &shut
}

// rests is what a source is from OPENED on.
func (p *Part) rests() *Topic {
	if p.Shut != nil {
		return p.Shut
	}
	return &p.Sealed
}

// shut takes the queues from ordered sources that hand nothing on; true: the plan has to look again before it goes on.
func (d *Decision) shut(ob *Observation) bool {
	for i := range d.Next.Parts {
		p := &d.Next.Parts[i]
		if p.Shut == nil || ob.config(p.Source, p.Topic).Same(p.Shut) {
			continue
		}
		d.Commands = append(d.Commands, Command{Kind: SetTopic, Broker: p.Source, Topic: p.Topic, Was: &p.Sealed, To: p.Shut, Max: p.SealedMax})
	}
	return len(d.Commands) > 0
}

// unshut gives sources their queues back: something was written before they were taken.
func (s *State) unshut(ob *Observation) (out []Command) {
	for i := range s.Parts {
		p := &s.Parts[i]
		if p.Shut != nil && ob.config(p.Source, p.Topic).Same(p.Shut) {
			out = append(out, Command{Kind: SetTopic, Broker: p.Source, Topic: p.Topic, Was: p.Shut, To: &p.Sealed})
		}
	}
	return out
}

// shuts reports whether the plan takes the queues of a source away before it opens a target.
func (s *State) shuts() bool {
	for i := range s.Parts {
		if s.Parts[i].Shut != nil {
			return true
		}
	}
	return false
}

// Hidden is how many queues of a topic on a broker the plan has shut: those that the broker itself does not tell of. 0: none.
func (s *State) Hidden(broker, topic string) int32 {
	for i := range s.Parts {
		if p := &s.Parts[i]; p.Source == broker && p.Topic == topic && p.Shut != nil {
			return max(p.Sealed.Read, p.Sealed.Write)
		}
	}
	return 0
}
