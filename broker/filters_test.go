package broker

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"mqx/message"
	"mqx/remoting"
)

func filterConfig(t *testing.T) Config {
	cfg := testConfig(t.TempDir())
	cfg.EnablePropertyFilter = true
	return cfg
}

func subSQL(topic, expr string, version int64) remoting.SubscriptionData {
	return remoting.SubscriptionData{Topic: topic, SubString: expr, ExpressionType: "SQL92", SubVersion: version}
}

// byGroup is a pull that takes the group's subscription.
func byGroup(group, topic string, offset, version int64) *remoting.PullMessageHeader {
	h := pullHeaderOf(group, topic, 0, offset)
	h.SysFlag, h.Subscription, h.SubVersion = 0, "", version
	return h
}

func bodiesOf(t *testing.T, resp *remoting.Command) string {
	t.Helper()
	var out []string
	for _, rec := range records(t, resp.Body) {
		out = append(out, string(rec.Body))
	}
	return strings.Join(out, " ")
}

func TestExpressionFilteredPull(t *testing.T) {
	r := start(t, filterConfig(t))
	r.createTopic("T", 1)
	for i, p := range []string{prop("a", "1"), prop("a", "2", "TAGS", "x"), prop("b", "1"), prop("a", "no number"), prop("a", "7")} {
		r.send("T", 0, p, fmt.Sprint("m", i))
	}
	r.heartbeat("G", remoting.Clustering, subSQL("T", "a between 2 and 7", 10))
	resp := r.ok(remoting.ReqPullMessage, byGroup("G", "T", 0, 10), nil)
	if got := bodiesOf(t, resp); got != "m1 m4" || resp.Fields.String("nextBeginOffset") != "5" {
		t.Errorf("%q, next %s", got, resp.Fields.String("nextBeginOffset"))
	}
	resp = r.call(remoting.ReqPullMessage, byGroup("G", "T", 2, 10), nil)
	if got := bodiesOf(t, resp); got != "m4" {
		t.Errorf("%q", got)
	}
	h := pullHeaderOf("other", "T", 0, 0)
	h.Subscription, h.ExpressionType = "TAGS = 'x' or b = 1", "SQL92"
	if got := bodiesOf(t, r.ok(remoting.ReqPullMessage, h, nil)); got != "m1 m2" {
		t.Errorf("%q", got)
	}
	h.Subscription = "a = 100"
	resp = r.call(remoting.ReqPullMessage, h, nil)
	if resp.Code != remoting.RespPullRetryImmediately || resp.Fields.String("nextBeginOffset") != "5" {
		t.Errorf("%d, next %s", resp.Code, resp.Fields.String("nextBeginOffset"))
	}
}

func TestExpressionChecks(t *testing.T) {
	r := start(t, filterConfig(t))
	r.createTopic("T", 1)
	r.createTopic("U", 1)
	r.createTopic("V", 1)
	r.heartbeat("G", remoting.Clustering, subSQL("T", "a = 1", 10), subSQL("U", "a ==", 10), remoting.SubscriptionData{Topic: "V", SubString: "x", ExpressionType: "XYZ", SubVersion: 10})
	ofRequest := func(expr, typ string) *remoting.PullMessageHeader {
		h := pullHeaderOf("G", "T", 0, 0)
		h.Subscription, h.ExpressionType = expr, typ
		return h
	}
	for _, tt := range []struct {
		name string
		head *remoting.PullMessageHeader
		code int32
		text string
	}{
		{"in force", byGroup("G", "T", 0, 10), 19, ""},
		{"cannot be parsed", byGroup("G", "U", 0, 10), 27, "The broker's consumer filter data is not exist!Your expression may be wrong!"},
		{"of an unknown type", byGroup("G", "V", 0, 10), 27, "filter data is not exist"},
		{"newer", byGroup("G", "T", 0, 11), 25, "subscription not latest"},
		{"broken in the request", ofRequest("a >\n 'x'", "SQL92"), 23, "line 2, column 2: only properties and numbers"},
		{"empty in the request", ofRequest("", "SQL92"), 23, "expression is empty"},
		{"of an unknown type in the request", ofRequest("a", "XYZ"), 23, "neither TAG nor SQL92"},
	} {
		resp := r.call(remoting.ReqPullMessage, tt.head, nil)
		if resp.Code != tt.code || !strings.Contains(resp.Remark, tt.text) {
			t.Errorf("%s: %d %q", tt.name, resp.Code, resp.Remark)
		}
	}
	// The table is behind the subscription: the pull is told so.
	d := *r.filters.get("T", "G")
	d.version = 9
	r.filters.mu.Lock()
	r.filters.put(&d)
	r.filters.mu.Unlock()
	if resp := r.call(remoting.ReqPullMessage, byGroup("G", "T", 0, 10), nil); resp.Code != remoting.RespFilterDataNotLatest {
		t.Errorf("%d %q", resp.Code, resp.Remark)
	}
}

func TestCheckClientExpression(t *testing.T) {
	r := start(t, filterConfig(t))
	for expr, want := range map[string]int32{"a = 1": 0, "a = ": 23, "": 23} {
		body, err := marshal(&remoting.CheckClientBody{ClientID: "a", Group: "G", SubscriptionData: &remoting.SubscriptionData{Topic: "T", SubString: expr, ExpressionType: "SQL92"}})
		if err != nil {
			t.Fatal(err)
		}
		if resp := r.call(remoting.ReqCheckClientConfig, nil, body); resp.Code != want || want != 0 && !strings.Contains(resp.Remark, "line 1, column") {
			t.Errorf("%q: %d %q", expr, resp.Code, resp.Remark)
		}
	}
}

// A held pull is not woken by what its expression does not want, and is by what it wants.
func TestHeldPullsByExpression(t *testing.T) {
	r := start(t, filterConfig(t))
	r.createTopic("T", 1)
	r.heartbeat("G", remoting.Clustering, subSQL("T", "a = 1", 10))
	h := byGroup("G", "T", 0, 10)
	h.SysFlag, h.SuspendTimeoutMillis = pullSuspend, 60_000
	got := make(chan *remoting.Command, 1)
	go func() {
		resp, err := r.c.Call(context.Background(), r.addr, remoting.NewRequest(remoting.ReqPullMessage, h))
		if err != nil {
			t.Error(err)
		}
		got <- resp
	}()
	waitFor(t, "the pull to be held", func() bool { return r.hold.Len() == 1 })
	r.send("T", 0, prop("a", "2"), "no")
	r.settle()
	select {
	case resp := <-got:
		t.Fatalf("woken with %d", resp.Code)
	default:
	}
	if r.hold.Len() != 1 {
		t.Fatal("not held any more")
	}
	r.send("T", 0, prop("a", "1"), "yes")
	if resp := <-got; resp == nil || bodiesOf(t, resp) != "yes" {
		t.Errorf("%v", resp)
	}
}

// A client that leaves ends its group's filters; they are saved at a stop and known to the next start.
func TestExpressionsOutliveAStop(t *testing.T) {
	cfg := filterConfig(t)
	r := start(t, cfg)
	r.createTopic("T", 1)
	r.heartbeat("G", remoting.Clustering, subSQL("T", "a = 1", 10))
	born := r.filters.get("T", "G").born
	r.ok(remoting.ReqUnregisterClient, &remoting.UnregisterClientHeader{ClientID: "me", ConsumerGroup: "G"}, nil)
	if d := r.filters.get("T", "G"); !d.dead() {
		t.Error("in force without a client")
	}
	r.stop()
	r = start(t, cfg)
	if d := r.filters.get("T", "G"); d == nil || !d.dead() || d.born != born {
		t.Fatalf("%+v", d)
	}
	r.heartbeat("G", remoting.Clustering, subSQL("T", "a = 1", 11))
	if d := r.filters.get("T", "G"); d.dead() || d.born != born || d.version != 11 {
		t.Errorf("%+v", d)
	}
}

func TestRetryTopicByExpression(t *testing.T) {
	cfg := filterConfig(t)
	cfg.FilterSupportRetry = true
	r := start(t, cfg)
	r.createTopic("T", 1)
	retry := message.RetryTopic("G")
	r.heartbeat("G", remoting.Clustering, subSQL("T", "a = 1", 10), subSQL(retry, "TRUE", 10))
	r.send(retry, 0, prop(message.PropRetryTopic, "T", "a", "2"), "no")
	r.send(retry, 0, prop(message.PropRetryTopic, "T", "a", "1"), "yes")
	if got := bodiesOf(t, r.ok(remoting.ReqPullMessage, byGroup("G", retry, 0, 10), nil)); got != "yes" {
		t.Errorf("%q", got)
	}
}
