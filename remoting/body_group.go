package remoting

// Kinds of GroupRetryPolicy.
const (
	RetryExponential = "EXPONENTIAL"
	RetryCustomized  = "CUSTOMIZED"
)

// SubscriptionGroupConfig is the configuration of a consumer group on one
// broker.
type SubscriptionGroupConfig struct {
	Attributes                     map[string]string        `json:"attributes"`
	BrokerID                       int64                    `json:"brokerId"`
	ConsumeBroadcastEnable         bool                     `json:"consumeBroadcastEnable"`
	ConsumeEnable                  bool                     `json:"consumeEnable"`
	ConsumeFromMinEnable           bool                     `json:"consumeFromMinEnable"`
	ConsumeMessageOrderly          bool                     `json:"consumeMessageOrderly"`
	ConsumeTimeoutMinute           int32                    `json:"consumeTimeoutMinute"`
	GroupName                      string                   `json:"groupName"`
	GroupRetryPolicy               GroupRetryPolicy         `json:"groupRetryPolicy"`
	GroupSysFlag                   int32                    `json:"groupSysFlag"`
	NotifyConsumerIDsChangedEnable bool                     `json:"notifyConsumerIdsChangedEnable"`
	RetryMaxTimes                  int32                    `json:"retryMaxTimes"`
	RetryQueueNums                 int32                    `json:"retryQueueNums"`
	SubscriptionDataSet            []SimpleSubscriptionData `json:"subscriptionDataSet,omitempty"`
	WhichBrokerWhenConsumeSlowly   int64                    `json:"whichBrokerWhenConsumeSlowly"`
}

// NewSubscriptionGroupConfig returns the configuration of a group of which
// nothing is said.
func NewSubscriptionGroupConfig(name string) SubscriptionGroupConfig {
	return SubscriptionGroupConfig{
		Attributes: map[string]string{}, ConsumeBroadcastEnable: true, ConsumeEnable: true, ConsumeFromMinEnable: true,
		ConsumeTimeoutMinute: 15, GroupName: name, GroupRetryPolicy: GroupRetryPolicy{Type: RetryCustomized},
		NotifyConsumerIDsChangedEnable: true, RetryMaxTimes: 16, RetryQueueNums: 1, WhichBrokerWhenConsumeSlowly: 1,
	}
}

// JSONDefaults gives what an object does not have the value that Apache's class
// begins with.
func (c *SubscriptionGroupConfig) JSONDefaults() { *c = NewSubscriptionGroupConfig("") }

// JSONDefaults is that of SubscriptionGroupConfig.
func (p *GroupRetryPolicy) JSONDefaults() { *p = GroupRetryPolicy{Type: RetryCustomized} }

// JSONDefaults is that of SubscriptionGroupConfig.
func (p *ExponentialRetryPolicy) JSONDefaults() {
	*p = ExponentialRetryPolicy{Initial: 5000, Max: 7_200_000, Multiplier: 2}
}

// JSONDefaults is that of SubscriptionGroupConfig: the delay levels from the first on.
func (p *CustomizedRetryPolicy) JSONDefaults() {
	const second, minute, hour = 1000, 60_000, 3_600_000
	*p = CustomizedRetryPolicy{Next: []int64{
		second, 5 * second, 10 * second, 30 * second, minute, 2 * minute, 3 * minute, 4 * minute, 5 * minute, 6 * minute, 7 * minute,
		8 * minute, 9 * minute, 10 * minute, 20 * minute, 30 * minute, hour, 2 * hour,
	}}
}

// SimpleSubscriptionData is one subscription that a group must have.
type SimpleSubscriptionData struct {
	Expression     string `json:"expression"`
	ExpressionType string `json:"expressionType"`
	Topic          string `json:"topic"`
	Version        int64  `json:"version"`
}

// GroupRetryPolicy says when a message is delivered again.
type GroupRetryPolicy struct {
	CustomizedRetryPolicy  *CustomizedRetryPolicy  `json:"customizedRetryPolicy"`
	ExponentialRetryPolicy *ExponentialRetryPolicy `json:"exponentialRetryPolicy"`
	Type                   string                  `json:"type"`
}

// CustomizedRetryPolicy lists the delays of the attempts in ms.
type CustomizedRetryPolicy struct {
	Next []int64 `json:"next"`
}

// ExponentialRetryPolicy lets the delay grow, in ms.
type ExponentialRetryPolicy struct {
	Initial    int64 `json:"initial"`
	Max        int64 `json:"max"`
	Multiplier int64 `json:"multiplier"`
}

// SubscriptionGroupTable is the table of a broker's groups
// (subscriptionGroup.json).
type SubscriptionGroupTable struct {
	DataVersion            DataVersion                        `json:"dataVersion"`
	ForbiddenTable         map[string]map[string]int32        `json:"forbiddenTable"`
	SubscriptionGroupTable map[string]SubscriptionGroupConfig `json:"subscriptionGroupTable"`
}

// SubscriptionGroupList is the body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST.
type SubscriptionGroupList struct {
	GroupConfigList []SubscriptionGroupConfig `json:"groupConfigList"`
}

// GroupForbidden is the answer to UPDATE_AND_GET_GROUP_FORBIDDEN.
type GroupForbidden struct {
	Group    string `json:"group"`
	Readable *bool  `json:"readable"`
	Topic    string `json:"topic"`
}
