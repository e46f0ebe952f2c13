package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mqx/broker/pop"
	"mqx/internal/fastjson"
	"mqx/remoting"
)

// BATCH_ACK acknowledges some messages of a pop: the others come back, once, and they do not; with and without records merged in
// memory.
func TestBatchAck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]cluster{"plain": sharedCluster(t), "merged": startCluster(t, "enablePopBufferMerge=true", "enablePopBatchAck=true")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newRawPeer(t, c.broker)
			topic, group := rawNames("batchack_" + name)
			p.createTopic(topic, 1)
			p.createGroup(group)
			p.send(topic, 0, "0", "1", "2", "3", "4", "5")
			first := p.popUntil("all messages", popOf(group, topic, 0, 3*time.Second))
			if len(first) != 6 {
				t.Fatalf("popped %v", rawBodies(first))
			}
			p.batchAck(group, first[0], first[1], first[3], first[4])
			var again []string
			waitFor(t, arrival+popArrival, "what was not acknowledged", func() (bool, string) {
				for _, m := range p.pop(popOf(group, topic, -1, time.Minute)) {
					p.batchAck(group, m)
					again = append(again, string(m.Body))
				}
				return len(again) >= 2, fmt.Sprint(again)
			})
			slices.Sort(again)
			if !slices.Equal(again, []string{"2", "5"}) {
				t.Errorf("came back %v", again)
			}
			if got := p.pop(popOf(group, topic, -1, time.Minute)); len(got) > 0 {
				t.Errorf("came once more %v", rawBodies(got))
			}
		})
	}
}

// batchAck acknowledges messages that one pop handed out of one queue.
func (p *rawPeer) batchAck(group string, ms ...rawPopped) {
	p.t.Helper()
	rc, err := pop.ParseReceipt(ms[0].receipt)
	if err != nil {
		p.t.Fatal(err)
	}
	bits := make([]byte, 8)
	for _, m := range ms {
		n := m.QueueOffset - rc.Start
		bits[n/8] |= 1 << (n % 8)
	}
	body, err := fastjson.Marshal(&remoting.BatchAckBody{BrokerName: brokerName, Acks: []remoting.BatchAck{{
		BitSet: base64.StdEncoding.EncodeToString(bits), ConsumerGroup: group, InvisibleTime: rc.Invisible, PopTime: rc.PopTime, QueueID: rc.Queue,
		Retry: rc.Kind, ReviveQueueID: rc.ReviveQueue, StartOffset: rc.Start, Topic: string(ms[0].Topic),
	}}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.ok(remoting.ReqBatchAckMessage, nil, body)
}

// A field, attribute or key that is not honoured is refused by its name when it is set, with code 3 or 29. Apache's broker serves
// or overlooks these.
func TestWhatIsNotHonouredIsRefused(t *testing.T) {
	t.Parallel()
	p := newRawPeer(t, startCluster(t).broker) // Apache's does what it is told
	topic, group := rawNames("refused")
	p.createTopic(topic, 1)
	p.createGroup(group)
	attributes := func(text string) any {
		return &remoting.CreateTopicHeader{
			Topic: fmt.Sprintf("%s_%d", topic, len(text)), DefaultTopic: "TBW102", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: "SINGLE_TAG", Attributes: text,
		}
	}
	groupOf := func(more string) []byte {
		return fmt.Appendf(nil, `{"groupName":%q,"consumeEnable":true,"retryQueueNums":1,"retryMaxTimes":16,%s}`, group+"x", more)
	}
	for _, tt := range []struct {
		name   string
		code   int32
		head   any
		fields [2]string
		body   []byte
	}{
		{name: "cleanup.policy", code: remoting.ReqUpdateAndCreateTopic, head: attributes("+cleanup.policy=COMPACTION")},
		{name: "queue.type", code: remoting.ReqUpdateAndCreateTopic, head: attributes("+queue.type=RocksDBCQ")},
		{name: "message.type", code: remoting.ReqUpdateAndCreateTopic, head: attributes("+message.type=LITE")},
		{name: "reserve.time", code: remoting.ReqUpdateAndCreateTopic, head: attributes("+reserve.time=3600000")},
		{name: "lite.sub.model", code: remoting.ReqUpdateAndCreateSubscriptionGroup, body: groupOf(`"attributes":{"+lite.sub.model":"Exclusive"}`)},
		{name: "subscriptionDataSet", code: remoting.ReqUpdateAndCreateSubscriptionGroup, body: groupOf(`"subscriptionDataSet":[{"topic":"T","subString":"*"}]`)},
		{name: "transientStorePoolEnable", code: remoting.ReqUpdateBrokerConfig, body: []byte("transientStorePoolEnable=true\n")},
		{name: "aclEnable", code: remoting.ReqUpdateBrokerConfig, body: []byte("aclEnable=true\n")},
		{name: "disableConsumeIfConsumerReadSlowly", code: remoting.ReqUpdateBrokerConfig, body: []byte("disableConsumeIfConsumerReadSlowly=true\n")},
		{name: "liteTopic", code: remoting.ReqPullMessage, head: pullOf(group, topic, 0, 0), fields: [2]string{"liteTopic", "L"}},
		{name: "liteTopic", code: remoting.ReqSearchOffsetByTimestamp, head: &remoting.SearchOffsetHeader{Topic: topic}, fields: [2]string{"liteTopic", "L"}},
	} {
		req := remoting.NewRequest(tt.code, tt.head)
		if tt.fields[0] != "" {
			req.Fields.Set(tt.fields[0], tt.fields[1])
		}
		req.Body = tt.body
		resp, err := p.Call(t.Context(), p.addr, req)
		if err != nil {
			t.Fatal(err)
		}
		refused := resp.Code == remoting.RespRequestCodeNotSupported || resp.Code == remoting.RespInvalidParameter
		if reference() {
			t.Logf("%s in %s: %s %s", tt.name, remoting.RequestName(tt.code), remoting.ResponseName(resp.Code), resp.Remark)
		} else if !refused || !strings.Contains(resp.Remark, tt.name) {
			t.Errorf("%s in %s: %s: %s", tt.name, remoting.RequestName(tt.code), remoting.ResponseName(resp.Code), resp.Remark)
		}
	}
}

// What a broker knows of the filters of a group outlives it: it is saved, and read again after a restart.
func TestFilterDataIsKept(t *testing.T) {
	t.Parallel()
	ns := freePort(t)
	mqxNameserver(t, ns).cleanup(t)
	spec := brokerSpec{port: freePort(t), namesrv: loopback(ns), store: filepath.Join(testDir(t, "filters"), "store"), extra: []string{"enablePropertyFilter=true"}}
	first := mqxBroker(t, spec)
	first.cleanup(t)
	topic, group := rawNames("filters")
	const expression = "colour = 'red' AND price > 3"
	kept := func(when string, groups ...string) {
		t.Helper()
		var all struct {
			FilterDataByTopic map[string]struct {
				GroupFilterData map[string]struct {
					Expression    string `json:"expression"`
					ClientVersion int64  `json:"clientVersion"`
				} `json:"groupFilterData"`
			} `json:"filterDataByTopic"`
		}
		text, err := os.ReadFile(filepath.Join(spec.store, "config", "consumerFilter.json"))
		if err == nil {
			err = json.Unmarshal(text, &all)
		}
		for _, g := range groups {
			if data := all.FilterDataByTopic[topic].GroupFilterData[g]; err != nil || data.Expression != expression || data.ClientVersion != 7 {
				t.Fatalf("%s: %s: %v %s", when, g, err, text)
			}
		}
	}
	subscribe := func(group string) {
		p := newRawPeer(t, loopback(spec.port))
		p.createTopic(topic, 1)
		p.beat(remoting.HeartbeatData{ClientID: group + "@raw", ProducerDataSet: []remoting.ProducerData{}, ConsumerDataSet: []remoting.ConsumerData{{
			GroupName: group, ConsumeType: remoting.ConsumePassively, MessageModel: remoting.Clustering, ConsumeFromWhere: remoting.ConsumeFromLastOffset,
			SubscriptionDataSet: []remoting.SubscriptionData{{Topic: topic, SubString: expression, SubVersion: 7, ExpressionType: "SQL92"}},
		}}})
	}
	subscribe(group)
	waitRegistered(t, loopback(ns))
	waitTopic(t, loopback(ns), topic)
	second := takeOver(t, first, mqxBroker, spec, loopback(ns), topic)
	kept("after the first stop", group)
	subscribe(group + "_other")                                       // so that it is written anew
	if err := second.stop(t, stopLimit); err != nil && !reference() { // a JVM ends with 143
		t.Fatal(err)
	}
	kept("by a broker that had only read it", group, group+"_other")
}

// A client that sends heartbeats of the second version, which leave out what has not changed, stays a member with its
// subscription and goes on.
func TestHeartbeatV2(t *testing.T) {
	if !reference() && os.Getenv("MQX_E2E_ALL") == "" {
		t.Skip("MQX_E2E_ALL=1 runs it: it starts a JVM of its own")
	}
	t.Parallel()
	c := sharedCluster(t)
	d := startDriver(t, "-Ddriver.poll=500")
	topic, group := rawNames("beat2")
	createTopic(t, c.namesrv, topic, 2)
	d.call(t, "push", map[string]any{"id": group, "namesrv": c.namesrv, "group": group, "topic": topic, "heartbeatV2": true, "expression": "a || b"}, nil)
	defer d.call(t, "stop", map[string]any{"id": group}, nil)
	var want []outgoing
	for round := range 3 {
		ms := numbered(fmt.Sprintf("round %d", round), 6)
		for i := range ms {
			ms[i].Tag = []string{"a", "b", "c"}[i%3]
		}
		sharedDriver(t).send(t, c.namesrv, topic, "sync", ms, nil)
		want = append(want, slices.DeleteFunc(ms, func(m outgoing) bool { return m.Tag == "c" })...)
		waitFor(t, arrival, "the messages", func() (bool, string) {
			var got []incoming
			d.call(t, "received", map[string]any{"id": group}, &got)
			why := missing(want, got)
			return why == "", why
		})
		time.Sleep(2 * time.Second) // some heartbeats
		if text := sharedDriver(t).admin(t, "consumerConnection", "-n", c.namesrv, "-g", group); !strings.Contains(text, topic) || !strings.Contains(text, "a || b") {
			t.Errorf("the connection after round %d:\n%s", round, text)
		}
	}
}
