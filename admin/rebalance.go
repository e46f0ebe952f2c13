package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"

	"mqx/message"
	"mqx/remoting"
)

// Measures of RebalanceOptions.
const (
	ByAll    = "all" // queues, bytes and messages a second, each as a share of its sum
	ByQueues = "queues"
	ByBytes  = "bytes"
	ByTPS    = "tps"
)

// RebalanceOptions say what is to be even, and how even.
type RebalanceOptions struct {
	Target    Target
	By        string  // default ByAll
	Tolerance float64 // a broker may have so much more than the average; default 0.1
	MaxMoves  int     // default 20
}

// Load is what a broker holds and gets.
type Load struct {
	Queues   int
	Messages int64
	Bytes    float64 // estimated: messages by the average size of the broker's messages
	TPS      float64 // messages put a second
}

func (l Load) plus(o Load, sign int) Load {
	return Load{l.Queues + sign*o.Queues, l.Messages + int64(sign)*o.Messages, l.Bytes + float64(sign)*o.Bytes, l.TPS + float64(sign)*o.TPS}
}

// TopicPart is the part of a topic on one broker.
type TopicPart struct {
	Topic  string
	Broker string
	// Fixed parts stay where they are, and Why says the reason.
	Fixed bool
	Why   string
	Load
}

// Move is one proposal: all queues of a topic on one broker go to another.
type Move struct {
	Part   TopicPart
	Target string
}

// Proposal is what would make a cluster even.
type Proposal struct {
	Cluster       string
	Moves         []Move
	Before, After map[string]Load // by broker
	Fixed         []TopicPart     // that cannot be moved without leave
}

// Rebalance proposes moves that make the brokers of a cluster carry alike. It changes
// nothing. Ordered topics stay where they are. A broker that does not tell what it has is in errs; it
// is neither source nor target, and the others are made even among themselves.
func (c *Client) Rebalance(ctx context.Context, o RebalanceOptions) (*Proposal, []TargetError, error) {
	masters, errs, err := c.changeTargets(ctx, o.Target)
	if err != nil {
		return nil, nil, err
	}
	parts, silent := c.topicParts(ctx, masters)
	p := propose(slices.Sorted(maps.Keys(parts)), slices.Concat(slices.Collect(maps.Values(parts))...), o)
	if len(masters) > 0 {
		p.Cluster = masters[0].Cluster
	}
	return p, append(errs, silent...), nil
}

// topicParts reads what each broker has of each topic, by broker.
func (c *Client) topicParts(ctx context.Context, masters []Broker) (map[string][]TopicPart, []TargetError) {
	own := ownNames(masters)
	out := map[string][]TopicPart{}
	errs := c.each(masters, func(mu *sync.Mutex, b Broker) error {
		topics, err := c.topicTable(ctx, b.Addr)
		if err != nil {
			return err
		}
		info, err := c.RuntimeInfo(ctx, b.Addr)
		if err != nil {
			return err
		}
		size, err := strconv.ParseFloat(info["putMessageAverageSize"], 64)
		if err != nil || math.IsNaN(size) {
			size = 0
		}
		parts := []TopicPart{}
		for _, name := range slices.Sorted(maps.Keys(topics)) {
			if topicKind(name, own) != KindNormal || name == TopicMoves {
				continue
			}
			tc := topics[name]
			stats, err := c.topicStats(ctx, b.Addr, name)
			if err != nil {
				return fmt.Errorf("cannot ask for topic %q: %w", name, err)
			}
			p := TopicPart{Topic: name, Broker: b.Name, Load: Load{Queues: int(max(tc.ReadQueueNums, tc.WriteQueueNums)), TPS: stats.TopicPutTPS}}
			for _, q := range stats.OffsetTable {
				p.Messages += q.MaxOffset - q.MinOffset
			}
			p.Bytes = float64(p.Messages) * size
			p.fix(&tc)
			parts = append(parts, p)
		}
		mu.Lock()
		defer mu.Unlock()
		out[b.Name] = parts
		return nil
	})
	return out, errs
}

// fix says whether a part stays where it is.
func (p *TopicPart) fix(tc *remoting.TopicConfig) {
	switch {
	case message.IsSystemTopic(p.Topic):
		p.Fixed = true
	case tc.Order:
		p.Fixed, p.Why = true, "it is ordered: mqx admin queue migrate moves it alone, with its order"
	case tc.Perm&permWrite == 0: // as a move leaves it, until its messages expire
		p.Fixed, p.Why, p.Queues = true, "it is not written there any more", 0
	}
}

// weigher turns a load into one number; the sums make different things comparable.
func weigher(by string, sum Load) func(Load) float64 {
	share := func(v, of float64) float64 {
		if of <= 0 {
			return 0
		}
		return v / of
	}
	queues := func(l Load) float64 { return share(float64(l.Queues), float64(sum.Queues)) }
	bytes := func(l Load) float64 { return share(l.Bytes, sum.Bytes) }
	tps := func(l Load) float64 { return share(l.TPS, sum.TPS) }
	switch by {
	case ByQueues:
		return queues
	case ByBytes:
		return bytes
	case ByTPS:
		return tps
	}
	return func(l Load) float64 { return queues(l) + bytes(l) + tps(l) }
}

// propose is the decision: as long as a broker has more than its share, the part that
// brings it and the emptiest broker nearest to each other goes there. A broker that has
// the topic already is no target: its queues would be mixed with those that come.
func propose(brokers []string, parts []TopicPart, o RebalanceOptions) *Proposal {
	p := &Proposal{Before: map[string]Load{}, After: map[string]Load{}}
	var sum Load
	for _, b := range brokers {
		p.Before[b] = Load{}
	}
	parts = slices.SortedFunc(slices.Values(parts), func(a, b TopicPart) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Broker, b.Broker))
	})
	has := map[[2]string]bool{}
	for _, part := range parts {
		sum = sum.plus(part.Load, 1)
		p.Before[part.Broker] = p.Before[part.Broker].plus(part.Load, 1)
		has[[2]string{part.Topic, part.Broker}] = true
		if part.Fixed {
			p.Fixed = append(p.Fixed, part)
		}
	}
	maps.Copy(p.After, p.Before)
	weigh := weigher(o.By, sum)
	limit := cmp.Or(o.MaxMoves, defaultMaxMoves)
	tolerance := cmp.Or(o.Tolerance, defaultTolerance)
	moved := map[[2]string]bool{}
	for len(p.Moves) < limit {
		m, ok := p.best(brokers, parts, has, moved, weigh, tolerance)
		if !ok {
			break
		}
		p.Moves = append(p.Moves, m)
		from, to := m.Part.Broker, m.Target
		p.After[from], p.After[to] = p.After[from].plus(m.Part.Load, -1), p.After[to].plus(m.Part.Load, 1)
		delete(has, [2]string{m.Part.Topic, from})
		has[[2]string{m.Part.Topic, to}], moved[[2]string{m.Part.Topic, from}] = true, true
	}
	return p
}

const (
	defaultMaxMoves  = 20
	defaultTolerance = 0.1
)

// best is the move that evens out most; ok is false when none helps.
func (p *Proposal) best(brokers []string, parts []TopicPart, has, moved map[[2]string]bool, weigh func(Load) float64, tolerance float64) (best Move, ok bool) {
	if len(brokers) < 2 {
		return best, false
	}
	sorted := slices.Clone(brokers)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(weigh(p.After[b]), weigh(p.After[a])) })
	total := 0.0
	for _, b := range brokers {
		total += weigh(p.After[b])
	}
	from := sorted[0]
	if mean := total / float64(len(brokers)); weigh(p.After[from]) <= mean*(1+tolerance) {
		return best, false
	}
	gain := 0.0
	for _, to := range slices.Backward(sorted[1:]) {
		gap := weigh(p.After[from]) - weigh(p.After[to])
		for _, part := range parts {
			key := [2]string{part.Topic, part.Broker}
			w := weigh(part.Load)
			if part.Fixed || part.Broker != from || moved[key] || has[[2]string{part.Topic, to}] || w <= 0 || w >= gap {
				continue
			}
			if g := min(w, gap-w); g > gain*(1+1e-9) {
				best, gain, ok = Move{part, to}, g, true
			}
		}
		if ok {
			return best, true
		}
	}
	return best, ok
}
