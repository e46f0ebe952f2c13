package broker

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"mqx/broker/stats"
	"mqx/internal/fastjson"
	"mqx/internal/vfs"
	"mqx/remoting"
	"mqx/remoting/server"
)

// onMem is testConfig on a disk that can fail.
func onMem() (Config, *vfs.Mem) {
	m := vfs.NewMem()
	cfg := testConfig("/store")
	cfg.Store.FS = m
	return cfg, m
}

// A disk that cannot be read is told to the client that pulls, with the cause,
// instead of an answer that makes it ask again at once.
func TestPullFromADiskThatFails(t *testing.T) {
	cfg, disk := onMem()
	cfg.Store.HotWindowBytes = 1 // read, not mapped
	r := start(t, cfg)
	r.createTopic("T", 1)
	r.send("T", 0, "", "x")
	r.settle()
	var broken atomic.Bool
	disk.Inject(func(op vfs.Op) error {
		if broken.Load() && op.Kind == vfs.OpRead {
			return syscall.EIO
		}
		return nil
	})
	broken.Store(true)
	h := pullHeaderOf("G", "T", 0, 0)
	h.SysFlag |= pullSuspend
	h.SuspendTimeoutMillis = 60_000
	resp := r.call(remoting.ReqPullMessage, h, nil)
	if resp.Code != remoting.RespSystemError || !strings.Contains(resp.Remark, "input/output error") || !strings.Contains(resp.Remark, "/store/") {
		t.Errorf("%d %q", resp.Code, resp.Remark)
	}
	if r.hold.Len() != 0 {
		t.Error("the pull was parked")
	}
	broken.Store(false)
	if recs := records(t, r.ok(remoting.ReqPullMessage, h, nil).Body); len(recs) != 1 {
		t.Errorf("%d messages after the disk has recovered", len(recs))
	}
}

// A full disk refuses the write with path and cause, keeps what is there
// readable, and takes messages again when it has room.
func TestSendToAFullDisk(t *testing.T) {
	cfg, disk := onMem()
	r := start(t, cfg)
	r.createTopic("T", 1)
	r.send("T", 0, "", "kept")
	var full atomic.Bool
	disk.Inject(func(op vfs.Op) error {
		switch op.Kind {
		case vfs.OpAllocate, vfs.OpWrite, vfs.OpCreate:
			if full.Load() {
				return fmt.Errorf("%s %s: %w", op.Kind, op.Path, syscall.ENOSPC)
			}
		}
		return nil
	})
	full.Store(true)
	var refused *remoting.Command
	for range 40 { // what was allocated before may still take some
		resp := r.call(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, ""), make([]byte, 64<<10))
		if resp.Code != remoting.RespSuccess {
			refused = resp
			break
		}
	}
	if refused == nil || !strings.Contains(refused.Remark, "no space left") || !strings.Contains(refused.Remark, "/store/") {
		t.Fatalf("%v", refused)
	}
	resp := r.call(remoting.ReqUpdateAndCreateTopic, &remoting.CreateTopicHeader{
		Topic: "new", DefaultTopic: "TBW102", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: "SINGLE_TAG",
	}, nil)
	if resp.Code == remoting.RespSuccess || !strings.Contains(resp.Remark, "no space left") || !strings.Contains(resp.Remark, "topics.json") {
		t.Errorf("a topic that could not be saved: %d %q", resp.Code, resp.Remark)
	}
	if recs := records(t, r.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), nil).Body); len(recs) == 0 || string(recs[0].Body) != "kept" {
		t.Errorf("%d messages on the full disk", len(recs))
	}
	full.Store(false)
	waitFor(t, "the broker to write again", func() bool {
		return r.call(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, ""), []byte("again")).Code == remoting.RespSuccess
	})
}

// Groups that cannot be, and queues that are not there, leave nothing behind.
func TestNonsenseFillsNoTable(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 2)
	hb := consumerBeat("a", "no such group!", remoting.Clustering, "T")
	hb.Fingerprint = 7
	for range 2 {
		if resp := r.beat(r.c, hb); resp.Fields.String("IS_SUB_CHANGE") != "true" {
			t.Error("a group that is refused is said to be known")
		}
	}
	r.consumers.mu.RLock()
	if n := len(r.consumers.mu.fingerprints); n != 0 {
		t.Errorf("%d fingerprints", n)
	}
	r.consumers.mu.RUnlock()

	hb = remoting.HeartbeatData{ClientID: "a"}
	for i := range maxHeartbeatEntries + 1 {
		hb.ProducerDataSet = append(hb.ProducerDataSet, remoting.ProducerData{GroupName: fmt.Sprint("P", i)})
	}
	body, err := fastjson.Marshal(&hb)
	if err != nil {
		t.Fatal(err)
	}
	if resp := r.call(remoting.ReqHeartBeat, nil, body); resp.Code != remoting.RespSystemError || !strings.Contains(resp.Remark, "10000") {
		t.Errorf("a heartbeat of 10,001 groups: %d %s", resp.Code, resp.Remark)
	}

	r.groups.FindOrCreate("G")
	for _, q := range []int32{2, 2147483647} {
		resp := r.call(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{ConsumerGroup: "G", Topic: "T", QueueID: q, CommitOffset: 1}, nil)
		if resp.Code != remoting.RespInvalidParameter {
			t.Errorf("an offset of queue %d: %d %s", q, resp.Code, resp.Remark)
		}
	}
	resp := r.call(remoting.ReqCloneGroupOffset, &remoting.CloneGroupOffsetHeader{SrcGroup: "G", DestGroup: "x@y", Topic: "T"}, nil)
	if resp.Code != remoting.RespInvalidParameter {
		t.Errorf("offsets for a group with a separator in its name: %d", resp.Code)
	}
	resp = r.call(remoting.ReqSendMessageV2, &remoting.SendMessageHeader{
		ProducerGroup: "PG", Topic: "noqueues", DefaultTopic: "TBW102", DefaultTopicQueueNums: 0, QueueID: -1,
	}, []byte("x"))
	if resp.Code != remoting.RespInvalidParameter || r.store.MaxOffset("noqueues", 0) != 0 {
		t.Errorf("a message to a topic without queues: %d %s", resp.Code, resp.Remark)
	}
}

// A pull whose connection closes while it is being parked does not stay.
func TestPullsOfClosedConnectionsAreNotHeld(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	h := pullHeaderOf("G", "T", 0, 0)
	h.SysFlag |= pullSuspend
	h.SuspendTimeoutMillis = 600_000
	frame, err := remoting.NewRequest(remoting.ReqPullMessage, h).AppendFrame(nil, remoting.SerializeJSON)
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(frame); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	waitFor(t, "the connections to be gone", func() bool { return r.open() == 0 })
	waitFor(t, "the pulls to be dropped", func() bool { return r.classes.pull.Stats().Requests >= 300 && r.hold.Len() == 0 })
}

// A pull that asks to wait for ever waits; the time does not overflow.
func TestPullThatWaitsForEver(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	h := pullHeaderOf("G", "T", 0, 0)
	h.SysFlag |= pullSuspend
	h.SuspendTimeoutMillis = math.MaxInt64
	answered := make(chan *remoting.Command, 1)
	if err := r.c.Go(r.addr, remoting.NewRequest(remoting.ReqPullMessage, h), 20*time.Second, func(resp *remoting.Command, _ error) { answered <- resp }); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the pull to be parked", func() bool { return r.hold.Len() == 1 })
	r.send("T", 0, "", "x")
	if resp := <-answered; resp == nil || resp.Code != remoting.RespSuccess {
		t.Errorf("%v", resp)
	}
}

// A client that never reads does not hold up the stop for long, and the stop
// is an orderly one.
func TestStopWithASlowReader(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.ShutdownWait = time.Second
	r := start(t, cfg)
	r.createTopic("T", 1)
	body := strings.Repeat("x", 256<<10)
	for range 8 {
		r.send("T", 0, "", body)
	}
	r.settle()
	frame, err := remoting.NewRequest(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0)).AppendFrame(nil, remoting.SerializeJSON)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 200 {
		if _, err := c.Write(frame); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "unsent answers", func() bool { return r.classes.pull.Stats().Requests > 20 })
	r.stop() // checks that Run returns nil
}

// closingServer is a name server that takes a registration and closes.
type closingServer struct {
	calls  atomic.Int64
	closed func(addr string)
}

func (s *closingServer) Call(_ context.Context, addr string, req *remoting.Command) (*remoting.Command, error) {
	s.calls.Add(1)
	go s.closed(addr)
	return remoting.NewResponse(req, remoting.RespSuccess, ""), nil
}

// A name server that closes each connection is not registered at in a loop.
func TestClosingNameServerMakesNoBusyLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ns := &closingServer{}
		topics := newTopicTable(testRules, vfs.NewMem(), "/topics.json", time.Now, stats.NewSet(), quiet)
		settings := func() registerSettings {
			return registerSettings{period: 30 * time.Second, timeout: time.Second, force: true, permission: 6}
		}
		reg := newRegistrar(ns, func() identity { return identity{} }, topics, settings, time.Now, quiet)
		ns.closed = reg.Lost
		reg.SetServers([]string{"n:1"})
		time.Sleep(10500 * time.Millisecond)
		if n := ns.calls.Load(); n < 5 || n > 12 {
			t.Errorf("%d registrations in 10 s", n)
		}
		reg.Close()
	})
}

// Marking topics as ordered changes nothing else of them, and brings none back.
func TestSetOrderKeepsTopics(t *testing.T) {
	topics := newTopicTable(testRules, vfs.NewMem(), "/topics.json", time.Now, stats.NewSet(), quiet)
	c := remoting.NewTopicConfig("T")
	c.Attributes = map[string]string{"message.type": "FIFO"}
	done := make(chan error, 1)
	topics.Put([]remoting.TopicConfig{c}, func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	topics.SetOrder(map[string]bool{"T": true, "gone": true})
	topics.saver.Wait()
	if got := topics.Get("T"); !got.Order || got.Attributes["message.type"] != "FIFO" || !got.saved.Load() {
		t.Errorf("%+v", got.TopicConfig)
	}
	if topics.Get("gone") != nil {
		t.Error("a topic came into being")
	}
}

// What clients can cause is logged once in a while, not each time.
func TestQuietLog(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1000, 0)
	q := &quietLog{log: slog.New(slog.NewTextHandler(&out, nil)), now: func() time.Time { return now }}
	for range 100 {
		q.Warn("again")
	}
	now = now.Add(quietEvery)
	q.Warn("again")
	if n := strings.Count(out.String(), "msg=again"); n != 2 || !strings.Contains(out.String(), "not_logged=99") {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}

// open is the number of connections of the main port, the test's own left out.
func (r *running) open() (n int) {
	r.main.Conns(func(*server.Conn) bool { n++; return true })
	return n - 1
}

// The backup of topics.json may be older than the newest topic: its messages
// are served all the same, and the others keep their configuration (N010).
func TestTopicsThatTheBackupLacks(t *testing.T) {
	dir := t.TempDir()
	r := start(t, testConfig(dir))
	r.createTopic("old", 7)
	r.createTopic("new", 3)
	r.send("new", 1, "", "kept")
	r.settle()
	r.stop()
	file := filepath.Join(dir, "config", "topics.json")
	if err := os.WriteFile(file, []byte("\x00garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	backup, err := os.ReadFile(file + ".bak")
	if err != nil || bytes.Contains(backup, []byte(`"new"`)) || !bytes.Contains(backup, []byte(`"old"`)) {
		t.Fatalf("the backup is not the one before the last: %v", err)
	}
	r = start(t, testConfig(dir))
	if recs := records(t, r.ok(remoting.ReqPullMessage, pullHeaderOf("G", "new", 1, 0), nil).Body); len(recs) != 1 || string(recs[0].Body) != "kept" {
		t.Errorf("%+v", recs)
	}
	if tp := r.topics.Get("old"); tp == nil || tp.WriteQueueNums != 7 {
		t.Errorf("%+v", tp)
	}
	for q := range r.store.Queues() {
		if r.topics.Get(q.Topic) == nil {
			t.Errorf("topic %s has messages and is unknown", q.Topic)
		}
	}
}

// A file that says nonsense of a topic's queues makes no endless loops.
func TestImpossibleQueuesInTheFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := `{"topicConfigTable":{"T":{"topicName":"T","readQueueNums":-7,"writeQueueNums":2147483647,"perm":6}},"dataVersion":{}}`
	if err := os.WriteFile(filepath.Join(dir, "config", "topics.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, testConfig(dir))
	if tp := r.topics.Get("T"); tp.ReadQueueNums != 0 || tp.WriteQueueNums != maxQueues {
		t.Errorf("%+v", tp.TopicConfig)
	}
}
