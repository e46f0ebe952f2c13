package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/render"
	"mqx/internal/vfs"
	"mqx/internal/words"
	"mqx/store"
	"mqx/store/inspect"
)

var storeStepSchema = render.Schema{Kind: "StoreRepairList", Name: "step", Fields: []render.Field{
	{Name: "step", Doc: "what is done; docs/store.md lists the steps"},
	{Name: "file", Whole: true, Doc: "name in the directory"},
	{Name: "done", Kind: render.Bool, Doc: "it has been done"},
	{Name: "destructive", Kind: render.Bool, Doc: "something is lost that does not follow from the rest"},
	{Name: "messages", Kind: render.Int, Doc: "messages that are lost"},
	{Name: "what", Whole: true, Doc: "what is done"},
}}

// repairOptions are the flags of mqx store repair and rebuild.
type repairOptions struct {
	verify  verifyFlags
	output  outputFlags
	safety  safetyFlags
	slots   int32
	entries int32
	unit    int64
	copyTo  string
	log     []string
}

func (o *repairOptions) add(c *cobra.Command, destructive bool) {
	o.verify.add(c)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.Int32Var(&o.slots, "index-slots", 0, "maxHashSlotNum of new index files, when no old one tells")
		f.Int32Var(&o.entries, "index-entries", 0, "maxIndexNum of new index files, when no old one tells")
		f.Int64Var(&o.unit, "consumequeue-file-size", 0, "mappedFileSizeConsumeQueue in bytes, when no queue file tells")
	})
	addCommitLog(c, &o.log)
	o.output.add(c)
	o.safety.addAnswers(c, destructive)
	o.safety.addDry(c)
	c.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
}

func newStoreRepairCmd(a *app) *cobra.Command {
	o := &repairOptions{}
	c := &cobra.Command{
		Use:   "repair DIR",
		Short: "Mend what verify finds, so that Apache's broker and mqx start on it",
		Long: `Shows the plan, asks, and does it. What only follows from the rest is built again;
what cannot be read is kept in mqx/salvage and cut, or replaced by a placeholder that
keeps its queue offset. What needs no repair is not touched. Every step is noted in
mqx/repair.json: the same command goes on where one was interrupted.`,
		Example: `  mqx store repair ~/store --dry-run
  mqx store repair ~/store --yes                 # where everything can be derived
  mqx store repair ~/store --confirm store       # where something is lost
  mqx store repair /mnt/suspect/store --copy-to /data/store --confirm store`,
		Args: exactArgs("DIR"),
		RunE: func(c *cobra.Command, args []string) error { return runStoreRepair(a, c, o, args[0]) },
	}
	o.add(c, true)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVar(&o.copyTo, "copy-to", "", "copy the directory there and repair the copy: DIR is only read")
	})
	return c
}

// checkLog refuses a log that is not repaired, before anything is copied.
func (o *repairOptions) checkLog(dir string) error {
	if len(o.log) == 0 {
		return nil
	}
	if err := checkLogDirs(o.log); err != nil {
		return err
	}
	if err := inspect.CanRepair(dir, o.open()); err != nil {
		return repairFailure(dir, err)
	}
	return nil
}

func (o *repairOptions) open() inspect.Options {
	return inspect.Options{CommitLogDirs: o.log, IndexSlots: o.slots}
}

func (o *repairOptions) planOptions() inspect.PlanOptions {
	return inspect.PlanOptions{IndexSlots: o.slots, IndexEntries: o.entries, QueueFileBytes: o.unit}
}

// checkCopyTo refuses an empty target, without which DIR would be repaired.
func (o *repairOptions) checkCopyTo(c *cobra.Command) error {
	if !c.Flags().Changed("copy-to") {
		return nil
	}
	if o.copyTo == "" {
		return usagef("cannot use --copy-to '': it names no directory").because("without a target DIR itself would be repaired").try("--copy-to a directory that is empty or does not exist, elsewhere")
	}
	o.copyTo = filepath.Clean(o.copyTo)
	return nil
}

func runStoreRepair(a *app, c *cobra.Command, o *repairOptions, dir string) error {
	if _, err := a.renderer(io.Discard, &o.output, storeStepSchema, false); err != nil {
		return err // before anything is done
	}
	if o.output.form == "help" {
		return o.rows(a, nil)
	}
	if err := o.checkCopyTo(c); err != nil {
		return err
	}
	ctx, cancel := a.deadline(c, false)
	defer cancel()
	if a.global.readOnly && !o.safety.planOnly() {
		return failf(ExitDenied, "cannot repair store %q: refused by --read-only", dir).because("--read-only allows no change").try("mqx store repair %s --dry-run", dir)
	}
	if err := o.checkLog(dir); err != nil {
		return err
	}
	if o.copyTo != "" && !o.safety.planOnly() {
		if err := o.copyStore(ctx, a, dir); err != nil {
			return err
		}
		dir, o.log = o.copyTo, nil
	}
	if o.safety.planOnly() {
		return o.plan(ctx, a, dir)
	}
	bar := newProgressLine(a, "verify")
	var done []*inspect.Step
	r, err := inspect.Repair(ctx, dir, inspect.RepairOptions{
		Open: o.open(), Verify: o.verify.options(bar), Plan: o.planOptions(),
		Agree: func(r *inspect.Report, p *inspect.RepairPlan) error {
			bar.end()
			o.show(a, dir, p, r == nil)
			if err := o.agree(a, dir, p, len(done) > 0); err != nil {
				return err
			}
			done = append(done, p.Steps...)
			return nil
		},
		OnReport: func(*inspect.Report) { bar.end() },
		Apply:    inspect.ApplyOptions{OnStep: func(_ int, s *inspect.Step) { a.note("%s", s.What) }},
	})
	bar.end()
	if err != nil {
		if len(done) > 0 && r != nil { // what was done is told, whatever keeps the rest from it
			err = errors.Join(err, o.rows(a, done))
		}
		return repairFailure(dir, a.withTimeout(ctx, err))
	}
	if o.copyTo != "" {
		if err := inspect.CopyUsed(vfs.OS, o.copyTo); err != nil {
			return repairFailure(dir, err)
		}
	}
	if err := o.rows(a, done); err != nil {
		return err
	}
	a.noteReport(r)
	if r.Damaged() {
		for _, f := range r.Findings {
			if !f.Note {
				a.warn("not mended: %s: %s", f.File, f.What)
			}
		}
		return silentError{ExitCheckFailed}
	}
	return nil
}

func (o *repairOptions) copyStore(ctx context.Context, a *app, dir string) error {
	bar := newProgressLine(a, "copy")
	bad, err := inspect.Copy(ctx, dir, o.copyTo, inspect.CopyOptions{OnProgress: bar.set})
	bar.end()
	if err != nil {
		return repairFailure(dir, err)
	}
	if bad > 0 {
		a.warn("%s could not be read and are zeros in the copy", words.Count(bad, "byte"))
	}
	return nil
}

// plan shows what would be done.
func (o *repairOptions) plan(ctx context.Context, a *app, dir string) error {
	d, err := inspect.Open(dir, o.open())
	if err != nil {
		return storeFailure(dir, err)
	}
	defer func() { _ = d.Close() }()
	bar := newProgressLine(a, "verify")
	r, err := inspect.Verify(ctx, d, o.verify.options(bar))
	bar.end()
	if err != nil {
		return storeFailure(dir, a.withTimeout(ctx, err))
	}
	p, err := inspect.PlanRepair(r, o.planOptions())
	if err != nil {
		return repairFailure(dir, err)
	}
	return o.planned(a, p)
}

// planned is the answer where only the plan was asked for.
func (o *repairOptions) planned(a *app, p *inspect.RepairPlan) error {
	if err := o.rows(a, p.Steps); err != nil {
		return err
	}
	if len(p.Steps) > 0 && o.safety.exitCode {
		return silentError{ExitCheckFailed}
	}
	return nil
}

func (o *repairOptions) rows(a *app, steps []*inspect.Step) error {
	out, closeOut, err := a.open(&o.output)
	if err != nil {
		return err
	}
	w, err := a.renderer(out, &o.output, storeStepSchema, false)
	if err != nil {
		return err
	}
	if !w.Help() {
		for _, s := range steps {
			if err := w.Row(string(s.Kind), s.File, s.Done, s.Destructive, knownInt(s.Messages), s.What); err != nil {
				return err
			}
		}
	}
	return closed(w.Close(), closeOut)
}

// show says on stderr what is about to be done.
func (o *repairOptions) show(a *app, dir string, p *inspect.RepairPlan, again bool) {
	if again {
		fmt.Fprintf(a.Err, "Plan for store %s: go on with the repair that was interrupted\n", dir)
	} else {
		fmt.Fprintf(a.Err, "Plan for store %s: repair\n", dir)
	}
	for _, s := range p.Steps {
		mark := " "
		if s.Destructive {
			mark = "!"
		}
		if s.Done {
			mark = "-"
		}
		fmt.Fprintf(a.Err, "  %s %-15s %s\n", mark, s.Kind, s.What)
		if s.Destructive && s.Messages > 0 {
			fmt.Fprintf(a.Err, "    %-15s %s cannot be read any more\n", "", words.Count(s.Messages, "message"))
		}
	}
}

// agree asks for leave. More says that a plan before this one is done: what has been confirmed was that one, and what this
// one loses nobody has seen.
func (o *repairOptions) agree(a *app, dir string, p *inspect.RepairPlan, more bool) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("cannot name store %q: %w", dir, err)
	}
	why := ""
	if more && p.Destructive() && (!a.InTTY || !a.ErrTTY) {
		return usagef("cannot go on with the repair of %q: the plan that was confirmed is done, and what it brought to light needs another one that loses something", filepath.Base(abs)).
			because("--confirm stands for the plan that was shown with it, which is the first").try("the same command again, for the plan above")
	}
	more = more && p.Destructive()
	if p.Destructive() {
		why = "something is lost that cannot be derived from the rest, which asks for the name; --yes does not answer"
	}
	if more { // --confirm has answered for the first plan only
		return a.ask(filepath.Base(abs), true)
	}
	return a.confirmed(&o.safety, act{name: filepath.Base(abs), destructive: p.Destructive()}, why)
}

// repairFailure finds the exit code of an error of a repair.
func repairFailure(dir string, err error) error {
	if x, ok := errors.AsType[*store.LockedError](err); ok {
		f := failf(ExitDenied, "cannot repair store %q: process %d has it open", dir, x.PID)
		if x.PID <= 0 {
			f = failf(ExitDenied, "cannot repair store %q: a process has it open", dir)
		}
		return f.because("the lock of the directory is held by a broker or another command of mqx store").try("stop the broker, or wait for the command, then the same command")
	}
	if _, ok := errors.AsType[*inspect.UnsupportedError](err); ok {
		return failf(ExitFailed, "%w", err).because("such a part is neither served nor repaired by mqx").try("mqx store verify %s", dir)
	}
	if x, ok := errors.AsType[*inspect.ShapeError](err); ok {
		return failf(ExitFailed, "cannot repair store %q: %s: %s", dir, x.Path, x.What).
			because("repair locks the directory with it, or keeps its notes there").try("mv %s to another directory, then the same command", x.Path)
	}
	if x, ok := errors.AsType[*inspect.NoSpaceError](err); ok {
		return failf(ExitFailed, "%w", err).because("the steps write what they build and what they keep before they take anything away").
			try("free %s, or --copy-to a larger volume", words.Count(x.Need-x.Free, "byte"))
	}
	if errors.Is(err, inspect.ErrInside) {
		return usagef("%w", err).because("DIR is only read").try("--copy-to a directory that is empty or does not exist, elsewhere")
	}
	if errors.Is(err, inspect.ErrNotEmpty) {
		return usagef("%w", err).because("a copy does not mix with what is there").try("--copy-to a directory that is empty or does not exist")
	}
	if errors.Is(err, inspect.ErrNoQueue) {
		return failf(ExitNotFound, "%w", err).because("there is neither a record nor a queue file of it").try("mqx store queue %s", dir)
	}
	return storeFailure(dir, err)
}
