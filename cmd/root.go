// Package cmd is the command line of mqx, and the only place that knows cobra.
// A command parses flags into options and makes one call into a room below.
package cmd

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// app is what all commands share.
type app struct {
	Streams
	global globalFlags
}

// globalFlags are the flags that every command has.
type globalFlags struct {
	verbose bool
}

// Execute runs the command line args, args[0] being the name the binary was
// called by, and returns the exit code. Errors have been printed when it
// returns. It ends early when ctx is cancelled.
func Execute(ctx context.Context, args []string, streams Streams) Exit {
	a := &app{Streams: streams}
	root := newRootCmd(a)
	root.SetArgs(appletArgs(args))
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if s, ok := errors.AsType[errSilent](err); ok {
		return s.code
	}
	f := asFailure(err)
	f.print(streams.Err)
	return f.Code
}

func newRootCmd(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "mqx",
		Short:         "A drop-in Apache RocketMQ name server and broker, and the toolkit that operates them",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.DisableAutoGenTag = true
	root.PersistentFlags().BoolVarP(&a.global.verbose, "verbose", "v", false, "say more on stderr")
	root.AddCommand(newVersionCmd(a))
	return root
}

// applets are the names under which mqx stands in for Apache's scripts.
var applets = map[string][]string{
	"mqnamesrv": {"nameserver", "start"},
	"mqbroker":  {"broker", "start"},
	"mqadmin":   {"mqadmin"},
}

// appletArgs turns the arguments of the process into those of the root command:
// called as mqnamesrv, mqbroker or mqadmin, mqx takes their place.
func appletArgs(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	if prefix, ok := applets[name]; ok {
		return append(append([]string(nil), prefix...), args[1:]...)
	}
	return args[1:]
}
