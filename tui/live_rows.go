package tui

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"mqx/admin"
	"mqx/internal/sorted"
)

// stored is what the queues of a topic hold.
type stored struct {
	at       time.Time
	min, max float64
}

// readTopics looks up what topics hold: those that are seen, the oldest first.
func (l *Live) readTopics(ctx context.Context, s *Snapshot, want Want, brokers int) {
	names := slices.Clone(want.Topics)
	if want.All && len(names) == 0 {
		for i := range l.topics {
			names = append(names, l.topics[i].Name)
		}
	}
	sorted.Stably(names, func(a, b string) int { return l.stored[a].at.Compare(l.stored[b].at) })
	if n := max(1, maxDetail/brokers); len(names) > n && !want.All {
		names = names[:n]
	}
	if len(names) == 0 {
		return
	}
	ranges, failed, err := l.Client.TopicRanges(ctx, l.Target, names)
	if err != nil {
		s.Errors = append(s.Errors, Failure{Who: names[0], Why: err.Error()})
		return
	}
	s.fail(failed)
	if len(failed) > 0 {
		return // a sum without one broker would be a wrong figure
	}
	now := l.Now()
	for _, n := range names {
		delete(l.stored, n)
	}
	for _, r := range ranges {
		one := l.stored[r.Topic]
		l.stored[r.Topic] = stored{now, one.min + float64(r.Min), one.max + float64(r.Max)}
	}
}

// topicList are the topics with what is known of them.
func (l *Live) topicList(s *Snapshot) []Topic {
	known := endsOf(s.Groups)
	out := make([]Topic, 0, len(l.topics))
	for i := range l.topics {
		t := topicOf(&l.topics[i])
		st, looked := l.stored[t.Name]
		if looked {
			t.Stored, t.SizeAt = Known(st.max-st.min), st.at
			t.End, t.EndAt = Known(st.max), st.at
		}
		if e := known[t.Name]; e != nil {
			t.Groups = e.groups
			if t.EndAt.Before(e.at) {
				t.End, t.EndAt = Known(e.sum), e.at
			}
		}
		out = append(out, t)
	}
	for n, st := range l.stored {
		if s.At.Sub(st.at) > 10*time.Minute {
			delete(l.stored, n)
		}
	}
	return out
}

// topicEnds are the ends of the queues of a topic, as a group that reads it shows them.
type topicEnds struct {
	sum    float64
	groups int
	at     time.Time
	queues int
}

// endsOf takes the ends from the group that shows most queues of each topic: one that
// does not read some broker has fewer.
func endsOf(groups []Group) map[string]*topicEnds {
	out := map[string]*topicEnds{}
	for i := range groups {
		queues := groups[i].Queues
		for j := 0; j < len(queues); {
			topic := queues[j].Topic
			e := topicEnds{at: queues[j].At}
			for ; j < len(queues) && queues[j].Topic == topic; j++ {
				if queues[j].End.OK {
					e.sum, e.queues = e.sum+queues[j].End.V, e.queues+1
				}
			}
			if e.queues == 0 {
				continue
			}
			old := out[topic]
			if old == nil {
				old = &topicEnds{}
				out[topic] = old
			}
			e.groups = old.groups + 1
			if old.queues > e.queues {
				old.groups = e.groups
				continue
			}
			*old = e
		}
	}
	return out
}

func topicOf(t *admin.Topic) Topic {
	out := Topic{Name: t.Name, Kind: t.Kind, Brokers: len(t.Brokers)}
	for _, b := range t.Brokers {
		out.Queues += b.WriteQueues
	}
	return out
}

// consumers are the members of a group as the brokers last named them.
type consumers struct {
	at   time.Time
	rows []admin.ConsumerRow
}

// readClients reads the producers, and of the groups whose turn it is the members.
func (l *Live) readClients(ctx context.Context, s *Snapshot, names []string, want Want) error {
	producers, failed, err := l.Client.ListProducers(ctx, l.Target, "")
	if err != nil {
		return err
	}
	s.fail(failed)
	turn := l.turn(names, Want{All: want.All}, maxDetail/max(1, len(s.Brokers)), func(n string) time.Time { return l.consumers[n].at })
	rows, failed, err := l.Client.Consumers(ctx, l.Target, turn)
	if err != nil {
		return err
	}
	s.fail(failed)
	now := l.Now()
	for _, n := range turn {
		l.consumers[n] = consumers{at: now}
	}
	for _, r := range rows {
		c := l.consumers[r.Group]
		c.rows = append(c.rows, r)
		l.consumers[r.Group] = c
	}
	found := clientTable{}
	for _, n := range slices.Sorted(maps.Keys(l.consumers)) {
		for _, r := range l.consumers[n].rows {
			c := found.add(r.Broker, r.ClientID, r.GroupMember.Addr, r.Language, r.Version, l.consumers[n].at)
			c.Consumes = append(c.Consumes, n)
		}
	}
	for i := range producers {
		p := &producers[i]
		c := found.add(p.Broker, p.ClientID, p.From(), p.Language, p.VersionName(), now)
		if !p.Inner() {
			c.Produces = append(c.Produces, p.Group)
		}
		if at := time.UnixMilli(p.LastUpdateTimestamp); at.After(c.Seen) {
			c.Seen = at
		}
	}
	s.Clients, s.ClientsOf = found.list(), len(l.consumers)
	s.Whole = len(l.consumers) >= len(names)
	countConnections(s)
	return nil
}

// clientTable are clients while they are found, by id.
type clientTable map[string]*Client

func (t clientTable) add(b admin.Broker, id, addr, language, version string, at time.Time) *Client {
	c := t[id]
	if c == nil {
		c = &Client{ID: id, Language: language, Version: version}
		t[id] = c
	}
	c.Addrs, c.Brokers = append(c.Addrs, addr), append(c.Brokers, cmp.Or(b.Name, b.Addr))
	if at.After(c.At) {
		c.At = at
	}
	return c
}

func (t clientTable) list() []Client {
	out := make([]Client, 0, len(t))
	for _, id := range slices.Sorted(maps.Keys(t)) {
		c := t[id]
		for _, l := range []*[]string{&c.Addrs, &c.Brokers, &c.Consumes, &c.Produces} {
			slices.Sort(*l)
			*l = slices.Compact(*l)
		}
		out = append(out, *c)
	}
	return out
}

// countConnections counts the clients at each broker, once all groups have told theirs.
func countConnections(s *Snapshot) {
	if !s.Whole {
		return
	}
	at := map[string]int{}
	for i := range s.Clients {
		for _, b := range s.Clients[i].Brokers {
			at[b]++
		}
	}
	for i := range s.Brokers {
		if b := &s.Brokers[i]; b.ID == 0 && b.Err == "" {
			b.Conns = Known(at[b.Name])
		}
	}
}
