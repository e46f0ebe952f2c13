package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// A broker is emptied and stopped: what only it has goes to the target, what others have
// stays with them, and in the end no name server lists it.
func TestRetireBroker(t *testing.T) {
	t.Parallel()
	r := newMoveRig(t, false)
	r.mqx("admin", "topic", "create", "ALONE", "-b", "broker-a", "--queues", "2", "--yes")
	r.mqx("admin", "topic", "create", "BOTH", "-b", "broker-a", "--queues", "2", "--yes")
	r.mqx("admin", "topic", "create", "BOTH", "-b", "broker-b", "--queues", "2", "--yes")
	for _, topic := range []string{"ALONE", "BOTH"} {
		r.mqx("wait", "topic", topic, "--within", "60s")
		r.mqx("produce", topic, writeFile(t, testDir(t, "bodies"), "bodies", strings.Repeat("a message\n", 20)))
		r.mqx("consume", topic, "-g", "e2e_retire", "--commit", "--count", "20", "--timeout", "60s")
	}
	run := r.tool("admin", "broker", "retire", "start", "broker-a", "--target", "broker-d", "--route-interval", "1s", "--remove", "--confirm", "broker-a", "-v")
	waitFor(t, 120*time.Second, "the broker to be empty", func() (bool, string) {
		log := tail(run.log, 200)
		if run.ended() {
			t.Fatalf("the tool ended: %s", log)
		}
		return strings.Contains(log, "still lists broker broker-a: stop it now"), log
	})
	if out := r.mqx("admin", "topic", "ls", "-b", "broker-a", "-o", "name"); strings.Contains(out, "ALONE") || strings.Contains(out, "BOTH") {
		t.Errorf("the emptied broker still has topics:\n%s", out)
	}
	if err := r.running["broker-a"].signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitFor(t, 60*time.Second, "the plan to end", func() (bool, string) { return run.ended(), tail(run.log, 20) })
	if code := run.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("the tool ended with %d:\n%s", code, tail(run.log, 40))
	}
	if out := r.mqx("admin", "broker", "ls", "-o", "csv"); strings.Contains(out, "broker-a") {
		t.Errorf("a name server still lists the broker:\n%s", out)
	}
	for topic, broker := range map[string]string{"ALONE": "broker-d", "BOTH": "broker-b"} {
		out := r.mqx("admin", "topic", "get", topic, "--show", "config", "-o", "csv")
		if !strings.Contains(out, ","+broker+",") || strings.Contains(out, "broker-a") {
			t.Errorf("topic %s is now on:\n%s", topic, out)
		}
	}
}

// A topic gets more queues and then fewer, and is drained on one of its brokers, under a Java
// producer and consumer: nothing is lost, nothing comes twice.
func TestResizeAndDrain(t *testing.T) {
	if !allMigrations() {
		t.Skip("MQX_E2E_ALL=1 runs it")
	}
	t.Parallel()
	for name, apache := range map[string]bool{"mqx": false, "apache": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const topic, group = "E2E_SIZE", "e2e_size"
			r := newMoveRig(t, apache)
			for _, b := range []string{"broker-a", "broker-d"} {
				r.mqx("admin", "topic", "create", topic, "-b", b, "--queues", "4", "--yes")
			}
			load := r.clients(moveCase{}, topic, group)
			for _, tt := range []struct{ verb, flags, want string }{
				{"resize", "--queues 8", ",broker-a,*,8,8,rw,"},
				{"resize", "--queues 2", ",broker-a,*,2,2,rw,"},
				{"drain", "--source broker-a", ",broker-a,*,2,2,r,"},
			} {
				ask := append([]string{"admin", "queue", tt.verb, "start", "-t", topic, "--route-interval", "1s", "--yes"}, strings.Fields(tt.flags)...)
				if tt.flags == "--queues 2" { // what goes is named
					ask = append(ask, "--remove", "--confirm", topic)
				}
				r.carryOut(ask, nil, nil)
				r.hasConfig(topic, tt.want)
			}
			load.check()
			if n := load.twice(); n > 0 {
				t.Errorf("%d messages came twice", n)
			}
		})
	}
	t.Run("ordered", func(t *testing.T) {
		t.Parallel()
		r := newMoveRig(t, false)
		r.mqx("admin", "topic", "create", "E2E_ORDER", "-b", "broker-a", "--queues", "4", "--order", "--yes")
		text, code := r.try("admin", "queue", "resize", "start", "-t", "E2E_ORDER", "--queues", "8", "--route-interval", "1s", "--yes")
		if code != 6 || !strings.Contains(text, "sends most keys to other queues") || !strings.Contains(text, "--remap-keys") {
			t.Errorf("without --remap-keys it ended with %d:\n%s", code, text)
		}
		r.hasConfig("E2E_ORDER", ",broker-a,*,4,4,rw,")
		r.carryOut([]string{"admin", "queue", "resize", "start", "-t", "E2E_ORDER", "--queues", "8", "--remap-keys", "--route-interval", "1s", "--yes"}, nil, nil)
		r.hasConfig("E2E_ORDER", ",broker-a,*,8,8,rw,")
	})
}

// hasConfig looks for a broker's part of a topic; * is one field.
func (r *moveRig) hasConfig(topic, want string) {
	r.t.Helper()
	out := r.mqx("admin", "topic", "get", topic, "--show", "config", "-o", "csv")
	before, after, _ := strings.Cut(want, "*")
	for line := range strings.SplitSeq(out, "\n") {
		if _, rest, ok := strings.Cut(line, before); ok && strings.Contains(rest, after) {
			return
		}
	}
	r.t.Errorf("topic %s is not as %s:\n%s", topic, want, out)
}
