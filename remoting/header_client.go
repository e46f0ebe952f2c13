package remoting

// QueryConsumerOffsetHeader is the request header of QUERY_CONSUMER_OFFSET (14).
type QueryConsumerOffsetHeader struct {
	ConsumerGroup     string    `rmq:"consumerGroup,required"`
	Topic             string    `rmq:"topic,required"`
	QueueID           int32     `rmq:"queueId,required"`
	SetZeroIfNotFound Opt[bool] `rmq:"setZeroIfNotFound"`
	TopicHeader
}

// QueryConsumerOffsetResponseHeader is the response header of QUERY_CONSUMER_OFFSET (14).
type QueryConsumerOffsetResponseHeader struct {
	Offset int64 `rmq:"offset,required"`
}

// UpdateConsumerOffsetHeader is the request header of UPDATE_CONSUMER_OFFSET (15).
type UpdateConsumerOffsetHeader struct {
	ConsumerGroup string `rmq:"consumerGroup,required"`
	Topic         string `rmq:"topic,required"`
	QueueID       int32  `rmq:"queueId,required"`
	CommitOffset  int64  `rmq:"commitOffset,required"`
	TopicHeader
}

// UnregisterClientHeader is the request header of UNREGISTER_CLIENT (35).
type UnregisterClientHeader struct {
	ClientID      string `rmq:"clientID,required"`
	ProducerGroup string `rmq:"producerGroup,omitempty"`
	ConsumerGroup string `rmq:"consumerGroup,omitempty"`
	RPCHeader
}

// GetConsumerListByGroupHeader is the request header of GET_CONSUMER_LIST_BY_GROUP (38).
type GetConsumerListByGroupHeader struct {
	ConsumerGroup string `rmq:"consumerGroup,required"`
	RPCHeader
}

// NotifyConsumerIDsChangedHeader is the request header of NOTIFY_CONSUMER_IDS_CHANGED (40).
type NotifyConsumerIDsChangedHeader struct {
	ConsumerGroup string `rmq:"consumerGroup,required"`
	RPCHeader
}

// ResetOffsetHeader is the request header of RESET_CONSUMER_CLIENT_OFFSET
// (220), INVOKE_BROKER_TO_RESET_OFFSET (222).
type ResetOffsetHeader struct {
	Group     string     `rmq:"group,required"`
	Topic     string     `rmq:"topic,required"`
	QueueID   int32      `rmq:"queueId"`
	Offset    Opt[int64] `rmq:"offset"`
	Timestamp int64      `rmq:"timestamp,required"`
	IsForce   bool       `rmq:"isForce,required"`
	TopicHeader
}

// GetConsumerStatusHeader is the request header of
// GET_CONSUMER_STATUS_FROM_CLIENT (221), INVOKE_BROKER_TO_GET_CONSUMER_STATUS
// (223).
type GetConsumerStatusHeader struct {
	Topic      string `rmq:"topic,required"`
	Group      string `rmq:"group,required"`
	ClientAddr string `rmq:"clientAddr,omitempty"`
	TopicHeader
}

// GetConsumerRunningInfoHeader is the request header of GET_CONSUMER_RUNNING_INFO (307).
type GetConsumerRunningInfoHeader struct {
	ConsumerGroup string `rmq:"consumerGroup,required"`
	ClientID      string `rmq:"clientId,required"`
	JStackEnable  bool   `rmq:"jstackEnable"`
	RPCHeader
}

// ConsumeMessageDirectlyHeader is the request header of CONSUME_MESSAGE_DIRECTLY (309).
type ConsumeMessageDirectlyHeader struct {
	ConsumerGroup string `rmq:"consumerGroup,required"`
	ClientID      string `rmq:"clientId,omitempty"`
	MsgID         string `rmq:"msgId,omitempty"`
	BrokerName    string `rmq:"brokerName,omitempty"`
	Topic         string `rmq:"topic,omitempty"`
	TopicSysFlag  int32  `rmq:"topicSysFlag"`
	GroupSysFlag  int32  `rmq:"groupSysFlag,omitempty"`
	TopicHeader
}
