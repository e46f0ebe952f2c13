package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"mqx/admin/roll"
	"mqx/internal/sorted"
	"mqx/remoting"
)

// RollOptions say which brokers are restarted, and how.
type RollOptions struct {
	Target   Target
	Settings roll.Settings
	// AcceptUnavailable lets brokers without a replica be restarted: what lies on them
	// cannot be read meanwhile.
	AcceptUnavailable bool
}

// UnavailableError names brokers that would be gone while they restart.
type UnavailableError struct{ Brokers []string }

// Error lists them.
func (e *UnavailableError) Error() string {
	return "these brokers have no replica, what lies on them cannot be read while they restart: " + strings.Join(e.Brokers, ", ")
}

// PlanRoll plans the restart of all brokers of a target: of each name its replicas,
// then its master. Brokers without a replica are an *UnavailableError unless they are
// accepted; groups that a controller leads are refused, since their master has to be
// another one before it is restarted.
func (c *Client) PlanRoll(ctx context.Context, o RollOptions) (*roll.State, error) {
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	primaries, err := selectPrimaries(all, o.Target)
	if err != nil {
		return nil, err
	}
	if len(primaries) == 0 {
		return nil, &NotFoundError{Kind: "broker"}
	}
	st := &roll.State{Status: roll.Planned, Settings: o.Settings}
	var alone []string
	for _, p := range primaries {
		members := slices.DeleteFunc(slices.Clone(all), func(b Broker) bool { return b.Name != p.Name || b.Cluster != p.Cluster })
		if len(members) == 0 {
			return nil, fmt.Errorf("cannot roll broker %s: no name server knows it", p.Addr)
		}
		if p.ID != 0 {
			return nil, p.fail(errors.New("the broker has no master"))
		}
		sorted.By(members, func(a, b Broker) int { return cmp.Compare(b.ID, a.ID) }) // the master is the last
		for _, b := range members {
			values, err := c.brokerProps(ctx, b.Addr)
			if err != nil {
				return nil, b.fail(err)
			}
			if values["enableControllerMode"] == "true" {
				return nil, b.fail(errors.New("a controller leads it: make another one the master first (mqx admin controller), then restart it by hand"))
			}
			perm, err := strconv.Atoi(values["brokerPermission"])
			if err != nil {
				return nil, b.fail(errors.New("the broker does not tell brokerPermission"))
			}
			st.Brokers = append(st.Brokers, roll.Broker{
				Cluster: b.Cluster, Name: b.Name, ID: b.ID, Addr: b.Addr, Replicas: len(members) - 1, Perm: perm, Phase: roll.Pending,
				Drain: b.ID == 0 && perm&2 != 0 && otherMaster(all, b),
			})
		}
		if len(members) == 1 {
			alone = append(alone, p.Name)
		}
	}
	if len(alone) > 0 && !o.AcceptUnavailable {
		return nil, &UnavailableError{alone}
	}
	return st, nil
}

// otherMaster reports whether another master of the cluster can take what is written:
// without one, making a broker read-only would only lengthen the time without.
func otherMaster(all []Broker, b Broker) bool {
	return slices.ContainsFunc(all, func(o Broker) bool { return o.Cluster == b.Cluster && o.Name != b.Name && o.ID == 0 })
}

// RollIO is what RunRoll needs from its caller.
type RollIO struct {
	// Save notes the state durably, before each act.
	Save func(*roll.State) error
	// Restart restarts a broker, or asks somebody to; ErrRollAsk ends the run there.
	Restart func(ctx context.Context, b roll.Broker) error
	// Paused reports whether somebody has asked for a pause.
	Paused func() bool
	// Report is told of every state. May be nil.
	Report func(*roll.State)
	// Poll is the time between two looks at a broker.
	Poll time.Duration
	// Owner names the run: who goes on under the same name does not wait for the end of an earlier run's lease. Default: MoveOwner().
	Owner string
}

// ErrRollAsk is returned by RollIO.Restart when somebody has to restart the broker.
var ErrRollAsk = errors.New("somebody has to restart the broker")

// RunRoll goes on with a roll until it is finished, aborted, paused or has to ask. It
// returns the state that was saved last; an error says that a step could not be done. One run at a time restarts brokers of a cluster:
// a *RollOwnedError names a broker that another one has the lease of.
func (c *Client) RunRoll(ctx context.Context, st *roll.State, rio RollIO) (*roll.State, error) {
	lease := c.rollLease(st, rio.Owner)
	if err := lease.take(ctx); err != nil {
		return st, err
	}
	kept, stop := lease.keep(ctx)
	defer stop()
	st, err := c.runRoll(kept, st, &rio, lease)
	if owned := (*RollOwnedError)(nil); errors.As(context.Cause(kept), &owned) {
		err = errors.Join(owned, err)
	}
	return st, err
}

func (c *Client) runRoll(ctx context.Context, st *roll.State, rio *RollIO, lease *rollLease) (*roll.State, error) {
	asked := "" // whose restart this run has asked for
	for {
		if rio.Paused != nil && rio.Paused() && st.Status == roll.Running {
			st.Status = roll.Paused
			return st, rio.Save(st)
		}
		var o *roll.Observation
		b := st.Current()
		if b != nil {
			o = c.ObserveRoll(ctx, b)
		}
		if err := ctx.Err(); err != nil {
			return st, err
		}
		d := roll.Next(*st, o, time.Now())
		if d.Act == roll.SetPerm || d.Act == roll.Restart {
			var owned *RollOwnedError
			if errors.As(lease.hold(ctx), &owned) { // looked at right before the act that rests on it
				return st, owned
			}
		}
		st = &d.State
		if err := rio.Save(st); err != nil {
			return st, err
		}
		if rio.Report != nil {
			rio.Report(st)
		}
		switch d.Act {
		case roll.SetPerm:
			if err := c.setBrokerPerm(ctx, b.Addr, d.Perm); err != nil {
				return st, fmt.Errorf("cannot set brokerPermission of broker %q: %w", b.Name, err)
			}
		case roll.Restart:
			if asked == b.Addr {
				break
			}
			asked = b.Addr
			err := rio.Restart(ctx, *b)
			if errors.Is(err, ErrRollAsk) {
				st.Status, st.Why = roll.Asking, fmt.Sprintf("restart broker %s (id %d, %s) now", b.Name, b.ID, b.Addr)
				return st, rio.Save(st)
			}
			if err != nil {
				st.Status, st.Why = roll.Aborted, err.Error()
				return st, errors.Join(rio.Save(st), err)
			}
		case roll.Stop:
			return st, nil
		case roll.Proceed:
			continue
		}
		if st.Status != roll.Running {
			return st, nil
		}
		select {
		case <-ctx.Done():
			return st, ctx.Err()
		case <-time.After(rio.Poll):
		}
	}
}

// ResumeRoll makes a roll that has stopped one that runs: its gates begin anew.
func ResumeRoll(st *roll.State) {
	st.Status, st.Why = roll.Running, ""
	if b := st.Current(); b != nil {
		b.Since = time.Time{}
		b.Healthy = time.Time{}
	}
}

// RollbackRoll gives a broker that was made read-only its permission back, and ends the
// roll. Brokers that were restarted stay so. owner is RollIO.Owner.
func (c *Client) RollbackRoll(ctx context.Context, st *roll.State, owner string) error {
	lease := c.rollLease(st, owner)
	if err := lease.take(ctx); err != nil {
		return err
	}
	defer lease.release(ctx)
	for i := range st.Brokers {
		b := &st.Brokers[i]
		if !b.Drain || b.Phase == roll.Pending || b.Phase == roll.Done {
			continue
		}
		if err := c.setBrokerPerm(ctx, b.Addr, b.Perm); err != nil {
			return fmt.Errorf("cannot give broker %q its permission back: %w", b.Name, err)
		}
	}
	st.Status, st.Why = roll.RolledBack, ""
	return nil
}

// setBrokerPerm sets brokerPermission and reads it back.
func (c *Client) setBrokerPerm(ctx context.Context, addr string, perm int) error {
	req := remoting.NewRequest(remoting.ReqUpdateBrokerConfig, nil)
	req.Body = []byte("brokerPermission=" + strconv.Itoa(perm))
	if _, err := c.ask(ctx, addr, req); err != nil {
		return err
	}
	values, err := c.brokerProps(ctx, addr)
	if err != nil {
		return fmt.Errorf("cannot read back: %w", err)
	}
	if got := values["brokerPermission"]; got != strconv.Itoa(perm) {
		return fmt.Errorf("read back brokerPermission %q, not %d", got, perm)
	}
	return nil
}

// ObserveRoll looks at the broker of a roll. What it does not tell is not known, and
// no gate opens for it.
func (c *Client) ObserveRoll(ctx context.Context, b *roll.Broker) *roll.Observation {
	o := &roll.Observation{Perm: -1, Puts: -1, InSync: -1, Connected: -1}
	info, err := c.RuntimeInfo(ctx, b.Addr)
	if err != nil {
		o.Err = err.Error()
		return o
	}
	number := func(key string, unknown int64) int64 {
		n, err := strconv.ParseInt(info[key], 10, 64)
		if err != nil {
			return unknown
		}
		return n
	}
	o.Reachable, o.Active = true, info["brokerActive"] != "false"
	o.BootMs, o.Puts, o.Behind = number("bootTimestamp", 0), number("putMessageTimesTotal", -1), number("dispatchBehindBytes", 1)
	if values, err := c.brokerProps(ctx, b.Addr); err == nil {
		if perm, err := strconv.Atoi(values["brokerPermission"]); err == nil {
			o.Perm = perm
		}
	}
	known, down := c.views(ctx)
	for ns, addrs := range known {
		if !addrs[b.Addr] {
			o.NotRegistered = append(o.NotRegistered, ns)
		}
	}
	for ns := range down {
		o.NotRegistered = append(o.NotRegistered, ns+", which does not answer")
	}
	slices.Sort(o.NotRegistered)
	if b.Replicas > 0 {
		o.Connected, o.InSync = c.rollReplicas(ctx, b)
	}
	return o
}

// rollReplicas asks the master of the name for its replicas: how many are connected, and
// how many of them have everything. -1 where that is not known.
func (c *Client) rollReplicas(ctx context.Context, b *roll.Broker) (connected, inSync int) {
	all, err := c.Cluster(ctx)
	if err != nil {
		return -1, -1
	}
	for _, m := range all {
		if m.Name != b.Name || m.Cluster != b.Cluster || m.ID != 0 {
			continue
		}
		ha, err := askBody[remoting.HARuntimeInfo](ctx, c, m.Addr, remoting.NewRequest(remoting.ReqGetBrokerHAStatus, nil))
		if err != nil {
			return -1, -1
		}
		for i := range ha.ConnectionInfo {
			r := &ha.ConnectionInfo[i]
			connected++
			if gap, known := r.Behind(); r.InSync && known && gap <= maxRollDiff {
				inSync++
			}
		}
		return connected, inSync
	}
	return -1, -1
}

// maxRollDiff is what a replica may lack, in bytes, and still have everything: under
// load it is always a little behind.
const maxRollDiff = 256 << 10

// RollHost is the host of a broker's address.
func RollHost(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}
