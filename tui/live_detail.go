package tui

import (
	"context"
	"slices"
	"time"

	"mqx/admin"
	"mqx/internal/sorted"
)

// detail is what costs requests by the group: its members, and how old and how safe its
// backlog is.
type detail struct {
	at     time.Time
	group  Group // without its queues
	queues []Queue
	min    map[queueRef]int64
	known  bool
}

// readMore reads what a view needs beside the rest, as much of it as fits into the
// bound. A group that has gone is no error.
func (l *Live) readMore(ctx context.Context, s *Snapshot, want Want) error {
	if l.details == nil {
		l.details, l.stored, l.consumers = map[string]*detail{}, map[string]stored{}, map[string]consumers{}
	}
	names := make([]string, len(s.Groups))
	for i := range s.Groups {
		names[i] = s.Groups[i].Name
	}
	l.drop(names)
	brokers := max(1, len(s.Brokers))
	switch {
	case want.Group != "":
		l.readGroups(ctx, s, []string{want.Group}, true)
	case want.Clients:
		return l.readClients(ctx, s, names, want)
	case want.Brokers:
		l.readReplication(ctx, s)
		return l.readClients(ctx, s, names, want)
	case len(want.Topics) > 0 || want.All && len(want.Groups) == 0:
		l.readTopics(ctx, s, want, brokers)
	}
	if want.Group == "" {
		l.readGroups(ctx, s, l.turn(names, want, maxDetail/(4*brokers), func(n string) time.Time { return l.details[n].when() }), false)
	}
	return nil
}

// drop forgets groups that are not there any more.
func (l *Live) drop(names []string) {
	for n := range l.details {
		if _, ok := slices.BinarySearch(names, n); !ok {
			delete(l.details, n)
		}
	}
	for n := range l.consumers {
		if _, ok := slices.BinarySearch(names, n); !ok {
			delete(l.consumers, n)
		}
	}
}

// turn are those whose turn it is: of the ones that are seen half of the places, the
// others for all, the oldest first.
func (l *Live) turn(names []string, want Want, places int, at func(string) time.Time) []string {
	if want.All || len(names) <= places {
		return names
	}
	places = max(1, places)
	oldest := func(list []string) []string {
		list = slices.Clone(list)
		sorted.Stably(list, func(a, b string) int { return at(a).Compare(at(b)) })
		return list
	}
	var out []string
	for _, n := range oldest(want.Groups) {
		if _, ok := slices.BinarySearch(names, n); ok && len(out) < max(1, places*3/4) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	for _, n := range oldest(names) {
		if len(out) < places && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

func (d *detail) when() time.Time {
	if d == nil {
		return time.Time{}
	}
	return d.at
}

// readGroups looks groups up. members: they are asked themselves, too.
func (l *Live) readGroups(ctx context.Context, s *Snapshot, names []string, members bool) {
	if len(names) == 0 {
		return
	}
	lag, err := l.Client.GetLag(ctx, admin.LagOptions{Target: l.Target, Groups: names, Ages: true, Members: members, Exist: true})
	if err != nil {
		s.Errors = append(s.Errors, Failure{Who: names[0], Why: err.Error()})
		return
	}
	s.fail(lag.Errors)
	now := l.Now()
	for i := range lag.Groups {
		l.details[lag.Groups[i].Group] = detailOf(&lag.Groups[i], now)
	}
}

func detailOf(g *admin.GroupLag, now time.Time) *detail {
	topics, retries := g.Total()
	d := &detail{at: now, min: map[queueRef]int64{}, known: true, group: Group{
		Name: g.Group, DetailAt: now, Online: g.Online, Model: g.Model, Type: g.Type, Members: len(g.Members), Marks: g.Marks,
		Flight: Num{float64(topics.InFlight.Value), topics.InFlight.OK}, Age: topics.Age.Value, Expires: string(topics.Expires), Lost: topics.Lost + retries.Lost,
	}}
	for i := range g.Queues {
		q := &g.Queues[i]
		one := Queue{
			Topic: q.Topic, Broker: q.Broker, ID: q.QueueID.QueueID, Retry: q.Retry, Owner: q.Owner, Age: q.Age.Value, Marks: q.Marks, At: now,
			Committed: Num{float64(q.Committed.Value), q.Committed.OK}, End: Num{float64(q.Max.Value), q.Max.OK},
			Lag: Num{float64(q.Lag.Value), q.Lag.OK}, Flight: Num{float64(q.InFlight.Value), q.InFlight.OK},
		}
		if q.Min.OK {
			d.min[queueRef{"", q.Topic, q.Broker, one.ID}] = q.Min.Value
		}
		d.queues = append(d.queues, one)
	}
	return d
}

// put puts what was found out about a group to where it stands now.
func (d *detail) put(g *Group) {
	if d == nil {
		return
	}
	from := &d.group
	g.DetailAt, g.Online, g.Model, g.Type, g.Members = from.DetailAt, from.Online, from.Model, from.Type, from.Members
	g.Flight, g.Age, g.Expires, g.Lost, g.Marks = from.Flight, from.Age, from.Expires, from.Lost, from.Marks
	at := map[queueRef]*Queue{}
	for i := range d.queues {
		q := &d.queues[i]
		at[queueRef{"", q.Topic, q.Broker, q.ID}] = q
	}
	for i := range g.Queues {
		q := &g.Queues[i]
		key := queueRef{"", q.Topic, q.Broker, q.ID}
		old := at[key]
		if old == nil {
			continue
		}
		delete(at, key)
		q.Owner, q.Age, q.Marks, q.Flight = old.Owner, old.Age, old.Marks, old.Flight
		if !old.Committed.OK && q.Committed.V == 0 { // the sweep gives 0 for what never was committed
			q.Committed, q.Lag = old.Committed, old.Lag
			continue
		}
		if low, ok := d.min[key]; ok && q.Committed.V < float64(low) {
			q.Lag = Known(max(0, q.End.V-float64(low)))
		}
		if q.Lag.OK && q.Lag.V == 0 {
			q.Age = 0
		}
	}
	for i := range d.queues { // those in which the group has no offset
		if q := &d.queues[i]; at[queueRef{"", q.Topic, q.Broker, q.ID}] != nil {
			g.Queues = append(g.Queues, *q)
		}
	}
	sorted.By(g.Queues, func(a, b Queue) int { return a.compare(&b) })
	at0 := g.At
	g.sum(at0)
	if g.Lag.OK && g.Lag.V == 0 {
		g.Age = 0
	}
}

// readReplication reads how far the replicas of the brokers are.
func (l *Live) readReplication(ctx context.Context, s *Snapshot) {
	list, _, err := l.Client.HAStatuses(ctx, l.Target, true)
	if err != nil {
		return
	}
	for i := range list {
		st := &list[i]
		for j := range s.Brokers {
			b := &s.Brokers[j]
			if b.Addr == st.Addr && b.Err == "" {
				b.replicates(st)
			}
		}
	}
}

// replicates takes what a broker says about its part in its group.
func (b *Broker) replicates(st *admin.HAStatus) {
	info := &st.Info
	b.Replicas, b.HAGap, b.HADegraded, b.HALevel, b.HAState = Num{}, Num{}, false, "", ""
	if m := info.Mqx; m != nil {
		if b.HAState = m.Phase; m.Fenced != "" {
			b.HAState = "fenced"
		}
		if m.Master != nil {
			b.HADegraded, b.HALevel = m.Master.Degraded, m.Master.Level
		}
	}
	if !info.Master {
		return
	}
	b.Replicas = Known(len(info.ConnectionInfo))
	b.HAGap.OK = len(info.ConnectionInfo) > 0
	for i := range info.ConnectionInfo {
		n, known := info.ConnectionInfo[i].Behind()
		b.HAGap = Num{max(b.HAGap.V, float64(n)), b.HAGap.OK && known} // the one that is not known may be the furthest
	}
}
