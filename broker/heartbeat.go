package broker

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
)

// session is what the broker remembers of a connection: its last heartbeat, to
// answer an equal one on the event loop.
type session struct {
	mu struct {
		sync.Mutex
		body      []byte
		answer    heartbeatAnswer
		producers []*member
		consumers []heldGroup
	}
}

// heldGroup is a consumer group as it stood after a heartbeat.
type heldGroup struct {
	group  *consumerGroup
	client *member
	gen    uint64
}

type heartbeatAnswer struct{ subChange bool }

// maxHeartbeatKept bounds the bytes of a heartbeat that a session remembers.
const maxHeartbeatKept = 64 << 10

func sessionOf(c *server.Conn) *session {
	if s, ok := c.Session().(*session); ok {
		return s
	}
	return nil
}

// tryHeartbeat answers a heartbeat that changes nothing: the same bytes as the
// last one, while no group of it has changed since.
func (b *Broker) tryHeartbeat(r *server.Request) bool {
	s := sessionOf(r.Conn())
	if s == nil {
		return false
	}
	a, ok := s.same(r.Body, b.now())
	if ok {
		answerHeartbeat(r, a)
	}
	return ok
}

// same refreshes the clients of a session when body is its last heartbeat and
// no group of it has changed since.
func (s *session) same(body []byte, now time.Time) (heartbeatAnswer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.body == nil || !bytes.Equal(s.mu.body, body) {
		return heartbeatAnswer{}, false
	}
	for i := range s.mu.consumers {
		if g := &s.mu.consumers[i]; g.group.gen.Load() != g.gen {
			return heartbeatAnswer{}, false
		}
	}
	for _, c := range s.mu.producers {
		c.touch(now)
	}
	for i := range s.mu.consumers {
		s.mu.consumers[i].client.touch(now)
	}
	return s.mu.answer, true
}

func answerHeartbeat(r *server.Request, a heartbeatAnswer) {
	p := newReply(remoting.RespSuccess, "")
	p.set(keyHeartbeatV2, valTrue)
	if a.subChange {
		p.set(keySubChange, valTrue)
	} else {
		p.set(keySubChange, valFalse)
	}
	p.to(r)
}

// handleHeartbeat registers the producers and consumers of a client.
func (b *Broker) handleHeartbeat(r *server.Request) {
	var hb remoting.HeartbeatData
	if err := fastjson.Unmarshal(r.Body, &hb); err != nil {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the heartbeat cannot be read: %v", err))
		return
	}
	if n := heartbeatEntries(&hb); n > maxHeartbeatEntries {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the heartbeat names %d groups and subscriptions, the limit is %d", n, maxHeartbeatEntries))
		return
	}
	conn, now := r.Conn(), b.now()
	var kept []heldGroup
	v2 := hb.Fingerprint != 0
	a := heartbeatAnswer{subChange: !v2}
	for i := range hb.ConsumerDataSet {
		data := &hb.ConsumerDataSet[i]
		if b.cfg().RejectPullConsumer && data.ConsumeType == remoting.ConsumeActively {
			continue
		}
		g := b.groups.FindOrCreate(data.GroupName)
		if g == nil {
			a.subChange = true // it stays unknown: nothing that is sent short would count
			continue
		}
		if v2 && b.consumers.Fingerprint(data.GroupName, hb.Fingerprint) {
			a.subChange = true
		}
		b.createRetryTopic(g, data.UnitMode)
		done := b.consumers.Register(registration{data: data, peer: conn, id: hb.ClientID, keepSubs: v2 && hb.WithoutSub}, now)
		b.followFilters(data, v2 && hb.WithoutSub)
		kept = append(kept, heldGroup{group: done.group, client: done.client, gen: done.gen})
		if done.changed {
			b.notifyGroup(data.GroupName, data.MessageModel, nil)
		}
	}
	var producers []*member
	if b.cfg().RegisterProducer {
		for _, pd := range hb.ProducerDataSet {
			c, _ := b.producers.Register(pd.GroupName, conn, hb.ClientID, now)
			producers = append(producers, c)
		}
	}
	b.remember(conn, r.Body, a, producers, kept)
	answerHeartbeat(r, a)
	if conn.State() == server.StateClosed {
		b.connClosed(conn) // it closed while its groups were being entered
	}
}

// maxHeartbeatEntries bounds the groups and subscriptions of one heartbeat:
// they are kept for as long as the connection lives.
const maxHeartbeatEntries = 10_000

func heartbeatEntries(hb *remoting.HeartbeatData) int {
	n := len(hb.ProducerDataSet) + len(hb.ConsumerDataSet)
	for i := range hb.ConsumerDataSet {
		n += len(hb.ConsumerDataSet[i].SubscriptionDataSet)
	}
	return n
}

// remember keeps a heartbeat for tryHeartbeat. The answer to the next equal one
// of version 2 says that nothing has changed.
func (b *Broker) remember(conn *server.Conn, body []byte, a heartbeatAnswer, producers []*member, groups []heldGroup) {
	s := sessionOf(conn)
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(body) == 0 || len(body) > maxHeartbeatKept || a.subChange && hasFingerprint(body) {
		s.mu.body = nil
		return
	}
	s.mu.body = append(s.mu.body[:0], body...)
	s.mu.answer, s.mu.producers, s.mu.consumers = a, producers, groups
}

// hasFingerprint reports whether a heartbeat may be of version 2: those are
// only remembered once they changed nothing, since their fingerprints belong
// to the group and not to the connection.
func hasFingerprint(body []byte) bool {
	return bytes.Contains(body, []byte("heartbeatFingerprint")) && !bytes.Contains(body, []byte(`"heartbeatFingerprint":0`))
}

// createRetryTopic makes the retry topic of a group that consumes.
func (b *Broker) createRetryTopic(g *group, unit bool) {
	name := message.RetryTopic(g.GroupName)
	if b.topics.Get(name) != nil {
		return
	}
	var flag int32
	if unit {
		flag = sysFlagUnitSub
	}
	if _, err := b.topics.PutIfAbsent(groupTopic(name, max(1, g.RetryQueueNums), flag)); err != nil {
		b.log.Error("the retry topic could not be created", "topic", name, "error", err)
	}
}

// notifyGroup tells the members of a group that it has changed, unless they
// are given by others.
func (b *Broker) notifyGroup(name, model string, others []*member) {
	if model == remoting.Broadcasting || !b.cfg().NotifyConsumerIDsChanged {
		return
	}
	if g := b.groups.Get(name); g != nil && !g.NotifyConsumerIDsChangedEnable {
		return
	}
	if others == nil {
		others, _ = b.consumers.Clients(name)
	}
	cmd := remoting.NewRequest(remoting.ReqNotifyConsumerIDsChanged, &remoting.NotifyConsumerIDsChangedHeader{ConsumerGroup: name})
	cmd.Flag |= remoting.FlagOneway
	for _, c := range others {
		if err := c.peer.Send(cmd); err != nil {
			b.log.Debug("a member could not be told of a change", "group", name, "peer", c.peer.Remote(), "error", err)
		}
	}
}

// hasLeft tells the others of a group that a member is gone; with none left, its filters are out of force.
func (b *Broker) hasLeft(l left) {
	if len(l.others) > 0 {
		b.notifyGroup(l.group, l.model, l.others)
		return
	}
	b.syncFilters(l.group)
}

// followFilters brings the filter table up to what a heartbeat says of a group.
func (b *Broker) followFilters(data *remoting.ConsumerData, withoutSubs bool) {
	if withoutSubs {
		return
	}
	filters := slices.ContainsFunc(data.SubscriptionDataSet, func(s remoting.SubscriptionData) bool { return !isTagType(s.ExpressionType) })
	if filters || b.filters.Has(data.GroupName) {
		b.syncFilters(data.GroupName)
	}
}

// syncFilters makes the filters of a group those of its subscriptions.
func (b *Broker) syncFilters(group string) {
	if b.filters.Has(group) || len(b.consumers.Subscriptions(group)) > 0 {
		b.filters.Follow(group, func() map[string]remoting.SubscriptionData { return b.consumers.Subscriptions(group) })
	}
}

// handleUnregister takes a client out of its groups.
func (b *Broker) handleUnregister(r *server.Request) {
	var h remoting.UnregisterClientHeader
	if !header(r, &h) {
		return
	}
	conn := r.Conn()
	if h.ProducerGroup != "" {
		b.producers.Unregister(h.ProducerGroup, conn.ID())
	}
	if h.ConsumerGroup != "" {
		if l, ok := b.consumers.Unregister(h.ConsumerGroup, conn.ID()); ok {
			b.hasLeft(l)
		}
	}
	if s := sessionOf(conn); s != nil {
		s.mu.Lock()
		s.mu.body = nil
		s.mu.Unlock()
	}
	newReply(remoting.RespSuccess, "").to(r)
}

// connOpened gives a connection its session.
func (b *Broker) connOpened(c *server.Conn) { c.SetSession(&session{}) }

// connClosed takes a closed connection out of all tables. It runs on the
// connection's loop and only touches memory; the members that are left are
// told from there (Send does not block).
func (b *Broker) connClosed(c *server.Conn) {
	id := c.ID()
	b.hold.Closed(id)
	b.pops.Closed(id)
	b.producers.Closed(id)
	for _, l := range b.consumers.Closed(id) {
		b.hasLeft(l)
	}
}

// expireClients closes the connections of clients that were silent too long.
func (b *Broker) expireClients(now time.Time) {
	for _, e := range b.consumers.Expire(now.Add(-b.cfg().ChannelExpired)) {
		b.log.Warn("consumer expired", "group", e.group, "client", e.client.id, "peer", e.client.peer.Remote())
		e.client.peer.Close("no heartbeat within channelExpiredTimeout")
		b.hasLeft(e.left)
	}
	for _, c := range b.producers.Expire(now.Add(-producerExpired)) {
		b.log.Warn("producer expired", "client", c.id, "peer", c.peer.Remote())
		c.peer.Close("no heartbeat within 120 s")
	}
}

// producerExpired is Apache's constant for producers.
const producerExpired = 120 * time.Second

// handleConsumerList serves GET_CONSUMER_LIST_BY_GROUP on the loop.
func (b *Broker) handleConsumerList(r *server.Request) {
	g, ok := r.Fields.Get("consumerGroup")
	if !ok {
		r.Reply(remoting.RespSystemError, (&remoting.MissingFieldError{Field: "consumerGroup"}).Error())
		return
	}
	ids := b.consumers.ClientIDs(g)
	if len(ids) == 0 {
		newReply(remoting.RespSystemError, "no consumer for this group, "+string(g)).to(r)
		return
	}
	p := newReply(remoting.RespSuccess, "")
	b.body(p, &remoting.ConsumerIDList{ConsumerIDList: ids})
	p.to(r)
}

// handleCheckClient serves CHECK_CLIENT_CONFIG: whether a subscription can be
// served.
func (b *Broker) handleCheckClient(r *server.Request) {
	var c remoting.CheckClientBody
	if err := fastjson.Unmarshal(r.Body, &c); err != nil {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the body cannot be read: %v", err))
		return
	}
	if c.SubscriptionData != nil {
		s := c.SubscriptionData
		if e := b.checkClientFilter(s.ExpressionType, s.SubString); e != nil {
			r.Reply(e.Code, e.Text)
			return
		}
	}
	r.Reply(remoting.RespSuccess, "")
}

// body puts a JSON body into a reply; a body that cannot be written becomes an
// error response.
func (b *Broker) body(p *reply, v any) {
	data, err := fastjson.Marshal(v)
	if err != nil {
		p.cmd.Code, p.cmd.Remark = remoting.RespSystemError, fmt.Sprintf("the answer cannot be written: %v", err)
		return
	}
	p.cmd.Body = data
}
