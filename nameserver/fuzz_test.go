package nameserver

import (
	"testing"

	"mqx/internal/testkit"
	"mqx/remoting"
)

// FuzzRegistration takes frames as brokers send them through decoding into the tables.
func FuzzRegistration(f *testing.F) {
	for _, name := range []string{"broker_registration_JSON", "broker_registration_ROCKETMQ", "ha_master_slave_JSON"} {
		for _, fr := range testkit.GoldenWire(f, name) {
			if fr.Kind == testkit.WireFrameKind && fr.Dir == "c2s" && fr.Code == remoting.ReqRegisterBroker {
				f.Add(fr.Raw)
			}
		}
	}
	compressed := remoting.NewRequest(remoting.ReqRegisterBroker, &remoting.RegisterBrokerHeader{
		BrokerName: "b", BrokerAddr: "a:1", ClusterName: "c", HAServerAddr: "a:2", Compressed: true,
	})
	var err error
	if compressed.Body, err = remoting.EncodeRegisterBroker(reg(0, "a:1", 1, "x", "y").body, true, remoting.Version); err != nil {
		f.Fatal(err)
	}
	frame, err := compressed.AppendFrame(nil, remoting.SerializeJSON)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(frame)
	f.Fuzz(func(t *testing.T, frame []byte) {
		var c remoting.Command
		if c.Decode(frame) != nil {
			return
		}
		r, err := decodeRegistration(&c)
		if err != nil {
			return
		}
		r.conn = 1
		tb := newTable(func(string) {})
		for range 2 {
			if _, err := tb.register(r, rules{supportActingMaster: true, replaceTopics: true, notifyMinID: true}, t0); err != nil {
				return
			}
		}
		for _, topic := range tb.allTopics() {
			if route := tb.route(topic, rules{supportActingMaster: true}); route != nil {
				if _, err := route.Marshal(remoting.Version, false); err != nil {
					t.Fatalf("cannot write route of %q: %v", topic, err)
				}
			}
		}
		tb.depart(tb.ofConns([]uint64{1}), rules{})
		if n := len(tb.brokers) + len(tb.live) + len(tb.topics) + len(tb.clusters); n != 0 {
			t.Fatalf("%d entries left after the only broker went", n)
		}
	})
}
