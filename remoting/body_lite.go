package remoting

// LiteSubscriptionCtlBody is the body of LITE_SUBSCRIPTION_CTL.
type LiteSubscriptionCtlBody struct {
	SubscriptionSet []LiteSubscription `json:"subscriptionSet"`
}

// LiteSubscription adds or removes lite topics of a client.
type LiteSubscription struct {
	Action       string            `json:"action"`
	ClientID     string            `json:"clientId"`
	Group        string            `json:"group"`
	LiteTopicSet []string          `json:"liteTopicSet"`
	OffsetOption *LiteOffsetOption `json:"offsetOption"`
	Topic        string            `json:"topic"`
	Version      int64             `json:"version"`
}

// LiteOffsetOption says where to begin.
type LiteOffsetOption struct {
	Type  string `json:"type"`
	Value int64  `json:"value"`
}

// BrokerLiteInfo is the answer to GET_BROKER_LITE_INFO.
type BrokerLiteInfo struct {
	CQTableSize           int32               `json:"cqTableSize"`
	CurrentLMQNum         int32               `json:"currentLmqNum"`
	EventMapSize          int32               `json:"eventMapSize"`
	GroupMeta             map[string][]string `json:"groupMeta"`
	LiteSubscriptionCount int32               `json:"liteSubscriptionCount"`
	MaxLMQNum             int32               `json:"maxLmqNum"`
	OffsetTableSize       int32               `json:"offsetTableSize"`
	OrderInfoCount        int32               `json:"orderInfoCount"`
	StoreType             string              `json:"storeType,omitempty"`
	TopicMeta             map[string]int32    `json:"topicMeta"`
}

// ParentTopicInfo is the answer to GET_PARENT_TOPIC_INFO.
type ParentTopicInfo struct {
	Groups         []string `json:"groups"`
	LiteTopicCount int32    `json:"liteTopicCount"`
	LMQNum         int32    `json:"lmqNum"`
	Topic          string   `json:"topic"`
	TTL            int32    `json:"ttl"` // minutes
}

// LiteClientInfo is the answer to GET_LITE_CLIENT_INFO. Times are ms.
type LiteClientInfo struct {
	ClientID        string   `json:"clientId"`
	Group           string   `json:"group"`
	LastAccessTime  int64    `json:"lastAccessTime"`
	LastConsumeTime int64    `json:"lastConsumeTime"`
	LiteTopicCount  int32    `json:"liteTopicCount"`
	LiteTopicSet    []string `json:"liteTopicSet"`
	ParentTopic     string   `json:"parentTopic"`
}

// ClientGroup is a client of a group.
type ClientGroup struct {
	ClientID string `json:"clientId"`
	Group    string `json:"group"`
}

// LiteTopicInfo is the answer to GET_LITE_TOPIC_INFO.
type LiteTopicInfo struct {
	LiteTopic        string        `json:"liteTopic"`
	ParentTopic      string        `json:"parentTopic"`
	ShardingToBroker bool          `json:"shardingToBroker"`
	Subscriber       []ClientGroup `json:"subscriber"`
	TopicOffset      *TopicOffset  `json:"topicOffset"`
}

// LiteGroupInfo is the answer to GET_LITE_GROUP_INFO. Times are ms.
type LiteGroupInfo struct {
	EarliestUnconsumedTimestamp int64          `json:"earliestUnconsumedTimestamp"`
	Group                       string         `json:"group"`
	LagCountTopK                []LiteLag      `json:"lagCountTopK"`
	LagTimestampTopK            []LiteLag      `json:"lagTimestampTopK"`
	LiteTopic                   string         `json:"liteTopic,omitempty"`
	LiteTopicOffsetWrapper      *OffsetWrapper `json:"liteTopicOffsetWrapper"`
	ParentTopic                 string         `json:"parentTopic"`
	TotalLagCount               int64          `json:"totalLagCount"`
}

// LiteLag is how far a group is behind in one lite topic.
type LiteLag struct {
	EarliestUnconsumedTimestamp int64  `json:"earliestUnconsumedTimestamp"`
	LagCount                    int64  `json:"lagCount"`
	LiteTopic                   string `json:"liteTopic"`
}
