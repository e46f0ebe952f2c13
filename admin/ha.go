package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mqx/internal/fastjson"
	"mqx/remoting"
)

// HAStatus is how a broker replicates (GET_BROKER_HA_STATUS).
type HAStatus struct {
	Broker
	Info remoting.HARuntimeInfo
}

// HAStatuses reads the replication of the brokers of t; replicas: of all of a name.
func (c *Client) HAStatuses(ctx context.Context, t Target, replicas bool) ([]HAStatus, []TargetError, error) {
	return fromBrokers(ctx, c, t, replicas, func(b Broker) (HAStatus, error) {
		info, err := askBody[remoting.HARuntimeInfo](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqGetBrokerHAStatus, nil))
		if err != nil {
			return HAStatus{}, err
		}
		return HAStatus{b, *info}, nil
	})
}

// ControllerMetadata is what one controller says of its group.
type ControllerMetadata struct {
	Addr string
	remoting.ControllerGetMetadataInfoResponseHeader
}

// PeerList are the members of the group, as they write themselves.
func (m *ControllerMetadata) PeerList() []string {
	return strings.FieldsFunc(m.Peers, func(r rune) bool { return r == ';' })
}

// ControllerMetadata asks every controller at addrs (CONTROLLER_GET_METADATA_INFO).
func (c *Client) ControllerMetadata(ctx context.Context, addrs []string) ([]ControllerMetadata, []TargetError) {
	return fromEach(c, servers(addrs), func(b Broker) (ControllerMetadata, error) {
		resp, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqControllerGetMetadataInfo, nil))
		if err != nil {
			return ControllerMetadata{}, err
		}
		m := ControllerMetadata{Addr: b.Addr}
		if err := remoting.DecodeHeader(resp.Fields, &m.ControllerGetMetadataInfoResponseHeader); err != nil {
			return m, fmt.Errorf("cannot read answer to %s: %w", remoting.RequestName(remoting.ReqControllerGetMetadataInfo), err)
		}
		return m, nil
	})
}

// SyncState is what the controller knows of the replicas of one broker name.
type SyncState struct {
	BrokerName string
	remoting.ReplicasInfo
}

// SyncStates asks the controllers at addrs, in turn until one that leads answers, for
// the replicas of broker names (CONTROLLER_GET_SYNC_STATE_DATA); no names mean all
// brokers of t.
func (c *Client) SyncStates(ctx context.Context, addrs []string, t Target) ([]SyncState, error) {
	names := []string{t.Broker}
	if t.Broker == "" {
		brokers, err := c.primaries(ctx, t)
		if err != nil {
			return nil, err
		}
		names = names[:0]
		for _, b := range brokers {
			names = append(names, b.Name)
		}
	}
	body, err := json.Marshal(names)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for replicas: %w", err)
	}
	errNone := errors.New("no controller address is given")
	for _, addr := range c.leaderFirst(ctx, addrs) {
		req := remoting.NewRequest(remoting.ReqControllerGetSyncStateData, nil)
		req.Body = body
		resp, err := c.ask(ctx, addr, req)
		if err != nil {
			errNone = err
			continue
		}
		var info remoting.BrokerReplicasInfo
		if err := fastjson.Unmarshal(resp.Body, &info); err != nil {
			return nil, fmt.Errorf("cannot read answer to %s: %w", remoting.RequestName(req.Code), err)
		}
		var out []SyncState
		for _, name := range slices.Sorted(maps.Keys(info.ReplicasInfoTable)) {
			out = append(out, SyncState{name, info.ReplicasInfoTable[name]})
		}
		return out, nil
	}
	return nil, fmt.Errorf("cannot read replicas: %w", errNone)
}

// leaderFirst puts the leader that the controllers name before the addresses.
func (c *Client) leaderFirst(ctx context.Context, addrs []string) []string {
	found, _ := c.ControllerMetadata(ctx, addrs) // the addresses themselves are tried all the same
	for i := range found {
		if leader := found[i].ControllerLeaderAddress; leader != "" {
			return slices.Compact(append([]string{leader}, addrs...))
		}
	}
	return addrs
}
