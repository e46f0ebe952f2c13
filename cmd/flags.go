package cmd

import (
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The groups under which help lists flags, in this order.
const (
	groupTarget  = "Target"
	groupRange   = "Range"
	groupMessage = "Message"
	groupFilter  = "Filter"
	groupLoad    = "Load"
	groupServer  = "Server"
	groupOutput  = "Output"
	groupSafety  = "Safety"
	groupGlobal  = "Global"
)

var flagGroups = []string{groupTarget, groupRange, groupMessage, groupLoad, groupServer, groupFilter, groupOutput, groupSafety, groupGlobal}

const groupAnnotation = "mqx_group"

// grouped adds flags to a command and notes the group that help lists them under.
func grouped(c *cobra.Command, group string, add func(f *pflag.FlagSet)) {
	groupedSet(c.Flags(), group, add)
}

func groupedSet(to *pflag.FlagSet, group string, add func(f *pflag.FlagSet)) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(f)
	f.VisitAll(func(flag *pflag.Flag) {
		flag.Annotations = map[string][]string{groupAnnotation: {group}}
		to.AddFlag(flag)
	})
}

func flagGroup(f *pflag.Flag) string {
	if g := f.Annotations[groupAnnotation]; len(g) == 1 && slices.Contains(flagGroups, g[0]) {
		return g[0]
	}
	return groupGlobal
}

// globalFlags are the flags that every command has.
type globalFlags struct {
	verbose   bool
	color     string
	timeout   time.Duration
	partial   string
	noHeaders bool
	readOnly  bool
	context   string
}

const defaultTimeout = 5 * time.Second

func (g *globalFlags) add(root *cobra.Command) {
	groupedSet(root.PersistentFlags(), groupGlobal, func(f *pflag.FlagSet) {
		f.BoolVarP(&g.verbose, "verbose", "v", false, "say more on stderr; servers log what they do")
		f.StringVar(&g.color, "color", "auto", "colour in tables: auto, always or never")
		f.DurationVar(&g.timeout, "timeout", defaultTimeout, "time for the whole command; produce, consume and bench have none unless it is given")
		f.StringVar(&g.partial, "partial", "fail", "when some brokers did not answer: fail (exit code 3) or ok")
		f.BoolVar(&g.noHeaders, "no-headers", false, "leave the header line out")
		f.StringVar(&g.context, "context", "", "the context to use, in place of the current one; see mqx help contexts")
		f.BoolVar(&g.readOnly, "read-only", false, "refuse everything that would change something")
	})
}

// check refuses values that are none of the choices.
func (g *globalFlags) check() error {
	for _, c := range []struct {
		flag, value string
		choices     []string
	}{
		{"color", g.color, []string{"auto", "always", "never"}},
		{"partial", g.partial, []string{"fail", "ok"}},
	} {
		if !slices.Contains(c.choices, c.value) {
			return notOneOf("--"+c.flag, c.value, c.choices...)
		}
	}
	if g.timeout <= 0 {
		return usagef("cannot use --timeout %s: it must be more than nothing", g.timeout).try("--timeout 5s")
	}
	return nil
}
