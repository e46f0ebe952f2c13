//go:build linux || darwin

package cmd

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	o.add(c, "9876", nameserverMetrics)
	grouped(c, groupServer, func(f *pflag.FlagSet) {
		f.StringP("namesrv", "n", "", "without effect, as in Apache's script")
	})
	hideFlags(c, "namesrv")
	acceptApacheNames(c)
	return c
}

func (o *serverFlags) nameserverConfig() (nameserver.Config, error) {
	cfg := nameserver.DefaultConfig()
	if err := o.checkAllowed(nameserver.UnsupportedKeys()); err != nil {
		return cfg, err
	}
	cfg.AllowUnsupported = o.allow
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
		_, err := a.Out.Write(cfg.ValuesText())
		return err
	}
	if err := cfg.Locate(cfg.Validate()); err != nil {
		return configFailure(err)
	}
	log, level, closeLog, err := o.log.open(c.Context(), a)
	if err != nil {
		return err
	}
	defer closeLog()
	cfg.Logger, cfg.LogLevel = log, level
	if err := cfg.LoadDefaultTLS(); err != nil {
		return configFailure(err)
	}
	if err := startPprof(c.Context(), log, o.pprof); err != nil {
		return err
	}
	scraped, err := metricsAddr(o.metrics)
	if err != nil {
		return err
	}
	s, err := nameserver.New(cfg)
	if err != nil {
		return startFailure(err)
	}
	startMetrics(c.Context(), log, scraped, 0, withHost(o.metricsHost, s)...)
	return a.serve(c.Context(), log, s, func() {
		startLines(log, s.Explain())
		log.Info("name server started", "addr", s.Addr().String(), "version", versionText())
	})
}

// configFailure: a configuration that cannot be used is wrong usage; a file that cannot be
// read has the exit code of any other.
func configFailure(err error) error {
	f := asFailure(err)
	if f.Code == ExitFailed {
		if f.Code = exitOfFile(err); f.Code == ExitFailed {
			f.Code = ExitUsage
		}
	}
	if f.Why != "" || f.Try != "" {
		return f
	}
	if e, ok := errors.AsType[*props.UnsupportedError](err); ok {
		return unsupported(e.What(), e.Why, e.Key)
	}
	if e, ok := errors.AsType[*props.SyntaxError](err); ok {
		why := "the line cannot be read as a key and its value"
		if e.Key != "" {
			why = "the value is not one that the key takes"
		}
		return f.because(why).try("correct line %d of %s", e.Line, e.File)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return f.because("there is no such file").try("-c with a file that is there, or none: the defaults count then")
	}
	if errors.Is(err, fs.ErrPermission) {
		return f.because("this user may not read the file").try("ls -l of the file, and the user this runs as")
	}
	return f.because("a value of the configuration cannot be used").try("correct it; -p prints every key with its value")
}

// unsupported is a key that promises what is not served.
func unsupported(what, why, key string) *Failure {
	return failf(ExitUsage, "%s", what).because(why).try("take the key out, or --allow-unsupported %s to start without it", key)
}

// refusedConfig: a server may also find out later, from the configuration or
// from the store directory, that it is asked for what is not served.
func refusedConfig(err error) bool {
	_, malformed := errors.AsType[*props.SyntaxError](err)
	_, refused := errors.AsType[*props.UnsupportedError](err)
	return malformed || refused
}
