package cmd

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gopkg.in/natefinch/lumberjack.v2"
)

// logger is where tools and servers say what they meet: stderr. Tools warn,
// servers inform, and -v shows everything.
func (a *app) logger() *slog.Logger { return a.loggerAt(slog.LevelWarn) }

func (a *app) loggerAt(level slog.Level) *slog.Logger {
	if a.global.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level}))
}

// logFlags say where a server logs to, and how much.
type logFlags struct {
	file   string
	format string
	level  string
	size   int
	count  int
}

// logForms are the forms of a log.
var logForms = []string{"auto", "text", "json"}

func (o *logFlags) add(c *cobra.Command) {
	grouped(c, groupServer, func(f *pflag.FlagSet) {
		f.StringVar(&o.file, "log-file", "", "log to this file in place of stderr; it is rotated, and opened anew on SIGHUP")
		f.IntVar(&o.size, "log-size", 100, "with --log-file: MiB from which on a new file is begun")
		f.IntVar(&o.count, "log-count", 10, "with --log-file: full files that are kept")
		f.StringVar(&o.format, "log-format", "auto", "text, json, or auto: text on a terminal, else json")
		f.StringVar(&o.level, "log-level", "info", "debug, info, warn or error; SIGUSR1 turns debug on and off")
	})
	completeFlag(c, "log-format", cobra.FixedCompletions(logForms, cobra.ShellCompDirectiveNoFileComp))
}

// open is the log of a server with its level, which may be changed while it runs. close
// is called when nobody logs any more.
func (o *logFlags) open(ctx context.Context, a *app) (log *slog.Logger, level *slog.LevelVar, closeLog func(), err error) {
	level = &slog.LevelVar{}
	var l slog.Level
	switch {
	case !slices.Contains(logForms, o.format):
		return nil, nil, nil, notOneOf("--log-format", o.format, logForms...)
	case l.UnmarshalText([]byte(o.level)) != nil:
		return nil, nil, nil, notOneOf("--log-level", o.level, "debug", "info", "warn", "error")
	case o.size < 1 || o.count < 1:
		return nil, nil, nil, usagef("cannot keep %d log files of %d MiB: both are 1 or more", o.count, o.size).try("--log-size 100 --log-count 10")
	}
	if a.global.verbose {
		l = slog.LevelDebug
	}
	level.Set(l)
	out, tty := a.Err, a.ErrTTY
	closeLog = func() {}
	var file *lumberjack.Logger
	if o.file != "" {
		if err := touch(o.file); err != nil {
			return nil, nil, nil, failf(ExitFailed, "cannot log to %q: %w", o.file, err)
		}
		file = &lumberjack.Logger{Filename: o.file, MaxSize: o.size, MaxBackups: o.count, LocalTime: true}
		out, tty = file, false
		closeLog = func() { _ = file.Close() } // there is no place left to say it
	}
	stop := watchLogSignals(ctx, level, l, file)
	ends := closeLog
	return slog.New(o.handler(out, tty, level)), level, func() { stop(); ends() }, nil
}

func (o *logFlags) handler(out io.Writer, tty bool, level slog.Leveler) slog.Handler {
	if o.format == "json" || o.format == "auto" && !tty {
		return slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level})
	}
	return slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})
}

// touch makes sure that the file can be written, at the start and not at the first line.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// watchLogSignals turns debug on and off, and opens the file anew, until stop is called
// or ctx ends.
func watchLogSignals(ctx context.Context, level *slog.LevelVar, usual slog.Level, file *lumberjack.Logger) (stop func()) {
	if len(logSignals) == 0 {
		return func() {}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, logSignals...)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-signals:
				switch {
				case !isReopen(s) && level.Level() == slog.LevelDebug:
					level.Set(max(usual, slog.LevelInfo))
				case !isReopen(s):
					level.Set(slog.LevelDebug)
				case file != nil:
					_ = file.Close() // it is opened again by the next line
				}
			}
		}
	}()
	return func() { signal.Stop(signals); cancel(); <-done }
}
