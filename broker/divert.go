package broker

import (
	"strconv"
	"time"

	"mqx/broker/delay"
	"mqx/message"
	"mqx/remoting"
)

// divert turns a message that asks to be delivered later towards the topic
// where it waits: SCHEDULE_TOPIC_XXXX for DELAY, rmq_sys_wheel_timer for the
// TIMER properties. It is the one place for that; Apache does it in a hook
// before every put, so it holds for what is sent, sent back and committed. A
// prepared or rolled back message of a transaction is never delayed. With both
// kinds of properties the level wins and the timer properties go.
//
// It changes Topic, QueueID and Properties of rec, which get new memory. When
// it returns an error, the message is to be refused with it; rec may have lost
// properties then.
func (b *Broker) divert(rec *message.Record, now time.Time) *refusedError {
	switch message.Transaction(rec.SysFlag) {
	case message.TransactionPrepared, message.TransactionRollback:
		return nil
	}
	level, err := delay.LevelIn(rec.Properties)
	if err != nil {
		return refuse(remoting.RespMessageIllegal, "%v; nothing was stored", err)
	}
	if level <= 0 {
		return b.divertTimer(rec, now)
	}
	props := rec.Properties
	for _, name := range [...]string{message.PropTimerDeliverMs, message.PropTimerDelaySec, message.PropTimerDelayMs} {
		props = message.DeleteProperty(props, name)
	}
	if most := b.delayLevels.Cap(level); most != level {
		level = most
		props = message.SetProperty(props, message.PropDelay, strconv.Itoa(level))
	}
	rec.Properties = parkedFor(props, rec)
	rec.Topic, rec.QueueID = scheduleTopic, delay.QueueOf(level)
	return nil
}

var scheduleTopic = []byte(message.TopicSchedule)

// parkedFor are the properties of a message that waits elsewhere: where it is
// to go stands in REAL_TOPIC and REAL_QID.
func parkedFor(props []byte, rec *message.Record) []byte {
	props = message.SetProperty(props, message.PropRealTopic, string(rec.Topic))
	return message.SetProperty(props, message.PropRealQueueID, strconv.Itoa(int(rec.QueueID)))
}

// divertTimer is divert for the TIMER properties.
func (b *Broker) divertTimer(rec *message.Record, _ time.Time) *refusedError {
	if _, out := message.Property(rec.Properties, message.PropTimerOutMs); out || string(rec.Topic) == message.TopicTimer {
		return nil // it has been delayed already
	}
	for _, name := range [...]string{message.PropTimerDeliverMs, message.PropTimerDelaySec, message.PropTimerDelayMs, message.PropTimerDelUniqKey} {
		if _, ok := message.Property(rec.Properties, name); ok {
			return refuse(remoting.RespMessageIllegal, "timer messages (%s) are not served by this broker yet; nothing was stored", name)
		}
	}
	return nil
}
