package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"mqx/admin/move"
	"mqx/internal/vfs"
	"mqx/message"
)

// MovePlan is a move, planned and not begun.
type MovePlan struct {
	State    *move.State
	Seen     *move.Observation
	Problems []string // preconditions that do not hold: it will not begin
	Notes    []string
	Commands []move.Command // all that it will do, as far as it can be known before
	Drain    []MoveGroup    // what the groups have to read of the source
}

// MoveGroup is how far a group is with the source of a move.
type MoveGroup struct {
	Topic     string
	Broker    string
	Group     string // "" for what concerns all groups
	What      string // unread, retry, in flight, delayed, timer, half, dead letters
	Remaining int64
	Rate      *float64       // messages a second; nil while it is not known
	Left      *time.Duration // at that rate; nil while it is not known
}

// PlanMove looks at the cluster and plans. It changes nothing.
func (c *Client) PlanMove(ctx context.Context, a move.Ask) (*MovePlan, error) {
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.resolveMove(ctx, &a, all); err != nil {
		return nil, err
	}
	probe, err := c.probe(ctx, &a, all)
	if err != nil {
		return nil, err
	}
	seen, err := (&moveCluster{c}).Observe(ctx, probe)
	if err != nil {
		return nil, err
	}
	if len(seen.Failed) > 0 {
		return nil, fmt.Errorf("cannot plan the move: %s", strings.Join(seen.Failed, "; "))
	}
	host, err := moveHost(all, a.Sources, a.Targets)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if a.ID, err = moveID(&a, host, now); err != nil {
		return nil, err
	}
	st, err := move.Build(&a, seen, now)
	if err != nil {
		return nil, err
	}
	p := &MovePlan{State: st, Seen: seen}
	p.Problems, p.Notes = st.Problems(seen)
	p.Commands = move.Foresee(st, seen)
	if p.Drain, err = c.drainTimes(ctx, st, seen); err != nil {
		p.Notes = append(p.Notes, fmt.Sprintf("what is held back and popped is not known: %v", err))
	}
	return p, nil
}

// probe is a plan of which only brokers and topics are known, to look at them.
func (c *Client) probe(ctx context.Context, a *move.Ask, all []Broker) (*move.State, error) {
	probe := &move.State{Phase: move.Planned, Spec: move.Spec{Kind: a.Kind, Name: moveName(a)}}
	add := func(topic, source string, targets ...string) {
		p := move.Part{Topic: topic, Source: source, Ordered: true}
		for _, t := range targets {
			p.Targets = append(p.Targets, move.Target{Broker: t})
		}
		probe.Parts = append(probe.Parts, p)
	}
	topics := []string{a.Topic}
	switch a.Kind {
	case move.Rebalance:
		for _, m := range a.Moves {
			add(m.Topic, m.Source, m.Target)
		}
		return probe, nil
	case move.Retire:
		var err error
		if topics, err = c.businessTopics(ctx, all, a.Sources[0]); err != nil {
			return nil, err
		}
	}
	for _, topic := range topics {
		for _, s := range a.Sources {
			add(topic, s, a.Targets...)
		}
	}
	return probe, nil
}

// moveName is what a plan is for: a topic, a broker or a cluster.
func moveName(a *move.Ask) string {
	switch a.Kind {
	case move.Retire:
		return a.Sources[0]
	case move.Rebalance:
		return a.Cluster
	}
	return a.Topic
}

// resolveMove checks names and fills in what was not given.
func (c *Client) resolveMove(ctx context.Context, a *move.Ask, all []Broker) error {
	topics := []string{a.Topic}
	switch a.Kind {
	case move.Retire:
		topics = nil
	case move.Rebalance:
		topics, a.Sources, a.Targets = nil, nil, nil
		for _, m := range a.Moves {
			topics, a.Sources, a.Targets = append(topics, m.Topic), append(a.Sources, m.Source), append(a.Targets, m.Target)
		}
	}
	for _, topic := range topics {
		if err := message.ValidateTopic(topic); err != nil {
			return err
		}
		if kind := topicKind(topic, ownNames(all)); kind != KindNormal {
			return fmt.Errorf("cannot move topic %q: it is a %s topic, which brokers keep for themselves", topic, kind)
		}
		brokers, err := c.topicBrokers(ctx, topic)
		if err != nil {
			return err
		}
		if len(a.Sources) == 0 { // all that have it
			for _, b := range brokers {
				a.Sources = append(a.Sources, b.Name)
			}
			slices.Sort(a.Sources)
		}
	}
	for _, name := range append(slices.Clone(a.Sources), a.Targets...) {
		if !slices.ContainsFunc(all, func(b Broker) bool { return b.Name == name && b.ID == 0 }) {
			return &NotFoundError{Kind: "broker", Name: name, Known: brokerNames(all)}
		}
	}
	return nil
}

func brokerNames(all []Broker) []string {
	var out []string
	for _, b := range all {
		out = append(out, b.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// businessTopics are the topics on a broker that are neither the system's nor a group's.
func (c *Client) businessTopics(ctx context.Context, all []Broker, broker string) ([]string, error) {
	masters, err := c.masters(ctx, []string{broker})
	if err != nil {
		return nil, err
	}
	if len(masters) == 0 {
		return nil, &NotFoundError{Kind: "broker", Name: broker, Known: brokerNames(all)}
	}
	table, err := c.topicTable(ctx, masters[0].Addr)
	if err != nil {
		return nil, err
	}
	own := ownNames(all)
	var out []string
	for name := range table {
		if topicKind(name, own) == KindNormal && name != TopicMoves {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

func moveID(a *move.Ask, host string, now time.Time) (string, error) {
	var b [2]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	name := strings.ReplaceAll(moveName(a), "@", "_")
	return fmt.Sprintf("%s-%s-%s-%s@%s", a.Kind, name, now.UTC().Format("20060102T150405"), hex.EncodeToString(b[:]), host), nil
}

// drainTimes is what groups have to read, at the rate at which they read now.
func (c *Client) drainTimes(ctx context.Context, st *move.State, seen *move.Observation) (out []MoveGroup, err error) {
	at := st.Clone()
	at.Phase = move.Draining
	held, err := c.LookMove(ctx, &at) // with what is held back and popped
	switch {
	case err != nil:
	case len(held.Failed) > 0:
		err = errors.New(strings.Join(held.Failed, "; "))
	default:
		seen = held
	}
	for i := range at.Parts {
		p := &at.Parts[i]
		for _, q := range seen.Brokers[p.Source].Topics[p.Topic].Queues {
			p.SealedMax = append(p.SealedMax, q.Max)
		}
	}
	for _, g := range at.Gates(seen, true) {
		m := MoveGroup{Topic: g.Topic, Broker: g.Broker, Group: g.Group, What: g.What, Remaining: g.Count}
		if stats, err := c.consumeStats(ctx, seen.Brokers[g.Broker].Addr, g.Group, g.Topic); err == nil && g.Group != "" && stats.ConsumeTPS > 0 {
			m.setRate(stats.ConsumeTPS)
		}
		out = append(out, m)
	}
	return out, err
}

// maxLeft bounds a time that is told; what takes longer never ends.
const maxLeft = 10 * 365 * 24 * time.Hour

func (m *MoveGroup) setRate(perSecond float64) {
	m.Rate = &perSecond
	if seconds := float64(m.Remaining) / perSecond; perSecond > 0 && seconds < maxLeft.Seconds() {
		left := time.Duration(seconds * float64(time.Second))
		m.Left = &left
	}
}

// MoveProgress is what a plan waits for, with rates from an earlier look, which may be nil.
func MoveProgress(st *move.State, now, before *move.Observation) []MoveGroup {
	if now == nil {
		return nil
	}
	at := st.Clone()
	was := map[string]int64{}
	if before != nil {
		old := st.Clone()
		for _, g := range old.Gates(before, false) {
			was[g.Group+"\x00"+g.Topic+"\x00"+g.Broker+"\x00"+g.What] = g.Count
		}
	}
	var out []MoveGroup
	for _, g := range at.Gates(now, false) {
		m := MoveGroup{Topic: g.Topic, Broker: g.Broker, Group: g.Group, What: g.What, Remaining: g.Count}
		if old, ok := was[g.Group+"\x00"+g.Topic+"\x00"+g.Broker+"\x00"+g.What]; ok && now.At.After(before.At) {
			if rate := float64(old-g.Count) / now.At.Sub(before.At).Seconds(); rate >= 0 {
				m.setRate(rate)
			}
		}
		out = append(out, m)
	}
	return out
}

// MoveOptions say who runs a plan and where its copy is kept.
type MoveOptions struct {
	Owner string // default: MoveOwner()
	// File is the copy of the newest state on this machine, "" for none.
	File string
	FS   vfs.FS // default: the machine's
}

// MoveOwner names a run of the tool so that people find it: user, host, process.
func MoveOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return fmt.Sprintf("%s@%s#%d#%d", name, host, os.Getpid(), time.Now().UnixNano())
}

// MoveRun is a plan that this process owns.
type MoveRun struct {
	*move.Runner
	journal *moveJournal
}

// OverlapError says that an unfinished plan touches the same topic or broker.
type OverlapError struct{ Other *move.State }

// Error names the other plan.
func (e *OverlapError) Error() string {
	return fmt.Sprintf("plan %s is at %s and touches the same topic or broker", e.Other.ID, e.Other.Phase)
}

// Overlapping is a *OverlapError when a plan is under way that touches the same; one that is settled has
// nothing left to do but to be removed.
func (c *Client) Overlapping(ctx context.Context, st *move.State) error {
	moves, errs, err := c.Moves(ctx)
	if err != nil {
		return err
	}
	if len(errs) > 0 {
		return fmt.Errorf("cannot see whether another plan is under way: %w", errs[0])
	}
	for _, m := range moves {
		if o := m.State; o.ID != st.ID && !o.Phase.Ended() && o.Phase != move.Settled && o.Overlaps(st) {
			return &OverlapError{o}
		}
	}
	return nil
}

// StartMove writes a plan into the journal and owns it. Two that are started at the same
// time see each other: the one of the larger id is refused.
func (c *Client) StartMove(ctx context.Context, p *MovePlan, o MoveOptions) (*MoveRun, error) {
	if len(p.Problems) > 0 {
		return nil, fmt.Errorf("cannot begin the move: %s", strings.Join(p.Problems, "; "))
	}
	if err := c.Overlapping(ctx, p.State); err != nil {
		return nil, err
	}
	r, err := c.moveRun(p.State.ID, &o)
	if err != nil {
		return nil, err
	}
	if err := r.begin(ctx, p.State); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	var other *OverlapError
	err = c.Overlapping(ctx, p.State)
	if errors.As(err, &other) && other.Other.Phase == move.Planned && p.State.ID < other.Other.ID {
		err = nil // it will see this one and give up
	}
	if err != nil {
		back := r.State().Clone()
		back.Phase = move.RolledBack
		return nil, errors.Join(err, r.give(ctx, back), r.Close(ctx))
	}
	return r, nil
}

// begin writes the first record. A topic that was made a moment ago is not routed at once.
func (r *MoveRun) begin(ctx context.Context, st *move.State) error {
	if err := r.journal.create(ctx); err != nil {
		return err
	}
	var err error
	for deadline := time.Now().Add(routeWait); time.Now().Before(deadline); {
		var owned *move.OwnedError
		if err = r.Begin(ctx, st); err == nil || errors.As(err, &owned) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	return err
}

// routeWait is how long a new topic may take until its route is known.
const routeWait = 15 * time.Second

// give ends a plan that was never begun.
func (r *MoveRun) give(ctx context.Context, st move.State) error {
	st.Seq++
	return r.journal.Append(ctx, &move.Entry{Plan: st.ID, By: r.Owner, State: &st})
}

func (c *Client) moveRun(plan string, o *MoveOptions) (*MoveRun, error) {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	owner := cmp.Or(o.Owner, MoveOwner())
	j, err := c.openJournal(plan, owner, o.FS, o.File)
	if err != nil {
		return nil, err
	}
	return &MoveRun{
		Runner:  &move.Runner{Cluster: &moveCluster{c}, Journal: j, Plan: plan, Owner: owner, Now: time.Now},
		journal: j,
	}, nil
}

// OpenMove takes over a plan of the journal: of the cluster, or of the copy on this machine
// where the cluster's is gone. The lease is taken with the first step.
func (c *Client) OpenMove(ctx context.Context, plan string, o MoveOptions) (*MoveRun, error) {
	r, err := c.moveRun(plan, &o)
	if err != nil {
		return nil, err
	}
	err = r.Load(ctx)
	if errors.Is(err, move.ErrNoPlan) && o.File != "" {
		var st *move.State
		if st, err = MoveCopy(o.FS, o.File); err == nil {
			if st.ID != plan {
				err = fmt.Errorf("the copy %q is of plan %s", o.File, st.ID)
			} else {
				err = r.begin(ctx, st)
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return r, nil
}

// AskMove leaves a request for whoever runs the plan.
func (c *Client) AskMove(ctx context.Context, plan string, what move.Request, argument string) error {
	j, err := c.openJournal(plan, MoveOwner(), vfs.OS, "")
	if err != nil {
		return err
	}
	return errors.Join(j.Append(ctx, &move.Entry{Plan: plan, By: j.owner, Request: what, Argument: argument}), j.close())
}

// FindMove is the id of a plan: word itself where it is one, else that of the newest plan of
// the kind that is of this topic or broker: one that has not ended before others.
func (c *Client) FindMove(ctx context.Context, kind move.Kind, word string) (string, error) {
	if strings.Contains(word, "@") {
		return word, nil
	}
	moves, errs, err := c.Moves(ctx)
	if err != nil {
		return "", err
	}
	ended := ""
	for _, m := range moves {
		s := m.State
		switch {
		case s.Spec.Kind != kind || s.Spec.Name != word:
		case !s.Phase.Ended():
			return s.ID, nil
		case ended == "":
			ended = s.ID
		}
	}
	switch {
	case len(errs) > 0:
		return "", fmt.Errorf("cannot find a plan for %s: %w", word, errs[0])
	case ended != "":
		return ended, nil
	}
	return "", &NotFoundError{Kind: "plan", Name: word}
}

// GetMove reads a plan from the journal.
func (c *Client) GetMove(ctx context.Context, plan string) (*move.State, error) {
	j, err := c.openJournal(plan, "", vfs.OS, "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = j.close() }()
	entries, _, err := j.Read(ctx, 0)
	if err != nil {
		return nil, err
	}
	st := move.Latest(entries)
	if st == nil {
		return nil, &NotFoundError{Kind: "plan", Name: plan}
	}
	return st, nil
}

// LookMove observes what a plan concerns.
func (c *Client) LookMove(ctx context.Context, st *move.State) (*move.Observation, error) {
	return (&moveCluster{c}).Observe(ctx, st)
}

// Run takes steps until the plan has ended, waits for somebody, or ctx ends; tell hears of
// every step. Steps are never cut in two by ctx: a command that is under way is finished.
func (r *MoveRun) Run(ctx context.Context, tell func(d *move.Decision)) (*move.Decision, error) {
	for {
		d, err := r.Step(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		tell(&d)
		if d.Halt {
			return &d, nil
		}
		if ctx.Err() != nil { // before a wait of no time could win
			return &d, ctx.Err()
		}
		select {
		case <-ctx.Done():
			return &d, ctx.Err()
		case <-time.After(d.Wait):
		}
	}
}

// Take takes the lease of a plan before anything is asked of it. A *move.OwnedError says that somebody else carries it out.
func (r *MoveRun) Take(ctx context.Context) error {
	ok, err := r.journal.Renew(ctx)
	if err == nil && !ok {
		err = &move.OwnedError{Plan: r.Plan, By: r.State().Owner}
	}
	return err
}

// Close gives the lease back where this run has it, and closes the connections of the journal.
func (r *MoveRun) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.journal.c.cfg.BrokerTimeout)
	defer cancel()
	err := r.journal.release(ctx)
	if r.State().Phase.Ended() {
		err = errors.Join(err, r.journal.forget(ctx))
	}
	return errors.Join(err, r.journal.close())
}
