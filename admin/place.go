package admin

import (
	"context"
	"net"
	"slices"
)

// place says at which servers a change is made. One of its fields is set.
type place struct {
	// Masters of a cluster, or one broker.
	Masters *Target `json:"masters,omitempty"`
	// Brokers of a cluster, slaves too, or one broker.
	Brokers *Target `json:"brokers,omitempty"`
	// NameServers: each of them.
	NameServers bool `json:"nameServers,omitempty"`
	// Addrs are servers by their addresses: controllers, containers.
	Addrs []string `json:"addrs,omitempty"`
}

// onMasters is the place of what masters keep.
func onMasters(t Target) place { return place{Masters: &t} }

// servers finds the servers of a place. Those that cannot be changed are in the
// errors.
func (c *Client) servers(ctx context.Context, p place) ([]Broker, []TargetError, error) {
	switch {
	case p.Masters != nil:
		return c.changeTargets(ctx, *p.Masters)
	case p.Brokers != nil:
		return c.allBrokers(ctx, *p.Brokers)
	case p.NameServers:
		var out []Broker
		for _, addr := range c.ns.All() {
			out = append(out, Broker{Addr: addr})
		}
		return out, nil, nil
	}
	var out []Broker
	for _, addr := range p.Addrs {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, nil, invalidf("cannot use address %q: it has the form HOST:PORT", addr)
		}
		out = append(out, Broker{Addr: addr})
	}
	return out, nil, nil
}

// allBrokers are the brokers of a target, slaves too. An address is that broker
// alone.
func (c *Client) allBrokers(ctx context.Context, t Target) ([]Broker, []TargetError, error) {
	masters, _, err := c.changeTargets(ctx, t) // what is named must be there, and be one
	if err != nil {
		return nil, nil, err
	}
	if _, _, err := net.SplitHostPort(t.Broker); err == nil {
		return masters, nil, nil
	}
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil, nil, err
	}
	return slices.DeleteFunc(all, func(b Broker) bool {
		return t.Cluster != "" && b.Cluster != t.Cluster || t.Broker != "" && b.Name != t.Broker
	}), nil, nil
}

// clustersNamed are the clusters of servers; of name servers, those that they know.
// None is said where nobody can tell: the names are for a person to read.
func (c *Client) clustersNamed(ctx context.Context, servers []Broker) []string {
	if names := clustersOf(servers); len(names) > 0 {
		return names
	}
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil
	}
	return clustersOf(all)
}
