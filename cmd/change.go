package cmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mqx/admin"
	"mqx/internal/render"
)

// changeSchema is the record of every change, whatever is changed: one target of it.
var changeSchema = render.Schema{Kind: "ChangeList", Name: "object", Fields: []render.Field{
	{Name: "object", Doc: "what is changed: a topic, a group, …"},
	{Name: "part", Doc: "which part of it, as in queue 3 or a key; unknown for all of it"},
	{Name: "broker", Doc: "broker; unknown for a name server"},
	{Name: "addr", Title: "ADDRESS", Whole: true, Doc: "its address"},
	{Name: "action", Tone: render.ToneOf(map[string]render.Tone{"none": render.Dim, "create": render.Good, "delete": render.Bad}, render.Warn), Doc: "create, update, delete, send, or none where it is so already"},
	{Name: "before", Kind: render.Object, Doc: "the state before, unknown where there was none"},
	{Name: "after", Kind: render.Object, Doc: "the state after, as it was read back once done; unknown where nothing is left"},
	{Name: "warning", Wide: true, Doc: "what to mind"},
}}

// change is how every change goes, whichever command asks for it: planned, shown,
// agreed to, done, read back, noted.
type change struct {
	app    *app
	cmd    *cobra.Command
	target *targetFlags
	output *outputFlags
	safety *safetyFlags

	long   bool   // it may take long: only a --timeout that is given bounds it
	undoOf string // id of the change that is taken back
}

// plans makes the plans of a change; they are done in their order.
type plans func(context.Context, *admin.Client) ([]admin.Plan, error)

// onePlan makes a list of one plan.
func onePlan(p admin.Plan, err error) ([]admin.Plan, error) {
	if err != nil {
		return nil, err
	}
	return []admin.Plan{p}, nil
}

// run does the whole of it.
func (t *change) run(plan plans) error {
	a := t.app
	out, closeOut, err := a.open(t.output)
	if err != nil {
		return err
	}
	w, err := a.renderer(out, t.output, changeSchema, false)
	if err != nil {
		return err
	}
	if w.Help() {
		return w.Close()
	}
	client, err := a.adminClient(t.cmd.Context(), t.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := a.deadline(t.cmd, !t.long)
	defer cancel()
	list, err := plan(ctx, client)
	if err != nil {
		return a.withTimeout(ctx, err)
	}
	for _, p := range list {
		if err := allFailed(len(p.Steps()), p.Missing()); err != nil {
			return err
		}
	}
	if t.safety.planOut != "" {
		if err := t.save(list); err != nil {
			return err
		}
	}
	idle := allIdle(list)
	if t.safety.planOnly() || !idle {
		t.show(list)
	}
	if t.safety.planOnly() || idle {
		return t.finish(w, closeOut, planned(list), !idle && t.safety.planOnly())
	}
	if err := a.agree(t.target, t.safety, actOf(list)); err != nil {
		return err
	}
	// The time a person takes to answer is not the command's.
	ctx, cancelApply := a.deadline(t.cmd, !t.long)
	defer cancelApply()
	done, err := t.apply(ctx, client, list)
	if err != nil {
		return a.withTimeout(ctx, err)
	}
	return t.finish(w, closeOut, done, false)
}

func allIdle(list []admin.Plan) bool {
	return !slices.ContainsFunc(list, func(p admin.Plan) bool { return !admin.Idle(p) })
}

// actOf is what leave is asked for.
func actOf(list []admin.Plan) act {
	out := act{}
	for _, p := range list {
		out.name = cmp.Or(out.name, p.Object())
		out.destructive = out.destructive || p.Destroys()
	}
	return out
}

// outcome is what was planned or done of one plan.
type outcome struct {
	object string
	steps  []admin.Step
	errs   []admin.TargetError
}

func planned(list []admin.Plan) []outcome {
	var out []outcome
	for _, p := range list {
		out = append(out, outcome{p.Object(), p.Steps(), p.Missing()})
	}
	return out
}

// apply does the plans in their order and notes what was done. What fails as a
// whole ends it.
func (t *change) apply(ctx context.Context, client *admin.Client, list []admin.Plan) ([]outcome, error) {
	var out []outcome
	for _, p := range list {
		done, err := p.Apply(ctx, client)
		if err != nil {
			return nil, err
		}
		if err := allFailed(len(done.Steps), done.Errors); err != nil {
			return nil, err
		}
		t.remember(p, done)
		// Who could not be planned for was not changed either.
		out = append(out, outcome{p.Object(), done.Steps, append(slices.Clone(p.Missing()), done.Errors...)})
	}
	return out, nil
}

// finish prints the steps, planned or done, and makes the exit code.
func (t *change) finish(w *render.Writer, closeOut func() error, all []outcome, would bool) error {
	var missing problems
	for _, o := range all {
		for _, s := range o.steps {
			if err := w.Row(o.object, orUnknown(s.Part), orUnknown(s.Broker), s.Addr, s.Action, s.Before, s.After, orUnknown(s.Warning)); err != nil {
				return err
			}
		}
		missing = append(missing, targetProblems(o.errs)...)
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
	if err := t.app.partial(missing); err != nil {
		return err
	}
	if would && t.safety.exitCode {
		return silentError{ExitCheckFailed}
	}
	return nil
}

// show says on stderr what is about to be done, on which cluster and in which context.
func (t *change) show(list []admin.Plan) {
	a := t.app
	for _, p := range list {
		fmt.Fprintf(a.Err, "Plan for cluster %s (%s): %s\n", cmp.Or(strings.Join(p.Clusters(), ", "), "of unknown name"), t.contextText(), p.Title())
		for _, s := range p.Steps() {
			who := s.Addr
			if s.Broker != "" {
				who = s.Broker + " (" + s.Addr + ")"
			}
			if s.Part != "" {
				who = s.Part + " of " + who
			}
			fmt.Fprintf(a.Err, "  %-8s %s%s\n", s.Action, who, stepText(s))
			if s.Warning != "" {
				fmt.Fprintf(a.Err, "           warning: %s\n", s.Warning)
			}
		}
		for _, n := range p.Notes() {
			fmt.Fprintf(a.Err, "  %-8s %s\n", n.Word, oneLine(n.Text))
		}
		for _, e := range p.Missing() {
			fmt.Fprintf(a.Err, "  unknown  %s\n", oneLine(e.Error()))
		}
	}
}

// stepText is what a step does, with a colon before it; empty where the action says all.
func stepText(s admin.Step) string {
	switch {
	case s.Text != "":
		return ": " + s.Text
	case s.Before == nil && s.After == nil:
		return ""
	}
	state := func(v any) string {
		if v == nil {
			return "nothing"
		}
		return fmt.Sprint(v)
	}
	return ": " + state(s.Before) + " -> " + state(s.After)
}

// contextText names the context of the cluster and its marks.
func (t *change) contextText() string {
	r, err := t.app.resolve(t.target)
	if err != nil {
		return "no context"
	}
	text := "no context"
	switch {
	case r.context != "":
		text = "context " + r.context
	case len(r.marks.Contexts) > 0:
		text = "context " + strings.Join(r.marks.Contexts, ", ")
	}
	if r.marks.Protected != "" {
		text += ", protected"
	}
	if r.marks.ReadOnly != "" {
		text += ", read-only"
	}
	return text
}
