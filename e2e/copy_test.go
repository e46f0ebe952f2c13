package e2e

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mqx/message"
)

// crossing is a topic of every kind of message in one cluster, and another cluster that they go to.
type crossing struct {
	from, to string // name servers
	topic    string
	source   []incoming
	want     []string // the messages as plainMessages has them
}

// What is copied, or exported and imported, from one cluster to another is what was sent, whichever make each of them is: body, keys, tag,
// properties, unique id and born time, of messages that were compressed, large, sent in a batch, delayed or in a transaction, in the order
// of their queues. The counts add up. Broken off, by SIGKILL and by SIGINT, it goes on where it ended, and sends nothing twice.
func TestCopyBetweenClusters(t *testing.T) {
	t.Parallel()
	if reference() || os.Getenv("MQX_E2E_ALL") == "" {
		t.Skip("a cluster of Apache beside one of mqx: MQX_E2E_ALL=1")
	}
	apache, ours := apacheCluster(t, transactionLines...), startCluster(t, transactionLines...)
	for name, pair := range map[string][2]cluster{"to Apache": {ours, apache}, "from Apache": {apache, ours}} {
		t.Run(name, func(t *testing.T) {
			x := crossing{from: pair[0].namesrv, to: pair[1].namesrv, topic: "E2E_COPY_" + strings.ToUpper(strings.ReplaceAll(name, " ", "_"))}
			createTopic(t, x.from, x.topic, 3)
			x.sendAllKinds(t)
			t.Run("copy", x.copies)
			t.Run("export and import", x.exportsAndImports)
		})
	}
	for name, c := range map[string]cluster{"replay on Apache": apache, "replay on mqx": ours} {
		t.Run(name, func(t *testing.T) { replays(t, c) })
	}
}

func (x *crossing) copies(t *testing.T) {
	createTopic(t, x.to, x.topic, 2)
	args := []string{"admin", "message", "copy", x.topic, "--target-namesrv", x.to, "--target-topic"}
	rows := mqxRows(t, x.from, append(slices.Clone(args), x.topic, "--yes")...)
	if n := copied(t, rows); n["read"] != float64(len(x.want)) || n["sent"] != n["read"] || n["others"] != 0 {
		t.Errorf("copied %v of %d", n, len(x.want))
	}
	x.arrived(t, x.topic)
	// Some of them, and only those.
	createTopic(t, x.to, x.topic+"_SOME", 2)
	rows = mqxRows(t, x.from, append(slices.Clone(args), x.topic+"_SOME", "--where", "kind = 'sync' AND own < 4", "--yes")...)
	if n := copied(t, rows); n["read"] != float64(len(x.want)) || n["sent"] != 4 || n["others"] != n["read"]-4 {
		t.Errorf("copied %v where 4 of %d are meant", n, len(x.want))
	}
	if got := sharedDriver(t).pull(t, x.to, x.topic+"_SOME", ""); len(got) != 4 {
		t.Errorf("%d messages where 4 were meant", len(got))
	}
	again := x.topic + "_AGAIN"
	createTopic(t, x.to, again, 2)
	brokenOff(t, x.from, x.to, again, len(x.want), append(args, again)...)
	x.arrived(t, again)
}

func (x *crossing) exportsAndImports(t *testing.T) {
	file := filepath.Join(testDir(t, "export"), "lines")
	rows := mqxRows(t, x.from, "admin", "message", "export", x.topic, "-O", file)
	if len(rows) != 1 || rows[0]["read"] != float64(len(x.want)) || rows[0]["written"] != rows[0]["read"] || rows[0]["unreadable"] != 0.0 {
		t.Errorf("exported %v of %d", rows, len(x.want))
	}
	target, again := x.topic+"_LINES", x.topic+"_LINES_AGAIN"
	createTopic(t, x.to, target, 3)
	rows = mqxRows(t, x.to, "admin", "message", "import", target, file, "--yes")
	if n := copied(t, rows); n["read"] != float64(len(x.want)) || n["sent"] != n["read"] {
		t.Errorf("imported %v of %d", n, len(x.want))
	}
	x.arrived(t, target)
	createTopic(t, x.to, again, 3)
	brokenOff(t, x.to, x.to, again, len(x.want), "admin", "message", "import", again, file)
	x.arrived(t, again)
}

// arrived waits for the messages in a topic of the other cluster and compares them, and the order within each queue they came from.
func (x *crossing) arrived(t *testing.T, topic string) {
	t.Helper()
	var got []incoming
	waitFor(t, arrival, "the messages in "+topic, func() (bool, string) {
		got = sharedDriver(t).pull(t, x.to, topic, "")
		is := plainMessages(got)
		return slices.Equal(is, x.want), fmt.Sprintf("%d of %d:\n%s\n---\n%s", len(is), len(x.want), strings.Join(is, "\n"), strings.Join(x.want, "\n"))
	})
	place := map[string]incoming{}
	for _, m := range got {
		place[m.MsgID] = m
	}
	last := map[int]incoming{} // by source queue
	for _, m := range byQueue(x.source) {
		is, before := place[m.MsgID], last[m.QueueID]
		if before.MsgID != "" && (is.QueueID != before.QueueID || is.QueueOffset <= before.QueueOffset) {
			t.Errorf("%s: message %s of queue %d is at %d:%d behind the one at %d:%d", topic, m.MsgID, m.QueueID, is.QueueID, is.QueueOffset, before.QueueID, before.QueueOffset)
		}
		last[m.QueueID] = is
	}
}

// sendAllKinds sends messages of every kind and keeps what they are.
func (x *crossing) sendAllKinds(t *testing.T) {
	t.Helper()
	d := sharedDriver(t)
	kinds := map[string][]outgoing{"sync": numbered("plain", 60), "batch": numbered("batch", 10), "large": numbered("large", 3), "delayed": numbered("delayed", 2)}
	for kind, ms := range kinds {
		for i := range ms {
			ms[i].Tag, ms[i].Keys = "paid", fmt.Sprintf("%s-%d other", kind, i)
			ms[i].Properties = map[string]string{"kind": kind, "own": fmt.Sprint(i), "名": "值 with spaces = and ; signs"}
		}
	}
	large := kinds["large"]
	large[0].Body += strings.Repeat("compress me, please 压缩 ", 2000)
	random := rand.NewChaCha8([32]byte{1})
	bytes := make([]byte, 400<<10)
	_, _ = random.Read(bytes)
	large[1].Body = string(bytes)
	for i := range kinds["delayed"] {
		kinds["delayed"][i].System = map[string]string{"DELAY": "1"}
	}
	n := 0
	for kind, ms := range kinds {
		mode := "sync"
		if kind == "batch" {
			mode = kind
		}
		d.send(t, x.from, x.topic, mode, ms, nil)
		n += len(ms)
	}
	javaTransactions(t, x.from, "GID_copy_tx", x.topic, []string{"c/c one", "r/r two", "u/c three"})
	waitFor(t, 90*time.Second, "all to be there", func() (bool, string) {
		x.source = d.pull(t, x.from, x.topic, "")
		return len(x.source) == n+2, fmt.Sprintf("%d of %d", len(x.source), n+2)
	})
	x.want = plainMessages(x.source)
}

// plainMessages are messages without what belongs to one send, sorted.
func plainMessages(ms []incoming) []string {
	var out []string
	for _, m := range ms {
		var props []string
		for k, v := range m.Properties {
			if !message.IsOwnProperty(k) || k == message.PropUniqKey {
				props = append(props, k+"="+v)
			}
		}
		slices.Sort(props)
		text := fmt.Sprintf("%x", m.Body)
		if len(m.Body) > 64 {
			h := fnv.New64a()
			_, _ = h.Write(m.Body)
			text = fmt.Sprintf("%d bytes, %x", len(m.Body), h.Sum64())
		}
		out = append(out, fmt.Sprintf("%s tag=%s keys=%s born=%d %v %s", m.MsgID, m.Tag, m.Keys, m.BornTimestamp, props, text))
	}
	slices.Sort(out)
	return out
}

// copied adds up the counts of a copy.
func copied(t *testing.T, rows []map[string]any) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, r := range rows {
		after, ok := r["after"].(map[string]any)
		if !ok {
			t.Fatalf("no counts: %v", r)
		}
		for k, v := range after {
			out[k] += v.(float64)
		}
	}
	if out["read"] != out["sent"]+out["others"]+out["already"]+out["refused"]+out["failed"] {
		t.Errorf("the counts do not add up: %v", out)
	}
	return out
}

// brokenOff ends a copy of n messages to a topic twice, by SIGKILL and by SIGINT, each time goes on with its state, and looks for messages
// that came twice.
func brokenOff(t *testing.T, namesrv, to, target string, n int, args ...string) {
	t.Helper()
	state := filepath.Join(testDir(t, "state"), "copy.json")
	args = append(slices.Clone(args), "--state", state, "--yes")
	there := func() int { return len(mqxConsume(t, to, target)) }
	for _, end := range []struct {
		sig  syscall.Signal
		at   int // so many are there
		code int
	}{{syscall.SIGKILL, 5, -1}, {syscall.SIGINT, n / 2, 130}} {
		cmd := exec.Command(mqxBinary, append(slices.Clone(args), "--rate", "20", "-n", namesrv)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, arrival, "a part of the copy", func() (bool, string) {
			_, err := os.Stat(state)
			some := there()
			return err == nil && some >= end.at, fmt.Sprint(some, err)
		})
		if err := cmd.Process.Signal(end.sig); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != end.code {
			t.Errorf("a copy that got %v ended with %v", end.sig, err)
		}
		if some := there(); some >= n {
			t.Fatalf("all %d messages were there already", some)
		}
	}
	counts := copied(t, mqxRows(t, namesrv, args...))
	if counts["read"] != float64(n) || counts["sent"]+counts["already"] != float64(n) {
		t.Errorf("gone on: %v of %d", counts, n)
	}
	waitFor(t, arrival, "the rest", func() (bool, string) { some := there(); return some >= n, fmt.Sprintf("%d of %d", some, n) })
	ids := map[string]int{}
	for _, m := range mqxConsume(t, to, target) {
		if ids[m.MsgID]++; ids[m.MsgID] == 2 {
			t.Errorf("message %s was sent twice", m.MsgID)
		}
	}
	if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state of a copy that is whole: %v", err)
	}
}

// replays gives what a group has consumed to it once more: it gets each message once, as it was, and another group none; also where the
// replay is broken off and gone on with.
func replays(t *testing.T, c cluster) {
	const topic = "E2E_REPLAY"
	name := "GID_replay_" + strings.NewReplacer(":", "_", ".", "_").Replace(c.namesrv) // of clients that one process has for both clusters
	createTopic(t, c.namesrv, topic, 3)
	out := numbered("replay", 50)
	for i := range out {
		out[i].Tag, out[i].Keys, out[i].Properties = "paid", fmt.Sprintf("order-%d", i), map[string]string{"own": fmt.Sprint(i)}
	}
	sharedDriver(t).send(t, c.namesrv, topic, "sync", out, nil)
	got := map[string]func() []incoming{
		"java": pushOf(t, sharedDriver(t), c, topic, name+"_java", nil),
		"go":   goPushConsumer(t, goSpec{Namesrv: c.namesrv, Group: name + "_go", Instance: name, Topic: topic}).received,
	}
	for client, received := range got {
		waitFor(t, arrival, "all messages at first for "+client, func() (bool, string) { why := missing(out, received()); return why == "", why })
	}
	for client, other := range map[string]string{"java": "go", "go": "java"} {
		t.Run(client, func(t *testing.T) {
			group := name + "_" + client
			first, others := plainMessages(got[client]()[:len(out)]), len(got[other]())
			seen := len(got[client]())
			brokenOff(t, c.namesrv, c.namesrv, "%RETRY%"+group, len(out), "admin", "message", "replay", topic, "-g", group)
			waitFor(t, arrival, "the replay", func() (bool, string) {
				n := len(got[client]()) - seen
				return n >= len(out), fmt.Sprintf("%d of %d", n, len(out))
			})
			second := got[client]()[seen:]
			if is := plainMessages(second); !slices.Equal(is, first) {
				t.Errorf("replayed:\n%s\n---\n%s", strings.Join(is, "\n"), strings.Join(first, "\n"))
			}
			for _, m := range second {
				if m.Times != 0 || client == "java" && m.Topic != topic {
					t.Errorf("replayed: %+v", m)
				}
			}
			if n := len(got[other]()); n != others {
				t.Errorf("the other group got %d messages of the replay", n-others)
			}
		})
	}
}
