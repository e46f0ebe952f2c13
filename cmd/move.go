package cmd

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/admin/move"
	"mqx/internal/render"
	"mqx/internal/userfile"
	"mqx/internal/words"
)

// moveVerb is a long-running verb: what it is called and what it takes.
type moveVerb struct {
	kind    move.Kind
	use     string
	aliases []string
	short   string
	long    string
	command string // of the examples: "mqx admin queue migrate"
	args    string // of the examples: what a plan is asked for with
}

var migrateVerb = moveVerb{
	kind: move.Migrate, use: "migrate", aliases: []string{"move"}, command: "mqx admin queue migrate", args: "-t ORDERS --source broker-a --target broker-c",
	short: "Move a topic from one broker to others, under clients that know nothing of it",
	long: `The topic is made on the targets, groups and offsets first; every name server must
show it; the source is taken out of the choice of producers; what it holds is read
by every group; then it goes. Ordered topics keep the queue of every key, and the
target is read only when the source has been.`,
}

var drainVerb = moveVerb{
	kind: move.Drain, use: "drain", command: "mqx admin queue drain", args: "-t ORDERS --source broker-a",
	short: "Stop writing a topic on a broker and wait until every group has read it there",
	long:  `Other brokers must have the topic: producers go there. The source stays readable.`,
}

var resizeVerb = moveVerb{
	kind: move.Resize, use: "resize", command: "mqx admin queue resize", args: "-t ORDERS --queues 16",
	short: "Give a topic another number of queues, without skipping or leaving a message",
	long: `New queues get an offset for every group before they are written; queues that go are
read to their end first. An ordered topic needs --remap-keys: keys go to other
queues, and while both are read the messages of a key may change places.`,
}

var retireVerb = moveVerb{
	kind: move.Retire, use: "retire", command: "mqx admin broker retire", args: "broker-a --target broker-c",
	short: "Empty a broker so that it can be stopped for good",
	long: `Every topic goes to the targets, or stays with the other brokers that have it; the
broker then takes no messages any more (brokerPermission=4), is read to its end, its
topics are deleted, and the plan ends when no name server lists the broker.`,
}

// newMoveCmd is a long-running verb with its sub-verbs.
func newMoveCmd(a *app, v moveVerb) *cobra.Command {
	plan := newMovePlanCmd
	if v.kind == move.Rebalance {
		plan = func(a *app, _ moveVerb) *cobra.Command { return newRebalancePlanCmd(a) }
	}
	return asGroup(&cobra.Command{
		Use: v.use, Aliases: v.aliases, Short: v.short, Long: v.long + `

A plan and how far it has come are kept in the cluster (topic ` + admin.TopicMoves + `): any machine
can go on with it, and one at a time does. PLAN is its id, or the topic, broker or
cluster it is for. Ctrl-C ends between two steps.`,
		Example: fmt.Sprintf("  %[1]s plan %[2]s\n  %[1]s start %[2]s --yes\n  %[1]s status --watch\n  %[1]s resume PLAN --yes", v.command, v.args),
	}, plan(a, v), newMoveStartCmd(a, v), newMoveStatusCmd(a, v), newMovePauseCmd(a, v),
		newMoveResumeCmd(a, v), newMoveRollbackCmd(a, v), newMoveFinishCmd(a, v))
}

// moveOptions are the flags of the sub-verbs; each takes some.
type moveOptions struct {
	target targetFlags
	output outputFlags
	safety safetyFlags

	balance  balanceFlags // of a rebalance
	topic    string
	source   string
	targets  []string
	queues   int
	ordered  bool
	offline  string
	ignore   []string
	leave    bool
	remove   bool
	remap    bool
	interval time.Duration
	journal  string
	stopAt   string

	told string // what the plan has said already
}

// addAsk adds the flags that say what is moved.
func (o *moveOptions) addAsk(c *cobra.Command, v moveVerb) {
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		if v.asksTopic() {
			f.StringVarP(&o.topic, "topic", "t", "", "topic")
		}
		switch v.kind {
		case move.Migrate, move.Drain:
			f.StringVar(&o.source, "source", "", "broker that the queues leave")
		case move.Resize:
			f.StringVarP(&o.source, "broker", "b", "", "on this broker only (default: on all that have the topic)")
		case move.Retire, move.Rebalance:
		}
		if v.kind == move.Migrate || v.kind == move.Retire {
			f.StringSliceVar(&o.targets, "target", nil, "broker that gets them; may be repeated")
		}
	})
	if v.kind == move.Rebalance {
		o.balance.add(c)
	}
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		if v.kind == move.Migrate || v.kind == move.Resize {
			f.IntVar(&o.queues, "queues", 0, "queues on each broker (default for targets: those of the source, shared)")
		}
		if v.kind == move.Migrate {
			f.BoolVar(&o.ordered, "ordered", false, "keep order although the topic is not marked as ordered")
		}
		f.StringVar(&o.offline, "offline", "wait", "groups with nobody online: wait, ignore=GROUP[,GROUP], or checkpoint (do not wait, but keep the source for them)")
		f.BoolVar(&o.leave, "leave-pending", false, "do not wait for delayed, timer, half and retry messages; the source is kept")
		if v.kind != move.Rebalance { // ordered topics stay
			f.BoolVar(&o.remap, "remap-keys", false, "let keys of an ordered topic go to other queues")
		}
		f.DurationVar(&o.interval, "route-interval", move.DefaultRouteInterval, "how often clients ask for routes: every wait follows from it")
	})
}

// addRun adds the flags of what owns a plan.
func (o *moveOptions) addRun(c *cobra.Command) {
	grouped(c, groupSafety, func(f *pflag.FlagSet) {
		f.StringVar(&o.journal, "journal", "", "copy of the plan on this machine (default: in the state directory); read where the cluster has lost the plan")
		f.StringVar(&o.stopAt, "stop-at", "", "end the command when this phase is reached, as in SEALED; resume goes on")
	})
}

// asksTopic: the plan is for one topic.
func (v moveVerb) asksTopic() bool { return v.kind != move.Retire && v.kind != move.Rebalance }

// propose fills in what a rebalance moves. What a broker does not tell keeps it from being carried out.
func (o *moveOptions) propose(ctx context.Context, client *admin.Client, ask *move.Ask) error {
	opts, err := o.balance.options()
	if err != nil {
		return err
	}
	p, errs, err := client.Rebalance(ctx, *opts)
	if err != nil {
		return err
	}
	if len(errs) > 0 {
		return errs[0]
	}
	ask.Cluster = p.Cluster
	for _, m := range p.Moves {
		ask.Moves = append(ask.Moves, move.Move{Topic: m.Part.Topic, Source: m.Part.Broker, Target: m.Target})
	}
	return nil
}

// planMove plans what the flags ask for; nil where there is nothing to be done.
func (a *app) planMove(ctx context.Context, client *admin.Client, o *moveOptions, v moveVerb, ask *move.Ask) (*admin.MovePlan, error) {
	if v.kind == move.Rebalance {
		if err := o.propose(ctx, client, ask); err != nil {
			return nil, err
		}
		if len(ask.Moves) == 0 {
			a.note("nothing has to move")
			return nil, nil
		}
	}
	return client.PlanMove(ctx, *ask)
}

// ask is what the flags ask for.
func (o *moveOptions) ask(v moveVerb, args []string) (*move.Ask, error) {
	out := &move.Ask{Kind: v.kind, Topic: o.topic, Targets: o.targets, Queues: int32(o.queues), Ordered: o.ordered}
	if v.kind == move.Retire {
		out.Sources = args
	} else if o.source != "" {
		out.Sources = []string{o.source}
	}
	switch {
	case v.asksTopic() && o.topic == "":
		return nil, usagef("which topic? -t is missing").try("%s plan %s", v.command, v.args)
	case (v.kind == move.Migrate || v.kind == move.Drain) && o.source == "":
		return nil, usagef("which broker? --source is missing").try("%s plan %s", v.command, v.args)
	case v.kind == move.Migrate && len(o.targets) == 0:
		return nil, usagef("where to? --target is missing").try("%s plan %s", v.command, v.args)
	case slices.Contains(o.targets, cmp.Or(o.source, strings.Join(out.Sources, ""))):
		return nil, usagef("cannot move to %s: it is the source", o.targets).try("%s plan %s", v.command, v.args)
	case v.kind == move.Resize && o.queues < 1:
		return nil, usagef("cannot use --queues %d: it must be at least 1", o.queues).try("%s plan %s", v.command, v.args)
	case o.queues < 0 || o.queues > maxMoveQueues:
		return nil, usagef("cannot use --queues %d: 1 to %d are possible", o.queues, maxMoveQueues).try("--queues 8")
	case o.interval <= 0:
		return nil, usagef("cannot use --route-interval %s: it must be more than nothing", o.interval).try("--route-interval 30s")
	}
	out.Policy = move.Policy{LeavePending: o.leave, Remove: o.remove, RouteInterval: o.interval, RemapKeys: o.remap}
	word, groups, isIgnore := strings.Cut(o.offline, "=")
	switch {
	case isIgnore && word == "ignore" && groups != "":
		out.Policy.Offline, out.Policy.Ignore = move.OfflineWait, strings.Split(groups, ",")
	case o.offline == string(move.OfflineWait), o.offline == string(move.OfflineCheckpoint):
		out.Policy.Offline = move.Offline(o.offline)
	default:
		return nil, notOneOf("--offline", o.offline, "wait", "ignore=GROUP", "checkpoint")
	}
	return out, nil
}

// maxMoveQueues bounds the queues of a topic on one broker that are asked for.
const maxMoveQueues = 4096

// file is where the copy of a plan is kept on this machine.
func (o *moveOptions) file(a *app, plan string) (string, error) {
	if o.journal != "" {
		return o.journal, nil
	}
	dir, err := userfile.StateDir(a.env)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "moves", strings.NewReplacer("/", "_", "%", "_", "|", "_").Replace(plan)+".json"), nil
}

var movePlanSchema = render.Schema{Kind: "MovePlanList", Name: "request", Fields: []render.Field{
	{Name: "step", Kind: render.Int, Doc: "place in the order"},
	{Name: "what", Doc: "what kind of change it is"},
	{Name: "broker", Doc: "broker; unknown for name servers"},
	{Name: "topic", Doc: "topic; unknown where it concerns none"},
	{Name: "request", Doc: "the change in words: each is made only if what it changes is still as said, and read back"},
}}

func newMovePlanCmd(a *app, v moveVerb) *cobra.Command {
	o := &moveOptions{}
	c := &cobra.Command{
		Use: "plan" + argsOf(v), Short: "Show every request it would make and how long draining would take; change nothing",
		Example: fmt.Sprintf("  %[1]s plan %[2]s\n  %[1]s plan %[2]s -o json", v.command, v.args),
		Args:    moveArgs(v),
		RunE:    func(c *cobra.Command, args []string) error { return runMovePlan(a, c, o, v, args) },
	}
	o.addAsk(c, v)
	o.addRemove(c)
	o.output.add(c)
	return c
}

func (o *moveOptions) addRemove(c *cobra.Command) {
	grouped(c, groupSafety, func(f *pflag.FlagSet) {
		f.BoolVar(&o.remove, "remove", false, "take what was moved off the source at the end; asks for the name (default: keep it readable until its messages expire)")
	})
}

// moveArgs are the arguments of what asks for a new plan.
func moveArgs(v moveVerb) cobra.PositionalArgs {
	if v.kind == move.Retire {
		return exactArgs("BROKER")
	}
	return exactArgs()
}

func argsOf(v moveVerb) string {
	if v.kind == move.Retire {
		return " BROKER"
	}
	return ""
}

func runMovePlan(a *app, c *cobra.Command, o *moveOptions, v moveVerb, args []string) error {
	_, err := a.showMove(c, o, v, args)
	return err
}

// showMove prints what a plan would do, and reports whether that is anything.
func (a *app) showMove(c *cobra.Command, o *moveOptions, v moveVerb, args []string) (changes bool, err error) {
	ask, err := o.ask(v, args)
	if err != nil {
		return false, err
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return false, err
	}
	defer func() { _ = client.Close() }()
	err = a.list(c, &o.output, movePlanSchema, func(ctx context.Context, w *render.Writer) (problems, error) {
		p, err := a.planMove(ctx, client, o, v, ask)
		if err != nil {
			return nil, moveFailure(err)
		}
		if p == nil {
			return nil, nil
		}
		changes = true
		if err := moveRows(w, p); err != nil {
			return nil, err
		}
		a.tellPlan(p)
		return nil, refused(p)
	})
	return changes, err
}

func moveRows(w *render.Writer, p *admin.MovePlan) error {
	for i := range p.Commands {
		cmd := &p.Commands[i]
		if err := w.Row(i+1, string(cmd.Kind), orUnknown(cmd.Broker), orUnknown(cmd.Topic), cmd.String()); err != nil {
			return err
		}
	}
	return nil
}

// tellPlan says on stderr what a plan waits for.
func (a *app) tellPlan(p *admin.MovePlan) {
	for _, n := range p.Notes {
		a.warn("%s", n)
	}
	for _, g := range p.Drain {
		left := "at an unknown rate"
		if g.Left != nil {
			left = fmt.Sprintf("%s at %.0f messages a second", g.Left.Round(time.Second), *g.Rate)
		}
		if g.Group == "" || g.What != "unread" {
			a.note("to drain: %s", move.Gate{Group: g.Group, Topic: g.Topic, Broker: g.Broker, What: g.What, Count: g.Remaining})
			continue
		}
		a.note("to drain: group %s has %s of topic %s on %s, %s", g.Group, words.Count(g.Remaining, "message"), g.Topic, g.Broker, left)
	}
}

// refused is the failure of a plan whose preconditions do not hold.
func refused(p *admin.MovePlan) error {
	if len(p.Problems) == 0 {
		return nil
	}
	return failf(ExitCheckFailed, "cannot begin: %s", strings.Join(p.Problems, "; ")).because("nothing was changed").try("mend that, and plan anew")
}
