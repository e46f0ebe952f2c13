package cmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
)

// seedOptions are the flags of mqx admin topic spread and mqx admin broker seed.
type seedOptions struct {
	target targetFlags
	output outputFlags
	safety safetyFlags

	targets    []string
	source     string
	topics     []string
	readQueues int
	queues     int
	remap      bool
	static     bool
	allTopics  bool
}

func (o *seedOptions) addQueues(c *cobra.Command) {
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.IntVar(&o.queues, "queues", 0, "queues to read and to write there (default: as many as on the source)")
		f.IntVar(&o.readQueues, "read-queues", 0, "queues to read, if another number")
		f.BoolVar(&o.remap, "remap-keys", false, "an ordered topic may grow, although every key then goes to another queue")
	})
}

func newTopicSpreadCmd(a *app) *cobra.Command {
	o := &seedOptions{}
	c := &cobra.Command{
		Use:   "spread TOPIC",
		Short: "Put a topic on more brokers of its cluster",
		Long: `The topic gets there the configuration that it has, and new, empty queues. First come
the groups that read it, then the topic without any permission, then offset 0 for each of
those groups, and its permission last: a queue that can be seen before is begun at its end
by clients that start there, and its first messages are skipped. An ordered topic is
refused without --remap-keys: with more queues every key goes to another one, and may be
overtaken by itself; mqx admin queue migrate keeps the order. With --static the queues of
a static topic are shared out anew among the targets, which may be fewer than before.`,
		Example: `  mqx admin topic spread ORDERS --target broker-c --dry-run
  mqx admin topic spread ORDERS --target broker-c --target broker-d --queues 4 --yes
  mqx admin topic spread ORDERS --target broker-c --plan-out spread.json && mqx admin plan apply spread.json --yes
  mqx admin topic spread FIXED --static --target broker-b --target broker-c --yes`,
		Args: exactArgs("TOPIC"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(o.targets) == 0 {
				return usagef("cannot run %q: --target is missing", c.CommandPath()).because("it says which brokers get the topic").try("--target broker-c")
			}
			if o.static {
				return o.remapStatic(a, c, args[0])
			}
			spec, err := o.spec(c)
			if err != nil {
				return err
			}
			spec.Topics = []string{args[0]}
			return o.run(a, c, func(ctx context.Context, client *admin.Client) (*admin.SeedPlan, error) {
				return client.PlanSeed(ctx, spec)
			})
		},
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringArrayVar(&o.targets, "target", nil, "broker that gets the topic; may be repeated")
		f.StringVar(&o.source, "source", "", "broker whose configuration of the topic it gets (default: the first that has it)")
	})
	o.addQueues(c)
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.BoolVar(&o.static, "static", false, "a static topic: the targets lead its queues from then on, and no other broker")
	})
	o.output.add(c)
	o.safety.add(c, false)
	return c
}

func newBrokerSeedCmd(a *app) *cobra.Command {
	o := &seedOptions{}
	c := &cobra.Command{
		Use:   "seed BROKER",
		Short: "Give a new broker the groups of its cluster, and topics",
		Long: `Use it after mqx admin cluster join-check. The broker gets all groups of the source, and
the topics that are named, in the order that loses nothing: groups, topics that nobody
sees yet, offset 0 for every group that reads them, their permission, the configuration of
ordered topics. What it has already stays as it is.`,
		Example: `  mqx admin broker seed broker-c --source broker-a --dry-run
  mqx admin broker seed broker-c -t ORDERS -t AUDIT --yes
  mqx admin broker seed broker-c --all-topics --plan-out seed.json`,
		Args: exactArgs("BROKER"),
		RunE: func(c *cobra.Command, args []string) error {
			if o.allTopics && len(o.topics) > 0 {
				return usagef("cannot use --all-topics with --topic: it names all of them").try("--all-topics")
			}
			spec, err := o.spec(c)
			if err != nil {
				return err
			}
			spec.Groups, spec.Topics, spec.Targets = true, o.topics, []string{args[0]}
			return o.run(a, c, func(ctx context.Context, client *admin.Client) (*admin.SeedPlan, error) {
				if o.allTopics {
					var err error
					if spec.Topics, err = client.SeedTopics(ctx, spec); err != nil {
						return nil, err
					}
				}
				return client.PlanSeed(ctx, spec)
			})
		},
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVar(&o.source, "source", "", "broker that it is taken from (default: the others of the cluster)")
		f.StringArrayVarP(&o.topics, "topic", "t", nil, "topic that it gets; may be repeated")
		f.BoolVar(&o.allTopics, "all-topics", false, "all topics of the source but the ordered ones")
	})
	o.addQueues(c)
	o.output.add(c)
	o.safety.add(c, false)
	return c
}

func (o *seedOptions) spec(c *cobra.Command) (admin.SeedSpec, error) {
	spec := admin.SeedSpec{Targets: o.targets, Source: o.source, ReadQueues: o.queues, WriteQueues: o.queues, RemapKeys: o.remap}
	for _, q := range []struct {
		flag  string
		value int
	}{{"queues", o.queues}, {"read-queues", o.readQueues}} {
		if c.Flags().Changed(q.flag) && q.value < 1 {
			return spec, usagef("cannot use --%s %d: it must be at least 1", q.flag, q.value).because("a queue is what messages are in").try("--%s 4", q.flag)
		}
	}
	if o.readQueues > 0 {
		spec.ReadQueues = o.readQueues
	}
	return spec, nil
}

func (o *seedOptions) run(a *app, c *cobra.Command, plan func(context.Context, *admin.Client) (*admin.SeedPlan, error)) error {
	t := &change{app: a, cmd: c, target: &o.target, output: &o.output, safety: &o.safety}
	return t.run(func(ctx context.Context, client *admin.Client) ([]admin.Plan, error) {
		p, err := plan(ctx, client)
		if remap, ok := errors.AsType[*admin.RemapError](err); ok {
			return nil, failf(ExitCheckFailed, "cannot spread topic %s: it is ordered", remap.Topic).because(remap.Error()).
				try("mqx admin queue migrate, which keeps the order, or --remap-keys when its order may break once")
		}
		if err != nil {
			return nil, err
		}
		return []admin.Plan{p}, nil
	})
}
