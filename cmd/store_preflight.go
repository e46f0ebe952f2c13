package cmd

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/props"
	"mqx/internal/render"
	"mqx/internal/words"
	"mqx/store/inspect"
)

var storePreflightSchema = render.Schema{Kind: "StorePreflightList", Name: "kind", Fields: []render.Field{
	{Name: "risk", Doc: "does-not-start, loss, misread, or note for what is safe", Tone: render.ToneOf(map[string]render.Tone{"note": render.Good}, render.Warn)},
	{Name: "kind", Doc: "what it is; docs/store.md lists the kinds"},
	{Name: "file", Whole: true, Doc: "name in the directory"},
	{Name: "messages", Kind: render.Int, Doc: "messages or records that are affected, unknown when nothing says how many"},
	{Name: "what", Whole: true, Doc: "what the target makes of it"},
	{Name: "try", Whole: true, Doc: "a setting, a version or a command that makes it safe"},
}}

// preflightOptions are the flags of mqx store preflight.
type preflightOptions struct {
	pace   paceFlag
	store  storeFlags
	output outputFlags
	target string
	conf   string
}

func newStorePreflightCmd(a *app) *cobra.Command {
	o := &preflightOptions{}
	c := &cobra.Command{
		Use:   "preflight DIR",
		Short: "Say whether a version of the broker can open a store, and what it would lose",
		Long: `Reads all of the store and says what the target makes of it: whether it starts, which
messages it cuts or does not serve, what it reads otherwise than it was written, which
settings it needs. Changes nothing. Exit code 6 when something is unsafe.

apache-4.9, apache-5.3 and apache-5.5 are judged as 4.9.7, 5.3.3 and 5.5.0. Without
--broker-conf the target is taken to be configured with the sizes that the files have.`,
		Example: `  mqx store preflight /data/store --target apache-5.5
  mqx store preflight /data/store --target mqx -o json
  mqx store preflight /data/store --target apache-4.9 --broker-conf /etc/rocketmq/broker.conf`,
		Args: exactArgs("DIR"),
		RunE: func(c *cobra.Command, args []string) error { return runStorePreflight(a, c, o, args[0]) },
	}
	o.store.add(c)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVar(&o.target, "target", "", "who is to open it: "+strings.Join(targetNames(), ", "))
		f.StringVar(&o.conf, "broker-conf", "", "configuration file that the target is started with")
	})
	if err := c.RegisterFlagCompletionFunc("target", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return targetNames(), cobra.ShellCompDirectiveNoFileComp
	}); err != nil {
		panic(err)
	}
	o.pace.add(c)
	o.output.addRows(c)
	o.output.add(c)
	return c
}

func targetNames() []string {
	var out []string
	for _, t := range inspect.Targets() {
		out = append(out, string(t))
	}
	return out
}

// settings are those of --broker-conf, nil without it.
func (o *preflightOptions) settings() (map[string]string, error) {
	if o.conf == "" {
		return nil, nil
	}
	f, err := props.Load(o.conf)
	if err != nil {
		return nil, failf(exitOfFile(err), "%w", err).because("the file given with --broker-conf cannot be read").try("the broker.conf of the broker that is to open the store")
	}
	out := map[string]string{}
	for _, e := range f.Entries() {
		out[e.Key] = e.Value
	}
	return out, nil
}

func runStorePreflight(a *app, c *cobra.Command, o *preflightOptions, dir string) error {
	if _, _, err := render.ParseForm(o.output.form); err != nil {
		return usagef("%w", err).try("-o help for the fields, mqx help output for the forms")
	}
	if !o.output.help() {
		if o.target == "" {
			return usagef("cannot check %q without --target: who is to open it", dir).try("--target apache-5.5")
		}
		if !slices.Contains(targetNames(), o.target) {
			return notOneOf("--target", o.target, targetNames()...)
		}
	}
	if err := o.pace.check(); err != nil {
		return err
	}
	conf, err := o.settings()
	if err != nil {
		return err
	}
	return a.storeRows(c, &o.store, dir, &o.output, storeOutput{schema: storePreflightSchema}, func(ctx context.Context, d *inspect.Dir, w *render.Writer) error {
		a.beside(d, &o.pace)
		bar := newProgressLine(a, "check")
		list, err := inspect.Preflight(ctx, d, inspect.PreflightOptions{Target: inspect.Target(o.target), Conf: conf, OnProgress: bar.set})
		bar.end()
		if err != nil {
			return err
		}
		unsafe := int64(0)
		for _, x := range list {
			if x.Unsafe() {
				unsafe++
			}
			if err := w.Row(string(x.Risk), x.Kind, orUnknown(x.File), knownInt(x.Messages), x.What, orUnknown(x.Try)); err != nil {
				return err
			}
		}
		if unsafe > 0 {
			a.note("not safe for %s: %s", o.target, words.Count(unsafe, "reason"))
			return silentError{ExitCheckFailed}
		}
		a.note("safe for %s", o.target)
		return nil
	})
}
