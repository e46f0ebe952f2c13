//go:build linux || darwin

package cmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/broker"
	"mqx/internal/props"
	"mqx/internal/sdnotify"
)

// serverCommands are the commands that run a server: they exist where the
// network and store code do.
func serverCommands() []part {
	return []part{
		{"nameserver namesrv", newNameserverCmd},
		{"broker", newBrokerCmd},
		{"dev", newDevCmd},
		{"exporter", newExporterCmd},
	}
}

// serverFlags are the flags of every server.
type serverFlags struct {
	config      string
	listen      string
	pprof       string
	metrics     string
	metricsHost bool
	allow       []string
	printConfig bool
	log         logFlags
}

func (o *serverFlags) add(c *cobra.Command, port, metrics string) {
	grouped(c, groupServer, func(f *pflag.FlagSet) {
		f.StringVarP(&o.config, "config", "c", "", "configuration file in Apache's form")
		f.StringVar(&o.listen, "listen", "", "address to listen on, host:port or :port (default :"+port+")")
		f.StringVar(&o.metrics, "metrics", metrics, "serve metrics in Prometheus' form at this address; off for nowhere")
		f.BoolVar(&o.metricsHost, "metrics-host", false, "with the metrics: load, processors, devices, networks, memory and TCP sockets of this machine (Linux)")
		f.StringVar(&o.pprof, "pprof", "", "serve Go profiles at this loopback address, as 127.0.0.1:6060")
		f.StringArrayVar(&o.allow, "allow-unsupported", nil, "start although the configuration asks for this key, which is not served; may be repeated")
		f.BoolVarP(&o.printConfig, "print-config", "p", false, "print every key with its value and exit")
	})
	o.log.add(c)
}

// checkAllowed refuses a key that stops no start: who misspells one believes that
// something was let through.
func (o *serverFlags) checkAllowed(known []string) error {
	for _, key := range o.allow {
		if slices.Contains(known, key) {
			continue
		}
		f := usagef("cannot use --allow-unsupported %q", key).because("no key of that name stops the start")
		if near := props.Nearest(key, slices.Values(known)); near != "" {
			return f.try("--allow-unsupported %s", near)
		}
		return f.try("the command without it")
	}
	return nil
}

// apacheFlagNames are the long names that Apache's scripts have for flags of the servers.
var apacheFlagNames = map[string]string{"configFile": "config", "namesrvAddr": "namesrv", "printConfigItem": "print-config", "printImportantConfig": "print-important"}

func acceptApacheNames(c *cobra.Command) {
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if ours, ok := apacheFlagNames[name]; ok {
			name = ours
		}
		return pflag.NormalizedName(name)
	})
}

// server is a nameserver.Server or a broker.Broker.
type server interface {
	Run(ctx context.Context) error
	Ready() <-chan struct{}
}

// serve runs one server until it is told to stop: it says when it is ready, to
// the log and to the service manager, and returns nil after an orderly end.
func (a *app) serve(ctx context.Context, log *slog.Logger, s server, started func()) error {
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	select {
	case err := <-done:
		return over(ctx, log, err)
	case <-s.Ready():
	}
	started()
	notify(log, sdnotify.Ready, sdnotify.Status("serving"))
	select {
	case err := <-done:
		return over(ctx, log, err)
	case <-ctx.Done():
	}
	log.Info("stopping")
	notify(log, sdnotify.Stopping)
	err := over(ctx, log, <-done)
	if err == nil {
		log.Info("stopped")
	}
	return err
}

// over ends a server, or starts it anew where it asks for that: not once it has been told to stop, whichever came first. Its
// next start has the new role then.
func over(ctx context.Context, log *slog.Logger, err error) error {
	reopen := (*broker.ReopenError)(nil)
	switch {
	case !errors.As(err, &reopen):
		return ended(ctx, err)
	case ctx.Err() != nil:
		log.Info("it was to be started anew, and has been told to stop", "why", reopen.Why)
		return ended(ctx, reopen.Err)
	case reopen.Err != nil:
		log.Error("the stop has failed; it starts anew all the same", "error", reopen.Err)
	}
	return startAnew(log)
}

// startAnew replaces this process by one that was started the same way: same process id, same arguments. It returns only
// where that fails.
func startAnew(log *slog.Logger) error {
	path, err := os.Executable()
	if _, statErr := os.Stat(selfExe); statErr == nil {
		path, err = selfExe, nil // also where the file has been replaced meanwhile
	}
	if err != nil {
		return fmt.Errorf("cannot start anew: %w", err)
	}
	log.Info("starting anew")
	return fmt.Errorf("cannot start %q anew: %w", path, syscall.Exec(path, os.Args, os.Environ()))
}

// selfExe is the program of this process on Linux.
const selfExe = "/proc/self/exe"

// ended: the end of a server that nobody told to stop is a failure, whatever it returned.
func ended(ctx context.Context, err error) error {
	switch {
	case err == nil && ctx.Err() == nil:
		return errors.New("the server ended by itself")
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		err = nil // it was told to stop, and did
	}
	return startFailure(err)
}

const tryOtherPort = "--listen with another port, or stop that process"

// startFailure adds what to do about the commonest reasons why a server does not start.
func startFailure(err error) error {
	if err == nil {
		return nil
	}
	f := asFailure(err)
	switch {
	case refusedConfig(err):
		f.Code = ExitUsage
	case f.Code == ExitConnect: // a listen error is no connect error
		f.Code = ExitFailed
	}
	if f.Try == "" && strings.Contains(err.Error(), "address already in use") {
		f.Why, f.Try = "another process listens there", tryOtherPort
	}
	return f
}

func notify(log *slog.Logger, messages ...string) {
	if err := sdnotify.Send(messages...); err != nil {
		log.Warn("service manager not told", "error", err)
	}
}

const (
	// mutexFraction and blockRate make contention visible at next to no cost: one of so many waits for a mutex, and a wait
	// for anything with the chance of its length to this one.
	mutexFraction = 50
	blockRate     = 100 * time.Microsecond
)

// startPprof serves profiles on a loopback address until ctx ends, those of mutexes and of waiting included.
func startPprof(ctx context.Context, log *slog.Logger, addr string) error {
	if addr == "" {
		return nil
	}
	if err := loopbackOnly(addr); err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("cannot serve profiles: %w", err)
	}
	runtime.SetMutexProfileFraction(mutexFraction)
	runtime.SetBlockProfileRate(int(blockRate))
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	log.Info("profiles served", "url", "http://"+l.Addr().String()+"/debug/pprof/")
	go func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("profiles no longer served", "error", err)
		}
	}()
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	return nil
}

// loopbackOnly: profiles show memory; they are for this machine alone.
func loopbackOnly(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return usagef("cannot use --pprof %q: %w", addr, err).try("--pprof 127.0.0.1:6060")
	}
	ip, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return usagef("cannot serve profiles on %q: only on a loopback address", addr).
			because("a profile shows what the process holds in memory").try("--pprof 127.0.0.1:6060, and an ssh tunnel")
	}
	return nil
}

func versionText() string {
	v, _, _ := buildVersion()
	return v
}

// startLines logs what a server says of its start, one line each.
func startLines(log *slog.Logger, lines []string) {
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l, "warning: "); ok {
			log.Warn("start", "note", rest)
			continue
		}
		log.Info("start", "note", l)
	}
}
