package broker

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
	"mqx/store"
)

// timerBroker is a broker whose clock the test sets.
func timerBroker(t *testing.T) (Config, *clock.Manual) {
	t.Helper()
	cfg := testConfig(t.TempDir())
	cfg.TimerLogFileBytes = 1 << 20
	cfg.RecallMessage = true
	cfg.TimerFlushEvery = 20 * time.Millisecond
	ck := clock.NewManual(time.UnixMilli(1_800_000_000_400))
	cfg.Clock = ck
	return cfg, ck
}

// poke makes the timer look at the clock now.
func (r *running) poke() { signal(r.timers.wake) }

// reach sets the clock forward until a queue holds n messages.
func (r *running) reach(ck *clock.Manual, step time.Duration, topic string, q int32, n int) {
	r.t.Helper()
	waitFor(r.t, topic, func() bool {
		if r.store.MaxOffset(topic, q) >= int64(n) {
			return true
		}
		if t := r.timers.t; t.ReadTime() >= t.Rules().Floor(ck.Now().UnixMilli()) { // else it has not come to what is due now
			ck.Advance(step)
		}
		r.poke()
		return false
	})
}

func (r *running) takenUp() {
	r.t.Helper()
	waitFor(r.t, "the wheel", func() bool { return r.timers.t.Offset() == r.store.MaxOffset(message.TopicTimer, 0) })
}

// A timer message waits in the timer topic and comes to its topic and queue once its time has come, never before, with
// Apache's properties; the sender is told its queue and gets a handle.
func TestTimerMessage(t *testing.T) {
	cfg, ck := timerBroker(t)
	r := start(t, cfg)
	r.createTopic("T", 4)
	for i := range 3 {
		now := ck.Now().UnixMilli()
		whole := (now/1000+3)*1000 - now
		tt := []struct {
			props   string
			deliver int64
		}{
			{prop("TIMER_DELAY_SEC", "3", "TIMER_DELAY_MS", "9", "TIMER_DELIVER_MS", "7"), now + 3000},
			{prop("TIMER_DELAY_MS", strconv.FormatInt(whole, 10), "TIMER_DELIVER_MS", "7"), now + whole},
			{prop("TIMER_DELIVER_MS", strconv.FormatInt(now+1700, 10)), now + 1700},
		}[i]
		before := r.store.MaxOffset("T", 3)
		resp := r.ok(remoting.ReqSendMessageV2, sendHeaderOf("T", 3, tt.props+prop("UNIQ_KEY", "K", "TAGS", "a")), []byte("body"))
		if q := resp.Fields.String("queueId"); q != "3" {
			t.Errorf("the sender is told queue %s", q)
		}
		out := (tt.deliver - 1) / 1000 * 1000
		handle, _ := base64.URLEncoding.DecodeString(resp.Fields.String("recallHandle"))
		if want := fmt.Sprintf("v1 T %s %d K", cfg.BrokerName, out+1); string(handle) != want {
			t.Errorf("handle %q, want %q", handle, want)
		}
		r.takenUp()
		if r.store.MaxOffset("T", 3) != before {
			t.Fatal("delivered at once")
		}
		r.reach(ck, 100*time.Millisecond, "T", 3, int(before)+1)
		all := r.waitRecords("T", 3, int(before)+1)
		rec := all[before]
		p := message.ParseProperties(rec.Properties)
		wantOut, err := strconv.ParseInt(p["TIMER_OUT_MS"], 10, 64)
		if err != nil || rec.StoreTimestamp <= wantOut+999 || p["REAL_TOPIC"] != "T" || p["REAL_QID"] != "3" || p["TAGS"] != "a" {
			t.Errorf("stored at %d: %v", rec.StoreTimestamp, p)
		}
		if at, _ := strconv.ParseInt(p["TIMER_ENQUEUE_MS"], 10, 64); at%1000 != 0 || at > wantOut {
			t.Errorf("TIMER_ENQUEUE_MS %d", at)
		}
		if at, _ := strconv.ParseInt(p["TIMER_DEQUEUE_MS"], 10, 64); at < wantOut+1000 || at > rec.StoreTimestamp {
			t.Errorf("TIMER_DEQUEUE_MS %d", at)
		}
		if string(rec.Body) != "body" || string(rec.Topic) != "T" || rec.QueueID != 3 {
			t.Errorf("%+v", rec)
		}
		if rec.StoreTimestamp < tt.deliver {
			t.Errorf("stored at %d, %d before its time", rec.StoreTimestamp, tt.deliver-rec.StoreTimestamp)
		}
	}
	// A time that has passed is none.
	resp := r.send("T", 0, prop("TIMER_DELIVER_MS", "5"), "at once")
	if resp.Fields.String("recallHandle") != "" || r.store.MaxOffset("T", 0) != 1 {
		t.Errorf("a message of the past: %v", resp.Fields)
	}
}

// A recalled message is not delivered, and costs the others of its slot nothing.
func TestTimerRecall(t *testing.T) {
	cfg, ck := timerBroker(t)
	r := start(t, cfg)
	r.createTopic("T", 1)
	r.createTopic("U", 1)
	deliver := prop("TIMER_DELIVER_MS", strconv.FormatInt(ck.Now().UnixMilli()+5000, 10))
	var handles []string
	for i := range 5 {
		resp := r.send("T", 0, deliver+prop("UNIQ_KEY", "K"+strconv.Itoa(i)), "m"+strconv.Itoa(i))
		handles = append(handles, resp.Fields.String("recallHandle"))
	}
	for _, i := range []int{1, 3} {
		resp := r.ok(remoting.ReqRecallMessage, &remoting.RecallMessageHeader{ProducerGroup: "P", Topic: "T", RecallHandle: handles[i]}, nil)
		if id := resp.Fields.String("msgId"); id != "K"+strconv.Itoa(i) {
			t.Errorf("recalled %q", id)
		}
	}
	r.takenUp()
	m := r.timers.t.Metrics()
	if n := m.Topics["T"].Count; n != 3 {
		t.Errorf("%d messages are counted, want 3", n)
	}
	for _, tt := range []struct {
		topic, handle string
		code          int32
		text          string
	}{
		{"U", handles[0], 604, "topic not match"},
		{"nope", handles[0], 17, "not exist"},
		{"T", "", 604, "recall handle is invalid"},
		{"T", base64.URLEncoding.EncodeToString([]byte("v1 T other 9 K0")), 604, "broker service not available"},
		{"T", base64.URLEncoding.EncodeToString([]byte("v1 T " + cfg.BrokerName + " 9 K0")), 604, "timestamp invalid"},
		{"T", base64.URLEncoding.EncodeToString([]byte("v2 T " + cfg.BrokerName + " 9 K0")), 604, "recall handle is invalid"},
	} {
		resp := r.call(remoting.ReqRecallMessage, &remoting.RecallMessageHeader{Topic: tt.topic, RecallHandle: tt.handle}, nil)
		if resp.Code != tt.code || !strings.Contains(resp.Remark, tt.text) {
			t.Errorf("%s %q: %d %q, want %d %q", tt.topic, tt.handle, resp.Code, resp.Remark, tt.code, tt.text)
		}
	}
	r.reach(ck, 500*time.Millisecond, "T", 0, 3)
	waitFor(t, "the slot", func() bool { return r.timers.t.Num() == 0 })
	var got []string
	for _, rec := range r.waitRecords("T", 0, 3) {
		got = append(got, string(rec.Body))
	}
	if s := strings.Join(got, " "); s != "m0 m2 m4" {
		t.Errorf("delivered %s", s)
	}
	waitFor(t, "the count", func() bool { m := r.timers.t.Metrics(); return m.Topics["T"].Count == 0 })
	resp := r.call(remoting.ReqRecallMessage, &remoting.RecallMessageHeader{Topic: "T", RecallHandle: handles[0]}, nil)
	if resp.Code != 604 {
		t.Errorf("recalled after its time: %d %q", resp.Code, resp.Remark)
	}
}

// N060: a cancellation counts whenever it comes, however often the message has rolled, and however often it rolls itself.
func TestTimerRollAndCancel(t *testing.T) {
	for _, after := range []int{0, 1, 2, 3} {
		t.Run(fmt.Sprint(after, " rolls"), func(t *testing.T) {
			cfg, ck := timerBroker(t)
			cfg.TimerRollWindow = 10
			r := start(t, cfg)
			r.createTopic("T", 1)
			deliver := prop("TIMER_DELIVER_MS", strconv.FormatInt(ck.Now().UnixMilli()+42_000, 10))
			kept := r.send("T", 0, deliver+prop("UNIQ_KEY", "kept"), "kept")
			resp := r.send("T", 0, deliver+prop("UNIQ_KEY", "gone"), "gone")
			if kept.Code != 0 {
				t.Fatal(kept.Remark)
			}
			r.takenUp()
			r.reach(ck, 300*time.Millisecond, message.TopicTimer, 0, 2+2*after)
			r.ok(remoting.ReqRecallMessage, &remoting.RecallMessageHeader{Topic: "T", RecallHandle: resp.Fields.String("recallHandle")}, nil)
			r.reach(ck, 300*time.Millisecond, "T", 0, 1)
			waitFor(t, "the wheel", func() bool { return r.timers.t.Num() == 0 })
			rec := r.waitRecords("T", 0, 1)[0]
			p := message.ParseProperties(rec.Properties)
			if string(rec.Body) != "kept" || p["TIMER_ROLL_TIMES"] == "" {
				t.Errorf("%s %v", rec.Body, p)
			}
			if out, _ := strconv.ParseInt(p["TIMER_OUT_MS"], 10, 64); rec.StoreTimestamp < out+1000 {
				t.Errorf("delivered at %d, wanted after %d", rec.StoreTimestamp, out)
			}
		})
	}
}

// Messages that cannot be delivered do not hold up others: without a time, without a topic, or of which the record is
// another one by now (N059, r#10668). None of them is counted for ever.
func TestTimerBadMessages(t *testing.T) {
	cfg, ck := timerBroker(t)
	r := start(t, cfg)
	r.createTopic("T", 1)
	r.send(message.TopicTimer, 0, prop("KEYS", "a"), "nothing is said")
	r.send(message.TopicTimer, 0, prop("TIMER_OUT_MS", "soon", "REAL_TOPIC", "T", "REAL_QID", "0"), "no time")
	r.send(message.TopicTimer, 0, prop("TIMER_OUT_MS", "1", "REAL_TOPIC", "T", "REAL_QID", "-1"), "no queue")
	r.send(message.TopicTimer, 0, prop("TIMER_OUT_MS", "1", "REAL_TOPIC", message.TopicTimer, "REAL_QID", "0"), "for ever")
	r.send("T", 0, prop("TIMER_DELAY_MS", "2000"), "good")
	r.takenUp()
	// A unit that points to what is no timer message, and one that points nowhere.
	plain := r.send("T", 0, "", "plain")
	_ = plain
	units, err := r.store.Units("T", 0, 0, 1)
	if err != nil || len(units) != 1 {
		t.Fatal(units, err)
	}
	at := ck.Now().UnixMilli() + 1000
	for _, u := range []store.Unit{
		{PhysicalOffset: 7, Size: -3}, // it breaks the chain of its slot
		{PhysicalOffset: units[0].PhysicalOffset, Size: units[0].Size},
		{PhysicalOffset: 1 << 50, Size: 100},
	} {
		var e store.TimerEntry
		e.Phys, e.Size, e.TopicHash = u.PhysicalOffset, u.Size, message.JavaHash([]byte("T"))
		r.timers.t.Count("T", 1, at) // as when it was taken up
		if err := r.timers.t.PutOff(&e, at, ck.Now().UnixMilli()); err != nil {
			t.Fatal(err)
		}
		if u.Size < 0 {
			at += 1000
		}
	}
	r.reach(ck, 300*time.Millisecond, "T", 0, 2)
	if rec := r.waitRecords("T", 0, 2)[1]; string(rec.Body) != "good" {
		t.Errorf("delivered %q", rec.Body)
	}
	waitFor(t, "the count", func() bool { r.poke(); return r.timers.t.Metrics().Topics["T"].Count == 0 })
}

// What waits at a stop is delivered after the start, once, and so is what came due in between.
func TestTimerStopAndStart(t *testing.T) {
	for _, snapshots := range []bool{false, true} {
		t.Run(fmt.Sprint("snapshots ", snapshots), func(t *testing.T) {
			cfg, ck := timerBroker(t)
			cfg.TimerSnapshots = snapshots
			r := start(t, cfg)
			r.createTopic("T", 1)
			for i := range 20 {
				r.send("T", 0, prop("TIMER_DELAY_MS", strconv.Itoa(1000+500*i)), strconv.Itoa(i))
			}
			r.reach(ck, 400*time.Millisecond, "T", 0, 4)
			before := r.store.MaxOffset("T", 0)
			r.stop()
			if _, err := os.Stat(filepath.Join(cfg.Store.RootDir, "timerwheel")); err != nil {
				t.Error(err)
			}
			ck.Advance(5 * time.Second)
			r = start(t, cfg)
			if n := r.store.MaxOffset("T", 0); n < before {
				t.Errorf("%d messages, there were %d", n, before)
			}
			r.reach(ck, 400*time.Millisecond, "T", 0, 20)
			seen := map[string]bool{}
			for _, rec := range r.waitRecords("T", 0, 20) {
				if seen[string(rec.Body)] {
					t.Errorf("%s came twice", rec.Body)
				}
				seen[string(rec.Body)] = true
			}
			waitFor(t, "the end", func() bool {
				info, m := r.runtimeInfo(ck.Now()), r.timers.t.Metrics()
				return info["timerReadBehind"] == "0" && info["timerOffsetBehind"] == "0" && info["timerCongestNum"] == "0" && m.Topics["T"].Count == 0
			})
			waitFor(t, "the checkpoint", func() bool {
				body, c := r.ok(remoting.ReqGetTimerCheckPoint, nil, nil).Body, r.timers.t.Checkpoint()
				return len(body) == 56 && bytes.Equal(body, c.Append(nil))
			})
			body := string(r.ok(remoting.ReqGetTimerMetrics, nil, nil).Body)
			if !strings.HasPrefix(body, `{"dataVersion":{"counter":`) || !strings.Contains(body, `"timingCount":{"T":{"count":0,"timeStamp":`) {
				t.Errorf("metrics %s", body)
			}
		})
	}
}

// The clock may be set: forward, and what is due comes at once; back, and what was sent since then comes in its time, not
// in that of the clock before. Nothing comes early or twice.
func TestTimerClockSteps(t *testing.T) {
	cfg, ck := timerBroker(t)
	r := start(t, cfg)
	r.createTopic("T", 1)
	r.send("T", 0, prop("TIMER_DELAY_MS", "2000"), "a")
	r.send("T", 0, prop("TIMER_DELAY_SEC", "7200"), "far")
	r.takenUp()
	ck.Advance(time.Hour)
	r.poke()
	r.waitRecords("T", 0, 1)
	ck.Advance(-time.Hour)
	r.send("T", 0, prop("TIMER_DELAY_MS", "1500"), "b")
	r.send("T", 0, prop("TIMER_DELAY_MS", "2500"), "c")
	r.takenUp()
	r.poke()
	if n := r.store.MaxOffset("T", 0); n != 1 {
		t.Fatalf("%d messages, 1 was due", n)
	}
	r.reach(ck, 300*time.Millisecond, "T", 0, 3)
	for _, rec := range r.waitRecords("T", 0, 3)[1:] {
		p := message.ParseProperties(rec.Properties) // the store's own time never goes back
		out, _ := strconv.ParseInt(p["TIMER_OUT_MS"], 10, 64)
		at, _ := strconv.ParseInt(p["TIMER_DEQUEUE_MS"], 10, 64)
		if late := at - out; late < 1000 || late > 3000 {
			t.Errorf("%s came %d ms after its slot", rec.Body, late)
		}
	}
	r.reach(ck, time.Minute, "T", 0, 4)
	r.waitRecords("T", 0, 4)
}

// Without the wheel timer messages are refused, and nothing else.
func TestTimerWheelOff(t *testing.T) {
	cfg, _ := timerBroker(t)
	cfg.TimerWheel = false
	r := start(t, cfg)
	r.createTopic("T", 1)
	resp := r.call(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, prop("TIMER_DELAY_MS", "1")), []byte("x"))
	if resp.Code != remoting.RespSystemError || resp.Remark != "accurate timer message is not enabled, timerWheelEnable is false" {
		t.Errorf("%d %q", resp.Code, resp.Remark)
	}
	for code, text := range map[int32]string{remoting.ReqGetTimerCheckPoint: "The checkpoint is null", remoting.ReqGetTimerMetrics: "The timer message store is null"} {
		if resp := r.call(code, nil, nil); resp.Code != 1 || resp.Remark != text {
			t.Errorf("%d: %d %q", code, resp.Code, resp.Remark)
		}
	}
	r.send("T", 0, "", "plain")
	if _, err := os.Stat(filepath.Join(cfg.Store.RootDir, "timerwheel")); err == nil {
		t.Error("there is a wheel")
	}
}

// A broker that is started without the wheel says how many messages wait; they come when it has the wheel again.
func TestTimerWheelOffWithWaitingMessages(t *testing.T) {
	cfg, ck := timerBroker(t)
	r := start(t, cfg)
	r.createTopic("T", 1)
	for i := range 3 {
		r.send("T", 0, prop("TIMER_DELAY_MS", strconv.Itoa(5000+1000*i)), "m")
	}
	r.takenUp()
	r.stop()
	var said bytes.Buffer
	off := cfg
	off.TimerWheel = false
	off.Logger = slog.New(slog.NewTextHandler(&said, nil))
	r = start(t, off)
	r.stop()
	if !strings.Contains(said.String(), "timerWheelEnable is false and timer messages wait") || !strings.Contains(said.String(), "messages=3") {
		t.Errorf("said %s", said.String())
	}
	r = start(t, cfg)
	r.reach(ck, 500*time.Millisecond, "T", 0, 3)
}

// N061: a message that is due almost at once is counted before it is delivered; the count is never below zero.
func TestTimerCountIsNeverNegative(t *testing.T) {
	cfg, ck := timerBroker(t)
	r := start(t, cfg)
	r.createTopic("T", 1)
	stop := make(chan struct{})
	seen := make(chan int64, 1)
	go func() {
		least := int64(0)
		for {
			select {
			case <-stop:
				seen <- least
				return
			default:
				m := r.timers.t.Metrics()
				least = min(least, m.Topics["T"].Count)
			}
		}
	}()
	for i := range 20 {
		r.send("T", 0, prop("TIMER_DELAY_MS", "3", "UNIQ_KEY", strconv.Itoa(i)), "x")
	}
	r.send("T", 0, prop("TIMER_DELAY_MS", "900", "TIMER_DEL_UNIQKEY", "nobody"), "0")
	r.reach(ck, 300*time.Millisecond, "T", 0, 20)
	close(stop)
	if least := <-seen; least < 0 {
		t.Errorf("%d messages were counted", least)
	}
}

// A slot that is full refuses, with Apache's words.
func TestTimerFlowControl(t *testing.T) {
	cfg, ck := timerBroker(t)
	cfg.TimerCongest = 3
	r := start(t, cfg)
	r.createTopic("T", 1)
	deliver := prop("TIMER_DELIVER_MS", strconv.FormatInt(ck.Now().UnixMilli()+5000, 10))
	taken := 0
	for range 200 {
		resp := r.call(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, deliver), []byte("x"))
		if resp.Code == 0 {
			taken++
			r.takenUp()
		} else if resp.Code != 1 || resp.Remark != "timer message is under flow control, max num limit is 6 or the current value is greater than 3 and less than 6, trigger random flow control" {
			t.Fatalf("%d %q", resp.Code, resp.Remark)
		}
	}
	if taken < 4 || taken > 6 {
		t.Errorf("%d messages were taken", taken)
	}
	r.send("T", 0, prop("TIMER_DELAY_MS", "9000"), "another slot")
}

// A message that can neither be stored nor put off, since the timer log takes nothing, stays in its slot: it is never
// passed over.
func TestTimerMessageThatCannotBePutOff(t *testing.T) {
	cfg, disk := onMem()
	cfg.TimerLogFileBytes = 1 << 20
	ck := clock.NewManual(time.UnixMilli(1_800_000_000_400))
	cfg.Clock = ck
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := &badPuts{put: b.timers.put, times: map[string]int{"bad": timerTries + 1}, tries: map[string]int{}}
	b.timers.put = f.do
	r := run(t, b)
	r.createTopic("T", 1)
	for _, body := range []string{"bad", "good"} {
		r.send("T", 0, prop("TIMER_DELAY_MS", "1500"), body)
	}
	r.takenUp()
	disk.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite && strings.Contains(op.Path, "timerlog") {
			return errors.New("no room")
		}
		return nil
	})
	defer disk.Inject(nil)
	r.reach(ck, 500*time.Millisecond, "T", 0, 2)
	var got []string
	for _, rec := range r.waitRecords("T", 0, 2) {
		got = append(got, string(rec.Body))
	}
	if slices.Sort(got); !slices.Equal(got, []string{"bad", "good"}) {
		t.Errorf("delivered %v", got)
	}
	waitFor(t, "the slot", func() bool { return r.timers.t.Num() == 0 })
}

// The key of a producer may hold blanks: the message is recalled all the same.
func TestRecallHandleOfAKeyWithBlanks(t *testing.T) {
	for _, key := range []string{"plain", "with two blanks", " x", "k\tb"} {
		text := base64.URLEncoding.EncodeToString([]byte("v1 T b 9 " + key))
		if h, ok := parseRecallHandle(text); !ok || h != (recalled{topic: "T", broker: "b", deliver: "9", key: key}) {
			t.Errorf("%q: %+v %v", key, h, ok)
		}
	}
}
