package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
)

// changeTopicOptions are the flags of mqx admin topic create and rm.
type changeTopicOptions struct {
	target  targetFlags
	output  outputFlags
	safety  safetyFlags
	cluster string
	broker  string

	queues, readQueues, writeQueues int
	perm                            string
	order, static                   bool
	attributes                      []string
	file                            string
}

func (o *changeTopicOptions) addTarget(f *pflag.FlagSet) {
	o.target.add(f)
	f.StringVarP(&o.cluster, "cluster", "c", "", "on the masters of this cluster (default: of all)")
	f.StringVarP(&o.broker, "broker", "b", "", "on this broker only, by name or address")
}

func newTopicCreateCmd(a *app) *cobra.Command {
	o := &changeTopicOptions{}
	c := &cobra.Command{
		Use:   "create TOPIC",
		Short: "Create a topic, or change its queues and permissions",
		Long: `Where a broker has the topic already, only what is given changes. With --from-file the topics
of a file are made: what mqx admin topic export writes, or a list as Apache's
updateTopicList takes it. With --static it has so many queues in all, however many
brokers there are, and mqx admin topic spread --static lets others lead them; only
Apache's brokers and Java clients from 5.0 on know such topics.`,
		Example: `  mqx admin topic create ORDERS --queues 8 --perm rw -c DefaultCluster --yes
  mqx admin topic create ORDERS --read-queues 8 --write-queues 4 --dry-run
  mqx admin topic create AUDIT -b broker-a --attribute +cleanup.policy=DELETE --yes
  mqx admin topic create --from-file topics.json --yes
  mqx admin topic create FIXED --static --queues 8 -c DefaultCluster --yes`,
		Args: optionalArg(),
		RunE: func(c *cobra.Command, args []string) error {
			if o.file == "" {
				if len(args) == 0 {
					return usagef("cannot run %q: TOPIC is missing", c.CommandPath()).try("mqx admin topic create TOPIC")
				}
				if o.static {
					return o.createStatic(a, c, args[0])
				}
				return runTopicCreate(a, c, o, args[0])
			}
			if len(args) > 0 || anyOf(c, "queues", "read-queues", "write-queues", "perm", "order", "attribute", "static") {
				return usagef("cannot take --from-file together with a topic or its settings: the file says it").try("mqx admin topic create --from-file %s", o.file)
			}
			all := &changeFlags{target: o.target, output: o.output, safety: o.safety, cluster: o.cluster, broker: o.broker}
			return all.importTopics(a, c, o.file)
		},
	}
	// What is not given stays as it is: see spec.
	grouped(c, groupTarget, o.addTarget)
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.IntVar(&o.queues, "queues", 0, "queues to read and to write on each broker (default 8 for a new topic)")
		f.IntVar(&o.readQueues, "read-queues", 0, "queues to read, if another number")
		f.IntVar(&o.writeQueues, "write-queues", 0, "queues to write, if another number")
		f.StringVar(&o.perm, "perm", "", "r, w or rw (default rw for a new topic)")
		f.BoolVar(&o.order, "order", false, "mark the topic as ordered")
		f.BoolVar(&o.static, "static", false, "a static topic: --queues are those of all brokers together")
		f.StringArrayVar(&o.attributes, "attribute", nil, "attribute as +name=value, or -name to remove it; may be repeated")
		f.StringVar(&o.file, "from-file", "", "make the topics of this file; - is stdin")
	})
	o.output.add(c)
	o.safety.add(c, false)
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

func newTopicRmCmd(a *app) *cobra.Command {
	o := &changeTopicOptions{}
	c := &cobra.Command{
		Use:   "rm TOPIC",
		Short: "Delete a topic with all its messages",
		Long: `Lists the groups that have not read everything, and asks for the name of the
topic. There is no way back.`,
		Example: `  mqx admin topic rm ORDERS
  mqx admin topic rm ORDERS --dry-run -o json
  mqx admin topic rm ORDERS --confirm ORDERS`,
		Args:              exactArgs("TOPIC"),
		ValidArgsFunction: completeTopics(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return runTopicRm(a, c, o, args[0]) },
	}
	grouped(c, groupTarget, o.addTarget)
	o.output.add(c)
	o.safety.add(c, true)
	return c
}

// spec is the topic that the flags ask for. A flag that was not given leaves its
// field 0: as the topic has it, or the default for a new one.
func (o *changeTopicOptions) spec(c *cobra.Command, name string) (admin.TopicSpec, error) {
	spec := admin.TopicSpec{Name: name, ReadQueues: o.queues, WriteQueues: o.queues, Order: o.order}
	for _, q := range []struct {
		flag  string
		value int
		to    *int
	}{{"queues", o.queues, nil}, {"read-queues", o.readQueues, &spec.ReadQueues}, {"write-queues", o.writeQueues, &spec.WriteQueues}} {
		if !c.Flags().Changed(q.flag) {
			continue
		}
		if q.value < 1 {
			return spec, usagef("cannot use --%s %d: it must be at least 1", q.flag, q.value)
		}
		if q.to != nil {
			*q.to = q.value
		}
	}
	if c.Flags().Changed("perm") {
		var err error
		if spec.Perm, err = parsePerm(o.perm); err != nil {
			return spec, err
		}
	}
	for _, text := range o.attributes {
		if text == "" || text[0] != '+' && text[0] != '-' {
			return spec, usagef("cannot read attribute %q: it has the form +name=value or -name", text).try("--attribute +cleanup.policy=DELETE")
		}
		key, value, _ := strings.Cut(text, "=")
		if spec.Attributes == nil {
			spec.Attributes = map[string]string{}
		}
		spec.Attributes[key] = value
	}
	return spec, nil
}

func runTopicCreate(a *app, c *cobra.Command, o *changeTopicOptions, name string) error {
	spec, err := o.spec(c, name)
	if err != nil {
		return err
	}
	return o.change(a, c).run(func(ctx context.Context, client *admin.Client) ([]admin.Plan, error) {
		return onePlan(client.PlanCreateTopic(ctx, o.on(), spec))
	})
}

func runTopicRm(a *app, c *cobra.Command, o *changeTopicOptions, name string) error {
	return o.change(a, c).run(func(ctx context.Context, client *admin.Client) ([]admin.Plan, error) {
		return onePlan(client.PlanDeleteTopic(ctx, o.on(), name))
	})
}

func (o *changeTopicOptions) on() admin.Target {
	return admin.Target{Cluster: o.cluster, Broker: o.broker}
}

func (o *changeTopicOptions) change(a *app, c *cobra.Command) *change {
	return &change{app: a, cmd: c, target: &o.target, output: &o.output, safety: &o.safety}
}
