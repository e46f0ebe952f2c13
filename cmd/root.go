// Package cmd is the command line of mqx, and the only place that knows cobra.
// A command parses flags into options and makes one call into a room below.
//
// What is shared: the exit codes (exitcode.go), how a failure is told
// (failure.go, classify.go), flags that mean one thing everywhere (flags.go,
// target.go, output.go, safety.go), and how times and positions are written
// (position.go).
package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// app is what all commands share.
type app struct {
	Streams
	global globalFlags
	env    func(string) string
	// asked are the arguments that commands are built for; nil: build all of them.
	asked []string
	// redact hides bodies and the values of properties in Apache's spelling.
	redact bool
	// signed says which key requests are signed with, "" while no cluster was meant.
	signed string
	// nameServers are those of the cluster that was meant.
	nameServers []string
}

// buildsFor are the commands to build. Those whose pages or scripts are made of the
// whole tree get it.
func buildsFor(args []string) []string {
	if slices.Contains(args, "man") || slices.Contains(args, "completion") {
		return nil
	}
	return append([]string{}, args...)
}

// Execute runs the command line args, args[0] being the name the binary was
// called by, and returns the exit code. Errors have been printed when it
// returns. It ends early when ctx is cancelled.
func Execute(ctx context.Context, args []string, streams Streams) Exit {
	a := &app{Streams: streams, env: os.Getenv}
	words := appletArgs(args)
	a.asked = buildsFor(words)
	root := newRootCmd(a)
	root.SetArgs(apacheArgs(root, words))
	if len(args) > 1 && strings.HasPrefix(args[1], cobra.ShellCompRequestCmd) {
		completeNames(a, root)
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	if s, ok := errors.AsType[silentError](err); ok {
		return s.code
	}
	f := explained(ran, a.keyNamed(a.peerNamed(asFailure(err))))
	f.print(streams.Err, a.color(streams.ErrTTY))
	if asksNagios(ran) { // whatever went wrong, the state is not known
		text := f.Error()
		if f.Why != "" {
			text += ": " + f.Why
		}
		_ = nagiosLine(streams.Out, nagiosUnknown, text, "") // the exit code says it too
		return nagiosUnknown
	}
	return f.Code
}

func newRootCmd(a *app) *cobra.Command {
	root := asGroup(&cobra.Command{
		Use:   "mqx",
		Short: "A drop-in Apache RocketMQ name server and broker, and the toolkit that operates them",
		Long: `What speaks to Apache RocketMQ 5.5 speaks to mqx, and what Apache wrote to disk
mqx reads, and the other way round. ` + "`mqx dev`" + ` runs everything that is needed in
one process.`,
		Example: `  mqx dev
  echo hello | mqx produce GREETINGS
  mqx consume GREETINGS
  mqx admin topic ls -n 10.0.0.1:9876 -o json | jq -r '.items[].name'`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if err := a.global.check(); err != nil {
				return err
			}
			return checkForm(c)
		},
	})
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { writeHelp(c.OutOrStdout(), c) })
	root.SetUsageFunc(func(c *cobra.Command) error { writeUsage(c.OutOrStderr(), c); return nil })
	root.SetHelpCommand(newHelpCmd())
	a.global.add(root)
	completeFlag(root, "context", completeContextFlag(a))
	a.addParts(root, append(serverCommands(), []part{
		{"produce", newProduceCmd},
		{"consume", newConsumeCmd},
		{"bench", newBenchCmd},
		{"store", newStoreCmd},
		{"admin", newAdminCmd},
		{"mqadmin", newMqadminCmd},
		{"top", newTopCmd},
		{"doctor", newDoctorCmd},
		{"wait", newWaitCmd},
		{"context contexts", newContextCmd},
		{"debug", newDebugCmd},
		{"generate", newGenerateCmd},
		{"explain", newExplainCmd},
		{"logs", newLogsCmd},
		{"version", newVersionCmd},
		{"completion", newCompletionCmd},
		{"man", newManCmd},
	}...))
	return root
}

// note says what was understood, or progress: on stderr, and only where a
// person reads it.
func (a *app) note(format string, args ...any) {
	if a.ErrTTY || a.global.verbose {
		fmt.Fprintf(a.Err, format+"\n", args...)
	}
}

// warn says on stderr what the user must know, always.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.Err, "warning: %s\n", oneLine(fmt.Sprintf(format, args...)))
}

// deadline bounds a command by --timeout. A command that works as long as there
// is data has no bound unless the flag was given.
func (a *app) deadline(c *cobra.Command, always bool) (context.Context, context.CancelFunc) {
	if always || c.Flags().Changed("timeout") {
		return context.WithTimeout(c.Context(), a.global.timeout)
	}
	return context.WithCancel(c.Context())
}

// applets are the names under which mqx stands in for Apache's scripts.
var applets = map[string][]string{
	"mqnamesrv": {"nameserver", "start"},
	"mqbroker":  {"broker", "start"},
	"mqadmin":   {"mqadmin"},
}

// Serves reports whether the arguments of the process start a server, which runs for long: all other commands are short. A flag with
// a value before the command hides it.
func Serves(args []string) bool {
	words := appletArgs(args)
	for i, w := range words {
		switch {
		case w == "start" && i > 0 && slices.Contains([]string{"broker", "nameserver", "namesrv"}, words[i-1]):
			return true
		case w == "dev" || w == "exporter":
			return !slices.ContainsFunc(words[:i], func(before string) bool { return !strings.HasPrefix(before, "-") })
		}
	}
	return false
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
