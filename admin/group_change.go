package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"mqx/internal/fastjson"
	"mqx/internal/words"
	"mqx/message"
	"mqx/remoting"
)

// kindGroup is the kind of a plan that changes groups.
const kindGroup = "group"

// GroupSpec is a group to create or to change. What is nil stays as the group has it.
type GroupSpec struct {
	Name string
	// MustExist refuses a group that no broker has; on a broker that alone lacks it,
	// it is made.
	MustExist bool
	// Exact makes what is not given the default of mqadmin, whatever the group has.
	Exact bool

	Consume, FromMin, Broadcast, Order, Notify *bool
	RetryQueues, Retries, TimeoutMinutes       *int32
	ReadBroker, SlowBroker                     *int64 // broker ids to consume from
	Policy                                     *remoting.GroupRetryPolicy
	Attributes                                 map[string]string // "+key" with a value, "-key" without
}

// GroupState is the configuration of a group on a broker, as a step shows it.
type GroupState struct {
	Consume       bool              `json:"consume" yaml:"consume"`
	FromMin       bool              `json:"fromMin" yaml:"fromMin"`
	Broadcast     bool              `json:"broadcast" yaml:"broadcast"`
	Order         bool              `json:"order" yaml:"order"`
	RetryQueues   int32             `json:"retryQueues" yaml:"retryQueues"`
	Retries       int32             `json:"retries" yaml:"retries"`
	RetryPolicy   string            `json:"retryPolicy" yaml:"retryPolicy"`
	Notify        bool              `json:"notify" yaml:"notify"`
	ReadBroker    int64             `json:"readBroker" yaml:"readBroker"`
	SlowBroker    int64             `json:"slowBroker" yaml:"slowBroker"`
	TimeoutMinute int32             `json:"timeoutMinutes" yaml:"timeoutMinutes"`
	Attributes    map[string]string `json:"attributes,omitempty" yaml:"attributes,omitempty"`
	// Config is the whole of it, as Apache's tool prints it.
	Config remoting.SubscriptionGroupConfig `json:"-" yaml:"-"`
}

// String is the configuration in a cell of a table.
func (g GroupState) String() string {
	text := "consume"
	if !g.Consume {
		text = "no consume"
	}
	for _, f := range []struct {
		on   bool
		name string
	}{{g.FromMin, "from-min"}, {g.Broadcast, "broadcast"}, {g.Order, "order"}, {!g.Notify, "no notify"}} {
		if f.on {
			text += ", " + f.name
		}
	}
	text += fmt.Sprintf(", retries %d in %s", g.Retries, words.Count(int64(g.RetryQueues), "queue"))
	if g.RetryPolicy != "" {
		text += ", " + g.RetryPolicy
	}
	if g.ReadBroker != 0 || g.SlowBroker != 1 {
		text += fmt.Sprintf(", brokers %d/%d", g.ReadBroker, g.SlowBroker)
	}
	if g.TimeoutMinute != defaultConsumeMinutes {
		text += fmt.Sprintf(", timeout %dm", g.TimeoutMinute)
	}
	for _, k := range slices.Sorted(maps.Keys(g.Attributes)) {
		text += ", " + k + "=" + g.Attributes[k]
	}
	return text
}

const defaultConsumeMinutes = 15

func groupState(g remoting.SubscriptionGroupConfig) any {
	return GroupState{
		g.ConsumeEnable, g.ConsumeFromMinEnable, g.ConsumeBroadcastEnable, g.ConsumeMessageOrderly, g.RetryQueueNums, g.RetryMaxTimes,
		policyText(g.GroupRetryPolicy), g.NotifyConsumerIDsChangedEnable, g.BrokerID, g.WhichBrokerWhenConsumeSlowly, g.ConsumeTimeoutMinute, g.Attributes, g,
	}
}

// policyText is a retry policy in words, "" for the usual one.
func policyText(p remoting.GroupRetryPolicy) string {
	switch {
	case p.Type == remoting.RetryExponential && p.ExponentialRetryPolicy != nil:
		e := p.ExponentialRetryPolicy
		return fmt.Sprintf("exponential %d ms x%d to %d ms", e.Initial, e.Multiplier, e.Max)
	case p.CustomizedRetryPolicy != nil && len(p.CustomizedRetryPolicy.Next) > 0:
		return strings.Trim(fmt.Sprint("customized ", p.CustomizedRetryPolicy.Next, " ms"), "")
	case p.Type == remoting.RetryExponential:
		return "exponential"
	}
	return ""
}

// groupOptions are the options of a plan that takes groups away.
type groupOptions struct {
	KeepOffsets bool `json:"keepOffsets,omitempty"`
	KeepTopics  bool `json:"keepTopics,omitempty"`
}

// errNoGroupUndo is why the deletion of a group cannot be taken back.
var errNoGroupUndo = errors.New("the offsets and the retry and dead letter topics of a deleted group do not come back")

var groupCells = &cellKind[remoting.SubscriptionGroupConfig]{
	kind: kindGroup, what: "group", show: groupState, same: sameGroup,
	read: func(ctx context.Context, c *Client, at Broker, parts []string) (map[string]remoting.SubscriptionGroupConfig, error) {
		table, err := c.groupTable(ctx, at.Addr)
		maps.DeleteFunc(table, func(name string, _ remoting.SubscriptionGroupConfig) bool { return !slices.Contains(parts, name) })
		return table, err
	},
	write: func(ctx context.Context, c *Client, w cellWrite[remoting.SubscriptionGroupConfig]) error {
		if w.Is == nil {
			return c.deleteGroup(ctx, w)
		}
		return c.putGroup(ctx, w)
	},
	final: func(was, is *remoting.SubscriptionGroupConfig) error {
		if is == nil {
			return errNoGroupUndo
		}
		return nil
	},
	settle: func(ctx context.Context, c *Client, p *cellPlan[remoting.SubscriptionGroupConfig], done []cell[remoting.SubscriptionGroupConfig]) []TargetError {
		return c.settleGroups(ctx, p, done)
	},
}

func sameGroup(a, b remoting.SubscriptionGroupConfig) bool {
	return reflect.DeepEqual(plainGroup(a), plainGroup(b))
}

// plainGroup is a configuration in which what says nothing is nil.
func plainGroup(g remoting.SubscriptionGroupConfig) remoting.SubscriptionGroupConfig {
	if len(g.Attributes) == 0 {
		g.Attributes = nil
	}
	if len(g.SubscriptionDataSet) == 0 {
		g.SubscriptionDataSet = nil
	}
	g.GroupRetryPolicy.Type = cmp.Or(g.GroupRetryPolicy.Type, remoting.RetryCustomized)
	return g
}

func (c *Client) putGroup(ctx context.Context, w cellWrite[remoting.SubscriptionGroupConfig]) error {
	g := *w.Is
	var was map[string]string
	if w.Was != nil {
		was = w.Was.Attributes
	}
	g.Attributes = signedAttributes(was, g.Attributes)
	body, err := fastjson.Marshal(&g)
	if err != nil {
		return fmt.Errorf("cannot write group: %w", err)
	}
	req := remoting.NewRequest(remoting.ReqUpdateAndCreateSubscriptionGroup, nil)
	req.Body = body
	_, err = c.ask(ctx, w.At.Addr, req)
	return err
}

// signedAttributes is the change from one set of attributes to another, as requests
// carry it: +key with a value, -key without.
func signedAttributes(was, is map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range is {
		if old, ok := was[k]; !ok || old != v {
			out["+"+k] = v
		}
	}
	for k := range was {
		if _, ok := is[k]; !ok {
			out["-"+k] = ""
		}
	}
	return out
}

func (c *Client) deleteGroup(ctx context.Context, w cellWrite[remoting.SubscriptionGroupConfig]) error {
	var o groupOptions
	if len(w.Options) > 0 {
		if err := json.Unmarshal(w.Options, &o); err != nil {
			return fmt.Errorf("cannot read options of plan: %w", err)
		}
	}
	_, err := c.ask(ctx, w.At.Addr, remoting.NewRequest(remoting.ReqDeleteSubscriptionGroup,
		&remoting.DeleteSubscriptionGroupHeader{GroupName: w.Part, CleanOffset: !o.KeepOffsets}))
	if err != nil || o.KeepTopics {
		return err
	}
	for _, topic := range groupTopics(w.Part) {
		if _, err := c.ask(ctx, w.At.Addr, remoting.NewRequest(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: topic})); err != nil && !hasCode(err, remoting.RespTopicNotExist) {
			return fmt.Errorf("the group is gone, but its topic %q cannot be deleted: %w", topic, err)
		}
	}
	return nil
}

// groupTopics are the topics that brokers make for a group.
func groupTopics(group string) []string {
	return []string{message.RetryTopicPrefix + group, message.DLQTopicPrefix + group}
}

// settleGroups takes the topics of groups that are gone out of the routes of clusters
// which have given them up as a whole.
func (c *Client) settleGroups(ctx context.Context, p *cellPlan[remoting.SubscriptionGroupConfig], done []cell[remoting.SubscriptionGroupConfig]) []TargetError {
	var o groupOptions
	if len(p.options) > 0 && json.Unmarshal(p.options, &o) != nil || o.KeepTopics {
		return nil
	}
	gone := map[string][]Broker{}
	for _, x := range done {
		if x.was != nil && x.is == nil {
			gone[x.part] = append(gone[x.part], x.at)
		}
	}
	var errs []TargetError
	for _, group := range slices.Sorted(maps.Keys(gone)) {
		for _, topic := range groupTopics(group) {
			errs = append(errs, c.dropRoutes(ctx, topic, gone[group])...)
		}
	}
	return errs
}

// dropRoutes takes a topic that brokers have given up out of the routes of those
// clusters of which they are all.
func (c *Client) dropRoutes(ctx context.Context, topic string, brokers []Broker) []TargetError {
	whole, err := c.wholeClusters(ctx, brokers)
	if err != nil {
		return []TargetError{{Addr: c.ns.Current(), Err: err}}
	}
	var errs []TargetError
	for _, cluster := range whole {
		errs = append(errs, c.eachNameServer(ctx, remoting.NewRequest(remoting.ReqDeleteTopicInNamesrv,
			&remoting.DeleteTopicFromNamesrvHeader{Topic: topic, ClusterName: cluster}))...)
	}
	return errs
}

// apply is the configuration that a spec makes of one, or of a new group.
func (s *GroupSpec) apply(was *remoting.SubscriptionGroupConfig) *remoting.SubscriptionGroupConfig {
	g := remoting.NewSubscriptionGroupConfig(s.Name)
	g.ConsumeBroadcastEnable, g.ConsumeFromMinEnable = false, false // as mqadmin makes them
	switch {
	case was != nil && s.Exact:
		g.Attributes, g.SubscriptionDataSet = was.Attributes, was.SubscriptionDataSet
	case was != nil:
		g = *was
	}
	set(&g.ConsumeEnable, s.Consume)
	set(&g.ConsumeFromMinEnable, s.FromMin)
	set(&g.ConsumeBroadcastEnable, s.Broadcast)
	set(&g.ConsumeMessageOrderly, s.Order)
	set(&g.NotifyConsumerIDsChangedEnable, s.Notify)
	set(&g.RetryQueueNums, s.RetryQueues)
	set(&g.RetryMaxTimes, s.Retries)
	set(&g.ConsumeTimeoutMinute, s.TimeoutMinutes)
	set(&g.BrokerID, s.ReadBroker)
	set(&g.WhichBrokerWhenConsumeSlowly, s.SlowBroker)
	set(&g.GroupRetryPolicy, s.Policy)
	g.Attributes = withAttributes(g.Attributes, s.Attributes)
	return &g
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// PlanGroup plans to create a group on the target's masters, or to change it where it
// is. With MustExist, a group that none of them has is a *NotFoundError.
func (c *Client) PlanGroup(ctx context.Context, t Target, spec GroupSpec) (Plan, error) {
	if err := changeableGroup(spec.Name); err != nil {
		return nil, err
	}
	verb := "create"
	if spec.MustExist {
		verb = "change"
	}
	p, err := groupCells.plan(ctx, c, onMasters(t), spec.Name, verb+" group "+spec.Name, wanted[remoting.SubscriptionGroupConfig]{
		parts: []string{spec.Name},
		make: func(_ Broker, _ string, was *remoting.SubscriptionGroupConfig) (*remoting.SubscriptionGroupConfig, error) {
			return spec.apply(was), nil
		},
	})
	if err != nil {
		return nil, err
	}
	if spec.MustExist && len(p.missing) == 0 && !slices.ContainsFunc(p.cells, func(x cell[remoting.SubscriptionGroupConfig]) bool { return x.was != nil }) {
		return nil, &NotFoundError{Kind: "group", Name: spec.Name}
	}
	return p, nil
}

func changeableGroup(name string) error {
	if err := message.ValidateGroup(name); err != nil {
		return err
	}
	if message.IsSystemGroup(name) {
		return fmt.Errorf("cannot change group %q: brokers keep it for themselves", name)
	}
	return nil
}

// PlanPutGroups plans to make groups what configurations say, on each of the target's
// masters; title says what it is for.
func (c *Client) PlanPutGroups(ctx context.Context, t Target, object, title string, configs []remoting.SubscriptionGroupConfig) (Plan, error) {
	want := wanted[remoting.SubscriptionGroupConfig]{}
	byName := map[string]remoting.SubscriptionGroupConfig{}
	for _, g := range configs {
		if err := changeableGroup(g.GroupName); err != nil {
			return nil, err
		}
		if _, twice := byName[g.GroupName]; twice {
			return nil, invalidf("cannot use groups: %q comes twice", g.GroupName)
		}
		byName[g.GroupName] = g
		want.parts = append(want.parts, g.GroupName)
	}
	slices.Sort(want.parts)
	want.make = func(_ Broker, part string, _ *remoting.SubscriptionGroupConfig) (*remoting.SubscriptionGroupConfig, error) {
		g := byName[part]
		return &g, nil
	}
	return groupCells.plan(ctx, c, onMasters(t), object, title, want)
}

// GroupRemoval says what of a group stays.
type GroupRemoval struct {
	KeepOffsets bool // they are there again when the group is made again
	KeepTopics  bool // the retry and the dead letter topic
}

// PlanDeleteGroup plans to take a group away from the target's masters, with its
// offsets, its retry and its dead letter topic. Who is online, what it has not read
// and what lies in its dead letter topic are in the notes.
func (c *Client) PlanDeleteGroup(ctx context.Context, t Target, name string, r GroupRemoval) (Plan, error) {
	if err := changeableGroup(name); err != nil {
		return nil, err
	}
	p, err := groupCells.plan(ctx, c, onMasters(t), name, "delete group "+name, wanted[remoting.SubscriptionGroupConfig]{
		parts: []string{name},
		make: func(Broker, string, *remoting.SubscriptionGroupConfig) (*remoting.SubscriptionGroupConfig, error) {
			return nil, nil
		},
	})
	if err != nil {
		return nil, err
	}
	p.cells = slices.DeleteFunc(p.cells, func(x cell[remoting.SubscriptionGroupConfig]) bool { return x.was == nil })
	if len(p.cells)+len(p.missing) == 0 {
		return nil, &NotFoundError{Kind: "group", Name: name}
	}
	if p.options, err = json.Marshal(groupOptions(r)); err != nil {
		return nil, fmt.Errorf("cannot write options of plan: %w", err)
	}
	var brokers []Broker
	for _, x := range p.cells {
		brokers = append(brokers, x.at)
	}
	notes, errs := c.groupNotes(ctx, name, brokers, !r.KeepTopics)
	p.notes, p.missing = notes, append(p.missing, errs...)
	return p, nil
}

// maxNotes bounds the lines that a plan has about queues.
const maxNotes = 100

// groupNotes says who is online in a group, what it has not read, and what lies in
// its dead letter topic.
func (c *Client) groupNotes(ctx context.Context, group string, brokers []Broker, dlq bool) ([]Note, []TargetError) {
	on := newOnline()
	var unread, dead []string
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		conns, err := c.connections(ctx, b.Addr, group)
		if err != nil {
			return err
		}
		stats, err := c.consumeStats(ctx, b.Addr, group, "")
		if err != nil && !hasCode(err, remoting.RespSubscriptionGroupNotExist) && !hasCode(err, remoting.RespTopicNotExist) {
			return fmt.Errorf("cannot ask how far group %q has read: %w", group, err)
		}
		var dlqStats *remoting.TopicStatsTable
		if dlq {
			if dlqStats, err = c.topicStats(ctx, b.Addr, message.DLQTopicPrefix+group); err != nil && !hasCode(err, remoting.RespTopicNotExist) {
				return fmt.Errorf("cannot ask what lies in its dead letter topic: %w", err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		on.add(conns)
		if stats != nil {
			for q, o := range stats.OffsetTable {
				if n := o.BrokerOffset - o.ConsumerOffset; n > 0 {
					unread = append(unread, fmt.Sprintf("%s of topic %s in queue %d of %s not read by it", words.Count(n, "message"), q.Topic, q.QueueID, b.Name))
				}
			}
		}
		if dlqStats != nil {
			for q, o := range dlqStats.OffsetTable {
				if n := o.MaxOffset - o.MinOffset; n > 0 {
					dead = append(dead, fmt.Sprintf("%s of its dead letter topic in queue %d of %s would be lost", words.Count(n, "message"), q.QueueID, b.Name))
				}
			}
		}
		return nil
	})
	var notes []Note
	for _, id := range slices.Sorted(maps.Keys(on.members)) {
		notes = append(notes, Note{"online", "client " + id + " at " + on.members[id].Addr + " would make the group again where brokers create groups by themselves"})
	}
	notes = append(notes, noteLines("unread", unread)...)
	return append(notes, noteLines("dead", dead)...), errs
}

// noteLines makes notes of lines, sorted, not too many.
func noteLines(word string, lines []string) []Note {
	slices.Sort(lines)
	var out []Note
	for i, l := range lines {
		if i == maxNotes {
			return append(out, Note{word, fmt.Sprintf("… and %s more", words.Count(len(lines)-i, "line"))})
		}
		out = append(out, Note{word, l})
	}
	return out
}
