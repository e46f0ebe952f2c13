package broker

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"mqx/internal/testkit"
	"mqx/remoting"
	"mqx/store"
)

// The file system meets an error and makes itself read-only under a running broker, as ext4 does when the disk below
// fails: sends are refused with the path and the cause, what was answered is served, and is there when the file
// system has been mended.
func TestReadOnlyRemount(t *testing.T) {
	v := testkit.NewExt4(t, "96M")
	root := filepath.Join(v.Dir, "store")
	cfg := testConfig(root)
	cfg.Store.FlushDiskType = store.SyncFlush
	r := start(t, cfg)
	r.createTopic("T", 1)
	send := func(n int) *remoting.Command {
		return r.call(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, prop("KEYS", fmt.Sprint("k", n))), fmt.Appendf(nil, "body %d", n))
	}
	const acked = 50
	for n := range acked {
		if resp := send(n); resp.Code != remoting.RespSuccess {
			t.Fatalf("message %d: %s %q", n, remoting.ResponseName(resp.Code), resp.Remark)
		}
	}
	readAll := func(when string) {
		t.Helper()
		for n := 0; n < acked; {
			for _, rec := range records(t, r.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, int64(n)), nil).Body) {
				if string(rec.Body) != fmt.Sprint("body ", n) {
					t.Fatalf("%s: %q at offset %d", when, rec.Body, n)
				}
				n++
			}
		}
	}
	v.Break(t)
	resp := send(acked)
	if resp.Code == remoting.RespSuccess || !strings.Contains(resp.Remark, root) || !strings.Contains(resp.Remark, "read-only file system") {
		t.Errorf("a send to a read-only volume: %s %q", remoting.ResponseName(resp.Code), resp.Remark)
	}
	readAll("while the volume is read-only")
	create := r.call(remoting.ReqUpdateAndCreateTopic, &remoting.CreateTopicHeader{
		Topic: "new", DefaultTopic: "TBW102", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: "SINGLE_TAG",
	}, nil)
	if create.Code != remoting.RespSystemError || !strings.Contains(create.Remark, "topics.json") {
		t.Errorf("a topic on a read-only volume: %s %q", remoting.ResponseName(create.Code), create.Remark)
	}
	if err := r.shutdown(); err == nil || !strings.Contains(err.Error(), root) {
		t.Errorf("the stop, which could not save what is to be saved: %v", err)
	}
	v.Mend(t)
	r = start(t, cfg)
	readAll("when the volume has been mended")
	if resp := send(acked); resp.Code != remoting.RespSuccess {
		t.Errorf("a send then: %s %q", remoting.ResponseName(resp.Code), resp.Remark)
	}
}
