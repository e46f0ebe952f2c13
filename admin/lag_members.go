package admin

import (
	"context"
	"maps"
	"slices"
	"strings"

	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// memberOf is a member that is asked through a broker.
type memberOf struct{ group, client string }

// askMembers asks the members that this broker knows what they read: each once,
// through the first broker that comes to it.
func (r *brokerLag) askMembers(ctx context.Context, groups []*groupAt) error {
	var open []memberOf
	r.mu.Lock()
	for _, g := range groups {
		if g.conns == nil || r.members[g.name] == nil {
			continue
		}
		for _, m := range g.conns.ConnectionSet {
			if key := g.name + "@" + m.ClientID; !r.asked[key] {
				r.asked[key] = true
				open = append(open, memberOf{g.name, m.ClientID})
			}
		}
	}
	r.mu.Unlock()
	return several(perBroker, open, func(m memberOf) error {
		info, err := r.c.runningInfo(ctx, r.b.Addr, m.group, m.client, false)
		if err != nil {
			return nil // a member that does not tell is marked, the broker has answered
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.members[m.group][m.client].take(info)
		return nil
	})
}

func (m *LagMember) take(info *remoting.ConsumerRunningInfo) {
	m.Told, m.Counts = true, info.StatusTable
	for q := range info.MQTable {
		m.Queues = append(m.Queues, QueueID{q.Topic, q.BrokerName, q.QueueID})
	}
	for q, p := range info.MQPopTable {
		m.Queues = append(m.Queues, QueueID{q.Topic, q.BrokerName, q.QueueID})
		m.WaitAck += int64(p.WaitAckCount)
	}
	sorted.By(m.Queues, QueueID.compare)
	for _, s := range info.SubscriptionSet {
		m.Subscriptions = append(m.Subscriptions, GroupSubscription{Topic: s.Topic, Expression: s.SubString, Type: s.ExpressionType})
	}
	sorted.By(m.Subscriptions, func(a, b GroupSubscription) int { return strings.Compare(a.Topic, b.Topic) })
}

// finish draws the conclusions from what the brokers and the members said.
func (g *GroupLag) finish(members map[string]*LagMember, asked bool) {
	if !g.Online {
		g.Marks = append(g.Marks, MarkOffline)
		return
	}
	for _, id := range slices.Sorted(maps.Keys(members)) {
		m := members[id]
		if len(m.Addrs) > 1 {
			m.Marks = append(m.Marks, MarkDuplicateID)
			g.mark(MarkDuplicateID)
		}
		g.Members = append(g.Members, *m)
	}
	if g.Model == remoting.Broadcasting {
		g.mark(MarkBroadcast)
	}
	if asked {
		g.compareSubscriptions()
		g.findOwners()
	}
}

func (g *GroupLag) mark(m string) {
	if !slices.Contains(g.Marks, m) {
		g.Marks = append(g.Marks, m)
	}
}

// compareSubscriptions marks the members that subscribe to something else than most.
func (g *GroupLag) compareSubscriptions() {
	texts := make([]string, len(g.Members))
	count := map[string]int{}
	for i := range g.Members {
		if m := &g.Members[i]; m.Told {
			texts[i] = subscriptionText(m.Subscriptions)
			count[texts[i]]++
		}
	}
	if len(count) < 2 {
		return
	}
	g.mark(MarkSubscriptions)
	usual := slices.MaxFunc(slices.Sorted(maps.Keys(count)), func(a, b string) int { return count[a] - count[b] })
	for i := range g.Members {
		if m := &g.Members[i]; m.Told && (texts[i] != usual || count[usual] == 1) {
			m.Marks = append(m.Marks, MarkSubscriptions)
		}
	}
}

func subscriptionText(subs []GroupSubscription) string {
	var parts []string
	for _, s := range subs {
		if !message.IsRetry(s.Topic) {
			parts = append(parts, s.Topic+"\x00"+s.Type+"\x00"+s.Expression)
		}
	}
	return strings.Join(parts, "\x01")
}

// findOwners tells which member reads which queue. Only members that are pushed to in
// a cluster say so; of one that does not answer nothing is concluded.
func (g *GroupLag) findOwners() {
	owners, all := map[QueueID]string{}, true
	var pops remoting.Opt[int64]
	for i := range g.Members {
		m := &g.Members[i]
		if !m.Told {
			all = false
			m.Marks = append(m.Marks, MarkSilent)
			g.mark(MarkSilent)
			continue
		}
		reads := false
		for _, q := range m.Queues {
			owners[q] = m.ClientID
			reads = reads || !message.IsRetry(q.Topic)
		}
		if g.Type == remoting.ConsumePassively && g.Model == remoting.Clustering && !reads {
			m.Marks = append(m.Marks, MarkIdle)
			g.mark(MarkIdle)
		}
		if m.WaitAck > 0 || g.Type == remoting.ConsumePop {
			pops = remoting.Some(pops.Value + m.WaitAck)
		}
	}
	if all {
		g.PopInFlight = pops
	}
	if g.Type != remoting.ConsumePassively || g.Model != remoting.Clustering {
		return
	}
	popping := slices.ContainsFunc(g.Members, func(m LagMember) bool {
		return slices.ContainsFunc(m.Queues, func(q QueueID) bool { return q.QueueID < 0 })
	})
	for i := range g.Queues {
		q := &g.Queues[i]
		q.Owner = owners[q.QueueID]
		if q.Owner != "" || !all || popping || q.Retry && isPopRetry(q.Topic, g.Group) {
			continue
		}
		q.Marks = append(q.Marks, MarkNoOwner)
		if q.Lag.OK && q.Lag.Value > 0 && q.Age.OK && q.Expires == WillNo {
			q.Expires = WillYes // nobody reads this one, whatever the rate of the others is
		}
		g.mark(MarkNoOwner)
	}
}
