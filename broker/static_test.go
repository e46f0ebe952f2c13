package broker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mqx/internal/fastjson"
	"mqx/remoting"
)

func stretch(gen, queue int32, broker string, logic int64) remoting.LogicQueueMappingItem {
	return remoting.LogicQueueMappingItem{Gen: gen, QueueID: queue, BName: broker, LogicOffset: logic, EndOffset: -1, TimeOfStart: -1, TimeOfEnd: -1}
}

// mapStatic tells a broker its mapping of the static topic S.
func (r *running) mapStatic(epoch int64, queues int32, hosted map[int32][]remoting.LogicQueueMappingItem) *remoting.Command {
	r.t.Helper()
	body, err := fastjson.Marshal(&remoting.TopicQueueMappingDetail{
		TopicQueueMappingInfo: remoting.TopicQueueMappingInfo{BName: r.cfg().BrokerName, Epoch: epoch, Scope: "__global__", Topic: "S", TotalQueues: 1},
		HostedQueues:          hosted,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.call(remoting.ReqUpdateAndCreateStaticTopic, &remoting.CreateTopicHeader{
		Topic: "S", DefaultTopic: "TBW102", ReadQueueNums: queues, WriteQueueNums: queues, Perm: 6, TopicFilterType: "SINGLE_TAG",
	}, body)
}

// staticPair is two brokers that know of each other, b and c, with the static topic S: its one queue is led by b.
func staticPair(t *testing.T) (b, c *running) {
	t.Helper()
	b = start(t, testConfig(t.TempDir()))
	cfg := testConfig(t.TempDir())
	cfg.BrokerName = "c"
	c = start(t, cfg)
	addrs := map[string]string{"b": b.addr, "c": c.addr}
	for _, r := range []*running{b, c} {
		r.meet(addrs)
	}
	all := []remoting.LogicQueueMappingItem{stretch(0, 0, "b", 0)}
	taken(t, b.mapStatic(1, 1, map[int32][]remoting.LogicQueueMappingItem{0: all}))
	taken(t, c.mapStatic(1, 0, nil))
	return b, c
}

func (r *running) meet(addrs map[string]string) {
	r.elsewhere.mu.Lock()
	defer r.elsewhere.mu.Unlock()
	r.elsewhere.mu.addrs, r.elsewhere.mu.asked = addrs, r.now().Add(time.Hour)
}

func taken(t *testing.T, resp *remoting.Command) {
	t.Helper()
	if resp.Code != remoting.RespSuccess {
		t.Fatalf("%s: %s", remoting.ResponseName(resp.Code), resp.Remark)
	}
}

// moveStatic lets c lead the queue: b hears of it first, then c, whose queue begins at 10000.
func moveStatic(t *testing.T, b, c *running) {
	t.Helper()
	undecided := []remoting.LogicQueueMappingItem{stretch(0, 0, "b", 0), stretch(1, 0, "c", -1)}
	taken(t, b.mapStatic(2, 1, map[int32][]remoting.LogicQueueMappingItem{0: undecided}))
	taken(t, c.mapStatic(2, 1, map[int32][]remoting.LogicQueueMappingItem{0: undecided}))
	decided := []remoting.LogicQueueMappingItem{stretch(0, 0, "b", 0), stretch(1, 0, "c", 10000)}
	taken(t, c.mapStatic(2, 1, map[int32][]remoting.LogicQueueMappingItem{0: decided}))
	taken(t, b.mapStatic(2, 1, map[int32][]remoting.LogicQueueMappingItem{0: decided}))
}

func field(resp *remoting.Command, name string) int64 {
	n, ok, err := resp.Fields.Int64(name)
	if err != nil || !ok {
		return -99
	}
	return n
}

// A static topic is sent to and read at the broker that leads its queue; the others refuse. After a remap the new leader goes on
// behind the old one and reads that for its readers.
func TestStaticTopic(t *testing.T) {
	b, c := staticPair(t)
	for i := range int64(3) {
		resp := b.send("S", 0, "", "old")
		if field(resp, "queueOffset") != i || field(resp, "queueId") != 0 {
			t.Errorf("sent: %v", resp.Fields)
		}
	}
	refused := func(r *running) {
		t.Helper()
		for code, h := range map[int32]any{
			remoting.ReqSendMessageV2: sendHeaderOf("S", 0, ""), remoting.ReqPullMessage: pullHeaderOf("G", "S", 0, 0),
			remoting.ReqGetMaxOffset: &remoting.GetMaxOffsetHeader{Topic: "S"}, remoting.ReqGetMinOffset: &remoting.GetMinOffsetHeader{Topic: "S"},
			remoting.ReqSearchOffsetByTimestamp: &remoting.SearchOffsetHeader{Topic: "S"},
			remoting.ReqGetEarliestMsgStoreTime: &remoting.GetEarliestMsgStoreTimeHeader{Topic: "S"},
			remoting.ReqQueryConsumerOffset:     &remoting.QueryConsumerOffsetHeader{ConsumerGroup: "G", Topic: "S"},
			remoting.ReqUpdateConsumerOffset:    &remoting.UpdateConsumerOffsetHeader{ConsumerGroup: "G", Topic: "S"},
		} {
			if resp := r.call(code, h, []byte("x")); resp.Code != remoting.RespNotLeaderForQueue {
				t.Errorf("%s at %s: %s: %s", remoting.RequestName(code), r.cfg().BrokerName, remoting.ResponseName(resp.Code), resp.Remark)
			}
		}
	}
	refused(c)
	got := b.ok(remoting.ReqPullMessage, pullHeaderOf("G", "S", 0, 0), nil)
	if len(records(t, got.Body)) != 3 || field(got, "nextBeginOffset") != 3 || field(got, "offsetDelta") != 0 {
		t.Errorf("pulled: %v", got.Fields)
	}
	b.commit("G", "S", 0, 2)
	c.call(remoting.ReqPullMessage, pullHeaderOf("G", "TBW102", 0, 0), nil) // makes the group

	moveStatic(t, b, c)
	refused(b)
	if resp := c.send("S", 0, "", "new"); field(resp, "queueOffset") != 10000 {
		t.Errorf("sent to the new leader: %v", resp.Fields)
	}
	if resp := c.send("S", -1, "", "any"); field(resp, "queueOffset") != 10001 || field(resp, "queueId") != 0 {
		t.Errorf("sent to any queue of the new leader: %v", resp.Fields)
	}
	b.settle()
	var offsets []int64
	next := int64(0)
	for range 4 {
		got := c.call(remoting.ReqPullMessage, pullHeaderOf("G", "S", 0, next), nil)
		if got.Code == remoting.RespSuccess {
			for _, rec := range records(t, got.Body) {
				offsets = append(offsets, rec.QueueOffset+field(got, "offsetDelta"))
			}
		}
		next = field(got, "nextBeginOffset")
	}
	if want := []int64{0, 1, 2, 10000, 10001}; len(offsets) != 5 || offsets[2] != want[2] || offsets[3] != want[3] || offsets[4] != want[4] || next != 10002 {
		t.Errorf("read %v, then %d", offsets, next)
	}
}

// The offsets of a static topic whose stretches lie on two brokers, as the leader tells and takes them.
func TestStaticOffsets(t *testing.T) {
	b, c := staticPair(t)
	for range 3 {
		b.send("S", 0, "", "old")
	}
	b.ok(remoting.ReqPullMessage, pullHeaderOf("G", "S", 0, 0), nil)
	b.commit("G", "S", 0, 2)
	c.call(remoting.ReqPullMessage, pullHeaderOf("G", "TBW102", 0, 0), nil)
	moveStatic(t, b, c)
	between := time.Now().UnixMilli() + 1
	for time.Now().UnixMilli() <= between { // the clock of the store has milliseconds
		time.Sleep(time.Millisecond)
	}
	c.send("S", 0, "", "new")
	c.send("S", 0, "", "new")
	b.settle()
	number := func(key string, code int32, h any) int64 {
		t.Helper()
		return field(c.ok(code, h, nil), key)
	}
	now := time.Now().UnixMilli()
	for _, tt := range []struct {
		name string
		got  int64
		want int64
	}{
		{"max", number("offset", remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetHeader{Topic: "S"}), 10002},
		{"min", number("offset", remoting.ReqGetMinOffset, &remoting.GetMinOffsetHeader{Topic: "S"}), 0},
		{"a time before all", number("offset", remoting.ReqSearchOffsetByTimestamp, &remoting.SearchOffsetHeader{Topic: "S", Timestamp: 1}), 0},
		{"a time between the stretches", number("offset", remoting.ReqSearchOffsetByTimestamp, &remoting.SearchOffsetHeader{Topic: "S", Timestamp: between}), 10000},
		{"a time behind all", number("offset", remoting.ReqSearchOffsetByTimestamp, &remoting.SearchOffsetHeader{Topic: "S", Timestamp: now + 1e6}), 10002},
		{"the last before the second stretch", number("offset", remoting.ReqSearchOffsetByTimestamp, &remoting.SearchOffsetHeader{Topic: "S", Timestamp: between, BoundaryType: "UPPER"}), 2},
		{"the last of all", number("offset", remoting.ReqSearchOffsetByTimestamp, &remoting.SearchOffsetHeader{Topic: "S", Timestamp: now + 1e6, BoundaryType: "UPPER"}), 10001},
		{"the last before all", number("offset", remoting.ReqSearchOffsetByTimestamp, &remoting.SearchOffsetHeader{Topic: "S", Timestamp: 1, BoundaryType: "UPPER"}), 0},
		{"committed at the old leader", number("offset", remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetHeader{ConsumerGroup: "G", Topic: "S"}), 2},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, tt.got, tt.want)
		}
	}
	if at := number("timestamp", remoting.ReqGetEarliestMsgStoreTime, &remoting.GetEarliestMsgStoreTimeHeader{Topic: "S"}); at <= 0 || at >= between {
		t.Errorf("earliest: %d", at)
	}
	for _, tt := range []struct {
		commit int64
		atB    int64
		atC    int64
		inC    bool
	}{{3, 3, 0, false}, {10001, 3, 1, true}, {1, 1, 0, false}} { // back, and it goes back
		c.commit("G", "S", 0, tt.commit)
		atB, _ := b.offsets.Committed("S", "G", 0)
		atC, inC := c.offsets.Committed("S", "G", 0)
		if atB != tt.atB || atC != tt.atC || inC != tt.inC {
			t.Errorf("committed %d: %d at the old leader, %d (%v) at the new", tt.commit, atB, atC, inC)
		}
		if got := number("offset", remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetHeader{ConsumerGroup: "G", Topic: "S"}); got != tt.commit {
			t.Errorf("committed %d, read back %d", tt.commit, got)
		}
	}
	if resp := c.call(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetHeader{ConsumerGroup: "H", Topic: "S"}, nil); resp.Code != remoting.RespQueryNotFound {
		t.Errorf("a group without an offset: %s", remoting.ResponseName(resp.Code))
	}
	b.stop()
	c.elsewhere.forget("b")
	if resp := c.call(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetHeader{ConsumerGroup: "H", Topic: "S"}, nil); resp.Code != remoting.RespSystemError {
		t.Errorf("the broker of an old stretch is gone, and a group is said to have no offset: %s", remoting.ResponseName(resp.Code))
	}
}

// While the new leader's offset is not decided it takes messages, as Apache's, and readers wait at the end of the old stretch.
func TestStaticUndecided(t *testing.T) {
	b, c := staticPair(t)
	b.send("S", 0, "", "old")
	undecided := []remoting.LogicQueueMappingItem{stretch(0, 0, "b", 0), stretch(1, 0, "c", -1)}
	taken(t, b.mapStatic(2, 1, map[int32][]remoting.LogicQueueMappingItem{0: undecided}))
	taken(t, c.mapStatic(2, 1, map[int32][]remoting.LogicQueueMappingItem{0: undecided}))
	if resp := c.send("S", 0, "", "new"); field(resp, "queueOffset") != -1 {
		t.Errorf("%v", resp.Fields)
	}
	b.settle()
	h := pullHeaderOf("G", "S", 0, 1)
	h.SysFlag, h.SuspendTimeoutMillis = h.SysFlag|pullSuspend, 60_000
	done := make(chan *remoting.Command, 1)
	go func() {
		resp, err := c.c.Call(t.Context(), c.addr, remoting.NewRequest(remoting.ReqPullMessage, h))
		if err != nil {
			t.Error(err)
		}
		done <- resp
	}()
	waitFor(t, "the pull to wait", func() bool { return c.hold.count.Load() > 0 })
	decided := []remoting.LogicQueueMappingItem{stretch(0, 0, "b", 0), stretch(1, 0, "c", 10000)}
	taken(t, c.mapStatic(2, 1, map[int32][]remoting.LogicQueueMappingItem{0: decided}))
	got := <-done
	if got == nil || got.Code == remoting.RespSuccess || got.Code == remoting.RespPullRetryImmediately && field(got, "nextBeginOffset") != 10000 {
		t.Errorf("%+v", got)
	}
	if again := c.ok(remoting.ReqPullMessage, pullHeaderOf("G", "S", 0, 10000), nil); len(records(t, again.Body)) != 1 {
		t.Error("what came before the offset was decided is lost")
	}
}

// topicQueueMapping.json is read again and holds what Apache's has; a mapping goes with its topic, and one without a topic counts
// for nothing.
func TestStaticTopicsAreKept(t *testing.T) {
	dir := t.TempDir()
	r := start(t, testConfig(dir))
	all := map[int32][]remoting.LogicQueueMappingItem{0: {stretch(0, 0, "b", 0)}}
	taken(t, r.mapStatic(7, 1, all))
	for what, resp := range map[string]*remoting.Command{
		"an earlier epoch": r.mapStatic(6, 1, all), "another leader": r.mapStatic(7, 1, map[int32][]remoting.LogicQueueMappingItem{0: {stretch(0, 0, "x", 0)}}),
		"no mapping": r.call(remoting.ReqUpdateAndCreateStaticTopic, &remoting.CreateTopicHeader{Topic: "S", DefaultTopic: "TBW102", Perm: 6}, nil),
	} {
		if resp.Code == remoting.RespSuccess {
			t.Errorf("%s is taken", what)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "config", "topicQueueMapping.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"dataVersion"`, `"topicQueueMappingInfoMap"`, `"hostedQueues"`, `"epoch":7`, `"scope":"__global__"`, `"currIdMap"`, `"logicOffset":0`, `"endOffset":-1`, `"totalQueues":1`} {
		if !strings.Contains(strings.ReplaceAll(string(text), " ", ""), want) {
			t.Errorf("%s is not in the file:\n%s", want, text)
		}
	}
	r.stop()
	r = start(t, testConfig(dir))
	mapping := func(lo bool) *remoting.TopicQueueMappingDetail {
		t.Helper()
		h := &remoting.GetTopicConfigHeader{Topic: "S"}
		h.Lo = remoting.Some(lo)
		var got remoting.TopicConfigAndMapping
		decode(t, r.ok(remoting.ReqGetTopicConfig, h, nil), &got)
		return got.MappingDetail
	}
	if d := mapping(true); d == nil || d.Epoch != 7 || len(d.HostedQueues[0]) != 1 || d.HostedQueues[0][0].BName != "b" {
		t.Errorf("after a restart: %+v", d)
	}
	if mapping(false) != nil {
		t.Error("who does not ask for the mapping gets it")
	}
	var table remoting.TopicConfigAndMappingTable
	decode(t, r.ok(remoting.ReqGetAllTopicConfig, nil, nil), &table)
	if d, ok := table.MappingDetailMap["S"]; !ok || d.Epoch != 7 || len(table.MappingDetailMap) != 1 {
		t.Errorf("slaves are told %+v", table.MappingDetailMap)
	}
	r.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: "S"}, nil)
	if r.statics.Get("S") != nil {
		t.Error("the mapping of a deleted topic is there")
	}
	r.stop()
	if err := os.WriteFile(filepath.Join(dir, "config", "topicQueueMapping.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	r = start(t, testConfig(dir))
	if r.statics.Get("S") != nil {
		t.Error("a mapping without a topic is in force")
	}
}

// N088: a slave has the mappings of its master.
func TestStaticTopicsOnASlave(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	taken(t, m.mapStatic(7, 1, map[int32][]remoting.LogicQueueMappingItem{0: {stretch(0, 0, "b", 5000)}}))
	m.send("S", 0, "", "one")
	cfg := testConfig(t.TempDir())
	cfg.BrokerRole, cfg.BrokerID = "SLAVE", 1
	s := start(t, cfg)
	s.slave.learn(m.at().haAddr, m.addr)
	waitFor(t, "the mapping", func() bool { return s.statics.Get("S") != nil && s.topics.Get("S") != nil })
	waitFor(t, "the log", func() bool { return s.store.LogEnd() == m.store.LogEnd() })
	got := s.ok(remoting.ReqPullMessage, pullHeaderOf("G", "S", 0, 5000), nil)
	if len(records(t, got.Body)) != 1 || field(got, "nextBeginOffset") != 5001 || field(got, "offsetDelta") != 5000 {
		t.Errorf("read from a slave: %v", got.Fields)
	}
	if resp := s.mapStatic(8, 1, nil); resp.Code == remoting.RespSuccess {
		t.Error("a slave makes a static topic")
	}
	m.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: "S"}, nil)
	waitFor(t, "the mapping to go", func() bool { return s.statics.Get("S") == nil })
}

// A stretch whose messages are all gone is left out, an only one and one that may have messages stay.
func TestEmptyStretchesGo(t *testing.T) {
	b, c := staticPair(t)
	undecided := []remoting.LogicQueueMappingItem{stretch(0, 0, "b", 0), stretch(1, 0, "c", -1)}
	taken(t, b.mapStatic(2, 1, map[int32][]remoting.LogicQueueMappingItem{0: undecided}))
	taken(t, c.mapStatic(2, 1, map[int32][]remoting.LogicQueueMappingItem{0: undecided}))
	stretches := func() int { return len(c.statics.Get("S").Detail().HostedQueues[0]) }
	if c.cleanStatics(t.Context()); stretches() != 2 {
		t.Error("the only stretch with an offset is gone")
	}
	decided := []remoting.LogicQueueMappingItem{stretch(0, 0, "b", 0), stretch(1, 0, "c", 10000)}
	taken(t, c.mapStatic(2, 1, map[int32][]remoting.LogicQueueMappingItem{0: decided}))
	c.meet(map[string]string{})
	if c.cleanStatics(t.Context()); stretches() != 2 {
		t.Error("a stretch that nobody could be asked about is gone")
	}
	c.meet(map[string]string{"b": b.addr})
	if c.cleanStatics(t.Context()); stretches() != 1 {
		t.Error("an empty stretch is there still")
	}
	if resp := c.ok(remoting.ReqGetMinOffset, &remoting.GetMinOffsetHeader{Topic: "S"}, nil); field(resp, "offset") != 10000 {
		t.Errorf("the queue begins at %v", resp.Fields)
	}
	taken(t, c.mapStatic(2, 1, map[int32][]remoting.LogicQueueMappingItem{0: decided})) // who has not heard of it may say it again
}

// A delayed message whose queue has lost its leader meanwhile goes to a queue that leads.
func TestStaticLanding(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	taken(t, r.mapStatic(1, 1, map[int32][]remoting.LogicQueueMappingItem{0: {stretch(0, 0, "b", 0)}}))
	r.send("S", 0, prop("DELAY", "1"), "late")
	taken(t, r.mapStatic(2, 2, map[int32][]remoting.LogicQueueMappingItem{0: {stretch(0, 0, "b", 0), stretch(1, 1, "b", 10000)}}))
	waitFor(t, "the message", func() bool { return r.store.MaxOffset("S", 1) == 1 })
	if got := r.store.MaxOffset("S", 0); got != 0 {
		t.Errorf("%d messages in the queue that lost its lead", got)
	}
}
