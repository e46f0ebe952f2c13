package broker

import (
	"fmt"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/remoting"
)

// A client of a broadcast group that comes through a proxy has no offset: it is told once where it was, where the slowest of its group
// was, or where a new one begins, and goes on from there. What clients of the group have of their own is left alone.
func TestBroadcastThroughAProxy(t *testing.T) {
	cfg := testConfig(t.TempDir())
	ck := clock.NewManual(time.Now())
	cfg.Clock = ck
	r := start(t, cfg)
	r.createTopic("T", 1)
	for i := range 10 {
		r.send("T", 0, "", fmt.Sprint(i))
	}
	r.settle()
	pull := func(id string, offset int64) *remoting.Command {
		h := pullHeaderOf("G", "T", 0, offset)
		h.RequestSource, h.ProxyFrowardClientID, h.MaxMsgNums = forBroadcast, id, 4
		return r.call(remoting.ReqPullMessage, h, nil)
	}
	begin := func(id string) string {
		t.Helper()
		resp := pull(id, -1)
		if resp.Code != remoting.RespPullOffsetMoved || resp.Remark != "OFFSET_RESET" {
			t.Fatalf("%s: %s %s", id, remoting.ResponseName(resp.Code), resp.Remark)
		}
		return resp.Fields.String("nextBeginOffset")
	}
	if at := begin("a"); at != "0" {
		t.Errorf("a new group begins at %s", at)
	}
	if resp := pull("a", 0); resp.Code != 0 || resp.Fields.String("nextBeginOffset") != "4" {
		t.Errorf("%d %s %v", resp.Code, resp.Remark, resp.Fields)
	}
	pull("a", 4)
	if at := begin("a"); at != "4" { // the proxy was started again
		t.Errorf("a known client goes on at %s", at)
	}
	r.scanBroadcasts()
	if at, ok := r.offsets.Committed("T", "G@broadcast", 0); !ok || at != 4 {
		t.Errorf("the slowest of the group is at %d %v", at, ok)
	}
	if at := begin("b"); at != "4" {
		t.Errorf("a new client of the group begins at %s", at)
	}
	pull("b", 8)
	r.scanBroadcasts()
	if at, _ := r.offsets.Committed("T", "G@broadcast", 0); at != 4 {
		t.Errorf("the slowest of the group is at %d", at)
	}
	ck.Advance(3 * time.Minute)
	pull("b", 9)
	r.scanBroadcasts()
	if at, _ := r.offsets.Committed("T", "G@broadcast", 0); at != 9 {
		t.Errorf("with a gone the slowest is at %d", at)
	}
	if resp := r.call(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 2), nil); resp.Code != 0 {
		t.Errorf("an ordinary pull: %d %s", resp.Code, resp.Remark)
	}
	r.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("enableBroadcastOffsetStore=false\n"))
	if resp := pull("c", -1); resp.Remark == "OFFSET_RESET" {
		t.Error("switched off, and an offset is told")
	}
}

// A client that moves between a proxy and the broker goes on where it was; clients are bounded, and go.
func TestBroadcastOffsets(t *testing.T) {
	now := time.Now()
	b := newBroadcastOffsets()
	k := broadcastKey{"T", "G"}
	if _, moved := b.Moved(k, "a", 0, 5, false, now); moved {
		t.Error("a client of its own is moved")
	}
	b.Pulled(k, "a", 0, 5, false, now)
	b.Pulled(k, "a", 0, 3, false, now) // never back
	if at, moved := b.Moved(k, "a", 0, -1, true, now); !moved || at != 5 {
		t.Errorf("to the proxy: %d %v", at, moved)
	}
	b.Pulled(k, "a", 0, 7, true, now)
	if _, moved := b.Moved(k, "a", 0, 7, true, now); moved {
		t.Error("it is told twice")
	}
	if at, moved := b.Moved(k, "a", 0, 2, false, now); !moved || at != 7 {
		t.Errorf("back to the broker: %d %v", at, moved)
	}
	for i := range maxBroadcastClients + 10 {
		b.Pulled(k, fmt.Sprint("c", i), 0, 1, true, now)
	}
	if n := len(b.mu.groups[k]); n != maxBroadcastClients {
		t.Errorf("%d clients", n)
	}
	online := func(_, id string) bool { return id == "a" }
	if s := b.Scan(now.Add(150*time.Second), 120*time.Second, 300*time.Second, online); len(s) != 1 || s[0].next != 7 || b.mu.clients != 1 {
		t.Errorf("%v, %d clients", s, b.mu.clients)
	}
	b.Scan(now.Add(301*time.Second), 120*time.Second, 300*time.Second, online)
	if len(b.mu.groups) != 0 || b.mu.clients != 0 {
		t.Errorf("%d groups, %d clients are left", len(b.mu.groups), b.mu.clients)
	}
}
