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
	"time"

	"mqx/internal/sorted"
	"mqx/internal/words"
	"mqx/message"
	"mqx/remoting"
)

// What happens to the retry topics of a group whose offsets are set.
const (
	RetryKeep = "keep" // what waits there is given to the group as before
	RetrySkip = "skip" // it is passed over
)

// OffsetSpec is what offsets are to become.
type OffsetSpec struct {
	Group  string   `json:"group"`
	On     Target   `json:"on"`
	Topics []string `json:"topics,omitempty"` // empty: all that the group reads, or that the target names
	Queue  *int32   `json:"queue,omitempty"`  // only the queues with this id
	To     OffsetTo `json:"to"`
	Retry  string   `json:"retry,omitempty"` // RetryKeep (default), RetrySkip
	// KeepSkipped copies the messages that would be skipped into the dead letters of the
	// group before its offsets move; no more than MaxKept of them.
	KeepSkipped bool  `json:"keepSkipped,omitempty"`
	MaxKept     int64 `json:"maxKept,omitempty"`
}

// DefaultMaxKept bounds the messages that are copied into dead letters.
const DefaultMaxKept = 10_000

// Ways to set an offset.
const (
	viaCommit = "commit" // UPDATE_CONSUMER_OFFSET: the group is offline
	viaReset  = "reset"  // INVOKE_BROKER_TO_RESET_OFFSET: the broker tells the member at its next pull
	viaTell   = "tell"   // the same at a broker that has the members told, by time and for all queues
)

// offsetStep sets the offset of one queue.
type offsetStep struct {
	QueueID
	Cluster string
	Addr    string
	Retry   bool
	Before  remoting.Opt[int64]
	Move    OffsetMove
	From    int64 // the first message that is skipped
	Via     string
	Warning string
}

// kindOffset is the kind of an OffsetPlan.
const kindOffset = "offset"

// OffsetPlan is a change of the offsets of a group, planned and not yet done.
type OffsetPlan struct {
	spec     OffsetSpec
	clusters []string
	brokers  map[string]bool // names of those asked for
	steps    []offsetStep
	online   bool
	members  []string
	kind     string // of the members: CONSUME_PASSIVELY, …
	waiting  map[string]int64
	missing  []TargetError
	undoes   bool
}

// offsetSource is what one broker tells about the group.
type offsetSource struct {
	b       Broker
	offsets *offsetTable
	known   bool
	conns   *remoting.ConsumerConnection
	modes   map[string]bool // topics that the group pops, as it was set
	via     string
	ranges  map[string]map[int32]queueRange
	found   map[QueueID]int64
}

// PlanOffsets reads where a group stands and plans to set its offsets. A group that
// reads in broadcast, and what else cannot be done, is an *OffsetError.
func (c *Client) PlanOffsets(ctx context.Context, spec OffsetSpec) (*OffsetPlan, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	masters, missing, err := c.changeTargets(ctx, spec.On)
	if err != nil {
		return nil, err
	}
	p := &OffsetPlan{spec: spec, brokers: map[string]bool{}, missing: missing, waiting: map[string]int64{}}
	for _, b := range masters {
		p.brokers[b.Name] = true
	}
	for _, e := range missing {
		p.brokers[e.Broker] = true
	}
	to := &spec.To
	if to.Kind == ToMessage {
		if to, err = c.offsetOfMessage(ctx, &spec); err != nil {
			return nil, err
		}
		at := to.Values[0].QueueID
		if !p.covers(at) {
			return nil, &OffsetError{spec.Group, []string{fmt.Sprintf("message %s is in %s, which is not among what was asked for", spec.To.Message, at)}}
		}
		masters = slices.DeleteFunc(masters, func(b Broker) bool { return b.Name != at.Broker })
	}
	p.clusters = clustersOf(masters)
	sources, errs := c.offsetSources(ctx, masters, spec.Group)
	p.missing = append(p.missing, errs...)
	if len(sources) == 0 {
		return p, nil
	}
	if err := p.takeMembers(sources); err != nil {
		return nil, err
	}
	topics, retries := spec.scope(to, sources)
	if err := c.refuseStatic(ctx, spec.Group, topics); err != nil {
		return nil, err
	}
	p.missing = append(p.missing, c.offsetTargets(ctx, to, sources, topics, retries)...)
	sources = slices.DeleteFunc(sources, func(s *offsetSource) bool { return s.ranges == nil })
	return p, p.build(to, sources, topics, retries)
}

func (s *OffsetSpec) check() error {
	if err := message.ValidateGroup(s.Group); err != nil {
		return err
	}
	if s.To.Kind == ToGroup {
		if err := message.ValidateGroup(s.To.Group); err != nil {
			return err
		}
		if s.To.Group == s.Group {
			return &OffsetError{s.Group, []string{"it is the group that the offsets are taken from"}}
		}
	}
	for _, t := range s.Topics {
		if err := message.ValidateTopic(t); err != nil {
			return err
		}
	}
	s.Retry = cmp.Or(s.Retry, RetryKeep)
	if s.Retry != RetryKeep && s.Retry != RetrySkip {
		return fmt.Errorf("cannot %q what waits in retry topics: it is kept or skipped", s.Retry)
	}
	s.MaxKept = cmp.Or(s.MaxKept, DefaultMaxKept)
	return nil
}

// offsetOfMessage finds the queue of a message.
func (c *Client) offsetOfMessage(ctx context.Context, s *OffsetSpec) (*OffsetTo, error) {
	topic := ""
	if len(s.Topics) == 1 {
		topic = s.Topics[0]
	}
	ref, err := ParseMessageRef(s.To.Message, topic)
	if err != nil {
		return nil, err
	}
	found, err := c.GetMessage(ctx, ref)
	if err != nil {
		return nil, err
	}
	out := &OffsetTo{Kind: ToValues}
	for _, m := range found.Messages {
		if message.IsRetry(m.Topic) || message.IsDLQ(m.Topic) || message.IsSystemTopic(m.Topic) {
			continue
		}
		out.Values = append(out.Values, OffsetValue{QueueID{m.Topic, m.Queue.BrokerName, m.QueueID}, m.QueueOffset})
	}
	switch {
	case len(out.Values) == 0 && len(found.Errors) > 0:
		return nil, found.Errors[0]
	case len(out.Values) != 1:
		return nil, &OffsetError{s.Group, []string{fmt.Sprintf("%s of topics have the id %s", words.Count(len(out.Values), "message"), s.To.Message)}}
	}
	return out, nil
}

// offsetSources asks the brokers for offsets and members of a group, and how offsets
// are to be set there.
func (c *Client) offsetSources(ctx context.Context, brokers []Broker, group string) ([]*offsetSource, []TargetError) {
	var out []*offsetSource
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) (err error) {
		s := &offsetSource{b: b, modes: map[string]bool{}}
		table, err := c.groupTable(ctx, b.Addr)
		if err != nil {
			return err
		}
		_, s.known = table[group]
		if s.offsets, err = c.offsets(ctx, b.Addr); err != nil {
			return err
		}
		if s.conns, err = c.connections(ctx, b.Addr, group); err != nil {
			return err
		}
		modes, err := askBody[remoting.MessageRequestModes](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqGetAllMessageRequestMode, nil))
		if err == nil {
			for topic, groups := range modes.Map {
				s.modes[topic] = groups[group].Mode == modePop
			}
		} else if !isResponse(err) { // an older broker has none
			return err
		}
		resp, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqGetBrokerConfig, nil))
		if err != nil && !isResponse(err) {
			return err
		}
		s.via = viaReset
		if err == nil {
			if on, ok := configValue(resp.Body, "useServerSideResetOffset"); !ok || on != "true" {
				s.via = viaTell
			}
		}
		mu.Lock()
		defer mu.Unlock()
		out = append(out, s)
		return nil
	})
	sorted.By(out, func(a, b *offsetSource) int { return cmp.Compare(a.b.Name, b.b.Name) })
	return out, errs
}

const modePop = "POP"

// isResponse reports whether a server answered, with whatever code.
func isResponse(err error) bool {
	_, ok := errors.AsType[*remoting.ResponseError](err)
	return ok
}

// takeMembers notes who is online, and refuses what no broker can do.
func (p *OffsetPlan) takeMembers(sources []*offsetSource) error {
	known := false
	for _, s := range sources {
		known = known || s.known
		if s.conns == nil {
			continue
		}
		p.online = true
		p.kind = cmp.Or(p.kind, s.conns.ConsumeType)
		for _, m := range s.conns.ConnectionSet {
			p.members = append(p.members, m.ClientID)
		}
		if s.conns.MessageModel == remoting.Broadcasting {
			return &OffsetError{p.spec.Group, []string{"its members read in broadcast: each keeps its offsets itself, on its own machine, and no broker can move them"}}
		}
	}
	if !known && len(p.missing) == 0 {
		return &NotFoundError{Kind: "group", Name: p.spec.Group}
	}
	slices.Sort(p.members)
	p.members = slices.Compact(p.members)
	return nil
}

// scope are the topics whose offsets are set, and the retry topics of the group.
func (s *OffsetSpec) scope(to *OffsetTo, sources []*offsetSource) (topics, retries []string) {
	retry := map[string]bool{message.RetryTopicPrefix + s.Group: true}
	all := map[string]bool{}
	for _, t := range s.Topics {
		all[t] = true
	}
	if to.Kind == ToValues && len(s.Topics) == 0 {
		for _, v := range to.Values {
			all[v.Topic] = true
		}
	}
	for _, src := range sources {
		committed := src.offsets.topics(s.Group)
		if to.Kind == ToGroup {
			committed = append(committed, src.offsets.topics(to.Group)...)
		}
		if src.conns != nil {
			committed = append(committed, slices.Collect(maps.Keys(src.conns.SubscriptionTable))...)
		}
		for _, t := range committed {
			switch {
			case isRetryOf(t, s.Group):
				retry[t] = true
			case to.Kind != ToValues && len(s.Topics) == 0 && !message.IsRetry(t):
				all[t] = true
			}
		}
	}
	topics = slices.Sorted(maps.Keys(all))
	for _, t := range topics { // the retries of pops of each topic
		for _, sep := range []string{"_", "+"} {
			retry[message.RetryTopicPrefix+s.Group+sep+t] = true
		}
	}
	for t := range retry {
		pop := isPopRetry(t, s.Group)
		if !all[t] && (!pop || slices.Contains(topics, t[len(message.RetryTopicPrefix+s.Group)+1:])) {
			retries = append(retries, t)
		}
	}
	slices.Sort(retries)
	return topics, retries
}

// refuseStatic: the queues of a static topic lie on several brokers, and their offsets
// are not what one broker has.
func (c *Client) refuseStatic(ctx context.Context, group string, topics []string) error {
	return several(perBroker, topics, func(t string) error {
		route, err := c.route(ctx, t)
		if _, ok := errors.AsType[*NotFoundError](err); ok {
			return nil // deleted, or one that a broker keeps for itself
		}
		if err != nil {
			return err
		}
		if len(route.MappingByBroker) > 0 {
			return &OffsetError{group, []string{"topic " + t + " is a static topic: its queues lie on several brokers, which this cannot set offsets of"}}
		}
		return nil
	})
}

// offsetTargets reads what queues hold and, where the target needs it, where it lies.
func (c *Client) offsetTargets(ctx context.Context, to *OffsetTo, sources []*offsetSource, topics, retries []string) []TargetError {
	byBroker := map[Broker]*offsetSource{}
	var brokers []Broker
	for _, s := range sources {
		byBroker[s.b] = s
		brokers = append(brokers, s.b)
	}
	return c.each(brokers, func(_ *sync.Mutex, b Broker) error {
		s := byBroker[b]
		var mu sync.Mutex
		ranges, found := map[string]map[int32]queueRange{}, map[QueueID]int64{}
		err := several(perBroker, slices.Concat(topics, retries), func(t string) error {
			r, err := c.knownRanges(ctx, b.Addr, t)
			mu.Lock()
			defer mu.Unlock()
			ranges[t] = r
			return err
		})
		if err != nil {
			return err
		}
		var ids []QueueID
		for _, t := range topics {
			for _, q := range slices.Sorted(maps.Keys(ranges[t])) {
				ids = append(ids, QueueID{t, b.Name, q})
			}
		}
		err = several(perBroker, ids, func(q QueueID) error {
			at, err := c.locate(ctx, b, to, q, ranges[q.Topic][q.QueueID], s.offsets)
			if err != nil || !at.OK {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			found[q] = at.Value
			return nil
		})
		if err != nil {
			return err
		}
		s.ranges, s.found = ranges, found
		return nil
	})
}

// locate finds the target in one queue where it is not known without a look.
func (c *Client) locate(ctx context.Context, b Broker, to *OffsetTo, q QueueID, r queueRange, offsets *offsetTable) (remoting.Opt[int64], error) {
	switch to.Kind {
	case ToTime:
		if r.min.Value == r.max.Value || r.stored > 0 && r.stored < to.TimeMs {
			return r.max, nil // brokers differ in what they find behind the last message
		}
		resp, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqSearchOffsetByTimestamp,
			&remoting.SearchOffsetHeader{Topic: q.Topic, QueueID: q.QueueID, Timestamp: to.TimeMs}))
		if err != nil {
			return remoting.Opt[int64]{}, err
		}
		at, ok, err := resp.Fields.Int64("offset")
		if ok && at < 0 {
			return remoting.Opt[int64]{}, fmt.Errorf("the broker does not know where queue %d of topic %q is at that time", q.QueueID, q.Topic)
		}
		return remoting.Opt[int64]{Value: at, OK: ok}, err
	case ToGroup:
		return offsets.at(q.Topic, to.Group, q.QueueID), nil
	case ToValues:
		for _, v := range to.Values {
			if v.QueueID == q {
				return remoting.Some(v.Offset), nil
			}
		}
	}
	return remoting.Opt[int64]{}, nil
}

// build makes the steps.
func (p *OffsetPlan) build(to *OffsetTo, sources []*offsetSource, topics, retries []string) error {
	var whys []string
	there, queueThere := map[string]bool{}, false
	for _, s := range sources {
		for _, t := range topics {
			there[t] = there[t] || s.ranges[t] != nil
			for _, q := range slices.Sorted(maps.Keys(s.ranges[t])) {
				if p.spec.Queue != nil && *p.spec.Queue != q {
					continue
				}
				queueThere = true
				if why := p.add(to, s, QueueID{t, s.b.Name, q}); why != "" {
					whys = append(whys, QueueID{t, s.b.Name, q}.String()+": "+why)
				}
			}
		}
		p.addRetries(s, retries)
	}
	for _, t := range p.spec.Topics {
		if !there[t] && len(p.missing) == 0 {
			return &NotFoundError{Kind: "topic", Name: t}
		}
	}
	if p.spec.Queue != nil && !queueThere && len(topics) > 0 && len(p.missing) == 0 {
		return &NotFoundError{Kind: "queue", Name: fmt.Sprintf("%d of %s", *p.spec.Queue, strings.Join(topics, ", "))}
	}
	for _, v := range to.Values {
		if !slices.ContainsFunc(p.steps, func(s offsetStep) bool { return s.QueueID == v.QueueID }) && p.covers(v.QueueID) && len(p.missing) == 0 {
			whys = append(whys, v.QueueID.String()+" is not there")
		}
	}
	if kept := p.kept(); p.spec.KeepSkipped && kept > p.spec.MaxKept {
		whys = append(whys, fmt.Sprintf("%s would have to be kept, more than the limit of %d", words.Count(kept, "message"), p.spec.MaxKept))
	}
	if len(whys) > 0 {
		return &OffsetError{p.spec.Group, whys}
	}
	sorted.By(p.steps, func(a, b offsetStep) int { return a.compare(b.QueueID) })
	return nil
}

// covers reports whether a queue lies in what was asked for.
func (p *OffsetPlan) covers(q QueueID) bool {
	return (len(p.spec.Topics) == 0 || slices.Contains(p.spec.Topics, q.Topic)) && (p.spec.Queue == nil || *p.spec.Queue == q.QueueID) &&
		(p.spec.On == Target{} || p.brokers[q.Broker])
}

// add plans one queue, or says why it cannot be done.
func (p *OffsetPlan) add(to *OffsetTo, s *offsetSource, q QueueID) (why string) {
	r := s.ranges[q.Topic][q.QueueID]
	facts := queueFacts{min: r.min.Value, max: r.max.Value, committed: s.offsets.at(q.Topic, p.spec.Group, q.QueueID)}
	if at, ok := s.found[q]; ok {
		facts.found = remoting.Some(at)
	}
	target, ok, warning, why := to.aim(facts)
	if why != "" || !ok {
		return why
	}
	if !s.known {
		return "the broker does not know the group; mqx admin group create " + p.spec.Group + " makes it"
	}
	step := offsetStep{
		QueueID: q, Cluster: s.b.Cluster, Addr: s.b.Addr, Before: facts.committed, Move: facts.move(target),
		From: max(facts.committed.Or(0), facts.min), Warning: warning,
	}
	step.Via, why = p.via(s, q.Topic)
	p.steps = append(p.steps, step)
	return why
}

// via chooses how an offset is set. Members learn of it from the broker; what a group
// pops is kept in the broker's memory, which only a reset clears.
func (p *OffsetPlan) via(s *offsetSource, topic string) (via, why string) {
	pops := p.kind == remoting.ConsumePop || s.modes[topic]
	for key := range s.offsets.committed {
		t, ok := strings.CutSuffix(key, "@"+p.spec.Group)
		pops = pops || ok && isPopRetry(t, p.spec.Group) && strings.HasSuffix(t, topic)
	}
	switch {
	case s.via == viaReset && (p.online || pops):
		return viaReset, ""
	case !p.online && !pops:
		return viaCommit, ""
	case p.spec.Queue == nil && (p.spec.To.Kind == ToStart || p.spec.To.Kind == ToEnd || p.spec.To.Kind == ToTime) && p.online && !pops:
		return viaTell, ""
	}
	return "", "the broker has members told themselves (useServerSideResetOffset is off), which can only be done for all queues and to the start, the end or a time"
}

// addRetries plans the retry topics of the group, and counts what waits there.
func (p *OffsetPlan) addRetries(s *offsetSource, retries []string) {
	for _, t := range retries {
		for _, q := range slices.Sorted(maps.Keys(s.ranges[t])) {
			r := s.ranges[t][q]
			facts := queueFacts{min: r.min.Value, max: r.max.Value, committed: s.offsets.at(t, p.spec.Group, q)}
			waiting := r.max.Value - min(max(facts.committed.Or(0), r.min.Value), r.max.Value)
			if waiting == 0 {
				continue
			}
			p.waiting[t] += waiting
			if p.spec.Retry != RetrySkip || !s.known {
				continue
			}
			if !facts.committed.OK {
				facts.committed = r.min
			}
			step := offsetStep{QueueID: QueueID{t, s.b.Name, q}, Cluster: s.b.Cluster, Addr: s.b.Addr, Retry: true, Move: facts.move(r.max.Value), From: max(facts.committed.Value, facts.min)}
			step.Before = s.offsets.at(t, p.spec.Group, q)
			step.Via = viaCommit
			if p.online {
				step.Via = viaReset
			}
			p.steps = append(p.steps, step)
		}
	}
}

// kept counts the messages that would be skipped.
func (p *OffsetPlan) kept() (n int64) {
	for i := range p.steps {
		n += p.steps[i].toKeep()
	}
	return n
}

// toKeep counts the messages that the step would skip, also where the group has no
// offset yet.
func (s *offsetStep) toKeep() int64 { return max(0, s.Move.Offset-s.From) }

func timeText(ms int64) string { return time.UnixMilli(ms).Format(time.RFC3339) }
