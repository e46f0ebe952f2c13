package admin

import (
	"context"

	"mqx/remoting"
)

// RuntimeInfo is what the broker at addr tells of its state, under Apache's keys.
func (c *Client) RuntimeInfo(ctx context.Context, addr string) (map[string]string, error) {
	kv, err := askBody[remoting.KVTable](ctx, c, addr, remoting.NewRequest(remoting.ReqGetBrokerRuntimeInfo, nil))
	if err != nil {
		return nil, err
	}
	return kv.Table, nil
}
