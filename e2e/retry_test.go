package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apache/rocketmq-client-go/v2/producer"

	"mqx/message"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// client49 is one JVM with the Java client 4.9 for all tests.
var client49 struct {
	sync.Once
	*driver
}

// oldClient is the Java client 4.9.
func oldClient(t *testing.T) *driver {
	t.Helper()
	client49.Do(func() {
		jars, err := output("java49/fetch")
		if err != nil {
			t.Fatal(err)
		}
		classes := filepath.Join(workDir, "classes49")
		libraries := filepath.Join(strings.TrimSpace(jars), "*")
		if _, err := output("javac", "-nowarn", "-d", classes, "-cp", libraries, "java49/Client49.java"); err != nil {
			t.Fatal(err)
		}
		client49.driver = startJVM(t, "Client49", classes+":"+libraries)
	})
	if client49.driver == nil {
		t.Fatal("the Java client 4.9 did not start")
	}
	return client49.driver
}

// startCluster is a cluster of its own, with more lines of broker.conf.
func startCluster(t *testing.T, extra ...string) cluster {
	t.Helper()
	ns, br := freePort(t), freePort(t)
	mqxNameserver(t, ns).cleanup(t)
	mqxBroker(t, brokerSpec{port: br, namesrv: loopback(ns), store: filepath.Join(testDir(t, "store"), "store"), extra: extra}).cleanup(t)
	waitRegistered(t, loopback(ns))
	return cluster{namesrv: loopback(ns), broker: loopback(br)}
}

// apacheCluster is a name server and a broker of Apache's, for a test that needs them beside those of mqx.
func apacheCluster(t *testing.T, extra ...string) cluster {
	t.Helper()
	ns, br := freePort(t), freePort(t)
	apacheNameserver(t, ns).cleanup(t)
	apacheBroker(t, brokerSpec{port: br, namesrv: loopback(ns), store: filepath.Join(testDir(t, "store"), "store"), extra: extra}).cleanup(t)
	waitRegistered(t, loopback(ns))
	return cluster{namesrv: loopback(ns), broker: loopback(br)}
}

// pushOf starts a push consumer of a Java client and returns what it gets.
func pushOf(t *testing.T, d *driver, c cluster, topic, group string, more map[string]any) func() []incoming {
	t.Helper()
	id := group + "@" + t.Name()
	args := map[string]any{"id": id, "namesrv": c.namesrv, "group": group, "topic": topic}
	for k, v := range more {
		args[k] = v
	}
	d.call(t, "push", args, nil)
	t.Cleanup(func() { _ = d.try("stop", map[string]any{"id": id}, nil) })
	return func() []incoming {
		var got []incoming
		d.call(t, "received", map[string]any{"id": id}, &got)
		return got
	}
}

// rawCall sends a request as no client library would.
func rawCall(t *testing.T, addr string, code int32, head any, body []byte) *remoting.Command {
	t.Helper()
	c := remoteclient.New(remoteclient.Config{RequestTimeout: 10 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req := remoting.NewRequest(code, head)
	req.Body = body
	resp, err := c.Call(ctx, addr, req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// retryLevels are the delays of attempts: one second, but two before the second one.
const retryLevels = "messageDelayLevel=1s 1s 1s 2s 1s"

// retryCase is a group of a Java client that fails every message.
type retryCase struct {
	name    string
	old     bool // client 4.9
	orderly bool
	max     int32 // 0: the client's default, 16
}

// Push consumers of the Java clients that fail until the dead letter: each attempt comes once, with its count, not
// before its time, and the dead letter has all that the message had.
func TestRetriesOfJavaClients(t *testing.T) {
	t.Parallel()
	c := startCluster(t, retryLevels)
	for _, tt := range []retryCase{
		{name: "concurrent", max: 2},
		{name: "orderly", orderly: true, max: 2},
		{name: "default"},
		{name: "none", max: -2},
		{name: "old_concurrent", old: true, max: 2},
		{name: "old_orderly", old: true, orderly: true, max: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			failUntilDead(t, c, tt)
		})
	}
}

func failUntilDead(t *testing.T, c cluster, tt retryCase) {
	d := sharedDriver(t)
	if tt.old {
		d = oldClient(t)
	}
	topic, group := "E2E_RETRY_"+tt.name, "GID_retry_"+tt.name
	createTopic(t, c.namesrv, topic, 1)
	out := numbered(tt.name, 3)
	for i := range out {
		out[i].Tag, out[i].Keys, out[i].Properties = "paid", fmt.Sprintf("k%d", i), map[string]string{"own": fmt.Sprint(i)}
	}
	results := d.send(t, c.namesrv, topic, "sync", out, nil)
	args := map[string]any{"orderly": tt.orderly, "failTimes": 100, "suspend": 200}
	most := int32(16)
	switch {
	case tt.max > 0:
		args["max"], most = tt.max, tt.max
	case tt.max == -2:
		args["max"], most = 0, 0
	}
	received := pushOf(t, d, c, topic, group, args)
	var dead []incoming
	waitFor(t, arrival+60*time.Second, "the dead letters of "+group, func() (bool, string) {
		if names, err := sharedDriver(t).route(c.namesrv, "%DLQ%"+group); err != nil || len(names) == 0 {
			return false, "no topic"
		}
		dead = d.pull(t, c.namesrv, "%DLQ%"+group, "")
		return len(dead) >= len(out), fmt.Sprintf("%d of %d", len(dead), len(out))
	})
	if why := missing(out, dead); why != "" {
		t.Errorf("dead letters: %s", why)
	}
	checkAttempts(t, tt, topic, most, received())
	checkDead(t, tt, topic, most, results, dead)
	for _, name := range []string{"%RETRY%" + group, "%DLQ%" + group} { // N053: tools read dead letters
		text := sharedDriver(t).admin(t, "topicRoute", "-n", c.namesrv, "-t", name)
		compact := strings.ReplaceAll(text, " ", "")
		if !strings.Contains(compact, `"perm":6`) || !strings.Contains(compact, `"readQueueNums":1`) || !strings.Contains(compact, `"writeQueueNums":1`) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// checkAttempts looks at what the consumer got.
func checkAttempts(t *testing.T, tt retryCase, topic string, most int32, got []incoming) {
	t.Helper()
	byBody := map[string][]incoming{}
	for _, m := range got {
		byBody[string(m.Body)] = append(byBody[string(m.Body)], m)
	}
	want := make([]int32, most+1)
	for i := range want {
		want[i] = int32(i)
	}
	for body, list := range byBody {
		times := make([]int32, len(list))
		for i, m := range list {
			times[i] = m.Times
			if m.Topic != topic || m.MsgID != list[0].MsgID || m.Tag != "paid" || m.Properties["own"] == "" {
				t.Errorf("%q, attempt %d: topic %s, id %s, properties %v", body, i, m.Topic, m.MsgID, m.Properties)
			}
			if i == 0 || tt.orderly {
				continue
			}
			wait := time.Second
			if i == 2 {
				wait = 2 * time.Second
			}
			if took := time.Duration(m.At-list[i-1].At) * time.Millisecond; took < wait-10*time.Millisecond {
				t.Errorf("%q, attempt %d came after %v, want %v", body, i, took, wait)
			}
		}
		if !slices.Equal(times, want) {
			t.Errorf("%q came with counts %v, want %v", body, times, want)
		}
	}
}

// checkDead looks at the dead letters.
func checkDead(t *testing.T, tt retryCase, topic string, most int32, results []sent, dead []incoming) {
	t.Helper()
	for _, m := range dead {
		i := slices.IndexFunc(results, func(r sent) bool { return r.MsgID == m.MsgID })
		if i < 0 {
			t.Errorf("a dead letter with the id %s", m.MsgID)
			continue
		}
		origin, count := results[i].OffsetMsgID, most+1
		if tt.orderly { // the client sends it to the retry topic itself, and knows no other id
			origin = results[i].MsgID
		}
		if tt.orderly && tt.old { // it does not count the last attempt
			count = most
		}
		if m.Times != count {
			t.Errorf("a dead letter with count %d, want %d", m.Times, count)
		}
		for name, v := range map[string]string{"RETRY_TOPIC": topic, "ORIGIN_MESSAGE_ID": origin, "TAGS": "paid", "KEYS": fmt.Sprintf("k%d", i), "own": fmt.Sprint(i)} {
			if m.Properties[name] != v {
				t.Errorf("a dead letter with %s=%q, want %q", name, m.Properties[name], v)
			}
		}
	}
}

// The group's maximum counts where a request names none, and its retry queues are those of the group.
func TestRetriesByGroup(t *testing.T) {
	t.Parallel()
	c := startCluster(t, retryLevels)
	const topic, group = "E2E_RETRY_GROUP", "GID_retry_group"
	createTopic(t, c.namesrv, topic, 1)
	sharedDriver(t).admin(t, "updateSubGroup", "-b", c.broker, "-g", group, "-r", "1", "-q", "2")
	sharedDriver(t).send(t, c.namesrv, topic, "sync", numbered("group", 1), nil)
	var first []incoming
	waitFor(t, arrival, "the message", func() (bool, string) {
		first = sharedDriver(t).pull(t, c.namesrv, topic, "")
		return len(first) == 1, fmt.Sprint(len(first))
	})
	back := func(m incoming) {
		h := &remoting.ConsumerSendMsgBackHeader{Offset: m.PhysicalOffset, Group: group, OriginTopic: topic}
		if resp := rawCall(t, c.broker, remoting.ReqConsumerSendMsgBack, h, nil); resp.Code != 0 {
			t.Fatalf("send-back: %d %s", resp.Code, resp.Remark)
		}
	}
	come := func(topic string) (out []incoming) {
		waitTopic(t, c.namesrv, topic)
		waitFor(t, arrival, topic, func() (bool, string) {
			out = sharedDriver(t).pull(t, c.namesrv, topic, "")
			return len(out) == 1, fmt.Sprint(len(out))
		})
		return out
	}
	back(first[0])
	retried := come("%RETRY%" + group)[0]
	if retried.Times != 1 || retried.Properties["RETRY_TOPIC"] != topic {
		t.Errorf("%+v", retried)
	}
	back(retried)
	if dead := come("%DLQ%" + group)[0]; dead.Times != 2 || dead.Properties["ORIGIN_MESSAGE_ID"] != retried.Properties["ORIGIN_MESSAGE_ID"] {
		t.Errorf("%+v", dead)
	}
	text := sharedDriver(t).admin(t, "topicRoute", "-n", c.namesrv, "-t", "%RETRY%"+group)
	if !strings.Contains(strings.ReplaceAll(text, " ", ""), `"writeQueueNums":2`) {
		t.Errorf("%s", text)
	}
	h := &remoting.ConsumerSendMsgBackHeader{Offset: first[0].PhysicalOffset + 1, Group: group, OriginTopic: topic}
	if resp := rawCall(t, c.broker, remoting.ReqConsumerSendMsgBack, h, nil); resp.Code != remoting.RespSystemError || !strings.Contains(resp.Remark, "look message by offset failed") {
		t.Errorf("%d %q", resp.Code, resp.Remark)
	}
}

// A client that sends to its retry topic itself: delivered to the group with its count, past its attempts or while the
// group consumes in order a dead letter at once.
func TestSendsToRetryTopics(t *testing.T) {
	t.Parallel()
	c := startCluster(t, retryLevels)
	d := sharedDriver(t)
	for _, tt := range []struct {
		name    string
		orderly bool
		times   string
		dead    bool
	}{
		{"third_of_three", false, "3", false}, {"fourth_of_three", false, "4", true}, {"in_order", true, "1", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			topic, group := "E2E_TORETRY_"+tt.name, "GID_toretry_"+tt.name
			createTopic(t, c.namesrv, topic, 1)
			d.send(t, c.namesrv, topic, "sync", numbered("plain", 1), nil)
			received := pushOf(t, d, c, topic, group, map[string]any{"orderly": tt.orderly})
			waitFor(t, arrival, "the consumer to work", func() (bool, string) { return len(received()) == 1, "" })
			waitTopic(t, c.namesrv, "%RETRY%"+group)
			d.call(t, "sendToRetry", map[string]any{
				"namesrv": c.namesrv, "group": group, "topic": topic, "times": tt.times, "max": "3", "origin": "ID0",
				"body": base64.StdEncoding.EncodeToString([]byte("again")), "keys": "k",
			}, nil)
			var got incoming
			if tt.dead {
				waitTopic(t, c.namesrv, "%DLQ%"+group)
				waitFor(t, arrival, "the dead letter", func() (bool, string) {
					all := d.pull(t, c.namesrv, "%DLQ%"+group, "")
					if len(all) == 1 {
						got = all[0]
					}
					return len(all) == 1, fmt.Sprint(len(all))
				})
			} else {
				waitFor(t, arrival, "the attempt", func() (bool, string) {
					all := received()
					got = all[len(all)-1]
					return len(all) == 2, fmt.Sprint(len(all))
				})
				if got.Topic != topic {
					t.Errorf("topic %s", got.Topic)
				}
			}
			if string(got.Body) != "again" || fmt.Sprint(got.Times) != tt.times || got.Properties["ORIGIN_MESSAGE_ID"] != "ID0" || got.Properties["RETRY_TOPIC"] != topic || got.Keys != "k" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A message as large as the broker takes survives its delay and its retries.
func TestLargestMessageIsRetried(t *testing.T) {
	t.Parallel()
	c := startCluster(t, retryLevels)
	const topic, group = "E2E_RETRY_LARGE", "GID_retry_large"
	createTopic(t, c.namesrv, topic, 1)
	body := strings.Repeat("x", 512<<10) // maxMessageSize of the tests
	p := goProducer(t, c.namesrv, producer.WithCompressMsgBodyOverHowmuch(1<<30))
	m := goMessage(topic, outgoing{Body: body})
	m.WithDelayTimeLevel(1)
	if _, err := p.SendSync(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	received := pushOf(t, sharedDriver(t), c, topic, group, map[string]any{"failTimes": 100, "max": 2})
	waitTopic(t, c.namesrv, "%DLQ%"+group)
	waitFor(t, arrival, "the dead letter", func() (bool, string) {
		dead := sharedDriver(t).pull(t, c.namesrv, "%DLQ%"+group, "")
		return len(dead) == 1 && string(dead[0].Body) == body, fmt.Sprint(len(dead))
	})
	if n := len(received()); n != 3 {
		t.Errorf("%d attempts, want 3", n)
	}
}

// The Java client 4.9 with everything else that applications do with it.
func TestOldJavaClient(t *testing.T) {
	t.Parallel()
	c := startCluster(t, append([]string{"enablePropertyFilter=true"}, transactionLines...)...)
	d := oldClient(t)
	const topic = "E2E_OLD"
	createTopic(t, c.namesrv, topic, 4)
	all := kinds()
	for kind, ms := range all {
		mode := kind
		if kind == "compressed" || kind == "keyed" || kind == "tagged" {
			mode = "sync"
		}
		d.send(t, c.namesrv, topic, mode, ms, nil)
	}
	want := allOf(all)
	push := pushOf(t, d, c, topic, "GID_old_push", nil)
	tagged := pushOf(t, d, c, topic, "GID_old_tag", map[string]any{"expression": "paid || none"})
	bySQL := pushOf(t, d, c, topic, "GID_old_sql", map[string]any{"sql": true, "expression": "attempt BETWEEN 2 AND 4 AND TAGS IS NULL"})
	var pulled []incoming
	waitFor(t, arrival, "everything by pulls", func() (bool, string) { // what was sent one-way may be on its way
		pulled = d.pull(t, c.namesrv, topic, "")
		why := missing(want, pulled)
		return why == "", why
	})
	checkOffsets(t, pulled)
	if why := missing(want, sharedDriver(t).pull(t, c.namesrv, topic, "")); why != "" {
		t.Errorf("read by the client 5.5: %s", why)
	}
	part := func(prefix string, keep func(outgoing) bool) []outgoing {
		return slices.DeleteFunc(slices.Clone(want), func(m outgoing) bool { return !strings.HasPrefix(m.Body, prefix) || !keep(m) })
	}
	for name, p := range map[string]struct {
		received func() []incoming
		want     []outgoing
	}{
		"push": {push, want}, "tag": {tagged, part("tagged", func(m outgoing) bool { return m.Tag == "paid" })},
		"SQL92": {bySQL, part("keyed", func(m outgoing) bool { a := m.Properties["attempt"]; return a >= "2" && a <= "4" })},
	} {
		waitFor(t, arrival, name, func() (bool, string) { why := missing(p.want, p.received()); return why == "", why })
	}

	t.Run("order", func(t *testing.T) {
		const topic = "E2E_OLD_ORDER"
		createTopic(t, c.namesrv, topic, 4)
		ms := numbered("order", 30)
		d.send(t, c.namesrv, topic, "shard", ms, map[string]any{"shard": "customer-7"})
		received := pushOf(t, d, c, topic, "GID_old_order", map[string]any{"orderly": true})
		waitFor(t, arrival, "the messages", func() (bool, string) { why := missing(ms, received()); return why == "", why })
		if got := bodies(received()); !slices.IsSorted(got) {
			t.Errorf("out of order: %v", got)
		}
	})
	t.Run("transactions", func(t *testing.T) {
		const topic = "E2E_OLD_TX"
		createTopic(t, c.namesrv, topic, 2)
		sent := txBodies("old")
		var ms []map[string]string
		for _, b := range sent {
			ms = append(ms, map[string]string{"body": base64.StdEncoding.EncodeToString([]byte(b))})
		}
		d.call(t, "transactions", map[string]any{"namesrv": c.namesrv, "group": "PG_old", "topic": topic, "messages": ms}, nil)
		for _, m := range waitDelivered(t, c.namesrv, topic, delivered(sent)) {
			if _, ok := m.Properties[message.PropRealTopic]; ok || m.Properties["__transactionId__"] == "" {
				t.Errorf("a consumer gets %v", m.Properties)
			}
		}
		var asked []string
		d.call(t, "transactionsChecked", nil, &asked)
		for _, b := range asked {
			if !strings.HasPrefix(b, "u/") || !strings.HasSuffix(b, " "+topic) {
				t.Errorf("asked about %q", b)
			}
		}
		if diff := cmp.Diff(0, len(waitDelivered(t, c.namesrv, topic, delivered(sent)))-len(delivered(sent))); diff != "" {
			t.Error(diff)
		}
	})
}

// handedRetries are retries in flight and a dead letter that one make leaves in its store; see TestDelayedMessagesChangeHands.
type handedRetries struct {
	namesrv, broker string
	out             []outgoing
	origins         map[string]string // first ids by body
	sentAt          time.Time
}

const (
	handedTopic = "E2E_RETRY_HANDS"
	handedGroup = "GID_retry_hands"
	handedLevel = 2 // of 20 s
)

func (h *handedRetries) back(t *testing.T, m incoming, level int32, most remoting.Opt[int32]) {
	t.Helper()
	head := &remoting.ConsumerSendMsgBackHeader{Offset: m.PhysicalOffset, Group: handedGroup, OriginTopic: handedTopic, DelayLevel: level, MaxReconsumeTimes: most}
	if resp := rawCall(t, h.broker, remoting.ReqConsumerSendMsgBack, head, nil); resp.Code != 0 {
		t.Fatalf("send-back: %d %s", resp.Code, resp.Remark)
	}
}

func (h *handedRetries) come(t *testing.T, topic string, n int) (got []incoming) {
	t.Helper()
	waitTopic(t, h.namesrv, topic)
	waitFor(t, arrival+30*time.Second, topic, func() (bool, string) {
		got = sharedDriver(t).pull(t, h.namesrv, topic, "")
		return len(got) >= n, fmt.Sprintf("%d of %d", len(got), n)
	})
	return got
}

// leaveRetries sends messages back: four for later, one to the dead letters.
func leaveRetries(t *testing.T, namesrv, broker string) *handedRetries {
	t.Helper()
	h := &handedRetries{namesrv: namesrv, broker: broker, out: numbered("hands", 5), origins: map[string]string{}}
	createTopic(t, namesrv, handedTopic, 1)
	for i, r := range sharedDriver(t).send(t, namesrv, handedTopic, "sync", h.out, nil) {
		h.origins[h.out[i].Body] = r.OffsetMsgID
	}
	h.sentAt = time.Now()
	for i, m := range h.come(t, handedTopic, len(h.out)) {
		h.back(t, m, []int32{handedLevel, -1}[i/4], remoting.Opt[int32]{})
	}
	if why := missing(h.out[4:], h.come(t, message.DLQTopic(handedGroup), 1)); why != "" {
		t.Errorf("the first dead letter: %s", why)
	}
	return h
}

// takeOver: the other make delivers the retries once, not early, with their counts and origin, and goes on until the
// dead letters.
func (h *handedRetries) takeOver(t *testing.T) {
	t.Helper()
	retried := h.come(t, message.RetryTopic(handedGroup), 4)
	if why := missing(h.out[:4], retried); why != "" {
		t.Errorf("retries: %s", why)
	}
	for _, m := range retried {
		if early := h.sentAt.Add(20 * time.Second).Sub(time.UnixMilli(m.StoreTimestamp)); early > 0 {
			t.Errorf("%q came %v early", m.Body, early)
		}
		if m.Times != 1 {
			t.Errorf("%q came with count %d", m.Body, m.Times)
		}
		h.back(t, m, 0, remoting.Some(int32(1)))
	}
	dead := h.come(t, message.DLQTopic(handedGroup), 5)
	if why := missing(h.out, dead); why != "" {
		t.Errorf("dead letters: %s", why)
	}
	for _, m := range append(dead, retried...) {
		if m.Properties["ORIGIN_MESSAGE_ID"] != h.origins[string(m.Body)] || m.Properties["RETRY_TOPIC"] != handedTopic || m.Times < 1 {
			t.Errorf("%q, count %d: %v", m.Body, m.Times, m.Properties)
		}
	}
}
