package admin

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// GroupHealth is how one group stands at a moment.
type GroupHealth struct {
	Group   string
	Members int
	// Lag are the messages behind over all queues with an offset, Worst the most of one
	// queue; nil when no queue has one, or a broker does not tell.
	Lag, Worst *int64
	// Behind is how old the oldest message is that it has not consumed, by the topics it
	// is behind in; nil when the brokers do not say.
	Behind *time.Duration
	// Part: a broker did not tell: there may be more members, and more findings.
	Part     bool
	Findings []Finding
	// Err is why it is not known; what else is known stands all the same.
	Err error
}

// MonitorGroups looks at every group that has consumed or is online: what is undone,
// and whether its members work. It asks brokers and members; those that do not answer
// are in the errors.
func (c *Client) MonitorGroups(ctx context.Context, o StatusOptions) ([]GroupHealth, []TargetError, error) {
	brokers, err := c.targets(ctx, o.Broker, false)
	if err != nil {
		return nil, nil, err
	}
	lags := map[string]*GroupHealth{}
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		table, err := c.groupTable(ctx, b.Addr)
		if err != nil {
			return err
		}
		var names []string
		for name := range table {
			if !message.IsSystemGroup(name) {
				names = append(names, name)
			}
		}
		return several(perBroker, names, func(name string) error { return c.lagOn(ctx, b, name, lags, mu) })
	})
	out := make([]GroupHealth, 0, len(lags))
	for _, h := range lags {
		if len(errs) > 0 {
			h.Part, h.Lag, h.Worst, h.Behind = true, nil, nil, nil
		}
		out = append(out, *h)
	}
	sorted.By(out, func(a, b GroupHealth) int { return strings.Compare(a.Group, b.Group) })
	var mu sync.Mutex
	_ = several(c.cfg.Parallel, indices(out), func(i int) error {
		status, err := c.GroupStatus(ctx, out[i].Group, o)
		if err != nil {
			out[i].Err = err
			return nil
		}
		out[i].Members, out[i].Findings = len(status.Members), status.Findings
		out[i].Part = out[i].Part || len(status.Errors) > 0
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, status.Errors...)
		return nil
	})
	return out, onceEach(errs), nil
}

func indices[T any](list []T) []int {
	out := make([]int, len(list))
	for i := range out {
		out[i] = i
	}
	return out
}

// onceEach keeps the first error of each target, sorted.
func onceEach(errs []TargetError) []TargetError {
	sortErrors(errs)
	return slices.CompactFunc(errs, func(a, b TargetError) bool { return a.Broker == b.Broker && a.Addr == b.Addr })
}

// lagOn adds how far a group is behind at one broker.
func (c *Client) lagOn(ctx context.Context, b Broker, group string, lags map[string]*GroupHealth, mu *sync.Mutex) error {
	stats, err := c.consumeStats(ctx, b.Addr, group, "")
	if err != nil {
		return err
	}
	var total, worst int64
	known := false
	late := map[string]bool{}
	for q, o := range stats.OffsetTable {
		if o.ConsumerOffset < 0 {
			continue
		}
		known = true
		if diff := o.BrokerOffset - o.ConsumerOffset; diff > 0 {
			total += diff
			worst = max(worst, diff)
			late[q.Topic] = true
		}
	}
	behind, err := c.behindOn(ctx, b, group, late)
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	h := lags[group]
	if h == nil {
		h = &GroupHealth{Group: group}
		lags[group] = h
	}
	if known {
		h.Lag, h.Worst = plus(h.Lag, total), atLeast(h.Worst, worst)
		if h.Behind == nil || behind > *h.Behind {
			h.Behind = &behind
		}
	}
	return nil
}

// behindOn is the age of the oldest message not consumed of the topics at one broker.
func (c *Client) behindOn(ctx context.Context, b Broker, group string, topics map[string]bool) (time.Duration, error) {
	var behind time.Duration
	for topic := range topics {
		spans, err := askBody[remoting.QueryConsumeTimeSpanBody](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqQueryConsumeTimeSpan,
			&remoting.QueryConsumeTimeSpanHeader{Topic: topic, Group: group}))
		if err != nil {
			return 0, err
		}
		for _, s := range spans.ConsumeTimeSpanSet {
			behind = max(behind, time.Duration(s.DelayTime)*time.Millisecond)
		}
	}
	return behind, nil
}

func plus(p *int64, n int64) *int64 {
	if p != nil {
		n += *p
	}
	return &n
}

func atLeast(p *int64, n int64) *int64 {
	if p != nil {
		n = max(n, *p)
	}
	return &n
}
