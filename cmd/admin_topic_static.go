package cmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
)

// createStatic makes a static topic, or gives one more queues.
func (o *changeTopicOptions) createStatic(a *app, c *cobra.Command, topic string) error {
	if anyOf(c, "read-queues", "write-queues", "perm", "order", "attribute") || !c.Flags().Changed("queues") {
		return usagef("cannot make static topic %q: it takes --queues and no other setting", topic).because("its queues are read and written, and shared out over the brokers").try("--static --queues 8")
	}
	all := &changeFlags{target: o.target, output: o.output, safety: o.safety}
	return all.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
		return client.PlanStatic(ctx, admin.Target{Cluster: o.cluster}, commaList(o.broker), topic, o.queues)
	})
}

// remapStatic shares the queues of a static topic out anew.
func (o *seedOptions) remapStatic(a *app, c *cobra.Command, topic string) error {
	if anyOf(c, "queues", "read-queues", "remap-keys", "source") {
		return usagef("cannot use --static together with --queues, --read-queues, --remap-keys or --source").because("the queues of a static topic stay as many as they are").try("--static --target broker-c")
	}
	all := &changeFlags{target: o.target, output: o.output, safety: o.safety}
	return all.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
		return client.PlanStaticRemap(ctx, admin.Target{}, o.targets, topic)
	})
}

func newMqadminStaticCmds(a *app) []*cobra.Command {
	return []*cobra.Command{
		newMqadminStatic(a, "updateStaticTopic", "Update or create static topic, which has fixed number of queues", "mqx admin topic create TOPIC --static --queues N", false),
		newMqadminStatic(a, "remappingStaticTopic", "Remapping static topic", "mqx admin topic spread TOPIC --static --target BROKER", true),
	}
}

// apacheStatic are the options of both commands.
type apacheStatic struct {
	topic, clusters, brokers, file, force string
	queues                                int
}

func newMqadminStatic(a *app, name, short, ours string, remap bool) *cobra.Command {
	s := &apacheStatic{}
	required := []string{"topic", "clusters|brokers"}
	if !remap {
		required = append(required, "totalQueueNum|qn")
	}
	return mqadminCmd(a, name, short, ours, true, required,
		func(f *pflag.FlagSet) {
			f.StringVarP(&s.clusters, "clusters", "c", "", "remapping static topic to clusters, comma separated")
			f.StringVarP(&s.brokers, "brokers", "b", "", "remapping static topic to brokers, comma separated")
			f.StringVarP(&s.topic, "topic", "t", "", "topic name")
			for _, alias := range []string{"mapFile", "mf"} {
				f.StringVar(&s.file, alias, "", "refused: Apache's tool does not read it; mqx admin plan apply FILE goes on with a change")
			}
			for _, alias := range []string{"forceReplace", "fr"} {
				f.StringVar(&s.force, alias, "", "refused when true: Apache's tool does not force without a file")
			}
			if !remap {
				for _, alias := range []string{"totalQueueNum", "qn"} {
					f.IntVar(&s.queues, alias, 0, "total queue num")
				}
			}
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			return s.run(ctx, a, c, o, client, remap)
		})
}

func (s *apacheStatic) run(ctx context.Context, a *app, c *cobra.Command, o *mqadminOptions, client *admin.Client, remap bool) error {
	switch {
	case s.file != "":
		return usagef("cannot use --mapFile %q: such a file is not read", s.file).because("Apache's tool does not read it either").try("mqx admin plan apply FILE, with what this command has written")
	case strings.EqualFold(s.force, "true"):
		return usagef("cannot use --forceReplace: a mapping that contradicts the old one is not written").try("mqx admin topic rm, and a new topic")
	case len(commaList(s.clusters)) > 1:
		return usagef("cannot use --clusters %q: a static topic belongs to one cluster", s.clusters).try("-c DefaultCluster")
	}
	on, targets := admin.Target{Cluster: strings.Join(commaList(s.clusters), "")}, commaList(s.brokers)
	done, err := a.mqadminChange(ctx, c, o, client, func() (admin.Plan, error) {
		var p *admin.StaticPlan
		var err error
		if remap {
			p, err = client.PlanStaticRemap(ctx, on, targets, s.topic)
		} else {
			p, err = client.PlanStatic(ctx, on, targets, s.topic, s.queues)
		}
		if err != nil || admin.Idle(p) {
			return p, err
		}
		// What was begun must be gone on with: the plan is kept before anything is done.
		o.safety.planOut = filepath.Join(os.TempDir(), fmt.Sprintf("%s-%d.plan.json", s.topic, time.Now().UnixMilli()))
		t := &change{app: a, cmd: c, target: &o.target, safety: &o.safety}
		if err := t.save([]admin.Plan{p}); err != nil {
			return nil, err
		}
		return p, a.printf("The old and the new mapping data is written to file %s\n", o.safety.planOut)
	})
	if err != nil {
		return err
	}
	return a.partial(targetProblems(done.errs))
}
