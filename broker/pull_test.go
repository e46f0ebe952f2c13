package broker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"mqx/remoting"
	"mqx/remoting/client"
	"mqx/store"
)

func TestPullCodes(t *testing.T) {
	for _, tt := range []struct {
		status store.GetStatus
		offset int64
		code   int32
	}{
		{store.Found, 5, 0},
		{store.NoMatchedMessage, 5, 20},
		{store.MessageWasRemoving, 5, 20},
		{store.NoMatchedLogicQueue, 0, 19},
		{store.NoMatchedLogicQueue, 5, 21},
		{store.NoMessageInQueue, 0, 19},
		{store.NoMessageInQueue, 5, 21},
		{store.OffsetFoundNull, 5, 19},
		{store.OffsetOverflowOne, 5, 19},
		{store.OffsetOverflowBadly, 5, 21},
		{store.OffsetTooSmall, 5, 21},
		{store.OffsetReset, 5, 21},
	} {
		if got := pullCode(tt.status, tt.offset); got != tt.code {
			t.Errorf("%v at %d: %d, want %d", tt.status, tt.offset, got, tt.code)
		}
	}
}

// heartbeat registers a consumer on the test's own connection.
func (r *running) heartbeat(group, model string, s ...remoting.SubscriptionData) {
	r.t.Helper()
	r.beat(r.c, remoting.HeartbeatData{ClientID: "me", ConsumerDataSet: []remoting.ConsumerData{{
		GroupName: group, ConsumeType: remoting.ConsumePassively, MessageModel: model, SubscriptionDataSet: s,
		ConsumeFromWhere: remoting.ConsumeFromLastOffset,
	}}})
}

func (r *running) beat(c *client.Client, hb remoting.HeartbeatData) *remoting.Command {
	r.t.Helper()
	body, err := marshal(&hb)
	if err != nil {
		r.t.Fatal(err)
	}
	req := remoting.NewRequest(remoting.ReqHeartBeat, nil)
	req.Body = body
	resp, err := c.Call(context.Background(), r.addr, req)
	if err != nil || resp.Code != remoting.RespSuccess {
		r.t.Fatalf("heartbeat: %v %v", resp, err)
	}
	return resp
}

func TestPullChecks(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.AutoCreateGroup = false
	r := start(t, cfg)
	r.createTopic("T", 2)
	r.createTopic("W", 1)
	put := func(name string, edit func(*remoting.SubscriptionGroupConfig)) {
		c := remoting.NewSubscriptionGroupConfig(name)
		edit(&c)
		body, err := marshal(&c)
		if err != nil {
			t.Fatal(err)
		}
		r.ok(remoting.ReqUpdateAndCreateSubscriptionGroup, nil, body)
	}
	put("G", func(*remoting.SubscriptionGroupConfig) {})
	put("off", func(c *remoting.SubscriptionGroupConfig) { c.ConsumeEnable = false })
	put("nobc", func(c *remoting.SubscriptionGroupConfig) { c.ConsumeBroadcastEnable = false })
	put("empty", func(*remoting.SubscriptionGroupConfig) {})
	r.ok(remoting.ReqUpdateAndCreateTopic, &remoting.CreateTopicHeader{Topic: "W", ReadQueueNums: 1, WriteQueueNums: 1, Perm: permWrite, TopicFilterType: "SINGLE_TAG"}, nil)
	r.heartbeat("G", remoting.Clustering, remoting.SubscriptionData{Topic: "T", SubString: "*", SubVersion: 100},
		remoting.SubscriptionData{Topic: "F", SubString: "*"}, remoting.SubscriptionData{Topic: "S", SubString: "a > 1", ExpressionType: "SQL92"})
	r.heartbeat("nobc", remoting.Broadcasting, remoting.SubscriptionData{Topic: "T", SubString: "*"})
	r.createTopic("F", 1)
	r.createTopic("S", 1)
	r.ok(remoting.ReqUpdateAndGetGroupForbidden, &remoting.UpdateAndGetGroupForbiddenHeader{Group: "G", Topic: "F"}, nil)
	setForbidden(t, r, "G", "F")

	sub := func(h *remoting.PullMessageHeader, expr, typ string) *remoting.PullMessageHeader {
		h.Subscription, h.ExpressionType = expr, typ
		return h
	}
	byGroup := func(g, topic string, q int32, version int64) *remoting.PullMessageHeader {
		h := pullHeaderOf(g, topic, q, 0)
		h.SysFlag, h.Subscription, h.SubVersion = 0, "", version
		return h
	}
	tests := []struct {
		name      string
		head      *remoting.PullMessageHeader
		code      int32
		text      string
		forbidden string
	}{
		{"unknown group", pullHeaderOf("nobody", "T", 0, 0), 26, "subscription group [nobody] does not exist", ""},
		{"group switched off", pullHeaderOf("off", "T", 0, 0), 16, "subscription group no permission, off", "2"},
		{"unknown topic", pullHeaderOf("G", "nope", 0, 0), 17, "topic[nope] not exist, apply first please!", ""},
		{"topic not readable", pullHeaderOf("G", "W", 0, 0), 16, "the topic[W] pulling message is forbidden", "3"},
		{"queue too high", pullHeaderOf("G", "T", 2, 0), 29, "queueId[2] is illegal, topic:[T] topicConfig.readQueueNums:[2]", ""},
		{"queue negative", pullHeaderOf("G", "T", -1, 0), 29, "queueId[-1] is illegal", ""},
		{"nobody online", byGroup("empty", "T", 0, 0), 24, "the consumer's group info not exist", ""},
		{"broadcast not allowed", byGroup("nobc", "T", 0, 0), 16, "can not consume by broadcast way", "5"},
		{"topic forbidden", byGroup("G", "F", 0, 0), 16, "is forbidden for topic[F]", "4"},
		{"topic not subscribed", byGroup("G", "W2", 0, 0), 17, "", ""},
		{"newer subscription", byGroup("G", "T", 0, 101), 25, "the consumer's subscription not latest", ""},
		{"same subscription", byGroup("G", "T", 0, 100), 19, "NO_M", ""},
		{"SQL92 in the request", sub(pullHeaderOf("G", "T", 0, 0), "a > 1", "SQL92"), 1, "The broker does not support consumer to filter message by SQL92", ""},
		{"SQL92 of the group", byGroup("G", "S", 0, 0), 1, "The broker does not support consumer to filter message by SQL92", ""},
		{"no expression", sub(pullHeaderOf("G", "T", 0, 0), " || ", "TAG"), 23, "parse the consumer's subscription failed", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp := r.call(remoting.ReqPullMessage, tt.head, nil)
			if resp.Code != tt.code || !strings.Contains(resp.Remark, tt.text) {
				t.Errorf("%d %q, want %d %q", resp.Code, resp.Remark, tt.code, tt.text)
			}
			if got := resp.Fields.String("forbiddenType"); got != tt.forbidden {
				t.Errorf("forbiddenType %q, want %q", got, tt.forbidden)
			}
			if tt.code != 19 && tt.forbidden == "" && resp.Fields.Len() != 0 {
				t.Errorf("fields of a failed check: %v", names(resp.Fields))
			}
		})
	}
}

func setForbidden(t *testing.T, r *running, group, topic string) {
	t.Helper()
	req := remoting.NewRequest(remoting.ReqUpdateAndGetGroupForbidden, nil)
	for k, v := range map[string]string{"group": group, "topic": topic, "readable": "false"} {
		req.Fields.Set(k, v)
	}
	resp, err := r.c.Call(context.Background(), r.addr, req)
	if err != nil || resp.Code != 0 || !strings.Contains(string(resp.Body), `"readable":false`) {
		t.Fatalf("%v %v", resp, err)
	}
}

func TestPullPermissionOfBroker(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.BrokerPermission = permWrite
	r := start(t, cfg)
	resp := r.call(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), nil)
	if resp.Code != remoting.RespNoPermission || resp.Fields.String("forbiddenType") != "1" {
		t.Errorf("%d %v", resp.Code, resp.Fields)
	}
}

func TestTagFilteredPull(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	for i, tag := range []string{"a", "b", "a", "c"} {
		r.send("T", 0, prop("TAGS", tag), fmt.Sprint("m", i))
	}
	r.heartbeat("G", remoting.Clustering, remoting.SubscriptionData{Topic: "T", SubString: "a || c", CodeSet: []int32{97, 99}, TagsSet: []string{"a", "c"}, SubVersion: 1})
	h := pullHeaderOf("G", "T", 0, 0)
	h.SysFlag, h.Subscription = 0, ""
	resp := r.ok(remoting.ReqPullMessage, h, nil)
	if n := len(records(t, resp.Body)); n != 3 || resp.Fields.String("nextBeginOffset") != "4" {
		t.Errorf("%d messages, next %s", n, resp.Fields.String("nextBeginOffset"))
	}
	h = pullHeaderOf("G", "T", 0, 0)
	h.Subscription = "nothing"
	resp = r.call(remoting.ReqPullMessage, h, nil)
	if resp.Code != remoting.RespPullRetryImmediately || resp.Remark != "NO_MATCHED_MESSAGE" || resp.Fields.String("nextBeginOffset") != "4" {
		t.Errorf("%d %s %v", resp.Code, resp.Remark, resp.Fields) // N042: progress over filtered ones
	}
}

func TestOffsetsOutOfRange(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	r.send("T", 0, "", "x")
	resp := r.call(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 999), nil)
	if resp.Code != remoting.RespPullOffsetMoved || resp.Remark != "OFFSET_OVERFLOW_BADLY" || resp.Fields.String("nextBeginOffset") != "1" {
		t.Errorf("%d %s %v", resp.Code, resp.Remark, resp.Fields)
	}
	resp = r.call(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 1), nil)
	if resp.Code != remoting.RespPullNotFound || resp.Remark != "OFFSET_OVERFLOW_ONE" {
		t.Errorf("%d %s", resp.Code, resp.Remark)
	}
}

// waiting sends a pull that waits and returns its answer's channel.
func (r *running) waiting(c *client.Client, code int32, h *remoting.PullMessageHeader, wait time.Duration) chan *remoting.Command {
	r.t.Helper()
	h.SysFlag |= pullSuspend
	h.SuspendTimeoutMillis = wait.Milliseconds()
	ch := make(chan *remoting.Command, 1)
	before := r.hold.Len()
	err := c.Go(r.addr, remoting.NewRequest(code, h), 30*time.Second, func(resp *remoting.Command, err error) {
		if err != nil {
			resp = nil
		}
		ch <- resp
	})
	if err != nil {
		r.t.Fatal(err)
	}
	waitFor(r.t, "the pull to be parked", func() bool { return r.hold.Len() > before || len(ch) > 0 })
	return ch
}

// waitFor polls a condition that another goroutine brings about.
func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func receive(t *testing.T, ch chan *remoting.Command) *remoting.Command {
	t.Helper()
	select {
	case resp := <-ch:
		return resp
	case <-time.After(time.Minute):
		t.Fatal("no answer")
		return nil
	}
}

func TestLongPolling(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 2)
	for _, code := range []int32{remoting.ReqPullMessage, remoting.ReqLitePullMessage} {
		r.settle()
		next := r.store.MaxOffset("T", 0)
		ch := r.waiting(r.c, code, pullHeaderOf("G", "T", 0, next), 20*time.Second)
		r.send("T", 1, "", "of another queue")
		r.send("T", 0, "", "wanted")
		resp := receive(t, ch)
		if recs := records(t, resp.Body); len(recs) != 1 || string(recs[0].Body) != "wanted" {
			t.Errorf("%s: %d %s", remoting.RequestName(code), resp.Code, resp.Remark)
		}
	}
	// nothing comes
	ch := r.waiting(r.c, remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 2), 150*time.Millisecond)
	if resp := receive(t, ch); resp.Code != remoting.RespPullNotFound || resp.Fields.String("nextBeginOffset") != "2" {
		t.Errorf("%d %s", resp.Code, resp.Remark)
	}
	if r.hold.Len() != 0 {
		t.Errorf("%d parked", r.hold.Len())
	}
}

func TestLongPollingSwitchedOff(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.LongPolling, cfg.ShortPolling = false, 120*time.Millisecond
	r := start(t, cfg)
	r.createTopic("T", 1)
	began := time.Now()
	resp := receive(t, r.waiting(r.c, remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), time.Minute))
	if d := time.Since(began); resp.Code != remoting.RespPullNotFound || d > 5*time.Second {
		t.Errorf("%d after %v", resp.Code, d)
	}
}

// With slaveReadEnable a pull is told where to go on: to the broker that its group names for slow consumers when it lies further from
// the end of the log than memory counts, else to the group's own; without it always to the master.
func TestSuggestedBroker(t *testing.T) {
	for _, tt := range []struct {
		name        string
		slaveRead   bool
		memory      int64 // of which the hot end of the log is a part
		found, none string
	}{
		{"switched off", false, 1000, "0", "0"},
		{"from memory", true, 0, "2", "2"},
		{"from disk", true, 1000, "3", "2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := testConfig(t.TempDir())
			cfg.SlaveRead, cfg.Store.PhysicalMemoryBytes = tt.slaveRead, tt.memory
			r := start(t, cfg)
			r.createTopic("T", 1)
			group := remoting.NewSubscriptionGroupConfig("G")
			group.BrokerID, group.WhichBrokerWhenConsumeSlowly = 2, 3
			body, err := marshal(&group)
			if err != nil {
				t.Fatal(err)
			}
			r.ok(remoting.ReqUpdateAndCreateSubscriptionGroup, nil, body)
			for range 20 {
				r.send("T", 0, "", strings.Repeat("x", 400))
			}
			if got := r.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), nil).Fields.String("suggestWhichBrokerId"); got != tt.found {
				t.Errorf("with messages: broker %s, want %s", got, tt.found)
			}
			resp := r.call(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 20), nil)
			if got := resp.Fields.String("suggestWhichBrokerId"); resp.Code != remoting.RespPullNotFound || got != tt.none {
				t.Errorf("at the end: %s, broker %s, want %s", remoting.ResponseName(resp.Code), got, tt.none)
			}
			r.stop() // what is read from a file then is no further from the end of the log
			r = start(t, cfg)
			if got := r.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), nil).Fields.String("suggestWhichBrokerId"); got != tt.found {
				t.Errorf("after a restart: broker %s, want %s", got, tt.found)
			}
		})
	}
}

func TestLitePullSwitchedOff(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.LitePull = false
	r := start(t, cfg)
	if resp := r.call(remoting.ReqLitePullMessage, pullHeaderOf("G", "T", 0, 0), nil); resp.Code != remoting.RespNoPermission {
		t.Errorf("%d %s", resp.Code, resp.Remark)
	}
}

func TestParkedPullsOfAClosedConnection(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	other := client.New(client.Config{Logger: quiet})
	r.waiting(other, remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), time.Minute)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the parked pull to go", func() bool { return r.hold.Len() == 0 })
}

func TestParkedPullsAreBounded(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.MaxParkedPulls = 1
	r := start(t, cfg)
	r.createTopic("T", 1)
	first := r.waiting(r.c, remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), time.Minute)
	second := r.waiting(r.c, remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), time.Minute)
	if resp := receive(t, second); resp.Code != remoting.RespPullNotFound {
		t.Errorf("%d", resp.Code)
	}
	r.send("T", 0, "", "x")
	receive(t, first)
}

func TestStopAnswersParkedPulls(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	other := client.New(client.Config{Logger: quiet})
	defer other.Close()
	ch := r.waiting(other, remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), time.Minute)
	began := time.Now()
	r.stop()
	if d := time.Since(began); d > 3*time.Second {
		t.Errorf("the stop took %v", d)
	}
	if resp := receive(t, ch); resp == nil || resp.Code != remoting.RespPullNotFound {
		t.Errorf("%v", resp)
	}
}

func TestPullCommitsOffset(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	r.send("T", 0, "", "x")
	h := pullHeaderOf("G", "T", 0, 0)
	h.SysFlag |= pullCommit
	h.CommitOffset = 1
	r.ok(remoting.ReqPullMessage, h, nil)
	if off, ok := r.offsets.Committed("T", "G", 0); !ok || off != 1 {
		t.Errorf("%d %v", off, ok)
	}
	h.CommitOffset = -1
	r.ok(remoting.ReqPullMessage, h, nil)
	if off, _ := r.offsets.Committed("T", "G", 0); off != 1 {
		t.Errorf("-1 was committed: %d", off)
	}
}

func TestDeletedTopicWakesItsPulls(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	ch := r.waiting(r.c, remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), time.Minute)
	r.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: "T"}, nil)
	if resp := receive(t, ch); resp.Code != remoting.RespTopicNotExist {
		t.Errorf("%d %s", resp.Code, resp.Remark)
	}
}
