package cmd

import (
	"io"

	"github.com/spf13/cobra"

	"mqx/store/inspect"
)

func newStoreRebuildCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "rebuild", Short: "Build one part of a store again from the rest"},
		rebuildCmd(a, inspect.RebuildQueue, "queue DIR [TOPIC [QUEUE]]", "Build consume queues from the log", `  mqx store rebuild queue ~/store --yes
  mqx store rebuild queue ~/store ORDERS 3 --yes`, 2),
		rebuildCmd(a, inspect.RebuildIndex, "index DIR", "Build the key index from the log", `  mqx store rebuild index ~/store --yes`, 0),
		rebuildCmd(a, inspect.RebuildTopics, "topics DIR", "Make topics.json from the queues and the log", `  mqx store rebuild topics ~/store --yes
  mqx store rebuild topics ~/store --confirm store  # topics.json can still be read`, 0),
		rebuildCmd(a, inspect.RebuildOffsets, "offsets DIR", "Bring consumer offsets into the range of their queues, or from the backup", `  mqx store rebuild offsets ~/store --confirm store`, 0),
	)
}

func rebuildCmd(a *app, part inspect.RebuildPart, use, short, example string, optional int) *cobra.Command {
	o := &repairOptions{}
	c := &cobra.Command{
		Use: use, Short: short, Example: example, Args: func(c *cobra.Command, args []string) error {
			return exactArgs(rebuildArgs[:min(max(len(args), 1), 1+optional)]...)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error { return runStoreRebuild(a, c, o, part, args) },
	}
	o.add(c, part == inspect.RebuildOffsets || part == inspect.RebuildTopics)
	return c
}

// rebuildArgs are the arguments of the commands below rebuild; only the first is needed.
var rebuildArgs = []string{"DIR", "TOPIC", "QUEUE"}

func runStoreRebuild(a *app, c *cobra.Command, o *repairOptions, part inspect.RebuildPart, args []string) error {
	dir := args[0]
	if _, err := a.renderer(io.Discard, &o.output, storeStepSchema, false); err != nil {
		return err // before anything is done
	}
	if o.output.form == "help" {
		return o.rows(a, nil)
	}
	if a.global.readOnly && !o.safety.planOnly() {
		return failf(ExitDenied, "cannot rebuild in store %q: refused by --read-only", dir).because("--read-only allows no change").try("the same with --dry-run")
	}
	if err := o.checkLog(dir); err != nil {
		return err
	}
	ctx, cancel := a.deadline(c, false)
	defer cancel()
	bar := newProgressLine(a, "verify")
	options := inspect.RepairOptions{Open: o.open(), Verify: o.verify.options(bar), Plan: o.planOptions()}
	if o.safety.planOnly() {
		p, err := inspect.PlanRebuild(ctx, dir, part, args[1:], options)
		bar.end()
		if err != nil {
			return repairFailure(dir, a.withTimeout(ctx, err))
		}
		return o.planned(a, p)
	}
	shown, resumed := &inspect.RepairPlan{}, false
	options.Agree = func(r *inspect.Report, p *inspect.RepairPlan) error {
		bar.end()
		shown, resumed = p, resumed || r == nil
		o.show(a, dir, p, r == nil)
		return o.agree(a, dir, p, r != nil && resumed)
	}
	options.Apply = inspect.ApplyOptions{OnStep: func(_ int, s *inspect.Step) { a.note("%s", s.What) }}
	err := inspect.Rebuild(ctx, dir, part, args[1:], options)
	bar.end()
	if err != nil {
		return repairFailure(dir, a.withTimeout(ctx, err))
	}
	return o.rows(a, shown.Steps)
}
