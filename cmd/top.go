package cmd

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/tui"
)

// topOptions are the flags of mqx top.
type topOptions struct {
	target   targetFlags
	output   outputFlags
	cluster  string
	broker   string
	interval time.Duration
	rounds   int
	once     bool
	demo     bool
	view     string
	theme    string
	mouse    bool
	redact   bool
}

// topViews are what --view takes.
var topViews = []string{"brokers", "topics", "groups", "queues", "clients"}

func newTopCmd(a *app) *cobra.Command {
	o := &topOptions{}
	c := &cobra.Command{
		Use:   "top",
		Short: "Watch lag and throughput live",
		Long: `Shows brokers, topics, groups with their queues, and clients, and refreshes them
without end: messages a second in and out, lag and where it goes, which queues stand
still, and one message. It reads what every RocketMQ cluster tells, Apache's or mqx's.
? shows the keys.

A refresh asks each broker three things, and besides a bounded number of requests for
what costs one by the row: members and ages of groups, what topics hold. What is on the
screen comes first; a figure from an earlier refresh says how old it is. The last line
shows what a refresh has cost.

a shows what can be done with the marked rows: each is a line of mqx admin, which shows
its plan and asks as it always does. With --read-only, or on a cluster that is marked
so, nothing is changed. w keeps view, sorting, interval, theme and mouse for the next
start, in $XDG_CONFIG_HOME/mqx/top.json.

A broker that does not answer is greyed, with how long it is silent. With --once the
figures are printed and it ends: two readings a second apart, so that there are rates;
-r N prints N of them.`,
		Example: `  mqx top
  mqx top -n 10.0.0.1:9876 --interval 5s
  mqx top --once -o json
  mqx top --once --view brokers
  mqx top --demo`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return runTop(a, c, o) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVarP(&o.cluster, "cluster", "c", "", "only this cluster")
		f.StringVarP(&o.broker, "broker", "b", "", "only this broker, by name or address")
		f.BoolVar(&o.demo, "demo", false, "show a cluster that is made up")
	})
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.DurationVar(&o.interval, "interval", 2*time.Second, "time between two refreshes, from 500ms to 5m")
		f.IntVarP(&o.rounds, "rounds", "r", 0, "end after so many refreshes (default: never)")
		f.BoolVar(&o.once, "once", false, "print the figures and end")
		f.StringVar(&o.view, "view", "groups", "with --once: "+strings.Join(topViews, ", "))
	})
	grouped(c, groupOutput, func(f *pflag.FlagSet) {
		f.StringVar(&o.theme, "theme", "", "colours: "+strings.Join(tui.ThemeNames(), ", ")+"; without it the one that was saved")
		f.BoolVar(&o.mouse, "mouse", false, "take clicks and the wheel; the terminal selects no text then")
		f.BoolVar(&o.redact, "redact", false, "hide bodies and the values of properties")
	})
	o.output.addRows(c)
	o.output.add(c)
	completeFlag(c, "view", cobra.FixedCompletions(topViews, cobra.ShellCompDirectiveNoFileComp))
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

func (o *topOptions) check(a *app, c *cobra.Command) error {
	switch {
	case o.interval < tui.MinInterval || o.interval > tui.MaxInterval:
		return usagef("cannot use --interval %s: it goes from %s to %s", o.interval, tui.MinInterval, tui.MaxInterval).try("--interval 2s")
	case o.rounds < 0:
		return usagef("cannot use --rounds %d: it must be at least 1", o.rounds).try("-r 3")
	case o.theme != "" && !slices.Contains(tui.ThemeNames(), o.theme):
		return notOneOf("--theme", o.theme, tui.ThemeNames()...)
	case !slices.Contains(topViews, o.view):
		return notOneOf("--view", o.view, topViews...)
	case !o.once && c.Flags().Changed("view"):
		return usagef("cannot use --view without --once").because("the keys 1 to 5 open the views on a terminal").try("mqx top --once --view %s", o.view)
	case !o.once && !o.output.help() && (c.Flags().Changed("output") || !a.OutTTY || !a.InTTY):
		return usagef("cannot draw: this is no terminal").because("mqx top needs one, unless it is to print its figures").try("mqx top --once -o json")
	}
	return nil
}

func runTop(a *app, c *cobra.Command, o *topOptions) error {
	if err := o.output.check(); err != nil {
		return err
	}
	if err := o.check(a, c); err != nil {
		return err
	}
	if o.output.help() {
		return printTop(a, c, o, nil)
	}
	var source tui.Source = &tui.Demo{Start: time.Now().Add(-10 * time.Minute), Now: time.Now}
	if !o.demo {
		client, err := a.adminClient(c.Context(), &o.target)
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		source = &tui.Live{Client: client, Target: admin.Target{Cluster: o.cluster, Broker: o.broker}, Now: time.Now, Redact: o.redact}
	}
	if o.once {
		return printTop(a, c, o, source)
	}
	return o.draw(a, c, source)
}

// printTop prints the figures of as many refreshes as are asked for, one for --once alone.
func printTop(a *app, c *cobra.Command, o *topOptions, source tui.Source) error {
	out, closeOut, err := a.open(&o.output)
	if err != nil {
		return err
	}
	form := topForms[o.view]
	w, err := a.renderer(out, &o.output, form.schema, o.rounds > 1)
	if err != nil {
		return err
	}
	if w.Help() {
		return w.Close()
	}
	ctx, cancel := a.deadline(c, false)
	defer cancel()
	history := tui.NewHistory()
	var missing problems
	for i := range max(1, o.rounds) + 1 {
		if i > 0 {
			every := o.interval
			if i == 1 && o.rounds == 0 {
				every = min(every, time.Second)
			}
			if err := sleepFor(ctx, every); err != nil {
				return err
			}
		}
		s, err := source.Read(ctx, o.want())
		if err != nil {
			return a.withTimeout(ctx, err)
		}
		r := history.Add(s)
		if i == 0 {
			continue // there are no rates yet
		}
		if err := form.rows(w, r); err != nil {
			return err
		}
		missing = nil
		for _, f := range s.Errors {
			missing = append(missing, render.Problem{Target: f.Who, Addr: f.Addr, Message: f.Why})
		}
	}
	for _, p := range missing {
		w.Problem(p)
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := closeOut(); err != nil {
		return err
	}
	return a.partial(missing)
}

func (o *topOptions) want() tui.Want {
	return tui.Want{All: true, Clients: o.view == "clients", Brokers: o.view == "brokers"}
}

func sleepFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
