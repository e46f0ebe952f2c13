package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/admin/move"
	"mqx/internal/render"
	"mqx/internal/vfs"
	"mqx/internal/words"
)

var moveSchema = render.Schema{Kind: "MoveList", Name: "id", Fields: []render.Field{
	{Name: "id", Whole: true, Doc: "id of the plan; behind the @ the broker that keeps it"},
	{Name: "kind", Doc: "migrate, drain, resize, retire or rebalance"},
	{Name: "name", Doc: "topic, broker that is retired, or cluster that is made even"},
	{Name: "phase", Tone: render.ToneOf(map[string]render.Tone{string(move.Done): render.Good, string(move.RolledBack): render.Dim}, render.Plain), Doc: "how far it has come"},
	{Name: "paused", Kind: render.Bool, Doc: "somebody paused it"},
	{Name: "stopped", Doc: "what ended it until somebody resumes; unknown while nothing did"},
	{Name: "written", Kind: render.Time, Doc: "when its state was written last"},
	{Name: "owner", Wide: true, Doc: "who wrote it"},
}}

func newMoveStartCmd(a *app, v moveVerb) *cobra.Command {
	o := &moveOptions{}
	c := &cobra.Command{
		Use: "start" + argsOf(v), Short: "Plan and carry it out, in the foreground",
		Example: fmt.Sprintf("  %[1]s start %[2]s --yes\n  %[1]s start %[2]s --dry-run\n  %[1]s start %[2]s --remove --confirm NAME", v.command, v.args),
		Args:    moveArgs(v),
		RunE:    func(c *cobra.Command, args []string) error { return runMoveStart(a, c, o, v, args) },
	}
	o.addAsk(c, v)
	o.addRemove(c)
	o.addRun(c)
	o.output.add(c)
	o.safety.addAnswers(c, false)
	o.safety.addDry(c)
	return c
}

func runMoveStart(a *app, c *cobra.Command, o *moveOptions, v moveVerb, args []string) error {
	if o.safety.dryRun {
		changes, err := a.showMove(c, o, v, args)
		if err != nil {
			return err
		}
		if o.safety.exitCode && changes {
			return silentError{ExitCheckFailed}
		}
		return nil
	}
	ask, err := o.ask(v, args)
	if err != nil {
		return err
	}
	return a.ownMove(c, o, func(ctx context.Context, client *admin.Client) (*admin.MoveRun, error) {
		p, err := a.planMove(ctx, client, o, v, ask)
		if err != nil || p == nil {
			return nil, err
		}
		if err := refused(p); err != nil {
			return nil, err
		}
		if err := client.Overlapping(ctx, p.State); err != nil {
			return nil, err
		}
		fmt.Fprintf(a.Err, "Plan %s: %s of %s\n", p.State.ID, v.kind, p.State.Spec.Name)
		for i := range p.Commands {
			fmt.Fprintf(a.Err, "  %s\n", p.Commands[i].String())
		}
		a.tellPlan(p)
		o.told = strings.Join(p.Notes, "; ")
		if v.kind == move.Resize && len(p.Commands) == 0 {
			a.warn("topic %s has %s on each of these brokers already", p.State.Spec.Name, words.Count(int64(o.queues), "queue"))
			return nil, nil
		}
		if err := a.agree(&o.target, &o.safety, act{name: p.State.Spec.Name, destructive: o.remove}); err != nil {
			return nil, err
		}
		file, err := o.copyFile(a, p.State.ID)
		if err != nil {
			return nil, err
		}
		return client.StartMove(ctx, p, admin.MoveOptions{File: file})
	})
}

// copyFile is the file of the copy, in a directory that is there.
func (o *moveOptions) copyFile(a *app, plan string) (string, error) {
	file, err := o.file(a, plan)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("cannot make the directory of the copy: %w", err)
	}
	return file, nil
}

// ownMove carries a plan out that this process owns, and prints how it ended.
func (a *app) ownMove(c *cobra.Command, o *moveOptions, open func(ctx context.Context, client *admin.Client) (*admin.MoveRun, error)) error {
	if o.stopAt != "" && !slices.Contains(move.Phases(), move.Phase(o.stopAt)) {
		return notOneOf("--stop-at", o.stopAt, phaseNames()...)
	}
	if err := a.mayNotChange(&o.target); err != nil {
		return err
	}
	return a.oneRecord(c, o, func(ctx context.Context, client *admin.Client) (*move.State, error) {
		run, err := open(ctx, client)
		if err != nil || run == nil { // nil: there is nothing to be done
			return nil, err
		}
		defer a.closeMove(ctx, run)
		err = a.carryOut(ctx, run, o)
		return run.State(), err
	})
}

func phaseNames() []string {
	var out []string
	for _, p := range move.Phases() {
		out = append(out, string(p))
	}
	return out
}

// closeMove gives the lease back. Where that fails it ends by itself in a minute.
func (a *app) closeMove(ctx context.Context, run *admin.MoveRun) {
	if err := run.Close(ctx); err != nil {
		a.note("the lease was not given back and lasts up to a minute: %v", err)
	}
}

// carryOut runs a plan, telling of every step.
func (a *app) carryOut(ctx context.Context, run *admin.MoveRun, o *moveOptions) error {
	until := move.Phase(o.stopAt)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	reached := false
	last, todo := "", ""
	d, err := run.Run(ctx, func(d *move.Decision) {
		st := run.State()
		for i := range d.Commands {
			a.note("done: %s", d.Commands[i].String())
		}
		if d.Note != "" && d.Note != o.told {
			a.warn("%s", d.Note)
		}
		if d.Todo != "" && d.Todo != todo {
			a.warn("%s", d.Todo)
		}
		todo = d.Todo
		line := string(st.Phase)
		if len(d.Waiting) > 0 {
			line += ": waiting for " + d.Waiting[0]
		}
		if line != last {
			a.note("%s", line)
			last = line
		}
		if until != "" && !st.Phase.Before(until) {
			reached = true
			stop()
		}
	})
	switch {
	case reached && errors.Is(err, context.Canceled):
		return nil
	case interrupted(err):
		return failf(ExitInterrupted, "interrupted: plan %s is at %s", run.State().ID, run.State().Phase).
			because("the step under way was ended and written down, and nothing goes on by itself; the cluster serves as it is").
			try("%s resume %s --yes, here or on any machine, or rollback", moveCommand(run.State().ID), run.State().ID)
	case err != nil:
		return err
	case d.Refused:
		return failf(ExitCheckFailed, "cannot begin: %s", strings.Join(d.Waiting, "; ")).because("nothing was changed").try("mend that, and start anew")
	case run.State().Phase == move.Settled && run.State().Spec.Policy.Remove: // it halts there for no other reason
		return failf(ExitCheckFailed, "%s", strings.Join(d.Waiting, "; ")).because("nothing is removed that a group may still need")
	case run.State().Paused:
		return pausedFailure(run.State())
	case run.State().Stopped != "":
		return failf(ExitCheckFailed, "%s", run.State().Stopped).because("nothing more is done until somebody has looked").try("%s resume %s --yes, or rollback", moveCommand(run.State().ID), run.State().ID)
	}
	return nil
}

// pausedFailure: what was asked for is not done, because somebody paused the plan.
func pausedFailure(st *move.State) error {
	return failf(ExitCheckFailed, "plan %s is paused, at %s", st.ID, st.Phase).because("somebody paused it").try("%s resume %s --yes", moveCommand(st.ID), st.ID)
}

// oneRecord prints the state that a command leaves a plan in.
func (a *app) oneRecord(c *cobra.Command, o *moveOptions, do func(ctx context.Context, client *admin.Client) (*move.State, error)) error {
	out, closeOut, err := a.open(&o.output)
	if err != nil {
		return err
	}
	w, err := a.renderer(out, &o.output, moveSchema, false)
	if err != nil {
		return err
	}
	if w.Help() {
		return w.Close()
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := a.deadline(c, false)
	defer cancel()
	st, doErr := do(ctx, client)
	if st != nil {
		if err := moveRow(w, st, nil); err != nil {
			return err
		}
	}
	if st != nil || doErr == nil {
		if err := w.Close(); err != nil {
			return err
		}
	}
	if doErr != nil {
		return errors.Join(moveFailure(a.withTimeout(ctx, doErr)), closeOut())
	}
	return closeOut()
}

func moveRow(w *render.Writer, st *move.State, written any) error {
	return w.Row(st.ID, string(st.Spec.Kind), st.Spec.Name, string(st.Phase), st.Paused, orUnknown(st.Stopped), written, orUnknown(st.Owner))
}

// moveCommand is the command that carries a plan out.
func moveCommand(plan string) string {
	kind, _, _ := strings.Cut(plan, "-")
	for _, v := range []moveVerb{drainVerb, resizeVerb, retireVerb, rebalanceVerb} {
		if string(v.kind) == kind {
			return v.command
		}
	}
	return migrateVerb.command
}

// moveFailure says what can be done about what keeps a plan from going on.
func moveFailure(err error) error {
	var owned *move.OwnedError
	var overlap *admin.OverlapError
	var untold *move.NoTargetError
	gone, noPlan := errors.AsType[*admin.NotFoundError](err)
	switch {
	case errors.As(err, &owned):
		return failf(ExitFailed, "%w", err).because("one at a time carries a plan out; a lease ends a minute after its owner did").
			try("%[1]s status %[2]s, the same command in a minute, or %[1]s pause %[2]s --yes, upon which its owner ends", moveCommand(owned.Plan), owned.Plan)
	case errors.As(err, &overlap):
		return failf(ExitFailed, "%w", err).because("two plans must not touch the same").try("%s resume %s --yes, or rollback", moveCommand(overlap.Other.ID), overlap.Other.ID)
	case errors.As(err, &untold):
		return usagef("%w", err).because("it would be nowhere afterwards").try("--target BROKER")
	case errors.Is(err, move.ErrRemaps):
		return failf(ExitCheckFailed, "%w", err).because("nothing was changed").try("--remap-keys, if that is what you want")
	case errors.Is(err, move.ErrNoPlan), noPlan && gone.Kind == "plan":
		return failf(ExitNotFound, "%w", err).because("neither the cluster nor this machine has it").try("mqx admin queue migrate status, or --journal FILE with the copy of the machine that began it")
	case errors.Is(err, move.ErrTooLate), errors.Is(err, move.ErrOrderedSealed):
		return failf(ExitCheckFailed, "%w", err)
	}
	return err
}

// planCmd is a sub-verb that takes the id of a plan.
func planCmd(a *app, v moveVerb, o *moveOptions, verb, short, flags string, run func(c *cobra.Command, plan string) error) *cobra.Command {
	c := &cobra.Command{
		Use: verb + " PLAN", Short: short, Example: fmt.Sprintf("  %s %s PLAN%s", v.command, verb, flags),
		Args:              exactArgs("PLAN"),
		ValidArgsFunction: completeMoves(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			plan, err := a.findMove(c, o, v, args[0])
			if err != nil {
				return err
			}
			return run(c, plan)
		},
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) { o.target.add(f) })
	o.output.add(c)
	return c
}

// findMove is the id of a plan that is named by it, or by its topic or broker.
func (a *app) findMove(c *cobra.Command, o *moveOptions, v moveVerb, word string) (string, error) {
	if o.output.help() {
		return word, nil
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return "", err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := a.deadline(c, true)
	defer cancel()
	if o.journal != "" && !strings.Contains(word, "@") {
		st, err := o.copyOf(a, v.kind, word)
		if err == nil {
			return st.ID, nil
		}
		if !errors.Is(err, move.ErrNoPlan) {
			return "", err
		}
	}
	plan, err := client.FindMove(ctx, v.kind, word)
	if _, gone := errors.AsType[*admin.NotFoundError](err); gone {
		if st, copyErr := o.copyOf(a, v.kind, word); copyErr != nil || st != nil {
			if copyErr != nil {
				return "", moveFailure(copyErr)
			}
			return st.ID, nil
		}
	}
	return plan, moveFailure(a.withTimeout(ctx, err))
}

// copyOf is the plan that this machine keeps a copy of: the one of --journal, else the newest of the
// state directory that is for a topic or broker and has not ended. nil: there is none.
func (o *moveOptions) copyOf(a *app, kind move.Kind, word string) (*move.State, error) {
	if o.journal != "" {
		st, err := admin.MoveCopy(vfs.OS, o.journal)
		if err == nil && st.Spec.Name != word {
			err = usagef("the copy %q is of plan %s, not of one for %s", o.journal, st.ID, word)
		}
		return st, err
	}
	file, err := o.file(a, "")
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(file), string(kind)+"-*.json"))
	if err != nil {
		return nil, err
	}
	var newest *move.State
	for _, f := range files {
		st, err := admin.MoveCopy(vfs.OS, f)
		if err != nil {
			return nil, err
		}
		if st.Spec.Kind == kind && st.Spec.Name == word && !st.Phase.Ended() && (newest == nil || st.Since.After(newest.Since)) {
			newest = st
		}
	}
	return newest, nil
}

func completeMoves(a *app, t *targetFlags) cobra.CompletionFunc {
	return completer(a, t, func(ctx context.Context, c *admin.Client) (offers, error) {
		moves, _, err := c.Moves(ctx)
		if err != nil {
			return offers{}, err
		}
		var out offers
		for _, m := range moves {
			if !m.State.Phase.Ended() {
				out.names = append(out.names, m.State.ID)
			}
		}
		return out, nil
	})
}

func newMovePauseCmd(a *app, v moveVerb) *cobra.Command {
	o := &moveOptions{}
	c := planCmd(a, v, o, "pause", "Let whoever carries it out end before the next step", " --yes", func(c *cobra.Command, plan string) error {
		return a.requestMove(c, o, plan, move.Pause)
	})
	o.safety.addAnswers(c, false)
	return c
}

// requestMove leaves a request for the owner of a plan.
func (a *app) requestMove(c *cobra.Command, o *moveOptions, plan string, what move.Request) error {
	if err := a.mayNotChange(&o.target); err != nil {
		return err
	}
	return a.oneRecord(c, o, func(ctx context.Context, client *admin.Client) (*move.State, error) {
		st, err := client.GetMove(ctx, plan)
		if err != nil {
			return nil, err
		}
		if err := notEnded(st); err != nil {
			return nil, err
		}
		if err := a.agree(&o.target, &o.safety, act{name: st.Spec.Name}); err != nil {
			return nil, err
		}
		if err := client.AskMove(ctx, plan, what, ""); err != nil {
			return nil, err
		}
		return client.GetMove(ctx, plan)
	})
}

// takeOver leaves requests and goes on with a plan, in this process.
func (a *app) takeOver(c *cobra.Command, o *moveOptions, plan string, destructive bool, check func(*move.State) error, requests ...move.Request) error {
	return a.ownMove(c, o, func(ctx context.Context, client *admin.Client) (*admin.MoveRun, error) {
		file, err := o.copyFile(a, plan)
		if err != nil {
			return nil, err
		}
		var name string
		st, err := client.GetMove(ctx, plan)
		switch _, gone := errors.AsType[*admin.NotFoundError](err); {
		case err == nil:
			name = st.Spec.Name
			if err := check(st); err != nil {
				return nil, err
			}
		case !gone:
			return nil, err
		default:
			if st, err = admin.MoveCopy(vfs.OS, file); err != nil {
				return nil, err
			}
			a.warn("the cluster has lost plan %s: it goes on from the copy %s, at %s", plan, file, st.Phase)
			name = st.Spec.Name
			if err := check(st); err != nil {
				return nil, err
			}
		}
		if err := a.agree(&o.target, &o.safety, act{name: name, destructive: destructive}); err != nil {
			return nil, err
		}
		run, err := client.OpenMove(ctx, plan, admin.MoveOptions{File: file})
		if err != nil {
			return nil, err
		}
		err = run.Take(ctx) // who is refused has asked for nothing
		for _, g := range o.ignore {
			if err == nil {
				err = client.AskMove(ctx, plan, move.Ignore, g)
			}
		}
		for _, what := range requests {
			if err == nil {
				err = client.AskMove(ctx, plan, what, "")
			}
		}
		if err != nil {
			a.closeMove(ctx, run)
			return nil, err
		}
		return run, nil
	})
}

// already prints a plan that has ended as it was asked for.
func (a *app) already(c *cobra.Command, o *moveOptions, plan string, phase move.Phase) (yes bool, err error) {
	if o.output.help() {
		return false, nil
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return false, err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := a.deadline(c, true)
	defer cancel()
	st, err := client.GetMove(ctx, plan)
	if err != nil || st.Phase != phase {
		return false, nil // after an error, what follows asks again and knows what to make of it
	}
	a.note("plan %s is %s already", plan, phase)
	return true, a.oneRecord(c, o, func(context.Context, *admin.Client) (*move.State, error) { return st, nil })
}

func notEnded(st *move.State) error {
	if st.Phase.Ended() {
		return failf(ExitCheckFailed, "plan %s is %s", st.ID, st.Phase).because("nothing follows").try("a plan of its own")
	}
	return nil
}

func newMoveResumeCmd(a *app, v moveVerb) *cobra.Command {
	o := &moveOptions{}
	c := planCmd(a, v, o, "resume", "Go on with a plan here, whoever began it", " --yes", func(c *cobra.Command, plan string) error {
		return a.takeOver(c, o, plan, false, notEnded, move.Resume)
	})
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.StringSliceVar(&o.ignore, "ignore", nil, "do not wait for this group any more; may be repeated")
	})
	o.addRun(c)
	o.safety.addAnswers(c, false)
	return c
}

func newMoveRollbackCmd(a *app, v moveVerb) *cobra.Command {
	o := &moveOptions{}
	c := planCmd(a, v, o, "rollback", "Go back: the source is written again, the targets are read to their end", " --yes", func(c *cobra.Command, plan string) error {
		if yes, err := a.already(c, o, plan, move.RolledBack); yes || err != nil {
			return err
		}
		return a.takeOver(c, o, plan, false, func(st *move.State) error { return st.CanRollBack() }, move.RollBack)
	})
	o.addRun(c)
	o.safety.addAnswers(c, false)
	return c
}

func newMoveFinishCmd(a *app, v moveVerb) *cobra.Command {
	o := &moveOptions{}
	c := planCmd(a, v, o, "finish", "Take what was moved off the source, when every group has read it", " --confirm NAME", func(c *cobra.Command, plan string) error {
		if yes, err := a.already(c, o, plan, move.Done); yes || err != nil {
			return err
		}
		return a.takeOver(c, o, plan, true, func(st *move.State) error {
			if st.Paused {
				return pausedFailure(st)
			}
			return notEnded(st)
		}, move.Finish)
	})
	o.addRun(c)
	o.safety.addAnswers(c, true)
	return c
}
