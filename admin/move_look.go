package admin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mqx/admin/move"
	"mqx/client"
	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// moveCluster carries plans of package move out on a live cluster. It is safe to share.
type moveCluster struct{ c *Client }

// looker gathers an observation.
type looker struct {
	c  *Client
	st *move.State
	mu struct {
		sync.Mutex
		ob      *move.Observation
		offsets map[string]*offsetTable    // by broker
		groups  map[string]map[string]bool // by topic: those that a broker knows of
		// inFlight are messages that were popped and are not settled, by broker, and by topic and group.
		inFlight map[string]map[string]int64
	}
}

// Observe looks at everything that a plan concerns. What does not answer is in Failed.
func (m *moveCluster) Observe(ctx context.Context, st *move.State) (*move.Observation, error) {
	l := &looker{c: m.c, st: st}
	l.mu.ob = &move.Observation{At: time.Now(), Brokers: map[string]move.BrokerView{}, Groups: map[string]map[string]move.GroupView{}}
	l.mu.offsets, l.mu.groups, l.mu.inFlight = map[string]*offsetTable{}, map[string]map[string]bool{}, map[string]map[string]int64{}
	brokers, err := m.c.masters(ctx, st.Brokers())
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		l.failed("%v", err)
		return l.mu.ob, nil
	}
	for _, name := range st.Brokers() {
		if st.Asks(name) && !slices.ContainsFunc(brokers, func(b Broker) bool { return b.Name == name }) {
			l.failed("broker %s has no master at the name servers", name)
		}
	}
	brokers = slices.DeleteFunc(brokers, func(b Broker) bool { return !st.Asks(b.Name) })
	for _, e := range m.c.each(brokers, func(_ *sync.Mutex, b Broker) error { return l.broker(ctx, b) }) {
		l.failed("%v", e)
	}
	for _, e := range m.c.each(servers(m.c.ns.All()), func(_ *sync.Mutex, s Broker) error { return l.nameServer(ctx, s.Addr) }) {
		l.failed("%v", e)
	}
	sorted.By(l.mu.ob.NameServers, func(a, b move.NameServerView) int { return strings.Compare(a.Addr, b.Addr) })
	l.group(ctx, brokers)
	if err := l.others(ctx); err != nil {
		l.failed("%v", err)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return l.mu.ob, nil
}

// others looks at the brokers outside of the plan that have a topic of it and take no messages, before it is removed: they may
// hand on to where it was.
func (l *looker) others(ctx context.Context) error {
	if l.st.Phase != move.Settled || !l.st.Spec.Policy.Remove {
		return nil
	}
	topics := map[string][]string{} // by broker
	for i := range l.mu.ob.NameServers {
		for topic, r := range l.mu.ob.NameServers[i].Routes {
			for b, q := range r.Queues {
				if q.Perm&move.PermWrite == 0 && !slices.Contains(l.st.Brokers(), b) && !slices.Contains(topics[b], topic) {
					topics[b] = append(topics[b], topic)
				}
			}
		}
	}
	if len(topics) == 0 {
		return nil
	}
	brokers, err := l.c.masters(ctx, slices.Collect(maps.Keys(topics)))
	if err != nil {
		return err
	}
	found := map[string]map[string]move.Topic{}
	for _, e := range l.c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		for _, topic := range topics[b.Name] {
			t, err := l.c.topicNow(ctx, b, topic)
			if err != nil {
				return err
			}
			if t == nil {
				continue
			}
			mu.Lock()
			if found[topic] == nil {
				found[topic] = map[string]move.Topic{}
			}
			found[topic][b.Name] = *t
			mu.Unlock()
		}
		return nil
	}) {
		l.failed("%v", e)
	}
	l.mu.ob.Others = found
	return nil
}

func (l *looker) failed(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.ob.Failed = append(l.mu.ob.Failed, fmt.Sprintf(format, args...))
}

// masters are the masters of brokers by name.
func (c *Client) masters(ctx context.Context, names []string) ([]Broker, error) {
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(b Broker) bool { return b.ID != 0 || !slices.Contains(names, b.Name) }), nil
}

// moveTopic is a configuration as plans hold it.
func moveTopic(t *remoting.TopicConfig) move.Topic {
	out := move.Topic{Read: t.ReadQueueNums, Write: t.WriteQueueNums, Perm: t.Perm, Order: t.Order, SysFlag: t.TopicSysFlag}
	if len(t.Attributes) > 0 {
		out.Attributes = t.Attributes
	}
	return out
}

// broker looks at one broker.
func (l *looker) broker(ctx context.Context, b Broker) error {
	v := move.BrokerView{Addr: b.Addr, Disk: -1, Topics: map[string]move.TopicView{}, Groups: map[string]bool{}, Pending: map[string]move.Pending{}}
	props, err := l.c.brokerProps(ctx, b.Addr)
	if err != nil {
		return err
	}
	v.HidesPops = props["popConsumerKVServiceEnable"] == message.TrueValue
	perm, err := strconv.ParseInt(props["brokerPermission"], 10, 32)
	if err != nil {
		return fmt.Errorf("cannot read brokerPermission: %w", err)
	}
	v.Perm = int32(perm)
	if err := l.replicas(ctx, b, &v); err != nil {
		return err
	}
	if l.st.Phase == move.Planned {
		info, err := l.c.RuntimeInfo(ctx, b.Addr)
		if err != nil {
			return err
		}
		if ratio, err := strconv.ParseFloat(info["commitLogDiskRatio"], 64); err == nil {
			v.Disk = ratio
		}
		v.Forwards = info[remoting.InfoForward] == message.TrueValue
		v.AsksSignature = props["authenticationEnabled"] == message.TrueValue || props["aclEnable"] == message.TrueValue
		v.Signs = props["innerClientAuthenticationCredentials"] != ""
	}
	if err := l.modes(ctx, b, &v); err != nil {
		return err
	}
	table, err := l.c.groupTable(ctx, b.Addr)
	if err != nil {
		return err
	}
	for name := range table {
		v.Groups[name] = true
	}
	offsets, err := l.c.offsets(ctx, b.Addr)
	if err != nil {
		return err
	}
	for _, topic := range l.st.Topics() {
		if err := l.topic(ctx, b, topic, &v); err != nil {
			return fmt.Errorf("topic %s: %w", topic, err)
		}
	}
	if err := l.leftovers(ctx, b, &v, offsets, props["brokerClusterName"]); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.ob.Brokers[b.Name] = v
	l.mu.offsets[b.Name] = offsets
	return nil
}

// modes looks at which groups pop topics of the plan, until the targets are told.
func (l *looker) modes(ctx context.Context, b Broker, v *move.BrokerView) error {
	if !l.st.Phase.Before(move.Created) {
		return nil
	}
	modes, err := l.c.requestModes(ctx, b.Addr)
	if err != nil {
		return err
	}
	v.Modes = map[string]map[string]move.Mode{}
	for _, topic := range l.st.Topics() {
		for group, m := range modes[topic] {
			if v.Modes[topic] == nil {
				v.Modes[topic] = map[string]move.Mode{}
			}
			v.Modes[topic][group] = move.Mode{Name: m.Mode, Share: m.PopShareQueueNum}
		}
	}
	return nil
}

// replicas asks for the replicas of a broker; one that does not know the question has none that it tells of.
func (l *looker) replicas(ctx context.Context, b Broker, v *move.BrokerView) error {
	ha, err := askBody[remoting.HARuntimeInfo](ctx, l.c, b.Addr, remoting.NewRequest(remoting.ReqGetBrokerHAStatus, nil))
	if hasCode(err, remoting.RespRequestCodeNotSupported) {
		return nil
	}
	if err != nil {
		return err
	}
	v.Replicas, v.LogEnd = len(ha.ConnectionInfo), ha.MasterCommitLogMaxOffset
	for _, r := range ha.ConnectionInfo {
		if !r.InSync {
			continue
		}
		if v.InSync++; v.InSync == 1 || r.SlaveAckOffset < v.Copied {
			v.Copied = r.SlaveAckOffset
		}
	}
	return nil
}

// topic looks at a topic on a broker.
func (l *looker) topic(ctx context.Context, b Broker, topic string, v *move.BrokerView) error {
	h := &remoting.GetTopicConfigHeader{Topic: topic}
	h.Lo = remoting.Some(true)
	tc, err := askBody[remoting.TopicConfigAndMapping](ctx, l.c, b.Addr, remoting.NewRequest(remoting.ReqGetTopicConfig, h))
	switch {
	case hasCode(err, remoting.RespTopicNotExist):
		return nil
	case hasCode(err, remoting.RespRequestCodeNotSupported): // before 5.0
		plain, err := l.c.topicConfig(ctx, b.Addr, topic)
		if hasCode(err, remoting.RespTopicNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		tc = &remoting.TopicConfigAndMapping{TopicConfig: *plain}
	case err != nil:
		return err
	}
	tv := move.TopicView{Config: moveTopic(&tc.TopicConfig), Static: tc.MappingDetail != nil}
	stats, err := l.c.topicStats(ctx, b.Addr, topic)
	if err != nil {
		return err
	}
	tv.Queues = make([]move.Range, max(tc.ReadQueueNums, tc.WriteQueueNums))
	found := 0
	for q, o := range stats.OffsetTable {
		if q.Topic != topic || int(q.QueueID) >= len(tv.Queues) {
			continue
		}
		if tv.Queues[q.QueueID], err = moveRange(q.QueueID, o.MinOffset, o.MaxOffset); err != nil {
			return err
		}
		found++
	}
	if found < len(tv.Queues) {
		return fmt.Errorf("the broker told of %d queues, the topic has %d", found, len(tv.Queues))
	}
	if n := l.st.Hidden(b.Name, topic); len(tv.Queues) == 0 && n > 0 {
		if tv.Queues, err = l.c.shutQueues(ctx, b, topic, n); err != nil {
			return err
		}
	}
	v.Topics[topic] = tv
	groups, err := l.c.topicGroups(ctx, b.Addr, topic)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.mu.groups[topic]
	if known == nil {
		known = map[string]bool{}
		l.mu.groups[topic] = known
	}
	for _, g := range groups {
		known[g] = true
	}
	return nil
}

// shutQueues are the ends of queues that a plan has shut: the broker has them still, and tells of each that it is asked for.
func (c *Client) shutQueues(ctx context.Context, b Broker, topic string, n int32) ([]move.Range, error) {
	out := make([]move.Range, n)
	for q := range n {
		h := &remoting.QueryConsumeQueueHeader{Topic: topic, QueueID: q}
		var err error
		if out[q].Max, err = c.queuePosition(ctx, b.Addr, h, client.Position{Kind: client.AtEnd}); err != nil {
			return nil, err
		}
		if out[q].Max == 0 {
			continue // nothing was ever in it, and some brokers do not know where such a queue starts
		}
		if out[q].Min, err = c.queuePosition(ctx, b.Addr, h, client.Position{Kind: client.AtStart}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// moveRange is what a broker told of a queue. An end that it does not know is none: no step rests on it.
func moveRange(queue int32, start, end int64) (move.Range, error) {
	switch {
	case end < 0:
		return move.Range{}, fmt.Errorf("the broker does not know where queue %d ends", queue)
	case end > 0 && start < 0:
		return move.Range{}, fmt.Errorf("the broker does not know the start of queue %d", queue)
	}
	return move.Range{Min: max(0, start), Max: end}, nil
}

// nameServer looks at what one name server says.
func (l *looker) nameServer(ctx context.Context, addr string) error {
	v := move.NameServerView{Addr: addr, Routes: map[string]move.Route{}, Brokers: map[string]bool{}, Order: map[string]string{}}
	info, err := askBody[remoting.ClusterInfo](ctx, l.c, addr, remoting.NewRequest(remoting.ReqGetBrokerClusterInfo, nil))
	if err != nil {
		return err
	}
	for name := range info.BrokerAddrTable {
		v.Brokers[name] = true
	}
	for _, topic := range l.st.Topics() {
		r, err := askBody[remoting.TopicRouteData](ctx, l.c, addr, remoting.NewRequest(remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoHeader{Topic: topic}))
		switch {
		case hasCode(err, remoting.RespTopicNotExist):
		case err != nil:
			return err
		default:
			route := move.Route{Queues: map[string]move.Topic{}, Order: r.OrderTopicConf}
			for _, q := range r.QueueDatas {
				route.Queues[q.BrokerName] = move.Topic{Read: q.ReadQueueNums, Write: q.WriteQueueNums, Perm: q.Perm, SysFlag: q.TopicSysFlag}
			}
			v.Routes[topic] = route
		}
		value, ok, err := l.c.orderConfig(ctx, addr, topic)
		if err != nil {
			return err
		}
		if ok {
			v.Order[topic] = value
		}
	}
	if v.HandsOutOrder, err = l.handsOutOrder(ctx, addr); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.ob.NameServers = append(l.mu.ob.NameServers, v)
	return nil
}

// handsOutOrder asks for orderMessageEnable, where a topic is ordered.
func (l *looker) handsOutOrder(ctx context.Context, addr string) (bool, error) {
	if !slices.ContainsFunc(l.st.Parts, func(p move.Part) bool { return p.Ordered }) {
		return false, nil
	}
	resp, err := l.c.ask(ctx, addr, remoting.NewRequest(remoting.ReqGetNamesrvConfig, nil))
	if err != nil {
		return false, err
	}
	return propertyLines(resp.Body)["orderMessageEnable"] == message.TrueValue, nil
}

// orderConfig is the order configuration of a topic in a name server's table.
func (c *Client) orderConfig(ctx context.Context, addr, topic string) (value string, ok bool, err error) {
	resp, err := c.ask(ctx, addr, remoting.NewRequest(remoting.ReqGetKVConfig, &remoting.GetKVConfigHeader{Namespace: orderNamespace, Key: topic}))
	if hasCode(err, remoting.RespQueryNotFound) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	value = resp.Fields.String("value")
	return value, value != "", nil
}

// group looks at the groups of every topic.
func (l *looker) group(ctx context.Context, brokers []Broker) {
	for _, topic := range l.st.Topics() {
		names := l.groupNames(topic)
		views := map[string]move.GroupView{}
		for _, name := range names {
			v := move.GroupView{Offsets: map[string][]int64{}, Retry: map[string]int64{}, InFlight: map[string]int64{}}
			for _, b := range brokers {
				if err := l.groupAt(ctx, b, topic, name, &v); err != nil {
					l.failed("group %s: %v", name, b.fail(err))
				}
			}
			views[name] = v
		}
		l.mu.ob.Groups[topic] = views
	}
}

// groupNames are the groups of a topic: online, with an offset, or noted by the plan.
func (l *looker) groupNames(topic string) []string {
	names := map[string]bool{}
	for g := range l.mu.groups[topic] {
		names[g] = true
	}
	for _, t := range l.mu.offsets {
		for key := range t.committed {
			if g, ok := strings.CutPrefix(key, topic+"@"); ok {
				names[g] = true
			}
		}
	}
	var out []string
	for g := range names {
		if !message.IsSystemGroup(g) && g != message.GroupTools {
			out = append(out, g)
		}
	}
	slices.Sort(out)
	return out
}

func (l *looker) groupAt(ctx context.Context, b Broker, topic, name string, v *move.GroupView) error {
	view, ok := l.mu.ob.Brokers[b.Name]
	if !ok {
		return nil // said already
	}
	conns, err := l.c.connections(ctx, b.Addr, name)
	if err != nil {
		return err
	}
	if conns != nil {
		_, subscribed := conns.SubscriptionTable[topic]
		v.Online = v.Online || subscribed && len(conns.ConnectionSet) > 0
		v.Broadcast = v.Broadcast || conns.MessageModel == remoting.Broadcasting
	}
	if tv, ok := view.Topics[topic]; ok {
		offsets := make([]int64, len(tv.Queues))
		committed := l.mu.offsets[b.Name].committed[offsetKey(topic, name)]
		for q := range offsets {
			offsets[q] = -1
			if at, ok := committed[int32(q)]; ok {
				offsets[q] = at
			}
		}
		v.Offsets[b.Name] = offsets
	}
	if n := l.mu.inFlight[b.Name][offsetKey(topic, name)]; n > 0 {
		v.InFlight[b.Name] = n
	}
	if from, ok := l.st.GivenUp(b.Name)[topic]; !ok || from > 0 || !l.late() {
		return nil
	}
	n, err := l.c.retriesOf(ctx, b, l.mu.offsets[b.Name], topic, name)
	if err != nil {
		return err
	}
	v.Retry[b.Name] += n
	return nil
}

// late reports whether what is on its way to the source matters already.
func (l *looker) late() bool {
	return !l.st.Phase.Before(move.Sealed) && !l.st.Phase.Back() && l.st.Phase != move.Removed
}
