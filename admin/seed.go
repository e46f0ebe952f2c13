package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"mqx/internal/words"
	"mqx/message"
	"mqx/remoting"
)

// SeedSpec says what brokers get from others of their cluster.
type SeedSpec struct {
	Targets []string `json:"targets"` // brokers that get it, by name or address of their master
	// Source is the broker that it is taken from; empty: the first that has it.
	Source string `json:"source,omitempty"`
	// Groups copies all groups of the source; without it only those that read the topics.
	Groups bool     `json:"groups,omitempty"`
	Topics []string `json:"topics,omitempty"`
	// ReadQueues and WriteQueues of the topics on the targets, 0: as on the source.
	ReadQueues  int `json:"readQueues,omitempty"`
	WriteQueues int `json:"writeQueues,omitempty"`
	// RemapKeys lets ordered topics grow, which gives every key another queue.
	RemapKeys bool `json:"remapKeys,omitempty"`
}

// RemapError says that an ordered topic would get other queues.
type RemapError struct{ Topic string }

// Error says what that means.
func (e *RemapError) Error() string {
	return fmt.Sprintf("topic %s is ordered: with more queues every key goes to another one, and messages of a key that are not yet read may be overtaken", e.Topic)
}

// kindSeed is the kind of a SeedPlan.
const kindSeed = "seed"

// SeedPlan gives brokers groups and topics: groups first, then each topic without any
// permission, so that no client sees it, then offset 0 for every group that reads it,
// then its permission. A queue that can be seen before its groups have an offset is
// begun at its end by clients that start there, and its first messages are skipped.
type SeedPlan struct {
	spec     SeedSpec
	title    string
	clusters []string
	brokers  []seedBroker
	notes    []Note
	errs     []TargetError
}

// seedBroker is what one target gets.
type seedBroker struct {
	broker Broker
	groups []remoting.SubscriptionGroupConfig // to create
	topics []seedTopic
}

// seedTopic is one topic on one target.
type seedTopic struct {
	name   string
	change Change
	// groups that read it anywhere, with the offsets that they have on the target from
	// an earlier life of the topic, by queue.
	groups map[string]map[int32]int64
}

// PlanSeed plans what spec asks for. A topic that no broker has is a *NotFoundError, an
// ordered one without RemapKeys a *RemapError.
func (c *Client) PlanSeed(ctx context.Context, spec SeedSpec) (*SeedPlan, error) {
	if len(spec.Targets) == 0 {
		return nil, errors.New("cannot plan without a target broker")
	}
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	p := &SeedPlan{spec: spec}
	for _, name := range spec.Targets {
		masters, errs, err := c.changeTargets(ctx, Target{Broker: name})
		if err != nil {
			return nil, err
		}
		p.errs = append(p.errs, errs...)
		for _, b := range masters {
			p.brokers = append(p.brokers, seedBroker{broker: b})
		}
	}
	sources, err := seedSources(all, p.targets(), spec.Source)
	if err != nil {
		return nil, err
	}
	p.clusters = clustersOf(p.targets())
	groups, err := c.sourceGroups(ctx, sources)
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	if spec.Groups {
		for name := range groups {
			wanted[name] = true
		}
	}
	for _, topic := range spec.Topics {
		if err := c.planSeedTopic(ctx, p, topic, sources, wanted); err != nil {
			return nil, err
		}
	}
	p.planGroups(ctx, c, groups, wanted)
	p.title = p.describe()
	return p, nil
}

func (p *SeedPlan) targets() []Broker {
	var out []Broker
	for i := range p.brokers {
		out = append(out, p.brokers[i].broker)
	}
	return out
}

// seedSources are the masters that something can be taken from: those of the targets'
// clusters that are no target.
func seedSources(all, targets []Broker, source string) ([]Broker, error) {
	clusters := clustersOf(targets)
	masters, err := selectPrimaries(all, Target{Broker: source})
	if err != nil {
		return nil, err
	}
	out := slices.DeleteFunc(masters, func(b Broker) bool {
		return slices.Contains(targets, b) || source == "" && !slices.Contains(clusters, b.Cluster)
	})
	if len(out) == 0 {
		if source != "" {
			return nil, fmt.Errorf("cannot take from broker %q: it is the target", source)
		}
		return nil, &NotFoundError{Kind: "broker", Name: "to take it from", Known: nil}
	}
	return out, nil
}

// sourceGroups are the groups of the sources; where they differ the first one counts.
func (c *Client) sourceGroups(ctx context.Context, sources []Broker) (map[string]remoting.SubscriptionGroupConfig, error) {
	tables := map[Broker]map[string]remoting.SubscriptionGroupConfig{}
	errs := c.each(sources, func(mu *sync.Mutex, b Broker) error {
		t, err := c.groupTable(ctx, b.Addr)
		mu.Lock()
		defer mu.Unlock()
		tables[b] = t
		return err
	})
	if len(errs) > 0 { // what it has is not known: nothing may be left out
		return nil, errs[0]
	}
	out := map[string]remoting.SubscriptionGroupConfig{}
	for _, b := range slices.Backward(sources) {
		maps.Copy(out, tables[b])
	}
	maps.DeleteFunc(out, func(name string, _ remoting.SubscriptionGroupConfig) bool { return message.IsSystemGroup(name) })
	return out, nil
}

// planSeedTopic plans one topic on all targets and adds the groups it needs to wanted.
func (c *Client) planSeedTopic(ctx context.Context, p *SeedPlan, topic string, sources []Broker, wanted map[string]bool) error {
	if err := message.ValidateTopic(topic); err != nil {
		return err
	}
	if kind := topicKind(topic, ownNames(append(p.targets(), sources...))); kind != KindNormal {
		return fmt.Errorf("cannot spread topic %q: it is a %s topic, which brokers make for themselves", topic, kind)
	}
	have, errs := c.readTopic(ctx, topic, sources)
	if len(errs) > 0 {
		return errs[0]
	}
	var from *TopicBroker
	for _, b := range sources {
		from = cmp.Or(from, have[b])
	}
	if from == nil {
		return &NotFoundError{Kind: "topic", Name: topic}
	}
	there, errs := c.readTopic(ctx, topic, p.targets())
	p.errs = append(p.errs, errs...)
	readers, errs, err := c.TopicGroups(ctx, topic)
	if err != nil {
		return err
	}
	if len(errs) > 0 { // a group that is not known here would skip messages
		return errs[0]
	}
	readers = slices.DeleteFunc(readers, message.IsSystemGroup)
	for i := range p.brokers {
		b := p.brokers[i].broker
		was, asked := there[b]
		if !asked {
			continue
		}
		// One without any permission is left from a seed that was cut short.
		fresh := was == nil || was.Perm == 0
		if fresh && from.Order && !p.spec.RemapKeys {
			return &RemapError{topic}
		}
		t := seedTopic{name: topic, change: seedChange(b, from, was, p.spec), groups: map[string]map[int32]int64{}}
		if !fresh && (was.ReadQueues != from.ReadQueues || was.WriteQueues != from.WriteQueues || was.Perm != from.Perm) {
			p.notes = append(p.notes, Note{"differs", fmt.Sprintf("topic %s is on %s already, as %s; on %s it is %s", topic, b.Name, was.short(), from.Broker, from.short())})
		}
		if fresh {
			for _, g := range readers {
				wanted[g] = true
				stale, err := c.committed(ctx, b.Addr, g, topic, t.change.After.ReadQueues)
				if err != nil {
					p.errs = append(p.errs, b.fail(err))
				}
				t.groups[g] = stale
			}
		}
		p.brokers[i].topics = append(p.brokers[i].topics, t)
	}
	return nil
}

// seedChange is a topic as the source has it, on a target.
func seedChange(b Broker, from, was *TopicBroker, spec SeedSpec) Change {
	if was != nil && was.Perm != 0 {
		return Change{Broker: b.Name, Addr: b.Addr, Action: ActionNone, Before: was, After: was}
	}
	after := *from
	after.Cluster, after.Broker, after.Addr = b.Cluster, b.Name, b.Addr
	after.ReadQueues, after.WriteQueues = cmp.Or(spec.ReadQueues, from.ReadQueues), cmp.Or(spec.WriteQueues, from.WriteQueues)
	ch := Change{Broker: b.Name, Addr: b.Addr, Action: ActionCreate, Before: was, After: &after}
	if was != nil {
		ch.Action = ActionUpdate
	}
	return ch
}

// committed are the offsets that a group has in the queues of a topic on one broker.
func (c *Client) committed(ctx context.Context, addr, group, topic string, queues int) (map[int32]int64, error) {
	out := map[int32]int64{}
	for q := range int32(queues) {
		resp, err := c.ask(ctx, addr, remoting.NewRequest(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetHeader{
			ConsumerGroup: group, Topic: topic, QueueID: q, SetZeroIfNotFound: remoting.Some(false),
		}))
		if hasCode(err, remoting.RespQueryNotFound) || hasCode(err, remoting.RespTopicNotExist) || hasCode(err, remoting.RespSubscriptionGroupNotExist) {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("cannot ask for the offset of group %q: %w", group, err)
		}
		n, ok, err := resp.Fields.Int64("offset")
		if err != nil {
			return out, err
		}
		if ok && n >= 0 {
			out[q] = n
		}
	}
	return out, nil
}

// planGroups finds the groups that targets lack.
func (p *SeedPlan) planGroups(ctx context.Context, c *Client, groups map[string]remoting.SubscriptionGroupConfig, wanted map[string]bool) {
	index := map[Broker]int{}
	for i := range p.brokers {
		index[p.brokers[i].broker] = i
	}
	p.errs = append(p.errs, c.each(p.targets(), func(mu *sync.Mutex, b Broker) error {
		have, err := c.groupTable(ctx, b.Addr)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, name := range slices.Sorted(maps.Keys(wanted)) {
			cfg, known := groups[name]
			if _, there := have[name]; there {
				continue
			}
			if !known { // it has offsets, and no configuration any more
				cfg = remoting.NewSubscriptionGroupConfig(name)
			}
			p.brokers[index[b]].groups = append(p.brokers[index[b]].groups, cfg)
		}
		return nil
	})...)
}

func (p *SeedPlan) describe() string {
	var names []string
	for i := range p.brokers {
		names = append(names, p.brokers[i].broker.Name)
	}
	to := strings.Join(names, ", ")
	switch {
	case p.spec.Groups && len(p.spec.Topics) == 0:
		return "give broker " + to + " the groups of the cluster"
	case p.spec.Groups:
		return "give broker " + to + " the groups of the cluster and topic " + strings.Join(p.spec.Topics, ", ")
	}
	return "spread topic " + strings.Join(p.spec.Topics, ", ") + " to broker " + to
}

// Kind names the form of Saved.
func (p *SeedPlan) Kind() string { return kindSeed }

// Object is the topic that is spread, else the brokers that are seeded.
func (p *SeedPlan) Object() string {
	if !p.spec.Groups && len(p.spec.Topics) == 1 {
		return p.spec.Topics[0]
	}
	return strings.Join(p.spec.Targets, ",")
}

// Title says what is done.
func (p *SeedPlan) Title() string { return p.title }

// Clusters are those of the targets.
func (p *SeedPlan) Clusters() []string { return p.clusters }

// Notes are remarks on what is there already.
func (p *SeedPlan) Notes() []Note { return p.notes }

// Missing are the brokers that did not answer.
func (p *SeedPlan) Missing() []TargetError { return p.errs }

// Destroys reports that nothing is lost.
func (p *SeedPlan) Destroys() bool { return false }

// Steps are in the order in which they are done.
func (p *SeedPlan) Steps() []Step {
	var out []Step
	for i := range p.brokers {
		sb := &p.brokers[i]
		for _, g := range sb.groups {
			out = append(out, groupStep(sb.broker, g))
		}
		for _, t := range sb.topics {
			out = append(out, t.steps()...)
		}
	}
	return out
}

func groupStep(b Broker, g remoting.SubscriptionGroupConfig) Step {
	return Step{Broker: b.Name, Addr: b.Addr, Part: "group " + g.GroupName, Action: ActionCreate, After: groupState(g)}
}

// StartOffsets is the offsets of a group in the queues of a topic on one broker.
type StartOffsets struct {
	Queues int   `json:"queues" yaml:"queues"`
	Offset int64 `json:"offset" yaml:"offset"` // the largest of them
}

// String is the offsets in a cell of a table.
func (o StartOffsets) String() string {
	return fmt.Sprintf("offset %d in %s", o.Offset, words.Count(int64(o.Queues), "queue"))
}

// steps are the topic itself and the offsets of its groups.
func (t *seedTopic) steps() []Step {
	s := topicSteps([]Change{t.change})[0]
	s.Part = "topic " + t.name
	out := []Step{s}
	for _, g := range slices.Sorted(maps.Keys(t.groups)) {
		o := Step{Broker: t.change.Broker, Addr: t.change.Addr, Part: "offset of group " + g + " in " + t.name, Action: ActionCreate, After: StartOffsets{Queues: t.change.After.ReadQueues}}
		if stale := t.groups[g]; len(stale) > 0 {
			o.Action, o.Before = ActionUpdate, StartOffsets{Queues: len(stale), Offset: slices.Max(slices.Collect(maps.Values(stale)))}
		}
		out = append(out, o)
	}
	return out
}

// SeedTopics are the topics of the sources of spec that can be put on another broker:
// all of their own but the ordered ones, which RemapKeys lets through.
func (c *Client) SeedTopics(ctx context.Context, spec SeedSpec) ([]string, error) {
	list, err := c.ListTopics(ctx, ListTopicsOptions{Target: Target{Broker: spec.Source}})
	if err != nil {
		return nil, err
	}
	if len(list.Errors) > 0 { // what it has is not known: nothing may be left out
		return nil, list.Errors[0]
	}
	var out []string
	for _, t := range list.Items {
		ordered := slices.ContainsFunc(t.Brokers, func(b TopicBroker) bool { return b.Order })
		elsewhere := slices.ContainsFunc(t.Brokers, func(b TopicBroker) bool {
			return !slices.Contains(spec.Targets, b.Broker) && !slices.Contains(spec.Targets, b.Addr)
		})
		if elsewhere && (!ordered || spec.RemapKeys) {
			out = append(out, t.Name)
		}
	}
	return out, nil
}
