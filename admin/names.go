package admin

import (
	"context"
	"errors"
	"slices"
	"sync"

	"mqx/message"
)

// TopicNamesByUse are the topics that the name servers route, sorted: those of applications,
// and those that brokers keep for themselves, the ones called as a cluster or a broker
// too. Retry and dead letter topics are among the latter. It asks no broker.
func (c *Client) TopicNamesByUse(ctx context.Context) (application, system []string, err error) {
	all, err := c.TopicNames(ctx)
	if err != nil {
		return nil, nil, err
	}
	brokers, err := c.Cluster(ctx)
	own := ownNames(brokers)
	for _, name := range all {
		if topicKind(name, own) == KindNormal {
			application = append(application, name)
		} else {
			system = append(system, name)
		}
	}
	return application, system, err
}

// GroupNames are the consumer groups that brokers hold a configuration of, sorted: those of
// applications, and those that brokers keep for themselves. Where some broker did not
// answer the names of the others come with the error.
func (c *Client) GroupNames(ctx context.Context) (application, system []string, err error) {
	brokers, err := c.primaries(ctx, Target{})
	if err != nil {
		return nil, nil, err
	}
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		table, err := c.groupTable(ctx, b.Addr)
		mu.Lock()
		defer mu.Unlock()
		for name := range table {
			if message.IsSystemGroup(name) {
				system = append(system, name)
			} else {
				application = append(application, name)
			}
		}
		return err
	})
	slices.Sort(application)
	slices.Sort(system)
	for _, e := range errs {
		err = errors.Join(err, e)
	}
	return slices.Compact(application), slices.Compact(system), err
}
