package cmd

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
)

// setTopicOptions are the flags of mqx admin topic set.
type setTopicOptions struct {
	changeFlags
	queues, readQueues, writeQueues int
	perm, orderConf                 string
	order, unit, unitSub            bool
	attributes                      []string
}

var topicSettings = []string{"queues", "read-queues", "write-queues", "perm", "ordered", "unit", "has-unit-sub", "attribute"}

func newTopicSetCmd(a *app) *cobra.Command {
	o := &setTopicOptions{}
	c := &cobra.Command{
		Use:   "set TOPIC",
		Short: "Change a topic: only what is given",
		Long: `Changes the topic on the brokers that have it. What groups have not read in queues
that are no longer read is listed. --order-conf sets the order configuration at the
name servers itself (BROKER:QUEUES, ; between them); an empty one takes it away.`,
		Example: `  mqx admin topic set ORDERS --perm r -b broker-a
  mqx admin topic set ORDERS --write-queues 4 --dry-run
  mqx admin topic set ORDERS --ordered=false --attribute -reserve.time --yes
  mqx admin topic set ORDERS --order-conf 'broker-a:4;broker-b:4' --yes`,
		Args:              exactArgs("TOPIC"),
		ValidArgsFunction: completeTopics(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return o.set(a, c, args[0]) },
	}
	o.add(a, c, false, true)
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.IntVar(&o.queues, "queues", 0, "queues to read and to write on each broker")
		f.IntVar(&o.readQueues, "read-queues", 0, "queues to read, if another number")
		f.IntVar(&o.writeQueues, "write-queues", 0, "queues to write, if another number")
		f.StringVar(&o.perm, "perm", "", "r, w, rw or none")
		f.BoolVar(&o.order, "ordered", false, "mark the topic as ordered, or with =false no longer")
		f.BoolVar(&o.unit, "unit", false, "the unit flag")
		f.BoolVar(&o.unitSub, "has-unit-sub", false, "the flag of unit subscriptions")
		f.StringArrayVar(&o.attributes, "attribute", nil, "attribute as +name=value, or -name to remove it; may be repeated")
		f.StringVar(&o.orderConf, "order-conf", "", "order configuration at the name servers: BROKER:QUEUES;...")
	})
	return c
}

func (o *setTopicOptions) set(a *app, c *cobra.Command, topic string) error {
	if c.Flags().Changed("order-conf") {
		if anyOf(c, append(topicSettings, "cluster", "broker")...) {
			return usagef("cannot take --order-conf together with settings that brokers keep").try("one command for each")
		}
		value := &o.orderConf
		if o.orderConf == "" {
			value = nil
		}
		return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
			return client.PlanOrderConf(ctx, topic, value)
		})
	}
	if !anyOf(c, topicSettings...) {
		return usagef("cannot change topic %q: nothing is said to be changed", topic).try("mqx admin topic set %s --perm rw", topic)
	}
	change := admin.TopicChange{
		ReadQueues: given(c, "queues", o.queues), WriteQueues: given(c, "queues", o.queues), Order: given(c, "ordered", o.order),
		Unit: given(c, "unit", o.unit), HasUnitSub: given(c, "has-unit-sub", o.unitSub),
	}
	for flag, q := range map[string]struct {
		value int
		to    **int
	}{"queues": {o.queues, nil}, "read-queues": {o.readQueues, &change.ReadQueues}, "write-queues": {o.writeQueues, &change.WriteQueues}} {
		if !c.Flags().Changed(flag) {
			continue
		}
		if q.value < 1 {
			return usagef("cannot use --%s %d: it must be at least 1", flag, q.value)
		}
		if q.to != nil {
			*q.to = &q.value
		}
	}
	if c.Flags().Changed("perm") {
		perm := 0
		if o.perm != "none" && o.perm != "0" {
			var err error
			if perm, err = parsePerm(o.perm); err != nil {
				return notOneOf("--perm", o.perm, "r", "w", "rw", "none")
			}
		}
		change.Perm = &perm
	}
	var err error
	if change.Attributes, err = readAttributes(o.attributes); err != nil {
		return err
	}
	return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
		return client.PlanTopic(ctx, o.on(), topic, change)
	})
}

// importTopics makes the topics of a file.
func (o *changeFlags) importTopics(a *app, c *cobra.Command, path string) error {
	m, err := a.readMetadata(path)
	if err != nil {
		return err
	}
	if len(m.TopicConfigTable) == 0 {
		return usagef("file %q has no topics", path).try("mqx admin group import %s", path)
	}
	m.SubscriptionGroupTable = nil
	return o.runAll(a, c, func(ctx context.Context, client *admin.Client) ([]admin.Plan, error) {
		return client.PlanImport(ctx, o.on(), m)
	})
}

func newTopicExportCmd(a *app) *cobra.Command {
	o := &tableExportOptions{}
	c := &cobra.Command{
		Use:   "export",
		Short: "Write the topics of a cluster as a file that another cluster takes",
		Long: `The document is JSON in the form of Apache's exportMetadata; mqx admin topic import
takes it. Topics that brokers make for themselves are left out. Where brokers have
different configurations of a topic the greater numbers of queues are written, since
an import makes them on each broker, and a line on stderr says so.`,
		Example: `  mqx admin topic export -O topics.json
  mqx admin topic export --retry -b broker-a | jq '.topicConfigTable | keys'`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.exportMetadata(c, &o.target, o.file, admin.Target{Cluster: o.cluster, Broker: o.broker}, admin.ExportOptions{Topics: true, Special: o.special})
		},
	}
	o.add(a, c)
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.BoolVar(&o.special, "retry", false, "retry and dead letter topics of groups as well")
	})
	return c
}

func newTopicImportCmd(a *app) *cobra.Command {
	o := &changeFlags{}
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Make the topics of a file",
		Long: `FILE is what mqx admin topic export or Apache's exportMetadata writes, or a list of
configurations as updateTopicList takes it; - is stdin. Topics that are not in it stay.`,
		Example: `  mqx admin topic import topics.json --dry-run
  mqx admin topic import topics.json -c DefaultCluster --yes`,
		Args: exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error { return o.importTopics(a, c, args[0]) },
	}
	o.add(a, c, false, true)
	return c
}

func newClusterImportCmd(a *app) *cobra.Command {
	o := &changeFlags{}
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Make the topics and groups of a file",
		Long: `FILE is what mqx admin topic export, group export, or Apache's exportMetadata writes;
- is stdin. Groups come first, so that no topic is read by a group that lacks its
configuration. What is not in the file stays.`,
		Example: `  mqx admin cluster import metadata.json --dry-run
  mqx admin cluster import metadata.json -c DefaultCluster --yes`,
		Args: exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			m, err := a.readMetadata(args[0])
			if err != nil {
				return err
			}
			return o.runAll(a, c, func(ctx context.Context, client *admin.Client) ([]admin.Plan, error) {
				return client.PlanImport(ctx, o.on(), m)
			})
		},
	}
	o.add(a, c, false, true)
	return c
}
