package testkit

import "encoding/json"

// ClientView is what Apache's clients read from the running broker.
type ClientView struct {
	RuntimeStats       map[string]*string  `json:"runtimeStats"`
	TopicConfigs       []TopicConfig       `json:"topicConfigs"`
	SubscriptionGroups []SubscriptionGroup `json:"subscriptionGroups"`
	Queues             []ClientQueue       `json:"queues"`
	PulledTotal        int                 `json:"pulledTotal"`
	ConsumeStats       []ConsumeStat       `json:"consumeStats"`
	QueryByKey         []KeyQuery          `json:"queryByKey"`
	ViewByOffsetMsgID  []OffsetIDQuery     `json:"viewByOffsetMsgId"`
}

// TopicConfig is a topic's settings.
type TopicConfig struct {
	Topic          string            `json:"topic"`
	ReadQueueNums  int               `json:"readQueueNums"`
	WriteQueueNums int               `json:"writeQueueNums"`
	Perm           int               `json:"perm"`
	TopicSysFlag   int               `json:"topicSysFlag"`
	Order          bool              `json:"order"`
	Attributes     map[string]string `json:"attributes"`
}

// SubscriptionGroup is a group's settings.
type SubscriptionGroup struct {
	GroupName                      string            `json:"groupName"`
	Attributes                     map[string]string `json:"attributes"`
	BrokerID                       int64             `json:"brokerId"`
	ConsumeBroadcastEnable         bool              `json:"consumeBroadcastEnable"`
	ConsumeEnable                  bool              `json:"consumeEnable"`
	ConsumeFromMinEnable           bool              `json:"consumeFromMinEnable"`
	ConsumeMessageOrderly          bool              `json:"consumeMessageOrderly"`
	ConsumeTimeoutMinute           int               `json:"consumeTimeoutMinute"`
	GroupRetryPolicy               json.RawMessage   `json:"groupRetryPolicy"`
	GroupSysFlag                   int               `json:"groupSysFlag"`
	NotifyConsumerIdsChangedEnable bool              `json:"notifyConsumerIdsChangedEnable"`
	RetryMaxTimes                  int               `json:"retryMaxTimes"`
	RetryQueueNums                 int               `json:"retryQueueNums"`
	WhichBrokerWhenConsumeSlowly   int64             `json:"whichBrokerWhenConsumeSlowly"`
}

// ClientQueue is a queue as a pull consumer reads it. Messages are decompressed and taken out of inner batches. In the
// ClientView of a Recovery some messages have only part of the fields.
type ClientQueue struct {
	Topic               string    `json:"topic"`
	QueueID             int32     `json:"queueId"`
	MinOffset           int64     `json:"minOffset"`
	MaxOffset           int64     `json:"maxOffset"`
	LastUpdateTimestamp int64     `json:"lastUpdateTimestamp"`
	PulledCount         int       `json:"pulledCount"`
	PullNote            string    `json:"pullNote"`
	Messages            []Message `json:"messages"`
}

// ConsumeStat is a group's progress in a queue.
type ConsumeStat struct {
	Group          string `json:"group"`
	Topic          string `json:"topic"`
	QueueID        int32  `json:"queueId"`
	BrokerOffset   int64  `json:"brokerOffset"`
	ConsumerOffset int64  `json:"consumerOffset"`
	PullOffset     int64  `json:"pullOffset"`
	LastTimestamp  int64  `json:"lastTimestamp"`
}

// KeyQuery is a query by key and its answer, or Error.
type KeyQuery struct {
	Topic                    string   `json:"topic"`
	Key                      string   `json:"key"`
	MsgIDs                   []string `json:"msgIds"`
	PhysicalOffsets          []int64  `json:"physicalOffsets"`
	IndexLastUpdateTimestamp int64    `json:"indexLastUpdateTimestamp"`
	Error                    string   `json:"error"`
}

// OffsetIDQuery is a query by offset id and the message found.
type OffsetIDQuery struct {
	Topic          string `json:"topic"`
	QueriedID      string `json:"queriedId"`
	MsgID          string `json:"msgId"`
	QueueOffset    int64  `json:"queueOffset"`
	PhysicalOffset int64  `json:"physicalOffset"`
}
