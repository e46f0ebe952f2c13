package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/journal"
	"mqx/internal/render"
)

// remember notes what was done, and says how it is taken back. A journal that
// cannot be written does not make the change a failure.
func (t *change) remember(p admin.Plan, done *admin.Applied) {
	a := t.app
	var words []string
	for _, s := range done.Steps {
		if s.Action != admin.ActionNone {
			words = append(words, stepWords(s))
		}
	}
	if len(words) == 0 {
		return
	}
	now := time.Now()
	e := journal.Entry{ID: journal.NewID(now), Time: now, Clusters: p.Clusters(), Kind: p.Kind(), Object: p.Object(), Change: strings.Join(words, "; ")}
	if r, err := a.resolve(t.target); err == nil {
		e.Context, e.NameServers = r.context, r.nameServers.value
	}
	if done.Final != nil {
		e.Final = done.Final.Error()
	}
	if t.undoOf != "" {
		e.Change = "undo " + t.undoOf + ": " + e.Change
	}
	j, err := journal.Open(a.env)
	if err == nil {
		e.Done, err = json.Marshal(done.Undo)
	}
	if err == nil {
		err = j.Add(e)
	}
	if err != nil {
		a.warn("the change is not in the journal: %v", err)
		return
	}
	switch {
	case done.Final != nil:
		a.note("cannot be undone: %v", done.Final)
	case done.Lasting != nil:
		a.note("undo: mqx admin undo %s (not all of it: %v)", e.ID, done.Lasting)
	default:
		a.note("undo: mqx admin undo %s", e.ID)
	}
}

// stepWords is a step in the line of a journal.
func stepWords(s admin.Step) string {
	where := s.Broker
	if where == "" {
		where = s.Addr
	}
	if s.Part != "" {
		where = s.Part + " of " + where
	}
	return s.Action + " on " + where + stepText(s)
}

var undoSchema = render.Schema{Kind: "JournalList", Name: "id", Fields: []render.Field{
	{Name: "id", Whole: true, Doc: "id of the change: what mqx admin undo takes"},
	{Name: "time", Kind: render.Time, Doc: "when it was done"},
	{Name: "context", Doc: "context it was done in; unknown when there was none"},
	{Name: "clusters", Kind: render.List, Doc: "clusters that were changed"},
	{Name: "kind", Doc: "what kind of thing was changed: topic, …"},
	{Name: "object", Doc: "its name"},
	{Name: "undoable", Title: "UNDO", Kind: render.Bool, Doc: "mqx admin undo can take it back"},
	{Name: "undone", Kind: render.Time, Doc: "when it was taken back; unknown when it was not"},
	{Name: "change", Doc: "what was done"},
	{Name: "final", Wide: true, Doc: "why it cannot be taken back; unknown when it can"},
	{Name: "namesrv", Kind: render.List, Wide: true, Doc: "name servers of the cluster"},
}}

// undoOptions are the flags of mqx admin undo.
type undoOptions struct {
	target targetFlags
	output outputFlags
	safety safetyFlags
	list   bool
}

func newUndoCmd(a *app) *cobra.Command {
	o := &undoOptions{}
	c := &cobra.Command{
		Use:   "undo [ID]",
		Short: "List what was changed from here, and take a change back",
		Long: `mqx notes every change it makes in a journal of the user who made it, the newest
200. A change is taken back only while the cluster still is as the change left it.
What was created is deleted with what has come into it since, which asks for the
name; what was deleted does not come back.`,
		Example: `  mqx admin undo --list
  mqx admin undo --list --match 'object=ORDERS' -o json
  mqx admin undo 20261130T044512 --dry-run
  mqx admin undo 20261130T044512 --yes`,
		Args:              optionalArg(),
		ValidArgsFunction: completeChanges(a),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.output.check(); err != nil {
				return err
			}
			switch {
			case o.list && len(args) > 0:
				return usagef("cannot use --list with an ID: it lists all changes").try("mqx admin undo --list --match id=%s", args[0])
			case o.list:
				return runUndoList(a, o)
			case len(args) == 0:
				return usagef("cannot run %q: ID is missing", c.CommandPath()).try("mqx admin undo --list")
			}
			return runUndo(a, c, o, args[0])
		},
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.BoolVar(&o.list, "list", false, "list the changes, the newest first")
	})
	o.output.addRows(c)
	o.output.add(c)
	o.safety.addDry(c)
	o.safety.addAnswers(c, false)
	return c
}

func completeChanges(a *app) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		j, err := journal.Open(a.env)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, _ := j.List() // what can be read is offered
		var out []string
		for _, e := range list {
			if e.Final == "" && e.Undone.IsZero() {
				out = append(out, e.ID+"\t"+e.Object+": "+e.Change)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func runUndoList(a *app, o *undoOptions) error {
	out, closeOut, err := a.open(&o.output)
	if err != nil {
		return err
	}
	w, err := a.renderer(out, &o.output, undoSchema, false)
	if err != nil {
		return err
	}
	if w.Help() {
		return w.Close()
	}
	j, err := journal.Open(a.env)
	if err != nil {
		return err
	}
	list, broken := j.List()
	for _, e := range list {
		err := w.Row(e.ID, e.Time, orUnknown(e.Context), listOf(e.Clusters), e.Kind, e.Object, e.Final == "" && e.Undone.IsZero(), e.Undone,
			e.Change, orUnknown(e.Final), listOf(e.NameServers))
		if err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), closeOut(), broken)
}

func runUndo(a *app, c *cobra.Command, o *undoOptions, id string) error {
	if o.output.help() {
		return (&change{app: a, cmd: c, target: &o.target, output: &o.output, safety: &o.safety}).run(nil)
	}
	j, err := journal.Open(a.env)
	if err != nil {
		return err
	}
	e, err := j.Get(id)
	if _, ok := errors.AsType[*journal.NotFoundError](err); ok {
		return failf(ExitNotFound, "%w", err).because("the journal of this user has no such change").try("mqx admin undo --list")
	}
	if err != nil {
		return err
	}
	switch {
	case e.Final != "":
		return failf(ExitFailed, "cannot undo change %s", e.ID).because(e.Final).try("mqx admin undo --list --match undoable=true")
	case !e.Undone.IsZero():
		return failf(ExitFailed, "cannot undo change %s", e.ID).because("it was taken back at " + e.Undone.Format(time.RFC3339)).try("mqx admin undo --list")
	case !slices.Contains(admin.PlanKinds(), e.Kind):
		return failf(ExitFailed, "cannot undo change %s", e.ID).because("this mqx knows no changes of kind " + e.Kind).try("a newer mqx")
	}
	o.target.pinned = chosen[[]string]{e.NameServers, "the change " + e.ID}
	t := &change{app: a, cmd: c, target: &o.target, output: &o.output, safety: &o.safety, undoOf: e.ID}
	err = t.run(func(ctx context.Context, client *admin.Client) ([]admin.Plan, error) {
		return client.Undo(ctx, e.Kind, e.Object, e.Done)
	})
	if err != nil || o.safety.planOnly() {
		return err
	}
	e.Undone = time.Now()
	return j.Add(*e)
}
