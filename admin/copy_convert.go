package admin

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"

	"mqx/client"
	"mqx/message"
	"mqx/remoting"
)

// resent is a message that is sent anew, and how.
type resent struct {
	m     *message.Message
	again client.Resend
}

// copyOf is m for another topic: body, flag, keys, tag, properties, born time and compression are as they were; what
// belongs to the first send is not. keepID keeps the unique id.
func copyOf(m *client.Received, topic string, keepID bool) resent {
	out := &message.Message{Topic: topic, Flag: m.Flag, Body: m.Body, Properties: make(map[string]string, len(m.Properties))}
	for name, value := range m.Properties {
		if value != "" && !message.IsOwnProperty(name) {
			out.Properties[name] = value
		}
	}
	if keepID {
		out.SetUniqKey(m.UniqKey())
	}
	return resent{out, client.Resend{BornTimestamp: m.BornTimestamp, Compression: message.CompressionOf(m.SysFlag)}}
}

// retryOf is m for the retry topic of a group, as a client of the group that gave it back would have sent it: its
// members get it with its own topic and id. times is how often it counts as given back.
func retryOf(m *client.Received, group string, times int32) (resent, error) {
	origin := m.Topic
	if message.IsRetry(origin) || message.IsDLQ(origin) {
		origin = cmp.Or(m.Property(message.PropRetryTopic), m.Property(message.PropDLQOriginTopic))
		if origin == "" {
			return resent{}, fmt.Errorf("cannot replay message %s: nothing in it says which topic it was sent to", m.MessageID)
		}
	}
	out := copyOf(m, message.RetryTopic(group), true)
	out.m.SetProperty(message.PropRetryTopic, origin)
	out.m.SetProperty(message.PropOriginMessageID, cmp.Or(m.Property(message.PropOriginMessageID), m.OffsetID))
	out.again.ReconsumeTimes = times
	return out, nil
}

// pickQueue is the queue that everything of one source queue goes to, so that its order stays: the same queue of a
// broker of that name, else that queue of another broker, else one by its number.
func pickQueue(from remoting.MessageQueue, to []remoting.MessageQueue) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(from.BrokerName))
	n := int(h.Sum32() & 0xFFFF)
	var same []int
	for i, q := range to {
		if q.QueueID != from.QueueID {
			continue
		}
		if q.BrokerName == from.BrokerName {
			return i
		}
		same = append(same, i)
	}
	switch {
	case len(same) > 0:
		return same[n%len(same)]
	case slices.ContainsFunc(to, func(q remoting.MessageQueue) bool { return q.BrokerName == from.BrokerName }):
		var own []int
		for i, q := range to {
			if q.BrokerName == from.BrokerName {
				own = append(own, i)
			}
		}
		return own[int(from.QueueID)%len(own)]
	}
	return (n + int(from.QueueID)) % len(to)
}

// CopyOf is m to be sent again, to a topic, as a copy sends it: with its unique id, keys, tag, properties and born time.
func CopyOf(m *client.Received, topic string) (*message.Message, client.Resend) {
	r := copyOf(m, topic, true)
	return r.m, r.again
}
