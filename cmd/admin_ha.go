package cmd

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/remoting"
)

func newHACmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "ha", Short: "Replication of brokers"}, newHAStatusCmd(a), newHADegradedCmd(a), newHAGetCmd(a), newHAPromoteCmd(a), newHADemoteCmd(a), newHAResyncCmd(a), newHASalvageCmd(a))
}

var haStatusSchema = render.Schema{Kind: "HAStatusList", Name: "broker", Fields: []render.Field{
	{Name: "cluster", Wide: true, Doc: "cluster"},
	{Name: "broker", Doc: "broker name"},
	{Name: "id", Kind: render.Int, Doc: "broker id, 0 is the master; unknown when no name server has it"},
	{Name: "addr", Title: "ADDRESS", Doc: "its address"},
	{Name: "role", Doc: "master or slave"},
	{Name: "endOffset", Title: "END", Kind: render.Int, Doc: "byte at which its log ends"},
	{Name: "slaves", Kind: render.Int, Doc: "slaves connected; unknown of a slave"},
	{Name: "inSync", Kind: render.Int, Doc: "of them in sync; unknown of a slave"},
	{Name: "peer", Whole: true, Doc: "the slave of this line; of a slave, its master; unknown where there is none"},
	{Name: "ackOffset", Kind: render.Int, Doc: "byte up to which the slave has the log; of a slave, what its master has written to disk"},
	{Name: "behind", Kind: render.Size, Tone: render.WarnAbove(0), Doc: "bytes that the slave is behind; unknown until it has reported"},
	{Name: "bytesPerSecond", Title: "BYTES/S", Kind: render.Size, Doc: "bytes that go to the slave a second"},
	{Name: "ok", Kind: render.Bool, Tone: enabled, Doc: "the slave is in sync"},
	{Name: "epoch", Kind: render.Int, Doc: "newest promotion in the group that the broker knows, 0 before the first; unknown of Apache's"},
	{Name: "state", Tone: render.ToneOf(map[string]render.Tone{"master": render.Good, "following": render.Good, "fenced": render.Bad, "parted": render.Bad, "ahead": render.Bad, "behind": render.Bad}, render.Warn), Doc: "master, fenced (another master has taken its place); of a slave following, connecting, no-master, refused (its master ends each connection without a word), or parted, ahead and behind, which mqx admin ha resync mends; unknown of Apache's"},
	{Name: "why", Whole: true, Wide: true, Doc: "why it takes no messages, or does not follow"},
	{Name: "sendOffset", Kind: render.Int, Wide: true, Doc: "byte at which the master sends next"},
	{Name: "lastRead", Kind: render.Time, Wide: true, Doc: "of a slave: when it last read from its master"},
	{Name: "lastWrite", Kind: render.Time, Wide: true, Doc: "of a slave: when it last reported"},
	{Name: "level", Doc: "async, semi-sync, sync or quorum: what the master waits for; unknown of a slave and of Apache's"},
	{Name: "degraded", Kind: render.Bool, Tone: render.ToneOf(map[string]render.Tone{"true": render.Bad}, render.Good), Doc: "the master makes do with fewer copies than its level says (mqx admin ha degraded)"},
	{Name: "behindMs", Title: "BEHIND MS", Kind: render.Int, Doc: "how old what the slave has not got is at most; unknown until it has caught up once, and of Apache's masters"},
	{Name: "slave", Wide: true, Doc: "broker id of the slave, its host where it does not tell"},
	{Name: "counted", Kind: render.Bool, Wide: true, Doc: "the slave counts as a copy: not where nobody waits for it, or where haAckMode=flushed and it cannot tell what is durable"},
	{Name: "confirmed", Kind: render.Int, Wide: true, Doc: "byte up to which consumers see the log of the master"},
}}

func newHAStatusCmd(a *app) *cobra.Command {
	o := &readOptions{}
	c := &cobra.Command{
		Use:   "status [BROKER]",
		Short: "Show how brokers replicate: a line for each slave, or one for a broker without",
		Example: `  mqx admin ha status
  mqx admin ha status broker-a --watch
  mqx admin ha status --match 'behind>1000000' -o json`,
		Args:              optionalArg(),
		ValidArgsFunction: completeBrokers(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.takeBroker(c, args); err != nil {
				return err
			}
			return a.read(c, o, haStatusSchema, func(ctx context.Context, client *admin.Client) (answer, error) {
				found, errs, err := client.HAStatuses(ctx, o.brokers(), true)
				ans := answer{errs: errs}
				for i := range found {
					ans.rows = append(ans.rows, haRows(&found[i])...)
					a.warnOfHA(&found[i])
				}
				return ans, err
			})
		},
	}
	o.addTo(c)
	o.addBrokers(a, c)
	return c
}

// warnOfHA says of a broker that waits for somebody what is to be done.
func (a *app) warnOfHA(s *admin.HAStatus) {
	m := s.Info.Mqx
	switch {
	case m == nil:
	case m.Fenced != "":
		a.warn("%s is fenced: %s", s.Addr, m.Fenced)
	case m.Phase == "refused":
		a.warn("slave %s is refused: %s", s.Addr, m.Error)
	case m.Phase == "parted", m.Phase == "ahead", m.Phase == "behind":
		a.warn("slave %s has stopped as %s: %s; mqx admin ha resync %s mends it", s.Addr, m.Phase, m.Error, s.Addr)
	}
}

func haRows(s *admin.HAStatus) (rows [][]any) {
	var id any
	if s.Name != "" {
		id = s.ID
	}
	who := []any{orUnknown(s.Cluster), cmp.Or(s.Name, s.Addr), id, s.Addr}
	epoch, state, why := haStanding(&s.Info)
	line := func(rest ...any) {
		const ahead = 9 // columns between those of the broker and its standing
		peer, _ := rest[4].(string)
		row := slices.Concat(who, rest[:ahead], []any{epoch, state, why}, rest[ahead:], haCopies(s.Info.Mqx, peer))
		rows = append(rows, row)
	}
	if !s.Info.Master {
		r := s.Info.ClientRuntimeInfo
		if r == nil {
			r = &remoting.HAClientRuntimeInfo{}
		}
		line("slave", r.MaxOffset, nil, nil, orUnknown(r.MasterAddr), r.MasterFlushOffset, nil, r.TransferredByteInSecond, nil, nil,
			timeOrNil(r.LastReadTimestamp), timeOrNil(r.LastWriteTimestamp))
		return rows
	}
	head := []any{"master", s.Info.MasterCommitLogMaxOffset, len(s.Info.ConnectionInfo), s.Info.InSyncSlaveNums}
	for i := range s.Info.ConnectionInfo {
		r := &s.Info.ConnectionInfo[i]
		var ack, behind, inSync, next any
		if n, known := r.Behind(); known {
			ack, behind, inSync = r.SlaveAckOffset, n, r.InSync
		}
		if r.TransferFromWhere >= 0 {
			next = r.TransferFromWhere
		}
		line(append(append([]any{}, head...), r.Addr, ack, behind, r.TransferredByteInSecond, inSync, next, nil, nil)...)
	}
	if len(s.Info.ConnectionInfo) == 0 {
		line(append(append([]any{}, head...), nil, nil, nil, nil, nil, nil, nil, nil)...)
	}
	if s.Info.Mqx != nil && s.Info.Mqx.Master != nil {
		for _, r := range s.Info.Mqx.Master.Refused {
			state, why = "refused", r.Why
			line(append(append([]any{}, head...), r.Peer, nil, nil, nil, false, nil, nil, nil)...)
		}
	}
	return rows
}

// haCopies is how a master of mqx counts copies, and what it knows of the slave at peer.
func haCopies(info *remoting.HAInfo, peer string) []any {
	if info == nil || info.Master == nil {
		return []any{nil, nil, nil, nil, nil, nil}
	}
	m := info.Master
	out := []any{m.Level, m.Degraded, nil, nil, nil, m.Shown}
	for _, r := range m.Replicas {
		if !slices.Contains(r.Addrs, peer) {
			continue
		}
		if r.GapMillis >= 0 {
			out[2] = r.GapMillis
		}
		out[3], out[4] = r.ID, r.Counted
	}
	return out
}

var haDegradedSchema = render.Schema{Kind: "HADegradedList", Name: "broker", Fields: []render.Field{
	{Name: "cluster", Wide: true, Doc: "cluster"},
	{Name: "broker", Doc: "broker name"},
	{Name: "addr", Title: "ADDRESS", Wide: true, Doc: "its address"},
	{Name: "level", Doc: "level of replication now"},
	{Name: "from", Kind: render.Time, Doc: "when fewer copies did than the level says"},
	{Name: "to", Kind: render.Time, Doc: "when there were enough again; unknown while it lasts"},
	{Name: "fromOffset", Title: "FROM BYTE", Kind: render.Int, Doc: "what is before it in the log had its copies"},
	{Name: "toOffset", Title: "TO BYTE", Kind: render.Int, Doc: "what follows it had to have them again; unknown while it lasts"},
	{Name: "bytes", Kind: render.Size, Tone: render.WarnAbove(0), Doc: "what could have been lost with the master, at most; while it lasts, so far"},
	{Name: "epoch", Kind: render.Int, Doc: "epoch of the master"},
	{Name: "why", Whole: true, Doc: "why fewer copies did"},
}}

func newHADegradedCmd(a *app) *cobra.Command {
	o := &readOptions{}
	c := &cobra.Command{
		Use:   "degraded [BROKER]",
		Short: "Show when masters acknowledged with fewer copies than their level says, and how much",
		Example: `  mqx admin ha degraded
  mqx admin ha degraded broker-a -o json`,
		Args:              optionalArg(),
		ValidArgsFunction: completeBrokers(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.takeBroker(c, args); err != nil {
				return err
			}
			return a.read(c, o, haDegradedSchema, func(ctx context.Context, client *admin.Client) (answer, error) {
				found, errs, err := client.HAStatuses(ctx, o.brokers(), false)
				ans := answer{errs: errs}
				for i := range found {
					ans.rows = append(ans.rows, haDegradedRows(&found[i])...)
				}
				return ans, err
			})
		},
	}
	o.addTo(c)
	o.addBrokers(a, c)
	return c
}

func haDegradedRows(s *admin.HAStatus) (rows [][]any) {
	if s.Info.Mqx == nil || s.Info.Mqx.Master == nil {
		return nil
	}
	m := s.Info.Mqx.Master
	for _, t := range m.Times {
		to, bytes := any(t.To), max(0, t.To-t.From)
		if t.To < 0 {
			to, bytes = nil, max(0, s.Info.MasterCommitLogMaxOffset-t.From)
		}
		rows = append(rows, []any{
			orUnknown(s.Cluster), cmp.Or(s.Name, s.Addr), s.Addr, m.Level, timeOrNil(t.Began), timeOrNil(t.Ended), t.From, to, bytes, t.Epoch, t.Why,
		})
	}
	return rows
}

// haStanding is how a broker of mqx stands in its group; all unknown of one of Apache.
func haStanding(info *remoting.HARuntimeInfo) (epoch, state, why any) {
	m := info.Mqx
	switch {
	case m == nil:
		return nil, nil, nil
	case m.Fenced != "":
		return m.Epoch, "fenced", m.Fenced
	case m.Phase == "":
		return m.Epoch, "master", nil
	}
	return m.Epoch, m.Phase, orUnknown(m.Error)
}

var haReplicaSchema = render.Schema{Kind: "HAReplicaList", Name: "broker", Fields: []render.Field{
	{Name: "broker", Doc: "broker name"},
	{Name: "masterId", Kind: render.Int, Doc: "id of the master"},
	{Name: "masterAddr", Title: "MASTER", Doc: "its address; unknown while there is none"},
	{Name: "masterEpoch", Title: "EPOCH", Kind: render.Int, Doc: "epoch of the master"},
	{Name: "syncEpoch", Kind: render.Int, Wide: true, Doc: "epoch of the set of replicas in sync"},
	{Name: "id", Kind: render.Int, Doc: "id of the replica"},
	{Name: "addr", Title: "ADDRESS", Whole: true, Doc: "its address"},
	{Name: "inSync", Kind: render.Bool, Tone: enabled, Doc: "it is in the set of replicas in sync"},
	{Name: "alive", Kind: render.Bool, Tone: enabled, Doc: "the controller hears of it"},
}}

// controllerOptions are the flags of commands that ask controllers.
type controllerOptions struct {
	readOptions
	addrs string
}

func (o *controllerOptions) addControllers(c *cobra.Command) {
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVar(&o.addrs, "controller", "", "addresses of controllers, ; between them")
	})
}

func (o *controllerOptions) controllers(c *cobra.Command) ([]string, error) {
	addrs := addressList(o.addrs)
	if len(addrs) == 0 && !o.output.help() {
		return nil, usagef("cannot run %q: --controller is missing", c.CommandPath()).because("name servers do not know where controllers are").try("--controller 10.0.0.1:9878")
	}
	return addrs, nil
}

func newHAGetCmd(a *app) *cobra.Command {
	o := &controllerOptions{}
	c := &cobra.Command{
		Use:   "get [BROKER]",
		Short: "Show what the controller knows of the replicas of brokers: which are in sync and alive",
		Example: `  mqx admin ha get --controller 10.0.0.1:9878
  mqx admin ha get broker-a --controller '10.0.0.1:9878;10.0.0.2:9878'
  mqx admin ha get --controller 10.0.0.1:9878 --match inSync=false -o name`,
		Args:              optionalArg(),
		ValidArgsFunction: completeBrokers(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.takeBroker(c, args); err != nil {
				return err
			}
			addrs, err := o.controllers(c)
			if err != nil {
				return err
			}
			return a.read(c, &o.readOptions, haReplicaSchema, func(ctx context.Context, client *admin.Client) (answer, error) {
				found, err := client.SyncStates(ctx, addrs, o.brokers())
				var rows [][]any
				for _, s := range found {
					for _, set := range []struct {
						list []remoting.ReplicaIdentity
						in   bool
					}{{s.InSyncReplicas, true}, {s.NotInSyncReplicas, false}} {
						for _, r := range set.list {
							rows = append(rows, []any{s.BrokerName, s.MasterBrokerID, orUnknown(s.MasterAddress), s.MasterEpoch, s.SyncStateSetEpoch, r.BrokerID, r.BrokerAddress, set.in, r.Alive})
						}
					}
				}
				return answer{rows: rows}, err
			})
		},
	}
	o.addTo(c)
	o.addBrokers(a, c)
	o.addControllers(c)
	return c
}

var controllerSchema = render.Schema{Kind: "ControllerList", Name: "addr", Fields: []render.Field{
	{Name: "addr", Title: "ADDRESS", Doc: "controller that was asked"},
	{Name: "group", Doc: "group of controllers"},
	{Name: "leaderId", Title: "LEADER", Doc: "id of the leader; unknown while there is none"},
	{Name: "leaderAddr", Title: "LEADER ADDRESS", Doc: "its address"},
	{Name: "leads", Kind: render.Bool, Doc: "the controller that was asked is the leader"},
	{Name: "peers", Kind: render.List, Doc: "members of the group"},
}}

func newControllerGetCmd(a *app) *cobra.Command {
	o := &controllerOptions{}
	c := &cobra.Command{
		Use:   "get",
		Short: "Show the group, the leader and the members as each controller sees them",
		Long:  "What the controllers know of brokers is mqx admin ha get, their configuration mqx admin config get --controller.",
		Example: `  mqx admin controller get --controller 10.0.0.1:9878
  mqx admin controller get --controller '10.0.0.1:9878;10.0.0.2:9878' -o json
  mqx admin config get --controller 10.0.0.1:9878`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			addrs, err := o.controllers(c)
			if err != nil {
				return err
			}
			return a.read(c, &o.readOptions, controllerSchema, func(ctx context.Context, client *admin.Client) (answer, error) {
				found, errs := client.ControllerMetadata(ctx, addrs)
				ans := answer{errs: errs}
				for i := range found {
					m := &found[i]
					ans.rows = append(ans.rows, []any{m.Addr, orUnknown(m.Group), orUnknown(m.ControllerLeaderID), orUnknown(m.ControllerLeaderAddress), m.IsLeader, listOf(m.PeerList())})
				}
				return ans, nil
			})
		},
	}
	o.addTo(c)
	o.addControllers(c)
	return c
}
