// Package retry holds the rules of messages that a consumer could not work on:
// whether they get another attempt and when, or go to the dead letters, and what
// their next record says. Times, counts and records go in, decisions come out.
package retry

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"

	"mqx/message"
)

// firstLevel is the delay level of the first attempt that a consumer asks for
// without a level of its own; each further attempt waits one level longer.
const firstLevel = 3

// Decision is what becomes of a message that was sent back.
type Decision struct {
	DLQ   bool
	Level int // delay level of the next attempt, 0 for the dead letters
}

// Decide is the rule of CONSUMER_SEND_MSG_BACK: times is how often the message
// was delivered in vain before, most how many attempts the group or the request
// allows, level what the consumer asks for (0: by the count, negative: no more
// attempts).
func Decide(times, most, level int32) Decision {
	switch {
	case times >= most || level < 0:
		return Decision{DLQ: true}
	case level == 0:
		return Decision{Level: firstLevel + int(times)}
	}
	return Decision{Level: int(level)}
}

// SendToDLQ is the rule of a message that a client sends to its retry topic
// itself: it has used up its attempts (one more than with a send-back), or its
// group holds queue locks, hence consumes in order, where a message comes here
// only after its last attempt.
func SendToDLQ(times, most int32, ordered bool) bool { return times > most || ordered }

// GroupOf is the group of a retry topic, also of the one of a group and a topic
// that pop consumption uses in its second form (%RETRY%group+topic). The first
// form (group_topic) cannot be told from a group's name.
func GroupOf(retryTopic string) string {
	g := strings.TrimPrefix(retryTopic, message.RetryTopicPrefix)
	if group, topic, ok := strings.Cut(g, "+"); ok && !strings.Contains(topic, "+") && topic != "" {
		return group
	}
	return g
}

// Next is the record of the next attempt, or of the dead letter: a copy for
// another topic and queue, with one attempt more. The topic it came from first
// stays in RETRY_TOPIC, its first id in ORIGIN_MESSAGE_ID. Body aliases rec;
// host is this broker's.
func Next(rec message.View, d Decision, topic string, queue int32, host netip.AddrPort) message.Record {
	return message.Record{
		Topic: []byte(topic), QueueID: queue, Flag: rec.Flag(), SysFlag: rec.SysFlag() &^ message.FlagStoreHostV6,
		BornTimestamp: rec.BornTimestamp(), BornHost: rec.BornHost(), StoreHost: host,
		ReconsumeTimes: rec.ReconsumeTimes() + 1, Body: rec.Body(), Properties: properties(rec, d),
	}
}

func properties(rec message.View, d Decision) []byte {
	props := rec.Properties()
	if _, ok := message.Property(props, message.PropRetryTopic); !ok {
		props = message.SetProperty(props, message.PropRetryTopic, string(rec.Topic()))
	}
	if id, ok := message.Property(props, message.PropOriginMessageID); !ok || len(bytes.TrimSpace(id)) == 0 {
		id := message.AppendOffsetID(nil, rec.StoreHost(), rec.PhysicalOffset())
		props = message.SetProperty(props, message.PropOriginMessageID, string(id))
	}
	props = message.SetProperty(props, message.PropWait, message.FalseValue)
	return message.SetProperty(props, message.PropDelay, strconv.Itoa(d.Level))
}
