package broker

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/client"
)

// listener is a client that keeps what the broker asks it and answers with a
// body.
type listener struct {
	*client.Client
	mu  sync.Mutex
	got []*remoting.Command
}

func (r *running) listen(answer func(req *remoting.Command) *remoting.Command) *listener {
	r.t.Helper()
	l := &listener{}
	l.Client = client.New(client.Config{Logger: quiet, OnRequest: func(_ string, req *remoting.Command) *remoting.Command {
		kept := *req
		kept.Body = append([]byte(nil), req.Body...)
		kept.Fields = remoting.Fields{}
		for _, f := range req.Fields {
			kept.Fields.Set(string(f.Key), string(f.Value))
		}
		l.mu.Lock()
		l.got = append(l.got, &kept)
		l.mu.Unlock()
		if req.IsOneway() || answer == nil {
			return nil
		}
		return answer(req)
	}})
	r.t.Cleanup(func() { _ = l.Close() })
	return l
}

// asked are the requests of a code so far.
func (l *listener) asked(code int32) []*remoting.Command {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.got), func(c *remoting.Command) bool { return c.Code != code })
}

func (r *running) commit(group, topic string, q int32, off int64) {
	r.t.Helper()
	r.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{ConsumerGroup: group, Topic: topic, QueueID: q, CommitOffset: off}, nil)
}

func TestResetThroughClients(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.ServerSideReset = false
	r := start(t, cfg)
	r.createTopic("T", 2)
	for i := range 10 {
		r.send("T", int32(i%2), "", "x")
	}
	reset := func(at int64, force bool) *remoting.Command {
		return r.call(remoting.ReqInvokeBrokerToResetOffset, &remoting.ResetOffsetHeader{Topic: "T", Group: "G", QueueID: -1, Timestamp: at, IsForce: force}, nil)
	}
	if resp := reset(-1, true); resp.Code != remoting.RespSystemError || resp.Remark != "THe consumer group <G> not exist" {
		t.Errorf("%d %q", resp.Code, resp.Remark)
	}
	r.groups.FindOrCreate("G")
	r.commit("G", "T", 0, 2)
	r.commit("G", "T", 1, 3)
	if resp := reset(-1, true); resp.Code != remoting.RespConsumerNotOnline || !strings.Contains(resp.Remark, "Consumer not online, so can not reset offset, Group: G Topic: T") {
		t.Errorf("%d %q", resp.Code, resp.Remark)
	}
	l := r.listen(nil)
	r.beat(l.Client, consumerBeat("a", "G", remoting.Clustering, "T"))
	want := func(resp *remoting.Command, q0, q1 int64) {
		t.Helper()
		table := map[remoting.MessageQueue]int64{r.queue("T", 0): q0, r.queue("T", 1): q1}
		var body remoting.ResetOffsetBody
		if err := fastjson.Unmarshal(resp.Body, &body); err != nil || resp.Code != 0 {
			t.Fatalf("%d %q %v", resp.Code, resp.Remark, err)
		}
		if d := cmp.Diff(table, body.OffsetTable); d != "" {
			t.Error(d)
		}
		waitFor(t, "the member to be told", func() bool { return len(l.asked(remoting.ReqResetConsumerClientOffset)) > 0 })
		l.mu.Lock()
		defer l.mu.Unlock()
		last := l.got[len(l.got)-1]
		var told remoting.ResetOffsetBody
		if err := fastjson.Unmarshal(last.Body, &told); err != nil || !last.IsOneway() || last.Fields.String("group") != "G" {
			t.Fatalf("%v %v", last, err)
		}
		if d := cmp.Diff(table, told.OffsetTable); d != "" {
			t.Error(d)
		}
		l.got = nil
	}
	want(reset(-1, false), 2, 3) // only backwards
	want(reset(-1, true), 5, 5)
	want(reset(0, true), 0, 0)
	for q := range int32(2) { // the members commit
		if off, _ := r.offsets.Committed("T", "G", q); off != int64(2+q) {
			t.Errorf("queue %d: %d", q, off)
		}
	}
	req := remoting.NewRequest(remoting.ReqInvokeBrokerToResetOffset, &remoting.ResetOffsetHeader{Topic: "T", Group: "G", QueueID: -1, Timestamp: -1, IsForce: true})
	req.Language = remoting.LanguageCPP
	if resp, err := r.c.Call(t.Context(), r.addr, req); err != nil || resp.Code != 0 {
		t.Fatalf("%v %v", resp, err)
	}
	waitFor(t, "the member to be told", func() bool { return len(l.asked(remoting.ReqResetConsumerClientOffset)) > 0 })
	var list remoting.ResetOffsetBodyForC
	if err := fastjson.Unmarshal(l.asked(remoting.ReqResetConsumerClientOffset)[0].Body, &list); err != nil || len(list.OffsetTable) != 2 {
		t.Errorf("%+v %v", list, err)
	}
}

func TestConsumerStatus(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	ask := func(id string) *remoting.Command {
		return r.call(remoting.ReqInvokeBrokerToGetConsumerStatus, &remoting.GetConsumerStatusHeader{Topic: "T", Group: "G", ClientAddr: id}, nil)
	}
	if resp := ask(""); resp.Code != remoting.RespSystemError || resp.Remark != "No Any Consumer online in the consumer group: [G]" {
		t.Errorf("%d %q", resp.Code, resp.Remark)
	}
	table := map[remoting.MessageQueue]int64{r.queue("T", 0): 7}
	for _, id := range []string{"a", "b"} {
		l := r.listen(func(req *remoting.Command) *remoting.Command {
			resp := remoting.NewResponse(req, remoting.RespSuccess, "")
			resp.Body, _ = marshal(&remoting.GetConsumerStatusBody{MessageQueueTable: table})
			return resp
		})
		r.beat(l.Client, consumerBeat(id, "G", remoting.Clustering, "T"))
	}
	for id, want := range map[string]map[string]map[remoting.MessageQueue]int64{
		"":  {"a": table, "b": table},
		"b": {"b": table},
	} {
		resp := ask(id)
		var body remoting.GetConsumerStatusBody
		if err := fastjson.Unmarshal(resp.Body, &body); err != nil || resp.Code != 0 {
			t.Fatalf("%d %q %v", resp.Code, resp.Remark, err)
		}
		if d := cmp.Diff(want, body.ConsumerTable); d != "" {
			t.Error(d)
		}
	}
}

func TestCorrectionOffsets(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 2)
	for i := range 20 {
		r.send("T", int32(i%2), "", "x")
	}
	for g, offs := range map[string][2]int64{"A": {3, 4}, "B": {5, 2}, "C": {1, 1}} {
		r.groups.FindOrCreate(g)
		r.commit(g, "T", 0, offs[0])
		r.commit(g, "T", 1, offs[1])
	}
	ask := func(filter, compare string) map[int32]int64 {
		resp := r.ok(remoting.ReqQueryCorrectionOffset, &remoting.QueryCorrectionOffsetHeader{FilterGroups: filter, CompareGroup: compare, Topic: "T"}, nil)
		var body remoting.QueryCorrectionOffsetBody
		if err := fastjson.Unmarshal(resp.Body, &body); err != nil {
			t.Fatal(err)
		}
		return body.CorrectionOffsets
	}
	if d := cmp.Diff(map[int32]int64{0: 1, 1: 1}, ask("", "A")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[int32]int64{0: 3, 1: 2}, ask("C", "A")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[int32]int64{0: math.MaxInt64, 1: math.MaxInt64}, ask("C", "C")); d != "" {
		t.Error(d)
	}
	if off, ok := r.offsets.Committed("T", "C", 0); !ok || off != 1 {
		t.Error("a query has removed the offsets of a group")
	}
}

func TestRequestReply(t *testing.T) {
	for _, stored := range []bool{true, false} {
		cfg := testConfig(t.TempDir())
		cfg.StoreReplyMessage = stored
		r := start(t, cfg)
		topic := replyTopic("C")
		code := remoting.RespSuccess
		l := r.listen(func(req *remoting.Command) *remoting.Command { return remoting.NewResponse(req, code, "no") })
		r.beat(l.Client, remoting.HeartbeatData{ClientID: "asker", ProducerDataSet: []remoting.ProducerData{{GroupName: "PG"}}})
		reply := func(props ...string) *remoting.Command {
			h := sendHeaderOf(topic, 0, prop(append([]string{"MSG_TYPE", "reply", "CORRELATION_ID", "c1"}, props...)...))
			return r.call(remoting.ReqSendReplyMessageV2, h, []byte("answer"))
		}
		n := func() int64 { r.settle(); return r.store.MaxOffset(topic, 0) }
		resp := reply("REPLY_TO_CLIENT", "asker")
		if resp.Code != 0 || resp.Fields.String("queueId") != "0" || (resp.Fields.String("msgId") == "0") == stored || (n() == 1) != stored {
			t.Errorf("stored %v: %d %q %v, %d stored", stored, resp.Code, resp.Remark, fieldText(resp.Fields), n())
		}
		got := l.asked(remoting.ReqPushReplyMessageToClient)
		if len(got) != 1 || string(got[0].Body) != "answer" {
			t.Fatalf("%v", got)
		}
		props := message.ParseProperties([]byte(got[0].Fields.String("properties")))
		if props["CORRELATION_ID"] != "c1" || props["PUSH_REPLY_TIME"] == "" || got[0].Fields.String("topic") != topic ||
			got[0].Fields.String("storeHost") != r.addr || got[0].Fields.String("bornHost") == "" || got[0].Fields.String("storeTimestamp") == "" {
			t.Errorf("%v", fieldText(got[0].Fields))
		}
		for _, tt := range []struct {
			props []string
			text  string
		}{
			{nil, "reply message properties[REPLY_TO_CLIENT] is null"},
			{[]string{"REPLY_TO_CLIENT", "nobody"}, "push reply message fail, channel of <nobody> not found."},
		} {
			if resp := reply(tt.props...); resp.Code != remoting.RespSystemError || resp.Remark != tt.text {
				t.Errorf("%d %q", resp.Code, resp.Remark)
			}
		}
		code = remoting.RespSystemError
		if resp := reply("REPLY_TO_CLIENT", "asker"); resp.Code != remoting.RespSystemError || !strings.Contains(resp.Remark, "push reply message to asker fail") {
			t.Errorf("%d %q", resp.Code, resp.Remark)
		}
		r.stop()
	}
}

// What a reply asks for is done or refused as with any other message that is sent.
func TestReplyProperties(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	r.send("T", 0, "", "before")
	for _, tt := range []struct {
		props []string
		sys   int32
	}{
		{[]string{"INNER_NUM", "1000"}, message.FlagInnerBatch},
		{[]string{"INNER_NUM", "1000"}, message.FlagInnerBatch | message.FlagNeedUnwrap},
		{nil, message.FlagInnerBatch},
		{[]string{"INNER_NUM", "2"}, 0},
		{[]string{"TRAN_MSG", "true"}, 0},
		{[]string{"TRAN_MSG", "true"}, message.TransactionPrepared},
		{nil, message.TransactionRollback},
		{nil, message.TransactionPrepared},
		{nil, message.TransactionCommit},
		{[]string{"DELAY", "abc"}, 0},
		{[]string{"TIMER_DELAY_SEC", "999999999"}, 0},
	} {
		h := sendHeaderOf("T", 0, prop(tt.props...))
		h.SysFlag = tt.sys
		if resp := r.call(remoting.ReqSendReplyMessageV2, h, []byte("x")); resp.Code != remoting.RespMessageIllegal {
			t.Errorf("%v, system flag %#x: %d %q", tt.props, tt.sys, resp.Code, resp.Remark)
		}
	}
	for _, code := range []int32{remoting.ReqSendReplyMessageV2, remoting.ReqSendMessageV2} {
		resp := r.call(code, sendHeaderOf("T", 0, prop("__LITE_TOPIC", "a")), []byte("x"))
		if resp.Code != remoting.RespInvalidParameter || !strings.Contains(resp.Remark, "__LITE_TOPIC") {
			t.Errorf("a lite message: %d %q", resp.Code, resp.Remark)
		}
	}
	r.send("T", 0, "", "after")
	reply := func(props ...string) {
		t.Helper()
		if resp := r.call(remoting.ReqSendReplyMessageV2, sendHeaderOf("T", 0, prop(props...)), []byte("reply")); resp.Fields.String("queueId") != "0" {
			t.Errorf("%v: %d %q %v", props, resp.Code, resp.Remark, fieldText(resp.Fields))
		}
	}
	reply("DELAY", "18")
	reply("TIMER_DELAY_SEC", "3600")
	reply("POP_CK", "x")
	recs := r.all("T", 0)
	if d := cmp.Diff("before after reply", bodyText(recs)); d != "" {
		t.Fatal(d)
	}
	if props := message.ParseProperties(recs[2].Properties); props["POP_CK"] != "" || props["UNIQ_KEY"] == "" {
		t.Errorf("%q", recs[2].Properties)
	}
	if n, m := r.store.MaxOffset(message.TopicSchedule, 17), r.store.MaxOffset(message.TopicTimer, 0); n != 1 || m != 1 {
		t.Errorf("%d and %d replies wait for their time, want one each", n, m)
	}
}
