package cmd

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/remoting"
)

// readOptions are the flags of a command that reads from the brokers of a cluster.
type readOptions struct {
	target  targetFlags
	output  outputFlags
	cluster string
	broker  string
	show    string
}

// brokers is what --cluster and --broker choose.
func (o *readOptions) brokers() admin.Target {
	return admin.Target{Cluster: o.cluster, Broker: o.broker}
}

// addTo adds the flags that every read has.
func (o *readOptions) addTo(c *cobra.Command) {
	grouped(c, groupTarget, func(f *pflag.FlagSet) { o.target.add(f) })
	o.output.addRows(c)
	o.output.add(c)
	o.output.addWatch(c)
}

// addBrokers adds the flags that choose brokers.
func (o *readOptions) addBrokers(a *app, c *cobra.Command) {
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVarP(&o.cluster, "cluster", "c", "", "only this cluster")
		f.StringVarP(&o.broker, "broker", "b", "", "only this broker, by name or address")
	})
	completeFlag(c, "broker", completeBrokers(a, &o.target))
}

// addShow adds --show; the first of the names is what is shown without it.
func (o *readOptions) addShow(c *cobra.Command, names ...string) {
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&o.show, "show", names[0], "what to list: "+strings.Join(names[:len(names)-1], ", ")+" or "+names[len(names)-1])
	})
	completeFlag(c, "show", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// answer is what a read found: rows, and the brokers that did not answer.
type answer struct {
	rows [][]any
	errs []admin.TargetError
}

// read prints what ask finds, once or with --watch again and again.
func (a *app) read(c *cobra.Command, o *readOptions, s render.Schema, ask func(ctx context.Context, client *admin.Client) (answer, error)) error {
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return a.list(c, &o.output, s, func(ctx context.Context, w *render.Writer) (problems, error) {
		found, err := ask(ctx, client)
		if err != nil {
			return nil, err
		}
		if err := allFailed(len(found.rows), found.errs); err != nil {
			return nil, err
		}
		for _, row := range found.rows {
			if err := w.Row(row...); err != nil {
				return nil, err
			}
		}
		return targetProblems(found.errs), nil
	})
}

// shown is the schema that --show asks for.
func shown(show string, of map[string]render.Schema, names ...string) (render.Schema, error) {
	s, ok := of[show]
	if !ok {
		return s, notOneOf("--show", show, names...)
	}
	return s, nil
}

// ifKnown is a value, or nil where it is not known.
func ifKnown[T any](v T, ok bool) any {
	if !ok {
		return nil
	}
	return v
}

// deref is a value, or nil where there is none.
func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// timeOrNil is a time in ms since 1970, nil for none.
func timeOrNil(ms int64) any {
	if ms <= 0 {
		return nil
	}
	return time.UnixMilli(ms)
}

// sortedQueues are the queues of a table in order.
func sortedQueues[V any](m map[remoting.MessageQueue]V) []remoting.MessageQueue {
	return slices.SortedFunc(maps.Keys(m), remoting.MessageQueue.Compare)
}

// sortedNames are the names of a table in order.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// milliseconds is a time in ms, with its fraction.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
