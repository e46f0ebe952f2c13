package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mqx/internal/fastjson"
	"mqx/internal/sorted"
	"mqx/remoting"
)

// replicas are those of a broker name as a controller has them, by id, and who is in sync.
func replicas(s *SyncState) (all []remoting.ReplicaIdentity, inSync map[int64]bool) {
	inSync = map[int64]bool{}
	for _, r := range s.InSyncReplicas {
		inSync[r.BrokerID] = true
	}
	all = slices.Concat(s.InSyncReplicas, s.NotInSyncReplicas)
	sorted.By(all, func(a, b remoting.ReplicaIdentity) int { return cmp.Compare(a.BrokerID, b.BrokerID) })
	return all, inSync
}

// replicaNotes are a line a replica.
func replicaNotes(s *SyncState) []Note {
	all, inSync := replicas(s)
	var out []Note
	for _, r := range all {
		words := []string{"not alive"}
		if r.Alive {
			words[0] = "alive"
		}
		if inSync[r.BrokerID] {
			words = append(words, "in sync")
		} else {
			words = append(words, "not in sync")
		}
		if r.BrokerID == s.MasterBrokerID {
			words = append(words, "master")
		}
		out = append(out, Note{"replica", fmt.Sprintf("id %d at %s: %s", r.BrokerID, r.BrokerAddress, strings.Join(words, ", "))})
	}
	return out
}

func noReplica(id string, all []remoting.ReplicaIdentity) error {
	e := &NotFoundError{Kind: "replica", Name: id}
	for _, r := range all {
		e.Known = append(e.Known, fmt.Sprint(r.BrokerID))
	}
	return e
}

// controlled asks a controller for a broker name.
func (c *Client) controlled(ctx context.Context, r actRequest) (*SyncState, error) {
	found, err := c.SyncStates(ctx, r.Place.Addrs, Target{Broker: r.Object})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &NotFoundError{Kind: "broker", Name: r.Object}
	}
	return &found[0], nil
}

// leader is the controller that leads where at is one of its group.
func (c *Client) leader(ctx context.Context, at Broker) string {
	return c.leaderFirst(ctx, []string{at.Addr})[0]
}

// lookElect looks at whom a controller may elect.
func lookElect(ctx context.Context, c *Client, r actRequest) (notes []Note, idle bool, err error) {
	id, err := strconv.ParseInt(r.Args["id"], 10, 64)
	if err != nil {
		return nil, false, fmt.Errorf("cannot read broker id: %w", err)
	}
	s, err := c.controlled(ctx, r)
	if err != nil {
		return nil, false, err
	}
	all, inSync := replicas(s)
	i := slices.IndexFunc(all, func(r remoting.ReplicaIdentity) bool { return r.BrokerID == id })
	switch {
	case i < 0:
		return nil, false, noReplica(r.Args["id"], all)
	case s.MasterBrokerID == id:
		return replicaNotes(s), true, nil
	case !all[i].Alive:
		return nil, false, &RefusedError{What: fmt.Sprintf("cannot elect broker id %d master of %s", id, r.Object), Why: "it is not alive", Try: "start it first", Unsafe: true}
	}
	notes = replicaNotes(s)
	if !inSync[id] {
		notes = append(notes, Note{"mind", "it is not in sync: the controller elects it only with enableElectUncleanMaster=true, and what it does not have is lost then"})
	}
	return notes, false, nil
}

// electMaster lets the controller elect, and reads back whom it has.
func electMaster(ctx context.Context, c *Client, at Broker, r actRequest) (string, error) {
	id, err := strconv.ParseInt(r.Args["id"], 10, 64)
	if err != nil {
		return "", fmt.Errorf("cannot read broker id: %w", err)
	}
	resp, err := c.ask(ctx, c.leader(ctx, at), remoting.NewRequest(remoting.ReqControllerElectMaster,
		&remoting.ControllerElectMasterHeader{ClusterName: r.Args["cluster"], BrokerName: r.Object, BrokerID: id, DesignateElect: true}))
	if err != nil {
		return "", err
	}
	master, epoch := resp.Fields.String("masterAddress"), resp.Fields.String("masterEpoch")
	text := fmt.Sprintf("master %s, epoch %s, epoch of the sync state set %s", master, epoch, resp.Fields.String("syncStateSetEpoch"))
	var body remoting.ElectMasterBody
	if len(resp.Body) > 0 {
		if err := fastjson.Unmarshal(resp.Body, &body); err != nil {
			return "", fmt.Errorf("cannot read answer of controller: %w", err)
		}
	}
	if g := body.BrokerMemberGroup; g != nil {
		for _, id := range slices.Sorted(maps.Keys(g.BrokerAddrs)) {
			text += fmt.Sprintf(", replica %d %s", id, g.BrokerAddrs[id])
		}
	}
	s, err := c.controlled(ctx, r)
	if err != nil {
		return "", fmt.Errorf("cannot read back who is master: %w", err)
	}
	if s.MasterBrokerID != id {
		return "", fmt.Errorf("the controller has answered, and has broker id %d as master", s.MasterBrokerID)
	}
	return text, nil
}

// lookClean looks at what a controller would forget, and refuses what it would refuse.
func lookClean(ctx context.Context, c *Client, r actRequest) (notes []Note, idle bool, err error) {
	s, err := c.controlled(ctx, r)
	if err != nil {
		return nil, false, err
	}
	what := "cannot let the controller forget broker " + r.Object
	refuse := func(why, try string) ([]Note, bool, error) {
		return nil, false, &RefusedError{What: what, Why: why, Try: try, Unsafe: true}
	}
	all, _ := replicas(s)
	ids := strings.FieldsFunc(r.Args["ids"], func(r rune) bool { return r == ';' })
	living := r.Args["living"] == "true"
	if len(ids) == 0 && !living && s.MasterBrokerID > 0 {
		return refuse(fmt.Sprintf("it has broker id %d as master, so that the name is in use", s.MasterBrokerID), "--id for one replica that is gone, or --living for all that there is of the name")
	}
	for _, id := range ids {
		i := slices.IndexFunc(all, func(r remoting.ReplicaIdentity) bool { return fmt.Sprint(r.BrokerID) == id })
		switch {
		case i < 0:
			return nil, false, noReplica(id, all)
		case all[i].Alive:
			return refuse("the replica with id "+id+" is alive, which would come back", "stop it first")
		}
	}
	for _, n := range replicaNotes(s) {
		if len(ids) == 0 || slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(n.Text, "id "+id+" ") }) {
			notes = append(notes, Note{"forgets", n.Text})
		}
	}
	return notes, false, nil
}

// cleanBroker lets the controller forget, and reads back what it has.
func cleanBroker(ctx context.Context, c *Client, at Broker, r actRequest) (string, error) {
	said, err := c.actAnswer(ctx, Broker{Addr: c.leader(ctx, at)}, remoting.NewRequest(remoting.ReqCleanBrokerData, &remoting.CleanBrokerDataHeader{
		ClusterName: r.Args["cluster"], BrokerName: r.Object, BrokerControllerIDsToClean: r.Args["ids"], IsCleanLivingBroker: r.Args["living"] == "true",
	}))
	if err != nil {
		return "", err
	}
	found, err := c.SyncStates(ctx, r.Place.Addrs, Target{Broker: r.Object})
	if err != nil {
		return "", fmt.Errorf("cannot read back what the controller has: %w", err)
	}
	if r.Args["living"] == "true" {
		return said, nil // one that is alive may be back already
	}
	ids := strings.Split(r.Args["ids"], ";")
	for i := range found {
		all, _ := replicas(&found[i])
		for _, is := range all {
			if r.Args["ids"] == "" || slices.Contains(ids, fmt.Sprint(is.BrokerID)) {
				return "", fmt.Errorf("the controller has answered, and still has broker id %d", is.BrokerID)
			}
		}
	}
	return said, nil
}
