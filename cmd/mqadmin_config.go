package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
)

func newMqadminConfigCmds(a *app) []*cobra.Command {
	return []*cobra.Command{newMqadminGetBrokerConfig(a), newMqadminGetNamesrvConfig(a), newMqadminGetControllerConfig(a)}
}

func newMqadminGetBrokerConfig(a *app) *cobra.Command {
	var broker, cluster string
	return mqadminCmd(a, "getBrokerConfig", "Get broker config by cluster or special broker", "mqx admin config get -b BROKER", false, []string{"brokerAddr|clusterName"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&broker, "brokerAddr", "b", "", "broker address")
			f.StringVarP(&cluster, "clusterName", "c", "", "all brokers of this cluster")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			configs, errs, err := client.BrokerConfigs(ctx, admin.Target{Cluster: cluster, Broker: broker}, true)
			if err != nil {
				return err
			}
			master := ""
			return a.mqadminConfigs(configs, errs, "\n", func(s *admin.ServerConfig) string {
				switch {
				case broker != "":
					return s.Addr
				case s.ID == 0:
					master = s.Addr
					return "Master: " + s.Addr
				}
				return fmt.Sprintf("My Master: %s=====Slave: %s", master, s.Addr)
			})
		})
}

func newMqadminGetNamesrvConfig(a *app) *cobra.Command {
	return mqadminCmd(a, "getNamesrvConfig", "Get configs of name server", "mqx admin config get --nameservers", false, nil,
		func(*pflag.FlagSet) {},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			configs, errs := client.NameServerConfigs(ctx)
			return a.mqadminConfigs(configs, errs, "", func(s *admin.ServerConfig) string { return s.Addr })
		})
}

func newMqadminGetControllerConfig(a *app) *cobra.Command {
	var controllers string
	return mqadminCmd(a, "getControllerConfig", "Get controller config", "mqx admin config get --controller ADDRESS", false, []string{"controllerAddress"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&controllers, "controllerAddress", "a", "", "addresses of controllers, ; between them")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			configs, errs := client.ControllerConfigs(ctx, addressList(controllers))
			return a.mqadminConfigs(configs, errs, "", func(s *admin.ServerConfig) string { return s.Addr })
		})
}

// mqadminConfigs prints configurations, each under its title, sorted by key.
func (a *app) mqadminConfigs(configs []admin.ServerConfig, errs []admin.TargetError, end string, title func(*admin.ServerConfig) string) error {
	if err := allFailed(len(configs), errs); err != nil {
		return err
	}
	for i := range configs {
		s := &configs[i]
		if err := a.printf("============%s============\n", title(s)); err != nil {
			return err
		}
		for _, k := range s.Keys() {
			if err := a.printf("%-50s=  %s\n", k, s.Values[k]); err != nil {
				return err
			}
		}
		if err := a.printf("%s", end); err != nil {
			return err
		}
	}
	return a.partial(targetProblems(errs))
}
