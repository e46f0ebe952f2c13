package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"mqx/internal/ballot"
	"mqx/internal/fastjson"
	"mqx/internal/words"
	"mqx/remoting"
)

// haWait bounds requests of a change of roles that compare logs.
const haWait = 5 * time.Minute

// haRequest is one of mqx's own requests about replication.
func haRequest(act string, args any) (*remoting.Command, error) {
	req := remoting.NewRequest(remoting.ReqMqxHA, nil)
	req.Fields.Set(remoting.FieldAct, act)
	if args != nil {
		body, err := json.Marshal(args)
		if err != nil {
			return nil, err
		}
		req.Body = body
	}
	return req, nil
}

// askHA asks a broker of mqx about its part in its group; into may be nil.
func (c *Client) askHA(ctx context.Context, addr, act string, args, into any) error {
	req, err := haRequest(act, args)
	if err != nil {
		return err
	}
	resp, err := c.ask(ctx, addr, req)
	if err != nil {
		return err
	}
	if into == nil {
		return nil
	}
	if err := fastjson.Unmarshal(resp.Body, into); err != nil {
		return fmt.Errorf("cannot read what %s says of its replication: %w", addr, err)
	}
	return nil
}

// HAState is what a broker of mqx says of its part in its group.
func (c *Client) HAState(ctx context.Context, addr string) (*remoting.HAState, error) {
	s := &remoting.HAState{}
	return s, c.askHA(ctx, addr, remoting.HAActStatus, nil, s)
}

// groupReplica is one replica of a group.
type groupReplica struct {
	Broker
	state *remoting.HAState // nil: it is Apache's, or does not answer
	end   int64             // of its log; -1 unknown
	role  string
	err   error // why it does not answer
}

func (m *groupReplica) mqx() bool  { return m.state != nil }
func (m *groupReplica) gone() bool { return m.err != nil }
func (m *groupReplica) master() bool {
	return m.role == "ASYNC_MASTER" || m.role == "SYNC_MASTER"
}

// standing is what is known of its log.
func (m *groupReplica) standing() ballot.Standing {
	st := ballot.Standing{End: m.end}
	if m.state != nil {
		st.Epoch, st.Parted = m.state.LastEpoch, m.state.PartedAt
	}
	return st
}

func (m *groupReplica) epochs(o *groupReplica) (own, other int64, ok bool) {
	return m.standing().Epochs(o.standing())
}

// ahead reports whether m has what o lacks, before whether a promotion takes m rather than o: see package ballot.
func (m *groupReplica) ahead(o *groupReplica) bool  { return m.standing().Ahead(o.standing()) }
func (m *groupReplica) before(o *groupReplica) bool { return m.standing().Before(o.standing()) }
func (m *groupReplica) groups() int64               { return m.standing().Groups() }
func (m *groupReplica) parted() bool                { return m.standing().HasParted() }

// more is what m has that o lacks.
func (m *groupReplica) more(o *groupReplica) string {
	if own, other, ok := m.epochs(o); ok && own > other {
		return fmt.Sprintf("messages of epoch %d, those of %s end in epoch %d", own, o.Addr, other)
	}
	return fmt.Sprintf("%s more of the log", words.Count(m.groups()-o.groups(), "byte"))
}

// unsure is why it is not sure that m has nothing that o lacks where ahead says so; empty where it is.
func (m *groupReplica) unsure(o *groupReplica) string {
	_, _, ok := m.epochs(o)
	switch {
	case m.end < 0:
		return fmt.Sprintf("slave %s does not tell where its log ends: it may have more than %s", m.Addr, o.Addr)
	case !ok:
		return fmt.Sprintf("the epochs of %s and %s are not both known: only the ends of their logs are compared", m.Addr, o.Addr)
	}
	return ""
}

// look asks a broker of either make how it stands.
func (c *Client) look(ctx context.Context, b Broker) *groupReplica {
	m := &groupReplica{Broker: b, end: -1}
	state, err := c.HAState(ctx, b.Addr)
	switch {
	case err == nil:
		m.state, m.end, m.role = state, state.LogEnd, state.Role
		m.Cluster, m.Name, m.ID = state.Cluster, state.BrokerName, state.BrokerID
		return m
	case !hasCode(err, remoting.RespRequestCodeNotSupported):
		m.err = err
		return m
	}
	info, err := c.RuntimeInfo(ctx, b.Addr)
	if err != nil {
		m.err = err
		return m
	}
	if end, err := strconv.ParseInt(info["commitLogMaxOffset"], 10, 64); err == nil {
		m.end = end
	}
	m.role = "SLAVE"
	if b.ID == 0 {
		m.role = cmp.Or(info["brokerRole"], "ASYNC_MASTER")
	}
	return m
}

// group are the replicas of a broker name that the name servers know, and those at more addresses.
func (c *Client) group(ctx context.Context, name string, more ...string) ([]*groupReplica, error) {
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	var out []*groupReplica
	for _, b := range all {
		if b.Name == name {
			out = append(out, c.look(ctx, b))
		}
	}
	for _, addr := range more {
		if !slices.ContainsFunc(out, func(m *groupReplica) bool { return m.Addr == addr }) {
			out = append(out, c.look(ctx, Broker{Addr: addr, Name: name}))
		}
	}
	return out, nil
}

// replicaAt is the broker of mqx at an address, and its group.
func (c *Client) replicaAt(ctx context.Context, addr string) (*groupReplica, []*groupReplica, error) {
	if !isAddress(addr) {
		return nil, nil, invalidf("cannot use broker %q: one replica of a group is named by its address, HOST:PORT", addr)
	}
	at := c.look(ctx, Broker{Addr: addr})
	switch {
	case at.gone():
		return nil, nil, fmt.Errorf("cannot ask %s for its role: %w", addr, at.err)
	case !at.mqx():
		return nil, nil, &RefusedError{What: fmt.Sprintf("cannot change the role of %s", addr), Why: "it is a broker of Apache, whose role is what its configuration says at its start"}
	}
	all, err := c.group(ctx, at.Name, addr)
	return at, all, err
}

// masterFor is the master that the group of a replica has, beside itself; nil where there is none that answers.
func masterFor(at *groupReplica, all []*groupReplica) *groupReplica {
	for _, m := range all {
		if m.Addr != at.Addr && !m.gone() && m.master() && (m.state == nil || m.state.FencedBy == "") {
			return m
		}
	}
	return nil
}

// haAddrOf is the replication address of a master: what it says, else the port behind its own, which is Apache's default.
func haAddrOf(m *groupReplica) string {
	if m.state != nil {
		return m.state.HAAddr
	}
	host, port, err := net.SplitHostPort(m.Addr)
	n, err2 := strconv.Atoi(port)
	if errors.Join(err, err2) != nil {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(n+1))
}

// compareLogs asks a broker where its log parts from its master's.
func (c *Client) compareLogs(ctx context.Context, at, master *groupReplica) (*remoting.HACommon, error) {
	req, err := haRequest(remoting.HAActCompare, &remoting.HACompare{Master: master.Addr, MasterHA: haAddrOf(master)})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, haWait)
	defer cancel()
	c.requests.Add(1)
	resp, err := c.conn.Call(ctx, at.Addr, req)
	if err == nil && resp.Code != remoting.RespSuccess {
		err = responseError(at.Addr, req, resp)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot compare the log of %s with that of its master %s: %w", at.Addr, master.Addr, err)
	}
	common := &remoting.HACommon{}
	return common, fastjson.Unmarshal(resp.Body, common)
}

// awaitState asks until the broker at addr is as wanted, or ctx or the time for that ends.
func (c *Client) awaitState(ctx context.Context, addr string, want func(*remoting.HAState) bool) (*remoting.HAState, error) {
	ctx, cancel := context.WithTimeout(ctx, stateWait)
	defer cancel()
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	for {
		s, err := c.HAState(ctx, addr)
		if err == nil && want(s) {
			return s, nil
		}
		select {
		case <-ctx.Done():
			if err == nil {
				err = fmt.Errorf("it is %s with id %d and epoch %d, its log ends at %d %s", s.Role, s.BrokerID, s.Epoch, s.LogEnd, s.Error)
			}
			return nil, fmt.Errorf("%s has not come to what was planned within %s: %w", addr, stateWait, err)
		case <-t.C:
		}
	}
}
