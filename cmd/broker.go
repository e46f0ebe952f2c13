//go:build linux || darwin

package cmd

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/broker"
)

func newBrokerCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "broker", Short: "Serve messages"}, newBrokerStartCmd(a))
}

// brokerOptions are the flags of mqx broker start.
type brokerOptions struct {
	server    serverFlags
	namesrv   string
	store     string
	advertise string
	join      string
	important bool
}

// importantKeys are the keys that mqbroker -m prints.
var importantKeys = []string{
	"aclEnable", "autoCreateTopicEnable", "brokerClusterName", "brokerIP1", "brokerId", "brokerName", "brokerRole", "deleteWhen", "fileReservedTime",
	"flushDiskType", "listenPort", "maxMessageSize", "namesrvAddr", "rejectTransactionMessage", "storePathCommitLog", "storePathRootDir",
}

func newBrokerStartCmd(a *app) *cobra.Command {
	o := &brokerOptions{}
	c := &cobra.Command{
		Use:   "start",
		Short: "Run a broker",
		Long: `Stores messages and serves them, on the port given and on the one two below it.
It reads Apache's broker.conf as it is, and opens a store directory that Apache
wrote. A key that changes durability, replication, security, where data lies or
what clients get and is not served stops the start. SIGTERM stops it in order: it unregisters,
answers what is under way, flushes and exits with 0; a second signal ends it at once.

With --join empty it comes into a running cluster without taking traffic by surprise:
it creates no topic by itself, whatever autoCreateTopicEnable says, and at its first
start it copies the groups of the cluster from another broker. mqx admin cluster
join-check looks it over, mqx admin topic spread gives it topics.`,
		Example: `  mqx broker start -n 10.0.0.1:9876 --store /var/lib/mqx
  mqx broker start -c /etc/rocketmq/broker.conf
  mqx broker start -n '10.0.0.1:9876;10.0.0.2:9876' --advertise 203.0.113.7
  mqx broker start -c broker.conf --join empty`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return runBroker(a, c, o) },
	}
	o.server.add(c, "10911", brokerMetrics)
	grouped(c, groupServer, func(f *pflag.FlagSet) {
		f.StringVarP(&o.namesrv, "namesrv", "n", "", "name servers to register at, ; or , between them")
		f.StringVar(&o.store, "store", "", "store directory (default: that of the configuration, else ~/store)")
		f.StringVar(&o.advertise, "advertise", "", "address that clients are told (default: the one of the route to the name server)")
		f.StringVar(&o.join, "join", "", "how it comes into its cluster: empty takes the groups of another broker and creates no topic by itself")
		f.BoolVarP(&o.important, "print-important", "m", false, "print the most important keys with their values and exit")
	})
	acceptApacheNames(c)
	completeFlag(c, "join", cobra.FixedCompletions([]string{broker.JoinEmpty}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *brokerOptions) brokerConfig(a *app) (broker.Config, error) {
	cfg := broker.DefaultConfig()
	if o.join != "" && o.join != broker.JoinEmpty {
		return cfg, notOneOf("--join", o.join, broker.JoinEmpty)
	}
	if err := o.server.checkAllowed(broker.UnsupportedKeys()); err != nil {
		return cfg, err
	}
	cfg.AllowUnsupported = o.server.allow
	if o.server.config != "" {
		var err error
		if cfg, err = broker.LoadConfig(o.server.config, o.server.allow); err != nil {
			return cfg, configFailure(err)
		}
	}
	if o.server.listen != "" {
		host, port, err := splitListen(o.server.listen)
		if err != nil {
			return cfg, err
		}
		if cfg.HAListenPort == cfg.ListenPort+1 {
			cfg.HAListenPort = 0 // follows the port
		}
		cfg.BindAddress, cfg.ListenPort = host, port
	}
	if cfg.Join = o.join; cfg.Join != "" {
		cfg.AutoCreateTopic = false // so that --print-config shows it
	}
	if o.namesrv != "" {
		cfg.NamesrvAddr = o.namesrv
	} else if cfg.NamesrvAddr == "" {
		var err error
		if cfg.NamesrvAddr, err = a.brokerNamesrv(); err != nil {
			return cfg, err
		}
	}
	if o.store != "" {
		cfg.Store.RootDir, cfg.Store.CommitLogDir = o.store, ""
	}
	if o.advertise != "" {
		cfg.BrokerIP1, cfg.BrokerIP1From = strings.Trim(o.advertise, "[]"), "--advertise"
	}
	return cfg, nil
}

// splitListen reads host:port, :port or a port.
func splitListen(text string) (host string, port int, err error) {
	if _, err := strconv.Atoi(text); err == nil {
		text = ":" + text
	}
	host, portText, err := net.SplitHostPort(text)
	if err != nil {
		return "", 0, usagef("cannot listen on %q: %w", text, err).try("--listen 0.0.0.0:10911")
	}
	if port, err = strconv.Atoi(portText); err != nil || port < 0 || port > 65535 || port == 1 || port == 2 {
		return "", 0, usagef("cannot listen on %q: the port must be 0 or 3 to 65535, the second port is two below", text).try("--listen 0.0.0.0:10911")
	}
	if host == "" {
		host = "0.0.0.0"
	}
	return host, port, nil
}

func runBroker(a *app, c *cobra.Command, o *brokerOptions) error {
	cfg, err := o.brokerConfig(a)
	if err != nil {
		return err
	}
	if o.server.printConfig {
		_, err := a.Out.Write(cfg.ValuesText())
		return err
	}
	if o.important {
		values := cfg.Values()
		for _, k := range importantKeys {
			if _, err := fmt.Fprintf(a.Out, "%s=%s\n", k, values[k]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := cfg.Locate(cfg.Validate()); err != nil {
		return configFailure(err)
	}
	log, level, closeLog, err := o.server.log.open(c.Context(), a)
	if err != nil {
		return err
	}
	defer closeLog()
	cfg.Logger, cfg.Store.Logger, cfg.LogLevel = log, log, level
	if err := cfg.LoadDefaultTLS(); err != nil {
		return configFailure(err)
	}
	if err := startPprof(c.Context(), log, o.server.pprof); err != nil {
		return err
	}
	scraped, err := o.metricsAddr(c, &cfg)
	if err != nil {
		return err
	}
	broker.SpareProcs()
	b, err := broker.New(cfg)
	if err != nil {
		return startFailure(err)
	}
	startMetrics(c.Context(), log, scraped, cfg.MetricsMaxSeries, withHost(o.server.metricsHost || cfg.HostMetrics, b)...)
	return a.serve(c.Context(), log, b, func() {
		startLines(log, b.Explain())
		log.Info("broker started", "addr", b.Addr().String(), "version", versionText())
	})
}

// metricsAddr is where the broker serves metrics: the flag, else its configuration, else
// the flag's default.
func (o *brokerOptions) metricsAddr(c *cobra.Command, cfg *broker.Config) (string, error) {
	if addr, given := cfg.MetricsAddr(); given && !c.Flags().Changed("metrics") {
		return addr, nil
	}
	return metricsAddr(o.server.metrics)
}

// brokerNamesrv is where a broker registers that was told neither by a flag nor by
// its configuration: a context that was named for it, else the environment. The
// current context is that of a person, not of a server.
func (a *app) brokerNamesrv() (string, error) {
	_, named, _, err := a.contexts()
	if err != nil {
		return "", err
	}
	if named != nil && len(named.NameServers) > 0 {
		return strings.Join(named.NameServers, ";"), nil
	}
	text, _ := a.namesrvEnv()
	return text, nil
}
