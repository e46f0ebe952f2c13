package cmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/admin/move"
	"mqx/internal/render"
)

var moveStatusSchema = render.Schema{Kind: "MoveStatusList", Name: "group", Fields: []render.Field{
	{Name: "id", Wide: true, Whole: true, Doc: "id of the plan"},
	{Name: "phase", Doc: "how far it has come"},
	{Name: "topic", Doc: "topic"},
	{Name: "broker", Doc: "broker that is drained"},
	{Name: "group", Doc: "group that has to read; unknown for what concerns all"},
	{Name: "what", Doc: "unread, retry, in flight, notes of popped messages to be read, delayed, timer, half or dead letters; unknown when nothing is waited for"},
	{Name: "remaining", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "messages left"},
	{Name: "rate", Title: "RATE/S", Kind: render.Float, Doc: "messages a second; unknown before a second look"},
	{Name: "left", Kind: render.Duration, Doc: "time left at that rate; unknown where it does not get less"},
}}

func newMoveStatusCmd(a *app, v moveVerb) *cobra.Command {
	o := &moveOptions{}
	c := &cobra.Command{
		Use: "status [PLAN]", Short: "List plans, or what one of them waits for, by group",
		Example: fmt.Sprintf("  %[1]s status\n  %[1]s status PLAN --watch\n  %[1]s status --match 'phase!=DONE' -o json", v.command),
		Args:    optionalArg(), ValidArgsFunction: completeMoves(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return runMoveList(a, c, o)
			}
			plan, err := a.findMove(c, o, v, args[0])
			if err != nil {
				return err
			}
			return runMoveStatus(a, c, o, plan)
		},
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) { o.target.add(f) })
	o.output.addRows(c)
	o.output.add(c)
	o.output.addWatch(c)
	return c
}

func runMoveList(a *app, c *cobra.Command, o *moveOptions) error {
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return a.list(c, &o.output, moveSchema, func(ctx context.Context, w *render.Writer) (problems, error) {
		moves, errs, err := client.Moves(ctx)
		if err != nil {
			return nil, err
		}
		if err := allFailed(len(moves), errs); err != nil {
			return nil, err
		}
		for _, m := range moves {
			if err := moveRow(w, m.State, m.Written); err != nil {
				return nil, err
			}
		}
		return targetProblems(errs), nil
	})
}

func runMoveStatus(a *app, c *cobra.Command, o *moveOptions, plan string) error {
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	var before *move.Observation
	return a.list(c, &o.output, moveStatusSchema, func(ctx context.Context, w *render.Writer) (problems, error) {
		st, err := client.GetMove(ctx, plan)
		if err != nil {
			return nil, moveFailure(err)
		}
		var missing problems
		var groups []admin.MoveGroup
		if !st.Phase.Ended() {
			seen, err := client.LookMove(ctx, st)
			if err != nil {
				return nil, err
			}
			for _, why := range seen.Failed {
				missing = append(missing, render.Problem{Target: plan, Message: why})
			}
			groups = admin.MoveProgress(st, seen, before)
			before = seen
		}
		if len(groups) == 0 {
			return missing, w.Row(st.ID, string(st.Phase), nil, nil, nil, nil, nil, nil, nil)
		}
		for _, g := range groups {
			if err := w.Row(st.ID, string(st.Phase), g.Topic, g.Broker, orUnknown(g.Group), g.What, g.Remaining, pointed(g.Rate), left(g.Left)); err != nil {
				return nil, err
			}
		}
		return missing, nil
	})
}

// pointed is a number that may be unknown.
func pointed(n *float64) any {
	if n == nil {
		return nil
	}
	return *n
}

func left(d *time.Duration) any {
	if d == nil {
		return nil
	}
	return *d
}
