package broker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"mqx/broker/pop"
	"mqx/broker/staticmap"
	"mqx/internal/fastjson"
	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
)

// requestModes says by topic and group whether clients pull or pop
// (messageRequestMode.json). Safe to share.
type requestModes struct {
	fsys  vfs.FS
	path  string
	saver *saver
	mu    struct {
		sync.RWMutex
		table map[string]map[string]remoting.MessageRequestMode
		size  int // entries of all topics
	}
}

// maxRequestModes bounds the entries of the table: a topic and a group each.
const maxRequestModes = 200_000

func newRequestModes(fsys vfs.FS, path string) *requestModes {
	t := &requestModes{fsys: fsys, path: path}
	t.saver = newSaver(t.write)
	t.mu.table = map[string]map[string]remoting.MessageRequestMode{}
	return t
}

// Load reads the file or its backup.
func (t *requestModes) Load() error {
	_, err := jsonfile.Load(t.fsys, t.path, func(data []byte) error {
		var read remoting.MessageRequestModes
		if err := fastjson.Unmarshal(data, &read); err != nil {
			return err
		}
		if read.Map != nil {
			t.mu.table, t.mu.size = read.Map, 0
			for _, groups := range read.Map {
				t.mu.size += len(groups)
			}
		}
		return nil
	})
	return err
}

// Get returns what was set; ok is false when nothing was.
func (t *requestModes) Get(topic, group string) (m remoting.MessageRequestMode, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	m, ok = t.mu.table[topic][group]
	return m, ok
}

// Set puts a mode in force and calls done when it is on disk. A new entry beyond maxRequestModes is refused.
func (t *requestModes) Set(m remoting.MessageRequestMode, done func(error)) {
	if err := t.put(m); err != nil {
		done(err)
		return
	}
	t.saver.Then(done)
}

func (t *requestModes) put(m remoting.MessageRequestMode) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	groups := t.mu.table[m.Topic]
	if _, known := groups[m.ConsumerGroup]; !known {
		if t.mu.size >= maxRequestModes {
			return fmt.Errorf("the table of request modes has %d entries, which is the limit", t.mu.size)
		}
		t.mu.size++
	}
	if groups == nil {
		groups = map[string]remoting.MessageRequestMode{}
		t.mu.table[m.Topic] = groups
	}
	groups[m.ConsumerGroup] = m
	return nil
}

// RemoveTopic forgets the modes of a deleted topic.
func (t *requestModes) RemoveTopic(topic string) {
	t.mu.Lock()
	groups, ok := t.mu.table[topic]
	t.mu.size -= len(groups)
	delete(t.mu.table, topic)
	t.mu.Unlock()
	if ok {
		t.saver.Then(nil)
	}
}

// Snapshot is the table in the form of the file.
func (t *requestModes) Snapshot() remoting.MessageRequestModes {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := remoting.MessageRequestModes{Map: map[string]map[string]remoting.MessageRequestMode{}}
	for topic, groups := range t.mu.table {
		out.Map[topic] = maps.Clone(groups)
	}
	return out
}

func (t *requestModes) write() error {
	data, err := fastjson.MarshalPretty(t.Snapshot())
	if err == nil {
		err = jsonfile.Save(t.fsys, t.path, data)
	}
	if err != nil {
		return fmt.Errorf("cannot save the request modes: %w", err)
	}
	return nil
}

// handleSetRequestMode serves SET_MESSAGE_REQUEST_MODE.
func (b *Broker) handleSetRequestMode(r *server.Request) {
	var m remoting.MessageRequestMode
	if err := fastjson.Unmarshal(r.Body, &m); err != nil {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the body cannot be read: %v", err))
		return
	}
	switch {
	case message.IsRetry(m.Topic):
		r.Reply(remoting.RespNoPermission, "retry topic is not allowed to set mode")
		return
	case m.Mode != modePull && m.Mode != modePop:
		r.Reply(remoting.RespInvalidParameter, fmt.Sprintf("mode %q is neither PULL nor POP", m.Mode))
		return
	case b.topics.Get(m.Topic) == nil:
		r.Reply(remoting.RespTopicNotExist, "topic["+m.Topic+"] not exist")
		return
	case b.groups.FindOrCreate(m.ConsumerGroup) == nil:
		r.Reply(remoting.RespSubscriptionGroupNotExist, "subscription group does not exist")
		return
	}
	peer := r.Conn().Remote()
	b.modes.Set(m, func(err error) {
		if err != nil {
			r.Reply(remoting.RespSystemError, err.Error())
			return
		}
		b.log.Info("request mode set", "topic", m.Topic, "group", m.ConsumerGroup, "mode", m.Mode, "share", m.PopShareQueueNum, "peer", peer)
		r.Reply(remoting.RespSuccess, "")
	})
}

// handleRequestModes serves GET_ALL_MESSAGE_REQUEST_MODE.
func (b *Broker) handleRequestModes(r *server.Request) {
	p := newReply(remoting.RespSuccess, "")
	b.body(p, b.modes.Snapshot())
	p.to(r)
}

// handleAssignment serves QUERY_ASSIGNMENT: the queues of a client, computed
// here from the route and the members of its group. Where nothing can be said
// the list is left out, and the client keeps what it has.
func (b *Broker) handleAssignment(r *server.Request) {
	var q remoting.QueryAssignmentBody
	if err := fastjson.Unmarshal(r.Body, &q); err != nil {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the body cannot be read: %v", err))
		return
	}
	mode := b.requestMode(q.Topic, q.ConsumerGroup)
	queues, ok := b.assign(&q, &mode)
	p := newReply(remoting.RespSuccess, "")
	if !ok {
		p.cmd.Body = []byte("{}")
		p.to(r)
		return
	}
	body := remoting.QueryAssignmentResponseBody{Assignments: []remoting.MessageQueueAssignment{}}
	for _, mq := range queues {
		body.Assignments = append(body.Assignments, remoting.MessageQueueAssignment{MessageQueue: mq, Mode: mode.Mode})
	}
	b.body(p, body)
	p.to(r)
}

// requestMode is the mode in force; retry topics are pulled.
func (b *Broker) requestMode(topic, group string) remoting.MessageRequestMode {
	if m, ok := b.modes.Get(topic, group); ok {
		return m
	}
	m := remoting.MessageRequestMode{Topic: topic, ConsumerGroup: group, Mode: b.cfg().RequestMode}
	if message.IsRetry(topic) {
		m.Mode = modePull
	}
	if m.Mode == modePop {
		m.PopShareQueueNum = int32(b.cfg().PopShareQueueNum)
	}
	return m
}

// assign finds the queues of a client. ok is false when the topic, the members
// or the strategy are not known.
func (b *Broker) assign(q *remoting.QueryAssignmentBody, mode *remoting.MessageRequestMode) (queues []remoting.MessageQueue, ok bool) {
	broadcast := q.MessageModel == remoting.Broadcasting
	if message.IsLMQ(q.Topic) && !broadcast {
		queues = []remoting.MessageQueue{{Topic: q.Topic, BrokerName: b.cfg().BrokerName}}
	} else if queues, ok = b.routes.Queues(q.Topic); !ok {
		return nil, false
	}
	if mode.Mode != modePop {
		if logical := b.routes.Logical(q.Topic); len(logical) > 0 {
			queues = logical
		}
	}
	if broadcast || !b.cfg().ServerLoadBalancer {
		return queues, true
	}
	clients := b.consumers.ClientIDs([]byte(q.ConsumerGroup))
	if len(clients) == 0 || len(queues) == 0 {
		return nil, false
	}
	var places []int
	var err error
	if mode.Mode == modePop {
		var all bool
		if places, all, err = pop.AssignPop(q.StrategyName, q.ClientID, len(queues), clients, int(mode.PopShareQueueNum)); all {
			return anyQueues(queues), true
		}
	} else {
		places, err = pop.Assign(q.StrategyName, q.ClientID, len(queues), clients)
	}
	if err != nil {
		b.quiet.Warn("queues could not be assigned", "group", q.ConsumerGroup, "topic", q.Topic, "client", q.ClientID, "error", err)
		return nil, false
	}
	out := make([]remoting.MessageQueue, 0, len(places))
	for _, i := range places {
		out = append(out, queues[i])
	}
	return out, true
}

// anyQueues is one entry a broker that stands for all its queues.
func anyQueues(queues []remoting.MessageQueue) []remoting.MessageQueue {
	var out []remoting.MessageQueue
	for _, mq := range queues {
		mq.QueueID = -1
		if !slices.Contains(out, mq) {
			out = append(out, mq)
		}
	}
	return out
}

// routeTable is the broker's own copy of routes, asked for when a client wants
// its queues. Safe to share.
type routeTable struct {
	b  *Broker
	mu struct {
		sync.Mutex
		routes map[string]*heldRoute
	}
}

// heldRoute is the queues of one topic, sorted.
type heldRoute struct {
	asking sync.Mutex // one question at a time; owns what follows
	queues []remoting.MessageQueue
	// logical are those of a static topic, as clients know them.
	logical []remoting.MessageQueue
	known   bool
	asked   time.Time
}

const (
	// maxRoutes bounds the routes that are kept.
	maxRoutes = 20_000
	// routeTimeout bounds one question to a name server.
	routeTimeout = 3 * time.Second
)

func newRouteTable(b *Broker) *routeTable {
	t := &routeTable{b: b}
	t.mu.routes = map[string]*heldRoute{}
	return t
}

// Queues lists the readable queues of a topic on all brokers, sorted. ok is
// false when no name server knows the topic; without any name server this
// broker's own topic counts. It may wait for a name server.
func (t *routeTable) Queues(topic string) ([]remoting.MessageQueue, bool) {
	servers := slices.Sorted(maps.Keys(t.b.registrar.Servers()))
	if len(servers) == 0 {
		return t.own(topic)
	}
	h := t.held(topic)
	h.asking.Lock()
	defer h.asking.Unlock()
	now := t.b.now()
	if h.asked.IsZero() || now.Sub(h.asked) >= t.b.cfg().RoutePollEvery || !h.known && now.Sub(h.asked) >= time.Second {
		h.asked = now
		t.ask(h, topic, servers)
	}
	return slices.Clone(h.queues), h.known
}

// Logical lists the logical queues of a static topic as Queues saw it last, sorted; none for an ordinary topic.
func (t *routeTable) Logical(topic string) []remoting.MessageQueue {
	h := t.held(topic)
	h.asking.Lock()
	defer h.asking.Unlock()
	return slices.Clone(h.logical)
}

// held finds or makes the entry of a topic.
func (t *routeTable) held(topic string) *heldRoute {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.mu.routes[topic]
	if h == nil {
		if len(t.mu.routes) >= maxRoutes {
			clear(t.mu.routes) // all are asked for anew
		}
		h = &heldRoute{}
		t.mu.routes[topic] = h
	}
	return h
}

// ask takes the route from the first name server that answers. When none does,
// the old one stays.
func (t *routeTable) ask(h *heldRoute, topic string, servers []string) {
	for _, addr := range servers {
		ctx, cancel := context.WithTimeout(t.b.ctx, routeTimeout)
		resp, err := t.b.client.Call(ctx, addr, remoting.NewRequest(remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoHeader{Topic: topic}))
		cancel()
		if err != nil {
			t.b.quiet.Warn("a route could not be asked for", "topic", topic, "name_server", addr, "error", err)
			continue
		}
		if resp.Code == remoting.RespTopicNotExist {
			h.queues, h.logical, h.known = nil, nil, false
			return
		}
		var data remoting.TopicRouteData
		if resp.Code != remoting.RespSuccess || fastjson.Unmarshal(resp.Body, &data) != nil {
			t.b.quiet.Warn("a route could not be read", "topic", topic, "name_server", addr, "code", resp.Code, "remark", resp.Remark)
			continue
		}
		h.queues, h.logical, h.known = routeQueues(topic, &data), logicalQueues(topic, &data), true
		return
	}
}

// routeQueues are the readable queues of a route, sorted by broker and id.
func routeQueues(topic string, data *remoting.TopicRouteData) []remoting.MessageQueue {
	out := []remoting.MessageQueue{}
	for _, qd := range data.QueueDatas {
		if !readable(qd.Perm) {
			continue
		}
		for id := range min(qd.ReadQueueNums, maxQueues) {
			out = append(out, remoting.MessageQueue{Topic: topic, BrokerName: qd.BrokerName, QueueID: id})
		}
	}
	slices.SortFunc(out, func(a, b remoting.MessageQueue) int {
		return cmp.Or(cmp.Compare(a.BrokerName, b.BrokerName), cmp.Compare(a.QueueID, b.QueueID))
	})
	return out
}

// logicalQueues are the logical queues of the static topic of a route: as many as the newest mapping has.
func logicalQueues(topic string, data *remoting.TopicRouteData) []remoting.MessageQueue {
	var newest remoting.TopicQueueMappingInfo
	for _, name := range slices.Sorted(maps.Keys(data.MappingByBroker)) {
		if m := data.MappingByBroker[name]; m.Epoch > newest.Epoch {
			newest = m
		}
	}
	var out []remoting.MessageQueue
	for id := range min(newest.TotalQueues, maxQueues) {
		out = append(out, remoting.MessageQueue{Topic: topic, BrokerName: staticmap.MockBroker(newest.Scope), QueueID: id})
	}
	return out
}

// own is the queues of this broker's topic.
func (t *routeTable) own(topic string) ([]remoting.MessageQueue, bool) {
	tp := t.b.topics.Get(topic)
	if tp == nil {
		return nil, false
	}
	qd := remoting.QueueData{BrokerName: t.b.cfg().BrokerName, ReadQueueNums: tp.ReadQueueNums, Perm: tp.Perm & int32(t.b.cfg().BrokerPermission)}
	return routeQueues(topic, &remoting.TopicRouteData{QueueDatas: []remoting.QueueData{qd}}), true
}
