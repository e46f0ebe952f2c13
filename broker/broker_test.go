package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/client"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

// testConfig is a broker with small files on loopback and free ports.
func testConfig(dir string) Config {
	c := DefaultConfig()
	c.BrokerClusterName, c.BrokerName = "C", "b"
	c.BindAddress, c.ListenPort = "127.0.0.1", 0
	c.Loops = 1
	c.PullThreads, c.LitePullThreads, c.AdminThreads, c.ClientThreads, c.QueryThreads = 4, 2, 4, 2, 2
	c.FlushConsumerOffset = 50 * time.Millisecond
	c.ShutdownWait = 2 * time.Second
	c.Logger = quiet
	c.Store.RootDir = dir
	c.Store.CommitLogFileBytes = 1 << 20
	c.Store.ConsumeQueueFileBytes = 6000
	c.Store.MaxHashSlotNum, c.Store.MaxIndexNum = 1000, 4000
	return c
}

// running is a broker that a test runs, and a client of it.
type running struct {
	*Broker
	t      *testing.T
	c      *client.Client
	addr   string
	vip    string
	cancel context.CancelFunc
	ended  chan error
}

func start(t *testing.T, cfg Config) *running {
	t.Helper()
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, b)
}

// run runs a broker until the test ends.
func run(t *testing.T, b *Broker) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Broker: b, t: t, cancel: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- b.Run(ctx) }()
	select {
	case <-b.Ready():
	case err := <-r.ended:
		cancel()
		t.Fatalf("the broker did not start: %v", err)
	case <-time.After(20 * time.Second):
		cancel()
		t.Fatal("the broker is not ready after 20 s")
	}
	r.addr, r.vip = b.Addr().String(), b.VIPAddr().String()
	r.c = client.New(client.Config{RequestTimeout: 10 * time.Second, Logger: quiet})
	t.Cleanup(func() { r.stop() })
	return r
}

// stop ends the broker and reports how its Run ended; once.
func (r *running) stop() {
	r.t.Helper()
	if err := r.shutdown(); err != nil {
		r.t.Errorf("Run: %v", err)
	}
}

// shutdown ends the broker and returns how its Run ended; once.
func (r *running) shutdown() error {
	r.t.Helper()
	if r.cancel == nil {
		return nil
	}
	_ = r.c.Close()
	r.cancel()
	r.cancel = nil
	select {
	case err := <-r.ended:
		return err
	case <-time.After(20 * time.Second):
		return errors.New("the broker does not stop")
	}
}

func (r *running) call(code int32, header any, body []byte) *remoting.Command {
	r.t.Helper()
	return r.callAt(r.addr, code, header, body)
}

func (r *running) callAt(addr string, code int32, header any, body []byte) *remoting.Command {
	r.t.Helper()
	r.settle()
	req := remoting.NewRequest(code, header)
	req.Body = body
	resp, err := r.c.Call(context.Background(), addr, req)
	if err != nil {
		r.t.Fatalf("%s: %v", remoting.RequestName(code), err)
	}
	return resp
}

// settle waits until all that was sent can be read.
func (r *running) settle() {
	r.t.Helper()
	waitFor(r.t, "dispatch", func() bool { return r.store.Dispatched() >= r.store.LogEnd() })
}

// ok is call with an answer of SUCCESS.
func (r *running) ok(code int32, header any, body []byte) *remoting.Command {
	r.t.Helper()
	resp := r.call(code, header, body)
	if resp.Code != remoting.RespSuccess {
		r.t.Fatalf("%s: %s: %s", remoting.RequestName(code), remoting.ResponseName(resp.Code), resp.Remark)
	}
	return resp
}

func (r *running) createTopic(name string, queues int32) {
	r.t.Helper()
	r.ok(remoting.ReqUpdateAndCreateTopic, &remoting.CreateTopicHeader{
		Topic: name, DefaultTopic: "TBW102", ReadQueueNums: queues, WriteQueueNums: queues, Perm: 6, TopicFilterType: "SINGLE_TAG",
	}, nil)
}

func sendHeaderOf(topic string, q int32, props string) *remoting.SendMessageHeader {
	return &remoting.SendMessageHeader{
		ProducerGroup: "PG", Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, QueueID: q,
		BornTimestamp: time.Now().UnixMilli(), Properties: props,
	}
}

func prop(kv ...string) string {
	var b []byte
	for i := 0; i < len(kv); i += 2 {
		b = message.AppendProperty(b, kv[i], kv[i+1])
	}
	return string(b)
}

func (r *running) send(topic string, q int32, props string, body string) *remoting.Command {
	r.t.Helper()
	return r.ok(remoting.ReqSendMessageV2, sendHeaderOf(topic, q, props), []byte(body))
}

func pullHeaderOf(group, topic string, q int32, offset int64) *remoting.PullMessageHeader {
	return &remoting.PullMessageHeader{
		ConsumerGroup: group, Topic: topic, QueueID: q, QueueOffset: offset, MaxMsgNums: 32, SysFlag: pullHasSub,
		Subscription: "*", ExpressionType: "TAG",
	}
}

func records(t *testing.T, body []byte) []message.Record {
	t.Helper()
	var out []message.Record
	for len(body) > 0 {
		rec, err := message.DecodeRecord(body, message.DecodeOptions{VerifyBodyCRC: true})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rec)
		body = body[rec.Size:]
	}
	return out
}

func TestSendAndPull(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 4)
	resp := r.send("T", 2, prop("TAGS", "a", "KEYS", "k1", "UNIQ_KEY", "C0A80001000000000000000000000001"), "hello")
	if q, _, _ := resp.Fields.Int32("queueId"); q != 2 {
		t.Errorf("queueId %d", q)
	}
	if off, ok, _ := resp.Fields.Int64("queueOffset"); off != 0 || !ok {
		t.Errorf("queueOffset %d", off)
	}
	if resp.Fields.String("transactionId") != "C0A80001000000000000000000000001" || resp.Fields.String("MSG_REGION") != "DefaultRegion" ||
		resp.Fields.String("TRACE_ON") != "true" {
		t.Errorf("%v", resp.Fields)
	}
	host, phys, err := message.ParseOffsetID(resp.Fields.String("msgId"))
	if err != nil || host.String() != r.addr || phys != 0 {
		t.Errorf("msgId: %v %d %v", host, phys, err)
	}
	got := r.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 2, 0), nil)
	recs := records(t, got.Body)
	if len(recs) != 1 || string(recs[0].Body) != "hello" || string(recs[0].Topic) != "T" || recs[0].QueueID != 2 {
		t.Fatalf("%+v", recs)
	}
	props := message.ParseProperties(recs[0].Properties)
	if props["CLUSTER"] != "C" || props["MSG_REGION"] != "DefaultRegion" || props["TRACE_ON"] != "true" || props["KEYS"] != "k1" || props["TAGS"] != "a" {
		t.Errorf("%v", props)
	}
	if got.Remark != "FOUND" || got.Fields.String("nextBeginOffset") != "1" || got.Fields.String("maxOffset") != "1" ||
		got.Fields.String("minOffset") != "0" || got.Fields.String("suggestWhichBrokerId") != "0" {
		t.Errorf("%s %v", got.Remark, got.Fields)
	}
	view := r.ok(remoting.ReqViewMessageByID, &remoting.ViewMessageHeader{Topic: "T", Offset: phys}, nil)
	if recs := records(t, view.Body); len(recs) != 1 || string(recs[0].Body) != "hello" {
		t.Errorf("%+v", recs)
	}
}

func TestTopicsAndOffsetsSurviveAStop(t *testing.T) {
	dir := t.TempDir()
	r := start(t, testConfig(dir))
	r.createTopic("T", 2)
	for i := range 5 {
		r.send("T", int32(i%2), "", fmt.Sprint("m", i))
	}
	r.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), nil) // creates the group
	r.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{ConsumerGroup: "G", Topic: "T", QueueID: 0, CommitOffset: 2}, nil)
	r.stop()
	if _, err := os.Stat(filepath.Join(dir, "abort")); err == nil {
		t.Error("the mark of an unclean stop is there")
	}
	r = start(t, testConfig(dir))
	resp := r.ok(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetHeader{ConsumerGroup: "G", Topic: "T", QueueID: 0}, nil)
	if resp.Fields.String("offset") != "2" { // N037
		t.Errorf("offset after the restart: %s", resp.Fields.String("offset"))
	}
	got := r.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), nil)
	if recs := records(t, got.Body); len(recs) != 3 {
		t.Errorf("%d messages after the restart", len(recs))
	}
}

func TestRunTwice(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	if err := r.Run(context.Background()); err == nil {
		t.Error("a broker ran twice")
	}
}

func TestPortInUse(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	cfg := testConfig(dir)
	cfg.ListenPort = l.Addr().(*net.TCPAddr).Port
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Run(context.Background()); err == nil || !strings.Contains(err.Error(), fmt.Sprint(cfg.ListenPort)) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "abort")); err == nil {
		t.Error("a start that failed left the mark of an unclean stop")
	}
}

func TestVIPPort(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	resp := r.callAt(r.vip, remoting.ReqSendMessageV2, sendHeaderOf("T", 0, ""), []byte("x"))
	if resp.Code != remoting.RespSuccess {
		t.Errorf("send on the VIP port: %s", resp.Remark)
	}
	resp = r.callAt(r.vip, remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), nil)
	if resp.Code != remoting.RespRequestCodeNotSupported {
		t.Errorf("pull on the VIP port: %s", remoting.ResponseName(resp.Code))
	}
}

// Sends on the VIP port are served while the main port has more pulls than it can answer.
func TestVIPPortBesidePulls(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	for range 64 {
		r.ok(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, ""), make([]byte, 1024))
	}
	r.heartbeat("G", "CLUSTERING", remoting.SubscriptionData{Topic: "T", SubString: "*", ExpressionType: "TAG"})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const depth = 32
	var pulls sync.WaitGroup
	var answered atomic.Int64
	for range depth {
		pulls.Go(func() {
			for ctx.Err() == nil {
				resp, err := r.c.Call(ctx, r.addr, remoting.NewRequest(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0)))
				if err == nil && resp.Code == remoting.RespSuccess {
					answered.Add(1)
				}
			}
		})
	}
	waitFor(t, "pulls", func() bool { return answered.Load() >= depth })
	before := answered.Load()
	for i := range 100 {
		req := remoting.NewRequest(remoting.ReqSendMessageV2, sendHeaderOf("U", 0, ""))
		req.Body = []byte("x")
		if resp, err := r.c.Call(ctx, r.vip, req); err != nil || resp.Code != remoting.RespSuccess {
			t.Fatalf("send %d: %v, %+v", i, err, resp)
		}
	}
	waitFor(t, "more pulls", func() bool { return answered.Load() > before })
	cancel()
	pulls.Wait()
}

// N089: the start says which file it has read, and which address goes out and why.
func TestExplain(t *testing.T) {
	cfg := testConfig(t.TempDir())
	r := start(t, cfg)
	text := strings.Join(r.Explain(), "\n")
	for _, want := range []string{
		"broker b of cluster C", "listens on " + r.addr, "VIP port on " + r.vip, "advertised as " + r.addr + ": the address bound to",
		"no name server is configured", "store " + cfg.Store.RootDir + ", ASYNC_FLUSH", "slaves are served at " + r.at().haAddr + ", level async", "loopback address",
		"TLS permissive, self-signed certificate",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
	cfg = testConfig(t.TempDir())
	cfg.BrokerIP1, cfg.BrokerIP1From = "127.0.0.1", "--advertise"
	cfg.Store.CommitLogDir = t.TempDir()
	cfg.Source = filepath.Join(t.TempDir(), "broker.conf")
	r = start(t, cfg)
	text = strings.Join(r.Explain(), "\n")
	for _, want := range []string{"configuration " + cfg.Source, "advertised as " + r.addr + ": given (--advertise)", " (commit log in " + cfg.Store.CommitLogDir + "), ASYNC_FLUSH"} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
}
