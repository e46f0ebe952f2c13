package cmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestPartsHaveTheNamesOfTheirCommands(t *testing.T) {
	a := &app{env: func(string) string { return "" }}
	root := newRootCmd(a)
	adminCmd, _, err := root.Find([]string{"admin"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*cobra.Command{root, adminCmd} {
		var want []string
		for _, sub := range c.Commands() {
			if sub.Name() != "help" {
				want = append(append(want, sub.Name()), sub.Aliases...)
			}
		}
		got := strings.Fields(c.Annotations[partsAnnotation])
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: parts %q, commands %q", c.Name(), got, want)
		}
	}
}

// Only what is named is built, and a word behind it is taken for no other command's name.
func TestOnlyPartsThatAreNamedAreBuilt(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // commands below admin
	}{
		{"admin namesrv get -g group-1", "nameserver"},
		{"admin topic get group", "group topic"},
		{"admin tpoic get -g group-1", "all"},
		{"admin", "all"},
	} {
		a := &app{env: func(string) string { return "" }, asked: strings.Fields(c.args)}
		root := newRootCmd(a)
		adminCmd, _, err := root.Find([]string{"admin"})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, sub := range adminCmd.Commands() {
			names = append(names, sub.Name())
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != c.want && (c.want != "all" || len(names) != len(adminNouns)) {
			t.Errorf("%q builds %s, want %s", c.args, got, c.want)
		}
	}
	a := &app{env: func(string) string { return "" }, asked: strings.Fields("wiat topic get top")}
	if err := unknownCommand(newRootCmd(a), "wiat"); !strings.Contains(asFailure(err).Try, "mqx wait") {
		t.Errorf("nearest name: %v", asFailure(err))
	}
}
