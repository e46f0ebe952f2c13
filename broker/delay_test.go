package broker

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/clock"
	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
)

// delayConfigOf is a broker whose delays are short.
func delayConfigOf(t *testing.T, levels string) Config {
	t.Helper()
	cfg := testConfig(t.TempDir())
	cfg.Store.MessageDelayLevel = levels
	cfg.FlushDelayOffset = 20 * time.Millisecond
	return cfg
}

// waitRecords waits until a queue holds n messages and returns them.
func (r *running) waitRecords(topic string, q int32, n int) []message.Record {
	r.t.Helper()
	waitFor(r.t, topic, func() bool { return r.store.MaxOffset(topic, q) >= int64(n) })
	var out []message.Record
	for off := range r.store.MaxOffset(topic, q) {
		units, err := r.store.Units(topic, q, off, 1)
		if err != nil || len(units) != 1 {
			r.t.Fatalf("%v %v", units, err)
		}
		b, err := r.store.RecordAt(units[0].PhysicalOffset)
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, records(r.t, b)...)
	}
	if len(out) != n {
		r.t.Fatalf("%s/%d holds %d messages, want %d", topic, q, len(out), n)
	}
	return out
}

// A delayed message waits in the queue of its level and comes to its topic when
// it is due, not before; the copy is the message as it waited but for topic and
// queue. The sender is told the queue of the topic.
func TestDelayedMessage(t *testing.T) {
	r := start(t, delayConfigOf(t, " 1s\t 2s  3h "))
	r.createTopic("T", 4)
	h := sendHeaderOf("T", 3, prop("DELAY", "1", "TAGS", "a", "UNIQ_KEY", "K", "TIMER_DELAY_SEC", "9", "TIMER_DELIVER_MS", "8", "TIMER_DELAY_MS", "7"))
	h.ReconsumeTimes, h.Flag, h.BornTimestamp = 2, 5, 12345
	resp := r.ok(remoting.ReqSendMessageV2, h, []byte("body"))
	if q := resp.Fields.String("queueId"); q != "3" {
		t.Errorf("the sender is told queue %s", q)
	}
	r.send("T", 0, prop("DELAY", "99"), "capped")
	r.send("T", 1, prop("DELAY", "0"), "not delayed")
	r.send("T", 1, prop("DELAY", "-1"), "not delayed either")
	r.settle()
	for q, want := range []int64{1, 0, 1, 0} {
		if n := r.store.MaxOffset(message.TopicSchedule, int32(q)); n != want {
			t.Errorf("level %d holds %d", q+1, n)
		}
	}
	if n := r.store.MaxOffset("T", 1); n != 2 {
		t.Errorf("%d messages were not delayed, want 2", n)
	}
	waiting := r.waitRecords(message.TopicSchedule, 0, 1)[0]
	capped := r.waitRecords(message.TopicSchedule, 2, 1)[0]
	if level, _ := message.Property(capped.Properties, "DELAY"); string(level) != "3" {
		t.Errorf("a level above the highest is stored as %s", level)
	}
	copied := r.waitRecords("T", 3, 1)[0]
	if late := copied.StoreTimestamp - waiting.StoreTimestamp; late < 1000 || late > 1900 {
		t.Errorf("delivered %d ms after it was sent, want 1000", late)
	}
	want := waiting
	want.Topic, want.QueueID, want.QueueOffset, want.PhysicalOffset, want.StoreTimestamp, want.Size = []byte("T"), 3, 0, copied.PhysicalOffset, copied.StoreTimestamp, copied.Size
	if d := cmp.Diff(want, copied, addrPorts); d != "" {
		t.Error(d)
	}
	const props = "TAGS\x01a\x02UNIQ_KEY\x01K\x02MSG_REGION\x01DefaultRegion\x02TRACE_ON\x01true\x02CLUSTER\x01C\x02REAL_TOPIC\x01T\x02REAL_QID\x013\x02"
	if d := cmp.Diff("DELAY\x011\x02"+props, string(copied.Properties)); d != "" {
		t.Error(d)
	}
	if copied.ReconsumeTimes != 2 || copied.Flag != 5 || copied.BornTimestamp != 12345 || string(copied.Body) != "body" {
		t.Errorf("%+v", copied)
	}
	info := r.runtimeInfo(time.Now())
	if info["scheduleMessageOffset_1"] != "1,1" || info["scheduleMessageOffset_3"] != "0,1" {
		t.Errorf("runtime information: %q %q", info["scheduleMessageOffset_1"], info["scheduleMessageOffset_3"])
	}
	if _, ok := info["scheduleMessageOffset_2"]; ok {
		t.Error("a level without a message has a progress")
	}
}

// The progress is in delayOffset.json at its turns and at the stop, with the
// members and the layout Apache writes, and is what GET_ALL_DELAY_OFFSET says.
// What was in flight at the stop is delivered after the start, once.
func TestDelayProgress(t *testing.T) {
	cfg := delayConfigOf(t, "1s 2s 1h")
	cfg.FlushDelayOffset = time.Hour
	man := clock.NewManual(time.Now())
	cfg.Clock = man
	r := start(t, cfg)
	r.createTopic("T", 1)
	for _, level := range []string{"1", "1", "2", "3"} {
		r.send("T", 0, prop("DELAY", level), "level "+level)
	}
	man.Advance(1500 * time.Millisecond)
	r.waitRecords("T", 0, 2)
	var table remoting.DelayOffsets
	waitFor(t, "the progress", func() bool {
		resp := r.ok(remoting.ReqGetAllDelayOffset, nil, nil)
		table = remoting.DelayOffsets{}
		if err := fastjson.Unmarshal(resp.Body, &table); err != nil {
			t.Fatal(err)
		}
		return table.OffsetTable[1] == 2
	})
	if d := cmp.Diff(map[int32]int64{1: 2, 2: 0, 3: 0}, table.OffsetTable); d != "" {
		t.Error(d)
	}
	file := filepath.Join(cfg.Store.RootDir, "config", "delayOffset.json")
	if _, err := os.Stat(file); err == nil {
		t.Fatal("saved before its time")
	}
	r.stop()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b); !strings.HasPrefix(got, "{\n\t\"dataVersion\":{\n\t\t\"counter\":0,\n\t\t\"stateVersion\":0,\n\t\t\"timestamp\":") ||
		!strings.HasSuffix(got, "\n\t},\n\t\"offsetTable\":{\n\t\t1:2,\n\t\t2:0,\n\t\t3:0\n\t}\n}") {
		t.Errorf("%s", got)
	}
	man.Advance(time.Hour)
	r = start(t, cfg)
	r.waitRecords("T", 0, 4)
}

// A progress outside its queue is corrected at the start and saved at once
// (N054, N055): the level goes on delivering.
func TestDelayProgressIsCorrected(t *testing.T) {
	cfg := delayConfigOf(t, "1s 2s")
	cfg.FlushDelayOffset = time.Hour
	man := clock.NewManual(time.Now())
	cfg.Clock = man
	dir := filepath.Join(cfg.Store.RootDir, "config")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "delayOffset.json")
	text := `{"dataVersion":{"counter":3,"stateVersion":0,"timestamp":7},"offsetTable":{1:1000000,2:-5,40:7}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, cfg)
	b, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(b), "1:0,\n\t\t2:0") {
		t.Errorf("the correction is not on disk: %s %v", b, err)
	}
	r.createTopic("T", 1)
	r.send("T", 0, prop("DELAY", "1"), "x")
	r.send("T", 0, prop("DELAY", "2"), "y")
	man.Advance(time.Minute)
	r.waitRecords("T", 0, 2)
}

var addrPorts = cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })
