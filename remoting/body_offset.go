package remoting

// ConsumerOffsets is the table of committed offsets (consumerOffset.json, and
// the answer to GET_ALL_CONSUMER_OFFSET). Keys are topic@group.
type ConsumerOffsets struct {
	DataVersion     DataVersion                `json:"dataVersion"`
	GroupTopicMap   map[string][]string        `json:"groupTopicMap"`
	OffsetTable     map[string]map[int32]int64 `json:"offsetTable"`
	PullOffsetTable map[string]map[int32]int64 `json:"pullOffsetTable"`
	// LMQOffsetTable is what groups of light queues have committed, by topic@group; only in lmqConsumerOffset.json.
	LMQOffsetTable map[string]int64 `json:"lmqOffsetTable,omitempty"`
}

// DelayOffsets is the table of delay-level positions (delayOffset.json, and
// the answer to GET_ALL_DELAY_OFFSET).
type DelayOffsets struct {
	DataVersion DataVersion     `json:"dataVersion"`
	OffsetTable map[int32]int64 `json:"offsetTable"`
}

// ResetOffsetBody is the body of RESET_CONSUMER_CLIENT_OFFSET and the answer
// to INVOKE_BROKER_TO_RESET_OFFSET.
type ResetOffsetBody struct {
	OffsetTable map[MessageQueue]int64 `json:"offsetTable"`
}

// ResetOffsetBodyForC is ResetOffsetBody for clients that cannot read object
// keys.
type ResetOffsetBodyForC struct {
	OffsetTable []MessageQueueForC `json:"offsetTable"`
}

// MessageQueueForC is a queue with an offset.
type MessageQueueForC struct {
	BrokerName string `json:"brokerName"`
	Offset     int64  `json:"offset"`
	QueueID    int32  `json:"queueId"`
	Topic      string `json:"topic"`
}

// GetConsumerStatusBody holds the offsets that consumers have in memory.
type GetConsumerStatusBody struct {
	ConsumerTable     map[string]map[MessageQueue]int64 `json:"consumerTable"`
	MessageQueueTable map[MessageQueue]int64            `json:"messageQueueTable"`
}

// QueryConsumeTimeSpanBody is the answer to QUERY_CONSUME_TIME_SPAN.
type QueryConsumeTimeSpanBody struct {
	ConsumeTimeSpanSet []QueueTimeSpan `json:"consumeTimeSpanSet"`
}

// QueueTimeSpan tells how far behind a group is in one queue. Times are ms.
type QueueTimeSpan struct {
	ConsumeTimeStamp    int64         `json:"consumeTimeStamp"`
	ConsumeTimeStampStr string        `json:"consumeTimeStampStr"`
	DelayTime           int64         `json:"delayTime"`
	MaxTimeStamp        int64         `json:"maxTimeStamp"`
	MaxTimeStampStr     string        `json:"maxTimeStampStr"`
	MessageQueue        *MessageQueue `json:"messageQueue"`
	MinTimeStamp        int64         `json:"minTimeStamp"`
	MinTimeStampStr     string        `json:"minTimeStampStr"`
}

// QueryCorrectionOffsetBody is the answer to QUERY_CORRECTION_OFFSET.
type QueryCorrectionOffsetBody struct {
	CorrectionOffsets map[int32]int64 `json:"correctionOffsets"`
}

// OffsetMovedEvent is the body of a message in OFFSET_MOVED_EVENT.
type OffsetMovedEvent struct {
	ConsumerGroup string       `json:"consumerGroup"`
	MessageQueue  MessageQueue `json:"messageQueue"`
	OffsetNew     int64        `json:"offsetNew"`
	OffsetRequest int64        `json:"offsetRequest"`
}
