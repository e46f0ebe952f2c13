package e2e

import (
	"context"
	"fmt"
	"maps"
	"math"
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
	KeyFound         bool                // the message with a key, when the store has one, was found by it
	Said             string              // the end of what it printed, when it did not start
	Before, After    map[string][]string // topic/queue -> offset and id of each message: by the log's queues, as clients read it
	Keyed            keyed
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
			if !slices.Contains(s.Before[q], m) && !strings.HasPrefix(m, "reaches") {
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
		"diskMaxUsedSpaceRatio=95",
	}
	for key, value := range map[string]string{"mappedFileSizeConsumeQueue": "6000", "maxHashSlotNum": "1000", "maxIndexNum": "4000"} {
		if info.Settings[key] == "" {
			info.Settings[key] = value // of a part that is gone
		}
	}
	for _, key := range slices.Sorted(maps.Keys(info.Settings)) {
		if key != "queue.type" {
			lines = append(lines, key+"="+info.Settings[key])
		}
	}
	return writeFile(t, dir, "broker.conf", strings.Join(lines, "\n")+"\n")
}

// queuesOf are the messages that the queues of a store list, of topics that clients read.
func queuesOf(t *testing.T, root string) (map[string][]string, keyed) {
	t.Helper()
	d, err := inspect.Open(root, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	out := map[string][]string{}
	ends := map[string]int64{}
	var k keyed
	_, err = d.Log().Walk(context.Background(), inspect.WalkOptions{VerifyBody: true}, func(_ int64, v message.View) error {
		if tr := v.Transaction(); tr == message.TransactionPrepared || tr == message.TransactionRollback || brokersOwn(string(v.Topic())) {
			return nil
		}
		for m, err := range message.DecodeMessages(v, message.ReceiveOptions{}) {
			if err != nil {
				return err
			}
			q := fmt.Sprintf("%s/%d", m.Topic, m.QueueID)
			out[q] = append(out[q], fmt.Sprintf("%d %s", m.QueueOffset, m.UniqKey()))
			ends[q] = max(ends[q], m.QueueOffset+1)
			if keys := m.Keys(); len(keys) > 0 && k.Topic == "" && v.SysFlag()&message.FlagInnerBatch == 0 && !message.IsRetry(m.Topic) && !message.IsDLQ(m.Topic) {
				k = keyed{m.Topic, keys[0]}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for q, end := range ends {
		out[q] = append(out[q], fmt.Sprintf("reaches offset %d", end))
	}
	return out, k
}

// brokersOwn are topics that a broker goes on writing as soon as it runs.
func brokersOwn(topic string) bool {
	return message.IsSystemTopic(topic) || strings.HasPrefix(topic, "rmq_sys_") || topic == message.TopicSchedule
}

// startOther starts a broker of the jars in a directory, or mqx's without one, and reports whether it serves.
func startOther(t *testing.T, jars, root string) (p *process, addr string, started bool) {
	t.Helper()
	dir, port := testDir(t, "apache-other"), freePort(t)
	if err := os.MkdirAll(filepath.Join(dir, "conf"), 0o755); err != nil {
		t.Fatal(err)
	}
	logback := `<configuration><appender name="F" class="ch.qos.logback.core.FileAppender"><file>` + dir + `/all.log</file><encoder><pattern>%d %p %m%n</pattern></encoder></appender><root level="INFO"><appender-ref ref="F"/></root></configuration>`
	writeFile(t, filepath.Join(dir, "conf"), "logback_broker.xml", logback)
	conf := preflightConf(t, dir, root, port)
	if jars == "" {
		p = start(t, "mqx-other", dir, nil, mqxBinary, "broker", "start", "-c", conf)
	} else {
		flags := javaFlags(dir, "512m")
		flags[len(flags)-1] = filepath.Join(jars, "*")
		p = start(t, "apache-other", dir, nil, "java", append(flags, "org.apache.rocketmq.broker.BrokerStartup", "-c", conf)...)
	}
	p.cleanup(t)
	addr = loopback(port)
	for deadline := time.Now().Add(3 * time.Minute); !p.ended(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s neither serves nor ends", p.name)
		}
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
	s.Before, s.Keyed = queuesOf(t, root)
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
	s.KeyFound = s.Keyed.Topic == "" || found(t, c, addr, s.Keyed)
	p.kill()
	return s
}

// found asks the broker for a message by its key.
func found(t *testing.T, c *remoteclient.Client, addr string, m keyed) bool {
	t.Helper()
	ok := false
	deadline := time.Now().Add(5 * time.Second) // an index that is built again takes its time
	for !ok && time.Now().Before(deadline) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		resp, err := c.Call(ctx, addr, remoting.NewRequest(remoting.ReqQueryMessage, &remoting.QueryMessageHeader{
			Topic: m.Topic, Key: m.Key, MaxNum: 32, BeginTimestamp: 0, EndTimestamp: math.MaxInt64,
		}))
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if ok = resp.Code == remoting.RespSuccess && len(resp.Body) > 0; !ok {
			time.Sleep(100 * time.Millisecond)
		}
	}
	return ok
}

// keyed is a message that can be looked for.
type keyed struct{ Topic, Key string }

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
			for n := range h.MaxOffset { // more may have been delivered meanwhile
				out = append(out, fmt.Sprintf("reaches offset %d", n+1))
			}
			return out
		case h.NextBeginOffset <= at:
			tries++
			continue
		}
		at = h.NextBeginOffset
	}
}

// unsafe reports that the broker did not serve what the store holds, and why.
func (s *served) unsafe() (bool, string) {
	lost, more := s.lost()
	more = slices.DeleteFunc(more, func(m string) bool { return !strings.Contains(m, " broken: ") && !strings.Contains(m, " answer ") })
	switch {
	case !s.Started:
		return true, "it did not start: " + s.Said
	case len(lost) > 0:
		return true, "lost: " + clip(strings.Join(lost, ", "))
	case len(more) > 0:
		return true, "not read: " + clip(strings.Join(more, ", "))
	case !s.KeyFound:
		return true, fmt.Sprintf("key %q of topic %q is not found", s.Keyed.Key, s.Keyed.Topic)
	}
	return false, ""
}

// unseen are kinds of issues that a look at queues and one key does not show: what waits, users.
var unseen = []string{"timer", "pop", "rocksdb-pop", "rocksdb-auth"}

// preflight is what mqx store preflight says of a golden store: whether it is safe, but for what the test does not look
// at.
func preflight(t *testing.T, root string, target inspect.Target) (unsafe, starts bool, why string) {
	t.Helper()
	d, err := inspect.Open(root, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	list, err := inspect.Preflight(context.Background(), d, inspect.PreflightOptions{Target: target})
	if err != nil {
		t.Fatal(err)
	}
	starts = true
	for _, x := range list {
		if x.Unsafe() && !slices.Contains(unseen, x.Kind) {
			unsafe = true
			why += fmt.Sprintf("%s %s: %s; ", x.Risk, x.Kind, x.What)
		}
		starts = starts && x.Risk != inspect.RiskStart
	}
	return unsafe, starts, why
}

// preflights are those of the golden stores that Apache's broker opens in the short form; MQX_E2E_ALL=1 tries all of
// them, on all targets.
var preflights = map[inspect.Target][]string{
	inspect.TargetApache55: {"clean_lastfile_short", "clean_cq_tail_zeroed", "v2"},
	inspect.TargetMQX:      {"basic", "clean_body_mid_secondfile", "clean_cq_tail_zeroed", "clean_index_missing", "crash_body_mid_firstfile", "slave_j1", "v2"},
}

// What preflight says of every golden store is what the target then does.
func TestPreflightTellsWhatHappens(t *testing.T) {
	t.Parallel()
	all := os.Getenv("MQX_E2E_ALL") != ""
	for _, target := range inspect.Targets() {
		variants := preflights[target]
		if all {
			variants = testkit.GoldenStores()
		}
		if len(variants) == 0 {
			continue
		}
		t.Run(string(target), func(t *testing.T) {
			jars := jarsOf(t, target)
			for _, variant := range variants {
				t.Run(variant, func(t *testing.T) {
					unsafe, starts, why := preflight(t, testkit.GoldenStore(t, variant), target)
					s := serveGolden(t, string(target), jars, variant)
					was, what := s.unsafe()
					if was != unsafe || s.Started != starts {
						t.Errorf("preflight says unsafe=%v starts=%v (%s), the broker: unsafe=%v started=%v (%s)", unsafe, starts, why, was, s.Started, what)
					}
				})
			}
		})
	}
}

// jarsOf is the directory of the jars of a target, "" for mqx.
func jarsOf(t *testing.T, target inspect.Target) string {
	t.Helper()
	command := map[inspect.Target][]string{
		inspect.TargetApache55: {"java/fetch"},
		inspect.TargetApache53: {"java/fetch-broker", "5.3.3"},
		inspect.TargetApache49: {"java/fetch-broker", "4.9.7"},
	}[target]
	if len(command) == 0 {
		return ""
	}
	dir, err := output(command[0], command[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(dir)
}
