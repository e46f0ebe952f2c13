package remoting

// PutKVConfigHeader is the request header of PUT_KV_CONFIG (100).
type PutKVConfigHeader struct {
	Namespace string `rmq:"namespace,required"`
	Key       string `rmq:"key,required"`
	Value     string `rmq:"value,required"`
}

// GetKVConfigHeader is the request header of GET_KV_CONFIG (101).
type GetKVConfigHeader struct {
	Namespace string `rmq:"namespace,required"`
	Key       string `rmq:"key,required"`
}

// GetKVConfigResponseHeader is the response header of GET_KV_CONFIG (101).
type GetKVConfigResponseHeader struct {
	Value string `rmq:"value,omitempty"`
}

// DeleteKVConfigHeader is the request header of DELETE_KV_CONFIG (102).
type DeleteKVConfigHeader struct {
	Namespace string `rmq:"namespace,required"`
	Key       string `rmq:"key,required"`
}

// RegisterBrokerHeader is the request header of REGISTER_BROKER (103).
type RegisterBrokerHeader struct {
	BrokerName             string     `rmq:"brokerName,required"`
	BrokerAddr             string     `rmq:"brokerAddr,required"`
	ClusterName            string     `rmq:"clusterName,required"`
	HAServerAddr           string     `rmq:"haServerAddr,required"`
	BrokerID               int64      `rmq:"brokerId,required"`
	HeartbeatTimeoutMillis Opt[int64] `rmq:"heartbeatTimeoutMillis"`
	EnableActingMaster     Opt[bool]  `rmq:"enableActingMaster"`
	Compressed             bool       `rmq:"compressed"`
	BodyCRC32              Opt[int32] `rmq:"bodyCrc32"`
}

// RegisterBrokerResponseHeader is the response header of REGISTER_BROKER (103).
type RegisterBrokerResponseHeader struct {
	HAServerAddr string `rmq:"haServerAddr,omitempty"`
	MasterAddr   string `rmq:"masterAddr,omitempty"`
}

// UnregisterBrokerHeader is the request header of UNREGISTER_BROKER (104).
type UnregisterBrokerHeader struct {
	BrokerName  string `rmq:"brokerName,required"`
	BrokerAddr  string `rmq:"brokerAddr,required"`
	ClusterName string `rmq:"clusterName,required"`
	BrokerID    int64  `rmq:"brokerId,required"`
}

// GetRouteInfoHeader is the request header of GET_ROUTEINFO_BY_TOPIC (105).
type GetRouteInfoHeader struct {
	Topic                  string `rmq:"topic,required"`
	AcceptStandardJsonOnly bool   `rmq:"acceptStandardJsonOnly,omitempty"`
	TopicHeader
}

// WipeWritePermOfBrokerHeader is the request header of WIPE_WRITE_PERM_OF_BROKER (205).
type WipeWritePermOfBrokerHeader struct {
	BrokerName string `rmq:"brokerName,required"`
}

// WipeWritePermOfBrokerResponseHeader is the response header of WIPE_WRITE_PERM_OF_BROKER (205).
type WipeWritePermOfBrokerResponseHeader struct {
	WipeTopicCount int32 `rmq:"wipeTopicCount,required"`
}

// DeleteTopicFromNamesrvHeader is the request header of DELETE_TOPIC_IN_NAMESRV (216).
type DeleteTopicFromNamesrvHeader struct {
	Topic       string `rmq:"topic,required"`
	ClusterName string `rmq:"clusterName,omitempty"`
	TopicHeader
}

// RegisterTopicHeader is the request header of REGISTER_TOPIC_IN_NAMESRV (217).
type RegisterTopicHeader struct {
	Topic string `rmq:"topic,required"`
	TopicHeader
}

// GetKVListByNamespaceHeader is the request header of GET_KVLIST_BY_NAMESPACE (219).
type GetKVListByNamespaceHeader struct {
	Namespace string `rmq:"namespace,required"`
}

// GetTopicsByClusterHeader is the request header of GET_TOPICS_BY_CLUSTER (224).
type GetTopicsByClusterHeader struct {
	Cluster string `rmq:"cluster,required"`
}

// QueryDataVersionHeader is the request header of QUERY_DATA_VERSION (322).
type QueryDataVersionHeader struct {
	BrokerName  string `rmq:"brokerName,required"`
	BrokerAddr  string `rmq:"brokerAddr,required"`
	ClusterName string `rmq:"clusterName,required"`
	BrokerID    int64  `rmq:"brokerId,required"`
}

// QueryDataVersionResponseHeader is the response header of QUERY_DATA_VERSION (322).
type QueryDataVersionResponseHeader struct {
	Changed bool `rmq:"changed,required"`
}

// AddWritePermOfBrokerHeader is the request header of ADD_WRITE_PERM_OF_BROKER (327).
type AddWritePermOfBrokerHeader struct {
	BrokerName string `rmq:"brokerName,required"`
}

// AddWritePermOfBrokerResponseHeader is the response header of ADD_WRITE_PERM_OF_BROKER (327).
type AddWritePermOfBrokerResponseHeader struct {
	AddTopicCount int32 `rmq:"addTopicCount,required"`
}

// GetBrokerMemberGroupHeader is the request header of GET_BROKER_MEMBER_GROUP (901).
type GetBrokerMemberGroupHeader struct {
	ClusterName string `rmq:"clusterName,required"`
	BrokerName  string `rmq:"brokerName,required"`
}

// BrokerHeartbeatHeader is the request header of BROKER_HEARTBEAT (904).
type BrokerHeartbeatHeader struct {
	ClusterName           string     `rmq:"clusterName,required"`
	BrokerAddr            string     `rmq:"brokerAddr,required"`
	BrokerName            string     `rmq:"brokerName,required"`
	BrokerID              Opt[int64] `rmq:"brokerId"`
	Epoch                 Opt[int32] `rmq:"epoch"`
	MaxOffset             Opt[int64] `rmq:"maxOffset"`
	ConfirmOffset         Opt[int64] `rmq:"confirmOffset"`
	HeartbeatTimeoutMills Opt[int64] `rmq:"heartbeatTimeoutMills"`
	ElectionPriority      Opt[int32] `rmq:"electionPriority"`
}

// NotifyMinBrokerIDChangeHeader is the request header of NOTIFY_MIN_BROKER_ID_CHANGE (905).
type NotifyMinBrokerIDChangeHeader struct {
	MinBrokerID       Opt[int64] `rmq:"minBrokerId"`
	BrokerName        string     `rmq:"brokerName,omitempty"`
	MinBrokerAddr     string     `rmq:"minBrokerAddr,omitempty"`
	OfflineBrokerAddr string     `rmq:"offlineBrokerAddr,omitempty"`
	HABrokerAddr      string     `rmq:"haBrokerAddr,omitempty"`
}
