package broker

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mqx/internal/metrics"
	"mqx/message"
	"mqx/remoting"
)

// scrape is what a scrape of the broker gives.
func (r *running) scrape() string {
	r.t.Helper()
	r.settle()
	w := httptest.NewRecorder()
	metrics.Handler(quiet, r.cfg().MetricsMaxSeries, r.Broker).ServeHTTP(w, httptest.NewRequestWithContext(r.t.Context(), http.MethodGet, "/metrics", nil))
	text, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != http.StatusOK {
		r.t.Fatalf("%d %v\n%s", w.Code, err, text)
	}
	return string(text)
}

// series is a line of a scrape with Apache's common labels.
func series(name, labels, value string) string {
	all := []string{`cluster="C"`, `node_id="b"`, `node_type="broker"`, `otel_scope_name="broker-meter"`}
	if labels != "" {
		all = append(all, strings.Split(labels, ",")...)
	}
	slices.Sort(all)
	return fmt.Sprintf("\n%s{%s} %s\n", name, strings.Join(all, ","), value)
}

// own is a line of a scrape with the labels of mqx's series.
func own(name, labels, value string) string {
	return strings.Replace(series(name, labels, value), `,otel_scope_name="broker-meter"`, "", 1)
}

// busy has done a little of everything that is counted.
func busy(t *testing.T) *running {
	cfg := testConfig(t.TempDir())
	cfg.QueueMetrics = true
	r := start(t, cfg)
	r.createTopic("T", 2)
	r.createTopic("GONE", 1)
	r.heartbeat("G", remoting.Clustering, remoting.SubscriptionData{Topic: "T", SubString: "*"})
	r.heartbeat("ALL", remoting.Broadcasting, remoting.SubscriptionData{Topic: "T", SubString: "*"})
	r.beat(r.c, remoting.HeartbeatData{ClientID: "me", ProducerDataSet: []remoting.ProducerData{{GroupName: "PG"}}})
	for range 3 {
		r.send("T", 0, prop("TAGS", "a"), strings.Repeat("x", 5000))
	}
	r.send("T", 1, prop("__SHARDINGKEY", "k"), "in order")
	r.send("T", 1, prop("DELAY", "18"), "later")
	r.send("GONE", 0, "", "x")
	r.end(r.half("half", "REAL_TOPIC", "T"), message.TransactionRollback)
	r.half("open", "REAL_TOPIC", "T")
	r.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), nil)
	if resp := r.call(remoting.ReqSendMessageV2, sendHeaderOf("T", 9, ""), []byte("x")); resp.Code != remoting.RespInvalidParameter {
		t.Errorf("a send to a queue that is not there: %v", resp)
	}
	r.commit("G", "T", 0, 1)
	r.commit("G", "T", 1, 1)
	r.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: "GONE"}, nil)
	return r
}

// A scrape has Apache's series with exact figures, and those of a topic go with it.
func TestMetricsFigures(t *testing.T) {
	r := busy(t)
	text := r.scrape()
	for _, want := range []string{
		series("rocketmq_messages_in_total", `topic="T",message_type="normal",is_system="false"`, "3"),
		series("rocketmq_messages_in_total", `topic="T",message_type="fifo",is_system="false"`, "1"),
		series("rocketmq_messages_in_total", `topic="SCHEDULE_TOPIC_XXXX",message_type="delay",is_system="true"`, "1"),
		series("rocketmq_messages_in_total", `topic="RMQ_SYS_TRANS_HALF_TOPIC",message_type="transaction",is_system="true"`, "2"),
		series("rocketmq_message_size_count", `topic="T",message_type="normal",is_system="false"`, "3"),
		series("rocketmq_messages_out_total", `topic="T",consumer_group="G",is_system="false"`, "3"),
		series("rocketmq_consumer_lag_messages", `topic="T",consumer_group="G",is_system="false",is_retry="false"`, "2"),
		series("rocketmq_half_messages", `topic="T"`, "1"),
		series("rocketmq_rollback_messages_total", `topic="T"`, "1"),
		series("rocketmq_broker_permission", "", "6"),
		series("rocketmq_producer_connections", `language="go",protocol_type="remoting",version="v5_5_0"`, "1"),
		series("rocketmq_consumer_connections", `consumer_group="G",consume_mode="push",is_system="false",language="go",protocol_type="remoting",version="v5_5_0"`, "1"),
		series("rocketmq_rpc_latency_milliseconds_count", `protocol_type="remoting",request_code="pull_message",response_code="success",is_long_polling="false",result="success"`, "1"),
		own("mqx_send_refused_total", `stage="checked",reason="invalid_parameter"`, "1"), // N131
		own("mqx_send_refused_total", `stage="locked",reason="os_page_cache_busy"`, "0"),
		own("mqx_born_to_store_seconds_count", "", "8"),
		own("mqx_store_retention_seconds", "", "259200"),
		series("mqx_consumer_queue_lag_messages", `consumer_group="G",topic="T",queue_id="0"`, "2"), // N122
		"\nmqx_delay_waiting_messages{cluster=\"C\",level=\"18\",node_id=\"b\",node_type=\"broker\"} 1\n",
		"\nmqx_put_seconds_count{cluster=\"C\",node_id=\"b\",node_type=\"broker\"} 8\n",
	} {
		if !strings.Contains(text, want) {
			name, _, _ := strings.Cut(strings.TrimSpace(want), "{")
			t.Errorf("%s is not there; of its name there is\n%s", strings.TrimSpace(want), strings.Join(regexp.MustCompile(`(?m)^`+name+`[{ ].*$`).FindAllString(text, -1), "\n"))
		}
	}
	if strings.Contains(text, `rocketmq_consumer_lag_messages{cluster="C",consumer_group="ALL"`) {
		t.Error("a broadcast group has a lag (N119)")
	}
	if strings.Contains(text, "GONE") { // N120
		t.Error("the series of a deleted topic are still there")
	}
	if age := regexp.MustCompile(`rocketmq_consumer_lag_latency_milliseconds\{.*\} (\d+)`).FindStringSubmatch(text); age == nil || len(age[1]) > 6 {
		t.Errorf("age of what is not consumed: %v", age)
	}
	// A second look reads no record again, and gives the same.
	again := r.scrape()
	if !strings.Contains(again, series("rocketmq_consumer_lag_messages", `topic="T",consumer_group="G",is_system="false",is_retry="false"`, "2")) {
		t.Error("the second scrape has another lag")
	}
}

// The switches of Apache's configuration and its labels.
func TestMetricsSwitches(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.RequestMetrics, cfg.StoreMetrics = false, false
	cfg.MetricsLabel = "site:fra1, bad label:x,node_id:other,ok:1"
	r := start(t, cfg)
	r.createTopic("T", 1)
	r.send("T", 0, "", "x")
	text := r.scrape()
	if strings.Contains(text, "rocketmq_messages_in_total") || strings.Contains(text, "rocketmq_storage_size_bytes") {
		t.Error("what was switched off is there")
	}
	if want := `rocketmq_topic_number{cluster="C",node_id="b",node_type="broker",ok="1",otel_scope_name="broker-meter",site="fra1"} `; !strings.Contains(text, want) {
		t.Errorf("%s is not in\n%s", want, text)
	}
}

// Where the configuration wants metrics: nothing said, off, and Apache's way.
func TestMetricsAddr(t *testing.T) {
	for _, tt := range []struct {
		text, addr string
		given      bool
		fails      bool
	}{
		{"", "", false, false},
		{"metricsExporterType=DISABLE", "", true, false},
		{"metricsExporterType=PROM\nbrokerIP1=10.0.0.9", "10.0.0.9:5557", true, false},
		{"metricsExporterType=2\nmetricsPromExporterHost=0.0.0.0\nmetricsPromExporterPort=1234", "0.0.0.0:1234", true, false},
		{"metricsExporterType=LOG", "", true, true},
		{"metricsExporterType=1", "", true, true},
		{"metricsExporterType=grafana", "", true, true},
	} {
		file := t.TempDir() + "/broker.conf"
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := LoadConfig(file, nil)
		if (err != nil) != tt.fails {
			t.Errorf("%q: %v", tt.text, err)
		}
		if err != nil {
			continue
		}
		if addr, given := c.MetricsAddr(); addr != tt.addr || given != tt.given {
			t.Errorf("%q: %q %v", tt.text, addr, given)
		}
	}
}

// docs/metrics.md lists every name that a scrape has, and no other of ours.
func TestMetricsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `((?:mqx|rocketmq)_[a-z_0-9]+)`").FindAllStringSubmatch(string(doc), -1) {
		listed[m[1]] = true
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE ((?:mqx|rocketmq)_\S+) `).FindAllStringSubmatch(busy(t).scrape(), -1) {
		if seen[m[1]] = true; !listed[m[1]] {
			t.Errorf("%s is not in docs/metrics.md", m[1])
		}
	}
	if len(seen) < 60 {
		t.Errorf("a scrape has %d names", len(seen))
	}
	// Those that this one has no reason for.
	made := regexp.MustCompile(`\.(?:Gauge|Counter|Histogram)\("(mqx_[a-z_0-9]+)"`)
	for _, dir := range []string{".", "../remoting/server", "../nameserver", "../exporter", "../internal/hostinfo", "../internal/metrics"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range made.FindAllStringSubmatch(string(text), -1) {
				if !listed[m[1]] && !strings.Contains(string(doc), "`"+m[1]+"`") {
					t.Errorf("%s of %s is not in docs/metrics.md", m[1], f)
				}
			}
		}
	}
}

// A scrape of thousands of topics: what it costs. go test -bench Scrape
func BenchmarkScrape(b *testing.B) {
	br, _ := startBench(b)
	for i := range 5000 {
		tp := br.topics.newTopic(remoting.NewTopicConfig(fmt.Sprintf("topic-%04d", i)))
		tp.in.add(kindNormal, 10, 10_000)
		br.topics.mu.topics[tp.TopicName] = tp
		br.getCounters(tp.TopicName, "group").nums.Add(5)
		br.getCounters(tp.TopicName, "group").size.Add(5000)
	}
	h := metrics.Handler(quiet, 0, br)
	b.ResetTimer()
	b.ReportAllocs()
	for range b.N {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", nil))
		b.SetBytes(int64(w.Body.Len()))
	}
}
