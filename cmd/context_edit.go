package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/contexts"
	"mqx/internal/userfile"
)

func newContextEditCmd(a *app) *cobra.Command {
	o := &contextOptions{}
	c := &cobra.Command{
		Use:   "edit NAME",
		Short: "Change a context",
		Long: `With flags it changes what they say and leaves the rest. Without any it opens the
context in $VISUAL or $EDITOR and takes what is saved there; a text that is no
context is refused, and nothing changes.`,
		Example: `  mqx context edit prod
  mqx context edit prod -n '10.0.0.1:9876;10.0.0.3:9876'
  mqx context edit prod --mark read-only --unmark protected
  mqx context edit prod --secret-key env:PROD_SECRET`,
		Args:              exactArgs("NAME"),
		ValidArgsFunction: completeContexts(a),
		RunE: func(c *cobra.Command, args []string) error {
			if !anyChanged(c) {
				return a.editInEditor(c.Context(), args[0])
			}
			return a.editContexts(func(f *contexts.File) error {
				old := f.Get(args[0])
				if old == nil {
					return noContextCommand(f, "mqx context edit", args[0])
				}
				edited := *old
				if err := o.set(c, &edited); err != nil {
					return contextMistake(err)
				}
				f.Put(edited)
				return nil
			})
		},
	}
	o.add(c)
	grouped(c, groupSafety, func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.unmark, "unmark", nil, "take this mark away; may be repeated")
	})
	completeFlag(c, "unmark", cobra.FixedCompletions([]string{markReadOnly, markProtected}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// anyChanged: some flag of the command itself was given.
func anyChanged(c *cobra.Command) bool {
	changed := false
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { changed = changed || f.Changed })
	return changed
}

// editInEditor has the person edit a context, and takes it when nobody else has changed it meanwhile.
func (a *app) editInEditor(ctx context.Context, name string) error {
	f, _, err := a.contextsFile()
	if err != nil {
		return err
	}
	old := f.Get(name)
	if old == nil {
		return noContextCommand(f, "mqx context edit", name)
	}
	if a.global.readOnly {
		return failf(ExitDenied, "refused by --read-only").because("this would change something").try("the command without --read-only")
	}
	edited, err := a.editor(ctx, *old)
	if err != nil {
		return err
	}
	return a.editContexts(func(f *contexts.File) error {
		if now := f.Get(name); now == nil || !reflect.DeepEqual(*now, *old) {
			return failf(ExitFailed, "cannot change context %q: it was changed meanwhile", name).because("what the editor began with is no longer there").try("mqx context edit %s", name)
		}
		f.Put(*edited)
		return nil
	})
}

const maxEdited = 1 << 20

// editor opens a context in the user's editor and reads what came of it.
func (a *app) editor(ctx context.Context, c contexts.Context) (*contexts.Context, error) {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot write context %q: %w", c.Name, err)
	}
	dir, err := os.MkdirTemp("", "mqx-context-") // mode 0700: there may be a secret in it
	if err != nil {
		return nil, fmt.Errorf("cannot make a temporary directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // nothing is lost with it
	path := filepath.Join(dir, c.Name+".json")
	if err := userfile.Write(path, append(text, '\n')); err != nil {
		return nil, err
	}
	if err := a.runEditor(ctx, path); err != nil {
		return nil, err
	}
	data, err := userfile.Read(path, maxEdited)
	if err != nil {
		return nil, fmt.Errorf("cannot read what was edited: %w", err)
	}
	edited := &contexts.Context{}
	if err := decodeOnly(data, edited); err != nil {
		return nil, usagef("cannot use what was edited: %w", err).try("mqx context edit %s", c.Name)
	}
	if edited.Name != c.Name {
		return nil, usagef("cannot use what was edited: the name is %q and was %q", edited.Name, c.Name).try("mqx context add %s", edited.Name)
	}
	if err := edited.Check(); err != nil {
		return nil, usagef("cannot use what was edited: %w", err).try("mqx context edit %s", c.Name)
	}
	return edited, nil
}

func (a *app) runEditor(ctx context.Context, path string) error {
	editor := cmp.Or(a.env("VISUAL"), a.env("EDITOR"), "vi")
	c := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", path)
	if runtime.GOOS == "windows" {
		c = exec.CommandContext(ctx, "cmd", "/C", cmp.Or(a.env("EDITOR"), "notepad"), path)
	}
	c.Stdin, c.Stdout, c.Stderr = a.In, a.Out, a.Err
	if err := c.Run(); err != nil {
		return failf(ExitFailed, "cannot edit: %w", err).because("the editor " + editor + " did not end well, nothing was changed").try("EDITOR=nano mqx context edit ..., or flags")
	}
	return nil
}
