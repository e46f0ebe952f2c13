package broker

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/clock"
	"mqx/message"
	"mqx/remoting"
)

// sendBack sends a message back as a client of this version does.
func (r *running) sendBackAs(version int32, h remoting.ConsumerSendMsgBackHeader) *remoting.Command {
	r.t.Helper()
	r.settle()
	req := remoting.NewRequest(remoting.ReqConsumerSendMsgBack, &h)
	req.Version = version
	resp, err := r.c.Call(r.t.Context(), r.addr, req)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp
}

// A message that fails again and again: 10 s, 30 s, ... by its count, then the
// dead letters; the topics are made as Apache makes them, origin and first id
// stay.
func TestSendBackUntilDeadLetter(t *testing.T) {
	cfg := delayConfigOf(t, "1s 5s 10s 30s 1m")
	man := clock.NewManual(time.Now())
	cfg.Clock = man
	r := start(t, cfg)
	r.createTopic("T", 1)
	c := remoting.NewSubscriptionGroupConfig("G")
	c.RetryMaxTimes, c.RetryQueueNums = 2, 3
	if err := r.groups.Put([]remoting.SubscriptionGroupConfig{c}, func(error) {}); err != nil {
		t.Fatal(err)
	}
	id := r.send("T", 0, prop("TAGS", "a", "UNIQ_KEY", "K"), "body").Fields.String("msgId")
	offset := r.waitPhys("T", 0, 0)
	for times, wait := range []time.Duration{10 * time.Second, 30 * time.Second} {
		r.ok(remoting.ReqConsumerSendMsgBack, &remoting.ConsumerSendMsgBackHeader{Offset: offset, Group: "G", OriginMsgID: id, OriginTopic: "T"}, nil)
		man.Advance(wait - time.Millisecond)
		r.settle()
		if r.retried() != int64(times) {
			t.Fatal("early")
		}
		man.Advance(time.Millisecond)
		waitFor(t, "the retry", func() bool { return r.retried() == int64(times)+1 })
		for q := range int32(3) {
			for _, u := range r.unitsOf("%RETRY%G", q, 0) {
				offset = max(offset, u.phys)
			}
		}
	}
	r.ok(remoting.ReqConsumerSendMsgBack, &remoting.ConsumerSendMsgBackHeader{Offset: offset, Group: "G", DelayLevel: 1}, nil)
	dead := r.waitRecords("%DLQ%G", 0, 1)[0]
	if dead.ReconsumeTimes != 3 || string(dead.Body) != "body" {
		t.Errorf("%+v", dead)
	}
	want := map[string]string{"TAGS": "a", "UNIQ_KEY": "K", "RETRY_TOPIC": "T", "ORIGIN_MESSAGE_ID": id, "WAIT": "false", "DELAY": "0", "REAL_TOPIC": "%RETRY%G"}
	got := message.ParseProperties(dead.Properties)
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s is %q, want %q", name, got[name], v)
		}
	}
	for name, queues := range map[string]int32{"%RETRY%G": 3, "%DLQ%G": 1} { // N053: readable
		tp := r.topics.Get(name)
		if tp == nil || tp.WriteQueueNums != queues || tp.ReadQueueNums != queues || tp.Perm != 6 || !tp.saved.Load() {
			t.Errorf("%s: %+v", name, tp)
		}
	}
	if c, ok := r.stats.Lookup("SNDBCK_PUT_NUMS", "T@G"); !ok || c.Total() != 3 {
		t.Error("not counted")
	}
}

// retried is how many messages came to the retry topic of G.
func (r *running) retried() (n int64) {
	for q := range int32(3) {
		n += r.store.MaxOffset("%RETRY%G", q)
	}
	return n
}

func TestSendBackRules(t *testing.T) {
	cfg := delayConfigOf(t, "1h")
	cfg.AutoCreateGroup = false
	r := start(t, cfg)
	r.createTopic("T", 1)
	put := func(name string, queues, times int32) {
		c := remoting.NewSubscriptionGroupConfig(name)
		c.RetryQueueNums, c.RetryMaxTimes = queues, times
		done := make(chan error, 1)
		if err := r.groups.Put([]remoting.SubscriptionGroupConfig{c}, func(err error) { done <- err }); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	put("G", 1, 16)
	put("none", 0, 16)
	put("unit", 1, 16)
	put("closed", 1, 16)
	closed := groupTopic("%RETRY%closed", 1, 0)
	closed.Perm = permRead
	if _, err := r.topics.PutIfAbsent(closed); err != nil {
		t.Fatal(err)
	}
	r.send("T", 0, "", "x")
	offset := r.waitPhys("T", 0, 0)
	head := func(edit func(*remoting.ConsumerSendMsgBackHeader)) remoting.ConsumerSendMsgBackHeader {
		h := remoting.ConsumerSendMsgBackHeader{Offset: offset, Group: "G", DelayLevel: 1}
		edit(&h)
		return h
	}
	type counts struct{ Waiting, Dead int64 }
	tests := []struct {
		name    string
		version int32
		head    remoting.ConsumerSendMsgBackHeader
		code    int32
		text    string
		adds    counts
	}{
		{"no group", remoting.Version, head(func(h *remoting.ConsumerSendMsgBackHeader) { h.Group = "nobody" }), remoting.RespSubscriptionGroupNotExist, "subscription group not exist, nobody", counts{}},
		{"no retries: success, nothing stored", remoting.Version, head(func(h *remoting.ConsumerSendMsgBackHeader) { h.Group = "none" }), 0, "", counts{}},
		{"no record", remoting.Version, head(func(h *remoting.ConsumerSendMsgBackHeader) { h.Offset = 1 << 40 }), 1, "look message by offset failed, 1099511627776", counts{}},
		{"inside a record", remoting.Version, head(func(h *remoting.ConsumerSendMsgBackHeader) { h.Offset = offset + 3 }), 1, "look message by offset failed", counts{}},
		{"a negative offset", remoting.Version, head(func(h *remoting.ConsumerSendMsgBackHeader) { h.Offset = -1 }), 1, "look message by offset failed, -1", counts{}},
		{"retry topic without permission", remoting.Version, head(func(h *remoting.ConsumerSendMsgBackHeader) { h.Group = "closed" }), remoting.RespNoPermission, "the topic[%RETRY%closed] sending message is forbidden", counts{}},
		{"no more attempts", remoting.Version, head(func(h *remoting.ConsumerSendMsgBackHeader) { h.DelayLevel = -1 }), 0, "", counts{Dead: 1}},
		{"the request's maximum", remoting.Version, head(func(h *remoting.ConsumerSendMsgBackHeader) { h.MaxReconsumeTimes = remoting.Some(int32(0)) }), 0, "", counts{Dead: 1}},
		{"the maximum of an old client is not looked at", remoting.V3_4_9 - 1, head(func(h *remoting.ConsumerSendMsgBackHeader) { h.MaxReconsumeTimes = remoting.Some(int32(0)) }), 0, "", counts{Waiting: 1}},
		{"unit mode", remoting.Version, head(func(h *remoting.ConsumerSendMsgBackHeader) { h.Group, h.UnitMode = "unit", true }), 0, "", counts{Waiting: 1}},
		{"a level above the table", remoting.Version, head(func(h *remoting.ConsumerSendMsgBackHeader) { h.DelayLevel = 99 }), 0, "", counts{Waiting: 1}},
	}
	now := func() counts {
		r.settle()
		return counts{r.store.MaxOffset(message.TopicSchedule, 0), r.store.MaxOffset("%DLQ%G", 0)}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := now()
			resp := r.sendBackAs(tt.version, tt.head)
			if resp.Code != tt.code || !strings.Contains(resp.Remark, tt.text) {
				t.Errorf("%d %q", resp.Code, resp.Remark)
			}
			after := now()
			if d := cmp.Diff(tt.adds, counts{after.Waiting - before.Waiting, after.Dead - before.Dead}); d != "" {
				t.Error(d)
			}
		})
	}
	if tp := r.topics.Get("%RETRY%unit"); tp == nil || tp.TopicSysFlag != sysFlagUnitSub {
		t.Errorf("%+v", tp)
	}
	if r.topics.Get("%RETRY%none") != nil {
		t.Error("a retry topic for a group without retries")
	}
}

// A broker that may not be written to takes nothing back.
func TestSendBackWithoutPermission(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.BrokerPermission = permRead
	r := start(t, cfg)
	resp := r.sendBackAs(remoting.Version, remoting.ConsumerSendMsgBackHeader{Group: "G"})
	if resp.Code != remoting.RespNoPermission || !strings.Contains(resp.Remark, "sending message is forbidden") {
		t.Errorf("%d %q", resp.Code, resp.Remark)
	}
}

// A message of an IPv6 host that is sent back to an IPv4 broker stays whole.
func TestSendBackChangesTheStoreHost(t *testing.T) {
	r := start(t, delayConfigOf(t, "1h"))
	r.createTopic("T", 1)
	six := netip.MustParseAddrPort("[2001:db8::7]:1234")
	putDirect(t, r, message.Record{Topic: []byte("T"), Body: []byte("x"), BornHost: six, StoreHost: six})
	r.ok(remoting.ReqConsumerSendMsgBack, &remoting.ConsumerSendMsgBackHeader{Offset: r.waitPhys("T", 0, 0), Group: "G"}, nil)
	rec := r.waitRecords(message.TopicSchedule, 0, 1)[0]
	if rec.BornHost != six || rec.StoreHost != r.at().storeHost || rec.SysFlag&message.FlagStoreHostV6 != 0 {
		t.Errorf("%v %v %x", rec.BornHost, rec.StoreHost, rec.SysFlag)
	}
}
