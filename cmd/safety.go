package cmd

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// safetyFlags are the flags of every command that changes something.
type safetyFlags struct {
	yes      bool
	confirm  string
	dryRun   bool
	exitCode bool
}

func (s *safetyFlags) add(c *cobra.Command, destructive bool) {
	grouped(c, groupSafety, func(f *pflag.FlagSet) {
		f.BoolVar(&s.dryRun, "dry-run", false, "show what would change and do nothing")
		f.BoolVar(&s.exitCode, "exit-code", false, "with --dry-run: exit with 6 when something would change")
		if destructive {
			f.StringVar(&s.confirm, "confirm", "", "the name of what is destroyed, in place of the question")
			f.BoolVarP(&s.yes, "yes", "y", false, "answers no question that asks for a name")
		} else {
			f.BoolVarP(&s.yes, "yes", "y", false, "do it without a question")
		}
	})
}

// agree asks for leave to do what has been shown. name is what a destructive
// act asks to be typed; "" makes it a plain question. It returns nil when the
// answer is yes.
func (a *app) agree(s *safetyFlags, name string) error {
	if a.global.readOnly {
		return failf(ExitDenied, "refused by --read-only")
	}
	switch {
	case name != "" && s.confirm != "":
		if s.confirm != name {
			return usagef("cannot take --confirm %q: the name is %q", s.confirm, name).try("--confirm %s", name)
		}
		return nil
	case name == "" && s.yes:
		return nil
	case a.InTTY && a.ErrTTY:
		return a.ask(name)
	case name != "":
		return usagef("this destroys %q, and there is no terminal to ask", name).
			because("a destructive act asks for the name; --yes does not answer").try("--confirm %s", name)
	default:
		return usagef("not confirmed, nothing was done").because("this changes something, and there is no terminal to ask").try("--yes")
	}
}

func (a *app) ask(name string) error {
	if name != "" {
		fmt.Fprintf(a.Err, "Type %s to do this: ", name)
	} else {
		fmt.Fprint(a.Err, "Do this? [y/N] ")
	}
	answer, err := bufio.NewReader(a.In).ReadString('\n')
	answer = strings.TrimSpace(answer)
	if err != nil && answer == "" {
		return usagef("not confirmed, nothing was done").because("no answer came").try("--yes, or --confirm NAME")
	}
	if name != "" && answer == name || name == "" && (answer == "y" || answer == "yes" || answer == "Y") {
		return nil
	}
	return usagef("not confirmed, nothing was done").because("the answer was another one").try("the command again")
}
