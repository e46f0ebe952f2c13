package broker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mqx/internal/testkit"
	"mqx/remoting"
)

// The real kernel, once: a broker on a tmpfs of 24 MiB meets a full disk with
// its log, queues, index and tables, and goes on when there is room.
func TestRealFullDisk(t *testing.T) { testkit.OnTmpfs(t, "24m", fullDiskScenario) }

func fullDiskScenario(t *testing.T, dir string) {
	t.Helper()
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 14<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "store")
	cfg := testConfig(root)
	cfg.Store.CleanFileForciblyEnable = false // by default the oldest files go when the disk is nearly full
	r := start(t, cfg)
	r.createTopic("T", 1)
	acked := 0
	put := func(size int) *remoting.Command {
		body := fmt.Sprintf("%d ", acked) + strings.Repeat("x", size)
		resp := r.call(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, prop("KEYS", fmt.Sprint("k", acked))), []byte(body))
		if resp.Code == remoting.RespSuccess {
			if off, _, _ := resp.Fields.Int64("queueOffset"); off != int64(acked) {
				t.Fatalf("message %d was stored at %d", acked, off)
			}
			acked++
		}
		return resp
	}
	readAll := func(when string) {
		t.Helper()
		n := 0
		for n < acked {
			recs := records(t, r.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, int64(n)), nil).Body)
			for _, rec := range recs {
				if !strings.HasPrefix(string(rec.Body), fmt.Sprintf("%d ", n)) {
					t.Fatalf("%s: another message at offset %d", when, n)
				}
				n++
			}
		}
	}
	var refused *remoting.Command
	for refused == nil {
		if resp := put(100 << 10); resp.Code != remoting.RespSuccess {
			refused = resp
		}
	}
	if refused.Code != remoting.RespServiceNotAvailable || !strings.Contains(refused.Remark, root) {
		t.Errorf("the full disk: %s %q", remoting.ResponseName(refused.Code), refused.Remark)
	}
	fillDisk(t, filepath.Join(dir, "rest"))
	resp := r.call(remoting.ReqUpdateAndCreateTopic, &remoting.CreateTopicHeader{
		Topic: "new", DefaultTopic: "TBW102", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: "SINGLE_TAG",
	}, nil)
	if resp.Code != remoting.RespSystemError || !strings.Contains(resp.Remark, "topics.json") || !strings.Contains(resp.Remark, "no space left") {
		t.Errorf("a topic on the full disk: %s %q", remoting.ResponseName(resp.Code), resp.Remark)
	}
	readAll("while the disk is full")

	for _, f := range []string{ballast, filepath.Join(dir, "rest")} {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "messages to be taken again (N022)", func() bool { return put(1000).Code == remoting.RespSuccess })
	r.createTopic("new", 1)
	readAll("when there is room again")
	r.stop()
	r = start(t, cfg)
	readAll("after a restart")
	found := r.ok(remoting.ReqQueryMessage, &remoting.QueryMessageHeader{Topic: "T", Key: fmt.Sprint("k", acked-1), MaxNum: 4, EndTimestamp: 1 << 60}, nil)
	if recs := records(t, found.Body); len(recs) != 1 {
		t.Errorf("%d messages by key", len(recs))
	}
}

// fillDisk writes until nothing fits.
func fillDisk(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			size /= 16
		}
	}
}
