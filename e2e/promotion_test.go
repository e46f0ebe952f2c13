package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// groupLoad sends small batches to a topic until it is ended, and keeps the ids that were acknowledged with SEND_OK.
type groupLoad struct {
	mu   sync.Mutex
	ids  map[string]bool
	stop chan struct{}
	done sync.WaitGroup
}

func startGroupLoad(t *testing.T, dir, namesrv, topic string) *groupLoad {
	t.Helper()
	l := &groupLoad{ids: map[string]bool{}, stop: make(chan struct{})}
	file := filepath.Join(dir, "load")
	if err := os.WriteFile(file, []byte(strings.Repeat(strings.Repeat("load ", 40)+"\n", 25)), 0o644); err != nil {
		t.Fatal(err)
	}
	l.done.Go(func() {
		for {
			select {
			case <-l.stop:
				return
			default:
			}
			// What is not acknowledged may be there or not: it is sent by nobody again.
			text, _ := outputEven(mqxBinary, "produce", topic, "-n", namesrv, "--timeout", "20s", "-o", "ndjson", file)
			l.mu.Lock()
			for line := range strings.SplitSeq(text, "\n") {
				var row struct{ Status, MsgID string }
				if json.Unmarshal([]byte(line), &row) == nil && row.Status == "SEND_OK" {
					l.ids[row.MsgID] = true
				}
			}
			l.mu.Unlock()
		}
	})
	t.Cleanup(l.end)
	return l
}

func (l *groupLoad) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ids)
}

// more waits until n messages more are acknowledged.
func (l *groupLoad) more(t *testing.T, n int) {
	t.Helper()
	want := l.count() + n
	waitFor(t, 120*time.Second, fmt.Sprintf("%d messages more", n), func() (bool, string) { return l.count() >= want, fmt.Sprint(l.count()) })
}

func (l *groupLoad) end() {
	l.mu.Lock()
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.mu.Unlock()
	l.done.Wait()
}

// read waits until every acknowledged message is in the topic.
func (l *groupLoad) read(t *testing.T, namesrv, topic string) {
	t.Helper()
	waitFor(t, 120*time.Second, "all that was acknowledged", func() (bool, string) {
		text, err := output(mqxBinary, "consume", topic, "-n", namesrv, "--start", "start", "-o", "ndjson", "--timeout", "60s")
		if err != nil {
			return false, err.Error()
		}
		there := map[string]bool{}
		for line := range strings.SplitSeq(text, "\n") {
			var row struct{ MsgID string }
			if json.Unmarshal([]byte(line), &row) == nil {
				there[row.MsgID] = true
			}
		}
		missing := 0
		for id := range l.ids {
			if !there[id] {
				missing++
			}
		}
		return missing == 0, fmt.Sprintf("%d of %d acknowledged messages are missing, %d are there", missing, len(l.ids), len(there))
	})
}

// replicaPair is a group of two brokers.
type replicaPair struct {
	dir, ns, topic string
	a, b           brokerSpec // the first master, its slave
}

func newReplicaPair(t *testing.T, name string) *replicaPair {
	t.Helper()
	dir, ns := testDir(t, name), freePort(t)
	mqxNameserver(t, ns).cleanup(t)
	p := &replicaPair{dir: dir, ns: loopback(ns), topic: "PROMOTE"}
	p.a = brokerSpec{name: "group-" + name, port: freePort(t), namesrv: p.ns, store: filepath.Join(dir, "a"), extra: []string{"enableConsumeQueueExt=false"}}
	p.b = p.a
	p.b.port, p.b.store = freePort(t), filepath.Join(dir, "b")
	p.b.extra = append(p.b.extra[:1:1], "brokerRole=SLAVE", "brokerId=1")
	return p
}

func (p *replicaPair) createTopic(t *testing.T, at brokerSpec) {
	t.Helper()
	waitFor(t, 60*time.Second, "the master at its name server", func() (bool, string) {
		text, err := output(mqxBinary, "admin", "topic", "create", p.topic, "-b", loopback(at.port), "-n", p.ns, "--queues", "2", "--yes")
		return err == nil, text
	})
}

// standing waits until a broker says that it stands in its group as wanted, and has its tables.
func (p *replicaPair) standing(t *testing.T, b brokerSpec, want string) {
	t.Helper()
	waitFor(t, 90*time.Second, loopback(b.port)+" "+want, func() (bool, string) {
		text, err := output(mqxBinary, "admin", "ha", "status", loopback(b.port), "-n", p.ns, "-o", "csv")
		if err != nil {
			return false, err.Error()
		}
		return strings.Contains(text, want), text
	})
	waitFor(t, 90*time.Second, "the topic at "+loopback(b.port), func() (bool, string) {
		text, err := os.ReadFile(filepath.Join(b.store, "config", "topics.json"))
		return strings.Contains(string(text), `"`+p.topic+`"`), fmt.Sprint(err)
	})
}

func (p *replicaPair) ha(t *testing.T, args ...string) string {
	t.Helper()
	return mqx(t, append(append([]string{"admin", "ha"}, args...), "-n", p.ns, "--yes", "-o", "csv")...)
}

func (p *replicaPair) same(t *testing.T, of, to brokerSpec) {
	t.Helper()
	waitFor(t, 120*time.Second, "the same logs", func() (bool, string) {
		diff := sameLogs(t, of.store, to.store)
		return diff == "", diff
	})
}

// A master that waits for its slave is killed under load, the slave is promoted and the clients go on; the old master comes
// back, takes nothing, becomes the slave, and is made the master again under load. What was acknowledged is there, and the
// logs are the same bytes (r#323, r#3388, r#6316).
func TestPromotion(t *testing.T) {
	if reference() {
		t.Skip("brokers of Apache are not promoted")
	}
	t.Parallel()
	p := newReplicaPair(t, "promotion")
	p.a.extra = append(p.a.extra, "brokerRole=SYNC_MASTER", "inSyncReplicas=2")
	a, b := mqxBroker(t, p.a), mqxBroker(t, p.b)
	b.cleanup(t)
	p.createTopic(t, p.a)
	p.standing(t, p.b, ",following,")
	l := startGroupLoad(t, p.dir, p.ns, p.topic)
	l.more(t, 100)
	a.kill()
	p.ha(t, "promote", loopback(p.b.port), "--master-gone", "--role", "ASYNC_MASTER")
	l.more(t, 100)
	a = mqxBroker(t, p.a)
	a.cleanup(t)
	p.standing(t, p.a, ",fenced,")
	if text, err := output(mqxBinary, "admin", "check", loopback(p.a.port), "-n", p.ns); err == nil && strings.Contains(text, "SEND_OK") {
		t.Errorf("the old master takes messages: %s", text)
	}
	p.ha(t, "demote", loopback(p.a.port))
	p.standing(t, p.a, ",following,")
	l.more(t, 50)
	p.ha(t, "promote", loopback(p.a.port)) // planned, under load
	l.more(t, 50)
	l.end()
	p.standing(t, p.b, ",following,")
	p.same(t, p.a, p.b)
	l.read(t, p.ns, p.topic)
	for _, x := range []*process{a, b} {
		if err := x.stop(t, stopLimit); err != nil {
			t.Errorf("%s ended with %v", x.name, err)
		}
	}
	for _, s := range []brokerSpec{p.a, p.b} {
		if text, err := output(mqxBinary, "store", "verify", s.store, "-o", "json"); err != nil {
			t.Errorf("store %s: %v\n%s", s.store, err, text)
		}
	}
}

// From Apache to mqx: a slave of mqx follows a master of Apache under load, the master is stopped once the slave has
// everything, and the slave is promoted. docs/replication.md, "From Apache to mqx".
func TestWayIn(t *testing.T) {
	if os.Getenv("MQX_E2E_ALL") != "1" {
		t.Skip("MQX_E2E_ALL=1 runs it")
	}
	p := newReplicaPair(t, "way-in")
	a, b := apacheBroker(t, p.a), mqxBroker(t, p.b)
	a.cleanup(t)
	b.cleanup(t)
	p.createTopic(t, p.a)
	l := startGroupLoad(t, p.dir, p.ns, p.topic)
	l.more(t, 100)
	p.standing(t, p.b, ",following,")
	if text, err := output(mqxBinary, "admin", "ha", "promote", loopback(p.b.port), "-n", p.ns, "--yes"); err == nil {
		t.Errorf("promoted beside a running master of Apache: %s", text)
	}
	// No message more, then the stop: a master of Apache cannot be fenced.
	mqx(t, "admin", "broker", "set", p.a.name, "--writable=false", "-n", p.ns, "--yes")
	l.end()
	p.same(t, p.a, p.b)
	_ = a.stop(t, stopLimit)
	p.ha(t, "promote", loopback(p.b.port), "--master-gone")
	l2 := startGroupLoad(t, p.dir, p.ns, p.topic)
	l2.more(t, 50)
	l2.end()
	for id := range l2.ids {
		l.ids[id] = true
	}
	l.read(t, p.ns, p.topic)
}

// From mqx to Apache: a slave of Apache follows a master of mqx, and is started as the master once that has stopped.
// docs/replication.md, "Back to Apache".
func TestWayBack(t *testing.T) {
	if os.Getenv("MQX_E2E_ALL") != "1" {
		t.Skip("MQX_E2E_ALL=1 runs it")
	}
	p := newReplicaPair(t, "way-back")
	a, b := mqxBroker(t, p.a), apacheBroker(t, p.b)
	a.cleanup(t)
	p.createTopic(t, p.a)
	l := startGroupLoad(t, p.dir, p.ns, p.topic)
	l.more(t, 100)
	l.end()
	p.same(t, p.a, p.b)
	waitFor(t, 120*time.Second, "the topic at the slave", func() (bool, string) {
		text, err := os.ReadFile(filepath.Join(p.b.store, "config", "topics.json"))
		return strings.Contains(string(text), `"`+p.topic+`"`), fmt.Sprint(err)
	})
	if err := a.stop(t, stopLimit); err != nil {
		t.Errorf("the master ended with %v", err)
	}
	_ = b.stop(t, stopLimit)
	p.b.extra = append(p.b.extra[:1:1], "brokerRole=ASYNC_MASTER")
	apacheBroker(t, p.b).cleanup(t)
	l2 := startGroupLoad(t, p.dir, p.ns, p.topic)
	l2.more(t, 50)
	l2.end()
	for id := range l2.ids {
		l.ids[id] = true
	}
	l.read(t, p.ns, p.topic)
}
