package broker

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mqx/remoting"
)

// subscription is what a group wants of a topic, and who said so last.
type subscription struct {
	remoting.SubscriptionData
	by     string    // client id
	filter msgFilter // of type TAG; nil when all pass, and of other types
}

// consumerGroup is the live state of one consumer group. Its fields belong to
// the lock of the table.
type consumerGroup struct {
	name         string
	consumeType  string
	messageModel string
	fromWhere    string
	clients      members
	subs         map[string]*subscription // topic -> subscription; entries are replaced, never changed
	// gen counts changes of members and subscriptions: a heartbeat seen
	// before under the same count changes nothing.
	gen atomic.Uint64
}

// consumerTable is the consumers by group. Safe to share.
type consumerTable struct {
	mu struct {
		sync.RWMutex
		groups map[string]*consumerGroup
		// fingerprints of the last version 2 heartbeat of each group.
		fingerprints map[string]int32
	}
}

func newConsumerTable() *consumerTable {
	t := &consumerTable{}
	t.mu.groups = map[string]*consumerGroup{}
	t.mu.fingerprints = map[string]int32{}
	return t
}

// registration is what one heartbeat says about one group.
type registration struct {
	data *remoting.ConsumerData
	peer peer
	id   string
	// keepSubs leaves the subscriptions as they are (withoutSub).
	keepSubs bool
}

// registered is what a registration did.
type registered struct {
	group   *consumerGroup
	client  *member
	gen     uint64
	changed bool // a member or a topic came or went
}

// Register adds or refreshes a consumer and its subscriptions. A topic missing
// in a full registration leaves the group; a topic the group has keeps its
// subscription unless the new version is higher, or the same client who set it
// now says something else (its clock may have been set back).
func (t *consumerTable) Register(r registration, now time.Time) registered {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.mu.groups[r.data.GroupName]
	if g == nil {
		g = &consumerGroup{name: r.data.GroupName, clients: members{}, subs: map[string]*subscription{}}
		t.mu.groups[g.name] = g
	}
	if g.consumeType != r.data.ConsumeType || g.messageModel != r.data.MessageModel || g.fromWhere != r.data.ConsumeFromWhere {
		g.consumeType, g.messageModel, g.fromWhere = r.data.ConsumeType, r.data.MessageModel, r.data.ConsumeFromWhere
		g.gen.Add(1)
	}
	cl, changed := g.clients.register(r.peer, r.id, now)
	if changed {
		g.gen.Add(1)
	}
	if !r.keepSubs && g.subscribe(r.data.SubscriptionDataSet, r.id) {
		changed = true
	}
	return registered{group: g, client: cl, gen: g.gen.Load(), changed: changed}
}

// subscribe merges the subscriptions of a full heartbeat and reports whether a
// topic came or went.
func (g *consumerGroup) subscribe(list []remoting.SubscriptionData, by string) (changed bool) {
	keep := make(map[string]bool, len(list))
	for i := range list {
		sub := &list[i]
		keep[sub.Topic] = true
		old := g.subs[sub.Topic]
		switch {
		case old == nil:
			changed = true
		case sub.SubVersion > old.SubVersion:
		case by == old.by && !sameExpression(sub, &old.SubscriptionData):
		default:
			continue
		}
		g.subs[sub.Topic] = &subscription{SubscriptionData: *sub, by: by, filter: tagFilterOf(sub)}
		g.gen.Add(1)
	}
	for topic := range g.subs {
		if !keep[topic] {
			delete(g.subs, topic)
			g.gen.Add(1)
			changed = true
		}
	}
	return changed
}

func sameExpression(a, b *remoting.SubscriptionData) bool {
	return a.SubString == b.SubString && exprType(a.ExpressionType) == exprType(b.ExpressionType)
}

// exprType is the expression type in force: none means TAG.
func exprType(s string) string {
	if s == "" {
		return remoting.ExpressionTag
	}
	return s
}

// Fingerprint stores the fingerprint of a version 2 heartbeat and reports
// whether it differs from the last of the group.
func (t *consumerTable) Fingerprint(group string, fp int32) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, ok := t.mu.fingerprints[group]
	t.mu.fingerprints[group] = fp
	return !ok || old != fp
}

// left is a group that a client has left.
type left struct {
	group  string
	model  string
	others []*member
}

// Unregister removes a client from a group; ok is false when it was not there.
func (t *consumerTable) Unregister(group string, conn uint64) (l left, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leave(t.mu.groups[group], conn)
}

func (t *consumerTable) leave(g *consumerGroup, conn uint64) (left, bool) {
	if g == nil || g.clients[conn] == nil {
		return left{}, false
	}
	delete(g.clients, conn)
	g.gen.Add(1)
	l := left{group: g.name, model: g.messageModel, others: g.clients.sorted()}
	if len(g.clients) == 0 {
		delete(t.mu.groups, g.name)
		delete(t.mu.fingerprints, g.name)
	}
	return l, true
}

// Closed removes a connection from all groups and returns those it left.
func (t *consumerTable) Closed(conn uint64) []left {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []left
	for _, g := range t.mu.groups {
		if l, ok := t.leave(g, conn); ok {
			out = append(out, l)
		}
	}
	return out
}

// expired is a client that was silent for too long.
type expired struct {
	left
	client *member
}

// Expire removes the clients silent since before.
func (t *consumerTable) Expire(before time.Time) []expired {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []expired
	for _, g := range t.mu.groups {
		for _, cl := range g.clients.silent(before) {
			if l, ok := t.leave(g, cl.peer.ID()); ok {
				out = append(out, expired{left: l, client: cl})
			}
		}
	}
	return out
}

// Subscription finds what a group wants of a topic. online is false when the
// group has no client; sub is nil when it has not subscribed to the topic.
func (t *consumerTable) Subscription(group, topic []byte) (sub *subscription, model string, online bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.mu.groups[string(group)]
	if g == nil {
		return nil, "", false
	}
	return g.subs[string(topic)], g.messageModel, true
}

// ClientIDs lists the members of a group, without duplicates, sorted.
func (t *consumerTable) ClientIDs(group []byte) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.mu.groups[string(group)]
	if g == nil {
		return nil
	}
	out := make([]string, 0, len(g.clients))
	for _, cl := range g.clients {
		if cl.id != "" {
			out = append(out, cl.id)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Clients lists the clients of a group and its message model.
func (t *consumerTable) Clients(group string) ([]*member, string) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.mu.groups[group]
	if g == nil {
		return nil, ""
	}
	return g.clients.sorted(), g.messageModel
}

// Client finds a member by its id, nil when there is none.
func (t *consumerTable) Client(group, id string) *member {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.mu.groups[group]
	if g == nil {
		return nil
	}
	for _, cl := range g.clients {
		if cl.id == id {
			return cl
		}
	}
	return nil
}

// ClientOf is the id of the client that a connection is to a group, "" for none.
func (t *consumerTable) ClientOf(group string, conn uint64) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if g := t.mu.groups[group]; g != nil && g.clients[conn] != nil {
		return g.clients[conn].id
	}
	return ""
}

// Connection is the form of GET_CONSUMER_CONNECTION_LIST, nil when the group
// is not online.
func (t *consumerTable) Connection(group string) *remoting.ConsumerConnection {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.mu.groups[group]
	if g == nil {
		return nil
	}
	out := &remoting.ConsumerConnection{
		ConnectionSet:     g.clients.connections(),
		ConsumeFromWhere:  g.fromWhere,
		ConsumeType:       g.consumeType,
		MessageModel:      g.messageModel,
		SubscriptionTable: map[string]remoting.SubscriptionData{},
	}
	for topic, sub := range g.subs {
		out.SubscriptionTable[topic] = sub.SubscriptionData
	}
	return out
}

// GroupsOf lists the online groups that subscribe to a topic, sorted.
func (t *consumerTable) GroupsOf(topic string) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []string
	for name, g := range t.mu.groups {
		if g.subs[topic] != nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Subscriptions are the topics of an online group, nil when it is not online.
func (t *consumerTable) Subscriptions(group string) map[string]remoting.SubscriptionData {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.mu.groups[group]
	if g == nil {
		return nil
	}
	out := make(map[string]remoting.SubscriptionData, len(g.subs))
	for topic, sub := range g.subs {
		out[topic] = sub.SubscriptionData
	}
	return out
}

// Touch makes the next heartbeat of a group's clients count as new.
func (t *consumerTable) Touch(group string) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if g := t.mu.groups[group]; g != nil {
		g.gen.Add(1)
	}
}

// Len is the number of online groups.
func (t *consumerTable) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.mu.groups)
}
