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
	query := &remoting.QueryMessageHeader{Topic: "T", Key: "k", MaxNum: 1, LastKey: "here"}
	if resp := r.call(remoting.ReqQueryMessage, query, nil); resp.Code != remoting.RespInvalidParameter || !strings.Contains(resp.Remark, "lastKey") {
		t.Errorf("lastKey: %s %s", remoting.ResponseName(resp.Code), resp.Remark)
	}
	group := []byte(`{"groupName":"G","subscriptionDataSet":[{"topic":"T","expressionType":"TAG","expression":"*","version":1}]}`)
	if resp := r.call(remoting.ReqUpdateAndCreateSubscriptionGroup, nil, group); resp.Code != remoting.RespInvalidParameter || !strings.Contains(resp.Remark, "subscriptionDataSet") {
		t.Errorf("subscriptionDataSet: %s %s", remoting.ResponseName(resp.Code), resp.Remark)
	}
	r.ok(remoting.ReqPopRollback, nil, nil)
	if err := os.MkdirAll(filepath.Join(dir, "kvStore", "pop"), 0o755); err != nil {
		t.Fatal(err)
	}
	if resp := r.call(remoting.ReqPopRollback, nil, nil); resp.Code != remoting.RespSystemError || !strings.Contains(resp.Remark, "kvStore") {
		t.Errorf("with records in RocksDB: %s %s", remoting.ResponseName(resp.Code), resp.Remark)
	}
}

// Kinds of topics that are not served are refused when they are asked for, by the number for what is not supported or for a wrong
// parameter, and the reason names what: compaction topics, lite topics, queues in RocksDB, retention of its own.
func TestKindsOfTopicsThatAreNotServed(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	for attributes, names := range map[string]string{
		"+cleanup.policy=COMPACTION": "cleanup.policy=COMPACTION", "+message.type=LITE": "message.type=LITE",
		"+queue.type=RocksDBCQ": "queue.type=RocksDBCQ", "+reserve.time=86400000": "reserve.time", "+lite.topic.expiration=60": "lite.topic.expiration",
	} {
		for _, topic := range []string{"new", "T"} {
			h := &remoting.CreateTopicHeader{Topic: topic, DefaultTopic: "TBW102", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: "SINGLE_TAG", Attributes: attributes}
			resp := r.call(remoting.ReqUpdateAndCreateTopic, h, nil)
			if resp.Code != remoting.RespInvalidParameter && resp.Code != remoting.RespRequestCodeNotSupported || !strings.Contains(resp.Remark, names) {
				t.Errorf("%s on %s: %s %s", attributes, topic, remoting.ResponseName(resp.Code), resp.Remark)
			}
		}
	}
	lite := r.call(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, prop("__LITE_TOPIC", "l")), []byte("x"))
	if lite.Code != remoting.RespInvalidParameter || !strings.Contains(lite.Remark, "__LITE_TOPIC") {
		t.Errorf("a lite message: %s %s", remoting.ResponseName(lite.Code), lite.Remark)
	}
	for _, attribute := range []string{"lite.bind.topic", "lite.sub.client.quota"} {
		body := []byte(`{"groupName":"G","attributes":{"+` + attribute + `":"7"}}`)
		if resp := r.call(remoting.ReqUpdateAndCreateSubscriptionGroup, nil, body); resp.Code == remoting.RespSuccess || !strings.Contains(resp.Remark, attribute) {
			t.Errorf("%s: %s %s", attribute, remoting.ResponseName(resp.Code), resp.Remark)
		}
	}
	if r.topics.Get("new") != nil || r.groups.Get("G") != nil {
		t.Error("what was refused is there")
	}
}

// A subscription in class filter mode, as clients of before 4.3 can send it, passes all messages, as with Apache.
func TestClassFilterMode(t *testing.T) {
	f := tagFilterOf(&remoting.SubscriptionData{Topic: "T", SubString: "a", CodeSet: []int32{97}, ClassFilterMode: true})
	if f != nil {
		t.Errorf("%v", f)
	}
}
