package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/admin/roll"
	"mqx/internal/render"
	"mqx/internal/words"
)

var rollSchema = render.Schema{Kind: "RollBrokerList", Name: "broker", Fields: []render.Field{
	{Name: "cluster", Wide: true, Doc: "cluster"},
	{Name: "broker", Doc: "broker, in the order in which they are restarted"},
	{Name: "id", Kind: render.Int, Doc: "broker id, 0 is the master"},
	{Name: "addr", Title: "ADDRESS", Whole: true, Doc: "its address"},
	{Name: "phase", Tone: render.ToneOf(map[string]render.Tone{"pending": render.Dim, "done": render.Good}, render.Warn), Doc: "pending, draining, restarting, returning, opening or done"},
	{Name: "since", Kind: render.Time, Doc: "when the phase began; unknown before its turn"},
	{Name: "replicas", Kind: render.Int, Doc: "other brokers of the name, which must be in sync"},
	{Name: "drain", Kind: render.Bool, Doc: "it is made read-only before its restart, since another master takes the writes"},
	{Name: "perm", Kind: render.Int, Wide: true, Doc: "brokerPermission that it has afterwards"},
	{Name: "status", Doc: "of the roll: planned, running, asking, paused, aborted, rolled-back or finished"},
	{Name: "why", Doc: "what it waits for, or why it has stopped; unknown where there is nothing to say"},
}}

// rollOptions are the flags of mqx admin cluster roll.
type rollOptions struct {
	target  targetFlags
	output  outputFlags
	safety  safetyFlags
	cluster string
	broker  string
	accept  bool
	restart string
	planOut string

	settings roll.Settings
}

func newClusterRollCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{
		Use: "roll", Short: "Restart the brokers of a cluster one after the other",
		Long: `Of each broker name the replicas first, then the master. A broker is touched only when
its name is healthy (registered everywhere, log read, replicas in sync), and the next one
only when it has been healthy again for a while. Where another master can take the writes,
a master is made read-only first (brokerPermission) and left alone until clients have asked
for routes twice and nothing comes any more. A gate that does not open in time stops the
roll: a broker that was not restarted yet gets its permission back, the others are not
touched. The state is in the plan file; resume goes on from there, after a kill too. One run
at a time restarts brokers of a cluster, whichever file it has: it holds a lease on every
master, which ends a minute after a run that was killed on another machine.

{host}, {port}, {addr}, {broker}, {id} and {cluster} of --restart-cmd are filled in, and
sh runs it. Without it, the roll asks for each restart: on a terminal it waits for Enter,
elsewhere it ends with exit code 2 and goes on with resume.`,
		Example: `  mqx admin cluster roll plan -c DefaultCluster --accept-unavailable --plan-out roll.json
  mqx admin cluster roll start roll.json --restart-cmd 'ssh {host} systemctl restart mqx-broker' --yes
  mqx admin cluster roll status roll.json --watch
  mqx admin cluster roll resume roll.json --yes`,
	},
		newRollPlanCmd(a), newRollRunCmd(a, "start"), newRollStatusCmd(a), newRollPauseCmd(a), newRollRunCmd(a, "resume"), newRollEndCmd(a, "rollback"), newRollEndCmd(a, "finish"))
}

func newRollPlanCmd(a *app) *cobra.Command {
	o := &rollOptions{}
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show in which order brokers would be restarted, and keep it",
		Example: `  mqx admin cluster roll plan -c DefaultCluster
  mqx admin cluster roll plan -b broker-a --accept-unavailable --plan-out roll.json`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return runRollPlan(a, c, o) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVarP(&o.cluster, "cluster", "c", "", "the brokers of this cluster (default: of all)")
		f.StringVarP(&o.broker, "broker", "b", "", "the brokers of this name only")
	})
	grouped(c, groupSafety, func(f *pflag.FlagSet) {
		f.BoolVar(&o.accept, "accept-unavailable", false, "restart brokers without a replica too: what lies on them cannot be read meanwhile")
		f.DurationVar(&o.settings.RouteInterval, "route-interval", 30*time.Second, "how often clients ask for routes; a drain waits twice as long")
		f.DurationVar(&o.settings.Settle, "settle", 10*time.Second, "how long nothing must be written, and how long a broker must be healthy")
		f.DurationVar(&o.settings.Gate, "gate-timeout", 10*time.Minute, "how long a gate may stay closed before the roll stops")
		f.StringVar(&o.planOut, "plan-out", "", "write the plan to this file, which start takes")
	})
	o.output.add(c)
	return c
}

func runRollPlan(a *app, c *cobra.Command, o *rollOptions) error {
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"route-interval", o.settings.RouteInterval}, {"settle", o.settings.Settle}, {"gate-timeout", o.settings.Gate}} {
		if d.value <= 0 {
			return usagef("cannot use --%s %s: it must be more than nothing", d.flag, d.value).because("a gate needs a time").try("--%s 30s", d.flag)
		}
	}
	if o.output.help() {
		return a.printRows(&o.output, rollSchema, nil)
	}
	ctx, cancel := a.deadline(c, true)
	defer cancel()
	client, err := a.adminClient(ctx, &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	st, err := client.PlanRoll(ctx, admin.RollOptions{Target: admin.Target{Cluster: o.cluster, Broker: o.broker}, Settings: o.settings, AcceptUnavailable: o.accept})
	if gone, ok := errors.AsType[*admin.UnavailableError](err); ok {
		return failf(ExitCheckFailed, "cannot roll: %w", gone).because("without a replica nobody serves what lies on them").try("--accept-unavailable, when readers can wait")
	}
	if err != nil {
		return a.withTimeout(ctx, err)
	}
	if o.planOut != "" {
		r, err := a.resolve(&o.target)
		if err != nil {
			return err
		}
		f := &rollFile{path: o.planOut, Context: r.context, NameServers: r.nameServers.value, MadeAt: time.Now().UTC().Truncate(time.Second), Roll: st}
		if _, err := os.Stat(o.planOut); err == nil {
			return usagef("cannot write plan %q: it is there already", o.planOut).because("it may be the state of a roll").try("--plan-out with another name, or rm it")
		}
		if err := f.save(); err != nil {
			return err
		}
		a.note("do it with: mqx admin cluster roll start %s", o.planOut)
	}
	return a.printRows(&o.output, rollSchema, func() ([][]any, error) { return rollRows(st), nil })
}

func rollRows(st *roll.State) [][]any {
	var out [][]any
	for _, b := range st.Brokers {
		why := ""
		if cur := st.Current(); cur != nil && cur.Addr == b.Addr {
			why = st.Why
		}
		out = append(out, []any{b.Cluster, b.Name, b.ID, b.Addr, string(b.Phase), b.Since, b.Replicas, b.Drain, b.Perm, string(st.Status), orUnknown(why)})
	}
	return out
}

// newRollRunCmd is start and resume: both go on from what the file says.
func newRollRunCmd(a *app, verb string) *cobra.Command {
	o := &rollOptions{}
	c := &cobra.Command{
		Use: verb + " FILE",
		Short: map[string]string{
			"start": "Carry out a roll that was planned", "resume": "Go on with a roll that was paused, stopped, aborted or killed",
		}[verb],
		Example: map[string]string{
			"start": `  mqx admin cluster roll start roll.json --restart-cmd 'ssh {host} systemctl restart mqx-broker' --yes
  mqx admin cluster roll start roll.json`,
			"resume": `  mqx admin cluster roll resume roll.json --yes
  mqx admin cluster roll resume roll.json --restart-cmd 'kubectl delete pod {broker}-0' --yes`,
		}[verb],
		Args: exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error { return runRoll(a, c, o, verb, args[0]) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVar(&o.restart, "restart-cmd", "", "command that restarts a broker, with {host}, {port}, {addr}, {broker}, {id}, {cluster} filled in (default: the one of the file, else ask)")
	})
	o.output.add(c)
	o.safety.addAnswers(c, false)
	return c
}

func runRoll(a *app, c *cobra.Command, o *rollOptions, verb, path string) error {
	if err := o.output.check(); err != nil {
		return err
	}
	if o.output.help() {
		return a.printRows(&o.output, rollSchema, nil)
	}
	f, err := readRollFile(path)
	if err != nil {
		return err
	}
	switch s := f.Roll.Status; {
	case s == roll.Finished || s == roll.RolledBack:
		a.note("the roll is %s already", s)
		return a.printRows(&o.output, rollSchema, func() ([][]any, error) { return rollRows(f.Roll), nil })
	case verb == "start" && s != roll.Planned:
		return failf(ExitCheckFailed, "cannot start the roll of %q: it is %s", path, s).because("it was started before").try("mqx admin cluster roll resume %s", path)
	case verb == "resume" && s == roll.Planned:
		return failf(ExitCheckFailed, "cannot resume the roll of %q: it was never started", path).because("its state is planned").try("mqx admin cluster roll start %s", path)
	}
	if o.restart != "" {
		f.RestartCmd = o.restart
	}
	if _, err := restartCommand(f.RestartCmd, roll.Broker{Addr: "h:1", Name: "b", Cluster: "c"}); err != nil {
		return err
	}
	o.target.pinned = chosen[[]string]{f.NameServers, "the plan"}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	fmt.Fprintf(a.Err, "Plan for %s: restart %s\n", f.clusters(), words.Count(int64(f.left()), "broker"))
	for _, b := range f.Roll.Brokers {
		fmt.Fprintf(a.Err, "  %-10s %s (id %d, %s)\n", b.Phase, b.Name, b.ID, b.Addr)
	}
	if err := a.agree(&o.target, &o.safety, act{name: f.name()}); err != nil {
		return err
	}
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.unpause(); err != nil {
		return err
	}
	admin.ResumeRoll(f.Roll)
	return a.rolled(c, o, f, client)
}

// rolled carries the roll out, and says how it ended.
func (a *app) rolled(c *cobra.Command, o *rollOptions, f *rollFile, client *admin.Client) error {
	ctx, cancel := a.deadline(c, false)
	defer cancel()
	said := ""
	st, runErr := client.RunRoll(ctx, f.Roll, admin.RollIO{
		Save:    func(st *roll.State) error { f.Roll = st; return f.save() },
		Restart: func(ctx context.Context, b roll.Broker) error { return a.restartBroker(ctx, f, b) },
		Paused:  f.paused,
		Report: func(st *roll.State) {
			if st.Why != "" && st.Why != said {
				said = st.Why
				a.note("%s", said)
			}
		},
		Poll:  min(time.Second, max(f.Roll.Settings.Settle/4, 50*time.Millisecond)),
		Owner: f.owner(),
	})
	f.Roll = st
	if owned, ok := errors.AsType[*admin.RollOwnedError](runErr); ok {
		return f.ownedFailure(owned)
	}
	if err := a.printRows(&o.output, rollSchema, func() ([][]any, error) { return rollRows(st), nil }); err != nil {
		return errors.Join(runErr, err)
	}
	resume := "mqx admin cluster roll resume " + f.path
	switch {
	case runErr != nil && ctx.Err() != nil && c.Context().Err() == nil:
		return failf(ExitWaited, "the roll is not finished").because("--timeout is over; nothing more is touched: "+cmp.Or(st.Why, "it is as the file says")).try("%s", resume)
	case interrupted(runErr):
		return failf(ExitInterrupted, "interrupted: the roll is not finished").because("nothing more is touched: "+cmp.Or(st.Why, "it is as the file says")).try("%s --yes, or rollback", resume)
	case runErr != nil:
		return runErr
	case st.Status == roll.Asking:
		return usagef("%s", st.Why).because("there is no --restart-cmd, and no terminal to ask").try("restart it, then %s --yes", resume)
	case st.Status == roll.Aborted:
		return failf(ExitWaited, "the roll has stopped").because(st.Why).try("look, then %s --yes, or rollback", resume)
	}
	return nil
}

func newRollStatusCmd(a *app) *cobra.Command {
	o := &rollOptions{}
	c := &cobra.Command{
		Use:   "status FILE",
		Short: "Say how far a roll is",
		Example: `  mqx admin cluster roll status roll.json
  mqx admin cluster roll status roll.json --watch`,
		Args: exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.list(c, &o.output, rollSchema, func(_ context.Context, w *render.Writer) (problems, error) {
				f, err := readRollFile(args[0])
				if err != nil {
					return nil, err
				}
				for _, row := range rollRows(f.Roll) {
					if err := w.Row(row...); err != nil {
						return nil, err
					}
				}
				return nil, nil
			})
		},
	}
	o.output.addRows(c)
	o.output.add(c)
	o.output.addWatch(c)
	return c
}

func newRollPauseCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "pause FILE",
		Short:   "Ask a roll that runs to stop at its next step",
		Example: `  mqx admin cluster roll pause roll.json`,
		Args:    exactArgs("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := readRollFile(args[0])
			if err != nil {
				return err
			}
			switch s := f.Roll.Status; s {
			case roll.Running:
			case roll.Planned, roll.Finished, roll.RolledBack:
				why := "nothing of it runs any more"
				if s == roll.Planned {
					why = "it was never started"
				}
				return failf(ExitCheckFailed, "cannot pause the roll of %q: it is %s", f.path, s).because(why).try("mqx admin cluster roll status %s", f.path)
			default: // it waits for somebody
				a.warn("the roll is %s already", s)
				return nil
			}
			unlock, err := f.lock()
			if err == nil {
				unlock()
				return failf(ExitCheckFailed, "cannot pause the roll of %q: nobody runs it from this file", f.path).because("its run was killed, or goes on elsewhere from another copy").try("mqx admin cluster roll resume %s --yes, or pause where it runs", f.path)
			}
			if err := f.pause(); err != nil {
				return err
			}
			a.note("it goes on with: mqx admin cluster roll resume %s", f.path)
			return nil
		},
	}
}

// newRollEndCmd is rollback and finish: both end a roll before its time.
func newRollEndCmd(a *app, verb string) *cobra.Command {
	o := &rollOptions{}
	c := &cobra.Command{
		Use: verb + " FILE",
		Short: map[string]string{
			"rollback": "End a roll, and give a broker that was made read-only its permission back",
			"finish":   "End a roll: the brokers that are left are not restarted",
		}[verb],
		Example: `  mqx admin cluster roll ` + verb + ` roll.json --yes`,
		Args:    exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := readRollFile(args[0])
			if err != nil {
				return err
			}
			o.target.pinned = chosen[[]string]{f.NameServers, "the plan"}
			if err := a.agree(&o.target, &o.safety, act{name: f.name()}); err != nil {
				return err
			}
			unlock, err := f.lock()
			if err != nil {
				return err
			}
			defer unlock()
			ctx, cancel := a.deadline(c, true)
			defer cancel()
			client, err := a.adminClient(ctx, &o.target)
			if err != nil {
				return err
			}
			defer func() { _ = client.Close() }()
			if err := client.RollbackRoll(ctx, f.Roll, f.owner()); err != nil {
				if owned, ok := errors.AsType[*admin.RollOwnedError](err); ok {
					return f.ownedFailure(owned)
				}
				return a.withTimeout(ctx, err)
			}
			if verb == "finish" {
				f.Roll.Status = roll.Finished
			}
			if err := f.save(); err != nil {
				return err
			}
			return a.printRows(&o.output, rollSchema, func() ([][]any, error) { return rollRows(f.Roll), nil })
		},
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) { o.target.add(f) })
	o.output.add(c)
	o.safety.addAnswers(c, false)
	return c
}

// name is what is asked for: the cluster of the roll.
func (f *rollFile) name() string {
	if len(f.Roll.Brokers) > 0 && f.Roll.Brokers[0].Cluster != "" {
		return f.Roll.Brokers[0].Cluster
	}
	return filepath.Base(f.path)
}

func (f *rollFile) clusters() string { return "cluster " + f.name() }

func (f *rollFile) left() (n int) {
	for _, b := range f.Roll.Brokers {
		if b.Phase != roll.Done {
			n++
		}
	}
	return n
}
