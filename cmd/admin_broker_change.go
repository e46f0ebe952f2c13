package cmd

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
)

// setBrokerOptions are the flags of mqx admin broker set.
type setBrokerOptions struct {
	changeFlags
	writable    bool
	cold        string
	readAhead   string
	timerEngine string
	flushOffset int64
}

var brokerSettings = []string{"writable", "cold-limit", "read-ahead", "timer-engine", "master-flush-offset"}

func newBrokerSetCmd(a *app) *cobra.Command {
	o := &setBrokerOptions{}
	c := &cobra.Command{
		Use:   "set BROKER",
		Short: "Change how a broker is used: write permission, cold reads, read ahead, timer engine",
		Long: `One setting at a time. Its configuration is another thing: mqx admin config set.

--writable takes the write permission out of the routes of all name servers, or gives
it back. That does not last: it ends when the broker registers a change of its topics
or starts again, or when the name server does. What lasts is
mqx admin config set -b BROKER brokerPermission=4.

--cold-limit GROUP=BYTES limits how much old data a group may read in a second,
GROUP= takes the limit away.`,
		Example: `  mqx admin broker set broker-a --writable=false
  mqx admin broker set broker-a --cold-limit billing=8388608 --yes
  mqx admin broker set broker-a --read-ahead random --dry-run`,
		Args:              exactArgs("BROKER"),
		ValidArgsFunction: completeBrokers(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return o.set(a, c, args[0]) },
	}
	o.add(a, c, false, false)
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.BoolVar(&o.writable, "writable", true, "the write permission at the name servers; --writable=false takes it away")
		f.StringVar(&o.cold, "cold-limit", "", "bytes of old data a second for a group, as GROUP=BYTES; GROUP= for none")
		f.StringVar(&o.readAhead, "read-ahead", "", "how the kernel reads ahead in the commit log: normal or random")
		f.StringVar(&o.timerEngine, "timer-engine", "", "what timer messages are kept in: wheel or rocksdb")
		f.Int64Var(&o.flushOffset, "master-flush-offset", 0, "tell a slave how far its master has flushed")
	})
	return c
}

func (o *setBrokerOptions) set(a *app, c *cobra.Command, broker string) error {
	given := slices.DeleteFunc(slices.Clone(brokerSettings), func(f string) bool { return !c.Flags().Changed(f) })
	if len(given) != 1 {
		return usagef("cannot change broker %q: one of --%s is to be given, and one alone", broker, strings.Join(brokerSettings, ", --")).try("--writable=false")
	}
	plan, err := o.plan(given[0], broker)
	if err != nil {
		return err
	}
	return o.run(a, c, plan)
}

type planOne func(ctx context.Context, client *admin.Client) (admin.Plan, error)

func (o *setBrokerOptions) plan(setting, broker string) (planOne, error) {
	on := admin.Target{Broker: broker}
	switch setting {
	case "writable":
		if _, _, err := net.SplitHostPort(broker); err == nil {
			return nil, usagef("cannot use address %q: the routes have brokers by name", broker).try("mqx admin broker ls")
		}
		return func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
			return client.PlanWritable(ctx, broker, o.writable)
		}, nil
	case "cold-limit":
		group, limit, err := parseColdLimit(o.cold)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
			return client.PlanColdLimit(ctx, on, group, limit)
		}, nil
	case "read-ahead":
		mode, ok := map[string]string{"normal": admin.ReadAheadNormal, "random": admin.ReadAheadRandom}[o.readAhead]
		if !ok {
			return nil, notOneOf("--read-ahead", o.readAhead, "normal", "random")
		}
		return func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
			return client.PlanReadAhead(ctx, on, mode)
		}, nil
	case "timer-engine":
		engine, ok := map[string]string{"wheel": admin.TimerWheel, "rocksdb": admin.TimerRocksDB}[o.timerEngine]
		if !ok {
			return nil, notOneOf("--timer-engine", o.timerEngine, "wheel", "rocksdb")
		}
		return func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
			return client.PlanTimerEngine(ctx, on, engine)
		}, nil
	}
	if _, _, err := net.SplitHostPort(broker); err != nil {
		return nil, usagef("cannot use broker %q with --master-flush-offset: a slave is named by its address", broker).try("mqx admin broker ls")
	}
	return func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
		return client.PlanMasterFlushOffset(ctx, broker, o.flushOffset)
	}, nil
}

// parseColdLimit reads GROUP=BYTES; a nil limit is none.
func parseColdLimit(text string) (group string, limit *int64, err error) {
	group, value, ok := strings.Cut(text, "=")
	if !ok || group == "" {
		return "", nil, usagef("cannot read --cold-limit %q: it has the form GROUP=BYTES", text).try("--cold-limit billing=8388608")
	}
	if value == "" {
		return group, nil, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return "", nil, usagef("cannot use --cold-limit %q: the bytes are a number of 0 or more", text).try("--cold-limit %s=8388608", group)
	}
	return group, &n, nil
}

// purgeOptions are the flags of mqx admin broker purge.
type purgeOptions struct {
	changeFlags
	expired, queues, unused bool
}

func newBrokerPurgeCmd(a *app) *cobra.Command {
	o := &purgeOptions{}
	c := &cobra.Command{
		Use:   "purge BROKER",
		Short: "Delete expired files of a broker now, whatever the hour",
		Long: `--expired deletes files of the commit log that are older than fileReservedTime, which
the broker does by itself at the hour of deleteWhen; what groups have not read of them
is listed. --queues deletes files of consume queues whose messages have gone already.
--unused-topics deletes queues of topics that the broker no longer has. It asks for
the name; there is no way back.`,
		Example: `  mqx admin broker purge broker-b --expired --dry-run
  mqx admin broker purge broker-b --expired --confirm broker-b
  mqx admin broker purge broker-b --unused-topics --confirm broker-b`,
		Args:              exactArgs("BROKER"),
		ValidArgsFunction: completeBrokers(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			var what []admin.Purge
			for _, p := range []struct {
				on   bool
				kind admin.Purge
			}{{o.expired, admin.PurgeExpired}, {o.queues, admin.PurgeQueues}, {o.unused, admin.PurgeUnusedTopics}} {
				if p.on {
					what = append(what, p.kind)
				}
			}
			if len(what) == 0 {
				return usagef("cannot purge broker %q: none of --expired, --queues and --unused-topics is given", args[0]).try("--expired --dry-run")
			}
			return o.runAll(a, c, func(ctx context.Context, client *admin.Client) ([]admin.Plan, error) {
				var plans []admin.Plan
				for _, w := range what {
					p, err := client.PlanPurge(ctx, admin.Target{Broker: args[0]}, w)
					if err != nil {
						return nil, err
					}
					plans = append(plans, p)
				}
				return plans, nil
			})
		},
	}
	o.add(a, c, true, false)
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.BoolVar(&o.expired, "expired", false, "files of the commit log that are older than fileReservedTime")
		f.BoolVar(&o.queues, "queues", false, "files of consume queues whose messages have gone")
		f.BoolVar(&o.unused, "unused-topics", false, "queues of topics that the broker no longer has")
	})
	return c
}

// promoteOptions are the flags of mqx admin broker promote.
type promoteOptions struct {
	controlledOptions
	id int64
}

// controlledOptions are the flags of what a controller does with a broker.
type controlledOptions struct {
	changeFlags
	controller, clusterName string
}

func (o *controlledOptions) add(a *app, c *cobra.Command, destructive bool) {
	o.changeFlags.add(a, c, destructive, false)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVar(&o.controller, "controller", "", "address of the controller that leads")
		f.StringVarP(&o.clusterName, "cluster", "c", "", "cluster of the broker")
	})
}

func newBrokerPromoteCmd(a *app) *cobra.Command {
	o := &promoteOptions{}
	c := &cobra.Command{
		Use:   "promote BROKER",
		Short: "Let a controller make a replica the master of its name",
		Example: `  mqx admin broker promote broker-a --id 2 -c DefaultCluster --controller 10.0.0.1:9878
  mqx admin broker promote broker-a --id 2 -c DefaultCluster --controller 10.0.0.1:9878 --yes`,
		Args:              exactArgs("BROKER"),
		ValidArgsFunction: completeBrokers(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			if o.controller == "" || o.clusterName == "" || !c.Flags().Changed("id") {
				return usagef("cannot run %q: --controller, --cluster and --id are needed", c.CommandPath()).try("--id 2 -c DefaultCluster --controller 10.0.0.1:9878")
			}
			return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
				return client.PlanElectMaster(ctx, o.controller, o.clusterName, args[0], o.id)
			})
		},
	}
	o.add(a, c, false)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.Int64Var(&o.id, "id", 0, "id of the replica that becomes the master, as the controller has it")
	})
	return c
}

// containerOptions are the flags of mqx admin broker create and rm.
type containerOptions struct {
	changeFlags
	container, config, clusterName string
	id                             int64
}

func (o *containerOptions) add(a *app, c *cobra.Command, destructive bool) {
	o.long = true // the container answers when the broker has started, or stopped
	o.changeFlags.add(a, c, destructive, false)
	grouped(c, groupTarget, func(f *pflag.FlagSet) { f.StringVar(&o.container, "container", "", "address of the container") })
}

func newBrokerCreateCmd(a *app) *cobra.Command {
	o := &containerOptions{}
	c := &cobra.Command{
		Use:   "create",
		Short: "Let a broker container start a broker",
		Long: `The configuration file is one on the machine of the container. A broker of its own
process is started there: mqx broker start.`,
		Example: `  mqx admin broker create --container 10.0.0.5:10811 --broker-config /etc/rocketmq/broker-b.conf --yes`,
		Args:    exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if o.container == "" || o.config == "" {
				return usagef("cannot run %q: --container and --broker-config are needed", c.CommandPath()).try("--container 10.0.0.5:10811 --broker-config /etc/rocketmq/broker-b.conf")
			}
			return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
				return client.PlanAddBroker(ctx, o.container, o.config)
			})
		},
	}
	o.add(a, c, false)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVar(&o.config, "broker-config", "", "configuration file of the broker, on the container's machine")
	})
	return c
}

func newBrokerRmCmd(a *app) *cobra.Command {
	o := &containerOptions{}
	c := &cobra.Command{
		Use:   "rm BROKER",
		Short: "Let a broker container stop a broker",
		Long: `The broker stops and is not started again with the container; its store stays. A
broker of its own process is stopped on its machine; what there is to do before is
mqx admin broker retire.`,
		Example: `  mqx admin broker rm broker-b --id 0 -c DefaultCluster --container 10.0.0.5:10811 --confirm broker-b`,
		Args:    exactArgs("BROKER"),
		RunE: func(c *cobra.Command, args []string) error {
			if o.container == "" || o.clusterName == "" || !c.Flags().Changed("id") {
				return usagef("cannot run %q: --container, --cluster and --id are needed", c.CommandPath()).try("--id 0 -c DefaultCluster --container 10.0.0.5:10811")
			}
			return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
				return client.PlanRemoveBroker(ctx, o.container, o.clusterName, args[0], o.id)
			})
		},
	}
	o.add(a, c, true)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVarP(&o.clusterName, "cluster", "c", "", "cluster of the broker")
		f.Int64Var(&o.id, "id", 0, "id of the broker, 0 is the master")
	})
	return c
}

// exportBrokerOptions are the flags of mqx admin broker export.
type exportBrokerOptions struct {
	changeFlags
	popRecords bool
	rocksdb    []string
}

func newBrokerExportCmd(a *app) *cobra.Command {
	o := &exportBrokerOptions{}
	c := &cobra.Command{
		Use:   "export BROKER",
		Short: "Let a broker write out what it keeps in RocksDB",
		Long: `--pop-records brings the pop records in RocksDB back into the log, as before a broker
goes on without RocksDB. --rocksdb-config writes topics, groups or offsets as JSON files
into the broker's store. A broker that keeps nothing in RocksDB does nothing, or says so.`,
		Example: `  mqx admin broker export broker-a --pop-records --yes
  mqx admin broker export broker-a --rocksdb-config topics --rocksdb-config consumerOffsets --yes`,
		Args:              exactArgs("BROKER"),
		ValidArgsFunction: completeBrokers(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			if o.popRecords == (len(o.rocksdb) > 0) {
				return usagef("cannot export from broker %q: one of --pop-records and --rocksdb-config is to be given", args[0]).try("--pop-records")
			}
			if err := checkRocksDBTypes(o.rocksdb); err != nil {
				return err
			}
			on := admin.Target{Broker: args[0]}
			return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
				if o.popRecords {
					return client.PlanPopRecords(ctx, on)
				}
				return client.PlanRocksDBToJSON(ctx, on, o.rocksdb)
			})
		},
	}
	o.add(a, c, false, false)
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.BoolVar(&o.popRecords, "pop-records", false, "bring pop records from RocksDB back into the log")
		f.StringArrayVar(&o.rocksdb, "rocksdb-config", nil, "write topics, subscriptionGroups or consumerOffsets as JSON; may be repeated")
	})
	return c
}

var rocksDBTypes = []string{"topics", "subscriptionGroups", "consumerOffsets"}

func checkRocksDBTypes(types []string) error {
	for _, t := range types {
		if !slices.Contains(rocksDBTypes, t) {
			return notOneOf("--rocksdb-config", t, rocksDBTypes...)
		}
	}
	return nil
}

// purgeControllerOptions are the flags of mqx admin controller purge.
type purgeControllerOptions struct {
	controlledOptions
	ids    []string
	living bool
}

func newControllerPurgeCmd(a *app) *cobra.Command {
	o := &purgeControllerOptions{}
	c := &cobra.Command{
		Use:   "purge BROKER",
		Short: "Let a controller forget the metadata of a broker",
		Long: `With --id it forgets those replicas, which must not be alive: they would come back. Without it
the name goes with all its replicas, which the controller does only while it has no master for
it, or with --living. What would go is listed, and read back.`,
		Example: `  mqx admin controller purge broker-a -c DefaultCluster --id 3 --controller 10.0.0.1:9878 --confirm broker-a
  mqx admin controller purge broker-a --living --controller 10.0.0.1:9878 --dry-run`,
		Args: exactArgs("BROKER"),
		RunE: func(c *cobra.Command, args []string) error {
			if o.controller == "" || o.clusterName == "" && !o.living {
				return usagef("cannot run %q: --controller and --cluster are needed", c.CommandPath()).try("-c DefaultCluster --controller 10.0.0.1:9878")
			}
			if o.living && len(o.ids) > 0 {
				return usagef("cannot use --id with --living: the controller would forget all replicas of the name").try("--id alone, once the replica is stopped")
			}
			return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
				return client.PlanCleanBroker(ctx, o.controller, o.clusterName, args[0], strings.Join(o.ids, ";"), o.living)
			})
		},
	}
	o.add(a, c, true)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.ids, "id", nil, "forget the replica with this id only, which is not alive; may be repeated")
		f.BoolVar(&o.living, "living", false, "the name with all its replicas, although it has a master")
	})
	return c
}
