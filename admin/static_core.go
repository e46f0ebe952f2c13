package admin

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"mqx/internal/words"
	"mqx/remoting"
)

// A static topic has a fixed number of logical queues, each a list of stretches of
// physical queues; the last stretch is the leader. This file decides, from what the
// brokers say, who leads what; it asks nobody.

// StaticState is what one broker has of a static topic.
type StaticState struct {
	ReadQueues  int32                            `json:"readQueues"`
	WriteQueues int32                            `json:"writeQueues"`
	Perm        int32                            `json:"perm"`
	Mapping     remoting.TopicQueueMappingDetail `json:"mapping"`
}

// String names the queues that it leads.
func (s StaticState) String() string {
	var leads []string
	for _, id := range slices.Sorted(maps.Keys(s.Mapping.HostedQueues)) {
		if leader(s.Mapping.HostedQueues[id]) == s.Mapping.BName {
			leads = append(leads, fmt.Sprint(id))
		}
	}
	if len(leads) == 0 {
		return fmt.Sprintf("leads none of %d", s.Mapping.TotalQueues)
	}
	return fmt.Sprintf("leads %s of %d", strings.Join(leads, " "), s.Mapping.TotalQueues)
}

func leader(items []remoting.LogicQueueMappingItem) string {
	if len(items) == 0 {
		return ""
	}
	return items[len(items)-1].BName
}

// staticLayout is a static topic on all its brokers, by name.
type staticLayout map[string]*StaticState

func (l staticLayout) clone() staticLayout {
	out := staticLayout{}
	for name, s := range l {
		c := *s
		c.Mapping.HostedQueues = map[int32][]remoting.LogicQueueMappingItem{}
		for id, items := range s.Mapping.HostedQueues {
			c.Mapping.HostedQueues[id] = slices.Clone(items)
		}
		out[name] = &c
	}
	return out
}

// at is the part of a broker, made where it has none.
func (l staticLayout) at(name, topic string) *StaticState {
	if l[name] == nil {
		l[name] = &StaticState{Perm: staticPerm, Mapping: remoting.TopicQueueMappingDetail{
			TopicQueueMappingInfo: remoting.TopicQueueMappingInfo{BName: name, CurrIDMap: map[int32]int32{}, Scope: staticScope, Topic: topic},
			HostedQueues:          map[int32][]remoting.LogicQueueMappingItem{},
		}}
	}
	return l[name]
}

// leaders are the stretches of each logical queue, as its leader tells them. Brokers that
// contradict each other are an error: what one of them knows would be lost.
func (l staticLayout) leaders() (queues map[int32][]remoting.LogicQueueMappingItem, total int32, epoch int64, err error) {
	queues = map[int32][]remoting.LogicQueueMappingItem{}
	first := true
	used := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(l)) {
		m := &l[name].Mapping
		if !first && (m.Epoch != epoch || m.TotalQueues != total) {
			return nil, 0, 0, fmt.Errorf("brokers contradict each other: %s has epoch %d with %s, another epoch %d with %d; a change was broken off: mqx admin plan apply, with its file", name, m.Epoch, words.Count(m.TotalQueues, "queue"), epoch, total)
		}
		first, epoch, total = false, m.Epoch, m.TotalQueues
		for id, items := range m.HostedQueues {
			if leader(items) != name {
				continue
			}
			if queues[id] != nil {
				return nil, 0, 0, fmt.Errorf("queue %d has two leaders, %s and %s", id, leader(queues[id]), name)
			}
			queues[id] = items
			for _, it := range items {
				key := fmt.Sprint(it.BName, " ", it.QueueID)
				if used[key] {
					return nil, 0, 0, fmt.Errorf("two queues share the physical queue %d of %s", it.QueueID, it.BName)
				}
				used[key] = true
			}
			if items[len(items)-1].LogicOffset < 0 {
				return nil, 0, 0, fmt.Errorf("the leader of queue %d has no logical offset yet: a change was broken off: mqx admin plan apply, with its file", id)
			}
		}
	}
	for id := range total {
		if queues[id] == nil {
			return nil, 0, 0, fmt.Errorf("queue %d of %d has no leader", id, total)
		}
	}
	return queues, total, epoch, nil
}

// fewest is the broker with the fewest queues, the first by name of several.
func fewest(counts map[string]int) string {
	return slices.MinFunc(slices.Sorted(maps.Keys(counts)), func(a, b string) int { return cmp.Compare(counts[a], counts[b]) })
}

// epochStep is how much later an epoch is than the last one, at least.
const epochStep = 1000

// seal gives all parts the epoch and the number of queues. An epoch is later than the last
// one by a second at least: brokers refuse an earlier one.
func (l staticLayout) seal(total int32, last, nowMs int64) error {
	if last > math.MaxInt64-epochStep {
		return fmt.Errorf("the epoch %d of the mapping is the last one that there is: the queues cannot be mapped anew", last)
	}
	for _, s := range l {
		s.Mapping.Epoch, s.Mapping.TotalQueues = max(last+epochStep, nowMs), total
	}
	return nil
}

// grow makes a static topic, or gives one more queues: the new ones go where the fewest are.
// all are the brokers of the cluster; those without queues know the topic too.
func (l staticLayout) grow(topic string, total int32, targets, all []string, nowMs int64) (staticLayout, error) {
	queues, had, epoch, err := l.leaders()
	if err != nil {
		return nil, err
	}
	if had > total {
		return nil, invalidf("cannot give static topic %s %s: it has %d, and they cannot become fewer", topic, words.Count(total, "queue"), had)
	}
	out := l.clone()
	counts := map[string]int{}
	for _, name := range targets {
		counts[name] = 0
	}
	for _, items := range queues {
		counts[leader(items)]++
	}
	for id := had; id < total; id++ {
		name := fewest(counts)
		counts[name]++
		out.append(topic, name, id, nil)
	}
	for _, name := range all {
		if out[name] == nil {
			out.at(name, topic).Perm = staticPerm
		}
	}
	if had < total {
		err = out.seal(total, epoch, nowMs)
	}
	return out, err
}

// append lets a new physical queue of a broker lead a logical one.
func (l staticLayout) append(topic, name string, id int32, before []remoting.LogicQueueMappingItem) []remoting.LogicQueueMappingItem {
	s := l.at(name, topic)
	s.ReadQueues++
	s.WriteQueues++
	s.ReadQueues = max(s.ReadQueues, s.WriteQueues)
	it := remoting.LogicQueueMappingItem{BName: name, QueueID: s.WriteQueues - 1, EndOffset: -1, TimeOfStart: -1, TimeOfEnd: -1}
	if len(before) > 0 {
		it.Gen, it.LogicOffset = before[len(before)-1].Gen+1, -1
	}
	items := append(slices.Clone(before), it)
	s.Mapping.HostedQueues[id] = items
	return items
}

// remap spreads the queues of a static topic evenly over the targets; those that can stay
// do. ins get queues, outs lose them; no broker does both.
func (l staticLayout) remap(topic string, targets []string, nowMs int64) (out staticLayout, ins, outs []string, err error) {
	queues, total, _, err := l.leaders()
	if err != nil {
		return nil, nil, nil, err
	}
	has := map[string]int{}
	for _, items := range queues {
		has[leader(items)]++
	}
	// The remainder of an uneven division goes to those who have the most.
	order := slices.SortedFunc(slices.Values(targets), func(a, b string) int {
		return cmp.Or(cmp.Compare(has[b], has[a]), cmp.Compare(a, b))
	})
	share := map[string]int{}
	for i, name := range order {
		share[name] = int(total) / len(order)
		if i < int(total)%len(order) {
			share[name]++
		}
	}
	var homeless []int32
	for id := range total {
		if name := leader(queues[id]); share[name] > 0 {
			share[name]--
		} else {
			homeless = append(homeless, id)
		}
	}
	to := map[int32]string{}
	for _, id := range homeless {
		to[id] = order[slices.IndexFunc(order, func(name string) bool { return share[name] > 0 })]
		share[to[id]]--
	}
	return l.lead(topic, to, nowMs)
}

// lead lets other brokers lead some queues; one that leads its queue already stays.
func (l staticLayout) lead(topic string, to map[int32]string, nowMs int64) (out staticLayout, ins, outs []string, err error) {
	queues, total, epoch, err := l.leaders()
	if err != nil {
		return nil, nil, nil, err
	}
	out = l.clone()
	for _, id := range slices.Sorted(maps.Keys(to)) {
		from := leader(queues[id])
		if from == "" {
			return nil, nil, nil, fmt.Errorf("queue %d is none of the %d of the topic", id, total)
		}
		if from == to[id] {
			continue
		}
		out[from].Mapping.HostedQueues[id] = out.append(topic, to[id], id, queues[id])
		ins, outs = append(ins, to[id]), append(outs, from)
	}
	slices.Sort(ins)
	slices.Sort(outs)
	ins, outs = slices.Compact(ins), slices.Compact(outs)
	for _, name := range ins {
		if slices.Contains(outs, name) {
			return nil, nil, nil, fmt.Errorf("broker %s would get queues and lose some at the same time", name)
		}
	}
	if len(ins) > 0 {
		err = out.seal(total, epoch, nowMs)
	}
	return out, ins, outs, err
}

// staticPerm is the permission of a static topic: to read and to write.
const staticPerm = 6

// staticScope is the scope of all mappings so far.
const staticScope = "__global__"

// staticBlock is what the logical offsets of a new leader begin on a multiple of: the gap
// takes what the old leader stores until it has heard.
const staticBlock = 10000

// afterBlock is the logical offset that a new leader begins with, the old one ending at offset.
func afterBlock(offset int64) int64 {
	n := offset/staticBlock + 1
	if offset%staticBlock >= staticBlock/2 {
		n++
	}
	return n * staticBlock
}

// decide sets the logical offset of a queue's new leader on all brokers that know it.
func (l staticLayout) decide(id int32, offset int64) {
	for _, s := range l {
		if items := s.Mapping.HostedQueues[id]; len(items) > 0 && items[len(items)-1].LogicOffset < 0 {
			items[len(items)-1].LogicOffset = offset
		}
	}
}
