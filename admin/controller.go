package admin

import (
	"context"
	"slices"
	"strings"

	"mqx/internal/sorted"
)

// Controller is one controller as it and the brokers see it.
type Controller struct {
	ControllerMetadata
	Brokers []string // names of the brokers that are told of it by their configuration, sorted
}

// Controllers finds the controllers that brokers are told of (controllerAddr, where
// enableControllerMode is set) and asks each of them, and the leader that they name, for
// its metadata. With addrs those are asked, and no broker. A cluster without controllers is
// a *NotFoundError.
func (c *Client) Controllers(ctx context.Context, t Target, addrs []string) ([]Controller, []TargetError, error) {
	var errs []TargetError
	brokers := map[string][]string{}
	if len(addrs) == 0 {
		configs, missing, err := c.BrokerConfigs(ctx, t, true)
		if err != nil {
			return nil, nil, err
		}
		addrs, brokers = controllersOf(configs)
		errs = missing
	}
	if len(addrs) == 0 {
		if len(errs) > 0 {
			return nil, errs, nil
		}
		return nil, nil, &NotFoundError{Kind: "controller"}
	}
	found, missing := c.ControllerMetadata(ctx, addrs)
	var leaders []string
	for i := range found {
		if at := found[i].ControllerLeaderAddress; at != "" && !slices.Contains(addrs, at) && !slices.Contains(leaders, at) {
			leaders = append(leaders, at)
		}
	}
	if len(leaders) > 0 {
		more, failed := c.ControllerMetadata(ctx, leaders)
		found, missing = append(found, more...), append(missing, failed...)
	}
	out := make([]Controller, 0, len(found))
	for i := range found {
		out = append(out, Controller{found[i], brokers[found[i].Addr]})
	}
	sorted.By(out, func(a, b Controller) int { return strings.Compare(a.Addr, b.Addr) })
	return out, append(errs, missing...), nil
}

// controllersOf are the addresses of controllers in configurations of brokers, sorted, and
// the names of the brokers that have each of them.
func controllersOf(configs []ServerConfig) (addrs []string, brokers map[string][]string) {
	brokers = map[string][]string{}
	for i := range configs {
		s := &configs[i]
		if s.Values["enableControllerMode"] != "true" {
			continue
		}
		for _, addr := range strings.FieldsFunc(s.Values["controllerAddr"], func(r rune) bool { return r == ';' || r == ',' || r == ' ' }) {
			if !slices.Contains(brokers[addr], s.Name) {
				brokers[addr] = append(brokers[addr], s.Name)
			}
		}
	}
	for addr := range brokers {
		addrs = append(addrs, addr)
		slices.Sort(brokers[addr])
	}
	slices.Sort(addrs)
	return addrs, brokers
}
