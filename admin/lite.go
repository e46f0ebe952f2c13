package admin

import (
	"context"

	"mqx/remoting"
)

// BrokerLite is what a broker holds of lite topics (GET_BROKER_LITE_INFO).
type BrokerLite struct {
	Broker
	Info remoting.BrokerLiteInfo
}

// BrokerLites reads it of the brokers of t.
func (c *Client) BrokerLites(ctx context.Context, t Target) ([]BrokerLite, []TargetError, error) {
	return fromBrokers(ctx, c, t, false, func(b Broker) (BrokerLite, error) {
		info, err := askBody[remoting.BrokerLiteInfo](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqGetBrokerLiteInfo, nil))
		if err != nil {
			return BrokerLite{}, err
		}
		return BrokerLite{b, *info}, nil
	})
}

// Lite is the answer of one broker of a parent topic.
type Lite[T any] struct {
	Broker
	Info T
}

// fromParent asks each broker in the route of a parent topic.
func fromParent[T any](ctx context.Context, c *Client, parent string, code int32, header any) ([]Lite[T], []TargetError, error) {
	brokers, err := c.topicBrokers(ctx, parent)
	if err != nil {
		return nil, nil, err
	}
	out, errs := fromEach(c, brokers, func(b Broker) (Lite[T], error) {
		info, err := askBody[T](ctx, c, b.Addr, remoting.NewRequest(code, header))
		if err != nil {
			return Lite[T]{}, err
		}
		return Lite[T]{b, *info}, nil
	})
	return out, errs, nil
}

// ParentTopics reads the lite topics below a parent topic (GET_PARENT_TOPIC_INFO).
func (c *Client) ParentTopics(ctx context.Context, parent string) ([]Lite[remoting.ParentTopicInfo], []TargetError, error) {
	return fromParent[remoting.ParentTopicInfo](ctx, c, parent, remoting.ReqGetParentTopicInfo, &remoting.GetParentTopicInfoHeader{Topic: parent})
}

// LiteTopics reads one lite topic (GET_LITE_TOPIC_INFO).
func (c *Client) LiteTopics(ctx context.Context, parent, lite string) ([]Lite[remoting.LiteTopicInfo], []TargetError, error) {
	return fromParent[remoting.LiteTopicInfo](ctx, c, parent, remoting.ReqGetLiteTopicInfo, &remoting.GetLiteTopicInfoHeader{ParentTopic: parent, LiteTopic: lite})
}

// maxLiteTopics bounds the lite topics of one client that a broker lists, as Apache's
// tool does.
const maxLiteTopics = 1000

// LiteClients reads which lite topics a client has (GET_LITE_CLIENT_INFO).
func (c *Client) LiteClients(ctx context.Context, parent, group, clientID string) ([]Lite[remoting.LiteClientInfo], []TargetError, error) {
	return fromParent[remoting.LiteClientInfo](ctx, c, parent, remoting.ReqGetLiteClientInfo,
		&remoting.GetLiteClientInfoHeader{ParentTopic: parent, Group: group, ClientID: clientID, MaxCount: maxLiteTopics})
}

// LiteGroups reads how far a group is behind (GET_LITE_GROUP_INFO): in one lite topic,
// or, where lite is empty, over all, with the top ones that are furthest behind.
func (c *Client) LiteGroups(ctx context.Context, parent, group, lite string, top int32) ([]Lite[remoting.LiteGroupInfo], []TargetError, error) {
	return fromParent[remoting.LiteGroupInfo](ctx, c, parent, remoting.ReqGetLiteGroupInfo,
		&remoting.GetLiteGroupInfoHeader{Group: group, LiteTopic: lite, TopK: top})
}
