package admin

import (
	"context"
	"errors"
	"slices"
	"sync"

	"mqx/remoting"
)

// TopicThere are the brokers that the name servers route a topic to, sorted; none is no
// error.
func (c *Client) TopicThere(ctx context.Context, topic string) ([]string, error) {
	r, err := c.Route(ctx, topic)
	if _, ok := errors.AsType[*NotFoundError](err); ok {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, q := range r.QueueDatas {
		out = append(out, q.BrokerName)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// BrokerThere reports whether a broker is registered under a name, or at an address,
// and, of those that are, which answer a request and which do not.
func (c *Client) BrokerThere(ctx context.Context, name string) (registered []Broker, errs []TargetError, err error) {
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, b := range all {
		if b.Name == name || b.Addr == name {
			registered = append(registered, b)
		}
	}
	errs = c.each(registered, func(_ *sync.Mutex, b Broker) error {
		_, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqGetBrokerRuntimeInfo, nil))
		if hasCode(err, remoting.RespNoPermission) {
			return nil // it answers
		}
		return err
	})
	return registered, errs, nil
}
