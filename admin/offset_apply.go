package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"mqx/remoting"
)

// Apply sets the offsets and reads each back. Messages that are to be kept are copied
// first; a queue of which that fails is left as it is.
func (p *OffsetPlan) Apply(ctx context.Context, c *Client) (*Applied, error) {
	byBroker := map[Broker][]*offsetStep{}
	var brokers []Broker
	done := make([]bool, len(p.steps))
	place := map[*offsetStep]int{}
	for i := range p.steps {
		s := &p.steps[i]
		place[s] = i
		b := Broker{Cluster: s.Cluster, Name: s.Broker, Addr: s.Addr}
		if byBroker[b] == nil {
			brokers = append(brokers, b)
		}
		byBroker[b] = append(byBroker[b], s)
	}
	out := &Applied{}
	var mine sync.Mutex
	out.Errors = c.each(brokers, func(_ *sync.Mutex, b Broker) error {
		var failures []error
		steps := byBroker[b]
		if err := p.tell(ctx, c, b, steps); err != nil {
			return err
		}
		for _, s := range steps {
			if err := p.applyStep(ctx, c, b, s); err != nil {
				failures = append(failures, err)
				if !isResponse(err) && ctx.Err() != nil {
					break
				}
				continue
			}
			mine.Lock()
			done[place[s]] = true
			mine.Unlock()
		}
		return errors.Join(failures...)
	})
	var undo []offsetRecord
	back := false
	for i := range p.steps {
		if !done[i] {
			continue
		}
		s := &p.steps[i]
		out.Steps = append(out.Steps, s.step())
		if !s.idle() {
			undo = append(undo, s.record())
			back = back || s.Before.OK
		}
	}
	out.Undo = undo
	if len(undo) > 0 && !back {
		out.Final = errors.New("the group had no offsets to go back to; mqx admin offset rm takes these away")
	}
	return out, nil
}

// tell has a broker tell the members, for the topics for which that is the way.
func (p *OffsetPlan) tell(ctx context.Context, c *Client, b Broker, steps []*offsetStep) error {
	told := map[string]bool{}
	for _, s := range steps {
		if s.Via != viaTell || told[s.Topic] || s.idle() {
			continue
		}
		told[s.Topic] = true
		h := &remoting.ResetOffsetHeader{Group: p.spec.Group, Topic: s.Topic, QueueID: -1, Timestamp: -1, IsForce: true}
		switch p.spec.To.Kind {
		case ToStart:
			h.Timestamp = 0
		case ToTime:
			h.Timestamp = p.spec.To.TimeMs
		}
		if _, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqInvokeBrokerToResetOffset, h)); err != nil {
			return err
		}
	}
	return nil
}

// applyStep sets one offset and reads it back.
func (p *OffsetPlan) applyStep(ctx context.Context, c *Client, b Broker, s *offsetStep) error {
	if s.idle() {
		return nil
	}
	if p.spec.KeepSkipped && !s.Retry {
		if err := c.keepSkipped(ctx, b, p.spec.Group, s); err != nil {
			return err
		}
	}
	var err error
	switch s.Via {
	case viaReset:
		err = c.resetOffset(ctx, b.Addr, p.spec.Group, s.QueueID, s.Move.Offset)
	case viaCommit:
		err = c.commitOffset(ctx, b.Addr, p.spec.Group, s.QueueID, s.Move.Offset)
	}
	if err != nil {
		return fmt.Errorf("cannot set the offset of %s: %w", s.QueueID, err)
	}
	return p.readBack(ctx, c, b, s)
}

// readBack looks whether an offset is what it was set to. One of a group that is online
// may have gone on from there.
func (p *OffsetPlan) readBack(ctx context.Context, c *Client, b Broker, s *offsetStep) error {
	now, err := c.offsetNow(ctx, b.Addr, p.spec.Group, s.QueueID)
	if err != nil {
		return fmt.Errorf("cannot read the offset of %s back: %w", s.QueueID, err)
	}
	if now.OK && now.Value == s.Move.Offset || s.Via == viaTell {
		return nil // told members commit it themselves
	}
	if p.online && now.OK && now.Value > s.Move.Offset && (!s.Before.OK || now.Value < s.Before.Value || s.Before.Value <= s.Move.Offset) {
		return nil
	}
	text := "none"
	if now.OK {
		text = fmt.Sprint(now.Value)
	}
	return fmt.Errorf("cannot see the new offset of %s: it is %s in place of %d", s.QueueID, text, s.Move.Offset)
}

// resetOffset puts an offset in force at a broker: the next pull of the queue learns of it.
func (c *Client) resetOffset(ctx context.Context, addr, group string, q QueueID, offset int64) error {
	_, err := c.ask(ctx, addr, remoting.NewRequest(remoting.ReqInvokeBrokerToResetOffset, &remoting.ResetOffsetHeader{
		Group: group, Topic: q.Topic, QueueID: q.QueueID, Offset: remoting.Some(offset), Timestamp: -1, IsForce: true,
	}))
	return err
}

// commitOffset commits an offset for a group. While an earlier reset waits for the group
// brokers answer success and do nothing: then it is reset once more.
func (c *Client) commitOffset(ctx context.Context, addr, group string, q QueueID, offset int64) error {
	if _, err := c.ask(ctx, addr, remoting.NewRequest(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{
		ConsumerGroup: group, Topic: q.Topic, QueueID: q.QueueID, CommitOffset: offset,
	})); err != nil {
		return err
	}
	now, err := c.offsetNow(ctx, addr, group, q)
	if err != nil || now.OK && now.Value == offset {
		return err
	}
	return c.resetOffset(ctx, addr, group, q, offset)
}

// offsetNow is what a group has committed, or what it was reset to.
func (c *Client) offsetNow(ctx context.Context, addr, group string, q QueueID) (remoting.Opt[int64], error) {
	resp, err := c.ask(ctx, addr, remoting.NewRequest(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetHeader{
		ConsumerGroup: group, Topic: q.Topic, QueueID: q.QueueID, SetZeroIfNotFound: remoting.Some(false),
	}))
	if hasCode(err, remoting.RespQueryNotFound) {
		return remoting.Opt[int64]{}, nil
	}
	if err != nil {
		return remoting.Opt[int64]{}, err
	}
	at, ok, err := resp.Fields.Int64("offset")
	return remoting.Opt[int64]{Value: at, OK: ok}, err
}

// replanOffset plans anew and compares brokers, queues, members and, of a group that is
// offline, what it had committed.
func replanOffset(ctx context.Context, c *Client, saved []byte) (Plan, error) {
	was, err := readSaved[savedOffsetPlan](kindOffset, saved)
	if err != nil {
		return nil, err
	}
	p, err := c.PlanOffsets(ctx, was.Spec)
	if err != nil {
		return nil, err
	}
	if Idle(p) && len(p.missing) == 0 && len(p.steps) == len(was.Steps) {
		return p, nil
	}
	if d := was.differences(p); len(d) > 0 {
		return nil, &ChangedError{Kind: "group", Object: p.spec.Group, Differences: d}
	}
	return p, nil
}

func (s *savedOffsetPlan) differences(p *OffsetPlan) (out []string) {
	lists := func(what string, was, is []string) {
		if !slices.Equal(was, is) {
			out = append(out, fmt.Sprintf("%s were %v, are %v", what, was, is))
		}
	}
	lists("clusters", s.Cluster, p.clusters)
	lists("members", s.Members, p.members)
	lists("brokers without an answer", s.Missing, missingNames(p.missing))
	for i := range p.steps {
		now := p.steps[i].record()
		j := slices.IndexFunc(s.Steps, func(r offsetRecord) bool { return r.QueueID == now.QueueID })
		switch {
		case j < 0:
			out = append(out, now.QueueID.String()+" was not part of it")
		case !p.online && !sameOffset(s.Steps[j].Before, now.Before):
			out = append(out, fmt.Sprintf("the offset of %s was %s, is %s", now.QueueID, offsetText(s.Steps[j].Before), offsetText(now.Before)))
		}
	}
	for _, r := range s.Steps {
		if !slices.ContainsFunc(p.steps, func(o offsetStep) bool { return o.QueueID == r.QueueID }) {
			out = append(out, r.QueueID.String()+" is no longer part of it")
		}
	}
	return out
}

func sameOffset(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func offsetText(n *int64) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}

// undoOffset plans to put offsets back. The group may have gone on from where they were
// set; where it stands before that, somebody has set them since. Where it had no offset
// the one it was given stays.
func undoOffset(ctx context.Context, c *Client, group string, undo []byte) ([]Plan, error) {
	done, err := readSaved[[]offsetRecord](kindOffset, undo)
	if err != nil {
		return nil, err
	}
	spec := OffsetSpec{Group: group, To: OffsetTo{Kind: ToValues}}
	for _, r := range *done {
		if r.Before != nil {
			spec.To.Values = append(spec.To.Values, OffsetValue{r.QueueID, *r.Before})
		}
	}
	p, err := c.PlanOffsets(ctx, spec)
	if err != nil {
		return nil, err
	}
	p.undoes = true
	var changed []string
	for i := range p.steps {
		s := &p.steps[i]
		j := slices.IndexFunc(*done, func(r offsetRecord) bool { return r.QueueID == s.QueueID })
		if after := (*done)[j].After; s.Before.Or(-1) < after {
			changed = append(changed, fmt.Sprintf("the offset of %s was set to %d, is %s", s.QueueID, after, offsetText(s.record().Before)))
		}
	}
	if len(changed) > 0 {
		return nil, &ChangedError{Kind: "group", Object: group, Differences: changed}
	}
	return []Plan{p}, nil
}
