package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"mqx/internal/words"
	"mqx/remoting"
)

func (c *Client) planDemote(ctx context.Context, spec RoleSpec) (*rolePlan, error) {
	at, all, err := c.replicaAt(ctx, spec.Broker)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("cannot demote %s", at.Addr)
	if !at.master() {
		return nil, &RefusedError{What: what, Why: "it is a slave already", Try: "mqx admin ha resync " + at.Addr}
	}
	p := &rolePlan{spec: spec, object: at.Name, cluster: at.Cluster, at: at, oldID: spec.ID, cut: remoting.HACut{To: -1}}
	for id := int64(1); p.oldID == 0; id++ {
		if !slices.ContainsFunc(all, func(m *groupReplica) bool { return m.ID == id }) {
			p.oldID = id
		}
	}
	if at.state.FencedBy != "" && !slices.ContainsFunc(all, func(m *groupReplica) bool { return m.Addr == at.state.FencedBy }) {
		all = append(all, c.look(ctx, Broker{Addr: at.state.FencedBy, Name: at.Name}))
	}
	p.title = fmt.Sprintf("make %s a slave of %s with id %d", at.Addr, at.Name, p.oldID)
	p.master = masterFor(at, all)
	switch {
	case p.master == nil && !spec.Shorter:
		return nil, &RefusedError{
			What: what, Why: "no other master of its group answers: none would take messages",
			Try: "mqx admin ha promote of a slave first, or --no-master", Unsafe: true,
		}
	case p.master == nil:
		p.notes = append(p.notes, Note{"writes", "the group takes no messages until a slave of it is promoted"})
		p.text = fmt.Sprintf("becomes a slave with id %d; its log stays as it is", p.oldID)
		return p, nil
	}
	if p.master.state != nil {
		p.epoch = p.master.state.Epoch
	}
	if err := p.planCut(ctx, c); err != nil {
		return nil, err
	}
	p.text = fmt.Sprintf("becomes a slave of %s with id %d, and starts itself anew; %s", p.master.Addr, p.oldID, p.text)
	return p, nil
}

func (c *Client) planResync(ctx context.Context, spec RoleSpec) (*rolePlan, error) {
	at, all, err := c.replicaAt(ctx, spec.Broker)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("cannot resync %s", at.Addr)
	if at.master() {
		return nil, &RefusedError{What: what, Why: "it is a master: its log is the group's", Try: "mqx admin ha demote " + at.Addr}
	}
	p := &rolePlan{spec: spec, object: at.Name, cluster: at.Cluster, at: at, cut: remoting.HACut{To: -1}}
	if p.master = masterFor(at, all); p.master == nil {
		return nil, &RefusedError{What: what, Why: "no master of its group answers", Unsafe: true}
	}
	p.title = fmt.Sprintf("bring the log of slave %s back to that of its master %s", at.Addr, p.master.Addr)
	if err := p.planCut(ctx, c); err != nil {
		return nil, err
	}
	p.idle = p.cut.To < 0 && !p.cut.Wipe && at.state.Phase == "following"
	return p, nil
}

// planCut decides what is cut of the log of a broker that is to follow.
func (p *rolePlan) planCut(ctx context.Context, c *Client) error {
	if p.spec.Wipe {
		p.wipe("the whole log goes, as asked")
		return nil
	}
	common, err := c.compareLogs(ctx, p.at, p.master)
	switch {
	case err != nil:
		return err
	case common.End == 0:
		p.text = "its log is empty"
	case common.Common < 0:
		p.wipe("no record of its log is in that of its master")
	case common.Common < common.End:
		p.cut.To = common.Common
		n := "an unknown number of messages"
		if common.Messages >= 0 {
			n = words.Count(common.Messages, "message")
		}
		p.text = fmt.Sprintf("its log is cut at %d; %s with %s go to mqx/salvage", common.Common, words.Count(common.End-common.Common, "byte"), n)
		p.notes = append(p.notes, Note{wordLost, fmt.Sprintf("%s that only %s has; mqx admin ha salvage replay sends them again", n, p.at.Addr)})
	default:
		p.text = "its log is a beginning of its master's: nothing is cut"
	}
	return nil
}

func (p *rolePlan) wipe(why string) {
	p.cut.Wipe, p.cut.Discard, p.destroys = true, p.spec.Discard, p.spec.Discard
	kept := "is moved to mqx/salvage, which needs room for both until it is removed there"
	if p.spec.Discard {
		kept = "is removed"
	}
	p.text = fmt.Sprintf("%s: it %s, and the master's is copied (%s)", why, kept, words.Count(p.at.end, "byte"))
}

// applyCut makes a broker follow with what is left of its log, and reads its state back.
func (p *rolePlan) applyCut(ctx context.Context, c *Client) (*Applied, error) {
	p.cut.Discard = p.spec.Discard
	var err error
	if p.spec.Verb == "demote" {
		err = c.askHA(ctx, p.at.Addr, remoting.HAActDemote, &remoting.HADemote{ID: p.oldID, Epoch: p.epoch, Cut: p.cut}, nil)
	} else {
		err = c.askHA(ctx, p.at.Addr, remoting.HAActResync, &remoting.HAResync{Cut: p.cut}, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot %s %s: %w", p.spec.Verb, p.at.Addr, err)
	}
	out := &Applied{Final: errors.New("what was cut of a log is not put back; mqx admin ha salvage has it")}
	is, err := c.awaitState(ctx, p.at.Addr, func(s *remoting.HAState) bool {
		return s.Role == "SLAVE" && (p.spec.Verb != "demote" || s.BrokerID == p.oldID) && (p.master == nil || s.Phase == "following")
	})
	if err != nil {
		out.Errors = append(out.Errors, p.at.fail(err))
		return out, nil
	}
	out.Steps = append(out.Steps, p.done(p.at, is))
	return out, nil
}
