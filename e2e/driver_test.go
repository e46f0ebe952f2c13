package e2e

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// driver is a JVM with Apache's Java client in it (java/Driver.java).
type driver struct {
	*process
	mu  sync.Mutex
	in  io.WriteCloser
	out *bufio.Reader
}

// startDriver starts a JVM of its own, with more flags if need be.
func startDriver(t *testing.T, flags ...string) *driver {
	t.Helper()
	return startJVM(t, "Driver", classPath, flags...)
}

// startJVM starts a JVM with a class that speaks the driver's protocol.
func startJVM(t *testing.T, class, path string, flags ...string) *driver {
	t.Helper()
	dir := testDir(t, "driver")
	d := &driver{process: &process{name: "java-driver", log: filepath.Join(dir, "driver.log"), done: make(chan struct{})}}
	log, err := os.Create(d.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	args := javaFlags(dir, "256m")
	args[len(args)-1] = path
	d.cmd = exec.Command("java", append(append(args, flags...), class)...)
	d.cmd.Stderr = log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.out = bufio.NewReader(out)
	if err := d.cmd.Start(); err != nil {
		t.Fatalf("cannot start the Java driver: %v", err)
	}
	d.register()
	return d
}

// sharedDriver is one JVM for all tests that need no second one.
var sharedJVM struct {
	sync.Once
	*driver
}

func sharedDriver(t *testing.T) *driver {
	t.Helper()
	sharedJVM.Do(func() { sharedJVM.driver = startDriver(t) })
	if sharedJVM.driver == nil {
		t.Fatal("the Java driver did not start")
	}
	return sharedJVM.driver
}

const driverLimit = 120 * time.Second

// try runs one command and decodes its result into result, which may be nil.
func (d *driver) try(cmd string, args map[string]any, result any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	request := map[string]any{"cmd": cmd}
	for k, v := range args {
		request[k] = v
	}
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	guard := time.AfterFunc(driverLimit, func() { _ = d.signal(syscall.SIGKILL) })
	defer guard.Stop()
	if _, err := d.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("driver: %w", err)
	}
	for {
		text, err := d.out.ReadString('\n')
		if err != nil {
			return fmt.Errorf("driver: no answer to %s: %w; end of its log:\n%s", cmd, err, tail(d.log, 30))
		}
		answer, ok := strings.CutPrefix(text, "@@")
		if !ok {
			continue
		}
		var a struct {
			Result json.RawMessage `json:"result"`
			Error  string          `json:"error"`
		}
		if err := json.Unmarshal([]byte(answer), &a); err != nil {
			return fmt.Errorf("driver: cannot read the answer %q: %w", answer, err)
		}
		if a.Error != "" {
			return fmt.Errorf("driver: %s: %s", cmd, a.Error)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(a.Result, result)
	}
}

func (d *driver) call(t *testing.T, cmd string, args map[string]any, result any) {
	t.Helper()
	if err := d.try(cmd, args, result); err != nil {
		t.Fatal(err)
	}
}

// outgoing is a message to send.
type outgoing struct {
	Body       string            `json:"body"` // base64 on the way to Java
	Tag        string            `json:"tag,omitempty"`
	Keys       string            `json:"keys,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
	System     map[string]string `json:"system,omitempty"` // properties that applications may not set; the Java client only
}

// sent is what a client returns for a send.
type sent struct {
	Status      string `json:"status"`
	MsgID       string `json:"msgId"`
	OffsetMsgID string `json:"offsetMsgId"`
	Broker      string `json:"broker"`
	QueueID     int    `json:"queueId"`
	QueueOffset int64  `json:"queueOffset"`
	// RecallHandle is what a timer message can be taken back with.
	RecallHandle string `json:"recallHandle"`
}

// incoming is a message as a client received it.
type incoming struct {
	Topic          string            `json:"topic"`
	QueueID        int               `json:"queueId"`
	QueueOffset    int64             `json:"queueOffset"`
	PhysicalOffset int64             `json:"physicalOffset"`
	MsgID          string            `json:"msgId"`
	Body           []byte            `json:"body"`
	Tag            string            `json:"tag"`
	Keys           string            `json:"keys"`
	Times          int32             `json:"times"` // attempts before this one
	At             int64             `json:"at"`    // ms, when a push consumer got it
	BornTimestamp  int64             `json:"bornTimestamp"`
	StoreTimestamp int64             `json:"storeTimestamp"`
	Properties     map[string]string `json:"properties"`
}

func (d *driver) send(t *testing.T, namesrv, topic, mode string, messages []outgoing, extra map[string]any) []sent {
	t.Helper()
	coded := make([]outgoing, len(messages))
	for i, m := range messages {
		coded[i] = m
		coded[i].Body = base64.StdEncoding.EncodeToString([]byte(m.Body))
	}
	args := map[string]any{"namesrv": namesrv, "topic": topic, "mode": mode, "messages": coded}
	for k, v := range extra {
		args[k] = v
	}
	var results []sent
	d.call(t, "send", args, &results)
	for _, r := range results {
		if r.Status != "SEND_OK" {
			t.Fatalf("%s send to %s: status %s", mode, topic, r.Status)
		}
	}
	return results
}

// pull reads everything in a topic with the Java pull consumer.
func (d *driver) pull(t *testing.T, namesrv, topic, expression string) []incoming {
	t.Helper()
	var got []incoming
	args := map[string]any{"namesrv": namesrv, "topic": topic}
	if expression != "" {
		args["expression"] = expression
	}
	d.call(t, "pull", args, &got)
	return got
}

// brokers are the names of the brokers that a name server knows.
func (d *driver) brokers(namesrv string) ([]string, error) {
	var names []string
	err := d.try("brokers", map[string]any{"namesrv": namesrv}, &names)
	return names, err
}

// route holds the names of the brokers that have a topic; none when there is none.
func (d *driver) route(namesrv, topic string) ([]string, error) {
	var names []string
	err := d.try("route", map[string]any{"namesrv": namesrv, "topic": topic}, &names)
	return names, err
}

// admin runs one command of Apache's mqadmin and returns what it prints.
func (d *driver) admin(t *testing.T, args ...string) string {
	t.Helper()
	text, err := d.tryAdmin(args...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (d *driver) tryAdmin(args ...string) (string, error) {
	var text string
	err := d.try("admin", map[string]any{"args": args}, &text)
	return text, err
}
