package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// put sends n messages of about 2 KB, which must be stored, and returns their ids.
func (p *replicaPair) put(t *testing.T, n int) map[string]int {
	t.Helper()
	file := writeFile(t, p.dir, "messages", strings.Repeat(strings.Repeat("a message ", 200)+"\n", n))
	return idsOf(t, mqx(t, "produce", p.topic, "-n", p.ns, "--retries", "20", "--timeout", "120s", "-o", "ndjson", file))
}

// idsOf counts the ids of messages in NDJSON.
func idsOf(t *testing.T, text string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for line := range strings.Lines(text) {
		var row struct{ MsgID string }
		if err := json.Unmarshal([]byte(line), &row); err != nil || row.MsgID == "" {
			t.Fatalf("line %q: %v", line, err)
		}
		out[row.MsgID]++
	}
	return out
}

// holds waits until the topic holds these messages, each once.
func (p *replicaPair) holds(t *testing.T, sets ...map[string]int) {
	t.Helper()
	want := map[string]int{}
	for _, s := range sets {
		maps.Copy(want, s)
	}
	waitFor(t, 60*time.Second, "the messages of the topic", func() (bool, string) {
		text, err := output(mqxBinary, "consume", p.topic, "-n", p.ns, "--start", "start", "-o", "ndjson", "--timeout", "60s")
		if err != nil {
			return false, err.Error()
		}
		got := idsOf(t, text)
		return maps.Equal(got, want), fmt.Sprintf("%d messages, %d different ones are wanted", len(got), len(want))
	})
}

// takes lets a group consume n messages, and wants these.
func (p *replicaPair) takes(t *testing.T, group string, want map[string]int) {
	t.Helper()
	text := mqx(t, "consume", p.topic, "-n", p.ns, "-g", group, "--commit", "--count", fmt.Sprint(len(want)), "-o", "ndjson", "--timeout", "60s")
	if got := idsOf(t, text); !maps.Equal(got, want) {
		t.Errorf("group %s gets %d messages, which are not the %d that it has not had", group, len(got), len(want))
	}
}

// kept are the pieces that a broker has cut from its log and kept, and the messages in them.
func (p *replicaPair) kept(t *testing.T, b brokerSpec) (pieces []string, ids map[string]int) {
	t.Helper()
	ids = map[string]int{}
	for piece := range strings.FieldsSeq(mqx(t, "admin", "ha", "salvage", "ls", loopback(b.port), "-n", p.ns, "-o", "name")) {
		pieces = append(pieces, piece)
		for id, n := range idsOf(t, mqx(t, "admin", "ha", "salvage", "export", loopback(b.port), piece, "-n", p.ns)) {
			ids[id] += n
		}
	}
	return pieces, ids
}

// mends resyncs a slave that has stopped, and wants its log to be its master's afterwards, and what it had more to be kept.
func (p *replicaPair) mends(t *testing.T, slave, master brokerSpec, tail map[string]int) (pieces []string) {
	t.Helper()
	addr := loopback(slave.port)
	text, err := exec.Command(mqxBinary, "admin", "ha", "resync", addr, "-n", p.ns, "--dry-run").CombinedOutput()
	if want := fmt.Sprintf("with %d messages go to mqx/salvage", len(tail)); err != nil || !strings.Contains(string(text), want) {
		t.Errorf("a resync that is only planned: %v: %s", err, text)
	}
	p.ha(t, "resync", addr)
	p.standing(t, slave, ",following,")
	p.same(t, master, slave)
	pieces, ids := p.kept(t, slave)
	if len(pieces) < 2 || !maps.Equal(ids, tail) {
		t.Errorf("%d messages are kept in %q, want the %d that only the slave had, of more than one file", len(ids), pieces, len(tail))
	}
	return pieces
}

// replays sends again what is kept.
func (p *replicaPair) replays(t *testing.T, b brokerSpec, pieces []string) {
	t.Helper()
	for _, piece := range pieces {
		mqx(t, "admin", "ha", "salvage", "replay", loopback(b.port), piece, "-n", p.ns, "--yes")
	}
}

// sound stops the brokers and looks at their stores.
func (p *replicaPair) sound(t *testing.T, brokers map[*process]brokerSpec) {
	t.Helper()
	for b, spec := range brokers {
		if err := b.stop(t, stopLimit); err != nil {
			t.Errorf("%s ended with %v", b.name, err)
		}
		if text, err := output(mqxBinary, "store", "verify", spec.store, "-o", "json"); err != nil {
			t.Errorf("store %s: %v\n%s", spec.store, err, text)
		}
	}
}

// stands waits until a slave has stopped in a state, and says what mends it.
func (p *replicaPair) stands(t *testing.T, b brokerSpec, state string) {
	t.Helper()
	waitFor(t, 90*time.Second, loopback(b.port)+" "+state, func() (bool, string) {
		text, err := output(mqxBinary, "admin", "ha", "status", loopback(b.port), "-n", p.ns, "-o", "template={{.state}}")
		return err == nil && strings.TrimSpace(text) == state, fmt.Sprint(text, err)
	})
	text, err := exec.Command(mqxBinary, "admin", "ha", "status", "-n", p.ns).CombinedOutput()
	if err != nil || !strings.Contains(string(text), state) || !strings.Contains(string(text), "mqx admin ha resync "+loopback(b.port)+" mends it") {
		t.Errorf("the status does not say what to do: %v: %s", err, text)
	}
}

// A slave that had more than the one that is promoted comes back: it stops as parted, is mended with its tail kept, the tail
// is replayed, and its offsets do not pass over what came in place of the tail (r#3388, r#4771). Then it can be the master.
func TestPartedSlave(t *testing.T) {
	if reference() {
		t.Skip("slaves of Apache are not mended")
	}
	t.Parallel()
	p := newReplicaPair(t, "parted")
	specC := p.b
	specC.port, specC.store = freePort(t), filepath.Join(p.dir, "c")
	specC.extra = []string{"enableConsumeQueueExt=false", "brokerRole=SLAVE", "brokerId=2"}
	a, b, c := mqxBroker(t, p.a), mqxBroker(t, p.b), mqxBroker(t, specC)
	a.cleanup(t)
	p.createTopic(t, p.a)
	p.standing(t, p.b, ",following,")
	p.standing(t, specC, ",following,")
	first := p.put(t, 100)
	p.takes(t, "G", first)
	p.same(t, p.a, p.b)
	waitFor(t, 60*time.Second, "the offsets at the slave", func() (bool, string) {
		text, err := os.ReadFile(filepath.Join(p.b.store, "config", "consumerOffset.json"))
		return strings.Contains(string(text), p.topic+"@G"), fmt.Sprint(err)
	})

	// One slave is down, the other gets the rest, which the group consumes; then the host of both is gone.
	if err := b.stop(t, stopLimit); err != nil {
		t.Errorf("a slave ended with %v", err)
	}
	tail := p.put(t, 800)
	p.takes(t, "G", tail)
	p.same(t, p.a, specC)
	a.kill()
	c.kill()

	b = mqxBroker(t, p.b)
	b.cleanup(t)
	p.ha(t, "promote", loopback(p.b.port), "--master-gone")
	second := p.put(t, 1000)
	p.holds(t, first, second)
	c = mqxBroker(t, specC)
	c.cleanup(t)
	p.stands(t, specC, "parted")
	pieces := p.mends(t, specC, p.b, tail)
	p.holds(t, first, second)
	p.ha(t, "promote", loopback(specC.port))
	p.takes(t, "G", second)
	p.replays(t, specC, pieces)
	p.holds(t, first, second, tail)
	p.standing(t, p.b, ",following,")
	p.same(t, specC, p.b)
	p.sound(t, map[*process]brokerSpec{b: p.b, c: specC})
}

// A master whose store was put back as it was some time ago: its slave has more, stops as ahead, and is mended with that kept.
func TestSlaveAheadOfItsMaster(t *testing.T) {
	if reference() {
		t.Skip("slaves of Apache are not mended")
	}
	t.Parallel()
	p := newReplicaPair(t, "ahead")
	a, b := mqxBroker(t, p.a), mqxBroker(t, p.b)
	b.cleanup(t)
	p.createTopic(t, p.a)
	p.standing(t, p.b, ",following,")
	first := p.put(t, 100)
	end := func() {
		if err := a.stop(t, stopLimit); err != nil {
			t.Errorf("the master ended with %v", err)
		}
	}
	end()
	old := filepath.Join(p.dir, "old")
	if err := os.CopyFS(old, os.DirFS(p.a.store)); err != nil {
		t.Fatal(err)
	}
	a = mqxBroker(t, p.a)
	tail := p.put(t, 800)
	p.same(t, p.a, p.b)
	end()
	if err := os.RemoveAll(p.a.store); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(old, p.a.store); err != nil {
		t.Fatal(err)
	}
	a = mqxBroker(t, p.a)
	a.cleanup(t)
	p.stands(t, p.b, "ahead")
	second := p.put(t, 30)
	p.replays(t, p.b, p.mends(t, p.b, p.a, tail))
	p.holds(t, first, second, tail)
	p.same(t, p.a, p.b)
	p.sound(t, map[*process]brokerSpec{a: p.a, b: p.b})
}

// A slave that was away for longer than its master keeps its log: it stops as behind, and gets the whole log anew (N083).
func TestSlaveBehindItsMaster(t *testing.T) {
	if reference() {
		t.Skip("slaves of Apache are not mended")
	}
	t.Parallel()
	p := newReplicaPair(t, "behind")
	a, b := mqxBroker(t, p.a), mqxBroker(t, p.b)
	p.createTopic(t, p.a)
	p.standing(t, p.b, ",following,")
	first := p.put(t, 100)
	p.same(t, p.a, p.b)
	if err := b.stop(t, stopLimit); err != nil {
		t.Errorf("the slave ended with %v", err)
	}
	p.put(t, 1500) // three files
	if err := a.stop(t, stopLimit); err != nil {
		t.Errorf("the master ended with %v", err)
	}
	files, err := filepath.Glob(filepath.Join(p.a.store, "commitlog", "0*"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, f := range files[:2] {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	a, b = mqxBroker(t, p.a), mqxBroker(t, p.b)
	a.cleanup(t)
	b.cleanup(t)
	p.stands(t, p.b, "behind")
	text, err := exec.Command(mqxBinary, "admin", "ha", "resync", loopback(p.b.port), "-n", p.ns, "--dry-run").CombinedOutput()
	if err != nil || !strings.Contains(string(text), "no record of its log is in that of its master") {
		t.Errorf("a resync that is only planned: %v: %s", err, text)
	}
	p.ha(t, "resync", loopback(p.b.port))
	p.standing(t, p.b, ",following,")
	p.put(t, 20)
	p.same(t, p.a, p.b)
	if pieces, ids := p.kept(t, p.b); len(pieces) == 0 || !slices.Equal(slices.Sorted(maps.Keys(ids)), slices.Sorted(maps.Keys(first))) {
		t.Errorf("%d messages are kept in %q, want the %d of the old log", len(ids), pieces, len(first))
	}
	p.sound(t, map[*process]brokerSpec{a: p.a, b: p.b})
}
