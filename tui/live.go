package tui

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"mqx/admin"
)

// Live reads a cluster through the management library. It is not safe to share.
type Live struct {
	Client *admin.Client
	Target admin.Target
	Now    func() time.Time
}

// Read asks the brokers: each for its state, its topics and its groups with their
// offsets, and what want names.
func (l *Live) Read(ctx context.Context, want Want) (*Snapshot, error) {
	s := &Snapshot{At: l.Now()}
	asked := l.Client.Requests()
	defer func() { s.Took, s.Requests = l.Now().Sub(s.At), l.Client.Requests()-asked }()
	statuses, _, err := l.Client.BrokerStatuses(ctx, l.Target, true)
	if err != nil {
		return nil, err
	}
	for i := range statuses {
		s.Brokers = append(s.Brokers, brokerOf(&statuses[i]))
		s.Clusters = append(s.Clusters, statuses[i].Cluster)
	}
	slices.Sort(s.Clusters)
	s.Clusters = slices.Compact(s.Clusters)
	lag, err := l.Client.GetLag(ctx, admin.LagOptions{Target: l.Target})
	if err != nil {
		return nil, err
	}
	topics, err := l.Client.ListTopics(ctx, admin.ListTopicsOptions{Target: l.Target})
	if err != nil {
		return nil, err
	}
	s.fail(lag.Errors, topics.Errors)
	for i := range lag.Groups {
		s.Groups = append(s.Groups, groupOf(&lag.Groups[i]))
	}
	known := endsOf(lag.Groups)
	for i := range topics.Items {
		s.Topics = append(s.Topics, topicOf(&topics.Items[i], known))
	}
	if err := l.readMore(ctx, s, want); err != nil {
		return nil, err
	}
	return s, nil
}

// readMore reads what a view needs beside the rest. A group that has gone is no error.
func (l *Live) readMore(ctx context.Context, s *Snapshot, want Want) error {
	if want.Group != "" && s.group(want.Group) != nil {
		lag, err := l.Client.GetLag(ctx, admin.LagOptions{Target: l.Target, Groups: []string{want.Group}, Ages: true, Members: true})
		if err == nil {
			s.fail(lag.Errors)
			for i := range lag.Groups {
				*s.group(want.Group) = groupOf(&lag.Groups[i])
			}
		} else {
			s.Errors = append(s.Errors, Failure{Who: want.Group, Why: err.Error()})
		}
	}
	if !want.Clients {
		return nil
	}
	list, err := l.Client.ListInstances(ctx, admin.InstancesOptions{Target: l.Target})
	if err != nil {
		return err
	}
	s.fail(list.Errors)
	for _, c := range list.Items {
		s.Clients = append(s.Clients, Client{
			ID: c.ID, Addr: strings.Join(c.Addrs, " "), Language: c.Language, Version: c.Version, Consumes: c.Consumes, Produces: c.Produces, Seen: c.LastSeen,
		})
	}
	return nil
}

// fail notes the brokers that did not answer, each once.
func (s *Snapshot) fail(lists ...[]admin.TargetError) {
	for _, list := range lists {
		for _, e := range list {
			if f := (Failure{cmp.Or(e.Broker, e.Addr), e.Addr, e.Err.Error()}); !slices.Contains(s.Errors, f) {
				s.Errors = append(s.Errors, f)
			}
		}
	}
}

func brokerOf(st *admin.BrokerStatus) Broker {
	b := Broker{Cluster: st.Cluster, Name: st.Name, Addr: st.Addr, ID: st.ID}
	if st.Err != nil {
		b.Err = st.Err.Error()
		return b
	}
	num := func(key string) Num {
		v, ok := st.Float(key)
		return Num{v, ok && v >= 0}
	}
	b.Version, _ = st.Text("brokerVersionDesc")
	b.FlushBehind, _ = st.Text("remainHowManyDataToFlush")
	b.Puts, b.Gets = num("msgPutTotalTodayNow"), num("msgGetTotalTodayNow")
	b.PutMax, b.Disk = num("putMessageEntireTimeMax"), num("commitLogDiskRatio")
	b.SendWaiting, b.SendWait = num("sendThreadPoolQueueSize"), num("sendThreadPoolQueueHeadWaitTimeMills")
	b.LockHeld, b.DispatchLeft = num("pageCacheLockTimeMills"), num("dispatchBehindBytes")
	b.Started, _ = st.Time("bootTimestamp")
	return b
}

func groupOf(g *admin.GroupLag) Group {
	topics, retries := g.Total()
	out := Group{
		Name: g.Group, Online: g.Online, Model: g.Model, Type: g.Type, Members: len(g.Members), Marks: g.Marks,
		Lag: Num{float64(topics.Lag.Value), topics.Lag.OK}, Retry: Num{float64(retries.Lag.Value), retries.Lag.OK},
		Flight: Num{float64(topics.InFlight.Value), topics.InFlight.OK}, Age: topics.Age.Value, Expires: string(topics.Expires),
		Lost: topics.Lost + retries.Lost, Done: Num{0, true},
	}
	for i := range g.Queues {
		q := &g.Queues[i]
		one := Queue{
			Topic: q.Topic, Broker: q.Broker, ID: q.QueueID.QueueID, Retry: q.Retry, Owner: q.Owner, Age: q.Age.Value, Marks: q.Marks,
			Committed: Num{float64(q.Committed.Value), q.Committed.OK}, End: Num{float64(q.Max.Value), q.Max.OK},
			Lag: Num{float64(q.Lag.Value), q.Lag.OK}, Flight: Num{float64(q.InFlight.Value), q.InFlight.OK},
		}
		if one.Committed.OK {
			out.Done.V += one.Committed.V
		}
		out.Queues = append(out.Queues, one)
		if !q.Retry && !slices.Contains(out.Topics, q.Topic) {
			out.Topics = append(out.Topics, q.Topic)
		}
	}
	return out
}

// ends are the ends of the queues of topics, as the groups that read them show them.
type ends map[string]*topicEnds

type topicEnds struct {
	queues map[string]float64
	groups int
}

func endsOf(groups []admin.GroupLag) ends {
	out := ends{}
	for i := range groups {
		counted := map[string]bool{}
		for j := range groups[i].Queues {
			q := &groups[i].Queues[j]
			if !q.Max.OK {
				continue
			}
			t := out[q.Topic]
			if t == nil {
				t = &topicEnds{queues: map[string]float64{}}
				out[q.Topic] = t
			}
			t.queues[q.Broker+"/"+itoa(int64(q.QueueID.QueueID))] = float64(q.Max.Value)
			if !counted[q.Topic] {
				counted[q.Topic] = true
				t.groups++
			}
		}
	}
	return out
}

func topicOf(t *admin.Topic, known ends) Topic {
	out := Topic{Name: t.Name, Kind: t.Kind, Brokers: len(t.Brokers)}
	for _, b := range t.Brokers {
		out.Queues += b.WriteQueues
	}
	if e := known[t.Name]; e != nil {
		out.Groups, out.End.OK = e.groups, true
		for _, end := range e.queues {
			out.End.V += end
		}
	}
	return out
}
