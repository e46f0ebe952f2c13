package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// TopicSpec is a topic to create or to change.
type TopicSpec struct {
	Name        string `json:"name"`
	ReadQueues  int    `json:"readQueues,omitempty"`  // 0: as the topic has, or 8 for a new one
	WriteQueues int    `json:"writeQueues,omitempty"` // 0: likewise
	Perm        int    `json:"perm,omitempty"`        // 0: likewise, or 6 (read and write)
	// Order, Unit and HasUnitSub are set where they are true; what a topic has stays.
	Order      bool `json:"order,omitempty"`
	Unit       bool `json:"unit,omitempty"`
	HasUnitSub bool `json:"hasUnitSub,omitempty"`
	// Exact makes what is not given the default of a new topic, whatever the topic has;
	// its attributes stay.
	Exact bool `json:"exact,omitempty"`
	// Attributes in the request's form: "+key" with a value, "-key" without.
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Defaults of a new topic, those of mqadmin.
const (
	defaultQueues = 8
	permReadWrite = 6
)

// Change is what a plan does to a topic on one broker.
type Change struct {
	Broker  string       `json:"broker,omitempty"`
	Addr    string       `json:"addr"`
	Action  string       `json:"action"` // create, update, none, delete
	Before  *TopicBroker `json:"before,omitempty"`
	After   *TopicBroker `json:"after,omitempty"` // nil when the topic goes
	Warning string       `json:"warning,omitempty"`
}

// kindTopic is the kind of a TopicPlan.
const kindTopic = "topic"

// actionRestore is the action of a plan that puts a topic back to what it was.
const actionRestore = "restore"

// TopicPlan is a change of a topic, planned and not yet done.
type TopicPlan struct {
	Action  string // create, delete, restore
	Cluster []string
	Topic   string
	Changes []Change
	// Unread counts messages of groups that a deletion would destroy unread, or
	// that lie in queues which would no longer be read.
	Unread []UnreadGroup
	Groups []string // that consume the topic which is deleted
	Errors []TargetError

	target  Target
	spec    TopicSpec
	brokers []Broker // of Changes, but for one of the route alone
	// clusters whose brokers all give the topic up: it is taken out of their routes.
	clusters []string
}

// UnreadGroup is a group with messages left to read in a queue.
type UnreadGroup struct {
	Group   string
	Broker  string
	QueueID int32
	Count   int64
}

// PlanCreateTopic reads the present state on the target's masters and plans the
// creation, or the change of what is there.
func (c *Client) PlanCreateTopic(ctx context.Context, t Target, spec TopicSpec) (*TopicPlan, error) {
	if err := message.ValidateTopic(spec.Name); err != nil {
		return nil, err
	}
	masters, errs, err := c.changeTargets(ctx, t)
	if err != nil {
		return nil, err
	}
	if topicKind(spec.Name, ownNames(masters)) == KindSystem {
		return nil, fmt.Errorf("cannot create topic %q: brokers keep that name for themselves", spec.Name)
	}
	p := &TopicPlan{Action: ActionCreate, Topic: spec.Name, Cluster: clustersOf(masters), target: t, spec: spec, Errors: errs}
	before, errs := c.readTopic(ctx, spec.Name, masters)
	p.Errors = append(p.Errors, errs...)
	for _, b := range masters {
		was, asked := before[b]
		if asked {
			p.Changes = append(p.Changes, planCreate(b, spec, was))
			p.brokers = append(p.brokers, b)
		}
	}
	p.Errors = append(p.Errors, c.unreadInLostQueues(ctx, p)...)
	return p, nil
}

// unreadInLostQueues finds what groups have not read in queues that the plan takes
// away from readers.
func (c *Client) unreadInLostQueues(ctx context.Context, p *TopicPlan) []TargetError {
	keeps := map[string]int32{}
	var shrinking []Broker
	for i, ch := range p.Changes {
		if ch.Before != nil && ch.After.ReadQueues < ch.Before.ReadQueues {
			keeps[ch.Broker] = int32(ch.After.ReadQueues)
			shrinking = append(shrinking, p.brokers[i])
		}
	}
	if len(shrinking) == 0 {
		return nil
	}
	all, _, errs := c.unread(ctx, p.Topic, shrinking)
	for _, u := range all {
		if u.QueueID >= keeps[u.Broker] {
			p.Unread = append(p.Unread, u)
		}
	}
	return errs
}

// readTopic reads a topic on several brokers; one that does not have it maps to nil,
// one that did not answer is in the errors only.
func (c *Client) readTopic(ctx context.Context, name string, brokers []Broker) (map[Broker]*TopicBroker, []TargetError) {
	out := map[Broker]*TopicBroker{}
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		tc, err := c.topicConfig(ctx, b.Addr, name)
		if err != nil && !hasCode(err, remoting.RespTopicNotExist) {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		out[b] = nil
		if err == nil {
			tb := topicBroker(b, *tc)
			out[b] = &tb
		}
		return nil
	})
	return out, errs
}

func clustersOf(brokers []Broker) []string {
	var out []string
	for _, b := range brokers {
		if b.Cluster != "" {
			out = append(out, b.Cluster)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// planCreate is what a spec means for one broker.
func planCreate(b Broker, spec TopicSpec, was *TopicBroker) Change {
	base := TopicBroker{Cluster: b.Cluster, Broker: b.Name, Addr: b.Addr, ReadQueues: defaultQueues, WriteQueues: defaultQueues, Perm: permReadWrite}
	ch := Change{Broker: b.Name, Addr: b.Addr, Action: ActionCreate, Before: was}
	switch {
	case was != nil && spec.Exact:
		base.Attributes = was.Attributes
	case was != nil:
		base = *was
	}
	after := base
	after.ReadQueues = cmp.Or(spec.ReadQueues, base.ReadQueues)
	after.WriteQueues = cmp.Or(spec.WriteQueues, base.WriteQueues)
	after.Perm = cmp.Or(spec.Perm, base.Perm)
	after.Order = base.Order || spec.Order
	after.SysFlag = base.SysFlag | sysFlag(spec)
	after.Attributes = withAttributes(base.Attributes, spec.Attributes)
	ch.After = &after
	if was == nil {
		return ch
	}
	ch.Action = ActionUpdate
	if sameTopic(was, &after) {
		ch.Action = ActionNone
	}
	if after.ReadQueues < was.ReadQueues {
		lost := fmt.Sprintf("queues %d to %d are", after.ReadQueues, was.ReadQueues-1)
		if after.ReadQueues == was.ReadQueues-1 {
			lost = fmt.Sprintf("queue %d is", after.ReadQueues)
		}
		ch.Warning = lost + " no longer read: what consumers have not read there stays unread"
	}
	return ch
}

func sameTopic(a, b *TopicBroker) bool {
	return a.ReadQueues == b.ReadQueues && a.WriteQueues == b.WriteQueues && a.Perm == b.Perm && a.Order == b.Order &&
		a.SysFlag == b.SysFlag && maps.Equal(a.Attributes, b.Attributes)
}

// sysFlag is the flag that mqadmin builds from its unit options.
func sysFlag(s TopicSpec) int {
	flag := 0
	if s.Unit {
		flag |= 1
	}
	if s.HasUnitSub {
		flag |= 2
	}
	return flag
}

// withAttributes applies +key and -key to attributes.
func withAttributes(base, change map[string]string) map[string]string {
	out := maps.Clone(base)
	for key, value := range change {
		if name, ok := strings.CutPrefix(key, "-"); ok {
			delete(out, name)
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[strings.TrimPrefix(key, "+")] = value
	}
	return out
}

// attributeText is a change of attributes as the request carries it: +key=value,-key.
func attributeText(change map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(change)) {
		if strings.HasPrefix(key, "-") {
			parts = append(parts, key)
			continue
		}
		parts = append(parts, "+"+strings.TrimPrefix(key, "+")+"="+change[key])
	}
	return strings.Join(parts, ",")
}

// PlanDeleteTopic plans the deletion of a topic on the target's masters and at the name
// servers, and counts what groups have not read yet.
func (c *Client) PlanDeleteTopic(ctx context.Context, t Target, name string) (*TopicPlan, error) {
	if err := message.ValidateTopic(name); err != nil {
		return nil, err
	}
	masters, errs, err := c.changeTargets(ctx, t)
	if err != nil {
		return nil, err
	}
	if topicKind(name, ownNames(masters)) == KindSystem {
		return nil, fmt.Errorf("cannot delete topic %q: brokers keep it for themselves", name)
	}
	return c.planDelete(ctx, t, name, masters, errs)
}

// planDelete plans the deletion of a topic on masters. errs are of brokers that
// cannot be asked.
func (c *Client) planDelete(ctx context.Context, t Target, name string, masters []Broker, errs []TargetError) (*TopicPlan, error) {
	p := &TopicPlan{Action: ActionDelete, Topic: name, Cluster: clustersOf(masters), target: t, Errors: errs}
	before, errs := c.readTopic(ctx, name, masters)
	p.Errors = append(p.Errors, errs...)
	var err error
	var asked []Broker
	for _, b := range masters {
		was, ok := before[b]
		if ok {
			asked = append(asked, b)
		}
		if was != nil {
			p.Changes = append(p.Changes, Change{Broker: b.Name, Addr: b.Addr, Action: ActionDelete, Before: was})
			p.brokers = append(p.brokers, b)
		}
	}
	if p.clusters, err = c.wholeClusters(ctx, asked); err != nil {
		return nil, err
	}
	if len(p.Changes) == 0 && len(p.Errors) == 0 {
		if _, err := c.route(ctx, name); err != nil {
			return nil, err
		}
		p.Changes = []Change{{Addr: c.ns.Current(), Action: ActionDelete, Warning: "no broker has the topic, only a route is left"}}
	}
	p.Unread, p.Groups, errs = c.unread(ctx, name, p.brokers)
	p.Errors = append(p.Errors, errs...)
	return p, nil
}

// wholeClusters are the clusters of which brokers holds every broker name.
func (c *Client) wholeClusters(ctx context.Context, brokers []Broker) ([]string, error) {
	all, err := c.primaries(ctx, Target{})
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	for _, b := range all {
		count[b.Cluster]++
	}
	for _, b := range brokers {
		count[b.Cluster]--
	}
	var out []string
	for _, cluster := range clustersOf(brokers) {
		if count[cluster] == 0 {
			out = append(out, cluster)
		}
	}
	return out, nil
}

// unread counts what each group has not read of a topic, by queue, and names the
// groups that consume it.
func (c *Client) unread(ctx context.Context, topic string, brokers []Broker) (out []UnreadGroup, all []string, errs []TargetError) {
	errs = c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		groups, err := c.topicGroups(ctx, b.Addr, topic)
		if err != nil {
			return err
		}
		mu.Lock()
		all = append(all, groups...)
		mu.Unlock()
		for _, g := range groups {
			stats, err := c.consumeStats(ctx, b.Addr, g, topic)
			if hasCode(err, remoting.RespSubscriptionGroupNotExist) {
				continue
			}
			if err != nil {
				return fmt.Errorf("cannot ask how far group %q has read: %w", g, err)
			}
			mu.Lock()
			for q, o := range stats.OffsetTable {
				if q.Topic == topic && o.BrokerOffset > o.ConsumerOffset {
					out = append(out, UnreadGroup{Group: g, Broker: b.Name, QueueID: q.QueueID, Count: o.BrokerOffset - o.ConsumerOffset})
				}
			}
			mu.Unlock()
		}
		return nil
	})
	sorted.By(out, func(a, b UnreadGroup) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.QueueID, b.QueueID))
	})
	slices.Sort(all)
	return out, slices.Compact(all), errs
}
