package broker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/fastjson"
	"mqx/remoting"
	"mqx/remoting/client"
)

func marshal(v any) ([]byte, error) { return fastjson.Marshal(v) }

// member is a client with a connection of its own that notes what the broker
// asks it.
type testMember struct {
	*client.Client
	mu    sync.Mutex
	asked []int32
}

func (r *running) member() *testMember {
	r.t.Helper()
	m := &testMember{}
	m.Client = client.New(client.Config{Logger: quiet, OnRequest: func(_ string, req *remoting.Command) *remoting.Command {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.asked = append(m.asked, req.Code)
		if req.IsOneway() {
			return nil
		}
		resp := remoting.NewResponse(req, remoting.RespSuccess, "")
		resp.Body = []byte(fmt.Sprintf("%s of %s, body of %d bytes", remoting.RequestName(req.Code), req.Fields.String("clientId"), len(req.Body)))
		return resp
	}})
	r.t.Cleanup(func() { _ = m.Close() })
	return m
}

// notices is how often the member was told that its group has changed.
func (m *testMember) notices() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, c := range m.asked {
		if c == remoting.ReqNotifyConsumerIDsChanged {
			n++
		}
	}
	return n
}

func consumerBeat(id, group, model string, topics ...string) remoting.HeartbeatData {
	return remoting.HeartbeatData{ClientID: id, ConsumerDataSet: []remoting.ConsumerData{{
		GroupName: group, ConsumeType: remoting.ConsumePassively, MessageModel: model, ConsumeFromWhere: remoting.ConsumeFromFirstOffset,
		SubscriptionDataSet: subs(1, topics...),
	}}}
}

// idList is the members of group G.
func (r *running) idList() []string {
	r.t.Helper()
	resp := r.call(remoting.ReqGetConsumerListByGroup, &remoting.GetConsumerListByGroupHeader{ConsumerGroup: "G"}, nil)
	if resp.Code != remoting.RespSuccess {
		return nil
	}
	var l remoting.ConsumerIDList
	if err := fastjson.Unmarshal(resp.Body, &l); err != nil {
		r.t.Fatal(err)
	}
	return l.ConsumerIDList
}

func TestGroupMembership(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	a, b := r.member(), r.member()
	hb := consumerBeat("a", "G", remoting.Clustering, "T", "%RETRY%G")
	resp := r.beat(a.Client, hb)
	if resp.Fields.String("IS_SUB_CHANGE") != "true" || resp.Fields.String("IS_SUPPORT_HEART_BEAT_V2") != "true" {
		t.Errorf("%v", resp.Fields)
	}
	if r.topics.Get("%RETRY%G") == nil || r.groups.Get("G") == nil {
		t.Error("group or retry topic were not created")
	}
	waitFor(t, "a to be told of itself", func() bool { return a.notices() == 1 })
	r.beat(a.Client, hb) // nothing new
	r.beat(b.Client, consumerBeat("b", "G", remoting.Clustering, "T", "%RETRY%G"))
	waitFor(t, "both to be told", func() bool {
		return a.notices() == 2 && b.notices() == 1
	})
	if d := cmp.Diff([]string{"a", "b"}, r.idList()); d != "" {
		t.Error(d)
	}
	// a leaves by closing its connection
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "b to be told", func() bool { return b.notices() == 2 })
	if d := cmp.Diff([]string{"b"}, r.idList()); d != "" {
		t.Error(d)
	}
	// b says goodbye
	req := remoting.NewRequest(remoting.ReqUnregisterClient, &remoting.UnregisterClientHeader{ClientID: "b", ConsumerGroup: "G"})
	if resp, err := b.Call(context.Background(), r.addr, req); err != nil || resp.Code != 0 {
		t.Fatalf("%v %v", resp, err)
	}
	if l := r.idList(); l != nil {
		t.Errorf("%v", l)
	}
	resp = r.call(remoting.ReqGetConsumerListByGroup, &remoting.GetConsumerListByGroupHeader{ConsumerGroup: "G"}, nil)
	if resp.Code != remoting.RespSystemError || resp.Remark != "no consumer for this group, G" {
		t.Errorf("%d %s", resp.Code, resp.Remark)
	}
}

func TestBroadcastGroupsAreNotNotified(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	a, b := r.member(), r.member()
	r.beat(a.Client, consumerBeat("a", "G", remoting.Broadcasting, "T"))
	r.beat(b.Client, consumerBeat("b", "G", remoting.Broadcasting, "T"))
	r.beat(b.Client, consumerBeat("b", "H", remoting.Clustering, "T"))
	waitFor(t, "the other group", func() bool { return b.notices() == 1 })
	if a.notices() != 0 {
		t.Error("a broadcast group was notified")
	}
}

// An equal heartbeat is answered on the event loop as long as nothing about its
// groups has changed.
func TestHeartbeatFastPath(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	a, b := r.member(), r.member()
	hb := consumerBeat("a", "G", remoting.Clustering, "T")
	hb.ProducerDataSet = []remoting.ProducerData{{GroupName: "PG"}}
	slow := func() uint64 { return r.classes.heartbeat.Stats().Requests }
	r.beat(a.Client, hb)
	n := slow()
	for range 3 {
		r.beat(a.Client, hb)
	}
	if slow() != n {
		t.Errorf("%d equal heartbeats went to the class", slow()-n)
	}
	r.beat(b.Client, consumerBeat("b", "G", remoting.Clustering, "T"))
	n = slow()
	r.beat(a.Client, hb)
	if slow() != n+1 {
		t.Error("a heartbeat after a change of its group was answered on the loop")
	}
	n = slow()
	r.beat(a.Client, hb)
	if slow() != n {
		t.Error("the next one was not")
	}
}

func TestHeartbeatV2(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	a := r.member()
	full := consumerBeat("a", "G", remoting.Clustering, "T")
	full.Fingerprint = 77
	short := consumerBeat("a", "G", remoting.Clustering)
	short.ConsumerDataSet[0].SubscriptionDataSet = nil
	short.Fingerprint, short.WithoutSub = 77, true
	for i, step := range []struct {
		hb     remoting.HeartbeatData
		change string
	}{{full, "true"}, {short, "false"}, {short, "false"}, {full, "false"}} {
		resp := r.beat(a.Client, step.hb)
		if got := resp.Fields.String("IS_SUB_CHANGE"); got != step.change {
			t.Errorf("step %d: IS_SUB_CHANGE %s", i, got)
		}
		if _, ok := r.consumers.Subscriptions("G")["T"]; !ok {
			t.Errorf("step %d: the subscription is gone", i)
		}
	}
	short.Fingerprint = 78 // of a broker that does not know it
	if resp := r.beat(a.Client, short); resp.Fields.String("IS_SUB_CHANGE") != "true" {
		t.Error("an unknown fingerprint")
	}
}

func TestRejectPullConsumer(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.RejectPullConsumer = true
	r := start(t, cfg)
	hb := consumerBeat("a", "G", remoting.Clustering, "T")
	hb.ConsumerDataSet[0].ConsumeType = remoting.ConsumeActively
	r.beat(r.c, hb)
	if r.consumers.Len() != 0 {
		t.Error("a pull consumer was taken")
	}
}

func TestExpiredClientsAreClosed(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	a := r.member()
	closed := make(chan struct{}, 1)
	c := client.New(client.Config{Logger: quiet, OnClose: func(string, error) { closed <- struct{}{} }})
	defer c.Close()
	r.beat(a.Client, consumerBeat("a", "G", remoting.Clustering, "T"))
	hb := consumerBeat("b", "G", remoting.Clustering, "T")
	r.beat(c, hb)
	r.beat(a.Client, consumerBeat("a", "G", remoting.Clustering, "T"))
	before := a.notices()
	// b was silent for longer than channelExpiredTimeout, a was not
	r.consumers.Client("G", "b").seen.Store(r.now().Add(-121 * time.Second).UnixMilli())
	r.expireClients(r.now())
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("the connection of b is still open")
	}
	if d := cmp.Diff([]string{"a"}, r.idList()); d != "" {
		t.Error(d)
	}
	waitFor(t, "a to be told", func() bool { return a.notices() > before })
}

func TestConnectionLists(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	hb := consumerBeat("a", "G", remoting.Clustering, "T")
	hb.ProducerDataSet = []remoting.ProducerData{{GroupName: "PG"}}
	r.beat(r.c, hb)
	var cc remoting.ConsumerConnection
	decode(t, r.ok(remoting.ReqGetConsumerConnectionList, &remoting.GetConsumerConnectionListHeader{ConsumerGroup: "G"}, nil), &cc)
	if len(cc.ConnectionSet) != 1 || cc.ConnectionSet[0].ClientID != "a" || cc.ConnectionSet[0].Language != "GO" || cc.ConnectionSet[0].Version != 513 ||
		cc.SubscriptionTable["T"].SubString != "*" || cc.ConsumeFromWhere != remoting.ConsumeFromFirstOffset {
		t.Errorf("%+v", cc)
	}
	resp := r.call(remoting.ReqGetConsumerConnectionList, &remoting.GetConsumerConnectionListHeader{ConsumerGroup: "X"}, nil)
	if resp.Code != remoting.RespConsumerNotOnline || resp.Remark != "the consumer group[X] not online" {
		t.Errorf("%d %s", resp.Code, resp.Remark)
	}
	var pc remoting.ProducerConnection
	decode(t, r.ok(remoting.ReqGetProducerConnectionList, &remoting.GetProducerConnectionListHeader{ProducerGroup: "PG"}, nil), &pc)
	if len(pc.ConnectionSet) != 1 {
		t.Errorf("%+v", pc)
	}
	if resp := r.call(remoting.ReqGetProducerConnectionList, &remoting.GetProducerConnectionListHeader{ProducerGroup: "X"}, nil); resp.Code != remoting.RespSystemError {
		t.Errorf("%d", resp.Code)
	}
	var all remoting.ProducerTableInfo
	decode(t, r.ok(remoting.ReqGetAllProducerInfo, nil, nil), &all)
	if len(all.Data["PG"]) != 1 {
		t.Errorf("%+v", all)
	}
	var qs remoting.QuerySubscriptionBody
	decode(t, r.ok(remoting.ReqQuerySubscriptionByConsumer, &remoting.QuerySubscriptionByConsumerHeader{Group: "G", Topic: "T"}, nil), &qs)
	if qs.SubscriptionData == nil || qs.SubscriptionData.SubString != "*" {
		t.Errorf("%+v", qs)
	}
}

func decode(t *testing.T, resp *remoting.Command, v any) {
	t.Helper()
	if err := fastjson.Unmarshal(resp.Body, v); err != nil {
		t.Fatalf("%v in %s", err, resp.Body)
	}
}

func TestConsumerOffsetRules(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 2)
	r.send("T", 0, "", "x")
	waitFor(t, "dispatch", func() bool { return r.store.MaxOffset("T", 0) == 1 })
	query := func(q int32, setZero *bool) *remoting.Command {
		h := &remoting.QueryConsumerOffsetHeader{ConsumerGroup: "G", Topic: "T", QueueID: q}
		if setZero != nil {
			h.SetZeroIfNotFound = remoting.Some(*setZero)
		}
		return r.call(remoting.ReqQueryConsumerOffset, h, nil)
	}
	no := false
	if resp := query(0, nil); resp.Code != 0 || resp.Fields.String("offset") != "0" {
		t.Errorf("a queue that begins at 0, in memory: %d %v", resp.Code, resp.Fields)
	}
	if resp := query(0, &no); resp.Code != remoting.RespQueryNotFound {
		t.Errorf("setZeroIfNotFound=false: %d", resp.Code)
	}
	if resp := query(1, nil); resp.Code != remoting.RespQueryNotFound || resp.Remark != "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first" {
		t.Errorf("an empty queue (N040): %d %s", resp.Code, resp.Remark)
	}
	update := func(g, topic string, q int32, off int64) *remoting.Command {
		return r.call(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{ConsumerGroup: g, Topic: topic, QueueID: q, CommitOffset: off}, nil)
	}
	if resp := update("G", "T", 0, 1); resp.Code != remoting.RespSubscriptionGroupNotExist || resp.Remark != "Group G not exist!" {
		t.Errorf("%d %s", resp.Code, resp.Remark)
	}
	r.groups.FindOrCreate("G")
	if resp := update("G", "nope", 0, 1); resp.Code != remoting.RespTopicNotExist {
		t.Errorf("%d", resp.Code)
	}
	if resp := update("G", "T", -1, 1); resp.Code != remoting.RespInvalidParameter {
		t.Errorf("%d", resp.Code)
	}
	if resp := update("G", "T", 0, -5); resp.Code != remoting.RespInvalidParameter {
		t.Errorf("%d", resp.Code)
	}
	if resp := update("G", "T", 0, 1); resp.Code != 0 {
		t.Errorf("%d %s", resp.Code, resp.Remark)
	}
	if resp := query(0, &no); resp.Fields.String("offset") != "1" {
		t.Errorf("%v", resp.Fields)
	}
	// saved by the clock, not only at the stop
	waitFor(t, "the offsets on disk", func() bool { return !r.offsets.dirty.Load() })
}

func TestMinMaxSearch(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	first := time.Now().UnixMilli()
	r.send("T", 0, "", "x")
	waitFor(t, "dispatch", func() bool { return r.store.MaxOffset("T", 0) == 1 })
	for _, tt := range []struct {
		code   int32
		header any
		field  string
		want   string
	}{
		{remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetHeader{Topic: "T"}, "offset", "1"},
		{remoting.ReqGetMinOffset, &remoting.GetMinOffsetHeader{Topic: "T"}, "offset", "0"},
		{remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetHeader{Topic: "unknown", QueueID: 3}, "offset", "0"},
		{remoting.ReqSearchOffsetByTimestamp, &remoting.SearchOffsetHeader{Topic: "T", Timestamp: first}, "offset", "0"},
		{remoting.ReqSearchOffsetByTimestamp, &remoting.SearchOffsetHeader{Topic: "T", Timestamp: first + 1e9}, "offset", "1"},
	} {
		if resp := r.ok(tt.code, tt.header, nil); resp.Fields.String(tt.field) != tt.want {
			t.Errorf("%s %+v: %v", remoting.RequestName(tt.code), tt.header, resp.Fields)
		}
	}
	resp := r.ok(remoting.ReqGetEarliestMsgStoreTime, &remoting.GetEarliestMsgStoreTimeHeader{Topic: "T"}, nil)
	if at, _, _ := resp.Fields.Int64("timestamp"); at < first-1000 || at > first+60_000 {
		t.Errorf("earliest %d", at)
	}
	for q := range r.store.Queues() {
		if q.Topic == "unknown" {
			t.Error("asking for a queue made it (N020)")
		}
	}
}

func TestLockRequests(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 3)
	lock := func(id string, qs ...int32) []remoting.MessageQueue {
		l := remoting.LockBatchBody{ClientID: id, ConsumerGroup: "G"}
		for _, q := range qs {
			l.MQSet = append(l.MQSet, mq(q))
		}
		body, err := marshal(&l)
		if err != nil {
			t.Fatal(err)
		}
		var out remoting.LockBatchResponseBody
		decode(t, r.ok(remoting.ReqLockBatchMQ, nil, body), &out)
		return out.LockOKMQSet
	}
	if got := lock("a", 0, 1); len(got) != 2 {
		t.Errorf("%v", got)
	}
	if got := lock("b", 0, 1, 2); len(got) != 1 || got[0] != mq(2) {
		t.Errorf("%v", got)
	}
	body, err := marshal(&remoting.LockBatchBody{ClientID: "a", ConsumerGroup: "G", MQSet: []remoting.MessageQueue{mq(0)}})
	if err != nil {
		t.Fatal(err)
	}
	r.ok(remoting.ReqUnlockBatchMQ, nil, body)
	if got := lock("b", 0, 1); len(got) != 1 || got[0] != mq(0) {
		t.Errorf("%v", got)
	}
	// queues that do not exist fill no table
	if got := lock("b", 3, -1, 2147483647); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if resp := r.call(remoting.ReqLockBatchMQ, nil, []byte(`{"clientId":"c","consumerGroup":"a b","mqSet":[]}`)); resp.Code != remoting.RespSubscriptionGroupNotExist {
		t.Errorf("a group that cannot be: %d %s", resp.Code, resp.Remark)
	}
}

func TestCallbacks(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	id := r.send("T", 0, "", "hello").Fields.String("msgId")
	a := r.member()
	r.beat(a.Client, consumerBeat("a", "G", remoting.Clustering, "T"))
	resp := r.ok(remoting.ReqGetConsumerRunningInfo, &remoting.GetConsumerRunningInfoHeader{ConsumerGroup: "G", ClientID: "a"}, nil)
	if got := string(resp.Body); got != "GET_CONSUMER_RUNNING_INFO of a, body of 0 bytes" {
		t.Errorf("%s", got)
	}
	resp = r.ok(remoting.ReqConsumeMessageDirectly, &remoting.ConsumeMessageDirectlyHeader{ConsumerGroup: "G", ClientID: "a", MsgID: id}, nil)
	if got := string(resp.Body); !strings.HasPrefix(got, "CONSUME_MESSAGE_DIRECTLY of a, body of ") || strings.HasSuffix(got, " 0 bytes") {
		t.Errorf("%s", got)
	}
	resp = r.call(remoting.ReqGetConsumerRunningInfo, &remoting.GetConsumerRunningInfoHeader{ConsumerGroup: "G", ClientID: "z"}, nil)
	if resp.Code != remoting.RespSystemError || resp.Remark != "The Consumer <G> <z> not online" {
		t.Errorf("%d %s", resp.Code, resp.Remark)
	}
}

func TestCheckClientConfig(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	check := func(typ string) *remoting.Command {
		body, err := marshal(&remoting.CheckClientBody{ClientID: "a", Group: "G", SubscriptionData: &remoting.SubscriptionData{Topic: "T", SubString: "a", ExpressionType: typ}})
		if err != nil {
			t.Fatal(err)
		}
		return r.call(remoting.ReqCheckClientConfig, nil, body)
	}
	if resp := check("TAG"); resp.Code != 0 {
		t.Errorf("%d", resp.Code)
	}
	if resp := check("SQL92"); resp.Code != remoting.RespSystemError || resp.Remark != "The broker does not support consumer to filter message by SQL92" {
		t.Errorf("%d %s", resp.Code, resp.Remark)
	}
}
