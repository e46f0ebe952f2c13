package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// member is a consumer of a group that a test can kill.
type member struct {
	received func() []incoming
	kill     func()
}

// Two members share the queues; when one is killed, the other takes over all of
// them and nothing is lost.
func TestRebalance(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	for name, join := range map[string]func(t *testing.T, namesrv, group, topic, id string) member{"Go": joinGo, "Java": joinJava} {
		t.Run(name, func(t *testing.T) {
			topic, group := "E2E_REBALANCE_"+name, "e2e_rebalance_"+name
			createTopic(t, c.namesrv, topic, 8)
			var want []outgoing
			send := func(prefix string, n int) {
				ms := numbered(prefix, n)
				sharedDriver(t).send(t, c.namesrv, topic, "sync", ms, nil)
				want = append(want, ms...)
			}
			first := join(t, c.namesrv, group, topic, "first")
			send("alone", 40)
			waitFor(t, arrival, "everything at the first member", func() (bool, string) {
				why := lost(want, first.received())
				return why == "", why
			})
			second := join(t, c.namesrv, group, topic, "second")
			round := 0
			waitFor(t, arrival, "both members to get new messages", func() (bool, string) {
				a, b := len(first.received()), len(second.received())
				round++
				send("shared"+string(rune('A'+round%26))+string(rune('A'+round/26%26)), 16)
				deadline := time.Now().Add(5 * time.Second)
				for time.Now().Before(deadline) && lost(want, append(first.received(), second.received()...)) != "" {
					time.Sleep(50 * time.Millisecond)
				}
				return len(first.received()) > a && len(second.received()) > b, "only one of them gets messages"
			})
			waitFor(t, arrival, "everything at the two members", func() (bool, string) {
				why := lost(want, append(first.received(), second.received()...))
				return why == "", why
			})
			second.kill()
			send("after", 80)
			waitFor(t, arrival, "the first member to take over", func() (bool, string) {
				why := lost(want, append(first.received(), second.received()...))
				return why == "", why
			})
			t.Logf("the first member got %d, the second %d of %d messages", len(first.received()), len(second.received()), len(want))
			after := want[len(want)-80:]
			if why := lost(after, first.received()); why != "" {
				t.Errorf("after the second member was killed: %s", why)
			}
		})
	}
}

func joinJava(t *testing.T, namesrv, group, topic, id string) member {
	t.Helper()
	return startJavaMember(t, map[string]any{"id": id, "namesrv": namesrv, "group": group, "topic": topic})
}

// startJavaMember starts a push consumer in a JVM of its own.
func startJavaMember(t *testing.T, spec map[string]any) member {
	t.Helper()
	d, id := startDriver(t), spec["id"]
	d.cleanup(t)
	diary := filepath.Join(filepath.Dir(d.log), "received")
	spec["diary"] = diary
	d.call(t, "push", spec, nil)
	return member{
		received: func() []incoming {
			if d.ended() {
				return readDiary(t, diary)
			}
			var got []incoming
			d.call(t, "received", map[string]any{"id": id}, &got)
			return got
		},
		kill: d.kill,
	}
}

// readDiary reads what a killed consumer received; its last line may be cut.
func readDiary(t *testing.T, path string) []incoming {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []incoming
	for line := range bytes.Lines(text) {
		var m incoming
		if json.Unmarshal(line, &m) == nil {
			got = append(got, m)
		}
	}
	return got
}

func joinGo(t *testing.T, namesrv, group, topic, id string) member {
	t.Helper()
	return startGoMember(t, goSpec{Namesrv: namesrv, Group: group, Instance: id, Topic: topic})
}

// startGoMember starts this test binary as a consumer of the Go client.
func startGoMember(t *testing.T, s goSpec) member {
	t.Helper()
	spec, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	dir := testDir(t, "go-consumer")
	p := &process{name: "go-consumer-" + s.Instance, log: filepath.Join(dir, "consumer.log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), goConsumerEnv+"="+string(spec))
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var got []incoming
	drained := make(chan struct{})
	go func() { // reads to the end before Wait closes the pipe
		defer close(drained)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var m incoming
			if json.Unmarshal(lines.Bytes(), &m) == nil && m.Topic != "" {
				mu.Lock()
				got = append(got, m)
				mu.Unlock()
			}
		}
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	children.Lock()
	children.all = append(children.all, p)
	children.Unlock()
	p.cleanup(t)
	return member{
		received: func() []incoming {
			mu.Lock()
			defer mu.Unlock()
			return append([]incoming(nil), got...)
		},
		kill: func() { p.kill(); <-drained },
	}
}
