package admin

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"mqx/internal/sorted"
	"mqx/remoting"
)

// Roles of a server.
const (
	RoleBroker     = "broker"
	RoleNameServer = "nameserver"
	RoleController = "controller"
)

// ServerConfig is the configuration that one server runs with.
type ServerConfig struct {
	Role string
	Broker
	// Values are the keys as the server writes them, with their values as text.
	Values map[string]string
}

// Keys are the names of the values, sorted.
func (s *ServerConfig) Keys() []string { return slices.Sorted(maps.Keys(s.Values)) }

// BrokerConfigs reads the configuration of the brokers of t, sorted by cluster, name
// and id; replicas: of all of a name, not of its master alone.
func (c *Client) BrokerConfigs(ctx context.Context, t Target, replicas bool) ([]ServerConfig, []TargetError, error) {
	brokers, err := c.targets(ctx, t, replicas)
	if err != nil {
		return nil, nil, err
	}
	out, errs := c.configs(ctx, RoleBroker, brokers, remoting.ReqGetBrokerConfig)
	return out, errs, nil
}

// NameServerConfigs reads the configuration of every name server of this client.
func (c *Client) NameServerConfigs(ctx context.Context) ([]ServerConfig, []TargetError) {
	return c.configs(ctx, RoleNameServer, servers(c.cfg.NameServers), remoting.ReqGetNamesrvConfig)
}

// ControllerConfigs reads the configuration of the controllers at addrs.
func (c *Client) ControllerConfigs(ctx context.Context, addrs []string) ([]ServerConfig, []TargetError) {
	return c.configs(ctx, RoleController, servers(addrs), remoting.ReqGetControllerConfig)
}

func (c *Client) configs(ctx context.Context, role string, from []Broker, code int32) ([]ServerConfig, []TargetError) {
	var out []ServerConfig
	errs := c.each(from, func(mu *sync.Mutex, b Broker) error {
		resp, err := c.ask(ctx, b.Addr, remoting.NewRequest(code, nil))
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		out = append(out, ServerConfig{Role: role, Broker: b, Values: propertyLines(resp.Body)})
		return nil
	})
	sorted.By(out, func(a, b ServerConfig) int { return compareBrokers(a.Broker, b.Broker) })
	return out, errs
}

// servers are addresses as each takes them.
func servers(addrs []string) []Broker {
	out := make([]Broker, 0, len(addrs))
	for _, a := range addrs {
		out = append(out, Broker{Addr: a})
	}
	return out
}

func compareBrokers(a, b Broker) int {
	return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Addr, b.Addr))
}

// propertyLines reads a configuration as servers send it: lines of key=value, in
// which nothing is escaped.
func propertyLines(body []byte) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(string(body)) {
		key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		if ok && key != "" {
			values[key] = value
		}
	}
	return values
}

// targets are the brokers of t: with replicas all that there are of a name, else
// those that speak for it.
func (c *Client) targets(ctx context.Context, t Target, replicas bool) ([]Broker, error) {
	if !replicas {
		return c.primaries(ctx, t)
	}
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	chosen, err := selectPrimaries(all, t)
	if err != nil || isAddress(t.Broker) {
		return chosen, err
	}
	var out []Broker
	for _, b := range all {
		if slices.ContainsFunc(chosen, func(p Broker) bool { return p.Cluster == b.Cluster && p.Name == b.Name }) {
			out = append(out, b)
		}
	}
	return out, nil
}
