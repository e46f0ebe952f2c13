package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/props"
	"mqx/remoting"
)

func TestTopicRequests(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 4)
	v := r.topics.Version()
	r.createTopic("T", 4) // idempotent
	if r.topics.Version() != v {
		t.Error("an equal create changed the version")
	}
	var tc remoting.TopicConfigAndMapping
	decode(t, r.ok(remoting.ReqGetTopicConfig, &remoting.GetTopicConfigHeader{Topic: "T"}, nil), &tc)
	if tc.TopicName != "T" || tc.WriteQueueNums != 4 || tc.Perm != 6 {
		t.Errorf("%+v", tc)
	}
	resp := r.call(remoting.ReqGetTopicConfig, &remoting.GetTopicConfigHeader{Topic: "U"}, nil)
	if resp.Code != remoting.RespTopicNotExist || resp.Remark != "No topic in this broker. topic: U" {
		t.Errorf("%d %s", resp.Code, resp.Remark)
	}
	r.send("T", 1, "", "x")
	var st remoting.TopicStatsTable
	decode(t, r.ok(remoting.ReqGetTopicStatsInfo, &remoting.GetTopicStatsInfoHeader{Topic: "T"}, nil), &st)
	if len(st.OffsetTable) != 4 || st.OffsetTable[remoting.MessageQueue{BrokerName: "b", QueueID: 1, Topic: "T"}].MaxOffset != 1 ||
		st.OffsetTable[remoting.MessageQueue{BrokerName: "b", QueueID: 1, Topic: "T"}].LastUpdateTimestamp == 0 {
		t.Errorf("%+v", st)
	}
	list, err := marshal(&remoting.CreateTopicListBody{TopicConfigList: []remoting.TopicConfig{remoting.NewTopicConfig("L1"), remoting.NewTopicConfig("bad name")}})
	if err != nil {
		t.Fatal(err)
	}
	if resp := r.call(remoting.ReqUpdateAndCreateTopicList, nil, list); resp.Code != remoting.RespInvalidParameter || r.topics.Get("L1") != nil {
		t.Errorf("half of a refused list: %d %s", resp.Code, resp.Remark)
	}
	var sys remoting.TopicList
	decode(t, r.ok(remoting.ReqGetSystemTopicListFromBroker, nil, nil), &sys)
	for _, name := range []string{"C", "b", "C_REPLY_TOPIC", "TBW102", "rmq_sys_REVIVE_LOG_C", "TRANS_CHECK_MAX_TIME_TOPIC", "CHECKPOINT_TOPIC"} {
		if !slices.Contains(sys.TopicList, name) {
			t.Errorf("%s is missing in %v", name, sys.TopicList)
		}
	}
	for _, code := range []int32{remoting.ReqCleanUnusedTopic, remoting.ReqCleanExpiredConsumeQueue, remoting.ReqDeleteExpiredCommitLog} {
		r.ok(code, nil, nil)
	}
}

// N020, N034, N041: a deleted topic is gone with its offsets, also when it is made anew.
func TestDeleteTopicRequest(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	for i := range 5 {
		r.send("T", 0, "", fmt.Sprint(i))
	}
	r.groups.FindOrCreate("G")
	r.createTopic("%RETRY%G_T", 1)
	r.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{ConsumerGroup: "G", Topic: "T", CommitOffset: 5}, nil)
	r.call(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 5), nil)
	r.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: "T"}, nil)
	if r.topics.Get("T") != nil || r.topics.Get("%RETRY%G_T") != nil {
		t.Error("the topic or its pop retry topic is still there")
	}
	if n := r.store.MaxOffset("T", 0); n != 0 {
		t.Errorf("the queue still has %d", n)
	}
	snap := r.offsets.Snapshot()
	if len(snap.OffsetTable)+len(snap.PullOffsetTable) != 0 {
		t.Errorf("%+v", snap)
	}
	r.createTopic("T", 1)
	r.send("T", 0, "", "new")
	var cs remoting.ConsumeStats
	decode(t, r.ok(remoting.ReqGetConsumeStats, &remoting.GetConsumeStatsHeader{ConsumerGroup: "G", Topic: "T"}, nil), &cs)
	if w := cs.OffsetTable[remoting.MessageQueue{BrokerName: "b", Topic: "T"}]; w.BrokerOffset < w.ConsumerOffset {
		t.Errorf("a negative lag: %+v", w)
	}
	for name, want := range map[string]int32{"TBW102": 29, "": 29, "C": 29, "unknown": 0} {
		if resp := r.call(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: name}, nil); resp.Code != want {
			t.Errorf("%q: %d %s", name, resp.Code, resp.Remark)
		}
	}
}

func TestPagedTables(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.SplitMetadataSize = 5
	r := start(t, cfg)
	total := r.topics.Len()
	var all remoting.TopicConfigAndMappingTable
	resp := r.ok(remoting.ReqGetAllTopicConfig, nil, nil)
	decode(t, resp, &all)
	if len(all.TopicConfigTable) != total || resp.Fields.String("totalTopicNum") != fmt.Sprint(total) {
		t.Errorf("without fields: %d of %d", len(all.TopicConfigTable), total)
	}
	seen := map[string]bool{}
	version := ""
	for seq := 0; seq < total; seq += 5 {
		var page remoting.TopicConfigAndMappingTable
		resp := r.ok(remoting.ReqGetAllTopicConfig, &remoting.GetAllTopicConfigHeader{TopicSeq: int32(seq), DataVersion: version}, nil)
		decode(t, resp, &page)
		if len(page.TopicConfigTable) > 5 {
			t.Errorf("%d in one page", len(page.TopicConfigTable))
		}
		for name := range page.TopicConfigTable {
			seen[name] = true
		}
		b, err := marshal(&page.DataVersion)
		if err != nil {
			t.Fatal(err)
		}
		version = string(b)
	}
	if len(seen) != total {
		t.Errorf("%d of %d in pages", len(seen), total)
	}
	r.createTopic("T", 1) // another version: the next page begins anew
	var page remoting.TopicConfigAndMappingTable
	decode(t, r.ok(remoting.ReqGetAllTopicConfig, &remoting.GetAllTopicConfigHeader{TopicSeq: 10, DataVersion: version}, nil), &page)
	if _, ok := page.TopicConfigTable["BenchmarkTest"]; !ok {
		t.Errorf("did not begin anew: %v", page.TopicConfigTable)
	}
	var groups remoting.SubscriptionGroupTable
	resp = r.ok(remoting.ReqGetAllSubscriptionGroupConfig, &remoting.GetAllSubscriptionGroupConfigHeader{GroupSeq: 5}, nil)
	decode(t, resp, &groups)
	if len(groups.SubscriptionGroupTable) != 3 || resp.Fields.String("totalGroupNum") != "8" {
		t.Errorf("%d groups, %v", len(groups.SubscriptionGroupTable), resp.Fields)
	}
}

func TestGroupRequests(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	put := func(code int32, v any) *remoting.Command {
		body, err := marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return r.call(code, nil, body)
	}
	c := remoting.NewSubscriptionGroupConfig("G")
	c.RetryMaxTimes = 3
	if resp := put(remoting.ReqUpdateAndCreateSubscriptionGroup, &c); resp.Code != 0 {
		t.Fatal(resp.Remark)
	}
	h := remoting.NewSubscriptionGroupConfig("H")
	if resp := put(remoting.ReqUpdateAndCreateSubscriptionGroupList, &remoting.SubscriptionGroupList{GroupConfigList: []remoting.SubscriptionGroupConfig{h}}); resp.Code != 0 {
		t.Fatal(resp.Remark)
	}
	bad := remoting.NewSubscriptionGroupConfig(strings.Repeat("g", 121))
	if resp := put(remoting.ReqUpdateAndCreateSubscriptionGroup, &bad); resp.Code != remoting.RespInvalidParameter || !strings.Contains(resp.Remark, "120") {
		t.Errorf("%d %s", resp.Code, resp.Remark)
	}
	var got remoting.SubscriptionGroupConfig
	decode(t, r.ok(remoting.ReqGetSubscriptionGroupConfig, &remoting.GetSubscriptionGroupConfigHeader{Group: "G"}, nil), &got)
	if d := cmp.Diff(c, got); d != "" {
		t.Error(d)
	}
	if resp := r.call(remoting.ReqGetSubscriptionGroupConfig, &remoting.GetSubscriptionGroupConfigHeader{Group: "X"}, nil); resp.Code != remoting.RespSubscriptionGroupNotExist {
		t.Errorf("%d", resp.Code)
	}
	r.createTopic("T", 1)
	r.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{ConsumerGroup: "G", Topic: "T", CommitOffset: 1}, nil)
	r.ok(remoting.ReqCloneGroupOffset, &remoting.CloneGroupOffsetHeader{SrcGroup: "G", DestGroup: "H", Topic: "T", Offline: true}, nil)
	var by remoting.GroupList
	decode(t, r.ok(remoting.ReqQueryTopicConsumeByWho, &remoting.QueryTopicConsumeByWhoHeader{Topic: "T"}, nil), &by)
	if d := cmp.Diff([]string{"G", "H"}, by.GroupList); d != "" {
		t.Error(d)
	}
	var topics remoting.TopicList
	decode(t, r.ok(remoting.ReqQueryTopicsByConsumer, &remoting.QueryTopicsByConsumerHeader{Group: "H"}, nil), &topics)
	if d := cmp.Diff([]string{"T"}, topics.TopicList); d != "" || topics.BrokerAddr != r.addr {
		t.Errorf("%s %s", d, topics.BrokerAddr)
	}
	r.ok(remoting.ReqDeleteSubscriptionGroup, &remoting.DeleteSubscriptionGroupHeader{GroupName: "G", CleanOffset: true}, nil)
	if r.groups.Get("G") != nil || r.offsets.Queues("T", "G") != nil {
		t.Error("the group or its offsets are still there")
	}
	r.ok(remoting.ReqDeleteSubscriptionGroup, &remoting.DeleteSubscriptionGroupHeader{GroupName: "H"}, nil)
	if r.offsets.Queues("T", "H") == nil {
		t.Error("offsets went although they were to stay")
	}
	var all remoting.ConsumerOffsets
	decode(t, r.ok(remoting.ReqGetAllConsumerOffset, nil, nil), &all)
	if d := cmp.Diff(map[string]map[int32]int64{"T@H": {0: 1}}, all.OffsetTable); d != "" {
		t.Error(d)
	}
}

func TestConsumeStats(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 2)
	for i := range 6 {
		r.send("T", int32(i%2), "", fmt.Sprint(i))
	}
	r.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), nil)
	r.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{ConsumerGroup: "G", Topic: "T", CommitOffset: 2}, nil)
	r.call(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 3), nil)
	r.stats.Sample(time.Now())
	var cs remoting.ConsumeStats
	decode(t, r.ok(remoting.ReqGetConsumeStats, &remoting.GetConsumeStatsHeader{ConsumerGroup: "G"}, nil), &cs)
	w := cs.OffsetTable[remoting.MessageQueue{BrokerName: "b", Topic: "T"}]
	if len(cs.OffsetTable) != 2 || w.BrokerOffset != 3 || w.ConsumerOffset != 2 || w.PullOffset != 3 || w.LastTimestamp == 0 || cs.ConsumeTPS <= 0 {
		t.Errorf("%+v", cs)
	}
	var list remoting.ConsumeStatsList
	decode(t, r.ok(remoting.ReqGetBrokerConsumeStats, &remoting.GetBrokerConsumeStatsHeader{}, nil), &list)
	if list.TotalDiff != 1+3 || list.BrokerAddr != r.addr {
		t.Errorf("%+v", list)
	}
	var view remoting.BrokerStatsData
	decode(t, r.ok(remoting.ReqViewBrokerStatsData, &remoting.ViewBrokerStatsDataHeader{StatsName: "TOPIC_PUT_NUMS", StatsKey: "T"}, nil), &view)
	if view.StatsMinute.Sum != 6 || view.StatsMinute.AvgPT != 1 {
		t.Errorf("%+v", view)
	}
	resp := r.call(remoting.ReqViewBrokerStatsData, &remoting.ViewBrokerStatsDataHeader{StatsName: "GROUP_GET_NUMS", StatsKey: "T@X"}, nil)
	if resp.Code != remoting.RespSystemError || resp.Remark != "The stats <GROUP_GET_NUMS> <T@X> not exist" {
		t.Errorf("%d %s", resp.Code, resp.Remark)
	}
	var span remoting.QueryConsumeTimeSpanBody
	decode(t, r.ok(remoting.ReqQueryConsumeTimeSpan, &remoting.QueryConsumeTimeSpanHeader{Topic: "T", Group: "G"}, nil), &span)
	if len(span.ConsumeTimeSpanSet) != 2 || span.ConsumeTimeSpanSet[0].ConsumeTimeStamp == 0 || span.ConsumeTimeSpanSet[0].MaxTimeStampStr == "" {
		t.Errorf("%+v", span)
	}
}

func TestQueryByKey(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	r.send("T", 0, prop("KEYS", "k1 k2", "UNIQ_KEY", "C0A80001000000000000000000000007"), "hello")
	r.send("T", 0, prop("KEYS", "k2"), "other")
	query := func(key, typ string, unique bool) *remoting.Command {
		req := remoting.NewRequest(remoting.ReqQueryMessage, &remoting.QueryMessageHeader{Topic: "T", Key: key, MaxNum: 10, EndTimestamp: 1 << 62, IndexType: typ})
		req.Fields.Set(uniqueKeyField, fmt.Sprint(unique))
		resp, err := r.c.Call(t.Context(), r.addr, req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	for _, tt := range []struct {
		key, typ string
		unique   bool
		want     int
	}{{"k1", "K", false, 1}, {"k2", "", false, 2}, {"C0A80001000000000000000000000007", "U", true, 1}, {"nosuch", "K", false, 0}} {
		resp := query(tt.key, tt.typ, tt.unique)
		if n := len(records(t, resp.Body)); n != tt.want {
			t.Errorf("%s: %d messages, want %d (%s)", tt.key, n, tt.want, resp.Remark)
		}
		if tt.want == 0 && (resp.Code != remoting.RespQueryNotFound || resp.Remark != "can not find message, maybe time range not correct") {
			t.Errorf("%d %s", resp.Code, resp.Remark)
		}
	}
	var q remoting.QueryConsumeQueueBody
	decode(t, r.ok(remoting.ReqQueryConsumeQueue, &remoting.QueryConsumeQueueHeader{Topic: "T", Count: 10}, nil), &q)
	if q.MaxQueueIndex != 2 || len(q.QueueData) != 2 || q.QueueData[1].PhysicOffset == 0 {
		t.Errorf("%+v", q)
	}
	if resp := r.call(remoting.ReqViewMessageByID, &remoting.ViewMessageHeader{Offset: 7}, nil); resp.Code != remoting.RespSystemError ||
		!strings.Contains(resp.Remark, "can not find message by the offset, 7") {
		t.Errorf("%d %s", resp.Code, resp.Remark)
	}
}

func TestResetOffset(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 2)
	r.groups.FindOrCreate("G")
	for i := range 10 {
		r.send("T", int32(i%2), "", fmt.Sprint(i))
	}
	reset := func(h remoting.ResetOffsetHeader) *remoting.Command {
		h.Group, h.IsForce = "G", true
		if h.Topic == "" {
			h.Topic = "T"
		}
		return r.call(remoting.ReqInvokeBrokerToResetOffset, &h, nil)
	}
	table := func(resp *remoting.Command) map[int32]int64 {
		var b remoting.ResetOffsetBody
		decode(t, resp, &b)
		out := map[int32]int64{}
		for q, off := range b.OffsetTable {
			out[q.QueueID] = off
		}
		return out
	}
	minus := remoting.Some(int64(-1))
	// N030: "now" is the end exactly
	if d := cmp.Diff(map[int32]int64{0: 5, 1: 5}, table(reset(remoting.ResetOffsetHeader{QueueID: -1, Offset: minus, Timestamp: -1}))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[int32]int64{0: 0, 1: 0}, table(reset(remoting.ResetOffsetHeader{QueueID: -1, Offset: minus, Timestamp: 1}))); d != "" {
		t.Error(d)
	}
	// A queue that is named is the only one, also with a time; any negative time is the end.
	for at, want := range map[int64]int64{1: 0, -1: 5, -2: 5} {
		if d := cmp.Diff(map[int32]int64{1: want}, table(reset(remoting.ResetOffsetHeader{QueueID: 1, Timestamp: at}))); d != "" {
			t.Errorf("to %d: %s", at, d)
		}
	}
	if d := cmp.Diff(map[int32]int64{1: 3}, table(reset(remoting.ResetOffsetHeader{QueueID: 1, Offset: remoting.Some(int64(3))}))); d != "" {
		t.Error(d)
	}
	// handed out once, commits before that are swallowed
	r.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{ConsumerGroup: "G", Topic: "T", QueueID: 1, CommitOffset: 5}, nil)
	resp := r.call(remoting.ReqPullMessage, pullHeaderOf("G", "T", 1, 5), nil)
	if resp.Code != remoting.RespPullOffsetMoved || resp.Remark != "OFFSET_RESET" || resp.Fields.String("nextBeginOffset") != "3" {
		t.Errorf("%d %s %v", resp.Code, resp.Remark, resp.Fields)
	}
	if n := len(records(t, r.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 1, 3), nil).Body)); n != 2 {
		t.Errorf("%d messages", n)
	}
	for _, tt := range []struct {
		h    remoting.ResetOffsetHeader
		code int32
	}{
		{remoting.ResetOffsetHeader{QueueID: 1, Offset: remoting.Some(int64(6))}, 0}, // max+1, as Apache
		{remoting.ResetOffsetHeader{QueueID: 1, Offset: remoting.Some(int64(7))}, remoting.RespSystemError},
		{remoting.ResetOffsetHeader{QueueID: 9, Offset: remoting.Some(int64(0))}, remoting.RespInvalidParameter},
		{remoting.ResetOffsetHeader{Topic: "nope", QueueID: -1, Timestamp: -1}, remoting.RespTopicNotExist},
	} {
		if resp := reset(tt.h); resp.Code != tt.code {
			t.Errorf("%+v: %d %s", tt.h, resp.Code, resp.Remark)
		}
	}
	h := remoting.ResetOffsetHeader{Group: "X", Topic: "T", QueueID: -1, Timestamp: -1}
	if resp := r.call(remoting.ReqInvokeBrokerToResetOffset, &h, nil); resp.Code != remoting.RespSubscriptionGroupNotExist {
		t.Errorf("%d", resp.Code)
	}
}

// A member that waits for data learns of a reset at once.
func TestResetWakesParkedPulls(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	r.send("T", 0, "", "x")
	r.settle()
	ch := r.waiting(r.c, remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 1), time.Minute)
	other := r.waiting(r.c, remoting.ReqPullMessage, pullHeaderOf("H", "T", 0, 1), time.Minute)
	r.ok(remoting.ReqInvokeBrokerToResetOffset, &remoting.ResetOffsetHeader{Group: "G", Topic: "T", QueueID: -1, Timestamp: 1, IsForce: true}, nil)
	if resp := receive(t, ch); resp.Remark != "OFFSET_RESET" || resp.Fields.String("nextBeginOffset") != "0" {
		t.Errorf("%s %v", resp.Remark, resp.Fields)
	}
	if len(other) != 0 {
		t.Error("another group was woken")
	}
}

func TestRuntimeInfo(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	r.send("T", 0, "", "x")
	var kv remoting.KVTable
	decode(t, r.ok(remoting.ReqGetBrokerRuntimeInfo, nil, nil), &kv)
	for _, k := range []string{
		"bootTimestamp", "runtime", "putMessageEntireTimeMax", "putMessageTimesTotal", "putMessageFailedTimes", "putMessageSizeTotal",
		"putMessageDistributeTime", "putMessageAverageSize", "dispatchMaxBuffer", "getMessageEntireTimeMax", "putTps", "getFoundTps",
		"getMissTps", "getTotalTps", "getTransferredTps", "putLatency99", "putLatency999", "commitLogDiskRatio", "consumeQueueDiskRatio",
		"commitLogMinOffset", "commitLogMaxOffset", "brokerActive", "brokerVersionDesc", "msgPutTotalYesterdayMorning", "msgPutTotalTodayMorning",
		"msgPutTotalTodayNow", "msgGetTotalYesterdayMorning", "msgGetTotalTodayMorning", "msgGetTotalTodayNow", "dispatchBehindBytes",
		"pageCacheLockTimeMills", "earliestMessageTimeStamp", "startAcceptSendRequestTimeStamp", "timerReadBehind", "timerOffsetBehind",
		"timerCongestNum", "timerEnqueueTps", "timerDequeueTps", "remainTransientStoreBufferNumbs", "remainHowManyDataToFlush",
		"commitLogDirCapacity", "sendThreadPoolQueueSize", "sendThreadPoolQueueCapacity", "sendThreadPoolQueueHeadWaitTimeMills",
		"pullThreadPoolQueueSize", "litePullThreadPoolQueueCapacity", "queryThreadPoolQueueHeadWaitTimeMills", "ackThreadPoolQueueSize",
		"EndTransactionQueueSize", "EndTransactionThreadPoolQueueCapacity",
	} {
		if kv.Table[k] == "" {
			t.Errorf("%s is missing", k)
		}
	}
	if kv.Table["msgPutTotalTodayNow"] != "1" || kv.Table["brokerVersionDesc"] != "V5_5_0" || kv.Table["sendThreadPoolQueueCapacity"] != "10000" {
		t.Errorf("%v", kv.Table)
	}
	var ha remoting.HARuntimeInfo
	decode(t, r.ok(remoting.ReqGetBrokerHAStatus, nil, nil), &ha)
	if !ha.Master || ha.MasterCommitLogMaxOffset == 0 || ha.InSyncSlaveNums != 0 {
		t.Errorf("%+v", ha)
	}
}

func TestRatesAndLatencies(t *testing.T) {
	var l latencies
	if l.Quantile(0.99) != 0 || l.MaxMs() != 0 {
		t.Error("of nothing")
	}
	l.Add(300*time.Microsecond, 98)
	l.Add(30*time.Millisecond, 1)
	l.Add(700*time.Millisecond, 1)
	if l.MaxMs() != 700 || l.Quantile(0.5) > 0.6 || l.Quantile(0.98) < 0.3 || l.Quantile(0.999) < 500 {
		t.Errorf("max %d, p50 %v, p98 %v, p99.9 %v", l.MaxMs(), l.Quantile(0.5), l.Quantile(0.98), l.Quantile(0.999))
	}
	if got := l.Distribution(); !strings.HasPrefix(got, "[<=0ms]:98 [0~10ms]:0 [10~50ms]:1 ") || !strings.Contains(got, "[500ms~1s]:1 ") {
		t.Error(got)
	}
	for n, want := range map[int64]string{495: "495 B", 1536: "1.5 KiB", 270582939648: "252.0 GiB"} {
		if got := humanBytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := runtimeText(25*time.Hour + 61*time.Second); got != "[ 1 days, 1 hours, 1 minutes, 1 seconds ]" {
		t.Error(got)
	}
}

func configFileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "broker.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// N116, N117: only the key that was asked for changes, and the answer says
// where it was saved and when it counts.
func TestUpdateConfig(t *testing.T) {
	path := configFileOf(t, "# my broker\nfileReservedTime = 48 \n\nautoCreateTopicEnable=true\nown.key=1\n")
	cfg, err := LoadConfig(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	base := testConfig(t.TempDir())
	base.Source, base.loaded = cfg.Source, cfg.loaded
	base.Store.FileReservedHours = cfg.Store.FileReservedHours
	r := start(t, base)
	version := func() string {
		return r.ok(remoting.ReqGetBrokerConfig, nil, nil).Fields.String("version")
	}
	v0 := version()
	resp := r.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("fileReservedTime=24\nautoCreateTopicEnable=false\nflushDiskType=ASYNC_FLUSH\n"))
	if want := "active now: fileReservedTime, autoCreateTopicEnable; after restart: flushDiskType; saved in " + path; resp.Remark != want {
		t.Errorf("%q, want %q", resp.Remark, want)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("# my broker\nfileReservedTime = 24\n\nautoCreateTopicEnable=false\nown.key=1\nflushDiskType=ASYNC_FLUSH\n", string(text)); d != "" {
		t.Error(d)
	}
	if resp := r.call(remoting.ReqSendMessageV2, sendHeaderOf("new", 0, ""), []byte("x")); resp.Code != remoting.RespTopicNotExist {
		t.Errorf("autoCreateTopicEnable=false is not in force: %d", resp.Code)
	}
	if version() == v0 {
		t.Error("the version did not move")
	}
	body := string(r.ok(remoting.ReqGetBrokerConfig, nil, nil).Body)
	for _, want := range []string{"fileReservedTime=24\n", "autoCreateTopicEnable=false\n", "own.key=1\n", "haListenPort=", "brokerConfigPath=" + path + "\n"} {
		if !strings.Contains(body, want) {
			t.Errorf("missing %q", want)
		}
	}
	for line, want := range map[string]struct {
		code int32
		text string
	}{
		"brokerConfigPath=/x":           {16, "Can not update config in black list."},
		"configBlackList=":              {16, "black list"},
		"nosuchkey=1":                   {29, `unknown key "nosuchkey"`},
		"fileReservedTime=soon":         {29, `"soon" is no whole number`},
		"sendMessageThreadPoolNums=0":   {29, "must be at least 1"},
		"transientStorePoolEnable=true": {29, "has no effect on this broker"},
		"brokerRole=SLAVE":              {29, "must be above 0 for a SLAVE"},
		"regionId=R\nnosuchkey=1":       {29, "unknown key"},
	} {
		resp := r.call(remoting.ReqUpdateBrokerConfig, nil, []byte(line))
		if resp.Code != want.code || !strings.Contains(resp.Remark, want.text) {
			t.Errorf("%s: %d %q", line, resp.Code, resp.Remark)
		}
	}
	if r.cfg().RegionID != "DefaultRegion" {
		t.Error("half of a refused update was taken")
	}
	again, err := os.ReadFile(path)
	if err != nil || string(again) != string(text) {
		t.Errorf("the file changed by refused updates: %q %v", again, err)
	}
	resp = r.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("regionId=R9"))
	if got := r.call(remoting.ReqSendMessageV2, sendHeaderOf("nope", 0, ""), []byte("x")); got.Fields.String("MSG_REGION") != "R9" {
		t.Errorf("regionId is not in force (%s)", resp.Remark)
	}
}

func TestUpdateConfigWithoutFile(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	resp := r.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("traceOn=false"))
	if !strings.Contains(resp.Remark, "saved in nowhere") {
		t.Errorf("%s", resp.Remark)
	}
	if got := r.call(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, ""), []byte("x")); got.Fields.String("TRACE_ON") != "false" {
		t.Errorf("%v", got.Fields)
	}
}

// Limits of the store change while it runs.
func TestUpdateConfigOfStore(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	body := make([]byte, 5000)
	if resp := r.call(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, ""), body); resp.Code != remoting.RespSuccess {
		t.Fatalf("before: %d %s", resp.Code, resp.Remark)
	}
	resp := r.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("maxMessageSize=4096"))
	if !strings.HasPrefix(resp.Remark, "active now: maxMessageSize; ") {
		t.Errorf("%s", resp.Remark)
	}
	if resp := r.call(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, ""), body); resp.Code != remoting.RespMessageIllegal {
		t.Errorf("after: %d %s", resp.Code, resp.Remark)
	}
}

// A configuration file that is a link stays one.
func TestUpdateConfigThroughLink(t *testing.T) {
	path := configFileOf(t, "traceOn=true\n")
	link := filepath.Join(t.TempDir(), "broker.conf")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	cfg, err := LoadConfig(link, nil)
	if err != nil {
		t.Fatal(err)
	}
	base := testConfig(t.TempDir())
	base.Source, base.loaded = cfg.Source, cfg.loaded
	start(t, base).ok(remoting.ReqUpdateBrokerConfig, nil, []byte("traceOn=false"))
	if text, err := os.ReadFile(path); err != nil || string(text) != "traceOn=false\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Readlink(link); err != nil {
		t.Error(err)
	}
}

// A list of name servers that is changed in the file counts without a restart (N092).
func TestNamesrvFromFile(t *testing.T) {
	path := configFileOf(t, "namesrvAddr=10.0.0.1:9876\n")
	cfg, err := LoadConfig(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := props.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Set("namesrvAddr", "10.0.0.1:9876;10.0.0.2:9876")
	if err := os.WriteFile(path, f.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := cfg.namesrvText(); got != "10.0.0.1:9876;10.0.0.2:9876" {
		t.Errorf("%s", got)
	}
	cfg.NamesrvAddr = "10.9.9.9:9876" // a flag wins
	if got := cfg.namesrvText(); got != "10.9.9.9:9876" {
		t.Errorf("%s", got)
	}
}

// A key that takes effect after a restart shows in the answer and in the file,
// and is not half in force before.
func TestUpdateConfigAfterRestart(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	before := *r.cfg()
	r.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("reviveQueueNum=16\nbrokerName=other\ntraceOn=false\n"))
	r.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("regionId=R9\n"))
	if c := r.cfg(); c.ReviveQueueNum != before.ReviveQueueNum || c.BrokerName != before.BrokerName || c.TraceOn || c.RegionID != "R9" {
		t.Errorf("in force: reviveQueueNum=%d brokerName=%s traceOn=%v regionId=%s", c.ReviveQueueNum, c.BrokerName, c.TraceOn, c.RegionID)
	}
	body := "\n" + string(r.ok(remoting.ReqGetBrokerConfig, nil, nil).Body)
	for _, want := range []string{"reviveQueueNum=16", "brokerName=other", "traceOn=false", "regionId=R9"} {
		if !strings.Contains(body, "\n"+want+"\n") {
			t.Errorf("%s is not shown", want)
		}
	}
}

// What cannot be copied is told, and a group that is deleted with its offsets leaves none.
func TestCloneAndDeleteOffsets(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	r.heartbeat("G", "CLUSTERING")
	r.commit("G", "T", 0, 0)
	r.offsets.Commit([]byte("T"), []byte("G"+broadcastGroup), 0, 2)
	for h, code := range map[remoting.CloneGroupOffsetHeader]int32{
		{SrcGroup: "G", DestGroup: "D", Topic: "T", Offline: true}:    remoting.RespSuccess,
		{SrcGroup: "G", DestGroup: "D", Topic: "nope", Offline: true}: remoting.RespTopicNotExist,
		{SrcGroup: "nope", DestGroup: "D", Offline: true}:             remoting.RespSubscriptionGroupNotExist,
	} {
		if resp := r.call(remoting.ReqCloneGroupOffset, &h, nil); resp.Code != code {
			t.Errorf("%+v: %d %s", h, resp.Code, resp.Remark)
		}
	}
	r.ok(remoting.ReqDeleteSubscriptionGroup, &remoting.DeleteSubscriptionGroupHeader{GroupName: "G", CleanOffset: true}, nil)
	for _, g := range []string{"G", "G" + broadcastGroup} {
		if off, ok := r.offsets.Committed("T", g, 0); ok {
			t.Errorf("%s still has %d", g, off)
		}
	}
}
