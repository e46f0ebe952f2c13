package cmd

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// mistaken runs mqx with a mistake in its arguments and asks for what every
// mistake gets: exit code 2, nothing on stdout, and the three lines. It returns
// them without their words.
func mistaken(t *testing.T, args ...string) (what, why, try string) {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	var out, errOut bytes.Buffer
	code := Execute(t.Context(), append([]string{"mqx"}, args...), Streams{In: strings.NewReader(""), Out: &out, Err: &errOut})
	lines := strings.Split(strings.TrimSuffix(errOut.String(), "\n"), "\n")
	if code != ExitUsage || out.Len() > 0 || len(lines) != 3 {
		t.Errorf("mqx %q: exit code %d, stdout %q, stderr:\n%s", args, code, out.String(), errOut.String())
		return "", "", ""
	}
	for i, word := range []string{"error: ", "why: ", "try: "} {
		text, ok := strings.CutPrefix(lines[i], word)
		if !ok || strings.TrimSpace(text) == "" {
			t.Errorf("mqx %q: line %d is %q, want %sand something behind it", args, i+1, lines[i], word)
		}
		lines[i] = text
	}
	return lines[0], lines[1], lines[2]
}

// placeholders are arguments that let a command get as far as its flags.
func placeholders(c *cobra.Command) []string {
	_, rest, _ := strings.Cut(c.Use, " ")
	var args []string
	inside := false // of brackets: may be left out
	for _, word := range strings.Fields(rest) {
		inside = inside || strings.HasPrefix(word, "[")
		left := inside
		inside = inside && !strings.HasSuffix(word, "]")
		if left || word == "|" {
			continue
		}
		args = append(args, "NAME")
	}
	return args
}

// Every command answers every kind of mistake alike.
func TestMistakesAreExplained(t *testing.T) {
	if raced {
		t.Skip("it runs without the race detector: nothing is concurrent here")
	}
	root := newRootCmd(&app{env: func(string) string { return "" }})
	seen := 0
	eachCommand(root, func(c *cobra.Command) {
		if c.Hidden || c.DisableFlagParsing {
			return
		}
		path := strings.Fields(c.CommandPath())[1:]
		with := func(args ...string) []string { return append(append([]string(nil), path...), args...) }
		if what, _, _ := mistaken(t, with("--no-such-flag-anywhere")...); !strings.Contains(what, "--no-such-flag-anywhere") {
			t.Errorf("%q: %q does not name the flag", c.CommandPath(), what)
		}
		mistaken(t, with("-Z")...)
		if isGroup(c) {
			mistakenNames(t, c, with)
			return
		}
		seen++
		mistakenArguments(t, c, with)
		if c.Name() == "version" { // they are the same everywhere
			c.InheritedFlags().VisitAll(func(f *pflag.Flag) { mistakenFlag(t, f, with, placeholders(c)) })
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { mistakenFlag(t, f, with, placeholders(c)) })
	})
	if seen < 15 {
		t.Fatalf("only %d commands looked at", seen)
	}
}

func mistakenNames(t *testing.T, c *cobra.Command, with func(...string) []string) {
	t.Helper()
	mistaken(t, with("xyzzy-xyzzy")...)
	for _, sub := range c.Commands() {
		if name := sub.Name(); sub.IsAvailableCommand() && len(name) > 3 && name[1] != name[2] {
			_, _, try := mistaken(t, with(name[:1]+name[2:3]+name[1:2]+name[3:])...) // two letters swapped
			if want := c.CommandPath() + " " + name; try != want {
				t.Errorf("%q: the nearest name of %s is %q", c.CommandPath(), name, try)
			}
		}
	}
}

func mistakenArguments(t *testing.T, c *cobra.Command, with func(...string) []string) {
	t.Helper()
	if strings.Contains(c.Use, "...") {
		return // takes any number
	}
	mistaken(t, with("a", "b", "c", "d", "e")...)
	if len(placeholders(c)) > 0 {
		mistaken(t, with()...)
	}
}

// choices are the flags whose texts are one of a few.
var choiceFlags = map[string]bool{"color": true, "partial": true, "show": true, "body": true, "perm": true, "output": true, "input": true}

// takesAnyText tells flags of these names that are no choice: those of Apache's options, and the text that find looks for.
func takesAnyText(flag string, path []string) bool {
	return path[0] == "mqadmin" || flag == "body" && slices.Equal(path, []string{"store", "find"})
}

func mistakenFlag(t *testing.T, f *pflag.Flag, with func(...string) []string, args []string) {
	t.Helper()
	if f.Hidden || f.Name == "help" {
		return
	}
	named := func(extra ...string) {
		t.Helper()
		what, _, _ := mistaken(t, with(append(append([]string(nil), args...), extra...)...)...)
		if !strings.Contains(what, f.Name) && !(f.Name == "output" && strings.Contains(what, "output form")) {
			t.Errorf("%q: %q does not name the flag", with(extra...), what)
		}
	}
	switch {
	case !slices.Contains([]string{"string", "stringArray", "stringSlice"}, f.Value.Type()):
		named(fmt.Sprintf("--%s=nonsense", f.Name))
	case choiceFlags[f.Name] && !takesAnyText(f.Name, with()):
		named("--"+f.Name, "nonsense")
	}
	if f.NoOptDefVal == "" {
		named("--" + f.Name)
	}
	if len(f.Name) > 4 {
		_, _, try := mistaken(t, with("--"+f.Name[:2]+"x"+f.Name[2:])...)
		if !strings.HasPrefix(try, "--") {
			t.Errorf("%q: nothing is near --%s: %q", with(), f.Name, try)
		}
	}
}
