package remoting

// Values of ConsumerData and ConsumerConnection.
const (
	ConsumeActively  = "CONSUME_ACTIVELY"  // pull consumer
	ConsumePassively = "CONSUME_PASSIVELY" // push consumer
	ConsumePop       = "CONSUME_POP"

	Broadcasting  = "BROADCASTING"
	Clustering    = "CLUSTERING"
	LiteSelective = "LITE_SELECTIVE"

	ConsumeFromLastOffset  = "CONSUME_FROM_LAST_OFFSET"
	ConsumeFromFirstOffset = "CONSUME_FROM_FIRST_OFFSET"
	ConsumeFromTimestamp   = "CONSUME_FROM_TIMESTAMP"

	ExpressionTag   = "TAG"
	ExpressionSQL92 = "SQL92"
)

// HeartbeatData is the body of HEART_BEAT.
type HeartbeatData struct {
	ClientID        string         `json:"clientID"`
	ConsumerDataSet []ConsumerData `json:"consumerDataSet"`
	Fingerprint     int32          `json:"heartbeatFingerprint"`
	ProducerDataSet []ProducerData `json:"producerDataSet"`
	WithoutSub      bool           `json:"withoutSub"`
}

// ProducerData is one producer group of a client.
type ProducerData struct {
	GroupName string `json:"groupName"`
}

// ConsumerData is one consumer group of a client.
type ConsumerData struct {
	ConsumeFromWhere    string             `json:"consumeFromWhere,omitempty"`
	ConsumeType         string             `json:"consumeType,omitempty"`
	GroupName           string             `json:"groupName"`
	MessageModel        string             `json:"messageModel,omitempty"`
	SubscriptionDataSet []SubscriptionData `json:"subscriptionDataSet"`
	UnitMode            bool               `json:"unitMode"`
}

// SubscriptionData is what a group wants of a topic.
type SubscriptionData struct {
	ClassFilterMode bool     `json:"classFilterMode"`
	CodeSet         []int32  `json:"codeSet"`
	ExpressionType  string   `json:"expressionType,omitempty"`
	SubString       string   `json:"subString"`
	SubVersion      int64    `json:"subVersion"` // ms since 1970; the Go client sends ns
	TagsSet         []string `json:"tagsSet"`
	Topic           string   `json:"topic"`
}

// Connection is one connection of a client.
type Connection struct {
	ClientAddr string `json:"clientAddr"`
	ClientID   string `json:"clientId"`
	Language   string `json:"language"`
	Version    int32  `json:"version"`
}

// ProducerConnection is the answer to GET_PRODUCER_CONNECTION_LIST.
type ProducerConnection struct {
	ConnectionSet []Connection `json:"connectionSet"`
}

// ConsumerConnection is the answer to GET_CONSUMER_CONNECTION_LIST.
type ConsumerConnection struct {
	ConnectionSet     []Connection                `json:"connectionSet"`
	ConsumeFromWhere  string                      `json:"consumeFromWhere,omitempty"`
	ConsumeType       string                      `json:"consumeType,omitempty"`
	MessageModel      string                      `json:"messageModel,omitempty"`
	SubscriptionTable map[string]SubscriptionData `json:"subscriptionTable"`
}

// ProducerTableInfo is the answer to GET_ALL_PRODUCER_INFO.
type ProducerTableInfo struct {
	Data map[string][]ProducerInfo `json:"data"`
}

// ProducerInfo is one client of a producer group.
type ProducerInfo struct {
	ClientID            string `json:"clientId"`
	Language            string `json:"language"`
	LastUpdateTimestamp int64  `json:"lastUpdateTimestamp"`
	RemoteIP            string `json:"remoteIP"`
	Version             int32  `json:"version"`
}

// ConsumerIDList is the answer to GET_CONSUMER_LIST_BY_GROUP.
type ConsumerIDList struct {
	ConsumerIDList []string `json:"consumerIdList"`
}

// CheckClientBody is the body of CHECK_CLIENT_CONFIG.
type CheckClientBody struct {
	ClientID         string            `json:"clientId"`
	Group            string            `json:"group"`
	Namespace        string            `json:"namespace,omitempty"`
	SubscriptionData *SubscriptionData `json:"subscriptionData"`
}

// QuerySubscriptionBody is the answer to QUERY_SUBSCRIPTION_BY_CONSUMER.
type QuerySubscriptionBody struct {
	Group            string            `json:"group"`
	SubscriptionData *SubscriptionData `json:"subscriptionData"`
	Topic            string            `json:"topic"`
}

// LockBatchBody is the body of LOCK_BATCH_MQ and UNLOCK_BATCH_MQ.
type LockBatchBody struct {
	ClientID       string         `json:"clientId"`
	ConsumerGroup  string         `json:"consumerGroup"`
	MQSet          []MessageQueue `json:"mqSet"`
	OnlyThisBroker bool           `json:"onlyThisBroker"`
}

// LockBatchResponseBody is the answer to LOCK_BATCH_MQ.
type LockBatchResponseBody struct {
	LockOKMQSet []MessageQueue `json:"lockOKMQSet"`
}

// Property names of ConsumerRunningInfo.
const (
	PropNameServerAddr         = "PROP_NAMESERVER_ADDR"
	PropThreadPoolCoreSize     = "PROP_THREADPOOL_CORE_SIZE"
	PropConsumeOrderly         = "PROP_CONSUMEORDERLY"
	PropConsumeType            = "PROP_CONSUME_TYPE"
	PropClientVersion          = "PROP_CLIENT_VERSION"
	PropConsumerStartTimestamp = "PROP_CONSUMER_START_TIMESTAMP"
)

// ConsumerRunningInfo is a consumer's answer to GET_CONSUMER_RUNNING_INFO.
type ConsumerRunningInfo struct {
	JStack           string                               `json:"jstack,omitempty"`
	MQPopTable       map[MessageQueue]PopProcessQueueInfo `json:"mqPopTable"`
	MQTable          map[MessageQueue]ProcessQueueInfo    `json:"mqTable"`
	Properties       map[string]string                    `json:"properties"`
	StatusTable      map[string]ConsumeStatus             `json:"statusTable"`
	SubscriptionSet  []SubscriptionData                   `json:"subscriptionSet"`
	UserConsumerInfo map[string]string                    `json:"userConsumerInfo"`
}

// ProcessQueueInfo is the state of one queue in a consumer. Times are ms.
type ProcessQueueInfo struct {
	CachedMsgCount          int32 `json:"cachedMsgCount"`
	CachedMsgMaxOffset      int64 `json:"cachedMsgMaxOffset"`
	CachedMsgMinOffset      int64 `json:"cachedMsgMinOffset"`
	CachedMsgSizeInMiB      int32 `json:"cachedMsgSizeInMiB"`
	CommitOffset            int64 `json:"commitOffset"`
	Dropped                 bool  `json:"droped"`
	LastConsumeTimestamp    int64 `json:"lastConsumeTimestamp"`
	LastLockTimestamp       int64 `json:"lastLockTimestamp"`
	LastPullTimestamp       int64 `json:"lastPullTimestamp"`
	Locked                  bool  `json:"locked"`
	TransactionMsgCount     int32 `json:"transactionMsgCount"`
	TransactionMsgMaxOffset int64 `json:"transactionMsgMaxOffset"`
	TransactionMsgMinOffset int64 `json:"transactionMsgMinOffset"`
	TryUnlockTimes          int64 `json:"tryUnlockTimes"`
}

// PopProcessQueueInfo is the state of one queue in a pop consumer.
type PopProcessQueueInfo struct {
	Dropped          bool  `json:"droped"`
	LastPopTimestamp int64 `json:"lastPopTimestamp"`
	WaitAckCount     int32 `json:"waitAckCount"`
}

// ConsumeStatus is a consumer's own count of one topic.
type ConsumeStatus struct {
	ConsumeFailedMsgs int64   `json:"consumeFailedMsgs"`
	ConsumeFailedTPS  float64 `json:"consumeFailedTPS"`
	ConsumeOKTPS      float64 `json:"consumeOKTPS"`
	ConsumeRT         float64 `json:"consumeRT"` // ms
	PullRT            float64 `json:"pullRT"`    // ms
	PullTPS           float64 `json:"pullTPS"`
}

// ConsumeMessageDirectlyResult is a consumer's answer to
// CONSUME_MESSAGE_DIRECTLY.
type ConsumeMessageDirectlyResult struct {
	AutoCommit     bool   `json:"autoCommit"`
	ConsumeResult  string `json:"consumeResult,omitempty"` // CR_SUCCESS, CR_LATER, …
	Order          bool   `json:"order"`
	Remark         string `json:"remark,omitempty"`
	SpentTimeMills int64  `json:"spentTimeMills"`
}
