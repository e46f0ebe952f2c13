package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mqx/internal/sorted"
	"mqx/internal/words"
	"mqx/message"
	"mqx/remoting"
)

// MemberStatus is what one member of a group is and does.
type MemberStatus struct {
	GroupMember
	Addrs   []string // it connects from, one a broker
	Brokers []Broker
	// Info is nil where the member did not say it; Err says why.
	Info *remoting.ConsumerRunningInfo
	Err  error
}

// Started is when the member began to consume; zero when it does not say.
func (m *MemberStatus) Started() time.Time {
	if m.Info == nil {
		return time.Time{}
	}
	ms, err := strconv.ParseInt(m.Info.Properties[remoting.PropConsumerStartTimestamp], 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Kinds of Finding.
const (
	FindingSubscription = "different-subscription"
	FindingNoOwner      = "queue-without-owner"
	FindingTwoOwners    = "queue-with-two-owners"
	FindingNoQueue      = "client-without-queue"
	FindingBlocked      = "blocked"
	FindingNotLocked    = "not-locked"
	FindingUnlock       = "unlock-fails"
	FindingSameID       = "duplicate-client-id"
	FindingNoAnswer     = "no-answer"
)

// Finding is something that is not as it should be in a group.
type Finding struct {
	Kind   string
	Client string // "" where it is not one client's
	Queue  *remoting.MessageQueue
	Text   string
}

// GroupStatus is the answer of GroupStatus: the members of a group, what they do, and
// what is wrong with it.
type GroupStatus struct {
	Group    string
	Type     string // CONSUME_PASSIVELY, …; empty when nobody is online
	Model    string
	Members  []MemberStatus // sorted by client id
	Findings []Finding
	Errors   []TargetError
}

// StatusOptions say what GroupStatus asks for.
type StatusOptions struct {
	Client string // only this member
	Broker Target // only members at these brokers
	Stack  bool   // with the stacks of the member's threads, which only Java clients send
	Now    time.Time
}

// GroupStatus asks every member of a group what it does (GET_CONSUMER_RUNNING_INFO) and
// compares the answers. A group without members that no broker knows is a *NotFoundError.
func (c *Client) GroupStatus(ctx context.Context, group string, o StatusOptions) (*GroupStatus, error) {
	brokers, err := c.targets(ctx, o.Broker, false)
	if err != nil {
		return nil, err
	}
	s := &GroupStatus{Group: group}
	members := map[string]*MemberStatus{}
	known := false
	s.Errors = c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		conns, err := c.connections(ctx, b.Addr, group)
		if err != nil {
			return err
		}
		if conns == nil {
			there, err := c.hasGroup(ctx, b.Addr, group)
			mu.Lock()
			defer mu.Unlock()
			known = known || there
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		s.Type, s.Model = cmp.Or(s.Type, conns.ConsumeType), cmp.Or(s.Model, conns.MessageModel)
		for _, m := range conns.ConnectionSet {
			one := members[m.ClientID]
			if one == nil {
				one = &MemberStatus{GroupMember: GroupMember{ClientID: m.ClientID, Addr: m.ClientAddr, Language: m.Language, Version: remoting.VersionName(m.Version)}}
				members[m.ClientID] = one
			}
			one.Addrs = append(one.Addrs, m.ClientAddr)
			one.Brokers = append(one.Brokers, b)
		}
		return nil
	})
	if len(members)+len(s.Errors) == 0 && !known {
		return nil, &NotFoundError{Kind: "group", Name: group}
	}
	if o.Client != "" {
		maps.DeleteFunc(members, func(id string, _ *MemberStatus) bool { return id != o.Client })
		if len(members) == 0 && len(s.Errors) == 0 {
			return nil, &NotFoundError{Kind: "client", Name: o.Client}
		}
	}
	c.askMembers(ctx, group, members, o.Stack)
	for _, id := range slices.Sorted(maps.Keys(members)) {
		m := members[id]
		slices.Sort(m.Addrs)
		m.Addrs = slices.Compact(m.Addrs)
		s.Members = append(s.Members, *m)
	}
	var queues []remoting.MessageQueue
	if o.Client == "" && o.Broker == (Target{}) && len(s.Errors) == 0 {
		queues = c.subscribedQueues(ctx, s)
	}
	s.Findings = findings(s, queues, o.Now)
	return s, nil
}

// hasGroup reports whether a broker has a configuration of a group.
func (c *Client) hasGroup(ctx context.Context, addr, group string) (bool, error) {
	table, err := c.groupTable(ctx, addr)
	_, there := table[group]
	return there, err
}

// askMembers asks each member, through one of its brokers after the other until one
// brings an answer.
func (c *Client) askMembers(ctx context.Context, group string, members map[string]*MemberStatus, stack bool) {
	_ = several(c.cfg.Parallel, slices.Sorted(maps.Keys(members)), func(id string) error {
		m := members[id]
		sorted.By(m.Brokers, compareBrokers)
		for _, b := range m.Brokers {
			if m.Info, m.Err = c.runningInfo(ctx, b.Addr, group, id, stack); m.Err == nil {
				break
			}
		}
		return nil
	})
}

// subscribedQueues are the queues that members of a clustering push group share out,
// nil where they cannot be known.
func (c *Client) subscribedQueues(ctx context.Context, s *GroupStatus) []remoting.MessageQueue {
	if s.Type != remoting.ConsumePassively || s.Model != remoting.Clustering {
		return nil
	}
	topics := map[string]bool{}
	for _, m := range s.Members {
		if m.Info == nil || len(m.Info.MQPopTable) > 0 {
			return nil
		}
		for _, sub := range m.Info.SubscriptionSet {
			topics[sub.Topic] = true
		}
	}
	var queues []remoting.MessageQueue
	for topic := range topics {
		route, err := c.route(ctx, topic)
		if err != nil {
			continue // a topic without a route has no queue to own
		}
		for _, q := range route.QueueDatas {
			for id := range q.ReadQueueNums {
				if q.Perm&4 != 0 {
					queues = append(queues, remoting.MessageQueue{Topic: topic, BrokerName: q.BrokerName, QueueID: id})
				}
			}
		}
	}
	sorted.By(queues, remoting.MessageQueue.Compare)
	return queues
}

// Times after which a state is a finding, as Apache's tool has them.
const (
	settleTime  = 2 * time.Minute  // after its start a member may not have met the others yet
	blockedTime = 60 * time.Second // messages lie in a member and none is taken
)

// findings compares members. queues are those that must have an owner, nil where that
// is not known.
func findings(s *GroupStatus, queues []remoting.MessageQueue, now time.Time) []Finding {
	var out []Finding
	for i := range s.Members {
		m := &s.Members[i]
		if m.Err != nil {
			out = append(out, Finding{Kind: FindingNoAnswer, Client: m.ClientID, Text: m.Err.Error()})
		}
		if hosts := hostsOf(m.Addrs); len(hosts) > 1 {
			out = append(out, Finding{Kind: FindingSameID, Client: m.ClientID, Text: "connects from " + strings.Join(hosts, ", ")})
		}
		if m.Info != nil {
			out = append(out, processFindings(m, now)...)
		}
	}
	out = append(out, subscriptionFindings(s, now)...)
	if !settled(s, now) {
		return out
	}
	return append(out, ownerFindings(s, queues)...)
}

// settled: every member runs long enough to know the topics and the other members.
func settled(s *GroupStatus, now time.Time) bool {
	return !slices.ContainsFunc(s.Members, func(m MemberStatus) bool { return now.Sub(m.Started()) < settleTime })
}

func hostsOf(addrs []string) []string {
	var hosts []string
	for _, a := range addrs {
		if i := strings.LastIndexByte(a, ':'); i >= 0 {
			a = a[:i]
		}
		hosts = append(hosts, a)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// processFindings looks at the queues of one push consumer.
func processFindings(m *MemberStatus, now time.Time) []Finding {
	if m.Info.Properties[remoting.PropConsumeType] != remoting.ConsumePassively {
		return nil
	}
	orderly := m.Info.Properties[remoting.PropConsumeOrderly] == "true"
	var out []Finding
	add := func(kind string, q remoting.MessageQueue, format string, args ...any) {
		out = append(out, Finding{Kind: kind, Client: m.ClientID, Queue: &q, Text: fmt.Sprintf(format, args...)})
	}
	for _, q := range slices.SortedFunc(maps.Keys(m.Info.MQTable), remoting.MessageQueue.Compare) {
		p := m.Info.MQTable[q]
		switch idle := now.Sub(time.UnixMilli(p.LastConsumeTimestamp)); {
		case orderly && !p.Locked:
			add(FindingNotLocked, q, "no lock for %s", now.Sub(time.UnixMilli(p.LastLockTimestamp)).Round(time.Second))
		case orderly && p.Dropped && p.TryUnlockTimes > 0:
			add(FindingUnlock, q, "unlocked %s, and still locked", words.Count(p.TryUnlockTimes, "time"))
		case !orderly && p.CachedMsgCount > 0 && idle > blockedTime:
			add(FindingBlocked, q, "%s there, none taken for %s", words.Count(p.CachedMsgCount, "message lies", "messages lie"), idle.Round(time.Second))
		}
	}
	return out
}

// subscriptionFindings compares what the members subscribe to, once they run long
// enough to have settled.
func subscriptionFindings(s *GroupStatus, now time.Time) []Finding {
	var first *MemberStatus
	var out []Finding
	for i := range s.Members {
		m := &s.Members[i]
		if m.Info == nil || m.Info.Properties[remoting.PropConsumeType] == remoting.ConsumeActively {
			continue
		}
		if first == nil {
			first = m
			continue
		}
		if diff := subscriptionDifference(first, m); diff != "" && now.Sub(m.Started()) > settleTime {
			out = append(out, Finding{Kind: FindingSubscription, Client: m.ClientID, Text: diff})
		}
	}
	return out
}

// subscriptionDifference is what m subscribes to otherwise than the member first.
func subscriptionDifference(first, m *MemberStatus) string {
	a, b := subscriptionTexts(first.Info), subscriptionTexts(m.Info)
	var parts []string
	for _, topic := range slices.Sorted(maps.Keys(merged(a, b))) {
		switch there, here := a[topic], b[topic]; {
		case there == here:
		case here == "":
			parts = append(parts, topic+" not at all, "+first.ClientID+" as "+there)
		case there == "":
			parts = append(parts, topic+" as "+here+", "+first.ClientID+" not at all")
		default:
			parts = append(parts, topic+" as "+here+", "+first.ClientID+" as "+there)
		}
	}
	return strings.Join(parts, "; ")
}

func merged(a, b map[string]string) map[string]string {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}

// subscriptionTexts are expressions by topic, without the group's own retry topic.
func subscriptionTexts(info *remoting.ConsumerRunningInfo) map[string]string {
	out := map[string]string{}
	for _, sub := range info.SubscriptionSet {
		if !message.IsRetry(sub.Topic) {
			out[sub.Topic] = cmp.Or(sub.ExpressionType, remoting.ExpressionTag) + " " + sub.SubString
		}
	}
	return out
}

// ownerFindings looks for queues that nobody or more than one has, and for members
// without any.
func ownerFindings(s *GroupStatus, queues []remoting.MessageQueue) []Finding {
	if queues == nil {
		return nil
	}
	owners := map[remoting.MessageQueue][]string{}
	var out []Finding
	for _, m := range s.Members {
		has := 0
		for q, p := range m.Info.MQTable {
			if !p.Dropped {
				owners[q] = append(owners[q], m.ClientID)
				if !message.IsRetry(q.Topic) {
					has++
				}
			}
		}
		if has == 0 {
			out = append(out, Finding{Kind: FindingNoQueue, Client: m.ClientID, Text: "it has no queue: there are more members than queues, or it has not settled yet"})
		}
	}
	for _, q := range queues {
		switch who := owners[q]; {
		case len(who) == 0:
			out = append(out, Finding{Kind: FindingNoOwner, Queue: &q, Text: "no member consumes it"})
		case len(who) > 1:
			slices.Sort(who)
			out = append(out, Finding{Kind: FindingTwoOwners, Queue: &q, Text: strings.Join(who, " and ") + " both consume it"})
		}
	}
	return out
}
