//go:build linux || darwin

package cmd

import (
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/exporter"
	"mqx/internal/metrics"
)

// exporterListen is where the exporter serves when nobody says: beside the ports that
// brokers, name servers and rocketmq-exporter have.
const exporterListen = "127.0.0.1:5560"

// exporterOptions are the flags of mqx exporter.
type exporterOptions struct {
	target    targetFlags
	cluster   string
	broker    string
	listen    string
	interval  time.Duration
	noAge     bool
	queues    bool
	old       bool
	maxSeries int
}

func newExporterCmd(a *app) *cobra.Command {
	o := &exporterOptions{}
	c := &cobra.Command{
		Use:   "exporter",
		Short: "Serve the figures of a cluster to Prometheus",
		Long: `Reads the brokers of a cluster, Apache's or mqx's, at an interval and serves what
they tell as series for Prometheus: messages in and out, lag and age by group and topic,
and how each broker does. The names are those that brokers have themselves, so that
dashboards and alerts work with both; --rocketmq-exporter-names adds those of
rocketmq-exporter. mqx brokers serve more themselves, without it.

A scrape waits for no broker: it gets what the last readings found. A broker that does
not answer has mqx_broker_up 0 and no other series; a group or topic that a broker
cannot tell of is left out and counted. docs/metrics.md lists the series.`,
		Example: `  mqx exporter -n 10.0.0.1:9876 --listen :5560
  mqx exporter -n '10.0.0.1:9876;10.0.0.2:9876' --interval 30s --queues
  mqx exporter --rocketmq-exporter-names --access-key env:AK --secret-key env:SK`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return runExporter(a, c, o) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVarP(&o.cluster, "cluster", "c", "", "only this cluster")
		f.StringVarP(&o.broker, "broker", "b", "", "only this broker, by name or address")
	})
	grouped(c, groupServer, func(f *pflag.FlagSet) {
		f.StringVar(&o.listen, "listen", exporterListen, "address to serve at, host:port or :port")
		f.DurationVar(&o.interval, "interval", exporter.DefaultInterval, "time between two readings of a broker, from 1s to 1h")
		f.BoolVar(&o.noAge, "no-age", false, "leave out how old unread messages are, which costs two requests for each group and topic with a lag")
		f.BoolVar(&o.queues, "queues", false, "lag and age of each queue as well")
		f.BoolVar(&o.old, "rocketmq-exporter-names", false, "the series of rocketmq-exporter as well; five more requests for each topic and group, and one for each member")
		f.IntVar(&o.maxSeries, "max-series", metrics.MaxSeries, "series of one name; what is above is added up in one")
	})
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

func runExporter(a *app, c *cobra.Command, o *exporterOptions) error {
	switch _, _, err := net.SplitHostPort(o.listen); {
	case err != nil:
		return usagef("cannot listen on %q: %w", o.listen, err).try("--listen %s", exporterListen)
	case o.interval < exporter.MinInterval || o.interval > exporter.MaxInterval:
		return usagef("cannot use --interval %s: it goes from %s to %s", o.interval, exporter.MinInterval, exporter.MaxInterval).try("--interval %s", exporter.DefaultInterval)
	case o.maxSeries < 1:
		return usagef("cannot use --max-series %d: it must be at least 1", o.maxSeries).try("--max-series %d", metrics.MaxSeries)
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	log := a.loggerAt(slog.LevelInfo)
	e, err := exporter.New(exporter.Options{
		Client: client, Target: admin.Target{Cluster: o.cluster, Broker: o.broker}, Interval: o.interval,
		NoAges: o.noAge, Queues: o.queues, RocketMQExporter: o.old, Logger: log,
	})
	if err != nil {
		return err
	}
	addr, err := metrics.Serve(c.Context(), log, o.listen, metrics.Handler(log, o.maxSeries, e))
	if err != nil {
		return startFailure(err)
	}
	return a.serve(c.Context(), log, e, func() {
		log.Info("exporter started", "url", "http://"+addr.String()+"/metrics", "interval", o.interval.String())
	})
}
