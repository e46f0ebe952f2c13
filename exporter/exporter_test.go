package exporter

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mqx/admin"
	mqxbroker "mqx/broker"
	"mqx/client"
	"mqx/internal/clock"
	"mqx/internal/fastjson"
	"mqx/internal/metrics"
	"mqx/message"
	"mqx/nameserver"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
	"mqx/remoting/server"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

var quiet = slog.New(slog.DiscardHandler)

// run runs a server until the test ends and returns when it is ready.
func run(t *testing.T, s interface {
	Run(context.Context) error
	Ready() <-chan struct{}
},
) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended <- nil
	}
	t.Cleanup(stop)
	select {
	case <-s.Ready():
	case err := <-ended:
		ended <- nil
		t.Fatalf("not started: %v", err)
	}
	return stop
}

func startNameServer(t *testing.T) string {
	t.Helper()
	cfg := nameserver.DefaultConfig()
	cfg.BindAddress, cfg.ListenPort, cfg.Logger = "127.0.0.1", 0, quiet
	cfg.KVConfigPath = filepath.Join(t.TempDir(), "kv.json")
	s, err := nameserver.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	return s.Addr().String()
}

func startBroker(t *testing.T, ns, name string) (addr string, stop func()) {
	t.Helper()
	cfg := mqxbroker.DefaultConfig()
	cfg.NamesrvAddr, cfg.BrokerClusterName, cfg.BrokerName = ns, "c", name
	cfg.BindAddress, cfg.BrokerIP1, cfg.ListenPort = "127.0.0.1", "127.0.0.1", 0
	cfg.Loops, cfg.Logger = 1, quiet
	cfg.Store.RootDir = t.TempDir()
	cfg.Store.CommitLogFileBytes = 1 << 20
	b, err := mqxbroker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop = run(t, b)
	return b.Addr().String(), stop
}

// fake is a broker that answers what a test tells it to.
func startFake(t *testing.T, handlers map[int32]func(*server.Request)) (addr string) {
	t.Helper()
	class := server.NewClass(server.ClassConfig{Name: "all", Workers: 16, Queue: 1000})
	m := server.NewMux()
	for code, h := range handlers {
		m.Handle(code, class, h)
	}
	s, err := server.New(server.Config{Addr: "127.0.0.1:0", Loops: 1, Logger: quiet}, m)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = class.Run(context.Background()); close(ended) }()
	if err := s.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
		class.Close()
		<-ended
	})
	return s.Addr().String()
}

// wire sends requests as they stand.
type wire struct {
	t *testing.T
	*remoteclient.Client
}

func newWire(t *testing.T) *wire {
	c := remoteclient.New(remoteclient.Config{})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return &wire{t, c}
}

func (w *wire) ok(addr string, req *remoting.Command) {
	w.t.Helper()
	resp, err := w.Call(w.t.Context(), addr, req)
	if err != nil || resp.Code != remoting.RespSuccess {
		w.t.Fatalf("%s: %+v %v", remoting.RequestName(req.Code), resp, err)
	}
}

func (w *wire) topic(addr, topic string, queues int32) {
	w.t.Helper()
	w.ok(addr, remoting.NewRequest(remoting.ReqUpdateAndCreateTopic, &remoting.CreateTopicHeader{
		Topic: topic, DefaultTopic: "TBW102", ReadQueueNums: queues, WriteQueueNums: queues, Perm: 6, TopicFilterType: "SINGLE_TAG",
	}))
}

func (w *wire) commit(addr, group, topic string, queue int32, offset int64) {
	w.t.Helper()
	w.ok(addr, remoting.NewRequest(remoting.ReqUpdateConsumerOffset,
		&remoting.UpdateConsumerOffsetHeader{ConsumerGroup: group, Topic: topic, QueueID: queue, CommitOffset: offset}))
}

func (w *wire) group(addr, group string) {
	w.t.Helper()
	req := remoting.NewRequest(remoting.ReqUpdateAndCreateSubscriptionGroup, nil)
	cfg := remoting.NewSubscriptionGroupConfig(group)
	var err error
	if req.Body, err = fastjson.Marshal(&cfg); err != nil {
		w.t.Fatal(err)
	}
	w.ok(addr, req)
}

// register tells a name server of a broker at addr.
func (w *wire) register(ns, name, addr string) {
	w.t.Helper()
	body := &remoting.RegisterBrokerBody{}
	body.Topics.TopicConfigTable = map[string]remoting.TopicConfig{"filler": remoting.NewTopicConfig("filler"), "filler2": remoting.NewTopicConfig("filler2")}
	req := remoting.NewRequest(remoting.ReqRegisterBroker, &remoting.RegisterBrokerHeader{BrokerName: name, BrokerAddr: addr, ClusterName: "c", HAServerAddr: addr})
	var err error
	if req.Body, err = remoting.EncodeRegisterBroker(body, false, remoting.Version); err != nil {
		w.t.Fatal(err)
	}
	w.ok(ns, req)
}

func send(t *testing.T, ns, topic, broker string, queue int32, n int) {
	t.Helper()
	p, err := client.NewProducer(client.ProducerConfig{Config: client.Config{NameServers: []string{ns}}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range n {
		if _, err := p.Send(t.Context(), &message.Message{Topic: topic, Body: []byte("x")}, client.SendOptions{Broker: broker, QueueID: queue, HasQueue: true}); err != nil {
			t.Fatal(err)
		}
	}
}

func newExporter(t *testing.T, o Options, ns ...string) *Exporter {
	t.Helper()
	c, err := admin.New(admin.Config{NameServers: ns, BrokerTimeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Client = c
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func scrape(t *testing.T, e *Exporter, most int) string {
	t.Helper()
	w := httptest.NewRecorder()
	metrics.Handler(quiet, most, e).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	text, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %v\n%s", w.Code, err, text)
	}
	return string(text)
}

// wants looks for lines of a scrape, which may be patterns for the value.
func wants(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		name, value, _ := strings.Cut(line, "} ")
		if regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `\} ` + value + `$`).MatchString(text) {
			continue
		}
		name, _, _ = strings.Cut(name, "{")
		t.Errorf("%s is not there; of its name there is\n%s", line, strings.Join(regexp.MustCompile(`(?m)^`+name+`[{ ].*$`).FindAllString(text, -1), "\n"))
	}
}

func lacks(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if strings.Contains(text, p) {
			t.Errorf("%s is there", p)
		}
	}
}

const at = `cluster="c",node_id="a",node_type="broker"`

// lagLine is a series of a group in a topic of broker a.
func lagLine(name, group, topic, value string) string {
	return fmt.Sprintf(`%s{cluster="c",consumer_group="%s",is_retry="false",is_system="false",node_id="a",node_type="broker",topic="%s"} %s`, name, group, topic, value)
}

// N120, N122, N124: figures of groups and topics are exact at rest, by queue when that is
// wanted; unknown is not zero; what is gone has no series.
func TestFigures(t *testing.T) {
	ns := startNameServer(t)
	a, _ := startBroker(t, ns, "a")
	w := newWire(t)
	w.topic(a, "T", 2)
	w.topic(a, "GONE", 1)
	w.group(a, "g")
	e := newExporter(t, Options{Queues: true, RocketMQExporter: true}, ns)
	e.Round(t.Context())
	wants(t, scrape(t, e, 0), `rocketmq_messages_in_total{cluster="c",is_system="false",node_id="a",node_type="broker",topic="T"} 0`)

	send(t, ns, "T", "a", 0, 5)
	send(t, ns, "T", "a", 1, 3)
	send(t, ns, "GONE", "a", 0, 1)
	w.commit(a, "g", "T", 0, 1)
	w.commit(a, "g", "GONE", 0, 0)
	e.Round(t.Context())
	w.commit(a, "g", "T", 0, 3)
	e.Round(t.Context())
	text := scrape(t, e, 0)
	wants(t, text,
		`mqx_broker_up{addr="`+a+`",broker_id="0",`+at+`} 1`,
		`mqx_exporter_figures_age_seconds{addr="`+a+`",broker_id="0",`+at+`} [0-9.e-]+`,
		`rocketmq_messages_in_total{cluster="c",is_system="false",node_id="a",node_type="broker",topic="T"} 8`,
		`rocketmq_messages_out_total{cluster="c",consumer_group="g",is_system="false",node_id="a",node_type="broker",topic="T"} 2`,
		lagLine("rocketmq_consumer_lag_messages", "g", "T", "2"),
		lagLine("rocketmq_consumer_lag_latency_milliseconds", "g", "T", `\d{1,5}`),
		lagLine("mqx_consumer_lag_unknown_queues", "g", "T", "1"), // N124: queue 1 was never committed
		lagLine("rocketmq_consumer_lag_messages", "g", "GONE", "1"),
		`mqx_consumer_queue_lag_messages{cluster="c",consumer_group="g",node_id="a",node_type="broker",queue_id="0",topic="T"} 2`,
		`rocketmq_processor_watermark{`+at+`,processor="send"} 0`,
		`mqx_store_retention_seconds{`+at+`} 259200`,
		`rocketmq_group_diff{countOfOnlineConsumers="0",group="g",msgModel="1",topic="T"} 2`,
		`rocketmq_producer_offset{broker="a",cluster="c",topic="T"} 8`,
		`rocketmq_consumer_offset{broker="a",cluster="c",group="g",topic="T"} 3`,
	)
	lacks(t, text, `queue_id="1",topic="T"} 3`)

	w.ok(a, remoting.NewRequest(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: "GONE"}))
	w.ok(a, remoting.NewRequest(remoting.ReqDeleteSubscriptionGroup, &remoting.DeleteSubscriptionGroupHeader{GroupName: "g", CleanOffset: true}))
	e.Round(t.Context())
	text = scrape(t, e, 0)
	lacks(t, text, "GONE", `"g"`)
	if strings.Count(scrape(t, e, 3), "\nrocketmq_messages_in_total{") > 4 {
		t.Error("the number of series is not bounded (N120)")
	}
}

// N121, N119: one bad group, a broker that refuses a request and one that hangs take
// nothing from the others; a broadcast group has no lag.
func TestBadOnes(t *testing.T) {
	ns := startNameServer(t)
	a, stop := startBroker(t, ns, "a")
	w := newWire(t)
	w.topic(a, "T", 1)
	w.group(a, "g")
	send(t, ns, "T", "a", 0, 4)
	w.commit(a, "g", "T", 0, 1)

	hang := make(chan struct{})
	hangs := startFake(t, map[int32]func(*server.Request){
		remoting.ReqGetBrokerRuntimeInfo: func(r *server.Request) { <-hang; r.Reply(remoting.RespSuccess, "") },
	})
	defer close(hang)
	body := func(text string) func(*server.Request) {
		return func(r *server.Request) {
			resp := remoting.NewResponse(&r.Command, remoting.RespSuccess, "")
			resp.Body = []byte(text)
			r.ReplyWith(resp)
		}
	}
	odd := startFake(t, map[int32]func(*server.Request){
		remoting.ReqGetBrokerRuntimeInfo:          body(`{"table":{"putTps":"  ","commitLogDiskRatio":"0.5","sendThreadPoolQueueSize":"-1x"}}`),
		remoting.ReqGetAllConsumerOffset:          body(`{"offsetTable":{"U@good":{0:3},"U@bad":{0:1},"U@all":{0:2}}}`),
		remoting.ReqGetAllSubscriptionGroupConfig: body(`{"subscriptionGroupTable":{},"dataVersion":{}}`),
		remoting.ReqGetTopicStatsInfo:             body(`{"offsetTable":{{"brokerName":"odd","queueId":0,"topic":"U"}:{"lastUpdateTimestamp":0,"maxOffset":9,"minOffset":0}}}`),
		remoting.ReqGetAllTopicConfig:             body(`{"topicConfigTable":{"U":{"topicName":"U","readQueueNums":1,"writeQueueNums":1,"perm":6}},"dataVersion":{}}`),
		remoting.ReqGetConsumerConnectionList: func(r *server.Request) {
			switch r.Fields.String("consumerGroup") {
			case "bad":
				r.Reply(remoting.RespSystemError, "java.lang.NullPointerException")
			case "all":
				body(`{"connectionSet":[],"consumeType":"CONSUME_PASSIVELY","messageModel":"BROADCASTING","subscriptionTable":{}}`)(r)
			default:
				r.Reply(remoting.RespConsumerNotOnline, "")
			}
		},
	})
	w.register(ns, "hangs", hangs)
	w.register(ns, "odd", odd)

	clk := clock.NewManual(time.Now())
	e := newExporter(t, Options{NoAges: true, Clock: clk}, ns)
	e.Round(t.Context())
	text := scrape(t, e, 0)
	wants(t, text,
		`mqx_broker_up{addr="`+hangs+`",broker_id="0",cluster="c",node_id="hangs",node_type="broker"} 0`,
		`mqx_broker_up{addr="`+odd+`",broker_id="0",cluster="c",node_id="odd",node_type="broker"} 1`,
		lagLine("rocketmq_consumer_lag_messages", "g", "T", "3"),
		strings.ReplaceAll(lagLine("rocketmq_consumer_lag_messages", "good", "U", "6"), `node_id="a"`, `node_id="odd"`),
		strings.ReplaceAll(lagLine("rocketmq_consumer_lag_messages", "bad", "U", "8"), `node_id="a"`, `node_id="odd"`),
		`mqx_exporter_skipped{addr="`+odd+`",broker_id="0",cluster="c",kind="group",node_id="odd",node_type="broker"} 1`,
		`mqx_exporter_part_failed{addr="`+odd+`",broker_id="0",cluster="c",node_id="odd",node_type="broker",part="producers"} 1`,
		`mqx_disk_used_ratio{cluster="c",node_id="odd",node_type="broker",part="commitlog"} 0.5`,
	)
	lacks(t, text, `consumer_group="all",is_retry`, `processor="send",node_id="odd"`)

	// A scrape waits for nobody, and figures whose reading hangs are not shown for long.
	stop()
	clk.Advance(10 * time.Minute)
	began := time.Now()
	text = scrape(t, e, 0)
	if d := time.Since(began); d > 400*time.Millisecond {
		t.Errorf("a scrape took %s", d)
	}
	lacks(t, text, "rocketmq_consumer_lag_messages")
	e.Round(t.Context())
	wants(t, scrape(t, e, 0), `mqx_broker_up{addr="`+a+`",broker_id="0",`+at+`} 0`)
	clk.Advance(goneFor + time.Minute)
	e.Round(t.Context())
	lacks(t, scrape(t, e, 0), `addr="`+a+`"`)
}

// Without a name server there are no figures, and that is said.
func TestNoNameServer(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	e := newExporter(t, Options{Interval: time.Second}, addr)
	e.Round(t.Context())
	if text := scrape(t, e, 0); !strings.Contains(text, "\nmqx_exporter_nameserver_up 0\n") || strings.Contains(text, "mqx_broker_up") {
		t.Error(text)
	}
	for _, o := range []Options{{}, {Client: e.o.Client, Interval: time.Millisecond}, {Client: e.o.Client, Interval: 2 * time.Hour}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v", o)
		}
	}
}

// docs/metrics.md names every series of the exporter, in its tables or its text; those of
// rocketmq-exporter by their beginning.
func TestDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	ns := startNameServer(t)
	a, _ := startBroker(t, ns, "a")
	w := newWire(t)
	w.topic(a, "T", 1)
	w.group(a, "g")
	send(t, ns, "T", "a", 0, 2)
	w.commit(a, "g", "T", 0, 1)
	e := newExporter(t, Options{Queues: true}, ns)
	e.Round(t.Context())
	listed := map[string]bool{}
	before := ""
	for _, m := range regexp.MustCompile("`((?:mqx|rocketmq)?_[a-z_0-9]+)`").FindAllStringSubmatch(string(doc), -1) {
		name := m[1]
		if strings.HasPrefix(name, "_") { // the end of a name that begins as the one before
			for at, c := range before {
				if c == '_' {
					listed[before[:at]+name] = true
				}
			}
			continue
		}
		listed[name], before = true, name
	}
	seen := 0
	for _, m := range regexp.MustCompile(`(?m)^# TYPE ((?:mqx|rocketmq)_\S+) `).FindAllStringSubmatch(scrape(t, e, 0), -1) {
		if seen++; !listed[m[1]] {
			t.Errorf("%s is not in docs/metrics.md", m[1])
		}
	}
	if seen < 35 {
		t.Errorf("a scrape has %d names", seen)
	}
}
