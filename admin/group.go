package admin

import (
	"context"
	"time"
)

// Group is a consumer group with its configuration by broker.
type Group struct {
	Name    string
	Builtin bool
	Members int // distinct client ids online
	Type    string
	Model   string
	Brokers []GroupBroker
}

// GroupBroker is the configuration of a group on one broker.
type GroupBroker struct {
	Cluster                        string
	Broker                         string
	Addr                           string
	ConsumeEnable                  bool
	ConsumeFromMinEnable           bool
	ConsumeBroadcastEnable         bool
	ConsumeMessageOrderly          bool
	RetryQueueNums                 int
	RetryMaxTimes                  int
	BrokerID                       int64
	WhichBrokerWhenConsumeSlowly   int64
	NotifyConsumerIDsChangedEnable bool
	Attributes                     map[string]string
}

// GroupMember is a client online in a group.
type GroupMember struct {
	ClientID string
	Addr     string
	Language string
	Version  string
}

// GroupSubscription is what a group reads.
type GroupSubscription struct {
	Topic      string
	Expression string
	Type       string
}

// GroupQueue is the position of a group in one queue.
type GroupQueue struct {
	Topic          string
	Broker         string
	QueueID        int32
	BrokerOffset   int64
	ConsumerOffset int64 // -1 when never committed
	PullOffset     int64
	LastTime       time.Time // store time of the last consumed message; zero when unknown
}

// GroupList is the answer of ListGroups.
type GroupList struct {
	Items  []Group
	Errors []TargetError
}

// ListGroupsOptions narrows a list.
type ListGroupsOptions struct {
	Target  Target
	Builtin bool
}

// ListGroups lists the groups that brokers hold a configuration of.
func (c *Client) ListGroups(ctx context.Context, o ListGroupsOptions) (*GroupList, error) {
	return nil, errNotBuilt
}

// GroupDetail is the answer of GetGroup.
type GroupDetail struct {
	Group
	Online        []GroupMember
	Subscriptions []GroupSubscription
	Queues        []GroupQueue
	Errors        []TargetError
}

// GetGroup describes one group: configuration, members, subscriptions, offsets.
func (c *Client) GetGroup(ctx context.Context, name string) (*GroupDetail, error) {
	return nil, errNotBuilt
}
