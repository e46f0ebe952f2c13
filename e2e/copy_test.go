package e2e

import (
	"errors"
	"fmt"
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

// What is copied from one cluster to another is what was sent, whichever make each of them is: body, keys, tag, properties,
// unique id and born time, of messages that were compressed, large, sent in a batch, delayed or in a transaction. The
// counts add up. Broken off by a signal it goes on where it ended, and sends nothing twice.
func TestCopyBetweenClusters(t *testing.T) {
	t.Parallel()
	if reference() || os.Getenv("MQX_E2E_ALL") == "" {
		t.Skip("a cluster of Apache beside one of mqx: MQX_E2E_ALL=1")
	}
	ns, br := freePort(t), freePort(t)
	apacheNameserver(t, ns).cleanup(t)
	apacheBroker(t, brokerSpec{port: br, namesrv: loopback(ns), store: filepath.Join(testDir(t, "copy"), "store"), extra: transactionLines}).cleanup(t)
	apache, ours := cluster{namesrv: loopback(ns), broker: loopback(br)}, startCluster(t, transactionLines...)
	waitRegistered(t, apache.namesrv)
	for name, pair := range map[string][2]cluster{"to Apache": {ours, apache}, "from Apache": {apache, ours}} {
		t.Run(name, func(t *testing.T) {
			topic := "E2E_COPY_" + strings.ToUpper(strings.ReplaceAll(name, " ", "_"))
			from, to := pair[0].namesrv, pair[1].namesrv
			createTopic(t, from, topic, 3)
			createTopic(t, to, topic, 2)
			want := sendAllKinds(t, from, topic)
			rows := mqxRows(t, from, "admin", "message", "copy", topic, "--target-topic", topic, "--target-namesrv", to, "--yes")
			if n := copied(t, rows); n["read"] != float64(len(want)) || n["sent"] != n["read"] || n["others"] != 0 {
				t.Errorf("copied %v of %d", n, len(want))
			}
			waitFor(t, arrival, "the copies", func() (bool, string) {
				is := plainMessages(sharedDriver(t).pull(t, to, topic, ""))
				return slices.Equal(is, want), fmt.Sprintf("%d of %d:\n%s\n---\n%s", len(is), len(want), strings.Join(is, "\n"), strings.Join(want, "\n"))
			})
			rows = mqxRows(t, from, "admin", "message", "copy", topic, "--target-topic", topic, "--target-namesrv", to, "--where", "kind = 'sync' AND own < 4", "--dry-run")
			if len(rows) != 3 {
				t.Errorf("a plan: %v", rows)
			}
			brokenOff(t, from, to, topic, len(want))
		})
	}
}

// sendAllKinds sends messages of every kind and returns what they are.
func sendAllKinds(t *testing.T, namesrv, topic string) []string {
	t.Helper()
	d := sharedDriver(t)
	kinds := map[string][]outgoing{"sync": numbered("plain", 20), "batch": numbered("batch", 10), "large": numbered("large", 3), "delayed": numbered("delayed", 2)}
	random := rand.NewChaCha8([32]byte{1})
	for kind, ms := range kinds {
		for i := range ms {
			ms[i].Tag, ms[i].Keys = "paid", fmt.Sprintf("%s-%d other", kind, i)
			ms[i].Properties = map[string]string{"kind": kind, "own": fmt.Sprint(i), "名": "值 with spaces = and ; signs", "empty-ish": " "}
		}
	}
	large := kinds["large"]
	large[0].Body += strings.Repeat("compress me, please 压缩 ", 2000)
	bytes := make([]byte, 400<<10)
	_, _ = random.Read(bytes)
	large[1].Body = string(bytes)
	kinds["delayed"][0].System = map[string]string{"DELAY": "1"}
	kinds["delayed"][1].System = map[string]string{"DELAY": "1"}
	n := 0
	for kind, ms := range kinds {
		mode := "sync"
		if kind == "batch" {
			mode = kind
		}
		d.send(t, namesrv, topic, mode, ms, nil)
		n += len(ms)
	}
	javaTransactions(t, namesrv, "GID_copy_tx", topic, []string{"c/c one", "r/r two", "u/c three"})
	var got []incoming
	waitFor(t, 90*time.Second, "all to be there", func() (bool, string) {
		got = d.pull(t, namesrv, topic, "")
		return len(got) == n+2, fmt.Sprintf("%d of %d", len(got), n+2)
	})
	return plainMessages(got)
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
		body := m.Body
		text := fmt.Sprintf("%x", body)
		if len(body) > 64 {
			text = fmt.Sprintf("%d bytes, %x", len(body), sum(body))
		}
		out = append(out, fmt.Sprintf("%s tag=%s keys=%s born=%d %v %s", m.MsgID, m.Tag, m.Keys, m.BornTimestamp, props, text))
	}
	slices.Sort(out)
	return out
}

func sum(data []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range data {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
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

// brokenOff ends a copy by a signal and goes on with its state.
func brokenOff(t *testing.T, from, to, topic string, n int) {
	t.Helper()
	target := topic + "_AGAIN"
	createTopic(t, to, target, 2)
	state := filepath.Join(testDir(t, "state"), "copy.json")
	args := []string{"admin", "message", "copy", topic, "--target-topic", target, "--target-namesrv", to, "--state", state, "--yes"}
	cmd := exec.Command(mqxBinary, append(slices.Clone(args), "--rate", "10", "-n", from)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, arrival, "some copies", func() (bool, string) {
		some := len(mqxConsume(t, to, target))
		return some >= 5, fmt.Sprint(some)
	})
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("an interrupted copy ended with %v", err)
	}
	counts := copied(t, mqxRows(t, from, args...))
	if counts["read"] != float64(n) || counts["sent"] != float64(n) {
		t.Errorf("gone on: %v of %d", counts, n)
	}
	waitFor(t, arrival, "the rest", func() (bool, string) {
		got := mqxConsume(t, to, target)
		return len(got) == n, fmt.Sprintf("%d of %d", len(got), n)
	})
	ids := map[string]bool{}
	for _, m := range mqxConsume(t, to, target) {
		if ids[m.MsgID] {
			t.Errorf("message %s was sent twice", m.MsgID)
		}
		ids[m.MsgID] = true
	}
	if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state of a copy that is whole: %v", err)
	}
}
