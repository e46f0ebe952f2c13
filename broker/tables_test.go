package broker

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/clock"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
)

var quiet = slog.New(slog.DiscardHandler)

func configDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "config")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func newTestGroups(t *testing.T, path string, auto bool) *groupTable {
	t.Helper()
	g := newGroupTable(func() groupRules { return groupRules{AutoCreate: auto, CreateSysGroup: true} }, vfs.OS, path, fixedNow, quiet)
	if err := g.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.saver.Wait)
	return g
}

func TestBuiltinGroups(t *testing.T) {
	path := filepath.Join(configDir(t), "subscriptionGroup.json")
	g := newTestGroups(t, path, true)
	want := []string{
		"CID_ONS-HTTP-PROXY", "CID_ONSAPI_OWNER", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_PULL", "CID_RMQ_SYS_TRANS",
		"FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "TOOLS_CONSUMER",
	}
	if d := cmp.Diff(want, g.Names()); d != "" {
		t.Error(d)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the built-in groups are not on disk: %v", err)
	}
}

func TestGroupsAreCreatedOnUse(t *testing.T) {
	path := filepath.Join(configDir(t), "subscriptionGroup.json")
	g := newTestGroups(t, path, true)
	for name, ok := range map[string]bool{
		"G": true, strings.Repeat("g", 120): true, strings.Repeat("g", 121): false, "bad group": false, "": false,
	} {
		if got := g.FindOrCreate(name); (got != nil) != ok {
			t.Errorf("%q: created %v, want %v", name, got != nil, ok)
		}
	}
	g.saver.Wait()
	again := newTestGroups(t, path, false)
	if again.Get("G") == nil || again.All().DataVersion.Counter != 2 {
		t.Errorf("G is not on disk, or the version is wrong: %+v", again.All().DataVersion)
	}
	if again.FindOrCreate("H") != nil {
		t.Error("H was created although groups are not")
	}
	if again.FindOrCreate("CID_RMQ_SYS_X") == nil {
		t.Error("a system group is created all the same")
	}
}

func TestGroupPutDeleteForbid(t *testing.T) {
	path := filepath.Join(configDir(t), "subscriptionGroup.json")
	g := newTestGroups(t, path, true)
	done := make(chan error, 1)
	c := remoting.NewSubscriptionGroupConfig("G")
	c.RetryMaxTimes = 5
	if err := g.Put([]remoting.SubscriptionGroupConfig{c}, func(err error) { done <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	bad := remoting.NewSubscriptionGroupConfig("bad group")
	if err := g.Put([]remoting.SubscriptionGroupConfig{remoting.NewSubscriptionGroupConfig("H"), bad}, func(error) { t.Error("stored") }); err == nil {
		t.Error("a bad name was taken")
	}
	if g.Get("H") != nil {
		t.Error("half of a refused list was taken")
	}
	lite := remoting.NewSubscriptionGroupConfig("L")
	lite.Attributes = map[string]string{"+lite.bind.topic": "T"}
	if err := g.Put([]remoting.SubscriptionGroupConfig{lite}, func(error) {}); err == nil || asRefused(err).Code != remoting.RespInvalidParameter {
		t.Errorf("a lite group: %v", err)
	}
	g.SetForbidden("G", "T", true, func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !g.Forbidden([]byte("G"), []byte("T")) || g.Forbidden([]byte("G"), []byte("U")) {
		t.Error("what is forbidden is wrong")
	}
	again := newTestGroups(t, path, true)
	if again.Get("G").RetryMaxTimes != 5 || !again.Forbidden([]byte("G"), []byte("T")) {
		t.Error("the group was not loaded as it was saved")
	}
	g.SetForbidden("G", "T", false, func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if g.Forbidden([]byte("G"), []byte("T")) || len(g.All().ForbiddenTable) != 0 {
		t.Error("still forbidden")
	}
	if !g.Delete("G", func(err error) { done <- err }) {
		t.Error("G was not there")
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if newTestGroups(t, path, true).Get("G") != nil {
		t.Error("G came back")
	}
}

func newTestOffsets(t *testing.T, path string) *offsetTable {
	t.Helper()
	o := newOffsetTable(vfs.OS, path, fixedNow, 3, quiet)
	if err := o.Load(); err != nil {
		t.Fatal(err)
	}
	return o
}

// What a file or a request does not say of a group or topic is what Apache's classes begin with, not zero.
func TestWhatIsNotSaid(t *testing.T) {
	cfg := testConfig(t.TempDir())
	dir := filepath.Join(cfg.Store.RootDir, "config")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"subscriptionGroup.json": `{"dataVersion":{"counter":1,"timestamp":7},"subscriptionGroupTable":{"G49":{"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":false,
			"consumeFromMinEnable":true,"groupName":"G49","retryMaxTimes":3,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}}}`,
		"topics.json": `{"dataVersion":{"counter":1,"timestamp":7},"topicConfigTable":{"T49":{"topicName":"T49","writeQueueNums":4}}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, cfg)
	ask := func(code int32, body string) {
		t.Helper()
		r.ok(code, nil, []byte(body))
	}
	ask(remoting.ReqUpdateAndCreateSubscriptionGroup, `{"groupName":"A"}`)
	ask(remoting.ReqUpdateAndCreateSubscriptionGroupList, `{"groupConfigList":[{"groupName":"B"},{"groupName":"C","retryMaxTimes":0,"groupRetryPolicy":{"type":"EXPONENTIAL","exponentialRetryPolicy":{"max":7}}}]}`)
	ask(remoting.ReqUpdateAndCreateTopicList, `{"topicConfigList":[{"topicName":"X"},{"topicName":"Y","readQueueNums":2,"perm":4}]}`)
	group := func(name string, change func(*remoting.SubscriptionGroupConfig)) {
		t.Helper()
		want := remoting.NewSubscriptionGroupConfig(name)
		change(&want)
		if d := cmp.Diff(want, r.groups.Get(name).SubscriptionGroupConfig); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	group("A", func(*remoting.SubscriptionGroupConfig) {})
	group("B", func(*remoting.SubscriptionGroupConfig) {})
	group("C", func(c *remoting.SubscriptionGroupConfig) {
		c.RetryMaxTimes = 0
		c.GroupRetryPolicy = remoting.GroupRetryPolicy{Type: remoting.RetryExponential, ExponentialRetryPolicy: &remoting.ExponentialRetryPolicy{Initial: 5000, Max: 7, Multiplier: 2}}
	})
	group("G49", func(c *remoting.SubscriptionGroupConfig) { c.RetryMaxTimes, c.ConsumeEnable = 3, false })
	topic := func(name string, change func(*remoting.TopicConfig)) {
		t.Helper()
		want := remoting.NewTopicConfig(name)
		change(&want)
		if d := cmp.Diff(want, r.topics.Get(name).TopicConfig); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	topic("X", func(*remoting.TopicConfig) {})
	topic("Y", func(c *remoting.TopicConfig) { c.ReadQueueNums, c.Perm = 2, 4 })
	topic("T49", func(c *remoting.TopicConfig) { c.WriteQueueNums = 4 })
	resp := r.call(remoting.ReqUpdateAndCreateSubscriptionGroup, nil, []byte(`{"groupName":"A","groupRetryPolicy":{"type":"FOO"}}`))
	if resp.Code != remoting.RespInvalidParameter || !strings.Contains(resp.Remark, "groupRetryPolicy.type") {
		t.Errorf("a policy of an unknown kind: %d %q", resp.Code, resp.Remark)
	}
}

func TestOffsets(t *testing.T) {
	path := filepath.Join(configDir(t), "consumerOffset.json")
	o := newTestOffsets(t, path)
	topic, grp := []byte("T"), []byte("G")
	if _, ok := o.Query(topic, grp, 0); ok {
		t.Error("an offset exists before a commit")
	}
	if old, _ := o.Commit(topic, grp, 0, 10); old != -1 {
		t.Errorf("old %d", old)
	}
	if old, _ := o.Commit(topic, grp, 0, 5); old != 10 {
		t.Errorf("old %d: offsets may go back", old)
	}
	o.Commit(topic, grp, 1, 7)
	o.Commit(topic, []byte("H"), 1, 8)
	o.Pulled(topic, grp, 0, 6)
	if off, ok := o.Query(topic, grp, 0); !ok || off != 5 {
		t.Errorf("query: %d %v", off, ok)
	}
	if v := o.Snapshot().DataVersion.Counter; v != 2 {
		t.Errorf("version %d after four commits of a step of three, of which one goes back", v)
	}
	if err := o.Save(); err != nil {
		t.Fatal(err)
	}
	snap := o.Snapshot()
	want := remoting.ConsumerOffsets{
		DataVersion:     snap.DataVersion,
		GroupTopicMap:   map[string][]string{"G": {"T"}, "H": {"T"}},
		OffsetTable:     map[string]map[int32]int64{"T@G": {0: 5, 1: 7}, "T@H": {1: 8}},
		PullOffsetTable: map[string]map[int32]int64{"T@G": {0: 6}},
	}
	if d := cmp.Diff(want, snap); d != "" {
		t.Error(d)
	}
	again := newTestOffsets(t, path)
	want.PullOffsetTable = map[string]map[int32]int64{} // only committed ones are read back
	if d := cmp.Diff(want, again.Snapshot()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"G", "H"}, o.Groups("T")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"T"}, o.Topics("G")); d != "" {
		t.Error(d)
	}
}

func TestSaveOnlyWhenChanged(t *testing.T) {
	path := filepath.Join(configDir(t), "consumerOffset.json")
	o := newTestOffsets(t, path)
	if err := o.Save(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a table without offsets was written")
	}
	o.Commit([]byte("T"), []byte("G"), 0, 1)
	if err := o.Save(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := o.Save(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it was written again without a change")
	}
}

// N029: a reset holds for a group that is offline, and is handed out once.
func TestReset(t *testing.T) {
	o := newTestOffsets(t, filepath.Join(configDir(t), "consumerOffset.json"))
	topic, grp := []byte("T"), []byte("G")
	o.Commit(topic, grp, 0, 100)
	o.Reset("T", "G", 0, 40)
	if _, swallowed := o.Commit(topic, grp, 0, 101); !swallowed {
		t.Error("a commit while a reset is pending counted")
	}
	if off, _ := o.Query(topic, grp, 0); off != 40 {
		t.Errorf("query while a reset is pending: %d", off)
	}
	if off, ok := o.TakeReset(topic, grp, 0); !ok || off != 40 {
		t.Errorf("first take: %d %v", off, ok)
	}
	if _, ok := o.TakeReset(topic, grp, 0); ok {
		t.Error("a reset is handed out twice")
	}
	if off, _ := o.Query(topic, grp, 0); off != 40 {
		t.Errorf("after the reset: %d", off)
	}
	o.Commit(topic, grp, 0, 41)
	if off, _ := o.Committed("T", "G", 0); off != 41 {
		t.Errorf("commits count again: %d", off)
	}
	o.Reset("T", "G", 1, 0)
	if off, ok := o.TakeReset(topic, grp, 1); !ok || off != 0 {
		t.Errorf("a reset to 0 works: %d %v", off, ok)
	}
}

// N034, N041: a deleted topic leaves no offset behind, committed, pulled or reset.
func TestRemoveOffsets(t *testing.T) {
	o := newTestOffsets(t, filepath.Join(configDir(t), "consumerOffset.json"))
	for _, k := range []string{"T", "U"} {
		o.Commit([]byte(k), []byte("G"), 0, 1)
		o.Pulled([]byte(k), []byte("G"), 0, 1)
		o.Reset(k, "G", 1, 5)
	}
	o.RemoveTopic("T")
	snap := o.Snapshot()
	if len(snap.OffsetTable) != 1 || len(snap.PullOffsetTable) != 1 || o.HasReset([]byte("T"), []byte("G"), 1) {
		t.Errorf("%+v", snap)
	}
	o.RemoveGroup("G")
	if snap := o.Snapshot(); len(snap.OffsetTable)+len(snap.PullOffsetTable)+len(snap.GroupTopicMap) != 0 {
		t.Errorf("%+v", snap)
	}
}

func TestCloneOffsets(t *testing.T) {
	o := newTestOffsets(t, filepath.Join(configDir(t), "consumerOffset.json"))
	o.Commit([]byte("T"), []byte("G"), 0, 3)
	o.Commit([]byte("T"), []byte("G"), 1, 4)
	o.Clone("G", "H", "T")
	if d := cmp.Diff(map[int32]int64{0: 3, 1: 4}, o.Queues("T", "H")); d != "" {
		t.Error(d)
	}
}

// N012: junk in both files stops the start instead of consuming all again.
func TestDamagedOffsets(t *testing.T) {
	path := filepath.Join(configDir(t), "consumerOffset.json")
	for _, name := range []string{path, path + ".bak"} {
		if err := os.WriteFile(name, []byte{0xff, 0, 1, 2}, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := newOffsetTable(vfs.OS, path, fixedNow, 1, quiet).Load(); err == nil {
		t.Error("started at nothing")
	}
}

func TestOffsetLookupsDoNotAllocate(t *testing.T) {
	o := newTestOffsets(t, filepath.Join(configDir(t), "consumerOffset.json"))
	topic, grp := []byte("T"), []byte("G")
	o.Commit(topic, grp, 0, 1)
	o.Pulled(topic, grp, 0, 1)
	n := testing.AllocsPerRun(100, func() {
		o.Query(topic, grp, 0)
		o.Commit(topic, grp, 0, 2)
		o.Pulled(topic, grp, 0, 2)
		o.TakeReset(topic, grp, 0)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func mq(q int32) remoting.MessageQueue {
	return remoting.MessageQueue{BrokerName: "b", QueueID: q, Topic: "T"}
}

func TestQueueLocks(t *testing.T) {
	ck := clock.NewManual(fixedNow())
	l := newQueueLocks(ck.Now)
	both := []remoting.MessageQueue{mq(0), mq(1)}
	if got := l.Lock("G", "c1", both); len(got) != 2 {
		t.Fatalf("c1 got %v", got)
	}
	if got := l.Lock("G", "c2", both); len(got) != 0 {
		t.Errorf("c2 got %v of c1", got)
	}
	if got := l.Lock("H", "c2", both); len(got) != 2 {
		t.Errorf("another group got %v", got)
	}
	ck.Advance(40 * time.Second)
	l.Lock("G", "c1", both[:1]) // renewed
	ck.Advance(30 * time.Second)
	if d := cmp.Diff(both[1:], l.Lock("G", "c2", both)); d != "" {
		t.Errorf("after 70 s without renewal: %s", d)
	}
	l.Unlock("G", "c2", both) // c2 does not hold 0
	if got := l.Lock("G", "c3", both); len(got) != 1 || got[0] != mq(1) {
		t.Errorf("c3 got %v", got)
	}
	if !l.AnyHeld("G") {
		t.Error("G holds locks")
	}
	ck.Advance(61 * time.Second)
	if l.AnyHeld("G") {
		t.Error("all locks have expired")
	}
	l.Lock("G", "c1", both)
	l.Sweep(func(topic string) bool { return topic == "T" })
	if l.AnyHeld("G") || len(l.mu.groups) != 0 {
		t.Error("the locks of a dropped topic stay")
	}
}

func TestTagFilter(t *testing.T) {
	hash := func(s string) int64 { return message.TagsCode([]byte(s)) }
	tests := []struct {
		name string
		sub  remoting.SubscriptionData
		pass []string
		stop []string
	}{
		{"star", remoting.SubscriptionData{SubString: "*"}, []string{"a", ""}, nil},
		{"empty", remoting.SubscriptionData{}, []string{"a", ""}, nil},
		{"codes", remoting.SubscriptionData{SubString: "a || b", CodeSet: []int32{int32(hash("a")), int32(hash("b"))}}, []string{"a", "b"}, []string{"c", ""}},
		{"text only", remoting.SubscriptionData{SubString: "a||b"}, []string{"a", "b"}, []string{"c"}},
		{"equal hashes pass (N042)", remoting.SubscriptionData{SubString: "Aa"}, []string{"Aa", "BB"}, []string{"C"}},
		{"many", remoting.SubscriptionData{SubString: "a||b||c||d||e||f||g||h||i||j"}, []string{"a", "j"}, []string{"k"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newTagFilter(&tt.sub)
			for _, tag := range tt.pass {
				if f != nil && !f.MatchCQ(hash(tag)) {
					t.Errorf("%q is stopped", tag)
				}
			}
			for _, tag := range tt.stop {
				if f == nil || f.MatchCQ(hash(tag)) {
					t.Errorf("%q passes", tag)
				}
			}
		})
	}
}
