package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"mqx/internal/fastjson"
	"mqx/internal/words"
	"mqx/message"
	"mqx/remoting"
)

// kindStatic is the kind of a plan of a static topic.
const kindStatic = "static"

// StaticPlan makes a static topic, gives one more queues, or lets other brokers lead them.
type StaticPlan struct {
	Topic         string
	Remap         bool
	Before, After map[string]*StaticState // by broker
	Ins, Outs     []string                // brokers that get queues, and that lose some

	masters map[string]Broker
	resumed bool // some brokers have been told before: what they had then is not known
}

// PlanStatic plans a static topic of so many queues on the targets (all masters of a
// cluster when none is named), or more queues for one that is there.
func (c *Client) PlanStatic(ctx context.Context, on Target, targets []string, topic string, queues int) (*StaticPlan, error) {
	if err := message.ValidateTopic(topic); err != nil {
		return nil, err
	}
	if queues < 1 || queues > maxStaticQueues {
		return nil, invalidf("cannot make static topic %s with %s: 1 to %d", topic, words.Count(queues, "queue"), maxStaticQueues)
	}
	p, targets, err := c.readStatic(ctx, on, targets, topic)
	if err != nil {
		return nil, err
	}
	after, err := staticLayout(p.Before).grow(topic, int32(queues), targets, slices.Collect(maps.Keys(p.masters)), time.Now().UnixMilli())
	p.After = after
	return p, err
}

// maxStaticQueues bounds a static topic.
const maxStaticQueues = 1024

// PlanStaticRemap plans to spread the queues of a static topic over the targets.
func (c *Client) PlanStaticRemap(ctx context.Context, on Target, targets []string, topic string) (*StaticPlan, error) {
	p, targets, err := c.readStatic(ctx, on, targets, topic)
	if err != nil {
		return nil, err
	}
	if len(p.Before) == 0 {
		return nil, &NotFoundError{Kind: "topic", Name: topic}
	}
	after, ins, outs, err := staticLayout(p.Before).remap(topic, targets, time.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	p.moved(after, ins, outs)
	return p, nil
}

// moved makes p the plan of a remap. Masters that have nothing of the topic yet are told
// of it too.
func (p *StaticPlan) moved(after staticLayout, ins, outs []string) {
	var told *StaticState
	for _, s := range after {
		told = s
	}
	for name := range p.masters {
		if after[name] == nil {
			s := after.at(name, p.Topic)
			s.Mapping.Epoch, s.Mapping.TotalQueues = told.Mapping.Epoch, told.Mapping.TotalQueues
		}
	}
	p.Remap, p.After, p.Ins, p.Outs = true, after, ins, outs
}

// staticUndo is what takes a remap back: who led the queues that moved, and the epoch that
// it left. It is a remap of its own, since a mapping only goes forward.
type staticUndo struct {
	Topic   string           `json:"topic"`
	Cluster string           `json:"cluster"`
	Epoch   int64            `json:"epoch"`
	Leaders map[int32]string `json:"leaders"`
}

// undone is the undo of a remap that has been done, nil where it moved nothing.
func (p *StaticPlan) undone() *staticUndo {
	u := &staticUndo{Topic: p.Topic, Leaders: map[int32]string{}}
	for _, name := range p.Outs {
		u.Cluster, u.Epoch = p.masters[name].Cluster, p.After[name].Mapping.Epoch
		for id, items := range p.Before[name].Mapping.HostedQueues {
			if leader(items) == name && leader(p.After[name].Mapping.HostedQueues[id]) != name {
				u.Leaders[id] = name
			}
		}
	}
	if len(u.Leaders) == 0 {
		return nil
	}
	return u
}

// undoStatic plans to let the brokers lead queues again that led them before a remap.
func undoStatic(ctx context.Context, c *Client, object string, undo []byte) ([]Plan, error) {
	u, err := readSaved[staticUndo](kindStatic, undo)
	if err != nil {
		return nil, err
	}
	p, _, err := c.readStatic(ctx, Target{Cluster: u.Cluster}, nil, u.Topic)
	if err != nil {
		return nil, err
	}
	if len(p.Before) == 0 {
		return nil, &NotFoundError{Kind: "topic", Name: u.Topic}
	}
	_, _, epoch, err := staticLayout(p.Before).leaders()
	if err != nil {
		return nil, err
	}
	if epoch != u.Epoch {
		return nil, &ChangedError{Kind: "topic", Object: object, Differences: []string{"its queues have been mapped anew since"}}
	}
	after, ins, outs, err := staticLayout(p.Before).lead(u.Topic, u.Leaders, time.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	p.moved(after, ins, outs)
	return []Plan{p}, nil
}

// readStatic reads what the brokers of a cluster have of a static topic. Every master must
// tell: a mapping is only right on all of them.
func (c *Client) readStatic(ctx context.Context, on Target, targets []string, topic string) (*StaticPlan, []string, error) {
	masters, errs, err := c.changeTargets(ctx, on)
	if err != nil {
		return nil, nil, err
	}
	if len(errs) > 0 {
		return nil, nil, errs[0]
	}
	p := &StaticPlan{Topic: topic, Before: staticLayout{}, masters: map[string]Broker{}}
	for _, b := range masters {
		p.masters[b.Name] = b
	}
	if len(targets) == 0 {
		targets = slices.Collect(maps.Keys(p.masters))
	}
	slices.Sort(targets)
	targets = slices.Compact(targets)
	for _, name := range targets {
		if _, ok := p.masters[name]; !ok {
			return nil, nil, &NotFoundError{Kind: "broker", Name: name}
		}
	}
	ordinary := ""
	errs = c.each(masters, func(mu *sync.Mutex, b Broker) error {
		s, err := c.staticState(ctx, b, topic)
		if err != nil || s == nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if s.Mapping.Epoch == 0 {
			ordinary = b.Name
		}
		p.Before[b.Name] = s
		return nil
	})
	switch {
	case len(errs) > 0:
		return nil, nil, errs[0]
	case ordinary != "":
		return nil, nil, invalidf("cannot use topic %s as a static one: it is an ordinary topic on %s, and those cannot be made static", topic, ordinary)
	}
	return p, targets, nil
}

// staticState is what a broker has of a topic: nil for nothing, without an epoch where the
// topic is no static one.
func (c *Client) staticState(ctx context.Context, b Broker, topic string) (*StaticState, error) {
	h := &remoting.GetTopicConfigHeader{Topic: topic}
	h.Lo = remoting.Some(true)
	tc, err := askBody[remoting.TopicConfigAndMapping](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqGetTopicConfig, h))
	if hasCode(err, remoting.RespTopicNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &StaticState{ReadQueues: tc.ReadQueueNums, WriteQueues: tc.WriteQueueNums, Perm: tc.Perm}
	if tc.MappingDetail != nil {
		s.Mapping = *tc.MappingDetail
		if s.Mapping.HostedQueues == nil {
			s.Mapping.HostedQueues = map[int32][]remoting.LogicQueueMappingItem{}
		}
	}
	return s, nil
}

// Kind is kindStatic.
func (p *StaticPlan) Kind() string { return kindStatic }

// Object is the topic.
func (p *StaticPlan) Object() string { return p.Topic }

// Title says what is done.
func (p *StaticPlan) Title() string {
	switch {
	case p.Remap:
		return "let other brokers lead queues of static topic " + p.Topic
	case len(p.Before) == 0:
		return "create static topic " + p.Topic
	}
	return "give static topic " + p.Topic + " more queues"
}

// Clusters are those of the brokers.
func (p *StaticPlan) Clusters() []string {
	var out []string
	for _, b := range p.masters {
		out = append(out, b.Cluster)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Steps are the brokers in the order in which they are told.
func (p *StaticPlan) Steps() []Step {
	var out []Step
	for _, name := range p.order() {
		out = append(out, p.step(name, p.After[name]))
	}
	return out
}

func (p *StaticPlan) step(name string, is *StaticState) Step {
	s := Step{Broker: name, Addr: p.masters[name].Addr, Action: ActionUpdate, After: *is}
	switch was := p.Before[name]; {
	case was == nil:
		s.Action = ActionCreate
	case was.Mapping.Epoch == is.Mapping.Epoch:
		s.Action, s.Before = ActionNone, *was
	default:
		s.Before = *was
	}
	return s
}

// order is who is told when: first who loses queues, then who gets some, then all others.
func (p *StaticPlan) order() []string {
	first, then := p.Outs, p.Ins
	if !p.Remap {
		first = nil
		for name, s := range p.After {
			if len(s.Mapping.HostedQueues) > 0 {
				first = append(first, name)
			}
		}
		slices.Sort(first)
	}
	out := slices.Concat(first, then)
	for _, name := range slices.Sorted(maps.Keys(p.After)) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Notes say what a remap means for those who send.
func (p *StaticPlan) Notes() []Note {
	if len(p.Outs) == 0 {
		return nil
	}
	return []Note{
		{"closed", "a queue takes no messages from when its old leader has been told until the new one has"},
		{"offsets", fmt.Sprintf("a queue that moves goes on at the next multiple of %d: the offsets between hold no messages", staticBlock)},
	}
}

// Missing is empty: a plan needs all brokers.
func (p *StaticPlan) Missing() []TargetError { return nil }

// Destroys is false.
func (p *StaticPlan) Destroys() bool { return false }

// savedStatic is the written form of a plan.
type savedStatic struct {
	Topic  string                  `json:"topic"`
	Remap  bool                    `json:"remap,omitempty"`
	Before map[string]*StaticState `json:"before"`
	After  map[string]*StaticState `json:"after"`
	Ins    []string                `json:"ins,omitempty"`
	Outs   []string                `json:"outs,omitempty"`
}

// Saved holds the mapping of every broker before and after.
func (p *StaticPlan) Saved() any {
	return &savedStatic{p.Topic, p.Remap, p.Before, p.After, p.Ins, p.Outs}
}

// replanStatic goes on with a plan that was not begun, or was broken off: each broker must
// have the mapping from before it, or the one that it wants.
func replanStatic(ctx context.Context, c *Client, saved []byte) (Plan, error) {
	s, err := readSaved[savedStatic](kindStatic, saved)
	if err != nil {
		return nil, err
	}
	p := &StaticPlan{Topic: s.Topic, Remap: s.Remap, Before: staticLayout{}, After: s.After, Ins: s.Ins, Outs: s.Outs, masters: map[string]Broker{}}
	names := slices.Sorted(maps.Keys(s.After))
	masters, err := c.masters(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, b := range masters {
		p.masters[b.Name] = b
	}
	ch := &ChangedError{Kind: "topic", Object: s.Topic}
	for _, name := range names {
		b, ok := p.masters[name]
		if !ok {
			ch.Differences = append(ch.Differences, "broker "+name+" has no master")
			continue
		}
		now, err := c.staticState(ctx, b, s.Topic)
		if err != nil {
			return nil, err
		}
		was := s.Before[name]
		switch {
		case now == nil && was == nil:
		case now != nil && now.Mapping.Epoch == s.After[name].Mapping.Epoch:
			p.Before[name], p.resumed = now, true
			for id, items := range now.Mapping.HostedQueues { // what was decided stays so
				if n := len(items); n > 0 && items[n-1].LogicOffset >= 0 {
					staticLayout(p.After).decide(id, items[n-1].LogicOffset)
				}
			}
		case now != nil && was != nil && now.Mapping.Epoch == was.Mapping.Epoch:
			p.Before[name] = now
		default:
			ch.Differences = append(ch.Differences, "the mapping of broker "+name)
		}
	}
	if len(ch.Differences) > 0 {
		return nil, ch
	}
	return p, nil
}

// errStaticFinal is why a static topic that was made, or has more queues, is not undone.
var errStaticFinal = errors.New("the queues of a static topic cannot become fewer: mqx admin topic rm deletes it")

// errStaticResumed is why a remap that was gone on with is not undone.
var errStaticResumed = errors.New("it was gone on with after a break: map the queues once more")

// Apply tells the brokers. In a remap the old leaders are told first, so that nobody
// writes when the offset is read that the new leader goes on behind; only then is the new
// leader opened. (Apache's tool opens it first; it then answers sends with offset -1.) When
// a broker fails nothing further is done: applying the saved plan again goes on.
func (p *StaticPlan) Apply(ctx context.Context, c *Client) (*Applied, error) {
	done := &Applied{Final: errStaticFinal}
	told := map[string]bool{}
	tell := func(names []string) bool {
		for _, name := range names {
			is := p.After[name]
			if !told[name] {
				done.Steps = append(done.Steps, p.step(name, is))
			}
			told[name] = true
			if err := c.tellStatic(ctx, p.masters[name], p.Topic, is); err != nil {
				done.Errors = append(done.Errors, brokenOff(p.masters[name], err))
				return false
			}
		}
		return true
	}
	if p.Remap {
		if !tell(p.Outs) {
			return done, nil
		}
		if err := c.decideOffsets(ctx, p); err != nil {
			done.Errors = append(done.Errors, brokenOff(Broker{}, err))
			return done, nil
		}
		if !tell(p.Ins) || !tell(p.Outs) {
			return done, nil
		}
	}
	if !tell(slices.DeleteFunc(p.order(), func(name string) bool { return told[name] })) || !p.Remap {
		return done, nil
	}
	if u := p.undone(); p.resumed {
		done.Final = errStaticResumed
	} else if u != nil {
		done.Undo, done.Final = u, nil
	}
	return done, nil
}

// brokenOff is the failure of a change whose rest was left undone.
func brokenOff(b Broker, err error) TargetError {
	return TargetError{Broker: b.Name, Addr: b.Addr, Err: fmt.Errorf("%w; the change was broken off, and the saved plan goes on with it", err)}
}

// tellStatic writes the mapping of a broker and reads it back.
func (c *Client) tellStatic(ctx context.Context, b Broker, topic string, s *StaticState) error {
	body, err := fastjson.Marshal(&s.Mapping)
	if err != nil {
		return fmt.Errorf("cannot write mapping of topic %q: %w", topic, err)
	}
	req := remoting.NewRequest(remoting.ReqUpdateAndCreateStaticTopic, &remoting.CreateTopicHeader{
		Topic: topic, DefaultTopic: message.TopicAutoCreate, ReadQueueNums: s.ReadQueues, WriteQueueNums: s.WriteQueues,
		Perm: s.Perm, TopicFilterType: remoting.FilterSingleTag,
	})
	req.Fields.SetBool("force", false)
	req.Body = body
	if _, err := c.ask(ctx, b.Addr, req); err != nil {
		return err
	}
	now, err := c.staticState(ctx, b, topic)
	switch {
	case err != nil:
		return fmt.Errorf("cannot read back topic %q: %w", topic, err)
	case now == nil || now.Mapping.Epoch != s.Mapping.Epoch || now.ReadQueues != s.ReadQueues || !sameHosted(now, s):
		return fmt.Errorf("cannot see the change of topic %q: the mapping that is read back is another", topic)
	}
	return nil
}

// sameHosted compares queues; the broker may know more of those it once led.
func sameHosted(now, want *StaticState) bool {
	for id, items := range want.Mapping.HostedQueues {
		if !reflect.DeepEqual(now.Mapping.HostedQueues[id], items) {
			return false
		}
	}
	return true
}

// staticStill is how long the end of a queue must stay where it is before it counts.
const staticStill = 500 * time.Millisecond

// decideOffsets reads where the queues end that lose their leader and lets the new one
// begin behind that.
func (c *Client) decideOffsets(ctx context.Context, p *StaticPlan) error {
	layout := staticLayout(p.After)
	for _, name := range p.Outs {
		ends, err := c.stillEnds(ctx, p.masters[name], p.Topic)
		if err != nil {
			return err
		}
		hosted := p.After[name].Mapping.HostedQueues
		for _, id := range slices.Sorted(maps.Keys(hosted)) {
			items := hosted[id]
			if n := len(items); n < 2 || items[n-1].LogicOffset >= 0 || items[n-2].BName != name {
				continue
			}
			old := items[len(items)-2]
			end, ok := ends[old.QueueID]
			if !ok {
				return fmt.Errorf("cannot tell where queue %d of broker %q ends: the broker does not say", old.QueueID, name)
			}
			layout.decide(id, afterBlock(old.LogicOffset+end-old.StartOffset))
		}
	}
	return nil
}

// stillEnds are the ends of a broker's physical queues, read twice.
func (c *Client) stillEnds(ctx context.Context, b Broker, topic string) (map[int32]int64, error) {
	var last map[int32]int64
	for {
		stats, err := c.topicStats(ctx, b.Addr, topic)
		if err != nil {
			return nil, fmt.Errorf("cannot tell where the queues of topic %q end: %w", topic, err)
		}
		ends := map[int32]int64{}
		for q, o := range stats.OffsetTable {
			if q.BrokerName == b.Name {
				ends[q.QueueID] = o.MaxOffset
			}
		}
		if last != nil && maps.Equal(last, ends) {
			return ends, nil
		}
		last = ends
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(staticStill):
		}
	}
}
