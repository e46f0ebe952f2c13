package broker

import (
	"mqx/message"
	"mqx/remoting"
)

// systemTopicRules is what the names and sizes of system topics depend on.
type systemTopicRules struct {
	Cluster, Broker    string
	AutoCreate         bool
	DefaultQueues      int32
	ClusterTopicEnable bool
	BrokerTopicEnable  bool
	TraceTopic         string // "" for none
	ReviveQueues       int32
	DelayLevels        int32
}

// systemTopics are the topics every broker has, Apache's list.
func systemTopics(r systemTopicRules) []remoting.TopicConfig {
	topic := func(name string, queues, perm int32) remoting.TopicConfig {
		c := remoting.NewTopicConfig(name)
		c.ReadQueueNums, c.WriteQueueNums, c.Perm = queues, queues, perm
		return c
	}
	open := func(enabled bool) int32 {
		if enabled {
			return permInherit | permRead | permWrite
		}
		return permInherit
	}
	rw := int32(permRead | permWrite)
	out := []remoting.TopicConfig{
		topic(message.TopicSelfTest, 1, rw),
		topic(message.TopicBenchmark, 1024, rw),
		topic(r.Cluster, 16, open(r.ClusterTopicEnable)),
		topic(r.Broker, 1, open(r.BrokerTopicEnable)),
		topic(message.TopicOffsetMoved, 1, rw),
		topic(message.TopicSchedule, r.DelayLevels, rw),
		topic(replyTopic(r.Cluster), 1, rw),
		topic(message.TopicReviveLogPrefix+r.Cluster, r.ReviveQueues, rw),
		topic(message.TopicSyncBrokerMember+r.Broker, 1, permInherit),
		topic(message.TopicHalf, 1, rw),
		topic(message.TopicHalfOp, 1, rw),
		topic(message.TopicRocksDBHalf, 1, rw),
		topic(message.TopicRocksDBHalfOp, 1, rw),
		topic(message.TopicTimer, 1, rw),
	}
	if r.AutoCreate {
		out = append(out, topic(message.TopicAutoCreate, r.DefaultQueues, permInherit|permRead|permWrite))
	}
	if r.TraceTopic != "" {
		out = append(out, topic(r.TraceTopic, 1, rw))
	}
	return out
}

func replyTopic(cluster string) string { return cluster + message.TopicReplySuffix }

// isSystem reports whether the broker keeps the topic for itself.
func (r *systemTopicRules) isSystem(topic string) bool {
	return message.IsSystemTopic(topic) || topic == r.Cluster || topic == r.Broker || topic == replyTopic(r.Cluster) ||
		(r.TraceTopic != "" && topic == r.TraceTopic)
}
