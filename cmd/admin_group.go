package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/remoting"
)

func newGroupCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "group", Aliases: []string{"groups"}, Short: "Consumer groups of a cluster"},
		newGroupLsCmd(a), newGroupGetCmd(a), newGroupStatusCmd(a),
		newGroupCreateCmd(a), newGroupSetCmd(a), newGroupRmCmd(a), newGroupExportCmd(a), newGroupImportCmd(a))
}

var groupListSchema = render.Schema{Kind: "GroupList", Name: "name", Fields: []render.Field{
	{Name: "name", Doc: "consumer group"},
	{Name: "members", Kind: render.Int, Tone: presence, Doc: "clients online"},
	{Name: "type", Doc: "how its members get messages: push, pull or pop; unknown when none is online"},
	{Name: "model", Doc: "clustering or broadcasting; unknown when none is online"},
	{Name: "clusters", Kind: render.List, Doc: "clusters that know it"},
	{Name: "brokers", Kind: render.List, Doc: "brokers that know it"},
	{Name: "builtin", Kind: render.Bool, Wide: true, Doc: "a group of the system"},
	{Name: "consumeEnable", Title: "ENABLED", Kind: render.Bool, Wide: true, Tone: enabled, Doc: "may consume, on every broker"},
	{Name: "retryMaxTimes", Title: "RETRIES", Kind: render.Int, Wide: true, Doc: "most retries before the dead letter queue, over the brokers"},
}}

// enabled: what is switched off is worth a look.
func enabled(v any) render.Tone {
	if on, ok := v.(bool); ok && !on {
		return render.Warn
	}
	return render.Plain
}

// presence: a group with members is alive.
func presence(v any) render.Tone {
	if n, ok := v.(int64); ok && n > 0 {
		return render.Good
	}
	return render.Dim
}

// listGroupsOptions are the flags of mqx admin group ls.
type listGroupsOptions struct {
	target  targetFlags
	output  outputFlags
	cluster string
	broker  string
	all     bool
}

func newGroupLsCmd(a *app) *cobra.Command {
	o := &listGroupsOptions{}
	c := &cobra.Command{
		Use:   "ls",
		Short: "List consumer groups",
		Example: `  mqx admin group ls
  mqx admin group ls --match members=0 -o name
  mqx admin group ls --all -o json`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return runGroupLs(a, c, o) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVarP(&o.cluster, "cluster", "c", "", "only this cluster")
		f.StringVarP(&o.broker, "broker", "b", "", "only this broker, by name or address")
	})
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.BoolVar(&o.all, "all", false, "groups of the system as well")
	})
	o.output.addRows(c)
	o.output.add(c)
	o.output.addWatch(c)
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

func runGroupLs(a *app, c *cobra.Command, o *listGroupsOptions) error {
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return a.list(c, &o.output, groupListSchema, func(ctx context.Context, w *render.Writer) (problems, error) {
		list, err := client.ListGroups(ctx, admin.ListGroupsOptions{Target: admin.Target{Cluster: o.cluster, Broker: o.broker}, Builtin: o.all})
		if err != nil {
			return nil, err
		}
		if err := allFailed(len(list.Items), list.Errors); err != nil {
			return nil, err
		}
		a.explainEmpty(ctx, client, len(list.Items))
		for _, g := range list.Items {
			if err := w.Row(groupRow(g)...); err != nil {
				return nil, err
			}
		}
		return targetProblems(list.Errors), nil
	})
}

func groupRow(g admin.Group) []any {
	var clusters, brokers []string
	enabled, retries := true, 0
	for _, b := range g.Brokers {
		clusters = append(clusters, b.Cluster)
		brokers = append(brokers, b.Broker)
		enabled = enabled && b.ConsumeEnable
		retries = max(retries, b.RetryMaxTimes)
	}
	return []any{g.Name, g.Members, orUnknown(consumeTypeName(g.Type)), orUnknown(strings.ToLower(g.Model)), unique(clusters), unique(brokers), g.Builtin, enabled, retries}
}

// consumeTypeName is how the members of a group get their messages.
func consumeTypeName(wire string) string {
	switch wire {
	case remoting.ConsumePassively:
		return "push"
	case remoting.ConsumeActively:
		return "pull"
	case remoting.ConsumePop:
		return "pop"
	}
	return wire
}

var groupQueueSchema = render.Schema{Kind: "GroupQueueList", Name: "topic", Fields: []render.Field{
	{Name: "group", Wide: true, Doc: "consumer group"},
	{Name: "topic", Doc: "topic"},
	{Name: "broker", Doc: "broker that holds the queue"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue"},
	{Name: "maxOffset", Title: "END", Kind: render.Int, Doc: "offset the next message will get"},
	{Name: "offset", Kind: render.Int, Doc: "committed offset of the group; unknown when it never committed"},
	{Name: "lag", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "messages behind; unknown when it never committed"},
	{Name: "lastConsumed", Title: "LAST", Kind: render.Time, Doc: "when the last message it took was stored"},
	{Name: "pullOffset", Kind: render.Int, Wide: true, Doc: "offset the group has pulled up to"},
}}

var groupMemberSchema = render.Schema{Kind: "GroupMemberList", Name: "clientId", Fields: []render.Field{
	{Name: "group", Wide: true, Doc: "consumer group"},
	{Name: "clientId", Title: "CLIENT", Doc: "client id"},
	{Name: "addr", Title: "ADDRESS", Whole: true, Doc: "where it connects from"},
	{Name: "language", Doc: "language of the client"},
	{Name: "version", Doc: "version of the client"},
}}

var groupSubscriptionSchema = render.Schema{Kind: "GroupSubscriptionList", Name: "topic", Fields: []render.Field{
	{Name: "group", Wide: true, Doc: "consumer group"},
	{Name: "topic", Doc: "topic"},
	{Name: "expression", Doc: "filter"},
	{Name: "type", Doc: "TAG or SQL92"},
}}

var groupConfigSchema = render.Schema{Kind: "GroupConfigList", Name: "broker", Fields: []render.Field{
	{Name: "group", Wide: true, Doc: "consumer group"},
	{Name: "cluster", Doc: "cluster of the broker"},
	{Name: "broker", Doc: "broker"},
	{Name: "addr", Title: "ADDRESS", Doc: "its address"},
	{Name: "consumeEnable", Title: "ENABLED", Kind: render.Bool, Tone: enabled, Doc: "may consume"},
	{Name: "broadcastEnable", Title: "BROADCAST", Kind: render.Bool, Doc: "may consume as broadcast"},
	{Name: "orderly", Kind: render.Bool, Doc: "consumes in order"},
	{Name: "retryQueues", Kind: render.Int, Doc: "queues of its retry topic"},
	{Name: "retryMaxTimes", Title: "RETRIES", Kind: render.Int, Doc: "retries before the dead letter queue"},
	{Name: "fromMinEnable", Kind: render.Bool, Wide: true, Doc: "may begin at the smallest offset"},
	{Name: "brokerId", Kind: render.Int, Wide: true, Doc: "broker id to read from"},
	{Name: "whenSlowBrokerId", Kind: render.Int, Wide: true, Doc: "broker id to read from when slow"},
	{Name: "notifyChanges", Kind: render.Bool, Wide: true, Doc: "members are told when the group changes"},
	{Name: "attributes", Kind: render.Object, Wide: true, Doc: "attributes"},
}}

var groupShow = map[string]render.Schema{
	"queues": groupQueueSchema, "members": groupMemberSchema, "subscriptions": groupSubscriptionSchema, "config": groupConfigSchema,
}

// getGroupOptions are the flags of mqx admin group get.
type getGroupOptions struct {
	readOptions
	topic, lite string // with --show lite
	top         int32
}

func newGroupGetCmd(a *app) *cobra.Command {
	o := &getGroupOptions{}
	c := &cobra.Command{
		Use: "get GROUP", Aliases: []string{"describe"},
		Short: "Show where a group stands, its members, subscriptions or configuration",
		Example: `  mqx admin group get billing
  mqx admin group get billing --match 'lag>0' --sort lag
  mqx admin group get billing --show members
  mqx admin group get billing -o json | jq '[.items[].lag] | add'`,
		Args:              exactArgs("GROUP"),
		ValidArgsFunction: completeGroups(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return runGroupGet(a, c, o, args[0]) },
	}
	o.addTo(c)
	o.addShow(c, "queues", "members", "subscriptions", "config", "lite")
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVarP(&o.topic, "topic", "t", "", "with --show lite: the parent topic")
	})
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&o.lite, "lite", "", "with --show lite: one lite topic in place of a summary")
		f.Int32Var(&o.top, "top", 20, "with --show lite: so many lite topics of each broker, the worst")
	})
	return c
}

func runGroupGet(a *app, c *cobra.Command, o *getGroupOptions, name string) error {
	if o.show == "lite" {
		if o.topic == "" {
			return usagef("cannot show lite topics without --topic, the parent topic").try("mqx admin group get %s -t PARENT --show lite", name)
		}
		return a.read(c, &o.readOptions, groupLiteSchema, func(ctx context.Context, client *admin.Client) (answer, error) {
			return liteRows(ctx, client, name, o.topic, o.lite, o.top)
		})
	}
	schema, ok := groupShow[o.show]
	if !ok {
		return notOneOf("--show", o.show, "queues", "members", "subscriptions", "config", "lite")
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return a.list(c, &o.output, schema, func(ctx context.Context, w *render.Writer) (problems, error) {
		g, err := client.GetGroup(ctx, name)
		if err != nil {
			return nil, err
		}
		if err := allFailed(len(g.Queues)+len(g.Brokers), g.Errors); err != nil {
			return nil, err
		}
		for _, row := range groupRows(o.show, g) {
			if err := w.Row(row...); err != nil {
				return nil, err
			}
		}
		return targetProblems(g.Errors), nil
	})
}

func groupRows(show string, g *admin.GroupDetail) [][]any {
	var rows [][]any
	switch show {
	case "queues":
		for _, q := range g.Queues {
			var offset, lag any
			if q.ConsumerOffset >= 0 {
				offset, lag = q.ConsumerOffset, q.BrokerOffset-q.ConsumerOffset
			}
			var pulled any
			if q.PullOffset >= 0 {
				pulled = q.PullOffset
			}
			rows = append(rows, []any{g.Name, q.Topic, q.Broker, q.QueueID, q.BrokerOffset, offset, lag, q.LastTime, pulled})
		}
	case "members":
		for _, m := range g.Online {
			rows = append(rows, []any{g.Name, m.ClientID, m.Addr, m.Language, m.Version})
		}
	case "subscriptions":
		for _, s := range g.Subscriptions {
			rows = append(rows, []any{g.Name, s.Topic, s.Expression, s.Type})
		}
	case "config":
		for _, b := range g.Brokers {
			rows = append(rows, []any{
				g.Name, b.Cluster, b.Broker, b.Addr, b.ConsumeEnable, b.ConsumeBroadcastEnable, b.ConsumeMessageOrderly,
				b.RetryQueueNums, b.RetryMaxTimes, b.ConsumeFromMinEnable, b.BrokerID, b.WhichBrokerWhenConsumeSlowly,
				b.NotifyConsumerIDsChangedEnable, b.Attributes,
			})
		}
	}
	return rows
}
