//go:build linux || darwin

package cmd

import (
	"fmt"
	"io"
	"log/slog"
	"sort"

	"github.com/spf13/cobra"

	"mqx/internal/props"
	"mqx/nameserver"
)

func newNameserverCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "nameserver", Aliases: []string{"namesrv"}, Short: "Serve routes"}, newNameserverStartCmd(a))
}

func newNameserverStartCmd(a *app) *cobra.Command {
	o := &serverFlags{}
	c := &cobra.Command{
		Use:   "start",
		Short: "Run a name server",
		Long: `Serves routes to clients and takes the registrations of brokers. It keeps them in
memory; several name servers know nothing of each other, and brokers register at
all of them. SIGTERM stops it in order.`,
		Example: `  mqx nameserver start
  mqx nameserver start -c namesrv.conf --listen 10.0.0.1:9876`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return runNameserver(a, c, o) },
	}
	o.add(c, "9876")
	return c
}

func (o *serverFlags) nameserverConfig() (nameserver.Config, error) {
	cfg := nameserver.DefaultConfig()
	if o.config != "" {
		var err error
		if cfg, err = nameserver.LoadConfig(o.config, o.allow); err != nil {
			return cfg, configFailure(err)
		}
	}
	if o.listen != "" {
		if err := cfg.SetListen(o.listen); err != nil {
			return cfg, usagef("%w", err)
		}
	}
	return cfg, nil
}

func runNameserver(a *app, c *cobra.Command, o *serverFlags) error {
	cfg, err := o.nameserverConfig()
	if err != nil {
		return err
	}
	if o.printConfig {
		return printConfig(a.Out, &cfg)
	}
	log := a.loggerAt(slog.LevelInfo)
	cfg.Logger = log
	if err := startPprof(c.Context(), log, o.pprof); err != nil {
		return err
	}
	s, err := nameserver.New(cfg)
	if err != nil {
		return configFailure(err)
	}
	return a.serve(c.Context(), log, s, func() {
		startLines(log, cfg.Explain())
		log.Info("name server started", "addr", s.Addr().String(), "version", versionText())
	})
}

// configFailure: a configuration that cannot be used is a usage error.
func configFailure(err error) error {
	f := asFailure(err)
	if f.Code == ExitFailed {
		f.Code = ExitUsage
	}
	return f
}

// printConfig prints the keys of a configuration, sorted, as Apache's -p does.
func printConfig(w io.Writer, targets ...any) error {
	var lines []string
	for _, f := range props.Fields(targets...) {
		lines = append(lines, f.Key+"="+f.String())
	}
	sort.Strings(lines)
	for _, l := range lines {
		if _, err := fmt.Fprintln(w, l); err != nil {
			return err
		}
	}
	return nil
}
