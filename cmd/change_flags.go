package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/words"
)

// changeFlags are the flags of commands that change something: on which servers, how
// it is shown, and what is asked before.
type changeFlags struct {
	target  targetFlags
	output  outputFlags
	safety  safetyFlags
	cluster string
	broker  string
	long    bool // only a --timeout that is given bounds it
}

// add adds the flags. Without brokers there is no choice of brokers.
func (o *changeFlags) add(a *app, c *cobra.Command, destructive, brokers bool) {
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		if brokers {
			f.StringVarP(&o.cluster, "cluster", "c", "", "on the masters of this cluster (default: of the only one there is)")
			f.StringVarP(&o.broker, "broker", "b", "", "on this broker only, by name or address")
		}
	})
	o.output.add(c)
	o.safety.add(c, destructive)
	if brokers {
		completeFlag(c, "broker", completeBrokers(a, &o.target))
	}
}

func (o *changeFlags) on() admin.Target {
	return admin.Target{Cluster: o.cluster, Broker: o.broker}
}

// run plans, shows, asks and does one plan.
func (o *changeFlags) run(a *app, c *cobra.Command, plan func(ctx context.Context, client *admin.Client) (admin.Plan, error)) error {
	return o.runAll(a, c, func(ctx context.Context, client *admin.Client) ([]admin.Plan, error) {
		return onePlan(plan(ctx, client))
	})
}

func (o *changeFlags) runAll(a *app, c *cobra.Command, p plans) error {
	if err := o.output.check(); err != nil {
		return err
	}
	return (&change{app: a, cmd: c, target: &o.target, output: &o.output, safety: &o.safety, long: o.long}).run(p)
}

// given is a flag's value, nil where the flag was not given: what is not given stays.
func given[T any](c *cobra.Command, flag string, v T) *T {
	if !c.Flags().Changed(flag) {
		return nil
	}
	return &v
}

// anyOf reports whether one of the flags was given.
func anyOf(c *cobra.Command, flags ...string) bool {
	for _, f := range flags {
		if c.Flags().Changed(f) {
			return true
		}
	}
	return false
}

// readAttributes reads +name=value and -name.
func readAttributes(list []string) (map[string]string, error) {
	var out map[string]string
	for _, text := range list {
		key, value, ok := strings.Cut(text, "=")
		if len(key) < 2 || key[0] != '+' && key[0] != '-' || key[0] == '+' && !ok || key[0] == '-' && ok {
			return nil, usagef("cannot read attribute %q: it has the form +name=value or -name", text).try("--attribute +cleanup.policy=DELETE")
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = value
	}
	return out, nil
}

// maxImport bounds a file of topics and groups.
const maxImport = 64 << 20

// readMetadata reads a file of topics and groups.
func (a *app) readMetadata(path string) (*admin.Metadata, error) {
	data, err := a.readInput(path, "file", "- for stdin", maxImport)
	if err != nil {
		return nil, err
	}
	m, err := admin.ParseMetadata(data)
	if err != nil {
		return nil, usagef("file %q: %w", path, err).because("it is neither an export of topics and groups nor a list of them").try("mqx admin topic export -O %s", "topics.json")
	}
	return m, nil
}

// exportMetadata writes topics and groups as a file carries them.
func (a *app) exportMetadata(c *cobra.Command, t *targetFlags, file string, on admin.Target, o admin.ExportOptions) error {
	client, err := a.adminClient(c.Context(), t)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := a.deadline(c, true)
	defer cancel()
	m, errs, err := client.ExportMetadata(ctx, on, o)
	if err != nil {
		return a.withTimeout(ctx, err)
	}
	if err := allFailed(len(m.TopicConfigTable)+len(m.SubscriptionGroupTable), errs); err != nil {
		return err
	}
	for _, d := range m.Differs {
		a.warn("brokers have different configurations of %s: the widest is written", d)
	}
	text, err := m.JSON()
	if err != nil {
		return err
	}
	out, closeOut, err := a.open(&outputFlags{file: file})
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	if err != nil {
		err = fmt.Errorf("cannot write export: %w", err)
	}
	if err := closed(err, closeOut); err != nil {
		return err
	}
	a.note("%s and %s written", words.Count(len(m.TopicConfigTable), "topic"), words.Count(len(m.SubscriptionGroupTable), "group"))
	return a.partial(targetProblems(errs))
}
