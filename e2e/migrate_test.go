package e2e

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// moveCase is a migration of a topic under load.
type moveCase struct {
	name   string
	push   map[string]any // of the Java consumer
	shards bool           // sends by key, and looks at the order of each
	apache bool           // the source is Apache's broker
	killed bool           // the tool is killed on the way, and resumed
	more   bool           // only with MQX_E2E_ALL=1
}

// A topic moves from one broker to another while a Java producer sends and a Java consumer
// reads, both without knowing: nothing is lost, and the order of keys is kept.
func TestMigrate(t *testing.T) {
	t.Parallel()
	for _, tt := range []moveCase{
		{name: "concurrent", killed: true, more: true},
		{name: "orderly", push: map[string]any{"orderly": true}, shards: true, more: true},
		{name: "pop", push: map[string]any{"serverRebalance": true, "popInvisible": 10000}, more: true},
		{name: "broadcast", push: map[string]any{"broadcast": true}, more: true},
		{name: "apache", apache: true, more: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.more && os.Getenv("MQX_E2E_ALL") != "1" {
				t.Skip("MQX_E2E_ALL=1 runs it too")
			}
			t.Parallel()
			migrate(t, tt)
		})
	}
}

func migrate(t *testing.T, tt moveCase) {
	const topic, group = "E2E_MOVE", "e2e_move"
	ns, a, d := freePort(t), freePort(t), freePort(t)
	namesrv := loopback(ns)
	mqxNameserverWith(t, ns, "orderMessageEnable=true").cleanup(t)
	source := mqxBroker
	if tt.apache {
		source = apacheBroker
	}
	source(t, brokerSpec{name: "broker-a", port: a, namesrv: namesrv, store: filepath.Join(testDir(t, "store"), "store")}).cleanup(t)
	mqxBroker(t, brokerSpec{name: "broker-d", port: d, namesrv: namesrv, store: filepath.Join(testDir(t, "store"), "store")}).cleanup(t)
	waitFor(t, 60*time.Second, "both brokers", func() (bool, string) {
		text, err := output(mqxBinary, "admin", "topic", "ls", "--all", "-o", "wide", "-n", namesrv)
		return err == nil && strings.Contains(text, "broker-a") && strings.Contains(text, "broker-d"), text
	})
	create := []string{"admin", "topic", "create", topic, "-b", "broker-a", "--queues", "4", "--yes", "-n", namesrv}
	if tt.shards {
		create = append(create, "--order")
	}
	mqx(t, create...)

	java := startDriver(t, "-Ddriver.poll=1000", "-Drocketmq.client.rebalance.waitInterval=1000")
	java.cleanup(t)
	received := pushOf(t, java, cluster{namesrv: namesrv}, topic, group, tt.push)
	load := startLoad(t, java, namesrv, topic, tt.shards)
	waitFor(t, 60*time.Second, "the consumer to read", func() (bool, string) {
		n := len(received())
		return n > 20, fmt.Sprint(n)
	})

	ask := []string{"admin", "queue", "migrate", "start", "-t", topic, "--source", "broker-a", "--target", "broker-d", "--route-interval", "1s", "-n", namesrv, "-v"}
	if tt.push["broadcast"] == true {
		ask = append(ask, "--yes") // what its clients have read is known to them alone: the source is kept
	} else {
		ask = append(ask, "--remove", "--confirm", topic)
	}
	if tt.killed {
		killedAndResumed(t, ask, topic, namesrv)
	} else {
		mqx(t, ask...)
	}
	want := load.stop()
	waitFor(t, arrival, "every message", func() (bool, string) {
		why := lost(want, received())
		return why == "", why
	})
	t.Logf("%d messages", len(want))
	if tt.shards {
		load.checkOrder(received())
	}
	config := mqx(t, "admin", "topic", "get", topic, "--show", "config", "-o", "csv", "-n", namesrv)
	if !strings.Contains(config, "broker-d") || strings.Contains(config, "broker-a") != (tt.push["broadcast"] == true) {
		t.Errorf("the topic is now on:\n%s", config)
	}
}

// killedAndResumed kills the tool when the source is sealed. Another operator is refused as
// long as the lease of the dead one lasts, and then goes on by one command.
func killedAndResumed(t *testing.T, ask []string, topic, namesrv string) {
	t.Helper()
	dir := testDir(t, "mover")
	tool := start(t, "mover", dir, []string{"HOME=" + dir}, mqxBinary, ask...)
	tool.cleanup(t)
	waitFor(t, 60*time.Second, "the source to be sealed", func() (bool, string) {
		log, err := os.ReadFile(tool.log)
		if err == nil && tool.ended() {
			t.Fatalf("the tool ended: %s", log)
		}
		return bytes.Contains(log, []byte("\nSEALED")), string(log)
	})
	resume := func() (string, int) {
		cmd := exec.Command(mqxBinary, "admin", "queue", "migrate", "resume", topic, "--yes", "-v", "-n", namesrv)
		cmd.Env = append(os.Environ(), "HOME="+testDir(t, "second"))
		text, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(text), cmd.ProcessState.ExitCode()
	}
	if text, code := resume(); code != 1 || !strings.Contains(text, "is run by") {
		t.Fatalf("a second operator ended with %d:\n%s", code, text)
	}
	tool.kill()
	refusals := 0
	waitFor(t, 100*time.Second, "the lease to end and the move to be done", func() (bool, string) {
		text, code := resume()
		if code != 0 {
			refusals++
			time.Sleep(time.Second)
		}
		return code == 0, text
	})
	if refusals == 0 {
		t.Error("the lease of a killed owner did not hold")
	}
}

// moveLoad sends until it is stopped.
type moveLoad struct {
	t    *testing.T
	quit chan struct{}
	done sync.WaitGroup
	sent []outgoing
	keys []string
}

func startLoad(t *testing.T, d *driver, namesrv, topic string, shards bool) *moveLoad {
	t.Helper()
	l := &moveLoad{t: t, quit: make(chan struct{}), keys: []string{"a", "b", "c", "e", "f", "g", "h"}}
	l.done.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-l.quit:
				return
			default:
			}
			key := l.keys[n%len(l.keys)]
			args := map[string]any{"namesrv": namesrv, "topic": topic, "mode": "sync"}
			if shards {
				args["mode"], args["shard"] = "shard", key
			}
			ms := make([]outgoing, 5)
			coded := make([]outgoing, len(ms))
			for i := range ms {
				ms[i].Body = fmt.Sprintf("%s %09d", key, n*len(ms)+i)
				coded[i].Body = base64.StdEncoding.EncodeToString([]byte(ms[i].Body))
			}
			args["messages"] = coded
			var results []sent
			if err := d.try("send", args, &results); err != nil {
				t.Errorf("a send failed: %v", err)
				return
			}
			l.sent = append(l.sent, ms...)
			time.Sleep(5 * time.Millisecond)
		}
	})
	t.Cleanup(func() { l.stop() })
	return l
}

// stop ends the load and returns what was acknowledged.
func (l *moveLoad) stop() []outgoing {
	select {
	case <-l.quit:
	default:
		close(l.quit)
	}
	l.done.Wait()
	return l.sent
}

// checkOrder: the messages of a key come in the order in which they were sent.
func (l *moveLoad) checkOrder(got []incoming) {
	l.t.Helper()
	last := map[string]string{}
	for _, m := range got {
		key, number, _ := strings.Cut(string(m.Body), " ")
		if number < last[key] {
			l.t.Errorf("key %s: %s came after %s", key, number, last[key])
		}
		last[key] = max(last[key], number)
	}
}
