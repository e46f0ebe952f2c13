package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"mqx/client"
	"mqx/internal/userfile"
	"mqx/internal/vfs"
	"mqx/internal/words"
	"mqx/message"
	"mqx/remoting"
)

// copyBodyLimit is larger than any broker's: the broker decides.
const copyBodyLimit = 64 << 20

// Apply sends the messages. Where it ends early, by a failure or because ctx ended, the steps say how far it came, and
// the state goes to Spec.State.
func (p *CopyPlan) Apply(ctx context.Context, c *Client) (*Applied, error) {
	release, err := p.own()
	if err != nil {
		return nil, err
	}
	defer release()
	none := 0
	producer, err := client.NewProducer(client.ProducerConfig{Config: c.messaging(), Group: copyGroup, Retries: &none, MaxMessageSize: copyBodyLimit})
	if err != nil {
		return nil, err
	}
	defer func() { _ = producer.Close() }() // all sends have been answered
	x := &copier{
		spec: &p.Spec, progress: newCopyProgress(p.Spec.State, p.resume, p.Spec), resumed: p.resume != nil, wants: p.wants, convert: p.convert,
		producer: producer, target: c, tell: p.opts.Tell, always: p.Spec.DeadLetters && p.Spec.To == "" && !p.Spec.Again,
	}
	if !p.Spec.NewIDs || x.always {
		x.there = p.there(c, x)
	}
	source, closeSource, err := p.source(ctx, p.opts.Source)
	if err != nil {
		return nil, err
	}
	defer closeSource()
	unreadable, err := x.run(ctx, source)
	a := &Applied{Steps: p.done(x), Final: errors.New("messages that were sent cannot be taken back")}
	if err != nil {
		a.Errors = append(a.Errors, TargetError{Addr: "messages", Err: p.ended(err)})
	}
	if unreadable > 0 {
		a.Errors = append(a.Errors, TargetError{Addr: "messages", Err: fmt.Errorf("cannot read %s: how many messages they held is not known", words.Count(unreadable, "record"))})
	}
	if x.mu.refused != nil {
		a.Errors = append(a.Errors, TargetError{Addr: "messages", Err: fmt.Errorf("some can never be sent, the first: %w", x.mu.refused)})
	}
	return a, nil
}

// own holds the state, so that two runs do not send the same messages, and reads it anew: another run may have gone on since the plan
// was made.
func (p *CopyPlan) own() (release func(), err error) {
	path := p.Spec.State
	if path == "" || p.Spec.OwnState { // that one has a name of its own
		return func() {}, nil
	}
	held, err := userfile.Hold(path)
	if errors.Is(err, vfs.ErrLocked) {
		return nil, &RefusedError{What: "cannot send the messages: another run of this copy does", Why: "it holds " + path, Try: "when it has ended", Unsafe: true}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock state %q: %w", path, err)
	}
	release = func() { _ = held.Close() } // it goes with the process anyway
	now, err := loadCopyState(path)
	if err == nil && p.resume != nil && now == nil {
		err = &RefusedError{What: "cannot go on: state " + path + " is gone", Why: "another run has sent the rest meanwhile, or somebody removed it", Try: "plan anew", Unsafe: true}
	}
	if err == nil && now != nil && (!now.Spec.same(&p.Spec) || !slices.Equal(now.Spec.Ranges, p.Spec.Ranges)) {
		err = otherCopy(path, now)
	}
	if err != nil {
		release()
		return nil, err
	}
	p.resume = now
	return release, nil
}

// copyGroup is the producer group of copies.
const copyGroup = "mqx_message_copy"

// ended says how to go on.
func (p *CopyPlan) ended(err error) error {
	if p.Spec.State == "" {
		return err
	}
	return fmt.Errorf("ended early, to go on: %s: %w", cmp.Or(p.Spec.goOn, "the command that planned it, with --state "+p.Spec.State), err)
}

func (p *CopyPlan) convert(m *client.Received) (resent, error) {
	if p.Spec.To != "" {
		return copyOf(m, p.Spec.To, !p.Spec.NewIDs), nil
	}
	times := int32(0)
	if p.Spec.KeepRetries {
		times = m.ReconsumeTimes
	}
	return retryOf(m, p.Spec.Group, times)
}

// there reports whether the target has a message since this copy began: a dead letter since it died. The record that is
// copied is not meant, nor one that was there before.
func (p *CopyPlan) there(target *Client, x *copier) func(ctx context.Context, m *client.Received) (bool, error) {
	topic := p.Spec.To
	if topic == "" {
		topic = message.RetryTopic(p.Spec.Group)
	}
	return func(ctx context.Context, m *client.Received) (bool, error) {
		since := x.progress.firstStored()
		if x.always {
			since = m.StoreTimestamp
		}
		if m.UniqKey() == "" || since == 0 {
			return false, nil
		}
		f, err := target.FindByKey(ctx, KeyQuery{Topic: topic, Key: m.UniqKey(), Unique: true})
		if err != nil {
			return false, err
		}
		for _, r := range f.Messages {
			if r.OffsetID != m.OffsetID && r.StoreTimestamp >= since {
				return true, nil
			}
		}
		if len(f.Errors) > 0 {
			return false, f.Errors[0]
		}
		return false, nil
	}
}

// source is where the messages come from.
func (p *CopyPlan) source(ctx context.Context, c *Client) (copySource, func(), error) {
	if p.opts.Lines != nil {
		return p.lines(), func() {}, nil
	}
	var ranges, closed []client.QueueRange
	for _, r := range p.Spec.Ranges {
		q := remoting.MessageQueue{Topic: p.Spec.Topic, BrokerName: r.Broker, QueueID: r.QueueID}
		qr := client.QueueRange{Queue: q, Start: p.startOf(r), End: r.End}
		switch {
		case qr.Start >= qr.End:
		case p.Spec.DeadLetters && !c.readable(ctx, p.brokers[r.Broker], p.Spec.Topic):
			closed = append(closed, qr)
		default:
			ranges = append(ranges, qr)
		}
	}
	rc := client.ReaderConfig{Config: c.messaging(), Topic: p.Spec.Topic, Ranges: ranges, Ordered: true}
	r, err := client.NewReader(rc)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, f func(copyItem) error) error {
		take := func(m *client.Received) error {
			return f(copyItem{lane: CopyRange{Broker: m.Queue.BrokerName, QueueID: m.Queue.QueueID}.lane(), pos: m.QueueOffset, from: m.Queue, m: m})
		}
		if len(ranges) > 0 {
			if err := r.Read(ctx, take); err != nil {
				return err
			}
		}
		for _, qr := range closed {
			if err := c.readClosed(ctx, p.brokers[qr.Queue.BrokerName], qr, take); err != nil {
				if errors.Is(err, client.ErrStop) {
					return nil
				}
				return err
			}
		}
		return nil
	}, func() { _ = r.Close() }, nil
}

// lines is the source of an import: a lane is a queue of the broker that a line says has stored it.
func (p *CopyPlan) lines() copySource {
	return func(ctx context.Context, f func(copyItem) error) error {
		err := p.opts.Lines(ctx, func(n int64, m *client.Received) error {
			q := remoting.MessageQueue{Topic: m.Topic, BrokerName: m.StoreHost.String(), QueueID: m.QueueID}
			lane := fmt.Sprintf("%s/%d", q.BrokerName, q.QueueID)
			if p.resume != nil {
				if l := p.resume.Lanes[lane]; l != nil && n < l.Next {
					return nil
				}
			}
			return f(copyItem{lane: lane, pos: n, from: q, m: m})
		})
		if errors.Is(err, client.ErrStop) {
			return nil
		}
		return err
	}
}

// done are the steps with what was counted.
func (p *CopyPlan) done(x *copier) []Step {
	if p.opts.Lines != nil {
		x.progress.mu.Lock()
		defer x.progress.mu.Unlock()
		return []Step{{Addr: p.Spec.File, Action: ActionSend, After: x.progress.total()}}
	}
	steps := p.Steps()
	for i := range steps {
		steps[i].Text, steps[i].After = "", x.progress.lane(p.Spec.Ranges[i].lane())
	}
	return steps
}
