package admin

import (
	"context"
	"time"
)

// Topic is a topic as the brokers together hold it.
type Topic struct {
	Name    string
	System  bool
	Kind    string // normal, retry, dlq, system
	Brokers []TopicBroker
}

// TopicBroker is the part of a topic on one broker.
type TopicBroker struct {
	Cluster     string
	Broker      string
	Addr        string // of the master, else of the smallest id
	ReadQueues  int
	WriteQueues int
	Perm        int
	SysFlag     int
	Order       bool
	Attributes  map[string]string
}

// TopicQueue is the state of one queue.
type TopicQueue struct {
	Cluster     string
	Broker      string
	QueueID     int32
	MinOffset   int64
	MaxOffset   int64
	LastUpdated time.Time // zero when the queue is empty
}

// TopicList is the answer of ListTopics.
type TopicList struct {
	Items  []Topic
	Errors []TargetError
}

// ListTopicsOptions narrows a list.
type ListTopicsOptions struct {
	Target Target
	// System includes system topics; Retry the retry and dead letter topics of groups.
	System, Retry bool
}

// ListTopics lists topics with their queues and permissions by broker.
func (c *Client) ListTopics(ctx context.Context, o ListTopicsOptions) (*TopicList, error) {
	return nil, errNotBuilt
}

// TopicDetail is the answer of GetTopic.
type TopicDetail struct {
	Topic
	Queues []TopicQueue
	Groups []string // that consume it, online or with an offset
	Errors []TargetError
}

// GetTopic describes one topic: configuration, queue offsets, groups.
func (c *Client) GetTopic(ctx context.Context, name string) (*TopicDetail, error) {
	return nil, errNotBuilt
}

// TopicSpec is a topic to create or to change.
type TopicSpec struct {
	Name        string
	ReadQueues  int // 0 means 8
	WriteQueues int // 0 means 8
	Perm        int // 0 means 6 (read and write)
	Order       bool
	Unit        bool
	HasUnitSub  bool
	// Attributes in the request's form: +key=value, -key.
	Attributes map[string]string
}

// Change is what a plan does on one target.
type Change struct {
	Broker  string
	Addr    string
	Action  string // create, update, keep, delete, none
	Before  *TopicBroker
	After   *TopicBroker
	Warning string
}

// TopicPlan is a change of a topic, planned and not yet done.
type TopicPlan struct {
	Kind    string // create, delete
	Cluster []string
	Topic   string
	Changes []Change
	// Unread counts messages of groups that a deletion would destroy unread.
	Unread []UnreadGroup
	Errors []TargetError
}

// UnreadGroup is a group with messages left to read in a queue.
type UnreadGroup struct {
	Group   string
	Broker  string
	QueueID int32
	Count   int64
}

// Empty says that applying would change nothing.
func (p *TopicPlan) Empty() bool { return len(p.Changes) == 0 }

// Result is what Apply did: every change with the state read back.
type Result struct {
	Done   []Change
	Errors []TargetError
}

// PlanCreateTopic reads the present state on the target's masters and plans the creation.
func (c *Client) PlanCreateTopic(ctx context.Context, t Target, spec TopicSpec) (*TopicPlan, error) {
	return nil, errNotBuilt
}

// PlanDeleteTopic plans the deletion of a topic on the target's masters and at the name servers.
func (c *Client) PlanDeleteTopic(ctx context.Context, t Target, name string) (*TopicPlan, error) {
	return nil, errNotBuilt
}

// Apply carries a plan out and reads it back.
func (c *Client) Apply(ctx context.Context, p *TopicPlan) (*Result, error) { return nil, errNotBuilt }
