package pop_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqx/broker/pop"
	"mqx/internal/testkit"
	"mqx/message"
)

// goldenRecords yields the records of the revive and timer topics of Apache's
// stores: tag, unique key and body.
func goldenRecords(t testing.TB, f func(variant, tag, key string, body []byte)) int {
	n := 0
	for _, variant := range []string{"pop", "pop_running", "pop_buffermerge", "v2"} {
		log := testkit.GoldenCommitLog(t, testkit.GoldenStore(t, variant))
		view := testkit.GoldenManifest(t, variant).StoreView
		for i := range view.CommitLogRecords {
			lr := &view.CommitLogRecords[i]
			if lr.IsBlank() {
				continue
			}
			rec, err := message.DecodeRecord(log.From(lr.Offset()), message.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			topic := string(rec.Topic)
			if topic != message.TopicTimer && !strings.HasPrefix(topic, message.TopicReviveLogPrefix) {
				continue
			}
			tag, _ := message.Property(rec.Properties, message.PropTags)
			key, _ := message.Property(rec.Properties, message.PropUniqKey)
			n++
			f(variant, string(tag), string(key), rec.Body)
		}
	}
	return n
}

// Bodies and unique keys of all recorded checkpoints and acks are written again
// to the byte.
func TestGoldenRecords(t *testing.T) {
	kinds := map[string]int{}
	n := goldenRecords(t, func(variant, tag, key string, body []byte) {
		rec, err := pop.ParseRecord(tag, body)
		if err != nil {
			t.Fatalf("%s: %v", variant, err)
		}
		kinds[tag]++
		var again []byte
		var uniq string
		switch {
		case rec.Checkpoint != nil:
			again, uniq = rec.Checkpoint.AppendBody(nil), rec.Checkpoint.UniqKey()
		case rec.Ack != nil:
			again, uniq = rec.Ack.AppendBody(nil), rec.Ack.UniqKey()
			if rec.Ack.Tag() != tag {
				t.Errorf("%s: tag %s of %s", variant, rec.Ack.Tag(), body)
			}
		default:
			t.Fatalf("%s: a record of tag %q", variant, tag)
		}
		if !bytes.Equal(again, body) {
			t.Errorf("%s: %s\nis written as %s", variant, body, again)
		}
		if uniq != key {
			t.Errorf("%s: key %s, Apache's is %s", variant, uniq, key)
		}
	})
	if n < 20 || kinds[pop.TagCheckpoint] == 0 || kinds[pop.TagAck] == 0 {
		t.Errorf("only %d records: %v", n, kinds)
	}
}

func TestBatchAckBody(t *testing.T) {
	a := &pop.Ack{Offset: -1, Offsets: []int64{3, 5}, Group: "G", PopTime: 7, Queue: 1, Start: 2, Topic: "T"}
	want := `{"ao":-1,"aol":[3,5],"c":"G","pt":7,"q":1,"so":2,"t":"T"}`
	if got := string(a.AppendBody(nil)); got != want || a.Tag() != pop.TagBatchAck {
		t.Errorf("%s %s", a.Tag(), got)
	}
	long := `{"ackOffset":-1,"ackOffsetList":[3,5],"consumerGroup":"G","popTime":7,"queueId":1,"startOffset":2,"topic":"T"}`
	rec, err := pop.ParseRecord(pop.TagBatchAck, []byte(long))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(a, rec.Ack); d != "" {
		t.Error(d)
	}
}

func TestReceipt(t *testing.T) {
	r := pop.Receipt{Start: 12, PopTime: 1795993739895, Invisible: 15000, ReviveQueue: 3, Kind: "1", Broker: "broker-w", Queue: 2, Offset: 14}
	text := "12 1795993739895 15000 3 1 broker-w 2 14"
	if got := string(r.Append(nil)); got != text {
		t.Errorf("%q", got)
	}
	for _, in := range []string{text, text + " 987654"} { // a proxy's handle has the log offset behind
		got, err := pop.ParseReceipt(in)
		if err != nil || got != r {
			t.Errorf("%q: %+v %v", in, got, err)
		}
	}
	short, err := pop.ParseReceipt("1 2 3 999 0 b")
	if err != nil || !short.Ordered() || short.Queue != -1 || short.Offset != -1 {
		t.Errorf("%+v %v", short, err)
	}
	for _, in := range []string{"", "1 2 3 4 0", "x 2 3 4 0 b", "1 2 3 99999999999 0 b", "1 2 3 4 0 b 7 x", "1 2 3 4 0 b x"} {
		if got, err := pop.ParseReceipt(in); err == nil {
			t.Errorf("%q was read as %+v", in, got)
		}
	}
}

func TestOffsetInfo(t *testing.T) {
	b := pop.AppendOffsets(nil, "0", 0, []int64{10, 11})
	b = pop.AppendOffsets(b, "1", 1, []int64{10})
	if string(b) != "0 0 10,11;1 1 10" {
		t.Errorf("%s", b)
	}
	b = pop.AppendStart(pop.AppendStart(nil, "0", 0, 10), "2", 1, 9)
	if string(b) != "0 0 10;2 1 9" {
		t.Errorf("%s", b)
	}
}

func TestTopicNames(t *testing.T) {
	for topic, want := range map[string]string{"T": "0", "%RETRY%G_T": "1", "%RETRY%G+T": "2", "T+x": "0"} {
		if got := pop.Kind(topic); got != want {
			t.Errorf("kind of %s is %s", topic, got)
		}
	}
	for _, kind := range []string{"0", "1", "2"} {
		name, err := pop.RealTopic("T_a", "G_b", kind)
		if err != nil || pop.Kind(name) != kind || pop.NormalTopic(name, "G_b") != "T_a" {
			t.Errorf("kind %s: %s, %v", kind, name, err)
		}
	}
	if _, err := pop.RealTopic("T", "G", "3"); err == nil {
		t.Error("kind 3")
	}
}

func TestParseBits(t *testing.T) {
	for text, want := range map[string][]int64{"HA==": {2, 3, 4}, "AQE=": {0, 8}, "": nil, "gA==": {7}} {
		got, err := pop.ParseBits(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"x", strings.Repeat("AAAA", 4000)} {
		if got, err := pop.ParseBits(text); err == nil {
			t.Errorf("%.20q: %d bits", text, len(got))
		}
	}
}

func TestAssign(t *testing.T) {
	clients := []string{"a", "b", "c"}
	for _, c := range []struct {
		strategy, client string
		n                int
		want             []int
	}{
		{pop.StrategyAverage, "a", 8, []int{0, 1, 2}},
		{pop.StrategyAverage, "b", 8, []int{3, 4, 5}},
		{pop.StrategyAverage, "c", 8, []int{6, 7}},
		{pop.StrategyAverage, "c", 2, nil},
		{pop.StrategyAverage, "b", 2, []int{1}},
		{pop.StrategyCircle, "b", 8, []int{1, 4, 7}},
		{pop.StrategyCircle, "c", 2, nil},
		{pop.StrategyAverage, "nobody", 8, nil},
	} {
		got, err := pop.Assign(c.strategy, c.client, c.n, clients)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s %s of %d: %v %v", c.strategy, c.client, c.n, got, err)
		}
	}
	for _, c := range []struct{ strategy, client string }{{"X", "a"}, {pop.StrategyAverage, ""}} {
		if _, err := pop.Assign(c.strategy, c.client, 8, clients); err == nil {
			t.Errorf("%+v", c)
		}
	}
	if got, all, err := pop.AssignPop(pop.StrategyAverage, "a", 8, clients, 1); err != nil || all || !slices.Equal(got, []int{0, 1, 2, 3, 4, 5}) {
		t.Errorf("share of one neighbour: %v %v %v", got, all, err)
	}
	for _, share := range []int{-1, 0, 2, 9} {
		if _, all, err := pop.AssignPop(pop.StrategyAverage, "a", 8, clients, share); err != nil || !all {
			t.Errorf("share %d: %v %v", share, all, err)
		}
	}
	if got, _, err := pop.AssignPop(pop.StrategyAverage, "c", 2, clients, 1); err != nil || !slices.Equal(got, []int{0}) {
		t.Errorf("more clients than queues: %v %v", got, err)
	}
}

// Apache's own file of ordered consumption is read and written again.
func TestGoldenOrderInfo(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testkit.GoldenStore(t, "pop"), "config", "consumerOrderInfo.json"))
	if err != nil {
		t.Fatal(err)
	}
	o := pop.NewOrders()
	if err := o.Decode(data); err != nil {
		t.Fatal(err)
	}
	q := pop.QueueKey{Topic: "PopOrderTopic", Group: "CG_pop_order", Queue: 0}
	if got := o.Offsets(q); !slices.Equal(got, []int64{0, 1, 2, 3}) {
		t.Errorf("%v", got)
	}
	const popTime = 1795993481146
	if !o.Blocked(q, "", 0, popTime+1) || o.Blocked(q, "att-796338709", 0, popTime+1) || o.Blocked(q, "", 0, popTime+60_000) {
		t.Error("the queue is closed at the wrong time, or to the wrong attempt")
	}
	again, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again, data) {
		t.Errorf("%s\nis written as\n%s", data, again)
	}
}

func FuzzParseRecord(f *testing.F) {
	n := 0
	goldenRecords(f, func(_, tag, _ string, body []byte) {
		if n++; n < 40 {
			f.Add(tag, body)
		}
	})
	f.Fuzz(func(t *testing.T, tag string, body []byte) {
		rec, err := pop.ParseRecord(tag, body)
		if err != nil || rec.Checkpoint == nil {
			return
		}
		c := rec.Checkpoint
		for i := range c.Count() {
			if c.IndexOf(c.OffsetAt(i)) < 0 && c.OffsetAt(i) >= c.Start {
				t.Errorf("message %d of %s is not found in it", i, body)
			}
		}
		again, err := pop.ParseRecord(tag, c.AppendBody(nil))
		if err != nil {
			t.Fatalf("%q is written as %q: %v", body, c.AppendBody(nil), err)
		}
		if !bytes.Equal(again.Checkpoint.AppendBody(nil), c.AppendBody(nil)) {
			t.Errorf("%q is not stable", body)
		}
	})
}

func FuzzParseReceipt(f *testing.F) {
	f.Add("12 1795993739895 15000 3 1 broker-w 2 14")
	f.Add("1 2 3 999 0 b")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := pop.ParseReceipt(text)
		if err != nil || r.Queue < 0 || r.Offset < 0 {
			return
		}
		again, err := pop.ParseReceipt(string(r.Append(nil)))
		if err != nil || again != r {
			t.Errorf("%q: %+v, again %+v %v", text, r, again, err)
		}
	})
}

func FuzzOrders(f *testing.F) {
	f.Add([]byte(`{"orderInfoCount":1,"table":{"T@G":{0:{"a":"x","cm":9,"i":60000,"l":1,"o":[0,1,2,3],"popTime":7}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o := pop.NewOrders()
		if o.Decode(data) != nil {
			return
		}
		for q := range o.All {
			o.Blocked(q, "", 1, 2)
			o.FreeAt(q, 3)
			o.Ack(q, 1, 7, 0)
		}
		if _, err := o.Encode(); err != nil {
			t.Error(err)
		}
	})
}
