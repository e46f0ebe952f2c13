package broker

import (
	"encoding/json"
	"strings"
	"testing"

	"mqx/message"
	"mqx/remoting"
)

// QUERY_CONSUME_QUEUE tells what a group wants of the topic, and of each unit its extension and whether it may pass.
func TestQueryQueueOfFilteredGroup(t *testing.T) {
	cfg := filterConfig(t)
	cfg.Store.EnableConsumeQueueExt, cfg.CalcFilterBitMap = true, true
	r := start(t, cfg)
	r.createTopic("T", 1)
	r.heartbeat("G", remoting.Clustering, subSQL("T", "a = 1", 10))
	r.heartbeat("Tags", remoting.Clustering, remoting.SubscriptionData{Topic: "T", SubString: "x", TagsSet: []string{"x"}, CodeSet: []int32{message.JavaHash([]byte("x"))}, SubVersion: 10})
	born := r.filters.Get([]byte("T"), []byte("G")).born
	waitFor(t, "a message younger than the subscription", func() bool { return r.now().UnixMilli() > born })
	for _, p := range []string{prop("a", "1", "TAGS", "x"), prop("a", "2")} {
		r.send("T", 0, p, "m")
	}
	r.settle()
	ask := func(group string) (q remoting.QueryConsumeQueueBody) {
		decode(t, r.ok(remoting.ReqQueryConsumeQueue, &remoting.QueryConsumeQueueHeader{Topic: "T", Count: 10, ConsumerGroup: group}, nil), &q)
		if q.MaxQueueIndex != 2 || len(q.QueueData) != 2 {
			t.Fatalf("%+v", q)
		}
		return q
	}
	q := ask("G")
	var data struct {
		Expression      string
		BloomFilterData struct{ BitNum int }
	}
	if err := json.Unmarshal([]byte(q.FilterData), &data); err != nil || data.Expression != "a = 1" || data.BloomFilterData.BitNum != 112 || q.SubscriptionData == nil {
		t.Errorf("%v %q", err, q.FilterData)
	}
	if !q.QueueData[0].Eval || q.QueueData[1].Eval {
		t.Errorf("%+v", q.QueueData)
	}
	var ext struct {
		FilterBitMap           []int
		MsgStoreTime, TagsCode int64
		Size                   int
	}
	if err := json.Unmarshal([]byte(q.QueueData[0].ExtendDataJSON), &ext); err != nil || len(ext.FilterBitMap) != 14 || ext.Size != 34 || ext.MsgStoreTime == 0 || ext.TagsCode != q.QueueData[0].TagsCode {
		t.Errorf("%v %q", err, q.QueueData[0].ExtendDataJSON)
	}
	if bits := strings.ReplaceAll(q.QueueData[0].BitMap, "\n", ""); len(bits) != 112 || strings.Count(bits, "1") != 3 || strings.Contains(q.QueueData[1].BitMap, "1") {
		t.Errorf("%q %q", q.QueueData[0].BitMap, q.QueueData[1].BitMap)
	}
	if q := ask("Tags"); q.FilterData != "null" || !q.QueueData[0].Eval || q.QueueData[1].Eval {
		t.Errorf("%+v", q)
	}
	if q := ask("nobody"); q.FilterData != "nobody@T is not online!" || q.SubscriptionData != nil || q.QueueData[0].Eval {
		t.Errorf("%+v", q)
	}
	if q := ask(""); q.FilterData != "" {
		t.Errorf("%+v", q)
	}
}
