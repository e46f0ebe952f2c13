package admin

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mqx/admin/move"
)

func part(topic, broker string, queues int, bytes, tps float64) TopicPart {
	return TopicPart{Topic: topic, Broker: broker, Load: Load{Queues: queues, Bytes: bytes, TPS: tps}}
}

func moves(p *Proposal) (out []string) {
	for _, m := range p.Moves {
		out = append(out, fmt.Sprintf("%s %s->%s", m.Part.Topic, m.Part.Broker, m.Target))
	}
	return out
}

func TestPropose(t *testing.T) {
	ordered := part("D", "a", 4, 4, 4)
	ordered.Fixed = true
	for name, tc := range map[string]struct {
		brokers []string
		parts   []TopicPart
		opts    RebalanceOptions
		want    []string
	}{
		"even":              {[]string{"a", "b"}, []TopicPart{part("A", "a", 4, 1, 1), part("A", "b", 4, 1, 1)}, RebalanceOptions{}, nil},
		"a new broker":      {[]string{"a", "b"}, []TopicPart{part("A", "a", 4, 4, 4), part("B", "a", 4, 4, 4)}, RebalanceOptions{}, []string{"A a->b"}},
		"one broker":        {[]string{"a"}, []TopicPart{part("A", "a", 4, 4, 4)}, RebalanceOptions{}, nil},
		"nothing small":     {[]string{"a", "b"}, []TopicPart{part("A", "a", 4, 4, 4)}, RebalanceOptions{}, nil},
		"ordered stays":     {[]string{"a", "b"}, []TopicPart{ordered, part("B", "a", 4, 4, 4)}, RebalanceOptions{}, []string{"B a->b"}},
		"it is there":       {[]string{"a", "b"}, []TopicPart{part("A", "a", 8, 8, 8), part("A", "b", 1, 1, 1)}, RebalanceOptions{}, nil},
		"by bytes":          {[]string{"a", "b"}, []TopicPart{part("A", "a", 1, 50, 0), part("B", "a", 9, 10, 0), part("C", "a", 9, 40, 0)}, RebalanceOptions{By: ByBytes}, []string{"A a->b"}},
		"by queues":         {[]string{"a", "b"}, []TopicPart{part("A", "a", 1, 50, 0), part("B", "a", 9, 10, 0), part("C", "a", 8, 40, 0)}, RebalanceOptions{By: ByQueues}, []string{"B a->b"}},
		"so many at a time": {[]string{"a", "b", "c"}, []TopicPart{part("A", "a", 1, 1, 1), part("B", "a", 1, 1, 1), part("C", "a", 1, 1, 1)}, RebalanceOptions{MaxMoves: 1}, []string{"A a->c"}},
	} {
		if got := moves(propose(tc.brokers, tc.parts, tc.opts)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Whatever lies where: nothing is lost or made, nobody gets a topic twice, and the
// fullest broker never ends fuller.
func TestProposeModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		brokers := []string{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(t, "brokers")]
		var parts []TopicPart
		for i := range rapid.IntRange(0, 12).Draw(t, "topics") {
			for _, b := range brokers {
				if rapid.Bool().Draw(t, "there") {
					p := part(fmt.Sprint("T", i), b, rapid.IntRange(1, 16).Draw(t, "queues"), float64(rapid.IntRange(0, 1000).Draw(t, "bytes")), float64(rapid.IntRange(0, 100).Draw(t, "tps")))
					p.Fixed = rapid.IntRange(0, 4).Draw(t, "fixed") == 0
					parts = append(parts, p)
				}
			}
		}
		o := RebalanceOptions{By: rapid.SampledFrom([]string{ByAll, ByQueues, ByBytes, ByTPS}).Draw(t, "by")}
		p := propose(brokers, parts, o)
		sum, before, after := Load{}, Load{}, Load{}
		where := map[string]bool{}
		for _, x := range parts {
			sum = sum.plus(x.Load, 1)
			where[x.Topic+x.Broker] = true
		}
		weigh := weigher(o.By, sum)
		most := func(of map[string]Load) (m float64) {
			for _, l := range of {
				m = max(m, weigh(l))
			}
			return m
		}
		for _, b := range brokers {
			before, after = before.plus(p.Before[b], 1), after.plus(p.After[b], 1)
		}
		if before.Queues != sum.Queues || after.Queues != sum.Queues {
			t.Fatalf("queues: %d, before %d, after %d", sum.Queues, before.Queues, after.Queues)
		}
		if most(p.After) > most(p.Before)+1e-9 {
			t.Fatalf("the fullest broker got fuller: %v, %v", p.Before, p.After)
		}
		for _, m := range p.Moves {
			if m.Part.Fixed || where[m.Part.Topic+m.Target] || !where[m.Part.Topic+m.Part.Broker] {
				t.Fatalf("move %+v", m)
			}
			delete(where, m.Part.Topic+m.Part.Broker)
			where[m.Part.Topic+m.Target] = true
		}
	})
}

func TestRebalance(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	startBroker(t, ns, "b")
	c := patientClient(t, ns)
	for _, topic := range []string{"A", "B", "C", "D"} { // four queues, as the load has offsets for
		create(t, c, Target{Broker: "a"}, TopicSpec{Name: topic, ReadQueues: 4, WriteQueues: 4, Order: topic == "D"})
	}
	p, errs, err := c.Rebalance(t.Context(), RebalanceOptions{})
	if err != nil || len(errs) > 0 || len(p.Moves) != 2 || len(p.Fixed) != 1 || p.After["a"].Queues != 8 || p.After["b"].Queues != 8 {
		t.Fatalf("%+v %v %v", p, errs, err)
	}
	// The engine carries it out, under a group that reads one of the topics.
	load := startMoveLoad(t, ns, p.Moves[0].Part.Topic, "g")
	ask := move.Ask{Kind: move.Rebalance, Cluster: p.Cluster, Policy: move.Policy{RouteInterval: movePoll, Remove: true}}
	for _, m := range p.Moves {
		ask.Moves = append(ask.Moves, move.Move{Topic: m.Part.Topic, Source: m.Part.Broker, Target: m.Target})
	}
	plan, err := c.PlanMove(t.Context(), ask)
	if err != nil || len(plan.Problems) > 0 {
		t.Fatalf("%+v %v", plan, err)
	}
	run, err := c.StartMove(t.Context(), plan, MoveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if end := runMove(t, run, ""); end != move.Done {
		t.Fatalf("ended at %s", end)
	}
	if err := run.Close(t.Context()); err != nil {
		t.Error(err)
	}
	load.finish()
	for _, m := range p.Moves {
		checkOnlyOn(t, c, m.Part.Topic, m.Target)
	}
	if p, _, err = c.Rebalance(t.Context(), RebalanceOptions{By: ByQueues}); err != nil || len(p.Moves) > 0 {
		t.Errorf("it is even, and %+v is proposed, %v", p, err)
	}
}
