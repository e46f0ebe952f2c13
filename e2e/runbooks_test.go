package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// runbookTest is a cluster of one broker of either make that the runbooks of
// docs/runbooks work on, as a person with a shell does.
type runbookTest struct {
	cluster
	dir    string // of the person
	spec   brokerSpec
	broker *process
}

// run runs a runbook and asks for its exit code; env has what it is told by the
// environment. What it printed comes back.
func (r *runbookTest) run(t *testing.T, want int, env []string, name string, args ...string) string {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("..", "docs", "runbooks", name))
	if err != nil {
		t.Fatal(err)
	}
	return r.command(t, want, env, script, args...)
}

func (r *runbookTest) command(t *testing.T, want int, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &out, r.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(mqxBinary)+":"+os.Getenv("PATH"), "MQX_NAMESRV="+r.namesrv, "HOME="+r.dir, "XDG_STATE_HOME="+r.dir, "XDG_CONFIG_HOME="+r.dir)
	cmd.Env = append(cmd.Env, env...)
	err := cmd.Run()
	exit := &exec.ExitError{}
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != want {
		t.Fatalf("%s %q ended with %d, want %d:\n%s", filepath.Base(name), args, code, want, out.String())
	}
	return out.String()
}

// has asks for texts in what a runbook printed.
func has(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("%q is not in:\n%s", text, out)
		}
	}
}

// member keeps a member of a group reading until the test is done with it.
func (r *runbookTest) member(t *testing.T, topic, group string) (stop func()) {
	t.Helper()
	p := start(t, "member-"+group, r.dir, []string{"MQX_NAMESRV=" + r.namesrv, "HOME=" + r.dir}, mqxBinary, "consume", topic, "-g", group, "--commit", "-f", "-o", "ndjson")
	p.cleanup(t)
	return p.kill
}

var do = []string{"DO=yes"}

// The runbooks, in the order in which a topic may need them. Each is first run without
// leave, which must change nothing, and then with it.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	ns := mqxNameserver(t, port)
	ns.cleanup(t)
	dir := testDir(t, "runbooks")
	r := &runbookTest{cluster: cluster{namesrv: loopback(port)}, dir: dir}
	r.spec = brokerSpec{port: freePort(t), namesrv: r.namesrv, store: filepath.Join(dir, "store"), extra: []string{"autoCreateTopicEnable=false", "fileReservedTime=72"}}
	r.cluster.broker = loopback(r.spec.port)
	r.broker = mqxBroker(t, r.spec)
	t.Cleanup(func() { r.broker.kill() })
	r.command(t, 0, nil, mqxBinary, "wait", "broker", brokerName, "--within", "60s")

	steps := []struct {
		name string
		run  func(t *testing.T, r *runbookTest)
	}{
		{"new-topic", newTopicRunbook},
		{"find-message", findMessageRunbook},
		{"lagging-group", laggingGroupRunbook},
		{"poison-message", poisonMessageRunbook},
		{"replay-dead-letters", replayDeadLettersRunbook},
		{"redo-since", redoSinceRunbook},
		{"disk-nearly-full", diskNearlyFullRunbook},
		{"rolling-restart", rollingRestartRunbook},
		{"after-power-cut", afterPowerCutRunbook},
		{"master-gone", masterGoneRunbook},
		{"migrate-and-retire", migrateAndRetireRunbook},
	}
	scripts, err := filepath.Glob(filepath.Join("..", "docs", "runbooks", "*.sh"))
	if err != nil || len(scripts) != len(steps) {
		t.Errorf("there are %d runbooks and %d of them are run (%v)", len(scripts), len(steps), err)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil || !strings.HasPrefix(string(text), "#!/usr/bin/env bash\n# ") || !strings.Contains(string(text), "\nset -euo pipefail\n") {
			t.Errorf("%s does not begin as a runbook does (%v)", script, err)
		}
	}
	for _, step := range steps {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, r) }) {
			t.FailNow() // the next one begins where this one ended
		}
	}
}

const runbookTopic, runbookGroup = "RUNBOOK_ORDERS", "runbook_billing"

func newTopicRunbook(t *testing.T, r *runbookTest) {
	args := []string{runbookTopic, runbookGroup, clusterName, "1"}
	has(t, r.run(t, 0, nil, "new-topic.sh", args...), "create topic "+runbookTopic, "Nothing was done")
	r.command(t, 7, nil, mqxBinary, "admin", "topic", "get", runbookTopic)
	has(t, r.run(t, 0, do, "new-topic.sh", args...), "The topic is ready")
	has(t, r.run(t, 0, do, "new-topic.sh", args...), "The topic is ready") // once more does no harm
	r.run(t, 1, nil, "new-topic.sh", runbookTopic)                         // and says how it is called
}

func findMessageRunbook(t *testing.T, r *runbookTest) {
	for i := range 6 {
		cmd := exec.Command(mqxBinary, "produce", runbookTopic, "--key", fmt.Sprint("order-", i), "-n", r.namesrv, "-")
		cmd.Stdin = strings.NewReader(fmt.Sprintf("secret body %d\n", i))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("produce: %v %s", err, out)
		}
	}
	r.command(t, 0, nil, mqxBinary, "consume", runbookTopic, "-g", runbookGroup, "--commit", "--count", "3", "--timeout", "60s", "-o", "name")
	out := r.run(t, 0, nil, "find-message.sh", runbookTopic, "order-5")
	has(t, out, "2. The message at "+brokerName+":0:", runbookGroup, "NOT_CONSUMED_YET")
	if strings.Contains(out, "secret body") {
		t.Errorf("the body is shown:\n%s", out)
	}
	has(t, r.run(t, 0, []string{"SHOW=yes"}, "find-message.sh", runbookTopic, "order-5", "-1h"), "secret body 5")
	r.run(t, 7, nil, "find-message.sh", runbookTopic, "order-99")
	r.run(t, 7, nil, "find-message.sh", "NO_SUCH_TOPIC", "order-1")
}

func laggingGroupRunbook(t *testing.T, r *runbookTest) {
	has(t, r.run(t, 0, nil, "lagging-group.sh", runbookGroup, "100", "10s"), "How far behind is "+runbookGroup, "has caught up")
	r.run(t, 8, nil, "lagging-group.sh", runbookGroup, "1", "1s")
	r.run(t, 7, nil, "lagging-group.sh", "no_such_group", "1", "1s")
}

func poisonMessageRunbook(t *testing.T, r *runbookTest) {
	args := []string{runbookGroup, runbookTopic, brokerName, "0"}
	has(t, r.run(t, 0, nil, "poison-message.sh", args...), "Nothing was done")
	has(t, r.run(t, 0, do, "poison-message.sh", args...), "its dead letters")
	kept, err := os.ReadFile(filepath.Join(r.dir, "poison-"+runbookGroup+"-"+brokerName+"-0.json"))
	if err != nil || !bytes.Contains(kept, []byte(`"queueId"`)) {
		t.Errorf("the message is not kept: %v %s", err, kept)
	}
	r.run(t, 7, do, "poison-message.sh", "no_such_group", runbookTopic, brokerName, "0")
}

func replayDeadLettersRunbook(t *testing.T, r *runbookTest) {
	has(t, r.run(t, 0, nil, "replay-dead-letters.sh", runbookGroup), "Nothing was done")
	stop := r.member(t, runbookTopic, runbookGroup)
	has(t, r.run(t, 0, append([]string{"WITHIN=60s", "PURGE=yes"}, do...), "replay-dead-letters.sh", runbookGroup, "100"), "Has it read them?")
	stop()
	r.run(t, 7, do, "replay-dead-letters.sh", "no_such_group")
}

func redoSinceRunbook(t *testing.T, r *runbookTest) {
	args := []string{runbookGroup, runbookTopic, "-1h"}
	has(t, r.run(t, 0, nil, "redo-since.sh", args...), "Nothing was done")
	r.run(t, 8, append([]string{"WITHIN=1s"}, do...), "redo-since.sh", args...)
	stop := r.member(t, runbookTopic, runbookGroup)
	defer stop()
	has(t, r.run(t, 0, append([]string{"WITHIN=60s"}, do...), "redo-since.sh", args...), "It goes on reading from there")
}

func diskNearlyFullRunbook(t *testing.T, r *runbookTest) {
	has(t, r.run(t, 0, []string{"MAX=100"}, "disk-nearly-full.sh", brokerName, "24"), "nothing has to be done")
	has(t, r.run(t, 0, []string{"MAX=1"}, "disk-nearly-full.sh", brokerName, "24"), "Nothing was done")
	has(t, r.run(t, 0, append([]string{"MAX=1"}, do...), "disk-nearly-full.sh", brokerName, "24"), "How full is it now?")
	has(t, r.command(t, 0, nil, mqxBinary, "admin", "config", "get", "fileReservedTime", "-b", brokerName, "-o", "csv"), ",24\n")
	r.run(t, 7, []string{"MAX=1"}, "disk-nearly-full.sh", "no-such-broker", "24")
}

func rollingRestartRunbook(t *testing.T, r *runbookTest) {
	quick := []string{"ROUTES=200ms", "SETTLE=300ms", "GATE=90s", "MAX=100"}
	ask := filepath.Join(r.dir, "restart-{broker}")
	command := "touch " + ask + "; while [ -e " + ask + " ]; do sleep 0.1; done"
	r.run(t, 6, quick, "rolling-restart.sh", clusterName, command) // without a replica nobody serves what lies on it
	has(t, r.run(t, 0, append([]string{"ACCEPT=yes"}, quick...), "rolling-restart.sh", clusterName, command), "Nothing was done")
	done := make(chan struct{})
	go func() {
		defer close(done)
		asked := filepath.Join(r.dir, "restart-"+brokerName)
		for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if _, err := os.Stat(asked); err != nil {
				continue
			}
			if err := r.broker.stop(t, stopLimit); err != nil && !reference() { // a JVM ends with 143
				t.Errorf("the broker ended with %v", err)
			}
			r.broker = mqxBroker(t, r.spec)
			if err := os.Remove(asked); err != nil {
				t.Error(err)
			}
			return
		}
	}()
	has(t, r.run(t, 0, append(quick, do...), "rolling-restart.sh", clusterName, command), "Is everything well again?")
	<-done
}

func afterPowerCutRunbook(t *testing.T, r *runbookTest) {
	if err := r.broker.stop(t, stopLimit); err != nil && !reference() {
		t.Fatalf("the broker ended with %v", err)
	}
	has(t, r.run(t, 0, nil, "after-power-cut.sh", r.spec.store), "Nothing is wrong with the store")
	// A queue and the table of topics are lost.
	for _, lost := range []string{filepath.Join("consumequeue", runbookTopic), filepath.Join("config", "topics.json")} {
		if err := os.RemoveAll(filepath.Join(r.spec.store, lost)); err != nil {
			t.Fatal(err)
		}
	}
	has(t, r.run(t, 0, nil, "after-power-cut.sh", r.spec.store), "Nothing was done")
	has(t, r.run(t, 0, append([]string{"LOSE=yes"}, do...), "after-power-cut.sh", r.spec.store), "The broker can be started")
	r.broker = mqxBroker(t, r.spec)
	r.command(t, 0, nil, mqxBinary, "wait", "topic", runbookTopic, "--within", "60s")
	out := r.command(t, 0, nil, mqxBinary, "consume", runbookTopic, "--count", "5", "--timeout", "30s", "-o", "ndjson")
	has(t, out, "secret body 0")
	r.run(t, 7, nil, "after-power-cut.sh", filepath.Join(r.dir, "no-such-store"))
}

// A group of its own loses its master; what was sent is read from the slave that takes its place, and the old one is fenced.
func masterGoneRunbook(t *testing.T, r *runbookTest) {
	if reference() {
		t.Skip("brokers of Apache are not promoted")
	}
	const group, topic = "broker-gone", "RUNBOOK_GONE"
	master := brokerSpec{name: group, port: freePort(t), namesrv: r.namesrv, store: filepath.Join(testDir(t, "runbooks-gone"), "store"), extra: []string{"brokerRole=SYNC_MASTER", "inSyncReplicas=2"}}
	slave := brokerSpec{name: group, port: freePort(t), namesrv: r.namesrv, store: filepath.Join(testDir(t, "runbooks-gone-slave"), "store"), extra: []string{"brokerRole=SLAVE", "brokerId=1"}}
	gone := mqxBroker(t, master)
	mqxBroker(t, slave).cleanup(t)
	r.command(t, 0, nil, mqxBinary, "wait", "broker", group, "--within", "60s")
	r.command(t, 0, nil, mqxBinary, "admin", "topic", "create", topic, "-b", loopback(master.port), "--yes")
	p := &replicaPair{ns: r.namesrv, topic: topic}
	p.standing(t, slave, ",following,")
	r.command(t, 0, nil, "sh", "-c", "echo kept | mqx produce "+topic+" --retries 20 -")
	gone.kill()
	has(t, r.run(t, 0, []string{"WITHIN=90s"}, "master-gone.sh", group), "becomes ASYNC_MASTER", "Nothing was done")
	has(t, r.run(t, 0, append([]string{"WITHIN=90s"}, do...), "master-gone.sh", group), "Does the group take messages?", loopback(slave.port))
	r.command(t, 0, nil, "sh", "-c", "echo new | mqx produce "+topic+" --retries 20 -")
	out := r.command(t, 0, nil, mqxBinary, "consume", topic, "--count", "2", "--timeout", "30s", "-o", "ndjson")
	has(t, out, `"body":"kept"`, `"body":"new"`)
	r.run(t, 7, nil, "master-gone.sh", "no-such-broker")
}

func migrateAndRetireRunbook(t *testing.T, r *runbookTest) {
	spec := r.spec
	spec.name, spec.port, spec.store = "broker-new", freePort(t), filepath.Join(testDir(t, "runbooks-new"), "store")
	mqxBroker(t, spec).cleanup(t)
	r.command(t, 0, nil, mqxBinary, "wait", "broker", spec.name, "--within", "60s")
	quick := []string{"ROUTES=1s", "WITHIN=3m", "MAX=100"}
	has(t, r.run(t, 0, quick, "migrate-and-retire.sh", brokerName, spec.name), "What would move", "Nothing was done")
	defer r.member(t, runbookTopic, runbookGroup)()
	out := r.run(t, 0, append(quick, do...), "migrate-and-retire.sh", brokerName, spec.name)
	has(t, out, "is not stopped yet")
	asked := filepath.Join(r.dir, "stop-"+brokerName)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if _, err := os.Stat(asked); err != nil {
				continue
			}
			if err := r.broker.stop(t, stopLimit); err != nil && !reference() { // a JVM ends with 143
				t.Errorf("the broker ended with %v", err)
			}
			if err := os.Remove(asked); err != nil {
				t.Error(err)
			}
			return
		}
	}()
	out = r.run(t, 0, append(quick, do...), "migrate-and-retire.sh", brokerName, spec.name, "touch "+asked+"; while [ -e "+asked+" ]; do sleep 0.1; done")
	<-done
	has(t, out, "They have moved already", "What is left")
	r.command(t, 0, nil, "sh", "-c", "echo new | mqx produce "+runbookTopic+" -")
	has(t, r.command(t, 0, nil, mqxBinary, "consume", runbookTopic, "-b", spec.name, "--timeout", "30s", "-o", "ndjson"), `"body":"new"`)
}
