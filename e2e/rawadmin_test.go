package e2e

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
)

// body reads the body of an answer.
func (p *rawPeer) body(resp *remoting.Command, v any) {
	p.t.Helper()
	if err := fastjson.Unmarshal(resp.Body, v); err != nil {
		p.t.Fatalf("%v in %s", err, resp.Body)
	}
}

func (p *rawPeer) commit(group, topic string, queue int32, offset int64) {
	p.t.Helper()
	p.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{ConsumerGroup: group, Topic: topic, QueueID: queue, CommitOffset: offset}, nil)
}

func (p *rawPeer) beat(hb remoting.HeartbeatData) {
	p.t.Helper()
	body, err := fastjson.Marshal(&hb)
	if err != nil {
		p.t.Fatal(err)
	}
	p.ok(remoting.ReqHeartBeat, nil, body)
}

// member registers a consumer of a group.
func (p *rawPeer) member(group, topic string) {
	p.t.Helper()
	p.beat(remoting.HeartbeatData{ClientID: group + "@raw", ProducerDataSet: []remoting.ProducerData{}, ConsumerDataSet: []remoting.ConsumerData{{
		GroupName: group, ConsumeType: remoting.ConsumePassively, MessageModel: remoting.Clustering, ConsumeFromWhere: remoting.ConsumeFromLastOffset,
		SubscriptionDataSet: []remoting.SubscriptionData{{Topic: topic, SubString: "*", SubVersion: 1, ExpressionType: "TAG"}},
	}}})
}

func pullOf(group, topic string, queue int32, offset int64) *remoting.PullMessageHeader {
	return &remoting.PullMessageHeader{
		ConsumerGroup: group, Topic: topic, QueueID: queue, QueueOffset: offset, MaxMsgNums: 32, SysFlag: 4, Subscription: "*", ExpressionType: "TAG",
	}
}

// rawResetTopic has two queues of 4 messages from before the returned time and 2 from after it, and a group that has committed 5 of each.
func rawResetTopic(t *testing.T, p *rawPeer, group, topic string) (at int64) {
	t.Helper()
	p.createTopic(topic, 2)
	p.createGroup(group)
	for q := range int32(2) {
		p.send(topic, q, "b0", "b1", "b2", "b3")
	}
	time.Sleep(20 * time.Millisecond) // store times are of milliseconds
	at = time.Now().UnixMilli()
	time.Sleep(20 * time.Millisecond)
	for q := range int32(2) {
		p.send(topic, q, "a0", "a1")
		p.commit(group, topic, q, 5)
	}
	return at
}

func resetTable(topic string, offsets map[int32]int64) map[remoting.MessageQueue]int64 {
	out := map[remoting.MessageQueue]int64{}
	for q, off := range offsets {
		out[remoting.MessageQueue{Topic: topic, BrokerName: brokerName, QueueID: q}] = off
	}
	return out
}

// INVOKE_BROKER_TO_RESET_OFFSET with a queue and a time: that queue goes to the time, its next pull is told once, and the other
// queues stay where they are.
func TestResetOfOneQueueToATime(t *testing.T) {
	t.Parallel()
	p := newRawPeer(t, sharedCluster(t).broker)
	topic, group := rawNames("reset")
	at := rawResetTopic(t, p, group, topic)
	reset := &remoting.ResetOffsetHeader{Topic: topic, Group: group, QueueID: 1, Timestamp: at, IsForce: true}
	var body remoting.ResetOffsetBody
	p.body(p.ok(remoting.ReqInvokeBrokerToResetOffset, reset, nil), &body)
	if want := resetTable(topic, map[int32]int64{1: 4}); !maps.Equal(body.OffsetTable, want) {
		t.Errorf("reset %v, want %v", body.OffsetTable, want)
	}
	if got := [2]int64{p.committed(group, topic, 0), p.committed(group, topic, 1)}; got != [2]int64{5, 4} {
		t.Errorf("committed %v", got)
	}
	resp := p.ok(remoting.ReqPullMessage, pullOf(group, topic, 0, 5), nil)
	if recs := p.records(resp); len(recs) != 1 || recs[0].QueueOffset != 5 {
		t.Errorf("the queue that was not named: %d messages", len(recs))
	}
	resp = p.call(remoting.ReqPullMessage, pullOf(group, topic, 1, 5), nil)
	if resp.Code != remoting.RespPullOffsetMoved || p.int(resp, "nextBeginOffset") != 4 {
		t.Errorf("the first pull after the reset: %s %v", remoting.ResponseName(resp.Code), resp.Fields)
	}
	resp = p.ok(remoting.ReqPullMessage, pullOf(group, topic, 1, 4), nil)
	if recs := p.records(resp); len(recs) != 2 || string(recs[0].Body) != "a0" {
		t.Errorf("from the time on: %d messages", len(recs))
	}
	reset.QueueID = 2
	if resp := p.call(remoting.ReqInvokeBrokerToResetOffset, reset, nil); resp.Code == remoting.RespSuccess && !reference() {
		t.Error("a queue that the topic does not have was reset")
	}
}

// With useServerSideResetOffset=false the members of a group are told their offsets, of all queues, and commit them themselves; a
// group without members cannot be reset, and without force offsets only go back.
func TestResetThroughMembers(t *testing.T) {
	t.Parallel()
	p := newRawPeer(t, startCluster(t, "useServerSideResetOffset=false").broker)
	topic, group := rawNames("members")
	at := rawResetTopic(t, p, group, topic)
	reset := &remoting.ResetOffsetHeader{Topic: topic, Group: group, QueueID: -1, Timestamp: at, IsForce: true}
	if resp := p.call(remoting.ReqInvokeBrokerToResetOffset, reset, nil); resp.Code != remoting.RespConsumerNotOnline {
		t.Errorf("without a member: %s: %s", remoting.ResponseName(resp.Code), resp.Remark)
	}
	p.member(group, topic)
	for i, tt := range []struct {
		at, want int64
		force    bool
	}{{at, 4, true}, {-1, 5, false}, {-1, 6, true}} {
		reset.Timestamp, reset.IsForce = tt.at, tt.force
		want := resetTable(topic, map[int32]int64{0: tt.want, 1: tt.want})
		var body, told remoting.ResetOffsetBody
		p.body(p.ok(remoting.ReqInvokeBrokerToResetOffset, reset, nil), &body)
		if !maps.Equal(body.OffsetTable, want) {
			t.Errorf("to %d: answered %v, want %v", tt.at, body.OffsetTable, want)
		}
		waitFor(t, arrival, "the member to be told", func() (bool, string) {
			n := len(p.requests(remoting.ReqResetConsumerClientOffset))
			return n == i+1, fmt.Sprint(n)
		})
		req := p.requests(remoting.ReqResetConsumerClientOffset)[i]
		p.body(req, &told)
		if !maps.Equal(told.OffsetTable, want) || req.Fields.String("group") != group || req.Fields.String("topic") != topic {
			t.Errorf("to %d: told %v, want %v", tt.at, told.OffsetTable, want)
		}
	}
	if got := [2]int64{p.committed(group, topic, 0), p.committed(group, topic, 1)}; got != [2]int64{5, 5} {
		t.Errorf("the broker has committed %v for its members", got)
	}
}

// What SET_MESSAGE_REQUEST_MODE sets is what GET_ALL_MESSAGE_REQUEST_MODE says, for both modes.
func TestRequestModesReadBack(t *testing.T) {
	t.Parallel()
	p := newRawPeer(t, sharedCluster(t).broker)
	topic, group := rawNames("mode")
	p.createTopic(topic, 1)
	p.createGroup(group)
	for _, want := range []remoting.MessageRequestMode{
		{Topic: topic, ConsumerGroup: group, Mode: "POP", PopShareQueueNum: 3},
		{Topic: topic, ConsumerGroup: group, Mode: "PULL"},
		{Topic: topic, ConsumerGroup: group, Mode: "POP", PopShareQueueNum: -1},
	} {
		body, err := fastjson.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		p.ok(remoting.ReqSetMessageRequestMode, nil, body)
		var all remoting.MessageRequestModes
		p.body(p.ok(remoting.ReqGetAllMessageRequestMode, nil, nil), &all)
		if got := all.Map[topic][group]; got != want {
			t.Errorf("read back %+v, set was %+v", got, want)
		}
	}
	retry := fmt.Appendf(nil, `{"topic":"%%RETRY%%%s","consumerGroup":%q,"mode":"POP"}`, group, group)
	if resp := p.call(remoting.ReqSetMessageRequestMode, nil, retry); resp.Code != remoting.RespNoPermission {
		t.Errorf("a retry topic: %s", remoting.ResponseName(resp.Code))
	}
}

// UPDATE_AND_GET_GROUP_FORBIDDEN: without a value it says what is set, with one it sets it, and a group that is forbidden a topic
// cannot pull it.
func TestGroupForbidden(t *testing.T) {
	t.Parallel()
	p := newRawPeer(t, sharedCluster(t).broker)
	topic, group := rawNames("forbid")
	p.createTopic(topic, 1)
	p.createGroup(group)
	p.send(topic, 0, "x")
	p.member(group, topic)
	pull := func() *remoting.Command {
		h := pullOf(group, topic, 0, 0)
		h.SysFlag, h.Subscription, h.SubVersion = 0, "", 1 // the subscription is that of the heartbeat
		return p.call(remoting.ReqPullMessage, h, nil)
	}
	for _, tt := range []struct {
		set      string
		readable bool
	}{{"", true}, {"false", false}, {"", false}, {"true", true}, {"", true}} {
		req := remoting.NewRequest(remoting.ReqUpdateAndGetGroupForbidden, nil)
		req.Fields.Set("group", group)
		req.Fields.Set("topic", topic)
		if tt.set != "" {
			req.Fields.Set("readable", tt.set)
		}
		resp, err := p.Call(t.Context(), p.addr, req)
		if err != nil || resp.Code != remoting.RespSuccess {
			t.Fatalf("set %q: %v %v", tt.set, resp, err)
		}
		var got remoting.GroupForbidden
		p.body(resp, &got)
		if got.Group != group || got.Topic != topic || got.Readable == nil || *got.Readable != tt.readable {
			t.Errorf("set %q: %s", tt.set, resp.Body)
		}
		resp = pull()
		if want := map[bool]int32{true: remoting.RespSuccess, false: remoting.RespNoPermission}[tt.readable]; resp.Code != want {
			t.Errorf("set %q: a pull is answered %s: %s", tt.set, remoting.ResponseName(resp.Code), resp.Remark)
		}
	}
}

// QUERY_CORRECTION_OFFSET: the smallest offsets of the groups of a topic, and where the group that is compared is behind them the
// largest number there is.
func TestCorrectionOffset(t *testing.T) {
	t.Parallel()
	p := newRawPeer(t, sharedCluster(t).broker)
	topic, group := rawNames("correct")
	p.createTopic(topic, 2)
	for q := range int32(2) {
		p.send(topic, q, "0", "1", "2", "3", "4", "5")
	}
	for name, offs := range map[string][2]int64{"a": {3, 4}, "b": {5, 2}, "c": {1, 1}} {
		p.createGroup(group + name)
		for q, off := range offs {
			p.commit(group+name, topic, int32(q), off)
		}
	}
	ask := func(left, compare string) map[int32]int64 {
		var body remoting.QueryCorrectionOffsetBody
		p.body(p.ok(remoting.ReqQueryCorrectionOffset, &remoting.QueryCorrectionOffsetHeader{FilterGroups: left, CompareGroup: compare, Topic: topic}, nil), &body)
		return body.CorrectionOffsets
	}
	if got := ask("", group+"a"); !maps.Equal(got, map[int32]int64{0: 1, 1: 1}) {
		t.Errorf("of all groups: %v", got)
	}
	if got := ask(group+"c", group+"a"); !maps.Equal(got, map[int32]int64{0: 3, 1: 2}) {
		t.Errorf("without c: %v", got)
	}
	if reference() { // its query has removed the offsets of c, so that they are asked for no more
		return
	}
	if got := ask(group+"c", group+"c"); !maps.Equal(got, map[int32]int64{0: math.MaxInt64, 1: math.MaxInt64}) {
		t.Errorf("compared with one that is behind: %v", got)
	}
	if got := p.committed(group+"c", topic, 0); got != 1 {
		t.Errorf("a query has changed an offset to %d", got)
	}
}

// RESUME_CHECK_HALF_MESSAGE: a half message that was given up after its checks is asked about again, and can be committed.
func TestResumeCheckOfAHalfMessage(t *testing.T) {
	t.Parallel()
	p := newRawPeer(t, startCluster(t, "transactionCheckInterval=500", "transactionTimeOut=300", "transactionCheckMax=1", "transactionOpBatchInterval=200").broker)
	topic, group := rawNames("resume")
	p.createTopic(topic, 1)
	p.beat(remoting.HeartbeatData{ClientID: "raw-resume", ProducerDataSet: []remoting.ProducerData{{GroupName: group}}, ConsumerDataSet: []remoting.ConsumerData{}})
	const key = "7F0000010000000000000000000000AB"
	var props []byte
	for _, kv := range [][2]string{{"TRAN_MSG", "true"}, {"PGROUP", group}, {"UNIQ_KEY", key}} {
		props = message.AppendProperty(props, kv[0], kv[1])
	}
	p.ok(remoting.ReqSendMessageV2, &remoting.SendMessageHeader{
		ProducerGroup: group, Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, BornTimestamp: time.Now().UnixMilli(),
		SysFlag: message.TransactionPrepared, Properties: string(props),
	}, []byte("half"))
	// Nobody answers the checks: it is given up.
	given := p.pullOne("the half message that was given up", message.TopicTransCheckMaxTime)
	asked := len(p.requests(remoting.ReqCheckTransactionState))
	p.ok(remoting.ReqResumeCheckHalfMessage, &remoting.ResumeCheckHalfMessageHeader{MsgID: offsetIDOf(t, &given)}, nil)
	waitFor(t, arrival, "a check after the resumption", func() (bool, string) {
		n := len(p.requests(remoting.ReqCheckTransactionState))
		return n > asked, fmt.Sprint(n)
	})
	check := p.requests(remoting.ReqCheckTransactionState)[asked]
	var h remoting.CheckTransactionStateHeader
	if err := remoting.DecodeHeader(check.Fields, &h); err != nil {
		t.Fatal(err)
	}
	p.ok(remoting.ReqEndTransaction, &remoting.EndTransactionHeader{
		ProducerGroup: group, TranStateTableOffset: h.TranStateTableOffset, CommitLogOffset: h.CommitLogOffset, CommitOrRollback: 8,
		FromTransactionCheck: true, MsgID: h.MsgID, TransactionID: h.TransactionID,
	}, nil)
	done := p.pullOne("the message that was committed", topic)
	if string(done.Body) != "half" {
		t.Errorf("%q was delivered", done.Body)
	}
	if reference() { // it takes any message for a half message
		return
	}
	if resp := p.call(remoting.ReqResumeCheckHalfMessage, &remoting.ResumeCheckHalfMessageHeader{MsgID: offsetIDOf(t, &done)}, nil); resp.Code == remoting.RespSuccess {
		t.Error("a message that is no half message was resumed")
	}
}

// pullOne waits for the first message of queue 0 of a topic.
func (p *rawPeer) pullOne(what, topic string) message.Record {
	p.t.Helper()
	var got []message.Record
	waitFor(p.t, arrival, what, func() (bool, string) {
		resp := p.call(remoting.ReqPullMessage, pullOf("GID_e2e_raw_reader", topic, 0, 0), nil)
		got = p.records(resp)
		return len(got) > 0, remoting.ResponseName(resp.Code) + " " + resp.Remark
	})
	return slices.Clone(got)[0]
}

// offsetIDOf is the id that names the place of a message.
func offsetIDOf(t *testing.T, rec *message.Record) string {
	t.Helper()
	return string(message.AppendOffsetID(nil, rec.StoreHost, rec.PhysicalOffset))
}
