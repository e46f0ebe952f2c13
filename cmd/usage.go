package cmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// writeHelp prints the help of a command: one line, when to use it, examples,
// sub-commands, then the flags by group.
func writeHelp(w io.Writer, c *cobra.Command) {
	fmt.Fprintln(w, c.Short)
	if c.Long != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(c.Long))
	}
	fmt.Fprintln(w)
	writeUsage(w, c)
}

func writeUsage(w io.Writer, c *cobra.Command) {
	fmt.Fprintf(w, "USAGE\n  %s\n", usageLine(c))
	if c.HasExample() {
		fmt.Fprintf(w, "\nEXAMPLES\n%s\n", strings.TrimRight(c.Example, "\n"))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintln(w, "\nCOMMANDS")
		width := 12
		for _, sub := range c.Commands() {
			width = max(width, len(sub.Name()))
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(w, "  %-*s %s\n", width, sub.Name(), sub.Short)
			}
		}
	}
	for _, group := range flagGroups {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		set.SortFlags = false
		add := func(f *pflag.Flag) {
			if !f.Hidden && flagGroup(f) == group {
				set.AddFlag(f)
			}
		}
		c.LocalNonPersistentFlags().VisitAll(add)
		c.InheritedFlags().VisitAll(add)
		if c == c.Root() {
			c.PersistentFlags().VisitAll(add)
		}
		if set.HasFlags() {
			fmt.Fprintf(w, "\n%s FLAGS\n%s", strings.ToUpper(group), set.FlagUsagesWrapped(100))
		}
	}
	if c == c.Root() {
		fmt.Fprintf(w, "\nHELP TOPICS\n")
		for _, t := range helpTopics {
			fmt.Fprintf(w, "  %-12s %s\n", t.name, t.short)
		}
		fmt.Fprintf(w, "\n`mqx help COMMAND` and `mqx help TOPIC` say more.\n")
	}
}

func usageLine(c *cobra.Command) string {
	if c.Runnable() && !isGroup(c) {
		line := c.CommandPath()
		if _, args, ok := strings.Cut(c.Use, " "); ok {
			line += " " + args
		}
		if c.HasAvailableFlags() && !strings.Contains(line, "[flags]") {
			line += " [flags]"
		}
		return line
	}
	return c.CommandPath() + " COMMAND"
}
