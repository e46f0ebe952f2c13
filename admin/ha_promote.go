package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"mqx/internal/ballot"
	"mqx/internal/words"
	"mqx/remoting"
)

// kindRole is the kind of plans that change roles in a group of brokers.
const kindRole = "ha-role"

const (
	fenceSeconds = 300 // of the old master while the new one comes up
	// stateWait bounds the wait for a slave to have what the fenced master has, and for a broker to come back with its role.
	stateWait = 2 * time.Minute
)

// RoleSpec is a change of roles: one of the verbs promote, demote and resync.
type RoleSpec struct {
	Verb string `json:"verb"`
	// Broker is the address of the replica; for promote also the name of the group, of which the replica is taken whose
	// log ends in the newest epoch, and of those the one with the longest.
	Broker string `json:"broker"`
	// Role of a promoted broker: ASYNC_MASTER or SYNC_MASTER; empty: that of the master it follows.
	Role string `json:"role,omitempty"`
	// ID of a demoted broker; 0: the lowest that is free.
	ID int64 `json:"id,omitempty"`
	// MasterGone says that the old master is stopped and will not come back as one.
	MasterGone bool `json:"masterGone,omitempty"`
	// Shorter lets a replica be promoted that has less than another one, or demotes the only master.
	Shorter bool `json:"shorter,omitempty"`
	// Wipe takes the whole log away, Discard without keeping it.
	Wipe    bool `json:"wipe,omitempty"`
	Discard bool `json:"discard,omitempty"`
}

// RoleState is the role of a broker, as a step shows it.
type RoleState struct {
	Role  string `json:"role" yaml:"role"`
	ID    int64  `json:"id" yaml:"id"`
	Epoch int64  `json:"epoch" yaml:"epoch"`
	End   int64  `json:"end" yaml:"end"` // of its log
}

// String is the role in a cell of a table.
func (r RoleState) String() string {
	return fmt.Sprintf("%s id %d epoch %d log %d", r.Role, r.ID, r.Epoch, r.End)
}

func roleOf(s *remoting.HAState) RoleState {
	return RoleState{Role: s.Role, ID: s.BrokerID, Epoch: s.Epoch, End: s.LogEnd}
}

// rolePlan is a planned change of roles.
type rolePlan struct {
	spec     RoleSpec
	object   string
	title    string
	cluster  string
	at       *groupReplica // whose role changes
	old      *groupReplica // promote: the master that is demoted, nil where it is gone
	master   *groupReplica // demote, resync: who is followed then
	role     string
	epoch    int64
	oldID    int64
	cut      remoting.HACut
	idle     bool
	text     string // of the step of this broker
	notes    []Note
	destroys bool
}

// Kind names the form of Saved.
func (p *rolePlan) Kind() string { return kindRole }

// Object is the broker name.
func (p *rolePlan) Object() string { return p.object }

// Title says what is done.
func (p *rolePlan) Title() string { return p.title }

// Clusters is the one of the broker.
func (p *rolePlan) Clusters() []string { return []string{p.cluster} }

// Notes are what would be lost, and what else there is to know.
func (p *rolePlan) Notes() []Note { return p.notes }

// Missing is nothing: who does not answer is in the notes.
func (p *rolePlan) Missing() []TargetError { return nil }

// Destroys reports whether a log goes that is not kept.
func (p *rolePlan) Destroys() bool { return p.destroys }

// Saved is the plan in the form that can be written down.
func (p *rolePlan) Saved() any { return p.spec }

// Steps are the brokers whose roles change.
func (p *rolePlan) Steps() []Step {
	out := []Step{{Broker: p.at.Name, Addr: p.at.Addr, Action: ActionUpdate, Before: roleOf(p.at.state), After: p.after(), Text: p.text}}
	if p.idle {
		out[0].Action = ActionNone
	}
	if p.old != nil {
		out = append(out, Step{
			Broker: p.old.Name, Addr: p.old.Addr, Action: ActionUpdate, Before: roleOf(p.old.state),
			After: RoleState{Role: "SLAVE", ID: p.oldID, Epoch: p.epoch, End: p.old.end},
			Text:  fmt.Sprintf("takes no messages while %s gets the rest, then is a slave with id %d", p.at.Addr, p.oldID),
		})
	}
	return out
}

func (p *rolePlan) after() RoleState {
	s := roleOf(p.at.state)
	switch p.spec.Verb {
	case "promote":
		s.Role, s.ID, s.Epoch = p.role, 0, p.epoch
	case "demote":
		s.Role, s.ID, s.Epoch = "SLAVE", p.oldID, max(s.Epoch, p.epoch)
	}
	if p.cut.To >= 0 {
		s.End = min(s.End, p.cut.To)
	}
	if p.cut.Wipe {
		s.End = 0
	}
	return s
}

// PlanRole plans a change of roles.
func (c *Client) PlanRole(ctx context.Context, spec RoleSpec) (Plan, error) {
	var p *rolePlan
	var err error
	switch spec.Verb {
	case "promote":
		p, err = c.planPromote(ctx, spec)
	case "demote":
		p, err = c.planDemote(ctx, spec)
	case "resync":
		p, err = c.planResync(ctx, spec)
	default:
		err = invalidf("no change of roles is called %q", spec.Verb)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

func replanRole(ctx context.Context, c *Client, saved []byte) (Plan, error) {
	spec, err := readSaved[RoleSpec](kindRole, saved)
	if err != nil {
		return nil, err
	}
	return c.PlanRole(ctx, *spec)
}

// candidate is the replica that a promotion takes, and the whole group.
func (c *Client) candidate(ctx context.Context, spec RoleSpec) (*groupReplica, []*groupReplica, error) {
	if isAddress(spec.Broker) {
		return c.replicaAt(ctx, spec.Broker)
	}
	all, err := c.group(ctx, spec.Broker)
	if err != nil {
		return nil, nil, err
	}
	if len(all) == 0 {
		return nil, nil, &NotFoundError{Kind: "broker", Name: spec.Broker}
	}
	var at *groupReplica
	for _, m := range all {
		if m.mqx() && m.role == "SLAVE" && (at == nil || m.before(at)) {
			at = m
		}
	}
	if at == nil {
		return nil, nil, &RefusedError{What: fmt.Sprintf("cannot promote a slave of %s", spec.Broker), Why: "no slave of mqx answers"}
	}
	return at, all, nil
}

func (c *Client) planPromote(ctx context.Context, spec RoleSpec) (*rolePlan, error) {
	at, all, err := c.candidate(ctx, spec)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("cannot promote %s", at.Addr)
	if at.role != "SLAVE" {
		return nil, &RefusedError{What: what, Why: fmt.Sprintf("it is %s already", at.role)}
	}
	spec.Broker = at.Addr
	p := &rolePlan{spec: spec, object: at.Name, cluster: at.Cluster, at: at, cut: remoting.HACut{To: -1}, role: spec.Role}
	p.title = fmt.Sprintf("make %s the master of %s", at.Addr, at.Name)
	if err := p.compare(what, all); err != nil {
		return nil, err
	}
	if at.state != nil { // else it is refused
		p.epoch = ballot.Next(p.epoch, at.state.Number)
	}
	if err := p.takeFrom(what, all); err != nil {
		return nil, err
	}
	p.role = cmp.Or(p.role, "ASYNC_MASTER")
	p.text = fmt.Sprintf("becomes %s with epoch %d; its process starts itself anew, which closes its port for about a second", p.role, p.epoch)
	return p, nil
}

// compare refuses the promotion, or notes what is lost, where another slave has more, and learns the newest epoch.
func (p *rolePlan) compare(what string, all []*groupReplica) error {
	for _, m := range all {
		if m.state != nil {
			p.epoch = max(p.epoch, m.state.Epoch, m.state.FencedEpoch)
		}
		switch {
		case m.Addr == p.at.Addr, m.gone() && m.ID == 0, !m.gone() && m.master():
		case m.gone():
			p.notes = append(p.notes, Note{"unknown", fmt.Sprintf("slave %s (id %d) does not answer: it may have more than %s", m.Addr, m.ID, p.at.Addr)})
		case !m.ahead(p.at):
			if why := m.unsure(p.at); why != "" {
				p.notes = append(p.notes, Note{"unknown", why})
			}
			if m.parted() {
				p.notes = append(p.notes, Note{wordLost, fmt.Sprintf("slave %s has stopped: its log is not its master's from %d on; mqx admin ha resync cuts %s there and keeps them for mqx admin ha salvage",
					m.Addr, m.groups(), words.Count(m.end-m.groups(), "byte"))})
			}
		case p.spec.Shorter:
			p.notes = append(p.notes, Note{wordLost, fmt.Sprintf("slave %s has %s; they are cut there by mqx admin ha resync", m.Addr, m.more(p.at))})
		default:
			try := "--shorter, which leaves them behind"
			if m.mqx() {
				try = fmt.Sprintf("mqx admin ha promote %s, or %s", m.Addr, try)
			}
			return &RefusedError{What: what, Why: fmt.Sprintf("slave %s has %s", m.Addr, m.more(p.at)), Try: try, Unsafe: true}
		}
	}
	return nil
}

// takeFrom decides what becomes of the old master.
func (p *rolePlan) takeFrom(what string, all []*groupReplica) error {
	old := masterFor(p.at, all)
	switch {
	case old == nil && !p.spec.MasterGone:
		return &RefusedError{
			What: what, Why: "its master does not answer: it may still take messages, which would be lost",
			Try: "stop it for good, then --master-gone", Unsafe: true,
		}
	case old == nil:
		p.notes = append(p.notes, Note{wordLost, "what the old master took last and had not sent is not known here: when it comes back, mqx admin ha demote keeps it for mqx admin ha salvage"})
		return nil
	case !old.mqx():
		return &RefusedError{
			What: what, Why: fmt.Sprintf("its master %s is a broker of Apache and runs: it cannot be told to take no more messages", old.Addr),
			Try: "stop it once this slave has everything (mqx admin ha status), then --master-gone", Unsafe: true,
		}
	case p.at.state.Phase != "following":
		return &RefusedError{What: what, Why: fmt.Sprintf("it does not follow its master %s (%s %s)", old.Addr, p.at.state.Phase, p.at.state.Error), Try: "mqx admin ha resync " + p.at.Addr, Unsafe: true}
	}
	p.old, p.oldID = old, p.at.ID
	if p.spec.ID > 0 {
		p.oldID = p.spec.ID
	}
	p.role = cmp.Or(p.role, old.role)
	if gap := old.end - p.at.end; gap > 0 {
		p.notes = append(p.notes, Note{"behind", fmt.Sprintf("%s: the old master takes no messages until they have come, and this is given up after %s", words.Count(gap, "byte"), stateWait)})
	}
	p.notes = append(p.notes, Note{"lost", "nothing: the new master has everything before it becomes one"})
	return nil
}

// Apply changes the roles and reads them back.
func (p *rolePlan) Apply(ctx context.Context, c *Client) (*Applied, error) {
	if p.spec.Verb != "promote" {
		return p.applyCut(ctx, c)
	}
	if p.old != nil {
		if err := p.fenceOld(ctx, c); err != nil {
			return nil, err
		}
	}
	if err := c.askHA(ctx, p.at.Addr, remoting.HAActPromote, &remoting.HAPromote{Epoch: p.epoch, Role: p.role}, nil); err != nil {
		p.lift(ctx, c)
		return nil, fmt.Errorf("cannot promote %s: %w", p.at.Addr, err)
	}
	out := &Applied{Final: errors.New("roles are changed back by promoting the other broker: mqx admin ha promote")}
	is, err := c.awaitState(ctx, p.at.Addr, func(s *remoting.HAState) bool { return s.Role == p.role && s.Epoch >= p.epoch })
	if err != nil {
		out.Errors = append(out.Errors, p.at.fail(err))
		return out, nil
	}
	out.Steps = append(out.Steps, p.done(p.at, is))
	if p.old == nil {
		return out, nil
	}
	args := &remoting.HADemote{ID: p.oldID, Epoch: p.epoch, Cut: remoting.HACut{To: -1}}
	err = c.askHA(ctx, p.old.Addr, remoting.HAActDemote, args, nil)
	if err == nil {
		is, err = c.awaitState(ctx, p.old.Addr, func(s *remoting.HAState) bool { return s.Role == "SLAVE" && s.BrokerID == p.oldID })
	}
	if err != nil {
		out.Errors = append(out.Errors, p.old.fail(fmt.Errorf("%w; mqx admin ha demote %s makes it a slave", err, p.old.Addr)))
		return out, nil
	}
	out.Steps = append(out.Steps, p.done(p.old, is))
	return out, nil
}

// fenceOld lets the old master take nothing more and waits until the new one has what it took.
func (p *rolePlan) fenceOld(ctx context.Context, c *Client) error {
	if err := c.askHA(ctx, p.old.Addr, remoting.HAActFence, &remoting.HAFence{Seconds: fenceSeconds}, nil); err != nil {
		return fmt.Errorf("cannot tell the old master %s to take no messages: %w", p.old.Addr, err)
	}
	state, err := c.HAState(ctx, p.old.Addr)
	if err == nil {
		_, err = c.awaitState(ctx, p.at.Addr, func(s *remoting.HAState) bool { return s.LogEnd >= state.LogEnd })
	}
	if err != nil {
		p.lift(ctx, c)
		return fmt.Errorf("nothing was changed, the old master takes messages again: %w", err)
	}
	return nil
}

// lift lets the old master take messages again; where that fails it does so by itself.
func (p *rolePlan) lift(ctx context.Context, c *Client) {
	if p.old != nil {
		_ = c.askHA(context.WithoutCancel(ctx), p.old.Addr, remoting.HAActFence, &remoting.HAFence{}, nil)
	}
}

func (p *rolePlan) done(m *groupReplica, is *remoting.HAState) Step {
	return Step{Broker: m.Name, Addr: m.Addr, Action: ActionUpdate, Before: roleOf(m.state), After: roleOf(is)}
}
