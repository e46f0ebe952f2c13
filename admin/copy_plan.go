package admin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mqx/client"
	"mqx/filter"
	"mqx/internal/sorted"
	"mqx/internal/words"
	"mqx/message"
	"mqx/remoting"
)

// CopySpec says which messages are sent anew, and where to.
type CopySpec struct {
	Topic string `json:"topic"` // that is read; empty for a file
	// File is what an import is called; the lines come from CopyOptions.Lines.
	File string `json:"file,omitempty"`
	// Group is the group in whose retry topic they are put, so that nobody else gets them; empty with To.
	Group string `json:"group,omitempty"`
	// DeadLetters: Topic is the dead letter topic of Group, and what has been replayed since is left out, unless Again.
	DeadLetters bool   `json:"deadLetters,omitempty"`
	Again       bool   `json:"again,omitempty"`
	To          string `json:"to,omitempty"` // topic they are sent to
	// Servers are the name servers of the cluster that is read, where it is another one.
	Servers []string `json:"servers,omitempty"`

	Ranges []CopyRange `json:"ranges,omitempty"`
	IDs    []string    `json:"ids,omitempty"` // unique or offset ids; empty: all that the filters take
	Tag    string      `json:"tag,omitempty"`
	Where  string      `json:"where,omitempty"`
	Text   string      `json:"text,omitempty"`

	Limit       int64   `json:"limit,omitempty"` // messages to send; 0: all
	Rate        float64 `json:"rate,omitempty"`  // messages a second; 0: as fast as it goes
	NewIDs      bool    `json:"newIds,omitempty"`
	KeepRetries bool    `json:"keepRetries,omitempty"` // count as given back as often as before, not as new

	// State is the file that holds how far it has come; OwnState: nobody asked for it by name.
	State    string `json:"-"`
	OwnState bool   `json:"-"`

	// plan: it is that of a saved plan, which sends its messages once, however often it is done; goOn is the command that goes
	// on with it.
	plan bool
	goOn string
}

// CopyRange is what is read of one queue: [Start, End).
type CopyRange struct {
	Broker  string `json:"broker"`
	QueueID int32  `json:"queue"`
	Start   int64  `json:"start"`
	End     int64  `json:"end"`
}

func (r CopyRange) lane() string { return fmt.Sprintf("%s/%d", r.Broker, r.QueueID) }

// RefusedError says why a change is not made although it could be.
type RefusedError struct {
	What, Why, Try string
	// Unsafe: it depends on the state of the cluster and not on what was asked for.
	Unsafe bool
}

// Error says what is refused.
func (e *RefusedError) Error() string { return e.What }

// CopyOptions are what a copy needs beside its spec.
type CopyOptions struct {
	Read client.ReaderConfig // Brokers, Queue, HasQueue, Start, End count
	// Source is the client of the cluster that is read; nil: the one that is written to.
	Source *Client
	// Lines are the messages of an import, by number from 1, with the topics they were in.
	Lines func(ctx context.Context, f func(n int64, m *client.Received) error) error
	// Tell is told of the progress about twice a second, from any goroutine.
	Tell func(CopyCounts)
}

// CopyPlan is a planned copy of messages.
type CopyPlan struct {
	Spec  CopySpec
	Total int64 // messages in the ranges; what is wanted of them is known when they are read

	cluster []string
	brokers map[string]Broker // of the source, by name
	notes   []Note
	missing []TargetError
	opts    CopyOptions
	resume  *copyState
	wants   func(m *client.Received) bool
}

const kindCopy = "messages"

// ActionSend is the action of a step that sends messages.
const ActionSend = "send"

// PlanCopy plans to send messages anew, to c's cluster. Refused are: a target topic that belongs to a group or to brokers, or does not
// exist (*RefusedError, *NotFoundError); a group that reads no retry topic.
func (c *Client) PlanCopy(ctx context.Context, spec CopySpec, o CopyOptions) (*CopyPlan, error) {
	p := &CopyPlan{Spec: spec, opts: o, brokers: map[string]Broker{}}
	if p.opts.Source == nil {
		p.opts.Source = c
	}
	var err error
	if p.wants, err = spec.filter(); err != nil {
		return nil, err
	}
	if spec.DeadLetters { // without any nothing else matters
		if _, err := p.opts.Source.topicBrokers(ctx, spec.Topic); err != nil {
			return nil, err
		}
	}
	if err := p.checkTarget(ctx, c); err != nil {
		return nil, err
	}
	if p.resume, err = loadCopyState(spec.State); err != nil {
		return nil, err
	}
	if p.resume != nil {
		if !p.resume.Spec.same(&spec) {
			return nil, otherCopy(spec.State, p.resume)
		}
		p.Spec.Ranges = p.resume.Spec.Ranges
		p.notes = append(p.notes, Note{"resume", "goes on where an earlier run ended: " + p.resume.counts().String()})
	}
	if p.opts.Lines != nil {
		return p, nil
	}
	return p, p.planRanges(ctx, p.opts.Source)
}

func otherCopy(path string, s *copyState) error {
	return &RefusedError{What: fmt.Sprintf("cannot go on with state %q", path), Why: "it is of another copy: " + s.Spec.title(), Try: "another file for --state"}
}

// GoOn has a plan that was saved go on where the state at path says that an earlier run of it ended. The state is kept there, and
// stays when nothing is left: the plan sends its messages once, however often it is done. command is what goes on with it when this
// run ends early, too.
func (p *CopyPlan) GoOn(path, command string) error {
	p.Spec.State, p.Spec.OwnState, p.Spec.plan, p.Spec.goOn = path, false, true, command
	s, err := loadCopyState(path)
	switch {
	case err != nil || s == nil:
		return err
	case !s.Spec.same(&p.Spec) || !slices.Equal(s.Spec.Ranges, p.Spec.Ranges):
		return otherCopy(path, s)
	case s.Done:
		p.notes = append(p.notes, Note{"done", "an earlier run has sent all of it: " + s.counts().String()})
	default:
		p.notes = append(p.notes, Note{"resume", "goes on where an earlier run ended: " + s.counts().String()})
	}
	p.resume = s
	return nil
}

// Tell has the progress told about twice a second, from any goroutine.
func (p *CopyPlan) Tell(f func(CopyCounts)) { p.opts.Tell = f }

// same reports whether a saved spec is of the same copy.
func (s *CopySpec) same(o *CopySpec) bool {
	return s.title() == o.title() && slices.Equal(s.Servers, o.Servers) && s.Tag == o.Tag && s.Where == o.Where && s.Text == o.Text &&
		slices.Equal(s.IDs, o.IDs) && s.NewIDs == o.NewIDs
}

func (s *CopySpec) title() string {
	from := cmp.Or(s.File, "topic "+s.Topic)
	switch {
	case s.DeadLetters && s.To == "":
		return "replay the dead letters of group " + s.Group
	case s.Group != "" && s.To == "":
		return "replay messages of " + from + " to group " + s.Group + " alone"
	case s.File != "":
		return "import messages of " + s.File + " into topic " + s.To
	}
	if len(s.Servers) > 0 {
		from += " at " + strings.Join(s.Servers, ";")
	}
	return "send messages of " + from + " to topic " + s.To
}

// filter is which messages are wanted.
func (s *CopySpec) filter() (func(m *client.Received) bool, error) {
	var expr *filter.Expression
	var err error
	if s.Where != "" {
		if expr, err = filter.Compile(s.Where); err != nil {
			return nil, fmt.Errorf("cannot use the expression %q: %w", s.Where, err)
		}
	}
	var tags []string
	if !filter.IsAllTags(s.Tag) {
		tags = filter.SplitTags(s.Tag)
	}
	text := []byte(s.Text)
	return func(m *client.Received) bool {
		return (len(tags) == 0 || slices.Contains(tags, m.Tags())) && (expr == nil || expr.MatchMap(m.Properties)) &&
			(len(text) == 0 || bytes.Contains(m.Body, text)) && (len(s.IDs) == 0 || slices.Contains(s.IDs, m.MessageID) || slices.Contains(s.IDs, m.OffsetID))
	}, nil
}

// checkTarget looks at where the messages go, and who else would get them.
func (p *CopyPlan) checkTarget(ctx context.Context, t *Client) error {
	if p.Spec.To == "" {
		configs, errs, err := t.GroupConfigs(ctx, p.Spec.Group)
		if err != nil {
			return err
		}
		p.missing = append(p.missing, errs...)
		for _, g := range configs {
			p.cluster = append(p.cluster, g.Cluster)
		}
		slices.Sort(p.cluster)
		p.cluster = slices.Compact(p.cluster)
		note, err := t.checkRetry(ctx, p.Spec.Group)
		if err != nil {
			return err
		}
		p.notes = append(p.notes, Note{"gets it", "only group " + p.Spec.Group + ", from its retry topic"})
		if note != "" {
			p.notes = append(p.notes, Note{"mind", note})
		}
		return nil
	}
	brokers, err := t.primaries(ctx, Target{})
	if err != nil {
		return err
	}
	if err := checkTargetTopic(p.Spec.To, ownNames(brokers)); err != nil {
		return err
	}
	route, err := t.Route(ctx, p.Spec.To)
	if err != nil {
		return err
	}
	for _, b := range route.BrokerDatas {
		p.cluster = append(p.cluster, b.Cluster)
	}
	slices.Sort(p.cluster)
	p.cluster = slices.Compact(p.cluster)
	if !slices.ContainsFunc(route.QueueDatas, func(q remoting.QueueData) bool { return q.Perm&permWrite != 0 && q.WriteQueueNums > 0 }) {
		return &RefusedError{What: fmt.Sprintf("topic %q cannot be written to", p.Spec.To), Why: "no broker has a queue of it with the permission to write", Try: "mqx admin topic get " + p.Spec.To, Unsafe: true}
	}
	groups, errs, err := t.TopicGroups(ctx, p.Spec.To)
	if err != nil {
		return err
	}
	p.missing = append(p.missing, errs...)
	for _, g := range groups {
		p.notes = append(p.notes, Note{"gets it", "group " + g})
	}
	if len(groups) == 0 && len(errs) == 0 {
		p.notes = append(p.notes, Note{"gets it", "no group consumes topic " + p.Spec.To + " now"})
	}
	return nil
}

const permWrite = 2

// checkTargetTopic refuses topics that are no application's.
func checkTargetTopic(topic string, own map[string]bool) error {
	if err := message.ValidateTopic(topic); err != nil {
		return err
	}
	var why string
	switch topicKind(topic, own) {
	case KindRetry:
		why = "it is the retry topic of a group: without --target-topic a replay goes there, as the group reads it"
	case KindDLQ:
		why = "it holds dead letters, which only brokers put there"
	case KindSystem:
		why = "brokers keep it for themselves"
	default:
		return nil
	}
	return &RefusedError{What: fmt.Sprintf("cannot send to topic %q", topic), Why: why, Try: "a topic of an application"}
}

// checkRetry refuses groups that would not get what is put into their retry topic, and says what to mind.
func (c *Client) checkRetry(ctx context.Context, group string) (mind string, err error) {
	if err := message.ValidateGroup(group); err != nil {
		return "", err
	}
	configs, errs, err := c.GroupConfigs(ctx, group)
	if err != nil {
		return "", err
	}
	if len(configs) == 0 {
		return "", errs[0]
	}
	refuse := func(why, try string) (string, error) {
		return "", &RefusedError{What: fmt.Sprintf("cannot put messages into the retry topic of group %q", group), Why: why, Try: try, Unsafe: true}
	}
	on := newOnline()
	for _, g := range configs {
		if g.Config.RetryQueueNums <= 0 {
			return refuse(fmt.Sprintf("on broker %s the group has no retry queues", g.Name), "mqx admin group get "+group+" --show config")
		}
		conns, err := c.connections(ctx, g.Addr, group)
		if err != nil {
			return "", g.fail(err)
		}
		on.add(conns)
		if orderly, err := c.orderly(ctx, g.Broker, group, conns); err != nil {
			mind = fmt.Sprintf("whether its members consume in order is not known: %v", err)
		} else if orderly || g.Config.ConsumeMessageOrderly {
			return refuse("its members consume in order: while they hold queues, brokers put what is sent to its retry topic among its dead letters", "while the group is stopped, or --target-topic")
		}
	}
	switch {
	case on.model == remoting.Broadcasting:
		return refuse("it is a broadcast group: nobody reads its retry topic", "--target-topic")
	case on.kind == remoting.ConsumePop:
		return refuse("its members pop: they read retry topics that brokers alone write to", "--target-topic")
	case len(on.members) == 0:
		mind = "nobody of the group is online: the messages wait in its retry topic"
	}
	if _, err := c.route(ctx, message.RetryTopic(group)); err != nil {
		return "", err
	}
	return mind, nil
}

// orderly asks a member of a group how it consumes.
func (c *Client) orderly(ctx context.Context, b Broker, group string, conns *remoting.ConsumerConnection) (bool, error) {
	if conns == nil || len(conns.ConnectionSet) == 0 || conns.ConsumeType != remoting.ConsumePassively {
		return false, nil
	}
	info, err := askBody[remoting.ConsumerRunningInfo](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqGetConsumerRunningInfo,
		&remoting.GetConsumerRunningInfoHeader{ConsumerGroup: group, ClientID: conns.ConnectionSet[0].ClientID}))
	if err != nil {
		return false, err
	}
	return info.Properties[remoting.PropConsumeOrderly] == message.TrueValue, nil
}

// planRanges finds what there is to read.
func (p *CopyPlan) planRanges(ctx context.Context, c *Client) error {
	brokers, err := c.topicBrokers(ctx, p.Spec.Topic)
	if err != nil {
		return err
	}
	for _, b := range brokers {
		p.brokers[b.Name] = b
	}
	if p.Spec.Ranges == nil {
		if len(p.Spec.IDs) > 0 {
			err = p.idRanges(ctx, c)
		} else if p.Spec.DeadLetters {
			err = p.deadRanges(ctx, c)
		} else {
			err = p.readRanges(ctx, c)
		}
		if err != nil {
			return err
		}
	}
	sorted.By(p.Spec.Ranges, func(a, b CopyRange) int {
		return cmp.Or(cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.QueueID, b.QueueID))
	})
	for _, r := range p.Spec.Ranges {
		p.Total += max(0, r.End-r.Start)
	}
	return nil
}

// readRanges asks for the ranges of the queues that can be read.
func (p *CopyPlan) readRanges(ctx context.Context, c *Client) error {
	rc := p.opts.Read
	rc.Config, rc.Topic = c.messaging(), p.Spec.Topic
	rc.Missing = func(broker string, err error) {
		p.missing = append(p.missing, TargetError{Broker: broker, Addr: p.brokers[broker].Addr, Err: err})
	}
	r, err := client.NewReader(rc)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	ranges, err := r.Queues(ctx)
	if err != nil {
		return err
	}
	p.Spec.Ranges = []CopyRange{}
	for _, qr := range ranges {
		p.Spec.Ranges = append(p.Spec.Ranges, CopyRange{qr.Queue.BrokerName, qr.Queue.QueueID, qr.Start, qr.End})
	}
	return nil
}

// idRanges are the parts of the queues in which the messages with the ids are.
func (p *CopyPlan) idRanges(ctx context.Context, c *Client) error {
	found := map[remoting.MessageQueue]*CopyRange{}
	for _, id := range p.Spec.IDs {
		f, err := c.GetMessage(ctx, MessageRef{ID: id, Topic: p.Spec.Topic})
		if err != nil {
			return err
		}
		if len(f.Messages) == 0 {
			return f.Errors[0]
		}
		for _, m := range f.Messages {
			r := found[m.Queue]
			if r == nil {
				r = &CopyRange{Broker: m.Queue.BrokerName, QueueID: m.Queue.QueueID, Start: m.QueueOffset}
				found[m.Queue] = r
			}
			r.Start, r.End = min(r.Start, m.QueueOffset), max(r.End, m.QueueOffset+1)
		}
	}
	p.Spec.Ranges = []CopyRange{}
	for _, r := range found {
		p.Spec.Ranges = append(p.Spec.Ranges, *r)
	}
	return nil
}

// Kind is that of copies.
func (p *CopyPlan) Kind() string { return kindCopy }

// Object is the group or topic that gets the messages.
func (p *CopyPlan) Object() string { return cmp.Or(p.Spec.To, p.Spec.Group) }

// Title says what is sent where.
func (p *CopyPlan) Title() string { return p.Spec.title() }

// Clusters are those that get the messages.
func (p *CopyPlan) Clusters() []string { return p.cluster }

// Notes say who gets the messages.
func (p *CopyPlan) Notes() []Note { return p.notes }

// Missing are brokers that cannot be read.
func (p *CopyPlan) Missing() []TargetError { return p.missing }

// Destroys is false: nothing is lost.
func (p *CopyPlan) Destroys() bool { return false }

// Saved is the spec.
func (p *CopyPlan) Saved() any { return p.Spec }

// Steps are the queues that are read.
func (p *CopyPlan) Steps() []Step {
	if p.opts.Lines != nil {
		return []Step{{Addr: p.Spec.File, Action: ActionSend, Text: "its messages to topic " + p.Spec.To}}
	}
	var out []Step
	for _, r := range p.Spec.Ranges {
		b := p.brokers[r.Broker]
		s := Step{Broker: r.Broker, Addr: b.Addr, Part: fmt.Sprintf("queue %d", r.QueueID), Action: ActionNone, Text: "nothing"}
		if n := r.End - p.startOf(r); n > 0 {
			s.Action, s.Text = ActionSend, fmt.Sprintf("%s%s from offset %d", p.upTo(), words.Count(n, "message"), p.startOf(r))
		}
		out = append(out, s)
	}
	return out
}

// upTo: not all of a range need be wanted.
func (p *CopyPlan) upTo() string {
	if s := &p.Spec; s.Tag == "" && s.Where == "" && s.Text == "" && len(s.IDs) == 0 && s.Limit == 0 && (!s.DeadLetters || s.Again) {
		return ""
	}
	return "up to "
}

// startOf is where a range begins, or an earlier run ended.
func (p *CopyPlan) startOf(r CopyRange) int64 {
	if p.resume != nil {
		if p.resume.Done {
			return r.End
		}
		if l := p.resume.Lanes[r.lane()]; l != nil {
			return max(r.Start, l.Next)
		}
	}
	return r.Start
}

// replanCopy plans a saved copy anew: the same ranges, as long as they are there.
func replanCopy(ctx context.Context, c *Client, saved []byte) (Plan, error) {
	spec, err := readSaved[CopySpec](kindCopy, saved)
	if err != nil {
		return nil, err
	}
	if spec.File != "" {
		return nil, errors.New("cannot apply a saved import: the lines are not in the plan")
	}
	o := CopyOptions{}
	if len(spec.Servers) > 0 {
		cfg := c.cfg
		cfg.NameServers = spec.Servers
		if o.Source, err = New(cfg); err != nil {
			return nil, err
		}
	}
	ranges := spec.Ranges
	p, err := c.PlanCopy(ctx, *spec, o)
	if err != nil {
		return nil, err
	}
	now, err := p.opts.Source.GetTopic(ctx, spec.Topic)
	if err != nil {
		return nil, err
	}
	var differences []string
	for _, r := range ranges {
		i := slices.IndexFunc(now.Queues, func(q TopicQueue) bool { return q.Broker == r.Broker && q.QueueID == r.QueueID })
		switch {
		case i < 0:
			differences = append(differences, fmt.Sprintf("queue %d of broker %s is gone", r.QueueID, r.Broker))
		case now.Queues[i].MinOffset > r.Start && r.End > r.Start:
			differences = append(differences, fmt.Sprintf("queue %d of broker %s begins at %d now, what was planned at %d", r.QueueID, r.Broker, now.Queues[i].MinOffset, r.Start))
		}
	}
	if len(differences) > 0 {
		return nil, &ChangedError{Kind: "topic", Object: spec.Topic, Differences: differences}
	}
	return p, nil
}
