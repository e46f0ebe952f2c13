package cmd

import (
	"strings"

	"github.com/spf13/cobra"
)

const isGroupAnnotation = "mqx_is_group"

func isGroup(c *cobra.Command) bool { return c.Annotations[isGroupAnnotation] != "" }

// asGroup makes c a command that only holds others: alone it prints its help,
// with an unknown name behind it, it names the nearest one.
func asGroup(c *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	c.Annotations = map[string]string{isGroupAnnotation: "yes"}
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		return unknownCommand(c, args[0])
	}
	c.AddCommand(subs...)
	if c.Example == "" {
		c.Example = firstExamples(subs)
	}
	return c
}

// groupExamples is how many examples a group shows that has none of its own.
const groupExamples = 4

// firstExamples are the first examples of the first commands.
func firstExamples(subs []*cobra.Command) string {
	var out []string
	for _, s := range subs {
		line, _, _ := strings.Cut(s.Example, "\n")
		if line != "" && !strings.HasSuffix(line, "\\") && len(out) < groupExamples {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func unknownCommand(c *cobra.Command, name string) error {
	f := usagef("unknown command %q for %q", name, c.CommandPath()).because("no command has that name")
	names := strings.Fields(c.Annotations[partsAnnotation])
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, append([]string{sub.Name()}, sub.Aliases...)...)
		}
	}
	if near := nearest(name, names); near != "" {
		return f.try("%s %s", c.CommandPath(), near)
	}
	return f.try("%s --help", c.CommandPath())
}

// exactArgs asks for the arguments that the usage line names.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usagef("cannot run %q: %s is missing", c.CommandPath(), names[len(args)]).try("%s", usageLine(c))
		}
		if len(args) > len(names) {
			return usagef("cannot run %q: %q is one argument too many", c.CommandPath(), args[len(names)]).try("%s", usageLine(c))
		}
		return nil
	}
}

// optionalArg asks for the arguments named and takes one more.
func optionalArg(names ...string) cobra.PositionalArgs {
	exact := exactArgs(names...)
	return func(c *cobra.Command, args []string) error {
		if len(args) > len(names) && len(args) <= len(names)+1 {
			return nil
		}
		return exact(c, args)
	}
}

// nearest returns the one of names that was probably meant by word, "" when
// none is near.
func nearest(word string, names []string) string {
	best, bestDistance := "", 1+max(2, len(word)/3)
	for _, n := range names {
		d := distance(strings.ToLower(word), strings.ToLower(n))
		if len(word) >= 2 && strings.HasPrefix(n, word) {
			d = min(d, 1)
		}
		if d < bestDistance {
			best, bestDistance = n, d
		}
	}
	return best
}

// distance is the number of letters to change, add, drop or swap with the next
// one to get from a to b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
