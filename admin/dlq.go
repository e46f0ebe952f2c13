package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"mqx/client"
	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// DeadLetters are those of a group on one broker.
type DeadLetters struct {
	Group  string
	Broker Broker
	Perm   int // of the topic; without reading (4) it is read by its records
	Count  int64
	Oldest time.Time // when it was stored; zero when there is none
	Newest time.Time
	queues []CopyRange
}

// ListDeadLetters tells of the dead letters of every group, or of one, by broker, sorted by group and broker. A group
// without any is not in the list, unless it is named and has the topic.
func (c *Client) ListDeadLetters(ctx context.Context, t Target, group string) ([]DeadLetters, []TargetError, error) {
	brokers, err := c.primaries(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	if group != "" {
		if err := message.ValidateGroup(group); err != nil {
			return nil, nil, err
		}
	}
	out, errs := c.deadLettersAt(ctx, brokers, group)
	return out, errs, nil
}

// deadLettersAt asks these brokers.
func (c *Client) deadLettersAt(ctx context.Context, brokers []Broker, group string) (out []DeadLetters, errs []TargetError) {
	errs = c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		table, err := c.topicTable(ctx, b.Addr)
		if err != nil {
			return err
		}
		for topic, cfg := range table {
			name, ok := strings.CutPrefix(topic, message.DLQTopicPrefix)
			if !ok || group != "" && name != group {
				continue
			}
			d, err := c.deadLetters(ctx, b, topic, &cfg)
			if err != nil {
				return err
			}
			if d.Count == 0 && group == "" {
				continue
			}
			mu.Lock()
			out = append(out, *d)
			mu.Unlock()
		}
		return nil
	})
	sorted.By(out, func(a, b DeadLetters) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Broker.Name, b.Broker.Name), cmp.Compare(a.Broker.Addr, b.Broker.Addr))
	})
	return out, errs
}

// deadLetters is what one broker has. The queues are those of the configuration, whatever may be read.
func (c *Client) deadLetters(ctx context.Context, b Broker, topic string, cfg *remoting.TopicConfig) (*DeadLetters, error) {
	d := &DeadLetters{Group: strings.TrimPrefix(topic, message.DLQTopicPrefix), Broker: b, Perm: int(cfg.Perm)}
	for id := range max(cfg.ReadQueueNums, cfg.WriteQueueNums) {
		body, err := askBody[remoting.QueryConsumeQueueBody](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqQueryConsumeQueue,
			&remoting.QueryConsumeQueueHeader{Topic: topic, QueueID: id, Count: 1}))
		if noQueue(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r := CopyRange{Broker: b.Name, QueueID: id, Start: body.MinQueueIndex, End: body.MaxQueueIndex}
		if r.End <= r.Start {
			continue
		}
		d.queues = append(d.queues, r)
		d.Count += r.End - r.Start
		q := remoting.MessageQueue{Topic: topic, BrokerName: b.Name, QueueID: id}
		for _, at := range []int64{r.Start, r.End - 1} {
			ms, _, err := c.queueUnits(ctx, b, q, at, 1)
			if err != nil {
				return nil, err
			}
			for _, m := range ms {
				when := time.UnixMilli(m.StoreTimestamp)
				if d.Oldest.IsZero() || when.Before(d.Oldest) {
					d.Oldest = when
				}
				if when.After(d.Newest) {
					d.Newest = when
				}
			}
		}
	}
	return d, nil
}

// noQueue: the broker says that it has no such queue, which it makes with the first message.
func noQueue(err error) bool {
	re, ok := errors.AsType[*remoting.ResponseError](err)
	return ok && re.Code == remoting.RespSystemError && strings.Contains(re.Remark, "is not exist")
}

// readable reports whether the broker lets the topic be pulled; where that is not known it is tried.
func (c *Client) readable(ctx context.Context, b Broker, topic string) bool {
	cfg, err := c.topicConfig(ctx, b.Addr, topic)
	return err != nil || cfg.Perm&permRead != 0
}

const permRead = 4

// closedBatch is how many units of a queue that cannot be pulled are asked for at a time.
const closedBatch = 32

// readClosed reads a queue that cannot be pulled, by its units: nothing is changed for it.
func (c *Client) readClosed(ctx context.Context, b Broker, qr client.QueueRange, f func(m *client.Received) error) error {
	for at := qr.Start; at < qr.End; {
		ms, next, err := c.queueUnits(ctx, b, qr.Queue, at, int32(min(closedBatch, qr.End-at)))
		for _, m := range ms {
			if err := f(m); err != nil {
				return err
			}
		}
		if err != nil {
			return fmt.Errorf("cannot read %s at %d: %w", qr.Queue, next, err)
		}
		if next <= at {
			return fmt.Errorf("cannot read %s at %d: the broker gives nothing, and said that the queue ends at %d", qr.Queue, at, qr.End)
		}
		at = next
	}
	return nil
}

// ReadDeadLetters calls f for each dead letter of a group, queue by queue, from the oldest on, also where the topic may
// not be read (brokers before 5.0 made it for writing only). ErrStop ends it without an error.
func (c *Client) ReadDeadLetters(ctx context.Context, t Target, group string, f func(m *client.Received) error) ([]TargetError, error) {
	all, errs, err := c.ListDeadLetters(ctx, t, group)
	if err != nil {
		return errs, err
	}
	if len(all)+len(errs) == 0 {
		return nil, &NotFoundError{Kind: "topic", Name: message.DLQTopic(group)}
	}
	for _, d := range all {
		for _, r := range d.queues {
			q := remoting.MessageQueue{Topic: message.DLQTopic(group), BrokerName: r.Broker, QueueID: r.QueueID}
			err := c.readClosed(ctx, d.Broker, client.QueueRange{Queue: q, Start: r.Start, End: r.End}, f)
			if errors.Is(err, client.ErrStop) {
				return errs, nil
			}
			if err != nil {
				errs = append(errs, d.Broker.fail(err))
			}
		}
	}
	return errs, ctx.Err()
}

// deadRanges are the dead letters of the group.
func (p *CopyPlan) deadRanges(ctx context.Context, c *Client) error {
	group := strings.TrimPrefix(p.Spec.Topic, message.DLQTopicPrefix)
	known, err := c.Cluster(ctx)
	if err != nil {
		return err
	}
	wanted, err := among(known, p.opts.Read.Brokers)
	if err != nil {
		return err
	}
	// Those that are asked are the ones that are known now: a broker that goes away meanwhile is missing, not forgotten.
	ask, err := selectPrimaries(known, Target{})
	if err != nil {
		return err
	}
	ask = slices.DeleteFunc(ask, func(b Broker) bool {
		return !slices.ContainsFunc(wanted, func(w Broker) bool { return w.Name == b.Name && w.Cluster == b.Cluster })
	})
	all, errs := c.deadLettersAt(ctx, ask, group)
	p.missing = append(p.missing, errs...)
	p.Spec.Ranges = []CopyRange{}
	for _, d := range all {
		p.brokers[d.Broker.Name] = d.Broker
		p.Spec.Ranges = append(p.Spec.Ranges, d.queues...)
	}
	return nil
}

// purgePlan deletes the dead letter topic of a group.
type purgePlan struct {
	*TopicPlan
	group string
}

// PlanPurgeDeadLetters plans to destroy all dead letters of a group, with the topic: the next one makes it anew.
func (c *Client) PlanPurgeDeadLetters(ctx context.Context, t Target, group string) (Plan, error) {
	if err := message.ValidateGroup(group); err != nil {
		return nil, err
	}
	p, err := c.PlanDeleteTopic(ctx, t, message.DLQTopic(group))
	if err != nil {
		return nil, err
	}
	return &purgePlan{p, group}, nil
}

// Object is the group.
func (p *purgePlan) Object() string { return p.group }

// Title says what is destroyed.
func (p *purgePlan) Title() string { return "destroy the dead letters of group " + p.group }
