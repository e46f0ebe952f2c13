package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/remoting"
)

// groupOptions are the flags of mqx admin group create and set.
type groupOptions struct {
	changeFlags
	consume, fromMin, broadcast, order, notify bool
	retryQueues, retries, timeoutMinutes       int32
	readBroker, slowBroker                     int64
	policy                                     string
	attributes                                 []string

	file string // of create

	topic, mode  string // of set
	share        int32
	dispatchLite bool
	clientID     string
}

var groupFlags = []string{
	"consume", "from-min", "broadcast", "ordered", "notify", "retry-queues", "retries", "timeout-minutes",
	"read-broker", "slow-broker", "retry-policy", "attribute",
}

func (o *groupOptions) addConfig(c *cobra.Command) {
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.BoolVar(&o.consume, "consume", true, "members get messages; --consume=false stops the group")
		f.BoolVar(&o.fromMin, "from-min", false, "a new queue is read from its first message on")
		f.BoolVar(&o.broadcast, "broadcast", false, "members may read in broadcast mode")
		f.BoolVar(&o.order, "ordered", false, "pop hands messages out in their order")
		f.BoolVar(&o.notify, "notify", true, "members are told when others come and go")
		f.Int32Var(&o.retryQueues, "retry-queues", 1, "queues of the retry topic")
		f.Int32Var(&o.retries, "retries", 16, "deliveries after the first, before a message becomes a dead letter")
		f.Int32Var(&o.timeoutMinutes, "timeout-minutes", 15, "time a member may take for a message")
		f.Int64Var(&o.readBroker, "read-broker", 0, "broker id to read from, 0 is the master")
		f.Int64Var(&o.slowBroker, "slow-broker", 1, "broker id to read from when the group is slow")
		f.StringVar(&o.policy, "retry-policy", "", `times between deliveries as JSON: {"type":"EXPONENTIAL","exponentialRetryPolicy":{"initial":5000,"max":7200000,"multiplier":2}} or {"type":"CUSTOMIZED","customizedRetryPolicy":{"next":[1000,5000]}}`)
		f.StringArrayVar(&o.attributes, "attribute", nil, "attribute as +name=value, or -name to remove it; may be repeated")
	})
}

// spec is the group that the flags ask for.
func (o *groupOptions) spec(c *cobra.Command, name string) (admin.GroupSpec, error) {
	s := admin.GroupSpec{
		Name: name, Consume: given(c, "consume", o.consume), FromMin: given(c, "from-min", o.fromMin), Broadcast: given(c, "broadcast", o.broadcast),
		Order: given(c, "ordered", o.order), Notify: given(c, "notify", o.notify), RetryQueues: given(c, "retry-queues", o.retryQueues),
		Retries: given(c, "retries", o.retries), TimeoutMinutes: given(c, "timeout-minutes", o.timeoutMinutes),
		ReadBroker: given(c, "read-broker", o.readBroker), SlowBroker: given(c, "slow-broker", o.slowBroker),
	}
	for _, n := range []struct {
		flag  string
		value *int32
		least int32
	}{{"retry-queues", s.RetryQueues, 1}, {"retries", s.Retries, -1}, {"timeout-minutes", s.TimeoutMinutes, 1}} {
		if n.value != nil && *n.value < n.least {
			return s, usagef("cannot use --%s %d: it must be at least %d", n.flag, *n.value, n.least)
		}
	}
	if c.Flags().Changed("retry-policy") {
		p, err := parseRetryPolicy(o.policy)
		if err != nil {
			return s, err
		}
		s.Policy = p
	}
	var err error
	s.Attributes, err = readAttributes(o.attributes)
	return s, err
}

// parseRetryPolicy reads a policy as Apache's tool takes it.
func parseRetryPolicy(text string) (*remoting.GroupRetryPolicy, error) {
	p := &remoting.GroupRetryPolicy{}
	if err := decodeOnly([]byte(text), p); err != nil {
		return nil, usagef("cannot read retry policy %q: %w", text, err).try(`'{"type":"CUSTOMIZED","customizedRetryPolicy":{"next":[1000,5000]}}'`)
	}
	switch {
	case p.Type == remoting.RetryExponential && p.CustomizedRetryPolicy == nil, p.Type == remoting.RetryCustomized && p.ExponentialRetryPolicy == nil:
		return p, nil
	}
	return nil, usagef("cannot use retry policy %q: the type is EXPONENTIAL or CUSTOMIZED, with a policy of that type", text)
}

func newGroupCreateCmd(a *app) *cobra.Command {
	o := &groupOptions{}
	c := &cobra.Command{
		Use:   "create GROUP",
		Short: "Create a group, or change what is said of it",
		Long: `Where a broker has the group already, only what is given changes. With --from-file the
groups of a file are made: what mqx admin group export writes, or a list as Apache's
updateSubGroupList takes it.`,
		Example: `  mqx admin group create billing --retries 5 -c DefaultCluster --yes
  mqx admin group create billing --ordered --retry-policy '{"type":"CUSTOMIZED","customizedRetryPolicy":{"next":[1000,5000]}}' --dry-run
  mqx admin group create --from-file groups.json --yes`,
		Args: optionalArg(),
		RunE: func(c *cobra.Command, args []string) error {
			if o.file != "" {
				if len(args) > 0 || anyOf(c, groupFlags...) {
					return usagef("cannot take --from-file together with a group or its settings: the file says it").try("mqx admin group create --from-file %s", o.file)
				}
				return o.importFile(a, c, o.file)
			}
			if len(args) == 0 {
				return usagef("cannot run %q: GROUP is missing", c.CommandPath()).try("mqx admin group create GROUP")
			}
			return o.put(a, c, args[0], false)
		},
	}
	o.add(a, c, false, true)
	o.addConfig(c)
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.StringVar(&o.file, "from-file", "", "make the groups of this file; - is stdin")
	})
	return c
}

func (o *groupOptions) put(a *app, c *cobra.Command, name string, mustExist bool) error {
	spec, err := o.spec(c, name)
	if err != nil {
		return err
	}
	spec.MustExist = mustExist
	return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
		return client.PlanGroup(ctx, o.on(), spec)
	})
}

// importFile makes the groups of a file.
func (o *groupOptions) importFile(a *app, c *cobra.Command, path string) error {
	m, err := a.readMetadata(path)
	if err != nil {
		return err
	}
	if len(m.SubscriptionGroupTable) == 0 {
		return usagef("file %q has no groups", path).try("mqx admin topic create --from-file %s", path)
	}
	m.TopicConfigTable = nil
	return o.runAll(a, c, func(ctx context.Context, client *admin.Client) ([]admin.Plan, error) {
		return client.PlanImport(ctx, o.on(), m)
	})
}

func newGroupSetCmd(a *app) *cobra.Command {
	o := &groupOptions{}
	c := &cobra.Command{
		Use:   "set GROUP",
		Short: "Change a group: only what is given",
		Long: `Changes the configuration of a group that is there. With -t and --mode it says how
the group gets the messages of that topic: by pull, or by pop with so many clients
sharing a queue. With -t and --dispatch-lite the brokers of a parent topic dispatch
its lite topics to the group anew.`,
		Example: `  mqx admin group set billing --consume=false -b broker-a
  mqx admin group set billing --retries 3 --attribute +priority.factor=50 --yes
  mqx admin group set billing -t ORDERS --mode pop --share 3 --yes`,
		Args:              exactArgs("GROUP"),
		ValidArgsFunction: completeGroups(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return o.set(a, c, args[0]) },
	}
	o.add(a, c, false, true)
	o.addConfig(c)
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.StringVarP(&o.topic, "topic", "t", "", "the topic that --mode or --dispatch-lite is about")
		f.StringVar(&o.mode, "mode", "", "how the group gets the messages of --topic: pull or pop")
		f.Int32Var(&o.share, "share", 0, "with --mode pop: clients that share a queue, 0 for all")
		f.BoolVar(&o.dispatchLite, "dispatch-lite", false, "dispatch the lite topics of --topic to the group anew")
		f.StringVar(&o.clientID, "client", "", "with --dispatch-lite: to this client only")
	})
	return c
}

func (o *groupOptions) set(a *app, c *cobra.Command, name string) error {
	switch {
	case o.mode != "" || o.dispatchLite:
		if anyOf(c, groupFlags...) || o.mode != "" && o.dispatchLite {
			return usagef("cannot change the configuration of a group and how it gets a topic at once").try("one command for each")
		}
		if o.topic == "" {
			return usagef("cannot run %q: --topic is missing", c.CommandPath()).try("-t TOPIC")
		}
	case o.topic != "" || c.Flags().Changed("share") || o.clientID != "":
		return usagef("cannot use --topic, --share or --client alone: they say what --mode or --dispatch-lite is about").try("--mode pop")
	case !anyOf(c, groupFlags...):
		return usagef("cannot change group %q: nothing is said to be changed", name).try("mqx admin group set %s --retries 5", name)
	default:
		return o.put(a, c, name, true)
	}
	if o.dispatchLite {
		return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
			return client.PlanLiteDispatch(ctx, o.topic, name, o.clientID, o.broker)
		})
	}
	mode := strings.ToUpper(o.mode)
	if mode != admin.ModePop && mode != admin.ModePull {
		return notOneOf("--mode", o.mode, "pull", "pop")
	}
	if o.share < 0 || o.share > 0 && mode == admin.ModePull {
		return usagef("cannot use --share %d: it is for --mode pop, and 0 or more", o.share)
	}
	return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
		return client.PlanMode(ctx, o.on(), o.topic, name, admin.ModeState{Mode: mode, Share: o.share})
	})
}

func newGroupRmCmd(a *app) *cobra.Command {
	o := &changeFlags{}
	var r admin.GroupRemoval
	c := &cobra.Command{
		Use:   "rm GROUP",
		Short: "Delete a group with its offsets, its retry and its dead letter topic",
		Long: `Lists who is online, what has not been read and what lies in the dead letter topic,
and asks for the name. There is no way back.`,
		Example: `  mqx admin group rm billing --dry-run
  mqx admin group rm billing --confirm billing
  mqx admin group rm billing --keep-offsets --keep-topics -b broker-a --confirm billing`,
		Args:              exactArgs("GROUP"),
		ValidArgsFunction: completeGroups(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
				return client.PlanDeleteGroup(ctx, o.on(), args[0], r)
			})
		},
	}
	o.add(a, c, true, true)
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.BoolVar(&r.KeepOffsets, "keep-offsets", false, "leave the offsets, for when the group is made again")
		f.BoolVar(&r.KeepTopics, "keep-topics", false, "leave the retry and the dead letter topic")
	})
	return c
}

// tableExportOptions are the flags of mqx admin topic export and group export.
type tableExportOptions struct {
	target          targetFlags
	cluster, broker string
	file            string
	special         bool
}

func (o *tableExportOptions) add(a *app, c *cobra.Command) {
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVarP(&o.cluster, "cluster", "c", "", "of this cluster")
		f.StringVarP(&o.broker, "broker", "b", "", "of this broker only, by name or address")
	})
	grouped(c, groupOutput, func(f *pflag.FlagSet) {
		f.StringVarP(&o.file, "output-file", "O", "", "write the document to this file")
	})
	completeFlag(c, "broker", completeBrokers(a, &o.target))
}

func newGroupExportCmd(a *app) *cobra.Command {
	o := &tableExportOptions{}
	c := &cobra.Command{
		Use:   "export",
		Short: "Write the groups of a cluster as a file that another cluster takes",
		Long: `The document is JSON in the form of Apache's exportMetadata; mqx admin group import
takes it. Groups that brokers make for themselves are left out. Where brokers have
different configurations of a group, a line on stderr says so.`,
		Example: `  mqx admin group export -O groups.json
  mqx admin group export -c DefaultCluster | mqx admin group import - --context other`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.exportMetadata(c, &o.target, o.file, admin.Target{Cluster: o.cluster, Broker: o.broker}, admin.ExportOptions{Groups: true})
		},
	}
	o.add(a, c)
	return c
}

func newGroupImportCmd(a *app) *cobra.Command {
	o := &groupOptions{}
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Make the groups of a file",
		Long: `FILE is what mqx admin group export or Apache's exportMetadata writes, or a list of
configurations; - is stdin. Groups that are not in it stay.`,
		Example: `  mqx admin group import groups.json --dry-run
  mqx admin group import groups.json -c DefaultCluster --yes`,
		Args: exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error { return o.importFile(a, c, args[0]) },
	}
	o.add(a, c, false, true)
	return c
}
