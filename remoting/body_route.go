package remoting

import "mqx/internal/fastjson"

// TopicRouteData is the answer to GET_ROUTEINFO_BY_TOPIC.
type TopicRouteData struct {
	BrokerDatas       []BrokerData                     `json:"brokerDatas"`
	FilterServerTable map[string][]string              `json:"filterServerTable"`
	OrderTopicConf    *string                          `json:"orderTopicConf"` // nil: not written
	QueueDatas        []QueueData                      `json:"queueDatas"`
	MappingByBroker   map[string]TopicQueueMappingInfo `json:"topicQueueMappingByBroker,omitempty"`
}

// Marshal writes the route in the dialect that the requester can read:
// standard JSON for those that asked for it or are of V4_9_4 or later, the
// loose form for older ones.
func (d *TopicRouteData) Marshal(requesterVersion int32, standardOnly bool) ([]byte, error) {
	if standardOnly || requesterVersion >= V4_9_4 {
		return fastjson.MarshalStandard(d)
	}
	return fastjson.Marshal(d)
}

// BrokerData is one broker name with the addresses of its replicas by id.
type BrokerData struct {
	BrokerAddrs        map[int64]string `json:"brokerAddrs"`
	BrokerName         string           `json:"brokerName"`
	Cluster            string           `json:"cluster"`
	EnableActingMaster bool             `json:"enableActingMaster"`
	ZoneName           string           `json:"zoneName,omitempty"`
}

// QueueData says how many queues a broker has for a topic.
type QueueData struct {
	BrokerName     string `json:"brokerName"`
	Perm           int32  `json:"perm"`
	ReadQueueNums  int32  `json:"readQueueNums"`
	TopicSysFlag   int32  `json:"topicSysFlag"`
	WriteQueueNums int32  `json:"writeQueueNums"`
}

// ClusterInfo is the answer to GET_BROKER_CLUSTER_INFO, always in the loose
// form.
type ClusterInfo struct {
	BrokerAddrTable  map[string]BrokerData `json:"brokerAddrTable"`
	ClusterAddrTable map[string][]string   `json:"clusterAddrTable"`
}

// BrokerMemberGroup holds the replicas of one broker name.
type BrokerMemberGroup struct {
	BrokerAddrs map[int64]string `json:"brokerAddrs"`
	BrokerName  string           `json:"brokerName"`
	Cluster     string           `json:"cluster"`
}

// GetBrokerMemberGroupBody is the answer to GET_BROKER_MEMBER_GROUP.
type GetBrokerMemberGroupBody struct {
	BrokerMemberGroup *BrokerMemberGroup `json:"brokerMemberGroup"`
}

// KVTable is a table of texts.
type KVTable struct {
	Table map[string]string `json:"table"`
}

// TopicList is a list of topic names; BrokerAddr is set in the list of system
// topics only.
type TopicList struct {
	BrokerAddr string   `json:"brokerAddr,omitempty"`
	TopicList  []string `json:"topicList"`
}

// GroupList is a list of group names.
type GroupList struct {
	GroupList []string `json:"groupList"`
}
