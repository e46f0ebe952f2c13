package move

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxDisk is the share of a target's disk above which nothing is moved to it.
const maxDisk = 0.85

// check looks at every precondition before anything is changed.
func (d *Decision) check(ob *Observation, now time.Time) Decision {
	st := &d.Next
	problems, notes := st.Problems(ob)
	d.Note = strings.Join(notes, "; ")
	if len(problems) > 0 {
		d.Halt, d.Refused, d.Waiting = true, true, problems
		return *d
	}
	st.Replicated = nil
	for _, b := range st.Brokers() {
		if ob.Brokers[b].InSync > 0 {
			st.Replicated = append(st.Replicated, b)
		}
	}
	return d.enter(Checked, now)
}

// Problems are the preconditions of a plan that do not hold, and what else somebody should know.
func (s *State) Problems(ob *Observation) (problems, notes []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if len(ob.NameServers) == 0 {
		say("no name server answers")
	}
	if s.Spec.Policy.LeavePending && s.Spec.Policy.Remove {
		say("messages that are left pending need the source: it cannot be removed then")
	}
	for _, b := range s.Brokers() {
		v, ok := ob.Brokers[b]
		switch {
		case !ok:
			say("broker %s is not there", b)
		case v.Replicas > 0 && v.InSync == 0:
			say("no replica of broker %s is in sync", b)
		case v.Perm&PermWrite == 0 && !slices.Contains(s.Sources(), b):
			say("broker %s takes no messages: its brokerPermission is %d", b, v.Perm)
		case v.Disk > maxDisk && !slices.Contains(s.Sources(), b):
			say("the disk of broker %s is full to %.0f %%, more than %.0f %%", b, 100*v.Disk, 100*maxDisk)
		}
	}
	if b := s.hidesPops(ob); b != "" && s.Spec.Policy.Remove {
		say("broker %s does not show what is popped and not acknowledged (popConsumerKVServiceEnable=true): what was popped there must be kept", b)
	}
	for i := range s.Parts {
		p := &s.Parts[i]
		p.problems(s, ob, say)
		if p.Ordered && p.seals() && !p.Forwards() && len(p.Targets) > 0 {
			notes = append(notes, fmt.Sprintf("topic %[1]s is ordered, and broker %[2]s cannot hand on what a producer with an old route sends: before the target is read the queues there are shut, "+
				"and such a producer is refused (illegal queueId) until it asks for the route again; stop its producers from SEALED to OPENED where no send may fail", p.Topic, p.Source))
		}
		if to := p.unsignedTo(ob); to != "" {
			notes = append(notes, fmt.Sprintf("broker %[1]s takes only what is signed, and broker %[2]s has no innerClientAuthenticationCredentials to sign what it hands on: what producers with an old route send to topic %[3]s, and what is delayed there, "+
				"is refused; set them on %[2]s first, or pause at VISIBLE until every producer has asked for the route", to, p.Source, p.Topic))
		}
		if modes := ob.Brokers[p.Source].Modes[p.Topic]; len(modes) > 0 {
			for _, name := range slices.Sorted(maps.Keys(modes)) {
				if modes[name].Name == ModePop {
					notes = append(notes, fmt.Sprintf("group %s pops topic %s: the move waits until what it popped is settled, which takes as long as it makes messages invisible", name, p.Topic))
				}
			}
		}
		for _, name := range p.Groups {
			g := ob.Groups[p.Topic][name]
			switch {
			case g.Broadcast && g.Online && p.Ordered && !slices.Contains(s.Spec.Policy.Ignore, name):
				say("group %s broadcasts topic %s, which is ordered: nobody knows what its clients have read, so they would get new messages before old ones, or skip some", name, p.Topic)
			case g.Broadcast && g.Online:
				notes = append(notes, fmt.Sprintf("group %s broadcasts: its clients keep their offsets, and only retention protects what they have not read on %s", name, p.Source))
				if s.Spec.Policy.Remove && p.Final == nil {
					say("group %s broadcasts topic %s: nobody knows what its clients have read on %s, which must be kept", name, p.Topic, p.Source)
				}
			case !g.Online && slices.Contains(s.Spec.Policy.Ignore, name):
				notes = append(notes, fmt.Sprintf("group %s is not waited for", name))
			case !g.Online && (s.Spec.Policy.Offline != OfflineCheckpoint || p.Ordered):
				notes = append(notes, fmt.Sprintf("group %s has nobody online: the move waits until it has read topic %s on %s", name, p.Topic, p.Source))
			}
		}
	}
	return problems, notes
}

// hidesPops is a source that loses a topic and does not show what of it is popped, "" when there is none.
func (s *State) hidesPops(ob *Observation) string {
	for i := range s.Parts {
		if p := &s.Parts[i]; p.Final == nil && ob.Brokers[p.Source].HidesPops {
			return p.Source
		}
	}
	return ""
}

func (p *Part) problems(s *State, ob *Observation, say func(string, ...any)) {
	v, ok := ob.Brokers[p.Source].Topics[p.Topic]
	if !ok {
		say("topic %s is not on %s", p.Topic, p.Source)
		return
	}
	if v.Static {
		say("topic %s on %s is static: remap it instead", p.Topic, p.Source)
	}
	for i := range p.Targets {
		t := &p.Targets[i]
		if ob.Brokers[t.Broker].Topics[p.Topic].Static {
			say("topic %s on %s is static", p.Topic, t.Broker)
		}
		if t.Broker == p.Source {
			say("broker %s is source and target", t.Broker)
		}
	}
	for i := range ob.NameServers {
		ns := &ob.NameServers[i]
		route := ns.Routes[p.Topic]
		got, ok := route.Queues[p.Source]
		if !ok || got.Read != p.Was.Read || got.Write != p.Was.Write || got.Perm != p.Was.Perm&ob.Brokers[p.Source].Perm {
			say("name server %s does not show topic %s on %s as the broker has it (%s)", ns.Addr, p.Topic, p.Source, &p.Was)
		}
		if p.leaves() && len(p.Targets) == 0 && !route.writableBut(s.Sources()) {
			say("at name server %s no other broker takes messages of topic %s: it can only be moved (queue migrate, broker retire --target)", ns.Addr, p.Topic)
		}
		if p.Ordered {
			p.orderProblems(ns, say)
		}
	}
}

// unsignedTo is a broker that would refuse what the source hands on, "" when there is none.
func (p *Part) unsignedTo(ob *Observation) string {
	f := p.Sealed.forward()
	if f == nil || ob.Brokers[p.Source].Signs {
		return ""
	}
	for _, to := range f.To {
		if to.Broker != p.Source && ob.Brokers[to.Broker].AsksSignature {
			return to.Broker
		}
	}
	return ""
}

// leaves reports whether producers can no longer write the topic on the source at all.
func (p *Part) leaves() bool { return p.From == 0 }

// writableBut reports whether a broker beside some takes messages.
func (r *Route) writableBut(sources []string) bool {
	for b, q := range r.Queues {
		if q.Perm&PermWrite != 0 && q.Write > 0 && !slices.Contains(sources, b) {
			return true
		}
	}
	return false
}

// orderProblems: the positions of queues are kept by the order configuration, which a name
// server must know and hand out.
func (p *Part) orderProblems(ns *NameServerView, say func(string, ...any)) {
	if p.OrderSame == nil {
		return // no target: nothing takes its place
	}
	if kv := ns.order(p.Topic); !sameText(kv, p.OrderWas) && !sameText(kv, p.OrderSame) {
		say("name server %s has the order configuration %s of topic %s, another one %s", ns.Addr, text(kv), p.Topic, text(p.OrderWas))
	}
	if !ns.HandsOutOrder {
		say("name server %s does not hand out order configurations (orderMessageEnable=false): the keys of topic %s would move", ns.Addr, p.Topic)
	}
}

// orderText is the order configuration that means what a route means without one: brokers
// in the order of their names, as clients sort them.
func (r *Route) orderText() string {
	var names []string
	for b, q := range r.Queues {
		if q.Perm&PermWrite != 0 {
			names = append(names, b)
		}
	}
	slices.Sort(names)
	for i, b := range names {
		names[i] = b + ":" + strconv.Itoa(int(r.Queues[b].Write))
	}
	return strings.Join(names, ";")
}

// swapOrder puts one broker in the place of another, which must have n queues there.
func swapOrder(conf, source, target string, n int32) (string, error) {
	parts := strings.Split(conf, ";")
	found := false
	for i, part := range parts {
		broker, count, _ := strings.Cut(part, ":")
		switch {
		case broker == target:
			return "", fmt.Errorf("broker %s is in the order configuration already: %s", target, conf)
		case broker == source && count != strconv.Itoa(int(n)):
			return "", fmt.Errorf("the order configuration gives broker %s %s queues, the broker has %d", source, count, n)
		case broker == source:
			parts[i], found = target+":"+count, true
		}
	}
	if !found {
		return "", fmt.Errorf("broker %s is not in the order configuration %s", source, conf)
	}
	return strings.Join(parts, ";"), nil
}
