package cmd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// asksName reports whether a command says in its flags that it asks for the name.
func asksName(c *cobra.Command) bool {
	yes := c.Flags().Lookup("yes")
	return yes != nil && yes.Usage == yesAnswersNothing
}

// destroying are the verbs that always destroy, whatever they are given.
var destroying = []string{"rm", "purge"}

// Verbs that destroy ask for the name: their flags say so, no example answers with --yes, and a script sees that --yes
// is no answer.
func TestVerbsThatDestroyAskForTheName(t *testing.T) {
	refused := map[string]bool{} // commands that a script runs with --yes, in vain
	scripts, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	root := newRootCmd(&app{env: func(string) string { return "" }})
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		runs, well := scriptRuns(string(text))
		for i, run := range runs {
			words := strings.Fields(run)
			if c, _, err := root.Find(words); err == nil && !well[i] && slices.Contains(words, "--yes") {
				refused[c.CommandPath()] = true
			}
		}
	}
	seen := 0
	eachCommand(root, func(c *cobra.Command) {
		path := c.CommandPath()
		if c.Hidden || isGroup(c) || !strings.HasPrefix(path, "mqx admin ") && !strings.HasPrefix(path, "mqx context ") {
			return
		}
		destroys := slices.Contains(destroying, c.Name())
		if destroys && !asksName(c) {
			t.Errorf("%q does not ask for the name", path)
		}
		if !asksName(c) {
			return
		}
		seen++
		for _, e := range exampleCommands(c.Example) {
			if slices.Contains(e.args, c.Name()) && (slices.Contains(e.args, "--yes") || slices.Contains(e.args, "-y")) {
				t.Errorf("%q: the example %q answers with --yes", path, e.args)
			}
		}
		foreign := false
		for prefix := range notServed {
			foreign = foreign || strings.HasPrefix(path, prefix)
		}
		if destroys && !foreign && !refused[path] {
			t.Errorf("no script sees that %q refuses --yes", path)
		}
	})
	if seen < 12 {
		t.Errorf("only %d verbs that ask for the name", seen)
	}
}
