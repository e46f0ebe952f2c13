package remoting

import (
	"cmp"
	"strconv"
)

// MessageQueue names one queue of a topic on a broker. As a map key it is
// written as a nested object (docs/wire/json.md).
type MessageQueue struct {
	BrokerName string `json:"brokerName"`
	QueueID    int32  `json:"queueId"`
	Topic      string `json:"topic"`
}

// String returns "topic@brokerName:queueId".
func (q MessageQueue) String() string {
	return q.Topic + "@" + q.BrokerName + ":" + strconv.Itoa(int(q.QueueID))
}

// Compare orders queues by topic, broker name and queue id.
func (q MessageQueue) Compare(o MessageQueue) int {
	return cmp.Or(cmp.Compare(q.Topic, o.Topic), cmp.Compare(q.BrokerName, o.BrokerName), cmp.Compare(q.QueueID, o.QueueID))
}
