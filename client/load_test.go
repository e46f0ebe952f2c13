package client

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mqx/message"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
	"mqx/remoting/server"
)

func loadConfig(ns string, change func(*LoadConfig)) LoadConfig {
	cfg := LoadConfig{Config: Config{NameServers: []string{ns}}, Topics: []string{"T"}, InFlight: 8, Connections: 2, BodySize: 100, Count: 500, WaitStore: true, Verify: true}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

func TestLoadProduceVerified(t *testing.T) {
	ns := startNameServer(t)
	a, b := startBroker(t, ns, "a", "T:3"), startBroker(t, ns, "b", "T:2", "U:1")
	for _, c := range []struct {
		what   string
		change func(*LoadConfig)
		want   int64
	}{
		{"single", nil, 500},
		{"batches", func(c *LoadConfig) { c.Batch = 7 }, 504},
		{"one in flight", func(c *LoadConfig) { c.InFlight, c.Count = 1, 20 }, 20},
		{"two topics, one queue", func(c *LoadConfig) { c.Topics, c.Queues = []string{"T", "U"}, 1 }, 500},
		{"one broker", func(c *LoadConfig) { c.Brokers = []string{b.addr} }, 500},
		{"large bodies", func(c *LoadConfig) { c.BodySize = 300_000; c.Count = 10 }, 10},
		{"smallest body", func(c *LoadConfig) { c.BodySize = 1 }, 500},
		{"binary headers", func(c *LoadConfig) { c.Serialize = remoting.SerializeROCKETMQ }, 500},
		{"a new topic", func(c *LoadConfig) { c.Topics = []string{"Fresh"} }, 500},
		{"signed", func(c *LoadConfig) { c.Credentials = &remoteclient.Credentials{AccessKey: "a", SecretKey: "s"} }, 500},
		{"a time", func(c *LoadConfig) { c.Count, c.Warmup, c.Duration = 0, 20*time.Millisecond, 50*time.Millisecond }, -1},
	} {
		r, err := LoadProduce(t.Context(), loadConfig(ns, c.change))
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if c.want >= 0 && (r.Messages != c.want || r.Checked != c.want) || r.Messages == 0 || r.Checked < r.Messages || r.Errors != 0 ||
			!r.Verified || r.Lost+r.Duplicated+r.OutOfOrder+r.Corrupt != 0 || r.PerSecond <= 0 || r.Latency.P50 <= 0 || r.Latency.Max < r.Latency.P999 {
			t.Errorf("%s: %+v", c.what, r)
		}
	}
	if n := len(a.requests(remoting.ReqSendMessageV2)); n == 0 {
		t.Error("broker a got nothing")
	}
	// What goes over the wire is what a client sends.
	for _, s := range b.requests(remoting.ReqSendMessageV2)[:50] {
		props := message.ParseProperties([]byte(s.fields["i"]))
		if s.fields["a"] != DefaultProducerGroup || s.fields["m"] != "false" || s.fields["n"] != "b" || len(props[message.PropUniqKey]) != 32 ||
			props[message.PropWait] != "true" || len(s.fields["g"]) != 13 {
			t.Fatalf("request %v %v", s.fields, props)
		}
	}
}

// TestLoadCheckFinds proves that the check finds what it is for.
func TestLoadCheckFinds(t *testing.T) {
	storeTwice := func(b *fakeBroker, r *server.Request) bool {
		var h remoting.SendMessageHeader
		if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
			t.Error(err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.put(queueKey{h.Topic, h.QueueID}, message.Record{Body: r.Body, Properties: []byte(h.Properties)})
		return false
	}
	var n atomic.Int64
	every := func(k int64, f func(*server.Request) bool) func(*server.Request) bool {
		return func(r *server.Request) bool { return n.Add(1)%k == 0 && f(r) }
	}
	for _, c := range []struct {
		what  string
		fault func(b *fakeBroker) func(*server.Request) bool
		want  func(r *LoadReport) bool
	}{
		{"lost", func(b *fakeBroker) func(*server.Request) bool {
			return every(50, func(r *server.Request) bool {
				resp := &remoting.Command{}
				remoting.EncodeHeader(&resp.Fields, &remoting.SendMessageResponseHeader{MsgID: "x"})
				r.ReplyWith(resp)
				return true
			})
		}, func(r *LoadReport) bool { return r.Lost == 10 && r.Duplicated+r.OutOfOrder+r.Corrupt == 0 }},
		{"twice", func(b *fakeBroker) func(*server.Request) bool {
			return every(50, func(r *server.Request) bool { return storeTwice(b, r) })
		}, func(r *LoadReport) bool { return r.Duplicated == 10 && r.Lost+r.Corrupt == 0 }},
		{"corrupt", func(b *fakeBroker) func(*server.Request) bool {
			return every(50, func(r *server.Request) bool { r.Body[len(r.Body)-1] ^= 1; return false })
		}, func(r *LoadReport) bool { return r.Corrupt == 10 && r.Lost == 10 }},
		{"refused", func(b *fakeBroker) func(*server.Request) bool {
			return every(50, func(r *server.Request) bool { r.Reply(remoting.RespSystemBusy, "busy"); return true })
		}, func(r *LoadReport) bool {
			return r.Errors >= 10 && r.ErrorKinds["SYSTEM_BUSY: busy"] == r.Errors && r.Lost+r.Duplicated+r.OutOfOrder+r.Corrupt == 0
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			ns := startNameServer(t)
			b := startBroker(t, ns, "a", "T:2")
			n.Store(0)
			b.intercept(remoting.ReqSendMessageV2, c.fault(b))
			old := dispatchGrace
			dispatchGrace = 100 * time.Millisecond
			defer func() { dispatchGrace = old }()
			r, err := LoadProduce(t.Context(), loadConfig(ns, nil))
			if err != nil {
				t.Fatal(err)
			}
			if !c.want(r) {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestLoadOrder(t *testing.T) {
	q := remoting.MessageQueue{Topic: "T"}
	book := newLedger()
	p := book.page()
	p.acknowledge(4)
	for _, n := range []uint64{0, 2, 1, 3} {
		book.found(q, loadMark{run: book.run, number: n}, true)
	}
	r := &LoadReport{}
	book.report(r)
	if r.OutOfOrder != 1 || r.Checked != 4 || book.missing() != 0 {
		t.Errorf("%+v", r)
	}
	other := remoting.MessageQueue{Topic: "T", QueueID: 1}
	book = newLedger()
	book.page().acknowledge(2)
	book.found(other, loadMark{run: book.run, number: 1}, true)
	book.found(q, loadMark{run: book.run, number: 0}, true) // another queue: no order between them
	book.found(q, loadMark{run: 1, number: 7}, true)        // somebody else's
	book.report(r)
	if r.OutOfOrder != 0 || r.Checked != 2 {
		t.Errorf("two queues: %+v", r)
	}
}

func TestLoadConsume(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:3")
	if _, err := LoadProduce(t.Context(), loadConfig(ns, func(c *LoadConfig) { c.Count = 1000 })); err != nil {
		t.Fatal(err)
	}
	b.fill(0, bodies("foreign", 5), "", 1)
	r, err := LoadConsume(t.Context(), loadConfig(ns, nil))
	if err != nil || r.Checked != 1000 || r.Messages != 1005 || r.Lost+r.Duplicated+r.OutOfOrder+r.Corrupt != 0 || r.LossUnknown {
		t.Errorf("verified: %+v %v", r, err)
	}
	r, err = LoadConsume(t.Context(), loadConfig(ns, func(c *LoadConfig) { c.Verify, c.Count = false, 10_000 }))
	if err != nil || r.Messages < 5000 || r.Verified || r.Bytes < 100*r.Messages {
		t.Errorf("over and over: %+v %v", r, err)
	}
	r, err = LoadConsume(t.Context(), loadConfig(ns, func(c *LoadConfig) { c.Verify, c.Count, c.Duration = false, 0, 30*time.Millisecond }))
	if err != nil || r.Messages == 0 {
		t.Errorf("for a time: %+v %v", r, err)
	}
	// A hole, a repetition and old data gone are found.
	b.mu.Lock()
	q := b.queues[queueKey{"T", 1}]
	q.records = append(q.records[:10], q.records[11:]...)
	for i := range q.records {
		message.PatchOffsets(q.records[i], int64(i), 0, 1)
	}
	b.mu.Unlock()
	if r, err = LoadConsume(t.Context(), loadConfig(ns, nil)); err != nil || r.Lost != 1 || r.Duplicated != 0 {
		t.Errorf("a hole: %+v %v", r, err)
	}
	b.mu.Lock()
	q.records = append(q.records, append([]byte(nil), q.records[3]...))
	message.PatchOffsets(q.records[len(q.records)-1], int64(len(q.records)-1), 0, 1)
	b.mu.Unlock()
	if r, err = LoadConsume(t.Context(), loadConfig(ns, nil)); err != nil || r.Lost != 1 || r.Duplicated != 1 {
		t.Errorf("a repetition: %+v %v", r, err)
	}
	b.mu.Lock()
	q.records, q.min = q.records[5:], 5
	b.mu.Unlock()
	if r, err = LoadConsume(t.Context(), loadConfig(ns, nil)); err != nil || !r.LossUnknown || r.Lost != 0 {
		t.Errorf("expired: %+v %v", r, err)
	}
}

func TestLoadRoute(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a", "T:3", "U:1")
	for _, s := range []remoting.Serialize{remoting.SerializeJSON, remoting.SerializeROCKETMQ} {
		r, err := LoadRoute(t.Context(), loadConfig(ns, func(c *LoadConfig) { c.Topics, c.Serialize = []string{"T", "U"}, s }))
		if err != nil || r.Messages != 500 || r.Bytes < 500*50 || r.Errors != 0 {
			t.Errorf("%v: %+v %v", s, r, err)
		}
	}
	if _, err := LoadRoute(t.Context(), loadConfig(ns, func(c *LoadConfig) { c.Topics = []string{"Unknown"} })); err == nil || !strings.Contains(err.Error(), "TOPIC_NOT_EXIST: No topic route info") {
		t.Errorf("unknown topic: %v", err)
	}
}

func TestLoadSurvivesBrokenConnections(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:2")
	var n atomic.Int64
	b.intercept(remoting.ReqSendMessageV2, func(r *server.Request) bool {
		if n.Add(1)%100 == 0 {
			r.Conn().Close("test")
		}
		return false
	})
	r, err := LoadProduce(t.Context(), loadConfig(ns, func(c *LoadConfig) { c.Count = 1000 }))
	if err != nil || r.Errors == 0 || r.Lost+r.Duplicated+r.OutOfOrder+r.Corrupt != 0 || r.Messages < 500 {
		t.Errorf("%+v %v", r, err)
	}
}

func TestLoadErrors(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a", "T:2")
	for what, change := range map[string]func(*LoadConfig){
		"no topic": func(c *LoadConfig) { c.Topics = nil }, "no end": func(c *LoadConfig) { c.Count = 0 },
		"too many in flight": func(c *LoadConfig) { c.InFlight = 1 << 20 }, "connections": func(c *LoadConfig) { c.Connections = -1 },
		"batch": func(c *LoadConfig) { c.Batch = -1 }, "frame": func(c *LoadConfig) { c.BodySize, c.Batch = 1<<20, 100 },
		"no name server": func(c *LoadConfig) { c.NameServers = nil }, "dead name server": func(c *LoadConfig) { c.NameServers = []string{closedPort(t)} },
	} {
		if r, err := LoadProduce(t.Context(), loadConfig(ns, change)); err == nil {
			t.Errorf("%s: %+v", what, r)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := LoadProduce(ctx, loadConfig(ns, nil)); err == nil {
		t.Error("cancelled before it began")
	}
	ctx, cancel = context.WithCancel(t.Context())
	_, err := LoadProduce(ctx, loadConfig(ns, func(c *LoadConfig) {
		c.Count, c.Duration = 0, time.Hour
		c.Progress = func(p LoadProgress) {
			if p.Messages > 0 {
				cancel()
			}
		}
	}))
	if err == nil {
		t.Error("cancelled while it ran")
	}
}

func TestAnswerHead(t *testing.T) {
	for _, s := range []remoting.Serialize{remoting.SerializeJSON, remoting.SerializeROCKETMQ} {
		for _, c := range []remoting.Command{
			{Code: 0, Opaque: firstOpaque + 5, Flag: 1, Body: []byte("x")},
			{Code: 17, Opaque: 3, Flag: 1, Remark: `a "opaque":7 in a remark`},
			{Code: 0, Opaque: 2_000_000_000, Flag: 1, Fields: remoting.Fields{{Key: []byte("msgId"), Value: []byte(`"opaque":1`)}}},
		} {
			frame, err := c.AppendFrame(nil, s)
			if err != nil {
				t.Fatal(err)
			}
			var scratch remoting.Command
			code, opaque, _, body, err := answerHead(frame, &scratch)
			if err != nil || code != c.Code || opaque != c.Opaque || string(body) != string(c.Body) {
				t.Errorf("%v %+v: code %d opaque %d body %q %v", s, c, code, opaque, body, err)
			}
		}
	}
	for in, want := range map[string]string{"12,": "12 true", "2000000000,": "2000000000 true", "12345678901,": "0 false", "x": "0 false", "7": "0 false", "": "0 false"} {
		n, ok := leadingNumber([]byte(in))
		if got := fmt.Sprint(n, ok); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
