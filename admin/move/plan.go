package move

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"mqx/remoting"
)

// Ask is a plan in the words of who asks for it.
type Ask struct {
	ID      string
	Kind    Kind
	Topic   string   // all but Retire and Rebalance
	Cluster string   // Rebalance
	Moves   []Move   // Rebalance
	Sources []string // one broker; Resize: those whose queues change
	Targets []string // brokers that get queues
	// Queues on each target or, for Resize, on each source; 0: as many as the source has, shared among targets.
	Queues int32
	// Ordered keeps order also for a topic that is not marked as ordered.
	Ordered bool
	Policy  Policy
}

// Move is one topic that a Rebalance takes from a broker to another.
type Move struct{ Topic, Source, Target string }

// Build makes a plan of what is asked for and what there is. It changes nothing.
func Build(a *Ask, ob *Observation, now time.Time) (*State, error) {
	st := &State{ID: a.ID, Phase: Planned, Since: now, Spec: Spec{Kind: a.Kind, Name: a.Topic, Policy: a.Policy}}
	st.Spec.Policy.Offline = cmp.Or(a.Policy.Offline, OfflineWait)
	moves := a.Moves
	switch a.Kind {
	case Rebalance:
		st.Spec.Name = a.Cluster
	case Retire:
		source := a.Sources[0]
		st.Spec.Name = source
		st.BrokerWas = ob.Brokers[source].Perm
		st.BrokerSealed = st.BrokerWas &^ PermWrite
		for _, topic := range slices.Sorted(maps.Keys(ob.Brokers[source].Topics)) {
			moves = append(moves, Move{Topic: topic, Source: source})
		}
	default:
		for _, source := range a.Sources {
			moves = append(moves, Move{Topic: a.Topic, Source: source})
		}
	}
	for _, m := range moves {
		one := *a
		if m.Target != "" {
			one.Targets = []string{m.Target}
		}
		p, err := buildPart(&one, m.Topic, m.Source, ob)
		if err != nil {
			return nil, err
		}
		st.Parts = append(st.Parts, *p)
	}
	if len(st.Parts) == 0 && a.Kind != Retire {
		return nil, errors.New("there is nothing to move")
	}
	for name := range ob.Groups {
		for i := range st.Parts {
			if p := &st.Parts[i]; p.Topic == name {
				p.Groups = slices.Sorted(maps.Keys(ob.Groups[name]))
				p.readFirst(ob)
			}
		}
	}
	return st, nil
}

// readFirst lets new queues be read before they are written, where a group broadcasts.
func (p *Part) readFirst(ob *Observation) {
	p.ReadFirst = !p.Ordered && slices.ContainsFunc(p.Groups, func(name string) bool { return ob.Groups[p.Topic][name].Broadcast })
	for i := range p.Targets {
		p.Targets[i].ReadFirst = p.ReadFirst
	}
}

func buildPart(a *Ask, topic, source string, ob *Observation) (*Part, error) {
	cur := ob.config(source, topic)
	if cur == nil {
		return nil, fmt.Errorf("topic %s is not on broker %s", topic, source)
	}
	p := &Part{Topic: topic, Source: source, Was: *cur, Grown: *cur, Sealed: *cur.with(cur.Perm &^ PermWrite)}
	p.Ordered = a.Ordered || cur.Order
	switch a.Kind {
	case Resize:
		return p, p.resize(a, ob)
	case Drain:
		p.seal(ob, toOthers(ob, topic, a.Sources))
		p.Final = &p.Sealed
		if err := p.remaps(a, "a queue less"); err != nil {
			return nil, err
		}
		p.reorder(ob, "")
		return p, nil
	case Retire:
		p.Sealed = *cur // the broker's permission seals it
		if routedElsewhere(ob, topic, source) {
			if err := p.remaps(a, "a broker less"); err != nil {
				return nil, err
			}
			p.reorder(ob, "")
			p.seal(ob, toOthers(ob, topic, []string{source}))
			return p, nil
		}
	}
	if len(a.Targets) == 0 {
		return nil, &NoTargetError{Topic: topic, Source: source}
	}
	return p, p.aim(a, ob)
}

// NoTargetError says that a plan must be told where a topic goes.
type NoTargetError struct{ Topic, Source string }

// Error names the topic.
func (e *NoTargetError) Error() string {
	return fmt.Sprintf("topic %s is on no other broker than %s that takes messages: it needs a target", e.Topic, e.Source)
}

func routedElsewhere(ob *Observation, topic, source string) bool {
	return len(ob.NameServers) > 0 && !slices.ContainsFunc(ob.NameServers, func(ns NameServerView) bool {
		r := ns.Routes[topic]
		return !r.writableBut([]string{source})
	})
}

// aim chooses what the targets get.
func (p *Part) aim(a *Ask, ob *Observation) error {
	queues := a.Queues
	if queues <= 0 {
		n := int32(len(a.Targets))
		queues = max(1, (p.Was.Write+n-1)/n)
	}
	for _, broker := range a.Targets {
		was := ob.config(broker, p.Topic)
		to := p.Was.unsealed().with(PermRead | PermWrite)
		to.Read, to.Write = queues, queues
		if was != nil {
			*to = *was.unsealed()
			to.Read, to.Write, to.Perm = max(was.Read, queues), max(was.Write, queues), was.Perm|PermRead|PermWrite
		}
		p.Targets = append(p.Targets, Target{Broker: broker, Was: was, To: to})
	}
	p.seal(ob, p.toTargets())
	if !p.Ordered {
		return nil
	}
	return p.aimOrdered(ob)
}

// aimOrdered finds the order configuration that puts the target in the source's place.
func (p *Part) aimOrdered(ob *Observation) error {
	if len(p.Targets) != 1 || !p.Targets[0].isNew() || p.Targets[0].To.Write != p.Was.Write {
		return fmt.Errorf("topic %s is ordered: its queues on %s go one for one to a single broker that does not have it yet, %d of them", p.Topic, p.Source, p.Was.Write)
	}
	if len(ob.NameServers) == 0 {
		return errors.New("no name server answers")
	}
	ns := &ob.NameServers[0]
	p.OrderWas = ns.order(p.Topic)
	same := ""
	if p.OrderWas != nil {
		same = *p.OrderWas
	} else {
		r := ns.Routes[p.Topic]
		same = r.orderText()
	}
	to, err := swapOrder(same, p.Source, p.Targets[0].Broker, p.Was.Write)
	if err != nil {
		return fmt.Errorf("cannot keep the order of topic %s: %w", p.Topic, err)
	}
	p.OrderSame, p.OrderTo = &same, &to
	p.willShut()
	return nil
}

// resize is another number of queues on the same broker.
func (p *Part) resize(a *Ask, ob *Observation) error {
	n := a.Queues
	if n < 1 {
		return errors.New("the number of queues must be at least 1")
	}
	if err := p.remaps(a, "another number of queues"); err != nil {
		return err
	}
	p.Sealed = p.Was
	if n >= p.Was.Write && n >= p.Was.Read {
		p.Grown.Read = n
		p.Sealed.Read, p.Sealed.Write = n, n
	} else {
		p.Grown.Read = max(p.Was.Read, p.Was.Write)
		p.Sealed.Read, p.Sealed.Write = p.Grown.Read, n
	}
	p.From = n
	final := p.Sealed
	p.seal(ob, []remoting.ForwardTo{{Broker: p.Source, Queues: n}})
	final.Read, final.Write = n, n
	p.Final = &final
	p.reorder(ob, p.Source+":"+strconv.Itoa(int(n)))
	return nil
}

// remaps refuses what sends the keys of an ordered topic to other queues, unless that was
// asked for; nothing keeps order then.
func (p *Part) remaps(a *Ask, what string) error {
	if p.Ordered && !a.Policy.RemapKeys {
		return fmt.Errorf("cannot keep the order of topic %s: %s on %s sends most keys to other queues: %w", p.Topic, what, p.Source, ErrRemaps)
	}
	p.Ordered = false
	return nil
}

// ErrRemaps says that a plan would send the keys of an ordered topic to other queues.
var ErrRemaps = errors.New("the topic is ordered, and while both queues of a key are read its messages may change places")

// reorder writes another entry for the source into the order configuration, where there is one;
// "" takes it out.
func (p *Part) reorder(ob *Observation, entry string) {
	if len(ob.NameServers) == 0 {
		return
	}
	kv := ob.NameServers[0].order(p.Topic)
	if kv == nil {
		return
	}
	var parts []string
	for part := range strings.SplitSeq(*kv, ";") {
		if broker, _, _ := strings.Cut(part, ":"); broker == p.Source {
			part = entry
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	to := strings.Join(parts, ";")
	p.OrderWas, p.OrderSame, p.OrderTo = kv, kv, &to
}
