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
	n := 0
	for _, s := range slots {
		_, count, _ := strings.Cut(s, ":")
		q, err := strconv.Atoi(count)
		if err != nil || q < 1 {
			return
		}
		n += q
	}
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
