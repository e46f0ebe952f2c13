package broker

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mqx/broker/stats"
	"mqx/internal/fastjson"
	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
)

var testRules = systemTopicRules{
	Cluster: "C", Broker: "b", AutoCreate: true, DefaultQueues: 8, ClusterTopicEnable: true, BrokerTopicEnable: true,
	ReviveQueues: 8, DelayLevels: 18,
}

func fixedNow() time.Time { return time.UnixMilli(1_795_993_445_669) }

func newTestTopics(t *testing.T, rules systemTopicRules, path string) *topicTable {
	t.Helper()
	tt := newTopicTable(rules, vfs.OS, path, fixedNow, stats.NewSet(), slog.New(slog.DiscardHandler))
	if err := tt.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tt.saver.Wait)
	return tt
}

func topicPath(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "config")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "topics.json")
}

func TestSystemTopics(t *testing.T) {
	tt := newTestTopics(t, testRules, topicPath(t))
	type shape struct{ queues, perm int32 }
	want := map[string]shape{
		"SELF_TEST_TOPIC": {1, 6}, "TBW102": {8, 7}, "BenchmarkTest": {1024, 6}, "C": {16, 7}, "b": {1, 7},
		"OFFSET_MOVED_EVENT": {1, 6}, "SCHEDULE_TOPIC_XXXX": {18, 6}, "C_REPLY_TOPIC": {1, 6},
		"rmq_sys_REVIVE_LOG_C": {8, 6}, "rmq_sys_SYNC_BROKER_MEMBER_b": {1, 1},
		"RMQ_SYS_TRANS_HALF_TOPIC": {1, 6}, "RMQ_SYS_TRANS_OP_HALF_TOPIC": {1, 6},
		"RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC": {1, 6}, "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC": {1, 6}, "rmq_sys_wheel_timer": {1, 6},
	}
	got := map[string]shape{}
	all, v := tt.All()
	for _, c := range all {
		if c.ReadQueueNums != c.WriteQueueNums || c.TopicFilterType != remoting.FilterSingleTag {
			t.Errorf("%+v", c)
		}
		got[c.TopicName] = shape{c.WriteQueueNums, c.Perm}
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(shape{})); d != "" {
		t.Error(d)
	}
	if v.Counter != 0 || v.StateVersion != 0 || v.Timestamp != fixedNow().UnixMilli() {
		t.Errorf("version of a fresh table: %+v", v)
	}
	for _, name := range []string{"C", "b", "C_REPLY_TOPIC", "TBW102", "rmq_sys_anything", "TRANS_CHECK_MAX_TIME_TOPIC"} {
		if !tt.rules.isSystem(name) {
			t.Errorf("%s is a system topic", name)
		}
	}
	if tt.rules.isSystem("orders") {
		t.Error("orders is no system topic")
	}
	tt2 := newTestTopics(t, systemTopicRules{Cluster: "C", Broker: "b", DefaultQueues: 8, TraceTopic: "RMQ_SYS_TRACE_TOPIC", DelayLevels: 18, ReviveQueues: 8}, topicPath(t))
	if tt2.Get("TBW102") != nil || tt2.Get("C").Perm != 1 || tt2.Get("b").Perm != 1 || tt2.Get("RMQ_SYS_TRACE_TOPIC") == nil {
		t.Error("switches of the system topics are ignored")
	}
}

// The flag is final: no template helps when it is off (N096).
func TestAutoCreated(t *testing.T) {
	template := func(perm, queues int32) *remoting.TopicConfig {
		c := remoting.NewTopicConfig("D")
		c.Perm, c.WriteQueueNums, c.ReadQueueNums = perm, queues, queues
		c.TopicFilterType = remoting.FilterMultiTag
		return &c
	}
	tests := []struct {
		name     string
		enabled  bool
		template *remoting.TopicConfig
		client   int32
		queues   int32 // -1: not created
	}{
		{"client asks for fewer", true, template(7, 8), 4, 4},
		{"client asks for more", true, template(7, 8), 100, 8},
		{"client asks for less than nothing", true, template(7, 8), -1, 0},
		{"no template", true, nil, 4, -1},
		{"template without the inherit bit", true, template(6, 8), 4, -1},
		{"switched off", false, template(7, 8), 4, -1},
		{"switched off, another inheritable template", false, template(7, 1), 4, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := autoCreated(tt.enabled, "T", tt.template, tt.client, 1)
			if tt.queues < 0 {
				if c != nil {
					t.Fatalf("created %+v", c)
				}
				return
			}
			if c == nil || c.ReadQueueNums != tt.queues || c.WriteQueueNums != tt.queues || c.Perm != 6 || c.TopicSysFlag != 1 ||
				c.TopicFilterType != remoting.FilterMultiTag || c.TopicName != "T" {
				t.Fatalf("created %+v", c)
			}
		})
	}
}

func TestCreateTopic(t *testing.T) {
	tt := newTestTopics(t, testRules, topicPath(t))
	good := remoting.CreateTopicHeader{Topic: "T", DefaultTopic: "TBW102", ReadQueueNums: 8, WriteQueueNums: 8, Perm: 6, TopicFilterType: "SINGLE_TAG"}
	tests := []struct {
		name string
		edit func(*remoting.CreateTopicHeader)
		code int32 // -1: fine
		text string
	}{
		{"plain", func(*remoting.CreateTopicHeader) {}, -1, ""},
		{"long retry topic", func(h *remoting.CreateTopicHeader) { h.Topic = "%RETRY%" + strings.Repeat("g", 200) }, -1, ""},
		{"127 characters", func(h *remoting.CreateTopicHeader) { h.Topic = strings.Repeat("t", 127) }, -1, ""},
		{"128 characters", func(h *remoting.CreateTopicHeader) { h.Topic = strings.Repeat("t", 128) }, 29, "the limit is 127"},
		{"bad character", func(h *remoting.CreateTopicHeader) { h.Topic = "bad topic!" }, 29, "position 3"},
		{"empty", func(h *remoting.CreateTopicHeader) { h.Topic = "" }, 29, "empty"},
		{"dot (N106)", func(h *remoting.CreateTopicHeader) { h.Topic = "a.b" }, 29, `'.'`},
		{"system", func(h *remoting.CreateTopicHeader) { h.Topic = "TBW102" }, 29, "The topic[TBW102] is conflict with system topic."},
		{"cluster name", func(h *remoting.CreateTopicHeader) { h.Topic = "C" }, 29, "conflict with system topic"},
		{"perm", func(h *remoting.CreateTopicHeader) { h.Perm = 9 }, 29, "perm 9"},
		{"queues", func(h *remoting.CreateTopicHeader) { h.WriteQueueNums = -1 }, 29, "-1 queues"},
		{"many queues", func(h *remoting.CreateTopicHeader) { h.ReadQueueNums = 1 << 20 }, 29, "out of range"},
		{"filter type", func(h *remoting.CreateTopicHeader) { h.TopicFilterType = "NO_TAG" }, 29, "NO_TAG"},
		{"attribute", func(h *remoting.CreateTopicHeader) { h.Attributes = "+message.type=FIFO" }, -1, ""},
		{"unknown attribute", func(h *remoting.CreateTopicHeader) { h.Attributes = "+nosuch=1" }, 1, "unsupported key: nosuch"},
		{"attribute without sign", func(h *remoting.CreateTopicHeader) { h.Attributes = "message.type=FIFO" }, 1, "must start with"},
		{"removal at creation", func(h *remoting.CreateTopicHeader) { h.Attributes = "-message.type" }, 1, "only add attribute"},
		{"bad value", func(h *remoting.CreateTopicHeader) { h.Attributes = "+message.type=QUICK" }, 1, "value is not in set: QUICK"},
		{"compaction is not served", func(h *remoting.CreateTopicHeader) { h.Attributes = "+cleanup.policy=COMPACTION" }, 29, "cleanup.policy=COMPACTION is not served"},
		{"batch queues", func(h *remoting.CreateTopicHeader) { h.Attributes = "+queue.type=BatchCQ,+message.type=PRIORITY" }, -1, ""},
		{"queues in RocksDB are not served", func(h *remoting.CreateTopicHeader) { h.Attributes = "+queue.type=RocksDBCQ" }, 29, "queue.type=RocksDBCQ"},
		{"own retention is not served", func(h *remoting.CreateTopicHeader) { h.Attributes = "+reserve.time=60000" }, 29, "reserve.time=60000"},
		{"mixed", func(h *remoting.CreateTopicHeader) { h.Attributes = "+message.type=MIXED" }, 29, "MIXED message type is not supported."},
		{"twice", func(h *remoting.CreateTopicHeader) { h.Attributes = "+message.type=FIFO,+message.type=NORMAL" }, 1, "key duplication"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := good
			tc.edit(&h)
			_, err := tt.createTopic(&h, true, false)
			if tc.code < 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			if e := asRefused(err); e.Code != tc.code || !strings.Contains(e.Text, tc.text) {
				t.Errorf("%d %q, want %d %q", e.Code, e.Text, tc.code, tc.text)
			}
		})
	}
	if _, err := tt.createTopic(&remoting.CreateTopicHeader{Topic: "TBW102", Perm: 7, WriteQueueNums: 4, ReadQueueNums: 4}, false, false); err != nil {
		t.Errorf("with validation of system topics off: %v", err)
	}
}

func TestAttributes(t *testing.T) {
	tests := []struct {
		name, changes string
		create        bool
		current, want map[string]string
		err           string
	}{
		{"add", "+message.type=FIFO", true, nil, map[string]string{"message.type": "FIFO"}, ""},
		{"change", "+message.type=NORMAL", false, map[string]string{"message.type": "FIFO"}, map[string]string{"message.type": "NORMAL"}, ""},
		{"remove", "-message.type", false, map[string]string{"message.type": "FIFO"}, map[string]string{}, ""},
		{"remove what is not there", "-message.type", false, nil, nil, "nonexistent key"},
		{"unchangeable", "+queue.type=BatchCQ", false, map[string]string{"queue.type": "SimpleCQ"}, nil, "unchangeable attribute"},
		{"unchangeable, same", "+queue.type=SimpleCQ", false, map[string]string{"queue.type": "SimpleCQ"}, map[string]string{"queue.type": "SimpleCQ"}, ""},
		{"nothing keeps all", "", false, map[string]string{"message.type": "FIFO"}, map[string]string{"message.type": "FIFO"}, ""},
		{"default number", "+reserve.time=-1", true, nil, map[string]string{"reserve.time": "-1"}, ""},
		{"no number", "+reserve.time=x", true, nil, nil, "not in range"},
		{"add without value", "+message.type", true, nil, nil, "add/alter attribute format"},
		{"remove with value", "-message.type=FIFO", false, nil, nil, "delete attribute format"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			changes, err := parseAttributes(tt.changes)
			var got map[string]string
			if err == nil {
				got, err = alterAttributes(topicAttributes, tt.create, tt.current, changes, false)
			}
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("%v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func put(t *testing.T, tt *topicTable, c remoting.TopicConfig) []string {
	t.Helper()
	ch := make(chan error, 1)
	changed := tt.Put([]remoting.TopicConfig{c}, func(err error) { ch <- err })
	if err := <-ch; err != nil {
		t.Fatal(err)
	}
	return changed
}

func TestTopicsAreSavedAndLoaded(t *testing.T) {
	path := topicPath(t)
	tt := newTestTopics(t, testRules, path)
	c := remoting.NewTopicConfig("T")
	c.Attributes = map[string]string{"message.type": "FIFO"}
	c.Order = true
	if changed := put(t, tt, c); len(changed) != 1 {
		t.Fatalf("changed %v", changed)
	}
	v := tt.Version()
	if v.Counter != 1 {
		t.Errorf("version %+v after one change", v)
	}
	if changed := put(t, tt, c); len(changed) != 0 || tt.Version() != v {
		t.Errorf("the same again changed %v, version %+v", changed, tt.Version())
	}
	if !tt.Get("T").saved.Load() {
		t.Error("T is not marked as saved")
	}
	again := newTestTopics(t, testRules, path)
	if d := cmp.Diff(c, again.Get("T").TopicConfig); d != "" {
		t.Error(d)
	}
	if again.Version() != v {
		t.Errorf("version %+v, want %+v", again.Version(), v)
	}
}

// N095: the template goes when topics are not created by sends any more.
func TestTemplateGoesWithTheFlag(t *testing.T) {
	path := topicPath(t)
	newTestTopics(t, testRules, path)
	off := testRules
	off.AutoCreate = false
	if newTestTopics(t, off, path).Get(message.TopicAutoCreate) != nil {
		t.Error("TBW102 is still there")
	}
}

func TestDeleteTopic(t *testing.T) {
	path := topicPath(t)
	tt := newTestTopics(t, testRules, path)
	put(t, tt, remoting.NewTopicConfig("T"))
	ch := make(chan error, 1)
	if gone := tt.Delete([]string{"T", "unknown"}, func(err error) { ch <- err }); len(gone) != 1 || gone[0] != "T" {
		t.Errorf("gone: %v", gone)
	}
	if err := <-ch; err != nil {
		t.Fatal(err)
	}
	if newTestTopics(t, testRules, path).Get("T") != nil {
		t.Error("T came back")
	}
	called := false
	tt.Delete([]string{"unknown"}, func(error) { called = true })
	if !called {
		t.Error("done was not called")
	}
}

// N010, N011: a bad file with a good backup is not fatal and does not destroy
// the backup; two bad ones stop the start.
func TestDamagedTopicsFile(t *testing.T) {
	path := topicPath(t)
	tt := newTestTopics(t, testRules, path)
	put(t, tt, remoting.NewTopicConfig("T"))
	put(t, tt, remoting.NewTopicConfig("U"))
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if newTestTopics(t, testRules, path).Get("T") == nil {
		t.Error("T was lost with a good backup there")
	}
	for _, name := range []string{path, jsonfile.BackupName(path)} {
		if err := os.WriteFile(name, []byte("{junk"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bad := newTopicTable(testRules, vfs.OS, path, fixedNow, stats.NewSet(), slog.New(slog.DiscardHandler))
	var be *jsonfile.BadError
	if err := bad.Load(); !errors.As(err, &be) {
		t.Errorf("two bad files: %v", err)
	}
}

// A create is answered after a write that holds it, and many share a write.
func TestManyCreatesShareWrites(t *testing.T) {
	path := topicPath(t)
	tt := newTestTopics(t, testRules, path)
	writes := 0
	inner := tt.saver.write
	tt.saver.write = func() error { writes++; return inner() }
	const n = 500
	var wg sync.WaitGroup
	wg.Add(n)
	for i := range n {
		name := "T" + string(rune('a'+i%26)) + "-" + time.Duration(i).String()
		name = strings.ReplaceAll(name, ".", "_")
		tt.Put([]remoting.TopicConfig{remoting.NewTopicConfig(name)}, func(err error) {
			defer wg.Done()
			var table remoting.TopicConfigTable
			data, rerr := os.ReadFile(path)
			if err != nil || rerr != nil || fastjson.Unmarshal(data, &table) != nil || table.TopicConfigTable[name].TopicName != name {
				t.Errorf("%s was answered before it was on disk (%v, %v)", name, err, rerr)
			}
		})
	}
	wg.Wait()
	tt.saver.Wait()
	if writes > n/5 {
		t.Errorf("%d writes for %d creates", writes, n)
	}
}

func TestSetOrder(t *testing.T) {
	tt := newTestTopics(t, testRules, topicPath(t))
	put(t, tt, remoting.NewTopicConfig("T"))
	c := remoting.NewTopicConfig("U")
	c.Order = true
	put(t, tt, c)
	tt.SetOrder(map[string]bool{"T": true})
	if !tt.Get("T").Order || !tt.Get("U").Order {
		t.Error("what a name server names is ordered, and what was created so stays so")
	}
}

func TestSaverTellsErrors(t *testing.T) {
	bad := errors.New("disk full")
	s := newSaver(func() error { return bad })
	if err := s.Save(); !errors.Is(err, bad) {
		t.Errorf("%v", err)
	}
}
