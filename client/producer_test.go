package client

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mqx/message"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
	"mqx/remoting/server"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
	)
}

func newTestProducer(t *testing.T, ns string, change func(*ProducerConfig)) *Producer {
	t.Helper()
	cfg := ProducerConfig{Config: Config{NameServers: []string{ns}}, Group: "PG"}
	if change != nil {
		change(&cfg)
	}
	p, err := NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func msg(topic, body string) *message.Message {
	return &message.Message{Topic: topic, Body: []byte(body)}
}

// readAll reads topic T from its start to its end.
func readAll(t *testing.T, ns string, change func(*ReaderConfig)) []*Received {
	t.Helper()
	cfg := ReaderConfig{Config: Config{NameServers: []string{ns}}, Topic: "T"}
	if change != nil {
		change(&cfg)
	}
	r, err := NewReader(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []*Received
	if err := r.Read(t.Context(), func(m *Received) error { out = append(out, m); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSendForms(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:4")
	p := newTestProducer(t, ns, nil)
	ctx := t.Context()

	m := msg("T", "one")
	m.SetKeys("k1", "k2")
	m.SetTags("tagA")
	m.SetProperty("user", "ü")
	m.Flag = 7
	res, err := p.Send(ctx, m, SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != SendOK || res.QueueOffset != 0 || len(res.MessageID) != message.IDLenV4 || len(res.OffsetID) != message.IDLenV4 ||
		res.Broker != b.addr || res.Region != "DefaultRegion" || res.Queue.BrokerName != "a" || res.Queue.Topic != "T" {
		t.Errorf("result %+v", res)
	}
	if m.UniqKey() != "" || m.Property(message.PropWait) != "" {
		t.Errorf("the message was changed: %v", m.Properties)
	}
	sent := b.requests(remoting.ReqSendMessageV2)[0]
	for name, want := range map[string]string{"a": "PG", "b": "T", "c": "TBW102", "d": "4", "f": "0", "h": "7", "j": "0", "k": "false", "m": "false", "n": "a"} {
		if sent.fields[name] != want {
			t.Errorf("field %s = %q, want %q", name, sent.fields[name], want)
		}
	}
	done := make(chan error, 1)
	p.SendAsync(ctx, msg("T", "two"), SendOptions{}, func(_ SendResult, err error) { done <- err })
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := p.SendOneway(ctx, msg("T", "three"), SendOptions{}); err != nil {
		t.Error(err)
	}
	eventually(t, "the one-way message", func() bool { return len(b.requests(remoting.ReqSendMessageV2)) == 3 })
	if last := b.requests(remoting.ReqSendMessageV2)[2]; !last.oneway || string(last.body) != "three" {
		t.Errorf("one-way request: %+v", last)
	}
	batch, err := p.SendBatch(ctx, []*message.Message{msg("T", "four"), msg("T", "five")}, SendOptions{})
	if err != nil || strings.Count(batch.MessageID, ",") != 1 || strings.Count(batch.OffsetID, ",") != 1 {
		t.Fatalf("batch: %+v %v", batch, err)
	}
	if f := b.requests(remoting.ReqSendBatchMessage)[0].fields; f["m"] != "true" {
		t.Errorf("batch fields: %v", f)
	}
	got := map[string]*Received{}
	for _, m := range readAll(t, ns, nil) {
		got[string(m.Body)] = m
	}
	if len(got) != 5 {
		t.Fatalf("read %d messages: %v", len(got), got)
	}
	if one := got["one"]; one.MessageID != res.MessageID || one.OffsetID != res.OffsetID || one.Tags() != "tagA" ||
		one.Property("user") != "ü" || one.Flag != 7 || one.Property(message.PropWait) != "true" || len(one.Keys()) != 2 {
		t.Errorf("message one: %+v", one)
	}
	if ids := strings.Split(batch.MessageID, ","); got["four"].MessageID != ids[0] || got["five"].MessageID != ids[1] {
		t.Errorf("batch ids %v, %s, %s", ids, got["four"].MessageID, got["five"].MessageID)
	}
}

func TestCompression(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:1")
	big, small := strings.Repeat("compress me ", 1000), strings.Repeat("x", 4096)
	for _, c := range []struct {
		kind message.CompressionType
		over int
		body string
		flag string
	}{
		{0, 0, big, "769"}, // 0x301: zlib, as Java
		{message.CompressionLZ4, 0, big, "257"},
		{message.CompressionZstd, 0, big, "513"},
		{0, -1, big, "0"},
		{0, 0, small, "0"},
	} {
		p := newTestProducer(t, ns, func(cfg *ProducerConfig) { cfg.CompressType, cfg.CompressOver = c.kind, c.over })
		if _, err := p.Send(t.Context(), msg("T", c.body), SendOptions{}); err != nil {
			t.Fatal(err)
		}
		reqs := b.requests(remoting.ReqSendMessageV2)
		last := reqs[len(reqs)-1]
		if last.fields["f"] != c.flag || (c.flag != "0") != (len(last.body) < len(c.body)) {
			t.Errorf("%v over %d: sysFlag %s, %d bytes of %d", c.kind, c.over, last.fields["f"], len(last.body), len(c.body))
		}
	}
	for _, m := range readAll(t, ns, nil) {
		if string(m.Body) != big && string(m.Body) != small {
			t.Errorf("offset %d came back as %d bytes", m.QueueOffset, len(m.Body))
		}
		if m.SysFlag&message.FlagCompressed != 0 {
			t.Errorf("offset %d is still marked compressed", m.QueueOffset)
		}
	}
}

func TestQueueChoice(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a", "T:3")
	startBroker(t, ns, "b", "T:2")
	p := newTestProducer(t, ns, nil)
	send := func(o SendOptions) remoting.MessageQueue {
		t.Helper()
		r, err := p.Send(t.Context(), msg("T", "x"), o)
		if err != nil {
			t.Fatal(err)
		}
		return r.Queue
	}
	turn := map[remoting.MessageQueue]int{}
	for range 10 {
		turn[send(SendOptions{})]++
	}
	if len(turn) != 5 {
		t.Errorf("round robin over %d queues: %v", len(turn), turn)
	}
	for q, n := range turn {
		if n != 2 {
			t.Errorf("%v got %d of 10", q, n)
		}
	}
	if q := send(SendOptions{HasQueue: true, QueueID: 1, Broker: "b"}); q.BrokerName != "b" || q.QueueID != 1 {
		t.Errorf("named queue: %v", q)
	}
	if q := send(SendOptions{Broker: "b"}); q.BrokerName != "b" {
		t.Errorf("named broker: %v", q)
	}
	shardQueue := send(SendOptions{ShardKey: "order-1"})
	for range 3 {
		if q := send(SendOptions{ShardKey: "order-1"}); q != shardQueue {
			t.Errorf("one key, two queues: %v %v", q, shardQueue)
		}
	}
	if q := send(SendOptions{Select: func(qs []remoting.MessageQueue) (int, error) { return len(qs) - 1, nil }}); q.BrokerName != "b" || q.QueueID != 1 {
		t.Errorf("selected: %v", q)
	}
	send(SendOptions{Random: true})
	for _, o := range []SendOptions{
		{HasQueue: true, QueueID: 9},
		{Broker: "nobody"},
		{Select: func([]remoting.MessageQueue) (int, error) { return 99, nil }},
		{Select: func([]remoting.MessageQueue) (int, error) { return 0, errors.New("no") }},
	} {
		if _, err := p.Send(t.Context(), msg("T", "x"), o); err == nil {
			t.Errorf("%+v: sent", o)
		}
	}
}

func TestShardIsJavas(t *testing.T) {
	for _, c := range []struct {
		key  string
		n    int
		want int
	}{{"order-1", 8, 6}, {"", 8, 0}, {"polygenelubricants", 7, 0} /* hashCode() is the smallest int */, {"Aa", 5, 2}, {"BB", 5, 2}} {
		if got := shard(c.key, c.n); got != c.want {
			t.Errorf("shard(%q, %d) = %d, want %d", c.key, c.n, got, c.want)
		}
	}
}

func TestAutoCreate(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a")
	p := newTestProducer(t, ns, nil)
	if _, err := p.Send(t.Context(), msg("New", "x"), SendOptions{}); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	n := b.topics["New"].WriteQueueNums
	b.mu.Unlock()
	if n != 4 {
		t.Errorf("created with %d queues", n)
	}
	other := newTestProducer(t, ns, func(c *ProducerConfig) { c.DefaultTopic = "NoTemplate" })
	_, err := other.Send(t.Context(), msg("Other", "x"), SendOptions{})
	var none *NoRouteError
	var re *remoting.ResponseError
	if !errors.As(err, &none) || none.Topic != "Other" || !none.Unknown() || !errors.As(err, &re) {
		t.Errorf("no template: %v", err)
	}
}

func TestRetryOnAnotherBroker(t *testing.T) {
	ns := startNameServer(t)
	a, b := startBroker(t, ns, "a", "T:1"), startBroker(t, ns, "b", "T:1")
	busy := func(r *server.Request) bool { r.Reply(remoting.RespSystemBusy, "busy"); return true }
	a.intercept(remoting.ReqSendMessageV2, busy)
	p := newTestProducer(t, ns, nil)
	for range 4 {
		r, err := p.Send(t.Context(), msg("T", "x"), SendOptions{})
		if err != nil || r.Queue.BrokerName != "b" {
			t.Fatalf("%+v %v", r, err)
		}
	}
	if len(a.requests(remoting.ReqSendMessageV2)) == 0 {
		t.Error("the busy broker was never asked")
	}
	done := make(chan error, 1)
	for range 2 {
		p.SendAsync(t.Context(), msg("T", "x"), SendOptions{}, func(_ SendResult, err error) { done <- err })
		if err := <-done; err != nil {
			t.Errorf("async: %v", err)
		}
	}
	// A named queue is not tried elsewhere.
	_, err := p.Send(t.Context(), msg("T", "x"), SendOptions{HasQueue: true, Broker: "a"})
	var se *SendError
	if !errors.As(err, &se) || len(se.Attempts) != 1 || se.Attempts[0].Queue.BrokerName != "a" {
		t.Errorf("named queue: %v", err)
	}
	// All brokers refuse: every attempt is named.
	b.intercept(remoting.ReqSendMessageV2, busy)
	_, err = p.Send(t.Context(), msg("T", "x"), SendOptions{})
	var re *remoting.ResponseError
	if !errors.As(err, &se) || len(se.Attempts) != 3 || !errors.As(err, &re) || re.Code != remoting.RespSystemBusy {
		t.Errorf("all busy: %v", err)
	}
	// A refusal of the message itself is final.
	illegal := func(r *server.Request) bool { r.Reply(remoting.RespMessageIllegal, "illegal"); return true }
	a.intercept(remoting.ReqSendMessageV2, illegal)
	b.intercept(remoting.ReqSendMessageV2, illegal)
	if _, err = p.Send(t.Context(), msg("T", "x"), SendOptions{}); !errors.As(err, &se) || len(se.Attempts) != 1 {
		t.Errorf("illegal: %v", err)
	}
}

func TestStoredStatuses(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:1")
	p := newTestProducer(t, ns, nil)
	for code, want := range map[int32]SendStatus{
		remoting.RespFlushDiskTimeout: SendFlushDiskTimeout, remoting.RespFlushSlaveTimeout: SendFlushSlaveTimeout, remoting.RespSlaveNotAvailable: SendSlaveNotAvailable,
	} {
		b.intercept(remoting.ReqSendMessageV2, func(r *server.Request) bool {
			resp := &remoting.Command{Code: code}
			remoting.EncodeHeader(&resp.Fields, &remoting.SendMessageResponseHeader{MsgID: "id", QueueOffset: 5})
			r.ReplyWith(resp)
			return true
		})
		if r, err := p.Send(t.Context(), msg("T", "x"), SendOptions{}); err != nil || r.Status != want || r.QueueOffset != 5 || r.OffsetID != "id" {
			t.Errorf("%s: %+v %v", remoting.ResponseName(code), r, err)
		}
	}
}

func TestRouteFollowsTheNameServer(t *testing.T) {
	ns := startNameServer(t)
	a := startBroker(t, ns, "a", "T:1")
	p := newTestProducer(t, ns, func(c *ProducerConfig) { c.Timeout = 2 * time.Second })
	if _, err := p.Send(t.Context(), msg("T", "x"), SendOptions{}); err != nil {
		t.Fatal(err)
	}
	b := startBroker(t, ns, "b", "T:1")
	a.stop()
	_ = a.conn.Close() // its registration goes with it
	eventually(t, "sends to the broker that is left", func() bool {
		r, err := p.Send(t.Context(), msg("T", "x"), SendOptions{})
		return err == nil && r.Broker == b.addr
	})
}

func TestNameServersThatKnowNothing(t *testing.T) { // N093
	empty, full := startNameServer(t), startNameServer(t)
	startBroker(t, full, "a", "T:1")
	p := newTestProducer(t, empty, func(c *ProducerConfig) { c.NameServers = []string{closedPort(t), empty, full} })
	if _, err := p.Send(t.Context(), msg("T", "x"), SendOptions{}); err != nil {
		t.Error(err)
	}
	for range 5 { // whichever is asked first, and with one that hangs
		hangs := hangingPort(t)
		p := newTestProducer(t, empty, func(c *ProducerConfig) {
			c.NameServers, c.Timeout = []string{hangs, empty, full}, 2*time.Second
		})
		if _, err := p.Send(t.Context(), msg("T", "x"), SendOptions{}); err != nil {
			t.Error(err)
		}
	}
	gone := newTestProducer(t, closedPort(t), nil)
	_, err := gone.Send(t.Context(), msg("T", "x"), SendOptions{})
	var ce *remoteclient.ConnectError
	if !errors.As(err, &ce) {
		t.Errorf("no name server: %v", err)
	}
}

func TestChecks(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a", "T:1")
	p := newTestProducer(t, ns, nil)
	delayed, nowait, other := msg("T", "x"), msg("T", "x"), msg("U", "x")
	delayed.SetDelayLevel(3)
	nowait.SetWaitStore(false)
	for what, ms := range map[string][]*message.Message{
		"empty body": {msg("T", "")}, "bad topic": {msg("a.b", "x")}, "kept topic": {msg(message.TopicSchedule, "x")},
		"too large": {msg("T", strings.Repeat("x", DefaultMaxMessageSize+1))}, "no messages": {},
		"two topics": {msg("T", "x"), other}, "two WAITs": {msg("T", "x"), nowait}, "delay in a batch": {msg("T", "x"), delayed},
		"retry topic in a batch": {msg("%RETRY%g", "x"), msg("%RETRY%g", "y")},
		"too large together":     {msg("T", strings.Repeat("x", DefaultMaxMessageSize/2)), msg("T", strings.Repeat("x", DefaultMaxMessageSize/2))},
		"control byte":           {{Topic: "T", Body: []byte("x"), Properties: map[string]string{"a": "b\x01c"}}}, // N108
	} {
		if _, err := p.SendBatch(t.Context(), ms, SendOptions{}); err == nil {
			t.Errorf("%s: batch sent", what)
		}
		if len(ms) == 1 {
			if _, err := p.Send(t.Context(), ms[0], SendOptions{}); err == nil {
				t.Errorf("%s: sent", what)
			}
		}
	}
	_, err := p.Send(t.Context(), msg("T", strings.Repeat("x", DefaultMaxMessageSize+1)), SendOptions{}) // N107
	var size *SizeError
	if !errors.As(err, &size) || size.Size != DefaultMaxMessageSize+1 || size.Limit != DefaultMaxMessageSize {
		t.Errorf("too large: %v", err)
	}
	if _, err := p.SendBatch(t.Context(), []*message.Message{msg("T", "one")}, SendOptions{}); err != nil { // N107
		t.Errorf("batch of one: %v", err)
	}
}

func TestProducerHeartbeat(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:1")
	p := newTestProducer(t, ns, func(c *ProducerConfig) { c.Heartbeat, c.ClientID = 10*time.Millisecond, "me" })
	if _, err := p.Send(t.Context(), msg("T", "x"), SendOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a heartbeat", func() bool { return len(b.requests(remoting.ReqHeartBeat)) > 0 })
	if body := string(b.requests(remoting.ReqHeartBeat)[0].body); !strings.Contains(body, `"clientID":"me"`) || !strings.Contains(body, `"producerDataSet":[{"groupName":"PG"}]`) {
		t.Errorf("heartbeat %s", body)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if left := b.requests(remoting.ReqUnregisterClient); len(left) != 1 || left[0].fields["clientID"] != "me" || left[0].fields["producerGroup"] != "PG" {
		t.Errorf("unregistered: %+v", left)
	}
	if _, err := p.Send(context.Background(), msg("T", "x"), SendOptions{}); err == nil {
		t.Error("sent after Close")
	}
}

func TestConcurrentSends(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a", "T:4")
	p := newTestProducer(t, ns, nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if _, err := p.Send(t.Context(), msg("T", "x"), SendOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	ids := map[string]bool{}
	for _, m := range readAll(t, ns, nil) {
		ids[m.MessageID] = true
	}
	if len(ids) != 400 {
		t.Errorf("%d different messages", len(ids))
	}
}

func TestFaults(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	f := newFaults()
	for _, c := range []struct {
		took   time.Duration
		failed bool
		pause  time.Duration
	}{
		{10 * time.Millisecond, false, 0},
		{100 * time.Millisecond, false, 0},
		{550 * time.Millisecond, false, 2 * time.Second},
		{2 * time.Second, false, 5 * time.Second},
		{4 * time.Second, false, 6 * time.Second},
		{6 * time.Second, false, 10 * time.Second},
		{16 * time.Second, false, 30 * time.Second},
		{0, true, 10 * time.Second},
	} {
		f.note("x", c.took, c.failed, now)
		if c.pause > 0 && f.available("x", now.Add(c.pause-time.Millisecond)) || !f.available("x", now.Add(c.pause)) {
			t.Errorf("%v failed %v: pause is not %v", c.took, c.failed, c.pause)
		}
	}
	qs := []remoting.MessageQueue{{BrokerName: "x"}, {BrokerName: "y"}, {BrokerName: "z"}}
	f.note("x", 0, true, now)
	for start := range uint32(3) {
		if q := f.pick(qs, start, "", true, now); q.BrokerName == "x" {
			t.Errorf("picked a broker in its pause, from %d", start)
		}
		if q := f.pick(qs, start, "y", true, now); q.BrokerName != "z" {
			t.Errorf("picked %s with x paused and y failed last", q.BrokerName)
		}
	}
	if q := f.pick(qs[:1], 0, "x", true, now); q.BrokerName != "x" {
		t.Errorf("the only broker was not picked")
	}
}
