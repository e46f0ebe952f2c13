package broker

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mqx/remoting"
	"mqx/store"
)

// A client whose connection is closed because nothing comes on it is told by name.
func TestIdleClientsAreTold(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.IdleTimeout = time.Second
	r := start(t, cfg)
	body, err := json.Marshal(map[string]any{"clientID": "10.0.0.7@4711", "producerDataSet": []map[string]string{{"groupName": "p"}}, "consumerDataSet": []any{}})
	if err != nil {
		t.Fatal(err)
	}
	r.ok(remoting.ReqHeartBeat, nil, body)
	if got := r.runtimeInfo(time.Now())["mqxIdleClosed"]; got != "" {
		t.Errorf("before: %q", got)
	}
	waitFor(t, "the connection to be closed as idle", func() bool { return r.runtimeInfo(time.Now())["mqxIdleClosed"] != "" })
	got := r.runtimeInfo(time.Now())["mqxIdleClosed"]
	if !strings.HasPrefix(got, "10.0.0.7@4711 from 127.0.0.1:") || !strings.Contains(got, ", last heartbeat ") {
		t.Errorf("%q", got)
	}
	if got := r.runtimeInfo(time.Now().Add(2 * time.Hour))["mqxIdleClosed"]; got != "" {
		t.Errorf("after two hours: %q", got)
	}
}

// N131: what was refused is counted by the stage that refused it.
func TestRefusalsAreCountedByStage(t *testing.T) {
	var d diagnosis
	for _, s := range []store.Status{store.PutOK, store.OSPageCacheBusy, store.OSPageCacheBusy, store.FlushDiskTimeout, store.CreateFileFailed, store.MessageIllegal} {
		d.refused(s)
	}
	if d.locked.Load() != 2 || d.flushed.Load() != 1 || d.appended.Load() != 1 {
		t.Errorf("locked %d, flushed %d, appended %d", d.locked.Load(), d.flushed.Load(), d.appended.Load())
	}
	for i := range 2 * maxIdle {
		d.idleClosed(idleClient{at: time.Unix(int64(i), 0), id: "c", peer: "p", every: time.Minute})
	}
	if text := d.idleText(time.Unix(2*maxIdle, 0)); strings.Count(text, "; ") != maxIdle-1 || !strings.Contains(text, "one every 1m0s") {
		t.Errorf("%q", text)
	}
}
