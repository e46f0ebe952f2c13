package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"mqx/remoting"
)

// visibleWithin bounds the wait for a new topic at the name servers: brokers register
// it at once.
const visibleWithin = 5 * time.Second

// Apply does the plan, target by target at a time and each of them in the order of its
// steps, and ends what belongs to a target where one of its steps fails: a topic whose
// groups have no offset does not get its permission.
func (p *SeedPlan) Apply(ctx context.Context, c *Client) (*Applied, error) {
	done := make([][]Step, len(p.brokers))
	undo := map[string][]Change{}
	index := map[Broker]int{}
	for i := range p.brokers {
		index[p.brokers[i].broker] = i
	}
	out := &Applied{}
	out.Errors = c.each(p.targets(), func(mu *sync.Mutex, b Broker) error {
		i := index[b]
		sb := &p.brokers[i]
		for _, g := range sb.groups {
			if err := c.seedGroup(ctx, b, g); err != nil {
				return err
			}
			done[i] = append(done[i], groupStep(b, g))
		}
		for _, t := range sb.topics {
			err := c.applySeedTopic(ctx, b, &t)
			if err != nil {
				return err
			}
			done[i] = append(done[i], t.steps()...)
			if t.change.Action != ActionNone {
				mu.Lock()
				undo[t.name] = append(undo[t.name], t.change)
				mu.Unlock()
			}
		}
		return nil
	})
	for _, steps := range done {
		out.Steps = append(out.Steps, steps...)
	}
	for _, topic := range slices.Sorted(maps.Keys(undo)) {
		out.Errors = append(out.Errors, c.publish(ctx, topic, undo[topic])...)
	}
	if len(undo) > 0 {
		out.Undo = undo
	} else {
		out.Final = errors.New("groups that were copied stay: mqx admin group rm")
	}
	return out, nil
}

// seedGroup creates a group and reads it back.
func (c *Client) seedGroup(ctx context.Context, b Broker, g remoting.SubscriptionGroupConfig) error {
	if err := c.putGroup(ctx, cellWrite[remoting.SubscriptionGroupConfig]{At: b, Is: &g}); err != nil {
		return fmt.Errorf("cannot create group %q: %w", g.GroupName, err)
	}
	table, err := c.groupTable(ctx, b.Addr)
	if err != nil {
		return fmt.Errorf("cannot read back group %q: %w", g.GroupName, err)
	}
	if now, ok := table[g.GroupName]; !ok || !sameGroup(now, g) {
		return fmt.Errorf("cannot see group %q as it was created", g.GroupName)
	}
	return nil
}

// applySeedTopic creates a topic that no client uses yet, gives its groups their
// offsets, and then opens it.
func (c *Client) applySeedTopic(ctx context.Context, b Broker, t *seedTopic) error {
	if t.change.Action == ActionNone {
		return nil
	}
	attributes := map[string]string{}
	for k, v := range t.change.After.Attributes {
		attributes["+"+k] = v
	}
	hidden := *t.change.After
	hidden.Perm = 0
	if _, err := c.ask(ctx, b.Addr, createRequest(attributes, &hidden, t.name)); err != nil {
		return fmt.Errorf("cannot create topic %q: %w", t.name, err)
	}
	for _, g := range slices.Sorted(maps.Keys(t.groups)) {
		if err := c.startAtZero(ctx, b, g, t); err != nil {
			return fmt.Errorf("topic %q has no permission yet: %w", t.name, err)
		}
	}
	if _, err := c.ask(ctx, b.Addr, createRequest(nil, t.change.After, t.name)); err != nil {
		return fmt.Errorf("cannot open topic %q: %w", t.name, err)
	}
	now, err := c.topicConfig(ctx, b.Addr, t.name)
	if err != nil {
		return fmt.Errorf("cannot read back topic %q: %w", t.name, err)
	}
	read := topicBroker(b, *now)
	if !sameQueues(t.change.After, &read) {
		return fmt.Errorf("cannot see topic %q as it was created: it has %s", t.name, read.short())
	}
	t.change.After = &read
	return nil
}

// startAtZero writes offset 0 for a group in every queue and reads it back.
func (c *Client) startAtZero(ctx context.Context, b Broker, group string, t *seedTopic) error {
	for q := range int32(t.change.After.ReadQueues) {
		_, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{
			ConsumerGroup: group, Topic: t.name, QueueID: q,
		}))
		if err != nil {
			return fmt.Errorf("cannot write the offset of group %q in queue %d: %w", group, q, err)
		}
	}
	now, err := c.committed(ctx, b.Addr, group, t.name, t.change.After.ReadQueues)
	if err != nil {
		return fmt.Errorf("cannot read back: %w", err)
	}
	for q := range int32(t.change.After.ReadQueues) {
		if n, ok := now[q]; !ok || n != 0 {
			return fmt.Errorf("cannot see offset 0 of group %q in queue %d: read back %d (there: %v)", group, q, n, ok)
		}
	}
	return nil
}

// publish notes the queues of an ordered topic, and waits until every name server
// routes the topic to the brokers that got it.
func (c *Client) publish(ctx context.Context, topic string, made []Change) []TargetError {
	var errs []TargetError
	if changesOrder(made) || slices.ContainsFunc(made, func(ch Change) bool { return ch.After.Order }) {
		errs = c.putOrder(ctx, &TopicPlan{Topic: topic}, made)
	}
	return append(errs, c.each(servers(c.ns.All()), func(_ *sync.Mutex, ns Broker) error {
		return c.routed(ctx, ns.Addr, topic, made)
	})...)
}

// routed waits until one name server routes the topic to all of made.
func (c *Client) routed(ctx context.Context, ns, topic string, made []Change) error {
	ctx, cancel := context.WithTimeout(ctx, visibleWithin)
	defer cancel()
	for {
		missing, err := c.notRouted(ctx, ns, topic, made)
		if err == nil && len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			if err != nil {
				return err
			}
			return fmt.Errorf("topic %q is created, but this name server does not route it to %s yet", topic, strings.Join(missing, ", "))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (c *Client) notRouted(ctx context.Context, ns, topic string, made []Change) ([]string, error) {
	r, err := askBody[remoting.TopicRouteData](ctx, c, ns, remoting.NewRequest(remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoHeader{Topic: topic}))
	if err != nil && !hasCode(err, remoting.RespTopicNotExist) {
		return nil, err
	}
	var missing []string
	for _, ch := range made {
		if r == nil || !slices.ContainsFunc(r.QueueDatas, func(q remoting.QueueData) bool { return q.BrokerName == ch.Broker && q.Perm != 0 }) {
			missing = append(missing, ch.Broker)
		}
	}
	return missing, nil
}
