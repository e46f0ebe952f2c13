package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"mqx/internal/fastjson"
	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/client"
)

// JoinEmpty is the value of Config.Join with which a broker comes into a cluster
// without taking traffic by surprise: no topic comes into being by itself, so that
// topics arrive only where somebody creates them, and the groups of the cluster are
// there before the first of them does. Apache's broker answers for its default topic
// as soon as it has registered, and gets a share of every new topic.
const JoinEmpty = "empty"

const (
	// joinPageSize is the number of groups asked for at a time.
	joinPageSize = 2000
	// joinTimeout bounds each request to a name server or a peer.
	joinTimeout = 3 * time.Second
	// joinRestarts bounds how often a table that changes while it is read is begun anew.
	joinRestarts = 5
)

// join copies the groups of the cluster from a peer, before the tables are loaded: at
// the first start only, when the broker has no groups of its own. A cluster without
// another broker has none to copy. A name server or a peer that does not answer
// refuses the start: consumers would meet a broker that does not know them.
func (b *Broker) join(ctx context.Context) error {
	cfg := b.cfg()
	if cfg.Join == "" {
		return nil
	}
	path := b.configFile("subscriptionGroup.json")
	switch groups, topics, err := b.tablesThere(path); {
	case err != nil:
		return fmt.Errorf("cannot join cluster %q: %w", cfg.BrokerClusterName, err)
	case groups:
		b.log.Info("no groups are copied: the broker has its own from an earlier start", "file", path)
		return nil
	case topics:
		return fmt.Errorf("cannot join cluster %q empty: the store has topics (%s) and no groups", cfg.BrokerClusterName, b.configFile("topics.json"))
	}
	groups, peer, err := b.peerGroups(ctx)
	if err != nil {
		return fmt.Errorf("cannot join cluster %q: %w", cfg.BrokerClusterName, err)
	}
	if groups == nil {
		b.log.Warn("no groups are copied: the name servers know no other broker of the cluster", "cluster", cfg.BrokerClusterName)
		return nil
	}
	groups.DataVersion = remoting.NewDataVersion(b.now())
	text, err := fastjson.MarshalPretty(groups)
	if err != nil {
		return err
	}
	if err := jsonfile.Save(b.fsys, path, text); err != nil {
		return fmt.Errorf("cannot join cluster %q: %w", cfg.BrokerClusterName, err)
	}
	b.log.Info("subscription groups copied from a peer", "peer", peer, "groups", len(groups.SubscriptionGroupTable))
	return nil
}

// tablesThere reports whether the store has a table of groups and one of topics.
func (b *Broker) tablesThere(path string) (groups, topics bool, err error) {
	there := func(path string) bool {
		for _, name := range []string{path, jsonfile.BackupName(path)} {
			switch _, statErr := b.fsys.Stat(name); {
			case statErr == nil:
				return true
			case !errors.Is(statErr, fs.ErrNotExist):
				err = statErr
			}
		}
		return false
	}
	groups, topics = there(path), there(b.configFile("topics.json"))
	return groups, topics, err
}

// peerGroups are the groups of the first peer that gives them, and its address; nil
// where the cluster has no other broker.
func (b *Broker) peerGroups(ctx context.Context) (*remoting.SubscriptionGroupTable, string, error) {
	cfg := b.cfg()
	cc, err := cfg.clientConfig(b.log)
	if err != nil {
		return nil, "", err
	}
	cc.RequestTimeout = joinTimeout
	conn := client.New(cc)
	defer func() { _ = conn.Close() }()
	servers, err := b.nameServerList(ctx)
	if err != nil {
		return nil, "", err
	}
	if len(servers) == 0 {
		return nil, "", errors.New("no name server is configured that could tell who is in it")
	}
	peers, err := joinPeers(ctx, conn, servers, cfg)
	if err != nil || len(peers) == 0 {
		return nil, "", err
	}
	var errs []error
	for _, addr := range peers {
		groups, err := readGroups(ctx, conn, addr)
		if err == nil {
			return groups, addr, nil
		}
		errs = append(errs, fmt.Errorf("peer %s: %w", addr, err))
	}
	return nil, "", fmt.Errorf("no broker of it gives its groups: %w", errors.Join(errs...))
}

// joinPeers are the addresses of the other brokers of the cluster that any of the name
// servers knows, masters first.
func joinPeers(ctx context.Context, conn *client.Client, servers []string, cfg *Config) ([]string, error) {
	var errs []error
	found := map[string]int64{}
	for _, addr := range servers {
		resp, err := conn.Call(ctx, addr, remoting.NewRequest(remoting.ReqGetBrokerClusterInfo, nil))
		if err == nil && resp.Code != remoting.RespSuccess {
			err = errors.New(remoting.ResponseName(resp.Code) + ": " + resp.Remark)
		}
		var info remoting.ClusterInfo
		if err == nil {
			err = fastjson.Unmarshal(resp.Body, &info)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("name server %s: %w", addr, err))
			continue
		}
		for _, name := range info.ClusterAddrTable[cfg.BrokerClusterName] {
			if name == cfg.BrokerName {
				continue
			}
			for id, at := range info.BrokerAddrTable[name].BrokerAddrs {
				found[at] = id
			}
		}
	}
	if len(errs) == len(servers) {
		return nil, errors.Join(errs...)
	}
	peers := slices.Sorted(maps.Keys(found))
	slices.SortStableFunc(peers, func(a, b string) int { return int(min(found[a], 1) - min(found[b], 1)) })
	return peers, nil
}

// readGroups reads the groups of a broker in pages, anew where they change meanwhile.
// The groups that every broker makes for itself are not among them.
func readGroups(ctx context.Context, conn *client.Client, addr string) (*remoting.SubscriptionGroupTable, error) {
	for restart := 0; ; restart++ {
		all, whole, err := readGroupPages(ctx, conn, addr, restart >= joinRestarts)
		if err != nil {
			return nil, err
		}
		if !whole {
			continue
		}
		maps.DeleteFunc(all.SubscriptionGroupTable, func(name string, _ remoting.SubscriptionGroupConfig) bool { return message.IsSystemGroup(name) })
		return all, nil
	}
}

// readGroupPages reads the pages once; whole is false when the table changed in between
// and that matters.
func readGroupPages(ctx context.Context, conn *client.Client, addr string, anyway bool) (all *remoting.SubscriptionGroupTable, whole bool, err error) {
	all = &remoting.SubscriptionGroupTable{SubscriptionGroupTable: map[string]remoting.SubscriptionGroupConfig{}}
	version := ""
	for seq := int32(0); ; {
		req := remoting.NewRequest(remoting.ReqGetAllSubscriptionGroupConfig, &remoting.GetAllSubscriptionGroupConfigHeader{GroupSeq: seq, MaxGroupNum: remoting.Some(int32(joinPageSize))})
		req.Fields.Set("dataVersion", version)
		resp, err := conn.Call(ctx, addr, req)
		if err != nil {
			return nil, false, err
		}
		if resp.Code != remoting.RespSuccess {
			return nil, false, errors.New(remoting.ResponseName(resp.Code) + ": " + resp.Remark)
		}
		var page remoting.SubscriptionGroupTable
		if err := fastjson.Unmarshal(resp.Body, &page); err != nil {
			return nil, false, fmt.Errorf("cannot read groups: %w", err)
		}
		if seq == 0 {
			all.DataVersion, all.ForbiddenTable = page.DataVersion, page.ForbiddenTable
			b, err := fastjson.Marshal(page.DataVersion)
			if err != nil {
				return nil, false, err
			}
			version = string(b)
		} else if page.DataVersion != all.DataVersion && !anyway {
			return nil, false, nil
		}
		maps.Copy(all.SubscriptionGroupTable, page.SubscriptionGroupTable)
		if len(all.SubscriptionGroupTable) > maxGroups {
			return nil, false, fmt.Errorf("it has more than %d groups, which is the limit", maxGroups)
		}
		seq += int32(len(page.SubscriptionGroupTable))
		total, ok, err := resp.Fields.Int32("totalGroupNum")
		if err != nil {
			return nil, false, err
		}
		if !ok || seq >= total || len(page.SubscriptionGroupTable) == 0 {
			return all, true, nil
		}
	}
}

// makeConfigDir makes the directory of the tables, before the first file is written into it.
func (b *Broker) makeConfigDir() error {
	if err := vfs.MkdirAllDurable(b.fsys, filepath.Dir(b.configFile("topics.json"))); err != nil {
		return fmt.Errorf("cannot make the directory of the configuration files: %w", err)
	}
	return nil
}
