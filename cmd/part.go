package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// part is a command below another one, which is built only when it is asked for: there
// are several hundred, and making all of them takes longer than most of them run.
type part struct {
	names string // its name and its aliases, a space between them
	build func(*app) *cobra.Command
}

// partsAnnotation has the names of all parts of a command, those that were not built too.
const partsAnnotation = "mqx_parts"

// addParts builds those parts of c that an argument names, or all where none does: then a
// list of them is wanted, or a name is wrong.
func (a *app) addParts(c *cobra.Command, parts []part) {
	var names []string
	named := false
	for _, p := range parts {
		names = append(names, p.names)
		named = named || a.asked != nil && a.builds(p.names)
	}
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[partsAnnotation] = strings.Join(names, " ")
	for _, p := range parts {
		if !named || a.builds(p.names) {
			c.AddCommand(p.build(a))
		}
	}
}

// builds reports whether an argument is one of names, with spaces between them.
func (a *app) builds(names string) bool {
	return a.asked == nil || slices.ContainsFunc(strings.Fields(names), func(name string) bool { return slices.Contains(a.asked, name) })
}
