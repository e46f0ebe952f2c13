package tui

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"mqx/admin"
	"mqx/internal/sorted"
)

// Live reads a cluster through the management library. It is not safe to share.
type Live struct {
	Client *admin.Client
	Target admin.Target
	Now    func() time.Time
	// Redact hides bodies and the values of properties of messages.
	Redact bool

	round     int
	topics    []admin.Topic
	topicsAt  time.Time
	details   map[string]*detail   // of groups, by name
	stored    map[string]stored    // of topics, by name
	consumers map[string]consumers // of groups, by name
	silent    map[string]*probe    // brokers that did not answer, by address
}

// What a refresh may cost.
const (
	// maxDetail bounds the requests that look up what costs requests by the row.
	maxDetail = 240
	// topicsEvery is how often the list of topics is read.
	topicsEvery = 30 * time.Second
)

// probe asks a broker that has not answered whether it does again.
type probe struct {
	err  error
	done chan error
}

// answers reads a broker's answer to probes: those that answer are read again.
func (l *Live) answers() map[string]error {
	out := map[string]error{}
	for addr, p := range l.silent {
		select {
		case err := <-p.done:
			if err == nil {
				delete(l.silent, addr)
				continue
			}
			p.err, p.done = err, nil
		default:
		}
		out[addr] = p.err
	}
	return out
}

// probeAll asks those that are silent, each with one request at a time.
func (l *Live) probeAll(ctx context.Context) {
	for addr, p := range l.silent {
		if p.done != nil {
			continue
		}
		done := make(chan error, 1)
		p.done = done
		go func() { // it ends with the time-out of the request
			_, err := l.Client.RuntimeInfo(context.WithoutCancel(ctx), addr)
			done <- err
		}()
	}
}

// Read asks the brokers: each for its state and where its groups stand, now and then for
// its topics, and what want names.
func (l *Live) Read(ctx context.Context, want Want) (*Snapshot, error) {
	s := &Snapshot{At: l.Now()}
	asked := l.Client.Requests()
	defer func() { s.Took, s.Requests = l.Now().Sub(s.At), l.Client.Requests()-asked }()
	l.round++
	l.probeAll(ctx)
	ctx = admin.Avoid(ctx, l.answers())
	sweeps, err := l.readBrokers(ctx, s)
	if err != nil {
		return nil, err
	}
	ctx = admin.Avoid(ctx, l.answers())
	if want.All || l.topics == nil || s.At.Sub(l.topicsAt) >= topicsEvery {
		list, err := l.Client.ListTopics(ctx, admin.ListTopicsOptions{Target: l.Target})
		if err != nil {
			return nil, err
		}
		s.fail(list.Errors)
		if len(list.Errors) == 0 || l.topics == nil {
			l.topics = list.Items
		}
		l.topicsAt = s.At
	}
	s.Groups = groupsOf(sweeps, s.At)
	if !want.All {
		s.Bound = int64(3*len(s.Brokers)+3) + maxDetail
	}
	if err := l.readMore(ctx, s, want); err != nil {
		return nil, err
	}
	for i := range s.Groups {
		l.details[s.Groups[i].Name].put(&s.Groups[i])
	}
	s.Topics = l.topicList(s)
	return s, nil
}

// readBrokers reads the state of all brokers and where the groups stand at the masters,
// both at a time.
func (l *Live) readBrokers(ctx context.Context, s *Snapshot) (sweeps []admin.Sweep, err error) {
	var (
		wg                sync.WaitGroup
		statuses          []admin.BrokerStatus
		failed            []admin.TargetError
		statusErr, lagErr error
	)
	wg.Go(func() { statuses, _, statusErr = l.Client.BrokerStatuses(ctx, l.Target, true) })
	wg.Go(func() { sweeps, failed, lagErr = l.Client.SweepLag(ctx, l.Target) })
	wg.Wait()
	if err := cmp.Or(statusErr, lagErr); err != nil {
		return nil, err
	}
	for i := range statuses {
		b := brokerOf(&statuses[i])
		b.At = l.Now()
		if b.Err != "" {
			b.At = time.Time{}
			if l.silent == nil {
				l.silent = map[string]*probe{}
			}
			if err := statuses[i].Err; l.silent[b.Addr] == nil && errors.Is(err, context.DeadlineExceeded) {
				l.silent[b.Addr] = &probe{err: err}
			}
		}
		s.Brokers = append(s.Brokers, b)
		s.Clusters = append(s.Clusters, statuses[i].Cluster)
	}
	slices.Sort(s.Clusters)
	s.Clusters = slices.Compact(s.Clusters)
	s.fail(failed)
	for _, f := range failed {
		s.Missing = append(s.Missing, f.Broker)
	}
	return sweeps, nil
}

// fail notes the brokers that did not answer, each once.
func (s *Snapshot) fail(lists ...[]admin.TargetError) {
	for _, list := range lists {
		for _, e := range list {
			f := Failure{cmp.Or(e.Broker, e.Addr), e.Addr, e.Err.Error()}
			if !slices.ContainsFunc(s.Errors, func(o Failure) bool { return o.Who == f.Who && o.Addr == f.Addr }) {
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
	b.PutMax, b.PutP99, b.Disk = num("putMessageEntireTimeMax"), num("putLatency99"), num("commitLogDiskRatio")
	b.SendWaiting, b.SendWait = num("sendThreadPoolQueueSize"), num("sendThreadPoolQueueHeadWaitTimeMills")
	b.LockHeld, b.DispatchLeft = num("pageCacheLockTimeMills"), num("dispatchBehindBytes")
	b.Started, _ = st.Time("bootTimestamp")
	return b
}

// groupsOf puts together what the brokers say of the groups. All queues lie in one piece
// of memory: tens of thousands of them come with every refresh.
func groupsOf(sweeps []admin.Sweep, now time.Time) []Group {
	index, sizes, all := map[string]int{}, []int(nil), 0
	for i := range sweeps {
		for j := range sweeps[i].Groups {
			from := &sweeps[i].Groups[j]
			k, ok := index[from.Name]
			if !ok {
				k = len(sizes)
				index[from.Name], sizes = k, append(sizes, 0)
			}
			sizes[k] += len(from.Queues)
			all += len(from.Queues)
		}
	}
	out, queues := make([]Group, len(sizes)), make([]Queue, all)
	for i := range out {
		out[i].Queues, queues = queues[:0:sizes[i]], queues[sizes[i]:]
	}
	for i := range sweeps {
		at := &sweeps[i]
		for j := range at.Groups {
			from := &at.Groups[j]
			g := &out[index[from.Name]]
			g.Name, g.TPS = from.Name, Num{g.TPS.V + from.TPS, true}
			for _, q := range from.Queues {
				g.Queues = append(g.Queues, Queue{
					Topic: q.Topic, Broker: at.Name, ID: q.QueueID, Retry: strings.HasPrefix(q.Topic, retryPrefix), At: at.At, Committed: Known(q.Committed),
					End: Known(q.End), Lag: Known(max(0, q.End-q.Committed)),
				})
			}
		}
	}
	for i := range out {
		g := &out[i]
		sorted.By(g.Queues, func(a, b Queue) int { return a.compare(&b) })
		g.sum(now)
	}
	sorted.By(out, func(a, b Group) int { return compareText(a.Name, b.Name) })
	return out
}

// retryPrefix stands before the names of retry topics.
const retryPrefix = "%RETRY%"

func (s *Snapshot) group(name string) *Group {
	i, ok := slices.BinarySearchFunc(s.Groups, name, func(g Group, n string) int { return compareText(g.Name, n) })
	if !ok {
		return nil
	}
	return &s.Groups[i]
}
