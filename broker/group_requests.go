package broker

import (
	"fmt"
	"maps"
	"slices"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
)

// handleCreateGroup serves UPDATE_AND_CREATE_SUBSCRIPTIONGROUP.
func (b *Broker) handleCreateGroup(r *server.Request) {
	var c remoting.SubscriptionGroupConfig
	if err := fastjson.Unmarshal(r.Body, &c); err != nil {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the body cannot be read: %v", err))
		return
	}
	b.putGroups(r, []remoting.SubscriptionGroupConfig{c})
}

// handleCreateGroups serves UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: all or none.
func (b *Broker) handleCreateGroups(r *server.Request) {
	var list remoting.SubscriptionGroupList
	if err := fastjson.Unmarshal(r.Body, &list); err != nil {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the body cannot be read: %v", err))
		return
	}
	b.putGroups(r, list.GroupConfigList)
}

func (b *Broker) putGroups(r *server.Request, configs []remoting.SubscriptionGroupConfig) {
	err := b.groups.Put(configs, func(err error) {
		if err != nil {
			r.Reply(remoting.RespSystemError, fmt.Sprintf("the group table could not be saved: %v", err))
			return
		}
		r.Reply(remoting.RespSuccess, "")
	})
	if err != nil {
		e := asRefused(err)
		r.Reply(e.Code, e.Text)
		return
	}
	for _, c := range configs {
		b.log.Info("subscription group set", "group", c.GroupName, "peer", r.Conn().Remote())
	}
}

// handleDeleteGroup serves DELETE_SUBSCRIPTIONGROUP.
func (b *Broker) handleDeleteGroup(r *server.Request) {
	var h remoting.DeleteSubscriptionGroupHeader
	if !header(r, &h) {
		return
	}
	b.groups.Delete(h.GroupName, func(err error) {
		if err == nil && h.CleanOffset {
			b.offsets.RemoveGroup(h.GroupName)
			err = b.offsets.Save()
		}
		if err != nil {
			r.Reply(remoting.RespSystemError, fmt.Sprintf("the group could not be deleted: %v", err))
			return
		}
		r.Reply(remoting.RespSuccess, "")
	})
	b.pops.Forget(func(_, group string) bool { return group == h.GroupName })
	b.broadcasts.Forget(func(_, group string) bool { return group == h.GroupName })
	b.consumers.Touch(h.GroupName)
	b.log.Info("subscription group deleted", "group", h.GroupName, "offsets", h.CleanOffset, "peer", r.Conn().Remote())
}

// handleAllGroups serves GET_ALL_SUBSCRIPTIONGROUP_CONFIG, paged as topics.
func (b *Broker) handleAllGroups(r *server.Request) {
	all := b.groups.All()
	names := slices.Sorted(maps.Keys(all.SubscriptionGroupTable))
	from, to, err := page(r, "groupSeq", "maxGroupNum", all.DataVersion, len(names), b.cfg().SplitMetadata, b.cfg().SplitMetadataSize)
	if err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	out := map[string]remoting.SubscriptionGroupConfig{}
	for _, n := range names[from:to] {
		out[n] = all.SubscriptionGroupTable[n]
	}
	all.SubscriptionGroupTable = out
	p := newReply(remoting.RespSuccess, "")
	p.int(keyTotalGroups, int64(len(names)))
	b.body(p, &all)
	p.to(r)
}

// handleGroupConfig serves GET_SUBSCRIPTIONGROUP_CONFIG.
func (b *Broker) handleGroupConfig(r *server.Request) {
	var h remoting.GetSubscriptionGroupConfigHeader
	if !header(r, &h) {
		return
	}
	g := b.groups.Get(h.Group)
	if g == nil {
		r.Reply(remoting.RespSubscriptionGroupNotExist, "No group in this broker, group: "+h.Group)
		return
	}
	p := newReply(remoting.RespSuccess, "")
	b.body(p, &g.SubscriptionGroupConfig)
	p.to(r)
}

// handleGroupForbidden serves UPDATE_AND_GET_GROUP_FORBIDDEN.
func (b *Broker) handleGroupForbidden(r *server.Request) {
	var h remoting.UpdateAndGetGroupForbiddenHeader
	if !header(r, &h) {
		return
	}
	if err := message.ValidateGroup(h.Group); err != nil {
		r.Reply(remoting.RespInvalidParameter, err.Error())
		return
	}
	if err := message.ValidateTopic(h.Topic); err != nil {
		r.Reply(remoting.RespInvalidParameter, err.Error())
		return
	}
	answer := func(err error) {
		if err != nil {
			r.Reply(remoting.RespSystemError, fmt.Sprintf("the group table could not be saved: %v", err))
			return
		}
		readable := !b.groups.Forbidden([]byte(h.Group), []byte(h.Topic))
		p := newReply(remoting.RespSuccess, "")
		b.body(p, &remoting.GroupForbidden{Group: h.Group, Topic: h.Topic, Readable: &readable})
		p.to(r)
	}
	if _, set := r.Fields.Get("readable"); !set {
		answer(nil)
		return
	}
	b.groups.SetForbidden(h.Group, h.Topic, !h.Readable, answer)
}

// handleConsumerConnections serves GET_CONSUMER_CONNECTION_LIST.
func (b *Broker) handleConsumerConnections(r *server.Request) {
	var h remoting.GetConsumerConnectionListHeader
	if !header(r, &h) {
		return
	}
	body := b.consumers.Connection(h.ConsumerGroup)
	if body == nil {
		r.Reply(remoting.RespConsumerNotOnline, fmt.Sprintf("the consumer group[%s] not online", h.ConsumerGroup))
		return
	}
	p := newReply(remoting.RespSuccess, "")
	b.body(p, body)
	p.to(r)
}

// handleProducerConnections serves GET_PRODUCER_CONNECTION_LIST.
func (b *Broker) handleProducerConnections(r *server.Request) {
	var h remoting.GetProducerConnectionListHeader
	if !header(r, &h) {
		return
	}
	list := b.producers.Connections(h.ProducerGroup)
	if list == nil {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the producer group[%s] not exist", h.ProducerGroup))
		return
	}
	p := newReply(remoting.RespSuccess, "")
	b.body(p, &remoting.ProducerConnection{ConnectionSet: list})
	p.to(r)
}

// handleProducers serves GET_ALL_PRODUCER_INFO.
func (b *Broker) handleProducers(r *server.Request) {
	p := newReply(remoting.RespSuccess, "")
	all := b.producers.All()
	b.body(p, &all)
	p.to(r)
}

// handleSubscriptionOf serves QUERY_SUBSCRIPTION_BY_CONSUMER.
func (b *Broker) handleSubscriptionOf(r *server.Request) {
	var h remoting.QuerySubscriptionByConsumerHeader
	if !header(r, &h) {
		return
	}
	body := &remoting.QuerySubscriptionBody{Group: h.Group, Topic: h.Topic}
	if sub, ok := b.consumers.Subscriptions(h.Group)[h.Topic]; ok {
		body.SubscriptionData = &sub
	}
	p := newReply(remoting.RespSuccess, "")
	b.body(p, body)
	p.to(r)
}

// handleLock serves LOCK_BATCH_MQ.
func (b *Broker) handleLock(r *server.Request) {
	var l remoting.LockBatchBody
	if err := fastjson.Unmarshal(r.Body, &l); err != nil {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the body cannot be read: %v", err))
		return
	}
	if b.groups.FindOrCreate(l.ConsumerGroup) == nil {
		r.Reply(remoting.RespSubscriptionGroupNotExist, fmt.Sprintf("subscription group [%s] does not exist", l.ConsumerGroup))
		return
	}
	held := b.locks.Lock(l.ConsumerGroup, l.ClientID, b.lockable(l.MQSet))
	p := newReply(remoting.RespSuccess, "")
	b.body(p, &remoting.LockBatchResponseBody{LockOKMQSet: held})
	p.to(r)
}

// lockable are the queues that exist here: others are not held for anybody, so
// that the table of locks is bounded.
func (b *Broker) lockable(queues []remoting.MessageQueue) []remoting.MessageQueue {
	out, name := queues[:0], b.cfg().BrokerName
	for _, q := range queues {
		tp := b.topics.Get(q.Topic)
		if m := b.statics.Get(q.Topic); m != nil && q.BrokerName == m.Mock() {
			if _, ok := m.Led(q.QueueID); ok && tp != nil {
				out = append(out, q)
			}
			continue
		}
		if tp != nil && q.BrokerName == name && q.QueueID >= 0 && q.QueueID < max(tp.ReadQueueNums, tp.WriteQueueNums) {
			out = append(out, q)
		}
	}
	return out
}

// handleUnlock serves UNLOCK_BATCH_MQ.
func (b *Broker) handleUnlock(r *server.Request) {
	var l remoting.LockBatchBody
	if err := fastjson.Unmarshal(r.Body, &l); err != nil {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the body cannot be read: %v", err))
		return
	}
	b.locks.Unlock(l.ConsumerGroup, l.ClientID, l.MQSet)
	r.Reply(remoting.RespSuccess, "")
}
