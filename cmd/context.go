package cmd

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/contexts"
	"mqx/internal/render"
	"mqx/internal/userfile"
	remoteclient "mqx/remoting/client"
)

func newContextCmd(a *app) *cobra.Command {
	return asGroup(
		&cobra.Command{
			Use: "context", Aliases: []string{"contexts"}, Short: "Name servers, credentials, store directory and marks, by name",
			Example: `  mqx context add prod -n '10.0.0.1:9876;10.0.0.2:9876' --mark protected
  mqx context use prod
  mqx context show
  mqx admin topic ls --context test`,
		},
		newContextAddCmd(a), newContextLsCmd(a), newContextUseCmd(a), newContextShowCmd(a), newContextEditCmd(a), newContextRmCmd(a),
	)
}

// contextOptions are the flags that say what a context holds.
type contextOptions struct {
	target targetFlags
	store  string
	mark   []string
	unmark []string
	use    bool
}

const (
	markReadOnly  = "read-only"
	markProtected = "protected"
)

func (o *contextOptions) add(c *cobra.Command) {
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVar(&o.store, "store", "", "store directory on this machine")
	})
	grouped(c, groupSafety, func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.mark, "mark", nil, "mark the cluster read-only or protected; may be repeated")
	})
	completeFlag(c, "mark", cobra.FixedCompletions([]string{markReadOnly, markProtected}, cobra.ShellCompDirectiveNoFileComp))
}

// set puts what the flags say into a context.
func (o *contextOptions) set(c *cobra.Command, to *contexts.Context) error {
	flags := c.Flags()
	if flags.Changed("namesrv") {
		addrs, err := remoteclient.ParseAddrs(o.target.namesrv)
		if err != nil {
			return usagef("cannot use name servers %q: %w", o.target.namesrv, err).try("-n 10.0.0.1:9876")
		}
		to.NameServers = addrs
	}
	for _, s := range []struct {
		flag string
		from *sourceFlag
		to   *contexts.Source
	}{
		{"access-key", &o.target.secrets.accessKey, &to.AccessKey},
		{"secret-key", &o.target.secrets.secretKey, &to.SecretKey},
		{"security-token", &o.target.secrets.securityToken, &to.SecurityToken},
	} {
		if flags.Changed(s.flag) {
			*s.to = s.from.source
		}
	}
	if flags.Changed("store") {
		to.Store = o.store
	}
	if flags.Changed("map") {
		m, err := remoteclient.ParseAddrMap(slices.DeleteFunc(slices.Clone(o.target.mapped), func(e string) bool { return e == "" }))
		if err != nil {
			return usagef("%w", err).try("--map 172.17.0.3:10911=127.0.0.1:20911")
		}
		to.Map = m.Entries()
	}
	o.setTLS(flags, to)
	for _, m := range o.mark {
		if err := setMark(to, "--mark", m, true); err != nil {
			return err
		}
	}
	for _, m := range o.unmark {
		if err := setMark(to, "--unmark", m, false); err != nil {
			return err
		}
	}
	return to.Check()
}

func (o *contextOptions) setTLS(flags *pflag.FlagSet, to *contexts.Context) {
	if flags.Changed("tls") && !o.target.tls {
		to.TLS = nil
		return
	}
	t := contexts.TLS{}
	if to.TLS != nil {
		t = *to.TLS
	}
	changed := flags.Changed("tls")
	for flag, s := range map[string]struct{ from, to *string }{"tls-ca": {&o.target.ca, &t.CA}, "tls-cert": {&o.target.cert, &t.Cert}, "tls-key": {&o.target.key, &t.Key}} {
		if flags.Changed(flag) {
			*s.to, changed = *s.from, true
		}
	}
	if flags.Changed("tls-key-password") {
		t.KeyPassword, changed = o.target.secrets.tlsKeyPassword.source, true
	}
	if changed {
		to.TLS = &t
	}
}

func setMark(c *contexts.Context, flag, mark string, on bool) error {
	switch mark {
	case markReadOnly:
		c.ReadOnly = on
	case markProtected:
		c.Protected = on
	default:
		return notOneOf(flag, mark, markReadOnly, markProtected)
	}
	return nil
}

// editContexts changes the file of contexts.
func (a *app) editContexts(change func(f *contexts.File) error) error {
	if a.global.readOnly {
		return failf(ExitDenied, "refused by --read-only").because("this would change something").try("the command without --read-only")
	}
	path, err := contexts.Path(a.env)
	if err != nil {
		return failf(ExitFailed, "cannot find the directory for configuration").because("neither XDG_CONFIG_HOME nor HOME is set").try("XDG_CONFIG_HOME=DIR mqx context ...")
	}
	return userfile.Locked(path, func() error {
		f, _, err := a.contextsFile()
		if err != nil {
			return err
		}
		if err := change(f); err != nil {
			return err
		}
		return f.Save(path)
	})
}

func newContextAddCmd(a *app) *cobra.Command {
	o := &contextOptions{}
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a context",
		Long: `A context holds what commands need to reach a cluster. Secrets are kept as the
place where they are found (env:NAME, file:PATH, cmd:COMMAND), not themselves, unless
you say text:SECRET; the file is yours alone (mode 0600).

A mark belongs to the cluster, however it is reached: with --mark read-only every
change is refused, with --mark protected every change asks for the name.`,
		Example: `  mqx context add test -n 127.0.0.1:9876 --use
  mqx context add prod -n '10.0.0.1:9876;10.0.0.2:9876' --mark protected --access-key text:ops --secret-key 'cmd:pass show mqx/prod'
  mqx context add lab -n 127.0.0.1:9876 --map 172.17.0.3:10911=127.0.0.1:20911
  mqx context add local --store /var/lib/mqx --mark read-only`,
		Args: exactArgs("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			added := contexts.Context{Name: args[0]}
			if err := o.set(c, &added); err != nil {
				return contextMistake(err)
			}
			if len(added.NameServers) == 0 && added.Store == "" {
				return usagef("cannot add context %q: it has neither name servers nor a store directory", args[0]).try("mqx context add %s -n 10.0.0.1:9876", args[0])
			}
			return a.editContexts(func(f *contexts.File) error {
				if old := f.Get(args[0]); old != nil && !reflect.DeepEqual(*old, added) {
					return usagef("cannot add context %q: it is there already", args[0]).try("mqx context edit %s", args[0])
				}
				f.Put(added)
				if o.use {
					f.Current = args[0]
				} else if f.Current != args[0] {
					a.note("make it the current one: mqx context use %s", args[0])
				}
				return nil
			})
		},
	}
	o.add(c)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.BoolVar(&o.use, "use", false, "make it the current one")
	})
	return c
}

// contextMistake: what is wrong with a context is wrong usage.
func contextMistake(err error) error {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return usagef("%w", err)
}

var contextSchema = render.Schema{Kind: "ContextList", Name: "name", Fields: []render.Field{
	{Name: "name", Doc: "context"},
	{Name: "current", Kind: render.Bool, Tone: presentBool, Doc: "the one of commands that name none"},
	{Name: "namesrv", Kind: render.List, Doc: "name servers"},
	{Name: "readOnly", Kind: render.Bool, Doc: "every change of the cluster is refused"},
	{Name: "protected", Kind: render.Bool, Doc: "every change of the cluster asks for the name"},
	{Name: "store", Doc: "store directory; unknown when none is given"},
	{Name: "map", Kind: render.List, Wide: true, Doc: "addresses that stand for others, as FROM=TO"},
	{Name: "tls", Title: "TLS", Kind: render.Bool, Wide: true, Doc: "connections are encrypted"},
	{Name: "accessKey", Wide: true, Doc: "where the access key is found; unknown when none is given"},
	{Name: "secretKey", Wide: true, Doc: "where the secret key is found; unknown when none is given"},
}}

func presentBool(v any) render.Tone {
	if on, ok := v.(bool); ok && on {
		return render.Good
	}
	return render.Dim
}

// printRows prints rows that are at hand.
func (a *app) printRows(o *outputFlags, s render.Schema, rows func() ([][]any, error)) error {
	out, closeOut, err := a.open(o)
	if err != nil {
		return err
	}
	w, err := a.renderer(out, o, s, false)
	if err != nil {
		return err
	}
	if w.Help() {
		return w.Close()
	}
	list, err := rows()
	if err != nil {
		return errors.Join(err, closeOut())
	}
	for _, row := range list {
		if err := w.Row(row...); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), closeOut())
}

func newContextLsCmd(a *app) *cobra.Command {
	o := &outputFlags{}
	c := &cobra.Command{
		Use:     "ls",
		Short:   "List the contexts",
		Example: "  mqx context ls\n  mqx context ls -o name",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			return a.printRows(o, contextSchema, func() ([][]any, error) {
				f, _, err := a.contextsFile()
				if err != nil {
					return nil, err
				}
				var rows [][]any
				for i := range f.Contexts {
					x := &f.Contexts[i]
					rows = append(rows, []any{
						x.Name, x.Name == f.Current, listOf(x.NameServers), x.ReadOnly, x.Protected, orUnknown(x.Store), listOf(x.Map),
						x.TLS != nil, orUnknown(x.AccessKey.String()), orUnknown(x.SecretKey.String()),
					})
				}
				return rows, nil
			})
		},
	}
	o.addRows(c)
	o.add(c)
	return c
}

// listOf is a list of a record; never nil, which would be unknown.
func listOf(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func newContextUseCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "use NAME",
		Short:             "Make a context the current one",
		Example:           "  mqx context use prod",
		Args:              exactArgs("NAME"),
		ValidArgsFunction: completeContexts(a),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.editContexts(func(f *contexts.File) error {
				if f.Get(args[0]) == nil {
					return noContextCommand(f, "mqx context use", args[0])
				}
				f.Current = args[0]
				return nil
			})
		},
	}
}

// noContextCommand is noContext for a command that takes the name as its argument.
func noContextCommand(f *contexts.File, command, name string) error {
	e := failf(ExitNotFound, "context %s not found", name)
	if near := nearest(name, f.Names()); near != "" {
		return e.try("%s %s", command, near)
	}
	return e.try("mqx context ls")
}

func newContextRmCmd(a *app) *cobra.Command {
	s := &safetyFlags{}
	c := &cobra.Command{
		Use:   "rm NAME",
		Short: "Remove a context",
		Long: `Takes the context and its marks out of the file; the cluster is not touched. It
asks for the name.`,
		Example:           "  mqx context rm test\n  mqx context rm test --confirm test",
		Args:              exactArgs("NAME"),
		ValidArgsFunction: completeContexts(a),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.editContexts(func(f *contexts.File) error {
				if f.Get(args[0]) == nil {
					return noContextCommand(f, "mqx context rm", args[0])
				}
				if err := a.confirmed(s, act{name: args[0], destructive: true}, "a destructive act asks for the name; --yes does not answer"); err != nil {
					return err
				}
				f.Remove(args[0])
				return nil
			})
		},
	}
	s.addAnswers(c, true)
	return c
}

func completeContexts(a *app) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		f, _, err := a.contextsFile()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.DeleteFunc(f.Names(), func(n string) bool { return !strings.HasPrefix(n, prefix) }), cobra.ShellCompDirectiveNoFileComp
	}
}

func completeContextFlag(a *app) cobra.CompletionFunc {
	complete := completeContexts(a)
	return func(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return complete(c, nil, prefix)
	}
}

var contextValueSchema = render.Schema{Kind: "ContextValueList", Name: "setting", Fields: []render.Field{
	{Name: "setting", Doc: "what is set: context, namesrv, accessKey, secretKey, securityToken, tls, tlsKeyPassword, store, map, readOnly, protected"},
	{Name: "value", Doc: "its value; of a secret the place where it is found; unknown when nothing sets it"},
	{Name: "source", Doc: "what set it: a flag, a variable, a context, the default; unknown when nothing does"},
}}

func newContextShowCmd(a *app) *cobra.Command {
	var target targetFlags
	o := &outputFlags{}
	c := &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show what commands would use, and where each value came from",
		Long: `Without NAME it shows what a command with the same flags and environment would use.
With NAME it shows that context, as --context NAME would choose it. No secret is read.`,
		Example: `  mqx context show
  mqx context show prod
  NAMESRV_ADDR=10.0.0.1:9876 mqx context show -o json`,
		Args:              optionalArg(),
		ValidArgsFunction: completeContexts(a),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				a.global.context = args[0]
			}
			return a.printRows(o, contextValueSchema, func() ([][]any, error) {
				r, err := a.resolve(&target)
				if err != nil {
					return nil, err
				}
				return a.contextValues(r), nil
			})
		},
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) { target.add(f) })
	o.add(c)
	return c
}

func (a *app) contextValues(r *target) [][]any {
	row := func(setting, value, source string) []any { return []any{setting, orUnknown(value), orUnknown(source)} }
	secret := func(setting string, s chosen[contexts.Source]) []any {
		return row(setting, s.value.String(), s.source)
	}
	by := ""
	if r.context != "" {
		by = "the current context"
		switch {
		case a.global.context != "":
			by = "--context"
		case a.env(envContext) != "":
			by = envContext
		}
	}
	tls := ""
	if t := r.tls.value; t != nil {
		tls = strings.TrimSpace(fmt.Sprintf("on %s", strings.Join(slices.DeleteFunc([]string{
			labelled("ca", t.CA), labelled("cert", t.Cert), labelled("key", t.Key),
		}, func(s string) bool { return s == "" }), " ")))
	}
	readOnly, readOnlyBy := markText(r.marks.ReadOnly)
	if a.global.readOnly {
		readOnly, readOnlyBy = "true", "--read-only"
	}
	protected, protectedBy := markText(r.marks.Protected)
	return [][]any{
		row("context", r.context, by),
		row("namesrv", strings.Join(r.nameServers.value, ";"), r.nameServers.source),
		secret("accessKey", r.accessKey),
		secret("secretKey", r.secretKey),
		secret("securityToken", r.token),
		row("tls", tls, r.tls.source),
		secret("tlsKeyPassword", r.keyPassword),
		row("store", r.store.value, r.store.source),
		row("map", strings.Join(r.mapped.value.Entries(), ";"), r.mapped.source),
		row("readOnly", readOnly, readOnlyBy),
		row("protected", protected, protectedBy),
	}
}

func labelled(name, value string) string {
	if value == "" {
		return ""
	}
	return name + "=" + value
}

func markText(by string) (value, source string) {
	if by == "" {
		return "false", ""
	}
	return "true", "context " + by + " has these name servers"
}
