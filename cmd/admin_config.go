package cmd

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/bundle"
	"mqx/internal/render"
)

func newConfigCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "config", Aliases: []string{"configs"}, Short: "Configuration of running brokers, name servers and controllers"},
		newConfigGetCmd(a), newConfigSetCmd(a), newConfigDiffCmd(a))
}

var configSchema = render.Schema{Kind: "ConfigList", Name: "key", Fields: []render.Field{
	{Name: "role", Wide: true, Doc: "broker, nameserver or controller"},
	{Name: "cluster", Wide: true, Doc: "cluster of a broker"},
	{Name: "broker", Title: "SERVER", Doc: "name of a broker; unknown for other servers"},
	{Name: "id", Kind: render.Int, Wide: true, Doc: "broker id, 0 is the master; unknown for other servers"},
	{Name: "addr", Title: "ADDRESS", Whole: true, Doc: "its address"},
	{Name: "key", Whole: true, Doc: "key"},
	{Name: "value", Doc: "value as the server writes it"},
}}

// configServers are the flags that say whose configuration is meant.
type configServers struct {
	cluster, broker string
	nameServers     bool
	controllers     string
}

func (s *configServers) add(f *pflag.FlagSet) {
	f.StringVarP(&s.cluster, "cluster", "c", "", "the brokers of this cluster")
	f.StringVarP(&s.broker, "broker", "b", "", "this broker, by name or address")
	f.BoolVar(&s.nameServers, "nameservers", false, "the name servers in place of the brokers")
	f.StringVar(&s.controllers, "controller", "", "the controllers at these addresses, ; between them, in place of the brokers")
}

// check refuses two kinds of servers at once.
func (s *configServers) check() error {
	brokers := s.cluster != "" || s.broker != ""
	if s.nameServers && (brokers || s.controllers != "") || s.controllers != "" && brokers {
		return usagef("cannot take --nameservers, --controller and --broker or --cluster together: one kind of server at a time").try("--nameservers alone")
	}
	return nil
}

// read reads the configurations; those of replicas too where brokers are meant.
func (s *configServers) read(ctx context.Context, client *admin.Client) ([]admin.ServerConfig, []admin.TargetError, error) {
	switch {
	case s.nameServers:
		configs, errs := client.NameServerConfigs(ctx)
		return configs, errs, nil
	case s.controllers != "":
		configs, errs := client.ControllerConfigs(ctx, addressList(s.controllers))
		return configs, errs, nil
	}
	return client.BrokerConfigs(ctx, admin.Target{Cluster: s.cluster, Broker: s.broker}, true)
}

// addressList splits addresses at ; and , as Apache's tools and ours have them.
func addressList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
}

// getConfigOptions are the flags of mqx admin config get.
type getConfigOptions struct {
	target  targetFlags
	output  outputFlags
	servers configServers
}

func newConfigGetCmd(a *app) *cobra.Command {
	o := &getConfigOptions{}
	c := &cobra.Command{
		Use:   "get [KEY]...",
		Short: "Show the configuration that servers run with",
		Long:  `The values of passwords, keys and tokens are hidden.`,
		Example: `  mqx admin config get -b broker-a
  mqx admin config get fileReservedTime flushDiskType
  mqx admin config get --nameservers --match 'key~^enable'
  mqx admin config get --controller 10.0.0.1:9878 -o json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, keys []string) error { return runConfigGet(a, c, o, keys) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		o.servers.add(f)
	})
	o.output.addRows(c)
	o.output.add(c)
	o.output.addWatch(c)
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

func runConfigGet(a *app, c *cobra.Command, o *getConfigOptions, keys []string) error {
	if err := o.servers.check(); err != nil {
		return err
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return a.list(c, &o.output, configSchema, func(ctx context.Context, w *render.Writer) (problems, error) {
		configs, errs, err := o.servers.read(ctx, client)
		if err != nil {
			return nil, err
		}
		if err := allFailed(len(configs), errs); err != nil {
			return nil, err
		}
		if err := knownKeys(configs, keys); err != nil {
			return nil, err
		}
		for i := range configs {
			for _, row := range configRows(&configs[i], keys) {
				if err := w.Row(row...); err != nil {
					return nil, err
				}
			}
		}
		return targetProblems(errs), nil
	})
}

// knownKeys refuses a key that none of the servers has.
func knownKeys(configs []admin.ServerConfig, keys []string) error {
	for _, k := range keys {
		if slices.ContainsFunc(configs, func(s admin.ServerConfig) bool { _, ok := s.Values[k]; return ok }) {
			continue
		}
		f := failf(ExitNotFound, "none of the servers has a key %q", k)
		var all []string
		for i := range configs {
			all = append(all, configs[i].Keys()...)
		}
		if near := nearest(k, all); near != "" {
			return f.try("%s", near)
		}
		return f.try("mqx admin config get")
	}
	return nil
}

// shownValue is the value of a key as it is printed: those of secrets are not, so that they
// do not get into tickets and logs. mqx mqadmin prints what Apache's tool does.
func shownValue(key, value string) string {
	if bundle.IsSecret(key, value) {
		return hidden
	}
	return value
}

func configRows(s *admin.ServerConfig, keys []string) [][]any {
	var rows [][]any
	var id any
	if s.Role == admin.RoleBroker && s.Name != "" {
		id = s.ID
	}
	for _, k := range s.Keys() {
		if len(keys) == 0 || slices.Contains(keys, k) {
			rows = append(rows, []any{s.Role, orUnknown(s.Cluster), orUnknown(s.Name), id, s.Addr, k, shownValue(k, s.Values[k])})
		}
	}
	return rows
}
