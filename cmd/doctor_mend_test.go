package cmd

import (
	"regexp"
	"strings"
	"testing"

	"mqx/doctor"
)

var mendLine = regexp.MustCompile(`\bmqx (?:[^;m]|m[^q]|m$)*`)

// The commands that rules name are there, with the flags that they name.
func TestMendsAreCommands(t *testing.T) {
	root := newRootCmd(&app{})
	named := 0
	for _, r := range doctor.Rules() {
		for _, line := range mendLine.FindAllString(r.Mend, -1) {
			words := strings.Fields(strings.ReplaceAll(line, ",", ""))[1:]
			c, rest, err := root.Find(words)
			if err != nil || c == root || isGroup(c) {
				t.Errorf("%s: %q is no command: %v", r.ID, line, err)
				continue
			}
			named++
			for _, w := range rest {
				name, _, _ := strings.Cut(strings.Trim(w, ".,:()"), "=")
				flags := c.Flags()
				switch {
				case strings.HasPrefix(name, "--"):
					if flags.Lookup(name[2:]) == nil && c.InheritedFlags().Lookup(name[2:]) == nil {
						t.Errorf("%s: %q has no flag %s", r.ID, c.CommandPath(), name)
					}
				case len(name) == 2 && name[0] == '-':
					if flags.ShorthandLookup(name[1:]) == nil {
						t.Errorf("%s: %q has no flag %s", r.ID, c.CommandPath(), name)
					}
				}
			}
		}
	}
	if named < 40 {
		t.Errorf("only %d commands are named", named)
	}
}
