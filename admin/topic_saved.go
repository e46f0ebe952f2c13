package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// savedTopicPlan is a plan as it is written to a file and done later, by Replan and Apply.
type savedTopicPlan struct {
	Action  string     `json:"action"` // create, delete
	Topic   string     `json:"topic"`
	Target  Target     `json:"target"`
	Spec    *TopicSpec `json:"spec,omitempty"` // of create
	Cluster []string   `json:"clusters"`
	// Whole are the clusters that give the topic up as a whole.
	Whole   []string `json:"wholeClusters,omitempty"`
	Changes []Change `json:"changes"`
	Groups  []string `json:"groups,omitempty"`
	// Missing are the brokers that did not answer, as name or address.
	Missing []string `json:"missing,omitempty"`
}

// Saved is the plan in the form that can be written down.
func (p *TopicPlan) Saved() any { return p.saved() }

func (p *TopicPlan) saved() savedTopicPlan {
	s := savedTopicPlan{
		Action: p.Action, Topic: p.Topic, Target: p.target, Cluster: p.Cluster, Whole: p.clusters,
		Changes: p.Changes, Groups: p.Groups, Missing: missingNames(p.Errors),
	}
	if p.Action == ActionCreate {
		s.Spec = &p.spec
	}
	return s
}

func missingNames(errs []TargetError) []string {
	var out []string
	for _, e := range errs {
		out = append(out, cmp.Or(e.Broker, e.Addr))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// replanTopic plans anew and compares brokers, configuration and groups.
func replanTopic(ctx context.Context, c *Client, saved []byte) (Plan, error) {
	s, err := readSaved[savedTopicPlan](kindTopic, saved)
	if err != nil {
		return nil, err
	}
	p, err := c.replanTopic(ctx, s)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (c *Client) replanTopic(ctx context.Context, s *savedTopicPlan) (*TopicPlan, error) {
	var p *TopicPlan
	var err error
	switch {
	case s.Action == ActionCreate && s.Spec != nil:
		p, err = c.PlanCreateTopic(ctx, s.Target, *s.Spec)
	case s.Action == ActionDelete:
		p, err = c.PlanDeleteTopic(ctx, s.Target, s.Topic)
		if gone, ok := errors.AsType[*NotFoundError](err); ok && gone.Kind == "topic" {
			return s.done(), nil
		}
	default:
		return nil, fmt.Errorf("cannot use a saved plan that would %q a topic", s.Action)
	}
	if err != nil {
		return nil, err
	}
	if s.Action == ActionCreate && Idle(p) && len(p.Errors) == 0 && sameBrokers(s.Changes, p.Changes) {
		return p, nil
	}
	if d := s.differences(p.saved()); len(d) > 0 {
		return nil, &ChangedError{Kind: kindTopic, Object: s.Topic, Differences: d}
	}
	return p, nil
}

// done is the plan of which everything is so already.
func (s savedTopicPlan) done() *TopicPlan {
	p := &TopicPlan{Action: s.Action, Topic: s.Topic, Cluster: s.Cluster, target: s.Target}
	for _, ch := range s.Changes {
		p.Changes = append(p.Changes, Change{Broker: ch.Broker, Addr: ch.Addr, Action: ActionNone})
	}
	return p
}

func sameBrokers(a, b []Change) bool {
	return slices.EqualFunc(a, b, func(x, y Change) bool { return x.Broker == y.Broker && x.Addr == y.Addr })
}

// differences between what was planned and what would be planned now.
func (s savedTopicPlan) differences(now savedTopicPlan) []string {
	var out []string
	lists := func(what string, was, is []string) {
		if !slices.Equal(was, is) {
			out = append(out, fmt.Sprintf("%s were %v, are %v", what, was, is))
		}
	}
	lists("clusters", s.Cluster, now.Cluster)
	lists("brokers without an answer", s.Missing, now.Missing)
	lists("clusters that give the topic up", s.Whole, now.Whole)
	for _, g := range now.Groups {
		if !slices.Contains(s.Groups, g) {
			out = append(out, fmt.Sprintf("group %s consumes the topic now", g))
		}
	}
	for _, ch := range now.Changes {
		was := slices.IndexFunc(s.Changes, func(c Change) bool { return c.Broker == ch.Broker && c.Addr == ch.Addr })
		switch {
		case was < 0:
			out = append(out, fmt.Sprintf("broker %s (%s) was not part of it", ch.Broker, ch.Addr))
		case !sameState(s.Changes[was].Before, ch.Before):
			out = append(out, fmt.Sprintf("the topic on broker %s was %s, is %s", ch.Broker, s.Changes[was].Before, ch.Before))
		case !sameState(s.Changes[was].After, ch.After), s.Changes[was].Action != ch.Action:
			out = append(out, fmt.Sprintf("broker %s would become %s in place of %s", ch.Broker, ch.After, s.Changes[was].After))
		}
	}
	for _, ch := range s.Changes {
		if !slices.ContainsFunc(now.Changes, func(c Change) bool { return c.Broker == ch.Broker && c.Addr == ch.Addr }) {
			out = append(out, fmt.Sprintf("broker %s (%s) is no longer part of it", ch.Broker, ch.Addr))
		}
	}
	return out
}

func sameState(a, b *TopicBroker) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameTopic(a, b)
}

// String is the configuration in a few words.
func (t *TopicBroker) String() string {
	if t == nil {
		return "not there"
	}
	s := fmt.Sprintf("%d read, %d write queues, permission %d", t.ReadQueues, t.WriteQueues, t.Perm)
	if t.Order {
		s += ", ordered"
	}
	if len(t.Attributes) > 0 {
		s += fmt.Sprintf(", %v", t.Attributes)
	}
	return s
}
