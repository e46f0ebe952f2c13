package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mqx/internal/testkit"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
)

func (r *running) createTyped(name string, queues int32, attributes string) {
	r.t.Helper()
	r.ok(remoting.ReqUpdateAndCreateTopic, &remoting.CreateTopicHeader{
		Topic: name, DefaultTopic: "TBW102", ReadQueueNums: queues, WriteQueueNums: queues, Perm: 6, TopicFilterType: "SINGLE_TAG", Attributes: attributes,
	}, nil)
}

func recordBodies(t *testing.T, body []byte) []string {
	t.Helper()
	var out []string
	for _, rec := range records(t, body) {
		out = append(out, string(rec.Body))
	}
	return out
}

// A light queue is pulled like a topic of one queue; groups of its kind have offsets in a file of their own; both outlive
// a stop.
func TestLightQueuesAreServed(t *testing.T) {
	dir := t.TempDir()
	cfg := testConfig(dir)
	cfg.Store.EnableLMQ, cfg.Store.EnableMultiDispatch = true, true
	r := start(t, cfg)
	r.createTopic("T", 2)
	// A pull that waits at a light queue is answered by the first message for it.
	h := pullHeaderOf("%LMQ%g", "%LMQ%a", 0, 0)
	h.SysFlag |= pullSuspend
	h.SuspendTimeoutMillis = 9000
	woken := make(chan *remoting.Command, 1)
	go func() {
		resp, err := r.c.Call(t.Context(), r.addr, remoting.NewRequest(remoting.ReqPullMessage, h))
		if err != nil {
			t.Error(err)
		}
		woken <- resp
	}()
	waitFor(t, "the pull to wait", func() bool { return r.hold.Len() > 0 })
	r.send("T", 0, prop("INNER_MULTI_DISPATCH", "%LMQ%a,%LMQ%b"), "m0")
	if got := recordBodies(t, (<-woken).Body); !slices.Equal(got, []string{"m0"}) {
		t.Errorf("the pull that waited got %v", got)
	}
	r.send("T", 1, prop("INNER_MULTI_DISPATCH", "%LMQ%a"), "m1")
	check := func(r *running) {
		t.Helper()
		for topic, want := range map[string][]string{"%LMQ%a": {"m0", "m1"}, "%LMQ%b": {"m0"}, "T": {"m0"}} {
			if got := recordBodies(t, r.ok(remoting.ReqPullMessage, pullHeaderOf("G", topic, 0, 0), nil).Body); !slices.Equal(got, want) {
				t.Errorf("%s holds %v", topic, got)
			}
		}
	}
	check(r)
	for _, group := range []string{"G", "%LMQ%g"} {
		r.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{ConsumerGroup: group, Topic: "%LMQ%a", QueueID: 0, CommitOffset: 2}, nil)
	}
	if resp := r.call(remoting.ReqUpdateAndCreateTopic, &remoting.CreateTopicHeader{Topic: "%LMQ%a", DefaultTopic: "TBW102", ReadQueueNums: 4, WriteQueueNums: 4, Perm: 6, TopicFilterType: "SINGLE_TAG"}, nil); resp.Code != 29 {
		t.Errorf("creating a light queue: %d %s", resp.Code, resp.Remark)
	}
	bh := sendHeaderOf("T", 0, "")
	bh.Batch = true
	body := message.AppendBatchItem(nil, 0, []byte("x"), []byte(prop("INNER_MULTI_DISPATCH", "%LMQ%a")))
	if resp := r.call(remoting.ReqSendBatchMessage, bh, body); resp.Code != remoting.RespMessageIllegal {
		t.Errorf("a batch for light queues: %d %s", resp.Code, resp.Remark)
	}
	r.stop()
	text, err := os.ReadFile(filepath.Join(dir, "config", "lmqConsumerOffset.json"))
	if err != nil || !strings.Contains(string(text), `"%LMQ%a@%LMQ%g":2`) || !strings.Contains(string(text), `"%LMQ%a@G"`) {
		t.Errorf("lmqConsumerOffset.json: %v\n%s", err, text)
	}
	if _, err := os.Stat(filepath.Join(dir, "config", "consumerOffset.json")); err == nil {
		t.Error("there is a consumerOffset.json too")
	}
	r = start(t, cfg)
	check(r)
	for _, group := range []string{"G", "%LMQ%g"} {
		resp := r.ok(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetHeader{ConsumerGroup: group, Topic: "%LMQ%a", QueueID: 0}, nil)
		if got := resp.Fields.String("offset"); got != "2" {
			t.Errorf("%s goes on at %s", group, got)
		}
	}
}

// Without light queues their names are topics like others, and those who name them get nothing more.
func TestLightQueuesSwitchedOff(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	r.send("T", 0, prop("INNER_MULTI_DISPATCH", "%LMQ%a"), "m0")
	if resp := r.call(remoting.ReqPullMessage, pullHeaderOf("G", "%LMQ%a", 0, 0), nil); resp.Code != remoting.RespTopicNotExist {
		t.Errorf("%d %s", resp.Code, resp.Remark)
	}
}

func TestLightQuota(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Store.EnableLMQ, cfg.Store.EnableMultiDispatch = true, true
	cfg.Store.EnableLMQQuota, cfg.Store.MaxLMQs = true, 1
	r := start(t, cfg)
	r.createTopic("T", 1)
	r.send("T", 0, prop("INNER_MULTI_DISPATCH", "%LMQ%a"), "m0")
	resp := r.call(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, prop("INNER_MULTI_DISPATCH", "%LMQ%b")), []byte("m1"))
	if resp.Code != remoting.RespLMQQuotaExceeded {
		t.Errorf("%d %s", resp.Code, resp.Remark)
	}
}

// A store of Apache's with light queues goes on where it ended, and its offsets are where Apache keeps them.
func TestGoldenLightQueues(t *testing.T) {
	cfg := testConfig(testkit.GoldenStore(t, "lmq"))
	cfg.BrokerName, cfg.BrokerClusterName = "broker-g", "GoldenCluster"
	cfg.Store.EnableLMQ, cfg.Store.EnableMultiDispatch = true, true
	r := start(t, cfg)
	for _, q := range testkit.GoldenManifest(t, "lmq").StoreView.ConsumeQueues {
		if !message.IsLMQ(q.Topic) {
			continue
		}
		resp := r.ok(remoting.ReqPullMessage, pullHeaderOf("G", q.Topic, 0, 0), nil)
		if n := len(records(t, resp.Body)); n != len(q.Units) {
			t.Errorf("%s: %d messages, want %d", q.Topic, n, len(q.Units))
		}
		next := r.send("LmqTopic", 0, prop("INNER_MULTI_DISPATCH", q.Topic), "next").Fields.String("msgId")
		_, at, err := message.ParseOffsetID(next)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := r.store.RecordAt(at)
		if err != nil {
			t.Fatal(err)
		}
		if off, _ := message.View(rec).Property(message.PropInnerMultiQueueOffset); string(off) != fmt.Sprint(q.MaxOffset) {
			t.Errorf("%s goes on at %s, want %d", q.Topic, off, q.MaxOffset)
		}
	}
}

// A topic with batch queues keeps a batch as one record; consumers take it apart.
func TestBatchTopic(t *testing.T) {
	dir := t.TempDir()
	r := start(t, testConfig(dir))
	r.createTyped("T", 1, "+queue.type=BatchCQ")
	batch := func(r *running, from, n int) *remoting.Command {
		t.Helper()
		var body []byte
		for i := range n {
			body = message.AppendBatchItem(body, 0, []byte(fmt.Sprint("m", from+i)), []byte(prop("KEYS", fmt.Sprint("k", i))))
		}
		h := sendHeaderOf("T", 0, prop("UNIQ_KEY", fmt.Sprint("BATCH", from), "WAIT", "true"))
		h.Batch = true
		return r.ok(remoting.ReqSendBatchMessage, h, body)
	}
	resp := batch(r, 0, 3)
	f := resp.Fields
	if f.String("batchUniqId") != "BATCH0" || f.String("queueOffset") != "0" || strings.Contains(f.String("msgId"), ",") {
		t.Errorf("%v", f)
	}
	if off := r.send("T", 0, "", "m3").Fields.String("queueOffset"); off != "3" {
		t.Errorf("the message behind it got the offset %s", off)
	}
	batch(r, 4, 2)
	r.stop()
	r = start(t, testConfig(dir))
	batch(r, 6, 2)
	rec := records(t, r.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), nil).Body)
	var got []string
	for m, err := range message.DecodeMessages(r.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), nil).Body, message.ReceiveOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d:%s", m.QueueOffset, m.Body))
	}
	if want := []string{"0:m0", "1:m1", "2:m2", "3:m3", "4:m4", "5:m5", "6:m6", "7:m7"}; !slices.Equal(got, want) {
		t.Errorf("consumers get %v", got)
	}
	props := message.ParseProperties(rec[0].Properties)
	if props["INNER_NUM"] != "3" || props["INNER_BASE"] != "0" || props["CLUSTER"] != "C" || rec[0].SysFlag&0xC0 != 0xC0 {
		t.Errorf("the record has the properties %v and flags %#x", props, rec[0].SysFlag)
	}
	if end := r.ok(remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetHeader{Topic: "T", QueueID: 0}, nil).Fields.String("offset"); end != "8" {
		t.Errorf("max offset %s", end)
	}
	// Elsewhere a message cannot say that it is a batch.
	r.createTopic("Simple", 1)
	h := sendHeaderOf("Simple", 0, prop("INNER_NUM", "5"))
	if resp := r.call(remoting.ReqSendMessageV2, h, []byte("x")); resp.Code != remoting.RespMessageIllegal {
		t.Errorf("INNER_NUM: %d %s", resp.Code, resp.Remark)
	}
	h = sendHeaderOf("Simple", 0, "")
	h.SysFlag = message.FlagInnerBatch
	if resp := r.call(remoting.ReqSendMessageV2, h, []byte("x")); resp.Code != remoting.RespMessageIllegal {
		t.Errorf("flag: %d %s", resp.Code, resp.Remark)
	}
}

// The priority of a message chooses its queue.
func TestPriority(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTyped("T", 4, "+message.type=PRIORITY")
	for _, tt := range []struct {
		props string
		queue string
		kept  bool
	}{
		{prop("_SYS_MSG_PRIORITY_", "2"), "2", true},
		{prop("_SYS_MSG_PRIORITY_", "9"), "3", true},
		{prop("_SYS_MSG_PRIORITY_", "-1"), "1", true},
		{prop("_SYS_MSG_PRIORITY_", "high"), "1", true},
		{prop("_SYS_MSG_PRIORITY_", "2", "__SHARDINGKEY", "k"), "1", false},
		{"", "1", false},
	} {
		resp := r.send("T", 1, tt.props, "x")
		if q := resp.Fields.String("queueId"); q != tt.queue {
			t.Errorf("%q: queue %s, want %s", tt.props, q, tt.queue)
		}
		_, at, err := message.ParseOffsetID(resp.Fields.String("msgId"))
		if err != nil {
			t.Fatal(err)
		}
		rec, err := r.store.RecordAt(at)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := message.View(rec).Property("_SYS_MSG_PRIORITY_"); ok != tt.kept {
			t.Errorf("%q: kept %v", tt.props, ok)
		}
	}
	r.ok(remoting.ReqUpdateAndCreateSubscriptionGroup, nil, []byte(`{"groupName":"PG","attributes":{"+priority.factor":"40"}}`))
}

// N082: with light queues on, offsets behind their end are cut as others are; without them nobody knows the end.
func TestLightOffsetsBehindTheEnd(t *testing.T) {
	for light, want := range map[string]int64{"": 9, "lmqConsumerOffset.json": 5} {
		o := newOffsetTable(vfs.OS, filepath.Join(t.TempDir(), "consumerOffset.json"), fixedNow, 1, quiet)
		o.light = light
		o.set(offsetKey{"%LMQ%a", "G"}, 0, 9)
		o.cut(func(string, int32) int64 { return 5 })
		if got, _ := o.Committed("%LMQ%a", "G", 0); got != want {
			t.Errorf("light file %q: the offset is %d, want %d", light, got, want)
		}
	}
}
