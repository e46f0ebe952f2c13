package cmd

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
)

// roleOptions are the flags of mqx admin ha promote, demote and resync.
type roleOptions struct {
	changeFlags
	spec     admin.RoleSpec
	noMaster bool
}

func newHAPromoteCmd(a *app) *cobra.Command {
	o := &roleOptions{spec: admin.RoleSpec{Verb: "promote"}}
	c := &cobra.Command{
		Use:   "promote BROKER",
		Short: "Make a slave the master of its group",
		Long: `BROKER is the address of a slave of mqx, or a broker name: then it is the slave with the
longest log. A slave that has less of the log than another one is not promoted.

While the old master runs, it takes no messages until the slave has everything, and becomes
a slave itself: nothing is lost. One that does not answer may still take messages somewhere:
stop it for good, then say --master-gone. What it had not sent is cut when it comes back, and
kept (mqx admin ha demote, mqx admin ha salvage).

The group's epoch goes up. Name servers let the higher epoch be the master: the old one, when
it comes back, sees that and takes no messages. The brokers start themselves anew with their
new roles, which closes their ports for about a second, and write them into their
configuration files.`,
		Example: `  mqx admin ha promote broker-a --dry-run
  mqx admin ha promote 10.0.0.2:10911 --yes
  mqx admin ha promote broker-a --master-gone --yes`,
		Args:              exactArgs("BROKER"),
		ValidArgsFunction: completeBrokers(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			if r := o.spec.Role; r != "" && r != "ASYNC_MASTER" && r != "SYNC_MASTER" {
				return notOneOf("--role", r, "ASYNC_MASTER", "SYNC_MASTER")
			}
			return o.change(a, c, args[0])
		},
	}
	o.add(a, c, false, false)
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.StringVar(&o.spec.Role, "role", "", "brokerRole of the new master: ASYNC_MASTER or SYNC_MASTER (default: that of the old one)")
		f.Int64Var(&o.spec.ID, "old-id", 0, "id of the old master as a slave (default: the one that the new master had)")
		f.BoolVar(&o.spec.MasterGone, "master-gone", false, "the old master is stopped and will not come back as one")
		f.BoolVar(&o.spec.Shorter, "shorter", false, "promote it although another slave has more of the log")
	})
	return c
}

func newHADemoteCmd(a *app) *cobra.Command {
	o := &roleOptions{spec: admin.RoleSpec{Verb: "demote"}}
	c := &cobra.Command{
		Use:   "demote ADDRESS",
		Short: "Make a master that has been replaced a slave of the new one",
		Long: `ADDRESS is that of the old master. Its log is compared with that of the new master and cut
where they part; what is cut is kept (mqx admin ha salvage), and queues, index, timer files
and offsets are cut with it. Where they have no record in common the whole log goes.`,
		Example: `  mqx admin ha demote 10.0.0.1:10911 --dry-run
  mqx admin ha demote 10.0.0.1:10911 --id 2 --yes`,
		Args: exactArgs("ADDRESS"),
		RunE: func(c *cobra.Command, args []string) error {
			o.spec.Shorter = o.noMaster
			return o.change(a, c, args[0])
		},
	}
	o.add(a, c, false, false)
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.Int64Var(&o.spec.ID, "id", 0, "its id as a slave (default: the lowest that is free)")
		f.BoolVar(&o.noMaster, "no-master", false, "demote it although its group has no other master then")
	})
	o.addWipe(c)
	return c
}

func newHAResyncCmd(a *app) *cobra.Command {
	o := &roleOptions{spec: admin.RoleSpec{Verb: "resync"}}
	c := &cobra.Command{
		Use:   "resync ADDRESS",
		Short: "Mend a slave whose log has parted from its master's",
		Long: `ADDRESS is that of the slave: one that mqx admin ha status shows as parted, ahead or behind.
Its log is compared with its master's and cut where they part; what is cut is kept first
(mqx admin ha salvage), and queues, index, timer files and offsets are cut with it. Where
they have no record in common, or with --wipe, the whole log goes and is copied again.`,
		Example: `  mqx admin ha resync 10.0.0.2:10911 --dry-run
  mqx admin ha resync 10.0.0.2:10911 --yes
  mqx admin ha resync 10.0.0.2:10911 --wipe --yes`,
		Args: exactArgs("ADDRESS"),
		RunE: func(c *cobra.Command, args []string) error { return o.change(a, c, args[0]) },
	}
	o.add(a, c, false, false)
	o.addWipe(c)
	return c
}

func (o *roleOptions) addWipe(c *cobra.Command) {
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.BoolVar(&o.spec.Wipe, "wipe", false, "take the whole log anew, whatever is the same")
		f.BoolVar(&o.spec.Discard, "discard", false, "remove a whole log instead of keeping it in mqx/salvage")
	})
}

func (o *roleOptions) change(a *app, c *cobra.Command, broker string) error {
	o.spec.Broker = broker
	if err := o.output.check(); err != nil {
		return err
	}
	plan := func(ctx context.Context, client *admin.Client) ([]admin.Plan, error) {
		return onePlan(client.PlanRole(ctx, o.spec))
	}
	return (&change{app: a, cmd: c, target: &o.target, output: &o.output, safety: &o.safety, long: true}).run(plan)
}
