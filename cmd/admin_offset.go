package cmd

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
)

func newOffsetCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "offset", Aliases: []string{"offsets"}, Short: "Offsets of consumer groups"},
		newOffsetGetCmd(a), newOffsetResetCmd(a), newOffsetCopyCmd(a), newOffsetExportCmd(a), newOffsetImportCmd(a), newOffsetRmCmd(a))
}

var offsetSchema = render.Schema{Kind: "OffsetList", Name: "topic", Fields: []render.Field{
	{Name: "group", Doc: "consumer group"},
	{Name: "topic", Doc: "topic"},
	{Name: "broker", Doc: "broker that holds the queue"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue"},
	{Name: "minOffset", Title: "START", Kind: render.Int, Doc: "offset of the oldest message there is"},
	{Name: "maxOffset", Title: "END", Kind: render.Int, Doc: "offset the next message will get"},
	{Name: "offset", Kind: render.Int, Doc: "committed offset of the group; unknown when it never committed"},
	{Name: "pullOffset", Kind: render.Int, Wide: true, Doc: "offset the group has pulled up to; unknown when it was not pulled since the broker started"},
	{Name: "lag", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "messages that are not read; unknown where an offset is"},
	{Name: "marks", Kind: render.List, Doc: "what is odd; see mqx admin lag get --help"},
	{Name: "retry", Kind: render.Bool, Wide: true, Doc: "a retry topic of the group"},
	{Name: "cluster", Wide: true, Doc: "cluster of the broker"},
}}

// offsetScope are the flags that choose offsets.
type offsetScope struct {
	target   targetFlags
	cluster  string
	broker   string
	group    string
	topics   []string
	queue    int32
	hasQueue bool
	all      bool
}

func (s *offsetScope) add(a *app, c *cobra.Command, queue, all bool) {
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		s.target.add(f)
		f.StringVarP(&s.cluster, "cluster", "c", "", "on the brokers of this cluster (default: of all)")
		f.StringVarP(&s.broker, "broker", "b", "", "on this broker only, by name or address")
		f.StringVarP(&s.group, "group", "g", "", "the consumer group")
		f.StringArrayVarP(&s.topics, "topic", "t", nil, "in this topic; may be repeated")
		if queue {
			f.Int32VarP(&s.queue, "queue", "q", 0, "only the queues with this id")
		}
		if all {
			f.BoolVar(&s.all, "all", false, "in all topics that the group reads")
		}
	})
	completeFlag(c, "group", completeGroups(a, &s.target))
	completeFlag(c, "topic", completeTopics(a, &s.target))
	completeFlag(c, "broker", completeBrokers(a, &s.target))
}

func (s *offsetScope) check(c *cobra.Command) error {
	if s.group == "" {
		return usagef("cannot run %q: --group is missing", c.CommandPath()).try("-g GROUP; mqx admin group ls lists them")
	}
	if f := c.Flags().Lookup("queue"); f != nil {
		s.hasQueue = f.Changed
		if s.queue < 0 {
			return usagef("cannot use --queue %d: queues are counted from 0", s.queue)
		}
	}
	return nil
}

func (s *offsetScope) on() admin.Target { return admin.Target{Cluster: s.cluster, Broker: s.broker} }

func (s *offsetScope) queueID() *int32 {
	if !s.hasQueue {
		return nil
	}
	return &s.queue
}

// needTopics asks for a topic or for all of them.
func (s *offsetScope) needTopics(c *cobra.Command) error {
	switch {
	case len(s.topics) == 0 && !s.all:
		return usagef("cannot run %q: --topic is missing", c.CommandPath()).because("all topics are only meant where that is said").try("-t TOPIC, or --all")
	case len(s.topics) > 0 && s.all:
		return usagef("cannot use --all with --topic").try("one of them")
	}
	return nil
}

// offsetGetOptions are the flags of mqx admin offset get and export.
type offsetGetOptions struct {
	offsetScope
	output outputFlags
	retry  bool
}

func newOffsetGetCmd(a *app) *cobra.Command {
	o := &offsetGetOptions{retry: true}
	c := &cobra.Command{
		Use:   "get",
		Short: "Show where a group stands in each queue",
		Long: `The committed offset beside the range of the queue. What was never committed is unknown; the
marks say what is odd. How old the next message is: mqx admin lag get -g GROUP.`,
		Example: `  mqx admin offset get -g billing
  mqx admin offset get -g billing -t ORDERS -b broker-a -o json
  mqx admin offset get -g billing --match 'marks~beyond-end'`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return runOffsetGet(a, c, o, false) },
	}
	o.add(a, c, true, false)
	o.output.addRows(c)
	o.output.add(c)
	o.output.addWatch(c)
	return c
}

func newOffsetExportCmd(a *app) *cobra.Command {
	o := &offsetGetOptions{}
	c := &cobra.Command{
		Use:   "export",
		Short: "Write the offsets of a group to a file that import takes",
		Long: `Writes what the group has committed, as the JSON document of offset get; queues in which it
has committed nothing are left out. With one broker missing the file has the others and the
exit code is 3.`,
		Example: `  mqx admin offset export -g billing -O billing.json
  mqx admin offset export -g billing -t ORDERS | ssh other mqx admin offset import - --yes`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return runOffsetGet(a, c, o, true) },
	}
	o.add(a, c, true, false)
	grouped(c, groupFilter, func(f *pflag.FlagSet) { f.BoolVar(&o.retry, "retry", false, "the retry topics of the group as well") })
	o.output.add(c)
	form := c.Flags().Lookup("output")
	form.DefValue = string(render.FormJSON)
	o.output.form = form.DefValue
	return c
}

func runOffsetGet(a *app, c *cobra.Command, o *offsetGetOptions, export bool) error {
	if !o.output.help() {
		if err := o.check(c); err != nil {
			return err
		}
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return a.list(c, &o.output, offsetSchema, func(ctx context.Context, w *render.Writer) (problems, error) {
		l, err := client.GetLag(ctx, admin.LagOptions{Target: o.on(), Groups: []string{o.group}, Topics: o.topics})
		if err != nil {
			return nil, err
		}
		if err := allFailed(len(l.Groups), l.Errors); err != nil {
			return nil, err
		}
		for i := range l.Groups {
			g := &l.Groups[i]
			for j := range g.Queues {
				q := &g.Queues[j]
				if o.hasQueue && q.QueueID.QueueID != o.queue || q.Retry && !o.retry || export && !q.Committed.OK {
					continue
				}
				if err := w.Row(offsetRow(g.Group, q)...); err != nil {
					return nil, err
				}
			}
		}
		return targetProblems(l.Errors), nil
	})
}

func offsetRow(group string, q *admin.QueueLag) []any {
	return []any{
		group, q.Topic, q.Broker, q.QueueID.QueueID, known(q.Min), known(q.Max), known(q.Committed), known(q.Pulled), known(q.Lag), listOf(q.Marks), q.Retry,
		orUnknown(q.Cluster),
	}
}
