package cmd

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/bundle"
	"mqx/internal/contexts"
	"mqx/internal/render"
)

// setConfigOptions are the flags of mqx admin config set.
type setConfigOptions struct {
	changeFlags
	servers configServers
	all     bool
}

func newConfigSetCmd(a *app) *cobra.Command {
	o := &setConfigOptions{}
	c := &cobra.Command{
		Use:   "set KEY=VALUE...",
		Short: "Change keys of the configuration of running servers",
		Long: `Only the keys that are named change. What comes back says of each whether it is
active now or after a restart, and where the server has written it down: mqx's
servers say so themselves, of Apache's it is what is known of the key. Apache's
servers write their whole configuration into the file, comments are lost there.

The value of a password, key or token is given by where it is found: env:NAME,
file:PATH or cmd:COMMAND. It is shown nowhere and written down nowhere, so that such
a change can be neither saved as a plan nor taken back.`,
		Example: `  mqx admin config set -b broker-b fileReservedTime=24
  mqx admin config set -b broker-b initAuthenticationUser=file:/run/secrets/init --yes
  mqx admin config set -c DefaultCluster --replicas brokerPermission=4 --dry-run
  mqx admin config set --nameservers enableTopicList=false --yes
  mqx admin config set --controller 10.0.0.1:9878 scanNotActiveBrokerInterval=3000 --yes`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error { return o.set(a, c, args) },
	}
	o.add(a, c, false, false)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.servers.add(f)
		f.BoolVar(&o.all, "replicas", false, "of the brokers, slaves too")
	})
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

func (o *setConfigOptions) set(a *app, c *cobra.Command, args []string) error {
	if err := o.servers.check(); err != nil {
		return err
	}
	values := map[string]string{}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			return usagef("cannot read %q: it has the form KEY=VALUE", arg).try("mqx admin config set fileReservedTime=24")
		}
		if _, twice := values[key]; twice {
			return usagef("cannot set %s: it is given twice", key)
		}
		value = strings.TrimSpace(value)
		if bundle.IsSecret(key, value) {
			var err error
			if value, err = o.secret(a, c, key, value); err != nil {
				return err
			}
		}
		values[key] = value
	}
	if len(values) == 0 {
		return usagef("cannot run %q: KEY=VALUE is missing", c.CommandPath()).try("mqx admin config set fileReservedTime=24")
	}
	at := admin.ConfigPlace{All: o.all}
	switch {
	case o.servers.nameServers:
		at.NameServers = true
	case o.servers.controllers != "":
		at.Controllers = addressList(o.servers.controllers)
	default:
		at.Brokers = &admin.Target{Cluster: o.servers.cluster, Broker: o.servers.broker}
	}
	return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
		p, err := client.PlanConfig(ctx, at, values)
		if err != nil {
			return nil, err
		}
		return p, nil
	})
}

// secret reads the value of a key that is called as secrets are from where it is said to
// be found: a value on the command line is seen by everybody on the machine.
func (o *setConfigOptions) secret(a *app, c *cobra.Command, key, from string) (string, error) {
	source, err := contexts.ParseSource(from)
	if err != nil {
		return "", usagef("cannot take the value of %s from the command line: everybody on this machine sees it there", key).
			because("a secret is env:NAME, file:PATH or cmd:COMMAND; text:VALUE where it is none").try("mqx admin config set %s=env:NAME", key)
	}
	if o.safety.planOut != "" {
		return "", usagef("cannot use --plan-out with %s: a plan does not hold secrets", key).try("--dry-run")
	}
	return a.secret(c.Context(), chosen[contexts.Source]{source, key})
}

var configDiffSchema = render.Schema{Kind: "ConfigDiffList", Name: "key", Fields: []render.Field{
	{Name: "key", Whole: true, Doc: "key of which servers have different values"},
	{Name: "broker", Title: "SERVER", Doc: "name of a broker; unknown for other servers"},
	{Name: "addr", Title: "ADDRESS", Whole: true, Doc: "its address"},
	{Name: "value", Doc: "its value; unknown where the server does not have the key"},
	{Name: "same", Kind: render.Int, Doc: "servers that have this value"},
}}

// ownKeys are keys in which servers differ because they are different servers.
var ownKeys = map[string]bool{
	"brokerName": true, "brokerId": true, "brokerIP1": true, "brokerIP2": true, "listenPort": true, "haListenPort": true, "storePathRootDir": true,
	"storePathCommitLog": true, "storePathConsumeQueue": true, "storePathIndex": true, "storeCheckpoint": true, "abortFile": true,
	"brokerConfigPath": true, "haMasterAddress": true, "brokerRole": true, "rocketmqHome": true, "configStorePath": true, "kvConfigPath": true,
	"storePathDLedgerCommitLog": true, "storePathEpochFile": true, "bindAddress": true, "startAcceptSendRequestTimeStamp": true, "storePathBrokerIdentity": true,
	"dLegerSelfId": true, "controllerDLegerSelfId": true, "controllerStorePath": true, "brokerIdentity": true, "clusterName": false, "configPath": true,
}

// diffConfigOptions are the flags of mqx admin config diff.
type diffConfigOptions struct {
	target  targetFlags
	output  outputFlags
	servers configServers
	all     bool
}

func newConfigDiffCmd(a *app) *cobra.Command {
	o := &diffConfigOptions{}
	c := &cobra.Command{
		Use:   "diff [BROKER...]",
		Short: "Show the keys of which running servers have different values",
		Long: `Compares the brokers that are named, by name or address; without any, all of a
cluster, slaves too; or all name servers, or controllers. Keys that are other ones on
every server (names, addresses, paths) are left out without --all. Exit code 6 when
there is a difference.`,
		Example: `  mqx admin config diff -c DefaultCluster
  mqx admin config diff broker-a broker-b --match 'key~^flush'
  mqx admin config diff --nameservers -o json`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return completeBrokers(a, &o.target)(c, args, prefix)
		},
		RunE: func(c *cobra.Command, args []string) error { return o.diff(a, c, args) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVarP(&o.servers.cluster, "cluster", "c", "", "the brokers of this cluster")
		f.BoolVar(&o.servers.nameServers, "nameservers", false, "the name servers in place of the brokers")
		f.StringVar(&o.servers.controllers, "controller", "", "the controllers at these addresses, ; between them, in place of the brokers")
	})
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.BoolVar(&o.all, "all", false, "keys too that are other ones on every server")
	})
	o.output.addRows(c)
	o.output.add(c)
	return c
}

func (o *diffConfigOptions) diff(a *app, c *cobra.Command, names []string) error {
	if err := o.servers.check(); err != nil {
		return err
	}
	if len(names) > 0 && (o.servers.nameServers || o.servers.controllers != "" || o.servers.cluster != "") {
		return usagef("cannot compare brokers by name together with --cluster, --nameservers or --controller").try("mqx admin config diff %s", strings.Join(names, " "))
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	found := false
	err = a.list(c, &o.output, configDiffSchema, func(ctx context.Context, w *render.Writer) (problems, error) {
		configs, errs, err := o.read(ctx, client, names)
		if err != nil {
			return nil, err
		}
		if err := allFailed(len(configs), errs); err != nil {
			return nil, err
		}
		if len(configs)+len(errs) < 2 {
			return nil, usagef("cannot compare: there is one server").try("mqx admin config get")
		}
		for _, row := range diffRows(configs, o.all) {
			found = true
			if err := w.Row(row...); err != nil {
				return nil, err
			}
		}
		return targetProblems(errs), nil
	})
	if err == nil && found {
		return silentError{ExitCheckFailed}
	}
	return err
}

func (o *diffConfigOptions) read(ctx context.Context, client *admin.Client, names []string) ([]admin.ServerConfig, []admin.TargetError, error) {
	if len(names) == 0 {
		return o.servers.read(ctx, client)
	}
	var all []admin.ServerConfig
	var missing []admin.TargetError
	for _, n := range names {
		configs, errs, err := client.BrokerConfigs(ctx, admin.Target{Broker: n}, false)
		if err != nil {
			return nil, nil, err
		}
		all, missing = append(all, configs...), append(missing, errs...)
	}
	return all, missing, nil
}

// diffRows are the rows of keys of which not all servers have the same value.
func diffRows(configs []admin.ServerConfig, all bool) [][]any {
	keys := map[string]bool{}
	for i := range configs {
		for k := range configs[i].Values {
			keys[k] = true
		}
	}
	var rows [][]any
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if ownKeys[key] && !all {
			continue
		}
		count := map[string]int{}
		missing := 0
		for i := range configs {
			if v, ok := configs[i].Values[key]; ok {
				count[v]++
			} else {
				missing++
			}
		}
		if len(count) == 1 && missing == 0 {
			continue
		}
		for i := range configs {
			s := &configs[i]
			if v, ok := s.Values[key]; ok {
				rows = append(rows, []any{key, orUnknown(s.Name), s.Addr, shownValue(key, v), count[v]})
			} else {
				rows = append(rows, []any{key, orUnknown(s.Name), s.Addr, nil, missing})
			}
		}
	}
	return rows
}
