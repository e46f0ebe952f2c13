package cmd

import (
	"log/slog"
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
