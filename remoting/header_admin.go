package remoting

// CreateTopicHeader is the request header of UPDATE_AND_CREATE_TOPIC (17),
// UPDATE_AND_CREATE_STATIC_TOPIC (513).
type CreateTopicHeader struct {
	Topic           string `rmq:"topic,required"`
	DefaultTopic    string `rmq:"defaultTopic,required"`
	ReadQueueNums   int32  `rmq:"readQueueNums,required"`
	WriteQueueNums  int32  `rmq:"writeQueueNums,required"`
	Perm            int32  `rmq:"perm,required"`
	TopicFilterType string `rmq:"topicFilterType,required"`
	TopicSysFlag    int32  `rmq:"topicSysFlag"`
	Order           bool   `rmq:"order,required"`
	Attributes      string `rmq:"attributes,omitempty"`
	Force           bool   `rmq:"force"`
	TopicHeader
}

// GetAllTopicConfigHeader is the request header of GET_ALL_TOPIC_CONFIG (21).
// A request without any field asks for everything at once; such a one must not be decoded.
type GetAllTopicConfigHeader struct {
	TopicSeq    int32      `rmq:"topicSeq,required"`
	DataVersion string     `rmq:"dataVersion,omitempty"`
	MaxTopicNum Opt[int32] `rmq:"maxTopicNum"`
}

// GetAllTopicConfigResponseHeader is the response header of GET_ALL_TOPIC_CONFIG (21).
type GetAllTopicConfigResponseHeader struct {
	TotalTopicNum Opt[int32] `rmq:"totalTopicNum"`
}

// GetBrokerConfigResponseHeader is the response header of GET_BROKER_CONFIG (26).
type GetBrokerConfigResponseHeader struct {
	Version string `rmq:"version,required"`
}

// GetAllSubscriptionGroupConfigHeader is the request header of
// GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201).
// A request without any field asks for everything at once; such a one must not be decoded.
type GetAllSubscriptionGroupConfigHeader struct {
	GroupSeq    int32      `rmq:"groupSeq,required"`
	DataVersion string     `rmq:"dataVersion,omitempty"`
	MaxGroupNum Opt[int32] `rmq:"maxGroupNum"`
}

// GetAllSubscriptionGroupConfigResponseHeader is the response header of
// GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201).
type GetAllSubscriptionGroupConfigResponseHeader struct {
	TotalGroupNum int32 `rmq:"totalGroupNum,required"`
}

// GetTopicStatsInfoHeader is the request header of GET_TOPIC_STATS_INFO (202).
type GetTopicStatsInfoHeader struct {
	Topic string `rmq:"topic,required"`
	TopicHeader
}

// GetConsumerConnectionListHeader is the request header of GET_CONSUMER_CONNECTION_LIST (203).
type GetConsumerConnectionListHeader struct {
	ConsumerGroup string `rmq:"consumerGroup,required"`
	RPCHeader
}

// GetProducerConnectionListHeader is the request header of GET_PRODUCER_CONNECTION_LIST (204).
type GetProducerConnectionListHeader struct {
	ProducerGroup string `rmq:"producerGroup,required"`
	RPCHeader
}

// DeleteSubscriptionGroupHeader is the request header of DELETE_SUBSCRIPTIONGROUP (207).
type DeleteSubscriptionGroupHeader struct {
	GroupName   string `rmq:"groupName,required"`
	CleanOffset bool   `rmq:"cleanOffset"`
	RPCHeader
}

// GetConsumeStatsHeader is the request header of GET_CONSUME_STATS (208).
type GetConsumeStatsHeader struct {
	ConsumerGroup string `rmq:"consumerGroup,required"`
	Topic         string `rmq:"topic,omitempty"`
	TopicList     string `rmq:"topicList,omitempty"`
	TopicHeader
}

// DeleteTopicHeader is the request header of DELETE_TOPIC_IN_BROKER (215).
type DeleteTopicHeader struct {
	Topic string `rmq:"topic,required"`
	TopicHeader
}

// QueryTopicConsumeByWhoHeader is the request header of QUERY_TOPIC_CONSUME_BY_WHO (300).
type QueryTopicConsumeByWhoHeader struct {
	Topic string `rmq:"topic,required"`
	TopicHeader
}

// QueryConsumeTimeSpanHeader is the request header of QUERY_CONSUME_TIME_SPAN (303).
type QueryConsumeTimeSpanHeader struct {
	Topic string `rmq:"topic,required"`
	Group string `rmq:"group,required"`
	TopicHeader
}

// QueryCorrectionOffsetHeader is the request header of QUERY_CORRECTION_OFFSET (308).
type QueryCorrectionOffsetHeader struct {
	FilterGroups string `rmq:"filterGroups,omitempty"`
	CompareGroup string `rmq:"compareGroup,required"`
	Topic        string `rmq:"topic,required"`
	TopicHeader
}

// CloneGroupOffsetHeader is the request header of CLONE_GROUP_OFFSET (314).
type CloneGroupOffsetHeader struct {
	SrcGroup  string `rmq:"srcGroup,required"`
	DestGroup string `rmq:"destGroup,required"`
	Topic     string `rmq:"topic,omitempty"`
	Offline   bool   `rmq:"offline"`
	RPCHeader
}

// ViewBrokerStatsDataHeader is the request header of VIEW_BROKER_STATS_DATA (315).
type ViewBrokerStatsDataHeader struct {
	StatsName string `rmq:"statsName,required"`
	StatsKey  string `rmq:"statsKey,required"`
}

// GetBrokerConsumeStatsHeader is the request header of GET_BROKER_CONSUME_STATS (317).
type GetBrokerConsumeStatsHeader struct {
	IsOrder bool `rmq:"isOrder,required"`
}

// QueryConsumeQueueHeader is the request header of QUERY_CONSUME_QUEUE (321).
type QueryConsumeQueueHeader struct {
	Topic         string `rmq:"topic,omitempty"`
	QueueID       int32  `rmq:"queueId"`
	Index         int64  `rmq:"index"`
	Count         int32  `rmq:"count"`
	ConsumerGroup string `rmq:"consumerGroup,omitempty"`
	TopicHeader
}

// ResumeCheckHalfMessageHeader is the request header of RESUME_CHECK_HALF_MESSAGE (323).
type ResumeCheckHalfMessageHeader struct {
	Topic string `rmq:"topic,omitempty"`
	MsgID string `rmq:"msgId,omitempty"`
}

// QueryTopicsByConsumerHeader is the request header of QUERY_TOPICS_BY_CONSUMER (343).
type QueryTopicsByConsumerHeader struct {
	Group string `rmq:"group,required"`
	RPCHeader
}

// QuerySubscriptionByConsumerHeader is the request header of QUERY_SUBSCRIPTION_BY_CONSUMER (345).
type QuerySubscriptionByConsumerHeader struct {
	Group string `rmq:"group,required"`
	Topic string `rmq:"topic,omitempty"`
	TopicHeader
}

// GetTopicConfigHeader is the request header of GET_TOPIC_CONFIG (351).
type GetTopicConfigHeader struct {
	Topic string `rmq:"topic,required"`
	TopicHeader
}

// GetSubscriptionGroupConfigHeader is the request header of GET_SUBSCRIPTIONGROUP_CONFIG (352).
type GetSubscriptionGroupConfigHeader struct {
	Group string `rmq:"group,required"`
	RPCHeader
}

// UpdateAndGetGroupForbiddenHeader is the request header of UPDATE_AND_GET_GROUP_FORBIDDEN (353).
type UpdateAndGetGroupForbiddenHeader struct {
	Group    string `rmq:"group,required"`
	Topic    string `rmq:"topic,required"`
	Readable bool   `rmq:"readable,omitempty"`
	TopicHeader
}

// CheckRocksDBCQWriteProgressHeader is the request header of CHECK_ROCKSDB_CQ_WRITE_PROGRESS (354).
type CheckRocksDBCQWriteProgressHeader struct {
	Topic          string `rmq:"topic,required"`
	CheckStoreTime int64  `rmq:"checkStoreTime"`
}

// ExportRocksDBConfigToJSONHeader is the request header of EXPORT_ROCKSDB_CONFIG_TO_JSON (355).
type ExportRocksDBConfigToJSONHeader struct {
	ConfigType string `rmq:"configType,required"`
}

// AuthCreateUserHeader is the request header of AUTH_CREATE_USER (3001).
type AuthCreateUserHeader struct {
	Username string `rmq:"username,omitempty"`
}

// AuthUpdateUserHeader is the request header of AUTH_UPDATE_USER (3002).
type AuthUpdateUserHeader struct {
	Username string `rmq:"username,omitempty"`
}

// AuthDeleteUserHeader is the request header of AUTH_DELETE_USER (3003).
type AuthDeleteUserHeader struct {
	Username string `rmq:"username,omitempty"`
}

// AuthGetUserHeader is the request header of AUTH_GET_USER (3004).
type AuthGetUserHeader struct {
	Username string `rmq:"username,omitempty"`
}

// AuthListUserHeader is the request header of AUTH_LIST_USER (3005).
type AuthListUserHeader struct {
	Filter string `rmq:"filter,omitempty"`
}

// AuthCreateACLHeader is the request header of AUTH_CREATE_ACL (3006).
type AuthCreateACLHeader struct {
	Subject string `rmq:"subject,omitempty"`
}

// AuthUpdateACLHeader is the request header of AUTH_UPDATE_ACL (3007).
type AuthUpdateACLHeader struct {
	Subject string `rmq:"subject,omitempty"`
}

// AuthDeleteACLHeader is the request header of AUTH_DELETE_ACL (3008).
type AuthDeleteACLHeader struct {
	Subject    string `rmq:"subject,omitempty"`
	PolicyType string `rmq:"policyType,omitempty"`
	Resource   string `rmq:"resource,omitempty"`
}

// AuthGetACLHeader is the request header of AUTH_GET_ACL (3009).
type AuthGetACLHeader struct {
	Subject string `rmq:"subject,omitempty"`
}

// AuthListACLHeader is the request header of AUTH_LIST_ACL (3010).
type AuthListACLHeader struct {
	SubjectFilter  string `rmq:"subjectFilter,omitempty"`
	ResourceFilter string `rmq:"resourceFilter,omitempty"`
}
