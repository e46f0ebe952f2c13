package broker

import (
	"fmt"
	"slices"
	"strconv"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
)

// handleCreateTopic serves UPDATE_AND_CREATE_TOPIC. It is answered when
// topics.json holds the topic and the name servers that answer know it.
func (b *Broker) handleCreateTopic(r *server.Request) {
	var h remoting.CreateTopicHeader
	if !header(r, &h) {
		return
	}
	b.topics.editing.Lock()
	defer b.topics.editing.Unlock()
	c, err := b.topics.createTopic(&h, b.cfg().ValidateSystemTopic, b.cfg().EnableMixedMessageType)
	if err != nil {
		e := asRefused(err)
		r.Reply(e.Code, e.Text)
		return
	}
	b.putTopics(r, []remoting.TopicConfig{c})
}

// handleCreateTopics serves UPDATE_AND_CREATE_TOPIC_LIST: all or none.
func (b *Broker) handleCreateTopics(r *server.Request) {
	var list remoting.CreateTopicListBody
	if err := fastjson.Unmarshal(r.Body, &list); err != nil {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the body cannot be read: %v", err))
		return
	}
	b.topics.editing.Lock()
	defer b.topics.editing.Unlock()
	out := make([]remoting.TopicConfig, 0, len(list.TopicConfigList))
	for _, c := range list.TopicConfigList {
		changes := signed(c.Attributes)
		c, err := b.topics.checkTopic(c, changes, b.cfg().ValidateSystemTopic, b.cfg().EnableMixedMessageType)
		if err != nil {
			e := asRefused(err)
			r.Reply(e.Code, fmt.Sprintf("topic %q: %s; no topic was changed", c.TopicName, e.Text))
			return
		}
		out = append(out, c)
	}
	b.putTopics(r, out)
}

// putTopics stores topics and answers r when that is done and announced.
func (b *Broker) putTopics(r *server.Request, configs []remoting.TopicConfig) {
	changed := b.topics.Put(configs, func(err error) {
		if err != nil {
			r.Reply(remoting.RespSystemError, fmt.Sprintf("the topic table could not be saved: %v", err))
			return
		}
		b.registrar.Await(func() { b.peers.replicated(partTopics, func() { r.Reply(remoting.RespSuccess, "") }) })
	})
	for _, name := range changed {
		b.log.Info("topic set", "topic", name, "peer", r.Conn().Remote())
	}
}

// handleDeleteTopic serves DELETE_TOPIC_IN_BROKER: the topic, the pop retry
// topics of its groups, its offsets and its queues go.
func (b *Broker) handleDeleteTopic(r *server.Request) {
	var h remoting.DeleteTopicHeader
	if !header(r, &h) {
		return
	}
	if h.Topic == "" {
		r.Reply(remoting.RespInvalidParameter, "The specified topic is blank.")
		return
	}
	if b.cfg().ValidateSystemTopic && b.topics.rules.isSystem(h.Topic) {
		r.Reply(remoting.RespInvalidParameter, fmt.Sprintf("The topic[%s] is conflict with system topic.", h.Topic))
		return
	}
	names := []string{h.Topic}
	if b.cfg().ClearPopRetryTopics {
		for _, g := range b.offsets.Groups(h.Topic) {
			for _, v2 := range []bool{false, true} {
				if name := message.PopRetryTopic(g, h.Topic, v2); b.topics.Get(name) != nil {
					names = append(names, name)
				}
			}
		}
	}
	gone := b.topics.Delete(names, func(err error) {
		if err == nil {
			err = b.dropTopicData(names)
		}
		if err != nil {
			r.Reply(remoting.RespSystemError, fmt.Sprintf("the topic could not be deleted: %v", err))
			return
		}
		b.registrar.Await(func() { r.Reply(remoting.RespSuccess, "") })
	})
	for _, name := range gone {
		b.log.Info("topic deleted", "topic", name, "peer", r.Conn().Remote())
	}
}

// dropTopicData removes all that belongs to topics that are no longer there.
func (b *Broker) dropTopicData(names []string) error {
	if err := b.statics.Delete(names); err != nil {
		return err
	}
	for _, name := range names {
		b.offsets.RemoveTopic(name)
		b.dropCounters(name)
		b.modes.RemoveTopic(name)
		b.broadcasts.Forget(func(topic, _ string) bool { return topic == name })
		b.timers.forget(name)
		if err := b.store.DeleteTopic(name); err != nil {
			return err
		}
		if message.IsRetry(name) {
			b.consumers.Touch(name[len(message.RetryTopicPrefix):])
		}
	}
	b.locks.Sweep(func(topic string) bool { return slices.Contains(names, topic) })
	b.pops.Deleted(names)
	b.hold.Wake(func(_, topic string, _ int32) bool { return slices.Contains(names, topic) })
	return b.offsets.Save()
}

// handleAllTopics serves GET_ALL_TOPIC_CONFIG: everything, or a page of it when
// the request says where to start.
func (b *Broker) handleAllTopics(r *server.Request) {
	all, version := b.topics.All()
	body := &remoting.TopicConfigAndMappingTable{
		DataVersion:        version,
		MappingDataVersion: b.statics.Version(),
		TopicConfigTable:   map[string]remoting.TopicConfig{},
		MappingInfoMap:     map[string]remoting.TopicQueueMappingInfo{},
	}
	p := newReply(remoting.RespSuccess, "")
	from, to, err := page(r, "topicSeq", "maxTopicNum", version, len(all), b.cfg().SplitMetadata, b.cfg().SplitMetadataSize)
	if err != nil {
		p.free()
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	p.int(keyTotalTopics, int64(len(all)))
	for _, c := range all[from:to] {
		body.TopicConfigTable[c.TopicName] = c
	}
	body.MappingDetailMap = b.statics.Details(body.TopicConfigTable)
	b.body(p, body)
	p.to(r)
}

// page is the range of a table that a request asks for. A requester that has
// seen another version of the table starts anew.
func page(r *server.Request, seqField, numField string, version remoting.DataVersion, n int, split bool, size int) (from, to int, err error) {
	seq, has, err := r.Fields.Int32(seqField)
	if err != nil {
		return 0, 0, err
	}
	most, limited, err := r.Fields.Int32(numField)
	if err != nil {
		return 0, 0, err
	}
	if !has || !split {
		return 0, n, nil
	}
	if v, ok := r.Fields.Get("dataVersion"); ok && len(v) > 0 && seq > 0 {
		var seen remoting.DataVersion
		if fastjson.Unmarshal(v, &seen) != nil || seen.Compare(version) != 0 {
			seq = 0
		}
	}
	if limited && most > 0 {
		size = min(size, int(most))
	}
	from = min(max(0, int(seq)), n)
	return from, min(from+size, n), nil
}

// handleTopicConfig serves GET_TOPIC_CONFIG.
func (b *Broker) handleTopicConfig(r *server.Request) {
	var h remoting.GetTopicConfigHeader
	if !header(r, &h) {
		return
	}
	tp := b.topics.Get(h.Topic)
	if tp == nil {
		r.Reply(remoting.RespTopicNotExist, "No topic in this broker. topic: "+h.Topic)
		return
	}
	p := newReply(remoting.RespSuccess, "")
	body := &remoting.TopicConfigAndMapping{TopicConfig: tp.TopicConfig}
	if m := b.statics.Get(h.Topic); m != nil && h.Lo.Or(false) {
		body.MappingDetail = m.Detail()
	}
	b.body(p, body)
	p.to(r)
}

// handleTopicStats serves GET_TOPIC_STATS_INFO.
func (b *Broker) handleTopicStats(r *server.Request) {
	var h remoting.GetTopicStatsInfoHeader
	if !header(r, &h) {
		return
	}
	tp := b.topics.Get(h.Topic)
	if tp == nil {
		r.Reply(remoting.RespTopicNotExist, fmt.Sprintf("topic[%s] not exist", h.Topic))
		return
	}
	body := &remoting.TopicStatsTable{OffsetTable: map[remoting.MessageQueue]remoting.TopicOffset{}}
	for q := range max(tp.ReadQueueNums, tp.WriteQueueNums) {
		lo, hi := b.store.MinOffset(h.Topic, q), b.store.MaxOffset(h.Topic, q)
		lo = max(0, lo)
		o := remoting.TopicOffset{MinOffset: lo, MaxOffset: max(0, hi)}
		if hi > lo {
			at, err := b.store.StoreTime(h.Topic, q, hi-1)
			if err != nil {
				r.Reply(remoting.RespSystemError, err.Error())
				return
			}
			o.LastUpdateTimestamp = max(0, at)
		}
		body.OffsetTable[b.queue(h.Topic, q)] = o
	}
	body.TopicPutTPS = tp.puts.Minute().TPS
	p := newReply(remoting.RespSuccess, "")
	b.body(p, body)
	p.to(r)
}

func (b *Broker) queue(topic string, q int32) remoting.MessageQueue {
	return remoting.MessageQueue{BrokerName: b.cfg().BrokerName, QueueID: q, Topic: topic}
}

// handleWhoConsumes serves QUERY_TOPIC_CONSUME_BY_WHO: groups online on the
// topic and groups with an offset in it.
func (b *Broker) handleWhoConsumes(r *server.Request) {
	var h remoting.QueryTopicConsumeByWhoHeader
	if !header(r, &h) {
		return
	}
	groups := append(b.consumers.GroupsOf(h.Topic), b.offsets.Groups(h.Topic)...)
	slices.Sort(groups)
	groups = slices.Compact(groups)
	p := newReply(remoting.RespSuccess, "")
	b.body(p, &remoting.GroupList{GroupList: append([]string{}, groups...)})
	p.to(r)
}

// handleTopicsOfGroup serves QUERY_TOPICS_BY_CONSUMER.
func (b *Broker) handleTopicsOfGroup(r *server.Request) {
	var h remoting.QueryTopicsByConsumerHeader
	if !header(r, &h) {
		return
	}
	p := newReply(remoting.RespSuccess, "")
	b.body(p, &remoting.TopicList{TopicList: append([]string{}, b.offsets.Topics(h.Group)...), BrokerAddr: b.at().Addr()})
	p.to(r)
}

// handleSystemTopics serves GET_SYSTEM_TOPIC_LIST_FROM_BROKER.
func (b *Broker) handleSystemTopics(r *server.Request) {
	names := message.SystemTopics()
	for _, c := range systemTopics(b.topics.rules) {
		names = append(names, c.TopicName)
	}
	slices.Sort(names)
	p := newReply(remoting.RespSuccess, "")
	b.body(p, &remoting.TopicList{TopicList: slices.Compact(names)})
	p.to(r)
}

// handleCleanUnusedTopics serves CLEAN_UNUSED_TOPIC.
func (b *Broker) handleCleanUnusedTopics(r *server.Request) {
	gone, err := b.store.CleanUnusedTopics(func(topic string) bool { return b.topics.Get(topic) != nil })
	if err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	if len(gone) > 0 {
		b.log.Info("queues of unknown topics removed", "topics", strconv.Itoa(len(gone)))
	}
	r.Reply(remoting.RespSuccess, "")
}

// handleCleanExpiredQueues serves CLEAN_EXPIRED_CONSUMEQUEUE.
func (b *Broker) handleCleanExpiredQueues(r *server.Request) {
	if err := b.store.CleanExpiredQueues(); err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	r.Reply(remoting.RespSuccess, "")
}

// handleDeleteExpired serves DELETE_EXPIRED_COMMITLOG: the cleaner's next
// rounds delete what has expired, whatever the hour.
func (b *Broker) handleDeleteExpired(r *server.Request) {
	b.store.DeleteExpiredNow()
	r.Reply(remoting.RespSuccess, "")
}
