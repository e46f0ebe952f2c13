package broker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mqx/message"
	"mqx/remoting"
	"mqx/store"
)

func TestStoredProperties(t *testing.T) {
	own := &brokerProps{region: "R", traceOn: "true", cluster: "C"}
	const added = "MSG_REGION\x01R\x02TRACE_ON\x01true\x02CLUSTER\x01C\x02"
	tests := []struct{ name, raw, key, want string }{
		{"nothing", "", "", added},
		{"kept as sent", "TAGS\x01a\x02KEYS\x01k\x02", "", "TAGS\x01a\x02KEYS\x01k\x02" + added},
		{"no separator at the end (N108)", "TAGS\x01a", "", "TAGS\x01a\x02" + added},
		{"the broker's own are replaced", "POP_CK\x01x\x02CLUSTER\x01old\x02TAGS\x01a\x02MSG_REGION\x01old\x02TRACE_ON\x01false\x02", "", "TAGS\x01a\x02" + added},
		{"new key", "TAGS\x01a\x02", "ID", "TAGS\x01a\x02" + added + "UNIQ_KEY\x01ID\x02"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := scanProps([]byte(tt.raw))
			got := string(own.appendStored(nil, []byte(tt.raw), &p, []byte(tt.key)))
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	p := scanProps([]byte("UNIQ_KEY\x01U\x02DELAY\x013\x02WAIT\x01false\x02TRAN_MSG\x01TRUE\x02TIMER_DELAY_MS\x015\x02"))
	if string(p.uniqKey) != "U" || p.delayLevel() != 3 || !p.noWait || !p.prepared || p.timer != "TIMER_DELAY_MS" {
		t.Errorf("%+v", p)
	}
}

func TestSendRefusals(t *testing.T) {
	cfg := testConfig(t.TempDir())
	r := start(t, cfg)
	r.createTopic("T", 4)
	group := strings.Repeat("g", 300)
	head := func(topic string, q int32, props string, edit ...func(*remoting.SendMessageHeader)) *remoting.SendMessageHeader {
		h := sendHeaderOf(topic, q, props)
		for _, e := range edit {
			e(h)
		}
		return h
	}
	batch := func(props string) []byte { return message.AppendBatchItem(nil, 0, []byte("x"), []byte(props)) }
	isBatch := func(h *remoting.SendMessageHeader) { h.Batch = true }
	tests := []struct {
		name string
		head *remoting.SendMessageHeader
		body []byte
		code int32
		text string
	}{
		{"illegal queue", head("T", 4, ""), []byte("x"), 29, "queueId[4] is illegal"},
		{"system topic", head(message.TopicSchedule, 0, ""), []byte("x"), 16, "Sending message to topic[SCHEDULE_TOPIC_XXXX] is forbidden."},
		{"half topic", head(message.TopicHalf, 0, ""), []byte("x"), 16, "forbidden"},
		{"bad name", head("a.b", 0, ""), []byte("x"), 29, `'.'`},
		{"unknown topic, no template", head("new1", 0, "", func(h *remoting.SendMessageHeader) { h.DefaultTopic = "nope" }), []byte("x"), 17, "topic[new1] not exist"},
		{"template without the bit", head("new2", 0, "", func(h *remoting.SendMessageHeader) { h.DefaultTopic = "T" }), []byte("x"), 17, "not exist"},
		{"no body", head("T", 0, ""), nil, 13, "no body"},
		{"delayed by nonsense", head("T", 0, prop("DELAY", "3s")), []byte("x"), 13, "DELAY=\"3s\""},
		{"transactional batch", head("T", 0, prop("TRAN_MSG", "true"), isBatch), batch(""), 13, "transactional"},
		{"transactional item of a batch", head("T", 0, "", isBatch), batch(prop("TRAN_MSG", "true")), 13, "transactional"},
		{"timer by nonsense", head("T", 0, prop("TIMER_DELAY_SEC", "3s")), []byte("x"), 13, "timer message illegal"},
		{"timer too late", head("T", 0, prop("TIMER_DELAY_SEC", "259201")), []byte("x"), 13, "max delay 259200000ms"},
		{"cancellation of the past", head("T", 0, prop("TIMER_DELIVER_MS", "1")+prop("TIMER_DEL_UNIQKEY", "K")), []byte("x"), 13, "timer message illegal"},
		{"lite", head("T", 0, prop("__LITE_TOPIC", "l")), []byte("x"), 29, "__LITE_TOPIC"},
		{"delayed item of a batch", head("T", 0, "", isBatch), batch(prop("DELAY", "1")), 13, "DELAY=1"},
		{"batch of nothing", head("T", 0, "", isBatch), []byte{0, 0}, 13, "batch cannot be read"},
		{"batch to a retry topic", head("%RETRY%G", 0, "", isBatch), batch(""), 13, "retry group"},
		{"group that cannot be", head("%RETRY%"+group[:248], 0, ""), []byte("x"), 26, "subscription group not exist"},
		{"body over the limit (N107)", head("T", 0, ""), make([]byte, cfg.Store.MaxMessageBytes+1), 13, "limit"},
		{"properties over the limit", head("T", 0, prop("p", strings.Repeat("x", 33000))), []byte("x"), 13, "32KB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp := r.call(remoting.ReqSendMessageV2, tt.head, tt.body)
			if resp.Code != tt.code || !strings.Contains(resp.Remark, tt.text) {
				t.Errorf("%d %q, want %d %q", resp.Code, resp.Remark, tt.code, tt.text)
			}
			if d := cmp.Diff([]string{"MSG_REGION", "TRACE_ON"}, names(resp.Fields)); d != "" {
				t.Error(d)
			}
		})
	}
	for q := range int32(4) {
		if n := r.store.MaxOffset("T", q); n != 0 {
			t.Errorf("queue %d holds %d messages that were refused", q, n)
		}
	}
	req := remoting.NewRequest(remoting.ReqSendMessageV2, nil)
	req.Fields.Set("a", "PG")
	resp, err := r.c.Call(context.Background(), r.addr, req)
	if err != nil || resp.Code != remoting.RespSystemError || resp.Remark != "the custom field <b> is null" {
		t.Errorf("without fields: %v %v", resp, err)
	}
}

func TestAutoCreateBySend(t *testing.T) {
	dir := t.TempDir()
	r := start(t, testConfig(dir))
	r.send("auto", 3, "", "x")
	tp := r.topics.Get("auto")
	if tp == nil || tp.WriteQueueNums != 4 || tp.Perm != 6 || !tp.saved.Load() {
		t.Fatalf("%+v", tp)
	}
	r.send("auto", -1, "", "any queue")
	r.stop()
	cfg := testConfig(dir)
	cfg.AutoCreateTopic = false
	r = start(t, cfg)
	if r.topics.Get("auto") == nil {
		t.Error("the topic was lost")
	}
	for _, template := range []string{"TBW102", "b", "C"} { // N096
		h := sendHeaderOf("other", 0, "")
		h.DefaultTopic = template
		if resp := r.call(remoting.ReqSendMessageV2, h, []byte("x")); resp.Code != remoting.RespTopicNotExist {
			t.Errorf("template %s: %s", template, remoting.ResponseName(resp.Code))
		}
	}
	if resp := r.call(remoting.ReqSendMessageV2, sendHeaderOf("%RETRY%G", 0, ""), []byte("x")); resp.Code != remoting.RespSuccess {
		t.Errorf("a retry topic is created all the same: %s", resp.Remark)
	}
}

func TestSendBatch(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	r.send("T", 0, "", "first")
	var body []byte
	for i := range 3 {
		body = message.AppendBatchItem(body, 0, []byte(fmt.Sprint("m", i)), []byte(prop("KEYS", fmt.Sprint("k", i), "WAIT", "true")))
	}
	for _, code := range []int32{remoting.ReqSendBatchMessage, remoting.ReqSendMessageV2} { // the flag decides, not the code
		h := sendHeaderOf("T", 0, prop("UNIQ_KEY", "BATCH"))
		h.Batch = true
		r.settle()
		first := r.store.MaxOffset("T", 0)
		resp := r.ok(code, h, body)
		ids := strings.Split(resp.Fields.String("msgId"), ",")
		if len(ids) != 3 || resp.Fields.String("queueOffset") != fmt.Sprint(first) || resp.Fields.String("transactionId") != "BATCH" {
			t.Fatalf("%v", resp.Fields)
		}
		recs := records(t, r.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, first), nil).Body)
		if len(recs) != 3 {
			t.Fatalf("%d records", len(recs))
		}
		for i, rec := range recs {
			want := prop("KEYS", fmt.Sprint("k", i), "WAIT", "true")
			if string(rec.Body) != fmt.Sprint("m", i) || string(rec.Properties) != want || rec.QueueOffset != first+int64(i) {
				t.Errorf("%d: %q %q at %d", i, rec.Body, rec.Properties, rec.QueueOffset)
			}
			if id := message.FormatOffsetID(netip.MustParseAddrPort(r.addr), rec.PhysicalOffset); id != ids[i] {
				t.Errorf("id %s, answered %s", id, ids[i])
			}
		}
	}
	h := sendHeaderOf("T", 0, "")
	h.Batch = true
	resp := r.ok(remoting.ReqSendBatchMessage, h, body)
	if _, ok := resp.Fields.Get("transactionId"); ok {
		t.Error("a batch without a key got one")
	}
	// code 320 without the flag is one message
	resp = r.ok(remoting.ReqSendBatchMessage, sendHeaderOf("T", 0, ""), []byte("single"))
	if strings.Contains(resp.Fields.String("msgId"), ",") || resp.Fields.String("transactionId") == "" {
		t.Errorf("%v", resp.Fields)
	}
}

func TestOnewaySend(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	req := remoting.NewRequest(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, ""))
	req.Flag |= remoting.FlagOneway
	req.Body = []byte("x")
	if err := r.c.Oneway(context.Background(), r.addr, req); err != nil {
		t.Fatal(err)
	}
	// A pull that waits is answered by it.
	h := pullHeaderOf("G", "T", 0, 0)
	h.SysFlag |= pullSuspend
	h.SuspendTimeoutMillis = 9000
	if recs := records(t, r.ok(remoting.ReqPullMessage, h, nil).Body); len(recs) != 1 {
		t.Errorf("%d messages", len(recs))
	}
}

// A client that sends to a retry topic itself: past its attempts the message
// goes to the dead letters.
func TestRetrySendGoesToDLQ(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	send := func(times int32, most *int32, props string) *remoting.Command {
		h := sendHeaderOf("%RETRY%G", 0, props)
		h.ReconsumeTimes = times
		if most != nil {
			h.MaxReconsumeTimes = remoting.Some(*most)
		}
		return r.call(remoting.ReqSendMessageV2, h, []byte(fmt.Sprint("t", times)))
	}
	three := int32(3)
	for _, s := range []struct {
		times int32
		max   *int32
	}{{16, nil}, {17, nil}, {3, &three}, {4, &three}} {
		if resp := send(s.times, s.max, ""); resp.Code != remoting.RespSuccess {
			t.Fatal(resp.Remark)
		}
	}
	if resp := send(1, nil, prop("DELAY", "3")); resp.Code != remoting.RespSuccess || r.store.MaxOffset(message.TopicSchedule, 2) != 1 {
		t.Errorf("a delayed retry: %s %s", remoting.ResponseName(resp.Code), resp.Remark)
	}
	if resp := send(20, nil, prop("DELAY", "3")); resp.Code != remoting.RespSuccess {
		t.Errorf("a delayed retry past its attempts: %s", resp.Remark)
	}
	r.settle()
	if n := r.store.MaxOffset("%RETRY%G", 0); n != 2 {
		t.Errorf("%d in the retry topic", n)
	}
	got := records(t, r.ok(remoting.ReqPullMessage, pullHeaderOf("H", "%DLQ%G", 0, 0), nil).Body)
	var bodies []string
	for _, rec := range got {
		bodies = append(bodies, string(rec.Body))
		if d, _ := message.Property(rec.Properties, "DELAY"); string(d) != "-1" {
			t.Errorf("DELAY %q", d)
		}
	}
	if d := cmp.Diff([]string{"t17", "t4", "t20"}, bodies); d != "" {
		t.Error(d)
	}
	// A group that holds queue locks consumes in order: straight to the dead letters.
	r.locks.Lock("G", "c", []remoting.MessageQueue{mq(0)})
	if resp := send(0, nil, ""); resp.Code != remoting.RespSuccess {
		t.Fatal(resp.Remark)
	}
	r.settle()
	if n := r.store.MaxOffset("%DLQ%G", 0); n != 4 {
		t.Errorf("%d in the dead letters", n)
	}
}

func TestStartAcceptSendAt(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.StartAcceptSendAt = time.Now().Add(time.Hour).UnixMilli()
	r := start(t, cfg)
	if resp := r.call(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, ""), []byte("x")); resp.Code != remoting.RespSystemError ||
		!strings.Contains(resp.Remark, "broker unable to service, until") {
		t.Errorf("%s", resp.Remark)
	}
}

func TestSendOutcome(t *testing.T) {
	b := &Broker{}
	c := DefaultConfig()
	b.putConfig(&c)
	for _, tt := range []struct {
		status store.Status
		err    error
		code   int32
		text   string
	}{
		{store.PutOK, nil, 0, ""},
		{store.FlushDiskTimeout, nil, 10, ""},
		{store.SlaveNotAvailable, nil, 11, ""},
		{store.FlushSlaveTimeout, nil, 12, ""},
		{store.InSyncReplicasNotEnough, nil, 1, "in-sync replicas not enough"},
		{store.CreateFileFailed, errors.New("mkdir /x: no space"), 1, "create mapped file failed, server is busy or broken. mkdir /x: no space"},
		{store.MessageIllegal, errors.New("why"), 13, "4194304B"},
		{store.PropertiesSizeExceeded, nil, 13, "32KB"},
		{store.ServiceNotAvailable, errors.New("/data is 91 % full"), 14, "service not available now. /data is 91 % full"},
		{store.OSPageCacheBusy, errors.New("append since 2s"), 2, "[PC_SYNCHRONIZED]broker busy, start flow control for a while. append since 2s"},
		{store.LMQConsumeQueueNumExceeded, nil, 2017, "lmq"},
		{store.UnknownError, errors.New("odd"), 1, "UNKNOWN_ERROR odd"},
	} {
		code, text := b.sendOutcome(&store.Put{Status: tt.status, Err: tt.err})
		if code != tt.code || !strings.Contains(text, tt.text) {
			t.Errorf("%v: %d %q, want %d %q", tt.status, code, text, tt.code, tt.text)
		}
	}
}

// A batch of as many messages as fit is stored and answered with all their ids: an error would have it sent again.
func TestLargestBatchIsAnswered(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Store.CommitLogFileBytes = 64 << 20
	r := start(t, cfg)
	r.createTopic("T", 1)
	const n = 150_000
	var body []byte
	for range n {
		body = message.AppendBatchItem(body, 0, []byte("x"), nil)
	}
	h := sendHeaderOf("T", 0, "")
	h.Batch = true
	resp := r.ok(remoting.ReqSendBatchMessage, h, body)
	if ids := strings.Count(resp.Fields.String("msgId"), ",") + 1; ids != n {
		t.Errorf("%d ids", ids)
	}
}

// A message whose flags say prepared or rolled back, and which is no half message, would be stored for nobody.
func TestSendOfNoUse(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	for _, flag := range []int32{message.TransactionPrepared, message.TransactionRollback} {
		h := sendHeaderOf("T", 0, "")
		h.SysFlag = flag
		if resp := r.call(remoting.ReqSendMessageV2, h, []byte("x")); resp.Code != remoting.RespMessageIllegal {
			t.Errorf("flag %d: %s %q", flag, remoting.ResponseName(resp.Code), resp.Remark)
		}
	}
	if end := r.store.LogEnd(); end != 0 {
		t.Errorf("%d bytes were stored", end)
	}
}
