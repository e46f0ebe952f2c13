package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"mqx/internal/fastjson"
	"mqx/internal/sorted"
	"mqx/internal/words"
	"mqx/message"
	"mqx/remoting"
)

// kindOffsetRemoval is the kind of an OffsetRemoval.
const kindOffsetRemoval = "offset-removal"

// OffsetRemovalSpec is whose offsets are forgotten, and where.
type OffsetRemovalSpec struct {
	Group  string   `json:"group"`
	On     Target   `json:"on"`
	Topics []string `json:"topics,omitempty"` // empty: all
}

// OffsetRemoval makes brokers forget offsets of a group that is offline, planned and not
// yet done. No request does that for one topic: the group is deleted with its offsets
// and made again as it was, with the offsets that stay.
type OffsetRemoval struct {
	spec     OffsetRemovalSpec
	clusters []string
	brokers  []brokerRemoval
	missing  []TargetError
}

type brokerRemoval struct {
	b          Broker
	config     remoting.SubscriptionGroupConfig
	goes, keep []offsetRecord
}

// PlanRemoveOffsets plans to forget offsets. A group that is online is refused: its
// members would commit theirs again.
func (c *Client) PlanRemoveOffsets(ctx context.Context, spec OffsetRemovalSpec) (*OffsetRemoval, error) {
	if err := message.ValidateGroup(spec.Group); err != nil {
		return nil, err
	}
	masters, missing, err := c.changeTargets(ctx, spec.On)
	if err != nil {
		return nil, err
	}
	p := &OffsetRemoval{spec: spec, clusters: clustersOf(masters), missing: missing}
	online, known := 0, false
	errs := c.each(masters, func(mu *sync.Mutex, b Broker) error {
		table, err := c.groupTable(ctx, b.Addr)
		if err != nil {
			return err
		}
		offsets, err := c.offsets(ctx, b.Addr)
		if err != nil {
			return err
		}
		conns, err := c.connections(ctx, b.Addr, spec.Group)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if conns != nil {
			online = max(online, len(conns.ConnectionSet))
		}
		cfg, ok := table[spec.Group]
		known = known || ok
		if r := removalAt(b, spec, offsets, cfg); ok && len(r.goes) > 0 {
			p.brokers = append(p.brokers, r)
		}
		return nil
	})
	p.missing = append(p.missing, errs...)
	switch {
	case online > 0:
		return nil, &OffsetError{spec.Group, []string{fmt.Sprintf("%s online and would commit theirs again", words.Count(online, "member is", "members are"))}}
	case !known && len(p.missing) == 0:
		return nil, &NotFoundError{Kind: "group", Name: spec.Group}
	}
	sorted.By(p.brokers, func(a, b brokerRemoval) int { return slices.Compare([]string{a.b.Name}, []string{b.b.Name}) })
	return p, nil
}

func removalAt(b Broker, spec OffsetRemovalSpec, offsets *offsetTable, cfg remoting.SubscriptionGroupConfig) brokerRemoval {
	r := brokerRemoval{b: b, config: cfg}
	for _, topic := range offsets.topics(spec.Group) {
		queues := offsets.committed[offsetKey(topic, spec.Group)]
		for _, q := range slices.Sorted(maps.Keys(queues)) {
			at := queues[q]
			rec := offsetRecord{QueueID: QueueID{topic, b.Name, q}, Addr: b.Addr, Before: &at}
			if len(spec.Topics) == 0 || slices.Contains(spec.Topics, topic) {
				r.goes = append(r.goes, rec)
			} else {
				r.keep = append(r.keep, rec)
			}
		}
	}
	return r
}

// Kind names the form of Saved.
func (p *OffsetRemoval) Kind() string { return kindOffsetRemoval }

// Object is the group.
func (p *OffsetRemoval) Object() string { return p.spec.Group }

// Title says whose offsets go.
func (p *OffsetRemoval) Title() string {
	if len(p.spec.Topics) == 0 {
		return "forget all offsets of group " + p.spec.Group
	}
	return fmt.Sprintf("forget the offsets of group %s in %v", p.spec.Group, p.spec.Topics)
}

// Clusters are the clusters of the brokers.
func (p *OffsetRemoval) Clusters() []string { return p.clusters }

// Destroys reports whether anything goes: an undo puts the offsets back, and neither what a
// group that pops was handed out nor the topics that were forbidden to it.
func (p *OffsetRemoval) Destroys() bool { return len(p.goes()) > 0 }

// Missing are the brokers that could not be planned for.
func (p *OffsetRemoval) Missing() []TargetError { return p.missing }

// Saved is what was asked for, with the offsets that were there.
func (p *OffsetRemoval) Saved() any {
	return savedOffsetRemoval{p.spec, p.goes(), missingNames(p.missing)}
}

type savedOffsetRemoval struct {
	Spec    OffsetRemovalSpec `json:"spec"`
	Goes    []offsetRecord    `json:"offsets"`
	Missing []string          `json:"missing,omitempty"`
}

func (p *OffsetRemoval) goes() (out []offsetRecord) {
	for _, r := range p.brokers {
		out = append(out, r.goes...)
	}
	return out
}

// Steps are the queues.
func (p *OffsetRemoval) Steps() []Step {
	var out []Step
	for _, r := range p.goes() {
		out = append(out, removalStep(r))
	}
	return out
}

func removalStep(r offsetRecord) Step {
	return Step{
		Broker: r.Broker, Addr: r.Addr, Part: fmt.Sprintf("%s queue %d", r.Topic, r.QueueID.QueueID), Action: ActionDelete,
		Before: OffsetState{*r.Before}, Text: fmt.Sprintf("%d -> nothing", *r.Before),
	}
}

// Notes say how it is done and what it means.
func (p *OffsetRemoval) Notes() []Note {
	return []Note{
		{"how", "the group is deleted with its offsets and made again as it was; topics that were forbidden to it are allowed again"},
		{"next", "when it starts it begins where its clients say (consumeFromWhere)"},
	}
}

// Apply forgets the offsets, broker by broker, and reads back what is left.
func (p *OffsetRemoval) Apply(ctx context.Context, c *Client) (*Applied, error) {
	out := &Applied{}
	at := map[Broker]*brokerRemoval{}
	var brokers []Broker
	for i := range p.brokers {
		at[p.brokers[i].b] = &p.brokers[i]
		brokers = append(brokers, p.brokers[i].b)
	}
	var undo []offsetRecord
	out.Errors = c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		r := at[b]
		if err := c.removeOffsets(ctx, r); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		undo = append(undo, r.goes...)
		for _, rec := range r.goes {
			out.Steps = append(out.Steps, removalStep(rec))
		}
		return nil
	})
	out.Undo = undo
	return out, nil
}

func (c *Client) removeOffsets(ctx context.Context, r *brokerRemoval) error {
	group := r.config.GroupName
	body, err := fastjson.Marshal(&r.config)
	if err != nil {
		return err
	}
	if _, err := c.ask(ctx, r.b.Addr, remoting.NewRequest(remoting.ReqDeleteSubscriptionGroup,
		&remoting.DeleteSubscriptionGroupHeader{GroupName: group, CleanOffset: true})); err != nil {
		return err
	}
	again := remoting.NewRequest(remoting.ReqUpdateAndCreateSubscriptionGroup, nil)
	again.Body = body
	_, err = c.ask(ctx, r.b.Addr, again)
	for _, k := range r.keep {
		if err == nil {
			err = c.commitOffset(ctx, r.b.Addr, group, k.QueueID, *k.Before)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot make group %q again as it was: %w; its configuration: %s", group, err, body)
	}
	now, err := c.offsets(ctx, r.b.Addr)
	if err != nil {
		return fmt.Errorf("cannot read back the offsets of group %q: %w", group, err)
	}
	for _, g := range r.goes {
		if now.at(g.Topic, group, g.QueueID.QueueID).OK {
			return errors.New("the offset of " + g.QueueID.String() + " is still there")
		}
	}
	for _, k := range r.keep {
		if got := now.at(k.Topic, group, k.QueueID.QueueID); got != remoting.Some(*k.Before) {
			return fmt.Errorf("the offset of %s was %d and is %v", k.QueueID, *k.Before, got)
		}
	}
	return nil
}

func replanOffsetRemoval(ctx context.Context, c *Client, saved []byte) (Plan, error) {
	was, err := readSaved[savedOffsetRemoval](kindOffsetRemoval, saved)
	if err != nil {
		return nil, err
	}
	p, err := c.PlanRemoveOffsets(ctx, was.Spec)
	if err != nil {
		return nil, err
	}
	var differences []string
	now := p.goes()
	same := func(a, b offsetRecord) bool {
		return a.QueueID == b.QueueID && a.Addr == b.Addr && sameOffset(a.Before, b.Before)
	}
	if len(now) > 0 && !slices.EqualFunc(now, was.Goes, same) {
		differences = append(differences, fmt.Sprintf("there were %s, there are %d, or others", words.Count(len(was.Goes), "offset"), len(now)))
	}
	if is := missingNames(p.missing); !slices.Equal(was.Missing, is) {
		differences = append(differences, fmt.Sprintf("brokers without an answer were %v, are %v", was.Missing, is))
	}
	if len(differences) > 0 {
		return nil, &ChangedError{Kind: "group", Object: was.Spec.Group, Differences: differences}
	}
	return p, nil
}

// undoOffsetRemoval puts back what was forgotten, where nothing was committed since.
func undoOffsetRemoval(ctx context.Context, c *Client, group string, undo []byte) ([]Plan, error) {
	done, err := readSaved[[]offsetRecord](kindOffsetRemoval, undo)
	if err != nil {
		return nil, err
	}
	spec := OffsetSpec{Group: group, To: OffsetTo{Kind: ToValues}}
	for _, r := range *done {
		spec.To.Values = append(spec.To.Values, OffsetValue{r.QueueID, *r.Before})
	}
	p, err := c.PlanOffsets(ctx, spec)
	if err != nil {
		return nil, err
	}
	p.undoes = true
	for i := range p.steps {
		if s := &p.steps[i]; s.Before.OK && !s.idle() {
			return nil, &ChangedError{Kind: "group", Object: group, Differences: []string{fmt.Sprintf("%d was committed for %s since", s.Before.Value, s.QueueID)}}
		}
	}
	return []Plan{p}, nil
}
