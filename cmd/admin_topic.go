package cmd

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
)

func newTopicCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "topic", Aliases: []string{"topics"}, Short: "Topics of a cluster"},
		newTopicLsCmd(a), newTopicGetCmd(a), newTopicCreateCmd(a), newTopicRmCmd(a), newTopicSpreadCmd(a),
		newTopicSetCmd(a), newTopicExportCmd(a), newTopicImportCmd(a))
}

var topicListSchema = render.Schema{Kind: "TopicList", Name: "name", Fields: []render.Field{
	{Name: "name", Doc: "topic"},
	{Name: "kind", Tone: render.ToneOf(map[string]render.Tone{"normal": render.Plain}, render.Dim), Doc: "normal, retry, dlq or system"},
	{Name: "clusters", Kind: render.List, Doc: "clusters that have it"},
	{Name: "brokers", Kind: render.List, Doc: "brokers that have it"},
	{Name: "readQueues", Title: "READ", Kind: render.Int, Doc: "queues to read, over all brokers"},
	{Name: "writeQueues", Title: "WRITE", Kind: render.Int, Doc: "queues to write, over all brokers"},
	{Name: "perm", Tone: permTone, Doc: "r, w, rw or none; several when brokers differ"},
	{Name: "order", Kind: render.Bool, Wide: true, Doc: "marked as ordered on some broker"},
	{Name: "attributes", Kind: render.Object, Wide: true, Doc: "attributes of all brokers together"},
}}

// listTopicsOptions are the flags of mqx admin topic ls.
type listTopicsOptions struct {
	target  targetFlags
	output  outputFlags
	cluster string
	broker  string
	system  bool
	retry   bool
}

func newTopicLsCmd(a *app) *cobra.Command {
	o := &listTopicsOptions{}
	c := &cobra.Command{
		Use:   "ls",
		Short: "List topics",
		Example: `  mqx admin topic ls
  mqx admin topic ls --all -o wide
  mqx admin topic ls --match 'name~^ORDER' -o name
  mqx admin topic ls -b broker-a -o json | jq '.items | length'`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return runTopicLs(a, c, o) },
	}
	var all bool
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVarP(&o.cluster, "cluster", "c", "", "only this cluster")
		f.StringVarP(&o.broker, "broker", "b", "", "only this broker, by name or address")
	})
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.BoolVar(&o.system, "system", false, "system topics as well")
		f.BoolVar(&o.retry, "retry", false, "retry and dead letter topics of groups as well")
		f.BoolVar(&all, "all", false, "all of them")
	})
	c.PreRun = func(*cobra.Command, []string) { o.system, o.retry = o.system || all, o.retry || all }
	o.output.addRows(c)
	o.output.add(c)
	o.output.addWatch(c)
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

func runTopicLs(a *app, c *cobra.Command, o *listTopicsOptions) error {
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return a.list(c, &o.output, topicListSchema, func(ctx context.Context, w *render.Writer) (problems, error) {
		list, err := client.ListTopics(ctx, admin.ListTopicsOptions{
			Target: admin.Target{Cluster: o.cluster, Broker: o.broker}, System: o.system, Retry: o.retry,
		})
		if err != nil {
			return nil, err
		}
		if err := allFailed(len(list.Items), list.Errors); err != nil {
			return nil, err
		}
		a.explainEmpty(ctx, client, len(list.Items))
		for _, t := range list.Items {
			if err := w.Row(topicRow(t)...); err != nil {
				return nil, err
			}
		}
		return targetProblems(list.Errors), nil
	})
}

func topicRow(t admin.Topic) []any {
	var clusters, brokers, perms []string
	read, write, order := 0, 0, false
	attributes := map[string]string{}
	for _, b := range t.Brokers {
		clusters = append(clusters, b.Cluster)
		brokers = append(brokers, b.Broker)
		perms = append(perms, admin.PermText(b.Perm))
		read += b.ReadQueues
		write += b.WriteQueues
		order = order || b.Order
		maps.Copy(attributes, b.Attributes)
	}
	return []any{t.Name, t.Kind, unique(clusters), unique(brokers), read, write, strings.Join(unique(perms), ","), order, attributes}
}

// unique sorts and drops what comes twice; never nil.
func unique(list []string) []string {
	return listOf(slices.Compact(slices.Sorted(slices.Values(list))))
}

// permTone: all but the usual permission is worth a look.
var permTone = render.ToneOf(map[string]render.Tone{"rw": render.Plain}, render.Warn)

// parsePerm reads r, w, rw, or Apache's numbers 4, 2, 6.
func parsePerm(text string) (int, error) {
	switch text {
	case "rw", "wr", "6":
		return 6, nil
	case "r", "4":
		return 4, nil
	case "w", "2":
		return 2, nil
	}
	return 0, notOneOf("--perm", text, "r", "w", "rw")
}

var topicQueueSchema = render.Schema{Kind: "TopicQueueList", Name: "topic", Fields: []render.Field{
	{Name: "topic", Wide: true, Doc: "topic"},
	{Name: "cluster", Wide: true, Doc: "cluster of the broker"},
	{Name: "broker", Doc: "broker that holds the queue"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue"},
	{Name: "minOffset", Title: "MIN", Kind: render.Int, Doc: "offset of the oldest message there is"},
	{Name: "maxOffset", Title: "MAX", Kind: render.Int, Doc: "offset the next message will get"},
	{Name: "messages", Kind: render.Int, Doc: "messages in the queue"},
	{Name: "lastStored", Kind: render.Time, Doc: "when the newest message was stored"},
}}

var topicConfigSchema = render.Schema{Kind: "TopicConfigList", Name: "topic", Fields: []render.Field{
	{Name: "topic", Wide: true, Doc: "topic"},
	{Name: "cluster", Doc: "cluster of the broker"},
	{Name: "broker", Doc: "broker"},
	{Name: "addr", Title: "ADDRESS", Doc: "its address"},
	{Name: "readQueues", Title: "READ", Kind: render.Int, Doc: "queues to read"},
	{Name: "writeQueues", Title: "WRITE", Kind: render.Int, Doc: "queues to write"},
	{Name: "perm", Tone: permTone, Doc: "r, w, rw or none"},
	{Name: "order", Kind: render.Bool, Doc: "marked as ordered"},
	{Name: "sysFlag", Kind: render.Int, Wide: true, Doc: "unit flags"},
	{Name: "attributes", Kind: render.Object, Wide: true, Doc: "attributes"},
}}

var topicGroupSchema = render.Schema{Kind: "TopicGroupList", Name: "group", Fields: []render.Field{
	{Name: "topic", Doc: "topic"},
	{Name: "group", Doc: "group that consumes it, online or with an offset"},
}}

// getTopicOptions are the flags of mqx admin topic get.
type getTopicOptions struct {
	readOptions
	more topicRead
}

func newTopicGetCmd(a *app) *cobra.Command {
	o := &getTopicOptions{}
	c := &cobra.Command{
		Use: "get TOPIC", Aliases: []string{"describe"},
		Short: "Show the queues of a topic, its configuration, route, or the groups that read it",
		Example: `  mqx admin topic get ORDERS
  mqx admin topic get ORDERS --match 'messages>0' --sort messages
  mqx admin topic get ORDERS --show config
  mqx admin topic get ORDERS --show route
  mqx admin topic get ORDERS --show allocation --clients 10.0.0.1,10.0.0.2
  mqx admin topic get ORDERS --show groups -o name`,
		Args:              exactArgs("TOPIC"),
		ValidArgsFunction: completeTopics(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return runTopicGet(a, c, o, args[0]) },
	}
	o.addTo(c)
	o.addShow(c, append([]string{"queues", "config", "groups"}, topicReads...)...)
	grouped(c, groupFilter, o.more.add)
	return c
}

func runTopicGet(a *app, c *cobra.Command, o *getTopicOptions, name string) error {
	if slices.Contains(topicReads, o.show) {
		schema, err := o.more.schema(o.show)
		if err != nil {
			return err
		}
		return a.read(c, &o.readOptions, schema, func(ctx context.Context, client *admin.Client) (answer, error) {
			return o.more.ask(ctx, client, o.show, name)
		})
	}
	schema, ok := map[string]render.Schema{"queues": topicQueueSchema, "config": topicConfigSchema, "groups": topicGroupSchema}[o.show]
	if !ok {
		return notOneOf("--show", o.show, append([]string{"queues", "config", "groups"}, topicReads...)...)
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return a.list(c, &o.output, schema, func(ctx context.Context, w *render.Writer) (problems, error) {
		t, err := client.GetTopic(ctx, name)
		if err != nil {
			return nil, err
		}
		if err := allFailed(len(t.Queues)+len(t.Brokers), t.Errors); err != nil {
			return nil, err
		}
		for _, row := range topicRows(o.show, t) {
			if err := w.Row(row...); err != nil {
				return nil, err
			}
		}
		return targetProblems(t.Errors), nil
	})
}

func topicRows(show string, t *admin.TopicDetail) [][]any {
	var rows [][]any
	switch show {
	case "queues":
		for _, q := range t.Queues {
			rows = append(rows, []any{t.Name, q.Cluster, q.Broker, q.QueueID, q.MinOffset, q.MaxOffset, q.MaxOffset - q.MinOffset, q.LastUpdated})
		}
	case "config":
		for _, b := range t.Brokers {
			rows = append(rows, []any{t.Name, b.Cluster, b.Broker, b.Addr, b.ReadQueues, b.WriteQueues, admin.PermText(b.Perm), b.Order, b.SysFlag, b.Attributes})
		}
	case "groups":
		for _, g := range t.Groups {
			rows = append(rows, []any{t.Name, g})
		}
	}
	return rows
}
