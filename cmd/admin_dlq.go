package cmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/client"
	"mqx/internal/render"
	"mqx/message"
)

func newDLQCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{
		Use: "dlq", Aliases: []string{"dlqs"}, Short: "Dead letters of groups: messages given back too often",
		Example: `  mqx admin dlq ls
  mqx admin dlq get billing -o ndjson
  mqx admin dlq replay billing --yes`,
	}, newDLQLsCmd(a), newDLQGetCmd(a), newDLQReplayCmd(a), newDLQPurgeCmd(a))
}

var dlqSchema = render.Schema{Kind: "DeadLetterList", Name: "group", Fields: []render.Field{
	{Name: "group", Doc: "consumer group"},
	{Name: "broker", Doc: "broker that has them"},
	{Name: "count", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "dead letters there"},
	{Name: "oldest", Kind: render.Time, Doc: "when the oldest was put there; unknown when there is none"},
	{Name: "newest", Kind: render.Time, Doc: "when the newest was put there"},
	{Name: "cluster", Wide: true, Doc: "cluster of the broker"},
	{Name: "addr", Title: "ADDRESS", Wide: true, Whole: true, Doc: "its address"},
	{Name: "perm", Wide: true, Doc: "permission of the topic: without r no consumer can read it; mqx can"},
	{Name: "topic", Wide: true, Doc: "topic that holds them"},
}}

// dlqOptions are the flags of mqx admin dlq ls and get.
type dlqOptions struct {
	target  targetFlags
	output  outputFlags
	show    messageFlags
	cluster string
	broker  string
	sel     messageSelection
}

func newDLQLsCmd(a *app) *cobra.Command {
	o := &dlqOptions{}
	c := &cobra.Command{
		Use:   "ls [GROUP]",
		Short: "List the groups that have dead letters",
		Long:  "A row a group and broker. Dead letters go with the log as everything else does: what retention deletes is not counted.",
		Example: `  mqx admin dlq ls
  mqx admin dlq ls --sort -count --limit 5
  mqx admin dlq ls billing -o json`,
		Args:              optionalArg(),
		ValidArgsFunction: completeGroups(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return runDLQLs(a, c, o, args) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVarP(&o.cluster, "cluster", "c", "", "only this cluster")
		f.StringVarP(&o.broker, "broker", "b", "", "only this broker, by name or address")
	})
	o.output.addRows(c)
	o.output.add(c)
	o.output.addWatch(c)
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

func runDLQLs(a *app, c *cobra.Command, o *dlqOptions, args []string) error {
	group := ""
	if len(args) > 0 {
		group = args[0]
	}
	ac, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = ac.Close() }()
	return a.list(c, &o.output, dlqSchema, func(ctx context.Context, w *render.Writer) (problems, error) {
		all, errs, err := ac.ListDeadLetters(ctx, admin.Target{Cluster: o.cluster, Broker: o.broker}, group)
		if err != nil {
			return nil, err
		}
		if err := allFailed(len(all), errs); err != nil {
			return nil, err
		}
		if len(all) == 0 && group != "" {
			a.warn("group %s has no dead letters", group)
		}
		for _, d := range all {
			if err := w.Row(d.Group, d.Broker.Name, d.Count, d.Oldest, d.Newest, orUnknown(d.Broker.Cluster), d.Broker.Addr, permText(d.Perm), message.DLQTopic(d.Group)); err != nil {
				return nil, err
			}
		}
		return targetProblems(errs), nil
	})
}

// noDeadLetters tells of a group whose topic for dead letters is not there: brokers make it
// with the first of them.
func noDeadLetters(err error, group string) error {
	topic := message.DLQTopic(group)
	none, ok := errors.AsType[*admin.NotFoundError](err)
	if !ok || none.Kind != "topic" || none.Name != topic {
		return err
	}
	return failf(ExitNotFound, "group %s has no dead letters", group).because("no broker has the topic " + topic).try("mqx admin dlq ls")
}

// permText is a permission as --perm takes it.
func permText(perm int) string {
	text := ""
	if perm&4 != 0 {
		text += "r"
	}
	if perm&2 != 0 {
		text += "w"
	}
	if text == "" {
		return "none"
	}
	return text
}

func newDLQGetCmd(a *app) *cobra.Command {
	o := &dlqOptions{}
	c := &cobra.Command{
		Use:   "get GROUP",
		Short: "Print the dead letters of a group",
		Long: `From the oldest on, broker by broker. They are read also where the topic may only be written
(brokers before 5.0 make it so): by their places, nothing is changed for it. Their properties say
where they came from: RETRY_TOPIC is the topic, ORIGIN_MESSAGE_ID the first record.`,
		Example: `  mqx admin dlq get billing
  mqx admin dlq get billing --tag paid -o ndjson > dead.ndjson
  mqx admin dlq get billing -o template='{{.storeTime}} {{.keys}} {{.body}}' --limit 10`,
		Args:              exactArgs("GROUP"),
		ValidArgsFunction: completeGroups(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return runDLQGet(a, c, o, args[0]) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVarP(&o.cluster, "cluster", "c", "", "only this cluster")
		f.StringVarP(&o.broker, "broker", "b", "", "only this broker, by name or address")
	})
	o.sel.addFilters(c)
	o.show.add(c)
	o.output.addRows(c)
	o.output.add(c)
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

func runDLQGet(a *app, c *cobra.Command, o *dlqOptions, group string) error {
	if err := o.show.check(); err != nil {
		return err
	}
	if err := o.sel.check(c); err != nil {
		return err
	}
	ac, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = ac.Close() }()
	return a.list(c, &o.output, messageSchema, func(_ context.Context, w *render.Writer) (problems, error) {
		ctx, cancel := a.deadline(c, false)
		defer cancel()
		h := &handOff{w: w, show: o.show}
		errs, err := ac.ReadDeadLetters(ctx, admin.Target{Cluster: o.cluster, Broker: o.broker}, group, func(m *client.Received) error {
			if !o.sel.wants(&m.Message) {
				return nil
			}
			return h.take(m)
		})
		return targetProblems(errs), noDeadLetters(err, group)
	})
}

func newDLQReplayCmd(a *app) *cobra.Command {
	o := &copyOptions{}
	c := &cobra.Command{
		Use:   "replay GROUP",
		Short: "Give the dead letters of a group to the group once more",
		Long: `Puts them into the retry topic of the group: its members get them with the topic and id they
were sent with, and no other group sees them. A dead letter that has been replayed since it died
is left out, so that the command can be run again after Ctrl-C or a failure; --again takes those
too. They stay among the dead letters: mqx admin dlq purge destroys them.

With --target-topic they go to a topic, and to every group that consumes it: the plan names those.`,
		Example: `  mqx admin dlq replay billing --dry-run
  mqx admin dlq replay billing --tag paid --rate 50 --yes
  mqx admin dlq replay billing --id C0000202270B4E0E2F2A9530AA7E0022 --again --yes
  mqx admin dlq replay billing --target-topic ORDERS_REPAIR --yes`,
		Args:              exactArgs("GROUP"),
		ValidArgsFunction: completeGroups(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			if err := o.checkIDs(c); err != nil {
				return err
			}
			if err := message.ValidateGroup(args[0]); err != nil {
				return err
			}
			o.group = args[0]
			spec := o.spec(message.DLQTopic(args[0]))
			spec.DeadLetters = true
			return noDeadLetters(o.run(a, c, &o.target, a, spec), args[0])
		},
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringArrayVarP(&o.sel.brokers, "broker", "b", nil, "only the dead letters of this broker, by name or address; may be repeated")
		o.addTarget(f)
	})
	o.sel.addFilters(c)
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.ids, "id", nil, "only the dead letter with this id, unique or offset; may be repeated")
		f.BoolVar(&o.again, "again", false, "also those that have been replayed since they died")
	})
	o.addKeepRetries(c)
	o.addCopy(c)
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

func newDLQPurgeCmd(a *app) *cobra.Command {
	o := &changeTopicOptions{}
	c := &cobra.Command{
		Use:   "purge GROUP",
		Short: "Destroy the dead letters of a group",
		Long: `Deletes the topic that holds them; brokers make it anew with the next dead letter. There is no
way back: it asks for the name of the group.`,
		Example: `  mqx admin dlq get billing -o ndjson > dead.ndjson && mqx admin dlq purge billing --confirm billing
  mqx admin dlq purge billing --dry-run`,
		Args:              exactArgs("GROUP"),
		ValidArgsFunction: completeGroups(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			return o.change(a, c).run(func(ctx context.Context, ac *admin.Client) ([]admin.Plan, error) {
				p, err := ac.PlanPurgeDeadLetters(ctx, o.on(), args[0])
				return onePlan(p, noDeadLetters(err, args[0]))
			})
		},
	}
	grouped(c, groupTarget, o.addTarget)
	o.output.add(c)
	o.safety.add(c, true)
	return c
}
