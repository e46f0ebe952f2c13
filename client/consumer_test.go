package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
)

// member is a consumer that runs until stop.
type member struct {
	c      *Consumer
	cancel context.CancelFunc
	ended  chan error

	mu  sync.Mutex
	got []string
}

func startMember(t *testing.T, ns, group string, change func(*ConsumerConfig)) *member {
	t.Helper()
	cfg := ConsumerConfig{
		Config: Config{NameServers: []string{ns}, Heartbeat: time.Second}, Group: group, Subscriptions: []Subscription{{Topic: "T"}},
		From: FromFirst, Rebalance: 50 * time.Millisecond, Commit: 20 * time.Millisecond,
	}
	if change != nil {
		change(&cfg)
	}
	c, err := NewConsumer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{c: c, ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	go func() {
		m.ended <- c.Run(ctx, func(_ context.Context, ms []*Received) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, r := range ms {
				m.got = append(m.got, string(r.Body))
			}
			return nil
		})
	}()
	t.Cleanup(func() { m.stop(t) })
	return m
}

func (m *member) stop(t *testing.T) {
	t.Helper()
	m.cancel()
	if m.ended == nil {
		return
	}
	if err := <-m.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("consumer ended: %v", err)
	}
	m.ended = nil
}

func (m *member) bodies() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(slices.Values(m.got))
}

func (m *member) queues() (out []int32) {
	for q := range m.c.snapshot() {
		if q.Topic == "T" {
			out = append(out, q.QueueID)
		}
	}
	slices.Sort(out)
	return out
}

func TestConsumeAndCommit(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:2")
	b.fill(0, bodies("p", 40), "", 1)
	b.fill(1, bodies("q", 3), "", 1)
	m := startMember(t, ns, "G", nil)
	eventually(t, "all messages", func() bool { return len(m.bodies()) == 43 })
	eventually(t, "commits", func() bool { return b.committed(0) == 40 && b.committed(1) == 3 })
	b.fill(1, []string{"late"}, "", 1)
	eventually(t, "a late message", func() bool { return len(m.bodies()) == 44 })
	m.stop(t)
	if got := b.committed(1); got != 4 {
		t.Errorf("committed at the end: %d", got)
	}
	if left := b.requests(remoting.ReqUnregisterClient); len(left) != 1 || left[0].fields["consumerGroup"] != "G" {
		t.Errorf("unregistered: %+v", left)
	}
	again := startMember(t, ns, "G", nil)
	b.fill(0, []string{"more"}, "", 1)
	eventually(t, "only what is new", func() bool { return slices.Equal(again.bodies(), []string{"more"}) })
	if again.c.core.id == m.c.core.id {
		t.Error("two members with one client id (N045)")
	}
	if err := again.c.Run(t.Context(), nil); err == nil {
		t.Error("ran twice")
	}
}

func TestCommitOnlyAfterHandOff(t *testing.T) { // N048
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:1")
	b.fill(0, bodies("p", 10), "", 1)
	for _, c := range []struct {
		failAt int // index of the call that fails
		err    error
		want   int64
	}{{0, errors.New("pipe is gone"), 0}, {2, errors.New("pipe is gone"), 4}, {1, ErrStop, 8}} {
		cons, err := NewConsumer(ConsumerConfig{
			Config: Config{NameServers: []string{ns}}, Group: "G", Subscriptions: []Subscription{{Topic: "T"}}, From: FromFirst, Batch: 2,
		})
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		err = cons.Run(t.Context(), func(context.Context, []*Received) error {
			calls++
			if calls > c.failAt {
				return c.err
			}
			return nil
		})
		if errors.Is(c.err, ErrStop) != (err == nil) || err != nil && !errors.Is(err, c.err) {
			t.Errorf("fail at %d: Run returned %v", c.failAt, err)
		}
		if got := b.committed(0); got != c.want {
			t.Errorf("fail at %d: committed %d, want %d", c.failAt, got, c.want)
		}
	}
}

func TestRebalance(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:4")
	one := startMember(t, ns, "G", nil)
	eventually(t, "all queues at one member", func() bool { return len(one.queues()) == 4 })
	two := startMember(t, ns, "G", nil)
	eventually(t, "two queues each", func() bool { return len(one.queues()) == 2 && len(two.queues()) == 2 })
	for q := range int32(4) {
		b.fill(q, bodies(fmt.Sprintf("q%d-", q), 5), "", 1)
	}
	eventually(t, "all messages", func() bool { return len(one.bodies())+len(two.bodies()) == 20 })
	two.stop(t)
	eventually(t, "all queues at the one that stays", func() bool { return len(one.queues()) == 4 })
	b.create("T:6") // N050
	eventually(t, "new queues", func() bool {
		one.c.core.routes.doubt("T")
		one.c.rebalanceSoon()
		return len(one.queues()) == 6
	})
	all := append(one.bodies(), two.bodies()...)
	slices.Sort(all)
	if len(slices.Compact(all)) != 20 {
		t.Errorf("messages: %v", all)
	}
}

func TestConsumeFrom(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:1")
	now := time.Now().UnixMilli()
	b.fill(0, []string{"hour"}, "", now-3_600_000)
	b.fill(0, []string{"minute"}, "", now-60_000)
	for i, c := range []struct {
		from ConsumeFrom
		at   time.Time
		want []string
	}{
		{FromLast, time.Time{}, []string{"new"}},
		{FromFirst, time.Time{}, []string{"hour", "minute", "new"}},
		{FromTime, time.Time{}, []string{"minute", "new"}}, // 30 minutes ago
		{FromTime, time.UnixMilli(now - 7_200_000), []string{"hour", "minute", "new"}},
	} {
		group := fmt.Sprintf("G%d", i)
		m := startMember(t, ns, group, func(cfg *ConsumerConfig) { cfg.From, cfg.FromAt = c.from, c.at })
		eventually(t, "the queue", func() bool { return len(m.queues()) == 1 })
		if i == 0 {
			b.fill(0, []string{"new"}, "", now)
		}
		eventually(t, fmt.Sprintf("messages of %s", group), func() bool { return slices.Equal(m.bodies(), c.want) })
		m.stop(t)
	}
}

func TestOffsetFaultDoesNotStartAtZero(t *testing.T) { // N040 N047
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:1")
	b.fill(0, bodies("p", 10), "", 1)
	b.mu.Lock()
	b.offsets["G|T|0"] = 8
	b.mu.Unlock()
	b.intercept(remoting.ReqQueryConsumerOffset, func(r *server.Request) bool { r.Reply(remoting.RespSystemError, "not loaded yet"); return true })
	m := startMember(t, ns, "G", nil)
	eventually(t, "refused questions", func() bool { return len(b.requests(remoting.ReqQueryConsumerOffset)) > 3 })
	if got := m.bodies(); len(got) != 0 {
		t.Errorf("consumed without knowing the offset: %v", got)
	}
	b.intercept(remoting.ReqQueryConsumerOffset, nil)
	eventually(t, "the rest", func() bool { return slices.Equal(m.bodies(), []string{"p8", "p9"}) })
}

// Whatever fails once while a member begins is done again soon, not with the next heartbeat, rebalance or new offset: it consumes, and
// the broker has its offset.
func TestWhatFailsAtFirstIsDoneAgain(t *testing.T) {
	for _, code := range []int32{remoting.ReqHeartBeat, remoting.ReqGetConsumerListByGroup, remoting.ReqQueryConsumerOffset, remoting.ReqUpdateConsumerOffset} {
		t.Run(remoting.RequestName(code), func(t *testing.T) {
			ns := startNameServer(t)
			b := startBroker(t, ns, "a", "T:1")
			b.fill(0, bodies("p", 10), "", 1)
			var fails atomic.Int32
			fails.Store(2)
			b.intercept(code, func(r *server.Request) bool {
				if fails.Add(-1) < 0 {
					return false
				}
				r.Reply(remoting.RespSystemError, "not yet")
				return true
			})
			m := startMember(t, ns, "G", func(c *ConsumerConfig) {
				c.Heartbeat, c.Rebalance, c.Commit = time.Hour, time.Hour, 50*time.Millisecond
			})
			eventually(t, "the messages", func() bool { return len(m.bodies()) == 10 })
			eventually(t, "the commit", func() bool { return b.committed(0) == 10 })
		})
	}
}

func TestFilteredMessagesAreCommitted(t *testing.T) { // N042
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:1")
	b.fill(0, []string{"1"}, "Aa", 1)
	b.fill(0, bodies("x", 5), "BB", 1)
	m := startMember(t, ns, "G", func(c *ConsumerConfig) { c.Subscriptions[0].Tag = "Aa" })
	eventually(t, "an offset behind the filtered ones", func() bool { return b.committed(0) == 6 })
	if got := m.bodies(); !slices.Equal(got, []string{"1"}) {
		t.Errorf("consumed %v", got)
	}
	hb := string(b.requests(remoting.ReqHeartBeat)[0].body)
	for _, want := range []string{`"subString":"Aa"`, `"tagsSet":["Aa"]`, `"codeSet":[2112]`, `"consumeType":"CONSUME_PASSIVELY"`, `"messageModel":"CLUSTERING"`, `"topic":"%RETRY%G"`} {
		if !strings.Contains(hb, want) {
			t.Errorf("heartbeat lacks %s: %s", want, hb)
		}
	}
}

func TestResetByBroker(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:1")
	b.fill(0, bodies("p", 5), "", 1)
	m := startMember(t, ns, "G", nil)
	eventually(t, "all", func() bool { return len(m.bodies()) == 5 && b.committed(0) == 5 })

	b.mu.Lock()
	conn := b.members["G"][m.c.core.id]
	b.mu.Unlock()
	req := remoting.NewRequest(remoting.ReqResetConsumerClientOffset, &remoting.ResetOffsetHeader{Group: "G", Topic: "T", IsForce: true})
	var err error
	req.Body, err = fastjson.Marshal(remoting.ResetOffsetBody{OffsetTable: map[remoting.MessageQueue]int64{{Topic: "T", BrokerName: "a"}: 3}})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Send(req); err != nil {
		t.Fatal(err)
	}
	a := m.c.snapshot()[remoting.MessageQueue{Topic: "T", BrokerName: "a"}]
	eventually(t, "the reset", func() bool { offset, epoch := a.position(); return offset == 3 && epoch == 1 })
	// The held pull still waits at 5; what it brings belongs to the time before.
	b.fill(0, []string{"p5"}, "", 1)
	eventually(t, "the repeated ones", func() bool {
		return slices.Equal(m.bodies(), []string{"p0", "p1", "p2", "p3", "p3", "p4", "p4", "p5"})
	})
	eventually(t, "the commit", func() bool { return b.committed(0) == 6 })

	status, err := conn.Call(t.Context(), remoting.NewRequest(remoting.ReqGetConsumerStatusFromClient, &remoting.GetConsumerStatusHeader{Topic: "T", Group: "G"}))
	if err != nil || !strings.Contains(string(status.Body), `:6}`) {
		t.Errorf("status: %v %s", err, status.Body)
	}
	info, err := conn.Call(t.Context(), remoting.NewRequest(remoting.ReqGetConsumerRunningInfo, &remoting.GetConsumerRunningInfoHeader{ConsumerGroup: "G", ClientID: m.c.core.id}))
	if err != nil || !strings.Contains(string(info.Body), `"commitOffset":6`) {
		t.Errorf("running info: %v %s", err, info.Body)
	}
	other, err := conn.Call(t.Context(), remoting.NewRequest(remoting.ReqConsumeMessageDirectly, nil))
	if err != nil || other.Code != remoting.RespRequestCodeNotSupported {
		t.Errorf("a request nobody serves: %v %+v", err, other)
	}
}

func TestOffsetMoved(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:1")
	b.mu.Lock()
	b.queues[queueKey{"T", 0}].min = 100
	b.offsets["G|T|0"] = 3 // expired long ago
	b.mu.Unlock()
	b.fill(0, bodies("p", 2), "", 1)
	m := startMember(t, ns, "G", nil)
	eventually(t, "what is left", func() bool { return slices.Equal(m.bodies(), []string{"p0", "p1"}) })
	eventually(t, "the commit", func() bool { return b.committed(0) == 102 })
}

func TestBroadcast(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:2")
	set := func(c *ConsumerConfig) { c.Broadcast = true }
	one, two := startMember(t, ns, "G", set), startMember(t, ns, "G", set)
	eventually(t, "all queues at both", func() bool { return len(one.queues()) == 2 && len(two.queues()) == 2 })
	b.fill(1, bodies("p", 3), "", 1)
	eventually(t, "all messages at both", func() bool { return len(one.bodies()) == 3 && len(two.bodies()) == 3 })
	one.stop(t)
	if n := len(b.requests(remoting.ReqUpdateConsumerOffset)); n != 0 {
		t.Errorf("%d commits of a broadcast group", n)
	}
}

func TestFlowControl(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:1")
	b.fill(0, bodies("p", 100), "", 1)
	cons, err := NewConsumer(ConsumerConfig{
		Config: Config{NameServers: []string{ns}}, Group: "G", Subscriptions: []Subscription{{Topic: "T"}}, From: FromFirst, Batch: 5, MaxBuffered: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	n, most := 0, 0
	err = cons.Run(t.Context(), func(_ context.Context, ms []*Received) error {
		n += len(ms)
		for _, a := range cons.snapshot() {
			if a.queue.Topic == "T" {
				most = max(most, int(a.info().CachedMsgCount))
			}
		}
		if n == 100 {
			return ErrStop
		}
		return nil
	})
	if err != nil || n != 100 || most > 15 { // one batch may be on its way when the limit is met
		t.Errorf("%d messages, %d buffered at most, %v", n, most, err)
	}
}

func TestConsumerConfig(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a", "T:1")
	ok := ConsumerConfig{Config: Config{NameServers: []string{ns}}, Group: "G", Subscriptions: []Subscription{{Topic: "T"}}}
	for what, change := range map[string]func(*ConsumerConfig){
		"no group": func(c *ConsumerConfig) { c.Group = "" }, "no topic": func(c *ConsumerConfig) { c.Subscriptions = nil },
		"bad topic":      func(c *ConsumerConfig) { c.Subscriptions = []Subscription{{Topic: "a.b"}} }, // N106
		"two filters":    func(c *ConsumerConfig) { c.Subscriptions = []Subscription{{Topic: "T", Tag: "a", SQL: "b"}} },
		"batch":          func(c *ConsumerConfig) { c.Batch = -3 },
		"no name server": func(c *ConsumerConfig) { c.NameServers = nil },
	} {
		cfg := ok
		change(&cfg)
		if _, err := NewConsumer(cfg); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	cfg := ok
	cfg.Subscriptions = []Subscription{{Topic: "Unknown"}}
	c, err := NewConsumer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var none *NoRouteError
	if err := c.Run(t.Context(), nil); !errors.As(err, &none) || none.Topic != "Unknown" {
		t.Errorf("unknown topic: %v", err)
	}
}

func TestAssignAveragely(t *testing.T) {
	queues := func(n int) (out []remoting.MessageQueue) {
		for i := range n {
			out = append(out, remoting.MessageQueue{Topic: "T", BrokerName: "a", QueueID: int32(i)})
		}
		return out
	}
	for _, c := range []struct {
		queues  int
		members string
		want    [][]int32 // by member
	}{
		{4, "a", [][]int32{{0, 1, 2, 3}}},
		{4, "ab", [][]int32{{0, 1}, {2, 3}}},
		{5, "ab", [][]int32{{0, 1, 2}, {3, 4}}},
		{8, "abc", [][]int32{{0, 1, 2}, {3, 4, 5}, {6, 7}}},
		{3, "abc", [][]int32{{0}, {1}, {2}}},
		{2, "abc", [][]int32{{0}, {1}, nil}},
		{0, "ab", [][]int32{nil, nil}},
	} {
		members := strings.Split(c.members, "")
		for i, self := range members {
			var got []int32
			for _, q := range assignAveragely(queues(c.queues), members, self) {
				got = append(got, q.QueueID)
			}
			if !slices.Equal(got, c.want[i]) {
				t.Errorf("%d queues, member %s of %s: %v, want %v", c.queues, self, c.members, got, c.want[i])
			}
		}
	}
	if got := assignAveragely(queues(4), []string{"a", "b"}, "z"); got != nil {
		t.Errorf("a stranger gets %v", got)
	}
}

func TestReceivedIDs(t *testing.T) {
	q := remoting.MessageQueue{Topic: "T"}
	r := NewReceived(message.Received{}, q)
	if r.MessageID != r.OffsetID || r.OffsetID == "" {
		t.Errorf("without a unique id: %+v", r)
	}
}
