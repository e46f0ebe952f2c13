package broker

import (
	"fmt"
	"strings"
	"time"

	"mqx/broker/stats"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// handleViewStats serves VIEW_BROKER_STATS_DATA.
func (b *Broker) handleViewStats(r *server.Request) {
	var h remoting.ViewBrokerStatsDataHeader
	if !header(r, &h) {
		return
	}
	c, ok := b.stats.Lookup(h.StatsName, h.StatsKey)
	if !ok || c.Total() == 0 {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("The stats <%s> <%s> not exist", h.StatsName, h.StatsKey))
		return
	}
	item := func(i stats.Item) remoting.BrokerStatsItem {
		return remoting.BrokerStatsItem{AvgPT: i.AvgPT, Sum: i.Sum, TPS: i.TPS}
	}
	p := newReply(remoting.RespSuccess, "")
	b.body(p, &remoting.BrokerStatsData{
		StatsMinute: item(c.Minute()), StatsHour: item(c.Hour()), StatsDay: item(c.Day()),
	})
	p.to(r)
}

// getCounters are the counters of a group's reads of a topic.
type getCounters struct{ nums, size *stats.Counter }

// countGet counts what a pull returned.
func (b *Broker) countGet(topic, group string, res *store.GetResult) {
	c := b.getCounters(topic, group)
	c.nums.AddTimes(int64(res.Count), 1)
	c.size.AddTimes(int64(res.Bytes), 1)
	b.brokerGets.AddTimes(int64(res.Count), 1)
}

// getCounters are the counters of what a group reads of a topic.
func (b *Broker) getCounters(topic, group string) getCounters {
	k := offsetKey{topic, group}
	b.getMu.RLock()
	c, ok := b.getMu.counters[k]
	b.getMu.RUnlock()
	if !ok {
		c = getCounters{nums: b.stats.Counter(stats.GroupGetNums, k.String()), size: b.stats.Counter(stats.GroupGetSize, k.String())}
		b.getMu.Lock()
		b.getMu.counters[k] = c
		b.getMu.Unlock()
	}
	return c
}

// dropCounters forgets the counters of a deleted topic.
func (b *Broker) dropCounters(topic string) {
	b.getMu.Lock()
	for k := range b.getMu.counters {
		if k.topic == topic {
			delete(b.getMu.counters, k)
		}
	}
	b.getMu.Unlock()
	b.stats.Remove(func(name, key string) bool {
		switch name {
		case stats.GroupGetNums, stats.GroupGetSize, stats.GroupAckNums, stats.GroupCkNums:
			return strings.HasPrefix(key, topic+"@")
		}
		return false
	})
}

// consumeTPS is the rate at which a group reads a topic.
func (b *Broker) consumeTPS(topic, group string) float64 {
	if c, ok := b.stats.Lookup(stats.GroupGetNums, topic+"@"+group); ok {
		return c.Minute().TPS
	}
	return 0
}

// consumeStats is where a group stands in the queues of a topic; nil when the
// topic does not concern it: unknown, or not among what its online members
// subscribe to. The error is that of the disk.
func (b *Broker) consumeStats(group, topic string, withPull bool) (*remoting.ConsumeStats, error) {
	tp := b.topics.Get(topic)
	if tp == nil {
		return nil, nil
	}
	if subs := b.consumers.Subscriptions(group); len(subs) > 0 {
		if _, ok := subs[topic]; !ok {
			return nil, nil
		}
	}
	out := &remoting.ConsumeStats{OffsetTable: map[remoting.MessageQueue]remoting.OffsetWrapper{}}
	static := b.statics.Get(topic) != nil
	for q := range tp.ReadQueueNums {
		// The consumer's offset first: then the difference is never negative
		// because of the time between the two looks.
		consumed, ok := b.offsets.Committed(topic, group, q)
		if !ok && static {
			consumed = -1 // the group may stand in another stretch: 0 would say that it has read nothing
		} else {
			consumed = max(0, consumed)
		}
		w := remoting.OffsetWrapper{ConsumerOffset: consumed, BrokerOffset: max(0, b.store.MaxOffset(topic, q))}
		if withPull {
			w.PullOffset = max(w.ConsumerOffset, b.offsets.PullOffset(topic, group, q))
		}
		if w.ConsumerOffset > 0 {
			at, err := b.store.StoreTime(topic, q, w.ConsumerOffset-1)
			if err != nil {
				return nil, err
			}
			w.LastTimestamp = max(0, at)
		}
		out.OffsetTable[b.queue(topic, q)] = w
	}
	out.ConsumeTPS = b.consumeTPS(topic, group)
	return out, nil
}

// handleConsumeStats serves GET_CONSUME_STATS.
func (b *Broker) handleConsumeStats(r *server.Request) {
	var h remoting.GetConsumeStatsHeader
	if !header(r, &h) {
		return
	}
	var topics []string
	switch {
	case h.TopicList != "":
		topics = strings.Split(h.TopicList, ";")
	case h.Topic != "":
		topics = []string{h.Topic}
	default:
		topics = b.offsets.Topics(h.ConsumerGroup)
	}
	out := &remoting.ConsumeStats{OffsetTable: map[remoting.MessageQueue]remoting.OffsetWrapper{}}
	for _, topic := range topics {
		if b.cfg().PopNotifyLag {
			b.pops.hold.Rerun(topic, h.ConsumerGroup) // what a waiting pop does not want is no lag
		}
		s, err := b.consumeStats(h.ConsumerGroup, topic, true)
		if err != nil {
			r.Reply(remoting.RespSystemError, err.Error())
			return
		}
		if s == nil {
			continue
		}
		out.ConsumeTPS += s.ConsumeTPS
		for q, w := range s.OffsetTable {
			out.OffsetTable[q] = w
		}
	}
	p := newReply(remoting.RespSuccess, "")
	b.body(p, out)
	p.to(r)
}

// handleBrokerConsumeStats serves GET_BROKER_CONSUME_STATS.
func (b *Broker) handleBrokerConsumeStats(r *server.Request) {
	var h remoting.GetBrokerConsumeStatsHeader
	if !header(r, &h) {
		return
	}
	out := &remoting.ConsumeStatsList{BrokerAddr: b.at().Addr(), ConsumeStatsList: []map[string][]remoting.ConsumeStats{}}
	for _, group := range b.groups.Names() {
		list := []remoting.ConsumeStats{}
		for _, topic := range b.offsets.Topics(group) {
			if tp := b.topics.Get(topic); tp == nil || h.IsOrder && !tp.Order {
				continue
			}
			s, err := b.consumeStats(group, topic, false)
			if err != nil {
				r.Reply(remoting.RespSystemError, err.Error())
				return
			}
			if s == nil {
				continue
			}
			for _, w := range s.OffsetTable {
				out.TotalDiff += w.BrokerOffset - w.ConsumerOffset
			}
			list = append(list, *s)
		}
		out.ConsumeStatsList = append(out.ConsumeStatsList, map[string][]remoting.ConsumeStats{group: list})
	}
	p := newReply(remoting.RespSuccess, "")
	b.body(p, out)
	p.to(r)
}

// handleAllOffsets serves GET_ALL_CONSUMER_OFFSET.
func (b *Broker) handleAllOffsets(r *server.Request) {
	since, slave, err := r.Fields.Int64(remoting.FieldSetBackSince)
	if err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	p := newReply(remoting.RespSuccess, "")
	if slave {
		b.body(p, b.offsets.Told(since))
	} else {
		all := b.offsets.Snapshot()
		b.body(p, &all)
	}
	p.to(r)
}

// handleTimeSpan serves QUERY_CONSUME_TIME_SPAN.
func (b *Broker) handleTimeSpan(r *server.Request) {
	var h remoting.QueryConsumeTimeSpanHeader
	if !header(r, &h) {
		return
	}
	tp := b.topics.Get(h.Topic)
	if tp == nil {
		r.Reply(remoting.RespTopicNotExist, fmt.Sprintf("topic[%s] not exist", h.Topic))
		return
	}
	body := &remoting.QueryConsumeTimeSpanBody{ConsumeTimeSpanSet: []remoting.QueueTimeSpan{}}
	for q := range tp.WriteQueueNums {
		span, err := b.timeSpan(h.Topic, h.Group, q)
		if err != nil {
			r.Reply(remoting.RespSystemError, err.Error())
			return
		}
		body.ConsumeTimeSpanSet = append(body.ConsumeTimeSpanSet, span)
	}
	p := newReply(remoting.RespSuccess, "")
	b.body(p, body)
	p.to(r)
}

// timeSpan is between which times the messages of a queue lie, and where a
// group stands in them.
func (b *Broker) timeSpan(topic, group string, q int32) (span remoting.QueueTimeSpan, err error) {
	mq := b.queue(topic, q)
	span.MessageQueue = &mq
	hi := b.store.MaxOffset(topic, q)
	consumed, _ := b.offsets.Committed(topic, group, q)
	var next int64
	for _, at := range []struct {
		dst    *int64
		offset int64
	}{
		{&span.MinTimeStamp, b.store.MinOffset(topic, q)},
		{&span.MaxTimeStamp, hi - 1},
		{&span.ConsumeTimeStamp, consumed - 1},
		{&next, consumed},
	} {
		if *at.dst, err = b.store.StoreTime(topic, q, at.offset); err != nil {
			return span, err
		}
	}
	if consumed <= 0 {
		span.ConsumeTimeStamp = span.MinTimeStamp
	}
	if consumed < hi && next > 0 {
		span.DelayTime = b.now().UnixMilli() - next
	}
	span.MinTimeStampStr, span.MaxTimeStampStr = javaTime(span.MinTimeStamp), javaTime(span.MaxTimeStamp)
	span.ConsumeTimeStampStr = javaTime(span.ConsumeTimeStamp)
	return span, nil
}

// javaTime is the form yyyy-MM-dd#HH:mm:ss:SSS of a time in ms.
func javaTime(ms int64) string {
	if ms <= 0 {
		return ""
	}
	t := time.UnixMilli(ms)
	return t.Format("2006-01-02#15:04:05:") + fmt.Sprintf("%03d", t.Nanosecond()/1e6)
}

// handleCloneOffset serves CLONE_GROUP_OFFSET.
func (b *Broker) handleCloneOffset(r *server.Request) {
	var h remoting.CloneGroupOffsetHeader
	if !header(r, &h) {
		return
	}
	if err := message.ValidateGroup(h.DestGroup); err != nil {
		r.Reply(remoting.RespInvalidParameter, err.Error())
		return
	}
	// Apache answers both with success, and does nothing.
	if h.Topic != "" && b.topics.Get(h.Topic) == nil {
		r.Reply(remoting.RespTopicNotExist, fmt.Sprintf("no offsets of topic %s can be copied: it does not exist", h.Topic))
		return
	}
	topics := b.offsets.Topics(h.SrcGroup)
	if len(topics) == 0 && b.groups.Get(h.SrcGroup) == nil {
		r.Reply(remoting.RespSubscriptionGroupNotExist, fmt.Sprintf("no offsets of group %s can be copied: it does not exist", h.SrcGroup))
		return
	}
	if h.Topic != "" {
		topics = []string{h.Topic}
	}
	for _, topic := range topics {
		if b.topics.Get(topic) == nil {
			continue
		}
		if !h.Offline {
			subs := b.consumers.Subscriptions(h.SrcGroup)
			if _, ok := subs[topic]; len(subs) > 0 && !ok {
				continue
			}
		}
		b.offsets.Clone(h.SrcGroup, h.DestGroup, topic)
	}
	if err := b.offsets.Save(); err != nil {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the offsets could not be saved: %v", err))
		return
	}
	r.Reply(remoting.RespSuccess, "")
}
