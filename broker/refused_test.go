package broker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mqx/remoting"
)

// What is not served says so by its number and tells why.
func TestRefusedRequests(t *testing.T) {
	dir := t.TempDir()
	r := start(t, testConfig(dir))
	for code, why := range refusedReasons {
		resp := r.call(code, nil, nil)
		if resp.Code != remoting.RespRequestCodeNotSupported || !strings.HasSuffix(resp.Remark, why) {
			t.Errorf("%s: %s %s", remoting.RequestName(code), remoting.ResponseName(resp.Code), resp.Remark)
		}
	}
	// A field that nobody here would honour is refused as well.
	r.createTopic("T", 1)
	pull := pullHeaderOf("G", "T", 0, 0)
	pull.LiteTopic = "lite"
	search := &remoting.SearchOffsetHeader{Topic: "T", LiteTopic: "lite", Timestamp: 1}
	for code, header := range map[int32]any{remoting.ReqPullMessage: pull, remoting.ReqLitePullMessage: pull, remoting.ReqSearchOffsetByTimestamp: search} {
		if resp := r.call(code, header, nil); resp.Code != remoting.RespInvalidParameter || !strings.Contains(resp.Remark, "liteTopic") {
			t.Errorf("%s: %s %s", remoting.RequestName(code), remoting.ResponseName(resp.Code), resp.Remark)
		}
	}
	r.ok(remoting.ReqPopRollback, nil, nil)
	if err := os.MkdirAll(filepath.Join(dir, "kvStore", "pop"), 0o755); err != nil {
		t.Fatal(err)
	}
	if resp := r.call(remoting.ReqPopRollback, nil, nil); resp.Code != remoting.RespSystemError || !strings.Contains(resp.Remark, "kvStore") {
		t.Errorf("with records in RocksDB: %s %s", remoting.ResponseName(resp.Code), resp.Remark)
	}
}
