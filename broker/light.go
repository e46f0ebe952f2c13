package broker

import (
	"strings"

	"mqx/broker/stats"
	"mqx/internal/fastjson"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
)

// Light queues (enableLmq with enableMultiDispatch) are views on records of other topics, which name them in
// INNER_MULTI_DISPATCH. They stand in no table: each has one queue that everybody may read and write. A group whose name
// is that of a light queue is one as well, and its offsets stand apart in lmqConsumerOffset.json, which is Apache's file
// for all offsets while light queues are on.

// lightStat is the name under which the figures of all light queues are counted.
const lightStat = message.LMQTopicPrefix

// lightTopic is the configuration of a light queue.
func (t *topicTable) lightTopic(name string) *topic {
	c := remoting.NewTopicConfig(name)
	c.ReadQueueNums, c.WriteQueueNums, c.Perm = 1, 1, permRead|permWrite
	tp := &topic{
		TopicConfig: c, name: []byte(name),
		puts: t.stats.Counter(stats.TopicPutNums, lightStat), putBytes: t.stats.Counter(stats.TopicPutSize, lightStat),
	}
	tp.saved.Store(true)
	return tp
}

// lightGroup is the configuration of a group of light queues.
func lightGroup(name string) *group {
	g := newGroup(remoting.NewSubscriptionGroupConfig(name))
	g.saved.Store(true)
	return g
}

// isLight reports whether name is that of a light queue or of a group of them, one that may exist.
func isLight(name string) bool { return message.IsLMQ(name) && message.ValidateTopic(name) == nil }

// file is where the offsets are kept.
func (t *offsetTable) file() string {
	if t.light != "" {
		return t.light
	}
	return t.path
}

// loadLight enters the offsets of groups of light queues.
func (t *offsetTable) loadLight(table map[string]int64) {
	for name, off := range table {
		if topic, group, ok := splitOffsetKey(name); ok {
			t.set(offsetKey{topic, group}, 0, off)
		}
	}
}

// inFile moves the offsets of groups of light queues to where the file has them.
func (t *offsetTable) inFile(all remoting.ConsumerOffsets) remoting.ConsumerOffsets {
	if t.light == "" {
		return all
	}
	all.LMQOffsetTable = map[string]int64{}
	for name, queues := range all.OffsetTable {
		_, group, _ := splitOffsetKey(name)
		if !message.IsLMQ(group) {
			continue
		}
		if off, ok := queues[0]; ok {
			all.LMQOffsetTable[name] = off
		}
		delete(all.OffsetTable, name)
		delete(all.GroupTopicMap, group)
	}
	return all
}

// batchQueues tells which topics have batch queues. While the store opens, the table of topics is not loaded yet: then
// the file says so.
func (b *Broker) batchQueues() func(topic string) bool {
	var read remoting.TopicConfigTable
	for _, path := range []string{b.configFile("topics.json"), b.configFile("topics.json") + ".bak"} {
		data, err := vfs.ReadFile(b.fsys, path)
		if err == nil && fastjson.Unmarshal(data, &read) == nil && len(read.TopicConfigTable) > 0 {
			break // whatever is wrong with the file is said when the table is loaded
		}
	}
	known := map[string]bool{}
	for name, c := range read.TopicConfigTable {
		if isBatchQueue(c.Attributes) {
			known[name] = true
		}
	}
	return func(topic string) bool {
		if tp := b.topics.Get(topic); tp != nil {
			return isBatchQueue(tp.Attributes)
		}
		return known[topic]
	}
}

func isBatchQueue(attributes map[string]string) bool {
	return strings.EqualFold(attributes["queue.type"], "BatchCQ")
}
