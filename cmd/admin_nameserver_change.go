package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
)

// kvOptions are the flags of mqx admin nameserver set and rm.
type kvOptions struct {
	changeFlags
	namespace string
}

func (o *kvOptions) addNamespace(c *cobra.Command) {
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVar(&o.namespace, "namespace", "", "namespace of the entry, as in ORDER_TOPIC_CONFIG")
	})
}

func newNameserverSetCmd(a *app) *cobra.Command {
	o := &kvOptions{}
	c := &cobra.Command{
		Use:   "set KEY=VALUE",
		Short: "Set an entry of the key-value table of every name server",
		Long: `Name servers know nothing of each other: the entry is set at each of them, and read
back. Their configuration is another thing: mqx admin config set --nameservers.`,
		Example: `  mqx admin nameserver set --namespace ORDER_TOPIC_CONFIG 'ORDERS=broker-a:4;broker-b:4' --yes
  mqx admin nameserver set --namespace mine limit=5 --dry-run`,
		Args: exactArgs("KEY=VALUE"),
		RunE: func(c *cobra.Command, args []string) error {
			key, value, ok := strings.Cut(args[0], "=")
			if !ok || key == "" {
				return usagef("cannot read %q: it has the form KEY=VALUE", args[0])
			}
			return o.kv(a, c, key, &value)
		},
	}
	o.add(a, c, false, false)
	o.addNamespace(c)
	return c
}

func newNameserverRmCmd(a *app) *cobra.Command {
	o := &kvOptions{}
	c := &cobra.Command{
		Use:   "rm KEY",
		Short: "Take an entry out of the key-value table of every name server",
		Example: `  mqx admin nameserver rm --namespace mine limit
  mqx admin nameserver rm --namespace mine limit --confirm limit`,
		Args: exactArgs("KEY"),
		RunE: func(c *cobra.Command, args []string) error { return o.kv(a, c, args[0], nil) },
	}
	o.add(a, c, true, false)
	o.addNamespace(c)
	return c
}

func (o *kvOptions) kv(a *app, c *cobra.Command, key string, value *string) error {
	if o.namespace == "" {
		return usagef("cannot run %q: --namespace is missing", c.CommandPath()).try("--namespace ORDER_TOPIC_CONFIG")
	}
	return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
		return client.PlanKV(ctx, o.namespace, key, value)
	})
}
