//go:build linux || darwin

package cmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"mqx/broker"
	"mqx/internal/sdnotify"
	"mqx/nameserver"
)

// devOptions are the flags of mqx dev.
type devOptions struct {
	data         string
	listen       string
	brokerListen string
	metrics      string
	metricsHost  bool
	demo         bool
}

// Small files: a laptop's disk and a quick start count more than throughput.
const (
	devCommitLogBytes    = 16 << 20
	devConsumeQueueBytes = 20 * 5000
	devIndexSlots        = 50_000
	devIndexEntries      = 200_000
)

func newDevCmd(a *app) *cobra.Command {
	o := &devOptions{}
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run a name server and a broker in one process, ready for clients",
		Long: `For a laptop and for tests: everything on loopback, small files, topics created
by the first message. Without --data the messages live in a temporary directory
that goes at the end. --demo starts it on free ports, sends and reads a few
messages, and ends.`,
		Example: `  mqx dev
  mqx dev --demo
  mqx dev --data ./mqx-data --listen 127.0.0.1:19876`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return runDev(a, c, o) },
	}
	grouped(c, groupServer, func(f *pflag.FlagSet) {
		f.StringVar(&o.data, "data", "", "directory to keep messages in (default: a temporary one)")
		f.StringVar(&o.listen, "listen", "127.0.0.1:9876", "address of the name server; port 0 takes a free one")
		f.StringVar(&o.brokerListen, "broker-listen", "127.0.0.1:10911", "address of the broker; port 0 takes a free one")
		f.StringVar(&o.metrics, "metrics", brokerMetrics, "serve metrics in Prometheus' form at this address; off for nowhere")
		f.BoolVar(&o.metricsHost, "metrics-host", false, "with the metrics: load, processors, devices, networks, memory and TCP sockets of this machine (Linux)")
		f.BoolVar(&o.demo, "demo", false, "send and read a few messages on free ports, then end")
	})
	return c
}

func runDev(a *app, c *cobra.Command, o *devOptions) error {
	if o.demo {
		for flag, value := range map[string]*string{"listen": &o.listen, "broker-listen": &o.brokerListen, "metrics": &o.metrics} {
			if !c.Flags().Changed(flag) {
				*value = "127.0.0.1:0"
			}
		}
	}
	dir := o.data
	if dir == "" {
		temp, err := os.MkdirTemp("", "mqx-dev-")
		if err != nil {
			return fmt.Errorf("cannot make a temporary directory: %w", err)
		}
		defer func() {
			if err := os.RemoveAll(temp); err != nil {
				a.warn("temporary directory %s not removed: %v", temp, err)
			}
		}()
		dir = temp
	}
	level := slog.LevelWarn
	if a.global.verbose {
		level = slog.LevelInfo
	}
	d := &devCluster{dir: dir, log: a.loggerAt(level), metricsHost: o.metricsHost}
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	return d.run(ctx, o, func(namesrv string) error {
		if o.demo {
			err := demo(ctx, a, namesrv)
			cancel()
			return err
		}
		d.greet(a, o, namesrv)
		notify(d.log, sdnotify.Ready, sdnotify.Status("serving"))
		return nil
	})
}

// devCluster is a name server and a broker that meet over loopback.
type devCluster struct {
	dir string
	log *slog.Logger

	metricsHost bool
	broker      *broker.Broker
}

// run starts both, calls ready with the name server's address, and stops the
// broker before the name server, so that it can unregister.
func (d *devCluster) run(ctx context.Context, o *devOptions, ready func(namesrv string) error) error {
	scraped, err := metricsAddr(o.metrics)
	if err != nil {
		return err
	}
	namesrvCtx, stopNamesrv := context.WithCancel(context.WithoutCancel(ctx))
	defer stopNamesrv()
	ns, err := d.newNameserver(o.listen)
	if err != nil {
		return err
	}
	var group errgroup.Group
	brokerCtx, stopBroker := context.WithCancel(ctx)
	defer stopBroker()
	group.Go(func() error {
		defer stopBroker()
		return ended(namesrvCtx, ns.Run(namesrvCtx))
	})
	group.Go(func() error {
		defer stopNamesrv()
		select {
		case <-ns.Ready():
		case <-brokerCtx.Done():
			return nil
		}
		return d.runBroker(brokerCtx, ctx, o.brokerListen, ns, scraped, ready)
	})
	return group.Wait()
}

func (d *devCluster) newNameserver(listen string) (*nameserver.Server, error) {
	cfg := nameserver.DefaultConfig()
	if err := cfg.SetListen(listen); err != nil {
		return nil, usagef("%w", err)
	}
	cfg.KVConfigPath = filepath.Join(d.dir, "namesrv", "kvConfig.json")
	cfg.ConfigStorePath = filepath.Join(d.dir, "namesrv", "namesrv.properties")
	cfg.Logger = d.log
	ns, err := nameserver.New(cfg)
	if err != nil {
		return nil, startFailure(err)
	}
	return ns, nil
}

// runBroker runs the broker until brokerCtx ends. told is the context that ends
// when somebody tells the whole to stop.
func (d *devCluster) runBroker(brokerCtx, told context.Context, listen string, ns *nameserver.Server, scraped string, ready func(string) error) error {
	namesrv := ns.Addr().String()
	host, port, err := splitListen(listen)
	if err != nil {
		return err
	}
	cfg := broker.DefaultConfig()
	cfg.BindAddress, cfg.ListenPort = host, port
	if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
		cfg.BrokerIP1 = host
	}
	cfg.BrokerName = "dev"
	cfg.NamesrvAddr = namesrv
	cfg.Logger = d.log
	cfg.Store.Logger = d.log
	cfg.Store.RootDir = filepath.Join(d.dir, "store")
	cfg.Store.CommitLogFileBytes = devCommitLogBytes
	cfg.Store.ConsumeQueueFileBytes = devConsumeQueueBytes
	cfg.Store.MaxHashSlotNum = devIndexSlots
	cfg.Store.MaxIndexNum = devIndexEntries
	if d.broker, err = broker.New(cfg); err != nil {
		return startFailure(err)
	}
	startMetrics(brokerCtx, d.log, scraped, 0, withHost(d.metricsHost, ns, d.broker)...)
	done := make(chan error, 1)
	go func() { done <- d.broker.Run(brokerCtx) }()
	select {
	case err := <-done:
		return ofBroker(ended(told, err))
	case <-d.broker.Ready():
	}
	err = ready(namesrv)
	return errors.Join(err, ended(told, <-done))
}

// ofBroker names the flag of the broker where startFailure names that of a server.
func ofBroker(err error) error {
	if f, ok := errors.AsType[*Failure](err); ok && f.Try == tryOtherPort {
		f.Try = "--broker-listen" + strings.TrimPrefix(tryOtherPort, "--listen")
	}
	return err
}

// greet says how to use what runs.
func (d *devCluster) greet(a *app, o *devOptions, namesrv string) {
	kept := "kept"
	if o.data == "" {
		kept = "removed at the end"
	}
	flag := ""
	if r, err := a.resolve(&targetFlags{}); err != nil || !slices.Equal(r.nameServers.value, []string{namesrv}) {
		flag = " -n " + namesrv // what these commands would take by themselves is another one
	}
	fmt.Fprintf(a.Err, `mqx %s is ready.
  name server  %s
  broker       %s
  data         %s (%s)

Try in another terminal:
  echo hello | mqx produce GREETINGS%s
  mqx consume GREETINGS%s

RocketMQ clients take %s as their name server. Ctrl-C stops.
`, versionText(), namesrv, d.broker.Addr(), d.dir, kept, flag, flag, namesrv)
}

const demoTime = 30 * time.Second
