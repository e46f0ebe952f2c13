package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mqx/internal/testkit"
	"mqx/message"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
	"mqx/store/inspect"
)

// served is what a broker of Apache's made of a store directory.
type served struct {
	Variant, Version string
	Started          bool
	Said             string              // the end of what it printed, when it did not start
	Before, After    map[string][]string // topic/queue -> offset and id of each message: by the log's queues, as clients read it
	Log              int64               // end of the log before
	LogAfter         int64               // maximum of the log by its statistics
}

// lost are the messages of before that clients do not read at their offset, per queue; more those that they read beside.
func (s *served) lost() (lost, more []string) {
	for q, before := range s.Before {
		for _, m := range before {
			if !slices.Contains(s.After[q], m) {
				lost = append(lost, q+" "+m)
			}
		}
	}
	for q, after := range s.After {
		for _, m := range after {
			if !slices.Contains(s.Before[q], m) {
				more = append(more, q+" "+m)
			}
		}
	}
	slices.Sort(lost)
	slices.Sort(more)
	return lost, more
}

// preflightConf is the broker.conf of a store as its files tell it.
func preflightConf(t *testing.T, dir, root string, port int) string {
	t.Helper()
	d, err := inspect.Open(root, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	info, err := d.Info(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{
		"brokerClusterName=GoldenCluster", "brokerName=broker-g", "brokerId=0", "brokerIP1=127.0.0.1", "brokerIP2=127.0.0.1",
		fmt.Sprintf("listenPort=%d", port), "storePathRootDir=" + root, "storePathCommitLog=" + filepath.Join(root, "commitlog"),
		"diskMaxUsedSpaceRatio=95", "mappedFileSizeConsumeQueue=6000", "maxHashSlotNum=1000", "maxIndexNum=4000",
	}
	for _, key := range slices.Sorted(maps.Keys(info.Settings)) {
		if key != "queue.type" {
			lines = append(lines, key+"="+info.Settings[key])
		}
	}
	return writeFile(t, dir, "broker.conf", strings.Join(lines, "\n")+"\n")
}

// queuesOf are the messages that the queues of a store list, of topics that clients read.
func queuesOf(t *testing.T, root string) (map[string][]string, int64) {
	t.Helper()
	d, err := inspect.Open(root, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	out := map[string][]string{}
	end, err := d.Log().Walk(context.Background(), inspect.WalkOptions{VerifyBody: true}, func(_ int64, v message.View) error {
		if tr := v.Transaction(); tr == message.TransactionPrepared || tr == message.TransactionRollback || brokersOwn(string(v.Topic())) {
			return nil
		}
		for m, err := range message.DecodeMessages(v, message.ReceiveOptions{}) {
			if err != nil {
				return err
			}
			q := fmt.Sprintf("%s/%d", m.Topic, m.QueueID)
			out[q] = append(out[q], fmt.Sprintf("%d %s", m.QueueOffset, m.UniqKey()))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, end.LastEnd
}

// brokersOwn are topics that a broker goes on writing as soon as it runs.
func brokersOwn(topic string) bool {
	return message.IsSystemTopic(topic) || strings.HasPrefix(topic, "rmq_sys_") || topic == message.TopicSchedule
}

// startOther starts a broker of the jars in a directory, and reports whether it serves.
func startOther(t *testing.T, jars, root string) (p *process, addr string, started bool) {
	t.Helper()
	dir, port := testDir(t, "apache-other"), freePort(t)
	if err := os.MkdirAll(filepath.Join(dir, "conf"), 0o755); err != nil {
		t.Fatal(err)
	}
	logback := `<configuration><appender name="F" class="ch.qos.logback.core.FileAppender"><file>` + dir + `/all.log</file><encoder><pattern>%d %p %m%n</pattern></encoder></appender><root level="INFO"><appender-ref ref="F"/></root></configuration>`
	writeFile(t, filepath.Join(dir, "conf"), "logback_broker.xml", logback)
	flags := javaFlags(dir, "512m")
	flags[len(flags)-1] = filepath.Join(jars, "*")
	conf := preflightConf(t, dir, root, port)
	p = start(t, "apache-other", dir, nil, "java", append(flags, "org.apache.rocketmq.broker.BrokerStartup", "-c", conf)...)
	p.cleanup(t)
	addr = loopback(port)
	deadline := time.Now().Add(90 * time.Second)
	for time.Now().Before(deadline) && !p.ended() {
		if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			return p, addr, conn.Close() == nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return p, addr, false
}

// serve lets a version of Apache's broker open a golden store.
func serveGolden(t *testing.T, version, jars, variant string) *served {
	t.Helper()
	root := testkit.GoldenStore(t, variant)
	s := &served{Variant: variant, Version: version}
	s.Before, s.Log = queuesOf(t, root)
	p, addr, started := startOther(t, jars, root)
	if s.Started = started; !started {
		s.Said = tail(p.log, 3)
		return s
	}
	c := remoteclient.New(remoteclient.Config{})
	defer func() { _ = c.Close() }()
	s.After = map[string][]string{}
	for q := range s.Before {
		topic, id, _ := strings.Cut(q, "/")
		s.After[q] = pullAll(t, c, addr, topic, id)
	}
	p.kill()
	return s
}

func pullAll(t *testing.T, c *remoteclient.Client, addr, topic, id string) []string {
	t.Helper()
	var queue int32
	if _, err := fmt.Sscan(id, &queue); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var out []string
	for at, tries := int64(0), 0; ; {
		resp, err := c.Call(ctx, addr, remoting.NewRequest(remoting.ReqPullMessage, &remoting.PullMessageHeader{
			ConsumerGroup: "preflight", Topic: topic, QueueID: queue, QueueOffset: at, MaxMsgNums: 32, SysFlag: 4,
			Subscription: "*", SubVersion: 1, ExpressionType: "TAG",
		}))
		if err != nil {
			t.Fatalf("%s/%s: %v", topic, id, err)
		}
		var h remoting.PullMessageResponseHeader
		if err := remoting.DecodeHeader(resp.Fields, &h); err != nil {
			return append(out, fmt.Sprintf("answer %d %s", resp.Code, resp.Remark))
		}
		for m, err := range message.DecodeMessages(resp.Body, message.ReceiveOptions{VerifyBodyCRC: true}) {
			if err != nil {
				out = append(out, "broken: "+err.Error())
				continue
			}
			out = append(out, fmt.Sprintf("%d %s", m.QueueOffset, m.UniqKey()))
		}
		switch {
		case resp.Code == remoting.RespPullNotFound || h.NextBeginOffset <= at && tries > 20 || len(out) > 5000:
			return out
		case h.NextBeginOffset <= at:
			tries++
			continue
		}
		at = h.NextBeginOffset
	}
}

func TestPreflightFacts(t *testing.T) {
	file := os.Getenv("MQX_PREFLIGHT_FACTS")
	if file == "" {
		t.Skip("writes no facts")
	}
	version := os.Getenv("MQX_PREFLIGHT_VERSION")
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	for _, variant := range testkit.GoldenStores() {
		t.Run(variant, func(t *testing.T) {
			s := serveGolden(t, version, os.Getenv("MQX_PREFLIGHT_JARS"), variant)
			lost, more := s.lost()
			b, err := json.Marshal(map[string]any{"variant": variant, "version": version, "started": s.Started, "said": s.Said, "lost": lost, "more": more})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := out.Write(append(b, '\n')); err != nil {
				t.Fatal(err)
			}
		})
	}
}
