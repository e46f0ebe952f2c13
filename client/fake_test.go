package client

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/nameserver"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
	"mqx/remoting/server"
)

// A broker of messages in memory for tests: one handler a request, each with its
// behaviour in the first line of its comment. The name server beside it is the real one.

var quiet = slog.New(slog.DiscardHandler)

// startNameServer runs a name server on loopback until the test ends.
func startNameServer(t *testing.T) (addr string) {
	t.Helper()
	cfg := nameserver.DefaultConfig()
	cfg.BindAddress, cfg.ListenPort, cfg.Logger = "127.0.0.1", 0, quiet
	cfg.KVConfigPath = filepath.Join(t.TempDir(), "kv.json")
	s, err := nameserver.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-s.Ready()
	return s.Addr().String()
}

type fakeQueue struct {
	records [][]byte // encoded, by offset - min
	min     int64
}

type heldPull struct {
	req *server.Request
	key queueKey
}

type queueKey struct {
	topic string
	id    int32
}

type seenRequest struct {
	code   int32
	oneway bool
	fields map[string]string
	body   []byte
}

// fakeBroker is one master.
type fakeBroker struct {
	t     *testing.T
	name  string
	addr  string
	srv   *server.Server
	class *server.Class
	conn  *remoteclient.Client // to the name server
	ns    string

	mu      sync.Mutex
	topics  map[string]remoting.TopicConfig
	queues  map[queueKey]*fakeQueue
	offsets map[string]int64                   // group|topic|queue
	members map[string]map[string]*server.Conn // group -> client id -> connection
	held    []heldPull
	seen    []seenRequest
	refuse  map[int32]func(*server.Request) bool // answers itself when it returns true
	phys    int64
	version int64
}

// startBroker runs a broker that registers topics (name:queues) at ns.
func startBroker(t *testing.T, ns, name string, topics ...string) *fakeBroker {
	t.Helper()
	b := &fakeBroker{
		t: t, name: name, ns: ns, topics: map[string]remoting.TopicConfig{}, queues: map[queueKey]*fakeQueue{}, offsets: map[string]int64{},
		members: map[string]map[string]*server.Conn{}, refuse: map[int32]func(*server.Request) bool{},
		class: server.NewClass(server.ClassConfig{Name: "all", Workers: 8, Queue: 10000}),
	}
	m := server.NewMux()
	for code, h := range map[int32]func(*server.Request){
		remoting.ReqSendMessageV2: b.send, remoting.ReqSendBatchMessage: b.send, remoting.ReqPullMessage: b.pull,
		remoting.ReqGetMinOffset: b.minOffset, remoting.ReqGetMaxOffset: b.maxOffset, remoting.ReqSearchOffsetByTimestamp: b.search,
		remoting.ReqQueryConsumerOffset: b.queryOffset, remoting.ReqUpdateConsumerOffset: b.updateOffset,
		remoting.ReqHeartBeat: b.heartbeat, remoting.ReqUnregisterClient: b.unregister, remoting.ReqGetConsumerListByGroup: b.memberList,
	} {
		m.Handle(code, b.class, func(r *server.Request) {
			if !b.note(r) {
				h(r)
			}
		})
	}
	var err error
	if b.srv, err = server.New(server.Config{Addr: "127.0.0.1:0", Loops: 1, Logger: quiet, OnClose: b.closed}, m); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.class.Run(context.Background()) })
	if err := b.srv.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.addr = b.srv.Addr().String()
	b.conn = remoteclient.New(remoteclient.Config{Logger: quiet})
	t.Cleanup(func() {
		b.stop()
		b.class.Close()
		wg.Wait()
		_ = b.conn.Close()
	})
	b.create(message.TopicAutoCreate+":8", "filler:1")
	b.create(topics...)
	return b
}

func (b *fakeBroker) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = b.srv.Stop(ctx)
}

// create adds topics and registers the broker.
func (b *fakeBroker) create(topics ...string) {
	b.t.Helper()
	b.mu.Lock()
	for _, spec := range topics {
		name, n, _ := strings.Cut(spec, ":")
		queues, err := strconv.Atoi(n)
		if err != nil {
			b.t.Fatal(err)
		}
		c := remoting.NewTopicConfig(name)
		c.ReadQueueNums, c.WriteQueueNums = int32(queues), int32(queues)
		if name == message.TopicAutoCreate {
			c.Perm = 7
		}
		b.topics[name] = c
		for i := range queues {
			b.queues[queueKey{name, int32(i)}] = &fakeQueue{}
		}
	}
	b.mu.Unlock()
	b.register()
}

func (b *fakeBroker) register() {
	b.t.Helper()
	b.mu.Lock()
	b.version++
	body := &remoting.RegisterBrokerBody{Topics: remoting.TopicConfigAndMappingTable{
		DataVersion: remoting.DataVersion{Counter: b.version}, TopicConfigTable: map[string]remoting.TopicConfig{},
	}}
	for n, c := range b.topics {
		body.Topics.TopicConfigTable[n] = c
	}
	b.mu.Unlock()
	req := remoting.NewRequest(remoting.ReqRegisterBroker, &remoting.RegisterBrokerHeader{
		BrokerName: b.name, BrokerAddr: b.addr, ClusterName: "c", HAServerAddr: b.addr,
	})
	var err error
	if req.Body, err = remoting.EncodeRegisterBroker(body, false, remoting.Version); err != nil {
		b.t.Fatal(err)
	}
	resp, err := b.conn.Call(context.Background(), b.ns, req)
	if err != nil || resp.Code != 0 {
		b.t.Fatalf("cannot register: %v %+v", err, resp)
	}
}

// note records a request and lets a test answer it instead.
func (b *fakeBroker) note(r *server.Request) bool {
	b.mu.Lock()
	s := seenRequest{code: r.Code, oneway: r.IsOneway(), fields: map[string]string{}, body: slices.Clone(r.Body)}
	r.Fields.Each(func(k, v []byte) bool { s.fields[string(k)] = string(v); return true })
	b.seen = append(b.seen, s)
	f := b.refuse[r.Code]
	b.mu.Unlock()
	return f != nil && f(r)
}

// intercept lets f answer requests of a code; it returns false to pass one on. nil ends that.
func (b *fakeBroker) intercept(code int32, f func(*server.Request) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse[code] = f
}

// requests returns what came of a code.
func (b *fakeBroker) requests(code int32) (out []seenRequest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.seen {
		if s.code == code {
			out = append(out, s)
		}
	}
	return out
}

func (b *fakeBroker) host() netip.AddrPort { return netip.MustParseAddrPort(b.addr) }

// put stores one message and returns its record's place.
func (b *fakeBroker) put(k queueKey, rec message.Record) (id string, offset int64) {
	q := b.queues[k]
	rec.Topic, rec.QueueID, rec.StoreHost = []byte(k.topic), k.id, b.host()
	if !rec.BornHost.IsValid() {
		rec.BornHost = b.host()
	}
	if rec.StoreTimestamp == 0 {
		rec.StoreTimestamp = time.Now().UnixMilli()
	}
	offset = q.min + int64(len(q.records))
	enc := rec.Append(nil, false)
	message.PatchOffsets(enc, offset, b.phys, rec.StoreTimestamp)
	id = message.FormatOffsetID(b.host(), b.phys)
	b.phys += int64(len(enc))
	q.records = append(q.records, enc)
	return id, offset
}

// fill stores messages of topic T directly: bodies, with a store time and a tag each.
func (b *fakeBroker) fill(queue int32, bodies []string, tag string, storeMs int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, body := range bodies {
		rec := message.Record{Body: []byte(body), StoreTimestamp: storeMs + int64(i)}
		if tag != "" {
			rec.Properties = message.FormatProperties(map[string]string{message.PropTags: tag})
		}
		b.put(queueKey{"T", queue}, rec)
	}
	b.wake(queueKey{"T", queue})
}

// send stores a message or a batch; an unknown topic is created as asked.
func (b *fakeBroker) send(r *server.Request) {
	var h remoting.SendMessageHeader
	if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	b.mu.Lock()
	_, known := b.topics[h.Topic]
	b.mu.Unlock()
	if !known {
		b.create(h.Topic + ":" + strconv.Itoa(int(h.DefaultTopicQueueNums)))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	k := queueKey{h.Topic, h.QueueID}
	if b.queues[k] == nil {
		r.Reply(remoting.RespInvalidParameter, "no such queue")
		return
	}
	var ids []string
	first := int64(-1)
	store := func(flag int32, body, props []byte) {
		id, off := b.put(k, message.Record{Body: body, Properties: props, Flag: flag, SysFlag: h.SysFlag, BornTimestamp: h.BornTimestamp, BornHost: r.Conn().Remote()})
		ids = append(ids, id)
		if first < 0 {
			first = off
		}
	}
	if h.Batch {
		for item, err := range message.SplitBatch(r.Body) {
			if err != nil {
				r.Reply(remoting.RespMessageIllegal, err.Error())
				return
			}
			store(item.Flag, item.Body, item.Properties)
		}
	} else {
		store(h.Flag, r.Body, []byte(h.Properties))
	}
	resp := &remoting.Command{}
	remoting.EncodeHeader(&resp.Fields, &remoting.SendMessageResponseHeader{
		MsgID: strings.Join(ids, ","), QueueID: h.QueueID, QueueOffset: first, TransactionID: "T",
	})
	resp.Fields.Set("MSG_REGION", "DefaultRegion")
	r.ReplyWith(resp)
	b.wake(k)
}

// pull answers what there is; with the suspend bit it waits for more.
func (b *fakeBroker) pull(r *server.Request) {
	var h remoting.PullMessageHeader
	if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	k := queueKey{h.Topic, h.QueueID}
	if !b.answerPull(r, h, k) {
		r.Detach()
		b.held = append(b.held, heldPull{r, k})
	}
}

// answerPull answers a pull, or returns false when it is to be held.
func (b *fakeBroker) answerPull(r *server.Request, h remoting.PullMessageHeader, k queueKey) bool {
	q := b.queues[k]
	if q == nil {
		r.Reply(remoting.RespInvalidParameter, "no such queue")
		return true
	}
	top := q.min + int64(len(q.records))
	resp := &remoting.Command{}
	out := remoting.PullMessageResponseHeader{NextBeginOffset: h.QueueOffset, MinOffset: q.min, MaxOffset: top}
	switch {
	case h.QueueOffset < q.min:
		resp.Code, out.NextBeginOffset = remoting.RespPullOffsetMoved, q.min
	case h.QueueOffset > top:
		resp.Code, out.NextBeginOffset = remoting.RespPullOffsetMoved, top
	case h.QueueOffset == top:
		if h.SysFlag&pullSuspend != 0 {
			return false
		}
		resp.Code = remoting.RespPullNotFound
	default:
		codes := map[int64]bool{}
		if h.SysFlag&pullSubscription != 0 && h.Subscription != "*" {
			for _, tag := range strings.Split(h.Subscription, "||") {
				codes[message.TagsCode([]byte(strings.TrimSpace(tag)))] = true
			}
		}
		for n := 0; out.NextBeginOffset < top && n < int(h.MaxMsgNums); out.NextBeginOffset++ {
			rec := message.View(q.records[out.NextBeginOffset-q.min])
			tag, _ := message.Property(rec.Properties(), message.PropTags)
			if len(codes) > 0 && !codes[message.TagsCode(tag)] {
				continue
			}
			resp.Body = append(resp.Body, rec...)
			n++
		}
		if len(resp.Body) == 0 {
			resp.Code = remoting.RespPullRetryImmediately
		}
	}
	remoting.EncodeHeader(&resp.Fields, &out)
	r.ReplyWith(resp)
	return true
}

// wake answers held pulls of a queue; b.mu is held.
func (b *fakeBroker) wake(k queueKey) {
	rest := b.held[:0]
	for _, p := range b.held {
		var h remoting.PullMessageHeader
		if p.key == k && remoting.DecodeHeader(p.req.Fields, &h) == nil && b.answerPull(p.req, h, k) {
			continue
		}
		rest = append(rest, p)
	}
	b.held = rest
}

func (b *fakeBroker) queue(r *server.Request) *fakeQueue {
	id, _, _ := r.Fields.Int32("queueId")
	q := b.queues[queueKey{r.Fields.String("topic"), id}]
	if q == nil {
		q = &fakeQueue{}
	}
	return q
}

func replyOffset(r *server.Request, n int64) {
	resp := &remoting.Command{}
	resp.Fields.SetInt("offset", n)
	r.ReplyWith(resp)
}

// minOffset answers the first offset of a queue.
func (b *fakeBroker) minOffset(r *server.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	replyOffset(r, b.queue(r).min)
}

// maxOffset answers the offset after the last of a queue.
func (b *fakeBroker) maxOffset(r *server.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queue(r)
	replyOffset(r, q.min+int64(len(q.records)))
}

// search answers the first offset stored at or after a time.
func (b *fakeBroker) search(r *server.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ts, _, _ := r.Fields.Int64("timestamp")
	q := b.queue(r)
	for i, rec := range q.records {
		if message.View(rec).StoreTimestamp() >= ts {
			replyOffset(r, q.min+int64(i))
			return
		}
	}
	replyOffset(r, q.min+int64(len(q.records)))
}

func offsetKey(r *server.Request) string {
	return r.Fields.String("consumerGroup") + "|" + r.Fields.String("topic") + "|" + r.Fields.String("queueId")
}

// queryOffset answers a committed offset, or QUERY_NOT_FOUND.
func (b *fakeBroker) queryOffset(r *server.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n, ok := b.offsets[offsetKey(r)]; ok {
		replyOffset(r, n)
		return
	}
	r.Reply(remoting.RespQueryNotFound, "Not found")
}

// updateOffset stores a committed offset.
func (b *fakeBroker) updateOffset(r *server.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, _, _ := r.Fields.Int64("commitOffset")
	b.offsets[offsetKey(r)] = n
	r.Reply(remoting.RespSuccess, "")
}

// committed is the committed offset of group G in topic T, -1 for none.
func (b *fakeBroker) committed(queue int) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n, ok := b.offsets["G|T|"+strconv.Itoa(queue)]; ok {
		return n
	}
	return -1
}

// heartbeat takes members in, creates their retry topics and tells the group of new ones.
func (b *fakeBroker) heartbeat(r *server.Request) {
	var d remoting.HeartbeatData
	if err := fastjson.Unmarshal(r.Body, &d); err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	for _, c := range d.ConsumerDataSet {
		b.mu.Lock()
		retry := message.RetryTopic(c.GroupName)
		_, has := b.topics[retry]
		b.mu.Unlock()
		if !has && c.MessageModel == remoting.Clustering {
			b.create(retry + ":1")
		}
		b.mu.Lock()
		if b.members[c.GroupName] == nil {
			b.members[c.GroupName] = map[string]*server.Conn{}
		}
		if b.members[c.GroupName][d.ClientID] == nil {
			b.members[c.GroupName][d.ClientID] = r.Conn()
			b.notify(c.GroupName)
		}
		b.mu.Unlock()
	}
	r.Reply(remoting.RespSuccess, "")
}

func (b *fakeBroker) notify(group string) {
	for _, c := range b.members[group] {
		_ = c.Send(remoting.NewRequest(remoting.ReqNotifyConsumerIDsChanged, &remoting.NotifyConsumerIDsChangedHeader{ConsumerGroup: group}))
	}
}

// unregister lets a member go and tells the group.
func (b *fakeBroker) unregister(r *server.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	group := r.Fields.String("consumerGroup")
	delete(b.members[group], r.Fields.String("clientID"))
	b.notify(group)
	r.Reply(remoting.RespSuccess, "")
}

func (b *fakeBroker) closed(c *server.Conn, _ error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for group, members := range b.members {
		for id, conn := range members {
			if conn == c {
				delete(members, id)
				b.notify(group)
			}
		}
	}
}

// memberList answers the members of a group.
func (b *fakeBroker) memberList(r *server.Request) {
	b.mu.Lock()
	var ids []string
	for id := range b.members[r.Fields.String("consumerGroup")] {
		ids = append(ids, id)
	}
	b.mu.Unlock()
	if len(ids) == 0 {
		r.Reply(remoting.RespSystemError, "no consumer for this group")
		return
	}
	body, err := fastjson.Marshal(remoting.ConsumerIDList{ConsumerIDList: ids})
	if err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	r.ReplyWith(&remoting.Command{Body: body})
}

// eventually waits for a condition that other goroutines bring about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// closedPort is an address on which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// hangingPort is an address that takes connections and never answers.
func hangingPort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}
