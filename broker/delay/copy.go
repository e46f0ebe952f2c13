package delay

import (
	"fmt"
	"strconv"

	"mqx/message"
)

// Again turns what Deliver has made into a record that waits once more, in a level: it comes to the same topic and queue.
func Again(rec message.Record, level int) message.Record {
	rec.Properties = message.SetProperty(rec.Properties, message.PropDelay, strconv.Itoa(level))
	rec.Topic, rec.QueueID = []byte(message.TopicSchedule), QueueOf(level)
	return rec
}

// Deliver turns the record of a waiting message into the one to be stored now:
// the real topic and queue, and everything else as it is. The property text
// stays to the byte, DELAY and REAL_* included (docs/format/delay.md); the store
// host stays that of the first broker. Body, topic and properties alias rec.
//
// An error means that the record does not say where it is to go: it never will.
func Deliver(rec message.View) (message.Record, error) {
	props := rec.Properties()
	topic, ok := message.Property(props, message.PropRealTopic)
	if !ok {
		return message.Record{}, fmt.Errorf("the message has no %s", message.PropRealTopic)
	}
	switch string(topic) {
	case message.TopicHalf, message.TopicSchedule:
		return message.Record{}, fmt.Errorf("the message's %s is %s, where nothing is delivered to", message.PropRealTopic, topic)
	}
	text, _ := message.Property(props, message.PropRealQueueID)
	queue, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil || queue < 0 {
		return message.Record{}, fmt.Errorf("the message's %s is %q", message.PropRealQueueID, text)
	}
	return message.Record{
		QueueID: int32(queue), Flag: rec.Flag(), SysFlag: rec.SysFlag(),
		BornTimestamp: rec.BornTimestamp(), BornHost: rec.BornHost(), StoreHost: rec.StoreHost(),
		ReconsumeTimes: rec.ReconsumeTimes(), Body: rec.Body(), Topic: topic, Properties: props,
	}, nil
}
