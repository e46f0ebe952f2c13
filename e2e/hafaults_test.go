package e2e

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A topic whose creation was answered is at the slave that is promoted when its master dies right then, and takes messages there;
// so are a group and a deletion (N081, r#9804).
func TestTopicOutlivesItsMaster(t *testing.T) {
	if reference() {
		t.Skip("slaves of Apache look at topics once a minute")
	}
	t.Parallel()
	p := newReplicaPair(t, "topics")
	a, b := mqxBroker(t, p.a), mqxBroker(t, p.b)
	b.cleanup(t)
	p.createTopic(t, p.a)
	p.standing(t, p.b, ",following,")
	create := func(topic string) {
		mqx(t, "admin", "topic", "create", topic, "-b", loopback(p.a.port), "-n", p.ns, "--queues", "3", "--yes")
	}
	create("GOES")
	mqx(t, "admin", "topic", "rm", "GOES", "-n", p.ns, "--confirm", "GOES")
	create("LAST")
	a.kill()
	p.ha(t, "promote", loopback(p.b.port), "--master-gone")
	waitFor(t, 60*time.Second, "the route of the last topic", func() (bool, string) {
		text, err := output(mqxBinary, "admin", "topic", "ls", "-b", loopback(p.b.port), "-n", p.ns, "--all", "-o", "name")
		return err == nil && strings.Contains(text, "LAST\n"), fmt.Sprint(text, err)
	})
	text := mqx(t, "admin", "topic", "ls", "-b", loopback(p.b.port), "-n", p.ns, "--all", "-o", "name")
	if strings.Contains(text, "GOES\n") {
		t.Errorf("a deleted topic is back: %s", text)
	}
	p.topic = "LAST"
	p.holds(t, p.put(t, 30))
	// It has the queues that it was given, not those of a topic that a send creates.
	text = mqx(t, "admin", "topic", "get", "LAST", "-n", p.ns, "-o", "ndjson")
	if n := strings.Count(text, "\n"); n != 3 {
		t.Errorf("%d queues: %s", n, text)
	}
}

// What a master had stored when it was killed, and no slave had, keeps its queue offsets: what is stored after the restart comes
// behind, each message has a place of its own, and none that was stored is gone (N079, r#7689).
func TestKilledBeforeItsSlaveHadIt(t *testing.T) {
	if reference() {
		t.Skip("the levels are mqx's")
	}
	t.Parallel()
	p := newReplicaPair(t, "unconfirmed")
	p.a.extra = append(p.a.extra, "replicationLevel=quorum", "totalReplicas=2", "slaveTimeout=300")
	a, b := mqxBroker(t, p.a), mqxBroker(t, p.b)
	b.cleanup(t)
	p.createTopic(t, p.a)
	p.standing(t, p.b, ",following,")
	stored := p.put(t, 40)
	if err := b.signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Answered FLUSH_SLAVE_TIMEOUT: it is stored, and shown to nobody.
	file := writeFile(t, p.dir, "unconfirmed", strings.Repeat("unconfirmed\n", 20))
	text, _ := outputEven(mqxBinary, "produce", p.topic, "-n", p.ns, "--retries", "0", "--timeout", "60s", "-o", "ndjson", file)
	if !strings.Contains(text, "FLUSH_SLAVE_TIMEOUT") {
		t.Fatalf("without a slave: %s", text)
	}
	for id := range idsOf(t, text) {
		stored[id]++
	}
	a.kill()
	if err := b.signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	a = mqxBroker(t, p.a)
	a.cleanup(t)
	p.standing(t, p.b, ",following,")
	for id := range p.put(t, 40) {
		stored[id]++
	}
	p.same(t, p.a, p.b)
	p.holds(t, stored)
	places := map[string]bool{}
	for line := range strings.Lines(mqx(t, "consume", p.topic, "-n", p.ns, "--start", "start", "-o", "ndjson", "--timeout", "60s")) {
		var row struct{ QueueID, QueueOffset int64 }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if at := fmt.Sprint(row.QueueID, "/", row.QueueOffset); places[at] {
			t.Errorf("two messages at %s", at)
		} else {
			places[at] = true
		}
	}
	p.sound(t, map[*process]brokerSpec{a: p.a, b: p.b})
}

// The master is down: groups go on at its slave, with commits that are kept there and brought to the master when it comes back,
// so that nobody gets a message twice or not at all (N087, r#9879, r#4840).
func TestSlaveServesWhileItsMasterIsDown(t *testing.T) {
	if reference() {
		t.Skip("slaves of Apache keep their offsets to themselves")
	}
	t.Parallel()
	p := newReplicaPair(t, "down")
	a, b := mqxBroker(t, p.a), mqxBroker(t, p.b)
	b.cleanup(t)
	p.createTopic(t, p.a)
	p.standing(t, p.b, ",following,")
	first := p.put(t, 20)
	p.same(t, p.a, p.b)
	a.kill()
	consume := func(n int) map[string]int {
		return idsOf(t, mqx(t, "consume", p.topic, "-n", p.ns, "-g", "G", "--commit", "--count", fmt.Sprint(n), "-o", "ndjson", "--timeout", "60s"))
	}
	got := consume(8)
	for id := range consume(12) {
		got[id]++
	}
	if len(got) != len(first) {
		t.Errorf("%d of %d messages from the slave, in two goes", len(got), len(first))
	}
	// Apache's consumer, of a group that nobody knew before.
	d := sharedDriver(t)
	d.call(t, "push", map[string]any{"id": "down", "namesrv": p.ns, "group": "JAVA", "topic": p.topic}, nil)
	waitFor(t, arrival, "the messages at a consumer of Apache", func() (bool, string) {
		n := len(javaReceived(t, "down"))
		return n == len(first), fmt.Sprint(n)
	})
	a = mqxBroker(t, p.a)
	a.cleanup(t)
	p.standing(t, p.b, ",following,")
	second := p.put(t, 10)
	p.takes(t, "G", second)
	waitFor(t, arrival, "the new messages at a consumer of Apache", func() (bool, string) {
		n := len(javaReceived(t, "down"))
		return n == len(first)+len(second), fmt.Sprint(n)
	})
	d.call(t, "stop", map[string]any{"id": "down"}, nil)
	for _, g := range []string{"G", "JAVA"} {
		waitFor(t, 60*time.Second, "the offsets of "+g+" at the master", func() (bool, string) {
			text, err := output(mqxBinary, "admin", "lag", "get", "-g", g, "-n", p.ns, "-o", "template={{.lag}}")
			return err == nil && strings.Trim(text, "0\n") == "" && text != "", fmt.Sprint(text, err)
		})
	}
	p.sound(t, map[*process]brokerSpec{a: p.a, b: p.b})
}

// oddMaster answers the connections of a slave with frames that cannot be, or that end early, until it is told to carry them to a
// master.
type oddMaster struct {
	addr string
	mu   sync.Mutex
	odd  bool
	came []time.Time
}

func newOddMaster(t *testing.T, to string, frames [][]byte) *oddMaster {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &oddMaster{addr: l.Addr().String(), odd: true}
	good := &cutLink{}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			m.mu.Lock()
			odd, n := m.odd, len(m.came)
			m.came = append(m.came, time.Now())
			m.mu.Unlock()
			wg.Go(func() {
				if !odd {
					good.carry(c, to)
					return
				}
				_, _ = io.ReadFull(c, make([]byte, 8))
				_, _ = c.Write(frames[n%len(frames)])
				_ = c.Close()
			})
		}
	})
	return m
}

func (m *oddMaster) connections() []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]time.Time{}, m.came...)
}

// Odd and truncated frames end the connection of a slave, which says so, comes again after a pause and follows once it is sent
// what it should be (N085, r#2476).
func TestOddFrames(t *testing.T) {
	if reference() {
		t.Skip("a slave of mqx")
	}
	t.Parallel()
	p := newReplicaPair(t, "odd")
	a := mqxBroker(t, p.a)
	a.cleanup(t)
	p.createTopic(t, p.a)
	p.put(t, 20)
	head := func(off int64, n uint32) []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, uint64(off)), n)
	}
	odd := [][]byte{head(0, 1<<31), head(0, 5<<20), head(-1, 10), head(0, 100)[:7], append(head(0, 100), 1, 2, 3), head(1<<40, 0)}
	m := newOddMaster(t, loopback(p.a.port+1), odd)
	p.b.extra = append(p.b.extra, "haMasterAddress="+m.addr)
	b := mqxBroker(t, p.b)
	b.cleanup(t)
	waitFor(t, 120*time.Second, "a slave that comes again", func() (bool, string) {
		n := len(m.connections())
		return n > 2*len(odd), fmt.Sprint(n, " connections")
	})
	text, err := exec.Command(mqxBinary, "admin", "ha", "status", loopback(p.b.port), "-n", p.ns, "-o", "csv").CombinedOutput()
	if err != nil || strings.Contains(string(text), ",following,") || !strings.Contains(string(text), ",slave,0,") {
		t.Errorf("a slave that gets odd frames: %v: %s", err, text)
	}
	came := m.connections()
	if n := len(came) - 1; came[n].Sub(came[0]) < time.Duration(n)*time.Second/2 { // 1 s each, but the first may have been taken late
		t.Errorf("it came %d times in %v", n+1, came[n].Sub(came[0]))
	}
	m.mu.Lock()
	m.odd = false
	m.mu.Unlock()
	p.standing(t, p.b, ",following,")
	p.same(t, p.a, p.b)
	p.sound(t, map[*process]brokerSpec{a: p.a, b: p.b})
}
