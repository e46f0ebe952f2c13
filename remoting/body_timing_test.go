package remoting

import (
	"fmt"
	"testing"

	"mqx/internal/fastjson"
)

func BenchmarkRouteMarshal(b *testing.B) {
	route := &TopicRouteData{
		BrokerDatas: []BrokerData{{BrokerAddrs: map[int64]string{0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}, BrokerName: "broker-a", Cluster: "DefaultCluster"}},
		QueueDatas:  []QueueData{{BrokerName: "broker-a", Perm: 6, ReadQueueNums: 8, WriteQueueNums: 8}},
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := route.Marshal(Version, false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHeartbeatUnmarshal(b *testing.B) {
	hb := HeartbeatData{ClientID: "10.0.0.1@4711", ProducerDataSet: []ProducerData{{"pg"}}, ConsumerDataSet: []ConsumerData{{
		ConsumeFromWhere: ConsumeFromLastOffset, ConsumeType: ConsumePassively, GroupName: "cg", MessageModel: Clustering,
		SubscriptionDataSet: []SubscriptionData{{SubString: "*", Topic: "T", ExpressionType: ExpressionTag}, {SubString: "*", Topic: "%RETRY%cg", ExpressionType: ExpressionTag}},
	}}}
	text, err := fastjson.Marshal(hb)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var got HeartbeatData
		if err := fastjson.Unmarshal(text, &got); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRegisterMarshal(b *testing.B) {
	body := &RegisterBrokerBody{Topics: TopicConfigAndMappingTable{TopicConfigTable: map[string]TopicConfig{}}}
	for i := range 1000 {
		name := fmt.Sprintf("topic-%d", i)
		body.Topics.TopicConfigTable[name] = NewTopicConfig(name)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := EncodeRegisterBroker(body, false, Version); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRegisterUnmarshal(b *testing.B) {
	body := &RegisterBrokerBody{Topics: TopicConfigAndMappingTable{TopicConfigTable: map[string]TopicConfig{}}}
	for i := range 1000 {
		name := fmt.Sprintf("topic-%d", i)
		body.Topics.TopicConfigTable[name] = NewTopicConfig(name)
	}
	text, err := EncodeRegisterBroker(body, false, Version)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := DecodeRegisterBroker(text, false, Version); err != nil {
			b.Fatal(err)
		}
	}
}
