package nameserver

import "mqx/remoting"

// touchBroker reports every topic of b as changed.
func (t *table) touchBroker(b *brokerEntry) {
	for name := range b.topics {
		t.changed(name)
	}
}

// setQueues stores the queues of a topic on one broker.
func (t *table) setQueues(topic string, q remoting.QueueData) {
	e := t.topics[topic]
	if e == nil {
		e = &topicEntry{queues: map[string]remoting.QueueData{}}
		t.topics[topic] = e
	}
	if old, ok := e.queues[q.BrokerName]; ok && old == q {
		return
	}
	e.queues[q.BrokerName] = q
	if b := t.brokers[q.BrokerName]; b != nil {
		b.topics[topic] = struct{}{}
	}
	t.changed(topic)
}

// removeQueues removes the queues of a topic on one broker, and the topic with its last.
func (t *table) removeQueues(topic, broker string) {
	e := t.topics[topic]
	if e == nil {
		return
	}
	if b := t.brokers[broker]; b != nil {
		delete(b.topics, topic)
	}
	if _, ok := e.queues[broker]; !ok {
		return
	}
	delete(e.queues, broker)
	delete(e.mappings, broker)
	if len(e.queues) == 0 {
		delete(t.topics, topic)
	}
	t.changed(topic)
}

// setMapping stores the mapping of a static topic under the broker that it names.
func (t *table) setMapping(topic string, m remoting.TopicQueueMappingInfo) {
	e := t.topics[topic]
	if e == nil {
		return // no queues of it are known: nothing would ever show it
	}
	if e.mappings == nil {
		e.mappings = map[string]remoting.TopicQueueMappingInfo{}
	}
	e.mappings[m.BName] = m
	t.changed(topic)
}

// deleteTopic removes a topic from the routes of all brokers, or of those of a cluster.
func (t *table) deleteTopic(topic, cluster string) {
	e := t.topics[topic]
	if e == nil {
		return
	}
	for broker := range e.queues {
		if cluster != "" {
			if _, ok := t.clusters[cluster][broker]; !ok {
				continue
			}
		}
		t.removeQueues(topic, broker)
	}
}

// registerTopic adds queues of a topic, up to the first broker that is not known.
func (t *table) registerTopic(topic string, queues []remoting.QueueData) {
	for _, q := range queues {
		if t.brokers[q.BrokerName] == nil {
			return
		}
		t.setQueues(topic, q)
	}
}

// changeWritePerm takes the write permission of all topics of a broker away or gives
// reading and writing back. It returns the number of topics.
func (t *table) changeWritePerm(broker string, give bool) int {
	b := t.brokers[broker]
	if b == nil {
		return 0
	}
	for name := range b.topics {
		q := t.topics[name].queues[broker]
		if give {
			q.Perm |= permRead | permWrite
		} else {
			q.Perm &^= permWrite
		}
		t.setQueues(name, q)
	}
	return len(b.topics)
}
