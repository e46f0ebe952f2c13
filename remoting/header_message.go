package remoting

// SendMessageHeader is the request header of SEND_MESSAGE (10), SEND_MESSAGE_V2
// (310), SEND_BATCH_MESSAGE (320), SEND_REPLY_MESSAGE (324),
// SEND_REPLY_MESSAGE_V2 (325).
type SendMessageHeader struct {
	ProducerGroup         string     `rmq:"producerGroup|a,required"`
	Topic                 string     `rmq:"topic|b,required"`
	DefaultTopic          string     `rmq:"defaultTopic|c,required"`
	DefaultTopicQueueNums int32      `rmq:"defaultTopicQueueNums|d,required"`
	QueueID               int32      `rmq:"queueId|e,required"`
	SysFlag               int32      `rmq:"sysFlag|f,required"`
	BornTimestamp         int64      `rmq:"bornTimestamp|g,required"`
	Flag                  int32      `rmq:"flag|h,required"`
	Properties            string     `rmq:"properties|i,omitempty"`
	ReconsumeTimes        int32      `rmq:"reconsumeTimes|j"`
	UnitMode              bool       `rmq:"unitMode|k"`
	Batch                 bool       `rmq:"batch|m"`
	MaxReconsumeTimes     Opt[int32] `rmq:"maxReconsumeTimes|l"`
	TopicHeader
}

// SendMessageResponseHeader is the response header of SEND_MESSAGE (10),
// SEND_MESSAGE_V2 (310), SEND_BATCH_MESSAGE (320), SEND_REPLY_MESSAGE (324),
// SEND_REPLY_MESSAGE_V2 (325).
type SendMessageResponseHeader struct {
	MsgID         string `rmq:"msgId,required"`
	QueueID       int32  `rmq:"queueId,required"`
	QueueOffset   int64  `rmq:"queueOffset,required"`
	TransactionID string `rmq:"transactionId,omitempty"`
	BatchUniqID   string `rmq:"batchUniqId,omitempty"`
	RecallHandle  string `rmq:"recallHandle,omitempty"`
}

// PullMessageHeader is the request header of PULL_MESSAGE (11), LITE_PULL_MESSAGE (361).
type PullMessageHeader struct {
	ConsumerGroup        string `rmq:"consumerGroup,required"`
	Topic                string `rmq:"topic,required"`
	LiteTopic            string `rmq:"liteTopic,omitempty"`
	QueueID              int32  `rmq:"queueId,required"`
	QueueOffset          int64  `rmq:"queueOffset,required"`
	MaxMsgNums           int32  `rmq:"maxMsgNums,required"`
	SysFlag              int32  `rmq:"sysFlag,required"`
	CommitOffset         int64  `rmq:"commitOffset,required"`
	SuspendTimeoutMillis int64  `rmq:"suspendTimeoutMillis,required"`
	Subscription         string `rmq:"subscription,omitempty"`
	SubVersion           int64  `rmq:"subVersion,required"`
	ExpressionType       string `rmq:"expressionType,omitempty"`
	MaxMsgBytes          int32  `rmq:"maxMsgBytes,omitempty"`
	RequestSource        int32  `rmq:"requestSource,omitempty"`
	ProxyFrowardClientID string `rmq:"proxyFrowardClientId,omitempty"`
	TopicHeader
}

// PullMessageResponseHeader is the response header of PULL_MESSAGE (11), LITE_PULL_MESSAGE (361).
type PullMessageResponseHeader struct {
	SuggestWhichBrokerID int64 `rmq:"suggestWhichBrokerId,required"`
	NextBeginOffset      int64 `rmq:"nextBeginOffset,required"`
	MinOffset            int64 `rmq:"minOffset,required"`
	MaxOffset            int64 `rmq:"maxOffset,required"`
	OffsetDelta          int64 `rmq:"offsetDelta,omitempty"`
	TopicSysFlag         int32 `rmq:"topicSysFlag"`
	GroupSysFlag         int32 `rmq:"groupSysFlag"`
	ForbiddenType        int32 `rmq:"forbiddenType,omitempty"`
}

// QueryMessageHeader is the request header of QUERY_MESSAGE (12).
type QueryMessageHeader struct {
	Topic          string `rmq:"topic,required"`
	Key            string `rmq:"key,required"`
	MaxNum         int32  `rmq:"maxNum,required"`
	BeginTimestamp int64  `rmq:"beginTimestamp,required"`
	EndTimestamp   int64  `rmq:"endTimestamp,required"`
	IndexType      string `rmq:"indexType,omitempty"`
	LastKey        string `rmq:"lastKey,omitempty"`
	TopicHeader
}

// QueryMessageResponseHeader is the response header of QUERY_MESSAGE (12).
type QueryMessageResponseHeader struct {
	IndexLastUpdateTimestamp int64 `rmq:"indexLastUpdateTimestamp,required"`
	IndexLastUpdatePhyoffset int64 `rmq:"indexLastUpdatePhyoffset,required"`
}

// SearchOffsetHeader is the request header of SEARCH_OFFSET_BY_TIMESTAMP (29).
type SearchOffsetHeader struct {
	Topic        string       `rmq:"topic,required"`
	LiteTopic    string       `rmq:"liteTopic,omitempty"`
	QueueID      int32        `rmq:"queueId,required"`
	Timestamp    int64        `rmq:"timestamp,required"`
	BoundaryType BoundaryType `rmq:"boundaryType,omitempty"`
	TopicHeader
}

// SearchOffsetResponseHeader is the response header of SEARCH_OFFSET_BY_TIMESTAMP (29).
type SearchOffsetResponseHeader struct {
	Offset int64 `rmq:"offset,required"`
}

// GetMaxOffsetHeader is the request header of GET_MAX_OFFSET (30).
type GetMaxOffsetHeader struct {
	Topic     string `rmq:"topic,required"`
	QueueID   int32  `rmq:"queueId,required"`
	Committed bool   `rmq:"committed,default=true"` // false: also what the store has not confirmed yet
	TopicHeader
}

// GetMaxOffsetResponseHeader is the response header of GET_MAX_OFFSET (30).
type GetMaxOffsetResponseHeader struct {
	Offset int64 `rmq:"offset,required"`
}

// GetMinOffsetHeader is the request header of GET_MIN_OFFSET (31).
type GetMinOffsetHeader struct {
	Topic   string `rmq:"topic,required"`
	QueueID int32  `rmq:"queueId,required"`
	TopicHeader
}

// GetMinOffsetResponseHeader is the response header of GET_MIN_OFFSET (31).
type GetMinOffsetResponseHeader struct {
	Offset int64 `rmq:"offset,required"`
}

// GetEarliestMsgStoreTimeHeader is the request header of GET_EARLIEST_MSG_STORETIME (32).
type GetEarliestMsgStoreTimeHeader struct {
	Topic   string `rmq:"topic,required"`
	QueueID int32  `rmq:"queueId,required"`
	TopicHeader
}

// GetEarliestMsgStoreTimeResponseHeader is the response header of GET_EARLIEST_MSG_STORETIME (32).
type GetEarliestMsgStoreTimeResponseHeader struct {
	Timestamp int64 `rmq:"timestamp,required"`
}

// ViewMessageHeader is the request header of VIEW_MESSAGE_BY_ID (33).
type ViewMessageHeader struct {
	Topic  string `rmq:"topic,omitempty"`
	Offset int64  `rmq:"offset,required"`
}

// ConsumerSendMsgBackHeader is the request header of CONSUMER_SEND_MSG_BACK (36).
type ConsumerSendMsgBackHeader struct {
	Offset            int64      `rmq:"offset,required"`
	Group             string     `rmq:"group,required"`
	DelayLevel        int32      `rmq:"delayLevel,required"`
	OriginMsgID       string     `rmq:"originMsgId,omitempty"`
	OriginTopic       string     `rmq:"originTopic,omitempty"`
	UnitMode          bool       `rmq:"unitMode"`
	MaxReconsumeTimes Opt[int32] `rmq:"maxReconsumeTimes"`
	RPCHeader
}

// EndTransactionHeader is the request header of END_TRANSACTION (37).
type EndTransactionHeader struct {
	Topic                string `rmq:"topic,omitempty"`
	ProducerGroup        string `rmq:"producerGroup,required"`
	TranStateTableOffset int64  `rmq:"tranStateTableOffset,required"`
	CommitLogOffset      int64  `rmq:"commitLogOffset,required"`
	CommitOrRollback     int32  `rmq:"commitOrRollback,required"`
	FromTransactionCheck bool   `rmq:"fromTransactionCheck"`
	MsgID                string `rmq:"msgId,required"`
	TransactionID        string `rmq:"transactionId,omitempty"`
	RPCHeader
}

// CheckTransactionStateHeader is the request header of CHECK_TRANSACTION_STATE (39).
type CheckTransactionStateHeader struct {
	Topic                string `rmq:"topic,omitempty"`
	TranStateTableOffset int64  `rmq:"tranStateTableOffset,required"`
	CommitLogOffset      int64  `rmq:"commitLogOffset,required"`
	MsgID                string `rmq:"msgId,omitempty"`
	TransactionID        string `rmq:"transactionId,omitempty"`
	OffsetMsgID          string `rmq:"offsetMsgId,omitempty"`
	RPCHeader
}

// CheckTransactionStateResponseHeader is the response header of CHECK_TRANSACTION_STATE (39).
type CheckTransactionStateResponseHeader struct {
	ProducerGroup        string `rmq:"producerGroup,required"`
	TranStateTableOffset int64  `rmq:"tranStateTableOffset,required"`
	CommitLogOffset      int64  `rmq:"commitLogOffset,required"`
	CommitOrRollback     int32  `rmq:"commitOrRollback,required"`
}

// ReplyMessageHeader is the request header of PUSH_REPLY_MESSAGE_TO_CLIENT (326).
type ReplyMessageHeader struct {
	ProducerGroup         string `rmq:"producerGroup,required"`
	Topic                 string `rmq:"topic,required"`
	DefaultTopic          string `rmq:"defaultTopic,required"`
	DefaultTopicQueueNums int32  `rmq:"defaultTopicQueueNums,required"`
	QueueID               int32  `rmq:"queueId,required"`
	SysFlag               int32  `rmq:"sysFlag,required"`
	BornTimestamp         int64  `rmq:"bornTimestamp,required"`
	Flag                  int32  `rmq:"flag,required"`
	Properties            string `rmq:"properties,omitempty"`
	ReconsumeTimes        int32  `rmq:"reconsumeTimes"`
	UnitMode              bool   `rmq:"unitMode"`
	BornHost              string `rmq:"bornHost,required"`
	StoreHost             string `rmq:"storeHost,required"`
	StoreTimestamp        int64  `rmq:"storeTimestamp,required"`
	TopicHeader
}

// RecallMessageHeader is the request header of RECALL_MESSAGE (370).
type RecallMessageHeader struct {
	ProducerGroup string `rmq:"producerGroup,omitempty"`
	Topic         string `rmq:"topic,required"`
	RecallHandle  string `rmq:"recallHandle,required"`
	TopicHeader
}

// RecallMessageResponseHeader is the response header of RECALL_MESSAGE (370).
type RecallMessageResponseHeader struct {
	MsgID string `rmq:"msgId,required"`
}
