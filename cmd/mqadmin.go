package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/contexts"
	"mqx/internal/userfile"
)

// mqadminLater are the commands of Apache's mqadmin that are not served yet, and
// what does the same here today; "" where nothing does.
var mqadminLater = map[string]string{}

// mqadminNever are the commands of Apache's mqadmin that are not served, and why.
var mqadminNever = map[string]string{
	"exportMetadataInRocksDB": "it reads a RocksDB directory of the configuration of a broker, for which there is no reader here",
}

func newMqadminCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "mqadmin COMMAND",
		Short: "Apache's spelling of the admin commands, for runbooks that have it",
		Long: `Takes the names and options of Apache's mqadmin and prints the same columns; exit
codes and errors are those of mqx, and one line on stderr says how mqx spells it. A
symlink named mqadmin does the same. As there, nothing is asked before a change; a
cluster that is marked protected asks for the name all the same (--confirm NAME).`,
		Example: `  mqx mqadmin topicList -n 10.0.0.1:9876
  mqx mqadmin updateTopic -c DefaultCluster -t ORDERS -r 8 -w 8
  mqx mqadmin help topicRoute`,
		Args:               cobra.ArbitraryArgs,
		DisableFlagParsing: true,
		RunE:               func(c *cobra.Command, args []string) error { return runMqadmin(c, args) },
	}
	if !a.builds("mqadmin") {
		return c
	}
	c.AddCommand(newMqadminTopicCmds(a)...)
	c.AddCommand(newMqadminGroupCmds(a)...)
	c.AddCommand(newMqadminOffsetCmds(a)...)
	c.AddCommand(newMqadminConfigCmds(a)...)
	c.AddCommand(newMqadminBrokerCmds(a)...)
	c.AddCommand(newMqadminCheckCmds(a)...)
	c.AddCommand(newMqadminClientCmds(a)...)
	c.AddCommand(newMqadminStatsCmds(a)...)
	c.AddCommand(newMqadminHACmds(a)...)
	c.AddCommand(newMqadminLiteCmds(a)...)
	c.AddCommand(newMqadminExportCmds(a)...)
	c.AddCommand(newMqadminMessageCmds(a)...)
	c.AddCommand(newMqadminChangeCmds(a)...)
	c.AddCommand(newMqadminAuthCmds(a)...)
	c.AddCommand(newMqadminStaticCmds(a)...)
	return c
}

// runMqadmin is for what is no command of its own: none, help, and those that are
// not there yet.
func runMqadmin(c *cobra.Command, args []string) error {
	if len(args) > 1 && args[0] == "help" {
		for _, sub := range c.Commands() {
			if strings.EqualFold(sub.Name(), args[1]) {
				return sub.Help()
			}
		}
		args = args[1:]
	}
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		return c.Help()
	}
	for name, why := range mqadminNever {
		if strings.EqualFold(name, args[0]) {
			return failf(ExitFailed, "the mqadmin command %s is not served", name).because(why).try("Apache's mqadmin on that machine")
		}
	}
	for name, hint := range mqadminLater {
		if !strings.EqualFold(name, args[0]) {
			continue
		}
		f := failf(ExitFailed, "the mqadmin command %s is not there yet", name)
		if hint == "" {
			return f.because("mqx has nothing that does the same so far").try("Apache's mqadmin against this cluster: mqx speaks its protocol")
		}
		return f.because("mqx has a command of its own for it").try("%s", hint)
	}
	if strings.HasPrefix(args[0], "-") {
		return usagef("cannot run %q: COMMAND is missing", c.CommandPath()).try("mqx mqadmin topicList")
	}
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	names = slices.AppendSeq(slices.AppendSeq(names, maps.Keys(mqadminLater)), maps.Keys(mqadminNever))
	f := usagef("unknown command %q for %q", args[0], c.CommandPath()).because("Apache's mqadmin has no command of that name either")
	if near := nearest(args[0], names); near != "" {
		return f.try("%s %s", c.CommandPath(), near)
	}
	return f.try("%s --help", c.CommandPath())
}

// apacheArgs makes arguments of Apache's mqadmin ours: names of commands are found
// whatever their case, and an option of several letters may have one dash.
func apacheArgs(root *cobra.Command, args []string) []string {
	if len(args) < 2 || args[0] != "mqadmin" {
		return args
	}
	parent, _, err := root.Find(args[:1])
	if err != nil {
		return args
	}
	out := append([]string(nil), args...)
	for _, sub := range parent.Commands() {
		if !strings.EqualFold(sub.Name(), args[1]) {
			continue
		}
		out[1] = sub.Name()
		for i := 2; i < len(out); i++ {
			name, _, _ := strings.Cut(strings.TrimPrefix(out[i], "-"), "=")
			if strings.HasPrefix(out[i], "-") && len(name) > 1 && sub.Flags().Lookup(name) != nil {
				out[i] = "-" + out[i]
			}
		}
	}
	return out
}

// mqadminOptions are what every command of mqadmin has.
type mqadminOptions struct {
	target targetFlags
	safety safetyFlags
}

// oursAnnotation is how mqx spells a command of mqadmin; docs/mqadmin.md is made of it.
const oursAnnotation = "mqx_ours"

// mqadminCmd makes a command. required are the options that must be given, one of
// the names in "a|b"; ours is how mqx spells the same.
func mqadminCmd(a *app, name, short, ours string, changes bool, required []string, add func(f *pflag.FlagSet), run func(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client) error) *cobra.Command {
	o := &mqadminOptions{}
	c := &cobra.Command{
		Use: name, Short: short, Example: "  mqx mqadmin " + name + exampleOf(required) + "\n  " + ours,
		Annotations: map[string]string{oursAnnotation: ours},
		Args:        exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			for _, group := range required {
				if !anyGiven(c, group) {
					return usagef("cannot run %q: %s is missing", c.CommandPath(), "--"+strings.ReplaceAll(group, "|", " or --")).try("mqx mqadmin help %s", name)
				}
			}
			keys, err := toolsKeys(a.env)
			if err != nil {
				return err
			}
			o.target.last = keys
			client, err := a.adminClient(c.Context(), &o.target)
			if err != nil {
				return err
			}
			defer func() { _ = client.Close() }()
			fmt.Fprintf(a.Err, "note: mqx spells this: %s\n", ours)
			ctx, cancel := a.deadline(c, true)
			defer cancel()
			return a.withTimeout(ctx, run(ctx, c, o, client))
		},
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVarP(&o.target.namesrv, "namesrvAddr", "n", "", "name servers, ; between them")
		add(f)
	})
	if c.Flags().ShorthandLookup("v") != nil {
		// The letter is Apache's option here; --verbose has none.
		groupedSet(c.Flags(), groupGlobal, func(f *pflag.FlagSet) { f.BoolVar(&a.global.verbose, "verbose", false, "say more on stderr") })
	}
	if changes {
		addConfirm(c, &o.safety.confirm, "what is changed")
	}
	return c
}

// mqadminChange plans and does a change without a question, as Apache's tool does,
// but for a cluster that is marked.
func (a *app) mqadminChange(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client, plan func() (admin.Plan, error)) (*outcome, error) {
	p, err := plan()
	if err != nil {
		return nil, err
	}
	if err := allFailed(len(p.Steps()), p.Missing()); err != nil {
		return nil, err
	}
	list := []admin.Plan{p}
	t := &change{app: a, cmd: c, target: &o.target, safety: &o.safety}
	if admin.Idle(p) {
		return &planned(list)[0], nil
	}
	t.show(list)
	o.safety.yes = true
	// Apache's spelling asks for no name.
	if err := a.agree(&o.target, &o.safety, act{name: p.Object()}); err != nil {
		return nil, err
	}
	done, err := t.apply(ctx, client, list)
	if err != nil {
		return nil, err
	}
	return &done[0], nil
}

func exampleOf(required []string) string {
	text := ""
	for _, group := range required {
		name, _, _ := strings.Cut(group, "|")
		text += " --" + name + " " + strings.ToUpper(name)
	}
	return text
}

func anyGiven(c *cobra.Command, group string) bool {
	for name := range strings.SplitSeq(group, "|") {
		if c.Flags().Changed(name) {
			return true
		}
	}
	return false
}

const maxToolsFile = 64 << 10

// toolsKeys are the keys of $ROCKETMQ_HOME/conf/tools.yml, which Apache's mqadmin
// signs its requests with; nil without that file. It is two lines of YAML:
// accessKey and secretKey. One that is there and cannot be read is an error: without the
// keys a cluster would only say that access is denied.
func toolsKeys(env func(string) string) (*contexts.Context, error) {
	home := env("ROCKETMQ_HOME")
	if home == "" {
		return nil, nil
	}
	path := filepath.Join(home, "conf", "tools.yml")
	data, err := userfile.Read(path, maxToolsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // Apache's tool goes on without keys as well
	}
	if err != nil {
		return nil, failf(exitOfFile(err), "cannot read keys: %w", err).because("ROCKETMQ_HOME says that they are there").try("ROCKETMQ_HOME= mqx mqadmin ..., or --access-key and --secret-key")
	}
	c := &contexts.Context{Name: path}
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(line, ":")
		if value = strings.Trim(strings.TrimSpace(value), `"'`); !ok || value == "" {
			continue
		}
		switch strings.TrimSpace(key) {
		case "accessKey":
			c.AccessKey = contexts.Source("text:" + value)
		case "secretKey":
			c.SecretKey = contexts.Source("text:" + value)
		}
	}
	return c, nil
}

// printf writes data as Apache's tool does.
func (a *app) printf(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.Out, format, args...); err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	return nil
}

// front is the text cut to a number of characters, as Apache's tool cuts names.
func front(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n])
	}
	return text
}
