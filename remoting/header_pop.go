package remoting

// PopMessageHeader is the request header of POP_MESSAGE (200050).
type PopMessageHeader struct {
	ConsumerGroup string `rmq:"consumerGroup,required"`
	Topic         string `rmq:"topic,required"`
	QueueID       int32  `rmq:"queueId,required"`
	MaxMsgNums    int32  `rmq:"maxMsgNums,required"`
	InvisibleTime int64  `rmq:"invisibleTime,required"`
	PollTime      int64  `rmq:"pollTime,required"`
	BornTime      int64  `rmq:"bornTime,required"`
	InitMode      int32  `rmq:"initMode,required"`
	ExpType       string `rmq:"expType,omitempty"`
	Exp           string `rmq:"exp,omitempty"`
	Order         bool   `rmq:"order"`
	AttemptID     string `rmq:"attemptId,omitempty"`
	TopicHeader
}

// PopMessageResponseHeader is the response header of POP_MESSAGE (200050).
type PopMessageResponseHeader struct {
	PopTime         int64  `rmq:"popTime,required"`
	InvisibleTime   int64  `rmq:"invisibleTime,required"`
	ReviveQID       int32  `rmq:"reviveQid,required"`
	RestNum         int64  `rmq:"restNum,required"`
	StartOffsetInfo string `rmq:"startOffsetInfo,omitempty"`
	MsgOffsetInfo   string `rmq:"msgOffsetInfo,omitempty"`
	OrderCountInfo  string `rmq:"orderCountInfo,omitempty"`
}

// AckMessageHeader is the request header of ACK_MESSAGE (200051).
type AckMessageHeader struct {
	ConsumerGroup string `rmq:"consumerGroup,required"`
	Topic         string `rmq:"topic,required"`
	QueueID       int32  `rmq:"queueId,required"`
	ExtraInfo     string `rmq:"extraInfo,required"`
	Offset        int64  `rmq:"offset,required"`
	LiteTopic     string `rmq:"liteTopic,omitempty"`
	TopicHeader
}

// PeekMessageHeader is the request header of PEEK_MESSAGE (200052).
type PeekMessageHeader struct {
	Topic         string `rmq:"topic,required"`
	QueueID       int32  `rmq:"queueId,required"`
	MaxMsgNums    int32  `rmq:"maxMsgNums,required"`
	ConsumerGroup string `rmq:"consumerGroup,required"`
	TopicHeader
}

// PeekMessageResponseHeader is the response header of PEEK_MESSAGE (200052).
type PeekMessageResponseHeader struct {
	PopTime         int64  `rmq:"popTime,required"`
	InvisibleTime   int64  `rmq:"invisibleTime,required"`
	ReviveQID       int32  `rmq:"reviveQid,required"`
	RestNum         int64  `rmq:"restNum,required"`
	StartOffsetInfo string `rmq:"startOffsetInfo,omitempty"`
	MsgOffsetInfo   string `rmq:"msgOffsetInfo,omitempty"`
	OrderCountInfo  string `rmq:"orderCountInfo,omitempty"`
}

// ChangeMessageInvisibleTimeHeader is the request header of CHANGE_MESSAGE_INVISIBLETIME (200053).
type ChangeMessageInvisibleTimeHeader struct {
	ConsumerGroup string `rmq:"consumerGroup,required"`
	Topic         string `rmq:"topic,required"`
	QueueID       int32  `rmq:"queueId,required"`
	ExtraInfo     string `rmq:"extraInfo,required"`
	Offset        int64  `rmq:"offset,required"`
	InvisibleTime int64  `rmq:"invisibleTime,required"`
	LiteTopic     string `rmq:"liteTopic,omitempty"`
	Suspend       bool   `rmq:"suspend"`
	TopicHeader
}

// ChangeMessageInvisibleTimeResponseHeader is the response header of
// CHANGE_MESSAGE_INVISIBLETIME (200053).
type ChangeMessageInvisibleTimeResponseHeader struct {
	PopTime       int64 `rmq:"popTime,required"`
	InvisibleTime int64 `rmq:"invisibleTime,required"`
	ReviveQID     int32 `rmq:"reviveQid,required"`
}

// NotificationHeader is the request header of NOTIFICATION (200054).
type NotificationHeader struct {
	ConsumerGroup string `rmq:"consumerGroup,required"`
	Topic         string `rmq:"topic,required"`
	QueueID       int32  `rmq:"queueId,required"`
	PollTime      int64  `rmq:"pollTime,required"`
	BornTime      int64  `rmq:"bornTime,required"`
	Order         bool   `rmq:"order"`
	AttemptID     string `rmq:"attemptId,omitempty"`
	ExpType       string `rmq:"expType,omitempty"`
	Exp           string `rmq:"exp,omitempty"`
	TopicHeader
}

// NotificationResponseHeader is the response header of NOTIFICATION (200054).
type NotificationResponseHeader struct {
	HasMsg      bool `rmq:"hasMsg,required"`
	PollingFull bool `rmq:"pollingFull"`
}

// PollingInfoHeader is the request header of POLLING_INFO (200055).
type PollingInfoHeader struct {
	ConsumerGroup string `rmq:"consumerGroup,required"`
	Topic         string `rmq:"topic,required"`
	QueueID       int32  `rmq:"queueId,required"`
	TopicHeader
}

// PollingInfoResponseHeader is the response header of POLLING_INFO (200055).
type PollingInfoResponseHeader struct {
	PollingNum int32 `rmq:"pollingNum,required"`
}

// PopLiteMessageHeader is the request header of POP_LITE_MESSAGE (200070).
type PopLiteMessageHeader struct {
	ClientID      string `rmq:"clientId,required"`
	ConsumerGroup string `rmq:"consumerGroup,required"`
	Topic         string `rmq:"topic,required"`
	MaxMsgNum     int32  `rmq:"maxMsgNum,required"`
	InvisibleTime int64  `rmq:"invisibleTime,required"`
	PollTime      int64  `rmq:"pollTime,required"`
	BornTime      int64  `rmq:"bornTime,required"`
	AttemptID     string `rmq:"attemptId,omitempty"`
	RPCHeader
}

// PopLiteMessageResponseHeader is the response header of POP_LITE_MESSAGE (200070).
type PopLiteMessageResponseHeader struct {
	PopTime         int64  `rmq:"popTime,required"`
	InvisibleTime   int64  `rmq:"invisibleTime,required"`
	ReviveQID       int32  `rmq:"reviveQid,required"`
	StartOffsetInfo string `rmq:"startOffsetInfo,omitempty"`
	MsgOffsetInfo   string `rmq:"msgOffsetInfo,omitempty"`
	OrderCountInfo  string `rmq:"orderCountInfo,omitempty"`
}

// NotifyUnsubscribeLiteHeader is the request header of NOTIFY_UNSUBSCRIBE_LITE (200073).
type NotifyUnsubscribeLiteHeader struct {
	LiteTopic     string `rmq:"liteTopic,required"`
	ConsumerGroup string `rmq:"consumerGroup,required"`
	ClientID      string `rmq:"clientId,required"`
	RPCHeader
}

// GetParentTopicInfoHeader is the request header of GET_PARENT_TOPIC_INFO (200075).
type GetParentTopicInfoHeader struct {
	Topic string `rmq:"topic,required"`
}

// GetLiteTopicInfoHeader is the request header of GET_LITE_TOPIC_INFO (200076).
type GetLiteTopicInfoHeader struct {
	ParentTopic string `rmq:"parentTopic,omitempty"`
	LiteTopic   string `rmq:"liteTopic,omitempty"`
}

// GetLiteClientInfoHeader is the request header of GET_LITE_CLIENT_INFO (200077).
type GetLiteClientInfoHeader struct {
	ParentTopic string `rmq:"parentTopic,omitempty"`
	Group       string `rmq:"group,omitempty"`
	ClientID    string `rmq:"clientId,omitempty"`
	MaxCount    int32  `rmq:"maxCount"`
}

// GetLiteGroupInfoHeader is the request header of GET_LITE_GROUP_INFO (200078).
type GetLiteGroupInfoHeader struct {
	Group     string `rmq:"group,required"`
	LiteTopic string `rmq:"liteTopic,omitempty"`
	TopK      int32  `rmq:"topK"`
}

// TriggerLiteDispatchHeader is the request header of TRIGGER_LITE_DISPATCH (200079).
type TriggerLiteDispatchHeader struct {
	Group    string `rmq:"group,required"`
	ClientID string `rmq:"clientId,omitempty"`
}
