package cmd

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/admin/move"
	"mqx/internal/render"
	"mqx/internal/words"
)

var rebalanceSchema = render.Schema{Kind: "MoveProposalList", Name: "topic", Fields: []render.Field{
	{Name: "topic", Doc: "topic"},
	{Name: "source", Doc: "broker that has it"},
	{Name: "target", Doc: "broker that would get it"},
	{Name: "queues", Kind: render.Int, Doc: "queues that move"},
	{Name: "messages", Kind: render.Int, Doc: "messages in them"},
	{Name: "bytes", Kind: render.Size, Doc: "their size, estimated from the average of the broker's messages"},
	{Name: "tps", Title: "PUT/S", Kind: render.Float, Doc: "messages put into them a second"},
	{Name: "command", Whole: true, Doc: "what carries it out"},
}}

// balanceFlags say what is to be even, and how even.
type balanceFlags struct {
	cluster   string
	by        string
	tolerance int
	moves     int
}

func (b *balanceFlags) add(c *cobra.Command) {
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVarP(&b.cluster, "cluster", "c", "", "the cluster (needed where there are several)")
	})
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&b.by, "by", admin.ByAll, "what is to be even: queues, bytes, tps, or all of them")
		f.IntVar(&b.tolerance, "tolerance", 10, "percent that a broker may have above the average")
		f.IntVar(&b.moves, "max-moves", 20, "propose no more moves than this")
	})
	completeFlag(c, "by", cobra.FixedCompletions([]string{admin.ByAll, admin.ByQueues, admin.ByBytes, admin.ByTPS}, cobra.ShellCompDirectiveNoFileComp))
}

func (b *balanceFlags) options() (*admin.RebalanceOptions, error) {
	switch {
	case !slices.Contains([]string{admin.ByAll, admin.ByQueues, admin.ByBytes, admin.ByTPS}, b.by):
		return nil, notOneOf("--by", b.by, admin.ByAll, admin.ByQueues, admin.ByBytes, admin.ByTPS)
	case b.tolerance < 1 || b.tolerance > 1000:
		return nil, usagef("cannot use --tolerance %d: it is a percentage of at least 1", b.tolerance).because("no broker carries exactly the average").try("--tolerance 10")
	case b.moves < 1:
		return nil, usagef("cannot use --max-moves %d: it must be at least 1", b.moves).because("there would be nothing to propose").try("--max-moves 20")
	}
	return &admin.RebalanceOptions{Target: admin.Target{Cluster: b.cluster}, By: b.by, Tolerance: float64(b.tolerance) / 100, MaxMoves: b.moves}, nil
}

// rebalanceOptions are the flags of mqx admin cluster rebalance plan.
type rebalanceOptions struct {
	target   targetFlags
	output   outputFlags
	balance  balanceFlags
	exitCode bool
}

var rebalanceVerb = moveVerb{
	kind: move.Rebalance, use: "rebalance", command: "mqx admin cluster rebalance", args: "-c DefaultCluster",
	short: "Even out what the brokers of a cluster carry",
	long: `plan proposes which topics go from one broker to another; it changes nothing. start
carries the proposal of that moment out: all its topics move together, each as mqx
admin queue migrate moves one, and the slowest group of any is waited for.`,
}

func newClusterRebalanceCmd(a *app) *cobra.Command { return newMoveCmd(a, rebalanceVerb) }

func newRebalancePlanCmd(a *app) *cobra.Command {
	o := &rebalanceOptions{}
	c := &cobra.Command{
		Use:   "plan",
		Short: "Propose which queues go where, so that brokers carry alike",
		Long: `Use it after a broker has joined, or when one has more to do than the others. It looks
at the queues, the stored bytes and the messages a second of each topic on each master,
and proposes moves of whole topics from one broker to another until the fullest has no
more than the tolerance above the average. Ordered topics stay, and so does a topic whose
target has it already. Nothing is changed: start carries it out, or each line has the command that moves one.`,
		Example: `  mqx admin cluster rebalance plan -c DefaultCluster
  mqx admin cluster rebalance plan --by tps --max-moves 3 -o template='{{.command}}'
  mqx admin cluster rebalance plan --exit-code || echo 'uneven'`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return runRebalancePlan(a, c, o) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) { o.target.add(f) })
	o.balance.add(c)
	grouped(c, groupSafety, func(f *pflag.FlagSet) {
		f.BoolVar(&o.exitCode, "exit-code", false, "exit with 6 when something would be moved")
	})
	o.output.addRows(c)
	o.output.add(c)
	return c
}

func runRebalancePlan(a *app, c *cobra.Command, o *rebalanceOptions) error {
	opts, err := o.balance.options()
	if err != nil {
		return err
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	moves := 0
	err = a.list(c, &o.output, rebalanceSchema, func(ctx context.Context, w *render.Writer) (problems, error) {
		p, errs, err := client.Rebalance(ctx, *opts)
		if err != nil {
			return nil, err
		}
		if err := allFailed(len(p.Before), errs); err != nil {
			return nil, err
		}
		moves = len(p.Moves)
		for _, m := range p.Moves {
			l := m.Part.Load
			command := "mqx admin queue migrate start -t " + m.Part.Topic + " --source " + m.Part.Broker + " --target " + m.Target
			if err := w.Row(m.Part.Topic, m.Part.Broker, m.Target, l.Queues, l.Messages, int64(l.Bytes), l.TPS, command); err != nil {
				return nil, err
			}
		}
		for _, b := range slices.Sorted(maps.Keys(p.Before)) {
			was, is := p.Before[b], p.After[b]
			a.note("%s: %d -> %s, %d -> %s, %.1f -> %.1f put/s", b, was.Queues, words.Count(is.Queues, "queue"), was.Messages, words.Count(is.Messages, "message"), was.TPS, is.TPS)
		}
		for _, f := range p.Fixed {
			a.note("%s stays on %s: %s", f.Topic, f.Broker, f.Why)
		}
		return targetProblems(errs), nil
	})
	if err == nil && moves > 0 && o.exitCode {
		return silentError{ExitCheckFailed}
	}
	return err
}
