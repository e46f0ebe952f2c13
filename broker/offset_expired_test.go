package broker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mqx/remoting"
)

// N035: the files under a slow group expire. The queue's minimum moves with them, and what the broker tells of the group can only give a
// lag of what is still there: its own offset stays, beside the minimum.
func TestQueueExpiresUnderASlowGroup(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Store.CommitLogFileBytes = 64 << 10
	cfg.Store.ConsumeQueueFileBytes = 20 * 20
	r := start(t, cfg)
	r.createTopic("T", 1)
	body := strings.Repeat("x", 2000)
	for range 120 {
		r.send("T", 0, "", body)
	}
	r.settle()
	r.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), nil)
	r.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{ConsumerGroup: "G", Topic: "T", CommitOffset: 3}, nil)
	dir, old := filepath.Join(cfg.Store.RootDir, "commitlog"), time.Now().Add(-100*time.Hour)
	for _, name := range fileNames(t, dir) {
		must(t, os.Chtimes(filepath.Join(dir, name), old, old))
	}
	r.store.DeleteExpiredNow()
	waitFor(t, "the minimum", func() bool { return r.store.MinOffset("T", 0) > 3 })
	low, high := r.store.MinOffset("T", 0), r.store.MaxOffset("T", 0)
	if text := r.ok(remoting.ReqGetMinOffset, &remoting.GetMinOffsetHeader{Topic: "T"}, nil).Fields.String("offset"); text == "0" {
		t.Error("the minimum is told as 0")
	}
	resp := r.ok(remoting.ReqGetConsumeStats, &remoting.GetConsumeStatsHeader{ConsumerGroup: "G", Topic: "T"}, nil)
	raw := string(resp.Body)
	if !strings.Contains(raw, `"brokerOffset":120`) || !strings.Contains(raw, `"consumerOffset":3`) {
		t.Errorf("the group: %s", raw)
	}
	if behind := high - max(3, low); behind <= 0 || behind >= 117 {
		t.Errorf("%d behind", behind)
	}
	pull := r.call(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 3), nil)
	if pull.Code != remoting.RespPullOffsetMoved || pull.Fields.String("nextBeginOffset") == "3" {
		t.Errorf("a pull of what is gone: %d %s %v", pull.Code, pull.Remark, pull.Fields)
	}
}
