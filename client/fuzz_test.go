package client

import (
	"testing"

	"mqx/internal/fastjson"
	"mqx/internal/testkit"
	"mqx/remoting"
)

// answers adds the answers to requests of a code from recorded conversations.
func answers(f *testing.F, code int32, names ...string) {
	f.Helper()
	for _, name := range names {
		for _, fr := range testkit.GoldenWire(f, name) {
			if fr.Kind == testkit.WireFrameKind && fr.RequestCode != nil && *fr.RequestCode == code {
				f.Add(fr.Raw)
			}
		}
	}
}

// FuzzPullAnswer reads what a broker may send as the answer to a pull.
func FuzzPullAnswer(f *testing.F) {
	answers(f, remoting.ReqPullMessage, "java_push_clustering_JSON", "java_pull_ROCKETMQ", "java_producer_JSON")
	all, _ := newFilter("*", "")
	f.Fuzz(func(t *testing.T, frame []byte) {
		var c remoting.Command
		if c.Decode(frame) != nil {
			return
		}
		s := &pullSpec{queue: remoting.MessageQueue{Topic: "T"}, filter: &all}
		p, err := readPull(s, "addr", &c)
		if err == nil && p == nil {
			t.Fatal("neither an answer nor an error")
		}
	})
}

// FuzzRoute derives queues from what a name server may send.
func FuzzRoute(f *testing.F) {
	answers(f, remoting.ReqGetRouteInfoByTopic, "java_lite_pull_JSON", "go_push_JSON", "ha_master_slave_ROCKETMQ")
	f.Fuzz(func(t *testing.T, frame []byte) {
		var c remoting.Command
		if c.Decode(frame) != nil {
			return
		}
		var d remoting.TopicRouteData
		if fastjson.Unmarshal(c.Body, &d) != nil {
			return
		}
		r := newRoute("T", &d)
		for _, q := range r.read {
			if _, ok := r.addr(q.BrokerName, 0); !ok {
				t.Fatalf("queue %v has no address", q)
			}
		}
		r.anyAddr()
	})
}

// FuzzLoadAnswers feeds the load generator's own reader of frames.
func FuzzLoadAnswers(f *testing.F) {
	answers(f, remoting.ReqSendMessageV2, "java_producer_JSON", "java_producer_ROCKETMQ")
	answers(f, remoting.ReqPullMessage, "java_push_clustering_JSON")
	f.Fuzz(func(t *testing.T, frame []byte) {
		n, ok, err := remoting.FrameLen(frame)
		if err != nil || !ok || n != len(frame) || n < 8 {
			return
		}
		var scratch remoting.Command
		if _, _, _, body, err := answerHead(frame, &scratch); err == nil {
			s := &consumeSource{found: func(*loadQueue, loadMark, bool) {}}
			s.walk(&readSlot{queue: &loadQueue{end: 1 << 62}}, body)
		}
	})
}
