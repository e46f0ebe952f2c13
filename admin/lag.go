package admin

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// LagOptions says whose lag is asked for, and how much about it.
type LagOptions struct {
	Target Target
	// Groups and Topics narrow the reading; without groups all of them are read.
	Groups, Topics []string
	Builtin        bool // groups of the system as well
	// Exist: the groups that are named are known to exist. The tables of groups are not
	// read then, and one that nobody knows is a group without a queue.
	Exist bool
	// Ages asks for the age of the oldest message that is not read, the rate, and what
	// retention will do: two more requests a broker for each group and topic with a lag.
	Ages bool
	// Members asks every member what it reads: one more request a member.
	Members bool
	// Lenient leaves out what a broker cannot tell of one group or topic and goes on with
	// the next; it is in Lag.Skipped. Otherwise the broker counts as failed.
	Lenient bool
}

// QueueLag is how far a group is behind in one queue. What is not known is not there.
type QueueLag struct {
	QueueID
	Cluster   string
	Retry     bool // a retry topic of the group
	Min, Max  remoting.Opt[int64]
	Committed remoting.Opt[int64]
	Pulled    remoting.Opt[int64]
	Lag       remoting.Opt[int64] // messages
	InFlight  remoting.Opt[int64] // handed out and not committed
	Lost      int64               // gone before the group had read them
	Age       remoting.Opt[time.Duration]
	Expires   Will // retention deletes it before it is read at the present rate
	Owner     string
	Marks     []string
}

// GroupLag is how far a group is behind, and who its members are.
type GroupLag struct {
	Group   string
	Online  bool
	Type    string // of the members: CONSUME_PASSIVELY, …; empty when nobody is online
	Model   string // CLUSTERING, …
	Members []LagMember
	// PopInFlight is what members that pop hold, as they say themselves.
	PopInFlight remoting.Opt[int64]
	Marks       []string
	Queues      []QueueLag
	// Brokers are those that told of the group. Missing are those that were asked and did not tell: what the group has there is in
	// no queue of it, so that sums are not known.
	Brokers, Missing []string
}

// Total is the lag of all queues of topics, and that of the retry topics; neither is known while a broker is missing.
func (g *GroupLag) Total() (topics, retries LagSum) {
	for i := range g.Queues {
		if q := &g.Queues[i]; q.Retry {
			retries.Add(q)
		} else {
			topics.Add(q)
		}
	}
	topics.Miss(g.Missing)
	retries.Miss(g.Missing)
	return topics, retries
}

// LagMember is a client of a group.
type LagMember struct {
	GroupMember
	Addrs         []string // of its connections, where there are several at one broker
	Queues        []QueueID
	Subscriptions []GroupSubscription
	WaitAck       int64                             // messages that it has popped and not acknowledged
	Told          bool                              // it said what it reads
	Counts        map[string]remoting.ConsumeStatus // its own figures by topic, where it told
	Marks         []string
}

// Lag is the answer of GetLag.
type Lag struct {
	Groups  []GroupLag
	Errors  []TargetError
	Skipped []ItemError // with LagOptions.Lenient
}

// GetLag tells how far groups are behind. Each broker is read on its own, the offsets
// of the groups before the ends of the queues, so that no lag is negative because of
// the time between the two. A group that is named and that no broker knows is a
// *NotFoundError.
func (c *Client) GetLag(ctx context.Context, o LagOptions) (*Lag, error) {
	for _, g := range o.Groups {
		if err := message.ValidateGroup(g); err != nil {
			return nil, err
		}
	}
	for _, t := range o.Topics {
		if err := message.ValidateTopic(t); err != nil {
			return nil, err
		}
	}
	brokers, err := c.primaries(ctx, o.Target)
	if err != nil {
		return nil, err
	}
	all := &lagReading{
		c: c, o: &o, groups: map[string]*GroupLag{}, told: map[string]bool{}, asked: map[string]bool{}, members: map[string]map[string]*LagMember{}, topics: map[string]map[string]bool{},
	}
	// What a group reads on one broker it has to read on all that have the topic: the
	// offsets of all are read first.
	readings := map[Broker]*brokerLag{}
	out := &Lag{}
	out.Errors = c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		r := &brokerLag{lagReading: all, b: b, groups: map[string]*groupAt{}, ranges: map[string]map[int32]queueRange{}, skips: skips{lenient: o.Lenient}}
		if err := r.readGroups(ctx); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		readings[b] = r
		all.learn(r)
		return nil
	})
	brokers = slices.DeleteFunc(slices.Clone(brokers), func(b Broker) bool { return readings[b] == nil })
	out.Errors = append(out.Errors, c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		r := readings[b]
		r.mu = mu
		return r.readQueues(ctx)
	})...)
	sortErrors(out.Errors)
	for _, r := range readings {
		out.Skipped = append(out.Skipped, r.skips.list...)
	}
	sortItems(out.Skipped)
	missing := all.missing(out.Errors)
	for _, name := range slices.Sorted(maps.Keys(all.groups)) {
		g := all.groups[name]
		g.Missing = missing
		sorted.By(g.Queues, func(a, b QueueLag) int { return a.compare(b.QueueID) })
		g.finish(all.members[name], o.Members)
		out.Groups = append(out.Groups, *g)
	}
	if len(out.Errors) == 0 {
		for _, name := range o.Groups {
			if all.groups[name] == nil {
				return nil, &NotFoundError{Kind: "group", Name: name}
			}
		}
	}
	return out, nil
}

// lagReading is what all brokers have told so far. The mutex of Client.each guards it.
type lagReading struct {
	c       *Client
	o       *LagOptions
	topics  map[string]map[string]bool // what each group reads, on any broker
	groups  map[string]*GroupLag
	members map[string]map[string]*LagMember // by group and client id
	asked   map[string]bool                  // members that were asked, as group@client
	told    map[string]bool                  // brokers whose queues are in the groups
}

// missing are the brokers that failed before they had told of their queues.
func (l *lagReading) missing(errs []TargetError) []string {
	var out []string
	for i := range errs {
		if b := errs[i].Broker; !l.told[b] {
			out = append(out, b)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// learn takes what the groups read at a broker.
func (l *lagReading) learn(r *brokerLag) {
	for name, g := range r.groups {
		if l.topics[name] == nil {
			l.topics[name] = map[string]bool{}
		}
		for _, t := range g.topics {
			l.topics[name][t] = true
		}
	}
}

// brokerLag reads one broker.
type brokerLag struct {
	*lagReading
	mu    *sync.Mutex
	b     Broker
	skips skips

	offsets  *offsetTable
	groups   map[string]*groupAt
	rangesMu sync.Mutex
	ranges   map[string]map[int32]queueRange // by topic; nil for one that is not there
}

// groupAt is what one broker says of one group.
type groupAt struct {
	name   string
	known  bool // the broker knows the group
	topics []string
	conns  *remoting.ConsumerConnection
	rows   []QueueLag
}

// readGroups reads which groups there are, what they have committed, and who is online.
func (r *brokerLag) readGroups(ctx context.Context) (err error) {
	if r.offsets, err = r.c.offsets(ctx, r.b.Addr); err != nil {
		return err
	}
	groups, err := r.candidates(ctx)
	if err != nil {
		return err
	}
	if err := several(perBroker, groups, func(g *groupAt) (err error) {
		g.conns, err = r.c.connections(ctx, r.b.Addr, g.name)
		return r.skips.pass(ctx, r.b, "group", g.name, err)
	}); err != nil {
		return err
	}
	for _, g := range groups {
		r.addSubscribed(g)
		r.groups[g.name] = g
	}
	return nil
}

// readQueues reads how far all groups are behind in the queues of the broker.
func (r *brokerLag) readQueues(ctx context.Context) error {
	topics := map[string]bool{}
	var groups []*groupAt
	for _, name := range slices.Sorted(maps.Keys(r.topics)) {
		g := r.groups[name]
		if g == nil {
			g = &groupAt{name: name}
		}
		g.topics = slices.Sorted(maps.Keys(r.topics[name]))
		groups = append(groups, g)
		maps.Copy(topics, r.topics[name])
	}
	if err := r.readRanges(ctx, topics); err != nil {
		return err
	}
	for _, g := range groups {
		r.rows(g)
	}
	if err := r.readMinima(ctx, groups); err != nil {
		return err
	}
	if r.o.Ages {
		if err := r.readAges(ctx, groups); err != nil {
			return err
		}
	}
	r.mu.Lock()
	for _, g := range groups {
		r.merge(g)
	}
	r.told[r.b.Name] = true
	r.mu.Unlock()
	if r.o.Members {
		return r.askMembers(ctx, groups)
	}
	return nil
}

// candidates are the groups of this broker that are asked for, with the topics in
// which they have offsets. A group that is named is looked for in the configuration,
// too, since it may have no offset yet.
func (r *brokerLag) candidates(ctx context.Context) ([]*groupAt, error) {
	found := r.offsets.byGroup()
	names := r.o.Groups
	configured := map[string]remoting.SubscriptionGroupConfig{}
	var err error
	if (len(names) > 0 || len(r.o.Topics) == 0) && !r.o.Exist {
		if configured, err = r.c.groupTable(ctx, r.b.Addr); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		names = slices.Collect(maps.Keys(found))
		for g := range configured {
			if _, ok := found[g]; !ok {
				names = append(names, g)
			}
		}
		for _, t := range r.o.Topics { // online, without an offset
			who, err := r.c.topicGroups(ctx, r.b.Addr, t)
			if err != nil && !hasCode(err, remoting.RespTopicNotExist) {
				if err = r.skips.pass(ctx, r.b, "topic", t, err); err != nil {
					return nil, err
				}
			}
			names = append(names, who...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(slices.Clone(names))
	var out []*groupAt
	for _, g := range names {
		topics, has := found[g]
		_, known := configured[g]
		known = known || r.o.Exist
		switch {
		case message.IsSystemGroup(g) && !r.o.Builtin && !slices.Contains(r.o.Groups, g):
			continue
		case !has && !known && len(r.o.Topics) == 0:
			continue
		case len(r.o.Groups) > 0 && !has && !known:
			continue
		}
		out = append(out, &groupAt{name: g, known: true, topics: r.wanted(topics, g)})
	}
	return out, nil
}

// wanted are the topics that are asked for; with a topic goes its retry topic of pops.
func (r *brokerLag) wanted(topics []string, group string) []string {
	if len(r.o.Topics) == 0 {
		return topics
	}
	var out []string
	for _, t := range topics {
		pop, _ := strings.CutPrefix(t, message.RetryTopicPrefix+group)
		if slices.Contains(r.o.Topics, t) || isPopRetry(t, group) && slices.Contains(r.o.Topics, pop[1:]) {
			out = append(out, t)
		}
	}
	return out
}

// addSubscribed adds the topics that members read and have committed nothing in.
func (r *brokerLag) addSubscribed(g *groupAt) {
	if g.conns == nil || g.conns.MessageModel == remoting.Broadcasting {
		return
	}
	subscribed := slices.Sorted(maps.Keys(g.conns.SubscriptionTable))
	for _, t := range r.wanted(subscribed, g.name) {
		if !slices.Contains(g.topics, t) {
			g.topics = append(g.topics, t)
		}
	}
}

// wholeTable: with more topics than this, a broker is asked for the ends of all queues
// that groups have offsets in at once, and for their starts only where there is a lag.
const wholeTable = 64

// readRanges finds what the queues of the topics hold.
func (r *brokerLag) readRanges(ctx context.Context, topics map[string]bool) error {
	if len(topics) > wholeTable && len(r.o.Groups) == 0 {
		list, err := askBody[remoting.ConsumeStatsList](ctx, r.c, r.b.Addr,
			remoting.NewRequest(remoting.ReqGetBrokerConsumeStats, &remoting.GetBrokerConsumeStatsHeader{}))
		if err != nil {
			// One bad group may fail it for all: then each topic is asked for.
			if err = r.skips.pass(ctx, r.b, "groups", "", err); err != nil {
				return err
			}
			return r.readTopics(ctx, slices.Collect(maps.Keys(topics)))
		}
		r.takeEnds(list)
		there, err := r.c.topicTable(ctx, r.b.Addr)
		if err != nil {
			return err
		}
		for t := range topics {
			if _, ok := there[t]; r.ranges[t] != nil || !ok {
				delete(topics, t)
			}
		}
	}
	return r.readTopics(ctx, slices.Collect(maps.Keys(topics)))
}

func (r *brokerLag) takeEnds(list *remoting.ConsumeStatsList) {
	for _, groups := range list.ConsumeStatsList {
		for _, stats := range groups {
			for _, s := range stats {
				for q, o := range s.OffsetTable {
					if r.ranges[q.Topic] == nil {
						r.ranges[q.Topic] = map[int32]queueRange{}
					}
					r.ranges[q.Topic][q.QueueID] = queueRange{max: remoting.Opt[int64]{Value: o.BrokerOffset, OK: o.BrokerOffset >= 0}}
				}
			}
		}
	}
}

func (r *brokerLag) readTopics(ctx context.Context, topics []string) error {
	return several(perBroker, topics, func(t string) error {
		ranges, err := r.c.ranges(ctx, r.b.Addr, t)
		if err != nil {
			return r.skips.pass(ctx, r.b, "topic", t, err)
		}
		r.rangesMu.Lock()
		defer r.rangesMu.Unlock()
		r.ranges[t] = ranges
		return nil
	})
}

// readMinima asks for the starts of the queues where they may matter.
func (r *brokerLag) readMinima(ctx context.Context, groups []*groupAt) error {
	open := map[string]bool{}
	for _, g := range groups {
		for i := range g.rows {
			if q := &g.rows[i]; !q.Min.OK && q.Max.OK && (!q.Lag.OK || q.Lag.Value > 0) {
				open[q.Topic] = true
			}
		}
	}
	if len(open) == 0 {
		return nil
	}
	if err := r.readTopics(ctx, slices.Collect(maps.Keys(open))); err != nil {
		return err
	}
	for _, g := range groups {
		r.rows(g)
	}
	return nil
}

// rows makes the queues of a group at this broker. Of a retry topic that the group
// never took anything from only what waits there is told.
func (r *brokerLag) rows(g *groupAt) {
	g.rows = g.rows[:0]
	for _, t := range g.topics {
		ranges := r.ranges[t]
		committed := r.offsets.committed[offsetKey(t, g.name)]
		if ranges == nil && len(committed) == 0 {
			continue
		}
		for _, id := range queueIDs(ranges, committed) {
			rg, known := ranges[id]
			q := QueueLag{QueueID: QueueID{t, r.b.Name, id}, Cluster: r.b.Cluster, Retry: isRetryOf(t, g.name), Min: rg.min, Max: rg.max}
			q.Committed, q.Pulled = r.offsets.at(t, g.name, id), r.offsets.pulledAt(t, g.name, id)
			q.Lag, q.Lost, q.Marks = behind(q.Committed, rg, known)
			q.InFlight = inFlight(q.Committed, q.Pulled)
			if q.Lag.OK && q.Lag.Value == 0 {
				q.Expires = WillNo
			}
			g.rows = append(g.rows, q)
		}
	}
}

// merge puts what this broker says of a group to the rest. The mutex is held.
func (r *brokerLag) merge(g *groupAt) {
	if len(g.rows) == 0 && (!g.known || len(r.o.Topics) > 0 && len(r.o.Groups) == 0) {
		return // it has nothing to do with the broker, or with the topic
	}
	all := r.lagReading.groups[g.name]
	if all == nil {
		all = &GroupLag{Group: g.name}
		r.lagReading.groups[g.name], r.members[g.name] = all, map[string]*LagMember{}
	}
	all.Brokers = append(all.Brokers, r.b.Name)
	all.Queues = append(all.Queues, g.rows...)
	if g.conns == nil {
		return
	}
	all.Online = true
	all.Type, all.Model = cmp.Or(all.Type, g.conns.ConsumeType), cmp.Or(all.Model, g.conns.MessageModel)
	here := map[string][]string{}
	for _, m := range g.conns.ConnectionSet {
		here[m.ClientID] = append(here[m.ClientID], m.ClientAddr)
		if r.members[g.name][m.ClientID] == nil {
			r.members[g.name][m.ClientID] = &LagMember{GroupMember: GroupMember{
				ClientID: m.ClientID, Addr: m.ClientAddr, Language: m.Language, Version: remoting.VersionName(m.Version),
			}}
		}
	}
	for id, addrs := range here {
		if m := r.members[g.name][id]; len(addrs) > 1 && len(m.Addrs) == 0 {
			slices.Sort(addrs)
			m.Addrs = addrs
		}
	}
}
