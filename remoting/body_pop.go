package remoting

// QueryAssignmentBody is the body of QUERY_ASSIGNMENT.
type QueryAssignmentBody struct {
	ClientID      string `json:"clientId"`
	ConsumerGroup string `json:"consumerGroup"`
	MessageModel  string `json:"messageModel"`
	StrategyName  string `json:"strategyName"` // AVG, AVG_BY_CIRCLE, …
	Topic         string `json:"topic"`
}

// QueryAssignmentResponseBody is the answer to QUERY_ASSIGNMENT.
type QueryAssignmentResponseBody struct {
	Assignments []MessageQueueAssignment `json:"messageQueueAssignments"`
}

// MessageQueueAssignment gives one queue to a client.
type MessageQueueAssignment struct {
	Attachments  map[string]string `json:"attachments,omitempty"`
	MessageQueue MessageQueue      `json:"messageQueue"`
	Mode         string            `json:"mode"` // PULL or POP
}

// MessageRequestMode is the body of SET_MESSAGE_REQUEST_MODE and an entry of
// messageRequestMode.json.
type MessageRequestMode struct {
	ConsumerGroup    string `json:"consumerGroup"`
	Mode             string `json:"mode"`
	PopShareQueueNum int32  `json:"popShareQueueNum"`
	Topic            string `json:"topic"`
}

// MessageRequestModes is the table of request modes by topic and group
// (messageRequestMode.json, and the answer to GET_ALL_MESSAGE_REQUEST_MODE).
type MessageRequestModes struct {
	Map map[string]map[string]MessageRequestMode `json:"messageRequestModeMap"`
}

// BatchAckBody is the body of BATCH_ACK_MESSAGE.
type BatchAckBody struct {
	Acks       []BatchAck `json:"acks"`
	BrokerName string     `json:"brokerName"`
}

// BatchAck acknowledges messages of one pop. The long names are read too.
type BatchAck struct {
	BitSet        string `json:"b,alt=bitSet"` // base64 of a little-endian bit set of offsets from StartOffset
	ConsumerGroup string `json:"c,alt=consumerGroup"`
	InvisibleTime int64  `json:"it,alt=invisibleTime"`
	PopTime       int64  `json:"pt,alt=popTime"`
	QueueID       int32  `json:"q,alt=queueId"`
	Retry         string `json:"r,alt=retry"`
	ReviveQueueID int32  `json:"rq,alt=reviveQueueId"`
	StartOffset   int64  `json:"so,alt=startOffset"`
	Topic         string `json:"t,alt=topic"`
}
