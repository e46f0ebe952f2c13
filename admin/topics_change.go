package admin

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"mqx/message"
	"mqx/remoting"
)

// kindTopics is the kind of a plan that makes topics what is said of them.
const kindTopics = "topics"

// TopicChange is what of a topic is to be another. What is nil stays.
type TopicChange struct {
	ReadQueues, WriteQueues, Perm *int
	Order, Unit, HasUnitSub       *bool
	Attributes                    map[string]string // "+key" with a value, "-key" without
}

// topicConfigState is a topic as cells keep it.
type topicConfigState struct {
	ReadQueues  int               `json:"readQueues"`
	WriteQueues int               `json:"writeQueues"`
	Perm        int               `json:"perm"`
	Order       bool              `json:"order,omitempty"`
	SysFlag     int               `json:"sysFlag,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
}

func (s *topicConfigState) on(b Broker) *TopicBroker {
	if s == nil {
		return nil
	}
	return &TopicBroker{
		Cluster: b.Cluster, Broker: b.Name, Addr: b.Addr, ReadQueues: s.ReadQueues, WriteQueues: s.WriteQueues, Perm: s.Perm,
		Order: s.Order, SysFlag: s.SysFlag, Attributes: s.Attributes,
	}
}

func configState(t *TopicBroker) topicConfigState {
	return topicConfigState{t.ReadQueues, t.WriteQueues, t.Perm, t.Order, t.SysFlag, t.Attributes}
}

var topicCells = &cellKind[topicConfigState]{
	kind: kindTopics, what: "topic",
	same: func(a, b topicConfigState) bool { return sameTopic(a.on(Broker{}), b.on(Broker{})) },
	show: func(v topicConfigState) any { return v.on(Broker{}).state() },
	read: readTopicCells,
	write: func(ctx context.Context, c *Client, w cellWrite[topicConfigState]) error {
		if w.Is == nil {
			_, err := c.ask(ctx, w.At.Addr, remoting.NewRequest(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: w.Part}))
			return err
		}
		var was map[string]string
		if w.Was != nil {
			was = w.Was.Attributes
		}
		_, err := c.ask(ctx, w.At.Addr, createRequest(signedAttributes(was, w.Is.Attributes), w.Is.on(w.At), w.Part))
		return err
	},
	warn: func(_ string, was, is *topicConfigState) string {
		if was == nil || is == nil || is.ReadQueues >= was.ReadQueues {
			return ""
		}
		return lostQueues(is.ReadQueues, was.ReadQueues)
	},
	final: func(_, is *topicConfigState) error {
		if is == nil {
			return ErrNoUndo
		}
		return nil
	},
	settle: func(ctx context.Context, c *Client, _ *cellPlan[topicConfigState], done []cell[topicConfigState]) []TargetError {
		return c.settleTopics(ctx, done)
	},
}

// lostQueues says which queues are no longer read.
func lostQueues(from, to int) string {
	lost := fmt.Sprintf("queues %d to %d are", from, to-1)
	if from == to-1 {
		lost = fmt.Sprintf("queue %d is", from)
	}
	return lost + " no longer read: what consumers have not read there stays unread"
}

// wholeTopicTable is the number of topics from which on the table of a broker is read in
// place of each topic.
const wholeTopicTable = 8

func readTopicCells(ctx context.Context, c *Client, at Broker, parts []string) (map[string]topicConfigState, error) {
	out := map[string]topicConfigState{}
	if len(parts) >= wholeTopicTable {
		table, err := c.topicTable(ctx, at.Addr)
		if err != nil {
			return nil, err
		}
		for _, name := range parts {
			if tc, ok := table[name]; ok {
				b := topicBroker(at, tc)
				out[name] = configState(&b)
			}
		}
		return out, nil
	}
	for _, name := range parts {
		tc, err := c.topicConfig(ctx, at.Addr, name)
		switch {
		case err == nil:
			b := topicBroker(at, *tc)
			out[name] = configState(&b)
		case !hasCode(err, remoting.RespTopicNotExist):
			return nil, err
		}
	}
	return out, nil
}

// settleTopics notes the queue counts of ordered topics at the name servers, and takes
// topics that are gone out of the routes.
func (c *Client) settleTopics(ctx context.Context, done []cell[topicConfigState]) []TargetError {
	changes, gone := map[string][]Change{}, map[string][]Broker{}
	for _, x := range done {
		ordered := x.is != nil && x.is.Order || x.was != nil && x.was.Order
		if x.is == nil {
			if x.was != nil {
				gone[x.part] = append(gone[x.part], x.at)
			}
		} else if ordered {
			changes[x.part] = append(changes[x.part], Change{Broker: x.at.Name, Addr: x.at.Addr, Before: x.was.on(x.at), After: x.is.on(x.at)})
		}
	}
	var errs []TargetError
	for _, topic := range slices.Sorted(maps.Keys(changes)) {
		errs = append(errs, c.putOrder(ctx, &TopicPlan{Topic: topic}, changes[topic])...)
	}
	for _, topic := range slices.Sorted(maps.Keys(gone)) {
		errs = append(errs, c.dropRoutes(ctx, topic, gone[topic])...)
	}
	return errs
}

// PlanTopic plans to change a topic on those of the target's masters that have it:
// what of it is said, and nothing else. One that no broker has is a *NotFoundError.
func (c *Client) PlanTopic(ctx context.Context, t Target, topic string, change TopicChange) (Plan, error) {
	own, err := c.ownTopics(ctx)
	if err != nil {
		return nil, err
	}
	if err := changeableTopic(topic, own); err != nil {
		return nil, err
	}
	p, err := topicCells.plan(ctx, c, onMasters(t), topic, "change topic "+topic, wanted[topicConfigState]{
		parts: []string{topic},
		make: func(_ Broker, _ string, was *topicConfigState) (*topicConfigState, error) {
			if was == nil {
				return nil, nil
			}
			return change.apply(*was), nil
		},
	})
	if err != nil {
		return nil, err
	}
	p.cells = slices.DeleteFunc(p.cells, func(x cell[topicConfigState]) bool { return x.was == nil })
	if len(p.cells)+len(p.missing) == 0 {
		return nil, &NotFoundError{Kind: "topic", Name: topic}
	}
	c.noteUnread(ctx, p)
	return p, nil
}

func (ch TopicChange) apply(s topicConfigState) *topicConfigState {
	set(&s.ReadQueues, ch.ReadQueues)
	set(&s.WriteQueues, ch.WriteQueues)
	set(&s.Perm, ch.Perm)
	set(&s.Order, ch.Order)
	for _, f := range []struct {
		on  *bool
		bit int
	}{{ch.Unit, 1}, {ch.HasUnitSub, 2}} {
		if f.on != nil {
			s.SysFlag &^= f.bit
			if *f.on {
				s.SysFlag |= f.bit
			}
		}
	}
	s.Attributes = withAttributes(s.Attributes, ch.Attributes)
	return &s
}

// ownTopics are the names that topics of brokers and clusters have.
func (c *Client) ownTopics(ctx context.Context) (map[string]bool, error) {
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	return ownNames(all), nil
}

// changeableTopic refuses names that no topic can have, and those that brokers keep.
func changeableTopic(topic string, own map[string]bool) error {
	if err := message.ValidateTopic(topic); err != nil {
		return err
	}
	if topicKind(topic, own) == KindSystem {
		return fmt.Errorf("cannot change topic %q: brokers keep it for themselves", topic)
	}
	return nil
}

// PlanPutTopics plans to make topics what configurations say, on each of the target's
// masters; title says what it is for.
func (c *Client) PlanPutTopics(ctx context.Context, t Target, object, title string, configs []remoting.TopicConfig) (Plan, error) {
	own, err := c.ownTopics(ctx)
	if err != nil {
		return nil, err
	}
	want, byName := wanted[topicConfigState]{}, map[string]topicConfigState{}
	for _, tc := range configs {
		if err := changeableTopic(tc.TopicName, own); err != nil {
			return nil, err
		}
		if _, twice := byName[tc.TopicName]; twice {
			return nil, invalidf("cannot use topics: %q comes twice", tc.TopicName)
		}
		if tc.ReadQueueNums < 1 || tc.WriteQueueNums < 1 || tc.Perm < 0 || tc.Perm > 7 {
			return nil, invalidf("cannot use topic %q: it has %d read and %d write queues and permission %d", tc.TopicName, tc.ReadQueueNums, tc.WriteQueueNums, tc.Perm)
		}
		b := topicBroker(Broker{}, tc)
		byName[tc.TopicName] = configState(&b)
		want.parts = append(want.parts, tc.TopicName)
	}
	slices.Sort(want.parts)
	want.make = func(_ Broker, part string, _ *topicConfigState) (*topicConfigState, error) {
		s := byName[part]
		return &s, nil
	}
	p, err := topicCells.plan(ctx, c, onMasters(t), object, title, want)
	if err != nil {
		return nil, err
	}
	c.noteUnread(ctx, p)
	return p, nil
}

// noteUnread notes what groups have not read in queues that a plan takes away from
// readers.
func (c *Client) noteUnread(ctx context.Context, p *cellPlan[topicConfigState]) {
	shrinking := map[string]*TopicPlan{}
	for _, x := range p.cells {
		if x.was == nil || x.is == nil || x.is.ReadQueues >= x.was.ReadQueues {
			continue
		}
		t := shrinking[x.part]
		if t == nil {
			t = &TopicPlan{Action: ActionUpdate, Topic: x.part}
			shrinking[x.part] = t
		}
		t.Changes = append(t.Changes, Change{Broker: x.at.Name, Addr: x.at.Addr, Before: x.was.on(x.at), After: x.is.on(x.at)})
		t.brokers = append(t.brokers, x.at)
	}
	for _, topic := range slices.Sorted(maps.Keys(shrinking)) {
		t := shrinking[topic]
		p.missing = append(p.missing, c.unreadInLostQueues(ctx, t)...)
		p.notes = append(p.notes, t.Notes()...)
	}
}
