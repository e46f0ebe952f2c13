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
	planOut  string
}

func (s *safetyFlags) add(c *cobra.Command, destructive bool) {
	s.addAnswers(c, destructive)
	s.addDry(c)
	grouped(c, groupSafety, func(f *pflag.FlagSet) {
		f.StringVar(&s.planOut, "plan-out", "", "write the plan to this file and do nothing; mqx admin plan apply FILE does it")
	})
}

// addDry adds the flags that only show the plan.
func (s *safetyFlags) addDry(c *cobra.Command) {
	grouped(c, groupSafety, func(f *pflag.FlagSet) {
		f.BoolVar(&s.dryRun, "dry-run", false, "show what would change and do nothing")
		f.BoolVar(&s.exitCode, "exit-code", false, "when only planning: exit with 6 when something would change")
	})
}

// yesAnswersNothing is what --yes does at a command that destroys.
const yesAnswersNothing = "answers no question that asks for a name"

// addAnswers adds the flags that answer the question.
func (s *safetyFlags) addAnswers(c *cobra.Command, destructive bool) {
	confirm, yes := "the name of what is changed, asked for on a cluster that is marked protected", "do it without a question"
	if destructive {
		confirm, yes = "the name of what is destroyed, in place of the question", yesAnswersNothing
	}
	grouped(c, groupSafety, func(f *pflag.FlagSet) {
		f.StringVar(&s.confirm, "confirm", "", confirm)
		f.BoolVarP(&s.yes, "yes", "y", false, yes)
	})
}

// planOnly: nothing is to be done.
func (s *safetyFlags) planOnly() bool { return s.dryRun || s.planOut != "" }

// addConfirm adds the flag of commands that are no planned change.
func addConfirm(c *cobra.Command, to *string, what string) {
	grouped(c, groupSafety, func(f *pflag.FlagSet) {
		f.StringVar(to, "confirm", "", "the name of "+what+": asked for on a cluster that is marked protected")
	})
}

// act is a change that asks for leave.
type act struct {
	name        string // of what is changed
	destructive bool   // it asks for the name on every cluster
}

// agree asks for leave to do what has been shown. It returns nil when the answer is
// yes. A destructive act, and every one on a protected cluster, asks for the name.
func (a *app) agree(t *targetFlags, s *safetyFlags, act act) error {
	if err := a.mayNotChange(t); err != nil {
		return err
	}
	r, err := a.resolve(t)
	if err != nil {
		return err
	}
	why := ""
	switch {
	case act.destructive:
		why = "a destructive act asks for the name; --yes does not answer"
	case r.marks.Protected != "":
		why = "context " + r.marks.Protected + " marks the cluster protected: every change asks for the name"
	}
	return a.confirmed(s, act, why)
}

// confirmed asks for leave. why is the reason that the name must be given, "" when a
// plain answer is enough.
func (a *app) confirmed(s *safetyFlags, act act, why string) error {
	named := why != ""
	switch {
	case named && s.confirm != "":
		if s.confirm != act.name {
			return usagef("cannot take --confirm %q: the name is %q", s.confirm, act.name).try("--confirm %s", act.name)
		}
		return nil
	case !named && (s.yes || s.confirm == act.name):
		return nil
	case a.InTTY && a.ErrTTY:
		return a.ask(act.name, named)
	case act.destructive:
		return usagef("this destroys %q, and there is no terminal to ask", act.name).because(why).try("--confirm %s", act.name)
	case named:
		return usagef("this changes %q, and there is no terminal to ask", act.name).because(why).try("--confirm %s", act.name)
	default:
		return usagef("not confirmed, nothing was done").because("this changes something, and there is no terminal to ask").try("--yes")
	}
}

func (a *app) ask(name string, named bool) error {
	if named {
		fmt.Fprintf(a.Err, "Type %s to do this: ", name)
	} else {
		fmt.Fprint(a.Err, "Do this? [y/N] ")
	}
	answer, err := bufio.NewReader(a.In).ReadString('\n')
	answer = strings.TrimSpace(answer)
	if err != nil && answer == "" {
		return usagef("not confirmed, nothing was done").because("no answer came").try("--yes, or --confirm NAME")
	}
	if named && answer == name || !named && (answer == "y" || answer == "yes" || answer == "Y") {
		return nil
	}
	return usagef("not confirmed, nothing was done").because("the answer was another one").try("the command again")
}
