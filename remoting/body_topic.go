package remoting

// Topic filter types of TopicConfig.
const (
	FilterSingleTag = "SINGLE_TAG"
	FilterMultiTag  = "MULTI_TAG"
)

// TopicConfig is the configuration of a topic on one broker.
type TopicConfig struct {
	Attributes      map[string]string `json:"attributes"`
	Order           bool              `json:"order"`
	Perm            int32             `json:"perm"`
	ReadQueueNums   int32             `json:"readQueueNums"`
	TopicFilterType string            `json:"topicFilterType"`
	TopicName       string            `json:"topicName"`
	TopicSysFlag    int32             `json:"topicSysFlag"`
	WriteQueueNums  int32             `json:"writeQueueNums"`
}

// NewTopicConfig returns the configuration that a topic has when nothing is
// said about it: 16 queues to read and write.
func NewTopicConfig(name string) TopicConfig {
	return TopicConfig{
		Attributes: map[string]string{}, Perm: 6, ReadQueueNums: 16, WriteQueueNums: 16,
		TopicFilterType: FilterSingleTag, TopicName: name,
	}
}

// JSONDefaults gives what an object does not have the value that Apache's class
// begins with.
func (c *TopicConfig) JSONDefaults() { *c = NewTopicConfig("") }

// TopicConfigTable is the table of a broker's topics (topics.json).
type TopicConfigTable struct {
	DataVersion      DataVersion            `json:"dataVersion"`
	TopicConfigTable map[string]TopicConfig `json:"topicConfigTable"`
}

// TopicConfigAndMappingTable is TopicConfigTable with the mapping of static
// topics: the answer to GET_ALL_TOPIC_CONFIG and a part of RegisterBrokerBody.
type TopicConfigAndMappingTable struct {
	DataVersion        DataVersion                        `json:"dataVersion"`
	MappingDataVersion DataVersion                        `json:"mappingDataVersion"`
	TopicConfigTable   map[string]TopicConfig             `json:"topicConfigTable"`
	MappingDetailMap   map[string]TopicQueueMappingDetail `json:"topicQueueMappingDetailMap"`
	MappingInfoMap     map[string]TopicQueueMappingInfo   `json:"topicQueueMappingInfoMap"`
}

// TopicConfigAndMapping is the answer to GET_TOPIC_CONFIG.
type TopicConfigAndMapping struct {
	TopicConfig
	MappingDetail *TopicQueueMappingDetail `json:"mappingDetail"`
}

// CreateTopicListBody is the body of UPDATE_AND_CREATE_TOPIC_LIST.
type CreateTopicListBody struct {
	TopicConfigList []TopicConfig `json:"topicConfigList"`
}

// TopicQueueMappingInfo maps the queues of a static topic to those of one
// broker.
type TopicQueueMappingInfo struct {
	BName       string          `json:"bname"`
	CurrIDMap   map[int32]int32 `json:"currIdMap"` // global id -> physical id
	Dirty       bool            `json:"dirty"`
	Epoch       int64           `json:"epoch"`
	Scope       string          `json:"scope"` // "__global__"
	Topic       string          `json:"topic"`
	TotalQueues int32           `json:"totalQueues"`
}

// TopicQueueMappingDetail is TopicQueueMappingInfo with the history of each
// queue.
type TopicQueueMappingDetail struct {
	TopicQueueMappingInfo
	HostedQueues map[int32][]LogicQueueMappingItem `json:"hostedQueues"`
}

// LogicQueueMappingItem is one stretch of a static topic's queue.
type LogicQueueMappingItem struct {
	BName       string `json:"bname"`
	EndOffset   int64  `json:"endOffset"` // -1: open
	Gen         int32  `json:"gen"`
	LogicOffset int64  `json:"logicOffset"`
	QueueID     int32  `json:"queueId"`
	StartOffset int64  `json:"startOffset"`
	TimeOfEnd   int64  `json:"timeOfEnd"` // ms, -1: none
	TimeOfStart int64  `json:"timeOfStart"`
}
