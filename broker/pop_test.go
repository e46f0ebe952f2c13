package broker

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mqx/broker/pop"
	"mqx/internal/clock"
	"mqx/internal/fastjson"
	"mqx/internal/testkit"
	"mqx/message"
	"mqx/remoting"
)

// popping is a broker whose messages are popped.
type popping struct{ *running }

func startPop(t *testing.T, change func(*Config)) popping {
	t.Helper()
	cfg := testConfig(t.TempDir())
	cfg.ReviveEvery = 20 * time.Millisecond
	cfg.AckThreads, cfg.LoadThreads = 2, 2
	if change != nil {
		change(&cfg)
	}
	return popping{start(t, cfg)}
}

func popHeader(group, topic string, queue int32) *remoting.PopMessageHeader {
	return &remoting.PopMessageHeader{
		ConsumerGroup: group, Topic: topic, QueueID: queue, MaxMsgNums: 32, InvisibleTime: 60_000, BornTime: time.Now().UnixMilli(),
	}
}

// popped is one message of an answer, with its receipt.
type popped struct {
	body    string
	topic   string // of the answer
	real    string // where it lies
	queue   int32
	offset  int64
	receipt string
	rec     message.Record
}

// pop pops and reads the receipts out of the answer, as clients do.
func (p popping) pop(h *remoting.PopMessageHeader) []popped {
	p.t.Helper()
	resp := p.call(remoting.ReqPopMessage, h, nil)
	if resp.Code != remoting.RespSuccess {
		if resp.Code != remoting.RespPollingTimeout {
			p.t.Fatalf("pop: %s: %s", remoting.ResponseName(resp.Code), resp.Remark)
		}
		return nil
	}
	return p.receipts(h, resp)
}

func (p popping) receipts(h *remoting.PopMessageHeader, resp *remoting.Command) []popped {
	p.t.Helper()
	f := resp.Fields
	popTime, _, _ := f.Int64("popTime")
	invisible, _, _ := f.Int64("invisibleTime")
	rq, _, _ := f.Int32("reviveQid")
	starts, offsets := map[string]int64{}, map[string][]string{}
	for entry := range strings.SplitSeq(f.String("startOffsetInfo"), ";") {
		part := strings.Split(entry, " ")
		starts[part[0]+" "+part[1]], _ = strconv.ParseInt(part[2], 10, 64)
	}
	for entry := range strings.SplitSeq(f.String("msgOffsetInfo"), ";") {
		part := strings.Split(entry, " ")
		offsets[part[0]+" "+part[1]] = strings.Split(part[2], ",")
	}
	var out []popped
	for _, rec := range records(p.t, resp.Body) {
		m := popped{body: string(rec.Body), topic: string(rec.Topic), real: string(rec.Topic), queue: rec.QueueID, offset: rec.QueueOffset, rec: rec}
		if ck, ok := message.Property(rec.Properties, message.PropPopCK); ok {
			m.receipt = string(ck)
			rc, err := pop.ParseReceipt(m.receipt)
			if err != nil {
				p.t.Fatal(err)
			}
			if m.real, err = pop.RealTopic(h.Topic, h.ConsumerGroup, rc.Kind); err != nil {
				p.t.Fatal(err)
			}
		} else {
			key := fmt.Sprintf("%s %d", pop.Kind(m.real), m.queue)
			if !slices.Contains(offsets[key], fmt.Sprint(m.offset)) {
				p.t.Fatalf("message at %s %d is not in %v", key, m.offset, offsets)
			}
			rc := pop.Receipt{Start: starts[key], PopTime: popTime, Invisible: invisible, ReviveQueue: rq, Kind: "0", Broker: "b", Queue: m.queue, Offset: m.offset}
			m.receipt = string(rc.Append(nil))
		}
		out = append(out, m)
	}
	return out
}

func (p popping) ack(group string, m popped) {
	p.t.Helper()
	p.ok(remoting.ReqAckMessage, &remoting.AckMessageHeader{
		ConsumerGroup: group, Topic: m.real, QueueID: m.queue, ExtraInfo: m.receipt, Offset: m.offset,
	}, nil)
}

func bodies(ms []popped) []string {
	var out []string
	for _, m := range ms {
		out = append(out, m.body)
	}
	slices.Sort(out)
	return out
}

// collect pops until n messages have come, and a little longer.
func (p popping) collect(group, topic string, n int, invisible int64) []popped {
	p.t.Helper()
	var out []popped
	waitFor(p.t, fmt.Sprintf("%d messages of %s", n, topic), func() bool {
		h := popHeader(group, topic, -1)
		h.InvisibleTime = invisible
		out = append(out, p.pop(h)...)
		return len(out) >= n
	})
	h := popHeader(group, topic, -1)
	return append(out, p.pop(h)...)
}

// N069, N070, N072: what is acknowledged before its time does not come back;
// what is not comes back once, as it was, with one attempt more.
func TestPopRevivesWhatIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	for _, merge := range []bool{false, true} {
		for _, v2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("merge=%v,v2=%v", merge, v2), func(t *testing.T) {
				t.Parallel()
				p := startPop(t, func(c *Config) {
					c.PopMerge, c.PopRetryV2, c.PopEarly, c.PopStay = merge, v2, 100*time.Millisecond, time.Second
				})
				p.createTopic("T", 2)
				for i := range 20 {
					p.send("T", int32(i%2), prop("TAGS", "a", "KEYS", fmt.Sprint("k", i)), fmt.Sprint("m", i))
				}
				h := popHeader("G", "T", -1)
				h.InvisibleTime = 2000
				first := p.pop(h)
				if len(first) != 20 {
					t.Fatalf("popped %d of 20", len(first))
				}
				if got := p.pop(popHeader("G", "T", -1)); len(got) != 0 {
					t.Fatalf("invisible messages were popped: %v", bodies(got))
				}
				var lost []string
				for i, m := range first {
					if i%3 == 0 {
						lost = append(lost, m.body)
						continue
					}
					p.ack("G", m)
				}
				slices.Sort(lost)
				again := p.collect("G", "T", len(lost), 60_000)
				if got := bodies(again); !slices.Equal(got, lost) {
					t.Fatalf("came back: %v, not acknowledged were %v", got, lost)
				}
				retry := message.PopRetryTopic("G", "T", v2)
				for _, m := range again {
					props := message.ParseProperties(m.rec.Properties)
					if m.topic != "T" || m.real != retry || m.rec.ReconsumeTimes != 1 || props["ORIGIN_GROUP"] != "G" || props["TAGS"] != "a" ||
						props["1ST_POP_TIME"] == "" || props["KEYS"] == "" {
						t.Errorf("%s in %s: attempts %d, %v", m.topic, m.real, m.rec.ReconsumeTimes, props)
					}
					p.ack("G", m)
				}
			})
		}
	}
}

func TestPopChangeInvisibleTime(t *testing.T) {
	t.Parallel()
	p := startPop(t, nil)
	p.createTopic("T", 1)
	p.send("T", 0, "", "a")
	p.send("T", 0, "", "b")
	h := popHeader("G", "T", 0)
	h.InvisibleTime = 1500
	got := p.pop(h)
	if len(got) != 2 {
		t.Fatal(bodies(got))
	}
	for i, m := range got {
		resp := p.ok(remoting.ReqChangeMessageInvisibleTime, &remoting.ChangeMessageInvisibleTimeHeader{
			ConsumerGroup: "G", Topic: "T", QueueID: 0, ExtraInfo: m.receipt, Offset: m.offset, InvisibleTime: 1000, Suspend: i == 1,
		}, nil)
		if resp.Fields.String("invisibleTime") != "1000" || resp.Fields.String("popTime") == "" || resp.Fields.String("reviveQid") == "" {
			t.Errorf("%v", resp.Fields)
		}
	}
	again := p.collect("G", "T", 2, 60_000)
	if got := bodies(again); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatal(got)
	}
	for _, m := range again {
		if want := map[string]int32{"a": 1, "b": 0}[m.body]; m.rec.ReconsumeTimes != want {
			t.Errorf("%s was tried %d times, want %d", m.body, m.rec.ReconsumeTimes, want)
		}
	}
	resp := p.call(remoting.ReqChangeMessageInvisibleTime, &remoting.ChangeMessageInvisibleTimeHeader{
		ConsumerGroup: "G", Topic: "T", ExtraInfo: got[0].receipt, Offset: 99, InvisibleTime: 1000,
	}, nil)
	if resp.Code != remoting.RespNoMessage {
		t.Errorf("an offset beyond the queue: %s", remoting.ResponseName(resp.Code))
	}
}

// N074: many changes of invisible times at once are worked off in bounded steps.
func TestPopManyChangesAtOnce(t *testing.T) {
	t.Parallel()
	p := startPop(t, nil)
	p.createTopic("T", 1)
	const n = 600
	for i := range n {
		p.send("T", 0, "", fmt.Sprint(i))
	}
	for popped := 0; popped < n; {
		h := popHeader("G", "T", 0)
		h.InvisibleTime = 1500
		got := p.pop(h)
		popped += len(got)
		for _, m := range got {
			p.ok(remoting.ReqChangeMessageInvisibleTime, &remoting.ChangeMessageInvisibleTimeHeader{
				ConsumerGroup: "G", Topic: "T", ExtraInfo: m.receipt, Offset: m.offset, InvisibleTime: 500,
			}, nil)
		}
	}
	if got := bodies(p.collect("G", "T", n, 600_000)); len(slices.Compact(got)) != n || len(got) != n {
		t.Errorf("%d messages, %d different of %d", len(got), len(slices.Compact(got)), n)
	}
}

func TestPopBatchAck(t *testing.T) {
	t.Parallel()
	p := startPop(t, nil)
	p.createTopic("T", 1)
	for i := range 8 {
		p.send("T", 0, "", fmt.Sprint("m", i))
	}
	h := popHeader("G", "T", 0)
	h.InvisibleTime = 1500
	got := p.pop(h)
	if len(got) != 8 {
		t.Fatal(len(got))
	}
	rc, err := pop.ParseReceipt(got[0].receipt)
	if err != nil {
		t.Fatal(err)
	}
	body, err := fastjson.Marshal(remoting.BatchAckBody{BrokerName: "b", Acks: []remoting.BatchAck{{
		BitSet: "0w==", ConsumerGroup: "G", InvisibleTime: rc.Invisible, PopTime: rc.PopTime, Retry: "0", ReviveQueueID: rc.ReviveQueue,
		StartOffset: rc.Start, Topic: "T", // 0xd3: 0, 1, 4, 6, 7
	}}})
	if err != nil {
		t.Fatal(err)
	}
	p.ok(remoting.ReqBatchAckMessage, nil, body)
	if got := bodies(p.collect("G", "T", 3, 60_000)); !slices.Equal(got, []string{"m2", "m3", "m5"}) {
		t.Error(got)
	}
	if resp := p.call(remoting.ReqBatchAckMessage, nil, nil); resp.Code != remoting.RespNoMessage {
		t.Errorf("an empty batch: %s", remoting.ResponseName(resp.Code))
	}
}

func TestPopWaitsForMessages(t *testing.T) {
	t.Parallel()
	p := startPop(t, nil)
	p.createTopic("T", 2)
	answers := make(chan []popped, 2)
	ask := func(tags string) {
		h := popHeader("G", "T", -1)
		h.PollTime = 10_000
		if tags != "" {
			h.Exp, h.ExpType = tags, "TAG"
		}
		resp, err := p.c.Call(t.Context(), p.addr, remoting.NewRequest(remoting.ReqPopMessage, h))
		if err != nil || resp.Code != remoting.RespSuccess {
			answers <- nil
			return
		}
		answers <- p.receipts(h, resp)
	}
	go ask("")
	waitFor(t, "a held pop", func() bool {
		resp := p.ok(remoting.ReqPollingInfo, &remoting.PollingInfoHeader{ConsumerGroup: "G", Topic: "T", QueueID: -1}, nil)
		return resp.Fields.String("pollingNum") == "1"
	})
	p.send("T", 1, "", "x")
	if got := bodies(<-answers); !slices.Equal(got, []string{"x"}) {
		t.Errorf("woken with %v", got)
	}
	go ask("wanted")
	waitFor(t, "a held pop", func() bool { return p.pops.hold.Len("T", "G", -1) == 1 })
	p.send("T", 0, prop("TAGS", "other"), "y")
	p.send("T", 0, prop("TAGS", "wanted"), "z")
	if got := bodies(<-answers); !slices.Equal(got, []string{"z"}) {
		t.Errorf("woken with %v", got)
	}
	h := popHeader("G", "T", -1)
	h.PollTime = 300
	began := time.Now()
	resp := p.call(remoting.ReqPopMessage, h, nil)
	if took := time.Since(began); resp.Code != remoting.RespPollingTimeout || took < 200*time.Millisecond || took > 5*time.Second {
		t.Errorf("%s after %v", remoting.ResponseName(resp.Code), took)
	}
	h.BornTime -= 10_000
	if resp := p.call(remoting.ReqPopMessage, h, nil); resp.Code != remoting.RespPollingTimeout {
		t.Errorf("a pop of long ago: %s", remoting.ResponseName(resp.Code))
	}
}

// N077: a group that only waits has no lag, whatever came that it does not want.
func TestPopThatWaitsHasNoLag(t *testing.T) {
	t.Parallel()
	p := startPop(t, nil)
	p.createTopic("T", 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		h := popHeader("G", "T", -1)
		h.PollTime, h.Exp, h.ExpType = 10_000, "wanted", "TAG"
		_, _ = p.c.Call(t.Context(), p.addr, remoting.NewRequest(remoting.ReqPopMessage, h))
	}()
	waitFor(t, "a held pop", func() bool { return p.pops.hold.Len("T", "G", -1) == 1 })
	for range 5 {
		p.send("T", 0, prop("TAGS", "other"), "x")
	}
	var stats remoting.ConsumeStats
	decode(t, p.ok(remoting.ReqGetConsumeStats, &remoting.GetConsumeStatsHeader{ConsumerGroup: "G", Topic: "T"}, nil), &stats)
	for q, w := range stats.OffsetTable {
		if w.ConsumerOffset != w.BrokerOffset || w.BrokerOffset != 5 {
			t.Errorf("%+v: %+v", q, w)
		}
	}
	if len(stats.OffsetTable) != 1 || p.pops.hold.Len("T", "G", -1) != 1 {
		t.Errorf("%d queues, %d held pops", len(stats.OffsetTable), p.pops.hold.Len("T", "G", -1))
	}
	p.send("T", 0, prop("TAGS", "wanted"), "y")
	<-done
}

func TestPopHoldIsBounded(t *testing.T) {
	t.Parallel()
	p := startPop(t, func(c *Config) { c.MaxPopPolling = 1 })
	p.createTopic("T", 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		h := popHeader("G", "T", 0)
		h.PollTime = 10_000
		_, _ = p.c.Call(t.Context(), p.addr, remoting.NewRequest(remoting.ReqPopMessage, h))
	}()
	waitFor(t, "a held pop", func() bool { return p.pops.hold.Len("T", "G", 0) == 1 })
	h := popHeader("G", "T", 0)
	h.PollTime = 10_000
	if resp := p.call(remoting.ReqPopMessage, h, nil); resp.Code != remoting.RespPollingFull {
		t.Errorf("one too many: %s", remoting.ResponseName(resp.Code))
	}
	p.send("T", 0, "", "x")
	<-done
}

func TestPopNotificationAndPeek(t *testing.T) {
	t.Parallel()
	p := startPop(t, nil)
	p.createTopic("T", 2)
	ask := func(poll int64, exp string) *remoting.Command {
		return p.ok(remoting.ReqNotification, &remoting.NotificationHeader{
			ConsumerGroup: "G", Topic: "T", QueueID: -1, PollTime: poll, BornTime: time.Now().UnixMilli(), Exp: exp, ExpType: "TAG",
		}, nil)
	}
	if got := ask(0, ""); got.Fields.String("hasMsg") != "false" || got.Fields.String("pollingFull") != "false" {
		t.Errorf("%v", got.Fields)
	}
	told := make(chan string, 1)
	go func() { told <- ask(10_000, "").Fields.String("hasMsg") }()
	waitFor(t, "a held notification", func() bool { return p.pops.notices.Len("T", "G", -1) == 1 })
	p.send("T", 1, prop("TAGS", "a"), "x")
	if got := <-told; got != "true" {
		t.Errorf("hasMsg %s", got)
	}
	if got := ask(0, "b").Fields.String("hasMsg"); got != "false" {
		t.Errorf("a message of another tag: hasMsg %s", got)
	}
	for range 2 {
		resp := p.ok(remoting.ReqPeekMessage, &remoting.PeekMessageHeader{ConsumerGroup: "G", Topic: "T", QueueID: -1, MaxMsgNums: 8}, nil)
		if recs := records(t, resp.Body); len(recs) != 1 || string(recs[0].Body) != "x" || resp.Fields.String("restNum") != "1" {
			t.Errorf("peek: %d messages, %v", len(recs), resp.Fields)
		}
	}
	if got := p.pop(popHeader("G", "T", -1)); len(got) != 1 {
		t.Errorf("popped %v", bodies(got))
	}
	resp := p.call(remoting.ReqPeekMessage, &remoting.PeekMessageHeader{ConsumerGroup: "G", Topic: "T", QueueID: -1, MaxMsgNums: 8}, nil)
	if resp.Code != remoting.RespPullNotFound {
		t.Errorf("peek of nothing: %s", remoting.ResponseName(resp.Code))
	}
}

func TestOrderedPop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startPop(t, func(c *Config) { c.Store.RootDir = dir })
	p.createTopic("T", 1)
	for i := range 6 {
		p.send("T", 0, "", fmt.Sprint("m", i))
	}
	ask := func(attempt string, invisible int64) *remoting.PopMessageHeader {
		h := popHeader("G", "T", 0)
		h.Order, h.AttemptID, h.MaxMsgNums, h.InvisibleTime = true, attempt, 3, invisible
		return h
	}
	first := p.pop(ask("a1", 60_000))
	if got := bodies(first); !slices.Equal(got, []string{"m0", "m1", "m2"}) {
		t.Fatal(got)
	}
	if got := p.pop(ask("a2", 60_000)); len(got) != 0 {
		t.Fatalf("a closed queue gave %v", bodies(got))
	}
	if got := bodies(p.pop(ask("a1", 60_000))); !slices.Equal(got, []string{"m0", "m1", "m2"}) {
		t.Fatalf("the same attempt got %v", got)
	}
	p.stop()
	p = startPop(t, func(c *Config) { c.Store.RootDir = dir })
	if got := p.pop(ask("a2", 60_000)); len(got) != 0 {
		t.Fatalf("after a restart a closed queue gave %v", bodies(got))
	}
	held := p.pop(ask("a1", 1000))
	for _, m := range held[:2] {
		p.ack("G", m)
	}
	if off, _ := p.offsets.Committed("T", "G", 0); off != 2 {
		t.Errorf("committed %d, want 2", off)
	}
	// m2 is not acknowledged: it comes again, first, when its time is over; who waits is woken then.
	h := ask("a3", 60_000)
	h.PollTime = 10_000
	resp := p.ok(remoting.ReqPopMessage, h, nil)
	again := p.receipts(h, resp)
	if again[0].body != "m2" || len(again) != 3 {
		t.Fatalf("%v", bodies(again))
	}
	if info := resp.Fields.String("orderCountInfo"); info != "0 qo0%2 1;0 0 0" {
		t.Errorf("orderCountInfo %q", info)
	}
	p.ok(remoting.ReqChangeMessageInvisibleTime, &remoting.ChangeMessageInvisibleTimeHeader{
		ConsumerGroup: "G", Topic: "T", ExtraInfo: again[0].receipt, Offset: again[0].offset, InvisibleTime: 700,
	}, nil)
	for _, m := range again[1:] {
		p.ack("G", m)
	}
	h = ask("a4", 60_000)
	h.PollTime = 10_000
	last := p.receipts(h, p.ok(remoting.ReqPopMessage, h, nil))
	if last[0].body != "m2" {
		t.Errorf("%v", bodies(last))
	}
	// One that was never handed out.
	bad := last[0]
	bad.offset = 4
	resp = p.call(remoting.ReqAckMessage, &remoting.AckMessageHeader{ConsumerGroup: "G", Topic: "T", ExtraInfo: bad.receipt, Offset: 99}, nil)
	if resp.Code != remoting.RespNoMessage {
		t.Errorf("%s", remoting.ResponseName(resp.Code))
	}
}

// N071: a topic that was made anew does not keep revival busy with old offsets.
func TestPopOfARecreatedTopic(t *testing.T) {
	t.Parallel()
	p := startPop(t, nil)
	p.createTopic("T", 1)
	for i := range 5 {
		p.send("T", 0, "", fmt.Sprint("old", i))
	}
	h := popHeader("G", "T", 0)
	h.InvisibleTime = 1500
	if got := p.pop(h); len(got) != 5 {
		t.Fatal(len(got))
	}
	p.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: "T"}, nil)
	p.createTopic("T", 1)
	p.send("T", 0, "", "new")
	if got := bodies(p.pop(popHeader("G", "T", 0))); !slices.Equal(got, []string{"new"}) {
		t.Fatal(got)
	}
	waitFor(t, "the old checkpoint", func() bool { return p.pops.revived.gone.Load() > 0 })
	if got := p.pop(popHeader("G", "T", 0)); len(got) != 0 {
		t.Errorf("%v", bodies(got))
	}
}

// N076: group and topic that together are longer than an ordinary topic name.
// N071: the same when the broker was stopped meanwhile and remembers no deletion.
func TestPopOfARecreatedTopicAfterAStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := func() Config {
		cfg := testConfig(dir)
		cfg.ReviveEvery = 20 * time.Millisecond
		return cfg
	}
	p := popping{start(t, config())}
	p.createTopic("T", 1)
	for i := range 3 {
		p.send("T", 0, "", fmt.Sprint("old", i))
	}
	h := popHeader("G", "T", 0)
	h.InvisibleTime = 3000
	if got := p.pop(h); len(got) != 3 {
		t.Fatal(len(got))
	}
	p.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: "T"}, nil)
	p.createTopic("T", 1)
	for i := range 3 {
		p.send("T", 0, "", fmt.Sprint("new", i))
	}
	p.stop()
	p = popping{start(t, config())}
	waitFor(t, "the old checkpoint", func() bool { return p.pops.revived.gone.Load() >= 3 })
	var got []string
	for range 3 {
		got = append(got, bodies(p.pop(popHeader("G", "T", -1)))...)
	}
	if slices.Sort(got); !slices.Equal(got, []string{"new0", "new1", "new2"}) {
		t.Errorf("popped %v", got)
	}
}

func TestPopWithLongNames(t *testing.T) {
	t.Parallel()
	group, topic := strings.Repeat("g", 120), strings.Repeat("t", 127)
	p := startPop(t, nil)
	p.createTopic(topic, 1)
	p.send(topic, 0, "", "x")
	h := popHeader(group, topic, 0)
	h.InvisibleTime = 1000
	if got := p.pop(h); len(got) != 1 {
		t.Fatal(len(got))
	}
	again := p.collect(group, topic, 1, 60_000)
	if len(again) != 1 || again[0].topic != topic {
		t.Fatalf("%v", bodies(again))
	}
	p.ack(group, again[0])
	p.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: topic}, nil)
	if p.topics.Get(message.PopRetryTopic(group, topic, false)) != nil {
		t.Error("the retry topic is left")
	}
}

// What the buffer holds at a stop is not lost, and what was acknowledged does
// not come again.
func TestPopMergeSurvivesAStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	merge := func(c *Config) { c.Store.RootDir, c.PopMerge = dir, true }
	p := startPop(t, merge)
	p.createTopic("T", 1)
	for i := range 4 {
		p.send("T", 0, "", fmt.Sprint("m", i))
	}
	h := popHeader("G", "T", 0)
	h.InvisibleTime = 6000
	got := p.pop(h)
	if len(got) != 4 {
		t.Fatal(len(got))
	}
	for _, m := range got[1:] {
		p.ack("G", m)
	}
	if n := p.store.MaxOffset(message.TopicTimer, 0); n != 0 {
		t.Errorf("%d records were written", n)
	}
	p.stop()
	p = startPop(t, merge)
	if off, _ := p.offsets.Committed("T", "G", 0); off != 4 {
		t.Errorf("committed %d, want 4", off)
	}
	if got := bodies(p.collect("G", "T", 1, 60_000)); !slices.Equal(got, []string{"m0"}) {
		t.Errorf("%v", got)
	}
}

// Answers to recorded pops are Apache's, but for times and the place a pop of
// all queues begins at.
func TestGoldenPop(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.BrokerClusterName, cfg.BrokerName = "WireCluster", "broker-w"
	cfg.AdminThreads = 8
	ck := clock.NewManual(time.Now())
	cfg.Clock = ck
	rp := &replay{clock: ck, t: t, r: start(t, cfg), conns: map[int]*replayConn{}, tainted: map[string]bool{}, answered: map[int32]int{}}
	rp.file = "java_pop_JSON"
	rp.run(testkit.GoldenWire(t, rp.file))
	for _, code := range []int32{
		remoting.ReqPopMessage, remoting.ReqAckMessage, remoting.ReqBatchAckMessage, remoting.ReqChangeMessageInvisibleTime,
		remoting.ReqQueryAssignment, remoting.ReqSetMessageRequestMode,
	} {
		if rp.answered[code] == 0 {
			t.Errorf("no answer to %s was compared", remoting.RequestName(code))
		}
	}
	t.Log(rp.answered)
}

// The revive queues are taken in turn for ever: the turn must not become
// negative when its counter overflows.
func TestPopReviveTurnOverflows(t *testing.T) {
	t.Parallel()
	p := startPop(t, nil)
	p.createTopic("T", 1)
	p.pops.turn.Store(math.MaxInt32 - 1)
	for i := range 5 {
		p.send("T", 0, "", fmt.Sprint("m", i))
		resp := p.ok(remoting.ReqPopMessage, popHeader("G", "T", 0), nil)
		if rq, _, err := resp.Fields.Int32("reviveQid"); err != nil || rq < 0 || rq > 7 {
			t.Errorf("pop %d: revive queue %d, %v", i, rq, err)
		}
	}
}

// More revive queues than the topic was made with, and fewer than there were:
// what was popped is revived either way.
func TestPopReviveQueuesChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	with := func(n int) popping {
		return startPop(t, func(c *Config) { c.Store.RootDir, c.ReviveQueueNum = dir, n })
	}
	p := with(2)
	p.createTopic("T", 1)
	for i, n := range []int{4, 1} {
		p.send("T", 0, "", fmt.Sprint("m", i))
		p.pops.turn.Store(3)
		h := popHeader("G", "T", 0)
		h.InvisibleTime = 1000
		if got := bodies(p.pop(h)); len(got) != 1 {
			t.Fatalf("popped %v", got)
		}
		p.stop()
		p = with(n)
		p.ackAll("G", p.collect("G", "T", 1, 60_000))
	}
}

func (p popping) ackAll(group string, ms []popped) {
	for _, m := range ms {
		p.ack(group, m)
	}
}
