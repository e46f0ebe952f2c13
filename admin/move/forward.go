package move

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// AttrForward is the attribute by which a broker of mqx seals queues of a topic: "FROM|BROKER:N;BROKER:N". It stores
// nothing in queue FROM and those behind it any more, hands what comes for them to queues 0 to N-1 of each broker, in turn,
// and answers with what that says.
const AttrForward = "mqx.forward"

// maxForward bounds the queues that sends are handed on to, as brokers do.
const maxForward = 4096

// seal lets the source hand on what producers with an old route still send to it, where it can. slots are the brokers that
// get it, with their queues.
func (p *Part) seal(ob *Observation, slots []string) {
	n := slotQueues(slots)
	if !ob.Brokers[p.Source].Forwards || n == 0 || n > maxForward || !p.seals() {
		return
	}
	p.Sealed.Attributes = maps.Clone(p.Sealed.Attributes)
	if p.Sealed.Attributes == nil {
		p.Sealed.Attributes = map[string]string{}
	}
	p.Sealed.Attributes[AttrForward] = fmt.Sprintf("%d|%s", p.From, strings.Join(slots, ";"))
}

// Forwards reports whether the sealed source hands on what is sent to it.
func (p *Part) Forwards() bool { return p.Sealed.Attributes[AttrForward] != "" }

// toTargets are the queues that the plan makes for the source's.
func (p *Part) toTargets() (out []string) {
	for i := range p.Targets {
		out = append(out, fmt.Sprintf("%s:%d", p.Targets[i].Broker, p.Targets[i].To.Write))
	}
	return out
}

// toOthers are the queues of the brokers that have the topic beside the sources.
func toOthers(ob *Observation, topic string, sources []string) (out []string) {
	if len(ob.NameServers) == 0 {
		return nil
	}
	queues := ob.NameServers[0].Routes[topic].Queues
	for _, b := range slices.Sorted(maps.Keys(queues)) {
		if q := queues[b]; q.Perm&PermWrite != 0 && q.Write > 0 && !slices.Contains(sources, b) {
			out = append(out, fmt.Sprintf("%s:%d", b, q.Write))
		}
	}
	return out
}

// unsealed is a configuration that hands nothing on: of a broker that was drained once and is written again.
func (t *Topic) unsealed() *Topic {
	if _, ok := t.Attributes[AttrForward]; !ok {
		return t
	}
	c := *t
	c.Attributes = maps.Clone(t.Attributes)
	delete(c.Attributes, AttrForward)
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
			if !was.handsTo(p.Source) {
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
func (p *Part) goneTo(ob *Observation, but string) []string {
	if _, slots, ok := strings.Cut(p.Sealed.Attributes[AttrForward], "|"); ok {
		return strings.Split(slots, ";")
	}
	if len(p.Targets) > 0 {
		return p.toTargets()
	}
	return toOthers(ob, p.Topic, []string{p.Source, but})
}

// handsTo reports whether a sealed topic hands on to a broker.
func (t *Topic) handsTo(broker string) bool {
	_, slots, _ := strings.Cut(t.Attributes[AttrForward], "|")
	return slices.ContainsFunc(strings.Split(slots, ";"), func(s string) bool { return strings.HasPrefix(s, broker+":") })
}

// handingTo is the configuration with queues in the place of a broker's; nil where there are none, or too many.
func (t *Topic) handingTo(broker string, slots []string) *Topic {
	from, old, _ := strings.Cut(t.Attributes[AttrForward], "|")
	var out []string
	for s := range strings.SplitSeq(old, ";") {
		if strings.HasPrefix(s, broker+":") {
			out = append(out, slots...)
			continue
		}
		out = append(out, s)
	}
	if n := slotQueues(out); len(slots) == 0 || n < 1 || n > maxForward {
		return nil
	}
	c := *t
	c.Attributes = maps.Clone(t.Attributes)
	c.Attributes[AttrForward] = from + "|" + strings.Join(out, ";")
	return &c
}

// slotQueues is the number of queues of slots, 0 where one has none.
func slotQueues(slots []string) int {
	n := 0
	for _, s := range slots {
		_, count, _ := strings.Cut(s, ":")
		q, err := strconv.Atoi(count)
		if err != nil || q < 1 {
			return 0
		}
		n += q
	}
	return n
}
