package admin

import (
	"context"
	"fmt"
	"time"

	"mqx/client"
	"mqx/internal/fastjson"
	"mqx/remoting"
)

// directTimeout is how long a member may take to consume; brokers wait as long.
const directTimeout = 10 * time.Second

// DirectResult is how a member of a group ended with a message that it was told to consume.
type DirectResult struct {
	ClientID string
	Result   string // CR_SUCCESS, CR_LATER, CR_ROLLBACK, CR_COMMIT, CR_THROW_EXCEPTION, CR_RETURN_NULL
	Remark   string
	Order    bool
	Took     time.Duration
}

// ConsumeDirectly has one member of a group consume a message now. Neither offsets nor retries change: whatever the
// result, the group's place is as before.
func (c *Client) ConsumeDirectly(ctx context.Context, m *client.Received, group, clientID string) (*DirectResult, error) {
	brokers, err := c.primaries(ctx, Target{Broker: m.Queue.BrokerName})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, directTimeout+c.cfg.BrokerTimeout)
	defer cancel()
	req := remoting.NewRequest(remoting.ReqConsumeMessageDirectly, &remoting.ConsumeMessageDirectlyHeader{
		ConsumerGroup: group, ClientID: clientID, MsgID: m.OffsetID, BrokerName: m.Queue.BrokerName, Topic: m.Topic,
	})
	resp, err := c.conn.Call(ctx, brokers[0].Addr, req)
	if err != nil {
		return nil, err
	}
	if resp.Code != remoting.RespSuccess {
		return nil, responseError(brokers[0].Addr, req, resp)
	}
	var r remoting.ConsumeMessageDirectlyResult
	if err := fastjson.Unmarshal(resp.Body, &r); err != nil {
		return nil, fmt.Errorf("cannot read how client %q ended: %w", clientID, err)
	}
	return &DirectResult{ClientID: clientID, Result: r.ConsumeResult, Remark: r.Remark, Order: r.Order, Took: time.Duration(r.SpentTimeMills) * time.Millisecond}, nil
}

// GroupClients are the ids of the members of a group that are online, sorted.
func (c *Client) GroupClients(ctx context.Context, group string) ([]string, error) {
	g, err := c.GetGroup(ctx, group)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range g.Online {
		out = append(out, m.ClientID)
	}
	if len(out) == 0 && len(g.Errors) > 0 {
		return nil, g.Errors[0]
	}
	return out, nil
}
