package broker

import (
	"strconv"

	"mqx/broker/pop"
	"mqx/message"
	"mqx/store"
)

// checkpointPut is the put of a checkpoint. It is a timer message: it lies in
// the timer topic until just before its revive time and then in the revive
// topic, unless it is due already. The error says that the timer does not take
// it: the time is too far away, or too many are due then.
func (s *popService) checkpointPut(c *pop.Checkpoint, reviveQueue int32, user any) (*store.Put, *refusedError) {
	return s.put(pop.TagCheckpoint, c.UniqKey(), c.AppendBody(nil), reviveQueue, c.DeliverTime(), user)
}

// ackPut is the put of an ack, which is due at the end of the invisible time.
func (s *popService) ackPut(a *pop.Ack, reviveQueue int32, reviveTime int64, user any) (*store.Put, *refusedError) {
	return s.put(a.Tag(), a.UniqKey(), a.AppendBody(nil), reviveQueue, reviveTime, user)
}

func (s *popService) put(tag, key string, body []byte, reviveQueue int32, deliver int64, user any) (*store.Put, *refusedError) {
	now, host := s.b.now(), s.b.at().storeHost
	props := make([]byte, 0, len(key)+160)
	props = message.AppendProperty(props, message.PropTags, tag)
	props = message.AppendProperty(props, message.PropUniqKey, key)
	props = message.AppendProperty(props, message.PropTimerDeliverMs, strconv.FormatInt(deliver, 10))
	p := &store.Put{WaitFlush: true, User: user, Record: message.Record{
		QueueID: reviveQueue, BornTimestamp: now.UnixMilli(), BornHost: host, StoreHost: host,
		Body: body, Topic: []byte(s.reviveTopic), Properties: props,
	}}
	if e := s.b.divert(&p.Record, now); e != nil {
		s.b.quiet.Warn("the timer did not take a record of pop consumption", "reason", e.Text)
		return nil, e
	}
	return p, nil
}
